/*
 * test_oracle.c - the real oracle through its client.
 *
 * Needs a Python with torch: $CUTEGEN_PYTHON, or what cutegen itself
 * would find. Skipped where there is none.
 */
#include "base/fs.h"
#include "eval/oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char task_text[] = "import torch\n"
                                "N = 4096\n"
                                "class Model(torch.nn.Module):\n"
                                "    def forward(self, x, y):\n"
                                "        return torch.relu(x) + 2 * y\n"
                                "def get_inputs():\n"
                                "    return [torch.randn(N, 64), torch.randn(N, 64)]\n"
                                "def get_init_inputs():\n"
                                "    return []\n";

struct bench {
    struct arena *a;
    char *dir;
    struct oracle *oracle;
    struct task task;
    struct error err;
};

/* False: no torch here. */
static bool bench_open(struct bench *b, const char *text, int64_t max_elements)
{
    struct oracle_config config = {.python = getenv("CUTEGEN_PYTHON"), .script = getenv("ORACLE")};
    struct oracle_load load = {.device = "cpu", .max_elements = max_elements};

    memset(b, 0, sizeof *b);
    b->a = arena_new();
    assert_true(dir_temp("oracle-test", b->a, &b->dir, &b->err));
    load.work_dir = b->dir;
    load.task_path = path_join(b->a, b->dir, "task.py");
    config.task = load.task_path;
    assert_true(file_write(load.task_path, text_of(text), &b->err));
    return oracle_start(&config, &b->oracle, &b->err) &&
           oracle_load(b->oracle, &load, b->a, &b->task, &b->err);
}

static void bench_close(struct bench *b)
{
    struct error ignored = {0};

    oracle_stop(b->oracle);
    json_decref(b->task.description);
    dir_remove(b->dir, &ignored);
    arena_free(b->a);
}

static void need(struct bench *b, bool opened)
{
    bool no_torch = strstr(b->err.text, "has no torch") != NULL;

    if (opened)
        return;
    if (!no_torch || getenv("CUTEGEN_PYTHON"))
        fail_msg("%s", b->err.text);
    bench_close(b);
    skip();
}

static void a_task_is_described_and_scaled(void **state)
{
    struct bench b;

    (void)state;
    need(&b, bench_open(&b, task_text, 16384));
    assert_string_equal(b.task.name, "task");
    assert_int_equal(b.task.in_count, 2);
    assert_int_equal(b.task.out_count, 1);
    assert_int_equal(b.task.class, CLASS_POINTWISE);
    assert_string_equal(b.task.in[0].dtype, "f32");
    assert_int_equal(b.task.out[0].dims, 2);
    assert_true(b.task.in[0].shape[0] * b.task.in[0].shape[1] <= 16384);
    assert_non_null(strstr(b.task.scaled, "N 4096 -> "));
    assert_true(b.task.bytes_min == 3.0 * 4 * (double)b.task.in[0].shape[0] * 64);
    assert_true(json_is_array(json_object_get(b.task.description, "graph")));
    bench_close(&b);
}

static void an_unwritten_output_is_seen(void **state)
{
    struct comparison_set *set;
    json_t *buffers;
    struct bench b;

    (void)state;
    need(&b, bench_open(&b, task_text, 16384));
    set = arena_alloc(b.a, sizeof *set);
    for (int i = 0; i < 2; i++) {
        struct oracle_draw draw = {
            .seed = i ? "1234" : "5678", .distribution = i ? "wide" : "task", .shift = i};

        if (!oracle_draw(b.oracle, &draw, &buffers, &b.err))
            fail_msg("%s", b.err.text);
        assert_non_null(json_object_get(buffers, "in1"));
        assert_non_null(json_object_get(buffers, "out0"));
        json_decref(buffers);
        if (!oracle_compare(b.oracle, b.a, set, &b.err))
            fail_msg("%s", b.err.text);
        assert_int_equal(set->output_count, 1);
        assert_int_equal(set->outputs[0].unwritten, set->outputs[0].elements);
        assert_int_equal(set->guard_count, 0);
        assert_int_equal(set->modified_count, 0);
    }
    bench_close(&b);
}

static void a_task_with_a_mistake_is_the_users_error(void **state)
{
    struct bench b;
    bool opened = bench_open(&b, "import torch\nclass Model(torch.nn.Module\n", 0);

    (void)state;
    if (strstr(b.err.text, "has no torch"))
        need(&b, opened);
    assert_false(opened);
    assert_int_equal(b.err.kind, ERROR_USE);
    bench_close(&b);
}

/* The workshop frees memory and tries again by the kind, whatever the words are. */
static void a_task_beyond_the_memory_is_an_error_of_its_own_kind(void **state)
{
    struct bench b;
    bool opened = bench_open(&b,
                             "import torch\nclass Model(torch.nn.Module):\n"
                             "    def forward(self, x): return x + 1\n"
                             "def get_inputs(): return [torch.rand(1 << 21, 1 << 21)]\n"
                             "def get_init_inputs(): return []\n",
                             0);

    (void)state;
    if (strstr(b.err.text, "has no torch"))
        need(&b, opened);
    assert_false(opened);
    assert_int_equal(b.err.kind, ERROR_MEMORY);
    assert_int_equal(error_exit_code(&b.err), 2);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_is_described_and_scaled),
        cmocka_unit_test(an_unwritten_output_is_seen),
        cmocka_unit_test(a_task_with_a_mistake_is_the_users_error),
        cmocka_unit_test(a_task_beyond_the_memory_is_an_error_of_its_own_kind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
