/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - the life of a run: how it begins, is resumed, is watched and ends.
 */
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "loop/state.h"

#include <string.h>

enum {
    MODEL_DEPTH = 12,
    LADDER_DEPTH = 64, /* more steps than any recipe has */
};

volatile sig_atomic_t loop_interrupts;

void loop_event(struct loop *l, struct event ev)
{
    if (!l->progress)
        return;
    ev.run_id = run_id(l->run);
    ev.task = &l->task;
    ev.device = stage_device(l->st);
    ev.depth_now = l->depth;
    ev.attempt_now = ev.candidate ? ev.candidate->attempt : l->attempt + 1;
    ev.tokens = l->tokens;
    ev.cost_usd = l->cost_usd;
    ev.first_us = l->first ? l->first->time.time_us : 0;
    ev.best_us = l->best ? l->best->time.time_us : 0;
    l->progress->event(l->progress, &ev);
}

bool loop_stop_now(struct loop *l, struct error *err)
{
    if (!loop_interrupts)
        return false;
    error_set(err, ERROR_INTERRUPTED, "stopped");
    error_hint(err, "continue with: cutegen resume %s", run_id(l->run));
    return true;
}

static bool run_begin(struct loop *l, struct store *store, const struct settings *settings,
                      struct error *err)
{
    json_t *options = run_options_json(settings, &l->opt);
    json_t *environment = stage_environment(l->st);
    struct run_spec spec = {.task = &l->task,
                            .device = stage_device(l->st),
                            .model = l->opt.given ? "tune" : settings->model,
                            .suite = l->opt.suite,
                            .job = settings->job,
                            .options = options,
                            .environment = environment};
    bool ok;

    json_object_set_new(options, "profile_depth", json_integer(l->profile_from));
    if (stage_base_url(l->st)) /* also if it came from the environment or is the default */
        json_object_set_new(options, "base_url", json_from_string(stage_base_url(l->st)));
    ok = run_create(store, &spec, &l->run, err);
    json_decref(options);
    json_decref(environment);
    return ok;
}

/* Stores options changed with `resume`, so that they apply to the next resume, too. */
static bool keep_changes(struct loop *l, struct error *err)
{
    json_t *options = json_deep_copy(l->past.options), *now;
    bool ok;

    if (!l->opt.said || !l->opt.said[0] || !options) {
        json_decref(options);
        return true;
    }
    now = run_options_json(l->settings, &l->opt);
    json_object_update(options, now);
    if (stage_base_url(l->st))
        json_object_set_new(options, "base_url", json_from_string(stage_base_url(l->st)));
    ok = run_set_options(l->run, options, err);
    json_decref(now);
    json_decref(options);
    return ok;
}

/* Keeps the depth at least as large as the one reached: the replay must pass through all of it. */
static void keep_depth(struct loop *l)
{
    int reached = 0;

    for (size_t i = 0; i < l->past.attempt_count; i++)
        if (l->past.attempts[i].candidate.depth > reached)
            reached = l->past.attempts[i].candidate.depth;
    if (l->opt.max_depth < 0 || l->opt.max_depth >= reached)
        return;
    log_warn("--depth %d is ignored: run %s has reached depth %d", l->opt.max_depth,
             l->opt.resume_id, reached);
    l->opt.max_depth = reached;
}

/* Times of one run are compared with each other, so they must come from one kind of device. */
static bool check_same_device(const struct loop *l, struct error *err)
{
    const struct device *was = &l->past.device, *is = stage_device(l->st);
    const char *was_models = was->models ? was->models : "", *models = is->models ? is->models : "";

    if (was->kind == is->kind && !strcmp(was->name, is->name) && !strcmp(was_models, models))
        return true;
    error_set(err, ERROR_USE,
              "run %s began on %s%s%s; here is %s%s%s, and their times cannot be "
              "compared",
              l->opt.resume_id, was->name, *was_models ? " as " : "", was_models, is->name,
              *models ? " as " : "", models);
    return error_hint(err, "continue where that device is, or start a new run: cutegen run %s",
                      l->task.path);
}

static bool asked_to_stop(void *ctx)
{
    (void)ctx;
    return loop_interrupts > 0;
}

static bool run_go_on(struct loop *l, struct store *store, struct error *err)
{
    struct settle_how how = {.stop = asked_to_stop};

    if (!run_take(store, l->opt.resume_id, &l->run, err) || !run_calls_settle(l->run, &how, err))
        return false;
    if (how.killed)
        log_warn("%d model calls were cut short with the process that made them: they are booked "
                 "at their upper bound and asked again",
                 how.killed);
    /* History read before we owned the run may be stale: another process may have driven the
     * run. */
    run_history_release(&l->past);
    l->past = (struct run_history){0};
    if (!store_run_history(store, l->opt.resume_id, l->a, &l->past, err))
        return false;
    loop_recall_calls(l);
    if (!check_same_device(l, err))
        return false;
    if (text_equal(l->past.task.source, l->task.source))
        return keep_changes(l, err);
    error_set(err, ERROR_USE, "the task %s has changed since run %s began", l->task.path,
              l->opt.resume_id);
    return error_hint(err, "start a new run: cutegen run %s", l->task.path);
}

static void summarise(const struct loop *l, struct run_summary *out)
{
    out->run_id = arena_strdup(l->a, run_id(l->run));
    out->run_dir = arena_strdup(l->a, run_dir(l->run));
    out->report_path = path_join(l->a, out->run_dir, "report.html");
    out->attempts = l->attempt;
    out->calls = l->calls;
    out->unpriced = l->unpriced;
    out->tokens = l->tokens;
    out->cost_usd = l->cost_usd;
    out->ended = l->ended;
    out->found = l->best != NULL;
    out->accepted_why = "";
    if (!l->best)
        return;
    if (l->best->acceptance) {
        const struct acceptance *what = l->best->acceptance;
        bool yes = what->verdict.kind == VERDICT_PASS;

        out->accepted = yes ? ACCEPTED_YES : ACCEPTED_NO;
        out->accepted_why = yes ? arena_strdup(l->a, what->note)
                                : arena_printf(l->a, "%s: %s", verdict_names[what->verdict.kind],
                                               what->verdict.summary);
    }
    out->best = l->best->cand;
    out->best_time = l->best->time;
    out->best_test = l->best->test;
    out->first_time = l->first->time;
    /* In a resumed run these may belong to the history, which is freed before the summary. */
    json_own(l->a, json_incref(out->best_time.parts));
    json_own(l->a, json_incref(out->first_time.parts));
    json_own(l->a, json_incref(out->best_test.counters));
    out->depths = l->last->cand.depth;
}

static bool has_column(const struct measurement *m, const char *name)
{
    for (int i = 0; i < m->baseline_count; i++)
        if (strncmp(m->baselines[i].name, name, strlen(name)) == 0)
            return true;
    return false;
}

/*
 * Times the best kernel again, interleaved with every baseline. Cores are idle now, so compilation
 * by torch.compile disturbs no measurement. These figures replace the earlier ones, so that all
 * columns were measured together.
 */
static bool loop_all_columns(struct loop *l, struct error *err)
{
    struct settled *s = l->best;
    struct build_result build;
    struct measurement m;
    struct error why = {0};

    if (!s || s->outcome.shape_count || has_column(&s->time, "compile") ||
        !stage_all_baselines(l->st, &l->task))
        return true;
    loop_event(l, (struct event){.kind = EVENT_STAGE, .text = "measure", .candidate = &s->cand});
    if (!stage_build(l->st, &l->task, &s->cand, l->a, &build, &why) ||
        build.verdict.kind != VERDICT_PASS ||
        !stage_measure(l->st, &l->task, &build, &s->test, l->a, &m, &why) ||
        m.verdict.kind != VERDICT_PASS) {
        log_info("the best kernel could not be timed with every baseline: %s",
                 why.kind ? why.text : "another verdict");
        return true;
    }
    s->time = m;
    return run_measured_again(l->run, s->cand.attempt, &m, err);
}

/* Stores the run's final state after the loop has returned. */
static void run_close(struct loop *l, bool ok, const struct error *why)
{
    struct error ignored = {0};
    enum run_state state = ok ? RUN_DONE
                           : why->kind == ERROR_INTERRUPTED || why->kind == ERROR_BUDGET
                               ? RUN_STOPPED
                               : RUN_FAILED;

    if (!ok)
        l->ended = arena_strdup(l->a, why->text);
    if (!run_end(l->run, state, l->ended, &ignored))
        log_warn("the end of run %s could not be stored: %s", run_id(l->run), ignored.text);
    loop_event(l, (struct event){.kind = EVENT_END, .text = l->ended});
}

static bool check_target(const struct settings *s, const struct run_options *o, struct error *err)
{
    const struct language_facts *target = &languages[s->target];

    if (o->given && target->python) {
        error_set(err, ERROR_USE, "kernels in %s declare no tunables", target->words);
        return error_hint(err, "the tuner searches CUTEGEN_TUNE values of .cu files "
                               "(docs/kernel-abi.md)");
    }
    if (s->target == LANGUAGE_CUTE || (strcmp(s->model, "builtin") != 0 && !o->seed_builtin))
        return true;
    error_set(err, ERROR_USE, "the built-in engineer writes CuTe, not %s", target->words);
    return error_hint(err, "name a model (--model), or leave out --target %s", target->name);
}

bool loop_share_kernels(struct settings *set, struct store **store, struct arena *a,
                        struct error *err)
{
    if ((!set->store_url || !*set->store_url) && !set->compile_on_queue)
        return true;
    if (!*store && !store_open(set->runs_dir, set->store_url, STORE_WRITE, store, err))
        return false;
    set->kernels =
        store_kernels(*store, set->compile_on_queue ? COMPILED_BY_QUEUE : COMPILED_HERE, a);
    return true;
}

/* Shares the budget with the suite's other runs: through a file, or through the store if they may
 * run on other machines. */
static void share_budget(struct loop *l, struct settings *set, struct store *store)
{
    if (store && set->kernels)
        set->budget_text = suite_budget(store, l->opt.suite, l->opt.task_path, l->a);
    else
        set->budget_file = suite_budget_path(l->a, set->runs_dir, l->opt.suite);
}

bool loop_run(const struct settings *settings, const struct run_options *options,
              struct progress *progress, struct arena *a, struct run_summary *out,
              struct error *err)
{
    struct settings set = *settings;
    struct loop l = {.settings = &set,
                     .opt = *options,
                     .progress = progress,
                     .a = a,
                     .history = json_array(),
                     .ended = ""};
    struct store *store = NULL;
    const char *id;
    bool ok = false;

    memset(out, 0, sizeof(*out));
    pthread_mutex_init(&l.asking, NULL);
    if (l.opt.resume_id) {
        if (!store_open(set.runs_dir, set.store_url, STORE_WRITE, &store, err) ||
            !store_run_find(store, l.opt.resume_id, a, &id, err) ||
            !store_run_history(store, id, a, &l.past, err))
            goto done;
        l.opt.resume_id = id;
        l.opt.task_path = l.past.task.path;
        if (!run_options_restore(l.past.options, a, &set, &l.opt, err))
            goto done;
        keep_depth(&l);
    }
    if (!check_target(&set, &l.opt, err))
        goto done;
    if (l.opt.max_depth < 0)
        l.opt.max_depth = loop_is_ladder(&set) ? LADDER_DEPTH : MODEL_DEPTH;
    if (!loop_share_kernels(&set, &store, a, err))
        goto done;
    if (l.opt.suite)
        share_budget(&l, &set, store);
    if (!store_possible(set.runs_dir, err) || !stage_open(&set, &l.st, err) ||
        !stage_warm(l.st, err) || !stage_describe(l.st, l.opt.task_path, a, &l.task, err))
        goto done;
    /* A new run's store is opened last, so that a failed start leaves nothing behind. */
    if (!store && !store_open(set.runs_dir, set.store_url, STORE_WRITE, &store, err))
        goto done;
    l.profile_from = run_profile_depth(&set, &l.opt, l.task.class);
    if (l.past.options) /* a greater depth does not change it */
        l.profile_from = (int)json_int_or(l.past.options, "profile_depth", l.profile_from);
    l.profile_early = l.opt.profile_from < 0 && !loop_is_ladder(&set);
    if (!(l.opt.resume_id ? run_go_on(&l, store, err) : run_begin(&l, store, &set, err)))
        goto done;
    loop_event(&l, (struct event){.kind = EVENT_TASK, .text = stage_engineer(l.st)});
    ok = loop_memory(&l, store, err) && loop_iterate(&l, err) && loop_tune(&l, err) &&
         loop_accept_best(&l, err) && loop_all_columns(&l, err);
    if (ok && (size_t)l.attempt < l.past.attempt_count)
        log_warn("with these flags run %s ends after %d of the %zu attempts it has made; `cutegen "
                 "show %s` has the best of all",
                 run_id(l.run), l.attempt, l.past.attempt_count, run_id(l.run));
    run_close(&l, ok, err);
    summarise(&l, out);
done:
    run_release(l.run);
    run_history_release(&l.past);
    stage_close(l.st); /* before the store, because its builders use the store's kernels */
    store_close(store);
    json_decref(l.history);
    pthread_mutex_destroy(&l.asking);
    return ok;
}
