#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{ // error: {
    if (threadIdx.x == 0) {
        y[0] = x[0];
}
#endif
