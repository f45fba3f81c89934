// recipes/generic.cu - what no other recipe covers: a thread, a warp or a block per result.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
// The kernels themselves come whole from src/expert/generic/: their loops and index arithmetic
// follow from the graph.
//
//! recipe generic: every result computed by itself, from an index
//! fact workspace: results between kernels lie in workspace
//! fact team_block: all threads of a block make one result
//! fact special: functions beyond CUDA's mathematics
//! fact sorts: rows are sorted, or their first elements found
//! fact scatters: places take the largest, or the product, of what is written to them
//! fact own_blocks: a block sorts a row, or a part of one
//!
//! step launch_shape: launch blocks of 128 threads
//!   why: Small blocks end and start more evenly, so the memory system never runs dry between waves.
//! text
// $kernel: $ops.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

using namespace cute;

constexpr int64_t INT64_MAX_ = 0x7fffffffffffffff, INT64_MIN_ = -INT64_MAX_ - 1;

// NaN is larger, and smaller, than everything: as in PyTorch.
template <class T>
__device__ T larger(T a, T b)
{
    return a > b || a != a ? a : b;
}

template <class T>
__device__ T smaller(T a, T b)
{
    return a < b || a != a ? a : b;
}

// A value and where it stands; the first of several equal ones is the better one.
template <class T>
struct Best {
    T value;
    int64_t at;
};

template <bool LARGEST, class T>
__device__ Best<T> better(Best<T> a, Best<T> b)
{
    if (a.at < 0 || b.at < 0)
        return a.at < 0 ? b : a;
    bool const a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan || b_nan)
        return a_nan && (!b_nan || a.at < b.at) ? a : b;
    if (a.value == b.value)
        return a.at < b.at ? a : b;
    return (a.value > b.value) == LARGEST ? a : b;
}

// One value of all threads of a team: a warp, or a block.
template <int TEAM, class T, class F>
__device__ T team_all(T v, F merge)
{
    for (int d = 16; d > 0; d /= 2)
        v = merge(v, __shfl_xor_sync(0xffffffff, v, d));
    if constexpr (TEAM > 32) {
        __shared__ T part[TEAM / 32];
        if (threadIdx.x % 32 == 0)
            part[threadIdx.x / 32] = v;
        __syncthreads();
        v = part[0];
        for (int w = 1; w < TEAM / 32; w++)
            v = merge(v, part[w]);
        __syncthreads();
    }
    return v;
}

template <int TEAM, class T>
__device__ T team_sum(T v)
{
    return team_all<TEAM>(v, [](T a, T b) { return a + b; });
}

template <int TEAM, class T>
__device__ T team_product(T v)
{
    return team_all<TEAM>(v, [](T a, T b) { return a * b; });
}

template <int TEAM, class T>
__device__ T team_max(T v)
{
    return team_all<TEAM>(v, [](T a, T b) { return larger(a, b); });
}

template <int TEAM, class T>
__device__ T team_min(T v)
{
    return team_all<TEAM>(v, [](T a, T b) { return smaller(a, b); });
}

template <int TEAM, bool LARGEST, class T>
__device__ Best<T> team_best(Best<T> v)
{
    for (int d = 16; d > 0; d /= 2) {
        Best<T> const other = {__shfl_xor_sync(0xffffffff, v.value, d), __shfl_xor_sync(0xffffffff, v.at, d)};
        v = better<LARGEST>(v, other);
    }
    if constexpr (TEAM > 32) {
        __shared__ T values[TEAM / 32];
        __shared__ int64_t places[TEAM / 32];
        if (threadIdx.x % 32 == 0) {
            values[threadIdx.x / 32] = v.value;
            places[threadIdx.x / 32] = v.at;
        }
        __syncthreads();
        for (int w = 0; w < TEAM / 32; w++)
            v = better<LARGEST>(v, Best<T>{values[w], places[w]});
        __syncthreads();
    }
    return v;
}

//! include special
//! include sorts
//! include scatters
//! each generic

// $makes
template <int THREADS>
__global__ void __launch_bounds__(THREADS) ${kernel}_$number($text
//! end
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
//! each check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
//! each scalar
    CUTEGEN_REQUIRE(call, call->scalar[$k].f == $value, "$name is written into the kernel");
//! end
//! if workspace
    char *ws = (char *)cutegen_workspace(call, $bytes);
//! end
//! each launch
//! if own_blocks
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_$number<$threads>), cutegen_dim3($own_blocks, 1, 1), cutegen_dim3($threads, 1, 1), $shared_bytes, $args));
//! elif team_block or launch_shape
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_$number<128>), cutegen_dim3($small_blocks, 1, 1), cutegen_dim3(128, 1, 1), 0, $args));
//! else
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_$number<256>), cutegen_dim3($blocks, 1, 1), cutegen_dim3(256, 1, 1), 0, $args));
//! end
//! end
    return 0;
}
#endif
