// graphs.cu - a captured graph, a graph made by hand; with BUG: uninitialised, no memset node.
#include "check.h"

__global__ void increment(int *x, int n, int by)
{
    int i = threadIdx.x;

    if (i < n)
        x[i] += by; // here
}

static void captured(int *x, int n)
{
    cudaStream_t s, t;
    cudaEvent_t fork, join;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    int got[64];

    CHECK(cudaStreamCreate(&s));
    CHECK(cudaStreamCreate(&t));
    CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemsetAsync(x, 0, n * sizeof(int), s));
    increment<<<1, 64, 0, s>>>(x, n, 1);
    CHECK(cudaEventRecord(fork, s));
    CHECK(cudaStreamWaitEvent(t, fork, 0));
    increment<<<1, 64, 0, t>>>(x, n, 10);
    CHECK(cudaEventRecord(join, t));
    CHECK(cudaStreamWaitEvent(s, join, 0));
    CHECK(cudaStreamEndCapture(s, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++)
        CHECK(cudaGraphLaunch(exec, s));
    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaMemcpy(got, x, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        EXPECT(got[i] == 11);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
}

int main()
{
    int *x, *y, n = 64, by = 5, got[64];
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t clear, add, copy;
    cudaMemsetParams fill = {};
    cudaKernelNodeParams kernel = {};
    void *args[] = {&y, &n, &by};

    CHECK(cudaMalloc(&x, n * sizeof(int)));
    CHECK(cudaMalloc(&y, n * sizeof(int)));
    captured(x, n);
    CHECK(cudaGraphCreate(&graph, 0));
    kernel.func = (void *)increment;
    kernel.gridDim = dim3(1);
    kernel.blockDim = dim3(64);
    kernel.kernelParams = args;
#ifdef BUG
    CHECK(cudaGraphAddEmptyNode(&clear, graph, nullptr, 0));
    (void)fill;
#else
    fill.dst = y;
    fill.value = 1;
    fill.elementSize = 4;
    fill.width = n;
    fill.height = 1;
    CHECK(cudaGraphAddMemsetNode(&clear, graph, nullptr, 0, &fill));
#endif
    CHECK(cudaGraphAddKernelNode(&add, graph, &clear, 1, &kernel));
    CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &add, 1, got, y, n * sizeof(int),
                                   cudaMemcpyDeviceToHost));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, 0));
    CHECK(cudaDeviceSynchronize());
#ifndef BUG
    for (int i = 0; i < n; i++)
        EXPECT(got[i] == 6);
    by = 7;
    CHECK(cudaGraphExecKernelNodeSetParams(exec, add, &kernel));
    CHECK(cudaGraphLaunch(exec, 0));
    for (int i = 0; i < n; i++)
        EXPECT(got[i] == 8);
#endif
    std::puts("ok");
}
