/*
 * test_kernels.c - every kernel of kernels.def gives what a plain reference in
 * double gives, without a finding at the strictest level, in any warp order.
 *
 *   test_simt_kernels                as in the test suite
 *   test_simt_kernels RESULTS.bin    beside what bench/simt/differential.c got
 *                                    from a GPU; prints the table
 */
#include "support.h"

#include "kernels.h"

#include <stdio.h>

struct outcome {
    void *buf[4];
    struct simt_result r;
};

static const char *gpu_results; /* set by main alone */

static size_t buffer_bytes(const struct kernel_row *r, int i)
{
    return (size_t)r->count[i] * kernel_bytes(r->types[i]);
}

static void run(const struct kernel_row *r, const char *so, const struct simt_config *c,
                struct arena *a, struct outcome *out)
{
    static const char *const names[] = {"a", "b", "c", "out"};
    struct error err = {0};
    struct bench_args x = {0};
    struct simt *dev;
    struct simt_module *mod;
    assert_true(simt_open(c, &dev, &err));
    for (int i = 0; i < 4; i++) {
        size_t bytes = buffer_bytes(r, i);
        out->buf[i] = aligned_alloc(256, (bytes + 255) / 256 * 256);
        memset(out->buf[i], 0, bytes);
        if (i < 3)
            kernel_fill(r, i, out->buf[i]);
        /* Some kernels add to what is there, so out counts as written. */
        simt_alloc_register(dev, out->buf[i], bytes, names[i],
                            i < 3 ? SIMT_ALLOC_READONLY | SIMT_ALLOC_WRITTEN : SIMT_ALLOC_WRITTEN);
        put_arg(&x, &out->buf[i], 8);
    }
    put_arg(&x, &r->m, 4);
    put_arg(&x, &r->n, 4);
    put_arg(&x, &r->k, 4);
    if (!simt_load(dev, so, &mod, &err))
        fail_msg("%s", err.text);
    struct simt_launch l = {.kernel = r->name,
                            .grid = {r->grid[0], r->grid[1], r->grid[2]},
                            .block = {r->block[0], r->block[1], 1},
                            .shared_bytes = r->shared_bytes,
                            .params = x.data,
                            .param_bytes = x.len};
    if (!simt_launch(dev, mod, &l, a, &out->r, &err))
        fail_msg("%s: %s", r->name, err.text);
    simt_close(dev);
}

static void outcome_free(struct outcome *o)
{
    for (int i = 0; i < 4; i++)
        free(o->buf[i]);
}

/* The largest difference, relative to the largest number wanted. NaN: ignored. */
static double difference(const struct kernel_row *r, const void *got, const double *want)
{
    double most = 0, size = 1e-300;
    for (int i = 0; i < r->count[3]; i++) {
        double g = kernel_get(r->types[3], got, i);
        if (isnan(want[i]))
            continue;
        most = fmax(most, isnan(g) ? (double)INFINITY : fabs(g - want[i]));
        size = fmax(size, fabs(want[i]));
    }
    return most / size;
}

static double *reference(const struct kernel_row *r, const struct outcome *o, struct arena *a)
{
    double *in[4];
    for (int i = 0; i < 4; i++) {
        in[i] = arena_array(a, (size_t)r->count[i], sizeof(double));
        for (int j = 0; j < r->count[i] && i < 3; j++)
            in[i][j] = kernel_get(r->types[i], o->buf[i], j);
    }
    r->reference(r, in[0], in[1], in[2], in[3]);
    return in[3];
}

/* One shared object per file of kernels. */
static const char *so_of(const struct kernel_row *r, struct arena *a)
{
    static char file[32], path[4096];
    if (strcmp(file, r->file) != 0) {
        snprintf(file, sizeof file, "%s", r->file);
        snprintf(path, sizeof path, "%s", compile_file(arena_printf(a, "%s.ptx", r->file), a));
    }
    return path;
}

static void kernels_hold(const struct simt_config *c, bool check_values)
{
    int bad = 0;
    for (int i = 0; i < KERNELS; i++) {
        const struct kernel_row *r = &kernel_rows[i];
        struct arena *a = arena_new();
        struct outcome o;
        run(r, so_of(r, a), c, a, &o);
        double off =
            check_values && r->reference ? difference(r, o.buf[3], reference(r, &o, a)) : 0;
        if (o.r.outcome != SIMT_OK || o.r.finding_count || !(off <= r->tolerance)) {
            print_error("%s: %s, off by %g, %zu findings: %s\n", r->name,
                        o.r.outcome == SIMT_OK ? "ran" : o.r.text, off, o.r.finding_count,
                        o.r.finding_count ? o.r.findings[0].text : "");
            bad++;
        }
        outcome_free(&o);
        arena_free(a);
    }
    assert_int_equal(bad, 0);
}

static void every_kernel_is_right_and_without_a_finding(void **state)
{
    (void)state;
    struct simt_config c = {.threads = 2, .check = SIMT_CHECK_FULL, .watchdog_ms = 1200000};
    kernels_hold(&c, true);
}

static void the_order_of_warps_brings_no_finding(void **state)
{
    (void)state;
    struct simt_config c = {.threads = 2,
                            .check = SIMT_CHECK_FULL,
                            .watchdog_ms = 1200000,
                            .warp_order_seed = 11,
                            .exact_mma = true};
    kernels_hold(&c, true);
}

/* ---- beside a GPU ---- */

static bool beside(const struct kernel_row *r, const char *file, size_t len, struct arena *a)
{
    struct simt_config c = {.threads = 2, .check = SIMT_CHECK_MEMORY, .exact_mma = true};
    struct outcome o;
    size_t bytes = buffer_bytes(r, 3), at = 0;
    for (int i = 0; i < KERNELS && at + 64 <= len; i++) {
        if (strncmp(file + at, r->name, 64) == 0)
            break;
        for (int j = 0; j < KERNELS; j++)
            if (strncmp(file + at, kernel_rows[j].name, 64) == 0) {
                at += 64 + buffer_bytes(&kernel_rows[j], 3);
                break;
            }
    }
    if (at + 64 + bytes > len || strncmp(file + at, r->name, 64) != 0) {
        printf("%-20s not in the file\n", r->name);
        return false;
    }
    const char *gpu = file + at + 64;
    run(r, so_of(r, a), &c, a, &o);
    double *want = arena_array(a, (size_t)r->count[3], sizeof *want);
    double *ref = r->reference ? reference(r, &o, a) : NULL;
    int equal = 0;
    size_t each = kernel_bytes(r->types[3]);
    for (int i = 0; i < r->count[3]; i++) {
        want[i] = ref && isnan(ref[i]) ? (double)NAN : kernel_get(r->types[3], gpu, i);
        equal += memcmp(gpu + (size_t)i * each, (char *)o.buf[3] + (size_t)i * each, each) == 0;
    }
    double apart = difference(r, o.buf[3], want);
    /* A reference that no device rounds like says nothing of two devices. */
    double allowed = r->tolerance > 1e-4 ? 1e-5 : r->tolerance;
    bool ok = o.r.outcome == SIMT_OK && apart <= allowed;
    printf("| %-18s | %6d of %6d | %9.2e | %9.2e | %9.2e | %s |\n", r->name, equal, r->count[3],
           apart, ref ? difference(r, o.buf[3], ref) : 0, ref ? difference(r, gpu, ref) : 0,
           ok ? "same" : "DIFFERENT");
    outcome_free(&o);
    return ok;
}

static void every_kernel_gives_on_simt_what_it_gives_on_the_gpu(void **state)
{
    struct arena *a = arena_new();
    struct error err = {0};
    struct text file;
    int bad = 0;
    (void)state;
    if (!file_read(gpu_results, 64 << 20, a, &file, &err))
        fail_msg("%s", err.text);
    printf("| kernel | bit-equal outputs | simt - GPU | simt - f64 | GPU - f64 | |\n"
           "|---|---|---|---|---|---|\n");
    for (int i = 0; i < KERNELS; i++)
        bad += !beside(&kernel_rows[i], file.data, file.len, a);
    arena_free(a);
    assert_int_equal(bad, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_is_right_and_without_a_finding),
        cmocka_unit_test(the_order_of_warps_brings_no_finding),
    };
    const struct CMUnitTest gpu[] = {
        cmocka_unit_test(every_kernel_gives_on_simt_what_it_gives_on_the_gpu),
    };
    if (argc < 2)
        return cmocka_run_group_tests(tests, NULL, NULL);
    gpu_results = argv[1];
    return cmocka_run_group_tests(gpu, NULL, NULL);
}
