// two: both results of tests/export/two.py
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

__global__ void two(float const *a, float const *b, float const *w, float *sum, float *difference, int n, float alpha)
{
    using namespace cute;
    Tensor gA = make_tensor(make_gmem_ptr(a), make_shape(n)); // (n)
    Tensor gB = make_tensor(make_gmem_ptr(b), make_shape(n)); // (n)
    int const i = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) {
        sum[i] = gA(i) + alpha * gB(i) * w[i];
        difference[i] = gA(i) - gB(i);
    }
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    int n = (int)cutegen_numel(&call->in[0]);

    return CUTEGEN_LAUNCH(call, (two), cutegen_dim3(cutegen_ceil_div(n, 128), 1, 1), cutegen_dim3(128, 1, 1), 0,
                          CUTEGEN_DATA(float const, &call->in[0]), CUTEGEN_DATA(float const, &call->in[1]),
                          CUTEGEN_DATA(float const, &call->in[2]), CUTEGEN_DATA(float, &call->out[0]),
                          CUTEGEN_DATA(float, &call->out[1]), n, (float)call->scalar[0].f);
}
#endif
