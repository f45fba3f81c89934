/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - graphs of work: nodes in the order they were added, with their dependencies.
 *
 * A clone and an instantiated graph have the same nodes in the same places, so a node of one is
 * found in the other by its position.
 */
#include "simt/cuda/cuda.h"

#include <string.h>

struct cu_graph *graph_new(void)
{
    return xmalloc(sizeof(struct cu_graph));
}

static void node_release(struct cu_node *n)
{
    xfree(n->work.params);
    if (n->work.kind == WORK_GRAPH)
        graph_free(n->work.graph);
    xfree(n->after);
    xfree(n);
}

void graph_free(struct cu_graph *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->count; i++)
        node_release(g->node[i]);
    xfree(g->node);
    xfree(g);
}

static void own_work(struct cu_work *w)
{
    if (w->params) {
        unsigned char *copy = xmalloc(w->param_bytes + 16);

        memcpy(copy, w->params, w->param_bytes);
        w->params = copy;
    }
    if (w->kind == WORK_GRAPH)
        w->graph = graph_clone(w->graph);
}

struct cu_node *graph_add(struct cu_graph *g, const struct cu_work *w, struct cu_node *const *after,
                          size_t count)
{
    struct cu_node *n = xmalloc(sizeof *n);

    n->work = *w;
    own_work(&n->work);
    n->graph = g;
    n->after_count = count;
    if (count) {
        n->after = xmalloc(count * sizeof *n->after);
        memcpy(n->after, after, count * sizeof *n->after);
    }
    if (g->count == g->cap) {
        g->cap = g->cap ? g->cap * 2 : 16;
        g->node = xrealloc(g->node, g->cap * sizeof *g->node);
    }
    g->node[g->count++] = n;
    return n;
}

void graph_set(struct cu_node *n, const struct cu_work *w)
{
    struct cu_work old = n->work;

    n->work = *w;
    own_work(&n->work);
    xfree(old.params);
    if (old.kind == WORK_GRAPH)
        graph_free(old.graph);
}

int graph_depend(struct cu_node *from, struct cu_node *to)
{
    if (from->graph != to->graph)
        return CU_INVALID_VALUE;
    to->after = xrealloc(to->after, (to->after_count + 1) * sizeof *to->after);
    to->after[to->after_count++] = from;
    return CU_OK;
}

static size_t position(const struct cu_graph *g, const struct cu_node *n)
{
    size_t i = 0;

    while (i < g->count && g->node[i] != n)
        i++;
    return i;
}

/* The same nodes in the same places. */
struct cu_graph *graph_clone(const struct cu_graph *g)
{
    struct cu_graph *copy = graph_new();

    for (size_t i = 0; i < g->count; i++) {
        graph_add(copy, &g->node[i]->work, NULL, 0);
        copy->node[i]->disabled = g->node[i]->disabled;
    }
    for (size_t i = 0; i < g->count; i++)
        for (size_t k = 0; k < g->node[i]->after_count; k++) {
            size_t p = position(g, g->node[i]->after[k]);

            if (p < g->count)
                graph_depend(copy->node[p], copy->node[i]);
        }
    return copy;
}

int graph_instantiate(const struct cu_graph *g, struct cu_graph **out)
{
    *out = graph_clone(g);
    (*out)->is_exec = true;
    return CU_OK;
}

static bool waits(const struct cu_node *n, const bool *done)
{
    for (size_t i = 0; i < n->after_count; i++)
        if (!done[position(n->graph, n->after[i])])
            return true;
    return false;
}

int graph_run(struct cuda *c, const struct cu_graph *g)
{
    bool *done = xmalloc(g->count + 1);
    size_t left = g->count;
    int rc = CU_OK;

    for (bool moved = true; left && moved && !rc;) {
        moved = false;
        for (size_t i = 0; i < g->count && !rc; i++) {
            if (done[i] || waits(g->node[i], done))
                continue;
            if (!g->node[i]->disabled)
                rc = work_run(c, &g->node[i]->work, g);
            done[i] = moved = true;
            left--;
        }
    }
    xfree(done);
    return rc ? rc : left ? CU_INVALID_VALUE : CU_OK;
}

struct cu_node *graph_counterpart(struct cu_graph *exec, const struct cu_node *n)
{
    size_t i = position(n->graph, n);

    return i < exec->count ? exec->node[i] : NULL;
}
