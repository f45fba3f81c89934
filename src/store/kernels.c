/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - what was compiled on any machine, for all of them: a cache in the store.
 *
 * Hides that it is a table. What a key and its data mean is the caller's (toolchain/build_cache.c).
 *
 * Invariants
 * 1. A row is written once and never changed.
 * 2. Data is handed out only if it has the hash that was stored with it.
 * 3. Nothing here fails a build: what cannot be had is compiled, what cannot be put is not shared.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/shared.h"
#include "base/vault.h"
#include "store/read.h"

#include <stdio.h>
#include <string.h>

enum { MOST_BYTES = 16 << 20 };

static bool kernel_get(void *ctx, const char *key, struct arena *a, struct text *data)
{
    struct store *s = ctx;
    struct error err = {0};
    struct query q;
    char want[65] = "", is[65] = "-";

    if (sql_query(s, &q, &err, "SELECT sha256, data FROM kernels WHERE key = ?", "t", key)) {
        if (sql_next(&q, &err)) {
            snprintf(want, sizeof(want), "%s", col_text(&q, 0, a));
            *data = col_blob(&q, 1, a);
            hash_text(*data, is);
        }
        sql_done(&q);
    }
    if (err.kind != ERROR_NONE)
        log_info("the store's kernels cannot be read: %s", err.text);
    else if (*want && strcmp(want, is) != 0)
        log_warn("a kernel in the store is damaged and is compiled again: %.16s...", key);
    return strcmp(want, is) == 0;
}

static void kernel_put(void *ctx, const char *key, struct text data)
{
    struct store *s = ctx;
    struct error err = {0};
    struct arena *a = arena_new();
    struct text clean = vault_scrub(data, a);
    char sha[65];

    hash_text(data, sha);
    /* What a secret would have to be cut out of is nobody else's. */
    if (data.len <= MOST_BYTES && clean.len == data.len &&
        !memcmp(clean.data, data.data, data.len) && sql_begin(s, &err))
        sql_end(s,
                sql_run(s, &err,
                        "INSERT INTO kernels (key, sha256, made_ms, data) VALUES (?, ?, ?, ?) "
                        "ON CONFLICT (key) DO NOTHING",
                        "ttlb", key, sha, clock_unix_ms(), &data),
                &err);
    if (err.kind != ERROR_NONE)
        log_info("a kernel is not shared: %s", err.text);
    arena_free(a);
}

const struct shared_files *store_kernels(struct store *s, struct arena *a)
{
    struct shared_files *f;

    if (!s->url)
        return NULL;
    f = arena_alloc(a, sizeof(*f));
    *f = (struct shared_files){kernel_get, kernel_put, s};
    return f;
}
