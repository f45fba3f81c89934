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
//! fact fragments: vectors run along m or n, so that fragments are contiguous in shared memory
//! fact words: elements have 4 bytes, so that cp.async can move single ones
//! fact whole: the epilogue keeps all of the product
//! fact lower: only what lies on and below the diagonal is kept
//! fact upper: only what lies on and above the diagonal is kept
//! fact large: M and N fill several tiles of 128
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
//! step wide: compute 8x8 outputs per thread, 128x128 per block
//!   why: Sixteen values from shared memory feed sixty-four multiply-adds.
//!   when: large
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

//! if epilogue
// What becomes of one element of the product.
__device__ inline float ${kernel}_finish($finish_params)
{
    $finish_body
}

//! end
//! if tiles
// Copies one tile to shared memory; what lies outside of the matrix becomes zero.
template <class Copy, class Global, class Shared, class Coord, class Shape>
__device__ inline void load_tile(Copy const &how, Global const &tXgX, Shared &&tXsX, Coord const &tXcX,
                                 Shape const &shape)
{
    CUTE_UNROLL
    for (int m = 0; m < size<1>(tXsX); ++m) {
        CUTE_UNROLL
        for (int k = 0; k < size<2>(tXsX); ++k) {
            bool const inside = elem_less(tXcX(0, m, k), shape);
//! if pipeline
            copy(how.with(inside), tXgX(_, m, k), tXsX(_, m, k));
//! else
            if (inside)
                copy(how, tXgX(_, m, k), tXsX(_, m, k));
            else
                clear(tXsX(_, m, k));
//! end
        }
    }
}

template <int BLK_M, int BLK_N, int BLK_K>
__global__ void __launch_bounds__(256)
    ${kernel}_kernel($params)
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
//! if batched
    int const l = blockIdx.z; // which product of the batch
//! end
    Tensor mA = make_tensor(make_gmem_ptr(A$a_batch), make_shape(M, K), make_stride($a_m, $a_k)); // (M,K)
    Tensor mB = make_tensor(make_gmem_ptr(B$b_batch), make_shape(N, K), make_stride($b_n, $b_k)); // (N,K)
    Tensor mC = make_tensor(make_gmem_ptr(C$c_batch), make_shape(M, N), make_stride($c_m, $c_n)); // (M,N)
//! each leaf
    Tensor m$X = make_tensor(make_gmem_ptr($x$batch), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
//! if not tiles

    int const m = blockIdx.y * BLK_M + threadIdx.x / BLK_N;
    int const n = blockIdx.x * BLK_N + threadIdx.x % BLK_N;
    if (m >= M || n >= N)
        return;
    float acc = 0.0f;
    for (int k = 0; k < K; ++k)
        acc += ${a_open}mA(m, k)$a_close * ${b_open}mB(n, k)$b_close;
//! if epilogue
    mC(m, n) = $c_open${kernel}_finish(acc$finish_naive)$c_close;
//! else
    mC(m, n) = ${c_open}acc$c_close;
//! end
}
//! else

    // The tiles of this block.
    auto blk_mk = make_shape(Int<BLK_M>{}, Int<BLK_K>{});
    auto blk_nk = make_shape(Int<BLK_N>{}, Int<BLK_K>{});
    auto blk_mn = make_shape(Int<BLK_M>{}, Int<BLK_N>{});
    int const bm = blockIdx.y, bn = blockIdx.x;
    Tensor gA = local_tile(mA, blk_mk, make_coord(bm, _)); // (BLK_M,BLK_K,k)
    Tensor gB = local_tile(mB, blk_nk, make_coord(bn, _)); // (BLK_N,BLK_K,k)
    Tensor gC = local_tile(mC, blk_mn, make_coord(bm, bn)); // (BLK_M,BLK_N)
    Tensor cA = local_tile(make_identity_tensor(shape(mA)), blk_mk, make_coord(bm, _)); // (BLK_M,BLK_K,k) -> (m,k)
    Tensor cB = local_tile(make_identity_tensor(shape(mB)), blk_nk, make_coord(bn, _)); // (BLK_N,BLK_K,k) -> (n,k)
    Tensor cC = local_tile(make_identity_tensor(shape(mC)), blk_mn, make_coord(bm, bn)); // (BLK_M,BLK_N) -> (m,n)

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
//! if pipeline and vectorise and a_vectors
    using AtomA = Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>, $a_type>;
//! elif pipeline
    using AtomA = Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS_ZFILL<$a_type>, $a_type>;
//! elif vectorise and a_vectors
    using AtomA = Copy_Atom<UniversalCopy<uint128_t>, $a_type>;
//! else
    using AtomA = Copy_Atom<UniversalCopy<$a_type>, $a_type>;
//! end
//! if pipeline and vectorise and b_vectors
    using AtomB = Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>, $b_type>;
//! elif pipeline
    using AtomB = Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS_ZFILL<$b_type>, $b_type>;
//! elif vectorise and b_vectors
    using AtomB = Copy_Atom<UniversalCopy<uint128_t>, $b_type>;
//! else
    using AtomB = Copy_Atom<UniversalCopy<$b_type>, $b_type>;
//! end
//! if vectorise and a_vectors and a_m_major
    auto copy_a = make_tiled_copy(AtomA{}, Layout<Shape<_16, _16>>{}, Layout<Shape<_4, _1>>{}); // 64x16
//! elif vectorise and a_vectors
    auto copy_a = make_tiled_copy(AtomA{}, Layout<Shape<_64, _4>, Stride<_4, _1>>{}, Layout<Shape<_1, _4>>{}); // 64x16
//! elif a_m_major
    auto copy_a = make_tiled_copy(AtomA{}, Layout<Shape<_16, _16>>{}); // 16x16
//! else
    auto copy_a = make_tiled_copy(AtomA{}, Layout<Shape<_16, _16>, Stride<_16, _1>>{}); // 16x16
//! end
//! if vectorise and b_vectors and b_n_major
    auto copy_b = make_tiled_copy(AtomB{}, Layout<Shape<_16, _16>>{}, Layout<Shape<_4, _1>>{}); // 64x16
//! elif vectorise and b_vectors
    auto copy_b = make_tiled_copy(AtomB{}, Layout<Shape<_64, _4>, Stride<_4, _1>>{}, Layout<Shape<_1, _4>>{}); // 64x16
//! elif b_n_major
    auto copy_b = make_tiled_copy(AtomB{}, Layout<Shape<_16, _16>>{}); // 16x16
//! else
    auto copy_b = make_tiled_copy(AtomB{}, Layout<Shape<_16, _16>, Stride<_16, _1>>{}); // 16x16
//! end
    auto thr_a = copy_a.get_slice(threadIdx.x);
    auto thr_b = copy_b.get_slice(threadIdx.x);
    Tensor tAgA = thr_a.partition_S(gA); // (CPY,CPY_M,CPY_K,k)
    Tensor tAcA = thr_a.partition_S(cA); // (CPY,CPY_M,CPY_K,k)
    Tensor tAsA = thr_a.partition_D(sA); // (CPY,CPY_M,CPY_K,STAGES)
    Tensor tBgB = thr_b.partition_S(gB); // (CPY,CPY_N,CPY_K,k)
    Tensor tBcB = thr_b.partition_S(cB); // (CPY,CPY_N,CPY_K,k)
    Tensor tBsB = thr_b.partition_D(sB); // (CPY,CPY_N,CPY_K,STAGES)

    // Which thread computes what: 16x16 threads, neighbours along n.
//! if vectorise and fragments
    auto mma = make_tiled_mma(UniversalFMA<float>{}, Layout<Shape<_16, _16, _1>, Stride<_16, _1, _1>>{},
                              Tile<$perm_m, $perm_n, Underscore>{});
//! else
    auto mma = make_tiled_mma(UniversalFMA<float>{}, Layout<Shape<_16, _16, _1>, Stride<_16, _1, _1>>{});
//! end
    auto thr_mma = mma.get_slice(threadIdx.x);
    Tensor tCsA = thr_mma.partition_A(sA); // (MMA,MMA_M,MMA_K,STAGES)
    Tensor tCsB = thr_mma.partition_B(sB); // (MMA,MMA_N,MMA_K,STAGES)
    Tensor tCgC = thr_mma.partition_C(gC); // (MMA,MMA_M,MMA_N)
    Tensor tCcC = thr_mma.partition_C(cC); // (MMA,MMA_M,MMA_N)
    Tensor tCrA = make_tensor<float>(shape(tCsA(_, _, 0, 0))); // (MMA,MMA_M)
    Tensor tCrB = make_tensor<float>(shape(tCsB(_, _, 0, 0))); // (MMA,MMA_N)
    Tensor tCrC = make_tensor<float>(shape(tCgC)); // (MMA,MMA_M,MMA_N)
    clear(tCrC);

//! if triangle and lower
    bool const zero = bn * BLK_N > bm * BLK_M + (BLK_M - 1); // all of it above the diagonal
    int const k_tiles = zero ? 0 : size<2>(gA);
//! elif triangle
    bool const zero = bm * BLK_M > bn * BLK_N + (BLK_N - 1); // all of it below the diagonal
    int const k_tiles = zero ? 0 : size<2>(gA);
//! else
    int const k_tiles = size<2>(gA);
//! end
//! if pipeline and triangle
    if (k_tiles > 0) {
        load_tile(copy_a, tAgA(_, _, _, 0), tAsA(_, _, _, 0), tAcA(_, _, _, 0), shape(mA));
        load_tile(copy_b, tBgB(_, _, _, 0), tBsB(_, _, _, 0), tBcB(_, _, _, 0), shape(mB));
        cp_async_fence();
    }
//! elif pipeline
    load_tile(copy_a, tAgA(_, _, _, 0), tAsA(_, _, _, 0), tAcA(_, _, _, 0), shape(mA));
    load_tile(copy_b, tBgB(_, _, _, 0), tBsB(_, _, _, 0), tBcB(_, _, _, 0), shape(mB));
    cp_async_fence();
//! end
//! if pipeline
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
        int const stage = k_tile % STAGES;
        int const next = k_tile + 1;
        cp_async_wait<0>();
        __syncthreads(); // this tile has come, and all are done with the one before
        if (next < k_tiles) {
            load_tile(copy_a, tAgA(_, _, _, next), tAsA(_, _, _, next % STAGES), tAcA(_, _, _, next), shape(mA));
            load_tile(copy_b, tBgB(_, _, _, next), tBsB(_, _, _, next % STAGES), tBcB(_, _, _, next), shape(mB));
            cp_async_fence();
        }
//! else
    int const stage = 0;
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
        load_tile(copy_a, tAgA(_, _, _, k_tile), tAsA(_, _, _, stage), tAcA(_, _, _, k_tile), shape(mA));
        load_tile(copy_b, tBgB(_, _, _, k_tile), tBsB(_, _, _, stage), tBcB(_, _, _, k_tile), shape(mB));
        __syncthreads();
//! end
        CUTE_UNROLL
        for (int k = 0; k < BLK_K; ++k) {
//! if vectorise and fragments
            copy(AutoVectorizingCopyWithAssumedAlignment<128>{}, tCsA(_, _, k, stage), tCrA);
            copy(AutoVectorizingCopyWithAssumedAlignment<128>{}, tCsB(_, _, k, stage), tCrB);
//! else
            copy(tCsA(_, _, k, stage), tCrA);
            copy(tCsB(_, _, k, stage), tCrB);
//! end
            gemm(mma, tCrA, tCrB, tCrC);
        }
//! if not pipeline
        __syncthreads(); // before the next tile overwrites this one
//! end
    }

//! each leaf
    Tensor tCg$X = thr_mma.partition_C(local_tile(m$X, blk_mn, make_coord(bm, bn))); // (MMA,MMA_M,MMA_N)
//! end
    CUTE_UNROLL
    for (int i = 0; i < size(tCrC); ++i) {
        if (elem_less(tCcC(i), shape(mC)))
//! if epilogue
            tCgC(i) = $c_open${kernel}_finish(tCrC(i)$finish_tiled)$c_close;
//! else
            tCgC(i) = ${c_open}tCrC(i)$c_close;
//! end
    }
}
//! end
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *A = &call->in[$a_index]; // $a_name
    const struct cutegen_tensor *B = &call->in[$b_index]; // $b_name
    const struct cutegen_tensor *C = &call->out[0];
//! each leaf
    const struct cutegen_tensor *$x = &call->in[$k];
//! end

    CUTEGEN_REQUIRE(call, A->ndim == $a_ndim && B->ndim == $b_ndim && C->ndim == $c_ndim,
                    "A, B and C must be $a_ndim-, $b_ndim- and $c_ndim-dimensional");
//! each leaf
    CUTEGEN_REQUIRE(call, $x->ndim == $ndim, "$x must be $ndim-dimensional");
//! end
    int64_t M = $M;
    int64_t N = $N;
    int64_t K = $K;
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
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<128, 128, 16>),
                          cutegen_dim3(cutegen_ceil_div(N, 128), cutegen_ceil_div(M, 128), $grid_z),
                          cutegen_dim3(256, 1, 1), 0, $args);
//! elif registers
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<64, 64, 16>),
                          cutegen_dim3(cutegen_ceil_div(N, 64), cutegen_ceil_div(M, 64), $grid_z),
                          cutegen_dim3(256, 1, 1), 0, $args);
//! elif tiles
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<16, 16, 16>),
                          cutegen_dim3(cutegen_ceil_div(N, 16), cutegen_ceil_div(M, 16), $grid_z),
                          cutegen_dim3(256, 1, 1), 0, $args);
//! else
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<16, 16>),
                          cutegen_dim3(cutegen_ceil_div(N, 16), cutegen_ceil_div(M, 16), $grid_z),
                          cutegen_dim3(256, 1, 1), 0, $args);
//! end
}
#endif
