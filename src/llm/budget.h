/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.h - limits on money, tokens, calls and minutes.
 *
 *     if (!budget_open(path, &limits, &b, err)) ...
 *     if (!budget_reserve(b, &want, &grant, err)) ...     ERROR_BUDGET: nothing is left
 *     ... the call, with at most grant.output_tokens ...
 *     budget_settle(b, &grant, &spent);                   also after a failed call
 *     budget_close(b);
 *
 * With a path, all processes that open the same file share one budget: the
 * file is locked for every step, and a reservation of a process that died is
 * counted as spent. Processes on several machines share a text in the store instead
 * (base/shared.h); there a reservation is dead once its owner opens the budget again, or after
 * hours. Without either, the budget belongs to this process only. If only other calls' reservations
 * are in the way, budget_reserve waits for them.
 *
 * Invariants
 * 1. spent + reserved never passes a limit: the most a call may cost is reserved before it begins
 *    and the rest released afterwards.
 * 2. A call that ended without usage figures is counted as reserved.
 */
#ifndef LLM_BUDGET_H
#define LLM_BUDGET_H

#include "base/error.h"
#include "base/shared.h"

#include <stdint.h>

struct budget_limits { /* 0: no limit */
    double usd;
    int64_t tokens; /* prompt and output together */
    int64_t calls;
    double minutes; /* since the budget was created */
};

struct budget_want {
    int64_t prompt_tokens;                             /* an estimate */
    int64_t output_tokens;                             /* most tokens wanted */
    double usd_per_prompt_token, usd_per_output_token; /* < 0: unknown */
};

struct budget_grant {
    uint64_t id;
    int64_t prompt_tokens, output_tokens; /* output: what fits, possibly less than wanted */
    double usd;
    int64_t minutes_left_ms; /* -1: no limit */
};

struct budget_spent {
    int64_t calls, tokens;
    double usd;
    bool usd_unknown; /* the cost of some call is unknown: usd is a lower bound */
    int64_t elapsed_ms;
};

struct budget;
bool budget_open(const char *path, const struct budget_limits *limits, struct budget **out,
                 struct error *err);
/* The same, kept in a shared text; `place` is borrowed until budget_close(). */
bool budget_open_shared(const struct shared_text *place, const struct budget_limits *limits,
                        struct budget **out, struct error *err);
bool budget_reserve(struct budget *b, const struct budget_want *want, struct budget_grant *out,
                    struct error *err);
/* tokens < 0: unknown, so the reservation counts. usd < 0: unknown. */
void budget_settle(struct budget *b, const struct budget_grant *grant, int64_t tokens, double usd);
/* Adds what was spent before this process began; ignored for a shared budget, which already has
 * it. */
void budget_charge(struct budget *b, int64_t tokens, double usd);
/* For a suite that continues after a pause: idle time does not count. */
bool budget_unpause(const char *path, struct error *err);
bool budget_unpause_shared(const struct shared_text *place, struct error *err);
bool budget_has_money(const struct budget *b); /* is there a limit in dollars? */
bool budget_spent(struct budget *b, struct budget_spent *out, struct error *err);
void budget_close(struct budget *b); /* NULL is fine */

#endif
