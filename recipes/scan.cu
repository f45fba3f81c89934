// recipes/scan.cu - running sums and products along a dimension.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
// A block takes a row in tiles and carries the last value on; where neighbouring rows lie together
// (`columns`), a thread takes one of them from end to end.
//
//! recipe scan: a block scans a row tile by tile and carries the last value on
//! fact measured: times are measured, so that trying pays
//! fact columns: neighbouring rows lie together: a thread takes a whole one
//! fact vectors: 16-byte accesses are possible: unit strides, whole vectors
//! fact fits: a row is exactly what the block's threads can hold
//! fact sum: it adds; else it multiplies
//! fact reverse: from the end to the beginning
//! fact exclusive: a running value ends before its element
//! fact finishes: something becomes of the running value before it is written
//!
//! step shuffles: scan within warps by shuffles
//!   why: Five shuffles replace the rounds through shared memory; two barriers remain per tile.
//!   when: not columns
//! step vectorise: move 16 bytes per load and store
//!   why: A quarter of the instructions, and a quarter of the tiles to carry a value through.
//!   when: vectors and not columns
//!   needs: shuffles
//! step registers: hold the whole row in registers and scan it once
//!   why: All loads are under way at once, and one scan of the warps' totals replaces the carrying.
//!   when: vectors and fits and not columns
//!   needs: shuffles vectorise
//! step unroll: load eight elements ahead
//!   why: The loads of several iterations are under way before the first is used.
//!   when: columns and measured
//! text
// $kernel: $ops, a running value along rows.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

using namespace cute;

//! if sum
using Run = float; // of a sum
__device__ inline Run none()
{
    return 0.0f;
}
__device__ inline Run combine(Run a, Run b)
{
    return a + b;
}
__device__ inline float value_of(Run a)
{
    return a;
}
__device__ inline Run shuffled_up(Run a, int lanes)
{
    return __shfl_up_sync(0xffffffff, a, lanes);
}
__device__ inline Run shuffled(Run a, int lane)
{
    return __shfl_sync(0xffffffff, a, lane);
}
//! else
// A running product, part * 2^power. Products of a tile alone may be beyond the range of a float where those from the
// beginning of the row are not: infinity times zero would make a NaN that no order from left to right makes.
struct Run {
    float part; // zero, not finite, or its absolute value in [1, 2)
    int power;
};
__device__ inline Run none()
{
    return {1.0f, 0};
}
__device__ inline Run run_of(float value)
{
    bool const small = fabsf(value) < 1.17549435e-38f; // zero, or too small for a normal number
    int const bits = __float_as_int(small ? value * 16777216.0f : value);
    int const exponent = (bits >> 23 & 255) - 127;
    bool const plain = exponent != -127 && exponent != 128;
    return {plain ? __int_as_float(bits - (exponent << 23)) : value, plain ? exponent - (small ? 24 : 0) : 0};
}
__device__ inline Run combine(Run a, Run b)
{
    float const product = a.part * b.part; // in [1, 4), zero or not finite
    bool const large = fabsf(product) >= 2.0f;
    return {large ? product * 0.5f : product, min(max(a.power + b.power + int(large), -(1 << 29)), 1 << 29)};
}
__device__ inline float value_of(Run a)
{
    int const power = min(max(a.power, -252), 254), half = power / 2; // zero or infinity beyond these
    return a.part * __int_as_float((half + 127) << 23) * __int_as_float((power - half + 127) << 23);
}
//! if vectorise
// Are products of these within the range of a float? Magnitudes in [2^-24, 2^24), or zero.
template <class Values>
__device__ inline bool moderate(Values const &x)
{
    bool all = size(x) <= 4; // products of more would be beyond it
    CUTE_UNROLL
    for (int v = 0; v < size(x); ++v)
        all = all && (x(v) == 0.0f || unsigned((__float_as_int(x(v)) >> 23 & 255) - 103) < 48u);
    return all;
}
template <class Values>
__device__ inline Run product_of(Values const &x)
{
    Run whole = none();
    if (moderate(x)) {
        float product = x(0);
        CUTE_UNROLL
        for (int v = 1; v < size(x); ++v)
            product *= x(v);
        return run_of(product);
    }
    CUTE_UNROLL
    for (int v = 0; v < size(x); ++v)
        whole = combine(whole, run_of(x(v)));
    return whole;
}
// Running products from `before` on, in place.
template <class Values>
__device__ inline void run_on(Run before, Values &&x)
{
    if (moderate(x)) {
        int const power = min(max(before.power, -252), 254), half = power / 2; // as value_of()
        float const low = __int_as_float((half + 127) << 23), high = __int_as_float((power - half + 127) << 23);
        float product = before.part;
        CUTE_UNROLL
        for (int v = 0; v < size(x); ++v) {
//! if exclusive
            float const here = product;
            product *= x(v);
            x(v) = here * low * high;
//! else
            product *= x(v);
            x(v) = product * low * high;
//! end
        }
        return;
    }
    CUTE_UNROLL
    for (int v = 0; v < size(x); ++v) {
//! if exclusive
        float const here = value_of(before);
        before = combine(before, run_of(x(v)));
        x(v) = here;
//! else
        before = combine(before, run_of(x(v)));
        x(v) = value_of(before);
//! end
    }
}
//! end
__device__ inline Run shuffled_up(Run a, int lanes)
{
    return {__shfl_up_sync(0xffffffff, a.part, lanes), __shfl_up_sync(0xffffffff, a.power, lanes)};
}
__device__ inline Run shuffled(Run a, int lane)
{
    return {__shfl_sync(0xffffffff, a.part, lane), __shfl_sync(0xffffffff, a.power, lane)};
}
//! end

//! each function
__device__ inline $value $function($function_params)
{
    $body
}

//! end
//! if finishes
__device__ inline float finished(float value)
{
    $finish_body
}

// What becomes of a running value.
__device__ inline $y_type finish(float value)
{
    return $y_type(finished(value));
}

//! end
//! if vectorise
constexpr int VEC = $vec; // elements in 16 bytes
using Vector = AutoVectorizingCopyWithAssumedAlignment<128>;

//! end
//! if columns
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    ${kernel}_kernel($params)
{
    int64_t const row = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (row >= $row_count)
        return;
//! each tensor
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape($shape, $rows), make_stride($stride, $row_stride))(_, row); // (n)
//! end
    Run run = none();
//! if sum
    float lost = 0.0f; // what rounding took from the sum (Kahan)
//! end
//! if unroll
#pragma unroll 8
//! end
    for (int k = 0; k < n; ++k) {
//! if reverse
        int const i = n - 1 - k;
//! else
        int const i = k;
//! end
//! if exclusive
        gY(i) = $cast(value_of(run));
//! end
//! if sum
        float const value = $plain_call - lost, next = run + value;
        lost = fabsf(next) < __int_as_float(0x7f800000) ? (next - run) - value : 0.0f;
        run = next;
//! else
        run = combine(run, run_of($plain_call));
//! end
//! if not exclusive
        gY(i) = $cast(value_of(run));
//! end
    }
}
//! else
//! if shuffles
// What the lanes before this one hold, combined; *all becomes what all of them hold.
__device__ inline Run warp_before(Run value, Run *all)
{
    int const lane = threadIdx.x % 32;
    CUTE_UNROLL
    for (int d = 1; d < 32; d *= 2) {
        Run const left = shuffled_up(value, d);
        value = lane >= d ? combine(left, value) : value;
    }
    *all = shuffled(value, 31);
    Run const left = shuffled_up(value, 1); // by a shuffle: subtracting would lose small values
    return lane ? left : none();
}

//! end
//! if registers
template <int THREADS, int ITEMS> // ITEMS: vectors per thread
__global__ void __launch_bounds__(THREADS)
    ${kernel}_kernel($params)
{
    constexpr int WARPS = THREADS / 32;
    static_assert(ITEMS * WARPS % 32 == 0, "the totals are scanned by whole warps");
    __shared__ Run totals[ITEMS * WARPS];
    int const row = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
//! each tensor
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(Int<VEC>{}, $vector_shape, $rows), make_stride($unit, $vector_stride, $row_stride))(_, _, row); // (VEC,n/VEC)
//! end
    Tensor values = make_tensor<float>(make_shape(Int<VEC>{}, Int<ITEMS>{})); // (VEC,ITEMS)
    Run before[ITEMS];
    CUTE_UNROLL
    for (int j = 0; j < ITEMS; ++j) {
        int const i = $vector_at;
//! each input
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(${copy}g$X(_, i), r$X);
//! end
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            values($v_at, j) = $vector_call;
    }
    CUTE_UNROLL
    for (int j = 0; j < ITEMS; ++j) {
        Run all;
//! if sum
        CUTE_UNROLL
        for (int v = 1; v < VEC; ++v)
            values(v, j) = combine(values(v - 1, j), values(v, j));
        before[j] = warp_before(values(VEC - 1, j), &all);
//! else
        before[j] = warp_before(product_of(values(_, j)), &all);
//! end
        if (lane == 0)
            totals[j * WARPS + warp] = all;
    }
    __syncthreads();
    if (warp == 0) {
        Run run = none();
        for (int k = 0; k < ITEMS * WARPS; k += 32) {
            Run all, left = warp_before(totals[k + lane], &all);
            totals[k + lane] = combine(run, left);
            run = combine(run, all);
        }
    }
    __syncthreads();
    CUTE_UNROLL
    for (int j = 0; j < ITEMS; ++j) {
        int const i = $vector_at;
        Tensor rY = make_tensor<$y_type>(Int<VEC>{}); // (VEC)
//! if sum
        Run const carry = combine(totals[j * WARPS + warp], before[j]);
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
//! if exclusive
            rY(v) = $cast(v ? combine(carry, values(v - 1, j)) : carry);
//! else
            rY(v) = $cast(combine(carry, values($v_at, j)));
//! end
//! else
        run_on(combine(totals[j * WARPS + warp], before[j]), values(_, j));
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            rY($v_at) = $cast(values(v, j));
//! end
        copy(Vector{}, rY, gY(_, i));
    }
}
//! else
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    ${kernel}_kernel($params)
{
//! if shuffles
    __shared__ Run totals[THREADS / 32];
//! else
    __shared__ Run values[THREADS];
//! end
    int const row = blockIdx.x;
//! each tensor
//! if vectorise
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(Int<VEC>{}, $vector_shape, $rows), make_stride($unit, $vector_stride, $row_stride))(_, _, row); // (VEC,n/VEC)
//! else
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape($shape, $rows), make_stride($stride, $row_stride))(_, row); // (n)
//! end
//! end
    Run run = none(); // of the tiles before this one
//! if vectorise
    for (int tile = 0; tile < n / VEC; tile += THREADS) {
        int const k = tile + threadIdx.x;
        bool const in = k < n / VEC;
        int const i = in ? $tile_vector : 0;
        Tensor values = make_tensor<float>(Int<VEC>{}); // (VEC)
//! each input
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(${copy}g$X(_, i), r$X);
//! end
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            values($v_at) = $vector_call;
//! if sum
        CUTE_UNROLL
        for (int v = 1; v < VEC; ++v)
            values(v) = combine(values(v - 1), values(v));
        Run all, before = warp_before(in ? values(VEC - 1) : none(), &all);
//! else
        Run all, before = warp_before(in ? product_of(values) : none(), &all);
//! end
//! else
    for (int tile = 0; tile < n; tile += THREADS) {
        int const k = tile + threadIdx.x;
        bool const in = k < n;
        int const i = in ? $tile_plain : 0;
//! if sum
        Run const value = in ? $plain_call : none();
//! else
        Run const value = in ? run_of($plain_call) : none();
//! end
//! if shuffles
        Run all, before = warp_before(value, &all);
//! end
//! end
//! if shuffles
        if (threadIdx.x % 32 == 0)
            totals[threadIdx.x / 32] = all;
        __syncthreads();
        Run next = run;
        CUTE_UNROLL
        for (int w = 0; w < THREADS / 32; ++w) {
            if (w == threadIdx.x / 32)
                before = combine(next, before);
            next = combine(next, totals[w]);
        }
        run = next;
//! if vectorise
        if (in) {
            Tensor rY = make_tensor<$y_type>(Int<VEC>{}); // (VEC)
//! if not sum
            run_on(before, values);
//! end
            CUTE_UNROLL
            for (int v = 0; v < VEC; ++v)
//! if not sum
                rY($v_at) = $cast(values(v));
//! elif exclusive
                rY(v) = $cast(v ? combine(before, values(v - 1)) : before);
//! else
                rY(v) = $cast(combine(before, values($v_at)));
//! end
            copy(Vector{}, rY, gY(_, i));
        }
//! else
        if (in)
//! if exclusive
            gY(i) = $cast(value_of(before));
//! else
            gY(i) = $cast(value_of(combine(before, value)));
//! end
//! end
        __syncthreads(); // before totals is used again
//! else
        values[threadIdx.x] = value;
        __syncthreads();
        for (int d = 1; d < THREADS; d *= 2) {
            Run const left = threadIdx.x >= d ? values[threadIdx.x - d] : none();
            __syncthreads();
            values[threadIdx.x] = combine(left, values[threadIdx.x]);
            __syncthreads();
        }
        if (in)
//! if exclusive
            gY(i) = $cast(value_of(combine(run, threadIdx.x ? values[threadIdx.x - 1] : none())));
//! else
            gY(i) = $cast(value_of(combine(run, values[threadIdx.x])));
//! end
        run = combine(run, values[THREADS - 1]);
        __syncthreads(); // before values is used again
//! end
    }
}
//! end
//! end
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
//! include row_plan
//! if columns
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<128>), cutegen_dim3(cutegen_ceil_div($all_rows, 128), 1, 1), cutegen_dim3(128, 1, 1), 0, $args);
//! elif registers
    CUTEGEN_REQUIRE(call, n == $threads * $vec * $items, "a row must fill the registers of its block");
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<$threads, $items>), cutegen_dim3($all_rows, 1, 1), cutegen_dim3($threads, 1, 1), 0, $args);
//! else
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<256>), cutegen_dim3($all_rows, 1, 1), cutegen_dim3(256, 1, 1), 0, $args);
//! end
}
#endif
