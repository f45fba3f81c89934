// assign_tensor
#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y, int n)
{
    Tensor X = make_tensor(make_gmem_ptr(x), make_shape(n));
    Tensor Y = make_tensor(make_gmem_ptr(y), make_shape(n));
    Y(threadIdx.x) = X;
}
#endif
