// small_chain.cu - what lies between two steps of a chain too small to fill the GPU: launches in a CUDA graph, launches
// that overlap (programmatic dependent launch), and one persistent kernel whose blocks wait for each other.
//
//     nvcc -std=c++17 -O3 -arch=sm_90a bench/gpu/small_chain.cu -o small_chain -lcuda      anywhere
//     ./small_chain                                                                        on the GPU: a table as Markdown
//
// Every step adds one to each number of a vector, of which a thread has four; what a block reads was written by another
// block of the step before, so that a step that begins too early gives a wrong result. Microseconds per step; the vector
// is in the L2 cache. "alone": one step, launched once, which has the time of a launch itself in it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                  \
    do {                                                                                             \
        cudaError_t rc_ = (call);                                                                    \
        if (rc_ != cudaSuccess) {                                                                    \
            fprintf(stderr, "small_chain: %s: %s\n", #call, cudaGetErrorString(rc_));                \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

constexpr int STEPS = 48, THREADS = 256, ROUNDS = 21;

__device__ void step(const float4 *from, float4 *to, int block, int blocks)
{
    int other = (block + blocks / 2 + 1) % blocks; // its part was written by another SM
    float4 x = __ldcg(from + other * THREADS + threadIdx.x);

    to[other * THREADS + threadIdx.x] = make_float4(x.x + 1, x.y + 1, x.z + 1, x.w + 1);
}

__global__ void plain(const float4 *from, float4 *to) { step(from, to, blockIdx.x, gridDim.x); }

__global__ void overlapping(const float4 *from, float4 *to)
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
    step(from, to, blockIdx.x, gridDim.x);
}

/* All blocks are on the GPU at once; the last one to arrive lets the others go on. */
__device__ void everyone(unsigned *count, unsigned want)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned seen;

        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count) : "memory");
        do
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory");
        while (seen < want);
    }
    __syncthreads();
}

__global__ void persistent(float4 *a, float4 *b, unsigned *count)
{
    for (int k = 0; k < STEPS; k++) {
        step(k % 2 ? b : a, k % 2 ? a : b, blockIdx.x, gridDim.x);
        if (k + 1 < STEPS)
            everyone(count, (k + 1) * gridDim.x);
    }
}

enum form { ALONE, PLAIN, OVERLAPPING, PERSISTENT, FORMS };

static void enqueue(form f, int blocks, float4 *a, float4 *b, unsigned *count, cudaStream_t s)
{
    cudaLaunchAttribute early = {};
    cudaLaunchConfig_t config = {};

    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = blocks;
    config.blockDim = THREADS;
    config.stream = s;
    config.attrs = &early;
    if (f == PERSISTENT) {
        CHECK(cudaMemsetAsync(count, 0, sizeof *count, s));
        persistent<<<blocks, THREADS, 0, s>>>(a, b, count);
        return;
    }
    for (int k = 0; k < (f == ALONE ? 1 : STEPS); k++) {
        config.numAttrs = f == OVERLAPPING && k > 0;
        CHECK(cudaLaunchKernelEx(&config, f == OVERLAPPING ? overlapping : plain, (const float4 *)(k % 2 ? b : a), k % 2 ? a : b));
    }
}

static double time_us(form f, int blocks, float4 *a, float4 *b, unsigned *count, bool *right)
{
    size_t bytes = sizeof(float4) * blocks * THREADS;
    std::vector<float> host(bytes / sizeof(float)), times;
    cudaGraphExec_t run;
    cudaEvent_t begin, end;
    cudaGraph_t graph;
    cudaStream_t s;
    int want = f == ALONE ? 1 : STEPS;

    CHECK(cudaStreamCreate(&s));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    enqueue(f, blocks, a, b, count, s);
    CHECK(cudaStreamEndCapture(s, &graph));
    CHECK(cudaGraphInstantiate(&run, graph, 0));
    CHECK(cudaMemset(a, 0, bytes));
    CHECK(cudaMemset(b, 0, bytes));
    CHECK(cudaGraphLaunch(run, s));
    CHECK(cudaMemcpyAsync(host.data(), want % 2 ? b : a, bytes, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    *right = std::all_of(host.begin(), host.end(), [=](float x) { return x == want; });
    for (int k = 0; k < ROUNDS; k++) {
        float ms;

        CHECK(cudaEventRecord(begin, s));
        CHECK(cudaGraphLaunch(run, s));
        CHECK(cudaEventRecord(end, s));
        CHECK(cudaStreamSynchronize(s));
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        times.push_back(ms * 1000);
    }
    std::sort(times.begin(), times.end());
    CHECK(cudaGraphExecDestroy(run));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamDestroy(s));
    return times[ROUNDS / 2] / want;
}

int main()
{
    unsigned *count;
    float4 *a, *b;

    CHECK(cudaMalloc(&a, sizeof(float4) * THREADS * 1024));
    CHECK(cudaMalloc(&b, sizeof(float4) * THREADS * 1024));
    CHECK(cudaMalloc(&count, sizeof *count));
    printf("| blocks | alone us | launches in a graph | launches that overlap | persistent |\n|---|---|---|---|---|\n");
    for (int blocks : {1, 8, 32, 64, 132, 264}) {
        printf("| %d |", blocks);
        for (int f = 0; f < FORMS; f++) {
            bool right;
            double us = time_us((form)f, blocks, a, b, count, &right);

            printf(" %.2f%s |", us, right ? "" : " WRONG");
        }
        printf("\n");
    }
    return 0;
}
