/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.c - trace an input through operators that only rearrange it.
 */
#include "expert/graph/view.h"

#include <string.h>

static const char *const reshapes[] = {"aten.view",           "aten._unsafe_view", "aten.reshape",
                                       "aten._reshape_alias", "aten.unsqueeze",    "aten.squeeze",
                                       "aten.flatten",        "aten.unflatten"};
static const char *const copies[] = {"aten.clone", "aten.contiguous", "aten.detach", "aten.alias",
                                     "aten.lift_fresh_copy"};

static bool op_among(const struct node *n, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (graph_op_is(n, names[i]))
            return true;
    return false;
}

/* A permutation that only moves dimensions of size 1 keeps the order of elements. */
static bool keeps_order(const struct node *n)
{
    int64_t order[MAX_DIMS], last = -1;
    int count = graph_op_is(n, "aten.permute") ? graph_arg_ints(n, 1, "dims", order) : -1;

    if (count < 0 || count != n->t.dims)
        return false;
    for (int d = 0; d < count; d++) {
        int64_t at = order[d] < 0 ? order[d] + count : order[d];

        if (n->t.shape[d] == 1)
            continue;
        if (at < last)
            return false;
        last = at;
    }
    return true;
}

bool graph_reshapes(const struct node *n)
{
    return op_among(n, reshapes, ARRAY_LEN(reshapes)) || op_among(n, copies, ARRAY_LEN(copies)) ||
           keeps_order(n);
}

bool graph_rearranges(const struct node *n)
{
    return graph_reshapes(n) || graph_op_is(n, "aten.t") || graph_op_is(n, "aten.transpose") ||
           graph_op_is(n, "aten.permute") || graph_op_is(n, "aten.expand") ||
           graph_op_is(n, "aten.mT");
}

/* Can y follow x in one merged dimension? */
static bool axes_merge(struct axis *x, const struct axis *y, bool split)
{
    bool apart = x->last != y->first; /* then the size is not the product of those between */

    if (x->stride != y->stride * y->size || (x->first == x->last) != (y->first == y->last) ||
        (apart && !split))
        return false;
    x->last = y->last;
    x->size *= y->size;
    x->stride = y->stride;
    x->times = y->times;
    x->split = x->split || y->split || apart;
    return true;
}

/* The outer `count` of an axis; the axis keeps the rest. */
static struct axis axis_cut(struct axis *x, int64_t count)
{
    struct axis outer = *x;

    x->size /= count;
    x->split = outer.split = true;
    outer.size = count;
    outer.stride = x->stride * x->size;
    outer.times = (x->times ? x->times : 1) * x->size;
    return outer;
}

/* What a view may do besides rearranging whole dimensions. */
enum view_may { VIEW_WHOLE, VIEW_SPLIT, VIEW_PART, VIEW_BATCH };

/* Neighbouring dimensions may become one, and others than for VIEW_WHOLE one several; dimensions of
 * size 1 come and go. */
static bool reshape(struct view *v, const struct tensor *to, enum view_may may)
{
    struct axis axes[MAX_DIMS], rest = {.size = 1};
    bool split = may != VIEW_WHOLE;
    int k = 0;

    for (int d = 0; d < to->dims; d++) {
        int64_t done = 1;

        axes[d] = (struct axis){.size = 1};
        while (done < to->shape[d]) {
            int64_t need = to->shape[d] / done;
            struct axis piece;

            while (rest.size == 1 && k < v->dims)
                rest = v->axes[k++];
            if (rest.size == 1 || to->shape[d] % done)
                return false;
            if (rest.size > need ? !split || rest.size % need : need % rest.size)
                return false;
            if (rest.size > need) {
                piece = axis_cut(&rest, need);
            } else {
                piece = rest;
                rest = (struct axis){.size = 1};
            }
            done *= piece.size;
            if (axes[d].size == 1) {
                axes[d] = piece;
            } else if (!axes_merge(&axes[d], &piece, split)) {
                if (may != VIEW_BATCH || d > 0 || to->dims != 3)
                    return false;
                v->outer[v->outers++] = axes[d];
                axes[d] = piece;
            }
        }
        if (done != to->shape[d])
            return false;
    }
    if (v->outers > 0) {
        v->outer[v->outers++] = axes[0];
        axes[0] = (struct axis){.size = to->shape[0]};
    }
    memcpy(v->axes, axes, sizeof(axes));
    v->dims = to->dims;
    return rest.size == 1;
}

bool view_reshape(struct view *v, const struct tensor *to)
{
    return reshape(v, to, VIEW_WHOLE);
}

bool view_split(struct view *v, const struct tensor *to)
{
    return reshape(v, to, VIEW_SPLIT);
}

static int wrap(int64_t dim, int dims)
{
    dim = dim < 0 ? dim + dims : dim;
    return dim >= 0 && dim < dims ? (int)dim : -1;
}

static bool view_permute(struct view *v, const struct node *n)
{
    struct axis from[MAX_DIMS];
    int64_t order[MAX_DIMS];
    int count = graph_arg_ints(n, 1, "dims", order);

    if (count != v->dims)
        return false;
    memcpy(from, v->axes, sizeof(from));
    for (int d = 0; d < v->dims; d++) {
        int at = wrap(order[d], v->dims);

        if (at < 0)
            return false;
        v->axes[d] = from[at];
    }
    return true;
}

static bool view_transpose(struct view *v, int64_t i, int64_t j)
{
    int p = wrap(i, v->dims), q = wrap(j, v->dims);
    struct axis swap;

    if (p < 0 || q < 0)
        return v->dims < 2;
    swap = v->axes[p];
    v->axes[p] = v->axes[q];
    v->axes[q] = swap;
    return true;
}

bool view_expand(struct view *v, const struct tensor *to)
{
    int added = to->dims - v->dims;

    if (added < 0)
        return false;
    memmove(v->axes + added, v->axes, sizeof(*v->axes) * (size_t)v->dims);
    for (int d = 0; d < to->dims; d++) {
        if (d < added || (v->axes[d].size == 1 && to->shape[d] != 1))
            v->axes[d] = (struct axis){.size = to->shape[d]};
        else if (v->axes[d].size != to->shape[d])
            return false;
    }
    v->dims = to->dims;
    return true;
}

struct view view_whole(const struct tensor *t)
{
    struct view v = {.dims = t->dims};

    for (int d = 0; d < t->dims; d++)
        v.axes[d] =
            (struct axis){.first = d, .last = d + 1, .size = t->shape[d], .stride = t->strides[d]};
    return v;
}

bool view_slice(struct view *v, int d, int64_t from, int64_t step, int64_t count)
{
    struct axis *x = &v->axes[d];

    if (from == 0 && step == 1 && count == x->size)
        return true;
    if (x->first == x->last && x->stride == 0 && step > 0) {
        x->size = count; /* a broadcast: all its elements are the same */
        return true;
    }
    if (x->first == x->last || step < 1)
        return false;
    v->from[x->last - 1] += from * (x->times ? x->times : 1);
    v->sliced = x->split = true;
    x->times = (x->times ? x->times : 1) * step;
    x->stride *= step;
    x->size = count;
    return true;
}

void view_drop(struct view *v, int d)
{
    memmove(v->axes + d, v->axes + d + 1, sizeof(*v->axes) * (size_t)(v->dims - d - 1));
    v->dims--;
}

/* Parts of a view: slices, single places, pieces. */
static bool view_take(struct view *v, const struct node *n)
{
    int64_t dim = 0, from = 0, step = 1, sizes[MAX_DIMS];
    bool slice = graph_op_is(n, "aten.slice"), select = graph_op_is(n, "aten.select");
    bool unbind = graph_op_is(n, "aten.unbind");
    int d, count = 0;

    graph_arg_int(n, slice || select || unbind ? 1 : 2, "dim", &dim);
    d = wrap(dim, v->dims);
    if (d < 0)
        return false;
    if (slice) {
        graph_arg_int(n, 2, "start", &from);
        graph_arg_int(n, 4, "step", &step);
    } else if (select) {
        graph_arg_int(n, 2, "index", &from);
    } else if (unbind) {
        from = n->part;
    } else if (graph_op_is(n, "aten.split")) {
        if (!graph_arg_int(n, 1, "split_size", &from))
            return false;
        from *= n->part;
    } else {
        count = graph_arg_ints(n, 1, "split_sizes", sizes);
        for (int k = 0; k < n->part && k < count; k++)
            from += sizes[k];
        if (n->part >= count)
            return false;
    }
    from += from < 0 ? v->axes[d].size : 0;
    from = from > v->axes[d].size ? v->axes[d].size : from;
    if (!view_slice(v, d, from, step, select || unbind ? 1 : n->t.shape[d]))
        return false;
    if (select || unbind)
        view_drop(v, d);
    return v->dims == n->t.dims;
}

int64_t view_offset(const struct view *v, const struct tensor *in)
{
    int64_t offset = 0;

    for (int d = 0; d < in->dims; d++)
        offset += v->from[d] * in->strides[d];
    return offset;
}

struct viewing {
    enum view_may may;
    bool (*function)(const struct node *n); /* elements may be changed by these; NULL: by none */
};

/* Of three dimensions, the last two? */
static bool transposes_last(const struct node *n)
{
    int64_t i = 0, j = 1;

    return graph_arg_int(n, 1, "dim0", &i) && graph_arg_int(n, 2, "dim1", &j) && i % 3 != 0 &&
           j % 3 != 0;
}

/* Does what follows a batch of matrices at most transpose them, or copy? */
static bool keeps_batch(const struct node *n)
{
    return graph_op_is(n, "aten.mT") || op_among(n, copies, ARRAY_LEN(copies)) ||
           (graph_op_is(n, "aten.transpose") && transposes_last(n));
}

static bool view_of(const struct graph *g, const struct node *n, struct viewing how,
                    struct view *out)
{
    bool takes =
        graph_op_is(n, "aten.slice") || graph_op_is(n, "aten.select") || graph_gives_parts(n);
    int64_t i = 0, j = 1;

    if (strcmp(n->op, "input") == 0) {
        if (n->index < 0 || n->index >= g->in_count)
            return false;
        *out = view_whole(&n->t);
        out->input = n->index;
        return true;
    }
    if (!(graph_rearranges(n) || takes || (how.function && how.function(n))) ||
        !graph_arg(g, n, 0) || !view_of(g, graph_arg(g, n, 0), how, out))
        return false;
    if (out->outers > 0 && !keeps_batch(n))
        return false;
    if (takes)
        return view_take(out, n) && (how.may >= VIEW_PART || !out->sliced);
    if (!graph_rearranges(n))
        return true;
    if (op_among(n, copies, ARRAY_LEN(copies)))
        return true;
    if (graph_op_is(n, "aten.permute"))
        return view_permute(out, n);
    if (graph_op_is(n, "aten.expand"))
        return view_expand(out, &n->t);
    if (graph_op_is(n, "aten.t"))
        return view_transpose(out, 0, 1);
    if (graph_op_is(n, "aten.mT"))
        return view_transpose(out, -1, -2);
    if (graph_op_is(n, "aten.transpose"))
        return graph_arg_int(n, 1, "dim0", &i) && graph_arg_int(n, 2, "dim1", &j) &&
               view_transpose(out, i, j);
    return reshape(out, &n->t, how.may);
}

bool graph_view(const struct graph *g, const struct node *n, struct view *out)
{
    return view_of(g, n, (struct viewing){.may = VIEW_WHOLE}, out);
}

bool graph_view_changed(const struct graph *g, const struct node *n,
                        bool (*function)(const struct node *n), struct view *out)
{
    return view_of(g, n, (struct viewing){.function = function}, out);
}

bool graph_view_split(const struct graph *g, const struct node *n, struct view *out)
{
    return view_of(g, n, (struct viewing){.may = VIEW_SPLIT}, out);
}

bool graph_view_batch(const struct graph *g, const struct node *n, struct view *out)
{
    return view_of(g, n, (struct viewing){.may = VIEW_BATCH}, out);
}

bool graph_view_part(const struct graph *g, const struct node *n, struct view *out)
{
    return view_of(g, n, (struct viewing){.may = VIEW_PART}, out);
}
