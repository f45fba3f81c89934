/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planner_main.c - cutegen-planner PLAN.ptx: one request line in, one answer out.
 *
 * Hides the order of reading and dropping privileges: the plan's text is read first; after that the
 * process needs only memory and its standard output.
 */
#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "runner/plan/plan_code.h"
#include "runner/plan/planner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { REQUEST_LIMIT = 8 << 20 };

static bool read_line(int fd, struct buf *b, struct error *err)
{
    char chunk[16384];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set(err, ERROR_MACHINE, "reading the request: %s", strerror(errno));
        if (n == 0)
            break;
        buf_add(b, chunk, (size_t)n);
        if (memchr(chunk, '\n', (size_t)n) != NULL)
            break;
    }
    if (b->overflowed)
        return error_set(err, ERROR_USE, "the request is longer than %d bytes", (int)REQUEST_LIMIT);
    if (b->len == 0)
        return error_set(err, ERROR_USE, "no request on standard input");
    return true;
}

static void write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* the reader is gone */
        data += n;
        len -= (size_t)n;
    }
}

static void answer(json_t *v, struct arena *a)
{
    char *line = json_line(v, a);
    write_all(STDOUT_FILENO, line, strlen(line));
    write_all(STDOUT_FILENO, "\n", 1);
}

static bool run(const char *path, struct arena *a, json_t **out, struct error *err)
{
    struct buf line = buf_init(REQUEST_LIMIT);
    struct planner *p = arena_alloc(a, sizeof *p);
    json_t *request = NULL;
    struct text ptx;
    bool ok;

    p->arena = a;
    ok = read_line(STDIN_FILENO, &line, err) &&
         json_parse(buf_text(&line), "the request", &request, err) &&
         file_read(path, PLAN_MAX_PTX_BYTES, a, &ptx, err) && confine_limits(err);
    if (ok) {
        confine_calls();
        ok = planner_load(p, request, err);
    }
    if (ok)
        *out = planner_answer(p, planner_run(p, ptx));
    planner_release(p);
    json_decref(request);
    buf_release(&line);
    return ok;
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    struct error err = {0};
    json_t *out = NULL;

    if (argc != 2) {
        fprintf(stderr, "usage: cutegen-planner PLAN.ptx < request\n");
        return 2;
    }
    if (!run(argv[1], a, &out, &err))
        out = json_error(&err);
    answer(out, a);
    json_decref(out);
    arena_free(a);
    return 0;
}
