/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - a cache of compiled kernels in the store, shared by all machines.
 *
 * Hides that it is a table. The meaning of keys and data belongs to the caller
 * (toolchain/build_cache.c).
 *
 * Invariants
 * 1. A row is written once and never changed.
 * 2. Data is returned only if it has the hash that was stored with it.
 * 3. Nothing here fails a build: what cannot be fetched is compiled, what cannot be stored is not
 *    shared.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/shared.h"
#include "base/vault.h"
#include "store/queue.h"
#include "store/read.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_BYTES = 16 << 20,
    REQUEST_BYTES = 60000,
    UNCLAIMED_MS = 60 * 1000, /* a job unclaimed this long is compiled by this machine instead */
    LOOK_MS = 20,             /* and growing */
    LOOK_MOST_MS = 250,
};

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
    /* A text that contains a secret is not shared. */
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

/* ---- compiled by workers ---------------------------------------------------- */

/* Is a worker alive that takes compile jobs? */
static bool somebody_compiles(struct store *s, struct error *err)
{
    int64_t n = 0;

    return workers_who_compile(s, &n, err) && n > 0;
}

/* Waits until the job has ended or no worker is left to do it. */
static bool wait_for(struct store *s, int64_t id, struct error *err)
{
    int64_t began = clock_ms();
    int look_ms = LOOK_MS;

    for (;;) {
        struct arena *a = arena_new();
        struct queue_entry job = {0};
        bool ok = queue_read(s, id, a, &job, err), was;

        arena_free(a);
        if (!ok || job.state == JOB_DONE || job.state == JOB_FAILED)
            return ok && job.state == JOB_DONE;
        if (!somebody_compiles(s, err) ||
            (job.state == JOB_WAITING && clock_ms() - began > UNCLAIMED_MS &&
             queue_cancel(s, id, &was, err) && was))
            return false;
        usleep((useconds_t)look_ms * 1000);
        look_ms = 2 * look_ms < LOOK_MOST_MS ? 2 * look_ms : LOOK_MOST_MS;
    }
}

static bool kernel_make(void *ctx, const char *key, struct text source, const char *request)
{
    struct store *s = ctx;
    struct error err = {0};
    struct queue_order order = {.kind = JOB_COMPILE, .source = source, .salt = key};
    enum job_state state;
    bool made = false;
    int64_t id;

    if (strlen(request) > REQUEST_BYTES || !somebody_compiles(s, &err) ||
        !json_parse(text_of(request), "a compile request", &order.payload, &err))
        return false;
    made = queue_add(s, &order, &id, &state, &err) && (state == JOB_DONE || wait_for(s, id, &err));
    json_decref(order.payload);
    if (err.kind != ERROR_NONE)
        log_info("compiled here, not by a worker: %s", err.text);
    return made;
}

bool store_has_kernel(struct store *s, const char *key, bool *has, struct error *err)
{
    int64_t n = 0;
    bool ok = sql_int(s, 0, &n, err, "SELECT count(*) FROM kernels WHERE key = ?", "t", key);

    *has = n > 0;
    return ok;
}

const struct shared_files *store_kernels(struct store *s, enum compiled_by who, struct arena *a)
{
    struct shared_files *f;

    if (!s->url && who == COMPILED_HERE)
        return NULL;
    f = arena_alloc(a, sizeof(*f));
    *f = (struct shared_files){.get = kernel_get,
                               .put = kernel_put,
                               .make = who == COMPILED_BY_QUEUE ? kernel_make : NULL,
                               .offer = who == COMPILED_FOR_QUEUE,
                               .ctx = s};
    return f;
}
