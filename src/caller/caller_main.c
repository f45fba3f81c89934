/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caller_main.c - cutegen-caller: makes one request to a model, and loses no reply.
 *
 * Started by a run for each request that may cost something. Its stdin and stdout are a socket to
 * that run (stage/carry.c); descriptor 3 holds the lock that shows it is alive. The run may end at
 * any moment and in any way: the request continues, and the reply is put into the store, where the
 * process that resumes the run finds it.
 *
 * Invariants
 * 1. A complete reply is in RUN/reply-CALL.json before the run is told.
 * 2. It ends when the run says that the reply is stored, or when it has stored the reply itself. It
 *    retries until then, for hours if necessary.
 * 3. It writes its own call and nothing else: it does not own the run.
 * 4. The key arrives over the socket and goes only into the vault.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/vault.h"
#include "llm/llm.h"
#include "store/store.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    ORDER_BYTES = 256 << 20,
    KEY_BYTES = 8192,
    AGAIN_S = 2,         /* between two attempts to reach the store */
    TRY_S = 6 * 60 * 60, /* after that the reply stays in its file */
};

struct caller {
    struct arena *a;
    const char *runs, *url;
    struct call_place at;
    int64_t began_ms;
    struct buf heard; /* received from the run after its order */
    bool alone;       /* the run is gone */
    pthread_mutex_t lock;
    pthread_cond_t answered;
    bool done; /* guarded by `lock`: stop the heartbeat */
};

/* ---- the run ------------------------------------------------------------------ */

/* Reads one line, byte by byte: what follows belongs to another reader. */
static bool read_line(struct buf *line, size_t limit)
{
    char c;
    ssize_t n;

    while (line->len < limit) {
        n = recv(STDIN_FILENO, &c, 1, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        if (c == '\n')
            return true;
        buf_putc(line, c);
    }
    return false;
}

/* Reads what the run says, if anything, within wait_ms (-1: until it does or ends). */
static void hear(struct caller *c, int wait_ms)
{
    struct pollfd p = {STDIN_FILENO, POLLIN, 0};
    char chunk[64];
    ssize_t n;

    if (c->alone || poll(&p, 1, wait_ms) <= 0)
        return;
    n = recv(STDIN_FILENO, chunk, sizeof(chunk), MSG_DONTWAIT);
    if (n > 0)
        buf_add(&c->heard, chunk, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        c->alone = true;
}

static bool told(const struct caller *c, const char *word)
{
    return c->heard.len && strstr(c->heard.data, word);
}

/* A run that has died does not interrupt the call: it would have said so. */
static bool interrupted(void *ctx)
{
    struct caller *c = ctx;

    hear(c, 0);
    return told(c, "stop\n");
}

static void send_answer(const json_t *answer, struct arena *a)
{
    char *line = json_line(answer, a);
    size_t len = strlen(line), sent = 0;

    line[len++] = '\n'; /* in place of its end */
    while (sent < len) {
        ssize_t n = send(STDOUT_FILENO, line + sent, len - sent, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* it died: the next hear() notices */
        sent += (size_t)n;
    }
}

/* ---- the store ------------------------------------------------------------------ */

/* Opens a connection each time: most calls end before they need one. */
static void beat(const struct caller *c)
{
    struct store *s = NULL;
    struct error ignored = {0};

    if (store_open(c->runs, c->url, STORE_WRITE, &s, &ignored))
        store_call_beat(s, &c->at, clock_ms() - c->began_ms, &ignored);
    store_close(s);
}

static void *beat_thread(void *self)
{
    struct caller *c = self;
    struct timespec until;

    pthread_mutex_lock(&c->lock);
    while (!c->done) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += CALL_BEAT_MS / 1000;
        if (pthread_cond_timedwait(&c->answered, &c->lock, &until) != ETIMEDOUT || c->done)
            continue;
        pthread_mutex_unlock(&c->lock);
        beat(c);
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void store_reply(const struct caller *c, const struct reply *reply)
{
    for (int64_t end = clock_ms() + TRY_S * 1000LL; clock_ms() < end; sleep(AGAIN_S)) {
        struct store *s = NULL;
        struct error why = {0};
        bool ok = store_open(c->runs, c->url, STORE_WRITE, &s, &why) &&
                  store_call_end(s, &c->at, reply, &why);

        store_close(s);
        if (ok) {
            store_call_forget(&c->at);
            return;
        }
    }
}

/* ---- from order to end ------------------------------------------------------------------- */

static bool read_order(struct caller *c, json_t **all, struct buf *key)
{
    struct buf line = buf_init(ORDER_BYTES);
    struct error ignored = {0};
    const json_t *where;
    bool ok = read_line(&line, ORDER_BYTES) && read_line(key, KEY_BYTES) &&
              json_parse(buf_text(&line), "an order", all, &ignored);

    buf_release(&line);
    if (!ok)
        return false; /* the run was killed before it sent its order */
    where = json_object_get(*all, "where");
    c->runs = json_string_or(where, "runs", "");
    c->url = json_string_or(where, "store", "");
    c->at = (struct call_place){json_string_or(where, "dir", ""), json_string_or(where, "run", ""),
                                json_int_or(where, "call", 0)};
    return *c->runs && *c->at.dir && *c->at.run && c->at.call;
}

static json_t *error_answer(const struct error *err)
{
    return json_pack("{s:b, s:b, s:i, s:o, s:o}", "ok", 0, "passes", 0, "kind", (int)err->kind,
                     "fault", json_from_string(err->text), "hint", json_from_string(err->hint));
}

static void ask(struct caller *c, const struct call_order *order)
{
    struct error err = {0};
    struct reply reply;
    json_t *answer = NULL;
    bool whole = false;

    if (!llm_carry(order, interrupted, c, c->a, &answer, &whole, &reply, &err))
        answer = error_answer(&err);
    if (whole)
        store_call_keep(&c->at, &reply);
    send_answer(answer, c->a);
    json_decref(answer);
    while (whole && !c->alone && !told(c, "stored\n"))
        hear(c, -1);
    if (whole && !told(c, "stored\n"))
        store_reply(c, &reply);
}

static void with_beats(struct caller *c, const struct call_order *order)
{
    pthread_condattr_t by;
    pthread_t thread;
    bool beats;

    pthread_condattr_init(&by);
    pthread_condattr_setclock(&by, CLOCK_MONOTONIC);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->answered, &by);
    beats = *c->url && pthread_create(&thread, NULL, beat_thread, c) == 0;
    ask(c, order);
    pthread_mutex_lock(&c->lock);
    c->done = true;
    pthread_cond_signal(&c->answered);
    pthread_mutex_unlock(&c->lock);
    if (beats)
        pthread_join(thread, NULL);
    pthread_cond_destroy(&c->answered);
    pthread_mutex_destroy(&c->lock);
    pthread_condattr_destroy(&by);
}

int main(void)
{
    struct caller c = {.a = arena_new(), .began_ms = clock_ms()};
    struct buf key = buf_init(KEY_BYTES);
    json_t *all = NULL;
    bool ok;

    vault_open();
    /* These signals are for the run, which tells us what to do; a machine that shuts down sends
     * SIGKILL later. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    c.heard = buf_init(4096);
    ok = read_order(&c, &all, &key);
    if (ok) {
        struct call_order order = {json_object_get(all, "what"), key.len ? key.data : NULL};

        with_beats(&c, &order);
    }
    if (key.data)
        explicit_bzero(key.data, key.cap);
    buf_release(&key);
    buf_release(&c.heard);
    json_decref(all);
    arena_free(c.a);
    return ok ? 0 : 2;
}
