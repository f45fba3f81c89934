#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    auto l = composition(Swizzle<3, 4, 2>{}, Layout<Shape<_8, _64>>{}); // error: composition
    y[0] = x[l(0)];
}
#endif
