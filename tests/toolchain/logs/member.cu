#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y, int n)
{
    Tensor X = make_tensor(make_gmem_ptr(x), make_layout(n));
    y[0] = X.at(3);
}
#endif
