/* SPDX-License-Identifier: Apache-2.0 */
/* leave.c - start a program that outlives us; see leave.h. */
#include "server/leave.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs between fork and exec: only async-signal-safe calls, since we may have threads. */
static _Noreturn void become(char *const *argv, char *const *env, const char *dir, const int fds[3],
                             int failed)
{
    /* Duplicates above the numbers assigned below. */
    int in = fcntl(fds[0], F_DUPFD_CLOEXEC, 16), out = fcntl(fds[1], F_DUPFD_CLOEXEC, 16);
    int kept = fcntl(fds[2], F_DUPFD_CLOEXEC, 16), told = fcntl(failed, F_DUPFD_CLOEXEC, 16);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), code;
    pid_t pid;
    sigset_t none;

    setsid();
    pid = fork();
    if (pid != 0)
        _exit(pid < 0); /* so that the new process has no parent to wait for it */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int s = 1; s < 32; s++)
        signal(s, SIG_DFL);
    if (chdir(dir) == 0 && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(null, 2) >= 0 &&
        dup2(kept, LEAVE_FD) >= 0)
        execve(argv[0], argv, env);
    code = errno;
    (void)!write(told, &code, sizeof(code));
    _exit(127);
}

bool leave_start(char *const *argv, char *const *env, const char *dir, const int fds[3],
                 struct error *err)
{
    int failed[2], code = 0, status = 0;
    ssize_t n;
    pid_t pid;

    if (pipe2(failed, O_CLOEXEC) != 0)
        return error_set(err, ERROR_MACHINE, "cannot start %s: %s", argv[0], strerror(errno));
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        become(argv, env, dir, fds, failed[1]);
    close(failed[1]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    do
        n = read(failed[0], &code, sizeof(code)); /* end of file: exec has closed it */
    while (n < 0 && errno == EINTR);
    close(failed[0]);
    if (pid < 0 || status != 0 || n == (ssize_t)sizeof(code))
        return error_set(err, ERROR_MACHINE, "cannot start %s: %s", argv[0],
                         strerror(code ? code : EAGAIN));
    return true;
}
