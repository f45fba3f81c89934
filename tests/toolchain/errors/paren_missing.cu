#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    Tensor X = make_tensor(make_gmem_ptr(x, Shape<_8>{}); // error: make_gmem_ptr(x, Shape<_8>{})
    y[0] = X(0);
}
#endif
