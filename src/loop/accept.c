/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accept.c - the best kernel of a run, checked once more before it is called the winner.
 *
 * What is found is told; the attempts stay as they are. The check itself is loop_accept() in
 * once.c.
 */
#include "loop/state.h"

bool loop_may_accept(const struct loop *l)
{
    return l->best && loop_wants_accepting(l->settings, stage_device(l->st));
}

/* Sanitizers and simt check the current best kernel; once is enough. */
bool loop_check_best(struct loop *l, struct error *err)
{
    struct settled *s = l->best;
    struct build_result build;
    struct acceptance what = {&l->task, stage_device(l->st), &s->cand, &build};

    s->looked = stage_build(l->st, &l->task, &s->cand, l->a, &build, err) &&
                loop_accept(l->settings, l->st, &what, l->a, &s->accepted, &s->accepted_note, err);
    return s->looked;
}

/* The winner, before it is called one. What is found there is told; the attempts stay as they are.
 */
bool loop_accept_best(struct loop *l, struct error *err)
{
    const struct settled *s = l->best;

    if (!loop_may_accept(l))
        return true;
    if (!s->looked) {
        loop_event(l, (struct event){.kind = EVENT_STAGE, .text = "accept"});
        if (!loop_check_best(l, err))
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
