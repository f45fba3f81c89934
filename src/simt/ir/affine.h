/* SPDX-License-Identifier: Apache-2.0 */
/*
 * affine.h - registers that increase by a constant from lane to lane.
 *
 * Value of lane l: base + stride * l, with base a C scalar and stride known
 * when the kernel is written. Addresses in good kernels are of this kind, so neither arithmetic nor
 * checks are done lane by lane.
 *
 * A 32-bit value may wrap between two lanes. That is exact as long as it is
 * 32 bits wide; where it is widened, the lanes behind the wrap are noted in a
 * mask, and their values differ by `wrap`, a multiple of 2^32.
 */
#ifndef SIMT_AFFINE_H
#define SIMT_AFFINE_H

#include "simt/ir/ir.h"

struct affine {
    enum { AFFINE_UNKNOWN, AFFINE_YES, AFFINE_NO } is;
    int64_t stride, wrap;
    bool lane; /* 32 bits, stride 1, base a multiple of 32: the low bits are the lane's number */
};

/* Per register, in the arena; those that are not varying are AFFINE_NO. */
struct affine *affine_find(const struct ir *ir, struct arena *a);

/* Compares base + lane with what is the same for all lanes, for branches and masks only: the
 * bits of all lanes follow from two scalars. */
bool insn_tests_row(const struct ir *ir, const struct insn *in);

#endif
