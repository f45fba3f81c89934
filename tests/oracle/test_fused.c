/*
 * test_fused.c - the oracle's own kernels (oracle/fused.ptx) say what plain C says, under every
 * check of simt.
 *
 * On a GPU they are held against torch before they are used; here there is no GPU.
 */
#include "../simt/support.h"

#include <math.h>
#include <stdio.h>

enum { N = 3001, BLOCKS = 3, THREADS = 256, RESULTS = 6 };

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
        b->got[i] = (float)(b->truth[i] + 1e-4 * cos(i * 1.1));
        b->reference[i] = (float)(b->truth[i] - 1e-5 * cos(i * 0.7));
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

static void magnitudes_are_added_up(void **state)
{
    struct bench *b = *state;
    struct bench_args x = {0};
    double sum = 0, square = 0;
    uint64_t n = N;

    for (int i = 0; i < N; i++) {
        sum += fabs(b->truth[i]);
        square += b->truth[i] * b->truth[i];
    }
    put_arg(&x, &b->truth, 8);
    put_arg(&x, &n, 8);
    put_arg(&x, &b->out, 8);
    run(b, "magnitude", &x);
    near(b->out[0], sum);
    near(b->out[1], square);
    near(b->out[2], 0);
}

/* Both types: `wide` gives an element as a double. */
static void errors_of(struct bench *b, const char *kernel, const void *got, const void *reference,
                      double (*wide)(const void *, int))
{
    struct bench_args x = {0};
    double want[5] = {0}, scale = 2.5;
    uint64_t n = N;

    put_arg(&x, &got, 8);
    put_arg(&x, &reference, 8);
    put_arg(&x, &b->truth, 8);
    put_arg(&x, &n, 8);
    put_arg(&x, &scale, 8);
    put_arg(&x, &b->err, 8);
    put_arg(&x, &b->out, 8);
    run(b, kernel, &x);
    for (int i = 0; i < N; i++) {
        double t = b->truth[i], weight = fabs(t) + scale;
        double off = fabs(wide(got, i) - t), ref_off = fabs(wide(reference, i) - t);

        want[0] += off * off;
        want[1] += ref_off * ref_off;
        want[2] = fmax(want[2], off);
        want[3] = fmax(want[3], ref_off);
        want[4] = fmax(want[4], ref_off / weight);
        assert_true(fabs(b->err[i] - off / weight) <= 1e-6 * off / weight);
    }
    for (int i = 0; i < 5; i++)
        near(b->out[i], want[i]);
    near(b->out[5], 0);
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
    errors_of(b, "errors_f16", b->got_half, b->reference_half, of_half);
}

static void what_is_not_finite_is_counted(void **state)
{
    struct bench *b = *state;
    struct bench_args x = {0};
    double scale = 1.0;
    uint64_t n = N;

    b->got[7] = NAN;
    b->got[2999] = INFINITY;
    b->reference[7] = NAN;
    put_arg(&x, &b->got, 8);
    put_arg(&x, &b->reference, 8);
    put_arg(&x, &b->truth, 8);
    put_arg(&x, &n, 8);
    put_arg(&x, &scale, 8);
    put_arg(&x, &b->err, 8);
    put_arg(&x, &b->out, 8);
    run(b, "errors_f32", &x);
    near(b->out[5], 2);
}

static void errors_above_a_limit_are_counted(void **state)
{
    struct bench *b = *state;
    struct bench_args x = {0};
    float one = 1.0f, two = 0.25f;
    uint64_t n = N;

    for (int i = 0; i < N; i++)
        b->err[i] = (float)i / 1000.0f;
    simt_alloc_forget(b->dev, b->err);
    simt_alloc_register(b->dev, b->err, N * sizeof(float), "err", SIMT_ALLOC_WRITTEN);
    put_arg(&x, &b->err, 8);
    put_arg(&x, &n, 8);
    put_arg(&x, &one, 4);
    put_arg(&x, &two, 4);
    put_arg(&x, &b->out, 8);
    run(b, "above", &x);
    near(b->out[0], 2000);
    near(b->out[1], 2750);
    near(b->out[2], (double)(float)3.0f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(magnitudes_are_added_up),
        TEST(errors_are_those_of_plain_c),
        TEST(what_is_not_finite_is_counted),
        TEST(errors_above_a_limit_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
