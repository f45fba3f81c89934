#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    auto s = shape_div(Int<30>{}, Int<8>{}); // error: shape_div
    y[0] = x[s];
}
#endif
