#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    wmma::fragment<float> f; // error: wmma::fragment
    y[0] = x[0];
}
#endif
