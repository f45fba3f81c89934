// product.cu - a tiled matrix product; with BUG: out_of_bounds, the edge of B is not checked.
#include "check.h"
#include <cmath>
#include <vector>

template <int T> __global__ void product(const float *a, const float *b, float *c, int n)
{
    __shared__ float as[T][T], bs[T][T];
    int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
    float sum = 0;

    for (int k = 0; k < n; k += T) {
        int ka = k + threadIdx.x, kb = k + threadIdx.y;

        as[threadIdx.y][threadIdx.x] = row < n && ka < n ? a[row * n + ka] : 0.0f;
#ifdef BUG
        bs[threadIdx.y][threadIdx.x] = b[kb * n + col]; // here
#else
        bs[threadIdx.y][threadIdx.x] = kb < n && col < n ? b[kb * n + col] : 0.0f;
#endif
        __syncthreads();
        for (int i = 0; i < T; i++)
            sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    if (row < n && col < n)
        c[row * n + col] = sum;
}

int main()
{
    const int n = 50;
    std::vector<float> a(n * n), b(n * n), c(n * n);
    float *da, *db, *dc;

    for (int i = 0; i < n * n; i++) {
        a[i] = (float)(i % 7) - 3;
        b[i] = (float)(i % 5) - 2;
    }
    CHECK(cudaMalloc(&da, n * n * 4));
    CHECK(cudaMalloc(&db, n * n * 4));
    CHECK(cudaMalloc(&dc, n * n * 4));
    CHECK(cudaMemcpy(da, a.data(), n * n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), n * n * 4, cudaMemcpyHostToDevice));
    product<16><<<dim3(4, 4), dim3(16, 16)>>>(da, db, dc, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(c.data(), dc, n * n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            float want = 0;

            for (int k = 0; k < n; k++)
                want += a[i * n + k] * b[k * n + j];
#ifndef BUG
            EXPECT(std::fabs(c[i * n + j] - want) < 1e-3f);
#endif
        }
    std::puts("ok");
}
