// attention_backward_mma.cuh - gradients of attention on the tensor cores of sm_80; included by their recipes.

// What a kernel makes: two numbers of every query, dQ, or dK and dV.
enum Made { NUMBERS, OF_QUERIES, OF_KEYS };


//! include attention_mma_fetch
// One of two tensors of different types.
template <bool FIRST, class A, class B>
__device__ inline auto choose(A const &a, B const &b)
{
    if constexpr (FIRST)
        return a;
    else
        return b;
}

// A block has 64 rows of a head, a warp 16 of them: keys, whose dK and dV are summed along the queries, or queries, whose
// numbers or dQ are summed along the keys. Behind 1 comes Q or K, behind 2 dO or V.
template <Made MADE>
__global__ void __launch_bounds__(128)
    ${kernel}_gradient(float *lse, float *delta, int padded, $params)
{
    constexpr bool KEYS = MADE == OF_KEYS;
    using Element = $type;
    extern __shared__ uint4 shared[];
    Element *smem_1 = reinterpret_cast<Element *>(shared), *smem_2 = smem_1 + 64 * PITCH, *ring = smem_2 + 64 * PITCH_V;
    int const rows = KEYS ? keys : queries, columns = KEYS ? queries : keys;
    int const tiles = (rows + 63) / 64, h = blockIdx.x / tiles, heads = KEYS ? $sharing : 1; // heads of Q that share one of K
//! if causal
    int const m0 = (KEYS ? blockIdx.x % tiles : tiles - 1 - blockIdx.x % tiles) * 64; // the longest first
    int const begin = KEYS ? m0 : 0, end = KEYS ? columns : cute::min(columns, m0 + 64);
//! else
    int const m0 = blockIdx.x % tiles * 64, begin = 0, end = columns;
//! end
    int const steps = cute::max(1, (end - begin + TILE - 1) / TILE), total = end > begin ? steps * heads : 0;
    Tensor s1 = make_tensor(make_smem_ptr(smem_1), make_shape(_64{}, Int<WIDTH>{}), make_stride(Int<PITCH>{}, _1{})); // (64,WIDTH)
    Tensor s2 = make_tensor(make_smem_ptr(smem_2), make_shape(_64{}, Int<WIDTH_V>{}), make_stride(Int<PITCH_V>{}, _1{})); // (64,WIDTH_V)
    Tensor y1 = make_tensor(make_smem_ptr(ring), make_shape(Int<TILE>{}, Int<WIDTH>{}, _2{}), make_stride(Int<PITCH>{}, _1{}, Int<SLOT>{})); // (TILE,WIDTH,2)
    Tensor y2 = make_tensor(make_smem_ptr(ring + TILE * PITCH), make_shape(Int<TILE>{}, Int<WIDTH_V>{}, _2{}), make_stride(Int<PITCH_V>{}, _1{}, Int<SLOT>{})); // (TILE,WIDTH_V,2)
    Tensor y1t = make_tensor(make_smem_ptr(ring), make_shape(Int<WIDTH>{}, Int<TILE>{}, _2{}), make_stride(_1{}, Int<PITCH>{}, Int<SLOT>{})); // (WIDTH,TILE,2)
    Tensor y2t = make_tensor(make_smem_ptr(ring + TILE * PITCH), make_shape(Int<WIDTH_V>{}, Int<TILE>{}, _2{}), make_stride(_1{}, Int<PITCH_V>{}, Int<SLOT>{})); // (WIDTH_V,TILE,2)

    auto mma = make_tiled_mma($mma{}, Layout<Shape<_4, _1, _1>>{}, Tile<_64, _16, _16>{});
    auto thr = mma.get_slice(threadIdx.x);
    Tensor tSr1 = thr.partition_fragment_A(s1); // (MMA,1,WIDTH/16)
    Tensor tSr2 = thr.partition_fragment_A(s2); // (MMA,1,WIDTH_V/16)
    Tensor tSry1 = thr.partition_fragment_B(y1(_, _, 0)); // (MMA,TILE/8,WIDTH/16)
    Tensor tSry2 = thr.partition_fragment_B(y2(_, _, 0)); // (MMA,TILE/8,WIDTH_V/16)
    Tensor tOry1 = thr.partition_fragment_B(y1t(_, _, 0)); // (MMA,WIDTH/8,TILE/16)
    Tensor tOry2 = thr.partition_fragment_B(y2t(_, _, 0)); // (MMA,WIDTH_V/8,TILE/16)
    Tensor scores = partition_fragment_C(mma, Shape<_64, Int<TILE>>{}); // (MMA,1,TILE/8): two rows, pairs of columns
    Tensor change = partition_fragment_C(mma, Shape<_64, Int<TILE>>{}); // (MMA,1,TILE/8)
    Tensor out1 = partition_fragment_C(mma, Shape<_64, Int<MADE == NUMBERS ? 16 : WIDTH>>{}); // (MMA,1,WIDTH/8)
    [[maybe_unused]] Tensor out2 = partition_fragment_C(mma, Shape<_64, Int<KEYS ? WIDTH_V : 16>>{}); // (MMA,1,WIDTH_V/8)
    Tensor tScS = thr.partition_C(make_identity_tensor(Shape<_64, Int<TILE>>{})); // (MMA,1,TILE/8)
    Tensor tOrP = make_tensor<Element>(Shape<Shape<_2, _2, _2>, _1, Int<TILE / 16>>{}); // (MMA,1,TILE/16)
    Tensor tOrS = make_tensor<Element>(Shape<Shape<_2, _2, _2>, _1, Int<TILE / 16>>{}); // (MMA,1,TILE/16)
    auto copy_a = make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N, Element>{}, mma);
    auto copy_b = make_tiled_copy_B(Copy_Atom<SM75_U32x4_LDSM_N, Element>{}, mma);
    auto copy_t = make_tiled_copy_B(Copy_Atom<SM75_U16x8_LDSM_T, Element>{}, mma);
    auto thr_a = copy_a.get_slice(threadIdx.x);
    auto thr_b = copy_b.get_slice(threadIdx.x);
    auto thr_t = copy_t.get_slice(threadIdx.x);
    Tensor tXs1 = thr_a.partition_S(s1); // (CPY,1,WIDTH/16)
    Tensor tXs2 = thr_a.partition_S(s2); // (CPY,1,WIDTH_V/16)
    Tensor tXr1 = thr_a.retile_D(tSr1); // (CPY,1,WIDTH/16)
    Tensor tXr2 = thr_a.retile_D(tSr2); // (CPY,1,WIDTH_V/16)
    Tensor tXsy1 = thr_b.partition_S(y1); // (CPY,TILE/16,WIDTH/16,2)
    Tensor tXsy2 = thr_b.partition_S(y2); // (CPY,TILE/16,WIDTH_V/16,2)
    Tensor tXry1 = thr_b.retile_D(tSry1); // (CPY,TILE/16,WIDTH/16)
    Tensor tXry2 = thr_b.retile_D(tSry2); // (CPY,TILE/16,WIDTH_V/16)
    Tensor tTsy1 = thr_t.partition_S(y1t); // (CPY,WIDTH/16,TILE/16,2)
    Tensor tTsy2 = thr_t.partition_S(y2t); // (CPY,WIDTH_V/16,TILE/16,2)
    Tensor tTry1 = thr_t.retile_D(tOry1); // (CPY,WIDTH/16,TILE/16)
    Tensor tTry2 = thr_t.retile_D(tOry2); // (CPY,WIDTH_V/16,TILE/16)

    auto const fetch = [&](int i) {
        int const g = i / steps, l = KEYS ? $key_l : h, first = begin + i % steps * TILE;
        $places
//! include attention_backward_tensors
        if (i == 0) {
            fetch_rows<64, HEAD, WIDTH>(choose<KEYS>(mK, mQ), s1, m0, rows);
            fetch_rows<64, HEAD_V, WIDTH_V>(choose<KEYS>(mV, mdO), s2, m0, rows);
        }
        fetch_rows<TILE, HEAD, WIDTH>(choose<KEYS>(mQ, mK), y1(_, _, i % 2), first, columns);
        fetch_rows<TILE, HEAD_V, WIDTH_V>(choose<KEYS>(mdO, mV), y2(_, _, i % 2), first, columns);
    };
    [[maybe_unused]] float best[2] = {UNSEEN, UNSEEN}, sum[2] = {0.0f, 0.0f}, inner[2] = {0.0f, 0.0f}; // of rows m and m + 8
    clear(out1);
    clear(out2);
    if (total > 0)
        fetch(0);
    for (int i = 0; i < total; ++i) {
        int const slot = i % 2, first = begin + i % steps * TILE, g = i / steps, l = KEYS ? $key_l : h;
        $places
//! include attention_backward_tensors
        cp_async_wait<0>();
        __syncthreads(); // this tile has come, and all are done with the one before
        if (i + 1 < total)
            fetch(i + 1);
        clear(scores);
        clear(change);
        CUTE_UNROLL
        for (int k = 0; k < WIDTH / 16; ++k) {
            copy(copy_a, tXs1(_, _, k), tXr1(_, _, k));
            copy(copy_b, tXsy1(_, _, k, slot), tXry1(_, _, k));
            gemm(mma, tSr1(_, _, k), tSry1(_, _, k), scores);
        }
        CUTE_UNROLL
        for (int k = 0; k < WIDTH_V / 16; ++k) {
            copy(copy_a, tXs2(_, _, k), tXr2(_, _, k));
            copy(copy_b, tXsy2(_, _, k, slot), tXry2(_, _, k));
            gemm(mma, tSr2(_, _, k), tSry2(_, _, k), change);
        }
        CUTE_UNROLL
        for (int j = 0; j < size(scores); ++j) {
            int const r = m0 + get<0>(tScS(j)), c = first + get<1>(tScS(j)), m = KEYS ? c : r, n = KEYS ? r : c;
//! if causal
            bool const seen = m < queries && n < keys && n <= m;
//! else
            bool const seen = m < queries && n < keys;
//! end
            scores(j) = seen ? ${kernel}_score2(scores(j)$score_args) : UNSEEN; // in units of log 2
            if constexpr (MADE != NUMBERS) {
                int64_t const at = int64_t(l) * padded + m;
                float const p = seen ? exp2f(scores(j) - lse[at]) : 0.0f;
                tOrP(j) = Element(p);
                tOrS(j) = Element(seen ? p * (change(j) - delta[at]) : 0.0f);
            }
        }
        if constexpr (MADE == NUMBERS) {
            CUTE_UNROLL
            for (int r = 0; r < 2; ++r) {
                float top = best[r], more = 0.0f, turn = 0.0f;
                CUTE_UNROLL
                for (int j = 0; j < size(scores); j += 4)
                    top = fmaxf(top, fmaxf(scores(j + r * 2), scores(j + r * 2 + 1)));
                top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
                top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
                float const base = top > MINUS_INFINITY ? top : 0.0f, before = exp2f(best[r] - base);
                CUTE_UNROLL
                for (int j = r * 2; j < size(scores); j += 4) {
                    float const a = exp2f(scores(j) - base), b = exp2f(scores(j + 1) - base);
                    more += a + b;
                    turn = fmaf(a, change(j), fmaf(b, change(j + 1), turn));
                }
                sum[r] = sum[r] * before + more;
                inner[r] = inner[r] * before + turn;
                best[r] = top;
            }
        } else {
            CUTE_UNROLL
            for (int k = 0; k < TILE / 16; ++k) {
                copy(copy_t, tTsy1(_, _, k, slot), tTry1(_, _, k));
                gemm(mma, tOrS(_, _, k), tOry1(_, _, k), out1);
                if constexpr (KEYS) {
                    copy(copy_t, tTsy2(_, _, k, slot), tTry2(_, _, k));
                    gemm(mma, tOrP(_, _, k), tOry2(_, _, k), out2);
                }
            }
        }
    }
    int const g = 0, l = KEYS ? $key_l : h;
    $places
    Tensor mdQ = make_tensor(make_gmem_ptr(dQ + ($dq_at)), make_shape(queries, Int<HEAD>{}), make_stride($dq_row, $dq_col)); // (queries,HEAD)
    Tensor mdK = make_tensor(make_gmem_ptr(dK + ($dk_at)), make_shape(keys, Int<HEAD>{}), make_stride($dk_row, $dk_col)); // (keys,HEAD)
    Tensor mdV = make_tensor(make_gmem_ptr(dV + ($dv_at)), make_shape(keys, Int<HEAD_V>{}), make_stride($dv_row, $dv_col)); // (keys,HEAD_V)
    auto const store = [&](auto const &out, auto const &to, auto width, int columns_of, float factor) {
        Tensor tOcO = thr.partition_C(make_identity_tensor(Shape<_64, decltype(width)>{})); // (MMA,1,width/8)
        CUTE_UNROLL
        for (int j = 0; j < size(out); ++j) {
            int const r = m0 + get<0>(tOcO(j)), c = get<1>(tOcO(j));
            if (r < rows && c < columns_of)
                to(r, c) = Element(out(j) * factor);
        }
    };
    if constexpr (KEYS) {
        store(out1, mdK, Int<WIDTH>{}, HEAD, $scale);
        store(out2, mdV, Int<WIDTH_V>{}, HEAD_V, 1.0f);
    } else if constexpr (MADE == OF_QUERIES) {
        store(out1, mdQ, Int<WIDTH>{}, HEAD, $scale);
    } else {
        CUTE_UNROLL
        for (int r = 0; r < 2; ++r) {
            int const m = m0 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + r * 8;
            sum[r] += __shfl_xor_sync(~0u, sum[r], 1);
            sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
            inner[r] += __shfl_xor_sync(~0u, inner[r], 1);
            inner[r] += __shfl_xor_sync(~0u, inner[r], 2);
            if (threadIdx.x % 4 == 0 && m < queries) {
                lse[int64_t(l) * padded + m] = row_lse(best[r], sum[r]);
                delta[int64_t(l) * padded + m] = finish_row(inner[r], sum[r]);
            }
        }
    }
}
