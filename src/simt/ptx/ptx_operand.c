/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_operand.c - names of a kernel's body and the operands that hold them.
 *
 * Hides: scopes, register families (%r<97>), and how an operand may be written. A name is looked
 * up from its scope outward to its function's own scope, never into the caller's.
 */
#include "simt/ptx/ptx_body.h"

#include <string.h>

int ptx_scope_push(struct ptx_reader *r, int parent)
{
    GROW(r->a, r->scope, r->scope_count, r->scope_cap);
    r->scope[r->scope_count] = (struct ptx_scope){
        .parent = parent, .names = strmap_init(r->a), .labels = strmap_init(r->a)};
    return r->scope_count++;
}

struct name *ptx_name_add(struct ptx_reader *r, const char *s, size_t len, struct name n)
{
    GROW(r->a, r->name, r->name_count, r->name_cap);
    r->name[r->name_count] = n;
    strmap_put(&r->scope[r->at].names, s, len, r->name_count);
    return &r->name[r->name_count++];
}

int ptx_reg_new(struct ptx_reader *r, const char *name, enum ptx_type type)
{
    struct ptx_kernel *k = r->k;
    if (type == PT_B128) { /* two in a row: ptx_b128.c */
        int low = ptx_reg_new(r, name, PT_B64);
        ptx_reg_new(r, name, PT_B64);
        return low;
    }
    if (k->reg_count >= k->reg_cap) {
        int cap = k->reg_cap;
        GROW(r->a, k->reg_type, k->reg_count, cap);
        GROW(r->a, k->reg_name, k->reg_count, k->reg_cap);
    }
    k->reg_type[k->reg_count] = type;
    k->reg_name[k->reg_count] = name;
    return k->reg_count++;
}

/* The digits at the end of %r12, or len when there are none. */
static size_t stem_length(const char *s, size_t len)
{
    size_t n = len;
    while (n && s[n - 1] >= '0' && s[n - 1] <= '9')
        n--;
    return n;
}

struct name *ptx_name_find(struct ptx_reader *r, const char *s, size_t len)
{
    size_t stem = stem_length(s, len);
    for (int sc = r->at; sc >= 0; sc = r->scope[sc].parent) {
        int i = strmap_get(&r->scope[sc].names, s, len);
        if (i >= 0 && r->name[i].kind != NAME_FAMILY)
            return &r->name[i];
        if (stem == len || len - stem > 9)
            continue;
        i = strmap_get(&r->scope[sc].names, s, stem);
        if (i < 0 || r->name[i].kind != NAME_FAMILY)
            continue;
        uint64_t number = 0;
        for (size_t d = stem; d < len; d++)
            number = number * 10 + (uint64_t)(s[d] - '0');
        if (number >= r->name[i].family.count)
            continue;
        struct name n = {.kind = NAME_REG};
        n.reg = ptx_reg_new(r, arena_strndup(r->a, s, len), r->name[i].family.type);
        int keep = r->at;
        r->at = sc;
        struct name *made = ptx_name_add(r, arena_strndup(r->a, s, len), len, n);
        r->at = keep;
        return made;
    }
    return NULL;
}

/* ---- operands ---- */

bool ptx_offset_read(struct ptx_reader *r, int64_t *off, struct error *err)
{
    for (;;) {
        struct ptx_token t = lex_peek(&r->lx);
        if (!token_mark(t, '+') && !token_mark(t, '-'))
            return true;
        bool minus = token_mark(lex_next(&r->lx), '-');
        if (token_mark(lex_peek(&r->lx), '-')) {
            lex_next(&r->lx);
            minus = !minus;
        }
        uint64_t bits;
        t = lex_next(&r->lx);
        if (token_number(t, &bits) != NUMBER_INT)
            return ptx_syntax(t, "an offset", err);
        *off = (int64_t)((uint64_t)*off + (minus ? 0 - bits : bits));
    }
}

static const struct ptx_var *global_var(struct ptx_reader *r, const char *s, size_t len)
{
    int i = strmap_get(&r->m->vars, s, len);
    return i >= 0 ? r->m->var[i] : NULL;
}

static bool read_word(struct ptx_reader *r, struct ptx_token t, struct opnd *o, struct error *err)
{
    struct name *n = ptx_name_find(r, t.s, t.len);
    o->name = arena_strndup(r->a, t.s, t.len);
    if (n && n->kind == NAME_REG) {
        o->kind = OPND_REG;
        o->reg = n->reg;
        return true;
    }
    if (n && n->kind == NAME_VECTOR) {
        o->kind = OPND_VEC;
        o->count = n->width;
        o->list = arena_array(r->a, (size_t)n->width, sizeof *o->list);
        for (int i = 0; i < n->width; i++)
            o->list[i] =
                (struct opnd){.kind = OPND_REG, .reg = n->reg + i, .reg2 = -1, .target = -1};
        return true;
    }
    if (t.len == 1 && t.s[0] == '_') {
        o->kind = OPND_SINK;
        return true;
    }
    if (t.s[0] == '%' || token_is(t, "WARP_SZ")) {
        o->kind = OPND_SREG;
        o->sreg = ptx_sreg_find(&r->m->words, t.s, t.len);
        return true;
    }
    o->kind = OPND_SYM;
    o->var = n && n->kind == NAME_VAR ? n->var : global_var(r, t.s, t.len);
    return ptx_offset_read(r, &o->off, err);
}

static bool read_number(struct ptx_token t, bool minus, struct opnd *o, struct error *err)
{
    switch (token_number(t, &o->bits)) {
    case NUMBER_INT:
        o->kind = OPND_INT;
        if (minus)
            o->bits = 0 - o->bits;
        return true;
    case NUMBER_F32:
        o->kind = OPND_F32;
        if (minus)
            o->bits ^= 0x80000000u;
        return true;
    case NUMBER_F64:
        o->kind = OPND_F64;
        if (minus)
            o->bits ^= UINT64_C(1) << 63;
        return true;
    case NUMBER_BAD:
        break;
    }
    return ptx_syntax(t, "a number", err);
}

static bool read_list(struct ptx_reader *r, struct opnd *o, char close, int depth,
                      struct error *err)
{
    struct opnd list[MAX_OPERANDS];
    o->kind = OPND_VEC;
    if (token_mark(lex_peek(&r->lx), close)) {
        lex_next(&r->lx);
        return true;
    }
    for (;;) {
        if (o->count == MAX_OPERANDS)
            return ptx_syntax(lex_peek(&r->lx), "fewer operands", err);
        if (!ptx_operand_read(r, &list[o->count++], depth + 1, err))
            return false;
        struct ptx_token t = lex_next(&r->lx);
        if (token_mark(t, close))
            break;
        if (!token_mark(t, ','))
            return ptx_syntax(t, "','", err);
    }
    o->list = arena_array(r->a, (size_t)o->count, sizeof *o->list);
    memcpy(o->list, list, (size_t)o->count * sizeof *list);
    return true;
}

static bool read_address(struct ptx_reader *r, struct opnd *o, struct error *err)
{
    struct ptx_token t = lex_next(&r->lx);
    o->kind = OPND_ADDR;
    if (t.kind == TOKEN_NUMBER) {
        uint64_t bits;
        if (token_number(t, &bits) != NUMBER_INT)
            return ptx_syntax(t, "an address", err);
        o->off = (int64_t)bits;
    } else if (t.kind == TOKEN_WORD) {
        struct name *n = ptx_name_find(r, t.s, t.len);
        o->name = arena_strndup(r->a, t.s, t.len);
        if (n && n->kind == NAME_REG)
            o->reg = n->reg;
        else
            o->var = n && n->kind == NAME_VAR ? n->var : global_var(r, t.s, t.len);
    } else {
        return ptx_syntax(t, "an address", err);
    }
    if (!ptx_offset_read(r, &o->off, err))
        return false;
    /* [map, {x, y}] and, im2col, {offsets}: what follows is kept in the list */
    if (token_mark(lex_peek(&r->lx), ',')) {
        struct opnd inner;
        lex_next(&r->lx);
        if (!ptx_operand_read(r, &inner, 2, err))
            return false;
        if (inner.kind != OPND_VEC)
            return ptx_syntax(t, "coordinates in braces", err);
        o->list = inner.list;
        o->count = inner.count;
    }
    return ptx_expect(&r->lx, ']', err);
}

bool ptx_operand_read(struct ptx_reader *r, struct opnd *o, int depth, struct error *err)
{
    *o = (struct opnd){.reg = -1, .reg2 = -1, .target = -1};
    struct ptx_token t = lex_next(&r->lx);
    if (depth > 3)
        return ptx_syntax(t, "a simpler operand", err);
    if (token_mark(t, '{'))
        return read_list(r, o, '}', depth, err);
    if (token_mark(t, '('))
        return read_list(r, o, ')', depth, err);
    if (token_mark(t, '['))
        return read_address(r, o, err);
    if (token_mark(t, '-'))
        return read_number(lex_next(&r->lx), true, o, err);
    if (t.kind == TOKEN_NUMBER)
        return read_number(t, false, o, err);
    if (token_mark(t, '!')) {
        o->not = true;
        t = lex_next(&r->lx);
    }
    if (t.kind == TOKEN_STRING) {
        o->kind = OPND_SYM;
        o->name = arena_strndup(r->a, t.s, t.len);
        return true;
    }
    if (t.kind != TOKEN_WORD)
        return ptx_syntax(t, "an operand", err);
    bool not = o->not ;
    if (!read_word(r, t, o, err))
        return false;
    o->not = not ;
    if (token_mark(lex_peek(&r->lx), '|')) {
        struct opnd q;
        lex_next(&r->lx);
        if (!ptx_operand_read(r, &q, depth + 1, err))
            return false;
        if (q.kind != OPND_REG && q.kind != OPND_SINK)
            return ptx_syntax(t, "a predicate pair", err);
        o->reg2 = q.reg;
    }
    return true;
}
