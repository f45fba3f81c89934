/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql.c - statements, parameters, columns, transactions, for both engines.
 *
 * Hides how parameters are passed to an engine, and scrubs secrets from them.
 *
 * Invariants
 * 1. Whatever fails inside a transaction, sql_end() never leaves it open.
 * 2. A BLOB is borrowed until the statement ends, never copied: only sql_run() is given one.
 */
#include "store/read.h"

#include "base/vault.h"

#include <math.h>
#include <string.h>

enum { VALUES_MAX = 32 };

/* Keeps secrets out of rows; blobs are scrubbed by blob_insert(), which names them by content. */
static struct sql_value text_value(const char *s, struct arena *a)
{
    struct sql_value v = {.type = 't', .null = !s};

    if (s)
        v.text = vault_scrub(text_of(s), a);
    return v;
}

static struct sql_value value_of(char type, va_list *ap, struct arena *a)
{
    struct sql_value v = {.type = type};

    if (type == 'i') {
        v.integer = va_arg(*ap, int);
    } else if (type == 'l') {
        v.integer = va_arg(*ap, int64_t);
    } else if (type == 'd') {
        v.real = va_arg(*ap, double);
        v.null = isnan(v.real);
    } else if (type == 't') {
        v = text_value(va_arg(*ap, const char *), a);
    } else if (type == 'b') {
        v.text = *va_arg(*ap, const struct text *);
    } else {
        BUG("parameter type '%c'", type);
    }
    return v;
}

/* Threads that share a store are serialized from here to sql_done(), and during a transaction. */
bool query_begin(struct query *q, const char *sql, const struct sql_value *values, int count,
                 struct error *err)
{
    pthread_mutex_lock(&q->store->turn);
    if (q->store->engine->start(q, sql, values, count, err))
        return true;
    pthread_mutex_unlock(&q->store->turn);
    return false;
}

static bool start(struct store *s, struct query *q, const char *sql, const char *types, va_list *ap,
                  struct arena *a, struct error *err)
{
    struct sql_value values[VALUES_MAX];
    int n = 0;

    for (; types[n]; n++) {
        if (n == VALUES_MAX)
            BUG("more than %d parameters: %s", VALUES_MAX, sql);
        values[n] = value_of(types[n], ap, a);
    }
    *q = (struct query){.store = s};
    return query_begin(q, sql, values, n, err);
}

bool sql_query(struct store *s, struct query *q, struct error *err, const char *sql,
               const char *types, ...)
{
    struct arena *a = arena_new();
    va_list ap;

    va_start(ap, types);
    bool ok = start(s, q, sql, types, &ap, a, err);
    va_end(ap);
    arena_free(a);
    return ok;
}

bool sql_next(struct query *q, struct error *err)
{
    return q->store->engine->next(q, err);
}

bool sql_done(struct query *q)
{
    q->store->engine->finish(q);
    q->rows = NULL;
    pthread_mutex_unlock(&q->store->turn);
    return !q->failed;
}

bool sql_run(struct store *s, struct error *err, const char *sql, const char *types, ...)
{
    struct arena *a = arena_new();
    struct query q;
    va_list ap;

    va_start(ap, types);
    bool ok = start(s, &q, sql, types, &ap, a, err);
    va_end(ap);
    if (ok) {
        while (sql_next(&q, err))
            ;
        ok = sql_done(&q);
    }
    arena_free(a);
    return ok;
}

bool sql_int(struct store *s, int64_t fallback, int64_t *out, struct error *err, const char *sql,
             const char *types, ...)
{
    struct arena *a = arena_new();
    int64_t v = fallback;
    struct query q;
    va_list ap;

    va_start(ap, types);
    bool ok = start(s, &q, sql, types, &ap, a, err);
    va_end(ap);
    if (ok) {
        if (sql_next(&q, err) && !col_null(&q, 0))
            v = col_long(&q, 0);
        ok = sql_done(&q);
    }
    arena_free(a);
    if (ok)
        *out = v;
    return ok;
}

bool sql_first_text(struct store *s, struct arena *a, const char **found, struct error *err,
                    const char *sql, const char *name)
{
    struct query q;
    bool ok = name ? sql_query(s, &q, err, sql, "t", name) : sql_query(s, &q, err, sql, "");

    if (!ok)
        return false;
    if (sql_next(&q, err))
        *found = col_text(&q, 0, a);
    return sql_done(&q);
}

/* ---- columns ------------------------------------------------------------ */

bool col_null(const struct query *q, int i)
{
    return q->store->engine->is_null(q, i);
}

int64_t col_long(const struct query *q, int i)
{
    return col_null(q, i) ? 0 : q->store->engine->integer(q, i);
}

int col_int(const struct query *q, int i)
{
    return (int)col_long(q, i);
}

double col_double(const struct query *q, int i)
{
    return col_null(q, i) ? NAN : q->store->engine->real(q, i);
}

struct text col_bytes(const struct query *q, int i)
{
    return col_null(q, i) ? (struct text){"", 0} : q->store->engine->bytes(q, i);
}

const char *col_text(const struct query *q, int i, struct arena *a)
{
    if (col_null(q, i))
        return NULL;
    struct text t = col_bytes(q, i);
    return arena_strndup(a, t.data, t.len);
}

struct text col_blob(const struct query *q, int i, struct arena *a)
{
    struct text t = col_bytes(q, i);
    return arena_text(a, t.data, t.len);
}

const char *col_title(const struct query *q, int i)
{
    return q->store->engine->name(q, i);
}

bool col_name(const struct query *q, int i, const char *const *names, int count, int *out,
              struct error *err)
{
    struct text s = col_bytes(q, i);

    for (int k = 0; k < count; k++) {
        if (strlen(names[k]) == s.len && memcmp(names[k], s.data, s.len) == 0) {
            *out = k;
            return true;
        }
    }
    error_set(err, ERROR_MACHINE, "%s: unknown %s \"%.*s\"", q->store->path, col_title(q, i),
              (int)s.len, s.data);
    return error_hint(err, "it was written by another version of cutegen; read it with that one");
}

/* ---- transactions ------------------------------------------------------- */

static bool turn_begin(struct store *s, enum sql_transaction kind, struct error *err)
{
    pthread_mutex_lock(&s->turn);
    if (s->engine->begin(s, kind, err))
        return true;
    pthread_mutex_unlock(&s->turn);
    return false;
}

static bool turn_end(struct store *s, bool commit, struct error *err)
{
    bool ok = s->engine->end(s, commit, err);

    pthread_mutex_unlock(&s->turn);
    return ok;
}

bool sql_begin(struct store *s, struct error *err)
{
    if (!s->writable) {
        error_set(err, ERROR_MACHINE, "may not write %s: it was opened for reading", s->path);
        return error_hint(err, "make the folder writable, or name another: --runs DIR");
    }
    return turn_begin(s, TRANSACTION_WRITE, err);
}

bool sql_end(struct store *s, bool ok, struct error *err)
{
    return turn_end(s, ok, err) && ok;
}

bool read_begin(struct store *s, struct error *err)
{
    return turn_begin(s, TRANSACTION_READ, err);
}

bool read_end(struct store *s, bool ok)
{
    struct error ignored = {0};

    turn_end(s, false, &ignored);
    return ok;
}
