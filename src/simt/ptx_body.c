/*
 * ptx_body.c - read the body of a kernel, with the bodies it calls in place.
 *
 * Hides: scopes of names, register families (%r<97>), the parameter dance of
 * calls. A call reads the callee's text again under fresh names: no calling
 * convention, no frames; recursion is refused. A .param variable of a call is
 * a set of registers, one per offset and size stored to it.
 *
 * Invariants
 * 1. Every label is resolved before ptx_kernel_read returns true.
 * 2. A name is looked up from its scope outward to its function's own scope,
 *    never into the caller's.
 */
#include "simt/ptx_parse.h"

#include <string.h>

enum { MAX_CALL_DEPTH = 24, MAX_INSNS = 2000000, MAX_OPERANDS = 160 };

struct family {
    enum ptx_type type;
    uint64_t count;
};

/* A .param variable of a call: its pieces are registers. */
struct piece_set {
    struct piece {
        int64_t off;
        unsigned bytes;
        int reg;
    } * piece;
    int count, cap;
};

enum name_kind { NAME_REG, NAME_FAMILY, NAME_VAR, NAME_PIECES };

struct name {
    enum name_kind kind;
    int reg;
    struct family family;
    struct ptx_var *var;
    struct piece_set *pieces;
};

struct scope {
    int parent;           /* -1: a function's own */
    struct strmap names;  /* -> reader.name index */
    struct strmap labels; /* -> insn index */
};

struct fixup {
    int insn, scope;
};

struct reader {
    struct ptx_module *m;
    struct ptx_kernel *k;
    struct arena *a;
    struct lexer lx;
    struct scope *scope;
    int scope_count, scope_cap, at;
    struct name *name;
    int name_count, name_cap;
    struct fixup *fix;
    int fix_count, fix_cap;
    struct strmap locs;
    int loc;
    const struct ptx_function *calls[MAX_CALL_DEPTH];
    int depth;
};

static bool read_body(struct reader *r, const struct ptx_function *f, struct error *err);

static int scope_push(struct reader *r, int parent)
{
    GROW(r->a, r->scope, r->scope_count, r->scope_cap);
    r->scope[r->scope_count] =
        (struct scope){.parent = parent, .names = strmap_init(r->a), .labels = strmap_init(r->a)};
    return r->scope_count++;
}

static struct name *name_add(struct reader *r, const char *s, size_t len, struct name n)
{
    GROW(r->a, r->name, r->name_count, r->name_cap);
    r->name[r->name_count] = n;
    strmap_put(&r->scope[r->at].names, s, len, r->name_count);
    return &r->name[r->name_count++];
}

static int reg_new(struct reader *r, const char *name, enum ptx_type type)
{
    struct ptx_kernel *k = r->k;
    if (type == PT_B128) { /* two in a row: ptx_wide.c */
        int low = reg_new(r, name, PT_B64);
        reg_new(r, name, PT_B64);
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

static struct name *name_find(struct reader *r, const char *s, size_t len)
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
        n.reg = reg_new(r, arena_strndup(r->a, s, len), r->name[i].family.type);
        int keep = r->at;
        r->at = sc;
        struct name *made = name_add(r, arena_strndup(r->a, s, len), len, n);
        r->at = keep;
        return made;
    }
    return NULL;
}

/* ---- operands ---- */

static bool read_offset(struct reader *r, int64_t *off, struct error *err)
{
    for (;;) {
        struct token t = lex_peek(&r->lx);
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

static const struct ptx_var *global_var(struct reader *r, const char *s, size_t len)
{
    int i = strmap_get(&r->m->vars, s, len);
    return i >= 0 ? r->m->var[i] : NULL;
}

static bool read_word(struct reader *r, struct token t, struct opnd *o, struct error *err)
{
    struct name *n = name_find(r, t.s, t.len);
    o->name = arena_strndup(r->a, t.s, t.len);
    if (n && n->kind == NAME_REG) {
        o->kind = OPND_REG;
        o->reg = n->reg;
        return true;
    }
    if (t.len == 1 && t.s[0] == '_') {
        o->kind = OPND_SINK;
        return true;
    }
    if (t.s[0] == '%' || token_is(t, "WARP_SZ")) {
        o->kind = OPND_SREG;
        return true;
    }
    o->kind = OPND_SYM;
    o->var = n && n->kind == NAME_VAR ? n->var : global_var(r, t.s, t.len);
    return read_offset(r, &o->off, err);
}

static bool read_number(struct token t, bool minus, struct opnd *o, struct error *err)
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

static bool read_operand(struct reader *r, struct opnd *o, int depth, struct error *err);

static bool read_list(struct reader *r, struct opnd *o, char close, int depth, struct error *err)
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
        if (!read_operand(r, &list[o->count++], depth + 1, err))
            return false;
        struct token t = lex_next(&r->lx);
        if (token_mark(t, close))
            break;
        if (!token_mark(t, ','))
            return ptx_syntax(t, "','", err);
    }
    o->list = arena_array(r->a, (size_t)o->count, sizeof *o->list);
    memcpy(o->list, list, (size_t)o->count * sizeof *list);
    return true;
}

static bool read_address(struct reader *r, struct opnd *o, struct error *err)
{
    struct token t = lex_next(&r->lx);
    o->kind = OPND_ADDR;
    if (t.kind == TOKEN_NUMBER) {
        uint64_t bits;
        if (token_number(t, &bits) != NUMBER_INT)
            return ptx_syntax(t, "an address", err);
        o->off = (int64_t)bits;
    } else if (t.kind == TOKEN_WORD) {
        struct name *n = name_find(r, t.s, t.len);
        o->name = arena_strndup(r->a, t.s, t.len);
        if (n && n->kind == NAME_REG)
            o->reg = n->reg;
        else
            o->var = n && n->kind == NAME_VAR ? n->var : global_var(r, t.s, t.len);
    } else {
        return ptx_syntax(t, "an address", err);
    }
    if (!read_offset(r, &o->off, err))
        return false;
    /* [map, {x, y}] and, im2col, {offsets}: what follows is kept in the list */
    if (token_mark(lex_peek(&r->lx), ',')) {
        struct opnd inner;
        lex_next(&r->lx);
        if (!read_operand(r, &inner, 2, err))
            return false;
        if (inner.kind != OPND_VEC)
            return ptx_syntax(t, "coordinates in braces", err);
        o->list = inner.list;
        o->count = inner.count;
    }
    return ptx_expect(&r->lx, ']', err);
}

static bool read_operand(struct reader *r, struct opnd *o, int depth, struct error *err)
{
    *o = (struct opnd){.reg = -1, .reg2 = -1, .target = -1};
    struct token t = lex_next(&r->lx);
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
        if (!read_operand(r, &q, depth + 1, err))
            return false;
        if (q.kind != OPND_REG && q.kind != OPND_SINK)
            return ptx_syntax(t, "a predicate pair", err);
        o->reg2 = q.reg;
    }
    return true;
}

/* ---- declarations ---- */

static bool read_regs(struct reader *r, struct error *err)
{
    struct token t = lex_next(&r->lx);
    if (t.kind != TOKEN_WORD || t.s[0] != '.')
        return ptx_syntax(t, "a register type", err);
    enum ptx_type type = ptx_type_of(arena_strndup(r->a, t.s + 1, t.len - 1));
    if (type == PT_NONE)
        return ptx_syntax(t, "a register type", err);
    for (;;) {
        t = lex_next(&r->lx);
        if (t.kind != TOKEN_WORD)
            return ptx_syntax(t, "a register name", err);
        const char *nm = arena_strndup(r->a, t.s, t.len);
        struct name n = {.kind = NAME_REG};
        if (token_mark(lex_peek(&r->lx), '<')) {
            lex_next(&r->lx);
            n.kind = NAME_FAMILY;
            n.family.type = type;
            if (!ptx_small_int(&r->lx, 1 << 24, &n.family.count, err) ||
                !ptx_expect(&r->lx, '>', err))
                return false;
        } else {
            n.reg = reg_new(r, nm, type);
        }
        name_add(r, nm, t.len, n);
        t = lex_next(&r->lx);
        if (token_mark(t, ';'))
            return true;
        if (!token_mark(t, ','))
            return ptx_syntax(t, "';'", err);
    }
}

static bool read_local(struct reader *r, enum ptx_space space, struct error *err)
{
    struct ptx_var *v = arena_alloc(r->a, sizeof *v);
    v->space = space;
    if (!ptx_var_read(&r->lx, r->a, v, err) || !ptx_expect(&r->lx, ';', err))
        return false;
    struct name n = {.kind = NAME_VAR, .var = v};
    if (space == PS_PARAM) {
        n.kind = NAME_PIECES;
        n.pieces = arena_alloc(r->a, sizeof *n.pieces);
    } else {
        GROW(r->a, r->k->locals, r->k->local_count, r->k->local_cap);
        r->k->locals[r->k->local_count++] = v;
    }
    name_add(r, v->name, strlen(v->name), n);
    return true;
}

static bool read_loc(struct reader *r, struct error *err)
{
    uint64_t v[3], u[3];
    for (int i = 0; i < 3; i++)
        if (!ptx_small_int(&r->lx, 1 << 30, &v[i], err))
            return false;
    struct ptx_loc loc = {(int)v[0], (int)v[1], (int)v[2], -1};
    if (token_mark(lex_peek(&r->lx), ',')) {
        lex_next(&r->lx);
        struct token t = lex_next(&r->lx);
        if (token_is(t, "function_name")) {
            lex_next(&r->lx);
            int64_t skip = 0;
            if (!read_offset(r, &skip, err) || !ptx_expect(&r->lx, ',', err))
                return false;
            t = lex_next(&r->lx);
        }
        if (!token_is(t, "inlined_at"))
            return ptx_syntax(t, "inlined_at", err);
        for (int i = 0; i < 3; i++)
            if (!ptx_small_int(&r->lx, 1 << 30, &u[i], err))
                return false;
        char *key = arena_printf(r->a, "%d:%d:%d", (int)u[0], (int)u[1], (int)u[2]);
        loc.inlined_at = strmap_get(&r->locs, key, strlen(key));
        if (loc.inlined_at < 0) {
            GROW(r->m->a, r->m->locs, r->m->loc_count, r->m->loc_cap);
            r->m->locs[r->m->loc_count] = (struct ptx_loc){(int)u[0], (int)u[1], (int)u[2], -1};
            strmap_put(&r->locs, key, strlen(key), r->m->loc_count);
            loc.inlined_at = r->m->loc_count++;
        }
    }
    GROW(r->m->a, r->m->locs, r->m->loc_count, r->m->loc_cap);
    r->m->locs[r->m->loc_count] = loc;
    char *key = arena_printf(r->a, "%d:%d:%d", loc.file, loc.line, loc.column);
    /* A place that is its own caller would make the chain endless. */
    if (strmap_get(&r->locs, key, strlen(key)) < 0)
        strmap_put(&r->locs, key, strlen(key), r->m->loc_count);
    r->loc = r->m->loc_count++;
    return true;
}

/* ---- calls ---- */

static struct insn *insn_add(struct reader *r, int line)
{
    GROW(r->a, r->k->insn, r->k->insn_count, r->k->insn_cap);
    struct insn *in = &r->k->insn[r->k->insn_count++];
    *in = (struct insn){.pred = -1, .loc = r->loc, .line = line, .text = ""};
    return in;
}

static void emit_mov(struct reader *r, struct opnd dst, struct opnd src, enum ptx_type type,
                     const struct insn *like)
{
    struct insn *in = insn_add(r, like->line);
    in->op = "mov";
    in->mods[0] = ptx_type_name(type);
    in->mod_count = 1;
    in->type = type;
    in->pred = like->pred;
    in->pred_not = like->pred_not;
    in->text = like->text;
    in->text_len = like->text_len;
    in->args = arena_array(r->a, 2, sizeof *in->args);
    in->args[0] = dst;
    in->args[1] = src;
    in->arg_count = 2;
}

static int piece_reg(struct reader *r, struct piece_set *p, int64_t off, unsigned bytes, bool make)
{
    for (int i = 0; i < p->count; i++)
        if (p->piece[i].off == off && p->piece[i].bytes == bytes)
            return p->piece[i].reg;
    if (!make)
        return -1;
    GROW(r->a, p->piece, p->count, p->cap);
    enum ptx_type t = bytes == 8 ? PT_B64 : bytes == 4 ? PT_B32 : PT_B16;
    p->piece[p->count] = (struct piece){off, bytes, reg_new(r, "param", t)};
    return p->piece[p->count++].reg;
}

/* ld.param/st.param of a call's parameter: moves between registers. */
static bool lower_param(struct reader *r, struct insn in, struct piece_set *p, struct error *err)
{
    bool load = strcmp(in.op, "ld") == 0;
    const struct opnd *addr = load ? &in.args[1] : &in.args[0];
    struct opnd *value = load ? &in.args[0] : &in.args[1];
    unsigned bytes = ptx_type_bytes(in.type);
    int n = value->kind == OPND_VEC ? value->count : 1;
    enum ptx_type type = bytes == 8 ? PT_B64 : bytes == 4 ? PT_B32 : PT_B16;
    for (int i = 0; i < n; i++) {
        struct opnd *v = value->kind == OPND_VEC ? &value->list[i] : value;
        struct opnd piece = {.kind = OPND_REG, .reg2 = -1, .target = -1};
        piece.reg = piece_reg(r, p, addr->off + i * (int64_t)bytes, bytes, true);
        if (v->kind == OPND_SINK)
            continue;
        if (v->kind == OPND_REG && ptx_type_bytes(r->k->reg_type[v->reg]) > bytes && bytes < 4 &&
            load && ptx_type_bytes(r->k->reg_type[v->reg]) > 4)
            return error_set(err, ERROR_JUDGED, "PTX line %d: narrow parameter in a wide register",
                             in.line);
        emit_mov(r, load ? *v : piece, load ? piece : *v, type, &in);
    }
    return true;
}

static bool bind_formals(struct reader *r, struct opnd *actuals, int from, int inner,
                         const struct insn *like, bool in_values, struct error *err)
{
    struct token t = lex_peek(&r->lx);
    if (!token_mark(t, '('))
        return true;
    lex_next(&r->lx);
    for (int i = 0; !token_mark(lex_peek(&r->lx), ')'); i++) {
        t = lex_next(&r->lx);
        struct ptx_var v = {0};
        if (!token_is(t, ".param") && !token_is(t, ".reg"))
            return ptx_syntax(t, ".param", err);
        if (!ptx_var_read(&r->lx, r->a, &v, err))
            return false;
        if (!actuals || i >= actuals->count)
            return error_set(err, ERROR_JUDGED, "PTX line %d: too few arguments in a call",
                             like->line);
        struct opnd *act = &actuals->list[i];
        struct name n = {.kind = NAME_PIECES};
        r->at = from;
        struct name *bound = act->name ? name_find(r, act->name, strlen(act->name)) : NULL;
        if (bound && bound->kind == NAME_PIECES) {
            n.pieces = bound->pieces;
        } else {
            unsigned bytes = ptx_type_bytes(v.type);
            struct opnd piece = {.kind = OPND_REG, .reg2 = -1, .target = -1};
            n.pieces = arena_alloc(r->a, sizeof *n.pieces);
            piece.reg = piece_reg(r, n.pieces, 0, bytes, true);
            if (in_values)
                emit_mov(r, piece, *act, bytes == 8 ? PT_B64 : PT_B32, like);
        }
        r->at = inner;
        name_add(r, v.name, strlen(v.name), n);
        if (token_mark(lex_peek(&r->lx), ','))
            lex_next(&r->lx);
    }
    lex_next(&r->lx);
    return true;
}

static const struct ptx_function *callee_of(struct reader *r, struct insn *in, struct opnd **ret,
                                            struct opnd **args)
{
    int name = in->arg_count && in->args[0].kind == OPND_VEC ? 1 : 0;
    *ret = name ? &in->args[0] : NULL;
    *args = in->arg_count > name + 1 && in->args[name + 1].kind == OPND_VEC ? &in->args[name + 1]
                                                                            : NULL;
    if (name >= in->arg_count || in->args[name].kind != OPND_SYM)
        return NULL;
    in->text = in->args[name].name;
    int f = strmap_get(&r->m->functions, in->args[name].name, strlen(in->args[name].name));
    return f >= 0 ? &r->m->fn[f] : NULL;
}

/* Library functions of the device: their instruction keeps the argument registers. */
static bool lower_builtin(struct reader *r, struct insn in, struct opnd *ret, struct opnd *args)
{
    struct insn *out = insn_add(r, in.line);
    out->op = arena_printf(r->a, "call_%s", in.text);
    out->pred = in.pred;
    out->pred_not = in.pred_not;
    out->text = in.text;
    out->text_len = (int)strlen(in.text);
    out->arg_count = (ret ? ret->count : 0) + (args ? args->count : 0);
    out->args = arena_array(r->a, (size_t)out->arg_count + 1, sizeof *out->args);
    int n = 0;
    for (int side = 0; side < 2; side++) {
        struct opnd *list = side ? args : ret;
        for (int i = 0; list && i < list->count; i++) {
            struct name *nm = list->list[i].name
                                  ? name_find(r, list->list[i].name, strlen(list->list[i].name))
                                  : NULL;
            struct opnd o = {.kind = OPND_SINK, .reg = -1, .reg2 = -1, .target = -1};
            if (nm && nm->kind == NAME_PIECES) {
                if (!nm->pieces->count && !side)
                    piece_reg(r, nm->pieces, 0, 4, true);
                if (nm->pieces->count) {
                    o.kind = OPND_REG;
                    o.reg = nm->pieces->piece[0].reg;
                }
            } else if (list->list[i].kind == OPND_REG) {
                o = list->list[i];
            }
            out->args[n++] = o;
        }
    }
    return true;
}

static bool lower_call(struct reader *r, struct insn in, struct error *err)
{
    struct opnd *ret, *args;
    const struct ptx_function *f = callee_of(r, &in, &ret, &args);
    if (!f)
        return error_set(err, ERROR_JUDGED,
                         "PTX line %d: call through a register or of an unknown "
                         "function is not supported",
                         in.line);
    if (!f->defined)
        return lower_builtin(r, in, ret, args);
    for (int i = 0; i < r->depth; i++)
        if (r->calls[i] == f)
            return error_set(err, ERROR_JUDGED,
                             "PTX line %d: %s calls itself; recursion is not "
                             "supported",
                             in.line, f->name);
    if (r->depth == MAX_CALL_DEPTH)
        return error_set(err, ERROR_JUDGED, "PTX line %d: calls are nested too deep", in.line);
    if (in.pred >= 0)
        return error_set(err, ERROR_JUDGED, "PTX line %d: a guarded call is not supported",
                         in.line);
    struct reader saved = *r;
    int from = r->at, inner = scope_push(r, -1);
    r->lx = (struct lexer){r->m->text.data + f->header, r->m->text.data + r->m->text.len,
                           f->header_line};
    if (!bind_formals(r, ret, from, inner, &in, false, err))
        return false;
    lex_next(&r->lx);
    if (!bind_formals(r, args, from, inner, &in, true, err))
        return false;
    int loc = r->loc;
    r->at = inner;
    r->calls[r->depth++] = f;
    if (!read_body(r, f, err))
        return false;
    r->depth--;
    r->at = from;
    r->lx = saved.lx;
    r->loc = loc;
    for (int i = 0; ret && i < ret->count; i++) {
        if (ret->list[i].kind != OPND_REG)
            continue;
        return error_set(err, ERROR_JUDGED,
                         "PTX line %d: a call that returns into a register is "
                         "not supported",
                         in.line);
    }
    return true;
}

/* ---- statements ---- */

static void set_types(struct insn *in)
{
    for (int i = 0; i < in->mod_count; i++) {
        enum ptx_type t = ptx_type_of(in->mods[i]);
        if (t == PT_NONE)
            continue;
        in->type2 = in->type;
        in->type = t;
    }
}

static bool read_opcode(struct reader *r, struct token t, struct insn *in, struct error *err)
{
    const char *s = t.s, *end = t.s + t.len;
    while (s < end) {
        const char *dot = memchr(s, '.', (size_t)(end - s));
        size_t len = (size_t)((dot ? dot : end) - s);
        char *part = arena_strndup(r->a, s, len);
        if (!in->op)
            in->op = part;
        else if (in->mod_count < (int)ARRAY_LEN(in->mods))
            in->mods[in->mod_count++] = part;
        else
            return ptx_syntax(t, "fewer modifiers", err);
        s += len + 1;
    }
    set_types(in);
    return in->op && *in->op ? true : ptx_syntax(t, "an instruction", err);
}

static struct piece_set *param_pieces(struct reader *r, const struct insn *in)
{
    if (!insn_has(in, "param") || in->arg_count < 2)
        return NULL;
    const struct opnd *addr = strcmp(in->op, "ld") == 0   ? &in->args[1]
                              : strcmp(in->op, "st") == 0 ? &in->args[0]
                                                          : NULL;
    if (!addr || addr->kind != OPND_ADDR || !addr->name)
        return NULL;
    struct name *n = name_find(r, addr->name, strlen(addr->name));
    return n && n->kind == NAME_PIECES ? n->pieces : NULL;
}

/* The carry flag becomes an operand: written as the second result, read last. */
static void name_carry(struct reader *r, struct insn *in)
{
    bool writes = insn_has(in, "cc");
    bool reads =
        strcmp(in->op, "addc") == 0 || strcmp(in->op, "subc") == 0 || strcmp(in->op, "madc") == 0;
    if ((!writes && !reads) || in->arg_count < 3 || in->args[0].kind != OPND_REG)
        return;
    if (!r->k->has_carry) {
        r->k->carry = reg_new(r, "carry", PT_PRED);
        r->k->has_carry = true;
    }
    struct opnd *args = arena_array(r->a, (size_t)in->arg_count + 1, sizeof *args);
    memcpy(args, in->args, (size_t)in->arg_count * sizeof *args);
    if (writes)
        args[0].reg2 = r->k->carry;
    if (reads)
        args[in->arg_count++] =
            (struct opnd){.kind = OPND_REG, .reg = r->k->carry, .reg2 = -1, .target = -1};
    in->args = args;
}

static bool place_insn(struct reader *r, struct insn in, struct error *err)
{
    struct insn half[2];
    int halves = in.type == PT_B128 ? ptx_split_wide(&in, r->a, half) : 0;
    for (int i = 0; i < halves; i++)
        if (!place_insn(r, half[i], err))
            return false;
    if (halves)
        return true;
    name_carry(r, &in);
    struct piece_set *pieces = param_pieces(r, &in);
    if (pieces)
        return lower_param(r, in, pieces, err);
    if (strcmp(in.op, "call") == 0)
        return lower_call(r, in, err);
    if (r->k->insn_count >= MAX_INSNS)
        return error_set(err, ERROR_JUDGED, "%s has too many instructions", r->k->fn->name);
    if (strcmp(in.op, "bra") == 0) {
        GROW(r->a, r->fix, r->fix_count, r->fix_cap);
        r->fix[r->fix_count++] = (struct fixup){r->k->insn_count, r->at};
        if (in.arg_count != 1 || in.args[0].kind != OPND_SYM)
            return error_set(err, ERROR_JUDGED, "PTX line %d: bra without a label", in.line);
    }
    *insn_add(r, in.line) = in;
    return true;
}

static bool read_insn(struct reader *r, struct token t, struct error *err)
{
    struct insn in = {.pred = -1, .loc = r->loc, .line = t.line, .text = t.s};
    if (token_mark(t, '@')) {
        t = lex_next(&r->lx);
        if (token_mark(t, '!')) {
            in.pred_not = true;
            t = lex_next(&r->lx);
        }
        struct name *n = t.kind == TOKEN_WORD ? name_find(r, t.s, t.len) : NULL;
        if (!n || n->kind != NAME_REG || r->k->reg_type[n->reg] != PT_PRED)
            return ptx_syntax(t, "a predicate", err);
        in.pred = n->reg;
        t = lex_next(&r->lx);
    }
    if (t.kind != TOKEN_WORD || t.s[0] == '.')
        return ptx_syntax(t, "an instruction", err);
    in.text = t.s;
    if (!read_opcode(r, t, &in, err))
        return false;
    struct opnd list[MAX_OPERANDS];
    struct token next = lex_peek(&r->lx);
    while (!token_mark(next, ';')) {
        if (in.arg_count == MAX_OPERANDS)
            return ptx_syntax(next, "fewer operands", err);
        if (!read_operand(r, &list[in.arg_count++], 0, err))
            return false;
        next = lex_peek(&r->lx);
        if (token_mark(next, ','))
            lex_next(&r->lx);
        else if (!token_mark(next, ';'))
            return ptx_syntax(next, "';'", err);
    }
    in.text_len = (int)(next.s - in.text);
    lex_next(&r->lx);
    in.args = arena_array(r->a, (size_t)in.arg_count + 1, sizeof *in.args);
    memcpy(in.args, list, (size_t)in.arg_count * sizeof *list);
    return place_insn(r, in, err);
}

static bool read_statement(struct reader *r, struct token t, struct error *err)
{
    if (token_is(t, ".reg"))
        return read_regs(r, err);
    if (t.kind == TOKEN_WORD && t.len > 5 && memcmp(t.s, ".reg.", 5) == 0) {
        r->lx.p = t.s + 4; /* the type follows without a space */
        return read_regs(r, err);
    }
    if (token_is(t, ".loc"))
        return read_loc(r, err);
    if (token_is(t, ".local"))
        return read_local(r, PS_LOCAL, err);
    if (token_is(t, ".shared"))
        return read_local(r, PS_SHARED, err);
    if (token_is(t, ".param"))
        return read_local(r, PS_PARAM, err);
    if (token_is(t, ".pragma") || token_is(t, ".callprototype") || token_is(t, ".branchtargets")) {
        while (t.kind != TOKEN_END && !token_mark(t, ';'))
            t = lex_next(&r->lx);
        return true;
    }
    struct lexer ahead = r->lx;
    if (t.kind == TOKEN_WORD && token_mark(lex_next(&ahead), ':')) {
        r->lx = ahead;
        strmap_put(&r->scope[r->at].labels, arena_strndup(r->a, t.s, t.len), t.len,
                   r->k->insn_count);
        return true;
    }
    return read_insn(r, t, err);
}

static bool resolve(struct reader *r, int first, struct error *err)
{
    for (int i = first; i < r->fix_count; i++) {
        struct insn *in = &r->k->insn[r->fix[i].insn];
        const char *label = in->args[0].name;
        int at = -1;
        for (int s = r->fix[i].scope; s >= 0 && at < 0; s = r->scope[s].parent)
            at = strmap_get(&r->scope[s].labels, label, strlen(label));
        if (at < 0)
            return error_set(err, ERROR_JUDGED, "PTX line %d: no label %s", in->line, label);
        in->args[0].kind = OPND_LABEL;
        in->args[0].target = at;
    }
    r->fix_count = first;
    return true;
}

/* In a body that was called, ret goes to what follows the call. */
static void returns_to_branches(struct reader *r, int first)
{
    for (int i = first; i < r->k->insn_count; i++) {
        struct insn *in = &r->k->insn[i];
        if (strcmp(in->op, "ret") != 0)
            continue;
        in->op = "bra";
        in->args = arena_alloc(r->a, sizeof *in->args);
        in->args[0] =
            (struct opnd){.kind = OPND_LABEL, .reg = -1, .reg2 = -1, .target = r->k->insn_count};
        in->arg_count = 1;
    }
}

static bool read_body(struct reader *r, const struct ptx_function *f, struct error *err)
{
    int first_fix = r->fix_count, first_insn = r->k->insn_count, top = r->at;
    struct strmap caller_locs = r->locs;
    r->locs = strmap_init(r->a);
    r->loc = -1;
    r->lx = (struct lexer){r->m->text.data + f->body, r->m->text.data + f->body_end, f->body_line};
    for (;;) {
        struct token t = lex_next(&r->lx);
        if (t.kind == TOKEN_END)
            break;
        if (token_mark(t, ';'))
            continue;
        if (token_mark(t, '{')) {
            r->at = scope_push(r, r->at);
        } else if (token_mark(t, '}')) {
            if (r->at == top)
                return ptx_syntax(t, "a statement", err);
            r->at = r->scope[r->at].parent;
        } else if (!read_statement(r, t, err)) {
            return false;
        }
    }
    if (r->depth > 1)
        returns_to_branches(r, first_insn);
    r->locs = caller_locs;
    return resolve(r, first_fix, err);
}

static bool read_params(struct reader *r, struct error *err)
{
    struct ptx_kernel *k = r->k;
    int cap = 0;
    r->lx = (struct lexer){r->m->text.data + k->fn->header, r->m->text.data + r->m->text.len,
                           k->fn->header_line};
    lex_next(&r->lx);
    if (!token_mark(lex_peek(&r->lx), '('))
        return true;
    lex_next(&r->lx);
    while (!token_mark(lex_peek(&r->lx), ')')) {
        struct token t = lex_next(&r->lx);
        if (!token_is(t, ".param"))
            return ptx_syntax(t, ".param", err);
        struct ptx_var *v = arena_alloc(r->a, sizeof *v);
        v->space = PS_PARAM;
        if (!ptx_var_read(&r->lx, r->a, v, err))
            return false;
        k->param_bytes = (k->param_bytes + v->align - 1) / v->align * v->align;
        v->offset = k->param_bytes;
        k->param_bytes += v->bytes;
        if (k->param_bytes > 32764)
            return error_set(err, ERROR_JUDGED, "%s has more than 32764 bytes of parameters",
                             k->fn->name);
        GROW(r->a, k->params, k->param_count, cap);
        k->params[k->param_count++] = v;
        name_add(r, v->name, strlen(v->name), (struct name){.kind = NAME_VAR, .var = v});
        if (token_mark(lex_peek(&r->lx), ','))
            lex_next(&r->lx);
    }
    return true;
}

bool ptx_kernel_read(struct ptx_module *m, const char *name, struct arena *a,
                     struct ptx_kernel *out, struct error *err)
{
    int f = strmap_get(&m->functions, name, strlen(name));
    if (f < 0 || !m->fn[f].entry || !m->fn[f].defined)
        return error_set(err, ERROR_JUDGED, "the module has no kernel %s", name);
    *out = (struct ptx_kernel){.fn = &m->fn[f], .m = m};
    struct reader r = {.m = m, .k = out, .a = a, .loc = -1, .locs = strmap_init(a)};
    r.at = scope_push(&r, -1);
    r.calls[r.depth++] = out->fn;
    if (!read_params(&r, err) || !read_body(&r, out->fn, err))
        return error_add(err, "reading kernel %s", name);
    /* A label may stand at the very end; give it something to stand at. */
    r.loc = -1;
    insn_add(&r, r.lx.line)->op = "ret";
    return true;
}
