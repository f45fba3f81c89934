// attention_backward_rows.cuh - gradients of attention with a warp per row; their recipes' plain form.
//! include attention_warp
// The weight of a key and the gradient of its score, but for the factor of the product.
__device__ inline void weigh(float score2, float change, float lse, float delta, float &p, float &ds)
{
    p = exp2f(score2 - lse);
    ds = p * (change - delta);
}

// A warp has a query, a lane has a key: two numbers of every row.
__global__ void __launch_bounds__(WARPS * 32)
    ${kernel}_numbers(float *lse, float *delta, int padded, $params)
{
    int const tiles = (queries + WARPS - 1) / WARPS, l = blockIdx.x / tiles;
    int const lane = threadIdx.x % 32, m = blockIdx.x % tiles * WARPS + threadIdx.x / 32;
    $places
    if (m >= queries)
        return;
//! include attention_backward_tensors
    float best = UNSEEN, sum = 0.0f, inner = 0.0f;
//! if causal
    int const end = cute::min(keys, m + 1);
//! else
    int const end = keys;
//! end
    for (int k = 0; k < end; k += 32) {
        int const n = k + lane;
        float score = UNSEEN, change = 0.0f; // in units of log 2
        if (n < end) {
            float product = 0.0f;
            for (int d = 0; d < HEAD; ++d)
                product = fmaf(float(mQ(m, d)), float(mK(n, d)), product);
            for (int d = 0; d < HEAD_V; ++d)
                change = fmaf(float(mdO(m, d)), float(mV(n, d)), change);
            score = ${kernel}_score2(product$score_args);
        }
        float const top = fmaxf(best, warp_max(score)), base = top > MINUS_INFINITY ? top : 0.0f;
        float const before = exp2f(best - base), p = exp2f(score - base); // before: what came so far is worth this much now
        sum = sum * before + warp_sum(p);
        inner = inner * before + warp_sum(p * change);
        best = top;
    }
    if (lane == 0) {
        lse[int64_t(l) * padded + m] = row_lse(best, sum);
        delta[int64_t(l) * padded + m] = finish_row(inner, sum);
    }
}

// A warp has a query, a lane has a key's score, then columns of dQ.
__global__ void __launch_bounds__(WARPS * 32)
    ${kernel}_queries(float const *lse, float const *delta, int padded, $params)
{
    constexpr int COLUMNS = (HEAD + 31) / 32;
    int const tiles = (queries + WARPS - 1) / WARPS, l = blockIdx.x / tiles;
    int const lane = threadIdx.x % 32, m = blockIdx.x % tiles * WARPS + threadIdx.x / 32;
    $places
    if (m >= queries)
        return;
//! include attention_backward_tensors
    Tensor mdQ = make_tensor(make_gmem_ptr(dQ + ($dq_at)), make_shape(queries, Int<HEAD>{}), make_stride($dq_row, $dq_col)); // (queries,HEAD)
    int64_t const at = int64_t(l) * padded + m;
    float out[COLUMNS] = {};
//! if causal
    int const end = cute::min(keys, m + 1);
//! else
    int const end = keys;
//! end
    for (int n0 = 0; n0 < end; n0 += 32) {
        int const n = n0 + lane;
        float p = 0.0f, ds = 0.0f;
        if (n < end) {
            float product = 0.0f, change = 0.0f;
            for (int d = 0; d < HEAD; ++d)
                product = fmaf(float(mQ(m, d)), float(mK(n, d)), product);
            for (int d = 0; d < HEAD_V; ++d)
                change = fmaf(float(mdO(m, d)), float(mV(n, d)), change);
            weigh(${kernel}_score2(product$score_args), change, lse[at], delta[at], p, ds);
        }
        for (int j = 0; j < cute::min(32, end - n0); ++j) {
            float const weight = __shfl_sync(~0u, ds, j);
            CUTE_UNROLL
            for (int c = 0; c < COLUMNS; ++c)
                if (c * 32 + lane < HEAD)
                    out[c] = fmaf(weight, float(mK(n0 + j, c * 32 + lane)), out[c]);
        }
    }
    CUTE_UNROLL
    for (int c = 0; c < COLUMNS; ++c)
        if (c * 32 + lane < HEAD)
            mdQ(m, c * 32 + lane) = $type(out[c] * $scale);
}

// A warp has a key, a lane has a query's score, then columns of dK and dV.
__global__ void __launch_bounds__(WARPS * 32)
    ${kernel}_keys(float const *lse, float const *delta, int padded, $params)
{
    constexpr int COLUMNS = (HEAD + 31) / 32, COLUMNS_V = (HEAD_V + 31) / 32;
    int const tiles = (keys + WARPS - 1) / WARPS, h = blockIdx.x / tiles; // h: a head of K
    int const lane = threadIdx.x % 32, n = blockIdx.x % tiles * WARPS + threadIdx.x / 32;
    float out[COLUMNS] = {}, out_v[COLUMNS_V] = {};
    if (n >= keys)
        return;
    for (int g = 0; g < $sharing; ++g) { // heads of Q that share it
        int const l = $key_l;
        $places
//! include attention_backward_tensors
//! if causal
        int const begin = n / 32 * 32;
//! else
        int const begin = 0;
//! end
        for (int m0 = begin; m0 < queries; m0 += 32) {
            int const m = m0 + lane;
            float p = 0.0f, ds = 0.0f;
//! if causal
            if (m < queries && n <= m) {
//! else
            if (m < queries) {
//! end
                float product = 0.0f, change = 0.0f;
                for (int d = 0; d < HEAD; ++d)
                    product = fmaf(float(mQ(m, d)), float(mK(n, d)), product);
                for (int d = 0; d < HEAD_V; ++d)
                    change = fmaf(float(mdO(m, d)), float(mV(n, d)), change);
                int64_t const at = int64_t(l) * padded + m;
                weigh(${kernel}_score2(product$score_args), change, lse[at], delta[at], p, ds);
            }
            for (int j = 0; j < cute::min(32, queries - m0); ++j) {
                float const weight = __shfl_sync(~0u, p, j), slope = __shfl_sync(~0u, ds, j);
                CUTE_UNROLL
                for (int c = 0; c < COLUMNS; ++c)
                    if (c * 32 + lane < HEAD)
                        out[c] = fmaf(slope, float(mQ(m0 + j, c * 32 + lane)), out[c]);
                CUTE_UNROLL
                for (int c = 0; c < COLUMNS_V; ++c)
                    if (c * 32 + lane < HEAD_V)
                        out_v[c] = fmaf(weight, float(mdO(m0 + j, c * 32 + lane)), out_v[c]);
            }
        }
    }
    [[maybe_unused]] int const g = 0, l = $key_l;
    $places
    Tensor mdK = make_tensor(make_gmem_ptr(dK + ($dk_at)), make_shape(keys, Int<HEAD>{}), make_stride($dk_row, $dk_col)); // (keys,HEAD)
    Tensor mdV = make_tensor(make_gmem_ptr(dV + ($dv_at)), make_shape(keys, Int<HEAD_V>{}), make_stride($dv_row, $dv_col)); // (keys,HEAD_V)
    CUTE_UNROLL
    for (int c = 0; c < COLUMNS; ++c)
        if (c * 32 + lane < HEAD)
            mdK(n, c * 32 + lane) = $type(out[c] * $scale);
    CUTE_UNROLL
    for (int c = 0; c < COLUMNS_V; ++c)
        if (c * 32 + lane < HEAD_V)
            mdV(n, c * 32 + lane) = $type(out_v[c]);
}
