/*
 * test_bugs.c - each mistake of kernels/bugs_cute.cu is found as the kind it is
 * and on its line, and its correct twin gives no finding in any warp order.
 */
#include "support.h"

#include <stdio.h>

enum { N = 128 };

static const struct bug {
    const char *kernel;
    enum simt_finding_kind kind;
    uint32_t grid;
    int n;
    unsigned out_flags; /* 0: nothing has written out */
    bool freed;
} bugs[] = {
    {"cute_tile_tail", SIMT_OUT_OF_BOUNDS, 2, N, 0, false},
    {"cute_wrong_stride", SIMT_OUT_OF_BOUNDS, 1, N, 0, false},
    {"cute_smem_layout", SIMT_OUT_OF_BOUNDS, 1, N, 0, false},
    {"cute_before_start", SIMT_OUT_OF_BOUNDS, 1, N, 0, false},
    {"cute_far_away", SIMT_OUT_OF_BOUNDS, 1, N, 0, false},
    {"cute_freed", SIMT_OUT_OF_BOUNDS, 1, N, 0, true},
    {"cute_vec_misaligned", SIMT_MISALIGNED, 1, N, 0, false},
    {"cute_ldsm_misaligned", SIMT_MISALIGNED, 1, N, 0, false},
    {"cute_cp_misaligned", SIMT_MISALIGNED, 1, N, 0, false},
    {"cute_cp_beyond", SIMT_OUT_OF_BOUNDS, 1, N, 0, false},
    {"cute_atomic_input", SIMT_WRITE_TO_INPUT, 1, N, 0, false},
    {"cute_local_array", SIMT_OUT_OF_BOUNDS, 1, N, 0, false},
    {"cute_no_first_sync", SIMT_RACE_SHARED, 1, N, 0, false},
    {"cute_no_second_sync", SIMT_RACE_SHARED, 1, N, 0, false},
    {"cute_no_syncwarp", SIMT_RACE_SHARED, 1, N, 0, false},
    {"cute_named_missing", SIMT_RACE_SHARED, 1, N, 0, false},
    {"cute_mbar_missing", SIMT_RACE_SHARED, 1, N, 0, false},
    {"cute_halves_in_place", SIMT_RACE_SHARED, 1, N, 0, false},
    {"cute_atomic_read", SIMT_RACE_SHARED, 1, N, 0, false},
    {"cute_atomic_unset", SIMT_UNINITIALISED, 1, N, 0, false},
    {"cute_atomic_early", SIMT_RACE_SHARED, 1, N, 0, false},
    {"cute_ldsm_race", SIMT_RACE_SHARED, 1, N, 0, false},
    {"cute_half_tile", SIMT_UNINITIALISED, 1, N, 0, false},
    {"cute_accumulate", SIMT_UNINITIALISED, 1, N, 0, false},
    {"cute_partials", SIMT_UNINITIALISED, 1, N, 0, false},
    {"cute_ring_wait", SIMT_ASYNC_NOT_WAITED, 1, N, 0, false},
    {"cute_ring_commit", SIMT_ASYNC_NOT_WAITED, 1, N, 0, false},
    {"cute_ring_no_sync", SIMT_RACE_SHARED, 1, N, 0, false},
    {"cute_async_overwrite", SIMT_ASYNC_OVERWRITE, 1, N, 0, false},
    {"cute_async_own_wait", SIMT_RACE_SHARED, 1, N, 0, false},
    {"cute_split_k", SIMT_RACE_GLOBAL, 4, N, SIMT_ALLOC_WRITTEN, false},
    {"cute_overlap_30", SIMT_RACE_GLOBAL, 4, N, 0, false},
    {"cute_neighbour", SIMT_RACE_GLOBAL, 4, N, SIMT_ALLOC_WRITTEN, false},
    {"cute_counted", SIMT_RACE_GLOBAL, 4, N, SIMT_ALLOC_WRITTEN, false},
    {"cute_sync_in_loop", SIMT_DIVERGENT_BARRIER, 1, 16, 0, false},
    {"cute_sync_in_branch", SIMT_DIVERGENT_BARRIER, 1, N, 0, false},
    {"cute_bar_count", SIMT_DEADLOCK, 1, N, 0, false},
    {"cute_bar_id", SIMT_DEADLOCK, 1, N, 0, false},
    {"cute_mbar_phase", SIMT_MBARRIER, 1, N, 0, false},
    {"cute_shuffle_branch", SIMT_DIVERGENT_COLLECTIVE, 1, N, 0, false},
    {"cute_ballot_loop", SIMT_DIVERGENT_COLLECTIVE, 1, N, 0, false},
    {"cute_mma_branch", SIMT_DIVERGENT_COLLECTIVE, 1, N, 0, false},
    {"cute_spin_flag", SIMT_TIMEOUT, 1, N, SIMT_ALLOC_WRITTEN, false},
    {"cute_assert", SIMT_TRAP, 1, N, 0, false},
};

static const char *so; /* compiled once, by main */

static struct simt_result run(const struct bug *b, const char *kernel, int watchdog_ms,
                              uint64_t seed, struct arena *a)
{
    struct simt_config c = {.threads = 2,
                            .check = SIMT_CHECK_FULL,
                            .watchdog_ms = watchdog_ms,
                            .warp_order_seed = seed};
    struct error err = {0};
    struct bench_args x = {0};
    struct simt *dev;
    struct simt_module *mod;
    struct simt_result r = {0};
    /* Between the buffers lies memory that belongs to neither. */
    float *in = aligned_alloc(256, 1024 * sizeof *in), *mine = in + 256, *out = in + 640;
    assert_true(simt_open(&c, &dev, &err));
    memset(in, 0, 1024 * sizeof *in);
    for (int i = 0; i < N; i++)
        mine[i] = (float)((i * 37) % 101) / 101.0f;
    simt_alloc_register(dev, mine, N * sizeof *in, "in", SIMT_ALLOC_READONLY | SIMT_ALLOC_WRITTEN);
    simt_alloc_register(dev, out, N * sizeof *in, "out", b->out_flags);
    if (b->freed && strcmp(kernel, b->kernel) == 0)
        simt_alloc_forget(dev, mine);
    put_arg(&x, &mine, 8);
    put_arg(&x, &out, 8);
    put_arg(&x, &b->n, 4);
    struct simt_launch l = {.kernel = kernel,
                            .grid = {b->grid, 1, 1},
                            .block = {N, 1, 1},
                            .params = x.data,
                            .param_bytes = x.len};
    if (!simt_load(dev, so, &mod, &err) || !simt_launch(dev, mod, &l, a, &r, &err))
        fail_msg("%s: %s", kernel, err.text);
    simt_close(dev);
    free(in);
    return r;
}

static int line_of(const char *name, struct arena *a)
{
    struct error err = {0};
    struct text src;
    if (!file_read(SIMT_TESTS_DIR "/kernels/bugs_cute.cu", 1 << 20, a, &src, &err))
        fail_msg("%s", err.text);
    int line = 1;
    size_t n = strlen(name);
    for (const char *p = src.data; *p; p++) {
        line += *p == '\n';
        if (*p == ':' && strncmp(p + 1, name, n) == 0 && (p[n + 1] == '\n' || p[n + 1] == ' '))
            return line;
    }
    fail_msg("no mark for %s", name);
    return 0;
}

static void tell(const struct bug *b, const char *kernel, const struct simt_result *r, int line)
{
    print_error("%s: %s wanted on line %d: %s%s\n", kernel, simt_finding_name(b->kind), line,
                simt_outcome_name(r->outcome), r->finding_count ? "" : ", no finding");
    for (size_t i = 0; i < r->finding_count && i < 4; i++)
        print_error("    %s on line %d: %s\n", simt_finding_name(r->findings[i].kind),
                    r->findings[i].path_len ? r->findings[i].path[0].line : 0, r->findings[i].text);
}

static void each_mistake_is_found_as_what_it_is_and_on_its_line(void **state)
{
    int bad = 0;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bugs); i++) {
        struct arena *a = arena_new();
        /* Only what is found by waiting is waited for. */
        bool waits = bugs[i].kind == SIMT_TIMEOUT || bugs[i].kind == SIMT_MBARRIER;
        struct simt_result r = run(&bugs[i], bugs[i].kernel, waits ? 2000 : 1200000, 0, a);
        int line = line_of(bugs[i].kernel, a);
        bool found = false;
        for (size_t f = 0; f < r.finding_count; f++)
            found |= r.findings[f].kind == bugs[i].kind && r.findings[f].path_len &&
                     r.findings[f].path[0].line == line &&
                     strcmp(path_base(r.findings[f].path[0].file), "bugs_cute.cu") == 0;
        if (!found)
            tell(&bugs[i], bugs[i].kernel, &r, line);
        bad += !found;
        arena_free(a);
    }
    assert_int_equal(bad, 0);
}

static void the_correct_twin_of_each_gives_no_finding(void **state)
{
    int bad = 0;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bugs); i++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            struct arena *a = arena_new();
            const char *name = arena_printf(a, "%s_ok", bugs[i].kernel);
            struct simt_result r = run(&bugs[i], name, 1200000, seed, a);
            if (r.outcome != SIMT_OK || r.finding_count)
                tell(&bugs[i], name, &r, 0), bad++;
            arena_free(a);
        }
    assert_int_equal(bad, 0);
}

static void there_is_a_mistake_for_every_kind_of_finding(void **state)
{
    (void)state;
    assert_true(ARRAY_LEN(bugs) >= 40);
    for (int k = 0; k <= SIMT_TRAP; k++) { /* those after it are of sm_90: test_hopper.c */
        bool found = false;
        for (size_t i = 0; i < ARRAY_LEN(bugs); i++)
            found |= bugs[i].kind == (enum simt_finding_kind)k;
        if (!found)
            fail_msg("no mistake of the kind %s", simt_finding_name((enum simt_finding_kind)k));
    }
}

static int compile_once(void **state)
{
    (void)state;
    struct arena *a = arena_new(); /* lives as long as the tests */
    so = compile_file("bugs_cute.ptx", a);
    *state = a;
    return 0;
}

static int release(void **state)
{
    arena_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_a_mistake_for_every_kind_of_finding),
        cmocka_unit_test(each_mistake_is_found_as_what_it_is_and_on_its_line),
        cmocka_unit_test(the_correct_twin_of_each_gives_no_finding),
    };
    return cmocka_run_group_tests(tests, compile_once, release);
}
