/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine_main.c - cutegen-confine: start a program inside a policy.
 *
 *     cutegen-confine POLICY-JSON -- PROGRAM ARGUMENT...
 *     cutegen-confine --report         which layers hold here, as JSON
 *
 * For processes that are not started through base/proc.c, such as one Python program starting
 * another. The environment is passed on unchanged; descriptors from 3 on are not. The exit status
 * is that of PROGRAM, 128 + N after signal N, 126 when the policy cannot be entered, 127 when
 * PROGRAM cannot be started. When this process dies, PROGRAM dies.
 */
#include "base/json.h"
#include "confine/confine.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int print_report(void)
{
    struct confine_report r;
    struct error err = {0};
    bool ok = confine_probe(&r, &err);

    printf("{\"ok\": %s, \"capabilities\": %d, \"no_new_privs\": %d, \"seccomp\": %d, "
           "\"landlock\": %d, \"user\": %d, \"mount\": %d, \"net\": %d, \"ipc\": %d, "
           "\"files\": %d}\n",
           ok ? "true" : "false", r.capabilities, r.no_new_privs, r.seccomp, r.landlock_abi, r.user,
           r.mount, r.net, r.ipc, confine_holds_files(&r));
    if (!ok)
        fprintf(stderr, "cutegen-confine: %s\n", err.text);
    return ok ? 0 : 1;
}

static _Noreturn void become(const struct confine_policy *p, const struct proc_birth *birth,
                             char **argv)
{
    struct confine_report report;
    struct error err = {0};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!confine_enter(p, birth, NULL, &report, &err)) {
        fprintf(stderr, "cutegen-confine: %s\n", err.text);
        _exit(126);
    }
    execvp(argv[0], argv);
    fprintf(stderr, "cutegen-confine: cannot start %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* The exit status of the program, or why there is none. */
static int run(char **argv, struct arena *a)
{
    struct confine_policy p;
    struct proc_birth birth;
    struct error err = {0};
    json_t *j = NULL;
    int status;
    bool good;
    pid_t pid;

    good = json_parse(text_of(argv[1]), "the policy", &j, &err) && confine_parse(j, a, &p, &err);
    json_decref(j);
    if (!good) {
        fprintf(stderr, "cutegen-confine: %s\n", err.text);
        return 126;
    }
    pid = confine_fork(&p, &birth);
    if (pid == 0)
        become(&p, &birth, argv + 3);
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        fprintf(stderr, "cutegen-confine: %s\n", strerror(errno));
        return 126;
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    struct arena *a;
    int code;

    if (argc == 2 && strcmp(argv[1], "--report") == 0)
        return print_report();
    if (argc < 4 || strcmp(argv[2], "--") != 0) {
        fprintf(stderr, "usage: cutegen-confine POLICY-JSON -- PROGRAM ARGUMENT...\n");
        return 126;
    }
    a = arena_new();
    code = run(argv, a);
    arena_free(a);
    return code;
}
