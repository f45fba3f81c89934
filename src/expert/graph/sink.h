/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.h - views of computed values, as values computed from views.
 *
 * (x + b).t() becomes x.t() + b.t(), and f(cat(a, b), z) becomes cat(f(a, z[:k]), f(b, z[k:])):
 * what rearranges elements goes to the inputs, where reading them costs nothing more, and what
 * joins them to the results.
 */
#ifndef EXPERT_SINK_H
#define EXPERT_SINK_H

#include "expert/graph/graph.h"

/* The same results by another graph, whose nodes of g keep their ids; NULL: there is nothing to
 * move, or too much. */
struct graph *graph_sink(const struct graph *g, struct arena *a);

#endif
