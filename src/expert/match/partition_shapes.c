/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition_shapes.c - the shape of a part's result, as text over the tensors that a plan has.
 *
 * What does not follow from them is a number, and the plan then holds for these sizes alone.
 */
#include "expert/match/attention.h"
#include "expert/match/convolution.h"
#include "expert/match/gemm.h"
#include "expert/match/partition.h"

#include <string.h>

const char *part_tensor(const struct parts *p, int from, struct arena *a)
{
    int made = -1 - from;

    if (from >= 0)
        return arena_printf(a, "call->in[%d]", from);
    if (p->at[made].out >= 0)
        return arena_printf(a, "call->out[%d]", p->at[made].out);
    return arena_printf(a, "t%d", made + 1);
}

struct shapes {
    const struct parts *p;
    const struct part *part;
    struct arena *a;
};

static const char *dim_text(const struct shapes *s, const struct node *n, int d);

/* A reshape: a dimension that is some neighbouring ones of the argument, merged. */
static const char *merged_text(const struct shapes *s, const struct node *n, const struct node *x,
                               int d)
{
    int64_t before = 1, have = 1, size = 1;
    const char *text = NULL;

    for (int i = 0; i < d; i++)
        before *= n->t.shape[i];
    for (int i = 0; i < x->t.dims && have <= before * n->t.shape[d]; have *= x->t.shape[i++]) {
        const char *one;

        if (have < before || x->t.shape[i] == 1 || size == n->t.shape[d])
            continue;
        if ((have != before && !text) || !(one = dim_text(s, x, i)))
            return NULL;
        text = text ? arena_printf(s->a, "%s * %s", text, one) : one;
        size *= x->t.shape[i];
    }
    return size == n->t.shape[d] ? (text ? text : "1") : NULL;
}

/* An elementwise operator: the argument that has this dimension in full. */
static const char *widest_text(const struct shapes *s, const struct node *n, int d)
{
    size_t i;
    const json_t *arg;

    json_array_foreach(n->args, i, arg)
    {
        const struct node *x = graph_arg(s->part->g, n, i);
        int at = x ? d - (n->t.dims - x->t.dims) : -1;

        if (at >= 0 && x->t.shape[at] == n->t.shape[d] && !x->value)
            return dim_text(s, x, at);
    }
    return NULL;
}

static int turned(const struct node *n, int d)
{
    int64_t i = -2, j = -1, order[MAX_DIMS];
    int dims = n->t.dims;

    if (graph_op_is(n, "aten.permute"))
        return graph_arg_ints(n, 1, "dims", order) == dims
                   ? (int)(order[d] < 0 ? order[d] + dims : order[d])
                   : -1;
    if (graph_op_is(n, "aten.transpose") &&
        (!graph_arg_int(n, 1, "dim0", &i) || !graph_arg_int(n, 2, "dim1", &j)))
        return -1;
    i += i < 0 ? dims : 0;
    j += j < 0 ? dims : 0;
    return d == i ? (int)j : d == j ? (int)i : d;
}

static const char *dim_text(const struct shapes *s, const struct node *n, int d)
{
    const struct graph *g = s->part->g;
    const struct node *x = graph_arg(g, n, 0);

    if (d < 0 || d >= n->t.dims)
        return NULL;
    if (strcmp(n->op, "input") == 0) {
        const char *x_text = part_tensor(s->p, s->part->from[n->index], s->a);

        return arena_printf(s->a, "%s.shape[%d]", x_text, d);
    }
    if (attention_is_fused(n)) {
        x = graph_arg(g, n, d == n->t.dims - 1 ? 2 : 0);
        return x ? dim_text(s, x, d) : NULL;
    }
    if (gemm_is_product(n)) {
        size_t first = graph_op_is(n, "aten.addmm") || graph_op_is(n, "aten.baddbmm");
        bool last = d == n->t.dims - 1;

        x = graph_arg(g, n, first + last);
        return x ? dim_text(s, x, d) : NULL;
    }
    if (conv_is(n)) /* but for the batch, sizes are numbers */
        return x && d == 0 ? dim_text(s, x, 0) : NULL;
    if (x && graph_reshapes(n))
        return merged_text(s, n, x, d);
    if (x && (graph_op_is(n, "aten.t") || graph_op_is(n, "aten.mT") ||
              graph_op_is(n, "aten.transpose") || graph_op_is(n, "aten.permute")))
        return dim_text(s, x, turned(n, d));
    return widest_text(s, n, d);
}

void part_shape(const struct parts *p, struct part *part, struct arena *a)
{
    const struct shapes s = {p, part, a};
    const struct node *result = graph_node(part->g, part->g->result[0]);

    for (int d = 0; d < result->t.dims; d++) {
        part->shape[d] = dim_text(&s, result, d);
        if (part->shape[d])
            continue;
        part->shape[d] = arena_printf(a, "%lld", (long long)result->t.shape[d]);
        part->fixed = true;
    }
}
