#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    auto mma = make_tiled_mma(SM80_16x8x32_F32F16F16F32_TN{}); // error: make_tiled_mma
    y[0] = size(mma);
}
#endif
