// recipes/gemm_half_sm100.cu - a 16-bit product on Blackwell's tensor cores, accumulated in fp32 in tensor memory.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
//
//! recipe gemm_half_sm100: C(m,n) = sum over k of A(m,k) * B(n,k) in fp16 or bf16, on sm_100a
//! fact batched: a product for each of several pairs of matrices
//! fact epilogue: pointwise operators follow the product
//! fact a_k_major: A is contiguous along k
//! fact a_m_major: A is contiguous along m
//! fact b_k_major: B is contiguous along k
//! fact b_n_major: B is contiguous along n
//! fact c_vectors: rows of C are contiguous and start on 16 bytes
//! fact fast: some operator of the epilogue has a fast form
//! fact few_tiles: the result has no more tiles of 128x256 than a device has processors
//!
//! step tensor: multiply on the tensor cores (tcgen05), tiles brought by TMA
//!   why: One thread starts a product of whole tiles; its sums stay in tensor memory, and no registers hold them.
//! step ring: fetch ahead through a ring of four slots
//!   why: A slot is filled while others are multiplied; no warp waits for addresses.
//!   needs: tensor
//! step overlap: keep the sums of two tiles in tensor memory
//!   why: A tile is finished and stored during the next one's products.
//!   needs: ring
//! step raster: walk the tiles in groups of 16 rows
//!   why: The tiles computed at the same time share rows of A and columns of B in L2.
//!   needs: tensor
//! step pair: multiply in pairs of blocks, each holding half of B
//!   why: Two processors work as one on 256 rows, so each fetches and keeps half of B only.
//!   needs: ring
//! step slim: compute narrow tiles, and fetch further ahead
//!   why: The result has too few large tiles to occupy the device.
//!   when: few_tiles
//!   needs: ring
//!   excludes: pair
//! step fast_math: use the hardware's exponential and division
//!   why: Fewer instructions per element; the results stay within the accuracy of 16 bits.
//!   when: epilogue and fast
//! step store: store C by TMA, from shared memory
//!   why: Whole lines are written, and a warp goes on as soon as its values are in shared memory.
//!   when: c_vectors
//!   needs: ring
//! text
// $kernel: $ops as C(m,n) = sum over k of A(m,k) * B(n,k).
#include <cutegen/kernel.h>

//! if tensor
constexpr int TILE_M = 128; // rows of a block: the lanes of its tensor memory
//! if slim
constexpr int TILE_N = $slim;
//! else
constexpr int TILE_N = 256;
//! end
constexpr int TILE_K = 64;
//! if slim or pair
constexpr int STAGES = 6; // tiles in shared memory
//! elif ring
constexpr int STAGES = 4; // tiles in shared memory
//! else
constexpr int STAGES = 1; // tiles in shared memory
//! end
//! if pair
constexpr int PAIR = 2; // blocks along m that multiply together
//! else
constexpr int PAIR = 1; // blocks along m that multiply together
//! end
constexpr int SHARE = TILE_N / PAIR; // rows of B in a block
//! if overlap
constexpr int SUMS = 2; // tiles in tensor memory
//! else
constexpr int SUMS = 1; // tiles in tensor memory
//! end
//! if raster
constexpr int GROUP = 16 / PAIR; // tiles of m walked together, or pairs of them
//! else
constexpr int GROUP = 1; // tiles of m walked together, or pairs of them
//! end
//! if store
//! if slim
constexpr int STORES = TILE_N < 128 ? 1 : 2; // parts of 32x64 on their way out, of each warp; places of a tile's own
//! else
constexpr int STORES = 2; // parts of 32x64 on their way out, of each warp
//! end
constexpr int SMEM_BYTES = 1024 + STAGES * (TILE_M + SHARE) * TILE_K * 2 + 4 * STORES * 32 * 64 * 2 + 256;
//! else
constexpr int SMEM_BYTES = 1024 + STAGES * (TILE_M + SHARE) * TILE_K * 2 + 256;
//! end
//! include gemm_majors

//! end
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
//! if tensor
#include <cute/arch/tmem_allocator_sm100.hpp>
#include <cutlass/arch/barrier.h>
#include <cutlass/numeric_conversion.h>
//! end

using namespace cute;

//! include gemm_half_finish
//! if tensor
using Element = $a_type;

constexpr auto MAJOR_A = A_K_MAJOR ? UMMA::Major::K : UMMA::Major::MN;
constexpr auto MAJOR_B = B_K_MAJOR ? UMMA::Major::K : UMMA::Major::MN;
//! if pair
using Multiply = SM100_MMA_F16BF16_2x1SM_SS<Element, Element, float, 2 * TILE_M, TILE_N, MAJOR_A, MAJOR_B>;
using Columns = TMEM::Allocator2Sm;
//! else
using Multiply = SM100_MMA_F16BF16_SS<Element, Element, float, TILE_M, TILE_N, MAJOR_A, MAJOR_B>;
using Columns = TMEM::Allocator1Sm;
//! end

// ((ROWS,16),1,TILE_K/16,STAGES): a ring in the order in which TMA brings it and tcgen05 reads it
template <bool K_MAJOR, int ROWS>
CUTE_HOST_DEVICE constexpr auto ring_layout()
{
    using Parts = Shape<Shape<Int<ROWS>, _16>, _1, Int<TILE_K / 16>, Int<STAGES>>;
    if constexpr (K_MAJOR)
        return UMMA::tile_to_mma_shape(UMMA::Layout_K_SW128_Atom<Element>{}, Parts{});
    else
        return UMMA::tile_to_mma_shape(UMMA::Layout_MN_SW128_Atom<Element>{}, Parts{}, Step<_2, _1, _3>{});
}

// A place in the ring, and the parity of its turn.
struct Place {
    int slot, turn;
    __device__ void next()
    {
        if (++slot == STAGES)
            slot = 0, turn ^= 1;
    }
};

// What threads did in tensor memory comes before the arrival that follows.
__device__ inline void tensor_before_sync()
{
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

// What is done in tensor memory from here on comes after the wait before it.
__device__ inline void tensor_after_sync()
{
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// Tells the block that multiplies that a warp here has read its sums.
__device__ inline void release(uint64_t &barrier)
{
    asm volatile("{\n\t.reg .b32 there;\n\tmapa.shared::cluster.u32 there, %0, 0;\n\t"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n\t}" ::"r"(cast_smem_ptr_to_uint(&barrier))
                 : "memory");
}

// Tells a barrier, of a pair that of both blocks, when the products begun so far are done. For whole warps.
__device__ inline void when_done(uint64_t &barrier)
{
    if constexpr (PAIR > 1)
        cutlass::arch::umma_arrive_multicast_2x1SM(&barrier, 3);
    else
        cutlass::arch::umma_arrive(&barrier);
}

// Brings ROWS rows of a tile and tells the block that multiplies.
template <bool K_MAJOR, int ROWS>
__device__ inline void fetch(CUtensorMap const *map, uint64_t *full, Element *to, int row, int k, int l)
{
    constexpr uint64_t hint = 0x1000000000000000; // evict as usual
    using Load = conditional_t<(PAIR > 1), SM100_TMA_2SM_LOAD_3D, SM90_TMA_LOAD_3D>;
    if constexpr (K_MAJOR) {
        Load::copy(map, full, hint, to, k, row, l);
    } else {
        for (int i = 0; i < ROWS; i += 64)
            Load::copy(map, full, hint, to + i * TILE_K, row + i, k, l);
    }
}

// 32 columns of this thread's lane of tensor memory. For whole warps. (A copy by CuTe asserts, which kernels cannot.)
template <class Acc>
__device__ inline void load_sums(uint32_t from, Acc &acc) // (32)
{
    Tensor words = recast<uint32_t>(acc); // (32)
    detail::explode(SM100_TMEM_LOAD_32dp32b32x::copy, &from, seq<0>{}, words, make_seq<32>{});
    cutlass::arch::fence_view_async_tmem_load();
}

// Two neighbouring values as they lie in memory.
__device__ inline unsigned pack(float x, float y)
{
    cutlass::Array<float, 2> from;
    from[0] = x, from[1] = y;
    auto const pair = cutlass::NumericArrayConverter<Element, float, 2>::convert(from);
    return reinterpret_cast<unsigned const &>(pair);
}

// Where a tile begins.
struct Corner {
    int m, n, l;
};

// The round-th tile of this block, or pair of blocks.
__device__ inline bool tile_of(int round, int M, int N, int L, Corner &tile)
{
    int const tiles_m = (M + PAIR * TILE_M - 1) / (PAIR * TILE_M), tiles_n = (N + TILE_N - 1) / TILE_N;
    int t = blockIdx.x / PAIR + round * (gridDim.x / PAIR);
    if (t >= tiles_m * tiles_n * L)
        return false;
    tile.l = t / (tiles_m * tiles_n);
    t -= tile.l * (tiles_m * tiles_n);
    int const first = t / (GROUP * tiles_n) * GROUP, high = cute::min(int(GROUP), tiles_m - first);
    t -= first * tiles_n;
    tile.m = (first + t % high) * (PAIR * TILE_M);
    tile.n = t / high * TILE_N;
    return true;
}

// Four warps finish and store, one fetches, one multiplies.
__global__ void __launch_bounds__(192, 1)
    ${kernel}_product(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
//! if store
                      const __grid_constant__ CUtensorMap map_c,
//! end
                      int L, $params)
{
    extern __shared__ unsigned char memory[];
    unsigned const skip = -cast_smem_ptr_to_uint(memory) % 1024; // tiles start on 1024 bytes
    Element *smem_a = reinterpret_cast<Element *>(memory + skip);
    Element *smem_b = smem_a + STAGES * TILE_M * TILE_K;
//! if store
    uint128_t *smem_c = reinterpret_cast<uint128_t *>(smem_b + STAGES * SHARE * TILE_K); // eight columns each
    uint64_t *full = reinterpret_cast<uint64_t *>(smem_c + 4 * STORES * 32 * 8);
//! else
    uint64_t *full = reinterpret_cast<uint64_t *>(smem_b + STAGES * SHARE * TILE_K);
//! end
    uint64_t *empty = full + STAGES, *summed = empty + STAGES, *drained = summed + SUMS;
    uint32_t *columns = reinterpret_cast<uint32_t *>(drained + SUMS);
    int const rank = PAIR > 1 ? int(block_rank_in_cluster()) : 0;
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Corner tile;

    if (warp == 4 && lane < STAGES) { // a thread for each slot
        initialize_barrier(full[lane], 1);
        initialize_barrier(empty[lane], 1);
        if (lane < SUMS) {
            initialize_barrier(summed[lane], 1);
            initialize_barrier(drained[lane], 4 * PAIR); // warps
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    if (warp == 5) {
        Columns().allocate(SUMS * TILE_N, columns);
        Columns().release_allocation_lock();
    }
    tensor_before_sync();
    if constexpr (PAIR > 1)
        cluster_sync();
    else
        __syncthreads();
    tensor_after_sync();
    uint32_t const base = *columns;

    if (warp == 4) { // one thread fetches
        Place p = {0, 1};
        for (int round = 0; lane == 0 && tile_of(round, M, N, L, tile); ++round) {
#pragma unroll 1
            for (int k = 0; k < K; k += TILE_K) {
                wait_barrier(empty[p.slot], p.turn);
                if (rank == 0)
                    set_barrier_transaction_bytes(full[p.slot], PAIR * (TILE_M + SHARE) * TILE_K * sizeof(Element));
                fetch<A_K_MAJOR, TILE_M>(&map_a, &full[p.slot], smem_a + p.slot * TILE_M * TILE_K,
                                         tile.m + rank * TILE_M, k, $a_l);
                fetch<B_K_MAJOR, SHARE>(&map_b, &full[p.slot], smem_b + p.slot * SHARE * TILE_K,
                                        tile.n + rank * SHARE, k, $b_l);
                p.next();
            }
        }
        __syncwarp();
    } else if (warp == 5 && rank == 0) { // one warp multiplies, for both blocks of a pair
        auto mma = make_tiled_mma(Multiply{});
        Tensor sA = make_tensor(make_smem_ptr(smem_a), ring_layout<A_K_MAJOR, TILE_M>()); // (MMA,1,TILE_K/16,STAGES)
        Tensor sB = make_tensor(make_smem_ptr(smem_b), ring_layout<B_K_MAJOR, SHARE>());  // (MMA,1,TILE_K/16,STAGES)
        Tensor tCrA = mma.make_fragment_A(sA);                                            // (1,1,TILE_K/16,STAGES)
        Tensor tCrB = mma.make_fragment_B(sB);                                            // (1,1,TILE_K/16,STAGES)
        Tensor tCtC = partition_fragment_C(mma, Shape<Int<PAIR * TILE_M>, Int<TILE_N>>{}); // (MMA,1,1)
        Place p = {0, 0};
        for (int round = 0; tile_of(round, M, N, L, tile); ++round) {
            int const half = round % SUMS;
            wait_barrier(drained[half], round / SUMS % 2 ^ 1);
            tensor_after_sync();
            tCtC.data() = base + half * TILE_N;
            mma.accumulate_ = UMMA::ScaleOut::Zero;
#pragma unroll 1
            for (int k = 0; k < K; k += TILE_K) {
                wait_barrier(full[p.slot], p.turn);
                CUTE_UNROLL
                for (int i = 0; i < TILE_K / 16; ++i) {
                    gemm(mma, tCrA(_, _, i, p.slot), tCrB(_, _, i, p.slot), tCtC);
                    mma.accumulate_ = UMMA::ScaleOut::One;
                }
                when_done(empty[p.slot]);
                p.next();
            }
            when_done(summed[half]);
        }
    } else if (warp < 4) { // four warps finish what is in their lanes of tensor memory
        Tensor acc = make_tensor<float>(Shape<_32>{}); // (32): columns of a row
        int const row = rank * TILE_M + warp * 32 + lane;
//! if store
        // What a warp sends out, its 32 rows and 64 columns at a time: (32,8,STORES) of eight columns
        smem_c += warp * STORES * 32 * 8;
        Tensor sC = make_tensor(make_smem_ptr(smem_c),
                                composition(Swizzle<3, 0, 3>{}, make_layout(Shape<_32, _8, Int<STORES>>{},
                                                                            Stride<_8, _1, Int<32 * 8>>{})));
//! end
        for (int round = 0; tile_of(round, M, N, L, tile); ++round) {
            int const half = round % SUMS;
            [[maybe_unused]] int const l = tile.l;
//! if store and epilogue
            [[maybe_unused]] int const m = cute::min(tile.m + row, M - 1); // what lies outside of C is not stored
//! elif not store
            int const m = tile.m + row;
            Tensor mC = make_tensor(make_gmem_ptr(C$c_batch), make_shape(M, N), make_stride($c_m, $c_n)); // (M,N)
            bool const aligned = int64_t(stride<1>(mC)) == 1 && int64_t(stride<0>(mC)) % 8 == 0;
//! end
//! each leaf
            Tensor m$X = make_tensor(make_gmem_ptr($x$batch), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
            wait_barrier(summed[half], round / SUMS % 2);
            tensor_after_sync();
#pragma unroll 1
            for (int part = 0; part < TILE_N / 32; ++part) {
                int const column = tile.n + part * 32;
                load_sums(base + (warp * 32 << 16) + half * TILE_N + part * 32, acc);
                if (part == TILE_N / 32 - 1) { // the next tile's sums may come here
                    tensor_before_sync();
                    if (lane == 0)
                        release(drained[half]);
                    __syncwarp();
                }
//! if epilogue
                CUTE_UNROLL
                for (int i = 0; i < 32; ++i) {
//! if store
                    [[maybe_unused]] int const n = cute::min(column + i, N - 1);
                    acc(i) = ${kernel}_finish(acc(i)$finish);
//! else
                    [[maybe_unused]] int const n = column + i;
                    if (m < M && n < N)
                        acc(i) = ${kernel}_finish(acc(i)$finish);
//! end
                }
//! end
//! if store
                int const place = part / 2 % STORES;
                if (part % 2 == 0) {
                    if (lane == 0)
                        tma_store_wait<STORES - 1>(); // what was here before is on its way
                    __syncwarp();
                }
                CUTE_UNROLL
                for (int i = 0; i < 4; ++i) { // eight columns
                    alignas(16) unsigned v[4];
                    CUTE_UNROLL
                    for (int j = 0; j < 4; ++j)
                        v[j] = pack(acc(i * 8 + j * 2), acc(i * 8 + j * 2 + 1));
                    sC(lane, part % 2 * 4 + i, place) = *reinterpret_cast<uint128_t *>(v);
                }
                if (part % 2 == 1) {
                    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                    __syncwarp();
                    if (lane == 0) {
                        SM90_TMA_STORE_3D::copy(&map_c, smem_c + place * 32 * 8, column - 32, tile.m + row, l);
                        tma_store_arrive();
                    }
                    __syncwarp(); // tensor memory is read by whole warps
                }
//! else
                CUTE_UNROLL
                for (int i = 0; i < 32; i += 8) {
                    if (aligned && m < M && column + i + 8 <= N) {
                        alignas(16) unsigned v[4];
                        CUTE_UNROLL
                        for (int j = 0; j < 4; ++j)
                            v[j] = pack(acc(i + j * 2), acc(i + j * 2 + 1));
                        *reinterpret_cast<uint128_t *>(&mC(m, column + i)) = *reinterpret_cast<uint128_t *>(v);
                    } else {
                        CUTE_UNROLL
                        for (int j = 0; j < 8; ++j)
                            if (m < M && column + i + j < N)
                                mC(m, column + i + j) = Element(acc(i + j));
                    }
                }
                __syncwarp(); // tensor memory is read by whole warps
//! end
            }
        }
//! if store
        tma_store_wait<0>(); // shared memory is read until then
//! end
    }
    tensor_before_sync();
    if constexpr (PAIR > 1)
        cluster_sync(); // no block leaves while another may still signal to it
    else
        __syncthreads();
    tensor_after_sync();
    if (warp == 5)
        Columns().free(base, SUMS * TILE_N);
}
//! else
//! include gemm_half_plain
//! end
#endif

#ifdef CUTEGEN_HOST
//! if tensor
// A matrix for TMA: (K,rows,L) or (rows,K,L), the contiguous mode first.
//! include gemm_half_map

//! end
CUTEGEN_PLAN(call)
{
//! include gemm_half_checks
//! if tensor
    CUTEGEN_REQUIRE(call, cutegen_aligned(A, 16) && cutegen_aligned(B, 16) && cutegen_aligned(C, 16),
                    "A, B and C must start on 16 bytes");
    CUTEGEN_REQUIRE(call, $a_slow % 8 == 0 && $b_slow % 8 == 0, "rows must start on 16 bytes");
    struct cutegen_map map_a = matrix_map(call, CUTEGEN_DATA($a_type, A), A_K_MAJOR, M, K, $a_count, $a_slow,
                                          $a_step, TILE_M);
    struct cutegen_map map_b = matrix_map(call, CUTEGEN_DATA($b_type, B), B_K_MAJOR, N, K, $b_count, $b_slow,
                                          $b_step, SHARE);
//! if store
    CUTEGEN_REQUIRE(call, N % 8 == 0 && $c_slow % 8 == 0, "rows of C must start on 16 bytes");
    struct cutegen_map map_c = matrix_map(call, CUTEGEN_DATA($c_type, C), 1, M, N, L, $c_slow, $c_step, 32);
//! end
    int64_t tiles = cutegen_ceil_div(M, TILE_M * PAIR) * cutegen_ceil_div(N, TILE_N) * L;
    int64_t blocks = cutegen_min(call->device.sm_count / PAIR, tiles) * PAIR;
    return CUTEGEN_LAUNCH_CLUSTER(call, ${kernel}_product, cutegen_dim3(blocks, 1, 1), cutegen_dim3(192, 1, 1),
                                  cutegen_dim3(PAIR, 1, 1), SMEM_BYTES, map_a, map_b,
//! if store
                                  map_c,
//! end
                                  (int)L, $args);
//! else
    return CUTEGEN_LAUNCH(call, (${kernel}_kernel<16, 16>),
                          cutegen_dim3(cutegen_ceil_div(N, 16), cutegen_ceil_div(M, 16), L),
                          cutegen_dim3(256, 1, 1), 0, (int)L, $args);
//! end
}
#endif
