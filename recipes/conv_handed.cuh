// conv_handed.cuh - results that become planes of the convolution behind; a part of convolution.cu.
//
// Planes have a scale, which must be known before the first result is: it follows a bound (conv_bound.cuh). Results are
// written in fp32 as well, and the convolution behind computes everything from those where its planes are not good enough:
// where something does not fit or is not finite, or the bound was far too large (`planes_are_bad`, conv_planes.cuh).

// The largest of some words, for a whole warp.
__device__ inline unsigned largest_word(unsigned const *words, int count)
{
    Tensor mWord = make_tensor(make_gmem_ptr(words), make_layout(count)); // (count)
    unsigned top = 0;
    for (int i = threadIdx.x % 32; i < count; i += 32)
        top = cute::max(top, mWord(i));
    return __reduce_max_sync(~0u, top);
}

// What scales of planes follow; bounds are neither tiny nor huge, or the planes are not used.
__device__ inline int bounded_exponent(unsigned bound)
{
    return bound == 0 ? 127 : cute::min(cute::max(int(bound >> 23), 71), 183);
}
__device__ inline float scale_behind(unsigned bound) // the bound is brought to 2^14
{
    return __uint_as_float(unsigned(14 - (bounded_exponent(bound) - 127) + 127) << 23);
}

// Once in a launch, by a warp: what the convolution behind must know of its planes.
__device__ inline void tell_behind(Handed const &to, unsigned *words, unsigned bound)
{
    int const exponent = bound == 0 ? 127 : int(bound >> 23);
    Tensor mLost = make_tensor(make_gmem_ptr(words + to.lost), make_layout(to.lost_count)); // (lost_count)
    Tensor mState = make_tensor(make_gmem_ptr(words + to.state), _3{});                     // (3)
    unsigned again = exponent != bounded_exponent(bound);
    for (int i = threadIdx.x % 32; i < to.lost_count; i += 32)
        again |= mLost(i);
    again = __reduce_or_sync(~0u, again);
    if (threadIdx.x % 32 == 0) {
        if (again)
            atomicOr(&mState(1), again);
        mState(0) = unsigned(bounded_exponent(bound) + to.top - 14) << 23;
        mState(2) = unsigned(to.state - to.noted);
    }
}

// The position of a bit among those that are set, and the j-th of these positions.
__device__ inline int bits_before(unsigned used, int position)
{
    return __popc(used & ((1u << position) - 1));
}
__device__ inline int nth_bit(unsigned used, int j)
{
    for (; j > 0; --j)
        used &= used - 1;
    return __ffs(int(used)) - 1;
}

// The row of the planes where a result belongs; -1: no tap reads it.
__device__ inline int64_t row_behind(Handed const &to, int n, int p, int N)
{
    int const w = p % to.in_w, h = p / to.in_w % to.in_h, d = p / to.in_w / to.in_h;
    int const of_w = w % to.stride_w, of_h = h % to.stride_h, of_d = d % to.stride_d;
    if ((to.used_w >> of_w & to.used_h >> of_h & to.used_d >> of_d & 1) == 0)
        return -1;
    int const part = (bits_before(to.used_d, of_d) * __popc(to.used_h) + bits_before(to.used_h, of_h)) * __popc(to.used_w) + bits_before(to.used_w, of_w);
    int const row_d = to.lead_d + d / to.stride_d, row_h = to.lead_h + h / to.stride_h, row_w = to.lead_w + w / to.stride_w;
    return ((int64_t(part) * N + n) * to.walk_d + row_d) * (to.walk_h * to.walk_w) + row_h * to.walk_w + row_w;
}

// Zeros around each image, and in channels that only planes have: a share of the rows.
__device__ inline void zeros_behind(Handed const &to, uint16_t *planes, int64_t first, int64_t step, int N)
{
    int const parts_w = __popc(to.used_w), parts_h = __popc(to.used_h), walk = to.walk_d * to.walk_h * to.walk_w;
    int const rows = __popc(to.used_d) * parts_h * parts_w * N * walk, length = to.chunks * to.row;
    Tensor mRow = make_tensor(make_gmem_ptr(reinterpret_cast<uint4 *>(planes)), make_shape(length / 8, rows)); // (length/8,rows)
    Tensor mElement = make_tensor(make_gmem_ptr(planes), make_shape(length, rows));                            // (length,rows)
    for (int64_t row = first; row < rows; row += step) {
        int const part = int(row) / (N * walk), at = int(row) % walk;
        int const d = (at / (to.walk_h * to.walk_w) - to.lead_d) * to.stride_d + nth_bit(to.used_d, part / (parts_h * parts_w));
        int const h = (at / to.walk_w % to.walk_h - to.lead_h) * to.stride_h + nth_bit(to.used_h, part / parts_w % parts_h);
        int const w = (at % to.walk_w - to.lead_w) * to.stride_w + nth_bit(to.used_w, part % parts_w);
        bool const inside = d >= 0 && d < to.in_d && h >= 0 && h < to.in_h && w >= 0 && w < to.in_w;
        for (int i = 0; !inside && i < length / 8; ++i)
            mRow(i, row) = make_uint4(0, 0, 0, 0);
        for (int k = C_OUT; inside && k < to.chunks * to.channels; ++k)
            for (int low = 0; low < to.row; low += to.channels)
                mElement(k / to.channels * to.row + low + k % to.channels, row) = 0;
    }
}

// A result by itself.
__device__ inline void hand_one(Handed const &to, uint16_t *planes, int n, int p, int k, float result, float scale, int N, unsigned &bad)
{
    int64_t const row = row_behind(to, n, p, N);
    int const at = k / to.channels * to.row + k % to.channels;
    Tensor mPlanes = make_tensor(make_gmem_ptr(reinterpret_cast<half_t *>(planes)), make_layout(int64_t(1) << 40)); // (elements)
    float const v = result * scale;
    half_t const hi = half_t(v);
    bad |= !(fabsf(v) < 65504.0f); // also: not a number
    if (row < 0)
        return;
    mPlanes(row * (to.chunks * to.row) + at) = hi;
    if (to.channels < to.row) {
        bad = 1; // how far below the largest results lie is not examined here
        mPlanes(row * (to.chunks * to.row) + at + to.channels) = half_t(v - float(hi));
    }
}

// Eight neighbouring channels of a warp's 32 pixels; `row` is -1 where there is none.
__device__ inline void hand_eight(Handed const &to, uint16_t *planes, int64_t row, int k0, float const *result, float scale, unsigned &bad)
{
    struct alignas(16) Eight8 {
        half_t v[8];
    };
    Eight8 high, low;
    float largest = 0.0f, sum = 0.0f;
    CUTE_UNROLL
    for (int i = 0; i < 8; ++i) {
        float const v = k0 + i < C_OUT ? result[i] * scale : 0.0f;
        largest = fmaxf(largest, fabsf(v)); // NaN is lost here, not in the sum
        sum += fabsf(v);
        high.v[i] = half_t(v);
        low.v[i] = half_t(v - float(high.v[i]));
    }
    bad |= row >= 0 && (!(largest < 65504.0f) || !(sum < __int_as_float(0x7f800000)));
    int64_t const at = (row < 0 ? 0 : row) * (to.chunks * to.row) + k0 / to.channels * to.row + k0 % to.channels;
    Tensor mPlanes = make_tensor(make_gmem_ptr(reinterpret_cast<Eight8 *>(planes)), make_layout(int64_t(1) << 40)); // (eights)
    Tensor mElement = make_tensor(make_gmem_ptr(reinterpret_cast<half_t *>(planes)), make_layout(int64_t(1) << 40)); // (elements)
    bool const split = to.channels < to.row;
    if (split) { // most pixels so far below what the scale allows that their low parts lose bits?
        bool const some = row >= 0 && sum > 0.0f, weak = some && sum * (to.channels / 8) < 2.0f;
        int const weak_ones = __popc(__ballot_sync(~0u, weak)), others = __popc(__ballot_sync(~0u, some && !weak));
        bad |= weak_ones >= 8 && weak_ones > others;
    }
    if (row >= 0 && (C_OUT % 8 == 0 || k0 + 8 <= C_OUT)) {
        mPlanes(at / 8) = high;
        if (split)
            mPlanes((at + to.channels) / 8) = low;
    } else if (row >= 0) { // the others are zeros
        for (int i = 0; k0 + i < C_OUT; ++i) {
            mElement(at + i) = high.v[i];
            if (split)
                mElement(at + to.channels + i) = low.v[i];
        }
    }
}

// A warp has written what it has: was something not good enough?
__device__ inline void doubt_behind(Handed const &to, unsigned *words, unsigned bad)
{
    Tensor mState = make_tensor(make_gmem_ptr(words + to.state), _2{}); // (2)
    if (__any_sync(~0u, bad) && threadIdx.x % 32 == 0)
        atomicOr(&mState(1), 1u);
}
