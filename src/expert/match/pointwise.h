/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pointwise.h - a graph of pointwise operators; between pointwise.c, which finds what is read and
 * written and fills the recipe, and pointwise_turn.c, which knows when tiles are turned.
 */
#ifndef EXPERT_POINTWISE_H
#define EXPERT_POINTWISE_H

#include "expert/graph/index_space.h"
#include "expert/match/match.h"

struct pointwise_leaf {
    const struct node *node;
    struct view view;
    const char *name; /* of the kernel parameter */
};

struct target {
    const struct node *node;
    struct view view; /* of the output */
    const char *name; /* of the kernel parameter */
};

struct fused {
    const struct graph *g;
    struct arena *a;
    struct target targets[MAX_TENSORS];
    int target_count;
    struct pointwise_leaf leaves[MAX_TENSORS];
    int leaf_count;
    struct modes modes; /* targets first, then leaves */
    struct names names;
    const char *in_name[MAX_TENSORS], *out_name[MAX_TENSORS];
    const char *special[GRAPH_NODES];     /* forms of operators that are pointwise here */
    const struct node *like[GRAPH_NODES]; /* the leaf that is the same view; or NULL */
    bool seen[GRAPH_NODES];
};

/* "_1{}", "_0{}", or the kernel parameter that brings the stride. */
const char *pointwise_stride(const struct fused *f, int t, int mode, const char *name);

/* ---- pointwise_turn.c --------------------------------------------------------- */

/* Slots of the recipe's steps that turn tiles; `vec`: elements in 16 bytes. */
void pointwise_turn(struct fused *f, struct match *out, int vec);
/* Those of one tensor. */
void pointwise_turn_tensor(const struct fused *f, struct scope *item, int t, const char *name);

#endif
