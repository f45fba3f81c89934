/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql.c - statements, parameters, columns, transactions; SQLite's errors in our words.
 *
 * Hides sqlite3_stmt and the way parameters are bound.
 *
 * Invariants
 * 1. Whatever fails inside a transaction, sql_end() leaves none open.
 * 2. Bound texts are borrowed until the statement is stepped, never copied: a
 *    statement that writes ends within sql_run().
 */
#include "store/sql.h"

#include "base/vault.h"

#include <math.h>
#include <string.h>

static bool explain(struct store *s, int rc, struct error *err)
{
    const char *at = s->path;

    switch (rc & 0xff) {
    case SQLITE_FULL:
        error_set(err, ERROR_MACHINE, "the disk is full: cannot write %s", at);
        return error_hint(err, "free some space there; nothing was half-written, so "
                               "`cutegen resume` then goes on");
    case SQLITE_READONLY:
    case SQLITE_PERM:
        error_set(err, ERROR_MACHINE, "may not write %s: %s", at, sqlite3_errmsg(s->db));
        return error_hint(err,
                          "make %s and its folder writable, or name another folder: "
                          "--runs DIR",
                          at);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        error_set(err, ERROR_MACHINE, "%s is locked by another process", at);
        return error_hint(err, "a cutegen or sqlite3 process holds it for long; end that one "
                               "and try again");
    case SQLITE_ERROR: /* a table is missing: somebody else changed it */
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        error_set(err, ERROR_MACHINE, "%s is damaged, or not a store: %s", at,
                  sqlite3_errmsg(s->db));
        return error_hint(err,
                          "keep a copy of it, try `sqlite3 %s .recover`, or name another "
                          "folder: --runs DIR",
                          at);
    case SQLITE_IOERR:
        error_set(err, ERROR_MACHINE, "reading or writing %s failed: %s", at,
                  sqlite3_errmsg(s->db));
        return error_hint(err, "check the disk, its quota and `ulimit -f`");
    case SQLITE_CANTOPEN:
        error_set(err, ERROR_MACHINE, "cannot open %s: %s", at, sqlite3_errmsg(s->db));
        return error_hint(err, "check that the folder exists and that you may read and write it");
    default:
        return error_set(err, ERROR_MACHINE, "%s: %s", at, sqlite3_errmsg(s->db));
    }
}

bool sql_error(struct store *s, int rc, struct error *err)
{
    if ((rc & 0xff) == SQLITE_MISUSE || rc == SQLITE_RANGE)
        BUG("SQL: %s", sqlite3_errmsg(s->db));
    return explain(s, rc, err);
}

/* No secret gets into a row; blobs are scrubbed by blob_insert(), which names them by content. */
static int bind_text(sqlite3_stmt *stmt, int at, const char *s)
{
    struct arena *a;
    struct text t;
    int rc;

    if (!s)
        return sqlite3_bind_null(stmt, at);
    a = arena_new();
    t = vault_scrub(text_of(s), a);
    rc = t.data == s ? sqlite3_bind_text(stmt, at, s, -1, SQLITE_STATIC)
                     : sqlite3_bind_text(stmt, at, t.data, (int)t.len, SQLITE_TRANSIENT);
    arena_free(a);
    return rc;
}

static int bind_one(sqlite3_stmt *stmt, int at, char type, va_list *ap)
{
    if (type == 'i')
        return sqlite3_bind_int(stmt, at, va_arg(*ap, int));
    if (type == 'l')
        return sqlite3_bind_int64(stmt, at, va_arg(*ap, int64_t));
    if (type == 'd')
        return sqlite3_bind_double(stmt, at, va_arg(*ap, double));
    if (type == 't')
        return bind_text(stmt, at, va_arg(*ap, const char *));
    if (type == 'b') {
        const struct text *t = va_arg(*ap, const struct text *);
        return sqlite3_bind_blob64(stmt, at, t->len ? t->data : "", t->len, SQLITE_STATIC);
    }
    BUG("parameter type '%c'", type);
}

/* A free place for this text, with its statement when there is one already; NULL: compile it for
 * once (no place, or the same one is being read further up). */
static struct statement *statement_find(struct store *s, const char *sql)
{
    for (size_t i = 0; i < STATEMENTS_MAX; i++) {
        struct statement *k = &s->statements[i];
        if (!k->sql || k->sql == sql)
            return k->busy ? NULL : k;
    }
    return NULL;
}

void sql_forget_statements(struct store *s)
{
    for (size_t i = 0; i < STATEMENTS_MAX; i++)
        sqlite3_finalize(s->statements[i].stmt);
}

static int compile(struct query *q, const char *sql)
{
    int rc = SQLITE_OK;

    q->kept = statement_find(q->store, sql);
    q->stmt = q->kept ? q->kept->stmt : NULL;
    if (!q->stmt)
        rc = sqlite3_prepare_v3(q->store->db, sql, -1, q->kept ? SQLITE_PREPARE_PERSISTENT : 0,
                                &q->stmt, NULL);
    if (rc == SQLITE_OK && q->kept)
        *q->kept = (struct statement){.sql = sql, .stmt = q->stmt, .busy = true};
    return rc;
}

static bool prepare(struct store *s, struct query *q, const char *sql, const char *types,
                    va_list *ap, struct error *err)
{
    *q = (struct query){.store = s};
    int rc = compile(q, sql);

    if (rc == SQLITE_OK && sqlite3_bind_parameter_count(q->stmt) != (int)strlen(types))
        BUG("parameters \"%s\" for: %s", types, sql);
    for (int i = 0; rc == SQLITE_OK && types[i]; i++)
        rc = bind_one(q->stmt, i + 1, types[i], ap);
    if (rc == SQLITE_OK)
        return true;
    sql_error(s, rc, err);
    sql_done(q);
    return false;
}

bool sql_query(struct store *s, struct query *q, struct error *err, const char *sql,
               const char *types, ...)
{
    va_list ap;
    va_start(ap, types);
    bool ok = prepare(s, q, sql, types, &ap, err);
    va_end(ap);
    return ok;
}

bool sql_next(struct query *q, struct error *err)
{
    int rc = sqlite3_step(q->stmt);

    if (rc == SQLITE_ROW)
        return true;
    if (rc != SQLITE_DONE) {
        q->failed = true;
        sql_error(q->store, rc, err);
    }
    return false;
}

bool sql_done(struct query *q)
{
    if (q->kept) {
        sqlite3_reset(q->stmt);
        q->kept->busy = false;
    } else {
        sqlite3_finalize(q->stmt);
    }
    q->stmt = NULL;
    return !q->failed;
}

bool sql_run(struct store *s, struct error *err, const char *sql, const char *types, ...)
{
    struct query q;
    va_list ap;

    va_start(ap, types);
    bool ok = prepare(s, &q, sql, types, &ap, err);
    va_end(ap);
    if (!ok)
        return false;
    while (sql_next(&q, err))
        ;
    return sql_done(&q);
}

bool sql_int(struct store *s, int64_t fallback, int64_t *out, struct error *err, const char *sql,
             const char *types, ...)
{
    struct query q;
    va_list ap;

    va_start(ap, types);
    bool ok = prepare(s, &q, sql, types, &ap, err);
    va_end(ap);
    if (!ok)
        return false;
    int64_t v = fallback;
    if (sql_next(&q, err) && sqlite3_column_type(q.stmt, 0) != SQLITE_NULL)
        v = sqlite3_column_int64(q.stmt, 0);
    if (!sql_done(&q))
        return false;
    *out = v;
    return true;
}

int col_int(const struct query *q, int i)
{
    return sqlite3_column_int(q->stmt, i);
}

int64_t col_long(const struct query *q, int i)
{
    return sqlite3_column_int64(q->stmt, i);
}

double col_double(const struct query *q, int i)
{
    if (sqlite3_column_type(q->stmt, i) == SQLITE_NULL)
        return NAN;
    return sqlite3_column_double(q->stmt, i);
}

const char *col_text(const struct query *q, int i, struct arena *a)
{
    const char *s = (const char *)sqlite3_column_text(q->stmt, i);
    return s ? arena_strdup(a, s) : NULL;
}

struct text col_blob(const struct query *q, int i, struct arena *a)
{
    const void *data = sqlite3_column_blob(q->stmt, i);
    int len = sqlite3_column_bytes(q->stmt, i);
    return arena_text(a, data ? data : "", (size_t)len);
}

bool col_name(const struct query *q, int i, const char *const *names, int count, int *out,
              struct error *err)
{
    const char *s = (const char *)sqlite3_column_text(q->stmt, i);

    for (int k = 0; s && k < count; k++) {
        if (strcmp(names[k], s) == 0) {
            *out = k;
            return true;
        }
    }
    error_set(err, ERROR_MACHINE, "%s: unknown %s \"%s\"", q->store->path,
              sqlite3_column_name(q->stmt, i), s ? s : "");
    return error_hint(err, "it was written by another version of cutegen; read it with that one");
}

bool sql_begin(struct store *s, struct error *err)
{
    if (!s->writable) {
        error_set(err, ERROR_MACHINE, "may not write %s: it was opened for reading", s->path);
        return error_hint(err, "make the folder writable, or name another: --runs DIR");
    }
    return sql_run(s, err, "BEGIN IMMEDIATE", "");
}

bool sql_end(struct store *s, bool ok, struct error *err)
{
    if (ok && sql_run(s, err, "COMMIT", ""))
        return true;
    /* An error inside SQLite may have rolled back already. */
    if (!sqlite3_get_autocommit(s->db))
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return false;
}
