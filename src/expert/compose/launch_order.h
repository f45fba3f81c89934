/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_order.h - launches of one plan that may begin before the launch before them has ended.
 *
 * A dependent launch (CUTEGEN_OVERLAP, sm_90) saves the gap between two launches: its blocks are on
 * their SMs when the last block before them ends. Its kernel must wait before it touches memory.
 *
 * Invariants
 * 1. Every kernel waits. A wait is for the launch before it alone; only if that one has waited,
 *    too, have all before it ended.
 * 2. A kernel waits before it lets the next one begin. What a kernel does before its own wait then
 *    races with nothing but the launch right before it, which the same recipe has written.
 * 3. Kernels are the same whether launches overlap or not: only the plan differs.
 */
#ifndef EXPERT_LAUNCH_ORDER_H
#define EXPERT_LAUNCH_ORDER_H

#include "base/mem.h"

/* Does the plan have several launches? */
bool launches_several(struct text source);

/* The source whose kernels wait for the launches before them, except those that have a wait of
 * their own; `overlap`: its launches are dependent ones. In the arena. */
struct text launches_ordered(struct text source, bool overlap, struct arena *a);

/* What a plan with overlapping launches has, and no other. */
extern const char launches_overlap[];

#endif
