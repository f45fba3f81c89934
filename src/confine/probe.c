/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - which layers work on this machine: tried in a child, not derived from versions. */
#include "base/buf.h"
#include "confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct probe_answer {
    bool ok;
    struct confine_report report;
    char why[256];
};

static _Noreturn void child(const struct confine_policy *p, const struct proc_birth *birth, int fd)
{
    const int keep[] = {fd, -1};
    struct probe_answer said = {.ok = false};
    struct error err = {0};

    said.ok = confine_enter(p, birth, keep, &said.report, &err);
    snprintf(said.why, sizeof said.why, "%.255s", err.text);
    _exit(write(fd, &said, sizeof said) == (ssize_t)sizeof said ? 0 : 1);
}

/* In a process of its own: confine_fork() gives up groups for good. */
static _Noreturn void parent(const struct confine_policy *p, int fd)
{
    struct proc_birth birth;
    pid_t pid = confine_fork(p, &birth);
    int status = 0;

    if (pid == 0)
        child(p, &birth, fd);
    if (pid > 0)
        waitpid(pid, &status, 0);
    _exit(pid > 0 && status == 0 ? 0 : 1);
}

bool confine_probe(struct confine_report *out, struct error *err)
{
    struct confine_place place = {.program = NULL};
    struct arena *a = arena_new();
    struct probe_answer said = {.ok = false};
    struct confine_policy p;
    int pipes[2];
    pid_t pid;
    ssize_t n;

    *out = (struct confine_report){.landlock_abi = 0};
    confine_role(&p, ROLE_GUEST, &place, a);
    if (pipe2(pipes, O_CLOEXEC) != 0) {
        arena_free(a);
        return error_set(err, ERROR_MACHINE, "probing the layers: %s", strerror(errno));
    }
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        parent(&p, pipes[1]);
    close(pipes[1]);
    n = read(pipes[0], &said, sizeof said);
    close(pipes[0]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    arena_free(a);
    if (n != (ssize_t)sizeof said)
        return error_set(err, ERROR_MACHINE, "probing the layers: no answer");
    *out = said.report;
    if (!said.ok)
        return error_set(err, ERROR_MACHINE, "%s", said.why);
    return true;
}

bool confine_holds_files(const struct confine_report *r)
{
    return r->seccomp && r->no_new_privs && r->capabilities && (r->landlock_abi > 0 || r->mount);
}

const char *confine_missing(const struct confine_report *r, struct arena *a)
{
    struct buf b = buf_init(4096);
    const char *text = NULL;

    if (!r->seccomp)
        buf_puts(&b, "seccomp: sockets, ptrace, signals and the kernel's rarer calls are open\n");
    if (!r->capabilities || !r->no_new_privs)
        buf_puts(&b, "capabilities: a root user's processes keep them\n");
    if (r->landlock_abi == 0)
        buf_puts(&b, r->mount ? "Landlock: only the private root protects files\n"
                              : "Landlock: files of this user can be read and written\n");
    if (!r->mount)
        buf_puts(&b, r->landlock_abi ? "namespaces: only Landlock protects files\n"
                                     : "namespaces: other processes can be seen in /proc\n");
    if (b.len > 0)
        text = arena_strndup(a, b.data, b.len);
    buf_release(&b);
    return text;
}
