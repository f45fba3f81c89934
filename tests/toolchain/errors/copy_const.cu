#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    Tensor X = make_tensor(make_gmem_ptr(x), Layout<Shape<_8>>{});
    Tensor r = make_tensor<float>(Shape<_8>{});
    copy(r, X); // error: copy(r, X)
    y[0] = r(0);
}
#endif
