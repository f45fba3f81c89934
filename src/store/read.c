/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - read a complete run from the store, for the loop to resume and for reports.
 *
 * Hides the joins. Everything is read inside one transaction, so a run that is in progress is seen
 * as a consistent snapshot.
 *
 * Invariants
 * 1. Every returned json_t is owned by history->keep.
 * 2. Attempts and calls come in the order in which they were stored.
 */
#include "store/read.h"

#include "base/json.h"

#include <string.h>

struct row_reader {
    struct store *s;
    struct arena *a;
    struct run_history *h;
    const char *id;
};

/* A JSON column; SQL NULL gives NULL. */
static bool col_json(struct row_reader *r, struct query *q, int i, json_t **out, struct error *err)
{
    json_t *v;

    *out = NULL;
    if (col_null(q, i))
        return true;
    if (!json_parse(col_bytes(q, i), col_title(q, i), &v, err))
        return error_add(err, "%s, run %s", r->s->path, r->id);
    json_array_append_new(r->h->keep, v);
    *out = v;
    return true;
}

static bool count_rows(struct row_reader *r, const char *sql, size_t *out, struct error *err)
{
    int64_t n;
    if (!sql_int(r->s, 0, &n, err, sql, "t", r->id))
        return false;
    *out = (size_t)n;
    return true;
}

/* ---- run, task, device -------------------------------------------------- */

static void fill_dims(const json_t *list, int64_t *out, int *dims)
{
    size_t n = json_array_size(list);

    *dims = (int)(n < MAX_DIMS ? n : MAX_DIMS);
    for (int i = 0; i < *dims; i++)
        out[i] = json_integer_value(json_array_get(list, (size_t)i));
}

static int fill_tensors(const json_t *list, const char *role, struct tensor_info *out)
{
    int n = 0, ignored;
    size_t i;
    json_t *t;

    json_array_foreach(list, i, t)
    {
        if (n == MAX_TENSORS)
            break;
        out[n].name = json_string_or(t, "name", "");
        out[n].dtype = json_string_or(t, "dtype", "");
        out[n].role = json_string_or(t, "role", role);
        fill_dims(json_object_get(t, "shape"), out[n].shape, &out[n].dims);
        fill_dims(json_object_get(t, "strides"), out[n].strides, &ignored);
        n++;
    }
    return n;
}

static void fill_device(const json_t *d, struct device *o)
{
    o->kind = strcmp(json_string_or(d, "kind", "simt"), "cuda") == 0 ? DEVICE_CUDA : DEVICE_SIMT;
    o->index = (int)json_int_or(d, "index", 0);
    o->name = json_string_or(d, "name", "unknown");
    o->models = json_string_or(d, "models", NULL);
    o->arch = json_string_or(d, "arch", NULL);
    o->sm_count = (int)json_int_or(d, "sm_count", 0);
    o->cluster_blocks = (int)json_int_or(d, "cluster_blocks", 0);
    o->smem_block_bytes = json_int_or(d, "smem_block_bytes", 0);
    o->l2_bytes = json_int_or(d, "l2_bytes", 0);
    o->memory_bytes = json_int_or(d, "memory_bytes", 0);
}

static bool fill_task(struct row_reader *r, struct query *q, struct error *err)
{
    struct task *t = &r->h->task;
    int class;

    t->name = col_text(q, 3, r->a);
    t->path = col_text(q, 4, r->a);
    if (!col_name(q, 5, class_names, (int)ARRAY_LEN(class_names), &class, err))
        return false;
    t->class = (enum kernel_class) class;
    t->class_evidence = col_text(q, 6, r->a);
    t->scaled = col_text(q, 7, r->a);
    t->bytes_min = col_double(q, 8);
    t->flops_min = col_double(q, 9);
    t->source = col_blob(q, 10, r->a);
    if (!col_json(r, q, 11, &t->description, err))
        return false;
    t->in_count = fill_tensors(json_object_get(t->description, "inputs"), "input", t->in);
    t->out_count = fill_tensors(json_object_get(t->description, "outputs"), "output", t->out);
    return true;
}

static bool read_run(struct row_reader *r, struct error *err)
{
    struct query q;
    json_t *device;
    bool ok = true;

    if (!run_info_read(r->s, r->id, r->a, &r->h->info, err) ||
        !sql_query(r->s, &q, err,
                   "SELECT r.device, r.options, r.environment, t.name, t.path, t.class, "
                   "t.evidence, t.scaled, t.bytes_min, t.flops_min, s.data, d.data "
                   "FROM runs r JOIN tasks t ON t.id = r.task "
                   "JOIN blobs s ON s.sha256 = t.source "
                   "JOIN blobs d ON d.sha256 = t.description WHERE r.id = ?",
                   "t", r->id))
        return false;
    if (sql_next(&q, err)) {
        ok = col_json(r, &q, 0, &device, err) && col_json(r, &q, 1, &r->h->options, err) &&
             col_json(r, &q, 2, &r->h->environment, err) && fill_task(r, &q, err);
        if (ok)
            fill_device(device, &r->h->device);
    }
    return sql_done(&q) && ok;
}

/* ---- attempts ----------------------------------------------------------- */

/* One query for a run, not one for each attempt: a page of a suite asks for many runs, and a server
 * may be far away. Rows come by attempt. NULL: of an attempt that has not ended, or of none. */
static struct attempt_record *attempt_of(struct row_reader *r, const struct query *q, int column)
{
    size_t number = (size_t)col_int(q, column);
    struct attempt_record *t;

    if (number < 1 || number > r->h->attempt_count)
        return NULL;
    t = &r->h->attempts[number - 1];
    return t->ended_ms ? t : NULL;
}

static bool read_findings(struct row_reader *r, struct error *err)
{
    struct query q;

    if (!sql_query(r->s, &q, err,
                   "SELECT attempt, kind, place, line, text FROM findings WHERE run = ? "
                   "ORDER BY attempt, number",
                   "t", r->id))
        return false;
    while (sql_next(&q, err)) {
        struct attempt_record *t = attempt_of(r, &q, 0);
        struct verdict *v = t ? &t->outcome.verdict : NULL;

        if (v && v->finding_count < MAX_FINDINGS)
            v->findings[v->finding_count++] = (struct finding){.kind = col_text(&q, 1, r->a),
                                                               .where = col_text(&q, 2, r->a),
                                                               .line = col_text(&q, 3, r->a),
                                                               .text = col_text(&q, 4, r->a)};
    }
    return sql_done(&q);
}

static bool read_verdicts(struct row_reader *r, struct error *err)
{
    struct query q;
    bool ok = true;
    int kind = 0;

    if (!sql_query(r->s, &q, err,
                   "SELECT attempt, kind, summary, detail, advice FROM verdicts WHERE run = ? "
                   "ORDER BY attempt",
                   "t", r->id))
        return false;
    while (ok && sql_next(&q, err)) {
        struct attempt_record *t = attempt_of(r, &q, 0);

        if (!t)
            continue;
        ok = col_name(&q, 1, verdict_names, VERDICT_COUNT, &kind, err);
        t->outcome.verdict = (struct verdict){.kind = (enum verdict_kind)kind,
                                              .summary = col_text(&q, 2, r->a),
                                              .detail = col_text(&q, 3, r->a),
                                              .advice = col_text(&q, 4, r->a)};
    }
    return sql_done(&q) && ok;
}

/* Steps before the deciding one passed, or the attempt would have ended there. */
static struct verdict verdict_at(const struct attempt_outcome *o, enum attempt_step step)
{
    if (o->step == step)
        return o->verdict;
    return (struct verdict){.kind = VERDICT_PASS, .summary = "", .detail = ""};
}

static bool read_builds(struct row_reader *r, struct error *err)
{
    struct query q;
    bool ok = true;

    if (!sql_query(r->s, &q, err,
                   "SELECT b.attempt, b.build_ms, b.cached, l.data AS launches, n.data AS names, "
                   "s.data AS resources, b.code, b.ptx FROM builds b "
                   "LEFT JOIN blobs l ON l.sha256 = b.launches "
                   "LEFT JOIN blobs n ON n.sha256 = b.names "
                   "LEFT JOIN blobs s ON s.sha256 = b.resources "
                   "WHERE b.run = ? ORDER BY b.attempt",
                   "t", r->id))
        return false;
    while (ok && sql_next(&q, err)) {
        struct attempt_record *t = attempt_of(r, &q, 0);
        struct build_result *b;

        if (!t)
            continue;
        t->outcome.build = b = arena_alloc(r->a, sizeof(*b));
        b->verdict = verdict_at(&t->outcome, STEP_BUILD);
        b->build_ms = col_int(&q, 1);
        b->cached = col_int(&q, 2);
        ok = col_json(r, &q, 3, &b->launches, err) && col_json(r, &q, 4, &b->names, err) &&
             col_json(r, &q, 5, &b->resources, err);
        b->code_hash = col_text(&q, 6, r->a);
        b->ptx_hash = col_text(&q, 7, r->a);
    }
    return sql_done(&q) && ok;
}

static bool read_tests(struct row_reader *r, struct error *err)
{
    struct query q;
    bool ok = true;

    if (!sql_query(r->s, &q, err,
                   "SELECT t.attempt, t.test_ms, t.seed, t.deterministic, t.draws, "
                   "t.distributions, t.max_abs, t.max_rel, t.rms_rel, t.reference_max_abs, "
                   "t.reference_max_rel, t.reference_rms_rel, c.data AS counters, "
                   "t.accuracy_class FROM tests t "
                   "LEFT JOIN blobs c ON c.sha256 = t.counters WHERE t.run = ? ORDER BY t.attempt",
                   "t", r->id))
        return false;
    while (ok && sql_next(&q, err)) {
        struct attempt_record *at = attempt_of(r, &q, 0);
        struct test_result *t;

        if (!at)
            continue;
        at->outcome.test = t = arena_alloc(r->a, sizeof(*t));
        t->verdict = verdict_at(&at->outcome, STEP_TEST);
        t->test_ms = col_int(&q, 1);
        t->seed = col_text(&q, 2, r->a);
        t->deterministic = col_int(&q, 3);
        t->accuracy = (struct accuracy){.draws = col_int(&q, 4),
                                        .distributions = col_int(&q, 5),
                                        .max_abs = col_double(&q, 6),
                                        .max_rel = col_double(&q, 7),
                                        .rms_rel = col_double(&q, 8),
                                        .reference_max_abs = col_double(&q, 9),
                                        .reference_max_rel = col_double(&q, 10),
                                        .reference_rms_rel = col_double(&q, 11)};
        ok = col_json(r, &q, 12, &t->counters, err);
        t->accuracy_class = col_text(&q, 13, r->a);
    }
    return sql_done(&q) && ok;
}

static bool read_baselines(struct row_reader *r, struct measurement **of, struct error *err)
{
    struct query q;

    if (!sql_query(r->s, &q, err,
                   "SELECT attempt, name, cold_us, warm_us FROM baselines WHERE run = ? "
                   "ORDER BY attempt, number",
                   "t", r->id))
        return false;
    while (sql_next(&q, err)) {
        struct attempt_record *t = attempt_of(r, &q, 0);
        struct measurement *m = t ? of[t->candidate.attempt - 1] : NULL;

        if (m && m->baseline_count < (int)ARRAY_LEN(m->baselines))
            m->baselines[m->baseline_count++] = (struct baseline){.name = col_text(&q, 1, r->a),
                                                                  .cold_us = col_double(&q, 2),
                                                                  .warm_us = col_double(&q, 3)};
    }
    return sql_done(&q);
}

static bool read_measurements(struct row_reader *r, struct error *err)
{
    struct measurement **of = arena_array(r->a, r->h->attempt_count + 1, sizeof(*of));
    struct query q;
    bool ok = true;

    if (!sql_query(r->s, &q, err,
                   "SELECT m.attempt, m.modelled, m.time_us, m.warm_us, m.spread, m.floor_us, "
                   "m.bound, m.trivial, p.data AS parts, m.machine FROM measurements m "
                   "LEFT JOIN blobs p ON p.sha256 = m.parts WHERE m.run = ? ORDER BY m.attempt",
                   "t", r->id))
        return false;
    while (ok && sql_next(&q, err)) {
        struct attempt_record *t = attempt_of(r, &q, 0);
        struct measurement *m;

        if (!t)
            continue;
        t->outcome.measurement = m = of[t->candidate.attempt - 1] = arena_alloc(r->a, sizeof(*m));
        m->verdict = verdict_at(&t->outcome, STEP_MEASURE);
        m->modelled = col_int(&q, 1);
        m->time_us = col_double(&q, 2);
        m->warm_us = col_double(&q, 3);
        m->spread = col_double(&q, 4);
        m->floor_us = col_double(&q, 5);
        m->bound = col_text(&q, 6, r->a);
        m->trivial = col_text(&q, 7, r->a);
        ok = col_json(r, &q, 8, &m->parts, err);
        m->machine = col_text(&q, 9, r->a);
    }
    return sql_done(&q) && ok && read_baselines(r, of, err);
}

static bool read_profiles(struct row_reader *r, struct error *err)
{
    struct query q;
    bool ok = true;

    if (!sql_query(r->s, &q, err,
                   "SELECT p.attempt, p.source, t.data, d.data AS data FROM profiles p "
                   "JOIN blobs t ON t.sha256 = p.text LEFT JOIN blobs d ON d.sha256 = p.data "
                   "WHERE p.run = ? ORDER BY p.attempt",
                   "t", r->id))
        return false;
    while (ok && sql_next(&q, err)) {
        size_t number = (size_t)col_int(&q, 0);
        struct profile *p;

        if (number < 1 || number > r->h->attempt_count)
            continue;
        r->h->attempts[number - 1].profile = p = arena_alloc(r->a, sizeof(*p));
        p->source = col_text(&q, 1, r->a);
        p->text = col_blob(&q, 2, r->a).data;
        ok = col_json(r, &q, 3, &p->data, err);
    }
    return sql_done(&q) && ok;
}

static bool read_acceptances(struct row_reader *r, struct error *err)
{
    struct query q;
    int kind = 0;
    bool ok = true;

    if (!sql_query(r->s, &q, err,
                   "SELECT attempt, kind, summary, detail, note FROM acceptances WHERE run = ?",
                   "t", r->id))
        return false;
    while (ok && sql_next(&q, err)) {
        struct attempt_record *t = attempt_of(r, &q, 0);
        struct acceptance *what;

        if (!t)
            continue;
        t->acceptance = what = arena_alloc(r->a, sizeof(*what));
        ok = col_name(&q, 1, verdict_names, VERDICT_COUNT, &kind, err);
        what->verdict = (struct verdict){.kind = (enum verdict_kind)kind,
                                         .summary = col_text(&q, 2, r->a),
                                         .detail = col_text(&q, 3, r->a)};
        what->note = col_text(&q, 4, r->a);
    }
    return sql_done(&q) && ok;
}

static bool fill_shape(struct row_reader *r, struct query *q, struct shape_result *x,
                       struct error *err)
{
    int kind;

    x->label = col_text(q, 1, r->a);
    x->weight = col_double(q, 2);
    if (!col_name(q, 3, verdict_names, VERDICT_COUNT, &kind, err))
        return false;
    x->verdict = (struct verdict){
        .kind = (enum verdict_kind)kind, .summary = col_text(q, 4, r->a), .detail = ""};
    x->time_us = col_double(q, 5);
    x->floor_us = col_double(q, 6);
    x->module_hash = col_text(q, 7, r->a);
    return col_json(r, q, 8, &x->inputs, err) && col_json(r, q, 9, &x->outputs, err) &&
           col_json(r, q, 10, &x->launches, err);
}

static bool read_shapes(struct row_reader *r, struct error *err)
{
    struct shape_result *list;
    struct query q;
    bool ok = true;
    size_t n, i = 0;

    if (!count_rows(r, "SELECT count(*) FROM shapes WHERE run = ?", &n, err))
        return false;
    if (n == 0)
        return true;
    if (!sql_query(r->s, &q, err,
                   "SELECT s.attempt, s.label, s.weight, s.kind, s.summary, s.time_us, s.floor_us, "
                   "s.module_hash, i.data AS inputs, u.data AS outputs, l.data AS launches "
                   "FROM shapes s LEFT JOIN blobs i ON i.sha256 = s.inputs "
                   "LEFT JOIN blobs u ON u.sha256 = s.outputs "
                   "LEFT JOIN blobs l ON l.sha256 = s.launches "
                   "WHERE s.run = ? ORDER BY s.attempt, s.number",
                   "t", r->id))
        return false;
    list = arena_array(r->a, n, sizeof(*list));
    while (ok && i < n && sql_next(&q, err)) {
        struct attempt_record *t = attempt_of(r, &q, 0);

        if (!t)
            continue;
        if (!t->outcome.shapes)
            t->outcome.shapes = &list[i];
        t->outcome.shape_count++;
        ok = fill_shape(r, &q, &list[i++], err);
    }
    return sql_done(&q) && ok;
}

/* Verdicts first, because the others use them. */
static bool read_outcomes(struct row_reader *r, struct error *err)
{
    return r->h->attempt_count == 0 ||
           (read_verdicts(r, err) && read_findings(r, err) && read_profiles(r, err) &&
            read_acceptances(r, err) && read_builds(r, err) && read_tests(r, err) &&
            read_measurements(r, err) && read_shapes(r, err));
}

static bool fill_attempt(struct row_reader *r, struct query *q, struct attempt_record *t,
                         struct error *err)
{
    int stage, step = STEP_PROPOSE;

    t->candidate.attempt = col_int(q, 0);
    t->candidate.repair = col_int(q, 1);
    if (!col_name(q, 2, stage_names, STAGE_KIND_COUNT, &stage, err))
        return false;
    t->stage = (enum stage_kind)stage;
    t->started_ms = col_long(q, 3);
    t->ended_ms = col_long(q, 4);
    if (t->ended_ms && !col_name(q, 5, attempt_step_names, STEP_COUNT, &step, err))
        return false;
    t->outcome.step = (enum attempt_step)step;
    t->outcome.kept = col_int(q, 6);
    t->candidate.depth = col_int(q, 7);
    t->candidate.change = col_text(q, 8, r->a);
    t->candidate.source = col_blob(q, 9, r->a);
    t->parent = col_int(q, 10);
    t->candidate.steps = col_text(q, 11, r->a);
    if (t->candidate.attempt == (int)r->h->attempt_count)
        return true;
    return error_set(err, ERROR_MACHINE, "%s: run %s has no attempt %zu", r->s->path, r->id,
                     r->h->attempt_count);
}

static bool read_attempts(struct row_reader *r, struct error *err)
{
    struct run_history *h = r->h;
    struct query q;
    bool ok = true;
    size_t n;

    if (!count_rows(r, "SELECT count(*) FROM attempts WHERE run = ?", &n, err) ||
        !sql_query(r->s, &q, err,
                   "SELECT a.number, a.repair, a.stage, a.started_ms, a.ended_ms, a.step, a.kept, "
                   "c.depth, c.change, b.data, p.number, c.steps FROM attempts a "
                   "JOIN candidates c ON c.id = a.candidate "
                   "JOIN blobs b ON b.sha256 = c.source "
                   "LEFT JOIN attempts p ON p.candidate = c.parent "
                   "WHERE a.run = ? ORDER BY a.number",
                   "t", r->id))
        return false;
    h->attempts = arena_array(r->a, n + 1, sizeof(*h->attempts));
    while (ok && h->attempt_count < n && sql_next(&q, err))
        ok = fill_attempt(r, &q, &h->attempts[h->attempt_count++], err);
    return sql_done(&q) && ok && read_outcomes(r, err);
}

/* ---- calls and events --------------------------------------------------- */

static bool read_messages(struct row_reader *r, int64_t call, struct call_record *c,
                          struct error *err)
{
    struct message *list;
    struct query q;
    int64_t n;
    size_t i = 0;

    if (!sql_int(r->s, 0, &n, err, "SELECT count(*) FROM messages WHERE call = ?", "l", call) ||
        !sql_query(r->s, &q, err,
                   "SELECT m.role, b.data FROM messages m JOIN blobs b ON b.sha256 = m.content "
                   "WHERE m.call = ? ORDER BY m.number",
                   "l", call))
        return false;
    list = arena_array(r->a, (size_t)n + 1, sizeof(*list));
    while (i < (size_t)n && sql_next(&q, err)) {
        list[i].role = col_text(&q, 0, r->a);
        list[i++].content = col_blob(&q, 1, r->a);
    }
    c->messages = list;
    c->message_count = i;
    return sql_done(&q);
}

static bool fill_call(struct row_reader *r, struct query *q, struct call_record *c,
                      struct error *err)
{
    int stage;

    if (!col_name(q, 1, stage_names, STAGE_KIND_COUNT, &stage, err))
        return false;
    c->stage = (enum stage_kind)stage;
    c->attempt = col_int(q, 2);
    c->slot = col_int(q, 15);
    c->at_ms = col_long(q, 3);
    c->prompt_hash = col_text(q, 4, r->a);
    c->reply = (struct reply){.model = col_text(q, 5, r->a),
                              .finish_reason = col_text(q, 6, r->a),
                              .prompt_tokens = col_long(q, 7),
                              .cached_tokens = col_long(q, 8),
                              .output_tokens = col_long(q, 9),
                              .cost_usd = col_double(q, 10),
                              .latency_ms = col_int(q, 11),
                              .retries = col_int(q, 12),
                              .done = col_int(q, 13),
                              .text = col_blob(q, 14, r->a)};
    return read_messages(r, col_long(q, 0), c, err);
}

static bool read_calls(struct row_reader *r, struct error *err)
{
    struct run_history *h = r->h;
    struct query q;
    bool ok = true;
    size_t n;

    if (!count_rows(r, "SELECT count(*) FROM calls WHERE run = ?", &n, err) ||
        !sql_query(r->s, &q, err,
                   "SELECT c.id, c.stage, c.attempt, c.at_ms, c.prompt_hash, c.model, "
                   "c.finish_reason, c.prompt_tokens, c.cached_tokens, c.output_tokens, "
                   "c.cost_usd, c.latency_ms, c.retries, c.done, b.data, c.slot FROM calls c "
                   "JOIN blobs b ON b.sha256 = c.reply WHERE c.run = ? ORDER BY c.id",
                   "t", r->id))
        return false;
    h->calls = arena_array(r->a, n + 1, sizeof(*h->calls));
    while (ok && h->call_count < n && sql_next(&q, err))
        ok = fill_call(r, &q, &h->calls[h->call_count++], err);
    return sql_done(&q) && ok;
}

static bool read_events(struct row_reader *r, struct error *err)
{
    struct run_history *h = r->h;
    struct query q;
    bool ok = true;
    size_t n;

    if (!count_rows(r, "SELECT count(*) FROM events WHERE run = ?", &n, err) ||
        !sql_query(r->s, &q, err, "SELECT at_ms, kind, data FROM events WHERE run = ? ORDER BY id",
                   "t", r->id))
        return false;
    h->events = arena_array(r->a, n + 1, sizeof(*h->events));
    while (ok && h->event_count < n && sql_next(&q, err)) {
        struct event_record *e = &h->events[h->event_count++];
        e->at_ms = col_long(&q, 0);
        e->kind = col_text(&q, 1, r->a);
        ok = col_json(r, &q, 2, &e->data, err);
    }
    return sql_done(&q) && ok;
}

bool store_run_history(struct store *s, const char *id, struct arena *a, struct run_history *out,
                       struct error *err)
{
    struct row_reader r = {.s = s, .a = a, .h = out, .id = id};

    *out = (struct run_history){.keep = json_array()};
    bool ok = read_begin(s, err);
    if (ok)
        ok = read_end(s, read_run(&r, err) && read_attempts(&r, err) && read_calls(&r, err) &&
                             read_events(&r, err));
    if (ok)
        return true;
    run_history_release(out);
    return error_add(err, "reading run %s", id);
}

void run_history_release(struct run_history *h)
{
    json_decref(h->keep);
    *h = (struct run_history){0};
}
