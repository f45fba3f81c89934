// rope: split, mul, sub, add, cat, fused into one pass over memory.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    const struct cutegen_tensor *cos = &call->in[1];
    const struct cutegen_tensor *sin = &call->in[2];
    const struct cutegen_tensor *y = &call->out[0];
    int64_t n0 = 16;
    int64_t n1 = y->shape[2];
    int64_t n2 = y->shape[0] * y->shape[1];
    int64_t work = n0 * n1 * n2 / 4; // vectors

    CUTEGEN_REQUIRE(call, cutegen_aligned(x, 16), "x must start on a multiple of 16 bytes");
    CUTEGEN_REQUIRE(call, cutegen_aligned(cos, 16), "cos must start on a multiple of 16 bytes");
    CUTEGEN_REQUIRE(call, cutegen_aligned(sin, 16), "sin must start on a multiple of 16 bytes");
    CUTEGEN_REQUIRE(call, cutegen_aligned(y, 16), "y must start on a multiple of 16 bytes");
    CUTEGEN_REQUIRE(call, x->ndim == 4, "x must be 4-dimensional");
    CUTEGEN_REQUIRE(call, cos->ndim == 2, "cos must be 2-dimensional");
    CUTEGEN_REQUIRE(call, sin->ndim == 2, "sin must be 2-dimensional");
    CUTEGEN_REQUIRE(call, n0 % 4 == 0, "the innermost dimension must be a multiple of 4");
    CUTEGEN_REQUIRE(call, x->shape[0] == 2 && x->shape[1] == 2 && x->shape[2] == 64 && x->shape[3] == 32,
                    "the shape of x is written into the kernel");
    CUTEGEN_REQUIRE(call, y->shape[0] == 2 && y->shape[1] == 2 && y->shape[2] == 64 && y->shape[3] == 32,
                    "the shape of y is written into the kernel");
    return CUTEGEN_LAUNCH(call, (rope_kernel<128>), cutegen_dim3(cutegen_ceil_div(work, 128), 1, 1),
                          cutegen_dim3(128, 1, 1), 0, CUTEGEN_DATA(float const, x),
                          CUTEGEN_AT(float const, x, x->strides[3] * 16), CUTEGEN_DATA(float const, cos),
                          CUTEGEN_DATA(float const, sin), CUTEGEN_DATA(float, y),
                          CUTEGEN_AT(float, y, y->strides[3] * 16), (int)n0, (int)n1, (int)n2,
                          (int)x->strides[2], (int)x->strides[1], (int)x->strides[2], (int)x->strides[1],
                          (int)cos->strides[0], (int)sin->strides[0], (int)y->strides[2], (int)y->strides[1],
                          (int)y->strides[2], (int)y->strides[1]);
}
#endif
