/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ir.h - a kernel as basic blocks, with facts about its registers.
 *
 * ir_build() splits the instructions into blocks in textual order, and finds
 * post-dominators, liveness, which registers differ between the lanes of a
 * warp, and which blocks may run with some lanes waiting elsewhere.
 *
 * Invariants
 * 1. A block that is not `div` runs with every live lane of the warp.
 * 2. A register that is not `varying` has one value for all lanes that run.
 * 3. What a div block writes is blended into the other lanes' values when the
 *    register is in its `keep`; then it is varying.
 * 4. Lanes that wait do so at the start of a block that is div or join, and
 *    the lowest numbered waiting block runs first.
 */
#ifndef SIMT_IR_H
#define SIMT_IR_H

#include "simt/ptx/ptx.h"

struct block {
    int *insn; /* indexes into kernel.insn; the terminator is not among them */
    int count;
    int term;         /* bra, ret or exit; -1: falls through */
    int target, fall; /* block numbers; block_count: leaves the kernel; -1: none */
    bool div, join, collective;
    uint64_t *live_in, *live_out;
    uint64_t *keep; /* div: what lanes that wait elsewhere still need */
};

struct affine;
struct strip;
struct ir {
    struct ptx_kernel *k;
    struct arena *a;
    bool rows; /* warps lie along x: tid.y and tid.z are uniform */
    struct block *block;
    int block_count;
    int *ipdom;
    int words; /* of a register set */
    bool *varying;
    bool *local;           /* never live into a block */
    bool *split;           /* per insn: stands in a block of its own */
    bool *tid;             /* only ever threadIdx.x, in a form of rows */
    struct affine *affine; /* per register; affine.h */
    struct strip *strip;   /* per register; affine_groups.h */
    int lanes;             /* of a vector of the machine */
    bool *strips;          /* per insn: a load that segments may do for themselves */
    bool *lanewise;        /* predicates that lane-parallel instructions read */
};

bool ir_build(struct ptx_kernel *k, bool rows, struct arena *a, struct ir *out, struct error *err);

/* Registers written and read, and how many: at most MAX_INSN_REGS. */
int insn_defs(const struct insn *in, int *out);
int insn_uses(const struct insn *in, int *out);
/* Logic of predicates alone, which can work on the bits of all lanes at once. */
bool insn_bits(const struct insn *in);
/* Waits for other lanes of its warp or block. */
bool insn_collective(const struct insn *in);
/* Lane 0 of every warp of rows has a threadIdx.x that is a multiple of 32: of its lanes alone
 * (warp: false: the lane and perhaps more) or of its warp alone (nothing of the lane). */
bool insn_masks_tid(const struct ir *ir, const struct insn *in, bool warp);
bool block_leaves(const struct ir *ir, int b); /* only leaves the kernel */
/* Lanes that run it may have to let others of their warp go first: it waits for memory. */
bool loop_polls(const struct ir *ir, int head, int end);

static inline bool set_has(const uint64_t *s, int i)
{
    return s[i >> 6] >> (i & 63) & 1;
}
static inline bool block_keeps(const struct block *b, int reg)
{
    return b->div && set_has(b->keep, reg);
}
static inline void set_add(uint64_t *s, int i)
{
    s[i >> 6] |= UINT64_C(1) << (i & 63);
}
static inline void set_drop(uint64_t *s, int i)
{
    s[i >> 6] &= ~(UINT64_C(1) << (i & 63));
}

#endif
