// recipes/pointwise.cu - a graph of pointwise operators as one pass over memory.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
//
//! recipe pointwise: one fused pass, every element read once and written once
//! fact flat: all tensors are one run of n elements, or scalars
//! fact vectors: 16-byte accesses are possible: unit strides, whole vectors
//! fact fast: some operator has a fast form
//! fact measured: times are measured, so that trying pays
//! fact turned: some input lies along another dimension than the output
//! fact turned_vectors: 16-byte accesses are possible along both dimensions, and tiles fill the device
//! fact turns: (of a tensor) it does
//! fact backwards: the kernel before reads the same tensor, and its end may still be in the cache
//! fact moving: (of a tensor) it is not a broadcast
//! fact unit: (of a tensor) its fastest dimension has stride 1
//! fact dense: (of a tensor) row-major without gaps
//!
//! step vectorise: move 16 bytes per load and store
//!   why: A warp that asks for 16 bytes per thread needs a quarter of the instructions for the same traffic.
//!   when: vectors
//! step launch_shape: launch blocks of 128 threads
//!   why: Small blocks end and start more evenly, so the memory system never runs dry between waves.
//! step two: move two vectors of each tensor per thread
//!   why: Twice the bytes under way per thread, and half as many blocks to start.
//!   when: vectors and measured
//!   likely: never
//!   needs: vectorise
//! step turn: turn what lies the other way in shared memory, tile by tile
//!   why: Loads and stores both go along what lies together; without it one of them touches a sector per element.
//!   when: turned
//!   excludes: vectorise launch_shape two
//! step tiles: turn tiles of 64 x 64, 16 bytes per load and store
//!   why: A quarter of the instructions, twice the bytes under way, and runs of 256 bytes on both sides.
//!   when: turned_vectors
//!   needs: turn
//! step fast_math: use the hardware's exponential and division
//!   why: Fewer instructions per element; the results stay within the accuracy of fp32.
//!   when: fast
//! text
// $kernel: $ops, fused into one pass over memory.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

using namespace cute;

//! if fast_math
//! each helper
// $helper_words
__device__ inline float $helper(float x)
{
    $helper_body
}

//! end
//! end
//! each function
__device__ inline $value $function($function_params)
{
//! if fast_math
    $quick
//! else
    $exact
//! end
}

//! end
//! if vectorise or tiles
constexpr int VEC = $vec; // elements in 16 bytes
using Vector = AutoVectorizingCopyWithAssumedAlignment<128>;

//! end
//! if tiles
constexpr int TILE = 64, VECS = TILE / VEC, BAND = 8; // a tile is TILE x TILE elements, VECS vectors in each row

// Where a vector of a row begins in the tile: turned by the row, so that columns lie in different banks.
__device__ inline int tile_at(int row, int vector)
{
    return row * TILE + (vector ^ row / VEC % VECS) * VEC;
}

template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    ${kernel}_kernel($params)
{
    static_assert(TILE * VECS % THREADS == 0 && VECS % 8 == 0, "whole vectors for every thread");
    constexpr int EACH = TILE * VECS / THREADS; // vectors of a tile per thread
    int const tiles = ceil_div(int(n0), TILE), turned_tiles = ceil_div(int(n$turn), TILE);
    int const rest = blockIdx.x / (tiles * turned_tiles), number = blockIdx.x % (tiles * turned_tiles);
    int const band = number / (BAND * turned_tiles) * BAND, wide = min(BAND, tiles - band); // neighbours run together
    int const i0 = (band + (number - band * turned_tiles) % wide) * TILE;
    int const k0 = (number - band * turned_tiles) / wide * TILE;
//! each input
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(n0, n$turn, $turn_rest), $turn_stride)(_, _, rest); // (n0,n$turn)
//! end
//! each output
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(n0, n$turn, $turn_rest), $turn_stride)(_, _, rest); // (n0,n$turn)
//! end
//! each input
//! if turns
    __shared__ alignas(16) $type t$X[TILE * TILE];
    Tensor v$X = make_tensor<$type>(make_shape(Int<VEC>{}, Int<EACH>{})); // (VEC,EACH)
//! end
//! end
    CUTE_UNROLL
    for (int j = 0; j < EACH; ++j) {
        int const i = (threadIdx.x + j * THREADS) / VECS, k = (threadIdx.x + j * THREADS) % VECS * VEC;
        if (i0 + i < n0 && k0 + k < n$turn) {
//! each input
//! if turns
            copy(Vector{}, make_tensor(make_gmem_ptr(&g$X(i0 + i, k0 + k)), Int<VEC>{}), v$X(_, j));
//! end
//! end
        }
    }
    CUTE_UNROLL
    for (int j = 0; j < EACH; ++j) {
        int const i = (threadIdx.x + j * THREADS) / VECS, k = (threadIdx.x + j * THREADS) % VECS;
//! each input
//! if turns
        copy(Vector{}, v$X(_, j), make_tensor(make_smem_ptr(&t$X[tile_at(i, k)]), Int<VEC>{}));
//! end
//! end
    }
    __syncthreads();
    CUTE_UNROLL
    for (int j = 0; j < EACH; ++j) {
        int const place = threadIdx.x + j * THREADS; // a warp takes 8 vectors of each of 4 lines
        int const i = (place % 8 + place / 32 % (VECS / 8) * 8) * VEC, k = place / 8 % 4 + place / 32 / (VECS / 8) * 4;
        if (i0 + i >= n0 || k0 + k >= n$turn)
            continue;
//! each input
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
//! if turns
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            r$X(v) = t$X[tile_at(i + v, k / VEC) + k % VEC];
//! else
        copy(${copy}make_tensor(make_gmem_ptr(&g$X(i0 + i, k0 + k)), make_layout(Int<VEC>{}, $inner_unit)), r$X);
//! end
//! end
//! each output
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
//! end
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v) {
//! each function
            $vector_store
//! end
        }
//! each output
        copy(Vector{}, r$X, make_tensor(make_gmem_ptr(&g$X(i0 + i, k0 + k)), Int<VEC>{}));
//! end
    }
}
//! elif turn
constexpr int TILE = 32; // a tile is TILE x TILE elements, its rows one longer against bank conflicts

template <int ROWS> // threads (TILE,ROWS)
__global__ void __launch_bounds__(TILE *ROWS)
    ${kernel}_kernel($params)
{
    int const tiles = ceil_div(int(n0), TILE), turned_tiles = ceil_div(int(n$turn), TILE);
    int const i0 = blockIdx.x % tiles * TILE, k0 = blockIdx.x / tiles % turned_tiles * TILE;
    int const rest = blockIdx.x / tiles / turned_tiles;
    int const lane = threadIdx.x, line = threadIdx.y;
//! each input
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(n0, n$turn, $turn_rest), $turn_stride)(_, _, rest); // (n0,n$turn)
//! if turns
    __shared__ $type t$X[TILE][TILE + 1];
    for (int k = line; k < TILE; k += ROWS)
        if (i0 + k < n0 && k0 + lane < n$turn)
            t$X[k][lane] = g$X(i0 + k, k0 + lane);
//! end
//! end
//! each output
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(n0, n$turn, $turn_rest), $turn_stride)(_, _, rest); // (n0,n$turn)
//! end
    __syncthreads();
    for (int k = line; k < TILE; k += ROWS) {
        if (i0 + lane >= n0 || k0 + k >= n$turn)
            continue;
//! each function
        $turn_store
//! end
    }
}
//! else
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    ${kernel}_kernel($params)
{
    static_assert(THREADS % 32 == 0, "whole warps");
//! if vectorise and flat
    auto shape = make_shape(Int<VEC>{}, n / VEC); // $vector_shape_text
//! elif vectorise
    auto shape = make_shape(Int<VEC>{}, make_shape($rest_sizes)); // $vector_shape_text
//! elif not flat
    auto shape = make_shape($sizes); // $shape_text, the first runs fastest
//! end
//! if vectorise
//! each input
    Tensor g$X = make_tensor(make_gmem_ptr($x), $vector_layout); // $vector_shape_text
//! end
//! each output
    Tensor g$X = make_tensor(make_gmem_ptr($x), $vector_layout); // $vector_shape_text
//! end
//! else
//! each input
    Tensor g$X = make_tensor(make_gmem_ptr($x), $layout); // $shape_text
//! end
//! each output
    Tensor g$X = make_tensor(make_gmem_ptr($x), $layout); // $shape_text
//! end
//! end

//! if two
//! if backwards
    $index const first = $index(gridDim.x - 1 - blockIdx.x) * 2 * THREADS + threadIdx.x; // what was read last first
//! else
    $index const first = $index(blockIdx.x) * 2 * THREADS + threadIdx.x;
//! end
//! each input
    Tensor two$X = make_tensor<$type>(make_shape(Int<VEC>{}, _2{})); // (VEC,2)
//! end
    CUTE_UNROLL
    for (int u = 0; u < 2; ++u) {
        $index const i = first + u * THREADS;
        if (i < size<1>(shape)) {
//! each input
            copy(${copy}g$X(_, i), two$X(_, u));
//! end
        }
    }
    CUTE_UNROLL
    for (int u = 0; u < 2; ++u) {
        $index const i = first + u * THREADS;
        if (i < size<1>(shape)) {
//! each input
            Tensor r$X = two$X(_, u); // (VEC)
//! end
//! each output
            Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
//! end
    //! include pointwise_store
    }
//! else
//! if backwards
    $index const i = $index(gridDim.x - 1 - blockIdx.x) * THREADS + threadIdx.x; // what was read last first
//! else
    $index const i = $index(blockIdx.x) * THREADS + threadIdx.x;
//! end
//! if vectorise
    if (i < size<1>(shape)) {
//! each input
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
//! end
//! each output
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
//! end
//! each input
        copy(${copy}g$X(_, i), r$X);
//! end
//! include pointwise_store
//! else
//! if flat
    if (i < n) {
//! else
    if (i < size(shape)) {
//! end
//! each function
        $plain_store
//! end
    }
//! end
//! end
}
//! end
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
//! each plan_input
    const struct cutegen_tensor *$x = &call->in[$k];
//! end
//! each plan_output
    const struct cutegen_tensor *$x = &call->out[$k];
//! end
//! if flat
    int64_t n = cutegen_numel($y);
//! else
//! each mode
    int64_t n$m = $size;
//! end
//! end
//! if vectorise and flat
    int64_t work = n / $vec + n % $vec; // vectors, then the tail
//! elif vectorise
    int64_t work = $elements / $vec; // vectors
//! else
    int64_t work = $elements;
//! end

//! each plan_input
//! if moving
    CUTEGEN_REQUIRE(call, cutegen_numel($x) == n, "$x must have as many elements as the output");
//! end
//! if dense
    CUTEGEN_REQUIRE(call, cutegen_contiguous($x), "$x must be contiguous");
//! end
//! if vectorise and unit
    CUTEGEN_REQUIRE(call, cutegen_aligned($x, 16), "$x must start on a multiple of 16 bytes");
//! end
//! end
//! if vectorise
//! each plan_output
    CUTEGEN_REQUIRE(call, cutegen_aligned($x, 16), "$x must start on a multiple of 16 bytes");
//! end
//! end
//! if not flat
//! each plan_input
    CUTEGEN_REQUIRE(call, $x->ndim == $ndim, "$x must be $ndim-dimensional");
//! end
//! end
//! if vectorise and not flat
    CUTEGEN_REQUIRE(call, n0 % $vec == 0, "the innermost dimension must be a multiple of $vec");
//! end
//! each check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
//! each scalar
    CUTEGEN_REQUIRE(call, call->scalar[$k].f == $value, "$name is written into the kernel as $value");
//! end
//! if tiles
//! each turn_check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
    int64_t tiles = cutegen_ceil_div(n0, 64) * cutegen_ceil_div(n$turn, 64);
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<256>), cutegen_dim3(work / (n0 * n$turn) * tiles, 1, 1),
                          cutegen_dim3(256, 1, 1), 0, $args);
//! elif turn
    int64_t tiles = cutegen_ceil_div(n0, 32) * cutegen_ceil_div(n$turn, 32);
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<8>), cutegen_dim3(work / (n0 * n$turn) * tiles, 1, 1),
                          cutegen_dim3(32, 8, 1), 0, $args);
//! elif two and launch_shape
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<128>), cutegen_dim3(cutegen_ceil_div(work, 256), 1, 1),
                          cutegen_dim3(128, 1, 1), 0, $args);
//! elif two
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<256>), cutegen_dim3(cutegen_ceil_div(work, 512), 1, 1),
                          cutegen_dim3(256, 1, 1), 0, $args);
//! elif launch_shape
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<128>), cutegen_dim3(cutegen_ceil_div(work, 128), 1, 1),
                          cutegen_dim3(128, 1, 1), 0, $args);
//! else
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<256>), cutegen_dim3(cutegen_ceil_div(work, 256), 1, 1),
                          cutegen_dim3(256, 1, 1), 0, $args);
//! end
}
#endif
