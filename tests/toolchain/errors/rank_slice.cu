#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    Tensor X = make_tensor(make_gmem_ptr(x), make_shape(8, 16), GenRowMajor{});
    Tensor row = X(_, 0, 0); // error: X(_, 0, 0)
    y[0] = row(0);
}
#endif
