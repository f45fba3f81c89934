/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition.c - split a graph into parts that recipes cover.
 *
 * Parts are taken off the front: a part's result becomes an input of the rest, until every output
 * is computed. First the operands that the first product cannot read in their layout, then that
 * product with everything that fits its epilogue, and so on; the rest without products is one part
 * per output. The same applies to convolutions. A graph without products is cut at reductions
 * (match_sums), where that costs less than generic kernels.
 *
 * Invariant: nodes keep their ids in every subgraph, so that arguments need no rewriting.
 */
#include "expert/match/partition.h"

#include "base/json.h"
#include "expert/match/attention.h"
#include "expert/match/convolution.h"
#include "expert/match/gemm.h"
#include "expert/match/recurrent.h"
#include "expert/match/reduction_ops.h"

#include <string.h>

struct cut {
    const struct graph *g;
    struct graph *left; /* inputs behind those of g are results of parts */
    struct parts *p;
    struct arena *a;
    struct match *out;
};

/* ---- what depends on what ----------------------------------------------------- */

/* Every node among the arguments, also those in lists, marked in `marks`. */
static void mark_args(const struct graph *g, const struct node *n, bool *marks)
{
    size_t i, k;
    const json_t *arg, *item;

    json_array_foreach(n->args, i, arg)
    {
        const json_t *list = json_object_get(arg, "list");
        const struct node *used = graph_arg(g, n, i);

        if (used)
            marks[used - g->nodes] = true;
        json_array_foreach(list, k, item)
        {
            used = json_object_get(item, "node") ? graph_node(g, graph_id(item)) : NULL;
            if (used)
                marks[used - g->nodes] = true;
        }
    }
}

/* And everything that these depend on. Arguments precede their users. */
static void spread(const struct graph *g, bool *in)
{
    for (int i = g->count; i-- > 0;)
        if (in[i] && strcmp(g->nodes[i].op, "input") != 0)
            mark_args(g, &g->nodes[i], in);
}

/* n and everything it depends on. */
static void closure(const struct graph *g, const struct node *n, bool *in)
{
    memset(in, 0, GRAPH_NODES * sizeof(*in));
    in[n - g->nodes] = true;
    spread(g, in);
}

static void alive(const struct graph *g, bool *in)
{
    memset(in, 0, GRAPH_NODES * sizeof(*in));
    for (int k = 0; k < g->out_count; k++)
        in[graph_node(g, g->result[k]) - g->nodes] = true;
    spread(g, in);
}

static int output_of(const struct graph *g, const struct node *n)
{
    for (int k = 0; k < g->out_count; k++)
        if (g->result[k] == n->id)
            return k;
    return -1;
}

/* What the parts are built around. */
static bool is_core(const struct node *n)
{
    return gemm_is_product(n) || conv_is(n) || recurrent_is(n);
}

static const struct node *first_product(const struct graph *g)
{
    bool live[GRAPH_NODES];

    alive(g, live);
    for (int i = 0; i < g->count; i++)
        if (live[i] && (is_core(&g->nodes[i]) || attention_is_fused(&g->nodes[i])))
            return &g->nodes[i];
    return NULL;
}

/* ---- a part as a graph ---------------------------------------------------------- */

static struct tensor without_gaps(struct tensor t)
{
    int64_t stride = 1;

    for (int d = t.dims; d-- > 0; stride *= t.shape[d])
        t.strides[d] = stride;
    return t;
}

/* "first.weight" -> "weight", so that layers are written alike. */
static const char *short_name(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && dot[1] ? dot + 1 : name;
}

/* Numbers inputs in the order of a walk from the result, so that equal parts get equal numbers. */
static void number_inputs(const struct cut *c, const struct node *n, bool *seen, struct graph *s,
                          int *from)
{
    const struct graph *left = c->left;
    size_t i, k;
    const json_t *arg, *item;

    if (seen[n - left->nodes])
        return;
    seen[n - left->nodes] = true;
    if (strcmp(n->op, "input") == 0) {
        s->in[s->in_count] = left->in[n->index];
        s->in[s->in_count].name = short_name(left->in[n->index].name);
        s->origin[s->in_count] = left->origin[n->index];
        from[s->in_count++] = n->index;
        return;
    }
    json_array_foreach(n->args, i, arg)
    {
        if (graph_arg(left, n, i))
            number_inputs(c, graph_arg(left, n, i), seen, s, from);
    }
    json_array_foreach(n->args, i, arg)
    {
        json_array_foreach(json_object_get(arg, "list"), k, item)
        {
            const struct node *used =
                json_object_get(item, "node") ? graph_node(left, graph_id(item)) : NULL;

            if (used)
                number_inputs(c, used, seen, s, from);
        }
    }
}

/* The graph that computes `result`; from[i] is the rest's input that becomes its input i. */
static struct graph *graph_of(const struct cut *c, const struct node *result, int *from)
{
    const struct graph *left = c->left;
    struct graph *s = arena_alloc(c->a, sizeof(*s));
    bool in[GRAPH_NODES], seen[GRAPH_NODES] = {false};
    int output = output_of(left, result);

    *s = (struct graph){.name = arena_printf(c->a, "%s_%d", c->g->name, c->p->count + 1),
                        .scalars = left->scalars,
                        .structure = left->structure,
                        .arch = left->arch,
                        .sm_count = left->sm_count,
                        .smem_block_bytes = left->smem_block_bytes,
                        .measured = left->measured,
                        .tf32 = left->tf32,
                        .tf32_convolutions = left->tf32_convolutions,
                        .out_count = 1};
    s->nodes = arena_array(c->a, (size_t)left->count, sizeof(*s->nodes));
    number_inputs(c, result, seen, s, from);
    closure(left, result, in);
    for (int i = 0; i < left->count; i++) {
        struct node *n = &s->nodes[s->count];

        if (!in[i])
            continue;
        *n = left->nodes[i];
        s->count++;
        for (int k = 0; k < s->in_count && strcmp(n->op, "input") == 0; k++)
            if (from[k] == left->nodes[i].index) {
                n->index = k;
                break;
            }
    }
    s->out[0] = output >= 0 ? left->out[output] : without_gaps(result->t);
    s->result[0] = result->id;
    for (int i = 0; i < s->count; i++) {
        bool args[GRAPH_NODES] = {false};

        s->nodes[i].uses = 0;
        if (strcmp(s->nodes[i].op, "input") != 0)
            mark_args(s, &s->nodes[i], args);
        for (int k = 0; k < s->count; k++)
            s->nodes[k].uses += args[k];
    }
    graph_find_sizes(s, c->a);
    return s;
}

/* ---- cutting ------------------------------------------------------------------------ */

/* An earlier part with equal source except for its name. */
static int form_of(const struct cut *c, struct graph *s, const struct match *m)
{
    const char *name = s->name;

    for (int i = 0; i < c->p->count; i++) {
        const struct part *p = &c->p->at[i];
        struct match alike = {.recipe = NULL};

        if (p->form != i || strcmp(p->match.recipe, m->recipe) != 0 ||
            p->g->in_count != s->in_count)
            continue;
        s->name = p->g->name;
        if (match_one(s, c->a, &alike) && scope_equal(alike.scope, p->match.scope))
            return i;
        s->name = name;
    }
    return c->p->count;
}

/* A part that makes `result`, when a recipe writes it; `any`: or a kernel without one. */
static bool take(struct cut *c, const struct node *result, bool any)
{
    struct parts *p = c->p;
    struct graph *left = c->left, *s;
    struct part *part = &p->at[p->count];
    struct node *n = (struct node *)result;
    int from[MAX_TENSORS], last = left->in_count;

    if (p->count == PARTS_MAX || last == MAX_TENSORS)
        return match_no(c->out, c->a, "more than %d parts", PARTS_MAX);
    s = graph_of(c, result, from);
    *part = (struct part){.g = s, .out = output_of(left, result)};
    if (!match_one(s, c->a, &part->match)) {
        struct match generic = {.recipe = "generic"};

        if (!any || !match_generic(s, c->a, &generic))
            return match_no(c->out, c->a, "of its parts, %s: %s", graph_ops(s, c->a),
                            part->match.why_not);
        part->match = generic;
    }
    part->form = form_of(c, s, &part->match);
    for (int i = 0; i < s->in_count; i++)
        part->from[i] = from[i] < c->g->in_count ? from[i] : c->g->in_count - from[i] - 1;
    part_shape(p, part, c->a);
    n->op = "input";
    n->index = last;
    n->t = part->out >= 0 ? left->out[part->out] : without_gaps(result->t);
    left->in[last] = n->t;
    left->in[last].name = c->g->in_count ? c->g->in[0].name : "x"; /* what it came from */
    left->origin[last] = -1;
    left->in_count++;
    p->count++;
    return true;
}

/* What must be computed before an operand can be read; NULL: it can be read directly. */
static const struct node *unreadable(const struct graph *g, const struct node *n)
{
    const struct node *operand = n;
    struct view v;

    if (!n || n->value || graph_view(g, n, &v))
        return NULL;
    while (graph_rearranges(n) && graph_arg(g, n, 0)) {
        n = graph_arg(g, n, 0);
        if (graph_view(g, n,
                       &v)) /* a contiguous copy of it can be read through the views that follow */
            return strcmp(n->op, "input") == 0 ? operand : n;
    }
    return n;
}

/* Does all that depends on `from` go through n, whose closure is `in`? */
static bool all_through(const struct cut *c, const struct node *from, const struct node *n,
                        const bool *in)
{
    const struct graph *g = c->left;
    bool on_way[GRAPH_NODES] = {false}, live[GRAPH_NODES];

    alive(g, live);
    on_way[from - g->nodes] = true;
    for (int i = (int)(from - g->nodes); i < g->count; i++) {
        bool args[GRAPH_NODES] = {false}, depends = false;

        if (!live[i] || strcmp(g->nodes[i].op, "input") == 0)
            continue;
        mark_args(g, &g->nodes[i], args);
        for (int k = 0; k < i; k++)
            depends = depends || (args[k] && on_way[k]);
        if (depends && !in[i])
            return false; /* someone else needs what lies between */
        if (depends && &g->nodes[i] != n)
            on_way[i] = true;
    }
    for (int i = 0; i < g->count; i++)
        if (on_way[i] && output_of(g, &g->nodes[i]) >= 0)
            return false;
    return true;
}

/* May n be the end of a product's part? True if everything that depends on the product goes through
 * n. */
static bool ends(const struct cut *c, const struct node *product, const struct node *n)
{
    const struct graph *g = c->left;
    bool in[GRAPH_NODES];

    if (!(graph_reshapes(n) || expr_knows_placed(n, c->a) ||
          (conv_is(product) && match_fixed_norm(g, n, c->a))) ||
        tensor_numel(&n->t) != tensor_numel(&product->t))
        return false;
    closure(g, n, in);
    if (!in[product - g->nodes])
        return false;
    for (int i = 0; i < g->count; i++)
        if (in[i] && &g->nodes[i] != product && is_core(&g->nodes[i]))
            return false;
    return all_through(c, product, n, in);
}

static int live_uses(const struct graph *g, const struct node *n)
{
    bool live[GRAPH_NODES];
    int uses = output_of(g, n) >= 0;

    alive(g, live);
    for (int i = 0; i < g->count; i++) {
        bool args[GRAPH_NODES] = {false};

        if (!live[i] || strcmp(g->nodes[i].op, "input") == 0)
            continue;
        mark_args(g, &g->nodes[i], args);
        uses += args[n - g->nodes];
    }
    return uses;
}

/* What each row of the product is divided by, where that is computed from other tensors: with it in
 * memory the quotient is the end of the product's part. */
static const struct node *divisor(const struct cut *c, const struct node *product)
{
    const struct graph *g = c->left;

    for (int i = (int)(product - g->nodes) + 1; i < g->count; i++) {
        const struct node *n = &g->nodes[i], *by = graph_arg(g, n, 1);
        bool in[GRAPH_NODES];

        if (!graph_op_is(n, "aten.div") || !by || !unreadable(g, by) || by->t.dims != n->t.dims ||
            by->t.shape[by->t.dims - 1] != 1 || tensor_numel(&by->t) == tensor_numel(&n->t) ||
            !ends(c, product, n))
            continue;
        closure(g, by, in);
        if (!in[product - g->nodes])
            return unreadable(g, by);
    }
    return NULL;
}

/*
 * What a residual sum adds to the product, where that is computed. With it in memory the sum is
 * the end of the product's part; else all that reads the sum would compute it, and the sums before
 * it, again.
 */
static const struct node *residual(const struct cut *c, const struct node *product)
{
    const struct graph *g = c->left;

    for (int i = (int)(product - g->nodes) + 1; i < g->count; i++) {
        const struct node *n = &g->nodes[i];

        if (!graph_op_is(n, "aten.add") || !ends(c, product, n) || live_uses(g, n) < 2)
            continue;
        for (size_t k = 0; k < 2; k++) {
            const struct node *beside = graph_arg(g, n, k);
            bool in[GRAPH_NODES];

            if (!beside || tensor_numel(&beside->t) != tensor_numel(&n->t))
                continue;
            closure(g, beside, in);
            if (!in[product - g->nodes] && unreadable(g, beside))
                return unreadable(g, beside);
        }
    }
    return divisor(c, product);
}

/* The product and as many following operators as a recipe covers. */
static bool take_covered(struct cut *c, const struct node *product)
{
    const struct graph *g = c->left;

    for (int i = g->count; i-- > product - g->nodes;)
        if ((&g->nodes[i] == product || ends(c, product, &g->nodes[i])) &&
            take(c, &g->nodes[i], false))
            return true;
    return false;
}

static bool take_product(struct cut *c, const struct node *product)
{
    const struct node *first = residual(c, product);

    if (first)
        return take(c, first, true);
    return take_covered(c, product) || take(c, product, true);
}

/* Attention as one part, with what only rearranges its result, or a part that it reads. False: it
 * is none, or no recipe writes it. */
static bool take_attention(struct cut *c, const struct node *n)
{
    const struct graph *g = c->left;
    struct attention_core core;
    const struct node *first, *end;

    if (!attention_find(g, n, &core))
        return false;
    first = attention_unreadable(g, &core, c->a);
    if (first)
        return !gemm_is_product(first) && !attention_is_fused(first) && take(c, first, true);
    for (end = attention_end(g, core.values); end != core.values; end = graph_arg(g, end, 0))
        if (take(c, end, false))
            return true;
    if (take(c, core.values, false))
        return true;
    first = attention_pages(g, core.k); /* no recipe reads these pages: gather them first */
    return first && take(c, first, true);
}

/* Recurrent layers with what only rearranges their result, or a part that they read. */
static bool take_recurrent(struct cut *c, const struct node *n)
{
    const struct node *first = recurrent_unreadable(c->left, n), *end;

    for (end = first ? n : attention_end(c->left, n); end != n; end = graph_arg(c->left, end, 0))
        if (take(c, end, false))
            return true;
    return take(c, first ? first : n, true);
}

static bool take_front(struct cut *c, const struct node *product)
{
    const struct node *beside;

    if (take_attention(c, product))
        return true;
    if (attention_is_fused(product))
        return take(c, product, true);
    if (recurrent_is(product))
        return take_recurrent(c, product);
    beside = attention_beside(c->left, product);
    if (beside && unreadable(c->left, beside))
        return take(c, unreadable(c->left, beside), true);
    for (int pass = 0; pass < 2; pass++) {
        bool pieces = false; /* some are left where they are, as the FMA units could read them */

        for (size_t i = 0; i < json_array_size(product->args); i++) {
            const struct node *operand = graph_arg(c->left, product, i),
                              *n = unreadable(c->left, operand);
            bool leave = n && pass == 0 && gemm_is_product(product) &&
                         gemm_reads_in_pieces(c->left, operand);

            if (n && !leave)
                return take(c, n, true);
            pieces = pieces || leave;
        }
        if (!pieces)
            break;
        if (!residual(c, product) && take_covered(c, product))
            return true;
    }
    return take_product(c, product);
}

/* Running sums that need no product: each a part of its own, or every part that reads them would
 * run through them again, a thread to a row. */
static void take_scans(struct cut *c)
{
    const struct graph *g = c->left;
    bool live[GRAPH_NODES], in[GRAPH_NODES], ready;

    for (int i = 0; i < g->count; i++) {
        if (!graph_op_is(&g->nodes[i], "aten.cumsum") && !graph_op_is(&g->nodes[i], "aten.cumprod"))
            continue;
        alive(g, live);
        closure(g, &g->nodes[i], in);
        ready = live[i];
        for (int k = 0; k < i && ready; k++)
            ready = !in[k] || !(is_core(&g->nodes[k]) || attention_is_fused(&g->nodes[k]));
        if (ready)
            take(c, &g->nodes[i], false);
    }
}

static double work_of(const struct part *p)
{
    double work = (double)tensor_numel(&p->g->out[0]);
    struct attention_core core;

    for (int i = 0; strncmp(p->match.recipe, "attention", 9) == 0 && i < p->g->count; i++)
        if (attention_find(p->g, &p->g->nodes[i], &core))
            return work * 1e3 * (double)tensor_numel(&core.k->t);
    if (strcmp(p->match.recipe, "recurrent") == 0)
        return work * 1e12; /* its steps come one after the other */
    for (int i = 0; i < p->g->count; i++)
        if (is_core(&p->g->nodes[i]) && !recurrent_is(&p->g->nodes[i]))
            work *= 1e3 * (double)tensor_numel(&graph_arg(p->g, &p->g->nodes[i], 1)->t);
    return work;
}

static struct cut *start(const struct graph *g, struct arena *a, struct match *out)
{
    struct cut *c = arena_alloc(a, sizeof(*c));

    *c = (struct cut){.g = g,
                      .left = arena_alloc(a, sizeof(*g)),
                      .p = arena_alloc(a, sizeof(struct parts)),
                      .a = a,
                      .out = out};
    *c->left = *g;
    c->left->nodes = arena_array(a, (size_t)g->count, sizeof(*g->nodes));
    memcpy(c->left->nodes, g->nodes, (size_t)g->count * sizeof(*g->nodes));
    return c;
}

/* Is output k made by a part of its own? */
static bool made(const struct cut *c, int k)
{
    const struct node *n = graph_node(c->left, c->g->result[k]);

    return (output_of(c->g, n) == k && n->index >= c->g->in_count) ||
           match_no(c->out, c->a, "it returns an input, or the same result twice");
}

static void finish(const struct cut *c, int main)
{
    c->p->main = main;
    c->out->parts = c->p;
    c->out->recipe = c->p->at[main].match.recipe;
    c->out->scope = c->p->at[main].match.scope;
}

bool match_parts(const struct graph *g, struct arena *a, struct match *out)
{
    struct cut *c;
    const struct node *product;
    double most = -1;
    int main = 0;

    if (!first_product(g))
        return false; /* the matchers have said why not */
    if (g->count > PARTS_NODES)
        return match_no(out, a, "%d nodes are too many to look for products", g->count);
    c = start(g, a, out);
    take_scans(c);
    while ((product = first_product(c->left))) {
        if (!take_front(c, product))
            return false;
        take_scans(c);
    }
    for (int k = 0; k < g->out_count; k++) {
        const struct node *n = graph_node(c->left, g->result[k]);

        if ((strcmp(n->op, "input") != 0 && !take(c, n, true)) || !made(c, k))
            return false;
    }
    for (int i = 0; i < c->p->count; i++)
        if (work_of(&c->p->at[i]) > most) {
            most = work_of(&c->p->at[i]);
            main = i;
        }
    finish(c, main);
    return true;
}

/* ---- without products: at reductions ---------------------------------------------------- */

enum { SUMS_MAX = 8, SUMS_MOST = 32, SUMS_NODES = 400 };

/* Reductions below output k that read no other one, in order; how many. */
static int ready(const struct cut *c, int k, const struct node *out[SUMS_MAX])
{
    const struct graph *g = c->left;
    bool live[GRAPH_NODES], in[GRAPH_NODES];
    int count = 0;

    closure(g, graph_node(g, c->g->result[k]), live);
    for (int i = 0; i < g->count && count < SUMS_MAX; i++) {
        bool other = false;

        if (!live[i] || !row_form_of(g, &g->nodes[i]))
            continue;
        closure(g, &g->nodes[i], in);
        for (int j = 0; j < i && !other; j++)
            other = in[j] && row_form_of(g, &g->nodes[j]);
        if (!other)
            out[count++] = &g->nodes[i];
    }
    return count;
}

/* The reduction with all that follows it per row. */
static bool take_sum(struct cut *c, const struct node *sum)
{
    const struct graph *g = c->left;
    int64_t rows = tensor_numel(&sum->t);

    for (int i = g->count; i-- > sum - g->nodes;) {
        const struct node *n = &g->nodes[i];
        bool in[GRAPH_NODES];

        if (n == sum || tensor_numel(&n->t) != rows || output_of(g, n) >= 0)
            continue;
        closure(g, n, in);
        if (in[sum - g->nodes] && all_through(c, sum, n, in) && take(c, n, false))
            return true;
    }
    return take(c, sum, false);
}

/* Each output, with reductions taken off the front until a recipe writes what is left; the
 * `first`th of those that could be first is. */
static bool take_sums(struct cut *c, int first)
{
    const struct node *sums[SUMS_MAX];

    for (int k = 0; k < c->g->out_count; k++) {
        for (;;) {
            const struct node *n = graph_node(c->left, c->g->result[k]);
            int count;

            if (strcmp(n->op, "input") == 0 || (first <= 0 && take(c, n, false)))
                break;
            count = ready(c, k, sums);
            if (count == 0 || first >= count || !take_sum(c, sums[first > 0 ? first : 0]))
                return false;
            first = 0;
        }
        if (!made(c, k))
            return false;
    }
    return true;
}

enum { CACHED = 8 << 20 }; /* elements that the L2 cache may hold all of */

/* So few nodes and reductions that looking for cuts takes no time to speak of? */
static bool is_small(const struct graph *g)
{
    int sums = 0;

    for (int i = 0; i < g->count; i++)
        sums += row_form_of(g, &g->nodes[i]) != NULL;
    return g->count <= SUMS_NODES && sums <= SUMS_MOST;
}

static bool reads(const struct part *p, int from)
{
    for (int i = 0; i < p->g->in_count; i++)
        if (p->from[i] == from && tensor_numel(&p->g->in[i]) > CACHED)
            return true;
    return false;
}

/* A part that reads a large tensor which the part before has read goes through it from its end. */
static void turn_back(struct parts *p)
{
    bool backwards = false;

    for (int i = 1; i < p->count; i++) {
        bool again = false;

        for (int k = 0; k < p->at[i].g->in_count && !again; k++)
            again = reads(&p->at[i], p->at[i].from[k]) && reads(&p->at[i - 1], p->at[i].from[k]);
        backwards = again && !backwards;
        if (backwards && p->at[i].form == i)
            scope_fact(p->at[i].match.scope, "backwards");
    }
}

bool match_sums(const struct graph *g, struct arena *a, double limit, struct match *out)
{
    struct cut *best = NULL;
    double least = limit;
    int main = 0;

    if (!is_small(g))
        return match_no(out, a, "too many reductions, or nodes, to look for cuts");
    for (int first = 0; first < SUMS_MAX; first++) {
        struct match tried = {.recipe = NULL};
        struct cut *c = start(g, a, &tried);
        double cost = 0, most = -1;
        int heaviest = 0;

        if (!take_sums(c, first) || c->p->count < 2) {
            if (first == 0)
                out->why_not = tried.why_not;
            continue;
        }
        for (int i = 0; i < c->p->count; i++) {
            double one = match_cost(&c->p->at[i].match);

            heaviest = one > most ? i : heaviest;
            most = one > most ? one : most;
            cost += one;
        }
        if (cost >= least)
            continue;
        least = cost;
        best = c;
        main = heaviest;
    }
    if (!best)
        return false;
    best->out = out;
    turn_back(best->p);
    finish(best, main);
    return true;
}
