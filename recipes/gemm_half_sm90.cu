// recipes/gemm_half_sm90.cu - a 16-bit product on Hopper's tensor cores, accumulated in fp32.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
//
//! recipe gemm_half_sm90: C(m,n) = sum over k of A(m,k) * B(n,k) in fp16 or bf16, on sm_90a
//! fact batched: a product for each of several pairs of matrices
//! fact epilogue: pointwise operators follow the product
//! fact a_k_major: A is contiguous along k
//! fact a_m_major: A is contiguous along m
//! fact b_k_major: B is contiguous along k
//! fact b_n_major: B is contiguous along n
//! fact c_words: results are fp32
//! fact c_rounds: the product itself is of 16 bits, before what follows it
//! fact c_vectors: rows of C are contiguous and start on 16 bytes
//! fact fast: some operator of the epilogue has a fast form
//! fact few_tiles: the result has no more tiles of 128x256 than a device has processors
//!
//! step tensor: multiply on the tensor cores (wgmma), tiles brought by TMA
//!   why: wgmma reads both operands from shared memory, which TMA fills without registers.
//! step ring: fetch ahead through a ring of four slots
//!   why: A slot is filled while others are multiplied; the computing warps never wait for addresses.
//!   needs: tensor
//! step raster: walk the tiles in groups of 16 rows
//!   why: The tiles computed at the same time share rows of A and columns of B in L2.
//!   needs: tensor
//! step cluster: pair blocks, each fetching half of B for both
//!   why: Multicast halves the reads of B from L2.
//!   needs: ring
//! step slim: compute narrow tiles, and fetch further ahead
//!   why: The result has too few large tiles to occupy the device.
//!   when: few_tiles
//!   needs: ring
//!   excludes: cluster
//! step fast_math: use the hardware's exponential and division
//!   why: Fewer instructions per element; the results stay within the accuracy of 16 bits.
//!   when: epilogue and fast
//! step store: store C by TMA, from shared memory
//!   why: Whole lines are written, and a warp goes on as soon as its values are in shared memory.
//!   when: c_vectors
//!   needs: ring
//! step hold: keep a tile's sums in 16 bits and store them during the next tile's products
//!   why: What follows the product no longer keeps the tensor cores waiting. It begins with 16 bits, as PyTorch's does.
//!   when: c_rounds
//!   needs: store
//! text
// $kernel: $ops as C(m,n) = sum over k of A(m,k) * B(n,k).
#include <cutegen/kernel.h>

//! if tensor
constexpr int TILE_M = 128; // two warpgroups of 64 rows
//! if slim
constexpr int TILE_N = $slim;
//! else
constexpr int TILE_N = 256;
//! end
constexpr int TILE_K = 64;
//! if slim
constexpr int STAGES = 6; // tiles in shared memory
//! elif ring
constexpr int STAGES = 4; // tiles in shared memory
//! else
constexpr int STAGES = 1; // tiles in shared memory
//! end
//! if cluster
constexpr int CLUSTER = 2; // blocks along m that share B
//! else
constexpr int CLUSTER = 1; // blocks along m that share B
//! end
//! if raster
constexpr int GROUP = 16 / CLUSTER; // tiles of m walked together, or pairs of them
//! else
constexpr int GROUP = 1; // tiles of m walked together, or pairs of them
//! end
//! if store
//! if slim
constexpr int STORES = TILE_N < 128 ? 1 : 2; // parts of 16x64 on their way out, of each warp; places of a tile's own
//! else
constexpr int STORES = 2; // parts of 16x64 on their way out, of each warp
//! end
constexpr int SMEM_BYTES = 1024 + STAGES * (TILE_M + TILE_N) * TILE_K * 2 + 8 * STORES * 16 * 64 * 2 + 256;
//! else
constexpr int SMEM_BYTES = 1024 + STAGES * (TILE_M + TILE_N) * TILE_K * 2 + 256;
//! end
//! include gemm_majors

//! end
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
//! if tensor
#include <cutlass/arch/reg_reconfig.h>
//! if store
#include <cutlass/numeric_conversion.h>
//! end
//! end

using namespace cute;

//! include gemm_half_finish
//! if tensor
using Element = $a_type;

// (ROWS,TILE_K) in the order in which TMA brings it and wgmma reads it
template <bool K_MAJOR, int ROWS>
CUTE_HOST_DEVICE constexpr auto tile_layout()
{
    if constexpr (K_MAJOR)
        return tile_to_shape(GMMA::Layout_K_SW128_Atom<Element>{}, Shape<Int<ROWS>, Int<TILE_K>>{});
    else
        return tile_to_shape(GMMA::Layout_MN_SW128_Atom<Element>{}, Shape<Int<ROWS>, Int<TILE_K>>{},
                             Step<_2, _1>{});
}

// (ROWS,TILE_K,STAGES): some ROWS of a ring whose slots have ALL
template <bool K_MAJOR, int ROWS, int ALL>
CUTE_HOST_DEVICE constexpr auto ring_layout()
{
    auto const tile = tile_layout<K_MAJOR, ROWS>();
    return composition(tile.layout_a(), tile.offset(),
                       make_layout(get<0>(tile.layout_b()), get<1>(tile.layout_b()),
                                   make_layout(Int<STAGES>{}, Int<ALL * TILE_K>{})));
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

// Tells block `rank` of the cluster that a warpgroup here is done with a slot.
//! include ring_release

// Brings ROWS rows of a tile, to every block of the cluster or to this one.
template <bool K_MAJOR, int ROWS, bool EVERYWHERE>
__device__ inline void fetch(CUtensorMap const *map, uint64_t *full, Element *to, int row, int k, int l)
{
    constexpr uint64_t hint = 0x1000000000000000; // evict as usual
    constexpr uint16_t mask = (1 << CLUSTER) - 1;
    if constexpr (K_MAJOR) {
        if constexpr (EVERYWHERE)
            SM90_TMA_LOAD_MULTICAST_3D::copy(map, full, mask, hint, to, k, row, l);
        else
            SM90_TMA_LOAD_3D::copy(map, full, hint, to, k, row, l);
    } else {
        for (int i = 0; i < ROWS; i += 64) {
            if constexpr (EVERYWHERE)
                SM90_TMA_LOAD_MULTICAST_3D::copy(map, full, mask, hint, to + i * TILE_K, row + i, k, l);
            else
                SM90_TMA_LOAD_3D::copy(map, full, hint, to + i * TILE_K, row + i, k, l);
        }
    }
}

//! if store
// Two neighbouring values as they lie in memory.
__device__ inline unsigned pack(float x, float y)
{
    cutlass::Array<float, 2> from;
    from[0] = x, from[1] = y;
    auto const pair = cutlass::NumericArrayConverter<Element, float, 2>::convert(from);
    return reinterpret_cast<unsigned const &>(pair);
}

//! end
// Where a tile begins.
struct Corner {
    int m, n, l;
};

// The round-th tile of this cluster.
__device__ inline bool tile_of(int round, int M, int N, int L, Corner &tile)
{
    int const tiles_m = (M + CLUSTER * TILE_M - 1) / (CLUSTER * TILE_M), tiles_n = (N + TILE_N - 1) / TILE_N;
    int t = blockIdx.x / CLUSTER + round * (gridDim.x / CLUSTER);
    if (t >= tiles_m * tiles_n * L)
        return false;
    tile.l = t / (tiles_m * tiles_n);
    t -= tile.l * (tiles_m * tiles_n);
    int const first = t / (GROUP * tiles_n) * GROUP, high = cute::min(int(GROUP), tiles_m - first);
    t -= first * tiles_n;
    tile.m = (first + t % high) * (CLUSTER * TILE_M);
    tile.n = t / high * TILE_N;
    return true;
}

__global__ void __launch_bounds__(384, 1)
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
    uint128_t *smem_c = reinterpret_cast<uint128_t *>(smem_b + STAGES * TILE_N * TILE_K); // eight columns each
    uint64_t *full = reinterpret_cast<uint64_t *>(smem_c + 8 * STORES * 16 * 8), *empty = full + STAGES;
//! else
    uint64_t *full = reinterpret_cast<uint64_t *>(smem_b + STAGES * TILE_N * TILE_K), *empty = full + STAGES;
//! end
    int const rank = CLUSTER > 1 ? int(block_rank_in_cluster()) : 0;
    int const group = threadIdx.x / 128;
    Corner tile;

    if (threadIdx.x < STAGES) { // a thread for each slot
        initialize_barrier(full[threadIdx.x], 1);
        initialize_barrier(empty[threadIdx.x], 2 * CLUSTER);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    if constexpr (CLUSTER > 1)
        cluster_sync();
    else
        __syncthreads();

    if (group == 0) { // one thread fetches
        cutlass::arch::warpgroup_reg_dealloc<40>();
        Place p = {0, 1};
        for (int round = 0; threadIdx.x == 0 && tile_of(round, M, N, L, tile); ++round) {
#pragma unroll 1
            for (int k = 0; k < K; k += TILE_K) {
                constexpr int SHARE = TILE_N / CLUSTER; // of B, fetched by each block for all
                wait_barrier(empty[p.slot], p.turn);
                set_barrier_transaction_bytes(full[p.slot], (TILE_M + TILE_N) * TILE_K * sizeof(Element));
                fetch<A_K_MAJOR, TILE_M, false>(&map_a, &full[p.slot], smem_a + p.slot * TILE_M * TILE_K,
                                                tile.m + rank * TILE_M, k, $a_l);
                fetch<B_K_MAJOR, SHARE, (CLUSTER > 1)>(
                    &map_b, &full[p.slot], smem_b + (p.slot * TILE_N + rank * SHARE) * TILE_K,
                    tile.n + rank * SHARE, k, $b_l);
                p.next();
            }
        }
    } else { // two warpgroups compute
        cutlass::arch::warpgroup_reg_alloc<232>();
        int const half = group - 1, thread = threadIdx.x % 128, lane = threadIdx.x % 32, warp = thread / 32;
        constexpr auto MAJOR_A = A_K_MAJOR ? GMMA::Major::K : GMMA::Major::MN;
        constexpr auto MAJOR_B = B_K_MAJOR ? GMMA::Major::K : GMMA::Major::MN;
        constexpr int ROWS = 64; // of a warpgroup
//! if slim
        auto mma = make_tiled_mma(SM90_64x${slim}x16_F32${wgmma_type}_SS<MAJOR_A, MAJOR_B>{});
//! else
        auto mma = make_tiled_mma(SM90_64x256x16_F32${wgmma_type}_SS<MAJOR_A, MAJOR_B>{});
//! end
        auto thr = mma.get_slice(thread);
        Tensor sA = make_tensor(make_smem_ptr(smem_a + half * ROWS * TILE_K),
                                ring_layout<A_K_MAJOR, ROWS, TILE_M>()); // (ROWS,TILE_K,STAGES)
        Tensor sB = make_tensor(make_smem_ptr(smem_b),
                                ring_layout<B_K_MAJOR, TILE_N, TILE_N>()); // (TILE_N,TILE_K,STAGES)
        Tensor tCrA = thr.partition_fragment_A(sA); // (MMA,ROWS/64,TILE_K/16,STAGES)
        Tensor tCrB = thr.partition_fragment_B(sB); // (MMA,1,TILE_K/16,STAGES)
        Tensor acc = partition_fragment_C(mma, Shape<Int<ROWS>, Int<TILE_N>>{}); // (MMA,ROWS/64,1)
        int const length = (K + TILE_K - 1) / TILE_K; // of a sum, in slots
        Place p = {0, 0};
        int before; // the slot of the products that may still be running

        // Begins the products of a slot.
        auto const multiply = [&]() {
            wait_barrier(full[p.slot], p.turn);
            warpgroup_fence_operand(acc);
            warpgroup_arrive();
            CUTE_UNROLL
            for (int k = 0; k < TILE_K / 16; ++k) {
                gemm(mma, tCrA(_, _, k, p.slot), tCrB(_, _, k, p.slot), acc);
                mma.accumulate_ = GMMA::ScaleOut::One;
            }
            warpgroup_commit_batch();
            warpgroup_fence_operand(acc);
        };
        // Lets go of the slot before it, whose products have ended.
        auto const settle = [&]() {
//! if ring
            warpgroup_wait<1>();
            if (before >= 0 && thread < CLUSTER)
                release(empty[before], thread);
            before = p.slot;
//! else
            warpgroup_wait<0>();
            if (thread < CLUSTER)
                release(empty[p.slot], thread);
//! end
            __syncwarp(); // wgmma is for whole warps
            p.next();
        };
//! if store
        // What a warp sends out, its 16 rows and 64 columns at a time: (16,8,STORES) of eight columns
        smem_c += (half * 4 + warp) * STORES * 16 * 8;
        Tensor sC = make_tensor(make_smem_ptr(smem_c),
                                composition(Swizzle<3, 0, 3>{}, make_layout(Shape<_16, _8, Int<STORES>>{},
                                                                            Stride<_8, _1, Int<16 * 8>>{})));
//! if hold
        unsigned held[TILE_N / 4]; // sums of the tile before, two columns each
        Corner old;
//! end
        // Sends out 32 columns of a tile, two of these at a time. A thread has rows m and m + 8, and two neighbouring
        // columns of every eight.
        auto const put = [&](int part, Corner const &to) {
            int const l = to.l, row = to.m + rank * TILE_M + half * 64 + warp * 16, column = to.n + part * 32;
            int const place = part / 2 % STORES;
//! each leaf
            Tensor m$X = make_tensor(make_gmem_ptr($x$batch), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
            if (part % 2 == 0) {
                if (lane == 0)
                    tma_store_wait<STORES - 1>(); // what was here before is on its way
                __syncwarp();
            }
            CUTE_UNROLL
            for (int i = 0; i < 2; ++i) { // 16 columns
                unsigned v[4];
                CUTE_UNROLL
                for (int j = 0; j < 4; ++j) { // rows m or m + 8, the first or the second eight
                    int const pair = (part * 2 + i) * 4 + j;
//! if hold and not epilogue
                    v[j] = held[pair];
//! else
//! if hold
                    unsigned two = held[pair];
                    Element const *halves = reinterpret_cast<Element const *>(&two);
                    float value[2] = {float(halves[0]), float(halves[1])};
//! else
                    float value[2] = {acc(pair * 2, 0, 0), acc(pair * 2 + 1, 0, 0)};
//! end
//! if epilogue
                    // What lies outside of C is computed as its last row and columns are, and not stored.
                    [[maybe_unused]] int const m = cute::min(row + lane / 4 + j % 2 * 8, M - 1);
                    CUTE_UNROLL
                    for (int k = 0; k < 2; ++k) {
                        [[maybe_unused]] int const n = cute::min(column + i * 16 + j / 2 * 8 + lane % 4 * 2, N - 2) + k;
                        value[k] = ${kernel}_finish(value[k]$finish);
                    }
//! end
                    v[j] = pack(value[0], value[1]);
//! end
                }
                SM90_U32x4_STSM_N::copy(v[0], v[1], v[2], v[3], sC(lane % 16, part % 2 * 4 + i * 2 + lane / 16, place));
            }
            if (part % 2 == 1) {
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                __syncwarp();
                if (lane == 0) {
                    SM90_TMA_STORE_3D::copy(&map_c, smem_c + place * 16 * 8, column - 32, row, l);
                    tma_store_arrive();
                }
                __syncwarp(); // wgmma is for whole warps
            }
        };
//! end

//! if hold
        for (int round = 0;; ++round) { // a round more than there are tiles, for the last one's results
            bool const more = tile_of(round, M, N, L, tile);
            int const blocks = more ? length : 0;
            before = -1;
            mma.accumulate_ = GMMA::ScaleOut::Zero;
            CUTE_UNROLL
            for (int part = 0; part < TILE_N / 32; ++part) {
                if (part < blocks)
                    multiply();
                if (round > 0)
                    put(part, old);
                if (part < blocks)
                    settle();
            }
            if (!more)
                break;
#pragma unroll 1
            for (int block = TILE_N / 32; block < blocks; ++block) {
                multiply();
                settle();
            }
//! else
        for (int round = 0; tile_of(round, M, N, L, tile); ++round) {
            before = -1;
            mma.accumulate_ = GMMA::ScaleOut::Zero;
#pragma unroll 1
            for (int block = 0; block < length; ++block) {
                multiply();
                settle();
            }
//! end
            warpgroup_wait<0>();
            warpgroup_fence_operand(acc);
            if (before >= 0 && thread < CLUSTER)
                release(empty[before], thread);
            __syncwarp();

//! if hold
            CUTE_UNROLL
            for (int i = 0; i < TILE_N / 4; ++i)
                held[i] = pack(acc(i * 2, 0, 0), acc(i * 2 + 1, 0, 0));
            old = tile;
//! elif store
            CUTE_UNROLL
            for (int part = 0; part < TILE_N / 32; ++part)
                put(part, tile);
//! else
            [[maybe_unused]] int const l = tile.l;
            // A thread has rows m0 and m0 + 8 of each 64, and two neighbouring columns of every eight.
            int const row = tile.m + rank * TILE_M + half * 64 + warp * 16, m0 = row + lane / 4;
            int const n0 = tile.n + lane % 4 * 2;
            Tensor mC = make_tensor(make_gmem_ptr(C$c_batch), make_shape(M, N), make_stride($c_m, $c_n)); // (M,N)
//! each leaf
            Tensor m$X = make_tensor(make_gmem_ptr($x$batch), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
            bool const whole = row + ROWS - 48 <= M && tile.n + TILE_N <= N;
            bool const aligned = int64_t(stride<1>(mC)) == 1 && int64_t(stride<0>(mC)) % 8 == 0;
            CUTE_UNROLL
            for (int q = 0; q < ROWS / 32; ++q) {
                int const m = m0 + q / 2 * 64 + q % 2 * 8;
                CUTE_UNROLL
//! if c_words
                for (int j = 0; j < TILE_N / 8; ++j) { // eight columns: a pair in this thread
                    alignas(8) float pair[2];
                    CUTE_UNROLL
                    for (int i = 0; i < 2; ++i) {
                        [[maybe_unused]] int const n = n0 + j * 8 + i;
                        float value = acc(j * 4 + q % 2 * 2 + i, q / 2, 0);
//! if epilogue
                        if (whole || (m < M && n < N))
                            value = ${kernel}_finish(value$finish);
//! end
                        pair[i] = value;
                    }
                    if (whole && aligned) {
                        *reinterpret_cast<float2 *>(&mC(m, n0 + j * 8)) = make_float2(pair[0], pair[1]);
                    } else {
                        CUTE_UNROLL
                        for (int i = 0; i < 2; ++i)
                            if (m < M && n0 + j * 8 + i < N)
                                mC(m, n0 + j * 8 + i) = pair[i];
                    }
                }
//! else
                for (int j = 0; j < TILE_N / 32; ++j) { // 32 columns: a pair of each eight in this thread
                    alignas(4) Element pair[4][2];
                    CUTE_UNROLL
                    for (int i = 0; i < 8; ++i) {
                        int const n = n0 + j * 32 + i / 2 * 8 + i % 2;
                        float value = acc(j * 16 + i / 2 * 4 + q % 2 * 2 + i % 2, q / 2, 0);
//! if epilogue
                        if (whole || (m < M && n < N))
                            value = ${kernel}_finish(value$finish);
//! end
                        pair[i / 2][i % 2] = Element(value);
                    }
                    if (whole && aligned) {
                        // Four lanes exchange, so that each stores one group of eight columns.
                        unsigned v[4];
                        CUTE_UNROLL
                        for (int i = 0; i < 4; ++i)
                            v[i] = *reinterpret_cast<unsigned *>(pair[i]);
                        CUTE_UNROLL
                        for (int bit = 1; bit < 4; bit *= 2) {
                            CUTE_UNROLL
                            for (int i = 0; i < 4; ++i) {
                                if (i & bit)
                                    continue;
                                unsigned const x = __shfl_xor_sync(~0u, lane & bit ? v[i] : v[i | bit], bit);
                                if (lane & bit)
                                    v[i] = x;
                                else
                                    v[i | bit] = x;
                            }
                        }
                        *reinterpret_cast<uint4 *>(&mC(m, tile.n + j * 32 + lane % 4 * 8)) =
                            make_uint4(v[0], v[1], v[2], v[3]);
                    } else {
                        CUTE_UNROLL
                        for (int i = 0; i < 8; ++i) {
                            int const n = n0 + j * 32 + i / 2 * 8 + i % 2;
                            if (m < M && n < N)
                                mC(m, n) = pair[i / 2][i % 2];
                        }
                    }
                }
//! end
            }
            __syncwarp(); // wgmma is for whole warps
//! end
        }
//! if store
        tma_store_wait<0>(); // shared memory is read until then
//! end
    }
    if constexpr (CLUSTER > 1)
        cluster_sync(); // no block leaves while another may still signal to it
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
                                          $b_step, TILE_N / CLUSTER);
//! if store
    CUTEGEN_REQUIRE(call, N % 8 == 0 && $c_slow % 8 == 0, "rows of C must start on 16 bytes");
    struct cutegen_map map_c = matrix_map(call, CUTEGEN_DATA($c_type, C), 1, M, N, L, $c_slow, $c_step, 16);
//! end
    int64_t tiles = cutegen_ceil_div(M, TILE_M * CLUSTER) * cutegen_ceil_div(N, TILE_N) * L;
    int64_t blocks = cutegen_min(call->device.sm_count / CLUSTER, tiles) * CLUSTER;
    return CUTEGEN_LAUNCH_CLUSTER(call, ${kernel}_product, cutegen_dim3(blocks, 1, 1), cutegen_dim3(384, 1, 1),
                                  cutegen_dim3(CLUSTER, 1, 1), SMEM_BYTES, map_a, map_b,
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
