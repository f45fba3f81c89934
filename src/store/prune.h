/* SPDX-License-Identifier: Apache-2.0 */
/* prune.h - remove texts of old runs. */
#ifndef STORE_PRUNE_H
#define STORE_PRUNE_H

#include "store/store.h"

struct prune_rules {
    int64_t before_ms; /* runs that ended before, Unix time */
    bool dry;          /* only count */
};

struct prune_done {
    int64_t runs;         /* pruned now */
    int64_t texts, bytes; /* removed, because nothing refers to them any more */
};

/*
 * Of an old run these are kept: all rows of attempts, verdicts, times and costs; the best kernel
 * and every attempt that an export cites, with sources, code and launch lists. Prompts, replies,
 * profiles, events, compiler logs, and sources and code of the other attempts go.
 */
bool store_prune(struct store *s, const struct prune_rules *rules, struct prune_done *out,
                 struct error *err);

/* Notes that an attempt was exported, so that it is kept. */
bool store_export_add(struct store *s, const char *run, int attempt, const char *path,
                      struct error *err);

#endif
