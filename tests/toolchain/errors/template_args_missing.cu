#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    Tensor r = make_tensor(Shape<_8>{}); // error: make_tensor(Shape<_8>{})
    y[0] = r(0);
}
#endif
