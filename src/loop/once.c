/* SPDX-License-Identifier: Apache-2.0 */
/*
 * once.c - single steps of the loop: describe, eval, compile, prompt.
 *
 * `eval` is a run with one attempt, so that its evidence is in the store like any other and
 * `cutegen show last` finds it.
 */
#include "loop/loop.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"
#include "loop/candidate.h"
#include "loop/state.h"
#include "stage/stage.h"
#include "store/queue.h"
#include "store/store.h"

#include <stdio.h>
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

/* The final acceptance if it was asked for; a refusal then becomes the verdict. */
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

/* Opens a new run, or the run of a job, which may have begun earlier. */
static bool open_run(const struct settings *settings, struct store *store,
                     const struct run_spec *spec, struct arena *a, struct run **run,
                     struct error *err)
{
    struct queue_entry job;

    if (!settings->job)
        return run_create(store, spec, run, err);
    if (!queue_read(store, settings->job, a, &job, err))
        return false;
    return *job.run ? run_take(store, job.run, run, err) && run_start_over(*run, err)
                    : run_create(store, spec, run, err);
}

/* Times all baselines together; these figures replace the earlier ones. */
static bool eval_columns(struct stage *st, struct run *run, const struct candidate *cand,
                         struct arena *a, struct eval_summary *out, struct error *err)
{
    struct measurement m;

    if (!stage_all_baselines(st, &out->task))
        return true; /* simt has no baselines */
    if (!stage_measure(st, &out->task, &out->build, &out->test, a, &m, err))
        return false;
    if (m.verdict.kind != VERDICT_PASS)
        return true;
    out->measurement = m;
    return run_measured_again(run, cand->attempt, &m, err);
}

static json_t *eval_options(const struct settings *s)
{
    json_t *options = json_pack("{ss}", "kind", "eval"), *set = json_array();

    for (size_t i = 0; s->set && s->set[i]; i++)
        json_array_append_new(set, json_from_string(s->set[i]));
    json_object_set_new(options, "set", set);
    json_object_set_new(options, "baseline", json_string(s->baseline ? s->baseline : "defaults"));
    json_object_set_new(options, "target", json_string(languages[s->target].name));
    return options;
}

static bool eval_stored(const struct settings *settings, struct stage *st, struct store *store,
                        const struct candidate *cand, struct progress *progress, struct arena *a,
                        struct eval_summary *out, struct error *err)
{
    json_t *options = eval_options(settings), *environment = stage_environment(st);
    struct run_spec spec = {.task = &out->task,
                            .device = &out->device,
                            .model = "eval",
                            .job = settings->job,
                            .options = options,
                            .environment = environment};
    struct attempt_outcome outcome = {.step = STEP_BUILD};
    struct judged judged = {&out->build, &out->test, &out->measurement, &outcome, false};
    struct teller teller = {progress, out};
    struct judging judging = {st, &out->task, tell, &teller};
    struct run *run = NULL;
    bool ok = false;

    if (!open_run(settings, store, &spec, a, &run, err) ||
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
    if (settings->all_baselines && outcome.kept && !cand->foreign && !out->shape_count) {
        tell(&teller, "measure", cand);
        if (!eval_columns(st, run, cand, a, out, err))
            goto done;
    }
    if (settings->profile && outcome.kept && !cand->foreign) {
        tell(&teller, "profile", cand);
        if (!stage_profile(st, cand, &out->build, &out->test, &out->measurement, a, &out->profile,
                           err) ||
            !run_profile_add(run, cand->attempt, &out->profile, err))
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

/* Copies the device, since the summary outlives the workshop that owns it. */
static struct device device_copy(const struct device *d, struct arena *a)
{
    struct device copy = *d;

    copy.name = arena_strdup(a, d->name);
    copy.arch = arena_strdup(a, d->arch);
    copy.place = d->place ? arena_strdup(a, d->place) : NULL;
    copy.models = d->models ? arena_strdup(a, d->models) : NULL;
    return copy;
}

/* Drops the byte order mark that some editors write and compilers take for code. */
static struct text without_mark(struct text t)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t n = sizeof(mark) - 1;

    return t.len >= n && !memcmp(t.data, mark, n) ? (struct text){t.data + n, t.len - n} : t;
}

/* ---- the range of shapes that a plan declares --------------------------------------- */

enum { MAX_DECLARED = 4 };

/* "CUTEGEN_SHAPES(BATCH, 1, 512);" converted to the form of --shapes; NULL: another line. */
static const char *declared_range(struct text line, struct arena *a)
{
    static const char word[] = "CUTEGEN_SHAPES";
    struct text t = text_trim(line);
    char name[64];
    long long least, most;

    if (t.len < strlen(word) || strncmp(t.data, word, strlen(word)) != 0)
        return NULL;
    if (sscanf(arena_strndup(a, t.data, t.len), "CUTEGEN_SHAPES ( %63[A-Za-z0-9_] , %lld , %lld )",
               name, &least, &most) != 3)
        return NULL;
    return arena_printf(a, "%s=%lld..%lld", name, least, most);
}

static bool is_given(const char *const *shapes, const char *range)
{
    size_t name = strcspn(range, "=") + 1;

    for (; shapes && *shapes; shapes++)
        if (!strncmp(*shapes, range, name))
            return true;
    return false;
}

/* Adds the declared range of a constant unless the user gave shapes for it. */
static void add_declared(struct text source, struct arena *a, struct settings *s)
{
    size_t count = 0, declared = 0;
    const char **all;

    while (s->shapes && s->shapes[count])
        count++;
    all = arena_array(a, count + MAX_DECLARED + 1, sizeof(*all));
    for (size_t i = 0; i < count; i++)
        all[i] = s->shapes[i];
    for (struct text line; declared < MAX_DECLARED && text_next_line(&source, &line);) {
        const char *range = declared_range(line, a);

        if (range && !is_given(s->shapes, range))
            all[count + declared++] = range;
    }
    count += declared;
    all[count] = NULL;
    if (count)
        s->shapes = all;
}

/* Chooses the kind of candidate: a .py file is a ModelNew, or kernels with a plan in Python; any
 * other file is CUDA C++. */
static bool choose_door(const char *path, struct arena *a, struct settings *s,
                        struct candidate *cand, struct error *err)
{
    size_t len = strlen(path);
    bool foreign = false;

    if (len < 4 || strcmp(path + len - 3, ".py") != 0) {
        if (!languages[s->target].python)
            return true;
        error_set(err, ERROR_USE, "--target %s judges a .py file, and %s is none",
                  languages[s->target].name, path);
        return error_hint(err, "leave out --target for CuTe, or --target cuda");
    }
    if (!stage_python_door(cand->source, path, &s->target, &foreign, err))
        return false;
    cand->foreign = foreign ? path_absolute(a, path) : NULL;
    return true;
}

bool loop_eval(const struct settings *given, const char *task_path, const char *kernel_path,
               struct progress *progress, struct arena *a, struct eval_summary *out,
               struct error *err)
{
    struct candidate cand = {.attempt = 1, .change = path_base(kernel_path)};
    struct settings own = *given;
    struct store *store = NULL;
    struct stage *st = NULL;
    bool ok = false;

    memset(out, 0, sizeof(*out));
    if (!json_can_name(kernel_path, err))
        return false;
    if (!file_read(kernel_path, MAX_KERNEL_BYTES, a, &cand.source, err)) {
        err->kind = ERROR_USE;
        goto done;
    }
    cand.source = without_mark(cand.source);
    if (!choose_door(kernel_path, a, &own, &cand, err))
        goto done;
    add_declared(cand.source, a, &own);
    /* A store that is a file is opened last, so that a failed start leaves nothing behind. */
    if (!store_possible(own.runs_dir, err) || !loop_share_kernels(&own, &store, a, err) ||
        !stage_open(&own, &st, err) || !stage_warm(st, err) ||
        !stage_describe(st, task_path, a, &out->task, err) ||
        (!store && !store_open(own.runs_dir, own.store_url, STORE_WRITE, &store, err)))
        goto done;
    out->device = device_copy(stage_device(st), a);
    out->language = cand.foreign ? NULL : languages[own.target].name;
    ok = eval_stored(&own, st, store, &cand, progress, a, out, err);
done:
    stage_close(st);
    store_close(store);
    return ok;
}

/* ---- compile -------------------------------------------------------------- */

/* Is it an architecture name in NVRTC's form? */
static bool is_arch(const char *text)
{
    const char *p = !strncmp(text, "sm_", 3)        ? text + 3
                    : !strncmp(text, "compute_", 8) ? text + 8
                                                    : "";
    size_t digits = strspn(p, "0123456789");

    return digits >= 2 && digits <= 3 &&
           (!p[digits] || (strchr("af", p[digits]) && !p[digits + 1]));
}

bool loop_compile(const struct settings *settings, const struct compile_request *req,
                  struct arena *a, struct compile_summary *out, struct error *err)
{
    struct settings own = *settings;
    struct build_result build = {0};
    json_t *names = json_array();
    struct store *store = NULL;
    struct stage *st = NULL;
    struct text source;
    bool ok;

    if (!is_arch(req->arch)) {
        json_decref(names);
        error_set(err, ERROR_USE, "'%s' is not an architecture", req->arch);
        return error_hint(err, "for instance --arch sm_90a");
    }
    for (size_t i = 0; req->kernels[i]; i++)
        json_array_append_new(names, json_from_string(req->kernels[i]));
    own.model = "builtin"; /* no model is asked */
    ok = file_read(req->file, MAX_KERNEL_BYTES, a, &source, err) &&
         store_open(own.runs_dir, own.store_url, STORE_WRITE, &store, err);
    if (ok)
        own.kernels = store_kernels(store, COMPILED_FOR_QUEUE, a);
    ok = ok && stage_open(&own, &st, err) &&
         stage_compile(st, without_mark(source), req->arch, names, a, &build, err);
    *out = (struct compile_summary){build.verdict, build.build_ms, build.cached};
    stage_close(st);
    store_close(store);
    json_decref(names);
    return ok;
}

/* ---- prompt --------------------------------------------------------------- */

static bool known_here(void *ctx, const struct task *task, const struct device *device,
                       struct arena *a, const char **text, struct error *err)
{
    const struct settings *settings = ctx;
    struct error none = {0};
    struct store *store = NULL;
    bool ok;

    if (!store_open(settings->runs_dir, settings->store_url, STORE_READ, &store, &none))
        return true; /* no runs yet */
    ok = memory_read(store, task, device, settings->target, "", a, text, err);
    store_close(store);
    return ok;
}

bool loop_prompt(const struct settings *settings, const struct prompt_options *options,
                 struct arena *a, struct request *out, struct error *err)
{
    struct settings own = *settings;
    struct prompt_preview what = {.stage = options->stage,
                                  .task_path = options->task_path,
                                  .source_path = options->kernel_path,
                                  .verdict = options->verdict,
                                  .known = options->memory ? known_here : NULL,
                                  .ctx = &own};

    return stage_prompt(settings, &what, a, out, err);
}
