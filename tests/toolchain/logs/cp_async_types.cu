// cp_async_types
#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y, int n)
{
    __shared__ float s[128];
    Tensor S = make_tensor(make_smem_ptr(s), Shape<_128>{});
    Tensor X = make_tensor(make_gmem_ptr(x), Shape<_128>{});
    copy(Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<uint16_t>, float>{}, X, S);
    y[0] = S(0);
}
#endif
