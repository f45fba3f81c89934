/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_check.c - check compiled code for what the source could hide.
 *
 * Invariants
 * 1. State is found by taint: the address of a module variable, and what is
 *    computed from it, may be loaded from but never stored to, nor stored itself or passed to a
 *    function, where it could no longer be tracked. Register names are unique within a function, so
 *    one set per function is enough, and PTX from a compiler defines before it uses except around
 *    loops: the body is scanned repeatedly until nothing new is found.
 * 2. No kernel reads launch counters or other machine activity: with these it could distinguish a
 *    timed run from a tested one.
 */
#include "toolchain/ptx_check.h"

#include "base/fs.h"
#include "base/text.h"
#include "toolchain/diag.h"
#include "toolchain/ptx.h"
#include "toolchain/ptx_statements.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARAMS = 64, MAX_WORDS = 48, TAINT_SLOTS = 1 << 16, MAP_BYTES = 128 };

struct param {
    int bytes;
    bool is_float, is_struct;
};

struct entry {
    struct param params[MAX_PARAMS];
    int count;
    int64_t max_threads; /* of __launch_bounds__; 0: none */
};

/* Empty at the end. */
static struct text cut_line(struct text *rest)
{
    struct text line = {"", 0};
    text_next_line(rest, &line);
    return line;
}

static const char *find(struct text t, const char *what)
{
    return t.len ? memmem(t.data, t.len, what, strlen(what)) : NULL;
}

static void verdict_at(const struct ptx_subject *s, enum verdict_kind kind, const char *what,
                       int line, const char *text, struct arena *a, struct verdict *v)
{
    const char *file = path_base(s->name);
    memset(v, 0, sizeof *v);
    v->kind = kind;
    v->findings[0] = (struct finding){
        .kind = what,
        .where = line > 0 ? arena_printf(a, "%s:%d", file, line) : file,
        .line = diag_source_line(s->source, line, a),
        .text = text,
    };
    v->finding_count = 1;
    v->summary = arena_printf(a, "%s: %s", v->findings[0].where, text);
    v->detail = arena_printf(a, "%s\n    %s\n", v->summary, v->findings[0].line);
}

/* ---- parameters --------------------------------------------------------------- */

/* ".param .align 64 .b8 name[128]" and ".param .f32 name" */
static struct param parse_param(struct text line)
{
    static const struct {
        const char *type;
        int bytes;
        bool is_float;
    } types[] = {
        {".f64 ", 8, true},  {".f32 ", 4, true},  {".u64 ", 8, false}, {".s64 ", 8, false},
        {".b64 ", 8, false}, {".u32 ", 4, false}, {".s32 ", 4, false}, {".b32 ", 4, false},
        {".u16 ", 2, false}, {".s16 ", 2, false}, {".b16 ", 2, false}, {".f16 ", 2, true},
        {".u8 ", 1, false},  {".s8 ", 1, false},  {".b8 ", 1, false},
    };
    struct param p = {0};
    const char *bracket = line.len ? memchr(line.data, '[', line.len) : NULL;
    for (size_t i = 0; i < ARRAY_LEN(types) && p.bytes == 0; i++)
        if (find(line, types[i].type))
            p = (struct param){.bytes = types[i].bytes, .is_float = types[i].is_float};
    if (bracket != NULL) {
        p.bytes *= (int)strtol(bracket + 1, NULL, 10);
        p.is_struct = true;
    }
    return p;
}

static int64_t number_after(struct text line, const char *directive)
{
    const char *p = find(line, directive);
    int64_t product = 1;
    if (p == NULL)
        return 0;
    for (p += strlen(directive); p < line.data + line.len;) {
        char *end;
        product *= strtol(p, &end, 10);
        if (*end != ',')
            break;
        p = end + 1;
    }
    return product;
}

/* From ".entry NAME(" to the "{" of its body. */
static bool find_entry(struct text ptx, const char *lowered, struct entry *out)
{
    struct text rest = ptx;
    size_t n = strlen(lowered);
    bool inside = false;
    memset(out, 0, sizeof *out);
    while (rest.len > 0) {
        struct text line = cut_line(&rest);
        const char *entry = find(line, ".entry ");
        if (entry != NULL)
            inside = (size_t)(line.data + line.len - entry) >= 7 + n &&
                     memcmp(entry + 7, lowered, n) == 0 &&
                     (entry + 7 + n == line.data + line.len || entry[7 + n] == '(');
        if (!inside)
            continue;
        if (find(line, ".param ") && find(line, "_param_") && out->count < MAX_PARAMS)
            out->params[out->count++] = parse_param(line);
        if (out->max_threads == 0)
            out->max_threads = number_after(line, ".maxntid");
        if (out->max_threads == 0)
            out->max_threads = number_after(line, ".reqntid");
        if (text_starts(line, "{"))
            return true;
    }
    return false;
}

/* NULL: it fits; else what is wrong. */
static const char *argument_fault(const json_t *arg, const struct param *p, struct arena *a)
{
    const char *hex = json_string_value(json_object_get(arg, "bytes"));
    const char *type = json_string_value(json_object_get(arg, "type"));
    const char *wants = p->is_struct ? arena_printf(a, "a struct of %d bytes", p->bytes)
                        : p->is_float
                            ? (p->bytes == 8 ? "a double" : "a float")
                            : arena_printf(a, "an integer or pointer of %d bytes", p->bytes);
    if (json_object_get(arg, "map") != NULL)
        return p->bytes == MAP_BYTES && p->is_struct
                   ? NULL
                   : arena_printf(a, "is a tensor map, the kernel wants %s", wants);
    if (hex == NULL)
        return p->bytes == 8 && !p->is_float /* or a struct with one pointer */
                   ? NULL
                   : arena_printf(a, "is a pointer, the kernel wants %s", wants);
    int bytes = (int)(strlen(hex) / 2);
    bool is_float = type != NULL && strcmp(type, "float") == 0;
    bool is_int = type != NULL && strcmp(type, "int") == 0;
    if (bytes == p->bytes && !(is_float && !p->is_float && !p->is_struct) &&
        !(is_int && p->is_float))
        return NULL;
    return arena_printf(a, "is %s of %d bytes, the kernel wants %s",
                        is_float ? "floating point"
                        : is_int ? "an integer"
                                 : "a value",
                        bytes, wants);
}

static const char *launch_fault(const json_t *op, const struct entry *e, struct arena *a)
{
    const json_t *args = json_object_get(op, "args"), *block = json_object_get(op, "block");
    int64_t threads = 1;
    if ((int)json_array_size(args) != e->count)
        return arena_printf(a, "%zu arguments, but the kernel has %d parameters",
                            json_array_size(args), e->count);
    for (int i = 0; i < e->count; i++) {
        const char *fault = argument_fault(json_array_get(args, (size_t)i), &e->params[i], a);
        if (fault != NULL)
            return arena_printf(a, "argument %d %s", i + 1, fault);
    }
    for (size_t i = 0; i < json_array_size(block); i++)
        threads *= json_integer_value(json_array_get(block, i));
    if (e->max_threads > 0 && threads > e->max_threads)
        return arena_printf(a, "%d threads in a block, but __launch_bounds__ allows %d",
                            (int)threads, (int)e->max_threads);
    return NULL;
}

bool ptx_check_launches(const struct ptx_subject *s, const json_t *names, const json_t *launches,
                        struct arena *a, struct verdict *out)
{
    const json_t *ops = json_object_get(launches, "ops");
    for (size_t i = 0; i < json_array_size(ops); i++) {
        const json_t *op = json_array_get(ops, i);
        const char *kernel = json_string_value(json_object_get(op, "kernel"));
        const char *lowered = kernel ? json_string_value(json_object_get(names, kernel)) : NULL;
        int line = (int)json_integer_value(json_object_get(op, "line"));
        const char *fault;
        struct entry e;
        if (kernel == NULL)
            continue;
        if (lowered == NULL || !find_entry(s->ptx, lowered, &e))
            fault = "no such kernel came out of the compiler";
        else
            fault = launch_fault(op, &e, a);
        if (fault == NULL)
            continue;
        verdict_at(s, VERDICT_BAD_LAUNCH, "bad launch", line,
                   arena_printf(a, "launch of %s: %s", kernel, fault), a, out);
        out->advice =
            "the arguments of CUTEGEN_LAUNCH must have the kernel's parameter types: cast them, "
            "(int)n, (float)s";
        return false;
    }
    return true;
}

/* ---- state ------------------------------------------------------------------------- */

struct words {
    struct text at[MAX_WORDS];
    bool bracket[MAX_WORDS]; /* inside [ ]: an address */
    int count;
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.' || c == ':';
}

/* "st.global.v2.f32 [%rd1+8], {%f1, %f2};" -> opcode and operands */
static struct words split(struct text line)
{
    struct words w = {.count = 0};
    bool bracket = false;
    for (size_t i = 0; i < line.len && w.count < MAX_WORDS;) {
        if (line.data[i] == '/' && i + 1 < line.len && line.data[i + 1] == '/')
            break;
        if (!is_word(line.data[i])) {
            bracket = line.data[i] == '[' ? true : line.data[i] == ']' ? false : bracket;
            i++;
            continue;
        }
        size_t begin = i;
        while (i < line.len && is_word(line.data[i]))
            i++;
        w.bracket[w.count] = bracket;
        w.at[w.count++] = (struct text){line.data + begin, i - begin};
    }
    return w;
}

/* Names by hash; `mark` tells module variables (kept) from a function's registers. */
struct taint {
    struct text at[TAINT_SLOTS];
    int mark[TAINT_SLOTS]; /* 1: module variable; else the function it was met in */
    int function, taken, count;
    bool holds[TAINT_SLOTS]; /* the variable it leads to holds addresses of others */
    bool full;               /* more names than can be followed */
};

static size_t taint_slot(const struct taint *t, struct text word)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < word.len; i++)
        h = (h ^ (unsigned char)word.data[i]) * 16777619u;
    size_t i = h & (TAINT_SLOTS - 1);
    while (t->at[i].data != NULL && !text_equal(t->at[i], word))
        i = (i + 1) & (TAINT_SLOTS - 1);
    return i;
}

static bool tainted(const struct taint *t, struct text word)
{
    size_t i = taint_slot(t, word);
    return t->at[i].data != NULL && (t->mark[i] == 1 || t->mark[i] == t->function);
}

static bool holds(const struct taint *t, struct text word)
{
    return tainted(t, word) && t->holds[taint_slot(t, word)];
}

static void add_taint(struct taint *t, struct text word, int mark, bool holding)
{
    size_t i = taint_slot(t, word);
    if (tainted(t, word)) {
        t->count += holding && !t->holds[i];
        t->holds[i] = t->holds[i] || holding;
        return;
    }
    if (t->at[i].data == NULL && t->taken >= TAINT_SLOTS / 2) {
        t->full = true;
        return;
    }
    t->taken += t->at[i].data == NULL; /* slots taken */
    t->at[i] = word;
    t->mark[i] = mark;
    t->holds[i] = holding;
    t->count++;
}

/* ".visible .global .align 4 .u32 counter[4] = ..." */
static bool global_name(struct text line, struct text *name)
{
    const char *p = find(line, ".global ");
    struct words w;
    if (p == NULL || line.data[0] != '.' || find(line, ".extern"))
        return false;
    w = split((struct text){p, line.len - (size_t)(p - line.data)});
    for (int i = 0; i < w.count; i++)
        if (w.at[i].data[0] != '.' && !isdigit((unsigned char)w.at[i].data[0])) {
            *name = w.at[i];
            return true;
        }
    return false;
}

/* A module variable initialised with another's address, "= generic(table)": loading from it may
 * return that address. */
static bool holds_address(struct text line)
{
    const char *value = memchr(line.data, '=', line.len);
    const char *end = line.data + line.len;

    for (const char *p = value; p && p < end; p++)
        if (isalpha((unsigned char)*p) || *p == '_' || *p == '$')
            if (!isalnum((unsigned char)p[-1])) /* not 0x1F, 0f3F800000 */
                return true;
    return false;
}

/* Index of the opcode: a guard ("@%p1" splits into "%p1") comes before it. */
static int opcode(const struct words *w, struct text line)
{
    size_t i = 0;
    while (i < line.len && isspace((unsigned char)line.data[i]))
        i++;
    return i < line.len && line.data[i] == '@' && w->count > 1 ? 1 : 0;
}

static bool writes(struct text op)
{
    static const char *const ops[] = {"st", "atom", "red", "multimem", "cp", "stmatrix", "tcgen05"};

    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        size_t len = strlen(ops[i]);

        if (text_starts(op, ops[i]) && (op.len == len || op.data[len] == '.'))
            return true;
    }
    return false;
}

/* The variable an instruction writes to, or nothing; what it computes is tainted in turn. */
/* How many of the words after the opcode are results: "mov.b64 {%r1, %r2}, %rd1" has two. */
static int result_count(const struct words *w, int op, struct text line)
{
    const char *end = line.data + line.len, *p = w->at[op].data + w->at[op].len;
    const char *close;
    int n = 0;

    while (p < end && isspace((unsigned char)*p))
        p++;
    if (p == end || *p != '{' || !(close = memchr(p, '}', (size_t)(end - p))))
        return 1;
    while (op + 1 + n < w->count && w->at[op + 1 + n].data < close)
        n++;
    return n > 0 ? n : 1;
}

static bool step(struct taint *t, struct text line, struct text *written)
{
    struct words w = split(line);
    int op = opcode(&w, line), results;
    bool load;
    if (w.count <= op + 1 || w.at[op].data[0] == '.')
        return false;
    if (writes(w.at[op])) {
        for (int i = op + 1; i < w.count; i++)
            if (tainted(t, w.at[i])) {
                *written = w.at[i];
                return true;
            }
        return false;
    }
    load = text_starts(w.at[op], "ld.") || text_starts(w.at[op], "ldu.");
    results = result_count(&w, op, line);
    for (int i = op + 1 + results; i < w.count; i++)
        for (int k = 0; k < results && (load ? holds(t, w.at[i]) : tainted(t, w.at[i])); k++)
            add_taint(t, w.at[op + 1 + k], t->function, holds(t, w.at[i]));
    return false;
}

/* Inline assembly may have several on a line. */
static struct text cut_statement(struct text *line)
{
    const char *end = memchr(line->data, ';', line->len);
    size_t len = end ? (size_t)(end - line->data) : line->len;
    struct text statement = {line->data, len};

    line->data += end ? len + 1 : len;
    line->len -= end ? len + 1 : len;
    return statement;
}

/* Scans one function's body until no register is added. Returns the PTX line of a write, or 0. */
static int body_writes(struct taint *t, struct text body, int first_line)
{
    int before;
    t->function++;
    do {
        struct text rest = body, written;
        before = t->count;
        for (int line = first_line; rest.len > 0; line++)
            for (struct text now = cut_line(&rest); now.len > 0;)
                if (step(t, cut_statement(&now), &written))
                    return line;
    } while (t->count > before);
    return 0;
}

static bool extern_call(struct text line, struct text *name)
{
    const char *p = find(line, ".extern .func");
    struct words w;
    if (p == NULL)
        return false;
    w = split((struct text){p, line.len - (size_t)(p - line.data)});
    for (int i = 0; i < w.count; i++)
        if (w.at[i].data[0] != '.' && !isdigit((unsigned char)w.at[i].data[0]) &&
            !find(w.at[i], "func_retval")) {
            *name = w.at[i];
            return true;
        }
    *name = text_of("a function");
    return true;
}

static bool refuse_write(const struct ptx_subject *s, int ptx_at, struct arena *a,
                         struct verdict *out)
{
    struct text code = ptx_line(s->ptx, ptx_at);
    verdict_at(
        s, VERDICT_REFUSED, "state", ptx_source_line(s->ptx, ptx_at, path_base(s->name)),
        arena_printf(
            a,
            "writes a module variable, which outlives the launch, or gives its address away (%.*s)",
            (int)(code.len < 120 ? code.len : 120), code.data),
        a, out);
    out->advice =
        "keep state in cutegen_workspace() and clear it in the plan with cutegen_memset()";
    return false;
}

/* Special registers that count launches or events, tell a graph's launch from another, or tell the
 * time, with which a kernel could be right only until some day after it was judged. */
static const struct counter {
    const char *name;
    bool numbered;
} counters[] = {{"%gridid", false},
                {"%envreg", true},
                {"%pm", true},
                {"%current_graph_exec", false},
                {"%clock", false},
                {"%clock_hi", false},
                {"%clock64", false},
                {"%globaltimer", false},
                {"%globaltimer_lo", false},
                {"%globaltimer_hi", false}};

/* The one that a statement names, or NULL. */
static const char *counter_read(struct text line)
{
    for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
        size_t len = strlen(counters[i].name);
        struct text rest = line;

        for (const char *hit; (hit = find(rest, counters[i].name)) != NULL;) {
            const char *behind = hit + len, *stop = line.data + line.len;
            bool whole = counters[i].numbered ? behind < stop && isdigit((unsigned char)*behind)
                                              : behind == stop || !is_word(*behind);

            if (whole && (hit == line.data || !is_word(hit[-1])))
                return counters[i].name;
            rest = (struct text){behind, (size_t)(stop - behind)};
        }
    }
    return NULL;
}

/* Inline assembly can declare a variable in a function; it is as global as any. */
static bool declares_global(struct text line)
{
    for (const char *p = find(line, ".global"); p;) {
        if ((p == line.data || !(is_word(p[-1]) || p[-1] == '.')) && p + 7 < line.data + line.len &&
            isspace((unsigned char)p[7]))
            return true;
        p = find((struct text){p + 1, line.len - (size_t)(p + 1 - line.data)}, ".global");
    }
    return false;
}

static bool refuse_hidden(const struct ptx_subject *s, const char *what, int ptx_at,
                          struct arena *a, struct verdict *out)
{
    verdict_at(s, VERDICT_REFUSED, "state", ptx_source_line(s->ptx, ptx_at, path_base(s->name)),
               what, a, out);
    return false;
}

static bool refuse_counter(const struct ptx_subject *s, const char *which, int ptx_at,
                           struct arena *a, struct verdict *out)
{
    verdict_at(s, VERDICT_REFUSED, "state", ptx_source_line(s->ptx, ptx_at, path_base(s->name)),
               arena_printf(a, "reads %s, which tells one launch from another", which), a, out);
    out->advice = "a kernel computes from its inputs alone";
    return false;
}

/* One function's body, which has just ended. */
static bool check_body(const struct ptx_subject *s, struct taint *t, struct text body,
                       const int *lines, struct arena *a, struct verdict *out)
{
    int at = t->count > 0 ? body_writes(t, body, 1) : 0;

    if (at > 0)
        return refuse_write(s, lines[at - 1], a, out);
    if (t->full) {
        verdict_at(s, VERDICT_REFUSED, "state", 0,
                   "uses more module variables than can be followed", a, out);
        return false;
    }
    return true;
}

bool ptx_check_state(const struct ptx_subject *s, struct arena *a, struct verdict *out)
{
    struct taint *t = arena_alloc(a, sizeof *t);
    struct ptx_statements all;
    struct text rest, name;
    const char *body = NULL;
    int number = 0, body_line = 0;

    ptx_statements(s->ptx, a, &all);
    if (all.odd_line > 0)
        return refuse_hidden(s, arena_printf(a, "hides code in assembly: %s", all.odd),
                             all.odd_line, a, out);
    t->function = 1; /* the first body is 2 */
    for (rest = all.text; rest.len > 0;) {
        struct text line = cut_line(&rest);
        const char *counter = counter_read(line);

        number++;
        if (counter)
            return refuse_counter(s, counter, all.line[number - 1], a, out);
        if (body && declares_global(line))
            return refuse_hidden(
                s, "declares a module variable in assembly, which outlives the launch",
                all.line[number - 1], a, out);
        if (body == NULL && global_name(line, &name)) {
            add_taint(t, name, 1, holds_address(line));
        } else if (body == NULL && extern_call(line, &name)) {
            verdict_at(
                s, VERDICT_REFUSED, "foreign call", 0,
                arena_printf(a, "calls %.*s, which kernels do not have", (int)name.len, name.data),
                a, out);
            return false;
        } else if (text_starts(line, "{") && body == NULL) {
            body = rest.data;
            body_line = number;
        } else if (text_starts(line, "}") && body != NULL) {
            if (!check_body(s, t, (struct text){body, (size_t)(line.data - body)},
                            all.line + body_line, a, out))
                return false;
            body = NULL;
        }
    }
    return true;
}
