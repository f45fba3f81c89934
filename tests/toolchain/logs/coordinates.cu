// coordinates
#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y, int n)
{
    Tensor X = make_tensor(make_gmem_ptr(x), Shape<_8, _4>{});
    Tensor t = local_tile(X, Shape<_4, _4, _2>{}, make_coord(0, 0, 0));
    y[0] = t(0);
}
#endif
