// zero_for_nan: zero where PyTorch has NaN, for inputs that the task itself never draws
// verdict: wrong values
// task: roots
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

template <int THREADS>
__global__ void roots(float const *x, float *y, int n)
{
    using namespace cute;
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(n)); // (n)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(n)); // (n)
    int const i = int(blockIdx.x) * THREADS + int(threadIdx.x);
    if (i < n)
        gY(i) = sqrtf(fmaxf(gX(i), 0.0f));
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    const struct cutegen_tensor *y = &call->out[0];
    int n = (int)cutegen_numel(x);
    return CUTEGEN_LAUNCH(call, (roots<256>), cutegen_dim3(cutegen_ceil_div(n, 256), 1, 1),
                          cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA(float const, x),
                          CUTEGEN_DATA(float, y), n);
}
#endif
