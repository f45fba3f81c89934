/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - single jobs: add them to the queue and read their results.
 *
 *     queue_add(s, &order, &id, &state, err)      one job, however often the same is asked for
 *     queue_read(s, id, a, &entry, err)           its state and its result
 *
 * Invariants
 * 1. A job is identified by the hash of the whole order (queue_hash): asking again for the same
 *    returns the existing job. A failed one is tried again.
 * 2. A job has one run, which is recorded in the job by the transaction that creates it.
 */
#ifndef STORE_QUEUE_H
#define STORE_QUEUE_H

#include "store/jobs.h"

struct queue_order {
    enum job_kind kind;
    const char *path;   /* path of the task, since a worker serves a folder; "": any worker */
    json_t *flags;      /* list of arguments; may be NULL */
    json_t *payload;    /* object, by kind; may be NULL */
    struct text source; /* a kernel that belongs to it; data NULL: none */
    const char *salt;   /* what else distinguishes it: the task's text, "again"; may be NULL */
    struct job_needs needs;
    int priority;
};

struct queue_entry {
    int64_t id;
    enum job_kind kind;
    enum job_state state;
    const char *path, *run, *result, *problem, *owner;
    int tries;
    int64_t waited_ms, took_ms; /* time until it was claimed; time since then, or in total */
    int64_t worker;             /* 0: none */
};

bool queue_add(struct store *s, const struct queue_order *order, int64_t *id, enum job_state *state,
               struct error *err);
/* ERROR_USE if there is no such job. */
bool queue_read(struct store *s, int64_t id, struct arena *a, struct queue_entry *out,
                struct error *err);
/* Single jobs except compile jobs, newest first, at most `most`. */
bool queue_list(struct store *s, int64_t most, struct arena *a, struct queue_entry **out,
                size_t *count, struct error *err);
/* A waiting job fails at once; *was: it was waiting. */
bool queue_cancel(struct store *s, int64_t id, bool *was, struct error *err);

#endif
