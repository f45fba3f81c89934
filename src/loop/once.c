/* SPDX-License-Identifier: Apache-2.0 */
/*
 * once.c - the loop's steps without the loop: describe, eval, export.
 *
 * `eval` is a run of one attempt, so that its evidence is in the store like
 * any other and `cutegen show last` finds it.
 */
#include "loop/loop.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "loop/candidate.h"
#include "stage/stage.h"
#include "store/store.h"

#include <string.h>

enum { MAX_KERNEL_BYTES = 4 << 20 };

bool loop_describe(const struct settings *settings, const char *task_path, struct arena *a,
                   struct task *out, struct error *err)
{
    struct stage *st = NULL;
    bool ok = stage_open(settings, &st, err) && stage_describe(st, task_path, a, out, err);

    stage_close(st);
    return ok;
}

struct teller {
    struct progress *progress;
    const struct eval_summary *summary;
};

static void tell(void *ctx, const char *step, const struct candidate *cand)
{
    const struct teller *t = ctx;
    struct event ev = {.kind = EVENT_STAGE,
                       .text = step,
                       .candidate = cand,
                       .task = &t->summary->task,
                       .device = &t->summary->device};

    if (t->progress)
        t->progress->event(t->progress, &ev);
}

/* The final acceptance, where it is asked for; a refusal is then the verdict that counts. */
static bool eval_accept(const struct settings *settings, struct stage *st, struct run *run,
                        const struct candidate *cand, struct arena *a, struct eval_summary *out,
                        struct error *err)
{
    struct acceptance_request req = {settings, st, &out->task, cand, &out->build};
    struct acceptance what;

    if (!accept_candidate(&req, a, &what, err) || !run_accept_add(run, cand->attempt, &what, err))
        return false;
    if (what.verdict.kind == VERDICT_PASS)
        out->accepted = what.note;
    else
        out->verdict = what.verdict;
    return true;
}

static bool eval_stored(const struct settings *settings, struct stage *st, struct store *store,
                        const struct candidate *cand, struct progress *progress, struct arena *a,
                        struct eval_summary *out, struct error *err)
{
    json_t *options = json_pack("{ss}", "kind", "eval"), *environment = stage_environment(st);
    struct run_spec spec = {.task = &out->task,
                            .device = &out->device,
                            .model = "eval",
                            .options = options,
                            .environment = environment};
    struct attempt_outcome outcome = {.step = STEP_BUILD};
    struct judged judged = {&out->build, &out->test, &out->measurement, &outcome};
    struct teller teller = {progress, out};
    struct judging judging = {st, &out->task, tell, &teller};
    struct run *run = NULL;
    bool ok = false;

    if (!run_create(store, &spec, &run, err) ||
        !run_attempt_begin(run, cand, STAGE_SYNTHESIZE, 0, err) ||
        !judge_candidate(&judging, cand, a, &judged, err))
        goto done;
    outcome.kept = outcome.step == STEP_MEASURE && outcome.verdict.kind == VERDICT_PASS;
    if (!run_attempt_end(run, cand->attempt, &outcome, err))
        goto done;
    out->verdict = outcome.verdict;
    out->shapes = outcome.shapes;
    out->shape_count = outcome.shape_count;
    out->run_id = arena_strdup(a, run_id(run));
    if (settings->accept && outcome.kept && !cand->foreign) {
        tell(&teller, "accept", cand);
        if (!eval_accept(settings, st, run, cand, a, out, err))
            goto done;
    }
    ok = run_end(run, RUN_DONE, verdict_names[out->verdict.kind], err);
done:
    if (run && !ok) {
        struct error ignored = {0};

        run_end(run, RUN_FAILED, err->text, &ignored);
    }
    run_release(run);
    json_decref(options);
    json_decref(environment);
    return ok;
}

/* The workshop's device does not outlive it; the summary does. */
static struct device device_copy(const struct device *d, struct arena *a)
{
    struct device copy = *d;

    copy.name = arena_strdup(a, d->name);
    copy.arch = arena_strdup(a, d->arch);
    copy.place = d->place ? arena_strdup(a, d->place) : NULL;
    copy.models = d->models ? arena_strdup(a, d->models) : NULL;
    return copy;
}

/* Some editors put a mark at the beginning of UTF-8; compilers take it for code. */
static struct text without_mark(struct text t)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t n = sizeof(mark) - 1;

    return t.len >= n && !memcmp(t.data, mark, n) ? (struct text){t.data + n, t.len - n} : t;
}

bool loop_eval(const struct settings *settings, const char *task_path, const char *kernel_path,
               struct progress *progress, struct arena *a, struct eval_summary *out,
               struct error *err)
{
    struct candidate cand = {.attempt = 1, .change = path_base(kernel_path)};
    struct store *store = NULL;
    struct stage *st = NULL;
    bool ok = false;

    memset(out, 0, sizeof(*out));
    if (strlen(kernel_path) > 3 && !strcmp(kernel_path + strlen(kernel_path) - 3, ".py"))
        cand.foreign = path_absolute(a, kernel_path);
    if (!file_read(kernel_path, MAX_KERNEL_BYTES, a, &cand.source, err)) {
        err->kind = ERROR_USE;
        goto done;
    }
    cand.source = without_mark(cand.source);
    /* The store comes last: a start that fails leaves nothing behind. */
    if (!store_possible(settings->runs_dir, err) || !stage_open(settings, &st, err) ||
        !stage_warm(st, err) || !stage_describe(st, task_path, a, &out->task, err) ||
        !store_open(settings->runs_dir, settings->store_url, STORE_WRITE, &store, err))
        goto done;
    out->device = device_copy(stage_device(st), a);
    ok = eval_stored(settings, st, store, &cand, progress, a, out, err);
done:
    stage_close(st);
    store_close(store);
    return ok;
}

/* ---- export --------------------------------------------------------------- */

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

/* Where the kernel comes from: enough to repeat it and to doubt it. */
static json_t *export_record(const struct run_history *h, const struct attempt_record *best)
{
    json_t *j = json_object(), *prompts = json_array();
    char stamp[25];

    clock_stamp(h->info.started_ms, stamp);
    json_object_set_new(j, "run", json_string(h->info.id));
    json_object_set_new(j, "started", json_string(stamp));
    json_object_set_new(j, "task", json_string(h->info.task));
    json_object_set_new(j, "model", json_string(h->info.model));
    json_object_set_new(j, "device", json_string(h->info.device));
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

bool loop_export(const struct settings *settings, const char *run_name,
                 const struct export_options *options, struct arena *a, struct export_summary *out,
                 struct error *err)
{
    struct run_history h = {0};
    struct export_files files;
    const struct attempt_record *best;
    struct export_request req;
    struct store *store = NULL;
    json_t *record = NULL;
    const char *id;
    bool ok = false;

    if (!store_open(settings->runs_dir, settings->store_url, STORE_READ, &store, err) ||
        !store_run_find(store, run_name, a, &id, err) || !store_run_history(store, id, a, &h, err))
        goto done;
    if (h.info.best_attempt == 0) {
        error_set(err, ERROR_JUDGED, "run %s has no correct kernel to export", id);
        error_hint(err, "see why: cutegen show %s", id);
        goto done;
    }
    best = &h.attempts[h.info.best_attempt - 1];
    record = export_record(&h, best);
    req = (struct export_request){
        .task = &h.task,
        .best = &best->candidate,
        .device = &h.device,
        .record = record,
        .settings = settings,
        .fallback = options->fallback,
        .shared = options->shared,
        .dir = options->dir ? options->dir
                            : path_join(a, path_join(a, store_dir(store), id), "export"),
    };
    if (!stage_export(&req, a, &files, err))
        goto done;
    *out = (struct export_summary){.dir = req.dir,
                                   .module_path = files.module_path,
                                   .source_path = files.source_path,
                                   .record_path = files.record_path,
                                   .shared_path = files.shared_path,
                                   .no_shared = files.no_shared};
    ok = true;
done:
    json_decref(record);
    run_history_release(&h);
    store_close(store);
    return ok;
}
