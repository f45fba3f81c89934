/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - long work, each job in a thread of its own; see server.h. */
#include "base/clock.h"
#include "mcp/server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void job_release(struct mcp_job *j) /* the lock is held */
{
    if (--j->refs > 0)
        return;
    json_decref(j->id);
    json_decref(j->params);
    json_decref(j->token);
    json_decref(j->result);
    json_decref(j->fault.data);
    arena_free(j->a);
    xfree(j);
}

static void unlink_job(struct mcp *m, struct mcp_job *j) /* the lock is held */
{
    for (struct mcp_job **at = &m->jobs; *at; at = &(*at)->next) {
        if (*at == j) {
            *at = j->next;
            job_release(j);
            return;
        }
    }
}

void jobs_clear(struct mcp *m)
{
    while (m->jobs)
        unlink_job(m, m->jobs);
}

static bool outlived(const struct mcp_job *j)
{
    return j->task_id[0] && j->ended && clock_unix_ms() - j->created_ms > j->ttl_ms;
}

/* Makes room: drops expired tasks, then the oldest that have ended. */
static int count_jobs(struct mcp *m) /* the lock is held */
{
    struct mcp_job *next, *oldest = NULL;
    int running = 0, kept = 0;

    for (struct mcp_job *j = m->jobs; j; j = next) {
        next = j->next;
        if (outlived(j)) {
            unlink_job(m, j);
            continue;
        }
        running += !j->ended;
        kept += j->ended;
        if (j->ended && (!oldest || j->created_ms <= oldest->created_ms))
            oldest = j;
    }
    if (kept >= MCP_MAX_TASKS)
        unlink_job(m, oldest);
    return running;
}

static bool id_in_use(const struct mcp *m, const char *owner, const json_t *id)
{
    for (const struct mcp_job *j = m->jobs; j; j = j->next)
        if (j->id && !j->ended && !strcmp(j->owner, owner) && json_equal(j->id, id))
            return true;
    return false;
}

struct mcp_job *job_new(struct mcp *m, const struct mcp_peer *peer, const struct rpc_call *call,
                        bool (*work)(struct mcp_job *, struct rpc_fault *), struct rpc_fault *fault)
{
    struct mcp_job *j = NULL;

    pthread_mutex_lock(&m->lock);
    if (call->id && id_in_use(m, peer->name, call->id)) {
        rpc_fail(fault, RPC_INVALID_REQUEST, "a request with this id is under way");
    } else if (count_jobs(m) >= MCP_MAX_JOBS || atomic_load(&m->closing)) {
        rpc_fail(fault, RPC_INTERNAL, "busy: %d requests are running; try again later",
                 MCP_MAX_JOBS);
    } else {
        j = xmalloc(sizeof(*j));
        j->mcp = m;
        /* Copies, because jansson values must not be shared by threads that free them. */
        j->id = json_deep_copy(call->id);
        j->params = call->params ? json_deep_copy(call->params) : json_object();
        j->token = json_deep_copy(json_object_get(call->meta, "progressToken"));
        if (!json_is_string(j->token) && !json_is_integer(j->token)) {
            json_decref(j->token);
            j->token = NULL;
        }
        j->revision = call->revision ? call->revision : peer->revision;
        j->work = work;
        j->a = arena_new();
        j->refs = 2; /* one for the list, one for the thread */
        j->created_ms = j->updated_ms = clock_unix_ms();
        snprintf(j->owner, sizeof(j->owner), "%s", peer->name);
        j->next = m->jobs;
        m->jobs = j;
        m->threads++;
    }
    pthread_mutex_unlock(&m->lock);
    return j;
}

struct mcp_job *job_background(struct mcp_job *by,
                               bool (*work)(struct mcp_job *, struct rpc_fault *),
                               struct rpc_fault *fault)
{
    struct rpc_call call = {.params = by->params, .revision = by->revision};
    struct mcp_job *j = job_new(by->mcp, &(struct mcp_peer){.name = ""}, &call, work, fault);

    if (!j)
        return NULL;
    j->refs = 3;
    job_start(j, NULL);
    return j;
}

void job_drop(struct mcp_job *j)
{
    struct mcp *m = j->mcp;

    pthread_mutex_lock(&m->lock);
    job_release(j);
    pthread_mutex_unlock(&m->lock);
}

/* Sends the only answer, unless the job was cancelled. */
static void job_answer(struct mcp_job *j, bool ok, struct rpc_fault *fault)
{
    struct mcp *m = j->mcp;
    json_t *message = NULL;

    pthread_mutex_lock(&m->lock);
    j->ended = true;
    j->updated_ms = clock_unix_ms();
    if (!ok) {
        j->fault = *fault;
        json_decref(j->result);
        j->result = NULL;
    }
    if (j->id && j->sink && !j->taken_back)
        message =
            ok ? rpc_answer(j->id, j->revision, json_incref(j->result)) : rpc_error(j->id, fault);
    if (message && !ok)
        j->fault.data = NULL;
    pthread_mutex_unlock(&m->lock);
    if (message)
        j->sink->send(j->sink, message);
}

static void *job_thread(void *arg)
{
    struct mcp_job *j = arg;
    struct mcp *m = j->mcp;
    struct rpc_fault fault = {0};
    bool ok = j->work(j, &fault);

    job_answer(j, ok, &fault);
    if (j->sink && j->sink->done)
        j->sink->done(j->sink);
    pthread_mutex_lock(&m->lock);
    if (!j->task_id[0])
        unlink_job(m, j);
    job_release(j);
    m->threads--;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

void job_start(struct mcp_job *j, struct mcp_sink *sink)
{
    pthread_attr_t attr;
    pthread_t thread;
    int problem;

    j->sink = sink;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    problem = pthread_create(&thread, &attr, job_thread, j);
    pthread_attr_destroy(&attr);
    if (problem) {
        struct rpc_fault fault = {0};

        rpc_fail(&fault, RPC_INTERNAL, "no thread for this request: %s", strerror(problem));
        job_answer(j, false, &fault);
        if (sink && sink->done)
            sink->done(sink);
        pthread_mutex_lock(&j->mcp->lock);
        j->mcp->threads--;
        if (!j->task_id[0])
            unlink_job(j->mcp, j);
        job_release(j);
        pthread_mutex_unlock(&j->mcp->lock);
    }
}

void job_progress(struct mcp_job *j, const char *text)
{
    struct mcp *m = j->mcp;
    json_t *message = NULL;

    pthread_mutex_lock(&m->lock);
    j->steps++;
    j->updated_ms = clock_unix_ms();
    snprintf(j->status, sizeof(j->status), "%s", text);
    if (j->token && j->sink && !j->taken_back)
        message = rpc_notice("notifications/progress",
                             json_pack("{s:O, s:i, s:o}", "progressToken", j->token, "progress",
                                       j->steps, "message", json_from_string(j->status)));
    pthread_mutex_unlock(&m->lock);
    if (message)
        j->sink->send(j->sink, message);
}

void job_cancel(struct mcp *m, const char *owner, const json_t *id)
{
    pthread_mutex_lock(&m->lock);
    for (struct mcp_job *j = m->jobs; j; j = j->next) {
        if (j->id && !j->ended && !strcmp(j->owner, owner) && json_equal(j->id, id)) {
            j->taken_back = true;
            atomic_store(&j->cancel, true);
        }
    }
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

bool job_stopped(void *job)
{
    return atomic_load(&((struct mcp_job *)job)->cancel);
}

bool job_enter(struct mcp_job *j)
{
    struct mcp *m = j->mcp;
    bool entered;

    pthread_mutex_lock(&m->lock);
    while (m->slots == 0 && !atomic_load(&j->cancel))
        pthread_cond_wait(&m->changed, &m->lock);
    entered = !atomic_load(&j->cancel);
    if (entered)
        m->slots--;
    pthread_mutex_unlock(&m->lock);
    return entered;
}

void job_leave(struct mcp_job *j)
{
    pthread_mutex_lock(&j->mcp->lock);
    j->mcp->slots++;
    pthread_cond_broadcast(&j->mcp->changed);
    pthread_mutex_unlock(&j->mcp->lock);
}
