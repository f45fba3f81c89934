/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root.c - a root of its own: a small file system that holds the policy's paths and nothing else.
 *
 * A tmpfs becomes the root, the old root is put inside it for as long as paths are bound from it,
 * then it is detached. Links on the way to a path are recreated, so that every path keeps its
 * meaning. Of /proc only what the policy names is visible, read-only: our own folder and a few
 * files.
 */
#include "confine/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
enum { ATTR_RDONLY = 1, ATTR_NOSUID = 2, ATTR_NODEV = 4, ATTR_NOEXEC = 8, MAX_LINKS = 40 };
#define OLD           "/.old"
#define LITTLE_BYTES  (UINT64_C(16) << 20)
#define AT_RECURSIVE_ 0x8000

struct mount_attributes {
    uint64_t set, clear, propagation, userns;
};

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return ok;
}

bool confine_map_ids(unsigned uid, unsigned gid)
{
    char users[64], groups[64];

    snprintf(users, sizeof users, "%u %u 1", uid, uid);
    snprintf(groups, sizeof groups, "%u %u 1", gid, gid);
    return write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/uid_map", users) &&
           write_text("/proc/self/gid_map", groups);
}

/* Makes the folders above `path`; what exists is fine. */
static void make_parents(const char *path)
{
    char part[PATH_MAX];

    for (const char *s = strchr(path + 1, '/'); s; s = strchr(s + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(s - path), path);
        mkdir(part, 0755);
    }
}

/* Replaces the link at `path` (followed by `rest`) by its target. */
static bool follow(char *path, size_t at, const char *target)
{
    char rest[PATH_MAX], whole[3 * PATH_MAX];

    snprintf(rest, sizeof rest, "%s", path + at);
    if (target[0] == '/') {
        snprintf(whole, sizeof whole, "%s%s", target, rest);
    } else {
        path[at] = '\0';
        *strrchr(path, '/') = '\0';
        snprintf(whole, sizeof whole, "%s/%s%s", path, target, rest);
    }
    if (strlen(whole) >= PATH_MAX)
        return false;
    memcpy(path, whole, strlen(whole) + 1);
    return true;
}

/* Removes the first "." or "..", at `at`; the path before it has no links. */
static void take_dots(char *path, size_t at, size_t end)
{
    size_t from = at;

    if (end - at == 3) /* "/.." */
        while (from > 0 && path[--from] != '/')
            ;
    memmove(path + from, path + end, strlen(path + end) + 1);
    if (!*path)
        memcpy(path, "/", 2);
}

/* Recreates the links on the way to `path` and returns the path without links. */
static bool resolve(const char *path, char out[PATH_MAX])
{
    char old[PATH_MAX + 8], target[PATH_MAX];
    int links = 0;

    if (snprintf(out, PATH_MAX, "%s", path) >= PATH_MAX)
        return false;
    for (size_t at = 0; out[at];) {
        size_t end = at + 1 + strcspn(out + at + 1, "/");
        ssize_t n;
        char name[PATH_MAX];

        snprintf(name, sizeof name, "%.*s", (int)end, out);
        if (strcmp(name + at, "/..") == 0 || strcmp(name + at, "/.") == 0) {
            take_dots(out, at, end);
            at = 0;
            continue;
        }
        snprintf(old, sizeof old, OLD "%s", name);
        n = readlink(old, target, sizeof target - 1);
        if (n < 0) {
            at = end;
            continue;
        }
        target[n] = '\0';
        if (++links > MAX_LINKS)
            return false;
        make_parents(name);
        if (symlink(target, name) != 0 && errno != EEXIST)
            return errno == EROFS; /* below a bound folder: the link already exists */
        if (!follow(out, end, target))
            return false;
        at = 0;
    }
    return true;
}

static bool set_attributes(const char *path, uint64_t set)
{
    struct mount_attributes a = {.set = set};

    return syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE_, &a, sizeof a) == 0;
}

static uint64_t attributes_of(unsigned rights, bool folder)
{
    uint64_t set = ATTR_NOSUID;

    if (!(rights & (CONFINE_WRITE | CONFINE_DEVICE | CONFINE_MODIFY)))
        set |= ATTR_RDONLY;
    if (!(rights & CONFINE_DEVICE))
        set |= ATTR_NODEV;
    /* Files in writable folders cannot be executed, unless the policy allows it. */
    if (folder && (rights & (CONFINE_WRITE | CONFINE_MODIFY)) && !(rights & CONFINE_EXECUTE))
        set |= ATTR_NOEXEC;
    return set;
}

static bool bind_path(const struct confine_path *p)
{
    char real[PATH_MAX], from[PATH_MAX + 8];
    struct stat st;

    if (!resolve(p->path, real))
        return true; /* the path cannot be followed, such as a loop of links: left out */
    snprintf(from, sizeof from, OLD "%s", real);
    if (stat(from, &st) != 0 || strcmp(real, "/") == 0)
        return true;
    make_parents(real);
    if (S_ISDIR(st.st_mode)) {
        mkdir(real, 0755);
    } else {
        (void)!mknod(real, S_IFREG | 0644, 0); /* not by open, which waits for a FIFO's writer */
    }
    return mount(from, real, NULL, MS_BIND | MS_REC, NULL) == 0 &&
           set_attributes(real, attributes_of(p->rights, S_ISDIR(st.st_mode)));
}

/* Shorter paths first: a path below another is bound over it. */
static bool bind_all(const struct confine_policy *p)
{
    bool done[CONFINE_MAX_PATHS] = {false};

    for (size_t n = 0; n < p->paths; n++) {
        size_t best = p->paths;

        for (size_t i = 0; i < p->paths; i++)
            if (!done[i] &&
                (best == p->paths || strlen(p->path[i].path) < strlen(p->path[best].path)))
                best = i;
        done[best] = true;
        if (!bind_path(&p->path[best]))
            return false;
    }
    return true;
}

static bool mount_tmpfs(const char *path, uint64_t bytes, const char *mode)
{
    char options[96];

    snprintf(options, sizeof options, "mode=%s,size=%llu,nr_inodes=65536", mode,
             (unsigned long long)(bytes ? bytes : LITTLE_BYTES));
    mkdir(path, 0755);
    return mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) == 0;
}

static void fill_dev(const struct confine_policy *p)
{
    static const struct confine_path nodes[] = {{"/dev/null", CONFINE_DEVICE},
                                                {"/dev/zero", CONFINE_DEVICE},
                                                {"/dev/random", CONFINE_READ},
                                                {"/dev/urandom", CONFINE_READ}};

    mkdir("/dev", 0755);
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
        (void)bind_path(&nodes[i]);
    mount_tmpfs("/dev/shm", p->tmp_bytes, "1777");
}

static bool swap_root(void)
{
    static const char *const places[] = {"/tmp", "/mnt", "/run", "/var"};
    size_t i = 0;

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return false;
    while (i < ARRAY_LEN(places) && !mount_tmpfs(places[i], LITTLE_BYTES, "0755"))
        i++;
    if (i == ARRAY_LEN(places) || chdir(places[i]) != 0)
        return false;
    return mkdir(&OLD[1], 0700) == 0 && syscall(SYS_pivot_root, ".", &OLD[1]) == 0 &&
           chdir("/") == 0;
}

enum confine_root confine_root(const struct confine_policy *p)
{
    char here[PATH_MAX];
    bool ok;

    if (!getcwd(here, sizeof here))
        snprintf(here, sizeof here, "/");
    if (!swap_root())
        return CONFINE_ROOT_OLD;
    ok = mount_tmpfs("/tmp", p->tmp_bytes, "1777");
    fill_dev(p);
    ok = bind_all(p) && ok;
    ok = umount2(OLD, MNT_DETACH) == 0 && rmdir(OLD) == 0 && ok;
    ok = ok &&
         mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) == 0;
    if (chdir(here) != 0 && chdir("/") != 0)
        ok = false;
    return ok ? CONFINE_ROOT_OWN : CONFINE_ROOT_BROKEN;
}
