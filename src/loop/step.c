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
bool loop_step(struct loop *l, enum stage_kind kind, struct question *q, int depth,
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
