/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - open and close the store; texts by content.
 *
 * Hides how SQLite is set up: WAL, so that a reader never stops the writer;
 * synchronous FULL, because a reply that was paid for must outlive a power cut
 * and a commit comes once in seconds, not in microseconds; foreign keys; a
 * time to wait for another process.
 */
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/vault.h"
#include "store/sql.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { BUSY_MS = 15000, WAL_TRIES = 100 };

/* Whether SQLite could make -wal and -shm beside the file. */
static bool may_write(const struct store *s)
{
    return access(s->dir, W_OK) == 0 && (!file_exists(s->path) || access(s->path, W_OK) == 0);
}

static bool refuse_missing(const struct store *s, struct error *err)
{
    error_set(err, ERROR_USE, "no runs yet: there is no %s", s->path);
    return error_hint(err, "make one with `cutegen run TASK.py`, or name the folder: --runs DIR");
}

static bool refuse_read_only(const struct store *s, struct error *err)
{
    error_set(err, ERROR_MACHINE, "may not write the folder of runs %s: %s", s->dir,
              strerror(EACCES));
    return error_hint(err, "make it writable, or name another: --runs DIR");
}

/* A file in a folder that may not be written is read as it stands; only when nobody's WAL lies
 * beside it is "as it stands" the whole truth. */
static char *file_uri(const struct store *s, struct arena *a)
{
    char *wal = arena_printf(a, "%s-wal", s->path);
    char *escaped = arena_alloc(a, 3 * strlen(s->path) + 1);
    size_t n = 0;

    for (const char *p = s->path; *p; p++) {
        if (*p == '%' || *p == '?' || *p == '#') {
            static const char hex[] = "0123456789ABCDEF";
            escaped[n++] = '%';
            escaped[n++] = hex[((unsigned char)*p) >> 4];
            escaped[n++] = hex[*p & 15];
        } else {
            escaped[n++] = *p;
        }
    }
    return arena_printf(a, "file:%s%s", escaped,
                        s->writable || file_exists(wal) ? "" : "?immutable=1");
}

/* Going to WAL needs a lock that SQLite's own waiting does not cover. */
static bool set_wal(struct store *s, struct error *err)
{
    int rc = SQLITE_OK;

    for (int i = 0; i < WAL_TRIES; i++) {
        rc = sqlite3_exec(s->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
        if ((rc & 0xff) != SQLITE_BUSY) /* or one of its finer kinds */
            break;
        usleep(20 * 1000);
    }
    return rc == SQLITE_OK || sql_error(s, rc, err);
}

static bool set_up(struct store *s, struct error *err)
{
    sqlite3_extended_result_codes(s->db, 1);
    sqlite3_busy_timeout(s->db, BUSY_MS);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    if (s->writable && !set_wal(s, err))
        return false;
    return sql_run(s, err, "PRAGMA synchronous = FULL", "") &&
           sql_run(s, err, "PRAGMA foreign_keys = ON", "") && schema_bring_up(s, err);
}

static bool open_file(struct store *s, struct error *err)
{
    struct arena *a = arena_new();
    int flags = SQLITE_OPEN_URI | (s->writable ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) |
                (s->mode == STORE_WRITE ? SQLITE_OPEN_CREATE : 0);
    int rc = sqlite3_open_v2(file_uri(s, a), &s->db, flags, NULL);
    bool ok = rc == SQLITE_OK ? set_up(s, err) : sql_error(s, rc, err);

    arena_free(a);
    return ok;
}

static bool make_dir(const char *runs_dir, struct error *err)
{
    if (dir_make(runs_dir, err))
        return true;
    error_hint(err, "name a folder that you may write: --runs DIR");
    return error_add(err, "making the folder of runs");
}

bool store_possible(const char *runs_dir, struct error *err)
{
    if (!make_dir(runs_dir, err))
        return false;
    (void)rmdir(runs_dir); /* one that is used stays */
    return true;
}

bool store_open(const char *runs_dir, enum store_mode mode, struct store **out, struct error *err)
{
    if (mode == STORE_WRITE && !make_dir(runs_dir, err))
        return false;
    struct arena *a = arena_new();
    struct store *s = xmalloc(sizeof(*s));

    s->mode = mode;
    s->dir = xstrdup(path_absolute(a, runs_dir));
    s->path = xstrdup(path_join(a, s->dir, "store.db"));
    arena_free(a);
    s->writable = may_write(s);
    bool ok;
    if (mode == STORE_WRITE && !s->writable)
        ok = refuse_read_only(s, err);
    else if (mode == STORE_READ && !file_exists(s->path))
        ok = refuse_missing(s, err);
    else
        ok = open_file(s, err);
    if (!ok) {
        store_close(s);
        return error_add(err, "opening the store");
    }
    *out = s;
    return true;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    sql_forget_statements(s);
    sqlite3_close_v2(s->db);
    xfree(s->dir);
    xfree(s->path);
    xfree(s);
}

const char *store_dir(const struct store *s)
{
    return s->dir;
}

/* ---- texts -------------------------------------------------------------- */

bool blob_insert(struct store *s, struct text data, char sha256[65], struct error *err)
{
    struct arena *a = arena_new();
    bool ok;

    data = vault_scrub(data, a);
    hash_text(data, sha256);
    ok = sql_run(s, err,
                 "INSERT INTO blobs (sha256, size, data) VALUES (?, ?, ?) "
                 "ON CONFLICT (sha256) DO NOTHING",
                 "tlb", sha256, (int64_t)data.len, &data);
    arena_free(a);
    return ok;
}

char *json_text(const json_t *v)
{
    if (!v)
        return NULL;
    struct arena *a = arena_new();
    char *s = xstrdup(json_line(v, a));
    arena_free(a);
    return s;
}

/* NULL leaves "" in sha256, which is stored as NULL: see sha_or_null() of write.c. */
bool blob_insert_json(struct store *s, const json_t *v, char sha256[65], struct error *err)
{
    sha256[0] = '\0';
    if (!v)
        return true;
    char *line = json_text(v);
    bool ok = blob_insert(s, text_of(line), sha256, err);
    xfree(line);
    return ok;
}

bool blob_put(struct store *s, struct text data, char sha256[65], struct error *err)
{
    if (!sql_begin(s, err))
        return false;
    return sql_end(s, blob_insert(s, data, sha256, err), err);
}

bool blob_get(struct store *s, const char *sha256, struct arena *a, struct text *out,
              struct error *err)
{
    struct query q;
    bool found = false;

    if (!sql_query(s, &q, err, "SELECT data FROM blobs WHERE sha256 = ?", "t", sha256))
        return false;
    if (sql_next(&q, err)) {
        *out = col_blob(&q, 0, a);
        found = true;
    }
    if (!sql_done(&q))
        return false;
    return found || error_set(err, ERROR_MACHINE, "%s holds no text %.16s...", s->path, sha256);
}
