#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    auto c = make_tiled_copy(Copy_Atom<DefaultCopy, float>{}, Layout<Shape<_8, _4>>{}, Layout<Shape<_1, _4>>{});
    Tensor X = make_tensor(make_gmem_ptr(x), Layout<Shape<_128>>{});
    Tensor t = c.get_slice(threadIdx.x).partition_S(X); // error: partition_S(X)
    y[0] = t(0);
}
#endif
