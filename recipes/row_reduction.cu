// recipes/row_reduction.cu - reductions along rows, and what is computed from them: a block per row.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
// The graph comes as stages: a pass reduces an element function over the row, a scalar is computed
// once per row from earlier results. Then the outputs are written; a total is reduced over all rows.
//
//! recipe row_reduction: a block per row; each pass reduces an element function over the row
//! fact measured: times are measured, so that trying pays
//! fact vectors: 16-byte accesses are possible: unit strides, whole vectors
//! fact fits: a row fits into the registers of its block
//! fact whole: a row is exactly what the block's threads hold
//! fact reread: some tensor is read by more than one pass
//! fact pairs: two passes that one could do
//! fact maxsum: a maximum, then the sum of exponentials below it
//! fact moments: a mean, then the sum of squares about it
//! fact more: twice the threads can share a row evenly
//! fact fewer: half the threads can hold it
//! fact odd: rows begin anywhere, but their elements lie side by side
//! fact held: what a thread reads of a row fits into its registers
//! fact short: a warp is enough for a row
//! fact long: a row is worth a cluster, and the device has clusters
//! fact holds: a row fits into the registers of a cluster
//! fact narrow: values have 16 bits, so that a cluster holds them in half the registers
//! fact cluster_whole: a row is exactly what the cluster's threads hold
//! fact args: some pass finds a place
//! fact fast: some operator has a fast form
//! fact exponentials: some value is an exponential of a difference
//! fact keeps: the output is the exponential of a difference, scaled
//! fact backwards: the kernel before reads the same tensor, and its end may still be in the cache
//! fact elements: some output has a value per element
//! fact rows: some output has a value per row
//! fact totals: something is reduced over all rows
//! fact pass: (of a stage) it reduces; else it is a scalar
//! fact arg: (of a stage) it finds a place
//! fact pick: (of a stage) it takes one element of the row
//! fact pair: (of a stage) the first of two passes that one could do
//! fact paired: (of a stage) the second
//! fact kept: (of a tensor) read more than once, worth keeping in registers
//! fact uses_count: some result depends on the length of a row
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
//! step registers: keep the row in registers between the passes
//!   why: The row is read from memory once; the later passes cost no traffic.
//!   when: vectors and fits and reread
//!   needs: vectorise
//! step one_pass: find both values of a pair of passes in one
//!   why: A running value is corrected when the other one changes, which saves one reading of the row.
//!   when: pairs
//!   likely: not fits
//! step peel: read 16 bytes at a time between the ends of a row
//!   why: Rows that begin off a 16-byte boundary have a head and a tail of a few elements; all else is whole vectors.
//!   when: odd
//! step groups: compare vectors, and look for the place within the best one at the end
//!   why: An index is chosen once per vector and not once per element.
//!   when: args and vectors or args and odd
//! step unroll: have several loads under way before the first is used
//!   why: A thread that waits for each load before the next leaves the memory idle.
//!   when: measured and not fits or measured and not reread
//! step once: mark a row as read once
//!   why: It leaves the L1 cache first. Found by measuring: a third of a percent on an H200.
//!   when: measured and odd and held and not reread
//!   needs: peel unroll
//! step retain: read the row so that the L2 cache lets go of it last
//!   why: Found by measuring: what is written meanwhile gets on better, by three percent on an H200.
//!   when: measured and elements and vectors and fits and reread and not short
//!   likely: never
//!   needs: registers
//! step warps: give each row to one warp
//!   why: A warp needs no barrier, so the rows of a block do not wait for each other.
//!   when: short
//!   needs: shuffles
//! step cluster: share a row among the blocks of a cluster, in registers, through distributed shared memory
//!   why: Eight blocks hold a row that one cannot, so it is read once; they meet in each other's shared memory.
//!   when: long and vectors
//!   needs: shuffles vectorise
//!   excludes: registers retain warps
//! step fast_math: use the hardware's exponential and division
//!   why: A few instructions instead of many; the results stay within the accuracy of fp32.
//!   when: exponentials or fast
//! step keep_exponentials: keep the exponentials in place of the elements
//!   why: Each exponential is computed once; what is left for the output is a product.
//!   when: keeps
//!   needs: one_pass
//! step more_threads: try twice the threads per row
//!   why: Each has half as much to load and to keep; which number suits a device is found by measuring.
//!   when: more
//!   likely: never
//! step fewer_threads: try half the threads per row
//!   why: Each has more loads under way at once; which number suits a device is found by measuring.
//!   when: fewer
//!   likely: never
//!   excludes: more_threads
//! text
// $kernel: $ops, along rows.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
//! if cluster
#include <cute/arch/cluster_sm90.hpp>
//! end

using namespace cute;

//! include accumulators
//! if vectorise or peel
constexpr int VEC = $vec; // elements in 16 bytes
using Vector = AutoVectorizingCopyWithAssumedAlignment<128>;

//! end
//! if once
// Loads 16 bytes that are not read again.
struct ReadOnce {
    using SRegisters = uint128_t[1];
    using DRegisters = uint128_t[1];
    __device__ static void copy(uint128_t const &from, uint128_t &to)
    {
        reinterpret_cast<uint4 &>(to) = __ldcs(reinterpret_cast<uint4 const *>(&from));
    }
};
template <>
struct cute::Copy_Traits<ReadOnce> : Copy_Traits<UniversalCopy<uint128_t>> {};

//! end
//! if retain
// Loads 16 bytes that the L2 cache is to let go of last.
struct Retained {
    using SRegisters = uint128_t[1];
    using DRegisters = uint128_t[1];
    __device__ static void copy(uint128_t const &from, uint128_t &to)
    {
        uint64_t last;
        uint32_t *word = reinterpret_cast<uint32_t *>(&to);
        asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(last));
        asm volatile("ld.global.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                     : "l"(&from), "l"(last));
    }
};
template <>
struct cute::Copy_Traits<Retained> : Copy_Traits<UniversalCopy<uint128_t>> {};

//! end
//! if narrow and cluster and holds
// Has the compiler keep values as they were loaded, in half the registers, and convert them again.
template <class Values>
__device__ void as_loaded(Values &x)
{
    Tensor words = recast<uint32_t>(x);
    CUTE_UNROLL
    for (int i = 0; i < size(words); ++i)
        asm volatile("" : "+r"(words(i)));
}

//! end
//! if groups and vectorise or groups and peel
// The best of a vector in the sense of Acc.
template <class Acc, class Values>
__device__ float best_of(Values const &x)
{
    Acc best = Acc::none();
    CUTE_UNROLL
    for (int v = 0; v < size(x); ++v)
        best.add(x(v), v);
    return best.value;
}

//! end
//! if warps
// Combines what the lanes of a warp hold; all get the result.
template <int STAGE, int THREADS, class Acc>
__device__ Acc row_reduce(Acc acc)
{
    CUTE_UNROLL
    for (int lane = 16; lane > 0; lane /= 2)
        acc.merge(acc.from(lane));
    return acc;
}
//! elif cluster
// Combines what the threads of a cluster hold; all get the result. Every warp tells every block.
template <int STAGE, int THREADS, int CLUSTER, class Acc>
__device__ Acc row_reduce(Acc acc)
{
    constexpr int WARPS = THREADS / 32;
    __shared__ Acc parts[CLUSTER * WARPS]; // of this stage alone: a peer may still read the last one's
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    CUTE_UNROLL
    for (int d = 16; d > 0; d /= 2)
        acc.merge(acc.from(d));
    if constexpr (STAGE == 0)
        cluster_wait(); // every block of the cluster has begun
    if (lane < CLUSTER)
        *static_cast<Acc *>(__cluster_map_shared_rank(&parts[block_rank_in_cluster() * WARPS + warp], lane)) = acc;
    cluster_arrive();
    cluster_wait();
    acc = Acc::none();
    CUTE_UNROLL
    for (int k = 0; k < CLUSTER * WARPS; k += 32)
        if (k + lane < CLUSTER * WARPS)
            acc.merge(parts[k + lane]);
    CUTE_UNROLL
    for (int d = 16; d > 0; d /= 2)
        acc.merge(acc.from(d));
    return acc;
}
//! elif shuffles
//! if one_pass and moments and registers and whole
// Two that hold as many elements each: no division.
template <class Acc>
__device__ void meet(Acc &acc, Acc const &o)
{
    acc.merge(o);
}
__device__ inline void meet(Moments &acc, Moments const &o)
{
    float const apart = o.first - acc.first;
    acc.second += o.second + apart * apart * (acc.count * 0.5f);
    acc.first += apart * 0.5f;
    acc.count *= 2.0f;
}

//! end
// Combines what the threads of a block hold; all get the result.
template <int STAGE, int THREADS, class Acc>
__device__ Acc row_reduce(Acc acc)
{
    __shared__ Acc parts[THREADS / 32]; // of this stage alone
    CUTE_UNROLL
    for (int lane = 16; lane > 0; lane /= 2)
//! if one_pass and moments and registers and whole
        meet(acc, acc.from(lane));
//! else
        acc.merge(acc.from(lane));
//! end
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = acc;
    __syncthreads();
    acc = parts[threadIdx.x % (THREADS / 32)]; // one value per warp; every warp folds them
    CUTE_UNROLL
    for (int lane = THREADS / 64; lane > 0; lane /= 2)
//! if one_pass and moments and registers and whole
        meet(acc, acc.from(lane));
//! else
        acc.merge(acc.from(lane));
//! end
    return acc;
}
//! else
// Combines what the threads of a block hold; all get the result.
template <int STAGE, int THREADS, class Acc>
__device__ Acc row_reduce(Acc acc)
{
//! include block_tree
}
//! end

//! if cluster and holds
template <int THREADS, int CLUSTER, int ITEMS> // ITEMS: vectors per thread
__global__ void __launch_bounds__(THREADS, $cluster_blocks)
//! elif cluster
template <int THREADS, int CLUSTER>
__global__ void __launch_bounds__(THREADS)
//! elif registers
template <int THREADS, int ITEMS> // ITEMS: vectors per thread
__global__ void __launch_bounds__(THREADS)
//! else
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
//! end
    ${kernel}_kernel($params)
{
    static_assert(THREADS % 32 == 0 && (THREADS & (THREADS - 1)) == 0, "a power of two of whole warps");
//! if warps
    constexpr int WIDTH = 32; // threads per row
    int const row = blockIdx.x * (THREADS / 32) + threadIdx.x / 32, t = threadIdx.x % 32;
    if (row >= $row_count)
        return;
//! elif cluster
    constexpr int WIDTH = THREADS * CLUSTER; // threads per row
    int const row = blockIdx.x / CLUSTER, t = blockIdx.x % CLUSTER * THREADS + threadIdx.x;
    cluster_arrive_relaxed();
//! else
    constexpr int WIDTH = THREADS; // threads per row
//! if backwards
    int const row = gridDim.x - 1 - blockIdx.x, t = threadIdx.x; // what was read last first
//! else
    int const row = blockIdx.x, t = threadIdx.x;
//! end
//! end
//! if uses_count
    float const count = float(n);
//! end
//! each tensor
//! if vectorise
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(Int<VEC>{}, $vector_shape, $rows), make_stride($unit, $vector_stride, $row_stride))(_, _, row); // (VEC,n/VEC)
//! else
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape($shape, $rows), make_stride($stride, $row_stride))(_, row); // (n)
//! end
//! end
//! each row_tensor
    Tensor g$X = make_tensor(make_gmem_ptr($x), $rows_shape, $rows_stride); // (rows)
//! end
//! if peel
//! if unroll and held
    constexpr int ITEMS = ceil_div($row_vectors, WIDTH); // vectors per thread
//! end
//! each tensor
    int const off = int(reinterpret_cast<uintptr_t>(&g$X(0)) / sizeof($type) % VEC); // elements past a boundary
    int const head = min((VEC - off) % VEC, n), body = (n - head) / VEC;
    Tensor v$X = make_tensor(make_gmem_ptr(&g$X(0) + head), make_shape(Int<VEC>{}, body)); // (VEC,body)
//! end
//! end
//! if registers or cluster and holds

//! each tensor
//! if kept
    Tensor r$X = make_tensor<$type>(make_shape(Int<VEC>{}, Int<ITEMS>{})); // (VEC,ITEMS)
//! end
//! end
//! if registers and whole or cluster and cluster_whole
    CUTE_UNROLL
    for (int j = 0; j < ITEMS; ++j) {
//! each tensor
//! if kept and retain
        copy(Copy_Atom<Retained, $type>{}, g$X(_, t + j * WIDTH), r$X(_, j));
//! elif kept
        copy(Vector{}, g$X(_, t + j * WIDTH), r$X(_, j));
//! end
//! end
    }
//! else
    CUTE_UNROLL
    for (int j = 0; j < ITEMS; ++j) {
        int const i = t + j * WIDTH;
        if (i < n / VEC) {
//! each tensor
//! if kept and retain
            copy(Copy_Atom<Retained, $type>{}, g$X(_, i), r$X(_, j));
//! elif kept
            copy(Vector{}, g$X(_, i), r$X(_, j));
//! end
//! end
        }
    }
//! end
//! end
//! each stage
//! if pick
    int const place_$name = $place; // loaded before it is needed
//! each use
    $type const picked$X = g$X(place_$name);
//! end
//! end
//! end
//! each stage

//! if pick
    float const $name = $pick_call;
//! elif not pass
    float const $name = $scalar_call;
//! elif one_pass and paired
    float const $name = $pair_second;
//! else
//! if one_pass and pair
//! if keep_exponentials and registers and whole or keep_exponentials and cluster and cluster_whole
    float largest = -3.402823466e+38f; // in this warp
    CUTE_UNROLL
    for (int v = 0; v < size(r$keep); ++v)
        largest = fmaxf(largest, r$keep(v));
    CUTE_UNROLL
    for (int lane = 16; lane > 0; lane /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, lane));
    $pair_type $acc{largest, 0.0f};
    CUTE_UNROLL
    for (int v = 0; v < size(r$keep); ++v) {
        r$keep(v) = exponential(r$keep(v) - largest);
        $acc.second += r$keep(v);
    }
//! else
    $pair_type $acc = $pair_type::none();
//! if narrow and cluster and cluster_whole
    CUTE_UNROLL
    for (int j = 0; j < ITEMS; ++j) {
//! each use
//! if not kept
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(${copy}g$X(_, t + j * WIDTH), r$X);
//! end
//! end
        Tensor values = make_tensor<float>(Int<VEC>{}); // (VEC)
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            values(v) = $register_call;
        $acc.add(values);
    }
//! elif registers and whole or cluster and cluster_whole
    Tensor values$k = make_tensor<float>(make_shape(Int<VEC>{}, Int<ITEMS>{})); // (VEC,ITEMS)
    CUTE_UNROLL
    for (int j = 0; j < ITEMS; ++j) {
//! each use
//! if not kept
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(${copy}g$X(_, t + j * WIDTH), r$X);
//! end
//! end
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            values$k(v, j) = $register_call;
    }
    $acc.add(values$k);
//! elif registers or cluster and holds
    CUTE_UNROLL
    for (int j = 0; j < ITEMS; ++j) {
        int const i = t + j * WIDTH;
        if (i < n / VEC) {
//! each use
//! if not kept
            Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
            copy(${copy}g$X(_, i), r$X);
//! end
//! end
            Tensor values = make_tensor<float>(Int<VEC>{}); // (VEC)
            CUTE_UNROLL
            for (int v = 0; v < VEC; ++v)
                values(v) = $register_call;
            $acc.add(values);
        }
    }
//! elif vectorise
//! if unroll
#pragma unroll 4
//! end
    for (int i = t; i < n / VEC; i += WIDTH) {
//! each use
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(${copy}g$X(_, i), r$X);
//! end
        Tensor values = make_tensor<float>(Int<VEC>{}); // (VEC)
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            values(v) = $vector_call;
        $acc.add(values);
    }
//! else
//! if unroll
#pragma unroll 4
//! end
    for (int i = t; i < n; i += WIDTH) {
        Tensor values = make_tensor<float>(_1{}); // (1)
        values(0) = $plain_call;
        $acc.add(values);
    }
//! end
//! end
//! else
    $combine $acc = $combine::none();
//! if registers or cluster and holds
    CUTE_UNROLL
    for (int j = 0; j < ITEMS; ++j) {
        int const i = t + j * WIDTH;
//! if registers and not whole or cluster and not cluster_whole
        if (i >= n / VEC)
            break;
//! end
//! each use
//! if not kept
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(${copy}g$X(_, i), r$X);
//! end
//! end
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            $acc.add($register_call$vector_place);
    }
//! elif vectorise
//! if unroll
#pragma unroll 4
//! end
    for (int i = t; i < n / VEC; i += WIDTH) {
//! each use
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(${copy}g$X(_, i), r$X);
//! end
//! if groups and arg
        Tensor values = make_tensor<float>(Int<VEC>{}); // (VEC)
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            values(v) = $vector_call;
        $acc.add(best_of<$combine>(values), i * VEC);
//! else
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            $acc.add($vector_call$vector_place);
//! end
    }
//! elif peel
//! if unroll and held
//! each use
    Tensor ${acc}_held$X = make_tensor<$type>(make_shape(Int<VEC>{}, Int<ITEMS>{})); // (VEC,ITEMS)
    CUTE_UNROLL
    for (int j = 0; j < ITEMS; ++j)
        if (t + j * WIDTH < body)
//! if once
            copy(Copy_Atom<ReadOnce, $type>{}, v$X(_, t + j * WIDTH), ${acc}_held$X(_, j));
//! else
            copy(Vector{}, v$X(_, t + j * WIDTH), ${acc}_held$X(_, j));
//! end
//! end
//! end
    for (int i = t; i < head; i += WIDTH)
        $acc.add($plain_call$plain_place);
//! if unroll and held
    CUTE_UNROLL
    for (int j = 0; j < ITEMS; ++j) {
        int const k = t + j * WIDTH;
        if (k >= body)
            break;
//! each use
        Tensor r$X = ${acc}_held$X(_, j); // (VEC)
//! end
//! else
//! if unroll
#pragma unroll 4
//! end
    for (int k = t; k < body; k += WIDTH) {
//! each use
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(Vector{}, v$X(_, k), r$X);
//! end
//! end
//! if groups and arg
        Tensor values = make_tensor<float>(Int<VEC>{}); // (VEC)
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            values(v) = $vector_call;
        $acc.add(best_of<$combine>(values), head + k * VEC);
//! else
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            $acc.add($vector_call$peel_place);
//! end
    }
    for (int i = head + body * VEC + t; i < n; i += WIDTH)
        $acc.add($plain_call$plain_place);
//! else
//! if unroll
#pragma unroll 4
//! end
    for (int i = t; i < n; i += WIDTH)
        $acc.add($plain_call$plain_place);
//! end
//! end
//! if cluster
//! if narrow and holds
//! each tensor
//! if kept
    as_loaded(r$X);
//! end
//! end
//! end
    $acc = row_reduce<$k, THREADS, CLUSTER>($acc);
//! else
    $acc = row_reduce<$k, THREADS>($acc);
//! end
//! if one_pass and pair
    float const $name = $pair_first;
//! elif groups and arg and vectorise or groups and arg and peel
    int $name = $result; // where its vector begins, or the place itself
    CUTE_UNROLL
    for (int v = VEC - 1, first = $name; v >= 0; --v) {
        int const i = min(first + v, n - 1);
        float const here = $plain_call;
        $name = here == $acc.value || (here != here && $acc.value != $acc.value) ? i : $name;
    }
//! else
    $value const $name = $result;
//! end
//! end
//! end
//! if elements

//! if keep_exponentials and registers and whole or keep_exponentials and cluster and cluster_whole
    float const rescale = exponential(largest - $keep_max) * $keep_scale;
    CUTE_UNROLL
    for (int j = 0; j < ITEMS; ++j) {
        int const i = t + j * WIDTH;
//! each output
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            r$X(v) = r$keep(v, j) * rescale;
        copy(Vector{}, r$X, g$X(_, i));
//! end
    }
//! elif registers or cluster and holds
    CUTE_UNROLL
    for (int j = 0; j < ITEMS; ++j) {
        int const i = t + j * WIDTH;
//! if registers and not whole or cluster and not cluster_whole
        if (i >= n / VEC)
            break;
//! end
//! each output_use
//! if not kept
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(${copy}g$X(_, i), r$X);
//! end
//! end
//! each output
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            r$X(v) = $register_call;
        copy(Vector{}, r$X, g$X(_, i));
//! end
    }
//! elif vectorise
//! if unroll
#pragma unroll 4
//! end
    for (int i = t; i < n / VEC; i += WIDTH) {
//! include row_vectors
    }
//! else
//! if unroll
#pragma unroll 4
//! end
    for (int i = t; i < n; i += WIDTH) {
//! each output
        g$X(i) = $plain_call;
//! end
    }
//! end
//! end
//! if rows or totals

    if (t == 0) {
//! each row_output
        g$X(row) = $scalar_call;
//! end
//! each total
        $part[row] = $scalar_call;
//! end
    }
//! end
}
//! if totals

// Reduces the values of all rows.
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    ${kernel}_total($total_params)
{
    float const count = float(rows);
//! each total
    Tensor g$P = make_tensor(make_gmem_ptr($part), rows); // (rows)
    $combine $acc = $combine::none();
    __shared__ $combine ${acc}_parts[THREADS];
//! end
#pragma unroll 16
    for (int i = threadIdx.x; i < rows; i += THREADS) {
//! each total
        $acc.add(g$P(i));
//! end
    }
//! each total
    ${acc}_parts[threadIdx.x] = $acc;
//! end
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
//! each total
            ${acc}_parts[threadIdx.x].merge(${acc}_parts[threadIdx.x + half]);
//! end
        }
        __syncthreads();
    }
//! each total
    float const $name = $total_result;
//! end
    if (threadIdx.x == 0) {
//! each total_output
        $x[0] = $total_call;
//! end
    }
}
//! end
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
//! include row_plan
//! if peel and unroll and held
    CUTEGEN_REQUIRE(call, n <= $row_vectors * $vec, "a row must fit into the registers of its block");
//! end
//! each total
    float *$part = (float *)cutegen_workspace(call, ($all_rows) * 4);
//! end
//! if cluster and holds
    CUTEGEN_REQUIRE(call, n $cluster_exactly $cluster_threads * $cluster_size * $vec * $cluster_items, "a row must $cluster_fill the registers of a cluster");
    $launch CUTEGEN_LAUNCH_CLUSTER(call, (${kernel}_kernel<$cluster_threads, $cluster_size, $cluster_items>), cutegen_dim3(($all_rows) * $cluster_size, 1, 1), cutegen_dim3($cluster_threads, 1, 1), cutegen_dim3($cluster_size, 1, 1), 0, $args)$launch_end;
//! elif cluster
    $launch CUTEGEN_LAUNCH_CLUSTER(call, (${kernel}_kernel<$cluster_threads, $cluster_size>), cutegen_dim3(($all_rows) * $cluster_size, 1, 1), cutegen_dim3($cluster_threads, 1, 1), cutegen_dim3($cluster_size, 1, 1), 0, $args)$launch_end;
//! elif registers and warps
    CUTEGEN_REQUIRE(call, n $exactly 32 * $vec * $warp_items, "a row must $fill the registers of a warp");
    $launch CUTEGEN_LAUNCH(call, (${kernel}_kernel<128, $warp_items>), cutegen_dim3(cutegen_ceil_div($all_rows, 4), 1, 1), cutegen_dim3(128, 1, 1), 0, $args)$launch_end;
//! elif warps
    $launch CUTEGEN_LAUNCH(call, (${kernel}_kernel<128>), cutegen_dim3(cutegen_ceil_div($all_rows, 4), 1, 1), cutegen_dim3(128, 1, 1), 0, $args)$launch_end;
//! elif registers and more_threads
    CUTEGEN_REQUIRE(call, n $exactly $threads_more * $vec * $items_more, "a row must $fill the registers of its block");
    $launch CUTEGEN_LAUNCH(call, (${kernel}_kernel<$threads_more, $items_more>), cutegen_dim3($all_rows, 1, 1), cutegen_dim3($threads_more, 1, 1), 0, $args)$launch_end;
//! elif registers and fewer_threads
    CUTEGEN_REQUIRE(call, n $exactly $threads_fewer * $vec * $items_fewer, "a row must $fill the registers of its block");
    $launch CUTEGEN_LAUNCH(call, (${kernel}_kernel<$threads_fewer, $items_fewer>), cutegen_dim3($all_rows, 1, 1), cutegen_dim3($threads_fewer, 1, 1), 0, $args)$launch_end;
//! elif registers
    CUTEGEN_REQUIRE(call, n $exactly $threads * $vec * $items, "a row must $fill the registers of its block");
    $launch CUTEGEN_LAUNCH(call, (${kernel}_kernel<$threads, $items>), cutegen_dim3($all_rows, 1, 1), cutegen_dim3($threads, 1, 1), 0, $args)$launch_end;
//! elif more_threads
    $launch CUTEGEN_LAUNCH(call, (${kernel}_kernel<$threads_more>), cutegen_dim3($all_rows, 1, 1), cutegen_dim3($threads_more, 1, 1), 0, $args)$launch_end;
//! elif fewer_threads
    $launch CUTEGEN_LAUNCH(call, (${kernel}_kernel<$threads_fewer>), cutegen_dim3($all_rows, 1, 1), cutegen_dim3($threads_fewer, 1, 1), 0, $args)$launch_end;
//! else
    $launch CUTEGEN_LAUNCH(call, (${kernel}_kernel<$threads>), cutegen_dim3($all_rows, 1, 1), cutegen_dim3($threads, 1, 1), 0, $args)$launch_end;
//! end
//! if totals
    return CUTEGEN_LAUNCH(call, (${kernel}_total<1024>), cutegen_dim3(1, 1, 1), cutegen_dim3(1024, 1, 1), 0, $total_args);
//! end
}
#endif
