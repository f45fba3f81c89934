/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handed_planes.h - convolutions whose kernels write the planes of the convolution behind them.
 *
 * A convolution on the tensor cores reads x from planes. Where another one of the chain makes x
 * (the step `chained`), the kernel that writes its results writes these planes too
 * (recipes/conv_handed.cuh, the fact `hands`), and the one behind has no launch for it (`handed`).
 *
 * Invariants
 * 1. The planes are workspace of the chain, from before the launches of the part that writes them
 *    to behind those of the part that reads them.
 * 2. A part hands planes over only if a bound of its results is known before they are computed: by
 *    the largest x and the largest of what is added, which are noted, and by norms of weights.
 * 3. Results are written as well: where planes turn out too coarse, everything is computed from
 *    those.
 */
#ifndef EXPERT_HANDED_PLANES_H
#define EXPERT_HANDED_PLANES_H

#include "expert/compose/joined_weights.h"

/* May some part of this form hand planes over, or be handed some? */
bool handed_may(const struct parts *p, int form);
/* Which forms have no planes of their own but write some: out->has_norms. */
void handed_norms(struct joined *j, const struct recipe *recipes, const unsigned *steps);
/* Which parts do; after joined_find. */
void handed_find(struct joined *j, const struct recipe *recipes, const unsigned *steps);
/* What forms are composed for; *s is the scope of joined_scope. */
void handed_scope(const struct joined *j, int form, struct scope *s);
/* The type that both halves of a file have. */
void handed_put_type(const struct joined *j, struct buf *out);
/* In the plan, before a part: the planes that it writes, and what its kernels must know. */
void handed_put_planes(const struct joined *j, int part, struct arena *a, struct buf *out);
/* And what a part is given: the rest of struct ready_part. */
void handed_put_ready(const struct joined *j, int part, struct buf *out);
/* In the plan, behind a part: the planes that it has read. */
void handed_put_release(const struct joined *j, int part, struct buf *out);

#endif
