/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_epilogue.c - the pointwise operators behind a convolution.
 *
 * What needs the sum and values of its output channel alone is early, computed where a thread has
 * few channels; the rest is late (recipes/conv_finish.cuh).
 */
#include "expert/match/conv_epilogue.h"

#include <string.h>

bool conv_same_shape(const struct tensor *a, const struct tensor *b)
{
    bool same = a->dims == b->dims;

    for (int d = 0; same && d < a->dims; d++)
        same = a->shape[d] == b->shape[d];
    return same;
}

static bool leaf_add(struct conv *q, const struct node *n, struct view *v, struct match *out)
{
    if (q->leaf_count == CONV_LEAVES)
        return match_no(out, q->a, "more than %d tensors beside the convolution", CONV_LEAVES);
    if (!expr_value_type(n->t.dtype) || !view_reshape(v, &q->shape))
        return match_no(out, q->a, "'%s' does not broadcast to the convolution",
                        q->g->in[v->input].name);
    q->leaves[q->leaf_count++] = (struct conv_leaf){
        n,          v->input,   names_add_tensor(&q->names, q->g->in[v->input].name, q->a),
        v->axes[0], v->axes[1], v->axes[2]};
    return true;
}

/* The bias, which runs along dimension 1. */
static bool bias_add(struct conv *q, struct match *out)
{
    const struct node *n = graph_arg(q->g, q->node, 2);
    struct tensor column = q->node->t;
    struct view v;

    if (!n)
        return true;
    for (int d = 0; d < column.dims; d++)
        column.shape[d] = d == 1 ? q->results : 1;
    if (!graph_view(q->g, n, &v) || !view_reshape(&v, &column) || !view_expand(&v, &q->node->t))
        return match_no(out, q->a, "a computed bias");
    q->biased = true;
    return leaf_add(q, n, &v, out);
}

/* A batch norm in inference: a value per channel each of weight, bias, mean and variance. */
static bool norm_behind(void *owner, const struct node *n, struct match *out)
{
    struct conv *q = owner;
    const char *form = conv_same_shape(&n->t, &q->node->t) ? match_fixed_norm(q->g, n, q->a) : NULL;

    for (size_t arg = 1; form && arg < 5; arg++) {
        const struct node *given = graph_arg(q->g, n, arg);
        struct tensor column = q->node->t;
        struct view v;

        if (!given || q->seen[given - q->g->nodes])
            continue;
        for (int d = 0; d < column.dims; d++)
            column.shape[d] = d == 1 ? q->results : 1;
        q->seen[given - q->g->nodes] = true;
        if (!graph_view(q->g, given, &v) || !view_reshape(&v, &column) ||
            !view_expand(&v, &q->node->t) || !leaf_add(q, given, &v, out))
            form = NULL;
    }
    q->special[n - q->g->nodes] = form;
    return form != NULL;
}

static bool leaf_beside(void *owner, const struct node *n, const struct tensor *at,
                        struct match *out)
{
    struct conv *q = owner;
    struct view v;

    return (graph_view(q->g, n, &v) && view_expand(&v, at) && leaf_add(q, n, &v, out)) ||
           match_no(out, q->a, "%s beside the convolution", n->op);
}

bool conv_read_epilogue(struct conv *q, struct match *out)
{
    struct epilogue after = {q->g,       q->a,        q->node, "convolution", q->seen,
                             expr_knows, leaf_beside, q,       norm_behind};

    return bias_add(q, out) && match_epilogue(&after, graph_node(q->g, q->g->result[0]), out);
}

/* ---- early and late ---------------------------------------------------------------- */

/* One value per output channel, or one in all? */
static bool is_column(const struct conv_leaf *leaf)
{
    return (leaf->n.stride == 0 || leaf->n.first == leaf->n.last) &&
           (leaf->p.stride == 0 || leaf->p.first == leaf->p.last);
}

static const struct conv_leaf *leaf_of(const struct conv *q, const struct node *n)
{
    for (int i = q->biased; i < q->leaf_count; i++)
        if (q->leaves[i].node == n)
            return &q->leaves[i];
    return NULL;
}

/*
 * The last operator before which only values of an output channel meet the sum, and through which
 * all else reads it. Until there, a thread computes with its channels' values at hand.
 */
static const struct node *early_end(const struct conv *q)
{
    const struct node *end = q->node;
    bool after[GRAPH_NODES] = {false}, pure[GRAPH_NODES] = {false};
    int first = (int)(q->node - q->g->nodes);

    after[first] = pure[first] = true;
    for (int i = first + 1; i < q->g->count; i++) {
        const struct node *n = &q->g->nodes[i], *x;
        const struct conv_leaf *leaf;

        if (!q->seen[i] || leaf_of(q, n))
            continue;
        pure[i] = true;
        for (size_t k = 0; k < json_array_size(n->args); k++) {
            if (!(x = graph_arg(q->g, n, k)))
                continue;
            leaf = leaf_of(q, x);
            after[i] = after[i] || after[x - q->g->nodes];
            pure[i] = pure[i] && (leaf ? is_column(leaf) : x->value || pure[x - q->g->nodes]);
        }
    }
    for (int i = first + 1; i < q->g->count; i++) {
        bool all = after[i] && pure[i];

        for (int j = i + 1; all && j < q->g->count; j++)
            for (size_t k = 0; all && after[j] && k < json_array_size(q->g->nodes[j].args); k++) {
                const struct node *x = graph_arg(q->g, &q->g->nodes[j], k);

                all = !x || x == &q->g->nodes[i] || !after[x - q->g->nodes] || x - q->g->nodes > i;
            }
        if (all)
            end = &q->g->nodes[i];
    }
    return end;
}

static const char *plus_bias(const struct conv *q, const char *body)
{
    return strcmp(body, "return sum;") == 0
               ? arena_printf(q->a, "return acc + %s;", q->leaves[0].name)
               : arena_printf(q->a, "float const sum = acc + %s;\n%s", q->leaves[0].name, body);
}

/* What `root` is in terms of `from`: slots NAME_body, and NAME_quick with the hardware's functions.
 */
static bool fill_body(struct conv *q, struct scope *s, const char *name, const struct node *from,
                      const struct node *root, struct match *out)
{
    bool biased = q->biased && strcmp(name, "late") != 0;
    struct expr e = {.g = q->g, .a = q->a, .see_through = true};
    const char *body, *quick;

    memcpy(e.special, q->special, sizeof(e.special));
    for (int i = q->biased; i < q->leaf_count; i++)
        e.leaf[q->leaves[i].node - q->g->nodes] = q->leaves[i].name;
    e.leaf[from - q->g->nodes] = biased ? "sum" : "acc";
    if (!expr_body(&e, root, &body, &out->why_not))
        return false;
    e.fast = e.coarse = true;
    if (!expr_body(&e, root, &quick, &out->why_not))
        return false;
    if (biased)
        body = plus_bias(q, body), quick = plus_bias(q, quick);
    if (strcmp(body, quick) != 0)
        scope_fact(s, "fast");
    expr_helpers(quick, s, q->a);
    scope_set(s, arena_printf(q->a, "%s_body", name), "%s", body);
    scope_set(s, arena_printf(q->a, "%s_quick", name), "%s", quick);
    return true;
}

static void fill_column(struct conv *q, struct scope *s, const struct conv_leaf *leaf)
{
    struct scope *item = scope_item(s, "column");

    scope_set(item, "x", "%s", leaf->name);
    scope_set(item, "X", "%s", match_capital(leaf->name, q->a));
    scope_set(item, "value", "%s", expr_value_type(leaf->node->t.dtype));
}

static void fill_beside(struct conv *q, struct scope *s, const struct conv_leaf *leaf)
{
    struct scope *item = scope_item(s, "far");

    scope_fact(s, "beside");
    scope_set(item, "x", "%s", leaf->name);
    scope_set(item, "X", "%s", match_capital(leaf->name, q->a));
    scope_set(item, "value", "%s", expr_value_type(leaf->node->t.dtype));
}

bool conv_fill_epilogue(struct conv *q, struct scope *s, struct match *out)
{
    const struct node *root = graph_node(q->g, q->g->result[0]), *end = early_end(q);
    const char *params = "float acc", *finish = "", *ahead = "", *early = "", *columns = params;
    int far = 0;

    for (int i = 0; i < q->leaf_count; i++) {
        const struct conv_leaf *leaf = &q->leaves[i];
        const char *value = expr_value_type(leaf->node->t.dtype), *name = leaf->name;
        const char *at = arena_printf(q->a, ", %s(m%s(n, k, p))", value, match_capital(name, q->a));
        bool moves = leaf->p.stride != 0 && leaf->p.first != leaf->p.last;

        params = arena_printf(q->a, "%s, %s %s", params, value, name);
        finish = arena_printf(q->a, "%s%s", finish, at);
        ahead = moves ? arena_printf(q->a, "%s, %s_at[part %% SLOTS][i]", ahead, name)
                      : arena_printf(q->a, "%s%s", ahead, at);
        far += moves;
        if (moves)
            fill_beside(q, s, leaf);
        if (!is_column(leaf))
            continue;
        columns = arena_printf(q->a, "%s, %s %s", columns, value, name);
        early = arena_printf(q->a, "%s, %s_of[q]", early, name);
        fill_column(q, s, leaf);
    }
    if (!fill_body(q, s, "finish", q->node, root, out))
        return false;
    if (strcmp(scope_get(s, "finish_body"), "return acc;") == 0)
        return true;
    scope_fact(s, "epilogue");
    if (end != q->node || q->biased) {
        scope_fact(s, "early");
        if (!fill_body(q, s, "early", q->node, end, out))
            return false;
    }
    if (end != root) {
        scope_fact(s, "late");
        if (!fill_body(q, s, "late", end, root, out))
            return false;
    }
    scope_set(s, "finish_params", "%s", params);
    scope_set(s, "finish", "%s", finish);
    scope_set(s, "finish_ahead", "%s", ahead);
    scope_set(s, "early_params", "%s", columns);
    scope_set(s, "early", "%s", early);
    scope_set(s, "far_count", "%d", far);
    return true;
}
