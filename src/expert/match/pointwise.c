/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pointwise.c - graphs of pointwise operators: one fused kernel.
 *
 * Leaves are inputs, possibly seen through views. Targets are the outputs, or
 * the parts side by side of which an output is made; all have one shape. Each
 * gets a device function of the leaves; the compiler shares what they have in
 * common. index_space.h brings the tensors to as few dimensions as
 * they allow: one, without gaps, is the recipe's `flat` form.
 */
#include "expert/match/pointwise.h"
#include "base/buf.h"

#include <stdint.h>
#include <string.h>

enum { LAUNCH_ARGUMENTS = 32 }; /* CUTEGEN_MAX_ARGS of cutegen/kernel.h */

static bool collect(struct fused *f, const struct node *n, struct match *out);

/* diag(v) @ B and A @ diag(v) scale rows or columns: no sum is left. */
static bool collect_scaling(struct fused *f, const struct node *n, struct match *out)
{
    for (size_t side = 0; side < 2; side++) {
        const struct node *d = graph_arg(f->g, n, side), *other = graph_arg(f->g, n, 1 - side), *v;
        struct pointwise_leaf *leaf = &f->leaves[f->leaf_count];

        if (!d || !other || (!graph_op_is(d, "aten.diag") && !graph_op_is(d, "aten.diag_embed")))
            continue;
        v = graph_arg(f->g, d, 0);
        if (!v || v->t.dims != 1 || !expr_memory_type(d->t.dtype) || f->leaf_count == MAX_TENSORS ||
            graph_arg_json(d, 1, NULL) || !graph_view(f->g, v, &leaf->view))
            continue;
        leaf->node = d;
        leaf->view.dims = 2;
        leaf->view.axes[side] = leaf->view.axes[0];
        leaf->view.axes[1 - side] = (struct axis){.size = 1};
        f->leaf_count++;
        f->special[n - f->g->nodes] = "$0 * $1";
        return collect(f, other, out);
    }
    return match_no(out, f->a, "a matrix product");
}

/* A value per channel, dimension 1 of what n gives. */
static bool channel_leaf(struct fused *f, const struct node *n, size_t arg, struct match *out)
{
    const struct node *v = graph_arg(f->g, n, arg);
    struct pointwise_leaf *leaf = &f->leaves[f->leaf_count];

    if (!v)
        return true;
    if (f->leaf_count == MAX_TENSORS || !expr_memory_type(v->t.dtype) || v->t.dims != 1 ||
        f->seen[v - f->g->nodes] || !graph_view(f->g, v, &leaf->view))
        return match_no(out, f->a, "%s with a value per channel that is not an input", n->op);
    f->seen[v - f->g->nodes] = true;
    leaf->node = v;
    leaf->view.axes[1] = leaf->view.axes[0];
    leaf->view.dims = n->t.dims;
    for (int d = 0; d < n->t.dims; d++)
        if (d != 1)
            leaf->view.axes[d] = (struct axis){.size = 1};
    f->leaf_count++;
    return true;
}

/* A batch norm with the statistics it has is pointwise. */
static bool collect_norm(struct fused *f, const struct node *n, struct match *out)
{
    const char *form = match_fixed_norm(f->g, n, f->a);

    if (!form)
        return match_no(out, f->a, "%s that takes its own statistics", n->op);
    for (size_t arg = 1; arg < 5; arg++)
        if (!channel_leaf(f, n, arg, out))
            return false;
    f->special[n - f->g->nodes] = form;
    return collect(f, graph_arg(f->g, n, 0), out);
}

/* A leaf that reads the same elements; NULL: there is none yet. */
static const struct node *same_leaf(const struct fused *f, const struct node *n,
                                    const struct view *v)
{
    for (int i = 0; i < f->leaf_count; i++) {
        const struct pointwise_leaf *leaf = &f->leaves[i];
        const struct view *w = &leaf->view;
        bool same = w->input == v->input && w->dims == v->dims &&
                    strcmp(leaf->node->t.dtype, n->t.dtype) == 0 &&
                    memcmp(w->from, v->from, sizeof(v->from)) == 0;

        for (int d = 0; same && d < v->dims; d++)
            same = w->axes[d].size == v->axes[d].size && w->axes[d].stride == v->axes[d].stride &&
                   w->axes[d].first == v->axes[d].first && w->axes[d].last == v->axes[d].last &&
                   w->axes[d].times == v->axes[d].times;
        if (same)
            return leaf->node;
    }
    return NULL;
}

/* Finds the leaves under n; false: something between is not pointwise. */
static bool collect(struct fused *f, const struct node *n, struct match *out)
{
    size_t at = (size_t)(n - f->g->nodes), i;
    const json_t *arg;
    struct view view;

    if (f->seen[at])
        return true;
    f->seen[at] = true;
    if (graph_view_part(f->g, n, &view)) {
        f->like[at] = same_leaf(f, n, &view);
        if (f->like[at])
            return true;
        if (f->leaf_count == MAX_TENSORS)
            return match_no(out, f->a, "it reads more than %d tensors", MAX_TENSORS);
        if (!expr_memory_type(n->t.dtype))
            return match_no(out, f->a, "the input '%s' is %s", f->g->in[view.input].name,
                            n->t.dtype);
        f->leaves[f->leaf_count++] = (struct pointwise_leaf){.node = n, .view = view};
        return true;
    }
    if (n->value)
        return true; /* a number, written as a literal */
    if (graph_op_is(n, "aten.mm"))
        return collect_scaling(f, n, out);
    if (strstr(n->op, "batch_norm"))
        return collect_norm(f, n, out);
    if (!expr_knows(n, f->a))
        return match_no(out, f->a, "%s is not a pointwise operator it knows with these arguments",
                        n->op);
    json_array_foreach(n->args, i, arg)
    {
        const struct node *used = graph_arg(f->g, n, i);

        if (used && !collect(f, used, out))
            return false;
    }
    return true;
}

/* cat and stack: each of what they join is a part of the output. */
static bool add_parts(struct fused *f, int k, const struct node *n, struct match *out)
{
    const struct tensor *y = &f->g->out[k];
    const json_t *list = json_object_get(json_array_get(n->args, 0), "list"), *arg;
    bool stack = graph_op_is(n, "aten.stack"), computed = false;
    int64_t dim = 0, from = 0;
    size_t i;

    graph_arg_int(n, 1, "dim", &dim);
    dim += dim < 0 ? y->dims : 0;
    if (dim < 0 || dim >= y->dims)
        return match_no(out, f->a, "%s along dimension %lld", n->op, (long long)dim);
    json_array_foreach(list, i, arg)
    {
        const struct node *x =
            json_object_get(arg, "node") ? graph_node(f->g, graph_id(arg)) : NULL;
        struct target *to = &f->targets[f->target_count];

        if (!x || x->t.dims != y->dims - stack || f->target_count == MAX_TENSORS ||
            strcmp(x->t.dtype, y->dtype) != 0)
            return match_no(out, f->a, "%s of more, or of others, than it can write", n->op);
        computed = computed || strcmp(x->op, "input") != 0;
        *to = (struct target){.node = x, .view = view_whole(y)};
        to->view.input = k;
        if (!view_slice(&to->view, (int)dim, from, 1, stack ? 1 : x->t.shape[dim]))
            return match_no(out, f->a, "%s into a tensor with a step of 0", n->op);
        from += stack ? 1 : x->t.shape[dim];
        if (stack)
            view_drop(&to->view, (int)dim);
        f->target_count++;
    }
    return computed ? true : match_no(out, f->a, "inputs side by side, nothing computed");
}

static bool collect_targets(struct fused *f, struct match *out)
{
    for (int k = 0; k < f->g->out_count; k++) {
        const struct node *n = graph_node(f->g, f->g->result[k]);
        struct target *to = &f->targets[f->target_count];

        if (graph_op_is(n, "aten.cat") || graph_op_is(n, "aten.stack")) {
            if (!add_parts(f, k, n, out))
                return false;
            continue;
        }
        if (f->target_count == MAX_TENSORS)
            return match_no(out, f->a, "it writes more than %d tensors", MAX_TENSORS);
        *to = (struct target){.node = n, .view = view_whole(&f->g->out[k])};
        to->view.input = k;
        f->target_count++;
    }
    for (int i = 0; i < f->target_count; i++)
        if (!collect(f, f->targets[i].node, out))
            return false;
    return true;
}

/* By input, so that kernel parameters come in the order of the call. */
static void sort_leaves(struct fused *f)
{
    for (int i = 1; i < f->leaf_count; i++)
        for (int k = i; k > 0 && f->leaves[k].view.input < f->leaves[k - 1].view.input; k--) {
            struct pointwise_leaf swap = f->leaves[k];

            f->leaves[k] = f->leaves[k - 1];
            f->leaves[k - 1] = swap;
        }
}

static bool bring_together(struct fused *f, struct match *out)
{
    const struct graph *g = f->g;

    modes_start(&f->modes, &f->targets[0].view);
    for (int k = 0; k < f->target_count; k++) {
        const struct view *v = &f->targets[k].view;
        bool same = v->dims == f->modes.count;

        for (int d = 0; same && d < v->dims; d++)
            same = v->axes[d].size == f->targets[0].view.axes[d].size;
        if (!same || !expr_memory_type(g->out[v->input].dtype))
            return match_no(out, f->a, "its outputs differ in shape, or one is %s",
                            g->out[v->input].dtype);
        if (k > 0 && !modes_add(&f->modes, v))
            return match_no(out, f->a, "its outputs differ in shape");
    }
    for (int i = 0; i < f->leaf_count; i++)
        if (!modes_add(&f->modes, &f->leaves[i].view))
            return match_no(out, f->a, "input '%s' does not broadcast to the output",
                            g->in[f->leaves[i].view.input].name);
    modes_merge(&f->modes);
    return true;
}

static void name_all(struct fused *f)
{
    static const char *const taken[] = {
        "lane", "line",  "i0",   "k0",   "k",      "rest",   "tiles", "work",  "turned",
        "VEC",  "first", "u",    "j",    "number", "band",   "wide",  "place", "two",
        "t",    "n0",    "n1",   "n2",   "n3",     "n4",     "n5",    "n6",    "n7",
        "EACH", "TILE",  "ROWS", "BAND", "VECS",   "THREADS"};
    const struct graph *g = f->g;

    for (size_t i = 0; i < ARRAY_LEN(taken); i++)
        f->names.used[f->names.count++] = taken[i];
    for (int i = 0; i < g->in_count; i++)
        f->in_name[i] = names_add(&f->names, g->in[i].name, f->a);
    for (int k = 0; k < g->out_count; k++)
        f->out_name[k] =
            names_add(&f->names, g->out_count == 1 ? "y" : arena_printf(f->a, "y%d", k), f->a);
    for (int k = 0; k < f->target_count; k++) {
        struct target *to = &f->targets[k];

        to->name = f->out_name[to->view.input];
        if (f->target_count > f->g->out_count)
            to->name = names_add(&f->names, arena_printf(f->a, "%s_part%d", to->name, k), f->a);
    }
    for (int i = 0; i < f->leaf_count; i++) {
        struct pointwise_leaf *leaf = &f->leaves[i];
        bool whole = strcmp(leaf->node->op, "input") == 0;

        leaf->name =
            whole ? f->in_name[leaf->view.input]
                  : names_add(&f->names,
                              arena_printf(f->a, "%s_view", f->in_name[leaf->view.input]), f->a);
    }
}

/* ---- layouts --------------------------------------------------------------- */

static bool is_flat(const struct fused *f)
{
    if (f->modes.count != 1)
        return false;
    for (int t = 0; t < f->modes.tensors; t++)
        if (f->modes.axis[t][0].stride > 1)
            return false;
    for (int k = 0; k < f->target_count; k++)
        if (f->targets[k].view.sliced)
            return false;
    for (int i = 0; i < f->leaf_count; i++)
        if (f->leaves[i].view.sliced)
            return false;
    return true;
}

/* 16-byte accesses need unit strides inside and whole vectors outside. */
static bool is_vectorisable(const struct fused *f, int vec)
{
    bool flat = is_flat(f);

    if (vec < 2 || (!flat && f->modes.size[0] % vec != 0))
        return false;
    for (int k = 0; k < f->target_count; k++)
        if (view_offset(&f->targets[k].view, &f->g->out[f->targets[k].view.input]) % vec != 0)
            return false;
    for (int i = 0; i < f->leaf_count; i++)
        if (view_offset(&f->leaves[i].view, &f->g->in[f->leaves[i].view.input]) % vec != 0 &&
            f->modes.axis[f->target_count + i][0].stride)
            return false;
    for (int t = 0; t < f->modes.tensors; t++)
        for (int m = 0; m < f->modes.count; m++) {
            int64_t stride = f->modes.axis[t][m].stride;

            if (m == 0 ? stride > 1 : f->modes.axis[t][0].stride == 1 && stride % vec != 0)
                return false;
        }
    return true;
}

static int64_t most_elements(const struct fused *f)
{
    int64_t most = 1, n;

    for (int t = 0; t < f->modes.tensors; t++) {
        n = 1;
        for (int m = 0; m < f->modes.count; m++)
            n += (f->modes.size[m] - 1) * f->modes.axis[t][m].stride;
        most = n > most ? n : most;
    }
    return most;
}

/* "_1{}", "_0{}", or the kernel parameter that brings the stride. */
const char *pointwise_stride(const struct fused *f, int t, int mode, const char *name)
{
    int64_t stride = f->modes.axis[t][mode].stride;

    if (stride == 0)
        return "_0{}";
    if (stride == 1 && mode == 0)
        return "_1{}";
    return arena_printf(f->a, "%s_stride%d", name, mode);
}

/* The CuTe shape and strides of tensor t, one element per coordinate. */
static const char *plain_layout(const struct fused *f, int t, const char *name)
{
    struct buf b = buf_init(1024);
    const char *text;

    if (is_flat(f))
        return f->modes.axis[t][0].stride ? "n" : "n, _0{}";
    buf_puts(&b, "shape, make_stride(");
    for (int m = 0; m < f->modes.count; m++)
        buf_printf(&b, "%s%s", m ? ", " : "", pointwise_stride(f, t, m, name));
    buf_puts(&b, ")");
    text = buf_copy(&b, f->a).data;
    buf_release(&b);
    return text;
}

/* The same with mode 0 cut into vectors: (VEC,(rest)). */
static const char *vector_layout(const struct fused *f, int t, const char *name)
{
    bool unit = f->modes.axis[t][0].stride == 1;
    struct buf b = buf_init(1024);
    const char *text;

    if (is_flat(f))
        return unit ? "shape" : "shape, make_stride(_0{}, _0{})";
    buf_printf(&b, "shape, make_stride(%s, make_stride(%s", unit ? "_1{}" : "_0{}",
               unit ? "Int<VEC>{}" : "_0{}");
    for (int m = 1; m < f->modes.count; m++)
        buf_printf(&b, ", %s", pointwise_stride(f, t, m, name));
    buf_puts(&b, "))");
    text = buf_copy(&b, f->a).data;
    buf_release(&b);
    return text;
}

/* Pointers, sizes and strides: what the launch is given. */
static int launch_arguments(const struct fused *f)
{
    int count = f->modes.tensors + (is_flat(f) ? 1 : f->modes.count);

    for (int t = 0; t < f->modes.tensors && !is_flat(f); t++)
        for (int m = 0; m < f->modes.count; m++)
            count += pointwise_stride(f, t, m, "s")[0] != '_';
    return count;
}

/* Adds what tensor t brings to the kernel's parameters and the launch's arguments. */
static void add_strides(const struct fused *f, int t, const char *name, const char *plan_name,
                        const char *index, struct buf *params, struct buf *args)
{
    for (int m = 0; m < f->modes.count; m++) {
        const struct axis *x = &f->modes.axis[t][m];

        if (pointwise_stride(f, t, m, name)[0] == '_')
            continue;
        buf_printf(params, ", %s %s_stride%d", index, name, m);
        buf_printf(args, ", (%s)%s", index, match_axis_stride(plan_name, x, f->a));
    }
}

/* ---- filling the recipe ------------------------------------------------------ */

static void fill_tensor(struct fused *f, struct scope *s, int t, const struct tensor *tensor,
                        const char *name, bool output)
{
    struct scope *item = scope_item(s, output ? "output" : "input");
    const char *memory = expr_memory_type(tensor->dtype), *value = expr_value_type(tensor->dtype);
    bool same = strcmp(memory, value) == 0;
    const char *X = match_capital(name, f->a);

    scope_set(item, "x", "%s", name);
    scope_set(item, "X", "%s", X);
    scope_set(item, "type", "%s", memory);
    scope_set(item, "layout", "%s", plain_layout(f, t, name));
    scope_set(item, "vector_layout", "%s", vector_layout(f, t, name));
    scope_set(item, "copy", "%s", f->modes.axis[t][0].stride ? "Vector{}, " : "");
    scope_set(item, "cast", "%s", same ? "" : memory);
    scope_set(item, "inner_unit", "%s", f->modes.axis[t][0].stride ? "_1{}" : "_0{}");
    if (f->modes.axis[t][0].stride)
        scope_fact(item, "moving");
    pointwise_turn_tensor(f, item, t, name);
}

/* How the function is called on one element: f(gX(i), float(gB(i))), or with prefix '\0' on the
 * pointers themselves: f(x[j], float(b[0])). */
static const char *call_text(struct fused *f, const char *function, char prefix, const char *at)
{
    struct buf b = buf_init(4096);
    const char *text;

    buf_printf(&b, "%s(", function);
    for (int i = 0; i < f->leaf_count; i++) {
        const char *dtype = f->leaves[i].node->t.dtype, *value = expr_value_type(dtype);
        const char *name = f->leaves[i].name, *element;
        bool moves = f->modes.axis[f->target_count + i][0].stride != 0;

        if (prefix == 't')
            element = f->modes.axis[f->target_count + i][0].stride > 1
                          ? arena_printf(f->a, "t%s[lane][k]", match_capital(name, f->a))
                          : arena_printf(f->a, "g%s%s", match_capital(name, f->a), at);
        else if (prefix)
            element = arena_printf(f->a, "%c%s%s", prefix, match_capital(name, f->a), at);
        else
            element = arena_printf(f->a, "%s%s", name, moves ? at : "[0]");
        if (strcmp(value, expr_memory_type(dtype)) != 0)
            element = arena_printf(f->a, "%s(%s)", value, element);
        buf_printf(&b, "%s%s", i ? ", " : "", element);
    }
    buf_puts(&b, ")");
    text = buf_copy(&b, f->a).data;
    buf_release(&b);
    return text;
}

static bool fill_function(struct fused *f, struct scope *s, int k, const char *kernel,
                          struct match *out)
{
    const struct graph *g = f->g;
    struct expr e = {.g = g, .a = f->a};
    const struct target *to = &f->targets[k];
    const char *dtype = g->out[to->view.input].dtype;
    const char *function = arena_printf(f->a, "%s_value", f->target_count == 1 ? kernel : to->name);
    const char *memory = expr_memory_type(dtype);
    bool same = strcmp(memory, expr_value_type(dtype)) == 0;
    struct buf params = buf_init(4096);
    const char *exact, *fast, *Y = match_capital(to->name, f->a);
    struct scope *item = scope_item(s, "function");
    const char *open = same ? "" : arena_printf(f->a, "%s(", memory), *close = same ? "" : ")";

    memcpy(e.special, f->special, sizeof(e.special));
    for (int i = 0; i < f->leaf_count; i++) {
        e.leaf[f->leaves[i].node - g->nodes] = f->leaves[i].name;
        buf_printf(&params, "%s%s %s", i ? ", " : "", expr_value_type(f->leaves[i].node->t.dtype),
                   f->leaves[i].name);
    }
    for (int i = 0; i < g->count; i++)
        if (f->like[i])
            e.leaf[i] = e.leaf[f->like[i] - g->nodes];
    scope_set(item, "function", "%s", function);
    scope_set(item, "value", "%s", expr_value_type(dtype));
    scope_set(item, "function_params", "%s", buf_text(&params).data);
    buf_release(&params);
    if (!expr_body(&e, to->node, &exact, &out->why_not))
        return false;
    e.fast = true;
    if (!expr_body(&e, to->node, &fast, &out->why_not))
        return false;
    if (e.has_fast && strcmp(exact, fast) != 0)
        scope_fact(s, "fast");
    scope_set(item, "exact", "%s", exact);
    scope_set(item, "quick", "%s", fast);
    expr_helpers(fast, s, f->a);
    scope_set(item, "plain_store", "g%s(i) = %s%s%s;", Y, open, call_text(f, function, 'g', "(i)"),
              close);
    scope_set(item, "turn_store", "g%s(i0 + lane, k0 + k) = %s%s%s;", Y, open,
              call_text(f, function, 't', "(i0 + lane, k0 + k)"), close);
    scope_set(item, "vector_store", "r%s(v) = %s%s%s;", Y, open, call_text(f, function, 'r', "(v)"),
              close);
    scope_set(item, "tail_store", "%s[j] = %s%s%s;", to->name, open,
              call_text(f, function, '\0', "[j]"), close);
    return true;
}

/* Kernel parameters and launch arguments: pointers, sizes, strides. */
static void fill_signature(struct fused *f, struct scope *s, const char *index)
{
    const struct graph *g = f->g;
    struct buf params = buf_init(8192), args = buf_init(8192), strides = buf_init(8192),
               sargs = buf_init(8192);

    for (int i = 0; i < f->leaf_count; i++) {
        const struct pointwise_leaf *leaf = &f->leaves[i];
        const char *type = expr_memory_type(leaf->node->t.dtype);

        buf_printf(&params, "%s const *%s, ", type, leaf->name);
        buf_printf(&args, "%s, ",
                   match_pointer(arena_printf(f->a, "%s const", type), f->in_name[leaf->view.input],
                                 leaf->view.from, f->a));
        add_strides(f, f->target_count + i, leaf->name, f->in_name[leaf->view.input], index,
                    &strides, &sargs);
    }
    for (int k = 0; k < f->target_count; k++) {
        const struct target *to = &f->targets[k];
        const char *type = expr_memory_type(g->out[to->view.input].dtype);
        const char *whole = f->out_name[to->view.input];

        buf_printf(&params, "%s *%s, ", type, to->name);
        buf_printf(&args, "%s, ", match_pointer(type, whole, to->view.from, f->a));
        add_strides(f, k, to->name, whole, index, &strides, &sargs);
    }
    if (is_flat(f)) {
        buf_printf(&params, "%s n", index);
        buf_printf(&args, "(%s)n", index);
    }
    for (int m = 0; m < f->modes.count && !is_flat(f); m++) {
        buf_printf(&params, "%s%s n%d", m ? ", " : "", index, m);
        buf_printf(&args, "%s(%s)n%d", m ? ", " : "", index, m);
    }
    scope_set(s, "params", "%s%s", buf_text(&params).data, strides.len ? strides.data : "");
    scope_set(s, "args", "%s%s", buf_text(&args).data, sargs.len ? sargs.data : "");
    buf_release(&params);
    buf_release(&args);
    buf_release(&strides);
    buf_release(&sargs);
}

/* Sizes: n for the flat form, n0, n1, ... else, and how the plan finds them. */
static void fill_sizes(struct fused *f, struct match *out, int vec)
{
    struct scope *s = out->scope;
    struct buf names = buf_init(256), rest = buf_init(256), shape = buf_init(256),
               rest_shape = buf_init(256), product = buf_init(256);
    const struct modes *m = &f->modes;

    for (int k = 0; k < m->count; k++) {
        const struct axis *x = &m->axis[0][k];
        struct scope *item = scope_item(s, "mode");

        scope_set(item, "m", "%d", k);
        scope_set(item, "size", "%s", match_axis_size(f->out_name[0], x, f->a));
        buf_printf(&names, "%sn%d", k ? ", " : "", k);
        buf_printf(&product, "%sn%d", k ? " * " : "", k);
        buf_printf(&shape, "%sn%d", k ? "," : "", k);
        buf_printf(&rest, k ? ", n%d" : "n%d / VEC", k);
        buf_printf(&rest_shape, k ? ",n%d" : "n%d/VEC", k);
    }
    pointwise_turn(f, out, vec);
    scope_set(s, "sizes", "%s", buf_text(&names).data);
    scope_set(s, "elements", "%s", is_flat(f) ? "n" : buf_text(&product).data);
    scope_set(s, "shape_text", "%s", is_flat(f) ? "(n)" : arena_printf(f->a, "(%s)", shape.data));
    scope_set(s, "vector_shape_text", "%s",
              is_flat(f) ? "(VEC,n/VEC)" : arena_printf(f->a, "(VEC,(%s))", rest_shape.data));
    scope_set(s, "rest_sizes", "%s", buf_text(&rest).data);
    buf_release(&names);
    buf_release(&rest);
    buf_release(&shape);
    buf_release(&rest_shape);
    buf_release(&product);
}

/* The plan's view of the call: which tensors, and what must hold for them. */
static void fill_plan(struct fused *f, struct scope *s)
{
    const struct graph *g = f->g;
    bool used[MAX_TENSORS] = {false}, checked[MAX_TENSORS] = {false},
         written[MAX_TENSORS] = {false};

    for (int i = 0; i < f->leaf_count; i++) {
        int in = f->leaves[i].view.input, t = f->target_count + i;
        struct scope *item;

        if (!checked[in])
            checked[in] = match_split_checks(s, f->in_name[in], &g->in[in], f->modes.axis[t],
                                             f->modes.count, f->a);
        if (used[in])
            continue;
        used[in] = true;
        item = scope_item(s, "plan_input");
        scope_set(item, "x", "%s", f->in_name[in]);
        scope_set(item, "k", "%d", in);
        scope_set(item, "ndim", "%d", g->in[in].dims);
        if (is_flat(f) && f->modes.axis[t][0].stride)
            scope_fact(item, "moving");
        if (is_flat(f) && tensor_contiguous(&g->in[in]))
            scope_fact(item, "dense");
        if (f->modes.axis[t][0].stride == 1)
            scope_fact(item, "unit");
    }
    for (int k = 0; k < f->target_count; k++) {
        int to = f->targets[k].view.input;

        if (!written[to])
            written[to] = match_split_checks(s, f->out_name[to], &g->out[to], f->modes.axis[k],
                                             f->modes.count, f->a);
    }
    for (int k = 0; k < g->out_count; k++) {
        struct scope *item = scope_item(s, "plan_output");

        scope_set(item, "x", "%s", f->out_name[k]);
        scope_set(item, "k", "%d", k);
        scope_set(item, "ndim", "%d", g->out[k].dims);
    }
    scope_set(s, "y", "%s", f->out_name[0]);
    match_scalars(g, s);
}

static int vector_length(const struct fused *f)
{
    int widest = 1;

    for (int i = 0; i < f->leaf_count; i++)
        if (expr_bytes(f->leaves[i].node->t.dtype) > widest)
            widest = expr_bytes(f->leaves[i].node->t.dtype);
    for (int k = 0; k < f->g->out_count; k++)
        if (expr_bytes(f->g->out[k].dtype) > widest)
            widest = expr_bytes(f->g->out[k].dtype);
    return 16 / widest;
}

static bool fill(struct fused *f, struct match *out)
{
    const struct graph *g = f->g;
    const char *kernel = match_kernel_name(g, f->a);
    struct scope *s = out->scope = scope_new(f->a, NULL);
    int vec = vector_length(f);
    const char *index = most_elements(f) > INT32_MAX - 65536 ? "int64_t" : "int";

    name_all(f);
    scope_set(s, "kernel", "%s", kernel);
    scope_set(s, "ops", "%s", graph_ops(g, f->a));
    scope_set(s, "index", "%s", index);
    scope_set(s, "vec", "%d", vec);
    if (is_flat(f))
        scope_fact(s, "flat");
    if (is_vectorisable(f, vec))
        scope_fact(s, "vectors");
    if (g->measured)
        scope_fact(s, "measured");
    for (int i = 0; i < f->leaf_count; i++)
        fill_tensor(f, s, f->target_count + i, &f->leaves[i].node->t, f->leaves[i].name, false);
    for (int k = 0; k < f->target_count; k++) {
        const struct target *to = &f->targets[k];

        fill_tensor(f, s, k, &g->out[to->view.input], to->name, true);
        if (!fill_function(f, s, k, kernel, out))
            return false;
    }
    fill_signature(f, s, index);
    fill_sizes(f, out, vec);
    fill_plan(f, s);
    return true;
}

bool match_pointwise(const struct graph *g, struct arena *a, struct match *out)
{
    struct fused *f = arena_alloc(a, sizeof(*f));

    f->g = g;
    f->a = a;
    if (tensor_numel(&g->out[0]) == 0)
        return match_no(out, a, "its output is empty");
    if (!collect_targets(f, out))
        return false;
    if (f->leaf_count == 0)
        return match_no(out, a, "it reads no input");
    sort_leaves(f);
    if (!bring_together(f, out))
        return false;
    if (launch_arguments(f) > LAUNCH_ARGUMENTS)
        return match_no(out, a, "a launch with %d arguments, of which there may be %d",
                        launch_arguments(f), LAUNCH_ARGUMENTS);
    return fill(f, out);
}
