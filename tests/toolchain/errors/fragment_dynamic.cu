#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    Tensor X = make_tensor(make_gmem_ptr(x), make_shape((int)blockDim.x));
    Tensor r = make_fragment_like(X); // error: make_fragment_like
    y[0] = r(0);
}
#endif
