/* SPDX-License-Identifier: Apache-2.0 */
/*
 * affine_groups.h - which registers lie in a pattern within small groups of lanes.
 *
 * A tile in shared memory is read by 16 lanes side by side, or by 16 lanes at
 * one place: address of lane l = some base of its group + stride * (l within
 * the group). This is a guess for code to be written by; the device checks
 * the addresses before it is used (sw_ops.strip).
 */
#ifndef SIMT_AFFINE_GROUPS_H
#define SIMT_AFFINE_GROUPS_H

#include "simt/ir/ir.h"

struct strip {
    bool is;
    int group; /* lanes: a power of two; 32: the warp */
    int64_t stride;
};

/* Per register, in the arena. */
struct strip *strips_find(const struct ir *ir, struct arena *a);

#endif
