/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expr.h - pointwise operators of a graph, written as C statements.
 *
 * The caller names the leaves (inputs, an accumulator); everything between
 * them and the root becomes one `float const name = ...;` per operator and a final `return ...;`,
 * in the order of the graph. pointwise_ops.def has each operator's C text.
 */
#ifndef EXPERT_EXPR_H
#define EXPERT_EXPR_H

#include "expert/graph/graph.h"

/* Names in use within one kernel. */
struct names {
    const char *used[GRAPH_NODES + MAX_TENSORS * 4];
    int count;
};

struct expr {
    const struct graph *g;
    struct arena *a;
    const char *leaf[GRAPH_NODES]; /* by position in g->nodes: its C name, or NULL */
    /* The caller's own form for a node, in which $0, $1 are its arguments; or NULL. */
    const char *special[GRAPH_NODES];
    const char *row, *col; /* names of a value's coordinates, or NULL: unknown */
    bool uses_place;       /* out: the last body uses them */
    bool see_turned;       /* rearrangements do not matter: in functions of one value */
    bool see_through;      /* reshapes do not move elements: checked by the caller */
    bool fast;             /* use the fast forms */
    bool coarse;           /* those of 16-bit floats for all */
    bool has_fast;         /* out: some operator has one */
    struct names names;    /* that statements may not take */
};

/* Is there a row for this operator with these arguments? */
bool expr_knows(const struct node *n, struct arena *a);
/* The same where coordinates are known: triu, tril. */
bool expr_knows_placed(const struct node *n, struct arena *a);
/* The function's body, lines without indentation, '\n' between them. False: *why names the operator
 * or argument without a C form. */
bool expr_body(struct expr *e, const struct node *root, const char **out, const char **why);

/* What one operator reads: the C text of each tensor argument, and of its own coordinates. */
struct expr_source {
    const char *(*operand)(void *self, const struct node *arg); /* NULL: it cannot be had */
    void *self;
    const char *row, *col; /* or NULL */
};
/* One operator as a C expression over the texts of its operands. */
bool expr_operator(const struct graph *g, const struct node *n, const struct expr_source *from,
                   struct arena *a, const char **out, const char **why);

/* Adds to the list `helper` of s what the body calls and the list does not have yet. */
struct scope;
void expr_helpers(const char *body, struct scope *s, struct arena *a);

/* "f32" -> "float", "bool" -> "bool", "i64" -> "int64_t": the C type for computing with that dtype;
 * NULL: not supported. */
const char *expr_value_type(const char *dtype);
/* "f16" -> "half_t": the C type in memory; NULL: not supported. */
const char *expr_memory_type(const char *dtype);
int expr_bytes(const char *dtype);
/* A number as a C literal of that value type: "0.5f", "2", "INFINITY". */
const char *expr_literal(double v, const char *value_type, struct arena *a);
/* A valid C name near `wanted` that is not in use; it is added. */
const char *names_add(struct names *n, const char *wanted, struct arena *a);
/* The same for a tensor of a kernel: none of the words that recipes use themselves, nor one that is
 * with a letter before it (gX of x). */
const char *names_add_tensor(struct names *n, const char *wanted, struct arena *a);

#endif
