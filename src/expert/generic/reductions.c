/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reductions.c - sums, products, extremes over any dimensions; matrix products and convolutions.
 *
 * Each is a loop within a kernel. At depth 0 of loops the threads of a team share it: each takes
 * every team'th term, and they combine their results at its end.
 */
#include "expert/generic/generic.h"

#include <string.h>

enum { LONG_SUM = 32 }; /* of whose loop several turns are under way at a time */

/* ---- loops ------------------------------------------------------------------------ */

bool loops_shared(const struct kernel *k)
{
    return k->loops == 0 && k->team > 1;
}

int loops_open(struct kernel *k, const int64_t *extents, int count, const char **names)
{
    bool shared = loops_shared(k);
    int mark = k->memo_count;
    int64_t all = 1, stride = 1;
    const char *r, *last = "";

    for (int i = 0; i < count; i++)
        all *= extents[i];
    if (k->loops == 0 && all > k->terms)
        k->terms = all;
    r = arena_printf(k->in->a, "r%d", ++k->names);
    if (shared && k->unroll)
        kernel_line(k, "#pragma unroll 8");
    if (shared)
        kernel_open(k, true, "for (%s %s = threadIdx.x %% %d; %s < %lld; %s += %d)", k->index, r,
                    k->team, r, (long long)all, r, k->team);
    for (int i = 0; i < count; i++) {
        names[i] = "0";
        if (extents[i] == 1 || shared)
            continue;
        if (*last)
            kernel_line(k, "%s", last);
        names[i] = arena_printf(k->in->a, "r%d", ++k->names);
        last = arena_printf(k->in->a, "for (%s %s = 0; %s < %lld; %s++)", k->index, names[i],
                            names[i], (long long)extents[i], names[i]);
    }
    if (!shared && k->unroll)
        kernel_line(k, "#pragma unroll 8");
    if (!shared)
        kernel_open(k, true, "%s", last);
    k->unroll = false;
    for (int i = count; shared && i-- > 0; stride *= extents[i]) {
        const char *text = r;

        if (extents[i] == 1)
            continue;
        if (stride > 1)
            text = arena_printf(k->in->a, "%s / %lld", text, (long long)stride);
        if (stride * extents[i] < all)
            text = arena_printf(k->in->a, "%s %% %lld", text, (long long)extents[i]);
        names[i] = kernel_index(k, "%s", text);
    }
    return mark;
}

void loops_close(struct kernel *k, int mark)
{
    kernel_close(k, mark, true);
}

/* ---- reductions -------------------------------------------------------------------- */

static const struct reduction {
    const char *op, *start, *step, *meet;
    bool whole; /* without dimensions given it is of everything, even where there is an argument */
} reductions[] = {
    {"aten.sum", "0", "+=", "team_sum", false},      {"aten.mean", "0", "+=", "team_sum", false},
    {"aten.prod", "1", "*=", "team_product", false}, {"aten.amax", NULL, "", "team_max", false},
    {"aten.amin", NULL, "", "team_min", false},      {"aten.max", NULL, "", "team_max", true},
    {"aten.min", NULL, "", "team_min", true},        {"aten.any", "0", "|=", "team_max", false},
    {"aten.all", "1", "&=", "team_min", false},      {"aten.argmax", NULL, NULL, NULL, false},
    {"aten.argmin", NULL, NULL, NULL, false},
};

static const struct reduction *reduction_find(const struct node *n)
{
    for (size_t i = 0; i < ARRAY_LEN(reductions); i++)
        if (graph_op_is(n, reductions[i].op) &&
            !(reductions[i].whole && strstr(n->op, ".other"))) /* of two tensors */
            return &reductions[i];
    return NULL;
}

bool reduction_of(const struct graph *g, const struct node *n, bool reduced[MAX_DIMS],
                  int64_t *count)
{
    const struct node *x = graph_first(g, n);
    int64_t dims[MAX_DIMS];
    int given;

    if (!reduction_find(n) || !x)
        return false;
    given = graph_arg_ints(n, 1, "dim", dims);
    if (strcmp(n->op, "aten.max.default") == 0 || strcmp(n->op, "aten.min.default") == 0 ||
        strcmp(n->op, "aten.prod.default") == 0 || strcmp(n->op, "aten.sum.default") == 0)
        given = -1;
    *count = 1;
    for (int d = 0; d < x->t.dims; d++)
        reduced[d] = given <= 0;
    for (int i = 0; i < given && x->t.dims; i++)
        reduced[dim_wrap(dims[i], x->t.dims)] = true;
    for (int d = 0; d < x->t.dims; d++)
        *count *= reduced[d] ? x->t.shape[d] : 1;
    return true;
}

/* The positions of kept dimensions, and the extents of reduced ones. */
static struct coords place_kept(const struct node *n, const struct node *x, const bool *reduced,
                                const struct coords *at, int64_t *extents, int *gone, int *count)
{
    bool keeps = n->t.dims == x->t.dims;
    struct coords p = {{NULL}};

    *count = 0;
    for (int d = 0, j = 0; d < x->t.dims; d++) {
        if (!reduced[d]) {
            p.at[d] = at->at[j++];
            continue;
        }
        j += keeps;
        gone[*count] = d;
        extents[(*count)++] = x->t.shape[d];
    }
    return p;
}

static const char *sum_type(const struct node *n)
{
    return *n->t.dtype == 'i' || *n->t.dtype == 'u' ? "int64_t"
           : strcmp(n->t.dtype, "bool") == 0        ? "int"
                                                    : value_float(n);
}

static const char *extreme_start(const struct node *x, bool largest)
{
    if (strcmp(x->t.dtype, "bool") == 0)
        return largest ? "0" : "1";
    if (strstr(x->t.dtype, "f"))
        return largest ? "-__int_as_float(0x7f800000)" : "__int_as_float(0x7f800000)";
    return largest ? "INT64_MIN_" : "INT64_MAX_";
}

static const char *accumulated(struct kernel *k, const struct node *n, const struct node *x,
                               const struct coords *at, const struct reduction *r)
{
    bool reduced[MAX_DIMS] = {false}, extreme = !r->start;
    bool shared = loops_shared(k);
    int64_t extents[MAX_DIMS], terms;
    int gone[MAX_DIMS], count, mark;
    const char *names[MAX_DIMS], *acc = arena_printf(k->in->a, "acc%d", ++k->names), *v;
    const char *type = extreme ? sum_type(x) : sum_type(n);
    struct coords p;

    reduction_of(k->in->g, n, reduced, &terms);
    p = place_kept(n, x, reduced, at, extents, gone, &count);
    k->along = k->along || (k->loops == 0 && x->t.dims && reduced[x->t.dims - 1]);
    kernel_line(k, "%s %s = %s;", type, acc,
                extreme ? extreme_start(x, strstr(r->meet, "max") != NULL) : r->start);
    k->unroll = k->loops == 0 && terms >= LONG_SUM;
    mark = loops_open(k, extents, count, names);
    for (int i = 0; i < count; i++)
        p.at[gone[i]] = names[i];
    v = value_at(k, x, &p);
    if (!v)
        return NULL;
    if (extreme)
        kernel_line(k, "%s = %s(%s, %s(%s));", acc, strstr(r->meet, "max") ? "larger" : "smaller",
                    acc, type, v);
    else
        kernel_line(k, "%s %s %s;", acc, r->step,
                    *r->step == '|' || *r->step == '&' ? arena_printf(k->in->a, "%s != 0", v) : v);
    loops_close(k, mark);
    if (shared)
        kernel_line(k, "%s = %s<%d>(%s);", acc, r->meet, k->team, acc);
    if (graph_op_is(n, "aten.mean"))
        return kernel_name(k, value_type(n), "%s / %s", acc,
                           expr_literal((double)terms, value_float(n), k->in->a));
    return kernel_name(k, value_type(n), "%s(%s)", value_type(n), acc);
}

/* The first index of the extreme; NaN counts as the extreme. */
static const char *extreme_place(struct kernel *k, const struct node *n, const struct node *x,
                                 const struct coords *at, bool largest)
{
    bool reduced[MAX_DIMS] = {false}, shared = loops_shared(k);
    int64_t extents[MAX_DIMS], terms;
    int gone[MAX_DIMS], count, mark;
    const char *names[MAX_DIMS], *v, *i = "0", *best = arena_printf(k->in->a, "best%d", ++k->names);
    struct coords p;

    reduction_of(k->in->g, n, reduced, &terms);
    p = place_kept(n, x, reduced, at, extents, gone, &count);
    kernel_line(k, "Best<%s> %s = {%s, %s};", sum_type(x), best, extreme_start(x, largest), "-1");
    mark = loops_open(k, extents, count, names);
    for (int j = 0; j < count; j++) {
        p.at[gone[j]] = names[j];
        i = j ? arena_printf(k->in->a, "(%s * %lld + %s)", i, (long long)extents[j], names[j])
              : names[j];
    }
    v = value_at(k, x, &p);
    if (!v)
        return NULL;
    kernel_line(k, "%s = better<%s>(%s, {%s(%s), %s});", best, largest ? "true" : "false", best,
                sum_type(x), v, i);
    loops_close(k, mark);
    if (shared)
        kernel_line(k, "%s = team_best<%d, %s>(%s);", best, k->team, largest ? "true" : "false",
                    best);
    return kernel_name(k, value_type(n), "%s(%s.at)", value_type(n), best);
}

const char *value_reduced(struct kernel *k, const struct node *n, const struct coords *at,
                          bool *mine)
{
    const struct reduction *r = reduction_find(n);
    const struct node *x = r ? graph_first(k->in->g, n) : NULL;

    *mine = r && x;
    if (!*mine)
        return NULL;
    if (!value_type(x))
        return value_no(k, x, "a type it does not compute with");
    if (!r->step)
        return extreme_place(k, n, x, at, strstr(r->op, "max") != NULL);
    return accumulated(k, n, x, at, r);
}

/* ---- products ------------------------------------------------------------------------ */

static const char *sum_closed(struct kernel *k, const struct node *n, const char *acc, int mark,
                              bool shared)
{
    loops_close(k, mark);
    if (shared)
        kernel_line(k, "%s = team_sum<%d>(%s);", acc, k->team, acc);
    return kernel_name(k, value_type(n), "%s(%s)", value_type(n), acc);
}

static const char *multiplied(struct kernel *k, const struct node *n, const struct coords *at)
{
    const struct node *x = graph_first(k->in->g, n), *y = graph_arg(k->in->g, n, 1);
    const char *acc = arena_printf(k->in->a, "acc%d", ++k->names), *r, *a, *b;
    bool shared = loops_shared(k);
    struct coords p = *at, q = *at;
    int d = n->t.dims, mark;

    kernel_line(k, "%s %s = 0;", sum_type(n), acc);
    mark = loops_open(k, &x->t.shape[d - 1], 1, &r);
    p.at[d - 1] = r;
    q.at[d - 2] = r;
    a = value_at(k, x, &p);
    b = a ? value_at(k, y, &q) : NULL;
    if (!b)
        return NULL;
    kernel_line(k, "%s += %s * %s;", acc, a, b);
    return sum_closed(k, n, acc, mark, shared);
}

struct convolution {
    const struct node *x, *w;
    int dims;
    int64_t stride[MAX_DIMS], padding[MAX_DIMS], dilation[MAX_DIMS], groups;
    bool transposed;
};

static bool read_sizes(const struct node *n, size_t index, const char *keyword, int dims,
                       int64_t *out)
{
    int count = graph_arg_ints(n, index, keyword, out);

    for (int d = 1; count == 1 && d < dims; d++)
        out[d] = out[0];
    return count == 1 || count == dims;
}

static bool convolution_read(const struct graph *g, const struct node *n, struct convolution *c)
{
    int64_t flag = 0;

    *c = (struct convolution){.x = graph_first(g, n), .w = graph_arg(g, n, 1), .groups = 1};
    if (!c->x || !c->w)
        return false;
    c->dims = c->x->t.dims - 2;
    graph_arg_int(n, 6, "transposed", &flag);
    graph_arg_int(n, 8, "groups", &c->groups);
    c->transposed = flag;
    return c->dims > 0 && read_sizes(n, 3, "stride", c->dims, c->stride) &&
           read_sizes(n, 4, "padding", c->dims, c->padding) &&
           read_sizes(n, 5, "dilation", c->dims, c->dilation);
}

/* The input's coordinate for this one of the result and tap r; the condition that there is one. */
static const char *tap(struct kernel *k, const struct convolution *c, int d, const char *o,
                       const char *r, const char **when)
{
    long long s = (long long)c->stride[d], l = (long long)c->dilation[d],
              p = (long long)c->padding[d];
    const char *i;

    if (!c->transposed) {
        i = kernel_index(k, "%s * %lld + %s * %lld - %lld", o, s, r, l, p);
        *when = arena_printf(k->in->a, "%s%s%s >= 0 && %s < %lld", *when, **when ? " && " : "", i,
                             i, (long long)c->x->t.shape[d + 2]);
        return i;
    }
    i = kernel_index(k, "%s + %lld - %s * %lld", o, p, r, l);
    *when = arena_printf(k->in->a, "%s%s%s >= 0 && %s %% %lld == 0 && %s / %lld < %lld", *when,
                         **when ? " && " : "", i, i, s, i, s, (long long)c->x->t.shape[d + 2]);
    return s == 1 ? i : kernel_index(k, "%s / %lld", i, s);
}

static const char *convolved(struct kernel *k, const struct node *n, const struct coords *at)
{
    struct convolution c;
    bool shared = loops_shared(k);
    const char *acc = arena_printf(k->in->a, "acc%d", ++k->names), *names[MAX_DIMS], *when = "";
    const char *a, *b, *channel, *group, *bias = NULL;
    int64_t extents[MAX_DIMS], in_each, out_each;
    struct coords p = *at, q = {{NULL}};
    int mark, inside;

    if (!convolution_read(k->in->g, n, &c))
        return value_no(k, n, "a convolution with these arguments");
    in_each = c.x->t.shape[1] / c.groups;
    out_each = n->t.shape[1] / c.groups;
    if (graph_arg(k->in->g, n, 2)) {
        struct coords first = {{at->at[1]}};

        bias = value_at(k, graph_arg(k->in->g, n, 2), &first);
    }
    group = c.groups == 1 ? "0" : kernel_index(k, "%s / %lld", at->at[1], (long long)out_each);
    kernel_line(k, "%s %s = 0;", sum_type(n), acc);
    for (int d = 0; d < c.dims; d++)
        extents[d] = c.w->t.shape[d + 2];
    extents[c.dims] = in_each;
    mark = loops_open(k, extents, c.dims + 1, names);
    for (int d = 0; d < c.dims; d++)
        p.at[d + 2] = tap(k, &c, d, at->at[d + 2], names[d], &when);
    inside = kernel_open(k, false, "if (%s)", when);
    channel = c.groups == 1
                  ? names[c.dims]
                  : kernel_index(k, "%s * %lld + %s", group, (long long)in_each, names[c.dims]);
    p.at[1] = channel;
    for (int d = 0; d < c.dims; d++)
        q.at[d + 2] = names[d];
    q.at[0] = c.transposed ? channel : at->at[1];
    q.at[1] = !c.transposed   ? names[c.dims]
              : c.groups == 1 ? at->at[1]
                              : kernel_index(k, "%s %% %lld", at->at[1], (long long)out_each);
    a = value_at(k, c.x, &p);
    b = a ? value_at(k, c.w, &q) : NULL;
    if (!b)
        return NULL;
    kernel_line(k, "%s += %s * %s;", acc, a, b);
    kernel_close(k, inside, false);
    b = sum_closed(k, n, acc, mark, shared);
    return bias ? kernel_name(k, value_type(n), "%s + %s", b, bias) : b;
}

const char *value_product(struct kernel *k, const struct node *n, const struct coords *at,
                          bool *mine)
{
    *mine = true;
    if (graph_op_is(n, "aten.mm") || graph_op_is(n, "aten.bmm"))
        return multiplied(k, n, at);
    if (graph_op_is(n, "aten.convolution"))
        return convolved(k, n, at);
    *mine = false;
    return NULL;
}
