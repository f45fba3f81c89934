// recipes/gemm_thin_sm90.cu - an fp32 product with few rows or few columns on Hopper: the time of reading the large operand once.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
// The large operand, S, has a row r for each of the R long rows of the result; the small one, H, has rows h. TMA brings
// S as it is; each warpgroup splits 64 of its rows into two fp16 parts in registers and multiplies them by all of H,
// whose parts another kernel has made. Both have a scale for each 64 terms, so that no bits are lost that matter.
//
//! recipe gemm_thin_sm90: C(m,n) = sum over k of A(m,k) * B(n,k) in fp32, where M or N is small, on tensor cores of sm_90a
//! fact epilogue: pointwise operators follow the product
//! fact along_k: the large operand is contiguous along k
//! fact swapped: A is the large operand
//! fact long_k: K is long enough to divide
//! fact hopper: a kernel can begin while the one before it ends
//!
//! step split_k: divide K among blocks and add the parts afterwards
//!   why: There are too few rows to occupy every processor to the end.
//!   when: long_k
//! step overlap: launch each kernel while the one before ends
//!   why: The large operand is on its way before the small one is ready.
//!   when: hopper
//! step pair: pair blocks that share what they read of the small operand
//!   why: Multicast halves its reads from L2.
//! text
// $kernel: $ops as C(m,n) = sum over k of A(m,k) * B(n,k), with few ${h}s.
#include <cutegen/kernel.h>

constexpr int COUNT = $count;       // of ${h}s in a product, at least as many as there are
constexpr int TILE_K = 64;      // of a slot, and of a scale
constexpr int TERMS = $terms;       // of k, between two additions into fp32 registers
constexpr int WARPGROUPS = $warpgroups;   // that compute, 64 rows each
constexpr int TILE_R = 64 * WARPGROUPS;
constexpr int STAGES_S = $stages_s;     // slots of TILE_R x TILE_K, fp32
constexpr int STAGES_H = $stages_h;     // slots of COUNT x TILE_K, hi and lo, and their scales
//! if pair
constexpr int CLUSTER = 2;      // blocks that share H
//! else
constexpr int CLUSTER = 1;      // blocks that share H
//! end
constexpr int SLOT_S = TILE_R * TILE_K * 4, PLANE_H = COUNT * TILE_K * 2, SCALES_H = COUNT < 32 ? 128 : COUNT * 4; // bytes
constexpr int SMEM_BYTES = 1024 + STAGES_S * SLOT_S + STAGES_H * (2 * PLANE_H + SCALES_H) + 256;

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
#include <cuda_fp16.h>
#include <cutlass/arch/reg_reconfig.h>

using namespace cute;

//! include gemm_finish
// The power of two that brings the largest of some elements to 2^14, and back.
__device__ inline float scale_of(float largest, float &back)
{
    int const exponent = largest == 0.0f ? 14 : cute::min(cute::max(int(__float_as_uint(largest) >> 23) - 127, -112), 127);
    back = __uint_as_float(unsigned(exponent - 14 + 127) << 23);
    return __uint_as_float(unsigned(14 - exponent + 127) << 23);
}

// x + y = hi + lo in fp16, each pair in a word: 22 bits of both.
__device__ inline void split(float x, float y, uint32_t &hi, uint32_t &lo)
{
    __half2 const h = __floats2half2_rn(x, y);
    float2 const back = __half22float2(h);
    __half2 const l = __floats2half2_rn(x - back.x, y - back.y);
    hi = reinterpret_cast<uint32_t const &>(h);
    lo = reinterpret_cast<uint32_t const &>(l);
}

// The parts of $h_tensor, (COUNT,ld) each, in the order of k in which the threads take S, and their scales, (COUNT,ld/64).
// Sixteen lanes split 64 terms.
__global__ void __launch_bounds__(256)
    ${kernel}_pack(uint32_t *planes, float *scales, int ld, $params)
{
    Tensor mH = make_tensor(make_gmem_ptr($h_tensor), make_shape($h_size, K), make_stride($h_row, $h_k)); // (H,K)
    int const i = blockIdx.x * 256 + threadIdx.x, h = i / (ld / 4), k = i % (ld / 4) * 4;
//! if overlap
    cutegen_let_next_begin();
//! end
    if (h >= COUNT)
        return;
    float x[4], largest = 0.0f, back;
    CUTE_UNROLL
    for (int j = 0; j < 4; ++j) {
        x[j] = h < $h_size && k + j < K ? mH(h, k + j) : 0.0f;
        largest = fmaxf(largest, fabsf(x[j]));
    }
    for (int step = 1; step < 16; step *= 2)
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
    float const scale = scale_of(largest, back);
    uint32_t hi[2], lo[2];
    split(x[0] * scale, x[1] * scale, hi[0], lo[0]);
    split(x[2] * scale, x[3] * scale, hi[1], lo[1]);
    uint32_t *const to = planes + (int64_t(h) * ld + k / 16 * 16) / 2;
    int64_t const plane = int64_t(COUNT) * ld / 2;
    CUTE_UNROLL
    for (int j = 0; j < 2; ++j) {
//! if along_k
        int const at = k % 16 / 4 + j * 4; // a thread takes four terms beside each other
//! else
        int const at = k % 16 / 2 + j;
//! end
        to[at] = hi[j];
        to[plane + at] = lo[j];
    }
    if (k % TILE_K == 0)
        scales[k / TILE_K * COUNT + h] = back;
}

// A place in a ring, and the parity of its turn.
//! include ring_place

// Tells block `rank` of the cluster that a warp here is done with a slot.
//! include ring_release

// Starts a sum of TERMS of k, from step `from` on: hi lo and lo hi, then hi hi. Small terms come first.
template <class Mma, class A, class B, class Sum>
__device__ __forceinline__ void start_sum(Mma &mma, A const &hi, A const &lo, B const &tCrB, int slot, int from, Sum &to)
{
    mma.accumulate_ = GMMA::ScaleOut::Zero;
    CUTE_UNROLL
    for (int k = from; k < from + TERMS / 16; ++k) {
        gemm(mma, hi(_, _, k), tCrB(_, _, k, 1, slot), to);
        mma.accumulate_ = GMMA::ScaleOut::One;
        gemm(mma, lo(_, _, k), tCrB(_, _, k, 0, slot), to);
    }
    CUTE_UNROLL
    for (int k = from; k < from + TERMS / 16; ++k)
        gemm(mma, hi(_, _, k), tCrB(_, _, k, 0, slot), to);
    warpgroup_commit_batch();
}

__global__ void __launch_bounds__(128 * (WARPGROUPS + 1), 1)
    ${kernel}_kernel(const __grid_constant__ CUtensorMap map_s, const __grid_constant__ CUtensorMap map_h,
                     const __grid_constant__ CUtensorMap map_scales, float *partial, int blocks_k, int parts, $params)
{
    extern __shared__ unsigned char memory[];
    unsigned const skip = -cast_smem_ptr_to_uint(memory) % 1024; // tiles start on 1024 bytes
    unsigned char *const smem_s = memory + skip, *const smem_h = smem_s + STAGES_S * SLOT_S;
    unsigned char *const smem_scales = smem_h + STAGES_H * 2 * PLANE_H;
    uint64_t *full_s = reinterpret_cast<uint64_t *>(smem_scales + STAGES_H * SCALES_H), *empty_s = full_s + STAGES_S;
    uint64_t *full_h = empty_s + STAGES_S, *empty_h = full_h + STAGES_H;
    int const rank = CLUSTER > 1 ? int(block_rank_in_cluster()) : 0;
    int const group = threadIdx.x / 128, warp = threadIdx.x / 32;
    int const share = ceil_div(blocks_k, parts), first = blockIdx.y * share, end = cute::min(first + share, blocks_k);
    int const r0 = blockIdx.x * TILE_R;

    if (threadIdx.x < STAGES_S + STAGES_H) { // a thread for each slot
        bool const of_s = threadIdx.x < STAGES_S;
        int const i = of_s ? threadIdx.x : threadIdx.x - STAGES_S;
        initialize_barrier(of_s ? full_s[i] : full_h[i], 1);
        initialize_barrier(of_s ? empty_s[i] : empty_h[i], WARPGROUPS * 4 * (of_s ? 1 : CLUSTER));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    if constexpr (CLUSTER > 1)
        cluster_sync();
    else
        __syncthreads();
//! if overlap
    cutegen_let_next_begin();
//! end

    if (group == 0) {
        cutlass::arch::warpgroup_reg_dealloc<24>();
        Place at = {0, 1};
        constexpr uint64_t once = 0x12F0000000000000, often = 0x14F0000000000000; // evict first, and last
        if (threadIdx.x == 0) { // fetches S
            for (int block = first; block < end; ++block) {
                wait_barrier(empty_s[at.slot], at.turn);
                set_barrier_transaction_bytes(full_s[at.slot], SLOT_S);
//! if along_k
                for (int i = 0; i < 2; ++i) // 32 terms are a line of 128 bytes
                    SM90_TMA_LOAD_2D::copy(&map_s, &full_s[at.slot], once, smem_s + at.slot * SLOT_S + i * (SLOT_S / 2),
                                           block * TILE_K + i * 32, r0);
//! else
                for (int i = 0; i < TILE_R / 32; ++i) // 32 rows are a line of 128 bytes
                    SM90_TMA_LOAD_2D::copy(&map_s, &full_s[at.slot], once,
                                           smem_s + at.slot * SLOT_S + i * (32 * TILE_K * 4), r0 + i * 32, block * TILE_K);
//! end
                at.next<STAGES_S>();
            }
        } else if (threadIdx.x == 32) { // fetches H
//! if overlap
            cutegen_wait_for_earlier();
//! end
            constexpr uint16_t mask = (1 << CLUSTER) - 1;
            for (int block = first; block < end; ++block) {
                unsigned char *const to = smem_h + at.slot * 2 * PLANE_H;
                wait_barrier(empty_h[at.slot], at.turn);
                set_barrier_transaction_bytes(full_h[at.slot], 2 * PLANE_H + COUNT * 4);
                for (int plane = rank; plane < 2; plane += CLUSTER)
                    if constexpr (CLUSTER > 1)
                        SM90_TMA_LOAD_MULTICAST_3D::copy(&map_h, &full_h[at.slot], mask, often, to + plane * PLANE_H,
                                                         block * TILE_K, 0, plane);
                    else
                        SM90_TMA_LOAD_3D::copy(&map_h, &full_h[at.slot], often, to + plane * PLANE_H, block * TILE_K, 0, plane);
                SM90_TMA_LOAD_2D::copy(&map_scales, &full_h[at.slot], often, smem_scales + at.slot * SCALES_H, 0, block);
                at.next<STAGES_H>();
            }
        }
    } else {
        cutlass::arch::warpgroup_reg_alloc<$registers>();
        int const mine = group - 1, thread = threadIdx.x % 128, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
        auto mma = make_tiled_mma(SM90_64x${count}x16_F32F16F16_RS<GMMA::Major::K, GMMA::Major::K>{});
        auto thr = mma.get_slice(thread);
        Tensor hi = make_tensor<half_t>(Shape<Shape<_2, _2, _2>, _1, Int<TILE_K / 16>>{}); // (MMA,1,TILE_K/16)
        Tensor lo = make_tensor<half_t>(Shape<Shape<_2, _2, _2>, _1, Int<TILE_K / 16>>{}); // (MMA,1,TILE_K/16)
        Tensor pairs_hi = recast<uint32_t>(hi), pairs_lo = recast<uint32_t>(lo);           // (MMA/2,1,TILE_K/16)
        auto const tile = tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, Shape<Int<COUNT>, Int<TILE_K>>{});
        Tensor sH = make_tensor(make_smem_ptr(reinterpret_cast<half_t *>(smem_h)),
                                composition(tile.layout_a(), tile.offset(),
                                            make_layout(get<0>(tile.layout_b()), get<1>(tile.layout_b()),
                                                        make_layout(_2{}, Int<COUNT * TILE_K>{}),
                                                        make_layout(Int<STAGES_H>{}, Int<2 * COUNT * TILE_K>{})))); // (COUNT,TILE_K,planes,STAGES_H)
        Tensor tCrB = thr.partition_fragment_B(sH);                                                                 // (MMA,1,TILE_K/16,planes,STAGES_H)
        Tensor acc = partition_fragment_C(mma, Shape<_64, Int<COUNT>>{});                                           // (MMA,1,1)
        Tensor sum = make_tensor<float>(Shape<Int<COUNT / 2>>{});                                                   // (MMA)
        Place s = {0, 0}, b = {0, 0};
//! if along_k
        // Rows in an order in which the four vectors of a row and those of another fill all banks. The swizzle takes the
        // row's last three bits: vector v of the thread's eight is at places[v % 2] + what is the same for all threads.
        int const order = g / 2 + g % 2 * 4, rows[2] = {order, order + 8};
        int const place = (mine * 64 + warp % 4 * 16 + order) * 8 + (t ^ order), places[2] = {place, place ^ 4};
//! else
        // Two rows beside each other; the swizzle takes the last three bits of k, so that eight rows of four k fill all banks.
        int const rows[2] = {2 * g, 2 * g + 1}, r = mine * 64 + warp % 4 * 16 + 2 * g;
        int const line = r / 32 * (TILE_K * 16) + r % 4 / 2, chunk = r % 32 / 4; // of pairs of rows: 16 in 128 bytes
//! end
        clear(acc);
        clear(sum);
        if (WARPGROUPS == 2 && mine == 1)
            asm volatile("bar.arrive 1, 256;" ::: "memory");
#pragma unroll 1
        for (int block = first; block < end; ++block) {
            float back[2]; // of the thread's rows
            wait_barrier(full_s[s.slot], s.turn);
            {
                float x[2][TILE_K / 4], scale[2]; // four terms of each 16
//! if along_k
                uint128_t const *const from = reinterpret_cast<uint128_t const *>(smem_s + s.slot * SLOT_S);
                CUTE_UNROLL
                for (int i = 0; i < TILE_K / 8; ++i) {
                    int const q = i % 2, v = i / 2;
                    *reinterpret_cast<uint128_t *>(&x[q][v * 4]) = from[places[v % 2] + q * 64 + v / 2 * (TILE_R * 8)];
                }
//! else
                float2 const *const from = reinterpret_cast<float2 const *>(smem_s + s.slot * SLOT_S);
                CUTE_UNROLL
                for (int i = 0; i < TILE_K / 4; ++i) {
                    int const k = i / 4 * 16 + i % 4 / 2 * 8 + 2 * t + i % 2;
                    float2 const v = from[line + k * 16 + (chunk ^ (2 * t + i % 2)) * 2];
                    x[0][i] = v.x, x[1][i] = v.y;
                }
//! end
                CUTE_UNROLL
                for (int q = 0; q < 2; ++q) {
                    float largest = 0.0f; // NaN stays in hi
                    CUTE_UNROLL
                    for (int i = 0; i < TILE_K / 4; ++i)
                        largest = fmaxf(largest, fabsf(x[q][i]));
                    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1)); // of the lanes that share the row
                    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
                    scale[q] = scale_of(largest, back[q]);
                }
                CUTE_UNROLL
                for (int i = 0; i < TILE_K / 4; ++i) {
                    int const q = i % 2, pair = i / 2;
                    split(x[q][pair * 2] * scale[q], x[q][pair * 2 + 1] * scale[q],
                          pairs_hi(make_coord(0, q, pair % 2), 0, pair / 2), pairs_lo(make_coord(0, q, pair % 2), 0, pair / 2));
                }
            }
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // TMA writes there next
            __syncwarp();
            if (lane == 0)
                arrive_barrier(empty_s[s.slot]);
            s.next<STAGES_S>();

            wait_barrier(full_h[b.slot], b.turn);
            float2 const *const scales = reinterpret_cast<float2 const *>(smem_scales + b.slot * SCALES_H) + t;
            CUTE_UNROLL
            for (int from = 0; from < TILE_K / 16; from += TERMS / 16) {
                // Two warpgroups take turns: one multiplies while the other splits and adds.
                if constexpr (WARPGROUPS == 2)
                    asm volatile("bar.sync %0, 256;" ::"r"(1 + mine) : "memory");
                warpgroup_fence_operand(acc);
                warpgroup_arrive();
                start_sum(mma, hi, lo, tCrB, b.slot, from, acc);
                if constexpr (WARPGROUPS == 2)
                    asm volatile("bar.arrive %0, 256;" ::"r"(2 - mine) : "memory");
                warpgroup_wait<0>();
                warpgroup_fence_operand(acc);
                // The accumulator truncates: it is added in fp32.
                CUTE_UNROLL
                for (int i = 0; i < size(acc); i += 4) {
                    float2 const f = scales[i];
                    CUTE_UNROLL
                    for (int j = 0; j < 4; ++j)
                        sum(i + j) = fmaf(acc(i + j) * (j % 2 ? f.y : f.x), back[j / 2], sum(i + j));
                }
            }
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // likewise
            __syncwarp();
            if (lane < CLUSTER)
                release(empty_h[b.slot], lane);
            b.next<STAGES_H>();
        }
        if (WARPGROUPS == 2 && mine == 0)
            asm volatile("bar.sync 1, 256;" ::: "memory"); // take up the last arrival

        Tensor mP = make_tensor(make_gmem_ptr(partial), make_shape($h_size, $s_size, parts),
                                make_stride($s_size, _1{}, int64_t($h_size) * $s_size)); // (H,R,parts)
        CUTE_UNROLL
        for (int i = 0; i < size(sum); ++i) {
            int const h = i / 4 * 8 + t * 2 + i % 2, row = r0 + mine * 64 + warp % 4 * 16 + rows[i / 2 % 2];
            if (h < $h_size && row < $s_size)
                mP(h, row, int(blockIdx.y)) = sum(i);
        }
    }
    if constexpr (CLUSTER > 1)
        cluster_sync(); // no block leaves while another may still signal to it
}

// Adds the parts of every element, in order and in float64, and finishes it.
__global__ void __launch_bounds__(256)
    ${kernel}_add_parts(float const *partial, int parts, $params)
{
//! include gemm_thin_part
    double total = 0.0;
    for (int part = 0; part < parts && r < $s_size; ++part)
        total += double(mP(h, r, part));
    float acc = float(total);
    // Infinities have no low part, and sums may overflow on their way: such elements once more, in fp32.
//! include gemm_thin_again
    if (r >= $s_size)
        return;
//! include gemm_thin_store
}
#endif

#ifdef CUTEGEN_HOST
// A matrix of `rows` lines for TMA, `planes` of it behind each other.
static struct cutegen_map line_map(struct cutegen_call *call, void *data, int dtype, int bytes, int64_t length, int64_t rows,
                                   int64_t planes, int64_t ld, int box_length, int box_rows, int swizzle)
{
    struct cutegen_map_spec s;

    s.data = data;
    s.dtype = dtype;
    s.rank = planes > 1 ? 3 : 2;
    s.dims[0] = length, s.dims[1] = rows, s.dims[2] = planes;
    s.strides_bytes[0] = ld * bytes, s.strides_bytes[1] = rows * ld * bytes;
    s.box[0] = box_length, s.box[1] = box_rows, s.box[2] = 1;
    s.element_strides[0] = s.element_strides[1] = s.element_strides[2] = 1;
    s.swizzle = swizzle;
    s.fill = CUTEGEN_FILL_ZERO;
    s.l2 = CUTEGEN_L2_256;
    return cutegen_map_tiled(call, &s);
}

CUTEGEN_PLAN(call)
{
//! include gemm_thin_head
    CUTEGEN_REQUIRE(call, $h_size <= COUNT, "the number of ${h}s is written into the kernel");
    int64_t ld = cutegen_round_up(K, TILE_K), blocks_k = ld / TILE_K;
    int64_t tiles = cutegen_round_up(cutegen_ceil_div($s_size, TILE_R), CLUSTER);
//! if split_k

    // As many parts as keep every processor busy to the end. Counted are slots, and what it costs to write and add parts.
    int64_t processors = call->device.sm_count / CLUSTER * CLUSTER, parts = 1, least = 0;
//! include gemm_thin_split
//! else
    int64_t parts = 1;
//! end
    float *partial = (float *)cutegen_workspace(call, parts * $h_size * $s_size * 4);
    uint32_t *planes = (uint32_t *)cutegen_workspace(call, 2 * COUNT * ld * 2);
    float *scales = (float *)cutegen_workspace(call, COUNT * blocks_k * 4);
//! if along_k
    struct cutegen_map map_s = line_map(call, CUTEGEN_DATA(float, $s_tensor), CUTEGEN_F32, 4, K, $s_size, 1, $s_line, 32, TILE_R, CUTEGEN_SWIZZLE_128);
//! else
    struct cutegen_map map_s = line_map(call, CUTEGEN_DATA(float, $s_tensor), CUTEGEN_F32, 4, $s_size, K, 1, $s_line, 32, TILE_K, CUTEGEN_SWIZZLE_128);
//! end
    struct cutegen_map map_h = line_map(call, planes, CUTEGEN_F16, 2, ld, COUNT, 2, ld, TILE_K, COUNT, CUTEGEN_SWIZZLE_128);
    struct cutegen_map map_scales = line_map(call, scales, CUTEGEN_F32, 4, COUNT, blocks_k, 1, COUNT, COUNT, 1, CUTEGEN_SWIZZLE_NONE);
//! if overlap
    uint32_t flags = CUTEGEN_OVERLAP;
//! else
    uint32_t flags = 0;
//! end
    struct cutegen_dim one = cutegen_dim3(1, 1, 1), cluster = cutegen_dim3(CLUSTER, 1, 1), threads = cutegen_dim3(256, 1, 1);
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, ${kernel}_pack, cutegen_dim3(cutegen_ceil_div(COUNT * ld / 4, 256), 1, 1), threads, 0, planes,
                               scales, (int)ld, $args));
    CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, ${kernel}_kernel, cutegen_dim3(tiles, parts, 1), cutegen_dim3(128 * (WARPGROUPS + 1), 1, 1),
                                  cluster, SMEM_BYTES, flags, map_s, map_h, map_scales, partial, (int)blocks_k, (int)parts, $args));
    return CUTEGEN_LAUNCH_EX(call, ${kernel}_add_parts, cutegen_dim3(cutegen_ceil_div($s_size, 256), $h_size, 1), threads, one, 0,
                             flags, (float const *)partial, (int)parts, $args);
}
#endif
