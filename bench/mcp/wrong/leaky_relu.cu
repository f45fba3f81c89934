// A wrong first kernel of leaky_relu, for agent.py: the grid covers half of the elements, and the slope is missing.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
__global__ void kernel(float const *x, float *y, int64_t n)
{
    int64_t const i = int64_t(blockIdx.x) * 256 + threadIdx.x;
    if (i < n)
        y[i] = fmaxf(x[i], 0.0f);
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    int64_t n = cutegen_numel(&call->in[0]);
    return CUTEGEN_LAUNCH(call, kernel, cutegen_dim3(n / 512, 1, 1), cutegen_dim3(256, 1, 1), 0,
                          CUTEGEN_DATA(float const, &call->in[0]), CUTEGEN_DATA(float, &call->out[0]), n);
}
#endif
