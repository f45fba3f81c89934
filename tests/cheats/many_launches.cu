// many_launches: no cheat; a plan may have 4096 steps, and a verdict needs the counters of all
// verdict: pass
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
    if (i < n)
        gY(i) = gX(i) / (1.0f + __expf(-gX(i)));
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    const struct cutegen_tensor *y = &call->out[0];
    int n = (int)cutegen_numel(x);
    for (int step = 0; step < 1100; step++)
        CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (gate<256>), cutegen_dim3(1, 1, 1), cutegen_dim3(256, 1, 1), 0,
                                   CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, y), n));
    return CUTEGEN_LAUNCH(call, (gate<256>), cutegen_dim3(cutegen_ceil_div(n, 256), 1, 1),
                          cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA(float const, x),
                          CUTEGEN_DATA(float, y), n);
}
#endif
