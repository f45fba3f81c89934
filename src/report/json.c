/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - runs as JSON with stable keys; report.h lists them.
 *
 * Strings are made valid UTF-8; numbers that JSON cannot hold (nan, inf) become strings, unknown
 * ones null.
 */
#include "base/json.h"
#include "report/escape.h"
#include "report/facts.h"
#include "report/parts.h"
#include "report/report.h"

#include <math.h>
#include <string.h>

static json_t *string_of(const char *s)
{
    if (!s)
        return json_null();
    struct buf b = buf_init(64 << 20);
    plain_add(&b, text_of(s));
    json_t *v = json_stringn(b.len ? b.data : "", b.len);
    buf_release(&b);
    return v;
}

static void set(json_t *o, const char *key, json_t *v)
{
    json_object_set_new(o, key, v);
}

static void set_text(json_t *o, const char *key, const char *s)
{
    set(o, key, string_of(s));
}

static void set_int(json_t *o, const char *key, int64_t v)
{
    set(o, key, json_integer(v));
}

/* A value that is not positive was not measured. */
static void set_time(json_t *o, const char *key, double v)
{
    set(o, key, isfinite(v) && v > 0 ? json_real(v) : json_null());
}

static json_t *info_json(const struct run_info *r)
{
    json_t *o = json_object();

    set_text(o, "run", r->id);
    set_text(o, "task", r->task);
    set_text(o, "model", r->model);
    set_text(o, "device", r->device);
    set_text(o, "suite", r->suite);
    set_text(o, "owner", r->owner && *r->owner ? r->owner : NULL);
    set_text(o, "state", state_text(r));
    set_text(o, "reason", r->reason);
    set_int(o, "started_ms", r->started_ms);
    set(o, "ended_ms", r->ended_ms ? json_integer(r->ended_ms) : json_null());
    set_int(o, "attempts", r->attempts);
    set_int(o, "calls", r->calls);
    set(o, "best_attempt", r->best_attempt ? json_integer(r->best_attempt) : json_null());
    set(o, "best_depth", r->best_depth >= 0 ? json_integer(r->best_depth) : json_null());
    set_text(o, "accepted", accepted_names[r->accepted]);
    set_text(o, "accepted_why", r->accepted_why);
    set_time(o, "first_us", r->first_us);
    set_time(o, "best_us", r->best_us);
    set_time(o, "eager_us", r->eager_us);
    set(o, "modelled", json_boolean(r->modelled));
    set(o, "unvalidated", json_boolean(r->modelled && r->unvalidated));
    set_int(o, "tokens", r->tokens);
    set(o, "cost_usd", r->cost_usd >= 0 ? json_number(r->cost_usd) : json_null());
    return o;
}

json_t *report_runs_json(const struct run_info *runs, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, info_json(&runs[i]));
    return list;
}

static void add_verdict(json_t *o, const struct verdict *v)
{
    json_t *findings = json_array();

    for (int i = 0; i < v->finding_count; i++) {
        json_t *f = json_object();
        set_text(f, "kind", v->findings[i].kind);
        set_text(f, "where", v->findings[i].where);
        set_text(f, "line", v->findings[i].line);
        set_text(f, "text", v->findings[i].text);
        json_array_append_new(findings, f);
    }
    set_text(o, "verdict", verdict_names[v->kind]);
    set_text(o, "summary", v->summary);
    set_text(o, "detail", v->detail);
    set_text(o, "advice", v->advice);
    set(o, "findings", findings);
}

static void add_test(json_t *o, const struct test_result *t)
{
    const struct accuracy *c = &t->accuracy;
    json_t *v = json_object();

    set_int(v, "draws", c->draws);
    set_int(v, "distributions", c->distributions);
    set(v, "max_abs", json_number(c->max_abs));
    set(v, "max_rel", json_number(c->max_rel));
    set(v, "rms_rel", json_number(c->rms_rel));
    set(v, "reference_max_abs", json_number(c->reference_max_abs));
    set(v, "reference_max_rel", json_number(c->reference_max_rel));
    set(v, "reference_rms_rel", json_number(c->reference_rms_rel));
    set_int(o, "test_ms", t->test_ms);
    set_text(o, "seed", t->seed);
    set(o, "deterministic", json_boolean(t->deterministic));
    set(o, "accuracy", v);
    set_text(o, "accuracy_class", t->accuracy_class);
}

static void add_measurement(json_t *o, const struct measurement *m)
{
    json_t *baselines = json_object();
    json_error_t ignored;

    for (int i = 0; i < m->baseline_count; i++)
        set_time(baselines, m->baselines[i].name, m->baselines[i].cold_us);
    set(o, "modelled", json_boolean(m->modelled));
    set(o, "unvalidated",
        json_boolean(m->modelled && !modelled_validated(json_string_or(m->parts, "gpu", NULL))));
    set_time(o, "time_us", m->time_us);
    set_time(o, "warm_us", m->warm_us);
    set(o, "spread", json_number(m->spread));
    set_time(o, "floor_us", m->floor_us);
    set_text(o, "bound", m->bound);
    set_text(o, "trivial", m->trivial);
    set(o, "machine",
        m->machine && *m->machine ? json_loads(m->machine, 0, &ignored) : json_null());
    set(o, "baselines", baselines);
}

static json_t *attempt_json(const struct attempt_record *r, struct arena *a)
{
    const struct attempt_outcome *t = &r->outcome;
    json_t *o = json_object();

    set_int(o, "attempt", r->candidate.attempt);
    set_int(o, "depth", r->candidate.depth);
    set_int(o, "repair", r->candidate.repair);
    set_text(o, "stage", stage_names[r->stage]);
    set(o, "parent", r->parent ? json_integer(r->parent) : json_null());
    set_text(o, "change", r->candidate.change);
    set_int(o, "started_ms", r->started_ms);
    set(o, "ended_ms", r->ended_ms ? json_integer(r->ended_ms) : json_null());
    if (!r->ended_ms)
        return o;
    set(o, "kept", json_boolean(t->kept));
    set_text(o, "step", attempt_step_names[t->step]);
    add_verdict(o, &t->verdict);
    if (t->build) {
        set_int(o, "build_ms", t->build->build_ms);
        set(o, "cached", json_boolean(t->build->cached));
        set_text(o, "code", t->build->code_hash);
    }
    if (t->test)
        add_test(o, t->test);
    if (t->measurement) {
        json_t *times = part_times_json(r, a);

        add_measurement(o, t->measurement);
        if (times)
            set(o, "parts_us", times);
    }
    if (t->shape_count) {
        json_t *list = json_array();
        for (int i = 0; i < t->shape_count; i++) {
            const struct shape_result *s = &t->shapes[i];
            json_t *x = json_object();
            set_text(x, "label", s->label);
            set(x, "weight", json_number(s->weight));
            set_text(x, "verdict", verdict_names[s->verdict.kind]);
            set_time(x, "time_us", s->time_us);
            set_time(x, "floor_us", s->floor_us);
            set_text(x, "module_hash", s->module_hash);
            set(x, "inputs", json_incref(s->inputs));
            json_array_append_new(list, x);
        }
        set(o, "shapes", list);
    }
    if (r->acceptance) {
        const struct verdict *v = &r->acceptance->verdict;
        json_t *x = json_object();
        set_text(x, "verdict", verdict_names[v->kind]);
        set_text(x, "summary", v->summary);
        set_text(x, "note", r->acceptance->note);
        set(o, "acceptance", x);
    }
    return o;
}

static json_t *call_json(const struct call_record *c)
{
    const struct reply *r = &c->reply;
    json_t *o = json_object();

    set_text(o, "stage", stage_names[c->stage]);
    set_int(o, "attempt", c->attempt);
    set_int(o, "at_ms", c->at_ms);
    set_text(o, "model", r->model);
    set_text(o, "finish_reason", r->finish_reason);
    set(o, "prompt_tokens", r->prompt_tokens >= 0 ? json_integer(r->prompt_tokens) : json_null());
    set(o, "cached_tokens", r->cached_tokens >= 0 ? json_integer(r->cached_tokens) : json_null());
    set(o, "output_tokens", r->output_tokens >= 0 ? json_integer(r->output_tokens) : json_null());
    set(o, "cost_usd", r->cost_usd >= 0 ? json_number(r->cost_usd) : json_null());
    set_int(o, "latency_ms", r->latency_ms);
    set_int(o, "retries", r->retries);
    set_text(o, "prompt_hash", c->prompt_hash);
    return o;
}

json_t *report_run_json(const struct run_history *h)
{
    json_t *o = info_json(&h->info), *attempts = json_array(), *calls = json_array(), *parts;
    struct arena *a = arena_new();
    struct facts f = facts_of(h);

    for (size_t i = 0; i < h->attempt_count; i++)
        json_array_append_new(attempts, attempt_json(&h->attempts[i], a));
    for (size_t i = 0; i < h->call_count; i++)
        json_array_append_new(calls, call_json(&h->calls[i]));
    set(o, "attempts", attempts);
    set(o, "calls", calls);
    parts = parts_json(&f, a);
    set(o, "parts", parts ? parts : json_null());
    arena_free(a);
    set_text(o, "task_path", h->task.path);
    set_text(o, "class", class_names[h->task.class]);
    set_text(o, "scaled", h->task.scaled);
    set(o, "options", h->options ? json_incref(h->options) : json_null());
    set(o, "environment", h->environment ? json_incref(h->environment) : json_null());
    return o;
}
