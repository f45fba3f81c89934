/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_cute.c - does compiled code access global memory through CuTe?
 *
 * Invariants
 * 1. A register is `through` when an instruction with a line in CuTe computes
 *    it, or one that reads such a register. A value loaded from memory is not: an index stored in
 *    memory does not show who indexes.
 * 2. A mark (marked_header.h) makes what its instruction computes `through`, whatever its line.
 * 3. Register names are unique within a function; its body is read until no
 *    register is added, since loops use before they define.
 */
#include "toolchain/ptx_cute.h"

#include "base/fs.h"
#include "base/text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 4096, SLOTS = 1 << 15, MAX_REGS = 64 };

struct line_reader {
    bool cute_file[MAX_FILES];
    struct text through[SLOTS]; /* by hash */
    int count;
    bool here;        /* the current line is CuTe's */
    const char *mark; /* NULL: none */
    bool marked;      /* it is in this line */
    struct cute_use use;
};

/* What the next line of `rest` holds, without its indent; `rest` is not empty. */
static struct text cut_line(struct text *rest)
{
    struct text line = {rest->data, 0};

    (void)text_next_line(rest, &line);
    return text_trim_left(line);
}

/* ---- files ----------------------------------------------------------------- */

/* Is the path in cute/ or cutlass/ below one of the folders? */
static bool is_cute_path(struct text path, const char *const *includes)
{
    for (; *includes; includes++) {
        size_t len = strlen(*includes);
        struct text below = {path.data + len, path.len - len};

        if (path.len <= len || memcmp(path.data, *includes, len) != 0)
            continue;
        while (below.len > 0 && *below.data == '/')
            below.data++, below.len--;
        if (text_starts(below, "cute/") || text_starts(below, "cutlass/"))
            return true;
    }
    return false;
}

/* .file 3 "/usr/include/cute/tensor_impl.hpp" */
static void read_files(struct line_reader *r, struct text ptx, const char *const *includes)
{
    while (ptx.len > 0) {
        struct text line = cut_line(&ptx);
        const char *open, *close;
        long number;

        if (!text_starts(line, ".file"))
            continue;
        number = strtol(line.data + 5, NULL, 10);
        open = memchr(line.data, '"', line.len);
        close = open ? memrchr(line.data, '"', line.len) : NULL;
        if (close > open && number > 0 && number < MAX_FILES)
            r->cute_file[number] =
                is_cute_path((struct text){open + 1, (size_t)(close - open - 1)}, includes);
    }
}

/* ---- registers ------------------------------------------------------------- */

static size_t slot(const struct line_reader *r, struct text reg)
{
    uint32_t h = 2166136261u;
    size_t i;

    for (size_t k = 0; k < reg.len; k++)
        h = (h ^ (unsigned char)reg.data[k]) * 16777619u;
    for (i = h & (SLOTS - 1); r->through[i].data && !text_equal(r->through[i], reg);)
        i = (i + 1) & (SLOTS - 1);
    return i;
}

static bool is_through(const struct line_reader *r, struct text reg)
{
    return r->through[slot(r, reg)].data != NULL;
}

/* Nothing is added beyond half of the slots: then too few accesses count as through CuTe. */
static void add_through(struct line_reader *r, struct text reg)
{
    size_t i = slot(r, reg);

    if (r->through[i].data || r->count >= SLOTS / 2)
        return;
    r->through[i] = reg;
    r->count++;
}

struct ptx_statement {
    struct text op;
    struct text regs[MAX_REGS];
    bool address[MAX_REGS]; /* inside [ ] */
    int count, results;
};

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == ':';
}

/* "@%p1 st.global.v2.f32 [%rd1+8], {%f1, %f2};": opcode and registers, in order. */
static struct ptx_statement split(struct text line)
{
    struct ptx_statement s = {.results = 1};
    const char *p = line.data, *end = line.data + line.len;
    bool address = false, group = false, first = true;

    if (p < end && *p == '@')
        while (p < end && !isspace((unsigned char)*p))
            p++;
    while (p < end && (isspace((unsigned char)*p) || *p == '{'))
        p++;
    for (s.op.data = p; p < end && in_word(*p); p++)
        s.op.len++;
    for (; p < end && *p != ';'; p++) {
        address = *p == '[' ? true : *p == ']' ? false : address;
        group = first && *p == '{' ? true : group;
        if (*p == '}' && group) { /* mov.b64 {%r1, %r2}, %rd1 has two results */
            s.results = s.count;
            group = false;
        }
        first = first && (isspace((unsigned char)*p) || *p == '{');
        if (*p == '%' && s.count < MAX_REGS) {
            size_t len = 1;

            while (p + len < end && in_word(p[len]))
                len++;
            s.address[s.count] = address;
            s.regs[s.count++] = (struct text){p, len};
            p += len - 1;
        }
    }
    return s;
}

/* ---- accesses -------------------------------------------------------------- */

static bool has(struct text op, const char *part)
{
    return memmem(op.data, op.len, part, strlen(part)) != NULL;
}

static bool is_access(struct text op)
{
    bool other = has(op, ".shared") || has(op, ".local") || has(op, ".param") || has(op, ".const");

    if (text_starts(op, "cp."))
        return has(op, ".global");
    return (text_starts(op, "ld.") || text_starts(op, "ldu.") || text_starts(op, "st.") ||
            text_starts(op, "atom.") || text_starts(op, "red.")) &&
           (has(op, ".global") || !other);
}

static bool is_store(struct text op)
{
    return text_starts(op, "st.") || text_starts(op, "atom.") || text_starts(op, "red.") ||
           has(op, ".global.shared");
}

static void count_access(struct line_reader *r, const struct ptx_statement *s)
{
    bool through = r->here, store = is_store(s->op);

    for (int i = 0; i < s->count; i++)
        through = through || (s->address[i] && is_through(r, s->regs[i]));
    r->use.accesses++;
    r->use.through += through;
    r->use.stores += store;
    r->use.stores_through += store && through;
}

/* What an instruction computes; copies of a register and of an address space are not counted. */
static void follow(struct line_reader *r, const struct ptx_statement *s)
{
    bool plain = text_starts(s->op, "mov") || text_starts(s->op, "cvta");
    bool through = (r->here && !plain) || r->marked;

    if (text_starts(s->op, "ld") || text_starts(s->op, "st") || text_starts(s->op, "setp") ||
        s->op.len == 0 || *s->op.data == '.')
        return;
    for (int i = s->results; i < s->count; i++)
        through = through || is_through(r, s->regs[i]);
    for (int i = 0; i < s->results && i < s->count && through; i++)
        add_through(r, s->regs[i]);
}

static void read_line(struct line_reader *r, struct text line, bool counting)
{
    struct ptx_statement s;

    if (text_starts(line, ".loc")) {
        long file = strtol(line.data + 4, NULL, 10);

        r->here = file > 0 && file < MAX_FILES && r->cute_file[file];
        return;
    }
    r->marked = r->mark && has(line, r->mark);
    while (line.len > 0 && !text_starts(line, "//")) { /* assembly may have several on a line */
        const char *semicolon = memchr(line.data, ';', line.len);
        size_t len = semicolon ? (size_t)(semicolon - line.data) : line.len;
        size_t used = semicolon ? len + 1 : len;

        s = split((struct text){line.data, len});
        if (counting && is_access(s.op))
            count_access(r, &s);
        follow(r, &s);
        line.data += used;
        line.len -= used;
        line = text_trim_left(line);
    }
}

static void read_body(struct line_reader *r, struct text body)
{
    int before;

    memset(r->through, 0, sizeof r->through);
    r->count = 0;
    do {
        before = r->count;
        r->here = false;
        for (struct text rest = body; rest.len > 0;)
            read_line(r, cut_line(&rest), false);
    } while (r->count > before);
    r->here = false;
    while (body.len > 0)
        read_line(r, cut_line(&body), true);
}

/* Braces that a line opens, less those that it closes; assembly has scopes of its own inside a
 * body. */
static int braces(struct text line)
{
    int depth = 0;

    for (size_t i = 0; i < line.len; i++) {
        if (line.data[i] == '/' && i + 1 < line.len && line.data[i + 1] == '/')
            break;
        depth += (line.data[i] == '{') - (line.data[i] == '}');
    }
    return depth;
}

struct cute_use ptx_cute_use(struct text ptx, const char *const *includes, const char *mark,
                             struct arena *a)
{
    struct line_reader *r = arena_alloc(a, sizeof *r);
    const char *body = NULL;
    int depth = 0;

    r->mark = mark;
    read_files(r, ptx, includes);
    while (ptx.len > 0) {
        const char *start = ptx.data;
        struct text line = cut_line(&ptx);

        depth += body ? braces(line) : 0;
        if (!body && line.data == start && text_starts(line, "{")) {
            body = ptx.data;
            depth = braces(line);
        } else if (body && depth <= 0) {
            read_body(r, (struct text){body, (size_t)(start - body)});
            body = NULL;
        }
    }
    return r->use;
}

bool ptx_cute_enough(const struct cute_use *use)
{
    return use->stores_through > 0 || (use->through > 0 && 2 * use->through >= use->accesses);
}
