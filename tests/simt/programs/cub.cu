// cub.cu - a reduction by CUB, which chooses its kernels by the code that is there, beside a kernel that this device
// refuses and nobody launches; with BUG: out_of_bounds, one element too many.
#include "check.h"
#include <cub/cub.cuh>
#include <cstring>

__device__ int calls; // so that the module is translated whole

__global__ void heap(int **out)
{
    out[threadIdx.x] = static_cast<int *>(malloc(16));
    calls++;
}

__global__ void square(const int *x, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) out[i] = x[i] * x[i]; // here
    if (i == 0) calls++;
}

int main()
{
    const int n = 1000;
    int *x, *squares, *sum, *counted, launches = 0;
    void *work = nullptr;
    size_t bytes = 0;
    cudaPitchedPtr box;
    cudaExtent all = make_cudaExtent(12, 3, 4), some = make_cudaExtent(4, 2, 4);
    char host[12 * 3 * 4], want[sizeof host];

    CHECK(cudaMallocManaged(&x, n * sizeof *x));
    CHECK(cudaMallocManaged(&squares, n * sizeof *squares));
    CHECK(cudaMallocManaged(&sum, sizeof *sum));
    for (int i = 0; i < n; i++) x[i] = i % 10;
#ifdef BUG
    square<<<4, 256>>>(x, squares, n);
#else
    square<<<4, 256>>>(x, squares, n - 1);
#endif
    CHECK(cub::DeviceReduce::Sum(work, bytes, squares, sum, n));
    CHECK(cudaMalloc(&work, bytes));
    CHECK(cub::DeviceReduce::Sum(work, bytes, squares, sum, n));
    CHECK(cudaDeviceSynchronize());
    EXPECT(*sum == n / 10 * 285);
    CHECK(cudaMemcpyFromSymbol(&launches, calls, sizeof launches));
    EXPECT(launches == 1);
    CHECK(cudaGetSymbolAddress((void **)&counted, calls));

    // a box of bytes, and a part of it
    CHECK(cudaMalloc3D(&box, all));
    CHECK(cudaMemset3D(box, 1, all));
    CHECK(cudaMemset3DAsync(box, 2, some, 0));
    memset(want, 1, sizeof want);
    for (size_t z = 0; z < 4; z++)
        for (size_t y = 0; y < 3; y++) {
            CHECK(cudaMemcpy(host + (z * 3 + y) * 12, (char *)box.ptr + (z * 3 + y) * box.pitch, 12, cudaMemcpyDeviceToHost));
            if (y < 2) memset(want + (z * 3 + y) * 12, 2, 4);
        }
    EXPECT(memcmp(host, want, sizeof host) == 0);
    std::puts("ok");
}
