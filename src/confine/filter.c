/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.c - the system calls of a confined process: a seccomp filter.
 *
 * A list of what is denied, not of what is allowed: NVRTC, PyTorch and compilers use calls that
 * change with every release. It denies what reaches other processes, makes sockets or namespaces,
 * changes the machine, or has been a way into the kernel. Calls newer than this list fail as if the
 * kernel did not have them.
 *
 * Invariants
 * 1. Only the native architecture is allowed; x32 numbers would bypass every comparison.
 * 2. Arguments that are compared are 32 bits wide for the kernel too (pid_t, int, flags of clone),
 *    so that their low half decides (little-endian).
 * 3. No datagram socket can be made, not even a pair: it could be sent to any address. So
 * sendmsg(), whose address a filter cannot read, reaches no new process.
 */
#include "confine/layers.h"
#include "confine/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NO_DOMAIN = 0xffff };
enum { NEWEST_KNOWN = 462 }; /* mseal */
enum { DENIED = SECCOMP_RET_ERRNO | EPERM, MISSING = SECCOMP_RET_ERRNO | ENOSYS };

/* Other processes: their memory, descriptors, limits and time. */
static const int others[] = {SYS_ptrace,
                             SYS_process_vm_readv,
                             SYS_process_vm_writev,
                             SYS_kcmp,
                             SYS_get_robust_list,
                             SYS_migrate_pages,
                             SYS_move_pages,
                             SYS_tkill,
                             SYS_rt_sigqueueinfo,
                             SYS_rt_tgsigqueueinfo,
                             424 /* pidfd_send_signal */,
                             434 /* pidfd_open */,
                             438 /* pidfd_getfd */,
                             440 /* process_madvise */,
                             448 /* process_mrelease */};

/* Communication that needs no file. */
static const int listening[] = {SYS_bind, SYS_listen, SYS_accept, SYS_accept4};
static const int channels[] = {SYS_shmget,     SYS_shmat,   SYS_shmctl,    SYS_semget,   SYS_semop,
                               SYS_semtimedop, SYS_semctl,  SYS_msgget,    SYS_msgsnd,   SYS_msgrcv,
                               SYS_msgctl,     SYS_mq_open, SYS_mq_unlink, SYS_mq_notify};

/* Calls that change the machine, and parts of the kernel that candidates do not need. */
static const int machine[] = {SYS_keyctl,
                              SYS_add_key,
                              SYS_request_key,
                              SYS_bpf,
                              SYS_userfaultfd,
                              SYS_perf_event_open,
                              SYS_unshare,
                              SYS_setns,
                              SYS_mount,
                              SYS_umount2,
                              SYS_pivot_root,
                              SYS_chroot,
                              SYS_swapon,
                              SYS_swapoff,
                              SYS_reboot,
                              SYS_kexec_load,
                              SYS_init_module,
                              SYS_finit_module,
                              SYS_delete_module,
                              SYS_acct,
                              SYS_quotactl,
                              SYS_syslog,
                              SYS_settimeofday,
                              SYS_clock_settime,
                              SYS_adjtimex,
                              SYS_clock_adjtime,
                              SYS_sethostname,
                              SYS_setdomainname,
                              SYS_vhangup,
                              SYS_fanotify_init,
                              SYS_fanotify_mark,
                              SYS_name_to_handle_at,
                              SYS_open_by_handle_at,
                              SYS_ioprio_set,
                              SYS_nfsservctl,
                              SYS_lookup_dcookie,
#ifdef SYS_kexec_file_load
                              SYS_kexec_file_load,
#endif
#ifdef __x86_64__
                              SYS_iopl,
                              SYS_ioperm,
                              SYS_modify_ldt,
                              SYS_uselib,
                              SYS_ustat,
                              SYS_sysfs,
                              SYS__sysctl,
                              SYS_create_module,
                              SYS_get_kernel_syms,
                              SYS_query_module,
#endif
                              428 /* open_tree */,
                              429 /* move_mount */,
                              430 /* fsopen */,
                              431 /* fsconfig */,
                              432 /* fsmount */,
                              433 /* fspick */,
                              442 /* mount_setattr */,
                              443 /* quotactl_fd */,
                              447 /* memfd_secret */};

/* Not covered by Landlock: a file's mode, owner, times and attributes. */
static const int metadata[] = {
    SYS_fchmod,      SYS_fchmodat,     452 /* fchmodat2 */, SYS_fchown,    SYS_fchownat,
    SYS_utimensat,   SYS_truncate,     SYS_setxattr,        SYS_lsetxattr, SYS_fsetxattr,
    SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr,    SYS_mknodat,
#ifdef __x86_64__
    SYS_chmod,       SYS_chown,        SYS_lchown,          SYS_utime,     SYS_utimes,
    SYS_futimesat,   SYS_mknod,
#endif
};

/* Answered with ENOSYS: programs have a fallback for these. */
static const int missing[] = {425 /* io_uring_setup */, 426 /* io_uring_enter */,
                              427 /* io_uring_register */, SYS_clone3};

/* Their first argument is a pid: only 0 (ourselves) is allowed. */
static const int of_pid[] = {SYS_prlimit64, SYS_sched_setaffinity, SYS_sched_setattr,
                             SYS_sched_setparam, SYS_sched_setscheduler};

static void on_all(struct filter *f, const int *calls, size_t n, unsigned action)
{
    for (size_t i = 0; i < n; i++)
        filter_on(f, calls[i], action);
}

/* Allowed when the argument is `value`, else denied. */
static void only_with(struct filter *f, int call, int index, uint32_t value)
{
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 4);
    filter_load_argument(f, index);
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    filter_give(f, SECCOMP_RET_ALLOW);
    filter_give(f, DENIED);
}

/* Denied when the argument is one of `values`; the rest of the filter still applies to others. */
static void not_with(struct filter *f, int call, int index, const uint32_t *values, size_t n)
{
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, (unsigned char)(2 * n + 2));
    filter_load_argument(f, index);
    for (size_t i = 0; i < n; i++) {
        filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, values[i], 0, 1);
        filter_give(f, DENIED);
    }
    filter_give(f, SECCOMP_RET_ALLOW);
}

/* Allowed when (argument & mask) is as given: set, or clear. */
static void only_flags(struct filter *f, int call, int index, uint32_t mask, bool set)
{
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 4);
    filter_load_argument(f, index);
    filter_emit(f, BPF_JMP | BPF_JSET | BPF_K, mask, set ? 0 : 1, set ? 1 : 0);
    filter_give(f, SECCOMP_RET_ALLOW);
    filter_give(f, DENIED);
}

static void on_processes(struct filter *f, bool fork)
{
    const uint32_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

#ifdef SYS_fork
    if (!fork) {
        filter_on(f, SYS_fork, DENIED);
        filter_on(f, SYS_vfork, DENIED);
    }
#endif
    if (fork)
        only_flags(f, SYS_clone, 0, namespaces, false);
    else
        only_flags(f, SYS_clone, 0, CLONE_THREAD, true); /* a thread cannot get new namespaces */
}

/* abort() and thread libraries signal their own process; no other process is signalled. */
static void on_signals(struct filter *f)
{
    static const uint32_t owner[] = {F_SETOWN, F_SETOWN_EX, F_SETSIG},
                          steer[] = {FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCSCTTY, 0x541C /* LINUX */};

    only_with(f, SYS_kill, 0, (uint32_t)getpid());
    only_with(f, SYS_tgkill, 0, (uint32_t)getpid());
    not_with(f, SYS_fcntl, 1, owner, ARRAY_LEN(owner));
    not_with(f, SYS_ioctl, 1, steer, ARRAY_LEN(steer));
    only_with(f, SYS_setpriority, 1, 0);
}

/* The process may not undo that it dies with its supervisor. */
static void on_prctl(struct filter *f)
{
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 6);
    filter_load_argument(f, 0);
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, PR_SET_PDEATHSIG, 0, 3);
    filter_load_argument(f, 1);
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, SIGKILL, 1, 0);
    filter_give(f, DENIED);
    filter_give(f, SECCOMP_RET_ALLOW);
}

/* Pairs of Unix stream sockets only; with `network` also TCP and UDP; for libcuda also listening
 * Unix sockets, without which it does not start. See invariant 3. */
static void on_sockets(struct filter *f, const struct confine_policy *p)
{
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 0, 7);
    filter_load_argument(f, 0);
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 0, 4);
    filter_load_argument(f, 1);
    filter_emit(f, BPF_ALU | BPF_AND | BPF_K, 0xf, 0, 0);
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 0, 1);
    filter_give(f, SECCOMP_RET_ALLOW);
    filter_give(f, DENIED);
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 9);
    filter_load_argument(f, 0);
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, p->network ? AF_INET : NO_DOMAIN, 5, 0);
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, p->network ? AF_INET6 : NO_DOMAIN, 4, 0);
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, p->cuda ? AF_UNIX : NO_DOMAIN, 0, 4);
    filter_load_argument(f, 1);
    filter_emit(f, BPF_ALU | BPF_AND | BPF_K, 0xf, 0, 0);
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, SOCK_SEQPACKET, 0, 1);
    filter_give(f, SECCOMP_RET_ALLOW);
    filter_give(f, DENIED);
    if (!p->network)
        filter_on(f, SYS_connect, DENIED);
    if (!p->network && !p->cuda)
        on_all(f, listening, ARRAY_LEN(listening), DENIED);
    on_all(f, channels, ARRAY_LEN(channels), DENIED);
}

static bool install(struct filter *f, struct error *err)
{
    struct sock_fprog program = {.len = f->len, .filter = f->code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) {
        error_set(err, ERROR_MACHINE, "this kernel does not accept seccomp filters: %s",
                  strerror(errno));
        return error_hint(err, "use a kernel with CONFIG_SECCOMP_FILTER");
    }
    return true;
}

bool confine_filter(const struct confine_policy *p, struct error *err)
{
    struct filter f = {.len = 0};

    filter_begin(&f, DENIED);
    filter_emit(&f, BPF_JMP | BPF_JGT | BPF_K, NEWEST_KNOWN, 0, 1);
    filter_give(&f, MISSING);
    on_all(&f, missing, ARRAY_LEN(missing), MISSING);
    on_all(&f, others, ARRAY_LEN(others), DENIED);
    on_all(&f, machine, ARRAY_LEN(machine), DENIED);
    on_all(&f, metadata, ARRAY_LEN(metadata), DENIED);
    for (size_t i = 0; i < ARRAY_LEN(of_pid); i++)
        only_with(&f, of_pid[i], 0, 0);
    only_with(&f, SYS_personality, 0, 0xffffffffu); /* only the query is allowed */
    on_processes(&f, p->fork);
    on_signals(&f);
    on_prctl(&f);
    on_sockets(&f, p);
    filter_give(&f, SECCOMP_RET_ALLOW);
    return install(&f, err);
}

bool confine_seal(unsigned bits, struct error *err)
{
    struct filter f = {.len = 0};

    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    filter_begin(&f, DENIED);
    filter_emit(&f, BPF_JMP | BPF_JGT | BPF_K, NEWEST_KNOWN, 0, 1);
    filter_give(&f, MISSING);
    if (bits & CONFINE_NO_EXEC) {
        filter_on(&f, SYS_execve, DENIED);
        filter_on(&f, SYS_execveat, DENIED);
    }
    filter_on(&f, SYS_clone3, MISSING);
    on_processes(&f, !(bits & CONFINE_NO_FORK));
    filter_give(&f, SECCOMP_RET_ALLOW);
    return install(&f, err);
}
