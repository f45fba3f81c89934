/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generic.h - kernels for what no recipe covers: one thread, or a team of them, per result.
 *
 * A graph is lowered to primitives (lower.c). storage.c decides which of them
 * get memory, and each of those becomes a kernel (kernels.c). Within a
 * kernel a value is a function of an index: value_at() writes the statements
 * that compute one element of a node, through views, pointwise operators and
 * sums, down to what lies in memory.
 *
 * Invariants
 * 1. Sizes and strides are written into the kernels; the plan requires them.
 * 2. A value written at depth 0 of loops has the same index in all threads of
 *    a team, so a team may meet there (shuffles, barriers).
 * 3. Values of a body (what one operator is made of) are kept in float where
 *    the operator's own type has 16 bits.
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
    const char *why; /* it cannot be written: one operator and the reason */
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
    const char *index;  /* type of indices: "int" or "int64_t" */
    int team;           /* threads per result */
    int at_once;        /* results per thread */
    int across;         /* along this dimension, from 1 on; 0: a block's width apart */
    struct coords here; /* of the result */
    int crosses;    /* out: the dimension, from 1 on, along which a whole operand lies in memory */
    bool unroll;    /* the next loop has several loads under way */
    int64_t terms;  /* out: of the longest sum at depth 0 of loops, which a team may share */
    bool along;     /* out: it is along the innermost dimension */
    int64_t blocks; /* out, of a form with blocks of its own: so many; else 0 */
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

/* storage.c: which nodes get memory; work per result of what n sums up (1: it sums nothing). */
void storage_decide(struct generic *in);
double storage_terms(const struct graph *g, const struct node *n);
/* Does the node need a kernel of its own form? */
bool storage_alone(const struct node *n);

/* values.c: statements that compute an element; the C name of its value, or NULL: in->why. */
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
/* A block: what is named inside is forgotten after it. `loop`: it runs more than once. */
int kernel_open(struct kernel *k, bool loop, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void kernel_close(struct kernel *k, int mark, bool loop);
struct coords place_broadcast(const struct coords *at, const struct tensor *from,
                              const struct tensor *to);
const char *value_type(const struct node *n);
/* The operator, whichever of its results the node is: "aten.max_pool2d_with_indices.default". */
const char *operator_name(const struct node *n);
/* How it lies in memory. */
const char *value_memory(const struct generic *in, const struct node *n);

/* views.c: other places of the same elements. 1: *from at *out; 0: not a view; -1: in->why. */
int view_place(struct kernel *k, const struct node *n, const struct coords *at,
               const struct node **from, struct coords *out);
bool is_generic_view(const struct node *n);

/* Each writes the value of its operators, or gives NULL with in->why; *mine: is it one of its? */
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
/* sorts.c: a pass of a sort, how many elements it reads for one, the whole body of its kernel. */
bool sort_is_pass(const struct node *n);
double sort_steps(const struct graph *g, const struct node *n);
bool write_sort(struct kernel *k);
/* scatters.c: elements written to places that an index names. Its kernel goes through `writers`
 * elements; what it writes to is filled before. */
bool scatter_is(const struct node *n);
bool scatter_fits(const struct graph *g, const struct node *n);
double scatter_writers(const struct graph *g, const struct node *n);
bool write_scatter(struct kernel *k);
/* scans.c: the whole body of a scan's kernel, and its dimension. */
bool scan_is(const struct node *n);
int scan_team(const struct node *n); /* threads of a row */
bool write_scan(struct kernel *k);
int scan_dim(const struct node *n);
/* moves.c: an index from memory, from the end where it is negative; `text` and: it is inside. */
const char *index_value(struct kernel *k, const struct node *index, const struct coords *at,
                        int64_t size);
const char *index_bounds(struct kernel *k, const char *text, const char *i, int64_t size);
/* kernels.c: coordinates of element `i`, dimension `without` left out (-1: none). */
struct coords coordinates(struct kernel *k, const struct node *n, int without);
const char *place_text(const struct node *n, const struct coords *at, struct arena *a);
/* reductions.c: dimensions that n reduces; false: it is not a reduction. */
bool reduction_of(const struct graph *g, const struct node *n, bool reduced[MAX_DIMS],
                  int64_t *count);
/* The loops of a sum over `extents`, their indices in names[]; a team shares the outermost one. */
int loops_open(struct kernel *k, const int64_t *extents, int count, const char **names);
void loops_close(struct kernel *k, int mark);
bool loops_shared(const struct kernel *k);
/* pools.c: a window operator's spatial dimensions; 0: it is none. *terms: of a window. */
int pool_dims(const struct node *n, const struct graph *g, double *terms);

/* Arguments. */
int64_t arg_int_or(const struct node *n, size_t index, const char *keyword, int64_t fallback);
int dim_wrap(int64_t dim, int dims);
bool is_number(const char *text, int64_t *out);

#endif
