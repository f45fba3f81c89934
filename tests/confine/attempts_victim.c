/* attempts_victim.c - what hostile code tries on another process. */
#include "attempts.h"
#include "tools.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VICTIMS_FD = 40 };

static bool environ_of(const struct world *w)
{
    char text[65536];
    int fd = open(of_victim(w, "environ"), O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;

    if (fd >= 0)
        close(fd);
    return n > 0 && memmem(text, (size_t)n, w->key, strlen(w->key));
}

static bool memory_of(const struct world *w, int flags)
{
    char text[64] = "";
    int fd = open(of_victim(w, "mem"), flags);
    ssize_t n = -1;

    if (fd < 0)
        return false;
    n = pread(fd, text, strlen(w->key), (off_t)w->address);
    if (n > 0 && flags == O_RDWR)
        n = pwrite(fd, text, (size_t)n, (off_t)w->address);
    close(fd);
    return n > 0 && memcmp(text, w->key, (size_t)n) == 0;
}

static bool mem_read(const struct world *w)
{
    return memory_of(w, O_RDONLY);
}

static bool mem_write(const struct world *w)
{
    return memory_of(w, O_RDWR);
}

static bool cmdline_of(const struct world *w)
{
    return reads(of_victim(w, "cmdline"));
}

static bool maps_of(const struct world *w)
{
    return reads(of_victim(w, "maps"));
}

static bool descriptor_of(const struct world *w)
{
    return reads(of_victim(w, "fd/40"));
}

static bool root_of(const struct world *w)
{
    return reads(of_victim(w, "root/etc/passwd"));
}

static bool folder_of(const struct world *w)
{
    return can_open(of_victim(w, "cwd"), O_RDONLY | O_DIRECTORY);
}

static bool threads_of(const struct world *w)
{
    return can_open(of_victim(w, "task"), O_RDONLY | O_DIRECTORY);
}

static bool init_environ(const struct world *w)
{
    (void)w;
    return getpid() != 1 && reads("/proc/1/environ"); /* 1 may be ourselves */
}

static bool lists_processes(const struct world *w)
{
    DIR *d = opendir("/proc");
    struct dirent *e;
    bool found = false;

    while (d && (e = readdir(d)))
        found = found || strtol(e->d_name, NULL, 10) == w->victim;
    if (d)
        closedir(d);
    return found;
}

static bool trace(const struct world *w)
{
    bool ok = ptrace(PTRACE_SEIZE, w->victim, 0, 0) == 0;

    if (ok) {
        ptrace(PTRACE_INTERRUPT, w->victim, 0, 0);
        waitpid(w->victim, NULL, __WALL);
        ptrace(PTRACE_DETACH, w->victim, 0, 0);
    }
    return ok;
}

static bool vm_read(const struct world *w)
{
    char text[64];
    struct iovec ours = {text, 8}, theirs = {(void *)w->address, 8};

    return process_vm_readv(w->victim, &ours, 1, &theirs, 1, 0) > 0;
}

static bool vm_write(const struct world *w)
{
    struct iovec ours = {(void *)(uintptr_t)w->key, 8}, theirs = {(void *)w->address, 8};

    return process_vm_writev(w->victim, &ours, 1, &theirs, 1, 0) > 0;
}

static bool pidfd(const struct world *w)
{
    return close_if((int)syscall(SYS_pidfd_open, w->victim, 0));
}

static bool pidfd_steal(const struct world *w)
{
    int fd = (int)syscall(SYS_pidfd_open, w->victim, 0);
    int stolen = fd >= 0 ? (int)syscall(438, fd, VICTIMS_FD, 0) : -1;

    close_if(fd);
    return close_if(stolen);
}

static bool pidfd_signal(const struct world *w)
{
    int fd = open(of_victim(w, ""), O_RDONLY | O_DIRECTORY);

    if (fd < 0)
        fd = (int)syscall(SYS_pidfd_open, w->victim, 0);
    return fd >= 0 && syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) == 0;
}

static bool signal_asks(const struct world *w)
{
    return kill(w->victim, 0) == 0;
}

static bool signal_kill(const struct world *w)
{
    return kill(w->victim, SIGUSR1) == 0;
}

static bool signal_thread(const struct world *w)
{
    return syscall(SYS_tgkill, w->victim, w->victim, SIGUSR1) == 0;
}

static bool signal_tkill(const struct world *w)
{
    return syscall(SYS_tkill, w->victim, SIGUSR1) == 0;
}

static bool signal_queue(const struct world *w)
{
    return sigqueue(w->victim, SIGUSR1, (union sigval){0}) == 0;
}

static bool signal_by_file(const struct world *w)
{
    int p[2];
    bool ok = pipe(p) == 0 && fcntl(p[0], F_SETSIG, SIGUSR1) == 0 &&
              fcntl(p[0], F_SETOWN, w->victim) == 0;

    close(p[0]);
    close(p[1]);
    return ok;
}

static bool signal_by_ioctl(const struct world *w)
{
    int owner = w->victim, s[2];
    bool ok = socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0 && ioctl(s[0], FIOSETOWN, &owner) == 0;

    close(s[0]);
    close(s[1]);
    return ok;
}

static bool signal_all(const struct world *w)
{
    (void)w;
    return kill(-1, 0) == 0;
}

static bool signal_parent(const struct world *w)
{
    (void)w;
    return getppid() > 0 && kill(getppid(), 0) == 0;
}

static bool limit_of(const struct world *w)
{
    struct rlimit r;

    return prlimit(w->victim, RLIMIT_NOFILE, NULL, &r) == 0;
}

static bool affinity_of(const struct world *w)
{
    cpu_set_t set;

    memset(&set, 0xff, sizeof set);
    return sched_setaffinity(w->victim, sizeof set, &set) == 0;
}

static bool scheduler_of(const struct world *w)
{
    return sched_setscheduler(w->victim, SCHED_OTHER, &(struct sched_param){0}) == 0;
}

static bool priority_of(const struct world *w)
{
    return setpriority(PRIO_PROCESS, (id_t)w->victim, 19) == 0;
}

static bool io_priority_of(const struct world *w)
{
    return syscall(SYS_ioprio_set, 1, w->victim, (2 << 13) | 7) == 0;
}

static bool pages_of(const struct world *w)
{
    return reached(syscall(SYS_move_pages, w->victim, 0UL, NULL, NULL, NULL, 0));
}

static bool compare_with(const struct world *w)
{
    return syscall(SYS_kcmp, getpid(), w->victim, 1, 0, 0) >= 0;
}

static bool robust_list_of(const struct world *w)
{
    void *head;
    size_t len;

    return syscall(SYS_get_robust_list, w->victim, &head, &len) == 0;
}

static bool outlives(const struct world *w)
{
    (void)w;
    return prctl(PR_SET_PDEATHSIG, 0) == 0;
}

static const struct attempt rows[] = {
    ROW("read another process's environment", environ_of),
    ROW("read another process's memory", mem_read),
    ROW("write another process's memory", mem_write),
    ROW("read another process's command line", cmdline_of),
    ROW("read another process's memory map", maps_of),
    ROW("open a file through another process's descriptor", descriptor_of),
    ROW("open a file through another process's root", root_of),
    ROW("open another process's folder", folder_of),
    ROW("list another process's threads", threads_of),
    MAYBE("read the environment of process 1", init_environ),
    ROW("list the machine's processes", lists_processes),
    ROW("trace another process", trace),
    ROW("process_vm_readv", vm_read),
    ROW("process_vm_writev", vm_write),
    ROW("pidfd_open", pidfd),
    ROW("pidfd_getfd", pidfd_steal),
    ROW("pidfd_send_signal", pidfd_signal),
    ROW("ask for another process with signal 0", signal_asks),
    ROW("kill", signal_kill),
    ROW("tgkill", signal_thread),
    ROW("tkill", signal_tkill),
    ROW("sigqueue", signal_queue),
    ROW("signal by a file's owner", signal_by_file),
    ROW("signal by a socket's owner", signal_by_ioctl),
    ROW("signal everybody", signal_all),
    ROW("signal the parent", signal_parent),
    ROW("read or set another process's limits", limit_of),
    ROW("move another process to other cores", affinity_of),
    ROW("change another process's scheduler", scheduler_of),
    ROW("slow another process down", priority_of),
    ROW("slow another process's disk down", io_priority_of),
    ROW("move another process's pages", pages_of),
    MAYBE("kcmp", compare_with),
    ROW("get_robust_list", robust_list_of),
    ROW("outlive the supervisor", outlives),
};
const struct attempt_list attempts_victim = {rows, sizeof rows / sizeof rows[0]};
