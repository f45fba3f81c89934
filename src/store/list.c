/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.c - list runs, one line each, and find a run by name.
 *
 * Hides how the best kernel of a run is found: the fastest attempt that
 * passed and that acceptance did not refuse; if nothing was measured, the earliest of those. If all
 * were refused, the fastest of them.
 */
#include "base/json.h"
#include "store/read.h"
#include "store/run.h"

#include <math.h>
#include <string.h>

/* Columns in the order info_fill() reads them. */
#define INFO_COLUMNS                                                                               \
    "SELECT r.id, t.name, r.model, r.device, r.suite, r.state, r.reason, r.started_ms, "           \
    "  coalesce(r.ended_ms, 0), "                                                                  \
    "  (SELECT count(*) FROM attempts WHERE run = r.id), "                                         \
    "  (SELECT count(*) FROM calls WHERE run = r.id), "                                            \
    "  (SELECT CAST(coalesce(sum(CASE WHEN prompt_tokens > 0 THEN prompt_tokens ELSE 0 END + "     \
    "    CASE WHEN output_tokens > 0 THEN output_tokens ELSE 0 END), 0) AS BIGINT) FROM calls "    \
    "    WHERE run = r.id), "                                                                      \
    "  (SELECT CASE WHEN max(cost_usd) < 0 THEN -1 ELSE "                                          \
    "    coalesce(sum(CASE WHEN cost_usd > 0 THEN cost_usd ELSE 0 END), 0) END "                   \
    "    FROM calls WHERE run = r.id), r.owner "                                                   \
    "FROM runs r JOIN tasks t ON t.id = r.task "

static const char *device_label(const char *line, struct arena *a, bool *unvalidated)
{
    json_error_t ignored;
    json_t *d = json_loads(line, 0, &ignored);
    const char *models = json_string_or(d, "models", NULL);
    const char *name = json_string_or(d, "name", "unknown");
    const char *label = models ? arena_printf(a, "%s as %s", name, models) : arena_strdup(a, name);

    *unvalidated = !modelled_validated(models);
    json_decref(d);
    return label;
}

static double positive(double v)
{
    return isfinite(v) && v > 0 ? v : 0;
}

static bool find_first(struct store *s, struct run_info *o, struct error *err)
{
    struct query q;

    if (!sql_query(s, &q, err,
                   "SELECT m.time_us FROM attempts a JOIN candidates c ON c.id = a.candidate "
                   "JOIN verdicts v ON v.run = a.run AND v.attempt = a.number "
                   "JOIN measurements m ON m.run = a.run AND m.attempt = a.number "
                   "WHERE a.run = ? AND v.kind = 'pass' AND m.time_us > 0 "
                   "ORDER BY c.depth, a.number LIMIT 1",
                   "t", o->id))
        return false;
    if (sql_next(&q, err))
        o->first_us = positive(col_double(&q, 0));
    return sql_done(&q);
}

const char *const accepted_names[ACCEPTED_COUNT] = {"not asked", "yes", "no"};

static bool find_best(struct store *s, struct arena *a, struct run_info *o, struct error *err)
{
    struct query q;
    int accepted = ACCEPTED_NOT_ASKED;
    bool ok = true;

    o->best_depth = -1;
    o->accepted_why = "";
    if (!sql_query(s, &q, err,
                   "SELECT a.number, c.depth, m.time_us, coalesce(m.modelled, 0), "
                   "  (SELECT cold_us FROM baselines b WHERE b.run = a.run AND "
                   "    b.attempt = a.number AND b.name = 'eager'), "
                   "  CASE WHEN x.kind IS NULL THEN 'not asked' WHEN x.kind = 'pass' THEN 'yes' "
                   "    ELSE 'no' END, "
                   "  CASE WHEN x.kind = 'pass' THEN x.note ELSE x.kind || ': ' || x.summary END "
                   "FROM attempts a JOIN candidates c ON c.id = a.candidate "
                   "JOIN verdicts v ON v.run = a.run AND v.attempt = a.number "
                   "LEFT JOIN measurements m ON m.run = a.run AND m.attempt = a.number "
                   "LEFT JOIN acceptances x ON x.run = a.run AND x.attempt = a.number "
                   "WHERE a.run = ? AND v.kind = 'pass' "
                   "ORDER BY coalesce(x.kind, 'pass') <> 'pass', m.time_us IS NULL OR m.time_us <= "
                   "0, m.time_us, a.number LIMIT 1",
                   "t", o->id))
        return false;
    if (sql_next(&q, err)) {
        o->best_attempt = col_int(&q, 0);
        o->best_depth = col_int(&q, 1);
        o->best_us = positive(col_double(&q, 2));
        o->modelled = col_int(&q, 3);
        o->eager_us = positive(col_double(&q, 4));
        ok = col_name(&q, 5, accepted_names, ACCEPTED_COUNT, &accepted, err);
        o->accepted = (enum accepted)accepted;
        if (accepted != ACCEPTED_NOT_ASKED)
            o->accepted_why = col_text(&q, 6, a);
    }
    return sql_done(&q) && ok;
}

static bool info_fill(struct query *q, struct arena *a, struct run_info *o, struct error *err)
{
    int state;

    o->id = col_text(q, 0, a);
    o->task = col_text(q, 1, a);
    o->model = col_text(q, 2, a);
    o->device = device_label(col_text(q, 3, a), a, &o->unvalidated);
    o->suite = col_text(q, 4, a);
    if (!col_name(q, 5, run_state_names, RUN_STATE_COUNT, &state, err))
        return false;
    o->state = (enum run_state)state;
    o->reason = col_text(q, 6, a);
    o->started_ms = col_long(q, 7);
    o->ended_ms = col_long(q, 8);
    o->attempts = col_int(q, 9);
    o->calls = col_int(q, 10);
    o->tokens = col_long(q, 11);
    o->cost_usd = col_double(q, 12);
    o->owner = col_text(q, 13, a);
    o->alive = o->state == RUN_RUNNING && store_run_driven(q->store, o->id);
    return find_best(q->store, a, o, err) && find_first(q->store, o, err);
}

bool run_info_read(struct store *s, const char *id, struct arena *a, struct run_info *out,
                   struct error *err)
{
    struct query q;
    bool found = false, ok = true;

    if (!sql_query(s, &q, err, INFO_COLUMNS "WHERE r.id = ?", "t", id))
        return false;
    if (sql_next(&q, err)) {
        found = true;
        ok = info_fill(&q, a, out, err);
    }
    if (!sql_done(&q) || !ok)
        return false;
    return found || error_set(err, ERROR_USE, "there is no run %s in %s", id, s->dir);
}

/* Two statements: with a suite its own index is used, without one the index by time. */
#define NEWEST "ORDER BY r.started_ms DESC, r.rowid DESC LIMIT ?1"

static bool list_begin(struct store *s, const char *suite, int64_t most, int64_t *total,
                       struct query *q, struct error *err)
{
    if (suite)
        return sql_int(s, 0, total, err, "SELECT count(*) FROM runs WHERE suite = ?", "t", suite) &&
               sql_query(s, q, err, INFO_COLUMNS "WHERE r.suite = ?2 " NEWEST, "lt",
                         most < *total ? most : *total, suite);
    return sql_int(s, 0, total, err, "SELECT count(*) FROM runs", "") &&
           sql_query(s, q, err, INFO_COLUMNS NEWEST, "l", most < *total ? most : *total);
}

bool store_run_newest(struct store *s, const char *suite, int64_t most, struct arena *a,
                      struct run_info **out, size_t *count, int64_t *total, struct error *err)
{
    struct query q;
    size_t n = 0;
    bool ok = true;

    if (!read_begin(s, err))
        return false;
    if (!list_begin(s, suite, most, total, &q, err))
        return read_end(s, false);
    most = most < *total ? most : *total;
    struct run_info *list = arena_array(a, (size_t)most + 1, sizeof(*list));
    while (ok && n < (size_t)most && sql_next(&q, err))
        ok = info_fill(&q, a, &list[n++], err);
    ok = sql_done(&q) && ok;
    *out = list;
    *count = n;
    return read_end(s, ok);
}

bool store_run_list(struct store *s, const char *suite, struct arena *a, struct run_info **out,
                    size_t *count, struct error *err)
{
    int64_t total;

    return store_run_newest(s, suite, INT64_MAX, a, out, count, &total, err);
}

/* ---- a run by its name -------------------------------------------------- */

static bool refuse_name(struct store *s, const char *name, int64_t matches, struct error *err)
{
    if (matches > 1)
        error_set(err, ERROR_USE, "%lld runs in %s begin with \"%s\"", (long long)matches, s->dir,
                  name);
    else if (strcmp(name, "last") == 0)
        error_set(err, ERROR_USE, "no runs yet in %s", s->dir);
    else
        error_set(err, ERROR_USE, "there is no run %s in %s", name, s->dir);
    return error_hint(err, "`cutegen runs` lists them; \"last\" is the newest");
}

/* Ids with a common prefix are adjacent in the index; no character of an id sorts after ~. */
#define BEGINS_SO "id >= ?1 AND id < ?1 || '~'"

bool store_run_find(struct store *s, const char *name, struct arena *a, const char **id,
                    struct error *err)
{
    const char *found = NULL;
    int64_t matches = 0;

    if (!strcmp(name, "last")) {
        if (!sql_first_text(s, a, &found, err,
                            "SELECT id FROM runs ORDER BY started_ms DESC, rowid DESC LIMIT 1",
                            NULL))
            return false;
    } else if (!sql_first_text(s, a, &found, err, "SELECT id FROM runs WHERE id = ?1", name)) {
        return false; /* try the complete id first: one id may be a prefix of another */
    } else if (!found) {
        if (!sql_first_text(s, a, &found, err, "SELECT id FROM runs WHERE " BEGINS_SO " LIMIT 1",
                            name) ||
            !sql_int(s, 0, &matches, err, "SELECT count(*) FROM runs WHERE " BEGINS_SO, "t", name))
            return false;
    }
    if (!found || matches > 1 || !*name)
        return refuse_name(s, name, matches, err);
    *id = found;
    return true;
}

bool run_known_best(struct run *r, struct arena *a, struct text *source, const char **steps,
                    const char **by, struct error *err)
{
    struct store *s = r->store;
    struct query q;
    const char *sha256 = NULL;

    *source = (struct text){NULL, 0};
    *steps = NULL;
    if (!sql_query(s, &q, err,
                   "SELECT c.source, o.id, c.steps FROM runs r JOIN tasks t ON t.id = r.task "
                   "JOIN tasks u ON u.source = t.source AND u.description = t.description "
                   "JOIN runs o ON o.task = u.id AND o.device = r.device AND o.model = r.model "
                   "  AND o.id <> r.id "
                   "JOIN attempts a ON a.run = o.id JOIN candidates c ON c.id = a.candidate "
                   "JOIN verdicts v ON v.run = a.run AND v.attempt = a.number "
                   "JOIN measurements m ON m.run = a.run AND m.attempt = a.number "
                   "WHERE r.id = ? AND v.kind = 'pass' AND m.time_us > 0 "
                   "AND NOT EXISTS (SELECT 1 FROM acceptances x WHERE x.run = a.run "
                   "  AND x.attempt = a.number AND x.kind <> 'pass') "
                   "ORDER BY m.time_us, o.started_ms LIMIT 1",
                   "t", r->id))
        return false;
    if (sql_next(&q, err)) {
        sha256 = col_text(&q, 0, a);
        *by = col_text(&q, 1, a);
        *steps = col_text(&q, 2, a);
    }
    return sql_done(&q) && (!sha256 || blob_get(s, sha256, a, source, err));
}
