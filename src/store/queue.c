/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - single jobs: added once by their hash, read, listed, cancelled. */
#include "store/queue.h"
#include "base/hash.h"
#include "base/json.h"
#include "store/read.h"

#include <string.h>

#define NOW_SQLITE   "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
#define NOW_POSTGRES "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
#define BY_ENGINE(sql_of)                                                                          \
    {                                                                                              \
        [DIALECT_SQLITE] = sql_of(NOW_SQLITE), [DIALECT_POSTGRES] = sql_of(NOW_POSTGRES)           \
    }

/* ---- adding ----------------------------------------------------------------- */

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

/* Each part is preceded by its length, so that no two orders give the same bytes. */
static void hash_part(struct hash *h, struct text t, struct arena *a)
{
    hash_add_text(h, text_of(arena_printf(a, "%zu ", t.len)));
    hash_add_text(h, t);
}

static void hash_order(const struct queue_order *o, const char *flags, const char *payload,
                       struct arena *a, char hex[65])
{
    const char *parts[] = {job_kind_names[o->kind],
                           or_empty(o->path),
                           flags,
                           payload,
                           or_empty(o->needs.kind),
                           or_empty(o->needs.gpu),
                           or_empty(o->needs.arch),
                           or_empty(o->salt)};
    struct hash h = hash_init();

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        hash_part(&h, text_of(parts[i]), a);
    hash_part(&h, o->source, a);
    hash_hex(&h, hex);
}

#define INSERT(now)                                                                                \
    "INSERT INTO jobs (kind, hash, path, flags, payload, source, owner, state, priority, "         \
    "needs_kind, needs_gpu, needs_bytes, needs_arch, added_ms) "                                   \
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'waiting', ?8, ?9, ?10, ?11, ?12, " now ") "              \
    "ON CONFLICT (hash) DO UPDATE SET state = 'waiting', tries = 0, after_ms = 0, problem = '' "   \
    "WHERE jobs.state = 'failed'"

static bool insert(struct store *s, const struct queue_order *o, const char *flags,
                   const char *payload, const char *hash, struct arena *a, struct error *err)
{
    static const char *const sql[] = BY_ENGINE(INSERT);
    char source[65] = "";
    const char *owner;

    return (!o->source.data || blob_insert(s, o->source, source, err)) &&
           store_owner(s, NULL, a, &owner, err) &&
           sql_run(s, err, sql[s->engine->dialect], "tttttttittlt", job_kind_names[o->kind], hash,
                   or_empty(o->path), flags, payload, *source ? source : NULL, owner, o->priority,
                   or_empty(o->needs.kind), or_empty(o->needs.gpu), o->needs.memory_bytes,
                   or_empty(o->needs.arch));
}

static bool find(struct store *s, const char *hash, int64_t *id, enum job_state *state,
                 struct error *err)
{
    struct query q;
    int found = JOB_WAITING;
    bool ok = true;

    *id = 0;
    if (!sql_query(s, &q, err, "SELECT id, state FROM jobs WHERE hash = ?", "t", hash))
        return false;
    if (sql_next(&q, err)) {
        *id = col_long(&q, 0);
        ok = col_name(&q, 1, job_state_names, JOB_STATE_COUNT, &found, err);
    }
    *state = (enum job_state)found;
    return sql_done(&q) && ok;
}

bool queue_add(struct store *s, const struct queue_order *o, int64_t *id, enum job_state *state,
               struct error *err)
{
    struct arena *a = arena_new();
    const char *flags = o->flags ? json_line(o->flags, a) : "[]";
    const char *payload = o->payload ? json_line(o->payload, a) : "{}";
    char hash[65];
    bool ok;

    hash_order(o, flags, payload, a, hash);
    ok = sql_begin(s, err) && sql_end(s, insert(s, o, flags, payload, hash, a, err), err) &&
         find(s, hash, id, state, err) && (*state != JOB_WAITING || s->engine->wake(s, err));
    arena_free(a);
    return ok || error_add(err, "putting a job into the queue");
}

/* ---- reading ---------------------------------------------------------------- */

#define COLUMNS(now)                                                                               \
    "SELECT id, kind, state, path, run, result, problem, owner, tries, "                           \
    "coalesce(claimed_ms, " now ") - added_ms, "                                                   \
    "CASE WHEN claimed_ms IS NULL THEN 0 WHEN state IN ('done', 'failed') "                        \
    "THEN coalesce(ended_ms, claimed_ms) - claimed_ms ELSE " now " - claimed_ms END, "             \
    "coalesce(worker, 0) FROM jobs "
#define ONE(now) COLUMNS(now) "WHERE id = ?"
#define NEWEST(now)                                                                                \
    COLUMNS(now) "WHERE suite IS NULL AND kind <> 'compile' ORDER BY id DESC LIMIT ?"

static bool take_entry(struct query *q, struct arena *a, struct queue_entry *out, struct error *err)
{
    int kind, state;

    if (!col_name(q, 1, job_kind_names, JOB_KIND_COUNT, &kind, err) ||
        !col_name(q, 2, job_state_names, JOB_STATE_COUNT, &state, err))
        return false;
    *out = (struct queue_entry){.id = col_long(q, 0),
                                .kind = (enum job_kind)kind,
                                .state = (enum job_state)state,
                                .path = col_text(q, 3, a),
                                .run = col_text(q, 4, a),
                                .result = col_text(q, 5, a),
                                .problem = col_text(q, 6, a),
                                .owner = col_text(q, 7, a),
                                .tries = col_int(q, 8),
                                .waited_ms = col_long(q, 9),
                                .took_ms = col_long(q, 10),
                                .worker = col_long(q, 11)};
    return true;
}

bool queue_read(struct store *s, int64_t id, struct arena *a, struct queue_entry *out,
                struct error *err)
{
    static const char *const sql[] = BY_ENGINE(ONE);
    struct query q;
    bool ok = true, found = false;

    if (!sql_query(s, &q, err, sql[s->engine->dialect], "l", id))
        return false;
    while (ok && sql_next(&q, err)) {
        found = true;
        ok = take_entry(&q, a, out, err);
    }
    if (!sql_done(&q) || !ok)
        return false;
    if (found)
        return true;
    error_set(err, ERROR_USE, "there is no job %lld in %s", (long long)id, s->path);
    return error_hint(err, "`cutegen queue list` shows them");
}

bool queue_list(struct store *s, int64_t most, struct arena *a, struct queue_entry **out,
                size_t *count, struct error *err)
{
    static const char *const sql[] = BY_ENGINE(NEWEST);
    struct query q;
    bool ok = true;

    *count = 0;
    *out = arena_array(a, (size_t)most + 1, sizeof(**out));
    if (!sql_query(s, &q, err, sql[s->engine->dialect], "l", most))
        return false;
    while (ok && *count < (size_t)most && sql_next(&q, err))
        ok = take_entry(&q, a, &(*out)[(*count)++], err);
    return sql_done(&q) && ok;
}

bool queue_cancel(struct store *s, int64_t id, bool *was, struct error *err)
{
    int64_t found = 0;

    *was = false;
    if (!sql_begin(s, err) ||
        !sql_end(s,
                 sql_int(s, 0, &found, err,
                         "UPDATE jobs SET state = 'failed', problem = 'cancelled' "
                         "WHERE id = ? AND state = 'waiting' RETURNING id",
                         "l", id),
                 err))
        return error_add(err, "cancelling job %lld", (long long)id);
    *was = found == id;
    return !*was || s->engine->wake(s, err);
}
