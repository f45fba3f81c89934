/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nest.h - a view whose dimensions may each be made of several of an input's.
 *
 * Batches and heads that were transposed, repeated and then merged into one
 * dimension have no single stride. Here such a dimension is a list of strands,
 * the outermost first, each with a size and a stride of its own, so that every
 * reshape of a view is a view again. Strands of size 1 are left out.
 */
#ifndef EXPERT_NEST_H
#define EXPERT_NEST_H

#include "expert/graph/graph.h"

enum { NEST_STRANDS = 16 };

struct strand {
    int64_t size, stride; /* stride 0: broadcast */
    int dim;              /* of the input; -1: of none */
    int64_t times;        /* the stride is that of `dim`, so many times */
    bool whole;           /* it runs over all of `dim` */
};

struct nest {
    int input;
    int dims;
    int first[MAX_DIMS + 1]; /* dimension d has strands [first[d], first[d + 1]) */
    struct strand s[NEST_STRANDS];
    int64_t from[MAX_DIMS]; /* where it begins, along each dimension of the input */
    double factor;          /* what elements are multiplied by on the way */
};

/* How far nest_of may see. */
enum nest_sees {
    NEST_PLAIN,  /* rearrangements and parts */
    NEST_FACTOR, /* products with numbers too, and other float types */
};

/* Is the node an input seen that way? `base`, if not NULL, counts as one, without gaps. */
bool nest_of(const struct graph *g, const struct node *n, const struct node *base,
             enum nest_sees sees, struct nest *out);
/* Broadcasts to the shape of `to`, aligned on the right. */
bool nest_expand(struct nest *v, const struct tensor *to);
bool nest_reshape(struct nest *v, const struct tensor *to);
int64_t nest_size(const struct nest *v, int d);
/* Splits dimension d into two, the inner one of size `inner`. */
bool nest_split(struct nest *v, int d, int64_t inner);

#endif
