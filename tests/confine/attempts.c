/*
 * attempts.c - hostile native code, one function per thing it tries.
 *
 * None changes the machine when it works: what is written is written back, what is signalled
 * expects it. A call that could do harm gets arguments the kernel refuses later: it "worked" when
 * the refusal is not one of permission.
 */
#include "attempts.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { VICTIMS_FD = 40 };

static bool refused(void)
{
    return errno == EPERM || errno == EACCES || errno == ENOSYS;
}

/* The kernel looked at it: not a matter of permission any more. */
static bool reached(long result)
{
    return result >= 0 || !refused();
}

static bool close_if(int fd)
{
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool can_open(const char *path, int flags)
{
    return close_if(open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600));
}

static const char *in(const char *dir, const char *name)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static const char *of_victim(const struct world *w, const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)w->victim, name);
    return path;
}

static bool reads(const char *path)
{
    char byte;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool ok = fd >= 0 && read(fd, &byte, 1) >= 0;

    if (fd >= 0)
        close(fd);
    return ok;
}

/* ---- other processes ---------------------------------------------------------- */

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

/* ---- sockets and other ways to talk --------------------------------------------- */

static bool try_connect(int fd, const void *address, size_t len)
{
    bool ok = fd >= 0 && connect(fd, address, (socklen_t)len) == 0;

    close_if(fd);
    return ok;
}

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static bool tcp(const struct world *w)
{
    struct sockaddr_in to = loopback(w->tcp_port);

    return try_connect(socket(AF_INET, SOCK_STREAM, 0), &to, sizeof to);
}

static bool tcp_serves(const struct world *w)
{
    struct sockaddr_in at = loopback(0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool ok = fd >= 0 && bind(fd, (void *)&at, sizeof at) == 0 && listen(fd, 1) == 0;

    (void)w;
    close_if(fd);
    return ok;
}

static bool udp(const struct world *w)
{
    struct sockaddr_in to = loopback(w->udp_port);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    bool ok = fd >= 0 && sendto(fd, "x", 1, 0, (void *)&to, sizeof to) == 1;

    close_if(fd);
    return ok;
}

static bool inet6(const struct world *w)
{
    (void)w;
    return close_if(socket(AF_INET6, SOCK_DGRAM, 0));
}

static struct sockaddr_un unix_at(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    return a;
}

static bool server_socket(const struct world *w)
{
    struct sockaddr_un to = unix_at(w->socket_path);

    return try_connect(socket(AF_UNIX, SOCK_STREAM, 0), &to, sizeof to);
}

static bool abstract_socket(const struct world *w)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    memcpy(to.sun_path + 1, w->abstract, strlen(w->abstract));
    return try_connect(socket(AF_UNIX, SOCK_STREAM, 0), &to,
                       offsetof(struct sockaddr_un, sun_path) + 1 + strlen(w->abstract));
}

/* A pair needs no address; a datagram one may be given one later. */
static bool datagram_pair(const struct world *w)
{
    struct sockaddr_un to = unix_at(w->dgram_path);
    int s[2] = {-1, -1};
    bool ok = socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0 &&
              sendto(s[0], "x", 1, MSG_DONTWAIT, (void *)&to, sizeof to) == 1;

    close_if(s[0]);
    close_if(s[1]);
    return ok;
}

static bool stream_pair_sends(const struct world *w)
{
    struct sockaddr_un to = unix_at(w->socket_path);
    struct iovec data = {(void *)(uintptr_t) "x", 1};
    struct msghdr m = {
        .msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &data, .msg_iovlen = 1};
    int s[2] = {-1, -1};
    bool ok = socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0 && sendmsg(s[0], &m, MSG_NOSIGNAL) == 1;

    close_if(s[0]);
    close_if(s[1]);
    return ok;
}

static bool packet_pair(const struct world *w)
{
    int s[2] = {-1, -1};
    bool ok = socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s) == 0;

    (void)w;
    close_if(s[0]);
    close_if(s[1]);
    return ok;
}

static bool netlink(const struct world *w)
{
    (void)w;
    return close_if(socket(AF_NETLINK, SOCK_RAW, 0));
}

static bool raw_packets(const struct world *w)
{
    (void)w;
    return close_if(socket(AF_PACKET, SOCK_RAW, 0));
}

static bool raw_ip(const struct world *w)
{
    (void)w;
    return close_if(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
}

static bool kernel_crypto(const struct world *w)
{
    (void)w;
    return close_if(socket(AF_ALG, SOCK_SEQPACKET, 0));
}

static bool machine_socket(const struct world *w)
{
    (void)w;
    return close_if(socket(AF_VSOCK, SOCK_STREAM, 0));
}

static bool uring(const struct world *w)
{
    char parameters[256] = {0};

    (void)w;
    return close_if((int)syscall(SYS_io_uring_setup, 2, parameters));
}

static bool sysv_memory(const struct world *w)
{
    int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);

    (void)w;
    if (id >= 0)
        shmctl(id, IPC_RMID, NULL);
    return id >= 0;
}

static bool sysv_queue(const struct world *w)
{
    int id = (int)syscall(SYS_msgget, IPC_PRIVATE, 01000 | 0600);

    (void)w;
    if (id >= 0)
        syscall(SYS_msgctl, id, IPC_RMID, NULL);
    return id >= 0;
}

static bool sysv_semaphore(const struct world *w)
{
    int id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);

    (void)w;
    if (id >= 0)
        semctl(id, 0, IPC_RMID);
    return id >= 0;
}

static bool posix_queue(const struct world *w)
{
    mqd_t q = mq_open("/cutegen-confine-test", O_CREAT | O_RDWR, 0600, NULL);

    (void)w;
    if (q == (mqd_t)-1)
        return false;
    mq_close(q);
    mq_unlink("/cutegen-confine-test");
    return true;
}

/* ---- the kernel ------------------------------------------------------------------ */

static bool keyring(const struct world *w)
{
    (void)w;
    return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0, 0, 0) >= 0;
}

static bool new_key(const struct world *w)
{
    (void)w;
    return syscall(SYS_add_key, "user", "cutegen-test", "x", 1, KEY_SPEC_PROCESS_KEYRING) >= 0;
}

static bool ask_key(const struct world *w)
{
    (void)w;
    return reached(syscall(SYS_request_key, "user", "cutegen-none", NULL, 0));
}

static bool load_bpf(const struct world *w)
{
    (void)w;
    return reached(syscall(SYS_bpf, 0, NULL, 0));
}

static bool fault_handler(const struct world *w)
{
    (void)w;
    return close_if((int)syscall(SYS_userfaultfd, O_CLOEXEC | 1));
}

static bool performance(const struct world *w)
{
    struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE,
                                .size = sizeof a,
                                .config = PERF_COUNT_SW_CPU_CLOCK,
                                .exclude_kernel = 1};

    (void)w;
    return close_if((int)syscall(SYS_perf_event_open, &a, 0, -1, -1, 0));
}

static bool unshare_user(const struct world *w)
{
    (void)w;
    return unshare(CLONE_NEWUSER) == 0;
}

static bool unshare_mount(const struct world *w)
{
    (void)w;
    return unshare(CLONE_NEWNS) == 0;
}

static bool unshare_net(const struct world *w)
{
    (void)w;
    return unshare(CLONE_NEWNET) == 0;
}

static bool clone_user(const struct world *w)
{
    long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);

    (void)w;
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        waitpid((pid_t)pid, NULL, 0);
    return pid > 0;
}

static bool clone_new_way(const struct world *w)
{
    uint64_t args[11] = {[0] = CLONE_NEWUSER, [4] = SIGCHLD};
    long pid = syscall(SYS_clone3, args, sizeof args);

    (void)w;
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        waitpid((pid_t)pid, NULL, 0);
    return pid > 0;
}

static bool join_namespace(const struct world *w)
{
    int fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
    bool ok = reached(setns(fd, 0));

    (void)w;
    close_if(fd);
    return ok;
}

static bool mounts(const struct world *w)
{
    bool ok = mount("none", w->work, "tmpfs", 0, NULL) == 0;

    if (ok)
        umount2(w->work, MNT_DETACH);
    return ok;
}

static bool remounts(const struct world *w)
{
    (void)w;
    return reached(mount(NULL, "/nowhere", NULL, MS_REMOUNT | MS_BIND, NULL));
}

static bool unmounts(const struct world *w)
{
    (void)w;
    return reached(umount2("/nowhere", 0));
}

static bool pivots(const struct world *w)
{
    (void)w;
    return reached(syscall(SYS_pivot_root, "/nowhere", "/nowhere"));
}

static bool changes_root(const struct world *w)
{
    return chroot(w->work) == 0;
}

static bool mount_tree(const struct world *w)
{
    return close_if((int)syscall(428, AT_FDCWD, w->work, 1));
}

static bool mount_new_way(const struct world *w)
{
    (void)w;
    return close_if((int)syscall(430, "tmpfs", 0));
}

static bool mount_moves(const struct world *w)
{
    (void)w;
    return reached(syscall(429, -1, "", -1, "", 0));
}

static bool mount_attributes(const struct world *w)
{
    (void)w;
    return reached(syscall(442, -1, "/nowhere", 0, NULL, 0));
}

static bool swaps(const struct world *w)
{
    (void)w;
    return reached(syscall(SYS_swapoff, "/nowhere"));
}

static bool reboots(const struct world *w)
{
    (void)w;
    return reached(syscall(SYS_reboot, 1, 2, 3, NULL)); /* wrong magic numbers */
}

static bool module_loads(const struct world *w)
{
    (void)w;
    return reached(syscall(SYS_init_module, NULL, 0, ""));
}

static bool module_file(const struct world *w)
{
    (void)w;
    return reached(syscall(SYS_finit_module, -1, "", 0));
}

static bool new_kernel(const struct world *w)
{
    (void)w;
    return reached(syscall(SYS_kexec_load, 0, 1000UL, NULL, 0xffffUL));
}

static bool accounting(const struct world *w)
{
    (void)w;
    return reached(syscall(SYS_acct, "/nowhere"));
}

static bool kernel_log(const struct world *w)
{
    (void)w;
    return syscall(SYS_syslog, 10, NULL, 0) >= 0;
}

static bool sets_clock(const struct world *w)
{
    (void)w;
    return reached(clock_settime(CLOCK_REALTIME, &(struct timespec){-1, 0}));
}

static bool adjusts_clock(const struct world *w)
{
    struct timex t = {.modes = 0};

    (void)w;
    return adjtimex(&t) >= 0;
}

static bool renames_machine(const struct world *w)
{
    char name[65] = "";

    (void)w;
    return gethostname(name, sizeof name) == 0 && sethostname(name, strlen(name)) == 0;
}

static bool file_handles(const struct world *w)
{
    struct file_handle h = {.handle_bytes = 0};
    int mount_id;

    return reached(syscall(SYS_name_to_handle_at, AT_FDCWD, w->work, &h, &mount_id, 0));
}

static bool opens_handle(const struct world *w)
{
    (void)w;
    return reached(syscall(SYS_open_by_handle_at, -1, NULL, 0));
}

static bool watches_all_files(const struct world *w)
{
    (void)w;
    return close_if((int)syscall(SYS_fanotify_init, 0x200, O_RDONLY)); /* FAN_REPORT_FID */
}

static bool other_personality(const struct world *w)
{
    long now = syscall(SYS_personality, 0xffffffffUL);
    bool ok = syscall(SYS_personality, 0x0040000UL | (unsigned long)(now & 0xff)) >= 0;

    (void)w;
    if (ok)
        syscall(SYS_personality, now);
    return ok;
}

#ifdef __x86_64__
static bool ports(const struct world *w)
{
    (void)w;
    return reached(syscall(SYS_ioperm, 0x80UL, 0UL, 0));
}

static bool local_descriptors(const struct world *w)
{
    char table[16];

    (void)w;
    return syscall(SYS_modify_ldt, 0, table, sizeof table) >= 0;
}

static bool other_numbers(const struct world *w)
{
    (void)w;
    return syscall(0x40000000L | SYS_getpid) > 0; /* x32 */
}
#endif

static bool quotas(const struct world *w)
{
    (void)w;
    return reached(syscall(SYS_quotactl, 0x800001u << 8, NULL, 0, NULL));
}

static bool has_capabilities(const struct world *w)
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2] = {{0, 0, 0}, {0, 0, 0}};

    (void)w;
    return syscall(SYS_capget, &h, d) == 0 &&
           (d[0].effective || d[1].effective || d[0].permitted || d[1].permitted);
}

static bool may_gain_capabilities(const struct world *w)
{
    bool any = false;

    (void)w;
    for (int c = 0; c < 41; c++)
        any = any || prctl(PR_CAPBSET_READ, c, 0, 0, 0) == 1;
    return any && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0;
}

static bool other_user(const struct world *w)
{
    (void)w;
    return setresuid((uid_t)-1, 12345, (uid_t)-1) == 0;
}

static bool other_groups(const struct world *w)
{
    gid_t g = 12345;

    (void)w;
    return syscall(SYS_setgroups, 1, &g) == 0;
}

/* ---- files ----------------------------------------------------------------------- */

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

/* ---- processes ------------------------------------------------------------------- */

static bool forks(const struct world *w)
{
    pid_t pid = fork();

    (void)w;
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return pid > 0;
}

static bool becomes_a_daemon(const struct world *w)
{
    pid_t pid = fork();

    (void)w;
    if (pid == 0) {
        setsid();
        _exit(fork() < 0);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return pid > 0;
}

static bool starts_programs(const struct world *w)
{
    int status = 1;
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, NULL);

    (void)w;
    if (pid == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(9);
    }
    if (pid > 0)
        waitpid(pid, &status, 0);
    return pid > 0 && status == 0;
}

/* Ends with "not a program" where exec is allowed. */
static bool becomes_another(const struct world *w)
{
    char *const argv[] = {NULL};

    (void)w;
    return reached(execve("/usr/nowhere", argv, argv));
}

#define ROW(name, run)                                                                             \
    {                                                                                              \
        name, run, WORKS_ALWAYS, false                                                             \
    }
#define ROOT(name, run)                                                                            \
    {                                                                                              \
        name, run, WORKS_AS_ROOT, false                                                            \
    }
#define MAYBE(name, run)                                                                           \
    {                                                                                              \
        name, run, WORKS_SOMEWHERE, false                                                          \
    }
#define FORK(name, run)                                                                            \
    {                                                                                              \
        name, run, WORKS_ALWAYS, true                                                              \
    }

const struct attempt attempts[] = {
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
    ROW("write another process's out-of-memory score", oom_score),
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
    ROW("TCP: connect", tcp),
    ROW("TCP: listen", tcp_serves),
    ROW("UDP: send", udp),
    MAYBE("IPv6", inet6),
    ROW("connect to the warm server's socket", server_socket),
    ROW("connect to an abstract socket", abstract_socket),
    ROW("send a datagram from a socket pair", datagram_pair),
    MAYBE("send to an address from a stream pair", stream_pair_sends),
    ROW("a pair of packet sockets", packet_pair),
    ROW("netlink", netlink),
    ROOT("raw packets", raw_packets),
    ROOT("raw IP", raw_ip),
    MAYBE("kernel crypto sockets", kernel_crypto),
    MAYBE("sockets to the hypervisor", machine_socket),
    MAYBE("io_uring", uring),
    MAYBE("System V shared memory", sysv_memory),
    MAYBE("System V message queue", sysv_queue),
    MAYBE("System V semaphore", sysv_semaphore),
    MAYBE("POSIX message queue", posix_queue),
    MAYBE("keyctl", keyring),
    MAYBE("add_key", new_key),
    MAYBE("request_key", ask_key),
    MAYBE("bpf", load_bpf),
    MAYBE("userfaultfd", fault_handler),
    MAYBE("perf_event_open", performance),
    MAYBE("new user namespace", unshare_user),
    ROOT("new mount namespace", unshare_mount),
    ROOT("new network namespace", unshare_net),
    MAYBE("clone into a user namespace", clone_user),
    MAYBE("clone3 into a user namespace", clone_new_way),
    MAYBE("setns", join_namespace),
    ROOT("mount", mounts),
    ROOT("remount", remounts),
    ROOT("umount", unmounts),
    ROOT("pivot_root", pivots),
    ROOT("chroot", changes_root),
    ROOT("open_tree", mount_tree),
    ROOT("fsopen", mount_new_way),
    ROOT("move_mount", mount_moves),
    MAYBE("mount_setattr", mount_attributes),
    ROOT("swapoff", swaps),
    MAYBE("reboot", reboots),
    MAYBE("init_module", module_loads),
    MAYBE("finit_module", module_file),
    MAYBE("kexec_load", new_kernel),
    MAYBE("acct", accounting),
    MAYBE("read the kernel's log", kernel_log),
    ROW("set the clock", sets_clock),
    ROW("read or adjust the clock's rate", adjusts_clock),
    ROOT("sethostname", renames_machine),
    ROW("name_to_handle_at", file_handles),
    MAYBE("open_by_handle_at", opens_handle),
    MAYBE("watch all files", watches_all_files),
    ROW("change the personality", other_personality),
#ifdef __x86_64__
    MAYBE("I/O ports", ports),
    MAYBE("modify_ldt", local_descriptors),
    MAYBE("x32 system calls", other_numbers),
#endif
    MAYBE("quotactl", quotas),
    ROOT("have capabilities", has_capabilities),
    ROW("gain capabilities at exec", may_gain_capabilities),
    ROOT("become another user", other_user),
    ROOT("join other groups", other_groups),
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
    FORK("fork", forks),
    FORK("become a daemon", becomes_a_daemon),
    FORK("start a program", starts_programs),
    FORK("become another program", becomes_another),
};
const size_t attempt_count = sizeof attempts / sizeof attempts[0];
