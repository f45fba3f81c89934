/*
 * test_cuda.c - the CUDA driver over simt, called as a program would: modules in every packing,
 * memory with its exact bounds, captured graphs, errors that stay.
 */
#include "support.h"

#include "simt/cuda/cuda.h"
#include "simt/cuda/runtime.h"

#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned);
int cuDeviceGetCount(int *);
int cuModuleLoadData(void **, const void *);
int cuModuleUnload(void *);
int cuModuleGetFunction(void **, void *, const char *);
int cuModuleGetGlobal_v2(uint64_t *, size_t *, void *, const char *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void *, void **, void **);
int cuMemAlloc_v2(void **, size_t);
int cuMemFree_v2(void *);
int cuMemcpyHtoD_v2(void *, const void *, size_t);
int cuMemcpyDtoH_v2(void *, const void *, size_t);
int cuMemsetD32_v2(void *, unsigned, size_t);
int cuCtxSynchronize(void);
int cuDevicePrimaryCtxReset_v2(int);
int cuStreamCreate(void **, unsigned);
int cuStreamDestroy_v2(void *);
int cuStreamBeginCapture_v2(void *, int);
int cuStreamEndCapture(void *, void **);
int cuGraphInstantiateWithFlags(void **, void *, uint64_t);
int cuGraphLaunch(void *, void *);
int cuGraphDestroy(void *);
int cuGraphExecDestroy(void *);
int cuFuncGetAttribute(int *, int, void *);
int cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
int cuMemsetD8Async(void *, unsigned char, size_t, void *);
int cudaLibraryLoadData(void **, const void *, int *, void **, unsigned, int *, void **, unsigned);
int cudaLibraryGetKernel(void **, void *, const char *);
int cudaLibraryGetKernelCount(unsigned *, void *);
int cudaLibraryGetGlobal(uint64_t *, size_t *, void *, const char *);
int cudaLibraryUnload(void *);
int cudaKernelSetAttributeForDevice(void *, int, int, int);
int cudaLaunchKernel(const void *, struct rt_dim3, struct rt_dim3, void **, size_t, void *);
void cutegen_offer_ptx(const char *);

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                          ".visible .global .align 4 .u32 count = 7;\n"
                          ".visible .entry add(.param .u64 p, .param .u32 by)\n{\n"
                          ".reg .u32 %r<5>;\n.reg .u64 %d<4>;\n"
                          "ld.param.u64 %d1, [p];\nld.param.u32 %r1, [by];\n"
                          "mov.u32 %r2, %tid.x;\nmul.wide.u32 %d2, %r2, 4;\n"
                          "add.u64 %d3, %d1, %d2;\nld.global.u32 %r3, [%d3];\n"
                          "add.u32 %r4, %r3, %r1;\nst.global.u32 [%d3], %r4;\n"
                          "mov.u64 %d2, count;\nld.global.u32 %r3, [%d2];\nret;\n}\n"
                          ".visible .entry stop()\n{\ntrap;\nret;\n}\n";

struct fat { /* a wrapper, a head, an entry */
    int32_t magic, version;
    const void *data, *more;
};

static unsigned char *fatbin(const void *payload, size_t bytes, size_t full, uint64_t flags,
                             uint16_t kind, struct fat *wrapper)
{
    size_t padded = (bytes + 7) / 8 * 8;
    unsigned char *b = calloc(1, 16 + 64 + padded);
    uint64_t total = 64 + padded, entry_bytes = padded, full_bytes = full;
    uint32_t magic = 0xba55ed50, head = 64, packed = (uint32_t)bytes, arch = 80;
    uint16_t version = 1, head_bytes = 16;

    memcpy(b, &magic, 4);
    memcpy(b + 4, &version, 2);
    memcpy(b + 6, &head_bytes, 2);
    memcpy(b + 8, &total, 8);
    memcpy(b + 16, &kind, 2);
    memcpy(b + 20, &head, 4);
    memcpy(b + 24, &entry_bytes, 8);
    memcpy(b + 32, &packed, 4);
    memcpy(b + 44, &arch, 4);
    memcpy(b + 56, &flags, 8);
    memcpy(b + 72, &full_bytes, 8);
    memcpy(b + 80, payload, bytes);
    *wrapper = (struct fat){0x466243b1, 1, b, NULL};
    return b;
}

/* Literals only: one LZ4 sequence. */
static size_t lz4_literals(const char *text, size_t n, unsigned char *out)
{
    size_t o = 0, left = n - 15;

    out[o++] = 0xf0;
    for (; left >= 255; left -= 255)
        out[o++] = 255;
    out[o++] = (unsigned char)left;
    memcpy(out + o, text, n);
    return o + n;
}

static void add(void *module, int *x, unsigned n, int by, int want)
{
    void *f = NULL, *args[] = {&x, &by};

    assert_int_equal(cuModuleGetFunction(&f, module, "add"), 0);
    assert_int_equal(cuLaunchKernel(f, 1, 1, 1, n, 1, 1, 0, NULL, args, NULL), want);
}

static void images_of_every_packing_run(void **state)
{
    unsigned char packed[2048], *b[3];
    size_t n = lz4_literals(ptx, sizeof ptx, packed);
    struct fat w[3];
    const void *images[] = {ptx, &w[0], NULL, &w[1]};
    int *x, got[4];

    (void)state;
    b[0] = fatbin(ptx, sizeof ptx, sizeof ptx, 0, 1, &w[0]);
    b[1] = fatbin(packed, n, sizeof ptx, 0x2000, 1, &w[1]);
    b[2] = fatbin("\177ELF", 4, 4, 0, 2, &w[2]);
    images[2] = b[0];
    assert_int_equal(cuMemAlloc_v2((void **)&x, sizeof got), 0);
    for (size_t i = 0; i < ARRAY_LEN(images); i++) {
        void *m = NULL;

        assert_int_equal(cuModuleLoadData(&m, images[i]), 0);
        assert_int_equal(cuMemsetD32_v2(x, 5, 4), 0);
        add(m, x, 4, 3, 0);
        assert_int_equal(cuMemcpyDtoH_v2(got, x, sizeof got), 0);
        for (int k = 0; k < 4; k++)
            assert_int_equal(got[k], 8);
        assert_int_equal(cuModuleUnload(m), 0);
    }
    assert_int_equal(cuModuleLoadData((void **)&x, &w[2]), CU_NO_BINARY);
    assert_int_equal(cuModuleLoadData((void **)&x, "\177ELF...."), CU_NO_BINARY);
    assert_int_equal(cuModuleLoadData((void **)&x, "nonsense"), CU_INVALID_PTX);
    for (int i = 0; i < 3; i++)
        free(b[i]);
}

/* As the CuTe DSL does: a library of machine code, whose PTX is offered beside it. */
static void a_library_runs_the_ptx_that_is_offered(void **state)
{
    struct rt_dim3 grid = {1, 1, 1}, block = {4, 1, 1};
    int *x, got[4], by = 3;
    unsigned count = 0;
    void *library = NULL, *f = NULL, *args[] = {&x, &by};
    uint64_t at;
    size_t bytes;

    (void)state;
    assert_int_equal(cudaLibraryLoadData(&library, "\177ELF....", NULL, NULL, 0, NULL, NULL, 0),
                     CU_NO_BINARY);
    cutegen_offer_ptx(ptx);
    assert_int_equal(cudaLibraryLoadData(&library, "\177ELF....", NULL, NULL, 0, NULL, NULL, 0), 0);
    cutegen_offer_ptx(NULL);
    assert_int_equal(cudaLibraryGetKernelCount(&count, library), 0);
    assert_int_equal(count, 2);
    assert_int_equal(cudaLibraryGetGlobal(&at, &bytes, library, "count"), 0);
    assert_int_equal(bytes, 4);
    assert_int_equal(cudaLibraryGetKernel(&f, library, "add"), 0);
    assert_int_equal(cudaKernelSetAttributeForDevice(f, 8, 1024, 0), 0);
    assert_int_equal(cuMemAlloc_v2((void **)&x, sizeof got), 0);
    assert_int_equal(cuMemsetD32_v2(x, 5, 4), 0);
    assert_int_equal(cudaLaunchKernel(f, grid, block, args, 0, NULL), 0);
    assert_int_equal(cuMemcpyDtoH_v2(got, x, sizeof got), 0);
    for (int k = 0; k < 4; k++)
        assert_int_equal(got[k], 8);
    assert_int_equal(cudaLibraryUnload(library), 0);
    assert_int_equal(cuMemFree_v2(x), 0);
}

static void broken_fat_binaries_are_refused(void **state)
{
    unsigned char bad[] = {0xf0, 255, 255, 255, 7}, far[] = {0x10, 'a', 9, 0, 0};
    struct fat w[3];
    unsigned char *b[] = {fatbin(bad, sizeof bad, 100, 0x2000, 1, &w[0]),
                          fatbin(far, sizeof far, 100, 0x2000, 1, &w[1]),
                          fatbin(ptx, sizeof ptx, sizeof ptx, 0, 1, &w[2])};
    uint64_t huge = UINT64_MAX - 8;
    void *m;

    (void)state;
    memcpy(b[2] + 24, &huge, 8); /* the entry is longer than all of it */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cuModuleLoadData(&m, &w[i]), CU_INVALID_IMAGE);
        free(b[i]);
    }
}

static void memory_has_its_exact_size(void **state)
{
    char *x, host[64] = "";

    (void)state;
    assert_int_equal(cuMemAlloc_v2((void **)&x, 33), 0);
    assert_int_equal(cuMemcpyHtoD_v2(x, host, 33), 0);
    assert_int_equal(cuMemcpyHtoD_v2(x, host, 34), CU_INVALID_VALUE);
    assert_int_equal(cuMemcpyHtoD_v2(x + 32, host, 2), CU_INVALID_VALUE);
    assert_int_equal(cuMemFree_v2(x + 1), CU_INVALID_VALUE);
    assert_int_equal(cuMemFree_v2(x), 0);
    assert_int_equal(cuMemFree_v2(x), CU_INVALID_VALUE);
    assert_int_equal(cuMemAlloc_v2((void **)&x, (size_t)1 << 60), CU_OUT_OF_MEMORY);
    assert_int_equal(cuMemAlloc_v2((void **)&x, 0), CU_INVALID_VALUE);
}

static void captured_work_waits_for_the_graph(void **state)
{
    void *s, *graph, *exec, *m, *f, *args[2];
    int *x, by = 2, got[4];

    (void)state;
    assert_int_equal(cuModuleLoadData(&m, ptx), 0);
    assert_int_equal(cuModuleGetFunction(&f, m, "add"), 0);
    assert_int_equal(cuMemAlloc_v2((void **)&x, sizeof got), 0);
    assert_int_equal(cuMemsetD32_v2(x, 1, 4), 0);
    args[0] = &x;
    args[1] = &by;
    assert_int_equal(cuStreamCreate(&s, 0), 0);
    assert_int_equal(cuStreamBeginCapture_v2(s, 0), 0);
    assert_int_equal(cuMemsetD8Async(x, 0, sizeof got, s), 0);
    assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 4, 1, 1, 0, s, args, NULL), 0);
    by = 100; /* arguments are those of the call */
    assert_int_equal(cuStreamEndCapture(s, &graph), 0);
    assert_int_equal(cuMemcpyDtoH_v2(got, x, sizeof got), 0);
    assert_int_equal(got[0], 1);
    assert_int_equal(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    assert_int_equal(cuGraphDestroy(graph), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(cuGraphLaunch(exec, s), 0);
    assert_int_equal(cuMemcpyDtoH_v2(got, x, sizeof got), 0);
    assert_int_equal(got[3], 2);
    assert_int_equal(cuGraphExecDestroy(exec), 0);
    assert_int_equal(cuStreamDestroy_v2(s), 0);
    assert_int_equal(cuStreamDestroy_v2(s), CU_INVALID_HANDLE);
}

static void variables_and_entry_points_are_found(void **state)
{
    void *m, *f;
    uint64_t at;
    size_t bytes;
    int value = 0, status, threads = 0;

    (void)state;
    assert_int_equal(cuModuleLoadData(&m, ptx), 0);
    assert_int_equal(cuModuleGetGlobal_v2(&at, &bytes, m, "count"), 0);
    assert_int_equal(bytes, 4);
    assert_int_equal(cuMemcpyDtoH_v2(&value, (void *)(uintptr_t)at, 4), 0);
    assert_int_equal(value, 7);
    assert_int_equal(cuModuleGetGlobal_v2(&at, &bytes, m, "nothing"), CU_NOT_FOUND);
    assert_int_equal(cuModuleGetFunction(&f, m, "nothing"), CU_NOT_FOUND);
    assert_int_equal(cuModuleGetFunction(&f, m, "add"), 0);
    assert_int_equal(cuFuncGetAttribute(&threads, 0, f), 0);
    assert_int_equal(threads, 1024);
    assert_int_equal(cuGetProcAddress_v2("cuNothing", &f, 13000, 0, &status), CU_NOT_FOUND);
}

static void a_trap_stays_until_the_reset(void **state)
{
    void *m, *f, *x;

    (void)state;
    assert_int_equal(cuModuleLoadData(&m, ptx), 0);
    assert_int_equal(cuModuleGetFunction(&f, m, "stop"), 0);
    assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 0);
    assert_int_equal(cuCtxSynchronize(), CU_LAUNCH_FAILED);
    assert_int_equal(cuMemAlloc_v2(&x, 4), CU_LAUNCH_FAILED);
    assert_int_equal(cuDevicePrimaryCtxReset_v2(0), 0);
    assert_int_equal(cuMemAlloc_v2(&x, 4), 0);
}

static void a_launch_out_of_range_is_refused(void **state)
{
    void *m, *f;

    (void)state;
    assert_int_equal(cuModuleLoadData(&m, ptx), 0);
    assert_int_equal(cuModuleGetFunction(&f, m, "stop"), 0);
    assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 2000, 1, 1, 0, NULL, NULL, NULL), CU_INVALID_VALUE);
    assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 64 << 10, NULL, NULL, NULL),
                     CU_INVALID_VALUE);
    assert_int_equal(cuLaunchKernel(m, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CU_INVALID_HANDLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_of_every_packing_run),
        cmocka_unit_test(a_library_runs_the_ptx_that_is_offered),
        cmocka_unit_test(broken_fat_binaries_are_refused),
        cmocka_unit_test(memory_has_its_exact_size),
        cmocka_unit_test(captured_work_waits_for_the_graph),
        cmocka_unit_test(variables_and_entry_points_are_found),
        cmocka_unit_test(a_launch_out_of_range_is_refused),
        cmocka_unit_test(a_trap_stays_until_the_reset),
    };
    return cuInit(0) ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
