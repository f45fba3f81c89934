/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.c - one step of the loop: a proposal, repaired until it passes or is given up.
 */
#include "loop/state.h"

#include <string.h>

static struct settled *settled_new(struct loop *l, const struct proposal *p, int depth, int repair)
{
    struct settled *s = arena_alloc(l->a, sizeof(*s));

    s->cand = (struct candidate){.depth = depth,
                                 .repair = repair,
                                 .source = p->source,
                                 .change = p->change,
                                 .steps = p->steps};
    return s;
}

/*
 * Diagnose and repair, a small patch at a time. On return *s is the last
 * attempt; whether it passes is in its verdict.
 */
static bool loop_repair(struct loop *l, struct settled **s, struct error *err)
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
                return true; /* the model proposes to undo its step instead */
            q.diagnosis = arena_strndup(l->a, diagnosis.reply.text.data, diagnosis.reply.text.len);
        }
        if (!loop_ask(l, STAGE_REPAIR, &q, &patch, err))
            return false;
        if (patch.done || patch.stop)
            return true; /* the same as above */
        if (patch.verdict.kind != VERDICT_PASS)
            patch.source = broken->source;
        *s = settled_new(l, &patch, broken->depth, repair);
        if (!loop_judge(l, *s, &patch.verdict, STAGE_REPAIR, broken->attempt, err))
            return false;
        rejected = NULL;
        if (patch.verdict.kind != VERDICT_PASS) {
            rejected = patch.verdict.detail; /* same kernel and failure: ask for a better patch */
        } else {
            broken = &(*s)->cand;
            verdict = (*s)->outcome.verdict;
        }
    }
    return true;
}

/* Handles a model's STOP: the first in a run is answered with a request for a different idea, the
 * second ends the run. */
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

static int parent_of(const struct question *q)
{
    return q->current ? q->current->attempt : 0;
}

/* A reply without code keeps the kernel that the question was about. */
static struct settled *settle(struct loop *l, struct proposal *p, const struct question *q,
                              int depth, int again)
{
    if (p->verdict.kind != VERDICT_PASS)
        p->source = q->current ? q->current->source : text_of("");
    return settled_new(l, p, depth, again);
}

static void end_done(struct loop *l, const struct proposal *p)
{
    l->ended = arena_strndup(l->a, p->reply.text.data, strcspn(p->reply.text.data, "\n"));
}

/* Asks (for the `again`-th time) until there is code, judges it, repairs it. */
static bool step_on(struct loop *l, enum stage_kind kind, struct question *q, int depth, int again,
                    struct settled **out, struct error *err)
{
    struct proposal p;

    for (; again <= l->opt.max_repairs; again++) {
        if (!loop_ask(l, kind, q, &p, err))
            return false;
        if (p.done) {
            end_done(l, &p);
            return true;
        }
        if (p.stop && !loop_stopped(l, &p, q))
            continue;
        if (p.stop)
            return true;
        *out = settle(l, &p, q, depth, again);
        if (!loop_judge(l, *out, &p.verdict, kind, parent_of(q), err))
            return false;
        if (p.verdict.kind == VERDICT_PASS)
            return loop_repair(l, out, err);
        q->rejected = p.verdict.detail;
    }
    return true;
}

bool loop_step(struct loop *l, enum stage_kind kind, struct question *q, int depth,
               struct settled **out, struct error *err)
{
    *out = NULL;
    return step_on(l, kind, q, depth, 0, out, err);
}

/* ---- several candidates ------------------------------------------------------- */

static bool passes(const struct settled *s)
{
    return s && s->outcome.verdict.kind == VERDICT_PASS;
}

/* No reply has a kernel: the engineer is done, which ends the search, or a model said STOP, which
 * ends it the second time; the first time asks for a different idea. */
static bool all_done(struct loop *l, enum stage_kind kind, struct question *q, int depth,
                     const struct proposal *p, struct settled **got, bool *done, struct error *err)
{
    *done = true;
    if (p->done) {
        end_done(l, p);
        return true;
    }
    if (loop_stopped(l, p, q))
        return true;
    if (!loop_step(l, kind, q, depth, got, err))
        return false;
    *done = !*got;
    if (*got)
        (void)loop_adopt(l, *got);
    return true;
}

/* Asks and builds in parallel, judges in order, then repairs in order. */
static bool branch_together(struct loop *l, enum stage_kind kind, struct question *q, size_t n,
                            int depth, struct settled **got, bool *done, struct error *err)
{
    struct proposal *p = arena_array(l->a, n, sizeof(*p));
    bool any = false;

    if (!loop_ask_many(l, kind, q, p, n, err))
        return false;
    for (size_t i = 0; i < n; i++)
        got[i] = p[i].done || p[i].stop ? NULL : settle(l, &p[i], &q[i], depth, 0);
    loop_build_ahead(l, got, p, n);
    for (size_t i = 0; i < n; i++) {
        if (got[i] && !loop_judge(l, got[i], &p[i].verdict, kind, parent_of(&q[i]), err))
            return false;
        if (passes(got[i]))
            (void)loop_adopt(l, got[i]);
        any |= got[i] != NULL;
    }
    if (!any)
        return all_done(l, kind, &q[0], depth, &p[0], &got[0], done, err);
    for (size_t i = 0; i < n; i++) {
        if (!got[i] || passes(got[i]))
            continue;
        q[i].rejected = p[i].verdict.detail;
        if (!(p[i].verdict.kind == VERDICT_PASS ? loop_repair(l, &got[i], err)
                                                : step_on(l, kind, &q[i], depth, 1, &got[i], err)))
            return false;
        (void)loop_adopt(l, got[i]);
    }
    return true;
}

bool loop_branches(struct loop *l, enum stage_kind kind, struct question *q, size_t n, int depth,
                   struct settled **got, bool *done, struct error *err)
{
    *done = false;
    if (n > 1 && loop_parallel(l) > 1)
        return branch_together(l, kind, q, n, depth, got, done, err);
    for (size_t i = 0; i < n && !*done; i++) {
        if (!loop_step(l, kind, &q[i], depth, &got[i], err))
            return false;
        *done = !got[i]; /* l->ended says why */
        if (got[i])
            (void)loop_adopt(l, got[i]);
    }
    return true;
}

/* Takes a step's result into the run; says whether it is a correct kernel. */
bool loop_adopt(struct loop *l, struct settled *s)
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
