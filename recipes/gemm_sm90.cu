// recipes/gemm_sm90.cu - an fp32 product on Hopper's tensor cores, as accurate as fp32 arithmetic.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
//
// Rows of A and columns of B are scaled by powers of two and split into two fp16 parts, x = hi +
// lo, which together hold 23 bits. Three products (hi.lo, lo.hi, hi.hi) go through wgmma; every 64
// of K the tensor core's accumulator, which truncates, is added into fp32 registers. The split also
// takes statistics, and where those cannot rule out that bits were lost that matter (or something
// is not finite, or near the ends of the exponent range), the last kernel of the plan computes the
// product again in fp32.
//
//! recipe gemm_sm90: C(m,n) = sum over k of A(m,k) * B(n,k) in fp32, on tensor cores of sm_90a
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
//! fact short_k: sums are so short that each 16 terms are added in fp32
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
//!   needs: ring
//! step cluster: pair blocks, each fetching one plane of B for both
//!   why: Multicast halves the reads of B from L2.
//!   needs: ring
//! step overlap: launch each kernel while the one before ends
//!   why: Programmatic dependent launch hides launch latency and barrier set-up.
//!   needs: tensor
//! step split_k: divide K among blocks and add the parts afterwards
//!   why: The result has too few tiles to occupy the device.
//!   when: few_tiles
//!   needs: ring
//! step triangle: skip the blocks of K that are zero
//!   why: Only a sixth of the products of two triangular matrices differs from zero; small tiles share it evenly.
//!   when: upper_upper or lower_lower
//!   needs: ring
//!   excludes: cluster wide
//! step fuse: split A in registers, on its way from shared memory into the tensor cores
//!   why: A is read once and never written as planes; its scales are per 64 of K, applied when sums are added.
//!   when: a_k_major and a_vectors and not upper_upper and not lower_lower
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
//!   needs: ring
//!   excludes: wide cluster fuse store once triangle
//! text
// $kernel: $ops as C(m,n) = sum over k of A(m,k) * B(n,k).
#include <cutegen/kernel.h>

//! if tensor
constexpr int TILE_M = 128;   // two warpgroups of 64 rows
constexpr int PIECE_N = 128;  // columns of one accumulator
//! if wide
constexpr int PIECES = 2;     // of a warpgroup, side by side
//! else
constexpr int PIECES = 1;     // of a warpgroup, side by side
//! end
constexpr int TILE_N = PIECE_N * PIECES;
constexpr int TILE_K = 64;    // between two additions into fp32 registers
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
constexpr int SMEM_BYTES = 1024 + (STAGES_A * TILE_M + STAGES_B * TILE_N) * TILE_K * 4 + 8 * STORES * 16 * 32 * 4 +
                           STAGES_B * TILE_N * 2 + 256;
//! elif store
constexpr int SMEM_BYTES = 1024 + (STAGES_A * TILE_M + STAGES_B * PIECE_N) * TILE_K * 4 + 8 * STORES * 16 * 32 * 4 + 256;
//! else
constexpr int SMEM_BYTES = 1024 + (STAGES_A * TILE_M + STAGES_B * PIECE_N) * TILE_K * 4 + 256;
//! end
//! if a_k_major
constexpr int A_K_MAJOR = 1;
//! else
constexpr int A_K_MAJOR = 0;
//! end
//! if b_k_major
constexpr int B_K_MAJOR = 1;
//! else
constexpr int B_K_MAJOR = 0;
//! end

//! end
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
//! if tensor
#include <cutlass/arch/reg_reconfig.h>
//! end

using namespace cute;

//! if epilogue
// What becomes of one element of the product.
__device__ inline float ${kernel}_finish($finish_params)
{
    $finish_body
}

//! end
//! if tensor and not both
// ---- the split: x * 2^e = hi + lo -------------------------------------------------------

// What a row of A or a column of B is like.
struct Stats {
    unsigned top, low; // bits of the largest magnitude; of the smallest that is not zero, less one
    int sum, zeros;    // of the exponents of what is not zero; how many are zero

    __device__ void start() { top = 0, low = ~0u, sum = 0, zeros = 0; }
    __device__ void add(float x)
    {
        unsigned const bits = __float_as_uint(x) & 0x7fffffffu;
        top = cute::max(top, bits);
        low = cute::min(low, bits - 1);
        sum += int(bits >> 23);
        zeros += bits == 0;
    }
    __device__ void add(float4 v) { add(v.x), add(v.y), add(v.z), add(v.w); }
    __device__ void add(Stats const &o)
    {
        top = cute::max(top, o.top), low = cute::min(low, o.low), sum += o.sum, zeros += o.zeros;
    }
    // The exponent of the largest magnitude, biased, and where that is out of range what is used
    // instead.
    __device__ int exponent() const { return top == 0 ? 127 : int(top >> 23); }
    __device__ int used() const { return cute::min(cute::max(exponent(), 67), 187); }
    __device__ float scale() const { return __uint_as_float(unsigned(268 - used()) << 23); }   // to [2^14,2^15)
    __device__ float unscale() const { return __uint_as_float(unsigned(used() - 14) << 23); }
    // {how far the exponents lie below the largest, in sum; zeros; bits may be lost; may not be
    // split at all}
    __device__ int4 guard(int count) const
    {
        int const e = exponent();
        bool const deep = int((low + 1) >> 23) < e - 16;
        if (top == 0)
            return make_int4(0, 0, 0, 0);
//! if triangle
        // Which of the zeros a sum meets is not known here: the mean stands for all of them, in 1/16.
        return make_int4(((count - zeros) * e - sum) * 16 / (count - zeros), 0, deep, e != used());
//! else
        return make_int4((count - zeros) * e - sum, zeros, deep, e != used());
//! end
    }
};

//! end
//! if tensor
__device__ inline int4 worse(int4 a, int4 b)
{
    return make_int4(cute::max(a.x, b.x), cute::max(a.y, b.y), a.z | b.z, a.w | b.w);
}

//! end
//! if tensor and not both
// Four elements of a plane of high parts, and of the plane of low parts behind it.
__device__ inline void put_split(float4 v, float4 scale, half_t *to, int64_t plane)
{
    float const x[4] = {v.x * scale.x, v.y * scale.y, v.z * scale.z, v.w * scale.w};
    alignas(8) half_t hi[4], lo[4];
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i) {
        hi[i] = half_t(x[i]);
        lo[i] = half_t(x[i] - float(hi[i]));
    }
    *reinterpret_cast<uint2 *>(to) = *reinterpret_cast<uint2 *>(hi);
    *reinterpret_cast<uint2 *>(to + plane) = *reinterpret_cast<uint2 *>(lo);
}

//! if fuse
// Where element k of B lies in its planes: the tensor core takes from a thread k = 2t, 2t+1, 2t+8 and
// 2t+9 of each sixteen; A's are 4t to 4t+3 in memory, one vector, and B is put in the same order.
__device__ inline int place_of(int k)
{
    return k / 16 * 16 + k / 4 % 4 * 2 + k / 2 % 2 * 8 + k % 2;
}

// As put_split, for four elements along k.
__device__ inline void put_split_k(float4 v, float scale, half_t *row, int k, int64_t plane)
{
    alignas(8) half_t part[8];
    float const x[4] = {v.x * scale, v.y * scale, v.z * scale, v.w * scale};
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i) {
        part[i] = half_t(x[i]);
        part[i + 4] = half_t(x[i] - float(part[i]));
    }
    half_t *to = row + place_of(k);
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i)
        *reinterpret_cast<unsigned *>(to + i / 2 * plane + i % 2 * 8) =
            reinterpret_cast<unsigned *>(part)[i];
}

//! end
// Products l = 0, 1, ... have K terms each, the last one what is left of K_all.
__device__ inline int length_of(int l, int K, int64_t K_all)
{
    return int(cute::min(int64_t(K), K_all - int64_t(l) * K));
}

template <bool VECTORS>
__device__ inline float4 fetch_four(float const *x, int left)
{
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if constexpr (VECTORS) {
        if (left > 0)
            v = *reinterpret_cast<float4 const *>(x);
    } else {
        if (left > 0)
            v.x = x[0];
        if (left > 1)
            v.y = x[1];
        if (left > 2)
            v.z = x[2];
        if (left > 3)
            v.w = x[3];
    }
    return v;
}

//! if a_k_major and not fuse or b_k_major
// Splits rows that are contiguous along k: THREADS threads hold a row, or its beginning, in registers.
template <int THREADS, bool VECTORS>
__global__ void __launch_bounds__(512, 2)
    ${kernel}_split_rows(float const *X, uint16_t *planes, float *scales, int32_t *guard, int rows, int L, int K,
                         int64_t K_all, int64_t x_row, int64_t x_l, int ld)
{
    constexpr int HELD = 8, ROWS = 512 / THREADS, WARPS = THREADS / 32;
    __shared__ Stats part[16];
    __shared__ int4 worst[ROWS];
    int const t = threadIdx.x % THREADS, mine = threadIdx.x / THREADS;
    int const k0 = t * 4; // the thread has k0, k0 + 4 * THREADS, ...
    int64_t const plane = int64_t(rows) * L * ld;
    int4 bad = make_int4(0, 0, 0, 0);

//! if overlap
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
//! end
    for (int first = blockIdx.x * ROWS; first < rows * L; first += gridDim.x * ROWS) {
        int const row = first + mine;
        int const length = row < rows * L ? length_of(row / rows, K, K_all) : 0;
        float const *x = X + row / rows * x_l + row % rows * x_row;
//! if triangle and upper_upper
        int const from = row / TILE_M * TILE_M, until = K; // what the row's tile reads
//! elif triangle
        int const from = 0, until = (row / TILE_M + 1) * TILE_M; // what the row's tile reads
//! end
        float4 v[HELD];
        Stats s;
        CUTE_UNROLL
        for (int i = 0; i < HELD; ++i) {
            int const k = k0 + i * THREADS * 4;
//! if triangle
            v[i] = fetch_four<VECTORS>(x + k, k >= from && k < until ? length - k : 0);
//! else
            v[i] = fetch_four<VECTORS>(x + k, length - k);
//! end
        }
        s.start();
        CUTE_UNROLL
        for (int i = 0; i < HELD; ++i)
            s.add(v[i]);
        int seen = HELD * 4;
        for (int k = k0 + HELD * THREADS * 4; k < length; k += THREADS * 4, seen += 4)
            s.add(fetch_four<VECTORS>(x + k, length - k));
        s.zeros -= seen; // what was seen behind the end counts as zeros; it is taken off below
        s.top = __reduce_max_sync(~0u, s.top);
        s.low = __reduce_min_sync(~0u, s.low);
        s.sum = __reduce_add_sync(~0u, s.sum);
        s.zeros = __reduce_add_sync(~0u, s.zeros);
        if constexpr (WARPS > 1) {
            __syncthreads();
            if (threadIdx.x % 32 == 0)
                part[threadIdx.x / 32] = s;
            __syncthreads();
            s = part[mine * WARPS];
            for (int i = 1; i < WARPS; ++i)
                s.add(part[mine * WARPS + i]);
        }
        s.zeros += length; // now: zeros among the elements of the row
        if (row < rows * L) {
            float const f = s.scale();
            half_t *to = reinterpret_cast<half_t *>(planes) + int64_t(row) * ld;
            if (t == 0) {
                scales[row] = s.unscale();
                bad = worse(bad, s.guard(length));
            }
//! if fuse
            CUTE_UNROLL
            for (int i = 0; i < HELD; ++i) {
                int const k = k0 + i * THREADS * 4;
                if (k < ld)
                    put_split_k(v[i], f, to, k, plane);
            }
            for (int k = k0 + HELD * THREADS * 4; k < ld; k += THREADS * 4)
                put_split_k(fetch_four<VECTORS>(x + k, length - k), f, to, k, plane);
//! else
            CUTE_UNROLL
            for (int i = 0; i < HELD; ++i) {
                int const k = k0 + i * THREADS * 4;
//! if triangle
                if (k < K && k >= from && k < until)
//! else
                if (k < K)
//! end
                    put_split(v[i], make_float4(f, f, f, f), to + k, plane);
            }
            for (int k = k0 + HELD * THREADS * 4; k < K; k += THREADS * 4)
                put_split(fetch_four<VECTORS>(x + k, length - k), make_float4(f, f, f, f), to + k, plane);
//! end
        }
    }
    if (t == 0)
        worst[mine] = bad;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < ROWS; ++i)
            bad = worse(bad, worst[i]);
        reinterpret_cast<int4 *>(guard)[blockIdx.x] = bad;
    }
//! if overlap
    asm volatile("griddepcontrol.wait;" ::: "memory"); // its end is the end of all before it, too
//! end
}

//! end
//! if not a_m_major and not b_n_major
//! elif once
// For operands that are contiguous along m or n, "columns" here. A cluster holds all of K for 32 columns in
// its registers: each block finds what its rows are like, all read that from each other, and split.
template <int HELD, bool VECTORS>
__global__ void __launch_bounds__(512, HELD > 8 ? 1 : 2)
    ${kernel}_split_strip(float const *X, uint16_t *planes, float *scales, int32_t *guard, int columns, int K,
                          int64_t K_all, int64_t x_k, int64_t x_l, int ld)
{
    __shared__ Stats part[16][32];
    alignas(16) __shared__ Stats mine[32];
    alignas(16) __shared__ float factor[32];
    int const lane = threadIdx.x % 32, warp = threadIdx.x / 32, quad = threadIdx.x % 8;
    int const first = blockIdx.y * 32, column = first + quad * 4, length = length_of(blockIdx.z, K, K_all);
    int const k0 = blockIdx.x * HELD * 64 + threadIdx.x / 8; // the thread has k0, k0 + 64, ...
//! if fuse
    int const deep = (K + 15) / 16 * 16; // rows of the planes
//! else
    int const deep = K; // rows of the planes
//! end
//! if triangle and upper_upper
    int const from = 0, until = cute::min(length, (first / TILE_N + 1) * TILE_N);
//! elif triangle
    int const from = first / TILE_N * TILE_N, until = length;
//! else
    int const from = 0, until = length;
//! end
    float const *x = X + blockIdx.z * x_l + column;
    float4 v[HELD];
    Stats s[4];

//! if overlap
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
//! end
    CUTE_UNROLL
    for (int i = 0; i < HELD; ++i) {
        int const k = k0 + i * 64;
        v[i] = fetch_four<VECTORS>(x + k * x_k, k >= from && k < until ? columns - column : 0);
    }
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i)
        s[i].start();
    CUTE_UNROLL
    for (int i = 0; i < HELD; ++i)
        s[0].add(v[i].x), s[1].add(v[i].y), s[2].add(v[i].z), s[3].add(v[i].w);
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i) {
        CUTE_UNROLL
        for (int far = 8; far < 32; far *= 2) {
            Stats const o = {__shfl_xor_sync(~0u, s[i].top, far), __shfl_xor_sync(~0u, s[i].low, far),
                             __shfl_xor_sync(~0u, s[i].sum, far), __shfl_xor_sync(~0u, s[i].zeros, far)};
            s[i].add(o);
        }
        if (lane < 8)
            part[warp][lane * 4 + i] = s[i];
    }
    __syncthreads();
    if (warp == 0) {
        Stats all = part[0][lane];
        for (int i = 1; i < 16; ++i)
            all.add(part[i][lane]);
        mine[lane] = all;
    }
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    if (warp == 0) {
        Stats all;
        all.start();
        for (unsigned i = 0; i < gridDim.x; ++i) {
            Stats o;
            asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(o.top), "=r"(o.low), "=r"(o.sum), "=r"(o.zeros)
                         : "r"(set_block_rank(cast_smem_ptr_to_uint(&mine[lane]), i))
                         : "memory");
            all.add(o);
        }
        // What was seen outside counts as zeros.
        all.zeros -= int(gridDim.x) * HELD * 64 - (until - from);
        factor[lane] = all.scale();
        if (blockIdx.x == 0) {
            int4 w = all.guard(until - from);
            if (first + lane < columns)
                scales[int64_t(blockIdx.z) * columns + first + lane] = all.unscale();
            for (int far = 1; far < 32; far *= 2)
                w = worse(w, make_int4(__shfl_xor_sync(~0u, w.x, far), __shfl_xor_sync(~0u, w.y, far),
                                       __shfl_xor_sync(~0u, w.z, far), __shfl_xor_sync(~0u, w.w, far)));
            if (lane == 0)
                reinterpret_cast<int4 *>(guard)[blockIdx.z * gridDim.y + blockIdx.y] = w;
        }
    }
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    __syncthreads();
    if (column < ld) {
        half_t *to = reinterpret_cast<half_t *>(planes) + int64_t(blockIdx.z) * deep * ld + column;
        int64_t const plane = int64_t(gridDim.z) * deep * ld;
        float4 const f = *reinterpret_cast<float4 *>(&factor[quad * 4]);
        CUTE_UNROLL
        for (int i = 0; i < HELD; ++i) {
            int const k = k0 + i * 64;
//! if triangle
            if (k >= from && k < until)
//! else
            if (k < deep)
//! end
//! if fuse
                put_split(v[i], f, to + int64_t(place_of(k)) * ld, plane);
//! else
                put_split(v[i], f, to + int64_t(k) * ld, plane);
//! end
        }
    }
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); // nobody leaves while another may still read from it
//! if overlap
    asm volatile("griddepcontrol.wait;" ::: "memory"); // its end is the end of all before it, too
//! end
}

//! else
// For operands that are contiguous along m or n, "columns" here: first what the columns are like.
template <bool VECTORS>
__global__ void __launch_bounds__(256)
    ${kernel}_look_columns(float const *X, int32_t *stats, int columns, int K, int64_t K_all, int64_t x_k,
                           int64_t x_l, int rows)
{
    __shared__ Stats part[8][128];
    int const lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int const length = length_of(blockIdx.z, K, K_all);
//! if triangle and upper_upper
    int const from = 0, until = cute::min(length, (int(blockIdx.x) * 128 / TILE_N + 1) * TILE_N);
//! elif triangle
    int const from = int(blockIdx.x) * 128 / TILE_N * TILE_N, until = length;
//! else
    int const from = 0, until = length;
//! end
    int const column = blockIdx.x * 128 + lane * 4, end = cute::min(until, int(blockIdx.y + 1) * rows);
    float const *x = X + blockIdx.z * x_l + column;
    Stats s[4];
//! if overlap
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
//! end
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i)
        s[i].start();
#pragma unroll 8
    for (int k = cute::max(int(blockIdx.y) * rows, from) + warp; k < end; k += 8) {
        float4 const v = fetch_four<VECTORS>(x + k * x_k, columns - column);
        s[0].add(v.x), s[1].add(v.y), s[2].add(v.z), s[3].add(v.w);
    }
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i)
        part[warp][lane * 4 + i] = s[i];
    __syncthreads();
    int const c = blockIdx.x * 128 + threadIdx.x;
    if (threadIdx.x < 128 && c < columns) {
        Stats all = part[0][threadIdx.x];
        for (int i = 1; i < 8; ++i)
            all.add(part[i][threadIdx.x]);
        reinterpret_cast<int4 *>(stats)[(int64_t(blockIdx.z) * gridDim.y + blockIdx.y) * columns + c] =
            make_int4(int(all.top), int(all.low), all.sum, all.zeros);
    }
//! if overlap
    asm volatile("griddepcontrol.wait;" ::: "memory"); // its end is the end of all before it, too
//! end
}

// Then the split, the last rows first: they were read last and are still in L2.
template <bool VECTORS>
__global__ void __launch_bounds__(256)
    ${kernel}_split_columns(float const *X, int32_t const *stats, uint16_t *planes, float *scales, int32_t *guard,
                            int columns, int K, int64_t K_all, int64_t x_k, int64_t x_l, int rows, int ld)
{
    int const length = length_of(blockIdx.z, K, K_all);
    __shared__ float factor[128];
    __shared__ int4 worst[128];
    int const lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int const part = gridDim.y - 1 - blockIdx.y;
//! if fuse
    int const deep = (K + 15) / 16 * 16; // rows of the planes
//! else
    int const deep = K; // rows of the planes
//! end
//! if triangle and upper_upper
    int const from = 0, until = cute::min(length, (int(blockIdx.x) * 128 / TILE_N + 1) * TILE_N);
//! elif triangle
    int const from = int(blockIdx.x) * 128 / TILE_N * TILE_N, until = length;
//! else
    int const from = 0, until = length;
//! end
//! if triangle
    int const column = blockIdx.x * 128 + lane * 4, end = cute::min(until, (part + 1) * rows);
//! else
    int const column = blockIdx.x * 128 + lane * 4, end = cute::min(deep, (part + 1) * rows);
//! end
    int64_t const plane = int64_t(gridDim.z) * deep * ld;

//! if overlap
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
//! end
    if (threadIdx.x < 128) {
        int const c = blockIdx.x * 128 + threadIdx.x;
        Stats s;
        s.start();
        for (int i = 0; c < columns && i < int(gridDim.y); ++i) {
            int4 const p =
                reinterpret_cast<int4 const *>(stats)[(int64_t(blockIdx.z) * gridDim.y + i) * columns + c];
            Stats const o = {unsigned(p.x), unsigned(p.y), p.z, p.w};
            s.add(o);
        }
        factor[threadIdx.x] = s.scale();
        worst[threadIdx.x] = s.guard(until - from);
        if (part == 0 && c < columns)
            scales[int64_t(blockIdx.z) * columns + c] = s.unscale();
    }
    __syncthreads();
    if (part == 0 && threadIdx.x == 0) {
        int4 w = worst[0];
        for (int i = 1; i < 128; ++i)
            w = worse(w, worst[i]);
        reinterpret_cast<int4 *>(guard)[blockIdx.z * gridDim.x + blockIdx.x] = w;
    }
    if (column >= ld)
        return;
    float const *x = X + blockIdx.z * x_l + column;
    half_t *to = reinterpret_cast<half_t *>(planes) + int64_t(blockIdx.z) * deep * ld + column;
    float4 const f = *reinterpret_cast<float4 *>(&factor[lane * 4]);
#pragma unroll 8
    for (int k = cute::max(part * rows, from) + warp; k < end; k += 8)
//! if fuse
        put_split(fetch_four<VECTORS>(x + k * x_k, k < length ? columns - column : 0), f,
                  to + int64_t(place_of(k)) * ld, plane);
//! else
        put_split(fetch_four<VECTORS>(x + k * x_k, k < length ? columns - column : 0), f,
                  to + int64_t(k) * ld, plane);
//! end
}

//! end
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
struct Place {
    int slot, turn;
    template <int STAGES>
    __device__ void next()
    {
        if (++slot == STAGES)
            slot = 0, turn ^= 1;
    }
};

//! if not both
// Tells block `rank` of the cluster that a warpgroup here is done with a slot.
__device__ inline void release(uint64_t &barrier, unsigned rank)
{
    asm volatile("{\n\t.reg .b32 there;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\t"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n\t}" ::"r"(cast_smem_ptr_to_uint(&barrier)),
                 "r"(rank)
                 : "memory");
}

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
//! if store
// Not to be put off until it is needed.
__device__ inline float2 fetch_scales(float const *from)
{
    float2 v;
    asm volatile("ld.global.nc.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "l"(from));
    return v;
}

//! end
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
//! if store
                      const __grid_constant__ CUtensorMap map_c,
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
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
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
        auto mma = make_tiled_mma(SM90_64x128x16_F32F16F16_RS<MAJOR_A, MAJOR_B>{});
        auto thr = mma.get_slice(thread);
        // 16 bytes at a time, as TMA brings them: (TILE_M,(8,2),STAGES_A)
        Tensor sA = make_tensor(make_smem_ptr(reinterpret_cast<uint128_t *>(smem_a)),
                                composition(Swizzle<3, 0, 3>{},
                                            Layout<Shape<Int<TILE_M>, Shape<_8, _2>, Int<STAGES_A>>,
                                                   Stride<_8, Stride<_1, Int<TILE_M * 8>>, Int<TILE_M * 16>>>{}));
        Tensor hi = make_tensor<half_t>(Shape<Shape<_2, _2, _2>, _1, Int<TILE_K / 16>>{}); // (MMA,1,TILE_K/16)
        Tensor lo = make_tensor<half_t>(Shape<Shape<_2, _2, _2>, _1, Int<TILE_K / 16>>{}); // (MMA,1,TILE_K/16)
        // Rows in an order in which the four vectors of a row and those of another fill all banks.
        int const order = lane / 8 + lane / 4 % 2 * 4;
        for (int i = threadIdx.x - 128; i < count_b; i += 256) {
            int4 const g = reinterpret_cast<int4 const *>(guard_b)[i];
            atomicMax(&limits[0], g.x), atomicMax(&limits[1], g.y), atomicMax(&limits[2], g.z);
        }
        asm volatile("bar.sync 3, 256;" ::: "memory");
//! else
        auto mma = make_tiled_mma(SM90_64x128x16_F32F16F16_SS<MAJOR_A, MAJOR_B>{});
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
//! if store
        // Two columns at a time, as TMA takes them from a warp: (16,16,STORES)
        smem_c += (half * 4 + warp) * STORES * 16 * 16;
        Tensor sC = make_tensor(make_smem_ptr(smem_c),
                                composition(Swizzle<3, 1, 3>{}, Layout<Shape<_16, _16, Int<STORES>>, Stride<_16, _1, Int<16 * 16>>>{}));
//! end

        clear(acc);
//! if not short_k
        if (half == 1)
            asm volatile("bar.arrive 1, 256;" ::: "memory");
//! end
//! if triangle
        for (int round = 0; work_of(round, M, N, K, w); ++round) {
//! else
        for (int round = 0; work_of(round, M, N, K, L, w); ++round) {
//! end
            clear(sum);
//! if fuse
            // Of the thread's share of its two rows: exponents in sum, zeros, largest, bits may be
            // lost.
            int exponents[2] = {0, 0}, zeros[2] = {0, 0};
            unsigned largest[2] = {0, 0}, lost = 0;
//! end
#pragma unroll 1
            for (int k0 = w.begin; k0 < w.end; k0 += TILE_K) {
                wait_barrier(full_a[a.slot], a.turn);
//! if fuse
                float unscale[2];
                CUTE_UNROLL
                for (int q = 0; q < 2; ++q) {
                    float x[TILE_K / 4];
                    unsigned top = 0, low = ~0u;
                    CUTE_UNROLL
                    for (int i = 0; i < TILE_K / 16; ++i) {
                        uint128_t const v = sA(half * 64 + warp * 16 + q * 8 + order, i * 4 + lane % 4, a.slot);
                        *reinterpret_cast<uint128_t *>(&x[i * 4]) = v;
                    }
                    CUTE_UNROLL
                    for (int i = 0; i < TILE_K / 4; ++i) {
                        unsigned const bits = __float_as_uint(x[i]) & 0x7fffffffu;
                        top = cute::max(top, bits), low = cute::min(low, bits);
                        exponents[q] += int(bits >> 23);
                    }
                    top = cute::max(top, __shfl_xor_sync(~0u, top, 1));
                    top = cute::max(top, __shfl_xor_sync(~0u, top, 2));
                    if (low == 0) { // which of them are zero, and what is the smallest that is not?
                        low = ~0u;
                        CUTE_UNROLL
                        for (int i = 0; i < TILE_K / 4; ++i) {
                            unsigned const bits = __float_as_uint(x[i]) & 0x7fffffffu;
                            zeros[q] += bits == 0;
                            low = cute::min(low, bits - 1);
                        }
                    }
                    int const e = top == 0 ? 127 : int(top >> 23), used = cute::min(cute::max(e, 67), 187);
                    float const scale = __uint_as_float(unsigned(268 - used) << 23);
                    unscale[q] = __uint_as_float(unsigned(used - 14) << 23);
                    largest[q] = cute::max(largest[q], top);
                    lost |= (e != used ? 2u : 0u) | (int(low >> 23) < e - 16 ? 1u : 0u);
                    CUTE_UNROLL
                    for (int i = 0; i < TILE_K / 4; ++i) {
                        float const y = x[i] * scale;
                        half_t const h = half_t(y);
                        hi(make_coord(i % 2, q, i / 2 % 2), 0, i / 4) = h;
                        lo(make_coord(i % 2, q, i / 2 % 2), 0, i / 4) = half_t(y - float(h));
                    }
                }
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
//! if short_k
                    // Sums of 16 terms: the accumulator truncates, which tells where sums are short.
                    CUTE_UNROLL
                    for (int k = 0; k < TILE_K / 16; ++k) {
                        mma.accumulate_ = GMMA::ScaleOut::Zero;
                        warpgroup_fence_operand(acc);
                        warpgroup_arrive();
                        gemm(mma, a_hi(k), tCrB(_, _, k, 1, b.slot), acc);
                        mma.accumulate_ = GMMA::ScaleOut::One;
                        gemm(mma, a_lo(k), tCrB(_, _, k, 0, b.slot), acc);
                        gemm(mma, a_hi(k), tCrB(_, _, k, 0, b.slot), acc);
                        warpgroup_commit_batch();
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
//! if store
                    if (k0 >= w.begin + LEAD)
                        asm volatile("bar.sync %0, 256;" ::"r"(1 + half) : "memory");
//! else
                    asm volatile("bar.sync %0, 256;" ::"r"(1 + half) : "memory");
//! end
                    mma.accumulate_ = GMMA::ScaleOut::Zero;
                    warpgroup_fence_operand(acc);
                    warpgroup_arrive();
                    CUTE_UNROLL
                    for (int k = 0; k < TILE_K / 16; ++k) {
                        gemm(mma, a_hi(k), tCrB(_, _, k, 1, b.slot), acc);
                        mma.accumulate_ = GMMA::ScaleOut::One;
                        gemm(mma, a_lo(k), tCrB(_, _, k, 0, b.slot), acc);
                    }
                    CUTE_UNROLL
                    for (int k = 0; k < TILE_K / 16; ++k)
                        gemm(mma, a_hi(k), tCrB(_, _, k, 0, b.slot), acc);
                    warpgroup_commit_batch();
//! if store
                    if (k0 >= w.begin + LEAD)
                        asm volatile("bar.arrive %0, 256;" ::"r"(2 - half) : "memory");
//! else
                    asm volatile("bar.arrive %0, 256;" ::"r"(2 - half) : "memory");
//! end
                    warpgroup_wait<0>();
                    warpgroup_fence_operand(acc);
                    if (thread < CLUSTER)
                        release(empty_b[b.slot], thread);
//! if not fuse
                    if (piece == PIECES - 1 && thread == 0)
                        arrive_barrier(empty_a[a.slot]);
//! end
                    CUTE_UNROLL
                    for (int i = 0; i < size(acc); ++i)
//! if fuse
                        sum(i, piece) = fmaf(acc(i), unscale[i / 2 % 2], sum(i, piece));
//! else
                        sum(i, piece) += acc(i);
//! end
//! end
                    b.next<STAGES_B>();
                }
                a.next<STAGES_A>();
            }

//! if fuse
            // May the split of these rows have lost bits that matter? As must_repeat() below.
            lost |= __shfl_xor_sync(~0u, lost, 1);
            lost |= __shfl_xor_sync(~0u, lost, 2);
            CUTE_UNROLL
            for (int q = 0; q < 2; ++q) {
                for (int i = 1; i < 4; i *= 2) {
                    exponents[q] += __shfl_xor_sync(~0u, exponents[q], i);
                    zeros[q] += __shfl_xor_sync(~0u, zeros[q], i);
                }
                int const terms = (w.end - w.begin + TILE_K - 1) / TILE_K * TILE_K - zeros[q];
                int const both = terms - limits[1], depth = terms * int(largest[q] >> 23) - exponents[q];
                bool const deep = (lost & 1) || limits[2];
                if (terms > 0 && (terms < 16 || lost > 1 ||
                                  (deep && (both < ceil_div(K, 8) || depth + limits[0] > 12 * both))))
                    guard_a[3] = 1;
            }

//! end
            // Unscale. A thread has rows m and m + 8, and two neighbouring columns of every eight.
            int const l = w.l;
            int const row = w.m + rank * TILE_M + half * 64 + warp * 16, m0 = row + order, n0 = w.n + lane % 4 * 2;
//! if store
//! if not split_k
//! each leaf
            Tensor m$X = make_tensor(make_gmem_ptr($x$batch), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
//! end
            float fa[2] = {1.0f, 1.0f};
//! if not fuse
            CUTE_UNROLL
            for (int q = 0; q < 2; ++q)
                fa[q] = m0 + q * 8 < M ? __ldg(scale_a + $a_l * M + m0 + q * 8) : 0.0f;
//! end
            CUTE_UNROLL
            for (int piece = 0; piece < PIECES; ++piece) {
                float2 fb[PIECE_N / 8]; // all at once: one latency
                CUTE_UNROLL
                for (int i = 0; i < PIECE_N / 8; ++i)
                    fb[i] = fetch_scales(scale_b + $b_l * N + cute::min(n0 + piece * PIECE_N + i * 8, N - 2));
                CUTE_UNROLL
                for (int j = 0; j < PIECE_N / 32; ++j) { // 32 columns; each warp goes its own way
                    int const place = (piece * (PIECE_N / 32) + j) % STORES;
                    if (lane == 0)
                        tma_store_wait<STORES - 1>(); // what was here before is on its way
                    __syncwarp();
                    CUTE_UNROLL
                    for (int i = 0; i < 16; i += 2) {
                        int const q = i / 2 % 2;
                        float x = sum(j * 16 + i, piece) * fa[q] * fb[j * 4 + i / 4].x;
                        float y = sum(j * 16 + i + 1, piece) * fa[q] * fb[j * 4 + i / 4].y;
//! if epilogue and not split_k
                        int const m = m0 + q * 8, n = n0 + piece * PIECE_N + j * 32 + i / 4 * 8;
                        if (m < M && n < N) {
                            x = [&](int m, int n) { return ${kernel}_finish(x$finish); }(m, n);
                            y = [&](int m, int n) { return ${kernel}_finish(y$finish); }(m, n + 1);
                        }
//! end
                        sC(order + q * 8, i / 4 * 4 + lane % 4, place) = make_float2(x, y);
                    }
                    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                    __syncwarp();
                    if (lane == 0) {
                        SM90_TMA_STORE_3D::copy(&map_c, smem_c + place * 16 * 16, w.n + piece * PIECE_N + j * 32, row, l);
                        tma_store_arrive();
                    }
                }
            }
//! else
//! if split_k
            Tensor mC = make_tensor(make_gmem_ptr(partial + int64_t(l) * M * N), make_shape(M, N),
                                    make_stride(int64_t(N), _1{})); // (M,N)
//! else
            Tensor mC = make_tensor(make_gmem_ptr(C$c_batch), make_shape(M, N), make_stride($c_m, $c_n)); // (M,N)
//! each leaf
            Tensor m$X = make_tensor(make_gmem_ptr($x$batch), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
//! end
            bool const whole = row + 16 <= M && w.n + TILE_N <= N;
            float fa[2] = {1.0f, 1.0f};
//! if not fuse
            CUTE_UNROLL
            for (int q = 0; q < 2; ++q)
                fa[q] = m0 + q * 8 < M ? __ldg(scale_a + $a_l * M + m0 + q * 8) : 0.0f;
//! end
            CUTE_UNROLL
            for (int piece = 0; piece < PIECES; ++piece) {
                CUTE_UNROLL
                for (int i = 0; i < PIECE_N / 2; i += 2) {
                    int const m = m0 + i / 2 % 2 * 8, n = n0 + piece * PIECE_N + i / 4 * 8;
                    float const f0 = n < N ? __ldg(scale_b + $b_l * N + n) : 0.0f;
                    float const f1 = n + 1 < N ? __ldg(scale_b + $b_l * N + n + 1) : 0.0f;
                    sum(i, piece) = sum(i, piece) * fa[i / 2 % 2] * f0;
                    sum(i + 1, piece) = sum(i + 1, piece) * fa[i / 2 % 2] * f1;
//! if epilogue and not split_k
                    if (whole || (m < M && n < N))
                        sum(i, piece) = [&](int m, int n) { return ${kernel}_finish(sum(i, piece)$finish); }(m, n);
                    if (whole || (m < M && n + 1 < N))
                        sum(i + 1, piece) = [&](int m, int n) { return ${kernel}_finish(sum(i + 1, piece)$finish); }(m, n + 1);
//! end
                }
            }
            bool const aligned = int64_t(stride<1>(mC)) == 1 && int64_t(stride<0>(mC)) % 4 == 0;
            if (whole && aligned) {
                // Neighbouring lanes exchange, so that four of them store 64 bytes of a row.
                bool const odd = lane % 2;
                float *to = &mC(m0, w.n + odd * 8 + lane / 2 % 2 * 4);
                CUTE_UNROLL
                for (int piece = 0; piece < PIECES; ++piece) {
                    CUTE_UNROLL
                    for (int i = 0; i < PIECE_N / 2; i += (i % 4 ? 6 : 2)) {
                        float const x0 = __shfl_xor_sync(~0u, odd ? sum(i, piece) : sum(i + 4, piece), 1);
                        float const x1 = __shfl_xor_sync(~0u, odd ? sum(i + 1, piece) : sum(i + 5, piece), 1);
                        float4 const v = odd ? make_float4(x0, x1, sum(i + 4, piece), sum(i + 5, piece))
                                             : make_float4(sum(i, piece), sum(i + 1, piece), x0, x1);
                        *reinterpret_cast<float4 *>(to + i % 4 * 4 * stride<0>(mC) + piece * PIECE_N + i / 4 * 8) = v;
                    }
                }
            } else {
                // Lanes of different rows exchange 8x8 values, so that a warp stores 32 columns of
                // one row.
                int const place = lane / 4, n = w.n + place / 2 * 8 + lane % 4 * 2 + place % 2;
                CUTE_UNROLL
                for (int piece = 0; piece < PIECES; ++piece) {
                    CUTE_UNROLL
                    for (int j = 0; j < PIECE_N / 16; ++j) { // 32 columns, rows 0 to 7 or 8 to 15
                        float v[8];
                        CUTE_UNROLL
                        for (int i = 0; i < 8; ++i)
                            v[i] = sum((j / 2 * 4 + i / 2) * 4 + j % 2 * 2 + i % 2, piece);
                        CUTE_UNROLL
                        for (int bit = 1; bit < 8; bit *= 2) {
                            CUTE_UNROLL
                            for (int i = 0; i < 8; ++i) {
                                if (i & bit)
                                    continue;
                                float const x = __shfl_xor_sync(~0u, place & bit ? v[i] : v[i | bit], bit * 4);
                                if (place & bit)
                                    v[i] = x;
                                else
                                    v[i | bit] = x;
                            }
                        }
                        CUTE_UNROLL
                        for (int i = 0; i < 8; ++i) {
//! if fuse
                            int const m = row + j % 2 * 8 + i / 2 + i % 2 * 4;
//! else
                            int const m = row + j % 2 * 8 + i;
//! end
                            if (m < M && n + piece * PIECE_N + j / 2 * 32 < N)
                                mC(m, n + piece * PIECE_N + j / 2 * 32) = v[i];
                        }
                    }
                }
            }
//! end
        }
//! if not short_k
        if (half == 0)
            asm volatile("bar.sync 1, 256;" ::: "memory"); // take up the last arrival
//! end
//! if store
        if (lane == 0)
            tma_store_wait<0>();
//! end
    }
    if constexpr (CLUSTER > 1)
        cluster_sync(); // nobody leaves while another may still signal to it
}
//! end

//! if split_k
// Adds the parts of every element, in order.
__global__ void __launch_bounds__(256)
    ${kernel}_add_parts(float const *partial, int parts, $params)
{
    int64_t const size = int64_t(M) * N;
//! if overlap
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
//! end
    for (int64_t i = int64_t(blockIdx.x) * 256 + threadIdx.x; i < size; i += int64_t(gridDim.x) * 256) {
        int const m = int(i / N), n = int(i % N);
        Tensor mC = make_tensor(make_gmem_ptr(C$c_batch), make_shape(M, N), make_stride($c_m, $c_n)); // (M,N)
//! each leaf
        Tensor m$X = make_tensor(make_gmem_ptr($x$batch), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
        float acc = 0.0f;
#pragma unroll 8
        for (int part = 0; part < parts; ++part)
            acc += partial[part * size + i];
//! if epilogue
        mC(m, n) = ${kernel}_finish(acc$finish);
//! else
        mC(m, n) = acc;
//! end
    }
}

//! end
// ---- the guard ---------------------------------------------------------------------------------------

// May the split have lost bits that matter? Of elements more than 2^16 below the largest of their
// row it drops at most 2^-39 of that. The sum of |a b| is, by the inequality of the means over the
// terms with both factors, at least their number times 2^(mean of the exponents); so where both
// sides' exponents are not far below, nothing is lost. Sums of a few terms (a permutation, say)
// must be exact to the last bit, which the split does not hold.
__device__ inline bool must_repeat(int32_t const *guard_a, int32_t const *guard_b, int count_a, int count_b, int K)
{
    __shared__ int worst[6];
    int4 a = make_int4(0, 0, 0, 0), b = a;
    for (int i = threadIdx.x; i < count_a; i += blockDim.x)
        a = worse(a, reinterpret_cast<int4 const *>(guard_a)[i]);
    for (int i = threadIdx.x; i < count_b; i += blockDim.x)
        b = worse(b, reinterpret_cast<int4 const *>(guard_b)[i]);
    if (threadIdx.x < 6)
        worst[threadIdx.x] = 0;
    __syncthreads();
    atomicMax(&worst[0], a.x), atomicMax(&worst[1], a.y), atomicMax(&worst[2], a.z + 2 * a.w);
    atomicMax(&worst[3], b.x), atomicMax(&worst[4], b.y), atomicMax(&worst[5], b.z + 2 * b.w);
    __syncthreads();
    bool const outside = cute::max(worst[2], worst[5]) > 1, deep = cute::max(worst[2], worst[5]) == 1;
//! if triangle
    return outside || (deep && worst[0] + worst[3] > 12 * 16);
//! else
    int const both = K - worst[1] - worst[4]; // terms with both factors, at least
    if (K - cute::max(worst[1], worst[4]) < 16)
        return true;
    return outside || (deep && (both < ceil_div(K, 8) || worst[0] + worst[3] > 12 * both));
//! end
}

//! end
// The product on the FMA units: 8x8 per thread, sums of 64 terms added up.
//! if tensor
__global__ void __launch_bounds__(256)
    ${kernel}_repeat(int32_t const *guard_a, int32_t const *guard_b, int count_a, int count_b, int part_k, int L,
                     $params)
{
//! else
__global__ void __launch_bounds__(256)
    ${kernel}_plain(int L, $params)
{
//! end
    constexpr int BLK = 128, BLK_K = 16, ROW = BLK + 4, MINE = BLK * BLK_K / 256;
    alignas(16) __shared__ float smem_a[2 * BLK_K * ROW], smem_b[2 * BLK_K * ROW];
    Layout const two = Layout<Shape<Int<BLK>, Int<BLK_K>, _2>, Stride<_1, Int<ROW>, Int<BLK_K * ROW>>>{};
    Tensor sA = make_tensor(make_smem_ptr(smem_a), two); // (BLK,BLK_K,2)
    Tensor sB = make_tensor(make_smem_ptr(smem_b), two); // (BLK,BLK_K,2)
    int const tiles_m = ceil_div(M, BLK), tiles_n = ceil_div(N, BLK), tm = threadIdx.x / 16, tn = threadIdx.x % 16;

//! if tensor
//! if overlap
    asm volatile("griddepcontrol.wait;" ::: "memory");
//! end
    if (!must_repeat(guard_a, guard_b, count_a, count_b, part_k))
        return;
//! end
    for (int t = blockIdx.x; t < tiles_m * tiles_n * L; t += gridDim.x) {
        int const l = t / (tiles_m * tiles_n), m0 = t / tiles_n % tiles_m * BLK, n0 = t % tiles_n * BLK;
        Tensor mA = make_tensor(make_gmem_ptr(A$a_batch), make_shape(M, K), make_stride($a_m, $a_k)); // (M,K)
        Tensor mB = make_tensor(make_gmem_ptr(B$b_batch), make_shape(N, K), make_stride($b_n, $b_k)); // (N,K)
        Tensor mC = make_tensor(make_gmem_ptr(C$c_batch), make_shape(M, N), make_stride($c_m, $c_n)); // (M,N)
//! each leaf
        Tensor m$X = make_tensor(make_gmem_ptr($x$batch), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
        Tensor acc = make_tensor<float>(Shape<_8, _8>{}); // (8,8)
        Tensor sum = make_tensor<float>(Shape<_8, _8>{}); // (8,8)
        Tensor nextA = make_tensor<float>(Int<MINE>{});   // (MINE)
        Tensor nextB = make_tensor<float>(Int<MINE>{});   // (MINE)
        clear(acc);
        clear(sum);
        __syncthreads(); // the tile before is no longer read
        // A turn fetches a block of k and multiplies the one before.
#pragma unroll 1
        for (int k0 = 0, turn = 0; k0 < K + BLK_K; k0 += BLK_K, turn ^= 1) {
            CUTE_UNROLL
            for (int j = 0; j < MINE; ++j) {
                int const i = threadIdx.x + j * 256;
//! if a_k_major
                int const m = i / BLK_K, ka = i % BLK_K;
//! else
                int const m = i % BLK, ka = i / BLK;
//! end
//! if b_k_major
                int const n = i / BLK_K, kb = i % BLK_K;
//! else
                int const n = i % BLK, kb = i / BLK;
//! end
                nextA(j) = m0 + m < M && k0 + ka < K ? mA(m0 + m, k0 + ka) : 0.0f;
                nextB(j) = n0 + n < N && k0 + kb < K ? mB(n0 + n, k0 + kb) : 0.0f;
            }
            if (k0 > 0) {
                CUTE_UNROLL
                for (int k = 0; k < BLK_K; ++k) {
                    Tensor rA = make_tensor<float>(_8{}); // (8): rows tm * 8, ...
                    Tensor rB = make_tensor<float>(_8{}); // (8): columns tn * 4, ..., 64 + tn * 4, ...
                    CUTE_UNROLL
                    for (int i = 0; i < 8; i += 4) {
                        *reinterpret_cast<float4 *>(&rA(i)) = *reinterpret_cast<float4 *>(&sA(tm * 8 + i, k, turn ^ 1));
                        *reinterpret_cast<float4 *>(&rB(i)) = *reinterpret_cast<float4 *>(&sB(tn * 4 + i * 16, k, turn ^ 1));
                    }
                    gemm(rA, rB, acc);
                }
                if (k0 % 64 == 0 || k0 >= K) {
                    CUTE_UNROLL
                    for (int i = 0; i < 64; ++i) {
                        sum(i) += acc(i);
                        acc(i) = 0.0f;
                    }
                }
            }
            CUTE_UNROLL
            for (int j = 0; j < MINE; ++j) {
                int const i = threadIdx.x + j * 256;
//! if a_k_major
                sA(i / BLK_K, i % BLK_K, turn) = nextA(j);
//! else
                sA(i % BLK, i / BLK, turn) = nextA(j);
//! end
//! if b_k_major
                sB(i / BLK_K, i % BLK_K, turn) = nextB(j);
//! else
                sB(i % BLK, i / BLK, turn) = nextB(j);
//! end
            }
            __syncthreads();
        }
        CUTE_UNROLL
        for (int i = 0; i < 64; ++i) {
            int const m = m0 + tm * 8 + i % 8, n = n0 + tn * 4 + i / 32 * 64 + i / 8 % 4;
            if (m < M && n < N)
//! if epilogue
                mC(m, n) = ${kernel}_finish(sum(i)$finish);
//! else
                mC(m, n) = sum(i);
//! end
        }
    }
}
#endif

#ifdef CUTEGEN_HOST
//! if tensor
//! if not both
// The planes of an operand for TMA: (K,rows,L,2), or (64,K,rows/64,L,2) where rows are neighbours
// in memory.
static struct cutegen_map plane_map(struct cutegen_call *call, uint16_t *planes, int k_major, int64_t rows, int64_t K,
                                    int64_t L, int64_t ld, int tile)
{
    struct cutegen_map_spec s;
    int64_t dims_k[5] = {K, rows, L, 2, 1}, dims_r[5] = {64, K, ld / 64, L, 2};
    int64_t strides_k[5] = {ld, rows * ld, L * rows * ld, 0, 0}, strides_r[5] = {ld, 64, K * ld, L * K * ld, 0};
    int32_t box_k[5] = {TILE_K, (int32_t)tile, 1, 1, 1}, box_r[5] = {64, TILE_K, (int32_t)tile / 64, 1, 1};

    s.data = planes;
    s.dtype = CUTEGEN_F16;
    s.rank = k_major ? 4 : 5;
    for (int i = 0; i < 5; i++) {
        s.dims[i] = k_major ? dims_k[i] : dims_r[i];
        s.strides_bytes[i] = 2 * (k_major ? strides_k[i] : strides_r[i]);
        s.box[i] = k_major ? box_k[i] : box_r[i];
        s.element_strides[i] = 1;
    }
    s.swizzle = CUTEGEN_SWIZZLE_128;
    s.fill = CUTEGEN_FILL_ZERO;
    s.l2 = CUTEGEN_L2_256;
    return cutegen_map_tiled(call, &s);
}
//! end

//! end
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
    int64_t L = $L;
//! each check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
//! if tensor
//! each vector_check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
    CUTEGEN_REQUIRE(call, cutegen_aligned(C, 16), "C must start on 16 bytes");
//! end
//! each scalar
    CUTEGEN_REQUIRE(call, call->scalar[$k].f == $value, "$name is written into the kernel as $value");
//! end
    int64_t processors = call->device.sm_count;
//! if tensor
//! if overlap
    uint32_t flags = CUTEGEN_OVERLAP;
//! else
    uint32_t flags = 0;
//! end
    struct cutegen_dim one = cutegen_dim3(1, 1, 1);
//! if split_k

    // Parts of K, each a product of its own, as many as fill the device.
    int64_t K_all = K, tiles_c = cutegen_ceil_div(M, TILE_M * CLUSTER) * cutegen_ceil_div(N, TILE_N);
    int64_t most = cutegen_max(1, cutegen_min(processors / CLUSTER / tiles_c, cutegen_ceil_div(K, 4 * TILE_K)));
    K = cutegen_round_up(cutegen_ceil_div(K_all, most), TILE_K);
    L = cutegen_ceil_div(K_all, K);
//! else
    int64_t K_all = K * L;
//! end

//! if both
//! if not split_k
    int64_t L_a = $a_count, step_a = $a_step, L_b = $b_count, step_b = $b_step;
//! end
//! else
    // A
//! if split_k and not fuse
    int64_t L_a = L, step_a = K * $a_unit;
//! elif not split_k
    int64_t L_a = $a_count, step_a = $a_step;
//! end
//! if fuse
    int64_t count_a = 1;
    int32_t *guard_a = (int32_t *)cutegen_workspace(call, 16);
    CUTEGEN_TRY(cutegen_memset(call, guard_a, 0, 16));
//! elif a_k_major
    int64_t ld_a = cutegen_round_up(K, 8), rows_a = M * L_a;
    int64_t count_a = cutegen_min(cutegen_ceil_div(rows_a, K <= 1024 ? 16 : K <= 4096 ? 4 : 1), processors * 8);
//! else
    int64_t ld_a = cutegen_round_up(M, 64), rows_a = K * L_a;
//! if once
    int64_t strips_a = ld_a / 32, count_a = strips_a * L_a;
//! else
    int64_t deep_a = cutegen_round_up(cutegen_max(64, cutegen_ceil_div(K, 16)), 8), parts_a = cutegen_ceil_div(K, deep_a);
    int64_t strips_a = cutegen_ceil_div(M, 128), count_a = strips_a * L_a;
    int32_t *stats_a = (int32_t *)cutegen_workspace(call, L_a * parts_a * M * 16);
//! end
//! end
//! if not fuse
    uint16_t *planes_a = (uint16_t *)cutegen_workspace(call, rows_a * ld_a * 2 * 2);
    float *scale_a = (float *)cutegen_workspace(call, M * L_a * 4);
    int32_t *guard_a = (int32_t *)cutegen_workspace(call, count_a * 16);
//! end

    // B
//! if split_k
    int64_t L_b = L, step_b = K * $b_unit;
//! else
    int64_t L_b = $b_count, step_b = $b_step;
//! end
//! if b_k_major
//! if fuse
    int64_t ld_b = cutegen_round_up(K, 16), rows_b = N * L_b, deep = ld_b;
//! else
    int64_t ld_b = cutegen_round_up(K, 8), rows_b = N * L_b, deep = K;
//! end
    int64_t count_b = cutegen_min(cutegen_ceil_div(rows_b, K <= 1024 ? 16 : K <= 4096 ? 4 : 1), processors * 8);
//! else
//! if fuse
    int64_t ld_b = cutegen_round_up(N, 64), deep = cutegen_round_up(K, 16), rows_b = deep * L_b;
//! else
    int64_t ld_b = cutegen_round_up(N, 64), deep = K, rows_b = deep * L_b;
//! end
//! if once
    int64_t strips_b = ld_b / 32, count_b = strips_b * L_b;
//! else
    int64_t deep_b = cutegen_round_up(cutegen_max(64, cutegen_ceil_div(K, 16)), 8), parts_b = cutegen_ceil_div(K, deep_b);
    int64_t strips_b = cutegen_ceil_div(N, 128), count_b = strips_b * L_b;
    int32_t *stats_b = (int32_t *)cutegen_workspace(call, L_b * parts_b * N * 16);
//! end
//! end
    uint16_t *planes_b = (uint16_t *)cutegen_workspace(call, rows_b * ld_b * 2 * 2);
    float *scale_b = (float *)cutegen_workspace(call, N * L_b * 4);
    int32_t *guard_b = (int32_t *)cutegen_workspace(call, count_b * 16);

    // The splits.
//! if once and b_k_major
    uint32_t flags_b = 0;
//! elif b_k_major
    uint32_t flags_b = $b_first;
//! end
//! if once
    int64_t held = cutegen_ceil_div(K, K <= 4096 ? 512 : 1024); // blocks of a cluster
    CUTEGEN_REQUIRE(call, held <= 8, "a cluster must hold all of K");
//! end
//! if b_n_major and once
    if (K <= 4096)
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_strip<8, $b_wide>), cutegen_dim3(held, strips_b, L_b),
                                      cutegen_dim3(512, 1, 1), cutegen_dim3(held, 1, 1), 0, 0, CUTEGEN_DATA(float const, B),
                                      planes_b, scale_b, guard_b, (int)N, (int)K, K_all, (int64_t)$b_slow, step_b, (int)ld_b));
    else
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_strip<16, $b_wide>), cutegen_dim3(held, strips_b, L_b),
                                      cutegen_dim3(512, 1, 1), cutegen_dim3(held, 1, 1), 0, 0, CUTEGEN_DATA(float const, B),
                                      planes_b, scale_b, guard_b, (int)N, (int)K, K_all, (int64_t)$b_slow, step_b, (int)ld_b));
//! elif b_n_major
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_look_columns<$b_wide>), cutegen_dim3(strips_b, parts_b, L_b),
                               cutegen_dim3(256, 1, 1), 0, CUTEGEN_DATA(float const, B), stats_b, (int)N, (int)K, K_all,
                               (int64_t)$b_slow, step_b, (int)deep_b));
//! end
//! if a_m_major and not once
    CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_look_columns<$a_wide>), cutegen_dim3(strips_a, parts_a, L_a),
                                  cutegen_dim3(256, 1, 1), one, 0, $a_first, CUTEGEN_DATA(float const, A), stats_a, (int)M,
                                  (int)K, K_all, (int64_t)$a_slow, step_a, (int)deep_a));
//! end
//! if b_n_major and once
//! elif b_n_major
    CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_columns<$b_wide>), cutegen_dim3(strips_b, parts_b, L_b),
                                  cutegen_dim3(256, 1, 1), one, 0, flags, CUTEGEN_DATA(float const, B),
                                  (int32_t const *)stats_b, planes_b, scale_b, guard_b, (int)N, (int)K, K_all,
                                  (int64_t)$b_slow, step_b, (int)deep_b, (int)ld_b));
//! else
    if (K <= 1024)
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_rows<32, $b_wide>), cutegen_dim3(count_b, 1, 1),
                                      cutegen_dim3(512, 1, 1), one, 0, flags_b, CUTEGEN_DATA(float const, B), planes_b,
                                      scale_b, guard_b, (int)N, (int)L_b, (int)K, K_all, (int64_t)$b_slow, step_b, (int)ld_b));
    else if (K <= 4096)
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_rows<128, $b_wide>), cutegen_dim3(count_b, 1, 1),
                                      cutegen_dim3(512, 1, 1), one, 0, flags_b, CUTEGEN_DATA(float const, B), planes_b,
                                      scale_b, guard_b, (int)N, (int)L_b, (int)K, K_all, (int64_t)$b_slow, step_b, (int)ld_b));
    else
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_rows<512, $b_wide>), cutegen_dim3(count_b, 1, 1),
                                      cutegen_dim3(512, 1, 1), one, 0, flags_b, CUTEGEN_DATA(float const, B), planes_b,
                                      scale_b, guard_b, (int)N, (int)L_b, (int)K, K_all, (int64_t)$b_slow, step_b, (int)ld_b));
//! end
//! if fuse
//! elif a_m_major and once
    if (K <= 4096)
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_strip<8, $a_wide>), cutegen_dim3(held, strips_a, L_a),
                                      cutegen_dim3(512, 1, 1), cutegen_dim3(held, 1, 1), 0, flags, CUTEGEN_DATA(float const, A),
                                      planes_a, scale_a, guard_a, (int)M, (int)K, K_all, (int64_t)$a_slow, step_a, (int)ld_a));
    else
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_strip<16, $a_wide>), cutegen_dim3(held, strips_a, L_a),
                                      cutegen_dim3(512, 1, 1), cutegen_dim3(held, 1, 1), 0, flags, CUTEGEN_DATA(float const, A),
                                      planes_a, scale_a, guard_a, (int)M, (int)K, K_all, (int64_t)$a_slow, step_a, (int)ld_a));
//! elif a_m_major
    CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_columns<$a_wide>), cutegen_dim3(strips_a, parts_a, L_a),
                                  cutegen_dim3(256, 1, 1), one, 0, flags, CUTEGEN_DATA(float const, A),
                                  (int32_t const *)stats_a, planes_a, scale_a, guard_a, (int)M, (int)K, K_all,
                                  (int64_t)$a_slow, step_a, (int)deep_a, (int)ld_a));
//! else
    if (K <= 1024)
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_rows<32, $a_wide>), cutegen_dim3(count_a, 1, 1),
                                      cutegen_dim3(512, 1, 1), one, 0, flags, CUTEGEN_DATA(float const, A), planes_a,
                                      scale_a, guard_a, (int)M, (int)L_a, (int)K, K_all, (int64_t)$a_slow, step_a, (int)ld_a));
    else if (K <= 4096)
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_rows<128, $a_wide>), cutegen_dim3(count_a, 1, 1),
                                      cutegen_dim3(512, 1, 1), one, 0, flags, CUTEGEN_DATA(float const, A), planes_a,
                                      scale_a, guard_a, (int)M, (int)L_a, (int)K, K_all, (int64_t)$a_slow, step_a, (int)ld_a));
    else
        CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, (${kernel}_split_rows<512, $a_wide>), cutegen_dim3(count_a, 1, 1),
                                      cutegen_dim3(512, 1, 1), one, 0, flags, CUTEGEN_DATA(float const, A), planes_a,
                                      scale_a, guard_a, (int)M, (int)L_a, (int)K, K_all, (int64_t)$a_slow, step_a, (int)ld_a));
//! end
//! end

    // The product.
//! if fuse or both
    struct cutegen_map_spec spec;
    for (int i = 0; i < 5; i++)
        spec.dims[i] = 1, spec.strides_bytes[i] = 0, spec.box[i] = 1, spec.element_strides[i] = 1;
    spec.data = CUTEGEN_DATA(float, A);
    spec.dtype = CUTEGEN_F32;
    spec.rank = 3;
//! if split_k
    spec.dims[0] = K_all, spec.dims[1] = M;
    spec.strides_bytes[0] = $a_slow * 4, spec.strides_bytes[1] = M * $a_slow * 4;
//! else
    spec.dims[0] = K, spec.dims[1] = M, spec.dims[2] = L_a;
    spec.strides_bytes[0] = $a_slow * 4;
    spec.strides_bytes[1] = (step_a > 0 ? step_a : M * $a_slow) * 4;
//! end
    spec.box[0] = 32, spec.box[1] = TILE_M;
    spec.swizzle = CUTEGEN_SWIZZLE_128;
    spec.fill = CUTEGEN_FILL_ZERO;
    spec.l2 = CUTEGEN_L2_256;
    struct cutegen_map map_a = cutegen_map_tiled(call, &spec);
//! else
    struct cutegen_map map_a = plane_map(call, planes_a, A_K_MAJOR, M, K, L_a, ld_a, TILE_M);
//! end
//! if both
    spec.data = CUTEGEN_DATA(float, B);
//! if b_k_major and split_k
    spec.dims[0] = K_all, spec.dims[1] = N;
    spec.strides_bytes[0] = $b_slow * 4, spec.strides_bytes[1] = N * $b_slow * 4;
//! elif b_k_major
    spec.dims[0] = K, spec.dims[1] = N, spec.dims[2] = L_b;
    spec.strides_bytes[0] = $b_slow * 4;
    spec.strides_bytes[1] = (step_b > 0 ? step_b : N * $b_slow) * 4;
//! elif split_k
    spec.dims[0] = N, spec.dims[1] = K_all;
    spec.strides_bytes[0] = $b_slow * 4, spec.strides_bytes[1] = K_all * $b_slow * 4;
    spec.box[0] = TILE_N, spec.box[1] = TILE_K;
    spec.swizzle = CUTEGEN_SWIZZLE_NONE;
//! else
    spec.dims[0] = N, spec.dims[1] = K, spec.dims[2] = L_b;
    spec.strides_bytes[0] = $b_slow * 4;
    spec.strides_bytes[1] = (step_b > 0 ? step_b : K * $b_slow) * 4;
    spec.box[0] = TILE_N, spec.box[1] = TILE_K;
    spec.swizzle = CUTEGEN_SWIZZLE_NONE;
//! end
    struct cutegen_map map_b = cutegen_map_tiled(call, &spec);
//! else
    struct cutegen_map map_b = plane_map(call, planes_b, B_K_MAJOR, N, deep, L_b, ld_b, PIECE_N);
//! end
    int64_t tiles = cutegen_ceil_div(M, TILE_M * CLUSTER) * cutegen_ceil_div(N, TILE_N) * L;
//! if split_k
    float *partial = (float *)cutegen_workspace(call, L * M * N * 4);
//! end
//! if store or both
    struct cutegen_map_spec spec_c;
    for (int i = 0; i < 5; i++)
        spec_c.dims[i] = 1, spec_c.strides_bytes[i] = 0, spec_c.box[i] = 1, spec_c.element_strides[i] = 1;
    spec_c.dtype = CUTEGEN_F32;
    spec_c.rank = 3;
    spec_c.dims[0] = N, spec_c.dims[1] = M, spec_c.dims[2] = L;
//! if split_k
    spec_c.data = partial;
    spec_c.strides_bytes[0] = N * 4, spec_c.strides_bytes[1] = M * N * 4;
//! else
    spec_c.data = CUTEGEN_DATA(float, C);
    spec_c.strides_bytes[0] = $c_slow * 4, spec_c.strides_bytes[1] = $c_step * 4;
//! end
    spec_c.box[0] = 32, spec_c.box[1] = 16;
    spec_c.swizzle = CUTEGEN_SWIZZLE_128;
    spec_c.fill = CUTEGEN_FILL_ZERO;
    spec_c.l2 = CUTEGEN_L2_NONE;
    struct cutegen_map map_c = cutegen_map_tiled(call, &spec_c);
//! end
    int64_t part_k = K;
    int64_t blocks = cutegen_min(processors / CLUSTER, tiles) * CLUSTER;
//! if both
    int64_t count_a = blocks, count_b = blocks;
    int32_t *guard_a = (int32_t *)cutegen_workspace(call, blocks * 16), *guard_b = (int32_t *)cutegen_workspace(call, blocks * 16);
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, ${kernel}_product, cutegen_dim3(blocks, 1, 1), cutegen_dim3(512, 1, 1), SMEM_BYTES, map_a, map_b,
//! if split_k
                               map_c, guard_a, guard_b, (int)K, K_all, (int)L, $args));
//! else
                               map_c, guard_a, guard_b, (int)L, $args));
//! end
//! else
    CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, ${kernel}_product, cutegen_dim3(blocks, 1, 1), cutegen_dim3(384, 1, 1),
                                  cutegen_dim3(CLUSTER, 1, 1), SMEM_BYTES, flags, map_a, map_b,
//! if store
                                  map_c,
//! end
//! if fuse
                                  guard_a, (int32_t const *)guard_b, (int)count_b,
//! else
                                  (float const *)scale_a,
//! end
                                  (float const *)scale_b,
//! if split_k
                                  partial, (int)K,
//! end
                                  (int)L, $args));
//! end
//! if split_k
    CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, ${kernel}_add_parts, cutegen_dim3(cutegen_min(cutegen_ceil_div(M * N, 256), processors * 8), 1, 1),
                                  cutegen_dim3(256, 1, 1), one, 0, flags, (float const *)partial, (int)L, $args));
    L = 1;
    K = K_all;
//! end
    return CUTEGEN_LAUNCH_EX(call, ${kernel}_repeat, cutegen_dim3(processors, 1, 1), cutegen_dim3(256, 1, 1), one, 0, flags,
                             (int32_t const *)guard_a, (int32_t const *)guard_b, (int)count_a, (int)count_b, (int)part_k, (int)L,
                             $args);
//! else
    int64_t tiles = cutegen_ceil_div(M, 128) * cutegen_ceil_div(N, 128) * L;
    return CUTEGEN_LAUNCH(call, ${kernel}_plain, cutegen_dim3(cutegen_min(tiles, processors * 2), 1, 1),
                          cutegen_dim3(256, 1, 1), 0, (int)L, $args);
//! end
}
#endif
