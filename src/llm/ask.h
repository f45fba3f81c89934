/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.h - private to src/llm: the state of one llm_ask(), in this process or in the one that makes
 * the request (carry.c).
 */
#ifndef LLM_ASK_H
#define LLM_ASK_H

#include "llm/provider/provider.h"

struct ask {
    struct llm *llm;
    const struct request *req;
    struct arena *arena;
    struct answer answer; /* the current attempt's answer */
    struct buf text;      /* text of the rounds so far */
    int max_output_tokens;
    int64_t prompt_tokens, cached_tokens, output_tokens; /* over all rounds; -1 unknown */
    double cost_usd;
    /* Tokens of attempts that failed after they had begun to answer; reported or estimated. */
    int64_t wasted_prompt, wasted_cached, wasted_output;
    int retries;
    json_t *faults;
    unsigned seed;
    int64_t began_ms;
};

/* llm.c */
void ask_reset(struct ask *k);                        /* call before an attempt */
bool ask_check_empty(struct ask *k, struct fault *f); /* call after an attempt with an answer */
void ask_settle(struct ask *k, const struct budget_grant *grant, bool ok);
void ask_join(struct ask *k); /* appends its text to that of earlier rounds */
void ask_reply(struct ask *k, bool whole, struct reply *out);

/*
 * carry.c: makes the attempt in a process that the request's watch starts. False: nothing was sent,
 * so the caller makes it here. Otherwise *ok says whether there is an answer, like
 * provider->attempt().
 */
bool carry_send(struct ask *k, struct wire *w, struct fault *f, bool *ok);

#endif
