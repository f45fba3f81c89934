/* SPDX-License-Identifier: Apache-2.0 */
/* conv_epilogue.h - what the matcher of convolutions knows of one, and what follows its sum. */
#ifndef EXPERT_CONV_EPILOGUE_H
#define EXPERT_CONV_EPILOGUE_H

#include "expert/match/match.h"

enum { CONV_DIMS = 3, CONV_LEAVES = 12 };

struct conv_leaf {
    const struct node *node;
    int input;
    const char *name;
    struct axis n, k, p;
};

struct conv {
    const struct graph *g;
    struct arena *a;
    const struct node *node, *x, *w;
    int64_t in[CONV_DIMS], out[CONV_DIMS], taps[CONV_DIMS], stride[CONV_DIMS], pad[CONV_DIMS],
        step[CONV_DIMS];
    int64_t channels, results, groups;
    int dims;
    bool transposed, expand, joined;
    bool w_last, y_last; /* lie channels last */
    int64_t rows_each;   /* of the product, for an output channel */
    struct tensor shape; /* of the result as (batch, channels, pixels) */
    struct conv_leaf leaves[CONV_LEAVES];
    int leaf_count;
    bool biased;
    const char *special[GRAPH_NODES]; /* by node: its form */
    struct names names;
    bool seen[GRAPH_NODES];
};

bool conv_same_shape(const struct tensor *a, const struct tensor *b);
/* Bias, operators and tensors behind the sum: leaves of q. */
bool conv_read_epilogue(struct conv *q, struct match *out);
/* Its slots: functions for all of it, its early and its late part. */
bool conv_fill_epilogue(struct conv *q, struct scope *s, struct match *out);

#endif
