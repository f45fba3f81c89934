/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passages.c - reads CuTe's headers and cuts them at their top-level declarations.
 *
 * CuTe's style makes it simple: a declaration begins at column 0 and its body
 * ends with a brace at column 0; the comment above belongs to it.
 */
#include "llm/prompt/passages.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/text.h"

#include <ctype.h>
#include <dirent.h>
#include <string.h>

enum { MAX_HEADER = 8 << 20, MAX_SHOWN = 2600, MAX_PASSAGE_LINES = 90, MAX_DEPTH = 4 };

struct cutter {
    const char *file;
    passage_fn *each;
    void *ctx;
    struct text text;
    size_t begin;
    int first, lines;
    struct buf names;
    bool alias; /* the last line was a using declaration */
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static void add_name(struct cutter *c, const char *p, size_t n)
{
    static const char *const none[] = {"decltype", "cutlass", "std", "cute", "detail", "requires"};

    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        if (strlen(none[i]) == n && memcmp(none[i], p, n) == 0)
            return;
    if (n > 1 && n < 80 && c->names.len < 900) {
        if (c->names.len)
            buf_putc(&c->names, ' ');
        buf_add(&c->names, p, n);
    }
}

/* The declared name in a line at column 0: "struct NAME", "using NAME", "NAME(...". */
static void names_of_line(struct cutter *c, struct text l)
{
    static const char *const heads[] = {"struct ", "class ", "using ", "concept "};
    const char *paren;
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        size_t skip = strlen(heads[i]);

        if (!text_starts(l, heads[i]))
            continue;
        for (;;) { /* "using cutlass::half_t;" declares half_t */
            while (skip + n < l.len && is_word(l.data[skip + n]))
                n++;
            if (skip + n + 2 >= l.len || memcmp(l.data + skip + n, "::", 2) != 0)
                break;
            skip += n + 2;
            n = 0;
        }
        add_name(c, l.data + skip, n);
        return;
    }
    if (text_starts(l, "static constexpr") || text_starts(l, "constexpr") ||
        text_starts(l, "inline constexpr") || text_starts(l, "CUTE_INLINE_CONSTANT")) {
        const char *eq = memchr(l.data, '=', l.len);

        while (eq && eq > l.data && eq[-1] == ' ')
            eq--;
        while (eq && eq - n > l.data && is_word(eq[-1 - (ptrdiff_t)n]))
            n++;
        if (eq)
            add_name(c, eq - n, n);
        return;
    }
    if (!l.len || !isalpha((unsigned char)l.data[0]) || text_starts(l, "template") ||
        text_starts(l, "requires") || text_starts(l, "namespace"))
        return;
    paren = memchr(l.data, '(', l.len);
    if (!paren)
        return;
    while (paren > l.data + n && is_word(paren[-1 - (ptrdiff_t)n]))
        n++;
    add_name(c, paren - n, n);
}

static void flush(struct cutter *c, size_t end)
{
    struct text t = {c->text.data + c->begin, end - c->begin};

    if (c->names.len && t.len) {
        if (t.len > MAX_SHOWN) {
            t.len = MAX_SHOWN;
            while (t.len && t.data[t.len - 1] != '\n')
                t.len--;
        }
        while (t.len && isspace((unsigned char)t.data[t.len - 1]))
            t.len--;
        c->each(c->ctx, c->file, c->first, c->lines ? c->lines : 1, c->names.data, t);
    }
    buf_clear(&c->names);
    c->begin = end;
    c->first += c->lines;
    c->lines = 0;
}

static void cut_file(struct cutter *c)
{
    struct text rest = c->text;

    for (struct text l; text_next_line(&rest, &l);) {
        bool blank = text_trim(l).len == 0;

        if (!blank && !isspace((unsigned char)l.data[0]))
            names_of_line(c, l);
        c->lines++;
        if (text_starts(l, "}") || (blank && (!c->names.len || c->alias)) ||
            c->lines >= MAX_PASSAGE_LINES)
            flush(c, (size_t)(rest.data - c->text.data));
        if (!blank)
            c->alias = (text_starts(l, "using ") || text_starts(l, "static constexpr")) &&
                       memchr(l.data, ';', l.len);
    }
    flush(c, c->text.len);
}

/* Newer architectures and the long lists of instruction variants only crowd out the rest. */
static bool is_skipped(const char *name)
{
    static const char *const parts[] = {"sm100", "sm120", "sparse", "_ext.", "sm61", "sm70"};

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (strstr(name, parts[i]))
            return true;
    return false;
}

static void read_header(const char *path, const char *file, passage_fn *each, void *ctx)
{
    struct arena *a = arena_new();
    struct error none = {0};
    struct cutter c = {.file = file, .each = each, .ctx = ctx, .first = 1, .names = buf_init(1024)};

    if (file_read(path, MAX_HEADER, a, &c.text, &none))
        cut_file(&c);
    buf_release(&c.names);
    arena_free(a);
}

static void read_dir(const char *dir, const char *prefix, passage_fn *each, void *ctx, int depth)
{
    DIR *d = depth < MAX_DEPTH ? opendir(dir) : NULL;
    struct dirent *e;

    while (d && (e = readdir(d)) != NULL) {
        struct arena *a = arena_new();
        char *path = path_join(a, dir, e->d_name), *file = path_join(a, prefix, e->d_name);
        size_t n = strlen(e->d_name);

        if (e->d_name[0] != '.' && !is_skipped(e->d_name)) {
            if (n > 4 && strcmp(e->d_name + n - 4, ".hpp") == 0)
                read_header(path, file, each, ctx);
            else if (!strchr(e->d_name, '.'))
                read_dir(path, file, each, ctx, depth + 1);
        }
        arena_free(a);
    }
    if (d)
        closedir(d);
}

bool passages_read(const char *include_dir, passage_fn *each, void *ctx, struct error *err)
{
    struct arena *a = arena_new();
    char *dir = path_join(a, include_dir, "cute");
    bool ok = file_exists(dir);

    if (ok)
        read_dir(dir, "cute", each, ctx, 0);
    else
        error_set(err, ERROR_MACHINE, "no CuTe headers in %s", include_dir);
    arena_free(a);
    return ok;
}
