/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - the operator graph of a task, as the oracle describes it.
 *
 * Read from task->description (docs/architecture.md, DESCRIPTION). Nodes come
 * in an order in which arguments stand before their users.
 *
 * Everything points into the description or the arena.
 */
#ifndef EXPERT_GRAPH_H
#define EXPERT_GRAPH_H

#include "base/mem.h"
#include "model.h"

#include <jansson.h>

enum { GRAPH_IDS = 1 << 20, GRAPH_PARTS = 64 }; /* numbers of nodes and of their results */
enum { GRAPH_NODES = 16384, SIZE_CONSTANTS = 64, SIZE_TERMS = 4, SIZE_PLACES = 8 };

struct tensor {
    const char *name, *dtype;
    int dims;
    int64_t shape[MAX_DIMS], strides[MAX_DIMS]; /* in elements */
};

struct node {
    int id;
    const char *op;
    const json_t *args, *kwargs; /* array, object; never NULL */
    struct tensor t;
    int index;           /* of an input or output */
    int part;            /* index of this result of its operator */
    const json_t *value; /* value of a constant with one element; else NULL */
    const json_t *whole; /* as the description has it */
    int uses;
    bool inner; /* of a body: what an operator is made of (generic/lower.c) */
};

/* A number that follows from sizes: factor * product of (size + shift)**power. */
struct size_term {
    int places[SIZE_PLACES][2]; /* (input of the task, dimension): of equal size in every trace */
    int place_count, shift;
    double power; /* 0.5, 1 or 2, or one of these negative */
};

struct size_constant {
    int id;
    const char *name;     /* in a kernel: "of_sizes0" */
    double value, factor; /* value: for the sizes of this description */
    struct size_term terms[SIZE_TERMS];
    int term_count;
};

struct graph {
    const char *name;
    struct node *nodes; /* room for all that it has */
    int count;
    struct tensor in[MAX_TENSORS], out[MAX_TENSORS];
    int origin[MAX_TENSORS]; /* index of the task's input that this is; -1: none */
    int in_count, out_count;
    const json_t *scalars;             /* of the call; may be NULL */
    const struct size_constant *sizes; /* that the nodes have as arguments */
    int size_count;
    bool size_unknown;       /* a number depends on sizes, but not by such a formula */
    const json_t *structure; /* of the inputs, as seen on several draws; may be NULL */
    int result[MAX_TENSORS]; /* node that gives each output */
    /* Target architecture: 80, 90, ...; on simt what its code is built for. */
    int arch, sm_count;
    int64_t smem_block_bytes; /* 0: unknown */
    bool tf32;                /* fp32 products may use TF32 */
    bool tf32_convolutions;   /* fp32 convolutions may, which PyTorch allows by default */
    bool measured;            /* times will be measured, not modelled, so tuning is useful */
};

/* False: the description is malformed or exceeds the limits; *why says which. */
bool graph_read(const json_t *description, struct arena *a, struct graph *out, const char **why);
/* Sets the target device of the kernels; NULL: code that runs on every GPU. */
void graph_device(struct graph *g, const struct device *device);

/* Why `obj` of a description is not a valid next node; NULL: it is valid (node_check.c). */
const char *graph_node_fault(const struct graph *g, const json_t *obj);
bool graph_tensor_reads(const json_t *obj);
/* Adds the node that the description has in `obj`, and one more for each further result; there must
 * be room for them. */
bool graph_add_node(struct graph *g, const json_t *obj, struct arena *a, const char **why);
/* Is it a second or later result of an operator? */
bool graph_other_result(const struct node *n);
/* Are its results parts of its argument? */
bool graph_gives_parts(const struct node *n);

const struct node *graph_node(const struct graph *g, int id);
/* Does the task return it? */
bool graph_is_result(const struct graph *g, const struct node *n);
/* The id that an argument {"node": 3, "part": 1} means: a second result has a node of its own. */
int graph_id(const json_t *arg);
/* The n-th argument as a node, or NULL when it is something else. */
const struct node *graph_arg(const struct graph *g, const struct node *n, size_t index);
/* The first argument, which every operator has; if the graph is malformed, a node with a negative
 * id that is not an operator. */
const struct node *graph_first(const struct graph *g, const struct node *n);
/* The argument as it stands, by position or keyword; NULL: not given, or none. */
const json_t *graph_arg_json(const struct node *n, size_t index, const char *keyword);
bool graph_arg_int(const struct node *n, size_t index, const char *keyword, int64_t *out);
/* The n-th argument as a list of ints (a single int is a list of one). -1: it is not. */
int graph_arg_ints(const struct node *n, size_t index, const char *keyword, int64_t out[MAX_DIMS]);

int64_t tensor_numel(const struct tensor *t);
bool tensor_contiguous(const struct tensor *t);

/* Finds numbers in nodes that are derived from sizes: g->sizes. */
void graph_find_sizes(struct graph *g, struct arena *a);
/* The size constant of this argument; NULL: it has none. */
const struct size_constant *graph_of_sizes(const struct graph *g, const json_t *arg);

/* Every op of the graph once, in order, for messages: "sigmoid, mul". */
const char *graph_ops(const struct graph *g, struct arena *a);
/* Is "aten.mul.Tensor" or the in-place "aten.mul_.Tensor" the operator "aten.mul"? */
bool graph_op_is(const struct node *n, const char *base);
/* A JSON argument or constant as a number; "inf" and "nan" come as text. */
bool graph_number(const json_t *arg, double *out);
/* "aten.mul.Tensor" -> "mul". In the arena. */
char *graph_short_name(const char *op, struct arena *a);

#endif
