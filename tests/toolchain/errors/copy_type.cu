#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    Tensor X = make_tensor(make_gmem_ptr(x), Layout<Shape<_8>>{});
    Tensor r = make_tensor<half_t *>(Shape<_8>{});
    copy(X, r); // error: copy(X, r)
    y[0] = 0;
}
#endif
