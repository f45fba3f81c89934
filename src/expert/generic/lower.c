/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower.c - a graph of primitives: operators that have a body are replaced by it.
 *
 * The oracle gives the body of an operator as nodes with ids of their own
 * (oracle/primitives.py); "made" says which of them are its results. The operator itself remains as
 * an alias, so no argument has to be rewritten. A long list of tensors is joined in two steps: a
 * kernel reads only so many.
 */
#include "expert/generic/generic.h"

#include "base/json.h"

#include <string.h>

/* Tensors joined at once; numbers of the nodes that join them first, apart from all others. */
enum { JOINED = 24, JOIN_ID = 3 << 18 };

static bool expands(const struct node *n)
{
    return strcmp(n->op, "input") != 0 && json_object_get(n->whole, "body");
}

static const json_t *long_list(const struct node *n)
{
    const json_t *list = json_object_get(json_array_get(n->args, 0), "list");
    bool joins = graph_op_is(n, "aten.cat") || graph_op_is(n, "aten.stack");

    return joins && json_array_size(list) > JOINED ? list : NULL;
}

static size_t room_for(const struct graph *g)
{
    size_t room = 0, i;
    const json_t *inner;

    for (int k = 0; k < g->count; k++) {
        const json_t *body =
            expands(&g->nodes[k]) ? json_object_get(g->nodes[k].whole, "body") : NULL;

        room += 1 + json_array_size(long_list(&g->nodes[k])) / JOINED;
        room += long_list(&g->nodes[k]) != NULL;
        json_array_foreach(body, i, inner) room +=
            1 + json_array_size(json_object_get(inner, "parts"));
    }
    return room;
}

/* The nodes of n's body, once for all of its results. */
static bool add_body(struct graph *p, const struct node *n, struct arena *a, const char **why)
{
    const json_t *body = json_object_get(n->whole, "body"), *inner;
    size_t i;

    if (graph_node(p, (int)json_int_or(json_array_get(body, 0), "id", -1)))
        return true;
    json_array_foreach(body, i, inner)
    {
        int before = p->count;

        if (!graph_add_node(p, inner, a, why))
            return false;
        for (; before < p->count; before++)
            p->nodes[before].inner = true;
    }
    return true;
}

/* Is it a result, or an argument of any node? */
static bool is_read(const struct graph *g, int id)
{
    const json_t *arg, *item;
    size_t i, k;

    for (int r = 0; r < g->out_count; r++)
        if (g->result[r] == id)
            return true;
    for (int n = 0; n < g->count; n++)
        json_array_foreach(g->nodes[n].args, i, arg)
        {
            if (json_object_get(arg, "node") && graph_id(arg) == id)
                return true;
            json_array_foreach(json_object_get(arg, "list"), k,
                               item) if (json_object_get(item, "node") &&
                                         graph_id(item) == id) return true;
        }
    return false;
}

/* Some tensors of n's list, joined. */
static json_t *add_join(struct graph *p, const struct node *n, const json_t *list, size_t first,
                        int dim, struct arena *a)
{
    struct node *part = &p->nodes[p->count];
    json_t *items = json_array(), *args = json_pack("[{s:o},{s:i}]", "list", items, "value", dim);
    int64_t size = 0;

    *part = *n;
    for (size_t i = first; i < first + JOINED && i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const struct node *x = json_object_get(item, "node") ? graph_node(p, graph_id(item)) : NULL;

        json_array_append(items, (json_t *)(uintptr_t)item);
        size += !x || graph_op_is(n, "aten.stack") || x->t.dims <= dim ? 1 : x->t.shape[dim];
    }
    part->t.shape[dim] = size;
    part->args = json_own(a, args);
    part->id = JOIN_ID + p->count++;
    return json_pack("{s:i}", "node", part->id);
}

/* Is it a list that joins as any other does: all tensors of its own rank, or stacked? */
static bool plain_list(const struct graph *p, const struct node *n, const json_t *list)
{
    bool stack = graph_op_is(n, "aten.stack");
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        const struct node *x = json_object_get(item, "node") ? graph_node(p, graph_id(item)) : NULL;

        if (!x || x->t.dims + stack != n->t.dims)
            return false;
    }
    return n->t.dims > 0;
}

static bool add_joined(struct graph *p, const struct node *n, struct arena *a)
{
    const json_t *list = long_list(n);
    int dim = dim_wrap(arg_int_or(n, 1, "dim", 0), n->t.dims);
    json_t *parts;
    struct node *whole;

    if (!list || !plain_list(p, n, list))
        return false;
    parts = json_array();
    for (size_t i = 0; i < json_array_size(list); i += JOINED)
        json_array_append_new(parts, add_join(p, n, list, i, dim, a));
    whole = &p->nodes[p->count++];
    *whole = *n;
    whole->op = "aten.cat.default";
    whole->args = json_own(a, json_pack("[{s:o},{s:i}]", "list", parts, "value", dim));
    return true;
}

static bool add(struct graph *p, const struct graph *g, const struct node *n, struct arena *a,
                const char **why)
{
    const json_t *made = json_object_get(n->whole, "made"), *result;
    struct node *copy;
    json_t *args;

    if (expands(n) && json_array_size(json_object_get(n->whole, "body")) && !add_body(p, n, a, why))
        return false;
    if (add_joined(p, n, a))
        return true;
    copy = &p->nodes[p->count++];
    *copy = *n;
    if (!expands(n))
        return true;
    result = json_array_get(made, (size_t)(n->id >> 20));
    if (json_object_get(result, "none") && !is_read(g, n->id)) { /* pivots of a solution */
        p->count--;
        return true;
    }
    if (!json_object_get(result, "node") || !graph_node(p, graph_id(result))) {
        *why = arena_printf(a, "%s: a result that its body does not make", n->op);
        return false;
    }
    args = json_array();
    json_array_append(args, (json_t *)(uintptr_t)result);
    copy->args = json_own(a, args);
    copy->op = "aten.alias.default";
    copy->part = 0;
    return true;
}

struct graph *graph_lower(const struct graph *g, struct arena *a, const char **why)
{
    struct graph *p = arena_alloc(a, sizeof(*p));
    size_t room = room_for(g);

    *p = *g;
    p->count = 0;
    p->size_count = 0; /* numbers are written literally */
    if (room > GRAPH_NODES) {
        *why = arena_printf(a, "it has %zu primitives, more than %d", room, GRAPH_NODES);
        return NULL;
    }
    p->nodes = arena_array(a, room, sizeof(*p->nodes));
    for (int k = 0; k < g->count; k++)
        if (!add(p, g, &g->nodes[k], a, why))
            return NULL;
    return p;
}
