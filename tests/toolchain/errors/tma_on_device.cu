#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    auto tma = make_tma_copy(SM90_TMA_LOAD{}, make_tensor(make_gmem_ptr(x), Layout<Shape<_8, _32>>{}), Layout<Shape<_8, _16, _2>>{}); // error: make_tma_copy
    y[0] = 0;
}
#endif
