// attention_rows.cuh - attention with a warp per query; included by attention's recipes as their plain form.
//! include attention_warp
// A warp has a query. A lane has a key's score, then columns of O.
__global__ void __launch_bounds__(WARPS * 32)
    ${kernel}_rows($params)
{
    constexpr int COLUMNS = (HEAD_V + 31) / 32;
    int const tiles = (queries + WARPS - 1) / WARPS, l = blockIdx.x / tiles;
    int const lane = threadIdx.x % 32, m = blockIdx.x % tiles * WARPS + threadIdx.x / 32;
    $places
    if (m >= queries)
        return;
    Tensor mQ = make_tensor(make_gmem_ptr(Q + ($q_at)), make_shape(queries, Int<HEAD>{}), make_stride($q_row, $q_col)); // (queries,HEAD)
    Tensor mK = make_tensor(make_gmem_ptr(K + ($k_at)), make_shape(keys, Int<HEAD>{}), make_stride($k_row, $k_col)); // (keys,HEAD)
    Tensor mV = make_tensor(make_gmem_ptr(V + ($v_at)), make_shape(keys, Int<HEAD_V>{}), make_stride($v_row, $v_col)); // (keys,HEAD_V)
    Tensor mO = make_tensor(make_gmem_ptr(O + ($o_at)), make_shape(queries, Int<HEAD_V>{}), make_stride($o_row, $o_col)); // (queries,HEAD_V)
//! each leaf
    Tensor m$X = make_tensor(make_gmem_ptr($x + ($x_at)), make_shape(queries, keys), make_stride($m, $n)); // (queries,keys)
//! end
//! if paged
    Tensor mT = make_tensor(make_gmem_ptr(Table + ($table_at)), make_shape(keys / PAGE), make_stride($table_col)); // (pages of a sequence)
    auto const page_of = [&](int n) { // a place from the end counts as in PyTorch
        int64_t const page = int64_t(mT(n / PAGE));
        return page < 0 ? page + pages : page;
    };
//! end
    [[maybe_unused]] float best = UNSEEN, sum = 0.0f;
    float out[COLUMNS] = {};
//! if causal
    int const end = cute::min(keys, m + 1);
//! else
    int const end = keys;
//! end
    for (int n0 = 0; n0 < end; n0 += 32) {
        int const n = n0 + lane;
        float score = UNSEEN; // in units of log 2
        if (n < end) {
            float product = 0.0f;
//! if paged
            int64_t const shift = page_of(n) * k_page;
            for (int d = 0; d < HEAD; ++d)
                product = fmaf(float(mQ(m, d)), float(*(&mK(n % PAGE, d) + shift)), product);
//! else
            for (int d = 0; d < HEAD; ++d)
                product = fmaf(float(mQ(m, d)), float(mK(n, d)), product);
//! end
            score = ${kernel}_score2(product$score_args);
        }
//! if linear
        float const p = score;
//! else
        float const top = fmaxf(best, warp_max(score)), base = top > MINUS_INFINITY ? top : 0.0f;
        float const before = exp2f(best - base), p = exp2f(score - base); // before: what came so far is worth this much now
        sum = sum * before + warp_sum(p);
        best = top;
        CUTE_UNROLL
        for (int c = 0; c < COLUMNS; ++c)
            out[c] *= before;
//! end
        for (int j = 0; j < cute::min(32, end - n0); ++j) {
            float const weight = __shfl_sync(~0u, p, j);
//! if paged
            int64_t const shift = page_of(n0 + j) * v_page;
//! end
            CUTE_UNROLL
            for (int c = 0; c < COLUMNS; ++c)
                if (c * 32 + lane < HEAD_V)
//! if paged
                    out[c] = fmaf(weight, float(*(&mV((n0 + j) % PAGE, c * 32 + lane) + shift)), out[c]);
//! else
                    out[c] = fmaf(weight, float(mV(n0 + j, c * 32 + lane)), out[c]);
//! end
        }
    }
    CUTE_UNROLL
    for (int c = 0; c < COLUMNS; ++c)
        if (c * 32 + lane < HEAD_V)
            mO(m, c * 32 + lane) = $type(finish_row(out[c], sum));
}
