/* attempts_kernel.c - parts of the kernel that hostile code tries to reach. */
#include "attempts.h"
#include "tools.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

static const struct attempt rows[] = {
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
};
const struct attempt_list attempts_kernel = {rows, sizeof rows / sizeof rows[0]};
