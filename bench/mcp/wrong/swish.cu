// A wrong first kernel of swish, for agent.py: a name is misspelt.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
__global__ void kernel(float const *x, float *y, int64_t n)
{
    int64_t const i = int64_t(blockIdx.x) * 256 + threadIx.x;
    if (i < n)
        y[i] = x[i] / (1.0f + expf(-x[i]));
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    int64_t n = cutegen_numel(&call->in[0]);
    return CUTEGEN_LAUNCH(call, kernel, cutegen_dim3(cutegen_ceil_div(n, 256), 1, 1), cutegen_dim3(256, 1, 1), 0,
                          CUTEGEN_DATA(float const, &call->in[0]), CUTEGEN_DATA(float, &call->out[0]), n);
}
#endif
