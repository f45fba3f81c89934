/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdio.c - one client on stdin and stdout: a message per line.
 *
 * Invariants
 * 1. Reading never waits for writing: answers go into a queue with a limit,
 *    which a thread of its own writes. A client that does not read is disconnected.
 * 2. Nothing but messages goes to stdout.
 * 3. The end of stdin ends everything: running jobs are cancelled.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "mcp/server.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { QUEUE_BYTES = 128 << 20, WAIT_MS = 500, FLUSH_MS = 2000 };

struct queued_line {
    struct queued_line *next;
    size_t len;
    char text[];
};

struct line_writer {
    struct mcp_sink sink; /* must be first: jobs hold a pointer to it */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct queued_line *first, **last;
    size_t bytes;
    bool dead, closing;
    int64_t until_ms; /* while closing: do not write longer than this */
};

static void writer_send(struct mcp_sink *self, json_t *message)
{
    struct line_writer *w = (struct line_writer *)self;
    struct arena *a = arena_new();
    const char *line = json_line(message, a);
    size_t len = strlen(line);
    struct queued_line *e = xmalloc(sizeof(*e) + len + 1);

    json_decref(message);
    memcpy(e->text, line, len);
    e->text[len] = '\n';
    e->len = len + 1;
    arena_free(a);
    pthread_mutex_lock(&w->lock);
    if (w->bytes + e->len > QUEUE_BYTES)
        w->dead = true; /* the client does not read */
    if (w->dead) {
        xfree(e);
    } else {
        *w->last = e;
        w->last = &e->next;
        w->bytes += e->len;
    }
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static bool writer_over(struct line_writer *w)
{
    bool over;

    pthread_mutex_lock(&w->lock);
    over = w->dead || (w->closing && clock_ms() > w->until_ms);
    pthread_mutex_unlock(&w->lock);
    return over;
}

/* Writes pieces small enough that a pipe which reports room accepts them whole. */
static bool write_entry(struct line_writer *w, const struct queued_line *e)
{
    size_t at = 0;

    while (at < e->len) {
        struct pollfd out = {STDOUT_FILENO, POLLOUT, 0};
        size_t piece = e->len - at < PIPE_BUF ? e->len - at : PIPE_BUF;
        ssize_t n;

        if (writer_over(w))
            return false;
        if (poll(&out, 1, WAIT_MS) <= 0)
            continue;
        n = write(STDOUT_FILENO, e->text + at, piece);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static void *writer_thread(void *arg)
{
    struct line_writer *w = arg;
    bool ok = true;

    for (;;) {
        struct queued_line *e;

        pthread_mutex_lock(&w->lock);
        while (!w->first && !w->closing)
            pthread_cond_wait(&w->changed, &w->lock);
        e = w->first;
        if (e) {
            w->first = e->next;
            w->last = w->first ? w->last : &w->first;
            w->bytes -= e->len;
        }
        pthread_mutex_unlock(&w->lock);
        if (!e)
            return NULL;
        ok = ok && write_entry(w, e);
        xfree(e);
        if (!ok) {
            pthread_mutex_lock(&w->lock);
            w->dead = true;
            pthread_mutex_unlock(&w->lock);
        }
    }
}

static void take_line(struct mcp *m, struct mcp_peer *peer, struct line_writer *w, struct text line)
{
    struct mcp_outcome out;
    struct rpc_fault fault;
    struct rpc_call call;

    if (line.len && line.data[line.len - 1] == '\r')
        line.len--;
    if (!line.len)
        return;
    rpc_read(line, &call, &fault);
    mcp_take(m, peer, &call, &fault, &out);
    if (out.answer)
        writer_send(&w->sink, out.answer);
    if (out.job)
        job_start(out.job, &w->sink);
    json_decref(fault.data);
    rpc_call_release(&call);
}

/* Takes complete lines out of the input; a line beyond the limit is answered once and skipped. */
static void take_lines(struct mcp *m, struct mcp_peer *peer, struct line_writer *w, struct buf *b,
                       bool *skipping)
{
    size_t from = 0;
    char *end;

    while (from < b->len && (end = memchr(b->data + from, '\n', b->len - from)) != NULL) {
        struct text line = {b->data + from, (size_t)(end - b->data) - from};

        if (!*skipping)
            take_line(m, peer, w, line);
        *skipping = false;
        from += line.len + 1;
    }
    memmove(b->data, b->data + from, b->len - from);
    b->len -= from;
    if (b->len > RPC_MAX_BYTES) {
        if (!*skipping)
            take_line(m, peer, w, (struct text){b->data, b->len});
        *skipping = true;
        b->len = 0;
    }
}

static void read_lines(struct mcp *m, struct line_writer *w)
{
    struct mcp_peer peer = {.name = "stdio"};
    struct buf b = buf_init(RPC_MAX_BYTES + (1 << 17));
    bool skipping = false;
    static const size_t chunk = 1 << 16;
    char *piece = xmalloc(chunk);

    while (!writer_over(w) && !(m->config.interrupts && *m->config.interrupts)) {
        struct pollfd in = {STDIN_FILENO, POLLIN, 0};
        ssize_t n;

        if (poll(&in, 1, WAIT_MS) <= 0)
            continue;
        n = read(STDIN_FILENO, piece, chunk);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            break; /* a last line without a newline is not a message */
        buf_add(&b, piece, (size_t)n);
        take_lines(m, &peer, w, &b, &skipping);
    }
    xfree(piece);
    buf_release(&b);
}

bool mcp_serve_stdio(const struct mcp_config *config, struct error *err)
{
    struct line_writer w = {.sink = {.send = writer_send}};
    struct mcp *m = mcp_new(config);
    pthread_t thread;
    int problem;

    w.last = &w.first;
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.changed, NULL);
    problem = pthread_create(&thread, NULL, writer_thread, &w);
    if (!problem)
        read_lines(m, &w);
    mcp_free(m);
    pthread_mutex_lock(&w.lock);
    w.closing = true;
    w.until_ms = clock_ms() + FLUSH_MS;
    pthread_cond_signal(&w.changed);
    pthread_mutex_unlock(&w.lock);
    if (!problem)
        pthread_join(thread, NULL);
    pthread_mutex_destroy(&w.lock);
    pthread_cond_destroy(&w.changed);
    return !problem || error_set(err, ERROR_MACHINE, "no thread: %s", strerror(problem));
}
