#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    Tensor r = make_tensor<float>(Shape<_8>{});
    Tensor v = recast<half_t>(r.layout()); // error: recast<half_t>(r.layout())
    y[0] = v(0) + x[0];
}
#endif
