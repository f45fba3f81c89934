#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y, int n)
{
    Tensor X = make_tensor(make_gmem_ptr(x), Layout<Shape<_16, _16>>{});
    auto c = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, float>{}, Layout<Shape<_4, _8>>{}, Layout<Shape<_1, _2>>{});
    auto t = c.get_slice(threadIdx.x).partition_S(X);
    Tensor r = make_fragment_like(t);
    copy(c, t, r);
    y[0] = r(0);
}
#endif
