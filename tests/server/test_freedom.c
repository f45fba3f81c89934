/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_freedom.c - what a warm server was started under (ulimit, nice, taskset) is not imposed on
 * those who come later without.
 */
#include "base/fs.h"
#include "base/json.h"
#include "server/warm.h"
#include "server/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of the server that has lent a process; it is still there. */
static int lender(struct warm *w)
{
    const char *argv[] = {"cat", NULL};
    struct error err = {0};
    json_t *said = NULL;
    struct child *c;
    int pid;

    assert_true(
        child_obtain(warm_source(w), "builder", NULL, &(struct proc_spec){.argv = argv}, &c, &err));
    assert_true(child_is_lent(c));
    assert_true(warm_status(&said, &err));
    pid = (int)json_int_or(said, "pid", 0);
    assert_true(pid > 0);
    json_decref(said);
    child_return(c);
    return pid;
}

static void a_server_with_lower_limits_is_replaced(void **state)
{
    struct arena *a = arena_new();
    struct warm *w = warm_open(&(struct warm_config){.idle_s = 60, .memory_mib = 1024});
    struct error err = {0};
    struct rlimit all, some;
    int limited, free_one;
    bool was_there;
    char *dir;

    (void)state;
    assert_true(dir_temp("cutegen-server-test", a, &dir, &err));
    assert_int_equal(setenv("CUTEGEN_RUNTIME", dir, 1), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
    some = (struct rlimit){all.rlim_cur - 1, all.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &some), 0);
    limited = lender(w);
    assert_int_equal(lender(w), limited);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
    free_one = lender(w);
    assert_int_not_equal(free_one, limited);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &some), 0); /* one with fewer may use it */
    assert_int_equal(lender(w), free_one);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
    assert_true(warm_stop(&was_there, &err) && was_there);
    warm_close(w);
    while (kill(free_one, 0) == 0 && file_exists(path_join(a, dir, "server.socket")))
        usleep(2000);
    dir_remove(dir, &err);
    arena_free(a);
}

/* As clients of other limits do: one that has just said hello, or is about to, asks its successor.
 */
static void a_server_that_ends_meanwhile_costs_no_loan(void **state)
{
    enum { LOANS = 60 };
    struct arena *a = arena_new();
    struct warm *w = warm_open(&(struct warm_config){.idle_s = 60, .memory_mib = 1024});
    struct error err = {0};
    bool was_there;
    char *dir;
    pid_t stopper;

    (void)state;
    assert_true(dir_temp("cutegen-server-test", a, &dir, &err));
    assert_int_equal(setenv("CUTEGEN_RUNTIME", dir, 1), 0);
    stopper = fork();
    if (stopper == 0)
        for (;;) {
            warm_stop(&was_there, &err);
            usleep(3000);
        }
    for (int i = 0; i < LOANS; i++) {
        const char *argv[] = {"cat", NULL};
        struct child *c;

        assert_true(child_obtain(warm_source(w), "builder", NULL, &(struct proc_spec){.argv = argv},
                                 &c, &err));
        assert_true(child_is_lent(c));
        child_return(c);
    }
    kill(stopper, SIGKILL);
    waitpid(stopper, NULL, 0);
    assert_true(warm_stop(&was_there, &err));
    warm_close(w);
    dir_remove(dir, &err);
    arena_free(a);
}

static void freedom_is_compared_by_each_of_its_parts(void **state)
{
    json_t *ours = wire_freedom();

    (void)state;
    assert_false(wire_is_freer_than(ours));
    assert_false(wire_is_freer_than(NULL)); /* an older server says nothing */
    for (size_t i = 0; i < json_array_size(ours); i++) {
        json_t *less = json_deep_copy(ours);

        json_array_set_new(less, i, json_integer(json_integer_value(json_array_get(ours, i)) - 1));
        assert_true(wire_is_freer_than(less));
        assert_int_not_equal(json_array_size(less), 0);
        json_decref(less);
    }
    json_decref(ours);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freedom_is_compared_by_each_of_its_parts),
        cmocka_unit_test(a_server_with_lower_limits_is_replaced),
        cmocka_unit_test(a_server_that_ends_meanwhile_costs_no_loan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
