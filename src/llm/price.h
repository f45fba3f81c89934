/* SPDX-License-Identifier: Apache-2.0 */
/*
 * price.h - the cost of a call, from a dated table that the user can override.
 *
 * A price belongs to a provider: the same model name behind another base URL
 * has no known price. Unknown is NULL, never zero.
 */
#ifndef LLM_PRICE_H
#define LLM_PRICE_H

#include "base/error.h"
#include "base/mem.h"

#include <jansson.h>
#include <stdint.h>

struct price { /* US dollars per million tokens */
    const char *scheme, *model;
    double input, cached, cache_write, output;
    const char *date; /* date of the figure */
};

struct price_book;

/* file: NULL, or JSON {"date": "2026-01-31", "models": {"NAME": {"input": 1.25, "cached": 0.125,
 * "output": 10}}}; NAME is "MODEL" or "openai:MODEL" and overrides the built-in table. */
bool price_open(const char *file, struct arena *a, struct price_book **out, struct error *err);
/* official: the call goes to the provider's own host. NULL: unknown. */
const struct price *price_find(const struct price_book *b, const char *scheme, const char *model,
                               bool official);
/* Token counts < 0 are unknown; the cost is -1 if prompt or output are unknown. */
double price_cost(const struct price *p, int64_t prompt, int64_t cached, int64_t cache_write,
                  int64_t output);
json_t *price_json(const struct price *p); /* null when unknown */

#endif
