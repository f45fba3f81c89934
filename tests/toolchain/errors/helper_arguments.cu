#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
template <class T> __device__ T twice(T a)
{
    return a + a;
}
__global__ void k(float const *x, float *y)
{
    y[0] = twice(x, 3); // error: twice(x, 3)
}
#endif
