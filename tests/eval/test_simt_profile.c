/* test_simt_profile.c - simt's counters become ten lines that agree with each other. */
#include "base/json.h"
#include "eval/simt_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char source[] = "kernel\n    a = x[i];\n    b = s[j];\n    y[i] = a * b;\n";

/* Two launches; in the second, shared memory takes longest. */
static json_t *modelled(double share)
{
    return json_pack(
        "{s:f, s:[{s:s, s:f, s:f, s:s}, {s:s, s:f, s:f, s:f, s:f, s:f, s:s, s:f, s:f, s:f,"
        " s:f, s:f}]}",
        "share", share, "launches", "kernel", "first", "time_us", 1.0, "dram", 1.0, "bound", "dram",
        "kernel", "second<128>", "time_us", 10.0, "shared", 9.0, "dram", 5.0, "issue", 5.0, "l1",
        0.1, "limiter", "registers", "waves", 993.0, "last_wave", 0.5, "blocks_sm", 4.0, "warps_sm",
        32.0, "occupancy", 0.5);
}

static json_t *counters(void)
{
    return json_pack(
        "[{s:i}, {s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:[{s:s, s:i, s:i, s:i}, "
        "{s:s, s:i, s:i, s:i}, {s:s, s:i, s:i, s:i}, {s:s, s:i, s:i, s:i}]}]",
        "blocks", 1, "blocks", 4096, "threads_block", 256, "smem_bytes", 1024, "warp_instructions",
        100, "thread_instructions", 3200, "shared_requests", 10, "shared_wavefronts", 40,
        "shared_conflicts", 30, "lines", "file", "/tmp/candidate.cu", "line", 2, "instructions", 10,
        "shared_wavefronts", 0, "file", "/tmp/candidate.cu", "line", 3, "instructions", 50,
        "shared_wavefronts", 20, "file", "/tmp/candidate.cu", "line", 4, "instructions", 40,
        "shared_wavefronts", 20, "file", "", "line", 0, "instructions", 90, "shared_wavefronts", 9);
}

static char *text_for(double share, struct arena *a)
{
    json_t *m = modelled(share), *c = counters();
    struct buf b = buf_init(16 << 10);
    char *out;

    assert_non_null(m);
    assert_non_null(c);
    simt_profile_text(
        &(struct simt_profile_input){
            .modelled = m, .counters = c, .source = text_of(source), .source_name = "my.cu"},
        a, &b);
    out = arena_strndup(a, b.data, b.len);
    buf_release(&b);
    json_decref(m);
    json_decref(c);
    return out;
}

static void the_text_says(const char *text, const char *what)
{
    if (!strstr(text, what))
        fail_msg("lacks '%s':\n%s", what, text);
}

static void a_profile_is_ten_lines_about_the_longest_launch(void **state)
{
    struct arena *a = arena_new();
    char *text = text_for(1, a);
    int lines = 0;

    (void)state;
    the_text_says(text, "kernel second<128>: 10 us, bound by shared memory\n");
    the_text_says(text,
                  "shared memory 9 us (90 %), DRAM 5 us (50 %), instruction issue 5 us (50 %);");
    the_text_says(text, "if that were fixed ");
    the_text_says(text, "then bound by DRAM\n");
    the_text_says(text, "993.0 waves, the last 50 % full");
    the_text_says(text, "4.00 wavefronts per request, 75 % of them bank conflicts");
    the_text_says(text, "other launches: first 1 us (bound by dram)\n");
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    assert_in_range(lines, 8, 11);
    assert_null(strstr(text, "L1"));
    arena_free(a);
}

static void lines_that_use_the_bound_most_come_first_and_none_is_lost(void **state)
{
    struct arena *a = arena_new();
    char *text = text_for(1, a);

    (void)state;
    the_text_says(text,
                  "worst lines        my.cu:3, 41 % of the shared-memory wavefronts: b = s[j];");
    the_text_says(text, "my.cu:4, 41 % of the shared-memory wavefronts: y[i] = a * b;");
    the_text_says(text, "my.cu:2, 5 % of the instructions: a = x[i];");
    arena_free(a);
}

/* 4096 blocks are not 993 waves: the waves are of a size that was not run. */
static void a_scaled_task_gets_no_figures_of_another_size(void **state)
{
    struct arena *a = arena_new();
    char *text = text_for(1.0 / 32, a);

    (void)state;
    the_text_says(text,
                  "4096 blocks of 256 threads, of a task that was scaled down; 4 fit on an SM\n");
    assert_null(strstr(text, "waves"));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_profile_is_ten_lines_about_the_longest_launch),
        cmocka_unit_test(lines_that_use_the_bound_most_come_first_and_none_is_lost),
        cmocka_unit_test(a_scaled_task_gets_no_figures_of_another_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
