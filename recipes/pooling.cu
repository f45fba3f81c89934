// recipes/pooling.cu - the maximum or the mean over windows of the innermost dimensions.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
//
//! recipe pooling: a thread per window; sizes of the window are constants
//! fact largest: the maximum; else the mean
//! fact padded: windows may reach over the edge
//! fact whole_windows: the mean counts what lies over the edge
//! fact vectors: rows of the input are whole 16-byte vectors, and the vectors under a few windows fit into registers
//! fact whole_rows: rows of the output are whole 16-byte vectors
//! fact few: windows can be counted in 32 bits
//! fact short: a thread reads so little that code of its own for windows away from the edges fits the instruction cache
//! fact overlap: windows of neighbouring rows or planes share elements
//! fact much: half of them or more
//! fact largest_of_pairs: a maximum of 16-bit elements, windows side by side
//! fact words: elements have 16 bits
//! fact half: they are fp16
//! fact along_rows: windows share elements of their row alone, and many of them
//! fact apart: windows of neighbouring rows share nothing, and are so wide that those of a thread are far from its neighbour's
//! fact walks: windows of neighbouring rows share elements, those of planes do not, and there are rows enough to walk down
//!
//! step launch_shape: launch blocks of 128 threads
//!   why: Small blocks end and start more evenly, so the memory system never runs dry between waves.
//! step columns: let a block take a strip of one plane
//!   why: Where a window lies follows from the block, so that the divisions are done once per block and not per window.
//! step vectorise: read 16 bytes per load, for as many windows side by side per thread
//!   why: Windows side by side share most of their elements; a vector is loaded once for all of them.
//!   when: vectors
//!   excludes: columns
//! step bands: compute several rows of windows per thread
//!   why: Each row of the input is loaded and reduced once, for all windows of the thread that contain it.
//!   when: overlap
//!   likely: much or not vectors
//!   excludes: columns
//! step tile: bring what a block's windows need of their row into shared memory
//!   why: An element is under many windows; shared memory is read twice as fast as the L1 cache.
//!   when: along_rows and vectors
//!   needs: vectorise
//! step walk: walk down the rows of windows, keeping what the next ones share
//!   why: Each row of the input is loaded and reduced once per thread, and few rows are read by two of them.
//!   when: walks and vectors
//!   needs: vectorise
//!   excludes: bands
//! step pairs: take the largest of two 16-bit elements at a time
//!   why: Elements need no conversion, and half as many instructions compare them.
//!   when: largest_of_pairs
//!   needs: walk
//! step sums: add up the rows of a block's windows as they lie in memory, and then across in shared memory
//!   why: Threads read side by side, so that a load fetches whole lines, whatever the width of a window.
//!   when: apart
//!   excludes: columns vectorise bands tile walk pairs
//! text
// $kernel: $ops, a thread per window.
#include <cutegen/kernel.h>

//! if walk
CUTEGEN_TUNE(ROWS, $walk_values); // of windows per thread
//! end
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

using namespace cute;

//! if sums
constexpr int VEC = $vec;                                    // elements of 16 bytes
constexpr int ALONG = $apart_along, DOWN = $apart_down;      // windows of a block
constexpr int BEFORE = ($pad_width + VEC - 1) / VEC;         // vectors that a window may begin before its row
constexpr int COLUMNS = (ALONG - 1) * $stride_width + ($kernel_width - 1) * $dilation_width + 1;
constexpr int HELD = (COLUMNS + 2 * (VEC - 1)) / VEC;        // vectors over them, wherever they begin

//! end
//! if vectorise or bands
//! if vectorise
constexpr int VEC = $vec;                 // windows side by side per thread: as many as 16 bytes have elements
//! else
constexpr int VEC = 1;                    // windows side by side per thread
//! end
//! if bands
constexpr int ROWS = $band_rows, PLANES = $band_planes; // of windows per thread
//! elif walk
constexpr int GROUP = 4;                  // of the rows of windows, at a time
constexpr int KEEP = ($kernel_height - 1) * $dilation_height + 1 - $stride_height; // rows that the next windows share
constexpr int NEW = GROUP * $stride_height;                                         // rows of the input that a group adds
//! else
constexpr int ROWS = 1, PLANES = 1;       // of windows per thread
//! end
//! if walk and not whole_rows and not words
constexpr int LANES = $lanes;               // threads beside each other along a row of windows
constexpr int LINE = 128 / int(sizeof($type)); // elements of a line of memory
//! end
constexpr int FIRST = -(($pad_width + VEC - 1) / VEC);            // the first vector under a thread's windows, from theirs
constexpr int SHIFT = -$pad_width - FIRST * VEC;                  // where in it the first window begins
constexpr int SPAN = SHIFT + (VEC - 1) * $stride_width + ($kernel_width - 1) * $dilation_width + 1;
//! if not walk
constexpr int ROWS_IN = (ROWS - 1) * $stride_height + ($kernel_height - 1) * $dilation_height + 1;
constexpr int PLANES_IN = (PLANES - 1) * $stride_depth + ($kernel_depth - 1) * $dilation_depth + 1;
//! end
//! if not walk

// Does element `at`, counted from the beginning of a window, belong to it?
CUTE_HOST_DEVICE constexpr bool in_window(int at, int size, int dilation)
{
    return at >= 0 && at % dilation == 0 && at / dilation < size;
}
//! end

//! end
//! if largest
// NaN wins.
__device__ inline float larger(float a, float b)
{
    float c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
}

//! end
//! if pairs
__device__ inline uint32_t larger(uint32_t a, uint32_t b)
{
    uint32_t c;
//! if half
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
//! else
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
//! end
    return c;
}

//! end
//! if walk
// Reduces the row of the input at h across, for each of a thread's windows side by side; `there`: its vectors exist.
template <class Input, class There, class Value>
__device__ void reduce_across(Input const &gX, There const &there, Value &&across, int h, int v0)
{
    using Vector = AutoVectorizingCopyWithAssumedAlignment<int(sizeof($type)) * VEC * 8>;
//! if largest
    float const NONE = __int_as_float(0xff800000);
//! else
    constexpr float NONE = 0.0f;
//! end
    bool const inside = h >= 0 && h < size<2>(gX);
//! if pairs
    Tensor row = make_tensor<$type>(make_shape(Int<VEC>{}, size(there))); // (VEC,span)
    fill(row, $type(NONE));
    CUTE_UNROLL
    for (int u = 0; u < size(there); ++u)
        if (inside && there(u))
            copy(Vector{}, gX(_, v0 + u, h), row(_, u));
    Tensor words = recast<uint32_t>(row); // (VEC/2,span)
    auto const pair = [&](int i) { return i % 2 ? __byte_perm(words(i / 2), words(i / 2 + 1), 0x5432) : words(i / 2); };
    CUTE_UNROLL
    for (int w = 0; w < VEC / 2; ++w) {
        across(w) = pair(SHIFT + 2 * w);
        CUTE_UNROLL
        for (int a = 1; a < $kernel_width; ++a)
            across(w) = larger(across(w), pair(SHIFT + 2 * w + a * $dilation_width));
    }
//! else
    Tensor row = make_tensor<float>(make_shape(Int<VEC>{}, size(there))); // (VEC,span)
    CUTE_UNROLL
    for (int u = 0; u < size(there); ++u) {
        Tensor loaded = make_tensor<$type>(Int<VEC>{}); // (VEC)
        fill(loaded, $type(NONE));
        if (inside && there(u))
            copy(Vector{}, gX(_, v0 + u, h), loaded);
        CUTE_UNROLL
        for (int e = 0; e < VEC; ++e)
            row(e, u) = float(loaded(e));
    }
    CUTE_UNROLL
    for (int w = 0; w < VEC; ++w) {
        across(w) = row(SHIFT + w * $stride_width);
        CUTE_UNROLL
        for (int a = 1; a < $kernel_width; ++a)
//! if largest
            across(w) = larger(across(w), row(SHIFT + w * $stride_width + a * $dilation_width));
//! else
            across(w) += row(SHIFT + w * $stride_width + a * $dilation_width);
//! end
    }
//! end
}

//! elif vectorise or bands
// Reduces the windows of a thread, which begin at plane d0, row h0 and vector v0 of the input. EDGES: they may reach over
// the edges.
template <bool EDGES, class Input, class Value>
__device__ void reduce_windows(Input const &gX, Value &value, int d0, int h0, int v0)
{
    using Vector = AutoVectorizingCopyWithAssumedAlignment<int(sizeof($type)) * VEC * 8>;
//! if largest
    float const NONE = __int_as_float(0xff800000);
//! else
    constexpr float NONE = 0.0f;
//! end
    fill(value, NONE);
    CUTE_UNROLL
    for (int c = 0; c < PLANES_IN; ++c) {
        int const at_d = d0 + c;
        CUTE_UNROLL
        for (int b = 0; b < ROWS_IN; ++b) {
            int const at_h = h0 + b;
            Tensor row = make_tensor<float>(make_shape(Int<VEC>{}, Int<ceil_div(SPAN, VEC)>{})); // (VEC,span)
            CUTE_UNROLL
            for (int u = 0; u < size<1>(row); ++u) {
                int const at_v = v0 + u;
                Tensor loaded = make_tensor<$type>(Int<VEC>{}); // (VEC)
                bool const there = !EDGES || (at_d >= 0 && at_d < size<3>(gX) && at_h >= 0 && at_h < size<2>(gX) && at_v >= 0 && at_v < size<1>(gX));
                if (there)
                    copy(Vector{}, gX(_, at_v, at_h, at_d), loaded);
                CUTE_UNROLL
                for (int e = 0; e < VEC; ++e)
                    row(e, u) = there ? float(loaded(e)) : NONE;
            }
            Tensor across = make_tensor<float>(Int<VEC>{}); // (VEC)
            CUTE_UNROLL
            for (int w = 0; w < VEC; ++w) {
                across(w) = row(SHIFT + w * $stride_width);
                CUTE_UNROLL
                for (int a = 1; a < $kernel_width; ++a)
//! if largest
                    across(w) = larger(across(w), row(SHIFT + w * $stride_width + a * $dilation_width));
//! else
                    across(w) += row(SHIFT + w * $stride_width + a * $dilation_width);
//! end
            }
            CUTE_UNROLL
            for (int k = 0; k < PLANES * ROWS; ++k) {
                int const p = k / ROWS, r = k % ROWS;
                if (!in_window(c - p * $stride_depth, $kernel_depth, $dilation_depth) || !in_window(b - r * $stride_height, $kernel_height, $dilation_height))
                    continue;
                CUTE_UNROLL
                for (int w = 0; w < VEC; ++w)
//! if largest
                    value(w, r, p) = larger(value(w, r, p), across(w));
//! else
                    value(w, r, p) += across(w);
//! end
            }
        }
    }
}

//! end
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    ${kernel}_kernel($type const *x, $type *y, int64_t planes, int depth, int height, int width, int out_depth,
                     int out_height, int out_width)
{
//! if vectorise or bands
    using Vector = AutoVectorizingCopyWithAssumedAlignment<int(sizeof($type)) * VEC * 8>;
    int const vectors = width / VEC, out_vectors = (out_width + VEC - 1) / VEC;
//! if walk
    int const bands = (out_height + ROWS - 1) / ROWS;
//! else
    int const bands = (out_height + ROWS - 1) / ROWS, slabs = (out_depth + PLANES - 1) / PLANES;
//! end
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(Int<VEC>{}, vectors, height, depth, planes), make_stride(_1{}, Int<VEC>{}, int64_t(width), int64_t(width) * height, int64_t(width) * height * depth)); // (VEC,vectors,height,depth,planes)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(out_width, out_height, out_depth, planes), make_stride(_1{}, int64_t(out_width), int64_t(out_width) * out_height, int64_t(out_width) * out_height * out_depth)); // (out_width,out_height,out_depth,planes)
//! if walk and not whole_rows and not words
    constexpr int BANDS = THREADS / LANES; // of a block
    int const strips = (out_vectors + LANES - 1) / LANES, high = (bands + BANDS - 1) / BANDS;
    unsigned const line = blockIdx.x / strips;
    int const v0 = int(blockIdx.x % strips) * LANES, v = v0 + threadIdx.x % LANES;
    int const own = threadIdx.x / LANES, band0 = int(line % high) * BANDS, h0 = (band0 + own) * ROWS;
    bool const inside = v < out_vectors && band0 + own < bands, whole = strips == 1;
    int64_t const plane = line / high / depth;
    int const d = int(line / high % depth); // windows of planes share nothing
//! else
//! if tile
    int const strips = (out_vectors + THREADS - 1) / THREADS;
    $index const line = blockIdx.x / strips;
    int const first = int(blockIdx.x % strips) * THREADS, v = first + threadIdx.x, h0 = int(line % bands) * ROWS;
//! else
    $index const i = $index(blockIdx.x) * THREADS + threadIdx.x;
    $index const line = i / out_vectors;
    int const v = int(i % out_vectors), h0 = int(line % bands) * ROWS;
//! end
//! if walk
    bool const inside = line / bands < planes * depth;
    int64_t const plane = inside ? line / bands / depth : 0;
    int const d = inside ? int(line / bands % depth) : 0; // windows of planes share nothing
//! else
    int const d0 = int(line / bands % slabs) * PLANES;
//! if tile
    bool const inside = v < out_vectors;
    int64_t const plane = line / bands / slabs;
//! else
    bool const inside = line / bands / slabs < planes;
    int64_t const plane = inside ? line / bands / slabs : 0;
//! end
//! end
//! end
//! if walk
    int const from_v = v * $stride_width + FIRST;
//! else
    Tensor value = make_tensor<float>(make_shape(Int<VEC>{}, Int<ROWS>{}, Int<PLANES>{})); // (VEC,ROWS,PLANES)
    int const from_d = d0 * $stride_depth - $pad_depth, from_h = h0 * $stride_height - $pad_height;
//! if not tile
    int const from_v = v * $stride_width + FIRST;
//! end
//! end
//! if walk
//! elif tile
    constexpr int HELD = THREADS - 1 + (SPAN + VEC - 1) / VEC; // vectors under the windows of a block
    __shared__ __align__(16) unsigned char held[HELD * 16];
    Tensor sX = make_tensor(make_smem_ptr(reinterpret_cast<$type *>(held)), make_shape(Int<VEC>{}, Int<HELD>{}, _1{}, _1{}), make_stride(_1{}, Int<VEC>{}, _0{}, _0{})); // (VEC,HELD,1,1)
    for (int u = threadIdx.x; u < HELD; u += THREADS) {
        Tensor loaded = make_tensor<$type>(Int<VEC>{}); // (VEC)
//! if largest
        fill(loaded, $type(__int_as_float(0xff800000)));
//! else
        fill(loaded, $type(0.0f));
//! end
        if (first + FIRST + u >= 0 && first + FIRST + u < vectors)
            copy(Vector{}, gX(_, first + FIRST + u, from_h, from_d, plane), loaded);
        copy(Vector{}, loaded, sX(_, u, 0, 0));
    }
    __syncthreads();
    reduce_windows<false>(sX, value, 0, 0, int(threadIdx.x));
//! elif short
    if (from_d >= 0 && from_d + PLANES_IN <= depth && from_h >= 0 && from_h + ROWS_IN <= height && from_v >= 0 && from_v + ceil_div(SPAN, VEC) <= vectors)
        reduce_windows<false>(gX(_, _, _, _, plane), value, from_d, from_h, from_v);
    else
        reduce_windows<true>(gX(_, _, _, _, plane), value, from_d, from_h, from_v);
//! else
    reduce_windows<true>(gX(_, _, _, _, plane), value, from_d, from_h, from_v);
//! end
//! if walk and not whole_rows and not words
    // Rows of the output begin anywhere: a block collects its windows as they lie in memory, and stores whole vectors.
    constexpr int PITCH = LANES * VEC + LINE; // of a row that is a part of one in memory
    __shared__ __align__(16) unsigned char staged[BANDS * GROUP * PITCH * sizeof($type)];
    $type *const sY = reinterpret_cast<$type *>(staged);
    auto const begin_of = [&](int h, int d) { return int64_t(gY.layout()(v0 * VEC, h, d, plane)); };
//! include pooling_stage
//! elif vectorise and not whole_rows
    // Rows of the output begin anywhere: where a warp has windows of one row alone, it stores them element after element.
    __shared__ __align__(16) unsigned char staged[THREADS * 16];
    Tensor sY = make_tensor(make_smem_ptr(reinterpret_cast<$type *>(staged) + threadIdx.x / 32 * 32 * VEC), Int<32 * VEC>{}); // (32*VEC)
    int const lane = threadIdx.x % 32, v0 = v - lane;
    bool const one_row = __all_sync(0xffffffff, __shfl_sync(0xffffffff, line, 0) == line && inside);
//! end
    // Stores the windows of a row, side by side.
    auto const put = [&](auto const &value, int h, int d) {
//! if walk
        bool const wanted = h < out_height && inside;
//! else
        bool const wanted = h < out_height && d < out_depth && inside;
//! end
        Tensor result = make_tensor<$type>(Int<VEC>{}); // (VEC)
//! if pairs
        copy(value, recast<uint32_t>(result));
//! else
        CUTE_UNROLL
        for (int w = 0; w < VEC; ++w) {
//! if largest
            result(w) = $type(value(w));
//! elif padded and not whole_windows
            int const at_w = (v * VEC + w) * $stride_width - $pad_width, at_h = h * $stride_height - $pad_height, at_d = d * $stride_depth - $pad_depth;
            int const wide = min(at_w + $kernel_width, width) - max(at_w, 0), high = min(at_h + $kernel_height, height) - max(at_h, 0);
            result(w) = $type(value(w) / float(wide * high * (min(at_d + $kernel_depth, depth) - max(at_d, 0))));
//! else
            result(w) = $type(value(w) / float($kernel_width * $kernel_height * $kernel_depth));
//! end
        }
//! end
//! if walk and not whole_rows and not words
        if (wanted)
            stage(result, sY + place_of(h, d), out_width - v * VEC);
//! elif vectorise and not whole_rows
        if (one_row) {
            __syncwarp();
            copy(Vector{}, result, make_tensor(sY.data() + lane * VEC, Int<VEC>{}));
            __syncwarp();
//! if words
            // Two elements at a time, at even places in memory: the first of a row may be alone, and so may the last.
            int64_t const begin = gY.layout()(v0 * VEC, h, d, plane);
            int const odd = int(begin % 2);
            Tensor pairs = recast<uint32_t>(sY);                                                                       // (16*VEC)
            Tensor to = recast<uint32_t>(make_tensor(gY.data() + (begin + odd), make_layout(Int<32 * VEC>{}))); // (16*VEC)
            CUTE_UNROLL
            for (int w = 0; w < VEC / 2; ++w) {
                int const i = w * 32 + lane, e = 2 * i + odd;
                uint32_t x = pairs(i);
                if (odd)
                    x = __byte_perm(x, pairs(min(i + 1, 16 * VEC - 1)), 0x5432);
                if (wanted && e + 1 < 32 * VEC && v0 * VEC + e + 1 < out_width)
                    to(i) = x;
                else if (wanted && v0 * VEC + e < out_width)
                    gY(v0 * VEC + e, h, d, plane) = sY(e);
            }
            if (odd && wanted && lane == 0)
                gY(v0 * VEC, h, d, plane) = sY(0);
//! else
            CUTE_UNROLL
            for (int w = 0; w < VEC; ++w)
                if (wanted && v0 * VEC + w * 32 + lane < out_width)
                    gY(v0 * VEC + w * 32 + lane, h, d, plane) = sY(w * 32 + lane);
//! end
            return;
        }
        CUTE_UNROLL
        for (int w = 0; w < VEC; ++w)
            if (wanted && v * VEC + w < out_width)
                gY(v * VEC + w, h, d, plane) = result(w);
//! elif vectorise
        if (wanted)
            copy(Vector{}, result, make_tensor(gY.data() + gY.layout()(v * VEC, h, d, plane), Int<VEC>{}));
//! else
        if (wanted)
            gY(v, h, d, plane) = result(0);
//! end
    };
//! if walk
    Tensor there = make_tensor<bool>(Int<ceil_div(SPAN, VEC)>{}); // (span)
    CUTE_UNROLL
    for (int u = 0; u < size(there); ++u)
        there(u) = inside && from_v + u >= 0 && from_v + u < vectors;
    Tensor plane_in = gX(_, _, _, d, plane);                                       // (VEC,vectors,height)
//! if pairs
    constexpr int PARTS = VEC / 2;                                                       // of two windows
    Tensor across = make_tensor<uint32_t>(make_shape(Int<PARTS>{}, Int<KEEP + NEW>{})); // (PARTS,KEEP+NEW)
//! else
    constexpr int PARTS = VEC;
    Tensor across = make_tensor<float>(make_shape(Int<PARTS>{}, Int<KEEP + NEW>{})); // (PARTS,KEEP+NEW)
//! end
    CUTE_UNROLL
    for (int b = 0; b < KEEP; ++b)
        reduce_across(plane_in, there, across(_, NEW + b), h0 * $stride_height - $pad_height + b, from_v);
#pragma unroll 1
//! if whole_rows or words
    for (int first = h0; first < h0 + ROWS && first < out_height; first += GROUP) {
//! else
    for (int first = h0; first < h0 + ROWS && first - h0 + band0 * ROWS < out_height; first += GROUP) { // all of a block as often
//! end
        CUTE_UNROLL
        for (int b = 0; b < KEEP; ++b)
            copy(across(_, NEW + b), across(_, b));
        CUTE_UNROLL
        for (int b = 0; b < NEW; ++b)
            reduce_across(plane_in, there, across(_, KEEP + b), first * $stride_height - $pad_height + KEEP + b, from_v);
        CUTE_UNROLL
        for (int k = 0; k < GROUP; ++k) {
            Tensor value = make_tensor_like(across(_, 0)); // (PARTS)
            copy(across(_, k * $stride_height), value);
            CUTE_UNROLL
            for (int b = 1; b < $kernel_height; ++b)
                CUTE_UNROLL
                for (int w = 0; w < PARTS; ++w)
//! if largest
                    value(w) = larger(value(w), across(w, k * $stride_height + b * $dilation_height));
//! else
                    value(w) += across(w, k * $stride_height + b * $dilation_height);
//! end
            put(value, first + k, d);
        }
//! if not whole_rows and not words
        flush(first - h0, d);
//! end
    }
//! else
    CUTE_UNROLL
    for (int k = 0; k < PLANES * ROWS; ++k)
        put(value(_, k % ROWS, k / ROWS), h0 + k % ROWS, d0 + k / ROWS);
//! end
//! elif sums
    using Vector = AutoVectorizingCopyWithAssumedAlignment<int(sizeof($type)) * VEC * 8>;
    int const vectors = width / VEC, strips = ceil_div(out_width, ALONG), high = ceil_div(out_height, DOWN);
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(Int<VEC>{}, vectors, height, depth, planes), make_stride(_1{}, Int<VEC>{}, int64_t(width), int64_t(width) * height, int64_t(width) * height * depth)); // (VEC,vectors,height,depth,planes)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(out_width, out_height, out_depth, planes), make_stride(_1{}, int64_t(out_width), int64_t(out_width) * out_height, int64_t(out_width) * out_height * out_depth)); // (out_width,out_height,out_depth,planes)
    __shared__ __align__(16) float held[DOWN * HELD * VEC];
    Tensor sums = make_tensor(make_smem_ptr(held), make_shape(Int<VEC>{}, Int<HELD>{}, Int<DOWN>{})); // (VEC,HELD,DOWN)
    $index const line = blockIdx.x / strips;
    int const w0 = int(blockIdx.x % strips) * ALONG, h0 = int(line % high) * DOWN, d = int(line / high % out_depth);
    int64_t const plane = line / high / out_depth;
    int const from = w0 * $stride_width - $pad_width, first = (from + BEFORE * VEC) / VEC - BEFORE;
//! if largest
    float const NONE = __int_as_float(0xff800000);
//! else
    constexpr float NONE = 0.0f;
//! end
    for (int u = threadIdx.x; u < DOWN * HELD; u += THREADS) {
        int const h = h0 + u / HELD, v = first + u % HELD;
        Tensor sum = make_tensor<float>(Int<VEC>{}); // (VEC)
        fill(sum, NONE);
        bool const there = h < out_height && v >= 0 && v < vectors;
        $unroll_planes
        for (int c = 0; c < $kernel_depth; ++c) {
            int const at_d = d * $stride_depth - $pad_depth + c * $dilation_depth;
            $unroll_rows
            for (int b = 0; b < $kernel_height; ++b) {
                int const at_h = h * $stride_height - $pad_height + b * $dilation_height;
//! if padded
                if (!there || at_d < 0 || at_d >= depth || at_h < 0 || at_h >= height)
                    continue;
//! else
                if (!there)
                    continue;
//! end
                Tensor loaded = make_tensor<$type>(Int<VEC>{}); // (VEC)
                copy(Vector{}, gX(_, v, at_h, at_d, plane), loaded);
                CUTE_UNROLL
                for (int e = 0; e < VEC; ++e)
//! if largest
                    sum(e) = larger(sum(e), float(loaded(e)));
//! else
                    sum(e) += float(loaded(e));
//! end
            }
        }
        copy(AutoVectorizingCopyWithAssumedAlignment<128>{}, sum, sums(_, u % HELD, u / HELD));
    }
    __syncthreads();
    for (int i = threadIdx.x; i < DOWN * ALONG; i += THREADS) {
        int const w = w0 + i % ALONG, h = h0 + i / ALONG;
        if (w >= out_width || h >= out_height)
            continue;
        float const *const row = held + i / ALONG * (HELD * VEC) + (from - first * VEC) + i % ALONG * $stride_width;
        float value = row[0];
        $unroll_row
        for (int a = 1; a < $kernel_width; ++a)
//! if largest
            value = larger(value, row[a * $dilation_width]);
        gY(w, h, d, plane) = $type(value);
//! elif padded and not whole_windows
            value += row[a * $dilation_width];
        int const at_w = w * $stride_width - $pad_width, at_h = h * $stride_height - $pad_height, at_d = d * $stride_depth - $pad_depth;
        int const wide = min(at_w + $kernel_width, width) - max(at_w, 0), tall = min(at_h + $kernel_height, height) - max(at_h, 0);
        gY(w, h, d, plane) = $type(value / float(wide * tall * (min(at_d + $kernel_depth, depth) - max(at_d, 0))));
//! else
            value += row[a * $dilation_width];
        gY(w, h, d, plane) = $type(value / float($kernel_width * $kernel_height * $kernel_depth));
//! end
    }
//! else
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(width, height, depth, planes), make_stride(_1{}, int64_t(width), int64_t(width) * height, int64_t(width) * height * depth)); // (width,height,depth,planes)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(out_width, out_height, out_depth, planes), make_stride(_1{}, int64_t(out_width), int64_t(out_width) * out_height, int64_t(out_width) * out_height * out_depth)); // (out_width,out_height,out_depth,planes)
//! if columns
    int const strips = ceil_div(out_width, THREADS);
    int const w = blockIdx.x % strips * THREADS + threadIdx.x;
    $index const line = blockIdx.x / strips;
    int const h = int(line % out_height), d = int(line / out_height % out_depth);
    int64_t const plane = line / out_height / out_depth;
    if (w >= out_width)
        return;
//! else
    $index const i = $index(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= size(gY))
        return;
    int const w = int(i % out_width), h = int(i / out_width % out_height);
    int const d = int(i / out_width / out_height % out_depth);
    int64_t const plane = i / out_width / out_height / out_depth;
//! end
//! if largest
    float value = __int_as_float(0xff800000);
//! else
    float value = 0.0f;
//! end
    $unroll
    for (int c = 0; c < $kernel_depth; ++c) {
        int const at_d = d * $stride_depth - $pad_depth + c * $dilation_depth;
        $unroll
        for (int b = 0; b < $kernel_height; ++b) {
            int const at_h = h * $stride_height - $pad_height + b * $dilation_height;
            $unroll_row
            for (int a = 0; a < $kernel_width; ++a) {
                int const at_w = w * $stride_width - $pad_width + a * $dilation_width;
//! if padded
                if (at_d < 0 || at_d >= depth || at_h < 0 || at_h >= height || at_w < 0 || at_w >= width)
                    continue;
//! end
//! if largest
                value = larger(value, float(gX(at_w, at_h, at_d, plane)));
//! else
                value += float(gX(at_w, at_h, at_d, plane));
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
//! if few
    CUTEGEN_REQUIRE(call, cutegen_numel(y) < INT32_MAX / 2, "windows are counted in 32 bits");
//! end
//! if vectorise
    CUTEGEN_REQUIRE(call, width % $vec == 0 && cutegen_aligned(x, 16), "rows of x must be whole vectors of 16 bytes");
//! if whole_rows
    CUTEGEN_REQUIRE(call, out_width % $vec == 0 && cutegen_aligned(y, 16), "rows of y must be whole vectors of 16 bytes");
//! elif words
    CUTEGEN_REQUIRE(call, cutegen_aligned(y, 4), "y must start on 4 bytes");
//! elif walk
    CUTEGEN_REQUIRE(call, cutegen_aligned(y, 16), "y must start on 16 bytes");
    int64_t strips = cutegen_ceil_div(cutegen_ceil_div(out_width, $vec), $lanes);
//! end
//! end
//! if launch_shape
    const int threads = 128;
//! else
    const int threads = 256;
//! end
//! if walk and not whole_rows and not words
    CUTEGEN_REQUIRE(call, depth == out_depth, "windows have a depth of one plane");
    int64_t blocks = planes * depth * cutegen_ceil_div(cutegen_ceil_div(out_height, ROWS), threads / $lanes) * strips;
//! elif vectorise and bands
    int64_t blocks = cutegen_ceil_div(planes * cutegen_ceil_div(out_depth, $band_planes) * cutegen_ceil_div(out_height, $band_rows) * cutegen_ceil_div(out_width, $vec), threads);
//! elif walk
    CUTEGEN_REQUIRE(call, depth == out_depth, "windows have a depth of one plane");
    int64_t blocks = cutegen_ceil_div(planes * depth * cutegen_ceil_div(out_height, ROWS) * cutegen_ceil_div(out_width, $vec), threads);
//! elif tile
    int64_t blocks = planes * out_depth * out_height * cutegen_ceil_div(cutegen_ceil_div(out_width, $vec), threads);
//! elif vectorise
    int64_t blocks = cutegen_ceil_div(planes * out_depth * out_height * cutegen_ceil_div(out_width, $vec), threads);
//! elif sums
    CUTEGEN_REQUIRE(call, width % $vec == 0 && cutegen_aligned(x, 16), "rows of x must be whole vectors of 16 bytes");
    int64_t blocks = planes * out_depth * cutegen_ceil_div(out_height, $apart_down) * cutegen_ceil_div(out_width, $apart_along);
//! elif bands
    int64_t blocks = cutegen_ceil_div(planes * cutegen_ceil_div(out_depth, $band_planes) * cutegen_ceil_div(out_height, $band_rows) * out_width, threads);
//! elif columns
    int64_t blocks = planes * out_depth * out_height * cutegen_ceil_div(out_width, threads);
//! else
    int64_t blocks = cutegen_ceil_div(cutegen_numel(y), threads);
//! end
//! if launch_shape
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<128>), cutegen_dim3(blocks, 1, 1), cutegen_dim3(128, 1, 1), 0, CUTEGEN_DATA($type const, x), CUTEGEN_DATA($type, y), planes, (int)depth, (int)height, (int)width, (int)out_depth, (int)out_height, (int)out_width);
//! else
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<256>), cutegen_dim3(blocks, 1, 1), cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA($type const, x), CUTEGEN_DATA($type, y), planes, (int)depth, (int)height, (int)width, (int)out_depth, (int)out_height, (int)out_width);
//! end
}
#endif
