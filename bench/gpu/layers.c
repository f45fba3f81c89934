/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.c - starts a program inside some of the layers of src/confine, to find out what a driver needs.
 *
 *     layers [-nclsr] [--role guest] [--program P] [--read P]... [--write P]... [--own P]... [--device P]... [--permit NR]... -- PROGRAM...
 *
 * -n namespaces, -c capabilities and no_new_privs, -l Landlock, -s system calls, -r limits; none of them: plain.
 * -X no socket at all.
 * --own: may be written, and what was written there may be run. --permit takes a call off the filter. bench/gpu/layers.py drives it and has the compile line.
 */
#include "../../src/confine/filter.c"

#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

static struct confine_policy policy;
static uint32_t permitted[64];
static size_t permitted_count;
static bool layer[128];

static bool filter_but_for_permitted(struct error *err)
{
    struct filter f = {.len = 0};
    struct confine_policy sockets = policy;

    sockets.cuda = !layer['X'];
    filter_begin(&f, DENIED);
    filter_emit(&f, BPF_JMP | BPF_JGT | BPF_K, NEWEST_KNOWN, 0, 1);
    filter_give(&f, MISSING);
    on_all(&f, missing, ARRAY_LEN(missing), MISSING);
    on_all(&f, others, ARRAY_LEN(others), DENIED);
    on_all(&f, machine, ARRAY_LEN(machine), DENIED);
    on_all(&f, metadata, ARRAY_LEN(metadata), DENIED);
    for (size_t i = 0; i < ARRAY_LEN(of_pid); i++)
        only_with(&f, of_pid[i], 0, 0);
    only_with(&f, SYS_personality, 0, 0xffffffffu);
    on_processes(&f, policy.fork);
    on_signals(&f);
    on_prctl(&f);
    on_sockets(&f, &sockets);
    filter_give(&f, SECCOMP_RET_ALLOW);
    for (unsigned short i = 5; i < f.len; i++)
        for (size_t k = 0; k < permitted_count; k++)
            if (f.code[i].code == (BPF_JMP | BPF_JEQ | BPF_K) && f.code[i].k == permitted[k] && f.code[i].jt == 0)
                f.code[i].k = 0xfffffffeu;
    return install(&f, err);
}

static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};

    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    for (int c = 0; c <= 63; c++)
        prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
    if (syscall(SYS_capset, &header, none) != 0)
        perror("capset");
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static void limit(int what, uint64_t value)
{
    struct rlimit now, r = {.rlim_cur = value, .rlim_max = value};

    if (getrlimit((unsigned)what, &now) == 0 && now.rlim_max < value)
        r.rlim_cur = r.rlim_max = now.rlim_max;
    (void)setrlimit((unsigned)what, &r);
}

static void set_limits(void)
{
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_MEMLOCK, RLIM_INFINITY);
    limit(RLIMIT_MSGQUEUE, 0);
    limit(RLIMIT_NOFILE, 4096);
    limit(RLIMIT_SIGPENDING, 1024);
    if (policy.file_bytes)
        limit(RLIMIT_FSIZE, policy.file_bytes);
}

static _Noreturn void become(const struct proc_birth *birth, char **argv)
{
    struct error err = {0};

    if (birth->namespaces) {
        if ((birth->namespaces & CLONE_NEWUSER) && !confine_map_ids(birth->uid, birth->gid))
            perror("map ids");
        if (confine_root(&policy) != CONFINE_ROOT_OWN)
            perror("root");
    }
    if (layer['r'])
        set_limits();
    if (layer['c'])
        drop_capabilities();
    if (layer['l']) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (confine_landlock(&policy, &err) == 0)
            fprintf(stderr, "no landlock: %s\n", err.text);
    }
    if (layer['s'] && !filter_but_for_permitted(&err))
        fprintf(stderr, "no filter: %s\n", err.text);
    execvp(argv[0], argv);
    perror(argv[0]);
    _exit(127);
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    struct confine_place place = {.cuda = true};
    enum confine_role role = ROLE_RUNNER;
    struct proc_birth birth = {0};
    const char *more[256];
    size_t n = 0;
    int i = 1, status;
    pid_t pid;

    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--", 2) != 0) {
            for (const char *s = argv[i] + 1; *s; s++)
                layer[(unsigned char)*s & 127] = true;
            continue;
        }
        if (strcmp(argv[i], "--role") == 0)
            role = strcmp(argv[i + 1], "guest") == 0 ? ROLE_GUEST : strcmp(argv[i + 1], "oracle") == 0 ? ROLE_ORACLE : ROLE_RUNNER;
        else if (strcmp(argv[i], "--program") == 0)
            place.program = argv[i + 1];
        else if (strcmp(argv[i], "--permit") == 0)
            permitted[permitted_count++] = (uint32_t)atoi(argv[i + 1]);
        else if (n + 2 < 256) {
            more[n++] = argv[i];
            more[n++] = argv[i + 1];
        }
        i++;
    }
    if (i + 1 >= argc)
        return 2;
    confine_role(&policy, role, &place, a);
    for (size_t k = 0; k < n; k += 2)
        confine_allow(&policy, more[k + 1],
                      CONFINE_READ | (more[k][2] == 'd' ? CONFINE_DEVICE : more[k][2] == 'w' ? CONFINE_WRITE : CONFINE_EXECUTE) |
                          (more[k][2] == 'o' ? CONFINE_WRITE : 0U));
    if (!layer['n'])
        policy.off |= CONFINE_NAMESPACES;
    pid = confine_fork(&policy, &birth);
    if (pid == 0)
        become(&birth, argv + i + 1);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 126;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
