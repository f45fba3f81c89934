// symbols.cu - constant and device variables; with BUG: out_of_bounds, past the variable.
#include "check.h"

__constant__ float weights[8];
__device__ float results[32];
__device__ int calls = 3;

#ifdef BUG
#define TAPS 40
#else
#define TAPS 8
#endif

__global__ void convolve(int taps)
{
    float sum = 0;

    for (int k = 0; k < taps; k++)
        sum += weights[k] * (float)(threadIdx.x + k); // here
    results[threadIdx.x] = sum;
    if (threadIdx.x == 0)
        calls++;
}

int main()
{
    float w[8], got[32];
    int n = 0;
    void *at;
    size_t bytes;

    for (int i = 0; i < 8; i++)
        w[i] = (float)(i + 1);
    CHECK(cudaMemcpyToSymbol(weights, w, sizeof w));
    CHECK(cudaGetSymbolAddress(&at, results));
    CHECK(cudaGetSymbolSize(&bytes, results));
    EXPECT(at != nullptr && bytes == sizeof got);
    convolve<<<1, 32>>>(TAPS);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyFromSymbol(got, results, sizeof got));
    CHECK(cudaMemcpyFromSymbol(&n, calls, sizeof n));
    EXPECT(n == 4);
#ifndef BUG
    for (int t = 0; t < 32; t++) {
        float want = 0;

        for (int k = 0; k < 8; k++)
            want += w[k] * (float)(t + k);
        EXPECT(got[t] == want);
    }
#endif
    std::puts("ok");
}
