// batch_norm: empty, native_batch_norm, fused into one pass over memory.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    const struct cutegen_tensor *norm_weight = &call->in[1];
    const struct cutegen_tensor *norm_bias = &call->in[2];
    const struct cutegen_tensor *norm_running_mean = &call->in[3];
    const struct cutegen_tensor *norm_running_var = &call->in[4];
    const struct cutegen_tensor *y = &call->out[0];
    int64_t n0 = y->shape[2] * y->shape[3];
    int64_t n1 = y->shape[1];
    int64_t n2 = y->shape[0];
    int64_t work = n0 * n1 * n2 / 4; // vectors

    CUTEGEN_REQUIRE(call, cutegen_aligned(x, 16), "x must start on a multiple of 16 bytes");
    CUTEGEN_REQUIRE(call, cutegen_aligned(y, 16), "y must start on a multiple of 16 bytes");
    CUTEGEN_REQUIRE(call, x->ndim == 4, "x must be 4-dimensional");
    CUTEGEN_REQUIRE(call, norm_weight->ndim == 1, "norm_weight must be 1-dimensional");
    CUTEGEN_REQUIRE(call, norm_bias->ndim == 1, "norm_bias must be 1-dimensional");
    CUTEGEN_REQUIRE(call, norm_running_mean->ndim == 1, "norm_running_mean must be 1-dimensional");
    CUTEGEN_REQUIRE(call, norm_running_var->ndim == 1, "norm_running_var must be 1-dimensional");
    CUTEGEN_REQUIRE(call, n0 % 4 == 0, "the innermost dimension must be a multiple of 4");
    return CUTEGEN_LAUNCH(call, (batch_norm_kernel<128>), cutegen_dim3(cutegen_ceil_div(work, 128), 1, 1),
                          cutegen_dim3(128, 1, 1), 0, CUTEGEN_DATA(float const, x),
                          CUTEGEN_DATA(float const, norm_weight), CUTEGEN_DATA(float const, norm_bias),
                          CUTEGEN_DATA(float const, norm_running_mean),
                          CUTEGEN_DATA(float const, norm_running_var), CUTEGEN_DATA(float, y), (int)n0,
                          (int)n1, (int)n2, (int)x->strides[1], (int)x->strides[0],
                          (int)norm_weight->strides[0], (int)norm_bias->strides[0],
                          (int)norm_running_mean->strides[0], (int)norm_running_var->strides[0],
                          (int)y->strides[1], (int)y->strides[0]);
}
#endif
