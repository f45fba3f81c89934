/*
 * test_server.c - the warm server lends, takes back, and loses nothing.
 *
 * The processes lent are `cat`: a line in, a line out. The server is the real
 * one, in a runtime folder of its own.
 */
#include "bench.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "server/warm.h"
#include "server/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- loans --------------------------------------------------------------------- */

static void what_was_returned_is_lent_again(void **state)
{
    struct bench *b = *state;
    struct child *c = borrow(b);
    int pid = child_pid(c);

    says(b, c, "one");
    child_return(c);
    wait_count("waiting", 1);
    c = borrow(b);
    assert_int_equal(child_pid(c), pid);
    says(b, c, "two");
    child_return(c);
}

static void two_at_once_get_two(void **state)
{
    struct bench *b = *state;
    struct child *c = borrow(b), *d = borrow(b);

    assert_int_not_equal(child_pid(c), child_pid(d));
    says(b, c, "one");
    says(b, d, "two");
    child_return(c);
    child_return(d);
}

static void what_was_not_returned_is_ended(void **state)
{
    struct bench *b = *state;
    struct child *c = borrow(b);
    int pid = child_pid(c);

    child_stop(c); /* as after a missed deadline */
    wait_gone(pid);
    c = borrow(b);
    assert_int_not_equal(child_pid(c), pid);
    child_return(c);
}

static void a_client_that_dies_frees_what_it_held(void **state)
{
    struct bench *b = *state;
    int pids[2], pipe_fds[2];
    pid_t client;

    child_return(borrow(b)); /* the server runs */
    assert_int_equal(pipe(pipe_fds), 0);
    client = fork();
    if (client == 0) {
        pids[0] = child_pid(borrow(b));
        pids[1] = child_pid(borrow(b));
        if (write(pipe_fds[1], pids, sizeof pids) < 0)
            _exit(1);
        pause();
    }
    assert_int_equal(read(pipe_fds[0], pids, sizeof pids), sizeof pids);
    kill(client, SIGKILL);
    waitpid(client, NULL, 0);
    wait_gone(pids[0]);
    wait_gone(pids[1]);
    wait_count("lent", 0);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

static void left_over_output_is_never_met_by_the_next(void **state)
{
    struct bench *b = *state;
    struct child *c = borrow(b);
    int fds[3], pid = child_pid(c);

    child_streams(c, fds);
    assert_int_equal(write(fds[0], "late\n", 5), 5); /* an answer that was not waited for */
    assert_int_equal(poll(&(struct pollfd){fds[1], POLLIN, 0}, 1, PATIENCE_MS), 1);
    child_return(c);
    c = borrow(b);
    assert_int_not_equal(child_pid(c), pid);
    says(b, c, "fresh");
    child_return(c);
}

static void the_one_that_knows_the_task_is_preferred(void **state)
{
    struct bench *b = *state;
    struct child *c = borrow_tagged(b, "oracle", "a"), *d = borrow_tagged(b, "oracle", "b");
    int a_pid = child_pid(c), b_pid = child_pid(d);

    child_return(c);
    child_return(d);
    wait_count("waiting", 2);
    d = borrow_tagged(b, "oracle", "b");
    c = borrow_tagged(b, "oracle", "a");
    assert_int_equal(child_pid(c), a_pid);
    assert_int_equal(child_pid(d), b_pid);
    child_return(c);
    child_return(d);
}

static void a_runner_is_lent_once_and_spares_are_ready(void **state)
{
    struct bench *b = *state;
    struct child *c = borrow_tagged(b, "runner", NULL);
    int pid = child_pid(c);

    says(b, c, "one");
    child_return(c);
    wait_gone(pid);
    wait_count("waiting", 4);
    c = borrow_tagged(b, "runner", NULL);
    assert_int_not_equal(child_pid(c), pid);
    says(b, c, "two");
    child_stop(c);
}

/* The next command has begun, and has its oracle already, when the last one's runner ends. */
static void spares_are_made_ready_while_nothing_is_timed(void **state)
{
    struct bench *b = *state;
    struct child *oracle = borrow_tagged(b, "oracle", "a"), *c = borrow_tagged(b, "runner", NULL);

    child_stop(c);
    wait_count("waiting", 4);
    c = borrow_tagged(b, "runner", NULL); /* from here on somebody may be timed */
    /* The pool is tended after each request, and a status takes two: one would be started. */
    for (int i = 0; i < 3; i++)
        assert_int_equal(count_in("waiting"), 3);
    child_stop(c);
    wait_count("waiting", 4);
    child_return(oracle);
}

/* ---- bounds -------------------------------------------------------------------- */

static void at_most_so_many_wait(void **state)
{
    struct bench *b = *state;
    struct child *c[7];

    for (size_t i = 0; i < ARRAY_LEN(c); i++)
        c[i] = borrow(b);
    for (size_t i = 0; i < ARRAY_LEN(c); i++)
        child_return(c[i]);
    wait_count("lent", 0);
    wait_count("waiting", 4);
}

static void what_waits_holds_no_more_memory_than_allowed(void **state)
{
    struct bench *b = *state;
    struct child *c;
    int pid;

    open_warm(b, 60, 1); /* less than one process */
    c = borrow(b);
    pid = child_pid(c);
    says(b, c, "one");
    child_return(c);
    wait_gone(pid);
}

static void without_work_the_server_ends(void **state)
{
    struct bench *b = *state;
    int server, pid;
    struct child *c;

    open_warm(b, 1, 1024);
    c = borrow(b);
    pid = child_pid(c);
    server = server_pid();
    child_return(c);
    wait_gone(server);
    wait_gone(pid);
}

/* As a suite does, before its runs come and go. */
static void one_that_is_held_does_not_end(void **state)
{
    struct bench *b = *state;
    int server, held;

    open_warm(b, 1, 1024);
    held = warm_hold(b->warm);
    assert_true(held >= 0);
    server = server_pid();
    child_return(borrow(b));
    usleep(2500000); /* more than twice what it may be without work; longer on a slow machine does
                        no harm */
    assert_int_equal(server_pid(), server);
    close(held);
    wait_gone(server);
}

/* ---- life ---------------------------------------------------------------------- */

static void a_killed_server_is_noticed_and_leaves_nothing(void **state)
{
    struct bench *b = *state;
    struct child *c = borrow(b), *waiting = borrow(b);
    int pid = child_pid(c), waiting_pid = child_pid(waiting);
    struct error err = {0};
    enum child_answer how;
    struct text answer;

    child_return(waiting);
    says(b, c, "one");
    assert_false(child_lost(c));
    kill(server_pid(), SIGKILL);
    wait_gone(pid);
    wait_gone(waiting_pid);
    assert_true(child_ask(c, text_of("two"), PATIENCE_MS, 1 << 16, b->a, &how, &answer, &err));
    assert_int_equal(how, CHILD_ENDED);
    assert_true(child_lost(c));
    child_stop(c);
    c = borrow(b); /* another server is started */
    says(b, c, "three");
    child_return(c);
}

static void a_process_that_dies_is_not_taken_for_a_dead_server(void **state)
{
    struct bench *b = *state;
    struct child *c = borrow(b);

    kill(child_pid(c), SIGKILL);
    wait_gone(child_pid(c));
    assert_false(child_lost(c));
    child_stop(c);
}

static void stopping_waits_for_the_loans(void **state)
{
    struct bench *b = *state;
    struct child *c = borrow(b);
    struct error err = {0};
    int server = server_pid();
    bool was_there;

    assert_true(warm_stop(&was_there, &err));
    assert_true(was_there);
    says(b, c, "still here");
    assert_false(gone(server));
    child_return(c);
    wait_gone(server);
    assert_true(warm_stop(&was_there, &err));
    assert_false(was_there);
}

/* The same program, made long ago: an older build. */
static void an_older_server_is_replaced(void **state)
{
    struct bench *b = *state;
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char *program, *copy = path_join(b->a, b->dir, "old-server");
    struct error err = {0};
    struct text data;
    struct child *c;
    pid_t older;

    assert_true(home_program("cutegen-server", b->a, &program, &err));
    assert_true(file_read(program, 64 << 20, b->a, &data, &err) && file_write(copy, data, &err));
    assert_int_equal(chmod(copy, 0700), 0);
    assert_int_equal(utimensat(AT_FDCWD, copy, old, 0), 0);
    older = fork();
    if (older == 0) {
        execl(copy, copy, "60", "1024", NULL);
        _exit(1);
    }
    while (server_pid() != older)
        usleep(2000);
    c = borrow(b);
    assert_int_not_equal(server_pid(), older);
    assert_int_equal(waitpid(older, NULL, 0), older);
    says(b, c, "new");
    child_return(c);
}

static void many_that_start_it_at_once_get_one(void **state)
{
    struct bench *b = *state;
    pid_t clients[8];
    int servers[ARRAY_LEN(clients)], fds[2], status_code;

    assert_int_equal(pipe(fds), 0);
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        clients[i] = fork();
        if (clients[i] == 0) {
            struct child *c = borrow(b);
            int pid = server_pid();

            says(b, c, "one");
            child_return(c);
            _exit(write(fds[1], &pid, sizeof pid) != sizeof pid);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        waitpid(clients[i], &status_code, 0);
        assert_int_equal(status_code, 0);
        assert_int_equal(read(fds[0], &servers[i], sizeof servers[i]), sizeof servers[i]);
        assert_int_equal(servers[i], servers[0]);
    }
    close(fds[0]);
    close(fds[1]);
}

static void without_a_private_folder_there_is_no_server(void **state)
{
    struct bench *b = *state;
    struct child *c;

    assert_int_equal(chmod(b->dir, 0755), 0);
    c = borrow_tagged(b, "builder", NULL);
    assert_false(child_is_lent(c)); /* started here instead */
    says(b, c, "one");
    child_return(c);
    assert_int_equal(chmod(b->dir, 0700), 0);
}

/* As another user, with the doors held open: the server does not answer. */
static void other_users_are_not_served(void **state)
{
    struct bench *b = *state;
    char *path = path_join(b->a, b->dir, "server.socket");
    int code;
    pid_t other;

    if (geteuid() != 0)
        skip();
    child_return(borrow(b));
    assert_int_equal(chmod(b->dir, 0755), 0);
    assert_int_equal(chmod(path, 0666), 0);
    other = fork();
    if (other == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        char answer[256];

        snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
        if (setuid(65534) != 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
            _exit(2);
        (void)!send(fd, "{\"do\":\"hello\"}", 14, MSG_NOSIGNAL);
        _exit(recv(fd, answer, sizeof answer, 0) > 0);
    }
    waitpid(other, &code, 0);
    assert_true(WIFEXITED(code));
    assert_int_equal(WEXITSTATUS(code), 0);
    assert_int_equal(chmod(b->dir, 0700), 0);
}

static void nonsense_does_not_stop_it(void **state)
{
    struct bench *b = *state;
    static const char *const packets[] = {
        "",
        "{",
        "[]",
        "{\"do\": 7}",
        "{\"do\":\"lend\"}",
        "{\"do\":\"hello\"}",
        "{\"do\":\"lend\",\"kind\":\"x\",\"argv\":[],\"env\":[]}",
        "{\"do\":\"lend\",\"kind\":\"x\",\"argv\":[1],\"env\":[]}",
        "{\"do\":\"lend\",\"argv\":[\"/no/such/program\"],\"env\":[]}",
        "{\"do\":\"leave\"}",
        "{\"do\":\"leave\",\"argv\":[1],\"env\":[]}",
        "{\"do\":\"leave\",\"argv\":[\"/bin/true\"],\"env\":[]}",
        CHILD_RETURNED};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct child *c = borrow(b);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s/server.socket", b->dir);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    for (size_t i = 1; i < ARRAY_LEN(packets); i++)
        assert_int_equal(send(fd, packets[i], strlen(packets[i]), MSG_NOSIGNAL),
                         strlen(packets[i]));
    close(fd);
    says(b, c, "well");
    child_return(c);
    wait_count("lent", 0);
}

/* Nothing is there to be read; false: something, or its end, is. */
static bool silent(int fd)
{
    struct pollfd p = {fd, POLLIN, 0};

    return poll(&p, 1, 100) == 0;
}

/* Also the supervisor of whoever asked for it: that is what the server is for. */
static void what_is_left_to_itself_outlives_client_and_server(void **state)
{
    struct bench *b = *state;
    const char *argv[] = {"cutegen-caller", "a folder", NULL};
    struct error err = {0};
    int talk[2], hold[2], pid, server;
    char c;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk), 0);
    assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) { /* the client, which is then killed */
        setsid();
        if (warm_leave(b->warm, argv, (int[3]){talk[1], talk[1], hold[1]}, &err))
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    close(talk[1]);
    close(hold[1]);
    assert_int_equal(waitpid(pid, &server, 0), pid);
    assert_true(WIFSIGNALED(server));
    server = server_pid();
    assert_true(server > 0);
    kill(server, SIGKILL);
    wait_gone(server);
    assert_true(silent(talk[0]) && silent(hold[0]));
    close(talk[0]); /* whoever was to say what it has to do: it ends, and lets go */
    assert_int_equal(read(hold[0], &c, 1), 0);
    close(hold[0]);
}

static void without_a_server_it_is_started_all_the_same(void **state)
{
    const char *argv[] = {"cutegen-caller", NULL}, *none[] = {"no-such-program", NULL};
    struct error err = {0};
    int talk[2], hold[2];
    char c;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk), 0);
    assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
    assert_false(warm_leave(NULL, none, (int[3]){talk[1], talk[1], hold[1]}, &err));
    err = (struct error){0};
    assert_true(warm_leave(NULL, argv, (int[3]){talk[1], talk[1], hold[1]}, &err));
    close(talk[1]);
    close(hold[1]);
    assert_true(silent(hold[0]));
    close(talk[0]);
    assert_int_equal(read(hold[0], &c, 1), 0);
    close(hold[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_returned_is_lent_again),
        TEST(two_at_once_get_two),
        TEST(what_was_not_returned_is_ended),
        TEST(a_client_that_dies_frees_what_it_held),
        TEST(left_over_output_is_never_met_by_the_next),
        TEST(the_one_that_knows_the_task_is_preferred),
        TEST(a_runner_is_lent_once_and_spares_are_ready),
        TEST(spares_are_made_ready_while_nothing_is_timed),
        TEST(at_most_so_many_wait),
        TEST(what_waits_holds_no_more_memory_than_allowed),
        TEST(without_work_the_server_ends),
        TEST(one_that_is_held_does_not_end),
        TEST(a_killed_server_is_noticed_and_leaves_nothing),
        TEST(a_process_that_dies_is_not_taken_for_a_dead_server),
        TEST(stopping_waits_for_the_loans),
        TEST(an_older_server_is_replaced),
        TEST(many_that_start_it_at_once_get_one),
        TEST(without_a_private_folder_there_is_no_server),
        TEST(other_users_are_not_served),
        TEST(nonsense_does_not_stop_it),
        TEST(what_is_left_to_itself_outlives_client_and_server),
        TEST(without_a_server_it_is_started_all_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
