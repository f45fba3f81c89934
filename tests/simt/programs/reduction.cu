// reduction.cu - with BUG: race_shared, a barrier is missing.
#include "check.h"
#include <vector>

__global__ void sum(const int *x, int *out, int n)
{
    __shared__ int part[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;

    part[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half)
            part[t] += part[t + half]; // here
#ifndef BUG
        __syncthreads();
#endif
    }
    if (t == 0)
        atomicAdd(out, part[0]);
}

int main()
{
    const int n = 5000;
    std::vector<int> x(n);
    int *dx, *dout, out = 0, want = 0, blocks = 0;

    for (int i = 0; i < n; i++)
        want += x[i] = i % 17;
    CHECK(cudaMalloc(&dx, n * sizeof(int)));
    CHECK(cudaMalloc(&dout, sizeof(int)));
    CHECK(cudaMemcpy(dx, x.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(dout, 0, sizeof(int)));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sum, 256, 0));
    EXPECT(blocks >= 1);
    sum<<<(n + 255) / 256, 256>>>(dx, dout, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&out, dout, sizeof(int), cudaMemcpyDeviceToHost));
#ifndef BUG
    EXPECT(out == want);
#endif
    std::puts("ok");
}
