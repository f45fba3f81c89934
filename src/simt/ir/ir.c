/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ir.c - blocks, post-dominators, liveness and uniformity of a kernel.
 *
 * Hides: which operands an instruction writes, and the fixed point between
 * "this register varies" and "this branch divides the warp".
 */
#include "simt/ir/ir.h"

#include "simt/ir/affine.h"

#include <string.h>

enum { MAX_IR_INSNS = 400000 }; /* of one kernel, so that sets per block stay in memory */

/* ---- operands ---- */

int insn_defs(const struct insn *in, int *out)
{
    int n = 0;
    if (!insn_writes_nothing(in) && in->arg_count > 0)
        operand_regs(&in->args[0], out, &n);
    return n;
}

int insn_uses(const struct insn *in, int *out)
{
    int n = 0;
    bool first = insn_writes_nothing(in) || insn_is(in, TRAIT_ACCUMULATES);
    for (int i = first ? 0 : 1; i < in->arg_count; i++)
        operand_regs(&in->args[i], out, &n);
    if (in->pred >= 0)
        out[n++] = in->pred;
    return n;
}

bool insn_collective(const struct insn *in)
{
    return insn_is(in, TRAIT_COLLECTIVE) ||
           (insn_has_mod(in, MOD_SYNC) && insn_is(in, TRAIT_COLLECTIVE_SYNC));
}

/* ---- blocks ---- */

static void cut_blocks(struct ir *ir)
{
    struct ptx_kernel *k = ir->k;
    int n = k->insn_count;
    bool *head = arena_array(ir->a, (size_t)n + 1, sizeof *head);
    int *block_of = arena_array(ir->a, (size_t)n + 1, sizeof *block_of);
    head[0] = true;
    for (int i = 0; i < n; i++) {
        if (k->insn[i].arg_count == 1 && k->insn[i].args[0].kind == OPND_LABEL)
            head[k->insn[i].args[0].target] = true;
        if (insn_is(&k->insn[i], TRAIT_ENDS_BLOCK))
            head[i + 1] = true;
        if (ir->split[i])
            head[i] = head[i + 1] = true;
    }
    ir->block_count = 0;
    for (int i = 0; i < n; i++)
        ir->block_count += head[i];
    ir->block = arena_array(ir->a, (size_t)ir->block_count + 1, sizeof *ir->block);
    int b = -1;
    for (int i = 0; i < n; i++) {
        b += head[i];
        block_of[i] = b;
    }
    block_of[n] = ir->block_count;
    int *flat = arena_array(ir->a, (size_t)n + 1, sizeof *flat);
    for (int i = 0; i < n; i++) {
        struct block *bl = &ir->block[block_of[i]];
        if (head[i])
            *bl = (struct block){.insn = &flat[i], .term = -1, .target = -1, .fall = -1};
        if (insn_is(&k->insn[i], TRAIT_ENDS_BLOCK))
            bl->term = i;
        else
            bl->insn[bl->count++] = i;
        if (ir->split[i])
            bl->collective = true;
    }
    for (int i = 0; i < ir->block_count; i++) {
        struct block *bl = &ir->block[i];
        const struct insn *t = bl->term >= 0 ? &k->insn[bl->term] : NULL;
        if (t && t->op == OP_BRA)
            bl->target = block_of[t->args[0].target];
        else if (t)
            bl->target = ir->block_count;
        if (!t || t->pred >= 0)
            bl->fall = i + 1;
    }
}

bool block_leaves(const struct ir *ir, int b)
{
    if (b >= ir->block_count)
        return true;
    const struct block *bl = &ir->block[b];
    return bl->count == 0 && bl->term >= 0 && bl->target == ir->block_count && bl->fall < 0;
}

/* ---- post-dominators (Cooper, Harvey, Kennedy on the reversed graph) ---- */

struct reverse_walk {
    int *first, *next, *to; /* predecessors as edge lists */
    int *order, *number;    /* reverse post-order from the exit */
    int count;
};

static void reverse_order(struct ir *ir, struct reverse_walk *w)
{
    int n = ir->block_count + 1, edges = 0;
    w->first = arena_array(ir->a, (size_t)n, sizeof(int));
    w->next = arena_array(ir->a, (size_t)(2 * n), sizeof(int));
    w->to = arena_array(ir->a, (size_t)(2 * n), sizeof(int));
    w->order = arena_array(ir->a, (size_t)n, sizeof(int));
    w->number = arena_array(ir->a, (size_t)n, sizeof(int));
    for (int i = 0; i < n; i++)
        w->first[i] = w->number[i] = -1;
    for (int b = 0; b < ir->block_count; b++) {
        int succ[2] = {ir->block[b].target, ir->block[b].fall};
        for (int s = 0; s < 2; s++) {
            if (succ[s] < 0)
                continue;
            w->to[edges] = b;
            w->next[edges] = w->first[succ[s]];
            w->first[succ[s]] = edges++;
        }
    }
    int *stack = arena_array(ir->a, (size_t)n + 1, sizeof(int));
    int *edge = arena_array(ir->a, (size_t)n + 1, sizeof(int));
    int depth = 0, post = 0;
    stack[0] = n - 1;
    edge[0] = w->first[n - 1];
    w->number[n - 1] = -2;
    while (depth >= 0) {
        int e = edge[depth];
        if (e < 0) {
            w->number[stack[depth]] = post;
            w->order[post++] = stack[depth--];
            continue;
        }
        edge[depth] = w->next[e];
        int b = w->to[e];
        if (w->number[b] != -1)
            continue;
        w->number[b] = -2;
        stack[++depth] = b;
        edge[depth] = w->first[b];
    }
    w->count = post;
}

static int meet(const int *ipdom, const int *number, int a, int b)
{
    while (a != b) {
        while (number[a] < number[b])
            a = ipdom[a];
        while (number[b] < number[a])
            b = ipdom[b];
    }
    return a;
}

static void post_dominators(struct ir *ir)
{
    int n = ir->block_count, exit = n;
    struct reverse_walk w;
    reverse_order(ir, &w);
    ir->ipdom = arena_array(ir->a, (size_t)n + 1, sizeof(int));
    for (int i = 0; i <= n; i++)
        ir->ipdom[i] = -1;
    ir->ipdom[exit] = exit;
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = w.count - 2; i >= 0; i--) {
            int b = w.order[i], best = -1, succ[2] = {ir->block[b].target, ir->block[b].fall};
            for (int s = 0; s < 2; s++) {
                if (succ[s] < 0 || ir->ipdom[succ[s]] < 0)
                    continue;
                best = best < 0 ? succ[s] : meet(ir->ipdom, w.number, best, succ[s]);
            }
            if (best >= 0 && ir->ipdom[b] != best) {
                ir->ipdom[b] = best;
                changed = true;
            }
        }
    }
    for (int i = 0; i < n; i++)
        if (ir->ipdom[i] < 0)
            ir->ipdom[i] = exit; /* never ends */
}

/* ---- liveness ---- */

static void block_gen_kill(struct ir *ir, int b, uint64_t *gen, uint64_t *kill)
{
    struct block *bl = &ir->block[b];
    int regs[MAX_INSN_REGS];
    for (int i = 0; i <= bl->count; i++) {
        int at = i < bl->count ? bl->insn[i] : bl->term;
        if (at < 0)
            continue;
        const struct insn *in = &ir->k->insn[at];
        int n = insn_uses(in, regs);
        for (int j = 0; j < n; j++)
            if (!set_has(kill, regs[j]))
                set_add(gen, regs[j]);
        n = insn_defs(in, regs);
        for (int j = 0; j < n; j++) {
            if (in->pred < 0)
                set_add(kill, regs[j]);
            else if (!set_has(kill, regs[j]))
                set_add(gen, regs[j]);
        }
    }
}

static void liveness(struct ir *ir)
{
    size_t w = (size_t)ir->words;
    int n = ir->block_count;
    uint64_t *pool = arena_array(ir->a, (size_t)n * w * 5 + 1, sizeof *pool);
    for (int b = 0; b < n; b++) {
        ir->block[b].live_in = pool + (size_t)b * w * 5;
        ir->block[b].live_out = ir->block[b].live_in + w;
        ir->block[b].keep = ir->block[b].live_in + 4 * w;
        block_gen_kill(ir, b, ir->block[b].live_in + 2 * w, ir->block[b].live_in + 3 * w);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (int b = n - 1; b >= 0; b--) {
            struct block *bl = &ir->block[b];
            const uint64_t *gen = bl->live_in + 2 * w, *kill = bl->live_in + 3 * w;
            int succ[2] = {bl->target, bl->fall};
            for (size_t i = 0; i < w; i++) {
                uint64_t out = 0;
                for (int s = 0; s < 2; s++)
                    if (succ[s] >= 0 && succ[s] < n)
                        out |= ir->block[succ[s]].live_in[i];
                uint64_t in = gen[i] | (out & ~kill[i]);
                changed |= in != bl->live_in[i] || out != bl->live_out[i];
                bl->live_in[i] = in;
                bl->live_out[i] = out;
            }
        }
    }
    for (int r = 0; r < ir->k->reg_count; r++)
        ir->local[r] = true;
    for (int b = 0; b < n; b++)
        for (int r = 0; r < ir->k->reg_count; r++)
            if (set_has(ir->block[b].live_in, r))
                ir->local[r] = false;
}

/* ---- uniformity ---- */

static bool sreg_varies(const struct ir *ir, enum ptx_sreg sreg)
{
    switch (sreg) {
    case SREG_TID_X:
    case SREG_LANEID:
    case SREG_LANEMASK_EQ:
    case SREG_LANEMASK_LT:
    case SREG_LANEMASK_LE:
    case SREG_LANEMASK_GT:
    case SREG_LANEMASK_GE:
        return true;
    default:
        return !ir->rows && (sreg == SREG_TID_Y || sreg == SREG_TID_Z);
    }
}

static bool operand_varies(const struct ir *ir, const struct opnd *o)
{
    for (int i = 0; i < o->count; i++)
        if (operand_varies(ir, &o->list[i]))
            return true;
    if (o->kind == OPND_VEC)
        return false;
    if (o->kind == OPND_SREG)
        return sreg_varies(ir, o->sreg);
    return (o->kind == OPND_REG || o->kind == OPND_ADDR) && o->reg >= 0 && ir->varying[o->reg];
}

/* Results that differ between lanes whatever the operands are. */
static bool always_varies(const struct insn *in)
{
    return insn_is(in, TRAIT_VARIES) ||
           ((in->op == OP_LD || in->op == OP_CVTA) && insn_has_mod(in, MOD_LOCAL));
}

bool insn_masks_tid(const struct ir *ir, const struct insn *in, bool warp)
{
    if (in->arg_count != 3 || in->args[0].kind != OPND_REG || in->args[1].kind != OPND_REG ||
        in->args[1].not || in->args[1].reg2 >= 0 || !ir->tid[in->args[1].reg] ||
        in->args[2].kind != OPND_INT || ptx_type_bytes(in->type) != 4)
        return false;
    uint32_t c = (uint32_t)in->args[2].bits;
    if (in->op == OP_AND)
        return warp ? (c & 31) == 0 : (c & 31) == 31;
    return warp && in->op == OP_SHR && in->args[2].bits >= 5 && in->args[2].bits < 32;
}

/* Registers with one definition, which is threadIdx.x. */
static void find_tid(struct ir *ir)
{
    const struct ptx_kernel *k = ir->k;
    int regs[MAX_INSN_REGS];
    int *defs = arena_array(ir->a, (size_t)k->reg_count + 1, sizeof *defs);
    ir->tid = arena_array(ir->a, (size_t)k->reg_count + 1, sizeof *ir->tid);
    for (int i = 0; i < k->insn_count; i++) {
        const struct insn *in = &k->insn[i];
        for (int n = insn_defs(in, regs); n-- > 0;)
            defs[regs[n]]++;
        if (ir->rows && in->op == OP_MOV && in->pred < 0 && in->arg_count == 2 &&
            in->args[0].kind == OPND_REG && in->args[0].reg2 < 0 && in->args[1].kind == OPND_SREG &&
            in->args[1].sreg == SREG_TID_X && ptx_type_bytes(k->reg_type[in->args[0].reg]) == 4)
            ir->tid[in->args[0].reg] = true;
    }
    for (int r = 0; r < k->reg_count; r++)
        ir->tid[r] &= defs[r] == 1;
}

static bool result_varies(const struct ir *ir, const struct insn *in)
{
    if (in->pred >= 0 && ir->varying[in->pred])
        return true;
    if (insn_masks_tid(ir, in, true))
        return false;
    if (always_varies(in))
        return true;
    if (insn_is(in, TRAIT_UNIFORM)) { /* of the threads that take part together */
        int at = insn_members(in);
        return at >= 0 && operand_varies(ir, &in->args[at]);
    }
    int first = insn_writes_nothing(in) ? 0 : 1;
    for (int i = first; i < in->arg_count; i++)
        if (operand_varies(ir, &in->args[i]))
            return true;
    return false;
}

static bool mark_varying(struct ir *ir)
{
    bool changed = false;
    int regs[MAX_INSN_REGS];
    for (int b = 0; b < ir->block_count; b++) {
        struct block *bl = &ir->block[b];
        for (int i = 0; i < bl->count; i++) {
            const struct insn *in = &ir->k->insn[bl->insn[i]];
            bool varies = result_varies(ir, in);
            int n = insn_defs(in, regs);
            /* Several results are kept alike, so that one call writes them all. */
            for (int j = 0; j < n; j++)
                varies |= ir->varying[regs[j]] && n > 1;
            for (int j = 0; j < n; j++) {
                if (ir->varying[regs[j]] || !(varies || block_keeps(bl, regs[j])))
                    continue;
                ir->varying[regs[j]] = true;
                changed = true;
            }
        }
    }
    return changed;
}

/* Blocks from `from` to where the lanes meet again; the highest of them, or -1. */
static int reach(const struct ir *ir, int from, int stop, int *stack, bool *seen)
{
    int n = ir->block_count, depth = 0, highest = -1;
    memset(seen, 0, (size_t)n + 1);
    if (from == stop || from >= n)
        return -1;
    seen[from] = true;
    stack[depth++] = from;
    while (depth) {
        int b = stack[--depth], next[2] = {ir->block[b].target, ir->block[b].fall};
        highest = b > highest ? b : highest;
        for (int s = 0; s < 2; s++)
            if (next[s] >= 0 && next[s] < n && next[s] != stop && !seen[next[s]]) {
                seen[next[s]] = true;
                stack[depth++] = next[s];
            }
    }
    return highest;
}

static bool keep_more(const struct ir *ir, struct block *b, const uint64_t *set)
{
    bool changed = !b->div;
    b->div = true;
    for (int i = 0; i < ir->words; i++) {
        changed |= (set[i] & ~b->keep[i]) != 0;
        b->keep[i] |= set[i];
    }
    return changed;
}

static void add_live(const struct ir *ir, uint64_t *set, const bool *blocks)
{
    for (int b = 0; b < ir->block_count; b++)
        for (int i = 0; blocks[b] && i < ir->words; i++)
            set[i] |= ir->block[b].live_in[i];
}

/* The order of the text does not bring the lanes together, or they never meet:
 * everything after the branch may run apart, with anything still needed. */
static bool mark_all(struct ir *ir, int branch, int *stack, bool *seen)
{
    uint64_t *all = arena_array(ir->a, (size_t)ir->words, sizeof *all);
    bool changed = false;
    memset(all, 0xff, (size_t)ir->words * sizeof *all);
    for (int r = 0; r < ir->k->reg_count; r++)
        if (ir->local[r])
            set_drop(all, r);
    int succ[2] = {ir->block[branch].target, ir->block[branch].fall};
    for (int s = 0; s < 2; s++) {
        reach(ir, succ[s], -1, stack, seen);
        for (int b = 0; b < ir->block_count; b++)
            if (seen[b])
                changed |= keep_more(ir, &ir->block[b], all);
    }
    return changed;
}

/* Blocks between a branch and where its lanes meet again. Lanes of one side
 * wait at the meeting point or somewhere on the other side. */
static bool mark_region(struct ir *ir, int branch)
{
    int stop = ir->ipdom[branch], n = ir->block_count;
    int succ[2] = {ir->block[branch].target, ir->block[branch].fall}, highest = -1;
    size_t words = (size_t)ir->words;
    int *stack = arena_array(ir->a, (size_t)n + 2, sizeof *stack);
    bool *side[2], changed = false;
    uint64_t *live[2];
    for (int s = 0; s < 2; s++) {
        side[s] = arena_array(ir->a, (size_t)n + 1, sizeof *side[s]);
        live[s] = arena_array(ir->a, words, sizeof *live[s]);
        int h = reach(ir, succ[s], stop, stack, side[s]);
        highest = h > highest ? h : highest;
        add_live(ir, live[s], side[s]);
    }
    if (stop < n && !ir->block[stop].join)
        changed = ir->block[stop].join = true;
    if (stop >= n || highest >= stop)
        return mark_all(ir, branch, stack, side[0]) || changed;
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < words; i++)
            live[s][i] |= ir->block[stop].live_in[i];
    for (int b = 0; b < n; b++)
        for (int s = 0; s < 2; s++)
            if (side[s][b]) {
                changed |= keep_more(ir, &ir->block[b], live[!s]);
                if (side[!s][b])
                    changed |= keep_more(ir, &ir->block[b], live[s]);
            }
    return changed;
}

bool loop_polls(const struct ir *ir, int head, int end)
{
    for (int b = head; b <= end && b < ir->block_count; b++)
        for (int i = 0; i < ir->block[b].count; i++) {
            const struct insn *in = &ir->k->insn[ir->block[b].insn[i]];
            if (insn_is(in, TRAIT_POLLS) ||
                insn_has_any(in, MOD_VOLATILE, MOD_RELAXED, MOD_ACQUIRE, MOD_MMIO))
                return true;
        }
    return false;
}

/* Lanes parked at a collective, or pushed back in a loop that polls, wait
 * there while others of the divided region run on. */
static bool mark_parked(struct ir *ir)
{
    uint64_t *need = arena_array(ir->a, (size_t)ir->words, sizeof *need);
    bool changed = false, any = false;
    for (int b = 0; b < ir->block_count; b++) {
        const struct block *bl = &ir->block[b];
        int succ[2] = {bl->target, bl->fall};
        if (!bl->div)
            continue;
        if (bl->collective) {
            any = true;
            for (int i = 0; i < ir->words; i++)
                need[i] |= bl->live_in[i];
        }
        for (int s = 0; s < 2; s++)
            if (succ[s] >= 0 && succ[s] <= b && loop_polls(ir, succ[s], b)) {
                any = true;
                for (int i = 0; i < ir->words; i++)
                    need[i] |= ir->block[succ[s]].live_in[i];
            }
    }
    for (int b = 0; any && b < ir->block_count; b++)
        if (ir->block[b].div)
            changed |= keep_more(ir, &ir->block[b], need);
    return changed;
}

static bool mark_divergent(struct ir *ir)
{
    bool changed = false;
    for (int b = 0; b < ir->block_count; b++) {
        struct block *bl = &ir->block[b];
        if (bl->term < 0 || bl->fall < 0)
            continue;
        const struct insn *t = &ir->k->insn[bl->term];
        if (!ir->varying[t->pred] || t->op != OP_BRA)
            continue;
        if (block_leaves(ir, bl->target) || block_leaves(ir, bl->fall))
            continue; /* lanes that leave never come back */
        changed |= mark_region(ir, b);
    }
    return changed;
}

static void analyse(struct ir *ir)
{
    cut_blocks(ir);
    post_dominators(ir);
    liveness(ir);
    memset(ir->varying, 0, (size_t)ir->k->reg_count);
    for (bool changed = true; changed;) {
        changed = mark_varying(ir);
        changed |= mark_divergent(ir);
        changed |= mark_parked(ir);
    }
}

bool insn_bits(const struct insn *in)
{
    if (in->type != PT_PRED || in->arg_count < 2 || in->args[0].kind != OPND_REG ||
        in->args[0].reg2 >= 0)
        return false;
    switch (in->op) {
    case OP_AND:
    case OP_OR:
    case OP_XOR:
        return in->arg_count == 3;
    case OP_NOT:
    case OP_MOV:
        return in->arg_count == 2;
    default:
        return false;
    }
}

/* Logic between predicates is done on bits, unless lane-parallel code would
 * have to wait for it. */
static void mark_lanewise(struct ir *ir)
{
    int regs[MAX_INSN_REGS];
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < ir->k->insn_count; i++) {
            const struct insn *in = &ir->k->insn[i];
            if (insn_is_call(in) || insn_is(in, TRAIT_ENDS_BLOCK) ||
                (insn_bits(in) && !ir->lanewise[in->args[0].reg]))
                continue;
            int n = insn_uses(in, regs);
            for (int j = 0; j < n; j++)
                if (ir->k->reg_type[regs[j]] == PT_PRED && !ir->lanewise[regs[j]])
                    changed = ir->lanewise[regs[j]] = true;
        }
    }
}

bool ir_build(struct ptx_kernel *k, bool rows, struct arena *a, struct ir *out, struct error *err)
{
    *out = (struct ir){.k = k, .a = a, .rows = rows};
    out->words = (k->reg_count + 63) / 64 + 1;
    out->varying = arena_array(a, (size_t)k->reg_count + 1, sizeof *out->varying);
    out->local = arena_array(a, (size_t)k->reg_count + 1, sizeof *out->local);
    out->split = arena_array(a, (size_t)k->insn_count + 1, sizeof *out->split);
    if (k->insn_count > MAX_IR_INSNS)
        return error_set(err, ERROR_JUDGED, "%s has %d instructions, more than this device takes",
                         k->fn->name, k->insn_count);
    out->lanewise = arena_array(a, (size_t)k->reg_count + 1, sizeof *out->lanewise);
    mark_lanewise(out);
    find_tid(out);
    analyse(out);
    bool again = false;
    for (int b = 0; b < out->block_count; b++)
        for (int i = 0; out->block[b].div && i < out->block[b].count; i++)
            if (insn_collective(&k->insn[out->block[b].insn[i]]))
                again = out->split[out->block[b].insn[i]] = true;
    if (again)
        analyse(out);
    out->affine = affine_find(out, a);
    return true;
}
