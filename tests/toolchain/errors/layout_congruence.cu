#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    auto l = make_layout(make_shape(8, 16), make_stride(1, 8, 128));
    y[0] = x[l(1, 2)]; // error: l(1, 2)
}
#endif
