// smem_dynamic
#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y, int n)
{
    __shared__ float s[n];
    s[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = s[0];
}
#endif
