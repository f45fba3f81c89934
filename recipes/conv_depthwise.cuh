// conv_depthwise.cuh - depthwise convolutions at the speed of memory; a part of convolution.cu.
constexpr int ROWS = 8;  // of results per thread
constexpr int AHEAD = 4; // rows in flight
constexpr int BEFORE = (PAD_W + 3) / 4, AFTER = (TAPS_W - 1 - PAD_W + 3) / 4; // vectors beside a thread's own
constexpr int WIDE = BEFORE + 1 + (AFTER > 0 ? AFTER : 0);
constexpr int LANES = $lanes; // threads along a row; the others of a block take further strips of rows

// A thread has four neighbouring results of ROWS rows, and walks down the image.
__global__ void __launch_bounds__(128)
    ${kernel}_columns($params)
{
    constexpr int ACROSS = (OUT_W + LANES * 4 - 1) / (LANES * 4), DOWN = (OUT_H + ROWS * (128 / LANES) - 1) / (ROWS * (128 / LANES));
    int const tile = blockIdx.x % (ACROSS * DOWN), plane = blockIdx.x / (ACROSS * DOWN);
    int const k = plane % C_OUT, n = plane / C_OUT, c = k / (C_OUT / C_IN);
    int const v0 = (tile % ACROSS * LANES + threadIdx.x % LANES) * 4, h0 = (tile / ACROSS * (128 / LANES) + threadIdx.x / LANES) * ROWS;
    Tensor mX = make_tensor(make_gmem_ptr(x + n * x_n + c * x_c), make_shape(Int<IN_W>{}, Int<IN_H>{}), make_stride(_1{}, x_h)); // (IN_W,IN_H)
    Tensor mW = make_tensor(make_gmem_ptr(w + k * (TAPS_H * TAPS_W)), make_shape(Int<TAPS_W>{}, Int<TAPS_H>{}));    // (TAPS_W,TAPS_H)
    Tensor mY = make_tensor(make_gmem_ptr(y), make_shape(Int<PIXELS>{}, Int<C_OUT>{}, N), make_stride(_1{}, int64_t(PIXELS), int64_t(PIXELS) * C_OUT));                                     // (PIXELS,C_OUT,N)
//! each leaf
    Tensor m$X = make_tensor(make_gmem_ptr($x), make_shape(N, Int<C_OUT>{}, Int<PIXELS>{}), make_stride($n, $k, $p)); // (N,C_OUT,PIXELS)
//! end
    if (h0 >= OUT_H || v0 - int(threadIdx.x % 32) * 4 >= OUT_W) // of whole warps
        return;
    float filter[TAPS_H][TAPS_W], sum[TAPS_H][4];
    CUTE_UNROLL
    for (int i = 0; i < TAPS_H * TAPS_W; ++i)
        filter[i / TAPS_W][i % TAPS_W] = mW(i % TAPS_W, i / TAPS_W);
    CUTE_UNROLL
    for (int i = 0; i < TAPS_H * 4; ++i)
        sum[i / 4][i % 4] = 0.0f;
    float4 ring[AHEAD][WIDE];
//! if noted
    unsigned mine = 0;
//! end
    auto const fetch = [&](int row, float4 (&to)[WIDE]) {
        int const h = h0 + row - PAD_H;
        CUTE_UNROLL
        for (int j = 0; j < WIDE; ++j) {
            int const v = v0 + (j - BEFORE) * 4;
            bool const there = unsigned(h) < unsigned(IN_H) && unsigned(v) < unsigned(IN_W);
            to[j] = there ? *reinterpret_cast<float4 const *>(&mX(v, h)) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
    };
    CUTE_UNROLL
    for (int i = 0; i < AHEAD; ++i)
        fetch(i, ring[i]);
    CUTE_UNROLL
    for (int row = 0; row < ROWS + TAPS_H - 1; ++row) {
        float in[WIDE * 4];
        CUTE_UNROLL
        for (int j = 0; j < WIDE; ++j)
            in[j * 4] = ring[row % AHEAD][j].x, in[j * 4 + 1] = ring[row % AHEAD][j].y, in[j * 4 + 2] = ring[row % AHEAD][j].z, in[j * 4 + 3] = ring[row % AHEAD][j].w;
        if (row + AHEAD < ROWS + TAPS_H - 1)
            fetch(row + AHEAD, ring[row % AHEAD]);
        CUTE_UNROLL
        for (int r = 0; r < TAPS_H; ++r) { // this row is tap r of results' row `row - r`
            if (row - r < 0 || row - r >= ROWS)
                continue;
            CUTE_UNROLL
            for (int i = 0; i < TAPS_W * 4; ++i) {
                float &to = sum[(row - r) % TAPS_H][i % 4];
                to = fmaf(in[BEFORE * 4 - PAD_W + i % 4 + i / 4], filter[r][i / 4], to);
            }
        }
        int const out = row - (TAPS_H - 1);
        if (out < 0)
            continue;
        float *done = sum[out % TAPS_H];
        if (h0 + out < OUT_H) {
            int const first = (h0 + out) * OUT_W + v0;
            alignas(16) float result[4];
            CUTE_UNROLL
            for (int i = 0; i < 4; ++i) {
                [[maybe_unused]] int const p = v0 + i < OUT_W ? first + i : (h0 + out) * OUT_W;
//! if epilogue
                float const acc = done[i];
                result[i] = ${kernel}_finish(acc$finish);
//! else
                result[i] = done[i];
//! end
//! if noted
                mine = cute::max(mine, v0 + i < OUT_W ? magnitude_of(result[i]) : 0);
//! end
            }
            if constexpr (OUT_W % 4 == 0) {
                if (v0 < OUT_W)
                    __stcs(reinterpret_cast<float4 *>(&mY(first, k, n)), *reinterpret_cast<float4 *>(result));
            } else if constexpr (OUT_W % 2 == 0) {
                // Lanes exchange results, so that each store covers whole sectors.
                CUTE_UNROLL
                for (int part = 0; part < 2; ++part) {
                    int const lane = threadIdx.x % 32, from = part * 16 + lane / 2, column = v0 - lane * 4 + part * 64 + lane * 2;
                    float const a = __shfl_sync(~0u, result[0], from), b = __shfl_sync(~0u, result[1], from);
                    float const c = __shfl_sync(~0u, result[2], from), d = __shfl_sync(~0u, result[3], from);
                    if (column < OUT_W)
                        __stcs(reinterpret_cast<float2 *>(&mY((h0 + out) * OUT_W + column, k, n)), lane % 2 ? make_float2(c, d) : make_float2(a, b));
                }
            } else {
                CUTE_UNROLL
                for (int i = 0; i < 4; ++i)
                    if (v0 + i < OUT_W)
                        mY(first + i, k, n) = result[i];
            }
        }
        CUTE_UNROLL
        for (int i = 0; i < 4; ++i)
            done[i] = 0.0f;
    }
//! if noted
    note_top(top, mine);
//! end
}
