/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - dispatch messages to the methods of the protocol. */
#include "mcp/server.h"

#include "base/cpus.h"

#include <string.h>

static const char instructions[] =
    "Verified CUDA kernels (CuTe or CUDA C++) for PyTorch modules. Begin with describe_task. Write "
    "a kernel to the ABI in cutegen://guide/abi, or take one from start_kernel. evaluate_kernel "
    "judges it against PyTorch and says what is wrong and how to fix it; read the evidence "
    "resource only if that is not enough. Times with \"modelled\": true come from a model of a "
    "GPU, not from one.";

struct mcp *mcp_new(const struct mcp_config *config)
{
    struct mcp *m = xmalloc(sizeof(*m));
    int cores = cpus_usable();

    m->config = *config;
    m->slots = cores < 2 ? 2 : cores > 16 ? 16 : cores;
    pthread_mutex_init(&m->lock, NULL);
    pthread_mutex_init(&m->preparing, NULL);
    pthread_cond_init(&m->changed, NULL);
    return m;
}

void mcp_free(struct mcp *m)
{
    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    atomic_store(&m->closing, true);
    for (struct mcp_job *j = m->jobs; j; j = j->next) {
        j->taken_back = true;
        atomic_store(&j->cancel, true);
    }
    pthread_cond_broadcast(&m->changed);
    while (m->threads > 0)
        pthread_cond_wait(&m->changed, &m->lock);
    jobs_clear(m); /* tasks that had ended */
    pthread_mutex_unlock(&m->lock);
    pthread_mutex_destroy(&m->lock);
    pthread_mutex_destroy(&m->preparing);
    pthread_cond_destroy(&m->changed);
    xfree(m);
}

/* ---- initialize ------------------------------------------------------------------ */

static json_t *capabilities(enum revision revision)
{
    json_t *o = json_pack("{s:{}, s:{}, s:{}}", "tools", "resources", "prompts");

    if (revision == REVISION_2025_11)
        json_object_set_new(
            o, "tasks",
            json_pack("{s:{}, s:{}, s:{s:{s:{}}}}", "list", "cancel", "requests", "tools", "call"));
    return o;
}

static json_t *initialize(struct mcp_peer *peer, const json_t *params, struct rpc_fault *fault)
{
    const char *asked = json_string_or(params, "protocolVersion", "");

    if (!*asked) {
        rpc_fail(fault, RPC_INVALID_PARAMS, "initialize without a protocolVersion");
        return NULL;
    }
    peer->revision = revision_named(asked);
    if (peer->revision == REVISION_NONE || peer->revision == REVISION_2026_07)
        peer->revision = REVISION_2025_11; /* the newest revision that uses initialize */
    return json_pack("{s:s, s:o, s:{s:s, s:s, s:s}, s:s}", "protocolVersion",
                     revision_names[peer->revision], "capabilities", capabilities(peer->revision),
                     "serverInfo", "name", "cutegen", "title", "cutegen: verified kernels",
                     "version", CUTEGEN_VERSION, "instructions", instructions);
}

static json_t *cacheable(json_t *result, enum revision revision, int ttl_ms)
{
    if (revision == REVISION_2026_07) {
        json_object_set_new(result, "ttlMs", json_integer(ttl_ms));
        json_object_set_new(result, "cacheScope", json_string("private"));
    }
    return result;
}

static json_t *discover(void)
{
    return cacheable(json_pack("{s:o, s:o, s:s}", "supportedVersions", revision_list(),
                               "capabilities", capabilities(REVISION_2026_07), "instructions",
                               instructions),
                     REVISION_2026_07, 3600 * 1000);
}

/* ---- subscriptions ------------------------------------------------------------ */

/* Our lists never change, so no subscription is confirmed; the stream stays open as required. */
static bool listen_work(struct mcp_job *j, struct rpc_fault *fault)
{
    struct mcp *m = j->mcp;

    if (j->sink)
        j->sink->send(j->sink, rpc_notice("notifications/subscriptions/acknowledged",
                                          json_pack("{s:{s:O}, s:{}}", "_meta",
                                                    "io.modelcontextprotocol/subscriptionId", j->id,
                                                    "notifications")));
    pthread_mutex_lock(&m->lock);
    while (!atomic_load(&j->cancel))
        pthread_cond_wait(&m->changed, &m->lock);
    pthread_mutex_unlock(&m->lock);
    return rpc_fail(fault, RPC_INTERNAL, "the subscription has ended");
}

/* ---- the methods --------------------------------------------------------------- */

/* Methods that are answered at once; NULL: another method, or *fault is set. */
static json_t *quick_method(const struct rpc_call *call, enum revision revision)
{
    const char *method = call->method;

    if (!strcmp(method, "server/discover") && revision == REVISION_2026_07)
        return discover();
    if (!strcmp(method, "ping") && revision != REVISION_2026_07)
        return json_object();
    if (!strcmp(method, "tools/list"))
        return cacheable(tools_list(revision), revision, 3600 * 1000);
    if (!strcmp(method, "resources/templates/list"))
        return cacheable(resource_templates(), revision, 3600 * 1000);
    if (!strcmp(method, "prompts/list"))
        return cacheable(prompts_list(), revision, 3600 * 1000);
    return NULL;
}

static void call_tool(struct mcp *m, const struct mcp_peer *peer, struct rpc_call *call,
                      enum revision revision, struct rpc_fault *fault, struct mcp_outcome *out)
{
    const char *name = json_string_or(call->params, "name", "");
    const json_t *task = json_object_get(call->params, "task");
    bool long_work = false;

    if (!tool_known(name, &long_work)) {
        rpc_fail(fault, RPC_INVALID_PARAMS, "there is no tool '%.80s'; tools/list has them", name);
        return;
    }
    out->job = job_new(m, peer, call, tool_work, fault);
    if (!out->job)
        return;
    out->kind = OUTCOME_JOB;
    if (task && revision == REVISION_2025_11 && long_work)
        out->answer = rpc_answer(call->id, revision, task_create(out->job, task));
}

static void take_method(struct mcp *m, struct mcp_peer *peer, struct rpc_call *call,
                        enum revision revision, struct rpc_fault *fault, struct mcp_outcome *out)
{
    static const struct {
        const char *name;
        bool (*work)(struct mcp_job *, struct rpc_fault *);
        bool modern; /* only of 2026-07-28 */
    } slow[] = {{"resources/list", resources_list_work, false},
                {"resources/read", resource_read_work, false},
                {"prompts/get", prompt_work, false},
                {"subscriptions/listen", listen_work, true}};
    json_t *result = quick_method(call, revision);

    if (result) {
        *out = (struct mcp_outcome){.kind = OUTCOME_ANSWER,
                                    .answer = rpc_answer(call->id, revision, result)};
        return;
    }
    if (!strcmp(call->method, "tools/call")) {
        call_tool(m, peer, call, revision, fault, out);
        return;
    }
    if (!strncmp(call->method, "tasks/", 6) && revision == REVISION_2025_11) {
        tasks_take(m, peer, call, fault, out);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(slow); i++) {
        if (strcmp(slow[i].name, call->method) != 0 ||
            (slow[i].modern && revision != REVISION_2026_07))
            continue;
        out->job = job_new(m, peer, call, slow[i].work, fault);
        out->kind = out->job ? OUTCOME_JOB : OUTCOME_NOTHING;
        return;
    }
    rpc_fail(fault, RPC_NO_METHOD, "there is no method %.80s", call->method);
}

static void take_notice(struct mcp *m, const struct mcp_peer *peer, const struct rpc_call *call)
{
    json_t *id = json_object_get(call->params, "requestId");

    if (!strcmp(call->method, "notifications/cancelled") && id)
        job_cancel(m, peer->name, id);
}

static void take_request(struct mcp *m, struct mcp_peer *peer, struct rpc_call *call,
                         struct rpc_fault *fault, struct mcp_outcome *out)
{
    enum revision revision = call->revision ? call->revision : peer->revision;

    if (!strcmp(call->method, "initialize") && !call->revision) {
        json_t *result = initialize(peer, call->params, fault);

        if (result)
            *out = (struct mcp_outcome){.kind = OUTCOME_ANSWER,
                                        .answer = rpc_answer(call->id, peer->revision, result),
                                        .initialized = true};
    } else if (revision != REVISION_NONE || !strcmp(call->method, "ping")) {
        take_method(m, peer, call, revision, fault, out);
    } else {
        rpc_fail(fault, RPC_INVALID_PARAMS,
                 "say which revision: params._meta with " RPC_META_VERSION
                 " (2026-07-28), or initialize first (2025-11-25, 2025-06-18)");
    }
}

void mcp_take(struct mcp *m, struct mcp_peer *peer, struct rpc_call *call, struct rpc_fault *fault,
              struct mcp_outcome *out)
{
    *out = (struct mcp_outcome){.kind = OUTCOME_NOTHING};
    if (!fault->code && !call->method)
        return; /* a response, although we send no requests */
    if (!fault->code && !call->id) {
        take_notice(m, peer, call);
        return;
    }
    if (!fault->code)
        take_request(m, peer, call, fault, out);
    out->code = fault->code;
    if (fault->code && (call->id || !call->method)) { /* a bad notification gets no answer */
        out->kind = OUTCOME_ANSWER;
        out->answer = rpc_error(call->id, fault);
    }
}
