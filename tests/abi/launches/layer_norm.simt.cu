// layer_norm: native_layer_norm, along rows.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    const struct cutegen_tensor *norm_weight = &call->in[1];
    const struct cutegen_tensor *norm_bias = &call->in[2];
    const struct cutegen_tensor *y = &call->out[0];

    CUTEGEN_REQUIRE(call, x->ndim == 3, "x must be 3-dimensional");
    CUTEGEN_REQUIRE(call, norm_weight->ndim == 1, "norm_weight must be 1-dimensional");
    CUTEGEN_REQUIRE(call, norm_bias->ndim == 1, "norm_bias must be 1-dimensional");
    CUTEGEN_REQUIRE(call, y->ndim == 3, "y must be 3-dimensional");
    int64_t n = x->shape[2];
    int64_t rows = x->shape[0] * x->shape[1];
    CUTEGEN_REQUIRE(call, x->strides[2] == 1, "dimension 2 of x must be contiguous");
    CUTEGEN_REQUIRE(call, norm_weight->strides[0] == 1, "dimension 0 of norm_weight must be contiguous");
    CUTEGEN_REQUIRE(call, norm_bias->strides[0] == 1, "dimension 0 of norm_bias must be contiguous");
    CUTEGEN_REQUIRE(call, y->strides[2] == 1, "dimension 2 of y must be contiguous");
    CUTEGEN_REQUIRE(call, cutegen_aligned(x, 16), "x must start on a multiple of 16 bytes");
    CUTEGEN_REQUIRE(call, cutegen_aligned(norm_weight, 16),
                    "norm_weight must start on a multiple of 16 bytes");
    CUTEGEN_REQUIRE(call, cutegen_aligned(norm_bias, 16), "norm_bias must start on a multiple of 16 bytes");
    CUTEGEN_REQUIRE(call, cutegen_aligned(y, 16), "y must start on a multiple of 16 bytes");
    CUTEGEN_REQUIRE(call, n % 4 == 0, "a row must be a multiple of 4 elements");
    CUTEGEN_REQUIRE(call, n == 32 * 4 * 4, "a row must fill the registers of a warp");
    return CUTEGEN_LAUNCH(call, (layer_norm_kernel<128, 4>), cutegen_dim3(cutegen_ceil_div(rows, 4), 1, 1),
                          cutegen_dim3(128, 1, 1), 0, CUTEGEN_DATA(float const, x),
                          CUTEGEN_DATA(float const, norm_weight), CUTEGEN_DATA(float const, norm_bias),
                          CUTEGEN_DATA(float, y), (int)n, (int)rows, (int64_t)x->strides[1],
                          (int64_t)y->strides[1]);
}
#endif
