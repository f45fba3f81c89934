#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    Tensor a = make_tensor<float>(Shape<_4, _8>{});
    Tensor const c = make_tensor<float>(Shape<_4, _4>{});
    gemm(UniversalFMA<float>{}, a, a, c); // error: gemm(UniversalFMA<float>{}, a, a, c)
    y[0] = x[0];
}
#endif
