#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(half_t const *x, half_t *y)
{
    auto mma = make_tiled_mma(SM90_64x64x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>{});
    __shared__ half_t s[64 * 16];
    Tensor S = make_tensor(make_smem_ptr(s), Layout<Shape<_64, _16>>{});
    auto t = mma.get_slice(threadIdx.x);
    Tensor a = t.partition_fragment_A(t.partition_A(S)); // error: partition_fragment_A
    y[0] = 0;
}
#endif
