/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_statements.c - see ptx_statements.h.
 *
 * Invariants
 * 1. A statement ends with ';', a label with ':', a block begins and ends with a brace. The few
 *    directives that end with their line are on a list, and nothing may follow them there.
 * 2. A brace behind the beginning of a statement is part of it (a vector, an initialiser), unless
 *    the statement is the head of a function or a section.
 * 3. Line marks in inline assembly are rejected: they could attribute an instruction to another
 *    place.
 */
#include "toolchain/ptx_statements.h"

#include "base/buf.h"

#include <ctype.h>
#include <string.h>

struct reader {
    struct text ptx;
    size_t at;
    int number; /* of the current line */
    int depth;  /* of blocks */
    int inner;  /* of braces within the statement */
    bool assembly;
    bool space;   /* one is owed */
    size_t begin; /* of the statement, in `out` */
    int begin_line;
    struct buf out;
    struct arena *a;
    struct ptx_statements *to;
    int room;
};

static bool is_open(const struct reader *r)
{
    return r->out.len > r->begin;
}

static struct text statement(const struct reader *r)
{
    struct text t = {r->out.data + r->begin, r->out.len - r->begin};

    if (t.len > 0 && *t.data == '\t')
        t.data++, t.len--;
    return t;
}

static void odd(struct reader *r, const char *what)
{
    if (r->to->odd_line == 0) {
        r->to->odd_line = r->number;
        r->to->odd = what;
    }
}

static void put(struct reader *r, char c)
{
    if (!is_open(r)) {
        r->begin_line = r->number;
        if (r->depth > 0)
            buf_add(&r->out, "\t", 1);
    } else if (r->space) {
        buf_add(&r->out, " ", 1);
    }
    r->space = false;
    buf_add(&r->out, &c, 1);
}

static bool starts(struct text t, const char *word)
{
    size_t len = strlen(word);

    return t.len >= len && memcmp(t.data, word, len) == 0 &&
           (t.len == len || isspace((unsigned char)t.data[len]));
}

static bool is_mark(struct text t)
{
    return starts(t, ".loc") || starts(t, ".file");
}

/* Ends with its line. */
static bool is_line_directive(struct text t)
{
    return is_mark(t) || starts(t, ".version") || starts(t, ".target") ||
           starts(t, ".address_size");
}

static bool has(struct text t, const char *word)
{
    return memmem(t.data, t.len, word, strlen(word)) != NULL;
}

static void end(struct reader *r)
{
    if (!is_open(r))
        return;
    if (r->assembly && (has(statement(r), ".loc") || has(statement(r), ".file")))
        odd(r, "a line mark in assembly");
    if (r->inner > 0)
        odd(r, "a brace that does not end");
    r->inner = 0;
    buf_add(&r->out, "\n", 1);
    if (r->to->count == r->room) {
        int *more = arena_array(r->a, (size_t)r->room * 2 + 1024, sizeof *more);

        if (r->room > 0)
            memcpy(more, r->to->line, (size_t)r->room * sizeof *more);
        r->to->line = more;
        r->room = r->room * 2 + 1024;
    }
    r->to->line[r->to->count++] = r->begin_line;
    r->begin = r->out.len;
    r->space = false;
}

/* Is this brace a block's? */
static bool opens_block(const struct reader *r)
{
    struct text t = statement(r);

    return !is_open(r) || (t.len > 0 && *t.data == '.' &&
                           (has(t, ".entry") || has(t, ".func") || starts(t, ".section")));
}

static void brace(struct reader *r, char c)
{
    if (r->inner > 0 || (c == '{' && !opens_block(r))) {
        r->inner += c == '{' ? 1 : -1;
        put(r, c);
        return;
    }
    end(r);
    if (c == '}' && --r->depth < 0) {
        odd(r, "a brace too many");
        r->depth = 0;
    }
    put(r, c);
    end(r);
    r->depth += c == '{';
}

/* At "//": to the end of its line. The compiler brackets assembly with two comments. */
static void comment(struct reader *r)
{
    const char *begin = r->ptx.data + r->at;
    const char *stop = memchr(begin, '\n', r->ptx.len - r->at);
    struct text t = {begin, stop ? (size_t)(stop - begin) : r->ptx.len - r->at};

    if (has(t, "begin inline asm"))
        r->assembly = true;
    else if (has(t, "end inline asm"))
        r->assembly = false;
    r->at += t.len;
}

static void quoted(struct reader *r)
{
    do {
        if (r->ptx.data[r->at] == '\\') /* readers could disagree on where the string ends */
            odd(r, "an escape in a string");
        put(r, r->ptx.data[r->at++]);
    } while (r->at < r->ptx.len && r->ptx.data[r->at] != '"' && r->ptx.data[r->at] != '\n');
    if (r->at < r->ptx.len && r->ptx.data[r->at] == '"')
        put(r, r->ptx.data[r->at++]);
}

static char peek(const struct reader *r, size_t further)
{
    return r->at + further < r->ptx.len ? r->ptx.data[r->at + further] : '\0';
}

static void step(struct reader *r)
{
    char c = peek(r, 0);

    if (c == '/' && peek(r, 1) == '/') {
        comment(r);
        return;
    }
    if (c == '"') {
        quoted(r);
        return;
    }
    if (c == '/' && peek(r, 1) == '*')
        odd(r, "a comment within the line");
    r->at++;
    if (c == '\n' || isspace((unsigned char)c)) {
        r->space = true;
        if (c == '\n' && is_line_directive(statement(r)))
            end(r);
        r->number += c == '\n';
    } else if (c == '{' || c == '}') {
        brace(r, c);
    } else {
        put(r, c);
        if (c == ';' && is_mark(statement(r)))
            odd(r, "an instruction behind a line mark");
        if (c == ';' || (c == ':' && r->inner == 0 && isspace((unsigned char)peek(r, 0))))
            end(r);
    }
}

void ptx_statements(struct text ptx, struct arena *a, struct ptx_statements *out)
{
    struct reader r = {
        .ptx = ptx, .number = 1, .out = buf_init(2 * ptx.len + 4096), .a = a, .to = out};

    *out = (struct ptx_statements){.count = 0};
    while (r.at < ptx.len)
        step(&r);
    end(&r);
    if (r.depth > 0)
        odd(&r, "a brace that does not end");
    out->text = buf_copy(&r.out, a);
    buf_release(&r.out);
}
