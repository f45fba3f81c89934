// concat: cat, each input copied to its place.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *y = &call->out[0];
    int64_t rows = y->shape[0], whole = cutegen_numel(y) / rows, from = 0;
    CUTEGEN_REQUIRE(call, cutegen_contiguous(y), "the output must be contiguous");

    const struct cutegen_tensor *x0 = &call->in[0];
    int64_t n0 = cutegen_numel(x0) / rows;
    CUTEGEN_REQUIRE(call, cutegen_contiguous(x0), "input 0 must be contiguous");
    CUTEGEN_REQUIRE(call, n0 % 4 == 0 && whole % 4 == 0 && cutegen_aligned(x0, 16) && cutegen_aligned(y, 16),
                    "runs must be whole vectors");
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (concat_kernel<128>),
                               cutegen_dim3(cutegen_ceil_div(n0 * rows / 4, 128), 1, 1),
                               cutegen_dim3(128, 1, 1), 0, CUTEGEN_DATA(float const, x0),
                               CUTEGEN_AT(float, y, from), n0, rows, whole));
    from += n0;

    const struct cutegen_tensor *x1 = &call->in[1];
    int64_t n1 = cutegen_numel(x1) / rows;
    CUTEGEN_REQUIRE(call, cutegen_contiguous(x1), "input 1 must be contiguous");
    CUTEGEN_REQUIRE(call, n1 % 4 == 0 && whole % 4 == 0 && cutegen_aligned(x1, 16) && cutegen_aligned(y, 16),
                    "runs must be whole vectors");
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (concat_kernel<128>),
                               cutegen_dim3(cutegen_ceil_div(n1 * rows / 4, 128), 1, 1),
                               cutegen_dim3(128, 1, 1), 0, CUTEGEN_DATA(float const, x1),
                               CUTEGEN_AT(float, y, from), n1, rows, whole));
    from += n1;
    CUTEGEN_REQUIRE(call, from == whole, "the inputs must fill the output");
    return 0;
}
#endif
