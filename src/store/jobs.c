/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.c - the queue: claims, leases, returns, ends; workers.
 *
 * Hides how concurrent claims are separated: PostgreSQL skips rows that others have locked, SQLite
 * has one writer at a time anyway.
 */
#include "store/jobs.h"
#include "store/read.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WORKER_GONE_MS = 3 * LEASE_MS };

const char *const job_state_names[JOB_STATE_COUNT] = {"waiting", "leased", "done", "failed"};
const char *const job_kind_names[JOB_KIND_COUNT] = {"run",     "eval",   "measure",
                                                    "profile", "export", "compile"};

/* Milliseconds by the database's clock, for each engine. */
#define NOW_SQLITE   "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
#define NOW_POSTGRES "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
#define BY_ENGINE(sql_of)                                                                          \
    {                                                                                              \
        [DIALECT_SQLITE] = sql_of(NOW_SQLITE, ""), [DIALECT_POSTGRES] = sql_of(                    \
                                                       NOW_POSTGRES, " FOR UPDATE SKIP LOCKED")    \
    }

/* ---- workers ---------------------------------------------------------------- */

#define WORKER_INSERT(now, lock)                                                                   \
    "INSERT INTO workers (host, pid, kind, gpu, memory_bytes, takes, started_ms, seen_ms) "        \
    "VALUES (?, ?, ?, ?, ?, ?, " now ", " now ") RETURNING id"

static int takes_of(const struct queue_worker *w)
{
    return w->takes ? w->takes : TAKE_BOTH;
}

bool worker_begin(struct store *s, struct queue_worker *w, struct error *err)
{
    static const char *const sql[] = BY_ENGINE(WORKER_INSERT);
    char host[64] = "";
    bool ok;

    gethostname(host, sizeof(host) - 1);
    if (!sql_begin(s, err))
        return false;
    ok = sql_int(s, 0, &w->id, err, sql[s->engine->dialect], "tittli", host, (int)getpid(),
                 w->has.kind, w->has.gpu, w->has.memory_bytes, takes_of(w));
    return sql_end(s, ok, err);
}

bool worker_end(struct store *s, const struct queue_worker *w, struct error *err)
{
    if (!sql_begin(s, err))
        return false;
    return sql_end(s, sql_run(s, err, "UPDATE workers SET seen_ms = 0 WHERE id = ?", "l", w->id),
                   err);
}

static int lease_of(const struct queue_worker *w)
{
    return w->lease_ms > 0 ? w->lease_ms : LEASE_MS;
}

/* ---- adding ----------------------------------------------------------------- */

#define JOBS_INSERT(now, lock)                                                                     \
    "INSERT INTO jobs (suite, number, path, state, priority, needs_kind, needs_gpu, "              \
    "needs_bytes, needs_arch, added_ms) "                                                          \
    "SELECT suite, number, path, 'waiting', CAST(?1 AS BIGINT), CAST(?2 AS TEXT), "                \
    "CAST(?3 AS TEXT), CAST(?4 AS BIGINT), CAST(?5 AS TEXT), " now " "                             \
    "FROM suite_tasks WHERE suite = ?6 AND ended = 0 "                                             \
    "ORDER BY number "                                                                             \
    "ON CONFLICT (suite, number) DO UPDATE SET state = 'waiting', tries = 0, after_ms = 0 "        \
    "WHERE jobs.state IN ('failed', 'done')"

bool jobs_add_suite(struct store *s, const char *suite, const struct job_needs *needs, int priority,
                    struct error *err)
{
    static const char *const sql[] = BY_ENGINE(JOBS_INSERT);

    if (!sql_begin(s, err))
        return false;
    return (sql_end(s,
                    sql_run(s, err, sql[s->engine->dialect], "ittltt", priority,
                            needs->kind ? needs->kind : "", needs->gpu ? needs->gpu : "",
                            needs->memory_bytes, needs->arch ? needs->arch : "", suite),
                    err) &&
            s->engine->wake(s, err)) ||
           error_add(err, "adding the jobs of %s", suite);
}

/* ---- claiming --------------------------------------------------------------- */

/* A task in one of two folders: ?6 and ?7, "" for any. */
#define LIES_IN                                                                                    \
    "(substr(path, 1, length(CAST(?6 AS TEXT))) = ?6 OR "                                          \
    "substr(path, 1, length(CAST(?7 AS TEXT))) = ?7)"
/* Queue entries may be arbitrarily long; a worker reads at most this much of a column. */
#define SHORT(column) "CASE WHEN length(" column ") <= 65536 THEN " column " ELSE 'too long' END"
#define CLAIM_FROM(now, lock, where)                                                               \
    "UPDATE jobs SET state = 'leased', worker = ?1, tries = tries + 1, claimed_ms = " now ", "     \
    "lease_ms = " now " + ?2, "                                                                    \
    "needs_kind = CASE WHEN kind = 'compile' THEN '' ELSE CAST(?3 AS TEXT) END, "                  \
    "needs_gpu = CASE WHEN kind = 'compile' THEN '' ELSE CAST(?4 AS TEXT) END "                    \
    "WHERE id = (SELECT id FROM jobs WHERE state = 'waiting' AND after_ms <= " now " "             \
    "AND (needs_kind = '' OR needs_kind = ?3) AND (needs_gpu = '' OR needs_gpu = ?4) "             \
    "AND needs_bytes <= ?5 AND (needs_arch = '' OR needs_arch = ?8) AND " where                    \
    "ORDER BY priority DESC, id LIMIT 1" lock ") "                                                 \
    "RETURNING id, kind, suite, number, tries, substr(path, 1, 5000), " SHORT("flags") ", " SHORT( \
        "payload") ", coalesce(source, ''), run"
#define JOB_CLAIM(now, lock)       CLAIM_FROM(now, lock, "kind <> 'compile' AND " LIES_IN " ")
#define JOB_CLAIM_SUITE(now, lock) CLAIM_FROM(now, lock, LIES_IN " AND suite = ?9 ")
/* Not restricted to a folder: device code has no path. */
#define JOB_CLAIM_COMPILE(now, lock)                                                               \
    CLAIM_FROM(now, lock, "kind = 'compile' AND CAST(?6 AS TEXT) = ?6 AND CAST(?7 AS TEXT) = ?7 ")

/* The first row of the index is the wanted one. The server's statistics of a queue are always
 * stale, and with stale statistics it would read and sort all waiting jobs for every claim. */
#define IN_ORDER "SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off"

/* Ends expired leases. A job whose workers are lost in every try fails after the last one. */
#define JOBS_REAP(now, lock)                                                                       \
    "UPDATE jobs SET worker = NULL, "                                                              \
    "state = CASE WHEN tries >= ?1 THEN 'failed' ELSE 'waiting' END, "                             \
    "problem = CASE WHEN tries >= ?1 THEN 'its workers were lost, each time it was tried' "        \
    "ELSE problem END "                                                                            \
    "WHERE id IN (SELECT id FROM jobs WHERE state = 'leased' AND lease_ms < " now lock ")"

static bool take_row(struct query *q, struct arena *a, struct job *out, struct error *err)
{
    int kind;

    if (!col_name(q, 1, job_kind_names, JOB_KIND_COUNT, &kind, err))
        return false;
    *out = (struct job){.id = col_long(q, 0),
                        .kind = (enum job_kind)kind,
                        .suite = col_text(q, 2, a),
                        .number = col_int(q, 3),
                        .tries = col_int(q, 4),
                        .path = col_text(q, 5, a),
                        .flags = col_text(q, 6, a),
                        .payload = col_text(q, 7, a),
                        .source = col_text(q, 8, a),
                        .run = col_text(q, 9, a)};
    return true;
}

static bool claim_by(struct store *s, const struct queue_worker *w, const char *sql,
                     const char *types, struct arena *a, struct job *out, bool *found,
                     struct error *err)
{
    struct query q;
    bool ok = true;

    if (!sql_query(s, &q, err, sql, types, w->id, lease_of(w), w->has.kind, w->has.gpu,
                   w->has.memory_bytes, w->folder ? w->folder : "",
                   w->real_folder ? w->real_folder : "", w->has.arch ? w->has.arch : "", w->suite))
        return false;
    if (sql_next(&q, err)) {
        ok = take_row(&q, a, out, err);
        *found = ok;
        while (sql_next(&q, err))
            ;
    }
    return sql_done(&q) && ok;
}

/* Compile jobs first, since others wait for them. */
static bool claim_one(struct store *s, const struct queue_worker *w, struct arena *a,
                      struct job *out, bool *found, struct error *err)
{
    static const char *const any[] = BY_ENGINE(JOB_CLAIM), *const of[] = BY_ENGINE(JOB_CLAIM_SUITE),
                             *const code[] = BY_ENGINE(JOB_CLAIM_COMPILE);
    enum sql_dialect d = s->engine->dialect;

    *found = false;
    if ((takes_of(w) & TAKE_COMPILE) && !claim_by(s, w, code[d], "littlttt", a, out, found, err))
        return false;
    return *found || !(takes_of(w) & TAKE_JUDGE) ||
           claim_by(s, w, (w->suite ? of : any)[d], w->suite ? "littltttt" : "littlttt", a, out,
                    found, err);
}

bool job_claim(struct store *s, const struct queue_worker *w, struct arena *a, struct job *out,
               bool *found, struct error *err)
{
    static const char *const reap[] = BY_ENGINE(JOBS_REAP);
    bool ok;

    if (!sql_begin(s, err))
        return false;
    ok = (s->engine->dialect != DIALECT_POSTGRES || s->engine->script(s, IN_ORDER, err)) &&
         claim_one(s, w, a, out, found, err);
    if (ok && !*found)
        ok = sql_run(s, err, reap[s->engine->dialect], "i", (int)JOB_TRIES) &&
             claim_one(s, w, a, out, found, err);
    return sql_end(s, ok, err) || error_add(err, "claiming a job");
}

bool jobs_elsewhere(struct store *s, const struct queue_worker *w, struct arena *a,
                    const char **path, struct error *err)
{
    struct query q;

    *path = NULL;
    if (!w->folder)
        return true;
    if (!sql_query(
            s, &q, err,
            "SELECT substr(path, 1, 5000) FROM jobs WHERE state = 'waiting' AND kind <> 'compile' "
            "AND substr(path, 1, length(CAST(?1 AS TEXT))) <> ?1 "
            "AND substr(path, 1, length(CAST(?2 AS TEXT))) <> ?2 LIMIT 1",
            "tt", w->folder, w->real_folder))
        return false;
    if (sql_next(&q, err))
        *path = col_text(&q, 0, a);
    while (*path && sql_next(&q, err))
        ;
    return sql_done(&q);
}

#define WORKER_SEEN(now, lock) "UPDATE workers SET seen_ms = " now " WHERE id = ?"
#define JOB_RENEW(now, lock)                                                                       \
    "UPDATE jobs SET lease_ms = " now " + ?1 WHERE id = ?2 AND worker = ?3 AND state = 'leased' "  \
    "RETURNING id"

bool job_beat(struct store *s, const struct queue_worker *w, const struct job *job, bool *mine,
              struct error *err)
{
    static const char *const seen[] = BY_ENGINE(WORKER_SEEN), *const renew[] = BY_ENGINE(JOB_RENEW);
    int64_t id = 0;
    bool ok;

    if (!sql_begin(s, err))
        return false;
    ok = sql_run(s, err, seen[s->engine->dialect], "l", w->id) &&
         (!job ||
          sql_int(s, 0, &id, err, renew[s->engine->dialect], "ill", lease_of(w), job->id, w->id));
    *mine = job && id == job->id;
    return sql_end(s, ok, err);
}

/* ---- ending ----------------------------------------------------------------- */

const char *job_title(const struct job *job, char out[JOB_TITLE])
{
    if (job->suite)
        snprintf(out, JOB_TITLE, "task %d of %s", job->number, job->suite);
    else
        snprintf(out, JOB_TITLE, "job %lld (%s)", (long long)job->id, job_kind_names[job->kind]);
    return out;
}

#define JOB_STOP(now, lock)                                                                        \
    "UPDATE jobs SET state = ?1, problem = ?2, result = ?3, ended_ms = " now " "                   \
    "WHERE id = ?4 AND worker = ?5 AND state = 'leased' RETURNING id"

static bool end_both(struct store *s, const struct queue_worker *w, const struct job *job,
                     const struct job_end *end, struct error *err)
{
    static const char *const sql[] = BY_ENGINE(JOB_STOP);
    int64_t id = 0;

    if (!sql_int(s, 0, &id, err, sql[s->engine->dialect], "tttll",
                 job_state_names[end->ended ? JOB_DONE : JOB_FAILED],
                 end->problem ? end->problem : "", end->result ? end->result : "", job->id, w->id))
        return false;
    /* Another worker has the job and will report it. */
    return id != job->id ||
           ((!job->suite ||
             sql_run(s, err,
                     "UPDATE suite_tasks SET ended = ?, problem = ?, wall_ms = wall_ms + ? "
                     "WHERE suite = ? AND number = ?",
                     "itlti", (int)end->ended, end->problem ? end->problem : "", end->wall_ms,
                     job->suite, job->number)) &&
            sql_run(s, err, "UPDATE workers SET jobs = jobs + 1, done = done + ? WHERE id = ?",
                    "il", (int)end->ended, w->id));
}

/* Most ends of a suite's tasks wake no process, because there is nothing to claim. The suite's
 * watcher is woken by the last one, and the owner of a single job by its end. */
static bool wake_after_last(struct store *s, const char *suite, struct error *err)
{
    /* Each follows the order of an index: with stale statistics the server would read all jobs, for
     * every end. */
    static const char *const sql[] = {
        "SELECT id FROM jobs WHERE suite = ? AND state = 'waiting' ORDER BY priority DESC, id "
        "LIMIT 1",
        "SELECT id FROM jobs WHERE suite = ? AND state = 'leased' ORDER BY lease_ms LIMIT 1"};
    int64_t left = 0;

    for (size_t i = 0; suite && !left && i < ARRAY_LEN(sql); i++)
        if (!sql_int(s, 0, &left, err, sql[i], "t", suite))
            return false;
    return left != 0 || s->engine->wake(s, err);
}

bool job_end(struct store *s, const struct queue_worker *w, const struct job *job,
             const struct job_end *end, struct error *err)
{
    char title[JOB_TITLE];

    return (sql_begin(s, err) && sql_end(s, end_both(s, w, job, end, err), err) &&
            wake_after_last(s, job->suite, err)) ||
           error_add(err, "storing the end of %s", job_title(job, title));
}

#define JOB_BACK(now, lock)                                                                        \
    "UPDATE jobs SET state = 'waiting', worker = NULL, tries = tries - ?1, problem = ?2, "         \
    "after_ms = " now " + ?3 WHERE id = ?4 AND worker = ?5 AND state = 'leased'"

bool job_return(struct store *s, const struct queue_worker *w, const struct job *job, bool counts,
                int after_ms, const char *problem, struct error *err)
{
    static const char *const sql[] = BY_ENGINE(JOB_BACK);
    char title[JOB_TITLE];

    if (counts && job->tries >= JOB_TRIES)
        return job_end(s, w, job, &(struct job_end){.problem = problem}, err);
    return (sql_begin(s, err) &&
            sql_end(s,
                    sql_run(s, err, sql[s->engine->dialect], "itill", counts ? 0 : 1,
                            problem ? problem : "", after_ms, job->id, w->id),
                    err) &&
            s->engine->wake(s, err)) ||
           error_add(err, "giving back %s", job_title(job, title));
}

bool jobs_wait(struct store *s, int ms, struct error *err)
{
    return s->engine->wait(s, ms, err);
}

/* ---- listing ------------------------------------------------------------ */

/* Finished jobs are never counted one by one: there may be a million. Each worker's row has its
 * number of jobs; the others are found by a partial index. */
static bool count_all(struct store *s, struct job_counts *out, struct error *err)
{
    return sql_int(s, 0, &out->of[JOB_WAITING], err,
                   "SELECT count(*) FROM jobs WHERE state = 'waiting'", "") &&
           sql_int(s, 0, &out->of[JOB_LEASED], err,
                   "SELECT count(*) FROM jobs WHERE state = 'leased'", "") &&
           sql_int(s, 0, &out->of[JOB_FAILED], err,
                   "SELECT count(*) FROM jobs WHERE state = 'failed'", "") &&
           sql_int(s, 0, &out->of[JOB_DONE], err,
                   "SELECT CAST(coalesce(sum(done), 0) AS BIGINT) FROM workers", "");
}

bool jobs_count(struct store *s, const char *suite, struct job_counts *out, struct error *err)
{
    struct query q;
    bool ok = true;
    int state;

    *out = (struct job_counts){0};
    if (!suite)
        return count_all(s, out, err);
    if (!sql_query(s, &q, err, "SELECT state, count(*) FROM jobs WHERE suite = ? GROUP BY state",
                   "t", suite))
        return false;
    while (ok && sql_next(&q, err)) {
        ok = col_name(&q, 0, job_state_names, JOB_STATE_COUNT, &state, err);
        if (ok)
            out->of[state] = col_long(&q, 1);
    }
    return sql_done(&q) && ok;
}

#define ENDED(now, lock)                                                                           \
    "SELECT CAST(coalesce(sum(CASE WHEN state = 'done' AND ended_ms > " now " - 600000 "           \
    "THEN 1 ELSE 0 END), 0) AS BIGINT), "                                                          \
    "CAST(coalesce(sum(CASE WHEN state = 'done' THEN 1 ELSE 0 END), 0) AS BIGINT), "               \
    "CAST(coalesce(sum(CASE WHEN state = 'failed' THEN 1 ELSE 0 END), 0) AS BIGINT) "              \
    "FROM jobs WHERE state IN ('done', 'failed') AND ended_ms > " now " - 3600000"
#define SPENT(now, lock)                                                                           \
    "SELECT count(*), CAST(coalesce(sum(CASE WHEN cost_usd > 0 THEN cost_usd ELSE 0 END), 0) AS "  \
    "DOUBLE PRECISION) FROM calls WHERE at_ms > " now " - 86400000"

bool jobs_rates(struct store *s, struct job_rates *out, struct error *err)
{
    static const char *const ended[] = BY_ENGINE(ENDED), *const spent[] = BY_ENGINE(SPENT);
    struct query q;

    *out = (struct job_rates){0};
    if (!sql_query(s, &q, err, ended[s->engine->dialect], ""))
        return false;
    if (sql_next(&q, err)) {
        out->done_10min = col_long(&q, 0);
        out->done_hour = col_long(&q, 1);
        out->failed_hour = col_long(&q, 2);
    }
    if (!sql_done(&q) || !sql_query(s, &q, err, spent[s->engine->dialect], ""))
        return false;
    if (sql_next(&q, err)) {
        out->calls_day = col_long(&q, 0);
        out->cost_day_usd = col_double(&q, 1);
    }
    return sql_done(&q);
}

#define COMPILERS(now, lock)                                                                       \
    "SELECT count(*) FROM workers WHERE takes >= 2 AND seen_ms > " now " - ?1"

bool workers_who_compile(struct store *s, int64_t *count, struct error *err)
{
    static const char *const sql[] = BY_ENGINE(COMPILERS);

    return sql_int(s, 0, count, err, sql[s->engine->dialect], "i", (int)LEASE_MS);
}

#define WORKERS(now, lock)                                                                         \
    "SELECT w.id, w.host, w.kind, w.gpu, w.pid, j.suite, j.path, " now " - w.seen_ms, "            \
    "coalesce(" now " - j.claimed_ms, 0), w.jobs, j.kind FROM workers w "                          \
    "LEFT JOIN jobs j ON j.worker = w.id AND j.state = 'leased' "                                  \
    "WHERE w.seen_ms > " now " - ?1 ORDER BY w.id"

bool workers_list(struct store *s, struct arena *a, struct worker_info **out, size_t *count,
                  struct error *err)
{
    static const char *const sql[] = BY_ENGINE(WORKERS);
    struct worker_info *list;
    struct query q;
    int64_t most;

    *count = 0;
    if (!sql_int(s, 0, &most, err, "SELECT count(*) FROM workers WHERE seen_ms > 0", "") ||
        !sql_query(s, &q, err, sql[s->engine->dialect], "i", (int)WORKER_GONE_MS))
        return false;
    list = arena_array(a, (size_t)most + 1, sizeof(*list));
    while (*count < (size_t)most && sql_next(&q, err))
        list[(*count)++] = (struct worker_info){.id = col_long(&q, 0),
                                                .host = col_text(&q, 1, a),
                                                .kind = col_text(&q, 2, a),
                                                .gpu = col_text(&q, 3, a),
                                                .pid = col_int(&q, 4),
                                                .suite = col_text(&q, 5, a),
                                                .task = col_text(&q, 6, a),
                                                .seen_ms = col_long(&q, 7),
                                                .busy_ms = col_long(&q, 8),
                                                .jobs = col_long(&q, 9),
                                                .job = col_text(&q, 10, a)};
    *out = list;
    return sql_done(&q);
}
