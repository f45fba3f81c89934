/* test_lock.c - one holder at a time, and none that died. */
#include "base/clock.h"
#include "base/fs.h"
#include "base/lock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 6, TURNS = 40 };

struct fixture {
    struct arena *a;
    char *dir, *path;
    struct error err;
};

static int set_up(void **state)
{
    struct fixture *f = xmalloc(sizeof(*f));

    f->a = arena_new();
    if (!dir_temp("test-lock", f->a, &f->dir, &f->err))
        return -1;
    f->path = path_join(f->a, f->dir, "gpu");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    dir_remove(f->dir, &f->err);
    arena_free(f->a);
    xfree(f);
    return 0;
}

static void whoever_comes_second_is_told(void **state)
{
    struct fixture *f = *state;
    struct lock *first = NULL, *second = NULL;

    assert_true(lock_take(f->path, 0, &first, &f->err));
    assert_false(lock_take(f->path, 0, &second, &f->err));
    assert_int_equal(f->err.kind, ERROR_MACHINE);
    lock_drop(first);
    f->err = (struct error){0};
    assert_true(lock_take(f->path, 0, &second, &f->err));
    lock_drop(second);
    lock_drop(NULL);
}

static void a_holder_that_is_killed_holds_nothing(void **state)
{
    struct fixture *f = *state;
    struct lock *l = NULL;
    int ready[2];
    char byte;
    pid_t holder;

    assert_int_equal(pipe(ready), 0);
    holder = fork();
    if (holder == 0) {
        if (lock_take(f->path, 0, &l, &f->err) && write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_false(lock_take(f->path, 0, &l, &f->err));
    f->err = (struct error){0};
    kill(holder, SIGKILL);
    assert_true(lock_take(f->path, 20000, &l, &f->err)); /* gone before it is reaped */
    lock_drop(l);
    waitpid(holder, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

/* Each writes its number, waits, and finds it still there: nobody else was in. */
static int take_turns(const struct fixture *f, int number)
{
    char *mark = path_join(f->a, f->dir, "mark"), *mine = arena_printf(f->a, "%d", number);
    struct error err = {0};

    for (int i = 0; i < TURNS; i++) {
        struct lock *l;
        struct text seen;

        if (!lock_take(f->path, -1, &l, &err) || !file_write(mark, text_of(mine), &err))
            return 2;
        usleep(200);
        if (!file_read(mark, 64, f->a, &seen, &err) || !text_equal(seen, text_of(mine)))
            return 1;
        lock_drop(l);
    }
    return 0;
}

static void several_at_once_take_turns(void **state)
{
    struct fixture *f = *state;
    pid_t workers[WORKERS];

    for (int i = 0; i < WORKERS; i++) {
        workers[i] = fork();
        if (workers[i] == 0)
            _exit(take_turns(f, i));
    }
    for (int i = 0; i < WORKERS; i++) {
        int status;

        waitpid(workers[i], &status, 0);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

static void who_waits_to_be_alone_is_not_kept_out_by_those_who_share(void **state)
{
    struct fixture *f = *state;
    struct lock *one = NULL, *other = NULL, *late = NULL;
    int ready[2];
    char byte;
    pid_t waiting;

    assert_true(lock_enter(f->path, false, 0, &one, &f->err));
    assert_true(lock_enter(f->path, false, 0, &other, &f->err));
    assert_false(lock_enter(f->path, true, 0, &late, &f->err));
    f->err = (struct error){0};
    assert_int_equal(pipe(ready), 0);
    waiting = fork();
    if (waiting == 0) {
        lock_drop(one); /* its copies: ours still hold */
        lock_drop(other);
        _exit(!lock_enter(f->path, true, -1, &late, &f->err) || write(ready[1], "x", 1) != 1);
    }
    while (lock_enter(f->path, false, 0, &late, &f->err)) { /* until it stands at the gate */
        lock_drop(late);
        usleep(1000);
    }
    f->err = (struct error){0};
    lock_drop(one);
    assert_false(lock_enter(f->path, false, 0, &late, &f->err));
    lock_drop(other);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    waitpid(waiting, NULL, 0);
    f->err = (struct error){0};
    assert_true(lock_enter(f->path, false, 20000, &late, &f->err));
    lock_drop(late);
    close(ready[0]);
    close(ready[1]);
}

static void a_lock_for_all_users_can_be_opened_by_all(void **state)
{
    struct fixture *f = *state;
    mode_t before = umask(077);
    struct lock *l = NULL;
    struct stat st;

    assert_true(lock_take(f->path, 0, &l, &f->err));
    umask(before);
    assert_int_equal(stat(f->path, &st), 0);
    assert_int_equal(st.st_mode & 0666, 0666);
    lock_drop(l);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(whoever_comes_second_is_told),
        TEST(a_holder_that_is_killed_holds_nothing),
        TEST(several_at_once_take_turns),
        TEST(who_waits_to_be_alone_is_not_kept_out_by_those_who_share),
        TEST(a_lock_for_all_users_can_be_opened_by_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
