// One kernel per part of the device. All take (in, out, n) and 128 threads.
#include <cstdio>
#include <cuda_fp16.h>
#include <mma_shapes.h>
#define K extern "C" __global__ void

K block_reduce(const float *in, float *out, int n)
{
    __shared__ float s[4];
    float x = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) x += in[i];
    for (int k = 16; k; k >>= 1) x += __shfl_xor_sync(~0u, x, k);
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = s[0] + s[1] + s[2] + s[3];
}
K atomics(const float *in, float *out, int n)
{
    unsigned *u = (unsigned *)out;
    atomicAdd(&out[0], in[threadIdx.x]);
    atomicAdd(&u[1], 1u);
    atomicMax((int *)&u[2], (int)threadIdx.x);
    atomicMin((int *)&u[3], -(int)threadIdx.x);
    atomicXor(&u[4], 1u << (threadIdx.x % 32));
    atomicOr(&u[5], 1u << (threadIdx.x % 32));
    atomicInc(&u[6], 100u);
    __shared__ unsigned s;
    if (threadIdx.x == 0) s = 0;
    __syncthreads();
    atomicAdd(&s, 2u);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&u[7], s);
    unsigned old = u[8], seen;
    do {
        seen = old;
        old = atomicCAS(&u[8], seen, seen + 3);
    } while (old != seen);
}
// Blocks wait for each other: a grid-wide barrier by hand.
K grid_sync(const float *in, float *out, int n)
{
    unsigned *count = (unsigned *)out;
    if (threadIdx.x == 0) {
        out[1 + blockIdx.x] = in[blockIdx.x];
        __threadfence();
        atomicAdd(count, 1u);
        while (*(volatile unsigned *)count < gridDim.x) {}
        out[1 + gridDim.x + blockIdx.x] = ((volatile float *)out)[1 + (blockIdx.x + 1) % gridDim.x];
    }
}
K votes(const float *in, float *out, int n)
{
    unsigned *u = (unsigned *)out;
    int t = threadIdx.x;
    unsigned b = __ballot_sync(~0u, in[t] > 0.25f);
    u[t] = b ^ __match_any_sync(~0u, t % 3) ^ (unsigned)__reduce_add_sync(~0u, t) ^ (__all_sync(~0u, t < 1000) ? 1u : 0u) ^
           (__any_sync(~0u, in[t] > 100.f) ? 2u : 0u) ^ __activemask() ^ (unsigned)__syncthreads_count(in[t] > 0.25f);
}
K local_array(const float *in, float *out, int n)
{
    float a[16];
    for (int i = 0; i < 16; i++) a[i] = in[(threadIdx.x + i) % 128];
    float x = 0;
    for (int i = 0; i < 16; i++) x = x * 0.5f + a[(i * n + threadIdx.x) % 16];
    out[threadIdx.x] = x;
}
__constant__ float table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__device__ int counter[4] = {10, 20, 30, 40};
K constants(const float *in, float *out, int n)
{
    out[threadIdx.x] = table[(threadIdx.x + n) % 8] * in[threadIdx.x] + (float)counter[threadIdx.x % 4];
}
K prints(const float *in, float *out, int n)
{
    if (threadIdx.x == 2) printf("thread %d of %u says %.3f and %s\n", (int)threadIdx.x, blockDim.x, in[2], "hello");
    out[threadIdx.x] = 0;
}
__device__ __noinline__ float helper(float x, int k)
{
    for (int i = 0; i < k; i++) x = x * 1.5f + 1.0f;
    return x;
}
K calls(const float *in, float *out, int n)
{
    float x = helper(in[threadIdx.x], threadIdx.x % 5);
    out[threadIdx.x] = helper(x, n % 4) + powf(in[threadIdx.x] + 2.0f, 1.5f);
}
K doubles(const float *in, float *out, int n)
{
    double x = in[threadIdx.x], y = 1.0 / (x + 3.0);
    out[threadIdx.x] = (float)(sqrt(x + 1.0) * y + exp(x) + (double)(long long)(x * 1e6));
}
K halves(const float *in, float *out, int n)
{
    __half2 a = __floats2half2_rn(in[threadIdx.x], in[(threadIdx.x + 1) % 128]);
    __half2 b = __hfma2(a, a, __hmul2(a, __float2half2_rn(0.5f)));
    __half m = __hmax(__low2half(b), __high2half(b));
    out[threadIdx.x] = __half2float(m) + __low2float(__hadd2(a, b));
}
K wmmas(const float *in, float *out, int n)
{
    using namespace nvcuda::wmma;
    __shared__ __half a[256], b[256];
    for (int i = threadIdx.x; i < 256; i += 128) {
        a[i] = __float2half(in[i]);
        b[i] = __float2half(in[255 - i]);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        fragment<matrix_a, 16, 16, 16, __half, row_major> fa;
        fragment<matrix_b, 16, 16, 16, __half, col_major> fb;
        fragment<accumulator, 16, 16, 16, float> fc;
        fill_fragment(fc, 1.0f);
        load_matrix_sync(fa, a, 16);
        load_matrix_sync(fb, b, 16);
        mma_sync(fc, fa, fb, fc);
        store_matrix_sync(out, fc, 16, mem_row_major);
    }
}
K mbarriers(const float *in, float *out, int n)
{
    __shared__ unsigned long long bar;
    __shared__ float s[64];
    unsigned at = (unsigned)__cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(at) : "memory");
    __syncthreads();
    if (threadIdx.x < 64) {
        s[threadIdx.x] = in[threadIdx.x];
        asm volatile("{ .reg .b64 st; mbarrier.arrive.shared.b64 st, [%0]; }" ::"r"(at) : "memory");
        out[threadIdx.x] = 0;
    } else {
        asm volatile("{ .reg .pred p; L_wait: mbarrier.test_wait.parity.shared.b64 p, [%0], 0; @!p bra L_wait; }" ::"r"(at) : "memory");
        out[threadIdx.x] = s[127 - threadIdx.x];
    }
}
K shapes(const float *in, float *out, int n)
{
    int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    if (threadIdx.y % 2) out[t] = in[t] + threadIdx.z;
    else out[t] = in[t] * 2 + threadIdx.x;
}
