/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lex.c - C++ source as tokens.
 *
 * Invariants
 * 1. Works on a copy without line splices; line_of[] has each byte's line in the original file.
 * 2. An unterminated comment or string ends with the file: never an error here, since the
 *    compiler's message is better.
 */
#include "toolchain/lex.h"

#include <ctype.h>
#include <string.h>

struct lexer {
    const char *s;
    size_t len, at;
    const int *line_of;
    struct token *out;
    size_t count, cap;
    struct arena *a;
    bool fresh; /* nothing but space since the last newline */
};

static struct text unsplice(struct text in, struct arena *a, int **lines)
{
    char *s = arena_alloc(a, in.len + 1);
    int *line_of = arena_array(a, in.len + 1, sizeof *line_of);
    size_t n = 0;
    int line = 1;
    for (size_t i = 0; i < in.len; i++) {
        if (in.data[i] == '\\' && i + 1 < in.len && in.data[i + 1] == '\n') {
            i++, line++;
            continue;
        }
        if (in.data[i] == '\\' && i + 2 < in.len && in.data[i + 1] == '\r' &&
            in.data[i + 2] == '\n') {
            i += 2, line++;
            continue;
        }
        line_of[n] = line;
        s[n++] = in.data[i];
        line += in.data[i] == '\n';
    }
    line_of[n] = line;
    *lines = line_of;
    return (struct text){s, n};
}

static char peek(const struct lexer *l, size_t ahead)
{
    return l->at + ahead < l->len ? l->s[l->at + ahead] : '\0';
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 128;
}

static void skip_space(struct lexer *l)
{
    while (l->at < l->len) {
        char c = l->s[l->at];
        if (c == '\n') {
            l->fresh = true;
            l->at++;
        } else if (isspace((unsigned char)c)) {
            l->at++;
        } else if (c == '/' && peek(l, 1) == '/') {
            while (l->at < l->len && l->s[l->at] != '\n')
                l->at++;
        } else if (c == '/' && peek(l, 1) == '*') {
            const char *end = memmem(l->s + l->at + 2, l->len - l->at - 2, "*/", 2);
            l->at = end ? (size_t)(end - l->s) + 2 : l->len;
        } else {
            return;
        }
    }
}

static void skip_quoted(struct lexer *l, char quote)
{
    l->at++;
    while (l->at < l->len && l->s[l->at] != quote && l->s[l->at] != '\n')
        l->at += l->s[l->at] == '\\' && l->at + 1 < l->len ? 2 : 1;
    if (l->at < l->len && l->s[l->at] == quote)
        l->at++;
}

/* R"delimiter( ... )delimiter" */
static void skip_raw(struct lexer *l)
{
    size_t open = l->at + 1, close;
    while (open < l->len && l->s[open] != '(' && open - l->at < 18)
        open++;
    close = open;
    for (size_t n = open - l->at - 1; close < l->len; close++)
        if (l->s[close] == ')' && close + n + 1 < l->len && l->s[close + n + 1] == '"' &&
            memcmp(l->s + close + 1, l->s + l->at + 1, n) == 0) {
            l->at = close + n + 2;
            return;
        }
    l->at = l->len;
}

static bool is_string_prefix(const char *s, size_t n, bool *raw)
{
    static const char *const prefixes[] = {"L", "u", "U", "u8", "R", "LR", "uR", "UR", "u8R"};
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (strlen(prefixes[i]) == n && memcmp(prefixes[i], s, n) == 0) {
            *raw = s[n - 1] == 'R';
            return true;
        }
    return false;
}

static enum token_kind scan_name(struct lexer *l)
{
    size_t begin = l->at;
    bool raw = false;
    while (is_name(peek(l, 0)))
        l->at++;
    if (peek(l, 0) == '"' && is_string_prefix(l->s + begin, l->at - begin, &raw)) {
        if (raw)
            skip_raw(l);
        else
            skip_quoted(l, '"');
        return TOKEN_STRING;
    }
    return TOKEN_NAME;
}

static void scan_number(struct lexer *l)
{
    for (;;) {
        char c = peek(l, 0);
        bool sign = (c == '+' || c == '-') && strchr("eEpP", l->s[l->at - 1]) != NULL;
        if (!is_name(c) && c != '.' && !sign && !(c == '\'' && is_name(peek(l, 1))))
            return;
        l->at++;
    }
}

static enum token_kind scan(struct lexer *l)
{
    char c = peek(l, 0);
    if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)peek(l, 1)))) {
        l->at++;
        scan_number(l);
        return TOKEN_NUMBER;
    }
    if (is_name(c))
        return scan_name(l);
    if (c == '"') {
        skip_quoted(l, '"');
        return TOKEN_STRING;
    }
    if (c == '\'') {
        skip_quoted(l, '\'');
        return TOKEN_CHAR;
    }
    l->at += (c == ':' && peek(l, 1) == ':') || (c == '-' && peek(l, 1) == '>') ? 2 : 1;
    return TOKEN_PUNCT;
}

static void push(struct lexer *l, struct token t)
{
    if (l->count == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 1024;
        struct token *more = arena_array(l->a, cap, sizeof *more);
        if (l->count)
            memcpy(more, l->out, l->count * sizeof *more);
        l->out = more;
        l->cap = cap;
    }
    l->out[l->count++] = t;
}

struct tokens lex(struct text source, struct arena *a)
{
    int *line_of;
    struct text clean = unsplice(source, a, &line_of);
    struct lexer l = {.s = clean.data, .len = clean.len, .line_of = line_of, .a = a, .fresh = true};

    for (skip_space(&l); l.at < l.len; skip_space(&l)) {
        size_t begin = l.at;
        struct token t = {.line = line_of[begin], .first = l.fresh};
        l.fresh = false;
        t.kind = scan(&l);
        t.text = (struct text){l.s + begin, l.at - begin};
        t.last_line = line_of[l.at - 1];
        push(&l, t);
    }
    return (struct tokens){l.out, l.count};
}

bool token_is(const struct token *t, const char *text)
{
    return t->text.len == strlen(text) && memcmp(t->text.data, text, t->text.len) == 0;
}

size_t lex_directive_end(struct tokens t, size_t i)
{
    size_t end = i + 1;
    while (end < t.count && !t.at[end].first)
        end++;
    return end;
}
