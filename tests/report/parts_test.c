/*
 * parts_test.c - a kernel of several parts: what its file says of them, and where its time goes, on
 * the page, in text and in JSON.
 *
 * PARTS_PAGE=FILE writes the page, to look at it.
 */
#include "base/fs.h"
#include "base/parts.h"
#include "report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Two branches of a convolution, their sum, a product; the second file has other comments only. */
static const char source[] =
    "// 4 parts, one after the other: what one makes, others read.\n"
    "// part 1, convolution: convolution, relu; reads x, weight; makes (8, 16, 32, 32) f32; moves "
    "1048576 bytes\n"
    "// part 2, pooling: max_pool2d; reads part 1; makes (8, 16, 16, 16) f32; moves 655360 bytes\n"
    "// part 3, rows: add, <b>mean</b>; reads part 1, part 2; makes (8, 16) f32; moves 655872 "
    "bytes\n"
    "// part 4, gemm: addmm; reads part 3, weight, bias; makes (8, 10) f32; moves 1512 bytes\n"
    "#include <cutegen/kernel.h>\n// part 5 is not one\n";

static const char launches[] =
    "{\"ops\": [{\"op\": \"launch\"}, {\"op\": \"memset\", \"part\": 2},"
    " {\"op\": \"launch\", \"part\": 1}, {\"op\": \"launch\", \"part\": 1},"
    " {\"op\": \"launch\", \"part\": 2}, {\"op\": \"launch\", \"part\": 3},"
    " {\"op\": \"launch\", \"part\": 4}]}";

/* Modelled times of the six launches. */
static const double times[][6] = {{1, 30, 50, 4, 10, 5}, {1, 10, 30, 4, 10, 5}};

struct made {
    struct arena *a;
    struct run_history h;
    struct attempt_record attempts[3];
    struct build_result build;
    struct measurement m[2];
    struct profile profile;
};

static json_t *timed(const double *us, size_t count, const char *key)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{s:f}", "time_us", us[i]));
    return json_pack("{s:o}", key, list);
}

static int set_up(void **state)
{
    static const char *const changes[] = {"the plain convolution kernel", "larger tiles",
                                          "one that fails"};
    struct made *t = xmalloc(sizeof(*t));

    *t = (struct made){.a = arena_new()};
    t->build.launches = json_loads(launches, 0, NULL);
    assert_non_null(t->build.launches);
    for (int i = 0; i < 2; i++)
        t->m[i] = (struct measurement){.modelled = true,
                                       .time_us = i ? 66 : 106,
                                       .floor_us = 9,
                                       .bound = "dram",
                                       .parts = timed(times[i], 6, "launches")};
    for (int i = 0; i < 3; i++)
        t->attempts[i] = (struct attempt_record){
            .candidate = {.depth = i,
                          .attempt = i + 1,
                          .source = text_of(source),
                          .change = changes[i]},
            .stage = i ? STAGE_OPTIMIZE : STAGE_SYNTHESIZE,
            .parent = i,
            .started_ms = 1000 * i + 1,
            .ended_ms = 1000 * i + 900,
            .outcome = {.step = i < 2 ? STEP_MEASURE : STEP_TEST,
                        .verdict = {.kind = i < 2 ? VERDICT_PASS : VERDICT_WRONG_VALUES,
                                    .summary = "",
                                    .detail = ""},
                        .build = &t->build,
                        .measurement = i < 2 ? &t->m[i] : NULL,
                        .kept = i < 2}};
    t->h = (struct run_history){.info = {.id = "2026-11-19-net-1",
                                         .task = "net",
                                         .model = "builtin",
                                         .device = "simt as H200",
                                         .state = RUN_DONE,
                                         .reason = "",
                                         .started_ms = 1,
                                         .ended_ms = 3000,
                                         .attempts = 3,
                                         .best_depth = 1,
                                         .best_attempt = 2,
                                         .modelled = true,
                                         .cost_usd = -1,
                                         .accepted_why = ""},
                                .task = {.name = "net", .path = "/net.py", .class = CLASS_OTHER},
                                .device = {.kind = DEVICE_SIMT, .name = "simt", .models = "H200"},
                                .attempts = t->attempts,
                                .attempt_count = 3};
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct made *t = *state;

    json_decref(t->build.launches);
    json_decref(t->m[0].parts);
    json_decref(t->m[1].parts);
    json_decref(t->profile.data);
    arena_free(t->a);
    xfree(t);
    return 0;
}

static const char *page_of(struct made *t)
{
    struct buf b = buf_init(64 << 20);
    const char *s;

    report_html(&t->h, 1, &b);
    s = buf_copy(&b, t->a).data;
    buf_release(&b);
    return s;
}

static const char *text_of_run(struct made *t, int columns)
{
    struct buf b = buf_init(1 << 20);
    const char *s;

    report_text(&t->h, columns, &b);
    s = buf_copy(&b, t->a).data;
    buf_release(&b);
    return s;
}

static void assert_has(const char *in, const char *const *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strstr(in, wanted[i]))
            fail_msg("missing: %s in:\n%s", wanted[i], in);
}

/* ---- reading ------------------------------------------------------------------- */

static void a_file_says_which_parts_it_has(void **state)
{
    struct made *t = *state;
    struct kernel_parts p;

    parts_read(text_of(source), t->a, &p);
    assert_int_equal(p.count, 4);
    assert_string_equal(p.at[0].recipe, "convolution");
    assert_string_equal(p.at[0].ops, "convolution, relu");
    assert_string_equal(p.at[0].reads, "x, weight");
    assert_string_equal(p.at[0].made, "(8, 16, 32, 32) f32");
    assert_true(p.at[0].bytes == 1048576);
    assert_int_equal(p.at[0].from_count, 0);
    assert_int_equal(p.at[2].from_count, 2);
    assert_int_equal(p.at[2].from[0], 0);
    assert_int_equal(p.at[2].from[1], 1);
    assert_int_equal(p.at[3].from_count, 1);
    parts_time(&p, t->build.launches, json_object_get(t->m[1].parts, "launches"));
    assert_int_equal(p.at[0].launches, 2);
    assert_int_equal(p.at[1].launches, 1);
    assert_int_equal(p.other_launches, 1);
    assert_true(p.at[0].us == 40 && p.other_us == 1 && p.sum_us == 60);
}

/* A model may write anything there. */
static void odd_lines_are_no_parts_or_say_less(void **state)
{
    static const struct {
        const char *source;
        int count;
    } rows[] = {
        {"", 0},
        {"// part 1, gemm: mm", 0},
        {"// part 1, gemm: mm\n// part 2, gemm: mm", 2},
        {"// part 2, gemm: mm\n// part 1, gemm: mm\n", 0},
        {"// part 1, gemm: mm\n// part 1, gemm: mm\n", 0},
        {"// part 1 gemm mm\n// part 2 gemm mm\n", 0},
        {"// part 1, a: b; reads part 9, part 0, part -3, part 1\n// part 2, a: b; moves nan bytes",
         2},
        {"// part 1, a: b; moves -1 bytes\n// part 99999999999999999999, a: b", 0},
    };
    struct made *t = *state;
    struct kernel_parts p;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        parts_read(text_of(rows[i].source), t->a, &p);
        if (p.count != rows[i].count)
            fail_msg("%s: %d parts", rows[i].source, p.count);
        for (int k = 0; k < p.count; k++)
            assert_true(p.at[k].from_count == 0 && p.at[k].bytes == 0);
    }
}

static void times_that_are_not_one_per_launch_are_not_used(void **state)
{
    struct made *t = *state;
    struct kernel_parts p;

    parts_read(text_of(source), t->a, &p);
    json_array_remove(json_object_get(t->m[1].parts, "launches"), 0);
    parts_time(&p, t->build.launches, json_object_get(t->m[1].parts, "launches"));
    assert_true(p.sum_us == 0 && p.at[0].us == 0);
    assert_int_equal(p.at[0].launches, 2);
    parts_time(&p, NULL, NULL);
    assert_int_equal(p.at[0].launches, 0);
}

/* ---- where the time goes ----------------------------------------------------------- */

static void the_page_draws_the_parts_and_says_where_the_time_goes(void **state)
{
    static const char *const wanted[] = {
        "<section id=\"parts\"><h2>Where the time goes</h2>",
        "4 parts; the drawing",
        "<span class=\"mod\">modelled</span>",
        ">1&#8195;convolution, relu</text>",
        "67&#8239;%*, 2 kernels, 1.0 MB</text>",
        "<path class=\"flow\"",
        "for several parts",
        "add, &lt;b&gt;mean&lt;/b&gt;",
        "(8, 16, 16, 16) f32",
        "40.0 \xc2\xb5s<abbr class=\"mod\"",
        "<td>2.00\xc3\x97</td>",
        "Between the kernels: 6.00 \xc2\xb5s<abbr",
        "What each step gained",
        "part 1: 80.0 \xc2\xb5s to 40.0 \xc2\xb5s<abbr",
    };
    struct made *t = *state;
    const char *page = page_of(t);
    struct error err = {0};

    assert_has(page, wanted, ARRAY_LEN(wanted));
    assert_null(strstr(page, "<b>mean"));
    if (getenv("PARTS_PAGE"))
        assert_true(file_write(getenv("PARTS_PAGE"), text_of(page), &err));
}

static void show_lists_parts_and_gains(void **state)
{
    static const char *const wanted[] = {
        " part  share*      time* kernels     moves  operators\n",
        "    1    67 %    40.0 us       2    1.0 MB  convolution, relu\n",
        "    4     8 %    5.00 us       1    1.5 kB  addmm\n",
        "          2 %    1.00 us       1            for several parts\n",
        "                 6.00 us                     between the kernels\n",
        "steps    attempt 2   part 1: 80.0 us -> 40.0 us*\n",
    };

    assert_has(text_of_run(*state, 0), wanted, ARRAY_LEN(wanted));
}

static void json_has_every_part(void **state)
{
    struct made *t = *state;
    json_t *o = report_run_json(&t->h), *parts = json_object_get(o, "parts");
    json_t *list = json_object_get(parts, "list"), *one = json_array_get(list, 2);
    json_t *attempts = json_object_get(o, "attempts");

    assert_string_equal(json_string_value(json_object_get(parts, "times")), "modelled");
    assert_int_equal(json_integer_value(json_object_get(parts, "attempt")), 2);
    assert_int_equal(json_array_size(list), 4);
    assert_string_equal(json_string_value(json_object_get(one, "recipe")), "rows");
    assert_int_equal(json_array_size(json_object_get(one, "after")), 2);
    assert_true(json_number_value(json_object_get(one, "time_us")) == 10);
    assert_true(json_number_value(json_object_get(json_array_get(list, 0), "first_us")) == 80);
    assert_int_equal(json_array_size(json_object_get(json_array_get(attempts, 0), "parts_us")), 4);
    assert_null(json_object_get(json_array_get(attempts, 2), "parts_us"));
    json_decref(o);
}

/* On a GPU the judge times the whole; only a profile has times of kernels. */
static void a_measured_kernel_has_times_by_part_if_it_was_profiled(void **state)
{
    static const char *const without[] = {"Their times are not known", "2 kernels, 1.0 MB</text>"};
    static const char *const with[] = {"Times are the profiler&#39;s", "67&#8239;%, 2 kernels"};
    struct made *t = *state;

    t->m[0].modelled = t->m[1].modelled = t->h.info.modelled = false;
    t->h.device = (struct device){.kind = DEVICE_CUDA, .name = "NVIDIA H200"};
    assert_has(page_of(t), without, ARRAY_LEN(without));
    assert_null(strstr(page_of(t), "What each step gained"));
    assert_non_null(strstr(text_of_run(t, 0), "times of parts are not known"));
    t->profile =
        (struct profile){.source = "ncu", .text = "", .data = timed(times[1], 6, "kernels")};
    t->attempts[1].profile = &t->profile;
    assert_has(page_of(t), with, ARRAY_LEN(with));
    assert_non_null(strstr(text_of_run(t, 0), "by the profiler"));
    assert_null(strstr(page_of(t), "class=\"mod\""));
}

static void a_kernel_of_one_part_shows_nothing_of_this(void **state)
{
    struct made *t = *state;
    json_t *o;

    for (int i = 0; i < 3; i++)
        t->attempts[i].candidate.source = text_of("#include <cutegen/kernel.h>\n");
    assert_null(strstr(page_of(t), "id=\"parts\""));
    assert_null(strstr(text_of_run(t, 0), "operators"));
    o = report_run_json(&t->h);
    assert_true(json_is_null(json_object_get(o, "parts")));
    json_decref(o);
}

/* The costliest are listed, the others counted; the lines stay within the terminal. */
static void a_long_list_shows_its_costliest_parts(void **state)
{
    enum { PARTS = 60 };
    struct made *t = *state;
    struct buf b = buf_init(1 << 20);
    json_t *ops = json_array(), *us = json_array(), *old = t->m[1].parts, *build;
    const char *shown;

    for (int i = 0; i < PARTS; i++) {
        buf_printf(&b,
                   "// part %d, rows: add, mul, sub, exp, rsqrt, native_layer_norm; reads part "
                   "%d; makes (8) f32; moves 64 bytes\n",
                   i + 1, i);
        json_array_append_new(ops, json_pack("{s:s, s:i}", "op", "launch", "part", i + 1));
        json_array_append_new(us, json_pack("{s:f}", "time_us", i == 41 ? 100.0 : 1.0));
    }
    build = t->build.launches;
    t->build.launches = json_pack("{s:o}", "ops", ops);
    t->m[1].parts = json_pack("{s:o}", "launches", us);
    t->attempts[1].candidate.source = buf_copy(&b, t->a);
    buf_release(&b);
    shown = text_of_run(t, 80);
    assert_non_null(strstr(shown, "   42    63 %     100 us"));
    assert_non_null(strstr(shown, "44 more parts"));
    for (const char *line = shown, *end; (end = strchr(line, '\n')); line = end + 1)
        if (end - line > 80)
            fail_msg("%.*s", (int)(end - line), line);
    assert_non_null(strstr(page_of(t), "60 parts; the drawing"));
    json_decref(old);
    json_decref(build);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        IN_PLACE(a_file_says_which_parts_it_has),
        IN_PLACE(odd_lines_are_no_parts_or_say_less),
        IN_PLACE(times_that_are_not_one_per_launch_are_not_used),
        IN_PLACE(the_page_draws_the_parts_and_says_where_the_time_goes),
        IN_PLACE(show_lists_parts_and_gains),
        IN_PLACE(json_has_every_part),
        IN_PLACE(a_measured_kernel_has_times_by_part_if_it_was_profiled),
        IN_PLACE(a_kernel_of_one_part_shows_nothing_of_this),
        IN_PLACE(a_long_list_shows_its_costliest_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
