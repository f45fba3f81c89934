/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit_affine.c - registers that are base + stride * lane: a12 is the base, w12 the lanes after a
 * wrap (affine.h).
 */
#include "simt/emit/emit.h"

#include <inttypes.h>
#include <string.h>

bool is_affine(const struct emit *e, int reg)
{
    return e->ir->affine[reg].is == AFFINE_YES;
}

static bool affine_operand(const struct emit *e, const struct opnd *o)
{
    return o->kind == OPND_REG && e->ir->varying[o->reg];
}

/* The operand's value in lane 0. */
static const char *base_of(struct emit *e, const struct insn *in, const struct opnd *o, char letter)
{
    if (affine_operand(e, o))
        return arena_printf(e->a, letter == 'S' ? "((s32)a%d)" : "a%d", o->reg);
    if (o->kind == OPND_SREG && o->sreg == SREG_LANEID)
        return "0u";
    if (o->kind == OPND_SREG && o->sreg == SREG_TID_X)
        return "W->tx0";
    return scalar_value(e, in, o, letter);
}

const char *affine_wrap(struct emit *e, int reg)
{
    return e->ir->affine[reg].wrap ? arena_printf(e->a, "w%d", reg) : "0u";
}

static const char *wrap_of(struct emit *e, const struct opnd *o)
{
    return affine_operand(e, o) ? affine_wrap(e, o->reg) : "0u";
}

/* The lanes of a 32-bit operand that wrap when it is widened. */
static const char *widening(struct emit *e, const struct opnd *o, bool sign)
{
    int64_t stride = o->kind == OPND_SREG   ? 1
                     : affine_operand(e, o) ? e->ir->affine[o->reg].stride
                                            : 0;
    struct insn none = {.text = ""};
    return stride ? arena_printf(e->a, "WRAPS_%c(%s, %" PRId64 "ll)", sign ? 'S' : 'U',
                                 base_of(e, &none, o, 'I'), stride)
                  : "0u";
}

void emit_affine(struct emit *e, const struct insn *in)
{
    const struct opnd *x = in->args + 1;
    int d = in->args[0].reg;
    bool q = reg_class(e, d) == CLASS_Q, sign = in->type == PT_S32;
    const char *t, *w = in->op == OP_BFI ? "0u" : wrap_of(e, x);
    char l = q ? 'Q' : 'I';
    if (in->op == OP_AND) {
        t = arena_printf(e->a, "W->tx0 & 0x%xu", (unsigned)x[1].bits);
        w = "0u";
    } else if (in->op == OP_BFI) {
        uint32_t ones = x[3].bits >= 32 ? ~0u : (1u << x[3].bits) - 1, at = (uint32_t)x[2].bits;
        t = arena_printf(e->a, "(%s & ~0x%xu) | ((%s & 0x%xu) << %u)", base_of(e, in, x + 1, 'I'),
                         ones << at, base_of(e, in, x, 'I'), ones, at);
        w = "0u";
    } else if (in->op == OP_CVT) {
        bool from_q = ptx_type_bytes(in->type) == 8;
        t = base_of(e, in, x, from_q ? 'Q' : 'I');
        if (q && !from_q) {
            w = widening(e, x, sign);
            t = arena_printf(e->a, sign ? "(u64)(s64)(s32)%s" : "(u64)(u32)%s", t);
        } else if (!q) {
            t = arena_printf(e->a, "(u32)%s", t);
        }
    } else if (in->op == OP_CVTA) {
        bool shared = insn_shared(in);
        t = base_of(e, in, x, 'Q');
        if (shared)
            t = arena_printf(e->a, "(%s %c (u64)B->smem)", t, insn_has_mod(in, MOD_TO) ? '-' : '+');
    } else if (insn_has_mod(in, MOD_WIDE)) {
        char s = sign ? 'S' : 'I';
        const struct opnd *lane = affine_operand(e, x) || x->kind == OPND_SREG ? x : x + 1;
        t = arena_printf(e->a, sign ? "(u64)((s64)%s * %s)" : "((u64)%s * %s)",
                         base_of(e, in, x, s), base_of(e, in, x + 1, s));
        w = widening(e, lane, sign);
        if (in->op == OP_MAD) {
            t = arena_printf(e->a, "%s + %s", t, base_of(e, in, x + 2, 'Q'));
            w = strcmp(w, "0u") == 0 ? wrap_of(e, x + 2) : w;
        }
    } else if (in->op == OP_MOV) {
        t = base_of(e, in, x, l);
    } else if (in->op == OP_SHL) {
        t = arena_printf(e->a, "%s << %u", base_of(e, in, x, l), (unsigned)x[1].bits);
    } else if (in->op == OP_MAD) {
        t = arena_printf(e->a, "%s * %s + %s", base_of(e, in, x, l), base_of(e, in, x + 1, l),
                         base_of(e, in, x + 2, l));
        w = strcmp(w, "0u") == 0 ? wrap_of(e, x + 1) : w;
        w = strcmp(w, "0u") == 0 ? wrap_of(e, x + 2) : w;
    } else {
        char op = in->op == OP_MUL ? '*' : in->op == OP_ADD ? '+' : '-';
        t = arena_printf(e->a, "%s %c %s", base_of(e, in, x, l), op, base_of(e, in, x + 1, l));
        w = strcmp(w, "0u") == 0 ? wrap_of(e, x + 1) : w;
    }
    if (e->ir->affine[d].wrap)
        buf_printf(e->out, "w%d = %s; ", d, w);
    buf_printf(e->out, "a%d = %s;\n", d, t);
}

/* The bits of a comparison (insn_tests_row): lanes below a limit, or the others. */
const char *affine_test(struct emit *e, const struct insn *in)
{
    bool sign = in->type == PT_S32, reach = insn_has_mod(in, MOD_LE) || insn_has_mod(in, MOD_GT);
    const char *cast = sign ? "(s64)(s32)" : "(s64)(u32)";
    return arena_printf(e->a, "%srow_below(%s(%s), %s(%s)%s, %s)",
                        insn_has_mod(in, MOD_GT) || insn_has_mod(in, MOD_GE) ? "~" : "", cast,
                        base_of(e, in, &in->args[1], 'I'), cast,
                        scalar_value(e, in, &in->args[2], 'I'), reach ? " + 1" : "",
                        sign ? "0x7fffffffll" : "0xffffffffll");
}

/* All lanes of it, written to the frame. */
void affine_lanes(struct emit *e, int reg, int at)
{
    const struct affine *x = &e->ir->affine[reg];
    if (reg_class(e, reg) == CLASS_Q)
        buf_printf(e->out, "aff64(fr + %d, a%d, %" PRId64 "ll, %s, %" PRId64 "ll);\n", at, reg,
                   x->stride, affine_wrap(e, reg), x->wrap);
    else
        buf_printf(e->out, "aff32(fr + %d, a%d, %" PRId64 ");\n", at, reg, x->stride);
}

/* LANES lanes of it, inside a segment. */
const char *affine_vector(struct emit *e, int reg)
{
    const struct affine *x = &e->ir->affine[reg];
    if (reg_class(e, reg) != CLASS_Q)
        return arena_printf(e->a, "I_aff(a%d, %" PRId64 ", c)", reg, x->stride);
    return arena_printf(e->a, "Q_aff(a%d, %" PRId64 "ll, %s, %" PRId64 "ll, c)", reg, x->stride,
                        affine_wrap(e, reg), x->wrap);
}
