/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.c - one question of the loop, from the store or from the model.
 *
 * While a model thinks, the time is used: what the judge will want later is done beside it.
 *
 * Invariants
 * 1. An answer is stored before it is used.
 * 2. A resumed run gets the stored answers in their order, and asks nothing until they are spent.
 */
#include "base/log.h"
#include "loop/state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

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

/* What can be done while a model thinks. A failure here is met again where it counts. */
static bool has_work(const struct loop *l)
{
    return stage_has_work(l->st) || loop_may_accept(l);
}

static void work_ahead(struct loop *l)
{
    struct error why = {0};

    if (stage_has_work(l->st)) {
        stage_work_ahead(l->st, &l->task);
        return;
    }
    log_info("while the model thinks: checking attempt %d, the best so far", l->best->cand.attempt);
    if (!loop_accept_one(l, l->best, &why)) {
        l->accept_later = true;
        log_info("the best kernel could not be checked meanwhile: %s", why.text);
        return;
    }
    log_info("the check of attempt %d: %s", l->best->cand.attempt,
             verdict_names[l->best->acceptance->verdict.kind]);
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
bool loop_ask(struct loop *l, enum stage_kind kind, struct question *q, struct proposal *out,
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
