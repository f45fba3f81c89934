/*
 * calibrate_simt.c - simt's counters for every case of calibrate_cases.def, a
 * JSON object per line. Large grids are sampled.
 *
 *   nvcc -std=c++17 -lineinfo -arch=compute_90 -ptx -o calibrate.ptx
 * bench/simt/calibrate_kernels.cu simt_calibrate calibrate.ptx [BLOCKS] > counters.jsonl
 */
#include "base/fs.h"
#include "simt/simt.h"
#include "simt/translate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cal_case {
    const char *task, *kernel, *set;
    unsigned gx, gy, bx, by, smem;
    long floats[3];
    int m, n, k;
} cases[] = {
#define CASE(task, kernel, set, gx, gy, bx, by, smem, fa, fb, fc, m, n, k)                         \
    {#task, #kernel, #set, gx, gy, bx, by, smem, {fa, fb, fc}, m, n, k},
#include "calibrate_cases.def"
#undef CASE
};

static float *filled(size_t floats, int half)
{
    float *p = aligned_alloc(4096, (floats * 4 + 8191) / 4096 * 4096);
    unsigned s = 1;
    if (!p)
        abort();
    for (size_t i = 0; i < floats; i++) {
        s = s * 1664525 + 1013904223;
        p[i] = (float)(s >> 8) / 16777216.0f - 0.5f;
        if (half)
            memcpy(&p[i], &(unsigned){0x2e662e66}, 4);
    }
    return p;
}

static void run(struct simt *dev, struct simt_module *mod, const struct cal_case *x,
                unsigned long sample)
{
    struct arena *a = arena_new();
    struct simt_kernel_info info;
    struct simt_result out;
    struct error err = {0};
    unsigned char params[36];
    float *buf[3];
    uint64_t reachable = 0;
    for (int i = 0; i < 3; i++) {
        buf[i] = filled((size_t)x->floats[i], strncmp(x->kernel, "hgemm", 5) == 0);
        simt_alloc_register(dev, buf[i], (size_t)x->floats[i] * 4, "buffer", SIMT_ALLOC_WRITTEN);
        memcpy(params + 8 * i, &buf[i], 8);
        reachable += ((uint64_t)x->floats[i] * 4 + 31) / 32;
    }
    memcpy(params + 24, &x->m, 4);
    memcpy(params + 28, &x->n, 4);
    memcpy(params + 32, &x->k, 4);
    struct simt_launch l = {.kernel = x->kernel,
                            .grid = {x->gx, x->gy, 1},
                            .block = {x->bx, x->by, 1},
                            .shared_bytes = x->smem,
                            .params = params,
                            .param_bytes = sizeof params,
                            .sample = sample};
    if (!simt_launch(dev, mod, &l, a, &out, &err) || out.outcome != SIMT_OK) {
        fprintf(stderr, "%s: %s%s\n", x->kernel, err.text, out.text ? out.text : "");
    } else {
        json_t *v = simt_counters_json(&out.counters);
        uint64_t sectors = out.counters.global_load_sectors + out.counters.global_store_sectors;
        simt_kernel_info(mod, x->kernel, &info);
        json_object_set_new(v, "task", json_string(x->task));
        json_object_set_new(v, "kernel", json_string(x->kernel));
        json_object_set_new(v, "set", json_string(x->set));
        json_object_set_new(v, "grid", json_pack("[i, i]", x->gx, x->gy));
        json_object_set_new(v, "block", json_pack("[i, i]", x->bx, x->by));
        json_object_set_new(v, "n", json_integer(x->n));
        json_object_set_new(v, "blocks", json_integer((json_int_t)x->gx * x->gy));
        json_object_set_new(v, "threads_block", json_integer((json_int_t)x->bx * x->by));
        json_object_set_new(v, "smem_bytes",
                            json_integer((json_int_t)x->smem + info.static_shared));
        json_object_set_new(v, "unique_sectors",
                            json_integer((json_int_t)(sectors < reachable ? sectors : reachable)));
        json_object_set_new(v, "seconds", json_real(out.seconds));
        char *text = json_dumps(v, JSON_SORT_KEYS);
        puts(text);
        fflush(stdout);
        free(text);
        json_decref(v);
    }
    for (int i = 0; i < 3; i++) {
        simt_alloc_forget(dev, buf[i]);
        free(buf[i]);
    }
    arena_free(a);
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    struct error err = {0};
    struct text ptx;
    struct simt_options opt = {0};
    struct simt_built built;
    struct simt_config config = {.counters = true, .threads = 1, .watchdog_ms = 600000};
    struct simt *dev = NULL;
    struct simt_module *mod;
    const char **names;
    size_t n;
    unsigned long sample = argc > 2 ? strtoul(argv[2], NULL, 10) : 64;
    bool ok = argc > 1 && file_read(argv[1], 64 << 20, a, &ptx, &err) &&
              simt_kernel_names(ptx, a, &names, &n, &err) &&
              simt_compile(ptx, names, n, &opt, a, &built, &err) &&
              simt_open(&config, &dev, &err) && simt_load(dev, built.so_path, &mod, &err);
    if (!ok)
        fprintf(stderr, "%s\n", err.text);
    for (size_t i = 0; ok && i < ARRAY_LEN(cases); i++)
        if (argc < 4 || strstr(cases[i].kernel, argv[3]))
            run(dev, mod, &cases[i], sample);
    simt_close(dev);
    arena_free(a);
    return !ok;
}
