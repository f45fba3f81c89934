// A worked example of the kernel ABI: y = x * sigmoid(x) * scale, then a row sum of y in a second
// launch, so that workspace, memset, scalars and two instantiations are all used once.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

template <int THREADS>
__global__ void swish(float const *x, float *y, int64_t n, float scale)
{
    using namespace cute;
    Tensor mX = make_tensor(make_gmem_ptr(x), make_layout(n));             // (n)
    Tensor mY = make_tensor(make_gmem_ptr(y), make_layout(n));             // (n)
    Tensor gX = local_tile(mX, Shape<Int<THREADS>>{}, (int)blockIdx.x);    // (THREADS)
    Tensor gY = local_tile(mY, Shape<Int<THREADS>>{}, (int)blockIdx.x);    // (THREADS)
    if (int64_t(blockIdx.x) * THREADS + threadIdx.x < n) {
        float v = gX(threadIdx.x);
        gY(threadIdx.x) = scale * v / (1.0f + __expf(-v));
    }
}

template <int THREADS>
__global__ void row_sum(float const *y, float *partial, float *sum, int columns)
{
    using namespace cute;
    Tensor row = make_tensor(make_gmem_ptr(y + int64_t(blockIdx.x) * columns), make_layout(columns));
    float total = 0;
    for (int c = threadIdx.x; c < columns; c += THREADS)
        total += row(c);
    atomicAdd(&partial[blockIdx.x], total);
    __syncthreads();
    if (threadIdx.x == 0)
        sum[blockIdx.x] = partial[blockIdx.x];
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    struct cutegen_tensor *y = &call->out[0];
    struct cutegen_tensor *sum = &call->out[1];
    CUTEGEN_REQUIRE(call, x->ndim == 2, "x must have 2 dimensions");
    CUTEGEN_REQUIRE(call, cutegen_dtype(x) == CUTEGEN_F32, "x must be f32");
    CUTEGEN_REQUIRE(call, cutegen_contiguous(x), "x must be contiguous");

    int64_t n = cutegen_numel(x);
    int rows = (int)x->shape[0], columns = (int)x->shape[1];
    float *partial = (float *)cutegen_workspace(call, rows * sizeof(float));
    CUTEGEN_TRY(cutegen_memset(call, partial, 0, rows * sizeof(float)));
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (swish<256>), cutegen_dim3(cutegen_ceil_div(n, 256), 1, 1),
                               cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA(float const, x),
                               CUTEGEN_DATA(float, y), n, (float)call->scalar[0].f));
    return CUTEGEN_LAUNCH(call, (row_sum<128>), cutegen_dim3(rows, 1, 1), cutegen_dim3(128, 1, 1), 0,
                          CUTEGEN_DATA(float const, y), partial, CUTEGEN_DATA(float, sum), columns);
}
#endif
