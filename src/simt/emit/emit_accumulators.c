/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit_accumulators.c - tiles of multiply-adds: keep each sum in one machine register.
 *
 * Hides: that gcc otherwise moves sums between registers, which on NEON costs as much as a
 * multiply-add.
 *
 * Only for segments of nothing else, whose sums fit and whose factors are a vector and one word:
 * the products of matrices that list_schedule.c cuts into tiles.
 */
#include "simt/emit/emit.h"

#include "simt/ir/list_schedule.h"

#include <string.h>

/* v16 and up: the others are for factors, and half of them would have to be saved. */
enum { FIRST = 16, SUMS = 16 };

static bool is_sum(const struct emit *e, const struct insn *in)
{
    if (in->op != OP_FMA || in->type != PT_F32 || in->pred >= 0 || in->arg_count != 4 ||
        insn_has_mod(in, MOD_FTZ) || insn_has_mod(in, MOD_SAT))
        return false;
    for (int i = 0; i < 4; i++)
        if (in->args[i].kind != OPND_REG || !e->ir->varying[in->args[i].reg] ||
            reg_class(e, in->args[i].reg) != CLASS_F)
            return false;
    int sum = in->args[3].reg;
    return (is_one_word(e, in->args[1].reg) || is_one_word(e, in->args[2].reg)) &&
           e->strip[sum].block != e->block + 1 && e->direct[sum] != e->block + 1;
}

static bool reads(const struct insn *in, int reg)
{
    int regs[MAX_INSN_REGS];
    for (int n = insn_uses(in, regs); n-- > 0;)
        if (regs[n] == reg)
            return true;
    return false;
}

/* The sum's value before this instruction is not used again. */
static bool consumed(const struct emit *e, const struct item *it, int at)
{
    const struct insn *in = &e->k->insn[it->insn[at]];
    int sum = in->args[3].reg, to = in->args[0].reg;
    if (in->args[1].reg == sum || in->args[2].reg == sum || in->args[1].reg == to ||
        in->args[2].reg == to)
        return false;
    for (int i = at + 1; i < it->count && sum != to; i++)
        if (reads(&e->k->insn[it->insn[i]], sum))
            return false;
    return true;
}

bool sums_begin(struct emit *e, const struct item *it)
{
    int used = 0;
    bool good = e->strips && e->unit->lanes == 4;
    for (int i = 0; i < it->count && good; i++)
        good = is_sum(e, &e->k->insn[it->insn[i]]) && consumed(e, it, i);
    for (int i = 0; i < it->count && good; i++) {
        const struct insn *in = &e->k->insn[it->insn[i]];
        int sum = in->args[3].reg;
        if (!e->home[sum])
            e->home[sum] = FIRST + used++;
        e->home[in->args[0].reg] = e->home[sum];
        good = used <= SUMS;
    }
    if (!good)
        sums_end(e, it);
    return good;
}

void sums_end(struct emit *e, const struct item *it)
{
    for (int i = 0; i < it->count; i++) {
        const struct insn *in = &e->k->insn[it->insn[i]];
        for (int j = 0; j < in->arg_count; j++)
            if (in->args[j].kind == OPND_REG)
                e->home[in->args[j].reg] = 0;
    }
}

void emit_sum(struct emit *e, const struct insn *in)
{
    const struct opnd *by = &in->args[1], *one = &in->args[2];
    if (!is_one_word(e, one->reg)) {
        by = &in->args[2];
        one = &in->args[1];
    }
    segment_value(e, one->reg); /* loads the word too */
    const char *vector = segment_value(e, by->reg), *sum = segment_value(e, in->args[3].reg);
    const char *to = segment_next(e, in->args[0].reg);
    buf_printf(e->out, "register F %s SUM_IN(%d) = %s; V_sum_one(%s, %s, u%d);\n", to,
               e->home[in->args[0].reg], sum, to, vector, one->reg);
}
