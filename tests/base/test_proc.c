/* test_proc.c - nothing a program does makes proc_run late, large or leaves a process behind. */
#include "base/clock.h"
#include "base/fs.h"
#include "base/proc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool kills_are_lost, forked_child_dies;

/* The libc's, unless a test plays a process that no signal ends. */
int kill(pid_t pid, int sig)
{
    return kills_are_lost ? 0 : (int)syscall(SYS_kill, pid, sig);
}

static void after_fork(void)
{
    if (forked_child_dies)
        raise(SIGKILL);
}

/* For what must happen: reached only when something is broken. */
enum { PATIENCE_MS = 1200000 };

struct fixture {
    struct arena *a;
    char *dir, *mark;
    struct error err;
};

static int set_up(void **state)
{
    struct fixture *f = xmalloc(sizeof(*f));

    f->a = arena_new();
    if (!dir_temp("test-proc", f->a, &f->dir, &f->err))
        return -1;
    f->mark = path_join(f->a, f->dir, "mark");
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

/* Descendants hold a shared lock on the mark: an exclusive one tells that all are gone. */
static bool nobody_left(const struct fixture *f)
{
    int fd = open(f->mark, O_RDWR | O_CREAT, 0600);
    bool free_now = flock(fd, LOCK_EX | LOCK_NB) == 0;

    close(fd);
    return free_now;
}

static void wait_for_nobody(const struct fixture *f, bool wanted)
{
    int64_t end = clock_ms() + PATIENCE_MS;

    while (nobody_left(f) != wanted && clock_ms() < end)
        usleep(10000);
    assert_int_equal(nobody_left(f), wanted);
}

static struct proc_result run(struct fixture *f, const char *what, struct proc_spec spec)
{
    const char *argv[] = {getenv("TORTURE_CHILD"), what, f->mark, NULL};
    struct proc_result r = {0};

    spec.argv = argv;
    if (!proc_run(&spec, f->a, &r, &f->err))
        fail_msg("%s", f->err.text);
    return r;
}

static void a_program_that_ends_takes_its_family_with_it(void **state)
{
    struct fixture *f = *state;
    struct proc_result r = run(f, "family", (struct proc_spec){.deadline_ms = PATIENCE_MS});

    assert_int_equal(r.end, PROC_EXITED);
    assert_int_equal(r.code, 5);
    assert_true(nobody_left(f));
}

static void a_program_that_ignores_every_signal_ends_at_its_deadline(void **state)
{
    struct fixture *f = *state;
    int64_t start = clock_ms();
    struct proc_result r = run(f, "stubborn", (struct proc_spec){.deadline_ms = 400});

    assert_int_equal(r.end, PROC_DEADLINE);
    assert_true(clock_ms() - start < PATIENCE_MS);
    assert_true(nobody_left(f));
}

static void a_daemon_with_its_own_session_does_not_outlive_the_call(void **state)
{
    struct fixture *f = *state;
    struct proc_result r = run(f, "orphans", (struct proc_spec){.deadline_ms = PATIENCE_MS});

    assert_int_equal(r.end, PROC_EXITED);
    assert_true(nobody_left(f));
}

static void a_fork_bomb_is_put_out(void **state)
{
    struct fixture *f = *state;
    struct proc_result r = run(f, "bomb", (struct proc_spec){.deadline_ms = 500});

    assert_int_equal(r.end, PROC_DEADLINE);
    assert_true(nobody_left(f));
}

static void a_gigabyte_of_output_is_read_but_not_kept(void **state)
{
    struct fixture *f = *state;
    struct rusage before, after;

    getrusage(RUSAGE_SELF, &before);
    struct proc_result r =
        run(f, "flood", (struct proc_spec){.deadline_ms = PATIENCE_MS, .output_limit = 1 << 20});
    getrusage(RUSAGE_SELF, &after);
    assert_int_equal(r.end, PROC_EXITED);
    assert_int_equal(r.code, 0);
    assert_int_equal(r.out.len, 1 << 20);
    assert_true(r.out_cut);
    assert_true(after.ru_maxrss - before.ru_maxrss < 32 * 1024); /* KiB */
}

static void memory_without_end_is_stopped_by_what_all_processes_hold(void **state)
{
    struct fixture *f = *state;
    struct proc_spec spec = {.deadline_ms = PATIENCE_MS, .resident_limit_bytes = 256u << 20};

    assert_int_equal(run(f, "allocate", spec).end, PROC_MEMORY);
    assert_int_equal(run(f, "allocate-family", spec).end, PROC_MEMORY);
}

static void an_address_limit_makes_allocation_fail_inside(void **state)
{
    struct fixture *f = *state;
    struct proc_result r =
        run(f, "allocate",
            (struct proc_spec){.deadline_ms = PATIENCE_MS, .address_limit_bytes = 256u << 20});

    assert_int_equal(r.end, PROC_EXITED);
    assert_int_equal(r.code, 12);
}

static void a_program_that_closes_its_streams_still_meets_its_deadline(void **state)
{
    struct fixture *f = *state;
    struct proc_result r = run(f, "close-streams", (struct proc_spec){.deadline_ms = 400});

    assert_int_equal(r.end, PROC_DEADLINE);
    assert_true(nobody_left(f));
}

static void without_network_no_socket_can_be_made(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(run(f, "socket", (struct proc_spec){.deadline_ms = PATIENCE_MS}).code, 1);
    assert_int_equal(
        run(f, "socket", (struct proc_spec){.deadline_ms = PATIENCE_MS, .no_network = true}).code,
        0);
}

static void keys_do_not_reach_a_program(void **state)
{
    static const char *const extra[] = {"ADDED=1", "HOME=/nowhere", NULL};
    struct fixture *f = *state;
    struct proc_result r;

    setenv("OPENAI_API_KEY", "sk-planted", 1);
    setenv("MY_SECRET", "planted", 1);
    setenv("HARMLESS", "yes", 1);
    r = run(f, "environment", (struct proc_spec){.deadline_ms = PATIENCE_MS, .env = extra});
    assert_null(strstr(r.out.data, "planted"));
    assert_non_null(strstr(r.out.data, "HARMLESS=yes"));
    assert_non_null(strstr(r.out.data, "HOME=/nowhere\n"));
    assert_non_null(strstr(r.out.data, "ADDED=1"));
    r = run(f, "environment",
            (struct proc_spec){.deadline_ms = PATIENCE_MS, .env = extra, .clean_env = true});
    assert_string_equal(r.out.data, "ADDED=1\nHOME=/nowhere\n");
}

static void a_crash_is_told_as_the_signal(void **state)
{
    struct fixture *f = *state;
    struct proc_result r = run(f, "crash", (struct proc_spec){.deadline_ms = PATIENCE_MS});

    assert_int_equal(r.end, PROC_SIGNALED);
    assert_string_equal(proc_end_text(&r, f->a), "killed by SIGSEGV");
}

static void what_cannot_be_started_is_an_error_that_names_it(void **state)
{
    struct fixture *f = *state;
    const char *missing[] = {"no-such-program-here", NULL};
    const char *here[] = {"true", NULL};
    struct proc_result r;

    assert_false(proc_run(&(struct proc_spec){.argv = missing}, f->a, &r, &f->err));
    assert_non_null(strstr(f->err.text, "no-such-program-here"));
    f->err = (struct error){0};
    assert_false(
        proc_run(&(struct proc_spec){.argv = here, .dir = "/no/such/dir"}, f->a, &r, &f->err));
    assert_non_null(strstr(f->err.text, "/no/such/dir"));
    f->err = (struct error){0};
    const char *text_file[] = {f->mark, NULL};
    assert_true(file_write(f->mark, text_of("not a program"), &f->err));
    chmod(f->mark, 0755);
    assert_false(proc_run(&(struct proc_spec){.argv = text_file}, f->a, &r, &f->err));
    assert_int_equal(f->err.kind, ERROR_MACHINE);
}

static void a_supervisor_that_dies_at_once_is_named(void **state)
{
    struct fixture *f = *state;
    const char *argv[] = {"true", NULL};
    struct proc_result r;
    bool ok;

    forked_child_dies = true;
    ok = proc_run(&(struct proc_spec){.argv = argv}, f->a, &r, &f->err);
    forked_child_dies = false;
    assert_false(ok);
    assert_string_equal(f->err.text, "cannot start true: its supervisor was killed");
}

/* As one in uninterruptible sleep. It dies with its parent here: only then can it be waited for. */
static void what_does_not_die_when_killed_is_given_up(void **state)
{
    struct fixture *f = *state;
    struct proc_result r;

    kills_are_lost = true; /* the supervisor's, too: it is forked from here */
    r = run(f, "close-streams", (struct proc_spec){.deadline_ms = 200, .ending_ms = 300});
    kills_are_lost = false;
    assert_int_equal(r.end, PROC_DEADLINE);
    wait_for_nobody(f, true);
}

static void a_child_answers_line_by_line_and_says_when_it_cannot(void **state)
{
    struct fixture *f = *state;
    const char *argv[] = {"sh", "-c",
                          "read x; echo one:$x; read x; echo last words >&2; echo two:$x; read x; "
                          "read never",
                          NULL};
    struct child *c;
    enum child_answer how;
    struct text line;

    assert_true(child_start(&(struct proc_spec){.argv = argv}, &c, &f->err));
    assert_true(child_ask(c, text_of("a"), PATIENCE_MS, 100, f->a, &how, &line, &f->err));
    assert_string_equal(line.data, "one:a");
    assert_true(child_ask(c, text_of("b"), PATIENCE_MS, 100, f->a, &how, &line, &f->err));
    assert_string_equal(line.data, "two:b");
    assert_true(child_ask(c, text_of("c"), 200, 100, f->a, &how, &line, &f->err));
    assert_int_equal(how, CHILD_LATE);
    assert_non_null(strstr(child_stderr(c, f->a).data, "last words"));
    child_stop(c);
}

static void a_child_that_ends_or_floods_is_told_apart(void **state)
{
    struct fixture *f = *state;
    const char *ends[] = {"sh", "-c", "read x; echo dying >&2; exit 3", NULL};
    const char *floods[] = {getenv("TORTURE_CHILD"), "flood", NULL};
    struct child *c;
    enum child_answer how;
    struct text line;

    assert_true(child_start(&(struct proc_spec){.argv = ends}, &c, &f->err));
    assert_true(child_ask(c, text_of("a"), PATIENCE_MS, 100, f->a, &how, &line, &f->err));
    assert_int_equal(how, CHILD_ENDED);
    assert_true(child_ask(c, text_of("again"), PATIENCE_MS, 100, f->a, &how, &line, &f->err));
    assert_int_equal(how, CHILD_ENDED);
    assert_non_null(strstr(child_stderr(c, f->a).data, "dying"));
    child_stop(c);
    assert_true(child_start(&(struct proc_spec){.argv = floods}, &c, &f->err));
    assert_false(child_ask(c, text_of("a"), PATIENCE_MS, 1 << 20, f->a, &how, &line, &f->err));
    child_stop(c);
}

static void its_own_temporary_folder_goes_with_a_program(void **state)
{
    struct fixture *f = *state;
    const char *argv[] = {"sh", "-c",
                          "echo much >$TMPDIR/file; mkdir $TMPDIR/sub; printf %s $TMPDIR", NULL};
    struct proc_spec spec = {.argv = argv, .private_tmp = true};
    struct proc_result r;

    assert_true(proc_run(&spec, f->a, &r, &f->err));
    assert_true(r.out.len > 0);
    assert_false(file_exists(r.out.data));
}

static void a_program_that_uses_up_its_cpu_time_is_told_from_one_that_fails(void **state)
{
    struct fixture *f = *state;
    const char *busy[] = {"sh", "-c", "while :; do :; done", NULL};
    const char *fails[] = {"sh", "-c", "echo no; exit 3", NULL};
    struct proc_result r;

    assert_true(proc_run(&(struct proc_spec){.argv = busy, .cpu_limit_s = 1}, f->a, &r, &f->err));
    assert_true(proc_out_of_cpu(&r));
    assert_true(proc_run(&(struct proc_spec){.argv = fails, .cpu_limit_s = 1}, f->a, &r, &f->err));
    assert_false(proc_out_of_cpu(&r));
}

/* Both use up a second of the clock; only one of them a second of the CPU. */
static void waiting_is_not_held_against_a_child_but_working_is(void **state)
{
    struct fixture *f = *state;
    const char *idle[] = {"sh", "-c", "read x; sleep 1; echo done", NULL};
    const char *busy[] = {"sh", "-c", "read x; while :; do :; done", NULL};
    struct child_limits limits = {.cpu_ms = 400, .wall_ms = PATIENCE_MS};
    enum child_answer how;
    struct text answer;
    struct child *c;

    assert_true(child_start(&(struct proc_spec){.argv = idle}, &c, &f->err));
    assert_true(child_ask_within(c, text_of("go"), limits, 1 << 16, f->a, &how, &answer, &f->err));
    assert_int_equal(how, CHILD_LINE);
    child_stop(c);
    assert_true(child_start(&(struct proc_spec){.argv = busy}, &c, &f->err));
    assert_true(child_ask_within(c, text_of("go"), limits, 1 << 16, f->a, &how, &answer, &f->err));
    assert_int_equal(how, CHILD_LATE);
    child_stop(c);
}

static void when_cutegen_is_killed_its_programs_die_with_it(void **state)
{
    struct fixture *f = *state;
    pid_t us = fork();

    if (us == 0) {
        const char *argv[] = {getenv("TORTURE_CHILD"), "stubborn", f->mark, NULL};
        struct proc_result r;

        proc_run(&(struct proc_spec){.argv = argv}, f->a, &r, &f->err);
        _exit(0);
    }
    wait_for_nobody(f, false);
    kill(us, SIGKILL);
    waitpid(us, NULL, 0);
    wait_for_nobody(f, true);
}

struct heard {
    char text[64];
    int count;
};

/* The program goes on only once somebody has answered its first line: a file appears. */
/* A lender in another process that waits for a question, and `answers` it or ends instead. */
static bool lost_with_a_lender_that(bool answers)
{
    const int none[3] = {-1, -1, -1};
    struct child *c;
    char question[16];
    int ends[2];
    pid_t lender;
    bool lost;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    lender = fork();
    if (lender == 0) {
        close(ends[0]);
        if (recv(ends[1], question, sizeof question, 0) <= 0)
            _exit(1);
        if (answers)
            send(ends[1], "yes", 3, 0);
        else
            usleep(20000); /* its descriptors are still open a while */
        _exit(0);
    }
    close(ends[1]);
    c = child_adopt(none, ends[0], 0, NULL);
    lost = child_lost(c);
    child_stop(c);
    waitpid(lender, NULL, 0);
    return lost;
}

static void a_lender_that_has_not_closed_yet_is_asked(void **state)
{
    (void)state;
    assert_false(lost_with_a_lender_that(true));
    assert_true(lost_with_a_lender_that(false));
}

static void hear(void *ctx, struct text line)
{
    struct heard *h = ctx;

    if (h->count++ == 0)
        close(open(h->text, O_RDWR | O_CREAT, 0600));
    assert_true(text_equal(line, text_of(h->count == 1 ? "first" : "second")));
}

static void whole_lines_are_told_as_they_come(void **state)
{
    struct fixture *f = *state;
    struct heard heard = {.count = 0};
    const char *argv[] = {"sh",
                          "-c",
                          "echo first; while [ ! -e \"$1\" ]; do sleep 0.1; done; echo second; "
                          "printf 'not whole'",
                          "sh",
                          heard.text,
                          NULL};
    struct proc_spec spec = {
        .argv = argv, .deadline_ms = PATIENCE_MS, .line = hear, .line_ctx = &heard};
    struct proc_result r;

    snprintf(heard.text, sizeof(heard.text), "%s/heard", f->dir);
    assert_true(proc_run(&spec, f->a, &r, &f->err));
    assert_int_equal(heard.count, 2);
    assert_string_equal(r.out.data, "first\nsecond\nnot whole");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_program_that_ends_takes_its_family_with_it),
        TEST(a_program_that_ignores_every_signal_ends_at_its_deadline),
        TEST(a_daemon_with_its_own_session_does_not_outlive_the_call),
        TEST(a_fork_bomb_is_put_out),
        TEST(a_gigabyte_of_output_is_read_but_not_kept),
        TEST(memory_without_end_is_stopped_by_what_all_processes_hold),
        TEST(an_address_limit_makes_allocation_fail_inside),
        TEST(a_program_that_closes_its_streams_still_meets_its_deadline),
        TEST(without_network_no_socket_can_be_made),
        TEST(keys_do_not_reach_a_program),
        TEST(a_crash_is_told_as_the_signal),
        TEST(what_cannot_be_started_is_an_error_that_names_it),
        TEST(a_supervisor_that_dies_at_once_is_named),
        TEST(what_does_not_die_when_killed_is_given_up),
        TEST(whole_lines_are_told_as_they_come),
        TEST(a_child_answers_line_by_line_and_says_when_it_cannot),
        TEST(a_child_that_ends_or_floods_is_told_apart),
        TEST(its_own_temporary_folder_goes_with_a_program),
        TEST(a_program_that_uses_up_its_cpu_time_is_told_from_one_that_fails),
        TEST(waiting_is_not_held_against_a_child_but_working_is),
        TEST(when_cutegen_is_killed_its_programs_die_with_it),
        TEST(a_lender_that_has_not_closed_yet_is_asked),
    };

    pthread_atfork(NULL, NULL, after_fork);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
