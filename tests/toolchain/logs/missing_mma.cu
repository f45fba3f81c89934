// missing_mma
#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y, int n)
{
    TiledMMA mma = make_tiled_mma(SM90_64x64x16_F32F16F16_TN{});
    y[0] = float(size(mma)) + x[0];
}
#endif
