/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - lines, white space and UTF-8 in byte strings. */
#include "base/text.h"

#include "base/buf.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

bool text_next_line(struct text *rest, struct text *line)
{
    const char *newline;

    if (!rest->len)
        return false;
    newline = memchr(rest->data, '\n', rest->len);
    line->data = rest->data;
    line->len = newline ? (size_t)(newline - rest->data) : rest->len;
    rest->data += line->len + (newline != NULL);
    rest->len -= line->len + (newline != NULL);
    return true;
}

bool text_next_whole_line(struct text *rest, struct text *line)
{
    if (!text_next_line(rest, line))
        return false;
    line->len = (size_t)(rest->data - line->data);
    return true;
}

size_t text_line_count(struct text t)
{
    size_t count = t.len && t.data[t.len - 1] != '\n';

    for (size_t i = 0; i < t.len; i++)
        count += t.data[i] == '\n';
    return count;
}

struct text *text_lines(struct text t, struct arena *a, size_t *count)
{
    struct text *lines = arena_array(a, text_line_count(t) + 1, sizeof(*lines));

    for (*count = 0; text_next_line(&t, &lines[*count]);)
        ++*count;
    return lines;
}

struct text text_line(struct text t, int number)
{
    struct text line = {t.data, 0};

    for (int i = 0; i < number; i++)
        if (!text_next_line(&t, &line))
            return (struct text){t.data, 0};
    return line;
}

struct text text_line_around(struct text t, size_t at)
{
    struct text line = {t.data, 0};

    while (at > 0 && t.data[at - 1] != '\n')
        at--;
    t.data += at;
    t.len -= at;
    line.data = t.data;
    (void)text_next_line(&t, &line);
    return line;
}

struct text text_trim_left(struct text t)
{
    while (t.len && isspace((unsigned char)t.data[0]))
        t.data++, t.len--;
    return t;
}

struct text text_trim(struct text t)
{
    t = text_trim_left(t);
    while (t.len && isspace((unsigned char)t.data[t.len - 1]))
        t.len--;
    return t;
}

/* ---- UTF-8 ------------------------------------------------------------------ */

/* Length of a character whose first byte this is; 0: no character begins so. */
static size_t character_bytes(unsigned char first)
{
    return first < 0x80   ? 1
           : first < 0xc2 ? 0
           : first < 0xe0 ? 2
           : first < 0xf0 ? 3
           : first < 0xf5 ? 4
                          : 0;
}

size_t text_first_character(struct text t, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)t.data;
    size_t n = t.len ? character_bytes(p[0]) : 0;
    uint32_t c;

    if (n == 0 || n > t.len)
        return 0;
    c = n == 1 ? p[0] : p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3fu);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *code = c;
    return n;
}

/* Number of ASCII bytes without NUL from p on, in multiples of eight. */
static size_t ascii_run(const char *p, size_t left)
{
    size_t n = 0;

    for (uint64_t v; left - n >= sizeof(v); n += sizeof(v)) {
        memcpy(&v, p + n, sizeof(v));
        if ((v & 0x8080808080808080u) || ((v - 0x0101010101010101u) & ~v & 0x8080808080808080u))
            break;
    }
    return n;
}

/* Length of the character at `at` if it may stay; NUL may not, because it ends C strings. */
static size_t good_character(struct text t, size_t at)
{
    uint32_t code = 0;
    size_t n = text_first_character((struct text){t.data + at, t.len - at}, &code);

    return code ? n : 0;
}

struct text text_clean(struct text t, struct arena *a)
{
    size_t good = 0, n;
    struct text out;
    struct buf b;

    while (good += ascii_run(t.data + good, t.len - good), good < t.len) {
        n = good_character(t, good);
        if (!n)
            break;
        good += n;
    }
    if (good == t.len)
        return t;
    b = buf_init(t.len * 3 + 1);
    buf_add(&b, t.data, good);
    while (good < t.len) {
        n = good_character(t, good);
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

struct text text_cut(struct text t, size_t most)
{
    size_t begin;

    if (t.len > most)
        t.len = most;
    /* The last character begins at most four bytes before the end. */
    for (begin = t.len; begin > 0 && t.len - begin < 4;) {
        unsigned char byte = (unsigned char)t.data[--begin];

        if ((byte & 0xc0) == 0x80)
            continue;
        if (character_bytes(byte) > t.len - begin)
            t.len = begin;
        break;
    }
    return t;
}

void text_format(char *out, size_t size, const char *fmt, va_list ap)
{
    int n = vsnprintf(out, size, fmt, ap);

    if (n >= 0 && (size_t)n >= size)
        out[text_cut((struct text){out, size - 1}, size - 1).len] = '\0';
}
