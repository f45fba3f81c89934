/* SPDX-License-Identifier: Apache-2.0 */
/*
 * precompiler.c - the builder's second process; see precompiler.h.
 *
 * Invariants
 * 1. The child is asked only for the kernel it has precompiled, with the same options and include
 *    lines: the header is large and useless for anything else.
 * 2. It ends with the builder and when its socket closes: a confined process may not send signals,
 *    so kill() would not end it.
 */
#include "toolchain/precompiler.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "toolchain/builder_limits.h"
#include "toolchain/precompiled_source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOM_BYTES ((uint64_t)8 << 30)

struct precompiler {
    int least_ms;
    pid_t child; /* 0: none */
    int fd;
    bool ready;       /* it has learned */
    bool asked;       /* the next answer passed to precompiler_see() came from the child */
    bool late;        /* it was not ready for that request */
    int64_t plain_ms; /* compile time of the precompiled source without the child */
    struct arena *a;  /* of the child's life */
    struct text includes;
    const char *options, *dir;
    json_t *names; /* of the kernels it knows */
};

struct precompiler *precompiler_new(int least_ms)
{
    struct precompiler *l = xmalloc(sizeof(*l));

    *l = (struct precompiler){.least_ms = least_ms, .fd = -1};
    return l;
}

/* Everything that decides which precompiled header fits. */
static const char *options_of(const json_t *request, struct arena *a)
{
    return arena_printf(a, "%s %s %s %s", json_string_or(request, "arch", ""),
                        json_bool_or(request, "cubin", false) ? "cubin" : "ptx",
                        json_line(json_object_get(request, "includes"), a),
                        json_line(json_object_get(request, "defines"), a));
}

static bool knows_one(const struct precompiler *l, const json_t *names)
{
    for (size_t i = 0; i < json_array_size(names); i++)
        for (size_t k = 0; k < json_array_size(l->names); k++)
            if (json_equal(json_array_get(names, i), json_array_get(l->names, k)))
                return true;
    return false;
}

static void forget(struct precompiler *l)
{
    struct error ignored = {0};

    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    if (l->child > 0) {
        kill(l->child, SIGKILL);
        while (waitpid(l->child, NULL, 0) < 0 && errno == EINTR)
            ;
        dir_remove(l->dir, &ignored);
        json_decref(l->names);
        arena_free(l->a);
    }
    l->child = 0;
    l->ready = false;
}

void precompiler_free(struct precompiler *l)
{
    forget(l);
    xfree(l);
}

/* Its first line says that precompiling is done. */
static bool is_ready(struct precompiler *l)
{
    struct pollfd p = {.fd = l->fd, .events = POLLIN};
    char word;

    if (l->child > 0 && !l->ready && poll(&p, 1, 0) > 0) {
        if (read(l->fd, &word, 1) == 1)
            l->ready = true;
        else
            forget(l);
    }
    return l->child > 0 && l->ready;
}

static bool send_line(int fd, struct text line)
{
    while (line.len > 0) {
        ssize_t n = send(fd, line.data, line.len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        line.data += n;
        line.len -= (size_t)n;
    }
    return true;
}

static bool read_line(int fd, struct buf *b)
{
    char chunk[65536];

    while (b->len == 0 || b->data[b->len - 1] != '\n') {
        ssize_t n = read(fd, chunk, sizeof(chunk));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || b->len + (size_t)n > BUILDER_ANSWER_LIMIT)
            return false;
        buf_add(b, chunk, (size_t)n);
    }
    return true;
}

bool precompiler_ask(struct precompiler *l, const json_t *request, struct text device,
                     struct text line, struct arena *a, json_t **answer)
{
    struct buf said = buf_init(BUILDER_ANSWER_LIMIT + 65536);
    struct error ignored = {0};
    struct text includes;
    bool ok = false;

    l->asked = false;
    l->late = !is_ready(l);
    if (!l->late && knows_one(l, json_object_get(request, "names")) &&
        strcmp(options_of(request, a), l->options) == 0 && learn_includes(device, a, &includes) &&
        text_equal(includes, l->includes)) {
        ok = send_line(l->fd, line) && read_line(l->fd, &said) &&
             json_parse(buf_text(&said), "the precompiler's answer", answer, &ignored);
        if (!ok)
            forget(l); /* the cause of its death will show up here, too */
        else if (json_bool_or(*answer, "again", false)) {
            json_decref(*answer);
            *answer = NULL;
            forget(l);
            ok = false;
        }
        l->asked = ok;
    }
    buf_release(&said);
    return ok;
}

/* The same CPU time as the client allows for one compile. */
static void limit_cpu(const json_t *request)
{
    json_int_t ms = json_int_or(request, "deadline_ms", 0);
    struct rlimit limit;
    struct rusage used;

    if (ms <= 0 || getrusage(RUSAGE_SELF, &used) != 0 || getrlimit(RLIMIT_CPU, &limit) != 0)
        return;
    limit.rlim_cur = (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec + ms / 1000 + 2);
    setrlimit(RLIMIT_CPU, &limit);
}

static _Noreturn void child_life(struct precompiler *l, int fd, const json_t *request,
                                 const char *header, precompiler_compile *compile, void *ctx)
{
    struct prelude prelude = {.header = header, .dir = l->dir};
    json_t *learning = json_deep_copy(request), *answer;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(null, 0);
    dup2(null, 1);
    sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
    json_object_del(learning, "source");
    answer = compile(ctx, learning, &prelude, l->a);
    if (!answer || !json_bool_or(answer, "compiled", false))
        _exit(1);
    if (!send_line(fd, text_of("\n")))
        _exit(1);
    for (;;) {
        struct buf line = buf_init(BUILDER_ANSWER_LIMIT + 65536);
        struct arena *a = arena_new();
        struct error ignored = {0};
        json_t *asked = NULL;

        if (!read_line(fd, &line) || !json_parse(buf_text(&line), "the request", &asked, &ignored))
            _exit(0);
        limit_cpu(asked);
        answer = compile(ctx, asked, &prelude, a);
        if (!answer)
            answer = json_pack("{s:b, s:b}", "ok", 1, "again", 1);
        json_object_set_new(answer, "learned", json_true());
        if (!send_line(fd, text_of(arena_printf(a, "%s\n", json_line(answer, a)))))
            _exit(0);
        json_decref(answer);
        json_decref(asked);
        arena_free(a);
        buf_release(&line);
    }
}

/* Such a header takes most of a gigabyte. */
static bool has_room(const char *dir)
{
    struct statvfs v;

    return statvfs(dir, &v) == 0 && (uint64_t)v.f_bavail * v.f_frsize > ROOM_BYTES;
}

static void learn(struct precompiler *l, const json_t *request, struct text device, int64_t took_ms,
                  precompiler_compile *compile, void *ctx)
{
    struct arena *a = arena_new();
    const char *tmp = getenv("TMPDIR");
    char *dir = arena_printf(a, "%s/learned-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    struct text header, includes;
    int64_t before_ms = l->plain_ms;
    int pair[2] = {-1, -1};

    if (!has_room(tmp && *tmp ? tmp : "/tmp") ||
        !learn_header(device, json_object_get(request, "names"), a, &header) ||
        !learn_includes(device, a, &includes) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0 || !mkdtemp(dir)) {
        if (pair[0] >= 0)
            close(pair[0]), close(pair[1]);
        arena_free(a);
        return;
    }
    forget(l);
    l->a = a;
    l->includes = includes;
    l->options = options_of(request, a);
    l->dir = dir;
    l->names = json_deep_copy(json_object_get(request, "names"));
    /* If the last child did not help, its compile took as long as one without it. */
    l->plain_ms = l->asked && before_ms > took_ms ? before_ms : took_ms;
    l->fd = pair[0];
    fflush(NULL);
    l->child = fork();
    if (l->child == 0) {
        close(pair[0]);
        child_life(l, pair[1], request, header.data, compile, ctx);
    }
    close(pair[1]);
    if (l->child < 0) {
        l->child = 0;
        close(l->fd);
        l->fd = -1;
        json_decref(l->names);
        arena_free(a);
    }
}

void precompiler_see(struct precompiler *l, const json_t *request, struct text device,
                     const json_t *answer, precompiler_compile *compile, void *ctx)
{
    int64_t took_ms = json_int_or(answer, "ms", 0);

    if (l->least_ms <= 0 || took_ms < l->least_ms || !json_bool_or(answer, "compiled", false))
        return;
    if (l->asked ? took_ms < 3 * l->plain_ms / 4 : l->child > 0 && l->late)
        return; /* it helps, or was not ready */
    learn(l, request, device, took_ms, compile, ctx);
}
