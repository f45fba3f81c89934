/* SPDX-License-Identifier: Apache-2.0 */
/*
 * register_frame.h - the frame offsets of a kernel's registers.
 *
 * The frame begins with scratch slots, which a call uses to spread operands
 * that are alike in all lanes. Then come the registers that live from block
 * to block, then those of single blocks. Slots are shared by registers that
 * are never needed at the same time.
 */
#ifndef SIMT_REGISTER_FRAME_H
#define SIMT_REGISTER_FRAME_H

#include "simt/ir/list_schedule.h"

enum { SCRATCH_SLOTS = 20, SLOT_BYTES = 128, SCRATCH_BYTES = SCRATCH_SLOTS * 2 * SLOT_BYTES };

/* The items of one block, in the order they are written. */
struct block_plan {
    struct item *item;
    int count;
};

/* slot[r]: offset of register r, -1 when it needs none. Returns the frame's size. */
int frame_plan(const struct ir *ir, const struct block_plan *plan, struct arena *a, int *slot);

#endif
