/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks.c - tasks of revision 2025-11-25: a tool call that is answered at once and polled later.
 *
 * A task is a job that stays in the list after its end, for its ttl. Every client of this server
 * may see all tasks: there is only one user.
 */
#include "base/clock.h"
#include "mcp/server.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { TTL_MS = 3600 * 1000, TTL_MAX_MS = 24 * 3600 * 1000, POLL_MS = 500 };

#define RELATED "io.modelcontextprotocol/related-task"

static const char *task_state(const struct mcp_job *j)
{
    if (j->taken_back)
        return "cancelled";
    if (!j->ended)
        return "working";
    if (j->fault.code || json_is_true(json_object_get(j->result, "isError")))
        return "failed";
    return "completed";
}

static json_t *task_json(const struct mcp_job *j) /* the lock is held */
{
    char created[25], updated[25];
    json_t *o;

    clock_stamp(j->created_ms, created);
    clock_stamp(j->updated_ms, updated);
    o = json_pack("{s:s, s:s, s:s, s:s, s:I, s:i}", "taskId", j->task_id, "status", task_state(j),
                  "createdAt", created, "lastUpdatedAt", updated, "ttl", (json_int_t)j->ttl_ms,
                  "pollInterval", POLL_MS);
    if (j->status[0])
        json_object_set_new(o, "statusMessage", json_from_string(j->status));
    return o;
}

json_t *task_create(struct mcp_job *j, const json_t *wish)
{
    int64_t ttl = json_int_or(wish, "ttl", TTL_MS);
    unsigned char bytes[16] = {0};
    json_t *o;

    if (getrandom(bytes, sizeof(bytes), 0) < 0)
        memcpy(bytes, &j->created_ms, sizeof(j->created_ms)); /* unique within this server */
    pthread_mutex_lock(&j->mcp->lock);
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(j->task_id + 2 * i, 3, "%02x", bytes[i]);
    j->ttl_ms = ttl < 1000 ? 1000 : ttl > TTL_MAX_MS ? TTL_MAX_MS : ttl;
    json_decref(j->id); /* the request has been answered, so its id may be reused */
    j->id = NULL;
    o = json_pack("{s:o}", "task", task_json(j));
    pthread_mutex_unlock(&j->mcp->lock);
    return o;
}

static struct mcp_job *find_task(struct mcp *m, const json_t *params, struct rpc_fault *fault)
{
    const char *id = json_string_or(params, "taskId", "");

    for (struct mcp_job *j = m->jobs; j && *id; j = j->next)
        if (!strcmp(j->task_id, id))
            return j;
    rpc_fail(fault, RPC_INVALID_PARAMS, "there is no such task, or it has expired");
    return NULL;
}

/* tasks/result: waits for another job's end. */
static bool result_work(struct mcp_job *j, struct rpc_fault *fault)
{
    struct mcp *m = j->mcp;
    struct mcp_job *t;
    json_t *meta;

    pthread_mutex_lock(&m->lock);
    while ((t = find_task(m, j->params, fault)) != NULL && !t->ended && !t->taken_back &&
           !atomic_load(&j->cancel))
        pthread_cond_wait(&m->changed, &m->lock);
    if (t && t->taken_back) {
        rpc_fail(fault, RPC_INVALID_PARAMS, "the task was cancelled");
    } else if (t && t->fault.code) {
        rpc_fail(fault, t->fault.code, "%s", t->fault.text);
    } else if (t && t->ended) {
        fault->code = 0;
        j->result = json_deep_copy(t->result);
        meta = json_pack("{s:{s:s}}", RELATED, "taskId", t->task_id);
        json_object_set_new(j->result, "_meta", meta);
    } else if (!fault->code) {
        rpc_fail(fault, RPC_INTERNAL, "the wait was cancelled");
    }
    pthread_mutex_unlock(&m->lock);
    return fault->code == 0;
}

static json_t *list_tasks(struct mcp *m)
{
    json_t *list = json_array();

    pthread_mutex_lock(&m->lock);
    for (const struct mcp_job *j = m->jobs; j; j = j->next)
        if (j->task_id[0])
            json_array_append_new(list, task_json(j));
    pthread_mutex_unlock(&m->lock);
    return json_pack("{s:o}", "tasks", list);
}

/* tasks/get and tasks/cancel. */
static json_t *get_task(struct mcp *m, const json_t *params, bool cancel, struct rpc_fault *fault)
{
    json_t *o = NULL;
    struct mcp_job *j;

    pthread_mutex_lock(&m->lock);
    j = find_task(m, params, fault);
    if (j && cancel && (j->ended || j->taken_back)) {
        rpc_fail(fault, RPC_INVALID_PARAMS, "the task is %s already", task_state(j));
    } else if (j) {
        if (cancel) {
            j->taken_back = true;
            j->updated_ms = clock_unix_ms();
            snprintf(j->status, sizeof(j->status), "cancelled by request");
            atomic_store(&j->cancel, true);
            pthread_cond_broadcast(&m->changed);
        }
        o = task_json(j);
    }
    pthread_mutex_unlock(&m->lock);
    return o;
}

void tasks_take(struct mcp *m, const struct mcp_peer *peer, struct rpc_call *call,
                struct rpc_fault *fault, struct mcp_outcome *out)
{
    const char *what = call->method + strlen("tasks/");
    json_t *result = NULL;

    if (!strcmp(what, "list"))
        result = list_tasks(m);
    else if (!strcmp(what, "get") || !strcmp(what, "cancel"))
        result = get_task(m, call->params, !strcmp(what, "cancel"), fault);
    else if (!strcmp(what, "result"))
        out->job = job_new(m, peer, call, result_work, fault);
    else
        rpc_fail(fault, RPC_NO_METHOD, "there is no method %.80s", call->method);
    if (out->job)
        out->kind = OUTCOME_JOB;
    else if (result)
        *out = (struct mcp_outcome){.kind = OUTCOME_ANSWER,
                                    .answer = rpc_answer(call->id, REVISION_2025_11, result)};
}
