/* buf.c - a growing byte buffer that never passes its limit. */
#include "base/buf.h"

#include "base/error.h"

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

struct text buf_text(const struct buf *b)
{
    return b->data ? (struct text){b->data, b->len} : (struct text){"", 0};
}

struct text buf_copy(const struct buf *b, struct arena *a)
{
    struct text t = buf_text(b);

    return arena_text(a, t.data, t.len);
}
