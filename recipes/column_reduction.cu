// recipes/column_reduction.cu - reductions along a dimension that is not the innermost one: a thread per column.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
// Stages are those of row_reduction.cu; a column here is what is a row there. Neighbouring threads take
// neighbouring columns, so that loads lie together; X threads stand side by side, Y share a column.
//
//! recipe column_reduction: neighbouring threads take neighbouring columns; each pass reduces an element function
//! fact vectors: 16-byte accesses are possible: unit strides, whole vectors
//! fact fits: a column fits into the registers of its threads
//! fact measured: times are measured, so that trying pays
//! fact reread: some tensor is read by more than one pass
//! fact pairs: two passes that one could do
//! fact maxsum: a maximum, then the sum of exponentials below it
//! fact moments: a mean, then the sum of squares about it
//! fact slim: fewer than 32 threads stand side by side, so that more share a column
//! fact many: one pass, and columns enough to fill the device without sharing them
//! fact splits: one pass and a value per column, and few or odd columns: parts can be reduced apart
//! fact odd: columns are not whole vectors, but four rows are
//! fact narrow: (not used here) values have 16 bits
//! fact fast: some operator has a fast form
//! fact exponentials: some value is an exponential of a difference
//! fact backwards: the kernel before reads the same tensor, and its end may still be in the cache
//! fact elements: some output has a value per element
//! fact rows: some output has a value per column
//! fact pass: (of a stage) it reduces; else it is a scalar
//! fact pair: (of a stage) the first of two passes that one could do
//! fact paired: (of a stage) the second
//! fact joins: (of a stage) its elements are reduced in the loop of an earlier one
//! fact kept: (of a tensor) read more than once, worth keeping in registers
//! fact uses_count: some result depends on the length of a column
//! fact uses_sum: some pass adds
//! fact pair_uses_sum: some pass of a pair adds
//! fact second: (of a function) it belongs to the second pass of a pair
//! fact uses_prod: some pass multiplies
//! fact uses_max: some pass takes the maximum
//! fact pair_uses_max: some pass of a pair takes the maximum
//! fact uses_min: some pass takes the minimum
//! fact uses_argmax: some pass finds where the maximum is
//! fact uses_argmin: some pass finds where the minimum is
//!
//! step team: let eight threads share a column
//!   why: More loads are under way at once, and few columns fill the device.
//!   when: not many
//! step vectorise: take four columns per thread, 16 bytes per load and store
//!   why: A quarter of the load instructions for the same traffic.
//!   when: vectors
//! step registers: keep the column in registers between the passes
//!   why: The column is read from memory once; the later passes cost no traffic.
//!   when: fits and reread
//!   needs: team
//! step one_pass: find both values of a pair of passes in one
//!   why: A running value is corrected when the other one changes, which saves one reading.
//!   when: pairs
//! step unroll: load eight elements ahead
//!   why: The loads of several iterations are under way before the first is used.
//!   when: measured and not fits or measured and not reread
//! step split: reduce parts of a column in different blocks, then fold them
//!   why: A few columns keep the whole device busy.
//!   when: splits
//!   needs: team
//! step super_rows: read four rows as one, so that 16-byte accesses fit an odd width
//!   why: Four rows of any width are whole vectors; the fold puts their columns together.
//!   when: splits and odd
//!   needs: team split
//! step wide: give a block 1024 neighbouring columns, or vectors of them
//!   why: A block reads long runs of each row, which memory serves best.
//!   when: many
//! step fast_math: use the hardware's exponential and division
//!   why: A few instructions instead of many; the results stay within the accuracy of fp32.
//!   when: exponentials or fast
//! step bigger_team: try sixteen threads per column
//!   why: More loads under way per column; which number suits a device is found by measuring.
//!   when: measured and not fits or measured and not reread
//!   likely: never
//!   needs: team
//! text
// $kernel: $ops, along columns.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

using namespace cute;

//! include accumulators
//! if vectorise or super_rows
constexpr int VEC = $vec; // columns per thread: 16 bytes
using Vector = AutoVectorizingCopyWithAssumedAlignment<128>;
//! else
constexpr int VEC = 1; // columns per thread
using Vector = AutoVectorizingCopy;
//! end

//! if team
// Combines what the threads of a column hold; all get the result.
template <int STAGE, int X, int Y, class Acc>
__device__ void column_reduce(Acc (&acc)[VEC])
{
//! if slim
    constexpr int WARPS = X * Y / 32; // each has 32 / X threads of a column
    __shared__ Acc parts[WARPS][VEC][X]; // of this stage alone
    CUTE_UNROLL
    for (int v = 0; v < VEC; ++v)
        CUTE_UNROLL
        for (int lane = 16; lane >= X; lane /= 2)
            acc[v].merge(acc[v].from(lane));
    if (threadIdx.y % (32 / X) == 0)
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            parts[threadIdx.y / (32 / X)][v][threadIdx.x] = acc[v];
    __syncthreads();
    CUTE_UNROLL
    for (int v = 0; v < VEC; ++v) {
        acc[v] = parts[0][v][threadIdx.x];
        CUTE_UNROLL
        for (int k = 1; k < WARPS; ++k)
            acc[v].merge(parts[k][v][threadIdx.x]);
    }
//! else
    __shared__ Acc parts[Y][VEC][X]; // of this stage alone
    CUTE_UNROLL
    for (int v = 0; v < VEC; ++v)
        parts[threadIdx.y][v][threadIdx.x] = acc[v];
    __syncthreads();
    // A column's parts are merged by one of its threads: merging exponentials takes as long as many elements.
    for (int v = threadIdx.y; v < VEC; v += Y) {
        Acc all = parts[0][v][threadIdx.x];
        CUTE_UNROLL
        for (int k = 1; k < Y; ++k)
            all.merge(parts[k][v][threadIdx.x]);
        parts[0][v][threadIdx.x] = all;
    }
    __syncthreads();
    CUTE_UNROLL
    for (int v = 0; v < VEC; ++v)
        acc[v] = parts[0][v][threadIdx.x];
//! end
}

//! end
//! if registers
template <int X, int Y, int ITEMS> // ITEMS: elements of a column per thread
//! else
template <int X, int Y>
//! end
//! if registers
__global__ void __launch_bounds__(X * Y, $column_blocks)
//! else
__global__ void __launch_bounds__(X * Y)
//! end
//! if split
    ${kernel}_kernel($split_params)
//! else
    ${kernel}_kernel($column_params)
//! end
{
//! if uses_count
//! if not split
    float const count = float(n);
//! end
//! end
    int const tiles = ceil_div(inner / VEC, X);
//! if split
    int const slice = blockIdx.x / tiles % slices, o = blockIdx.x / tiles / slices;
    int const from = int(int64_t(n) * slice / slices);
    int const to = int(int64_t(n) * (slice + 1) / slices);
//! else
//! if backwards
    int const block = gridDim.x - 1 - blockIdx.x; // what was read last first
    int const o = block / tiles, from = 0, to = n;
//! else
    int const o = blockIdx.x / tiles, from = 0, to = n;
//! end
//! end
//! if backwards and not split
    int const place = block % tiles * X + threadIdx.x, c = min(place, inner / VEC - 1), t = threadIdx.y;
//! else
    int const place = blockIdx.x % tiles * X + threadIdx.x, c = min(place, inner / VEC - 1), t = threadIdx.y;
//! end
//! each tensor
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(Int<VEC>{}, inner / VEC, $column_shape, $outer), make_stride($inner_unit, $inner_stride, $column_stride, $outer_stride))(_, c, _, o); // (VEC,n)
//! end
//! if not split
//! each row_tensor
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(Int<VEC>{}, inner / VEC, $outer), make_stride($inner_unit, $inner_stride, $outer_stride))(_, c, o); // (VEC)
//! end
//! end
//! if registers

//! each tensor
//! if kept
    Tensor r$X = make_tensor<$type>(make_shape(Int<VEC>{}, Int<ITEMS>{})); // (VEC,ITEMS)
//! end
//! end
    CUTE_UNROLL
    for (int j = 0; j < ITEMS; ++j) {
//! each tensor
//! if kept
        copy(${copy}g$X(_, t + j * Y), r$X(_, j));
//! end
//! end
    }
//! end
//! if not split
//! each row_input
    Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
    copy(${copy}g$X, r$X);
//! end
//! end
//! each stage

//! if split and not pass
//! elif joins and not registers
//! if team
    column_reduce<$k, X, Y>($acc);
//! end
//! if split
    if (t == 0 && place < inner / VEC) {
        Tensor gParts = make_tensor(reinterpret_cast<$combine *>(parts$parts_at), make_shape(Int<VEC>{}, inner / VEC, slices, $outer_count), make_stride(_1{}, Int<VEC>{}, int64_t(inner), int64_t(inner) * slices)); // (VEC,inner/VEC,slices,outer)
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            gParts(v, c, slice, o) = $acc[v];
    }
//! elif one_pass and pair
    float $name[VEC];
    CUTE_UNROLL
    for (int v = 0; v < VEC; ++v)
        $name[v] = $column_first;
//! else
    $value $name[VEC];
    CUTE_UNROLL
    for (int v = 0; v < VEC; ++v)
        $name[v] = $column_result;
//! end
//! elif not pass
    float $name[VEC];
    CUTE_UNROLL
    for (int v = 0; v < VEC; ++v)
        $name[v] = $column_scalar;
//! elif one_pass and paired
    float $name[VEC];
    CUTE_UNROLL
    for (int v = 0; v < VEC; ++v)
        $name[v] = $column_second;
//! elif one_pass and pair
    $pair_type $acc[VEC];
    CUTE_UNROLL
    for (int v = 0; v < VEC; ++v)
        $acc[v] = $pair_type::none();
//! include column_joined
//! if registers
    CUTE_UNROLL
    for (int v = 0; v < VEC; ++v) {
        Tensor values = make_tensor<float>(Int<ITEMS>{}); // (ITEMS)
        CUTE_UNROLL
        for (int j = 0; j < ITEMS; ++j) {
//! each use
//! if not kept
            Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
            copy(${copy}g$X(_, t + j * Y), r$X);
//! end
//! end
            values(j) = $column_held;
        }
        $acc[v].add(values);
    }
//! else
//! include column_walk
//! end
//! if team
    column_reduce<$k, X, Y>($acc);
//! end
    float $name[VEC];
    CUTE_UNROLL
    for (int v = 0; v < VEC; ++v)
        $name[v] = $column_first;
//! else
    $combine $acc[VEC];
    CUTE_UNROLL
    for (int v = 0; v < VEC; ++v)
        $acc[v] = $combine::none();
//! include column_joined
//! if registers
    CUTE_UNROLL
    for (int j = 0; j < ITEMS; ++j) {
//! each use
//! if not kept
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(${copy}g$X(_, t + j * Y), r$X);
//! end
//! end
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            $acc[v].add($column_held$held_place);
    }
//! else
//! include column_walk
//! end
//! if team
    column_reduce<$k, X, Y>($acc);
//! end
//! if split
    if (t == 0 && place < inner / VEC) {
        Tensor gParts = make_tensor(reinterpret_cast<$combine *>(parts$parts_at), make_shape(Int<VEC>{}, inner / VEC, slices, $outer_count), make_stride(_1{}, Int<VEC>{}, int64_t(inner), int64_t(inner) * slices)); // (VEC,inner/VEC,slices,outer)
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            gParts(v, c, slice, o) = $acc[v];
    }
//! else
    $value $name[VEC];
    CUTE_UNROLL
    for (int v = 0; v < VEC; ++v)
        $name[v] = $column_result;
//! end
//! end
//! end
//! if not split
//! if elements

    if (place < inner / VEC) {
//! if registers
        CUTE_UNROLL
        for (int j = 0; j < ITEMS; ++j) {
//! each output_use
//! if not kept
            Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
            copy(${copy}g$X(_, t + j * Y), r$X);
//! end
//! end
//! each output
            Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
            CUTE_UNROLL
            for (int v = 0; v < VEC; ++v)
                r$X(v) = $column_held;
            copy(Vector{}, r$X, g$X(_, t + j * Y));
//! end
        }
//! else
//! if unroll
#pragma unroll 8
//! end
        for (int i = t; i < n; i += Y) {
//! each output_use
            Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
            copy(${copy}g$X(_, i), r$X);
//! end
//! each output
            Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
            CUTE_UNROLL
            for (int v = 0; v < VEC; ++v)
                r$X(v) = $column_call;
            copy(Vector{}, r$X, g$X(_, i));
//! end
        }
//! end
    }
//! end
//! if rows

    if (t == 0 && place < inner / VEC) {
//! each row_output
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            g$X(v) = $column_scalar;
//! end
    }
//! end
//! end
}
//! if split

// Folds the parts of each column.
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    ${kernel}_fold($fold_params)
{
//! if uses_count
    float const count = float(n);
//! end
    int64_t const i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= int64_t(inner) * $outer_count)
        return;
//! each row_tensor
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(inner, $outer), make_stride($fold_inner, $outer_stride)); // (inner,outer)
//! end
    constexpr int v = 0; // one column per thread
//! each row_input
    $type const r$X[1] = {g$X(i)};
//! end
//! each stage
//! if not pass
    float $name[1] = {$fold_scalar};
//! else
    Tensor gParts$fold_at = make_tensor(reinterpret_cast<$combine const *>(parts$parts_at), make_shape(inner, slices, $outer_count), make_stride(_1{}, int64_t(inner), int64_t(inner) * slices)); // (inner,slices,outer)
    $combine $acc[1] = {$combine::none()};
    for (int k = 0; k < slices; ++k)
        $acc[0].merge(gParts$fold_at(int(i % inner), k, int(i / inner)));
    $value $name[1] = {$column_result};
//! end
//! end
//! each row_output
    g$X(i) = $fold_scalar;
//! end
}
//! end
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
//! each plan_tensor
    const struct cutegen_tensor *$x = &call->$side[$k];
//! end

//! each plan_tensor
    CUTEGEN_REQUIRE(call, $x->ndim == $ndim, "$x must be $ndim-dimensional");
//! end
//! each col_mode
    int64_t n$m = $size;
//! end
    int64_t inner = $inner_size;
//! each outer_mode
    int64_t outer$m = $size;
//! end
//! each check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
//! if vectorise
//! each vector_check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
//! end
//! each scalar
    CUTEGEN_REQUIRE(call, call->scalar[$k].f == $value, "$name is written into the kernel as $value");
//! end
//! if team
//! if bigger_team
    const int64_t X = 32, Y = 16;
//! else
    const int64_t X = $lanes, Y = $team;
//! end
//! if vectorise or super_rows
    const int64_t VEC = $vec;
//! else
    const int64_t VEC = 1;
//! end
//! else
//! if wide
    const int64_t X = 1024, Y = 1;
//! else
    const int64_t X = 128, Y = 1;
//! end
//! if vectorise
    const int64_t VEC = $vec;
//! else
    const int64_t VEC = 1;
//! end
//! end
//! if super_rows
    CUTEGEN_REQUIRE(call, n % 4 == 0, "the rows must come in fours");
    CUTEGEN_REQUIRE(call, cutegen_aligned($super_input, 16), "$super_input must start on a multiple of 16 bytes");
    int64_t wide = 4 * inner, tall = n / 4;
    int64_t blocks = cutegen_ceil_div(wide / VEC, X) * $outer_count;
    int64_t slices = cutegen_max(1, cutegen_min(tall / (Y * 8), 8 * call->device.sm_count / blocks));
    float *parts = (float *)cutegen_workspace(call, wide * slices * $outer_count * $part_bytes$part_count);
//! if bigger_team
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_kernel<32, 16>), cutegen_dim3(blocks * slices, 1, 1), cutegen_dim3(X, Y, 1), 0, $super_args));
//! else
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_kernel<$lanes, $team>), cutegen_dim3(blocks * slices, 1, 1), cutegen_dim3(X, Y, 1), 0, $super_args));
//! end
    slices *= 4; // the rows that were read as one
    return CUTEGEN_LAUNCH(call, (${kernel}_fold<256>), cutegen_dim3(cutegen_ceil_div(inner * $outer_count, 256), 1, 1), cutegen_dim3(256, 1, 1), 0, $fold_args);
//! elif split
    int64_t blocks = cutegen_ceil_div(inner / VEC, X) * $outer_count;
    int64_t slices = cutegen_max(1, cutegen_min(n / (Y * 8), 8 * call->device.sm_count / blocks));
    float *parts = (float *)cutegen_workspace(call, inner * slices * $outer_count * $part_bytes$part_count);
//! if bigger_team
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_kernel<32, 16>), cutegen_dim3(blocks * slices, 1, 1), cutegen_dim3(X, Y, 1), 0, $split_args));
//! else
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_kernel<$lanes, $team>), cutegen_dim3(blocks * slices, 1, 1), cutegen_dim3(X, Y, 1), 0, $split_args));
//! end
    return CUTEGEN_LAUNCH(call, (${kernel}_fold<256>), cutegen_dim3(cutegen_ceil_div(inner * $outer_count, 256), 1, 1), cutegen_dim3(256, 1, 1), 0, $fold_args);
//! elif registers
    CUTEGEN_REQUIRE(call, n == $team * $items, "a column must fill the registers of its threads");
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<$lanes, $team, $items>), cutegen_dim3(cutegen_ceil_div(inner / VEC, X) * $outer_count, 1, 1), cutegen_dim3(X, Y, 1), 0, $column_args);
//! elif team
//! if bigger_team
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<32, 16>), cutegen_dim3(cutegen_ceil_div(inner / VEC, X) * $outer_count, 1, 1), cutegen_dim3(X, Y, 1), 0, $column_args);
//! else
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<$lanes, $team>), cutegen_dim3(cutegen_ceil_div(inner / VEC, X) * $outer_count, 1, 1), cutegen_dim3(X, Y, 1), 0, $column_args);
//! end
//! elif wide
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<1024, 1>), cutegen_dim3(cutegen_ceil_div(inner / VEC, X) * $outer_count, 1, 1), cutegen_dim3(X, Y, 1), 0, $column_args);
//! else
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<128, 1>), cutegen_dim3(cutegen_ceil_div(inner / VEC, X) * $outer_count, 1, 1), cutegen_dim3(X, Y, 1), 0, $column_args);
//! end
}
#endif
