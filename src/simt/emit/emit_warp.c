/*
 * emit_warp.c - what concerns the warp or the block as a whole: shuffles,
 * votes, barriers, matrix instructions, fences, traps and printing.
 */
#include "simt/emit/emit.h"

#include "simt/ptx/mma_shapes.h"

#include <string.h>

static void emit_shfl(struct emit *e, const struct insn *in)
{
    static const char *const modes[] = {"up", "down", "bfly", "idx"};
    unsigned mode = 4;
    for (unsigned i = 0; i < 4; i++)
        if (insn_has(in, modes[i]))
            mode = i;
    bool sync = insn_has(in, "sync");
    if (mode == 4 || in->arg_count != (sync ? 5 : 4)) {
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
    const char *members = "0xffffffffu";
    if (sync)
        members = operand_uniform(e, &in->args[4])
                      ? scalar_value(e, in, &in->args[4], 'I')
                      : arena_printf(e->a, "((const u32 *)%s)[first_lane(mm)]",
                                     lanes_of(e, in, &in->args[4], false));
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

static const char *members_of(struct emit *e, const struct insn *in, int at)
{
    if (at >= in->arg_count)
        return "0xffffffffu";
    if (operand_uniform(e, &in->args[at]))
        return scalar_value(e, in, &in->args[at], 'I');
    return arena_printf(e->a, "((const u32 *)%s)[first_lane(mm)]",
                        lanes_of(e, in, &in->args[at], false));
}

static void emit_vote(struct emit *e, const struct insn *in)
{
    const char *bits = pred_bits(e, in, &in->args[1]);
    const char *among = members_of(e, in, insn_has(in, "sync") ? 2 : 99);
    int site = emit_site(e, in, PS_GENERIC, 4, 1, 0, 0, 0);
    buf_printf(e->out, "u32 am = %s & mm; R->sync(W, mm, %s, %d);\n", among, among, site);
    const char *t = NULL;
    if (insn_has(in, "ballot"))
        t = arena_printf(e->a, "(%s & am)", bits);
    else if (insn_has(in, "all"))
        t = arena_printf(e->a, "((%s & am) == am)", bits);
    else if (insn_has(in, "any"))
        t = arena_printf(e->a, "((%s & am) != 0)", bits);
    else if (insn_has(in, "uni"))
        t = arena_printf(e->a, "((%s & am) == am || !(%s & am))", bits, bits);
    if (!t) {
        emit_fail(e, in, "not a known form of vote");
        return;
    }
    set_uniform(e, &in->args[0], t);
}

static void emit_match(struct emit *e, const struct insn *in)
{
    bool wide = ptx_type_bytes(in->type) == 8, all = insn_has(in, "all");
    const struct opnd *d = &in->args[0];
    if (d->kind != OPND_REG || in->arg_count != 3) {
        emit_fail(e, in, "not a known form of match");
        return;
    }
    const char *src = lanes_of(e, in, &in->args[1], wide);
    buf_printf(e->out, "u32 q = 0; R->match(W, mm, %u, (u32 *)(fr + %d), &q, %s, %s); (void)q;\n",
               (all ? 1u : 0u) | (wide ? 2u : 0u), reg_slot(e, d->reg), src, members_of(e, in, 2));
    if (d->reg2 >= 0)
        buf_printf(e->out, "p%d = (p%d & ~mm) | (q & mm);\n", d->reg2, d->reg2);
}

static void emit_redux(struct emit *e, const struct insn *in)
{
    static const char *const ops[] = {"add", "min", "max", "and", "or", "xor"};
    for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
        if (!insn_has(in, ops[i]))
            continue;
        const char *src = lanes_of(e, in, &in->args[1], false);
        unsigned kind = i | (in->type == PT_S32 ? 8u : 0u);
        set_uniform(e, &in->args[0],
                    arena_printf(e->a, "R->redux(W, mm, %u, (const u32 *)%s, %s)", kind, src,
                                 members_of(e, in, 2)));
        return;
    }
    emit_fail(e, in, "not a known form of redux");
}

/* kind: 0 sync, 1 arrive, 2 red.popc, 3 red.and, 4 red.or; 32: aligned; 64: lanes of
 * the warp arrive from several places */
static void emit_bar(struct emit *e, const struct insn *in)
{
    int site = emit_site(e, in, PS_GENERIC, 4, 1, 0, 0, 0);
    if (insn_has(in, "warp")) {
        buf_printf(e->out, "R->sync(W, mm, %s, %d);\n", members_of(e, in, 0), site);
        return;
    }
    if (insn_has(in, "cluster")) {
        emit_fail(e, in, "clusters are not supported");
        return;
    }
    bool red = insn_has(in, "red");
    unsigned kind = insn_has(in, "arrive") ? 1u
                    : !red                 ? 0u
                    : insn_has(in, "popc") ? 2u
                    : insn_has(in, "and")  ? 3u
                                           : 4u;
    if (strcmp(in->op, "bar") == 0 || insn_has(in, "aligned"))
        kind |= 32;
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
        arena_printf(e->a, "R->bar(W, mm | extra, extra ? %uu | 64u : %uu, %s, %s, %s, %d)", kind,
                     kind, id, count, pred, site);
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
    if (strcmp(in->op, "wmma") == 0) {
        /* wmma.mma.sync.alayout.blayout: fragments hold the matrix itself */
        kind |= MMA_ROW_A | MMA_COL_B;
    }
    bool wide = s->a == PT_F64;
    reg_list(e, in, &in->args[0], s->d_regs, wide, true);
    reg_list(e, in, &in->args[1], s->a_regs, wide, false);
    reg_list(e, in, &in->args[2], s->b_regs, wide, false);
    reg_list(e, in, &in->args[3], s->c_regs, wide, false);
    int site = emit_site(e, in, PS_GENERIC, 4, 1, 0, 0, kind);
    buf_printf(e->out, "if (mm != 0xffffffffu) R->sync(W, mm, 0xffffffffu, %d);\nR->mma(W, %d);\n",
               site, site);
}

static void emit_wmma(struct emit *e, const struct insn *in)
{
    if (insn_has(in, "mma")) {
        emit_mma(e, in);
        return;
    }
    bool load = insn_has(in, "load");
    int regs = 0;
    uint32_t kind = wmma_find(in, &regs);
    if (!kind || in->arg_count < 2) {
        emit_fail(e, in, "this device does not know the matrix shape");
        return;
    }
    bool wide = in->type == PT_F64, a32, uniform;
    enum ptx_space space = insn_has(in, "shared") || insn_has(in, "shared::cta") ? PS_SHARED
                           : insn_has(in, "global")                              ? PS_GLOBAL
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
    unsigned space = insn_has(in, "global")  ? SW_GLOBAL
                     : insn_has(in, "const") ? SW_CONST
                     : insn_has(in, "local") ? SW_LOCAL
                     : insn_has(in, "param") ? SW_PARAM
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
    int site = emit_site(e, in, PS_GENERIC, 4, 1, 0, 0, 0);
    buf_printf(e->out, "R->fence(W, %d);\n", site);
    if (!insn_has(in, "cta"))
        e->strong |= SW_K_SPINS | SW_K_ORDERS;
}

static void emit_trap(struct emit *e, const struct insn *in)
{
    int site = emit_site(e, in, PS_GENERIC, 4, 1, 0, 0, 0);
    buf_printf(e->out, "R->trap(W, mm, %d);\n", site);
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

static const struct warp_row {
    const char *op;
    int args;
    void (*write)(struct emit *, const struct insn *);
} table[] = {
    {"shfl", 4, emit_shfl},
    {"vote", 2, emit_vote},
    {"match", 3, emit_match},
    {"redux", 3, emit_redux},
    {"bar", 1, emit_bar},
    {"barrier", 1, emit_bar},
    {"mma", 4, emit_mma},
    {"wmma", 2, emit_wmma},
    {"call_vprintf", 2, emit_print},
    {"isspacep", 2, emit_isspacep},
    {"elect", 1, emit_elect},
    {"membar", 0, emit_fence},
    {"fence", 0, emit_fence},
    {"trap", 0, emit_trap},
    {"brkpt", 0, emit_nothing},
    {"call___assertfail", 0, emit_trap},
    {"activemask", 1, emit_activemask},
    {"movmatrix", 2, emit_movmatrix},
    {"prefetch", 0, emit_nothing},
    {"prefetchu", 0, emit_nothing},
    {"nanosleep", 0, emit_sleep},
    {"discard", 0, emit_nothing},
    {"applypriority", 0, emit_nothing},
    {"pmevent", 0, emit_nothing},
    {"griddepcontrol", 0, emit_nothing},
};

bool emit_warp(struct emit *e, const struct insn *in)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (strcmp(table[i].op, in->op) != 0)
            continue;
        if (in->arg_count < table[i].args)
            emit_fail(e, in, "too few operands");
        else
            table[i].write(e, in);
        return true;
    }
    return false;
}

bool emit_is_call(const struct insn *in)
{
    static const char *const memory[] = {"ldu", "st",       "atom",     "red",
                                         "cp",  "ldmatrix", "stmatrix", "mbarrier"};
    for (size_t i = 0; i < ARRAY_LEN(memory); i++)
        if (strcmp(memory[i], in->op) == 0)
            return true;
    if (hopper_is_call(in))
        return true;
    if (strcmp(in->op, "ld") == 0)
        return !(insn_has(in, "param") && in->arg_count == 2 && in->args[1].kind == OPND_ADDR &&
                 in->args[1].reg < 0);
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (strcmp(table[i].op, in->op) == 0)
            return true;
    return strncmp(in->op, "call_", 5) == 0;
}

static bool cvt_of_floats(const struct insn *in)
{
    static const char *const types[] = {"f32",    "f16",  "bf16",   "f64",   "f16x2",
                                        "bf16x2", "tf32", "e4m3x2", "e5m2x2"};
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (insn_has(in, types[i]))
            return true;
    return false;
}

enum sw_class op_class(const struct insn *in)
{
    static const struct {
        const char *op;
        enum sw_class global, shared;
    } calls[] = {{"ld", SW_C_LDG, SW_C_LDS},        {"st", SW_C_STG, SW_C_STS},
                 {"atom", SW_C_ATOM, SW_C_ATOM},    {"red", SW_C_ATOM, SW_C_ATOM},
                 {"cp", SW_C_LDG, SW_C_LDG},        {"ldmatrix", SW_C_LDS, SW_C_LDS},
                 {"stmatrix", SW_C_STS, SW_C_STS},  {"mma", SW_C_TENSOR, SW_C_TENSOR},
                 {"bar", SW_C_BAR, SW_C_BAR},       {"barrier", SW_C_BAR, SW_C_BAR},
                 {"bra", SW_C_BRANCH, SW_C_BRANCH}, {"cvt", SW_C_CVT, SW_C_CVT},
                 {"shfl", SW_C_SHFL, SW_C_SHFL}};
    if (strcmp(in->op, "wgmma") == 0)
        return insn_has(in, "mma_async") ? SW_C_TENSOR : SW_C_OTHER;
    if (strcmp(in->op, "wmma") == 0)
        return insn_has(in, "mma") ? SW_C_TENSOR : insn_has(in, "load") ? SW_C_LDG : SW_C_STG;
    if (strcmp(in->op, "ld") == 0 && insn_has(in, "param"))
        return SW_C_OTHER;
    if (strcmp(in->op, "cvt") == 0 && !cvt_of_floats(in))
        return SW_C_INT; /* another width: a move, or nothing */
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        if (strcmp(calls[i].op, in->op) == 0)
            return insn_has(in, "shared") || insn_has(in, "shared::cta") ? calls[i].shared
                                                                         : calls[i].global;
    const struct op_row *row = op_find(in, in->op);
    if (row)
        return row->cls;
    return strcmp(in->op, "setp") == 0 || strcmp(in->op, "lop3") == 0 || strcmp(in->op, "selp") == 0
               ? SW_C_INT
               : SW_C_OTHER;
}

uint32_t mma_kind(const struct insn *in, unsigned *flops)
{
    uint32_t wg = hopper_flops(in, flops);
    if (wg)
        return wg;
    uint32_t kind =
        strcmp(in->op, "mma") == 0 || (strcmp(in->op, "wmma") == 0 && insn_has(in, "mma"))
            ? mma_find(in)
            : 0;
    const struct mma_shape *s = kind ? mma_row(kind) : NULL;
    *flops = s ? 2u * (unsigned)(s->m * s->n * s->k) : 0;
    return kind;
}

void emit_call(struct emit *e, const struct insn *in)
{
    if (!emit_hopper(e, in) && !emit_memory(e, in) && !emit_warp(e, in))
        emit_fail(e, in, "this device does not know the instruction");
}
