/*
 * test_real.c - the judgement with all its real parts: oracle, runner, simt.
 *
 * The kernels are tests/runner/kernels.cu; the task is relu(x) + 2 y. Needs a
 * Python with torch and a C compiler; skipped where one is missing.
 */
#include "base/fs.h"
#include "base/json.h"
#include "eval/judge.h"
#include "simt/emit/translate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 2000, COLUMNS = 61, COUNT = ROWS * COLUMNS };

static const char task_text[] = "import torch\n"
                                "class Model(torch.nn.Module):\n"
                                "    def forward(self, x, y):\n"
                                "        return torch.relu(x) + 2 * y\n"
                                "def get_inputs():\n"
                                "    return [torch.randn(2000, 61), torch.randn(2000, 61)]\n"
                                "def get_init_inputs():\n"
                                "    return []\n";

static const char *const kernels[] = {"blend", "blend_wrong", "blend_short", "blend_coarse",
                                      "blend_strided"};

struct bench {
    struct arena *a;
    char *dir;
    struct oracle *oracle;
    struct task task;
    struct device device;
    struct candidate candidate;
    struct build_result build;
    struct error err;
};

static bool start(struct bench *b)
{
    struct oracle_config config = {.python = getenv("CUTEGEN_PYTHON"), .script = getenv("ORACLE")};
    struct oracle_load load = {.device = "cpu"};
    struct translate_options options = {0};
    struct simt_built built;
    struct text ptx;

    if (!file_read(getenv("KERNELS_PTX"), 1 << 20, b->a, &ptx, &b->err) ||
        !file_read(getenv("KERNELS_CU"), 1 << 20, b->a, &b->candidate.source, &b->err) ||
        !dir_temp("judge-real", b->a, &b->dir, &b->err))
        return false;
    load.work_dir = b->dir;
    load.task_path = path_join(b->a, b->dir, "task.py");
    config.task = load.task_path;
    options.cache_dir = b->dir;
    if (!file_write(load.task_path, text_of(task_text), &b->err) ||
        !simt_compile(ptx, kernels, ARRAY_LEN(kernels), &options, b->a, &built, &b->err) ||
        !oracle_start(&config, &b->oracle, &b->err) ||
        !oracle_load(b->oracle, &load, b->a, &b->task, &b->err))
        return false;
    b->build.module_path = built.so_path;
    b->device = (struct device){.kind = DEVICE_SIMT, .name = "simt", .models = "H200"};
    return true;
}

static int set_up(void **state)
{
    struct bench *b = xmalloc(sizeof *b);

    b->a = arena_new();
    *state = b;
    if (start(b) || (b->err.kind == ERROR_MACHINE && !getenv("CUTEGEN_PYTHON")))
        return 0; /* each test skips by itself then */
    fprintf(stderr, "%s\n", b->err.text);
    return -1;
}

static int tear_down(void **state)
{
    struct bench *b = *state;
    struct error ignored = {0};

    oracle_stop(b->oracle);
    json_decref(b->task.description);
    dir_remove(b->dir, &ignored);
    arena_free(b->a);
    xfree(b);
    return 0;
}

static void plan(struct bench *b, const char *kernel)
{
    char count[9];

    snprintf(count, sizeof count, "%02x%02x%02x00", COUNT & 255, COUNT >> 8 & 255, COUNT >> 16);
    b->build.names = json_pack("{s:s}", "k", kernel);
    b->build.launches =
        json_pack("{s:[], s:[], s:[{s:s, s:s, s:i, s:[i,i,i], s:[i,i,i], s:[i,i,i], s:i, "
                  "s:[{s:s,s:i},{s:s,s:i},{s:s,s:i},{s:s}]}]}",
                  "workspace", "maps", "ops", "op", "launch", "kernel", "k", "line", 1, "grid",
                  (COUNT + 255) / 256, 1, 1, "block", 256, 1, 1, "cluster", 1, 1, 1, "smem", 0,
                  "args", "buffer", "out0", "offset", 0, "buffer", "in0", "offset", 0, "buffer",
                  "in1", "offset", 0, "bytes", count);
    assert_non_null(b->build.launches);
}

static void judge(struct bench *b, const char *kernel, struct test_result *test,
                  struct measurement *time)
{
    struct judge_config config = {.device = &b->device,
                                  .oracle = b->oracle,
                                  .task = &b->task,
                                  .draws = 3,
                                  .threads = 1,
                                  .runner_program = getenv("RUNNER"),
                                  .source_name = "my.cu"};

    if (!b->build.module_path) {
        print_message("skipped: %s\n", b->err.text);
        skip();
    }
    plan(b, kernel);
    if (!judge_test(&config, &b->candidate, &b->build, b->a, test, &b->err) ||
        !judge_measure(&config, &b->build, test, b->a, time, &b->err))
        fail_msg("%s: %s", kernel, b->err.text);
    print_message("%-14s %s: %s; %.4f us %s\n", kernel, verdict_names[test->verdict.kind],
                  test->verdict.summary, time->time_us, time->bound);
    json_decref(b->build.names);
    json_decref(b->build.launches);
}

static void release(struct test_result *test, struct measurement *time)
{
    json_decref(test->counters);
    json_decref(time->parts);
}

static const struct real_case {
    const char *kernel;
    enum verdict_kind kind;
    const char *summary;
} real_cases[] = {
    {"blend", VERDICT_PASS, "3 draws of 3 distributions"},
    {"blend_wrong", VERDICT_WRONG_VALUES, "of 122000 output elements are wrong"},
    {"blend_short", VERDICT_NOT_WRITTEN, "7 of 122000 output elements were never written"},
    {"blend_coarse", VERDICT_IMPRECISE, "rms error"},
    {"blend_strided", VERDICT_PASS, "3 draws"},
};

static void kernels_get_the_verdicts_they_deserve(void **state)
{
    struct bench *b = *state;

    for (size_t i = 0; i < ARRAY_LEN(real_cases); i++) {
        const struct real_case *c = &real_cases[i];
        struct test_result test;
        struct measurement time;

        judge(b, c->kernel, &test, &time);
        if (test.verdict.kind != c->kind || !strstr(test.verdict.summary, c->summary))
            fail_msg("%s: %s: %s\n%s", c->kernel, verdict_names[test.verdict.kind],
                     test.verdict.summary, test.verdict.detail);
        assert_true(test.deterministic);
        release(&test, &time);
    }
}

static void coalesced_access_has_the_smaller_modelled_time(void **state)
{
    struct bench *b = *state;
    struct test_result test, strided_test;
    struct measurement good, strided;

    judge(b, "blend", &test, &good);
    judge(b, "blend_strided", &strided_test, &strided);
    assert_true(good.modelled);
    assert_true(strided.time_us > 1.3 * good.time_us);
    assert_true(good.time_us >= good.floor_us);
    release(&test, &good);
    release(&strided_test, &strided);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_get_the_verdicts_they_deserve),
        cmocka_unit_test(coalesced_access_has_the_smaller_modelled_time),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
