/*
 * vectors.c - what a GPU makes of tests/simt/vectors.txt.
 *
 *   cc -std=gnu17 -O2 -I tests/simt -o vectors bench/simt/vectors.c -ldl
 *   ./vectors LIST > hardware.txt         results; each line: name, signature,
 *                                         hash of all results, the first ones
 *   ./vectors LIST --values N             how many values (16; approximate ones 4 times)
 *   ./vectors LIST --ptx DIR              writes the PTX, one file per kernel
 *
 * libcuda is opened at run time, so this compiles anywhere. A line the driver
 * refuses is left out and named on stderr.
 */
#include "vectors.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>

typedef int (*cu_fn)();

enum { IN_BYTES = VECTOR_GROUP * VECTOR_ARGS * VECTOR_REGS * VECTOR_INPUTS * 8 };
enum { OUT_BYTES = VECTOR_GROUP * VECTOR_REGS * VECTOR_INPUTS * 8 };

static struct cuda {
    void *lib;
    uint64_t in, out, scratch;
} cu;

static cu_fn sym(const char *name)
{
    cu_fn f;
    *(void **)&f = dlsym(cu.lib, name);
    if (!f) {
        fprintf(stderr, "libcuda has no %s\n", name);
        exit(3);
    }
    return f;
}

static void must(int rc, const char *what)
{
    if (rc) {
        fprintf(stderr, "%s: CUDA error %d\n", what, rc);
        exit(3);
    }
}

static void cuda_open(void)
{
    int dev, driver = 0;
    void *ctx;
    char name[256] = "";
    cu.lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!cu.lib) {
        fprintf(stderr, "no libcuda.so.1: %s\n", dlerror());
        exit(3);
    }
    must(sym("cuInit")(0u), "cuInit");
    must(sym("cuDeviceGet")(&dev, 0), "cuDeviceGet");
    must(sym("cuDeviceGetName")(name, 255, dev), "cuDeviceGetName");
    must(sym("cuDriverGetVersion")(&driver), "cuDriverGetVersion");
    must(sym("cuDevicePrimaryCtxRetain")(&ctx, dev), "context");
    must(sym("cuCtxSetCurrent")(ctx), "context");
    must(sym("cuMemAlloc_v2")(&cu.in, (size_t)IN_BYTES), "memory");
    must(sym("cuMemAlloc_v2")(&cu.out, (size_t)OUT_BYTES), "memory");
    must(sym("cuMemAlloc_v2")(&cu.scratch, (size_t)VECTOR_SCRATCH), "memory");
    printf("# %s, driver %d.%d, by bench/simt/vectors.c\n", name, driver / 1000,
           driver % 1000 / 10);
}

static char *ptx_of(const struct vector_line *const *v, int n)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    vectors_head(f);
    vectors_kernel(f, "vectors", v, n, false);
    fclose(f);
    return text;
}

/* True when the driver takes and runs the lines. */
static bool run(const struct vector_line *const *v, int n, uint64_t *in, uint64_t *out)
{
    void *mod, *fn, *params[] = {&cu.in, &cu.out, &cu.scratch};
    char *ptx = ptx_of(v, n);
    int rc = sym("cuModuleLoadData")(&mod, ptx);
    free(ptx);
    if (rc)
        return false;
    memset(in, 0, IN_BYTES);
    for (int s = 0; s < n; s++)
        for (int a = 1; a <= v[s]->args; a++)
            for (int k = 0; k < vector_width(v[s], a); k++)
                for (uint32_t i = 0; i < VECTOR_INPUTS; i++)
                    in[((size_t)(s * VECTOR_ARGS + a - 1) * VECTOR_REGS + (size_t)k) *
                           VECTOR_INPUTS +
                       i] = vector_input(v[s], a, k, i);
    must(sym("cuModuleGetFunction")(&fn, mod, "vectors"), "function");
    must(sym("cuMemcpyHtoD_v2")(cu.in, in, (size_t)IN_BYTES), "copy");
    must(sym("cuMemsetD8_v2")(cu.out, 0, (size_t)OUT_BYTES), "memset");
    must(sym("cuMemsetD8_v2")(cu.scratch, 0, (size_t)VECTOR_SCRATCH), "memset");
    must(sym("cuLaunchKernel")(fn, VECTOR_INPUTS / VECTOR_BLOCK, 1, 1, VECTOR_BLOCK, 1, 1, 0, NULL,
                               params, NULL),
         "launch");
    rc = sym("cuCtxSynchronize")();
    if (rc) {
        fprintf(stderr, "%s and on: CUDA error %d\n", v[0]->name, rc);
        exit(3);
    }
    must(sym("cuMemcpyDtoH_v2")(out, cu.out, (size_t)OUT_BYTES), "copy");
    sym("cuModuleUnload")(mod);
    return true;
}

static void print(const struct vector_line *v, const uint64_t *out, int values)
{
    int regs = vector_width(v, 0);
    uint64_t h = 0xcbf29ce484222325u;
    for (int k = 0; k < regs; k++)
        for (uint32_t i = 0; i < VECTOR_INPUTS; i++) {
            uint64_t x = vector_canonical(v->letter[0], out[k * VECTOR_INPUTS + (int)i]);
            h = vector_hash(&x, sizeof x, h);
        }
    printf("%s %s %016" PRIx64, v->name, v->sig, h);
    if (v->bound[0])
        values *= 4; /* they are all that is compared */
    for (uint32_t i = 0; i < (uint32_t)values && i < VECTOR_INPUTS; i++)
        for (int k = 0; k < regs; k++)
            printf(" %" PRIx64,
                   vector_canonical(v->letter[0], out[k * VECTOR_INPUTS + (int)i]));
    printf("\n");
}

static void run_group(const struct vector_line *const *v, int n, int values)
{
    static uint64_t in[IN_BYTES / 8], out[OUT_BYTES / 8];
    if (!run(v, n, in, out)) {
        if (n == 1) {
            fprintf(stderr, "refused: %s\n", v[0]->name);
            return;
        }
        run_group(v, n / 2, values);
        run_group(v + n / 2, n - n / 2, values);
        return;
    }
    for (int s = 0; s < n; s++)
        print(v[s], out + (size_t)s * VECTOR_REGS * VECTOR_INPUTS, values);
}

int main(int argc, char **argv)
{
    size_t count;
    int values = 16;
    const char *dir = NULL;
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--ptx") == 0)
            dir = argv[i + 1];
        else if (strcmp(argv[i], "--values") == 0)
            values = (int)strtol(argv[i + 1], NULL, 10);
    }
    struct vector_line *v = argc > 1 ? vectors_read(argv[1], &count) : NULL;
    if (!v) {
        fprintf(stderr, "usage: vectors LIST [--values N | --ptx DIR]\n");
        return 2;
    }
    if (!dir)
        cuda_open();
    for (size_t at = 0; at < count; at += VECTOR_GROUP) {
        const struct vector_line *group[VECTOR_GROUP];
        int n = count - at < VECTOR_GROUP ? (int)(count - at) : VECTOR_GROUP;
        for (int i = 0; i < n; i++)
            group[i] = &v[at + (size_t)i];
        if (!dir) {
            run_group(group, n, values);
            continue;
        }
        char path[4096], *ptx = ptx_of(group, n);
        snprintf(path, sizeof path, "%s/%04zu.ptx", dir, at / VECTOR_GROUP);
        FILE *f = fopen(path, "w");
        if (!f || fputs(ptx, f) < 0 || fclose(f))
            return 3;
        free(ptx);
    }
    return 0;
}
