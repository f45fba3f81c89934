// simple.cu - seven kernels that speed.sh times: from streaming to divergent.
#include <cstdint>

// A gate of three multiply-adds and an exponential, four elements at a time.
__device__ __forceinline__ float gelu(float x)
{
    float inner = 1.5957691216f * __fmaf_rn(0.044715f * x * x, x, x);
    return __fdividef(x, 1.0f + __expf(-inner));
}

extern "C" __global__ void gelu4(float4 const *__restrict__ x, float4 *__restrict__ y, int quads)
{
    int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < quads; i += step) {
        float4 v = x[i];
        y[i] = make_float4(gelu(v.x), gelu(v.y), gelu(v.z), gelu(v.w));
    }
}

__device__ __forceinline__ float warp_max(float v)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
    return v;
}

__device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}

// A block for each row: three passes over it, two reductions through shared memory.
extern "C" __global__ void softmax(float const *__restrict__ x, float *__restrict__ y, int columns)
{
    __shared__ float part[32];
    float const *in = x + (size_t)blockIdx.x * columns;
    float *out = y + (size_t)blockIdx.x * columns;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;

    float top = -INFINITY;
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        top = fmaxf(top, in[c]);
    top = warp_max(top);
    if (lane == 0)
        part[warp] = top;
    __syncthreads();
    top = warp_max(lane < warps ? part[lane] : -INFINITY);
    __syncthreads();

    float sum = 0.0f;
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        sum += __expf(in[c] - top);
    sum = warp_sum(sum);
    if (lane == 0)
        part[warp] = sum;
    __syncthreads();
    float scale = 1.0f / warp_sum(lane < warps ? part[lane] : 0.0f);
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        out[c] = __expf(in[c] - top) * scale;
}

// A warp for each row of 1024, which stays in registers.
extern "C" __global__ void softmaxW(float const *__restrict__ x, float *__restrict__ y, int rows)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows)
        return;
    float const *in = x + (size_t)row * 1024 + lane;
    float *out = y + (size_t)row * 1024 + lane;
    float v[32], top = -INFINITY, sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 32; i++) {
        v[i] = in[32 * i];
        top = fmaxf(top, v[i]);
    }
    top = warp_max(top);
#pragma unroll
    for (int i = 0; i < 32; i++) {
        v[i] = __expf(v[i] - top);
        sum += v[i];
    }
    float scale = 1.0f / warp_sum(sum);
#pragma unroll
    for (int i = 0; i < 32; i++)
        out[32 * i] = v[i] * scale;
}

// One sum per thread; lanes along a row of C, or down a column of it.
__device__ __forceinline__ void one_sum(float const *A, float const *B, float *C, int M, int N, int K,
                                        int row, int column)
{
    if (row >= M || column >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; k++)
        sum += A[row * K + k] * B[k * N + column];
    C[row * N + column] = sum;
}

extern "C" __global__ void matmul(float const *__restrict__ A, float const *__restrict__ B,
                                  float *__restrict__ C, int M, int N, int K)
{
    one_sum(A, B, C, M, N, K, blockIdx.y * blockDim.y + threadIdx.y, blockIdx.x * blockDim.x + threadIdx.x);
}

extern "C" __global__ void matmulS(float const *__restrict__ A, float const *__restrict__ B,
                                   float *__restrict__ C, int M, int N, int K)
{
    one_sum(A, B, C, M, N, K, blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y);
}

// Lanes leave a loop of arithmetic at different times.
extern "C" __global__ void mandel(int *__restrict__ turns, int width, int height, int limit)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x, py = at / width, px = at % width;
    if (py >= height)
        return;
    float cr = 3.0f * px / width - 2.0f, ci = 3.0f * py / height - 1.5f, r = 0.0f, i = 0.0f;
    int n = 0;
    for (; n < limit && r * r + i * i < 4.0f; n++) {
        float next = r * r - i * i + cr;
        i = 2.0f * r * i + ci;
        r = next;
    }
    turns[at] = n;
}

// The same with a branch in the loop: steps and peak of Collatz's sequence.
extern "C" __global__ void diverge(int const *__restrict__ in, int *__restrict__ out, int n)
{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n)
        return;
    uint32_t v = in[at], peak = v;
    int steps = 0;
    for (; v != 1; steps++) {
        if (v % 2) {
            v = 3 * v + 1;
            peak = max(peak, v);
        } else {
            v /= 2;
        }
    }
    out[at] = steps * 1000003 + (int)peak;
}
