// persisting_l2: asks L2 to keep its input for the next call; allowed, and of no use with a cold L2
// verdict: pass
// device: cuda
// not faster: honest
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

template <int THREADS>
__global__ void gate(float const *x, float *y, int n)
{
    using namespace cute;
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(n)); // (n)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(n)); // (n)
    int const i = int(blockIdx.x) * THREADS + int(threadIdx.x);
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    if (i < n) {
        float v;
        asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(v) : "l"(x + i), "l"(policy));
        gY(i) = v / (1.0f + __expf(-v));
    }
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    const struct cutegen_tensor *y = &call->out[0];
    int n = (int)cutegen_numel(x);
    return CUTEGEN_LAUNCH(call, (gate<256>), cutegen_dim3(cutegen_ceil_div(n, 256), 1, 1),
                          cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA(float const, x),
                          CUTEGEN_DATA(float, y), n);
}
#endif
