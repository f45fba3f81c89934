/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx.c - reading PTX text line by line.
 *
 * NVRTC writes one module variable per line: a directive of a state space, a
 * name, maybe an initialiser, a semicolon. A variable stays when its name is
 * met anywhere outside its own line, kept initialisers of others included.
 */
#include "toolchain/ptx.h"

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

static size_t line_length(const char *p, const char *end)
{
    const char *nl = memchr(p, '\n', (size_t)(end - p));
    return nl ? (size_t)(nl - p) + 1 : (size_t)(end - p);
}

/* ".visible .global .align 4 .u32 name[3] = {...};" on one line. */
static bool is_variable(const char *p, size_t len, struct text *name)
{
    static const char *const starts[] = {".global", ".visible .global", ".weak .global",
                                         ".const",  ".visible .const",  ".weak .const"};
    struct text line = {p, len};
    size_t i = 0, last = 0;
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
    const char *end = ptx.data + ptx.len;
    size_t total = 0;
    struct text name;
    for (const char *p = ptx.data; p < end; p += line_length(p, end))
        total += is_variable(p, line_length(p, end), &name);
    for (n->cap = 64; n->cap < 2 * total;)
        n->cap *= 2;
    n->at = arena_array(a, n->cap, sizeof *n->at);
    n->order = arena_array(a, total + 1, sizeof(struct variable *));
    for (const char *p = ptx.data; p < end; p += line_length(p, end)) {
        size_t len = line_length(p, end);
        struct variable *v;
        if (!is_variable(p, len, &name))
            continue;
        v = find(n, name);
        if (v->name.data == NULL)
            n->order[n->count++] = v;
        *v = (struct variable){.line = p, .line_len = len, .name = name};
    }
}

/* Marks what a stretch of text names, and what the marked ones name in turn. */
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
    const char *end = ptx.data + ptx.len;
    char *out = arena_alloc(a, ptx.len + 1);
    size_t len = 0;
    struct text name;

    collect(&n, ptx, a);
    for (const char *p = ptx.data; p < end; p += line_length(p, end)) {
        size_t l = line_length(p, end);
        /* debug sections come last and name lines, not variables */
        if (text_starts((struct text){p, l}, ".section") ||
            text_starts((struct text){p, l}, "\t.section"))
            break;
        if (!is_variable(p, l, &name))
            mark(&n, p, l);
    }
    for (const char *p = ptx.data; p < end; p += line_length(p, end)) {
        size_t l = line_length(p, end);
        if (is_variable(p, l, &name) && !find(&n, name)->used)
            continue;
        memcpy(out + len, p, l);
        len += l;
    }
    return (struct text){out, len};
}

/* ---- source lines ----------------------------------------------------------- */

struct text ptx_line(struct text ptx, int number)
{
    const char *end = ptx.data + ptx.len, *p = ptx.data;
    for (int i = 1; i < number && p < end; i++)
        p += line_length(p, end);
    size_t len = p < end ? line_length(p, end) : 0;
    while (len > 0 && isspace((unsigned char)p[len - 1]))
        len--;
    while (len > 0 && isspace((unsigned char)*p))
        p++, len--;
    return (struct text){p, len};
}

/* The number of a ".file N "name"" whose name ends in `file`; 0: none. */
static long file_index(struct text ptx, const char *file)
{
    const char *end = ptx.data + ptx.len;
    for (const char *p = ptx.data; p < end; p += line_length(p, end)) {
        size_t len = line_length(p, end);
        const char *hit = memmem(p, len, ".file", 5);
        if (hit != NULL && memmem(p, len, file, strlen(file)) != NULL)
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
    const char *end = ptx.data + ptx.len, *p = ptx.data;
    long index = file_index(ptx, file), found = 0;
    for (int i = 1; i <= number && p < end && index > 0; i++) {
        size_t len = line_length(p, end);
        long here = loc_line(p, len, index);
        found = here > 0 ? here : found;
        p += len;
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
    const char *end = log.data + log.len;
    for (const char *p = log.data; p < end; p += line_length(p, end)) {
        size_t len = line_length(p, end);
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
