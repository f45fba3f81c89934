/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carry.c - make one request of a call in another process than the one that wants the reply.
 *
 * carry_send() writes what that process needs to know as JSON and reads its answer; llm_carry() is
 * the other side. Retries, continuations and budgets stay with the asking process; but the other
 * side knows what came before, so that it can complete the reply if the run dies.
 *
 * Invariants
 * 1. The JSON contains neither the key nor any other secret that prompts might quote.
 * 2. A request made here and one made by the other process lead to the same reply.
 */
#include "base/clock.h"
#include "base/json.h"
#include "base/vault.h"
#include "llm/ask.h"

#include <stdio.h>
#include <string.h>

enum { BYTES_PER_TOKEN = 3 };

static const char *const config_names[] = {"model", "key_env", "key_file",  "ca_file",
                                           "proxy", "effort",  "price_file"};

static void config_fields(struct llm_config *c, const char **fields[])
{
    const char **all[] = {&c->model, &c->key_env, &c->key_file,  &c->ca_file,
                          &c->proxy, &c->effort,  &c->price_file};

    memcpy(fields, all, sizeof(all));
}

/* ---- the order ---------------------------------------------------------------- */

static json_t *config_json(const struct llm *llm)
{
    struct llm_config c = llm->config;
    const char **fields[ARRAY_LEN(config_names)];
    json_t *o = json_pack("{s:f, s:i, s:i, s:i, s:I}", "temperature", c.temperature, "connect_ms",
                          c.connect_ms, "stall_ms", c.stall_ms, "total_ms", c.total_ms,
                          "reply_limit_bytes", (json_int_t)c.reply_limit_bytes);

    config_fields(&c, fields);
    for (size_t i = 0; i < ARRAY_LEN(config_names); i++)
        if (*fields[i])
            json_object_set_new(o, config_names[i], json_from_string(*fields[i]));
    if (llm_base_url(llm)) /* also if the environment sets it */
        json_object_set_new(o, "base_url", json_from_string(llm_base_url(llm)));
    return o;
}

static json_t *order_json(const struct ask *k, const struct wire *w)
{
    json_t *messages = json_array();

    for (size_t i = 0; i < w->message_count; i++)
        json_array_append_new(
            messages, json_pack("{s:s, s:o}", "role", w->messages[i].role, "content",
                                json_from_text(vault_scrub(w->messages[i].content, k->arena))));
    return json_pack("{s:o, s:s, s:o, s:i, s:i, s:i, s:i, s:o, s:I, s:I, s:I, s:f, s:I, s:I, s:I, "
                     "s:i, s:i, s:I}",
                     "config", config_json(k->llm), "stage", stage_names[k->req->stage], "messages",
                     messages, "max_output_tokens", w->max_output_tokens, "total_ms", w->total_ms,
                     "drop", (int)k->llm->drop, "token_cap", k->llm->token_cap, "text",
                     json_from_text(k->text.len ? buf_text(&k->text) : text_of("")),
                     "prompt_tokens", (json_int_t)k->prompt_tokens, "cached_tokens",
                     (json_int_t)k->cached_tokens, "output_tokens", (json_int_t)k->output_tokens,
                     "cost_usd", k->cost_usd, "wasted_prompt", (json_int_t)k->wasted_prompt,
                     "wasted_cached", (json_int_t)k->wasted_cached, "wasted_output",
                     (json_int_t)k->wasted_output, "retries", k->retries, "limit",
                     k->max_output_tokens, "elapsed_ms", (json_int_t)(clock_ms() - k->began_ms));
}

/* ---- the answer --------------------------------------------------------------- */

static json_t *answer_json(const struct ask *k, const struct fault *f, bool ok)
{
    const struct answer *a = &k->answer;

    return json_pack(
        "{s:b, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:f, s:b, s:b, s:i, s:i, s:b, s:b, s:i, s:i, "
        "s:o, s:o}",
        "ok", (int)ok, "text", json_from_text(a->text.len ? buf_text(&a->text) : text_of("")),
        "model", json_from_string(a->model), "finish", json_from_string(a->finish), "prompt_tokens",
        (json_int_t)a->prompt_tokens, "cached_tokens", (json_int_t)a->cached_tokens,
        "cache_write_tokens", (json_int_t)a->cache_write_tokens, "output_tokens",
        (json_int_t)a->output_tokens, "cost_usd", a->cost_usd, "cut", (int)a->cut, "done",
        (int)a->done, "drop", (int)k->llm->drop, "token_cap", k->llm->token_cap, "passes",
        (int)f->passes, "again", (int)f->again, "retry_after_ms", f->retry_after_ms, "kind",
        (int)f->kind, "fault", json_from_string(f->text), "hint", json_from_string(f->hint));
}

static void answer_read(struct ask *k, const json_t *o, struct fault *f)
{
    struct answer *a = &k->answer;
    const json_t *text = json_object_get(o, "text");

    buf_add(&a->text, json_string_value(text), json_string_length(text));
    snprintf(a->model, sizeof(a->model), "%s", json_string_or(o, "model", ""));
    snprintf(a->finish, sizeof(a->finish), "%s", json_string_or(o, "finish", ""));
    a->prompt_tokens = json_int_or(o, "prompt_tokens", -1);
    a->cached_tokens = json_int_or(o, "cached_tokens", -1);
    a->cache_write_tokens = json_int_or(o, "cache_write_tokens", -1);
    a->output_tokens = json_int_or(o, "output_tokens", -1);
    a->cost_usd = json_double_or(o, "cost_usd", -1);
    a->cut = json_bool_or(o, "cut", false);
    a->done = json_bool_or(o, "done", false);
    a->finished = true;
    k->llm->drop = (unsigned)json_int_or(o, "drop", k->llm->drop);
    k->llm->token_cap = (int)json_int_or(o, "token_cap", k->llm->token_cap);
    f->passes = json_bool_or(o, "passes", false);
    f->again = json_bool_or(o, "again", false);
    f->retry_after_ms = (int)json_int_or(o, "retry_after_ms", -1);
    f->kind = (enum error_kind)json_int_or(o, "kind", ERROR_NONE);
    snprintf(f->text, sizeof(f->text), "%s", json_string_or(o, "fault", ""));
    snprintf(f->hint, sizeof(f->hint), "%s", json_string_or(o, "hint", ""));
}

/* The process that made the request died: assume the highest possible cost. */
static void count_lost(struct ask *k, const struct wire *w, struct fault *f)
{
    for (size_t i = 0; i < w->message_count; i++)
        k->wasted_prompt += (int64_t)w->messages[i].content.len / BYTES_PER_TOKEN + 8;
    k->wasted_output += w->max_output_tokens;
    fault_set(f, true, "the process that made the request was killed");
}

bool carry_send(struct ask *k, struct wire *w, struct fault *f, bool *ok)
{
    const struct call_watch *watch = k->req->watch;
    json_t *what = order_json(k, w), *answer = NULL;
    struct call_order order = {what, k->llm->config.key_file ? NULL : k->llm->key.value};
    bool sent = watch->carry(watch->ctx, &order, &answer);

    *ok = false;
    if (answer) {
        answer_read(k, answer, f);
        *ok = json_bool_or(answer, "ok", false);
    } else if (sent) {
        count_lost(k, w, f);
    }
    json_decref(what);
    json_decref(answer);
    return sent;
}

/* ---- the other side ------------------------------------------------------------ */

static struct llm_config config_read(const json_t *o, struct arena *a)
{
    struct llm_config c = llm_config_default();
    const char **fields[ARRAY_LEN(config_names)];

    config_fields(&c, fields);
    for (size_t i = 0; i < ARRAY_LEN(config_names); i++) {
        const char *s = json_string_or(o, config_names[i], NULL);

        *fields[i] = s ? arena_strdup(a, s) : NULL;
    }
    c.base_url = json_string_or(o, "base_url", NULL);
    c.temperature = json_double_or(o, "temperature", c.temperature);
    c.connect_ms = (int)json_int_or(o, "connect_ms", c.connect_ms);
    c.stall_ms = (int)json_int_or(o, "stall_ms", c.stall_ms);
    c.total_ms = (int)json_int_or(o, "total_ms", c.total_ms);
    c.reply_limit_bytes = (size_t)json_int_or(o, "reply_limit_bytes", (int64_t)c.reply_limit_bytes);
    return c;
}

static void messages_read(const json_t *list, struct arena *a, struct request *req)
{
    size_t n = json_array_size(list);
    struct message *all = arena_array(a, n + 1, sizeof(*all));

    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(list, i), *content = json_object_get(o, "content");
        const char *text = json_string_value(content);

        all[i].role = json_string_or(o, "role", "user");
        all[i].content = (struct text){text ? text : "", json_string_length(content)};
    }
    req->messages = all;
    req->message_count = n;
}

/* Reads the state before this request. */
static void ask_read(const json_t *o, struct ask *k)
{
    const json_t *text = json_object_get(o, "text");

    buf_add(&k->text, json_string_value(text), json_string_length(text));
    k->prompt_tokens = json_int_or(o, "prompt_tokens", 0);
    k->cached_tokens = json_int_or(o, "cached_tokens", 0);
    k->output_tokens = json_int_or(o, "output_tokens", 0);
    k->cost_usd = json_double_or(o, "cost_usd", 0);
    k->wasted_prompt = json_int_or(o, "wasted_prompt", 0);
    k->wasted_cached = json_int_or(o, "wasted_cached", 0);
    k->wasted_output = json_int_or(o, "wasted_output", 0);
    k->retries = (int)json_int_or(o, "retries", 0);
    k->max_output_tokens = (int)json_int_or(o, "limit", 0);
    k->began_ms = clock_ms() - json_int_or(o, "elapsed_ms", 0);
    k->llm->drop = (unsigned)json_int_or(o, "drop", 0);
    k->llm->token_cap = (int)json_int_or(o, "token_cap", 0);
}

static enum stage_kind stage_read(const json_t *o)
{
    const char *name = json_string_or(o, "stage", "");

    for (int i = 0; i < STAGE_KIND_COUNT; i++)
        if (strcmp(stage_names[i], name) == 0)
            return (enum stage_kind)i;
    return STAGE_DIAGNOSE;
}

/* Makes one attempt according to the order; returns the reply if it completes it. */
static json_t *carry_out(struct llm *llm, const json_t *what, struct arena *a, bool *whole,
                         struct reply *out)
{
    struct request req = {.stage = stage_read(what)};
    struct ask k = {.llm = llm, .req = &req, .arena = a};
    struct wire w = {.config = &llm->config,
                     .model = llm->model,
                     .req = &req,
                     .max_output_tokens = (int)json_int_or(what, "max_output_tokens", 0),
                     .total_ms = (int)json_int_or(what, "total_ms", llm->config.total_ms),
                     .arena = a};
    struct fault f = {.retry_after_ms = -1};
    json_t *answer;
    bool ok;

    k.answer.text = buf_init(llm->config.reply_limit_bytes);
    k.text = buf_init(llm->config.reply_limit_bytes);
    messages_read(json_object_get(what, "messages"), a, &req);
    w.messages = req.messages;
    w.message_count = req.message_count;
    ask_read(what, &k);
    ask_reset(&k);
    w.drop = llm->drop;
    ok = llm->provider->attempt(llm, &w, &k.answer, &f);
    answer = answer_json(&k, &f, ok);
    *whole = ok && ask_check_empty(&k, &f) && !k.answer.cut;
    if (*whole) {
        ask_settle(&k, &(struct budget_grant){0}, true);
        ask_join(&k);
        ask_reply(&k, true, out);
    }
    buf_release(&k.answer.text);
    buf_release(&k.text);
    return answer;
}

bool llm_carry(const struct call_order *order, bool (*interrupted)(void *ctx), void *ctx,
               struct arena *a, json_t **answer, bool *whole, struct reply *out, struct error *err)
{
    struct llm_config config = config_read(json_object_get(order->what, "config"), a);
    const char *scheme;
    const struct provider *p = config.model ? llm_provider_of(config.model, &scheme) : NULL;
    struct llm *llm;

    *whole = false;
    if (order->key && p && p->dialect)
        vault_keep(config.key_env ? config.key_env : p->dialect->key_env, order->key,
                   strlen(order->key));
    config.interrupted = interrupted;
    config.interrupted_ctx = ctx;
    if (!llm_open(&config, &llm, err))
        return false;
    *answer = carry_out(llm, order->what, a, whole, out);
    llm_close(llm);
    return true;
}
