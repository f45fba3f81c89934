/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accept.c - which kernel wins: the fastest one that passes every check.
 *
 * Invariants
 * 1. A verdict of acceptance is stored at once, and a kernel is never checked twice.
 * 2. It takes effect only at the end of a run: when a check runs depends on time, and no clock may
 *    influence what the loop does.
 */
#include "loop/candidate.h"
#include "loop/state.h"

bool loop_may_accept(const struct loop *l)
{
    return l->settings->accept && l->best && !l->best->acceptance && !l->accept_later &&
           !accept_is_cheap(l->settings, stage_device(l->st)) && stage_may_work(l->st);
}

bool loop_accept_one(struct loop *l, struct settled *s, struct error *err)
{
    struct build_result build = {0};
    struct acceptance_request req = {l->settings, l->st, &l->task, &s->cand, &build};
    struct acceptance *what = arena_alloc(l->a, sizeof(*what));

    if ((!accept_is_cheap(l->settings, stage_device(l->st)) &&
         !stage_build(l->st, &l->task, &s->cand, l->a, &build, err)) ||
        !accept_candidate(&req, l->a, what, err) ||
        !run_accept_add(l->run, s->cand.attempt, what, err))
        return error_add(err, "accepting attempt %d", s->cand.attempt);
    s->acceptance = what;
    return true;
}

/* If all are refused, `best` stays the fastest and is not accepted. */
bool loop_accept_best(struct loop *l, struct error *err)
{
    if (!l->settings->accept)
        return true;
    for (struct settled *s = l->correct; s; s = s->slower) {
        if (!s->acceptance) {
            loop_event(l, (struct event){.kind = EVENT_STAGE, .text = "accept"});
            if (!loop_accept_one(l, s, err))
                return false;
        }
        if (s->acceptance->verdict.kind == VERDICT_PASS) {
            l->best = s;
            l->ended = arena_printf(l->a, "%s; accepted: %s", l->ended, s->acceptance->note);
            return true;
        }
        l->ended = arena_printf(l->a, "%s; NOT ACCEPTED: attempt %d: %s, %s", l->ended,
                                s->cand.attempt, verdict_names[s->acceptance->verdict.kind],
                                s->acceptance->verdict.summary);
        if (loop_stop_now(l, err))
            return false;
    }
    return true;
}
