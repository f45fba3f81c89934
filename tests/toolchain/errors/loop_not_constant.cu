#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    auto s = make_shape(Int<4>{}, Int<8>{});
    for (int i = 0; i < 2; i++)
        y[i] = x[get<i>(s)]; // error: get<i>(s)
}
#endif
