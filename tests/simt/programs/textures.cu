// textures.cu - textures are refused by name; with BUG: misaligned, four bytes off.
#include "check.h"

__global__ void wide(const float *x, float4 *y)
{
#ifdef BUG
    y[0] = *(const float4 *)(x + 1); // here
#else
    y[0] = *(const float4 *)(x + 4);
#endif
}

int main()
{
    cudaArray_t array = nullptr;
    cudaChannelFormatDesc d = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    float *x, host[8] = {0, 1, 2, 3, 4, 5, 6, 7}, got[4];
    float4 *y;
    int can = 1;

    EXPECT(cudaMallocArray(&array, &d, 16, 16) == cudaErrorNotSupported);
    CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
    EXPECT(can == 0);
    EXPECT(cudaSetDevice(1) == cudaErrorInvalidDevice);
    EXPECT(cudaGetLastError() != cudaSuccess);
    CHECK(cudaMalloc(&x, sizeof host));
    CHECK(cudaMalloc(&y, 16));
    CHECK(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
    wide<<<1, 1>>>(x, y);
    CHECK(cudaGetLastError());
#ifdef BUG
    EXPECT(cudaDeviceSynchronize() == cudaErrorMisalignedAddress);
    (void)got;
#else
    CHECK(cudaMemcpy(got, y, 16, cudaMemcpyDeviceToHost));
    EXPECT(got[0] == 4 && got[3] == 7);
#endif
    std::puts("ok");
}
