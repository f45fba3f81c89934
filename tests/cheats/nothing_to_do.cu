// nothing_to_do: zeros, for a task whose result is zero: right, and no feat
// verdict: pass
// task: nothing
// says: "trivial": "zeros would pass too.*"floor_us": null|"floor_us": null.*"trivial": "zeros would pass too
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

template <int THREADS>
__global__ void clear(float *y, int n)
{
    using namespace cute;
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(n)); // (n)
    int const i = int(blockIdx.x) * THREADS + int(threadIdx.x);
    if (i < n)
        gY(i) = 0.0f;
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *y = &call->out[0];
    int n = (int)cutegen_numel(y);
    return CUTEGEN_LAUNCH(call, (clear<128>), cutegen_dim3(cutegen_ceil_div(n, 128), 1, 1), cutegen_dim3(128, 1, 1), 0,
                          CUTEGEN_DATA(float, y), n);
}
#endif
