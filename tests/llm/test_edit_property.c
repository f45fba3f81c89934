/*
 * test_edit_property.c - ten thousand generated replies: valid edits do exactly what was meant,
 * invalid ones change nothing.
 *
 * A source is drawn, then edits that do not touch each other, and the text
 * they must lead to is worked out here, on lists of lines, without the code
 * under test. The edits are written in one of the formats and wrapped the way
 * models wrap things. EDIT_SEED and EDIT_COUNT repeat or prolong a run.
 */
#include "base/buf.h"
#include "llm/edit/edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINES = 48, MAX_NEW = 4, MAX_CHANGES = 5 };
enum format { ANCHORED, PLAIN, SEARCH, DIFF, FORMATS };

struct rng {
    uint64_t s;
};

static unsigned pick(struct rng *r, unsigned n)
{
    r->s ^= r->s << 13;
    r->s ^= r->s >> 7;
    r->s ^= r->s << 17;
    return (unsigned)((r->s >> 11) % n);
}

static bool chance(struct rng *r, unsigned percent)
{
    return pick(r, 100) < percent;
}

static const char *const words[] = {
    "    __syncthreads();",
    "    for (int k = 0; k < K; ++k) {",
    "    }",
    "}",
    "{",
    "",
    "",
    "#include <cute/tensor.hpp>",
    "    Tensor gA = local_tile(mA, blk, coord); // (BM,BK,k)",
    "\tgemm(mma, tCrA(_,_,k), tCrB(_,_,k), tCrC);",
    "    printf(\"%d\\n\", x); // \"quoted\" \\ back",
    "-- decrement;",
    "--- a line that looks like a header",
    "+++ x;",
    "+ y;",
    "- z;",
    "@ odd",
    "==========",
    "    // ``` not a fence",
    "    x = y;   ",
    "   ",
    ("    // gr\xc3\xbc\xc3\x9f"
     "e \xe2\x86\x92 \xf0\x9f\x94\xa5"),
    "    [1, {2}]",
    "    \"action\"",
    "> quoted",
    "    float acc[4] = {0.f, 0.f, 0.f, 0.f};",
    "    json j;",
    "cpp",
};

struct change {
    int line, count; /* 0-based; count 0 inserts before `line` */
    const char *fresh[MAX_NEW];
    int fresh_count;
};

struct world {
    struct rng *r;
    struct arena *a;
    const char *lines[MAX_LINES];
    int count;
    const char *eol;
    bool ends; /* with a newline */
    struct change changes[MAX_CHANGES];
    int change_count;
};

/* ---- drawing ------------------------------------------------------------------------ */

static const char *draw_line(struct world *w)
{
    const char *word = words[pick(w->r, ARRAY_LEN(words))];

    return chance(w->r, 50) ? word : arena_printf(w->a, "%s /* %u */", word, pick(w->r, 1000));
}

static void draw_source(struct world *w)
{
    w->count = 1 + (int)pick(w->r, MAX_LINES - 1);
    for (int i = 0; i < w->count; i++)
        w->lines[i] = draw_line(w);
    w->ends = chance(w->r, 90) || w->lines[w->count - 1][0] == 0;
    w->eol = chance(w->r, 10) && (w->count > 1 || w->ends) ? "\r\n" : "\n"; /* if it shows */
}

/* Changes with at least one untouched line between them. */
static void draw_changes(struct world *w)
{
    int at = 0;

    while (w->change_count < MAX_CHANGES && at <= w->count) {
        struct change *c = &w->changes[w->change_count];
        int kind = (int)pick(w->r, 3);

        c->line = at + (int)pick(w->r, 8);
        if (c->line > w->count || (c->line == w->count && kind != 0))
            break;
        c->count = kind == 0 ? 0 : 1 + (int)pick(w->r, 3);
        if (c->line + c->count > w->count)
            c->count = w->count - c->line;
        c->fresh_count = kind == 1 ? 0 : 1 + (int)pick(w->r, MAX_NEW);
        for (int i = 0; i < c->fresh_count; i++)
            c->fresh[i] = draw_line(w);
        at = c->line + c->count + 2;
        w->change_count++;
        if (chance(w->r, 35))
            break;
    }
    if (!w->change_count) {
        w->changes[0] = (struct change){0, 1, {"    replaced();"}, 1};
        w->change_count = 1;
    }
}

static struct text join(struct world *w, const char *const *lines, int n)
{
    struct buf b = buf_init(1 << 20);
    struct text t;

    for (int i = 0; i < n; i++) {
        buf_puts(&b, lines[i]);
        if (i + 1 < n || w->ends)
            buf_puts(&b, w->eol);
    }
    t = buf_copy(&b, w->a);
    buf_release(&b);
    return t;
}

static struct text expected(struct world *w)
{
    const char *out[MAX_LINES + MAX_CHANGES * MAX_NEW];
    int n = 0, at = 0;

    for (int c = 0; c < w->change_count; c++) {
        while (at < w->changes[c].line)
            out[n++] = w->lines[at++];
        for (int i = 0; i < w->changes[c].fresh_count; i++)
            out[n++] = w->changes[c].fresh[i];
        at += w->changes[c].count;
    }
    while (at < w->count)
        out[n++] = w->lines[at++];
    return join(w, out, n);
}

/* ---- writing in a format --------------------------------------------------------------- */

static int occurrences(const struct world *w, int line, int count)
{
    int n = 0;

    for (int at = 0; at + count <= w->count; at++) {
        int i = 0;

        while (i < count && strcmp(w->lines[at + i], w->lines[line + i]) == 0)
            i++;
        n += i == count;
    }
    return n;
}

static json_t *lines_json(struct world *w, const char *const *lines, int n)
{
    json_t *list;
    struct buf b;
    json_t *s;

    if (n == 0 || chance(w->r, 60)) {
        list = json_array();
        for (int i = 0; i < n; i++)
            json_array_append_new(list, json_string(lines[i]));
        return list;
    }
    b = buf_init(1 << 16);
    for (int i = 0; i < n; i++) {
        buf_puts(&b, i ? "\n" : "");
        buf_puts(&b, lines[i]);
    }
    if (lines[n - 1][0] == 0 && n > 1) /* an empty last line needs its newline to be one */
        buf_putc(&b, '\n');
    s = json_stringn(b.data ? b.data : "", b.len);
    buf_release(&b);
    return s;
}

static json_t *change_json(struct world *w, const struct change *c, bool anchored)
{
    json_t *o = json_object();
    int line = c->line + 1;

    json_object_set_new(o, "action",
                        json_string(c->count == 0         ? "insert"
                                    : c->fresh_count == 0 ? "delete"
                                                          : "replace"));
    if (anchored && c->count && chance(w->r, 80)) {
        json_object_set_new(o, "old_code", lines_json(w, w->lines + c->line, c->count));
        if (occurrences(w, c->line, c->count) == 1 && chance(w->r, 40))
            line = 1 + (int)pick(w->r, (unsigned)w->count + 3); /* a wrong number */
    } else if (c->count > 1 || (c->count == 1 && chance(w->r, 50))) {
        json_object_set_new(o, "num_lines", json_integer(c->count));
    }
    if (anchored && !c->count && c->line < w->count && chance(w->r, 60))
        json_object_set_new(o, "old_code", lines_json(w, w->lines + c->line, 1));
    json_object_set_new(o, "line_number", json_integer(line));
    if (c->fresh_count || c->count == 0)
        json_object_set_new(o, "new_code", lines_json(w, c->fresh, c->fresh_count));
    if (chance(w->r, 20))
        json_object_set_new(o, "reason", json_string("because [it] {was} \"wrong\""));
    return o;
}

static void write_json(struct world *w, struct buf *b, bool anchored)
{
    json_t *list = json_array();
    size_t flags = chance(w->r, 50) ? JSON_INDENT(2) : 0;
    char *s;

    for (int i = 0; i < w->change_count; i++) {
        int k = chance(w->r, 30) ? 0 : i; /* sometimes not in the source's order */

        json_array_insert_new(list, (size_t)k, change_json(w, &w->changes[i], anchored));
    }
    if (w->change_count == 1 && chance(w->r, 40))
        s = json_dumps(json_array_get(list, 0), flags);
    else
        s = json_dumps(list, flags);
    buf_puts(b, s);
    buf_putc(b, '\n');
    free(s);
    json_decref(list);
}

/* How far context may reach before it meets another change. */
static void reach(const struct world *w, int i, int *low, int *high)
{
    *low = i ? w->changes[i - 1].line + w->changes[i - 1].count : 0;
    *high = i + 1 < w->change_count ? w->changes[i + 1].line : w->count;
}

/* False: no context inside the reach makes the quoted lines unique. */
static bool write_search(struct world *w, struct buf *b)
{
    for (int i = 0; i < w->change_count; i++) {
        const struct change *c = &w->changes[i];
        int low, high, from = c->line, to = c->line + c->count;

        reach(w, i, &low, &high);
        while (to == from || occurrences(w, from, to - from) != 1) {
            if (from > low && (chance(w->r, 50) || to == high))
                from--;
            else if (to < high)
                to++;
            else
                return false;
        }
        buf_puts(b, "<<<<<<< SEARCH\n");
        for (int k = from; k < to; k++)
            buf_printf(b, "%s\n", w->lines[k]);
        buf_puts(b, "=======\n");
        for (int k = from; k < c->line; k++)
            buf_printf(b, "%s\n", w->lines[k]);
        for (int k = 0; k < c->fresh_count; k++)
            buf_printf(b, "%s\n", c->fresh[k]);
        for (int k = c->line + c->count; k < to; k++)
            buf_printf(b, "%s\n", w->lines[k]);
        buf_puts(b, ">>>>>>> REPLACE\n");
    }
    return true;
}

static void context_line(struct world *w, struct buf *b, const char *line)
{
    if (line[0] == 0 && chance(w->r, 30))
        buf_puts(b, "\n"); /* the blank of an empty context line is often lost */
    else
        buf_printf(b, " %s\n", line);
}

static void write_diff(struct world *w, struct buf *b)
{
    int shift = 0;

    if (chance(w->r, 70))
        buf_puts(b, "--- a/kernel.cu\n+++ b/kernel.cu\n");
    for (int i = 0; i < w->change_count; i++) {
        const struct change *c = &w->changes[i];
        int low, high, before = (int)pick(w->r, 4), after = (int)pick(w->r, 4), old;

        reach(w, i, &low, &high);
        before = c->line - before < low ? c->line - low : before;
        after = c->line + c->count + after > high ? high - c->line - c->count : after;
        old = before + c->count + after;
        buf_printf(b, "@@ -%d,%d +%d,%d @@%s\n", c->line - before + (old ? 1 : 0), old,
                   c->line - before + 1 + shift, before + c->fresh_count + after,
                   chance(w->r, 30) ? " void f()" : "");
        for (int k = c->line - before; k < c->line; k++)
            context_line(w, b, w->lines[k]);
        for (int k = 0; k < c->count; k++)
            buf_printf(b, "-%s\n", w->lines[c->line + k]);
        for (int k = 0; k < c->fresh_count; k++)
            buf_printf(b, "+%s\n", c->fresh[k]);
        for (int k = 0; k < after; k++)
            context_line(w, b, w->lines[c->line + c->count + k]);
        shift += c->fresh_count - c->count;
    }
}

static bool write_edits(struct world *w, enum format f, struct buf *b)
{
    if (f == SEARCH)
        return write_search(w, b);
    if (f == DIFF)
        write_diff(w, b);
    else
        write_json(w, b, f == ANCHORED);
    return true;
}

/* ---- wrapping --------------------------------------------------------------------------- */

static void prose(struct world *w, struct buf *b)
{
    static const char *const said[] = {
        "CHANGE: wider loads\n",
        "The race is at line 12. Here is `code` and ```inline``` too.\n\n",
        "You have this:\n```cpp\nint a = b[c];\n{\n```\nwhich is wrong.\n",
        "> quoted words\n\n",
        ("<think>\nMaybe this?\n```json\n[{\"action\":\"delete\",\"line_number\":1}]\n```\nno.\n"
         "</think>\n"),
        "<thinking>an open fence\n```cpp\nint x;\n</thinking>\n",
        "1. first\n2. second {x} [y]\n",
        "```python\nedits = [1, 2, 3]\n```\n",
        "A table:\n\n| a | b |\n|---|---|\n| -1 | +1 |\n\n",
        "\n",
    };

    for (unsigned n = pick(w->r, 4); n > 0; n--)
        buf_puts(b, said[pick(w->r, ARRAY_LEN(said))]);
}

static void fenced(struct world *w, struct buf *b, struct text body, enum format f)
{
    static const char *const info[FORMATS][4] = {
        {"json", "", "JSON", "text"},
        {"json", "", "python", "c"},
        {"cpp", "", "diff", "text"},
        {"diff", "", "patch", "udiff"},
    };
    static const char *const fences[] = {"```", "```", "```", "````", "~~~", "`````"};
    const char *fence = fences[pick(w->r, ARRAY_LEN(fences))];
    const char *indent = chance(w->r, 12) ? "   " : "";
    const char *p = body.data, *end = body.data + body.len;

    if (*indent)
        buf_puts(b, "2. the edits:\n\n");
    buf_printf(b, "%s%s%s\n", indent, fence, info[f][pick(w->r, 4)]);
    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));

        buf_puts(b, indent);
        buf_add(b, p, (size_t)(nl + 1 - p));
        p = nl + 1;
    }
    buf_printf(b, "%s%s\n", indent, fence);
}

static struct text wrap(struct world *w, struct text body, enum format f)
{
    struct buf b = buf_init(1 << 20);
    struct text t;
    bool bare = chance(w->r, 12);

    if (bare) {
        if (f != DIFF) /* prose around an unfenced diff would read as its context */
            buf_puts(&b, "Here are the edits:\n\n");
        buf_add(&b, body.data, body.len);
        if (f != DIFF && chance(w->r, 50))
            buf_puts(&b, "\nThat is all.\n");
    } else {
        prose(w, &b);
        fenced(w, &b, body, f);
        if (chance(w->r, 40))
            buf_puts(&b, "\nThis keeps the structure. `__syncthreads()` stays.\n");
    }
    t = buf_copy(&b, w->a);
    buf_release(&b);
    return t;
}

/* ---- the two properties --------------------------------------------------------------------- */

static void complain(const char *what, unsigned long n, struct text source, struct text reply,
                     struct text want, const struct edit_result *r)
{
    print_error("reply %lu: %s (%s: %s; %s)\n--- source\n%s\n--- reply\n%s\n--- wanted\n%s\n"
                "--- got\n%.*s\n---\n",
                n, what, edit_status_names[r->status], r->reason, r->note, source.data, reply.data,
                want.data, (int)r->source.len, r->source.data);
}

/* 1: holds; 0: could not be written in this format; -1: does not hold. */
static int valid_reply(struct rng *rng, unsigned long n)
{
    struct world w = {.r = rng, .a = arena_new()};
    struct buf b = buf_init(1 << 20);
    enum format f = (enum format)pick(rng, FORMATS);
    struct text source, want, reply;
    struct edit_result r;
    int result = 1;

    draw_source(&w);
    draw_changes(&w);
    source = join(&w, w.lines, w.count);
    want = expected(&w);
    if (!write_edits(&w, f, &b)) {
        result = 0;
    } else {
        reply = wrap(&w, buf_text(&b), f);
        edit_apply(source, reply, w.a, &r);
        if (text_equal(source, want) ? r.status != EDIT_REJECTED || !strstr(r.reason, "no effect")
                                     : r.status != EDIT_APPLIED || !text_equal(r.source, want)) {
            complain("not as meant", n, source, reply, want, &r);
            result = -1;
        }
    }
    buf_release(&b);
    arena_free(w.a);
    return result;
}

/* Makes the written edits wrong in one way; says which words the reason must have. */
static const char *spoil(struct world *w, enum format f, struct buf *b)
{
    struct change bad = {.line = w->count + 1 + (int)pick(w->r, 50), .count = 1, .fresh_count = 0};

    if (f == SEARCH) {
        static const char *const broken[] = {
            "<<<<<<< SEARCH\nno such line anywhere\n=======\nx\n>>>>>>> REPLACE\n",
            "<<<<<<< SEARCH\nx\n=======\ny\n",
            "<<<<<<< SEARCH\n=======\ny\n>>>>>>> REPLACE\n",
        };
        static const char *const says[] = {"not found", "not finished", "empty"};
        unsigned k = pick(w->r, 3);

        buf_puts(b, broken[k]);
        return says[k];
    }
    if (f == DIFF) {
        buf_puts(b, "@@ -1,1 +1,1 @@\n-no such line anywhere\n+x\n");
        return "not found";
    }
    w->change_count = 0;
    draw_changes(w);
    if (chance(w->r, 25)) { /* cut in the middle */
        buf_clear(b);
        write_json(w, b, f == ANCHORED);
        b->len = b->len * 2 / 3;
        b->data[b->len] = 0;
        buf_putc(b, '\n');
        return "not JSON";
    }
    if (w->change_count == MAX_CHANGES)
        w->change_count--;
    if (chance(w->r, 50)) { /* out of range */
        w->changes[w->change_count++] = bad;
        buf_clear(b);
        write_json(w, b, false);
        return " of ";
    }
    bad = w->changes[0]; /* overlapping */
    if (bad.count == 0)
        w->changes[0].count = bad.count = 1, bad.line = w->changes[0].line = 0;
    w->changes[w->change_count++] = bad;
    buf_clear(b);
    write_json(w, b, false);
    return "";
}

static int invalid_reply(struct rng *rng, unsigned long n)
{
    struct world w = {.r = rng, .a = arena_new()};
    struct buf b = buf_init(1 << 20);
    enum format f = (enum format)pick(rng, FORMATS);
    struct text source, reply;
    struct edit_result r;
    const char *says;
    int result = 1;

    draw_source(&w);
    draw_changes(&w);
    source = join(&w, w.lines, w.count);
    if (!write_edits(&w, f, &b))
        buf_clear(&b);
    says = spoil(&w, f, &b);
    reply = wrap(&w, buf_text(&b), f);
    edit_apply(source, reply, w.a, &r);
    if (r.status != EDIT_REJECTED || !r.reason[0] || !strstr(r.reason, says) ||
        !text_equal(r.source, source)) {
        complain(says, n, source, reply, source, &r);
        result = -1;
    }
    buf_release(&b);
    arena_free(w.a);
    return result;
}

static void generated_replies_do_what_was_meant_or_nothing(void **state)
{
    const char *seed = getenv("EDIT_SEED"), *count = getenv("EDIT_COUNT");
    struct rng r = {seed ? strtoull(seed, NULL, 10) : 20261115};
    unsigned long want = count ? strtoul(count, NULL, 10) : 10000, valid = 0, invalid = 0, bad = 0;

    (void)state;
    while (valid + invalid < want && bad < 5) {
        bool good = chance(&r, 75);
        int how = good ? valid_reply(&r, valid + invalid) : invalid_reply(&r, valid + invalid);

        valid += good && how;
        invalid += !good && how;
        bad += how < 0;
    }
    print_message("%lu valid and %lu invalid replies\n", valid, invalid);
    assert_int_equal(bad, 0);
    assert_true(valid > want / 2 && invalid > want / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generated_replies_do_what_was_meant_or_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
