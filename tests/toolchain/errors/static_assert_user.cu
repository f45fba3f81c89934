#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    constexpr int tile = 96;
    static_assert(tile % 64 == 0, "the tile is a multiple of 64"); // error: static_assert | a multiple of 64
    y[0] = x[tile];
}
#endif
