/*
 * faulty.c - the failing VFS: each file is the real one behind our methods.
 *
 * SQLite gives szOsFile bytes per file: ours first, the real one's after it.
 * The counters are global because a VFS is; only tests link this.
 */
#include "faulty.h"

#include <sqlite3.h>
#include <stddef.h>

struct faulty_file {
    sqlite3_file base;
    _Alignas(8) char real[];
};

static int writes_left = -1, fail_code = SQLITE_FULL, hits;

static sqlite3_file *real_of(sqlite3_file *f)
{
    return (sqlite3_file *)((struct faulty_file *)f)->real;
}

static int fails(void)
{
    if (writes_left < 0)
        return 0;
    if (writes_left > 0) {
        writes_left--;
        return 0;
    }
    hits++;
    return 1;
}

static int f_close(sqlite3_file *f)
{
    return real_of(f)->pMethods->xClose(real_of(f));
}

static int f_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    return real_of(f)->pMethods->xRead(real_of(f), p, n, at);
}

static int f_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    if (fails()) {
        /* What a disk does at its last block: some of it got there. */
        real_of(f)->pMethods->xWrite(real_of(f), p, n / 2, at);
        return fail_code;
    }
    return real_of(f)->pMethods->xWrite(real_of(f), p, n, at);
}

static int f_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    return real_of(f)->pMethods->xTruncate(real_of(f), size);
}

static int f_sync(sqlite3_file *f, int flags)
{
    return real_of(f)->pMethods->xSync(real_of(f), flags);
}

static int f_size(sqlite3_file *f, sqlite3_int64 *size)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), size);
}

static int f_lock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int f_unlock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int f_check(sqlite3_file *f, int *out)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), out);
}

static int f_control(sqlite3_file *f, int op, void *arg)
{
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int f_sector(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int f_traits(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static int f_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
    return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, out);
}

static int f_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
    return real_of(f)->pMethods->xShmLock(real_of(f), at, n, flags);
}

static void f_shm_barrier(sqlite3_file *f)
{
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int f_shm_unmap(sqlite3_file *f, int remove)
{
    return real_of(f)->pMethods->xShmUnmap(real_of(f), remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = f_close,
    .xRead = f_read,
    .xWrite = f_write,
    .xTruncate = f_truncate,
    .xSync = f_sync,
    .xFileSize = f_size,
    .xLock = f_lock,
    .xUnlock = f_unlock,
    .xCheckReservedLock = f_check,
    .xFileControl = f_control,
    .xSectorSize = f_sector,
    .xDeviceCharacteristics = f_traits,
    .xShmMap = f_shm_map,
    .xShmLock = f_shm_lock,
    .xShmBarrier = f_shm_barrier,
    .xShmUnmap = f_shm_unmap,
};

static int v_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out)
{
    sqlite3_vfs *real = vfs->pAppData;
    int rc = real->xOpen(real, name, real_of(f), flags, out);

    f->pMethods = real_of(f)->pMethods ? &methods : NULL;
    return rc;
}

void faulty_install(void)
{
    static sqlite3_vfs vfs;
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);

    vfs = *real; /* all but opening a file is the real one's */
    vfs.pNext = NULL;
    vfs.zName = "faulty";
    vfs.szOsFile = (int)sizeof(struct faulty_file) + real->szOsFile;
    vfs.pAppData = real;
    vfs.xOpen = v_open;
    sqlite3_vfs_register(&vfs, 1);
}

void faulty_from(int n, int code)
{
    writes_left = n;
    fail_code = code;
    hits = 0;
}

int faulty_hits(void)
{
    return hits;
}
