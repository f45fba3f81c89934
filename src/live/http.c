/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.c - the server of live.h, over libmicrohttpd.
 *
 * Hides the library. Every refusal is one line of text; no answer ever repeats part of a request.
 */
#include "base/hash.h"
#include "base/mem.h"
#include "live/live.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

enum {
    PAGE_LIMIT = 64 << 20,
    SECRET_BYTES = 32,
    CONNECTIONS = 32,
    TIMEOUT_S = 30,
    REQUEST_BYTES = 32 << 10,
    SERVED_CONNECTIONS = 128, /* for several clients with several requests each */
    PIECE = 64 << 10,
    TOO_LARGE = 413, /* its name differs between versions of the library */
};

struct live_server {
    struct live_config config;
    struct MHD_Daemon *daemon;
    struct arena *a;
    char token[2 * SECRET_BYTES + 1], nonce[2 * SECRET_BYTES + 1];
    atomic_bool ready;    /* `hosts` is set; requests may arrive earlier */
    const char *hosts[2]; /* what a request's Host may be */
    const char *url, *policy;
};

static bool secret(char out[2 * SECRET_BYTES + 1], struct error *err)
{
    unsigned char bytes[SECRET_BYTES];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return error_set(err, ERROR_MACHINE, "no random numbers: %s", strerror(errno));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        out[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    out[2 * sizeof(bytes)] = '\0';
    return true;
}

/* Compares in constant time. */
static bool same_secret(const char *given, const char *token)
{
    size_t len = strlen(token);
    unsigned char differs = 0;

    if (strlen(given) != len)
        return false;
    for (size_t i = 0; i < len; i++)
        differs |= (unsigned char)(given[i] ^ token[i]);
    return differs == 0;
}

static bool has_token(const struct live_server *l, struct MHD_Connection *c)
{
    static const char scheme[] = "Bearer ";
    const char *given = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");

    return given && !strncmp(given, scheme, strlen(scheme)) &&
           same_secret(given + strlen(scheme), l->token);
}

static bool is_our_host(const struct live_server *l, struct MHD_Connection *c)
{
    const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");

    return host && atomic_load(&l->ready) &&
           (!strcasecmp(host, l->hosts[0]) || !strcasecmp(host, l->hosts[1]));
}

/* Takes over the body. */
static enum MHD_Result reply(const struct live_server *l, struct MHD_Connection *c, unsigned status,
                             const char *type, struct buf *body, const char *tag)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(
        body->len, body->len ? body->data : (void *)(uintptr_t) "", MHD_RESPMEM_MUST_COPY);
    enum MHD_Result sent = MHD_NO;

    buf_release(body);
    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, "Content-Type", type);
    MHD_add_response_header(r, "Content-Security-Policy", l->policy);
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(r, "X-Frame-Options", "DENY");
    MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(r, "Cache-Control", "no-store");
    if (tag)
        MHD_add_response_header(r, "ETag", tag);
    sent = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return sent;
}

static enum MHD_Result refuse(const struct live_server *l, struct MHD_Connection *c,
                              unsigned status, const char *why)
{
    struct buf b = buf_init(1 << 12);

    buf_puts(&b, why);
    return reply(l, c, status, "text/plain; charset=utf-8", &b, NULL);
}

static enum MHD_Result reply_page(const struct live_server *l, struct MHD_Connection *c,
                                  const char *path)
{
    const char *known = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "If-None-Match");
    struct buf b = buf_init(PAGE_LIMIT);
    char hex[65], tag[68];

    if (!l->config.answer(l->config.ctx, path, &b) || b.overflowed) {
        buf_release(&b);
        return refuse(l, c, MHD_HTTP_NOT_FOUND, "there is no such page\n");
    }
    hash_text(buf_text(&b), hex);
    tag[0] = '"';
    memcpy(tag + 1, hex, 64);
    memcpy(tag + 65, "\"", 2);
    if (known && !strcmp(known, tag)) {
        buf_clear(&b);
        return reply(l, c, MHD_HTTP_NOT_MODIFIED, "text/html; charset=utf-8", &b, tag);
    }
    return reply(l, c, MHD_HTTP_OK, "text/html; charset=utf-8", &b, tag);
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_len, void **state)
{
    const struct live_server *l = ctx;

    (void)version;
    (void)upload;
    (void)state;
    if (*upload_len || (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0))
        return refuse(l, c, MHD_HTTP_METHOD_NOT_ALLOWED, "this server only reads\n");
    if (!is_our_host(l, c))
        return refuse(l, c, MHD_HTTP_FORBIDDEN, "wrong host name\n");
    if (strcmp(path, "/") == 0) {
        struct buf b = buf_init(PAGE_LIMIT);

        l->config.shell(l->config.ctx, l->nonce, &b);
        return reply(l, c, MHD_HTTP_OK, "text/html; charset=utf-8", &b, NULL);
    }
    if (!has_token(l, c))
        return refuse(l, c, MHD_HTTP_UNAUTHORIZED, "the token is missing or wrong\n");
    return reply_page(l, c, path);
}

/* ---- requests with a body ---------------------------------------------------------- */

/* What has arrived of a connection's request so far. */
struct upload {
    struct buf body;
    bool refused;
};

/* The rest of a stream's piece that did not fit, and the callback for the next one. */
struct stream {
    struct live_answer answer;
    struct buf piece;
    size_t sent;
    int connection;
};

static const char *request_header(const struct live_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

/* No page of another site may send requests here, even if it knew the token. */
static bool is_our_origin(const struct live_server *l, struct MHD_Connection *c)
{
    static const char scheme[] = "http://";
    const char *origin = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Origin");

    return !origin || (!strncmp(origin, scheme, strlen(scheme)) &&
                       (!strcasecmp(origin + strlen(scheme), l->hosts[0]) ||
                        !strcasecmp(origin + strlen(scheme), l->hosts[1])));
}

static ssize_t stream_read(void *ctx, uint64_t at, char *out, size_t room)
{
    struct stream *s = ctx;
    size_t n;

    (void)at;
    if (s->sent == s->piece.len) {
        buf_clear(&s->piece);
        s->sent = 0;
        if (!s->answer.next(s->answer.ctx, s->connection, &s->piece) || !s->piece.len)
            return MHD_CONTENT_READER_END_OF_STREAM;
    }
    n = s->piece.len - s->sent < room ? s->piece.len - s->sent : room;
    memcpy(out, s->piece.data + s->sent, n);
    s->sent += n;
    return (ssize_t)n;
}

static void stream_end(void *ctx)
{
    struct stream *s = ctx;

    s->answer.left(s->answer.ctx);
    buf_release(&s->piece);
    xfree(s);
}

static enum MHD_Result reply_stream(struct MHD_Connection *c, const struct live_answer *answer)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct stream *s = xmalloc(sizeof(*s));
    struct MHD_Response *r;
    enum MHD_Result sent;

    s->answer = *answer;
    s->piece = buf_init(PAGE_LIMIT);
    s->connection = info ? info->connect_fd : -1;
    r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE, stream_read, s, stream_end);
    if (!r) {
        stream_end(s);
        return MHD_NO;
    }
    MHD_add_response_header(r, "Content-Type", answer->type);
    MHD_add_response_header(r, "Cache-Control", "no-store");
    MHD_add_response_header(r, "X-Accel-Buffering", "no");
    sent = MHD_queue_response(c, answer->status, r);
    MHD_destroy_response(r);
    return sent;
}

static enum MHD_Result reply_served(const struct live_server *l, struct MHD_Connection *c,
                                    struct live_answer *answer)
{
    struct MHD_Response *r;
    enum MHD_Result sent = MHD_NO;

    (void)l;
    if (answer->next) {
        buf_release(&answer->body);
        return reply_stream(c, answer);
    }
    r = MHD_create_response_from_buffer(
        answer->body.len, answer->body.len ? answer->body.data : (void *)(uintptr_t) "",
        MHD_RESPMEM_MUST_COPY);
    buf_release(&answer->body);
    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, "Content-Type", answer->type);
    MHD_add_response_header(r, "Cache-Control", "no-store");
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    if (answer->header)
        MHD_add_response_header(r, answer->header, answer->value);
    sent = MHD_queue_response(c, answer->status, r);
    MHD_destroy_response(r);
    return sent;
}

/* A client without the token is refused before its body is read. */
static enum MHD_Result let_in(const struct live_server *l, struct MHD_Connection *c, void **state)
{
    struct upload *u;

    if (!is_our_host(l, c))
        return refuse(l, c, MHD_HTTP_FORBIDDEN, "wrong host name\n");
    if (!is_our_origin(l, c))
        return refuse(l, c, MHD_HTTP_FORBIDDEN, "not from this origin\n");
    if (!has_token(l, c))
        return refuse(l, c, MHD_HTTP_UNAUTHORIZED, "the token is missing or wrong\n");
    u = xmalloc(sizeof(*u));
    u->body = buf_init(l->config.body_limit + 1);
    *state = u;
    return MHD_YES;
}

static enum MHD_Result on_served(void *ctx, struct MHD_Connection *c, const char *path,
                                 const char *method, const char *version, const char *data,
                                 size_t *len, void **state)
{
    const struct live_server *l = ctx;
    struct upload *u = *state;
    struct live_answer answer = {.status = MHD_HTTP_OK, .type = "text/plain"};
    struct live_request request;

    (void)version;
    if (!u)
        return let_in(l, c, state);
    if (*len) { /* data beyond the limit is read and dropped */
        buf_add(&u->body, data, *len);
        *len = 0;
        return MHD_YES;
    }
    if (u->refused)
        return MHD_NO;
    u->refused = true; /* one answer per request */
    if (u->body.overflowed || u->body.len > l->config.body_limit)
        return refuse(l, c, TOO_LARGE, "the body is too large\n");
    request = (struct live_request){method, path, buf_text(&u->body), request_header, c};
    answer.body = buf_init(PAGE_LIMIT);
    l->config.serve(l->config.ctx, &request, &answer);
    return reply_served(l, c, &answer);
}

static void on_completed(void *ctx, struct MHD_Connection *c, void **state,
                         enum MHD_RequestTerminationCode how)
{
    struct upload *u = *state;

    (void)ctx;
    (void)c;
    (void)how;
    if (!u)
        return;
    buf_release(&u->body);
    xfree(u);
    *state = NULL;
}

/* ---- the server --------------------------------------------------------------------- */

static bool listen_here(struct live_server *l, struct error *err)
{
    bool served = l->config.serve != NULL;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)l->config.port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const union MHD_DaemonInfo *info;

    l->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | (served ? MHD_USE_THREAD_PER_CONNECTION : 0U),
        (uint16_t)l->config.port, NULL, NULL, served ? on_served : on_request, l,
        MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&at, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)(served ? SERVED_CONNECTIONS : CONNECTIONS), MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)(served ? 4 * REQUEST_BYTES : REQUEST_BYTES), MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, NULL, MHD_OPTION_END);
    info = l->daemon ? MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    if (info) {
        l->config.port = info->port;
        return true;
    }
    error_set(err, ERROR_MACHINE, "cannot listen on 127.0.0.1, port %d: %s", l->config.port,
              strerror(errno));
    return error_hint(err, "leave out --port to use any free port");
}

bool live_start(const struct live_config *config, struct live_server **out, struct error *err)
{
    struct live_server *l = xmalloc(sizeof(*l));

    l->config = *config;
    l->a = arena_new();
    if (!secret(l->token, err) || !secret(l->nonce, err)) {
        live_stop(l);
        return false;
    }
    /* Set before the first request can arrive. */
    l->policy = arena_printf(l->a,
                             "default-src 'none'; script-src 'nonce-%s'; style-src "
                             "'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "
                             "form-action 'none'; frame-ancestors 'none'",
                             l->nonce);
    l->hosts[0] = l->hosts[1] = "";
    if (!listen_here(l, err)) {
        live_stop(l);
        return false;
    }
    l->hosts[0] = arena_printf(l->a, "127.0.0.1:%d", l->config.port);
    l->hosts[1] = arena_printf(l->a, "localhost:%d", l->config.port);
    atomic_store(&l->ready, true);
    l->url = arena_printf(l->a, "http://%s/#%s", l->hosts[0], l->token);
    *out = l;
    return true;
}

const char *live_url(const struct live_server *l)
{
    return l->url;
}

void live_stop(struct live_server *l)
{
    if (!l)
        return;
    if (l->daemon)
        MHD_stop_daemon(l->daemon);
    arena_free(l->a);
    xfree(l);
}
