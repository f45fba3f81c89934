/* SPDX-License-Identifier: Apache-2.0 */
/*
 * size_constants.h - numbers derived from sizes, computed by the plan.
 *
 * An element function names such a number (graph.h, struct size_constant) as
 * it names its operands. Once a recipe is composed, the number is passed to it: the plan computes
 * it from the call's shapes, every launch passes it, and every function on the way takes it as its
 * last parameter.
 *
 * If that is impossible (the number is a literal in the text, or its formula is unknown) the plan
 * requires the value, or the shapes, that the kernel was written for. So a kernel is either right
 * at a size or refuses it.
 */
#ifndef EXPERT_SIZE_CONSTANTS_H
#define EXPERT_SIZE_CONSTANTS_H

#include "expert/graph/graph.h"

/* `call` is the name of the task's call in the plan. *literal gets, as bits by id, the numbers of g
 * that stand in the text as literals. */
struct text size_constants_pass(const struct graph *g, const char *call, struct text source,
                                struct arena *a, uint64_t *literal);
/* Makes the plan require the sizes for which the literals were written. */
struct text size_constants_require(const struct graph *g, uint64_t literal, struct text source,
                                   struct arena *a);

#endif
