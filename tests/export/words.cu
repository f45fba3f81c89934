// words: copies 32 bits at a time, of whatever type (calls_test.sh)
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

__global__ void words(unsigned const *x, unsigned *y, int n)
{
    using namespace cute;
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(n)); // (n)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(n)); // (n)
    int const i = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        gY(i) = gX(i);
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    int n = (int)cutegen_numel(&call->in[0]);
    return CUTEGEN_LAUNCH(call, (words), cutegen_dim3(cutegen_ceil_div(n, 128), 1, 1), cutegen_dim3(128, 1, 1), 0,
                          CUTEGEN_DATA(unsigned const, &call->in[0]), CUTEGEN_DATA(unsigned, &call->out[0]), n);
}
#endif
