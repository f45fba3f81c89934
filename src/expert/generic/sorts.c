/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sorts.c - passes of a sort: the places of a row's elements in sorted order.
 *
 * The first pass sorts runs (oracle/formulas_sort.py has their width), each
 * further one merges two neighbours: an element of the result finds by
 * bisection how many come from the left run (merge path). Equal elements stay
 * in their order.
 */
#include "expert/generic/generic.h"

#include <string.h>

bool sort_is_pass(const struct node *n)
{
    return strncmp(n->op, "generic.sort_", 13) == 0;
}

static bool is_merge(const struct node *n)
{
    return strcmp(n->op, "generic.sort_merge") == 0;
}

double sort_steps(const struct node *n)
{
    int64_t width = arg_int_or(n, 9, "width", 16);
    double steps = 1;

    if (!is_merge(n))
        return (double)(width * width);
    while (width > 1) {
        width /= 2;
        steps++;
    }
    return steps;
}

struct sort_row {
    const struct node *x, *order; /* order: NULL in the first pass */
    struct coords at;
    int dim;
    int64_t size, width;
    const char *before; /* "sorts_before<true>" */
};

/* The element at this place of the order so far. */
static const char *key_at(struct kernel *k, const struct sort_row *r, const char *slot)
{
    struct coords p = r->at;
    const char *i = slot;

    p.at[r->dim] = slot;
    if (r->order)
        i = value_at(k, r->order, &p);
    if (!i)
        return NULL;
    p.at[r->dim] = i;
    return value_at(k, r->x, &p);
}

/* Each element of the run counts those before it; the one with the slot's number is it. */
static const char *run_place(struct kernel *k, const struct node *n, const struct sort_row *r,
                             const char *slot)
{
    long long w = (long long)r->width, size = (long long)r->size;
    const char *start = kernel_index(k, "%s / %lld * %lld", slot, w, w);
    const char *end =
        kernel_index(k, "%s + %lld < %lld ? %s + %lld : %lld", start, w, size, start, w, size);
    const char *found = arena_printf(k->in->a, "found%d", ++k->names), *a, *b;
    int outer, inner;

    kernel_line(k, "int64_t %s = 0;", found);
    outer = kernel_open(k, true, "for (%s s = %s; s < %s; s++)", k->index, start, end);
    a = key_at(k, r, "s");
    kernel_line(k, "%s rank = %s;", k->index, start);
    inner = kernel_open(k, true, "for (%s t = %s; t < %s; t++)", k->index, start, end);
    b = key_at(k, r, "t");
    if (!a || !b)
        return NULL;
    kernel_line(k, "rank += %s(%s, %s) || (t < s && !%s(%s, %s));", r->before, b, a, r->before, a,
                b);
    kernel_close(k, inner, true);
    kernel_line(k, "if (rank == %s)", slot);
    kernel_line(k, "    %s = s;", found);
    kernel_close(k, outer, true);
    return kernel_name(k, value_type(n), "%s", found);
}

/* Of the first slot - start + 1 elements of two runs, how many come from the left one? */
static const char *merge_place(struct kernel *k, const struct node *n, const struct sort_row *r,
                               const char *slot)
{
    long long w = (long long)r->width, size = (long long)r->size;
    const char *start = kernel_index(k, "%s / %lld * %lld", slot, 2 * w, 2 * w);
    const char *middle =
        kernel_index(k, "%s + %lld < %lld ? %s + %lld : %lld", start, w, size, start, w, size);
    const char *end =
        kernel_index(k, "%s + %lld < %lld ? %s + %lld : %lld", middle, w, size, middle, w, size);
    const char *at = kernel_index(k, "%s - %s", slot, start), *a, *b, *from;
    struct coords p = r->at;
    int mark;

    kernel_line(k,
                "%s low = %s > %s - %s ? %s - (%s - %s) : 0, high = %s < %s - %s ? %s : %s - %s;",
                k->index, at, end, middle, at, end, middle, at, middle, start, at, middle, start);
    mark = kernel_open(k, true, "while (low < high)");
    kernel_line(k, "%s const half = (low + high) / 2;", k->index);
    a = key_at(k, r, kernel_index(k, "%s + half", start));
    b = key_at(k, r, kernel_index(k, "%s + %s - 1 - half", middle, at));
    if (!a || !b)
        return NULL;
    kernel_line(k, "if (!%s(%s, %s))", r->before, b, a);
    kernel_line(k, "    low = half + 1;");
    kernel_line(k, "else");
    kernel_line(k, "    high = half;");
    kernel_close(k, mark, true);
    /* low elements of the left run stand before; the next is its next, or the right run's */
    kernel_line(k, "%s from = %s + low;", k->index, start);
    kernel_line(k, "%s const other = %s + %s - low;", k->index, middle, at);
    kernel_line(k, "if (from == %s)", middle);
    kernel_line(k, "    from = other;");
    mark = kernel_open(k, true, "else if (other < %s)", end);
    a = key_at(k, r, "from");
    b = key_at(k, r, "other");
    if (!a || !b)
        return NULL;
    kernel_line(k, "if (%s(%s, %s))", r->before, b, a);
    kernel_line(k, "    from = other;");
    kernel_close(k, mark, true);
    p.at[r->dim] = "from";
    from = value_at(k, r->order, &p);
    return from ? kernel_name(k, value_type(n), "%s", from) : NULL;
}

const char *value_sorted(struct kernel *k, const struct node *n, const struct coords *at,
                         bool *mine)
{
    struct sort_row r = {.x = graph_first(k->in->g, n), .at = *at};
    bool down = arg_int_or(n, 9, "descending", 0);

    *mine = sort_is_pass(n);
    if (!*mine)
        return NULL;
    if (k->loops || k->team > 1)
        return value_no(k, n, "a sort inside of a sum");
    r.order = is_merge(n) ? graph_arg(k->in->g, n, 1) : NULL;
    r.dim = dim_wrap(arg_int_or(n, 9, "dim", 0), n->t.dims);
    r.width = arg_int_or(n, 9, "width", 16);
    r.size = n->t.shape[r.dim];
    r.before = down ? "sorts_before<true>" : "sorts_before<false>";
    return r.order ? merge_place(k, n, &r, at->at[r.dim]) : run_place(k, n, &r, at->at[r.dim]);
}
