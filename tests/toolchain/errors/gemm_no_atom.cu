#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    Tensor a = make_tensor<float>(Shape<_4, _8>{});
    Tensor b = make_tensor<half_t>(Shape<_4, _8>{});
    Tensor c = make_tensor<float *>(Shape<_4, _4>{});
    gemm(a, b, c); // error: gemm(a, b, c)
    y[0] = x[0];
}
#endif
