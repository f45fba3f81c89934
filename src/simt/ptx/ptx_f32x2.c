/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_f32x2.c - arithmetic on two f32 in a 64-bit register (sm_100): read as one instruction on
 * each half, between moves that take the registers apart and put the result together.
 */
#include "simt/ptx/ptx_body.h"

#include <string.h>

static struct opnd reg_opnd(int reg)
{
    return (struct opnd){.kind = OPND_REG, .reg = reg, .reg2 = -1, .target = -1};
}

/* Two f32: those of {a, b}, or new registers. */
static struct opnd halves_of(struct ptx_reader *r, const struct opnd *o)
{
    struct opnd list = {.kind = OPND_VEC, .reg = -1, .reg2 = -1, .target = -1, .count = 2};
    if (o->kind == OPND_VEC)
        return *o;
    list.list = arena_array(r->a, 2, sizeof *list.list);
    for (int i = 0; i < 2; i++)
        list.list[i] = reg_opnd(ptx_reg_new(r, "half", PT_F32));
    return list;
}

static struct insn mov_b64(struct ptx_reader *r, const struct insn *like, struct opnd to,
                           struct opnd from)
{
    struct insn in = *like;
    in.op = OP_MOV;
    in.mods[0] = MOD_B64;
    in.mod_count = 1;
    in.type = PT_B64;
    in.arg_count = 2;
    in.args = arena_array(r->a, 2, sizeof *in.args);
    in.args[0] = to;
    in.args[1] = from;
    return in;
}

static struct insn one_half(struct ptx_reader *r, const struct insn *like, const struct opnd *of,
                            int half)
{
    struct insn in = *like;
    for (int i = 0; i < in.mod_count; i++)
        if (in.mods[i] == MOD_F32X2)
            in.mods[i] = MOD_F32;
    in.type = PT_F32;
    in.args = arena_array(r->a, (size_t)in.arg_count, sizeof *in.args);
    for (int i = 0; i < in.arg_count; i++)
        in.args[i] = of[i].list[half];
    return in;
}

int ptx_split_f32x2(struct ptx_reader *r, const struct insn *in, struct insn out[SPLIT_MAX])
{
    struct opnd of[4];
    int n = 0, args = in->arg_count;
    if (in->op == OP_FMA ? args != 4 : args != 3)
        return 0;
    if (in->op != OP_FMA && in->op != OP_ADD && in->op != OP_SUB && in->op != OP_MUL)
        return 0;
    for (int i = 0; i < args; i++) {
        const struct opnd *o = &in->args[i];
        if (o->kind == OPND_VEC ? o->count != 2 : o->kind != OPND_REG)
            return 0;
        of[i] = halves_of(r, o);
        if (i && o->kind == OPND_REG)
            out[n++] = mov_b64(r, in, of[i], *o);
    }
    for (int half = 0; half < 2; half++)
        out[n++] = one_half(r, in, of, half);
    if (in->args[0].kind == OPND_REG)
        out[n++] = mov_b64(r, in, in->args[0], of[0]);
    return n;
}
