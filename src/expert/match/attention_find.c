/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_find.c - recognize attention: as a fused operator, or as softmax(Q K^T) V in single
 * operators.
 *
 * Written out it is a product, pointwise operators (scale, masks, biases), a
 * softmax over the last dimension and a second product, with rearrangements
 * in between, where the intermediate values have no other users. Instead of the softmax there may
 * be any function of each score (ReLU).
 */
#include "expert/match/attention.h"

#include "expert/match/gemm.h"

#include <math.h>
#include <string.h>

/* Where each operator has its arguments; -1: it has none. */
static const struct fused_form {
    const char *op;
    int mask, dropout, causal;
} fused_forms[] = {
    {"aten.scaled_dot_product_attention", 3, 4, 5},
    {"aten._scaled_dot_product_attention_math", 3, 4, 5},
    {"aten._scaled_dot_product_flash_attention_for_cpu", -1, 3, 4},
    {"aten._scaled_dot_product_flash_attention", -1, 3, 4},
    {"aten._scaled_dot_product_efficient_attention", 3, 5, 6},
    {"aten._scaled_dot_product_cudnn_attention", 3, 5, 6},
    {"aten._scaled_dot_product_fused_attention_overrideable", 3, 4, 5},
    {"aten._scaled_dot_product_attention", 3, 4, 6}, /* of torch 1.13 */
};

static const struct fused_form *fused_form(const struct node *n)
{
    for (size_t i = 0; i < ARRAY_LEN(fused_forms); i++)
        if (graph_op_is(n, fused_forms[i].op))
            return &fused_forms[i];
    return NULL;
}

bool attention_is_fused(const struct node *n)
{
    return fused_form(n) != NULL;
}

static bool flag(const struct node *n, int index, const char *keyword)
{
    const json_t *arg = index < 0 ? NULL : graph_arg_json(n, (size_t)index, keyword);
    double number = 0;

    return json_is_true(json_object_get(arg, "value")) ||
           (graph_number(arg, &number) && number > 0);
}

static bool is_number(const struct node *n, double number)
{
    double value = NAN;

    return n && n->value && graph_number(n->value, &value) && !(value < number) &&
           !(value > number);
}

const struct node *attention_mask(const struct graph *g, const struct node *mask)
{
    const struct node *seen = mask ? graph_arg(g, mask, 0) : NULL;

    return seen && graph_op_is(mask, "aten.where") && is_number(graph_arg(g, mask, 1), 0) &&
                   is_number(graph_arg(g, mask, 2), -INFINITY) && strcmp(seen->t.dtype, "bool") == 0
               ? seen
               : mask;
}

static bool find_fused(const struct graph *g, const struct node *n, struct attention_core *out)
{
    const struct fused_form *f = fused_form(n);
    const json_t *scale = json_object_get(n->kwargs, "scale");
    const json_t *mask = json_object_get(n->kwargs, "attn_mask");

    *out = (struct attention_core){.scores = n, .weights = n, .values = n, .fused = true};
    out->q = graph_arg(g, n, 0);
    out->k = graph_arg(g, n, 1);
    out->v = graph_arg(g, n, 2);
    if (!out->q || !out->k || !out->v || out->q->t.dims < 3 || flag(n, f->dropout, "dropout_p"))
        return false;
    if (f->mask >= 0)
        out->mask = graph_arg(g, n, (size_t)f->mask);
    if (json_object_get(mask, "node"))
        out->mask = graph_node(g, graph_id(mask));
    out->mask = attention_mask(g, out->mask);
    out->causal = flag(n, f->causal, "is_causal");
    out->safe = true;
    if (!graph_number(scale, &out->scale))
        out->scale = 1 / sqrt((double)out->q->t.shape[out->q->t.dims - 1]);
    return !(out->causal && out->mask);
}

/* ---- written out ------------------------------------------------------------------------ */

static bool uses(const struct graph *g, const struct node *n, const struct node *x)
{
    size_t i, k;
    const json_t *arg, *item;

    if (strcmp(n->op, "input") == 0 || graph_op_is(n, "aten.full_like") ||
        graph_op_is(n, "aten.zeros_like"))
        return false; /* of its shape alone */
    json_array_foreach(n->args, i, arg)
    {
        if (graph_arg(g, n, i) == x)
            return true;
        json_array_foreach(json_object_get(arg, "list"), k, item)
        {
            if (json_object_get(item, "node") && graph_id(item) == x->id)
                return true;
        }
    }
    return false;
}

/* Nodes that something comes of. */
static void mark_live(const struct graph *g, bool *live)
{
    for (int i = g->count; i-- > 0;) {
        live[i] = graph_is_result(g, &g->nodes[i]);
        for (int u = i + 1; u < g->count && !live[i]; u++)
            live[i] = live[u] && uses(g, &g->nodes[u], &g->nodes[i]);
    }
}

/* The only user of n; NULL: several users, or the task returns it. */
static const struct node *only_user(const struct graph *g, const bool *live, const struct node *n)
{
    const struct node *user = NULL;

    if (graph_is_result(g, n))
        return NULL;
    for (const struct node *u = n + 1; u < g->nodes + g->count; u++) {
        if (!live[u - g->nodes] || !uses(g, u, n))
            continue;
        if (user)
            return NULL;
        user = u;
    }
    return user;
}

static bool is_softmax(const struct node *n, bool *safe)
{
    int64_t dim = 0;

    *safe = graph_op_is(n, "aten._safe_softmax");
    return (*safe || graph_op_is(n, "aten._softmax") || graph_op_is(n, "aten.softmax")) &&
           graph_arg_int(n, 1, "dim", &dim) && (dim == -1 || dim == n->t.dims - 1);
}

static bool to_other_float(const struct node *n)
{
    return graph_op_is(n, "aten._to_copy") && expr_value_type(n->t.dtype) &&
           strcmp(expr_value_type(n->t.dtype), "float") == 0;
}

/* The only live user of n that is `op`, of two that n has; `other` gets the second. */
static const struct node *user_of_two(const struct graph *g, const bool *live, const struct node *n,
                                      const char *op, const struct node **other)
{
    const struct node *users[2] = {0};
    int count = 0, k;

    if (graph_is_result(g, n))
        return NULL;
    for (const struct node *u = n + 1; u < g->nodes + g->count; u++)
        if (live[u - g->nodes] && uses(g, u, n) && !graph_other_result(u)) {
            if (count == 2)
                return NULL;
            users[count++] = u;
        }
    if (count < 2)
        return NULL;
    k = graph_op_is(users[0], op) ? 0 : 1;
    *other = users[1 - k];
    return graph_op_is(users[k], op) ? users[k] : NULL;
}

/* Is n one number of each row of x, kept as a column? */
static bool of_rows(const struct node *n, const struct node *x)
{
    int64_t dims[MAX_DIMS], d = x->t.dims - 1;
    const json_t *keep = graph_arg_json(n, 2, "keepdim");

    return graph_arg_ints(n, 1, "dim", dims) == 1 && (dims[0] == -1 || dims[0] == d) &&
           json_is_true(json_object_get(keep, "value")) && n->t.dims == x->t.dims;
}

/* Of values x that are used twice: x minus the maximum of its row, which a softmax does itself. */
static const struct node *without_maximum(const struct graph *g, const bool *live,
                                          const struct node *x)
{
    const struct node *top = NULL, *less = user_of_two(g, live, x, "aten.sub", &top);

    if (!less || !(graph_op_is(top, "aten.amax") || graph_op_is(top, "aten.max")) ||
        !of_rows(top, x) || graph_arg(g, less, 0) != x || graph_arg_json(less, 2, "alpha"))
        return NULL;
    if (!only_user(g, live, top) || graph_arg(g, less, 1) != top)
        return NULL;
    return less;
}

/* exp(x) divided by the sum of its row, where x has lost its maximum: the end of a softmax written
 * by hand. */
static const struct node *quotient(const struct graph *g, const bool *live, const struct node *x)
{
    const struct node *e = only_user(g, live, x), *sum = NULL, *share;

    if (!e || !graph_op_is(e, "aten.exp"))
        return NULL;
    share = user_of_two(g, live, e, "aten.div", &sum);
    return share && graph_op_is(sum, "aten.sum") && of_rows(sum, e) &&
                   graph_arg(g, share, 0) == e && graph_arg(g, share, 1) == sum &&
                   json_array_size(share->args) == 2 && only_user(g, live, sum)
               ? share
               : NULL;
}

/* From a product, over pointwise operators that keep its elements in order, to a softmax. */
static const struct node *softmax_after(const struct graph *g, const bool *live,
                                        const struct node *product, struct attention_core *out)
{
    const struct node *n = product, *x, *less;
    struct arena *scratch = arena_new();

    do {
        x = n;
        n = only_user(g, live, x);
    } while (n && !is_softmax(n, &out->safe) && tensor_numel(&n->t) == tensor_numel(&product->t) &&
             (graph_reshapes(n) || graph_op_is(n, "aten.expand") || to_other_float(n) ||
              expr_knows_placed(n, scratch)));
    arena_free(scratch);
    less = n ? NULL : without_maximum(g, live, x);
    if (less) {
        out->before = x;
        n = quotient(g, live, less);
        if (n)
            return n;
        n = only_user(g, live, less);
    }
    return n && is_softmax(n, &out->safe) ? n : NULL;
}

/* Is n the result of `base`, in the same order? */
static bool same_order(const struct graph *g, const struct node *n, const struct node *base)
{
    struct nest v;
    int64_t stride = 1;

    if (!nest_of(g, n, base, NEST_FACTOR, &v) || v.factor < 1 || v.factor > 1)
        return false;
    for (int i = v.first[v.dims]; i-- > 0; stride *= v.s[i].size)
        if (v.s[i].stride != stride)
            return false;
    return stride == tensor_numel(&base->t);
}

/* Is n the result of `base`, in the same order but for rows and columns, which are exchanged? */
static bool turned_order(const struct graph *g, const struct node *n, const struct node *base)
{
    struct nest v;
    int64_t stride = 1, columns = base->t.shape[base->t.dims - 1];
    int last = 0, front;

    if (!nest_of(g, n, base, NEST_FACTOR, &v) || v.factor < 1 || v.factor > 1 || v.dims < 2)
        return false;
    front = v.first[v.dims - 2];
    for (int i = v.first[v.dims - 1]; i-- > front; stride *= v.s[i].size) /* what were columns */
        if (v.s[i].stride != stride)
            return false;
    if (stride != columns)
        return false;
    last = v.first[v.dims];
    for (int i = last; i-- > v.first[v.dims - 1]; stride *= v.s[i].size)
        if (v.s[i].stride != stride)
            return false;
    for (int i = front; i-- > 0; stride *= v.s[i].size)
        if (v.s[i].stride != stride)
            return false;
    return stride == tensor_numel(&base->t);
}

/* Likewise to what a second product multiplies: a function of each score in place of a softmax.
 * Only of batches: two products of matrices are a network's layers. */
static const struct node *function_after(const struct graph *g, const bool *live,
                                         const struct node *product)
{
    const struct node *n = product, *last = product, *user;
    struct arena *scratch = arena_new();
    struct nest v;

    while ((user = only_user(g, live, n)) != NULL &&
           tensor_numel(&user->t) == tensor_numel(&product->t) &&
           (graph_reshapes(user) || graph_op_is(user, "aten.expand") || to_other_float(user) ||
            expr_knows_placed(user, scratch))) {
        n = user;
        if (!graph_rearranges(n) && !to_other_float(n))
            last = n;
    }
    arena_free(scratch);
    return user && graph_op_is(product, "aten.bmm") && graph_op_is(user, "aten.bmm") &&
                   !nest_of(g, last, product, NEST_FACTOR, &v)
               ? last
               : NULL;
}

const struct node *attention_scores(const struct graph *g, const struct attention_core *core)
{
    if (core->before)
        return core->before;
    return core->linear ? core->weights : graph_arg(g, core->weights, 0);
}

bool attention_fills(const struct node *n, double *number)
{
    *number = graph_op_is(n, "aten.ones") ? 1 : 0;
    return graph_op_is(n, "aten.ones") || graph_op_is(n, "aten.zeros") ||
           (graph_op_is(n, "aten.full") &&
            graph_number(graph_arg_json(n, 1, "fill_value"), number));
}

/* Below reshapes, broadcasts and other types. */
static const struct node *below(const struct graph *g, const struct node *n)
{
    while (n &&
           (graph_reshapes(n) || graph_op_is(n, "aten.expand") || graph_op_is(n, "aten._to_copy")))
        n = graph_arg(g, n, 0);
    return n;
}

/* Is it `op` of ones at every (query, key), from diagonal `from` on? */
static bool triangle(const struct graph *g, const struct node *n, const struct tensor *scores,
                     const char *op, int64_t from)
{
    const struct node *ones = n ? below(g, graph_arg(g, n, 0)) : NULL;
    int64_t diagonal = 0;
    double fill = 0;

    if (!ones || !graph_op_is(n, op) || n->t.dims != 2 ||
        n->t.shape[0] != scores->shape[scores->dims - 2] ||
        n->t.shape[1] != scores->shape[scores->dims - 1])
        return false;
    graph_arg_int(n, 1, "diagonal", &diagonal);
    return diagonal == from && attention_fills(ones, &fill) && fill > 0;
}

/* Are exactly the keys after a query's position masked by -inf directly before the softmax? Then
 * blocks of them need not be read. The mask remains part of the scores. */
static bool masks_later(const struct graph *g, const struct attention_core *core)
{
    const struct node *n = below(g, attention_scores(g, core)), *mask;
    double number = 0, value = 0;

    if (core->linear && n && (graph_op_is(n, "aten.relu") || graph_op_is(n, "aten.sigmoid")))
        n = below(g, graph_arg(g, n, 0));
    if (!n || !graph_op_is(n, "aten.masked_fill") ||
        !graph_number(graph_arg_json(n, 2, "value"), &value) || !isinf(value) || value > 0)
        return false;
    mask = below(g, graph_arg(g, n, 1));
    if (triangle(g, mask, &core->scores->t, "aten.triu", 1))
        return true;
    if (!mask || !(graph_op_is(mask, "aten.logical_not") || graph_op_is(mask, "aten.bitwise_not") ||
                   (graph_op_is(mask, "aten.eq") &&
                    graph_number(graph_arg_json(mask, 1, "other"), &number) && !(number > 0) &&
                    !(number < 0))))
        return false;
    return triangle(g, below(g, graph_arg(g, mask, 0)), &core->scores->t, "aten.tril", 0);
}

/* beta * added + alpha * (Q K^T), as people add a bias to the scores. */
static void find_added(const struct graph *g, const struct node *n, struct attention_core *out)
{
    const json_t *beta = graph_arg_json(n, 3, "beta"), *alpha = graph_arg_json(n, 4, "alpha");

    out->beta = 1;
    if (beta)
        graph_number(beta, &out->beta);
    if (alpha)
        graph_number(alpha, &out->scale);
    if (out->beta < 0 || out->beta > 0) /* else it is not read, whatever it is */
        out->added = graph_arg(g, n, 0);
}

static bool find_written(const struct graph *g, const struct node *n, struct attention_core *out)
{
    const struct node *p;
    bool live[GRAPH_NODES], plus = graph_op_is(n, "aten.baddbmm");

    if (!graph_op_is(n, "aten.bmm") && !graph_op_is(n, "aten.mm") && !plus)
        return false;
    mark_live(g, live);
    *out = (struct attention_core){.scores = n, .scale = 1};
    out->weights = softmax_after(g, live, n, out);
    if (!out->weights) {
        out->before = NULL;
        out->weights = function_after(g, live, n);
        out->linear = out->weights != NULL;
    }
    if (!out->weights)
        return false;
    for (p = only_user(g, live, out->weights); p && (graph_rearranges(p) || to_other_float(p));)
        p = only_user(g, live, p);
    if (!p || !graph_op_is(p, plus || graph_op_is(n, "aten.bmm") ? "aten.bmm" : "aten.mm") ||
        !graph_arg(g, p, 0) || !graph_arg(g, p, 1))
        return false;
    out->turned = !same_order(g, graph_arg(g, p, 0), out->weights);
    if ((out->turned && !turned_order(g, graph_arg(g, p, 1), out->weights)) ||
        tensor_numel(&out->weights->t) != tensor_numel(&n->t) ||
        p->t.shape[p->t.dims - (out->turned ? 1 : 2)] != n->t.shape[n->t.dims - 2] ||
        (p->t.dims == 3 && p->t.shape[0] != n->t.shape[0]))
        return false;
    if (plus)
        find_added(g, n, out);
    out->values = p;
    out->q = graph_arg(g, n, plus ? 1 : 0);
    out->k = graph_arg(g, n, plus ? 2 : 1);
    out->v = graph_arg(g, p, out->turned ? 0 : 1);
    out->causal = masks_later(g, out);
    return out->q && out->k && out->v;
}

bool attention_find(const struct graph *g, const struct node *n, struct attention_core *out)
{
    if (strcmp(n->op, "input") == 0)
        return false;
    return attention_is_fused(n) ? find_fused(g, n, out) : find_written(g, n, out);
}

const struct node *attention_end(const struct graph *g, const struct node *values)
{
    const struct node *end = values, *n;
    bool live[GRAPH_NODES];

    mark_live(g, live);
    while ((n = only_user(g, live, end)) != NULL &&
           (to_other_float(n) || (graph_rearranges(n) && !graph_op_is(n, "aten.expand"))))
        end = n;
    return end;
}

/* ---- what it cannot read ------------------------------------------------------------------ */

const struct node *attention_pages(const struct graph *g, const struct node *n)
{
    const struct node *base = n, *table;
    const json_t *list;
    struct nest v;

    while (base && strcmp(base->op, "input") != 0 && !graph_op_is(base, "aten.index"))
        base = graph_arg(g, base, 0);
    if (!base || strcmp(base->op, "input") == 0 || !nest_of(g, n, base, NEST_FACTOR, &v))
        return NULL;
    list = json_object_get(graph_arg_json(base, 1, "indices"), "list");
    table = json_array_size(list) == 1 && json_object_get(json_array_get(list, 0), "node")
                ? graph_node(g, graph_id(json_array_get(list, 0)))
                : NULL;
    return table && strcmp(table->op, "input") == 0 && graph_arg(g, base, 0) &&
                   strcmp(graph_arg(g, base, 0)->op, "input") == 0
               ? base
               : NULL;
}

static const struct node *operand_first(const struct graph *g, const struct node *n)
{
    struct nest v;

    if (nest_of(g, n, NULL, NEST_FACTOR, &v))
        return NULL;
    while ((graph_rearranges(n) || to_other_float(n)) && graph_arg(g, n, 0))
        n = graph_arg(g, n, 0);
    return n;
}

const struct node *attention_counts(const struct graph *g, const struct node *n, int64_t *from)
{
    int64_t step = 1;
    bool start;

    while (n && graph_rearranges(n) && !graph_op_is(n, "aten.arange"))
        n = graph_arg(g, n, 0);
    if (!n || !graph_op_is(n, "aten.arange") || n->t.dims != 1)
        return NULL;
    start = json_array_size(n->args) > 1;
    *from = 0;
    if (start && (!graph_arg_int(n, 0, "start", from) ||
                  (json_array_size(n->args) > 2 && !graph_arg_int(n, 2, "step", &step))))
        return NULL;
    return step == 1 ? n : NULL;
}

static bool depends(const struct graph *g, const struct node *n, const struct node *x)
{
    if (n <= x || strcmp(n->op, "input") == 0)
        return n == x;
    for (size_t i = 0; i < json_array_size(n->args); i++)
        if (graph_arg(g, n, i) && depends(g, graph_arg(g, n, i), x))
            return true;
    return false;
}

/* Does it have a value for every (query, key), and is it a triangle of such? The places are
 * known. */
static bool has_places(const struct node *n, const struct tensor *scores)
{
    return n && n->t.dims >= 2 && n->t.shape[n->t.dims - 2] == scores->shape[scores->dims - 2] &&
           n->t.shape[n->t.dims - 1] == scores->shape[scores->dims - 1];
}

static bool knows_beside(const struct graph *g, const struct node *n, const struct tensor *scores,
                         struct arena *a)
{
    const struct node *x = graph_arg(g, n, 0);

    if (graph_op_is(n, "aten.triu") || graph_op_is(n, "aten.tril"))
        return n->t.dims == 2 && has_places(n, scores) && expr_knows_placed(n, a);
    if (graph_reshapes(n)) /* with dimensions of one in front */
        return has_places(n, scores) && has_places(x, scores) &&
               tensor_numel(&x->t) == tensor_numel(&n->t);
    return !graph_rearranges(n) && expr_knows(n, a);
}

/* Beside the scores stand inputs seen through rearrangements, and functions of such. */
static const struct node *beside_first(const struct graph *g, const struct node *n,
                                       const struct node *scores, struct arena *a)
{
    const struct node *first = NULL;
    struct nest v;
    double number;
    int64_t from;

    if (n == scores || n->value || nest_of(g, n, NULL, NEST_PLAIN, &v) ||
        attention_fills(n, &number) || attention_counts(g, n, &from))
        return NULL;
    if (!depends(g, n, scores) && !knows_beside(g, n, &scores->t, a))
        return n;
    for (size_t i = 0; i < json_array_size(n->args) && !first; i++)
        if (graph_arg(g, n, i))
            first = beside_first(g, graph_arg(g, n, i), scores, a);
    return first;
}

const struct node *attention_unreadable(const struct graph *g, const struct attention_core *core,
                                        struct arena *a)
{
    const struct node *operands[] = {core->q, core->k, core->v}, *first = NULL;
    bool paged = attention_pages(g, core->k) && attention_pages(g, core->v);
    struct nest v;

    for (size_t i = 0; i < ARRAY_LEN(operands) && !first; i++)
        if (i == 0 || !paged)
            first = operand_first(g, operands[i]);
    if (!first && core->mask && !nest_of(g, core->mask, NULL, NEST_PLAIN, &v))
        first = core->mask;
    if (!first && core->added && !nest_of(g, core->added, NULL, NEST_PLAIN, &v))
        first = core->added;
    if (!first && !core->fused)
        first = beside_first(g, attention_scores(g, core), core->scores, a);
    return first;
}
