/*
 * test_fused.c - the oracle's own kernels (oracle/fused.ptx) say what plain C says, under every
 * check of simt.
 *
 * On a GPU they are held against torch before they are used; here there is no GPU.
 */
#include "../simt/support.h"

#include <math.h>
#include <stdio.h>

/* Rows are divided evenly: into blocks of 136 and 137 elements. */
enum { ROWS = 11, COLUMNS = 273, SEGMENTS = 2, N = ROWS * COLUMNS, PLACES = ROWS * SEGMENTS };
enum { BLOCKS = 3, THREADS = 256, RESULTS = 12 };
static const double rtol = 1e-4, rms = 2e-5, least = 1e-30;

struct bench {
    struct arena *a;
    struct simt *dev;
    struct simt_module *mod;
    double *truth, *out;
    float *got, *reference, *err;
    uint16_t *got_half, *reference_half;
};

static void *room(struct bench *b, size_t bytes, const char *name, unsigned flags)
{
    void *p = aligned_alloc(256, (bytes + 255) / 256 * 256);

    memset(p, 0, (bytes + 255) / 256 * 256);
    simt_alloc_register(b->dev, p, bytes, name, flags);
    return p;
}

static int set_up(void **state)
{
    const unsigned input = SIMT_ALLOC_READONLY | SIMT_ALLOC_WRITTEN;
    struct simt_config config = {.threads = 2, .check = SIMT_CHECK_FULL};
    struct bench *b = test_calloc(1, sizeof *b);
    struct error err = {0};
    struct text ptx;

    b->a = arena_new();
    if (!file_read(FUSED_PTX, 1 << 20, b->a, &ptx, &err) || !simt_open(&config, &b->dev, &err) ||
        !simt_load(b->dev, compile_text(ptx, b->a), &b->mod, &err))
        fail_msg("%s", err.text);
    b->truth = room(b, N * sizeof(double), "truth", input);
    b->got = room(b, N * sizeof(float), "got", input);
    b->reference = room(b, N * sizeof(float), "reference", input);
    b->got_half = room(b, N * sizeof(uint16_t), "got_half", input);
    b->reference_half = room(b, N * sizeof(uint16_t), "reference_half", input);
    b->err = room(b, N * sizeof(float), "err", 0);
    b->out = room(b, RESULTS * sizeof(double), "out", SIMT_ALLOC_WRITTEN);
    for (int i = 0; i < N; i++) {
        b->truth[i] = sin(i * 0.37) * (1 + i % 7);
        b->got[i] = (float)(b->truth[i] + (i % 5 ? 2e-4 : 2e-3) * cos(i * 1.1));
        b->reference[i] = (float)(b->truth[i] - 1e-6 * cos(i * 0.7));
        b->got_half[i] = (uint16_t)(0x3c00 + i % 512); /* 1 + k/1024 */
        b->reference_half[i] = 0x3c00;
    }
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;

    simt_close(b->dev);
    free(b->truth);
    free(b->got);
    free(b->reference);
    free(b->got_half);
    free(b->reference_half);
    free(b->err);
    free(b->out);
    arena_free(b->a);
    test_free(b);
    return 0;
}

static void run(struct bench *b, const char *kernel, const struct bench_args *x)
{
    struct simt_launch launch = {.kernel = kernel,
                                 .grid = {BLOCKS, 1, 1},
                                 .block = {THREADS, 1, 1},
                                 .params = x->data,
                                 .param_bytes = x->len};
    struct error err = {0};
    struct simt_result said;

    memset(b->out, 0, RESULTS * sizeof(double));
    if (!simt_launch(b->dev, b->mod, &launch, b->a, &said, &err))
        fail_msg("%s", err.text);
    assert_int_equal(said.outcome, SIMT_OK);
    assert_int_equal(said.finding_count, 0);
}

static void near(double got, double wanted)
{
    if (fabs(got - wanted) > 1e-12 * fabs(wanted))
        fail_msg("%.17g, not %.17g", got, wanted);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The lower one; of what is not zero, if zeros do not count. */
static double median(const double *v, int count, bool zeros)
{
    double sorted[COLUMNS];
    int n = 0;

    for (int i = 0; i < count; i++)
        if (zeros || v[i] != 0)
            sorted[n++] = v[i];
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    return n ? (double)(float)sorted[(n - 1) / 2] : 0;
}

struct wanted {
    double square, ref_square, most, ref_most, rel, ref_rel, beyond, off, off_blocks, sum,
        truth_square, odd;
};

/* One block: `size` elements from `from` on. */
static void plain_block(const struct bench *b, double (*wide)(const void *, int), const void *got,
                        const void *reference, int from, int size, struct wanted *w)
{
    double t[COLUMNS], off[COLUMNS], ref[COLUMNS], scale, usual, ref_most = 0;
    int far = 0;

    for (int i = 0; i < size; i++) {
        t[i] = fabs(b->truth[from + i]);
        off[i] = fabs(wide(got, from + i) - b->truth[from + i]);
        ref[i] = fabs(wide(reference, from + i) - b->truth[from + i]);
        ref_most = fmax(ref_most, ref[i]);
    }
    scale = median(t, size, false);
    usual = median(ref, size, true);
    usual = scale < usual ? ref_most : usual;
    for (int i = 0; i < size; i++) {
        double weight = t[i] + (scale + least);
        double allowed = fmax(fmax(weight * rtol, 16 * usual), 8 * ref[i]);

        far += off[i] > fmax(weight * rms, 8 * usual);
        w->beyond += off[i] > allowed;
        w->square += off[i] * off[i];
        w->ref_square += ref[i] * ref[i];
        w->most = fmax(w->most, off[i]);
        w->ref_most = fmax(w->ref_most, ref[i]);
        w->rel = fmax(w->rel, off[i] / weight);
        w->ref_rel = fmax(w->ref_rel, ref[i] / weight);
        w->sum += t[i];
        w->truth_square += t[i] * t[i];
        assert_true(fabs(b->err[from + i] - off[i] / allowed) <= 1e-6 * off[i] / allowed);
    }
    w->off += far;
    w->off_blocks += 2 * far > size;
}

static void launch(struct bench *b, const char *kernel, const void *got, const void *reference)
{
    struct bench_args x = {0};
    uint64_t sizes[] = {PLACES, COLUMNS, SEGMENTS};

    put_arg(&x, &got, 8);
    put_arg(&x, &reference, 8);
    put_arg(&x, &b->truth, 8);
    for (int i = 0; i < 3; i++)
        put_arg(&x, &sizes[i], 8);
    put_arg(&x, &rtol, 8);
    put_arg(&x, &rms, 8);
    put_arg(&x, &least, 8);
    put_arg(&x, &b->err, 8);
    put_arg(&x, &b->out, 8);
    run(b, kernel, &x);
}

/* All types: `wide` gives an element as a double. */
static void errors_of(struct bench *b, const char *kernel, const void *got, const void *reference,
                      double (*wide)(const void *, int))
{
    struct wanted w = {0};
    const double *want = &w.square;

    launch(b, kernel, got, reference);
    for (int k = 0; k < PLACES; k++) {
        int row = k / SEGMENTS * COLUMNS, part = k % SEGMENTS;
        int from = row + part * COLUMNS / SEGMENTS, to = row + (part + 1) * COLUMNS / SEGMENTS;

        plain_block(b, wide, got, reference, from, to - from, &w);
    }
    for (int i = 0; i < RESULTS; i++)
        near(b->out[i], want[i]);
}

static double of_float(const void *p, int i)
{
    return ((const float *)p)[i];
}

static double of_half(const void *p, int i)
{
    return 1.0 + (((const uint16_t *)p)[i] - 0x3c00) / 1024.0;
}

static void errors_are_those_of_plain_c(void **state)
{
    struct bench *b = *state;

    errors_of(b, "errors_f32", b->got, b->reference, of_float);
    assert_true(b->out[6] > 0 && b->out[6] < N && b->out[7] > 0 && b->out[8] > 0);
    errors_of(b, "errors_f16", b->got_half, b->reference_half, of_half);
}

static void what_is_not_finite_is_counted(void **state)
{
    struct bench *b = *state;

    b->got[7] = NAN;
    b->got[2999] = INFINITY;
    b->reference[7] = NAN;
    launch(b, "errors_f32", b->got, b->reference);
    near(b->out[11], 2);
}

/* A row of small numbers among large ones is held against itself. */
static void no_row_hides_behind_another(void **state)
{
    struct bench *b = *state;

    for (int i = 0; i < N; i++) {
        b->truth[i] = (i / COLUMNS == 3 ? 1e-12 : 1e6) * (1 + 0.5 * sin(i));
        b->got[i] = b->reference[i] = (float)b->truth[i];
    }
    launch(b, "errors_f32", b->got, b->reference);
    near(b->out[6], 0);
    for (int i = 3 * COLUMNS; i < 4 * COLUMNS; i++)
        b->got[i] = 0;
    launch(b, "errors_f32", b->got, b->reference);
    near(b->out[6], COLUMNS);
    near(b->out[8], SEGMENTS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(errors_are_those_of_plain_c),
        TEST(what_is_not_finite_is_counted),
        TEST(no_row_hides_behind_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
