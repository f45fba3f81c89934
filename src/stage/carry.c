/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carry.c - have a request made by a process that outlives this one.
 *
 * Over a socket: one line with the order, one with the key (empty: none); back comes one
 * line with the answer. "stop" asks it to give up, "stored" tells it that the reply is safe; an end
 * without that word means that it has to see to the reply itself (src/caller).
 */
#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "stage/workshop.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LOOK_MS = 100, ANSWER_BYTES = 256 << 20 };

static bool send_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

static bool send_order(int fd, const struct call_order *order, json_t *where_take)
{
    struct arena *a = arena_new();
    json_t *all = json_pack("{s:o, s:O}", "where", where_take, "what", order->what);
    const char *line = json_line(all, a), *key = order->key ? order->key : "";
    bool ok = send_all(fd, line, strlen(line)) && send_all(fd, "\n", 1) &&
              send_all(fd, key, strlen(key)) && send_all(fd, "\n", 1);

    json_decref(all);
    arena_free(a);
    return ok;
}

static bool interrupted(const struct settings *s)
{
    return s->interrupts && *s->interrupts >= s->interrupts_cut_call;
}

/* Until the line is whole; false: the other side has ended without one. */
static bool wait_answer(const struct settings *set, int fd, struct buf *line)
{
    bool told = false;
    char chunk[65536];

    for (;;) {
        struct pollfd p = {fd, POLLIN, 0};
        ssize_t n;

        if (!told && interrupted(set))
            told = send_all(fd, "stop\n", 5) || true;
        if (poll(&p, 1, LOOK_MS) <= 0)
            continue;
        n = recv(fd, chunk, sizeof(chunk), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        buf_add(line, chunk, (size_t)n);
        if (chunk[n - 1] == '\n')
            return true;
    }
}

bool stage_carry(struct stage *st, const struct call_order *order, json_t *where, int hold,
                 int *line, json_t **answer)
{
    struct buf text = buf_init(ANSWER_BYTES);
    struct error err = {0};
    int ends[2] = {-1, -1};
    /* The run's folder is for whoever lists processes. */
    const char *argv[] = {"cutegen-caller", json_string_or(where, "dir", ""), NULL};
    bool started = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0;

    *answer = NULL;
    if (started) {
        started = warm_leave(st->warm, argv, (int[3]){ends[1], ends[1], hold}, &err);
        close(ends[1]);
    }
    if (started && send_order(ends[0], order, json_incref(where)) &&
        wait_answer(&st->settings, ends[0], &text) &&
        json_parse(buf_text(&text), "the answer of cutegen-caller", answer, &err))
        *line = ends[0];
    else if (ends[0] >= 0)
        close(ends[0]);
    if (!started)
        log_warn("a model is asked by this process itself: %s", err.text);
    json_decref(where);
    buf_release(&text);
    return started;
}

void stage_carried(int line, bool stored)
{
    if (line < 0)
        return;
    if (stored)
        send_all(line, "stored\n", 7);
    close(line);
}
