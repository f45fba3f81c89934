// scan.cu - a prefix sum in one block; with BUG: divergent_barrier, a barrier inside a branch.
#include "check.h"
#include <vector>

__global__ void scan(int *x, int n)
{
    extern __shared__ int part[];
    int t = threadIdx.x, lane = t % 32, v = t < n ? x[t] : 0;

    for (int d = 1; d < 32; d *= 2) {
        int up = __shfl_up_sync(0xffffffffu, v, d);

        if (lane >= d)
            v += up;
    }
    if (lane == 31)
        part[t / 32] = v;
    __syncthreads();
    if (t < 32) {
        int s = t < blockDim.x / 32 ? part[t] : 0;

        for (int d = 1; d < 32; d *= 2) {
            int up = __shfl_up_sync(0xffffffffu, s, d);

            if (lane >= d)
                s += up;
        }
        if (t < blockDim.x / 32)
            part[t] = s;
#ifdef BUG
        if (t < 16)
            __syncthreads(); // here
#endif
    }
#ifndef BUG
    __syncthreads();
#endif
    if (t >= 32)
        v += part[t / 32 - 1];
    if (t < n)
        x[t] = v;
}

int main()
{
    const int n = 500, threads = 512;
    std::vector<int> x(n), y(n);
    int *dx, sum = 0;

    for (int i = 0; i < n; i++)
        x[i] = i % 13;
    CHECK(cudaMalloc(&dx, n * 4));
    CHECK(cudaMemcpy(dx, x.data(), n * 4, cudaMemcpyHostToDevice));
    scan<<<1, threads, threads / 32 * sizeof(int)>>>(dx, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(y.data(), dx, n * 4, cudaMemcpyDeviceToHost));
#ifndef BUG
    for (int i = 0; i < n; i++)
        EXPECT(y[i] == (sum += x[i]));
#endif
    (void)sum;
    std::puts("ok");
}
