// recipes/pooling.cu - the maximum or the mean over windows of the innermost dimensions: a thread per window.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
//
//! recipe pooling: a thread per window; sizes of the window are constants
//! fact largest: the maximum; else the mean
//! fact padded: windows may reach over the edge
//! fact whole_windows: the mean counts what lies over the edge
//!
//! step launch_shape: launch blocks of 128 threads
//!   why: Small blocks end and start more evenly, so the memory system never runs dry between waves.
//! step columns: let a block take a strip of one plane
//!   why: Where a window lies follows from the block, so that the divisions are done once per block and not per window.
//! text
// $kernel: $ops, a thread per window.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

using namespace cute;

template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    ${kernel}_kernel($type const *x, $type *y, int64_t planes, int depth, int height, int width, int out_depth,
                     int out_height, int out_width)
{
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(width, height, depth, planes), make_stride(_1{}, int64_t(width), int64_t(width) * height, int64_t(width) * height * depth)); // (width,height,depth,planes)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(out_width, out_height, out_depth, planes), make_stride(_1{}, int64_t(out_width), int64_t(out_width) * out_height, int64_t(out_width) * out_height * out_depth)); // (out_width,out_height,out_depth,planes)
//! if columns
    int const strips = ceil_div(out_width, THREADS);
    int const w = blockIdx.x % strips * THREADS + threadIdx.x;
    int64_t const line = blockIdx.x / strips;
    int const h = int(line % out_height), d = int(line / out_height % out_depth);
    int64_t const plane = line / out_height / out_depth;
    if (w >= out_width)
        return;
//! else
    int64_t const i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= size(gY))
        return;
    int const w = int(i % out_width), h = int(i / out_width % out_height);
    int const d = int(i / out_width / out_height % out_depth);
    int64_t const plane = i / out_width / out_height / out_depth;
//! end
//! if largest
    float value = __int_as_float(0xff800000); // NaN wins
//! else
    float value = 0.0f;
//! end
    CUTE_UNROLL
    for (int c = 0; c < $kernel_depth; ++c) {
        int const at_d = d * $stride_depth - $pad_depth + c * $dilation_depth;
        CUTE_UNROLL
        for (int b = 0; b < $kernel_height; ++b) {
            int const at_h = h * $stride_height - $pad_height + b * $dilation_height;
            CUTE_UNROLL
            for (int a = 0; a < $kernel_width; ++a) {
                int const at_w = w * $stride_width - $pad_width + a * $dilation_width;
//! if padded
                if (at_d < 0 || at_d >= depth || at_h < 0 || at_h >= height || at_w < 0 || at_w >= width)
                    continue;
//! end
                float const element = float(gX(at_w, at_h, at_d, plane));
//! if largest
                value = element > value || element != element ? element : value;
//! else
                value += element;
//! end
            }
        }
    }
//! if largest
    gY(w, h, d, plane) = $type(value);
//! elif padded and not whole_windows
    int const across = min(w * $stride_width - $pad_width + $kernel_width, width) - max(w * $stride_width - $pad_width, 0);
    int const down = min(h * $stride_height - $pad_height + $kernel_height, height) - max(h * $stride_height - $pad_height, 0);
    int const deep = min(d * $stride_depth - $pad_depth + $kernel_depth, depth) - max(d * $stride_depth - $pad_depth, 0);
    gY(w, h, d, plane) = $type(value / float(across * down * deep));
//! else
    gY(w, h, d, plane) = $type(value / float($kernel_width * $kernel_height * $kernel_depth));
//! end
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    const struct cutegen_tensor *y = &call->out[0];
    CUTEGEN_REQUIRE(call, x->ndim == $ndim && y->ndim == $ndim, "x must be $ndim-dimensional");
    CUTEGEN_REQUIRE(call, cutegen_contiguous(x) && cutegen_contiguous(y), "x must be contiguous");
    int64_t depth = $depth, height = $height, width = x->shape[$ndim - 1];
    int64_t out_depth = $out_depth, out_height = $out_height, out_width = y->shape[$ndim - 1];
    int64_t planes = cutegen_numel(x) / (depth * height * width);
    CUTEGEN_REQUIRE(call, planes * out_depth * out_height * out_width == cutegen_numel(y), "y has another shape");
//! if columns
//! if launch_shape
    int64_t blocks = planes * out_depth * out_height * cutegen_ceil_div(out_width, 128);
//! else
    int64_t blocks = planes * out_depth * out_height * cutegen_ceil_div(out_width, 256);
//! end
//! elif launch_shape
    int64_t blocks = cutegen_ceil_div(cutegen_numel(y), 128);
//! else
    int64_t blocks = cutegen_ceil_div(cutegen_numel(y), 256);
//! end
//! if launch_shape
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<128>), cutegen_dim3(blocks, 1, 1), cutegen_dim3(128, 1, 1), 0, CUTEGEN_DATA($type const, x), CUTEGEN_DATA($type, y), planes, (int)depth, (int)height, (int)width, (int)out_depth, (int)out_height, (int)out_width);
//! else
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<256>), cutegen_dim3(blocks, 1, 1), cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA($type const, x), CUTEGEN_DATA($type, y), planes, (int)depth, (int)height, (int)width, (int)out_depth, (int)out_height, (int)out_width);
//! end
}
#endif
