#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
// launches: k<128>
__device__ float twice(float v)
{ // error: { | is not closed
    if (v > 0) {
        return v + v;
    return v;
}

template <int THREADS>
__global__ void k(float const *x, float *y)
{
    for (int i = threadIdx.x; i < 1024; i += THREADS)
        y[i] = twice(x[i]);
}
#endif
