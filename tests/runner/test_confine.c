/* test_confine.c - what a confined runner can and cannot do. Each try is a process of its own. */
#include "base/mem.h"
#include "runner/runner_confine.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void *nothing(void *arg)
{
    return arg;
}

static bool try_thread(void)
{
    pthread_t thread;

    return pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0;
}

static bool try_read(void)
{
    return open("/proc/self/maps", O_RDONLY) >= 0;
}

static bool try_map(void)
{
    return mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
           MAP_FAILED;
}

static bool try_update(void)
{
    return open("/dev/null", O_RDWR) >= 0;
}

static bool try_create(void)
{
    return open("/tmp/cutegen-confine-test", O_CREAT | O_RDWR, 0600) >= 0;
}

static bool try_truncate(void)
{
    return open("/dev/null", O_RDWR | O_TRUNC) >= 0;
}

static bool try_write_only(void)
{
    return open("/dev/null", O_WRONLY) >= 0;
}

static bool try_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
}

static bool try_fork(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    return pid > 0;
}

static bool try_exec(void)
{
    execl("/bin/true", "true", (char *)NULL);
    return false; /* when it goes well, nobody returns: exit status 0 says so */
}

static bool try_kill(void)
{
    return kill(getppid(), 0) == 0;
}

static bool try_remove(void)
{
    return unlink("/tmp/cutegen-confine-no-such-file") == 0 || errno == ENOENT;
}

static const struct {
    const char *name;
    bool (*action)(void);
    bool allowed;
} tries[] = {
    {"start a thread", try_thread, true},
    {"read a file", try_read, true},
    {"map memory", try_map, true},
    {"open an existing file for update", try_update, true},
    {"create a file", try_create, false},
    {"truncate a file", try_truncate, false},
    {"open a file for writing only", try_write_only, false},
    {"open a socket", try_socket, false},
    {"fork", try_fork, false},
    {"run a program", try_exec, false},
    {"signal another process", try_kill, false},
    {"remove a file", try_remove, false},
};

/* Exit status: 0 it could, 1 it could not, 2 not confined. */
static int confined(bool (*action)(void))
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        struct error err = {0};

        if (!runner_confine(&err))
            _exit(2);
        _exit(action() ? 0 : 1);
    }
    assert_true(waitpid(pid, &status, 0) == pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_confined_process_computes_and_reads_and_nothing_else(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(tries); i++) {
        int got = confined(tries[i].action);

        if (got != (tries[i].allowed ? 0 : 1))
            fail_msg("%s: %s", tries[i].name,
                     got == 0   ? "it could"
                     : got == 1 ? "it could not"
                                : "not confined");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_confined_process_computes_and_reads_and_nothing_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
