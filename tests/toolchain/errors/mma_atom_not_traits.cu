#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    struct MyMma {};
    MMA_Atom<MyMma> atom; // error: MMA_Atom<MyMma>
    y[0] = size<0>(typename decltype(atom)::Shape_MNK{});
}
#endif
