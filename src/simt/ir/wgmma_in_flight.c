/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma_in_flight.c - where registers of a wgmma under way may be read.
 *
 * The result of wgmma.mma_async is there after its wait. Reading it earlier
 * is a mistake that no address shows, so it is looked for in the text: a
 * register that may still be under way on some path gets a check before the
 * instruction that reads it, and the device decides whether it is. Plain
 * moves are ignored: the compiler makes them around inline assembly.
 *
 * Likewise wgmma.fence: its registers must be fenced after they were written otherwise. A wgmma is
 * marked where that is missing on every path to it.
 */
#include "simt/ir/wgmma_in_flight.h"

#include "simt/ir/ir.h"

#include <string.h>

static bool is_wgmma(const struct insn *in)
{
    return in->op == OP_WGMMA && insn_has_mod(in, MOD_MMA_ASYNC);
}

static bool waits_for_all(const struct insn *in)
{
    return (in->op == OP_WGMMA && insn_has_mod(in, MOD_WAIT_GROUP) && in->arg_count &&
            !in->args[0].bits) ||
           (in->op == OP_TCGEN05 && insn_has_mod(in, MOD_WAIT_LD));
}

/* Likewise of tcgen05.ld: there after its wait. */
static bool is_tensor_load(const struct insn *in)
{
    return in->op == OP_TCGEN05 && insn_has_mod(in, MOD_LD);
}

static bool starts(const struct insn *in)
{
    return is_wgmma(in) || is_tensor_load(in);
}

struct flow {
    const struct ptx_kernel *k;
    uint64_t *in; /* per instruction: registers that may be under way before it */
    int words;
};

static bool merge(struct flow *f, int to, const uint64_t *set)
{
    bool changed = false;
    uint64_t *at = f->in + (size_t)to * (size_t)f->words;
    if (to >= f->k->insn_count)
        return false;
    for (int i = 0; i < f->words; i++) {
        changed |= (set[i] & ~at[i]) != 0;
        at[i] |= set[i];
    }
    return changed;
}

/* Only the accumulators of the kernel are numbered: few words per instruction. */
static int number_registers(const struct ptx_kernel *k, int *number)
{
    int n = 0;
    for (int i = 0; i < k->reg_count; i++)
        number[i] = -1;
    for (int i = 0; i < k->insn_count; i++)
        for (int q = 0; starts(&k->insn[i]) && q < k->insn[i].args[0].count; q++) {
            int reg = k->insn[i].args[0].list[q].reg;
            if (reg >= 0 && number[reg] < 0)
                number[reg] = n++;
        }
    return n;
}

static void find_flow(struct flow *f, const int *number, struct arena *a)
{
    const struct ptx_kernel *k = f->k;
    uint64_t *out = arena_array(a, (size_t)f->words, sizeof *out);
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < k->insn_count; i++) {
            const struct insn *in = &k->insn[i];
            memcpy(out, f->in + (size_t)i * (size_t)f->words, (size_t)f->words * sizeof *out);
            if (waits_for_all(in))
                memset(out, 0, (size_t)f->words * sizeof *out);
            for (int q = 0; starts(in) && q < in->args[0].count; q++)
                if (in->args[0].list[q].reg >= 0)
                    set_add(out, number[in->args[0].list[q].reg]);
            bool bra = in->op == OP_BRA, leaves = in->op == OP_RET;
            if (bra)
                changed |= merge(f, in->args[0].target, out);
            if (!(bra || leaves) || in->pred >= 0)
                changed |= merge(f, i + 1, out);
        }
    }
}

static int touched(const struct flow *f, const int *number, int i)
{
    int regs[MAX_INSN_REGS], n;
    const struct insn *in = &f->k->insn[i];
    const uint64_t *set = f->in + (size_t)i * (size_t)f->words;
    if (in->op == OP_MOV || in->op == OP_WGMMA || is_tensor_load(in))
        return -1;
    n = insn_uses(in, regs);
    for (int q = 0; q < n; q++)
        if (number[regs[q]] >= 0 && set_has(set, number[regs[q]]))
            return regs[q];
    return -1;
}

/* Checks go into the list of instructions; labels move with what they name. */
static void insert(struct ptx_kernel *k, const int *reg, struct arena *a)
{
    int extra = 0, n = 0, *moved = arena_array(a, (size_t)k->insn_count + 1, sizeof *moved);
    for (int i = 0; i < k->insn_count; i++)
        extra += reg[i] >= 0;
    if (!extra)
        return;
    struct insn *list = arena_array(a, (size_t)(k->insn_count + extra) + 1, sizeof *list);
    for (int i = 0; i < k->insn_count; i++) {
        moved[i] = n;
        if (reg[i] >= 0) {
            struct insn *in = &list[n++];
            *in = k->insn[i];
            in->op = OP_WGTOUCH;
            in->mod_count = 0;
            in->arg_count = 1;
            in->args = arena_alloc(a, sizeof *in->args);
            in->args[0] = (struct opnd){.kind = OPND_REG, .reg = reg[i], .reg2 = -1, .target = -1};
        }
        list[n++] = k->insn[i];
    }
    moved[k->insn_count] = n;
    for (int i = 0; i < n; i++)
        if (list[i].arg_count == 1 && list[i].args[0].kind == OPND_LABEL)
            list[i].args[0].target = moved[list[i].args[0].target];
    k->insn = list;
    k->insn_count = k->insn_cap = n;
}

/* Writes a register that some wgmma takes or gives. */
static bool writes_operand(const struct insn *in, const bool *operand)
{
    int regs[MAX_INSN_REGS];
    if (in->op == OP_MOV || in->op == OP_WGMMA)
        return false;
    for (int n = insn_defs(in, regs); n-- > 0;)
        if (operand[regs[n]])
            return true;
    return false;
}

static void mark_unfenced(struct ptx_kernel *k, struct arena *a)
{
    bool *operand = arena_array(a, (size_t)k->reg_count + 1, sizeof *operand);
    bool *fenced = arena_array(a, (size_t)k->insn_count + 1, sizeof *fenced); /* on some path */
    int regs[MAX_INSN_REGS];
    for (int i = 0; i < k->insn_count; i++)
        for (int q = 0; is_wgmma(&k->insn[i]) && q < 2; q++) {
            int n = 0;
            if (k->insn[i].args[q].kind == OPND_VEC) /* else a descriptor */
                operand_regs(&k->insn[i].args[q], regs, &n);
            while (n-- > 0)
                operand[regs[n]] = true;
        }
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < k->insn_count; i++) {
            const struct insn *in = &k->insn[i];
            bool fence = in->op == OP_WGMMA && insn_has_mod(in, MOD_FENCE);
            bool out = fence || (fenced[i] && !writes_operand(in, operand));
            bool bra = in->op == OP_BRA, leaves = in->op == OP_RET;
            if (out && bra && !fenced[in->args[0].target])
                changed = fenced[in->args[0].target] = true;
            if (out && (!(bra || leaves) || in->pred >= 0) && !fenced[i + 1])
                changed = fenced[i + 1] = true;
        }
    }
    for (int i = 0; i < k->insn_count; i++)
        k->insn[i].unfenced = is_wgmma(&k->insn[i]) && !fenced[i];
}

void wgmma_mark(struct ptx_kernel *k, struct arena *a)
{
    int *number = arena_array(a, (size_t)k->reg_count + 1, sizeof *number);
    int n = number_registers(k, number), *reg;
    struct flow f = {.k = k, .words = (n + 63) / 64};
    if (!n)
        return;
    mark_unfenced(k, a);
    f.in = arena_array(a, (size_t)(k->insn_count + 1) * (size_t)f.words, sizeof *f.in);
    find_flow(&f, number, a);
    reg = arena_array(a, (size_t)k->insn_count + 1, sizeof *reg);
    for (int i = 0; i < k->insn_count; i++)
        reg[i] = touched(&f, number, i);
    insert(k, reg, a);
}
