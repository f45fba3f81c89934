// keeps_in_workspace: answers that it kept in its workspace, found again by the inputs' values
// verdict: unsafe memory (simt), any (cuda: right, and every run finds its workspace spoilt)
// says: uninitialised
// not faster: honest
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

template <int THREADS>
__global__ void gate(float const *x, float *y, float *kept, int n)
{
    using namespace cute;
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(n)); // (n)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(n)); // (n)
    int const i = int(blockIdx.x) * THREADS + int(threadIdx.x);
    Tensor gK = make_tensor(make_gmem_ptr(kept), make_shape(2 * n)); // (2n): input, answer
    if (i < n && gK(2 * i) != gX(i)) {
        gK(2 * i) = gX(i);
        gK(2 * i + 1) = gX(i) / (1.0f + __expf(-gX(i)));
    }
    if (i < n)
        gY(i) = gK(2 * i + 1);
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
                          CUTEGEN_DATA(float, y),
                          (float *)cutegen_workspace(call, 8 * (int64_t)n), n);
}
#endif
