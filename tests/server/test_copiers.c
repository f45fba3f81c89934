/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_copiers.c - the warm server's copiers: what they make is lent as what is started, and none
 * costs anything when it fails.
 *
 * The copier is cat_copier.py, whose copies say more than `cat`.
 */
#include "bench.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Its program is `cat` when it is started, and cat_copier.py's when it is a copy. */
static struct child *borrow_copy(struct bench *b, const char *tag)
{
    static const char cat[] =
        "import os, sys\nfor line in sys.stdin: print(line, end='', flush=True)";
    const char *argv[] = {"python3", "-I", "-u", "-c", cat, NULL};
    struct error err = {0};
    struct child *c = NULL;

    assert_true(child_obtain(warm_source(b->warm), "oracle", tag,
                             &(struct proc_spec){.argv = argv,
                                                 .dir = "/usr",
                                                 .private_tmp = true,
                                                 .copier = getenv("CUTEGEN_TEST_COPIER")},
                             &c, &err));
    return c;
}

/* Of the one process of this kind and state, or -1. */
static int number_of(const char *kind, const char *state, const char *key)
{
    json_t *s = status(), *all = json_object_get(s, "processes");
    int n = -1;

    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *p = json_array_get(all, i);

        if (strcmp(json_string_or(p, "kind", ""), kind) == 0 &&
            strcmp(json_string_or(p, "state", ""), state) == 0)
            n = (int)json_int_or(p, key, -1);
    }
    json_decref(s);
    return n;
}

static int wait_copier(void)
{
    int64_t end = clock_ms() + PATIENCE_MS;
    int pid;

    while ((pid = number_of("copier", "waiting", "pid")) < 0 && clock_ms() < end)
        usleep(5000);
    assert_true(pid > 0);
    return pid;
}

static void stop_three(struct child *a, struct child *b, struct child *c)
{
    child_stop(a);
    child_stop(b);
    child_stop(c);
}

static const char *asks(struct bench *b, struct child *c, const char *line)
{
    struct error err = {0};
    enum child_answer how;
    struct text answer;

    assert_true(child_ask(c, text_of(line), PATIENCE_MS, 1 << 16, b->a, &how, &answer, &err));
    assert_int_equal(how, CHILD_LINE);
    return answer.data;
}

static void the_second_has_a_copier_started_and_the_next_is_a_copy(void **state)
{
    struct bench *b = *state;
    struct child *one = borrow_copy(b, "a"), *two = borrow_copy(b, "b"), *c;
    struct error err = {0};
    json_t *about;

    says(b, one, "about"); /* started: it knows no such word */
    wait_copier();
    c = borrow_copy(b, "c");
    says(b, c, "line");
    assert_int_equal(number_of("copier", "waiting", "uses"), 1);
    assert_true(json_parse(text_of(asks(b, c, "about")), "about", &about, &err));
    assert_int_equal(json_array_size(json_object_get(about, "descriptors")), 3); /* its streams */
    assert_string_equal(json_string_or(about, "dir", ""), "/usr");
    assert_non_null(strstr(json_line(json_object_get(about, "env"), b->a), child_tmp(c)));
    json_decref(about);
    child_return(c);
    child_return(one);
    child_return(two);
}

static void a_first_one_is_enough_when_nothing_follows(void **state)
{
    struct bench *b = *state;

    child_return(borrow_copy(b, "a"));
    wait_copier();
}

static void a_copier_that_dies_costs_nothing(void **state)
{
    struct bench *b = *state;
    struct child *one = borrow_copy(b, "a"), *two = borrow_copy(b, "b"), *copy, *c;
    int pid = wait_copier();

    copy = borrow_copy(b, "c");
    kill(pid, SIGKILL);
    wait_gone(pid);
    c = borrow_copy(b, "d");
    says(b, c, "about"); /* started */
    says(b, copy, "still here");
    pid = child_pid(copy);
    child_stop(copy);
    wait_gone(pid);
    stop_three(one, two, c);
}

static void a_copier_that_hangs_is_given_up(void **state)
{
    struct bench *b = *state;
    struct child *one = borrow_copy(b, "a"), *two = borrow_copy(b, "b"), *c;
    int pid = wait_copier();

    kill(pid, SIGSTOP);
    c = borrow_copy(b, "c");
    says(b, c, "about"); /* started */
    wait_gone(pid);
    stop_three(one, two, c);
}

static void nothing_of_a_copy_outlives_its_loan_or_the_server(void **state)
{
    struct bench *b = *state;
    struct child *one = borrow_copy(b, "a"), *two = borrow_copy(b, "b"), *c;
    int pid, forked, server = server_pid();

    wait_copier();
    c = borrow_copy(b, "c");
    pid = child_pid(c);
    forked = atoi(asks(b, c, "fork"));
    assert_true(forked > 0);
    child_stop(c);
    wait_gone(pid);
    wait_gone(forked);
    c = borrow_copy(b, "d");
    pid = child_pid(c);
    forked = atoi(asks(b, c, "fork"));
    kill(server, SIGKILL);
    wait_gone(server);
    wait_gone(pid);
    wait_gone(forked);
    stop_three(one, two, c);
}

static void where_little_may_wait_there_is_no_copier(void **state)
{
    struct bench *b = *state;
    struct child *one, *two;

    open_warm(b, 60, 512);
    one = borrow_copy(b, "a");
    two = borrow_copy(b, "b");
    /* The pool is tended after each request: one would be starting. */
    for (int i = 0; i < 3; i++)
        assert_int_equal(number_of("copier", "starting", "pid"), -1);
    assert_int_equal(number_of("copier", "waiting", "pid"), -1);
    child_stop(one);
    child_stop(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_second_has_a_copier_started_and_the_next_is_a_copy),
        TEST(a_first_one_is_enough_when_nothing_follows),
        TEST(a_copier_that_dies_costs_nothing),
        TEST(a_copier_that_hangs_is_given_up),
        TEST(nothing_of_a_copy_outlives_its_loan_or_the_server),
        TEST(where_little_may_wait_there_is_no_copier),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
