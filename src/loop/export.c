/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.c - which kernel is exported, whether it may be, and what its record says.
 *
 * Invariants
 * 1. What is exported is what was judged: code and launch list come from the store, by the hash
 *    that was stored with the verdict. Nothing is built here.
 * 2. A device or sizes that are named are judged first, as a run of their own; that is exported.
 */
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
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

/* Where the kernel comes from: enough to repeat it and to doubt it. */
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

/* ---- judging first ---------------------------------------------------------------- */

/* The task as the run had it: its file, or a copy where that has changed since. */
static bool task_file(const struct run_history *h, const char *dir, struct arena *a,
                      const char **path, struct error *err)
{
    struct error ignored = {0};
    struct text now;

    *path = h->task.path;
    if (file_read(h->task.path, h->task.source.len + 1, a, &now, &ignored) &&
        text_equal(now, h->task.source))
        return true;
    *path = path_join(a, dir, arena_printf(a, "%s.py", h->task.name));
    return file_write(*path, h->task.source, err);
}

static bool judge_first(const struct settings *settings, const struct run_history *h,
                        const struct attempt_record *best, struct progress *progress,
                        struct arena *a, const char **id, struct error *err)
{
    struct eval_summary *eval = arena_alloc(a, sizeof(*eval));
    const char *task, *kernel;
    struct error ignored = {0};
    char *dir = NULL;
    bool ok;

    if (!dir_temp("cutegen-export", a, &dir, err))
        return false;
    kernel = path_join(a, dir, arena_printf(a, "%s.cu", h->task.name));
    ok = file_write(kernel, best->candidate.source, err) && task_file(h, dir, a, &task, err) &&
         loop_eval(settings, task, kernel, progress, a, eval, err);
    dir_remove(dir, &ignored);
    if (!ok)
        return error_add(err, "judging %s before its export", h->info.id);
    if (eval->verdict.kind != VERDICT_PASS) {
        error_set(err, ERROR_JUDGED, "not exported: on %s its kernel is '%s': %s",
                  eval->device.name, verdict_names[eval->verdict.kind], eval->verdict.summary);
        return error_hint(err, "see why: cutegen show %s", eval->run_id);
    }
    *id = eval->run_id;
    return true;
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
                   : "run %s is of an older cutegen, which kept no code",
              id);
    return error_hint(err, "judge it again and export that: cutegen export %s --device DEVICE", id);
}

static bool find_best(const char *id, const struct run_history *h,
                      const struct attempt_record **best, struct error *err)
{
    if (h->info.best_attempt == 0) {
        error_set(err, ERROR_JUDGED, "run %s has no correct kernel to export", id);
        return error_hint(err, "see why: cutegen show %s", id);
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
    return error_hint(err, "see why: cutegen show %s --attempt %d; --force exports it all the same",
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

/* The main shape, then every other one that the same code was judged at. */
static size_t find_cases(const struct run_history *h, const struct attempt_record *best,
                         const struct build_result *build, struct arena *a,
                         struct export_case *cases)
{
    const struct attempt_outcome *o = &best->outcome;
    json_t *scalars = json_object_get(h->task.description, "scalars");
    size_t count = 0;

    cases[count++] = (struct export_case){.description = h->task.description, .build = build};
    for (int i = 0; i < o->shape_count; i++) {
        const struct shape_result *s = &o->shapes[i];
        struct build_result *own = arena_alloc(a, sizeof(*own));

        if (s->verdict.kind != VERDICT_PASS || !s->module_hash || !s->launches ||
            strcmp(s->module_hash, build->code_hash) != 0 ||
            !names_all(build->names, s->launches) ||
            json_equal(s->inputs, json_object_get(h->task.description, "inputs")))
            continue;
        *own = *build;
        own->launches = s->launches;
        cases[count++] = (struct export_case){
            .description = json_own(a, json_pack("{s:O, s:O, s:O?}", "inputs", s->inputs, "outputs",
                                                 s->outputs, "scalars", scalars)),
            .build = own};
    }
    return count;
}

static bool write_export(struct store *store, const struct run_history *h,
                         const struct attempt_record *best, const struct export_options *options,
                         struct arena *a, struct export_summary *out, struct error *err)
{
    struct build_result *build = arena_alloc(a, sizeof(*build));
    struct export_case *cases =
        arena_array(a, (size_t)best->outcome.shape_count + 1, sizeof(*cases));
    json_t *record = json_own(a, export_record(h, best));
    struct export_request req = {
        .task = &h->task,
        .best = &best->candidate,
        .device = &h->device,
        .record = record,
        .cases = cases,
        .fallback = options->fallback,
        .gradients = !options->no_gradients,
        .ptx = options->ptx,
        .dir = options->dir ? options->dir
                            : path_join(a, path_join(a, store_dir(store), h->info.id), "export"),
    };
    struct export_files files;

    *build = *best->outcome.build;
    if (!may_export(h, options->force, err) || !layout_of(options->layout, &req.layout, err) ||
        !stored_code(store, h->info.id, build->code_hash, a, &build->code, err) ||
        (options->ptx && !stored_code(store, h->info.id, build->ptx_hash, a, &build->ptx, err)))
        return false;
    req.case_count = find_cases(h, best, build, a, cases);
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
                                   .code_hash = build->code_hash};
    return true;
}

/* So that `store prune` keeps what it cites. Whoever may only read the store exports all the same.
 */
static void note_export(const struct settings *settings, const char *run, int attempt,
                        const char *path)
{
    struct error why = {0};
    struct store *store = NULL;

    if (!store_open(settings->runs_dir, settings->store_url, STORE_WRITE, &store, &why) ||
        !store_export_add(store, run, attempt, path ? path : "", &why))
        log_debug("the store does not know of this export: %s", why.text);
    store_close(store);
}

/* Exports a run as it is, or with `judge` only finds out which run that is. */
static bool export_run(const struct settings *settings, const char *run_name,
                       const struct export_options *options, struct progress *progress,
                       struct arena *a, const char **judged_id, struct export_summary *out,
                       struct error *err)
{
    struct run_history h = {0};
    const struct attempt_record *best = NULL;
    struct store *store = NULL;
    const char *id = NULL;
    bool ok = store_open(settings->runs_dir, settings->store_url, STORE_READ, &store, err) &&
              store_run_find(store, run_name, a, &id, err) &&
              store_run_history(store, id, a, &h, err) && find_best(id, &h, &best, err);

    if (ok && judged_id) {
        store_close(store); /* the judgement writes it */
        store = NULL;
        ok = judge_first(settings, &h, best, progress, a, judged_id, err);
    } else if (ok) {
        ok = write_export(store, &h, best, options, a, out, err);
    }
    store_close(store);
    if (ok && !judged_id)
        note_export(settings, h.info.id, best->candidate.attempt, out->source_path);
    run_history_release(&h);
    return ok;
}

bool loop_export(const struct settings *settings, const char *run_name,
                 const struct export_options *options, struct progress *progress, struct arena *a,
                 struct export_summary *out, struct error *err)
{
    if (options->judge &&
        !export_run(settings, run_name, options, progress, a, &run_name, out, err))
        return false;
    return export_run(settings, run_name, options, progress, a, NULL, out, err);
}
