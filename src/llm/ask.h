/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.h - private to src/llm: one llm_ask while it runs, here or in the process that makes the
 * request (carry.c).
 */
#ifndef LLM_ASK_H
#define LLM_ASK_H

#include "llm/provider/provider.h"

struct ask {
    struct llm *llm;
    const struct request *req;
    struct arena *arena;
    struct answer answer; /* of the attempt under way */
    struct buf text;      /* of the rounds so far */
    int max_output_tokens;
    int64_t prompt_tokens, cached_tokens, output_tokens; /* over all rounds; -1 unknown */
    double cost_usd;
    /* Of attempts that failed after they had begun to answer; reported, or estimated. */
    int64_t wasted_prompt, wasted_cached, wasted_output;
    int retries;
    json_t *faults;
    unsigned seed;
    int64_t began_ms;
};

/* llm.c */
void ask_reset(struct ask *k);                        /* before an attempt */
bool ask_check_empty(struct ask *k, struct fault *f); /* after one that brought an answer */
void ask_settle(struct ask *k, const struct budget_grant *grant, bool ok);
void ask_join(struct ask *k); /* its text to that of the rounds before */
void ask_reply(struct ask *k, bool whole, struct reply *out);

/*
 * carry.c: the attempt in a process that the request's watch starts. False: nothing was sent, and
 * it is to be made here. Else *ok says whether an answer came, as provider->attempt() does.
 */
bool carry_send(struct ask *k, struct wire *w, struct fault *f, bool *ok);

#endif
