// recipes/attention_sm90.cu - attention in fp16 or bf16 on Hopper's tensor cores, accumulated in fp32.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
//
// K and V tiles alternate in one ring, in the order of use: K(n-1), K(n-2), V(n-1), K(n-3), ... Tiles go from the
// last to the first, so that only the first one or two need a mask. ptxas would move the wait for the second product
// before the exponentials that should overlap it; the branch of a barrier's wait between them keeps it where it is.
//
//! recipe attention_sm90: O = softmax(scores) V for each head in fp16 or bf16, on sm_90a
//! fact narrow: elements have 2 bytes
//! fact words: elements have 4 bytes
//! fact scaled: a score is a product times a positive number
//! fact linear: weights are the scores themselves, there is no softmax
//! fact paged: keys lie in pages that a table names (attention_decode)
//! fact causal: a query sees the keys up to its own place
//! fact safe: a row without keys gives zeros
//! fact vectors: rows of Q, K and V start on 16 bytes and are a multiple of them
//! fact short_heads: a tile of Q, K and V fits shared memory
//! fact planes: operands are split into fp16 parts (attention_split_sm90)
//! fact given: the parts are there before (attention_split_sm90)
//! fact o_vectors: rows of O are contiguous, start on 16 bytes and are a multiple of 64
//! fact long_heads: heads have more than 64 columns
//! fact counted: blocks take tiles from a counter
//! fact many_keys: tiles of K and V have more rows than CuTe has products for without its extension
//!
//! step tensor: multiply on the tensor cores (wgmma), tiles brought by TMA
//!   why: One product of a warpgroup runs while it computes the exponentials of the other; P never leaves the registers.
//! step turns: let the warpgroups take turns in issuing products
//!   why: One warpgroup's products cover the other's exponentials.
//!   needs: tensor
//! step close: scale and subtract in one instruction while a row's maximum is small
//!   why: A maximum's weight must be 1, which a multiply-add gives only where rounding the maximum changes little.
//!   when: scaled and causal and long_heads
//!   needs: tensor
//! text
// $kernel: $ops as softmax(scores) V.
#include <cutegen/kernel.h>

constexpr int HEAD = $head;     // columns of Q and K
constexpr int HEAD_V = $head_v; // columns of V and O
//! if tensor
constexpr int GROUPS = $groups;   // warpgroups that compute, 64 queries each
constexpr int TILE_M = 64 * GROUPS;
constexpr int TILE_N = $tile_n; // keys
constexpr int WIDTH = (HEAD + 31) / 32 * 32, WIDTH_V = (HEAD_V + 31) / 32 * 32; // in shared memory: zeros behind the end
constexpr int CHUNK = WIDTH % 64 == 0 ? 64 : 32, CHUNK_V = WIDTH_V % 64 == 0 ? 64 : 32; // columns that TMA brings together
constexpr int SLOT = TILE_N * (WIDTH > WIDTH_V ? WIDTH : WIDTH_V); // elements
constexpr int STAGES = $stages;
constexpr int QUEUE = $queue; // tiles of Q: with two, the next one comes during this one
constexpr int SIZE_Q = TILE_M * WIDTH; // elements of such a tile
constexpr int SMEM_BYTES = 1024 + (QUEUE * SIZE_Q + STAGES * SLOT) * 2 + 256;
static_assert(SMEM_BYTES <= 232448, "shared memory of a block");
//! else
constexpr int WARPS = 4;
//! end

#ifdef CUTEGEN_DEVICE
#include <cuda/std/limits>
#include <cute/tensor.hpp>
//! if tensor and many_keys
#include <cute/arch/mma_sm90_gmma_ext.hpp> // 160 columns; NVRTC does not find it by the name that CuTe has for it
#include <cute/atom/mma_traits_sm90_gmma_ext.hpp>
//! end
//! if tensor
#include <cutlass/arch/reg_reconfig.h>
#include <cutlass/numeric_conversion.h>
//! end

using namespace cute;

//! include attention_score
//! if tensor
//! include attention_tiles
// Two neighbouring values as they lie in memory.
__device__ inline unsigned pack(float x, float y)
{
    cutlass::Array<float, 2> from;
    from[0] = x, from[1] = y;
    auto const pair = cutlass::NumericArrayConverter<$type, float, 2>::convert(from);
    return reinterpret_cast<unsigned const &>(pair);
}

__global__ void __launch_bounds__(128 * (GROUPS + 1), 1)
    ${kernel}_attention(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
                        const __grid_constant__ CUtensorMap map_v,
//! if counted
                        unsigned *counter,
//! end
                        int heads, int together, $out_params)
{
//! include attention_start

    if (group == 0) { // one thread fetches
        cutlass::arch::warpgroup_reg_dealloc<24>();
        Place p = {0, 1}, pq = {0, 1};
        while (threadIdx.x == 0 && walk.lead(tile)) {
            [[maybe_unused]] int const l = tile.l;
            $places
//! include attention_fetch
            fetch_k(tile.blocks - 1);
            wait_barrier(empty_q[pq.slot], pq.turn);
            set_barrier_transaction_bytes(full_q[pq.slot], TILE_M * WIDTH * 2);
            CUTE_UNROLL
            for (int c = 0; c < WIDTH / CHUNK; ++c)
                SM90_TMA_LOAD_5D::copy(&map_q, &full_q[pq.slot], USUAL,
                                       smem_q + pq.slot * TILE_M * WIDTH + c * TILE_M * CHUNK, c * CHUNK, tile.m, $q_place);
            pq.next<QUEUE>();
#pragma unroll 1
            for (int block = tile.blocks - 2; block >= 0; --block) {
                fetch_k(block);
                fetch_v(block + 1);
            }
            fetch_v(0);
        }
    } else {
        cutlass::arch::warpgroup_reg_alloc<GROUPS == 2 ? 240 : 160>();
        int const half = group - 1, thread = threadIdx.x % 128, lane = threadIdx.x % 32;
        auto mma = make_tiled_mma(SM90_64x${tile_n}x16_F32${wgmma_type}_SS<GMMA::Major::K, GMMA::Major::K>{},
                                  Layout<Shape<Int<GROUPS>, _1, _1>>{});
        auto mma_v = make_tiled_mma(SM90_64x${width_v}x16_F32${wgmma_type}_RS<GMMA::Major::K, GMMA::Major::MN>{},
                                    Layout<Shape<Int<GROUPS>, _1, _1>>{});
        auto thr = mma.get_slice(threadIdx.x - 128);
        auto thr_v = mma_v.get_slice(threadIdx.x - 128);
        Tensor sQ = make_tensor(make_smem_ptr(smem_q), rows_layout<Element, TILE_M, WIDTH, QUEUE>()); // (TILE_M,WIDTH,QUEUE)
        Tensor sK = make_tensor(make_smem_ptr(ring), rows_layout<Element, TILE_N, WIDTH, STAGES, SLOT>()); // (TILE_N,WIDTH,STAGES)
        Tensor sV = make_tensor(make_smem_ptr(ring), columns_layout<Element, WIDTH_V, TILE_N, STAGES, SLOT>()); // (WIDTH_V,TILE_N,STAGES)
        Tensor tSrQ = thr.partition_fragment_A(sQ); // (MMA,1,WIDTH/16,QUEUE)
        Tensor tSrK = thr.partition_fragment_B(sK); // (MMA,1,WIDTH/16,STAGES)
        Tensor tOrV = thr_v.partition_fragment_B(sV); // (MMA,1,TILE_N/16,STAGES)
        Tensor scores = partition_fragment_C(mma, Shape<Int<TILE_M>, Int<TILE_N>>{}); // (MMA,1,1): two rows, pairs of columns
        Tensor out = partition_fragment_C(mma_v, Shape<Int<TILE_M>, Int<WIDTH_V>>{}); // (MMA,1,1)
        Tensor tOrP = make_tensor<Element>(Shape<Shape<_2, _2, _2>, _1, Int<TILE_N / 16>>{}); // (MMA,1,TILE_N/16)
        Tensor pairs = recast<unsigned>(tOrP); // ((1,2,2),1,TILE_N/16)
        Place p = {0, 0}, pq = {0, 0};
        [[maybe_unused]] float best[2], sum[2], before[2]; // of rows m and m + 8: the maximum, the sum of weights, what came so far is worth
//! if turns
        if (half == GROUPS - 1)
            give_turn(0);
//! end

        while (walk.follow(tile)) {
            [[maybe_unused]] int const l = tile.l;
            $places
            int const row = tile.m + half * 64 + thread / 32 * 16 + lane / 4;
//! each leaf
            Tensor m$X = make_tensor(make_gmem_ptr($x + ($x_at)), make_shape(queries, keys), make_stride($m, $n)); // (queries,keys)
//! end
            auto const release = [&](int slot) __attribute__((always_inline)) {
                if (thread == 0)
                    arrive_barrier(empty[slot]);
                __syncwarp(); // wgmma is for whole warps
            };
            auto const multiply = [&](int slot) __attribute__((always_inline)) { // begins S = Q K^T
                warpgroup_fence_operand(scores);
                warpgroup_arrive();
                mma.accumulate_ = GMMA::ScaleOut::Zero;
                CUTE_UNROLL
                for (int k = 0; k < WIDTH / 16; ++k) {
                    gemm(mma, tSrQ(_, _, k, pq.slot), tSrK(_, _, k, slot), scores);
                    mma.accumulate_ = GMMA::ScaleOut::One;
                }
                warpgroup_commit_batch();
            };
            auto const add_values = [&](int slot) __attribute__((always_inline)) { // begins O += P V
                warpgroup_fence_operand(out);
                warpgroup_fence_operand(tOrP);
                warpgroup_arrive();
                CUTE_UNROLL
                for (int k = 0; k < TILE_N / 16; ++k)
                    gemm(mma_v, tOrP(_, _, k), tOrV(_, _, k, slot), out);
                warpgroup_commit_batch();
            };
            // Weights of a block instead of its scores, relative to the rows' maxima so far.
            auto const weigh = [&](int block, bool masked) __attribute__((always_inline)) {
                if (masked) {
//! include attention_masked
                }
//! if not linear
//! if scaled
                constexpr float SCALE = $scale2;
//! else
                constexpr float SCALE = 1.0f;
//! end
//! include attention_online
//! end
            };
            auto const narrow = [&]() __attribute__((always_inline)) {
                CUTE_UNROLL
                for (int i = 0; i < size(pairs); ++i)
                    pairs(i) = pack(scores(2 * i), scores(2 * i + 1));
            };

            best[0] = best[1] = UNSEEN;
            sum[0] = sum[1] = 0.0f;
            clear(out);
            mma_v.accumulate_ = GMMA::ScaleOut::One;
            int block = tile.blocks - 1;
            wait_barrier(full_q[pq.slot], pq.turn);
            wait_barrier(full[p.slot], p.turn);
            multiply(p.slot);
            warpgroup_wait<0>();
            warpgroup_fence_operand(scores);
            release(p.slot);
            p.next<STAGES>();
            weigh(block, true);
            narrow();
            wait_barrier(full[p.slot], p.turn);
            auto const step = [&](bool masked) __attribute__((always_inline)) {
                int const slot_k = p.slot; // full already
                p.next<STAGES>();
//! if turns
                take_turn(half);
//! end
                multiply(slot_k);
                int const slot_v = p.slot;
                wait_barrier(full[p.slot], p.turn);
                p.next<STAGES>();
                add_values(slot_v);
//! if turns
                give_turn((half + 1) % GROUPS);
//! end
                warpgroup_wait<1>();
                warpgroup_fence_operand(scores);
                release(slot_k);
                weigh(block, masked);
                warpgroup_fence_operand(scores);
                wait_barrier(full[p.slot], p.turn); // the next K, or the last V
                warpgroup_wait<0>();
                warpgroup_fence_operand(out);
                release(slot_v);
//! if not linear
                if (__any_sync(~0u, before[0] != 1.0f || before[1] != 1.0f)) {
                    CUTE_UNROLL
                    for (int i = 0; i < size(out); ++i)
                        out(i) *= before[i / 2 % 2];
                }
//! end
                narrow();
            };
//! if causal and scaled
            int const whole = tile.m / TILE_N; // blocks below it need no mask
//! end
#pragma unroll 1
            for (--block; block >= 0; --block) // one call: the step must be part of the loop
//! if causal and scaled
                step(block >= whole);
//! elif scaled
                step(false);
//! else
                step(true);
//! end
            if (thread == 0)
                arrive_barrier(empty_q[pq.slot]);
            __syncwarp();
            pq.next<QUEUE>();
            add_values(p.slot);
            warpgroup_wait<0>();
            warpgroup_fence_operand(out);
            release(p.slot);
            p.next<STAGES>();

            Tensor mO = make_tensor(make_gmem_ptr(O + ($o_at)), make_shape(queries, Int<HEAD_V>{}), make_stride($o_row, $o_col)); // (queries,HEAD_V)
            CUTE_UNROLL
            for (int r = 0; r < 2; ++r) {
                int const m = row + r * 8;
                sum[r] += __shfl_xor_sync(~0u, sum[r], 1);
                sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
                float const share = finish_row(1.0f, sum[r]);
//! if o_vectors
                CUTE_UNROLL
                for (int j = 0; j < WIDTH_V / 32; ++j) { // four lanes exchange, so that each stores eight columns
                    unsigned v[4];
                    CUTE_UNROLL
                    for (int i = 0; i < 4; ++i)
                        v[i] = pack(out((j * 4 + i) * 4 + r * 2) * share, out((j * 4 + i) * 4 + r * 2 + 1) * share);
                    exchange(v, lane);
                    if (m < queries)
                        *reinterpret_cast<uint4 *>(&mO(m, j * 32 + lane % 4 * 8)) = make_uint4(v[0], v[1], v[2], v[3]);
                }
//! else
                CUTE_UNROLL
                for (int i = 0; i < WIDTH_V / 4; ++i) {
                    int const n = i / 2 * 8 + lane % 4 * 2 + i % 2;
                    if (m < queries && n < HEAD_V)
                        mO(m, n) = Element(out(i / 2 * 4 + r * 2 + i % 2) * share);
                }
//! end
            }
            __syncwarp(); // wgmma is for whole warps
        }
    }
}
//! else
//! include attention_rows
//! end
#endif

#ifdef CUTEGEN_HOST
//! if tensor
//! include attention_map
//! end
CUTEGEN_PLAN(call)
{
//! include attention_head
//! if tensor
//! each vector_check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
    struct cutegen_map map_q = rows_map(call, $map_type, $q_data, HEAD, queries, $q_row_stride, CHUNK, TILE_M, $q_modes);
    struct cutegen_map map_k = rows_map(call, $map_type, $k_data, HEAD, keys, $k_row_stride, CHUNK, TILE_N, $k_modes);
    struct cutegen_map map_v = rows_map(call, $map_type, $v_data, HEAD_V, keys, $v_row_stride, CHUNK_V, TILE_N, $v_modes);
    int64_t heads = $heads, tiles = cutegen_ceil_div(queries, TILE_M) * heads;
    int64_t room = (32 << 20) / (keys * (HEAD + HEAD_V) * 2) * $sharing; // heads whose K and V stay in L2 together
    int64_t together = room < 1 ? 1 : cutegen_min(room, heads);
//! if counted
    void *counter = cutegen_workspace(call, 4);
    CUTEGEN_TRY(cutegen_memset(call, counter, 0, 4));
//! end
    return CUTEGEN_LAUNCH(call, ${kernel}_attention, cutegen_dim3(cutegen_min(call->device.sm_count, tiles), 1, 1),
                          cutegen_dim3(128 * (GROUPS + 1), 1, 1), SMEM_BYTES, map_q, map_k, map_v,
//! if counted
                          (unsigned *)counter,
//! end
                          (int)heads, (int)together, $out_args);
//! else
    int64_t tiles = cutegen_ceil_div(queries, WARPS) * $heads;
    return CUTEGEN_LAUNCH(call, ${kernel}_rows, cutegen_dim3(tiles, 1, 1), cutegen_dim3(WARPS * 32, 1, 1), 0, $args);
//! end
}
#endif
