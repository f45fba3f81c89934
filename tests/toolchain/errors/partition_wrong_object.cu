#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    auto mma = make_tiled_mma(UniversalFMA<float>{}, Layout<Shape<_8, _8>>{});
    Tensor A = make_tensor(make_gmem_ptr(x), Layout<Shape<_32, _8>>{});
    Tensor a = mma.partition_A(A); // error: mma.partition_A(A)
    y[0] = a(0);
}
#endif
