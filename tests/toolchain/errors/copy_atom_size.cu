#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    using Atom = Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint64_t>, float>;
    __shared__ float s[64];
    Tensor S = make_tensor(make_smem_ptr(s), Layout<Shape<_64>>{});
    copy(Atom{}, make_tensor(make_gmem_ptr(x), Layout<Shape<_64>>{}), S); // error: copy(Atom{}
    y[0] = s[0];
}
#endif
