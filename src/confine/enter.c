/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enter.c - the order in which a process gives up its rights.
 *
 * Namespaces first, since mounting needs capabilities that are dropped later; then the private
 * root, capabilities, limits, Landlock (which would forbid mounting) and, last, the system call
 * filter.
 */
#include "base/sanitized.h"
#include "confine/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPEN_FILES = 4096, LAST_CAPABILITY = 63, CLOEXEC_FLAG = 4 };

/* No pid namespace: its first process ignores the signals it sends itself, so that abort() would
 * not end a program. Other processes are out of reach anyway: the private root shows none of them
 * in /proc, and the filter blocks signals to them. */
static unsigned namespaces_of(const struct confine_policy *p)
{
    unsigned flags = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC;

    if (p->off & CONFINE_NAMESPACES)
        return 0;
    if (!p->network)
        flags |= CLONE_NEWNET;
    return flags;
}

/* fork(), so that libc and its atfork handlers know; then the namespaces, which the parent waits
 * for. */
static pid_t fork_into(unsigned flags)
{
    int told[2];
    char done;
    pid_t pid;

    if (pipe2(told, O_CLOEXEC) != 0)
        return -1;
    pid = fork();
    if (pid == 0) {
        if (unshare((int)flags) != 0 || write(told[1], "", 1) != 1)
            _exit(1);
        close(told[0]);
        close(told[1]);
        return 0;
    }
    close(told[1]);
    if (pid > 0 && read(told[0], &done, 1) != 1) {
        waitpid(pid, NULL, 0);
        pid = -1;
    }
    close(told[0]);
    return pid;
}

static pid_t fork_with(unsigned flags, bool copy)
{
    if (copy)
        return fork_into(flags);
    return (pid_t)syscall(SYS_clone, (unsigned long)flags | SIGCHLD, NULL, NULL, NULL, NULL);
}

static pid_t fork_confined(const struct confine_policy *p, bool copy, struct proc_birth *birth)
{
    unsigned wanted = namespaces_of(p);
    pid_t pid;

    *birth = (struct proc_birth){.copy = copy, .uid = getuid(), .gid = getgid()};

    /* Groups give access to devices; they cannot be dropped inside a user namespace. */
    if (!p->cuda)
        (void)!setgroups(0, NULL);
    birth->namespaces = wanted | CLONE_NEWUSER;
    if (wanted && (pid = fork_with(birth->namespaces, copy)) >= 0)
        return pid;
    birth->namespaces = wanted; /* root where user namespaces are off */
    if (wanted && (pid = fork_with(birth->namespaces, copy)) >= 0)
        return pid;
    birth->namespaces = 0;
    return fork();
}

pid_t confine_fork(const struct confine_policy *p, struct proc_birth *birth)
{
    return fork_confined(p, false, birth);
}

/* Drops them from the bounding set too: exec by root would restore them. */
static bool drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};

    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    for (int c = 0; c <= LAST_CAPABILITY; c++)
        prctl(PR_CAPBSET_DROP, c, 0, 0, 0); /* a process without capabilities has nothing to drop */
    return syscall(SYS_capset, &header, none) == 0;
}

static void limit(int what, uint64_t value)
{
    struct rlimit now, r = {.rlim_cur = value, .rlim_max = value};

    if (getrlimit((unsigned)what, &now) == 0 && now.rlim_max < value)
        r.rlim_cur = r.rlim_max = now.rlim_max; /* the limit is already lower */
    (void)setrlimit((unsigned)what, &r);
}

static void set_limits(const struct confine_policy *p)
{
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_MEMLOCK, p->cuda ? RLIM_INFINITY : 8 << 20);
    limit(RLIMIT_MSGQUEUE, 0);
    limit(RLIMIT_NOFILE, OPEN_FILES);
    limit(RLIMIT_SIGPENDING, 1024);
    if (p->file_bytes)
        limit(RLIMIT_FSIZE, p->file_bytes);
#if !defined(SANITIZED) /* a sanitizer's shadow memory would count */
    if (p->data_bytes)
        limit(RLIMIT_DATA, p->data_bytes);
#endif
}

static bool kept(int fd, const int *keep)
{
    for (; keep && *keep >= 0; keep++)
        if (*keep == fd)
            return true;
    return false;
}

/* At exec, not now: the caller may still report over one of them. */
static void close_others(const int *keep)
{
    if (syscall(SYS_close_range, 3U, ~0U, CLOEXEC_FLAG) != 0)
        for (int fd = 3; fd < OPEN_FILES; fd++)
            (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    for (int fd = 3; keep && fd < OPEN_FILES; fd++)
        if (kept(fd, keep))
            (void)fcntl(fd, F_SETFD, 0);
}

static bool enter_namespaces(const struct confine_policy *p, const struct proc_birth *birth,
                             struct confine_report *out, struct error *err)
{
    unsigned made = birth->namespaces;
    enum confine_root root;

    /* The maps of a process that is not dumpable belong to the machine's root. */
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    if ((made & CLONE_NEWUSER) && !confine_map_ids(birth->uid, birth->gid))
        return error_set(err, ERROR_MACHINE, "mapping the user of a namespace: %s",
                         strerror(errno));
    root = confine_root(p);
    if (root == CONFINE_ROOT_BROKEN)
        return error_set(err, ERROR_MACHINE, "making a private root: %s", strerror(errno));
    out->user = made & CLONE_NEWUSER;
    out->mount = root == CONFINE_ROOT_OWN;
    out->net = made & CLONE_NEWNET;
    out->ipc = made & CLONE_NEWIPC;
    out->uts = made & CLONE_NEWUTS;
    return true;
}

bool confine_enter(const struct confine_policy *p, const struct proc_birth *birth, const int *keep,
                   struct confine_report *out, struct error *err)
{
    *out = (struct confine_report){.landlock_abi = 0};
    if (birth->namespaces && !enter_namespaces(p, birth, out, err))
        return false;
    umask(077);
    close_others(keep);
    set_limits(p);
    if (!drop_capabilities())
        return error_set(err, ERROR_MACHINE, "dropping capabilities: %s", strerror(errno));
    out->capabilities = true;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return error_set(err, ERROR_MACHINE, "no_new_privs: %s", strerror(errno));
    out->no_new_privs = true;
    if (!(p->off & CONFINE_LANDLOCK))
        out->landlock_abi = confine_landlock(p, err);
    if (err->kind != ERROR_NONE || !confine_filter(p, err))
        return false;
    out->seccomp = true;
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return true;
}

/* ---- for base/proc.c ---- */

static pid_t cage_fork(const void *policy, bool plain, struct proc_birth *birth)
{
    struct confine_policy p = *(const struct confine_policy *)policy;

    if (plain)
        p.off |= CONFINE_NAMESPACES;
    return fork_confined(&p, birth->copy, birth);
}

static bool cage_enter(const void *policy, const struct proc_birth *birth, const char *tmp,
                       const int *keep, struct error *err)
{
    struct confine_policy p = *(const struct confine_policy *)policy;
    struct confine_report report;

    if (tmp)
        confine_allow(&p, tmp, CONFINE_READ | CONFINE_WRITE | p.tmp_rights);
    return confine_enter(&p, birth, keep, &report, err);
}

static json_t *cage_json(const void *policy)
{
    return confine_json(policy);
}

const struct proc_cage *confine_cage(const struct confine_policy *p, struct proc_cage *cage)
{
    *cage = (struct proc_cage){
        .policy = p, .alone = !p->fork, .fork = cage_fork, .enter = cage_enter, .json = cage_json};
    return cage;
}
