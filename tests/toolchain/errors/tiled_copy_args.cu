#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    auto c = make_tiled_copy(Layout<Shape<_32>>{}, Copy_Atom<DefaultCopy, float>{}); // error: make_tiled_copy
    y[0] = 0;
}
#endif
