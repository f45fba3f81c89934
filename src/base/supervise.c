/*
 * supervise.c - start a program, reap all it starts, leave nothing running.
 *
 * The supervisor is a child subreaper: whatever the program forks, however
 * often and with whatever session, has the supervisor as an ancestor. To end
 * it, stop every descendant (so that none can fork on), kill them all, reap,
 * and look again until there is none.
 *
 * Invariants
 * 1. No descriptor of cutegen stays open here but those of the plan: a life
 *    pipe's other end held by a sibling would hide cutegen's death from it.
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Looking at the program alone is cheap; finding all it has started reads all of /proc. */
enum { MAX_PROCESSES = 65536, SAMPLE_MS = 25, SCAN_EVERY = 20, ENDING_MS = 30000 };

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

/* Follows parents up to us, or out of the list; what is found out is kept for the next. */
static bool is_ours(struct member *all, size_t count, struct member *m, pid_t root)
{
    struct member *up;

    if (m->side == UNKNOWN) {
        m->side = FOREIGN; /* also ends a circle, which a list read while it changes may hold */
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

static uint64_t resident_bytes(pid_t pid)
{
    char path[64], text[128];
    unsigned long pages = 0;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
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

/* What the program holds; now and then, what all of its family holds. */
static uint64_t resident_sum(struct member *all, pid_t program, unsigned sample)
{
    uint64_t sum = 0;
    size_t n;

    if (sample % SCAN_EVERY)
        return resident_bytes(program);
    n = list_descendants(all, getpid());
    for (size_t i = 0; i < n; i++)
        sum += resident_bytes(all[i].pid);
    return sum;
}

/*
 * Ends every descendant and reaps it. Stopped first, so that none forks on; a
 * child born between two looks is met by the next one. One in uninterruptible
 * sleep (a dead disk, a driver) does not die when killed: when none has for
 * `ending_ms`, gives up and returns one that is left; it dies when it wakes.
 */
static pid_t end_all(struct member *all, pid_t program, int ending_ms, int *program_status)
{
    for (int64_t progress = clock_ms();;) {
        size_t before = 0, n = list_descendants(all, getpid());
        int status;
        pid_t pid;

        while (n > before) {
            for (size_t i = 0; i < n; i++)
                kill(all[i].pid, SIGSTOP);
            before = n;
            n = list_descendants(all, getpid());
        }
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

enum { STEP_FORK, STEP_DIRECTORY, STEP_NETWORK, STEP_EXEC };

static _Noreturn void become_program(const struct supervise_plan *plan, int failed)
{
    const struct proc_spec *spec = plan->spec;
    int step = STEP_DIRECTORY, failure[2];
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
    step = STEP_NETWORK;
    if (spec->no_network && !forbid_network())
        goto fail;
    set_limit(RLIMIT_AS, spec->address_limit_bytes);
    set_limit(RLIMIT_FSIZE, spec->file_limit_bytes);
    set_limit(RLIMIT_CPU, (uint64_t)spec->cpu_limit_s);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    step = STEP_EXEC;
    execve(plan->program, (char *const *)(uintptr_t)spec->argv, plan->environment);
fail:
    failure[0] = step;
    failure[1] = errno;
    if (write(failed, failure, sizeof(failure)) < 0)
        _exit(126);
    _exit(127);
}

static void close_others(const struct supervise_plan *plan)
{
    const struct proc_spec *spec = plan->spec;
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        int fd = (int)strtol(entry->d_name, NULL, 10);
        bool keep = fd <= 2 || fd == dirfd(dir) || fd == plan->in || fd == plan->out ||
                    fd == plan->err || fd == plan->life || fd == plan->report;

        for (size_t i = 0; i < spec->keep_fd_count; i++)
            keep = keep || fd == spec->keep_fds[i];
        if (!keep)
            close(fd);
    }
    if (dir)
        closedir(dir);
}

/* Starts the program; reports its pid, or why it could not be started. */
static pid_t start_program(const struct supervise_plan *plan)
{
    struct supervise_report report = {0};
    int failed[2], failure[2];
    pid_t pid = 0;

    if (pipe2(failed, O_CLOEXEC) != 0 || (pid = fork()) < 0) {
        report.code = errno;
        report.step = STEP_FORK;
        goto told;
    }
    if (pid == 0)
        become_program(plan, failed[1]);
    close(failed[1]);
    if (read(failed[0], failure, sizeof(failure)) == (ssize_t)sizeof(failure)) {
        report.step = failure[0];
        report.code = failure[1];
        waitpid(pid, NULL, 0);
    } else {
        report.started = pid;
    }
    close(failed[0]);
told:
    if (write(plan->report, &report, sizeof(report)) != (ssize_t)sizeof(report) || !report.started)
        _exit(1);
    return pid;
}

/* What to wait for next: the deadline, the next memory sample, or for ever. */
static int next_wait_ms(const struct proc_spec *spec, int64_t start)
{
    int64_t left = -1;

    if (spec->deadline_ms) {
        left = start + spec->deadline_ms - clock_ms();
        if (left < 0)
            left = 0;
    }
    if (spec->resident_limit_bytes && (left < 0 || left > SAMPLE_MS))
        left = SAMPLE_MS;
    return (int)left;
}

_Noreturn void supervise(const struct supervise_plan *plan)
{
    static struct member all[MAX_PROCESSES]; /* of this process alone */
    const struct proc_spec *spec = plan->spec;
    struct supervise_report report = {.end = PROC_EXITED};
    int64_t start = clock_ms();
    struct rusage usage;
    int status = 0, signals;
    unsigned sample = 0;
    bool told_to_stop = false;
    sigset_t mask;
    pid_t program;

    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    close_others(plan);
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    program = start_program(plan);
    close(plan->in);
    close(plan->out);
    close(plan->err);
    for (bool running = true; running;) {
        struct pollfd wait[2] = {{plan->life, POLLIN, 0}, {signals, POLLIN, 0}};
        struct signalfd_siginfo info;
        pid_t pid;

        poll(wait, 2, next_wait_ms(spec, start));
        while (read(signals, &info, sizeof(info)) > 0)
            ;
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
            if (pid == program) {
                running = false;
                break;
            }
        if (!running)
            break;
        if (wait[0].revents) { /* nobody is left to report to, or we are told to stop */
            told_to_stop = true;
            running = false;
        } else if (spec->deadline_ms && clock_ms() - start >= spec->deadline_ms) {
            report.end = PROC_DEADLINE;
            running = false;
        } else if (spec->resident_limit_bytes) {
            uint64_t sum = resident_sum(all, program, sample++);

            if (sum > report.peak_resident_bytes)
                report.peak_resident_bytes = sum;
            if (sum > spec->resident_limit_bytes) {
                report.end = PROC_MEMORY;
                running = false;
            }
        }
    }
    report.left = end_all(all, program, spec->ending_ms ? spec->ending_ms : ENDING_MS,
                          told_to_stop ? &status : NULL);
    if (plan->tmp)
        dir_remove(plan->tmp, &(struct error){0});
    if (report.end == PROC_EXITED && WIFSIGNALED(status))
        report.end = PROC_SIGNALED;
    report.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    getrusage(RUSAGE_CHILDREN, &usage);
    report.started = program;
    report.wall_ms = (int)(clock_ms() - start);
    report.cpu_ms = (int)(usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000 +
                          usage.ru_stime.tv_sec * 1000 + usage.ru_stime.tv_usec / 1000);
    if ((uint64_t)usage.ru_maxrss * 1024 > report.peak_resident_bytes)
        report.peak_resident_bytes = (uint64_t)usage.ru_maxrss * 1024;
    if (write(plan->report, &report, sizeof(report)) < 0)
        _exit(1);
    _exit(0);
}
