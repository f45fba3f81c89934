// A wrong first kernel of softmax over rows, for agent.py: barriers are missing.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
__device__ float reduce(float v, float *s, bool largest)
{
    int const t = threadIdx.x;
    s[t] = v;
    for (int k = 128; k > 0; k /= 2) {
        __syncthreads();
        if (t < k)
            s[t] = largest ? fmaxf(s[t], s[t + k]) : s[t] + s[t + k];
    }
    return s[0];
}

__global__ void kernel(float const *x, float *y, int64_t n)
{
    __shared__ float s[256];
    float const *row = x + int64_t(blockIdx.x) * n;
    float m = -3.0e38f, sum = 0.0f;

    for (int64_t i = threadIdx.x; i < n; i += 256)
        m = fmaxf(m, row[i]);
    m = reduce(m, s, true);
    for (int64_t i = threadIdx.x; i < n; i += 256)
        sum += expf(row[i] - m);
    sum = reduce(sum, s, false);
    for (int64_t i = threadIdx.x; i < n; i += 256)
        y[int64_t(blockIdx.x) * n + i] = expf(row[i] - m) / sum;
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    return CUTEGEN_LAUNCH(call, kernel, cutegen_dim3(x->shape[0], 1, 1), cutegen_dim3(256, 1, 1), 0,
                          CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, &call->out[0]), x->shape[1]);
}
#endif
