/* SPDX-License-Identifier: Apache-2.0 */
/* buf.c - a growing byte buffer that never passes its limit. */
#include "base/buf.h"

#include "base/error.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

struct buf buf_init(size_t limit)
{
    return (struct buf){.limit = limit};
}

void buf_release(struct buf *b)
{
    xfree(b->data);
    *b = buf_init(b->limit);
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->overflowed = false;
    if (b->data)
        b->data[0] = '\0';
}

/* Makes room for up to `len` more bytes and says how many fit. */
static size_t buf_room(struct buf *b, size_t len)
{
    size_t room = b->limit - b->len;

    if (len > room) {
        len = room;
        b->overflowed = true;
    }
    if (b->len + len + 1 > b->cap) {
        size_t cap = b->cap ? b->cap : 256;

        while (cap < b->len + len + 1)
            cap *= 2;
        b->data = xrealloc(b->data, cap);
        b->cap = cap;
    }
    return len;
}

void buf_add(struct buf *b, const void *data, size_t len)
{
    len = buf_room(b, len);
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_putc(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    char small[512];
    va_list again;
    int len;

    va_copy(again, ap);
    len = vsnprintf(small, sizeof(small), fmt, ap);
    if (len < 0)
        BUG("bad format '%s'", fmt);
    if ((size_t)len < sizeof(small)) {
        buf_add(b, small, (size_t)len);
    } else {
        char *big = xmalloc((size_t)len + 1);

        vsnprintf(big, (size_t)len + 1, fmt, again);
        buf_add(b, big, (size_t)len);
        xfree(big);
    }
    va_end(again);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

/* C0, DEL, and the same again behind 0xc2; and what turns the direction of a line. */
static bool is_control(const unsigned char *p, size_t len)
{
    if (len == 1)
        return (p[0] < 0x20 && p[0] != '\n' && p[0] != '\t') || p[0] == 0x7f;
    if (len == 2)
        return p[0] == 0xc2 && p[1] < 0xa0;
    return len == 3 && p[0] == 0xe2 &&
           ((p[1] == 0x80 && p[2] >= 0xa8 && p[2] <= 0xae) ||
            (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9));
}

void buf_put_visible(struct buf *b, const char *data, size_t len)
{
    const unsigned char *p = (const unsigned char *)data;
    uint32_t code;

    for (size_t i = 0, n; i < len; i += n) {
        n = text_first_character((struct text){data + i, len - i}, &code);
        if (n > 0 && !is_control(p + i, n)) {
            buf_add(b, p + i, n);
            continue;
        }
        n = n ? n : 1;
        for (size_t k = 0; k < n; k++)
            buf_printf(b, "\\x%02x", p[i + k]);
    }
}

struct text buf_text(const struct buf *b)
{
    return b->data ? (struct text){b->data, b->len} : (struct text){"", 0};
}

struct text buf_copy(const struct buf *b, struct arena *a)
{
    struct text t = buf_text(b);

    return arena_text(a, t.data, t.len);
}
