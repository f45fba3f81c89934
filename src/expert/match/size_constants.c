/* SPDX-License-Identifier: Apache-2.0 */
/*
 * size_constants.c - numbers derived from sizes, computed by the plan.
 *
 * Works on the text of a composed recipe. Functions at file scope that name a
 * number, or call one that does, are collected until none is added; then their parameter lists,
 * calls and launches get the number as well. A member function of a struct, or a function named
 * without being called, cannot be changed: then the number stays a literal.
 */
#include "expert/match/size_constants.h"

#include "base/buf.h"
#include "base/text.h"
#include "expert/compose/format_source.h"
#include "expert/graph/expr.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { ADDED_MAX = 256 * 1024, FUNCTIONS_MAX = 128 };

static const char plan_start[] = "CUTEGEN_PLAN(call)\n{\n";

struct function_text {
    struct text name;
    const char *open, *close; /* of the parameter list */
    const char *body, *end;
    uint64_t takes; /* numbers, as bits by id */
};

struct passing {
    struct text source;
    const char *host; /* where the plan's half begins */
    struct function_text f[FUNCTIONS_MAX];
    int count;
    bool lost; /* a number is needed where it cannot be handed to */
};

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The position behind the bracket that closes the one at p. */
static const char *behind(const char *p, const char *end)
{
    int depth = 0;

    for (; p < end; p++) {
        depth += *p == '(' || *p == '{' || *p == '[';
        depth -= *p == ')' || *p == '}' || *p == ']';
        if (depth == 0)
            return p + 1;
    }
    return end;
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && isspace((unsigned char)*p))
        p++;
    return p;
}

/* The word that ends before p, over blanks. */
static struct text word_before(const char *p, const char *from)
{
    const char *last;

    while (p > from && isspace((unsigned char)p[-1]))
        p--;
    for (last = p; p > from && in_word(p[-1]); p--)
        ;
    return (struct text){p, (size_t)(last - p)};
}

static const char *line_end(const char *p, const char *end)
{
    while (p < end && *p != '\n')
        p++;
    return p;
}

/* Definitions at file scope: NAME(...) { ... }. */
static void find_functions(struct passing *w)
{
    const char *p = w->source.data, *end = w->host;

    while (p < end) {
        const char *close, *body;

        if (*p == '#' || (*p == '/' && p + 1 < end && p[1] == '/')) {
            p = line_end(p, end);
        } else if (*p == '{') {
            p = behind(p, end);
        } else if (*p == '(') {
            close = behind(p, end);
            body = skip_blanks(close, end);
            if (body < end && *body == '{') {
                struct text name = word_before(p, w->source.data);

                if (w->count == FUNCTIONS_MAX) {
                    w->lost = true;
                    return;
                }
                w->f[w->count++] =
                    (struct function_text){name, p, close - 1, body, behind(body, end), 0};
            }
            p = close;
        } else {
            p++;
        }
    }
}

/* The next word of [p, end) that is `word`; NULL: none. Something stands before p, and at `end`. */
static const char *find_word(const char *p, const char *end, struct text word)
{
    for (; p + word.len <= end; p++)
        if (memcmp(p, word.data, word.len) == 0 && !in_word(p[word.len]) && !in_word(p[-1]))
            return p;
    return NULL;
}

static struct text number_name(const struct size_constant *c)
{
    return text_of(c->name);
}

/* What a function needs that calls others, or names numbers itself. */
static void spread(struct passing *w, const struct graph *g)
{
    bool more = true;

    for (int i = 0; i < w->count; i++)
        for (int k = 0; k < g->size_count; k++)
            if (find_word(w->f[i].body, w->f[i].end, number_name(&g->sizes[k])))
                w->f[i].takes |= (uint64_t)1 << g->sizes[k].id;
    while (more) {
        more = false;
        for (int i = 0; i < w->count; i++)
            for (int j = 0; j < w->count; j++) {
                uint64_t takes = w->f[i].takes | w->f[j].takes;

                if (!w->f[j].takes || takes == w->f[i].takes)
                    continue;
                if (text_equal(w->f[i].name, w->f[j].name) ||
                    find_word(w->f[i].body, w->f[i].end, w->f[j].name)) {
                    w->f[i].takes = takes;
                    more = true;
                }
            }
    }
}

static const struct function_text *taker(const struct passing *w, struct text word)
{
    for (int i = 0; i < w->count; i++)
        if (w->f[i].takes && text_equal(w->f[i].name, word))
            return &w->f[i];
    return NULL;
}

/* Is the position inside of a function at file scope? */
static const struct function_text *around(const struct passing *w, const char *p)
{
    for (int i = 0; i < w->count; i++)
        if (p >= w->f[i].open && p < w->f[i].end)
            return &w->f[i];
    return NULL;
}

/* Does the word stand where no function at file scope is? */
static bool named_outside(const struct passing *w, struct text word)
{
    const char *p = w->source.data + 1;

    while ((p = find_word(p, w->host, word)) != NULL) {
        if (!around(w, p))
            return true;
        p += word.len;
    }
    return false;
}

/* The bracket that opens the arguments of a call whose name ends at p; NULL: it is not called. */
static const char *call_opens(const char *p, const char *end)
{
    if (p < end && *p == '<') {
        int depth = 0;

        for (; p < end && *p != ';'; p++) {
            depth += *p == '<';
            depth -= *p == '>';
            if (depth == 0) {
                p++;
                break;
            }
        }
    }
    return p < end && *p == '(' ? p : NULL;
}

struct insertion {
    const char *at; /* before this */
    uint64_t takes;
    enum { AS_PARAMETER, AS_ARGUMENT } how;
    bool first; /* nothing stands before it */
};

enum { INSERTIONS_MAX = 512 };

struct insertions {
    struct insertion list[INSERTIONS_MAX];
    int count;
};

static void insert_at(struct passing *w, struct insertions *all, const char *open,
                      const char *close, uint64_t takes, bool parameter)
{
    if (all->count == INSERTIONS_MAX) {
        w->lost = true;
        return;
    }
    all->list[all->count++] =
        (struct insertion){close, takes, parameter ? AS_PARAMETER : AS_ARGUMENT,
                           skip_blanks(open + 1, close) == close};
}

/* Calls of, and definitions of, functions that take numbers. */
static void collect_device(struct passing *w, struct insertions *all)
{
    for (const char *p = w->source.data; p < w->host; p++) {
        struct text word = {p, 0};
        const struct function_text *f;
        const char *open;

        if (*p == '#' || (p[0] == '/' && p[1] == '/')) {
            p = line_end(p, w->host);
            continue;
        }
        while (in_word(p[word.len]))
            word.len++;
        if (!word.len)
            continue;
        f = taker(w, word);
        p += word.len - 1;
        if (!f)
            continue;
        open = call_opens(p + 1, w->host);
        if (!open || !(around(w, word.data) || around(w, open))) {
            w->lost = true;
            return;
        }
        insert_at(w, all, open, behind(open, w->host) - 1, f->takes,
                  around(w, open) && around(w, open)->open == open);
    }
}

/* Launches of kernels that take numbers: the last argument of the macro around their name. */
static void collect_host(struct passing *w, struct insertions *all)
{
    static const char launch[] = "CUTEGEN_LAUNCH";
    const char *end = w->source.data + w->source.len;

    for (const char *p = strstr(w->host, launch); p && p < end; p = strstr(p + 1, launch)) {
        const char *open = memchr(p, '(', (size_t)(end - p)), *close;

        if (!open)
            return;
        close = behind(open, end) - 1;
        for (int i = 0; i < w->count; i++)
            if (w->f[i].takes && find_word(open, close, w->f[i].name)) {
                insert_at(w, all, open, close, w->f[i].takes, false);
                break;
            }
    }
}

/* ---- writing --------------------------------------------------------------------------- */

static void put_size(struct buf *b, const struct size_term *t, const char *call)
{
    buf_printf(b, "(double)(%s->in[%d].shape[%d]", call, t->places[0][0], t->places[0][1]);
    buf_printf(b, t->shift ? " %c %d)" : ")", t->shift < 0 ? '-' : '+',
               t->shift < 0 ? -t->shift : t->shift);
}

static void put_power(struct buf *b, const struct size_term *t, const char *call)
{
    double power = t->power < 0 ? -t->power : t->power;

    if (power < 1)
        buf_puts(b, "cutegen_sqrt(");
    put_size(b, t, call);
    if (power < 1)
        buf_puts(b, ")");
    if (power > 1) {
        buf_puts(b, " * ");
        put_size(b, t, call);
    }
}

/* The number as the plan computes it. */
static const char *formula_text(const struct size_constant *c, const char *call, struct arena *a)
{
    struct buf b = buf_init(4096);
    const char *text;
    bool above = false, below = false;

    for (int i = 0; i < c->term_count; i++)
        above = above || c->terms[i].power > 0;
    if (c->factor != 1 || !above)
        buf_printf(&b, "%.17g%s", c->factor, above ? " * " : "");
    above = false;
    for (int i = 0; i < c->term_count; i++)
        if (c->terms[i].power > 0) {
            buf_puts(&b, above ? " * " : "");
            put_power(&b, &c->terms[i], call);
            above = true;
        }
    for (int i = 0; i < c->term_count; i++)
        if (c->terms[i].power < 0) {
            buf_puts(&b, below ? " * " : " / (");
            put_power(&b, &c->terms[i], call);
            below = true;
        }
    buf_puts(&b, below ? ")" : "");
    text = buf_copy(&b, a).data;
    buf_release(&b);
    return text;
}

/* Dimensions that may both be meant are required to be equal. */
static void put_equal(struct buf *b, const struct size_constant *c, const char *call)
{
    for (int i = 0; i < c->term_count; i++)
        for (int k = 1; k < c->terms[i].place_count; k++) {
            const int *one = c->terms[i].places[0], *two = c->terms[i].places[k];

            buf_printf(b,
                       "    CUTEGEN_REQUIRE(call, %s->in[%d].shape[%d] == %s->in[%d].shape[%d], "
                       "\"sizes that were equal must be equal\");\n",
                       call, one[0], one[1], call, two[0], two[1]);
        }
}

static void put_insertion(struct buf *b, const struct graph *g, const struct insertion *x)
{
    bool first = x->first;

    for (int k = 0; k < g->size_count; k++) {
        if (!(x->takes >> g->sizes[k].id & 1))
            continue;
        buf_printf(b, "%s%s%s", first ? "" : ", ", x->how == AS_PARAMETER ? "float " : "",
                   g->sizes[k].name);
        first = false;
    }
}

/* The plan's first lines: the numbers, computed. */
static void put_numbers(struct buf *b, const struct graph *g, uint64_t named, const char *call,
                        struct arena *a)
{
    for (int k = 0; k < g->size_count; k++) {
        if (!(named >> g->sizes[k].id & 1))
            continue;
        put_equal(b, &g->sizes[k], call);
        buf_printf(b, "    float %s = (float)(%s);\n", g->sizes[k].name,
                   formula_text(&g->sizes[k], call, a));
    }
}

static int by_position(const void *a, const void *b)
{
    const struct insertion *x = a, *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

static struct text lengthened(const struct passing *w, const struct graph *g, const char *call,
                              struct insertions *all, uint64_t named, struct arena *a)
{
    const char *p = w->source.data, *end = p + w->source.len, *plan = strstr(w->host, plan_start);
    struct buf b = buf_init(2 * w->source.len + ADDED_MAX);
    struct text out;

    plan = plan ? plan + sizeof(plan_start) - 1 : end;
    qsort(all->list, (size_t)all->count, sizeof(all->list[0]), by_position);
    for (int i = 0; i <= all->count; i++) {
        const char *to = i < all->count ? all->list[i].at : end;

        if (p < plan && plan <= to) {
            buf_add(&b, p, (size_t)(plan - p));
            put_numbers(&b, g, named, call, a);
            p = plan;
        }
        buf_add(&b, p, (size_t)(to - p));
        p = to;
        if (i < all->count)
            put_insertion(&b, g, &all->list[i]);
    }
    out = tidy_source(buf_text(&b), a);
    buf_release(&b);
    return out;
}

/* The numbers as literals again. */
static struct text with_literals(const struct graph *g, struct text source, struct arena *a)
{
    struct buf b = buf_init(2 * source.len + ADDED_MAX);
    struct text out;

    for (const char *p = source.data, *end = p + source.len; p < end;) {
        size_t len = 0;
        const char *text = NULL;

        while (p + len < end && in_word(p[len]))
            len++;
        for (int k = 0; k < g->size_count && len && !text; k++)
            if (text_equal((struct text){p, len}, number_name(&g->sizes[k])))
                text = expr_literal(g->sizes[k].value, "float", a);
        if (text)
            buf_puts(&b, text);
        else
            buf_add(&b, p, len ? len : 1);
        p += len ? len : 1;
    }
    out = buf_copy(&b, a);
    buf_release(&b);
    return out;
}

struct text size_constants_pass(const struct graph *g, const char *call, struct text source,
                                struct arena *a, uint64_t *literal)
{
    struct passing *w = arena_alloc(a, sizeof(*w));
    struct insertions *all = arena_alloc(a, sizeof(*all));
    uint64_t named = 0, used = 0;

    for (int k = 0; k < g->size_count; k++)
        used |= (uint64_t)1 << g->sizes[k].id;
    if (!used)
        return source;
    *w = (struct passing){.source = source, .host = strstr(source.data, "#ifdef CUTEGEN_HOST\n")};
    if (!w->host)
        w->host = source.data + source.len;
    find_functions(w);
    spread(w, g);
    for (int i = 0; i < w->count; i++)
        named |= w->f[i].takes;
    for (int k = 0; k < g->size_count; k++)
        w->lost = w->lost || named_outside(w, number_name(&g->sizes[k]));
    collect_device(w, all);
    collect_host(w, all);
    if (w->lost) {
        *literal |= used;
        return with_literals(g, source, a);
    }
    *literal |= used & ~named;
    return named ? lengthened(w, g, call, all, named, a) : source;
}

/* ---- what a literal requires ------------------------------------------------------------- */

static void put_required_shapes(struct buf *b, const struct graph *g)
{
    for (int i = 0; i < g->in_count; i++)
        for (int d = 0; d < g->in[i].dims; d++)
            buf_printf(b,
                       "    CUTEGEN_REQUIRE(call, call->in[%d].shape[%d] == %lld, \"the kernel "
                       "holds a number that depends on sizes: only these shapes\");\n",
                       i, d, (long long)g->in[i].shape[d]);
}

struct text size_constants_require(const struct graph *g, uint64_t literal, struct text source,
                                   struct arena *a)
{
    const char *plan = strstr(source.data, plan_start);
    struct buf b = buf_init(2 * source.len + ADDED_MAX);
    struct text out;

    if ((!literal && !g->size_unknown) || !plan)
        return source;
    plan += sizeof(plan_start) - 1;
    buf_add(&b, source.data, (size_t)(plan - source.data));
    for (int k = 0; k < g->size_count; k++) {
        const struct size_constant *c = &g->sizes[k];
        const char *text = formula_text(c, "call", a);

        if (!(literal >> c->id & 1))
            continue;
        put_equal(&b, c, "call");
        buf_printf(&b,
                   "    CUTEGEN_REQUIRE(call, (%s - %.17g) * (%s - %.17g) <= %.17g, \"the kernel "
                   "holds a number that depends on sizes: not these\");\n",
                   text, c->value, text, c->value, c->value * c->value * 1e-12);
    }
    if (g->size_unknown)
        put_required_shapes(&b, g);
    buf_add(&b, plan, (size_t)(source.data + source.len - plan));
    out = tidy_source(buf_text(&b), a);
    buf_release(&b);
    return out;
}
