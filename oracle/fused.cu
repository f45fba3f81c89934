// fused.cu - what compare.py needs to know of an output in one pass over it, instead of some hundred by torch.
//
//     nvcc -ptx -arch=compute_80 --fmad=false -o oracle/fused.ptx oracle/fused.cu
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

static __device__ double wide(float v) { return v; }
static __device__ double wide(__half v) { return __half2float(v); }
static __device__ double wide(__nv_bfloat16 v) { return __bfloat162float(v); }

static __device__ bool is_finite(double v) { return fabs(v) <= 1.7976931348623157e308; }

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
    double square, ref_square, most, ref_most, rel, ref_rel, beyond, off, off_blocks, sum, truth_square, odd;
};

/* `size`: of the block; excess points to its first element. */
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
        s.odd += !(is_finite(off[k]) && is_finite(ref_off[k]));
        size_key[k] = key_of(t[k], inside && float(t[k]) > 0);
        ref_key[k] = key_of(ref_off[k], inside);
        ref_most = fmax(ref_most, ref_off[k]);
    }
    double scale = median(size_key), usual = median(ref_key);
    for (int d = 16; d > 0; d /= 2)
        ref_most = fmax(ref_most, __shfl_xor_sync(ALL, ref_most, d));
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
        s.square += off[k] * off[k];
        s.ref_square += ref_off[k] * ref_off[k];
        s.most = fmax(s.most, off[k]);
        s.ref_most = fmax(s.ref_most, ref_off[k]);
        s.rel = fmax(s.rel, off[k] / weight);
        s.ref_rel = fmax(s.ref_rel, ref_off[k] / weight);
        s.sum += t[k];
        s.truth_square += t[k] * t[k];
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
        one_block(got + begin, reference + begin, truth + begin, int(end - begin), rtol, rms, floor, excess + begin, s);
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
    add_up(s.odd, out + 11);
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
