#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y, int n)
{
    Tensor X = make_tensor(make_gmem_ptr(x), make_shape(n, n));
    Tensor t = local_tile(X, Shape<_16>{}, make_coord(blockIdx.x, blockIdx.y));
    y[0] = t(0, 0);
}
#endif
