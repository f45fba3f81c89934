/* SPDX-License-Identifier: Apache-2.0 */
/*
 * joined_weights.h - one launch that prepares the weights of several convolutions of a chain.
 *
 * A convolution on the tensor cores has its weights brought into planes by blocks of its own first
 * launch. Where a chain has several, one launch before all others does it for them
 * (recipes/conv_planes.cuh, the fact `joined`). It also finds the largest magnitude of the first
 * one's x, if that is an input of the task. A convolution whose result is the x of a joined one
 * says the largest magnitude of that result (the fact `noted`), so that no launch looks for it.
 *
 * Invariants
 * 1. What it writes has memory of its own for the whole call; no part gives it back.
 * 2. It writes zeros to STATE_WORDS words of each part: the launches of every part come later and
 *    wait for it (launch_order.h).
 * 3. It reads inputs of the task alone.
 */
#ifndef EXPERT_JOINED_WEIGHTS_H
#define EXPERT_JOINED_WEIGHTS_H

#include "base/buf.h"
#include "expert/match/partition.h"

struct joined {
    const struct parts *p;
    int count;                /* of convolutions; 0: nothing is joined */
    int at[PARTS_MAX];        /* the parts, those of a form together */
    bool has_form[PARTS_MAX]; /* a form whose parts are joined */
    bool notes[PARTS_MAX];    /* a form that says the largest magnitude of what it makes */
    /* of a form's names at file scope; several forms have namespaces */
    const char *suffix[PARTS_MAX];
    bool spaces;
    int x_part; /* whose x the launch looks at, or -1 */
};

/* Which parts are joined; steps[i] are those of form i. */
void joined_find(const struct parts *p, const struct recipe *recipes, const unsigned *steps,
                 struct joined *out);
/* The scope that a form is composed for. */
const struct scope *joined_scope(const struct joined *j, int form, struct arena *a);
/* What follows `put` in a file: the kernels; in the plan's half, the type that a part is given;
 * in the plan, the launches and what each part is given. */
void joined_put_kernels(const struct joined *j, struct arena *a, struct buf *out);
void joined_put_type(const struct joined *j, struct buf *out);
void joined_put_launches(const struct joined *j, struct buf *out);
void joined_put_ready(const struct joined *j, int part, struct buf *out);

/* Is the step of this name among these? */
bool joined_has_step(const struct recipe *r, unsigned steps, const char *name);

#endif
