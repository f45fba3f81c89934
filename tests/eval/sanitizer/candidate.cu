// Faults with their lines, for compute-sanitizer: one kernel each, CuTe included.
#include <cute/tensor.hpp>
#include <cuda_pipeline_primitives.h>
#include <cstdio>
#include <cstring>
#include <cstdlib>
using namespace cute;

__global__ void oob_write(float const *x, float *y, int n)
{
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(n + 4)); // (n+4)
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n + 4)
        gY(i) = x[0];
}
__global__ void oob_read(float const *x, float *y, int n)
{
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(4096 * 4096)); // (4096*4096)
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = gX(i + 1024 * 1024);
}
__global__ void oob_copy(float const *x, float *y, int n)
{
    Tensor vX = make_tensor(make_gmem_ptr(x), make_shape(Int<4>{}, 1 << 20)); // (4,..)
    Tensor r = make_tensor<float>(Int<4>{});                                  // (4)
    copy(AutoVectorizingCopyWithAssumedAlignment<128>{}, vX(_, threadIdx.x + 524288), r);
    y[threadIdx.x] = r(0) + r(3);
}
__global__ void misaligned(float const *x, float *y, int n)
{
    float4 v = *(float4 const *)(x + 1 + threadIdx.x);
    y[threadIdx.x] = v.x + v.w;
}
__global__ void oob_shared(float const *x, float *y, int n)
{
    extern __shared__ float s[];
    s[threadIdx.x + n * 100] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x];
}
__global__ void race_read(float const *x, float *y, int n)
{
    __shared__ float s[128];
    Tensor sX = make_tensor(make_smem_ptr(s), make_shape(Int<128>{})); // (128)
    sX(threadIdx.x) = x[threadIdx.x];
    y[threadIdx.x] = sX(127 - threadIdx.x);
}
__global__ void race_write(float const *x, float *y, int n)
{
    __shared__ float s[64];
    s[threadIdx.x / 2] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x / 2];
}
__global__ void race_reuse(float const *x, float *y, int n)
{
    __shared__ float s[128];
    float sum = 0;
    for (int k = 0; k < 3; k++) {
        s[threadIdx.x] = x[threadIdx.x] + k;
        __syncthreads();
        sum += s[127 - threadIdx.x];
    }
    y[threadIdx.x] = sum;
}
__global__ void async_race(float const *x, float *y, int n)
{
    __shared__ alignas(16) float s[512];
    __pipeline_memcpy_async(s + 4 * threadIdx.x, x + 4 * threadIdx.x, 16);
    __pipeline_commit();
    __syncthreads();
    y[threadIdx.x] = s[511 - 4 * threadIdx.x];
}
__global__ void uninit_read(float const *x, float *y, int n)
{
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(n)); // (n)
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        gY(i) += x[i];
}
__global__ void divergent(float const *x, float *y, int n)
{
    if (threadIdx.x % 32 < 16)
        __syncthreads();
    y[threadIdx.x] = x[threadIdx.x];
}
__global__ void divergent_warp(float const *x, float *y, int n)
{
    if (threadIdx.x % 32 < 16)
        __syncwarp(0xffffffffu);
    y[threadIdx.x] = x[threadIdx.x];
}
__global__ void trap(float const *x, float *y, int n)
{
    y[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x == 7)
        __trap();
}
__global__ void null_write(float const *x, float *y, int n)
{
    if (threadIdx.x == 3)
        *(float *)8 = x[0];
}
__global__ void fine(float const *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i];
}
int main(int argc, char **argv)
{
    struct { const char *name; void (*k)(float const *, float *, int); int blocks, smem; } all[] = {
        {"oob_write", oob_write, 9, 0}, {"oob_read", oob_read, 8, 0}, {"oob_copy", oob_copy, 1, 0}, {"misaligned", misaligned, 1, 0},
        {"oob_shared", oob_shared, 1, 512}, {"race_read", race_read, 1, 0}, {"race_write", race_write, 1, 0},
        {"race_reuse", race_reuse, 1, 0}, {"async_race", async_race, 1, 0}, {"uninit_read", uninit_read, 8, 0},
        {"divergent", divergent, 1, 0}, {"divergent_warp", divergent_warp, 1, 0}, {"trap", trap, 1, 0}, {"null_write", null_write, 1, 0}, {"fine", fine, 8, 0}};
    float *x, *y;
    int n = 1024;
    cudaMalloc(&x, 4096);
    cudaMalloc(&y, 4096);
    cudaMemset(x, 0, 4096);
    for (auto &a : all)
        if (argc > 1 && !strcmp(a.name, argv[1]))
            a.k<<<a.blocks, 128, a.smem>>>(x, y, n);
    cudaError_t e = cudaDeviceSynchronize();
    printf("%s: %s\n", argv[1], cudaGetErrorString(e));
    return 0;
}
