// conv_planes.cuh - x and w as rows of 16-bit channels; a part of convolution.cu.
//! if narrow
using Element = $x_type;
//! else
using Element = half_t;

// state[0]: bits of x's largest magnitude; state[1]: compute everything again, in fp32. `tops` and `lost` are what the
// blocks that prepare have found, x's largest magnitudes and for each output channel whether its weights lose bits.
__device__ inline int exponent_of(unsigned largest)
{
    return largest == 0 ? 127 : int(largest >> 23);
}
// The exponent that scales follow, where the largest magnitude is neither tiny nor huge.
__device__ inline int scaled_exponent(unsigned largest)
{
    return cute::min(cute::max(exponent_of(largest), 67), 187);
}
__device__ inline float power_of_two(int e)
{
    return __uint_as_float(unsigned(e + 127) << 23);
}
__device__ inline float unscale_of_x(unsigned const *state)
{
    return power_of_two(scaled_exponent(state[0]) - 127 - TOP);
}

// The largest magnitude of a block's share of x, or of every EVERY-th 1024 elements of it, to tops[block].
__device__ inline void largest_of(float const *x, unsigned *tops, int64_t count, int block, int blocks)
{
    constexpr int AT_ONCE = 4; // loads on their way
    Tensor mX = make_tensor(make_gmem_ptr(x), make_layout(count)); // (count)
    __shared__ unsigned top_of[8];
    unsigned top = 0;
    for (int64_t b = int64_t(block) * EVERY; b * 1024 < count; b += int64_t(blocks) * AT_ONCE * EVERY) {
        float4 v[AT_ONCE];
        CUTE_UNROLL
        for (int u = 0; u < AT_ONCE; ++u) {
            int64_t const i = (b + int64_t(blocks) * u * EVERY) * 1024 + threadIdx.x * 4;
            v[u] = *reinterpret_cast<float4 const *>(&mX(i + 3 < count ? i : 0)); // the first elements at worst once more
        }
        CUTE_UNROLL
        for (int u = 0; u < AT_ONCE; ++u) {
            top = cute::max(cute::max(__float_as_uint(fabsf(v[u].x)), __float_as_uint(fabsf(v[u].y))), top);
            top = cute::max(cute::max(__float_as_uint(fabsf(v[u].z)), __float_as_uint(fabsf(v[u].w))), top);
        }
    }
    if (block == 0 && threadIdx.x < count % 4)
        top = cute::max(__float_as_uint(fabsf(mX(count - 1 - threadIdx.x))), top);
    top = __reduce_max_sync(~0u, top);
    if (threadIdx.x % 32 == 0)
        top_of[threadIdx.x / 32] = top;
    __syncthreads();
    for (int i = 0; i < 8; ++i)
        top = cute::max(top_of[i], top);
    if (threadIdx.x == 0)
        tops[block] = top;
}
//! end

// Eight elements in 16 bytes.
struct alignas(16) Eight {
    Element v[8];
};

//! if not boxes
// The j-th position modulo the stride that some tap needs, of COUNT.
template <unsigned USED, int COUNT>
__device__ inline int position_of(int j)
{
    unsigned rest = USED;
    for (; COUNT > 1 && j > 0; --j)
        rest &= rest - 1;
    return __ffs(int(rest)) - 1;
}

// A warp brings 32 pixels of a chunk of channels: read along the width, written along the channels.
__global__ void __launch_bounds__(256)
    ${kernel}_split_x($x_type const *x, uint16_t *planes, unsigned *state, unsigned const *tops, unsigned const *lost, int blocks, int N, int64_t x_n, int64_t x_c, int64_t x_d, int64_t x_h, int64_t x_w)
{
    constexpr int VECTORS = ROW / 8; // of a row
    __shared__ Eight staged[8 * 32 * VECTORS];
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32, chunk = blockIdx.y;
    // Parts of the same pixels are neighbours, so that they find in L2 what the others have read.
    int const pixels = N * WALK, rows = PARTS * pixels, part = blockIdx.x % PARTS;
    int const start = (blockIdx.x / PARTS * 8 + warp) * 32, first = part * pixels + start;
    Tensor sRow = make_tensor(make_smem_ptr(staged + warp * 32 * VECTORS), Layout<Shape<Int<VECTORS>, _32>>{}); // (VECTORS,32)
    Tensor mRow = make_tensor(make_gmem_ptr(reinterpret_cast<Eight *>(planes)), make_shape(Int<VECTORS>{}, Int<CHUNKS_X>{}, rows)); // (VECTORS,CHUNKS_X,rows)
//! if overlap
    cutegen_wait_for_earlier();
    cutegen_let_next_begin();
//! end
//! if not narrow
    __shared__ unsigned top_of[8];
    unsigned largest_x = 0;
    for (int i = threadIdx.x; i < blocks; i += 256)
        largest_x = cute::max(largest_x, tops[i]);
//! else
    if (start >= pixels)
        return;
//! end
    int const pixel = start + lane, n = pixel / WALK, d = pixel / (WALK_H * WALK_W) % WALK_D;
    int const h = pixel / WALK_W % WALK_H, v = pixel % WALK_W;
//! if transposed
    int const at_d = d - LEAD_D, at_h = h - LEAD_H, at_w = v - LEAD_W;
//! elif expand
    int const at_d = (d - LEAD_D) * STRIDE_D + position_of<USED_D, PARTS_D>(part / PARTS_H);
    int const at_h = (h - LEAD_H) * STRIDE_H + position_of<USED_H, PARTS_H>(part % PARTS_H);
    int const at_w = v * STRIDE_W - PAD_W; // of the first tap
//! else
    int const at_d = (d - LEAD_D) * STRIDE_D + position_of<USED_D, PARTS_D>(part / (PARTS_H * PARTS_W));
    int const at_h = (h - LEAD_H) * STRIDE_H + position_of<USED_H, PARTS_H>(part / PARTS_W % PARTS_H);
    int const at_w = (v - LEAD_W) * STRIDE_W + position_of<USED_W, PARTS_W>(part % PARTS_W);
//! end
    bool const there = pixel < pixels && at_d >= 0 && at_d < IN_D && at_h >= 0 && at_h < IN_H;
    Tensor mX = make_tensor(make_gmem_ptr(x + (there ? n * x_n + at_d * x_d + at_h * x_h : 0)), make_shape(Int<IN_W>{}, Int<C_IN>{}), make_stride(x_w, x_c)); // (IN_W,C_IN)
    // All loads begin before the first is waited for: none depends on a condition, and what is not wanted becomes zero.
    $x_type value[CHANNELS];
    CUTE_UNROLL
    for (int i = 0; i < CHANNELS; ++i) {
//! if expand
        int const term = chunk * CHANNELS + i, column = at_w + term / C_IN * STEP_W;
        bool const wanted = there && term < TERMS && column >= 0 && column < IN_W;
        $x_type const v = mX(wanted ? column : 0, term % C_IN);
//! else
        int const c = chunk * CHANNELS + i;
        bool const wanted = there && at_w >= 0 && at_w < IN_W && (C_IN % CHANNELS == 0 || c < C_IN);
        $x_type const v = mX(at_w >= 0 && at_w < IN_W ? at_w : 0, C_IN % CHANNELS == 0 || c < C_IN ? c : 0);
//! end
        value[i] = wanted ? v : $x_type(0.0f);
    }
    alignas(16) Element split[ROW];
//! if narrow
    CUTE_UNROLL
    for (int i = 0; i < CHANNELS; ++i)
        split[i] = value[i];
//! else
    largest_x = __reduce_max_sync(~0u, largest_x);
    if (lane == 0)
        top_of[warp] = largest_x;
    __syncthreads();
    for (int i = 0; i < 8; ++i)
        largest_x = cute::max(top_of[i], largest_x);
    float const scale = power_of_two(TOP - (scaled_exponent(largest_x) - 127));
    float largest = 0.0f, sum = 0.0f;
    CUTE_UNROLL
    for (int i = 0; i < CHANNELS; ++i) {
        float const v = value[i] * scale;
        largest = fmaxf(largest, fabsf(v)); // NaN is lost here, not in the sum
        sum += fabsf(v);
        split[i] = half_t(v);
        if constexpr (PRODUCTS == 3)
            split[CHANNELS + i] = half_t(v - float(split[i]));
    }
    // Too large for fp16, or not a number; or most pixels so far below the largest that their low parts lose bits.
    bool const weak = sum > 0.0f && sum < power_of_two(TOP - 13);
    int const weak_ones = __popc(__ballot_sync(~0u, weak)), others = __popc(__ballot_sync(~0u, sum > 0.0f && !weak));
    bool const bad = !(largest < 65504.0f) || !(sum < __int_as_float(0x7f800000)) || (PRODUCTS == 3 && weak_ones >= 8 && weak_ones > others);
    if (__any_sync(~0u, bad) && lane == 0)
        atomicOr(&state[1], 1u);
    if (blockIdx.x == 0 && chunk == 0) {
        unsigned again = exponent_of(largest_x) != scaled_exponent(largest_x);
        for (int i = threadIdx.x; i < ROWS; i += 256)
            again |= lost[i];
        if (again)
            atomicOr(&state[1], 1u);
        if (threadIdx.x == 0)
            state[0] = largest_x;
    }
//! end
    // A quarter-warp's 16-byte accesses must meet different banks: vectors are put in an order that differs by row.
    CUTE_UNROLL
    for (int i = 0; i < VECTORS; ++i)
        sRow(i ^ (VECTORS == 8 ? lane % 8 : lane / 2 % 4), lane) = reinterpret_cast<Eight *>(split)[i];
    __syncwarp();
    CUTE_UNROLL
    for (int i = 0; i < VECTORS; ++i) {
        int const at = i * 32 + lane, of = at / VECTORS, u = at % VECTORS;
        if (start + of < pixels)
            mRow(u, chunk, first + of) = sRow(u ^ (VECTORS == 8 ? of % 8 : of / 2 % 4), of);
    }
}

//! end
//! if not boxes or not w_there
//! if not narrow
constexpr int KEPT = C_EACH * TAPS_D * TAPS_H * TAPS_W <= 8192 ? C_EACH * TAPS_D * TAPS_H * TAPS_W : 0; // weights of a line that stay in shared memory
//! end

// A line of the product's weights, a block's work: (ROW,STEPS,ROWS), a step for each tap and chunk of channels.
// `kept` is KEPT elements of shared memory.
__device__ inline void split_weights($w_type const *w, uint16_t *planes, float *unscale, unsigned *lost, [[maybe_unused]] float *kept, int line)
{
    constexpr int TAPS = TAPS_D * TAPS_H * TAPS_W, EACH = C_EACH * TAPS; // of an output channel
    int const k = line / EACH_K, group = k / (C_OUT / GROUPS);
//! if transposed and w_last
    Tensor mW = make_tensor(make_gmem_ptr(w + int64_t(group) * C_EACH * (C_OUT / GROUPS) * TAPS + k % (C_OUT / GROUPS)), Layout<Shape<Int<TAPS>, Int<C_EACH>>, Stride<Int<C_OUT / GROUPS>, Int<(C_OUT / GROUPS) * TAPS>>>{}); // (TAPS,C_EACH)
//! elif w_last
    Tensor mW = make_tensor(make_gmem_ptr(w + int64_t(k) * EACH), Layout<Shape<Int<TAPS>, Int<C_EACH>>, Stride<Int<C_EACH>, _1>>{}); // (TAPS,C_EACH)
//! elif transposed
    Tensor mW = make_tensor(make_gmem_ptr(w + (int64_t(group) * C_EACH * (C_OUT / GROUPS) + k % (C_OUT / GROUPS)) * TAPS), Layout<Shape<Int<TAPS>, Int<C_EACH>>, Stride<_1, Int<(C_OUT / GROUPS) * TAPS>>>{}); // (TAPS,C_EACH)
//! else
    Tensor mW = make_tensor(make_gmem_ptr(w + int64_t(k) * EACH), Layout<Shape<Int<TAPS>, Int<C_EACH>>>{}); // (TAPS,C_EACH)
//! end
    Tensor mRow = make_tensor(make_gmem_ptr(reinterpret_cast<Element *>(planes)), make_shape(Int<ROW>{}, Int<STEPS>{}, Int<ROWS>{})); // (ROW,STEPS,ROWS)
//! if not narrow
    __shared__ unsigned tops[8], weak_ones;
    unsigned top = 0;
    for (int i = threadIdx.x; i < EACH; i += 256) {
        float const v = mW(i % TAPS, i / TAPS);
        top = cute::max(__float_as_uint(fabsf(v)), top);
        if constexpr (KEPT > 0)
            kept[i] = v; // in the order of w
    }
    top = __reduce_max_sync(~0u, top);
    if (threadIdx.x % 32 == 0)
        tops[threadIdx.x / 32] = top;
    if (threadIdx.x == 0)
        weak_ones = 0;
    __syncthreads();
    for (int i = 0; i < 8; ++i)
        top = cute::max(tops[i], top);
    float const scale = power_of_two(14 - (scaled_exponent(top) - 127));
    if (threadIdx.x == 0)
        unscale[line] = power_of_two(scaled_exponent(top) - 127 - 14);
    unsigned weak = 0; // so far below the largest that the low part loses bits
//! end
    for (int i = threadIdx.x; i < STEPS * CHANNELS; i += 256) {
        int const step = i / CHANNELS, j = i % CHANNELS, chunk = step % CHUNKS, tap = step / CHUNKS;
//! if expand
        int const term = chunk * CHANNELS + j, c = term % C_IN, at = tap * TAPS_W + term / C_IN;
        bool const there = term < TERMS;
//! else
//! if interleaved
        // The tap by which this phase reads the pixel, if there is one.
        int const phase = line % EACH_K, reach = phase + PAD_W - STRIDE_W * (LOW_W + tap % WALK_TAPS_W), s = reach / STEP_W;
        bool const some = phase < STRIDE_W && reach >= 0 && reach % STEP_W == 0 && s < TAPS_W;
        int const at = tap / WALK_TAPS_W * TAPS_W + (some ? s : 0);
//! else
        constexpr bool some = true;
        int const at = tap;
//! end
//! if grouped
        int const c = chunk * CHANNELS + j;
        bool const there = some;
//! else
        int const c = chunk * CHANNELS + j - group * C_EACH; // those of other groups count as zero
        bool const there = some && c >= 0 && c < C_EACH;
//! end
//! end
//! if narrow
        mRow(j, step, line) = there ? mW(at, c) : Element(0.0f);
//! else
        float v = 0.0f;
        if constexpr (KEPT > 0)
            v = there ? kept[c * TAPS + at] * scale : 0.0f;
        else
            v = there ? mW(at, c) * scale : 0.0f;
        half_t const hi = half_t(v);
        weak += v != 0.0f && fabsf(v) < power_of_two(0);
        mRow(j, step, line) = hi;
        if constexpr (PRODUCTS == 3)
            mRow(CHANNELS + j, step, line) = half_t(v - float(hi));
//! end
    }
//! if not narrow
    atomicAdd(&weak_ones, weak);
    __syncthreads();
    if (threadIdx.x == 0)
        lost[line] = exponent_of(top) != scaled_exponent(top) || (PRODUCTS == 3 && weak_ones * 4 > EACH);
//! end
}

//! if joined
// The same for a launch that prepares the weights of several convolutions: WEIGHTS_BYTES for each.
__device__ inline void join_weights($w_type const *w, unsigned char *memory, float *kept, int line)
{
    float *unscale = reinterpret_cast<float *>(memory + int64_t(ROWS) * STEPS * ROW * 2);
    split_weights(w, reinterpret_cast<uint16_t *>(memory), unscale, reinterpret_cast<unsigned *>(unscale + ROWS), kept, line);
}

//! if not narrow
// What comes before the planes of x, where no launch before has found its largest magnitude.
__global__ void __launch_bounds__(256)
    ${kernel}_largest(float const *x, unsigned *tops, int64_t count, int blocks)
{
//! if overlap
    cutegen_wait_for_earlier();
    cutegen_let_next_begin();
//! end
    largest_of(x, tops, count, blockIdx.x, blocks);
}
//! end
//! else
// What comes before the planes of x: blocks for each output channel's weights, the others for x's largest magnitude.
__global__ void __launch_bounds__(256)
    ${kernel}_prepare($x_type const *x, $w_type const *w, uint16_t *planes, float *unscale, unsigned *state, int64_t count, int blocks)
{
//! if overlap
    cutegen_let_next_begin();
//! end
//! if narrow
    split_weights(w, planes, unscale, state, nullptr, blockIdx.x);
//! else
    __shared__ float kept[KEPT > 0 ? KEPT : 1];
    if (blockIdx.x >= blocks) {
        split_weights(w, planes, unscale, state + 4 + blocks, kept, blockIdx.x - blocks);
    } else {
        largest_of(x, state + 4, count, blockIdx.x, blocks);
        if (blockIdx.x == 0 && threadIdx.x == 0)
            state[1] = 0;
    }
//! end
}
//! end
//! end
