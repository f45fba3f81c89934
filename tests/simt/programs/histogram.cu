// histogram.cu - with BUG: race_shared, an increment is not atomic.
#include "check.h"
#include <vector>

__global__ void histogram(const unsigned char *x, unsigned *bins, int n)
{
    __shared__ unsigned own[64];

    if (threadIdx.x < 64)
        own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
#ifdef BUG
        own[x[i] & 63] += 1; // here
#else
        atomicAdd(&own[x[i] & 63], 1u);
#endif
    __syncthreads();
    if (threadIdx.x < 64)
        atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

int main()
{
    const int n = 20000;
    std::vector<unsigned char> x(n);
    std::vector<unsigned> want(64), got(64);
    unsigned char *dx;
    unsigned *dbins;

    for (int i = 0; i < n; i++)
        want[(x[i] = (unsigned char)((unsigned)i * 2654435761u >> 24)) & 63]++;
    CHECK(cudaMalloc(&dx, n));
    CHECK(cudaMalloc(&dbins, 64 * sizeof(unsigned)));
    CHECK(cudaMemcpy(dx, x.data(), n, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(dbins, 0, 64 * sizeof(unsigned)));
    histogram<<<4, 128>>>(dx, dbins, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(got.data(), dbins, 64 * sizeof(unsigned), cudaMemcpyDeviceToHost));
#ifndef BUG
    EXPECT(got == want);
#endif
    std::puts("ok");
}
