/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_parts.h - products that write the fp16 parts of Q, K and V for the attention after
 * them.
 *
 * In fp32 on sm_90a attention reads Q, K and V as two fp16 parts with scales. Where products make
 * them, their epilogues write these parts (recipes/gemm_planes.cuh, the fact `planes`), and
 * attention has no launches that split (the fact `given`). The parts of a result lie as the result
 * does; it has a scale for 64 rows of a head.
 *
 * Invariants
 * 1. Nothing but one attention reads such a result: it is not written in fp32, unless bits would be
 *    lost. Then its product computes all of it in fp32 and says so in `lost`.
 * 2. 64 rows that share a scale belong to one head of one batch, and so do the columns of a tile.
 */
#ifndef EXPERT_ATTENTION_PARTS_H
#define EXPERT_ATTENTION_PARTS_H

#include "base/buf.h"
#include "expert/match/partition.h"

struct attention_parts {
    const struct parts *p;
    int count;             /* of products that write parts */
    int reader[PARTS_MAX]; /* of a product: the attention, by number from 1; 0: none */
    bool given[PARTS_MAX]; /* of an attention */
    int head[PARTS_MAX];   /* of a product: columns of a head */
    int64_t columns[PARTS_MAX], v_from[PARTS_MAX],
        v_until[PARTS_MAX]; /* of a product; those of V */
};

/* Can any product of these parts do so, whatever its steps are? */
bool attention_parts_any(const struct parts *p);
/* Those whose forms have the steps for it; steps[i] are those of form i. */
void attention_parts_find(const struct parts *p, const struct recipe *recipes,
                          const unsigned *steps, struct attention_parts *out);
/* Steps of a product that cannot write parts. */
unsigned attention_parts_excludes(const struct recipe *r);
/* Do two parts of the same form have the same role? */
bool attention_parts_alike(const struct attention_parts *h, int a, int b);
/* The scope that a part is composed for. */
struct scope *attention_parts_scope(const struct attention_parts *h, int part, struct arena *a);
/* Before both halves, the types; in the plan, what comes before the first part, and what one part
 * is given, whose result is t<part + 1>. */
void attention_parts_put_types(const struct attention_parts *h, struct buf *out);
void attention_parts_put_start(const struct attention_parts *h, struct buf *out);
void attention_parts_put_part(const struct attention_parts *h, int part, struct buf *out);

#endif
