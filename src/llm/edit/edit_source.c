/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit_source.c - a source as lines, and finding quoted lines in it.
 *
 * Hides how lenient the search is: first exact bytes, then without trailing white space, then with
 * runs of white space as one blank. A more lenient comparison is tried only if the stricter one
 * finds nothing, and each must match exactly one place. In Python the blanks that a line begins
 * with always count: code put in at another depth means something else.
 */
#include "base/text.h"
#include "llm/edit/edit_parse.h"

#include <ctype.h>
#include <string.h>

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct text right_trim(struct text t)
{
    while (t.len && blank(t.data[t.len - 1]))
        t.len--;
    return t;
}

static uint64_t hash_byte(uint64_t h, char c)
{
    return (h ^ (unsigned char)c) * 0x100000001b3u;
}

/* How many bytes of a line's beginning are compared as they are. */
static size_t kept_blanks(struct text t, bool indented)
{
    size_t n = 0;

    while (indented && n < t.len && blank(t.data[n]))
        n++;
    return n;
}

static uint64_t line_hash(struct text t, int mode, bool indented)
{
    uint64_t h = 0xcbf29ce484222325u;
    size_t kept;

    if (mode > 0)
        t = right_trim(t);
    kept = kept_blanks(t, indented);
    for (size_t i = 0; i < t.len; i++) {
        if (mode == 2 && i >= kept && blank(t.data[i])) {
            if (i && !blank(t.data[i - 1]))
                h = hash_byte(h, ' ');
            continue;
        }
        h = hash_byte(h, t.data[i]);
    }
    return h;
}

/* Are the lines equal in this mode? Their hashes are. */
static bool line_same(struct text x, struct text y, int mode, bool indented)
{
    size_t i = kept_blanks(x, indented), k = kept_blanks(y, indented);

    if (mode == 0)
        return text_equal(x, y);
    x = right_trim(x);
    y = right_trim(y);
    if (mode == 1)
        return text_equal(x, y);
    if (i != k || (i && memcmp(x.data, y.data, i) != 0))
        return false;
    while (i < x.len && blank(x.data[i]))
        i++;
    while (k < y.len && blank(y.data[k]))
        k++;
    while (i < x.len && k < y.len) {
        if (blank(x.data[i]) != blank(y.data[k]))
            return false;
        if (!blank(x.data[i])) {
            if (x.data[i++] != y.data[k++])
                return false;
            continue;
        }
        while (i < x.len && blank(x.data[i]))
            i++;
        while (k < y.len && blank(y.data[k]))
            k++;
    }
    return i == x.len && k == y.len;
}

/* A function of Python at the beginning of a line: no line of C++ begins like that. */
static bool is_python(struct text t)
{
    for (struct text line; text_next_line(&t, &line);)
        if (text_starts(line, "def ") || text_starts(line, "@triton.") ||
            text_starts(line, "@cute."))
            return true;
    return false;
}

struct edit_source edit_source_of(struct text t, struct arena *a)
{
    struct edit_source s = {.eol = {"\n", 1}, .indented = is_python(t)};

    s.lines = arena_array(a, text_line_count(t) + 1, sizeof(*s.lines));
    for (struct text line; text_next_line(&t, &line);) {
        struct edit_line *l = &s.lines[s.count++];
        bool ended = t.data > line.data + line.len;

        if (ended && line.len && line.data[line.len - 1] == '\r')
            line.len--;
        l->text = line;
        l->end = (struct text){line.data + line.len, (size_t)(t.data - line.data) - line.len};
        for (int m = 0; m < EDIT_MODES; m++)
            l->hash[m] = line_hash(l->text, m, s.indented);
    }
    if (s.count && s.lines[0].end.len == 2)
        s.eol = s.lines[0].end;
    return s;
}

static bool match_at(const struct edit_source *s, size_t line, const struct text *want,
                     const uint64_t *hash, size_t count, int mode)
{
    if (line < 1 || line > s->count || count > s->count - (line - 1))
        return false;
    for (size_t i = 0; i < count; i++)
        if (s->lines[line - 1 + i].hash[mode] != hash[i])
            return false;
    for (size_t i = 0; i < count; i++)
        if (!line_same(s->lines[line - 1 + i].text, want[i], mode, s->indented))
            return false;
    return true;
}

struct edit_found edit_locate(const struct edit_source *s, const struct text *want, size_t count,
                              size_t hint)
{
    struct edit_found f = {.how = FOUND_NOT};
    uint64_t *hash;

    if (count == 0 || count > s->count)
        return f;
    hash = xmalloc(count * sizeof(*hash));
    for (int mode = 0; mode < EDIT_MODES && f.how == FOUND_NOT; mode++) {
        for (size_t i = 0; i < count; i++)
            hash[i] = line_hash(want[i], mode, s->indented);
        f.loose = mode == 2;
        if (match_at(s, hint, want, hash, count, mode)) {
            f.how = FOUND;
            f.line = hint;
            break;
        }
        for (size_t l = 1; l + count <= s->count + 1 && f.how != FOUND_TWICE; l++) {
            if (!match_at(s, l, want, hash, count, mode))
                continue;
            if (f.how == FOUND)
                f.how = FOUND_TWICE, f.other = l;
            else
                f.how = FOUND, f.line = l;
        }
    }
    xfree(hash);
    return f;
}

const struct text *edit_split(struct text t, struct arena *a, size_t *count)
{
    struct text *out = text_lines(t, a, count);

    if (*count == 0)
        out[(*count)++] = (struct text){t.data, 0}; /* one empty line */
    for (size_t i = 0; i < *count; i++)
        if (out[i].len && out[i].data[out[i].len - 1] == '\r')
            out[i].len--;
    return out;
}

bool edit_has_numbers(const struct text *lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t k = 0, digits = 0;

        while (k < lines[i].len && lines[i].data[k] == ' ')
            k++;
        while (k + digits < lines[i].len && isdigit((unsigned char)lines[i].data[k + digits]))
            digits++;
        if (!digits || k + digits >= lines[i].len || lines[i].data[k + digits] != '|')
            return false;
    }
    return count > 0;
}

struct text edit_numbered(struct text source, struct arena *a)
{
    struct edit_source s = edit_source_of(source, a);
    struct buf b = buf_init(source.len + s.count * 12 + 16);
    struct text t;

    for (size_t i = 0; i < s.count; i++) {
        buf_printf(&b, "%4zu| ", i + 1);
        buf_add(&b, s.lines[i].text.data, s.lines[i].text.len);
        buf_putc(&b, '\n');
    }
    t = buf_copy(&b, a);
    buf_release(&b);
    return t;
}
