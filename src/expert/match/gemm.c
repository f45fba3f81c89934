/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm.c - one matrix product, maybe batched, with a pointwise epilogue.
 *
 * The product is seen as C(l,m,n) = sum over k of A(l,m,k) * B(l,n,k), with
 * sizes and strides taken from the call's tensors through views, so that
 * transposed and merged operands need no copies. What follows the product
 * becomes a device function of the accumulator and of other inputs, which are
 * tensors over (m,n) with zero strides where they broadcast.
 */
#include "expert/match/gemm.h"

#include "base/buf.h"

#include <stdint.h>
#include <string.h>

enum {
    DEEP_K = 256, /* from this length on dividing a sum among blocks pays */
    LONG_SUM = 64 /* and from this one on adding up in pieces */
};

bool gemm_is_product(const struct node *n)
{
    return graph_op_is(n, "aten.mm") || graph_op_is(n, "aten.bmm") ||
           graph_op_is(n, "aten.addmm") || graph_op_is(n, "aten.baddbmm");
}

static struct side side_of(const struct view *v)
{
    struct side s = {.l = {.size = 1}};

    if (v->dims == 3)
        s.l = v->axes[0];
    s.outers = v->outers;
    memcpy(s.outer, v->outer, sizeof(s.outer));
    s.input = v->input;
    memcpy(s.from, v->from, sizeof(s.from));
    s.sliced = v->sliced;
    s.row = v->axes[v->dims - 2];
    s.col = v->axes[v->dims - 1];
    return s;
}

bool gemm_reads_in_pieces(const struct graph *g, const struct node *operand)
{
    struct view v;

    return operand->t.dims == 3 && graph_view_batch(g, operand, &v);
}

static bool find_product(struct gemm *q, struct match *out)
{
    for (int i = 0; i < q->g->count; i++) {
        if (!gemm_is_product(&q->g->nodes[i]))
            continue;
        if (q->product)
            return match_no(out, q->a, "more than one matrix product");
        q->product = &q->g->nodes[i];
    }
    return q->product || match_no(out, q->a, "no matrix product");
}

/* Is it pointwise, of one tensor and numbers? */
static bool of_one_value(const struct node *n)
{
    struct arena *scratch = arena_new();
    bool knows = expr_knows(n, scratch);

    for (size_t i = 1; i < json_array_size(n->args); i++)
        knows = knows && !json_object_get(json_array_get(n->args, i), "node");
    arena_free(scratch);
    return knows;
}

/* An operand's layout, and the function of its elements; NULL: none. */
static bool operand(struct gemm *q, const struct node *n, struct view *v, const char **body,
                    const char **why)
{
    struct expr e = {.g = q->g, .a = q->a, .see_turned = true};

    if (!n || graph_view(q->g, n, v) ||
        (gemm_reads_in_pieces(q->g, n) && graph_view_batch(q->g, n, v)))
        return n != NULL;
    if (!graph_view_changed(q->g, n, of_one_value, v) ||
        strcmp(q->g->in[v->input].dtype, "f32") != 0 || strcmp(n->t.dtype, "f32") != 0)
        return false; /* narrower ones by a kernel before it */
    for (int i = 0; i < q->g->count; i++)
        if (strcmp(q->g->nodes[i].op, "input") == 0 && q->g->nodes[i].index == v->input)
            e.leaf[i] = "x";
    return expr_body(&e, n, body, why);
}

static bool operands(struct gemm *q, struct match *out)
{
    const struct node *p = q->product;
    struct view a, b, c = view_whole(&q->g->out[0]);
    struct axis swap;

    q->added = graph_op_is(p, "aten.addmm") || graph_op_is(p, "aten.baddbmm");
    if (!operand(q, graph_arg(q->g, p, q->added), &a, &q->a_body, &out->why_not) ||
        !operand(q, graph_arg(q->g, p, (size_t)q->added + 1), &b, &q->b_body, &out->why_not))
        return match_no(out, q->a, "an operand of the product is computed or sliced");
    if (a.dims != p->t.dims || b.dims != p->t.dims || p->t.dims < 2)
        return match_no(out, q->a, "the product's operands have %d and %d dimensions", a.dims,
                        b.dims);
    if (q->g->out_count != 1 || !view_reshape(&c, &p->t))
        return match_no(out, q->a, "the output is not the product's shape");
    q->a_in = a.input;
    q->b_in = b.input;
    q->A = side_of(&a);
    q->B = side_of(&b);
    q->C = side_of(&c);
    swap = q->B.row; /* B comes as (k, n) */
    q->B.row = q->B.col;
    q->B.col = swap;
    return true;
}

static bool dtypes_fit(struct gemm *q, struct match *out)
{
    const char *types[] = {q->g->in[q->a_in].dtype, q->g->in[q->b_in].dtype, q->g->out[0].dtype};

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (!expr_value_type(types[i]) || strcmp(expr_value_type(types[i]), "float") != 0)
            return match_no(out, q->a, "a product of %s", types[i]);
    return true;
}

/* ---- epilogue ----------------------------------------------------------------- */

/* An input that meets the product at a node of shape `at`. */
static bool leaf_add(struct gemm *q, const struct node *n, const struct tensor *at,
                     struct match *out)
{
    struct view v;

    if (!graph_view(q->g, n, &v))
        return match_no(out, q->a, "%s beside the product", n->op);
    if (q->leaf_count == GEMM_LEAVES)
        return match_no(out, q->a, "more than %d tensors beside the product", GEMM_LEAVES);
    if (!expr_value_type(n->t.dtype) || !view_expand(&v, at) || !view_reshape(&v, &q->product->t))
        return match_no(out, q->a, "'%s' does not broadcast to the product",
                        q->g->in[v.input].name);
    q->leaves[q->leaf_count++] = (struct leaf){
        n, v.input, names_add_tensor(&q->names, q->g->in[v.input].name, q->a), side_of(&v)};
    return true;
}

static bool leaf_beside(void *owner, const struct node *n, const struct tensor *at,
                        struct match *out)
{
    return leaf_add(owner, n, at, out);
}

static double scale_of(const struct node *n, const char *keyword)
{
    double v = 1;

    graph_number(json_object_get(n->kwargs, keyword), &v);
    return v;
}

/* "acc + bias", with addmm's alpha and beta where they are not 1. */
static const char *sum_text(struct gemm *q)
{
    double alpha = scale_of(q->product, "alpha"), beta = scale_of(q->product, "beta");
    const char *left = "acc", *right = q->leaves[0].name;

    if (alpha < 1 || alpha > 1)
        left = arena_printf(q->a, "%s * acc", expr_literal(alpha, "float", q->a));
    if (beta < 1 || beta > 1)
        right = arena_printf(q->a, "%s * %s", expr_literal(beta, "float", q->a), right);
    return arena_printf(q->a, "%s + %s", left, right);
}

/* The epilogue's statements, from those that follow the sum with what is added to it. */
static const char *finish_body(struct gemm *q, const char *body)
{
    if (q->added && strcmp(body, "return sum;") == 0)
        return arena_printf(q->a, "return %s;", sum_text(q));
    if (q->added)
        return arena_printf(q->a, "float const sum = %s;\n%s", sum_text(q), body);
    return body;
}

static bool fill_epilogue(struct gemm *q, struct scope *s, struct match *out)
{
    struct expr e = {.g = q->g, .a = q->a, .row = "m", .col = "n", .see_through = true};
    const struct node *root = graph_node(q->g, q->g->result[0]);
    struct buf params = buf_init(2048), finish = buf_init(2048);
    const char *body, *quick;

    buf_puts(&params, "float acc");
    buf_puts(&finish, "");
    for (int i = 0; i < q->leaf_count; i++) {
        const char *dtype = q->leaves[i].node->t.dtype, *value = expr_value_type(dtype);
        bool same = strcmp(value, expr_memory_type(dtype)) == 0;
        const char *open = same ? "" : arena_printf(q->a, "%s(", value), *close = same ? "" : ")";
        const char *X = match_capital(q->leaves[i].name, q->a);

        if (!q->added || i > 0)
            e.leaf[q->leaves[i].node - q->g->nodes] = q->leaves[i].name;
        buf_printf(&params, ", %s %s", value, q->leaves[i].name);
        buf_printf(&finish, ", %sm%s(m, n)%s", open, X, close);
    }
    e.leaf[q->product - q->g->nodes] = q->added ? "sum" : "acc";
    if (!expr_body(&e, root, &body, &out->why_not) ||
        (e.fast = true, !expr_body(&e, root, &quick, &out->why_not))) {
        buf_release(&params);
        buf_release(&finish);
        return false;
    }
    if (e.uses_place) {
        buf_puts(&params, ", int m, int n");
        buf_puts(&finish, ", m, n");
    }
    if (root->op && graph_arg(q->g, root, 0) == q->product && !graph_arg_json(root, 1, "diagonal"))
        scope_fact(s, graph_op_is(root, "aten.tril")   ? "lower"
                      : graph_op_is(root, "aten.triu") ? "upper"
                                                       : "whole");
    body = finish_body(q, body);
    quick = finish_body(q, quick);
    if (strcmp(body, quick) != 0)
        scope_fact(s, "fast");
    expr_helpers(quick, s, q->a);
    scope_set(s, "finish_quick", "%s", quick);
    if (strcmp(body, "return acc;") != 0)
        scope_fact(s, "epilogue");
    scope_set(s, "finish_body", "%s", body);
    scope_set(s, "finish_params", "%s", buf_text(&params).data);
    scope_set(s, "finish", "%s", buf_text(&finish).data);
    buf_release(&params);
    buf_release(&finish);
    return true;
}

/* ---- sizes and strides ---------------------------------------------------------- */

/* What goes into the kernel's signature and the launch, built side by side. */
struct signature {
    struct buf params, args;
};

/* The stride of one mode: "_1{}", "_0{}" or a kernel parameter, which is added. */
static const char *mode_stride(struct gemm *q, struct signature *sig, const struct axis *x,
                               const char *tensor, const char *mode, bool unit)
{
    const char *name;

    if (x->stride == 0 || x->first == x->last)
        return "_0{}";
    if (unit && x->stride == 1)
        return "_1{}";
    name = arena_printf(q->a, "%s_%s", match_lower(tensor, q->a), mode);
    buf_printf(&sig->params, ", %s %s", q->index, name);
    buf_printf(&sig->args, ", (%s)%s", q->index, match_axis_stride(tensor, x, q->a));
    return name;
}

static const char *piece_size(struct gemm *q, const char *tensor, const struct axis *x)
{
    return x->first == x->last ? arena_printf(q->a, "%lld", (long long)x->size)
                               : match_axis_size(tensor, x, q->a);
}

/* A batch of dimensions that do not merge: l is taken apart, from the innermost one outwards. */
static const char *batch_pieces(struct gemm *q, struct signature *sig, const struct side *x,
                                const char *tensor)
{
    const char *text = "", *rest = "l", *t = match_lower(tensor, q->a);

    for (int i = x->outers; i-- > 0;) {
        const struct axis *o = &x->outer[i];
        const char *stride = mode_stride(q, sig, o, tensor, arena_printf(q->a, "l%d", i), false);
        const char *count = arena_printf(q->a, "%s_count%d", t, i);
        const char *at = i > 0 ? arena_printf(q->a, "%s %% %s", rest, count) : rest;

        if (stride[0] != '_')
            text = arena_printf(q->a, "%s + %s * int64_t(%s)", text, at, stride);
        if (i > 0) {
            buf_printf(&sig->params, ", int %s", count);
            buf_printf(&sig->args, ", (int)(%s)", piece_size(q, tensor, o));
            rest = arena_printf(q->a, "%s / %s", rest, count);
        }
    }
    return text;
}

static const char *batch_offset(struct gemm *q, struct signature *sig, const struct side *x,
                                const char *tensor)
{
    const char *stride;

    if (x->outers > 0)
        return batch_pieces(q, sig, x, tensor);
    stride = mode_stride(q, sig, &x->l, tensor, "l", false);
    return stride[0] == '_' ? "" : arena_printf(q->a, " + l * int64_t(%s)", stride);
}

static void add_check(struct gemm *q, struct scope *s, const char *list, const char *condition,
                      const char *text)
{
    struct scope *item = scope_item(s, list);

    (void)q;
    scope_set(item, "condition", "%s", condition);
    scope_set(item, "text", "%s", text);
}

/* The contiguous mode must stay the one that the kernel was written for. */
static void check_unit(struct gemm *q, struct scope *s, const char *tensor, const struct axis *x)
{
    if (x->first == x->last)
        return;
    add_check(q, s, "check", arena_printf(q->a, "%s->strides[%d] == 1", tensor, x->last - 1),
              arena_printf(q->a, "dimension %d of %s must be contiguous", x->last - 1, tensor));
}

/* May the operand be read in vectors of four along `fast`? Then the plan checks it again. */
static bool vectors(struct gemm *q, struct scope *s, const char *tensor, const char *size,
                    const struct side *x, const struct axis *fast)
{
    const struct axis *others[MAX_DIMS + 1] = {fast == &x->col ? &x->row : &x->col, &x->l};
    size_t count = x->outers > 0 ? 1 : 2;
    const char *offset = match_offset(tensor, x->from, q->a);
    int64_t begin = 0;

    for (int i = 0; i < x->outers; i++)
        others[count++] = &x->outer[i];
    if (fast->size % 4 != 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (others[i]->first != others[i]->last && others[i]->stride % 4 != 0)
            return false;
    for (int d = 0; d < q->g->in[x->input].dims; d++)
        begin += x->from[d] * q->g->in[x->input].strides[d];
    if (begin % 4 != 0)
        return false;
    if (*offset)
        add_check(q, s, "vector_check", arena_printf(q->a, "(%s) %% 4 == 0", offset),
                  arena_printf(q->a, "what is read of %s must start on 16 bytes", tensor));
    add_check(q, s, "vector_check",
              arena_printf(q->a, "cutegen_aligned(%s, 16) && %s %% 4 == 0", tensor, size),
              arena_printf(q->a, "%s must be read in vectors of 4 along %s", tensor, size));
    for (size_t i = 0; i < count; i++)
        if (others[i]->first != others[i]->last)
            add_check(
                q, s, "vector_check",
                arena_printf(q->a, "%s %% 4 == 0", match_axis_stride(tensor, others[i], q->a)),
                arena_printf(q->a, "rows of %s must start on 16 bytes", tensor));
    return true;
}

/* Does only the form for the FMA units read it where it is? */
static bool in_pieces(const struct side *x)
{
    return x->outers > 0 || x->sliced || x->l.split || x->row.split || x->col.split;
}

/* The sizes of its pieces are the task's, and make up the batch. */
static void check_pieces(struct gemm *q, struct scope *s, const struct side *x, const char *tensor)
{
    struct axis axes[MAX_DIMS + 3] = {x->l, x->row, x->col};
    const char *product = "";

    memcpy(axes + 3, x->outer, sizeof(x->outer));
    axes[0].split = axes[0].split || x->sliced;
    match_split_checks(s, tensor, &q->g->in[x->input], axes, 3 + x->outers, q->a);
    for (int i = 0; i < x->outers; i++)
        product = arena_printf(q->a, "%s%s%s", product, i > 0 ? " * " : "",
                               piece_size(q, tensor, &x->outer[i]));
    if (x->outers > 0)
        add_check(q, s, "check", arena_printf(q->a, "L == %s", product),
                  arena_printf(q->a, "%s must have as many matrices as C", tensor));
}

/* Would a copy be read faster? */
static bool copy_is_better(const struct gemm *q, const struct scope *s, const struct side *x,
                           const char *t, bool words)
{
    const struct axis *fast = x->col.stride == 1 ? &x->col : &x->row;

    return in_pieces(x) &&
           (fast->stride != 1 ||
            (words && fast->size % 4 == 0 && !scope_has(s, arena_printf(q->a, "%s_vectors", t))));
}

/* Which way an operand lies, as facts and slots. `rows` is "m" or "n". */
static void fill_operand(struct gemm *q, struct scope *s, struct signature *sig,
                         const struct side *x, const char *tensor, const char *rows, bool words)
{
    const char *t = match_lower(tensor, q->a), *size = strcmp(rows, "m") == 0 ? "M" : "N";
    bool k_major = x->col.stride == 1 || x->row.stride != 1;
    bool unit = k_major ? x->col.stride == 1 : x->row.stride == 1;

    scope_set(s, arena_printf(q->a, "%s_%s", t, rows), "%s",
              mode_stride(q, sig, &x->row, tensor, rows, !k_major));
    scope_set(s, arena_printf(q->a, "%s_k", t), "%s",
              mode_stride(q, sig, &x->col, tensor, "k", k_major));
    scope_set(s, arena_printf(q->a, "%s_batch", t), "%s", batch_offset(q, sig, x, tensor));
    scope_fact(s, arena_printf(q->a, "%s_%s_major", t, k_major ? "k" : rows));
    if (unit)
        check_unit(q, s, tensor, k_major ? &x->col : &x->row);
    if (unit && words &&
        vectors(q, s, tensor, k_major ? "K" : size, x, k_major ? &x->col : &x->row)) {
        scope_fact(s, arena_printf(q->a, "%s_vectors", t));
        if (!k_major)
            scope_fact(s, arena_printf(q->a, "%s_fragments", t));
    }
}

static void fill_leaf(struct gemm *q, struct scope *s, struct signature *strides,
                      struct signature *pointers, const struct leaf *leaf)
{
    struct scope *item = scope_item(s, "leaf");
    const char *type = expr_memory_type(leaf->node->t.dtype);

    scope_set(item, "x", "%s", leaf->name);
    scope_set(item, "X", "%s", match_capital(leaf->name, q->a));
    scope_set(item, "k", "%d", leaf->input);
    scope_set(item, "ndim", "%d", q->g->in[leaf->input].dims);
    scope_set(item, "m", "%s", mode_stride(q, strides, &leaf->side.row, leaf->name, "m", false));
    scope_set(item, "n", "%s", mode_stride(q, strides, &leaf->side.col, leaf->name, "n", true));
    if (leaf->side.col.stride == 1)
        check_unit(q, s, leaf->name, &leaf->side.col);
    scope_set(item, "batch", "%s", batch_offset(q, strides, &leaf->side, leaf->name));
    buf_printf(&pointers->params, "%s const *%s, ", type, leaf->name);
    buf_printf(&pointers->args, "CUTEGEN_DATA(%s const, %s), ", type, leaf->name);
}

static const char *operand_pointer(struct gemm *q, struct scope *s, const struct side *x,
                                   const char *tensor)
{
    const char *type = scope_get(s, arena_printf(q->a, "%s_type", match_lower(tensor, q->a)));

    return match_pointer(arena_printf(q->a, "%s const", type), tensor, x->from, q->a);
}

static void fill_type(struct gemm *q, struct scope *s, const char *t, const char *dtype, bool load)
{
    const char *memory = expr_memory_type(dtype);
    bool same = strcmp(memory, "float") == 0;

    scope_set(s, arena_printf(q->a, "%s_type", t), "%s", memory);
    scope_set(s, arena_printf(q->a, "%s_open", t), "%s%s", same ? "" : (load ? "float" : memory),
              same ? "" : "(");
    scope_set(s, arena_printf(q->a, "%s_close", t), "%s", same ? "" : ")");
}

/* Elements of an operand go through a function of the kernel's own. */
static void fill_change(struct gemm *q, struct scope *s, const char *t, const char *body)
{
    const char *opened = scope_get(s, arena_printf(q->a, "%s_open", t)),
               *closed = scope_get(s, arena_printf(q->a, "%s_close", t));

    if (body) {
        opened = arena_printf(q->a, "%s_%s(%s", scope_get(s, "kernel"), t, opened);
        closed = arena_printf(q->a, "%s)", closed);
        scope_fact(s, arena_printf(q->a, "%s_changes", t));
        scope_set(s, arena_printf(q->a, "%s_body", t), "%s", body);
    }
    scope_set(s, arena_printf(q->a, "%s_take", t), "%s", opened);
    scope_set(s, arena_printf(q->a, "%s_taken", t), "%s", closed);
}

/* Tiles of 128 compute little more than tiles of 64 would. */
static bool fills_wide_tiles(const struct gemm *q)
{
    int64_t m = q->C.row.size, n = q->C.col.size;
    int64_t wide = (m + 127) / 128 * ((n + 127) / 128) * 4, usual = (m + 63) / 64 * ((n + 63) / 64);

    return wide * 2 <= usual * 3;
}

static void fill_sizes(struct gemm *q, struct scope *s)
{
    const struct axis *k = q->A.col.first != q->A.col.last ? &q->A.col : &q->B.col;
    const char *of = k == &q->A.col ? "A" : "B";
    int64_t tiles = (q->C.row.size + 63) / 64 * ((q->C.col.size + 63) / 64) * q->C.l.size;

    scope_set(s, "M", "%s", match_size_text("C", q->C.row.first, q->C.row.last, q->a));
    scope_set(s, "N", "%s", match_size_text("C", q->C.col.first, q->C.col.last, q->a));
    scope_set(s, "K", "%s", piece_size(q, of, k));
    scope_set(s, "L", "%s", match_size_text("C", q->C.l.first, q->C.l.last, q->a));
    scope_set(s, "grid_z", "%s", q->C.l.size > 1 ? "L" : "1");
    if (q->C.l.size > 1)
        scope_fact(s, "batched");
    if (q->C.row.size * q->C.col.size * q->C.l.size > 128 * 128 && fills_wide_tiles(q))
        scope_fact(s, "large");
    if (q->A.col.size >= DEEP_K && tiles * 2 <= q->g->sm_count &&
        q->C.row.size * q->C.col.size < INT32_MAX)
        scope_fact(s, "deep");
    /* For small results cuBLAS splits K, which rounds less than one long sum. */
    if (q->A.col.size >= LONG_SUM && strcmp(q->g->in[q->a_in].dtype, "f32") == 0 &&
        (tiles <= 2 * q->g->sm_count || q->C.row.size < 64 || q->C.col.size < 64))
        scope_fact(s, "long_sum");
}

static void fill_names(struct gemm *q, struct scope *s)
{
    const struct graph *g = q->g;

    scope_set(s, "kernel", "%s", match_kernel_name(g, q->a));
    scope_set(s, "ops", "%s", graph_ops(g, q->a));
    match_scalars(g, s);
    scope_set(s, "a_index", "%d", q->a_in);
    scope_set(s, "b_index", "%d", q->b_in);
    scope_set(s, "a_name", "%s", g->in[q->a_in].name);
    scope_set(s, "b_name", "%s", g->in[q->b_in].name);
    scope_set(s, "a_ndim", "%d", g->in[q->a_in].dims);
    scope_set(s, "b_ndim", "%d", g->in[q->b_in].dims);
    scope_set(s, "c_ndim", "%d", g->out[0].dims);
    fill_type(q, s, "a", g->in[q->a_in].dtype, true);
    fill_type(q, s, "b", g->in[q->b_in].dtype, true);
    fill_change(q, s, "a", q->a_body);
    fill_change(q, s, "b", q->b_body);
    fill_type(q, s, "c", g->out[0].dtype, false);
}

/* The instruction of sm_80's tensor cores that takes the operands as they are. */
static void fill_tensor(struct gemm *q, struct scope *s)
{
    const char *a = q->g->in[q->a_in].dtype, *b = q->g->in[q->b_in].dtype;
    bool half = strcmp(a, "f16") == 0, bfloat = strcmp(a, "bf16") == 0;
    bool tf32 = strcmp(a, "f32") == 0 && q->g->tf32;

    if (strcmp(a, b) == 0 && (half || bfloat || tf32))
        scope_fact(s, "narrow");
    scope_set(s, "mma", "SM80_16x8x%sF32_TN",
              tf32     ? "8_F32TF32TF32"
              : bfloat ? "16_F32BF16BF16"
                       : "16_F32F16F16");
}

static bool fill(struct gemm *q, struct match *out)
{
    const struct graph *g = q->g;
    struct scope *s = out->scope = scope_new(q->a, NULL);
    struct signature strides = {buf_init(4096), buf_init(4096)},
                     pointers = {buf_init(4096), buf_init(4096)};
    bool words = expr_bytes(g->in[q->a_in].dtype) == 4 && expr_bytes(g->in[q->b_in].dtype) == 4;
    bool ok;

    fill_names(q, s);
    if (words)
        scope_fact(s, "words");
    fill_tensor(q, s);
    buf_puts(&strides.params, ", int M, int N, int K");
    buf_puts(&strides.args, ", (int)M, (int)N, (int)K");
    fill_operand(q, s, &strides, &q->A, "A", "m", words);
    fill_operand(q, s, &strides, &q->B, "B", "n", words);
    check_pieces(q, s, &q->A, "A");
    check_pieces(q, s, &q->B, "B");
    scope_set(s, "c_m", "%s", mode_stride(q, &strides, &q->C.row, "C", "m", false));
    scope_set(s, "c_n", "%s", mode_stride(q, &strides, &q->C.col, "C", "n", true));
    scope_set(s, "c_batch", "%s", batch_offset(q, &strides, &q->C, "C"));
    if (q->C.col.stride == 1)
        check_unit(q, s, "C", &q->C.col);
    buf_printf(&pointers.params, "%s const *A, %s const *B, ", scope_get(s, "a_type"),
               scope_get(s, "b_type"));
    buf_printf(&pointers.args, "%s, %s, ", operand_pointer(q, s, &q->A, "A"),
               operand_pointer(q, s, &q->B, "B"));
    for (int i = 0; i < q->leaf_count; i++)
        fill_leaf(q, s, &strides, &pointers, &q->leaves[i]);
    scope_set(s, "params", "%s%s *C%s", buf_text(&pointers.params).data, scope_get(s, "c_type"),
              buf_text(&strides.params).data);
    scope_set(s, "args", "%sCUTEGEN_DATA(%s, C)%s", buf_text(&pointers.args).data,
              scope_get(s, "c_type"), buf_text(&strides.args).data);
    fill_sizes(q, s);
    ok = fill_epilogue(q, s, out);
    if (ok && (in_pieces(&q->A) || in_pieces(&q->B)))
        ok =
            !(gemm_suits_thin(q) || gemm_suits_sm90(q) || copy_is_better(q, s, &q->A, "a", words) ||
              copy_is_better(q, s, &q->B, "b", words)) ||
            match_no(out, q->a, "an operand is better copied");
    else if (ok && gemm_suits_thin(q))
        gemm_fill_thin(q, out);
    else if (ok && gemm_suits_sm90(q) && (q->a_body || q->b_body))
        ok = match_no(out, q->a, "an operand is computed"); /* by a kernel before it, here */
    else if (ok && gemm_suits_sm90(q))
        gemm_fill_sm90(q, out);
    buf_release(&strides.params);
    buf_release(&strides.args);
    buf_release(&pointers.params);
    buf_release(&pointers.args);
    return ok;
}

bool match_gemm(const struct graph *g, struct arena *a, struct match *out)
{
    static const char *const taken[] = {"A", "B", "C", "M", "N",   "K",
                                        "L", "a", "b", "c", "sum", "acc"};
    struct gemm *q = arena_alloc(a, sizeof(*q));
    struct epilogue after;

    q->g = g;
    q->a = a;
    for (size_t i = 0; i < ARRAY_LEN(taken); i++)
        q->names.used[q->names.count++] = taken[i];
    if (!find_product(q, out) || !operands(q, out) || !dtypes_fit(q, out))
        return false;
    if (tensor_numel(&g->out[0]) == 0 || q->A.col.size == 0)
        return match_no(out, a, "an empty product");
    if (q->added && !leaf_add(q, graph_arg(g, q->product, 0), &q->product->t, out))
        return false;
    after = (struct epilogue){g,           a, q->product, "product", q->seen, expr_knows_placed,
                              leaf_beside, q, NULL};
    if (!match_epilogue(&after, graph_node(g, g->result[0]), out))
        return false;
    q->index = "int";
    for (int i = 0; i < g->in_count; i++)
        if (tensor_numel(&g->in[i]) > INT32_MAX)
            q->index = "int64_t";
    if (tensor_numel(&g->out[0]) > INT32_MAX)
        q->index = "int64_t";
    return fill(q, out);
}
