/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs.c - files and folders; writes are atomic.
 *
 * home_*() derive every path from /proc/self/exe or the environment, so that a moved tree still
 * finds its files.
 */
#include "base/fs.h"

#include "base/buf.h"
#include "base/vault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNKNOWN_MEMORY (UINT64_C(4) << 30) /* assumed where the machine does not say */

static bool fs_error(struct error *err, const char *what, const char *path)
{
    int code = errno;

    error_set(err, ERROR_MACHINE, "cannot %s %s: %s", what, path, strerror(code));
    if (code == ENOSPC || code == EDQUOT)
        error_hint(err, "free some space on that disk, then run the same command again");
    else if (code == EROFS || code == EACCES || code == EPERM)
        error_hint(err, "choose a folder you may write to (--runs DIR), or fix its permissions");
    return false;
}

/* Opening a FIFO would block until a writer comes; a device has no end. */
static bool want_regular(int fd, const char *path, struct error *err)
{
    struct stat st;
    const char *kind;

    if (fstat(fd, &st) != 0)
        return fs_error(err, "examine", path);
    if (S_ISREG(st.st_mode))
        return true;
    kind = S_ISDIR(st.st_mode)    ? "a folder"
           : S_ISFIFO(st.st_mode) ? "a FIFO"
           : S_ISSOCK(st.st_mode) ? "a socket"
                                  : "a device";
    error_set(err, ERROR_USE, "%s is not a regular file but %s", path, kind);
    return error_hint(err, "name a regular file; save a pipe's output to one first");
}

/* Reads to the end; closes fd. */
static bool read_all(int fd, const char *path, size_t limit, struct arena *a, struct text *out,
                     struct error *err)
{
    struct buf b = buf_init(limit);
    char chunk[65536];
    ssize_t n;
    bool ok = false;

    while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            fs_error(err, "read", path);
            goto done;
        }
        buf_add(&b, chunk, (size_t)n);
        if (b.overflowed) {
            error_set(err, ERROR_USE, "%s is larger than %zu bytes", path, limit);
            goto done;
        }
    }
    *out = buf_copy(&b, a);
    ok = true;
done:
    close(fd);
    buf_release(&b);
    return ok;
}

bool file_read(const char *path, size_t limit, struct arena *a, struct text *out, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return fs_error(err, "open", path);
    if (!want_regular(fd, path, err)) {
        close(fd);
        return false;
    }
    return read_all(fd, path, limit, a, out, err);
}

bool stdin_read(size_t limit, struct arena *a, struct text *out, struct error *err)
{
    int fd = dup(STDIN_FILENO);

    return fd >= 0 ? read_all(fd, "stdin", limit, a, out, err) : fs_error(err, "read", "stdin");
}

static bool write_all(int fd, struct text data)
{
    while (data.len) {
        ssize_t n = write(fd, data.data, data.len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        data.data += n;
        data.len -= (size_t)n;
    }
    return true;
}

bool file_write(const char *path, struct text data, struct error *err)
{
    struct arena *a = arena_new();
    char *temp = arena_printf(a, "%s.%d.tmp", path, (int)getpid());
    bool ok = false;
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0) {
        fs_error(err, "create", temp);
        goto done;
    }
    ok = write_all(fd, vault_scrub(data, a)) && fsync(fd) == 0;
    if (!ok)
        fs_error(err, "write", temp);
    if (close(fd) != 0 && ok)
        ok = fs_error(err, "write", temp);
    if (ok && rename(temp, path) != 0)
        ok = fs_error(err, "rename to", path);
    if (!ok)
        unlink(temp);
done:
    arena_free(a);
    return ok;
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool dir_make(const char *path, struct error *err)
{
    char partial[PATH_MAX];
    size_t len = strlen(path);

    if (len == 0 || len >= sizeof(partial))
        return error_set(err, ERROR_USE, "folder name '%s' is empty or too long", path);
    memcpy(partial, path, len + 1);
    for (size_t i = 1; i <= len; i++) {
        if (partial[i] != '/' && partial[i] != '\0')
            continue;
        partial[i] = '\0';
        if (mkdir(partial, 0777) != 0 && errno != EEXIST)
            return fs_error(err, "make folder", partial);
        partial[i] = i < len ? '/' : '\0';
    }
    struct stat st;
    if (stat(path, &st) != 0)
        return fs_error(err, "make folder", path);
    if (!S_ISDIR(st.st_mode))
        return error_set(err, ERROR_USE, "%s exists and is not a folder", path);
    return true;
}

static bool dir_remove_at(int parent, const char *name, const char *path, struct error *err)
{
    struct dirent *entry;
    bool ok = true;
    DIR *dir;
    int fd;

    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return true;
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || !(dir = fdopendir(fd))) {
        fs_error(err, "remove", path);
        if (fd >= 0)
            close(fd);
        return false;
    }
    while (ok && (entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            ok = dir_remove_at(dirfd(dir), entry->d_name, path, err);
    closedir(dir);
    if (ok && unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        ok = fs_error(err, "remove", path);
    return ok;
}

bool dir_remove(const char *path, struct error *err)
{
    return dir_remove_at(AT_FDCWD, path, path, err);
}

char *path_join(struct arena *a, const char *dir, const char *name)
{
    size_t len = strlen(dir);

    return arena_printf(a, "%s%s%s", dir, len && dir[len - 1] == '/' ? "" : "/", name);
}

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

char *path_stem(struct arena *a, const char *path)
{
    const char *base = path_base(path), *dot = strrchr(base, '.');

    return dot && dot != base ? arena_strndup(a, base, (size_t)(dot - base))
                              : arena_strdup(a, base);
}

char *path_absolute(struct arena *a, const char *path)
{
    char *real = realpath(path, NULL), *copy;

    if (real) {
        copy = arena_strdup(a, real);
        free(real); /* libc's own allocation */
        return copy;
    }
    return path_from_here(a, path);
}

char *path_from_here(struct arena *a, const char *path)
{
    char cwd[PATH_MAX];

    if (path[0] == '/' || !getcwd(cwd, sizeof(cwd)))
        return arena_strdup(a, path);
    return path_join(a, cwd, path);
}

bool dir_temp(const char *prefix, struct arena *a, char **out, struct error *err)
{
    const char *env = getenv("TMPDIR");
    const char *roots[] = {env, "/dev/shm", "/tmp"};

    for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
        char *path;

        if (!roots[i] || !*roots[i])
            continue;
        path = arena_printf(a, "%s/%s-XXXXXX", roots[i], prefix);
        if (mkdtemp(path)) {
            *out = path;
            return true;
        }
    }
    return fs_error(err, "make a temporary folder in", "$TMPDIR, /dev/shm or /tmp");
}

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

char *path_find_program(struct arena *a, const char *name)
{
    const char *path = getenv("PATH");

    if (strchr(name, '/'))
        return is_program(name) ? arena_strdup(a, name) : NULL;
    if (!path || !*path)
        path = "/usr/local/bin:/usr/bin:/bin";
    for (;;) {
        size_t len = strcspn(path, ":");
        char *full = arena_printf(a, "%.*s/%s", (int)len, path, name);

        if (len && is_program(full))
            return full;
        if (!path[len])
            return NULL;
        path += len + 1;
    }
}

/* Folder of the running executable; symbolic links resolved. */
static bool home_exe_dir(struct arena *a, char **out, struct error *err)
{
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    char *slash;

    if (len < 0)
        return fs_error(err, "read", "/proc/self/exe");
    path[len] = '\0';
    slash = strrchr(path, '/');
    *slash = '\0';
    *out = arena_strdup(a, path);
    return true;
}

/* The executable's folder and those above it, joined with each of `below`. */
static bool home_search(const char *const *below, size_t count, const char *relative,
                        struct arena *a, char **out, struct error *err)
{
    char *dir;

    if (!home_exe_dir(a, &dir, err))
        return false;
    for (;;) {
        char *slash = strrchr(dir, '/');

        for (size_t i = 0; i < count; i++) {
            char *full = arena_printf(a, "%s/%s%s", dir, below[i], relative);

            if (file_exists(full)) {
                *out = full;
                return true;
            }
        }
        if (!slash || slash == dir)
            return false;
        *slash = '\0';
    }
}

bool home_program(const char *name, struct arena *a, char **out, struct error *err)
{
    static const char *const below[] = {"",
                                        "src/",
                                        "libexec/cutegen/",
                                        "src/toolchain/",
                                        "src/runner/",
                                        "src/simt/",
                                        "src/server/",
                                        "src/eval/",
                                        "src/caller/",
                                        "src/loader/",
                                        "src/confine/"};

    if (home_search(below, ARRAY_LEN(below), name, a, out, err))
        return true;
    error_set(err, ERROR_MACHINE, "cannot find %s beside this program", name);
    return error_hint(err,
                      "the installation is not whole: build it again (make) or unpack it again");
}

bool home_data(const char *relative, struct arena *a, char **out, struct error *err)
{
    static const char *const below[] = {"share/cutegen/", ""};
    const char *home = getenv("CUTEGEN_HOME");

    if (home && *home) {
        /* the server has another working folder */
        *out = path_join(a, path_from_here(a, home), relative);
        if (file_exists(*out))
            return true;
        error_set(err, ERROR_MACHINE, "CUTEGEN_HOME=%s holds no %s", home, relative);
        return error_hint(err,
                          "unset CUTEGEN_HOME, or point it at share/cutegen of an installation");
    }
    if (home_search(below, ARRAY_LEN(below), relative, a, out, err))
        return true;
    error_set(err, ERROR_MACHINE, "cannot find the product's own %s", relative);
    return error_hint(err,
                      "the installation is not whole: build it again (make) or unpack it again");
}

/* $override, else $xdg/cutegen, else $HOME/fallback/cutegen. */
static char *home_user(const char *override, const char *xdg, const char *fallback, struct arena *a)
{
    const char *o = getenv(override), *x = getenv(xdg), *home = getenv("HOME");

    if (o && *o)
        return arena_strdup(a, o);
    if (x && *x == '/')
        return path_join(a, x, "cutegen");
    return arena_printf(a, "%s/%s/cutegen", home && *home ? home : "/tmp", fallback);
}

/* Private to its owner (0700): it holds results of private tasks. */
bool home_cache(const char *relative, struct arena *a, char **out, struct error *err)
{
    char *root = home_user("CUTEGEN_CACHE", "XDG_CACHE_HOME", ".cache", a);
    struct stat st;

    if (!dir_make(root, err))
        return false;
    if (stat(root, &st) == 0 && (st.st_mode & 077) && st.st_uid == geteuid())
        (void)!chmod(root, 0700);
    *out = *relative ? path_join(a, root, relative) : root;
    return dir_make(*out, err);
}

bool home_tools(const char *relative, struct arena *a, char **out, struct error *err)
{
    (void)err;
    *out = path_join(a, home_user("CUTEGEN_TOOLS", "XDG_DATA_HOME", ".local/share", a), relative);
    return true;
}

/* Must be ours and 0700: a process that can write there can pose as the server. */
bool home_runtime(struct arena *a, char **out, struct error *err)
{
    const char *own = getenv("CUTEGEN_RUNTIME"), *xdg = getenv("XDG_RUNTIME_DIR");
    struct stat st;

    if (own && *own)
        *out = arena_strdup(a, own);
    else if (xdg && *xdg == '/' && access(xdg, W_OK) == 0)
        *out = path_join(a, xdg, "cutegen");
    else
        *out = arena_printf(a, "/tmp/cutegen-%u", (unsigned)geteuid());
    if (mkdir(*out, 0700) != 0 && errno != EEXIST)
        return fs_error(err, "make", *out);
    if (lstat(*out, &st) != 0)
        return fs_error(err, "examine", *out);
    if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0)
        return true;
    error_set(err, ERROR_MACHINE, "%s is not a private folder of this user", *out);
    return error_hint(err, "remove it, or name another: CUTEGEN_RUNTIME=DIR");
}

uint64_t machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UNKNOWN_MEMORY;
    uint64_t limit;
    struct arena *a = arena_new();
    struct error ignored = {0};
    struct text t;

    if (file_read("/sys/fs/cgroup/memory.max", 64, a, &t, &ignored)) {
        limit = strtoull(t.data, NULL, 10); /* "max": 0 */
        if (limit > 0 && limit < bytes)
            bytes = limit;
    }
    arena_free(a);
    return bytes;
}
