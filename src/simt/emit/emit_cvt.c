/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit_cvt.c - cvt in all its forms.
 *
 * Frequent conversions are written as vector code; all others use the device's exact conversion
 * lane by lane.
 */
#include "simt/device/convert.h"
#include "simt/emit/emit.h"

#include <string.h>

static bool is_int(enum ptx_type t)
{
    return t == PT_U8 || t == PT_S8 || t == PT_B8 || t == PT_U16 || t == PT_S16 || t == PT_B16 ||
           t == PT_U32 || t == PT_S32 || t == PT_B32 || t == PT_U64 || t == PT_S64 || t == PT_B64;
}

static bool is_signed(enum ptx_type t)
{
    return t == PT_S8 || t == PT_S16 || t == PT_S32 || t == PT_S64;
}

/* A narrow value brought to the full 32 bits its type means. */
static const char *extend(struct emit *e, const char *t, enum ptx_type type)
{
    unsigned bits = 8 * ptx_type_bytes(type);
    if (bits >= 32)
        return t;
    if (!is_signed(type))
        return arena_printf(e->a, "(%s & 0x%xu)", t, (1u << bits) - 1);
    return arena_printf(e->a, e->vec ? "(I)((S)(%s << %u) >> %u)" : "(u32)((s32)(%s << %u) >> %u)",
                        t, 32 - bits, 32 - bits);
}

static void int_to_int(struct emit *e, const struct insn *in)
{
    enum ptx_type to = in->type2, from = in->type;
    bool wide_to = ptx_type_bytes(to) == 8, wide_from = ptx_type_bytes(from) == 8;
    const char *t = value(e, in, &in->args[1], wide_from ? 'Q' : 'I');
    if (wide_from && wide_to) {
        assign(e, in, &in->args[0], t, CLASS_Q);
        return;
    }
    if (wide_from)
        t = arena_printf(e->a, e->vec ? "Q_nar(%s)" : "((u32)%s)", t);
    else
        t = extend(e, t, from);
    if (wide_to) {
        bool s = is_signed(from);
        t = e->vec ? arena_printf(e->a, s ? "Q_ws(%s)" : "Q_wu(%s)", t)
                   : arena_printf(e->a, s ? "(u64)(s64)(s32)(%s)" : "(u64)(%s)", t);
        assign(e, in, &in->args[0], t, CLASS_Q);
        return;
    }
    assign(e, in, &in->args[0], extend(e, arena_printf(e->a, "(%s)", t), to), CLASS_I);
}

static const char *rounder(const struct insn *in)
{
    return insn_has_mod(in, MOD_RNI)   ? "rint"
           : insn_has_mod(in, MOD_RZI) ? "trunc"
           : insn_has_mod(in, MOD_RMI) ? "floor"
           : insn_has_mod(in, MOD_RPI) ? "ceil"
                                       : NULL;
}

/* True when it wrote the conversion. */
static bool common_cvt(struct emit *e, const struct insn *in)
{
    enum ptx_type to = in->type2, from = in->type;
    const struct opnd *s = &in->args[1];
    char v = e->vec ? 'V' : 'S';
    bool ftz = insn_has_mod(in, MOD_FTZ), sat = insn_has_mod(in, MOD_SAT);
    if (insn_has_any(in, MOD_RELU, MOD_SATFINITE))
        return false;
    if (is_int(to) && is_int(from) && !sat) {
        int_to_int(e, in);
        return true;
    }
    if (from == PT_F32 && (to == PT_S32 || to == PT_U32) && rounder(in)) {
        const char *x = value(e, in, s, 'F');
        if (ftz)
            x = arena_printf(e->a, "%c_ftz(%s)", v, x);
        assign(e, in, &in->args[0],
               arena_printf(e->a, "%c_f2%c(%c_%s(%s))", v, to == PT_S32 ? 's' : 'u', v, rounder(in),
                            x),
               CLASS_I);
        return true;
    }
    if (to == PT_F32 && from == PT_F32) {
        const char *x = value(e, in, s, 'F');
        if (ftz && rounder(in))
            x = arena_printf(e->a, "%c_ftz(%s)", v, x);
        if (rounder(in))
            x = arena_printf(e->a, "%c_%s(%s)", v, rounder(in), x);
        if (sat)
            x = arena_printf(e->a, "%c_satf(%s)", v, x);
        if (ftz)
            x = arena_printf(e->a, "%c_ftz(%s)", v, x);
        assign(e, in, &in->args[0], x, CLASS_F);
        return true;
    }
    if (sat)
        return false;
    if (to == PT_F32 && is_int(from) && ptx_type_bytes(from) <= 4 && insn_has_mod(in, MOD_RN)) {
        const char *x = extend(e, value(e, in, s, 'I'), from);
        const char *t =
            e->vec
                ? arena_printf(e->a, is_signed(from) ? "V_s2f(%s)" : "V_u2f(%s)", x)
                : arena_printf(e->a, is_signed(from) ? "(float)(s32)(%s)" : "(float)(u32)(%s)", x);
        assign(e, in, &in->args[0], t, CLASS_F);
        return true;
    }
    if (to == PT_F32 && (from == PT_F16 || from == PT_BF16)) {
        const char *x = value(e, in, s, from == PT_F16 ? 'h' : 'b');
        if (ftz && from == PT_BF16)
            x = arena_printf(e->a, "%c_ftz(%s)", v, x);
        assign(e, in, &in->args[0], x, CLASS_F);
        return true;
    }
    if (from != PT_F32 || !insn_has_mod(in, MOD_RN) || ftz)
        return false;
    if (to == PT_F16 || to == PT_BF16) {
        assign(e, in, &in->args[0],
               arena_printf(e->a, "%c_f2%c(%s)", v, to == PT_F16 ? 'h' : 'b', value(e, in, s, 'F')),
               CLASS_I);
        return true;
    }
    if ((to == PT_F16X2 || to == PT_BF16X2) && in->arg_count == 3) {
        char h = to == PT_F16X2 ? 'h' : 'b';
        assign(e, in, &in->args[0],
               arena_printf(e->a, "((%c_f2%c(%s) << 16) | %c_f2%c(%s))", v, h, value(e, in, s, 'F'),
                            v, h, value(e, in, &in->args[2], 'F')),
               CLASS_I);
        return true;
    }
    return false;
}

/* cvt.pack.sat.u8.s32.b32 d, a, b, c; the 16-bit forms have no c. The row that does
 * the work stands in ptx_ops.def under the type of the pieces. */
static void emit_cvt_pack(struct emit *e, const struct insn *in)
{
    static const uint16_t kinds[] = {MOD_U16, MOD_S16, MOD_U8, MOD_S8,
                                     MOD_U4,  MOD_S4,  MOD_U2, MOD_S2};
    struct insn plain = *in;
    plain.type = PT_B32;
    plain.mod_count = 0;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (insn_has_mod(in, kinds[i]))
            plain.mods[plain.mod_count++] = kinds[i];
    if (!insn_has_mod(in, MOD_SAT) || !insn_has_mod(in, MOD_S32))
        plain.mod_count = 0;
    plain.op = OP_CVTPACK;
    plain.mods[plain.mod_count++] = MOD_B32;
    emit_alu(e, &plain);
}

void emit_cvt(struct emit *e, const struct insn *in)
{
    enum ptx_type to = in->type2, from = in->type;
    bool two = in->arg_count == 3;
    if (insn_has_mod(in, MOD_PACK)) {
        emit_cvt_pack(e, in);
        return;
    }
    if (in->arg_count < 2 || in->arg_count > 3) {
        emit_fail(e, in, "wrong number of operands");
        return;
    }
    if (common_cvt(e, in))
        return;
    uint32_t how = convert_code(in);
    if (!how) {
        emit_fail(e, in, "this device does not know the conversion");
        return;
    }
    bool wide_from = ptx_type_bytes(from) == 8 || two, wide_to = ptx_type_bytes(to) == 8;
    const char *x;
    if (two) /* d = {a, b}: a in the upper half */
        x = e->vec ? arena_printf(e->a, "Q_or(Q_wu(%s), Q_up(Q_wu(%s), 32))",
                                  value(e, in, &in->args[2], 'I'), value(e, in, &in->args[1], 'I'))
                   : arena_printf(e->a, "((u64)%s | (u64)%s << 32)",
                                  value(e, in, &in->args[2], 'I'), value(e, in, &in->args[1], 'I'));
    else
        x = value(e, in, &in->args[1], wide_from ? 'Q' : 'I');
    const char *t =
        e->vec ? arena_printf(e->a, "V_cvt%s%s(0x%xu, %s)", wide_from ? "64" : "32",
                              wide_to ? "64" : "32", how, x)
               : arena_printf(e->a, "(%s)R->cvt(0x%xu, %s)", wide_to ? "u64" : "u32", how, x);
    assign(e, in, &in->args[0], t, wide_to ? CLASS_Q : CLASS_I);
}
