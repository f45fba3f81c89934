/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage.c - which nodes get memory; all others are computed where they are read.
 *
 * From the results back to the inputs, it is counted how often each element
 * would be computed without memory. A sum is kept where that is more than
 * once, a chain of pointwise operators where it is worth its bytes.
 */
#include "expert/generic/generic.h"

#include "base/json.h"

#include <string.h>

enum { LONGEST_CHAIN = 40, RECOMPUTED = 8 };

bool storage_alone(const struct node *n)
{
    static const char *const names[] = {"aten.cumsum", "aten.cumprod", "aten.cummax", "aten.cummin",
                                        "aten.logcumsumexp"};
    struct node first = *n;

    first.op = operator_name(n);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (graph_op_is(&first, names[i]))
            return true;
    return false;
}

double storage_terms(const struct graph *g, const struct node *n)
{
    bool reduced[MAX_DIMS];
    int64_t count;
    double terms;

    if (reduction_of(g, n, reduced, &count))
        return (double)count;
    if (sort_is_pass(n))
        return 2 * sort_steps(n);
    if (graph_op_is(n, "aten.mm") || graph_op_is(n, "aten.bmm")) {
        const struct node *x = graph_first(g, n);

        return x && x->t.dims ? (double)x->t.shape[x->t.dims - 1] : 1;
    }
    if (graph_op_is(n, "aten.convolution")) {
        const struct node *w = graph_arg(g, n, 1);

        return w && w->t.shape[0] ? (double)(tensor_numel(&w->t) / w->t.shape[0]) : 1;
    }
    return pool_dims(n, g, &terms) ? terms : 1;
}

struct counts {
    const struct graph *g;
    double *times; /* each node's elements are computed so often, all together */
    double *cost;  /* operators of an element, down to memory and sums */
    bool *sums;
};

typedef void each_fn(struct counts *c, const struct node *n, const struct node *arg);

static void each_arg(struct counts *c, const struct node *n, each_fn *fn)
{
    size_t i, k;
    const json_t *arg, *item;

    json_array_foreach(n->args, i, arg)
    {
        const struct node *x = graph_arg(c->g, n, i);

        if (x)
            fn(c, n, x);
        json_array_foreach(json_object_get(arg, "list"), k, item)
        {
            x = json_object_get(item, "node") ? graph_node(c->g, graph_id(item)) : NULL;
            if (x)
                fn(c, n, x);
        }
    }
}

static void add_cost(struct counts *c, const struct node *n, const struct node *arg)
{
    size_t at = (size_t)(arg - c->g->nodes);

    if (!c->sums[at])
        c->cost[n - c->g->nodes] += c->cost[at];
}

static void add_times(struct counts *c, const struct node *n, const struct node *arg)
{
    double times = c->times[n - c->g->nodes] * storage_terms(c->g, n);

    if (graph_op_is(n, "aten.cat") || graph_op_is(n, "aten.stack")) /* each has its share */
        times *= (double)tensor_numel(&arg->t) / (double)(tensor_numel(&n->t) + 1) + 1e-9;
    c->times[arg - c->g->nodes] += times;
}

static bool free_of_charge(const struct node *n)
{
    return is_generic_view(n) || graph_op_is(n, "aten.arange") || graph_op_is(n, "aten.full") ||
           graph_op_is(n, "aten.zeros") || graph_op_is(n, "aten.ones") ||
           graph_op_is(n, "aten.empty");
}

static bool keep(const struct counts *c, const struct node *n)
{
    size_t at = (size_t)(n - c->g->nodes);
    double often = c->times[at] / ((double)tensor_numel(&n->t) + 1e-9);

    if (strcmp(n->op, "input") == 0 || n->value || strcmp(n->op, "constant") == 0)
        return false;
    if (graph_is_result(c->g, n) || storage_alone(n) || sort_is_pass(n))
        return true;
    if (c->sums[at])
        return often > 1.01;
    if (free_of_charge(n))
        return false;
    return c->cost[at] > LONGEST_CHAIN || (often > 1.5 && often * c->cost[at] > RECOMPUTED);
}

void storage_decide(struct generic *in)
{
    const struct graph *g = in->g;
    size_t count = (size_t)g->count;
    struct counts c = {.g = g,
                       .times = arena_array(in->a, count, sizeof(double)),
                       .cost = arena_array(in->a, count, sizeof(double)),
                       .sums = arena_array(in->a, count, sizeof(bool))};

    in->kept = arena_array(in->a, count, sizeof(bool));
    for (int i = 0; i < g->count; i++) {
        const struct node *n = &g->nodes[i];

        if (strcmp(n->op, "input") == 0)
            continue;
        c.sums[i] = storage_terms(g, n) > 1 || storage_alone(n);
        c.cost[i] = free_of_charge(n) ? 0 : 1;
        each_arg(&c, n, add_cost);
        if (c.cost[i] > LONGEST_CHAIN)
            in->kept[i] = true, c.cost[i] = 0;
    }
    for (int i = g->count; i-- > 0;) {
        const struct node *n = &g->nodes[i];
        bool long_chain = in->kept[i];

        if (graph_is_result(g, n) && c.times[i] < (double)tensor_numel(&n->t))
            c.times[i] = (double)tensor_numel(&n->t);
        in->kept[i] = c.times[i] > 0 && (long_chain || keep(&c, n));
        if (in->kept[i])
            c.times[i] = (double)tensor_numel(&n->t);
        if (c.times[i] > 0 && strcmp(n->op, "input") != 0)
            each_arg(&c, n, add_times);
    }
}
