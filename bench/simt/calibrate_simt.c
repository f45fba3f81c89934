/*
 * calibrate_simt.c - simt's counters for every case of calibrate_cases.def, a
 * JSON object per line. Large grids are sampled.
 *
 *   nvcc -std=c++17 -lineinfo -arch=compute_90 -ptx -o calibrate.ptx
 * bench/simt/calibrate_kernels.cu simt_calibrate calibrate.ptx [BLOCKS [NAME]] > counters.jsonl
 *   simt_calibrate calibrate.ptx BLOCKS NAME overhead     what counting and every check cost
 *   simt_calibrate calibrate.ptx BLOCKS NAME checks       only the checks
 */
#include "base/fs.h"
#include "simt/simt.h"
#include "simt/emit/translate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* One case with its buffers, known to a device. */
struct ready {
    const struct cal_case *x;
    unsigned char params[36];
    float *buf[3];
    uint64_t reachable; /* sectors */
};

static void ready_make(const struct cal_case *x, struct ready *r)
{
    *r = (struct ready){.x = x};
    for (int i = 0; i < 3; i++) {
        r->buf[i] = filled((size_t)x->floats[i], strncmp(x->kernel, "hgemm", 5) == 0);
        memcpy(r->params + 8 * i, &r->buf[i], 8);
        r->reachable += ((uint64_t)x->floats[i] * 4 + 31) / 32;
    }
    memcpy(r->params + 24, &x->m, 4);
    memcpy(r->params + 28, &x->n, 4);
    memcpy(r->params + 32, &x->k, 4);
}

static void ready_free(struct ready *r)
{
    for (int i = 0; i < 3; i++)
        free(r->buf[i]);
}

static bool device_open(const struct simt_config *config, const char *so, const struct ready *r,
                        struct simt **dev, struct simt_module **mod)
{
    struct error err = {0};
    if (!simt_open(config, dev, &err) || !simt_load(*dev, so, mod, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return false;
    }
    for (int i = 0; i < 3; i++)
        simt_alloc_register(*dev, r->buf[i], (size_t)r->x->floats[i] * 4, "buffer",
                            SIMT_ALLOC_WRITTEN);
    return true;
}

static bool launch(struct simt *dev, struct simt_module *mod, const struct ready *r,
                   unsigned long sample, struct arena *a, struct simt_result *out)
{
    const struct cal_case *x = r->x;
    struct error err = {0};
    struct simt_launch l = {.kernel = x->kernel,
                            .grid = {x->gx, x->gy, 1},
                            .block = {x->bx, x->by, 1},
                            .shared_bytes = x->smem,
                            .params = r->params,
                            .param_bytes = sizeof r->params,
                            .sample = sample};
    if (simt_launch(dev, mod, &l, a, out, &err) && out->outcome == SIMT_OK)
        return true;
    fprintf(stderr, "%s: %s%s\n", x->kernel, err.text, out->text ? out->text : "");
    return false;
}

static void count(const char *so, const struct cal_case *x, unsigned long sample)
{
    const struct simt_config config = {.counters = true, .threads = 1, .watchdog_ms = 600000};
    struct arena *a = arena_new();
    struct simt *dev = NULL;
    struct simt_module *mod;
    struct simt_kernel_info info;
    struct simt_result out;
    struct ready r;
    ready_make(x, &r);
    if (device_open(&config, so, &r, &dev, &mod) && launch(dev, mod, &r, sample, a, &out)) {
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
        json_object_set_new(
            v, "unique_sectors",
            json_integer((json_int_t)(sectors < r.reachable ? sectors : r.reachable)));
        json_object_set_new(v, "seconds", json_real(out.seconds));
        char *text = json_dumps(v, JSON_SORT_KEYS);
        puts(text);
        fflush(stdout);
        free(text);
        json_decref(v);
    }
    simt_close(dev);
    ready_free(&r);
    arena_free(a);
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Processor time without and with counters, and with a profile; in turns, the least of seven. */
static void overhead(const char *so, const struct cal_case *x, unsigned long sample, bool checks)
{
    double least[4] = {1e9, 1e9, 1e9, 1e9};
    struct ready r;
    ready_make(x, &r);
    for (int turn = -1; turn < (checks ? 14 : 28); turn++) {
        int how = turn < 0 ? 0 : checks ? turn % 2 * 3 : turn % 4;
        struct simt_config config = {.check = how == 3 ? SIMT_CHECK_FULL : SIMT_CHECK_MEMORY,
                                     .counters = how == 1 || how == 2,
                                     .profile = how == 2,
                                     .threads = 1,
                                     .watchdog_ms = 600000};
        struct arena *a = arena_new();
        struct simt *dev = NULL;
        struct simt_module *mod;
        struct simt_result out;
        if (device_open(&config, so, &r, &dev, &mod)) {
            double start = cpu_seconds();
            if (launch(dev, mod, &r, sample, a, &out)) {
                double s = cpu_seconds() - start;
                if (turn < 0) /* the first only says how many blocks take long enough */
                    sample += (unsigned long)((double)sample * 0.03 / s);
                else
                    least[how] = s < least[how] ? s : least[how];
            }
        }
        simt_close(dev);
        arena_free(a);
    }
    printf("%-18s %8.4f s ", x->kernel, least[0]);
    if (!checks)
        printf(" counters %.2f  profile %.2f ", least[1] / least[0], least[2] / least[0]);
    printf(" full check %.2f\n", least[3] / least[0]);
    fflush(stdout);
    ready_free(&r);
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    struct error err = {0};
    struct text ptx;
    struct translate_options opt = {0};
    struct simt_built built;
    const char **names;
    size_t n;
    unsigned long sample = argc > 2 ? strtoul(argv[2], NULL, 10) : 64;
    bool ok = argc > 1 && file_read(argv[1], 64 << 20, a, &ptx, &err) &&
              simt_kernel_names(ptx, a, &names, &n, &err) &&
              simt_compile(ptx, names, n, &opt, a, &built, &err);
    if (!ok)
        fprintf(stderr, "%s\n", err.text);
    for (size_t i = 0; ok && i < ARRAY_LEN(cases); i++)
        if (argc > 3 && !strstr(cases[i].kernel, argv[3]))
            continue;
        else if (argc > 4)
            overhead(built.so_path, &cases[i], sample, strcmp(argv[4], "checks") == 0);
        else
            count(built.so_path, &cases[i], sample);
    arena_free(a);
    return !ok;
}
