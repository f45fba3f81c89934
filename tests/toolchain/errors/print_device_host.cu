#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__host__ float host_only(float v) // error: host_only
{
    return 2 * v;
}
__global__ void k(float const *x, float *y)
{
    y[0] = host_only(x[0]);
}
#endif
