// timing.cu - a plain CUDA-event loop, written apart from the runner: the same swish kernel, warm and cold L2.
//
//     nvcc -O3 -arch=native -o timing bench/gpu/timing.cu && ./timing
//
// Prints the medians in microseconds: {"warm_us": ..., "cold_us": ...} for (4096, 131072) and for the N given.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "swish.cuh"

static double median(std::vector<float> v)
{
    std::sort(v.begin(), v.end());
    return 1000.0 * v[v.size() / 2];
}

int main(int argc, char **argv)
{
    for (int64_t elements : {int64_t(4096) * 131072, argc > 1 ? int64_t(atoll(argv[1])) : int64_t(1) << 24}) {
        int64_t n = elements / 4, flush_bytes = 256 << 20;
        float4 *x, *y, *big;
        cudaEvent_t begin, end;
        cudaMalloc(&x, n * 16), cudaMalloc(&y, n * 16), cudaMalloc(&big, flush_bytes);
        cudaMemset(x, 0x3e, n * 16), cudaMemset(big, 0, flush_bytes);
        cudaEventCreate(&begin), cudaEventCreate(&end);
        std::vector<float> times[2];
        for (int cold = 0; cold < 2; cold++)
            for (int i = 0; i < 110; i++) {
                float ms;
                cudaCtxResetPersistingL2Cache(); // without it a read leaves lines in L2 that were read more than once (keep.cu)
                if (cold)
                    read_all<<<1024, 256>>>(big, flush_bytes / 16, (float *)y);
                else
                    swish<<<(unsigned)((n + 255) / 256), 256>>>(x, y, n);
                pause_some<<<1, 1>>>();
                cudaEventRecord(begin);
                swish<<<(unsigned)((n + 255) / 256), 256>>>(x, y, n);
                cudaEventRecord(end);
                cudaEventSynchronize(end);
                cudaEventElapsedTime(&ms, begin, end);
                if (i >= 10)
                    times[cold].push_back(ms);
            }
        printf("{\"elements\": %lld, \"warm_us\": %.2f, \"cold_us\": %.2f, \"error\": \"%s\"}\n", (long long)elements,
               median(times[0]), median(times[1]), cudaGetErrorString(cudaGetLastError()));
        cudaFree(x), cudaFree(y), cudaFree(big);
    }
}
