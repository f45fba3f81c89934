// cumsum: cumsum, a running value along rows.
#include <cutegen/kernel.h>

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
    CUTEGEN_REQUIRE(call, cutegen_aligned(x, 16), "x must start on a multiple of 16 bytes");
    CUTEGEN_REQUIRE(call, cutegen_aligned(y, 16), "y must start on a multiple of 16 bytes");
    CUTEGEN_REQUIRE(call, n % 4 == 0, "a row must be a multiple of 4 elements");
    CUTEGEN_REQUIRE(call, n == 1024 * 4 * 8, "a row must fill the registers of its block");
    return CUTEGEN_LAUNCH(call, (cumsum_kernel<1024, 8>), cutegen_dim3(rows, 1, 1), cutegen_dim3(1024, 1, 1),
                          0, CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, y), (int)n, (int)rows,
                          (int64_t)x->strides[0], (int64_t)y->strides[0]);
}
#endif
