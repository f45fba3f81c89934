/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_schedule.h - the order in which a block's instructions are written.
 *
 * Calls (memory, barriers, collectives) keep their order and are placed as early as their operands
 * allow; lane-parallel instructions are gathered between them into long segments, for which the
 * host compiler generates good code. Loads from one register at several offsets become one call.
 * Chains of multiply-adds are cut into segments whose sums fit the machine's registers.
 */
#ifndef SIMT_LIST_SCHEDULE_H
#define SIMT_LIST_SCHEDULE_H

#include "simt/ir/ir.h"

enum item_kind { ITEM_SCALAR, ITEM_CALL, ITEM_LOADS, ITEM_STORES, ITEM_SEGMENT };

struct item {
    enum item_kind kind;
    int *insn; /* indexes into kernel.insn; ITEM_LOADS, ITEM_STORES: at offsets from one register */
    int count;
    bool strip; /* ITEM_LOADS: segments may load for themselves (affine_groups.h) */
};

/* Items in the arena; *count of them. */
struct item *schedule_block(const struct ir *ir, int block, struct arena *a, int *count);
enum item_kind insn_kind(const struct ir *ir, const struct insn *in);

#endif
