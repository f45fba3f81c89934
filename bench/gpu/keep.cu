// keep.cu - what empties L2 of lines that a kernel asked it to keep (evict_last)?
//
//     nvcc -O3 -arch=sm_90 -o keep bench/gpu/keep.cu -lcuda && ./keep
//
// The swish kernel of timing.cu, as it is and with its loads marked evict_last, after each way to empty L2; run once or twice between two
// times that L2 is emptied. Medians in microseconds. A way is good when all four take as long.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <cuda.h>

#include "swish.cuh"

__device__ uint64_t keeping()
{
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

__device__ float4 load_keeping(float4 const *p, uint64_t policy)
{
    float4 v;
    asm volatile("ld.global.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p), "l"(policy));
    return v;
}

__global__ void swish_keeping(float4 const *x, float4 *y, int64_t n)
{
    int64_t i = int64_t(blockIdx.x) * 256 + threadIdx.x;
    uint64_t policy = keeping();
    if (i < n)
        y[i] = swish_of(load_keeping(x + i, policy));
}

__global__ void read_keeping(float4 const *p, int64_t n, float *sink)
{
    float sum = 0;
    uint64_t policy = keeping();
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += int64_t(gridDim.x) * blockDim.x) {
        float4 v = load_keeping(p + i, policy);
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum == 1234.5f)
        *sink = sum;
}

/* Lines become ordinary ones again. */
__global__ void demote(float4 const *p, int64_t n)
{
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n / 8; i += int64_t(gridDim.x) * blockDim.x)
        asm volatile("applypriority.global.L2::evict_normal [%0], 128;" : : "l"(p + 8 * i) : "memory");
}

static float4 *x, *y, *big;
static int64_t l2, n;

static void read(int64_t bytes) { read_all<<<1024, 256>>>(big, bytes / 16, (float *)y); }
static void keep(int64_t bytes) { read_keeping<<<1024, 256>>>(big, bytes / 16, (float *)y); }

static struct {
    char const *what;
    void (*empty)();
} const ways[] = {
    {"nothing (warm)", [] {}},
    {"a plain read of 4 L2s", [] { read(4 * l2); }},
    {"a plain read of 16 L2s", [] { read(16 * l2); }},
    {"reset, plain read", [] { cudaStreamSynchronize(0), cuCtxResetPersistingL2Cache(), read(4 * l2); }},
    {"memset and plain read of 4 L2s", [] { cudaMemsetAsync(big, 0, 4 * l2), read(4 * l2); }},
    {"own buffers demoted, plain read", [] { demote<<<1024, 256>>>(x, n), demote<<<1024, 256>>>(y, n), read(4 * l2); }},
    {"marked read of 2 L2s, demoted, plain read", [] { keep(2 * l2), demote<<<1024, 256>>>(big, 2 * l2 / 16), read(4 * l2); }},
    {"marked read of 4 L2s, demoted, plain read", [] { keep(4 * l2), demote<<<1024, 256>>>(big, 4 * l2 / 16), read(4 * l2); }},
    {"marked read of 4 L2s, plain read", [] { keep(4 * l2), read(4 * l2); }},
    {"marked read of 4 L2s, reset, plain read", [] { keep(4 * l2), cudaStreamSynchronize(0), cuCtxResetPersistingL2Cache(), read(4 * l2); }},
};

static double median(void (*kernel)(float4 const *, float4 *, int64_t), bool twice, void (*empty)())
{
    std::vector<float> times;
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    for (int i = 0; i < 25; i++) {
        float ms;
        if (twice)
            kernel<<<n / 256, 256>>>(x, y, n);
        empty();
        pause_some<<<1, 1>>>();
        cudaEventRecord(begin);
        kernel<<<n / 256, 256>>>(x, y, n);
        cudaEventRecord(end);
        cudaEventSynchronize(end);
        cudaEventElapsedTime(&ms, begin, end);
        times.push_back(1000 * ms);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

int main()
{
    int bytes = 0;
    cuInit(0);
    cudaFree(0);
    cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, 0);
    l2 = bytes;
    cudaMalloc(&big, 16 * l2), cudaMemset(big, 0, 16 * l2);
    printf("L2: %d bytes\n| KB read | L2 emptied by | as it is | run twice | loads marked | run twice |\n|---|---|---|---|---|---|\n", bytes);
    n = 1 << 18, cudaMalloc(&x, n * 16), cudaMalloc(&y, n * 16);
    median(swish, true, ways[2].empty); /* the clock comes up to speed */
    for (int kilobytes : {256, 1024, 4096, 16384}) {
        cudaDeviceSynchronize(), cuCtxResetPersistingL2Cache(), cudaFree(x), cudaFree(y);
        n = int64_t(kilobytes) << 6;
        cudaMalloc(&x, n * 16), cudaMalloc(&y, n * 16), cudaMemset(x, 0x3e, n * 16);
        for (auto &way : ways)
            printf("| %d | %s | %.2f | %.2f | %.2f | %.2f |\n", kilobytes, way.what, median(swish, false, way.empty), median(swish, true, way.empty),
                   median(swish_keeping, false, way.empty), median(swish_keeping, true, way.empty));
    }
    for (auto &way : ways) {
        cudaDeviceSynchronize();
        auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < 10; i++)
            way.empty();
        cudaDeviceSynchronize();
        printf("%s takes %.0f us\n", way.what, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / 10);
    }
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
}
