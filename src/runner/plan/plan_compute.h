/* SPDX-License-Identifier: Apache-2.0 */
/* plan_compute.h - arithmetic of a plan: one instruction on 64-bit registers. */
#ifndef RUNNER_PLAN_COMPUTE_H
#define RUNNER_PLAN_COMPUTE_H

#include "runner/plan/plan_code.h"

/* Sign- or zero-extends a value to what a register of this type holds. */
uint64_t plan_narrow(enum ptx_type type, uint64_t v);

/* `v`: the operands after the result. False: not allowed in a plan (division by 0). */
bool plan_compute(const struct plan_insn *in, const uint64_t v[3], uint64_t *out,
                  struct error *err);

#endif
