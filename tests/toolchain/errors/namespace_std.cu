#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    y[0] = std::thread::hardware_concurrency(); // error: std::thread
}
#endif
