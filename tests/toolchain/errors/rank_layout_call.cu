#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    auto l = make_layout(Shape<_4, _8>{});
    y[0] = x[l(1, 2, 3)]; // error: l(1, 2, 3)
}
#endif
