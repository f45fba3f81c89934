/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm.h - data of the matcher of matrix products, shared by its files.
 *
 * gemm.c reads the graph and fills the slots that every form needs; the other files decide whether
 * a form for one kind of device applies, and add its slots.
 */
#ifndef EXPERT_GEMM_H
#define EXPERT_GEMM_H

#include "expert/match/match.h"

enum { GEMM_LEAVES = 6 };

struct side { /* (l, row, col) of an operand or of the result */
    struct axis l, row, col;
    struct axis outer[MAX_DIMS]; /* l as these, the first one outermost; view.h */
    int outers;
    int input; /* of an operand, and where in it the first element is */
    int64_t from[MAX_DIMS];
    bool sliced;
};

struct leaf {
    const struct node *node;
    int input;
    const char *name;
    struct side side;
};

struct gemm {
    const struct graph *g;
    struct arena *a;
    const struct node *product;
    int a_in, b_in;
    struct side A, B, C;         /* B as (l, n, k) */
    const char *a_body, *b_body; /* function of an element before the product; or NULL */
    struct leaf leaves[GEMM_LEAVES];
    int leaf_count;
    bool added; /* addmm: the first leaf is added to the product */
    struct names names;
    const char *index;
    bool seen[GRAPH_NODES];
};

bool gemm_is_product(const struct node *n);
/* Can the form for the FMA units read it where it is, and maybe no other? */
bool gemm_reads_in_pieces(const struct graph *g, const struct node *operand);

/* fp32 on the tensor cores of sm_90a (recipes/gemm_sm90.cu): is there enough work, and can the
 * kernel read the operands? */
bool gemm_suits_sm90(const struct gemm *q);
void gemm_fill_sm90(struct gemm *q, struct match *out);

/* Few rows or few columns (recipes/gemm_thin.cu): is the product bound by reading its large
 * operand? */
bool gemm_suits_thin(const struct gemm *q);
void gemm_fill_thin(struct gemm *q, struct match *out);

#endif
