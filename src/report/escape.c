/* SPDX-License-Identifier: Apache-2.0 */
/*
 * escape.c - one pass over the bytes; each character is passed on, escaped, or marked.
 *
 * Hides UTF-8. Control characters become their Unicode pictures (U+2400...),
 * the characters that turn the direction of writing are named, so
 * that source reads in the order in which it is compiled; bytes that are
 * no UTF-8 become U+FFFD.
 */
#include "report/escape.h"

#include "base/text.h"

#include <stdint.h>
#include <string.h>

static bool turns_direction(uint32_t c)
{
    return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e ||
           c == 0x200f || c == 0x061c;
}

/* True if c was replaced. */
static bool add_marked(struct buf *b, uint32_t c)
{
    if (c < 0x20 && c != '\n' && c != '\t')
        buf_printf(b, "\xe2\x90%c", (char)(0x80 + c)); /* U+2400 + c */
    else if (c == 0x7f)
        buf_puts(b, "\xe2\x90\xa1");
    else if (c >= 0x80 && c < 0xa0)
        buf_puts(b, "\xef\xbf\xbd");
    else if (turns_direction(c) || c == 0xfeff || c == 0x2028 || c == 0x2029 ||
             (c & 0xfffe) == 0xfffe)
        buf_printf(b, "[U+%04X]", c);
    else
        return false;
    return true;
}

static const char *entity(uint32_t c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

static void add(struct buf *b, struct text t, bool html)
{
    const unsigned char *p = (const unsigned char *)t.data;
    uint32_t c = 0;

    for (size_t i = 0; i < t.len;) {
        size_t n = text_first_character((struct text){t.data + i, t.len - i}, &c);
        if (n == 0) {
            buf_puts(b, "\xef\xbf\xbd");
            i++;
            continue;
        }
        bool crlf = c == '\r' && i + 1 < t.len && p[i + 1] == '\n';
        const char *e = html ? entity(c) : NULL;
        if (e)
            buf_puts(b, e);
        else if (!crlf && !add_marked(b, c))
            buf_add(b, p + i, n);
        i += n;
    }
}

void html_add(struct buf *b, struct text t)
{
    add(b, t, true);
}

void html_puts(struct buf *b, const char *s)
{
    if (s)
        html_add(b, text_of(s));
}

void plain_add(struct buf *b, struct text t)
{
    add(b, t, false);
}

const char *plain(const char *s, struct arena *a)
{
    struct buf b = buf_init(1 << 20);

    if (s)
        plain_add(&b, text_of(s));
    char *out = arena_strndup(a, b.len ? b.data : "", b.len);
    buf_release(&b);
    for (char *p = out; *p; p++)
        if (*p == '\n' || *p == '\t')
            *p = ' ';
    return out;
}
