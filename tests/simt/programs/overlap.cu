// overlap.cu - programmatic dependent launches, in a stream and in a graph; with BUG: race_global,
// the second kernel reads what the first one writes before it has waited for it.
#include "check.h"

constexpr int COUNT = 1024, THREADS = 128;

__global__ void scale(const float *in, float *out, float by)
{
    int i = int(blockIdx.x * THREADS + threadIdx.x);

    cudaTriggerProgrammaticLaunchCompletion();
    out[i] = by * in[i];
}

__global__ void add(const float *scaled, const float *bias, float *out)
{
    int i = int(blockIdx.x * THREADS + threadIdx.x);
    float b = bias[i]; // which no launch writes

#ifdef BUG
    float s = scaled[i]; // here
    cudaGridDependencySynchronize();
#else
    cudaGridDependencySynchronize();
    float s = scaled[i];
#endif
    out[i] = s + b;
}

static void work(cudaStream_t stream, const float *in, const float *bias, float *scaled, float *out)
{
    cudaLaunchAttribute early = {};
    cudaLaunchConfig_t config = {};

    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(COUNT / THREADS);
    config.blockDim = dim3(THREADS);
    config.stream = stream;
    scale<<<COUNT / THREADS, THREADS, 0, stream>>>(in, scaled, 3.0f);
    config.attrs = &early;
    config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, add, (const float *)scaled, bias, out));
}

int main()
{
    float host[COUNT], *in, *bias, *scaled, *out;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    for (int i = 0; i < COUNT; i++)
        host[i] = float(i);
    CHECK(cudaStreamCreate(&stream));
    for (float **p : {&in, &bias, &scaled, &out})
        CHECK(cudaMalloc(p, sizeof host));
    CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(bias, host, sizeof host, cudaMemcpyHostToDevice));
    work(stream, in, bias, scaled, out);
    work(stream, out, bias, scaled, out); // scale waits for all of the work before, as ever
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    work(stream, out, bias, scaled, out);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++)
        EXPECT(host[i] == float(i) * 40);
    std::puts("ok");
}
