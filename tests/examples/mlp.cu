// mlp: three linear layers, two of them with relu, one thread per result
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

template <bool RELU>
__global__ void linear(float const *x, float const *w, float const *bias, float *y, int rows, int in, int out)
{
    using namespace cute;
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(rows, in), make_stride(in, Int<1>{}));   // (rows,in)
    Tensor gW = make_tensor(make_gmem_ptr(w), make_shape(out, in), make_stride(in, Int<1>{}));    // (out,in)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(rows, out), make_stride(out, Int<1>{})); // (rows,out)
    int const column = int(blockIdx.x * blockDim.x + threadIdx.x), row = int(blockIdx.y);

    if (column >= out)
        return;
    float sum = bias[column];
    for (int k = 0; k < in; ++k)
        sum += gX(row, k) * gW(column, k);
    gY(row, column) = RELU ? fmaxf(sum, 0.0f) : sum;
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0], *w1 = &call->in[1], *w2 = &call->in[3], *w3 = &call->in[5];
    int rows = (int)x->shape[0], features = (int)x->shape[1], hidden = (int)w1->shape[0], classes = (int)w3->shape[0];
    float *a = (float *)cutegen_workspace(call, (int64_t)rows * hidden * 4);
    float *b = (float *)cutegen_workspace(call, (int64_t)rows * hidden * 4);

    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (linear<true>), cutegen_dim3(cutegen_ceil_div(hidden, 128), rows, 1),
                               cutegen_dim3(128, 1, 1), 0, CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float const, w1),
                               CUTEGEN_DATA(float const, &call->in[2]), a, rows, features, hidden));
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (linear<true>), cutegen_dim3(cutegen_ceil_div(hidden, 128), rows, 1),
                               cutegen_dim3(128, 1, 1), 0, a, CUTEGEN_DATA(float const, w2),
                               CUTEGEN_DATA(float const, &call->in[4]), b, rows, hidden, hidden));
    return CUTEGEN_LAUNCH(call, (linear<false>), cutegen_dim3(cutegen_ceil_div(classes, 128), rows, 1),
                          cutegen_dim3(128, 1, 1), 0, b, CUTEGEN_DATA(float const, w3),
                          CUTEGEN_DATA(float const, &call->in[6]), CUTEGEN_DATA(float, &call->out[0]), rows, hidden, classes);
}
#endif
