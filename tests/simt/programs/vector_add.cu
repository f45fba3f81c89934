// vector_add.cu - with BUG: out_of_bounds, one element too many.
#include "check.h"
#include <vector>

#ifdef BUG
#define INSIDE(i, n) ((i) <= (n))
#else
#define INSIDE(i, n) ((i) < (n))
#endif

__global__ void add(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (INSIDE(i, n))
        c[i] = a[i] + b[i]; // here
}

int main()
{
    const int n = 1000;
    std::vector<float> a(n), b(n), c(n);
    float *da, *db, *dc;
    cudaDeviceProp p;

    for (int i = 0; i < n; i++) {
        a[i] = (float)i;
        b[i] = 2.0f * (float)i;
    }
    CHECK(cudaGetDeviceProperties(&p, 0));
    EXPECT(p.warpSize == 32 && p.major >= 8 && p.sharedMemPerBlockOptin > 48 * 1024);
    CHECK(cudaMalloc(&da, n * sizeof(float)));
    CHECK(cudaMalloc(&db, n * sizeof(float)));
    CHECK(cudaMalloc(&dc, n * sizeof(float)));
    CHECK(cudaMemcpy(da, a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(c.data(), dc, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        EXPECT(c[i] == 3.0f * (float)i);
    CHECK(cudaFree(da));
    CHECK(cudaFree(db));
    CHECK(cudaFree(dc));
    EXPECT(cudaMemcpy(dc, c.data(), 4, cudaMemcpyHostToDevice) != cudaSuccess); // it was freed
    EXPECT(cudaGetLastError() != cudaSuccess);
    std::puts("ok");
}
