// attention_mma.cuh - attention on the tensor cores of sm_80 (mma.sync); a part of attention.cu.

//! include attention_mma_fetch
// A block has 64 queries of a head, a warp 16 of them. V comes while scores are computed, the next K during the softmax.
__global__ void __launch_bounds__(128)
    ${kernel}_tensor($params)
{
    using Element = $type;
    extern __shared__ uint4 shared[];
    Element *smem_q = reinterpret_cast<Element *>(shared), *smem_k = smem_q + 64 * PITCH, *smem_v = smem_k + TILE_N * PITCH;
    int const tiles = (queries + 63) / 64, l = blockIdx.x / tiles, m0 = (tiles - 1 - blockIdx.x % tiles) * 64;
    $places
    Tensor mQ = make_tensor(make_gmem_ptr(Q + ($q_at)), make_shape(queries, Int<HEAD>{}), make_stride($q_row, $q_col)); // (queries,HEAD)
    Tensor mK = make_tensor(make_gmem_ptr(K + ($k_at)), make_shape(keys, Int<HEAD>{}), make_stride($k_row, $k_col)); // (keys,HEAD)
    Tensor mV = make_tensor(make_gmem_ptr(V + ($v_at)), make_shape(keys, Int<HEAD_V>{}), make_stride($v_row, $v_col)); // (keys,HEAD_V)
    Tensor mO = make_tensor(make_gmem_ptr(O + ($o_at)), make_shape(queries, Int<HEAD_V>{}), make_stride($o_row, $o_col)); // (queries,HEAD_V)
//! each leaf
    Tensor m$X = make_tensor(make_gmem_ptr($x + ($x_at)), make_shape(queries, keys), make_stride($m, $n)); // (queries,keys)
//! end
    Tensor sQ = make_tensor(make_smem_ptr(smem_q), make_shape(_64{}, Int<WIDTH>{}), make_stride(Int<PITCH>{}, _1{})); // (64,WIDTH)
    Tensor sK = make_tensor(make_smem_ptr(smem_k), make_shape(Int<TILE_N>{}, Int<WIDTH>{}), make_stride(Int<PITCH>{}, _1{})); // (TILE_N,WIDTH)
    Tensor sV = make_tensor(make_smem_ptr(smem_v), make_shape(Int<TILE_N>{}, Int<WIDTH_V>{}), make_stride(Int<PITCH_V>{}, _1{})); // (TILE_N,WIDTH_V)
    Tensor sVt = make_tensor(make_smem_ptr(smem_v), make_shape(Int<WIDTH_V>{}, Int<TILE_N>{}), make_stride(_1{}, Int<PITCH_V>{})); // (WIDTH_V,TILE_N)

    auto mma = make_tiled_mma($mma{}, Layout<Shape<_4, _1, _1>>{}, Tile<_64, _16, _16>{});
    auto thr = mma.get_slice(threadIdx.x);
    Tensor tSrQ = thr.partition_fragment_A(sQ); // (MMA,1,WIDTH/16)
    Tensor tSrK = thr.partition_fragment_B(sK); // (MMA,TILE_N/8,WIDTH/16)
    Tensor tOrV = thr.partition_fragment_B(sVt); // (MMA,WIDTH_V/8,TILE_N/16)
    Tensor scores = partition_fragment_C(mma, Shape<_64, Int<TILE_N>>{}); // (MMA,1,TILE_N/8): two rows, pairs of columns
    Tensor out = partition_fragment_C(mma, Shape<_64, Int<WIDTH_V>>{}); // (MMA,1,WIDTH_V/8)
    Tensor tScS = thr.partition_C(make_identity_tensor(Shape<_64, Int<TILE_N>>{})); // (MMA,1,TILE_N/8)
    Tensor tOcO = thr.partition_C(make_identity_tensor(Shape<_64, Int<WIDTH_V>>{})); // (MMA,1,WIDTH_V/8)
    Tensor tOrP = make_tensor<Element>(Shape<Shape<_2, _2, _2>, _1, Int<TILE_N / 16>>{}); // (MMA,1,TILE_N/16)
    auto copy_q = make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N, Element>{}, mma);
    auto copy_k = make_tiled_copy_B(Copy_Atom<SM75_U32x4_LDSM_N, Element>{}, mma);
    auto copy_v = make_tiled_copy_B(Copy_Atom<SM75_U16x8_LDSM_T, Element>{}, mma);
    auto thr_q = copy_q.get_slice(threadIdx.x);
    auto thr_k = copy_k.get_slice(threadIdx.x);
    auto thr_v = copy_v.get_slice(threadIdx.x);
    Tensor tXsQ = thr_q.partition_S(sQ); // (CPY,1,WIDTH/16)
    Tensor tXrQ = thr_q.retile_D(tSrQ); // (CPY,1,WIDTH/16)
    Tensor tXsK = thr_k.partition_S(sK); // (CPY,TILE_N/16,WIDTH/16)
    Tensor tXrK = thr_k.retile_D(tSrK); // (CPY,TILE_N/16,WIDTH/16)
    Tensor tXsV = thr_v.partition_S(sVt); // (CPY,WIDTH_V/16,TILE_N/16)
    Tensor tXrV = thr_v.retile_D(tOrV); // (CPY,WIDTH_V/16,TILE_N/16)
    [[maybe_unused]] float best[2] = {UNSEEN, UNSEEN}, sum[2] = {0.0f, 0.0f}; // of rows m and m + 8

    clear(out);
    fetch_rows<64, HEAD, WIDTH>(mQ, sQ, m0, queries);
    fetch_rows<TILE_N, HEAD, WIDTH>(mK, sK, 0, keys);
//! if causal
    int const end = cute::min(keys, m0 + 64); // keys that a query of the tile sees
//! else
    int const end = keys;
//! end
    for (int n0 = 0; n0 < end; n0 += TILE_N) {
        cp_async_wait<0>();
        __syncthreads(); // K has come, and all are done with V
        fetch_rows<TILE_N, HEAD_V, WIDTH_V>(mV, sV, n0, keys);
        if (n0 == 0)
            copy(copy_q, tXsQ, tXrQ);
        clear(scores);
        CUTE_UNROLL
        for (int k = 0; k < WIDTH / 16; ++k) {
            copy(copy_k, tXsK(_, _, k), tXrK(_, _, k));
            gemm(mma, tSrQ(_, _, k), tSrK(_, _, k), scores);
        }
        cp_async_wait<0>();
        __syncthreads(); // V has come, and all are done with K
        if (n0 + TILE_N < end)
            fetch_rows<TILE_N, HEAD, WIDTH>(mK, sK, n0 + TILE_N, keys);
        CUTE_UNROLL
        for (int i = 0; i < size(scores); ++i) {
            int const m = m0 + get<0>(tScS(i)), n = n0 + get<1>(tScS(i));
//! if causal
            bool const seen = n < keys && n <= m && m < queries;
//! else
            bool const seen = n < keys && m < queries;
//! end
            scores(i) = seen ? ${kernel}_score2(scores(i)$score_args) : UNSEEN; // in units of log 2
        }
//! if linear
        CUTE_UNROLL
        for (int i = 0; i < size(scores); ++i)
            tOrP(i) = Element(scores(i));
//! else
        CUTE_UNROLL
        for (int r = 0; r < 2; ++r) {
            float top = best[r], more = 0.0f;
            CUTE_UNROLL
            for (int i = 0; i < size(scores); i += 4)
                top = fmaxf(top, fmaxf(scores(i + r * 2), scores(i + r * 2 + 1)));
            top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
            top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
            float const base = top > MINUS_INFINITY ? top : 0.0f, before = exp2f(best[r] - base);
            CUTE_UNROLL
            for (int i = 0; i < size(scores); i += 4) {
                CUTE_UNROLL
                for (int j = r * 2; j < r * 2 + 2; ++j) {
                    scores(i + j) = exp2f(scores(i + j) - base);
                    more += scores(i + j);
                    tOrP(i + j) = Element(scores(i + j));
                }
            }
            CUTE_UNROLL
            for (int i = 0; i < size(out); i += 4) {
                out(i + r * 2) *= before;
                out(i + r * 2 + 1) *= before;
            }
            sum[r] = sum[r] * before + more;
            best[r] = top;
        }
//! end
        CUTE_UNROLL
        for (int k = 0; k < TILE_N / 16; ++k) {
            copy(copy_v, tXsV(_, _, k), tXrV(_, _, k));
            gemm(mma, tOrP(_, _, k), tOrV(_, _, k), out);
        }
    }
    CUTE_UNROLL
    for (int r = 0; r < 2; ++r) {
        sum[r] += __shfl_xor_sync(~0u, sum[r], 1);
        sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
    }
    CUTE_UNROLL
    for (int i = 0; i < size(out); ++i) {
        int const m = m0 + get<0>(tOcO(i)), n = get<1>(tOcO(i));
        if (m < queries && n < HEAD_V)
            mO(m, n) = Element(finish_row(out(i), sum[i / 2 % 2]));
    }
}
