/* SPDX-License-Identifier: Apache-2.0 */
/*
 * used_text.c - of a library of C text, what other text uses.
 *
 * Hides: what belongs together. A C compiler reads a function without callers as slowly as any
 * other, and a small kernel calls a tenth of them.
 */
#include "simt/emit/used_text.h"

#include "simt/ptx/ptx.h"
#include "simt/ptx/string_map.h"

#include <ctype.h>
#include <string.h>

/* Lines that are there, or not, together: a function, a macro, or a line of other text. */
struct library_piece {
    struct text text, name; /* name: empty where it is always there */
    int same;               /* another piece of that name, as #if has them; -1: none */
    bool used;
};

struct library {
    struct arena *a;
    struct library_piece *piece;
    int count, cap;
    struct strmap by_name;
    int *todo, waiting;
};

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static struct text word_at(const char *p, const char *end)
{
    const char *q = p;
    while (q < end && in_word(*q))
        q++;
    return (struct text){p, (size_t)(q - p)};
}

static const char *line_end(const char *p, const char *end)
{
    const char *q = memchr(p, '\n', (size_t)(end - p));
    return q ? q + 1 : end;
}

static bool starts(const char *p, const char *end, const char *with)
{
    size_t n = strlen(with);
    return (size_t)(end - p) >= n && memcmp(p, with, n) == 0;
}

/* The word before the first parenthesis. */
static struct text function_name(const char *p, const char *end)
{
    const char *q = memchr(p, '(', (size_t)(end - p));
    const char *b = q ? q : p;
    while (b > p && in_word(b[-1]))
        b--;
    return (struct text){b, q ? (size_t)(q - b) : 0};
}

/* The piece at p; where it ends. */
static const char *cut(const char *p, const char *end, struct text *name)
{
    *name = (struct text){p, 0};
    const char *q = line_end(p, end);
    if (starts(p, end, "AI ") || starts(p, end, "NI ")) {
        *name = function_name(p, end);
        while (q < end && !starts(q, end, "}\n"))
            q = line_end(q, end);
        return q < end ? line_end(q, end) : q;
    }
    if (starts(p, end, "#define ")) {
        *name = word_at(p + strlen("#define "), end);
        while (q < end && q - p > 1 && q[-2] == '\\')
            q = line_end(q, end);
    }
    struct text maker = word_at(p, end);
    if (maker.len && maker.data[maker.len] == '(') /* MIN_MAX(V_mins, ... defines V_mins */
        *name = word_at(p + maker.len + 1, end);
    return q;
}

static const char *comment_end(const char *p, const char *end)
{
    const char *q = memmem(p, (size_t)(end - p), "*/", 2);
    return q ? line_end(q, end) : end;
}

static void piece_add(struct library *s, struct text text, struct text name)
{
    GROW(s->a, s->piece, s->count, s->cap);
    int same = name.len ? strmap_get(&s->by_name, name.data, name.len) : -1;
    s->piece[s->count] = (struct library_piece){text, name, same, false};
    if (name.len)
        strmap_put(&s->by_name, name.data, name.len, s->count);
    s->count++;
}

static void take(struct library *s, int i)
{
    for (; i >= 0; i = s->piece[i].same)
        if (!s->piece[i].used) {
            s->piece[i].used = true;
            s->todo[s->waiting++] = i;
        }
}

/* Words in strings and comments count as well: at worst, something is there for nothing. */
static void take_words(struct library *s, struct text t)
{
    const char *p = t.data, *end = t.data + t.len;
    while (p < end) {
        struct text w = word_at(p, end);
        if (w.len && !isdigit((unsigned char)*p))
            take(s, strmap_get(&s->by_name, w.data, w.len));
        p += w.len ? w.len : 1;
    }
}

void used_text(struct text library, const struct text *users, size_t n, struct arena *a,
               struct buf *out)
{
    struct library s = {.a = a, .by_name = strmap_init(a)};
    const char *p = library.data, *end = library.data + library.len;
    while (p < end) {
        struct text name;
        if (starts(p, end, "/*")) {
            p = comment_end(p, end);
            continue;
        }
        const char *q = cut(p, end, &name);
        piece_add(&s, (struct text){p, (size_t)(q - p)}, name);
        p = q;
    }
    s.todo = arena_array(a, (size_t)s.count + 1, sizeof *s.todo);
    for (int i = 0; i < s.count; i++)
        if (!s.piece[i].name.len)
            take(&s, i);
    for (size_t i = 0; i < n; i++)
        take_words(&s, users[i]);
    while (s.waiting > 0)
        take_words(&s, s.piece[s.todo[--s.waiting]].text);
    for (int i = 0; i < s.count; i++)
        if (s.piece[i].used)
            buf_add(out, s.piece[i].text.data, s.piece[i].text.len);
}
