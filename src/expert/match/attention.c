/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.c - softmax(scale Q K^T + mask) V as one kernel.
 *
 * Operands are read as they lie: every tensor is (batch..., row, column) of
 * strands (graph/nest.h), and the batch is brought to the fewest modes that
 * all tensors have in common: batches, groups of heads, heads in a group.
 * What lies between the product and the softmax becomes a device function of
 * the product, of other inputs at (query, key), and of that place. Head sizes
 * are written into the kernel; other sizes come from the call where a whole
 * dimension of a tensor is such a size.
 */
#include "expert/match/attention.h"

#include "base/buf.h"

#include <math.h>
#include <string.h>

enum { LARGEST_HEAD = 1024, WIDEST_TILE = 256, WIDEST_WORDS = 128 };

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

/* K or V as they lie, or as they were gathered page by page. */
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
    for (int t = AT_K; t <= AT_V; t++)
        if (c->fused && !share_heads(&n[t], c->q->t.dims == 4 ? c->q->t.shape[1] : 1))
            return match_no(out, q->a, "heads of K and V do not divide those of Q");
    q->factor = n[AT_Q].factor * n[AT_K].factor * (c->fused ? c->scale : 1);
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

static bool leaf_add(struct attention *q, const struct node *n, const struct tensor *at,
                     struct match *out)
{
    const struct tensor *first = &q->core.scores->t;
    struct tensor scores = q->core.fused ? q->core.q->t : *first;
    struct nest *v = &q->nests[q->first_leaf + q->leaf_count];

    scores.shape[scores.dims - 1] = q->keys;
    for (int i = 0; i < q->leaf_count; i++)
        if (q->leaves[i].node == n)
            return true;
    if (q->leaf_count == ATTENTION_LEAVES)
        return match_no(out, q->a, "more than %d tensors beside the scores", ATTENTION_LEAVES);
    if (!nest_of(q->g, n, NULL, NEST_PLAIN, v) || !expr_value_type(n->t.dtype) ||
        !nest_expand(v, at ? at : &scores) || !nest_reshape(v, &scores))
        return match_no(out, q->a, "%s beside the scores", n->op);
    /* A prefix that nothing in the recipes has. */
    q->names[q->tensors] =
        names_add(&q->taken, arena_printf(q->a, "in_%s", q->g->in[v->input].name), q->a);
    q->leaves[q->leaf_count] = (struct attention_leaf){n, q->names[q->tensors]};
    q->leaf_count++;
    q->tensors++;
    return true;
}

/* arange beside the scores: the place of a query or of a key. */
static bool place_add(struct attention *q, const struct node *n, const struct node *counts,
                      int64_t from, const struct tensor *at, struct match *out)
{
    struct tensor scores = q->core.scores->t;
    const char *name = NULL;
    struct nest v;
    int d = scores.dims;

    scores.shape[d - 1] = q->keys;
    if (!expr_value_type(counts->t.dtype) || !nest_of(q->g, n, counts, NEST_PLAIN, &v) ||
        !nest_expand(&v, at) || !nest_reshape(&v, &scores))
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

/* Walks from the softmax down to the product; `at` is the shape at which a value meets the scores.
 */
static bool beside(struct attention *q, const struct node *n, const struct tensor *at,
                   struct match *out)
{
    const struct node *counts;
    int64_t from = 0;
    double number;
    struct nest v;
    bool on_way = tensor_numel(&n->t) == tensor_numel(&q->core.scores->t);

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
    for (size_t i = 0; i < json_array_size(n->args); i++)
        if (graph_arg(q->g, n, i) && !beside(q, graph_arg(q->g, n, i), on_way ? &n->t : at, out))
            return false;
    return true;
}

/* Products times a number, and nothing else? Then the number is found. */
static bool only_scaled(struct attention *q)
{
    struct nest v;

    if (q->core.fused)
        return !q->core.mask && q->factor > 0;
    if (q->core.linear ||
        !nest_of(q->g, graph_arg(q->g, q->core.weights, 0), q->core.scores, NEST_FACTOR, &v) ||
        !(q->factor * v.factor > 0))
        return false;
    q->factor *= v.factor;
    return true;
}

static const char *fused_body(struct attention *q)
{
    const char *mask = q->leaves[0].name, *scale = expr_literal(q->factor, "float", q->a);

    if (!q->core.mask)
        return arena_printf(q->a, "return acc * %s;", scale);
    if (strcmp(q->core.mask->t.dtype, "bool") == 0)
        return arena_printf(q->a, "return %s ? acc * %s : __int_as_float(0xff800000);", mask,
                            scale);
    return arena_printf(q->a, "return acc * %s + %s;", scale, mask);
}

/* The device function that makes a score of a product. */
static bool fill_score(struct attention *q, struct scope *s, struct match *out)
{
    struct expr e = {.g = q->g, .a = q->a, .row = "m", .col = "n", .see_through = true};
    struct buf params = buf_init(2048), args = buf_init(2048), names = buf_init(2048);
    const char *body = NULL;
    bool ok = true;

    buf_puts(&args, "");
    buf_puts(&names, "");
    buf_puts(&params, "float acc");
    for (int i = 0; i < q->leaf_count; i++) {
        const char *value = expr_value_type(q->leaves[i].node->t.dtype);

        e.leaf[q->leaves[i].node - q->g->nodes] = q->leaves[i].name;
        buf_printf(&params, ", %s %s", value, q->leaves[i].name);
        buf_printf(&args, ", %s(m%s(m, n))", value, match_capital(q->leaves[i].name, q->a));
        buf_printf(&names, ", %s", q->leaves[i].name);
    }
    for (int i = 0; i < q->g->count; i++)
        if (q->places[i])
            e.leaf[i] = q->places[i];
    if (q->core.fused) {
        body = fused_body(q);
    } else {
        e.leaf[q->core.scores - q->g->nodes] = "acc";
        ok = expr_body(&e, attention_scores(q->g, &q->core), &body, &out->why_not);
    }
    if (ok && (e.uses_place || q->uses_place)) {
        buf_puts(&params, ", int m, int n");
        buf_puts(&args, ", m, n");
        buf_puts(&names, ", m, n");
    }
    if (ok) {
        bool changed = !q->core.fused && (q->factor < 1 || q->factor > 1); /* of the operands */

        scope_set(s, "factor", "%s%s", changed ? expr_literal(q->factor, "float", q->a) : "",
                  changed ? " * " : "");
        expr_helpers(body, s, q->a);
        scope_set(s, "score_body", "%s", body);
        scope_set(s, "score_params", "%s", buf_text(&params).data);
        scope_set(s, "score_args", "%s", buf_text(&args).data);
        scope_set(s, "score_names", "%s", buf_text(&names).data);
    }
    buf_release(&params);
    buf_release(&names);
    buf_release(&args);
    return ok;
}

/* ---- the batch ---------------------------------------------------------------------------------
 */

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

static bool one_strand(const struct nest *v, int d, struct strand *out)
{
    int count = v->first[d + 1] - v->first[d];

    *out = (struct strand){.size = 1, .dim = -1};
    if (count == 1)
        *out = v->s[v->first[d]];
    return count <= 1;
}

static bool find_sides(struct attention *q, struct match *out)
{
    for (int t = 0; t < q->tensors; t++)
        if (!one_strand(&q->nests[t], q->nests[t].dims - 2, &q->row[t]) ||
            !one_strand(&q->nests[t], q->nests[t].dims - 1, &q->col[t]))
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

/* ---- slots --------------------------------------------------------------------------------------
 */

static void check(struct attention *q, struct scope *s, const char *condition, const char *text)
{
    struct scope *item = scope_item(s, "check");

    (void)q;
    scope_set(item, "condition", "%s", condition);
    scope_set(item, "text", "%s", text);
}

/* Sizes that are written into the kernel, or that another tensor's must equal. */
static void check_strand(struct attention *q, struct scope *s, int t, const struct strand *x,
                         const char *size)
{
    const struct tensor *tensor = attention_tensor(q, t);

    if (x->dim < 0)
        return;
    if (!x->whole)
        size = arena_printf(q->a, "%lld", (long long)tensor->shape[x->dim]);
    check(q, s, arena_printf(q->a, "%s->shape[%d] == %s", q->names[t], x->dim, size),
          arena_printf(q->a, "dimension %d of %s must be %s", x->dim, q->names[t], size));
}

/* Dimensions of one are part of no strand: where a call has more, it is another attention. */
static void check_ones(struct attention *q, struct scope *s)
{
    for (int t = 0; t < q->tensors; t++) {
        const struct tensor *x = attention_tensor(q, t);

        for (int d = 0; d < x->dims; d++)
            if (x->shape[d] == 1)
                check(q, s, arena_printf(q->a, "%s->shape[%d] == 1", q->names[t], d),
                      arena_printf(q->a, "dimension %d of %s must be 1", d, q->names[t]));
    }
}

/* A size as the plan has it: of the first tensor that has it as a whole dimension. */
static const char *size_text(struct attention *q, int64_t size, const struct strand *at)
{
    for (int t = 0; t < q->tensors; t++)
        if (at[t].dim >= 0 && at[t].whole)
            return arena_printf(q->a, "%s->shape[%d]", q->names[t], at[t].dim);
    return arena_printf(q->a, "%lld", (long long)size);
}

const char *attention_stride(struct attention *q, int t, const struct strand *x)
{
    if (x->dim < 0 || x->stride == 0)
        return "0";
    if (x->times == 1)
        return arena_printf(q->a, "%s->strides[%d]", q->names[t], x->dim);
    return arena_printf(q->a, "%s->strides[%d] * %lld", q->names[t], x->dim, (long long)x->times);
}

struct parameters {
    struct buf params, args;
    int count;
};

static void sign(struct parameters *sig, const char *type, const char *name, const char *value)
{
    buf_printf(&sig->params, ", %s %s", type, name);
    buf_printf(&sig->args, ", (%s)(%s)", type, value);
    sig->count++;
}

/* A stride in the kernel: a literal, or a parameter, which is added. */
static const char *stride_name(struct attention *q, struct parameters *sig, int t,
                               const struct strand *x, const char *mode)
{
    const char *text = attention_stride(q, t, x), *name;

    if (strcmp(text, "0") == 0)
        return NULL;
    name = arena_printf(q->a, "%s_%s", match_lower(q->names[t], q->a), mode);
    sign(sig, "int64_t", name, text);
    return name;
}

/* "l0 * q_l0 + l1 * q_l1", or "0". */
static const char *batch_text(struct attention *q, struct parameters *sig, int t)
{
    const char *text = "";

    for (int i = 0; i < q->mode_count; i++) {
        const char *name = stride_name(q, sig, t, &q->modes[i].at[t], arena_printf(q->a, "l%d", i));

        if (name)
            text = arena_printf(q->a, "%s%sl%d * %s", text, *text ? " + " : "", i, name);
    }
    return *text ? text : "0";
}

static void fill_tensor(struct attention *q, struct scope *s, struct parameters *sig, int t)
{
    const char *name = match_lower(q->names[t], q->a), *row, *col;

    scope_set(s, arena_printf(q->a, "%s_at", name), "%s", batch_text(q, sig, t));
    row = stride_name(q, sig, t, &q->row[t], "row");
    scope_set(s, arena_printf(q->a, "%s_row", name), "%s", row ? row : "_0{}");
    if (q->col[t].stride == 1) {
        check(q, s, arena_printf(q->a, "%s->strides[%d] == 1", q->names[t], q->col[t].dim),
              arena_printf(q->a, "dimension %d of %s must be contiguous", q->col[t].dim,
                           q->names[t]));
        scope_set(s, arena_printf(q->a, "%s_col", name), "_1{}");
        return;
    }
    col = stride_name(q, sig, t, &q->col[t], "col");
    scope_set(s, arena_printf(q->a, "%s_col", name), "%s", col ? col : "_0{}");
}

static void fill_leaf(struct attention *q, struct scope *s, struct parameters *sig, int i)
{
    struct scope *item = scope_item(s, "leaf");
    int t = q->first_leaf + i;
    const char *name = q->names[t];

    fill_tensor(q, s, sig, t);
    scope_set(item, "x", "%s", name);
    scope_set(item, "X", "%s", match_capital(name, q->a));
    scope_set(item, "k", "%d", q->nests[t].input);
    scope_set(item, "ndim", "%d", attention_tensor(q, t)->dims);
    scope_set(item, "x_at", "%s",
              scope_get(s, arena_printf(q->a, "%s_at", match_lower(name, q->a))));
    scope_set(item, "m", "%s", scope_get(s, arena_printf(q->a, "%s_row", match_lower(name, q->a))));
    scope_set(item, "n", "%s", scope_get(s, arena_printf(q->a, "%s_col", match_lower(name, q->a))));
}

/* Where a tensor's first element is, for the plan. */
const char *attention_pointer(struct attention *q, int t, bool constant)
{
    const char *type = expr_memory_type(attention_tensor(q, t)->dtype);

    return match_pointer(constant ? arena_printf(q->a, "%s const", type) : type, q->names[t],
                         q->nests[t].from, q->a);
}

/* Are its rows keys? */
static bool of_keys(const struct attention *q, int t)
{
    return t == AT_K || t == AT_V || (q->core.upstream && (t == AT_DK || t == AT_DV));
}

static void fill_sizes(struct attention *q, struct scope *s)
{
    struct strand rows[ATTENTION_TENSORS];
    const char *text, *heads = "";

    for (int t = 0; t < q->tensors; t++)
        rows[t] = of_keys(q, t) ? (struct strand){.dim = -1} : q->row[t];
    text = size_text(q, q->queries, rows);
    scope_set(s, "queries", "%s", text);
    for (int t = 0; t < q->tensors; t++)
        check_strand(q, s, t, &rows[t], "queries");
    for (int t = 0; t < q->tensors; t++)
        rows[t] = t >= q->first_leaf          ? q->col[t]
                  : of_keys(q, t) && !q->page ? q->row[t]
                                              : (struct strand){.dim = -1};
    text = q->page ? arena_printf(q->a, "Table->shape[%d] * PAGE", q->col[AT_TABLE].dim)
                   : size_text(q, q->keys, rows);
    scope_set(s, "keys", "%s", text);
    for (int t = 0; t < q->tensors; t++)
        check_strand(q, s, t, &rows[t], "keys");
    for (int t = AT_K; t <= AT_V && q->page; t++)
        check_strand(q, s, t, &q->row[t], "PAGE");
    for (int t = AT_O; t <= (q->core.upstream ? AT_DV : AT_V); t++) {
        bool v = t == AT_O || t == AT_V || t == AT_DV;

        check_strand(q, s, t, &q->col[t],
                     arena_printf(q->a, "%lld", (long long)(v ? q->head_v : q->head)));
        scope_set(s, arena_printf(q->a, "%s_ndim", match_lower(q->names[t], q->a)), "%d",
                  attention_tensor(q, t)->dims);
    }
    for (int i = 0; i < ATTENTION_MODES; i++) {
        struct attention_mode *m = &q->modes[i];

        m->text = i < q->mode_count ? size_text(q, m->size, m->at) : "1";
        for (int t = 0; i < q->mode_count && t < q->tensors; t++)
            check_strand(q, s, t, &m->at[t], arena_printf(q->a, "n%d", i));
        if (i < q->mode_count) {
            struct scope *item = scope_item(s, "mode");

            scope_set(item, "i", "%d", i);
            scope_set(item, "size", "%s", m->text);
            heads = arena_printf(q->a, "%s%sn%d", heads, *heads ? " * " : "", i);
        }
    }
    scope_set(s, "heads", "%s", *heads ? heads : "1");
    check_ones(q, s);
}

/* Rows of Q, K and V that start on 16 bytes and are a multiple of them. */
static bool vectors(const struct attention *q)
{
    int count = 16 / expr_bytes(attention_tensor(q, AT_Q)->dtype);

    for (int t = q->core.upstream ? AT_O : AT_Q; t <= AT_V; t++) {
        const struct tensor *x = attention_tensor(q, t);

        if (q->col[t].stride != 1 || q->col[t].size % count || q->row[t].stride % count ||
            (q->page && t != AT_Q && x->strides[0] % count))
            return false;
        for (int i = 0; i < q->mode_count; i++)
            if (q->modes[i].at[t].stride % count)
                return false;
        for (int d = 0; d < x->dims; d++)
            if (q->nests[t].from[d] * x->strides[d] % count)
                return false;
    }
    return true;
}

static void fill_vectors(struct attention *q, struct scope *s)
{
    int count = 16 / expr_bytes(attention_tensor(q, AT_Q)->dtype);

    scope_fact(s, "vectors");
    for (int t = q->core.upstream ? AT_O : AT_Q; t <= AT_V; t++) {
        const char *strides = "";

        for (int i = -1; i < q->mode_count; i++) {
            const char *text = attention_stride(q, t, i < 0 ? &q->row[t] : &q->modes[i].at[t]);

            if (strcmp(text, "0") != 0)
                strides = arena_printf(q->a, "%s && %s %% %d == 0", strides, text, count);
        }
        if (q->page && t != AT_Q)
            strides =
                arena_printf(q->a, "%s && %s->strides[0] %% %d == 0", strides, q->names[t], count);
        struct scope *item = scope_item(s, "vector_check");
        scope_set(item, "condition", "cutegen_aligned(%s, 16)%s", q->names[t], strides);
        scope_set(item, "text", "rows of %s must start on 16 bytes", q->names[t]);
    }
}

/* Pointers and strides: of O and what stands beside the scores for kernels that read through tensor
 * maps, of all tensors for others. */
static void fill_signature(struct attention *q, struct scope *s)
{
    struct parameters sig = {buf_init(4096), buf_init(4096), 0};
    struct buf pointers = buf_init(4096), data = buf_init(4096);
    const char *type = scope_get(s, "type");

    buf_puts(&pointers, "");
    buf_puts(&data, "");
    sign(&sig, "int", "queries", "queries");
    sign(&sig, "int", "keys", "keys");
    for (int i = 0; i < q->mode_count; i++)
        sign(&sig, "int", arena_printf(q->a, "n%d", i), arena_printf(q->a, "n%d", i));
    fill_tensor(q, s, &sig, AT_O);
    if (q->page) {
        fill_tensor(q, s, &sig, AT_TABLE);
        buf_printf(&pointers, "%s const *Table, ",
                   expr_memory_type(attention_tensor(q, AT_TABLE)->dtype));
        buf_printf(&data, "%s, ", attention_pointer(q, AT_TABLE, true));
        sign(&sig, "int64_t", "pages", "K->shape[0]");
        sign(&sig, "int64_t", "k_page", "K->strides[0]");
        sign(&sig, "int64_t", "v_page", "V->strides[0]");
    }
    for (int i = 0; i < q->leaf_count; i++) {
        const char *leaf = expr_memory_type(q->leaves[i].node->t.dtype);

        fill_leaf(q, s, &sig, i);
        buf_printf(&pointers, "%s const *%s, ", leaf, q->leaves[i].name);
        buf_printf(&data, "%s, ", attention_pointer(q, q->first_leaf + i, true));
    }
    buf_printf(&pointers, "%s *O", type);
    buf_printf(&data, "%s", attention_pointer(q, AT_O, false));
    scope_set(s, "out_params", "%s%s", buf_text(&pointers).data, buf_text(&sig.params).data);
    scope_set(s, "out_args", "%s%s", buf_text(&data).data, buf_text(&sig.args).data);
    for (int t = AT_Q; t <= AT_V; t++)
        fill_tensor(q, s, &sig, t);
    scope_set(s, "params", "%s const *Q, %s const *K, %s const *V, %s%s", type, type, type,
              buf_text(&pointers).data, buf_text(&sig.params).data);
    scope_set(s, "args", "%s, %s, %s, %s%s", attention_pointer(q, AT_Q, true),
              attention_pointer(q, AT_K, true), attention_pointer(q, AT_V, true),
              buf_text(&data).data, buf_text(&sig.args).data);
    buf_release(&sig.params);
    buf_release(&sig.args);
    buf_release(&pointers);
    buf_release(&data);
}

/* l, as the places along the modes. */
static const char *places_text(struct attention *q)
{
    const char *text = "", *rest = "l";

    for (int i = 0; i < q->mode_count; i++) {
        bool last = i + 1 == q->mode_count;

        text = arena_printf(q->a, "%s%s l%d = %s", text, i ? "," : "int const", i,
                            last ? rest : arena_printf(q->a, "%s %% n%d", rest, i));
        rest = arena_printf(q->a, "%s / n%d", rest, i);
    }
    return *text ? arena_printf(q->a, "[[maybe_unused]] %s;", text) : "";
}

static bool fill(struct attention *q, struct match *out)
{
    static const char *const names[] = {"o", "q", "k", "v"};
    struct scope *s = out->scope = scope_new(q->a, NULL);
    const char *dtype = attention_tensor(q, AT_Q)->dtype;

    scope_set(s, "kernel", "%s", match_kernel_name(q->g, q->a));
    scope_set(s, "ops", "%s", graph_ops(q->g, q->a));
    scope_set(s, "type", "%s", expr_memory_type(dtype));
    scope_set(s, "head", "%lld", (long long)q->head);
    scope_set(s, "head_v", "%lld", (long long)q->head_v);
    scope_set(s, "scale", "%s", expr_literal(q->factor, "float", q->a));
    scope_set(s, "scale2", "%s", expr_literal(q->factor * M_LOG2E, "float", q->a));
    scope_set(s, "places", "%s", places_text(q));
    match_scalars(q->g, s);
    for (int t = AT_Q; t <= AT_V; t++)
        scope_set(s, arena_printf(q->a, "%s_index", names[t]), "%d", q->nests[t].input);
    scope_fact(s, strcmp(dtype, "f32") == 0 ? "words" : "narrow");
    if (q->core.linear)
        scope_fact(s, "linear");
    scope_set(s, "mma", "SM80_16x8x16_F32%sF32_TN",
              strcmp(dtype, "f16") == 0 ? "F16F16" : "BF16BF16");
    if (q->core.causal)
        scope_fact(s, "causal");
    if (q->core.safe)
        scope_fact(s, "safe");
    if (q->head <= WIDEST_TILE && q->head_v <= WIDEST_TILE)
        scope_fact(s, "short_heads");
    if (q->scaled) {
        scope_fact(s, "scaled");
        scope_set(s, "score_args", "%s", "");
    } else if (!fill_score(q, s, out)) {
        return false;
    }
    if (!q->core.upstream)
        fill_signature(q, s);
    fill_sizes(q, s);
    if (vectors(q))
        fill_vectors(q, s);
    if (q->core.upstream) {
        attention_fill_gradient(q, out);
        return true;
    }
    if (q->page)
        attention_fill_pages(q, s);
    if (attention_fill_decode(q, out))
        return true;
    if (q->page)
        return match_no(out, q->a, "pages of keys for more than a few queries");
    attention_fill_sm90(q, out);
    return true;
}

/* Written out with wide heads, its products have recipes that are faster than one pass. */
static bool worth(const struct attention *q)
{
    bool words = strcmp(attention_tensor(q, AT_Q)->dtype, "f32") == 0;
    int64_t widest = words ? WIDEST_WORDS : WIDEST_TILE;

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
    if (q->head > LARGEST_HEAD || q->head_v > LARGEST_HEAD)
        return match_no(out, a, "heads of more than %d", LARGEST_HEAD);
    if (!worth(q))
        return match_no(out, a, "heads so wide that separate products are faster");
    q->scaled = only_scaled(q);
    if (q->core.mask && !leaf_add(q, q->core.mask, NULL, out))
        return false;
    if (!q->scaled && !q->core.fused &&
        !beside(q, attention_scores(g, &q->core), &q->core.scores->t, out))
        return false;
    return find_modes(q, out) && find_sides(q, out) && fill(q, out);
}
