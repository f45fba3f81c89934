/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.c - streamable HTTP on this machine, behind the token server of src/live.
 *
 * One endpoint, /mcp. A request that is answered at once gets JSON; one that becomes a job gets a
 * stream of events: progress, then its answer. Revisions with sessions use them to match a
 * cancellation to its request; a request of 2026-07-28 is self-contained, and closing its stream
 * cancels it.
 *
 * Invariants
 * 1. An exchange lives as long as its job or its connection, whichever is longer.
 * 2. Headers that repeat the body must agree with it (2026-07-28).
 */
#include "base/base64.h"
#include "base/buf.h"
#include "live/live.h"
#include "mcp/server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

enum { MAX_SESSIONS = 256, KEEP_ALIVE_MS = 10000, LOOK_MS = 500, MAX_EVENT = 64 << 20 };

struct mcp_session {
    struct mcp_peer peer;
    /* counter value of the last use; the least recently used session is dropped */
    unsigned long used;
};

struct mcp_http {
    struct mcp *mcp;
    pthread_mutex_t lock;
    struct mcp_session sessions[MAX_SESSIONS];
    unsigned long clock;
    unsigned long requests; /* numbers that name peers without a session */
};

/* Passes messages from a job's thread to a connection's. */
struct exchange {
    struct mcp_sink sink; /* first */
    struct mcp_http *http;
    pthread_mutex_t lock;
    struct buf pending;
    int signal; /* eventfd: pending or ended changed */
    bool ended, modern;
    int refs;
    char owner[65];
    json_t *id;
};

/* ---- exchanges --------------------------------------------------------------------- */

static void exchange_drop(struct exchange *x)
{
    bool last;

    pthread_mutex_lock(&x->lock);
    last = --x->refs == 0;
    pthread_mutex_unlock(&x->lock);
    if (!last)
        return;
    buf_release(&x->pending);
    json_decref(x->id);
    close(x->signal);
    pthread_mutex_destroy(&x->lock);
    xfree(x);
}

static void exchange_wake(const struct exchange *x)
{
    uint64_t one = 1;
    ssize_t ignored = write(x->signal, &one, sizeof(one));

    (void)ignored;
}

static void exchange_send(struct mcp_sink *self, json_t *message)
{
    struct exchange *x = (struct exchange *)self;
    struct arena *a = arena_new();
    const char *line = json_line(message, a);

    pthread_mutex_lock(&x->lock);
    buf_printf(&x->pending, "event: message\ndata: %s\n\n", line);
    pthread_mutex_unlock(&x->lock);
    exchange_wake(x);
    json_decref(message);
    arena_free(a);
}

static void exchange_done(struct mcp_sink *self)
{
    struct exchange *x = (struct exchange *)self;

    pthread_mutex_lock(&x->lock);
    x->ended = true;
    pthread_mutex_unlock(&x->lock);
    exchange_wake(x);
    exchange_drop(x);
}

static struct exchange *exchange_new(struct mcp_http *h, const struct mcp_job *j)
{
    struct exchange *x = xmalloc(sizeof(*x));

    x->sink = (struct mcp_sink){exchange_send, exchange_done};
    x->http = h;
    x->pending = buf_init(MAX_EVENT);
    x->signal = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    x->refs = 2;
    x->modern = j->revision == REVISION_2026_07;
    x->id = json_deep_copy(j->id); /* a copy, since the job belongs to another thread */
    snprintf(x->owner, sizeof(x->owner), "%s", j->owner);
    pthread_mutex_init(&x->lock, NULL);
    return x;
}

/* For live.h: the next piece of the stream; false: everything was sent, or the client has left. */
static bool exchange_next(void *ctx, int connection, struct buf *out)
{
    struct exchange *x = ctx;
    uint64_t count;
    bool ended;

    for (int waited = 0;; waited += LOOK_MS) {
        struct pollfd fds[2] = {{x->signal, POLLIN, 0}, {connection, POLLRDHUP, 0}};
        ssize_t ignored = read(x->signal, &count, sizeof(count));

        (void)ignored;
        pthread_mutex_lock(&x->lock);
        buf_add(out, x->pending.data, x->pending.len);
        buf_clear(&x->pending);
        ended = x->ended;
        pthread_mutex_unlock(&x->lock);
        if (out->len)
            return true;
        if (ended || atomic_load(&x->http->mcp->closing))
            return false;
        if (waited >= KEEP_ALIVE_MS) {
            buf_puts(out, ":\n\n");
            return true;
        }
        if (poll(fds, 2, LOOK_MS) > 0 && (fds[1].revents & (POLLRDHUP | POLLHUP | POLLERR)))
            return false;
    }
}

/* The connection has ended. This cancels a request of 2026-07-28, but no other. */
static void exchange_left(void *ctx)
{
    struct exchange *x = ctx;

    if (x->modern)
        job_cancel(x->http->mcp, x->owner, x->id);
    exchange_drop(x);
}

/* ---- sessions ---------------------------------------------------------------------- */

/* Copies the session's peer; false: there is no session of that name. */
static bool session_find(struct mcp_http *h, const char *name, struct mcp_peer *out)
{
    bool found = false;

    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < MAX_SESSIONS && !found; i++) {
        struct mcp_session *s = &h->sessions[i];

        if (!s->peer.name[0] || strcmp(s->peer.name, name) != 0)
            continue;
        s->used = ++h->clock;
        *out = s->peer;
        found = true;
    }
    pthread_mutex_unlock(&h->lock);
    return found;
}

static void session_add(struct mcp_http *h, struct mcp_peer *peer)
{
    struct mcp_session *at = &h->sessions[0];
    unsigned char bytes[32];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return;
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(peer->name + 2 * i, 3, "%02x", bytes[i]);
    pthread_mutex_lock(&h->lock);
    for (size_t i = 1; i < MAX_SESSIONS && at->peer.name[0]; i++)
        if (!h->sessions[i].peer.name[0] || h->sessions[i].used < at->used)
            at = &h->sessions[i];
    *at = (struct mcp_session){.peer = *peer, .used = ++h->clock};
    pthread_mutex_unlock(&h->lock);
}

static bool session_end(struct mcp_http *h, const char *name)
{
    bool found = false;

    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < MAX_SESSIONS; i++) {
        if (h->sessions[i].peer.name[0] && !strcmp(h->sessions[i].peer.name, name)) {
            h->sessions[i] = (struct mcp_session){.used = 0};
            found = true;
        }
    }
    pthread_mutex_unlock(&h->lock);
    return found;
}

/* ---- requests ---------------------------------------------------------------------- */

static void answer_text(struct live_answer *out, unsigned status, const char *text)
{
    out->status = status;
    out->type = "text/plain; charset=utf-8";
    buf_puts(&out->body, text);
}

static void answer_json(struct live_answer *out, unsigned status, json_t *message)
{
    struct arena *a = arena_new();

    out->status = status;
    out->type = "application/json";
    buf_puts(&out->body, json_line(message, a));
    json_decref(message);
    arena_free(a);
}

/* Decodes a header: clients write values that are not plain ASCII as =?base64?...?=. */
static const char *header_value(const struct live_request *r, const char *name, struct arena *a)
{
    static const char before[] = "=?base64?", behind[] = "?=";
    const char *given = r->header(r, name);
    size_t len = given ? strlen(given) : 0, edge = strlen(before) + strlen(behind);
    size_t bytes = 0;
    char *plain;

    if (!given || len < edge || strncmp(given, before, strlen(before)) != 0 ||
        strcmp(given + len - strlen(behind), behind) != 0)
        return given;
    plain = arena_alloc(a, BASE64_BYTES(len) + 1);
    return base64_decode(given + strlen(before), len - edge, plain, &bytes) ? plain : NULL;
}

static bool headers_agree(const struct live_request *r, const struct rpc_call *call,
                          struct rpc_fault *fault)
{
    struct arena *a = arena_new();
    const char *version = r->header(r, "MCP-Protocol-Version");
    const char *method = header_value(r, "Mcp-Method", a), *name = header_value(r, "Mcp-Name", a);
    const char *said =
        json_string_or(call->params, "name", json_string_or(call->params, "uri", NULL));
    bool named = call->method &&
                 (!strcmp(call->method, "tools/call") || !strcmp(call->method, "resources/read") ||
                  !strcmp(call->method, "prompts/get"));
    bool ok = true;

    if (!version || strcmp(version, json_string_or(call->meta, RPC_META_VERSION, "")) != 0)
        ok = rpc_fail(fault, RPC_HEADER_MISMATCH, "MCP-Protocol-Version differs from _meta");
    else if (!method || !call->method || strcmp(method, call->method) != 0)
        ok = rpc_fail(fault, RPC_HEADER_MISMATCH, "Mcp-Method differs from the method");
    else if (named && said && (!name || strcmp(name, said) != 0))
        ok = rpc_fail(fault, RPC_HEADER_MISMATCH, "Mcp-Name differs from params");
    arena_free(a);
    return ok;
}

static unsigned status_of(int code, enum revision revision)
{
    if (code == RPC_NO_METHOD)
        return revision == REVISION_2026_07 ? 404 : 200;
    if (code == RPC_PARSE_ERROR || code == RPC_HEADER_MISMATCH || code == RPC_UNSUPPORTED_VERSION)
        return 400;
    if (code == RPC_INVALID_REQUEST || code == RPC_INVALID_PARAMS)
        return revision == REVISION_2026_07 || revision == REVISION_NONE ? 400 : 200;
    return 200;
}

/* Finds the sender: a session, or a self-contained request. False: an answer was already sent. */
static bool find_peer(struct mcp_http *h, const struct live_request *r, struct mcp_peer *peer,
                      struct live_answer *out)
{
    const char *session = r->header(r, "Mcp-Session-Id");
    const char *version = r->header(r, "MCP-Protocol-Version");

    if (session && session_find(h, session, peer))
        return true;
    if (session) {
        answer_text(out, 404, "there is no such session: initialize again\n");
        return false;
    }
    pthread_mutex_lock(&h->lock);
    snprintf(peer->name, sizeof(peer->name), "request %lu", ++h->requests);
    pthread_mutex_unlock(&h->lock);
    peer->revision = revision_named(version);
    if (peer->revision == REVISION_2026_07)
        peer->revision = REVISION_NONE; /* such a request names its revision itself */
    return true;
}

static void take_message(struct mcp_http *h, const struct live_request *r, struct live_answer *out)
{
    struct mcp_peer peer = {.name = ""};
    struct mcp_outcome outcome;
    struct rpc_fault fault;
    struct rpc_call call;

    if (!find_peer(h, r, &peer, out))
        return;
    rpc_read(r->body, &call, &fault);
    if (!fault.code && call.revision)
        headers_agree(r, &call, &fault);
    mcp_take(h->mcp, &peer, &call, &fault, &outcome);
    if (outcome.initialized) {
        session_add(h, &peer);
        out->header = "Mcp-Session-Id";
        snprintf(out->value, sizeof(out->value), "%s", peer.name);
    }
    if (outcome.answer) {
        answer_json(out, status_of(outcome.code, call.revision ? call.revision : peer.revision),
                    outcome.answer);
        if (outcome.job)
            job_start(outcome.job, NULL); /* a task: the client polls it */
    } else if (outcome.job) {
        struct exchange *x = exchange_new(h, outcome.job);

        out->status = 200;
        out->type = "text/event-stream";
        out->next = exchange_next;
        out->left = exchange_left;
        out->ctx = x;
        job_start(outcome.job, &x->sink);
    } else {
        answer_text(out, outcome.code ? 400 : 202, "");
    }
    json_decref(fault.data);
    rpc_call_release(&call);
}

static void serve(void *ctx, const struct live_request *r, struct live_answer *out)
{
    struct mcp_http *h = ctx;

    if (strcmp(r->path, "/mcp") != 0) {
        answer_text(out, 404, "the endpoint is /mcp\n");
    } else if (!strcmp(r->method, "POST")) {
        take_message(h, r, out);
    } else if (!strcmp(r->method, "DELETE")) {
        const char *name = r->header(r, "Mcp-Session-Id");
        bool found = name && session_end(h, name);

        answer_text(out, found ? 200 : 404, "");
    } else {
        answer_text(out, 405, "this endpoint takes POST\n");
    }
}

bool mcp_serve_http(const struct mcp_config *config, int port,
                    void (*ready)(void *ctx, const char *url, const char *token), void *ctx,
                    struct error *err)
{
    struct mcp_http *h = xmalloc(sizeof(*h));
    struct live_config live = {.port = port, .serve = serve, .ctx = h, .body_limit = RPC_MAX_BYTES};
    struct live_server *server = NULL;
    struct arena *a = arena_new();
    bool ok;

    h->mcp = mcp_new(config);
    pthread_mutex_init(&h->lock, NULL);
    ok = live_start(&live, &server, err);
    if (ok) {
        const char *url = live_url(server), *token = strchr(url, '#') + 1;

        ready(ctx, arena_printf(a, "%.*smcp", (int)(token - 1 - url), url), token);
    }
    while (ok && !(config->interrupts && *config->interrupts))
        (void)poll(NULL, 0, LOOK_MS);
    atomic_store(&h->mcp->closing, true); /* ends streams, so that the server can end */
    live_stop(server);
    mcp_free(h->mcp);
    pthread_mutex_destroy(&h->lock);
    arena_free(a);
    xfree(h);
    return ok;
}
