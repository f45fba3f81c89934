/* SPDX-License-Identifier: Apache-2.0 */
/*
 * affine.c - which registers are base + stride * lane.
 *
 * Hides: the rules, and the fixed point over loops: a register starts as
 * unknown and keeps its stride while all of its definitions agree.
 */
#include "simt/ir/affine.h"

#include <string.h>

#define LIMIT_32   (INT64_C(1) << SHIFT_32) /* then at most one wrap lies within a warp */
#define SHIFT_32   26
#define LIMIT_64   (INT64_C(1) << 40)
#define LIMIT_WRAP (INT64_C(1) << 56)

static const struct affine none = {.is = AFFINE_NO}, same = {.is = AFFINE_YES},
                           lane = {.is = AFFINE_YES, .stride = 1, .lane = true};

static int int_bytes(enum ptx_type t)
{
    switch (t) {
    case PT_U32:
    case PT_S32:
    case PT_B32:
        return 4;
    case PT_U64:
    case PT_S64:
    case PT_B64:
        return 8;
    default:
        return 0;
    }
}

static struct affine sreg(const struct ir *ir, enum ptx_sreg s)
{
    switch (s) {
    case SREG_LANEID:
        return lane;
    case SREG_TID_X:
        return ir->rows ? lane : none;
    case SREG_TID_Y:
    case SREG_TID_Z:
    case SREG_LANEMASK_EQ:
    case SREG_LANEMASK_LT:
    case SREG_LANEMASK_LE:
    case SREG_LANEMASK_GT:
    case SREG_LANEMASK_GE:
    case SREG_CLOCK:
    case SREG_CLOCK_HI:
    case SREG_CLOCK64:
        return none;
    default:
        return same;
    }
}

static struct affine operand(const struct ir *ir, const struct affine *reg, const struct opnd *o)
{
    switch (o->kind) {
    case OPND_INT:
    case OPND_SYM:
        return same;
    case OPND_REG:
        if (o->not || o->reg2 >= 0 || !int_bytes(ir->k->reg_type[o->reg]))
            return none;
        return ir->varying[o->reg] ? reg[o->reg] : same;
    case OPND_SREG:
        return sreg(ir, o->sreg);
    default:
        return none;
    }
}

static struct affine limited(struct affine x, int bytes)
{
    int64_t limit = bytes == 4 ? LIMIT_32 : LIMIT_64;
    if (x.is == AFFINE_YES &&
        (x.stride >= limit || x.stride <= -limit || x.wrap >= LIMIT_WRAP || x.wrap <= -LIMIT_WRAP))
        return none;
    return x;
}

static struct affine plus(struct affine x, struct affine y, int sign)
{
    if (x.is != AFFINE_YES || y.is != AFFINE_YES)
        return x.is == AFFINE_NO || y.is == AFFINE_NO ? none : (struct affine){0};
    if (x.wrap && y.wrap)
        return none;
    return (struct affine){
        .is = AFFINE_YES, .stride = x.stride + sign * y.stride, .wrap = x.wrap + sign * y.wrap};
}

static struct affine times(struct affine x, const struct opnd *by, int64_t factor)
{
    if (x.is != AFFINE_YES || (x.stride == 0 && x.wrap == 0))
        return x;
    if (by->kind != OPND_INT || factor >= LIMIT_32 || factor <= -LIMIT_32)
        return none;
    return (struct affine){.is = AFFINE_YES, .stride = x.stride * factor, .wrap = x.wrap * factor};
}

static struct affine widened(struct affine x)
{
    x.lane = false;
    if (x.is == AFFINE_YES)
        x.wrap = x.stride > 0 ? -(INT64_C(1) << 32) : x.stride < 0 ? INT64_C(1) << 32 : 0;
    return x;
}

/* One factor is a constant, or neither differs between lanes. */
static struct affine product(const struct ir *ir, const struct affine *reg, const struct opnd *x,
                             const struct opnd *y, int bytes, bool wide, bool is_signed)
{
    struct affine a = operand(ir, reg, x), b = operand(ir, reg, y);
    if (x->kind == OPND_INT) {
        struct affine t = a;
        const struct opnd *o = x;
        a = b;
        b = t;
        x = y;
        y = o;
    }
    (void)x;
    if (b.is != AFFINE_YES)
        return b;
    if (b.stride || b.wrap)
        return none;
    int64_t factor =
        wide ? (is_signed ? (int64_t)(int32_t)(uint32_t)y->bits : (int64_t)(uint32_t)y->bits)
             : (int64_t)y->bits;
    if (!wide && bytes == 4) /* either sign is alike modulo 2^32 */
        factor = (int64_t)(int32_t)(uint32_t)y->bits;
    return times(wide ? widened(a) : a, y, factor);
}

/* Modifiers that are integer types, or the one that is named. */
static bool only_mods(const struct insn *in, enum ptx_mod allowed)
{
    for (int i = 0; i < in->mod_count; i++)
        if (!int_bytes(ptx_mod_type(in->mods[i])) && in->mods[i] != allowed)
            return false;
    return true;
}

/* bfi of something uniform above the lane's number. */
static struct affine bits_above(const struct ir *ir, const struct affine *reg, const struct opnd *x)
{
    struct affine into = operand(ir, reg, x + 1), bits = operand(ir, reg, x);
    if (into.is == AFFINE_UNKNOWN || bits.is == AFFINE_UNKNOWN)
        return (struct affine){0};
    return into.is == AFFINE_YES && into.lane && x[0].kind == OPND_REG && !ir->varying[x[0].reg] &&
                   x[1].kind == OPND_REG && x[2].kind == OPND_INT && x[3].kind == OPND_INT &&
                   x[2].bits >= 5 && x[2].bits < 32 && x[3].bits <= 32 - x[2].bits
               ? lane
               : none;
}

static struct affine result(const struct ir *ir, const struct affine *reg, const struct insn *in)
{
    const struct opnd *x = in->args + 1;
    int bytes = int_bytes(in->type), to = int_bytes(ir->k->reg_type[in->args[0].reg]);
    if (!bytes || !to || in->arg_count < 2)
        return none;
    if (in->op == OP_CVT && in->arg_count == 2 && int_bytes(in->type2) == to &&
        only_mods(in, MOD_NONE)) {
        struct affine v = operand(ir, reg, x);
        if (x->kind != OPND_REG || int_bytes(ir->k->reg_type[x->reg]) != bytes)
            return none;
        if (bytes == 4 && to == 8)
            return widened(v);
        if (bytes == 8 && to == 4)
            v.wrap = 0;
        return limited(v, to);
    }
    if (in->op == OP_CVTA)
        return in->arg_count == 2 && !insn_has_any(in, MOD_LOCAL, MOD_CONST, MOD_PARAM) &&
                       bytes == 8 && to == 8 && x->kind == OPND_REG
                   ? operand(ir, reg, x)
                   : none;
    if ((in->op == OP_MUL || in->op == OP_MAD) && insn_has_mod(in, MOD_WIDE)) {
        bool mad = in->op == OP_MAD;
        if (bytes != 4 || to != 8 || !only_mods(in, MOD_WIDE) || in->arg_count != 3 + mad)
            return none;
        struct affine p = product(ir, reg, x, x + 1, 4, true, in->type == PT_S32);
        return limited(mad ? plus(p, operand(ir, reg, x + 2), 1) : p, 8);
    }
    if (bytes != to)
        return none;
    if (insn_masks_tid(ir, in, false))
        return lane;
    if (in->op == OP_BFI && in->arg_count == 5)
        return bits_above(ir, reg, x);
    if (in->op == OP_MOV && in->arg_count == 2)
        return x->kind == OPND_SREG && to == 8 ? none : operand(ir, reg, x);
    if ((in->op == OP_ADD || in->op == OP_SUB) && in->arg_count == 3 && only_mods(in, MOD_NONE))
        return limited(
            plus(operand(ir, reg, x), operand(ir, reg, x + 1), in->op == OP_ADD ? 1 : -1), to);
    if (in->op == OP_MUL && in->arg_count == 3 && only_mods(in, MOD_LO))
        return limited(product(ir, reg, x, x + 1, bytes, false, false), to);
    if (in->op == OP_MAD && in->arg_count == 4 && only_mods(in, MOD_LO))
        return limited(
            plus(product(ir, reg, x, x + 1, bytes, false, false), operand(ir, reg, x + 2), 1), to);
    if (in->op == OP_SHL && in->arg_count == 3 && x[1].kind == OPND_INT && x[1].bits < SHIFT_32)
        return limited(times(operand(ir, reg, x), &x[1], INT64_C(1) << x[1].bits), to);
    return none;
}

static bool meet(struct affine *into, struct affine x)
{
    if (x.is == AFFINE_UNKNOWN || into->is == AFFINE_NO)
        return false;
    if (into->is == AFFINE_UNKNOWN) {
        *into = x;
        return true;
    }
    if (x.is == AFFINE_YES && x.stride == into->stride && x.wrap == into->wrap) {
        bool changed = into->lane && !x.lane;
        into->lane &= x.lane;
        return changed;
    }
    *into = none;
    return true;
}

struct affine *affine_find(const struct ir *ir, struct arena *a)
{
    int nr = ir->k->reg_count, regs[MAX_INSN_REGS];
    struct affine *out = arena_array(a, (size_t)nr + 1, sizeof *out);
    for (bool changed = true; changed;) {
        changed = false;
        for (int b = 0; b < ir->block_count; b++) {
            const struct block *bl = &ir->block[b];
            for (int i = 0; i < bl->count; i++) {
                const struct insn *in = &ir->k->insn[bl->insn[i]];
                int n = insn_defs(in, regs);
                for (int j = 0; j < n; j++) {
                    if (!ir->varying[regs[j]])
                        continue;
                    bool fits = n == 1 && in->args[0].kind == OPND_REG && in->args[0].reg2 < 0 &&
                                !block_keeps(bl, regs[j]) &&
                                (in->pred < 0 || !ir->varying[in->pred]);
                    changed |= meet(&out[regs[j]], fits ? result(ir, out, in) : none);
                }
            }
        }
    }
    for (int r = 0; r < nr; r++)
        if (out[r].is == AFFINE_UNKNOWN || !ir->varying[r])
            out[r] = none;
    return out;
}

bool insn_tests_row(const struct ir *ir, const struct insn *in)
{
    if (in->op != OP_SETP || in->arg_count != 3 || in->mod_count != 2 ||
        (in->type != PT_S32 && in->type != PT_U32) || in->args[0].kind != OPND_REG ||
        in->args[0].reg2 >= 0 || ir->lanewise[in->args[0].reg] || !ir->varying[in->args[0].reg])
        return false;
    const struct opnd *x = &in->args[1], *y = &in->args[2];
    struct affine row = operand(ir, ir->affine, x), limit = operand(ir, ir->affine, y);
    if (x->kind != OPND_REG || int_bytes(ir->k->reg_type[x->reg]) != 4 || row.is != AFFINE_YES ||
        row.stride != 1 || limit.is != AFFINE_YES ||
        (y->kind == OPND_REG ? ir->varying[y->reg] || int_bytes(ir->k->reg_type[y->reg]) != 4
                             : y->kind != OPND_INT))
        return false;
    return insn_has_any(in, MOD_LT, MOD_LE, MOD_GT, MOD_GE);
}
