/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition.h - a task that needs several kernels, each by a recipe, with intermediate results in
 * workspace.
 *
 * A graph that no recipe covers as a whole is split into parts (partition.c): a product with the
 * pointwise operators that follow it, a reduction, a computed operand. A part is a graph and is
 * matched like a task. kernel_chain.c combines the recipes' sources in one file, with a plan that
 * runs the parts one after the other; parts with equal source share their kernels.
 */
#ifndef EXPERT_PARTITION_H
#define EXPERT_PARTITION_H

#include "expert/match/match.h"

enum { PARTS_MAX = 160, PARTS_NODES = 1200 };

struct part {
    const struct graph *g;
    struct match match;
    int form;              /* the first part with equal source, or this one */
    int from[MAX_TENSORS]; /* its inputs: i, the task's input i; -1 - i, the result of part i */
    int out;               /* the task's output it computes; -1: an intermediate result */
    const char *shape[MAX_DIMS]; /* of the result, for the plan */
    bool fixed;                  /* the shape is written in numbers */
};

struct parts {
    struct part at[PARTS_MAX];
    int count;
    int main; /* the part with most work: its recipe's steps are the task's */
};

/* False: out->why_not names the part that no recipe covers; NULL: the graph has no product. */
bool match_parts(const struct graph *g, struct arena *a, struct match *out);

/* A graph whose reductions run over different dimensions, cut at them: the order that costs least.
 * False: no recipes write it so, or it costs more than `limit`, in ns. */
bool match_sums(const struct graph *g, struct arena *a, double limit, struct match *out);

/* The tensor a part reads, as the plan has it: "call->in[0]", "t1". */
const char *part_tensor(const struct parts *p, int from, struct arena *a);
/* Fills the shape of the part's result, and `fixed` (partition_shapes.c). */
void part_shape(const struct parts *p, struct part *part, struct arena *a);

struct chain;
/* Reads the recipes. *steps: those of the main recipe that apply to any of its parts. */
bool chain_open(const struct parts *p, struct arena *a, struct chain **out, unsigned *steps,
                struct error *err);
/* Can a product of the chain write its result as the parts that attention reads? */
bool chain_has_attention_parts(const struct chain *c);
/* Parts of other recipes do not follow `steps`: they have their likely steps, as far
 * as these go together and keep accuracy. `overlap`: launches will (compose/launch_order.h), so
 * the plan clears memory before the first of them. `planes`: products write what attention reads
 * (compose/attention_parts.h). *literal: see match/size_constants.h. */
bool chain_compose(const struct chain *c, unsigned steps, bool overlap, bool planes,
                   struct arena *a, struct text *out, uint64_t *literal, struct error *err);

#endif
