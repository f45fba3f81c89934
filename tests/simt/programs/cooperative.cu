// cooperative.cu - a barrier over the whole grid; with BUG: missing_fence, the barrier is missing.
#include "check.h"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void twice(int *x, int *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        x[i] = i;
#ifdef BUG
    if (n == 0) // never
#endif
        cg::this_grid().sync();
    if (i < n)
        y[i] = x[n - 1 - i]; // here
}

int main()
{
    int n = 512, *x, *y, got[512], can = 0;
    void *args[] = {&x, &y, &n};

    CHECK(cudaDeviceGetAttribute(&can, cudaDevAttrCooperativeLaunch, 0));
    EXPECT(can == 1);
    CHECK(cudaMalloc(&x, n * 4));
    CHECK(cudaMalloc(&y, n * 4));
    CHECK(cudaLaunchCooperativeKernel((void *)twice, dim3(4), dim3(128), args, 0, nullptr));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(got, y, n * 4, cudaMemcpyDeviceToHost));
#ifndef BUG
    for (int i = 0; i < n; i++)
        EXPECT(got[i] == n - 1 - i);
#endif
    std::puts("ok");
}
