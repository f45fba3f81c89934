/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - policies that follow more than one line of development.
 *
 * beam: several first kernels; at each depth every kept line proposes kernels, and the fastest
 * `beam` of all are kept. restarts: one line after another, each from its own first kernel, with an
 * equal share of the depths. Both use the steps, counters and stored answers of the ordinary loop,
 * so a resumed run takes the same path again.
 *
 * Invariants
 * 1. Lines are ordered by time, ties by attempt number; nothing else decides.
 * 2. No two lines hold the same source.
 */
#include "loop/state.h"

#include <stdlib.h>

/* ---- beam ---------------------------------------------------------------------- */

struct beam {
    struct settled **lines;
    size_t count, most;
};

static int by_time(const void *x, const void *y)
{
    const struct settled *a = *(struct settled *const *)x, *b = *(struct settled *const *)y;

    if (a->time.time_us != b->time.time_us)
        return a->time.time_us < b->time.time_us ? -1 : 1;
    return (a->cand.attempt > b->cand.attempt) - (a->cand.attempt < b->cand.attempt);
}

static bool has_source(const struct beam *b, struct text source)
{
    for (size_t i = 0; i < b->count; i++)
        if (text_equal(b->lines[i]->cand.source, source))
            return true;
    return false;
}

/* Merges kept and new kernels and keeps the fastest. */
static void beam_take(struct loop *l, struct beam *b, struct settled *const *got, size_t n)
{
    struct settled **all = arena_array(l->a, b->count + n, sizeof(struct settled *));
    size_t count = 0;

    for (size_t i = 0; i < b->count; i++)
        all[count++] = b->lines[i];
    for (size_t i = 0; i < n; i++)
        if (got[i] && got[i]->outcome.verdict.kind == VERDICT_PASS)
            all[count++] = got[i];
    qsort(all, count, sizeof(struct settled *), by_time);
    b->count = 0;
    for (size_t i = 0; i < count && b->count < b->most; i++)
        if (!has_source(b, all[i]->cand.source))
            b->lines[b->count++] = all[i];
}

/* The time that a kernel must beat to be kept. */
static double beam_bar(const struct beam *b)
{
    return b->count < b->most ? 0 : b->lines[b->count - 1]->time.time_us;
}

/* Asks for as many first kernels as there are lines and keeps the correct ones. */
static bool beam_begin(struct loop *l, struct beam *b, bool *found, struct error *err)
{
    struct question *q = arena_array(l->a, b->most, sizeof(*q));
    struct settled **got = arena_array(l->a, b->most, sizeof(struct settled *));
    bool done;

    if (l->opt.seed_builtin) {
        if (!loop_first(l, found, err))
            return false;
        got[0] = l->best;
        beam_take(l, b, got, 1);
        return true;
    }
    if (!loop_branches(l, STAGE_SYNTHESIZE, q, b->most, 0, got, &done, err))
        return false;
    beam_take(l, b, got, b->most);
    *found = b->count > 0;
    if (!*found && !done)
        l->ended = "no correct kernel within the repair attempts";
    return true;
}

/* One depth for all lines. *any: at least one new kernel is correct. */
static bool beam_depth(struct loop *l, struct beam *b, int depth, bool *any, bool *done,
                       struct error *err)
{
    size_t width = (size_t)l->opt.width, n = b->count * width;
    struct question *q = arena_array(l->a, n, sizeof(*q));
    struct settled **got = arena_array(l->a, n, sizeof(struct settled *));

    l->depth = depth;
    l->bar_us = beam_bar(b);
    for (size_t i = 0; i < n; i++)
        if (!loop_question(l, b->lines[i / width], &q[i], err))
            return false;
    if (!loop_branches(l, STAGE_OPTIMIZE, q, n, depth, got, done, err))
        return false;
    *any = false;
    for (size_t i = 0; i < n; i++)
        *any |= got[i] && got[i]->outcome.verdict.kind == VERDICT_PASS;
    beam_take(l, b, got, n);
    return true;
}

bool loop_beam(struct loop *l, struct error *err)
{
    struct beam b = {.most = (size_t)l->opt.beam};
    int failed = 0, stale = 0, depth = 1;
    bool found, any, done = false;

    b.lines = arena_array(l->a, b.most, sizeof(struct settled *));
    if (!beam_begin(l, &b, &found, err))
        return false;
    while (found && !loop_near_floor(l) && !done) {
        double best_us = l->best->time.time_us;

        if (depth > l->opt.max_depth) {
            l->ended = arena_printf(l->a, "depth %d reached", l->opt.max_depth);
            return true;
        }
        loop_profile_when(l, depth, stale);
        if (!beam_depth(l, &b, depth, &any, &done, err))
            return false;
        if (any) {
            depth++;
            failed = 0;
            stale = l->best->time.time_us < best_us ? 0 : stale + 1;
        } else if (!done && ++failed == MAX_FAILED_STEPS) {
            l->ended = "three steps in a row failed";
            return true;
        }
        if (!done && l->opt.patience && stale >= l->opt.patience) {
            l->ended = arena_printf(l->a, "no gain in the last %d depths", stale);
            return true;
        }
    }
    return true;
}

/* ---- restarts -------------------------------------------------------------------- */

/* Another first kernel; the prompt has the results of the earlier ones. */
static bool start_again(struct loop *l, int depth, struct settled **out, struct error *err)
{
    struct question q = {0};

    q.note = arena_printf(
        l->a,
        "An earlier search for this task ended at %.4g us (%.80s). Begin anew, with a kernel of a "
        "different structure: another partition of the work, other tiles, another order of the "
        "loops.",
        l->best->time.time_us, l->best->cand.change);
    l->depth = depth;
    l->bar_us = 0;
    if (!loop_step(l, STAGE_SYNTHESIZE, &q, depth, out, err))
        return false;
    if (*out)
        (void)loop_adopt(l, *out);
    return true;
}

/*
 * The last depth of a start. Shares are computed from the original depth, because a resumed run
 * must take the same path; the last start gets what `resume --depth` adds.
 */
static int start_end(const struct run_options *o, int start, int starts)
{
    int64_t all = o->share_depth ? o->share_depth : o->max_depth, end = all * (start + 1) / starts;

    return start == starts - 1 || end > o->max_depth ? o->max_depth : (int)end;
}

bool loop_restarts(struct loop *l, struct error *err)
{
    int depth = 1, starts = l->opt.restarts < 1 ? 1 : l->opt.restarts;
    struct lineage line;
    struct settled *s;
    bool found, over;

    if (!loop_first(l, &found, err))
        return false;
    if (!found)
        return true;
    line = (struct lineage){.best = l->best, .last = l->last};
    for (int i = 0; i < starts; i++) {
        int end = start_end(&l->opt, i, starts);

        if (i > 0) {
            if (depth > end)
                continue;
            if (!start_again(l, depth, &s, err))
                return false;
            if (!s)
                return true; /* l->ended says why */
            if (s->outcome.verdict.kind != VERDICT_PASS)
                continue;
            line = (struct lineage){.best = s, .last = s};
            depth++;
        }
        if (!loop_follow(l, &line, &depth, end, &over, err))
            return false;
        if (over)
            return true;
        depth = end + 1; /* a line that ends early does not pass on its share */
    }
    l->ended = arena_printf(l->a, "%d starts, %s", starts, l->ended);
    return true;
}
