/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llm.h - ask(request) -> reply, for every provider, with retries, continuations and budgets.
 *
 *     struct llm_config c = llm_config_default();
 *     c.model = "openai:gpt-5";
 *     if (!llm_open(&c, &llm, err)) ...
 *     if (!llm_ask(llm, &request, a, &reply, err)) ...
 *     llm_close(llm);                                    also after errors
 *
 * Model specs: openai:MODEL (chat completions), responses:MODEL, anthropic:MODEL,
 * exec:COMMAND, replay:FILE. `builtin` is not here: expert/ answers it.
 *
 * One llm is used by one thread at a time; several may be open. When llm_ask returns true the reply
 * is complete. A reply still truncated at its token limit after all continuations is returned with
 * finish_reason "length" and a text that says so, without code: never half a source. False is a
 * broken machine (ERROR_MACHINE: network, key, provider), wrong use (ERROR_USE) or ERROR_BUDGET;
 * retries have been used up by then.
 *
 * A key never appears in errors, logs, records or child environments: it is scrubbed from whatever
 * a provider sends back.
 */
#ifndef LLM_LLM_H
#define LLM_LLM_H

#include "llm/budget.h"
#include "model.h"

struct llm_config {
    const char *model;     /* spec, as above */
    const char *base_url;  /* NULL: the provider's own; "http://host:8000/v1" */
    const char *key_env;   /* environment variable with the key; NULL: the provider's usual one */
    const char *key_file;  /* alternatively, a file of mode 0600 */
    const char *ca_file;   /* certificate authority; NULL: the system's */
    const char *proxy;     /* NULL: from the environment (https_proxy, ...) */
    const char *effort;    /* reasoning effort "low" "medium" "high"; NULL: not sent */
    double temperature;    /* < 0: not sent */
    int max_output_tokens; /* per reply; 0: 32768 */
    int connect_ms, stall_ms, total_ms; /* limits on connecting, on silence, and in total */
    int max_retries;                    /* further attempts after a transient fault */
    int max_continuations;              /* how often a truncated reply is continued */
    int backoff_ms, backoff_max_ms;     /* first pause, doubled each time, with jitter */
    size_t reply_limit_bytes;
    const char *record_file; /* appends every call as a JSON line; NULL: none */
    const char *price_file;  /* overrides the built-in table; NULL: none */
    struct budget *budget;   /* borrowed; NULL: no limits */
    /* Called with text as it arrives (ask, live line); may be NULL. */
    void (*on_text)(void *ctx, const char *text, size_t len);
    void *on_text_ctx;
    /* Called a few times a second; true ends the call with ERROR_INTERRUPTED. May be NULL. */
    bool (*interrupted)(void *ctx);
    void *interrupted_ctx;
};

struct llm_totals {
    int64_t calls, retries, prompt_tokens, cached_tokens, output_tokens;
    double usd;
    bool usd_unknown;
};

/* The finish reason of a call that `interrupted` ended: llm_ask returns false with
 * ERROR_INTERRUPTED, and *out has what is known about the call, for the record. */
#define LLM_INTERRUPTED "interrupted"
/* The finish reason of a call that was given up after some of its attempts had cost tokens. */
#define LLM_FAILED "failed"

struct llm;
struct llm_config llm_config_default(void);
bool llm_open(const struct llm_config *config, struct llm **out, struct error *err);
bool llm_ask(struct llm *llm, const struct request *req, struct arena *a, struct reply *out,
             struct error *err);
/* For an answer known from before (a resumed run): nothing is asked or recorded, but a budget of
 * this process is charged, and a replay skips its entry, so that the next question gets the next
 * one. */
bool llm_recall(struct llm *llm, const struct request *req, const struct reply *known,
                struct error *err);
void llm_close(struct llm *llm); /* NULL is fine */

/*
 * The other side of call_watch.carry (model.h), in a process of its own: makes the one request of
 * the order. *answer is for the process that gave the order; *whole: this completes the call, and
 * *out is its reply. False: the order cannot be read or the model cannot be opened.
 */
bool llm_carry(const struct call_order *order, bool (*interrupted)(void *ctx), void *ctx,
               struct arena *a, json_t **answer, bool *whole, struct reply *out, struct error *err);

struct llm_totals llm_totals(const struct llm *llm);
/* The configured one, the environment's, or the provider's own; NULL: not an HTTP provider. */
const char *llm_base_url(const struct llm *llm);

/* For `cutegen models`: {"model", "provider", "dialect", "base_url", "key": {"from", "present"},
 * "price": {...}|null, limits...}. Never a key, never an error: problems are in "problem". */
json_t *llm_describe(const struct llm_config *config);
/* The same for every known provider, with or without a key: [{"provider", "spec", ...}]. */
json_t *llm_providers(void);

#endif
