#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
// launches: k<128>
template <int THREADS>
__global__ void k(float const *x, float *y) // error: k(float const *x, float *y)
{
    for (int i = threadIdx.x; i < 1024; i += THREADS) {
        y[i] = x[i];
}
#endif
