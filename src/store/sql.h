/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql.h - SQL for the store's files, independent of the engine; private to this room.
 *
 * The type of each parameter is given by a letter:
 *   i int   l int64_t   d double   t const char * (NULL: NULL)   b struct text * (a BLOB)
 *
 *     sql_run(s, err, "INSERT INTO t VALUES (?, ?)", "ti", name, n)
 *
 *     struct query q;
 *     if (!sql_query(s, &q, err, "SELECT a FROM t WHERE b = ?", "i", 3)) ...
 *     while (sql_next(&q, err)) ... col_int(&q, 0) ...
 *     if (!sql_done(&q)) ...                 an error ended it; err says which
 *
 * A NaN is stored as NULL and read back as NaN. The id of a new row comes from
 * sql_int(..., "INSERT ... RETURNING id", ...).
 */
#ifndef STORE_SQL_H
#define STORE_SQL_H

#include "store/engine.h"

bool sql_run(struct store *s, struct error *err, const char *sql, const char *types, ...);
bool sql_query(struct store *s, struct query *q, struct error *err, const char *sql,
               const char *types, ...);
/* The same with an array of values; q->store must be set. */
bool query_begin(struct query *q, const char *sql, const struct sql_value *values, int count,
                 struct error *err);
bool sql_next(struct query *q, struct error *err);
bool sql_done(struct query *q); /* may be called before the last row; true: no error so far */
/* One integer; `fallback` if there is no row or it is NULL. */
bool sql_int(struct store *s, int64_t fallback, int64_t *out, struct error *err, const char *sql,
             const char *types, ...);
/* The first row's text, in the arena; *found is unchanged if there is none. `name` is the
 * statement's only parameter; NULL: it has none. */
bool sql_first_text(struct store *s, struct arena *a, const char **found, struct error *err,
                    const char *sql, const char *name);

bool col_null(const struct query *q, int i);
int col_int(const struct query *q, int i);
int64_t col_long(const struct query *q, int i);
double col_double(const struct query *q, int i);
const char *col_text(const struct query *q, int i, struct arena *a); /* NULL stays NULL */
struct text col_blob(const struct query *q, int i, struct arena *a); /* NULL: empty */
struct text col_bytes(const struct query *q, int i);                 /* until the next row */
const char *col_title(const struct query *q, int i);
/* The position of the column's name in a closed list, or an error. */
bool col_name(const struct query *q, int i, const char *const *names, int count, int *out,
              struct error *err);

/* A write transaction. sql_end() commits if ok, else rolls back. */
bool sql_begin(struct store *s, struct error *err);
bool sql_end(struct store *s, bool ok, struct error *err);

bool schema_bring_up(struct store *s, struct error *err); /* schema.c */
int schema_version(void);

/* The owner of a run: its suite's owner if it has one, else the current user, by the server's name
 * or the login name. */
bool store_owner(struct store *s, const char *suite, struct arena *a, const char **out,
                 struct error *err);

/* Must be called within a transaction. */
bool blob_insert(struct store *s, struct text data, char sha256[65], struct error *err);
bool blob_insert_json(struct store *s, const json_t *v, char sha256[65], struct error *err);
char *json_text(const json_t *v); /* xfree() it; NULL for NULL */

#endif
