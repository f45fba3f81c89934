#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    Tensor X = make_tensor(make_gmem_ptr(x), Layout<Shape<_32, _32>>{});
    Tensor t = local_tile(X, Shape<_8, _8, _2>{}, make_coord(0, 0, 0)); // error: local_tile
    y[0] = t(0);
}
#endif
