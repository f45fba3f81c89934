/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.c - loaded into other programs by tests (LD_PRELOAD): a clock that is wrong, a disk that
 * is full.
 *
 *     FAULTS_CLOCK_S=3600        the time of day is so many seconds ahead; < 0: behind
 *     FAULTS_FULL=FILE           while FILE exists, what is written to regular files fails with
 * ENOSPC
 *
 * Only the time of day is moved. Clocks that count from some start are right everywhere.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))(size_t)dlsym(RTLD_NEXT, #name))

static long offset_s(void)
{
    const char *text = getenv("FAULTS_CLOCK_S");

    return text ? strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    int rc = NEXT(clock_gettime)(clock, out);

    if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        out->tv_sec += offset_s();
    return rc;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    int rc = NEXT(gettimeofday)(out, zone);

    if (rc == 0)
        out->tv_sec += offset_s();
    return rc;
}

time_t time(time_t *out)
{
    time_t now = NEXT(time)(NULL) + offset_s();

    if (out)
        *out = now;
    return now;
}

static int is_full(int fd)
{
    const char *flag = getenv("FAULTS_FULL");
    struct stat st;
    int before = errno, full;

    full = flag && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && access(flag, F_OK) == 0;
    errno = full ? ENOSPC : before;
    return full;
}

ssize_t write(int fd, const void *data, size_t len)
{
    return is_full(fd) ? -1 : NEXT(write)(fd, data, len);
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
    return is_full(fd) ? -1 : NEXT(pwrite)(fd, data, len, at);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off_t at)
{
    return is_full(fd) ? -1 : NEXT(pwrite64)(fd, data, len, at);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
    return is_full(fd) ? -1 : NEXT(pwritev)(fd, parts, count, at);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t at)
{
    return is_full(fd) ? -1 : NEXT(pwritev64)(fd, parts, count, at);
}

int posix_fallocate(int fd, off_t at, off_t len)
{
    return is_full(fd) ? ENOSPC : NEXT(posix_fallocate)(fd, at, len);
}
