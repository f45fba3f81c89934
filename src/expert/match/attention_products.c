/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_products.c - attention with wide heads as products and a softmax.
 *
 * No kernel of attention has tiles of such heads: beyond the tensor cores' widest, a warp computes
 * a row (recipes/attention_rows.cuh), or the FMA units multiply. Where that takes longer, the
 * operator becomes a product with its scale and causal mask, a softmax in fp32 and a second
 * product, before anything is matched; the partition makes parts of them. K is read transposed
 * where it is, and queries of the heads that share K and V are rows of one matrix, so nothing is
 * copied.
 *
 * Invariant: the operator's node keeps its id, and is a reshape of the second product.
 */
#include "expert/match/attention.h"

#include "base/json.h"
#include "expert/graph/view.h"

#include <float.h>
#include <string.h>

enum {
    FIRST_ID =
        1 << 19,      /* of nodes made here: apart from those of graph/sink.c and generic/lower.c */
    FEWEST_ROWS = 16, /* fewer queries read K and V as fast as a product does */
    FEWEST_KEYS = 32,
    MADE = 24, /* nodes for one operator, at most */
    WIDEST_SPLIT = 128,
    TENSOR_ROWS = 64,      /* the smallest side of gemm_sm90.cu */
    TENSOR_WORK = 1 << 26, /* and its least work */
    HOPPER = 90,
    LAUNCHES = 7 /* two products that split their operands, and a softmax */
};

#define MOST_SCORES 0x1p31 /* 8 GiB in fp32, and as much for the weights */

/* Rough rates: what a kernel takes is compared where it is several times what another one does. */
#define LAUNCH_NS    3000.0
#define BYTES_PER_NS 4000.0
#define ROW_NS       0.6 /* of a warp's row: one key's element, each lane reading another line */
#define FMA_PER_NS   10000.0  /* by tiles on the FMA units, in attention and in products */
#define MMA_PER_NS   100000.0 /* of 16 bits, by mma.sync */
#define SPLIT_PER_NS 100000.0 /* three products of fp16 each, by wgmma */
#define WGMMA_PER_NS 300000.0

struct wide {
    const struct node *n;
    struct attention_core core;
    int64_t pairs, queries, keys, head,
        head_v;     /* pairs: of K and V; queries: of all that read one */
    int64_t length; /* queries of one head */
};

struct opened {
    const struct graph *g;
    struct graph *s;
    struct arena *a;
    int made;
};

/* ---- which ------------------------------------------------------------------------------ */

static double work_of(const struct wide *w)
{
    return (double)w->pairs * (double)w->queries * (double)w->keys;
}

static bool on_tensor_cores(const struct graph *g, const struct wide *w)
{
    int64_t least = w->head < w->head_v ? w->head : w->head_v;

    return g->arch == HOPPER && w->queries >= TENSOR_ROWS && w->keys >= TENSOR_ROWS &&
           work_of(w) * (double)least >= TENSOR_WORK;
}

/* Is it what a recipe of attention computes in tiles? */
static bool has_tiles(const struct wide *w)
{
    return w->head <= ATTENTION_WIDEST_TILE && w->head_v <= ATTENTION_WIDEST_TILE;
}

static double one_kernel_ns(const struct graph *g, const struct wide *w)
{
    double rows = (double)w->pairs * (double)w->queries / g->sm_count;

    if (has_tiles(w))
        return work_of(w) * (double)(w->head + w->head_v) / FMA_PER_NS / (w->core.causal ? 2 : 1);
    return (rows < 1 ? 1 : rows) * (double)w->keys * (double)w->head * ROW_NS;
}

static double products_ns(const struct graph *g, const struct wide *w)
{
    const struct tensor *q = &w->core.q->t;
    bool words = strcmp(q->dtype, "f32") == 0, tensor = on_tensor_cores(g, w);
    double rate =
        words ? (tensor ? SPLIT_PER_NS : FMA_PER_NS) : (tensor ? WGMMA_PER_NS : MMA_PER_NS);
    double operands = (double)w->pairs * (double)(w->queries + w->keys) *
                      (double)(w->head + w->head_v) * expr_bytes(q->dtype);

    return LAUNCHES * LAUNCH_NS + (3 * operands + 16 * work_of(w)) / BYTES_PER_NS +
           work_of(w) * (double)(w->head + w->head_v) / rate;
}

/* The operator's sizes; false: not of a form that is taken apart here. */
static bool measure(const struct graph *g, const struct node *n, struct wide *w)
{
    const struct tensor *q, *k, *v;
    int64_t heads, shared;
    int d;

    *w = (struct wide){.n = n};
    if (!attention_is_fused(n) || graph_other_result(n) || !attention_find(g, n, &w->core))
        return false;
    q = &w->core.q->t;
    k = &w->core.k->t;
    v = &w->core.v->t;
    d = q->dims;
    if (d < 3 || d > 4 || k->dims != d || v->dims != d || tensor_numel(q) <= 0 ||
        tensor_numel(k) <= 0 || tensor_numel(v) <= 0 || !expr_value_type(q->dtype) ||
        strcmp(expr_value_type(q->dtype), "float") != 0 || strcmp(q->dtype, k->dtype) != 0 ||
        strcmp(q->dtype, v->dtype) != 0 || q->shape[0] != k->shape[0] ||
        q->shape[0] != v->shape[0] || k->shape[d - 3] != v->shape[d - 3] ||
        k->shape[d - 2] != v->shape[d - 2] || q->shape[d - 1] != k->shape[d - 1])
        return false;
    heads = d == 4 ? q->shape[1] : 1;
    shared = d == 4 ? k->shape[1] : 1;
    w->pairs = q->shape[0] * shared;
    w->length = q->shape[d - 2];
    w->queries = w->length * (heads / shared);
    w->keys = k->shape[d - 2];
    w->head = q->shape[d - 1];
    w->head_v = v->shape[d - 1];
    return heads % shared == 0;
}

/* Are other results of the operator used (the logarithms of sums, for gradients)? */
static bool others_used(const struct graph *g, const struct node *n)
{
    for (const struct node *o = g->nodes; o < g->nodes + g->count; o++)
        if (o != n && o->id % GRAPH_IDS == n->id % GRAPH_IDS &&
            (o->uses > 0 || graph_is_result(g, o)))
            return true;
    return false;
}

static bool suits(const struct graph *g, const struct node *n, struct wide *w)
{
    bool words;

    if (!measure(g, n, w) || others_used(g, n))
        return false;
    if (work_of(w) > MOST_SCORES)
        return false;
    if (w->head > ATTENTION_LARGEST_HEAD || w->head_v > ATTENTION_LARGEST_HEAD)
        return true; /* there is no other way */
    words = strcmp(w->core.q->t.dtype, "f32") == 0;
    if (has_tiles(w) &&
        !(words && (w->head > WIDEST_SPLIT || w->head_v > WIDEST_SPLIT) && on_tensor_cores(g, w)))
        return false;
    return w->queries >= FEWEST_ROWS && w->keys >= FEWEST_KEYS &&
           products_ns(g, w) < one_kernel_ns(g, w);
}

/* ---- the nodes -------------------------------------------------------------------------- */

static json_t *node_json(int id)
{
    return json_pack("{s:i,s:i}", "node", id & (GRAPH_IDS - 1), "part", id / GRAPH_IDS);
}

static json_t *shape_json(const struct tensor *t)
{
    json_t *sizes = json_array();

    for (int d = 0; d < t->dims; d++)
        json_array_append_new(sizes, json_integer(t->shape[d]));
    return json_pack("{s:o}", "ints", sizes);
}

static struct tensor matrices(const char *dtype, int64_t pairs, int64_t rows, int64_t columns)
{
    return (struct tensor){.name = "",
                           .dtype = dtype,
                           .dims = 3,
                           .shape = {pairs, rows, columns},
                           .strides = {rows * columns, columns, 1}};
}

/* A node of that shape behind those there are; its id. `args` is taken over. */
static int add(struct opened *o, const char *op, json_t *args, struct tensor t)
{
    struct node *n = &o->s->nodes[o->s->count++];

    for (int64_t d = t.dims, stride = 1; d-- > 0; stride *= t.shape[d])
        t.strides[d] = stride;
    *n = (struct node){.id = FIRST_ID + o->made++,
                       .op = op,
                       .args = json_own(o->a, args),
                       .kwargs = json_own(o->a, json_object()),
                       .t = t,
                       .whole = json_own(o->a, json_object()),
                       .index = -1};
    return n->id;
}

static int add_reshape(struct opened *o, int of, struct tensor t)
{
    return add(o, "aten.reshape.default", json_pack("[o,o]", node_json(of), shape_json(&t)), t);
}

/* Where a size of the operator's is that of the task's input; false: it is not. */
static bool size_of_input(const struct graph *g, const struct node *n, int d, int place[2])
{
    struct nest v;
    const struct strand *s;

    if (!nest_of(g, n, NULL, NEST_FACTOR, &v) || v.first[d + 1] - v.first[d] != 1)
        return false;
    s = &v.s[v.first[d]];
    if (!s->whole || s->dim < 0 || g->origin[v.input] < 0)
        return false;
    place[0] = g->origin[v.input];
    place[1] = s->dim;
    return true;
}

/* The factor of the scores: as it was given, or as PyTorch derives it from the head size. */
static json_t *scale_json(const struct opened *o, const struct wide *w)
{
    json_t *given = json_object_get(w->n->kwargs, "scale");
    int place[2], id = 0;
    double number;

    if (graph_number(given, &number))
        return json_incref(given);
    for (int k = 0; k < o->s->size_count; k++)
        id = o->s->sizes[k].id >= id ? o->s->sizes[k].id + 1 : id;
    if (id >= SIZE_CONSTANTS || !size_of_input(o->g, w->core.q, w->core.q->t.dims - 1, place))
        return json_pack("{s:f,s:{s:b}}", "value", w->core.scale, "of_sizes", "unknown", 1);
    return json_pack("{s:f,s:{s:i,s:f,s:[{s:[[i,i]],s:i,s:f}]}}", "value", w->core.scale,
                     "of_sizes", "id", id, "factor", 1.0, "terms", "places", place[0], place[1],
                     "shift", 0, "power", -0.5);
}

/* A tensor beside all heads as one beside (batch, heads of K, heads that share one, ...). */
static struct tensor beside_groups(struct tensor t, const struct wide *w)
{
    int64_t shared = w->core.k->t.shape[1], heads = t.dims > 2 ? t.shape[t.dims - 3] : 1;

    if (t.dims < 3)
        return t;
    t.dims++;
    for (int d = t.dims; d-- > t.dims - 2;)
        t.shape[d] = t.shape[d - 1];
    t.shape[t.dims - 3] = heads > 1 ? heads / shared : 1;
    t.shape[t.dims - 4] = heads > 1 ? shared : 1;
    return t;
}

/* The scores with what the operator adds to them or leaves out, as the softmax reads them. */
static int add_masked(struct opened *o, const struct wide *w, int scores, struct tensor t)
{
    const struct node *mask = w->core.mask;
    struct tensor whole = w->core.q->t;
    bool groups = w->queries != w->length;
    int beside;

    if (w->core.causal)
        return add(o, "cutegen.causal",
                   json_pack("[o,{s:I}]", node_json(scores), "value",
                             (json_int_t)(groups ? w->length : 0)),
                   t);
    if (!mask)
        return scores;
    beside = mask->id;
    whole.dtype = "f32";
    whole.shape[whole.dims - 1] = w->keys;
    if (groups) {
        whole = beside_groups(whole, w);
        beside = add_reshape(o, beside, beside_groups(mask->t, w));
    }
    scores = add_reshape(o, scores, whole);
    if (strcmp(mask->t.dtype, "bool") == 0)
        return add(o, "aten.where.ScalarOther",
                   json_pack("[o,o,{s:s}]", node_json(beside), node_json(scores), "text", "-inf"),
                   whole);
    return add(o, "aten.add.Tensor", json_pack("[o,o]", node_json(scores), node_json(beside)),
               whole);
}

/* A number, as an argument. */
static json_t *number_json(double x)
{
    return json_pack("{s:f}", "value", x);
}

/* exp(score - maximum) in 16 bits: the largest weight of a row is exactly 1, so a key that has
 * nearly all the weight loses no bits. Rows without keys have zeros. */
static int add_exponentials(struct opened *o, int scores, struct tensor t, const char *dtype)
{
    struct tensor row = t;
    int top;

    row.shape[t.dims - 1] = 1;
    top =
        add(o, "aten.amax.default",
            json_pack("[o,{s:[i]},{s:b}]", node_json(scores), "ints", t.dims - 1, "value", 1), row);
    top = add(o, "aten.clamp_min.default",
              json_pack("[o,o]", node_json(top), number_json(-(double)FLT_MAX)), row);
    top = add(o, "aten.sub.Tensor", json_pack("[o,o]", node_json(scores), node_json(top)), t);
    top = add(o, "aten.exp.default", json_pack("[o]", node_json(top)), t);
    t.dtype = dtype;
    return add(o, "aten._to_copy.default", json_pack("[o]", node_json(top)), t);
}

/* The sums of weights that a row of the result is divided by: 1 or more, or there is no key. */
static int add_sums(struct opened *o, int weights, struct tensor t)
{
    int sums;

    t.dtype = "f32";
    weights = add(o, "aten._to_copy.default", json_pack("[o]", node_json(weights)), t);
    t.shape[2] = 1;
    sums = add(o, "aten.sum.dim_IntList",
               json_pack("[o,{s:[i]},{s:b}]", node_json(weights), "ints", 2, "value", 1), t);
    return add(o, "aten.clamp_min.default", json_pack("[o,o]", node_json(sums), number_json(1)), t);
}

/* What the softmax gives, times V; in fp32, or in 16 bits by a division behind the product. */
static int add_values(struct opened *o, const struct wide *w, int scores, struct tensor t)
{
    const char *dtype = w->core.q->t.dtype;
    bool words = strcmp(dtype, "f32") == 0;
    struct tensor whole = matrices(dtype, w->pairs, w->queries, w->keys),
                  result = matrices("f32", w->pairs, w->queries, w->head_v);
    int weights, v, values, sums;

    if (words)
        weights = add(
            o, w->core.mask ? "aten._safe_softmax.default" : "aten._softmax.default",
            json_pack("[o,{s:i},{s:b}]", node_json(scores), "value", t.dims - 1, "value", 0), t);
    else
        weights = add_exponentials(o, scores, t, dtype);
    if (w->core.mask)
        weights = add_reshape(o, weights, whole);
    v = add_reshape(o, w->core.v->id, matrices(dtype, w->pairs, w->keys, w->head_v));
    if (words)
        return add(o, ATTENTION_VALUES, json_pack("[o,o]", node_json(weights), node_json(v)),
                   result);
    sums = add_sums(o, weights, whole);
    values = add(o, "aten.bmm.dtype", json_pack("[o,o]", node_json(weights), node_json(v)), result);
    values =
        add(o, "aten.div.Tensor", json_pack("[o,o]", node_json(values), node_json(sums)), result);
    result.dtype = dtype;
    return add(o, "aten._to_copy.default", json_pack("[o]", node_json(values)), result);
}

/* Its nodes, and in place of it a reshape of the last of them. */
static void open_one(struct opened *o, const struct wide *w)
{
    const char *dtype = w->core.q->t.dtype;
    struct tensor t = matrices("f32", w->pairs, w->queries, w->keys);
    int q, k, scores, values;
    struct node *last;

    q = add_reshape(o, w->core.q->id, matrices(dtype, w->pairs, w->queries, w->head));
    k = add_reshape(o, w->core.k->id, matrices(dtype, w->pairs, w->keys, w->head));
    k = add(o, "aten.transpose.int",
            json_pack("[o,{s:i},{s:i}]", node_json(k), "value", 1, "value", 2),
            matrices(dtype, w->pairs, w->head, w->keys));
    scores = add(o, "aten.bmm.dtype", json_pack("[o,o]", node_json(q), node_json(k)), t);
    scores = add(o, "aten.mul.Tensor", json_pack("[o,o]", node_json(scores), scale_json(o, w)), t);
    scores = add_masked(o, w, scores, t);
    values = add_values(o, w, scores, o->s->nodes[o->s->count - 1].t);
    last = &o->s->nodes[o->s->count++];
    *last = *w->n;
    last->op = "aten.reshape.default";
    last->args = json_own(o->a, json_pack("[o,o]", node_json(values), shape_json(&w->n->t)));
    last->kwargs = json_own(o->a, json_object());
    last->whole = last->kwargs;
}

const struct graph *attention_as_products(const struct graph *g, struct arena *a)
{
    struct opened o = {.g = g, .a = a};
    struct wide w;
    int count = 0;

    for (int i = 0; i < g->count; i++)
        count += suits(g, &g->nodes[i], &w);
    if (count == 0 || g->count + count * MADE > GRAPH_NODES)
        return NULL;
    o.s = arena_alloc(a, sizeof(*o.s));
    *o.s = *g;
    o.s->count = 0;
    o.s->nodes = arena_array(a, (size_t)g->count + (size_t)count * MADE, sizeof(*g->nodes));
    for (int i = 0; i < g->count; i++) {
        if (suits(g, &g->nodes[i], &w))
            open_one(&o, &w);
        else
            o.s->nodes[o.s->count++] = g->nodes[i];
    }
    graph_find_sizes(o.s, a);
    return o.s;
}

const struct node *attention_beside(const struct graph *g, const struct node *product)
{
    struct view v;

    for (const struct node *n = product + 1; n < g->nodes + g->count; n++) {
        bool chosen = graph_op_is(n, "aten.where");
        const struct node *scores = graph_arg(g, n, chosen);

        if (n->id < FIRST_ID || n->id >= FIRST_ID + GRAPH_NODES ||
            !(chosen || graph_op_is(n, "aten.add")))
            continue;
        while (scores && scores != product && scores->id >= FIRST_ID)
            scores = graph_arg(g, scores, 0);
        if (scores == product)
            return graph_view_part(g, graph_arg(g, n, !chosen), &v) ? NULL
                                                                    : graph_arg(g, n, !chosen);
    }
    return NULL;
}
