/*
 * bench.c - times the device on known kernels and checks their results.
 *
 *   simt_bench PTX_DIR [--threads N] [--check off|memory|full] [--no-counters] [--wall]
 *              [--lanes N] [--repeat N] [--seconds S] [--twice] [--block X,Y] [CASE...]
 *
 * PTX_DIR holds simple.ptx, sgemm.ptx, hgemm.ptx: the kernels of bench/simt/speed, built with
 * nvcc -ptx -lineinfo (bench/simt/speed.sh does). One line per case: seconds (of the processor with
 * one thread, unless --wall) of the best run, rate, error, and how many CPUs were busy. Runs are
 * repeated N times and at least for S seconds. --twice: two processes run the whole case at the
 * same time, and the seconds are of the slower: what the machine's two cores can do, whatever
 * threads of one process share.
 */
#include "simt/emit/translate.h"
#include "simt/simt.h"

#include "base/fs.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct bench {
    const char *dir;
    struct simt *dev;
    struct arena *a;
    struct error err;
    int bad;
    int lanes;
    int repeat;
    double seconds;
    double busy;     /* processor time over the clock's, of the best run */
    bool one_thread; /* time the processor, not the clock on the wall */
    bool twice;
    uint32_t block[2]; /* of the naive products */
} B;

/* What two processes share. */
struct meeting {
    _Atomic int came;
    double seconds[2];
};

static void meet(struct meeting *m, int turn)
{
    atomic_fetch_add(&m->came, 1);
    while (atomic_load(&m->came) < 2 * turn)
        sched_yield();
}

static double seconds_of(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float rnd(void)
{
    static uint32_t s = 1;
    s = s * 1664525u + 1013904223u;
    return (float)(s >> 8) * (1.0f / 16777216.0f) - 0.5f;
}

static void *buffer(size_t bytes, const char *name)
{
    void *p = aligned_alloc(256, (bytes + 255) / 256 * 256);
    memset(p, 0, bytes);
    simt_alloc_register(B.dev, p, bytes, name, SIMT_ALLOC_WRITTEN);
    return p;
}

static void drop(void *p)
{
    simt_alloc_forget(B.dev, p);
    free(p);
}

struct args {
    unsigned char data[256];
    size_t len;
};

static void arg(struct args *x, const void *v, size_t n)
{
    x->len = (x->len + n - 1) / n * n;
    memcpy(x->data + x->len, v, n);
    x->len += n;
}
#define ARG(x, v) arg(&(x), &(v), sizeof(v))

static double best(const char *file, const char *kernel, const uint32_t g[3], const uint32_t b[3],
                   uint32_t smem, const struct args *x)
{
    struct text ptx;
    struct simt_built built;
    struct simt_module *m;
    struct translate_options opt = {.lanes = B.lanes};
    char *path = path_join(B.a, B.dir, file);
    if (!file_read(path, 64 << 20, B.a, &ptx, &B.err) ||
        !simt_compile(ptx, &kernel, 1, &opt, B.a, &built, &B.err) ||
        !simt_load(B.dev, built.so_path, &m, &B.err)) {
        printf("%s: %s\n", kernel, B.err.text);
        exit(1);
    }
    struct simt_launch l = {.kernel = kernel,
                            .grid = {g[0], g[1], g[2]},
                            .block = {b[0], b[1], b[2]},
                            .shared_bytes = smem,
                            .params = x->data,
                            .param_bytes = x->len};
    double t = 1e30;
    struct meeting *both = NULL;
    pid_t other = 0;
    if (B.twice) {
        both = mmap(NULL, sizeof *both, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (both == MAP_FAILED || (other = fork()) < 0)
            exit(1);
    }
    double spent = 0;
    for (int i = 0; i < B.repeat || spent < B.seconds; i++) {
        struct simt_result r;
        if (both)
            meet(both, 2 * i + 1);
        double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID), wall = seconds_of(CLOCK_MONOTONIC);
        bool ran = simt_launch(B.dev, m, &l, B.a, &r, &B.err);
        cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        wall = seconds_of(CLOCK_MONOTONIC) - wall;
        if (B.one_thread)
            r.seconds = cpu;
        if (both) {
            both->seconds[other == 0] = r.seconds;
            meet(both, 2 * i + 2);
            r.seconds = both->seconds[both->seconds[1] > both->seconds[0]];
        }
        if (!ran) {
            printf("%s: %s\n", kernel, B.err.text);
            exit(1);
        }
        if (i == 0 && (r.outcome != SIMT_OK || r.finding_count)) {
            B.bad++;
            printf("  %s: %s, %zu findings: %s\n", kernel, simt_outcome_name(r.outcome),
                   r.finding_count, r.finding_count ? r.findings[0].text : r.text);
        }
        if (r.seconds < t)
            B.busy = cpu / wall;
        t = r.seconds < t ? r.seconds : t;
        spent += r.seconds;
    }
    if (both && !other)
        _exit(0);
    if (both) {
        waitpid(other, NULL, 0);
        munmap(both, sizeof *both);
    }
    return t;
}

static void report(const char *name, double t, double work, const char *unit, double err,
                   double limit)
{
    bool ok = err <= limit;
    B.bad += !ok;
    printf("%-12s %9.4f s %8.2f %s  error %.2e %s  busy %.2f\n", name, t, work / t * 1e-9, unit,
           err, ok ? "ok" : "WRONG", B.busy);
    fflush(stdout);
}

static double worse(double e, double d)
{
    return d <= e ? e : d == d ? d : 1e30;
}

static void case_gelu(void)
{
    int n4 = 1 << 22, n = 4 * n4;
    float *x = buffer(4 * (size_t)n, "x"), *y = buffer(4 * (size_t)n, "y");
    for (int i = 0; i < n; i++)
        x[i] = 8 * rnd();
    struct args v = {0};
    ARG(v, x);
    ARG(v, y);
    ARG(v, n4);
    double t = best("simple.ptx", "gelu4", (uint32_t[]){1024, 1, 1}, (uint32_t[]){256, 1, 1}, 0,
                    &v),
           e = 0;
    for (int i = 0; i < n; i += 7) {
        double q = x[i], r = q / (1 + exp(-2 * 0.7978845608 * (q + 0.044715 * q * q * q)));
        e = worse(e, fabs(r - y[i]) / (1e-3 + fabs(r)));
    }
    report("gelu4", t, n, "Gelem/s", e, 1e-5);
    drop(x);
    drop(y);
}

static void softmax(const char *k, bool per_warp)
{
    int R = 16384, C = 1024;
    float *x = buffer(4 * (size_t)R * (size_t)C, "x"), *y = buffer(4 * (size_t)R * (size_t)C, "y");
    for (size_t i = 0; i < (size_t)R * (size_t)C; i++)
        x[i] = 10 * rnd();
    struct args v = {0};
    ARG(v, x);
    ARG(v, y);
    if (per_warp)
        ARG(v, R);
    else
        ARG(v, C);
    double t = best("simple.ptx", k, (uint32_t[]){(uint32_t)(per_warp ? R / 8 : R), 1, 1},
                    (uint32_t[]){256, 1, 1}, 0, &v),
           e = 0;
    for (int r = 0; r < R; r += 17) {
        const float *row = x + (size_t)r * (size_t)C, *out = y + (size_t)r * (size_t)C;
        double s = 0;
        for (int c = 0; c < C; c++)
            s += exp(row[c]);
        for (int c = 0; c < C; c++)
            e = worse(e, fabs(exp(row[c]) / s - out[c]) / (exp(row[c]) / s));
    }
    report(k, t, (double)R * C, "Gelem/s", e, 1e-5);
    drop(x);
    drop(y);
}

static void case_softmax(void)
{
    softmax("softmax", false);
}
static void case_softmaxW(void)
{
    softmax("softmaxW", true);
}

static void matmul(const char *k, bool strided)
{
    int M = 512, N = 512, K = 512;
    float *a = buffer(4 * 512 * 512, "A"), *b = buffer(4 * 512 * 512, "B"),
          *c = buffer(4 * 512 * 512, "C");
    for (int i = 0; i < M * K; i++)
        a[i] = rnd();
    for (int i = 0; i < N * K; i++)
        b[i] = rnd();
    struct args v = {0};
    ARG(v, a);
    ARG(v, b);
    ARG(v, c);
    ARG(v, M);
    ARG(v, N);
    ARG(v, K);
    (void)strided;
    uint32_t bx = B.block[0], by = B.block[1];
    uint32_t grid[] = {(512 + bx - 1) / bx, (512 + by - 1) / by, 1}, block[] = {bx, by, 1};
    double t = best("simple.ptx", k, grid, block, 0, &v), e = 0;
    for (int i = 0; i < M; i += 7)
        for (int j = 0; j < N; j++) {
            double s = 0;
            for (int q = 0; q < K; q++)
                s += (double)a[i * K + q] * (double)b[q * N + j];
            e = worse(e, fabs(s - c[i * N + j]));
        }
    report(k, t, 2.0 * M * N * K, "GFLOP/s", e, 1e-3);
    drop(a);
    drop(b);
    drop(c);
}

static void case_matmul(void)
{
    matmul("matmul", false);
}
static void case_matmulS(void)
{
    matmul("matmulS", true);
}

static void case_sgemm(void)
{
    int M = 512, N = 512, K = 512;
    float *a = buffer(4 * 512 * 512, "A"), *b = buffer(4 * 512 * 512, "B"),
          *c = buffer(4 * 512 * 512, "C");
    for (int i = 0; i < M * K; i++)
        a[i] = rnd();
    for (int i = 0; i < N * K; i++)
        b[i] = rnd();
    struct args v = {0};
    ARG(v, M);
    ARG(v, N);
    ARG(v, K);
    ARG(v, a);
    ARG(v, b);
    ARG(v, c);
    double t = best("sgemm.ptx", "cute_sgemm", (uint32_t[]){4, 4, 1}, (uint32_t[]){256, 1, 1}, 0,
                    &v),
           e = 0;
    for (int j = 0; j < N; j += 7)
        for (int i = 0; i < M; i++) {
            double s = 0;
            for (int q = 0; q < K; q++)
                s += (double)a[q * M + i] * (double)b[q * N + j];
            e = worse(e, fabs(s - c[j * M + i]));
        }
    report("cute_sgemm", t, 2.0 * M * N * K, "GFLOP/s", e, 1e-3);
    drop(a);
    drop(b);
    drop(c);
}

static void case_hgemm(void)
{
    int M = 512, N = 512, K = 512;
    _Float16 *a = buffer(2 * 512 * 512, "A"), *b = buffer(2 * 512 * 512, "B");
    float *c = buffer(4 * 512 * 512, "C");
    for (int i = 0; i < M * K; i++)
        a[i] = (_Float16)rnd();
    for (int i = 0; i < N * K; i++)
        b[i] = (_Float16)rnd();
    struct args v = {0};
    ARG(v, M);
    ARG(v, N);
    ARG(v, K);
    ARG(v, a);
    ARG(v, b);
    ARG(v, c);
    double t = best("hgemm.ptx", "cute_hgemm", (uint32_t[]){4, 4, 1}, (uint32_t[]){128, 1, 1},
                    2 * 3 * 2 * 128 * 64, &v),
           e = 0;
    for (int j = 0; j < N; j += 7)
        for (int i = 0; i < M; i++) {
            double s = 0;
            for (int q = 0; q < K; q++)
                s += (double)a[i * K + q] * (double)b[j * K + q];
            e = worse(e, fabs(s - c[j * M + i]));
        }
    report("cute_hgemm", t, 2.0 * M * N * K, "GFLOP/s", e, 1e-3);
    drop(a);
    drop(b);
    drop(c);
}

static void case_mandel(void)
{
    int w = 1024, h = 1024, it = 256;
    int *o = buffer(4 * 1024 * 1024, "out");
    struct args v = {0};
    ARG(v, o);
    ARG(v, w);
    ARG(v, h);
    ARG(v, it);
    double t = best("simple.ptx", "mandel", (uint32_t[]){1024 * 1024 / 256, 1, 1},
                    (uint32_t[]){256, 1, 1}, 0, &v);
    long bad = 0, total = 0;
    for (int i = 0; i < w * h; i++) {
        int px = i % w, py = i / w, k = 0;
        float cr = 3.f * (float)px / (float)w - 2.f, ci = -1.5f + 3.f * (float)py / (float)h,
              zr = 0, zi = 0;
        while (k < it && fmaf(zr, zr, zi * zi) < 4.f) {
            float q = fmaf(zr, zr, -(zi * zi)) + cr;
            zi = fmaf(zr + zr, zi, ci);
            zr = q;
            k++;
        }
        total += o[i];
        bad += o[i] != k;
    }
    report("mandel", t, (double)total, "Giter/s", (double)bad / (w * h), 0.02);
    drop(o);
}

static void case_diverge(void)
{
    int n = 1 << 18;
    int *x = buffer(4 << 18, "x"), *o = buffer(4 << 18, "out");
    uint32_t s = 1;
    for (int i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        x[i] = 1 + (int)((s >> 12) % 200000);
    }
    struct args v = {0};
    ARG(v, x);
    ARG(v, o);
    ARG(v, n);
    double t = best("simple.ptx", "diverge", (uint32_t[]){(1 << 18) / 256, 1, 1},
                    (uint32_t[]){256, 1, 1}, 0, &v);
    long bad = 0, total = 0;
    for (int i = 0; i < n; i++) {
        unsigned q = (unsigned)x[i], mx = q;
        int c = 0;
        while (q != 1) {
            if (q & 1) {
                q = 3 * q + 1;
                mx = q > mx ? q : mx;
            } else {
                q >>= 1;
            }
            c++;
        }
        bad += o[i] != (int)((unsigned)c * 1000003u + mx);
        total += c;
    }
    report("diverge", t, (double)total, "Giter/s", (double)bad, 0);
    drop(x);
    drop(o);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"gelu", case_gelu},       {"softmax", case_softmax}, {"softmaxW", case_softmaxW},
                 {"sgemm", case_sgemm},     {"hgemm", case_hgemm},     {"matmul", case_matmul},
                 {"matmulS", case_matmulS}, {"mandel", case_mandel},   {"diverge", case_diverge}};
    struct simt_config c = {.threads = 1, .check = SIMT_CHECK_MEMORY, .counters = true};
    bool picked = false, wall = false;
    if (argc < 2)
        return 2;
    B.dir = argv[1];
    B.repeat = 3;
    B.block[0] = 32;
    B.block[1] = 8;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            c.threads = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--no-counters") == 0)
            c.counters = false;
        else if (strcmp(argv[i], "--lanes") == 0 && i + 1 < argc)
            B.lanes = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--repeat") == 0 && i + 1 < argc)
            B.repeat = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            B.seconds = strtod(argv[++i], NULL);
        else if (strcmp(argv[i], "--block") == 0 && i + 1 < argc) {
            char *y;
            B.block[0] = (uint32_t)strtoul(argv[++i], &y, 10);
            B.block[1] = *y ? (uint32_t)strtoul(y + 1, NULL, 10) : 1;
        } else if (strcmp(argv[i], "--wall") == 0)
            wall = true;
        else if (strcmp(argv[i], "--twice") == 0)
            B.twice = wall = true;
        else if (strcmp(argv[i], "--check") == 0 && i + 1 < argc)
            c.check = argv[++i][0] == 'o' ? SIMT_CHECK_OFF
                      : argv[i][0] == 'f' ? SIMT_CHECK_FULL
                                          : SIMT_CHECK_MEMORY;
        else
            picked = true;
    }
    B.a = arena_new();
    B.one_thread = c.threads == 1 && !wall;
    if (!simt_open(&c, &B.dev, &B.err))
        return 1;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bool go = !picked;
        for (int j = 2; j < argc; j++)
            go |= strcmp(argv[j], cases[i].name) == 0;
        if (go)
            cases[i].run();
    }
    simt_close(B.dev);
    arena_free(B.a);
    return B.bad != 0;
}
