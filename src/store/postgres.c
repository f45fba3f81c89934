/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres.c - the store on a PostgreSQL server, for many machines.
 *
 * Hides libpq, which is loaded when a URL names a server: a machine without libpq can still use
 * SQLite. TLS and passwords are left to libpq (sslmode=, ~/.pgpass, service files).
 *
 * Invariants
 * 1. A result is fetched whole, so a query may be started while another is being read.
 * 2. The right to drive a run (an advisory lock) belongs to the connection. If the connection is
 *    lost the right is lost, too; so a connection that holds one is never reopened silently: the
 *    next write fails, and `cutegen resume` continues from the store.
 * 3. Texts are sent as UTF-8 without NUL; a BLOB is sent unchanged.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "store/sql.h"

#include <ctype.h>
#include <dlfcn.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- libpq, as far as it is used ----------------------------------------- */

struct pg_conn;
struct pg_result;

enum { CONNECTION_OK = 0, TRANSACTION_IDLE = 0, PING_REJECT = 1 };
enum { PGRES_COMMAND_OK = 1, PGRES_TUPLES_OK = 2 };
enum { OID_BYTEA = 17, OID_INT8 = 20, OID_TEXT = 25, OID_FLOAT8 = 701 };
enum { DIAG_SQLSTATE = 'C', DIAG_MESSAGE = 'M' };

#define LIBPQ_FUNCTIONS(F)                                                                         \
    F(struct pg_conn *, PQconnectdbParams, (const char *const *, const char *const *, int))        \
    F(int, PQpingParams, (const char *const *, const char *const *, int))                          \
    F(void, PQfinish, (struct pg_conn *))                                                          \
    F(void, PQreset, (struct pg_conn *))                                                           \
    F(int, PQstatus, (const struct pg_conn *))                                                     \
    F(int, PQtransactionStatus, (const struct pg_conn *))                                          \
    F(char *, PQerrorMessage, (const struct pg_conn *))                                            \
    F(char *, PQhost, (const struct pg_conn *))                                                    \
    F(char *, PQport, (const struct pg_conn *))                                                    \
    F(char *, PQdb, (const struct pg_conn *))                                                      \
    F(int, PQserverVersion, (const struct pg_conn *))                                              \
    F(void *, PQsetNoticeProcessor, (struct pg_conn *, void (*)(void *, const char *), void *))    \
    F(struct pg_result *, PQexec, (struct pg_conn *, const char *))                                \
    F(struct pg_result *, PQprepare,                                                               \
      (struct pg_conn *, const char *, const char *, int, const unsigned *))                       \
    F(struct pg_result *, PQexecPrepared,                                                          \
      (struct pg_conn *, const char *, int, const char *const *, const int *, const int *, int))   \
    F(int, PQresultStatus, (const struct pg_result *))                                             \
    F(char *, PQresultErrorField, (const struct pg_result *, int))                                 \
    F(void, PQclear, (struct pg_result *))                                                         \
    F(int, PQntuples, (const struct pg_result *))                                                  \
    F(int, PQnfields, (const struct pg_result *))                                                  \
    F(char *, PQfname, (const struct pg_result *, int))                                            \
    F(unsigned, PQftype, (const struct pg_result *, int))                                          \
    F(int, PQgetisnull, (const struct pg_result *, int, int))                                      \
    F(char *, PQgetvalue, (const struct pg_result *, int, int))                                    \
    F(int, PQgetlength, (const struct pg_result *, int, int))                                      \
    F(int, PQsocket, (const struct pg_conn *))                                                     \
    F(int, PQconsumeInput, (struct pg_conn *))                                                     \
    F(void *, PQnotifies, (struct pg_conn *))                                                      \
    F(void, PQfreemem, (void *))

#define LIBPQ_POINTER(type, name, parameters) type(*name) parameters;
struct libpq {
    LIBPQ_FUNCTIONS(LIBPQ_POINTER)
};

/* Never unloaded: its own libraries do not expect it. */
static bool library_load(struct libpq *pq, struct error *err)
{
    void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        error_set(err, ERROR_MACHINE, "a PostgreSQL store needs libpq, which is missing: %s",
                  dlerror());
        return error_hint(err, "install it: apt-get install libpq5 (Debian, Ubuntu), "
                               "dnf install libpq (Fedora)");
    }
#define LIBPQ_LOAD(type, name, parameters)                                                         \
    *(void **)&pq->name = dlsym(library, #name);                                                   \
    if (!pq->name)                                                                                 \
        return error_set(err, ERROR_MACHINE, "libpq.so.5 is too old: it has no " #name);
    LIBPQ_FUNCTIONS(LIBPQ_LOAD)
    return true;
}

/* ---- a connection -------------------------------------------------------- */

enum {
    STATEMENTS_MAX = 256,
    HELD_MAX = 256,
    START_TRIES = 300, /* a server that is starting: half a minute */
    START_WAIT_MS = 100,
    ALONE_KEY = 0x63757465,
    OLDEST_SERVER = 130000,
};

struct postgres_server {
    struct libpq pq;
    struct pg_conn *conn;
    const char *statements[STATEMENTS_MAX]; /* prepared as "s0", "s1", ...; by address */
    int64_t held[HELD_MAX];
    int held_count;
    bool listening;
};

static struct postgres_server *server_of(const struct store *s)
{
    return s->handle;
}

static const struct libpq *pq_of(const struct store *s)
{
    return &server_of(s)->pq;
}

static bool connected(const struct store *s)
{
    return pq_of(s)->PQstatus(server_of(s)->conn) == CONNECTION_OK;
}

/* libpq's messages end with newlines and may have several lines; the last is the most
 * informative. */
static const char *last_line(const char *message, struct arena *a)
{
    struct text rest = text_trim(text_of(message)), line, last = rest;

    while (text_next_line(&rest, &line))
        last = text_trim(line);
    last = text_clean(last, a);
    return arena_strndup(a, last.data, last.len);
}

static bool fail_lost(struct store *s, const char *why, struct error *err)
{
    error_set(err, ERROR_MACHINE, "lost the connection to the store %s: %s", s->path, why);
    return error_hint(err, "nothing was half-written; when the server answers again, "
                           "`cutegen resume` goes on");
}

/* By SQLSTATE, as PostgreSQL's manual lists them (Appendix A). */
static bool fail_state(struct store *s, const char *state, const char *why, struct error *err)
{
    if (!strncmp(state, "53100", 5)) {
        error_set(err, ERROR_MACHINE, "the disk of the store's server is full: %s", s->path);
        return error_hint(err, "free some space there; nothing was half-written, so "
                               "`cutegen resume` then goes on");
    }
    if (!strncmp(state, "42501", 5) || !strncmp(state, "25006", 5)) {
        error_set(err, ERROR_MACHINE, "may not write the store %s: %s", s->path, why);
        return error_hint(err, "ask its owner for the role cutegen_worker (docs/cluster.md)");
    }
    if (!strncmp(state, "42P01", 5) || !strncmp(state, "42703", 5)) {
        error_set(err, ERROR_MACHINE, "%s is damaged, or not a store: %s", s->path, why);
        return error_hint(err, "`cutegen store check` says what is missing");
    }
    if (!strncmp(state, "57P", 3) || !strncmp(state, "08", 2))
        return fail_lost(s, why, err);
    return error_set(err, ERROR_MACHINE, "%s: %s", s->path, why);
}

static bool fail(struct store *s, const struct pg_result *result, struct error *err)
{
    struct arena *a = arena_new();
    const char *state = result ? pq_of(s)->PQresultErrorField(result, DIAG_SQLSTATE) : NULL;
    const char *message = result ? pq_of(s)->PQresultErrorField(result, DIAG_MESSAGE) : NULL;

    if (!state || !connected(s))
        fail_lost(s, last_line(pq_of(s)->PQerrorMessage(server_of(s)->conn), a), err);
    else
        fail_state(s, state, last_line(message ? message : "no reason given", a), err);
    arena_free(a);
    return false;
}

/* ---- statements ---------------------------------------------------------- */

/* SQLite's ? and ?3 as $1 and $3. No SQL text of the store has a ? elsewhere. */
static char *with_dollars(const char *sql, struct arena *a)
{
    char *out = arena_alloc(a, strlen(sql) * 3 + 12);
    size_t n = 0;
    int next = 1;

    for (; *sql; sql++) {
        if (*sql != '?') {
            out[n++] = *sql;
            continue;
        }
        int number = next;
        if (isdigit((unsigned char)sql[1])) {
            char *end;
            number = (int)strtol(sql + 1, &end, 10);
            sql = end - 1;
        }
        next = number >= next ? number + 1 : next;
        n += (size_t)snprintf(out + n, 12, "$%d", number);
    }
    out[n] = '\0';
    return out;
}

static unsigned type_of(char type)
{
    switch (type) {
    case 't':
        return OID_TEXT;
    case 'b':
        return OID_BYTEA;
    case 'd':
        return OID_FLOAT8;
    case 'n':
        return 0; /* the server finds out */
    default:
        return OID_INT8;
    }
}

/* The name of the prepared statement. When all are in use, one extra slot is reused. */
static bool prepare(struct query *q, const char *sql, const struct sql_value *values, int count,
                    char name[16], struct error *err)
{
    struct postgres_server *server = server_of(q->store);
    struct pg_result *result;
    struct arena *a;
    unsigned types[64];
    int place = 0;
    bool ok;

    while (place < STATEMENTS_MAX - 1 && server->statements[place] &&
           server->statements[place] != sql)
        place++;
    snprintf(name, 16, "s%d", place);
    if (place == STATEMENTS_MAX - 1)
        name[0] = '\0';
    else if (server->statements[place] == sql)
        return true;
    for (int i = 0; i < count; i++)
        types[i] = type_of(values[i].type);
    a = arena_new();
    result = pq_of(q->store)->PQprepare(server->conn, name, with_dollars(sql, a), count, types);
    arena_free(a);
    ok = result && pq_of(q->store)->PQresultStatus(result) == PGRES_COMMAND_OK;
    if (!ok)
        fail(q->store, result, err);
    else if (*name)
        server->statements[place] = sql;
    pq_of(q->store)->PQclear(result);
    return ok;
}

static const char *value_text(const struct sql_value *v, struct arena *a)
{
    struct text t;

    if (v->null)
        return NULL;
    switch (v->type) {
    case 't':
        t = text_clean(v->text, a);
        return arena_strndup(a, t.data, t.len);
    case 'b':
        return v->text.len ? v->text.data : "";
    case 'd':
        return isinf(v->real) ? (v->real > 0 ? "Infinity" : "-Infinity")
                              : arena_printf(a, "%.17g", v->real);
    default:
        return arena_printf(a, "%lld", (long long)v->integer);
    }
}

static bool query_start(struct query *q, const char *sql, const struct sql_value *values, int count,
                        struct error *err)
{
    const char *texts[64];
    int lengths[64], formats[64];
    struct arena *a;
    char name[16];

    if (!prepare(q, sql, values, count, name, err))
        return false;
    a = arena_new();
    for (int i = 0; i < count; i++) {
        texts[i] = value_text(&values[i], a);
        formats[i] = values[i].type == 'b';
        lengths[i] = formats[i] ? (int)values[i].text.len : 0;
    }
    q->rows = pq_of(q->store)->PQexecPrepared(server_of(q->store)->conn, name, count, texts,
                                              lengths, formats, 1);
    arena_free(a);
    int status = q->rows ? pq_of(q->store)->PQresultStatus(q->rows) : -1;
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return true;
    fail(q->store, q->rows, err);
    pq_of(q->store)->PQclear(q->rows);
    return false;
}

static bool query_next(struct query *q, struct error *err)
{
    (void)err;
    return q->row++ < (size_t)pq_of(q->store)->PQntuples(q->rows);
}

static void query_finish(struct query *q)
{
    pq_of(q->store)->PQclear(q->rows);
}

static bool run_script(struct store *s, const char *sql, struct error *err)
{
    struct pg_result *result = pq_of(s)->PQexec(server_of(s)->conn, sql);
    int status = result ? pq_of(s)->PQresultStatus(result) : -1;
    bool ok = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;

    if (!ok)
        fail(s, result, err);
    pq_of(s)->PQclear(result);
    return ok;
}

/* ---- columns ------------------------------------------------------------- */

/* Results come in binary: integers and doubles big-endian, texts and BLOBs as they are. */
static uint64_t big_endian(const struct query *q, int i, int *bytes)
{
    const unsigned char *p =
        (const unsigned char *)pq_of(q->store)->PQgetvalue(q->rows, (int)q->row - 1, i);
    uint64_t v = 0;

    *bytes = pq_of(q->store)->PQgetlength(q->rows, (int)q->row - 1, i);
    for (int k = 0; k < *bytes && k < 8; k++)
        v = v << 8 | p[k];
    return v;
}

static bool column_is_null(const struct query *q, int i)
{
    return pq_of(q->store)->PQgetisnull(q->rows, (int)q->row - 1, i);
}

static double column_real(const struct query *q, int i)
{
    int bytes;
    uint64_t v = big_endian(q, i, &bytes);
    double d;

    if (pq_of(q->store)->PQftype(q->rows, i) != OID_FLOAT8)
        BUG("column %s is not a double", pq_of(q->store)->PQfname(q->rows, i));
    memcpy(&d, &v, sizeof(d));
    return d;
}

static int64_t column_integer(const struct query *q, int i)
{
    int bytes;
    uint64_t v = big_endian(q, i, &bytes);

    if (pq_of(q->store)->PQftype(q->rows, i) == OID_FLOAT8)
        return (int64_t)column_real(q, i);
    if (bytes > 8)
        BUG("column %s is not an integer", pq_of(q->store)->PQfname(q->rows, i));
    if (bytes == 4)
        return (int32_t)(uint32_t)v;
    return bytes == 2 ? (int16_t)(uint16_t)v : (int64_t)v; /* one byte: a boolean */
}

static struct text column_bytes(const struct query *q, int i)
{
    return (struct text){pq_of(q->store)->PQgetvalue(q->rows, (int)q->row - 1, i),
                         (size_t)pq_of(q->store)->PQgetlength(q->rows, (int)q->row - 1, i)};
}

static const char *column_name(const struct query *q, int i)
{
    return pq_of(q->store)->PQfname(q->rows, i);
}

static int column_count(const struct query *q)
{
    return pq_of(q->store)->PQnfields(q->rows);
}

static char column_type(const struct query *q, int i)
{
    unsigned type = pq_of(q->store)->PQftype(q->rows, i);

    return type == OID_BYTEA ? 'b' : type == OID_TEXT ? 't' : type == OID_FLOAT8 ? 'd' : 'l';
}

/* ---- transactions -------------------------------------------------------- */

/* Invariant 2: only a connection that holds no right is reopened. */
static void reconnect(struct store *s)
{
    struct postgres_server *server = server_of(s);

    if (connected(s) || server->held_count)
        return;
    memset(server->statements, 0, sizeof(server->statements));
    server->listening = false;
    pq_of(s)->PQreset(server->conn);
}

static bool transaction_begin(struct store *s, enum sql_transaction kind, struct error *err)
{
    reconnect(s);
    return run_script(
        s, kind == TRANSACTION_READ ? "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" : "BEGIN",
        err);
}

static bool transaction_end(struct store *s, bool commit, struct error *err)
{
    if (commit && run_script(s, "COMMIT", err))
        return true;
    if (connected(s) && pq_of(s)->PQtransactionStatus(server_of(s)->conn) != TRANSACTION_IDLE)
        pq_of(s)->PQclear(pq_of(s)->PQexec(server_of(s)->conn, "ROLLBACK"));
    return !commit;
}

static bool transaction_alone(struct store *s, struct error *err)
{
    return sql_run(s, err, "SELECT pg_advisory_xact_lock(?)", "l", (int64_t)ALONE_KEY);
}

/* ---- waiting -------------------------------------------------------------- */

static bool wake_others(struct store *s, struct error *err)
{
    return run_script(s, "NOTIFY cutegen_jobs", err);
}

static bool notified(struct store *s)
{
    struct postgres_server *server = server_of(s);
    bool any = false;
    void *note;

    while ((note = pq_of(s)->PQnotifies(server->conn)) != NULL) {
        pq_of(s)->PQfreemem(note);
        any = true;
    }
    return any;
}

static bool wait_for_change(struct store *s, int ms, struct error *err)
{
    struct postgres_server *server = server_of(s);
    int64_t until = clock_ms() + ms;

    reconnect(s);
    if (!server->listening && !run_script(s, "LISTEN cutegen_jobs", err))
        return false;
    server->listening = true;
    while (!notified(s) && clock_ms() < until) {
        struct pollfd p = {.fd = pq_of(s)->PQsocket(server->conn), .events = POLLIN};
        if (poll(&p, 1, (int)(until - clock_ms())) < 0)
            return true; /* a signal: the caller looks why */
        if (p.revents && !pq_of(s)->PQconsumeInput(server->conn))
            return fail(s, NULL, err);
    }
    return true;
}

/* ---- version and tables --------------------------------------------------- */

static bool version_get(struct store *s, int64_t *out, struct error *err)
{
    int64_t there;

    if (!sql_int(s, 0, &there, err, "SELECT to_regclass('cutegen_store') IS NOT NULL", ""))
        return false;
    if (!there) {
        *out = 0;
        return true;
    }
    return sql_int(s, 0, out, err, "SELECT version FROM cutegen_store", "");
}

static bool version_set(struct store *s, int version, struct error *err)
{
    return run_script(s,
                      "CREATE TABLE IF NOT EXISTS cutegen_store (version BIGINT NOT NULL); "
                      "DELETE FROM cutegen_store",
                      err) &&
           sql_run(s, err, "INSERT INTO cutegen_store (version) VALUES (?)", "i", version);
}

/* Other clients use the present tables, so the store's owner decides when they change. */
static bool back_up(struct store *s, int64_t version, struct error *err)
{
    if (s->mode == STORE_UPGRADE)
        return true; /* the caller of an upgrade has made a backup */
    error_set(err, ERROR_MACHINE, "the tables of %s are of version %lld; this cutegen needs %d",
              s->path, (long long)version, schema_version());
    return error_hint(err, "once workers of the older version have ended: cutegen store upgrade "
                           "(it makes a backup with pg_dump first)");
}

/* SQLite's types and PostgreSQL's. Longer ones first. */
static const struct {
    const char *theirs, *ours;
} words[] = {
    {"INTEGER PRIMARY KEY", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"},
    {"INTEGER", "BIGINT"},
    {"REAL", "DOUBLE PRECISION"},
    {"BLOB", "BYTEA"},
    {"TEXT", "TEXT COLLATE \"C\""}, /* bytes are compared, as in SQLite */
};

static const char *word_at(const char *p, size_t *len)
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        *len = strlen(words[i].theirs);
        if (!strncmp(p, words[i].theirs, *len) && !isalnum((unsigned char)p[*len]))
            return words[i].ours;
    }
    return NULL;
}

/* Adds a rowid, as SQLite's tables have, to every table without an id of its own. */
static char *schema_translate(const char *step, struct arena *a)
{
    static const char strict[] = ") STRICT";
    char *out = arena_alloc(a, strlen(step) * 4 + 1), *to = out;
    bool own_id = false;

    for (const char *p = step; *p;) {
        size_t len;
        const char *word = p > step && isalnum((unsigned char)p[-1]) ? NULL : word_at(p, &len);

        if (word) {
            own_id |= strstr(word, "IDENTITY") != NULL;
            to = stpcpy(to, word);
            p += len;
        } else if (!strncmp(p, strict, sizeof(strict) - 1)) {
            to = stpcpy(to, own_id ? ")" : ", rowid BIGINT GENERATED BY DEFAULT AS IDENTITY)");
            own_id = false;
            p += sizeof(strict) - 1;
        } else {
            *to++ = *p++;
        }
    }
    *to = '\0';
    return out;
}

/* ---- the right to drive something ----------------------------------------- */

static int64_t key_of(const char *name)
{
    char sha256[65], head[17];

    hash_text(text_of(name), sha256);
    memcpy(head, sha256, 16);
    head[16] = '\0';
    return (int64_t)strtoull(head, NULL, 16);
}

/* pg_locks shows a 64-bit key as two halves. */
#define HOLDERS                                                                                    \
    "FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid "                               \
    "WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 "                              \
    "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "           \
    "AND (l.classid::bigint << 32 | l.objid::bigint) = ?"

static bool is_held(struct store *s, const char *name)
{
    struct error ignored = {0};
    int64_t holders = 0;

    return sql_int(s, 0, &holders, &ignored, "SELECT count(*) " HOLDERS, "l", key_of(name)) &&
           holders > 0;
}

static bool holder_name(struct store *s, int64_t key, char who[64], struct error *err)
{
    struct query q;

    snprintf(who, 64, "unknown");
    if (!sql_query(s, &q, err, "SELECT a.application_name::text " HOLDERS, "l", key))
        return false;
    if (sql_next(&q, err) && !col_null(&q, 0)) {
        struct text t = col_bytes(&q, 0);
        snprintf(who, 64, "%.*s", (int)t.len, t.data);
    }
    return sql_done(&q);
}

static bool hold(struct store *s, const char *name, bool *held, char who[64], struct error *err)
{
    struct postgres_server *server = server_of(s);
    int64_t key = key_of(name), got;

    for (int i = 0; i < server->held_count; i++)
        if (server->held[i] == key) /* the server would count it twice and say yes */
            return holder_name(s, key, who, err) && (*held = true);
    if (server->held_count == HELD_MAX)
        BUG("more than %d rights on one connection", HELD_MAX);
    if (!sql_int(s, 0, &got, err, "SELECT pg_try_advisory_lock(?)", "l", key))
        return false;
    *held = !got;
    if (!got)
        return holder_name(s, key, who, err);
    server->held[server->held_count++] = key;
    return true;
}

static void let_go(struct store *s, const char *name)
{
    struct postgres_server *server = server_of(s);
    struct error ignored = {0};
    int64_t key = key_of(name);

    for (int i = 0; i < server->held_count; i++) {
        if (server->held[i] != key)
            continue;
        server->held[i] = server->held[--server->held_count];
        if (connected(s))
            sql_run(s, &ignored, "SELECT pg_advisory_unlock(?)", "l", key);
        return;
    }
}

/* ---- open ----------------------------------------------------------------- */

/* A password in a URL would be visible in the list of processes. */
static bool has_password(const char *url)
{
    const char *at = strchr(url, '@'), *rest = strstr(url, "://");
    const char *colon = rest ? strchr(rest + 3, ':') : NULL;
    const char *slash = rest ? strchr(rest + 3, '/') : NULL;

    return (at && colon && colon < at && (!slash || at < slash)) || strstr(url, "password=");
}

static bool refuse_password(struct error *err)
{
    error_set(err, ERROR_USE, "the address of the store holds a password");
    return error_hint(err, "leave it out there; put it into ~/.pgpass (mode 0600), or use a "
                           "service file: postgres://?service=NAME");
}

static void ignore_notice(void *ctx, const char *message)
{
    (void)ctx;
    (void)message;
}

static struct pg_conn *connect_once(const struct libpq *pq, const char *url)
{
    char host[32] = "", name[64];
    /* The URL's parameters come later and override these. */
    const char *keys[] = {"connect_timeout",
                          "keepalives_idle",
                          "keepalives_interval",
                          "dbname",
                          "application_name",
                          "client_encoding",
                          NULL};
    const char *values[] = {"10", "30", "10", url, name, "UTF8", NULL};

    gethostname(host, sizeof(host) - 1);
    snprintf(name, sizeof(name), "pid %d on %s", (int)getpid(), host);
    struct pg_conn *conn = pq->PQconnectdbParams(keys, values, 1);
    if (conn)
        pq->PQsetNoticeProcessor(conn, ignore_notice, NULL);
    return conn;
}

/* Is the server starting or recovering? Then it is worth waiting. */
static bool is_starting(const struct libpq *pq, const char *url)
{
    const char *keys[] = {"dbname", "connect_timeout", NULL}, *values[] = {url, "10", NULL};

    return pq->PQpingParams(keys, values, 1) == PING_REJECT;
}

static bool refuse_server(struct store *s, struct error *err)
{
    struct arena *a = arena_new();
    const char *why = last_line(pq_of(s)->PQerrorMessage(server_of(s)->conn), a);

    error_set(err, ERROR_MACHINE, "cannot open the store %s: %s", s->url, why);
    arena_free(a);
    return error_hint(err, "check the address, that the server runs, and your access "
                           "(psql with the same address says more)");
}

/* postgres://HOST:PORT/DATABASE, with the defaults that libpq filled in. */
static char *shown_address(const struct libpq *pq, struct pg_conn *conn)
{
    struct arena *a = arena_new();
    char *s = xstrdup(
        arena_printf(a, "postgres://%s:%s/%s", pq->PQhost(conn), pq->PQport(conn), pq->PQdb(conn)));

    arena_free(a);
    return s;
}

static bool check_server(struct store *s, struct error *err)
{
    int version = pq_of(s)->PQserverVersion(server_of(s)->conn);

    xfree(s->path);
    s->path = shown_address(pq_of(s), server_of(s)->conn);
    s->writable = s->mode != STORE_READ;
    if (version >= OLDEST_SERVER)
        return true;
    return error_set(err, ERROR_MACHINE, "%s is PostgreSQL %d; 13 or newer is needed", s->path,
                     version / 10000);
}

static bool server_open(struct store *s, struct error *err)
{
    struct postgres_server *server;

    s->path = xstrdup(s->url);
    if (has_password(s->url))
        return refuse_password(err);
    server = xmalloc(sizeof(*server));
    s->handle = server;
    if (!library_load(&server->pq, err))
        return false;
    for (int i = 0; i < START_TRIES; i++) {
        server->conn = connect_once(&server->pq, s->url);
        if (!server->conn)
            return error_set(err, ERROR_MACHINE, "libpq has no memory");
        if (connected(s))
            return check_server(s, err);
        if (!is_starting(&server->pq, s->url))
            break;
        pq_of(s)->PQfinish(server->conn);
        server->conn = NULL;
        usleep(START_WAIT_MS * 1000);
    }
    if (!server->conn)
        return error_set(err, ERROR_MACHINE, "the server of the store %s does not finish starting",
                         s->url);
    return refuse_server(s, err);
}

static void server_close(struct store *s)
{
    struct postgres_server *server = server_of(s);

    if (!server)
        return;
    if (server->conn)
        pq_of(s)->PQfinish(server->conn);
    xfree(server);
}

const struct engine postgres_engine = {
    .dialect = DIALECT_POSTGRES,
    .open = server_open,
    .close = server_close,
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
    .schema = schema_translate,
    .hold = hold,
    .let_go = let_go,
    .is_held = is_held,
};
