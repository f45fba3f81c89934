/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provider.h - private to src/llm: the interface between llm_ask and a provider.
 *
 * A provider makes one attempt at one call. It returns either an answer or a fault, and a fault
 * says whether it is transient. Everything else (retries, continuations, budgets, prices, records)
 * is done by llm.c, the same way for all.
 *
 * To add a provider: a struct provider in a file of its own, and a row in
 * providers[] (llm.c). To add an HTTP dialect: a struct dialect as in messages.c.
 */
#ifndef LLM_PROVIDER_H
#define LLM_PROVIDER_H

#include "base/buf.h"
#include "base/error.h"
#include "llm/llm.h"

/* Parameters that a server has refused and that are left out from then on. */
enum {
    DROP_TEMPERATURE = 1,
    DROP_EFFORT = 2,
    DROP_STREAM_OPTIONS = 4,
    DROP_MAX_TOKENS_NAME = 8, /* use the other name: max_completion_tokens <-> max_tokens */
};

/* One attempt, as the provider should send it. */
struct wire {
    const struct llm_config *config;
    const char *model;
    const struct request *req;
    const struct message *messages; /* the request's, plus continuations */
    size_t message_count;
    int max_output_tokens;
    int total_ms;
    unsigned drop;
    struct arena *arena;
};

/* What an attempt has received so far. */
struct answer {
    struct buf text;
    char model[128], finish[40];
    int64_t prompt_tokens, cached_tokens, cache_write_tokens, output_tokens; /* -1: unknown */
    /* set by replay only */
    double cost_usd;
    bool finished;     /* the provider reported the end */
    bool cut;          /* truncated at the token limit */
    bool done;         /* replay: no entries are left */
    char problem[512]; /* an error reported inside the answer; "" none */
    bool problem_passes;
};

struct fault {
    bool passes;        /* transient: trying again may help */
    bool again;         /* try again at once, since the request was changed (drop) */
    int retry_after_ms; /* < 0: the server did not say */
    enum error_kind kind;
    char text[1024], hint[512];
};

struct llm;

struct provider {
    const char *scheme; /* "openai" of "openai:MODEL" */
    const char *title;
    const struct dialect *dialect; /* NULL: not HTTP */
    bool (*open)(struct llm *llm, struct error *err);
    bool (*attempt)(struct llm *llm, struct wire *w, struct answer *out, struct fault *f);
    bool (*recall)(struct llm *llm, const struct request *req, struct error *err); /* or NULL */
    void (*close)(struct llm *llm);
};

struct dialect {
    const char *base_url, *base_env, *key_env, *path;
    json_t *(*body)(const struct wire *w);
    /* Adds the lines of the header with the key (may be ""); each in `out`, '\n'-terminated. */
    void (*headers)(const char *key, struct buf *out);
    void (*event)(struct answer *a, const json_t *data);
    void (*whole)(struct answer *a, const json_t *body);
};

struct secret { /* a key; it is kept in the vault */
    const char *value;
    char from[256]; /* where it came from, for messages */
};

struct price;

struct llm {
    struct llm_config config; /* strings borrowed from arena */
    struct arena *arena;
    const struct provider *provider;
    const char *model; /* the part after the colon */
    struct secret key;
    struct llm_totals totals;
    unsigned drop;
    int token_cap; /* most output tokens that the server allows, if it said so; 0: unknown */
    const struct price *price; /* NULL: unknown */
    struct price_book *prices;
    void *state; /* private data of the provider */
};

extern const struct provider openai_provider, responses_provider, anthropic_provider, exec_provider,
    replay_provider;

/* llm.c: finds the provider of a spec; NULL: there is none. */
const struct provider *llm_provider_of(const char *spec, const char **model);
const struct provider *llm_provider_at(size_t i);

/* http.c: open, attempt and close of every provider with a dialect. */
bool http_open(struct llm *llm, struct error *err);
bool http_attempt(struct llm *llm, struct wire *w, struct answer *out, struct fault *f);
void http_close(struct llm *llm);
/* Where requests go: base URL (given, from the environment, or the provider's) and path. */
const char *http_url(const struct llm_config *c, const struct dialect *d, struct arena *a);
bool http_is_official(const struct llm_config *c, const struct dialect *d);

/* adapt.c: what a provider says about a request that it refuses. */
struct refusal {
    char words[600], param[64], code[64]; /* "": not given */
};
/* Changes the parameter that the refusal names; true, with f->again, if the request should be made
 * again. */
bool adapt_request(struct llm *llm, struct wire *w, const struct refusal *r, struct fault *f);

/* secret.c */
bool secret_load(const struct llm_config *c, const struct dialect *d, struct secret *out,
                 struct error *err);
void secret_release(struct secret *s);

/* fault.c: sets the message of a fault, and how long to wait before the next attempt. */
bool fault_set(struct fault *f, bool passes, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool fault_hint(struct fault *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int fault_pause_ms(const struct llm_config *c, const struct fault *f, int attempt, unsigned *seed);
/* Parses "120" or an HTTP date; -1 if it is neither. */
int retry_after_ms(const char *value, int64_t now_unix_ms);

/* transcript.c */
json_t *record_of(const struct llm *llm, const struct request *req, const struct reply *reply,
                  json_t *faults);
bool record_append(const char *path, const json_t *record, struct error *err);
/* Hash of stage and messages, by which a replay finds a prompt. */
void record_request_hash(const struct request *req, char out[65]);

#endif
