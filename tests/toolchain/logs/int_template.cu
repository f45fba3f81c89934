// int_template
#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y, int n)
{
    Tensor r = make_tensor<float>(Int<n>{});
    r(0) = x[0];
    y[0] = r(0);
}
#endif
