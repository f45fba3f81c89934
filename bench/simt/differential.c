/*
 * differential.c - what a GPU makes of the kernels of tests/simt/kernels.def.
 *
 *   cc -std=gnu17 -O2 -I tests/simt -o differential bench/simt/differential.c -ldl -lm
 *   ./differential tests/simt/ptx > results.bin
 *
 * The file holds each kernel's name (64 bytes) and output, one after another;
 * `test_simt_kernels results.bin` runs the same on simt and prints the table.
 */
#include "kernels.h"

#include <dlfcn.h>
#include <stdio.h>

typedef int (*cu_fn)();
static void *lib;

static cu_fn sym(const char *name)
{
    cu_fn f;
    *(void **)&f = dlsym(lib, name);
    if (!f) {
        fprintf(stderr, "libcuda has no %s\n", name);
        exit(3);
    }
    return f;
}

static int failed(int rc, const char *what, const char *name)
{
    if (rc)
        fprintf(stderr, "%s: %s: CUDA error %d\n", name, what, rc);
    return rc;
}

static int module_of(const char *dir, const char *file, void **mod)
{
    static char text[8 << 20];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.ptx", dir, file);
    FILE *f = fopen(path, "r");
    if (!f)
        return failed(1, "no such file", path);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return failed(sym("cuModuleLoadData")(mod, text), "load", path);
}

static int run(const struct kernel_row *r, void *mod)
{
    uint64_t dev[4];
    void *fn, *host[4], *params[7] = {&dev[0], &dev[1], &dev[2], &dev[3]};
    int m = r->m, n = r->n, k = r->k;
    params[4] = &m, params[5] = &n, params[6] = &k;
    for (int i = 0; i < 4; i++) {
        size_t bytes = (size_t)r->count[i] * kernel_bytes(r->types[i]);
        host[i] = calloc(bytes + 16, 1);
        if (i < 3)
            kernel_fill(r, i, host[i]);
        if (failed(sym("cuMemAlloc_v2")(&dev[i], bytes + 16), "memory", r->name) ||
            failed(sym("cuMemcpyHtoD_v2")(dev[i], host[i], bytes), "copy", r->name))
            return 1;
    }
    if (failed(sym("cuModuleGetFunction")(&fn, mod, r->name), "function", r->name))
        return 1;
    sym("cuFuncSetAttribute")(fn, 8, (int)r->shared_bytes);
    if (failed(sym("cuLaunchKernel")(fn, r->grid[0], r->grid[1], r->grid[2], r->block[0],
                                     r->block[1], 1, r->shared_bytes, NULL, params, NULL),
               "launch", r->name) ||
        failed(sym("cuCtxSynchronize")(), "run", r->name))
        return 1;
    size_t bytes = (size_t)r->count[3] * kernel_bytes(r->types[3]);
    char name[64] = "";
    snprintf(name, sizeof name, "%s", r->name);
    failed(sym("cuMemcpyDtoH_v2")(host[3], dev[3], bytes), "copy", r->name);
    fwrite(name, 1, sizeof name, stdout);
    fwrite(host[3], 1, bytes, stdout);
    for (int i = 0; i < 4; i++) {
        sym("cuMemFree_v2")(dev[i]);
        free(host[i]);
    }
    return 0;
}

int main(int argc, char **argv)
{
    int dev, bad = 0;
    void *ctx, *mod = NULL;
    const char *loaded = "";
    lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (argc != 2 || !lib) {
        fprintf(stderr, lib ? "usage: differential PTX_DIR\n" : "no libcuda.so.1\n");
        return 3;
    }
    if (failed(sym("cuInit")(0u), "init", "") || failed(sym("cuDeviceGet")(&dev, 0), "device", "") ||
        failed(sym("cuDevicePrimaryCtxRetain")(&ctx, dev), "context", "") ||
        failed(sym("cuCtxSetCurrent")(ctx), "context", ""))
        return 3;
    for (int i = 0; i < KERNELS; i++) {
        if (strcmp(loaded, kernel_rows[i].file) != 0 &&
            module_of(argv[1], loaded = kernel_rows[i].file, &mod))
            return 3;
        bad += run(&kernel_rows[i], mod);
    }
    fprintf(stderr, "%d kernels, %d failed\n", (int)KERNELS, bad);
    return bad != 0;
}
