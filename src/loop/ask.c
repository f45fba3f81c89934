/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.c - one question of the loop, from the store or from the model.
 *
 * While a model thinks, work that the judge needs later is done in parallel. Several questions of
 * one step are asked at the same time, each in its own thread.
 *
 * Invariants
 * 1. A call that can cost something is stored before it is sent, at its upper bound; an answer is
 *    stored before it is used. Asking threads write the store under the lock `asking`; the loop's
 * own thread writes nothing while one of them is under way.
 * 2. The request itself is made by a process that outlives this one (src/caller): a run that is
 *    killed meanwhile finds the reply in the store when it is resumed.
 * 3. A resumed run reuses the stored answer of each question, found by attempt, slot and stage, and
 *    asks only questions without one.
 */
#include "base/json.h"
#include "base/log.h"
#include "loop/state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

typedef bool stage_asker(struct stage *, const struct question *, struct arena *, struct proposal *,
                         struct error *);

static stage_asker *const askers[STAGE_KIND_COUNT] = {
    [STAGE_SYNTHESIZE] = stage_synthesize,
    [STAGE_DIAGNOSE] = stage_diagnose,
    [STAGE_REPAIR] = stage_repair,
    [STAGE_OPTIMIZE] = stage_optimize,
};

/* One question: answered from the store, or being asked in a thread of its own. */
struct asking {
    struct loop *l;
    stage_asker *ask;
    struct question *q;
    struct arena *a; /* the thread's own until the answer is stored */
    struct proposal *out;
    struct call_watch watch;
    int64_t call;       /* its row in the store; 0: none */
    int carrier;        /* to the process that makes the request; -1: none */
    struct reply bound; /* the most it may cost */
    pthread_t thread;
    bool threaded, ok;
    struct error err;
    atomic_bool answered;
};

static bool on_begins(void *ctx, const struct request *req, int64_t prompt_tokens,
                      int64_t output_tokens, double cost_usd, struct error *err)
{
    struct asking *k = ctx;
    bool ok;

    k->bound = (struct reply){.text = text_of(""),
                              .model = "",
                              .prompt_tokens = prompt_tokens,
                              .output_tokens = output_tokens,
                              .cost_usd = cost_usd};
    pthread_mutex_lock(&k->l->asking);
    if (k->call)
        ok = run_call_raise(k->l->run, k->call, &k->bound, err);
    else
        ok =
            run_call_begin(k->l->run, k->l->attempt + 1, k->q->slot, req, &k->bound, &k->call, err);
    pthread_mutex_unlock(&k->l->asking);
    return ok;
}

static void on_received(void *ctx, const struct reply *reply)
{
    const struct asking *k = ctx;

    if (k->call)
        run_reply_keep(k->l->run, k->call, reply);
}

static bool on_carry(void *ctx, const struct call_order *order, json_t **answer)
{
    struct asking *k = ctx;
    const struct settings *set = k->l->settings;
    struct call_place at = {run_dir(k->l->run), run_id(k->l->run), k->call};
    bool sent;
    int hold;

    stage_carried(k->carrier, false); /* the carrier of the previous request */
    k->carrier = -1;
    hold = k->call ? run_call_hold(k->l->run, k->call) : -1;
    if (hold < 0)
        return false;
    sent = stage_carry(
        k->l->st, order,
        json_pack("{s:o, s:o, s:s, s:I, s:o}", "runs", json_from_string(set->runs_dir), "store",
                  json_from_string(set->store_url ? set->store_url : ""), "run", at.run, "call",
                  (json_int_t)at.call, "dir", json_from_string(at.dir)),
        hold, &k->carrier, answer);
    close(hold);
    return sent;
}

static void *ask_thread(void *self)
{
    struct asking *k = self;

    k->ok = k->ask(k->l->st, k->q, k->a, k->out, &k->err);
    atomic_store(&k->answered, true);
    return NULL;
}

static const char *copy(const char *text, struct arena *a)
{
    return text ? arena_strdup(a, text) : NULL;
}

/* Moves what outlives the question to an arena that lives as long as the run. */
static void proposal_move(struct proposal *p, struct arena *a)
{
    p->request = (struct request){.stage = p->request.stage};
    if (p->reply.text.data)
        p->reply.text = arena_text(a, p->reply.text.data, p->reply.text.len);
    p->reply.model = copy(p->reply.model, a);
    p->reply.finish_reason = copy(p->reply.finish_reason, a);
    if (p->source.data)
        p->source = arena_text(a, p->source.data, p->source.len);
    p->change = copy(p->change, a);
    p->steps = copy(p->steps, a);
    p->stop = copy(p->stop, a);
    p->verdict.summary = copy(p->verdict.summary, a);
    p->verdict.detail = copy(p->verdict.detail, a);
    p->verdict.advice = copy(p->verdict.advice, a);
}

/* Is there work to do while a model thinks? A failure here will show up again where it matters. */
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

/* ---- stored answers ------------------------------------------------ */

static bool brought_nothing(const struct reply *r)
{
    return strcmp(r->finish_reason, "interrupted") == 0 ||
           strcmp(r->finish_reason, "failed") == 0 || strcmp(r->finish_reason, CALL_KILLED) == 0;
}

static void loop_spent(struct loop *l, const struct reply *r)
{
    l->calls++;
    l->tokens += r->prompt_tokens > 0 ? r->prompt_tokens : 0;
    l->tokens += r->output_tokens > 0 ? r->output_tokens : 0;
    l->cost_usd += r->cost_usd > 0 ? r->cost_usd : 0;
    l->unpriced += r->cost_usd < 0;
}

void loop_recall_calls(struct loop *l)
{
    l->used = arena_array(l->a, l->past.call_count + 1, sizeof(*l->used));
    for (size_t i = 0; i < l->past.call_count; i++) {
        const struct reply *r = &l->past.calls[i].reply;

        if (!brought_nothing(r))
            continue;
        l->used[i] = true; /* asked again later, but paid for */
        loop_spent(l, r);
        stage_charge(l->st, r);
    }
}

/* The stored answer to this question, or NULL. */
static bool find_recorded(struct loop *l, enum stage_kind kind, struct question *q,
                          struct error *err)
{
    q->recorded = NULL;
    for (size_t i = 0; i < l->past.call_count; i++) {
        const struct call_record *call = &l->past.calls[i];

        if (l->used[i] || call->attempt != l->attempt + 1 || call->slot != q->slot)
            continue;
        if (call->stage != kind)
            return error_set(err, ERROR_MACHINE,
                             "run %s cannot be resumed: its call %zu was for %s, not %s",
                             run_id(l->run), i + 1, stage_names[call->stage], stage_names[kind]);
        l->used[i] = true;
        q->recorded = &call->reply;
        return true;
    }
    return true;
}

/* ---- asking --------------------------------------------------------------- */

/* The record of a failed call for the store. */
static struct reply failed_reply(const struct asking *k)
{
    struct reply r = k->out->reply;

    if (!r.finish_reason) /* no reply arrived and nothing was charged */
        r = (struct reply){.text = text_of(""), .model = "", .finish_reason = "failed"};
    if (k->call && strcmp(r.finish_reason, "interrupted") == 0) { /* it may have cost all of it */
        r.prompt_tokens = k->bound.prompt_tokens;
        r.output_tokens = k->bound.output_tokens;
        r.cost_usd = k->bound.cost_usd;
    }
    return r;
}

/* Stores the outcome of a question and takes it over. */
static bool ask_store(struct asking *k, struct error *err)
{
    struct loop *l = k->l;
    struct reply failed = {0};
    const struct reply *reply = &k->out->reply;
    bool stored = true;

    if (!k->ok) {
        if (!k->call && !reply->finish_reason)
            return false;
        failed = failed_reply(k);
        reply = &failed;
    }
    loop_spent(l, reply);
    if (k->call) {
        stored = run_call_end(l->run, k->call, reply, err);
        stage_carried(k->carrier, stored);
        k->carrier = -1;
    } else if (!k->q->recorded)
        stored = run_call_add(l->run, l->attempt + 1, k->q->slot, &k->out->request, reply, err);
    return k->ok && stored;
}

static bool ask_prepare(struct loop *l, enum stage_kind kind, struct question *q,
                        struct proposal *out, struct asking *k, struct error *err)
{
    *k = (struct asking){.l = l, .ask = askers[kind], .q = q, .out = out, .carrier = -1};
    memset(out, 0, sizeof(*out));
    k->watch = (struct call_watch){
        .ctx = k, .begins = on_begins, .carry = on_carry, .received = on_received};
    q->task = &l->task;
    q->history = l->history;
    q->builtin = l->seeding;
    q->watch = &k->watch;
    q->known = l->known;
    return find_recorded(l, kind, q, err);
}

/* Sends questions without a stored answer, each in a thread, or in this one if none can be
 * started. */
static void ask_start(struct asking *k, size_t n, bool threads)
{
    for (size_t i = 0; i < n; i++) {
        k[i].a = arena_new();
        k[i].threaded = threads && !k[i].q->recorded &&
                        pthread_create(&k[i].thread, NULL, ask_thread, &k[i]) == 0;
    }
    for (size_t i = 0; i < n; i++)
        if (!k[i].threaded)
            (void)ask_thread(&k[i]);
}

static bool all_answered(const struct asking *k, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!atomic_load(&k[i].answered))
            return false;
    return true;
}

/* Asks up to `parallel_calls` questions and stores all replies, even if one of them failed. */
static bool ask_group(struct loop *l, enum stage_kind kind, struct question *q,
                      struct proposal *out, size_t n, struct error *err)
{
    struct asking *k = arena_array(l->a, n, sizeof(*k));
    bool ok = true, fresh = false, ahead;
    struct error first = {0};

    for (size_t i = 0; i < n; i++) {
        if (!ask_prepare(l, kind, &q[i], &out[i], &k[i], err))
            return false;
        fresh |= !q[i].recorded;
    }
    ahead = fresh && has_work(l);
    if (fresh)
        loop_event(l, (struct event){.kind = EVENT_STAGE, .text = stage_names[kind]});
    ask_start(k, n, ahead || n > 1);
    while (ahead && !all_answered(k, n) && has_work(l))
        work_ahead(l);
    for (size_t i = 0; i < n; i++) {
        if (k[i].threaded)
            pthread_join(k[i].thread, NULL);
        if (!ask_store(&k[i], &k[i].err) && ok) {
            first = k[i].err;
            ok = false;
        }
        if (k[i].ok)
            proposal_move(&out[i], l->a);
        arena_free(k[i].a);
    }
    if (ok)
        return !fresh || !loop_stop_now(l, err);
    *err = first;
    return error_add(err, "%s", stage_names[kind]);
}

bool loop_ask(struct loop *l, enum stage_kind kind, struct question *q, struct proposal *out,
              struct error *err)
{
    q->slot = 0;
    return ask_group(l, kind, q, out, 1, err);
}

bool loop_ask_many(struct loop *l, enum stage_kind kind, struct question *q, struct proposal *out,
                   size_t n, struct error *err)
{
    size_t group = loop_parallel(l);

    for (size_t i = 0; i < n; i++)
        q[i].slot = (int)i;
    for (size_t i = 0; i < n; i += group)
        if (!ask_group(l, kind, q + i, out + i, n - i < group ? n - i : group, err))
            return false;
    return true;
}

size_t loop_parallel(const struct loop *l)
{
    int may = l->seeding ? 1 : stage_parallel(l->st);

    return (size_t)(l->opt.parallel_calls < may ? l->opt.parallel_calls : may);
}
