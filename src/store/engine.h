/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - the interface of a database engine for the store; private to this room.
 *
 * Two engines: SQLite (sqlite.c), one file beside the runs, and PostgreSQL (postgres.c), one server
 * for many machines. The rest of the room uses sql.h and does not know which one it is; SQL texts
 * are written so that both accept them (docs/cluster.md, "One SQL for two engines").
 */
#ifndef STORE_ENGINE_H
#define STORE_ENGINE_H

#include "store/store.h"

#include <pthread.h>

/* One parameter. */
struct sql_value {
    char type; /* as in sql.h */
    bool null;
    int64_t integer;
    double real;
    struct text text;
};

struct query {
    struct store *store;
    void *rows; /* private data of the engine */
    size_t row; /* PostgreSQL: number of the next row */
    void *kept; /* SQLite: the statement's place; NULL: finalized when done */
    bool failed;
};

enum sql_transaction { TRANSACTION_READ, TRANSACTION_WRITE };

/* For statements that cannot be written for both (jobs.c). */
enum sql_dialect { DIALECT_SQLITE, DIALECT_POSTGRES };

struct engine {
    enum sql_dialect dialect;
    /* s->mode, s->dir and s->url are set; leaves s->path and s->handle. */
    bool (*open)(struct store *s, struct error *err);
    void (*close)(struct store *s);

    /* Any number of statements without parameters. */
    bool (*script)(struct store *s, const char *sql, struct error *err);
    bool (*start)(struct query *q, const char *sql, const struct sql_value *values, int count,
                  struct error *err);
    bool (*next)(struct query *q, struct error *err); /* false: no row, or q->failed */
    void (*finish)(struct query *q);

    /* Columns of the present row; bytes are valid until the next one. */
    bool (*is_null)(const struct query *q, int i);
    int64_t (*integer)(const struct query *q, int i);
    double (*real)(const struct query *q, int i);
    struct text (*bytes)(const struct query *q, int i);
    const char *(*name)(const struct query *q, int i);
    int (*columns)(const struct query *q);
    char (*type)(const struct query *q, int i); /* l, d, t or b as in sql.h; n: a NULL of any */

    /* Called by sql.c, which serializes threads. */
    bool (*begin)(struct store *s, enum sql_transaction kind, struct error *err);
    bool (*end)(struct store *s, bool commit, struct error *err);
    /* Inside a write transaction: blocks other processes here until it ends. */
    bool (*alone)(struct store *s, struct error *err);

    /* Reads and sets the version of the tables, 0 for none. Refuses a database that is not a
     * store. */
    bool (*version)(struct store *s, int64_t *out, struct error *err);
    bool (*set_version)(struct store *s, int version, struct error *err);
    /* Called before tables of that version change: makes a backup, or refuses and says how to make
     * one. */
    bool (*back_up)(struct store *s, int64_t version, struct error *err);
    /* One step of schema.c in this engine's SQL. */
    char *(*schema)(const char *step, struct arena *a);

    /* Wakes those that wait for a change of jobs; waits for a change, at most this long. */
    bool (*wake)(struct store *s, struct error *err);
    bool (*wait)(struct store *s, int ms, struct error *err);

    /* Takes the right to drive something, by name, as long as this store is open; *held: `who` has
     * it. Only for engines whose store is not a folder. */
    bool (*hold)(struct store *s, const char *name, bool *held, char who[64], struct error *err);
    void (*let_go)(struct store *s, const char *name);
    bool (*is_held)(struct store *s, const char *name);
};

extern const struct engine sqlite_engine;
extern const struct engine postgres_engine;

struct store {
    const struct engine *engine;
    void *handle;
    char *dir;  /* the folder of runs, absolute */
    char *url;  /* NULL: a file in that folder */
    char *path; /* its name in messages, without password */
    enum store_mode mode;
    bool writable;
    pthread_mutex_t turn; /* held during a transaction, since threads of a loop share a store */
};

#endif
