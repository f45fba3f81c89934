/*
 * rows.h - a graph that reduces rows, cut into stages; between rows.c, which cuts, and
 * rows_fill.c, which fills the recipe.
 *
 * A pass reduces an element function over the row; a scalar is computed once
 * per row from passes before it; then outputs are written, per element or per
 * row.
 */
#ifndef EXPERT_ROWS_H
#define EXPERT_ROWS_H

#include "expert/match.h"
#include "expert/modes.h"

enum { ROW_STAGES = 24, ROW_TENSORS = 24 };

struct row_tensor {
    const struct node *node; /* NULL: an output */
    const char *name, *dtype;
    int index; /* in the call's inputs or outputs */
    bool per_row;
    struct view kept;  /* axes of the rows */
    struct view along; /* axes of the reduced dimensions; none when per_row */
    int uses;          /* stages that read it */
};

/* A device function, or, when it would only return its argument, that argument. */
struct function {
    const char *name, *body;
    const char *value;
    bool reads[ROW_TENSORS], takes[ROW_STAGES]; /* tensors and results of stages it refers to */
    bool alone;                                 /* it only returns its argument */
};

struct stage {
    bool pass;
    const char *name;             /* of its result in the kernel: "row_max" */
    const char *combine, *result; /* of a pass: "Max"; what becomes of the combined value, $it */
    struct function f;
};

struct rows {
    const struct graph *g;
    struct arena *a;
    struct match *out;
    struct tensor full; /* shape of what is reduced */
    bool reduced[MAX_DIMS];
    struct tensor kept, along; /* its kept and reduced dimensions alone */
    struct expr e;
    bool ready[GRAPH_NODES];
    bool row_named[GRAPH_NODES]; /* e.leaf holds a row's value */
    struct row_tensor tensors[ROW_TENSORS];
    int tensor_count;
    struct stage stages[ROW_STAGES];
    int stage_count;
    struct function outputs[MAX_TENSORS];
    struct names names;
    struct modes row_modes, col_modes;
    const char *kernel;
};

/* Brings all tensors to (n, rows) and fills the scope of the recipe row_reduction. */
bool rows_fill(struct rows *q);

#endif
