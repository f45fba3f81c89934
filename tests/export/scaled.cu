// scaled: x * alpha + 1, alpha from the call (calls_test.sh)
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

__global__ void scaled(float const *x, float *y, int n, float factor)
{
    using namespace cute;
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(n)); // (n)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(n)); // (n)
    int const i = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n)
        return;
    float v = gX(i) * factor + 1.0f;
    gY(i) = v;
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    int n = (int)cutegen_numel(&call->in[0]);
    float factor = (float)call->scalar[0].f;
    return CUTEGEN_LAUNCH(call, (scaled), cutegen_dim3(cutegen_ceil_div(n, 128), 1, 1), cutegen_dim3(128, 1, 1), 0,
                          CUTEGEN_DATA(float const, &call->in[0]), CUTEGEN_DATA(float, &call->out[0]), n, factor);
}
#endif
