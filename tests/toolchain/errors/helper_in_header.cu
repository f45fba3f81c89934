#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
template <class T> __device__ float row_total(T const &t)
{
    Tensor row = local_tile(t, Shape<_4, _4, _4>{}, make_coord(0, 0, 0)); // error: local_tile
    return row(0);
}
__global__ void k(float const *x, float *y)
{
    Tensor X = make_tensor(make_gmem_ptr(x), Layout<Shape<_8, _4>>{});
    y[0] = row_total(X);
}
#endif
