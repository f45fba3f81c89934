// place.cu - why a short kernel's time differs from process to process: where its buffers lie, or what?
//
//     nvcc -O3 -arch=sm_90 -o place bench/gpu/place.cu && for i in 1 2 3 4 5 6; do ./place; done; ./place 6
//
// The swish kernel of timing.cu on 1,048,576 elements, cold L2, on twelve pairs of buffers in turn. Prints the medians in microseconds, one
// per pair: they differ within a line by where the buffers lie, and between lines by what else a process has of its own; with N, N lines by one
// process with pauses between, which differ by what changes with time.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <unistd.h>

#include "swish.cuh"

enum { PAIRS = 12, SAMPLES = 80, N = 1 << 18 };

int main(int argc, char **argv)
{
    int64_t flush_bytes = 256 << 20;
    float4 *x[PAIRS], *y[PAIRS], *big;
    std::vector<float> times[PAIRS];
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    cudaMalloc(&big, flush_bytes), cudaMemset(big, 0, flush_bytes);
    for (int p = 0; p < PAIRS; p++) {
        void *gap;
        cudaMalloc(&x[p], N * 16), cudaMalloc(&y[p], N * 16), cudaMalloc(&gap, (2 << 20) * (p + 1));
        cudaMemset(x[p], 0x3e, N * 16);
    }
    for (int line = 0; line < (argc > 1 ? atoi(argv[1]) : 1); line++) {
        for (auto &t : times)
            t.clear();
        for (int i = 0; i < SAMPLES + 5; i++)
            for (int p = 0; p < PAIRS; p++) {
                float ms;
                read_all<<<1024, 256>>>(big, flush_bytes / 16, (float *)y[p]);
                pause_some<<<1, 1>>>();
                cudaEventRecord(begin);
                swish<<<N / 256, 256>>>(x[p], y[p], N);
                cudaEventRecord(end);
                cudaEventSynchronize(end);
                cudaEventElapsedTime(&ms, begin, end);
                if (i >= 5)
                    times[p].push_back(ms);
            }
        for (auto &t : times) {
            std::sort(t.begin(), t.end());
            printf("%.3f ", 1000.0 * t[t.size() / 2]);
        }
        printf("%s\n", cudaGetErrorString(cudaGetLastError()));
        usleep(300000);
    }
}
