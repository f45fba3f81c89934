/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - write attempts and their outcomes, one transaction each.
 *
 * Hides which table holds which part of a record.
 *
 * Invariants
 * 1. An attempt's rows (candidate, verdict, findings, build, test,
 *    measurement, baselines) appear together or not at all.
 * 2. Breaking the numbering of attempts is our own mistake: BUG().
 */
#include "base/clock.h"
#include "store/run.h"

const char *const attempt_step_names[STEP_COUNT] = {"propose", "build", "test", "measure"};

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

static const char *sha_or_null(const char *sha256)
{
    return *sha256 ? sha256 : NULL;
}

/* ---- an attempt begins -------------------------------------------------- */

/* The next number, or the last one again if it was interrupted. */
static bool check_number(struct run *r, int number, bool *again, struct error *err)
{
    int64_t last, open;

    if (!sql_int(r->store, 0, &last, err, "SELECT max(number) FROM attempts WHERE run = ?", "t",
                 r->id) ||
        !sql_int(r->store, 0, &open, err,
                 "SELECT count(*) FROM attempts WHERE run = ? AND ended_ms IS NULL", "t", r->id))
        return false;
    *again = open && number == last;
    if (!*again && (open || number != last + 1))
        BUG("attempt %d of %s begins after %lld%s", number, r->id, (long long)last,
            open ? ", which has not ended" : "");
    return true;
}

static bool attempt_forget(struct run *r, int number, struct error *err)
{
    int64_t candidate;

    return sql_int(r->store, 0, &candidate, err,
                   "SELECT candidate FROM attempts WHERE run = ? AND number = ?", "ti", r->id,
                   number) &&
           sql_run(r->store, err, "DELETE FROM attempts WHERE run = ? AND number = ?", "ti", r->id,
                   number) &&
           sql_run(r->store, err, "DELETE FROM candidates WHERE id = ?", "l", candidate);
}

/* Rows that refer to others first. */
bool run_start_over(struct run *r, struct error *err)
{
    static const char *const steps[] = {
        "DELETE FROM findings WHERE run = ?",   "DELETE FROM verdicts WHERE run = ?",
        "DELETE FROM builds WHERE run = ?",     "DELETE FROM tests WHERE run = ?",
        "DELETE FROM baselines WHERE run = ?",  "DELETE FROM measurements WHERE run = ?",
        "DELETE FROM profiles WHERE run = ?",   "DELETE FROM acceptances WHERE run = ?",
        "DELETE FROM shapes WHERE run = ?",     "DELETE FROM attempts WHERE run = ?",
        "DELETE FROM candidates WHERE run = ?",
    };
    bool ok = sql_begin(r->store, err);

    if (!ok)
        return false;
    for (size_t i = 0; ok && i < ARRAY_LEN(steps); i++)
        ok = sql_run(r->store, err, steps[i], "t", r->id);
    return sql_end(r->store, ok, err) || error_add(err, "judging %s again", r->id);
}

static bool attempt_insert(struct run *r, const struct candidate *c, enum stage_kind stage,
                           int parent, struct error *err)
{
    struct store *s = r->store;
    char sha[65];
    int64_t candidate;
    bool again;

    return check_number(r, c->attempt, &again, err) &&
           (!again || attempt_forget(r, c->attempt, err)) && blob_insert(s, c->source, sha, err) &&
           sql_int(s, 0, &candidate, err,
                   "INSERT INTO candidates (run, depth, change, source, parent, steps) VALUES (?1, "
                   "?2, ?3, ?4, (SELECT candidate FROM attempts WHERE run = ?1 AND number = ?5), "
                   "?6) RETURNING id",
                   "tittit", r->id, c->depth, or_empty(c->change), sha, parent, c->steps) &&
           sql_run(s, err,
                   "INSERT INTO attempts (run, number, repair, stage, candidate, started_ms) "
                   "VALUES (?, ?, ?, ?, ?, ?)",
                   "tiitll", r->id, c->attempt, c->repair, stage_names[stage], candidate,
                   clock_unix_ms());
}

bool run_attempt_begin(struct run *r, const struct candidate *c, enum stage_kind stage, int parent,
                       struct error *err)
{
    return (sql_begin(r->store, err) &&
            sql_end(r->store, attempt_insert(r, c, stage, parent, err), err)) ||
           error_add(err, "storing attempt %d of %s", c->attempt, r->id);
}

/* ---- an attempt ends ---------------------------------------------------- */

static bool verdict_insert(struct run *r, int attempt, const struct verdict *v, struct error *err)
{
    if (!sql_run(r->store, err,
                 "INSERT INTO verdicts (run, attempt, kind, summary, detail, advice) "
                 "VALUES (?, ?, ?, ?, ?, ?)",
                 "titttt", r->id, attempt, verdict_names[v->kind], or_empty(v->summary),
                 or_empty(v->detail), v->advice))
        return false;
    for (int i = 0; i < v->finding_count; i++) {
        const struct finding *f = &v->findings[i];
        if (!sql_run(r->store, err,
                     "INSERT INTO findings (run, attempt, number, kind, place, line, text) "
                     "VALUES (?, ?, ?, ?, ?, ?, ?)",
                     "tiitttt", r->id, attempt, i, or_empty(f->kind), or_empty(f->where),
                     or_empty(f->line), or_empty(f->text)))
            return false;
    }
    return true;
}

/* Code is large: only that of a kernel that passed can be needed later. */
static bool code_insert(struct run *r, const struct build_result *b, bool passed, struct error *err)
{
    char sha[65];

    return !passed || !b->code_hash ||
           (blob_insert(r->store, b->code, sha, err) && blob_insert(r->store, b->ptx, sha, err));
}

static bool build_insert(struct run *r, int attempt, const struct build_result *b, bool passed,
                         struct error *err)
{
    char launches[65], names[65], resources[65];

    return blob_insert_json(r->store, b->launches, launches, err) &&
           code_insert(r, b, passed, err) && blob_insert_json(r->store, b->names, names, err) &&
           blob_insert_json(r->store, b->resources, resources, err) &&
           sql_run(r->store, err,
                   "INSERT INTO builds (run, attempt, build_ms, cached, launches, names, "
                   "resources, code, ptx) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                   "tiiittttt", r->id, attempt, b->build_ms, (int)b->cached, sha_or_null(launches),
                   sha_or_null(names), sha_or_null(resources), b->code_hash, b->ptx_hash);
}

static bool test_insert(struct run *r, int attempt, const struct test_result *t, struct error *err)
{
    const struct accuracy *c = &t->accuracy;
    char counters[65];

    return blob_insert_json(r->store, t->counters, counters, err) &&
           sql_run(r->store, err,
                   "INSERT INTO tests (run, attempt, test_ms, seed, deterministic, draws, "
                   "distributions, max_abs, max_rel, rms_rel, reference_max_abs, "
                   "reference_max_rel, reference_rms_rel, counters, accuracy_class) "
                   "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                   "tiitiiiddddddtt", r->id, attempt, t->test_ms, or_empty(t->seed),
                   (int)t->deterministic, c->draws, c->distributions, c->max_abs, c->max_rel,
                   c->rms_rel, c->reference_max_abs, c->reference_max_rel, c->reference_rms_rel,
                   sha_or_null(counters), or_empty(t->accuracy_class));
}

static bool measurement_insert(struct run *r, int attempt, const struct measurement *m,
                               struct error *err)
{
    char parts[65];

    if (!blob_insert_json(r->store, m->parts, parts, err) ||
        !sql_run(r->store, err,
                 "INSERT INTO measurements (run, attempt, modelled, time_us, warm_us, spread, "
                 "floor_us, bound, trivial, parts, machine) "
                 "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                 "tiiddddtttt", r->id, attempt, (int)m->modelled, m->time_us, m->warm_us, m->spread,
                 m->floor_us, or_empty(m->bound), or_empty(m->trivial), sha_or_null(parts),
                 or_empty(m->machine)))
        return false;
    for (int i = 0; i < m->baseline_count; i++) {
        const struct baseline *b = &m->baselines[i];
        if (!sql_run(r->store, err,
                     "INSERT INTO baselines (run, attempt, number, name, cold_us, warm_us) "
                     "VALUES (?, ?, ?, ?, ?, ?)",
                     "tiitdd", r->id, attempt, i, or_empty(b->name), b->cold_us, b->warm_us))
            return false;
    }
    return true;
}

static bool measurement_replace(struct run *r, int attempt, const struct measurement *m,
                                struct error *err)
{
    return sql_run(r->store, err, "DELETE FROM baselines WHERE run = ? AND attempt = ?", "ti",
                   r->id, attempt) &&
           sql_run(r->store, err, "DELETE FROM measurements WHERE run = ? AND attempt = ?", "ti",
                   r->id, attempt) &&
           measurement_insert(r, attempt, m, err);
}

bool run_measured_again(struct run *r, int attempt, const struct measurement *m, struct error *err)
{
    return (sql_begin(r->store, err) &&
            sql_end(r->store, measurement_replace(r, attempt, m, err), err)) ||
           error_add(err, "storing the last measurement of attempt %d of %s", attempt, r->id);
}

static bool shape_insert(struct run *r, int attempt, int number, const struct shape_result *x,
                         struct error *err)
{
    char inputs[65], outputs[65], launches[65];

    return blob_insert_json(r->store, x->inputs, inputs, err) &&
           blob_insert_json(r->store, x->outputs, outputs, err) &&
           blob_insert_json(r->store, x->launches, launches, err) &&
           sql_run(r->store, err,
                   "INSERT INTO shapes (run, attempt, number, label, weight, inputs, outputs, "
                   "kind, summary, time_us, floor_us, launches, module_hash) "
                   "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                   "tiitdttttddtt", r->id, attempt, number, or_empty(x->label), x->weight,
                   sha_or_null(inputs), sha_or_null(outputs), verdict_names[x->verdict.kind],
                   or_empty(x->verdict.summary), x->time_us, x->floor_us, sha_or_null(launches),
                   or_empty(x->module_hash));
}

static bool outcome_insert(struct run *r, int attempt, const struct attempt_outcome *o,
                           struct error *err)
{
    int64_t number;

    if (!sql_int(r->store, 0, &number, err,
                 "UPDATE attempts SET ended_ms = ?, step = ?, kept = ? "
                 "WHERE run = ? AND number = ? AND ended_ms IS NULL RETURNING number",
                 "ltiti", clock_unix_ms(), attempt_step_names[o->step], (int)o->kept, r->id,
                 attempt))
        return false;
    if (number != attempt)
        BUG("attempt %d of %s ends, but has not begun", attempt, r->id);
    for (int i = 0; i < o->shape_count; i++)
        if (!shape_insert(r, attempt, i, &o->shapes[i], err))
            return false;
    return verdict_insert(r, attempt, &o->verdict, err) &&
           (!o->build ||
            build_insert(r, attempt, o->build, o->verdict.kind == VERDICT_PASS, err)) &&
           (!o->test || test_insert(r, attempt, o->test, err)) &&
           (!o->measurement || measurement_insert(r, attempt, o->measurement, err));
}

bool run_attempt_end(struct run *r, int attempt, const struct attempt_outcome *outcome,
                     struct error *err)
{
    return (sql_begin(r->store, err) &&
            sql_end(r->store, outcome_insert(r, attempt, outcome, err), err)) ||
           error_add(err, "storing the verdict on attempt %d of %s", attempt, r->id);
}

/* ---- acceptance --------------------------------------------------------- */

bool run_accept_add(struct run *r, int attempt, const struct acceptance *what, struct error *err)
{
    const struct verdict *v = &what->verdict;

    return (sql_begin(r->store, err) &&
            sql_end(r->store,
                    sql_run(r->store, err,
                            "INSERT INTO acceptances (run, attempt, at_ms, kind, "
                            "summary, detail, note) VALUES (?, ?, ?, ?, ?, ?, ?) "
                            "ON CONFLICT (run, attempt) DO UPDATE SET at_ms = excluded.at_ms, "
                            "kind = excluded.kind, summary = excluded.summary, "
                            "detail = excluded.detail, note = excluded.note",
                            "tiltttt", r->id, attempt, clock_unix_ms(), verdict_names[v->kind],
                            or_empty(v->summary), or_empty(v->detail), or_empty(what->note)),
                    err)) ||
           error_add(err, "storing the acceptance of attempt %d of %s", attempt, r->id);
}

/* ---- profiles ----------------------------------------------------------- */

/* A resumed loop may profile the same kernel again: the later profile replaces the first. */
static bool profile_insert(struct run *r, int attempt, const struct profile *p, struct error *err)
{
    char text[65], data[65];

    return blob_insert(r->store, text_of(or_empty(p->text)), text, err) &&
           blob_insert_json(r->store, p->data, data, err) &&
           sql_run(r->store, err,
                   "INSERT INTO profiles (run, attempt, source, text, data) "
                   "VALUES (?, ?, ?, ?, ?) ON CONFLICT (run, attempt) DO UPDATE SET "
                   "source = excluded.source, text = excluded.text, data = excluded.data",
                   "tittt", r->id, attempt, or_empty(p->source), text, sha_or_null(data));
}

bool run_profile_add(struct run *r, int attempt, const struct profile *p, struct error *err)
{
    return (sql_begin(r->store, err) &&
            sql_end(r->store, profile_insert(r, attempt, p, err), err)) ||
           error_add(err, "storing the profile of attempt %d of %s", attempt, r->id);
}
