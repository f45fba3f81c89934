#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    auto mma = make_tiled_mma(UniversalFMA<float>{}, Layout<Shape<_8, _8>>{});
    auto t = mma.get_slice(threadIdx.x);
    Tensor a = t.partition_fragment_A(make_tensor(make_gmem_ptr(x), Layout<Shape<_16, _8>>{}));
    Tensor b = t.partition_fragment_B(make_tensor(make_gmem_ptr(x), Layout<Shape<_32, _8>>{}));
    Tensor c = t.partition_fragment_C(make_tensor(make_gmem_ptr(y), Layout<Shape<_32, _32>>{}));
    gemm(mma, a, b, c); // error: gemm(mma, a, b, c) | M must agree
    y[0] = c(0);
}
#endif
