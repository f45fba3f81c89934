/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_inline.c - calls: the callee's text is read again under fresh names.
 *
 * Hides: parameter passing. There is no calling convention and there are no frames; a recursive
 * function is read level by level (ptx_pointer.c). A .param variable of a call is a set of
 * registers, one per offset and size stored to it.
 */
#include "simt/ptx/ptx_body.h"

#include <string.h>

struct insn *ptx_insn_add(struct ptx_reader *r, int line)
{
    GROW(r->a, r->k->insn, r->k->insn_count, r->k->insn_cap);
    struct insn *in = &r->k->insn[r->k->insn_count++];
    *in = (struct insn){.pred = -1, .loc = r->loc, .line = line, .text = ""};
    return in;
}

bool ptx_regs_fit(const struct insn *in, struct error *err)
{
    int regs = 1; /* a guard, if not now then after if-conversion */
    for (int i = 0; i < in->arg_count; i++)
        operand_regs(&in->args[i], NULL, &regs);
    return regs <= MAX_INSN_REGS ||
           error_set(err, ERROR_JUDGED,
                     "PTX line %d: an instruction with more than %d registers is not supported",
                     in->line, MAX_INSN_REGS - 1);
}

static void emit_mov(struct ptx_reader *r, struct opnd dst, struct opnd src, enum ptx_type type,
                     const struct insn *like)
{
    struct insn *in = ptx_insn_add(r, like->line);
    in->op = OP_MOV;
    in->mods[0] = (uint16_t)type;
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

static int piece_reg(struct ptx_reader *r, struct piece_set *p, int64_t off, unsigned bytes,
                     bool make)
{
    for (int i = 0; i < p->count; i++)
        if (p->piece[i].off == off && p->piece[i].bytes == bytes)
            return p->piece[i].reg;
    if (!make)
        return -1;
    GROW(r->a, p->piece, p->count, p->cap);
    enum ptx_type t = bytes == 8 ? PT_B64 : bytes == 4 ? PT_B32 : PT_B16;
    p->piece[p->count] = (struct piece){off, bytes, ptx_reg_new(r, "param", t)};
    return p->piece[p->count++].reg;
}

/* ld.param/st.param of a call's parameter: moves between registers. */
bool ptx_lower_param(struct ptx_reader *r, struct insn in, struct piece_set *p, struct error *err)
{
    bool load = in.op == OP_LD;
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

static bool bind_formals(struct ptx_reader *r, struct opnd *actuals, int from, int inner,
                         const struct insn *like, bool in_values, struct error *err)
{
    struct ptx_token t = lex_peek(&r->lx);
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
        struct name *bound = act->name ? ptx_name_find(r, act->name, strlen(act->name)) : NULL;
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
        ptx_name_add(r, v.name, strlen(v.name), n);
        if (token_mark(lex_peek(&r->lx), ','))
            lex_next(&r->lx);
    }
    lex_next(&r->lx);
    return true;
}

static const struct ptx_function *callee_of(struct ptx_reader *r, struct insn *in,
                                            struct opnd **ret, struct opnd **args)
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

static enum ptx_op builtin_of(const char *name)
{
    return strcmp(name, "vprintf") == 0        ? OP_CALL_VPRINTF
           : strcmp(name, "__assertfail") == 0 ? OP_CALL_ASSERTFAIL
                                               : OP_UNKNOWN;
}

/* Library functions of the device: their instruction keeps the argument registers. */
static bool lower_builtin(struct ptx_reader *r, struct insn in, struct opnd *ret, struct opnd *args,
                          struct error *err)
{
    struct insn *out = ptx_insn_add(r, in.line);
    out->op = builtin_of(in.text);
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
                                  ? ptx_name_find(r, list->list[i].name, strlen(list->list[i].name))
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
    return ptx_regs_fit(out, err);
}

bool ptx_inline_call(struct ptx_reader *r, struct insn in, const struct ptx_function *f,
                     struct call_sides sides, struct error *err)
{
    if (ptx_too_deep(r, f)) {
        ptx_trap_add(r, in.line, OP_TOODEEP);
        return true;
    }
    if (r->depth == MAX_CALL_DEPTH || ++r->inlined > MAX_CALLS)
        return error_set(err, ERROR_JUDGED, "PTX line %d: calls are nested too deep", in.line);
    struct ptx_reader saved = *r;
    int from = r->at, inner = ptx_scope_push(r, -1);
    r->lx = (struct ptx_lexer){r->m->text.data + f->header, r->m->text.data + r->m->text.len,
                               f->header_line};
    if (!bind_formals(r, sides.ret, from, inner, &in, false, err))
        return false;
    lex_next(&r->lx);
    if (!bind_formals(r, sides.args, from, inner, &in, true, err))
        return false;
    int loc = r->loc;
    r->at = inner;
    r->calls[r->depth++] = f;
    if (!ptx_body_read(r, f, err))
        return false;
    r->depth--;
    r->at = from;
    r->lx = saved.lx;
    r->loc = loc;
    return true;
}

bool ptx_lower_call(struct ptx_reader *r, struct insn in, struct error *err)
{
    struct call_sides sides;
    const struct ptx_function *f = callee_of(r, &in, &sides.ret, &sides.args);
    const struct opnd *to = &in.args[sides.ret ? 1 : 0];
    bool pointer = !f && in.arg_count > (sides.ret ? 1 : 0) && to->kind == OPND_REG;
    if (!f && !pointer)
        return error_set(err, ERROR_JUDGED,
                         "PTX line %d: call of an unknown function is not supported", in.line);
    if (f && !f->defined)
        return lower_builtin(r, in, sides.ret, sides.args, err);
    if (in.pred >= 0)
        return error_set(err, ERROR_JUDGED, "PTX line %d: a guarded call is not supported",
                         in.line);
    for (int i = 0; sides.ret && i < sides.ret->count; i++)
        if (sides.ret->list[i].kind == OPND_REG)
            return error_set(err, ERROR_JUDGED,
                             "PTX line %d: a call that returns into a register is not supported",
                             in.line);
    return pointer ? ptx_lower_pointer(r, in, to->reg, sides, err)
                   : ptx_inline_call(r, in, f, sides, err);
}
