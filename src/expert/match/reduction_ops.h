/* SPDX-License-Identifier: Apache-2.0 */
/* reduction_ops.h - reduction operators as passes over a row and a final value
 * (reduction_ops.def). */
#ifndef EXPERT_REDUCTION_OPS_H
#define EXPERT_REDUCTION_OPS_H

#include "expert/graph/graph.h"

enum { ROW_PASSES = 3, LAST = -1, OPERANDS = -2, ALL = -3, CHANNELS = -4, GROUPS = -5 };
enum value_kind { PER_ROW, ELEMENT };

struct pass_form {
    const char *name, *combine, *element, *result;
};

struct row_form {
    const char *op;
    enum value_kind kind;
    int dims_arg; /* or LAST, OPERANDS, ... */
    struct choice {
        int arg; /* -1: none */
        double value, fallback;
    } choice;
    const char *pair, *value;
    struct pass_form passes[ROW_PASSES];
};

/* NULL: the node is not a reduction, or not with these arguments. */
const struct row_form *row_form_of(const struct graph *g, const struct node *n);
/* The dimensions of its argument that it reduces; *x, the argument's shape, becomes the shape they
 * refer to. False: not clear from the arguments. */
bool row_form_dims(const struct node *n, const struct row_form *f, struct tensor *x,
                   bool out[MAX_DIMS]);

#endif
