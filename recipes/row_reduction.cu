// recipes/row_reduction.cu - reductions along rows, and what is computed from them: a block per row.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
// The graph comes as stages: a pass reduces an element function over the row, a scalar is computed
// once per row from earlier results. Then the outputs are written.
//
//! recipe row_reduction: a block per row; each pass reduces an element function over the row
//! fact vectors: 16-byte accesses are possible: unit strides, whole vectors
//! fact fits: a row fits into the registers of its block
//! fact reread: some tensor is read by more than one pass
//! fact softmax: a maximum, then the sum of exponentials below it
//! fact elements: some output has a value per element
//! fact rows: some output has a value per row
//! fact pass: (of a stage) it reduces; else it is a scalar
//! fact pair: (of a stage) the maximum of a softmax
//! fact paired: (of a stage) the sum of a softmax
//! fact kept: (of a tensor) read more than once, worth keeping in registers
//! fact uses_count: some result depends on the length of a row
//! fact uses_sum: some pass adds
//! fact uses_max: some pass takes the maximum
//! fact uses_min: some pass takes the minimum
//!
//! step shuffles: reduce within warps by shuffles
//!   why: Five shuffles replace five rounds through shared memory, and two barriers remain of nine.
//! step vectorise: move 16 bytes per load and store
//!   why: A quarter of the load instructions for the same traffic.
//!   when: vectors
//! step registers: keep the row in registers between the passes
//!   why: The row is read from memory once; the later passes cost no traffic.
//!   when: vectors and fits and reread
//!   needs: vectorise
//! step online: find maximum and sum of exponentials in one pass
//!   why: The running sum is rescaled when a larger maximum is met, which saves one reading of the row.
//!   when: softmax and not fits
//! text
// $kernel: $ops, a block per row.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

using namespace cute;

//! if uses_sum
struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};

//! end
//! if uses_max
struct Max { // NaN wins
    __device__ float operator()(float a, float b) const { return a > b || a != a ? a : b; }
};

//! end
//! if uses_min
struct Min { // NaN wins
    __device__ float operator()(float a, float b) const { return a < b || a != a ? a : b; }
};

//! end
//! each function
__device__ inline $value $function($function_params)
{
    $body
}

//! end
// Combines one value of each thread; all get the result.
template <int THREADS, class Op>
__device__ float block_reduce(float value, Op op, float *shared)
{
//! if shuffles
    CUTE_UNROLL
    for (int lane = 16; lane > 0; lane /= 2)
        value = op(value, __shfl_xor_sync(0xffffffff, value, lane));
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = value;
    __syncthreads();
    value = shared[threadIdx.x % (THREADS / 32)]; // one value per warp; every warp folds them
    CUTE_UNROLL
    for (int lane = THREADS / 64; lane > 0; lane /= 2)
        value = op(value, __shfl_xor_sync(0xffffffff, value, lane));
    __syncthreads(); // before shared is used again
    return value;
//! else
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            shared[threadIdx.x] = op(shared[threadIdx.x], shared[threadIdx.x + half]);
        __syncthreads();
    }
    value = shared[0];
    __syncthreads(); // before shared is used again
    return value;
//! end
}

//! if vectorise
constexpr int VEC = $vec; // elements in 16 bytes
using Vector = AutoVectorizingCopyWithAssumedAlignment<128>;

//! end
//! if registers
template <int THREADS, int ITEMS> // ITEMS: vectors per thread
//! else
template <int THREADS>
//! end
__global__ void __launch_bounds__(THREADS)
    ${kernel}_kernel($params)
{
    static_assert(THREADS % 32 == 0 && (THREADS & (THREADS - 1)) == 0, "a power of two of whole warps");
//! if shuffles
    __shared__ float shared[THREADS / 32];
//! else
    __shared__ float shared[THREADS];
//! end
    int const row = blockIdx.x;
//! if uses_count
    float const count = float(n);
//! end
//! each tensor
//! if vectorise
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(Int<VEC>{}, n / VEC, $rows), make_stride($unit, $vector_stride, $row_stride))(_, _, row); // (VEC,n/VEC)
//! else
    Tensor g$X = make_tensor(make_gmem_ptr($x), make_shape(n, $rows), make_stride($stride, $row_stride))(_, row); // (n)
//! end
//! end
//! each row_tensor
    Tensor g$X = make_tensor(make_gmem_ptr($x), $rows, $row_stride); // (rows)
//! end
//! if registers

//! each tensor
//! if kept
    Tensor r$X = make_tensor<$type>(make_shape(Int<VEC>{}, Int<ITEMS>{})); // (VEC,ITEMS)
//! end
//! end
    CUTE_UNROLL
    for (int j = 0; j < ITEMS; ++j) {
        int const i = threadIdx.x + j * THREADS;
        if (i < n / VEC) {
//! each tensor
//! if kept
            copy(Vector{}, g$X(_, i), r$X(_, j));
//! end
//! end
        }
    }
//! end
//! each stage

//! if not pass
    float const $name = $scalar_call;
//! elif online and paired
    float const $name = $online_result;
//! elif online and pair
    float $name = -3.402823466e+38f;
    float $pair = 0.0f; // sum of exponentials below the running maximum
//! if vectorise
    for (int i = threadIdx.x; i < n / VEC; i += THREADS) {
//! each use
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(${copy}g$X(_, i), r$X);
//! end
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v) {
            float const value = $vector_call;
            if (value > $name) {
                $pair = $pair * expf($name - value) + 1.0f;
                $name = value;
            } else {
                $pair += expf(value - $name);
            }
        }
    }
//! else
    for (int i = threadIdx.x; i < n; i += THREADS) {
        float const value = $plain_call;
        if (value > $name) {
            $pair = $pair * expf($name - value) + 1.0f;
            $name = value;
        } else {
            $pair += expf(value - $name);
        }
    }
//! end
    float const own_$name = $name; // of this thread
    $name = block_reduce<THREADS>($name, Max{}, shared);
    $pair = block_reduce<THREADS>($pair * expf(own_$name - $name), Sum{}, shared);
//! else
    float $acc = $identity;
//! if registers
    CUTE_UNROLL
    for (int j = 0; j < ITEMS; ++j) {
        int const i = threadIdx.x + j * THREADS;
        if (i < n / VEC) {
//! each use
//! if not kept
            Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
            copy(${copy}g$X(_, i), r$X);
//! end
//! end
            CUTE_UNROLL
            for (int v = 0; v < VEC; ++v)
                $acc = $combine{}($acc, $register_call);
        }
    }
//! elif vectorise
    for (int i = threadIdx.x; i < n / VEC; i += THREADS) {
//! each use
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(${copy}g$X(_, i), r$X);
//! end
        CUTE_UNROLL
        for (int v = 0; v < VEC; ++v)
            $acc = $combine{}($acc, $vector_call);
    }
//! else
    for (int i = threadIdx.x; i < n; i += THREADS)
        $acc = $combine{}($acc, $plain_call);
//! end
    float const $name = $result;
//! end
//! end
//! if elements

//! if registers
    CUTE_UNROLL
    for (int j = 0; j < ITEMS; ++j) {
        int const i = threadIdx.x + j * THREADS;
        if (i < n / VEC) {
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
    }
//! elif vectorise
    for (int i = threadIdx.x; i < n / VEC; i += THREADS) {
//! each output_use
        Tensor r$X = make_tensor<$type>(Int<VEC>{}); // (VEC)
        copy(${copy}g$X(_, i), r$X);
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
    for (int i = threadIdx.x; i < n; i += THREADS) {
//! each output
        g$X(i) = $plain_call;
//! end
    }
//! end
//! end
//! if rows

    if (threadIdx.x == 0) {
//! each row_output
        g$X(row) = $scalar_call;
//! end
    }
//! end
}
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
    int64_t n = $n;
//! each row_mode
    int64_t rows$m = $size;
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
//! if registers
    CUTEGEN_REQUIRE(call, n <= $threads * $vec * $items, "a row must fit into the registers of its block");
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<$threads, $items>), cutegen_dim3($all_rows, 1, 1),
                          cutegen_dim3($threads, 1, 1), 0, $args);
//! else
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<$threads>), cutegen_dim3($all_rows, 1, 1),
                          cutegen_dim3($threads, 1, 1), 0, $args);
//! end
}
#endif
