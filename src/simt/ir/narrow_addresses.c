/* SPDX-License-Identifier: Apache-2.0 */
/*
 * narrow_addresses.c - what only serves to find a place in shared memory is computed in 32 bits.
 *
 * Hides: whose upper half is never used. A 64-bit register is narrow when every instruction that
 * writes it can give the lower half from lower halves, and every one that reads it is an access
 * to shared memory or writes a narrow register. Where a narrow one is computed from another, its
 * lower half is taken first.
 */
#include "simt/ir/narrow_addresses.h"

#include "simt/ir/ir.h"

#include <string.h>

static enum ptx_type half_type(enum ptx_type t)
{
    return t == PT_B64 ? PT_B32 : t == PT_U64 ? PT_U32 : t == PT_S64 ? PT_S32 : t;
}

static bool is_wide(enum ptx_type t)
{
    return half_type(t) != t;
}

static bool reads_shared(const struct insn *in)
{
    return insn_is(in, TRAIT_ACCESS) && insn_shared(in);
}

/* Modifiers that are types, or the one that is named. */
static bool only(const struct insn *in, enum ptx_mod mod)
{
    for (int i = 0; i < in->mod_count; i++)
        if (ptx_mod_type(in->mods[i]) == PT_NONE && in->mods[i] != mod)
            return false;
    return true;
}

/* An operand that has a lower half. */
static bool has_half(const struct opnd *o)
{
    return o->kind == OPND_REG || o->kind == OPND_INT ||
           (o->kind == OPND_SYM && o->var && o->var->space == PS_SHARED);
}

static bool widens(const struct insn *in)
{
    if (in->op == OP_CVT)
        return is_wide(in->type2) && only(in, MOD_NONE) && in->type >= PT_B8 &&
               in->type != PT_F16 && in->type != PT_BF16 && in->type <= PT_S32;
    return (in->op == OP_MUL || in->op == OP_MAD) && insn_has_mod(in, MOD_WIDE) &&
           (in->type == PT_S32 || in->type == PT_U32) && only(in, MOD_WIDE);
}

/* The lower half of its result depends on lower halves alone. */
static bool keeps_halves(const struct insn *in)
{
    if (!is_wide(in->type))
        return false;
    switch (in->op) {
    case OP_ADD:
    case OP_SUB:
    case OP_AND:
    case OP_OR:
    case OP_XOR:
    case OP_NOT:
    case OP_MOV:
    case OP_SHL:
    case OP_SELP:
        return only(in, MOD_NONE);
    case OP_MUL:
    case OP_MAD:
        return insn_has_mod(in, MOD_LO) && only(in, MOD_LO);
    default:
        return false;
    }
}

static bool may_narrow(const struct ptx_kernel *k, const struct insn *in)
{
    if (in->arg_count < 2 || in->args[0].kind != OPND_REG || in->args[0].reg2 >= 0)
        return false;
    for (int i = 0; i < in->arg_count; i++) {
        const struct opnd *o = &in->args[i];
        if (!has_half(o) || (o->kind == OPND_REG && k->reg_type[o->reg] == PT_F64))
            return false;
    }
    return widens(in) || keeps_halves(in);
}

/* Drops what this instruction wants more of than the lower half; true when something was. */
static bool drop(const struct ptx_kernel *k, const struct insn *in, bool *narrow)
{
    int regs[2 * MAX_INSN_REGS], n = 0;
    bool dropped = false, may = may_narrow(k, in);
    if (may && narrow[in->args[0].reg])
        return false;
    if (!may)
        n = insn_defs(in, regs);
    n += insn_uses(in, regs + n);
    bool shared = reads_shared(in);
    for (int i = 0; i < n; i++) {
        bool place = false, other = false;
        for (int j = 0; j < in->arg_count; j++) {
            const struct opnd *o = &in->args[j];
            place |= shared && o->kind == OPND_ADDR && o->reg == regs[i];
            other |= o->kind == OPND_REG && o->reg == regs[i];
            for (int v = 0; o->kind == OPND_VEC && v < o->count; v++)
                other |= o->list[v].kind == OPND_REG && o->list[v].reg == regs[i];
        }
        if ((!place || other) && narrow[regs[i]]) {
            narrow[regs[i]] = false;
            dropped = true;
        }
    }
    return dropped;
}

/* ---- writing it down ---- */

struct rewrite {
    struct ptx_kernel *k;
    struct arena *a;
    const bool *narrow; /* of the registers there were */
    int regs;
    struct insn *out;
    int count, cap;
    int *half, *since; /* per register: its lower half, and the stretch of code that knows it */
    int stretch;
};

static struct insn *add_insn(struct rewrite *r, const struct insn *in)
{
    GROW(r->a, r->out, r->count, r->cap);
    r->out[r->count] = *in;
    return &r->out[r->count++];
}

static int new_reg(struct ptx_kernel *k, struct arena *a)
{
    if (k->reg_count >= k->reg_cap) {
        int cap = k->reg_cap;
        GROW(a, k->reg_type, k->reg_count, cap);
        GROW(a, k->reg_name, k->reg_count, k->reg_cap);
    }
    k->reg_type[k->reg_count] = PT_U32;
    k->reg_name[k->reg_count] = "half";
    return k->reg_count++;
}

/* cvt.u32.u64 in front of the instruction, unless there is one. */
static int lower_half(struct rewrite *r, const struct insn *before, int reg)
{
    if (r->since[reg] == r->stretch)
        return r->half[reg];
    struct insn *in = add_insn(r, before);
    in->op = OP_CVT;
    in->mods[0] = MOD_U32;
    in->mods[1] = MOD_U64;
    in->mod_count = 2;
    in->type = PT_U64;
    in->type2 = PT_U32;
    in->pred = -1;
    in->args = arena_array(r->a, 2, sizeof *in->args);
    in->arg_count = 2;
    in->args[0] = (struct opnd){.kind = OPND_REG, .reg = new_reg(r->k, r->a), .reg2 = -1};
    in->args[1] = (struct opnd){.kind = OPND_REG, .reg = reg, .reg2 = -1};
    r->since[reg] = r->stretch;
    return r->half[reg] = in->args[0].reg;
}

static void narrow_operand(struct rewrite *r, const struct insn *in, struct opnd *o)
{
    bool has_reg = o->kind == OPND_REG || (o->kind == OPND_ADDR && o->reg >= 0);
    if (has_reg && o->reg < r->regs && is_wide(r->k->reg_type[o->reg]) && !r->narrow[o->reg])
        o->reg = lower_half(r, in, o->reg);
    if (o->kind == OPND_INT && (int64_t)o->bits != (int32_t)o->bits)
        o->bits = (uint32_t)o->bits;
}

static void retype(struct insn *in)
{
    bool as_it_is = in->op == OP_CVT && ptx_type_bytes(in->type) == 4;
    if (as_it_is) {
        in->op = OP_MOV;
        in->mods[0] = MOD_B32;
        in->mod_count = 1;
        in->type = PT_B32;
        in->type2 = PT_NONE;
        return;
    }
    for (int i = 0; i < in->mod_count; i++) {
        enum ptx_type t = ptx_mod_type(in->mods[i]);
        if (in->mods[i] == MOD_WIDE)
            in->mods[i] = MOD_LO;
        else if (is_wide(t))
            in->mods[i] = (uint16_t)half_type(t);
    }
    in->type = half_type(in->type);
    in->type2 = half_type(in->type2);
}

static void rewrite_insn(struct rewrite *r, const struct insn *old)
{
    struct insn in = *old;
    int defs[MAX_INSN_REGS];
    bool narrows = may_narrow(r->k, &in) && r->narrow[in.args[0].reg];
    for (int i = 0; i < in.arg_count; i++)
        if (narrows ? i > 0 : reads_shared(&in) && in.args[i].kind == OPND_ADDR)
            narrow_operand(r, old, &in.args[i]);
    if (narrows)
        retype(&in);
    add_insn(r, &in);
    int n = insn_defs(&in, defs);
    for (int i = 0; i < n; i++)
        if (defs[i] < r->regs)
            r->since[defs[i]] = 0;
}

static void rewrite(struct rewrite *r)
{
    struct ptx_kernel *k = r->k;
    int n = k->insn_count;
    bool *target = arena_array(r->a, (size_t)n + 1, sizeof *target);
    int *moved = arena_array(r->a, (size_t)n + 1, sizeof *moved);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < k->insn[i].arg_count; j++)
            if (k->insn[i].args[j].kind == OPND_LABEL)
                target[k->insn[i].args[j].target] = true;
    for (int i = 0; i < n; i++) {
        r->stretch += i == 0 || target[i] || k->insn[i - 1].op == OP_BRA;
        moved[i] = r->count;
        rewrite_insn(r, &k->insn[i]);
    }
    moved[n] = r->count;
    for (int i = 0; i < r->count; i++)
        for (int j = 0; j < r->out[i].arg_count; j++)
            if (r->out[i].args[j].kind == OPND_LABEL)
                r->out[i].args[j].target = moved[r->out[i].args[j].target];
    for (int i = 0; i < r->regs; i++)
        if (r->narrow[i])
            k->reg_type[i] = half_type(k->reg_type[i]);
    k->insn = r->out;
    k->insn_count = r->count;
    k->insn_cap = r->cap;
}

static bool asks(const struct ptx_kernel *k)
{
    for (int i = 0; i < k->insn_count; i++)
        for (int j = 0; reads_shared(&k->insn[i]) && j < k->insn[i].arg_count; j++) {
            const struct opnd *o = &k->insn[i].args[j];
            if (o->kind == OPND_ADDR && o->reg >= 0 && is_wide(k->reg_type[o->reg]))
                return true;
        }
    return false;
}

void narrow_shared(struct ptx_kernel *k)
{
    struct arena *a = k->m->a;
    size_t n = (size_t)k->reg_count + 1;
    if (!asks(k))
        return;
    bool *narrow = arena_array(a, n, sizeof *narrow);
    for (int i = 0; i < k->reg_count; i++)
        narrow[i] = is_wide(k->reg_type[i]);
    for (bool again = true; again;) {
        again = false;
        for (int i = k->insn_count - 1; i >= 0; i--)
            again |= drop(k, &k->insn[i], narrow);
    }
    struct rewrite r = {.k = k,
                        .a = a,
                        .narrow = narrow,
                        .regs = k->reg_count,
                        .half = arena_array(a, n, sizeof(int)),
                        .since = arena_array(a, n, sizeof(int))};
    rewrite(&r);
}
