/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nest.h - a view whose dimensions may each consist of several dimensions of an input.
 *
 * Batches and heads that were transposed, repeated and then merged into one dimension have no
 * single stride. Here such a dimension is a list of strands, outermost first, each with its own
 * size and stride, so that every reshape of a view is again a view. Strands of size 1 are left out.
 */
#ifndef EXPERT_NEST_H
#define EXPERT_NEST_H

#include "expert/graph/graph.h"

enum { NEST_STRANDS = 16 };

struct strand {
    int64_t size, stride; /* stride 0: broadcast */
    int dim;              /* of the input; -1: of none */
    int64_t times;        /* multiple of the stride of `dim` */
    bool whole;           /* it covers all of `dim` */
};

struct nest {
    int input;
    int dims;
    int first[MAX_DIMS + 1]; /* dimension d has strands [first[d], first[d + 1]) */
    struct strand s[NEST_STRANDS];
    int64_t from[MAX_DIMS]; /* its origin along each dimension of the input */
    double factor;          /* factor by which elements are multiplied */
};

/* How far nest_of may see. */
enum nest_sees {
    NEST_PLAIN,  /* rearrangements and parts */
    NEST_FACTOR, /* products with numbers too, and other float types */
};

/* Is the node such a view of an input? `base`, if not NULL, counts as a contiguous input. */
bool nest_of(const struct graph *g, const struct node *n, const struct node *base,
             enum nest_sees sees, struct nest *out);
/* Broadcasts to the shape of `to`, aligned on the right. */
bool nest_expand(struct nest *v, const struct tensor *to);
bool nest_reshape(struct nest *v, const struct tensor *to);
int64_t nest_size(const struct nest *v, int d);
/* Splits dimension d into two, the inner one of size `inner`. */
bool nest_split(struct nest *v, int d, int64_t inner);

#endif
