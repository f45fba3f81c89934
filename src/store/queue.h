/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - jobs by themselves: put into the queue one at a time, and what came of each.
 *
 *     queue_add(s, &order, &id, &state, err)      once, however often the same is asked
 *     queue_read(s, id, a, &entry, err)           its state and its result
 *
 * Invariants
 * 1. A job is known by the hash of all that is asked (queue_hash): who asks for the same again gets
 *    the job that is there. One that failed is tried again.
 * 2. A job has one run. The run is named by the job in the transaction that creates it.
 */
#ifndef STORE_QUEUE_H
#define STORE_QUEUE_H

#include "store/jobs.h"

struct queue_order {
    enum job_kind kind;
    const char *path;   /* of the task: a worker serves a folder; "": any worker */
    json_t *flags;      /* list of words; may be NULL */
    json_t *payload;    /* object, by kind; may be NULL */
    struct text source; /* a kernel that goes with it; data NULL: none */
    const char *salt;   /* what else tells it from others: the task's text, "again"; may be NULL */
    struct job_needs needs;
    int priority;
};

struct queue_entry {
    int64_t id;
    enum job_kind kind;
    enum job_state state;
    const char *path, *run, *result, *problem, *owner;
    int tries;
    int64_t waited_ms, took_ms; /* until it was claimed; since then, or in all */
    int64_t worker;             /* 0: none */
};

bool queue_add(struct store *s, const struct queue_order *order, int64_t *id, enum job_state *state,
               struct error *err);
/* ERROR_USE where there is no such job. */
bool queue_read(struct store *s, int64_t id, struct arena *a, struct queue_entry *out,
                struct error *err);
/* Jobs by themselves without those that compile, newest first, so many at most. */
bool queue_list(struct store *s, int64_t most, struct arena *a, struct queue_entry **out,
                size_t *count, struct error *err);
/* One that waits fails at once; *was: it did. */
bool queue_cancel(struct store *s, int64_t id, bool *was, struct error *err);

#endif
