// reads_past_the_end: a neighbour's value that is thrown away again
// verdict: unsafe memory (simt), pass (cuda: not seen there; --accept has simt look too)
// accept: unsafe memory
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
    if (i < n) {
        float const beyond = gX(i + 1);
        gY(i) = gX(i) / (1.0f + __expf(-gX(i))) + (beyond == 12345.678f ? 1.0f : 0.0f);
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
