#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const *x, float *y)
{
    printf2("%f", x[0]);
    auto v = std::vector<float>(3);
}
#endif
