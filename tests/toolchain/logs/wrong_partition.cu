// wrong_partition
#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y, int n)
{
    auto tc = make_tiled_copy(Copy_Atom<UniversalCopy<float>, float>{}, Layout<Shape<_32, _8>>{});
    auto thr = tc.get_slice(int(threadIdx.x));
    Tensor X = make_tensor(make_gmem_ptr(x), Shape<_32, _8>{});
    Tensor s = thr.partition_A(X);
    y[0] = s(0);
}
#endif
