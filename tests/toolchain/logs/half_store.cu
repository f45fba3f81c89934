// half_store
#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y, int n)
{
    Tensor X = make_tensor(make_gmem_ptr(reinterpret_cast<half_t const *>(x)), make_shape(n));
    half_t h = X(threadIdx.x);
    y[threadIdx.x] = __hmul2(h, h);
}
#endif
