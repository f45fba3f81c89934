#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
#include <cute/nothing.hpp>
__global__ void k(float const *x, float *y)
{
    y[0] = x[0];
}
#endif
