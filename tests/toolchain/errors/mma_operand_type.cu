#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    auto mma = make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{});
    Tensor A = make_tensor(make_gmem_ptr(x), Layout<Shape<_16, _16>>{});
    Tensor C = make_tensor(make_gmem_ptr(y), Layout<Shape<_16, _8>>{});
    auto t = mma.get_slice(threadIdx.x);
    Tensor a = make_fragment_like<float>(t.partition_fragment_A(A));
    Tensor b = t.partition_fragment_B(make_tensor(make_gmem_ptr(x), Layout<Shape<_8, _16>>{}));
    Tensor c = t.partition_fragment_C(C);
    gemm(mma, a, b, c); // error: gemm(mma, a, b, c)
    copy(c, t.partition_C(C));
}
#endif
