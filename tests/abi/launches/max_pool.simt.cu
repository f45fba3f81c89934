// max_pool: max_pool2d_with_indices, a thread per window.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    const struct cutegen_tensor *y = &call->out[0];
    CUTEGEN_REQUIRE(call, x->ndim == 4 && y->ndim == 4, "x must be 4-dimensional");
    CUTEGEN_REQUIRE(call, cutegen_contiguous(x) && cutegen_contiguous(y), "x must be contiguous");
    int64_t depth = 1, height = x->shape[2], width = x->shape[4 - 1];
    int64_t out_depth = 1, out_height = y->shape[2], out_width = y->shape[4 - 1];
    int64_t planes = cutegen_numel(x) / (depth * height * width);
    CUTEGEN_REQUIRE(call, planes * out_depth * out_height * out_width == cutegen_numel(y),
                    "y has another shape");
    int64_t blocks = planes * out_depth * out_height * cutegen_ceil_div(out_width, 128);
    return CUTEGEN_LAUNCH(call, (max_pool_kernel<128>), cutegen_dim3(blocks, 1, 1), cutegen_dim3(128, 1, 1),
                          0, CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, y), planes, (int)depth,
                          (int)height, (int)width, (int)out_depth, (int)out_height, (int)out_width);
}
#endif
