/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moves.c - operators that move elements: concatenate, pad, index.
 *
 * An index from memory is checked against its bounds: one outside reads
 * nothing (PyTorch raises an error there, so no result is defined).
 */
#include "expert/generic/generic.h"

#include "base/json.h"

#include <string.h>

static const struct node *list_item(const struct graph *g, const json_t *list, size_t i)
{
    const json_t *item = json_array_get(list, i);

    return json_object_get(item, "node") ? graph_node(g, graph_id(item)) : NULL;
}

/* Declares a variable that nested blocks may change. */
static const char *variable(struct kernel *k, const struct node *n, const char *value)
{
    const char *name = arena_printf(k->in->a, "v%d", ++k->names);

    kernel_line(k, "%s %s = %s;", value_type(n), name, value);
    return name;
}

/* `if (condition) { name = x at p }`, converted to n's type. */
static bool set_where(struct kernel *k, const char *name, const char *condition,
                      const struct node *n, const struct node *x, const struct coords *p)
{
    int mark = kernel_open(k, false, "if (%s)", condition);
    const char *value = value_at(k, x, p);

    if (value)
        kernel_line(k, "%s = %s(%s);", name, value_type(n), value);
    kernel_close(k, mark, false);
    return value != NULL;
}

/* cat, and stack: the same where every tensor has one place in a new dimension. */
static const char *joined(struct kernel *k, const struct node *n, const struct coords *at,
                          bool stack)
{
    const json_t *list = json_object_get(json_array_get(n->args, 0), "list");
    int d = dim_wrap(arg_int_or(n, 1, "dim", 0), n->t.dims);
    const char *name = variable(k, n, "0");
    int64_t from = 0;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const struct node *x = list_item(k->in->g, list, i);
        struct coords p = *at;
        const char *when;
        int64_t size;
        int mark;

        if (!x)
            return value_no(k, n, "a list with something else than tensors");
        if (!stack && x->t.dims == 1 && x->t.shape[0] == 0)
            continue; /* joins with anything */
        size = stack ? 1 : x->t.shape[d];
        if (size == 0)
            continue;
        when = arena_printf(k->in->a, "%s >= %lld && %s < %lld", at->at[d], (long long)from,
                            at->at[d], (long long)(from + size));
        mark = kernel_open(k, false, "if (%s)", when);
        for (int j = d; stack && j + 1 < n->t.dims; j++)
            p.at[j] = at->at[j + 1];
        if (!stack && from)
            p.at[d] = kernel_index(k, "%s - %lld", at->at[d], (long long)from);
        when = value_at(k, x, &p);
        if (!when)
            return NULL;
        kernel_line(k, "%s = %s(%s);", name, value_type(n), when);
        kernel_close(k, mark, false);
        from += size;
    }
    return name;
}

const char *index_bounds(struct kernel *k, const char *text, const char *i, int64_t size)
{
    return arena_printf(k->in->a, "%s%s%s >= 0 && %s < %lld", text, *text ? " && " : "", i, i,
                        (long long)size);
}

/* Sizes of padding stand innermost dimension first, left and right. */
static const char *padded(struct kernel *k, const struct node *n, const struct coords *at)
{
    const struct node *x = graph_first(k->in->g, n);
    const json_t *pads = json_object_get(json_array_get(n->args, 1), "ints");
    const json_t *fill = graph_arg_json(n, 2, "value");
    struct coords p = *at;
    const char *when = "", *name;
    double value = 0;

    if (fill && !graph_number(fill, &value))
        return value_no(k, n, "a fill value that is not a number");
    for (size_t i = 0; i < json_array_size(pads) / 2 && (int)i < x->t.dims; i++) {
        int d = x->t.dims - 1 - (int)i;
        int64_t left = json_integer_value(json_array_get(pads, 2 * i));
        int64_t right = json_integer_value(json_array_get(pads, 2 * i + 1));

        if (left)
            p.at[d] = kernel_index(k, "%s - %lld", at->at[d], (long long)left);
        if (left > 0 || right > 0)
            when = index_bounds(k, when, p.at[d], x->t.shape[d]);
    }
    name = variable(k, n, expr_literal(value, value_type(n), k->in->a));
    return set_where(k, name, *when ? when : "true", n, x, &p) ? name : NULL;
}

/* Beyond the edge: reflected, or the edge value. */
static const char *edge_padded(struct kernel *k, const struct node *n, const struct coords *at,
                               bool mirror)
{
    const struct node *x = graph_first(k->in->g, n);
    int64_t pads[MAX_DIMS];
    int count = graph_arg_ints(n, 1, "padding", pads);
    struct coords p = *at;

    for (int i = 0; i < count / 2 && i < x->t.dims; i++) {
        int d = x->t.dims - 1 - i;
        long long last = (long long)x->t.shape[d] - 1;
        const char *j = kernel_index(k, "%s - %lld", at->at[d], (long long)pads[2 * i]);

        if (mirror)
            p.at[d] = kernel_index(k, "%s < 0 ? -%s : %s > %lld ? %lld - %s : %s", j, j, j, last,
                                   2 * last, j, j);
        else
            p.at[d] = kernel_index(k, "%s < 0 ? 0 : %s > %lld ? %lld : %s", j, j, last, last, j);
    }
    return value_at(k, x, &p);
}

const char *index_value(struct kernel *k, const struct node *index, const struct coords *at,
                        int64_t size)
{
    const char *i = value_at(k, index, at);

    return i ? kernel_index(k, "%s(%s < 0 ? %s + %lld : %s)", k->index, i, i, (long long)size, i)
             : NULL;
}

static const char *picked(struct kernel *k, const struct node *n, const struct node *x,
                          const struct coords *p, const char *when)
{
    const char *name = variable(k, n, "0");

    return set_where(k, name, *when ? when : "true", n, x, p) ? name : NULL;
}

/* gather(x, dim, index), index_select(x, dim, index), embedding(x, index). */
static const char *gathered(struct kernel *k, const struct node *n, const struct coords *at)
{
    bool rows = graph_op_is(n, "aten.embedding"), gather = graph_op_is(n, "aten.gather");
    const struct node *x = graph_first(k->in->g, n), *index = graph_arg(k->in->g, n, rows ? 1 : 2);
    int d = rows ? 0 : dim_wrap(arg_int_or(n, 1, "dim", 0), x->t.dims);
    struct coords p = *at, where = *at;
    const char *i;

    if (!index)
        return value_no(k, n, "an index that is not a tensor");
    if (rows) {
        p = (struct coords){{NULL}};
        for (int j = 1; j < x->t.dims; j++)
            p.at[j] = at->at[index->t.dims + j - 1];
    } else if (!gather) {
        where.at[0] = x->t.dims ? at->at[d] : "0";
    }
    i = index_value(k, index, &where, x->t.dims ? x->t.shape[d] : 1);
    if (!i)
        return NULL;
    p.at[d] = i;
    return picked(k, n, x, &p, index_bounds(k, "", i, x->t.dims ? x->t.shape[d] : 1));
}

/* x[a, :, b]: indices are broadcast together; the result's index dimensions are where the first
 * index was if all are adjacent, else in front. */
static const char *indexed(struct kernel *k, const struct node *n, const struct coords *at)
{
    const struct node *x = graph_first(k->in->g, n), *index[MAX_DIMS] = {NULL};
    const json_t *list = json_object_get(json_array_get(n->args, 1), "list");
    int first = -1, last = -1, count = 0, dims = 0, from;
    struct tensor shape = {.dims = 0};
    struct coords p = {{NULL}}, where = {{NULL}};
    const char *when = "";

    for (int d = 0; d < x->t.dims && d < (int)json_array_size(list); d++) {
        index[d] = list_item(k->in->g, list, (size_t)d);
        if (!index[d])
            continue;
        if (strcmp(index[d]->t.dtype, "bool") == 0)
            return value_no(k, n, "a mask as an index gives a shape that depends on values");
        first = first < 0 ? d : first;
        last = d;
        count++;
        dims = index[d]->t.dims > dims ? index[d]->t.dims : dims;
    }
    if (!count)
        return value_no(k, n, "no index that is a tensor");
    from = last - first + 1 == count ? first : 0;
    shape.dims = dims;
    for (int j = 0; j < dims; j++)
        where.at[j] = at->at[from + j];
    for (int d = 0, j = 0; d < x->t.dims; d++) {
        struct coords q;

        if (!index[d]) {
            j += j == from ? dims : 0;
            p.at[d] = at->at[j++];
            continue;
        }
        q = place_broadcast(&where, &index[d]->t, &shape);
        p.at[d] = index_value(k, index[d], &q, x->t.shape[d]);
        if (!p.at[d])
            return NULL;
        when = index_bounds(k, when, p.at[d], x->t.shape[d]);
    }
    return picked(k, n, x, &p, when);
}

/* slice_scatter(x, y, dim, start, end, step), select_scatter(x, y, dim, index). */
static const char *part_set(struct kernel *k, const struct node *n, const struct coords *at,
                            bool select)
{
    const struct node *x = graph_first(k->in->g, n), *y = graph_arg(k->in->g, n, 1);
    int d = dim_wrap(arg_int_or(n, 2, "dim", 0), x->t.dims);
    int64_t size = x->t.shape[d], from = arg_int_or(n, 3, select ? "index" : "start", 0);
    int64_t step = select ? 1 : arg_int_or(n, 5, "step", 1), count = select ? 1 : y->t.shape[d];
    const char *name = value_at(k, x, at), *when;
    struct coords p = *at;

    if (!name)
        return NULL;
    from += from < 0 ? size : 0;
    name = variable(k, n, name);
    when = arena_printf(k->in->a,
                        "%s >= %lld && (%s - %lld) %% %lld == 0 && (%s - %lld) / %lld < %lld",
                        at->at[d], (long long)from, at->at[d], (long long)from, (long long)step,
                        at->at[d], (long long)from, (long long)step, (long long)count);
    p.at[d] = kernel_index(k, "(%s - %lld) / %lld", at->at[d], (long long)from, (long long)step);
    for (int j = d; select && j + 1 < n->t.dims; j++)
        p.at[j] = at->at[j + 1];
    return set_where(k, name, when, n, y, &p) ? name : NULL;
}

/* diag_embed(x, offset, dim1, dim2); scatter: diagonal_scatter(old, x, offset, dim1, dim2). */
static const char *diagonal_set(struct kernel *k, const struct node *n, const struct coords *at,
                                bool scatter)
{
    size_t first = scatter ? 2 : 1;
    const struct node *x = graph_arg(k->in->g, n, first - 1);
    int64_t offset = arg_int_or(n, first, "offset", 0);
    int p = dim_wrap(arg_int_or(n, first + 1, "dim1", scatter ? 0 : -2), n->t.dims);
    int q = dim_wrap(arg_int_or(n, first + 2, "dim2", scatter ? 1 : -1), n->t.dims);
    const char *old = scatter ? value_at(k, graph_first(k->in->g, n), at) : "0", *name, *when;
    struct coords place = {{NULL}};
    int j = 0;

    if (!old || !x)
        return NULL;
    name = variable(k, n, old);
    for (int d = 0; d < n->t.dims; d++)
        if (d != p && d != q)
            place.at[j++] = at->at[d];
    place.at[j] = kernel_index(k, "%s - %lld", at->at[p], offset < 0 ? (long long)-offset : 0LL);
    when = arena_printf(k->in->a, "%s - %s == %lld", at->at[q], at->at[p], (long long)offset);
    when = index_bounds(k, when, place.at[j], x->t.shape[x->t.dims - 1]);
    return set_where(k, name, when, n, x, &place) ? name : NULL;
}

const char *value_moved(struct kernel *k, const struct node *n, const struct coords *at, bool *mine)
{
    *mine = true;
    if (graph_other_result(n)) {
        *mine = false;
        return NULL;
    }
    if (graph_op_is(n, "aten.cat") || graph_op_is(n, "aten.stack"))
        return joined(k, n, at, graph_op_is(n, "aten.stack"));
    if (graph_op_is(n, "aten.constant_pad_nd"))
        return padded(k, n, at);
    if (strncmp(n->op, "aten.reflection_pad", 19) == 0)
        return edge_padded(k, n, at, true);
    if (strncmp(n->op, "aten.replication_pad", 20) == 0)
        return edge_padded(k, n, at, false);
    if (graph_op_is(n, "aten.gather") || graph_op_is(n, "aten.index_select") ||
        graph_op_is(n, "aten.embedding"))
        return gathered(k, n, at);
    if (graph_op_is(n, "aten.index"))
        return indexed(k, n, at);
    if (graph_op_is(n, "aten.slice_scatter"))
        return part_set(k, n, at, false);
    if (graph_op_is(n, "aten.select_scatter"))
        return part_set(k, n, at, true);
    if (graph_op_is(n, "aten.diag_embed"))
        return diagonal_set(k, n, at, false);
    if (graph_op_is(n, "aten.diagonal_scatter"))
        return diagonal_set(k, n, at, true);
    *mine = false;
    return NULL;
}

/* ---- tensors out of nothing --------------------------------------------------------- */

/* arange(end), arange(start, end), arange(start, end, step). */
static const char *counted(struct kernel *k, const struct node *n, const struct coords *at)
{
    bool from_zero = strcmp(n->op, "aten.arange.default") == 0;
    const char *type = value_float(n);
    double start = 0, step = 1;

    if (!from_zero)
        graph_number(graph_arg_json(n, 0, "start"), &start);
    if (strstr(n->op, "start_step"))
        graph_number(graph_arg_json(n, 2, "step"), &step);
    if (strcmp(value_type(n), type) == 0)
        return kernel_name(k, type, "%s + %s(%s) * %s", expr_literal(start, type, k->in->a), type,
                           at->at[0], expr_literal(step, type, k->in->a));
    return kernel_name(k, value_type(n), "%.0f + %s * %.0f", start, at->at[0], step);
}

static const char *spaced(struct kernel *k, const struct node *n, const struct coords *at)
{
    double start = 0, end = 0;
    long long count = (long long)tensor_numel(&n->t);
    const char *from, *to, *step, *type = value_float(n);

    graph_number(graph_arg_json(n, 0, "start"), &start);
    graph_number(graph_arg_json(n, 1, "end"), &end);
    from = expr_literal(start, type, k->in->a);
    to = expr_literal(end, type, k->in->a);
    if (count < 2)
        return kernel_name(k, value_type(n), "%s(%s)", value_type(n), from);
    step = expr_literal((end - start) / (double)(count - 1), type, k->in->a);
    return kernel_name(k, value_type(n), "%s(%s < %lld ? %s + %s * %s : %s - (%lld - %s) * %s)",
                       value_type(n), at->at[0], count / 2, from, at->at[0], step, to, count - 1,
                       at->at[0], step);
}

static bool filled(const struct node *n, const json_t **value, double *number)
{
    static const struct {
        const char *name;
        int argument; /* that holds the value; -1: none */
        double number;
    } rows[] = {{"aten.zeros", -1, 0},         {"aten.ones", -1, 1},
                {"aten.empty", -1, 0},         {"aten.full", 1, 0},
                {"aten.zeros_like", -1, 0},    {"aten.ones_like", -1, 1},
                {"aten.empty_like", -1, 0},    {"aten.full_like", 1, 0},
                {"aten.new_zeros", -1, 0},     {"aten.new_ones", -1, 1},
                {"aten.new_empty", -1, 0},     {"aten.new_full", 2, 0},
                {"aten.empty_strided", -1, 0}, {"aten.zero", -1, 0},
                {"aten.fill", 1, 0},           {"aten.new_empty_strided", -1, 0},
                {"aten.scalar_tensor", 0, 0}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (graph_op_is(n, rows[i].name)) {
            *number = rows[i].number;
            *value =
                rows[i].argument >= 0 ? json_array_get(n->args, (size_t)rows[i].argument) : NULL;
            return true;
        }
    return false;
}

const char *value_made(struct kernel *k, const struct node *n, const struct coords *at, bool *mine)
{
    const json_t *value;
    double number;

    *mine = true;
    if (graph_op_is(n, "aten.arange"))
        return counted(k, n, at);
    if (graph_op_is(n, "aten.linspace"))
        return spaced(k, n, at);
    if (graph_op_is(n, "aten.eye"))
        return kernel_name(k, value_type(n), "%s == %s", at->at[0], at->at[1]);
    if (filled(n, &value, &number)) {
        if (value && json_object_get(value, "node"))
            return value_of_arg(k, n, 1, at);
        if (value && !graph_number(value, &number))
            return value_no(k, n, "a value that is not a number");
        return arena_printf(k->in->a, "%s(%s)", value_type(n),
                            expr_literal(number, value_type(n), k->in->a));
    }
    *mine = false;
    return NULL;
}
