// place.cu - why a short kernel's time differs from process to process: what of it lies elsewhere each time?
//
//     nvcc -arch=sm_90 -cubin -o place.cubin bench/gpu/place.cu && nvcc -O3 -o place bench/gpu/place.cu -lcuda
//     for i in 1 2 3 4 5 6; do ./place place.cubin; done
//
// The swish kernel of timing.cu on 1,048,576 elements, cold L2. The first line has the medians on twelve pairs of buffers, in
// microseconds. Every line after it has eight means over the twelve pairs, between which one thing was made anew (the old ones stay where
// they are): nothing, the module, the stream, the events, the buffer that is read to empty L2, a graph of the launch, the twelve pairs (4 GB
// further on), and all of it in a context of its own.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda.h>

#include "swish.cuh"

enum { PAIRS = 12, SAMPLES = 40, N = 1 << 18, TIMES = 8, FLUSH = 256 << 20 };

static void check(CUresult result, char const *what)
{
    char const *name = "";
    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorName(result, &name);
    printf("%s: %s\n", what, name);
    exit(1);
}
#define CHECK(call) check(call, #call)

struct Bench {
    char const *cubin;
    CUfunction swish, read_all, pause;
    CUstream stream;
    CUevent begin, end;
    CUdeviceptr x[PAIRS], y[PAIRS], big;
    CUgraphExec graph[PAIRS];
    bool by_graph = false;

    void module_anew()
    {
        CUmodule module;
        CHECK(cuModuleLoad(&module, cubin));
        CHECK(cuModuleGetFunction(&swish, module, "_Z5swishPK6float4PS_l"));
        CHECK(cuModuleGetFunction(&read_all, module, "_Z8read_allPK6float4lPf"));
        CHECK(cuModuleGetFunction(&pause, module, "_Z10pause_somev"));
    }
    void stream_anew() { CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)); }
    void events_anew() { CHECK(cuEventCreate(&begin, 0)), CHECK(cuEventCreate(&end, 0)); }
    void flush_anew() { CHECK(cuMemAlloc(&big, FLUSH)), CHECK(cuMemsetD8(big, 0, FLUSH)); }
    void pairs_anew()
    {
        CUdeviceptr gap;
        for (int p = 0; p < PAIRS; p++) {
            CHECK(cuMemAlloc(&x[p], N * 16)), CHECK(cuMemAlloc(&y[p], N * 16));
            CHECK(cuMemAlloc(&gap, (2 << 20) * (p + 1)));
            CHECK(cuMemsetD8(x[p], 0x3e, N * 16));
        }
        by_graph = false;
    }
    void pairs_far_away()
    {
        CUdeviceptr gap;
        CHECK(cuMemAlloc(&gap, size_t(4) << 30));
        pairs_anew();
    }
    void all_anew()
    {
        module_anew(), stream_anew(), events_anew(), flush_anew(), pairs_anew();
    }
    void context_anew()
    {
        CUcontext context;
        CHECK(cuCtxCreate(&context, nullptr, 0, 0));
        all_anew();
        mean(false);
    }
    void launch(int p)
    {
        int64_t n = N;
        void *args[] = {&x[p], &y[p], &n};
        CHECK(cuLaunchKernel(swish, N / 256, 1, 1, 256, 1, 1, 0, stream, args, nullptr));
    }
    void graph_anew()
    {
        by_graph = true;
        for (int p = 0; p < PAIRS; p++) {
            CUgraph captured;
            CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
            launch(p);
            CHECK(cuStreamEndCapture(stream, &captured));
            CHECK(cuGraphInstantiate(&graph[p], captured, 0));
        }
    }
    float sample(int p)
    {
        int64_t n = FLUSH / 16;
        void *args[] = {&big, &n, &y[p]};
        float ms;
        CHECK(cuLaunchKernel(read_all, 1024, 1, 1, 256, 1, 1, 0, stream, args, nullptr));
        CHECK(cuLaunchKernel(pause, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
        CHECK(cuEventRecord(begin, stream));
        if (by_graph)
            CHECK(cuGraphLaunch(graph[p], stream));
        else
            launch(p);
        CHECK(cuEventRecord(end, stream));
        CHECK(cuStreamSynchronize(stream));
        CHECK(cuEventElapsedTime(&ms, begin, end));
        return 1000 * ms;
    }
    double mean(bool show)
    {
        double sum = 0;
        for (int p = 0; p < PAIRS; p++) {
            std::vector<float> times;
            for (int i = 0; i < SAMPLES; i++)
                times.push_back(sample(p));
            std::sort(times.begin(), times.end());
            sum += times[SAMPLES / 2];
            if (show)
                printf("%.3f ", times[SAMPLES / 2]);
        }
        return sum / PAIRS;
    }
};

int main(int argc, char **argv)
{
    struct {
        char const *what;
        void (Bench::*anew)();
    } lines[] = {{"nothing", nullptr},          {"module", &Bench::module_anew},     {"stream", &Bench::stream_anew},
                 {"events", &Bench::events_anew}, {"flush buffer", &Bench::flush_anew}, {"graph", &Bench::graph_anew},
                 {"pairs", &Bench::pairs_far_away}, {"context", &Bench::context_anew}};
    Bench b;
    CUdevice device;
    CUcontext context;
    if (argc < 2)
        return 2;
    b.cubin = argv[1];
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    b.all_anew();
    b.mean(false);
    b.mean(true);
    printf("\n");
    for (auto &line : lines) {
        printf("%s:", line.what);
        for (int i = 0; i < TIMES; i++) {
            if (line.anew)
                (b.*line.anew)();
            b.sample(0);
            printf(" %.3f", b.mean(false));
        }
        printf("\n");
        fflush(stdout);
    }
}
