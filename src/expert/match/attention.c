/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.c - softmax(scale Q K^T + mask) V as one kernel.
 *
 * Operands are read in their own layout: every tensor is (batch..., row, column) of strands
 * (graph/nest.h), and the batch is brought to the fewest modes that all tensors have in common:
 * batches, groups of heads, heads in a group.
 */
#include "expert/match/attention.h"

#include <string.h>

enum { WIDEST_WORDS = 128, MANY_TURNED_SCORES = 1 << 22 };

const struct tensor *attention_tensor(const struct attention *q, int t)
{
    if (q->core.upstream)
        return t >= AT_DQ && t <= AT_DV ? &q->g->out[q->nests[t].input]
                                        : &q->g->in[q->nests[t].input];
    return t == AT_O ? &q->g->out[0] : &q->g->in[q->nests[t].input];
}

static bool find_core(struct attention *q, struct match *out)
{
    if (attention_find_gradient(q->g, &q->core))
        return true;
    for (int i = 0; i < q->g->count; i++)
        if (attention_find(q->g, &q->g->nodes[i], &q->core))
            return true;
    return match_no(out, q->a, "no softmax between two products");
}

/* ---- operands ----------------------------------------------------------------------------- */

static void swap_last(struct nest *v)
{
    struct nest from = *v;
    int d = v->dims, count = from.first[d - 2];

    for (int i = from.first[d - 1]; i < from.first[d]; i++)
        v->s[count++] = from.s[i];
    v->first[d - 1] = count;
    for (int i = from.first[d - 2]; i < from.first[d - 1]; i++)
        v->s[count++] = from.s[i];
}

/* Heads of K and V that several of Q share. */
static bool share_heads(struct nest *v, int64_t heads)
{
    struct tensor to = {.dims = 5};
    int64_t mine = v->dims == 4 ? nest_size(v, 1) : heads;

    if (mine == heads)
        return true;
    if (heads % mine || !nest_split(v, 1, 1))
        return false;
    for (int d = 0; d < 5; d++)
        to.shape[d] = nest_size(v, d);
    to.shape[2] = heads / mine;
    if (!nest_expand(v, &to))
        return false;
    to = (struct tensor){.dims = 4, .shape = {to.shape[0], heads, to.shape[3], to.shape[4]}};
    return nest_reshape(v, &to);
}

/* K or V in their own layout, or gathered page by page. */
static bool find_keys(struct attention *q, const struct node *n, int t)
{
    const struct node *pages;

    if (nest_of(q->g, n, NULL, NEST_FACTOR, &q->nests[t]))
        return true;
    pages = attention_pages(q->g, n);
    if (!pages || !nest_of(q->g, n, pages, NEST_FACTOR, &q->nests[t]))
        return false;
    q->page = -1; /* until it is known */
    return true;
}

bool attention_output(struct attention *q, const struct node *made, int k, struct nest *o)
{
    const struct graph *g = q->g;
    const struct node *result = graph_node(g, g->result[k]);
    struct nest v;
    const struct tensor *t = &g->out[k];
    int count = 0;

    if (!nest_of(g, result, made, NEST_FACTOR, &v) || v.factor < 1 || v.factor > 1 ||
        tensor_numel(&result->t) != tensor_numel(&made->t))
        return false;
    *o = (struct nest){.dims = made->t.dims, .factor = 1};
    for (int d = 0; d < o->dims; d++) {
        o->first[d] = count;
        for (int64_t below = INT64_MAX;;) { /* strands of this dimension, the outermost first */
            int64_t inner = 1, best = 0;
            struct strand s = {0};

            for (int r = v.dims; r-- > 0;) {
                inner = 1;
                for (int i = v.first[r + 1]; i-- > v.first[r]; inner *= v.s[i].size)
                    if (v.s[i].dim == d && v.s[i].times < below && v.s[i].times > best) {
                        best = v.s[i].times;
                        s = (struct strand){v.s[i].size, t->strides[r] * inner, r, inner,
                                            v.first[r + 1] - v.first[r] == 1};
                    }
            }
            if (!best)
                break;
            if (count == NEST_STRANDS)
                return false;
            o->s[count++] = s;
            below = best;
        }
    }
    o->first[o->dims] = count;
    return true;
}

/* The output as (batch..., query, column) of what the second product gives. */
static bool find_output(struct attention *q, struct match *out)
{
    if (q->core.upstream)
        return attention_find_gradients(q, out);
    if (q->g->out_count != 1 || !attention_output(q, q->core.values, 0, &q->nests[AT_O]))
        return match_no(out, q->a, "more follows than rearrangements");
    if (q->core.turned)
        swap_last(&q->nests[AT_O]);
    return true;
}

static bool find_operands(struct attention *q, struct match *out)
{
    const struct attention_core *c = &q->core;
    struct nest *n = q->nests;

    if (tensor_numel(&c->q->t) <= 0 || tensor_numel(&c->k->t) <= 0 || tensor_numel(&c->v->t) <= 0)
        return match_no(out, q->a, "an empty attention");
    if (!nest_of(q->g, c->q, NULL, NEST_FACTOR, &n[AT_Q]) || !find_keys(q, c->k, AT_K) ||
        !find_keys(q, c->v, AT_V))
        return match_no(out, q->a, "an operand of attention is computed");
    if (!c->fused)
        swap_last(&n[AT_K]);
    if (c->turned)
        swap_last(&n[AT_V]);
    for (int t = AT_K; t <= AT_V; t++)
        if (c->fused && !share_heads(&n[t], c->q->t.dims == 4 ? c->q->t.shape[1] : 1))
            return match_no(out, q->a, "heads of K and V do not divide those of Q");
    q->factor = n[AT_Q].factor * n[AT_K].factor * c->scale;
    if (n[AT_V].factor < 1 || n[AT_V].factor > 1)
        return match_no(out, q->a, "V is scaled");
    q->queries = nest_size(&n[AT_Q], n[AT_Q].dims - 2);
    q->head = nest_size(&n[AT_Q], n[AT_Q].dims - 1);
    q->keys = nest_size(&n[AT_K], n[AT_K].dims - 2);
    q->head_v = nest_size(&n[AT_V], n[AT_V].dims - 1);
    if ((q->page && !attention_find_pages(q, out)) || !find_output(q, out))
        return false;
    for (int t = AT_DK; t <= AT_DV && c->upstream; t++)
        if (!share_heads(&n[t], c->q->t.shape[1]))
            return match_no(out, q->a, "heads of dK and dV do not divide those of Q");
    return true;
}

static bool dtypes_fit(struct attention *q, struct match *out)
{
    const char *dtype = attention_tensor(q, AT_Q)->dtype;

    if (strcmp(dtype, "f32") != 0 && strcmp(dtype, "f16") != 0 && strcmp(dtype, "bf16") != 0)
        return match_no(out, q->a, "attention in %s", dtype);
    for (int t = AT_O; t <= (q->core.upstream ? AT_DV : AT_V); t++)
        if (strcmp(attention_tensor(q, t)->dtype, dtype) != 0)
            return match_no(out, q->a, "attention of %s and %s", dtype,
                            attention_tensor(q, t)->dtype);
    return true;
}

/* ---- what stands beside the scores ---------------------------------------------------------- */

/* Shapes in which a value meets the scores, the nearest first: it is broadcast to `shape`, which is
 * seen as `as` on the way up; NULL: as the scores. */
struct way {
    const struct tensor *shape, *as;
    const struct way *up;
};

static bool follow(struct nest *v, const struct way *at, const struct tensor *scores)
{
    for (; at; at = at->up)
        if (!nest_expand(v, at->shape) || !nest_reshape(v, at->as ? at->as : scores))
            return false;
    return true;
}

static bool leaf_add(struct attention *q, const struct node *n, const struct way *at,
                     struct match *out)
{
    const struct tensor *first = &q->core.scores->t;
    struct tensor scores = q->core.fused ? q->core.q->t : *first;
    struct nest *v = &q->nests[q->first_leaf + q->leaf_count];
    const struct way whole = {.shape = &scores};

    scores.shape[scores.dims - 1] = q->keys;
    for (int i = 0; i < q->leaf_count; i++)
        if (q->leaves[i].node == n)
            return true;
    if (q->leaf_count == ATTENTION_LEAVES)
        return match_no(out, q->a, "more than %d tensors beside the scores", ATTENTION_LEAVES);
    if (!nest_of(q->g, n, NULL, NEST_PLAIN, v) || !expr_value_type(n->t.dtype) ||
        !follow(v, at ? at : &whole, &scores))
        return match_no(out, q->a, "%s beside the scores", n->op);
    /* A prefix that no name in the recipes has. */
    q->names[q->tensors] =
        names_add(&q->taken, arena_printf(q->a, "in_%s", q->g->in[v->input].name), q->a);
    q->leaves[q->leaf_count] = (struct attention_leaf){n, q->names[q->tensors]};
    q->leaf_count++;
    q->tensors++;
    return true;
}

/* arange beside the scores: the place of a query or of a key. */
static bool place_add(struct attention *q, const struct node *n, const struct node *counts,
                      int64_t from, const struct way *at, struct match *out)
{
    struct tensor scores = q->core.scores->t;
    const char *name = NULL;
    struct nest v;
    int d = scores.dims;

    scores.shape[d - 1] = q->keys;
    if (!expr_value_type(counts->t.dtype) || !nest_of(q->g, n, counts, NEST_PLAIN, &v) ||
        !follow(&v, at, &scores))
        return match_no(out, q->a, "%s beside the scores", n->op);
    for (int i = 0; i < v.first[d]; i++)
        if (v.s[i].dim == 0) {
            if (name || !v.s[i].whole || v.s[i].times != 1 || i < v.first[d - 2])
                return match_no(out, q->a, "places in another order beside the scores");
            name = i < v.first[d - 1] ? "m" : "n";
        }
    if (!name) /* of one element */
        name = "0";
    q->places[n - q->g->nodes] = arena_printf(
        q->a, "%s(%s + %lld)", expr_value_type(counts->t.dtype), name, (long long)from);
    q->uses_place = true;
    return true;
}

/* Walks from the softmax down to the product; `at` is the shape in which a value is combined
 * with the scores. */
static bool beside(struct attention *q, const struct node *n, const struct way *at,
                   struct match *out)
{
    const struct node *counts;
    int64_t from = 0;
    double number;
    struct nest v;
    bool on_way = tensor_numel(&n->t) == tensor_numel(&q->core.scores->t);
    struct way own = {.shape = &n->t}, inner = {.as = &n->t, .up = at};

    if (n == q->core.scores && q->core.added)
        return leaf_add(q, q->core.added, &own, out);
    if (n == q->core.scores || n->value)
        return true;
    if (nest_of(q->g, n, NULL, NEST_PLAIN, &v))
        return leaf_add(q, n, at, out);
    if (attention_fills(n, &number) && expr_value_type(n->t.dtype)) {
        q->places[n - q->g->nodes] = expr_literal(number, expr_value_type(n->t.dtype), q->a);
        return true;
    }
    counts = attention_counts(q->g, n, &from);
    if (counts)
        return place_add(q, n, counts, from, at, out);
    if (on_way) {
        at = &own;
    } else if (graph_reshapes(n) && graph_arg(q->g, n, 0)) {
        inner.shape = &graph_arg(q->g, n, 0)->t;
        at = &inner;
    }
    for (size_t i = 0; i < json_array_size(n->args); i++)
        if (graph_arg(q->g, n, i) && !beside(q, graph_arg(q->g, n, i), at, out))
            return false;
    return true;
}

/* Are scores only products times a number? Then q->factor gets the number. */
static bool only_scaled(struct attention *q)
{
    struct nest v;

    if (q->core.fused)
        return !q->core.mask && q->factor > 0;
    if (q->core.linear || q->core.added ||
        !nest_of(q->g, attention_scores(q->g, &q->core), q->core.scores, NEST_FACTOR, &v) ||
        !(q->factor * v.factor > 0))
        return false;
    q->factor *= v.factor;
    return true;
}

/* ---- the batch ------------------------------------------------------------------------ */

/* The inner `size` of a strand; the strand keeps the rest. */
static struct strand take_inner(struct strand *s, int64_t size)
{
    struct strand inner = *s;

    inner.size = size;
    inner.whole = s->whole && s->size == size;
    s->whole = false;
    s->size /= size;
    s->stride *= size;
    s->times *= size;
    return inner;
}

/* The fewest modes that the batch of every tensor is made of. */
static bool find_modes(struct attention *q, struct match *out)
{
    int left[ATTENTION_TENSORS] = {0};

    for (int t = 0; t < q->tensors; t++)
        left[t] = q->nests[t].first[q->nests[t].dims - 2];
    while (left[AT_O] > 0) {
        int64_t size = INT64_MAX;
        struct attention_mode *m = &q->modes[q->mode_count];

        for (int t = 0; t < q->tensors; t++) {
            if (left[t] == 0)
                return match_no(out, q->a, "batches of different sizes");
            if (q->nests[t].s[left[t] - 1].size < size)
                size = q->nests[t].s[left[t] - 1].size;
        }
        if (q->mode_count++ == ATTENTION_MODES)
            return match_no(out, q->a, "a batch of more than %d dimensions", ATTENTION_MODES);
        m->size = size;
        for (int t = 0; t < q->tensors; t++) {
            struct strand *s = &q->nests[t].s[left[t] - 1];

            if (s->size % size)
                return match_no(out, q->a, "batches that do not divide each other");
            m->at[t] = take_inner(s, size);
            left[t] -= s->size == 1;
        }
    }
    for (int t = 0; t < q->tensors; t++)
        if (left[t] > 0)
            return match_no(out, q->a, "batches of different sizes");
    return true;
}

/* Rows or columns as one strand. Of two whole dimensions that lie one after the other (a picture's)
 * it is the inner one, over the size of both; the plan checks that they do. */
static bool one_strand(struct attention *q, int t, int d, struct strand *out)
{
    const struct nest *v = &q->nests[t];
    const struct strand *s = &v->s[v->first[d]];
    int count = v->first[d + 1] - v->first[d];

    *out = (struct strand){.size = 1, .dim = -1};
    if (count == 1)
        *out = *s;
    if (count != 2 || q->core.upstream || !s[0].whole || !s[1].whole || q->flat_count == MAX_DIMS ||
        s[0].stride != s[1].stride * s[1].size)
        return count <= 1;
    *out = s[1];
    out->size *= s[0].size;
    out->whole = false;
    q->flat[q->flat_count++] = (struct attention_flat){t, s[0].dim, s[1].dim};
    return true;
}

static bool find_sides(struct attention *q, struct match *out)
{
    for (int t = 0; t < q->tensors; t++)
        if (!one_strand(q, t, q->nests[t].dims - 2, &q->row[t]) ||
            !one_strand(q, t, q->nests[t].dims - 1, &q->col[t]))
            return match_no(out, q->a, "rows or columns without one stride");
    if (q->row[AT_O].size != q->queries || q->row[AT_V].size != (q->page ? q->page : q->keys) ||
        q->col[AT_K].size != q->head || q->col[AT_O].size != q->head_v)
        return match_no(out, q->a, "operands of different sizes");
    if (q->core.upstream && (q->row[AT_DQ].size != q->queries || q->row[AT_DK].size != q->keys ||
                             q->row[AT_DV].size != q->keys || q->col[AT_DQ].size != q->head ||
                             q->col[AT_DK].size != q->head || q->col[AT_DV].size != q->head_v))
        return match_no(out, q->a, "gradients of different sizes");
    return true;
}

/* With wide heads, separate products are faster than one pass, unless it is one operator; also
 * where rows are not contiguous, which keeps Hopper's forms from reading them. */
static bool worth(const struct attention *q)
{
    if (q->core.turned && q->g->arch == 90 && tensor_numel(&q->core.scores->t) > MANY_TURNED_SCORES)
        return false;

    bool words = strcmp(attention_tensor(q, AT_Q)->dtype, "f32") == 0;
    int64_t widest = words ? WIDEST_WORDS : ATTENTION_WIDEST_TILE;

    return q->core.fused || (q->head <= widest && q->head_v <= widest);
}

bool match_attention(const struct graph *g, struct arena *a, struct match *out)
{
    static const char *const names[] = {"O", "Q", "K", "V", "dQ", "dK", "dV"};
    static const char *const taken[] = {"O",       "Q",    "K",   "V",    "Table",
                                        "queries", "keys", "acc", "score"};
    struct attention *q = arena_alloc(a, sizeof(*q));

    memset(q, 0, sizeof(*q));
    q->g = g;
    q->a = a;
    q->tensors = q->first_leaf = 4;
    memcpy(q->names, names, sizeof(names));
    for (size_t i = 0; i < ARRAY_LEN(taken); i++)
        q->taken.used[q->taken.count++] = taken[i];
    if (!find_core(q, out) || !find_operands(q, out) || !dtypes_fit(q, out))
        return false;
    if (tensor_numel(&g->out[0]) == 0 || q->keys == 0 || q->head == 0)
        return match_no(out, a, "an empty attention");
    if (q->head > ATTENTION_LARGEST_HEAD || q->head_v > ATTENTION_LARGEST_HEAD)
        return match_no(out, a, "heads of more than %d", ATTENTION_LARGEST_HEAD);
    if (!worth(q))
        return match_no(out, a, "heads so wide that separate products are faster");
    const struct way whole = {.shape = &q->core.scores->t};
    q->scaled = only_scaled(q);
    if (q->core.mask && !leaf_add(q, q->core.mask, NULL, out))
        return false;
    if (!q->scaled && !q->core.fused && !beside(q, attention_scores(g, &q->core), &whole, out))
        return false;
    return find_modes(q, out) && find_sides(q, out) && attention_fill(q, out);
}
