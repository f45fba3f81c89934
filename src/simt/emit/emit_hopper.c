/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit_hopper.c - sm_90's instructions as calls: clusters, mbarriers, bulk copies, wgmma. Addresses
 * are passed as 64-bit lanes with their offset added, so the device needs only one form.
 */
#include "simt/emit/emit.h"

#include "simt/hopper/hopper.h"
#include "simt/hopper/wgmma.h"
#include "simt/ptx/atomic_ops.h"
#include "simt/ptx/call_kinds.h"

#include <inttypes.h>
#include <string.h>

/* The address of every lane, u64[32], offset included. Shared ones stay 32 bits wide. */
static const char *address_lanes(struct emit *e, const struct insn *in, const struct opnd *o,
                                 enum ptx_space *space)
{
    int64_t off;
    bool a32, uniform;
    struct opnd plain = *o;
    plain.list = NULL;
    plain.count = 0;
    const char *addr = address_of(e, in, &plain, space, &off, &a32, &uniform);
    bool narrow = *space == PS_SHARED;
    int t = e->temp++;
    if (uniform)
        buf_printf(e->out, "u64 t%d[32] AL; fill64(t%d, %s(%s + %" PRId64 "ll));\n", t, t,
                   narrow ? "(u32)" : "", addr, off);
    else
        buf_printf(e->out,
                   "u64 t%d[32] AL; for (int i = 0; i < 32; i++) t%d[i] = %s(((const %s *)%s)[i] + "
                   "(u64)%" PRId64 "ll);\n",
                   t, t, narrow ? "(u32)" : "", a32 ? "u32" : "u64", addr, off);
    return arena_printf(e->a, "t%d", t);
}

static bool shared_cluster(const struct insn *in)
{
    return insn_has_mod(in, MOD_SHARED_CLUSTER);
}

static enum ptx_space shared_or_generic(const struct insn *in)
{
    return insn_shared(in) || shared_cluster(in) ? PS_SHARED : PS_GENERIC;
}

static int values(const struct opnd *o, const struct opnd **list)
{
    *list = o->kind == OPND_VEC ? o->list : o;
    return o->kind == OPND_VEC ? o->count : 1;
}

/* ---- shared::cluster ---- */

static void emit_cluster_ld(struct emit *e, const struct insn *in)
{
    enum ptx_space space = PS_SHARED;
    const struct opnd *regs;
    int n = values(&in->args[0], &regs);
    unsigned esize = ptx_type_bytes(in->type), flags = 0;
    if (n > 8 || !esize || esize > 8) {
        emit_fail(e, in, "this width of access is not supported");
        return;
    }
    if (in->type == PT_S8 || in->type == PT_S16)
        flags |= SW_SIGNED;
    /* Results are lanes even where the address is one: copied out below. */
    const char *addr = address_lanes(e, in, &in->args[1], &space), *list = "";
    bool wide = false;
    for (int i = 0; i < n; i++)
        wide |= regs[i].kind == OPND_REG && reg_class(e, regs[i].reg) == CLASS_Q;
    int first = e->temp;
    for (int i = 0; i < n; i++) {
        bool lanes = regs[i].kind == OPND_REG && e->ir->varying[regs[i].reg];
        if (lanes) {
            list = arena_printf(e->a, "%s%sfr + %d", list, i ? ", " : "", reg_slot(e, regs[i].reg));
            e->temp++;
            continue;
        }
        buf_printf(e->out, "u64 t%d[32] AL;\n", e->temp);
        list = arena_printf(e->a, "%s%st%d", list, i ? ", " : "", e->temp++);
    }
    int site = emit_site(e, in, PS_SHARED, esize, n, flags | (wide ? SW_WIDE : 0u), 0, 0);
    buf_printf(e->out, "R->cl_ld(W, mm, %s, %d, (void *[]){%s});\n", addr, site, list);
    for (int i = 0; i < n; i++)
        if (regs[i].kind == OPND_REG && !e->ir->varying[regs[i].reg])
            set_uniform(e, &regs[i],
                        arena_printf(e->a, "((const %s *)t%d)[first_lane(mm)]",
                                     wide ? "u64" : "u32", first + i));
}

static const char *value_list(struct emit *e, const struct insn *in, const struct opnd *o,
                              bool wide)
{
    const struct opnd *regs;
    int n = values(o, &regs);
    const char *list = "";
    for (int i = 0; i < n; i++)
        list = arena_printf(e->a, "%s%s(void *)%s", list, i ? ", " : "",
                            lanes_of(e, in, &regs[i], wide));
    return list;
}

/* The operation of red.async and cp.reduce.async. */
static uint32_t async_atom(const struct insn *in)
{
    struct insn like = *in;
    for (int i = 0; i < like.mod_count; i++)
        if (like.mods[i] == MOD_ASYNC)
            like.mods[i] = MOD_NONE;
    return atom_kind(&like);
}

static void emit_cluster_st(struct emit *e, const struct insn *in)
{
    enum ptx_space space = PS_SHARED;
    const struct opnd *regs;
    int n = values(&in->args[1], &regs);
    unsigned esize = ptx_type_bytes(in->type);
    bool async = insn_has_mod(in, MOD_ASYNC);
    if (n > 4 || !esize || esize > 8 || in->arg_count < (async ? 3 : 2) || (async && esize < 4)) {
        emit_fail(e, in, "this width of access is not supported");
        return;
    }
    const char *addr = address_lanes(e, in, &in->args[0], &space);
    const char *list = value_list(e, in, &in->args[1], esize == 8);
    const char *bar = async ? address_lanes(e, in, &in->args[2], &space) : NULL;
    unsigned kind = in->op == OP_RED ? async_atom(in) : 0;
    int site = emit_site(e, in, PS_SHARED, esize, n, 0, 0, kind);
    if (async)
        buf_printf(e->out, "R->st_async(W, mm, %s, %d, (void *[]){%s}, %s);\n", addr, site, list,
                   bar);
    else
        buf_printf(e->out, "R->cl_st(W, mm, %s, %d, (void *[]){%s});\n", addr, site, list);
}

static void emit_cluster_atom(struct emit *e, const struct insn *in)
{
    bool red = in->op == OP_RED;
    int first = red ? 0 : 1;
    enum ptx_space space = PS_SHARED;
    uint32_t kind = atom_kind(in);
    unsigned esize = ptx_type_bytes(in->type);
    if (!kind || in->arg_count < first + 2 || esize > 8) {
        emit_fail(e, in, "this device does not know the atomic");
        return;
    }
    bool wide = esize == 8;
    const char *addr = address_lanes(e, in, &in->args[first], &space);
    const char *b = lanes_of(e, in, &in->args[first + 1], wide), *c = "0", *d = "0";
    if (in->arg_count > first + 2)
        c = lanes_of(e, in, &in->args[first + 2], wide);
    if (!red && in->args[0].kind == OPND_REG)
        d = arena_printf(e->a, "fr + %d", reg_slot(e, in->args[0].reg));
    int site = emit_site(e, in, PS_SHARED, esize, 1, wide ? SW_WIDE : 0u, 0, kind);
    buf_printf(e->out, "R->cl_atom(W, mm, %s, %d, %s, %s, %s);\n", addr, site, d, b, c);
}

static void emit_cluster_bar(struct emit *e, const struct insn *in)
{
    int site = emit_site(e, in, PS_GENERIC, 4, 1, 0, 0, 0);
    buf_printf(e->out, "R->cl_bar(W, mm, %d, %d);\n", insn_has_mod(in, MOD_WAIT), site);
}

/* mapa, getctarank, cvta.shared::cluster, OP_EVENBLOCK: one address to another, lane by lane. */
static void emit_mapa(struct emit *e, const struct insn *in)
{
    bool shared = shared_cluster(in), rank = in->op == OP_GETCTARANK;
    unsigned kind = in->op == OP_CVTA
                        ? (insn_has_mod(in, MOD_TO) ? MAPA_TO_SHARED : MAPA_TO_GENERIC)
                    : in->op == OP_EVENBLOCK ? MAPA_EVEN
                    : rank                   ? (shared ? MAPA_RANK_SHARED : MAPA_RANK_GENERIC)
                                             : MAPA_PLACE;
    const struct opnd *d = &in->args[0];
    bool wide = d->kind == OPND_REG && reg_class(e, d->reg) == CLASS_Q;
    if (d->kind != OPND_REG || in->arg_count < 2) {
        emit_fail(e, in, "not a known form");
        return;
    }
    if (!e->ir->varying[d->reg]) {
        const char *a = scalar_value(e, in, &in->args[1], 'Q');
        const char *b = in->arg_count > 2 ? scalar_value(e, in, &in->args[2], 'I') : "0";
        if (in->op == OP_MAPA && shared)
            set_uniform(e, d, arena_printf(e->a, "((%s & 0xffffffu) | (%s + 1u) << 24)", a, b));
        else
            set_uniform(e, d, arena_printf(e->a, "R->mapa(W, %s, %s, %u)", a, b, kind));
        return;
    }
    const char *a = lanes_of(e, in, &in->args[1], true);
    const char *b = in->arg_count > 2 ? lanes_of(e, in, &in->args[2], false) : "0";
    const char *text =
        arena_printf(e->a, "R->mapa(W, ((const u64 *)%s)[i], %s, %u)", a,
                     in->arg_count > 2 ? arena_printf(e->a, "((const u32 *)%s)[i]", b) : "0", kind);
    if (in->op == OP_MAPA && shared)
        text = arena_printf(e->a,
                            "((((const u64 *)%s)[i] & 0xffffffu) | (((const u32 *)%s)[i] + 1u) << "
                            "24)",
                            a, b);
    buf_printf(e->out,
               "for (u32 x = mm; x; x &= x - 1) { u32 i = first_lane(x); ((%s *)(fr + %d))[i] = "
               "(%s)%s; }\n",
               wide ? "u64" : "u32", reg_slot(e, d->reg), wide ? "u64" : "u32", text);
}

/* ---- mbarrier ---- */

static void emit_mbarrier(struct emit *e, const struct insn *in)
{
    int first = in->arg_count && in->args[0].kind != OPND_ADDR ? 1 : 0;
    uint32_t kind = mbar_kind(in);
    enum ptx_space space = shared_or_generic(in);
    if (!kind || in->arg_count <= first) {
        emit_fail(e, in, "this device does not know the mbarrier operation");
        return;
    }
    const char *addr = "0", *count = "0", *state = "0";
    bool waits = mbar_op_of(kind) == MBAR_TEST || mbar_op_of(kind) == MBAR_TRY;
    bool parity = insn_has_mod(in, MOD_PARITY);
    const struct opnd *d = first ? &in->args[0] : NULL;
    if (mbar_op_of(kind) == MBAR_PENDING) { /* of a state, not of memory */
        const char *of = lanes_of(e, in, &in->args[first], true);
        if (d && d->kind == OPND_REG)
            buf_printf(e->out,
                       "for (u32 x = mm; x; x &= x - 1) { u32 i = first_lane(x); ((u32 *)(fr + "
                       "%d))[i] = (u32)(((const u64 *)%s)[i] & 0xfffffu); }\n",
                       reg_slot(e, d->reg), of);
        return;
    }
    addr = address_lanes(e, in, &in->args[first], &space);
    if (in->arg_count > first + 1) {
        if (waits && !parity)
            state = lanes_of(e, in, &in->args[first + 1], true);
        else
            count = lanes_of(e, in, &in->args[first + 1], false);
    }
    if (!waits && d && d->kind == OPND_REG)
        state = arena_printf(e->a, "(fr + %d)", reg_slot(e, d->reg));
    int site = emit_site(e, in, space, 8, 1, 0, 0, kind);
    buf_printf(e->out, "u32 pb = R->mbar(W, mm, %s, %d, (u64 *)%s, (const u32 *)%s); (void)pb;\n",
               addr, site, state, count);
    if (waits && d && d->kind == OPND_REG)
        buf_printf(e->out, "p%d = (p%d & ~mm) | (pb & mm);\n", d->reg, d->reg);
}

static void emit_cp_mbar(struct emit *e, const struct insn *in)
{
    enum ptx_space space = shared_or_generic(in);
    const char *addr = address_lanes(e, in, &in->args[0], &space);
    int site = emit_site(e, in, space, 8, 1, 0, 0, insn_has_mod(in, MOD_NOINC));
    buf_printf(e->out, "R->cp_mbar(W, mm, %s, %d);\n", addr, site);
}

/* ---- bulk copies ---- */

_Static_assert(MOD_5D == MOD_1D + 4, "ranks stand in a row");

static unsigned bulk_rank(const struct insn *in)
{
    for (unsigned i = 0; i < 5; i++)
        if (insn_has_mod(in, MOD_1D + i))
            return i + 1;
    return 0;
}

static unsigned bulk_kind(const struct insn *in)
{
    bool tensor = insn_has_mod(in, MOD_TENSOR), reduce = insn_has_mod(in, MOD_REDUCE);
    unsigned kind = bulk_rank(in) << BULK_RANK_SHIFT;
    if (insn_has_mod(in, MOD_PREFETCH))
        return kind | (tensor ? BULK_PREFETCH_TENSOR : BULK_PREFETCH);
    /* the destination is named first */
    int to_shared = -1;
    for (int i = 0; i < in->mod_count && to_shared < 0; i++)
        if (in->mods[i] == MOD_SHARED || in->mods[i] == MOD_SHARED_CTA ||
            in->mods[i] == MOD_SHARED_CLUSTER)
            to_shared = 1;
        else if (in->mods[i] == MOD_GLOBAL)
            to_shared = 0;
    bool global = insn_has_mod(in, MOD_GLOBAL);
    kind |= !to_shared ? (tensor ? BULK_TENSOR_OUT : BULK_OUT)
            : !global  ? BULK_ACROSS
            : tensor   ? BULK_TENSOR_IN
                       : BULK_IN;
    if (insn_has_mod(in, MOD_MULTICAST_CLUSTER))
        kind |= BULK_MULTICAST;
    if (insn_has_mod(in, MOD_CTA_GROUP_2))
        kind |= BULK_PAIR;
    if (insn_has_any(in, MOD_IM2COL, MOD_IM2COL_NO_OFFS))
        kind |= BULK_IM2COL;
    if (reduce) {
        struct insn like = *in;
        if (tensor)
            like.type = PT_F32; /* the map's own type counts */
        uint32_t atom = async_atom(&like);
        kind |= BULK_REDUCE | (unsigned)atom_op_of(atom) << BULK_OP_SHIFT |
                (tensor ? 0u : (unsigned)atom_type_of(atom) << BULK_TYPE_SHIFT);
    }
    return kind;
}

static void bulk_coords(struct emit *e, const struct insn *in, const struct opnd *map, int t)
{
    for (int i = 0; i < map->count && i < 5; i++)
        buf_printf(e->out, "b%d.coord[%d] = (const u32 *)%s;\n", t, i,
                   lanes_of(e, in, &map->list[i], false));
}

static void bulk_lanes(struct emit *e, const struct insn *in, int t, const char *member, int arg)
{
    buf_printf(e->out, "b%d.%s = (const u32 *)%s;\n", t, member,
               lanes_of(e, in, &in->args[arg], false));
}

static void bulk_address(struct emit *e, const struct insn *in, int t, const char *member, int arg,
                         enum ptx_space space)
{
    buf_printf(e->out, "b%d.%s = %s;\n", t, member, address_lanes(e, in, &in->args[arg], &space));
}

static void bulk_tensor_in(struct emit *e, const struct insn *in, int t, unsigned kind)
{
    int next = 3;
    bulk_address(e, in, t, "dst", 0, PS_SHARED);
    bulk_address(e, in, t, "map", 1, PS_GENERIC);
    bulk_coords(e, in, &in->args[1], t);
    bulk_address(e, in, t, "mbar", 2, PS_SHARED);
    if (insn_has_mod(in, MOD_IM2COL) && next < in->arg_count && in->args[next].kind == OPND_VEC) {
        for (int i = 0; i < in->args[next].count && i < 3; i++)
            buf_printf(e->out, "b%d.offset[%d] = (const u32 *)%s;\n", t, i,
                       lanes_of(e, in, &in->args[next].list[i], false));
        next++;
    }
    if (kind & BULK_MULTICAST && next < in->arg_count)
        bulk_lanes(e, in, t, "mask", next);
}

/* The operands, member by member, into the struct sw_bulk number t. */
static void bulk_operands(struct emit *e, const struct insn *in, int t, unsigned kind)
{
    switch (bulk_form_of(kind)) {
    case BULK_IN:
    case BULK_ACROSS:
        bulk_address(e, in, t, "dst", 0, PS_SHARED);
        bulk_address(e, in, t, "src", 1, bulk_form_of(kind) == BULK_IN ? PS_GENERIC : PS_SHARED);
        bulk_lanes(e, in, t, "size", 2);
        bulk_address(e, in, t, "mbar", 3, PS_SHARED);
        if (kind & BULK_MULTICAST && in->arg_count > 4)
            bulk_lanes(e, in, t, "mask", 4);
        break;
    case BULK_OUT:
        bulk_address(e, in, t, "dst", 0, PS_GENERIC);
        bulk_address(e, in, t, "src", 1, PS_SHARED);
        bulk_lanes(e, in, t, "size", 2);
        break;
    case BULK_TENSOR_IN:
        bulk_tensor_in(e, in, t, kind);
        break;
    case BULK_TENSOR_OUT:
        bulk_address(e, in, t, "map", 0, PS_GENERIC);
        bulk_coords(e, in, &in->args[0], t);
        bulk_address(e, in, t, "src", 1, PS_SHARED);
        break;
    default:
        bulk_address(e, in, t, "map", 0, PS_GENERIC);
        break;
    }
}

/* As many operands as the form has, a mask where one is asked for, a map of the right rank. */
static bool bulk_known(const struct insn *in, unsigned kind)
{
    enum bulk_form form = bulk_form_of(kind);
    bool tensor = form == BULK_TENSOR_IN || form == BULK_TENSOR_OUT || form == BULK_PREFETCH_TENSOR;
    int want = form == BULK_PREFETCH_TENSOR                 ? 1
               : form == BULK_TENSOR_OUT                    ? 2
               : form == BULK_TENSOR_IN || form == BULK_OUT ? 3
                                                            : 4;
    if (in->arg_count < want)
        return false;
    bool masked = !(kind & BULK_MULTICAST);
    for (int i = 3; i < in->arg_count; i++) /* a mask is a register or a number, not a list */
        masked |= i >= (tensor ? 3 : 4) && in->args[i].kind != OPND_VEC;
    const struct opnd *map = &in->args[form == BULK_TENSOR_IN];
    if (tensor && (!bulk_rank(in) || map->count != (int)bulk_rank(in)))
        return false;
    return masked && (!(kind & BULK_REDUCE) || bulk_op_of(kind));
}

static void emit_bulk(struct emit *e, const struct insn *in)
{
    if (insn_has_any(in, MOD_COMMIT_GROUP, MOD_WAIT_GROUP)) {
        bool wait = insn_has_mod(in, MOD_WAIT_GROUP);
        int site = emit_site(e, in, PS_SHARED, 16, 1, 0, 0, 0);
        buf_printf(e->out, "R->bulk_group(W, mm, %d, %u, %d);\n", wait,
                   wait && in->arg_count ? (unsigned)in->args[0].bits : 0u, site);
        return;
    }
    unsigned kind = bulk_kind(in);
    if (bulk_form_of(kind) == BULK_PREFETCH) {
        buf_puts(e->out, ";\n");
        return;
    }
    if (!bulk_known(in, kind)) {
        emit_fail(e, in, "not a known form of bulk copy");
        return;
    }
    int t = e->temp++;
    buf_printf(e->out, "struct sw_bulk b%d = {0};\n", t);
    bulk_operands(e, in, t, kind);
    int site = emit_site(e, in, PS_SHARED, 16, 1, 0, 0, kind);
    buf_printf(e->out, "R->bulk(W, mm, %d, &b%d);\n", site, t);
}

/* clusterlaunchcontrol.try_cancel: the answer comes as a copy of 16 bytes. */
static void emit_cancel(struct emit *e, const struct insn *in)
{
    unsigned kind =
        BULK_CANCEL | (insn_has_mod(in, MOD_MULTICAST_CLUSTER_ALL) ? (unsigned)BULK_MULTICAST : 0u);
    if (!insn_has_mod(in, MOD_TRY_CANCEL) || in->arg_count != 2) {
        emit_fail(e, in, "this device does not know the form of clusterlaunchcontrol");
        return;
    }
    int t = e->temp++;
    buf_printf(e->out, "struct sw_bulk b%d = {0};\n", t);
    bulk_address(e, in, t, "dst", 0, PS_SHARED);
    bulk_address(e, in, t, "mbar", 1, PS_SHARED);
    int site = emit_site(e, in, PS_SHARED, 16, 1, 0, 0, kind);
    buf_printf(e->out, "R->bulk(W, mm, %d, &b%d);\n", site, t);
}

/* ---- wgmma ---- */

static int wgmma_type(enum ptx_mod mod)
{
    static const enum ptx_mod names[WG_TYPES] = {MOD_F16,  MOD_BF16, MOD_TF32, MOD_E4M3,
                                                 MOD_E5M2, MOD_S8,   MOD_U8};
    for (int i = 0; i < WG_TYPES; i++)
        if (names[i] == mod)
            return i;
    return -1;
}

/* Shape and types; 0: not one this device knows. */
static unsigned wgmma_kind(const struct insn *in, unsigned *k)
{
    enum { ACC = 100 }; /* types of sums are numbered above those of factors */
    int types[3], found = 0;
    unsigned n = (unsigned)in->shape.n, want;
    *k = in->shape.m == 64 ? (unsigned)in->shape.k : 0;
    for (int i = 0; i < in->mod_count && *k && found < 3; i++) {
        enum ptx_mod mod = in->mods[i];
        int t = mod == MOD_F32   ? ACC + WG_ACC_F32
                : mod == MOD_S32 ? ACC + WG_ACC_S32
                                 : wgmma_type(mod);
        if (t >= 0)
            types[found++] = t;
    }
    if (found != 3 || n < 8 || n > 256 || n % 8)
        return 0;
    unsigned acc = types[0] == WG_F16 ? WG_ACC_F16 : (unsigned)(types[0] - ACC);
    unsigned a = (unsigned)types[1], b = (unsigned)types[2];
    want = a == WG_TF32 ? 8 : a == WG_F16 || a == WG_BF16 ? 16 : 32;
    if (acc > 2 || a >= WG_TYPES || b >= WG_TYPES || *k != want ||
        (acc == WG_ACC_S32) != (a >= WG_S8))
        return 0;
    return n / 8 | acc << WG_ACC | a << WG_A | b << WG_B |
           (insn_has_mod(in, MOD_SATFINITE) ? (unsigned)WG_SAT : 0u);
}

enum { WARP_ROWS = 16 }; /* of the 64 of a warp group */

uint32_t hopper_flops(const struct insn *in, unsigned *flops)
{
    unsigned k, kind;
    if (in->op != OP_WGMMA || !insn_has_mod(in, MOD_MMA_ASYNC))
        return 0;
    kind = wgmma_kind(in, &k);
    *flops = 2 * WARP_ROWS * wg_n(kind) * k;
    return kind;
}

static const char *first_value(struct emit *e, const struct insn *in, const struct opnd *o)
{
    if (operand_uniform(e, o))
        return scalar_value(e, in, o, 'Q');
    return arena_printf(e->a, "((const u64 *)%s)[first_lane(mm)]", lanes_of(e, in, o, true));
}

static void emit_wgmma(struct emit *e, const struct insn *in)
{
    if (!insn_has_mod(in, MOD_MMA_ASYNC)) {
        unsigned what = insn_has_mod(in, MOD_FENCE)          ? WG_FENCE
                        : insn_has_mod(in, MOD_COMMIT_GROUP) ? WG_COMMIT
                                                             : WG_WAIT;
        int site = emit_site(e, in, PS_SHARED, 16, 1, 0, 0, 0);
        buf_printf(e->out, "R->wg_sync(W, %u, %u, %d);\n", what,
                   in->arg_count ? (unsigned)in->args[0].bits : 0u, site);
        return;
    }
    unsigned k, kind = wgmma_kind(in, &k), n = wg_n(kind);
    bool regs = in->arg_count > 1 && in->args[1].kind == OPND_VEC;
    unsigned acc = wg_acc(kind), want = acc == WG_ACC_F16 ? n / 4 : n / 2;
    const struct opnd *d = &in->args[0];
    if (!kind || in->arg_count < 4 || d->kind != OPND_VEC || d->count != (int)want ||
        (regs && in->args[1].count != 4)) {
        emit_fail(e, in, "this device does not know the form of wgmma");
        return;
    }
    for (int i = 0; i < d->count; i++)
        if (d->list[i].kind != OPND_REG || reg_class(e, d->list[i].reg) == CLASS_Q ||
            reg_class(e, d->list[i].reg) == CLASS_P) {
            emit_fail(e, in, "an accumulator must be a register of 32 bits");
            return;
        }
    /* scale-d, scale-a, scale-b, then the majors of what is in shared memory */
    int at = 4;
    if (acc != WG_ACC_S32) {
        if (at < in->arg_count && (int64_t)in->args[at].bits < 0)
            kind |= WG_NEG_A;
        if (at + 1 < in->arg_count && (int64_t)in->args[at + 1].bits < 0)
            kind |= WG_NEG_B;
        at += 2;
    }
    if (!regs && at + 1 < in->arg_count && in->args[at++].bits)
        kind |= WG_TRANS_A;
    if (at < in->arg_count && in->args[at].bits)
        kind |= WG_TRANS_B;
    if (regs)
        kind |= WG_REGS_A;
    const char *list = "", *alist = "0", *adesc = "0";
    for (int i = 0; i < d->count; i++)
        list = arena_printf(e->a, "%s%sfr + %d", list, i ? ", " : "",
                            d->list[i].kind == OPND_REG ? reg_slot(e, d->list[i].reg) : 0);
    if (regs) {
        alist = "";
        for (int i = 0; i < 4; i++)
            alist = arena_printf(e->a, "%s%s%s", alist, i ? ", " : "",
                                 lanes_of(e, in, &in->args[1].list[i], false));
    } else {
        adesc = first_value(e, in, &in->args[1]);
    }
    const char *bdesc = first_value(e, in, &in->args[2]);
    const char *scale = in->args[3].kind == OPND_INT ? (in->args[3].bits ? "1u" : "0u")
                                                     : arena_printf(e->a, "((%s & mm) != 0)",
                                                                    pred_bits(e, in, &in->args[3]));
    int site = emit_site(e, in, PS_SHARED, 16, 1, in->unfenced ? SW_UNFENCED : 0u, 0, kind);
    buf_printf(e->out, "R->wgmma(W, mm, %d, (void *[]){%s}, (const void *[]){%s}, %s, %s, %s);\n",
               site, list, alist, adesc, bdesc, scale);
}

/* ---- small ones ---- */

static void emit_proxy(struct emit *e, const struct insn *in)
{
    int site = emit_site(e, in, PS_GENERIC, 4, 1, 0, 0, 0);
    bool async = insn_has_any(in, MOD_ASYNC, MOD_ASYNC_GENERIC);
    buf_printf(e->out, "R->proxy(W, %d, %d);\n", async, site);
}

/* wgmma_in_flight.c: the register may belong to a wgmma that is not over. */
static void emit_wgtouch(struct emit *e, const struct insn *in)
{
    int site = emit_site(e, in, PS_GENERIC, 4, 1, 0, 0, 0);
    if (e->ir->varying[in->args[0].reg])
        buf_printf(e->out, "R->wg_touch(W, mm, fr + %d, %d);\n", reg_slot(e, in->args[0].reg),
                   site);
}

static void emit_setmaxnreg(struct emit *e, const struct insn *in)
{
    uint64_t n = in->arg_count ? in->args[0].bits : 0;
    if (n < 24 || n > 256 || n % 8)
        emit_fail(e, in, "setmaxnreg takes 24 to 256 registers, a multiple of 8");
    else
        buf_puts(e->out, ";\n");
}

static void emit_policy(struct emit *e, const struct insn *in)
{
    set_uniform(e, &in->args[0], "1ull"); /* a hint: the device has no cache to hint at */
}

static bool any_address(const struct insn *in)
{
    (void)in;
    return true;
}

static bool is_bulk(const struct insn *in)
{
    return insn_has_mod(in, MOD_BULK);
}

static bool is_cp_mbar(const struct insn *in)
{
    return insn_has_mod(in, MOD_MBARRIER);
}

static bool is_cluster_bar(const struct insn *in)
{
    return insn_has_mod(in, MOD_CLUSTER);
}

static bool is_proxy(const struct insn *in)
{
    return insn_has_any(in, MOD_PROXY, MOD_MBARRIER_INIT);
}

static bool is_async(const struct insn *in)
{
    return insn_has_mod(in, MOD_ASYNC);
}

/* First match counts. */
static const struct hopper_row {
    enum ptx_op op;
    bool (*when)(const struct insn *);
    void (*write)(struct emit *, const struct insn *);
    int args;
} table[] = {
    {OP_TCGEN05, any_address, emit_tcgen05, 0},
    {OP_WGMMA, any_address, emit_wgmma, 0},
    {OP_CP, is_bulk, emit_bulk, 0},
    {OP_CLUSTERLAUNCHCONTROL, any_address, emit_cancel, 0},
    {OP_CP, is_cp_mbar, emit_cp_mbar, 1},
    {OP_MBARRIER, any_address, emit_mbarrier, 1},
    {OP_ST, is_async, emit_cluster_st, 3},
    {OP_RED, is_async, emit_cluster_st, 3},
    {OP_LD, shared_cluster, emit_cluster_ld, 2},
    {OP_ST, shared_cluster, emit_cluster_st, 2},
    {OP_ATOM, shared_cluster, emit_cluster_atom, 3},
    {OP_RED, shared_cluster, emit_cluster_atom, 2},
    {OP_BARRIER, is_cluster_bar, emit_cluster_bar, 0},
    {OP_MAPA, any_address, emit_mapa, 3},
    {OP_GETCTARANK, any_address, emit_mapa, 2},
    {OP_EVENBLOCK, any_address, emit_mapa, 3},
    {OP_CVTA, shared_cluster, emit_mapa, 2},
    {OP_FENCE, is_proxy, emit_proxy, 0},
    {OP_SETMAXNREG, any_address, emit_setmaxnreg, 1},
    {OP_WGTOUCH, any_address, emit_wgtouch, 1},
    {OP_CREATEPOLICY, any_address, emit_policy, 1},
};

static const struct hopper_row *row_of(const struct insn *in)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].op == in->op && table[i].when(in))
            return &table[i];
    return NULL;
}

bool emit_hopper(struct emit *e, const struct insn *in)
{
    const struct hopper_row *row = row_of(in);
    if (!row)
        return false;
    if (in->arg_count < row->args)
        emit_fail(e, in, "too few operands");
    else
        row->write(e, in);
    return true;
}
