/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match.h - choose a recipe for a graph, and the scope that fills it.
 *
 * One matcher per recipe. A matcher returns a scope for its recipe, or says in one clause why the
 * graph does not match ("softmax runs over dimension 1 of 3"). To add a recipe: write
 * recipes/NAME.cu, a matcher, and its row in match.c.
 */
#ifndef EXPERT_MATCH_H
#define EXPERT_MATCH_H

#include "expert/compose/recipe.h"
#include "expert/graph/expr.h"
#include "expert/graph/view.h"

struct parts;

/* Q, K or V as attention reads it: an input whose rows and columns lie at these distances. */
struct match_read {
    int input, modes;
    int64_t offset, row, head; /* elements before the first one; between rows; columns */
    int64_t size[MAX_DIMS], step[MAX_DIMS]; /* of the batch; step 0: shared */
};

struct match {
    const char *recipe;
    struct scope *scope;
    const char *why_not;       /* when it does not match */
    const char *refused;       /* an operator and why no kernel can compute it; may be NULL */
    const struct parts *parts; /* of a task that takes several kernels (partition.h); else NULL */
    const struct graph *graph; /* the graph that was matched instead of the task's; else NULL */
    double moved;              /* bytes read and written, of reductions and of generic kernels */
    int launches;
    const struct match_read *reads; /* of attention_split_sm90: Q, K and V; else NULL */
    const int *beside;              /* inputs that it reads beside the scores */
    int beside_count;
    int64_t columns; /* of gemm_sm90's result, which lies row by row; 0: a batch of them */
    bool scattered;  /* neighbouring threads read elements that lie apart */
};

/* How long it takes, in ns, by what it moves and launches on a large GPU: to compare two ways. */
double match_cost(const struct match *m);

/* Does a tensor lie channels last, without gaps? */
bool match_channels_last(const struct tensor *t);

bool match_graph(const struct graph *g, struct arena *a, struct match *out);
/* Matches by one recipe only. */
bool match_one(const struct graph *g, struct arena *a, struct match *out);
/* The recipe to show a language model for this class of task, and a graph for it. */
void match_nearest(enum kernel_class class, const char **recipe, const char **description);
/* The same, with an operator that the task (its description) does not have. */
void match_other(enum kernel_class class, const json_t *task, const char **recipe,
                 const char **description);

bool match_pointwise(const struct graph *g, struct arena *a, struct match *out);
bool match_rows(const struct graph *g, struct arena *a, struct match *out);
bool match_scan(const struct graph *g, struct arena *a, struct match *out);
bool match_pooling(const struct graph *g, struct arena *a, struct match *out);
bool match_concat(const struct graph *g, struct arena *a, struct match *out);
bool match_convolution(const struct graph *g, struct arena *a, struct match *out);
bool match_gemm(const struct graph *g, struct arena *a, struct match *out);
bool match_attention(const struct graph *g, struct arena *a, struct match *out);
bool match_recurrent(const struct graph *g, struct arena *a, struct match *out);
/* Fallback for graphs without a recipe (generic/): correct, not fast. */
bool match_generic(const struct graph *g, struct arena *a, struct match *out);

/* ---- shared by matchers --------------------------------------------------- */

/* "25_Swish" -> "swish". */
const char *match_kernel_name(const struct graph *g, struct arena *a);
/* "x" -> "X", "bias" -> "Bias": for gX, rX. */
char *match_capital(const char *name, struct arena *a);
char *match_lower(const char *name, struct arena *a);
/* "t->shape[0] * t->shape[1]", or "1" for an empty range. */
const char *match_size_text(const char *tensor, int first, int last, struct arena *a);
/* How the plan finds an axis' size and stride. */
const char *match_axis_size(const char *tensor, const struct axis *x, struct arena *a);
const char *match_axis_stride(const char *tensor, const struct axis *x, struct arena *a);
/* The place of a view's first element: "x->strides[1] * 3", or "" for 0. */
const char *match_offset(const char *tensor, const int64_t from[MAX_DIMS], struct arena *a);
/* How the plan points at where a view begins: CUTEGEN_DATA(type, x), or CUTEGEN_AT further on. */
const char *match_pointer(const char *type, const char *tensor, const int64_t from[MAX_DIMS],
                          struct arena *a);
/* The list `check` requires this shape, where sizes of a split dimension are written as numbers;
 * false: none is. */
bool match_split_checks(struct scope *s, const char *tensor, const struct tensor *t,
                        const struct axis *axes, int count, struct arena *a);
/* The epilogue of a recipe's operator: walks from the result down to that operator; everything else
 * must be inputs, which are passed to `leaf` with the tensor they are combined with. */
struct epilogue {
    const struct graph *g;
    struct arena *a;
    const struct node *core;
    const char *what; /* "product": for reasons */
    bool *seen;       /* of every node */
    bool (*knows)(const struct node *n, struct arena *a);
    bool (*leaf)(void *owner, const struct node *n, const struct tensor *at, struct match *out);
    void *owner;
    /* Operators the owner writes itself, whose first argument comes from the core; or NULL. */
    bool (*own)(void *owner, const struct node *n, struct match *out);
};

bool match_epilogue(const struct epilogue *e, const struct node *n, struct match *out);
/* A batch norm with the statistics it is given, arguments 1 to 4: its form over them; or NULL. */
const char *match_fixed_norm(const struct graph *g, const struct node *n, struct arena *a);
/* The list `scalar`: the task's scalar arguments, which are written into the kernel. */
void match_scalars(const struct graph *g, struct scope *s);
bool match_no(struct match *out, struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
