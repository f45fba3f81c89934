// diagonal_matmul: diag, mm, fused into one pass over memory.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

using namespace cute;

__device__ inline float diagonal_matmul_value(float A_view, float B)
{
    return A_view * B;
}

template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    diagonal_matmul_kernel(float const *A_view, float const *B, float *y, int n0, int n1, int A_view_stride1,
                           int B_stride1, int y_stride1)
{
    static_assert(THREADS % 32 == 0, "whole warps");
    auto shape = make_shape(n0, n1);                                                               // (n0,n1), the first runs fastest
    Tensor gA_view = make_tensor(make_gmem_ptr(A_view), shape, make_stride(_0{}, A_view_stride1)); // (n0,n1)
    Tensor gB = make_tensor(make_gmem_ptr(B), shape, make_stride(_1{}, B_stride1));                // (n0,n1)
    Tensor gY = make_tensor(make_gmem_ptr(y), shape, make_stride(_1{}, y_stride1));                // (n0,n1)

    int const i = int(blockIdx.x) * THREADS + threadIdx.x;
    if (i < size(shape)) {
        gY(i) = diagonal_matmul_value(gA_view(i), gB(i));
    }
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *A = &call->in[0];
    const struct cutegen_tensor *B = &call->in[1];
    const struct cutegen_tensor *y = &call->out[0];
    int64_t n0 = y->shape[1];
    int64_t n1 = y->shape[0];
    int64_t work = cutegen_numel(y);

    CUTEGEN_REQUIRE(call, A->ndim == 1, "A must be 1-dimensional");
    CUTEGEN_REQUIRE(call, B->ndim == 2, "B must be 2-dimensional");
    return CUTEGEN_LAUNCH(call, (diagonal_matmul_kernel<256>),
                          cutegen_dim3(cutegen_ceil_div(work, 256), 1, 1),
                          cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA(float const, A),
                          CUTEGEN_DATA(float const, B), CUTEGEN_DATA(float, y), (int)n0, (int)n1,
                          (int)A->strides[0], (int)B->strides[0], (int)y->strides[0]);
}
#endif
