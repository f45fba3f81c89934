/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.h - a node that only rearranges elements of an input.
 *
 * A view says which input it is and, for each of its dimensions, which
 * dimensions of the input it runs over, so that a plan can write sizes and
 * strides in terms of the call's tensors. It owns nothing.
 */
#ifndef EXPERT_VIEW_H
#define EXPERT_VIEW_H

#include "expert/graph/graph.h"

/* One dimension of a view: dimensions [first,last) of the input, merged; first == last: a
 * dimension of size 1 or a broadcast. */
struct axis {
    int first, last;
    int64_t size, stride; /* stride 0: broadcast */
    /* A slice of a dimension, or merged with one: its size is not the product of the input's, and
     * its stride is that of dimension last - 1 multiplied by `times` (0: by 1). */
    bool split;
    int64_t times;
};

struct view {
    int input;
    int dims;
    struct axis axes[MAX_DIMS];
    int64_t from[MAX_DIMS]; /* its origin along each dimension of the input */
    bool sliced;            /* it does not cover the whole input */
    /* Dimension 0 as these, which do not merge; 0: it is one. Then axes[0] has only its size. */
    struct axis outer[MAX_DIMS];
    int outers;
};

/* Is the node an input with only rearranged elements? */
bool graph_view(const struct graph *g, const struct node *n, struct view *out);
/* The same, but pointwise functions of each element are allowed. */
bool graph_view_changed(const struct graph *g, const struct node *n,
                        bool (*function)(const struct node *n), struct view *out);
/* The same, but a dimension may also be split. */
bool graph_view_split(const struct graph *g, const struct node *n, struct view *out);
/* The same, but slices with steps are also allowed: see `from`. */
bool graph_view_part(const struct graph *g, const struct node *n, struct view *out);
/* The same, but the first of three dimensions may also be merged from several that do not merge: a
 * batch of matrices. */
bool graph_view_batch(const struct graph *g, const struct node *n, struct view *out);
/* Elements before the first one. */
int64_t view_offset(const struct view *v, const struct tensor *in);
/* A whole tensor as a view of itself. */
struct view view_whole(const struct tensor *t);
/* Keeps `count` elements of dimension d: every `step`th from `from` on. */
bool view_slice(struct view *v, int d, int64_t from, int64_t step, int64_t count);
/* Removes dimension d, which must have size 1. */
void view_drop(struct view *v, int d);
/* Broadcasts to the shape of `to`, aligned on the right. */
bool view_expand(struct view *v, const struct tensor *to);
/* Merges neighbouring dimensions and drops or adds those of size 1, to the shape of `to`. */
bool view_reshape(struct view *v, const struct tensor *to);
/* The same, splitting dimensions too. */
bool view_split(struct view *v, const struct tensor *to);
/* Does the op change only the shape, keeping the order of elements? */
bool graph_reshapes(const struct node *n);
/* Does the op only rearrange its first argument, leaving element values as they are? */
bool graph_rearranges(const struct node *n);

#endif
