/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code.c - source with line numbers, and diffs.
 *
 * Line numbers are drawn by the style sheet, so that copying takes the code
 * alone. The colouring knows comments, strings, numbers, directives and a few
 * words of C++ and CUDA, or of Python; it is for the eye, not a parser.
 */
#include "base/diff.h"
#include "base/text.h"
#include "report/escape.h"
#include "report/page.h"

#include <ctype.h>
#include <string.h>

enum { CONTEXT = 3 };

static const char *const words[] = {
    "alignas",    "auto",       "bool",         "break",      "case",          "char",
    "class",      "const",      "continue",     "constexpr",  "default",       "do",
    "double",     "else",       "enum",         "extern",     "false",         "float",
    "for",        "if",         "inline",       "int",        "int64_t",       "long",
    "namespace",  "return",     "short",        "signed",     "size_t",        "sizeof",
    "static",     "struct",     "switch",       "template",   "true",          "typename",
    "uint32_t",   "unsigned",   "using",        "void",       "volatile",      "while",
    "__device__", "__global__", "__restrict__", "__shared__", "__syncthreads", "__launch_bounds__",
};

static const char *const python_words[] = {
    "and", "as",   "assert", "class",  "def",    "elif", "else",   "False",
    "for", "from", "if",     "import", "in",     "is",   "lambda", "None",
    "not", "or",   "pass",   "raise",  "return", "True", "while",  "with",
};

static bool is_one_of(const char *const *list, size_t count, const char *p, size_t len)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(list[i]) == len && memcmp(list[i], p, len) == 0)
            return true;
    return false;
}

static bool is_word(const char *p, size_t len, bool python)
{
    return python ? is_one_of(python_words, ARRAY_LEN(python_words), p, len)
                  : is_one_of(words, ARRAY_LEN(words), p, len);
}

/* A function or an import at the beginning of a line: no line of C++ begins like that. */
static bool is_python(struct text t)
{
    for (struct text line; text_next_line(&t, &line);)
        if (text_starts(line, "def ") || text_starts(line, "import ") || text_starts(line, "from "))
            return true;
    return false;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static void put_span(struct buf *b, const char *class, const char *p, size_t len)
{
    if (!len)
        return;
    if (class)
        buf_printf(b, "<span class=\"%s\">", class);
    html_add(b, (struct text){p, len});
    if (class)
        buf_puts(b, "</span>");
}

/* Length of the string that begins at p. */
static size_t string_length(const char *p, size_t len)
{
    size_t i = 1;
    while (i < len && p[i] != p[0])
        i += p[i] == '\\' && i + 1 < len ? 2 : 1;
    return i < len ? i + 1 : len;
}

static size_t comment_length(const char *p, size_t len, bool *open)
{
    for (size_t i = 0; i + 1 < len; i++) {
        if (p[i] == '*' && p[i + 1] == '/') {
            *open = false;
            return i + 2;
        }
    }
    *open = true;
    return len;
}

/* One token at p: its length, and its class or NULL. */
static size_t token(const char *p, size_t len, bool python, const char **class, bool *open)
{
    size_t n = 1;

    *class = NULL;
    if (python ? p[0] == '#' : len > 1 && p[0] == '/' && p[1] == '/') {
        *class = "tc";
        return len;
    }
    if (!python && len > 1 && p[0] == '/' && p[1] == '*') {
        *class = "tc";
        return 2 + comment_length(p + 2, len - 2, open);
    }
    if (p[0] == '"' || (p[0] == '\'' && len > 2)) {
        *class = "ts";
        return string_length(p, len);
    }
    if (!is_name(p[0]))
        return 1;
    while (n < len && (is_name(p[n]) || (p[n] == '.' && isdigit((unsigned char)p[0]))))
        n++;
    *class = isdigit((unsigned char)p[0]) ? "tn" : is_word(p, n, python) ? "tk" : NULL;
    return n;
}

/* Colours one line; `open`: a comment continues from the previous line. */
static void put_code(struct buf *b, struct text line, bool python, bool *open)
{
    const char *p = line.data, *end = p + line.len, *from, *class;
    size_t n = *open ? comment_length(p, line.len, open) : 0;

    put_span(b, "tc", p, n);
    p += n;
    from = p;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    const char *rest = p < end && *p == '#' && !python ? "tp" : NULL; /* a directive */
    for (; p < end; p += n) {
        n = token(p, (size_t)(end - p), python, &class, open);
        if (!class)
            continue;
        put_span(b, rest, from, (size_t)(p - from));
        put_span(b, class, p, n);
        from = p + n;
    }
    put_span(b, rest, from, (size_t)(end - from));
}

void code_source(struct buf *b, struct text source, struct arena *a)
{
    size_t count;
    struct text *lines = text_lines(source, a, &count);
    bool open = false, python = is_python(source);

    buf_puts(b, "<pre class=\"code\">");
    for (size_t i = 0; i < count; i++) {
        buf_puts(b, "<span class=\"l\">");
        put_code(b, lines[i], python, &open);
        buf_puts(b, "\n</span>");
    }
    buf_puts(b, "</pre>");
}

/* ---- diff ----------------------------------------------------------------- */

static bool near_change(const struct diff *d, size_t i)
{
    size_t from = i > CONTEXT ? i - CONTEXT : 0;
    size_t to = i + CONTEXT < d->count ? i + CONTEXT : d->count - 1;

    for (size_t k = from; k <= to; k++)
        if (d->lines[k].kind != DIFF_SAME)
            return true;
    return false;
}

static void put_diff_line(struct buf *b, const struct diff_line *l, bool python)
{
    static const char *const classes[] = {"d", "d gone", "d new"};
    bool open = false;

    buf_printf(b, "<span class=\"%s\"", classes[l->kind]);
    if (l->old_at)
        buf_printf(b, " data-o=\"%d\"", l->old_at);
    if (l->new_at)
        buf_printf(b, " data-n=\"%d\"", l->new_at);
    buf_puts(b, ">");
    put_code(b, l->text, python, &open);
    buf_puts(b, "\n</span>");
}

void code_diff(struct buf *b, struct text before, struct text after, struct arena *a)
{
    struct diff d = diff_make(before, after, a);
    bool python = is_python(after);
    size_t skipped = 0;

    if (!d.gone && !d.added) {
        buf_puts(b, "<p class=\"dim\">No line changed.</p>");
        return;
    }
    buf_puts(b, "<pre class=\"code diff\">");
    for (size_t i = 0; i < d.count; i++) {
        if (!near_change(&d, i)) {
            skipped++;
            continue;
        }
        if (skipped)
            buf_printf(b, "<span class=\"hunk\">%zu line%s unchanged\n</span>", skipped,
                       skipped == 1 ? "" : "s");
        skipped = 0;
        put_diff_line(b, &d.lines[i], python);
    }
    if (skipped)
        buf_printf(b, "<span class=\"hunk\">%zu line%s unchanged\n</span>", skipped,
                   skipped == 1 ? "" : "s");
    buf_puts(b, "</pre>");
}
