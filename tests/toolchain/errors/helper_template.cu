#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
template <class T> __device__ float total(T const &t)
{
    float s = 0;
    for (int i = 0; i < size(t); i++)
        s += t(i, 0, 0); // error: t(i, 0, 0) | total(X(_, 0))
    return s;
}
__global__ void k(float const *x, float *y)
{
    Tensor X = make_tensor(make_gmem_ptr(x), Layout<Shape<_8, _4>>{});
    y[0] = total(X(_, 0));
}
#endif
