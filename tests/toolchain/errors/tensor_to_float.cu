#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    Tensor X = make_tensor(make_gmem_ptr(x), Layout<Shape<_8, _4>>{});
    float v = X(_, 0); // error: X(_, 0)
    y[0] = v;
}
#endif
