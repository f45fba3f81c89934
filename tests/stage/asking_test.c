/*
 * asking_test.c - each asking stage alone: a command plays the model (exec:), a task is made by
 * hand.
 *
 * No oracle and no compiler are started: what is judged here is what a stage
 * sends and what it makes of the reply.
 */
#include "base/fs.h"
#include "stage/settings.h"
#include "stage/stage.h"
#include "stage/workshop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <unistd.h>

static const char kernel[] = "// a kernel\n__global__ void k() {}\nint plan;\n";

struct place {
    struct arena *a;
    char *dir;
    struct task task;
    struct candidate current;
};

static int set_up(void **state)
{
    struct place *p = xmalloc(sizeof(*p));
    struct error err = {0};

    p->a = arena_new();
    if (!dir_temp("cutegen-stage", p->a, &p->dir, &err))
        fail_msg("%s", err.text);
    p->task = (struct task){.name = "double",
                            .path = "/t/double.py",
                            .source = text_of("class Model: pass\n"),
                            .in = {{"x", "f32", "input", 1, {1024}, {1}}},
                            .out = {{"y", "f32", "output", 1, {1024}, {1}}},
                            .in_count = 1,
                            .out_count = 1,
                            .class = CLASS_POINTWISE,
                            .class_evidence = "made by hand",
                            .bytes_min = 8192,
                            .flops_min = 1024,
                            .description = json_object()};
    p->current =
        (struct candidate){.depth = 1, .attempt = 2, .source = text_of(kernel), .change = "first"};
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;
    struct error ignored = {0};

    dir_remove(p->dir, &ignored);
    json_decref(p->task.description);
    arena_free(p->a);
    xfree(p);
    return 0;
}

typedef bool asker(struct stage *, const struct question *, struct arena *, struct proposal *,
                   struct error *);

/* Asks once, of a command that keeps the prompt and answers with `reply`. */
static struct proposal ask(struct place *p, asker *stage, struct question *q, const char *reply)
{
    struct error err = {0};
    const char *file = path_join(p->a, p->dir, "reply");
    struct settings settings = {
        .model = arena_printf(p->a, "exec:cat >%s/prompt; cat %s", p->dir, file),
        .device = "simt",
        .models = "H200",
        .check = "full",
        .temperature = -1,
        .max_tokens = 1000,
        .call_deadline_s = 60,
    };
    json_t *history = json_pack("[{s:i, s:s, s:s, s:s, s:b}]", "depth", 1, "change", "wider loads",
                                "verdict", "wrong values", "why", "row 3 differs", "kept", 0);
    struct proposal out = {0};
    struct stage *st = NULL;

    q->task = &p->task;
    q->history = history;
    if (!file_write(file, text_of(reply), &err) || !stage_open(&settings, &st, &err) ||
        !stage(st, q, p->a, &out, &err))
        fail_msg("%s (%s)", err.text, err.hint);
    stage_close(st);
    json_decref(history);
    return out;
}

static const char *prompt(struct place *p)
{
    struct error err = {0};
    struct text t;

    if (!file_read(path_join(p->a, p->dir, "prompt"), 1 << 22, p->a, &t, &err))
        fail_msg("%s", err.text);
    return t.data;
}

static void synthesis_takes_a_whole_file_out_of_a_reply(void **state)
{
    struct place *p = *state;
    struct question q = {0};
    struct proposal r = ask(p, stage_synthesize, &q,
                            "Thinking...\nCHANGE: plain\n\n```cpp\n__global__ void f() {}\n```\n");

    assert_int_equal(r.verdict.kind, VERDICT_PASS);
    assert_true(text_equal(r.source, text_of("__global__ void f() {}\n")));
    assert_string_equal(r.change, "plain");
    assert_non_null(strstr(prompt(p), "The task: double"));
    assert_non_null(strstr(prompt(p), "class Model: pass"));
}

static void a_reply_without_code_is_a_verdict_with_its_reason(void **state)
{
    struct place *p = *state;
    struct question q = {0};
    struct proposal r = ask(p, stage_synthesize, &q, "I would rather not.");

    assert_int_equal(r.verdict.kind, VERDICT_NO_CODE);
    assert_true(strlen(r.verdict.detail) > 0);
}

static void a_diagnosis_sees_verdict_and_kernel_and_is_words_only(void **state)
{
    struct place *p = *state;
    struct verdict v = {.kind = VERDICT_RACE, .summary = "a race in k", .detail = "line 2 and 3"};
    struct question q = {.current = &p->current, .verdict = &v};
    struct proposal r = ask(p, stage_diagnose, &q, "A barrier is missing.");

    assert_true(text_starts(r.reply.text, "A barrier is missing."));
    assert_non_null(strstr(prompt(p), "a race in k"));
    assert_non_null(strstr(prompt(p), "__global__ void k() {}"));
}

static void a_repair_applies_edits_or_says_why_not(void **state)
{
    struct place *p = *state;
    struct verdict v = {.kind = VERDICT_RACE, .summary = "a race in k", .detail = ""};
    struct question q = {.current = &p->current, .verdict = &v, .diagnosis = "repair line 3"};
    struct proposal r = ask(
        p, stage_repair, &q,
        "```json\n[{\"action\": \"replace\", \"line_number\": 3, \"old_code\": [\"int plan;\"], "
        "\"new_code\": [\"int planned;\"]}]\n```\n");

    assert_int_equal(r.verdict.kind, VERDICT_PASS);
    assert_non_null(strstr(r.source.data, "int planned;"));
    assert_non_null(strstr(prompt(p), "repair line 3"));
    r = ask(p, stage_repair, &q, "```json\n[{\"action\": \"delete\", \"line_number\": 99}]\n```\n");
    assert_int_equal(r.verdict.kind, VERDICT_NO_CODE);
    assert_non_null(strstr(r.verdict.detail, "99"));
    q.rejected = r.verdict.detail;
    (void)ask(p, stage_repair, &q,
              "```\n<<<<<<< SEARCH\nint plan;\n=======\nint q;\n>>>>>>> REPLACE\n```\n");
    assert_non_null(strstr(prompt(p), "Your last reply could not be used"));
}

static void an_optimisation_is_told_time_profile_and_what_was_tried(void **state)
{
    struct place *p = *state;
    struct measurement time = {.time_us = 12.5, .floor_us = 5, .bound = "memory"};
    struct profile profile = {.source = "ncu", .text = "DRAM 40 %"};
    struct question q = {.current = &p->current, .time = &time, .profile = &profile};
    struct proposal r = ask(p, stage_optimize, &q,
                            "CHANGE: rewrite\n```cpp\n#include <cutegen/kernel.h>\n__global__ void "
                            "better() {}\nCUTEGEN_PLAN(call)\n```\n");
    const char *sent = prompt(p);

    assert_int_equal(r.verdict.kind, VERDICT_PASS);
    assert_non_null(strstr(r.source.data, "better"));
    assert_non_null(strstr(sent, "12.5 us (measured), 40 % of the roofline, bound by memory"));
    assert_non_null(strstr(sent, "No kernel for this task can take less than 5 us: at most 2.50x"));
    assert_non_null(strstr(sent,
                           "Measured on an NVIDIA H200 at full sizes, the best kernel known of "
                           "the class pointwise reaches 100 % of its floor"));
    assert_non_null(strstr(sent, "DRAM 40 %"));
    assert_non_null(strstr(sent, "wider loads: wrong values: row 3 differs (not kept)"));
    assert_non_null(strstr(sent, "Reading the profile"));
    q.profile = NULL;
    (void)ask(p, stage_optimize, &q, "nothing");
    assert_null(strstr(prompt(p), "Reading the profile"));
}

/* A kernel of several parts is improved part by part, the costliest first. */
static void an_optimisation_of_parts_is_told_whose_turn_it_is(void **state)
{
    static const char parts[] =
        "// part 1, gemm: mm, relu; reads x; makes (8) f32; moves 64 bytes\n"
        "// part 2, rows: mean; reads part 1; makes (1) f32; moves 36 bytes\n";
    struct place *p = *state;
    struct measurement time = {.time_us = 12, .floor_us = 5, .modelled = true, .bound = "dram"};
    struct question q = {.current = &p->current, .time = &time};
    json_t *launches = json_pack("{s:[{s:s, s:i}, {s:s, s:i}, {s:s, s:i}]}", "ops", "op", "launch",
                                 "part", 1, "op", "launch", "part", 2, "op", "launch", "part", 2);

    (void)ask(p, stage_optimize, &q, "nothing");
    assert_null(strstr(prompt(p), "Work plan"));
    p->current.source = text_of(parts);
    (void)ask(p, stage_optimize, &q, "nothing");
    assert_non_null(strstr(prompt(p), "It is the turn of part 1, ")); /* by bytes */
    q.launches = launches;
    time.parts = json_pack("{s:[{s:f}, {s:f}, {s:f}]}", "launches", "time_us", 2.0, "time_us", 5.0,
                           "time_us", 3.0);
    (void)ask(p, stage_optimize, &q, "nothing");
    assert_non_null(strstr(prompt(p), "It is the turn of part 2, "));
    assert_non_null(strstr(prompt(p),
                           "part 2: 80 % of the time, 8 us (modelled), 2 kernels\n    rows: mean\n"
                           "    reads part 1; makes (1) f32; moves at least 36 bytes\n"
                           "part 1: 20 % of the time"));
    json_decref(launches);
    json_decref(time.parts);
}

static void an_answer_already_paid_for_is_not_asked_again(void **state)
{
    struct place *p = *state;
    struct reply known = {.text = text_of("```cpp\n__global__ void old() {}\n```\n"),
                          .model = "m",
                          .finish_reason = "stop"};
    struct question q = {.recorded = &known};
    struct proposal r = ask(p, stage_synthesize, &q, "```cpp\n__global__ void again() {}\n```\n");

    assert_non_null(strstr(r.source.data, "old"));
    assert_false(file_exists(path_join(p->a, p->dir, "prompt")));
}

static void what_a_gpu_says_of_itself_is_kept_as_far_as_it_says(void **state)
{
    struct place *p = *state;
    json_t *o = json_object();

    machine_add_gpu(o, "GPU-1234-ab, 550.54, 1980, 2619, [N/A], 45\n", p->a);
    assert_string_equal(json_string_value(json_object_get(o, "gpu_uuid")), "GPU-1234-ab");
    assert_string_equal(json_string_value(json_object_get(o, "driver")), "550.54");
    assert_true(json_number_value(json_object_get(o, "sm_mhz")) == 1980);
    assert_null(json_object_get(o, "sm_max_mhz"));
    assert_true(json_number_value(json_object_get(o, "temperature_c")) == 45);
    json_object_clear(o);
    machine_add_gpu(o, "No devices were found\n", p->a);
    assert_null(json_object_get(o, "driver"));
    json_decref(o);
}

int main(void)
{
#define ALONE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ALONE(synthesis_takes_a_whole_file_out_of_a_reply),
        ALONE(a_reply_without_code_is_a_verdict_with_its_reason),
        ALONE(a_diagnosis_sees_verdict_and_kernel_and_is_words_only),
        ALONE(a_repair_applies_edits_or_says_why_not),
        ALONE(an_optimisation_is_told_time_profile_and_what_was_tried),
        ALONE(an_optimisation_of_parts_is_told_whose_turn_it_is),
        ALONE(an_answer_already_paid_for_is_not_asked_again),
        ALONE(what_a_gpu_says_of_itself_is_kept_as_far_as_it_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
