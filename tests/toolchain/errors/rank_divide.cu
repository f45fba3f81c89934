#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    auto l = Layout<Shape<_32>>{};
    auto d = zipped_divide(l, Shape<_8, _8>{}); // error: zipped_divide
    y[0] = x[d(0)];
}
#endif
