// cross_entropy: log_softmax, nll_loss_forward, along rows.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *logits = &call->in[0];
    const struct cutegen_tensor *target = &call->in[1];
    const struct cutegen_tensor *y = &call->out[0];

    CUTEGEN_REQUIRE(call, logits->ndim == 2, "logits must be 2-dimensional");
    CUTEGEN_REQUIRE(call, target->ndim == 1, "target must be 1-dimensional");
    CUTEGEN_REQUIRE(call, y->ndim == 0, "y must be 0-dimensional");
    int64_t n = logits->shape[1];
    int64_t rows = logits->shape[0];
    CUTEGEN_REQUIRE(call, logits->strides[1] == 1, "dimension 1 of logits must be contiguous");
    CUTEGEN_REQUIRE(call, cutegen_aligned(logits, 16), "logits must start on a multiple of 16 bytes");
    CUTEGEN_REQUIRE(call, n % 4 == 0, "a row must be a multiple of 4 elements");
    float *rows_0 = (float *)cutegen_workspace(call, (rows) * 4);
    float *rows_1 = (float *)cutegen_workspace(call, (rows) * 4);
    CUTEGEN_REQUIRE(call, n == 256 * 4 * 4, "a row must fill the registers of its block");
    CUTEGEN_TRY( CUTEGEN_LAUNCH(call, (cross_entropy_kernel<256, 4>), cutegen_dim3(rows, 1, 1),
                                cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA(float const, logits),
                                CUTEGEN_DATA(int64_t const, target), (int)n, (int)rows,
                                (int64_t)logits->strides[0], (int64_t)target->strides[0], rows_0, rows_1));
    return CUTEGEN_LAUNCH(call, (cross_entropy_total<1024>), cutegen_dim3(1, 1, 1), cutegen_dim3(1024, 1, 1),
                          0, rows_0, rows_1, CUTEGEN_DATA(float, y), (int)(rows));
}
#endif
