/* SPDX-License-Identifier: Apache-2.0 */
/*
 * if_conversion.c - if (p) { a few plain instructions } without a branch.
 *
 * Hides: which instructions may be guarded. What waits for other lanes, ends
 * the kernel or already has a guard may not.
 */
#include "simt/ir/if_conversion.h"

#include "simt/ir/ir.h"

#include <string.h>

enum { MAX_SIDE = 12 };

static bool may_guard(const struct insn *in, int pred)
{
    int regs[MAX_INSN_REGS];
    if (in->pred >= 0 || insn_is(in, TRAIT_ENDS_BLOCK) ||
        (insn_is_call(in) && !insn_is(in, TRAIT_ACCESS)))
        return false;
    int n = insn_defs(in, regs);
    for (int i = 0; i < n; i++)
        if (regs[i] == pred)
            return false;
    return true;
}

static bool is_jump(const struct insn *in)
{
    return in->op == OP_BRA && in->arg_count == 1 && in->args[0].kind == OPND_LABEL;
}

/* Plain instructions [from, to) that nothing jumps into. */
static bool plain_side(const struct ptx_kernel *k, const int *jumps, int from, int to, int pred)
{
    if (to - from > MAX_SIDE)
        return false;
    for (int i = from; i < to; i++)
        if (jumps[i] || !may_guard(&k->insn[i], pred))
            return false;
    return true;
}

static void guard(struct ptx_kernel *k, int from, int to, int pred, bool pred_not)
{
    for (int i = from; i < to; i++) {
        k->insn[i].pred = pred;
        k->insn[i].pred_not = pred_not;
    }
}

/* The branch at i; true when it and, for if-else, the one after its side are gone. */
static bool convert(struct ptx_kernel *k, int *jumps, bool *gone, int i)
{
    struct insn *b = &k->insn[i];
    if (!is_jump(b) || b->pred < 0)
        return false;
    int pred = b->pred, target = b->args[0].target, end = i + 1;
    while (end < target && end < k->insn_count && !is_jump(&k->insn[end]))
        end++;
    if (target <= i || target > k->insn_count)
        return false;
    if (end == target) {
        if (!plain_side(k, jumps, i + 1, target, pred))
            return false;
        guard(k, i + 1, target, pred, !b->pred_not);
        gone[i] = true;
        jumps[target]--;
        return true;
    }
    /* if-else: this side ends with a jump over the other one */
    const struct insn *over = &k->insn[end];
    if (end + 1 != target || over->pred >= 0 || jumps[end] || jumps[target] != 1)
        return false;
    int join = over->args[0].target;
    if (join <= target || !plain_side(k, jumps, i + 1, end, pred))
        return false;
    jumps[target] = 0;
    if (!plain_side(k, jumps, target, join, pred)) {
        jumps[target] = 1;
        return false;
    }
    guard(k, i + 1, end, pred, !b->pred_not);
    guard(k, target, join, pred, b->pred_not);
    gone[i] = gone[end] = true;
    jumps[join]--;
    return true;
}

/* A branch over a jump, as nvcc writes loops, is a branch the other way. */
static void turn_around(struct ptx_kernel *k, int *jumps, bool *gone, int i)
{
    struct insn *b = &k->insn[i], *over = b + 1;
    if (i + 2 >= k->insn_count || !is_jump(b) || b->pred < 0 || b->args[0].target != i + 2 ||
        !is_jump(over) || over->pred >= 0 || jumps[i + 1])
        return;
    jumps[i + 2]--;
    b->pred_not = !b->pred_not;
    b->args[0].target = over->args[0].target;
    gone[i + 1] = true;
}

static void squeeze(struct ptx_kernel *k, int *jumps, int *moved, bool *gone)
{
    int n = k->insn_count, kept = 0;
    for (int i = 0; i < n; i++) {
        moved[i] = kept;
        if (!gone[i])
            k->insn[kept++] = k->insn[i];
    }
    moved[n] = kept;
    k->insn_count = kept;
    memset(jumps, 0, ((size_t)n + 2) * sizeof *jumps);
    memset(gone, 0, ((size_t)n + 2) * sizeof *gone);
    for (int i = 0; i < kept; i++)
        if (is_jump(&k->insn[i])) {
            k->insn[i].args[0].target = moved[k->insn[i].args[0].target];
            jumps[k->insn[i].args[0].target]++;
        }
}

void if_convert(struct ptx_kernel *k)
{
    int n = k->insn_count;
    int *jumps = arena_array(k->m->a, (size_t)n + 2, sizeof *jumps);
    int *moved = arena_array(k->m->a, (size_t)n + 2, sizeof *moved);
    bool *gone = arena_array(k->m->a, (size_t)n + 2, sizeof *gone);
    for (int i = 0; i < n; i++)
        if (is_jump(&k->insn[i]))
            jumps[k->insn[i].args[0].target]++;
    for (int i = 0; i < n; i++)
        turn_around(k, jumps, gone, i);
    squeeze(k, jumps, moved, gone);
    for (int i = 0; i < k->insn_count; i++)
        convert(k, jumps, gone, i);
    squeeze(k, jumps, moved, gone);
}
