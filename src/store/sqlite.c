/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite.c - the store as one SQLite file in the folder of runs.
 *
 * Hides how SQLite is set up: WAL, so that a reader never stops the writer;
 * synchronous FULL, because a paid reply must survive a power cut and commits are seconds apart,
 * not microseconds; foreign keys; a time to wait for another process.
 */
#include "base/fs.h"
#include "store/sql.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    APPLICATION_ID = 0x63757465, /* "cute": identifies our files */
    BUSY_MS = 15000,
    WAL_TRIES = 100,
    WAIT_STEP_MS = 100,
    STATEMENTS_MAX = 64,
};

/* A statement is compiled once; SQL texts are literals, so their address names them. */
struct statement {
    const char *sql;
    sqlite3_stmt *stmt;
    bool busy;
};

struct sqlite_file {
    sqlite3 *db;
    struct statement statements[STATEMENTS_MAX];
};

static struct sqlite_file *file_of(const struct store *s)
{
    return s->handle;
}

/* ---- errors ------------------------------------------------------------- */

static bool explain(struct store *s, int rc, struct error *err)
{
    const char *at = s->path, *why = sqlite3_errmsg(file_of(s)->db);

    switch (rc & 0xff) {
    case SQLITE_FULL:
        error_set(err, ERROR_MACHINE, "the disk is full: cannot write %s", at);
        return error_hint(err, "free some space there; nothing was half-written, so "
                               "`cutegen resume` then goes on");
    case SQLITE_READONLY:
    case SQLITE_PERM:
        error_set(err, ERROR_MACHINE, "may not write %s: %s", at, why);
        return error_hint(err,
                          "make %s and its folder writable, or name another folder: "
                          "--runs DIR",
                          at);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        error_set(err, ERROR_MACHINE, "%s is locked by another process", at);
        return error_hint(err, "a cutegen or sqlite3 process holds it for long; end that one "
                               "and try again");
    case SQLITE_ERROR: /* a table is missing: another program changed it */
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        error_set(err, ERROR_MACHINE, "%s is damaged, or not a store: %s", at, why);
        return error_hint(err,
                          "keep a copy of it, try `sqlite3 %s .recover`, or name another "
                          "folder: --runs DIR",
                          at);
    case SQLITE_IOERR:
        error_set(err, ERROR_MACHINE, "reading or writing %s failed: %s", at, why);
        return error_hint(err, "check the disk, its quota and `ulimit -f`");
    case SQLITE_CANTOPEN:
        error_set(err, ERROR_MACHINE, "cannot open %s: %s", at, why);
        return error_hint(err, "check that the folder exists and that you may read and write it");
    default:
        return error_set(err, ERROR_MACHINE, "%s: %s", at, why);
    }
}

/* Converts an error of SQLite to an error with a hint; returns false. */
static bool fail(struct store *s, int rc, struct error *err)
{
    if ((rc & 0xff) == SQLITE_MISUSE || rc == SQLITE_RANGE)
        BUG("SQL: %s", sqlite3_errmsg(file_of(s)->db));
    return explain(s, rc, err);
}

/* ---- statements --------------------------------------------------------- */

static int bind_one(sqlite3_stmt *stmt, int at, const struct sql_value *v)
{
    if (v->null)
        return sqlite3_bind_null(stmt, at);
    if (v->type == 'd')
        return sqlite3_bind_double(stmt, at, v->real);
    if (v->type == 't')
        return sqlite3_bind_text(stmt, at, v->text.data, (int)v->text.len, SQLITE_TRANSIENT);
    if (v->type == 'b')
        return sqlite3_bind_blob64(stmt, at, v->text.len ? v->text.data : "", v->text.len,
                                   SQLITE_STATIC);
    return sqlite3_bind_int64(stmt, at, v->integer);
}

/* The cache entry for this text, with its statement if compiled; NULL: compile it for one use (the
 * cache is full, or the same statement is in use by a caller). */
static struct statement *statement_find(struct sqlite_file *f, const char *sql)
{
    for (size_t i = 0; i < STATEMENTS_MAX; i++) {
        struct statement *k = &f->statements[i];
        if (!k->sql || k->sql == sql)
            return k->busy ? NULL : k;
    }
    return NULL;
}

static int compile(struct query *q, const char *sql)
{
    struct sqlite_file *f = file_of(q->store);
    struct statement *kept = statement_find(f, sql);
    sqlite3_stmt *stmt = kept ? kept->stmt : NULL;
    int rc = SQLITE_OK;

    if (!stmt)
        rc = sqlite3_prepare_v3(f->db, sql, -1, kept ? SQLITE_PREPARE_PERSISTENT : 0, &stmt, NULL);
    q->rows = stmt;
    if (rc == SQLITE_OK && kept) {
        *kept = (struct statement){.sql = sql, .stmt = stmt, .busy = true};
        q->kept = kept;
    }
    return rc;
}

static void query_finish(struct query *q)
{
    struct statement *kept = q->kept;

    if (kept) {
        sqlite3_reset(q->rows);
        kept->busy = false;
    } else {
        sqlite3_finalize(q->rows);
    }
}

static bool query_start(struct query *q, const char *sql, const struct sql_value *values, int count,
                        struct error *err)
{
    int rc = compile(q, sql);

    if (rc == SQLITE_OK && sqlite3_bind_parameter_count(q->rows) != count)
        BUG("%d parameters for: %s", count, sql);
    for (int i = 0; rc == SQLITE_OK && i < count; i++)
        rc = bind_one(q->rows, i + 1, &values[i]);
    if (rc == SQLITE_OK)
        return true;
    fail(q->store, rc, err);
    query_finish(q);
    return false;
}

static bool query_next(struct query *q, struct error *err)
{
    int rc = sqlite3_step(q->rows);

    if (rc == SQLITE_ROW)
        return true;
    if (rc != SQLITE_DONE) {
        q->failed = true;
        fail(q->store, rc, err);
    }
    return false;
}

static bool run_script(struct store *s, const char *sql, struct error *err)
{
    int rc = sqlite3_exec(file_of(s)->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK || fail(s, rc, err);
}

static bool column_is_null(const struct query *q, int i)
{
    return sqlite3_column_type(q->rows, i) == SQLITE_NULL;
}

static int64_t column_integer(const struct query *q, int i)
{
    return sqlite3_column_int64(q->rows, i);
}

static double column_real(const struct query *q, int i)
{
    return sqlite3_column_double(q->rows, i);
}

static struct text column_bytes(const struct query *q, int i)
{
    const void *data = sqlite3_column_blob(q->rows, i);
    int len = sqlite3_column_bytes(q->rows, i);
    return (struct text){data ? data : "", (size_t)len};
}

static const char *column_name(const struct query *q, int i)
{
    return sqlite3_column_name(q->rows, i);
}

static int column_count(const struct query *q)
{
    return sqlite3_column_count(q->rows);
}

static char column_type(const struct query *q, int i)
{
    switch (sqlite3_column_type(q->rows, i)) {
    case SQLITE_INTEGER:
        return 'l';
    case SQLITE_FLOAT:
        return 'd';
    case SQLITE_BLOB:
        return 'b';
    case SQLITE_NULL:
        return 'n';
    default:
        return 't';
    }
}

/* ---- transactions ------------------------------------------------------- */

static bool transaction_begin(struct store *s, enum sql_transaction kind, struct error *err)
{
    return sql_run(s, err, kind == TRANSACTION_READ ? "BEGIN" : "BEGIN IMMEDIATE", "");
}

static bool transaction_end(struct store *s, bool commit, struct error *err)
{
    if (commit && sql_run(s, err, "COMMIT", ""))
        return true;
    /* An error inside SQLite may have rolled back already. */
    if (!sqlite3_get_autocommit(file_of(s)->db))
        sqlite3_exec(file_of(s)->db, "ROLLBACK", NULL, NULL, NULL);
    return !commit;
}

/* BEGIN IMMEDIATE already excludes others. */
static bool transaction_alone(struct store *s, struct error *err)
{
    (void)s;
    (void)err;
    return true;
}

/* ---- waiting ------------------------------------------------------------ */

static bool wake_others(struct store *s, struct error *err)
{
    (void)s;
    (void)err;
    return true; /* waiters poll */
}

/* PRAGMA data_version changes when another connection has written. */
static bool wait_for_change(struct store *s, int ms, struct error *err)
{
    int64_t before, now;

    if (!sql_int(s, 0, &before, err, "PRAGMA data_version", ""))
        return false;
    for (int waited = 0; waited < ms; waited += WAIT_STEP_MS) {
        usleep(WAIT_STEP_MS * 1000);
        if (!sql_int(s, 0, &now, err, "PRAGMA data_version", ""))
            return false;
        if (now != before)
            break;
    }
    return true;
}

/* ---- version ------------------------------------------------------------ */

/* PRAGMA user_version is the version; ours, empty, or another program's? */
static bool version_get(struct store *s, int64_t *out, struct error *err)
{
    int64_t application, tables;

    /* In this order, because another process may create the store between the two queries. */
    if (!sql_int(s, 0, &tables, err, "SELECT count(*) FROM sqlite_schema", "") ||
        !sql_int(s, 0, &application, err, "PRAGMA application_id", ""))
        return false;
    if (application != APPLICATION_ID && (application != 0 || tables != 0)) {
        error_set(err, ERROR_MACHINE, "%s is a database of another program", s->path);
        return error_hint(err, "name another folder for runs: --runs DIR");
    }
    return sql_int(s, 0, out, err, "PRAGMA user_version", "");
}

static bool version_set(struct store *s, int version, struct error *err)
{
    struct arena *a = arena_new();
    bool ok = run_script(s,
                         arena_printf(a, "PRAGMA application_id = %d; PRAGMA user_version = %d",
                                      APPLICATION_ID, version),
                         err);

    arena_free(a);
    return ok;
}

/* Created by one rename, so it is complete; the first copy of a version is kept. */
static bool back_up(struct store *s, int64_t version, struct error *err)
{
    struct arena *a = arena_new();
    const char *to = arena_printf(a, "%s.v%lld", s->path, (long long)version);
    const char *part = arena_printf(a, "%s.%d.part", to, (int)getpid());
    bool ok = true;

    if (s->writable && !file_exists(to)) {
        (void)unlink(part);
        ok = sql_run(s, err, "VACUUM INTO ?", "t", part);
        if (ok && rename(part, to) != 0)
            ok = error_set(err, ERROR_MACHINE, "cannot make %s: %s", to, strerror(errno));
        if (!ok) {
            (void)unlink(part);
            error_hint(err, "the store was not changed; this version of cutegen needs to change it "
                            "and needs room for a copy first");
            error_add(err, "backing up %s", s->path);
        }
    }
    arena_free(a);
    return ok;
}

static char *schema_as_written(const char *step, struct arena *a)
{
    return arena_strdup(a, step);
}

/* ---- open --------------------------------------------------------------- */

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

/* A file in a read-only folder is opened as immutable; that is complete only if there is no WAL
 * beside it. */
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

/* Switching to WAL needs a lock that SQLite's busy timeout does not cover. */
static bool set_wal(struct store *s, struct error *err)
{
    int rc = SQLITE_OK;

    for (int i = 0; i < WAL_TRIES; i++) {
        rc = sqlite3_exec(file_of(s)->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
        if ((rc & 0xff) != SQLITE_BUSY) /* or one of its finer kinds */
            break;
        usleep(20 * 1000);
    }
    return rc == SQLITE_OK || fail(s, rc, err);
}

static bool set_up(struct store *s, struct error *err)
{
    sqlite3 *db = file_of(s)->db;

    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, BUSY_MS);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    if (s->writable && !set_wal(s, err))
        return false;
    return sql_run(s, err, "PRAGMA synchronous = FULL", "") &&
           sql_run(s, err, "PRAGMA foreign_keys = ON", "");
}

static bool open_file(struct store *s, struct error *err)
{
    struct arena *a = arena_new();
    int flags = SQLITE_OPEN_URI | (s->writable ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) |
                (s->mode != STORE_READ ? SQLITE_OPEN_CREATE : 0);
    int rc;

    s->handle = xmalloc(sizeof(struct sqlite_file));
    rc = sqlite3_open_v2(file_uri(s, a), &file_of(s)->db, flags, NULL);
    bool ok = rc == SQLITE_OK ? set_up(s, err) : fail(s, rc, err);
    arena_free(a);
    return ok;
}

static bool store_file_open(struct store *s, struct error *err)
{
    struct arena *a = arena_new();

    s->path = xstrdup(path_join(a, s->dir, "store.db"));
    arena_free(a);
    s->writable = may_write(s);
    if (s->mode != STORE_READ && !s->writable)
        return refuse_read_only(s, err);
    if (s->mode == STORE_READ && !file_exists(s->path))
        return refuse_missing(s, err);
    return open_file(s, err);
}

static void store_file_close(struct store *s)
{
    struct sqlite_file *f = file_of(s);

    if (!f)
        return;
    for (size_t i = 0; i < STATEMENTS_MAX; i++)
        sqlite3_finalize(f->statements[i].stmt);
    sqlite3_close_v2(f->db);
    xfree(f);
}

const struct engine sqlite_engine = {
    .dialect = DIALECT_SQLITE,
    .open = store_file_open,
    .close = store_file_close,
    .script = run_script,
    .start = query_start,
    .next = query_next,
    .finish = query_finish,
    .is_null = column_is_null,
    .integer = column_integer,
    .real = column_real,
    .bytes = column_bytes,
    .name = column_name,
    .columns = column_count,
    .type = column_type,
    .begin = transaction_begin,
    .end = transaction_end,
    .alone = transaction_alone,
    .wake = wake_others,
    .wait = wait_for_change,
    .version = version_get,
    .set_version = version_set,
    .back_up = back_up,
    .schema = schema_as_written,
};
