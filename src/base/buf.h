/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h - a growing byte buffer with a limit given at birth.
 *
 *     struct buf b = buf_init(1 << 20);
 *     buf_printf(&b, "%d lines", n);
 *     ... b.data is '\0'-terminated, b.len bytes ...
 *     buf_release(&b);
 *
 * Bytes beyond the limit are dropped and `overflowed` is set: a buffer never fails and never grows
 * without bound. The caller decides whether overflow is an error.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/mem.h"

#include <stdint.h>

struct buf {
    char *data;
    size_t len, cap, limit;
    bool overflowed;
};

struct buf buf_init(size_t limit);
void buf_release(struct buf *b);
void buf_clear(struct buf *b);
void buf_add(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap);
/* For a terminal: keeps line ends and tabs; writes other control characters, and bytes that are not
 * UTF-8, as escapes such as \x1b. */
void buf_put_visible(struct buf *b, const char *data, size_t len);
struct text buf_text(const struct buf *b);                  /* borrowed until the next change */
struct text buf_copy(const struct buf *b, struct arena *a); /* a copy in the arena */

#endif
