/*
 * test_device.c - the device runs whole kernels right, and the checker finds
 * each mistake of kernels/bugs.cu on its line and nothing in its twin.
 */
#include "support.h"

#include <math.h>
#include <stdio.h>

enum { N = 256 };

struct run {
    struct arena *a;
    float *in, *out;
    struct simt *dev;
    struct simt_module *mod;
};

enum { PATIENCE_MS = 1200000 }; /* for what ends */

static char *so_of[2]; /* bugs, parts: compiled once, set before the tests run */

static void run_begin(struct run *r, char *so, enum simt_check check, unsigned out_flags,
                      int watchdog_ms, uint64_t seed)
{
    struct simt_config c = {.threads = 2,
                            .check = check,
                            .counters = true,
                            .watchdog_ms = watchdog_ms,
                            .warp_order_seed = seed};
    struct error err = {0};
    *r = (struct run){.a = arena_new()};
    assert_true(simt_open(&c, &r->dev, &err));
    r->in = aligned_alloc(256, N * sizeof(float));
    r->out = aligned_alloc(256, 4 * N * sizeof(float));
    for (int i = 0; i < N; i++)
        r->in[i] = (float)((i * 37) % 101) / 101.0f;
    memset(r->out, 0, 4 * N * sizeof(float));
    simt_alloc_register(r->dev, r->in, 128 * sizeof(float), "in",
                        SIMT_ALLOC_READONLY | SIMT_ALLOC_WRITTEN);
    simt_alloc_register(r->dev, r->out, 128 * sizeof(float), "out", out_flags);
    if (!simt_load(r->dev, so, &r->mod, &err))
        fail_msg("%s", err.text);
}

static struct simt_result run_kernel(struct run *r, const char *kernel, uint32_t grid,
                                     const uint32_t block[3], int n)
{
    struct bench_args x = {0};
    struct error err = {0};
    struct simt_result out;
    put_arg(&x, &r->in, 8);
    put_arg(&x, &r->out, 8);
    put_arg(&x, &n, 4);
    struct simt_launch l = {.kernel = kernel,
                            .grid = {grid, 1, 1},
                            .block = {block[0], block[1], block[2]},
                            .params = x.data,
                            .param_bytes = x.len};
    if (!simt_launch(r->dev, r->mod, &l, r->a, &out, &err))
        fail_msg("%s", err.text);
    return out;
}

static void run_end(struct run *r)
{
    simt_close(r->dev);
    free(r->in);
    free(r->out);
    arena_free(r->a);
}

static const uint32_t row[3] = {128, 1, 1};

/* ---- the checker ---- */

static const struct bug {
    const char *kernel;
    enum simt_finding_kind kind;
    unsigned out_flags;
    uint32_t grid;
    int n;
} bugs[] = {
    {"oob_read", SIMT_OUT_OF_BOUNDS, SIMT_ALLOC_WRITTEN, 1, 128},
    {"oob_write", SIMT_OUT_OF_BOUNDS, SIMT_ALLOC_WRITTEN, 2, 128},
    {"oob_shared", SIMT_OUT_OF_BOUNDS, SIMT_ALLOC_WRITTEN, 1, 256},
    {"misaligned", SIMT_MISALIGNED, SIMT_ALLOC_WRITTEN, 1, 128},
    {"write_input", SIMT_WRITE_TO_INPUT, SIMT_ALLOC_WRITTEN, 1, 128},
    {"race_read", SIMT_RACE_SHARED, SIMT_ALLOC_WRITTEN, 1, 128},
    {"race_reuse", SIMT_RACE_SHARED, SIMT_ALLOC_WRITTEN, 1, 128},
    {"race_write", SIMT_RACE_SHARED, SIMT_ALLOC_WRITTEN, 1, 128},
    {"race_warp", SIMT_RACE_SHARED, SIMT_ALLOC_WRITTEN, 1, 128},
    {"uninit_shared", SIMT_UNINITIALISED, SIMT_ALLOC_WRITTEN, 1, 128},
    {"uninit_global", SIMT_UNINITIALISED, 0, 1, 128},
    {"race_blocks", SIMT_RACE_GLOBAL, 0, 4, 128},
    {"divergent_bar", SIMT_DIVERGENT_BARRIER, SIMT_ALLOC_WRITTEN, 1, 16},
    {"deadlock", SIMT_DEADLOCK, SIMT_ALLOC_WRITTEN, 1, 128},
    {"spin", SIMT_TIMEOUT, SIMT_ALLOC_WRITTEN, 1, 128},
    {"async_no_wait", SIMT_ASYNC_NOT_WAITED, SIMT_ALLOC_WRITTEN, 1, 128},
    {"async_overwrite", SIMT_ASYNC_OVERWRITE, SIMT_ALLOC_WRITTEN, 1, 128},
    {"async_no_sync", SIMT_RACE_SHARED, SIMT_ALLOC_WRITTEN, 1, 128},
    {"shfl_part", SIMT_DIVERGENT_COLLECTIVE, SIMT_ALLOC_WRITTEN, 1, 16},
    {"trap", SIMT_TRAP, SIMT_ALLOC_WRITTEN, 1, 128},
};

/* The line of kernels/bugs.cu that carries the mark. */
static int line_of(const char *name, struct arena *a)
{
    struct error err = {0};
    struct text src;
    if (!file_read(SIMT_TESTS_DIR "/kernels/bugs.cu", 1 << 20, a, &src, &err))
        fail_msg("%s", err.text);
    char *mark = arena_printf(a, "BUG:%s\n", name);
    const char *at = strstr(src.data, mark);
    int line = 1;
    if (!at)
        fail_msg("no mark for %s", name);
    for (const char *p = src.data; p < at; p++)
        line += *p == '\n';
    return line;
}

static bool has_finding(const struct simt_result *r, enum simt_finding_kind kind, int line)
{
    for (size_t i = 0; i < r->finding_count; i++)
        if (r->findings[i].kind == kind && r->findings[i].path_len &&
            r->findings[i].path[0].line == line &&
            strcmp(path_base(r->findings[i].path[0].file), "bugs.cu") == 0)
            return true;
    return false;
}

static void each_injected_bug_is_found_on_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bugs); i++) {
        struct run r;
        run_begin(&r, so_of[0], SIMT_CHECK_FULL, bugs[i].out_flags,
                  bugs[i].kind == SIMT_TIMEOUT ? 2000 : PATIENCE_MS, 0);
        struct simt_result res = run_kernel(&r, bugs[i].kernel, bugs[i].grid, row, bugs[i].n);
        int line = line_of(bugs[i].kernel, r.a);
        if (!has_finding(&res, bugs[i].kind, line))
            fail_msg("%s: no %s on line %d; %zu findings, first: %s", bugs[i].kernel,
                     simt_finding_name(bugs[i].kind), line, res.finding_count,
                     res.finding_count ? res.findings[0].text : "none");
        run_end(&r);
    }
}

static void the_correct_twin_of_each_bug_gives_no_finding(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bugs); i++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            struct run r;
            run_begin(&r, so_of[0], SIMT_CHECK_FULL, bugs[i].out_flags, PATIENCE_MS, seed);
            const char *name = arena_printf(r.a, "%s_ok", bugs[i].kernel);
            struct simt_result res = run_kernel(&r, name, bugs[i].grid, row, bugs[i].n);
            if (res.outcome != SIMT_OK || res.finding_count)
                fail_msg("%s, seed %d: %s, %zu findings: %s", name, (int)seed,
                         simt_outcome_name(res.outcome), res.finding_count,
                         res.finding_count ? res.findings[0].text : res.text);
            run_end(&r);
        }
}

static void what_the_host_has_set_counts_as_written(void **state)
{
    struct run r;
    (void)state;
    run_begin(&r, so_of[0], SIMT_CHECK_FULL, 0, PATIENCE_MS, 0);
    simt_alloc_written(r.dev, r.out, 64 * sizeof(float));
    struct simt_result res = run_kernel(&r, "uninit_global", 1, row, 128);
    assert_true(res.finding_count > 0); /* only half of it was set */
    assert_non_null(strstr(res.findings[0].text, "offset 256"));
    run_end(&r);
    run_begin(&r, so_of[0], SIMT_CHECK_FULL, 0, PATIENCE_MS, 0);
    simt_alloc_written(r.dev, r.out, 128 * sizeof(float));
    res = run_kernel(&r, "uninit_global", 1, row, 128);
    assert_int_equal(res.finding_count, 0);
    run_end(&r);
}

static void a_buffer_used_after_it_was_freed_is_named(void **state)
{
    struct run r;
    (void)state;
    run_begin(&r, so_of[0], SIMT_CHECK_MEMORY, SIMT_ALLOC_WRITTEN, PATIENCE_MS, 0);
    simt_alloc_forget(r.dev, r.in);
    struct simt_result res = run_kernel(&r, "write_input_ok", 1, row, 128);
    assert_int_equal(res.outcome, SIMT_FAULT);
    assert_non_null(strstr(res.findings[0].text, "after it was freed"));
    run_end(&r);
}

static void findings_are_bounded_and_written_as_json(void **state)
{
    struct run r;
    (void)state;
    run_begin(&r, so_of[0], SIMT_CHECK_FULL, SIMT_ALLOC_WRITTEN, PATIENCE_MS, 0);
    struct simt_result res = run_kernel(&r, "race_read", 64, row, 128);
    assert_in_range(res.finding_count, 1, 32);
    size_t at = 0;
    while (at < res.finding_count && res.findings[at].kind != SIMT_RACE_SHARED)
        at++;
    assert_true(at < res.finding_count);
    json_t *j = simt_finding_json(&res.findings[at]);
    assert_string_equal(json_string_value(json_object_get(j, "kind")), "race_shared");
    assert_non_null(json_object_get(j, "other"));
    json_decref(j);
    run_end(&r);
}

/* ---- launches ---- */

static void a_launch_that_no_device_takes_is_refused(void **state)
{
    static const struct {
        uint32_t grid[3], block[3], shared, cluster;
        size_t params;
        const char *says;
    } cases[] = {
        {{0, 1, 1}, {128, 1, 1}, 0, 0, 20, "grid.x is 0"},
        {{1, 70000, 1}, {128, 1, 1}, 0, 0, 20, "grid.y"},
        {{1, 1, 1}, {2048, 1, 1}, 0, 0, 20, "block.x is 2048"},
        {{1, 1, 1}, {64, 64, 1}, 0, 0, 20, "4096 threads"},
        {{1, 1, 1}, {128, 1, 1}, 1 << 20, 0, 20, "shared memory"},
        {{1, 1, 1}, {128, 1, 1}, 0, 2, 20, "cluster"},
        {{1, 1, 1}, {128, 1, 1}, 0, 0, 12, "12 bytes of arguments"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run r;
        struct error err = {0};
        struct simt_result out;
        unsigned char params[64] = {0};
        run_begin(&r, so_of[0], SIMT_CHECK_MEMORY, SIMT_ALLOC_WRITTEN, PATIENCE_MS, 0);
        struct simt_launch l = {.kernel = "trap_ok",
                                .shared_bytes = cases[i].shared,
                                .params = params,
                                .param_bytes = cases[i].params,
                                .cluster = {cases[i].cluster, 1, 1}};
        memcpy(l.grid, cases[i].grid, sizeof l.grid);
        memcpy(l.block, cases[i].block, sizeof l.block);
        assert_true(simt_launch(r.dev, r.mod, &l, r.a, &out, &err));
        assert_int_equal(out.outcome, SIMT_BAD_LAUNCH);
        if (!strstr(out.text, cases[i].says))
            fail_msg("'%s' does not say '%s'", out.text, cases[i].says);
        run_end(&r);
    }
}

/* ---- parts of the device ---- */

static void part(struct run *r, const char *kernel, uint32_t grid, const uint32_t block[3], int n)
{
    run_begin(r, so_of[1], SIMT_CHECK_FULL, SIMT_ALLOC_WRITTEN, PATIENCE_MS, 0);
    /* Parts use more of the buffers than bugs do. */
    simt_alloc_register(r->dev, r->in, N * sizeof(float), "in",
                        SIMT_ALLOC_READONLY | SIMT_ALLOC_WRITTEN);
    simt_alloc_register(r->dev, r->out, 4 * N * sizeof(float), "out", SIMT_ALLOC_WRITTEN);
    struct simt_result res = run_kernel(r, kernel, grid, block, n);
    if (res.outcome != SIMT_OK || res.finding_count)
        fail_msg("%s: %s, %zu findings: %s", kernel, simt_outcome_name(res.outcome),
                 res.finding_count, res.finding_count ? res.findings[0].text : res.text);
}

static void close_to(const char *what, int i, double got, double want, double rel)
{
    if (!(fabs(got - want) <= rel * (1e-6 + fabs(want))))
        fail_msg("%s: element %d is %.9g, not %.9g", what, i, got, want);
}

static void a_block_reduces_over_shuffles_and_shared_memory(void **state)
{
    struct run r;
    double sum = 0;
    (void)state;
    part(&r, "block_reduce", 2, row, N);
    for (int i = 0; i < N; i++)
        sum += (double)r.in[i];
    close_to("block_reduce", 0, (double)r.out[0], sum, 1e-5);
    close_to("block_reduce", 1, (double)r.out[1], sum, 1e-5);
    run_end(&r);
}

static void atomics_of_all_kinds_add_up(void **state)
{
    struct run r;
    double sum = 0;
    (void)state;
    part(&r, "atomics", 3, row, 0);
    const uint32_t *u = (const uint32_t *)(const void *)r.out;
    for (int i = 0; i < 128; i++)
        sum += 3 * (double)r.in[i];
    close_to("atomics", 0, (double)r.out[0], sum, 1e-4);
    assert_int_equal(u[1], 384);
    assert_int_equal(u[2], 127);
    assert_int_equal((int32_t)u[3], -127);
    assert_int_equal(u[4], 0);
    assert_int_equal(u[5], 0xffffffffu);
    assert_int_equal(u[6], 384 % 101);
    assert_int_equal(u[7], 3 * 256);
    assert_int_equal(u[8], 384 * 3);
    run_end(&r);
}

static void blocks_that_wait_for_each_other_make_progress(void **state)
{
    struct run r;
    (void)state;
    part(&r, "grid_sync", 40, row, 0);
    for (int i = 0; i < 40; i++)
        assert_true(r.out[1 + 40 + i] == r.in[(i + 1) % 40]);
    run_end(&r);
}

static void votes_matches_and_reductions_agree(void **state)
{
    struct run r;
    (void)state;
    part(&r, "votes", 1, row, 0);
    const uint32_t *u = (const uint32_t *)(const void *)r.out;
    uint32_t count = 0;
    for (int i = 0; i < 128; i++)
        count += r.in[i] > 0.25f;
    for (int t = 0; t < 128; t++) {
        int w = t / 32 * 32;
        uint32_t ballot = 0, match = 0, sum = 0;
        for (int l = 0; l < 32; l++) {
            ballot |= (uint32_t)(r.in[w + l] > 0.25f) << l;
            match |= (uint32_t)((w + l) % 3 == t % 3) << l;
            sum += (uint32_t)(w + l);
        }
        uint32_t want = ballot ^ match ^ sum ^ 1u ^ 0xffffffffu ^ count;
        if (u[t] != want)
            fail_msg("thread %d: %08x, not %08x", t, u[t], want);
    }
    run_end(&r);
}

static void local_arrays_constants_and_globals_are_read(void **state)
{
    struct run r;
    static const int counter[] = {10, 20, 30, 40};
    (void)state;
    part(&r, "local_array", 1, row, 7);
    for (int t = 0; t < 128; t++) {
        float x = 0;
        for (int i = 0; i < 16; i++)
            x = fmaf(x, 0.5f, r.in[(t + (i * 7 + t) % 16) % 128]);
        close_to("local_array", t, (double)r.out[t], (double)x, 1e-6);
    }
    run_end(&r);
    part(&r, "constants", 1, row, 3);
    for (int t = 0; t < 128; t++)
        close_to("constants", t, (double)r.out[t],
                 (double)((float)((t + 3) % 8 + 1) * r.in[t] + (float)counter[t % 4]), 1e-6);
    run_end(&r);
}

static void printf_formats_its_arguments(void **state)
{
    struct run r;
    (void)state;
    run_begin(&r, so_of[1], SIMT_CHECK_FULL, SIMT_ALLOC_WRITTEN, PATIENCE_MS, 0);
    struct simt_result res = run_kernel(&r, "prints", 1, row, 0);
    char want[80];
    snprintf(want, sizeof want, "thread 2 of 128 says %.3f and hello\n", (double)r.in[2]);
    assert_string_equal(res.printed, want);
    run_end(&r);
}

static void functions_are_called_and_doubles_and_halves_computed(void **state)
{
    struct run r;
    (void)state;
    part(&r, "calls", 1, row, 6);
    for (int t = 0; t < 128; t++) {
        double x = (double)r.in[t];
        for (int i = 0; i < t % 5 + 6 % 4; i++)
            x = x * 1.5 + 1.0;
        close_to("calls", t, (double)r.out[t], x + pow((double)r.in[t] + 2.0, 1.5), 1e-5);
    }
    run_end(&r);
    part(&r, "doubles", 1, row, 0);
    for (int t = 0; t < 128; t++) {
        double x = (double)r.in[t];
        close_to("doubles", t, (double)r.out[t],
                 sqrt(x + 1) / (x + 3) + exp(x) + (double)(long long)(x * 1e6), 1e-6);
    }
    run_end(&r);
    part(&r, "halves", 1, row, 0);
    for (int t = 0; t < 128; t++) {
        double a = (double)r.in[t], b = (double)r.in[(t + 1) % 128], x = a * a + 0.5 * a,
               y = b * b + 0.5 * b;
        close_to("halves", t, (double)r.out[t], (x > y ? x : y) + a + x, 4e-3);
    }
    run_end(&r);
}

static void wmma_multiplies_matrices(void **state)
{
    struct run r;
    (void)state;
    part(&r, "wmmas", 1, row, 0);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) {
            double s = 1;
            for (int k = 0; k < 16; k++)
                s += (double)r.in[i * 16 + k] * (double)r.in[255 - (j * 16 + k)];
            close_to("wmma", i * 16 + j, (double)r.out[i * 16 + j], s, 2e-3);
        }
    run_end(&r);
}

static void an_mbarrier_orders_producers_before_consumers(void **state)
{
    struct run r;
    (void)state;
    part(&r, "mbarriers", 1, row, 0);
    for (int t = 64; t < 128; t++)
        assert_true(r.out[t] == r.in[127 - t]);
    run_end(&r);
}

static void blocks_of_any_shape_run(void **state)
{
    static const uint32_t shapes[][3] = {{128, 1, 1}, {32, 4, 1}, {7, 5, 3},
                                         {1, 100, 1}, {33, 2, 2}, {5, 1, 20}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        struct run r;
        const uint32_t *b = shapes[i];
        part(&r, "shapes", 1, b, 0);
        for (uint32_t t = 0; t < b[0] * b[1] * b[2]; t++) {
            uint32_t x = t % b[0], y = t / b[0] % b[1], z = t / b[0] / b[1];
            float want = y % 2 ? r.in[t] + (float)z : fmaf(r.in[t], 2, (float)x);
            close_to("shapes", (int)t, (double)r.out[t], (double)want, 1e-6);
        }
        run_end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_injected_bug_is_found_on_its_line),
        cmocka_unit_test(the_correct_twin_of_each_bug_gives_no_finding),
        cmocka_unit_test(what_the_host_has_set_counts_as_written),
        cmocka_unit_test(a_buffer_used_after_it_was_freed_is_named),
        cmocka_unit_test(findings_are_bounded_and_written_as_json),
        cmocka_unit_test(a_launch_that_no_device_takes_is_refused),
        cmocka_unit_test(a_block_reduces_over_shuffles_and_shared_memory),
        cmocka_unit_test(atomics_of_all_kinds_add_up),
        cmocka_unit_test(blocks_that_wait_for_each_other_make_progress),
        cmocka_unit_test(votes_matches_and_reductions_agree),
        cmocka_unit_test(local_arrays_constants_and_globals_are_read),
        cmocka_unit_test(printf_formats_its_arguments),
        cmocka_unit_test(functions_are_called_and_doubles_and_halves_computed),
        cmocka_unit_test(wmma_multiplies_matrices),
        cmocka_unit_test(an_mbarrier_orders_producers_before_consumers),
        cmocka_unit_test(blocks_of_any_shape_run),
    };
    struct arena *a = arena_new();
    so_of[0] = compile_file("bugs.ptx", a);
    so_of[1] = compile_file("parts.ptx", a);
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    arena_free(a);
    return bad;
}
