// begins_too_early: a dependent launch that never waits for the one before; alone on a GPU it mostly comes late enough
// verdict: race
// says: griddepcontrol.wait
// flags: --simt-arch 90a
// device: simt
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

__global__ void sigmoid(float const *x, float *s, int count)
{
    using namespace cute;
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(count)); // (count)
    Tensor gS = make_tensor(make_gmem_ptr(s), make_shape(count)); // (count)
    int i = int(blockIdx.x * blockDim.x + threadIdx.x);
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    if (i < count)
        gS(i) = 1.0f / (1.0f + expf(-gX(i)));
}

__global__ void multiply(float const *x, float const *s, float *y, int count)
{
    using namespace cute;
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(count)); // (count)
    Tensor gS = make_tensor(make_gmem_ptr(s), make_shape(count)); // (count)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(count)); // (count)
    int i = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        gY(i) = gX(i) * gS(i);
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    int64_t count = cutegen_numel(x);
    float *s = (float *)cutegen_workspace(call, count * 4);
    struct cutegen_dim grid = cutegen_dim3(cutegen_ceil_div(count, 256), 1, 1), block = cutegen_dim3(256, 1, 1);

    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, sigmoid, grid, block, 0, CUTEGEN_DATA(float const, x), s, (int)count));
    return CUTEGEN_LAUNCH_EX(call, multiply, grid, block, cutegen_dim3(1, 1, 1), 0, CUTEGEN_OVERLAP,
                             CUTEGEN_DATA(float const, x), (float const *)s, CUTEGEN_DATA(float, &call->out[0]), (int)count);
}
#endif
