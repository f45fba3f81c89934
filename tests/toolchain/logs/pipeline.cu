// pipeline
#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y, int n)
{
    __shared__ float s[128];
    cp_async_wait<n>();
    y[0] = s[0] + x[0];
}
#endif
