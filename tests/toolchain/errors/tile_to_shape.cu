#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    auto l = tile_to_shape(Layout<Shape<_8, _6>>{}, Shape<Int<20>, _64>{}); // error: tile_to_shape
    y[0] = x[l(0)];
}
#endif
