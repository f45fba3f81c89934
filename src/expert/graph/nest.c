/* SPDX-License-Identifier: Apache-2.0 */
/* nest.c - views whose dimensions are made of several of an input's. */
#include "expert/graph/nest.h"

#include "expert/graph/view.h"

#include <string.h>

int64_t nest_size(const struct nest *v, int d)
{
    int64_t size = 1;

    for (int i = v->first[d]; i < v->first[d + 1]; i++)
        size *= v->s[i].size;
    return size;
}

static bool push(struct nest *v, int *count, struct strand s)
{
    if (s.size == 1)
        return true;
    if (*count == NEST_STRANDS)
        return false;
    v->s[(*count)++] = s;
    return true;
}

static bool whole(const struct tensor *t, struct nest *out)
{
    int count = 0;

    *out = (struct nest){.dims = t->dims, .factor = 1};
    for (int d = 0; d < t->dims; d++) {
        out->first[d] = count;
        if (!push(out, &count, (struct strand){t->shape[d], t->strides[d], d, 1, true}))
            return false;
    }
    out->first[t->dims] = count;
    return true;
}

/* ---- rearranging ------------------------------------------------------------------ */

static bool permute(struct nest *v, const int *order)
{
    struct nest from = *v;
    int count = 0;

    for (int d = 0; d < v->dims; d++) {
        v->first[d] = count;
        for (int i = from.first[order[d]]; i < from.first[order[d] + 1]; i++)
            v->s[count++] = from.s[i];
    }
    v->first[v->dims] = count;
    return true;
}

/* The outer `count` of a strand; the strand keeps the rest. */
static struct strand cut(struct strand *s, int64_t count)
{
    struct strand outer = *s;

    s->size /= count;
    s->whole = outer.whole = false;
    outer.size = count;
    outer.stride *= s->size;
    outer.times *= s->size;
    return outer;
}

bool nest_reshape(struct nest *v, const struct tensor *to)
{
    struct nest from = *v;
    int at = 0, last = from.first[from.dims], count = 0;

    v->dims = to->dims;
    for (int d = 0; d < to->dims; d++) {
        int64_t need = to->shape[d];

        v->first[d] = count;
        while (need > 1) {
            struct strand *s = &from.s[at];

            if (at == last || (need % s->size && s->size % need))
                return false;
            if (s->size <= need) {
                need /= s->size;
                at++;
                if (!push(v, &count, *s))
                    return false;
            } else if (!push(v, &count, cut(s, need))) {
                return false;
            } else {
                need = 1;
            }
        }
    }
    v->first[to->dims] = count;
    return at == last;
}

bool nest_split(struct nest *v, int d, int64_t inner)
{
    struct tensor to = {.dims = v->dims + 1};

    if (v->dims == MAX_DIMS || nest_size(v, d) % inner)
        return false;
    for (int i = 0; i <= v->dims; i++)
        to.shape[i] = nest_size(v, i <= d ? i : i - 1);
    to.shape[d] /= inner;
    to.shape[d + 1] = inner;
    return nest_reshape(v, &to);
}

bool nest_expand(struct nest *v, const struct tensor *to)
{
    struct nest from = *v;
    int added = to->dims - from.dims, count = 0;

    if (added < 0)
        return false;
    v->dims = to->dims;
    for (int d = 0; d < to->dims; d++) {
        int64_t size = d < added ? 1 : nest_size(&from, d - added);

        v->first[d] = count;
        if (size == 1) {
            if (!push(v, &count, (struct strand){to->shape[d], 0, -1, 0, false}))
                return false;
            continue;
        }
        if (size != to->shape[d])
            return false;
        for (int i = from.first[d - added]; i < from.first[d - added + 1]; i++)
            if (!push(v, &count, from.s[i]))
                return false;
    }
    v->first[to->dims] = count;
    return true;
}

/* ---- parts -------------------------------------------------------------------------- */

static int wrap(int64_t dim, int dims)
{
    dim = dim < 0 ? dim + dims : dim;
    return dim >= 0 && dim < dims ? (int)dim : -1;
}

static bool slice(struct nest *v, int d, int64_t from, int64_t step, int64_t count)
{
    struct strand *s = &v->s[v->first[d]];
    int strands = v->first[d + 1] - v->first[d];

    if (from == 0 && step == 1 && count == nest_size(v, d))
        return true;
    if (strands != 1 || s->dim < 0 || step < 1 || count < 1)
        return false;
    v->from[s->dim] += from * s->times;
    s->size = count;
    s->stride *= step;
    s->times *= step;
    s->whole = false;
    if (count > 1)
        return true;
    memmove(s, s + 1, sizeof(*s) * (size_t)(v->first[v->dims] - v->first[d] - 1));
    for (int i = d + 1; i <= v->dims; i++)
        v->first[i]--;
    return true;
}

static void drop(struct nest *v, int d)
{
    memmove(v->first + d, v->first + d + 1, sizeof(*v->first) * (size_t)(v->dims - d));
    v->dims--;
}

/* Where a part begins along its dimension. */
static bool part_begins(const struct node *n, int64_t *from)
{
    int64_t sizes[MAX_DIMS];
    int count;

    if (graph_op_is(n, "aten.slice")) {
        graph_arg_int(n, 2, "start", from);
    } else if (graph_op_is(n, "aten.select")) {
        graph_arg_int(n, 2, "index", from);
    } else if (graph_op_is(n, "aten.unbind")) {
        *from = n->part;
    } else if (graph_op_is(n, "aten.split")) {
        if (!graph_arg_int(n, 1, "split_size", from))
            return false;
        *from *= n->part;
    } else {
        count = graph_arg_ints(n, 1, "split_sizes", sizes);
        for (int k = 0; k < n->part && k < count; k++)
            *from += sizes[k];
        return n->part < count;
    }
    return true;
}

static bool takes_part(const struct node *n)
{
    return graph_op_is(n, "aten.slice") || graph_op_is(n, "aten.select") ||
           graph_op_is(n, "aten.unbind") || graph_op_is(n, "aten.split") ||
           graph_op_is(n, "aten.split_with_sizes");
}

static bool take(struct nest *v, const struct node *n)
{
    bool one = graph_op_is(n, "aten.select") || graph_op_is(n, "aten.unbind");
    int64_t dim = 0, from = 0, step = 1, size;
    int d;

    graph_arg_int(n, one || graph_op_is(n, "aten.slice") ? 1 : 2, "dim", &dim);
    d = wrap(dim, v->dims);
    if (d < 0 || !part_begins(n, &from))
        return false;
    if (graph_op_is(n, "aten.slice"))
        graph_arg_int(n, 4, "step", &step);
    size = nest_size(v, d);
    from += from < 0 ? size : 0;
    from = from < 0 ? 0 : from > size ? size : from;
    if (!slice(v, d, from, step, one ? 1 : n->t.shape[d]))
        return false;
    if (one)
        drop(v, d);
    return v->dims == n->t.dims;
}

/* ---- seeing --------------------------------------------------------------------------- */

static bool is_float(const char *dtype)
{
    return strcmp(dtype, "f32") == 0 || strcmp(dtype, "f16") == 0 || strcmp(dtype, "bf16") == 0;
}

/* A product with a number, or another float type. */
static bool scales(const struct node *n, const struct node *x, double *factor)
{
    const json_t *arg = graph_arg_json(n, 1, "other");
    double number = 1;

    if (!is_float(n->t.dtype) || !is_float(x->t.dtype))
        return false;
    if (graph_op_is(n, "aten._to_copy") || graph_op_is(n, "aten.to"))
        return true;
    if (!arg || !graph_number(arg, &number))
        return false;
    if (graph_op_is(n, "aten.mul"))
        *factor *= number;
    else if (graph_op_is(n, "aten.div") && !graph_arg_json(n, 2, "rounding_mode") &&
             (number > 0 || number < 0))
        *factor /= number;
    else
        return false;
    return true;
}

static bool turn(const struct node *n, struct nest *v)
{
    int64_t i = -2, j = -1, dims[MAX_DIMS];
    int order[MAX_DIMS], p, q;

    for (int d = 0; d < v->dims; d++)
        order[d] = d;
    if (graph_op_is(n, "aten.permute")) {
        if (graph_arg_ints(n, 1, "dims", dims) != v->dims)
            return false;
        for (int d = 0; d < v->dims; d++)
            if ((order[d] = wrap(dims[d], v->dims)) < 0)
                return false;
        return permute(v, order);
    }
    if (graph_op_is(n, "aten.transpose") &&
        (!graph_arg_int(n, 1, "dim0", &i) || !graph_arg_int(n, 2, "dim1", &j)))
        return false;
    if (v->dims < 2)
        return true;
    p = wrap(i, v->dims);
    q = wrap(j, v->dims);
    if (p < 0 || q < 0)
        return false;
    order[p] = q;
    order[q] = p;
    return permute(v, order);
}

bool nest_of(const struct graph *g, const struct node *n, const struct node *base,
             enum nest_sees sees, struct nest *out)
{
    const struct node *x;
    double factor = 1;

    if (n == base) {
        struct tensor t = n->t;
        int64_t stride = 1;

        for (int d = t.dims; d-- > 0; stride *= t.shape[d])
            t.strides[d] = stride;
        return whole(&t, out);
    }
    if (strcmp(n->op, "input") == 0) {
        bool ok = n->index >= 0 && n->index < g->in_count && whole(&n->t, out);

        if (ok)
            out->input = n->index;
        return ok;
    }
    x = graph_arg(g, n, 0);
    if (!x || n->value)
        return false;
    if (sees == NEST_FACTOR && scales(n, x, &factor)) {
        if (!nest_of(g, x, base, sees, out) || out->dims != n->t.dims)
            return false;
        out->factor *= factor;
        return true;
    }
    if (!(graph_rearranges(n) || takes_part(n)) || !nest_of(g, x, base, sees, out))
        return false;
    if (takes_part(n))
        return take(out, n);
    if (graph_op_is(n, "aten.expand"))
        return nest_expand(out, &n->t);
    if (graph_op_is(n, "aten.t") || graph_op_is(n, "aten.mT") || graph_op_is(n, "aten.transpose") ||
        graph_op_is(n, "aten.permute"))
        return turn(n, out);
    return nest_reshape(out, &n->t);
}
