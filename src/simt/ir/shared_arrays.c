/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_arrays.c - which array of shared memory an address points into.
 *
 * One array that is overrun reads or writes the next: no address shows that, but the text says
 * where the address came from. A register gets the array that all of its definitions agree on: the
 * address of the array itself, and sums of it with numbers. What comes from memory or from another
 * calculation counts as a number; where two arrays meet, nothing is known.
 */
#include "simt/ir/shared_arrays.h"

#include "simt/ir/ir.h"

static const struct ptx_var several;

static bool is_array(const struct ptx_var *v)
{
    return v && v->space == PS_SHARED && !v->external && v->bytes;
}

static const struct ptx_var *join(const struct ptx_var *x, const struct ptx_var *y)
{
    return !x || x == y ? y : !y ? x : &several;
}

static const struct ptx_var *of_operand(const struct opnd *o, const struct ptx_var *const *of_reg)
{
    if (o->kind == OPND_REG && o->reg >= 0)
        return of_reg[o->reg];
    if (o->kind == OPND_SYM && is_array(o->var))
        return o->var;
    return NULL;
}

/* What the result of an instruction points into. */
static const struct ptx_var *result_of(const struct insn *in, const struct ptx_var *const *of_reg)
{
    const struct ptx_var *x = NULL, *y = NULL;
    switch (in->op) {
    case OP_MOV:
    case OP_CVT:
    case OP_CVTA:
        return in->arg_count > 1 ? of_operand(&in->args[1], of_reg) : NULL;
    case OP_SUB:
        x = of_operand(&in->args[1], of_reg);
        y = of_operand(&in->args[2], of_reg);
        return y ? &several : x;
    case OP_ADD:
    case OP_OR:
    case OP_AND:
    case OP_XOR:
    case OP_SELP:
    case OP_MIN:
    case OP_MAX:
    case OP_MAD:
        for (int i = 1; i < in->arg_count; i++)
            x = join(x, of_operand(&in->args[i], of_reg));
        return x;
    case OP_SHFL:
        return in->arg_count > 1 && of_operand(&in->args[1], of_reg) ? &several : NULL;
    default:
        return NULL;
    }
}

const struct ptx_var **shared_arrays(const struct ptx_kernel *k, struct arena *a)
{
    const struct ptx_var **of_reg = arena_array(a, (size_t)k->reg_count + 1, sizeof *of_reg);
    bool any = false;
    for (int i = 0; i < k->insn_count && !any; i++)
        for (int q = 0; q < k->insn[i].arg_count; q++)
            any |= is_array(k->insn[i].args[q].var);
    for (bool changed = any; changed;) {
        changed = false;
        for (int i = 0; i < k->insn_count; i++) {
            const struct insn *in = &k->insn[i];
            if (in->arg_count < 2 || in->args[0].kind != OPND_REG || in->args[0].reg < 0 ||
                insn_writes_nothing(in))
                continue;
            const struct ptx_var *to = of_reg[in->args[0].reg], *now = result_of(in, of_reg);
            now = join(to, now);
            changed |= now != to;
            of_reg[in->args[0].reg] = now;
        }
    }
    return of_reg;
}

const struct ptx_var *shared_array_of(const struct opnd *o, const struct ptx_var *const *of_reg)
{
    if (o->kind != OPND_ADDR)
        return NULL;
    const struct ptx_var *v = o->reg >= 0 ? of_reg[o->reg] : is_array(o->var) ? o->var : NULL;
    return v == &several ? NULL : v;
}
