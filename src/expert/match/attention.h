/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.h - data of the attention matcher, shared by its files and the partition.
 *
 * attention_find.c recognizes attention in a graph, as one operator or written
 * out. attention.c determines the operands' layouts, attention_slots.c fills the slots that every
 * form needs, attention_sm90.c decides whether Hopper's forms apply.
 */
#ifndef EXPERT_ATTENTION_H
#define EXPERT_ATTENTION_H

#include "expert/graph/nest.h"
#include "expert/match/match.h"

enum { ATTENTION_WIDEST_TILE = 256 };   /* heads of which a tile fits shared memory */
enum { ATTENTION_LARGEST_HEAD = 1024 }; /* of which a warp computes a row */
enum { ATTENTION_WIDEST_SUMS = 128 };   /* heads whose dK and dV fit the registers */
enum { ATTENTION_LEAVES = 2, ATTENTION_MODES = 3, ATTENTION_TENSORS = 7 + ATTENTION_LEAVES };

/* softmax(scores) V or f(scores) V, and its nodes in the graph. */
struct attention_core {
    const struct node *scores;           /* the first product, or the fused operator */
    const struct node *weights;          /* the softmax; the operator; what is multiplied with V */
    const struct node *values;           /* the second product; the operator */
    const struct node *before;           /* what a softmax written by hand is of; else NULL */
    bool turned;                         /* the second product is V^T P^T */
    const struct node *q, *k, *v, *mask; /* mask: of the operator; NULL: none */
    bool fused;                          /* it is one operator */
    bool linear;                         /* weights are a function of each score alone */
    bool causal, safe;                   /* safe: a row without keys gives zeros, not NaN */
    double scale;                        /* of the operator; what its product is multiplied by */
    const struct node *added;            /* `beta` times this is added to the product; or NULL */
    double beta;
    const struct node *upstream; /* gradients: the result's gradient; else NULL */
    const struct node *made[3];  /* of gradients: those of Q, K and V */
};

/* Is n attention, or the first product of attention? */
bool attention_find(const struct graph *g, const struct node *n, struct attention_core *out);
/* Does the graph compute gradients of attention (attention_gradient.c)? */
bool attention_find_gradient(const struct graph *g, struct attention_core *out);
/* The origin of an operator's mask: PyTorch converts a boolean mask to 0 or -inf, to be added. */
const struct node *attention_mask(const struct graph *g, const struct node *mask);
/* A softmax's weights times V, as attention_products.c writes it in fp32: a form of aten.bmm. */
#define ATTENTION_VALUES "aten.bmm.weights"

/* The graph with every attention whose heads are wide as products and a softmax, where that takes
 * less time than one kernel would; NULL: there is none (attention_products.c). */
const struct graph *attention_as_products(const struct graph *g, struct arena *a);
/* What such a graph adds to the scores that this product makes, or chooses them by; NULL: nothing.
 */
const struct node *attention_beside(const struct graph *g, const struct node *product);
/* Is it an operator that is attention? */
bool attention_is_fused(const struct node *n);
/* The scores as the softmax reads them; without a softmax, the weights. */
const struct node *attention_scores(const struct graph *g, const struct attention_core *core);
/* Is it a tensor of one number? */
bool attention_fills(const struct node *n, double *number);
/* The arange node behind rearrangements, and its first value; NULL: it is not an arange. */
const struct node *attention_counts(const struct graph *g, const struct node *n, int64_t *from);
/* The node that gathers K or V page by page, cache[table]; NULL: it is not gathered. */
const struct node *attention_pages(const struct graph *g, const struct node *n);
/* The last node that only rearranges the result of `values` and that all its users go through. */
const struct node *attention_end(const struct graph *g, const struct node *values);
/* An operand that attention cannot read as it is and that must be computed first; NULL: none. */
const struct node *attention_unreadable(const struct graph *g, const struct attention_core *core,
                                        struct arena *a);

/* Then the table of pages, if there is one, or gradients, and the leaves. AT_O is O, or its
 * gradient. */
enum { AT_O, AT_Q, AT_K, AT_V, AT_TABLE, AT_DQ = AT_TABLE, AT_DK, AT_DV };

struct attention_mode { /* of the batch: a size, and a strand of each tensor */
    int64_t size;
    const char *text; /* the size, as the plan has it */
    struct strand at[ATTENTION_TENSORS];
};

struct attention_leaf {
    const struct node *node;
    const char *name;
};

struct attention_flat { /* two dimensions of a tensor that are one of attention */
    int t, outer, inner;
};

struct attention {
    const struct graph *g;
    struct arena *a;
    struct attention_core core;
    struct nest nests[ATTENTION_TENSORS]; /* (batch..., row, column) */
    const char *names[ATTENTION_TENSORS]; /* in the plan */
    int tensors;                          /* 4, the table and the leaves */
    int first_leaf;                       /* 4; 5 behind a table, 7 behind gradients */
    int64_t page;                         /* keys of a page; 0: keys lie one after the other */
    struct attention_leaf leaves[ATTENTION_LEAVES];
    int leaf_count;
    /* By position in the graph: a query's or a key's place, or a number. */
    const char *places[GRAPH_NODES];
    bool uses_place;
    struct attention_mode modes[ATTENTION_MODES]; /* the innermost first */
    int mode_count;
    struct strand row[ATTENTION_TENSORS], col[ATTENTION_TENSORS];
    struct attention_flat flat[MAX_DIMS];
    int flat_count;
    int64_t queries, keys, head, head_v;
    bool scaled; /* scores are products times a number */
    double factor;
    struct names taken;
};

const struct tensor *attention_tensor(const struct attention *q, int t);
/* An output that is a rearrangement of `made`, as (batch..., row, column) of it; `k`: which. */
bool attention_output(struct attention *q, const struct node *made, int k, struct nest *out);
/* Fills the slots (attention_slots.c); false: no recipe applies. */
bool attention_fill(struct attention *q, struct match *out);
/* As the plan has them: a stride ("0": none), and where a tensor's first element is. */
const char *attention_stride(struct attention *q, int t, const struct strand *x);
const char *attention_pointer(struct attention *q, int t, bool constant);
/* Paged keys: K and V in the cache's layout, and the page table (attention_pages.c). */
bool attention_find_pages(struct attention *q, struct match *out);
void attention_fill_pages(struct attention *q, struct scope *s);
/* Gradients: the outputs that are those of Q, K and V, and the recipe's slots
 * (attention_gradient.c). */
bool attention_find_gradients(struct attention *q, struct match *out);
void attention_fill_gradient(struct attention *q, struct match *out);
/* Few queries with many keys (recipes/attention_decode.cu); false: not the case. */
bool attention_fill_decode(struct attention *q, struct match *out);
/* Hopper's forms (recipes/attention_sm90.cu, attention_split_sm90.cu). */
void attention_fill_sm90(struct attention *q, struct match *out);
/* The tensor map of Q, K or V, and where a tile of it is. */
void attention_fill_map(struct attention *q, struct scope *s, int t);
void attention_fill_sm90_gradient(struct attention *q, struct match *out);

#endif
