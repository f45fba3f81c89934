/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_insn.c - the words of one instruction: reading them, and questions about them. */
#include "simt/ptx/ptx.h"

#include <string.h>

/* ---- reading ---- */

enum { MAX_SHAPE = 10000 }; /* enough for any, and far from overflow */

static bool read_number(const char **s, const char *end, int *out)
{
    const char *p = *s;
    *out = 0;
    while (p < end && *p >= '0' && *p <= '9' && *out < MAX_SHAPE && (*out || *p != '0'))
        *out = *out * 10 + (*p++ - '0');
    bool some = p > *s;
    *s = p;
    return some;
}

/* m16n8k16 or m8n8 */
static bool read_shape(const char *s, size_t len, struct ptx_shape *out)
{
    const char *end = s + len;
    struct ptx_shape x = {0};
    if (s == end || *s++ != 'm' || !read_number(&s, end, &x.m))
        return false;
    if (s == end || *s++ != 'n' || !read_number(&s, end, &x.n))
        return false;
    if (s < end && (*s++ != 'k' || !read_number(&s, end, &x.k)))
        return false;
    *out = x;
    return s == end;
}

static enum ptx_mod read_mod(const struct ptx_words *w, const char *s, size_t len, struct insn *in)
{
    enum ptx_mod mod = ptx_mod_find(w, s, len);
    if (mod == MOD_UNKNOWN && !in->shape.m && read_shape(s, len, &in->shape))
        return MOD_SHAPE;
    return mod;
}

void insn_types_set(struct insn *in)
{
    in->type = in->type2 = PT_NONE;
    for (int i = 0; i < in->mod_count; i++) {
        enum ptx_type t = ptx_mod_type(in->mods[i]);
        if (t == PT_NONE)
            continue;
        in->type2 = in->type;
        in->type = t;
    }
}

bool insn_words_read(const struct ptx_words *w, const char *s, size_t len, struct insn *in)
{
    const char *end = s + len;
    for (bool first = true; s < end; first = false) {
        const char *dot = memchr(s, '.', (size_t)(end - s));
        size_t n = (size_t)((dot ? dot : end) - s);
        if (first)
            in->op = ptx_op_find(w, s, n);
        else if (in->mod_count == MAX_MODS)
            return false;
        else
            in->mods[in->mod_count++] = (uint16_t)read_mod(w, s, n, in);
        s += n + 1;
    }
    insn_types_set(in);
    return true;
}

const char *insn_unknown_mod(const struct insn *in, const struct ptx_words *w, struct arena *a)
{
    size_t len = 0;
    while (len < (size_t)in->text_len && !strchr(" \t\r\n;", in->text[len]))
        len++;
    const char *end = in->text + len, *s = memchr(in->text, '.', len);
    struct ptx_shape shape;
    while (s && ++s < end) {
        const char *dot = memchr(s, '.', (size_t)(end - s));
        size_t n = (size_t)((dot ? dot : end) - s);
        if (ptx_mod_find(w, s, n) == MOD_UNKNOWN && !read_shape(s, n, &shape))
            return arena_strndup(a, s, n);
        s = dot;
    }
    return "";
}

/* ---- questions ---- */

bool insn_has_mod(const struct insn *in, enum ptx_mod mod)
{
    for (int i = 0; i < in->mod_count; i++)
        if (in->mods[i] == mod)
            return true;
    return false;
}

bool insn_has_list(const struct insn *in, const uint16_t *mods)
{
    for (; *mods; mods++)
        if (insn_has_mod(in, *mods))
            return true;
    return false;
}

bool insn_is(const struct insn *in, enum ptx_trait trait)
{
    return ptx_op_is(in->op, trait);
}

bool insn_shared(const struct insn *in)
{
    return insn_has_any(in, MOD_SHARED, MOD_SHARED_CTA);
}

enum ptx_space insn_space(const struct insn *in)
{
    static const struct {
        enum ptx_mod mod;
        enum ptx_space space;
    } spaces[] = {{MOD_GLOBAL, PS_GLOBAL},    {MOD_SHARED, PS_SHARED}, {MOD_SHARED_CTA, PS_SHARED},
                  {MOD_CONST, PS_CONST},      {MOD_LOCAL, PS_LOCAL},   {MOD_PARAM, PS_PARAM},
                  {MOD_PARAM_ENTRY, PS_PARAM}};
    for (size_t i = 0; i < ARRAY_LEN(spaces); i++)
        if (insn_has_mod(in, spaces[i].mod))
            return spaces[i].space;
    return PS_GENERIC;
}

bool insn_is_call(const struct insn *in)
{
    bool cluster = insn_has_mod(in, MOD_SHARED_CLUSTER);
    if (in->op == OP_CVTA)
        return cluster;
    /* A kernel's own parameter is a load in place. */
    if (in->op == OP_LD && insn_has_mod(in, MOD_PARAM) && in->arg_count == 2 &&
        in->args[1].kind == OPND_ADDR && in->args[1].reg < 0)
        return cluster;
    return insn_is(in, TRAIT_DEVICE_CALL);
}

int insn_members(const struct insn *in)
{
    bool sync = insn_has_mod(in, MOD_SYNC);
    int at = in->op == OP_SHFL && sync                                                  ? 4
             : in->op == OP_VOTE && sync                                                ? 2
             : in->op == OP_MATCH || in->op == OP_REDUX                                 ? 2
             : in->op == OP_ELECT                                                       ? 1
             : (in->op == OP_BAR || in->op == OP_BARRIER) && insn_has_mod(in, MOD_WARP) ? 0
                                                                                        : -1;
    return at < in->arg_count ? at : -1;
}

bool insn_writes_nothing(const struct insn *in)
{
    switch (in->op) {
    case OP_BAR:
    case OP_BARRIER:
        return !insn_has_mod(in, MOD_RED);
    case OP_WMMA:
        return insn_has_mod(in, MOD_STORE);
    case OP_WGMMA:
        return !insn_has_mod(in, MOD_MMA_ASYNC);
    case OP_TCGEN05:
        return !insn_has_mod(in, MOD_LD);
    case OP_MBARRIER:
        return insn_has_any(in, MOD_INIT, MOD_INVAL) || in->arg_count < 1 ||
               in->args[0].kind == OPND_ADDR;
    default:
        return insn_is(in, TRAIT_NO_RESULT);
    }
}

static void add_reg(int reg, int *out, int *n)
{
    if (reg < 0)
        return;
    if (out)
        out[*n] = reg;
    (*n)++;
}

void operand_regs(const struct opnd *o, int *out, int *n)
{
    if (o->kind == OPND_REG || o->kind == OPND_ADDR)
        add_reg(o->reg, out, n);
    if (o->kind == OPND_REG || o->kind == OPND_SINK)
        add_reg(o->reg2, out, n);
    for (int i = 0; (o->kind == OPND_VEC || o->kind == OPND_ADDR) && i < o->count; i++)
        operand_regs(&o->list[i], out, n);
}

void insn_mods_text(const struct insn *in, struct buf *out)
{
    for (int i = 0; i < in->mod_count; i++) {
        if (in->mods[i] != MOD_SHAPE)
            buf_printf(out, ".%s", ptx_mod_name(in->mods[i]));
        else if (in->shape.k)
            buf_printf(out, ".m%dn%dk%d", in->shape.m, in->shape.n, in->shape.k);
        else
            buf_printf(out, ".m%dn%d", in->shape.m, in->shape.n);
    }
}
