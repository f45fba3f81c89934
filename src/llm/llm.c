/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llm.c - one question, as many attempts and continuations as needed, one reply.
 *
 * Invariants
 * 1. Budget is reserved before a round and settled after it, whatever happened.
 * 2. Text of a failed attempt is discarded; text truncated at the token limit is continued, and
 *    returned only if its end was reached.
 * 3. Every call with a reply is recorded before the reply is returned.
 */
#include "llm/llm.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "base/vault.h"
#include "llm/ask.h"
#include "llm/edit/fence.h"
#include "llm/price.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_ADAPTIONS = 14,
    MAX_WAIT_MS = 600000, /* longest Retry-After to wait for; beyond it the call fails */
    BYTES_PER_TOKEN = 3,  /* a conservative estimate for code */
    MAX_OVERLAP = 4000,
    MIN_OVERLAP = 16,
};

static const struct provider *const providers[] = {
    &openai_provider, &responses_provider, &anthropic_provider, &exec_provider, &replay_provider,
};

struct llm_config llm_config_default(void)
{
    return (struct llm_config){
        .temperature = -1,
        .max_output_tokens = 32768,
        .connect_ms = 10000,
        .stall_ms = 180000, /* reasoning models are silent for a long time */
        .total_ms = 1200000,
        .max_retries = 5,
        .max_continuations = 3,
        .backoff_ms = 1000,
        .backoff_max_ms = 60000,
        .reply_limit_bytes = 8 << 20,
    };
}

/* ---- opening ---------------------------------------------------------------------- */

const struct provider *llm_provider_of(const char *spec, const char **model)
{
    for (size_t i = 0; i < ARRAY_LEN(providers); i++) {
        size_t n = strlen(providers[i]->scheme);

        if (strncmp(spec, providers[i]->scheme, n) == 0 && spec[n] == ':') {
            *model = spec + n + 1;
            return providers[i];
        }
    }
    return NULL;
}

const struct provider *llm_provider_at(size_t i)
{
    return i < ARRAY_LEN(providers) ? providers[i] : NULL;
}

static bool unknown_spec(const char *spec, struct error *err)
{
    error_set(err, ERROR_USE, "unknown model \"%s\"", spec);
    return error_hint(err, "models are named openai:NAME, responses:NAME, anthropic:NAME, "
                           "exec:COMMAND, replay:FILE or builtin");
}

/* Copies the config's strings, because the caller may free them. */
static void copy_config(struct llm *llm, const struct llm_config *c)
{
    const char **fields[] = {
        &llm->config.model,    &llm->config.base_url,    &llm->config.key_env,
        &llm->config.key_file, &llm->config.ca_file,     &llm->config.proxy,
        &llm->config.effort,   &llm->config.record_file, &llm->config.price_file,
    };

    llm->config = *c;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (*fields[i])
            *fields[i] = arena_strdup(llm->arena, *fields[i]);
    if (llm->config.max_output_tokens <= 0)
        llm->config.max_output_tokens = 32768;
}

static bool open_price(struct llm *llm, struct error *err)
{
    const struct dialect *d = llm->provider->dialect;
    bool official = d && http_is_official(&llm->config, d);

    if (!price_open(llm->config.price_file, llm->arena, &llm->prices, err))
        return false;
    llm->price = price_find(llm->prices, llm->provider->scheme, llm->model, official);
    if (llm->price || !budget_has_money(llm->config.budget) || llm->provider == &replay_provider)
        return true;
    error_set(err, ERROR_USE, "a budget in dollars needs a price, but the price of %s is unknown",
              llm->config.model);
    return error_hint(err, "give the price in a prices file, or set a budget in tokens or calls");
}

bool llm_open(const struct llm_config *config, struct llm **out, struct error *err)
{
    struct llm *llm = xmalloc(sizeof(*llm));

    llm->arena = arena_new();
    copy_config(llm, config);
    llm->provider = config->model ? llm_provider_of(llm->config.model, &llm->model) : NULL;
    if (!llm->provider)
        unknown_spec(config->model ? config->model : "", err);
    if (llm->provider && llm->provider->dialect && !*llm->model)
        error_set(err, ERROR_USE, "%s: without the name of a model", llm->provider->scheme);
    else if (llm->provider && open_price(llm, err) && llm->provider->open(llm, err)) {
        *out = llm;
        return true;
    }
    llm_close(llm);
    return false;
}

void llm_close(struct llm *llm)
{
    if (!llm)
        return;
    if (llm->provider)
        llm->provider->close(llm);
    secret_release(&llm->key);
    arena_free(llm->arena);
    xfree(llm);
}

struct llm_totals llm_totals(const struct llm *llm)
{
    return llm->totals;
}

/* ---- attempts ------------------------------------------------------------------------ */

void ask_reset(struct ask *k)
{
    struct buf text = k->answer.text;

    buf_clear(&text);
    memset(&k->answer, 0, sizeof(k->answer));
    k->answer.text = text;
    k->answer.prompt_tokens = k->answer.cached_tokens = k->answer.output_tokens = -1;
    k->answer.cache_write_tokens = -1;
    k->answer.cost_usd = -1;
}

/* False: the user wants to stop. */
static bool pause_for(const struct llm_config *c, int ms)
{
    int64_t end = clock_ms() + ms;

    for (int64_t left = ms; left > 0; left = end - clock_ms()) {
        struct timespec t = {0, (left < 50 ? left : 50) * 1000000L};

        if (c->interrupted && c->interrupted(c->interrupted_ctx))
            return false;
        nanosleep(&t, NULL);
    }
    return true;
}

/* A complete but empty answer is a fault; one that the provider withheld is an answer. */
bool ask_check_empty(struct ask *k, struct fault *f)
{
    struct answer *a = &k->answer;
    bool blank = true;

    for (size_t i = 0; i < a->text.len && blank; i++)
        blank = isspace((unsigned char)a->text.data[i]) != 0;
    if (!blank || a->cut || a->done)
        return true;
    if (strcmp(a->finish, "content_filter") == 0 || strcmp(a->finish, "refusal") == 0) {
        buf_puts(&a->text, "(the provider withheld the answer)");
        return true;
    }
    return fault_set(f, true, "the reply is empty (finish reason \"%s\")", a->finish);
}

static bool give_up(const struct ask *k, const struct fault *f, struct error *err)
{
    char times[40] = "";

    if (k->retries)
        snprintf(times, sizeof(times), " (%d attempts)", k->retries + 1);
    error_set(err, f->kind ? f->kind : ERROR_MACHINE, "asking %s: %s%s", k->llm->config.model,
              f->text, times);
    return f->hint[0] ? error_hint(err, "%s", f->hint) : false;
}

/* Counts what a failed attempt may have cost. */
static void count_waste(struct ask *k, const struct wire *w)
{
    const struct answer *a = &k->answer;
    int64_t prompt = 0, said = (int64_t)a->text.len / BYTES_PER_TOKEN;

    if (a->text.len == 0 && a->output_tokens <= 0 && a->prompt_tokens <= 0)
        return;
    for (size_t i = 0; i < w->message_count; i++)
        prompt += (int64_t)w->messages[i].content.len / BYTES_PER_TOKEN;
    k->wasted_prompt += a->prompt_tokens >= 0 ? a->prompt_tokens : prompt;
    k->wasted_cached += a->cached_tokens > 0 ? a->cached_tokens : 0;
    k->wasted_output += a->output_tokens > said ? a->output_tokens : said;
}

static int64_t at_least_0(int64_t n)
{
    return n > 0 ? n : 0;
}

/* Reports the most that all requests of this call, including the next, may cost. */
static bool tell_begins(const struct ask *k, const struct wire *w, struct error *err)
{
    const struct call_watch *watch = k->req->watch;
    int64_t prompt = at_least_0(k->prompt_tokens) + k->wasted_prompt;
    int64_t output = at_least_0(k->output_tokens) + k->wasted_output + w->max_output_tokens;

    if (!watch || k->llm->provider == &replay_provider)
        return true;
    for (size_t i = 0; i < w->message_count; i++)
        prompt += (int64_t)w->messages[i].content.len / BYTES_PER_TOKEN + 8;
    return watch->begins(watch->ctx, k->req, prompt, output,
                         price_cost(k->llm->price, prompt, 0, 0, output), err);
}

/* Sends the request in a process that outlives this one if possible, else here. */
static bool send_once(struct ask *k, struct wire *w, struct fault *f)
{
    bool ok = false;

    if (k->req->watch && k->req->watch->carry && k->llm->provider != &replay_provider &&
        carry_send(k, w, f, &ok))
        return ok;
    return k->llm->provider->attempt(k->llm, w, &k->answer, f);
}

static bool attempts(struct ask *k, struct wire *w, struct error *err)
{
    struct llm *llm = k->llm;
    int adaptions = 0;

    for (int attempt = 0;;) {
        struct fault f = {.retry_after_ms = -1};
        int pause;

        ask_reset(k);
        w->drop = llm->drop;
        if (llm->token_cap && llm->token_cap < w->max_output_tokens)
            w->max_output_tokens = llm->token_cap;
        if (!tell_begins(k, w, err))
            return false;
        if (send_once(k, w, &f) && ask_check_empty(k, &f))
            return true;
        json_array_append_new(k->faults, json_from_string(f.text));
        count_waste(k, w);
        if (f.again && adaptions++ < MAX_ADAPTIONS)
            continue;
        if (!f.passes || attempt >= llm->config.max_retries)
            return give_up(k, &f, err);
        if (f.retry_after_ms > MAX_WAIT_MS) {
            fault_hint(&f, "the server asks us to wait %d s", f.retry_after_ms / 1000);
            return give_up(k, &f, err);
        }
        pause = fault_pause_ms(&llm->config, &f, attempt++, &k->seed);
        k->retries++;
        log_warn("%s; trying again in %.1f s", f.text, pause / 1000.0);
        if (!pause_for(&llm->config, pause))
            return error_set(err, ERROR_INTERRUPTED, "interrupted while waiting for %s",
                             llm->config.model);
    }
}

/* ---- rounds --------------------------------------------------------------------------- */

/* Removes what a continuation repeats at its beginning: a reopened fence and the last words. */
void ask_join(struct ask *k)
{
    struct text next = buf_text(&k->answer.text), have = buf_text(&k->text);
    size_t most = have.len < next.len ? have.len : next.len;

    if (have.len && text_starts(next, "```")) {
        struct arena *a = arena_new();
        struct fence_list list = fence_find(have, a);
        struct text rest = next, opening;

        if (list.count && !list.items[list.count - 1].closed && text_next_line(&rest, &opening) &&
            rest.data > opening.data + opening.len) {
            next = rest;
            most = have.len < next.len ? have.len : next.len;
        }
        arena_free(a);
    }
    for (size_t n = most < MAX_OVERLAP ? most : MAX_OVERLAP; n >= MIN_OVERLAP; n--) {
        if (memcmp(have.data + have.len - n, next.data, n) == 0) {
            next.data += n, next.len -= n;
            break;
        }
    }
    buf_add(&k->text, next.data, next.len);
}

static int64_t add_known(int64_t sum, int64_t n)
{
    return sum < 0 || n < 0 ? -1 : sum + n;
}

/* Adds tokens wasted since the last round to the call's cost. */
static void add_waste(struct ask *k, int64_t *tokens, double *cost)
{
    double wasted =
        price_cost(k->llm->price, k->wasted_prompt, k->wasted_cached, 0, k->wasted_output);

    if (!k->wasted_prompt && !k->wasted_output)
        return;
    k->prompt_tokens = add_known(k->prompt_tokens, k->wasted_prompt);
    k->cached_tokens = add_known(k->cached_tokens, k->wasted_cached);
    k->output_tokens = add_known(k->output_tokens, k->wasted_output);
    k->cost_usd = k->cost_usd < 0 || wasted < 0 ? -1 : k->cost_usd + wasted;
    *cost = *cost < 0 || wasted < 0 ? -1 : *cost + wasted;
    *tokens = add_known(*tokens, k->wasted_prompt + k->wasted_output);
    k->wasted_prompt = k->wasted_cached = k->wasted_output = 0;
}

void ask_settle(struct ask *k, const struct budget_grant *grant, bool ok)
{
    struct llm *llm = k->llm;
    const struct answer *a = &k->answer;
    double cost = a->cost_usd;
    int64_t tokens = add_known(a->prompt_tokens, a->output_tokens);

    if (cost < 0)
        cost = price_cost(llm->price, a->prompt_tokens, a->cached_tokens, a->cache_write_tokens,
                          a->output_tokens);
    if (ok) {
        k->prompt_tokens = add_known(k->prompt_tokens, a->prompt_tokens);
        k->output_tokens = add_known(k->output_tokens, a->output_tokens);
        k->cached_tokens = add_known(k->cached_tokens, a->cached_tokens);
        k->cost_usd = k->cost_usd < 0 || cost < 0 ? -1 : k->cost_usd + cost;
    } else {
        tokens = 0;
        cost = 0;
    }
    add_waste(k, &tokens, &cost);
    if (llm->config.budget)
        budget_settle(llm->config.budget, grant, tokens,
                      llm->provider == &replay_provider && cost < 0 ? 0 : cost);
}

/* The request's messages and, after the first round, the text so far and the instruction to
 * continue. */
static void wire_messages(struct ask *k, struct wire *w)
{
    const struct request *req = k->req;
    struct message *list;

    w->messages = req->messages;
    w->message_count = req->message_count;
    if (!k->text.len)
        return;
    list = arena_array(k->arena, req->message_count + 2, sizeof(*list));
    memcpy(list, req->messages, req->message_count * sizeof(*list));
    list[req->message_count] = (struct message){"assistant", buf_copy(&k->text, k->arena)};
    list[req->message_count + 1] = (struct message){
        "user",
        text_of("Your reply was cut off at the output limit. Go on exactly where it stopped, with "
                "the very next character: repeat nothing, open no new code block, say nothing "
                "before it."),
    };
    w->messages = list;
    w->message_count += 2;
}

/* *squeezed: the remaining budget is smaller than a reply may need. */
static bool reserve(struct ask *k, struct wire *w, struct budget_grant *grant, bool *squeezed,
                    struct error *err)
{
    const struct llm *llm = k->llm;
    bool replay = llm->provider == &replay_provider;
    struct budget_want want = {
        .output_tokens = replay ? 0 : k->max_output_tokens,
        .usd_per_prompt_token = llm->price ? llm->price->input / 1e6
                                : replay   ? 0
                                           : -1,
        .usd_per_output_token = llm->price ? llm->price->output / 1e6
                                : replay   ? 0
                                           : -1,
    };

    w->max_output_tokens = k->max_output_tokens;
    w->total_ms = llm->config.total_ms;
    if (!llm->config.budget)
        return true;
    for (size_t i = 0; !replay && i < w->message_count; i++)
        want.prompt_tokens += (int64_t)w->messages[i].content.len / BYTES_PER_TOKEN + 8;
    if (!budget_reserve(llm->config.budget, &want, grant, err))
        return false;
    *squeezed = !replay && grant->output_tokens < w->max_output_tokens;
    if (*squeezed)
        w->max_output_tokens = (int)grant->output_tokens;
    if (grant->minutes_left_ms >= 0 && grant->minutes_left_ms < w->total_ms)
        w->total_ms = (int)grant->minutes_left_ms + 1;
    return true;
}

/* One round: reserve, attempt, settle. */
static bool ask_round(struct ask *k, bool *squeezed, struct error *err)
{
    struct wire w = {
        .config = &k->llm->config,
        .model = k->llm->model,
        .req = k->req,
        .arena = k->arena,
    };
    struct budget_grant grant = {0};
    bool ok;

    wire_messages(k, &w);
    if (!reserve(k, &w, &grant, squeezed, err))
        return false;
    ok = attempts(k, &w, err);
    ask_settle(k, &grant, ok);
    return ok;
}

/* All rounds; *whole: the last one was not truncated. */
static bool ask_rounds(struct ask *k, bool *whole, struct error *err)
{
    for (int round = 0;; round++) {
        bool squeezed = false;

        if (!ask_round(k, &squeezed, err))
            return false;
        ask_join(k);
        *whole = !k->answer.cut;
        if (*whole || round >= k->llm->config.max_continuations)
            return true;
        if (squeezed) {
            error_set(err, ERROR_BUDGET,
                      "the remaining budget was not enough for a complete reply");
            return error_hint(err, "raise the budget and resume");
        }
        log_info("the reply was truncated at %d tokens; continuing", k->max_output_tokens);
        if (k->answer.text.len == 0) /* reasoning used all of it: ask again with a larger limit */
            k->max_output_tokens *= 2;
    }
}

void ask_reply(struct ask *k, bool whole, struct reply *out)
{
    struct text t = buf_copy(&k->text, k->arena);

    if (!whole)
        t = text_of(arena_printf(k->arena,
                                 "(the reply was cut at the limit of %d tokens even after %d "
                                 "continuations; it is not used)",
                                 k->max_output_tokens, k->llm->config.max_continuations));
    t = vault_scrub(t, k->arena);
    *out = (struct reply){
        .text = text_clean(t, k->arena),
        .model = arena_strdup(k->arena, k->answer.model[0] ? k->answer.model : k->llm->model),
        .finish_reason = arena_strdup(k->arena, !whole                ? "length"
                                                : k->answer.finish[0] ? k->answer.finish
                                                                      : "stop"),
        .prompt_tokens = k->prompt_tokens,
        .cached_tokens = k->cached_tokens,
        .output_tokens = k->output_tokens,
        .cost_usd = k->cost_usd,
        .latency_ms = (int)(clock_ms() - k->began_ms),
        .retries = k->retries,
        .done = k->answer.done,
    };
}

static void add_totals(struct llm *llm, const struct reply *r)
{
    struct llm_totals *t = &llm->totals;

    t->calls++;
    t->retries += r->retries;
    t->prompt_tokens += r->prompt_tokens > 0 ? r->prompt_tokens : 0;
    t->cached_tokens += r->cached_tokens > 0 ? r->cached_tokens : 0;
    t->output_tokens += r->output_tokens > 0 ? r->output_tokens : 0;
    t->usd += r->cost_usd > 0 ? r->cost_usd : 0;
    t->usd_unknown |= r->cost_usd < 0;
}

/* The reply of an interrupted call, whose cost is unknown. */
static void make_interrupted(const struct ask *k, struct reply *out)
{
    *out = (struct reply){
        .text = text_of(""),
        .model = arena_strdup(k->arena, k->llm->model),
        .finish_reason = LLM_INTERRUPTED,
        .prompt_tokens = -1,
        .cached_tokens = -1,
        .output_tokens = -1,
        .cost_usd = -1,
        .latency_ms = (int)(clock_ms() - k->began_ms),
        .retries = k->retries,
    };
}

/* The reply of a failed call that still cost something. */
static void make_failed(const struct ask *k, struct reply *out)
{
    make_interrupted(k, out);
    out->finish_reason = LLM_FAILED;
    out->prompt_tokens = k->prompt_tokens;
    out->cached_tokens = k->cached_tokens;
    out->output_tokens = k->output_tokens;
    out->cost_usd = k->cost_usd;
}

static bool record_call(const struct ask *k, const struct reply *reply, struct error *err)
{
    const struct llm *llm = k->llm;
    json_t *record;
    bool ok;

    if (!llm->config.record_file)
        return true;
    record = record_of(llm, k->req, reply, k->faults);
    ok = record_append(llm->config.record_file, record, err);
    json_decref(record);
    return ok;
}

bool llm_ask(struct llm *llm, const struct request *req, struct arena *a, struct reply *out,
             struct error *err)
{
    struct ask k = {
        .llm = llm,
        .req = req,
        .arena = a,
        .max_output_tokens =
            req->max_output_tokens > 0 ? req->max_output_tokens : llm->config.max_output_tokens,
        .faults = json_array(),
        .seed = (unsigned)clock_us() ^ (unsigned)getpid(),
        .began_ms = clock_ms(),
    };
    struct error ignored = {0};
    bool whole = false, ok;

    k.answer.text = buf_init(llm->config.reply_limit_bytes);
    k.text = buf_init(llm->config.reply_limit_bytes);
    ok = ask_rounds(&k, &whole, err);
    if (ok) {
        ask_reply(&k, whole, out);
        if (req->watch && llm->provider != &replay_provider)
            req->watch->received(req->watch->ctx, out);
        add_totals(llm, out);
        ok = record_call(&k, out, err);
    } else if (err->kind == ERROR_INTERRUPTED) {
        make_interrupted(&k, out);
        (void)record_call(&k, out, &ignored);
    } else if (k.prompt_tokens || k.output_tokens) {
        make_failed(&k, out);
        add_totals(llm, out);
        (void)record_call(&k, out, &ignored);
    }
    json_decref(k.faults);
    buf_release(&k.answer.text);
    buf_release(&k.text);
    return ok;
}

bool llm_recall(struct llm *llm, const struct request *req, const struct reply *known,
                struct error *err)
{
    int64_t tokens = add_known(known->prompt_tokens, known->output_tokens);

    if (llm->config.budget)
        budget_charge(llm->config.budget, tokens > 0 ? tokens : 0,
                      known->cost_usd > 0 ? known->cost_usd : 0);
    return !llm->provider->recall || llm->provider->recall(llm, req, err);
}
