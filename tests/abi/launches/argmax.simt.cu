// argmax: argmax, along columns.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    const struct cutegen_tensor *y = &call->out[0];

    CUTEGEN_REQUIRE(call, x->ndim == 3, "x must be 3-dimensional");
    CUTEGEN_REQUIRE(call, y->ndim == 2, "y must be 2-dimensional");
    int64_t n = x->shape[1];
    int64_t inner = x->shape[2];
    int64_t outer = x->shape[0];
    CUTEGEN_REQUIRE(call, x->strides[2] == 1, "dimension 2 of x must be contiguous");
    CUTEGEN_REQUIRE(call, y->strides[1] == 1, "dimension 1 of y must be contiguous");
    const int64_t X = 32, Y = 8;
    const int64_t VEC = 4;
    CUTEGEN_REQUIRE(call, n % 4 == 0, "the rows must come in fours");
    CUTEGEN_REQUIRE(call, cutegen_aligned(x, 16), "x must start on a multiple of 16 bytes");
    int64_t wide = 4 * inner, tall = n / 4;
    int64_t blocks = cutegen_ceil_div(wide / VEC, X) * outer;
    int64_t slices = cutegen_max(1, cutegen_min(tall / (Y * 8), 8 * call->device.sm_count / blocks));
    float *parts = (float *)cutegen_workspace(call, wide * slices * outer * 8);
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (argmax_kernel<32, 8>), cutegen_dim3(blocks * slices, 1, 1),
                               cutegen_dim3(X, Y, 1), 0, CUTEGEN_DATA(float const, x), (int)tall, (int)wide,
                               (int)outer, (int64_t)x->strides[1] * 4, (int64_t)x->strides[0], (int)slices,
                               parts));
    slices *= 4; // the rows that were read as one
    return CUTEGEN_LAUNCH(call, (argmax_fold<256>), cutegen_dim3(cutegen_ceil_div(inner * outer, 256), 1, 1),
                          cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA(int64_t, y), (int)n, (int)inner,
                          (int)outer, (int64_t)y->strides[0], (int)slices, parts);
}
#endif
