/* lease.c - see lease.h. */
#include "eval/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

bool lease_take(const struct device *device, int *lease, struct error *err)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    struct arena *a;
    const char *path;
    int rc;

    *lease = -1;
    if (device->kind != DEVICE_CUDA)
        return true;
    a = arena_new();
    path = runtime && *runtime && access(runtime, W_OK) == 0
               ? arena_printf(a, "%s/cutegen-gpu%d.lease", runtime, device->index)
               : arena_printf(a, "/tmp/cutegen-%u-gpu%d.lease", (unsigned)getuid(), device->index);
    *lease = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    rc = *lease < 0 ? -1 : 0;
    while (rc == 0 && (rc = flock(*lease, LOCK_EX)) != 0 && errno == EINTR)
        rc = 0;
    if (rc != 0)
        error_set(err, ERROR_MACHINE, "cannot take the lease of the GPU, %s: %s", path,
                  strerror(errno));
    arena_free(a);
    return rc == 0;
}

void lease_give_back(int lease)
{
    if (lease < 0)
        return;
    flock(lease, LOCK_UN); /* closing is not enough: what was started meanwhile has a copy */
    close(lease);
}
