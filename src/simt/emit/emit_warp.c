/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit_warp.c - operations of the whole warp or block: shuffles, votes,
 * barriers, matrix instructions, fences, traps and printing.
 */
#include "simt/emit/emit.h"

#include "simt/ptx/call_kinds.h"
#include "simt/ptx/mma_shapes.h"

#include <string.h>

static const char *members_of(struct emit *e, const struct insn *in, int at)
{
    if (at >= in->arg_count)
        return "0xffffffffu";
    if (operand_uniform(e, &in->args[at]))
        return scalar_value(e, in, &in->args[at], 'I');
    return arena_printf(e->a, "((const u32 *)%s)[first_lane(mm)]",
                        lanes_of(e, in, &in->args[at], false));
}

static void emit_shfl(struct emit *e, const struct insn *in)
{
    static const enum ptx_mod modes[SHFL_MODES] = {
        [SHFL_UP] = MOD_UP, [SHFL_DOWN] = MOD_DOWN, [SHFL_BFLY] = MOD_BFLY, [SHFL_IDX] = MOD_IDX};
    unsigned mode = SHFL_MODES;
    for (unsigned i = 0; i < SHFL_MODES; i++)
        if (insn_has_mod(in, modes[i]))
            mode = i;
    bool sync = insn_has_mod(in, MOD_SYNC);
    if (mode == SHFL_MODES || in->arg_count != (sync ? 5 : 4)) {
        emit_fail(e, in, "not a known form of shfl");
        return;
    }
    const struct opnd *d = &in->args[0];
    int site = emit_site(e, in, PS_GENERIC, 4, 1, 0, 0, 0);
    const char *a = lanes_of(e, in, &in->args[1], false);
    bool alike = operand_uniform(e, &in->args[2]) && operand_uniform(e, &in->args[3]);
    const char *b =
        alike ? scalar_value(e, in, &in->args[2], 'I') : lanes_of(e, in, &in->args[2], false);
    const char *c =
        alike ? scalar_value(e, in, &in->args[3], 'I') : lanes_of(e, in, &in->args[3], false);
    const char *members = members_of(e, in, sync ? 4 : in->arg_count);
    const char *dst =
        d->kind == OPND_REG ? arena_printf(e->a, "fr + %d", reg_slot(e, d->reg)) : "0";
    if (alike)
        buf_printf(e->out, "u32 q = R->shflu(W, mm, %u, %s, %s, %s, %s, %s, %d); (void)q;\n", mode,
                   dst, a, b, c, members, site);
    else
        buf_printf(e->out,
                   "u32 q = R->shfl(W, mm, %u, %s, %s, (const u32 *)%s, (const u32 *)%s, %s, %d); "
                   "(void)q;\n",
                   mode, dst, a, b, c, members, site);
    if (d->reg2 >= 0)
        buf_printf(e->out, "p%d = (p%d & ~mm) | (q & mm);\n", d->reg2, d->reg2);
}

static void emit_vote(struct emit *e, const struct insn *in)
{
    const char *bits = pred_bits(e, in, &in->args[1]);
    const char *among = members_of(e, in, insn_has_mod(in, MOD_SYNC) ? 2 : in->arg_count);
    int site = emit_site(e, in, PS_GENERIC, 4, 1, 0, 0, 0);
    buf_printf(e->out, "u32 am = %s & mm; R->sync(W, mm, %s, %d);\n", among, among, site);
    const char *t = NULL;
    if (insn_has_mod(in, MOD_BALLOT))
        t = arena_printf(e->a, "(%s & am)", bits);
    else if (insn_has_mod(in, MOD_ALL))
        t = arena_printf(e->a, "((%s & am) == am)", bits);
    else if (insn_has_mod(in, MOD_ANY))
        t = arena_printf(e->a, "((%s & am) != 0)", bits);
    else if (insn_has_mod(in, MOD_UNI))
        t = arena_printf(e->a, "((%s & am) == am || !(%s & am))", bits, bits);
    if (!t) {
        emit_fail(e, in, "not a known form of vote");
        return;
    }
    set_uniform(e, &in->args[0], t);
}

static void emit_match(struct emit *e, const struct insn *in)
{
    bool wide = ptx_type_bytes(in->type) == 8, all = insn_has_mod(in, MOD_ALL);
    const struct opnd *d = &in->args[0];
    if (d->kind != OPND_REG || in->arg_count != 3) {
        emit_fail(e, in, "not a known form of match");
        return;
    }
    const char *src = lanes_of(e, in, &in->args[1], wide);
    const char *among = members_of(e, in, 2);
    int site = emit_site(e, in, PS_GENERIC, 4, 1, 0, 0, 0);
    buf_printf(e->out,
               "u32 q = 0; R->sync(W, mm, %s, %d); R->match(W, mm, %u, (u32 *)(fr + %d), &q, %s, "
               "%s); (void)q;\n",
               among, site, (all ? (unsigned)MATCH_ALL : 0u) | (wide ? (unsigned)MATCH_WIDE : 0u),
               reg_slot(e, d->reg), src, among);
    if (d->reg2 >= 0)
        buf_printf(e->out, "p%d = (p%d & ~mm) | (q & mm);\n", d->reg2, d->reg2);
}

static void emit_redux(struct emit *e, const struct insn *in)
{
    static const enum ptx_mod ops[REDUX_OPS] = {
        [REDUX_ADD] = MOD_ADD, [REDUX_MIN] = MOD_MIN, [REDUX_MAX] = MOD_MAX,
        [REDUX_AND] = MOD_AND, [REDUX_OR] = MOD_OR,   [REDUX_XOR] = MOD_XOR};
    for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
        if (!insn_has_mod(in, ops[i]))
            continue;
        const char *src = lanes_of(e, in, &in->args[1], false);
        unsigned kind = i | (in->type == PT_S32 ? (unsigned)REDUX_SIGNED : 0u);
        const char *among = members_of(e, in, 2);
        int site = emit_site(e, in, PS_GENERIC, 4, 1, 0, 0, 0);
        buf_printf(e->out, "R->sync(W, mm, %s, %d);\n", among, site);
        set_uniform(
            e, &in->args[0],
            arena_printf(e->a, "R->redux(W, mm, %u, (const u32 *)%s, %s)", kind, src, among));
        return;
    }
    emit_fail(e, in, "not a known form of redux");
}

static void emit_bar(struct emit *e, const struct insn *in)
{
    int site = emit_site(e, in, PS_GENERIC, 4, 1, 0, 0, 0);
    if (insn_has_mod(in, MOD_WARP)) {
        buf_printf(e->out, "R->sync(W, mm, %s, %d);\n", members_of(e, in, 0), site);
        return;
    }
    if (insn_has_mod(in, MOD_CLUSTER)) {
        emit_fail(e, in, "clusters are not supported");
        return;
    }
    bool red = insn_has_mod(in, MOD_RED);
    unsigned kind = insn_has_mod(in, MOD_ARRIVE) ? BAR_ARRIVE
                    : !red                       ? BAR_SYNC
                    : insn_has_mod(in, MOD_POPC) ? BAR_POPC
                    : insn_has_mod(in, MOD_AND)  ? BAR_AND
                                                 : BAR_OR;
    if (in->op == OP_BAR || insn_has_mod(in, MOD_ALIGNED))
        kind |= BAR_ALIGNED;
    int at = red ? 1 : 0, left = in->arg_count - at - (red ? 1 : 0);
    if (left < 1 || left > 2) {
        emit_fail(e, in, "not a known form of bar");
        return;
    }
    const char *id = operand_uniform(e, &in->args[at])
                         ? scalar_value(e, in, &in->args[at], 'I')
                         : arena_printf(e->a, "((const u32 *)%s)[first_lane(mm)]",
                                        lanes_of(e, in, &in->args[at], false));
    const char *count = left == 2 ? members_of(e, in, at + 1) : "0u";
    const char *pred = red ? pred_bits(e, in, &in->args[in->arg_count - 1]) : "0u";
    const char *call =
        arena_printf(e->a, "R->bar(W, mm | extra, extra ? %uu | %du : %uu, %s, %s, %s, %d)", kind,
                     BAR_APART, kind, id, count, pred, site);
    if (red)
        set_uniform(e, &in->args[0], call);
    else
        buf_printf(e->out, "%s;\n", call);
    buf_puts(e->out, "extra = 0;\n");
}

static void reg_list(struct emit *e, const struct insn *in, const struct opnd *o, int want,
                     bool wide, bool dst)
{
    const struct opnd *list = o->kind == OPND_VEC ? o->list : o;
    int n = o->kind == OPND_VEC ? o->count : 1;
    if (n != want) {
        emit_fail(e, in, "wrong number of registers for this shape");
        return;
    }
    for (int i = 0; i < n; i++) {
        if (dst && list[i].kind != OPND_REG)
            site_reg(e, scratch_take(e, in));
        else
            site_reg(e, dst ? reg_slot(e, list[i].reg) : lanes_at(e, in, &list[i], wide));
    }
}

static void emit_mma(struct emit *e, const struct insn *in)
{
    uint32_t kind = mma_find(in);
    const struct mma_shape *s = kind ? mma_row(kind) : NULL;
    if (!s || in->arg_count < 4) {
        emit_fail(e, in, "this device does not know the matrix shape");
        return;
    }
    if (in->op == OP_WMMA) {
        /* wmma.mma.sync.alayout.blayout: fragments hold the matrix itself */
        kind |= MMA_ROW_A | MMA_COL_B;
    }
    bool wide = s->a == PT_F64;
    reg_list(e, in, &in->args[0], s->d_regs, wide, true);
    reg_list(e, in, &in->args[1], s->a_regs, wide, false);
    reg_list(e, in, &in->args[2], s->b_regs, wide, false);
    reg_list(e, in, &in->args[3], s->c_regs, wide, false);
    bool scaled = kind >> MMA_SCALE_SHIFT & MMA_SCALES;
    if (in->arg_count != (scaled ? 8 : 4)) {
        emit_fail(e, in, "wrong number of operands for this kind");
        return;
    }
    for (int i = 4; i < in->arg_count; i++) /* {scales}, {byte, lanes} */
        reg_list(e, in, &in->args[i], i % 2 ? 2 : 1, false, false);
    int site = emit_site(e, in, PS_GENERIC, 4, 1, 0, 0, kind);
    buf_printf(e->out, "if (mm != 0xffffffffu) R->sync(W, mm, 0xffffffffu, %d);\nR->mma(W, %d);\n",
               site, site);
}

static void emit_wmma(struct emit *e, const struct insn *in)
{
    if (insn_has_mod(in, MOD_MMA)) {
        emit_mma(e, in);
        return;
    }
    bool load = insn_has_mod(in, MOD_LOAD);
    int regs = 0;
    uint32_t kind = wmma_find(in, &regs);
    if (!kind || in->arg_count < 2) {
        emit_fail(e, in, "this device does not know the matrix shape");
        return;
    }
    bool wide = in->type == PT_F64, a32, uniform;
    enum ptx_space space = insn_shared(in)                ? PS_SHARED
                           : insn_has_mod(in, MOD_GLOBAL) ? PS_GLOBAL
                                                          : PS_GENERIC;
    int64_t off;
    const char *addr = address_of(e, in, &in->args[load ? 1 : 0], &space, &off, &a32, &uniform);
    if (!uniform)
        addr = arena_printf(e->a, "((const %s *)%s)[first_lane(mm)]", a32 ? "u32" : "u64", addr);
    reg_list(e, in, &in->args[load ? 0 : 1], regs, wide, load);
    const char *stride = in->arg_count > 2 ? members_of(e, in, 2) : "0u";
    int site =
        emit_site(e, in, space, ptx_type_bytes(in->type), 1, load ? 0 : SW_STRONG, off, kind);
    buf_printf(e->out, "R->wmma(W, mm, %s, %s, %d);\n", addr, stride, site);
}

static void emit_print(struct emit *e, const struct insn *in)
{
    if (in->arg_count < 3) {
        emit_fail(e, in, "not a known call of vprintf");
        return;
    }
    const char *f = lanes_of(e, in, &in->args[1], true), *a = lanes_of(e, in, &in->args[2], true);
    buf_printf(e->out, "R->print(W, mm, (const u64 *)%s, (const u64 *)%s);\n", f, a);
    if (in->args[0].kind == OPND_REG)
        buf_printf(e->out, "put32(fr + %d, mm, 1);\n", reg_slot(e, in->args[0].reg));
}

static void emit_isspacep(struct emit *e, const struct insn *in)
{
    unsigned space = insn_has_mod(in, MOD_GLOBAL)  ? SW_GLOBAL
                     : insn_has_mod(in, MOD_CONST) ? SW_CONST
                     : insn_has_mod(in, MOD_LOCAL) ? SW_LOCAL
                     : insn_has_mod(in, MOD_PARAM) ? SW_PARAM
                                                   : SW_SHARED;
    const struct opnd *d = &in->args[0];
    if (d->kind != OPND_REG || in->arg_count != 2) {
        emit_fail(e, in, "not a known form of isspacep");
        return;
    }
    if (!e->ir->varying[d->reg]) {
        buf_printf(e->out, "r%d = -(s32)(R->isspace(W, %u, %s) != 0);\n", d->reg, space,
                   scalar_value(e, in, &in->args[1], 'Q'));
        return;
    }
    const char *a = lanes_of(e, in, &in->args[1], true);
    buf_printf(e->out,
               "u32 q = 0; for (u32 x = mm; x; x &= x - 1) { u32 i = first_lane(x); q |= "
               "(R->isspace(W, %u, ((const u64 *)%s)[i]) != 0) << i; } p%d = (p%d & ~mm) | q;\n",
               space, a, d->reg, d->reg);
}

static void emit_elect(struct emit *e, const struct insn *in)
{
    const struct opnd *d = &in->args[0];
    buf_printf(e->out, "u32 am = %s & mm; u32 ld = am ? first_lane(am) : 0;\n",
               members_of(e, in, 1));
    if (d->kind == OPND_REG)
        buf_printf(e->out, "put32(fr + %d, mm, ld);\n", reg_slot(e, d->reg));
    if (d->reg2 >= 0)
        buf_printf(e->out, "p%d = (p%d & ~mm) | (1u << ld);\n", d->reg2, d->reg2);
}

static void emit_fence(struct emit *e, const struct insn *in)
{
    int site = emit_site(e, in, PS_GENERIC, 4, 1, 0, 0,
                         insn_has_mod(in, MOD_CTA) ? (unsigned)FENCE_BLOCK : 0u);
    buf_printf(e->out, "R->fence(W, %d);\n", site);
    if (!insn_has_mod(in, MOD_CTA))
        e->strong |= SW_K_SPINS | SW_K_ORDERS;
}

static void emit_grid(struct emit *e, const struct insn *in)
{
    buf_printf(e->out, "R->grid(W, %d);\n", !insn_has_mod(in, MOD_LAUNCH_DEPENDENTS));
}

static void emit_trap(struct emit *e, const struct insn *in)
{
    unsigned kind = in->op == OP_TOODEEP      ? TRAP_TOO_DEEP
                    : in->op == OP_NOFUNCTION ? TRAP_NO_FUNCTION
                                              : TRAP_PLAIN;
    int site = emit_site(e, in, PS_GENERIC, 4, 1, 0, 0, kind);

    buf_printf(e->out, "R->trap(W, mm, %d, %d);\n", in->op == OP_CALL_ASSERTFAIL, site);
}

static void emit_activemask(struct emit *e, const struct insn *in)
{
    set_uniform(e, &in->args[0], "mm");
}

static void emit_movmatrix(struct emit *e, const struct insn *in)
{
    const char *s = lanes_of(e, in, &in->args[1], false);
    buf_printf(e->out, "R->movmatrix(W, (u32 *)(fr + %d), (const u32 *)%s);\n",
               in->args[0].kind == OPND_REG ? reg_slot(e, in->args[0].reg) : 0, s);
}

static void emit_nothing(struct emit *e, const struct insn *in)
{
    (void)in;
    buf_puts(e->out, ";\n");
}

static void emit_sleep(struct emit *e, const struct insn *in)
{
    int site = emit_site(e, in, PS_GENERIC, 4, 1, 0, 0, 0);
    buf_printf(e->out, "W->fuel = 0; R->tick(W, 1, %d);\n", site);
}

static const struct emit_row table[] = {
    {OP_SHFL, 4, emit_shfl},
    {OP_VOTE, 2, emit_vote},
    {OP_MATCH, 3, emit_match},
    {OP_REDUX, 3, emit_redux},
    {OP_BAR, 1, emit_bar},
    {OP_BARRIER, 1, emit_bar},
    {OP_MMA, 4, emit_mma},
    {OP_WMMA, 2, emit_wmma},
    {OP_CALL_VPRINTF, 2, emit_print},
    {OP_ISSPACEP, 2, emit_isspacep},
    {OP_ELECT, 1, emit_elect},
    {OP_MEMBAR, 0, emit_fence},
    {OP_FENCE, 0, emit_fence},
    {OP_TRAP, 0, emit_trap},
    {OP_TOODEEP, 0, emit_trap},
    {OP_NOFUNCTION, 0, emit_trap},
    {OP_BRKPT, 0, emit_nothing},
    {OP_CALL_ASSERTFAIL, 0, emit_trap},
    {OP_ACTIVEMASK, 1, emit_activemask},
    {OP_MOVMATRIX, 2, emit_movmatrix},
    {OP_PREFETCH, 0, emit_nothing},
    {OP_PREFETCHU, 0, emit_nothing},
    {OP_NANOSLEEP, 0, emit_sleep},
    {OP_DISCARD, 0, emit_nothing},
    {OP_APPLYPRIORITY, 0, emit_nothing},
    {OP_PMEVENT, 0, emit_nothing},
    {OP_GRIDDEPCONTROL, 0, emit_grid},
};

bool emit_warp(struct emit *e, const struct insn *in)
{
    int at = insn_members(in);
    if (at < 0 || operand_uniform(e, &in->args[at]))
        return emit_by_table(e, in, table, ARRAY_LEN(table));
    /* Tiles of one warp: threads with one mask work together. */
    buf_printf(e->out,
               "for (u32 left = mm, some; left; left &= ~some) { some = same_members(left, (const "
               "u32 *)%s); u32 mm = some; {\n",
               lanes_of(e, in, &in->args[at], false));
    bool known = emit_by_table(e, in, table, ARRAY_LEN(table));
    buf_puts(e->out, "} }\n");
    return known;
}

static bool cvt_of_floats(const struct insn *in)
{
    return insn_has_any(in, MOD_F32, MOD_F16, MOD_BF16, MOD_F64, MOD_F16X2, MOD_BF16X2, MOD_TF32,
                        MOD_E4M3X2, MOD_E5M2X2);
}

enum sw_class op_class(const struct insn *in)
{
    enum { SW_C_ROW = SW_C_COUNT };
    static const uint8_t classes[OP_COUNT] = {
#define OPCODE(name, text, cls, traits) [OP_##name] = SW_C_##cls,
#include "simt/ptx/ptx_ops.def"
    };
    bool shared = insn_shared(in);
    switch (in->op) {
    case OP_WGMMA:
        return insn_has_mod(in, MOD_MMA_ASYNC) ? SW_C_TENSOR : SW_C_OTHER;
    case OP_WMMA:
        return insn_has_mod(in, MOD_MMA)    ? SW_C_TENSOR
               : insn_has_mod(in, MOD_LOAD) ? SW_C_LDG
                                            : SW_C_STG;
    case OP_LD:
        return insn_has_mod(in, MOD_PARAM) ? SW_C_OTHER : shared ? SW_C_LDS : SW_C_LDG;
    case OP_ST:
        return shared ? SW_C_STS : SW_C_STG;
    case OP_CVT: /* another width: a move, or nothing */
        return cvt_of_floats(in) ? SW_C_CVT : SW_C_INT;
    default:
        break;
    }
    if (classes[in->op] != SW_C_ROW)
        return (enum sw_class)classes[in->op];
    const struct op_row *row = op_find(in, in->op);
    return row ? row->cls : SW_C_OTHER;
}

uint32_t mma_kind(const struct insn *in, unsigned *flops)
{
    uint32_t wg = hopper_flops(in, flops);
    if (wg)
        return wg;
    uint32_t kind =
        in->op == OP_MMA || (in->op == OP_WMMA && insn_has_mod(in, MOD_MMA)) ? mma_find(in) : 0;
    const struct mma_shape *s = kind ? mma_row(kind) : NULL;
    *flops = s ? 2u * (unsigned)(s->m * s->n * s->k) : 0;
    return kind;
}

void emit_call(struct emit *e, const struct insn *in)
{
    if (!emit_hopper(e, in) && !emit_memory(e, in) && !emit_warp(e, in))
        emit_fail(e, in, "this device does not know the instruction");
}
