/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit_operand.c - operands as C text, and results into registers.
 *
 * Hides: where a register lives (a C scalar, the bits of a predicate, lanes in
 * the frame, a value inside the running segment) and how its bits are seen.
 */
#include "simt/emit/emit.h"
#include "simt/ir/affine_groups.h"

#include <inttypes.h>
#include <string.h>

enum reg_class reg_class(const struct emit *e, int reg)
{
    enum ptx_type t = e->k->reg_type[reg];
    if (t == PT_PRED)
        return CLASS_P;
    if (t == PT_F32)
        return CLASS_F;
    return ptx_type_bytes(t) == 8 ? CLASS_Q : CLASS_I;
}

int reg_slot(struct emit *e, int reg)
{
    if (e->slot[reg] < 0) { /* a result that is not read */
        e->slot[reg] = e->frame;
        e->frame += 2 * SLOT_BYTES;
    }
    return e->slot[reg];
}

/* In C, where it is the same for all lanes. */
static const char *const sreg_text[SREG_COUNT] = {
#define SREG(name, text, c_text) [SREG_##name] = c_text,
#include "simt/ptx/ptx_ops.def"
};

/* Special registers that differ between lanes: of lane L, and of LANES lanes from c on. */
static const struct lane_sreg {
    enum ptx_sreg sreg;
    const char *lane, *vector;
} lane_sregs[] = {
    {SREG_LANEID, "L", "I_ld(W->lane, c)"},
    {SREG_TID_X, "W->tid[0][L]", "I_ld(W->tid[0], c)"},
    {SREG_TID_Y, "W->tid[1][L]", "I_ld(W->tid[1], c)"},
    {SREG_TID_Z, "W->tid[2][L]", "I_ld(W->tid[2], c)"},
    {SREG_LANEMASK_EQ, "(1u << L)", "(I_spl(1) << I_ld(W->lane, c))"},
    {SREG_LANEMASK_LT, "((1u << L) - 1)", "((I_spl(1) << I_ld(W->lane, c)) - 1u)"},
    {SREG_LANEMASK_LE, "((2u << L) - 1)", "((I_spl(2) << I_ld(W->lane, c)) - 1u)"},
    {SREG_LANEMASK_GT, "~((2u << L) - 1)", "~((I_spl(2) << I_ld(W->lane, c)) - 1u)"},
    {SREG_LANEMASK_GE, "~((1u << L) - 1)", "~((I_spl(1) << I_ld(W->lane, c)) - 1u)"},
};

static const struct lane_sreg *lane_sreg(const struct emit *e, const struct opnd *o)
{
    if (o->kind != OPND_SREG || (e->ir->rows && (o->sreg == SREG_TID_Y || o->sreg == SREG_TID_Z)))
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(lane_sregs); i++)
        if (lane_sregs[i].sreg == o->sreg)
            return &lane_sregs[i];
    return NULL;
}

static const char *sreg_scalar(struct emit *e, const struct insn *in, const struct opnd *o)
{
    if (o->sreg != SREG_UNKNOWN && *sreg_text[o->sreg])
        return sreg_text[o->sreg];
    emit_fail(e, in, arena_printf(e->a, "special register %s is not known", o->name));
    return "0u";
}

/* A module variable becomes a C array the first time it is named. */
static const char *global_address(struct emit *e, const struct ptx_var *v)
{
    struct emit_unit *u = e->unit;
    int id = strmap_get(&u->var_names, v->name, strlen(v->name));
    if (id < 0) {
        id = u->var_count++;
        strmap_put(&u->var_names, v->name, strlen(v->name), id);
        int at = strmap_get(&u->m->vars, v->name, strlen(v->name));
        u->var_ids[id] = at;
    }
    return arena_printf(e->a, "(u64)G%d", id);
}

const char *symbol_address(struct emit *e, const struct insn *in, const struct opnd *o)
{
    const struct ptx_var *v = o->var;
    if (!v) {
        emit_fail(e, in, arena_printf(e->a, "nothing is called %s", o->name ? o->name : "?"));
        return "0ull";
    }
    switch (v->space) {
    case PS_GLOBAL:
    case PS_CONST:
        return arena_printf(e->a, "(%s + %" PRId64 "ull)", global_address(e, v), o->off);
    case PS_PARAM:
        return arena_printf(e->a, "((u64)B->params + %" PRId64 "ull)", (int64_t)v->offset + o->off);
    default:
        return arena_printf(e->a, "%" PRId64 "ull", (int64_t)v->offset + o->off);
    }
}

/* ---- reading ---- */

bool operand_uniform(const struct emit *e, const struct opnd *o)
{
    if (o->kind == OPND_REG || o->kind == OPND_ADDR)
        return o->reg < 0 || !e->ir->varying[o->reg];
    if (o->kind == OPND_SREG)
        return !lane_sreg(e, o);
    return true;
}

static uint64_t immediate(const struct opnd *o, char letter)
{
    if (o->kind == OPND_F64 && letter == 'F') {
        double d;
        float f;
        uint32_t u;
        memcpy(&d, &o->bits, sizeof d);
        f = (float)d;
        memcpy(&u, &f, sizeof u);
        return u;
    }
    if (o->kind == OPND_F32 && (letter == 'D' || letter == 'Q')) {
        uint32_t u = (uint32_t)o->bits;
        float f;
        double d;
        uint64_t w;
        memcpy(&f, &u, sizeof f);
        d = (double)f;
        memcpy(&w, &d, sizeof w);
        return w;
    }
    return o->bits;
}

static bool wide_letter(char letter)
{
    return letter == 'Q' || letter == 'T' || letter == 'D' || letter == 'W';
}

/* Scalar text and the class its bits have. */
static const char *scalar_base(struct emit *e, const struct insn *in, const struct opnd *o,
                               char letter, enum reg_class *cls)
{
    switch (o->kind) {
    case OPND_REG:
        *cls = reg_class(e, o->reg);
        if (e->ir->varying[o->reg]) {
            emit_fail(e, in, "an operand that must be the same for all lanes varies");
            return "0";
        }
        return arena_printf(e->a, o->not ? "(~r%d)" : "r%d", o->reg);
    case OPND_INT:
    case OPND_F32:
    case OPND_F64:
        if (letter == 'P') {
            *cls = CLASS_P;
            return o->bits ? "-1" : "0";
        }
        *cls = wide_letter(letter) ? CLASS_Q : CLASS_I;
        return arena_printf(e->a, wide_letter(letter) ? "0x%" PRIx64 "ull" : "0x%" PRIx64 "u",
                            wide_letter(letter) ? immediate(o, letter)
                                                : immediate(o, letter) & 0xffffffffu);
    case OPND_SREG: {
        bool wide =
            o->sreg == SREG_CLOCK64 || o->sreg == SREG_GLOBALTIMER || o->sreg == SREG_GRIDID;
        *cls = wide ? CLASS_Q : CLASS_I;
        return sreg_scalar(e, in, o);
    }
    case OPND_SYM:
        *cls = CLASS_Q;
        return symbol_address(e, in, o);
    default:
        *cls = CLASS_I;
        emit_fail(e, in, "an operand of this form is not supported");
        return "0u";
    }
}

const char *scalar_value(struct emit *e, const struct insn *in, const struct opnd *o, char letter)
{
    enum reg_class cls;
    const char *t = scalar_base(e, in, o, letter, &cls);
    const char *bits = cls == CLASS_F ? arena_printf(e->a, "f2u(%s)", t) : t;
    switch (letter) {
    case 'P':
        return t;
    case 'F':
        return cls == CLASS_F ? t : arena_printf(e->a, "u2f((u32)%s)", t);
    case 'I':
        return cls == CLASS_I ? t : arena_printf(e->a, "((u32)%s)", bits);
    case 'H':
        return arena_printf(e->a, "((u32)%s & 0xffffu)", bits);
    case 'S':
        return arena_printf(e->a, "((s32)%s)", bits);
    case 'J':
        return arena_printf(e->a, "((s32)(s16)%s)", bits);
    case 'h':
        return arena_printf(e->a, "S_h2f((u32)%s & 0xffffu)", bits);
    case 'b':
        return arena_printf(e->a, "S_b2f((u32)%s & 0xffffu)", bits);
    case 'T':
        return arena_printf(e->a, "((s64)%s)", bits);
    case 'D':
        return arena_printf(e->a, "u2d(%s)", bits);
    default:
        return cls == CLASS_Q ? t : arena_printf(e->a, "((u64)%s)", bits);
    }
}

static const char *class_letter(enum reg_class c)
{
    static const char *const names[] = {"M", "I", "F", "Q"};
    return names[c];
}

bool is_one_word(const struct emit *e, int reg)
{
    return e->unit->lanes == 4 && e->strips && e->strip[reg].block == e->block + 1 &&
           !e->ir->strip[e->strip[reg].addr].stride && reg_class(e, reg) == CLASS_F;
}

const char *segment_word(struct emit *e, const struct opnd *o)
{
    return o->kind == OPND_REG && e->ir->varying[o->reg] && is_one_word(e, o->reg) &&
                   e->loaded[o->reg] == e->stamp && !e->version[o->reg]
               ? arena_printf(e->a, "u%d", o->reg)
               : NULL;
}

/* The current value of a varying register in this segment, loaded at first use. */
const char *segment_value(struct emit *e, int reg)
{
    enum reg_class c = reg_class(e, reg);
    struct buf *out = e->loads ? e->loads : e->out;
    if (e->loaded[reg] != e->stamp) {
        e->loaded[reg] = e->stamp;
        e->version[reg] = 0;
        if (e->direct[reg] == e->block + 1 && e->quad[reg])
            quad_read(e, reg);
        else if (c == CLASS_P)
            buf_printf(out, "M v%d_0 = M_ld(p%d, c);\n", reg, reg);
        else if (is_affine(e, reg))
            buf_printf(out, "%s v%d_0 = %s;\n", class_letter(c), reg, affine_vector(e, reg));
        else if (e->strips && e->strip[reg].block == e->block + 1) {
            buf_printf(out, "%s v%d_0 = %s_%s(s%d + %" PRId64 ");\n", class_letter(c), reg,
                       class_letter(c), e->ir->strip[e->strip[reg].addr].stride ? "row" : "one",
                       e->strip[reg].group, e->strip[reg].off);
            if (is_one_word(e, reg))
                buf_printf(out, "float u%d = *(const float *)(s%d + %" PRId64 ");\n", reg,
                           e->strip[reg].group, e->strip[reg].off);
        } else if (e->direct[reg] == e->block + 1)
            buf_printf(out, "%s v%d_0 = %s_ldu(q%d, c);\n", class_letter(c), reg, class_letter(c),
                       reg);
        else if (e->home[reg])
            buf_printf(out, "register F v%d_0 SUM_IN(%d) = F_ld(fr + %d, c);\n", reg, e->home[reg],
                       reg_slot(e, reg));
        else
            buf_printf(out, "%s v%d_0 = %s_ld(fr + %d, c);\n", class_letter(c), reg,
                       class_letter(c), reg_slot(e, reg));
    }
    return arena_printf(e->a, "v%d_%d", reg, e->version[reg]);
}

/* The register's value, if it was last blended by the guard of this instruction. */
static const struct blend *blend_by(const struct emit *e, const struct insn *in, int reg)
{
    const struct blend *b = &e->blend[reg];
    return in->pred >= 0 && b->stamp == e->stamp && b->version == e->version[reg] &&
                   b->pred == in->pred && b->pred_version == e->version[in->pred]
               ? b
               : NULL;
}

/* Lanes the guard does not hold for throw the result away: neither side waits for the blend of an
 * earlier instruction with the same guard or its opposite, as the sides of a branch have them. */
static const char *guarded_value(struct emit *e, const struct insn *in, int reg)
{
    const char *t = segment_value(e, reg);
    const struct blend *b = blend_by(e, in, reg);
    return !b ? t : in->pred_not ? b->off : b->on;
}

static const char *vector_base(struct emit *e, const struct insn *in, const struct opnd *o,
                               char letter, enum reg_class *cls)
{
    if (o->kind == OPND_REG && e->ir->varying[o->reg]) {
        *cls = reg_class(e, o->reg);
        const char *t = guarded_value(e, in, o->reg);
        return o->not ? arena_printf(e->a, "(~%s)", t) : t;
    }
    const struct lane_sreg *lane = lane_sreg(e, o);
    if (lane) {
        *cls = CLASS_I;
        return lane->vector;
    }
    const char *s = scalar_base(e, in, o, letter, cls);
    static const char *const splat[] = {"M_spl(%s)", "I_spl(%s)", "F_spl(%s)", "Q_spl(%s)"};
    const char *f = splat[*cls];
    return arena_printf(e->a, "%.*s%s)", 6, f, s);
}

const char *value(struct emit *e, const struct insn *in, const struct opnd *o, char letter)
{
    if (!e->vec)
        return scalar_value(e, in, o, letter);
    enum reg_class cls;
    const char *t = vector_base(e, in, o, letter, &cls);
    if (cls == CLASS_Q && !wide_letter(letter))
        t = arena_printf(e->a, "Q_nar(%s)", t);
    if (cls == CLASS_I && wide_letter(letter))
        return arena_printf(e->a, "Q_wu(%s)", t);
    switch (letter) {
    case 'P':
        return t;
    case 'F':
        return cls == CLASS_F ? t : arena_printf(e->a, "((F)%s)", t);
    case 'I':
        return cls == CLASS_F ? arena_printf(e->a, "((I)%s)", t) : t;
    case 'H':
        return arena_printf(e->a, "((I)%s & 0xffffu)", t);
    case 'S':
        return arena_printf(e->a, "((S)%s)", t);
    case 'J':
        return arena_printf(e->a, "((S)((I)%s << 16) >> 16)", t);
    case 'h':
        return arena_printf(e->a, "V_h2f((I)%s & 0xffffu)", t);
    case 'b':
        return arena_printf(e->a, "V_b2f((I)%s)", t);
    default:
        return t; /* Q, T, D, W: halves are cast where they are used */
    }
}

/* ---- writing ---- */

const char *segment_next(struct emit *e, int reg)
{
    e->version[reg] = e->loaded[reg] == e->stamp ? e->version[reg] + 1 : 1;
    e->loaded[reg] = e->stamp;
    return arena_printf(e->a, "v%d_%d", reg, e->version[reg]);
}

static void assign_guarded(struct emit *e, const struct insn *in, int reg, const char *text)
{
    struct opnd guard = {.kind = OPND_REG, .reg = in->pred, .reg2 = -1};
    const char *g = value(e, in, &guard, 'P'), *old = segment_value(e, reg),
               *l = class_letter(reg_class(e, reg));
    const struct blend *b = blend_by(e, in, reg);
    int next = e->version[reg] + 1;
    const char *own = arena_printf(e->a, "v%d_%dg", reg, next);
    const char *on = b ? b->on : old, *off = b ? b->off : old;
    *(in->pred_not ? &off : &on) = own;
    buf_printf(e->out, "%s %s = %s;\n%s v%d_%d = sel_%s(%s, %s, %s);\n", l, own, text, l, reg, next,
               l, g, on, off);
    if (e->ir->varying[in->pred])
        e->blend[reg] = (struct blend){e->stamp, next, in->pred, e->version[in->pred], on, off};
    e->version[reg] = next;
}

/* text has the register's own class. Inside a segment a guard blends. */
void assign_reg(struct emit *e, const struct insn *in, int reg, const char *text)
{
    enum reg_class c = reg_class(e, reg);
    if (!e->vec) {
        buf_printf(e->out, "r%d = %s;\n", reg, text);
        return;
    }
    if (in->pred >= 0) {
        assign_guarded(e, in, reg, text);
        return;
    }
    buf_printf(e->out, "%s %s = %s;\n", class_letter(c), segment_next(e, reg), text);
}

/* text of class `from` into whatever dst is. */
void assign(struct emit *e, const struct insn *in, const struct opnd *dst, const char *text,
            enum reg_class from)
{
    if (dst->kind == OPND_SINK)
        return;
    if (dst->kind != OPND_REG) {
        emit_fail(e, in, "the result must go to a register");
        return;
    }
    enum reg_class to = reg_class(e, dst->reg);
    if (to == CLASS_I && from != CLASS_P && ptx_type_bytes(e->k->reg_type[dst->reg]) <= 2 &&
        from != CLASS_F)
        text =
            arena_printf(e->a,
                         e->vec ? (from == CLASS_Q ? "(Q_nar(%s) & 0xffffu)" : "((%s) & 0xffffu)")
                                : "((u32)(%s) & 0xffffu)",
                         text);
    else if (to == from)
        ;
    else if (to == CLASS_I && from == CLASS_F)
        text = arena_printf(e->a, e->vec ? "(I)(%s)" : "f2u(%s)", text);
    else if (to == CLASS_F && from == CLASS_I)
        text = arena_printf(e->a, e->vec ? "(F)(%s)" : "u2f(%s)", text);
    else if (to == CLASS_Q && from == CLASS_I)
        text = arena_printf(e->a, e->vec ? "Q_wu(%s)" : "(u64)(%s)", text);
    else if (to == CLASS_I && from == CLASS_Q)
        text = arena_printf(e->a, e->vec ? "Q_nar(%s)" : "(u32)(%s)", text);
    else
        emit_fail(e, in, "the result does not fit its register");
    assign_reg(e, in, dst->reg, text);
}

/* ---- for calls on whole warps ---- */

const char *pred_bits(struct emit *e, const struct insn *in, const struct opnd *o)
{
    if (o->kind == OPND_REG && e->ir->varying[o->reg])
        return arena_printf(e->a, o->not ? "(~p%d)" : "p%d", o->reg);
    return arena_printf(e->a, "((u32)%s)", scalar_value(e, in, o, 'P'));
}

int scratch_take(struct emit *e, const struct insn *in)
{
    int at = e->scratch;
    if (at + 2 * SLOT_BYTES > SCRATCH_BYTES) {
        emit_fail(e, in, "too many operands");
        return 0;
    }
    e->scratch += 2 * SLOT_BYTES;
    return at;
}

int lanes_at(struct emit *e, const struct insn *in, const struct opnd *o, bool wide)
{
    const char *to = wide ? "64" : "32";
    if (o->kind == OPND_REG && e->ir->varying[o->reg] && reg_class(e, o->reg) != CLASS_P) {
        bool is_wide = reg_class(e, o->reg) == CLASS_Q;
        if (is_affine(e, o->reg)) {
            int at = scratch_take(e, in);
            affine_lanes(e, o->reg, at);
            if (is_wide == wide)
                return at;
            int other = scratch_take(e, in);
            buf_printf(e->out, "lanes%s(fr + %d, fr + %d);\n", to, other, at);
            return other;
        }
        if (is_wide == wide)
            return reg_slot(e, o->reg);
        int t = scratch_take(e, in);
        buf_printf(e->out, "lanes%s(fr + %d, fr + %d);\n", to, t, reg_slot(e, o->reg));
        return t;
    }
    int t = scratch_take(e, in);
    const struct lane_sreg *lane = lane_sreg(e, o);
    if (lane) {
        buf_printf(e->out, "for (int L = 0; L < 32; L++) ((u%s *)(fr + %d))[L] = (u32)%s;\n", to, t,
                   lane->lane);
        return t;
    }
    buf_printf(e->out, "fill%s(fr + %d, %s);\n", to, t, scalar_value(e, in, o, wide ? 'Q' : 'I'));
    return t;
}

const char *lanes_of(struct emit *e, const struct insn *in, const struct opnd *o, bool wide)
{
    return arena_printf(e->a, "(fr + %d)", lanes_at(e, in, o, wide));
}

/* One value for all active lanes, into a register of either kind. */
void set_uniform(struct emit *e, const struct opnd *dst, const char *text)
{
    if (dst->kind != OPND_REG)
        return;
    int r = dst->reg;
    enum reg_class c = reg_class(e, r);
    if (!e->ir->varying[r]) {
        buf_printf(e->out, "r%d = ", r);
        if (c == CLASS_P)
            buf_printf(e->out, "-(s32)((%s) != 0);\n", text);
        else if (c == CLASS_F)
            buf_printf(e->out, "u2f((u32)(%s));\n", text);
        else
            buf_printf(e->out, "(%s)(%s);\n", c == CLASS_Q ? "u64" : "u32", text);
        return;
    }
    if (c == CLASS_P)
        buf_printf(e->out, "p%d = (p%d & ~mm) | ((%s) ? mm : 0);\n", r, r, text);
    else
        buf_printf(e->out, "put%s(fr + %d, mm, %s);\n", c == CLASS_Q ? "64" : "32", reg_slot(e, r),
                   text);
}
