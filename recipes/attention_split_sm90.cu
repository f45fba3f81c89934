// recipes/attention_split_sm90.cu - attention in fp32 on Hopper's tensor cores, as accurate as fp32.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
//
// Q, K and V are split once into two fp16 parts, x * 2^e = hi + lo, with a scale for 64 queries or a block of keys. A
// product is hi lo + lo hi + hi hi, small terms first; P is split in registers. The tensor core's sums over a block of
// keys start from zero and are added to O by the multiply-add that rescales it, so that adding them up in fp32 costs
// nothing. K's scale is part of the factor of the exponent; O is held in units of the last block's scale of V.
// Where products make Q, K and V, their epilogues write the parts (gemm_planes.cuh), with a scale for 64 rows of a head:
// the halves of a block of keys have scales of their own then, and weights are scaled to the larger one of V's.
//
//! recipe attention_split_sm90: O = softmax(scores) V for each head in fp32, by three fp16 products each, on sm_90a
//! fact narrow: elements have 2 bytes
//! fact words: elements have 4 bytes
//! fact scaled: a score is a product times a positive number
//! fact linear: weights are the scores themselves, there is no softmax
//! fact paged: keys lie in pages that a table names (attention_decode)
//! fact causal: a query sees the keys up to its own place
//! fact safe: a row without keys gives zeros
//! fact vectors: rows of Q, K and V start on 16 bytes and are a multiple of them
//! fact short_heads: a tile of Q, K and V fits shared memory
//! fact planes: operands are split into fp16 parts
//! fact o_vectors: rows of O are contiguous and start on 8 bytes
//! fact turns: warpgroups take turns in issuing products (attention_sm90)
//! fact counted: blocks take tiles from a counter
//! fact many_keys: tiles have 160 keys (attention_sm90)
//! fact given: the products that make Q, K and V write their parts (compose/attention_parts.c)
//! fact roomy: registers suffice for two products at a time
//!
//! step tensor: multiply fp16 parts on the tensor cores (wgmma), tiles brought by TMA
//!   why: Three fp16 products are several times faster than one on the FMA units, and as accurate.
//! step overlap: begin the next block's scores before this block's values
//!   why: A warpgroup's own products run while it computes exponentials.
//!   when: roomy
//!   needs: tensor
//! text
// $kernel: $ops as softmax(scores) V.
#include <cutegen/kernel.h>

constexpr int HEAD = $head;     // columns of Q and K
constexpr int HEAD_V = $head_v; // columns of V and O
//! if tensor
constexpr int GROUPS = 2; // warpgroups that compute, 64 queries each
constexpr int TILE_M = 64 * GROUPS;
constexpr int TILE_N = 128; // keys
constexpr int WIDTH = (HEAD + 31) / 32 * 32, WIDTH_V = (HEAD_V + 31) / 32 * 32; // of planes: zeros behind the end
constexpr int CHUNK = WIDTH % 64 == 0 ? 64 : 32, CHUNK_V = WIDTH_V % 64 == 0 ? 64 : 32; // columns that TMA brings together
constexpr int SLOT = TILE_N * (WIDTH > WIDTH_V ? WIDTH : WIDTH_V); // elements: one plane of K or V
constexpr int STAGES = $stages;
constexpr int QUEUE = 1; // tiles of Q
constexpr int SIZE_Q = 2 * TILE_M * WIDTH; // elements of such a tile: two planes
constexpr int SMEM_BYTES = 1024 + (QUEUE * SIZE_Q + STAGES * SLOT) * 2 + 256;
static_assert(SMEM_BYTES <= 232448, "shared memory of a block");
constexpr int WARPS = 8; // of a block that computes in fp32
constexpr int ROWS = 4; // queries of a warp
constexpr int PITCH = (HEAD + 3) / 4 * 4 + 4; // of a row of K in shared memory: rows start in different banks
constexpr int FMA_BYTES = (32 * PITCH + 32 * HEAD_V + WARPS * ROWS * HEAD) * 4;
//! else
constexpr int WARPS = 4;
//! end

#ifdef CUTEGEN_DEVICE
#include <cuda/std/limits>
#include <cute/tensor.hpp>
//! if tensor
#include <cutlass/arch/reg_reconfig.h>
//! end

using namespace cute;

//! include attention_score
//! if tensor
//! include attention_tiles
//! include attention_planes
//! include attention_fma
__global__ void __launch_bounds__(128 * (GROUPS + 1), 1)
    ${kernel}_attention(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
                        const __grid_constant__ CUtensorMap map_v,
//! if given
                        const __grid_constant__ CUtensorMap map_q_low, const __grid_constant__ CUtensorMap map_k_low,
                        const __grid_constant__ CUtensorMap map_v_low,
                        half_t const *planes_q, half_t const *planes_k, half_t const *planes_v, part_rows of_q,
                        part_rows of_k, part_rows of_v,
//! else
                        float const *scales_q, float const *scales_k, float const *scales_v,
//! end
//! if counted
                        unsigned *counter,
//! end
                        int heads, int together, $out_params)
{
//! include attention_start
//! if given
    int const last_q = (queries - 1) / 64, last_k = (keys - 1) / 64; // the last 64 rows, or what is left
//! else
    int const blocks_k = (keys + TILE_N - 1) / TILE_N, blocks_q = (queries + 63) / 64;
//! end

    if (group == 0) { // one thread fetches
        cutlass::arch::warpgroup_reg_dealloc<24>();
        Place p = {0, 1}, pq = {0, 1};
        while (threadIdx.x == 0 && walk.lead(tile)) {
            [[maybe_unused]] int const l = tile.l;
            $places
//! include attention_fetch
            wait_barrier(*empty_q, pq.turn);
            set_barrier_transaction_bytes(*full_q, 2 * TILE_M * WIDTH * 2);
            CUTE_UNROLL
            for (int c = 0; c < 2 * WIDTH / CHUNK; ++c)
//! if given
                SM90_TMA_LOAD_5D::copy(c / (WIDTH / CHUNK) ? &map_q_low : &map_q, full_q, USUAL, smem_q + c * TILE_M * CHUNK,
                                       c % (WIDTH / CHUNK) * CHUNK, tile.m, $q_place);
//! else
                SM90_TMA_LOAD_5D::copy(&map_q, full_q, USUAL, smem_q + c * TILE_M * CHUNK, c % (WIDTH / CHUNK) * CHUNK,
                                       tile.m, $q_head, c / (WIDTH / CHUNK), 0);
//! end
            pq.next<1>();
//! if overlap
            fetch_k(tile.blocks - 1, 1);
            fetch_k(tile.blocks - 1, 0);
#pragma unroll 1
            for (int block = tile.blocks - 2; block >= 0; --block) {
                fetch_k(block, 1);
                fetch_k(block, 0);
                fetch_v(block + 1, 1);
                fetch_v(block + 1, 0);
            }
            fetch_v(0, 1);
            fetch_v(0, 0);
//! else
#pragma unroll 1
            for (int block = tile.blocks - 1; block >= 0; --block) {
                fetch_k(block, 1);
                fetch_k(block, 0);
                fetch_v(block, 1);
                fetch_v(block, 0);
            }
//! end
        }
    } else {
        cutlass::arch::warpgroup_reg_alloc<240>();
        int const half = group - 1, thread = threadIdx.x % 128, lane = threadIdx.x % 32;
        auto mma = make_tiled_mma(SM90_64x128x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>{},
                                  Layout<Shape<Int<GROUPS>, _1, _1>>{});
        auto mma_v = make_tiled_mma(SM90_64x${width_v}x16_F32F16F16_RS<GMMA::Major::K, GMMA::Major::MN>{},
                                    Layout<Shape<Int<GROUPS>, _1, _1>>{});
        auto thr = mma.get_slice(threadIdx.x - 128);
        auto thr_v = mma_v.get_slice(threadIdx.x - 128);
        Tensor sQ = make_tensor(make_smem_ptr(smem_q), rows_layout<half_t, TILE_M, WIDTH, 2>()); // (TILE_M,WIDTH,planes)
        Tensor sK = make_tensor(make_smem_ptr(ring), rows_layout<half_t, TILE_N, WIDTH, STAGES, SLOT>()); // (TILE_N,WIDTH,STAGES)
        Tensor sV = make_tensor(make_smem_ptr(ring), columns_layout<half_t, WIDTH_V, TILE_N, STAGES, SLOT>()); // (WIDTH_V,TILE_N,STAGES)
        Tensor tSrQ = thr.partition_fragment_A(sQ); // (MMA,1,WIDTH/16,planes)
        Tensor tSrK = thr.partition_fragment_B(sK); // (MMA,1,WIDTH/16,STAGES)
        Tensor tOrV = thr_v.partition_fragment_B(sV); // (MMA,1,TILE_N/16,STAGES)
        Tensor scores = partition_fragment_C(mma, Shape<Int<TILE_M>, Int<TILE_N>>{}); // (MMA,1,1): two rows, pairs of columns
        Tensor acc = partition_fragment_C(mma_v, Shape<Int<TILE_M>, Int<WIDTH_V>>{}); // (MMA,1,1): of one block of keys
        Tensor tOrH = make_tensor<half_t>(Shape<Shape<_2, _2, _2>, _1, Int<TILE_N / 16>>{}); // (MMA,1,TILE_N/16)
        Tensor tOrL = make_tensor<half_t>(Shape<Shape<_2, _2, _2>, _1, Int<TILE_N / 16>>{}); // (MMA,1,TILE_N/16)
        Tensor high = recast<unsigned>(tOrH), low = recast<unsigned>(tOrL); // ((1,2,2),1,TILE_N/16)
        float out[size(acc)];
        Place p = {0, 0}, pq = {0, 0};
        // Of rows m and m + 8: the maximum, the sum of weights, what O is multiplied by before a block is added.
        [[maybe_unused]] float best[2], sum[2], next[2], factor[2];
        int k_low, k_high, v_low, v_high; // slots

        while (walk.follow(tile)) {
            [[maybe_unused]] int const l = tile.l;
            $places
            int const row = tile.m + half * 64 + thread / 32 * 16 + lane / 4;
//! if given
            float const *first_k = given_scales<HEAD>(planes_k, of_k) + ($k_group); // of the head's first 64 keys
            float const *first_v = given_scales<HEAD_V>(planes_v, of_v) + ($v_group);
            float const scale_q = given_scales<HEAD>(planes_q, of_q)[($q_group) + cute::min(tile.m / 64 + half, last_q) * of_q.row];
            float scale_k[2], scale_v[2]; // of the halves of a block
            auto const fetch_scales = [&](int block) __attribute__((always_inline)) {
                CUTE_UNROLL
                for (int i = 0; i < 2; ++i) {
                    int const r = cute::min(2 * block + i, last_k);
                    scale_k[i] = first_k[r * of_k.row], scale_v[i] = first_v[r * of_v.row];
                }
            };
//! else
            float const *block_k = scales_k + ($k_head) * blocks_k, *block_v = scales_v + ($v_head) * blocks_k;
            float const scale_q = scales_q[($q_head) * blocks_q + cute::min(tile.m / 64 + half, blocks_q - 1)];
            float scale_k, scale_v; // of a block
            auto const fetch_scales = [&](int block) __attribute__((always_inline)) { scale_k = block_k[block], scale_v = block_v[block]; };
//! end
//! if linear
            float unit[2] = {1.0f, 1.0f}; // O is held in this many, of rows m and m + 8
            int peak[2] = {67, 67}; // exponents of the largest weights so far
//! else
            float unit = 1.0f; // O is held in this many
//! end
//! each leaf
            Tensor m$X = make_tensor(make_gmem_ptr($x + ($x_at)), make_shape(queries, keys), make_stride($m, $n)); // (queries,keys)
//! end
            auto const take_slot = [&]() __attribute__((always_inline)) {
                int const slot = p.slot;
                wait_barrier(full[p.slot], p.turn);
                p.next<STAGES>();
                return slot;
            };
            auto const release = [&](int slot) __attribute__((always_inline)) {
                if (thread == 0)
                    arrive_barrier(empty[slot]);
                __syncwarp(); // wgmma is for whole warps
            };
            auto const multiply = [&]() __attribute__((always_inline)) { // begins S = Q K^T, in two groups
                k_low = take_slot();
                warpgroup_fence_operand(scores);
                warpgroup_arrive();
                mma.accumulate_ = GMMA::ScaleOut::Zero;
                CUTE_UNROLL
                for (int k = 0; k < WIDTH / 16; ++k) {
                    gemm(mma, tSrQ(_, _, k, 0), tSrK(_, _, k, k_low), scores);
                    mma.accumulate_ = GMMA::ScaleOut::One;
                }
                warpgroup_commit_batch();
                k_high = take_slot();
                warpgroup_arrive();
                CUTE_UNROLL
                for (int k = 0; k < WIDTH / 16; ++k)
                    gemm(mma, tSrQ(_, _, k, 1), tSrK(_, _, k, k_high), scores);
                CUTE_UNROLL
                for (int k = 0; k < WIDTH / 16; ++k)
                    gemm(mma, tSrQ(_, _, k, 0), tSrK(_, _, k, k_high), scores);
                warpgroup_commit_batch();
            };
            auto const multiply_values = [&]() __attribute__((always_inline)) { // begins P V of one block, in two groups
                v_low = take_slot();
                warpgroup_fence_operand(acc);
                warpgroup_fence_operand(tOrH);
                warpgroup_fence_operand(tOrL);
                warpgroup_arrive();
                mma_v.accumulate_ = GMMA::ScaleOut::Zero;
                CUTE_UNROLL
                for (int k = 0; k < TILE_N / 16; ++k) {
                    gemm(mma_v, tOrH(_, _, k), tOrV(_, _, k, v_low), acc);
                    mma_v.accumulate_ = GMMA::ScaleOut::One;
                }
                warpgroup_commit_batch();
                v_high = take_slot();
                warpgroup_arrive();
                CUTE_UNROLL
                for (int k = 0; k < TILE_N / 16; ++k)
                    gemm(mma_v, tOrL(_, _, k), tOrV(_, _, k, v_high), acc);
                CUTE_UNROLL
                for (int k = 0; k < TILE_N / 16; ++k)
                    gemm(mma_v, tOrH(_, _, k), tOrV(_, _, k, v_high), acc);
                warpgroup_commit_batch();
            };
            // Weights of a block instead of its scores, in units of 2^-15: then their low parts keep their bits.
            auto const weigh = [&](int block, bool masked) __attribute__((always_inline)) {
//! if given
                constexpr int HALF = TILE_N / 4; // elements of a thread
                float const whole_v = fmaxf(scale_v[0], scale_v[1]); // of both halves; powers of two
                float const share_v[2] = {scale_v[0] * inverse(whole_v), scale_v[1] * inverse(whole_v)};
//! else
                float const whole_v = scale_v;
//! end
                if (masked) {
                    CUTE_UNROLL
                    for (int i = 0; i < size(scores); ++i) {
                        [[maybe_unused]] int const n = block * TILE_N + i / 4 * 8 + lane % 4 * 2 + i % 2, m = row + i / 2 % 2 * 8;
//! if scaled and causal
                        if (n >= keys || n > m)
                            scores(i) = MINUS_INFINITY;
//! elif scaled
                        if (n >= keys)
                            scores(i) = MINUS_INFINITY;
//! else
//! if given
                        float const product = scores(i) * (scale_q * scale_k[i / HALF]);
//! else
                        float const product = scores(i) * (scale_q * scale_k);
//! end
//! if causal
                        scores(i) = n < keys && n <= m && m < queries ? ${kernel}_score2(product$score_args) : UNSEEN;
//! else
                        scores(i) = n < keys && m < queries ? ${kernel}_score2(product$score_args) : UNSEEN;
//! end
//! end
                    }
                }
//! if linear
                // Weights of a row are scaled by a power of two of the largest so far, which the unit of its sums undoes.
                CUTE_UNROLL
                for (int r = 0; r < 2; ++r) {
                    float x = 0.0f;
                    CUTE_UNROLL
                    for (int i = 0; i < size(scores); i += 4)
                        x = fmaxf(x, fmaxf(fabsf(scores(i + r * 2)), fabsf(scores(i + r * 2 + 1))));
                    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
                    x = fmaxf(x, __shfl_xor_sync(~0u, x, 2));
                    peak[r] = cute::min(cute::max(int(__float_as_uint(x) >> 23), peak[r]), 187);
                    float const scale = __uint_as_float(unsigned(268 - peak[r]) << 23);
                    float const own = whole_v * __uint_as_float(unsigned(peak[r] - 14) << 23);
                    CUTE_UNROLL
                    for (int i = 0; i < size(scores); i += 4)
//! if given
                        scores(i + r * 2) *= scale * share_v[i / HALF], scores(i + r * 2 + 1) *= scale * share_v[i / HALF];
//! else
                        scores(i + r * 2) *= scale, scores(i + r * 2 + 1) *= scale;
//! end
                    next[r] = unit[r] / own; // powers of two: exact
                    unit[r] = own;
                }
//! else
//! if scaled and given
                float const scale[2] = {$scale2 * (scale_q * scale_k[0]), $scale2 * (scale_q * scale_k[1])};
//! elif scaled
                float const scale = $scale2 * (scale_q * scale_k);
//! elif given
                constexpr float scale[2] = {1.0f, 1.0f};
//! else
                float const scale = 1.0f;
//! end
                float const change = unit * inverse(whole_v); // powers of two: exact
                unit = whole_v;
                CUTE_UNROLL
                for (int r = 0; r < 2; ++r) {
//! if given
                    float x = MINUS_INFINITY, y = MINUS_INFINITY, u = 0.0f, w = 0.0f; // of the halves
                    CUTE_UNROLL
                    for (int i = 0; i < HALF; i += 4) {
                        x = fmaxf(x, fmaxf(scores(i + r * 2), scores(i + r * 2 + 1)));
                        y = fmaxf(y, fmaxf(scores(i + HALF + r * 2), scores(i + HALF + r * 2 + 1)));
                    }
                    x = fmaxf(x * scale[0], y * scale[1]);
//! else
                    float x = scores(r * 2), y = scores(r * 2 + 1), u = 0.0f, w = 0.0f;
                    CUTE_UNROLL
                    for (int i = 4; i < size(scores); i += 4) {
                        x = fmaxf(x, scores(i + r * 2));
                        y = fmaxf(y, scores(i + r * 2 + 1));
                    }
                    x = fmaxf(x, y);
//! end
                    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
                    x = fmaxf(x, __shfl_xor_sync(~0u, x, 2));
//! if given
                    float const top = fmaxf(best[r], x), base = top > MINUS_INFINITY ? top : 0.0f;
//! else
                    float const top = fmaxf(best[r], x * scale), base = top > MINUS_INFINITY ? top : 0.0f;
//! end
                    float const before = quick_exp2(best[r] - base);
                    best[r] = top;
//! if given
                    float const lift[2] = {32768.0f * share_v[0], 32768.0f * share_v[1]};
                    auto const exponentials = [&](auto const &exponent) __attribute__((always_inline)) {
                        CUTE_UNROLL
                        for (int i = 0; i < HALF; i += 4) {
                            float &a = scores(i + r * 2), &b = scores(i + r * 2 + 1);
                            float &c = scores(i + HALF + r * 2), &d = scores(i + HALF + r * 2 + 1);
                            a = quick_exp2(exponent(a, scale[0])) * lift[0];
                            b = quick_exp2(exponent(b, scale[0])) * lift[0];
                            c = quick_exp2(exponent(c, scale[1])) * lift[1];
                            d = quick_exp2(exponent(d, scale[1])) * lift[1];
                            u += a + b;
                            w += c + d;
                        }
                        u *= inverse(share_v[0]), w *= inverse(share_v[1]);
                    };
//! else
                    auto const exponentials = [&](auto const &exponent) __attribute__((always_inline)) {
                        CUTE_UNROLL
                        for (int i = 0; i < size(scores); i += 4) {
                            float &a = scores(i + r * 2), &b = scores(i + r * 2 + 1);
                            a = quick_exp2(exponent(a)) * 32768.0f;
                            b = quick_exp2(exponent(b)) * 32768.0f;
                            u += a;
                            w += b;
                        }
                    };
//! end
//! if scaled
                    // The roundoff of a large base must not lift the maximum's weight beyond what 16 bits hold.
                    if (!__all_sync(~0u, fabsf(base) < 1048576.0f))
//! if given
                        exponentials([&](float x, float scale) { return __fmul_rn(x, scale) - base; });
//! else
                        exponentials([&](float x) { return __fmul_rn(x, scale) - base; });
//! end
                    else
//! end
//! if given
                        exponentials([&](float x, float scale) { return fmaf(x, scale, -base); });
//! else
                        exponentials([&](float x) { return fmaf(x, scale, -base); });
//! end
                    sum[r] = fmaf(sum[r], before, u + w);
                    next[r] = before * change;
                }
//! end
            };
            auto const split_weights = [&]() __attribute__((always_inline)) {
                CUTE_UNROLL
                for (int i = 0; i < size(high); ++i)
                    split_pair(scores(2 * i), scores(2 * i + 1), high(i), low(i));
            };
            auto const add_up = [&]() __attribute__((always_inline)) {
                CUTE_UNROLL
                for (int i = 0; i < size(acc); ++i)
                    out[i] = fmaf(out[i], factor[i / 2 % 2], acc(i));
            };

            best[0] = best[1] = UNSEEN;
            sum[0] = sum[1] = 0.0f;
            CUTE_UNROLL
            for (int i = 0; i < size(acc); ++i)
                out[i] = 0.0f;
            int block = tile.blocks - 1;
//! if not scaled
            constexpr int whole = 0; // blocks below it need no mask
//! elif causal
            int const whole = tile.m / TILE_N; // blocks below it need no mask
//! else
            int const whole = keys % TILE_N ? tile.blocks - 1 : tile.blocks; // blocks below it need no mask
//! end
            fetch_scales(block);
            wait_barrier(*full_q, pq.turn);
            pq.next<1>();
            multiply();
//! if overlap
            warpgroup_wait<0>();
            warpgroup_fence_operand(scores);
            release(k_low);
            release(k_high);
            weigh(block, block >= whole);
            split_weights();
            factor[0] = next[0], factor[1] = next[1];
            --block;
            auto const step = [&](bool masked) __attribute__((always_inline)) {
                fetch_scales(block);
                multiply();
                multiply_values();
                warpgroup_wait<2>();
                warpgroup_fence_operand(scores);
                release(k_low);
                release(k_high);
                weigh(block, masked);
                warpgroup_fence_operand(scores);
                wait_barrier(full[p.slot], p.turn); // of what comes next: keeps the wait below behind the exponentials
                warpgroup_wait<0>();
                warpgroup_fence_operand(acc);
                release(v_low);
                release(v_high);
                add_up();
                factor[0] = next[0], factor[1] = next[1];
                split_weights();
            };
#pragma unroll 1
            for (; block >= 0; --block) // one call: the step must be part of the loop
                step(block >= whole);
            multiply_values();
            warpgroup_wait<0>();
            warpgroup_fence_operand(acc);
            release(v_low);
            release(v_high);
            add_up();
//! else
            auto const step = [&](bool masked) __attribute__((always_inline)) {
                warpgroup_wait<1>();
                release(k_low);
                warpgroup_wait<0>();
                warpgroup_fence_operand(scores);
                release(k_high);
                weigh(block, masked);
                split_weights();
                factor[0] = next[0], factor[1] = next[1];
                multiply_values();
                fetch_scales(cute::max(block - 1, 0));
                warpgroup_wait<1>();
                release(v_low);
                warpgroup_wait<0>();
                warpgroup_fence_operand(acc);
                release(v_high);
            };
#pragma unroll 1
            for (;; --block) { // one call: the step must be part of the loop
                step(block >= whole);
                if (block == 0)
                    break;
                multiply();
                add_up();
            }
            add_up();
//! end
            if (thread == 0)
                arrive_barrier(*empty_q);
            __syncwarp();

            Tensor mO = make_tensor(make_gmem_ptr(O + ($o_at)), make_shape(queries, Int<HEAD_V>{}), make_stride($o_row, $o_col)); // (queries,HEAD_V)
            CUTE_UNROLL
            for (int r = 0; r < 2; ++r) {
                int const m = row + r * 8;
                sum[r] += __shfl_xor_sync(~0u, sum[r], 1);
                sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
//! if linear
                float const share = unit[r];
//! else
                float const share = finish_row(unit, sum[r]);
//! end
                CUTE_UNROLL
                for (int j = 0; j < WIDTH_V / 8; ++j) {
                    int const n = j * 8 + lane % 4 * 2;
                    float2 const pair = make_float2(out[j * 4 + r * 2] * share, out[j * 4 + r * 2 + 1] * share);
//! if o_vectors
                    if (m < queries && n < HEAD_V)
                        *reinterpret_cast<float2 *>(&mO(m, n)) = pair;
//! else
                    if (m < queries && n < HEAD_V)
                        mO(m, n) = pair.x;
                    if (m < queries && n + 1 < HEAD_V)
                        mO(m, n + 1) = pair.y;
//! end
                }
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
//! if given
    const struct part_planes *of_parts = ((struct pooled_call *)call)->of_parts; // of Q, K and V
    CUTEGEN_REQUIRE(call, of_parts[0].columns == $q_row_stride && of_parts[1].columns == $k_row_stride && of_parts[2].columns == $v_row_stride,
                    "heads must lie as the product has them");
//! each group_check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
    int64_t heads = $heads;
    void *counter = cutegen_workspace(call, 4);
    CUTEGEN_TRY(cutegen_memset(call, counter, 0, 4));
    // The parts lie as the product's result does.
    struct part_rows of_q = {of_parts[0].apart, of_parts[0].from, 2 * of_parts[0].number, $q_groups};
    struct part_rows of_k = {of_parts[1].apart, of_parts[1].from, 2 * of_parts[1].number, $k_groups};
    struct part_rows of_v = {of_parts[2].apart, of_parts[2].from, 2 * of_parts[2].number, $v_groups};
    uint16_t *planes_q = of_parts[0].planes + of_q.from, *planes_k = of_parts[1].planes + of_k.from, *planes_v = of_parts[2].planes + of_v.from;
    struct cutegen_map map_q = rows_map(call, CUTEGEN_F16, planes_q, HEAD, queries, $q_row_stride, CHUNK, TILE_M, $q_modes);
    struct cutegen_map map_k = rows_map(call, CUTEGEN_F16, planes_k, HEAD, keys, $k_row_stride, CHUNK, TILE_N, $k_modes);
    struct cutegen_map map_v = rows_map(call, CUTEGEN_F16, planes_v, HEAD_V, keys, $v_row_stride, CHUNK_V, TILE_N, $v_modes);
    struct cutegen_map map_q_low = rows_map(call, CUTEGEN_F16, planes_q + of_q.apart, HEAD, queries, $q_row_stride, CHUNK, TILE_M, $q_modes);
    struct cutegen_map map_k_low = rows_map(call, CUTEGEN_F16, planes_k + of_k.apart, HEAD, keys, $k_row_stride, CHUNK, TILE_N, $k_modes);
    struct cutegen_map map_v_low = rows_map(call, CUTEGEN_F16, planes_v + of_v.apart, HEAD_V, keys, $v_row_stride, CHUNK_V, TILE_N, $v_modes);
//! else
    int64_t heads = $heads, heads_q = $q_heads, heads_k = $k_heads, heads_v = $v_heads;
    int64_t blocks_q = cutegen_ceil_div(queries, 64), blocks_k = cutegen_ceil_div(keys, TILE_N);
    int64_t size_q = heads_q * queries * WIDTH, size_k = heads_k * keys * WIDTH, size_v = heads_v * keys * WIDTH_V;
    void *planes_q = cutegen_workspace(call, size_q * 4), *planes_k = cutegen_workspace(call, size_k * 4);
    void *planes_v = cutegen_workspace(call, size_v * 4), *lost = cutegen_workspace(call, 8);
    void *scales_q = cutegen_workspace(call, heads_q * blocks_q * 4), *scales_k = cutegen_workspace(call, heads_k * blocks_k * 4);
    void *scales_v = cutegen_workspace(call, heads_v * blocks_k * 4);
    CUTEGEN_TRY(cutegen_memset(call, lost, 0, 8));
//! if counted
    void *counter = (char *)lost + 4;
//! end
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_split<HEAD, WIDTH, 64, false>), cutegen_dim3(blocks_q, heads_q, 1),
                               cutegen_dim3(256, 1, 1), 0, $q_const, planes_q, (float *)scales_q, (int *)lost,
                               (int)queries, (int64_t)($q_row_stride), $q_split));
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_split<HEAD, WIDTH, TILE_N, false>), cutegen_dim3(blocks_k, heads_k, 1),
                               cutegen_dim3(256, 1, 1), 0, $k_const, planes_k, (float *)scales_k, (int *)lost,
                               (int)keys, (int64_t)($k_row_stride), $k_split));
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (${kernel}_split<HEAD_V, WIDTH_V, TILE_N, true>), cutegen_dim3(blocks_k, heads_v, 1),
                               cutegen_dim3(256, 1, 1), 0, $v_const, planes_v, (float *)scales_v, (int *)lost,
                               (int)keys, (int64_t)($v_row_stride), $v_split));
    struct cutegen_map map_q = rows_map(call, CUTEGEN_F16, planes_q, WIDTH, queries, WIDTH, CHUNK, TILE_M, heads_q,
                                        queries * WIDTH, 2, size_q, 1, 0);
    struct cutegen_map map_k = rows_map(call, CUTEGEN_F16, planes_k, WIDTH, keys, WIDTH, CHUNK, TILE_N, heads_k,
                                        keys * WIDTH, 2, size_k, 1, 0);
    struct cutegen_map map_v = rows_map(call, CUTEGEN_F16, planes_v, WIDTH_V, keys, WIDTH_V, CHUNK_V, TILE_N, heads_v,
                                        keys * WIDTH_V, 2, size_v, 1, 0);
//! end
    int64_t tiles = cutegen_ceil_div(queries, TILE_M) * heads;
    int64_t room = (32 << 20) / (keys * (WIDTH + WIDTH_V) * 4) * $sharing; // heads whose K and V stay in L2 together
    int64_t together = room < 1 ? 1 : cutegen_min(room, heads);
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, ${kernel}_attention, cutegen_dim3(cutegen_min(call->device.sm_count, tiles), 1, 1),
                               cutegen_dim3(128 * (GROUPS + 1), 1, 1), SMEM_BYTES, map_q, map_k, map_v,
//! if given
                               map_q_low, map_k_low, map_v_low, of_parts[0].planes, of_parts[1].planes, of_parts[2].planes, of_q, of_k, of_v,
//! else
                               (float const *)scales_q, (float const *)scales_k, (float const *)scales_v,
//! end
//! if counted
                               (unsigned *)counter,
//! end
                               (int)heads, (int)together, $out_args));
    int64_t parts = cutegen_ceil_div(queries, WARPS * ROWS) * heads;
    return CUTEGEN_LAUNCH(call, ${kernel}_repeat, cutegen_dim3(cutegen_min(call->device.sm_count, parts), 1, 1),
//! if given
                          cutegen_dim3(WARPS * 32, 1, 1), FMA_BYTES, of_parts[0].lost - 2 * of_parts[0].number, of_parts[0].planes,
                          of_parts[1].planes, of_parts[2].planes, of_q, of_k, of_v, $args);
//! else
                          cutegen_dim3(WARPS * 32, 1, 1), FMA_BYTES, (int const *)lost, $args);
//! end
//! else
    int64_t tiles = cutegen_ceil_div(queries, WARPS) * $heads;
    return CUTEGEN_LAUNCH(call, ${kernel}_rows, cutegen_dim3(tiles, 1, 1), cutegen_dim3(WARPS * 32, 1, 1), 0, $args);
//! end
}
#endif
