// attention_keys.cuh - few queries against a part of the keys, and parts brought together; a part of attention_decode.cu.

__device__ inline float quick_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

//! if not tma
// Rows of K or V on their way to a warp's ring; what lies outside becomes zero.
template <int COLUMNS, int WIDE, class Global, class Shared>
__device__ inline void fetch_keys(Global const &from, Shared const &to, int first, int count)
{
    constexpr int VECTORS = WIDE / VECTOR;
    if constexpr (COLUMNS == WIDE && 32 % VECTORS == 0) {
        if (count >= TILE_N) { // all of it: a lane has the same columns of every row
            constexpr int STEP = 32 / VECTORS > TILE_N ? TILE_N : 32 / VECTORS;
            int const r = threadIdx.x % 32 / VECTORS, c = threadIdx.x % 32 % VECTORS * VECTOR;
            auto const *x = &from(first + (r < STEP ? r : 0), c);
            CUTE_UNROLL
            for (int i = 0; i < TILE_N; i += STEP)
                if (r < STEP)
                    SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>::copy(*reinterpret_cast<uint128_t const *>(x + i * stride<0>(from)),
                                                               *reinterpret_cast<uint128_t *>(&to(r + i, c)));
            return;
        }
    }
    CUTE_UNROLL
    for (int i = 0; i < (TILE_N * VECTORS + 31) / 32; ++i) {
        int const r = (i * 32 + threadIdx.x % 32) / VECTORS, c = (i * 32 + threadIdx.x % 32) % VECTORS * VECTOR;
        bool const inside = r < count && c < COLUMNS;
        if (r < TILE_N)
            SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>::copy(
                *reinterpret_cast<uint128_t const *>(&from(inside ? first + r : first, inside ? c : 0)),
                *reinterpret_cast<uint128_t *>(&to(r, c)), inside);
    }
}

//! end
// A block has a part of the keys, for ROWS queries of the heads that share them. Each warp takes every WARPS-th tile of it.
__global__ void __launch_bounds__(WARPS * 32)
    ${kernel}_decode(
//! if tma
                     const __grid_constant__ CUtensorMap map_k, const __grid_constant__ CUtensorMap map_v,
//! end
                     float *sums, float2 *tops, int splits, int span, $params)
{
//! if early
    cutegen_let_next_begin(); // its blocks wait for the end of these
//! end
    using Element = $type;
    extern __shared__ uint4 shared[];
    Element *smem_q = reinterpret_cast<Element *>(shared), *ring = smem_q + TALL * PITCH;
    int const rows = queries * $shared, tiles = (rows + ROWS - 1) / ROWS, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int const row0 = blockIdx.x % tiles * ROWS, part = blockIdx.x / tiles % splits, head = blockIdx.x / tiles / splits;
    int const first = part * span;
//! if causal
    int const end = cute::min(cute::min(keys, queries), first + span); // no query sees more
//! else
    int const end = cute::min(keys, first + span);
//! end
    int const last = end > first ? (end - first + TILE_N - 1) / TILE_N : 0; // tiles
    Tensor sQ = make_tensor(make_smem_ptr(smem_q), make_shape(Int<TALL>{}, Int<WIDTH>{}), make_stride(Int<PITCH>{}, _1{})); // (TALL,WIDTH)
//! if tma
    ring += (-cast_smem_ptr_to_uint(ring) % 1024u) / sizeof(Element);
    Tensor sK = make_tensor(make_smem_ptr(ring + warp * STAGES * SLOT), rows_layout<Element, TILE_N, WIDTH, STAGES, SLOT>()); // (TILE_N,WIDTH,STAGES)
    Tensor sVt = make_tensor(make_smem_ptr(ring + warp * STAGES * SLOT + TILE_N * WIDTH), columns_layout<Element, WIDTH_V, TILE_N, STAGES, SLOT>()); // (WIDTH_V,TILE_N,STAGES)
    uint64_t *full = reinterpret_cast<uint64_t *>(ring + WARPS * STAGES * SLOT) + warp * STAGES; // a warp's own
    if (lane == 0) {
        for (int s = 0; s < STAGES; ++s)
            initialize_barrier(full[s], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncwarp();
//! else
    Tensor sK = make_tensor(make_smem_ptr(ring + warp * STAGES * SLOT), make_shape(Int<TILE_N>{}, Int<WIDTH>{}, Int<STAGES>{}),
                            make_stride(Int<PITCH>{}, _1{}, Int<SLOT>{})); // (TILE_N,WIDTH,STAGES)
    Tensor sV = make_tensor(make_smem_ptr(ring + warp * STAGES * SLOT + TILE_N * PITCH), make_shape(Int<TILE_N>{}, Int<WIDTH_V>{}, Int<STAGES>{}),
                            make_stride(Int<PITCH_V>{}, _1{}, Int<SLOT>{})); // (TILE_N,WIDTH_V,STAGES)
//! end

    [[maybe_unused]] int const l = head * $shared;
    $places
//! if not tma
    Tensor mK = make_tensor(make_gmem_ptr(K + ($k_at)), make_shape(keys, Int<HEAD>{}), make_stride($k_row, _1{})); // (keys,HEAD)
    Tensor mV = make_tensor(make_gmem_ptr(V + ($v_at)), make_shape(keys, Int<HEAD_V>{}), make_stride($v_row, _1{})); // (keys,HEAD_V)
//! end
//! if paged
    Tensor mT = make_tensor(make_gmem_ptr(Table + ($table_at)), make_shape(keys / PAGE), make_stride($table_col)); // (pages of a sequence)
    auto const page_of = [&](int tile) { // where tile `tile` lies; a place from the end counts as in PyTorch
        int64_t const page = tile < last ? int64_t(mT((first + tile * TILE_N) / PAGE)) : 0;
        return page < 0 ? page + pages : page;
    };
    int64_t page = page_of(warp); // of the tile that is fetched next
//! end
    auto const fetch = [&](int tile, int slot) {
        if (tile < last) {
            int const n = first + tile * TILE_N;
//! if paged
            Tensor pK = make_tensor(mK.data() + page * k_page, mK.layout()); // (keys,HEAD) of the page
            Tensor pV = make_tensor(mV.data() + page * v_page, mV.layout()); // (keys,HEAD_V)
            fetch_keys<HEAD, WIDTH>(pK, sK(_, _, slot), n % PAGE, end - n);
            fetch_keys<HEAD_V, WIDTH_V>(pV, sV(_, _, slot), n % PAGE, end - n);
            page = page_of(tile + WARPS);
//! elif tma
            if (lane == 0) { // all of them: what lies behind the keys is zero
                set_barrier_transaction_bytes(full[slot], TILE_N * (WIDTH + WIDTH_V) * 2);
                Element *to = ring + (warp * STAGES + slot) * SLOT;
                CUTE_UNROLL
                for (int c = 0; c < WIDTH / CHUNK; ++c)
                    SM90_TMA_LOAD_5D::copy(&map_k, &full[slot], USUAL, to + c * TILE_N * CHUNK, c * CHUNK, n, $k_place);
                CUTE_UNROLL
                for (int c = 0; c < WIDTH_V / CHUNK_V; ++c)
                    SM90_TMA_LOAD_5D::copy(&map_v, &full[slot], USUAL, to + TILE_N * (WIDTH + c * CHUNK_V), c * CHUNK_V, n, $v_place);
            }
//! else
            fetch_keys<HEAD, WIDTH>(mK, sK(_, _, slot), n, end - n);
            fetch_keys<HEAD_V, WIDTH_V>(mV, sV(_, _, slot), n, end - n);
//! end
        }
//! if not tma
        cp_async_fence();
//! end
    };
    // A score of row r of the tile and key n, in units of log 2.
    auto const score_of = [&](int r, int n, float product) {
//! if scaled and not causal
        return n < end ? ${kernel}_score2(product) : UNSEEN; // rows behind the last are zeros, and are not stored
//! else
        [[maybe_unused]] int const row = row0 + r, l = head * $shared + row % $shared, m = row / $shared;
        $places
//! each leaf
        Tensor m$X = make_tensor(make_gmem_ptr($x + ($x_at)), make_shape(queries, keys), make_stride($m, $n)); // (queries,keys)
//! end
//! if causal
        bool const seen = n < end && n <= m && row < rows;
//! else
        bool const seen = n < end && row < rows;
//! end
        return seen ? ${kernel}_score2(product$score_args) : UNSEEN;
//! end
    };

    CUTE_UNROLL
    for (int s = 0; s < STAGES - 1; ++s)
        fetch(warp + s * WARPS, s);
    for (int i = threadIdx.x; i < TALL * WIDTH / VECTOR; i += WARPS * 32) { // meanwhile Q, 16 bytes at a time
        int const r = row0 + i / (WIDTH / VECTOR), c = i % (WIDTH / VECTOR) * VECTOR;
        [[maybe_unused]] int const l = head * $shared + r % $shared, m = r / $shared;
        $places
        Tensor mQ = make_tensor(make_gmem_ptr(Q + ($q_at)), make_shape(queries, Int<HEAD>{}), make_stride($q_row, $q_col)); // (queries,HEAD)
        bool const inside = i / (WIDTH / VECTOR) < ROWS && r < rows && c < HEAD;
        *reinterpret_cast<uint4 *>(&sQ(i / (WIDTH / VECTOR), c)) = inside ? *reinterpret_cast<uint4 const *>(&mQ(m, c)) : make_uint4(0, 0, 0, 0);
    }
    __syncthreads(); // Q has come
//! if narrow
//! if not tma
    Tensor sVt = make_tensor(sV.data(), make_shape(Int<WIDTH_V>{}, Int<TILE_N>{}, Int<STAGES>{}), make_stride(_1{}, Int<PITCH_V>{}, Int<SLOT>{})); // (WIDTH_V,TILE_N,STAGES)
//! end
    auto mma = make_tiled_mma($mma{}, Layout<Shape<_1, _1, _1>>{}, Tile<_16, _16, _16>{});
    auto thr = mma.get_slice(lane);
    Tensor tSrQ = thr.partition_fragment_A(sQ); // (MMA,1,WIDTH/16)
    Tensor tSrK = thr.partition_fragment_B(sK(_, _, 0)); // (MMA,2,WIDTH/16)
    Tensor tOrV = thr.partition_fragment_B(sVt(_, _, 0)); // (MMA,WIDTH_V/8,1)
    Tensor scores = partition_fragment_C(mma, Shape<_16, _16>{}); // (MMA,1,2): two rows, pairs of columns
    Tensor out = partition_fragment_C(mma, Shape<_16, Int<WIDTH_V>>{}); // (MMA,1,WIDTH_V/8)
    Tensor tScS = thr.partition_C(make_identity_tensor(Shape<_16, _16>{})); // (MMA,1,2)
    Tensor tOcO = thr.partition_C(make_identity_tensor(Shape<_16, Int<WIDTH_V>>{})); // (MMA,1,WIDTH_V/8)
    Tensor tOrP = make_tensor<Element>(Shape<Shape<_2, _2, _2>, _1, _1>{}); // (MMA,1,1)
    auto copy_q = make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N, Element>{}, mma);
    auto copy_k = make_tiled_copy_B(Copy_Atom<SM75_U32x4_LDSM_N, Element>{}, mma);
    auto copy_v = make_tiled_copy_B(Copy_Atom<SM75_U16x8_LDSM_T, Element>{}, mma);
    Tensor tXsK = copy_k.get_slice(lane).partition_S(sK); // (CPY,1,WIDTH/16,STAGES)
    Tensor tXrK = copy_k.get_slice(lane).retile_D(tSrK); // (CPY,1,WIDTH/16)
    Tensor tXsV = copy_v.get_slice(lane).partition_S(sVt); // (CPY,WIDTH_V/16,1,STAGES)
    Tensor tXrV = copy_v.get_slice(lane).retile_D(tOrV); // (CPY,WIDTH_V/16,1)
    constexpr int HALVES = ROWS / 8; // rows r and r + 8, or r alone
    [[maybe_unused]] float best[HALVES], sum[HALVES];

    copy(copy_q, copy_q.get_slice(lane).partition_S(sQ), copy_q.get_slice(lane).retile_D(tSrQ));
    clear(out);
    clear(tOrP);
    CUTE_UNROLL
    for (int r = 0; r < HALVES; ++r)
        best[r] = UNSEEN, sum[r] = 0.0f;
//! if tma
    int turn = 0;
//! end
    for (int tile = warp, slot = 0; tile < last; tile += WARPS) {
//! if tma
        __syncwarp(); // all lanes are done with the tile before
        fetch(tile + (STAGES - 1) * WARPS, slot == 0 ? STAGES - 1 : slot - 1);
        wait_barrier(full[slot], turn);
//! else
        cp_async_wait<STAGES - 2>();
        __syncwarp(); // the tile has come, and all lanes are done with the one before
        fetch(tile + (STAGES - 1) * WARPS, slot == 0 ? STAGES - 1 : slot - 1);
//! end
        clear(scores);
        copy(copy_k, tXsK(_, _, _, slot), tXrK);
        CUTE_UNROLL
        for (int k = 0; k < WIDTH / 16; ++k)
            gemm(mma, tSrQ(_, _, k), tSrK(_, _, k), scores);
        copy(copy_v, tXsV(_, _, _, slot), tXrV);
        CUTE_UNROLL
        for (int i = 0; i < size(scores); ++i)
            if (i / 2 % 2 < HALVES)
                scores(i) = score_of(get<0>(tScS(i)), first + tile * TILE_N + get<1>(tScS(i)), scores(i));
//! if linear
        CUTE_UNROLL
        for (int i = 0; i < size(scores); ++i)
            if (i / 2 % 2 < HALVES)
                tOrP(i) = Element(scores(i));
//! else
        CUTE_UNROLL
        for (int r = 0; r < HALVES; ++r) {
            float top = best[r], more = 0.0f;
            CUTE_UNROLL
            for (int i = 0; i < size(scores); i += 4)
                top = fmaxf(top, fmaxf(scores(i + r * 2), scores(i + r * 2 + 1)));
            top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
            top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
            float const base = top > MINUS_INFINITY ? top : 0.0f, before = quick_exp2(best[r] - base);
            CUTE_UNROLL
            for (int i = 0; i < size(scores); i += 4) {
                CUTE_UNROLL
                for (int j = r * 2; j < r * 2 + 2; ++j) {
                    scores(i + j) = quick_exp2(scores(i + j) - base);
                    more += scores(i + j);
                    tOrP(i + j) = Element(scores(i + j));
                }
            }
            if (__any_sync(~0u, before != 1.0f)) { // seldom, after the first tiles
                CUTE_UNROLL
                for (int i = 0; i < size(out); i += 4) {
                    out(i + r * 2) *= before;
                    out(i + r * 2 + 1) *= before;
                }
            }
            sum[r] = sum[r] * before + more;
            best[r] = top;
        }
//! end
        gemm(mma, tOrP(_, _, 0), tOrV(_, _, 0), out);
        slot = slot + 1 == STAGES ? 0 : slot + 1;
//! if tma
        turn ^= slot == 0;
//! end
    }
    CUTE_UNROLL
    for (int r = 0; r < HALVES; ++r) {
        sum[r] += __shfl_xor_sync(~0u, sum[r], 1);
        sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
    }
//! else
    constexpr int COLUMNS = (WIDTH_V / 4 + 31) / 32; // of a lane, four at a time
    float best[ROWS], sum[ROWS];
    float4 out[ROWS][COLUMNS];
    int const key = lane % TILE_N, share = lane / TILE_N; // a lane has a quarter of a key's product

    CUTE_UNROLL
    for (int r = 0; r < ROWS; ++r) {
        best[r] = UNSEEN, sum[r] = 0.0f;
        CUTE_UNROLL
        for (int c = 0; c < COLUMNS; ++c)
            out[r][c] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
    for (int tile = warp, slot = 0; tile < last; tile += WARPS, slot = slot + 1 == STAGES ? 0 : slot + 1) {
        float p[ROWS] = {}, before[ROWS];
        cp_async_wait<STAGES - 2>();
        __syncwarp(); // the tile has come, and all lanes are done with the one before
        fetch(tile + (STAGES - 1) * WARPS, slot == 0 ? STAGES - 1 : slot - 1);
        CUTE_UNROLL
        for (int i = 0; i < (WIDTH / 4 + 3) / 4; ++i) {
            int const c = (i * 4 + share) * 4;
            if (c < WIDTH) {
                float4 const k = *reinterpret_cast<float4 const *>(&sK(key, c, slot));
                CUTE_UNROLL
                for (int r = 0; r < ROWS; ++r) {
                    float4 const q = *reinterpret_cast<float4 const *>(&sQ(r, c));
                    p[r] = fmaf(q.x, k.x, fmaf(q.y, k.y, fmaf(q.z, k.z, fmaf(q.w, k.w, p[r]))));
                }
            }
        }
        CUTE_UNROLL
        for (int r = 0; r < ROWS; ++r) {
            p[r] += __shfl_xor_sync(~0u, p[r], 8);
            p[r] += __shfl_xor_sync(~0u, p[r], 16);
            p[r] = score_of(r, first + tile * TILE_N + key, p[r]);
//! if linear
            before[r] = 1.0f;
//! else
            float top = p[r];
            CUTE_UNROLL
            for (int i = 1; i < TILE_N; i *= 2)
                top = fmaxf(top, __shfl_xor_sync(~0u, top, i));
            top = fmaxf(top, best[r]);
            float const base = top > MINUS_INFINITY ? top : 0.0f;
            before[r] = quick_exp2(best[r] - base);
            p[r] = quick_exp2(p[r] - base);
            sum[r] = sum[r] * before[r] + p[r]; // of every TILE_N-th key; lanes are added at the end
            best[r] = top;
//! end
        }
        CUTE_UNROLL
        for (int c = 0; c < COLUMNS; ++c) {
            bool const mine = (c * 32 + lane) * 4 < WIDTH_V;
            CUTE_UNROLL
            for (int r = 0; r < ROWS; ++r) {
                out[r][c].x *= before[r], out[r][c].y *= before[r];
                out[r][c].z *= before[r], out[r][c].w *= before[r];
            }
            CUTE_UNROLL
            for (int j = 0; j < TILE_N; ++j) {
                float4 const v = *reinterpret_cast<float4 const *>(&sV(j, mine ? (c * 32 + lane) * 4 : 0, slot));
                CUTE_UNROLL
                for (int r = 0; r < ROWS; ++r) {
                    float const weight = __shfl_sync(~0u, p[r], j);
                    out[r][c].x = fmaf(weight, v.x, out[r][c].x), out[r][c].y = fmaf(weight, v.y, out[r][c].y);
                    out[r][c].z = fmaf(weight, v.z, out[r][c].z), out[r][c].w = fmaf(weight, v.w, out[r][c].w);
                }
            }
        }
    }
    CUTE_UNROLL
    for (int r = 0; r < ROWS; ++r) {
        CUTE_UNROLL
        for (int i = 1; i < TILE_N; i *= 2)
            sum[r] += __shfl_xor_sync(~0u, sum[r], i);
    }
//! end

    // What the warps found, side by side in the ring's place.
    Tensor sO = make_tensor(make_smem_ptr(reinterpret_cast<float *>(ring)), make_shape(Int<WARPS>{}, Int<ROWS>{}, Int<HEAD_V>{}), LayoutRight{}); // (WARPS,ROWS,HEAD_V)
    Tensor sT = make_tensor(make_smem_ptr(reinterpret_cast<float2 *>(reinterpret_cast<float *>(ring) + WARPS * ROWS * HEAD_V)), make_shape(Int<WARPS>{}, Int<ROWS>{}), LayoutRight{}); // (WARPS,ROWS): maximum, sum
//! if not tma
    cp_async_wait<0>();
//! end
    __syncthreads(); // all are done with their rings
//! if narrow
    CUTE_UNROLL
    for (int i = 0; i < size(out); ++i)
        if (i / 2 % 2 < HALVES && get<1>(tOcO(i)) < HEAD_V)
            sO(warp, get<0>(tOcO(i)), get<1>(tOcO(i))) = out(i);
    CUTE_UNROLL
    for (int r = 0; r < HALVES; ++r)
        if (lane % 4 == 0)
            sT(warp, lane / 4 + r * 8) = make_float2(best[r], sum[r]);
//! else
    CUTE_UNROLL
    for (int r = 0; r < ROWS; ++r) {
        CUTE_UNROLL
        for (int c = 0; c < COLUMNS; ++c)
            if ((c * 32 + lane) * 4 < WIDTH_V)
                *reinterpret_cast<float4 *>(&sO(warp, r, (c * 32 + lane) * 4)) = out[r][c];
        if (lane == 0)
            sT(warp, r) = make_float2(best[r], sum[r]);
    }
//! end
    __syncthreads();
    for (int i = threadIdx.x; i < ROWS * HEAD_V / 4; i += WARPS * 32) { // four columns of a row
        [[maybe_unused]] int const r = i / (HEAD_V / 4), n = i % (HEAD_V / 4) * 4, row = row0 + r, l = head * $shared + row % $shared, m = row / $shared;
        $places
        if (row >= rows)
            break;
        float top = UNSEEN, total = 0.0f, value[4] = {};
        CUTE_UNROLL
        for (int w = 0; w < WARPS; ++w)
            top = fmaxf(top, sT(w, r).x);
        CUTE_UNROLL
        for (int w = 0; w < WARPS; ++w) {
            float const worth = exp2f(sT(w, r).x - (top > MINUS_INFINITY ? top : 0.0f));
            float4 const x = *reinterpret_cast<float4 const *>(&sO(w, r, n));
            total += sT(w, r).y * worth;
            value[0] += x.x * worth, value[1] += x.y * worth, value[2] += x.z * worth, value[3] += x.w * worth;
        }
        int64_t const at = (int64_t(part) * (gridDim.x / tiles / splits) + head) * rows + row;
        if (splits == 1) {
            Tensor mO = make_tensor(make_gmem_ptr(O + ($o_at)), make_shape(queries, Int<HEAD_V>{}), make_stride($o_row, $o_col)); // (queries,HEAD_V)
            CUTE_UNROLL
            for (int j = 0; j < 4; ++j)
                mO(m, n + j) = Element(finish_row(value[j], total));
        } else {
            *reinterpret_cast<float4 *>(sums + at * HEAD_V + n) = make_float4(value[0], value[1], value[2], value[3]);
            if (n == 0)
                tops[at] = make_float2(top, total);
        }
    }
}

// Brings the parts of one row together, a block per row: a thread has a part's weight, then four columns of every DOWN-th part.
__global__ void __launch_bounds__(PARTS)
    ${kernel}_merge(float const *sums, float2 const *tops, int splits, $params)
{
    constexpr int ACROSS = HEAD_V / 4, DOWN = PARTS / ACROSS < 8 ? PARTS / ACROSS : 8;
    __shared__ float weights[PARTS], peaks[PARTS / 32], totals[PARTS / 32];
    __shared__ float4 partial[DOWN * ACROSS];
    int const rows = queries * $shared, row = blockIdx.x % rows, l = blockIdx.x / rows * $shared + row % $shared, m = row / $shared;
    int const lane = threadIdx.x % 32, warp = threadIdx.x / 32, c = threadIdx.x % ACROSS, down = threadIdx.x / ACROSS;
    $places
    Tensor mO = make_tensor(make_gmem_ptr(O + ($o_at)), make_shape(queries, Int<HEAD_V>{}), make_stride($o_row, $o_col)); // (queries,HEAD_V)
    Tensor mS = make_tensor(make_gmem_ptr(reinterpret_cast<float4 const *>(sums) + int64_t(blockIdx.x) * ACROSS), make_shape(splits, Int<ACROSS>{}), make_stride(int64_t(gridDim.x) * ACROSS, _1{})); // (splits,ACROSS)
    Tensor mT = make_tensor(make_gmem_ptr(tops + blockIdx.x), make_shape(splits), make_stride(gridDim.x)); // (splits): maximum, sum

//! if early
    cutegen_wait_for_earlier(); // all parts are there
    cutegen_let_next_begin();
//! end
    float2 const mine = threadIdx.x < splits ? mT(threadIdx.x) : make_float2(UNSEEN, 0.0f);
    float top = warp_max(mine.x), total = 0.0f;
    if (lane == 0)
        peaks[warp] = top;
    __syncthreads();
    CUTE_UNROLL
    for (int i = 0; i < PARTS / 32; ++i)
        top = fmaxf(top, peaks[i]);
    float const worth = exp2f(mine.x - (top > MINUS_INFINITY ? top : 0.0f)), share = warp_sum(mine.y * worth);
    weights[threadIdx.x] = worth;
    if (lane == 0)
        totals[warp] = share;
    __syncthreads();
    if (down < DOWN) {
        float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
        for (int s = down; s < splits; s += DOWN) {
            float4 const x = mS(s, c);
            float const w = weights[s];
            v.x = fmaf(x.x, w, v.x), v.y = fmaf(x.y, w, v.y), v.z = fmaf(x.z, w, v.z), v.w = fmaf(x.w, w, v.w);
        }
        partial[threadIdx.x] = v;
    }
    __syncthreads();
    CUTE_UNROLL
    for (int i = 0; i < PARTS / 32; ++i)
        total += totals[i];
    for (int n = threadIdx.x; n < HEAD_V; n += PARTS) {
        float value = 0.0f;
        CUTE_UNROLL
        for (int d = 0; d < DOWN; ++d)
            value += reinterpret_cast<float const *>(partial)[d * HEAD_V + n];
        mO(m, n) = $type(finish_row(value, total));
    }
}
