/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - the warm server's processes: lent, waiting for the next borrower, or on their way out.
 *
 *     p = pool_lend(pool, wish, &warm, err);       NULL: it cannot be started
 *     pool_streams(p, fds), pool_pid(p)            for the borrower
 *     pool_back(pool, p, fit);                     the loan is over
 *     pool_tend(pool);                             now and then: reaps, lets go of what is too much
 *
 * A wish is a "lend" request (wire.h), borrowed. The pool knows nothing of
 * what its processes do: two wishes with the same key are for the same
 * program, arguments and environment, and a tag says what a process has
 * already been asked to learn.
 *
 * Invariants
 * 1. A process that waits is quiet: nothing of an earlier borrower is left in its streams.
 * 2. A process that came back unfit, or that was lent `once`, is ended.
 * 3. A spare one in place of what was lent `once` is started when nothing of
 *    that sort is lent: its start would disturb a measurement.
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
    int idle_ms;           /* a process that waited this long is ended */
    uint64_t memory_bytes; /* resident, of all that wait */
};

struct pool *pool_new(const struct pool_limits *limits);
void pool_free(struct pool *pool); /* ends everything, and waits */

struct pooled *pool_lend(struct pool *pool, json_t *wish, bool *warm, struct error *err);
void pool_streams(const struct pooled *p, int fds[3]);
int pool_pid(const struct pooled *p);
const char *pool_tmp(const struct pooled *p); /* its private folder; NULL: none */
void pool_back(struct pool *pool, struct pooled *p, bool fit);
void pool_tend(struct pool *pool);
int pool_wait_ms(const struct pool *pool); /* until it wants to be tended again */
void pool_trim(struct pool *pool);         /* ends all that wait */
json_t *pool_status(const struct pool *pool);

#endif
