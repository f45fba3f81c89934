// template_args
#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y, int n)
{
    Tensor X = make_tensor(make_gmem_ptr(x), make_shape(n));
    Tensor t = local_tile(X, Shape<_32>{});
    y[0] = t(0);
}
#endif
