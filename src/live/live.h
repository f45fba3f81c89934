/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.h - a small HTTP server for this machine only, with a token.
 *
 *     live_start(&config, &l, err)       listens on 127.0.0.1 and answers in a thread of its own
 *     ... live_url(l) ...                http://127.0.0.1:PORT/#TOKEN
 *     live_stop(l);                      also after errors; NULL is fine
 *
 * What it lets in:
 * 1. GET and HEAD; no body is read. With `serve` any method, and a body up to
 *    its limit, which is read only once the token was right.
 * 2. Requests whose Host, and Origin where there is one, is this server's own
 *    address: a name that someone else's DNS points here (rebinding) is refused.
 * 3. `/` for everyone: a page without data. Everything else wants the token as
 *    `Authorization: Bearer`. The page gets it from the part of its address
 *    behind #, which no browser sends; no cookie is set, because other servers
 *    on this machine would be sent it.
 * 4. Paths are names that `answer` looks up; none is ever a file's.
 */
#ifndef LIVE_LIVE_H
#define LIVE_LIVE_H

#include "base/buf.h"
#include "base/error.h"

struct live_server;

/* A request to `serve`; all of it is borrowed. */
struct live_request {
    const char *method, *path;
    struct text body;
    /* NULL: no such header */
    const char *(*header)(const struct live_request *r, const char *name);
    void *connection; /* live's own */
};

struct live_answer {
    unsigned status;
    const char *type;
    struct buf body;    /* filled by the callee, released by live */
    const char *header; /* one more header, or NULL */
    char value[72];
    /* A stream instead of the body: `next` waits for a piece and appends it to `out`; false: it has
     * ended. It watches `connection`, a socket, to notice when the client leaves. `left` is called
     * once at the end, whichever side ended it. */
    bool (*next)(void *ctx, int connection, struct buf *out);
    void (*left)(void *ctx);
    void *ctx;
};

struct live_config {
    int port; /* 0: any that is free */
    /* Called with every request that has the token, in the thread of its connection. NULL: the two
     * below answer, and only GET is accepted. */
    void (*serve)(void *ctx, const struct live_request *request, struct live_answer *answer);
    size_t body_limit;
    /* Fills `body`, a piece of HTML; false: there is no such page. Called by one thread. */
    bool (*answer)(void *ctx, const char *path, struct buf *body);
    /* The page at `/`; its script carries the nonce. */
    void (*shell)(void *ctx, const char *nonce, struct buf *body);
    void *ctx;
};

bool live_start(const struct live_config *config, struct live_server **out, struct error *err);
const char *live_url(const struct live_server *l);
void live_stop(struct live_server *l);

#endif
