// softmax: softmax, a block per row.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

using namespace cute;

struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};

struct Max { // NaN wins
    __device__ float operator()(float a, float b) const { return a > b || a != a ? a : b; }
};

__device__ inline float softmax_scale(float x, float row_max)
{
    return expf(x - row_max);
}

__device__ inline float softmax_y(float x, float row_max, float row_scale)
{
    return expf(x - row_max) * row_scale;
}

// Combines one value of each thread; all get the result.
template <int THREADS, class Op>
__device__ float block_reduce(float value, Op op, float *shared)
{
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            shared[threadIdx.x] = op(shared[threadIdx.x], shared[threadIdx.x + half]);
        __syncthreads();
    }
    value = shared[0];
    __syncthreads(); // before shared is used again
    return value;
}

template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    softmax_kernel(float const *x, float *y, int n, int rows, int64_t x_row0, int64_t y_row0)
{
    static_assert(THREADS % 32 == 0 && (THREADS & (THREADS - 1)) == 0, "a power of two of whole warps");
    __shared__ float shared[THREADS];
    int const row = blockIdx.x;
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(n, rows), make_stride(_1{}, x_row0))(_, row); // (n)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(n, rows), make_stride(_1{}, y_row0))(_, row); // (n)

    float part_max = __int_as_float(0xff800000);
    for (int i = threadIdx.x; i < n; i += THREADS)
        part_max = Max{}(part_max, gX(i));
    float const row_max = block_reduce<THREADS>(part_max, Max{}, shared);

    float part_scale = 0.0f;
    for (int i = threadIdx.x; i < n; i += THREADS)
        part_scale = Sum{}(part_scale, softmax_scale(gX(i), row_max));
    float const row_scale = 1.0f / block_reduce<THREADS>(part_scale, Sum{}, shared);

    for (int i = threadIdx.x; i < n; i += THREADS) {
        gY(i) = softmax_y(gX(i), row_max, row_scale);
    }
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    const struct cutegen_tensor *y = &call->out[0];

    CUTEGEN_REQUIRE(call, x->ndim == 2, "x must be 2-dimensional");
    CUTEGEN_REQUIRE(call, y->ndim == 2, "y must be 2-dimensional");
    int64_t n = x->shape[1];
    int64_t rows = x->shape[0];
    CUTEGEN_REQUIRE(call, x->strides[1] == 1, "dimension 1 of x must be contiguous");
    CUTEGEN_REQUIRE(call, y->strides[1] == 1, "dimension 1 of y must be contiguous");
    return CUTEGEN_LAUNCH(call, (softmax_kernel<256>), cutegen_dim3(rows, 1, 1),
                          cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, y),
                          (int)n, (int)rows, (int64_t)x->strides[0], (int64_t)y->strides[0]);
}
#endif
