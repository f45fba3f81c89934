/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - the loop on one evolving kernel, and all of its policy.
 *
 *     synthesize -> judge -> (diagnose -> repair -> judge)*      depth 0
 *     (profile) -> optimize -> judge -> (diagnose -> repair -> judge)*     depth 1, 2, ...
 *
 * loop_first() and loop_follow() are these two lines; loop_step() and loop_repair() (step.c) are
 * what is in parentheses. search.c has the policies with more than one line of development.
 * docs/loop.md describes the options.
 *
 * A run survives kill -9: every question and the outcome of every attempt is in the store before
 * anything else begins. To resume, the same loop is replayed from its beginning over the stored
 * answers and outcomes (loop_ask() and loop_judge() look there first) until it reaches something
 * that was never done. So there is only one path through the loop, and no state to restore.
 *
 * Invariants
 * 1. Everything the loop decides follows from the task, the options, the
 *    replies and the outcomes; no clock and no random number decides.
 * 2. An answer is stored before it is used; an attempt before the next.
 * 3. `best` is always a kernel that passed every test.
 */
#include "loop/state.h"

#include <string.h>

enum {
    PROFILE_STALE = 2
}; /* depths without a gain after which a profile may show what is missed */

/* The profile of a kernel, taken once, when first needed. */
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
    if (!build->module_path) { /* judged by an earlier process: its files are gone */
        if (!stage_build(l->st, &l->task, &from->cand, l->a, &again, err))
            return false;
        build = &again;
    }
    taken = arena_alloc(l->a, sizeof(*taken));
    from->profile = taken;
    return stage_profile(l->st, &from->cand, build, &from->test, &from->time, l->a, taken, err) &&
           run_profile_add(l->run, from->cand.attempt, taken, err);
}

/*
 * Depth 0 from the built-in engineer: all of its steps, of which the model continues from the
 * fastest. Nothing is found if it cannot write a kernel for the task.
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
    l->first = l->last = l->best; /* the model begins at depth 0 */
    if (!l->best)
        loop_event(l, (struct event){.kind = EVENT_NOTE,
                                     .text = "the built-in engineer has no kernel for this task; "
                                             "the model writes the first"});
    return true;
}

/* The built-in engineer begins with the best kernel it found for this task earlier. */
static bool loop_remembered(struct loop *l, struct candidate *known, struct question *q,
                            struct error *err)
{
    const char *by;

    if (l->opt.fresh || l->opt.resume_id || strcmp(l->settings->model, "builtin") != 0)
        return true;
    if (!run_known_best(l->run, l->a, &known->source, &known->steps, &by, err))
        return false;
    if (known->source.data) {
        known->change = arena_printf(l->a, "the best kernel of run %s", by);
        q->current = known;
    }
    return true;
}

bool loop_first(struct loop *l, bool *found, struct error *err)
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

/* Stores the depth from which profiles are read, for the report; it may be earlier than planned. */
static bool loop_profile_tell(struct loop *l, struct error *err)
{
    json_t *data;
    bool ok;

    for (size_t i = 0; i < l->past.event_count && !l->profile_told; i++)
        l->profile_told = strcmp(l->past.events[i].kind, EVENT_PROFILE_FROM) == 0;
    if (l->profile_told)
        return true;
    l->profile_told = true;
    data = json_pack("{s:i}", "depth", l->depth);
    ok = run_event_add(l->run, EVENT_PROFILE_FROM, data, err);
    json_decref(data);
    return ok;
}

bool loop_question(struct loop *l, struct settled *from, struct question *q, struct error *err)
{
    if (l->profiled && (!loop_profile(l, from, err) || !loop_profile_tell(l, err)))
        return false;
    *q = (struct question){.current = &from->cand,
                           .time = &from->time,
                           .launches = from->build.launches,
                           .profile = l->profiled ? from->profile : NULL};
    return true;
}

void loop_profile_when(struct loop *l, int depth, int stale)
{
    l->profiled |= depth >= l->profile_from || (l->profile_early && stale >= PROFILE_STALE);
}

static void line_take(struct lineage *line, struct settled *s)
{
    if (!line->best || s->time.time_us < line->best->time.time_us)
        line->best = s;
}

/* One depth: `width` candidates from the same kernel. *any: at least one is correct. */
static bool follow_once(struct loop *l, struct lineage *line, int depth, bool *any, bool *done,
                        struct error *err)
{
    size_t n = (size_t)l->opt.width;
    struct settled *from = l->opt.advance == ADVANCE_BEST ? line->best : line->last;
    struct settled **got = arena_array(l->a, n, sizeof(struct settled *)), *fastest = NULL;
    struct question *q = arena_array(l->a, n, sizeof(*q));

    l->depth = depth;
    l->bar_us = line->best->time.time_us;
    if (!loop_question(l, from, &q[0], err))
        return false;
    for (size_t i = 1; i < n; i++)
        q[i] = q[0];
    if (!loop_branches(l, STAGE_OPTIMIZE, q, n, depth, got, done, err))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!got[i] || got[i]->outcome.verdict.kind != VERDICT_PASS)
            continue;
        line_take(line, got[i]);
        if (!fastest || got[i]->time.time_us < fastest->time.time_us)
            fastest = got[i];
    }
    *any = fastest != NULL;
    if (fastest)
        l->last = line->last = fastest;
    return true;
}

/* A ladder is finite, so patience does not apply: a step that gains may follow many that do not. */
bool loop_is_ladder(const struct settings *s)
{
    return strcmp(s->model, "builtin") == 0;
}

bool loop_near_floor(struct loop *l)
{
    const struct measurement *t = &l->best->time;

    if (loop_is_ladder(l->settings) || l->opt.floor_stop <= 0 || t->floor_us <= 0 ||
        (t->trivial && *t->trivial) ||
        t->time_us > t->floor_us * (1 + (double)l->opt.floor_stop / 100))
        return false;
    l->ended = arena_printf(l->a,
                            "within %d %% of the floor: %.4g us, and no kernel can take less "
                            "than %.4g us",
                            l->opt.floor_stop, t->time_us, t->floor_us);
    return true;
}

bool loop_follow(struct loop *l, struct lineage *line, int *depth, int end, bool *over,
                 struct error *err)
{
    bool any, done = false, finite = loop_is_ladder(l->settings);
    int failed = 0, stale = 0;

    *over = loop_near_floor(l);
    while (!*over && *depth <= end) {
        double best_us = line->best->time.time_us;

        loop_profile_when(l, *depth, stale);
        if (!follow_once(l, line, *depth, &any, &done, err))
            return false;
        if (any) {
            ++*depth;
            failed = 0;
            stale = line->best->time.time_us < best_us ? 0 : stale + 1;
        }
        *over = done || loop_near_floor(l);
        if (*over)
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
    if (!*over)
        l->ended = arena_printf(l->a, "depth %d reached", end);
    return true;
}

static bool loop_refine(struct loop *l, struct error *err)
{
    struct lineage line;
    int depth = 1;
    bool found, over;

    if (!loop_first(l, &found, err))
        return false;
    line = (struct lineage){.best = l->best, .last = l->last};
    if (found && l->opt.max_depth != 0 && loop_is_ladder(l->settings) && !l->past.attempt_count)
        stage_ladder_ahead(l->st, &l->task, &l->best->cand, l->history);
    return !found || loop_follow(l, &line, &depth, l->opt.max_depth, &over, err);
}

bool loop_iterate(struct loop *l, struct error *err)
{
    if (l->opt.given)
        return loop_given(l, err);
    switch (l->opt.search) {
    case SEARCH_BEAM:
        return loop_beam(l, err);
    case SEARCH_RESTARTS:
        return loop_restarts(l, err);
    case SEARCH_REFINE:
        break;
    }
    return loop_refine(l, err);
}
