/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_main.c - cutegen-server: keeps builders and oracles warm between two commands.
 *
 *     cutegen-server IDLE_SECONDS MEMORY_MIB [READY_FD]
 *
 * A broker: it starts processes, lends their streams to clients of the same
 * user, and takes them back (wire.h, pool.h). It never sees what goes through the streams. Clients
 * start it when needed (warm.c); there is one per user.
 *
 * Invariants
 * 1. One server per runtime folder: it holds the lock as long as it listens.
 * 2. A connection of another user is closed unread; the folder is private anyway.
 * 3. A loan ends with its connection. If it was not returned cleanly, the process is ended.
 * 4. It never waits for a client or a process.
 * 5. When it dies, however it dies, its processes are ended by their supervisors.
 */
#include "base/clock.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/proc.h"
#include "base/vault.h"
#include "server/leave.h"
#include "server/pool.h"
#include "server/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { MAX_CLIENTS = 128, LOCK_WAIT_MS = 3000, LOOK_AGAIN_US = 5000 };

struct client {
    int fd;
    bool greeted, fit;   /* fit: the loan was returned cleanly */
    struct pooled *loan; /* NULL: none */
};

struct server {
    int listener; /* -1: no longer taking clients */
    int signals;
    char *socket_path;
    struct lock *lock;
    struct pool *pool;
    struct client clients[MAX_CLIENTS];
    size_t client_count;
    int64_t started_ms, used_ms; /* used: when the last client left */
    int idle_ms, memory_mib;
    int refused;
};

/* ---- starting and retiring ------------------------------------------ */

static bool listen_at(struct server *s, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof address.sun_path, "%s", s->socket_path);
    s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(s->socket_path); /* we hold the lock, so the server that made it is gone */
    if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        chmod(s->socket_path, 0600) != 0 || listen(s->listener, 64) != 0)
        return error_set(err, ERROR_MACHINE, "cannot listen at %s: %s", s->socket_path,
                         strerror(errno));
    return true;
}

static bool somebody_listens(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    bool yes;

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    yes = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return yes;
}

/* Waits for a server that is ending; gives up if another one was faster. */
static bool take_place(struct server *s, const char *lock_path, struct error *err)
{
    int64_t start = clock_ms();

    for (;;) {
        struct error held = {0};

        if (lock_take(lock_path, 0, &s->lock, &held))
            return true;
        if (somebody_listens(s->socket_path) || clock_ms() - start > LOCK_WAIT_MS) {
            *err = held;
            return false;
        }
        usleep(LOOK_AGAIN_US);
    }
}

/* Takes no new clients and ends idle processes: the open loans are the last. */
static void retire(struct server *s)
{
    if (s->listener < 0)
        return;
    close(s->listener);
    s->listener = -1;
    unlink(s->socket_path);
    lock_drop(s->lock); /* a newer server may open now */
    s->lock = NULL;
    pool_trim(s->pool);
}

/* ---- requests -------------------------------------------------------------- */

static void answer_error(int fd, const struct error *err)
{
    wire_send_new(fd, json_pack("{s:b, s:s}", "ok", 0, "text", err->text), NULL);
}

static void answer_hello(struct server *s, struct client *c)
{
    (void)s;
    c->greeted = true;
    wire_send_new(c->fd,
                  json_pack("{s:b, s:i, s:s, s:I, s:i, s:o}", "ok", 1, "protocol", WIRE_PROTOCOL,
                            "version", CUTEGEN_VERSION, "stamp",
                            (json_int_t)wire_stamp("/proc/self/exe"), "pid", (int)getpid(),
                            "freedom", wire_freedom()),
                  NULL);
}

static void answer_lend(struct server *s, struct client *c, json_t *wish)
{
    struct error err = {0};
    int fds[WIRE_FDS];
    json_t *answer;
    bool warm;

    if (c->loan)
        error_set(&err, ERROR_USE, "one loan per connection");
    else if (s->listener < 0)
        error_set(&err, ERROR_USE, "this server is ending");
    else
        c->loan = pool_lend(s->pool, wish, &warm, &err);
    if (err.kind != ERROR_NONE || !c->loan) {
        wire_send_new(
            c->fd,
            json_pack("{s:b, s:s, s:b}", "ok", 0, "text", err.text, "ending", s->listener < 0),
            NULL);
        return;
    }
    pool_streams(c->loan, fds);
    answer = json_pack("{s:b, s:i, s:b}", "ok", 1, "pid", pool_pid(c->loan), "warm", (int)warm);
    if (pool_tmp(c->loan))
        json_object_set_new(answer, "tmp", json_string(pool_tmp(c->loan)));
    wire_send_new(c->fd, answer, fds);
}

/* Converts to an argument vector for execve(); false: not a list of strings. */
static bool words_of(const json_t *list, struct arena *a, char ***out)
{
    size_t n = json_array_size(list);

    *out = arena_array(a, n + 1, sizeof(**out));
    for (size_t i = 0; i < n; i++) {
        const char *word = json_string_value(json_array_get(list, i));

        if (!word)
            return false;
        (*out)[i] = arena_strdup(a, word);
    }
    return true;
}

/* Starts a process that outlives client and server; the server keeps no record of it. */
static void answer_leave(struct client *c, const json_t *wish, const int fds[WIRE_FDS])
{
    struct arena *a = arena_new();
    struct error err = {0};
    char **argv, **env;
    bool ok = words_of(json_object_get(wish, "argv"), a, &argv) && argv[0] &&
              words_of(json_object_get(wish, "env"), a, &env) && fds[WIRE_FDS - 1] >= 0;

    if (!ok)
        error_set(&err, ERROR_USE, "a program and three descriptors are needed");
    if (ok && leave_start(argv, env, json_string_or(wish, "dir", "/"), fds, &err))
        wire_send_new(c->fd, json_pack("{s:b}", "ok", 1), NULL);
    else
        answer_error(c->fd, &err);
    arena_free(a);
}

static void answer_status(struct server *s, struct client *c)
{
    wire_send_new(c->fd,
                  json_pack("{s:b, s:i, s:s, s:I, s:i, s:i, s:i, s:i, s:o}", "ok", 1, "pid",
                            (int)getpid(), "version", CUTEGEN_VERSION, "uptime_s",
                            (json_int_t)((clock_ms() - s->started_ms) / 1000), "idle_s",
                            s->idle_ms / 1000, "memory_mib", s->memory_mib, "clients",
                            (int)s->client_count - 1, "refused", s->refused, "processes",
                            pool_status(s->pool)),
                  NULL);
}

static void answer(struct server *s, struct client *c, struct text packet, const int fds[WIRE_FDS])
{
    static const char returned[] = CHILD_RETURNED, here[] = CHILD_HERE;
    struct error err = {0};
    json_t *request = NULL;
    const char *what = "";

    if (c->loan && text_equal(packet, text_of(returned))) {
        c->fit = true;
        return;
    }
    if (c->loan && text_equal(packet, text_of(here))) {
        (void)!send(c->fd, here, strlen(here), MSG_NOSIGNAL);
        return;
    }
    if (json_parse(packet, "a request", &request, &err))
        what = json_string_or(request, "do", "");
    if (strcmp(what, "hello") == 0)
        answer_hello(s, c);
    else if (!c->greeted)
        c->fit = false; /* no hello came first: no answer; the connection ends by itself */
    else if (strcmp(what, "lend") == 0)
        answer_lend(s, c, request);
    else if (strcmp(what, "leave") == 0)
        answer_leave(c, request, fds);
    else if (strcmp(what, "status") == 0)
        answer_status(s, c);
    else if (strcmp(what, "trim") == 0 || strcmp(what, "stop") == 0) {
        if (*what == 's')
            retire(s);
        pool_trim(s->pool);
        wire_send_new(c->fd, json_pack("{s:b}", "ok", 1), NULL);
    } else {
        error_set(&err, ERROR_USE, "no request %s", what);
        answer_error(c->fd, &err);
    }
    json_decref(request);
}

/* ---- clients --------------------------------------------------------------- */

static void welcome(struct server *s)
{
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    if (!wire_peer_is_us(fd) || s->client_count == MAX_CLIENTS) {
        s->refused++;
        close(fd);
        return;
    }
    s->clients[s->client_count++] = (struct client){.fd = fd};
}

static void leave(struct server *s, size_t index)
{
    struct client *c = &s->clients[index];

    if (c->loan)
        pool_back(s->pool, c->loan, c->fit);
    close(c->fd);
    *c = s->clients[--s->client_count];
    s->used_ms = clock_ms();
}

static void hear(struct server *s, size_t index)
{
    struct client *c = &s->clients[index];
    struct arena *a = arena_new();
    struct text packet;
    int fds[WIRE_FDS];

    if (wire_receive(c->fd, a, &packet, fds))
        answer(s, c, packet, fds);
    else if (errno != EAGAIN)
        leave(s, index);
    for (int i = 0; i < WIRE_FDS; i++)
        if (fds[i] >= 0)
            close(fds[i]); /* the recipient has its own copy by now */
    arena_free(a);
}

/* ---- the loop -------------------------------------------------------------- */

static bool time_to_end(const struct server *s)
{
    if (s->client_count > 0)
        return false;
    return s->listener < 0 || clock_ms() - s->used_ms > s->idle_ms;
}

static void serve(struct server *s)
{
    int signalled = 0;

    while (!time_to_end(s) && signalled < 2) {
        struct pollfd fds[MAX_CLIENTS + 2];
        struct signalfd_siginfo info;
        size_t count = s->client_count;

        fds[0] = (struct pollfd){s->listener, POLLIN, 0};
        fds[1] = (struct pollfd){s->signals, POLLIN, 0};
        for (size_t i = 0; i < count; i++)
            fds[i + 2] = (struct pollfd){s->clients[i].fd, POLLIN, 0};
        poll(fds, count + 2, pool_wait_ms(s->pool));
        while (read(s->signals, &info, sizeof info) > 0)
            signalled++;
        if (signalled)
            retire(s); /* a second signal does not wait for the loans */
        /* Backwards, because a client that leaves is replaced by the last one. */
        for (size_t i = count; i-- > 0;)
            if (fds[i + 2].revents)
                hear(s, i);
        if (fds[0].revents && s->listener >= 0)
            welcome(s);
        pool_tend(s->pool);
    }
}

static int watch_signals(void)
{
    sigset_t mask;

    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGHUP);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int number(const char *word, int fallback)
{
    long n = word ? strtol(word, NULL, 10) : 0;

    return n > 0 && n < 100000000 ? (int)n : fallback;
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    struct server s = {.listener = -1,
                       .idle_ms = 1000 * number(argc > 1 ? argv[1] : NULL, 600),
                       .memory_mib = number(argc > 2 ? argv[2] : NULL, 4096)};
    struct pool_limits limits = {.idle_ms = s.idle_ms,
                                 .memory_bytes = (uint64_t)s.memory_mib << 20};
    struct error err = {0};
    char *lock_path;

    if (argc < 3) {
        fprintf(stderr, "usage: cutegen-server IDLE_SECONDS MEMORY_MIB [READY_FD]\n");
        return 2;
    }
    vault_private();
    umask(077);
    s.started_ms = s.used_ms = clock_ms();
    s.signals = watch_signals();
    if (!wire_paths(a, &s.socket_path, &lock_path, &err) || !take_place(&s, lock_path, &err) ||
        !listen_at(&s, &err)) {
        fprintf(stderr, "cutegen-server: %s\n", err.text);
        return 3;
    }
    if (argc > 3)
        close(number(argv[3], -1)); /* tells the process that started us that it may connect */
    s.pool = pool_new(&limits);
    serve(&s);
    retire(&s);
    pool_free(s.pool);
    arena_free(a);
    return 0;
}
