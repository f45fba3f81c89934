/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage.c - decide which nodes are stored; all others are recomputed where they are read.
 *
 * From the results back to the inputs, it is counted how often each element
 * would be computed without memory. A sum is kept where that is more than
 * once, a chain of pointwise operators where computing it again would take
 * longer than a launch and its bytes; anything where a kernel would otherwise
 * read more tensors than a launch has arguments.
 */
#include "expert/generic/generic.h"

#include "base/json.h"

#include <string.h>

enum { LONGEST_CHAIN = 96, PASSES = 3, CROWDED_PASSES = 32 };

/* Estimated cost of storing and of recomputing on a large GPU, in ns: times are not measured here,
 * so these are round figures for a device with 4 TB/s and enough threads. */
#define LAUNCH_NS      2500.0
#define OPERATOR_NS    0.05 /* of one element */
#define WRITTEN_NS     2.0  /* an element to memory and back */
#define FAR_NS         0.9  /* another read of it, from memory */
#define NEAR_NS        0.05 /* and from the cache */
#define CACHED_NUMBERS 8e6

bool storage_alone(const struct node *n)
{
    return scan_is(n) || sort_is_pass(n) || scatter_is(n);
}

double storage_terms(const struct graph *g, const struct node *n)
{
    bool reduced[MAX_DIMS];
    int64_t count;
    double terms;

    if (reduction_of(g, n, reduced, &count))
        return (double)count;
    if (sort_is_pass(n))
        return sort_steps(g, n);
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
    double *times; /* how often each node's elements are computed in total */
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
    if (scatter_is(n) && arg != graph_first(c->g, n)) /* read by each writer */
        times = scatter_writers(c->g, n);
    c->times[arg - c->g->nodes] += times;
}

static bool free_of_charge(const struct node *n)
{
    return is_generic_view(n) || graph_op_is(n, "aten.arange") || graph_op_is(n, "aten.full") ||
           graph_op_is(n, "aten.zeros") || graph_op_is(n, "aten.ones") ||
           graph_op_is(n, "aten.empty");
}

static double keeping_ns(double count, double times)
{
    return LAUNCH_NS + count * WRITTEN_NS + times * (count > CACHED_NUMBERS ? FAR_NS : NEAR_NS);
}

static double again_ns(const struct counts *c, const struct node *n)
{
    size_t at = (size_t)(n - c->g->nodes);

    return (c->times[at] - (double)tensor_numel(&n->t)) * c->cost[at] * OPERATOR_NS;
}

static bool keep(const struct counts *c, const struct node *n)
{
    size_t at = (size_t)(n - c->g->nodes);
    double often = c->times[at] / ((double)tensor_numel(&n->t) + 1e-9);

    if (strcmp(n->op, "input") == 0 || n->value || strcmp(n->op, "constant") == 0)
        return false;
    if (graph_is_result(c->g, n) || storage_alone(n))
        return true;
    if (c->sums[at])
        return often > 1.01;
    if (free_of_charge(n))
        return false;
    return c->cost[at] > LONGEST_CHAIN ||
           again_ns(c, n) > keeping_ns((double)tensor_numel(&n->t), c->times[at]);
}

/* Marks nodes of which a result is an alias: they are written as that result. */
static bool *written_as_result(const struct counts *c, struct arena *a)
{
    bool *found = arena_array(a, (size_t)c->g->count, sizeof(bool));

    for (int i = 0; i < c->g->count; i++) {
        const struct node *n = &c->g->nodes[i], *x = graph_first(c->g, n);

        if (x && graph_op_is(n, "aten.alias") && graph_is_result(c->g, n))
            found[x - c->g->nodes] = true;
    }
    return found;
}

/* Forwards: operators per element, down to sums and to nodes stored in the last iteration. */
static void count_cost(struct counts *c, const bool *kept, const bool *result, bool *too_long)
{
    for (int i = 0; i < c->g->count; i++) {
        const struct node *n = &c->g->nodes[i];

        if (strcmp(n->op, "input") == 0)
            continue;
        c->sums[i] = storage_terms(c->g, n) > 1 || storage_alone(n) || kept[i];
        c->cost[i] = free_of_charge(n) ? 0 : 1;
        each_arg(c, n, add_cost);
        too_long[i] = c->cost[i] > LONGEST_CHAIN && !result[i];
        if (too_long[i])
            c->sums[i] = true;
    }
}

/* Backwards: how often each node is computed; a stored node is computed once. */
static void decide(struct counts *c, const bool *too_long, bool *kept)
{
    const struct graph *g = c->g;

    memset(c->times, 0, (size_t)g->count * sizeof(*c->times));
    for (int i = g->count; i-- > 0;) {
        const struct node *n = &g->nodes[i];

        if (graph_is_result(g, n) && c->times[i] < (double)tensor_numel(&n->t))
            c->times[i] = (double)tensor_numel(&n->t);
        c->sums[i] = storage_terms(g, n) > 1 || storage_alone(n);
        kept[i] = c->times[i] > 0 && (too_long[i] || keep(c, n));
        if (kept[i])
            c->times[i] = (double)tensor_numel(&n->t);
        if (c->times[i] > 0 && strcmp(n->op, "input") != 0)
            each_arg(c, n, add_times);
    }
}

/* ---- a kernel reads only so many tensors ---------------------------------------- */

enum { MOST_READS = GENERIC_ARGS - 2 }; /* some forms read their own result, too */

struct reads {
    int at[MOST_READS], count; /* positions of what lies in memory */
};

struct crowd {
    struct counts c;
    struct reads *reads; /* by position */
    bool *kept, *forced, found;
    bool full;                  /* of the node at hand: its arguments read too much */
    const struct node *largest; /* the argument that reads most, if it has no memory */
};

static bool add_read(struct reads *r, int position)
{
    for (int i = 0; i < r->count; i++)
        if (r->at[i] == position)
            return true;
    if (r->count == MOST_READS)
        return false;
    r->at[r->count++] = position;
    return true;
}

static bool in_memory(const struct crowd *w, const struct node *n)
{
    size_t at = (size_t)(n - w->c.g->nodes);

    return w->kept[at] || w->forced[at] || strcmp(n->op, "input") == 0;
}

/* What a kernel of n reads for this argument. */
static void add_reads(struct counts *c, const struct node *n, const struct node *arg)
{
    struct crowd *w = (struct crowd *)c;
    struct reads *to = &w->reads[n - c->g->nodes];
    const struct reads *more = &w->reads[arg - c->g->nodes];

    if (arg->value || strcmp(arg->op, "constant") == 0)
        return;
    if (in_memory(w, arg)) {
        w->full = !add_read(to, (int)(arg - c->g->nodes)) || w->full;
        return;
    }
    for (int i = 0; i < more->count; i++)
        w->full = !add_read(to, more->at[i]) || w->full;
    if (!w->largest || more->count > w->reads[w->largest - c->g->nodes].count)
        w->largest = arg;
}

/* Notes in forced[] what must have memory so that no kernel reads too much; false: nothing. */
static bool uncrowd(struct crowd *w)
{
    w->found = false;
    for (int i = 0; i < w->c.g->count; i++) {
        const struct node *n = &w->c.g->nodes[i];

        if (w->c.times[i] <= 0 || strcmp(n->op, "input") == 0)
            continue;
        do {
            w->reads[i].count = 0;
            w->full = false;
            w->largest = NULL;
            each_arg(&w->c, n, add_reads);
            if (w->full && w->largest)
                w->forced[w->largest - w->c.g->nodes] = w->found = true;
        } while (w->full && w->largest); /* else the operator itself reads too much, and says so */
    }
    return w->found;
}

void storage_decide(struct generic *in)
{
    const struct graph *g = in->g;
    size_t count = (size_t)g->count;
    struct counts c = {.g = g,
                       .times = arena_array(in->a, count, sizeof(double)),
                       .cost = arena_array(in->a, count, sizeof(double)),
                       .sums = arena_array(in->a, count, sizeof(bool))};
    bool *too_long = arena_array(in->a, count, sizeof(bool));
    bool *result = written_as_result(&c, in->a);
    struct crowd w;

    in->kept = arena_array(in->a, count, sizeof(bool));
    for (int pass = 0; pass < PASSES; pass++) {
        count_cost(&c, in->kept, result, too_long);
        decide(&c, too_long, in->kept);
    }
    w = (struct crowd){.c = c,
                       .reads = arena_array(in->a, count, sizeof(struct reads)),
                       .kept = in->kept,
                       .forced = too_long};
    for (int pass = 0; pass < CROWDED_PASSES && uncrowd(&w); pass++)
        decide(&c, too_long, in->kept);
}
