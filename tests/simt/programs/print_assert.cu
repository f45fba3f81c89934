// print_assert.cu - printf and assert of a kernel; with BUG: failed_assertion, it fails.
#include "check.h"
#include <cassert>

#ifdef BUG
#define LIMIT 3
#else
#define LIMIT 4
#endif

__global__ void speak(const int *x)
{
    printf("thread %d has %d, %.2f, %s\n", threadIdx.x, x[threadIdx.x], 0.5, "text");
    assert(x[threadIdx.x] < LIMIT); // here
}

int main()
{
    int host[4] = {0, 1, 2, 3}, *x;

    CHECK(cudaMalloc(&x, sizeof host));
    CHECK(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
    speak<<<1, 4>>>(x);
    CHECK(cudaGetLastError());
#ifdef BUG
    EXPECT(cudaDeviceSynchronize() == cudaErrorAssert);
    EXPECT(cudaFree(x) == cudaErrorAssert); // it stays
#else
    CHECK(cudaDeviceSynchronize());
#endif
    std::puts("ok");
}
