// fused.cu - what compare.py needs to know of an output in two passes over it, instead of some forty by torch.
//
//     nvcc -ptx -arch=compute_80 --fmad=false -o oracle/fused.ptx oracle/fused.cu
//
// with its .version lowered to 7.4, so that older drivers take it too. Sums and maxima are of non-negative numbers only: the bits
// of those are in the order of the numbers, so an integer maximum will do.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

enum { THREADS = 256 };

static __device__ double wide(double v) { return v; }
static __device__ double wide(float v) { return v; }
static __device__ double wide(__half v) { return __half2float(v); }
static __device__ double wide(__nv_bfloat16 v) { return __bfloat162float(v); }

static __device__ bool is_finite(double v) { return fabs(v) <= 1.7976931348623157e308; }

/* One number per block to global memory. */
static __device__ __noinline__ void add_up(double v, double *out)
{
    __shared__ double part[THREADS / 32];
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_down_sync(0xffffffffu, v, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < THREADS / 32; i++)
            v += part[i];
        atomicAdd(out, v);
    }
}

static __device__ __noinline__ void largest(double v, double *out)
{
    __shared__ double part[THREADS / 32];
    for (int d = 16; d > 0; d /= 2)
        v = fmax(v, __shfl_down_sync(0xffffffffu, v, d));
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < THREADS / 32; i++)
            v = fmax(v, part[i]);
        atomicMax((unsigned long long *)out, (unsigned long long)__double_as_longlong(v));
    }
}

/* out: sum of magnitudes, sum of squares, how many are not finite. */
extern "C" __global__ void magnitude(double const *truth, uint64_t n, double *out)
{
    double sum = 0, square = 0, odd = 0;
#pragma unroll 1
    for (uint64_t i = uint64_t(blockIdx.x) * THREADS + threadIdx.x; i < n; i += uint64_t(gridDim.x) * THREADS) {
        double t = truth[i];
        odd += !is_finite(t);
        sum += fabs(t);
        square += t * t;
    }
    add_up(sum, out);
    add_up(square, out + 1);
    add_up(odd, out + 2);
}

/* err: of each element. out: sums of squares (ours, reference's), largest distances (ours, reference's), largest relative
 * error of the reference, how many elements are not finite in any of the three. */
template <class T>
static __device__ void errors(T const *got, T const *reference, double const *truth, uint64_t n, double scale, float *err, double *out)
{
    double square = 0, ref_square = 0, most = 0, ref_most = 0, ref_rel = 0, odd = 0;
#pragma unroll 1
    for (uint64_t i = uint64_t(blockIdx.x) * THREADS + threadIdx.x; i < n; i += uint64_t(gridDim.x) * THREADS) {
        double t = truth[i], off = fabs(wide(got[i]) - t), ref_off = fabs(wide(reference[i]) - t), per_weight = 1.0 / (fabs(t) + scale);
        odd += !(is_finite(off) && is_finite(ref_off));
        square += off * off;
        ref_square += ref_off * ref_off;
        most = fmax(most, off);
        ref_most = fmax(ref_most, ref_off);
        ref_rel = fmax(ref_rel, ref_off * per_weight);
        err[i] = float(off * per_weight);
    }
    add_up(square, out);
    add_up(ref_square, out + 1);
    largest(most, out + 2);
    largest(ref_most, out + 3);
    largest(ref_rel, out + 4);
    add_up(odd, out + 5);
}

#define ERRORS(name, type)                                                                                                       \
    extern "C" __global__ void name(type const *got, type const *reference, double const *truth, uint64_t n, double scale,      \
                                    float *err, double *out)                                                                     \
    {                                                                                                                            \
        errors(got, reference, truth, n, scale, err, out);                                                                       \
    }
ERRORS(errors_f64, double)
ERRORS(errors_f32, float)
ERRORS(errors_f16, __half)
ERRORS(errors_bf16, __nv_bfloat16)

/* out: how many errors are above each of the two limits, and the largest. */
extern "C" __global__ void above(float const *err, uint64_t n, float one, float two, double *out)
{
    double first = 0, second = 0, most = 0;
#pragma unroll 1
    for (uint64_t i = uint64_t(blockIdx.x) * THREADS + threadIdx.x; i < n; i += uint64_t(gridDim.x) * THREADS) {
        first += err[i] > one;
        second += err[i] > two;
        most = fmax(most, double(err[i]));
    }
    add_up(first, out);
    add_up(second, out + 1);
    largest(most, out + 2);
}
