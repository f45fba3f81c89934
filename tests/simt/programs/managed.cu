// managed.cu - managed memory and a managed variable; with BUG: out_of_bounds.
#include "check.h"

__device__ __managed__ int total;

__global__ void squares(int *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

#ifdef BUG
    x[i] = i * i; // here
#else
    if (i < n)
        x[i] = i * i;
#endif
    if (i < n)
        atomicAdd(&total, 1);
}

int main()
{
    const int n = 300;
    int *x;

    CHECK(cudaMallocManaged(&x, n * sizeof(int)));
    for (int i = 0; i < n; i++)
        x[i] = -1;
    total = 5;
    squares<<<3, 128>>>(x, n);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++)
        EXPECT(x[i] == i * i);
    EXPECT(total == n + 5);
    cudaPointerAttributes a;
    CHECK(cudaPointerGetAttributes(&a, x));
    EXPECT(a.type == cudaMemoryTypeManaged);
    CHECK(cudaFree(x));
    std::puts("ok");
}
