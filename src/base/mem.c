/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem.c - arenas as a list of chunks; the only place that calls malloc.
 *
 * A request larger than a quarter of a chunk gets a chunk of its own, so that
 * one large block does not waste the rest of a chunk.
 */
#include "base/mem.h"

#include "base/error.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CHUNK_BYTES = 16 * 1024, ALIGN = alignof(max_align_t) };

struct chunk {
    struct chunk *next;
    size_t used, size;
    alignas(max_align_t) char data[];
};

struct deferred {
    struct deferred *next;
    void (*fn)(void *arg);
    void *arg;
};

struct arena {
    struct chunk *chunks; /* the first one is being filled */
    struct deferred *deferred;
    size_t bytes;
};

struct arena *arena_new(void)
{
    return xmalloc(sizeof(struct arena));
}

void arena_free(struct arena *a)
{
    struct chunk *next;

    if (!a)
        return;
    for (struct deferred *d = a->deferred; d; d = d->next)
        d->fn(d->arg);
    for (struct chunk *c = a->chunks; c; c = next) {
        next = c->next;
        xfree(c);
    }
    xfree(a);
}

void arena_defer(struct arena *a, void (*fn)(void *arg), void *arg)
{
    struct deferred *d = arena_alloc(a, sizeof(*d));

    *d = (struct deferred){a->deferred, fn, arg};
    a->deferred = d;
}

static struct chunk *chunk_new(struct arena *a, size_t size)
{
    struct chunk *c = xmalloc(sizeof(*c) + size);

    c->size = size;
    a->bytes += sizeof(*c) + size;
    return c;
}

void *arena_alloc(struct arena *a, size_t size)
{
    struct chunk *c = a->chunks;
    void *p;

    if (size > SIZE_MAX / 2)
        BUG("arena_alloc of %zu bytes", size);
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (size > CHUNK_BYTES / 4) {
        c = chunk_new(a, size);
        c->used = size;
        if (a->chunks) { /* keep filling the current one */
            c->next = a->chunks->next;
            a->chunks->next = c;
        } else {
            a->chunks = c;
        }
        return c->data;
    }
    if (!c || c->size - c->used < size) {
        c = chunk_new(a, CHUNK_BYTES);
        c->next = a->chunks;
        a->chunks = c;
    }
    p = c->data + c->used;
    c->used += size;
    return p;
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / 2 / size)
        BUG("arena_array of %zu x %zu bytes", count, size);
    return arena_alloc(a, count * size);
}

void *arena_grow(struct arena *a, void *items, size_t count, size_t *cap, size_t size)
{
    void *bigger;

    if (count < *cap)
        return items;
    *cap = *cap ? *cap * 2 : 16;
    bigger = arena_array(a, *cap, size);
    if (count)
        memcpy(bigger, items, count * size);
    return bigger;
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
    char *p = arena_alloc(a, len + 1);

    if (len)
        memcpy(p, s, len);
    p[len] = '\0';
    return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
{
    va_list again;
    char *p;
    int len;

    if (!fmt)
        BUG("no format");
    va_copy(again, ap);
    len = vsnprintf(NULL, 0, fmt, ap);
    if (len < 0)
        BUG("bad format '%s'", fmt);
    p = arena_alloc(a, (size_t)len + 1);
    vsnprintf(p, (size_t)len + 1, fmt, again);
    va_end(again);
    return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    char *p;

    va_start(ap, fmt);
    p = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return p;
}

struct text arena_text(struct arena *a, const char *data, size_t len)
{
    return (struct text){arena_strndup(a, data, len), len};
}

size_t arena_bytes(const struct arena *a)
{
    return a->bytes;
}

struct text text_of(const char *s)
{
    return (struct text){s, strlen(s)};
}

bool text_equal(struct text a, struct text b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

bool text_starts(struct text t, const char *prefix)
{
    size_t len = strlen(prefix);

    return t.len >= len && memcmp(t.data, prefix, len) == 0;
}

static _Noreturn void out_of_memory(size_t size)
{
    fprintf(stderr, "cutegen: out of memory (%zu bytes wanted)\n", size);
    abort();
}

void *xmalloc(size_t size)
{
    void *p = calloc(1, size ? size : 1);

    if (!p)
        out_of_memory(size);
    return p;
}

void *xrealloc(void *p, size_t size)
{
    void *q = realloc(p, size ? size : 1);

    if (!q)
        out_of_memory(size);
    return q;
}

char *xstrdup(const char *s)
{
    size_t len = strlen(s) + 1;
    char *p = xmalloc(len);

    memcpy(p, s, len);
    return p;
}

void xfree(void *p)
{
    free(p);
}

void *xmap(size_t size)
{
    void *p = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED)
        out_of_memory(size);
    return p;
}

void xunmap(void *p, size_t size)
{
    if (p)
        munmap(p, size ? size : 1);
}
