/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h - the server behind both transports, and its jobs. Private to src/mcp.
 *
 *     mcp_new() ... mcp_take(m, &from, line, &outcome) per message ... mcp_free()
 *
 * Invariants
 * 1. mcp_take() never waits: anything that may take longer than reading memory is a job, which
 *    job_start() runs in a thread of its own.
 * 2. A job ends with exactly one answer to its sink, or with none when it was
 *    cancelled; nothing is sent for it afterwards.
 * 3. At most MCP_MAX_JOBS have not ended; as many of them judge at a time as there are cores, the
 *    others wait for their turn.
 * 4. Fields of a job below `lock` are read and written with mcp->lock held.
 */
#ifndef MCP_SERVER_H
#define MCP_SERVER_H

#include "mcp/mcp.h"
#include "mcp/rpc.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MCP_MAX_JOBS = 64, MCP_MAX_TASKS = 64 };

struct mcp;

/* Receives messages to a client. Both functions may be called from any thread. */
struct mcp_sink {
    void (*send)(struct mcp_sink *self, json_t *message); /* takes the reference */
    /* called when the job that used it has ended; may be NULL */
    void (*done)(struct mcp_sink *self);
};

/* A sender: the process on stdin, or a session or a single request over HTTP. */
struct mcp_peer {
    char name[65];          /* request ids are unique within it */
    enum revision revision; /* agreed in initialize; REVISION_NONE: not yet */
};

struct mcp_job {
    struct mcp *mcp;
    struct mcp_job *next;
    struct mcp_sink *sink; /* NULL: no listener (a task) */
    char owner[65];
    json_t *id, *params, *token; /* the request's; id is NULL once the job is a task */
    enum revision revision;
    bool (*work)(struct mcp_job *j, struct rpc_fault *fault); /* fills result */
    struct arena *a;
    json_t *result;
    atomic_bool cancel;
    char task_id[33]; /* "": not a task */
    int64_t ttl_ms, created_ms;
    /* lock */
    bool ended, taken_back; /* taken_back: cancelled, its result is discarded */
    int refs, steps;
    int64_t updated_ms;
    char status[256];
    char run[128]; /* the run that it drives, once known; "": none */
    struct rpc_fault fault;
};

struct mcp {
    struct mcp_config config;
    pthread_mutex_t lock, preparing;
    pthread_cond_t changed;
    struct mcp_job *jobs; /* running jobs, and finished tasks that are kept */
    int threads, slots;
    atomic_bool closing;
};

enum outcome_kind { OUTCOME_NOTHING, OUTCOME_ANSWER, OUTCOME_JOB };
struct mcp_outcome {
    enum outcome_kind kind;
    json_t *answer; /* a whole message, owned by the caller */
    int code;       /* error code; 0: a result */
    struct mcp_job *job;
    bool initialized; /* it was `initialize`, and peer->revision is set */
};

struct mcp *mcp_new(const struct mcp_config *config);
/* Cancels all running jobs and waits for them. */
void mcp_free(struct mcp *m);
/* Handles a message; the transport's own checks may already have set *fault. */
void mcp_take(struct mcp *m, struct mcp_peer *peer, struct rpc_call *call, struct rpc_fault *fault,
              struct mcp_outcome *out);

/* ---- jobs (jobs.c) --------------------------------------------------------- */

struct mcp_job *job_new(struct mcp *m, const struct mcp_peer *peer, const struct rpc_call *call,
                        bool (*work)(struct mcp_job *, struct rpc_fault *),
                        struct rpc_fault *fault);
/* The job belongs to its thread from here on. */
void job_start(struct mcp_job *j, struct mcp_sink *sink);
void job_progress(struct mcp_job *j, const char *text);
void job_cancel(struct mcp *m, const char *owner, const json_t *id);
/* Waits for a turn to judge; false: cancelled. Given back by job_leave(). */
bool job_enter(struct mcp_job *j);
void job_leave(struct mcp_job *j);
/* Starts a job that no request waits for, on behalf of `by`, which holds it until job_drop(). */
struct mcp_job *job_background(struct mcp_job *by,
                               bool (*work)(struct mcp_job *, struct rpc_fault *),
                               struct rpc_fault *fault);
void job_drop(struct mcp_job *j);
void jobs_clear(struct mcp *m); /* of those that have ended; the lock is held */
/* For proc_spec.stop. */
bool job_stopped(void *job);

/* ---- tasks of 2025-11-25 (tasks.c) ------------------------------------------ */

/* Makes the job a task and the answer that says so. */
json_t *task_create(struct mcp_job *j, const json_t *wish);
void tasks_take(struct mcp *m, const struct mcp_peer *peer, struct rpc_call *call,
                struct rpc_fault *fault, struct mcp_outcome *out);

/* ---- resources and prompts --------------------------------------------------- */

json_t *tools_list(enum revision revision);
bool tool_known(const char *name, bool *long_work);
bool tool_work(struct mcp_job *j, struct rpc_fault *fault);
json_t *resource_templates(void);
bool resources_list_work(struct mcp_job *j, struct rpc_fault *fault);
bool resource_read_work(struct mcp_job *j, struct rpc_fault *fault);
json_t *prompts_list(void);
bool prompt_work(struct mcp_job *j, struct rpc_fault *fault);

#endif
