/* SPDX-License-Identifier: Apache-2.0 */
/* plan_compute.h - arithmetic of a plan: one instruction on 64-bit registers. */
#ifndef RUNNER_PLAN_COMPUTE_H
#define RUNNER_PLAN_COMPUTE_H

#include "runner/plan/plan_code.h"

/* What a register of this type holds: sign- or zero-extended. */
uint64_t plan_narrow(enum ptx_type type, uint64_t v);

/* `v`: operands after the result. False: what a plan may not compute (division by 0). */
bool plan_compute(const struct plan_insn *in, const uint64_t v[3], uint64_t *out,
                  struct error *err);

#endif
