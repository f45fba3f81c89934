/* attempts_processes.c - processes that hostile code tries to make. */
#include "attempts.h"
#include "tools.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool forks(const struct world *w)
{
    pid_t pid = fork();

    (void)w;
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return pid > 0;
}

static bool becomes_a_daemon(const struct world *w)
{
    pid_t pid = fork();

    (void)w;
    if (pid == 0) {
        setsid();
        _exit(fork() < 0);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return pid > 0;
}

static bool starts_programs(const struct world *w)
{
    int status = 1;
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, NULL);

    (void)w;
    if (pid == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(9);
    }
    if (pid > 0)
        waitpid(pid, &status, 0);
    return pid > 0 && status == 0;
}

/* Ends with "not a program" where exec is allowed. */
static bool becomes_another(const struct world *w)
{
    char *const argv[] = {NULL};

    (void)w;
    return reached(execve("/usr/nowhere", argv, argv));
}

static const struct attempt rows[] = {
    FORK("fork", forks),
    FORK("become a daemon", becomes_a_daemon),
    FORK("start a program", starts_programs),
    FORK("become another program", becomes_another),
};
const struct attempt_list attempts_processes = {rows, sizeof rows / sizeof rows[0]};
