/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit_blackwell.c - tcgen05 as calls: operands become 64-bit lanes, so the device sees one form.
 */
#include "simt/emit/emit.h"

#include "simt/blackwell/blackwell.h"

#include <inttypes.h>

/* A named choice among modifiers, or -1. */
static int choice(const struct insn *in, const uint16_t *mods, int count)
{
    for (int i = 0; i < count; i++)
        if (insn_has_mod(in, mods[i]))
            return i;
    return -1;
}
#define CHOICE(in, ...)                                                                            \
    choice(in, (const uint16_t[]){__VA_ARGS__},                                                    \
           (int)(sizeof(const uint16_t[]){__VA_ARGS__} / sizeof(uint16_t)))

/* An operand as u64[32]; an address with its offset added. */
static const char *operand_lanes(struct emit *e, const struct insn *in, const struct opnd *o,
                                 bool wide)
{
    int t = e->temp++;
    struct opnd reg = *o;
    if (o->kind == OPND_ADDR && o->reg < 0) {
        emit_fail(e, in, "an address of tensor memory or of an mbarrier must be in a register");
        return "0";
    }
    if (o->kind == OPND_ADDR)
        reg = (struct opnd){.kind = OPND_REG, .reg = o->reg, .reg2 = -1, .target = -1};
    if (reg.kind == OPND_REG)
        wide = reg_class(e, reg.reg) == CLASS_Q;
    const char *lanes = lanes_of(e, in, &reg, wide);
    buf_printf(e->out,
               "u64 t%d[32] AL; for (int i = 0; i < 32; i++) t%d[i] = ((const %s *)%s)[i] + "
               "(u64)%" PRId64 "ll;\n",
               t, t, wide ? "u64" : "u32", lanes, o->kind == OPND_ADDR ? o->off : 0);
    return arena_printf(e->a, "t%d", t);
}

static int begin(struct emit *e)
{
    int t = e->temp++;
    buf_printf(e->out, "struct sw_tc c%d = {0};\n", t);
    return t;
}

static void operand(struct emit *e, const struct insn *in, int t, int place, int arg, bool wide)
{
    const char *lanes = operand_lanes(e, in, &in->args[arg], wide);
    buf_printf(e->out, "c%d.x[%d] = %s;\n", t, place, lanes);
}

static void call(struct emit *e, const struct insn *in, int t, unsigned kind, bool whole)
{
    int site = emit_site(e, in, PS_SHARED, 4, 1, 0, 0, kind);
    if (whole)
        buf_printf(e->out, "if (mm != W->live) R->sync(W, mm, 0xffffffffu, %d);\n", site);
    buf_printf(e->out, "R->tc(W, mm, %d, &c%d);\n", site, t);
}

static unsigned pair_of(const struct insn *in)
{
    return insn_has_mod(in, MOD_CTA_GROUP_2) ? (unsigned)TC_PAIR : 0u;
}

/* ---- life of columns ---- */

static void emit_life(struct emit *e, const struct insn *in)
{
    bool alloc = insn_has_mod(in, MOD_ALLOC), drop = insn_has_mod(in, MOD_RELINQUISH);
    int t = begin(e);
    if (in->arg_count != (drop ? 0 : 2)) {
        emit_fail(e, in, "wrong number of operands");
        return;
    }
    for (int i = 0; i < in->arg_count; i++)
        operand(e, in, t, i, i, false);
    call(e, in, t, (alloc ? TC_ALLOC : drop ? TC_RELINQUISH : TC_DEALLOC) | pair_of(in), true);
}

/* ---- loads and stores ---- */

/* A register that is stored: up to 128 of them, so those without a place in the frame get one each
 * beside it. */
static const char *stored_lanes(struct emit *e, const struct insn *in, const struct opnd *o)
{
    int before = e->scratch, t;
    const char *lanes = lanes_of(e, in, o, false);
    if (e->scratch == before)
        return arena_printf(e->a, "(void *)%s", lanes);
    e->scratch = before;
    t = e->temp++;
    buf_printf(e->out,
               "u32 t%d[32] AL; for (int i = 0; i < 32; i++) t%d[i] = ((const u32 *)%s)[i];\n", t,
               t, lanes);
    return arena_printf(e->a, "(void *)t%d", t);
}

static void emit_tensor_access(struct emit *e, const struct insn *in)
{
    static const unsigned each[] = {
        [TC_32X32] = 1, [TC_16X64] = 1, [TC_16X128] = 2, [TC_16X256] = 4, [TC_16X32X2] = 1};
    bool load = insn_has_mod(in, MOD_LD);
    int shape = CHOICE(in, MOD_32X32B, MOD_16X64B, MOD_16X128B, MOD_16X256B, MOD_16X32BX2);
    int times = CHOICE(in, MOD_X1, MOD_X2, MOD_X4, MOD_X8, MOD_X16, MOD_X32, MOD_X64, MOD_X128);
    bool pack = insn_has_any(in, MOD_PACK_16B, MOD_UNPACK_16B), split = shape == TC_16X32X2;
    if (shape < 0 || times < 0 || in->arg_count != (split ? 3 : 2)) {
        emit_fail(e, in, "this device does not know the form of tcgen05.ld or st");
        return;
    }
    const struct opnd *list = &in->args[load ? 0 : in->arg_count - 1];
    const struct opnd *regs = list->kind == OPND_VEC ? list->list : list;
    int n = list->kind == OPND_VEC ? list->count : 1;
    if (n != (int)(each[shape] << times)) {
        emit_fail(e, in, "wrong number of registers for this shape");
        return;
    }
    int t = begin(e);
    operand(e, in, t, 0, load ? 1 : 0, false);
    if (split)
        operand(e, in, t, 1, load ? 2 : 1, false);
    const char *names = "";
    for (int i = 0; i < n; i++) {
        const char *one = !load ? stored_lanes(e, in, &regs[i])
                          : regs[i].kind == OPND_REG
                              ? arena_printf(e->a, "fr + %d", reg_slot(e, regs[i].reg))
                              : "0";
        names = arena_printf(e->a, "%s%s%s", names, i ? ", " : "", one);
    }
    buf_printf(e->out, "c%d.regs = (void *[]){%s}; c%d.count = %d;\n", t, names, t, n);
    call(e, in, t,
         (load ? TC_LD : TC_ST) | (unsigned)shape << TC_KIND_SHIFT |
             (unsigned)times << TC_TIMES_SHIFT | (pack ? (unsigned)TC_PACK : 0u),
         true);
}

/* ---- products ---- */

/* Kind and scales; false: not one this device knows. */
static bool product_kind(const struct insn *in, unsigned *kind)
{
    int k = CHOICE(in, MOD_KIND_F16, MOD_KIND_TF32, MOD_KIND_I8, MOD_KIND_F8F6F4, MOD_KIND_MXF8F6F4,
                   MOD_KIND_MXF4, MOD_KIND_MXF4NVF4);
    bool scaled = insn_has_mod(in, MOD_BLOCK_SCALE);
    unsigned scales = 0;
    if (k < 0 || scaled != (k >= TC_MXF8F6F4))
        return false;
    if (k == TC_MXF8F6F4)
        scales = insn_has_any(in, MOD_SCALE_VEC_2X, MOD_SCALE_VEC_4X, MOD_BLOCK16) ? 0 : 1;
    else if (k == TC_MXF4)
        scales = insn_has_any(in, MOD_SCALE_VEC_1X, MOD_SCALE_VEC_4X, MOD_BLOCK16) ? 0 : 2;
    else if (scaled)
        scales = insn_has_any(in, MOD_SCALE_VEC_4X, MOD_BLOCK16)   ? 3
                 : insn_has_any(in, MOD_SCALE_VEC_2X, MOD_BLOCK32) ? 2
                                                                   : 0;
    *kind = (unsigned)TC_MMA | (unsigned)k << TC_KIND_SHIFT | scales << TC_SCALE_SHIFT;
    return !scaled || scales;
}

/* [d], a or [a], b, descriptor, then [scales of A], [of B], or lanes not to write; accumulate. */
static void emit_product(struct emit *e, const struct insn *in)
{
    unsigned kind;
    if (!product_kind(in, &kind) || in->arg_count < 5) {
        emit_fail(e, in, "this device does not know the kind of tcgen05.mma");
        return;
    }
    bool scaled = kind >> TC_SCALE_SHIFT & TC_SCALES, memory = in->args[1].kind == OPND_ADDR;
    int at = 4, t = begin(e);
    kind |= pair_of(in) | (memory ? (unsigned)TC_A_MEMORY : 0u);
    operand(e, in, t, 0, 0, false);
    operand(e, in, t, 1, 1, !memory);
    operand(e, in, t, 2, 2, true);
    operand(e, in, t, 3, 3, false);
    if (scaled && in->arg_count >= 7) {
        operand(e, in, t, 4, 4, false);
        operand(e, in, t, 5, 5, false);
        at = 6;
    } else if (!scaled && in->args[at].kind == OPND_VEC) {
        const struct opnd *mask = &in->args[at++];
        for (int i = 0; i < mask->count; i++)
            buf_printf(
                e->out,
                "for (int i = 0; i < 32; i++) c%d.masked |= ((const u32 *)%s)[i] && mm >> i & "
                "1;\n",
                t, lanes_of(e, in, &mask->list[i], false));
    }
    if (at + 1 != in->arg_count || in->args[at].kind == OPND_VEC) {
        emit_fail(e, in, "this device does not know the operands of this tcgen05.mma");
        return;
    }
    if (in->args[at].kind == OPND_INT)
        buf_printf(e->out, "c%d.pred = %s;\n", t, in->args[at].bits ? "~0u" : "0u");
    else
        buf_printf(e->out, "c%d.pred = %s;\n", t, pred_bits(e, in, &in->args[at]));
    call(e, in, t, kind, false);
}

static void emit_tensor_copy(struct emit *e, const struct insn *in)
{
    int form = insn_has_mod(in, MOD_128X256B)                                        ? TC_128X256
               : insn_has_mod(in, MOD_4X256B)                                        ? TC_4X256
               : insn_has_mod(in, MOD_128X128B)                                      ? TC_128X128
               : insn_has_mod(in, MOD_64X128B) && insn_has_mod(in, MOD_WARPX2_02_13) ? TC_64X128_02
               : insn_has_mod(in, MOD_64X128B) && insn_has_mod(in, MOD_WARPX2_01_23) ? TC_64X128_01
               : insn_has_mod(in, MOD_32X128B) && insn_has_mod(in, MOD_WARPX4)       ? TC_32X128
                                                                                     : -1;
    if (form < 0 || in->arg_count != 2 || insn_has_any(in, MOD_B8X16)) {
        emit_fail(e, in, "this device does not know the form of tcgen05.cp");
        return;
    }
    int t = begin(e);
    operand(e, in, t, 0, 0, false);
    operand(e, in, t, 1, 1, true);
    call(e, in, t, (unsigned)TC_CP | (unsigned)form << TC_KIND_SHIFT | pair_of(in), false);
}

static void emit_shift(struct emit *e, const struct insn *in)
{
    if (in->arg_count != 1 || !insn_has_mod(in, MOD_DOWN)) {
        emit_fail(e, in, "this device does not know the form of tcgen05.shift");
        return;
    }
    int t = begin(e);
    operand(e, in, t, 0, 0, false);
    call(e, in, t, (unsigned)TC_SHIFT | pair_of(in), false);
}

static void emit_commit(struct emit *e, const struct insn *in)
{
    bool multicast = insn_has_mod(in, MOD_MULTICAST_CLUSTER);
    bool shared = insn_shared(in) || insn_has_mod(in, MOD_SHARED_CLUSTER);
    if (in->arg_count != (multicast ? 2 : 1)) {
        emit_fail(e, in, "wrong number of operands");
        return;
    }
    int t = begin(e);
    operand(e, in, t, 0, 0, !shared);
    if (multicast)
        operand(e, in, t, 1, 1, false);
    call(e, in, t,
         (unsigned)TC_COMMIT | (multicast ? (unsigned)TC_MULTICAST : 0u) |
             (shared ? 0u : (unsigned)TC_GENERIC) | pair_of(in),
         false);
}

static void emit_order(struct emit *e, const struct insn *in)
{
    unsigned what = insn_has_mod(in, MOD_WAIT_LD)        ? TC_WAIT_LD
                    : insn_has_mod(in, MOD_WAIT_ST)      ? TC_WAIT_ST
                    : insn_has_mod(in, MOD_FENCE_BEFORE) ? TC_FENCE_BEFORE
                                                         : TC_FENCE_AFTER;
    call(e, in, begin(e), what, what < TC_FENCE_BEFORE);
}

void emit_tcgen05(struct emit *e, const struct insn *in)
{
    static const struct {
        uint16_t mod;
        void (*write)(struct emit *, const struct insn *);
    } forms[] = {
        {MOD_LD, emit_tensor_access}, {MOD_ST, emit_tensor_access}, {MOD_MMA, emit_product},
        {MOD_CP, emit_tensor_copy},   {MOD_SHIFT, emit_shift},      {MOD_COMMIT, emit_commit},
        {MOD_ALLOC, emit_life},       {MOD_DEALLOC, emit_life},     {MOD_RELINQUISH, emit_life},
        {MOD_WAIT_LD, emit_order},    {MOD_WAIT_ST, emit_order},    {MOD_FENCE_BEFORE, emit_order},
        {MOD_FENCE_AFTER, emit_order}};
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (insn_has_mod(in, forms[i].mod)) {
            forms[i].write(e, in);
            return;
        }
    emit_fail(e, in, "this device does not know the form of tcgen05");
}
