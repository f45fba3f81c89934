// kept_in_local: looks in its stack for what the launch before left there
// verdict: pass (simt: modelled from a run that finds nothing there), any (cuda: right, and local memory is scrubbed before every timed run)
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
    float kept[64];
    asm volatile("" : : "l"(kept) : "memory"); // it lies in memory, and nobody wrote it
    if (i < n) {
        float const v = gX(i);
        if (kept[0] != v)
            kept[1] = v / (1.0f + __expf(-v));
        kept[0] = v;
        gY(i) = kept[1];
        asm volatile("" : : "l"(kept) : "memory");
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
