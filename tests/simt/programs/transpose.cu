// transpose.cu - with BUG: race_shared, the tile is read before it is whole.
#include "check.h"
#include <vector>

__global__ void transpose(const float *x, float *y, int rows, int cols)
{
    __shared__ float tile[32][33];
    int i = blockIdx.y * 32 + threadIdx.y, j = blockIdx.x * 32 + threadIdx.x;

    for (int k = 0; k < 32; k += 8)
        if (i + k < rows && j < cols)
            tile[threadIdx.y + k][threadIdx.x] = x[(i + k) * cols + j];
#ifndef BUG
    __syncthreads();
#endif
    i = blockIdx.x * 32 + threadIdx.y;
    j = blockIdx.y * 32 + threadIdx.x;
    for (int k = 0; k < 32; k += 8)
        if (i + k < cols && j < rows)
            y[(i + k) * rows + j] = tile[threadIdx.x][threadIdx.y + k]; // here
}

int main()
{
    const int rows = 70, cols = 45;
    std::vector<float> x(rows * cols), y(rows * cols);
    float *dx, *dy;
    size_t pitch;
    char *wide;

    for (int i = 0; i < rows * cols; i++)
        x[i] = (float)i;
    CHECK(cudaMalloc(&dx, x.size() * 4));
    CHECK(cudaMalloc(&dy, x.size() * 4));
    CHECK(cudaMemcpy(dx, x.data(), x.size() * 4, cudaMemcpyHostToDevice));
    transpose<<<dim3((cols + 31) / 32, (rows + 31) / 32), dim3(32, 8)>>>(dx, dy, rows, cols);
    CHECK(cudaGetLastError());
    // rows with a pitch there and back
    CHECK(cudaMallocPitch(&wide, &pitch, rows * 4, cols));
    CHECK(cudaMemcpy2D(wide, pitch, dy, rows * 4, rows * 4, cols, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpy2D(y.data(), rows * 4, wide, pitch, rows * 4, cols, cudaMemcpyDeviceToHost));
#ifndef BUG
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++)
            EXPECT(y[j * rows + i] == x[i * cols + j]);
#endif
    std::puts("ok");
}
