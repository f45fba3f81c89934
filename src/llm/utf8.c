/* utf8.c - decode, and put U+FFFD where that fails. */
#include "llm/utf8.h"

#include "base/buf.h"

#include <stdint.h>
#include <string.h>

/* Length of the valid sequence at p, or 0. NUL counts as bad: C strings end there. */
static size_t sequence(const unsigned char *p, size_t left)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = p[0] < 0x80   ? 1
               : p[0] < 0xc2 ? 0
               : p[0] < 0xe0 ? 2
               : p[0] < 0xf0 ? 3
               : p[0] < 0xf5 ? 4
                             : 0;
    uint32_t code;

    if (n < 2)
        return n && p[0] ? 1 : 0;
    if (n > left)
        return 0;
    code = p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3f);
    }
    if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    return n;
}

/* Bytes from p on that are plain ASCII without NUL, in steps of eight. */
static size_t ascii_run(const unsigned char *p, size_t left)
{
    size_t n = 0;

    for (uint64_t v; left - n >= sizeof(v); n += sizeof(v)) {
        memcpy(&v, p + n, sizeof(v));
        if ((v & 0x8080808080808080u) || ((v - 0x0101010101010101u) & ~v & 0x8080808080808080u))
            break;
    }
    return n;
}

struct text utf8_clean(struct text t, struct arena *a)
{
    const unsigned char *p = (const unsigned char *)t.data;
    size_t good = 0, n;
    struct buf b;
    struct text out;

    while (good += ascii_run(p + good, t.len - good), good < t.len) {
        n = sequence(p + good, t.len - good);
        if (!n)
            break;
        good += n;
    }
    if (good == t.len)
        return t;
    b = buf_init(t.len * 3 + 1);
    buf_add(&b, t.data, good);
    while (good < t.len) {
        n = sequence(p + good, t.len - good);
        if (n)
            buf_add(&b, t.data + good, n);
        else
            buf_puts(&b, "\xef\xbf\xbd");
        good += n ? n : 1;
    }
    out = buf_copy(&b, a);
    buf_release(&b);
    return out;
}
