/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.c - move views below pointwise operators, to the inputs, and joins above them.
 *
 * A value is asked for as it is seen through a path: views, the one nearest to
 * it first. A pointwise operator hands the path to its operands, broadcast to
 * its own shape before; a view becomes one more step of the path; whatever else
 * there is keeps its node, with copies of the path's views behind it. A join
 * near a result is split into parts of the result, each of them seen through a
 * slice; a slice of a join is a slice of what it joins.
 *
 * Invariant: nodes of the old graph keep their ids and stand before the new ones.
 */
#include "expert/graph/sink.h"

#include "base/json.h"
#include "expert/graph/expr.h"
#include "expert/graph/view.h"

#include <string.h>

enum { FIRST_ID = 1 << 18, SINK_NODES = 256, SINK_PARTS = 8, SINK_DEPTH = 200 };

/* One view on the way to a result; its shape is that of what is seen. */
struct step {
    const char *op;
    const json_t *args; /* the first is what it is of */
    struct tensor t;
    int part, dim; /* dim: of a slice of ours; else -1 */
    int64_t from;
    const struct step *next; /* towards the result */
};

struct sink {
    const struct graph *g;
    struct graph *s;
    struct arena *a;
    int made, depth;
    bool failed, seen[GRAPH_NODES];
    struct {
        const struct node *n;
        const struct step *path;
        int id;
    } memo[SINK_NODES];
    int memo_count;
};

static int give_up(struct sink *k)
{
    k->failed = true;
    return -1;
}

static int add_node(struct sink *k, const struct node *like, const char *op, const json_t *args,
                    const struct tensor *t)
{
    struct node *n = &k->s->nodes[k->s->count];

    if (k->made == SINK_NODES)
        return give_up(k);
    *n = *like;
    n->op = op;
    n->id = FIRST_ID + k->made++;
    n->args = args;
    n->t = *t;
    n->t.dtype = like->t.dtype;
    n->value = NULL;
    n->part = 0;
    for (int64_t d = t->dims, stride = 1; d-- > 0; stride *= t->shape[d])
        n->t.strides[d] = stride;
    k->s->count++;
    return n->id;
}

static json_t *node_json(int id)
{
    return json_pack("{s:i,s:i}", "node", id & (GRAPH_IDS - 1), "part", id / GRAPH_IDS);
}

/* The arguments with another first one. */
static const json_t *args_of(struct sink *k, const json_t *args, int id)
{
    json_t *copy = json_copy((json_t *)args);

    json_array_set_new(copy, 0, node_json(id));
    return json_own(k->a, copy);
}

static const struct step *step_of(struct sink *k, const struct node *view, const struct step *next)
{
    struct step *s = arena_alloc(k->a, sizeof(*s));

    *s = (struct step){.op = view->op,
                       .args = view->args,
                       .t = view->t,
                       .part = view->part,
                       .dim = -1,
                       .next = next};
    return s;
}

static const struct step *expand_step(struct sink *k, const struct tensor *to,
                                      const struct step *next)
{
    struct step *s = arena_alloc(k->a, sizeof(*s));
    json_t *sizes = json_array();

    for (int d = 0; d < to->dims; d++)
        json_array_append_new(sizes, json_integer(to->shape[d]));
    *s = (struct step){.op = "aten.expand.default",
                       .args = json_own(k->a, json_pack("[{},{s:o}]", "ints", sizes)),
                       .t = *to,
                       .dim = -1,
                       .next = next};
    return s;
}

static const struct step *slice_step(struct sink *k, const struct tensor *of, int dim, int64_t from,
                                     int64_t count, const struct step *next)
{
    struct step *s = arena_alloc(k->a, sizeof(*s));

    *s = (struct step){.op = "aten.slice.Tensor", .t = *of, .dim = dim, .from = from, .next = next};
    s->args = json_own(k->a, json_pack("[{},{s:i},{s:I},{s:I}]", "value", dim, "value",
                                       (json_int_t)from, "value", (json_int_t)(from + count)));
    s->t.shape[dim] = count;
    return s;
}

/* Is it a view whose results are elements of its argument? */
static bool is_view(const struct graph *g, const struct node *n)
{
    return graph_arg(g, n, 0) && (graph_rearranges(n) || graph_op_is(n, "aten.slice") ||
                                  graph_op_is(n, "aten.select") || graph_gives_parts(n));
}

/* The node itself with the path's views behind it. */
static int with_path(struct sink *k, const struct node *n, const struct step *path)
{
    int id = n->id;

    for (; path && !k->failed; path = path->next) {
        id = add_node(k, n, path->op, args_of(k, path->args, id), &path->t);
        k->s->nodes[k->s->count - 1].part = path->part;
    }
    return id;
}

static int moved(struct sink *k, const struct node *n, const struct step *path);

/* An operator whose elements depend on the same elements of its operands alone. */
static bool is_pointwise(const struct sink *k, const struct node *n)
{
    const char *key;
    json_t *value;

    if (strcmp(n->op, "input") == 0 || n->value || !expr_knows(n, k->a))
        return false;
    json_object_foreach((json_t *)n->kwargs, key, value)
    {
        if (json_object_get(value, "node"))
            return false;
    }
    for (size_t i = 0; i < json_array_size(n->args); i++)
        if (json_object_get(json_array_get(n->args, i), "list"))
            return false;
    return true;
}

static bool same_shape(const struct tensor *x, const struct tensor *y)
{
    return x->dims == y->dims &&
           memcmp(x->shape, y->shape, sizeof(*x->shape) * (size_t)x->dims) == 0;
}

static int moved_operator(struct sink *k, const struct node *n, const struct step *path)
{
    json_t *args = json_copy((json_t *)n->args);
    struct tensor t = n->t;

    for (const struct step *s = path; s; s = s->next)
        t = s->t;
    for (size_t i = 0; i < json_array_size(n->args) && !k->failed; i++) {
        const struct node *x = graph_arg(k->g, n, i);
        const struct step *way = path;

        if (!x || x->value)
            continue;
        if (path && tensor_numel(&x->t) == 1 && x->t.dims <= t.dims)
            way = NULL; /* one value, wherever it is read */
        else if (path && !same_shape(&x->t, &n->t))
            way = expand_step(k, &n->t, path);
        json_array_set_new(args, i, node_json(moved(k, x, way)));
    }
    return add_node(k, n, n->op, json_own(k->a, args), &t);
}

/* What a slice takes of a join; -1: parts of several. */
static int moved_part(struct sink *k, const struct node *n, const struct step *slice)
{
    const json_t *list = json_object_get(json_array_get(n->args, 0), "list"), *item;
    int64_t dim = 0, begin = 0, count = slice->t.shape[slice->dim];
    size_t i;

    graph_arg_int(n, 1, "dim", &dim);
    dim += dim < 0 ? n->t.dims : 0;
    json_array_foreach(list, i, item)
    {
        const struct node *x =
            json_object_get(item, "node") ? graph_node(k->g, graph_id(item)) : NULL;

        if (!x || dim != slice->dim || x->t.dims != n->t.dims ||
            strcmp(x->t.dtype, n->t.dtype) != 0)
            return give_up(k);
        if (slice->from >= begin && slice->from + count <= begin + x->t.shape[dim])
            return moved(
                k, x,
                count == x->t.shape[dim]
                    ? slice->next
                    : slice_step(k, &x->t, (int)dim, slice->from - begin, count, slice->next));
        begin += x->t.shape[dim];
    }
    return give_up(k);
}

static int moved(struct sink *k, const struct node *n, const struct step *path)
{
    struct view v;
    int id;

    for (int i = 0; i < k->memo_count; i++)
        if (k->memo[i].n == n && k->memo[i].path == path)
            return k->memo[i].id;
    if (k->failed || k->depth == SINK_DEPTH || k->memo_count == SINK_NODES)
        return give_up(k);
    k->depth++;
    if (n->value || strcmp(n->op, "input") == 0 || graph_view_part(k->g, n, &v))
        id = with_path(k, n, path);
    else if (is_pointwise(k, n))
        id = moved_operator(k, n, path);
    else if (is_view(k->g, n))
        id = moved(k, graph_arg(k->g, n, 0), step_of(k, n, path));
    else if (path && path->dim >= 0 && graph_op_is(n, "aten.cat"))
        id = moved_part(k, n, path);
    else
        id = with_path(k, n, path);
    k->depth--;
    if (k->memo_count == SINK_NODES)
        return give_up(k);
    k->memo[k->memo_count].n = n;
    k->memo[k->memo_count].path = path;
    k->memo[k->memo_count++].id = id;
    return id;
}

/* ---- joins ------------------------------------------------------------------- */

/* The first join below n that pointwise operators alone change, none of them in another shape. */
static const struct node *join_below(struct sink *k, const struct node *n, int depth)
{
    const struct node *found = NULL;

    if (graph_op_is(n, "aten.cat"))
        return n;
    if (depth == SINK_DEPTH || k->seen[n - k->g->nodes] || !is_pointwise(k, n))
        return NULL;
    k->seen[n - k->g->nodes] = true;
    for (size_t i = 0; i < json_array_size(n->args) && !found; i++) {
        const struct node *x = graph_arg(k->g, n, i);

        if (x && same_shape(&x->t, &n->t))
            found = join_below(k, x, depth + 1);
    }
    return found;
}

static int64_t common(int64_t x, int64_t y)
{
    while (y) {
        int64_t rest = x % y;

        x = y;
        y = rest;
    }
    return x;
}

/* The largest size of which all that is joined are multiples. */
static int64_t piece_of(const struct sink *k, const struct node *join, int64_t dim)
{
    const json_t *list = json_object_get(json_array_get(join->args, 0), "list"), *item;
    int64_t piece = 0;
    size_t i;

    json_array_foreach(list, i, item)
    {
        const struct node *x =
            json_object_get(item, "node") ? graph_node(k->g, graph_id(item)) : NULL;

        if (!x || x->t.dims != join->t.dims)
            return 0;
        piece = common(piece, x->t.shape[dim]);
    }
    return piece;
}

/* A result as a join of its parts. */
static int joined(struct sink *k, const struct node *n, const struct node *join)
{
    json_t *list = json_array();
    const json_t *args;
    int64_t dim = 0, piece;

    graph_arg_int(join, 1, "dim", &dim);
    dim += dim < 0 ? join->t.dims : 0;
    args = json_own(k->a, json_pack("[{s:o},{s:I}]", "list", list, "value", (json_int_t)dim));
    piece = dim < 0 || dim >= n->t.dims ? 0 : piece_of(k, join, dim);
    if (piece == 0 || n->t.shape[dim] / piece > SINK_PARTS || n->t.shape[dim] % piece)
        return give_up(k);
    for (int64_t from = 0; from < n->t.shape[dim] && !k->failed; from += piece)
        json_array_append_new(
            list, node_json(moved(k, n, slice_step(k, &n->t, (int)dim, from, piece, NULL))));
    return add_node(k, n, "aten.cat.default", args, &n->t);
}

static bool needs_moving(const struct sink *k)
{
    for (int i = 0; i < k->g->count; i++) {
        const struct node *n = &k->g->nodes[i], *x = graph_arg(k->g, n, 0);

        if (strcmp(n->op, "input") != 0 && is_view(k->g, n) && x && is_pointwise(k, x))
            return true;
    }
    return false;
}

struct graph *graph_sink(const struct graph *g, struct arena *a)
{
    struct sink *k = arena_alloc(a, sizeof(*k));
    const struct node *join[MAX_TENSORS];
    bool any;

    *k = (struct sink){.g = g, .s = arena_alloc(a, sizeof(*g)), .a = a};
    any = needs_moving(k);
    for (int i = 0; i < g->out_count; i++) {
        const struct node *n = graph_node(g, g->result[i]);

        join[i] = n && !graph_op_is(n, "aten.cat") ? join_below(k, n, 0) : NULL;
        any = any || join[i];
    }
    if (!any || g->count + SINK_NODES > GRAPH_NODES)
        return NULL;
    *k->s = *g;
    k->s->nodes = arena_array(a, (size_t)g->count + SINK_NODES, sizeof(*g->nodes));
    memcpy(k->s->nodes, g->nodes, (size_t)g->count * sizeof(*g->nodes));
    for (int i = 0; i < g->out_count && !k->failed; i++) {
        const struct node *n = graph_node(g, g->result[i]);

        if (!n)
            return NULL;
        k->s->result[i] = join[i] ? joined(k, n, join[i]) : moved(k, n, NULL);
    }
    return k->failed ? NULL : k->s;
}
