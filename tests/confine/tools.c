/* tools.c - small things that attempts share. */
#include "tools.h"

#include "attempts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static bool refused(void)
{
    return errno == EPERM || errno == EACCES || errno == ENOSYS;
}

/* The kernel looked at it: not a matter of permission any more. */
bool reached(long result)
{
    return result >= 0 || !refused();
}

bool close_if(int fd)
{
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

bool can_open(const char *path, int flags)
{
    return close_if(open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600));
}

const char *in(const char *dir, const char *name)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

const char *of_victim(const struct world *w, const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)w->victim, name);
    return path;
}

bool reads(const char *path)
{
    char byte;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool ok = fd >= 0 && read(fd, &byte, 1) >= 0;

    if (fd >= 0)
        close(fd);
    return ok;
}
