/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - a graph that reduces rows, split into stages; the interface between rows.c, which splits
 * it, and rows_slots.c, which fills the recipe.
 *
 * A pass reduces an element function over the row; a scalar is computed once
 * per row from passes before it; then outputs are written, per element or per
 * row. A total reduces a value per row over all rows.
 */
#ifndef EXPERT_ROWS_H
#define EXPERT_ROWS_H

#include "expert/graph/index_space.h"
#include "expert/match/match.h"

enum { ROW_STAGES = 24, ROW_TENSORS = 24 };

struct row_tensor {
    const struct node *node; /* NULL: an output */
    const char *name, *dtype;
    int index; /* in the call's inputs or outputs */
    bool per_row;
    struct view kept;  /* axes of the rows; `from` and `sliced` of both */
    bool total;        /* an output with one element */
    struct view along; /* axes of the reduced dimensions; none when per_row */
    int uses;          /* stages that read it */
};

/* A device function, or just its argument if it would only return that. */
struct function {
    const char *name, *body;
    const char *quick; /* the body with the hardware's approximate functions */
    const char *value;
    bool reads[ROW_TENSORS], takes[ROW_STAGES]; /* tensors and results of stages it refers to */
    bool alone;                                 /* it only returns its argument */
};

struct row_stage {
    bool pass;         /* it reduces the row */
    bool total;        /* a total: it reduces f, a value per row, over all rows */
    const char *value; /* type of its result where it is read; the kernel holds a float */
    const char *name;  /* of its result in the kernel: "row_max" */
    const char *combine, *result; /* of both: "Max"; result from the combined value, $it */
    const char *pair;             /* accumulator for this pass and the next together; or NULL */
    const char *place; /* instead of a pass it reads the element at this index: "target", or NULL */
    const char *text;  /* of a total: the row's value, when f is none */
    int with;          /* 1 + the earlier pass whose loop it shares; 0: a loop of its own */
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
    struct row_stage stages[ROW_STAGES];
    int stage_count;
    struct function outputs[MAX_TENSORS];
    struct names names;
    struct modes row_modes, col_modes;
    const char *kernel;
    const struct scan *scan; /* a running value along the rows; NULL: a reduction */
};

struct scan {
    bool sum, reverse, exclusive;
    const char *finish; /* statements that make the output of `value`; NULL: it is the output */
};

#define ROWS_NLL "aten.nll_loss_forward"

/* ---- rows.c: cutting ------------------------------------------------------- */

/* From q->full and q->reduced, the kept and the reduced dimensions alone. */
void rows_split_shape(struct rows *q);
/* Names everything that an element's or a row's value depends on. A row's value gets a name,
 * too. */
bool rows_element(struct rows *q, const struct node *n);
bool rows_value(struct rows *q, const struct node *n);
/* An input with one value per row, beside values of shape `at`. */
bool rows_leaf(struct rows *q, const struct node *n, const struct tensor *at);
/* Is it one value per row, computed from reductions? */
bool rows_is_row(const struct rows *q, const struct node *n);
/* Is it one value, computed from a reduction over what the rows gave, or over all elements? */
bool rows_is_total(const struct rows *q, const struct node *n);
/* The function that computes n from the names so far. */
bool rows_function(struct rows *q, const struct node *n, const char *suffix, struct function *out);
/* The next stage, not yet counted; NULL: too many. */
struct row_stage *rows_stage(struct rows *q, const char *wanted);
struct row_tensor *rows_tensor_add(struct rows *q, const struct node *n, const char *wanted,
                                   const char *dtype, int index);
/* Adds output k, one value per row or per element, from what is named so far. */
bool rows_output(struct rows *q, int k, const struct node *n, bool per_row);
void rows_start(struct rows *q, const struct graph *g, struct arena *a, struct match *out);

/* Lets passes that do not depend on each other share a loop. */
void rows_join(struct rows *q);

/* ---- rows_total.c ----------------------------------------------------------- */

bool rows_total_output(struct rows *q, int k);
/* Makes a negative log likelihood per row known. */
bool rows_nll(struct rows *q, const struct node *n);

/* ---- rows_slots.c ------------------------------------------------------------ */

/* Brings all tensors to (n, rows), picks the recipe by their layout and fills its scope. */
bool rows_fill_slots(struct rows *q);

#endif
