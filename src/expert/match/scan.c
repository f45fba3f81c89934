/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - running sums and products: of pointwise operators, along one dimension, both ways.
 *
 * A scan is cut as a reduction is (rows.h): the scanned dimension is the
 * "row", what is scanned an element function. Backwards comes as flips around it.
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

bool match_scan(const struct graph *g, struct arena *a, struct match *out)
{
    struct rows *q = arena_alloc(a, sizeof(*q));
    struct scan *scan = arena_alloc(a, sizeof(*scan));
    const struct node *n = below_finish(g, a, scan), *x;
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
    if (!x || tensor_numel(&x->t) == 0 || !expr_value_type(x->t.dtype))
        return match_no(out, a, "a running value of nothing");
    for (int i = 0; i < g->count; i++)
        if (row_form_of(g, &g->nodes[i]))
            return match_no(out, a, "%s is a reduction beside a running value", g->nodes[i].op);
    scan->sum = graph_op_is(inner, "aten.cumsum");
    rows_start(q, g, a, out);
    q->scan = scan;
    q->full = x->t;
    q->reduced[dim] = true;
    rows_split_shape(q);
    return rows_element(q, x) && rows_output(q, 0, x, false) && rows_fill_slots(q);
}
