/*
 * test_oracle_gpu.c - an oracle on a GPU is confined, and runs without only where its driver must.
 *
 * The oracle is a script of a few lines: it knows from its environment whether it is confined.
 */
#include "base/fs.h"
#include "eval/oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* Says that its device does not open where it is to (%s). */
static const char script_text[] = "import json, os, sys\n"
                                  "confined = 'PLANTED' not in os.environ\n"
                                  "closed = %s\n"
                                  "for line in sys.stdin:\n"
                                  "    asked = json.loads(line)['do']\n"
                                  "    if asked == 'ready' and closed:\n"
                                  "        said = {'ok': False, 'kind': 'machine', 'text': 'CUDA "
                                  "says 304', 'hint': '', 'opened': False}\n"
                                  "    elif asked == 'load':\n"
                                  "        said = {'ok': False, 'kind': 'machine', 'text': "
                                  "f'confined: {confined}', 'hint': '', 'opened': False}\n"
                                  "    else:\n"
                                  "        said = {'ok': True}\n"
                                  "    print(json.dumps(said), flush=True)\n";

struct lender {
    struct child *lent[4];
    int lease[4];
    int count;
};

struct bench {
    struct arena *a;
    char *dir;
    struct lender lender;
    struct child_source source;
    struct oracle_config config;
    struct oracle *oracle;
    struct error err;
};

static bool lend(void *self, const char *kind, const char *tag, const struct proc_spec *spec,
                 struct child **out, struct error *err)
{
    struct lender *l = self;
    const char *argv[16] = {NULL};
    struct proc_spec marked = *spec;
    int fds[3], ends[2];
    size_t n = 0;

    assert_string_equal(kind, "oracle");
    assert_string_equal(tag, "a task");
    assert_true(l->count < 4);
    for (; spec->argv[n]; n++)
        argv[n] = spec->argv[n];
    argv[n] = "--lent";
    marked.argv = argv;
    if (!child_start(&marked, &l->lent[l->count], err))
        return false;
    child_streams(l->lent[l->count], fds);
    for (int i = 0; i < 3; i++)
        fds[i] = dup(fds[i]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    l->lease[l->count] = ends[1];
    *out = child_adopt(fds, ends[0], child_pid(l->lent[l->count]), child_tmp(l->lent[l->count]));
    l->count++;
    return true;
}

static void bench_open(struct bench *b, const char *closed, bool lent)
{
    const char *script;
    const char *task;

    memset(b, 0, sizeof *b);
    b->a = arena_new();
    setenv("PLANTED", "1", 1);
    assert_true(dir_temp("oracle-gpu", b->a, &b->dir, &b->err));
    script = path_join(b->a, b->dir, "main.py");
    task = path_join(b->a, b->dir, "task.py");
    assert_true(file_write(script, text_of(arena_printf(b->a, script_text, closed)), &b->err));
    assert_true(file_write(task, text_of("\n"), &b->err));
    b->source = (struct child_source){lend, &b->lender};
    b->config = (struct oracle_config){.python = getenv("CUTEGEN_PYTHON"),
                                       .script = script,
                                       .tag = "a task",
                                       .task = task,
                                       .source = lent ? &b->source : NULL,
                                       .cuda = true};
    if (!oracle_start(&b->config, &b->oracle, &b->err))
        fail_msg("%s", b->err.text);
    oracle_ready(b->oracle, "cuda:0");
}

/* What the oracle that is asked from now on says of itself. */
static const char *load(struct bench *b)
{
    struct oracle_load wanted = {
        .task_path = b->config.task, .device = "cuda:0", .work_dir = b->dir};
    struct task task;

    assert_false(oracle_load(b->oracle, &wanted, b->a, &task, &b->err));
    return b->err.text;
}

static void bench_close(struct bench *b)
{
    struct error ignored = {0};

    oracle_stop(b->oracle);
    for (int i = 0; i < b->lender.count; i++) {
        close(b->lender.lease[i]);
        child_stop(b->lender.lent[i]);
    }
    dir_remove(b->dir, &ignored);
    arena_free(b->a);
}

static void a_driver_that_starts_inside_stays_inside(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b, "False", false);
    assert_true(oracle_is_confined(b.oracle));
    assert_non_null(strstr(load(&b), "confined: True"));
    bench_close(&b);
}

static void one_that_does_not_runs_without_and_that_is_known(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b, "confined", false);
    assert_false(oracle_is_confined(b.oracle));
    assert_non_null(strstr(load(&b), "confined: False"));
    bench_close(&b);
}

/* A task that was in it may speak for it: a new one is asked, and its driver starts. What is lent
 * here is told apart by a word the lender adds. */
static void an_oracle_that_was_lent_is_not_believed(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b, "'--lent' in sys.argv", true);
    assert_int_equal(b.lender.count, 1);
    assert_true(oracle_is_confined(b.oracle));
    assert_non_null(strstr(load(&b), "confined: True"));
    bench_close(&b);
}

/* Only the answer to `ready` of a new process counts: a load runs the task's code. */
static void a_load_that_fails_does_not_lift_the_confinement(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b, "False", false);
    load(&b);
    assert_true(oracle_is_confined(b.oracle));
    b.err = (struct error){0};
    assert_non_null(strstr(load(&b), "confined: True"));
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_driver_that_starts_inside_stays_inside),
        cmocka_unit_test(one_that_does_not_runs_without_and_that_is_known),
        cmocka_unit_test(an_oracle_that_was_lent_is_not_believed),
        cmocka_unit_test(a_load_that_fails_does_not_lift_the_confinement),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
