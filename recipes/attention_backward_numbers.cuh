// attention_backward_numbers.cuh - two numbers of every row by wgmma; a part of attention_backward_sm90.cu.
// S = Q K^T and dP = dO V^T of a block of keys; sums of weights, and of weights times dP.
__global__ void __launch_bounds__(128 * (GROUPS + 1), 1)
    ${kernel}_numbers(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
                      const __grid_constant__ CUtensorMap map_v, const __grid_constant__ CUtensorMap map_do,
//! if counted
                      unsigned *counter,
//! end
                      int heads, int together, float *lse, float *delta, int padded, $params)
{
//! include attention_start

    if (group == 0) { // one thread fetches
        cutlass::arch::warpgroup_reg_dealloc<24>();
        Place p = {0, 1};
        int turn = 1;
        while (threadIdx.x == 0 && walk.lead(tile)) {
            [[maybe_unused]] int const l = tile.l;
            $places
//! include attention_fetch
            wait_barrier(empty_q[0], turn);
            set_barrier_transaction_bytes(full_q[0], 2 * SIZE_Q * 2);
            CUTE_UNROLL
            for (int c = 0; c < WIDTH / CHUNK; ++c) {
                SM90_TMA_LOAD_5D::copy(&map_q, &full_q[0], USUAL, smem_q + c * TILE_M * CHUNK, c * CHUNK, tile.m, $q_place);
                SM90_TMA_LOAD_5D::copy(&map_do, &full_q[0], USUAL, smem_q + SIZE_Q + c * TILE_M * CHUNK, c * CHUNK, tile.m, $do_place);
            }
            turn ^= 1;
#pragma unroll 1
            for (int block = tile.blocks - 1; block >= 0; --block) {
                fetch_k(block);
                fetch_v(block);
            }
        }
    } else {
        cutlass::arch::warpgroup_reg_alloc<160>();
        int const half = group - 1, thread = threadIdx.x % 128, lane = threadIdx.x % 32;
        auto mma = make_tiled_mma(SM90_64x${tile_n}x16_F32${wgmma_type}_SS<GMMA::Major::K, GMMA::Major::K>{}, Layout<Shape<Int<GROUPS>, _1, _1>>{});
        auto thr = mma.get_slice(threadIdx.x - 128);
        Tensor sQ = make_tensor(make_smem_ptr(smem_q), rows_layout<Element, TILE_M, WIDTH, 2>()); // (TILE_M,WIDTH,2): Q and dO
        Tensor sK = make_tensor(make_smem_ptr(ring), rows_layout<Element, TILE_N, WIDTH, STAGES, SLOT>()); // (TILE_N,WIDTH,STAGES)
        Tensor tSrQ = thr.partition_fragment_A(sQ); // (MMA,1,WIDTH/16,2)
        Tensor tSrK = thr.partition_fragment_B(sK); // (MMA,1,WIDTH/16,STAGES)
        Tensor scores = partition_fragment_C(mma, Shape<Int<TILE_M>, Int<TILE_N>>{}); // (MMA,1,1): two rows, pairs of columns
        Tensor change = partition_fragment_C(mma, Shape<Int<TILE_M>, Int<TILE_N>>{}); // (MMA,1,1): likewise
        Place p = {0, 0};
        int turn = 0;
        float best[2], sum[2], inner[2]; // of rows m and m + 8

        while (walk.follow(tile)) {
            [[maybe_unused]] int const l = tile.l;
            $places
            int const row = tile.m + half * 64 + thread / 32 * 16 + lane / 4;
//! each leaf
            Tensor m$X = make_tensor(make_gmem_ptr($x + ($x_at)), make_shape(queries, keys), make_stride($m, $n)); // (queries,keys)
//! end
            auto const release = [&](uint64_t &barrier) __attribute__((always_inline)) {
                if (thread == 0)
                    arrive_barrier(barrier);
                __syncwarp(); // wgmma is for whole warps
            };
            auto const multiply = [&](auto &out, int which) __attribute__((always_inline)) {
                wait_barrier(full[p.slot], p.turn);
                warpgroup_fence_operand(out);
                warpgroup_arrive();
                mma.accumulate_ = GMMA::ScaleOut::Zero;
                CUTE_UNROLL
                for (int k = 0; k < WIDTH / 16; ++k) {
                    gemm(mma, tSrQ(_, _, k, which), tSrK(_, _, k, p.slot), out);
                    mma.accumulate_ = GMMA::ScaleOut::One;
                }
                warpgroup_commit_batch();
                int const slot = p.slot;
                p.next<STAGES>();
                return slot;
            };
            best[0] = best[1] = UNSEEN;
            sum[0] = sum[1] = inner[0] = inner[1] = 0.0f;
//! if not scaled
            constexpr int whole = 0; // blocks below it need no mask
//! elif causal
            int const whole = tile.m / TILE_N; // blocks below it need no mask
//! else
            int const whole = keys % TILE_N ? tile.blocks - 1 : tile.blocks; // blocks below it need no mask
//! end
            wait_barrier(full_q[0], turn);
            turn ^= 1;
#pragma unroll 1
            for (int block = tile.blocks - 1; block >= 0; --block) {
                int const slot_k = multiply(scores, 0), slot_v = multiply(change, 1);
                warpgroup_wait<1>();
                warpgroup_fence_operand(scores);
                release(empty[slot_k]);
                if (block >= whole) {
//! include attention_masked
                }
//! if scaled
                constexpr float SCALE = $scale2;
//! else
                constexpr float SCALE = 1.0f;
//! end
                float before[2];
//! include attention_online
                warpgroup_wait<0>();
                warpgroup_fence_operand(change);
                release(empty[slot_v]);
                CUTE_UNROLL
                for (int r = 0; r < 2; ++r) {
                    float u = 0.0f, w = 0.0f;
                    CUTE_UNROLL
                    for (int i = 0; i < size(scores); i += 4) {
                        u = fmaf(scores(i + r * 2), change(i + r * 2), u);
                        w = fmaf(scores(i + r * 2 + 1), change(i + r * 2 + 1), w);
                    }
                    inner[r] = fmaf(inner[r], before[r], u + w);
                }
            }
            release(empty_q[0]);
            CUTE_UNROLL
            for (int r = 0; r < 2; ++r) {
                int const m = row + r * 8;
                sum[r] += __shfl_xor_sync(~0u, sum[r], 1);
                sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
                inner[r] += __shfl_xor_sync(~0u, inner[r], 1);
                inner[r] += __shfl_xor_sync(~0u, inner[r], 2);
                if (lane % 4 == 0 && m < padded) {
                    lse[int64_t(l) * padded + m] = m < queries ? row_lse(best[r], sum[r]) : -MINUS_INFINITY;
                    delta[int64_t(l) * padded + m] = m < queries ? finish_row(inner[r], sum[r]) : 0.0f;
                }
            }
            if (half == 0 && tile.m + TILE_M >= queries) // rows behind the last tile
                for (int m = tile.m + TILE_M + thread; m < padded; m += 128) {
                    lse[int64_t(l) * padded + m] = -MINUS_INFINITY;
                    delta[int64_t(l) * padded + m] = 0.0f;
                }
            __syncwarp(); // wgmma is for whole warps
        }
    }
}

