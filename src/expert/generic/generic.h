/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generic.h - kernels for graphs without a recipe: one thread, or a team of threads, per result.
 *
 * A graph is lowered to primitives (lower.c). storage.c decides which of them are stored, and each
 * stored one becomes a kernel (kernels.c). Within a kernel a value is a function of an index:
 * value_at() writes the statements that compute one element of a node, through views, pointwise
 * operators and sums, down to values in memory.
 *
 * Invariants
 * 1. Sizes and strides are written into the kernels; the plan requires them.
 * 2. A value written at depth 0 of loops has the same index in all threads of
 *    a team, so a team may synchronise there (shuffles, barriers).
 * 3. Values in the body of a decomposed operator are floats if the operator's own type has 16 bits.
 */
#ifndef EXPERT_GENERIC_H
#define EXPERT_GENERIC_H

#include "base/buf.h"
#include "expert/graph/expr.h"
#include "expert/graph/graph.h"

enum { GENERIC_ARGS = 28, GENERIC_MEMO = 1024, GENERIC_BYTES = 256 * 1024 };

/* An element of a node: a C text per dimension, a name or a number. */
struct coords {
    const char *at[MAX_DIMS];
};

struct generic {
    const struct graph *g; /* of primitives */
    struct arena *a;
    const char *why; /* why it cannot be written: an operator and the reason */
    bool *kept;      /* by position of the node: it has memory */
    bool special;    /* out: a kernel calls functions of recipes/special.cuh */
    bool sorts;      /* out: of recipes/sorts.cuh */
    bool scatters;   /* out: of recipes/scatters.cuh */
};

/* A kernel while it is written. */
struct kernel {
    struct generic *in;
    const struct node *root; /* what it computes */
    struct buf body;
    int depth, loops, names;
    const char *index; /* type of indices: "int" or "int64_t" */
    int team;          /* threads per result */
    int at_once;       /* results per thread */
    /* a thread's results are neighbours along this dimension, from 1; 0: a block's width apart */
    int across;
    struct coords here; /* of the result */
    int crosses;        /* out: the dimension, from 1, along which an operand is contiguous */
    bool unroll;        /* the next loop has several loads in flight */
    int64_t terms;      /* out: of the longest sum at depth 0 of loops, which a team may share */
    bool along;         /* out: it is along the innermost dimension */
    int64_t blocks;     /* out: number of blocks for a form that chooses it; else 0 */
    int threads, shared_bytes; /* of such a block */
    int reads[GENERIC_ARGS], read_count;
    struct {
        const struct node *n;
        const char *key, *value;
    } memo[GENERIC_MEMO];
    int memo_count;
};

/* lower.c: a graph of primitives; NULL: *why. */
struct graph *graph_lower(const struct graph *g, struct arena *a, const char **why);

/* storage.c: which nodes are stored; terms per result of n's sum (1: no sum). */
void storage_decide(struct generic *in);
double storage_terms(const struct graph *g, const struct node *n);
/* Does the node need a kernel of its own form? */
bool storage_alone(const struct node *n);

/* values.c: writes statements that compute an element; returns the C name of its value, or NULL
 * with in->why. */
const char *value_at(struct kernel *k, const struct node *n, const struct coords *at);
/* The n-th argument at this place of the node itself, broadcast. */
const char *value_of_arg(struct kernel *k, const struct node *n, size_t arg,
                         const struct coords *at);
const char *value_no(struct kernel *k, const struct node *n, const char *reason);
/* One statement, or a line of one. */
void kernel_line(struct kernel *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Names a value: "int const i3 = ...;". */
const char *kernel_name(struct kernel *k, const char *type, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
const char *kernel_index(struct kernel *k, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A block: names defined inside are forgotten after it. `loop`: it runs more than once. */
int kernel_open(struct kernel *k, bool loop, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void kernel_close(struct kernel *k, int mark, bool loop);
struct coords place_broadcast(const struct coords *at, const struct tensor *from,
                              const struct tensor *to);
const char *value_type(const struct node *n);
/* "float" or "double": what n's dtype is computed in. */
const char *value_float(const struct node *n);
/* The operator, for any of its results: "aten.max_pool2d_with_indices.default". */
const char *operator_name(const struct node *n);
/* How it lies in memory. */
const char *value_memory(const struct generic *in, const struct node *n);

/* views.c: operators that only move elements. 1: the element is *from at *out; 0: not a view; -1:
 * in->why. */
int view_place(struct kernel *k, const struct node *n, const struct coords *at,
               const struct node **from, struct coords *out);
bool is_generic_view(const struct node *n);

/* Each writes the value of its own operators, or returns NULL with in->why; *mine: the node is one
 * of them. */
const char *value_moved(struct kernel *k, const struct node *n, const struct coords *at,
                        bool *mine);
const char *value_made(struct kernel *k, const struct node *n, const struct coords *at, bool *mine);
const char *value_reduced(struct kernel *k, const struct node *n, const struct coords *at,
                          bool *mine);
const char *value_product(struct kernel *k, const struct node *n, const struct coords *at,
                          bool *mine);
const char *value_pooled(struct kernel *k, const struct node *n, const struct coords *at,
                         bool *mine);
const char *value_searched(struct kernel *k, const struct node *n, const struct coords *at,
                           bool *mine);
/* sorts.c: is it a pass of a sort; how many elements it reads per result; the body of its
 * kernel. */
bool sort_is_pass(const struct node *n);
double sort_steps(const struct graph *g, const struct node *n);
bool write_sort(struct kernel *k);
/* scatters.c: elements written to indexed places. Its kernel loops over `writers` elements; the
 * destination is filled first. */
bool scatter_is(const struct node *n);
bool scatter_fits(const struct graph *g, const struct node *n);
double scatter_writers(const struct graph *g, const struct node *n);
bool write_scatter(struct kernel *k);
/* scans.c: the whole body of a scan's kernel, and its dimension. */
bool scan_is(const struct node *n);
int scan_team(const struct node *n); /* threads of a row */
bool write_scan(struct kernel *k);
int scan_dim(const struct node *n);
/* moves.c: an index from memory, counted from the end if negative; the condition `text` (may be "")
 * and that i is in bounds. */
const char *index_value(struct kernel *k, const struct node *index, const struct coords *at,
                        int64_t size);
const char *index_bounds(struct kernel *k, const char *text, const char *i, int64_t size);
/* kernels.c: coordinates of element `i` without dimension `without` (-1: all dimensions). */
struct coords coordinates(struct kernel *k, const struct node *n, int without);
const char *place_text(const struct node *n, const struct coords *at, struct arena *a);
/* reductions.c: the dimensions that n reduces; false: not a reduction. */
bool reduction_of(const struct graph *g, const struct node *n, bool reduced[MAX_DIMS],
                  int64_t *count);
/* Opens the loops of a sum over `extents`, with their indices in names[]; a team shares the
 * outermost one. */
int loops_open(struct kernel *k, const int64_t *extents, int count, const char **names);
void loops_close(struct kernel *k, int mark);
bool loops_shared(const struct kernel *k);
/* pools.c: number of a window operator's spatial dimensions; 0: not one. *terms: elements per
 * window. */
int pool_dims(const struct node *n, const struct graph *g, double *terms);

/* Arguments. */
int64_t arg_int_or(const struct node *n, size_t index, const char *keyword, int64_t fallback);
int dim_wrap(int64_t dim, int dims);
bool is_number(const char *text, int64_t *out);

#endif
