/* SPDX-License-Identifier: Apache-2.0 */
/* lock.c - one holder at a time, or several that share; see lock.h. */
#include "base/lock.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Short and the same for every waiter: one that polled less often the longer it waited would
 * starve. */
enum { POLL_US = 3000 };

struct lock {
    int fd;
};

/* In a sticky folder such as /tmp, O_CREAT on another user's existing file fails; plain open
 * works. */
static int open_shared(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0 && errno == ENOENT) {
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd >= 0)
            (void)fchmod(fd, 0666); /* whatever the umask */
    }
    return fd >= 0 ? fd : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

static bool take(const char *path, int how, int wait_ms, struct lock **out, struct error *err)
{
    int64_t start = clock_ms();
    int fd = open_shared(path);

    if (fd < 0)
        return error_set(err, ERROR_MACHINE, "cannot open the lock %s: %s", path, strerror(errno));
    while (flock(fd, how | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            error_set(err, ERROR_MACHINE, "cannot lock %s: %s", path, strerror(errno));
            close(fd);
            return false;
        }
        if (wait_ms >= 0 && clock_ms() - start >= wait_ms) {
            close(fd);
            return error_set(err, ERROR_MACHINE, "%s is held by another process", path);
        }
        usleep(POLL_US);
    }
    *out = xmalloc(sizeof(**out));
    (*out)->fd = fd;
    return true;
}

bool lock_take(const char *path, int wait_ms, struct lock **out, struct error *err)
{
    return take(path, LOCK_EX, wait_ms, out, err);
}

bool lock_enter(const char *path, bool alone, int wait_ms, struct lock **out, struct error *err)
{
    char *gate = xmalloc(strlen(path) + sizeof("-gate"));
    struct lock *passing = NULL;
    bool ok;

    snprintf(gate, strlen(path) + sizeof("-gate"), "%s-gate", path);
    ok = lock_take(gate, wait_ms, &passing, err) &&
         take(path, alone ? LOCK_EX : LOCK_SH, wait_ms, out, err);
    lock_drop(passing);
    xfree(gate);
    return ok;
}

void lock_drop(struct lock *l)
{
    if (!l)
        return;
    close(l->fd);
    xfree(l);
}
