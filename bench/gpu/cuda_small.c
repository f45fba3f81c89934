/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_small.c - the driver's first steps, one line each: does CUDA start here?
 *
 *     cuda_small                 ends with 0 when a kernel has run
 *     cuda_small export          also prints an IPC handle in hex, and waits for the end of its input
 *     cuda_small import HANDLE   the kernel writes to memory of the one that exports
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *ptx = ".version 7.0\n.target sm_70\n.address_size 64\n"
                         ".visible .entry one(.param .u64 p) {\n .reg .u64 %a; .reg .u32 %v;\n"
                         " ld.param.u64 %a, [p]; cvta.to.global.u64 %a, %a; mov.u32 %v, 7; st.global.u32 [%a], %v; ret;\n}\n";

typedef int entry();

static void *lib;

static entry *get(const char *name)
{
    entry *e = (entry *)dlsym(lib, name);

    if (!e)
        printf("no %s\n", name);
    return e;
}

#define STEP(name, ...)                                                                            \
    do {                                                                                           \
        entry *e_ = get(#name);                                                                    \
        int rc_ = e_ ? e_(__VA_ARGS__) : -1;                                                       \
        if (rc_ != 0) {                                                                            \
            printf("%s: error %d\n", #name, rc_);                                                  \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

struct handle {
    unsigned char bytes[64];
};

int main(int argc, char **argv)
{
    struct handle handle;
    void *context = NULL, *module = NULL, *function = NULL, *host = NULL, *stream = NULL;
    unsigned long long p = 0;
    int device = 0, value = 0;

    lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib) {
        printf("dlopen: %s\n", dlerror());
        return 2;
    }
    STEP(cuInit, 0);
    STEP(cuDeviceGet, &device, 0);
    STEP(cuDevicePrimaryCtxRetain, &context, device);
    STEP(cuCtxSetCurrent, context);
    if (argc > 2) {
        for (int i = 0; i < 64; i++)
            sscanf(argv[2] + 2 * i, "%2hhx", &handle.bytes[i]);
        int (*open_handle)(unsigned long long *, struct handle, unsigned) = (int (*)(unsigned long long *, struct handle, unsigned))get("cuIpcOpenMemHandle_v2");
        int rc = open_handle(&p, handle, 1);

        if (rc != 0) {
            printf("cuIpcOpenMemHandle_v2: error %d\n", rc);
            return 1;
        }
    } else {
        STEP(cuMemAlloc_v2, &p, (size_t)1 << 20);
    }
    if (argc == 2) {
        STEP(cuIpcGetMemHandle, &handle, p);
        for (int i = 0; i < 64; i++)
            printf("%02x", handle.bytes[i]);
        printf("\n");
        fflush(stdout);
        getchar();
        return 0;
    }
    STEP(cuMemHostAlloc, &host, (size_t)1 << 20, 0);
    STEP(cuStreamCreate, &stream, 0);
    STEP(cuModuleLoadData, &module, ptx);
    STEP(cuModuleGetFunction, &function, module, "one");
    void *arguments[] = {&p};
    STEP(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
    STEP(cuCtxSynchronize);
    STEP(cuMemcpyDtoH_v2, &value, p, (size_t)4);
    printf("%s\n", value == 7 ? "ok" : "a wrong value");
    return value == 7 ? 0 : 3;
}
