/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c - a warm server of a test; see bench.h. */
#include "bench.h"

#include "base/clock.h"
#include "base/fs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void open_warm(struct bench *b, int idle_s, int memory_mib)
{
    warm_close(b->warm);
    b->warm = warm_open(&(struct warm_config){.idle_s = idle_s, .memory_mib = memory_mib});
}

int setup(void **state)
{
    struct bench *b = test_calloc(1, sizeof *b);
    struct error err = {0};

    b->a = arena_new();
    if (!dir_temp("cutegen-server-test", b->a, &b->dir, &err))
        return -1;
    setenv("CUTEGEN_RUNTIME", b->dir, 1);
    open_warm(b, 60, 1024);
    *state = b;
    return 0;
}

/* Ended; an orphan may wait a while for whoever reaps orphans here. */
bool gone(int pid)
{
    char path[64], stat[256] = "", *state;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    f = fopen(path, "r");
    if (!f)
        return true;
    state = fgets(stat, sizeof stat, f) ? strrchr(stat, ')') : NULL;
    fclose(f);
    return !state || state[2] == 'Z' || state[2] == 'X';
}

void wait_gone(int pid)
{
    int64_t end = clock_ms() + PATIENCE_MS;

    while (!gone(pid) && clock_ms() < end)
        usleep(2000);
    assert_true(gone(pid));
}

json_t *status(void)
{
    struct error err = {0};
    json_t *s = NULL;

    assert_true(warm_status(&s, &err));
    return s;
}

int server_pid(void)
{
    json_t *s = status();
    int pid = (int)json_int_or(s, "pid", 0);

    json_decref(s);
    return pid;
}

int teardown(void **state)
{
    struct bench *b = *state;
    struct error ignored = {0};
    int pid = server_pid();

    if (pid)
        kill(pid, SIGKILL);
    while (pid && !gone(pid))
        usleep(2000);
    warm_close(b->warm);
    dir_remove(b->dir, &ignored);
    arena_free(b->a);
    test_free(b);
    return 0;
}

struct child *borrow_tagged(struct bench *b, const char *kind, const char *tag)
{
    const char *argv[] = {"cat", NULL};
    const struct child_source *source = warm_source(b->warm);
    struct error err = {0};
    struct child *c = NULL;

    assert_true(child_obtain(source, kind, tag, &(struct proc_spec){.argv = argv}, &c, &err));
    return c;
}

struct child *borrow(struct bench *b)
{
    struct child *c = borrow_tagged(b, "builder", NULL);

    assert_true(child_is_lent(c));
    return c;
}

void says(struct bench *b, struct child *c, const char *line)
{
    struct error err = {0};
    enum child_answer how;
    struct text answer;

    assert_true(child_ask(c, text_of(line), PATIENCE_MS, 1 << 16, b->a, &how, &answer, &err));
    assert_int_equal(how, CHILD_LINE);
    assert_string_equal(answer.data, line);
}

int count_in(const char *state)
{
    json_t *s = status(), *p;
    size_t i;
    int n = 0;

    json_array_foreach(json_object_get(s, "processes"), i, p) n +=
        strcmp(json_string_or(p, "state", ""), state) == 0;
    json_decref(s);
    return n;
}

void wait_count(const char *state, int wanted)
{
    int64_t end = clock_ms() + PATIENCE_MS;

    while (count_in(state) != wanted && clock_ms() < end)
        usleep(5000);
    assert_int_equal(count_in(state), wanted);
}
