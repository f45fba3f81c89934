// swish: y = x * sigmoid(x), an element per thread in plain CUDA, which compiles in no time; for tests
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
template <int THREADS>
__global__ void swish(
    // the input
    float const *x, float *y, int64_t n)
{
    int64_t const i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i < n)
        y[i] = x[i] / (1.0f + expf(-x[i]));
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    int64_t n = cutegen_numel(x);

    CUTEGEN_REQUIRE(call, cutegen_dtype(x) == CUTEGEN_F32, "x must be f32");
    CUTEGEN_REQUIRE(call, cutegen_contiguous(x), "x must be contiguous");
    return CUTEGEN_LAUNCH(call, (swish<256>), cutegen_dim3(cutegen_ceil_div(n, 256), 1, 1), cutegen_dim3(256, 1, 1), 0,
                          CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, &call->out[0]), n);
}
#endif
