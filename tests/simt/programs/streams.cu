// streams.cu - two streams, events, pinned memory, pools; with BUG: out_of_bounds, use after free.
#include "check.h"

__global__ void scale(float *x, int n, float by)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        x[i] *= by; // here
}

static void CUDART_CB count(void *at)
{
    ++*(int *)at;
}

int main()
{
    const int n = 3000;
    float *host, *x[2], ms = -1;
    cudaStream_t s[2];
    cudaEvent_t begin, end;
    int called = 0;

    CHECK(cudaMallocHost(&host, 2 * n * sizeof(float)));
    for (int i = 0; i < 2 * n; i++)
        host[i] = (float)i;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    for (int k = 0; k < 2; k++) {
        CHECK(cudaStreamCreateWithFlags(&s[k], cudaStreamNonBlocking));
        CHECK(cudaMallocAsync(&x[k], n * sizeof(float), s[k]));
    }
    CHECK(cudaEventRecord(begin, s[0]));
    for (int k = 0; k < 2; k++) {
        CHECK(cudaMemcpyAsync(x[k], host + k * n, n * 4, cudaMemcpyHostToDevice, s[k]));
#ifdef BUG
        CHECK(cudaFreeAsync(x[k], s[k]));
#endif
        scale<<<(n + 127) / 128, 128, 0, s[k]>>>(x[k], n, 2.0f);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaEventRecord(end, s[1]));
    CHECK(cudaStreamWaitEvent(s[0], end, 0));
    CHECK(cudaLaunchHostFunc(s[0], count, &called));
#ifndef BUG
    for (int k = 0; k < 2; k++) {
        CHECK(cudaMemcpyAsync(host + k * n, x[k], n * 4, cudaMemcpyDeviceToHost, s[k]));
        CHECK(cudaFreeAsync(x[k], s[k]));
    }
    CHECK(cudaStreamSynchronize(s[0]));
    CHECK(cudaStreamSynchronize(s[1]));
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    EXPECT(ms >= 0 && called == 1 && cudaEventQuery(end) == cudaSuccess);
    for (int i = 0; i < 2 * n; i++)
        EXPECT(host[i] == 2.0f * (float)i);
#endif
    (void)ms;
    CHECK(cudaFreeHost(host));
    std::puts("ok");
}
