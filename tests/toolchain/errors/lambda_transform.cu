#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    Tensor r = make_tensor<float>(Shape<_8>{});
    transform(r, [](float a, float b) { return a + b; }); // error: transform(r,
    y[0] = r(0) + x[0];
}
#endif
