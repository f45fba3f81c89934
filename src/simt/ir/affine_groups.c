/* SPDX-License-Identifier: Apache-2.0 */
/*
 * affine_groups.c - base of a group + stride * lane of the group, by the text alone.
 *
 * Hides: the rules. What a loop changes by a uniform step keeps its pattern;
 * anything not understood has none.
 */
#include "simt/ir/affine_groups.h"

#include <string.h>

enum { MAX_FACTOR = 1 << 20, MAX_SHIFT = 20 };

static const struct strip uniform = {true, 32, 0};

static struct strip of_operand(const struct ir *ir, const struct strip *reg, const struct opnd *o)
{
    switch (o->kind) {
    case OPND_INT:
    case OPND_SYM:
        return uniform;
    case OPND_REG:
        if (o->not || o->reg2 >= 0)
            return (struct strip){0};
        return ir->varying[o->reg] ? reg[o->reg] : uniform;
    case OPND_SREG:
        if (o->sreg == SREG_LANEID || o->sreg == SREG_TID_X)
            return (struct strip){true, 32, 1};
        return (struct strip){o->sreg != SREG_TID_Y && o->sreg != SREG_TID_Z, 32, 0};
    default:
        return (struct strip){0};
    }
}

static struct strip sum(struct strip x, struct strip y, int sign)
{
    return (struct strip){x.is && y.is, x.group < y.group ? x.group : y.group,
                          x.stride + sign * y.stride};
}

static struct strip scaled(struct strip x, const struct opnd *by, int64_t factor)
{
    if (x.stride && (by->kind != OPND_INT || factor > MAX_FACTOR || factor < -MAX_FACTOR))
        return (struct strip){0};
    x.stride *= x.stride ? factor : 1;
    return x;
}

/* Only bits below 2^k. */
static struct strip low_bits(struct strip x, int k)
{
    if (x.stride < 0 || x.stride >> k)
        x.is = false;
    while (x.is && x.stride * x.group > INT64_C(1) << k)
        x.group /= 2;
    return x;
}

/* Without the bits below 2^k. */
static struct strip high_bits(struct strip x, int k)
{
    if (x.stride < 0 || (x.stride && x.stride >> k))
        x.is = x.is && x.stride % (INT64_C(1) << k) == 0;
    else {
        x = low_bits(x, k);
        x.stride = 0;
    }
    return x;
}

static struct strip masked(struct strip x, const struct opnd *by)
{
    uint32_t mask = (uint32_t)by->bits;
    if (!x.stride)
        return x;
    if (by->kind != OPND_INT || !mask)
        return (struct strip){0};
    int zeros = __builtin_ctz(mask);
    uint32_t ones = mask >> zeros;
    if (ones & (ones + 1))
        return (struct strip){0}; /* not one run of bits */
    if (zeros)
        x = high_bits(x, zeros);
    int top = zeros + __builtin_popcount(ones);
    return x.stride && top < 32 ? low_bits(x, top) : x;
}

static struct strip of_result(const struct ir *ir, const struct strip *reg, const struct insn *in)
{
    const struct opnd *x = in->args + 1;
    if (in->arg_count < 2 || in->pred >= 0)
        return (struct strip){0};
    struct strip a = of_operand(ir, reg, x);
    if (in->arg_count == 2 && (in->op == OP_MOV || in->op == OP_CVT || in->op == OP_CVTA))
        return a;
    if (in->arg_count < 3)
        return (struct strip){0};
    struct strip b = of_operand(ir, reg, x + 1);
    const struct opnd *by = x[1].kind == OPND_INT ? x + 1 : x;
    if (in->op == OP_ADD || in->op == OP_OR)
        return sum(a, b, 1);
    if (in->op == OP_SUB)
        return sum(a, b, -1);
    if (in->op == OP_AND)
        return a.is && x[1].kind == OPND_INT ? masked(a, x + 1) : (struct strip){0};
    if (in->op == OP_SHL)
        return x[1].kind == OPND_INT && x[1].bits < MAX_SHIFT
                   ? scaled(a, x + 1, INT64_C(1) << x[1].bits)
                   : (struct strip){0};
    if (in->op == OP_SHR) {
        if (x[1].kind != OPND_INT || x[1].bits > 31)
            return (struct strip){0};
        a = high_bits(a, (int)x[1].bits);
        a.stride >>= x[1].bits;
        return a;
    }
    if (in->op == OP_BFI && in->arg_count == 5 && a.is && !a.stride)
        return (struct strip){b.is, b.group < a.group ? b.group : a.group, b.stride};
    if ((in->op == OP_MUL || in->op == OP_MAD) && !insn_has_mod(in, MOD_HI)) {
        struct strip p = sum(a, b, 1);
        if (a.is && b.is && a.stride && b.stride)
            p.is = false;
        else
            p = scaled(p, by, (int64_t)(int32_t)(uint32_t)by->bits);
        return in->op == OP_MUL || in->arg_count < 4 ? p : sum(p, of_operand(ir, reg, x + 2), 1);
    }
    return (struct strip){0};
}

struct strip *strips_find(const struct ir *ir, struct arena *a)
{
    int nr = ir->k->reg_count, regs[MAX_INSN_REGS];
    struct strip *out = arena_array(a, (size_t)nr + 1, sizeof *out);
    bool *seen = arena_array(a, (size_t)nr + 1, sizeof *seen);
    /* In the order of the text; a loop's own step does not change a pattern. */
    for (int b = 0; b < ir->block_count; b++)
        for (int i = 0; i < ir->block[b].count; i++) {
            const struct insn *in = &ir->k->insn[ir->block[b].insn[i]];
            int n = insn_defs(in, regs);
            for (int j = 0; j < n; j++) {
                struct strip x = n == 1 ? of_result(ir, out, in) : (struct strip){0};
                struct strip *o = &out[regs[j]];
                if (seen[regs[j]] && (!x.is || x.stride != o->stride))
                    o->is = false;
                else if (!seen[regs[j]] || x.group < o->group)
                    *o = x;
                seen[regs[j]] = true;
            }
        }
    return out;
}
