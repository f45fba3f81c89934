#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    cp_async_wait<1, 2>(); // error: cp_async_wait<1, 2>
    y[0] = x[0];
}
#endif
