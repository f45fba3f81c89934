/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prune.c - removes texts of old runs; see prune.h for what stays.
 *
 * Invariants
 * 1. A run is pruned in one transaction, and once: runs.pruned_ms says so. It is not resumed after.
 * 2. A text is removed only while no writer can be about to refer to it: every writer stores a text
 *    and the reference in one transaction, and the last step excludes all writers.
 */
#include "store/prune.h"
#include "base/clock.h"
#include "store/read.h"

#define GONE "removed by `cutegen store prune`\n"

/* ?1 the run, ?2 the placeholder of a removed text, ?3 the best attempt. Each statement uses ?3, so
 * that it has all three parameters. */
#define OTHER(column)                                                                              \
    column " <> ?3 AND " column " NOT IN (SELECT attempt FROM exports WHERE run = ?1)"

static const char *const steps[] = {
    "UPDATE candidates SET source = ?2 WHERE run = ?1 AND id IN "
    "(SELECT candidate FROM attempts WHERE run = ?1 AND " OTHER("number") ")",
    "UPDATE builds SET launches = NULL, names = NULL, resources = NULL, code = NULL, ptx = NULL "
    "WHERE run = ?1 AND " OTHER("attempt"),
    "UPDATE tests SET counters = NULL WHERE run = ?1 AND " OTHER("attempt"),
    "UPDATE measurements SET parts = NULL WHERE run = ?1 AND " OTHER("attempt"),
    "UPDATE shapes SET inputs = NULL, outputs = NULL, launches = NULL "
    "WHERE run = ?1 AND " OTHER("attempt"),
    "UPDATE verdicts SET detail = '' WHERE run = ?1 AND " OTHER("attempt"),
    "DELETE FROM profiles WHERE run = ?1 AND " OTHER("attempt"),
    "UPDATE calls SET reply = ?2 WHERE run = ?1 AND ?3 >= 0",
    "DELETE FROM messages WHERE call IN (SELECT id FROM calls WHERE run = ?1 AND ?3 >= 0)",
    "DELETE FROM events WHERE run = ?1 AND ?3 >= 0",
};

/* Every column that refers to a text. */
#define UNUSED                                                                                     \
    "SELECT sha256 FROM blobs "                                                                    \
    "EXCEPT SELECT source FROM tasks EXCEPT SELECT description FROM tasks "                        \
    "EXCEPT SELECT source FROM candidates "                                                        \
    "EXCEPT SELECT launches FROM builds EXCEPT SELECT names FROM builds "                          \
    "EXCEPT SELECT resources FROM builds "                                                         \
    "EXCEPT SELECT code FROM builds EXCEPT SELECT ptx FROM builds "                                \
    "EXCEPT SELECT counters FROM tests EXCEPT SELECT parts FROM measurements "                     \
    "EXCEPT SELECT text FROM profiles EXCEPT SELECT data FROM profiles "                           \
    "EXCEPT SELECT reply FROM calls EXCEPT SELECT content FROM messages "                          \
    "EXCEPT SELECT inputs FROM shapes EXCEPT SELECT outputs FROM shapes "                          \
    "EXCEPT SELECT launches FROM shapes EXCEPT SELECT source FROM jobs"

static bool prune_run(struct store *s, const struct run_info *run, struct error *err)
{
    char gone[65];
    bool ok;

    if (!sql_begin(s, err))
        return false;
    ok = blob_insert(s, text_of(GONE), gone, err);
    for (size_t i = 0; ok && i < ARRAY_LEN(steps); i++)
        ok = sql_run(s, err, steps[i], "tti", run->id, gone, run->best_attempt);
    ok = ok && sql_run(s, err, "UPDATE runs SET pruned_ms = ? WHERE id = ?", "lt", clock_unix_ms(),
                       run->id);
    return sql_end(s, ok, err) || error_add(err, "pruning run %s", run->id);
}

/* Prevents texts from being stored while we check which are in use. */
static bool shut_out(struct store *s, struct error *err)
{
    return s->engine->dialect != DIALECT_POSTGRES ||
           s->engine->script(s, "LOCK TABLE blobs IN EXCLUSIVE MODE", err);
}

static bool remove_unused(struct store *s, struct prune_done *out, struct error *err)
{
    bool ok;

    if (!sql_begin(s, err))
        return false;
    ok = shut_out(s, err) &&
         sql_int(s, 0, &out->texts, err, "SELECT count(*) FROM (" UNUSED ") AS unused", "") &&
         sql_int(s, 0, &out->bytes, err,
                 "SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM blobs WHERE sha256 IN (" UNUSED
                 ")",
                 "") &&
         sql_run(s, err, "DELETE FROM blobs WHERE sha256 IN (" UNUSED ")", "");
    return sql_end(s, ok, err) || error_add(err, "removing texts that nothing refers to");
}

/* A cache: a missing kernel is compiled again. The jobs that compiled them are no longer needed. */
static bool remove_kernels(struct store *s, int64_t before_ms, struct error *err)
{
    return sql_begin(s, err) &&
           sql_end(s,
                   sql_run(s, err, "DELETE FROM kernels WHERE made_ms < ?", "l", before_ms) &&
                       sql_run(s, err,
                               "DELETE FROM jobs WHERE kind = 'compile' AND ended_ms < ? "
                               "AND state IN ('done', 'failed')",
                               "l", before_ms),
                   err);
}

static bool list_old(struct store *s, int64_t before_ms, struct arena *a, const char ***out,
                     size_t *count, struct error *err)
{
    struct query q;
    int64_t most;

    *count = 0;
    if (!sql_int(s, 0, &most, err,
                 "SELECT count(*) FROM runs WHERE state <> 'running' AND pruned_ms IS NULL "
                 "AND ended_ms < ?",
                 "l", before_ms) ||
        !sql_query(s, &q, err,
                   "SELECT id FROM runs WHERE state <> 'running' AND pruned_ms IS NULL "
                   "AND ended_ms < ? ORDER BY ended_ms",
                   "l", before_ms))
        return false;
    *out = arena_array(a, (size_t)most + 1, sizeof(**out));
    while (*count < (size_t)most && sql_next(&q, err))
        (*out)[(*count)++] = col_text(&q, 0, a);
    return sql_done(&q);
}

bool store_prune(struct store *s, const struct prune_rules *rules, struct prune_done *out,
                 struct error *err)
{
    struct arena *a = arena_new();
    const char **ids = NULL;
    size_t count;
    bool ok = list_old(s, rules->before_ms, a, &ids, &count, err);

    *out = (struct prune_done){0};
    for (size_t i = 0; ok && i < count; i++) {
        struct run_info info = {0};

        ok = rules->dry || (run_info_read(s, ids[i], a, &info, err) && prune_run(s, &info, err));
        out->runs += ok;
    }
    ok = ok &&
         (rules->dry || (remove_kernels(s, rules->before_ms, err) && remove_unused(s, out, err)));
    arena_free(a);
    if (ok && !rules->dry && s->engine->dialect == DIALECT_SQLITE)
        ok = s->engine->script(s, "VACUUM", err); /* shrinks a file; a server does this itself */
    return ok || error_add(err, "pruning %s", s->path);
}

bool store_export_add(struct store *s, const char *run, int attempt, const char *path,
                      struct error *err)
{
    return (sql_begin(s, err) &&
            sql_end(s,
                    sql_run(s, err,
                            "INSERT INTO exports (run, attempt, at_ms, path) VALUES (?, ?, ?, ?)",
                            "tilt", run, attempt, clock_unix_ms(), path),
                    err)) ||
           error_add(err, "noting an export of %s", run);
}
