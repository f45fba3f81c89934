/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_slots.c - the slots that every recipe of attention needs.
 *
 * The operators between the product and the softmax become a device function of the product, of
 * other inputs at (query, key), and of that position. Head sizes are written into the kernel. Other
 * sizes come from the call where they are a whole dimension of a tensor.
 */
#include "expert/match/attention.h"

#include "base/buf.h"

#include <math.h>
#include <string.h>

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

/* What the first product's node is, of the product and of what is added to it. */
static const char *product_text(const struct attention *q)
{
    for (int i = 0; i < q->leaf_count; i++)
        if (q->leaves[i].node == q->core.added)
            return arena_printf(q->a, "(acc + %s * %s)", expr_literal(q->core.beta, "float", q->a),
                                q->leaves[i].name);
    return "acc";
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
        e.leaf[q->core.scores - q->g->nodes] = product_text(q);
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

static void check_flat(struct attention *q, struct scope *s)
{
    for (int i = 0; i < q->flat_count; i++) {
        const struct attention_flat *f = &q->flat[i];
        const struct tensor *x = attention_tensor(q, f->t);
        const char *name = q->names[f->t];
        long long outer = x->shape[f->outer], inner = x->shape[f->inner];

        check(
            q, s,
            arena_printf(q->a, "%s->shape[%d] == %lld && %s->strides[%d] == %s->strides[%d] * %lld",
                         name, f->outer, outer, name, f->outer, name, f->inner, inner),
            arena_printf(q->a, "dimensions %d and %d of %s must be %lldx%lld, one after the other",
                         f->outer, f->inner, name, outer, inner));
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
    check_flat(q, s);
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

bool attention_fill(struct attention *q, struct match *out)
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
    if (q->head <= ATTENTION_WIDEST_TILE && q->head_v <= ATTENTION_WIDEST_TILE)
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
