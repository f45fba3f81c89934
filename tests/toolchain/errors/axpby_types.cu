#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    Tensor r = make_tensor<float>(Shape<_8>{});
    axpby(1.0f, make_tensor(make_gmem_ptr(x), Shape<_8>{}), r); // error: axpby(1.0f,
    y[0] = r(0);
}
#endif
