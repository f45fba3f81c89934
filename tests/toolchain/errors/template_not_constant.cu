#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    int n = blockDim.x;
    auto s = make_shape(Int<n>{}); // error: Int<n>
    y[0] = x[get<0>(s)];
}
#endif
