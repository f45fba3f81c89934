/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - the loop on one evolving kernel, and all of its policy.
 *
 *     synthesize -> judge -> (diagnose -> repair -> judge)*      depth 0
 *     (profile) -> optimize -> judge -> (diagnose -> repair -> judge)*     depth 1, 2, ...
 *
 * loop_first() and loop_depth() are these two lines, loop_step() and
 * loop_mend() (step.c) what is in the parentheses. docs/loop.md tells the options.
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
#include "loop/state.h"

#include <string.h>

enum {
    MAX_FAILED_STEPS = 3, /* in a row; then the model has nothing more to give */
    PROFILE_STALE = 2,    /* depths without a gain, after which a profile may name what is missed */
};

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
    return stage_profile(l->st, &from->cand, build, &from->test, &from->time, l->a, taken, err) &&
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
    if (!run_known_best(l->run, l->a, &known->source, &known->steps, &by, err))
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

    l->depth = depth;
    *done = false;
    if (l->profiled && !loop_profile(l, from, err))
        return false;
    for (int i = 0; i < l->opt.width && !*done; i++) {
        struct question q = {.current = &from->cand,
                             .time = &from->time,
                             .profile = l->profiled ? from->profile : NULL};

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
bool loop_is_ladder(const struct settings *s)
{
    return strcmp(s->model, "builtin") == 0;
}

bool loop_iterate(struct loop *l, struct error *err)
{
    int depth = 1, failed = 0, stale = 0;
    bool found, done = false, any, finite = loop_is_ladder(l->settings);

    if (!loop_first(l, &found, err))
        return false;
    if (!found)
        return true;
    while (depth <= l->opt.max_depth) {
        double best_us = l->best->time.time_us;

        l->profiled |= depth >= l->profile_from || (l->profile_early && stale >= PROFILE_STALE);
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
