// recipes/gemm_thin_half_sm90.cu - a 16-bit product with few rows or few columns on Hopper: the time of reading the large operand once.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
// The large operand, S, has a row r for each of the R long rows of the result; the small one, H, has rows h. TMA brings
// both; each warpgroup multiplies 64 rows of S by all of H.
//
//! recipe gemm_thin_half_sm90: C(m,n) = sum over k of A(m,k) * B(n,k) in 16 bits, where M or N is small, on tensor cores of sm_90a
//! fact epilogue: pointwise operators follow the product
//! fact along_k: the large operand is contiguous along k
//! fact swapped: A is the large operand
//! fact long_k: K is long enough to divide
//! fact hopper: a kernel can begin while the one before it ends
//! fact lines_h: TMA can read the small operand where it is
//! fact many_h: reading the small operand takes as long as reading the large one
//!
//! step split_k: divide K among blocks and add the parts afterwards
//!   why: There are too few rows to occupy every processor to the end.
//!   when: long_k
//! step overlap: launch each kernel while the one before ends
//!   why: The large operand is on its way before the small one is ready.
//!   when: hopper
//! step in_place: read the small operand where it is
//!   why: It needs no kernel that copies it, and no wait for one.
//!   when: lines_h
//! step pair: pair blocks that share what they read of the small operand
//!   why: Multicast halves its reads from L2. Slots of 64 terms, twice as many, keep more of them under way.
//!   when: many_h
//! text
// $kernel: $ops as C(m,n) = sum over k of A(m,k) * B(n,k), with few ${h}s.
#include <cutegen/kernel.h>

constexpr int COUNT = $count;     // of ${h}s in a product, at least as many as there are
//! if pair
constexpr int CLUSTER = 2;    // blocks that share H
constexpr int TILE_K = 64;    // of a slot
CUTEGEN_TUNE(STAGES, $stages_pair); // slots of (TILE_R + COUNT) x TILE_K
//! else
constexpr int CLUSTER = 1;    // blocks that share H
constexpr int TILE_K = 128;   // of a slot
constexpr int STAGES = $stages;    // slots of (TILE_R + COUNT) x TILE_K
//! end
constexpr int TILE_R = 128;   // two warpgroups of 64 rows
constexpr int PLANE_S = TILE_R * TILE_K * 2, PLANE_H = COUNT * TILE_K * 2; // bytes
constexpr int SMEM_BYTES = 1024 + STAGES * (PLANE_S + PLANE_H) + 256;

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
#include <cutlass/arch/reg_reconfig.h>

using namespace cute;

//! include gemm_finish
//! if not in_place
// $h_tensor as (COUNT,ld), along k, with zeros around it.
__global__ void __launch_bounds__(256)
    ${kernel}_pack(uint16_t *packed, int ld, $params)
{
    Tensor mH = make_tensor(make_gmem_ptr($h_tensor), make_shape($h_size, K), make_stride($h_row, $h_k)); // (H,K)
    int const i = blockIdx.x * 256 + threadIdx.x, h = i / ld, k = i % ld;
//! if overlap
    cutegen_let_next_begin();
//! end
    if (h < COUNT)
        reinterpret_cast<$type *>(packed)[i] = h < $h_size && k < K ? mH(h, k) : $type(0.0f);
}
//! end
// Tells block `rank` of the cluster that a warpgroup here is done with a slot.
//! include ring_release

__global__ void __launch_bounds__(384, 1)
    ${kernel}_kernel(const __grid_constant__ CUtensorMap map_s, const __grid_constant__ CUtensorMap map_h, float *partial,
                     int blocks_k, int parts, $params)
{
    extern __shared__ unsigned char memory[];
    unsigned const skip = -cast_smem_ptr_to_uint(memory) % 1024; // tiles start on 1024 bytes
    unsigned char *const smem_s = memory + skip, *const smem_h = smem_s + STAGES * PLANE_S;
    uint64_t *full_s = reinterpret_cast<uint64_t *>(smem_h + STAGES * PLANE_H), *full_h = full_s + STAGES, *empty = full_h + STAGES;
    int const rank = CLUSTER > 1 ? int(block_rank_in_cluster()) : 0;
    int const group = threadIdx.x / 128, warp = threadIdx.x / 32;
    int const share = ceil_div(blocks_k, parts), first = blockIdx.y * share, end = cute::min(first + share, blocks_k);
    int const r0 = blockIdx.x * TILE_R;

    if (threadIdx.x < STAGES) {
        initialize_barrier(full_s[threadIdx.x], 1);
        initialize_barrier(full_h[threadIdx.x], 1);
        initialize_barrier(empty[threadIdx.x], 2 * CLUSTER);
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
        int slot = 0, turn = 1;
        bool const of_s = warp == 0;
        constexpr uint64_t once = 0x12F0000000000000, often = 0x14F0000000000000; // evict first, and last
        if (threadIdx.x == 0 || threadIdx.x == 32) { // one fetches S, one fetches H
//! if overlap and not in_place
            if (!of_s)
                cutegen_wait_for_earlier();
//! end
            for (int block = first; block < end; ++block) {
                wait_barrier(empty[slot], turn);
                set_barrier_transaction_bytes(of_s ? full_s[slot] : full_h[slot], of_s ? PLANE_S : PLANE_H);
//! if along_k
                for (int i = 0; i < TILE_K / 64 && of_s; ++i) // 64 elements are a line of 128 bytes
                    SM90_TMA_LOAD_2D::copy(&map_s, &full_s[slot], once, smem_s + slot * PLANE_S + i * (TILE_R * 128),
                                           block * TILE_K + i * 64, r0);
//! else
                for (int i = 0; i < TILE_R / 64 && of_s; ++i) // 64 elements are a line of 128 bytes
                    SM90_TMA_LOAD_2D::copy(&map_s, &full_s[slot], once, smem_s + slot * PLANE_S + i * (TILE_K * 128),
                                           r0 + i * 64, block * TILE_K);
//! end
                for (int i = 0; i < TILE_K / 64 && !of_s; ++i)
                    if constexpr (CLUSTER > 1) // each block brings its share of the ${h}s for both
                        SM90_TMA_LOAD_MULTICAST_2D::copy(&map_h, &full_h[slot], uint16_t((1 << CLUSTER) - 1), often,
                                                         smem_h + slot * PLANE_H + i * (COUNT * 128) + rank * (COUNT * 128 / CLUSTER),
                                                         block * TILE_K + i * 64, rank * (COUNT / CLUSTER));
                    else
                        SM90_TMA_LOAD_2D::copy(&map_h, &full_h[slot], often, smem_h + slot * PLANE_H + i * (COUNT * 128),
                                               block * TILE_K + i * 64, 0);
                if (++slot == STAGES)
                    slot = 0, turn ^= 1;
            }
        }
    } else {
        cutlass::arch::warpgroup_reg_alloc<240>();
        int const mine = group - 1, thread = threadIdx.x % 128, lane = threadIdx.x % 32;
//! if along_k
        auto mma = make_tiled_mma(SM90_64x${count}x16_F32$wgmma<GMMA::Major::K, GMMA::Major::K>{});
        auto const tile = tile_to_shape(GMMA::Layout_K_SW128_Atom<$type>{}, Shape<_64, Int<TILE_K>>{}); // 64 of k behind each other
        Tensor sS = make_tensor(make_smem_ptr(reinterpret_cast<$type *>(smem_s) + mine * 64 * 64),
                                composition(tile.layout_a(), tile.offset(),
                                            make_layout(make_layout(_64{}, _64{}),
                                                        make_layout(Shape<_64, Int<TILE_K / 64>>{}, Stride<_1, Int<TILE_R * 64>>{}),
                                                        make_layout(Int<STAGES>{}, Int<TILE_R * TILE_K>{})))); // (64,TILE_K,STAGES)
//! else
        auto mma = make_tiled_mma(SM90_64x${count}x16_F32$wgmma<GMMA::Major::MN, GMMA::Major::K>{});
        auto const tile = tile_to_shape(GMMA::Layout_MN_SW128_Atom<$type>{}, Shape<_64, Int<TILE_K>>{});
        Tensor sS = make_tensor(make_smem_ptr(reinterpret_cast<$type *>(smem_s) + mine * 64 * TILE_K),
                                composition(tile.layout_a(), tile.offset(),
                                            make_layout(get<0>(tile.layout_b()), get<1>(tile.layout_b()),
                                                        make_layout(Int<STAGES>{}, Int<TILE_R * TILE_K>{})))); // (64,TILE_K,STAGES)
//! end
        auto const tile_h = tile_to_shape(GMMA::Layout_K_SW128_Atom<$type>{}, Shape<Int<COUNT>, Int<TILE_K>>{});
        Tensor sH = make_tensor(make_smem_ptr(reinterpret_cast<$type *>(smem_h)),
                                composition(tile_h.layout_a(), tile_h.offset(),
                                            make_layout(get<0>(tile_h.layout_b()), get<1>(tile_h.layout_b()),
                                                        make_layout(Int<STAGES>{}, Int<COUNT * TILE_K>{})))); // (COUNT,TILE_K,STAGES)
        auto thr = mma.get_slice(thread);
        Tensor tCrA = thr.partition_fragment_A(sS);                       // (MMA,1,TILE_K/16,STAGES)
        Tensor tCrB = thr.partition_fragment_B(sH);                       // (MMA,1,TILE_K/16,STAGES)
        Tensor acc = partition_fragment_C(mma, Shape<_64, Int<COUNT>>{}); // (MMA,1,1)
        int slot = 0, turn = 0, last = -1;                                // last: of the products that are under way
        clear(acc);
        mma.accumulate_ = GMMA::ScaleOut::One;
#pragma unroll 1
        for (int block = first; block < end; ++block) {
            wait_barrier(full_s[slot], turn);
            wait_barrier(full_h[slot], turn);
            warpgroup_fence_operand(acc);
            warpgroup_arrive();
            CUTE_UNROLL
            for (int k = 0; k < TILE_K / 16; ++k)
                gemm(mma, tCrA(_, _, k, slot), tCrB(_, _, k, slot), acc);
            warpgroup_commit_batch();
            warpgroup_wait<1>();
            warpgroup_fence_operand(acc);
            if (last >= 0 && thread < CLUSTER)
                release(empty[last], thread);
            last = slot;
            if (++slot == STAGES)
                slot = 0, turn ^= 1;
        }
        warpgroup_wait<0>();
        warpgroup_fence_operand(acc);
        Tensor mP = make_tensor(make_gmem_ptr(partial), make_shape($h_size, $s_size, parts),
                                make_stride($s_size, _1{}, int64_t($h_size) * $s_size)); // (H,R,parts)
//! include gemm_thin_results
        auto const finish = [&](float acc, int h, int r) {
//! include gemm_thin_store
        };
        CUTE_UNROLL
        for (int i = 0; i < size(acc); ++i) {
            int const h = i / 4 * 8 + lane % 4 * 2 + i % 2, row = r0 + mine * 64 + warp % 4 * 16 + lane / 4 + i / 2 % 2 * 8;
            if (h < $h_size && row < $s_size) {
                if (parts > 1)
                    mP(h, row, int(blockIdx.y)) = acc(i);
                else
                    finish(acc(i), h, row);
            }
        }
    }
    if constexpr (CLUSTER > 1)
        cluster_sync(); // no block leaves while another may still signal to it
}

// Adds the parts of every element, in order, and finishes it.
__global__ void __launch_bounds__(256)
    ${kernel}_add_parts(float const *partial, int parts, $params)
{
//! include gemm_thin_part
    if (r >= $s_size)
        return;
    float acc = 0.0f;
    for (int part = 0; part < parts; ++part)
        acc += mP(h, r, part);
//! include gemm_thin_store
}
#endif

#ifdef CUTEGEN_HOST
// A matrix of `rows` lines for TMA.
static struct cutegen_map line_map(struct cutegen_call *call, void *data, int64_t length, int64_t rows, int64_t ld, int box_rows)
{
    struct cutegen_map_spec s;

    s.data = data;
    s.dtype = $map_type;
    s.rank = 2;
    s.dims[0] = length, s.dims[1] = rows;
    s.strides_bytes[0] = ld * 2;
    s.box[0] = 64, s.box[1] = box_rows;
    s.element_strides[0] = s.element_strides[1] = 1;
    s.swizzle = CUTEGEN_SWIZZLE_128;
    s.fill = CUTEGEN_FILL_ZERO;
    s.l2 = CUTEGEN_L2_256;
    return cutegen_map_tiled(call, &s);
}

CUTEGEN_PLAN(call)
{
//! include gemm_thin_head
    CUTEGEN_REQUIRE(call, $h_size <= COUNT, "the number of ${h}s is written into the kernel");
    int64_t ld = cutegen_round_up(K, TILE_K), blocks_k = ld / TILE_K, tiles = cutegen_round_up(cutegen_ceil_div($s_size, TILE_R), CLUSTER);
//! if split_k

    // As many parts as keep every processor busy to the end. Counted are slots, and what it costs to write and add parts.
    int64_t processors = call->device.sm_count, parts = 1, least = 0;
//! include gemm_thin_split
//! else
    int64_t parts = 1;
//! end
    float *partial = parts > 1 ? (float *)cutegen_workspace(call, parts * $h_size * $s_size * 4) : NULL;
//! if along_k
    struct cutegen_map map_s = line_map(call, CUTEGEN_DATA(uint16_t, $s_tensor), K, $s_size, $s_line, TILE_R);
//! else
    struct cutegen_map map_s = line_map(call, CUTEGEN_DATA(uint16_t, $s_tensor), $s_size, K, $s_line, TILE_K);
//! end
//! if in_place
    struct cutegen_map map_h = line_map(call, CUTEGEN_DATA(uint16_t, $h_tensor), K, $h_size, $h_line, COUNT / CLUSTER);
//! else
    uint16_t *packed = (uint16_t *)cutegen_workspace(call, COUNT * ld * 2);
    struct cutegen_map map_h = line_map(call, packed, ld, COUNT, ld, COUNT / CLUSTER);
//! end
//! if overlap
    uint32_t flags = CUTEGEN_OVERLAP;
//! else
    uint32_t flags = 0;
//! end
    struct cutegen_dim one = cutegen_dim3(1, 1, 1), cluster = cutegen_dim3(CLUSTER, 1, 1), threads = cutegen_dim3(256, 1, 1);
//! if in_place
    CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, ${kernel}_kernel, cutegen_dim3(tiles, parts, 1), cutegen_dim3(384, 1, 1), cluster, SMEM_BYTES,
                                  0, map_s, map_h, partial, (int)blocks_k, (int)parts, $args));
//! else
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, ${kernel}_pack, cutegen_dim3(cutegen_ceil_div(COUNT * ld, 256), 1, 1), threads, 0, packed,
                               (int)ld, $args));
    CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, ${kernel}_kernel, cutegen_dim3(tiles, parts, 1), cutegen_dim3(384, 1, 1), cluster, SMEM_BYTES,
                                  flags, map_s, map_h, partial, (int)blocks_k, (int)parts, $args));
//! end
    if (parts == 1)
        return 0;
    return CUTEGEN_LAUNCH_EX(call, ${kernel}_add_parts, cutegen_dim3(cutegen_ceil_div($s_size, 256), $h_size, 1), threads, one, 0,
                             flags, (float const *)partial, (int)parts, $args);
}
#endif
