/* SPDX-License-Identifier: Apache-2.0 */
/*
 * register_frame.c - give registers their slots, and the same slot to several.
 *
 * Hides: how long a register needs its slot.
 *
 * Invariants
 * 1. A register that is live into some block keeps its slot over all blocks,
 *    by number, from the first to the last that knows it or must keep it for
 *    lanes that wait elsewhere.
 * 2. A register of one block is not blended, so it never shares a slot with
 *    one of the first kind, and has its slot to the end of the item that
 *    reads it last.
 */
#include "simt/ir/register_frame.h"

#include "simt/ir/affine.h"

#include <string.h>

struct span {
    int reg, from, to, units;
};

struct slot_pool {
    int *end; /* per slot: the last position it is taken at */
    int count, cap, base;
    struct arena *a;
};

static int pool_take(struct slot_pool *p, const struct span *s)
{
    int at = -1;
    for (int i = 0; i + s->units <= p->count && at < 0; i++)
        if (p->end[i] < s->from && (s->units == 1 || p->end[i + 1] < s->from))
            at = i;
    if (at < 0)
        at = p->count;
    while (p->count < at + s->units) {
        GROW(p->a, p->end, p->count, p->cap);
        p->end[p->count++] = -1;
    }
    for (int i = 0; i < s->units; i++)
        p->end[at + i] = s->to;
    return p->base + at * SLOT_BYTES;
}

static bool has_lanes(const struct ir *ir, int r)
{
    return ir->varying[r] && ir->k->reg_type[r] != PT_PRED && ir->affine[r].is != AFFINE_YES;
}

static int units_of(const struct ir *ir, int r)
{
    return ptx_type_bytes(ir->k->reg_type[r]) == 8 ? 2 : 1;
}

static void note(struct span *s, int at)
{
    s->from = s->from < 0 || at < s->from ? at : s->from;
    s->to = at > s->to ? at : s->to;
}

static int touched(const struct insn *in, int *regs)
{
    int n = insn_defs(in, regs);
    return n + insn_uses(in, regs + n);
}

static void plan_lasting(const struct ir *ir, struct slot_pool *p, struct span *span, int *slot)
{
    int nr = ir->k->reg_count, regs[2 * MAX_INSN_REGS];
    for (int b = 0; b < ir->block_count; b++) {
        const struct block *bl = &ir->block[b];
        for (int r = 0; r < nr; r++)
            if (set_has(bl->live_in, r) || set_has(bl->live_out, r) || block_keeps(bl, r))
                note(&span[r], b);
        for (int i = 0; i < bl->count; i++) {
            int n = touched(&ir->k->insn[bl->insn[i]], regs);
            for (int j = 0; j < n; j++)
                note(&span[regs[j]], b);
        }
    }
    /* By where they begin: registers are few enough to look for the next each time by block. */
    for (int b = 0; b < ir->block_count; b++)
        for (int r = 0; r < nr; r++)
            if (span[r].from == b && has_lanes(ir, r) && !ir->local[r])
                slot[r] = pool_take(p, &span[r]);
}

static void plan_block(const struct ir *ir, const struct block_plan *plan, struct arena *a,
                       struct slot_pool *p, struct span *span, int *slot)
{
    int regs[2 * MAX_INSN_REGS], count = 0, cap = 0, *list = NULL;
    for (int i = 0; i < plan->count; i++)
        for (int j = 0; j < plan->item[i].count; j++) {
            int n = touched(&ir->k->insn[plan->item[i].insn[j]], regs);
            for (int q = 0; q < n; q++) {
                int r = regs[q];
                if (!ir->local[r] || !has_lanes(ir, r))
                    continue;
                if (span[r].from < 0) {
                    GROW(a, list, count, cap);
                    list[count++] = r;
                }
                note(&span[r], i);
            }
        }
    if (p->count)
        memset(p->end, 0xff, (size_t)p->count * sizeof *p->end);
    for (int i = 0; i < count; i++) {
        struct span *s = &span[list[i]];
        /* Inside one segment it is a value of the C compiler's. */
        if (s->from != s->to || plan->item[s->from].kind != ITEM_SEGMENT)
            slot[list[i]] = pool_take(p, s);
        s->from = s->to = -1;
    }
}

int frame_plan(const struct ir *ir, const struct block_plan *plan, struct arena *a, int *slot)
{
    int nr = ir->k->reg_count;
    struct span *span = arena_array(a, (size_t)nr + 1, sizeof *span);
    struct slot_pool lasting = {.base = SCRATCH_BYTES, .a = a}, local = {.a = a};
    for (int r = 0; r < nr; r++) {
        slot[r] = -1;
        span[r] = (struct span){r, -1, -1, units_of(ir, r)};
    }
    plan_lasting(ir, &lasting, span, slot);
    for (int r = 0; r < nr; r++)
        if (ir->local[r])
            span[r].from = span[r].to = -1;
    local.base = SCRATCH_BYTES + lasting.count * SLOT_BYTES;
    for (int b = 0; b < ir->block_count; b++)
        plan_block(ir, &plan[b], a, &local, span, slot);
    return local.base + local.count * SLOT_BYTES;
}
