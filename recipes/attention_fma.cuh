// attention_fma.cuh - attention on the FMA units, tiles in shared memory; included by attention's recipes.
//! include attention_warp
//! if given
// Element `at` of what a product has made: of its result in fp32, if that is there, or of its parts.
__device__ inline float given_element(float const *result, half_t const *planes, part_rows of, int64_t at, float scale, bool whole)
{
    half_t const *high = planes + of.from + at;
    return whole ? result[at] : (float(high[0]) + float(high[of.apart])) * scale;
}

// Computes all of it again in fp32 where a split lost something.
__global__ void __launch_bounds__(WARPS * 32)
    ${kernel}_repeat(int const *lost, half_t const *planes_q, half_t const *planes_k, half_t const *planes_v, part_rows of_q,
                     part_rows of_k, part_rows of_v, $params)
//! elif planes
// Computes all of it again in fp32 where the split lost something.
__global__ void __launch_bounds__(WARPS * 32)
    ${kernel}_repeat(int const *lost, $params)
//! else
// A block has WARPS * ROWS queries of a head. A lane has a key's scores, then columns of O.
__global__ void __launch_bounds__(WARPS * 32)
    ${kernel}_tiles($params)
//! end
{
    constexpr int QUERIES = WARPS * ROWS, COLUMNS = (HEAD_V + 31) / 32;
    constexpr int FILLED = HEAD % 4 == 3 ? HEAD + 1 : HEAD; // of a row of K: three are loaded as four
    extern __shared__ float4 shared[];
    float *smem_k = reinterpret_cast<float *>(shared), *smem_v = smem_k + 32 * PITCH, *smem_q = smem_v + 32 * HEAD_V;
    int const tiles = (queries + QUERIES - 1) / QUERIES, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float best[ROWS], sum[ROWS], out[ROWS][COLUMNS];
//! if given
    bool const whole_q = lost[of_q.lost] | lost[of_q.lost + 1], whole_k = lost[of_k.lost] | lost[of_k.lost + 1];
    bool const whole_v = lost[of_v.lost] | lost[of_v.lost + 1];
    if (!whole_q && !whole_k && !whole_v)
        return;
//! elif planes
    if (*lost == 0)
        return;
//! end

    for (int t = blockIdx.x; t < tiles * ($heads); t += gridDim.x) {
        int const l = t / tiles, m0 = (tiles - 1 - t % tiles) * QUERIES;
        $places
        Tensor mQ = make_tensor(make_gmem_ptr(Q + ($q_at)), make_shape(queries, Int<HEAD>{}), make_stride($q_row, $q_col)); // (queries,HEAD)
        Tensor mK = make_tensor(make_gmem_ptr(K + ($k_at)), make_shape(keys, Int<HEAD>{}), make_stride($k_row, $k_col)); // (keys,HEAD)
        Tensor mV = make_tensor(make_gmem_ptr(V + ($v_at)), make_shape(keys, Int<HEAD_V>{}), make_stride($v_row, $v_col)); // (keys,HEAD_V)
        Tensor mO = make_tensor(make_gmem_ptr(O + ($o_at)), make_shape(queries, Int<HEAD_V>{}), make_stride($o_row, $o_col)); // (queries,HEAD_V)
//! each leaf
        Tensor m$X = make_tensor(make_gmem_ptr($x + ($x_at)), make_shape(queries, keys), make_stride($m, $n)); // (queries,keys)
//! end
        Tensor sK = make_tensor(make_smem_ptr(smem_k), make_shape(_32{}, Int<HEAD>{}), make_stride(Int<PITCH>{}, _1{})); // (32,HEAD)
        Tensor sV = make_tensor(make_smem_ptr(smem_v), make_shape(_32{}, Int<HEAD_V>{}), LayoutRight{}); // (32,HEAD_V)
        Tensor sQ = make_tensor(make_smem_ptr(smem_q), make_shape(Int<QUERIES>{}, Int<HEAD>{}), LayoutRight{}); // (QUERIES,HEAD)
//! if given
        auto const at_q = [&](int r, int c) {
            float const scale = given_scales<HEAD>(planes_q, of_q)[($q_group) + r / 64 * of_q.row];
            return given_element(Q, planes_q, of_q, ($q_at) + int64_t(mQ.layout()(r, c)), scale, whole_q);
        };
        auto const at_k = [&](int r, int c) {
            float const scale = given_scales<HEAD>(planes_k, of_k)[($k_group) + r / 64 * of_k.row];
            return given_element(K, planes_k, of_k, ($k_at) + int64_t(mK.layout()(r, c)), scale, whole_k);
        };
        auto const at_v = [&](int r, int c) {
            float const scale = given_scales<HEAD_V>(planes_v, of_v)[($v_group) + r / 64 * of_v.row];
            return given_element(V, planes_v, of_v, ($v_at) + int64_t(mV.layout()(r, c)), scale, whole_v);
        };
//! else
        auto const at_q = [&](int r, int c) { return float(mQ(r, c)); };
        auto const at_k = [&](int r, int c) { return float(mK(r, c)); };
        auto const at_v = [&](int r, int c) { return float(mV(r, c)); };
//! end
        for (int i = threadIdx.x; i < QUERIES * HEAD; i += WARPS * 32)
            sQ(i / HEAD, i % HEAD) = m0 + i / HEAD < queries ? at_q(m0 + i / HEAD, i % HEAD) : 0.0f;
        CUTE_UNROLL
        for (int r = 0; r < ROWS; ++r) {
            best[r] = UNSEEN, sum[r] = 0.0f;
            CUTE_UNROLL
            for (int c = 0; c < COLUMNS; ++c)
                out[r][c] = 0.0f;
        }
//! if causal
        int const end = cute::min(keys, m0 + QUERIES); // keys that a query of the tile sees
//! else
        int const end = keys;
//! end
        for (int n0 = 0; n0 < end; n0 += 32) {
            __syncthreads(); // all are done with the tile before
            for (int i = threadIdx.x; i < 32 * FILLED; i += WARPS * 32)
                sK(i / FILLED, i % FILLED) =
                    i % FILLED < HEAD && n0 + i / FILLED < keys ? at_k(n0 + i / FILLED, i % FILLED) : 0.0f;
            for (int i = threadIdx.x; i < 32 * HEAD_V; i += WARPS * 32)
                sV(i / HEAD_V, i % HEAD_V) = n0 + i / HEAD_V < keys ? at_v(n0 + i / HEAD_V, i % HEAD_V) : 0.0f;
            __syncthreads();
            int const n = n0 + lane;
            float p[ROWS] = {};
            for (int d = 0; d < HEAD; ++d) {
                CUTE_UNROLL
                for (int r = 0; r < ROWS; ++r)
                    p[r] = fmaf(sQ(warp * ROWS + r, d), sK(lane, d), p[r]);
            }
            CUTE_UNROLL
            for (int r = 0; r < ROWS; ++r) {
                int const m = m0 + warp * ROWS + r;
//! if causal
                bool const seen = n <= m && n < keys && m < queries;
//! else
                bool const seen = n < keys && m < queries;
//! end
                float const score = seen ? ${kernel}_score2(p[r]$score_args) : UNSEEN; // in units of log 2
//! if linear
                p[r] = score;
//! else
                float const top = fmaxf(best[r], warp_max(score)), base = top > MINUS_INFINITY ? top : 0.0f;
                float const before = exp2f(best[r] - base); // what came before is worth this much now
                p[r] = exp2f(score - base);
                sum[r] = sum[r] * before + warp_sum(p[r]);
                best[r] = top;
                CUTE_UNROLL
                for (int c = 0; c < COLUMNS; ++c)
                    out[r][c] *= before;
//! end
            }
            for (int j = 0; j < cute::min(32, keys - n0); ++j) {
                CUTE_UNROLL
                for (int r = 0; r < ROWS; ++r) {
                    float const weight = __shfl_sync(~0u, p[r], j);
                    CUTE_UNROLL
                    for (int c = 0; c < COLUMNS; ++c)
                        if (HEAD_V % 32 == 0 || c * 32 + lane < HEAD_V)
                            out[r][c] = fmaf(weight, sV(j, c * 32 + lane), out[r][c]);
                }
            }
        }
        CUTE_UNROLL
        for (int r = 0; r < ROWS; ++r) {
            int const m = m0 + warp * ROWS + r;
            CUTE_UNROLL
            for (int c = 0; c < COLUMNS; ++c)
                if (m < queries && c * 32 + lane < HEAD_V)
                    mO(m, c * 32 + lane) = $type(finish_row(out[r][c], sum[r]));
        }
        __syncthreads(); // all are done with the last keys and with Q
    }
}
