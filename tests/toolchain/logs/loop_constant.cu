// loop_constant
#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y, int n)
{
    Tensor r = make_tensor<float>(Shape<_4>{});
    for (int i = 0; i < 4; ++i)
        r(Int<i>{}) = x[i];
    y[0] = r(0);
}
#endif
