// attention_backward_wgmma.cuh - gradients of attention by wgmma; a part of attention_backward_sm90.cu.

// Two neighbouring values as they lie in memory.
__device__ inline unsigned pack(float x, float y)
{
    cutlass::Array<float, 2> from;
    from[0] = x, from[1] = y;
    auto const pair = cutlass::NumericArrayConverter<$type, float, 2>::convert(from);
    return reinterpret_cast<unsigned const &>(pair);
}

// Adds four numbers to sums in memory.
__device__ inline void add_four(float *to, float a, float b, float c, float d)
{
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}

// A block has 128 keys, a warpgroup 64 of them; scores are transposed, (keys,ROWS). Sums of dQ lie as registers do: of a
// step, warpgroup, four columns and thread, four numbers.
__global__ void __launch_bounds__(384, 1)
    ${kernel}_backward(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
                       const __grid_constant__ CUtensorMap map_v, const __grid_constant__ CUtensorMap map_do,
                       float const *lse, float const *delta, float *sums, int padded,
//! if causal
                       int groups,
//! end
                       $params)
{
    using Element = $type;
    extern __shared__ unsigned char memory[];
    unsigned const skip = -cast_smem_ptr_to_uint(memory) % 1024; // tiles start on 1024 bytes
    Element *smem_k = reinterpret_cast<Element *>(memory + skip), *smem_v = smem_k + SLOT, *smem_q = smem_v + SLOT;
    Element *smem_o = smem_q + STEPS * TILE, *smem_s = smem_o + STEPS * TILE;
    float *smem_lse = reinterpret_cast<float *>(smem_s + 2 * ROWS * TILE_N), *smem_delta = smem_lse + STEPS * ROWS;
    uint64_t *full_k = reinterpret_cast<uint64_t *>(smem_delta + STEPS * ROWS), *full_q = full_k + 1, *full_o = full_q + STEPS;
    uint64_t *empty = full_o + STEPS;
    int const tiles = (keys + TILE_N - 1) / TILE_N;
//! if causal
    // Heads of K in groups, of a group the longest blocks first: what starts last is short.
    int const all = gridDim.x / tiles, part = ((int(blockIdx.x) / tiles + 1) * groups - 1) / all;
    int const front = part * all / groups, some = (part + 1) * all / groups - front, left = blockIdx.x - front * tiles;
    int const h = front + left % some, first = left / some * TILE_N;
    int const begin = first / ROWS; // earlier queries see none of these keys
//! else
    int const h = blockIdx.x / tiles, first = blockIdx.x % tiles * TILE_N;
    int const begin = 0;
//! end
    int const blocks = (queries + ROWS - 1) / ROWS, steps = cute::max(0, blocks - begin), total = steps * $sharing;
    int const group = threadIdx.x / 128;

    if (threadIdx.x == 0) {
        initialize_barrier(*full_k, 1);
        for (int i = 0; i < STEPS; ++i) {
            initialize_barrier(full_q[i], 1);
            initialize_barrier(full_o[i], 1);
            initialize_barrier(empty[i], 2);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (group == 0) { // one thread fetches
        cutlass::arch::warpgroup_reg_dealloc<24>();
        if (threadIdx.x == 0 && total > 0) {
            Place p = {0, 1};
            {
                [[maybe_unused]] int const g = 0, l = $key_l;
                $places
                set_barrier_transaction_bytes(*full_k, 2 * SLOT * 2);
                CUTE_UNROLL
                for (int c = 0; c < WIDTH / CHUNK; ++c) {
                    SM90_TMA_LOAD_5D::copy(&map_k, full_k, USUAL, smem_k + c * TILE_N * CHUNK, c * CHUNK, first, $k_place);
                    SM90_TMA_LOAD_5D::copy(&map_v, full_k, USUAL, smem_v + c * TILE_N * CHUNK, c * CHUNK, first, $v_place);
                }
            }
#pragma unroll 1
            for (int i = 0; i < total; ++i) {
                [[maybe_unused]] int const g = i / steps, l = $key_l, m = (begin + i % steps) * ROWS;
                $places
                wait_barrier(empty[p.slot], p.turn);
                set_barrier_transaction_bytes(full_q[p.slot], TILE * 2 + ROWS * 4);
                CUTE_UNROLL
                for (int c = 0; c < WIDTH / CHUNK; ++c)
                    SM90_TMA_LOAD_5D::copy(&map_q, &full_q[p.slot], USUAL, smem_q + p.slot * TILE + c * ROWS * CHUNK, c * CHUNK, m, $q_place);
                SM90_BULK_COPY_G2S::copy(lse + int64_t(l) * padded + m, &full_q[p.slot], smem_lse + p.slot * ROWS, ROWS * 4);
                set_barrier_transaction_bytes(full_o[p.slot], TILE * 2 + ROWS * 4);
                CUTE_UNROLL
                for (int c = 0; c < WIDTH / CHUNK; ++c)
                    SM90_TMA_LOAD_5D::copy(&map_do, &full_o[p.slot], USUAL, smem_o + p.slot * TILE + c * ROWS * CHUNK, c * CHUNK, m, $do_place);
                SM90_BULK_COPY_G2S::copy(delta + int64_t(l) * padded + m, &full_o[p.slot], smem_delta + p.slot * ROWS, ROWS * 4);
                p.next<STEPS>();
            }
        }
    } else {
        cutlass::arch::warpgroup_reg_alloc<240>();
        int const half = group - 1, thread = threadIdx.x % 128, lane = threadIdx.x % 32;
        int const row = half * 64 + thread / 32 * 16 + lane / 4; // of the block's keys
        auto mma = make_tiled_mma(SM90_64x${rows}x16_F32${wgmma_type}_SS<GMMA::Major::K, GMMA::Major::K>{}, Layout<Shape<_2, _1, _1>>{});
        auto mma_k = make_tiled_mma(SM90_64x${width}x16_F32${wgmma_type}_RS<GMMA::Major::K, GMMA::Major::MN>{}, Layout<Shape<_2, _1, _1>>{});
        auto mma_q = make_tiled_mma(SM90_64x64x16_F32${wgmma_type}_SS<GMMA::Major::MN, GMMA::Major::MN>{}, Layout<Shape<Int<ROWS / 64>, Int<128 / ROWS>, _1>>{});
        auto thr = mma.get_slice(threadIdx.x - 128);
        auto thr_k = mma_k.get_slice(threadIdx.x - 128);
        auto thr_q = mma_q.get_slice(threadIdx.x - 128);
        Tensor sK = make_tensor(make_smem_ptr(smem_k), rows_layout<Element, TILE_N, WIDTH, 1>())(_, _, 0); // (TILE_N,WIDTH)
        Tensor sV = make_tensor(make_smem_ptr(smem_v), rows_layout<Element, TILE_N, WIDTH, 1>())(_, _, 0); // (TILE_N,WIDTH)
        Tensor sKt = make_tensor(make_smem_ptr(smem_k), columns_layout<Element, WIDTH, TILE_N, 1>())(_, _, 0); // (WIDTH,TILE_N)
        Tensor sQ = make_tensor(make_smem_ptr(smem_q), rows_layout<Element, ROWS, WIDTH, STEPS>()); // (ROWS,WIDTH,STEPS)
        Tensor sQt = make_tensor(make_smem_ptr(smem_q), columns_layout<Element, WIDTH, ROWS, STEPS>()); // (WIDTH,ROWS,STEPS)
        Tensor sO = make_tensor(make_smem_ptr(smem_o), rows_layout<Element, ROWS, WIDTH, STEPS>()); // (ROWS,WIDTH,STEPS)
        Tensor sOt = make_tensor(make_smem_ptr(smem_o), columns_layout<Element, WIDTH, ROWS, STEPS>()); // (WIDTH,ROWS,STEPS)
        Tensor sS = make_tensor(make_smem_ptr(smem_s), columns_layout<Element, ROWS, TILE_N, 2>()); // (ROWS,TILE_N,2)
        Tensor tSrK = thr.partition_fragment_A(sK); // (MMA,1,WIDTH/16)
        Tensor tSrV = thr.partition_fragment_A(sV); // (MMA,1,WIDTH/16)
        Tensor tSrQ = thr.partition_fragment_B(sQ); // (MMA,1,WIDTH/16,STEPS)
        Tensor tSrO = thr.partition_fragment_B(sO); // (MMA,1,WIDTH/16,STEPS)
        Tensor tKrQ = thr_k.partition_fragment_B(sQt); // (MMA,1,ROWS/16,STEPS)
        Tensor tKrO = thr_k.partition_fragment_B(sOt); // (MMA,1,ROWS/16,STEPS)
        Tensor tQrS = thr_q.partition_fragment_A(sS); // (MMA,1,TILE_N/16,2)
        Tensor tQrK = thr_q.partition_fragment_B(sKt); // (MMA,1,TILE_N/16)
        Tensor scores = partition_fragment_C(mma, Shape<Int<TILE_N>, Int<ROWS>>{}); // (MMA,1,1): two keys, pairs of queries
        Tensor change = partition_fragment_C(mma, Shape<Int<TILE_N>, Int<ROWS>>{}); // (MMA,1,1): likewise
        Tensor out_k = partition_fragment_C(mma_k, Shape<Int<TILE_N>, Int<WIDTH>>{}); // (MMA,1,1)
        Tensor out_v = partition_fragment_C(mma_k, Shape<Int<TILE_N>, Int<WIDTH>>{}); // (MMA,1,1)
        Tensor out_q = partition_fragment_C(mma_q, Shape<Int<ROWS>, Int<WIDTH>>{}); // (MMA,1,1)
        Tensor tKrP = make_tensor<Element>(Shape<Shape<_2, _2, _2>, _1, Int<ROWS / 16>>{}); // (MMA,1,ROWS/16)
        Tensor tKrS = make_tensor<Element>(Shape<Shape<_2, _2, _2>, _1, Int<ROWS / 16>>{}); // (MMA,1,ROWS/16)
        Tensor pairs_p = recast<unsigned>(tKrP); // ((1,2,2),1,ROWS/16)
        Tensor pairs_s = recast<unsigned>(tKrS); // ((1,2,2),1,ROWS/16)
        Place p = {0, 0};

        clear(out_k);
        clear(out_v);
        mma_k.accumulate_ = GMMA::ScaleOut::One;
        auto const multiply = [&](int slot) __attribute__((always_inline)) { // begins S^T = K Q^T
            warpgroup_fence_operand(scores);
            warpgroup_arrive();
            mma.accumulate_ = GMMA::ScaleOut::Zero;
            CUTE_UNROLL
            for (int k = 0; k < WIDTH / 16; ++k) {
                gemm(mma, tSrK(_, _, k), tSrQ(_, _, k, slot), scores);
                mma.accumulate_ = GMMA::ScaleOut::One;
            }
            warpgroup_commit_batch();
        };
        if (total > 0)
            wait_barrier(*full_k, 0);
#pragma unroll 1
        for (int i = 0; i < total; ++i) {
            int const slot = p.slot, m0 = (begin + i % steps) * ROWS;
            [[maybe_unused]] int const g = i / steps, l = $key_l;
            $places
//! each leaf
            Tensor m$X = make_tensor(make_gmem_ptr($x + ($x_at)), make_shape(queries, keys), make_stride($m, $n)); // (queries,keys)
//! end
            wait_barrier(full_q[slot], p.turn);
            multiply(slot);
            wait_barrier(full_o[slot], p.turn);
            p.next<STEPS>();
            warpgroup_fence_operand(change);
            warpgroup_arrive();
            mma.accumulate_ = GMMA::ScaleOut::Zero;
            CUTE_UNROLL
            for (int k = 0; k < WIDTH / 16; ++k) { // dP^T = V dO^T
                gemm(mma, tSrV(_, _, k), tSrO(_, _, k, slot), change);
                mma.accumulate_ = GMMA::ScaleOut::One;
            }
            warpgroup_commit_batch();
            warpgroup_wait<1>();
            warpgroup_fence_operand(scores);
//! if not scaled
            bool const masked = true;
//! elif causal
            bool const masked = m0 < first + TILE_N || first + TILE_N > keys;
//! else
            bool const masked = first + TILE_N > keys;
//! end
            if (masked) {
                CUTE_UNROLL
                for (int j = 0; j < size(scores); ++j) {
                    [[maybe_unused]] int const n = first + row + j / 2 % 2 * 8, m = m0 + j / 4 * 8 + lane % 4 * 2 + j % 2;
//! if scaled and causal
                    if (n >= keys || n > m)
                        scores(j) = MINUS_INFINITY;
//! elif scaled
                    if (n >= keys)
                        scores(j) = MINUS_INFINITY;
//! elif causal
                    scores(j) = n < keys && n <= m && m < queries ? ${kernel}_score2(scores(j)$score_args) : UNSEEN;
//! else
                    scores(j) = n < keys && m < queries ? ${kernel}_score2(scores(j)$score_args) : UNSEEN;
//! end
                }
            }
//! if scaled
            constexpr float SCALE = $scale2;
//! else
            constexpr float SCALE = 1.0f;
//! end
            CUTE_UNROLL
            for (int j = 0; j < size(scores) / 4; ++j) {
                float2 const x = *reinterpret_cast<float2 const *>(smem_lse + slot * ROWS + j * 8 + lane % 4 * 2);
                CUTE_UNROLL
                for (int r = 0; r < 2; ++r) {
                    float &a = scores(j * 4 + r * 2), &b = scores(j * 4 + r * 2 + 1);
                    a = quick_exp2(__fmul_rn(a, SCALE) - x.x); // not fused: as the sum of the row was made
                    b = quick_exp2(__fmul_rn(b, SCALE) - x.y);
                    pairs_p(j * 2 + r) = pack(a, b);
                }
            }
            warpgroup_wait<0>();
            warpgroup_fence_operand(change);
            warpgroup_fence_operand(out_v);
            warpgroup_fence_operand(tKrP);
            warpgroup_arrive();
            CUTE_UNROLL
            for (int k = 0; k < ROWS / 16; ++k) // dV += P^T dO
                gemm(mma_k, tKrP(_, _, k), tKrO(_, _, k, slot), out_v);
            warpgroup_commit_batch();
            CUTE_UNROLL
            for (int j = 0; j < size(scores) / 4; ++j) {
                float2 const x = *reinterpret_cast<float2 const *>(smem_delta + slot * ROWS + j * 8 + lane % 4 * 2);
                CUTE_UNROLL
                for (int r = 0; r < 2; ++r) {
                    float const a = scores(j * 4 + r * 2) * (change(j * 4 + r * 2) - x.x);
                    float const b = scores(j * 4 + r * 2 + 1) * (change(j * 4 + r * 2 + 1) - x.y);
                    pairs_s(j * 2 + r) = pack(a, b);
                    *reinterpret_cast<unsigned *>(&sS(j * 8 + lane % 4 * 2, row + r * 8, i % 2)) = pairs_s(j * 2 + r);
                }
            }
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            asm volatile("bar.sync 1, 256;" ::: "memory"); // dS is there, and all are done with the one before
            warpgroup_fence_operand(out_k);
            warpgroup_fence_operand(tKrS);
            warpgroup_fence_operand(out_q);
            warpgroup_arrive();
            mma_q.accumulate_ = GMMA::ScaleOut::Zero;
            CUTE_UNROLL
            for (int k = 0; k < TILE_N / 16; ++k) { // the part of dQ that these keys have
                gemm(mma_q, tQrS(_, _, k, i % 2), tQrK(_, _, k), out_q);
                mma_q.accumulate_ = GMMA::ScaleOut::One;
            }
            warpgroup_commit_batch();
            CUTE_UNROLL
            for (int k = 0; k < ROWS / 16; ++k) // dK += dS^T Q
                gemm(mma_k, tKrS(_, _, k), tKrQ(_, _, k, slot), out_k);
            warpgroup_commit_batch();
            warpgroup_wait<1>();
            warpgroup_fence_operand(out_q);
            warpgroup_fence_operand(out_v);
            float *to = sums + ((int64_t(l) * blocks + begin + i % steps) * 2 + half) * (TILE / 2) + thread * 4;
            CUTE_UNROLL
            for (int j = 0; j < size(out_q) / 4; ++j) // while dK is computed
                add_four(to + j * 512, out_q(j * 4), out_q(j * 4 + 1), out_q(j * 4 + 2), out_q(j * 4 + 3));
            warpgroup_wait<0>();
            warpgroup_fence_operand(out_k);
            if (thread == 0)
                arrive_barrier(empty[slot]);
            __syncwarp(); // wgmma is for whole warps
        }

        [[maybe_unused]] int const g = 0, l = $key_l;
        $places
        Tensor mdK = make_tensor(make_gmem_ptr(dK + ($dk_at)), make_shape(keys, Int<HEAD>{}), make_stride($dk_row, $dk_col)); // (keys,HEAD)
        Tensor mdV = make_tensor(make_gmem_ptr(dV + ($dv_at)), make_shape(keys, Int<HEAD_V>{}), make_stride($dv_row, $dv_col)); // (keys,HEAD_V)
        auto const store = [&](auto &out, auto const &to, int columns, float factor) __attribute__((always_inline)) {
            CUTE_UNROLL
            for (int r = 0; r < 2; ++r) {
                int const n = first + row + r * 8;
//! if o_vectors
                CUTE_UNROLL
                for (int j = 0; j < WIDTH / 32; ++j) { // four lanes exchange, so that each stores eight columns
                    unsigned v[4];
                    CUTE_UNROLL
                    for (int i = 0; i < 4; ++i)
                        v[i] = pack(out((j * 4 + i) * 4 + r * 2) * factor, out((j * 4 + i) * 4 + r * 2 + 1) * factor);
                    exchange(v, lane);
                    if (n < keys && j * 32 + lane % 4 * 8 < columns)
                        *reinterpret_cast<uint4 *>(&to(n, j * 32 + lane % 4 * 8)) = make_uint4(v[0], v[1], v[2], v[3]);
                }
//! else
                CUTE_UNROLL
                for (int i = 0; i < WIDTH / 4; ++i) {
                    int const c = i / 2 * 8 + lane % 4 * 2 + i % 2;
                    if (n < keys && c < columns)
                        to(n, c) = Element(out(i / 2 * 4 + r * 2 + i % 2) * factor);
                }
//! end
            }
        };
        store(out_k, mdK, HEAD, $scale);
        store(out_v, mdV, HEAD_V, 1.0f);
    }
}

// dQ from its sums, which lie as registers did.
__global__ void __launch_bounds__(256)
    ${kernel}_finish(float const *sums, $params)
{
    int const blocks = (queries + ROWS - 1) / ROWS, l = blockIdx.x / blocks, m0 = blockIdx.x % blocks * ROWS;
    int const half = threadIdx.x / 128, thread = threadIdx.x % 128, lane = threadIdx.x % 32;
    int const m = m0 + (ROWS == 128 ? half * 64 : 0) + thread / 32 * 16 + lane / 4;
    $places
    Tensor mdQ = make_tensor(make_gmem_ptr(dQ + ($dq_at)), make_shape(queries, Int<HEAD>{}), make_stride($dq_row, $dq_col)); // (queries,HEAD)
    float const *from = sums + (int64_t(blockIdx.x) * 2 + half) * (TILE / 2) + thread * 4;
    int const column = ROWS == 128 ? 0 : half * 64; // columns begin there
    float4 x[8];
    CUTE_UNROLL
    for (int j = 0; j < 8; ++j)
        x[j] = *reinterpret_cast<float4 const *>(from + j * 512);
    CUTE_UNROLL
    for (int r = 0; r < 2; ++r) {
//! if o_vectors
        CUTE_UNROLL
        for (int j = 0; j < 2; ++j) { // four lanes exchange, so that each stores eight columns
            int const n = column + j * 32 + lane % 4 * 8;
            unsigned v[4];
            CUTE_UNROLL
            for (int i = 0; i < 4; ++i)
                v[i] = r ? pack(x[j * 4 + i].z * $scale, x[j * 4 + i].w * $scale) : pack(x[j * 4 + i].x * $scale, x[j * 4 + i].y * $scale);
            exchange(v, lane);
            if (m + r * 8 < queries && n < HEAD)
                *reinterpret_cast<uint4 *>(&mdQ(m + r * 8, n)) = make_uint4(v[0], v[1], v[2], v[3]);
        }
//! else
        CUTE_UNROLL
        for (int j = 0; j < 8; ++j) {
            int const n = column + j * 8 + lane % 4 * 2;
            if (m + r * 8 < queries && n < HEAD)
                mdQ(m + r * 8, n) = $type((r ? x[j].z : x[j].x) * $scale);
            if (m + r * 8 < queries && n + 1 < HEAD)
                mdQ(m + r * 8, n + 1) = $type((r ? x[j].w : x[j].y) * $scale);
        }
//! end
    }
}
