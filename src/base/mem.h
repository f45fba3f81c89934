/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem.h - memory: arenas for results, xmalloc for the rest.
 *
 * An arena owns everything allocated in it; arena_free() ends all of it.
 * A `struct arena *a` parameter means: the results live there. A `const T *`
 * parameter is borrowed for the call. Out of memory aborts.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Borrowed bytes; data[len] is '\0' when an arena made them. */
struct text {
    const char *data;
    size_t len;
};

struct arena;
struct arena *arena_new(void);
void arena_free(struct arena *a); /* NULL is fine */

/* Runs fn(arg) when the arena is freed, last added first: for resources that are not arena
 * memory. */
void arena_defer(struct arena *a, void (*fn)(void *arg), void *arg);

void *arena_alloc(struct arena *a, size_t size); /* zeroed, aligned for anything */
void *arena_array(struct arena *a, size_t count, size_t size);
/* Returns `items`, or a larger copy when all *cap of them are in use; *cap starts at 0. */
void *arena_grow(struct arena *a, void *items, size_t count, size_t *cap, size_t size);
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t len);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap);
struct text arena_text(struct arena *a, const char *data, size_t len);
size_t arena_bytes(const struct arena *a); /* bytes in use, for tests of limits */

struct text text_of(const char *s); /* borrows s */
bool text_equal(struct text a, struct text b);
bool text_starts(struct text t, const char *prefix);

void *xmalloc(size_t size); /* zeroed */
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *s);
void xfree(void *p);
/* Zeroed pages that cost memory and time only when touched: for large, mostly empty tables. */
void *xmap(size_t size);
void xunmap(void *p, size_t size); /* NULL is fine */

#define ARRAY_LEN(x) (sizeof(x) / sizeof((x)[0]))

#endif
