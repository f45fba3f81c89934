#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    Tensor A = make_tensor(make_gmem_ptr(x), Layout<Shape<_16, _16>>{});
    Tensor C = make_tensor(make_gmem_ptr(y), Layout<Shape<_16, _8>>{});
    auto mma = make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{});
    auto t = mma.get_slice(threadIdx.x);
    Tensor a = t.partition_A(A);
    Tensor c = t.partition_C(C);
    gemm(mma, a, a, c); // error: gemm(mma, a, a, c)
}
#endif
