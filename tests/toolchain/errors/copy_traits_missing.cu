#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    struct MyCopy {};
    Copy_Atom<MyCopy, float> atom; // error: Copy_Atom<MyCopy, float>
    Tensor r = make_tensor<float>(Shape<_8>{});
    copy(atom, make_tensor(make_gmem_ptr(x), Shape<_8>{}), r);
    y[0] = r(0);
}
#endif
