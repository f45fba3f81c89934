// recipes/gemm_sm90.cu - an fp32 product on Hopper's tensor cores, as accurate as fp32 arithmetic.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
//
// Rows of A and columns of B are scaled by powers of two and split into two fp16 parts, x = hi +
// lo, which together hold 23 bits. Three products (hi.lo, lo.hi, hi.hi) go through wgmma; every 64
// of K (or fewer, see TERMS) the tensor core's accumulator, which truncates, is added into fp32 registers. The
// split also takes statistics, and where those cannot rule out that bits were lost that matter (or something
// is not finite, or near the ends of the exponent range), the last kernel of the plan computes the
// product again in fp32.
//
//! recipe gemm_sm90: C(m,n) = sum over k of A(m,k) * B(n,k) in fp32, on tensor cores of sm_90a
//! fact weights: rows of A are weights of a softmax
//! fact batched: a product for each of several pairs of matrices
//! fact a_batched: A differs from product to product
//! fact b_batched: B differs from product to product
//! fact epilogue: pointwise operators follow the product
//! fact a_k_major: A is contiguous along k
//! fact a_m_major: A is contiguous along m
//! fact b_k_major: B is contiguous along k
//! fact b_n_major: B is contiguous along n
//! fact a_vectors: A can be read 16 bytes at a time
//! fact b_vectors: B can be read 16 bytes at a time
//! fact c_vectors: rows of C start on 16 bytes, and can be stored by TMA
//! fact few_tiles: the result has fewer tiles than a device has processors, and K is long
//! fact upper_upper: A and B are upper triangular
//! fact lower_lower: A and B are lower triangular
//! fact short_columns: a cluster's registers hold all of K for 32 columns
//! fact short_k: sums are so short that each 32 terms are added in fp32
//! fact short_parts: the result is so small that cuBLAS adds up short parts of K, and is more accurate than elsewhere
//! fact shortest_parts: it is smaller still, and K is not long
//! fact cut_matters: cuBLAS may divide K: the mean of what the tensor core's accumulator cuts off is added
//! fact long_sums: sums so long that K is divided to round less, wherever cuBLAS may divide it
//! fact few_columns: C has so few columns that A is split as often as it is read: inside the product that is cheaper
//! fact one_block: K is one block of 64 or less
//! fact one_sum: K is one sum of 32 or less
//! fact big_result: C is larger than L2
//! fact planes: the result is written as fp16 parts, which attention reads (compose/attention_parts.c)
//!
//! step tensor: split fp32 into two fp16 parts and multiply on the tensor cores (wgmma, TMA)
//!   why: Three fp16 products at sixteen times the rate of fp32 arithmetic give all bits that matter.
//! step ring: fetch ahead through rings of slots, fetching and computing in different warps
//!   why: A slot is filled by TMA while others are multiplied; the computing warps never wait for addresses.
//!   needs: tensor
//! step wide: compute tiles of 128x256, two pieces of 64x128 per warpgroup
//!   why: A third less traffic between L2 and shared memory for the same products.
//!   needs: ring
//! step raster: walk the tiles in groups of 16 rows
//!   why: The tiles computed at the same time share rows of A and columns of B in L2.
//!   when: not one_sum
//!   needs: ring
//! step cluster: pair blocks, each fetching one plane of B for both
//!   why: Multicast halves the reads of B from L2.
//!   when: not short_k
//!   needs: ring
//! step overlap: launch each kernel while the one before ends
//!   why: Programmatic dependent launch hides launch latency and barrier set-up.
//!   needs: tensor
//! step split_k: divide K among blocks and add the parts afterwards
//!   why: The result has too few tiles to occupy the device.
//!   when: few_tiles
//!   always: long_sums
//!   needs: ring
//! step triangle: skip the blocks of K that are zero
//!   why: Only a sixth of the products of two triangular matrices differs from zero; small tiles share it evenly.
//!   when: upper_upper or lower_lower
//!   needs: ring
//!   excludes: cluster wide
//! step fuse: split A in registers, on its way from shared memory into the tensor cores
//!   why: A is read once and never written as planes; its scales are per 64 of K, applied when sums are added.
//!   when: a_k_major and a_vectors and not upper_upper and not lower_lower
//!   likely: few_columns
//!   needs: wide
//! step store: store the result by TMA, out of shared memory
//!   why: Whole lines leave while the next ones are made ready; edges need no care.
//!   when: c_vectors
//!   needs: ring
//! step once: read columns once, held in the registers of a cluster until their scale is known
//!   why: What lies along m or n was read twice, once for the scales and once for the split.
//!   when: short_columns
//!   needs: tensor
//! step both: split A and B inside the product, tiles of 128x128
//!   why: Where operands are used only a few times, their planes cost more memory traffic than they save work.
//!   when: a_k_major and a_vectors and b_vectors and c_vectors and not short_k and not upper_upper and not lower_lower
//!   likely: few_tiles
//!   needs: ring
//!   excludes: wide cluster fuse store once triangle
//! text
// $kernel: $ops as C(m,n) = sum over k of A(m,k) * B(n,k).
#include <cutegen/kernel.h>

//! if tensor
constexpr int TILE_M = 128;   // two warpgroups of 64 rows
//! if planes
constexpr int PLANE_HEAD = $plane_head; // columns of a head of attention
constexpr int PIECE_N = 128 / PLANE_HEAD * PLANE_HEAD; // columns of one accumulator: whole heads
constexpr int HEADS = PIECE_N / PLANE_HEAD; // of a piece
//! else
constexpr int PIECE_N = 128;  // columns of one accumulator
//! end
//! if wide
constexpr int PIECES = 2;     // of a warpgroup, side by side
//! else
constexpr int PIECES = 1;     // of a warpgroup, side by side
//! end
constexpr int TILE_N = PIECE_N * PIECES;
constexpr int TILE_K = 64;    // of a slot
//! if shortest_parts and not short_k
constexpr int TERMS = 16;     // of K, between two additions into fp32 registers
//! elif short_parts and not cut_matters or short_k or cut_matters and both
constexpr int TERMS = 32;     // of K, between two additions into fp32 registers
//! else
constexpr int TERMS = 64;     // of K, between two additions into fp32 registers
//! end
//! if cut_matters and not both
constexpr float CUT = 1.8e-7f; // what TERMS positive products come out too small, on average
//! end
//! if both
constexpr int STAGES_A = 2;   // slots of 128x64, fp32
constexpr int STAGES_B = 4;   // slots of 128x64, fp32 and then hi and lo
constexpr int STORES = 2;     // parts of 16x32 on their way out, of each warp
constexpr int LEAD = 2 * TILE_K; // so far a warpgroup may begin a tile while the other still stores
//! elif fuse
constexpr int STAGES_A = 2;   // slots of 128x64, fp32
//! if store
constexpr int STAGES_B = 4;   // slots of 128x64, hi and lo
//! else
constexpr int STAGES_B = 5;   // slots of 128x64, hi and lo
//! end
//! elif store
constexpr int STAGES_A = 2;   // slots of 128x64, hi and lo
//! if short_k
constexpr int STAGES_B = 3;   // slots of 128x64, hi and lo
//! else
constexpr int STAGES_B = 4;   // slots of 128x64, hi and lo
//! end
//! elif ring
constexpr int STAGES_A = 3;   // slots of 128x64, hi and lo
constexpr int STAGES_B = 4;   // slots of 128x64, hi and lo
//! else
constexpr int STAGES_A = 1;   // slots of 128x64, hi and lo
constexpr int STAGES_B = 1;   // slots of 128x64, hi and lo
//! end
//! if one_block and not fuse
constexpr int STEPS = $k_steps;      // of TERMS: all of K
//! end
//! if store and not short_k
constexpr int LEAD = 2 * TILE_K; // so far a warpgroup may begin a tile while the other still stores
//! end
//! if store and short_k and not fuse
constexpr int STORES = 4;     // parts of 16x32 on their way out, of each warp
//! elif store
constexpr int STORES = 2;     // parts of 16x32 on their way out, of each warp
//! end
//! if cluster
constexpr int CLUSTER = 2;    // blocks along m that share B
//! else
constexpr int CLUSTER = 1;    // blocks along m that share B
//! end
//! if raster and short_k
constexpr int GROUP = 64;     // tiles of m walked together
//! elif raster
constexpr int GROUP = 16;     // tiles of m walked together
//! else
constexpr int GROUP = 1;      // tiles of m walked together
//! end
//! if both
constexpr int SMEM_BYTES = 1024 + (STAGES_A * TILE_M + STAGES_B * TILE_N) * TILE_K * 4 + 8 * STORES * 16 * 32 * 4 + 256;
//! elif store
constexpr int SMEM_BYTES = 1024 + (STAGES_A * TILE_M + STAGES_B * PIECE_N) * TILE_K * 4 + 8 * STORES * 16 * 32 * 4 + 256;
//! else
constexpr int SMEM_BYTES = 1024 + (STAGES_A * TILE_M + STAGES_B * PIECE_N) * TILE_K * 4 + 256;
//! end
//! include gemm_majors

//! end
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
//! if tensor
#include <cutlass/arch/reg_reconfig.h>
//! end

using namespace cute;

//! include gemm_finish
//! if tensor and not both
// ---- the split: x * 2^e = hi + lo -------------------------------------------------------
//! include gemm_split
//! end
//! if tensor
// ---- the product ---------------------------------------------------------------------------------

// (ROWS,TILE_K) of one plane, in the order in which TMA brings it and wgmma reads it
template <bool K_MAJOR, int ROWS>
CUTE_HOST_DEVICE constexpr auto tile_layout()
{
    if constexpr (K_MAJOR)
        return tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, Shape<Int<ROWS>, Int<TILE_K>>{});
    else
        return tile_to_shape(GMMA::Layout_MN_SW128_Atom<half_t>{}, Shape<Int<ROWS>, Int<TILE_K>>{}, Step<_2, _1>{});
}

// (ROWS,TILE_K,planes,STAGES): some ROWS of a ring whose slots have ALL
template <bool K_MAJOR, int ROWS, int ALL, int STAGES>
CUTE_HOST_DEVICE constexpr auto ring_layout()
{
    auto const tile = tile_layout<K_MAJOR, ROWS>();
    return composition(tile.layout_a(), tile.offset(),
                       make_layout(get<0>(tile.layout_b()), get<1>(tile.layout_b()),
                                   make_layout(_2{}, Int<ALL * TILE_K>{}),
                                   make_layout(Int<STAGES>{}, Int<2 * ALL * TILE_K>{})));
}

// A place in a ring, and the parity of its turn.
//! include ring_place

//! if not both
// Tells block `rank` of the cluster that a warpgroup here is done with a slot.
//! include ring_release

// Brings one plane of a tile; `mask` names the blocks of the cluster that get it.
template <bool K_MAJOR, bool EVERYWHERE>
__device__ inline void fetch_plane(CUtensorMap const *map, uint64_t *full, half_t *to, int row, int k, int l, int plane)
{
    constexpr uint64_t hint = 0x1000000000000000; // evict as usual
    constexpr uint16_t mask = (1 << CLUSTER) - 1;
    if constexpr (K_MAJOR && EVERYWHERE)
        SM90_TMA_LOAD_MULTICAST_4D::copy(map, full, mask, hint, to, k, row, l, plane);
    else if constexpr (K_MAJOR)
        SM90_TMA_LOAD_4D::copy(map, full, hint, to, k, row, l, plane);
    else if constexpr (EVERYWHERE)
        SM90_TMA_LOAD_MULTICAST_5D::copy(map, full, mask, hint, to, 0, k, row / 64, l, plane);
    else
        SM90_TMA_LOAD_5D::copy(map, full, hint, to, 0, k, row / 64, l, plane);
}

//! end
//! if store or planes
// Not to be put off until it is needed.
__device__ inline float2 fetch_scales(float const *from)
{
    float2 v;
    asm volatile("ld.global.nc.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "l"(from));
    return v;
}

//! end
//! if cut_matters and not both
// Adds what the accumulator has cut off a sum, where the row of A and the column of B are marked.
__device__ inline float whole_sum(float sum, float cut, float scale_b)
{
    return fmaf(sum, __uint_as_float(__float_as_uint(cut) & unsigned(__float_as_int(scale_b) >> 31)), sum);
}

//! end
//! if planes
// x = hi + lo, two at a time.
__device__ inline void plane_pair(float x, float y, unsigned &hi, unsigned &lo)
{
    __half2 const h = __floats2half2_rn(x, y);
    float2 const back = __half22float2(h);
    __half2 const l = __floats2half2_rn(x - back.x, y - back.y);
    hi = reinterpret_cast<unsigned const &>(h);
    lo = reinterpret_cast<unsigned const &>(l);
}

// Of four groups of eight columns each of four lanes gets one.
__device__ inline void turn_four(unsigned (&v)[4], int lane)
{
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
}

//! end
//! if store and not planes or both
// Stores 16x32 elements out of shared memory.
__device__ inline void store_part(CUtensorMap const *map, float2 const *from, int n, int m, int l)
{
//! if big_result and not split_k
    constexpr uint64_t hint = 0x12F0000000000000; // evict first: what comes later finds nothing of it in L2 anyway
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%2, %3, %4}], [%1], %5;" ::"l"(map),
                 "r"(cast_smem_ptr_to_uint(from)), "r"(n), "r"(m), "r"(l), "l"(hint)
                 : "memory");
//! else
    SM90_TMA_STORE_3D::copy(map, from, n, m, l);
//! end
}

//! end
//! if fuse or both
//! include gemm_rows
//! end
// Starts a sum of TERMS of k, from step `from` on: hi lo and lo hi, then hi hi. Small terms come first.
template <class Mma, class Hi, class Lo, class B, class Sum>
__device__ __forceinline__ void start_sum(Mma &mma, Hi const &hi, Lo const &lo, B const &tCrB, int slot, int from, Sum &to)
{
    mma.accumulate_ = GMMA::ScaleOut::Zero;
    CUTE_UNROLL
    for (int k = from; k < from + TERMS / 16; ++k) {
        gemm(mma, hi(k), tCrB(_, _, k, 1, slot), to);
        mma.accumulate_ = GMMA::ScaleOut::One;
        gemm(mma, lo(k), tCrB(_, _, k, 0, slot), to);
    }
    CUTE_UNROLL
    for (int k = from; k < from + TERMS / 16; ++k)
        gemm(mma, hi(k), tCrB(_, _, k, 0, slot), to);
    warpgroup_commit_batch();
}

// What a block works on: a tile of a product, and blocks of k.
struct Work {
    int m, n, l, begin, end; // m and n of the cluster's first element; begin and end in elements of k
};

//! if triangle and upper_upper
// Tiles by the length of their sum, longest first, so that the last ones to start are short. A
// block takes turns from both ends: its second tile is as short as its first was long.
__device__ inline bool work_of(int round, int M, int N, int K, Work &w)
{
    int const tiles_m = (M + CLUSTER * TILE_M - 1) / (CLUSTER * TILE_M), tiles_n = (N + TILE_N - 1) / TILE_N;
    int const lanes = gridDim.x / CLUSTER, lane = blockIdx.x / CLUSTER;
    int t = round * lanes + (round % 2 ? lanes - 1 - lane : lane);
    constexpr int RATIO = TILE_N > CLUSTER * TILE_M ? TILE_N / (CLUSTER * TILE_M) : 1;
    // Diagonals: RATIO * tn - tm, from the right upper corner to the left lower one.
    for (int d = RATIO * (tiles_n - 1); d > -tiles_m; --d) {
        int const first = cute::max(0, ceil_div(cute::max(d, 0), RATIO)), last = cute::min(tiles_n - 1, (d + tiles_m - 1) / RATIO);
        int const count = cute::max(0, last - first + 1);
        if (t < count) {
            w.n = (first + t) * TILE_N;
            w.m = (RATIO * (first + t) - d) * CLUSTER * TILE_M;
            w.l = 0;
            w.begin = w.m;
            w.end = cute::max(w.begin, cute::min(K, w.n + TILE_N));
            return true;
        }
        t -= count;
    }
    return false;
}
//! elif triangle
// As for upper triangles, with the roles of m and n exchanged: k runs from n to m.
__device__ inline bool work_of(int round, int M, int N, int K, Work &w)
{
    int const tiles_m = (M + CLUSTER * TILE_M - 1) / (CLUSTER * TILE_M), tiles_n = (N + TILE_N - 1) / TILE_N;
    int const lanes = gridDim.x / CLUSTER, lane = blockIdx.x / CLUSTER;
    int t = round * lanes + (round % 2 ? lanes - 1 - lane : lane);
    constexpr int RATIO = TILE_N > CLUSTER * TILE_M ? TILE_N / (CLUSTER * TILE_M) : 1;
    // Diagonals: tm - RATIO * tn, from the left lower corner to the right upper one.
    for (int d = tiles_m - 1; d > -RATIO * tiles_n; --d) {
        int const first = cute::max(0, ceil_div(cute::max(-d, 0), RATIO)), last = cute::min(tiles_n - 1, (tiles_m - 1 - d) / RATIO);
        int const count = cute::max(0, last - first + 1);
        if (t < count) {
            w.n = (first + t) * TILE_N;
            w.m = (RATIO * (first + t) + d) * CLUSTER * TILE_M;
            w.l = 0;
            w.begin = w.n;
            w.end = cute::max(w.begin, cute::min(K, w.m + CLUSTER * TILE_M));
            return true;
        }
        t -= count;
    }
    return false;
}
//! else
__device__ inline bool work_of(int round, int M, int N, int K, int L, Work &w)
{
    int const tiles_m = (M + CLUSTER * TILE_M - 1) / (CLUSTER * TILE_M), tiles_n = (N + TILE_N - 1) / TILE_N;
    int t = blockIdx.x / CLUSTER + round * (gridDim.x / CLUSTER);
    if (t >= tiles_m * tiles_n * L)
        return false;
    w.begin = 0;
    w.end = K;
    w.l = t / (tiles_m * tiles_n);
    t -= w.l * (tiles_m * tiles_n);
    int const first = t / (GROUP * tiles_n) * GROUP, high = cute::min(int(GROUP), tiles_m - first);
    t -= first * tiles_n;
    w.m = (first + t % high) * (CLUSTER * TILE_M);
    w.n = t / high * TILE_N;
    return true;
}
//! end

//! if both
//! include gemm_fused
//! else
__global__ void __launch_bounds__(384, 1)
    ${kernel}_product(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
//! if store and not planes
                      const __grid_constant__ CUtensorMap map_c,
//! end
//! if planes
                      half_t *planes, int *lost, int v_from, int v_until,
//! end
//! if fuse
                      int32_t *guard_a, int32_t const *guard_b, int count_b,
//! else
                      float const *scale_a,
//! end
//! if split_k
                      float const *scale_b, float *partial, int part_k, int L, $params)
{
    K = part_k; // the parts of the sum are products of their own
//! else
                      float const *scale_b, int L, $params)
{
//! end
    extern __shared__ unsigned char memory[];
    constexpr int PLANE_A = TILE_M * TILE_K, PLANE_B = PIECE_N * TILE_K;
    unsigned const skip = -cast_smem_ptr_to_uint(memory) % 1024; // tiles start on 1024 bytes
    half_t *smem_a = reinterpret_cast<half_t *>(memory + skip);
    half_t *smem_b = smem_a + STAGES_A * 2 * PLANE_A;
//! if store
    float2 *smem_c = reinterpret_cast<float2 *>(smem_b + STAGES_B * 2 * PLANE_B);
    uint64_t *full_a = reinterpret_cast<uint64_t *>(smem_c + 8 * STORES * 16 * 16), *empty_a = full_a + STAGES_A;
//! else
    uint64_t *full_a = reinterpret_cast<uint64_t *>(smem_b + STAGES_B * 2 * PLANE_B), *empty_a = full_a + STAGES_A;
//! end
    uint64_t *full_b = empty_a + STAGES_A, *empty_b = full_b + STAGES_B;
    int const rank = CLUSTER > 1 ? int(block_rank_in_cluster()) : 0;
    int const group = threadIdx.x / 128;
//! if planes
    // Of the warpgroups, the warps, the heads or columns; largest magnitudes of a piece and of the one before.
    __shared__ unsigned tops[2][2][4][HEADS], marks[2][4][4][2];
    int turn = 0; // of these two
//! end
//! if fuse
    __shared__ int limits[3]; // of B: depth of its columns, zeros, and whether bits may be lost
//! end

    if (threadIdx.x < STAGES_A + STAGES_B) { // a thread for each slot
        bool const of_a = threadIdx.x < STAGES_A;
        int const i = of_a ? threadIdx.x : threadIdx.x - STAGES_A;
//! if fuse
        constexpr int USERS = 8; // of a slot of A: warps
        if (i < 3)
            limits[i] = 0;
//! else
        constexpr int USERS = 2; // of a slot of A: warpgroups
//! end
        initialize_barrier(of_a ? full_a[i] : full_b[i], 1);
        initialize_barrier(of_a ? empty_a[i] : empty_b[i], of_a ? USERS : 2 * CLUSTER);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    if constexpr (CLUSTER > 1)
        cluster_sync();
    else
        __syncthreads();
//! if overlap
    cutegen_wait_for_earlier();
    cutegen_let_next_begin();
//! end

    Work w;
    if (group == 0) { // one thread fetches
        cutlass::arch::warpgroup_reg_dealloc<24>();
        Place a = {0, 1}, b = {0, 1};
//! if triangle
        for (int round = 0; threadIdx.x == 0 && work_of(round, M, N, K, w); ++round) {
//! else
        for (int round = 0; threadIdx.x == 0 && work_of(round, M, N, K, L, w); ++round) {
//! end
            for (int k = w.begin; k < w.end; k += TILE_K) {
                wait_barrier(empty_a[a.slot], a.turn);
                set_barrier_transaction_bytes(full_a[a.slot], 2 * PLANE_A * sizeof(half_t));
//! if fuse
                for (int i = 0; i < 2; ++i)
                    SM90_TMA_LOAD_3D::copy(&map_a, &full_a[a.slot], 0x1000000000000000,
//! if split_k
                                           smem_a + (a.slot * 2 + i) * PLANE_A, w.l * K + k + i * 32,
                                           w.m + rank * TILE_M, 0);
//! else
                                           smem_a + (a.slot * 2 + i) * PLANE_A, k + i * 32,
                                           w.m + rank * TILE_M, $a_l);
//! end
//! else
                for (int plane = 0; plane < 2; ++plane)
                    fetch_plane<A_K_MAJOR, false>(&map_a, &full_a[a.slot], smem_a + (a.slot * 2 + plane) * PLANE_A,
                                                  w.m + rank * TILE_M, k, $a_l, plane);
//! end
                a.next<STAGES_A>();
#pragma unroll 1
                for (int piece = 0; piece < PIECES; ++piece) {
                    wait_barrier(empty_b[b.slot], b.turn);
                    set_barrier_transaction_bytes(full_b[b.slot], 2 * PLANE_B * sizeof(half_t));
                    // Each block of the cluster fetches every CLUSTER-th plane, for all of them.
                    for (int plane = rank; plane < 2; plane += CLUSTER)
                        fetch_plane<B_K_MAJOR, (CLUSTER > 1)>(&map_b, &full_b[b.slot],
                                                              smem_b + (b.slot * 2 + plane) * PLANE_B,
                                                              w.n + piece * PIECE_N, k, $b_l, plane);
                    b.next<STAGES_B>();
                }
            }
        }
    } else { // two warpgroups compute
        cutlass::arch::warpgroup_reg_alloc<240>();
        int const half = group - 1, thread = threadIdx.x % 128, lane = threadIdx.x % 32, warp = thread / 32;
        constexpr auto MAJOR_A = A_K_MAJOR ? GMMA::Major::K : GMMA::Major::MN;
        constexpr auto MAJOR_B = B_K_MAJOR ? GMMA::Major::K : GMMA::Major::MN;
//! if fuse
//! if planes
        auto mma = make_tiled_mma(SM90_64x${plane_piece}x16_F32F16F16_RS<MAJOR_A, MAJOR_B>{});
//! else
        auto mma = make_tiled_mma(SM90_64x128x16_F32F16F16_RS<MAJOR_A, MAJOR_B>{});
//! end
        auto thr = mma.get_slice(thread);
        Tensor hi = make_tensor<half_t>(Shape<Shape<_2, _2, _2>, _1, Int<TILE_K / 16>>{}); // (MMA,1,TILE_K/16)
        Tensor lo = make_tensor<half_t>(Shape<Shape<_2, _2, _2>, _1, Int<TILE_K / 16>>{}); // (MMA,1,TILE_K/16)
        Tensor pairs_hi = recast<unsigned>(hi), pairs_lo = recast<unsigned>(lo);           // (MMA/2,1,TILE_K/16)
        // Rows in an order in which the four vectors of a row and those of another fill all banks.
        int const order = lane / 8 + lane / 4 % 2 * 4;
        // 16 bytes at a time, as TMA brings them. The swizzle takes the row's last three bits, which are `order`: vector v
        // of the thread's eight is at places[v % 2] + what is the same for all threads.
        int const first = (half * 64 + warp * 16 + order) * 8 + (lane % 4 ^ order), places[2] = {first, first ^ 4};
        Tensor sA = make_tensor(make_smem_ptr(reinterpret_cast<uint128_t *>(smem_a)),
                                Layout<Shape<Int<TILE_M * 8>, _2, Int<STAGES_A>>, Stride<_1, Int<TILE_M * 8>, Int<TILE_M * 16>>>{});
        auto const part_hi = [&](int q) { return [&, q](int i) -> unsigned & { return pairs_hi(make_coord(0, q, i % 2), 0, i / 2); }; };
        auto const part_lo = [&](int q) { return [&, q](int i) -> unsigned & { return pairs_lo(make_coord(0, q, i % 2), 0, i / 2); }; };
        for (int i = threadIdx.x - 128; i < count_b; i += 256) {
            int4 const g = reinterpret_cast<int4 const *>(guard_b)[i];
            atomicMax(&limits[0], g.x), atomicMax(&limits[1], g.y), atomicMax(&limits[2], g.z);
        }
        asm volatile("bar.sync 3, 256;" ::: "memory");
//! else
//! if planes
        auto mma = make_tiled_mma(SM90_64x${plane_piece}x16_F32F16F16_SS<MAJOR_A, MAJOR_B>{});
//! else
        auto mma = make_tiled_mma(SM90_64x128x16_F32F16F16_SS<MAJOR_A, MAJOR_B>{});
//! end
        auto thr = mma.get_slice(thread);
        int const order = lane / 4;
        Tensor sA = make_tensor(make_smem_ptr(smem_a + half * 64 * TILE_K),
                                ring_layout<A_K_MAJOR, 64, TILE_M, STAGES_A>()); // (64,TILE_K,planes,STAGES_A)
        Tensor tCrA = thr.partition_fragment_A(sA); // (MMA,1,TILE_K/16,planes,STAGES_A)
//! end
        Tensor sB = make_tensor(make_smem_ptr(smem_b),
                                ring_layout<B_K_MAJOR, PIECE_N, PIECE_N, STAGES_B>()); // (PIECE_N,TILE_K,planes,STAGES_B)
        Tensor tCrB = thr.partition_fragment_B(sB);                                    // (MMA,1,TILE_K/16,planes,STAGES_B)
        Tensor acc = partition_fragment_C(mma, Shape<_64, Int<PIECE_N>>{});            // (MMA,1,1)
        Tensor sum = make_tensor<float>(Shape<Int<PIECE_N / 2>, Int<PIECES>>{});       // (MMA,PIECES)
        Place a = {0, 0}, b = {0, 0};
//! if store and not planes
        // Two columns at a time, as TMA takes them from a warp: (16,16,STORES)
        smem_c += (half * 4 + warp) * STORES * 16 * 16;
        Tensor sC = make_tensor(make_smem_ptr(smem_c),
                                composition(Swizzle<3, 1, 3>{}, Layout<Shape<_16, _16, Int<STORES>>, Stride<_16, _1, Int<16 * 16>>>{}));
//! end

//! if fuse or not one_sum
        clear(acc);
//! end
//! if not short_k
        if (half == 1)
            asm volatile("bar.arrive 1, 256;" ::: "memory");
//! end
//! if triangle
        for (int round = 0; work_of(round, M, N, K, w); ++round) {
//! else
        for (int round = 0; work_of(round, M, N, K, L, w); ++round) {
//! end
//! if fuse or not one_block
            clear(sum);
//! end
//! if fuse
            Row rows[2] = {}; // of the thread
//! end
#pragma unroll 1
            for (int k0 = w.begin; k0 < w.end; k0 += TILE_K) {
                wait_barrier(full_a[a.slot], a.turn);
//! if fuse
                int used[2]; // exponents that scales follow
                CUTE_UNROLL
                for (int q = 0; q < 2; ++q) {
                    float x[TILE_K / 4];
                    CUTE_UNROLL
                    for (int v = 0; v < TILE_K / 16; ++v)
                        *reinterpret_cast<uint128_t *>(&x[v * 4]) = sA(places[v % 2] + q * 64, v / 2, a.slot);
                    used[q] = rows[q].split(x, part_hi(q), part_lo(q));
                }
                float const unscale[2] = {__uint_as_float(unsigned(used[0] - 14) << 23), __uint_as_float(unsigned(used[1] - 14) << 23)};
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // TMA writes there next
                __syncwarp();
                if (lane == 0)
                    arrive_barrier(empty_a[a.slot]);
                auto const a_hi = [&](int k) { return hi(_, _, k); };
                auto const a_lo = [&](int k) { return lo(_, _, k); };
//! else
                auto const a_hi = [&](int k) { return tCrA(_, _, k, 0, a.slot); };
                auto const a_lo = [&](int k) { return tCrA(_, _, k, 1, a.slot); };
//! end
                CUTE_UNROLL
                for (int piece = 0; piece < PIECES; ++piece) {
                    wait_barrier(full_b[b.slot], b.turn);
//! if one_block and not fuse
                    // The accumulator truncates, which tells where sums are short: all of K is one sum, or two.
                    Tensor first = make_tensor(sum.data() + piece * size(acc), acc.layout()); // (MMA,1,1)
                    warpgroup_fence_operand(first);
//! if not one_sum
                    warpgroup_fence_operand(acc);
//! end
                    warpgroup_arrive();
                    start_sum(mma, a_hi, a_lo, tCrB, b.slot, 0, first);
//! if not one_sum
                    start_sum(mma, a_hi, a_lo, tCrB, b.slot, TERMS / 16, acc);
//! end
                    warpgroup_wait<0>();
                    warpgroup_fence_operand(first);
                    if (thread < CLUSTER)
                        release(empty_b[b.slot], thread);
                    if (piece == PIECES - 1 && thread == 0)
                        arrive_barrier(empty_a[a.slot]);
//! if not one_sum
                    warpgroup_fence_operand(acc);
                    CUTE_UNROLL
                    for (int i = 0; i < size(acc); ++i)
                        sum(i, piece) += acc(i);
//! end
//! elif short_k
                    // The accumulator truncates, which tells where sums are short.
                    CUTE_UNROLL
                    for (int from = 0; from < TILE_K / 16; from += TERMS / 16) {
                        if (k0 + from * 16 >= w.end)
                            break;
                        warpgroup_fence_operand(acc);
                        warpgroup_arrive();
                        start_sum(mma, a_hi, a_lo, tCrB, b.slot, from, acc);
                        warpgroup_wait<0>();
                        warpgroup_fence_operand(acc);
                        CUTE_UNROLL
                        for (int i = 0; i < size(acc); ++i)
//! if fuse
                            sum(i, piece) = fmaf(acc(i), unscale[i / 2 % 2], sum(i, piece));
//! else
                            sum(i, piece) += acc(i);
//! end
                    }
                    if (thread < CLUSTER)
                        release(empty_b[b.slot], thread);
//! if not fuse
                    if (piece == PIECES - 1 && thread == 0)
                        arrive_barrier(empty_a[a.slot]);
//! end
//! else
                    // The warpgroups take turns: one multiplies while the other adds. Small terms
                    // come first.
                    CUTE_UNROLL
                    for (int from = 0; from < TILE_K / 16; from += TERMS / 16) {
//! if store
                        if (k0 >= w.begin + LEAD)
                            asm volatile("bar.sync %0, 256;" ::"r"(1 + half) : "memory");
//! else
                        asm volatile("bar.sync %0, 256;" ::"r"(1 + half) : "memory");
//! end
                        warpgroup_fence_operand(acc);
                        warpgroup_arrive();
                        start_sum(mma, a_hi, a_lo, tCrB, b.slot, from, acc);
//! if store
                        if (k0 >= w.begin + LEAD)
                            asm volatile("bar.arrive %0, 256;" ::"r"(2 - half) : "memory");
//! else
                        asm volatile("bar.arrive %0, 256;" ::"r"(2 - half) : "memory");
//! end
                        warpgroup_wait<0>();
                        warpgroup_fence_operand(acc);
                        if (from + TERMS / 16 == TILE_K / 16) {
                            if (thread < CLUSTER)
                                release(empty_b[b.slot], thread);
//! if not fuse
                            if (piece == PIECES - 1 && thread == 0)
                                arrive_barrier(empty_a[a.slot]);
//! end
                        }
                        CUTE_UNROLL
                        for (int i = 0; i < size(acc); ++i)
//! if fuse
                            sum(i, piece) = fmaf(acc(i), unscale[i / 2 % 2], sum(i, piece));
//! else
                            sum(i, piece) += acc(i);
//! end
                    }
//! end
                    b.next<STAGES_B>();
//! if fuse
                    if (piece == 0) { // while the other warpgroup multiplies
                        CUTE_UNROLL
                        for (int q = 0; q < 2; ++q)
                            rows[q].look(used[q], part_hi(q), part_lo(q));
                    }
//! end
                }
                a.next<STAGES_A>();
            }

//! if fuse
//! if cut_matters
            float cut[2];
//! end
            // May the split of these rows have lost bits that matter? As doubtful() below.
            CUTE_UNROLL
            for (int q = 0; q < 2; ++q) {
                Row &r = rows[q];
                r.gather();
                int const terms = (w.end - w.begin + TILE_K - 1) / TILE_K * TILE_K - r.zeros;
//! if cut_matters
                cut[q] = r.ends && 4 * terms >= 3 * (w.end - w.begin) ? CUT : 0.0f;
//! end
                int const both = terms - limits[1], depth = terms * int(r.largest >> 23) - r.exponents;
                bool const deep = (r.lost & 1) || limits[2];
//! if weights
                if (terms > 0 && (r.lost > 1 || (deep && (both < 1 || float(depth) / both + float(limits[0]) / (K - limits[1]) > 12.0f)))) {
//! else
                if (terms > 0 && (terms < 16 || r.lost > 1 ||
                                  (deep && (both < ceil_div(K, 8) || depth + limits[0] > 12 * both)))) {
//! end
                    int const m = w.m + rank * TILE_M + half * 64 + warp * 16 + order + q * 8;
                    guard_a[3] = 1;                                      // somewhere
                    guard_a[4 + w.l * ceil_div(M, 128) * 4 + m / 32] = 1; // in these 32 rows
                }
            }

//! end
//! if planes
//! include gemm_planes
//! else
//! include gemm_epilogue
//! end
        }
//! if not short_k
        if (half == 0)
            asm volatile("bar.sync 1, 256;" ::: "memory"); // take up the last arrival
//! end
//! if store and not planes
        if (lane == 0)
            tma_store_wait<0>();
//! end
    }
    if constexpr (CLUSTER > 1)
        cluster_sync(); // no block leaves while another may still signal to it
}
//! end

//! if split_k
// Adds the parts of every element, in order; in float64, which costs next to nothing here, so that the parts'
// rounding errors are all there are.
__global__ void __launch_bounds__(256)
    ${kernel}_add_parts(float const *partial, int parts, $params)
{
    int64_t const size = int64_t(M) * N;
//! if overlap
    cutegen_wait_for_earlier();
    cutegen_let_next_begin();
//! end
    for (int64_t i = int64_t(blockIdx.x) * 256 + threadIdx.x; i < size; i += int64_t(gridDim.x) * 256) {
        int const m = int(i / N), n = int(i % N);
        Tensor mC = make_tensor(make_gmem_ptr(C$c_batch), make_shape(M, N), make_stride($c_m, $c_n)); // (M,N)
//! each leaf
        Tensor m$X = make_tensor(make_gmem_ptr($x$batch), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
        double total = 0.0;
#pragma unroll 8
        for (int part = 0; part < parts; ++part)
            total += double(partial[part * size + i]);
        float const acc = float(total);
//! if epilogue
        mC(m, n) = ${kernel}_finish(acc$finish);
//! else
        mC(m, n) = acc;
//! end
    }
}

//! end
// ---- the guard ---------------------------------------------------------------------------------------
//! include gemm_guard
#endif

#ifdef CUTEGEN_HOST
//! include gemm_plan
#endif
