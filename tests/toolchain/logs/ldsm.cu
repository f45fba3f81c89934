#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    __shared__ half_t s[1024];
    Tensor S = make_tensor(make_smem_ptr(s), Layout<Shape<_32, _32>>{});
    auto mma = make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{}, Layout<Shape<_2, _2>>{}, Tile<_32, _32, _16>{});
    auto c = make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N, half_t>{}, mma);
    auto src = c.get_slice(threadIdx.x).partition_S(S);
    Tensor a = mma.get_slice(threadIdx.x).partition_fragment_A(S);
    copy(c, src(_, _, 0), a(_, _, 0));
    y[0] = float(a(0));
}
#endif
