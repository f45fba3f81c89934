// fused.cu - what the oracle does to all of a large tensor, in one pass over it: errors (some hundred by torch), fingerprints, low bits.
//
//     nvcc -ptx -std=c++17 -arch=compute_80 --fmad=false -o oracle/fused.ptx oracle/fused.cu
//
// with its .version lowered to 7.4, so that older drivers take it too. A warp has one block of the output (blocks.py) in its
// registers: medians by bits, then limits, then sums. Maxima are of non-negative numbers only: the bits of those are in the order
// of the numbers, so an integer maximum will do.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

enum { THREADS = 256, LANES = 32, MOST = 256, EACH = MOST / LANES };
#define ALL 0xffffffffu

/* As in compare.py. */
#define ELEMENT_FACTOR 16.0
#define OWN_FACTOR 8.0
#define RMS_FACTOR 8.0
#define HUGE __longlong_as_double(0x7ff0000000000000ll)

static __device__ double wide(float v) { return v; }
static __device__ double wide(__half v) { return __half2float(v); }
static __device__ double wide(__nv_bfloat16 v) { return __bfloat162float(v); }

static __device__ bool is_finite(double v) { return fabs(v) <= 1.7976931348623157e308; }

/* The mark of an unwritten element (buffers.py), and the largest number. */
static __device__ bool unwritten(float v) { return __float_as_uint(v) == 0x7fa5c0deu; }
static __device__ bool unwritten(__half v) { return __half_as_ushort(v) == 0x7da5u; }
static __device__ bool unwritten(__nv_bfloat16 v) { return __bfloat16_as_ushort(v) == 0x7fa5u; }
static __device__ double most_of(float) { return 3.4028234663852886e38; }
static __device__ double most_of(__half) { return 65504.0; }
static __device__ double most_of(__nv_bfloat16) { return 3.3895313892515355e38; }

/* One number per block of threads to global memory. */
static __device__ __noinline__ void add_up(double v, double *out)
{
    __shared__ double part[THREADS / LANES];
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_down_sync(ALL, v, d);
    __syncthreads();
    if (threadIdx.x % LANES == 0)
        part[threadIdx.x / LANES] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < THREADS / LANES; i++)
            v += part[i];
        atomicAdd(out, v);
    }
}

static __device__ __noinline__ void largest(double v, double *out)
{
    __shared__ double part[THREADS / LANES];
    for (int d = 16; d > 0; d /= 2)
        v = fmax(v, __shfl_down_sync(ALL, v, d));
    __syncthreads();
    if (threadIdx.x % LANES == 0)
        part[threadIdx.x / LANES] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < THREADS / LANES; i++)
            v = fmax(v, part[i]);
        atomicMax((unsigned long long *)out, (unsigned long long)__double_as_longlong(v));
    }
}

/* The lower median of the warp's keys; those with the top bit set do not count. 0: there are none. */
static __device__ float median(unsigned const (&key)[EACH])
{
    int count = 0;
#pragma unroll
    for (int k = 0; k < EACH; k++)
        count += key[k] < 0x80000000u;
    count = __reduce_add_sync(ALL, count);
    if (count == 0)
        return 0;
    int rank = (count - 1) / 2;
    unsigned pick = 0;
#pragma unroll 1
    for (int bit = 30; bit >= 0; bit--) {
        int below = 0;
#pragma unroll
        for (int k = 0; k < EACH; k++)
            below += key[k] >> bit == pick >> bit;
        below = __reduce_add_sync(ALL, below);
        if (rank >= below) {
            rank -= below;
            pick |= 1u << bit;
        }
    }
    return __uint_as_float(pick);
}

static __device__ unsigned key_of(double v, bool counts) { return counts ? __float_as_uint(float(v)) : ALL; }

/* What one lane has seen. */
struct seen {
    double square, ref_square, most, ref_most, rel, ref_rel, beyond, off, off_blocks, sum, truth_square;
    double misplaced, nan, inf, unwritten;
};

/* Something is not finite: the rule of compare.py's _settle_non_finite(). Gives the error: none, or infinite. */
template <class T>
static __device__ double settled(T raw, double ref, double real, seen &s)
{
    double got = wide(raw), rounded = fabs(real) > most_of(raw) ? copysign(HUGE, real) : real;
    bool got_nan = got != got, got_inf = !got_nan && !is_finite(got);
    bool right = got_nan ? ref != ref || real != real : got_inf ? got == ref || got == rounded : got == ref;
    if (!got_nan && !got_inf && is_finite(rounded)) /* it is the reference that is not finite */
        return fabs(got - real);
    if (right && !unwritten(raw))
        return 0;
    s.misplaced++;
    s.unwritten += unwritten(raw);
    s.nan += got_nan && !unwritten(raw);
    s.inf += got_inf;
    return HUGE;
}

/* `size`: of the block; excess points to its first element, or nowhere. */
template <class T>
static __device__ void one_block(T const *got, T const *reference, double const *truth, int size, double rtol, double rms, double floor,
                                 float *excess, seen &s)
{
    int lane = threadIdx.x % LANES;
    double t[EACH], off[EACH], ref_off[EACH];
    unsigned size_key[EACH], ref_key[EACH];
    double ref_most = 0;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        int i = k * LANES + lane;
        bool inside = i < size;
        t[k] = inside ? fabs(truth[i]) : 0;
        off[k] = inside ? fabs(wide(got[i]) - truth[i]) : 0;
        ref_off[k] = inside ? fabs(wide(reference[i]) - truth[i]) : 0;
        if (!is_finite(off[k]) || !is_finite(ref_off[k])) {
            off[k] = settled(got[i], wide(reference[i]), truth[i], s);
            ref_off[k] = is_finite(ref_off[k]) ? ref_off[k] : 0;
            t[k] = is_finite(t[k]) ? t[k] : 0;
        }
        size_key[k] = key_of(t[k], inside && float(t[k]) > 0 && t[k] <= most_of(got[0]));
        ref_key[k] = key_of(ref_off[k], inside);
        ref_most = fmax(ref_most, ref_off[k]);
    }
    double scale = median(size_key), usual = median(ref_key);
    for (int d = 16; d > 0; d /= 2)
        ref_most = fmax(ref_most, __shfl_xor_sync(ALL, ref_most, d));
    if (!is_finite(usual)) /* too large for a key: torch must do it */
        s.truth_square = HUGE;
    if (scale < usual)
        usual = ref_most;
    int far = 0;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        int i = k * LANES + lane;
        double weight = t[k] + (scale + floor);
        double allowed = fmax(fmax(weight * rtol, usual * ELEMENT_FACTOR), ref_off[k] * OWN_FACTOR);
        if (i >= size)
            continue;
        far += off[k] > fmax(weight * rms, usual * RMS_FACTOR);
        s.beyond += off[k] > allowed;
        double finite = off[k] < HUGE ? off[k] : 0;
        s.square += finite * finite;
        s.ref_square += ref_off[k] * ref_off[k];
        s.most = fmax(s.most, finite);
        s.ref_most = fmax(s.ref_most, ref_off[k]);
        s.rel = fmax(s.rel, finite / weight);
        s.ref_rel = fmax(s.ref_rel, ref_off[k] / weight);
        s.sum += t[k];
        s.truth_square += t[k] * t[k];
        if (excess)
            excess[i] = float(off[k] / allowed);
    }
    s.off += far;
    far = __reduce_add_sync(ALL, far);
    s.off_blocks += lane == 0 && 2 * far > size;
}

/* A row of `columns` elements is divided evenly into `segments` blocks. out: the members of struct seen, over all. */
template <class T>
static __device__ void errors(T const *got, T const *reference, double const *truth, uint64_t blocks, uint64_t columns, uint64_t segments,
                              double rtol, double rms, double floor, float *excess, double *out)
{
    seen s = {};
#pragma unroll 1
    for (uint64_t b = (uint64_t(blockIdx.x) * THREADS + threadIdx.x) / LANES; b < blocks; b += uint64_t(gridDim.x) * THREADS / LANES) {
        uint64_t row = b / segments, segment = b % segments;
        uint64_t begin = row * columns + segment * columns / segments, end = row * columns + (segment + 1) * columns / segments;
        one_block(got + begin, reference + begin, truth + begin, int(end - begin), rtol, rms, floor, excess ? excess + begin : nullptr, s);
    }
    add_up(s.square, out);
    add_up(s.ref_square, out + 1);
    largest(s.most, out + 2);
    largest(s.ref_most, out + 3);
    largest(s.rel, out + 4);
    largest(s.ref_rel, out + 5);
    add_up(s.beyond, out + 6);
    add_up(s.off, out + 7);
    add_up(s.off_blocks, out + 8);
    add_up(s.sum, out + 9);
    add_up(s.truth_square, out + 10);
    add_up(s.misplaced, out + 11);
    add_up(s.nan, out + 12);
    add_up(s.inf, out + 13);
    add_up(s.unwritten, out + 14);
}

#define ERRORS(name, type)                                                                                                      \
    extern "C" __global__ void name(type const *got, type const *reference, double const *truth, uint64_t blocks,               \
                                    uint64_t columns, uint64_t segments, double rtol, double rms, double floor, float *excess,  \
                                    double *out)                                                                                \
    {                                                                                                                           \
        errors(got, reference, truth, blocks, columns, segments, rtol, rms, floor, excess, out);                                \
    }
ERRORS(errors_f32, float)
ERRORS(errors_f16, __half)
ERRORS(errors_bf16, __nv_bfloat16)

/* ---- fingerprint.py ------------------------------------------------------------------------- */

/* Divides KEYS: one factor for a piece. */
enum { PIECE = 8192 };
#define KEYS (uint64_t(1) << 20)
#define FACTORS 4096

/* The sum of words times keys, of one thread; what is summed is what is copied: each word is read once. */
template <int EACH_TIME>
static __device__ uint64_t piece(int const *from, int *to, int count, uint64_t const *keys)
{
    uint64_t sum = 0;
    for (int i = threadIdx.x * EACH_TIME; i < count; i += THREADS * EACH_TIME) {
        int word[EACH_TIME];
        if constexpr (EACH_TIME == 4) {
            int4 all = __ldcs(reinterpret_cast<int4 const *>(from + i));
            word[0] = all.x, word[1] = all.y, word[2] = all.z, word[3] = all.w;
            if (to)
                *reinterpret_cast<int4 *>(to + i) = all;
        } else {
            word[0] = __ldcs(from + i);
            if (to)
                to[i] = word[0];
        }
#pragma unroll
        for (int k = 0; k < EACH_TIME; k++)
            sum += uint64_t(int64_t(word[k])) * keys[i + k];
    }
    return sum;
}

/* units of `words` words each; to: a copy of them, or NULL. out: a fingerprint per unit, zero at first. */
extern "C" __global__ void fingerprints(int const *from, int *to, uint64_t units, uint64_t words, uint64_t const *keys,
                                        uint64_t const *factors, unsigned long long *out)
{
    __shared__ uint64_t part[THREADS / LANES];
    uint64_t pieces = (words + PIECE - 1) / PIECE;
    bool by_four = (uint64_t(from) | uint64_t(to) | words * 4) % 16 == 0;
    for (uint64_t p = blockIdx.x; p < units * pieces; p += gridDim.x) {
        uint64_t unit = p / pieces, left = p % pieces * PIECE, at = unit * words + left;
        int count = int(words - left < PIECE ? words - left : PIECE);
        int *there = to ? to + at : nullptr;
        uint64_t const *key = keys + left % KEYS;
        uint64_t sum = by_four ? piece<4>(from + at, there, count, key) : piece<1>(from + at, there, count, key);
        for (int d = 16; d > 0; d /= 2)
            sum += __shfl_down_sync(ALL, sum, d);
        if (threadIdx.x % LANES == 0)
            part[threadIdx.x / LANES] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int i = 1; i < THREADS / LANES; i++)
                sum += part[i];
            atomicAdd(out + unit, (unsigned long long)(sum * factors[left / KEYS % FACTORS]));
        }
        __syncthreads();
    }
}

/* ---- draw.py: lean() ------------------------------------------------------------------------ */

extern "C" __global__ void lean_f32(unsigned const *from, unsigned *to, uint64_t count, uint64_t low_bits, uint64_t begin)
{
    unsigned mask = (1u << low_bits) - 1;
    for (uint64_t i = uint64_t(blockIdx.x) * THREADS + threadIdx.x; i < count; i += uint64_t(gridDim.x) * THREADS) {
        unsigned bits = from[i], low = bits & mask;
        bool moved = low != 0 && (bits & 0x7f800000u) != 0x7f800000u;
        to[i] = moved ? bits - low + ((low * 3 >> 3) + unsigned(begin)) : bits;
    }
}
