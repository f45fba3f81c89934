// Runs the Hopper cases of tests/simt/hopper on a GPU and prints a row per case:
//   HASH("name", 0x...)
//   nvcc -std=c++17 -arch=sm_90a -cubin -o kernels.cubin tests/simt/hopper/kernels.cu
//   nvcc -std=c++17 -o hopper_gpu bench/simt/hopper_gpu.cu -lcuda && ./hopper_gpu kernels.cubin
// With a second argument, results also go to that folder, one file per case.
#include "../../tests/simt/hopper/cases.h"
#include <cstdio>
#include <cuda.h>

static const char *text(CUresult r)
{
    const char *s = "?";
    cuGetErrorString(r, &s);
    return s;
}

static CUresult encode(const struct hopper_map &m, CUdeviceptr at, CUtensorMap *out)
{
    CUtensorMapDataType type = !strcmp(m.type, "u8")    ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                               : !strcmp(m.type, "f16") ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                               : !strcmp(m.type, "bf16") ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                               : !strcmp(m.type, "f64") ? CU_TENSOR_MAP_DATA_TYPE_FLOAT64
                               : !strcmp(m.type, "i32") ? CU_TENSOR_MAP_DATA_TYPE_INT32
                               : !strcmp(m.type, "u32") ? CU_TENSOR_MAP_DATA_TYPE_UINT32
                                                        : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    cuuint64_t strides[5], at_bytes = hopper_type_bytes(m.type);
    for (int i = 0; i < m.rank - 1; i++)
        strides[i] = at_bytes *= m.dims[i];
    auto fill = m.nan ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
    if (m.im2col)
        return cuTensorMapEncodeIm2col(out, type, m.rank, (void *)at, (const cuuint64_t *)m.dims, strides, m.lower, m.upper,
                                       m.channels, m.pixels, m.steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                       (CUtensorMapSwizzle)m.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, fill);
    return cuTensorMapEncodeTiled(out, type, m.rank, (void *)at, (const cuuint64_t *)m.dims, strides, m.box, m.steps,
                                  CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)m.swizzle,
                                  CU_TENSOR_MAP_L2_PROMOTION_NONE, fill);
}

static void run(CUmodule mod, const struct hopper_case &x, const char *dir)
{
    CUfunction f;
    CUdeviceptr p[3];
    CUtensorMap map[3];
    CUresult r = cuModuleGetFunction(&f, mod, x.kernel);
    uint8_t *host = (uint8_t *)malloc(1 << 20);
    for (int i = 0; i < 3; i++) {
        struct hopper_map m;
        cuMemAlloc(&p[i], x.bytes[i] + 256);
        hopper_fill(x.fill[i], host, x.bytes[i], (uint32_t)i + 1);
        cuMemcpyHtoD(p[i], host, x.bytes[i]);
        memset(&map[i], 0, sizeof map[i]);
        if (!r && hopper_map_read(x.map[i], &m)) r = encode(m, p[i], &map[i]);
    }
    int M = x.m, N = x.n, K = x.k;
    void *args[] = {&map[0], &map[1], &map[2], &p[0], &p[1], &p[2], &M, &N, &K};
    CUlaunchAttribute attr = {};
    attr.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attr.value.clusterDim = {x.cluster, 1, 1};
    CUlaunchConfig c = {};
    c.gridDimX = x.gx, c.gridDimY = x.gy, c.gridDimZ = 1;
    c.blockDimX = x.block, c.blockDimY = c.blockDimZ = 1;
    c.sharedMemBytes = x.shared + 1024;
    c.attrs = &attr, c.numAttrs = 1;
    if (!r) r = cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)c.sharedMemBytes);
    if (!r) r = cuLaunchKernelEx(&c, f, args, NULL);
    if (!r) r = cuCtxSynchronize();
    if (r) {
        printf("/* %s: %s */\n", x.name, text(r));
    } else {
        cuMemcpyDtoH(host, p[2], x.bytes[2]);
        printf("HASH(\"%s\", 0x%016llx)\n", x.name, (unsigned long long)hopper_hash(host, x.bytes[2]));
        char path[512];
        snprintf(path, sizeof path, "%s/%d", dir ? dir : "", (int)(&x - hopper_cases));
        FILE *out = dir ? fopen(path, "wb") : NULL;
        if (out) { fwrite(host, 1, x.bytes[2], out); fclose(out); }
    }
    fflush(stdout);
    for (int i = 0; i < 3; i++) cuMemFree(p[i]);
    free(host);
}

int main(int argc, char **argv)
{
    int first = argc > 3 ? atoi(argv[3]) : 0, failed = 0;
    CUdevice dev;
    CUcontext ctx;
    CUmodule mod;
    cuInit(0);
    cuDeviceGet(&dev, 0);
    cuDevicePrimaryCtxRetain(&ctx, dev);
    cuCtxSetCurrent(ctx);
    CUresult r = cuModuleLoad(&mod, argv[1]);
    if (r) { printf("/* loading: %s */\n", text(r)); return 1; }
    for (int i = first; i < HOPPER_CASES; i++) {
        run(mod, hopper_cases[i], argc > 2 && *argv[2] ? argv[2] : NULL);
        if (cuCtxSynchronize()) { printf("/* stopped after case %d */\n", i); failed = i + 1; break; }
    }
    return failed ? 2 : 0;
}
