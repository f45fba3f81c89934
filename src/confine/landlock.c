/* SPDX-License-Identifier: Apache-2.0 */
/*
 * landlock.c - restrict files, TCP ports and signals with Landlock, as far as this kernel supports
 * it.
 *
 * The uapi header of the machine we are built on may be older than the kernel we run on, so the
 * numbers are written here.
 */
#include "confine/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif

#define BIT(n) (UINT64_C(1) << (n))
enum { RULE_PATH_BENEATH = 1, CREATE_VERSION = 1 };

static const uint64_t fs_execute = BIT(0), fs_write_file = BIT(1), fs_read_file = BIT(2),
                      fs_read_dir = BIT(3), fs_truncate = BIT(14), fs_ioctl_dev = BIT(15);
/* create and remove all kinds of files except devices (6 character, 11 block), and move between
 * folders (13) */
static const uint64_t fs_change =
    BIT(4) | BIT(5) | BIT(7) | BIT(8) | BIT(9) | BIT(10) | BIT(12) | BIT(13);
static const uint64_t net_tcp = BIT(0) | BIT(1), scope_sockets = BIT(0), scope_signals = BIT(1);

struct ruleset {
    uint64_t fs, net, scoped;
};

struct __attribute__((packed)) beneath {
    uint64_t allowed;
    int32_t parent;
};

int confine_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);

    return abi > 0 ? (int)abi : 0;
}

/* All rights that this ABI knows, so that whatever no rule allows is denied. */
static uint64_t handled_files(int abi)
{
    uint64_t all = BIT(13) - 1;

    if (abi >= 2)
        all |= BIT(13);
    if (abi >= 3)
        all |= fs_truncate;
    if (abi >= 5)
        all |= fs_ioctl_dev;
    return all;
}

static uint64_t rights_of(unsigned rights, bool folder)
{
    uint64_t r = fs_read_file | fs_read_dir;

    if (rights & CONFINE_EXECUTE)
        r |= fs_execute;
    if (rights & CONFINE_WRITE)
        r |= fs_write_file | fs_truncate | fs_change;
    if (rights & CONFINE_MODIFY)
        r |= fs_write_file;
    if (rights & CONFINE_DEVICE)
        r |= fs_write_file | fs_ioctl_dev;
    return folder ? r
                  : r & (fs_execute | fs_write_file | fs_read_file | fs_truncate | fs_ioctl_dev);
}

static bool add_path(int rules, const struct confine_path *path, uint64_t handled)
{
    struct beneath rule = {.parent = open(path->path, O_PATH | O_CLOEXEC)};
    struct stat st;
    bool ok = true;

    if (rule.parent < 0)
        return true; /* not there: nothing to allow */
    if (fstat(rule.parent, &st) == 0) {
        rule.allowed = rights_of(path->rights, S_ISDIR(st.st_mode)) & handled;
        ok = syscall(SYS_landlock_add_rule, rules, RULE_PATH_BENEATH, &rule, 0) == 0;
    }
    close(rule.parent);
    return ok;
}

int confine_landlock(const struct confine_policy *p, struct error *err)
{
    int abi = confine_landlock_abi(), rules;
    struct ruleset set = {.fs = handled_files(abi),
                          .net = p->network ? 0 : net_tcp,
                          .scoped = scope_sockets | scope_signals};
    size_t size = abi >= 6 ? sizeof set : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
    bool ok = true;

    if (abi == 0)
        return 0;
    rules = (int)syscall(SYS_landlock_create_ruleset, &set, size, 0);
    if (rules < 0) {
        error_set(err, ERROR_MACHINE, "landlock: %s", strerror(errno));
        return 0;
    }
    for (size_t i = 0; i < p->paths && ok; i++)
        ok = add_path(rules, &p->path[i], set.fs);
    ok = ok && syscall(SYS_landlock_restrict_self, rules, 0) == 0;
    if (!ok)
        error_set(err, ERROR_MACHINE, "landlock: %s", strerror(errno));
    close(rules);
    return ok ? abi : 0;
}
