#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    Tensor X = make_tensor(make_gmem_ptr(x), make_shape(8, 16));
    y[0] = X(1, 2, 3); // error: X(1, 2, 3)
}
#endif
