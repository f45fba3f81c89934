// gemm_rows
#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y, int n)
{
    auto mma = make_tiled_mma(UniversalFMA<float>{}, Layout<Shape<_1, _1, _1>>{});
    Tensor a = make_tensor<float>(Shape<_1, _8, _4>{});
    Tensor b = make_tensor<float>(Shape<_1, _4, _4>{});
    Tensor c = make_tensor<float>(Shape<_1, _4, _4>{});
    gemm(mma, a, b, c);
    y[0] = c(0);
}
#endif
