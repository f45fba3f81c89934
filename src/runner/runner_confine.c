/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner_confine.c - limits and a seccomp filter for simt's runner.
 *
 * A list of what is denied, not of what is allowed: the process has threads,
 * an allocator and a C library whose calls change with every release, and the
 * kernels reach the system only through a bug in simt. Everything that could make such a bug
 * harmful is denied: programs, processes, sockets, signals to others, tracing, and making, changing
 * or removing files.
 */
#include "runner/runner_confine.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "seccomp filter: add this architecture"
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define DENY        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define ALLOW       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static const int denied[] = {
    SYS_execve,
    SYS_execveat,
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_sendto,
    SYS_sendmsg,
    SYS_ptrace,
    SYS_kill,
    SYS_tkill,
    SYS_unlinkat,
    SYS_renameat2,
    SYS_mkdirat,
    SYS_linkat,
    SYS_symlinkat,
    SYS_mknodat,
    SYS_fchmodat,
    SYS_fchownat,
    SYS_truncate,
    SYS_mount,
    SYS_umount2,
    SYS_unshare,
    SYS_setns,
    SYS_chroot,
    SYS_bpf,
    SYS_keyctl,
    SYS_add_key,
    SYS_userfaultfd,
    SYS_perf_event_open,
    SYS_openat2,
    SYS_pidfd_open,
    SYS_process_vm_writev,
    SYS_process_vm_readv,
#ifdef SYS_open
    SYS_fork,
    SYS_vfork,
    SYS_unlink,
    SYS_rename,
    SYS_renameat,
    SYS_mkdir,
    SYS_rmdir,
    SYS_link,
    SYS_symlink,
    SYS_mknod,
    SYS_chmod,
    SYS_chown,
    SYS_creat,
    SYS_open,
#endif
};

static void add(struct sock_filter *f, size_t *n, struct sock_filter op)
{
    f[(*n)++] = op;
}

/* if (syscall == number && (argument & bits) is what `deny_when_set` says) deny */
static void add_flag_rule(struct sock_filter *f, size_t *n, int number, size_t argument,
                          uint32_t bits, bool deny_when_set)
{
    add(f, n, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 4));
    add(f, n, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)argument));
    add(f, n,
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, deny_when_set ? 0 : 1,
                                     deny_when_set ? 1 : 0));
    add(f, n, (struct sock_filter)DENY);
    add(f, n, (struct sock_filter)ALLOW);
}

static size_t build_filter(struct sock_filter *f)
{
    const size_t flags_of_openat = offsetof(struct seccomp_data, args[2]);
    const size_t flags_of_clone = offsetof(struct seccomp_data, args[0]);
    size_t n = 0;

    add(f, &n, (struct sock_filter)LOAD(arch));
    add(f, &n, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0));
    add(f, &n, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    add(f, &n, (struct sock_filter)LOAD(nr));
#ifdef __x86_64__
    /* x32 numbers would bypass every comparison below. */
    add(f, &n, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1));
    add(f, &n, (struct sock_filter)DENY);
#endif
    for (size_t i = 0; i < ARRAY_LEN(denied); i++) {
        add(f, &n,
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)denied[i], 0, 1));
        add(f, &n, (struct sock_filter)DENY);
    }
    /* The C library falls back to clone(), whose flags can be read. */
    add(f, &n, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1));
    add(f, &n, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
    add_flag_rule(f, &n, SYS_openat, flags_of_openat, O_CREAT | O_TRUNC | O_WRONLY | O_APPEND,
                  true);
    add_flag_rule(f, &n, SYS_clone, flags_of_clone, CLONE_THREAD, false);
    add(f, &n, (struct sock_filter)ALLOW);
    return n;
}

bool runner_confine(struct error *err)
{
    struct sock_filter filter[2 * ARRAY_LEN(denied) + 32];
    struct sock_fprog program = {.filter = filter};
    struct rlimit no_core = {0, 0}, files = {256, 256};

    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)setrlimit(RLIMIT_NOFILE, &files);
    program.len = (unsigned short)build_filter(filter);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return error_set(err, ERROR_MACHINE, "prctl(no_new_privs): %s", strerror(errno));
    /* Without seccomp, the network namespace and limits still apply. */
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0 && errno != EINVAL)
        return error_set(err, ERROR_MACHINE, "seccomp: %s", strerror(errno));
    return true;
}
