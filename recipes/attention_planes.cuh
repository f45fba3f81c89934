// attention_planes.cuh - rows split into two fp16 parts; a part of attention_split_sm90.cu.

// x = hi + lo, two at a time.
__device__ inline void split_pair(float x, float y, unsigned &hi, unsigned &lo)
{
    __half2 const h = __floats2half2_rn(x, y);
    float2 const back = __half22float2(h);
    __half2 const l = __floats2half2_rn(x - back.x, y - back.y);
    hi = reinterpret_cast<unsigned const &>(h);
    lo = reinterpret_cast<unsigned const &>(l);
}

// Of a power of two.
__device__ inline float inverse(float x)
{
    return __uint_as_float(0x7f000000u - __float_as_uint(x));
}
//! if given

// The scales of a product's parts, from the first row that is read of them on.
template <int COLUMNS>
__device__ inline float const *given_scales(half_t const *planes, part_rows of)
{
    return reinterpret_cast<float const *>(planes + 2 * of.apart) + of.from / COLUMNS;
}
//! else

// Splits ROWS rows of one head, scaled by a power of two so that the largest lies in [2^14,2^15). Something is lost
// where that is not finite or out of range, and, with EACH, where all of a column lies more than 2^17 below it.
template <int COLUMNS, int WIDE, int ROWS, bool EACH>
__global__ void __launch_bounds__(256)
    ${kernel}_split(float const *from, void *planes, float *scales, int *lost, int rows, int64_t row, int n0, int64_t s0,
                    int n1, int64_t s1, int64_t s2)
{
    constexpr int ACROSS = WIDE / 4, DOWN = 256 / ACROSS, STEPS = (ROWS + DOWN - 1) / DOWN; // a thread has four columns
    __shared__ unsigned peaks[8], columns[WIDE];
    int const head = blockIdx.y, column = threadIdx.x % ACROSS * 4, first = threadIdx.x / ACROSS, r0 = blockIdx.x * ROWS;
    float const *x = from + head % n0 * s0 + head / n0 % n1 * s1 + head / n0 / n1 * s2;
    float4 v[STEPS];
    float4 high = make_float4(0.0f, 0.0f, 0.0f, 0.0f); // of a column, by size
    bool finite = true;

    CUTE_UNROLL
    for (int i = 0; i < STEPS; ++i) {
        int const r = first + i * DOWN;
        v[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (first < DOWN && r < ROWS && r0 + r < rows && column < COLUMNS)
            v[i] = *reinterpret_cast<float4 const *>(x + (r0 + r) * row + column);
        finite = finite && fabsf(v[i].x) + fabsf(v[i].y) + fabsf(v[i].z) + fabsf(v[i].w) < 1e38f;
        high.x = fmaxf(high.x, fabsf(v[i].x)), high.y = fmaxf(high.y, fabsf(v[i].y));
        high.z = fmaxf(high.z, fabsf(v[i].z)), high.w = fmaxf(high.w, fabsf(v[i].w));
    }
    if (EACH && threadIdx.x < WIDE)
        columns[threadIdx.x] = 0;
    unsigned const top = __reduce_max_sync(~0u, __float_as_uint(fmaxf(fmaxf(high.x, high.y), fmaxf(high.z, high.w))));
    if (threadIdx.x % 32 == 0)
        peaks[threadIdx.x / 32] = top;
    __syncthreads();
    unsigned peak = peaks[0];
    CUTE_UNROLL
    for (int i = 1; i < 8; ++i)
        peak = cute::max(peak, peaks[i]);
    // The exponent is held in a range, so that units of different blocks stay within reach of each other.
    int const e = peak == 0 ? 127 : int(peak >> 23), used = cute::min(cute::max(e, 97), 157);
    float const scale = __uint_as_float(unsigned(268 - used) << 23);
    bool bad = !finite || e != used;
    if (EACH) {
        if (first < DOWN && column < COLUMNS) {
            atomicMax(&columns[column], __float_as_uint(high.x));
            atomicMax(&columns[column + 1], __float_as_uint(high.y));
            atomicMax(&columns[column + 2], __float_as_uint(high.z));
            atomicMax(&columns[column + 3], __float_as_uint(high.w));
        }
        __syncthreads();
        if (threadIdx.x < COLUMNS && columns[threadIdx.x] != 0)
            bad = bad || int(columns[threadIdx.x] >> 23) < e - 16;
    }
    if (bad)
        *lost = 1;
    if (threadIdx.x == 0)
        scales[head * gridDim.x + blockIdx.x] = __uint_as_float(unsigned(used - 14) << 23);
    __half *to = reinterpret_cast<__half *>(planes) + (int64_t(head) * rows + r0) * WIDE + column;
    int64_t const plane = int64_t(gridDim.y) * rows * WIDE;
    CUTE_UNROLL
    for (int i = 0; i < STEPS; ++i) {
        int const r = first + i * DOWN;
        uint2 hi, lo;
        split_pair(v[i].x * scale, v[i].y * scale, hi.x, lo.x);
        split_pair(v[i].z * scale, v[i].w * scale, hi.y, lo.y);
        if (first < DOWN && r < ROWS && r0 + r < rows) {
            *reinterpret_cast<uint2 *>(to + r * WIDE) = hi;
            *reinterpret_cast<uint2 *>(to + plane + r * WIDE) = lo;
        }
    }
}
//! end
