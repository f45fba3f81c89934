/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx.c - reading PTX text line by line.
 *
 * NVRTC writes one module variable per line: a directive of a state space, a
 * name, maybe an initialiser, a semicolon. A variable is kept if its name occurs anywhere outside
 * its own line, including in initialisers of kept variables.
 */
#include "toolchain/ptx.h"

#include "base/text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct variable {
    const char *line; /* start of its line */
    size_t line_len;
    struct text name;
    bool used;
};

struct ptx_names {
    struct variable *at; /* open addressing by hash of the name */
    size_t cap, count;
    struct variable **order;
};

static bool is_symbol(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static size_t hash_name(struct text t)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < t.len; i++)
        h = (h ^ (unsigned char)t.data[i]) * UINT64_C(1099511628211);
    return (size_t)h;
}

static struct variable *find(const struct ptx_names *n, struct text name)
{
    size_t i = hash_name(name) & (n->cap - 1);
    while (n->at[i].name.data != NULL && !text_equal(n->at[i].name, name))
        i = (i + 1) & (n->cap - 1);
    return &n->at[i];
}

/* ".visible .global .align 4 .u32 name[3] = {...};" on one line. */
static bool is_variable(struct text line, struct text *name)
{
    static const char *const starts[] = {".global", ".visible .global", ".weak .global",
                                         ".const",  ".visible .const",  ".weak .const"};
    const char *p = line.data;
    size_t i = 0, last = 0, len = line.len;
    bool hit = false;
    for (size_t s = 0; s < ARRAY_LEN(starts) && !hit; s++)
        hit = text_starts(line, starts[s]);
    if (!hit || memchr(p, ';', len) == NULL)
        return false;
    /* the name is the last word before '[', '=' or ';' */
    while (i < len && p[i] != '[' && p[i] != '=' && p[i] != ';') {
        if (is_symbol(p[i]) && (i == 0 || !is_symbol(p[i - 1])))
            last = i;
        i++;
    }
    i = last;
    while (i < len && is_symbol(p[i]))
        i++;
    *name = (struct text){p + last, i - last};
    return name->len > 0 && name->data[0] != '.';
}

static void collect(struct ptx_names *n, struct text ptx, struct arena *a)
{
    size_t total = 0;
    struct text name, line, rest = ptx;
    while (text_next_whole_line(&rest, &line))
        total += is_variable(line, &name);
    for (n->cap = 64; n->cap < 2 * total;)
        n->cap *= 2;
    n->at = arena_array(a, n->cap, sizeof *n->at);
    n->order = arena_array(a, total + 1, sizeof(struct variable *));
    while (text_next_whole_line(&ptx, &line)) {
        struct variable *v;
        if (!is_variable(line, &name))
            continue;
        v = find(n, name);
        if (v->name.data == NULL)
            n->order[n->count++] = v;
        *v = (struct variable){.line = line.data, .line_len = line.len, .name = name};
    }
}

/* Marks variables named in a piece of text, and those named by marked variables in turn. */
static void mark(struct ptx_names *n, const char *p, size_t len)
{
    const char *end = p + len;
    while (p < end) {
        const char *begin = p;
        struct variable *v;
        if (!is_symbol(*p)) {
            p++;
            continue;
        }
        while (p < end && is_symbol(*p))
            p++;
        if (*begin == '%' || *begin == '.' || isdigit((unsigned char)*begin))
            continue;
        v = find(n, (struct text){begin, (size_t)(p - begin)});
        if (v->name.data != NULL && !v->used) {
            v->used = true;
            mark(n, v->line, v->line_len);
        }
    }
}

struct text ptx_strip(struct text ptx, struct arena *a)
{
    struct ptx_names n = {0};
    char *out = arena_alloc(a, ptx.len + 1);
    size_t len = 0;
    struct text name, line, rest = ptx;

    collect(&n, ptx, a);
    while (text_next_whole_line(&rest, &line)) {
        /* debug sections come last and name lines, not variables */
        if (text_starts(line, ".section") || text_starts(line, "\t.section"))
            break;
        if (!is_variable(line, &name))
            mark(&n, line.data, line.len);
    }
    while (text_next_whole_line(&ptx, &line)) {
        if (is_variable(line, &name) && !find(&n, name)->used)
            continue;
        memcpy(out + len, line.data, line.len);
        len += line.len;
    }
    return (struct text){out, len};
}

/* ---- source lines ----------------------------------------------------------- */

struct text ptx_line(struct text ptx, int number)
{
    return text_trim(text_line(ptx, number));
}

/* The number of a ".file N "name"" whose name ends in `file`; 0: none. */
static long file_index(struct text ptx, const char *file)
{
    for (struct text line; text_next_line(&ptx, &line);) {
        const char *hit = memmem(line.data, line.len, ".file", 5);
        if (hit != NULL && memmem(line.data, line.len, file, strlen(file)) != NULL)
            return strtol(hit + 5, NULL, 10);
    }
    return 0;
}

/* ".loc F L C, function_name X, inlined_at F L C": the innermost place in the file. */
static long loc_line(const char *p, size_t len, long file)
{
    const char *end = p + len, *hit = memmem(p, len, ".loc", 4);
    long found = 0;
    if (hit == NULL)
        return 0;
    for (hit += 4; hit != NULL && hit < end;) {
        char *after;
        long f = strtol(hit, &after, 10);
        long l = strtol(after, NULL, 10);
        if (f == file && found == 0)
            found = l;
        hit = memmem(hit, (size_t)(end - hit), "inlined_at", 10);
        hit = hit ? hit + 10 : NULL;
    }
    return found;
}

int ptx_source_line(struct text ptx, int number, const char *file)
{
    long index = file_index(ptx, file), found = 0;
    struct text line;
    for (int i = 1; i <= number && index > 0 && text_next_line(&ptx, &line); i++) {
        long here = loc_line(line.data, line.len, index);
        found = here > 0 ? here : found;
    }
    return (int)found;
}

/* ---- ptxas -v -------------------------------------------------------------- */

/* The number before `unit` in the line: "0 bytes spill stores" -> 0; -1: none. */
static long number_before(const char *line, size_t len, const char *unit)
{
    const char *hit = memmem(line, len, unit, strlen(unit));
    const char *p = hit;
    if (hit == NULL)
        return -1;
    while (p > line && p[-1] == ' ')
        p--;
    while (p > line && isdigit((unsigned char)p[-1]))
        p--;
    return p < hit && isdigit((unsigned char)*p) ? strtol(p, NULL, 10) : -1;
}

static json_t *kernel_entry(json_t *all, const char *line, size_t len, const char *before)
{
    const char *p = memmem(line, len, before, strlen(before));
    char name[4096];
    size_t n = 0;
    json_t *kernel;
    if (p == NULL)
        return NULL;
    p += strlen(before);
    while (p + n < line + len && p[n] != '\'' && p[n] != '\n' && n + 1 < sizeof name) {
        name[n] = p[n];
        n++;
    }
    name[n] = '\0';
    kernel = json_object_get(all, name);
    if (kernel == NULL) {
        kernel = json_object();
        json_object_set_new(all, name, kernel);
    }
    return kernel;
}

json_t *ptx_resources(struct text log)
{
    static const struct {
        const char *key, *unit;
    } figures[] = {
        {"registers", " registers"},
        {"barriers", " barriers"},
        {"smem", " bytes smem"},
        {"cmem", " bytes cmem[0]"},
        {"stack", " bytes stack frame"},
        {"spill_stores", " bytes spill stores"},
        {"spill_loads", " bytes spill loads"},
    };
    json_t *all = json_object(), *kernel = NULL;
    for (struct text line; text_next_line(&log, &line);) {
        const char *p = line.data;
        size_t len = line.len;
        json_t *named = kernel_entry(all, p, len, "Compiling entry function '");
        if (named != NULL) {
            kernel = named;
            json_object_set_new(kernel, "smem", json_integer(0));
            continue;
        }
        if (kernel == NULL || memmem(p, len, "ptxas", 5) == NULL)
            continue;
        for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
            long v = number_before(p, len, figures[i].unit);
            if (v >= 0)
                json_object_set_new(kernel, figures[i].key, json_integer(v));
        }
    }
    return all;
}
