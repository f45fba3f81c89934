/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit_memory.c - loads, stores, atomics and asynchronous copies as calls.
 *
 * Hides: how an address operand becomes lanes or one scalar, and the site
 * table, by which the device knows each instruction's space, size and line.
 */
#include "simt/emit/emit.h"

#include "simt/ptx/call_kinds.h"

#include "simt/ptx/atomic_ops.h"

#include <inttypes.h>
#include <string.h>

void site_reg(struct emit *e, int offset)
{
    if (offset < 0)
        buf_puts(e->regs, "SW_NONE,");
    else
        buf_printf(e->regs, "%d,", offset);
    e->reg_count++;
}

static bool concerns_proxy(const struct insn *in)
{
    switch (in->op) {
    case OP_WGMMA:
    case OP_TCGEN05:
    case OP_CLUSTERLAUNCHCONTROL:
        return true;
    case OP_CP:
        return insn_has_any(in, MOD_BULK, MOD_REDUCE);
    case OP_FENCE:
        return insn_has_mod(in, MOD_PROXY);
    case OP_ST:
        return insn_has_mod(in, MOD_ASYNC);
    default:
        return false;
    }
}

static unsigned site_role(const struct insn *in)
{
    unsigned proxy = concerns_proxy(in) ? SW_R_PROXY : 0;
    switch (in->op) {
    case OP_ST:
        return proxy | SW_R_STORE;
    case OP_ATOM:
    case OP_RED:
        return SW_R_ATOMIC;
    case OP_MMA:
    case OP_WMMA:
        return SW_R_MMA;
    case OP_WGMMA:
        return proxy | SW_R_WGMMA;
    case OP_TCGEN05:
        return proxy | SW_R_OTHER;
    case OP_MBARRIER:
        return SW_R_WAIT;
    default:
        return proxy |
               (insn_has_any(in, MOD_WAIT, MOD_WAIT_GROUP, MOD_WAIT_ALL) ? SW_R_WAIT : SW_R_OTHER);
    }
}

/* The array of shared memory that a load, store or atomic is to stay in, or NULL. */
static const struct ptx_var *site_array(const struct emit *e, const struct insn *in,
                                        enum ptx_space space)
{
    bool plain = in->op == OP_LD || in->op == OP_ST || in->op == OP_ATOM || in->op == OP_RED;
    for (int i = 0; plain && space == PS_SHARED && e->arrays && i < in->arg_count; i++)
        if (in->args[i].kind == OPND_ADDR)
            return shared_array_of(&in->args[i], e->arrays);
    return NULL;
}

int emit_site(struct emit *e, const struct insn *in, enum ptx_space space, unsigned esize, int vec,
              unsigned flags, int64_t off, unsigned kind)
{
    const struct ptx_var *array = site_array(e, in, space);
    static const char *const names[] = {"SW_GENERIC", "SW_GLOBAL", "SW_SHARED",
                                        "SW_CONST",   "SW_LOCAL",  "SW_PARAM"};
    buf_printf(e->sites,
               "{%s, %u, %d, %u, %u, %d, %d, %" PRId64 "ll, %uu, %d, %d, %" PRId64 "ll, %" PRId64
               "ll, \"%s",
               names[space], esize, vec, flags, site_role(in), in->line, in->loc, off, kind,
               e->addr_at, e->regs_at, e->stride, e->wrap, ptx_op_name(in->op));
    e->addr_at = 0;
    e->stride = e->wrap = 0;
    e->regs_at = e->reg_count;
    insn_mods_text(in, e->sites);
    if (array)
        buf_printf(e->sites, "\", %" PRIu64 ", %" PRIu64 ", \"%s\"},\n", array->offset,
                   array->offset + array->bytes, array->name);
    else
        buf_puts(e->sites, "\", 0, 0, 0},\n");
    return e->site_count++;
}

/* Text of the address: a lane array, or a scalar when *uniform. *off is the constant part. */
const char *address_of(struct emit *e, const struct insn *in, const struct opnd *o,
                       enum ptx_space *space, int64_t *off, bool *a32, bool *uniform)
{
    *off = o->off;
    *a32 = false;
    *uniform = operand_uniform(e, o);
    if (o->kind != OPND_ADDR) {
        emit_fail(e, in, "an address is expected");
        return "0";
    }
    if (o->reg >= 0) {
        struct opnd reg = {.kind = OPND_REG, .reg = o->reg, .reg2 = -1};
        if (*uniform)
            return scalar_value(e, in, &reg, 'Q');
        *a32 = reg_class(e, o->reg) != CLASS_Q;
        if (is_affine(e, o->reg)) {
            e->addr_at = scratch_take(e, in);
            affine_lanes(e, o->reg, e->addr_at);
        } else {
            e->addr_at = reg_slot(e, o->reg);
        }
        return arena_printf(e->a, "(fr + %d)", e->addr_at);
    }
    if (!o->name)
        return "0ull";
    if (o->var && (o->var->space == PS_SHARED || o->var->space == PS_LOCAL)) {
        *off += (int64_t)o->var->offset;
        if (*space == PS_GENERIC)
            *space = o->var->space;
        return "0ull";
    }
    struct opnd sym = *o;
    *off = 0;
    return symbol_address(e, in, &sym);
}

static void spread_address(struct emit *e, const struct insn *in, const char **addr, bool *a32)
{
    e->addr_at = scratch_take(e, in);
    buf_printf(e->out, "fill64(fr + %d, %s);\n", e->addr_at, *addr);
    *addr = arena_printf(e->a, "(fr + %d)", e->addr_at);
    *a32 = false;
}

/* Likewise, but the call that uses it will fill them. */
static int spread_later(struct emit *e, const struct insn *in, bool *a32)
{
    *a32 = false;
    return e->addr_at = scratch_take(e, in);
}

static int operand_list(const struct opnd *o, const struct opnd **list)
{
    *list = o->kind == OPND_VEC ? o->list : o;
    return o->kind == OPND_VEC ? o->count : 1;
}

struct access {
    enum ptx_space space;
    int64_t off;
    bool a32, uniform, affine; /* affine: addr is base and wrap */
    const char *addr, *base, *wraps;
    unsigned esize, flags;
    int n;
    const struct opnd *regs;
};

static unsigned access_flags(const struct emit *e, const struct insn *in, const struct opnd *regs,
                             int n)
{
    unsigned flags = insn_has_mod(in, MOD_NC) ? SW_READONLY : 0u;
    if (in->type == PT_S8 || in->type == PT_S16 || in->type == PT_S32)
        flags |= SW_SIGNED;
    for (int i = 0; i < n; i++)
        if (regs[i].kind == OPND_REG && reg_class(e, regs[i].reg) == CLASS_Q)
            flags |= SW_WIDE;
    if (insn_has_any(in, MOD_VOLATILE, MOD_RELAXED, MOD_ACQUIRE, MOD_RELEASE, MOD_ACQ_REL,
                     MOD_MMIO))
        flags |= SW_STRONG;
    if (insn_has_any(in, MOD_RELEASE, MOD_ACQ_REL))
        flags |= SW_RELEASE;
    return flags;
}

static bool access_of(struct emit *e, const struct insn *in, const struct opnd *addr,
                      const struct opnd *value, bool direct, struct access *x)
{
    x->space = insn_space(in);
    x->affine = direct && addr->kind == OPND_ADDR && addr->reg >= 0 && x->space != PS_LOCAL &&
                e->ir->varying[addr->reg] && is_affine(e, addr->reg);
    if (x->affine) {
        x->off = addr->off;
        x->a32 = reg_class(e, addr->reg) != CLASS_Q;
        x->uniform = false;
        x->base = arena_printf(e->a, "a%d", addr->reg);
        x->wraps = affine_wrap(e, addr->reg);
        x->addr = arena_printf(e->a, "%s, %s", x->base, x->wraps);
        e->stride = e->ir->affine[addr->reg].stride;
        e->wrap = e->ir->affine[addr->reg].wrap;
    } else {
        x->addr = address_of(e, in, addr, &x->space, &x->off, &x->a32, &x->uniform);
    }
    x->esize = ptx_type_bytes(in->type);
    x->n = operand_list(value, &x->regs);
    if (x->esize == 16 || x->n < 1 || x->n > 8 || !x->esize)
        return emit_fail(e, in, "this width of access is not supported");
    x->flags = access_flags(e, in, x->regs, x->n);
    if (x->flags & SW_STRONG)
        e->strong |= x->space != PS_SHARED ? SW_K_SPINS | SW_K_ORDERS : 0u;
    if (x->space == PS_CONST)
        x->flags |= SW_READONLY;
    return true;
}

static int load_site(struct emit *e, const struct insn *in, struct access *x)
{
    for (int i = 0; i < x->n; i++)
        site_reg(e, x->regs[i].kind == OPND_REG ? reg_slot(e, x->regs[i].reg) : -1);
    return emit_site(e, in, x->space, x->esize, x->n, x->flags | (x->a32 ? SW_A32 : 0u), x->off, 0);
}

int emit_group_site(struct emit *e, const struct insn *in)
{
    struct access x;
    if (in->op == OP_ST) {
        if (!access_of(e, in, &in->args[0], &in->args[1], false, &x))
            return 0;
        for (int i = 0; i < x.n; i++)
            site_reg(e, reg_slot(e, x.regs[i].reg));
        return emit_site(e, in, x.space, x.esize, x.n,
                         (x.flags & ~(unsigned)SW_WIDE) | (x.a32 ? SW_A32 : 0u), x.off, 0);
    }
    if (!access_of(e, in, &in->args[1], &in->args[0], false, &x))
        return 0;
    if (x.uniform)
        spread_address(e, in, &x.addr, &x.a32);
    return load_site(e, in, &x);
}

static const char *space_base(const struct access *x)
{
    return x->space == PS_SHARED ? "B->smem" : "(const u8 *)0";
}

/* Lanes side by side, of 4 bytes: a row that needs no call (vec_lanes.h). */
static bool row_of_words(const struct access *x, int64_t stride)
{
    return x->n == 1 && x->esize == 4 && stride == 4 && !(x->flags & (SW_STRONG | SW_WIDE)) &&
           x->a32 == (x->space == PS_SHARED) && x->space != PS_LOCAL && x->space != PS_PARAM &&
           x->regs[0].kind == OPND_REG;
}

bool emit_loads_row(const struct emit *e, const struct insn *in)
{
    const struct opnd *o = in->arg_count == 2 ? &in->args[1] : NULL;
    if (in->op != OP_LD || !o || o->kind != OPND_ADDR || o->reg < 0 || in->pred >= 0 ||
        in->args[0].kind != OPND_REG || !e->ir->varying[o->reg] || !is_affine(e, o->reg))
        return false;
    struct access x = {.space = insn_space(in),
                       .a32 = reg_class(e, o->reg) != CLASS_Q,
                       .n = 1,
                       .esize = ptx_type_bytes(in->type),
                       .flags = access_flags(e, in, &in->args[0], 1),
                       .regs = &in->args[0]};
    return row_of_words(&x, e->ir->affine[o->reg].stride);
}

/* One place of 4 bytes for all lanes: likewise. */
static bool one_word(const struct emit *e, const struct access *x)
{
    return x->esize == 4 && !(x->flags & (SW_STRONG | SW_WIDE)) && x->space != PS_LOCAL &&
           x->space != PS_PARAM && x->space != PS_GENERIC && x->regs[0].kind == OPND_REG &&
           reg_class(e, x->regs[0].reg) != CLASS_P;
}

static bool once(const struct emit *e)
{
    return e->once && e->once[e->block];
}

static const char *row_text(struct emit *e, const struct access *x, bool read, int site)
{
    return arena_printf(e->a, "row_%s(W, mm, %s, %" PRId64 "ll, %s, %s, %d)",
                        read && x->space == PS_SHARED ? "shared" : "at", x->base, x->off, x->wraps,
                        space_base(x), site);
}

/* All of a row's access in one call; at: its lanes in the frame. */
static const char *row_call(struct emit *e, const struct access *x, const char *what, int site,
                            int at)
{
    return arena_printf(e->a, "row_%s_%s(W, mm, %s, %" PRId64 "ll, %d, fr + %d, %s)", what,
                        x->space == PS_SHARED ? "shared" : "at", x->base, x->off, site, at,
                        x->wraps);
}

static void load_row(struct emit *e, const struct access *x, int site)
{
    int r = x->regs[0].reg, at = reg_slot(e, r);
    bool direct = e->direct[r] == e->block + 1;
    if (once(e) && direct)
        buf_printf(e->out, "q%d = %s;\n", r, row_call(e, x, "find", site, at));
    else if (once(e))
        buf_printf(e->out, "%s;\n", row_call(e, x, "load", site, at));
    else if (direct)
        buf_printf(e->out,
                   "q%d = %s; if (UNLIKELY(!q%d)) { R->lda(W, mm, %s, %d); q%d = fr + %d; }\n", r,
                   row_text(e, x, true, site), r, x->addr, site, r, at);
    else
        buf_printf(e->out,
                   "const u8 *q = %s; if (UNLIKELY(!q)) R->lda(W, mm, %s, %d); "
                   "else row_copy(fr + %d, q);\n",
                   row_text(e, x, true, site), x->addr, site, at);
}

static void emit_ld(struct emit *e, const struct insn *in)
{
    struct access x;
    if (!access_of(e, in, &in->args[1], &in->args[0], true, &x))
        return;
    bool all_uniform = x.uniform;
    for (int i = 0; i < x.n; i++)
        if (x.regs[i].kind == OPND_REG && e->ir->varying[x.regs[i].reg])
            all_uniform = false;
    if (all_uniform) {
        int site = emit_site(e, in, x.space, x.esize, x.n, x.flags, x.off, 0);
        if (x.n == 1 && one_word(e, &x)) {
            set_uniform(e, &x.regs[0],
                        arena_printf(e->a, "one_%s%s(W, mm, %s, %" PRId64 "ll, %s, %d)",
                                     x.space == PS_SHARED ? "shared" : "word",
                                     once(e) ? "_once" : "", x.addr, x.off, space_base(&x), site));
            return;
        }
        if (x.n == 1) {
            set_uniform(e, &x.regs[0], arena_printf(e->a, "R->ldu(W, mm, %s, %d)", x.addr, site));
            return;
        }
        buf_printf(e->out, "u64 o[8]; R->ldun(W, mm, %s, %d, o);\n", x.addr, site);
        for (int i = 0; i < x.n; i++)
            set_uniform(e, &x.regs[i], arena_printf(e->a, "o[%d]", i));
        return;
    }
    int64_t stride = e->stride;
    int first = x.regs[0].kind == OPND_REG ? x.regs[0].reg : -1;
    bool quad = x.n == 4 && first >= 0 && e->direct[first] == e->block + 1 && e->quad[first];
    int quad_at = quad ? quad_slots(e, &in->args[0]) : 0, from = 0;
    if (x.uniform && quad)
        spread_address(e, in, &x.addr, &x.a32);
    else if (x.uniform)
        from = spread_later(e, in, &x.a32);
    int site = load_site(e, in, &x);
    if (quad)
        buf_printf(e->out,
                   "q%d = R->quads(W, mm, %d, 0); "
                   "if (UNLIKELY(!q%d)) { R->ld(W, mm, %d); q%d = quads_join(fr + %d); }\n",
                   first, site, first, site, first, quad_at);
    else if (x.affine && row_of_words(&x, stride))
        load_row(e, &x, site);
    else if (x.affine)
        buf_printf(e->out, "R->lda(W, mm, %s, %d);\n", x.addr, site);
    else if (x.uniform)
        buf_printf(e->out, "ld_one(W, mm, %d, fr + %d, %s);\n", site, from, x.addr);
    else
        buf_printf(e->out, "R->ld(W, mm, %d);\n", site);
}

static void emit_st(struct emit *e, const struct insn *in)
{
    struct access x;
    if (!access_of(e, in, &in->args[0], &in->args[1], true, &x))
        return;
    bool wide = x.esize == 8;
    x.flags = (x.flags & ~(unsigned)SW_WIDE) | (wide ? SW_WIDE : 0u);
    int to = x.uniform ? spread_later(e, in, &x.a32) : 0, from = 0;
    for (int i = 0; i < x.n; i++)
        site_reg(e, from = lanes_at(e, in, &x.regs[i], wide));
    if (x.uniform)
        e->addr_at = to;
    int64_t stride = e->stride;
    int site = emit_site(e, in, x.space, x.esize, x.n, x.flags | (x.a32 ? SW_A32 : 0u), x.off, 0);
    bool row = x.affine && row_of_words(&x, stride);
    if (row && once(e))
        buf_printf(e->out, "%s;\n", row_call(e, &x, "store", site, from));
    else if (row)
        buf_printf(e->out,
                   "u8 *q = %s; if (UNLIKELY(!q)) R->sta(W, mm, %s, %d); "
                   "else row_copy(q, fr + %d);\n",
                   row_text(e, &x, false, site), x.addr, site, from);
    else if (x.affine)
        buf_printf(e->out, "R->sta(W, mm, %s, %d);\n", x.addr, site);
    else if (x.uniform)
        buf_printf(e->out, "st_one(W, mm, %d, fr + %d, %s);\n", site, to, x.addr);
    else
        buf_printf(e->out, "R->st(W, mm, %d);\n", site);
}

static void emit_atom(struct emit *e, const struct insn *in)
{
    bool red = in->op == OP_RED;
    int first = red ? 0 : 1;
    uint32_t kind = atom_kind(in);
    if (!kind || in->arg_count < first + 2) {
        emit_fail(e, in, "this device does not know the atomic");
        return;
    }
    struct access x;
    if (!access_of(e, in, &in->args[first], &in->args[first + 1], false, &x))
        return;
    bool wide = x.esize == 8;
    const struct opnd *old = NULL;
    if (!red && operand_list(&in->args[0], &old) != x.n) {
        emit_fail(e, in, "as many results as operands are expected");
        return;
    }
    if (x.uniform)
        spread_address(e, in, &x.addr, &x.a32);
    /* A lock orders memory; a sum does not. */
    e->strong |= x.space == PS_SHARED ? 0u
                 : atom_locks(kind)   ? SW_K_SPINS | SW_K_ORDERS
                                      : SW_K_SPINS;
    /* A vector is atomic element by element, as on the hardware. */
    for (int i = 0; i < x.n; i++) {
        const char *b = lanes_of(e, in, &x.regs[i], wide), *c = "0", *d = "0";
        if (in->arg_count > first + 2 && in->args[first + 2].kind != OPND_NONE)
            c = lanes_of(e, in, &in->args[first + 2], wide);
        if (old && old[i].kind == OPND_REG)
            d = arena_printf(e->a, "fr + %d", reg_slot(e, old[i].reg));
        int site =
            emit_site(e, in, x.space, x.esize, 1,
                      (x.a32 ? SW_A32 : 0u) | (wide ? SW_WIDE : 0u) | (x.flags & SW_RELEASE) |
                          (insn_has_mod(in, MOD_CTA) ? SW_OF_BLOCK : 0u),
                      x.off + i * (int64_t)x.esize, kind);
        buf_printf(e->out, "R->atom(W, mm, %s, %d, %s, %s, %s);\n", x.addr, site, d, b, c);
    }
}

static void emit_cp_async(struct emit *e, const struct insn *in)
{
    if (insn_has_mod(in, MOD_COMMIT_GROUP)) {
        buf_puts(e->out, "R->cp_commit(W);\n");
        return;
    }
    if (insn_has_any(in, MOD_WAIT_GROUP, MOD_WAIT_ALL)) {
        bool all = insn_has_mod(in, MOD_WAIT_ALL);
        int site = emit_site(e, in, PS_SHARED, 4, 1, 0, 0, all);
        buf_printf(e->out, "R->cp_wait(W, %u, %d);\n",
                   all || !in->arg_count ? 0u : (unsigned)in->args[0].bits, site);
        return;
    }
    enum ptx_space space = PS_SHARED;
    int64_t off;
    bool a32, uniform;
    if (insn_has_mod(in, MOD_MBARRIER)) {
        const char *addr = address_of(e, in, &in->args[0], &space, &off, &a32, &uniform);
        if (uniform)
            spread_address(e, in, &addr, &a32);
        int site =
            emit_site(e, in, space, 8, 1, a32 ? SW_A32 : 0u, off, insn_has_mod(in, MOD_NOINC));
        buf_printf(e->out, "R->cp_mbar(W, mm, %s, %d);\n", addr, site);
        return;
    }
    bool bulk = insn_has_mod(in, MOD_BULK);
    if (bulk || in->arg_count < 3 || in->args[2].kind != OPND_INT || !insn_has_mod(in, MOD_ASYNC)) {
        emit_fail(e, in, "this device does not know the copy");
        return;
    }
    unsigned size = (unsigned)in->args[2].bits;
    if (size != 4 && size != 8 && size != 16) {
        emit_fail(e, in, "cp.async copies 4, 8 or 16 bytes");
        return;
    }
    const char *dst = address_of(e, in, &in->args[0], &space, &off, &a32, &uniform);
    if (uniform)
        spread_address(e, in, &dst, &a32);
    enum ptx_space gspace = PS_GLOBAL;
    int64_t goff;
    bool g32, guniform;
    const char *src = address_of(e, in, &in->args[1], &gspace, &goff, &g32, &guniform);
    if (guniform)
        spread_address(e, in, &src, &g32);
    const char *bytes = "0";
    /* The fourth operand is a source size, or a predicate that ignores the source. */
    if (in->arg_count > 3 && in->args[3].kind == OPND_REG &&
        reg_class(e, in->args[3].reg) == CLASS_P) {
        int t = scratch_take(e, in);
        buf_printf(
            e->out,
            "{ u32 q = %s; for (int i = 0; i < 32; i++) ((u32 *)(fr + %d))[i] = q >> i & 1 ? "
            "0 : %u; }\n",
            pred_bits(e, in, &in->args[3]), t, size);
        bytes = arena_printf(e->a, "(fr + %d)", t);
    } else if (in->arg_count > 3) {
        bytes = lanes_of(e, in, &in->args[3], false);
    }
    int site = emit_site(e, in, space, size, 1, a32 ? SW_A32 : 0u, off, (unsigned)(uint32_t)goff);
    buf_printf(e->out, "R->cp_async(W, mm, %s, (const u64 *)%s, (const u32 *)%s, %d);\n", dst, src,
               bytes, site);
}

/* m8n16: rows of sixteen, spread to bytes; m16n16 and, stored, m16n8: bytes, transposed, maybe
 * spread first; else 8x8 of 16 bits. MATRIX_FORM: none of these. */
static unsigned matrix_kind(const struct insn *in)
{
    bool load = in->op == OP_LDMATRIX, turned = insn_has_mod(in, MOD_TRANS);
    unsigned packed = insn_has_mod(in, MOD_B4X16_P64)   ? MATRIX_B4
                      : insn_has_mod(in, MOD_B6X16_P32) ? MATRIX_B6
                                                        : MATRIX_PLAIN;
    bool spread = packed && load && insn_has_mod(in, MOD_B8X16);
    if (in->shape.m == 8 && in->shape.n == 8 && in->type == PT_B16 && !packed)
        return turned ? MATRIX_TRANS : MATRIX_PLAIN;
    if (in->shape.m == 8 && in->shape.n == 16 && spread && !turned)
        return packed;
    if (in->shape.m == 16 && in->shape.n == (load ? 16 : 8) && turned &&
        (spread || (!packed && in->type == PT_B8)))
        return MATRIX_BYTES | packed;
    return MATRIX_FORM;
}

static void emit_matrix(struct emit *e, const struct insn *in)
{
    bool load = in->op == OP_LDMATRIX;
    const struct opnd *regs;
    const struct opnd *addr_op = &in->args[load ? 1 : 0];
    int n = operand_list(&in->args[load ? 0 : 1], &regs);
    enum ptx_space space = PS_SHARED;
    int64_t off;
    bool a32, uniform;
    unsigned kind = matrix_kind(in);
    bool odd = load && kind & MATRIX_BYTES && n & 1; /* a matrix takes two registers */
    if (in->shape.k || kind == MATRIX_FORM || n > 4 || odd) {
        emit_fail(e, in, "this shape of matrix is not supported");
        return;
    }
    const char *addr = address_of(e, in, addr_op, &space, &off, &a32, &uniform);
    if (uniform)
        spread_address(e, in, &addr, &a32);
    for (int i = 0; i < n; i++)
        site_reg(e, !load                      ? lanes_at(e, in, &regs[i], false)
                    : regs[i].kind == OPND_REG ? reg_slot(e, regs[i].reg)
                                               : -1);
    int site = emit_site(e, in, space, 16, n, a32 ? SW_A32 : 0u, off, kind);
    buf_printf(e->out, "R->%s(W, mm, %d);\n", ptx_op_name(in->op), site);
}

static void emit_mbarrier(struct emit *e, const struct insn *in)
{
    int first = in->arg_count && in->args[0].kind != OPND_ADDR ? 1 : 0;
    uint32_t kind = mbar_kind(in);
    enum ptx_space space = PS_SHARED;
    int64_t off;
    bool a32, uniform;
    if (!kind || in->arg_count <= first) {
        emit_fail(e, in, "this device does not know the mbarrier operation");
        return;
    }
    const char *addr = address_of(e, in, &in->args[first], &space, &off, &a32, &uniform);
    if (uniform)
        spread_address(e, in, &addr, &a32);
    bool state_in = mbar_op_of(kind) == MBAR_TEST || mbar_op_of(kind) == MBAR_TRY;
    const char *count = "0", *state = "0";
    bool parity = insn_has_mod(in, MOD_PARITY);
    if (in->arg_count > first + 1) {
        if (state_in && !parity)
            state = lanes_of(e, in, &in->args[first + 1], true);
        else
            count = lanes_of(e, in, &in->args[first + 1], false);
    }
    const struct opnd *d = first ? &in->args[0] : NULL;
    if (!state_in && d && d->kind == OPND_REG)
        state = arena_printf(e->a, "(fr + %d)", reg_slot(e, d->reg));
    int site = emit_site(e, in, space, 8, 1, a32 ? SW_A32 : 0u, off, kind);
    buf_printf(e->out, "u32 pb = R->mbar(W, mm, %s, %d, (u64 *)%s, (const u32 *)%s); (void)pb;\n",
               addr, site, state, count);
    if (state_in && d && d->kind == OPND_REG)
        buf_printf(e->out, "p%d = (p%d & ~mm) | (pb & mm);\n", d->reg, d->reg);
}

bool emit_memory(struct emit *e, const struct insn *in)
{
    static const struct emit_row table[] = {
        {OP_LD, 2, emit_ld},
        {OP_LDU, 2, emit_ld},
        {OP_ST, 2, emit_st},
        {OP_ATOM, 3, emit_atom},
        {OP_RED, 2, emit_atom},
        {OP_CP, 0, emit_cp_async},
        {OP_LDMATRIX, 2, emit_matrix},
        {OP_STMATRIX, 2, emit_matrix},
        {OP_MBARRIER, 1, emit_mbarrier},
    };
    return emit_by_table(e, in, table, ARRAY_LEN(table));
}
