/*
 * wgmma_speed.c - a 512 x 512 x 512 product of f16 on simt, one core: by wgmma
 * (tests/simt/hopper, gemm_ws) and by mma.sync (calibrate_kernels.cu, hgemm_async4).
 *
 *   simt_wgmma tests/simt/ptx/hopper_kernels.ptx calibrate.ptx [off|memory|full]
 */
#include "base/fs.h"
#include "simt/simt.h"
#include "simt/emit/translate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 512 };

static struct simt_module *load(struct simt *dev, const char *path, const char *kernel,
                                struct arena *a)
{
    struct error err = {0};
    struct text ptx;
    struct translate_options opt = {0};
    struct simt_built built;
    struct simt_module *mod = NULL;
    if (!file_read(path, 64 << 20, a, &ptx, &err) ||
        !simt_compile(ptx, &kernel, 1, &opt, a, &built, &err) ||
        !simt_load(dev, built.so_path, &mod, &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return mod;
}

static double best_of(struct simt *dev, struct simt_module *mod, const struct simt_launch *l,
                      struct arena *a)
{
    double best = 1e9;
    for (int i = 0; i < 7; i++) {
        struct simt_result r;
        struct error err = {0};
        if (!simt_launch(dev, mod, l, a, &r, &err) || r.outcome != SIMT_OK || r.finding_count) {
            fprintf(stderr, "%s: %s %s\n", l->kernel, err.text, r.text ? r.text : "");
            exit(1);
        }
        best = r.seconds < best ? r.seconds : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    struct error err = {0};
    struct simt_config c = {.threads = 1, .check = SIMT_CHECK_MEMORY};
    struct simt *dev;
    unsigned short *A, *B, *C;
    unsigned char params[424] = {0};
    int n = N;
    if (argc < 3)
        return 2;
    if (argc > 3)
        c.check = !strcmp(argv[3], "off")    ? SIMT_CHECK_OFF
                  : !strcmp(argv[3], "full") ? SIMT_CHECK_FULL
                                             : SIMT_CHECK_MEMORY;
    simt_open(&c, &dev, &err);
    A = aligned_alloc(4096, N * N * 2), B = aligned_alloc(4096, N * N * 2);
    C = aligned_alloc(4096, N * N * 4);
    for (int i = 0; i < N * N; i++)
        A[i] = B[i] = 0x3c00;
    simt_alloc_register(dev, A, N * N * 2, "A", SIMT_ALLOC_WRITTEN);
    simt_alloc_register(dev, B, N * N * 2, "B", SIMT_ALLOC_WRITTEN);
    simt_alloc_register(dev, C, N * N * 4, "C", SIMT_ALLOC_WRITTEN);

    struct {
        const void *base;
        uint32_t bx, by;
        unsigned swizzle;
    } maps[3] = {{A, 64, 128, 3}, {B, 64, 64, 3}, {C, 128, 64, 0}};
    for (int i = 0; i < 3; i++) {
        char why[200];
        struct simt_map m = {.address = (uint64_t)(uintptr_t)maps[i].base,
                             .dtype = "f16",
                             .rank = 2,
                             .dims = {N, N},
                             .strides_bytes = {N * 2},
                             .box = {maps[i].bx, maps[i].by},
                             .swizzle = maps[i].swizzle};
        if (!simt_map_encode(&m, params + 128 * i, why, sizeof why))
            fprintf(stderr, "%s\n", why);
    }
    memcpy(params + 384, &A, 8), memcpy(params + 392, &B, 8), memcpy(params + 400, &C, 8);
    memcpy(params + 408, &n, 4), memcpy(params + 412, &n, 4), memcpy(params + 416, &n, 4);
    struct simt_launch wg = {.kernel = "gemm_ws",
                             .grid = {16, 1, 1},
                             .block = {384, 1, 1},
                             .shared_bytes = 140000,
                             .params = params,
                             .param_bytes = 420};
    struct simt_module *mod = load(dev, argv[1], "gemm_ws", a);
    double w = best_of(dev, mod, &wg, a);

    unsigned char plain[36];
    memcpy(plain, &A, 8), memcpy(plain + 8, &B, 8), memcpy(plain + 16, &C, 8);
    memcpy(plain + 24, &n, 4), memcpy(plain + 28, &n, 4), memcpy(plain + 32, &n, 4);
    struct simt_launch mm = {.kernel = "hgemm_async4",
                             .grid = {4, 4, 1},
                             .block = {256, 1, 1},
                             .shared_bytes = 81920,
                             .params = plain,
                             .param_bytes = sizeof plain};
    mod = load(dev, argv[2], "hgemm_async4", a);
    double m = best_of(dev, mod, &mm, a);
    printf("wgmma %.4f s, mma.sync %.4f s: %.2f times\n", w, m, w / m);
    simt_close(dev);
    arena_free(a);
    free(A), free(B), free(C);
    return 0;
}
