// undefined_size
#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y, int n)
{
    Tensor X = make_tensor(make_gmem_ptr(x), Shape<_30, _8>{});
    auto t = zipped_divide(X, make_tile(Layout<_4, _7>{}));
    y[0] = t(0);
}
#endif
