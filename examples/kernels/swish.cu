// swish: y = x * sigmoid(x), 16 bytes per thread and access; judge it with: cutegen eval examples/swish.py examples/kernels/swish.cu
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

template <int THREADS>
__global__ void swish(float const *x, float *y, int64_t n)
{
    using namespace cute;
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(n), make_stride(Int<1>{})); // (n)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(n), make_stride(Int<1>{})); // (n)

    Tensor vX = make_tensor(make_gmem_ptr(x), make_shape(Int<4>{}, n / 4)); // (4,n/4)
    Tensor vY = make_tensor(make_gmem_ptr(y), make_shape(Int<4>{}, n / 4)); // (4,n/4)

    int64_t const i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i < n / 4) {
        Tensor r = make_tensor<float>(Int<4>{}); // (4)
        copy(AutoVectorizingCopyWithAssumedAlignment<128>{}, vX(_, i), r);
        CUTE_UNROLL
        for (int k = 0; k < 4; ++k)
            r(k) = r(k) / (1.0f + __expf(-r(k)));
        copy(AutoVectorizingCopyWithAssumedAlignment<128>{}, r, vY(_, i));
    } else if (i - n / 4 < n % 4) {
        int64_t const j = n / 4 * 4 + (i - n / 4);
        gY(j) = gX(j) / (1.0f + __expf(-gX(j)));
    }
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    const struct cutegen_tensor *y = &call->out[0];
    int64_t n = cutegen_numel(x);

    CUTEGEN_REQUIRE(call, cutegen_dtype(x) == CUTEGEN_F32, "x must be f32");
    CUTEGEN_REQUIRE(call, cutegen_contiguous(x), "x must be contiguous");
    CUTEGEN_REQUIRE(call, cutegen_aligned(x, 16) && cutegen_aligned(y, 16), "x and y must be 16-byte aligned");
    return CUTEGEN_LAUNCH(call, (swish<256>), cutegen_dim3(cutegen_ceil_div(n / 4 + n % 4, 256), 1, 1),
                          cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA(float const, x),
                          CUTEGEN_DATA(float, y), n);
}
#endif
