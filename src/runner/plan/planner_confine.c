/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planner_confine.c - confine the planner's process.
 *
 * The interpreter is the real protection; this is a light second layer against our own mistakes.
 * Hides resource limits and a seccomp filter.
 *
 * Invariants
 * 1. After confine_calls() nothing is opened and no process or connection is
 *    made; the answer goes to standard output.
 * 2. A kernel without seccomp is not an error: no code of a candidate runs here.
 */
#include "base/sanitized.h"
#include "confine/seccomp.h"
#include "runner/plan/planner.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Steps are counted; the CPU limit is only a safeguard against our own bugs. */
enum { CPU_SECONDS = 60, OPEN_FILES = 32, ANSWER_BYTES = 16 << 20 };
#define ADDRESS_BYTES (UINT64_C(512) << 20)

/* Allowed while none of `bits` is set in the argument. */
static void on_without(struct filter *f, long nr, int index, uint32_t bits, uint32_t otherwise)
{
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 4);
    filter_load_argument(f, index);
    filter_emit(f, BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    filter_give(f, otherwise);
    filter_give(f, SECCOMP_RET_ALLOW);
}

/* abort() signals itself; no other process may be signalled. */
static void on_own_signal(struct filter *f)
{
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 4);
    filter_load_argument(f, 0);
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)getpid(), 1, 0);
    filter_give(f, SECCOMP_RET_KILL_PROCESS);
    filter_give(f, SECCOMP_RET_ALLOW);
}

/* Allowed for 1 and 2. */
static void on_writing(struct filter *f, long nr)
{
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 5);
    filter_load_argument(f, 0);
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, 1, 1, 0);
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 1);
    filter_give(f, SECCOMP_RET_ALLOW);
    filter_give(f, SECCOMP_RET_KILL_PROCESS);
}

/* What a C library needs for memory, locks and exit. */
static const long always_allowed[] = {
    SYS_brk,          SYS_munmap,        SYS_mremap,       SYS_madvise,      SYS_futex,
    SYS_getrandom,    SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday, SYS_rt_sigprocmask,
    SYS_rt_sigreturn, SYS_rt_sigaction,  SYS_sigaltstack,  SYS_getpid,       SYS_gettid,
    SYS_tgkill,       SYS_sched_yield,   SYS_exit,         SYS_exit_group,   SYS_restart_syscall,
};

void confine_calls(void)
{
    struct filter f = {.len = 0};
    struct sock_fprog program = {.filter = f.code};

#ifdef SANITIZED /* the leak checker starts a thread at exit */
    return;
#endif
    filter_begin(&f, SECCOMP_RET_KILL_PROCESS);
    for (size_t i = 0; i < ARRAY_LEN(always_allowed); i++)
        filter_on(&f, always_allowed[i], SECCOMP_RET_ALLOW);
    on_without(&f, SYS_mmap, 2, PROT_EXEC, SECCOMP_RET_KILL_PROCESS);
    on_without(&f, SYS_mprotect, 2, PROT_EXEC, SECCOMP_RET_KILL_PROCESS);
    on_own_signal(&f);
    on_writing(&f, SYS_write);
    filter_give(&f, SECCOMP_RET_KILL_PROCESS);
    program.len = f.len;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static bool limit(unsigned what, uint64_t soft, uint64_t hard, const char *name, struct error *err)
{
    struct rlimit r = {.rlim_cur = soft, .rlim_max = hard};
    struct rlimit now;
    if (getrlimit(what, &now) == 0 && now.rlim_max < hard)
        return true; /* already tighter */
    if (setrlimit(what, &r) != 0)
        return error_set(err, ERROR_MACHINE, "limiting %s: %s", name, strerror(errno));
    return true;
}

bool confine_limits(struct error *err)
{
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return error_set(err, ERROR_MACHINE, "prctl: %s", strerror(errno));
#ifndef SANITIZED /* a sanitizer's shadow alone is larger */
    if (!limit(RLIMIT_AS, ADDRESS_BYTES, ADDRESS_BYTES, "memory", err))
        return false;
#endif
    /* SIGXCPU at the soft limit shows the cause; the hard limit kills if that is caught. */
    return limit(RLIMIT_CORE, 0, 0, "core files", err) &&
           limit(RLIMIT_FSIZE, ANSWER_BYTES, ANSWER_BYTES, "file sizes", err) &&
           limit(RLIMIT_NOFILE, OPEN_FILES, OPEN_FILES, "open files", err) &&
           limit(RLIMIT_CPU, CPU_SECONDS, CPU_SECONDS + 1, "CPU time", err);
}
