#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    auto s = make_shape(Int<8>{}, Int<4>{});
    y[0] = x[get<2>(s)]; // error: get<2>(s)
}
#endif
