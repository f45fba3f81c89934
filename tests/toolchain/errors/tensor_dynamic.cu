#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    int n = blockDim.x;
    Tensor r = make_tensor<float>(make_shape(n)); // error: make_tensor<float>
    r(0) = x[0];
    y[0] = r(0);
}
#endif
