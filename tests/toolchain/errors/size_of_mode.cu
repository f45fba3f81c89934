#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    Tensor X = make_tensor(make_gmem_ptr(x), make_shape(8, 16));
    for (int i = 0; i < size<2>(X); i++) // error: size<2>(X)
        y[i] = X(i);
}
#endif
