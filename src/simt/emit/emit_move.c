/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit_move.c - moves and other operations that only rearrange bits: mov and its packs, cvta,
 * parameters, lop3, carries, logic of predicates.
 */
#include "simt/emit/emit.h"
#include "simt/ptx/call_kinds.h"

#include <inttypes.h>
#include <string.h>

static void emit_lop3(struct emit *e, const struct insn *in)
{
    if (in->arg_count < 5 || in->args[4].kind != OPND_INT || in->type != PT_B32) {
        emit_fail(e, in, "not a known form of lop3");
        return;
    }
    unsigned lut = (unsigned)in->args[4].bits & 255;
    const char *x[3];
    for (int i = 0; i < 3; i++)
        x[i] = named(e, value(e, in, &in->args[1 + i], 'I'), e->vec ? "I" : "u32");
    const char *t = NULL;
    for (unsigned i = 0; i < 8; i++) {
        if (!(lut >> i & 1))
            continue;
        t = arena_printf(e->a, "%s%s(%s%s & %s%s & %s%s)", t ? t : "", t ? " | " : "",
                         i & 4 ? "" : "~", x[0], i & 2 ? "" : "~", x[1], i & 1 ? "" : "~", x[2]);
    }
    if (!t)
        t = arena_printf(e->a, "(%s ^ %s)", x[0], x[0]);
    assign(e, in, &in->args[0], arena_printf(e->a, "(%s)", t), CLASS_I);
}

/* mov d, {a, b} and mov {a, b}, s: pieces of 8, 16 or 32 bits. */
static void emit_pack(struct emit *e, const struct insn *in)
{
    const struct opnd *d = &in->args[0], *s = &in->args[1];
    if (s->kind == OPND_VEC) {
        bool is_wide = ptx_type_bytes(in->type) == 8;
        unsigned bits = 8 * ptx_type_bytes(in->type) / (unsigned)s->count;
        const char *t = NULL;
        for (int i = 0; i < s->count; i++) {
            const char *p = value(e, in, &s->list[i], bits == 32 ? 'I' : bits == 16 ? 'H' : 'I');
            if (bits == 8)
                p = arena_printf(e->a, "(%s & 0xffu)", p);
            if (is_wide && e->vec)
                t = t ? arena_printf(e->a, "Q_or(%s, Q_up(Q_wu(%s), %u))", t, p, bits * (unsigned)i)
                      : arena_printf(e->a, "Q_wu(%s)", p);
            else
                t = arena_printf(e->a, "%s%s((%s%s) << %u)", t ? t : "", t ? " | " : "",
                                 is_wide ? "(u64)" : "", p, bits * (unsigned)i);
        }
        if (!is_wide || !e->vec)
            t = arena_printf(e->a, "(%s)", t);
        assign(e, in, d, t, is_wide ? CLASS_Q : CLASS_I);
        return;
    }
    bool is_wide = ptx_type_bytes(in->type) == 8;
    unsigned bits = 8 * ptx_type_bytes(in->type) / (unsigned)d->count;
    const char *x = named(e, value(e, in, s, is_wide ? 'Q' : 'I'),
                          e->vec    ? (is_wide ? "Q" : "I")
                          : is_wide ? "u64"
                                    : "u32");
    for (int i = 0; i < d->count; i++) {
        const char *t;
        if (is_wide && e->vec)
            t = arena_printf(e->a, "Q_nar(Q_down(%s, %u))", x, bits * (unsigned)i);
        else
            t = arena_printf(e->a, is_wide ? "(u32)(%s >> %u)" : "(%s >> %u)", x,
                             bits * (unsigned)i);
        if (bits == 8)
            t = arena_printf(e->a, "(%s & 0xffu)", t);
        assign(e, in, &d->list[i], t, CLASS_I);
    }
}

static void emit_mov(struct emit *e, const struct insn *in)
{
    if (in->arg_count != 2) {
        emit_fail(e, in, "mov wants two operands");
        return;
    }
    const struct opnd *d = &in->args[0], *s = &in->args[1];
    if (d->kind == OPND_VEC || s->kind == OPND_VEC) {
        const struct opnd *v = d->kind == OPND_VEC ? d : s;
        if ((v->count != 2 && v->count != 4) || ptx_type_bytes(in->type) > 8 ||
            ptx_type_bytes(in->type) < 2 || (v->count == 4 && ptx_type_bytes(in->type) < 4))
            emit_fail(e, in, "not a known form of mov");
        else
            emit_pack(e, in);
        return;
    }
    if (in->type == PT_PRED) {
        if (d->kind == OPND_REG)
            assign_reg(e, in, d->reg, value(e, in, s, 'P'));
        return;
    }
    bool is_wide = ptx_type_bytes(in->type) == 8;
    char letter = is_wide ? 'Q' : in->type == PT_F32 ? 'F' : 'I';
    assign(e, in, d, value(e, in, s, letter),
           is_wide         ? CLASS_Q
           : letter == 'F' ? CLASS_F
                           : CLASS_I);
}

/* Kernel parameters: one scalar load, spread where the register varies. */
static void emit_ld_param(struct emit *e, const struct insn *in)
{
    static const char *const types[] = {[1] = "u8", [2] = "u16", [4] = "u32", [8] = "u64"};
    const struct opnd *d = &in->args[0], *s = &in->args[1];
    unsigned bytes = ptx_type_bytes(in->type);
    int n = d->kind == OPND_VEC ? d->count : 1;
    if (!s->var || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)) {
        emit_fail(e, in, "not a known form of ld.param");
        return;
    }
    for (int i = 0; i < n; i++) {
        const struct opnd *o = d->kind == OPND_VEC ? &d->list[i] : d;
        int64_t at = (int64_t)s->var->offset + s->off + i * (int64_t)bytes;
        if (at < 0 || (uint64_t)at + bytes > e->k->param_bytes) {
            emit_fail(e, in, "reads outside the parameters");
            return;
        }
        bool sign = in->type == PT_S8 || in->type == PT_S16;
        const char *t = arena_printf(e->a, "%s*(const %s *)(B->params + %" PRId64 ")",
                                     !sign        ? ""
                                     : bytes == 1 ? "(u32)(s32)(signed char)"
                                                  : "(u32)(s32)(s16)",
                                     types[bytes], at);
        if (e->vec)
            t = arena_printf(e->a, bytes == 8 ? "Q_spl(%s)" : "I_spl(%s)", t);
        assign(e, in, o, t, bytes == 8 ? CLASS_Q : CLASS_I);
    }
}

/* Generic addresses are host addresses; shared ones count from the block's memory. */
static void emit_cvta(struct emit *e, const struct insn *in)
{
    bool to = insn_has_mod(in, MOD_TO), local = insn_has_mod(in, MOD_LOCAL);
    const char *v = value(e, in, &in->args[1], 'Q'), *base = NULL;
    if (insn_shared(in))
        base = "(u64)B->smem";
    else if (local)
        base = NULL;
    if (local && e->vec)
        v = arena_printf(e->a, to ? "Q_sub(%s, Q_local(W, c))" : "Q_add(%s, Q_local(W, c))", v);
    else if (local)
        emit_fail(e, in, "a local address is the same for all lanes");
    else if (base && e->vec)
        v = arena_printf(e->a, to ? "Q_sub(%s, Q_spl(%s))" : "Q_add(%s, Q_spl(%s))", v, base);
    else if (base)
        v = arena_printf(e->a, to ? "(%s - %s)" : "(%s + %s)", v, base);
    assign(e, in, &in->args[0], v, CLASS_Q);
}

static bool is_carry(const struct insn *in)
{
    return insn_has_mod(in, MOD_CC) || insn_is(in, TRAIT_READS_CARRY);
}

/* add.cc, addc, sub.cc, subc, mad.cc, madc */
static void emit_carry(struct emit *e, const struct insn *in)
{
    bool mad = in->op == OP_MAD || in->op == OP_MADC, reads = insn_is(in, TRAIT_READS_CARRY),
         sub = in->op == OP_SUB || in->op == OP_SUBC, wide_op = ptx_type_bytes(in->type) == 8;
    bool is_signed = in->type == PT_S32 || in->type == PT_S64;
    unsigned kind = sub                         ? CARRY_SUB
                    : !mad                      ? CARRY_ADD
                    : !insn_has_mod(in, MOD_HI) ? CARRY_MAD_LO
                    : is_signed                 ? CARRY_MAD_HI_SIGNED
                                                : CARRY_MAD_HI;
    int want = (mad ? 4 : 3) + reads;
    if (in->arg_count != want || in->args[0].kind != OPND_REG) {
        emit_fail(e, in, "not a known form of carry arithmetic");
        return;
    }
    const char *t = wide_op ? "Q" : "I", *v = e->vec ? "V" : "S", *l = wide_op ? "64" : "32";
    char letter = wide_op ? 'Q' : 'I';
    const char *z = mad ? value(e, in, &in->args[3], letter) : value(e, in, &in->args[1], letter);
    const char *c = reads ? value(e, in, &in->args[want - 1], 'P')
                    : sub ? (e->vec ? "M_spl(-1)" : "-1")
                          : (e->vec ? "M_spl(0)" : "0");
    int n = e->temp++;
    buf_printf(e->out, "%s c%d; %s d%d = %s_carry%s(%u, %s, %s, %s, %s, &c%d);\n",
               e->vec ? "M" : "s32", n,
               e->vec    ? t
               : wide_op ? "u64"
                         : "u32",
               n, v, l, kind, value(e, in, &in->args[1], letter),
               value(e, in, &in->args[2], letter), z, c, n);
    struct opnd d = in->args[0];
    d.reg2 = -1;
    assign(e, in, &d, arena_printf(e->a, "d%d", n), wide_op ? CLASS_Q : CLASS_I);
    if (in->args[0].reg2 >= 0)
        assign_reg(e, in, in->args[0].reg2, arena_printf(e->a, "c%d", n));
}

/* Logic of predicates and tests of rows, on the bits of all lanes at once. */
void emit_bits(struct emit *e, const struct insn *in)
{
    int d = in->args[0].reg;
    bool row = in->op == OP_SETP;
    const char *x = row ? affine_test(e, in) : pred_bits(e, in, &in->args[1]), *keep = NULL;
    if (!row && in->arg_count == 3)
        x = arena_printf(e->a, "(%s %c %s)", x,
                         in->op == OP_AND  ? '&'
                         : in->op == OP_OR ? '|'
                                           : '^',
                         pred_bits(e, in, &in->args[2]));
    else if (!row && in->op == OP_NOT)
        x = arena_printf(e->a, "~%s", x);
    if (in->pred >= 0) {
        struct opnd g = {.kind = OPND_REG, .reg = in->pred, .reg2 = -1, .not = in->pred_not};
        keep = pred_bits(e, in, &g);
    }
    if (keeps(e, d))
        keep = keep ? arena_printf(e->a, "(%s & m)", keep) : "m";
    if (keep)
        buf_printf(e->out, "p%d = (p%d & ~%s) | (%s & %s);\n", d, d, keep, x, keep);
    else
        buf_printf(e->out, "p%d = %s;\n", d, x);
}

bool emit_move(struct emit *e, const struct insn *in)
{
    static const struct {
        enum ptx_op op;
        int args; /* 0: any */
        void (*write)(struct emit *, const struct insn *);
    } table[] = {{OP_MOV, 0, emit_mov},
                 {OP_CVT, 0, emit_cvt},
                 {OP_LOP3, 0, emit_lop3},
                 {OP_LD, 2, emit_ld_param},
                 {OP_CVTA, 2, emit_cvta}};
    if (is_carry(in)) {
        emit_carry(e, in);
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].op == in->op && (!table[i].args || table[i].args == in->arg_count)) {
            table[i].write(e, in);
            return true;
        }
    return false;
}
