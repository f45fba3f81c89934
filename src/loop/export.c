/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.c - which kernel is exported, whether it may be, and what its record says.
 *
 * Invariants
 * 1. What is exported is what was judged: code and launch list come from the store, by the hash
 *    that was stored with the verdict. Nothing is built here.
 * 2. If a device or sizes are given, the kernel is judged there first, as a new run, which is
 *    exported.
 */
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "loop/loop.h"
#include "stage/stage.h"
#include "store/prune.h"
#include "store/store.h"

#include <string.h>

static const char *const layout_names[LAYOUT_COUNT] = {"folder", "wheel", "hf"};

/* ---- the record ----------------------------------------------------------------- */

static json_t *time_json(const struct measurement *m)
{
    json_t *j = json_object(), *baselines = json_object();

    json_object_set_new(j, "modelled", json_boolean(m->modelled));
    if (m->modelled && !modelled_validated(json_string_or(m->parts, "gpu", NULL)))
        json_object_set_new(j, "unvalidated", json_true());
    json_object_set_new(j, "time_us", json_number(m->time_us));
    json_object_set_new(j, "floor_us", json_number(m->floor_us));
    if (!m->modelled) {
        json_object_set_new(j, "warm_us", json_number(m->warm_us));
        json_object_set_new(j, "spread", json_number(m->spread));
    }
    for (int i = 0; i < m->baseline_count; i++)
        json_object_set_new(baselines, m->baselines[i].name, json_number(m->baselines[i].cold_us));
    json_object_set_new(j, "baselines_us", baselines);
    return j;
}

static json_t *accuracy_json(const struct test_result *t)
{
    const struct accuracy *acc = &t->accuracy;
    json_t *j = json_object();

    json_object_set_new(j, "max_abs", json_number(acc->max_abs));
    json_object_set_new(j, "rms_rel", json_number(acc->rms_rel));
    json_object_set_new(j, "reference_max_abs", json_number(acc->reference_max_abs));
    json_object_set_new(j, "reference_rms_rel", json_number(acc->reference_rms_rel));
    json_object_set_new(j, "draws", json_integer(acc->draws));
    json_object_set_new(j, "distributions", json_integer(acc->distributions));
    json_object_set_new(j, "seed", json_string(t->seed ? t->seed : ""));
    return j;
}

static json_t *device_json(const struct device *d)
{
    return json_pack("{s:s, s:s, s:s}", "kind", d->kind == DEVICE_CUDA ? "cuda" : "simt", "name",
                     d->name, "arch", d->arch ? d->arch : "");
}

/* The kernel's provenance: enough to repeat the judgement and to check it. */
static json_t *export_record(const struct run_history *h, const struct attempt_record *best)
{
    json_t *j = json_object(), *prompts = json_array();
    char stamp[25];

    clock_stamp(h->info.started_ms, stamp);
    json_object_set_new(j, "cutegen", json_string(CUTEGEN_VERSION));
    json_object_set_new(j, "run", json_string(h->info.id));
    json_object_set_new(j, "started", json_string(stamp));
    json_object_set_new(j, "task", json_string(h->info.task));
    json_object_set_new(j, "model", json_string(h->info.model));
    json_object_set_new(j, "device", device_json(&h->device));
    json_object_set_new(j, "verdict", json_string(verdict_names[best->outcome.verdict.kind]));
    json_object_set_new(j, "accepted", json_string(accepted_names[h->info.accepted]));
    json_object_set_new(j, "accepted_why", json_from_string(h->info.accepted_why));
    json_object_set_new(j, "forced", json_boolean(h->info.accepted == ACCEPTED_NO));
    json_object_set_new(j, "code", json_string(best->outcome.build->code_hash));
    json_object_set_new(j, "scaled", json_string(h->task.scaled ? h->task.scaled : ""));
    json_object_set_new(j, "class", json_string(class_names[h->task.class]));
    json_object_set_new(j, "torch", json_string(json_string_or(h->task.description, "torch", "?")));
    json_object_set_new(j, "depth", json_integer(best->candidate.depth));
    json_object_set_new(j, "attempt", json_integer(best->candidate.attempt));
    json_object_set(j, "options", h->options);
    json_object_set(j, "environment", h->environment);
    if (best->outcome.measurement)
        json_object_set_new(j, "time", time_json(best->outcome.measurement));
    if (best->outcome.test)
        json_object_set_new(j, "accuracy", accuracy_json(best->outcome.test));
    for (size_t i = 0; i < h->call_count; i++)
        if (h->calls[i].prompt_hash)
            json_array_append_new(prompts, json_string(h->calls[i].prompt_hash));
    json_object_set_new(j, "prompt_hashes", prompts);
    return j;
}

/* ---- what the store has -------------------------------------------------------------- */

static bool stored_code(struct store *store, const char *id, const char *hash, struct arena *a,
                        struct text *out, struct error *err)
{
    struct error why = {0};
    char hex[65] = "";

    if (hash && blob_get(store, hash, a, out, &why))
        hash_text(*out, hex);
    if (hash && strcmp(hex, hash) == 0)
        return true;
    error_set(err, ERROR_USE,
              hash ? "the store does not hold the code that run %s judged"
                   : "run %s was made by an older cutegen, which kept no code",
              id);
    return error_hint(err, "judge it again and export that: cutegen export %s --device DEVICE", id);
}

static bool find_best(const char *id, const struct run_history *h,
                      const struct attempt_record **best, struct error *err)
{
    enum language target;

    if (h->info.best_attempt == 0) {
        error_set(err, ERROR_JUDGED, "run %s has no correct kernel to export", id);
        return error_hint(err, "see why: cutegen show %s", id);
    }
    target = language_named(json_string_or(h->options, "target", ""));
    if (target ==
        LANGUAGE_CUTEDSL) { /* its arguments hold pointers, which the loader cannot fill */
        error_set(err, ERROR_USE, "run %s judged a kernel in %s, which is not exported yet", id,
                  languages[target].words);
        return error_hint(err, "the judged file runs as it is wherever %s does",
                          languages[target].words);
    }
    *best = &h->attempts[h->info.best_attempt - 1];
    return (*best)->outcome.build ||
           error_set(err, ERROR_USE, "run %s has no built kernel to export", id);
}

static bool may_export(const struct run_history *h, bool force, struct error *err)
{
    if (h->info.accepted != ACCEPTED_NO || force)
        return true;
    error_set(err, ERROR_JUDGED, "the best kernel of %s was not accepted: %s", h->info.id,
              h->info.accepted_why);
    return error_hint(err, "see why: cutegen show %s --attempt %d; --force exports it anyway",
                      h->info.id, h->info.best_attempt);
}

static bool layout_of(const char *name, enum export_layout *out, struct error *err)
{
    for (int i = 0; i < LAYOUT_COUNT; i++)
        if (!name || !strcmp(name, layout_names[i])) {
            *out = (enum export_layout)i;
            return true;
        }
    error_set(err, ERROR_USE, "there is no layout '%s'", name);
    return error_hint(err, "layouts: folder, wheel, hf");
}

/* ---- the gradients' kernel ------------------------------------------------------------ */

/* The next line of a task that is not its BACKWARD = ...; false at the end. */
static bool next_line(struct text *rest, struct text *line)
{
    static const char word[] = "BACKWARD";

    while (text_next_line(rest, line))
        if (line->len < strlen(word) || strncmp(line->data, word, strlen(word)) != 0)
            return true;
    return false;
}

/* The task as it was judged: --set and reduced sizes change its constants. */
static struct text judged_source(const struct task *task)
{
    const char *changed = json_string_or(task->description, "judged_source", NULL);

    return changed ? text_of(changed) : task->source;
}

static bool same_text(struct text p, struct text q)
{
    struct text a, b;
    bool more, also;

    do {
        more = next_line(&p, &a);
        also = next_line(&q, &b);
    } while (more && also && text_equal(a, b));
    return !more && !also;
}

static bool same_task(const struct task *one, const struct task *two)
{
    return same_text(one->source, two->source);
}

/* A backward's inputs are the forward's arguments followed by the upstream gradients, then the
 * rest. */
static bool same_inputs(const json_t *forward, const json_t *backward)
{
    json_t *mine = json_object_get(forward, "inputs"), *all = json_object_get(backward, "inputs");
    size_t upstream = (size_t)json_int_or(backward, "upstream", 0), arguments = 0;

    while (arguments < json_array_size(mine) &&
           !strcmp(json_string_or(json_array_get(mine, arguments), "role", ""), "input"))
        arguments++;
    for (size_t i = 0; i < json_array_size(mine); i++)
        if (!json_equal(json_array_get(mine, i),
                        json_array_get(all, i < arguments ? i : i + upstream)))
            return false;
    return json_array_size(mine) + upstream == json_array_size(all);
}

static bool backward_fits(const struct run_history *h, const struct run_history *g,
                          struct error *err)
{
    const char *id = g->info.id;

    if (json_int_or(g->task.description, "upstream", 0) == 0 ||
        json_int_or(h->task.description, "upstream", 0) > 0) {
        error_set(err, ERROR_USE, "run %s does not judge the gradients of run %s", id, h->info.id);
        return error_hint(err, "make such a run: cutegen run TASK --backward");
    }
    if (!same_task(&h->task, &g->task))
        return error_set(err, ERROR_USE, "run %s and run %s are of different tasks", id,
                         h->info.id);
    if (h->device.kind != g->device.kind || strcmp(h->device.arch, g->device.arch) != 0) {
        error_set(err, ERROR_USE, "run %s was judged on %s, run %s on %s", id, g->device.name,
                  h->info.id, h->device.name);
        return error_hint(err, "judge both on one device: cutegen export ... --device DEVICE");
    }
    if (!same_inputs(h->task.description, g->task.description) ||
        !same_text(judged_source(&h->task), judged_source(&g->task))) {
        error_set(err, ERROR_USE, "run %s was judged at other sizes or constants than run %s", id,
                  h->info.id);
        return error_hint(err, "judge both at the same sizes: --set NAME=VALUE, or --no-scale");
    }
    return true;
}

/* ---- writing -------------------------------------------------------------------- */

/* Are all kernels of a launch list in this code? */
static bool names_all(const json_t *names, const json_t *launches)
{
    const json_t *ops = json_object_get(launches, "ops");

    for (size_t i = 0; i < json_array_size(ops); i++) {
        const char *kernel = json_string_or(json_array_get(ops, i), "kernel", NULL);

        if (kernel && !json_object_get(names, kernel))
            return false;
    }
    return true;
}

/* Does reference.py compute at this shape what was judged there? A forward may use a constant that
 * --shapes has changed: x / N. A run of an older cutegen does not say. */
static bool same_forward(const json_t *description)
{
    return json_bool_or(description, "same_forward", false);
}

/* The operator takes tensors only: they alone tell cases apart. */
static bool known_inputs(const struct export_case *cases, size_t count, const json_t *inputs)
{
    for (size_t i = 0; i < count; i++)
        if (json_equal(json_object_get(cases[i].description, "inputs"), inputs))
            return true;
    return false;
}

/* Is this one of the cases, its other arguments included? */
static bool known_call(const struct export_case *cases, size_t count, const json_t *inputs,
                       const json_t *launches)
{
    for (size_t i = 0; i < count; i++)
        if (json_equal(json_object_get(cases[i].description, "inputs"), inputs) &&
            json_equal(json_object_get(cases[i].description, "call"),
                       json_object_get(launches, "call")))
            return true;
    return false;
}

/* Is this shape's result a case of the export of the main one? */
static bool belongs(const json_t *main, const struct shape_result *s,
                    const struct build_result *build)
{
    return s->verdict.kind == VERDICT_PASS && s->module_hash && s->launches &&
           !strcmp(s->module_hash, build->code_hash) && names_all(build->names, s->launches) &&
           same_forward(main) && same_forward(s->launches) &&
           json_equal(json_object_get(main, "returns"), json_object_get(s->launches, "returns"));
}

/* The main shape, then every other one that the same code was judged at; *left_out: those that
 * cannot be cases, in words. */
static size_t find_cases(const struct run_history *h, const struct attempt_record *best,
                         const struct build_result *build, struct arena *a,
                         struct export_case *cases, const char **left_out)
{
    const struct attempt_outcome *o = &best->outcome;
    const json_t *main = h->task.description;
    size_t count = 0;

    *left_out = NULL;

    cases[count++] = (struct export_case){.description = h->task.description, .build = build};
    for (int i = 0; i < o->shape_count; i++) {
        const struct shape_result *s = &o->shapes[i];
        struct build_result *own = arena_alloc(a, sizeof(*own));
        bool known = known_inputs(cases, count, s->inputs);

        if (known || !belongs(main, s, build)) {
            if (!known || (json_object_get(s->launches, "call") &&
                           !known_call(cases, count, s->inputs, s->launches)))
                *left_out = arena_printf(a, "%s%s%s", *left_out ? *left_out : "",
                                         *left_out ? ", " : "", s->label);
            continue;
        }
        *own = *build;
        own->launches = s->launches;
        cases[count++] = (struct export_case){
            .label = s->label,
            .description = json_own(a, json_pack("{s:O, s:O, s:O?, s:O?}", "inputs", s->inputs,
                                                 "outputs", s->outputs, "scalars",
                                                 json_object_get(s->launches, "scalars"), "call",
                                                 json_object_get(s->launches, "call"))),
            .build = own};
    }
    return count;
}

/* A run and its best kernel, from the store. */
struct chosen {
    struct run_history h;
    const struct attempt_record *best;
};

static bool choose(struct store *store, const char *name, struct arena *a, struct chosen *out,
                   struct error *err)
{
    const char *id = NULL;

    *out = (struct chosen){0};
    return store_run_find(store, name, a, &id, err) &&
           store_run_history(store, id, a, &out->h, err) && find_best(id, &out->h, &out->best, err);
}

/* Collects what is written for a run: its code, every judged shape, its record. */
static bool make_request(struct store *store, const struct chosen *c,
                         const struct export_options *options, struct arena *a,
                         struct export_request *req, struct error *err)
{
    struct build_result *build = arena_alloc(a, sizeof(*build));
    struct export_case *cases =
        arena_array(a, (size_t)c->best->outcome.shape_count + 1, sizeof(*cases));

    *req = (struct export_request){
        .task = &c->h.task,
        .best = &c->best->candidate,
        .device = &c->h.device,
        .record = json_own(a, export_record(&c->h, c->best)),
        .cases = cases,
        .fallback = options->fallback,
        .gradients = !options->no_gradients,
        .ptx = options->ptx,
    };
    *build = *c->best->outcome.build;
    if (!may_export(&c->h, options->force, err) ||
        !stored_code(store, c->h.info.id, build->code_hash, a, &build->code, err) ||
        (options->ptx && !stored_code(store, c->h.info.id, build->ptx_hash, a, &build->ptx, err)))
        return false;
    req->case_count = find_cases(&c->h, c->best, build, a, cases, &req->left_out);
    return true;
}

static bool write_export(struct store *store, const struct chosen *c, const struct chosen *backward,
                         const struct export_options *options, struct arena *a,
                         struct export_summary *out, struct error *err)
{
    const struct run_history *h = &c->h;
    struct export_request req, *of_backward = arena_alloc(a, sizeof(*of_backward));
    struct export_files files;

    if (!make_request(store, c, options, a, &req, err) ||
        !layout_of(options->layout, &req.layout, err))
        return false;
    req.dir = options->dir ? options->dir
                           : path_join(a, path_join(a, store_dir(store), h->info.id), "export");
    if (backward) {
        if (!backward_fits(h, &backward->h, err) ||
            !make_request(store, backward, options, a, of_backward, err))
            return false;
        req.backward = of_backward;
        json_object_set_new((json_t *)req.record, "backward",
                            json_pack("{s:s, s:s}", "run", backward->h.info.id, "code",
                                      backward->best->outcome.build->code_hash));
    }
    if (!stage_export(&req, a, &files, err))
        return false;
    *out = (struct export_summary){.run_id = arena_strdup(a, h->info.id),
                                   .dir = files.dir,
                                   .module_path = files.module_path,
                                   .source_path = files.source_path,
                                   .record_path = files.record_path,
                                   .wheel_path = files.wheel_path,
                                   .device = arena_strdup(a, h->device.name),
                                   .scaled = h->task.scaled,
                                   .accepted = accepted_names[h->info.accepted],
                                   .code_hash = req.cases[0].build->code_hash};
    out->left_out = req.left_out;
    if (backward) {
        out->backward_id = arena_strdup(a, backward->h.info.id);
        out->backward_hash = of_backward->cases[0].build->code_hash;
    }
    return true;
}

/* Notes the export so that `store prune` keeps what its record cites. With a read-only store the
 * export still succeeds. */
static void note_export(const struct settings *settings, const char *run, int attempt,
                        const char *path)
{
    struct error why = {0};
    struct store *store = NULL;

    if (!store_open(settings->runs_dir, settings->store_url, STORE_WRITE, &store, &why) ||
        !store_export_add(store, run, attempt, path ? path : "", &why))
        log_debug("this export could not be noted in the store: %s", why.text);
    store_close(store);
}

static bool export_run(const struct settings *settings, const char *run_name, const char *backward,
                       const struct export_options *options, struct arena *a,
                       struct export_summary *out, struct error *err)
{
    struct chosen c = {0}, g = {0};
    struct store *store = NULL;
    bool ok = store_open(settings->runs_dir, settings->store_url, STORE_READ, &store, err) &&
              choose(store, run_name, a, &c, err) &&
              (!backward || choose(store, backward, a, &g, err)) &&
              write_export(store, &c, backward ? &g : NULL, options, a, out, err);

    store_close(store);
    if (ok)
        note_export(settings, c.h.info.id, c.best->candidate.attempt, out->source_path);
    if (ok && backward)
        note_export(settings, g.h.info.id, g.best->candidate.attempt, out->source_path);
    run_history_release(&c.h);
    run_history_release(&g.h);
    return ok;
}

/* Judges a run's kernel with the current settings; *name becomes the name of the new run. */
static bool judge_run(const struct settings *settings, struct progress *progress, struct arena *a,
                      const char **name, struct error *err)
{
    struct eval_summary *eval = arena_alloc(a, sizeof(*eval));

    if (!loop_eval_run(settings, *name, progress, a, eval, err))
        return error_add(err, "judging %s before its export", *name);
    if (eval->verdict.kind != VERDICT_PASS) {
        error_set(err, ERROR_JUDGED, "not exported: on %s its kernel got the verdict '%s': %s",
                  eval->device.name, verdict_names[eval->verdict.kind], eval->verdict.summary);
        return error_hint(err, "see why: cutegen show %s", eval->run_id);
    }
    *name = eval->run_id;
    return true;
}

bool loop_export(const struct settings *settings, const char *run_name,
                 const struct export_options *options, struct progress *progress, struct arena *a,
                 struct export_summary *out, struct error *err)
{
    const char *backward = options->backward;

    if (options->judge && (!judge_run(settings, progress, a, &run_name, err) ||
                           (backward && !judge_run(settings, progress, a, &backward, err))))
        return false;
    return export_run(settings, run_name, backward, options, a, out, err);
}
