/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - running sums and products of pointwise values along one dimension, in both directions.
 *
 * A scan is split like a reduction (rows.h): the scanned dimension is the "row", and its input an
 * element function. A backward scan is one between flips.
 */
#include "expert/match/reduction_ops.h"
#include "expert/match/rows.h"

/* Is n a flip of dimension `dim` alone? */
static bool flips(const struct node *n, int dim)
{
    int64_t dims[MAX_DIMS];

    return graph_op_is(n, "aten.flip") && graph_arg_ints(n, 1, "dims", dims) == 1 &&
           (dims[0] < 0 ? dims[0] + n->t.dims : dims[0]) == dim;
}

static bool scan_dim(const struct node *n, int *dim)
{
    int64_t d;

    if (!graph_arg_int(n, 1, "dim", &d))
        return false;
    *dim = (int)(d < 0 ? d + n->t.dims : d);
    return *dim >= 0 && *dim < n->t.dims;
}

static bool is_scan(const struct node *n)
{
    return graph_op_is(n, "aten.cumsum") || graph_op_is(n, "aten.cumprod");
}

/* The only tensor a pointwise operator reads; NULL: it is none, or reads several. */
static const struct node *only_operand(const struct graph *g, const struct node *n, struct arena *a)
{
    const struct node *only = NULL;
    size_t i;
    const json_t *arg;

    if (!expr_knows(n, a))
        return NULL;
    json_array_foreach(n->args, i, arg)
    {
        const struct node *used = graph_arg(g, n, i);

        if (!used || used->value)
            continue;
        if (only && only != used)
            return NULL;
        only = used;
    }
    return only;
}

/* Down from the result through what is made of the running value alone. */
static const struct node *below_finish(const struct graph *g, struct arena *a, struct scan *scan)
{
    const struct node *result = graph_node(g, g->result[0]), *n = result;
    struct expr e = {.g = g, .a = a};
    const char *why;

    while (n && !is_scan(n) && !graph_op_is(n, "aten.flip"))
        n = only_operand(g, n, a);
    if (!n || n == result)
        return n;
    e.leaf[n - g->nodes] = "value";
    return expr_body(&e, result, &scan->finish, &why) ? n : NULL;
}

/* Zeros where it adds, ones where it multiplies? */
static bool is_start(const struct node *n, bool sum)
{
    static const char *const ops[2][3] = {{"aten.ones_like", "aten.ones", "aten.new_ones"},
                                          {"aten.zeros_like", "aten.zeros", "aten.new_zeros"}};

    for (int i = 0; n && i < 3; i++)
        if (graph_op_is(n, ops[sum][i]))
            return true;
    return false;
}

/* All but the last of dimension `dim`? */
static const struct node *without_last(const struct graph *g, const struct node *n, int dim)
{
    const struct node *x;
    int64_t d, start = 0, step = 1;

    if (!n || !graph_op_is(n, "aten.slice") || !(x = graph_arg(g, n, 0)) || x->t.dims != n->t.dims)
        return NULL;
    for (int i = 0; i < n->t.dims; i++)
        if (n->t.shape[i] != x->t.shape[i] - (i == dim))
            return NULL;
    graph_arg_int(n, 2, "start", &start);
    graph_arg_int(n, 4, "step", &step);
    return graph_arg_int(n, 1, "dim", &d) && (d < 0 ? d + n->t.dims : d) == dim && start == 0 &&
                   step == 1
               ? x
               : NULL;
}

/* What follows one slice of zeros (ones) along `dim`, in a concatenation of just these. */
static const struct node *behind_start(const struct graph *g, const struct node *n, int dim,
                                       bool sum)
{
    const json_t *list = n && graph_op_is(n, "aten.cat")
                             ? json_object_get(json_array_get(n->args, 0), "list")
                             : NULL;
    const struct node *first, *rest;
    int64_t d = 0;

    if (json_array_size(list) != 2)
        return NULL;
    graph_arg_int(n, 1, "dim", &d);
    first = graph_node(g, graph_id(json_array_get(list, 0)));
    rest = graph_node(g, graph_id(json_array_get(list, 1)));
    return (d < 0 ? d + n->t.dims : d) == dim && is_start(first, sum) && rest &&
                   first->t.dims == n->t.dims && first->t.shape[dim] == 1
               ? rest
               : NULL;
}

/* Running values that end before their element are written as those of what was moved on by one, or
 * are moved on themselves: (0, x)[:-1] or (0, scan[:-1]). */
static const struct node *moved_operand(const struct graph *g, const struct node *x, int dim,
                                        bool sum)
{
    return behind_start(g, without_last(g, x, dim), dim, sum);
}

static const struct node *moved_result(const struct graph *g, const struct node *n)
{
    for (int dim = 0; n && dim < n->t.dims; dim++)
        for (int sum = 0; sum < 2; sum++) {
            const struct node *scan = without_last(g, behind_start(g, n, dim, sum), dim);
            int along;

            if (scan && is_scan(scan) && graph_op_is(scan, "aten.cumsum") == (sum == 1) &&
                scan_dim(scan, &along) && along == dim)
                return scan;
        }
    return NULL;
}

bool match_scan(const struct graph *g, struct arena *a, struct match *out)
{
    struct rows *q;
    struct scan *scan = arena_alloc(a, sizeof(*scan));
    const struct node *moved = moved_result(g, graph_node(g, g->result[0])), *x;
    const struct node *n = moved ? moved : below_finish(g, a, scan);
    const struct node *inner = n && graph_op_is(n, "aten.flip") ? graph_arg(g, n, 0) : n;
    int dim;

    if (g->out_count != 1 || !inner || !is_scan(inner) || !scan_dim(inner, &dim))
        return match_no(
            out, a, "no running sum or product, or something made of it alone, is what it returns");
    x = graph_arg(g, inner, 0);
    if (inner != n) {
        if (!flips(n, dim) || !x || !flips(x, dim))
            return match_no(out, a, "a flip that is not around a running value");
        x = graph_arg(g, x, 0);
        scan->reverse = true;
    }
    scan->sum = graph_op_is(inner, "aten.cumsum");
    scan->exclusive = moved != NULL;
    if (!scan->reverse && !moved && moved_operand(g, x, dim, scan->sum)) {
        scan->exclusive = true;
        x = moved_operand(g, x, dim, scan->sum);
    }
    if (!x || tensor_numel(&x->t) == 0 || !expr_value_type(x->t.dtype))
        return match_no(out, a, "a running value of nothing");
    for (int i = 0; i < g->count; i++)
        if (row_form_of(g, &g->nodes[i]))
            return match_no(out, a, "%s is a reduction beside a running value", g->nodes[i].op);
    q = arena_alloc(a, sizeof(*q)); /* a megabyte: only now */
    rows_start(q, g, a, out);
    q->scan = scan;
    q->full = x->t;
    q->reduced[dim] = true;
    rows_split_shape(q);
    return rows_element(q, x) && rows_output(q, 0, x, false) && rows_fill_slots(q);
}
