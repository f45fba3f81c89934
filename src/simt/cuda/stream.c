/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - streams, events, and the capture of work into graphs. */
#include "simt/cuda/cuda.h"

#include "base/clock.h"

#include <string.h>

static struct cu_stream *streams;
static struct cu_stream default_stream = {.id = 1};
static uint64_t next_id = 2;

/* The legacy and the per-thread default stream are one here. */
struct cu_stream *stream_of(void *handle)
{
    if ((uintptr_t)handle <= 2)
        return &default_stream;
    for (struct cu_stream *s = streams; s; s = s->next)
        if (s == handle)
            return s;
    return NULL;
}

int stream_create(unsigned flags, int priority, void **out)
{
    struct cu_stream *s = xmalloc(sizeof *s);

    s->flags = flags;
    s->priority = priority;
    s->id = next_id++;
    s->next = streams;
    streams = s;
    *out = s;
    return CU_OK;
}

static void stop_capture(struct cu_stream *s)
{
    xfree(s->last);
    s->last = NULL;
    s->last_count = 0;
    s->capture = NULL;
    s->capture_owner = s->capture_given = false;
}

int stream_destroy(void *handle)
{
    for (struct cu_stream **at = &streams; *at; at = &(*at)->next)
        if (*at == handle) {
            struct cu_stream *s = *at;

            *at = s->next;
            stop_capture(s);
            xfree(s);
            return CU_OK;
        }
    return CU_INVALID_HANDLE;
}

static void remember(struct cu_node ***list, size_t *count, struct cu_node *const *from, size_t n)
{
    struct cu_node **copy = n ? xmalloc(n * sizeof *copy) : NULL;

    if (n)
        memcpy(copy, from, n * sizeof *copy);
    xfree(*list);
    *list = copy;
    *count = n;
}

int stream_begin_capture(void *handle, struct cu_graph *into)
{
    struct cu_stream *s = stream_of(handle);

    if (!s || s->capture)
        return s ? CU_INVALID_VALUE : CU_INVALID_HANDLE;
    s->capture = into ? into : graph_new();
    s->capture_owner = true;
    s->capture_given = into != NULL;
    return CU_OK;
}

int stream_end_capture(void *handle, struct cu_graph **out)
{
    struct cu_stream *s = stream_of(handle);
    struct cu_graph *g = s ? s->capture : NULL;

    *out = NULL;
    if (!g)
        return s ? CU_INVALID_VALUE : CU_INVALID_HANDLE;
    if (!s->capture_owner)
        return CU_CAPTURE_UNMATCHED;
    for (struct cu_stream *t = streams; t; t = t->next)
        if (t->capture == g)
            stop_capture(t);
    if (default_stream.capture == g)
        stop_capture(&default_stream);
    *out = g;
    return CU_OK;
}

int work_submit(struct cuda *c, void *stream, struct cu_work *w)
{
    struct cu_stream *s = stream_of(stream);
    struct cu_node *n;

    if (!s)
        return CU_INVALID_HANDLE;
    if (!s->capture) {
        int rc = work_run(c, w, s);

        return rc ? rc : CU_OK;
    }
    n = graph_add(s->capture, w, s->last, s->last_count);
    remember(&s->last, &s->last_count, &n, 1);
    return CU_OK;
}

int event_record(struct cuda *c, struct cu_event *e, void *stream)
{
    struct cu_stream *s = stream_of(stream);

    (void)c;
    if (!s || !e)
        return CU_INVALID_HANDLE;
    if (s->capture) {
        e->capture = s->capture;
        remember(&e->at, &e->at_count, s->last, s->last_count);
        return CU_OK;
    }
    e->capture = NULL;
    e->us = clock_us();
    return CU_OK;
}

/* A stream that waits for captured work is also captured from then on. */
int stream_wait(void *handle, struct cu_event *e)
{
    struct cu_stream *s = stream_of(handle);
    struct cu_node **all;

    if (!s || !e)
        return CU_INVALID_HANDLE;
    if (!e->capture)
        return CU_OK;
    if (!s->capture)
        s->capture = e->capture;
    if (s->capture != e->capture)
        return CU_CAPTURE_UNSUPPORTED;
    all = xmalloc((s->last_count + e->at_count + 1) * sizeof *all);
    if (s->last_count)
        memcpy(all, s->last, s->last_count * sizeof *all);
    if (e->at_count)
        memcpy(all + s->last_count, e->at, e->at_count * sizeof *all);
    remember(&s->last, &s->last_count, all, s->last_count + e->at_count);
    xfree(all);
    return CU_OK;
}
