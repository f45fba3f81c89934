/* attempts_files.c - files and devices that hostile code tries to reach. */
#include "attempts.h"
#include "tools.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static bool home_read(const struct world *w)
{
    return reads(in(w->home, "secret"));
}

static bool home_list(const struct world *w)
{
    return can_open(w->home, O_RDONLY | O_DIRECTORY);
}

static bool profile_append(const struct world *w)
{
    return can_open(in(w->home, "profile"), O_WRONLY | O_APPEND);
}

static bool home_creates(const struct world *w)
{
    const char *path = in(w->home, "usercustomize.py");
    bool ok = can_open(path, O_WRONLY | O_CREAT);

    unlink(path);
    return ok;
}

static bool home_unnamed(const struct world *w)
{
    return can_open(w->home, O_WRONLY | O_TMPFILE);
}

static bool cache_read(const struct world *w)
{
    return reads(in(w->cache, "kernel.so"));
}

static bool cache_write(const struct world *w)
{
    return can_open(in(w->cache, "kernel.so"), O_WRONLY);
}

static bool cache_swap(const struct world *w)
{
    char other[256], path[256];
    bool ok;

    snprintf(path, sizeof path, "%s/kernel.so", w->cache);
    snprintf(other, sizeof other, "%s/kernel.so.new", w->cache);
    ok = rename(path, other) == 0;
    if (ok)
        rename(other, path);
    return ok;
}

static bool store_read(const struct world *w)
{
    return reads(w->store);
}

static bool store_write(const struct world *w)
{
    return can_open(w->store, O_RDWR);
}

static bool other_candidate(const struct world *w)
{
    return reads(in(w->other_work, "result"));
}

static bool other_candidate_write(const struct world *w)
{
    return can_open(in(w->other_work, "result"), O_RDWR);
}

static bool shared_memory(const struct world *w)
{
    return w->shm[0] && reads(w->shm);
}

static bool users(const struct world *w)
{
    (void)w;
    return reads("/etc/passwd");
}

static bool passwords(const struct world *w)
{
    (void)w;
    return reads("/etc/shadow");
}

static bool etc_write(const struct world *w)
{
    (void)w;
    return can_open("/etc/passwd", O_RDWR);
}

/* A private one holds what the policy names. */
static bool etc_list(const struct world *w)
{
    DIR *d = opendir("/etc");
    struct dirent *e;
    bool found = false;

    (void)w;
    while (d && (e = readdir(d)))
        found = found || strcmp(e->d_name, "passwd") == 0;
    if (d)
        closedir(d);
    return found;
}

static bool usr_write(const struct world *w)
{
    bool ok = can_open("/usr/cutegen-confine-test", O_WRONLY | O_CREAT);

    (void)w;
    unlink("/usr/cutegen-confine-test");
    return ok;
}

static bool root_write(const struct world *w)
{
    bool ok = can_open("/cutegen-confine-test", O_WRONLY | O_CREAT);

    (void)w;
    unlink("/cutegen-confine-test");
    return ok;
}

static bool core_pattern(const struct world *w)
{
    (void)w;
    return can_open("/proc/sys/kernel/core_pattern", O_WRONLY);
}

static bool magic_key(const struct world *w)
{
    (void)w;
    return can_open("/proc/sysrq-trigger", O_WRONLY);
}

static bool thread_name(const struct world *w)
{
    char name[64];

    snprintf(name, sizeof name, "task/%d/comm", (int)w->victim);
    return can_open(of_victim(w, name), O_WRONLY | O_TRUNC);
}

static bool oom_score(const struct world *w)
{
    return can_open(of_victim(w, "oom_score_adj"), O_WRONLY);
}

static bool kernel_memory(const struct world *w)
{
    (void)w;
    return can_open("/proc/kcore", O_RDONLY);
}

static bool sys_kernel(const struct world *w)
{
    (void)w;
    return can_open("/sys/kernel", O_RDONLY | O_DIRECTORY);
}

static bool sys_network(const struct world *w)
{
    (void)w;
    return can_open("/sys/class/net", O_RDONLY | O_DIRECTORY);
}

static bool cgroups(const struct world *w)
{
    (void)w;
    return can_open("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY);
}

static bool dev_list(const struct world *w)
{
    /* a private one has a few nodes */
    (void)w;
    return can_open("/dev/kmsg", O_RDONLY);
}

static bool dev_memory(const struct world *w)
{
    (void)w;
    return can_open("/dev/mem", O_RDONLY);
}

static bool dev_disk(const struct world *w)
{
    (void)w;
    return can_open("/dev/vda", O_RDONLY) || can_open("/dev/sda", O_RDONLY) ||
           can_open("/dev/nvme0n1", O_RDONLY);
}

static bool dev_terminal(const struct world *w)
{
    (void)w;
    return can_open("/dev/ptmx", O_RDWR);
}

static bool dev_fuse(const struct world *w)
{
    (void)w;
    return can_open("/dev/fuse", O_RDWR);
}

static bool dev_tunnel(const struct world *w)
{
    (void)w;
    return can_open("/dev/net/tun", O_RDWR);
}

static bool dev_kvm(const struct world *w)
{
    (void)w;
    return can_open("/dev/kvm", O_RDWR);
}

static bool makes_device(const struct world *w)
{
    const char *path = in(w->work, "null");
    bool ok = mknod(path, S_IFCHR | 0600, (dev_t)(1 << 8 | 3)) == 0;

    unlink(path);
    return ok;
}

static bool links_in(const struct world *w)
{
    char from[256], to[256];
    bool ok;

    snprintf(from, sizeof from, "%s/secret", w->home);
    snprintf(to, sizeof to, "%s/link", w->work);
    ok = link(from, to) == 0 && reads(to);
    unlink(to);
    return ok;
}

static bool symlinks_in(const struct world *w)
{
    char from[256], to[256];
    bool ok;

    snprintf(from, sizeof from, "%s/secret", w->home);
    snprintf(to, sizeof to, "%s/symlink", w->work);
    ok = symlink(from, to) == 0 && reads(to);
    unlink(to);
    return ok;
}

static bool moves_in(const struct world *w)
{
    char from[256], to[256];
    bool ok;

    snprintf(from, sizeof from, "%s/secret", w->home);
    snprintf(to, sizeof to, "%s/moved", w->work);
    ok = rename(from, to) == 0;
    if (ok)
        rename(to, from);
    return ok;
}

static bool by_own_root(const struct world *w)
{
    char path[300];

    snprintf(path, sizeof path, "/proc/self/root%s/secret", w->home);
    return reads(path);
}

static bool by_dots(const struct world *w)
{
    char path[300];

    snprintf(path, sizeof path, "%s/../home/secret", w->work);
    return reads(path);
}

static bool by_openat2(const struct world *w)
{
    uint64_t how[3] = {O_RDONLY, 0, 0};

    return close_if((int)syscall(437, AT_FDCWD, in(w->home, "secret"), how, sizeof how));
}

static bool changes_mode(const struct world *w)
{
    return chmod(in(w->home, "secret"), 0600) == 0;
}

static bool changes_owner(const struct world *w)
{
    return chown(in(w->home, "secret"), getuid(), (gid_t)-1) == 0;
}

static bool changes_times(const struct world *w)
{
    return utimensat(AT_FDCWD, in(w->home, "secret"), NULL, 0) == 0;
}

static bool changes_attributes(const struct world *w)
{
    return setxattr(in(w->home, "secret"), "user.cutegen", "x", 1, 0) == 0;
}

static bool cuts_off(const struct world *w)
{
    return truncate(in(w->home, "profile"), 0) == 0;
}

static bool removes(const struct world *w)
{
    char path[256];
    bool ok;

    snprintf(path, sizeof path, "%s/gone", w->home);
    ok = unlink(path) == 0;
    if (ok)
        close_if(open(path, O_CREAT | O_WRONLY, 0600));
    return ok;
}

static bool makes_folder(const struct world *w)
{
    const char *path = in(w->home, "folder");
    bool ok = mkdir(path, 0700) == 0;

    rmdir(path);
    return ok;
}

static bool makes_fifo(const struct world *w)
{
    const char *path = in(w->home, "fifo");
    bool ok = mkfifo(path, 0600) == 0;

    unlink(path);
    return ok;
}

/* What it writes it does not run. */
static bool runs_what_it_wrote(const struct world *w)
{
    static const char script[] = "#!/bin/sh\nexit 0\n";
    const char *path = in(w->work, "program");
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0700), status = 1;
    pid_t pid;

    if (fd < 0 || write(fd, script, sizeof script - 1) < 0)
        return false;
    close(fd);
    pid = fork();
    if (pid == 0) {
        execl(path, path, (char *)NULL);
        _exit(9);
    }
    if (pid > 0)
        waitpid(pid, &status, 0);
    unlink(path);
    return pid > 0 && status == 0;
}

static const struct attempt rows[] = {
    ROW("write another process's out-of-memory score", oom_score),
    ROW("name another process's thread", thread_name),
    ROW("read a file in the home folder", home_read),
    ROW("list the home folder", home_list),
    ROW("append to the shell's profile", profile_append),
    ROW("leave a usercustomize.py", home_creates),
    MAYBE("make an unnamed file in the home folder", home_unnamed),
    ROW("read a cached kernel", cache_read),
    ROW("write a cached kernel", cache_write),
    ROW("swap a cached kernel", cache_swap),
    ROW("read the store", store_read),
    ROW("write the store", store_write),
    ROW("read another candidate's folder", other_candidate),
    ROW("write another candidate's folder", other_candidate_write),
    MAYBE("read another process's shared memory", shared_memory),
    ROW("read /etc/passwd", users),
    ROOT("read /etc/shadow", passwords),
    ROOT("write /etc/passwd", etc_write),
    ROW("list /etc", etc_list),
    ROOT("write in /usr", usr_write),
    ROOT("write in /", root_write),
    MAYBE("write /proc/sys/kernel/core_pattern", core_pattern),
    MAYBE("write /proc/sysrq-trigger", magic_key),
    MAYBE("read /proc/kcore", kernel_memory),
    ROW("list /sys/kernel", sys_kernel),
    MAYBE("list /sys/class/net", sys_network),
    MAYBE("list /sys/fs/cgroup", cgroups),
    MAYBE("open /dev/kmsg", dev_list),
    MAYBE("open /dev/mem", dev_memory),
    MAYBE("open a disk", dev_disk),
    MAYBE("open a terminal", dev_terminal),
    MAYBE("open /dev/fuse", dev_fuse),
    MAYBE("open /dev/net/tun", dev_tunnel),
    MAYBE("open /dev/kvm", dev_kvm),
    MAYBE("make a device node", makes_device),
    ROW("link a file into the own folder", links_in),
    ROW("reach a file through a symbolic link", symlinks_in),
    ROW("move a file into the own folder", moves_in),
    ROW("reach a file through /proc/self/root", by_own_root),
    ROW("reach a file through ..", by_dots),
    ROW("reach a file through openat2", by_openat2),
    ROW("chmod", changes_mode),
    ROW("chown", changes_owner),
    ROW("set a file's times", changes_times),
    MAYBE("set a file's attributes", changes_attributes),
    ROW("truncate", cuts_off),
    ROW("remove a file", removes),
    ROW("make a folder", makes_folder),
    ROW("make a FIFO", makes_fifo),
    ROW("run a program it wrote", runs_what_it_wrote),
};
const struct attempt_list attempts_files = {rows, sizeof rows / sizeof rows[0]};
