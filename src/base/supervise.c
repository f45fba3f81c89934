/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise.c - start a program, reap all it starts, leave nothing running.
 *
 * The supervisor is a child subreaper: whatever the program forks, however
 * often and with whatever session, has the supervisor as an ancestor. To end it, stop every
 * descendant (so that none can fork again), kill them all, reap, and repeat until none is left.
 *
 * Invariants
 * 1. No descriptor of cutegen stays open here except those of the plan: a sibling that held the
 *    other end of a life pipe would hide cutegen's death.
 * 2. The program dies with the supervisor (PR_SET_PDEATHSIG), the supervisor
 *    with cutegen (life pipe).
 */
#include "base/supervise.h"

#include "base/clock.h"
#include "base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

/* Checking the program alone is cheap; finding everything it has started reads all of /proc. */
enum { MAX_PROCESSES = 65536, SAMPLE_MS = 25, LONG_SAMPLE_MS = 200, SCAN_EVERY = 20 };
enum { MOST_FDS = 65536, MOST_KEPT = 64 };
/* A compiler on each core takes a few processes. A fork bomb has to be caught while it can still be
 * stopped: the number of processes on the machine is cheap to read, and when it has grown by GROWN,
 * ours are counted. For users other than root there is a hard limit as well. */
enum { SOME_PROCESSES = 256, PROCESSES_PER_CORE = 8, GROWN = 64, FORKING_MS = 50 };
enum { SPARE_PROCESSES = 4096 };
enum { ENDING_MS = 30000, DISK_EVERY = 4, MAX_DEPTH = 64, ENTRY_BYTES = 256 };

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "supervise.c knows the system calls of x86_64 and aarch64 only"
#endif

#ifndef __NR_io_uring_setup
#define __NR_io_uring_setup 425
#endif

struct member {
    pid_t pid, parent;
    enum { UNKNOWN, OURS, FOREIGN } side;
};

static int by_pid(const void *a, const void *b)
{
    const struct member *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Follows parents up to us or out of the list; the result is kept for the next query. */
static bool is_ours(struct member *all, size_t count, struct member *m, pid_t root)
{
    struct member *up;

    if (m->side == UNKNOWN) {
        m->side = FOREIGN; /* also ends a cycle, which a list read while it changes may contain */
        if (m->parent == root) {
            m->side = OURS;
        } else {
            up = bsearch(&(struct member){.pid = m->parent}, all, count, sizeof(*all), by_pid);
            if (up && is_ours(all, count, up, root))
                m->side = OURS;
        }
    }
    return m->side == OURS;
}

/* Every process that has us as an ancestor; the supervisor itself left out. */
static size_t list_descendants(struct member *all, pid_t root)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    size_t count = 0, ours = 0;

    while (proc && count < MAX_PROCESSES && (entry = readdir(proc))) {
        char path[64], stat[512], *close_paren;
        long pid = strtol(entry->d_name, NULL, 10);
        int parent, fd;
        ssize_t n;

        if (pid <= 0)
            continue;
        snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        n = read(fd, stat, sizeof(stat) - 1);
        close(fd);
        if (n <= 0)
            continue;
        stat[n] = '\0';
        /* The name may hold anything; the fields start after its last ')'. */
        close_paren = strrchr(stat, ')');
        if (!close_paren || sscanf(close_paren + 1, " %*c %d", &parent) != 1)
            continue;
        all[count++] = (struct member){(pid_t)pid, (pid_t)parent, UNKNOWN};
    }
    if (proc)
        closedir(proc);
    qsort(all, count, sizeof(*all), by_pid);
    for (size_t i = 0; i < count; i++)
        is_ours(all, count, &all[i], root);
    for (size_t i = 0; i < count; i++)
        if (all[i].side == OURS)
            all[ours++] = all[i];
    return ours;
}

uint64_t proc_resident_bytes(int pid)
{
    char path[64], text[128];
    unsigned long pages = 0;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/statm", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    if (sscanf(text, "%*u %lu", &pages) != 1)
        return 0;
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Resident memory of the program and all it started; *count: how many processes that is. */
static uint64_t resident_sum(struct member *all, size_t *count)
{
    uint64_t sum = 0;

    *count = list_descendants(all, getpid());
    for (size_t i = 0; i < *count; i++)
        sum += proc_resident_bytes(all[i].pid);
    return sum;
}

/* All processes of the machine, with threads; modulo 65536, which is enough for a difference. */
static uint16_t all_processes(void)
{
    struct sysinfo now;

    return sysinfo(&now) == 0 ? now.procs : 0;
}

static size_t most_processes(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    return SOME_PROCESSES + PROCESSES_PER_CORE * (size_t)(cores > 1 ? cores : 1);
}

/* RLIMIT_NPROC counts all of a user's processes and threads, so the limit is the machine's present
 * number plus an allowance. Root is exempt. */
static void limit_processes(void)
{
    struct sysinfo now;

    if (sysinfo(&now) == 0)
        setrlimit(RLIMIT_NPROC, &(struct rlimit){now.procs + SPARE_PROCESSES, RLIM_INFINITY});
}

/*
 * Ends every descendant and reaps it. What is killed forks no more; a child born between two scans
 * is found by the next one; to win that race we raise our own priority where allowed. One in
 * uninterruptible sleep (a dead disk, a driver) does not die when killed: when none has died for
 * `ending_ms`, gives up and returns one that is left; it dies when it wakes.
 */
static pid_t end_all(struct member *all, pid_t program, int ending_ms, int *program_status)
{
    if (waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD)
        return 0; /* we inherit orphans, so without a child there is no descendant */
    (void)!setpriority(PRIO_PROCESS, 0, -20);
    for (int64_t progress = clock_ms();;) {
        size_t n = list_descendants(all, getpid());
        int status;
        pid_t pid;

        for (size_t i = 0; i < n; i++)
            kill(all[i].pid, SIGKILL);
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
            progress = clock_ms();
            if (pid == program && program_status)
                *program_status = status;
        }
        if (pid < 0 && errno == ECHILD)
            return 0;
        if (n > 0 && clock_ms() - progress > ending_ms)
            return all[0].pid;
        usleep(1000);
    }
}

static void set_limit(int resource, uint64_t value)
{
    struct rlimit limit = {.rlim_cur = value, .rlim_max = value};

    if (value)
        setrlimit((unsigned)resource, &limit);
}

/* No sockets of any kind, and no io_uring to make them with. */
static bool forbid_network(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#if defined(__x86_64__)
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 3, 0), /* x32 calls */
#endif
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
    };
    struct sock_fprog program = {.len = (unsigned short)ARRAY_LEN(code), .filter = code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

enum { STEP_FORK, STEP_DIRECTORY, STEP_NETWORK, STEP_EXEC, STEP_CONFINE };

struct failure {
    int step, code;
    char why[sizeof(((struct supervise_report *)0)->why)];
};

static bool enter_cage(const struct supervise_plan *plan, const struct proc_birth *birth,
                       struct failure *failure)
{
    const struct proc_spec *spec = plan->spec;
    struct error err = {0};
    int keep[MOST_KEPT + 1];
    size_t n = 0;

    while (n < spec->keep_fd_count && n < MOST_KEPT) {
        keep[n] = spec->keep_fds[n];
        n++;
    }
    keep[n] = -1;
    if (spec->cage->enter(spec->cage->policy, birth, plan->tmp, keep, &err))
        return true;
    snprintf(failure->why, sizeof(failure->why), "%.159s", err.text);
    return false;
}

static void close_between(unsigned first, unsigned last)
{
    if (first > last || close_range(first, last, 0) == 0)
        return;
    for (unsigned fd = first; fd <= last && fd < MOST_FDS; fd++)
        close((int)fd);
}

static _Noreturn void become_program(const struct supervise_plan *plan,
                                     const struct proc_birth *birth, int failed)
{
    const struct proc_spec *spec = plan->spec;
    struct failure failure = {.step = STEP_DIRECTORY};
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int s = 1; s < 32; s++)
        signal(s, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(plan->in, 0);
    dup2(plan->out, 1);
    dup2(spec->merge_stderr ? plan->out : plan->err, 2);
    for (size_t i = 0; i < spec->keep_fd_count; i++)
        fcntl(spec->keep_fds[i], F_SETFD, 0);
    if (spec->dir && chdir(spec->dir) != 0)
        goto fail;
    failure.step = STEP_NETWORK;
    if (spec->no_network && !spec->cage && !forbid_network())
        goto fail;
    set_limit(RLIMIT_AS, spec->address_limit_bytes);
    set_limit(RLIMIT_FSIZE, spec->file_limit_bytes);
    set_limit(RLIMIT_CPU, (uint64_t)spec->cpu_limit_s);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (spec->cage && !spec->cage->alone)
        limit_processes();
    failure.step = STEP_CONFINE;
    if (spec->cage && !enter_cage(plan, birth, &failure))
        goto fail;
    failure.step = STEP_EXEC;
    if (plan->born) {
        close_between(3, ~0U); /* as exec would; `failed` with it, which says that it runs */
        plan->born(plan->born_ctx);
        _exit(126);
    }
    execve(plan->program, (char *const *)(uintptr_t)spec->argv, plan->environment);
fail:
    failure.code = errno;
    if (write(failed, &failure, sizeof(failure)) < 0)
        _exit(126);
    _exit(127);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Works without /proc, which a confined program that starts others does not have. */
static void close_others(const struct supervise_plan *plan)
{
    const struct proc_spec *spec = plan->spec;
    int keep[MOST_KEPT] = {plan->in, plan->out, plan->err, plan->life, plan->report};
    size_t n = 5;
    unsigned next = 3;

    if (spec->keep_fd_count > MOST_KEPT - n)
        BUG("more than %d descriptors to keep", MOST_KEPT);
    for (size_t i = 0; i < spec->keep_fd_count; i++)
        keep[n++] = spec->keep_fds[i];
    qsort(keep, n, sizeof(*keep), by_number);
    for (size_t i = 0; i < n; i++) {
        if (keep[i] < (int)next)
            continue;
        close_between(next, (unsigned)keep[i] - 1);
        next = (unsigned)keep[i] + 1;
    }
    close_between(next, ~0U);
}

/* One attempt; 0: `failure` says why it is not running. */
static pid_t try_program(const struct supervise_plan *plan, bool plain, struct proc_birth *birth,
                         struct failure *failure)
{
    const struct proc_cage *cage = plan->spec->cage;
    int failed[2];
    pid_t pid = -1;

    *failure = (struct failure){.step = STEP_FORK};
    *birth = (struct proc_birth){.copy = plan->born != NULL};
    if (pipe2(failed, O_CLOEXEC) == 0)
        pid = cage ? cage->fork(cage->policy, plain, birth) : fork();
    if (pid < 0) {
        failure->code = errno;
        return 0;
    }
    if (pid == 0)
        become_program(plan, birth, failed[1]);
    close(failed[1]);
    if (read(failed[0], failure, sizeof(*failure)) == (ssize_t)sizeof(*failure)) {
        waitpid(pid, NULL, 0);
        pid = 0;
    }
    close(failed[0]);
    return pid;
}

/* Starts the program; reports its pid, or why it could not be started. Namespaces that can be
 * created but not set up are left out. */
static pid_t start_program(const struct supervise_plan *plan)
{
    struct supervise_report report = {0};
    struct proc_birth birth = {0};
    struct failure failure;
    pid_t pid = try_program(plan, false, &birth, &failure);

    if (!pid && failure.step == STEP_CONFINE && birth.namespaces)
        pid = try_program(plan, true, &birth, &failure);
    if (!pid) {
        report.step = failure.step;
        report.code = failure.code;
        memcpy(report.why, failure.why, sizeof(report.why));
    }
    report.started = pid;
    /* The reader of our report may be dead already: then the life pipe says so and everything is
     * ended. */
    (void)!write(plan->report, &report, sizeof(report));
    if (!report.started)
        _exit(1);
    return pid;
}

/* ---- watching -------------------------------------------------------------- */

struct watch {
    struct member *all;
    pid_t program;
    unsigned sample;
    int interval_ms; /* of the next sample: longer while nothing moves */
    uint64_t last;
    uint16_t processes; /* on the machine, when ours were last counted */
};

static bool is_watched(const struct proc_spec *spec)
{
    return spec->resident_limit_bytes || spec->disk_limit_bytes;
}

/* Time until the next event: the deadline, the next sample, or never. */
static int next_wait_ms(const struct proc_spec *spec, int64_t start, const struct watch *w)
{
    int64_t left = -1;

    if (spec->deadline_ms) {
        left = start + spec->deadline_ms - clock_ms();
        if (left < 0)
            left = 0;
    }
    if (is_watched(spec) && (left < 0 || left > w->interval_ms))
        left = w->interval_ms;
    return (int)left;
}

/* Bytes stored below an open folder, without following links; closes it. */
static uint64_t stored_bytes(int dir, int depth)
{
    DIR *d = dir >= 0 && depth < MAX_DEPTH ? fdopendir(dir) : NULL;
    struct dirent *entry;
    struct stat st;
    uint64_t sum = 0;

    if (!d) {
        if (dir >= 0)
            close(dir);
        return 0;
    }
    while ((entry = readdir(d))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        sum += (uint64_t)st.st_blocks * 512 + ENTRY_BYTES;
        if (S_ISDIR(st.st_mode))
            sum += stored_bytes(
                openat(dirfd(d), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                depth + 1);
    }
    closedir(d);
    return sum;
}

static uint64_t stored_in(const char *path)
{
    return path ? stored_bytes(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0) : 0;
}

/* Writes the last message of a program that is killed and cannot write it itself. */
static void say_limit(const struct supervise_plan *plan, const char *what, uint64_t limit)
{
    int fd = plan->spec->merge_stderr ? plan->out : plan->err;

    dprintf(fd, "\ncutegen: ended by its supervisor: more than %llu MiB of %s\n",
            (unsigned long long)(limit >> 20), what);
}

/* Samples memory, processes and disk; true: a limit is exceeded and *report says which. */
static bool over_limit(const struct supervise_plan *plan, struct watch *w,
                       struct supervise_report *report)
{
    const struct proc_spec *spec = plan->spec;
    bool alone = spec->cage && spec->cage->alone;
    uint16_t now = alone ? 0 : all_processes();
    bool grown = !alone && (int16_t)(now - w->processes) > GROWN;
    bool whole = !alone && (w->sample % SCAN_EVERY == 0 || grown);
    size_t count = 1;
    uint64_t held = whole ? resident_sum(w->all, &count) : proc_resident_bytes(w->program);
    uint64_t stored =
        spec->disk_limit_bytes && (w->interval_ms > SAMPLE_MS || w->sample % DISK_EVERY == 0)
            ? stored_in(plan->tmp) + stored_in(spec->watch_dir)
            : 0;
    bool moved = grown || held > w->last + w->last / 64 || held + held / 64 < w->last;
    int longest_ms = alone ? LONG_SAMPLE_MS : FORKING_MS;

    if (whole)
        w->processes = now;
    w->interval_ms = moved || w->sample < SCAN_EVERY ? SAMPLE_MS
                     : w->interval_ms < longest_ms   ? 2 * w->interval_ms
                                                     : w->interval_ms;
    w->last = held;
    w->sample++;
    if (held > report->peak_resident_bytes)
        report->peak_resident_bytes = held;
    if (count > most_processes()) {
        report->end = PROC_CROWD;
        dprintf(spec->merge_stderr ? plan->out : plan->err,
                "\ncutegen: ended by its supervisor: more than %zu processes\n", most_processes());
        return true;
    }
    if (spec->resident_limit_bytes && held > spec->resident_limit_bytes) {
        report->end = PROC_MEMORY;
        say_limit(plan, "memory", spec->resident_limit_bytes);
    } else if (spec->disk_limit_bytes && stored > spec->disk_limit_bytes) {
        report->end = PROC_DISK;
        say_limit(plan, "files", spec->disk_limit_bytes);
    }
    return report->end != PROC_EXITED;
}

/* Fills in how the program ended and what it and its children used. */
static void report_usage(struct supervise_report *report, int status, int64_t start)
{
    struct rusage usage;

    if (report->end == PROC_EXITED && WIFSIGNALED(status))
        report->end = PROC_SIGNALED;
    report->code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    getrusage(RUSAGE_CHILDREN, &usage);
    report->wall_ms = (int)(clock_ms() - start);
    report->cpu_ms = (int)(usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000 +
                           usage.ru_stime.tv_sec * 1000 + usage.ru_stime.tv_usec / 1000);
    if ((uint64_t)usage.ru_maxrss * 1024 > report->peak_resident_bytes)
        report->peak_resident_bytes = (uint64_t)usage.ru_maxrss * 1024;
}

_Noreturn void supervise(const struct supervise_plan *plan)
{
    static struct member all[MAX_PROCESSES]; /* of this process alone */
    const struct proc_spec *spec = plan->spec;
    struct supervise_report report = {.end = PROC_EXITED};
    int64_t start = clock_ms();
    struct watch watch = {.all = all, .interval_ms = SAMPLE_MS};
    int status = 0, signals;
    bool told_to_stop = false;
    sigset_t mask;
    pid_t program;

    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    /* writing a report without a reader must not kill us before the program */
    signal(SIGPIPE, SIG_IGN);
    close_others(plan);
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    watch.program = program = start_program(plan);
    close(plan->in);
    if (!is_watched(spec)) {
        close(plan->out);
        close(plan->err);
    }
    for (bool running = true; running;) {
        struct pollfd wait[2] = {{plan->life, POLLIN, 0}, {signals, POLLIN, 0}};
        struct signalfd_siginfo info;
        pid_t pid;

        poll(wait, 2, next_wait_ms(spec, start, &watch));
        while (read(signals, &info, sizeof(info)) > 0)
            ;
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
            if (pid == program) {
                running = false;
                break;
            }
        if (!running)
            break;
        if (wait[0].revents) { /* cutegen died or wants the program stopped */
            told_to_stop = true;
            running = false;
        } else if (spec->deadline_ms && clock_ms() - start >= spec->deadline_ms) {
            report.end = PROC_DEADLINE;
            running = false;
        } else if (is_watched(spec) && over_limit(plan, &watch, &report)) {
            running = false;
        }
    }
    report.left = end_all(all, program, spec->ending_ms ? spec->ending_ms : ENDING_MS,
                          told_to_stop ? &status : NULL);
    if (plan->tmp)
        dir_remove(plan->tmp, &(struct error){0});
    report.started = program;
    report_usage(&report, status, start);
    if (write(plan->report, &report, sizeof(report)) < 0)
        _exit(1);
    _exit(0);
}
