/*
 * test_simt.c - the runner on simt, with real kernels (kernels.cu).
 *
 * Translated by simt's own translator with the host's C compiler; skipped
 * where there is none.
 */
#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "simt/emit/translate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GUARD = 4096, ELEMENTS = 1024 };

static const char *const kernels[] = {"scale",   "past_the_end", "into_the_input", "neighbours",
                                      "forever", "impostor",     "counts_up"};

struct bench {
    struct arena *a;
    char *dir;
    const char *module;
    struct child *child;
    struct error err;
};

static void open_bench(struct bench *b)
{
    const char *runner = getenv("RUNNER"), *ptx_path = getenv("KERNELS_PTX");
    struct translate_options options = {0};
    struct simt_built built;
    struct text ptx;

    memset(b, 0, sizeof *b);
    b->a = arena_new();
    assert_non_null(runner);
    assert_true(dir_temp("runner-simt", b->a, &b->dir, &b->err));
    assert_true(file_read(ptx_path, 1 << 20, b->a, &ptx, &b->err));
    options.cache_dir = getenv("SIMT_TEST_CACHE");
    if (!simt_compile(ptx, kernels, sizeof kernels / sizeof *kernels, &options, b->a, &built,
                      &b->err)) {
        if (b->err.kind == ERROR_MACHINE)
            skip();
        fail_msg("%s", b->err.text);
    }
    b->module = built.so_path;
    assert_true(child_start(&(struct proc_spec){.argv = (const char *const[]){runner, NULL},
                                                .clean_env = true,
                                                .no_network = true},
                            &b->child, &b->err));
}

static void close_bench(struct bench *b)
{
    child_stop(b->child);
    assert_true(dir_remove(b->dir, &b->err));
    arena_free(b->a);
}

static json_t *ask(struct bench *b, const char *request)
{
    char *line = arena_strdup(b->a, request);
    enum child_answer how;
    struct text answer;
    json_t *v = NULL;

    for (char *c = line; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    assert_true(child_ask(b->child, text_of(line), 1200000, 1 << 20, b->a, &how, &answer, &b->err));
    if (how != CHILD_LINE)
        fail_msg("%s\n-> no answer: %s", request, child_stderr(b->child, b->a).data);
    if (!json_parse(answer, "answer", &v, &b->err))
        fail_msg("%s: %s", b->err.text, answer.data);
    return v;
}

static void expect(struct bench *b, const char *request, const char *outcome)
{
    json_t *v = ask(b, request);

    if (!json_bool_or(v, "ok", false) || strcmp(json_string_or(v, "outcome", ""), outcome) != 0)
        fail_msg("%s\n-> %s", request, json_dumps(v, JSON_COMPACT));
    json_decref(v);
}

/* KERNEL(out0, SECOND, n), four blocks of 256 */
static const char *load_request(struct bench *b, const char *kernel, const char *second)
{
    return arena_printf(
        b->a,
        "{'do':'load','device':'simt','module':'%s','names':{'k':'%s'},'check':'full',"
        "'counters':true,'threads':2,'watchdog_ms':%d,'plan':{'workspace':[{'bytes':%d}],"
        "'maps':[],'ops':[{'op':'launch','kernel':'k','line':9,'grid':[%d,1,1],"
        "'block':[256,1,1],'cluster':[1,1,1],'smem':0,'args':[{'buffer':'out0','offset':0},"
        "{'buffer':'%s','offset':0},{'bytes':'00040000','type':'int'}]}]}}",
        b->module, kernel, strcmp(kernel, "forever") ? 300000 : 700, ELEMENTS * 4,
        strcmp(kernel, "past_the_end") ? 4 : 5, second);
}

static const char *make_buffer(struct bench *b, const char *name)
{
    static float data[2 * GUARD / 4 + ELEMENTS];
    const char *path = path_join(b->a, b->dir, name);

    for (int i = 0; i < ELEMENTS; i++)
        data[GUARD / 4 + i] = (float)i;
    assert_true(file_write(path, (struct text){(const char *)data, sizeof data}, &b->err));
    return arena_printf(b->a, "'%s':{'path':'%s','offset':%d,'bytes':%d}", name, path, GUARD,
                        ELEMENTS * 4);
}

/* Loads, binds and runs one kernel. */
static json_t *run_kernel(struct bench *b, const char *kernel, const char *second)
{
    expect(b, load_request(b, kernel, second), "ok");
    expect(b,
           arena_printf(b->a, "{'do':'bind','buffers':{%s,%s}}", make_buffer(b, "in0"),
                        make_buffer(b, "out0")),
           "ok");
    return ask(b, "{'do':'run','hash':true}");
}

static float value_at(struct bench *b, const char *name, int index)
{
    struct text t;
    float v;

    assert_true(file_read(path_join(b->a, b->dir, name), 1 << 20, b->a, &t, &b->err));
    memcpy(&v, t.data + GUARD + 4 * index, sizeof v);
    return v;
}

static void a_kernel_writes_the_oracles_file(void **state)
{
    struct bench b;
    json_t *v, *counters;

    (void)state;
    open_bench(&b);
    v = run_kernel(&b, "scale", "in0");
    assert_string_equal(json_string_or(v, "outcome", ""), "ok");
    assert_null(json_object_get(v, "findings"));
    for (int i = 0; i < ELEMENTS; i++)
        assert_true(value_at(&b, "out0", i) == 2.0f * (float)i);
    counters = json_array_get(json_object_get(v, "counters"), 0);
    assert_int_equal(json_int_or(counters, "blocks", 0), 4);
    assert_int_equal(json_int_or(counters, "threads_block", 0), 256);
    assert_int_equal(json_int_or(counters, "global_load_requests", 0), 32);
    assert_int_equal(json_int_or(counters, "global_load_sectors", 0), 128);
    assert_int_equal(json_int_or(counters, "unique_sectors", 0), 256);
    assert_string_equal(json_string_or(counters, "lowered", ""), "scale");
    json_decref(v);
    close_bench(&b);
}

static const struct finding_case {
    const char *kernel, *second, *kind;
    int line;
} finding_cases[] = {
    {"past_the_end", "in0", "out-of-bounds access", 16},
    {"into_the_input", "in0", "write to an input", 23},
    {"neighbours", "in0", "shared-memory race", 31},
    {"counts_up", "ws0", "uninitialised read", 52},
};

static void a_broken_rule_is_a_finding_at_the_users_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof finding_cases / sizeof *finding_cases; i++) {
        const struct finding_case *c = &finding_cases[i];
        json_t *v, *found = NULL, *one;
        struct bench b;
        size_t k;

        open_bench(&b);
        v = run_kernel(&b, c->kernel, c->second);
        json_array_foreach(json_object_get(v, "findings"), k,
                           one) if (strcmp(json_string_or(one, "kind", ""), c->kind) == 0 &&
                                    json_int_or(one, "line", 0) == c->line) found = one;
        if (!found)
            fail_msg("%s: no %s at line %d: %s", c->kernel, c->kind, c->line,
                     json_dumps(v, JSON_COMPACT));
        assert_string_equal(json_string_or(found, "kernel", ""), "k");
        json_decref(v);
        close_bench(&b);
    }
}

static void one_byte_past_the_tensor_is_found_although_the_guard_would_take_it(void **state)
{
    struct bench b;
    json_t *v, *one;

    (void)state;
    open_bench(&b);
    v = run_kernel(&b, "past_the_end", "in0");
    one = json_array_get(json_object_get(v, "findings"), 0);
    assert_non_null(one);
    assert_int_equal(json_int_or(one, "count", 0), 1);
    assert_true(value_at(&b, "out0", ELEMENTS) == 0.0f);
    json_decref(v);
    close_bench(&b);
}

static void inputs_survive_a_kernel_that_writes_them(void **state)
{
    struct bench b;
    json_t *v;

    (void)state;
    open_bench(&b);
    v = run_kernel(&b, "into_the_input", "in0");
    for (int i = 0; i < ELEMENTS; i++)
        assert_true(value_at(&b, "in0", i) == (float)i);
    json_decref(v);
    close_bench(&b);
}

static void a_kernel_that_does_not_end_is_a_hang(void **state)
{
    struct bench b;
    json_t *v;

    (void)state;
    open_bench(&b);
    v = run_kernel(&b, "forever", "in0");
    assert_string_equal(json_string_or(v, "outcome", ""), "hang");
    json_decref(v);
    close_bench(&b);
}

static void what_a_kernel_prints_is_never_an_answer(void **state)
{
    struct bench b;
    json_t *v;

    (void)state;
    open_bench(&b);
    v = run_kernel(&b, "impostor", "in0");
    assert_non_null(json_object_get(v, "hash")); /* the runner's own answer has it */
    assert_non_null(strstr(child_stderr(b.child, b.a).data, "\"outcome\": \"ok\""));
    expect(&b, "{'do':'end'}", "ok");
    json_decref(v);
    close_bench(&b);
}

static void workspace_keeps_nothing_from_run_to_run(void **state)
{
    struct bench b;
    json_t *one, *two;

    (void)state;
    open_bench(&b);
    one = run_kernel(&b, "counts_up", "ws0");
    two = ask(&b, "{'do':'run','hash':true}");
    assert_true(value_at(&b, "out0", 5) != value_at(&b, "out0", 5)); /* NaN + 1, both times */
    assert_int_equal(json_array_size(json_object_get(one, "findings")),
                     json_array_size(json_object_get(two, "findings")));
    json_decref(one);
    json_decref(two);
    close_bench(&b);
}

static void wrong_arguments_are_a_bad_launch(void **state)
{
    struct bench b;
    json_t *v;

    (void)state;
    open_bench(&b);
    v = ask(&b, arena_printf(b.a,
                             "{'do':'load','device':'simt','module':'%s','names':{'k':'scale'},"
                             "'plan':{'workspace':[],'maps':[],'ops':[{'op':'launch','kernel':'k',"
                             "'line':9,'grid':[1,1,1],'block':[32,1,1],'cluster':[1,1,1],'smem':0,"
                             "'args':[{'buffer':'out0','offset':0},{'buffer':'in0','offset':0},"
                             "{'bytes':'0004000000000000'}]}]}}",
                             b.module));
    assert_string_equal(json_string_or(v, "outcome", ""), "bad launch");
    assert_string_equal(
        json_string_or(v, "text", ""),
        "argument 3 of k (step 1 of the plan, line 9) is 8 bytes, the kernel takes 4");
    json_decref(v);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_writes_the_oracles_file),
        cmocka_unit_test(a_broken_rule_is_a_finding_at_the_users_line),
        cmocka_unit_test(one_byte_past_the_tensor_is_found_although_the_guard_would_take_it),
        cmocka_unit_test(inputs_survive_a_kernel_that_writes_them),
        cmocka_unit_test(a_kernel_that_does_not_end_is_a_hang),
        cmocka_unit_test(what_a_kernel_prints_is_never_an_answer),
        cmocka_unit_test(workspace_keeps_nothing_from_run_to_run),
        cmocka_unit_test(wrong_arguments_are_a_bad_launch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
