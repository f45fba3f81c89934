// recipes/convolution.cu - convolutions of one to three dimensions, strided, dilated, grouped or transposed.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
//
// The plain form computes each result by itself. The fast forms are a matrix product without the matrix
// ("implicit"): Y(k,pixel) = sum over taps and channels of W(k,tap,c) * X(pixel + tap,c). A pass brings x into planes:
// channels last, borders of zeros, fp32 scaled by a power of two and split into two fp16 parts, x = hi + lo. In
// planes a tap is the same run of pixels, a fixed number of rows further on: pixels are counted with the borders, and a
// row's right border is the next one's left border. What a stride skips lies in planes of its own (PARTS), so that
// a strided convolution is a dense one too; the results of a strided transposed convolution are PHASES, each a
// convolution with some of the taps.
//
//! recipe convolution: sums over taps and channels; sizes are constants, the batch comes from the call
//! fact epilogue: pointwise operators follow, or a bias
//! fact early: some of it needs the sum and values of its output channel alone, or a bias
//! fact late: some of it needs more
//! fact beside: what follows reads another tensor of the result's size
//! fact fast: some operator has a fast form
//! fact narrow: fp16 or bf16, which tensor cores take as they are
//! fact tf32: the reference may round factors to 11 bits
//! fact hopper: the device is sm_90
//! fact transposed: a transposed convolution
//! fact products: there is enough to do for tensor cores
//! fact depthwise: each result needs one channel, rows are whole vectors, no stride, no dilation
//! fact expand: so few channels that the taps of a filter row become channels
//! fact interleaved: transposed with a stride along the width, whose phases are rows of one product
//! fact grouped: a tile's output channels are of one group
//! fact few_rows: at most 64 output channels
//! fact shared_taps: the taps of a filter row are neighbours, and a tile with a border of 32 pixels holds all
//! fact one_tap: a filter of one tap on whole vectors of pixels, so few channels that all weights of a tile stay in memory
//! fact runs: results lie in runs of whole vectors, and what follows needs no position among them
//! fact wide_rows: results do not lie on whole vectors, but in rows that are longer than a tile
//! fact small_tiles: tiles of half the pixels occupy the processors better
//! fact few_tiles: tiles are few and sums are long, so that most processors would have nothing to do
//! fact sparse: few of the terms of a step belong to a result's group, so that there are many additions of few terms
//! fact last: x and y have 16 bits and lie channels last, in whole vectors
//! fact w_last: weights lie channels last
//! fact y_last: so does the result
//! fact w_there: weights lie as the product reads them
//! fact joined: one launch before the first prepares the weights of several convolutions (compose/joined_weights.h)
//! fact noted: a convolution behind it wants the largest magnitude of the result
//! fact sampled: x is so large that its largest magnitude is taken from a sample
//!
//! step columns: compute four results of eight rows per thread
//!   why: Each row of the input is loaded once, as whole vectors, for all results that need it.
//!   when: depthwise
//! step tensor: multiply on the tensor cores (mma.sync): channels last, fp32 split into two fp16 parts
//!   why: Three fp16 products at sixteen times the rate of fp32 arithmetic give all bits that matter.
//!   when: products
//! step single: multiply the high parts alone
//!   why: fp16 has TF32's 11 bits, and the scale stands for its exponent: one product is as accurate as the reference.
//!   when: tf32 and not narrow
//!   needs: tensor
//! step fast_math: use the hardware's exponential and division behind it
//!   why: With sums of factors of 11 bits, 15 bits of an exponential are enough, and erff alone takes 35 instructions.
//!   when: epilogue and fast and tf32 and not narrow
//!   needs: single
//! step wgmma: multiply by wgmma, fetched by TMA through rings of slots by a thread of its own
//!   why: Tiles of 128x256 need a third of the traffic, and the computing warps never wait for addresses.
//!   when: hopper
//!   needs: tensor
//! step direct: split x inside the product, without planes
//!   why: Each element of x is needed by one pixel alone, and planes would be written and read for nothing.
//!   when: one_tap
//!   needs: wgmma
//! step share: fetch a run of pixels once for all taps of a filter row
//!   why: The taps of a row read the same pixels, one further each; the tensor core can start at any row of a tile.
//!   when: shared_taps
//!   needs: wgmma
//! step boxes: fetch boxes of x from where it lies, store boxes of y by TMA
//!   why: Channels last is what planes would be; TMA fills borders with zeros and skips what a stride skips.
//!   when: last
//!   needs: wgmma
//! step bulk: store results by TMA
//!   why: A thread starts the store of 16 channels of 32 pixels, and the warps go on to the next products meanwhile.
//!   when: runs and not one_tap and not few_tiles
//!   needs: wgmma
//! step aligned: store whole lines of 128 bytes
//!   why: Rows of results begin anywhere; a store that covers parts of sectors takes about twice the time.
//!   when: wide_rows and not one_tap and not few_tiles
//!   needs: wgmma
//! step turns: let the two warpgroups take turns, one multiplying while the other adds
//!   why: The accumulator is emptied into registers after every 32 terms; the tensor cores then have the other's work.
//!   when: not narrow and not one_tap
//!   needs: wgmma
//! step split_sums: divide the terms of a result among several blocks
//!   why: Small images have fewer tiles than the GPU has processors; a kernel behind adds the parts, in a fixed order.
//!   when: few_tiles
//!   needs: wgmma
//! step overlap: launch each kernel while the one before ends
//!   why: Programmatic dependent launch hides launch latency and barrier set-up.
//!   when: not one_tap
//!   needs: wgmma
//! text
// $kernel: $ops.
#include <cutegen/kernel.h>

constexpr int C_IN = $c_in, C_OUT = $c_out, GROUPS = $groups, C_EACH = C_IN / GROUPS; // channels; of a group
constexpr int IN_D = $in_d, IN_H = $in_h, IN_W = $in_w;
constexpr int OUT_D = $out_d, OUT_H = $out_h, OUT_W = $out_w, PIXELS = OUT_D * OUT_H * OUT_W;
constexpr int TAPS_D = $taps_d, TAPS_H = $taps_h, TAPS_W = $taps_w; // the filter
constexpr int STRIDE_D = $stride_d, STRIDE_H = $stride_h, STRIDE_W = $stride_w;
constexpr int PAD_D = $pad_d, PAD_H = $pad_h, PAD_W = $pad_w;
constexpr int STEP_D = $step_d, STEP_H = $step_h, STEP_W = $step_w; // dilation
//! if direct

//! include conv_direct
//! elif tensor

// The planes: (PARTS,N,WALK_D,WALK_H,WALK_W) pixels of CHUNKS_X rows of ROW elements.
constexpr int WALK_D = $walk_d, WALK_H = $walk_h, WALK_W = $walk_w; // with borders
constexpr int WALK = WALK_D * WALK_H * WALK_W;
constexpr int LEAD_D = $lead_d, LEAD_H = $lead_h, LEAD_W = $lead_w; // borders before
constexpr int RUN_P = $run_p; // results that lie next to each other wherever they do in the walk
constexpr unsigned USED_D = $used_d, USED_H = $used_h, USED_W = $used_w; // positions modulo the stride, as bits
constexpr int PARTS_D = $parts_d, PARTS_H = $parts_h, PARTS_W = $parts_w, PARTS = PARTS_D * PARTS_H * PARTS_W;
//! if narrow
constexpr int PRODUCTS = 1; // elements as they are
constexpr int ROW = $row_single;     // elements of a row
//! elif single
constexpr int PRODUCTS = 1; // high parts alone
constexpr int ROW = $row_single;     // elements of a row
//! else
constexpr int PRODUCTS = 3; // hi lo, lo hi, hi hi
constexpr int ROW = $row_split;     // elements of a row: high parts, then low parts
//! end
constexpr int CHANNELS = PRODUCTS == 3 ? ROW / 2 : ROW; // of a row
//! if expand
constexpr int TERMS = C_IN * TAPS_W, WALK_TAPS_W = 1; // the taps of a filter row are channels
//! elif interleaved
constexpr int TERMS = C_IN, WALK_TAPS_W = $shifts_w, LOW_W = $low_w; // pixels that some phase along the width reads; the first
//! else
constexpr int TERMS = C_IN, WALK_TAPS_W = TAPS_W;
//! end
constexpr int EACH_K = $rows_each; // rows of the product for an output channel: phases along the width
constexpr int ROWS = C_OUT * EACH_K;
constexpr int CHUNKS_X = (TERMS + CHANNELS - 1) / CHANNELS;
//! if grouped
constexpr int CHUNKS = C_EACH / CHANNELS; // that a result needs: those of its group
//! else
constexpr int CHUNKS = CHUNKS_X; // that a result needs
//! end
constexpr int STEPS = TAPS_D * TAPS_H * WALK_TAPS_W * CHUNKS; // rows of an output channel's weights
//! if joined
constexpr int64_t WEIGHTS_BYTES = (int64_t(ROWS) * (STEPS * ROW * 2 + 8) + 255) / 256 * 256; // planes, two numbers for each line
//! end
//! if sampled
constexpr int EVERY = 16, TOP = 10; // of 16 blocks one is searched for the largest magnitude, which becomes 2^TOP
//! else
constexpr int EVERY = 1, TOP = 14;  // the largest magnitude becomes 2^TOP
//! end
//! if boxes
//! include conv_last
//! elif wgmma
//! include conv_tiles
//! else
constexpr int TILE_K = 64;  // output channels
constexpr int TILE_P = 128; // pixels
//! end
//! end

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
//! if wgmma
#include <cutlass/arch/reg_reconfig.h>
//! end
//! if boxes
#include <cutlass/numeric_conversion.h>
//! end

using namespace cute;

//! include conv_finish
//! if columns
//! include conv_depthwise
//! else
// Where output o meets the input through tap r; -1: nowhere.
__device__ inline int meets(int o, int r, int stride, int pad, int step, int size)
{
//! if transposed
    int const at = o + pad - r * step;
    return at >= 0 && at % stride == 0 && at / stride < size ? at / stride : -1;
//! else
    int const at = o * stride - pad + r * step;
    return at < size ? at : -1;
//! end
}

// One result: the sums of each channel's taps, added up.
__device__ inline float convolve($x_type const *x, $w_type const *w, int n, int k, int p, int64_t x_n, int64_t x_c, int64_t x_d, int64_t x_h, int64_t x_w)
{
    int const d = p / (OUT_H * OUT_W), h = p / OUT_W % OUT_H, v = p % OUT_W, group = k / (C_OUT / GROUPS);
    Tensor mX = make_tensor(make_gmem_ptr(x + n * x_n + group * C_EACH * x_c), make_shape(Int<IN_W>{}, Int<IN_H>{}, Int<IN_D>{}, Int<C_EACH>{}), make_stride(x_w, x_h, x_d, x_c)); // (IN_W,IN_H,IN_D,C_EACH)
//! if transposed and w_last
    Tensor mW = make_tensor(make_gmem_ptr(w), make_shape(Int<TAPS_W>{}, Int<TAPS_H>{}, Int<TAPS_D>{}, Int<C_OUT / GROUPS>{}, Int<C_IN>{}), make_stride(Int<C_OUT / GROUPS>{}, Int<C_OUT / GROUPS * TAPS_W>{}, Int<C_OUT / GROUPS * TAPS_W * TAPS_H>{}, _1{}, Int<C_OUT / GROUPS * TAPS_W * TAPS_H * TAPS_D>{})); // (TAPS_W,TAPS_H,TAPS_D,C_OUT/GROUPS,C_IN)
//! elif w_last
    Tensor mW = make_tensor(make_gmem_ptr(w), make_shape(Int<TAPS_W>{}, Int<TAPS_H>{}, Int<TAPS_D>{}, Int<C_EACH>{}, Int<C_OUT>{}), make_stride(Int<C_EACH>{}, Int<C_EACH * TAPS_W>{}, Int<C_EACH * TAPS_W * TAPS_H>{}, _1{}, Int<C_EACH * TAPS_W * TAPS_H * TAPS_D>{})); // (TAPS_W,TAPS_H,TAPS_D,C_EACH,C_OUT)
//! elif transposed
    Tensor mW = make_tensor(make_gmem_ptr(w), make_shape(Int<TAPS_W>{}, Int<TAPS_H>{}, Int<TAPS_D>{}, Int<C_OUT / GROUPS>{}, Int<C_IN>{})); // (TAPS_W,TAPS_H,TAPS_D,C_OUT/GROUPS,C_IN)
//! else
    Tensor mW = make_tensor(make_gmem_ptr(w), make_shape(Int<TAPS_W>{}, Int<TAPS_H>{}, Int<TAPS_D>{}, Int<C_EACH>{}, Int<C_OUT>{})); // (TAPS_W,TAPS_H,TAPS_D,C_EACH,C_OUT)
//! end
    float total = 0.0f;
    constexpr bool FEW = C_EACH * TAPS_D * TAPS_H * TAPS_W <= 32; // all loads at once
    constexpr int EACH_R = FEW ? TAPS_H : 1, EACH_S = FEW ? TAPS_W : 1;
    for (int c = 0; c < C_EACH; ++c) {
        float sum = 0.0f;
        for (int t = 0; t < TAPS_D; ++t) {
            int const at_d = meets(d, t, STRIDE_D, PAD_D, STEP_D, IN_D);
#pragma unroll EACH_R
            for (int r = 0; r < TAPS_H; ++r) {
                int const at_h = meets(h, r, STRIDE_H, PAD_H, STEP_H, IN_H);
#pragma unroll EACH_S
                for (int s = 0; s < TAPS_W; ++s) {
                    int const at_w = meets(v, s, STRIDE_W, PAD_W, STEP_W, IN_W);
                    if (at_d >= 0 && at_h >= 0 && at_w >= 0)
//! if transposed
                        sum = fmaf(float(mX(at_w, at_h, at_d, c)), float(mW(s, r, t, k % (C_OUT / GROUPS), group * C_EACH + c)), sum);
//! else
                        sum = fmaf(float(mX(at_w, at_h, at_d, c)), float(mW(s, r, t, c, k)), sum);
//! end
                }
            }
        }
        total += sum;
    }
    return total;
}

//! if not tensor
//! include conv_plain
//! elif not narrow and not direct
//! include conv_plain
//! end
//! end
//! if direct
//! include conv_direct_sm90
//! elif tensor
// ---- planes --------------------------------------------------------------------------------
//! include conv_planes

// ---- the product ---------------------------------------------------------------------------
//! if boxes
//! include conv_last_sm90
//! else
//! include conv_walk
//! if wgmma
//! include conv_sm90
//! if split_sums
//! include conv_parts
//! end
//! else
//! include conv_sm80
//! end
//! end
//! end
#endif

#ifdef CUTEGEN_HOST
//! include conv_plan
#endif
