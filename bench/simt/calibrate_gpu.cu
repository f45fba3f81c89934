// Times every case of calibrate_cases.def and prints a JSON object per line.
//   nvcc -std=c++17 -O3 -arch=sm_90 -cubin -o calibrate.cubin bench/simt/calibrate_kernels.cu
//   nvcc -std=c++17 -o calibrate_gpu bench/simt/calibrate_gpu.cu -lcuda
//   ./calibrate_gpu calibrate.cubin        times, cold and warm (median of 9)
//   ./calibrate_gpu calibrate.cubin once   every kernel once, for a profiler
#include <algorithm>
#include <cstdio>
#include <cstdint>
#include <cstring>
#include <cuda.h>
#include <vector>

struct Case { const char *task, *kernel, *set; unsigned gx, gy, bx, by, smem; long fa, fb, fc; int m, n, k; };
static const Case cases[] = {
#define CASE(task, kernel, set, ...) {#task, #kernel, #set, __VA_ARGS__},
#include "calibrate_cases.def"
};

static CUmodule mod;
static CUdeviceptr buf[3], big;

static CUresult launch(const Case &x)
{
    CUfunction f;
    CUresult r = cuModuleGetFunction(&f, mod, x.kernel);
    int m = x.m, n = x.n, k = x.k;
    void *args[] = {&buf[0], &buf[1], &buf[2], &m, &n, &k};
    if (!r && x.smem > 48 << 10) cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)x.smem);
    return r ? r : cuLaunchKernel(f, x.gx, x.gy, 1, x.bx, x.by, 1, x.smem, 0, args, nullptr);
}

static void flush()
{
    CUfunction f;
    int n = 64 << 20, z = 0;
    void *args[] = {&big, &big, &buf[2], &z, &n, &z};
    cuModuleGetFunction(&f, mod, "flush");
    cuLaunchKernel(f, 1056, 1, 1, 256, 1, 1, 0, 0, args, nullptr);
}

static double median(const Case &x, bool cold, int times)
{
    std::vector<float> us;
    CUevent a, b;
    cuEventCreate(&a, 0), cuEventCreate(&b, 0);
    for (int i = 0; i < times; i++) {
        float ms = 0;
        if (cold) flush();
        cuEventRecord(a, 0);
        launch(x);
        cuEventRecord(b, 0);
        if (cuEventSynchronize(b)) return -1;
        cuEventElapsedTime(&ms, a, b);
        us.push_back(ms * 1000);
        if (ms > 20 && i > 1) break;
    }
    std::sort(us.begin(), us.end());
    return us[us.size() / 2];
}

int main(int argc, char **argv)
{
    CUdevice dev;
    CUcontext ctx;
    bool once = argc > 2;
    cuInit(0), cuDeviceGet(&dev, 0), cuDevicePrimaryCtxRetain(&ctx, dev), cuCtxSetCurrent(ctx);
    if (cuModuleLoad(&mod, argv[1])) { printf("cannot load\n"); return 1; }
    cuMemAlloc(&big, 256u << 20), cuMemsetD8(big, 0, 256u << 20);
    std::vector<float> host(64 << 20);
    uint32_t s = 1;
    for (float &v : host) { s = s * 1664525 + 1013904223; v = (float)(s >> 8) / 16777216.0f - 0.5f; }
    for (CUdeviceptr &p : buf) cuMemAlloc(&p, 256u << 20), cuMemcpyHtoD(p, host.data(), 256u << 20);
    for (const Case &x : cases) {
        CUfunction f;
        int regs = 0, shared = 0, local = 0;
        cuModuleGetFunction(&f, mod, x.kernel);
        cuFuncGetAttribute(&regs, CU_FUNC_ATTRIBUTE_NUM_REGS, f);
        cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f);
        cuFuncGetAttribute(&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, f);
        if (!strncmp(x.kernel, "hgemm", 5)) cuMemsetD16(buf[0], 0x2e66, 4 << 20), cuMemsetD16(buf[1], 0x2e66, 4 << 20);
        CUresult r = launch(x);
        if (!r) r = cuCtxSynchronize();
        if (r) { printf("{\"kernel\": \"%s\", \"error\": %d}\n", x.kernel, (int)r); return 1; }
        if (once) continue;
        double cold = median(x, true, 9), warm = median(x, false, 9);
        printf("{\"task\": \"%s\", \"kernel\": \"%s\", \"set\": \"%s\", \"grid\": [%u, %u], \"block\": [%u, %u], \"cold_us\": %.2f, \"warm_us\": %.2f, "
               "\"registers\": %d, \"static_shared\": %d, \"local\": %d}\n", x.task, x.kernel, x.set, x.gx, x.gy, x.bx, x.by, cold, warm, regs, shared, local);
        fflush(stdout);
    }
    return 0;
}
