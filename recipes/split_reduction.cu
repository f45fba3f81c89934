// recipes/split_reduction.cu - a few long rows: slices of a row are reduced apart, then folded.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
// Stages are those of row_reduction.cu. Every pass is a kernel that leaves one part per slice; what
// comes after it folds the parts of its row first.
//
//! recipe split_reduction: slices of a row are reduced by blocks of their own, then folded
//! fact measured: times are measured, so that trying pays
//! fact vectors: 16-byte accesses are possible: unit strides, whole vectors
//! fact pairs: two passes that one could do
//! fact maxsum: a maximum, then the sum of exponentials below it
//! fact moments: a mean, then the sum of squares about it
//! fact narrow: (not used here) values have 16 bits
//! fact fast: some operator has a fast form
//! fact exponentials: some value is an exponential of a difference
//! fact shares: one pass reads something that all rows share, and the rows are even in number
//! fact several: some loop reads several tensors
//! fact few: so few rows that one block can know them all
//! fact fixed: (of a tensor) the same for all rows
//! fact elements: some output has a value per element
//! fact rows: some output has a value per row
//! fact pass: (of a stage) it reduces; else it is a scalar
//! fact pair: (of a stage) the first of two passes that one could do
//! fact paired: (of a stage) the second
//! fact joins: (of a stage) its elements are reduced in the loop of an earlier one
//! fact counts: (of a stage) what comes before it depends on the length of a row
//! fact value_counts: some result depends on the length of a row
//! fact written: (of a tensor) read or written where outputs are
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
//! step shuffles: reduce within warps by shuffles
//!   why: Five shuffles replace five rounds through shared memory, and one barrier remains of nine.
//! step vectorise: move 16 bytes per load and store
//!   why: A quarter of the load instructions for the same traffic.
//!   when: vectors
//! step one_pass: find both values of a pair of passes in one
//!   why: A running value is corrected when the other one changes, which saves one reading of the rows.
//!   when: pairs
//! step unroll: load four vectors ahead
//!   why: The loads of several iterations are under way before the first is used.
//!   when: measured
//!   likely: not several or pairs
//! step share: reduce two rows at a time
//!   why: What the rows share is loaded once for both, so there are fewer loads for the same elements.
//!   when: shares and vectors
//!   needs: vectorise
//! step together: write the same elements of all rows in one block
//!   why: What the rows share is read once and stays in registers; a block finds all rows' values first.
//!   when: elements and vectors and few
//!   needs: vectorise
//! step once: fold the parts of a row once, then write one vector per thread
//!   why: Short blocks that each move one vector per thread come nearest to the speed of a copy.
//!   when: elements and vectors and not few
//!   needs: vectorise
//! step fast_math: use the hardware's exponential and division
//!   why: A few instructions instead of many; the results stay within the accuracy of fp32.
//!   when: exponentials or fast
//! text
// $kernel: $ops, along a few long rows.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

using namespace cute;

//! include accumulators
//! if vectorise
constexpr int VEC = $vec; // elements in 16 bytes
using Vector = AutoVectorizingCopyWithAssumedAlignment<128>;

//! end
// Combines what the threads of a block hold; all get the result.
template <int STAGE, int THREADS, class Acc>
__device__ Acc block_reduce(Acc acc)
{
//! if shuffles
    __shared__ Acc parts[THREADS / 32]; // of this stage alone
    CUTE_UNROLL
    for (int lane = 16; lane > 0; lane /= 2)
        acc.merge(acc.from(lane));
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = acc;
    __syncthreads();
    acc = parts[threadIdx.x % (THREADS / 32)]; // one value per warp; every warp folds them
    CUTE_UNROLL
    for (int lane = THREADS / 64; lane > 0; lane /= 2)
        acc.merge(acc.from(lane));
    return acc;
//! else
//! include block_tree
//! end
}

// The parts that a stage left.
template <class Acc>
__device__ auto parts_of(float *parts, int stage, int rows, int slices)
{
    Acc *at = reinterpret_cast<Acc *>(parts + int64_t(stage) * rows * slices * 3);
    return make_tensor(make_gmem_ptr(at), make_shape(slices, rows)); // (slices,rows)
}

// What the slices of a row left, together.
template <int STAGE, int THREADS, class Acc>
__device__ Acc fold(float *parts, int row, int rows, int slices)
{
    Tensor gParts = parts_of<Acc>(parts, STAGE, rows, slices)(_, row); // (slices)
    Acc acc = Acc::none();
    for (int k = threadIdx.x; k < slices; k += THREADS)
        acc.merge(gParts(k));
    return block_reduce<STAGE, THREADS>(acc);
}
//! each stage
//! if not pass
//! elif joins
//! elif one_pass and paired
//! else

//! if share
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    ${kernel}_${pass_name}($pass_params)
{
    int const pair = blockIdx.x / slices, slice = blockIdx.x % slices;
    int const from = int(int64_t(n / VEC) * slice / slices);
    int const to = int(int64_t(n / VEC) * (slice + 1) / slices);
//! each use
//! if fixed
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(Int<VEC>{}, $vector_shape), make_stride($unit, $vector_stride)); // (VEC,n/VEC)
//! else
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(Int<VEC>{}, $vector_shape, $rows), make_stride($unit, $vector_stride, $row_stride)); // (VEC,n/VEC,rows)
//! end
//! end
    $combine $acc[2] = {$combine::none(), $combine::none()};
//! if unroll
#pragma unroll 4
//! end
    for (int i = from + threadIdx.x; i < to; i += THREADS) {
//! each use
//! if fixed
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(${copy}g$X(_, i), r$X);
//! else
        Tensor r$X = make_tensor<$type>(make_shape(Int<VEC>{}, _2{})); // (VEC,2)
        copy(${copy}g$X(_, i, 2 * pair), r$X(_, 0));
        copy(${copy}g$X(_, i, 2 * pair + 1), r$X(_, 1));
//! end
//! end
        CUTE_UNROLL
        for (int r = 0; r < 2; ++r)
            CUTE_UNROLL
            for (int v = 0; v < VEC; ++v)
                $acc[r].add($share_call$vector_place);
    }
    $acc[0] = block_reduce<0, THREADS>($acc[0]);
    $acc[1] = block_reduce<1, THREADS>($acc[1]);
    if (threadIdx.x < 2)
        parts_of<$combine>(parts, $k, $row_count, slices)(slice, 2 * pair + int(threadIdx.x)) = threadIdx.x ? $acc[1] : $acc[0];
}
//! else
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    ${kernel}_${pass_name}($pass_params)
{
    int const row = blockIdx.x / slices, slice = blockIdx.x % slices;
//! if vectorise
    int const from = int(int64_t(n / VEC) * slice / slices);
    int const to = int(int64_t(n / VEC) * (slice + 1) / slices);
//! else
    int const from = int(int64_t(n) * slice / slices);
    int const to = int(int64_t(n) * (slice + 1) / slices);
//! end
//! if counts
    float const count = float(n);
//! end
//! each use
//! if vectorise
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(Int<VEC>{}, $vector_shape, $rows), make_stride($unit, $vector_stride, $row_stride))(_, _, row); // (VEC,n/VEC)
//! else
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape($shape, $rows), make_stride($stride, $row_stride))(_, row); // (n)
//! end
//! end
//! each row_use
    Tensor g$X = make_tensor(make_gmem_ptr($x), $rows_shape, $rows_stride); // (rows)
//! end
//! each before
//! include split_scalar
//! end

//! if one_pass and pair
    $pair_type $acc = $pair_type::none();
//! else
    $combine $acc = $combine::none();
//! end
//! each joined
//! if one_pass and pair
    $pair_type $acc = $pair_type::none();
//! else
    $combine $acc = $combine::none();
//! end
//! end
//! if unroll and vectorise and one_pass and pair
    int i = from + threadIdx.x;
    for (; i + 3 * THREADS < to; i += 4 * THREADS) { // four vectors under way, and one merge for all
//! each use
        Tensor four$X = make_tensor<$type>(make_shape(Int<VEC>{}, _4{})); // (VEC,4)
        CUTE_UNROLL
        for (int j = 0; j < 4; ++j)
            copy(${copy}g$X(_, i + j * THREADS), four$X(_, j));
//! end
        Tensor values = make_tensor<float>(make_shape(Int<VEC>{}, _4{})); // (VEC,4)
        CUTE_UNROLL
        for (int j = 0; j < 4; ++j) {
//! each use
            Tensor r$X = four$X(_, j); // (VEC)
//! end
            CUTE_UNROLL
            for (int v = 0; v < VEC; ++v)
                values(v, j) = $vector_call;
//! each joined
    //! include split_joined
//! end
        }
        $acc.add(values);
    }
    for (; i < to; i += THREADS) {
//! elif unroll
#pragma unroll 4
    for (int i = from + threadIdx.x; i < to; i += THREADS) {
//! else
    for (int i = from + threadIdx.x; i < to; i += THREADS) {
//! end
//! if vectorise
//! each use
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(${copy}g$X(_, i), r$X);
//! end
//! if one_pass and pair
        Tensor values = make_tensor<float>(Int<VEC>{}); // (VEC)
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            values(v) = $vector_call;
        $acc.add(values);
//! else
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            $acc.add($vector_call$vector_place);
//! end
//! each joined
//! include split_joined
//! end
//! else
//! if one_pass and pair
        Tensor values = make_tensor<float>(_1{}); // (1)
        values(0) = $plain_call;
        $acc.add(values);
//! else
        $acc.add($plain_call$plain_place);
//! end
//! each joined
//! if one_pass and pair
        Tensor values$k = make_tensor<float>(_1{}); // (1)
        values$k(0) = $plain_call;
        $acc.add(values$k);
//! else
        $acc.add($plain_call$plain_place);
//! end
//! end
//! end
    }
    $acc = block_reduce<$k, THREADS>($acc);
//! each joined
    $acc = block_reduce<$k, THREADS>($acc);
//! end
    if (threadIdx.x == 0) {
//! if one_pass and pair
        parts_of<$pair_type>(parts, $k, $row_count, slices)(slice, row) = $acc;
//! else
        parts_of<$combine>(parts, $k, $row_count, slices)(slice, row) = $acc;
//! end
//! each joined
//! if one_pass and pair
        parts_of<$pair_type>(parts, $k, $row_count, slices)(slice, row) = $acc;
//! else
        parts_of<$combine>(parts, $k, $row_count, slices)(slice, row) = $acc;
//! end
//! end
    }
}
//! end
//! end
//! end

//! if together
// What the slices of a row left, together: by one warp.
template <int STAGE, class Acc>
__device__ Acc warp_fold(float *parts, int row, int rows, int slices)
{
    Tensor gParts = parts_of<Acc>(parts, STAGE, rows, slices)(_, row); // (slices)
    Acc acc = Acc::none();
    for (int k = threadIdx.x % 32; k < slices; k += 32)
        acc.merge(gParts(k));
    CUTE_UNROLL
    for (int lane = 16; lane > 0; lane /= 2)
        acc.merge(acc.from(lane));
    return acc;
}

template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    ${kernel}_kernel($value_params)
{
//! if value_counts
    float const count = float(n);
//! end
//! each stage
    __shared__ float all_$name[64]; // (rows)
//! end
//! each row_tensor
//! if written
    Tensor g$X = make_tensor(make_gmem_ptr($x), $rows_shape, $rows_stride); // (rows)
//! end
//! end
    for (int row = threadIdx.x / 32; row < $row_count; row += THREADS / 32) {
//! each stage
//! if not pass
        float const $name = $scalar_call;
//! elif one_pass and paired
        float const $name = $pair_second;
//! elif one_pass and pair
        auto const $acc = warp_fold<$k, $pair_type>(parts, row, $row_count, slices);
        float const $name = $pair_first;
//! else
        auto const $acc = warp_fold<$k, $combine>(parts, row, $row_count, slices);
        float const $name = $result;
//! end
        all_$name[row] = $name;
//! end
//! if rows
        if (blockIdx.x == 0 && threadIdx.x % 32 == 0) {
//! each row_output
            g$X(row) = $scalar_call;
//! end
        }
//! end
    }
    int const i = blockIdx.x * THREADS + threadIdx.x;
    bool const in = i < n / VEC;
//! each tensor
//! if written
//! if fixed
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(Int<VEC>{}, $vector_shape), make_stride($unit, $vector_stride)); // (VEC,n/VEC)
    Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
    copy(${copy}g$X(_, in ? i : 0), r$X);
//! else
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(Int<VEC>{}, $vector_shape, $rows), make_stride($unit, $vector_stride, $row_stride)); // (VEC,n/VEC,rows)
//! end
//! end
//! end
    __syncthreads();
#pragma unroll 8
    for (int row = $row_count - 1; row >= 0; --row) { // the last ones may still be in the cache
        if (!in)
            break;
//! each stage
        float const $name = all_$name[row];
//! end
//! each output_use
//! if not fixed
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(${copy}g$X(_, i, row), r$X);
//! end
//! end
//! each output
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            r$X(v) = $vector_call;
        copy(Vector{}, r$X, g$X(_, i, row));
//! end
    }
}
//! elif once
// What the passes found, once per row.
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    ${kernel}_rows($value_params, float *found)
{
    int const row = blockIdx.x;
//! if value_counts
    float const count = float(n);
//! end
//! each row_tensor
//! if written
    Tensor g$X = make_tensor(make_gmem_ptr($x), $rows_shape, $rows_stride); // (rows)
//! end
//! end
    Tensor gFound = make_tensor(make_gmem_ptr(found), make_shape(Int<$stages>{}, $row_count)); // (stages,rows)
//! each stage
//! include split_scalar
//! end
    if (threadIdx.x == 0) {
//! each stage
        gFound($at, row) = $name;
//! end
//! each row_output
        g$X(row) = $scalar_call;
//! end
    }
}

template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    ${kernel}_kernel($value_params, float *found)
{
    int const tiles = ceil_div(n / VEC, THREADS), block = gridDim.x - 1 - blockIdx.x; // what was read last first
    int const row = block / tiles, i = block % tiles * THREADS + threadIdx.x;
    if (i >= n / VEC)
        return;
//! each tensor
//! if written
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(Int<VEC>{}, $vector_shape, $rows), make_stride($unit, $vector_stride, $row_stride))(_, _, row); // (VEC,n/VEC)
//! end
//! end
    Tensor gFound = make_tensor(make_gmem_ptr(found), make_shape(Int<$stages>{}, $row_count)); // (stages,rows)
//! each output_use
    Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
    copy(${copy}g$X(_, i), r$X);
//! end
//! each row_tensor
//! if written
    Tensor g$X = make_tensor(make_gmem_ptr($x), $rows_shape, $rows_stride); // (rows)
//! end
//! end
//! each stage
    float const $name = gFound($at, row);
//! end
//! each output
    Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
    CUTE_UNROLL
    for (int v = 0; v < VEC; ++v)
        r$X(v) = $vector_call;
    copy(Vector{}, r$X, g$X(_, i));
//! end
}
//! else
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    ${kernel}_kernel($value_params)
{
//! if elements
    int const row = blockIdx.x / slices, slice = blockIdx.x % slices;
//! else
    int const row = blockIdx.x;
//! end
//! if value_counts
    float const count = float(n);
//! end
//! if elements
//! each tensor
//! if written
//! if vectorise
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(Int<VEC>{}, $vector_shape, $rows), make_stride($unit, $vector_stride, $row_stride))(_, _, row); // (VEC,n/VEC)
//! else
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape($shape, $rows), make_stride($stride, $row_stride))(_, row); // (n)
//! end
//! end
//! end
//! end
//! each row_tensor
//! if written
    Tensor g$X = make_tensor(make_gmem_ptr($x), $rows_shape, $rows_stride); // (rows)
//! end
//! end
//! each stage
//! if not pass
    float const $name = $scalar_call;
//! elif one_pass and paired
    float const $name = $pair_second;
//! elif one_pass and pair
    auto const $acc = fold<$k, THREADS, $pair_type>(parts, row, $row_count, slices);
    float const $name = $pair_first;
//! else
    auto const $acc = fold<$k, THREADS, $combine>(parts, row, $row_count, slices);
    $value const $name = $result;
//! end
//! end
//! if elements
//! if vectorise
    int const from = int(int64_t(n / VEC) * slice / slices);
    int const to = int(int64_t(n / VEC) * (slice + 1) / slices);
//! if unroll
#pragma unroll 4
//! end
    for (int i = from + threadIdx.x; i < to; i += THREADS) {
//! include row_vectors
    }
//! else
    int const from = int(int64_t(n) * slice / slices);
    int const to = int(int64_t(n) * (slice + 1) / slices);
    for (int i = from + threadIdx.x; i < to; i += THREADS) {
//! each output
        g$X(i) = $plain_call;
//! end
    }
//! end
//! end
//! if rows

//! if elements
    if (slice == 0 && threadIdx.x == 0) {
//! else
    if (threadIdx.x == 0) {
//! end
//! each row_output
        g$X(row) = $scalar_call;
//! end
    }
//! end
}
//! end
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
//! include row_plan
    // Enough blocks for the device, none with more than 65536 elements or fewer than 8192.
    int64_t slices = cutegen_max(cutegen_ceil_div(n, 65536), cutegen_ceil_div(16 * call->device.sm_count, $all_rows));
    slices = cutegen_max(1, cutegen_min(slices, n / 8192));
    float *parts = (float *)cutegen_workspace(call, $passes * ($all_rows) * slices * 12);
//! each stage
//! if not pass
//! elif joins
//! elif one_pass and paired
//! else
//! if share
    CUTEGEN_REQUIRE(call, rows % 2 == 0, "the rows must be even in number");
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_${pass_name}<256>), cutegen_dim3(rows / 2 * slices, 1, 1), cutegen_dim3(256, 1, 1), 0, $pass_args));
//! else
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_${pass_name}<$pass_threads>), cutegen_dim3(($all_rows) * slices, 1, 1), cutegen_dim3($pass_threads, 1, 1), 0, $pass_args));
//! end
//! end
//! end
//! if together
    CUTEGEN_REQUIRE(call, $all_rows <= 64, "a block knows at most 64 rows");
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<256>), cutegen_dim3(cutegen_ceil_div(n / $vec, 256), 1, 1), cutegen_dim3(256, 1, 1), 0, $value_args);
//! elif once
    float *found = (float *)cutegen_workspace(call, ($all_rows) * $stages * 4);
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_rows<128>), cutegen_dim3($all_rows, 1, 1), cutegen_dim3(128, 1, 1), 0, $value_args, found));
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<128>), cutegen_dim3(($all_rows) * cutegen_ceil_div(n / $vec, 128), 1, 1), cutegen_dim3(128, 1, 1), 0, $value_args, found);
//! elif elements
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<$pass_threads>), cutegen_dim3(($all_rows) * slices, 1, 1), cutegen_dim3($pass_threads, 1, 1), 0, $value_args);
//! else
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<256>), cutegen_dim3($all_rows, 1, 1), cutegen_dim3(256, 1, 1), 0, $value_args);
//! end
}
#endif
