/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - the warm server's processes: lent, idle, or being ended.
 *
 *     p = pool_lend(pool, wish, &warm, err);       NULL: it cannot be started
 *     pool_streams(p, fds), pool_pid(p)            for the borrower
 *     pool_back(pool, p, fit);                     the loan is over
 *     pool_tend(pool);                             periodically: reaps and ends surplus processes
 *
 * A wish is a "lend" request (wire.h), borrowed. The pool does not know what its processes do: two
 * wishes with the same key are for the same program, arguments and environment, and a tag names
 * what a process has already loaded.
 *
 * Invariants
 * 1. An idle process is quiet: nothing of an earlier borrower is left in its streams.
 * 2. A process returned as unfit, or lent `once`, is ended.
 * 3. A spare for a process lent `once` is started when no process of that kind is lent, because
 *    starting it would disturb a measurement.
 * 4. Nothing here waits for a process: ending one and reaping it are two steps.
 */
#ifndef SERVER_POOL_H
#define SERVER_POOL_H

#include "base/error.h"

#include <jansson.h>
#include <stdint.h>

struct pool;
struct pooled;

struct pool_limits {
    int idle_ms;           /* a process idle for this long is ended */
    uint64_t memory_bytes; /* resident memory of all idle processes */
};

struct pool *pool_new(const struct pool_limits *limits);
void pool_free(struct pool *pool); /* ends everything, and waits */

struct pooled *pool_lend(struct pool *pool, json_t *wish, bool *warm, struct error *err);
void pool_streams(const struct pooled *p, int fds[3]);
int pool_pid(const struct pooled *p);
const char *pool_tmp(const struct pooled *p); /* its private folder; NULL: none */
void pool_back(struct pool *pool, struct pooled *p, bool fit);
void pool_tend(struct pool *pool);
int pool_wait_ms(const struct pool *pool); /* time until pool_tend() should be called again */
void pool_trim(struct pool *pool);         /* ends all idle processes */
json_t *pool_status(const struct pool *pool);

#endif
