/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - the loop on one evolving kernel, and all of its policy.
 *
 *     synthesize -> judge -> (diagnose -> repair -> judge)*      depth 0
 *     (profile) -> optimize -> judge -> (diagnose -> repair -> judge)*     depth 1, 2, ...
 *
 * loop_first() and loop_depth() are these two lines, loop_step() and
 * loop_mend() what is in the parentheses. docs/loop.md tells the options.
 *
 * A run survives kill -9: what was asked and what came of each attempt is in
 * the store before the next thing begins. To resume, the same loop is run
 * again from its beginning over the stored answers and outcomes (loop_ask()
 * and loop_judge() look there first) until it meets the first thing that was
 * never done. So there is one path through the loop, and no state to restore.
 *
 * Invariants
 * 1. Everything the loop decides follows from the task, the options, the
 *    replies and the outcomes; no clock and no random number decides.
 * 2. An answer is stored before it is used; an attempt before the next.
 * 3. `best` is always a kernel that passed every test.
 */
#include "loop/loop.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "stage/stage.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
    MAX_FAILED_STEPS = 3, /* in a row; then the model has nothing more to give */
    MODEL_DEPTH = 12,
    LADDER_DEPTH = 64, /* more steps than any recipe has */
};

volatile sig_atomic_t loop_interrupts;

/* One candidate and everything known about it. */
struct settled {
    struct candidate cand;
    struct attempt_outcome outcome; /* points at the three below */
    struct build_result build;
    struct test_result test;
    struct measurement time;
    const struct profile *profile; /* once somebody wanted to read it; NULL: not yet */
    struct verdict accepted;       /* of the last look, once looked */
    const char *accepted_note;
    bool looked;
};

struct loop {
    const struct settings *settings;
    struct run_options opt;
    struct progress *progress;
    struct arena *a; /* lives as long as the run */
    struct stage *st;
    struct run *run;
    struct task task;
    struct run_history past; /* what a resumed run has already done */
    size_t next_call;        /* of past.calls */
    int attempt;             /* number of the last attempt */
    int depth;               /* being worked on */
    int profile_from;
    struct arena *answers[16]; /* of questions that were asked in a thread of their own */
    size_t answer_count;
    bool look_later; /* looking at the best kernel failed once: not before the end again */
    bool seeding;    /* the built-in engineer answers */
    json_t *history; /* what the model is told it has tried */
    struct settled *first, *best, *last; /* correct kernels; NULL: none yet */
    int stops;                           /* how often the model said STOP */
    int calls, unpriced;
    int64_t tokens;
    double cost_usd;
    const char *ended;
};

static void loop_event(struct loop *l, struct event ev)
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

static bool loop_stop_now(struct loop *l, struct error *err)
{
    if (!loop_interrupts)
        return false;
    error_set(err, ERROR_INTERRUPTED, "stopped");
    error_hint(err, "go on with: cutegen resume %s", run_id(l->run));
    return true;
}

/* ---- asking -------------------------------------------------------------- */

typedef bool stage_asker(struct stage *, const struct question *, struct arena *, struct proposal *,
                         struct error *);

static stage_asker *const askers[STAGE_KIND_COUNT] = {
    [STAGE_SYNTHESIZE] = stage_synthesize,
    [STAGE_DIAGNOSE] = stage_diagnose,
    [STAGE_REPAIR] = stage_repair,
    [STAGE_OPTIMIZE] = stage_optimize,
};

/* One question in a thread of its own, so that the time it takes can be used. */
struct asking {
    stage_asker *ask;
    struct stage *st;
    const struct question *q;
    struct arena *a; /* its own until the answer is there */
    struct proposal *out;
    struct error err;
    bool ok;
    atomic_bool answered;
};

static void *ask_thread(void *self)
{
    struct asking *k = self;

    k->ok = k->ask(k->st, k->q, k->a, k->out, &k->err);
    atomic_store(&k->answered, true);
    return NULL;
}

/* What outlives the run, moved to where it lives as long as its owner wants. */
static void proposal_move(struct proposal *p, struct arena *a)
{
    p->reply.text = arena_text(a, p->reply.text.data, p->reply.text.len);
    p->reply.model = arena_strdup(a, p->reply.model);
    p->reply.finish_reason = arena_strdup(a, p->reply.finish_reason);
    p->source = arena_text(a, p->source.data, p->source.len);
    p->change = arena_strdup(a, p->change);
    if (p->verdict.summary)
        p->verdict.summary = arena_strdup(a, p->verdict.summary);
    if (p->verdict.detail)
        p->verdict.detail = arena_strdup(a, p->verdict.detail);
}

static bool wants_accepting(const struct loop *l)
{
    return l->best && loop_wants_accepting(l->settings, stage_device(l->st));
}

/* Sanitizers and simt check the current best kernel; once is enough. */
static bool accept_best(struct loop *l, struct error *err)
{
    struct settled *s = l->best;
    struct build_result build;
    struct acceptance what = {&l->task, stage_device(l->st), &s->cand, &build};

    s->looked = stage_build(l->st, &l->task, &s->cand, l->a, &build, err) &&
                loop_accept(l->settings, l->st, &what, l->a, &s->accepted, &s->accepted_note, err);
    return s->looked;
}

/* What can be done while a model thinks. A failure here is met again where it counts. */
static bool has_work(const struct loop *l)
{
    return stage_has_work(l->st) ||
           (wants_accepting(l) && !l->best->looked && !l->look_later && stage_may_work(l->st));
}

static void work_ahead(struct loop *l)
{
    struct error why = {0};

    if (stage_has_work(l->st)) {
        stage_work_ahead(l->st, &l->task);
        return;
    }
    log_info("while the model thinks: checking attempt %d, the best so far", l->best->cand.attempt);
    if (!accept_best(l, &why)) {
        l->look_later = true;
        log_info("the best kernel could not be checked meanwhile: %s", why.text);
        return;
    }
    log_info("the check of attempt %d: %s", l->best->cand.attempt,
             verdict_names[l->best->accepted.kind]);
}

static bool ask_meanwhile(struct loop *l, enum stage_kind kind, const struct question *q,
                          struct proposal *out, struct error *err)
{
    struct asking k = {.ask = askers[kind], .st = l->st, .q = q, .a = arena_new(), .out = out};
    pthread_t thread;

    l->answers[l->answer_count++] = k.a;
    if (pthread_create(&thread, NULL, ask_thread, &k) != 0)
        return askers[kind](l->st, q, l->a, out, err);
    do
        work_ahead(l);
    while (!atomic_load(&k.answered) && has_work(l));
    pthread_join(thread, NULL);
    if (k.ok)
        proposal_move(out, l->a);
    else
        *err = k.err;
    return k.ok;
}

static bool brought_nothing(const struct reply *r)
{
    return strcmp(r->finish_reason, "interrupted") == 0 || strcmp(r->finish_reason, "failed") == 0;
}

static void loop_spent(struct loop *l, const struct reply *r)
{
    l->calls++;
    l->tokens += r->prompt_tokens > 0 ? r->prompt_tokens : 0;
    l->tokens += r->output_tokens > 0 ? r->output_tokens : 0;
    l->cost_usd += r->cost_usd > 0 ? r->cost_usd : 0;
    l->unpriced += r->cost_usd < 0;
}

/* Asks for the attempt that comes next; an answer already in the store is used again. */
static bool loop_ask(struct loop *l, enum stage_kind kind, struct question *q, struct proposal *out,
                     struct error *err)
{
    struct error ignored = {0};
    bool ok;

    q->task = &l->task;
    q->history = l->history;
    q->builtin = l->seeding;
    q->recorded = NULL;
    while (l->next_call < l->past.call_count && brought_nothing(&l->past.calls[l->next_call].reply))
        loop_spent(l, &l->past.calls[l->next_call++].reply); /* asked again */
    if (l->next_call < l->past.call_count) {
        const struct call_record *call = &l->past.calls[l->next_call++];

        if (call->stage != kind)
            return error_set(
                err, ERROR_MACHINE, "run %s cannot be taken up: its call %zu was for %s, not %s",
                run_id(l->run), l->next_call, stage_names[call->stage], stage_names[kind]);
        q->recorded = &call->reply;
    } else {
        loop_event(l, (struct event){.kind = EVENT_STAGE, .text = stage_names[kind]});
    }
    if (!q->recorded && l->answer_count < ARRAY_LEN(l->answers) && has_work(l))
        ok = ask_meanwhile(l, kind, q, out, err);
    else
        ok = askers[kind](l->st, q, l->a, out, err);
    if (!ok) {
        if (out->reply.finish_reason) /* it was cut, or failed after it had cost something */
            loop_spent(l, &out->reply);
        if (out->reply.finish_reason)
            (void)run_call_add(l->run, l->attempt + 1, &out->request, &out->reply, &ignored);
        return error_add(err, "%s", stage_names[kind]);
    }
    loop_spent(l, &out->reply);
    if (q->recorded)
        return true;
    return run_call_add(l->run, l->attempt + 1, &out->request, &out->reply, err) &&
           !loop_stop_now(l, err);
}

/* ---- judging ------------------------------------------------------------- */

/* The stored outcome of this attempt, if it came to its end before. */
static bool loop_recall(struct loop *l, struct settled *s)
{
    const struct attempt_record *rec;
    size_t index = (size_t)s->cand.attempt - 1;

    if (index >= l->past.attempt_count)
        return false;
    rec = &l->past.attempts[index];
    if (!rec->ended_ms || !text_equal(rec->candidate.source, s->cand.source))
        return false;
    s->outcome = rec->outcome;
    if (rec->outcome.build)
        s->build = *rec->outcome.build;
    if (rec->outcome.test)
        s->test = *rec->outcome.test;
    if (rec->outcome.measurement)
        s->time = *rec->outcome.measurement;
    return true;
}

/* Build, test, measure, until one of them says no. */
static bool judge(struct loop *l, struct settled *s, struct error *err)
{
    struct attempt_outcome *o = &s->outcome;

    o->step = STEP_BUILD;
    loop_event(l, (struct event){.kind = EVENT_STAGE, .text = "build", .candidate = &s->cand});
    if (!stage_build(l->st, &l->task, &s->cand, l->a, &s->build, err))
        return false;
    o->build = &s->build;
    o->verdict = s->build.verdict;
    if (o->verdict.kind != VERDICT_PASS)
        return true;

    o->step = STEP_TEST;
    loop_event(l, (struct event){.kind = EVENT_STAGE, .text = "test", .candidate = &s->cand});
    if (!stage_test(l->st, &l->task, &s->cand, &s->build, l->a, &s->test, err))
        return false;
    o->test = &s->test;
    o->verdict = s->test.verdict;
    if (o->verdict.kind != VERDICT_PASS)
        return true;

    o->step = STEP_MEASURE;
    loop_event(l, (struct event){.kind = EVENT_STAGE, .text = "measure", .candidate = &s->cand});
    if (!stage_measure(l->st, &l->task, &s->build, &s->test, l->a, &s->time, err))
        return false;
    o->measurement = &s->time;
    o->verdict = s->time.verdict;
    return true;
}

static void loop_remember(struct loop *l, const struct settled *s)
{
    const struct attempt_outcome *o = &s->outcome;
    json_t *entry = json_object();

    json_object_set_new(entry, "depth", json_integer(s->cand.depth));
    json_object_set_new(entry, "change", json_string(s->cand.change));
    json_object_set_new(entry, "verdict", json_string(verdict_names[o->verdict.kind]));
    if (s->cand.repair)
        json_object_set_new(entry, "repair", json_integer(s->cand.repair));
    if (o->measurement)
        json_object_set_new(entry, "time_us", json_number(o->measurement->time_us));
    else
        json_object_set_new(entry, "why", json_string(o->verdict.summary));
    json_object_set_new(entry, "kept", json_boolean(o->kept));
    json_array_append_new(l->history, entry);
}

/* A correct kernel counts, however the run goes on from here. */
static bool loop_take(struct loop *l, struct settled *s)
{
    if (s->outcome.verdict.kind != VERDICT_PASS)
        return false;
    l->last = s;
    if (!l->first)
        l->first = s;
    if (!l->best || s->time.time_us < l->best->time.time_us)
        l->best = s;
    return true;
}

/*
 * Gives a candidate its number and its verdict. `proposed` is the proposal's
 * own verdict: a reply without usable code is an attempt too.
 */
static bool loop_judge(struct loop *l, struct settled *s, const struct verdict *proposed,
                       enum stage_kind by, int parent, struct error *err)
{
    bool faster;

    s->cand.attempt = ++l->attempt;
    if (!loop_recall(l, s)) {
        if (!run_attempt_begin(l->run, &s->cand, by, parent, err))
            return false;
        s->outcome = (struct attempt_outcome){.step = STEP_PROPOSE, .verdict = *proposed};
        if (proposed->kind == VERDICT_PASS && !judge(l, s, err))
            return error_add(err, "attempt %d", s->cand.attempt);
        faster = !l->best || s->time.time_us < l->best->time.time_us;
        s->outcome.kept =
            s->outcome.verdict.kind == VERDICT_PASS && (faster || l->opt.advance == ADVANCE_LAST);
        if (!run_attempt_end(l->run, s->cand.attempt, &s->outcome, err))
            return false;
    }
    loop_remember(l, s);
    loop_event(l, (struct event){.kind = EVENT_ATTEMPT,
                                 .candidate = &s->cand,
                                 .verdict = &s->outcome.verdict,
                                 .measurement = s->outcome.measurement,
                                 .build_ms = s->build.build_ms});
    if (!loop_stop_now(l, err))
        return true;
    (void)loop_take(l, s); /* no caller adopts it any more */
    return false;
}

/* ---- one step: a proposal, repaired until it passes or is given up ---------- */

static struct settled *settled_new(struct loop *l, const struct proposal *p, int depth, int repair)
{
    struct settled *s = arena_alloc(l->a, sizeof(*s));

    s->cand = (struct candidate){
        .depth = depth, .repair = repair, .source = p->source, .change = p->change};
    return s;
}

/*
 * Diagnose and repair, a small patch at a time. On return *s is the last
 * attempt; whether it passes is in its verdict.
 */
static bool loop_mend(struct loop *l, struct settled **s, struct error *err)
{
    const struct candidate *broken = &(*s)->cand;
    struct verdict verdict = (*s)->outcome.verdict;
    const char *rejected = NULL;

    for (int repair = 1; repair <= l->opt.max_repairs; repair++) {
        struct question q = {.current = broken, .verdict = &verdict, .rejected = rejected};
        struct proposal diagnosis, patch;

        if ((*s)->outcome.verdict.kind == VERDICT_PASS)
            return true;
        if (!rejected) {
            if (!loop_ask(l, STAGE_DIAGNOSE, &q, &diagnosis, err))
                return false;
            if (diagnosis.done)
                return true; /* it would rather take its step back */
            q.diagnosis = arena_strndup(l->a, diagnosis.reply.text.data, diagnosis.reply.text.len);
        }
        if (!loop_ask(l, STAGE_REPAIR, &q, &patch, err))
            return false;
        if (patch.done || patch.stop)
            return true; /* likewise */
        if (patch.verdict.kind != VERDICT_PASS)
            patch.source = broken->source;
        *s = settled_new(l, &patch, broken->depth, repair);
        if (!loop_judge(l, *s, &patch.verdict, STAGE_REPAIR, broken->attempt, err))
            return false;
        rejected = NULL;
        if (patch.verdict.kind != VERDICT_PASS) {
            rejected = patch.verdict.detail; /* same kernel, same fault: ask for a better patch */
        } else {
            broken = &(*s)->cand;
            verdict = (*s)->outcome.verdict;
        }
    }
    return true;
}

/* A model says STOP: once in a run it is asked for a different idea, the second time the run ends.
 */
static bool loop_stopped(struct loop *l, const struct proposal *p, struct question *q)
{
    if (l->stops++ > 0) {
        l->ended = arena_printf(l->a, "the model stopped: %s", p->stop);
        return true;
    }
    q->rejected =
        arena_printf(l->a,
                     "you stopped the search (%s). Before it ends: if there is one idea of "
                     "a different kind, send its edits now. If not, reply STOP: again",
                     p->stop);
    return false;
}

/* Asks until there is code, judges it, repairs it. *out stays NULL when the model is done. */
static bool loop_step(struct loop *l, enum stage_kind kind, struct question *q, int depth,
                      struct settled **out, struct error *err)
{
    int parent = q->current ? q->current->attempt : 0;
    struct proposal p;

    *out = NULL;
    for (int again = 0; again <= l->opt.max_repairs; again++) {
        if (!loop_ask(l, kind, q, &p, err))
            return false;
        if (p.done) {
            l->ended = arena_strndup(l->a, p.reply.text.data, strcspn(p.reply.text.data, "\n"));
            return true;
        }
        if (p.stop && !loop_stopped(l, &p, q))
            continue;
        if (p.stop)
            return true;
        if (p.verdict.kind != VERDICT_PASS)
            p.source = q->current ? q->current->source : text_of("");
        *out = settled_new(l, &p, depth, again);
        if (!loop_judge(l, *out, &p.verdict, kind, parent, err))
            return false;
        if (p.verdict.kind == VERDICT_PASS)
            return loop_mend(l, out, err);
        q->rejected = p.verdict.detail;
    }
    return true;
}

/* Takes a step's result into the run; says whether it is a correct kernel. */
static bool loop_adopt(struct loop *l, struct settled *s)
{
    if (!loop_take(l, s))
        return false;
    loop_event(l, (struct event){.kind = EVENT_DEPTH,
                                 .candidate = &s->cand,
                                 .verdict = &s->outcome.verdict,
                                 .measurement = &s->time,
                                 .build_ms = s->build.build_ms});
    return true;
}

/* ---- the loop ------------------------------------------------------------ */

/* The profile of a kernel, taken when it is first wanted and never again. */
static bool loop_profile(struct loop *l, struct settled *from, struct error *err)
{
    size_t index = (size_t)from->cand.attempt - 1;
    const struct build_result *build = &from->build;
    struct build_result again;
    struct profile *taken;

    if (!from->profile && index < l->past.attempt_count)
        from->profile = l->past.attempts[index].profile;
    if (from->profile)
        return true;
    loop_event(l, (struct event){.kind = EVENT_STAGE, .text = "profile", .candidate = &from->cand});
    if (!build->module_path) { /* judged before this process: its files are gone */
        if (!stage_build(l->st, &l->task, &from->cand, l->a, &again, err))
            return false;
        build = &again;
    }
    taken = arena_alloc(l->a, sizeof(*taken));
    from->profile = taken;
    return stage_profile(l->st, build, &from->test, &from->time, l->a, taken, err) &&
           run_profile_add(l->run, from->cand.attempt, taken, err);
}

/*
 * Depth 0 from the built-in engineer: all of its steps, the fastest of which
 * the model goes on from. Nothing is found when it cannot write the task.
 */
static bool loop_seed(struct loop *l, struct error *err)
{
    struct question first = {0};
    struct settled *s;
    int failed = 0;

    l->seeding = true;
    if (!loop_step(l, STAGE_SYNTHESIZE, &first, 0, &s, err))
        return false;
    if (s)
        (void)loop_adopt(l, s);
    while (l->best && s && failed < MAX_FAILED_STEPS) {
        struct question q = {.current = &l->best->cand, .time = &l->best->time};

        if (!loop_step(l, STAGE_OPTIMIZE, &q, 0, &s, err))
            return false;
        if (s)
            failed = loop_adopt(l, s) ? 0 : failed + 1;
    }
    l->seeding = false;
    l->first = l->last = l->best; /* depth 0 is where the model begins */
    if (!l->best)
        loop_event(l, (struct event){.kind = EVENT_NOTE,
                                     .text = "the built-in engineer has no kernel for this task; "
                                             "the model writes the first"});
    return true;
}

/* Where the built-in engineer begins: with the best kernel it found for this task before. */
static bool loop_remembered(struct loop *l, struct candidate *known, struct question *q,
                            struct error *err)
{
    const char *by;

    if (l->opt.fresh || l->opt.resume_id || strcmp(l->settings->model, "builtin") != 0)
        return true;
    if (!run_known_best(l->run, l->a, &known->source, &by, err))
        return false;
    if (known->source.data) {
        known->change = arena_printf(l->a, "the best kernel of run %s", by);
        q->current = known;
    }
    return true;
}

/* The first correct kernel: depth 0. False in *found: there is none. */
static bool loop_first(struct loop *l, bool *found, struct error *err)
{
    struct question q = {0};
    struct candidate known = {0};
    struct settled *s;

    if (l->opt.seed_builtin && !loop_seed(l, err))
        return false;
    *found = l->best != NULL;
    if (*found)
        return true;
    if (!loop_remembered(l, &known, &q, err) || !loop_step(l, STAGE_SYNTHESIZE, &q, 0, &s, err))
        return false;
    *found = s && loop_adopt(l, s);
    if (s && !*found)
        l->ended = "no correct kernel within the repair attempts";
    return true;
}

/*
 * One depth: `width` candidates from the same kernel, one after the other, so
 * that each is told of those before it. *any: at least one is correct; *done:
 * there is nothing more to propose.
 */
static bool loop_depth(struct loop *l, int depth, bool *any, bool *done, struct error *err)
{
    struct settled *from = l->opt.advance == ADVANCE_BEST ? l->best : l->last;
    struct settled *fastest = NULL, *s;
    bool profiled = depth >= l->profile_from;

    l->depth = depth;
    *done = false;
    if (profiled && !loop_profile(l, from, err))
        return false;
    for (int i = 0; i < l->opt.width && !*done; i++) {
        struct question q = {.current = &from->cand,
                             .time = &from->time,
                             .profile = profiled ? from->profile : NULL};

        if (!loop_step(l, STAGE_OPTIMIZE, &q, depth, &s, err))
            return false;
        *done = !s; /* l->ended says why */
        if (s && loop_adopt(l, s) && (!fastest || s->time.time_us < fastest->time.time_us))
            fastest = s;
    }
    *any = fastest != NULL;
    if (fastest)
        l->last = fastest;
    return true;
}

/* A ladder is finite and ends by itself: the step that matters may come after many that do not. */
static bool is_ladder(const struct settings *s)
{
    return strcmp(s->model, "builtin") == 0;
}

static bool loop_iterate(struct loop *l, struct error *err)
{
    int depth = 1, failed = 0, stale = 0;
    bool found, done = false, any, finite = is_ladder(l->settings);

    if (!loop_first(l, &found, err))
        return false;
    if (!found)
        return true;
    while (depth <= l->opt.max_depth) {
        double best_us = l->best->time.time_us;

        if (!loop_depth(l, depth, &any, &done, err))
            return false;
        if (any) {
            depth++;
            failed = 0;
            stale = l->best->time.time_us < best_us ? 0 : stale + 1;
        }
        if (done)
            return true;
        if (!any && ++failed == MAX_FAILED_STEPS && !finite) {
            l->ended = "three steps in a row failed";
            return true;
        }
        if (l->opt.patience && stale >= l->opt.patience && !finite) {
            l->ended = arena_printf(l->a, "no gain in the last %d depths", stale);
            return true;
        }
    }
    l->ended = arena_printf(l->a, "depth %d reached", l->opt.max_depth);
    return true;
}

/* ---- a run from outside --------------------------------------------------- */

static bool run_begin(struct loop *l, struct store *store, const struct settings *settings,
                      struct error *err)
{
    json_t *options = run_options_json(settings, &l->opt);
    json_t *environment = stage_environment(l->st);
    struct run_spec spec = {.task = &l->task,
                            .device = stage_device(l->st),
                            .model = settings->model,
                            .suite = l->opt.suite,
                            .options = options,
                            .environment = environment};
    bool ok;

    json_object_set_new(options, "profile_depth", json_integer(l->profile_from));
    if (stage_base_url(l->st)) /* also where it came from the environment or is the usual one */
        json_object_set_new(options, "base_url", json_from_string(stage_base_url(l->st)));
    ok = run_create(store, &spec, &l->run, err);
    json_decref(options);
    json_decref(environment);
    return ok;
}

/* What was changed with `resume` holds for the next one too. */
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

static bool run_go_on(struct loop *l, struct store *store, struct error *err)
{
    if (!run_take(store, l->opt.resume_id, &l->run, err))
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
    if (!l->best)
        return;
    out->best = l->best->cand;
    out->best_time = l->best->time;
    out->best_test = l->best->test;
    out->first_time = l->first->time;
    /* Of a resumed run these may be the history's, which goes before the summary does. */
    json_own(l->a, json_incref(out->best_time.parts));
    json_own(l->a, json_incref(out->first_time.parts));
    json_own(l->a, json_incref(out->best_test.counters));
    out->depths = l->last->cand.depth;
}

/* How the run stands in the store when the loop has come back. */
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
    if (!s->target_cuda || (strcmp(s->model, "builtin") != 0 && !o->seed_builtin))
        return true;
    error_set(err, ERROR_USE, "the built-in engineer writes CuTe, not plain CUDA");
    return error_hint(err, "name a model (--model), or leave out --target cuda");
}

/* The winner, before it is called one. What is found there is told; the attempts stay as they are.
 */
static bool loop_accept_best(struct loop *l, struct error *err)
{
    const struct settled *s = l->best;

    if (!wants_accepting(l))
        return true;
    if (!s->looked) {
        loop_event(l, (struct event){.kind = EVENT_STAGE, .text = "accept"});
        if (!accept_best(l, err))
            return error_add(err, "accepting the best kernel");
    }
    if (s->accepted.kind != VERDICT_PASS)
        l->ended =
            arena_printf(l->a, "%s; NOT ACCEPTED: attempt %d: %s, %s", l->ended, s->cand.attempt,
                         verdict_names[s->accepted.kind], s->accepted.summary);
    else
        l->ended = arena_printf(l->a, "%s; accepted: %s", l->ended,
                                s->accepted_note ? s->accepted_note : "");
    return true;
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
    if (l.opt.resume_id) {
        if (!store_open(set.runs_dir, STORE_WRITE, &store, err) ||
            !store_run_find(store, l.opt.resume_id, a, &id, err) ||
            !store_run_history(store, id, a, &l.past, err))
            goto done;
        l.opt.resume_id = id;
        l.opt.task_path = l.past.task.path;
        if (!run_options_restore(l.past.options, a, &set, &l.opt, err))
            goto done;
    }
    if (!check_target(&set, &l.opt, err))
        goto done;
    if (l.opt.max_depth < 0)
        l.opt.max_depth = is_ladder(&set) ? LADDER_DEPTH : MODEL_DEPTH;
    if (l.opt.suite)
        set.budget_file = suite_budget_path(a, set.runs_dir, l.opt.suite);
    if (!store_possible(set.runs_dir, err) || !stage_open(&set, &l.st, err) ||
        !stage_warm(l.st, err) || !stage_describe(l.st, l.opt.task_path, a, &l.task, err))
        goto done;
    /* A new run's store comes last: a start that fails leaves nothing behind. */
    if (!store && !store_open(set.runs_dir, STORE_WRITE, &store, err))
        goto done;
    l.profile_from = run_profile_depth(&set, &l.opt, l.task.class, stage_device(l.st)->kind);
    if (!(l.opt.resume_id ? run_go_on(&l, store, err) : run_begin(&l, store, &set, err)))
        goto done;
    loop_event(&l, (struct event){.kind = EVENT_TASK, .text = stage_engineer(l.st)});
    ok = loop_iterate(&l, err) && loop_accept_best(&l, err);
    run_close(&l, ok, err);
    summarise(&l, out);
done:
    run_release(l.run);
    run_history_release(&l.past);
    store_close(store);
    stage_close(l.st);
    json_decref(l.history);
    while (l.answer_count)
        arena_free(l.answers[--l.answer_count]);
    return ok;
}
