/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.c - one attempt of the loop: its number, its verdict, and what is stored.
 *
 * Invariants
 * 1. An attempt is stored before the next one begins.
 * 2. `best` is always a kernel that passed every test.
 */
#include "base/json.h"
#include "loop/candidate.h"
#include "loop/state.h"

/* The stored outcome of this attempt if it was completed earlier; else NULL. */
static const struct attempt_record *find_past(const struct loop *l, const struct settled *s)
{
    const struct attempt_record *rec;
    size_t index = (size_t)s->cand.attempt - 1;

    if (index >= l->past.attempt_count)
        return NULL;
    rec = &l->past.attempts[index];
    return rec->ended_ms && text_equal(rec->candidate.source, s->cand.source) ? rec : NULL;
}

static bool loop_recall(struct loop *l, struct settled *s)
{
    const struct attempt_record *rec = find_past(l, s);

    if (!rec)
        return false;
    s->outcome = rec->outcome;
    s->acceptance = rec->acceptance;
    if (rec->outcome.build)
        s->build = *rec->outcome.build;
    if (rec->outcome.test)
        s->test = *rec->outcome.test;
    if (rec->outcome.measurement)
        s->time = *rec->outcome.measurement;
    return true;
}

static void free_arena(void *a)
{
    arena_free(a);
}

void loop_build_ahead(struct loop *l, struct settled *const *list, const struct proposal *proposals,
                      size_t n)
{
    struct build_job *jobs = arena_array(l->a, n, sizeof(*jobs));
    struct settled **of = arena_array(l->a, n, sizeof(struct settled *));
    size_t count = 0;
    int number = l->attempt;

    for (size_t i = 0; i < n; i++) {
        if (!list[i])
            continue;
        list[i]->cand.attempt = ++number; /* the number that loop_judge() will give it */
        if (proposals[i].verdict.kind != VERDICT_PASS || find_past(l, list[i]))
            continue;
        of[count] = list[i];
        jobs[count] =
            (struct build_job){.cand = &list[i]->cand, .a = arena_new(), .out = &list[i]->build};
        arena_defer(l->a, free_arena, jobs[count++].a);
    }
    if (count < 2)
        return;
    loop_event(l, (struct event){.kind = EVENT_STAGE, .text = "build"});
    stage_build_many(l->st, &l->task, jobs, count);
    for (size_t i = 0; i < count; i++)
        of[i]->built = jobs[i].ok; /* loop_judge() builds the others again and reports errors */
}

static void tell_step(void *ctx, const char *step, const struct candidate *cand)
{
    loop_event(ctx, (struct event){.kind = EVENT_STAGE, .text = step, .candidate = cand});
}

static bool judge(struct loop *l, struct settled *s, struct error *err)
{
    struct judging how = {l->st, &l->task, tell_step, l};
    struct judged out = {&s->build, &s->test, &s->time, &s->outcome, s->built};

    return judge_candidate(&how, &s->cand, l->a, &out, err);
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

/* Records a correct kernel, so that it counts however the run continues. */
bool loop_take(struct loop *l, struct settled *s)
{
    struct settled **at = &l->correct;

    if (s->outcome.verdict.kind != VERDICT_PASS)
        return false;
    while (*at && (*at)->time.time_us <= s->time.time_us)
        at = &(*at)->slower;
    s->slower = *at;
    *at = s;
    l->last = s;
    if (!l->first)
        l->first = s;
    if (!l->best || s->time.time_us < l->best->time.time_us)
        l->best = s;
    if (l->opt.search != SEARCH_BEAM && (l->bar_us <= 0 || s->time.time_us < l->bar_us))
        l->bar_us = s->time.time_us;
    return true;
}

/*
 * Gives a candidate its number and its verdict. `proposed` is the proposal's
 * own verdict: a reply without usable code is an attempt too.
 */
bool loop_judge(struct loop *l, struct settled *s, const struct verdict *proposed,
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
        faster = l->bar_us <= 0 || s->time.time_us < l->bar_us;
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
    (void)loop_take(l, s); /* no caller will adopt it */
    return false;
}
