// recipes/gemm.cu - a matrix product on the FMA units: any sizes, any strides, a batch, an epilogue.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
// All tiled forms share one text; the steps change tile sizes, copy atoms and the number of stages.
//
//! recipe gemm: C(m,n) = sum over k of A(m,k) * B(n,k), accumulated in fp32
//! fact batched: a product per blockIdx.z
//! fact epilogue: pointwise operators follow the product
//! fact a_k_major: A is contiguous along k
//! fact a_m_major: A is contiguous along m
//! fact b_k_major: B is contiguous along k
//! fact b_n_major: B is contiguous along n
//! fact a_vectors: A can be read 16 bytes at a time
//! fact b_vectors: B can be read 16 bytes at a time
//! fact a_fragments: vectors of A run along m, so that a thread's part of a column is contiguous
//! fact b_fragments: vectors of B run along n, so that a thread's part of a row is contiguous
//! fact words: elements have 4 bytes, so that cp.async can move single ones
//! fact whole: the epilogue keeps all of the product
//! fact lower: only what lies on and below the diagonal is kept
//! fact upper: only what lies on and above the diagonal is kept
//! fact large: M and N fill several tiles of 128
//! fact a_changes: elements of A go through a function before they are multiplied
//! fact b_changes: elements of B go through a function before they are multiplied
//! fact narrow: A and B have elements the tensor cores take as they are
//! fact long_sum: sums in fp32 are long, and the result is small: they are added up in pieces
//! fact deep: the result has fewer tiles than a device has processors, and K is long
//!
//! step tiles: share tiles of A and B through shared memory
//!   why: Each element fetched from global memory is used by a whole row or column of threads.
//! step registers: compute 4x4 outputs per thread in registers
//!   why: Eight values read from shared memory feed sixteen multiply-adds instead of one each.
//!   needs: tiles
//! step vectorise: move 16 bytes per load from global to shared memory
//!   why: A quarter of the load instructions, and contiguous fragments are read as vectors too.
//!   when: a_vectors or b_vectors
//!   needs: registers
//! step pipeline: fetch the next tile with cp.async while computing on this one
//!   why: Two stages of shared memory hide the latency of global memory behind the arithmetic.
//!   when: words
//!   needs: registers
//! step padding: pad the tiles against bank conflicts
//!   why: Neighbouring threads read rows of B that are a power of two apart; four more floats spread them over the banks.
//!   when: b_k_major
//!   needs: registers
//! step split_k: divide K among blocks and add the parts afterwards
//!   why: The result has too few tiles to occupy the device; every block takes a part of each sum.
//!   when: deep and not lower and not upper
//!   needs: registers
//! step wide: compute 8x8 outputs per thread, 128x128 per block
//!   why: Sixteen values from shared memory feed sixty-four multiply-adds.
//!   when: large
//!   needs: registers
//! step tensor: multiply on the tensor cores (mma.sync)
//!   why: A warp multiplies fragments of 16x8 at several times the rate of the FMA units, sums in fp32.
//!   when: narrow
//!   needs: registers
//! step triangle: skip the tiles that are zero
//!   why: Half of the tiles lie on the side of the diagonal that is zero; they are written without computing.
//!   when: lower or upper
//!   needs: tiles
//! text
// $kernel: $ops as C(m,n) = sum over k of A(m,k) * B(n,k).
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

using namespace cute;

//! include gemm_finish
//! if a_changes
// What an element of A is multiplied as.
__device__ inline float ${kernel}_a(float x)
{
    $a_body
}

//! end
//! if b_changes
// What an element of B is multiplied as.
__device__ inline float ${kernel}_b(float x)
{
    $b_body
}

//! end
//! if tiles
// Copies this thread's part of a tile to shared memory; what lies outside of the matrix becomes zero.
// (row, col) is where the thread begins in the matrix, in elements of the tensors; the strides are
// from one of its elements to the next.
template <int ROW_STRIDE, int COL_STRIDE, class Global, class Shared>
__device__ inline void load_tile(Global const &tXgX, Shared &&tXsX, int row, int col, int rows, int cols)
{
    CUTE_UNROLL
    for (int i = 0; i < size<0>(tXsX); ++i) {
        CUTE_UNROLL
        for (int j = 0; j < size<1>(tXsX); ++j) {
            bool const inside = row + i * ROW_STRIDE < rows && col + j * COL_STRIDE < cols;
//! if pipeline
            using T = typename Global::value_type;
            SM80_CP_ASYNC_CACHEALWAYS_ZFILL<T>::copy(tXgX(i, j), tXsX(i, j), inside);
//! else
            if (inside)
                tXsX(i, j) = tXgX(i, j);
            else
                tXsX(i, j) = typename Global::value_type{};
//! end
        }
    }
}

template <int BLK_M, int BLK_N, int BLK_K>
__global__ void __launch_bounds__(256)
//! if split_k
    ${kernel}_kernel(float *partial, int parts, $params)
//! else
    ${kernel}_kernel($params)
//! end
{
    static_assert(BLK_M % 16 == 0 && BLK_N % 16 == 0 && BLK_K == 16, "16x16 threads share the tile");
//! if pipeline
    constexpr int STAGES = 2; // tiles in shared memory at a time
//! else
    constexpr int STAGES = 1; // tiles in shared memory at a time
//! end
//! if padding
    constexpr int PAD = 4; // elements between rows, against bank conflicts
//! else
    constexpr int PAD = 0; // elements between rows
//! end

//! else
template <int BLK_M, int BLK_N>
__global__ void __launch_bounds__(BLK_M * BLK_N)
    ${kernel}_kernel($params)
{
//! end
//! if batched and split_k
    int const l = blockIdx.z / parts; // which product of the batch
//! elif batched
    int const l = blockIdx.z; // which product of the batch
//! end
    Tensor mA = make_tensor(make_gmem_ptr(A$a_batch), make_shape(M, K), make_stride($a_m, $a_k)); // (M,K)
    Tensor mB = make_tensor(make_gmem_ptr(B$b_batch), make_shape(N, K), make_stride($b_n, $b_k)); // (N,K)
//! if split_k
    Tensor mP = make_tensor(make_gmem_ptr(partial + blockIdx.z * int64_t(M) * N), make_shape(M, N), make_stride(N, _1{})); // (M,N)
//! else
    Tensor mC = make_tensor(make_gmem_ptr(C$c_batch), make_shape(M, N), make_stride($c_m, $c_n)); // (M,N)
//! each leaf
    Tensor m$X = make_tensor(make_gmem_ptr($x$batch), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
//! end
//! if not tiles

    int const m = blockIdx.y * BLK_M + threadIdx.x / BLK_N;
    int const n = blockIdx.x * BLK_N + threadIdx.x % BLK_N;
    if (m >= M || n >= N)
        return;
    float acc = 0.0f;
    for (int k = 0; k < K; ++k)
        acc += ${a_take}mA(m, k)$a_taken * ${b_take}mB(n, k)$b_taken;
//! if epilogue
    mC(m, n) = $c_open${kernel}_finish(acc$finish)$c_close;
//! else
    mC(m, n) = ${c_open}acc$c_close;
//! end
}
//! else

    // The tiles of this block.
    int const bm = blockIdx.y, bn = blockIdx.x;
    Tensor gA = local_tile(mA, make_shape(Int<BLK_M>{}, Int<BLK_K>{}), make_coord(bm, _)); // (BLK_M,BLK_K,k)
    Tensor gB = local_tile(mB, make_shape(Int<BLK_N>{}, Int<BLK_K>{}), make_coord(bn, _)); // (BLK_N,BLK_K,k)

    // Shared memory keeps the orientation of global memory.
//! if a_m_major
    auto sA_layout = make_layout(make_shape(Int<BLK_M>{}, Int<BLK_K>{}, Int<STAGES>{}),
                                 make_stride(_1{}, Int<BLK_M + PAD>{}, Int<BLK_K * (BLK_M + PAD)>{})); // M-major
//! else
    auto sA_layout = make_layout(make_shape(Int<BLK_M>{}, Int<BLK_K>{}, Int<STAGES>{}),
                                 make_stride(Int<BLK_K + PAD>{}, _1{}, Int<BLK_M * (BLK_K + PAD)>{})); // K-major
//! end
//! if b_n_major
    auto sB_layout = make_layout(make_shape(Int<BLK_N>{}, Int<BLK_K>{}, Int<STAGES>{}),
                                 make_stride(_1{}, Int<BLK_N + PAD>{}, Int<BLK_K * (BLK_N + PAD)>{})); // N-major
//! else
    auto sB_layout = make_layout(make_shape(Int<BLK_N>{}, Int<BLK_K>{}, Int<STAGES>{}),
                                 make_stride(Int<BLK_K + PAD>{}, _1{}, Int<BLK_N * (BLK_K + PAD)>{})); // K-major
//! end
    __shared__ __align__(16) $a_type smem_a[cosize_v<decltype(sA_layout)>];
    __shared__ __align__(16) $b_type smem_b[cosize_v<decltype(sB_layout)>];
    Tensor sA = make_tensor(make_smem_ptr(smem_a), sA_layout); // (BLK_M,BLK_K,STAGES)
    Tensor sB = make_tensor(make_smem_ptr(smem_b), sB_layout); // (BLK_N,BLK_K,STAGES)

    // Which thread copies what.
//! if vectorise and a_vectors and a_m_major
    Tensor vA = recast<uint128_t>(gA); // (BLK_M/4,BLK_K,k)
    Tensor wA = recast<uint128_t>(sA); // (BLK_M/4,BLK_K,STAGES)
    auto thr_a = Layout<Shape<_16, _16>>{}; // neighbours along m
    Tensor tAgA = local_partition(vA, thr_a, threadIdx.x); // (THR_M,THR_K,k)
    Tensor tAsA = local_partition(wA, thr_a, threadIdx.x); // (THR_M,THR_K,STAGES)
//! elif vectorise and a_vectors
    Tensor vA = recast<uint128_t>(gA); // (BLK_M,BLK_K/4,k)
    Tensor wA = recast<uint128_t>(sA); // (BLK_M,BLK_K/4,STAGES)
    auto thr_a = Layout<Shape<_64, _4>, Stride<_4, _1>>{}; // neighbours along k
    Tensor tAgA = local_partition(vA, thr_a, threadIdx.x); // (THR_M,THR_K,k)
    Tensor tAsA = local_partition(wA, thr_a, threadIdx.x); // (THR_M,THR_K,STAGES)
//! elif a_m_major
    auto thr_a = Layout<Shape<_16, _16>>{}; // neighbours along m
    Tensor tAgA = local_partition(gA, thr_a, threadIdx.x); // (THR_M,THR_K,k)
    Tensor tAsA = local_partition(sA, thr_a, threadIdx.x); // (THR_M,THR_K,STAGES)
//! else
    auto thr_a = Layout<Shape<_16, _16>, Stride<_16, _1>>{}; // neighbours along k
    Tensor tAgA = local_partition(gA, thr_a, threadIdx.x); // (THR_M,THR_K,k)
    Tensor tAsA = local_partition(sA, thr_a, threadIdx.x); // (THR_M,THR_K,STAGES)
//! end
//! if vectorise and b_vectors and b_n_major
    Tensor vB = recast<uint128_t>(gB); // (BLK_N/4,BLK_K,k)
    Tensor wB = recast<uint128_t>(sB); // (BLK_N/4,BLK_K,STAGES)
    auto thr_b = Layout<Shape<_16, _16>>{}; // neighbours along n
    Tensor tBgB = local_partition(vB, thr_b, threadIdx.x); // (THR_N,THR_K,k)
    Tensor tBsB = local_partition(wB, thr_b, threadIdx.x); // (THR_N,THR_K,STAGES)
//! elif vectorise and b_vectors
    Tensor vB = recast<uint128_t>(gB); // (BLK_N,BLK_K/4,k)
    Tensor wB = recast<uint128_t>(sB); // (BLK_N,BLK_K/4,STAGES)
    auto thr_b = Layout<Shape<_64, _4>, Stride<_4, _1>>{}; // neighbours along k
    Tensor tBgB = local_partition(vB, thr_b, threadIdx.x); // (THR_N,THR_K,k)
    Tensor tBsB = local_partition(wB, thr_b, threadIdx.x); // (THR_N,THR_K,STAGES)
//! elif b_n_major
    auto thr_b = Layout<Shape<_16, _16>>{}; // neighbours along n
    Tensor tBgB = local_partition(gB, thr_b, threadIdx.x); // (THR_N,THR_K,k)
    Tensor tBsB = local_partition(sB, thr_b, threadIdx.x); // (THR_N,THR_K,STAGES)
//! else
    auto thr_b = Layout<Shape<_16, _16>, Stride<_16, _1>>{}; // neighbours along k
    Tensor tBgB = local_partition(gB, thr_b, threadIdx.x); // (THR_N,THR_K,k)
    Tensor tBsB = local_partition(sB, thr_b, threadIdx.x); // (THR_N,THR_K,STAGES)
//! end

//! if tensor
    // Which warp computes what: 2x4 warps.
    auto mma = make_tiled_mma($mma{}, Layout<Shape<_2, _4, _1>>{});
    auto thr = mma.get_slice(threadIdx.x);
    Tensor tCsA = thr.partition_A(sA); // (MMA,MMA_M,MMA_K,STAGES)
    Tensor tCsB = thr.partition_B(sB); // (MMA,MMA_N,MMA_K,STAGES)
    Tensor tCrA = thr.partition_fragment_A(sA(_, _, 0)); // (MMA,MMA_M,MMA_K)
    Tensor tCrB = thr.partition_fragment_B(sB(_, _, 0)); // (MMA,MMA_N,MMA_K)
    Tensor tCrC = partition_fragment_C(mma, make_shape(Int<BLK_M>{}, Int<BLK_N>{})); // (MMA,MMA_M,MMA_N)
    Tensor tCcC = thr.partition_C(make_identity_tensor(make_shape(Int<BLK_M>{}, Int<BLK_N>{}))); // (MMA,MMA_M,MMA_N)
//! else
    // Which thread computes what: 16x16 threads, neighbours along n.
    auto thr_c = Layout<Shape<_16, _16>, Stride<_16, _1>>{};
//! if vectorise and a_fragments
    Tensor tCsA = local_partition(wA, thr_c, threadIdx.x, Step<_1, X>{}); // (THR_M/4,BLK_K,STAGES)
    Tensor tCrA = make_tensor<float>(Int<BLK_M / 16>{}); // (THR_M)
    Tensor tCvA = recast<uint128_t>(tCrA); // (THR_M/4)
//! else
    Tensor tCsA = local_partition(sA, thr_c, threadIdx.x, Step<_1, X>{}); // (THR_M,BLK_K,STAGES)
    Tensor tCrA = make_tensor<float>(Int<BLK_M / 16>{}); // (THR_M)
//! end
//! if vectorise and b_fragments
    Tensor tCsB = local_partition(wB, thr_c, threadIdx.x, Step<X, _1>{}); // (THR_N/4,BLK_K,STAGES)
    Tensor tCrB = make_tensor<float>(Int<BLK_N / 16>{}); // (THR_N)
    Tensor tCvB = recast<uint128_t>(tCrB); // (THR_N/4)
//! else
    Tensor tCsB = local_partition(sB, thr_c, threadIdx.x, Step<X, _1>{}); // (THR_N,BLK_K,STAGES)
    Tensor tCrB = make_tensor<float>(Int<BLK_N / 16>{}); // (THR_N)
//! end
    Tensor tCrC = make_tensor<float>(make_shape(Int<BLK_M / 16>{}, Int<BLK_N / 16>{})); // (THR_M,THR_N)
//! end
    clear(tCrC);
//! if long_sum and registers and not tensor
    Tensor tCrS = make_tensor_like(tCrC); // (THR_M,THR_N): what is added up so far, without the last terms
    clear(tCrS);
//! end

    // Brings tiles of A and B to a stage of shared memory.
    auto const fetch = [&](int k_tile, int stage) {
//! if vectorise and a_vectors and a_m_major
        load_tile<16, 16>(tAgA(_, _, k_tile), tAsA(_, _, stage), bm * BLK_M / 4 + threadIdx.x % 16,
                          k_tile * BLK_K + threadIdx.x / 16, M / 4, K);
//! elif vectorise and a_vectors
        load_tile<64, 4>(tAgA(_, _, k_tile), tAsA(_, _, stage), bm * BLK_M + threadIdx.x / 4,
                         k_tile * BLK_K / 4 + threadIdx.x % 4, M, K / 4);
//! elif a_m_major
        load_tile<16, 16>(tAgA(_, _, k_tile), tAsA(_, _, stage), bm * BLK_M + threadIdx.x % 16,
                          k_tile * BLK_K + threadIdx.x / 16, M, K);
//! else
        load_tile<16, 16>(tAgA(_, _, k_tile), tAsA(_, _, stage), bm * BLK_M + threadIdx.x / 16,
                          k_tile * BLK_K + threadIdx.x % 16, M, K);
//! end
//! if vectorise and b_vectors and b_n_major
        load_tile<16, 16>(tBgB(_, _, k_tile), tBsB(_, _, stage), bn * BLK_N / 4 + threadIdx.x % 16,
                          k_tile * BLK_K + threadIdx.x / 16, N / 4, K);
//! elif vectorise and b_vectors
        load_tile<64, 4>(tBgB(_, _, k_tile), tBsB(_, _, stage), bn * BLK_N + threadIdx.x / 4,
                         k_tile * BLK_K / 4 + threadIdx.x % 4, N, K / 4);
//! elif b_n_major
        load_tile<16, 16>(tBgB(_, _, k_tile), tBsB(_, _, stage), bn * BLK_N + threadIdx.x % 16,
                          k_tile * BLK_K + threadIdx.x / 16, N, K);
//! else
        load_tile<16, 16>(tBgB(_, _, k_tile), tBsB(_, _, stage), bn * BLK_N + threadIdx.x / 16,
                          k_tile * BLK_K + threadIdx.x % 16, N, K);
//! end
//! if pipeline
        cp_async_fence();
//! end
    };

//! if triangle and lower
    bool const zero = bn * BLK_N > bm * BLK_M + (BLK_M - 1); // all of it above the diagonal
    int const first = 0, end = zero ? 0 : size<2>(gA); // tiles of k
//! elif triangle
    bool const zero = bm * BLK_M > bn * BLK_N + (BLK_N - 1); // all of it below the diagonal
    int const first = 0, end = zero ? 0 : size<2>(gA); // tiles of k
//! elif split_k
    int const part = blockIdx.z % parts, share = ceil_div(size<2>(gA), parts);
    int const first = part * share, end = cute::min(first + share, int(size<2>(gA))); // tiles of k
//! else
    int const first = 0, end = size<2>(gA); // tiles of k
//! end
//! if long_sum and registers and not tensor
    int const turn = cute::max(1, (end - first) / 12); // tiles of k in a piece of the sum
    int left = turn;
//! end
//! if pipeline
    if (first < end)
        fetch(first, first % STAGES);
    for (int k_tile = first; k_tile < end; ++k_tile) {
        int const stage = k_tile % STAGES;
        cp_async_wait<0>();
        __syncthreads(); // this tile has come, and all are done with the one before
        if (k_tile + 1 < end)
            fetch(k_tile + 1, (k_tile + 1) % STAGES);
//! else
    int const stage = 0;
    for (int k_tile = first; k_tile < end; ++k_tile) {
        fetch(k_tile, stage);
        __syncthreads();
//! end
//! if a_changes
        CUTE_UNROLL
        for (int i = 0; i < BLK_M * BLK_K / 256; ++i) {
            int const row = (threadIdx.x + i * 256) % BLK_M, k = (threadIdx.x + i * 256) / BLK_M;
            if (k_tile * BLK_K + k < K) // zeros behind the end stay zeros
                sA(row, k, stage) = $a_type(${a_take}sA(row, k, stage)$a_taken);
        }
//! end
//! if b_changes
        CUTE_UNROLL
        for (int i = 0; i < BLK_N * BLK_K / 256; ++i) {
            int const row = (threadIdx.x + i * 256) % BLK_N, k = (threadIdx.x + i * 256) / BLK_N;
            if (k_tile * BLK_K + k < K) // zeros behind the end stay zeros
                sB(row, k, stage) = $b_type(${b_take}sB(row, k, stage)$b_taken);
        }
//! end
//! if a_changes or b_changes
        __syncthreads();
//! end
//! if tensor
        copy(tCsA(_, _, _, stage), tCrA);
        copy(tCsB(_, _, _, stage), tCrB);
        gemm(mma, tCrA, tCrB, tCrC);
//! else
        CUTE_UNROLL
        for (int k = 0; k < BLK_K; ++k) {
//! if vectorise and a_fragments
            copy(tCsA(_, k, stage), tCvA);
//! else
            copy(tCsA(_, k, stage), tCrA);
//! end
//! if vectorise and b_fragments
            copy(tCsB(_, k, stage), tCvB);
//! else
            copy(tCsB(_, k, stage), tCrB);
//! end
            gemm(tCrA, tCrB, tCrC); // (THR_M) x (THR_N)
        }
//! end
//! if long_sum and registers and not tensor
        if (--left == 0) { // few terms are added to a large sum, and rounded as it is
            CUTE_UNROLL
            for (int i = 0; i < size(tCrC); ++i) {
                tCrS(i) += tCrC(i);
                tCrC(i) = 0.0f;
            }
            left = turn;
        }
//! end
//! if not pipeline
        __syncthreads(); // before the next tile overwrites this one
//! end
    }
//! if long_sum and registers and not tensor
    CUTE_UNROLL
    for (int i = 0; i < size(tCrC); ++i)
        tCrC(i) += tCrS(i);
//! end

//! if tensor
    CUTE_UNROLL
    for (int i = 0; i < size(tCrC); ++i) {
        int const m = bm * BLK_M + get<0>(tCcC(i)), n = bn * BLK_N + get<1>(tCcC(i));
        if (m < M && n < N)
//! if split_k
            mP(m, n) = tCrC(i);
//! elif epilogue
            mC(m, n) = $c_open${kernel}_finish(tCrC(i)$finish)$c_close;
//! else
            mC(m, n) = ${c_open}tCrC(i)$c_close;
//! end
    }
//! else
    CUTE_UNROLL
    for (int i = 0; i < size<0>(tCrC); ++i) {
        CUTE_UNROLL
        for (int j = 0; j < size<1>(tCrC); ++j) {
//! if vectorise and a_fragments
            int const m = bm * BLK_M + threadIdx.x / 16 * 4 + i / 4 * 64 + i % 4;
//! else
            int const m = bm * BLK_M + threadIdx.x / 16 + i * 16;
//! end
//! if vectorise and b_fragments
            int const n = bn * BLK_N + threadIdx.x % 16 * 4 + j / 4 * 64 + j % 4;
//! else
            int const n = bn * BLK_N + threadIdx.x % 16 + j * 16;
//! end
            if (m < M && n < N)
//! if split_k
                mP(m, n) = tCrC(i, j);
//! elif epilogue
                mC(m, n) = $c_open${kernel}_finish(tCrC(i, j)$finish)$c_close;
//! else
                mC(m, n) = ${c_open}tCrC(i, j)$c_close;
//! end
        }
    }
//! end
}
//! end
//! if split_k

// Adds the parts of every element, in order and in float64, and finishes it.
__global__ void __launch_bounds__(256)
    ${kernel}_add_parts(float const *partial, int parts, $params)
{
    int const i = blockIdx.x * 256 + threadIdx.x, m = i / N, n = i % N;
    if (i >= M * N)
        return;
//! if batched
    int const l = blockIdx.z; // which product of the batch
//! end
    Tensor mP = make_tensor(make_gmem_ptr(partial + int64_t(blockIdx.z) * parts * M * N), make_shape(M, N, parts),
                            make_stride(N, _1{}, int64_t(M) * N)); // (M,N,parts)
    Tensor mC = make_tensor(make_gmem_ptr(C$c_batch), make_shape(M, N), make_stride($c_m, $c_n)); // (M,N)
//! each leaf
    Tensor m$X = make_tensor(make_gmem_ptr($x$batch), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
    double total = 0.0;
    for (int part = 0; part < parts; ++part)
        total += double(mP(m, n, part));
    float const acc = float(total);
//! if epilogue
    mC(m, n) = $c_open${kernel}_finish(acc$finish)$c_close;
//! else
    mC(m, n) = ${c_open}acc$c_close;
//! end
}
//! end
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
//! include gemm_head
//! if batched
    int64_t L = $L;
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
//! if wide
    int64_t tile = 128;
//! elif registers
    int64_t tile = 64;
//! else
    int64_t tile = 16;
//! end
    int64_t tiles_m = cutegen_ceil_div(M, tile), tiles_n = cutegen_ceil_div(N, tile);
//! if split_k
    // As many parts as fill the device, each of some tiles of K.
    int64_t steps = cutegen_ceil_div(K, 16), blocks = tiles_m * tiles_n * $grid_z;
    int64_t most = cutegen_min(cutegen_max(1, 2 * call->device.sm_count / blocks), cutegen_ceil_div(steps, 4));
    int64_t parts = cutegen_ceil_div(steps, cutegen_ceil_div(steps, most));
    float *partial = (float *)cutegen_workspace(call, parts * $grid_z * M * N * 4);
//! if wide
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_kernel<128, 128, 16>), cutegen_dim3(tiles_n, tiles_m, parts * $grid_z),
                               cutegen_dim3(256, 1, 1), 0, partial, (int)parts, $args));
//! else
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_kernel<64, 64, 16>), cutegen_dim3(tiles_n, tiles_m, parts * $grid_z),
                               cutegen_dim3(256, 1, 1), 0, partial, (int)parts, $args));
//! end
    return CUTEGEN_LAUNCH(call, ${kernel}_add_parts, cutegen_dim3(cutegen_ceil_div(M * N, 256), 1, $grid_z),
                          cutegen_dim3(256, 1, 1), 0, (float const *)partial, (int)parts, $args);
//! elif wide
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<128, 128, 16>), cutegen_dim3(tiles_n, tiles_m, $grid_z),
                          cutegen_dim3(256, 1, 1), 0, $args);
//! elif registers
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<64, 64, 16>), cutegen_dim3(tiles_n, tiles_m, $grid_z),
                          cutegen_dim3(256, 1, 1), 0, $args);
//! elif tiles
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<16, 16, 16>), cutegen_dim3(tiles_n, tiles_m, $grid_z),
                          cutegen_dim3(256, 1, 1), 0, $args);
//! else
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<16, 16>), cutegen_dim3(tiles_n, tiles_m, $grid_z),
                          cutegen_dim3(256, 1, 1), 0, $args);
//! end
}
#endif
