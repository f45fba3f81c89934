/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_body.c - read the body of a kernel, with the bodies it calls in place.
 *
 * Invariant: every label is resolved before ptx_kernel_read returns true.
 */
#include "simt/ptx/ptx_body.h"

#include <string.h>

/* ---- declarations ---- */

/* .reg .v4 .f32 v: v.x, v.y, v.z and v.w, also v.r to v.a; alone it is {v.x, v.y, v.z, v.w}. */
static void vector_add(struct ptx_reader *r, const char *nm, enum ptx_type type, int width)
{
    static const char letters[2][5] = {"xyzw", "rgba"};
    struct name all = {.kind = NAME_VECTOR, .width = width};
    for (int i = 0; i < width; i++) {
        int reg = ptx_reg_new(r, nm, type);
        all.reg = i ? all.reg : reg;
        for (int set = 0; set < 2; set++) {
            const char *part = arena_printf(r->a, "%s.%c", nm, letters[set][i]);
            ptx_name_add(r, part, strlen(part), (struct name){.kind = NAME_REG, .reg = reg});
        }
    }
    ptx_name_add(r, nm, strlen(nm), all);
}

static bool read_vectors(struct ptx_reader *r, enum ptx_type type, int width, struct error *err)
{
    for (;;) {
        struct ptx_token t = lex_next(&r->lx);
        uint64_t count = 0;
        if (t.kind != TOKEN_WORD)
            return ptx_syntax(t, "a register name", err);
        const char *nm = arena_strndup(r->a, t.s, t.len);
        if (token_mark(lex_peek(&r->lx), '<')) {
            lex_next(&r->lx);
            if (!ptx_small_int(&r->lx, MAX_VECTORS, &count, err) || !ptx_expect(&r->lx, '>', err))
                return false;
            for (uint64_t i = 0; i < count; i++)
                vector_add(r, arena_printf(r->a, "%s%d", nm, (int)i), type, width);
        } else {
            vector_add(r, nm, type, width);
        }
        t = lex_next(&r->lx);
        if (token_mark(t, ';'))
            return true;
        if (!token_mark(t, ','))
            return ptx_syntax(t, "';'", err);
    }
}

static bool read_regs(struct ptx_reader *r, struct error *err)
{
    struct ptx_token t = lex_next(&r->lx);
    int width = token_is(t, ".v2") ? 2 : token_is(t, ".v4") ? 4 : 0;
    if (width)
        t = lex_next(&r->lx);
    if (t.kind != TOKEN_WORD || t.s[0] != '.')
        return ptx_syntax(t, "a register type", err);
    enum ptx_type type = ptx_type_of(arena_strndup(r->a, t.s + 1, t.len - 1));
    if (type == PT_NONE)
        return ptx_syntax(t, "a register type", err);
    if (width)
        return read_vectors(r, type, width, err);
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
            n.reg = ptx_reg_new(r, nm, type);
        }
        ptx_name_add(r, nm, t.len, n);
        t = lex_next(&r->lx);
        if (token_mark(t, ';'))
            return true;
        if (!token_mark(t, ','))
            return ptx_syntax(t, "';'", err);
    }
}

static bool read_local(struct ptx_reader *r, enum ptx_space space, struct error *err)
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
    ptx_name_add(r, v->name, strlen(v->name), n);
    return true;
}

static bool read_loc(struct ptx_reader *r, struct error *err)
{
    uint64_t v[3], u[3];
    for (int i = 0; i < 3; i++)
        if (!ptx_small_int(&r->lx, 1 << 30, &v[i], err))
            return false;
    struct ptx_loc loc = {(int)v[0], (int)v[1], (int)v[2], r->called_at};
    if (token_mark(lex_peek(&r->lx), ',')) {
        lex_next(&r->lx);
        struct ptx_token t = lex_next(&r->lx);
        if (token_is(t, "function_name")) {
            lex_next(&r->lx);
            int64_t skip = 0;
            if (!ptx_offset_read(r, &skip, err) || !ptx_expect(&r->lx, ',', err))
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
            r->m->locs[r->m->loc_count] =
                (struct ptx_loc){(int)u[0], (int)u[1], (int)u[2], r->called_at};
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

/* ---- statements ---- */

static struct piece_set *param_pieces(struct ptx_reader *r, const struct insn *in)
{
    if (!insn_has_mod(in, MOD_PARAM) || in->arg_count < 2)
        return NULL;
    const struct opnd *addr = in->op == OP_LD   ? &in->args[1]
                              : in->op == OP_ST ? &in->args[0]
                                                : NULL;
    if (!addr || addr->kind != OPND_ADDR || !addr->name)
        return NULL;
    struct name *n = ptx_name_find(r, addr->name, strlen(addr->name));
    return n && n->kind == NAME_PIECES ? n->pieces : NULL;
}

/* The carry flag becomes an operand: written as the second result, read last. */
static void name_carry(struct ptx_reader *r, struct insn *in)
{
    bool writes = insn_has_mod(in, MOD_CC);
    bool reads = insn_is(in, TRAIT_READS_CARRY);
    if ((!writes && !reads) || in->arg_count < 3 || in->args[0].kind != OPND_REG)
        return;
    if (!r->k->has_carry) {
        r->k->carry = ptx_reg_new(r, "carry", PT_PRED);
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

/* mov of a function's address. */
static void name_function(struct ptx_reader *r, struct insn *in)
{
    struct opnd *o = in->op == OP_MOV && in->arg_count == 2 ? &in->args[1] : NULL;
    uint64_t id;
    if (!o || o->kind != OPND_SYM || o->var || !o->name ||
        !(id = ptx_function_id(r->m, o->name, strlen(o->name))))
        return;
    *o = (struct opnd){.kind = OPND_INT, .reg = -1, .reg2 = -1, .target = -1, .bits = id};
}

static bool place_insn(struct ptx_reader *r, struct insn in, struct error *err)
{
    struct insn half[SPLIT_MAX];
    int halves = in.type == PT_B128    ? ptx_split_wide(&in, r->a, half)
                 : in.type == PT_F32X2 ? ptx_split_f32x2(r, &in, half)
                                       : 0;
    for (int i = 0; i < halves; i++)
        if (!place_insn(r, half[i], err))
            return false;
    if (halves)
        return true;
    name_carry(r, &in);
    name_function(r, &in);
    if (!ptx_regs_fit(&in, err))
        return false;
    struct piece_set *pieces = param_pieces(r, &in);
    if (pieces)
        return ptx_lower_param(r, in, pieces, err);
    if (in.op == OP_CALL)
        return ptx_lower_call(r, in, err);
    if (r->k->insn_count >= MAX_INSNS)
        return error_set(err, ERROR_JUDGED, "%s has too many instructions", r->k->fn->name);
    if (in.op == OP_BRA) {
        GROW(r->a, r->fix, r->fix_count, r->fix_cap);
        r->fix[r->fix_count++] = (struct fixup){r->k->insn_count, r->at};
        if (in.arg_count != 1 || in.args[0].kind != OPND_SYM)
            return error_set(err, ERROR_JUDGED, "PTX line %d: bra without a label", in.line);
    }
    *ptx_insn_add(r, in.line) = in;
    return true;
}

static bool read_insn(struct ptx_reader *r, struct ptx_token t, struct error *err)
{
    struct insn in = {.pred = -1, .loc = r->loc, .line = t.line, .text = t.s};
    if (token_mark(t, '@')) {
        t = lex_next(&r->lx);
        if (token_mark(t, '!')) {
            in.pred_not = true;
            t = lex_next(&r->lx);
        }
        struct name *n = t.kind == TOKEN_WORD ? ptx_name_find(r, t.s, t.len) : NULL;
        if (!n || n->kind != NAME_REG || r->k->reg_type[n->reg] != PT_PRED)
            return ptx_syntax(t, "a predicate", err);
        in.pred = n->reg;
        t = lex_next(&r->lx);
    }
    if (t.kind != TOKEN_WORD || t.s[0] == '.')
        return ptx_syntax(t, "an instruction", err);
    in.text = t.s;
    if (!insn_words_read(&r->m->words, t.s, t.len, &in))
        return ptx_syntax(t, "fewer modifiers", err);
    struct opnd list[MAX_OPERANDS];
    struct ptx_token next = lex_peek(&r->lx);
    while (!token_mark(next, ';')) {
        if (in.arg_count == MAX_OPERANDS)
            return ptx_syntax(next, "fewer operands", err);
        if (!ptx_operand_read(r, &list[in.arg_count++], 0, err))
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

static bool read_statement(struct ptx_reader *r, struct ptx_token t, struct error *err)
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
    struct ptx_lexer ahead = r->lx;
    if (t.kind == TOKEN_WORD && token_mark(lex_next(&ahead), ':')) {
        r->lx = ahead;
        strmap_put(&r->scope[r->at].labels, arena_strndup(r->a, t.s, t.len), t.len,
                   r->k->insn_count);
        return true;
    }
    return read_insn(r, t, err);
}

static bool resolve(struct ptx_reader *r, int first, struct error *err)
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
static void returns_to_branches(struct ptx_reader *r, int first)
{
    for (int i = first; i < r->k->insn_count; i++) {
        struct insn *in = &r->k->insn[i];
        if (in->op != OP_RET)
            continue;
        in->op = OP_BRA;
        in->args = arena_alloc(r->a, sizeof *in->args);
        in->args[0] =
            (struct opnd){.kind = OPND_LABEL, .reg = -1, .reg2 = -1, .target = r->k->insn_count};
        in->arg_count = 1;
    }
}

bool ptx_body_read(struct ptx_reader *r, const struct ptx_function *f, struct error *err)
{
    int first_fix = r->fix_count, first_insn = r->k->insn_count, top = r->at;
    struct strmap caller_locs = r->locs;
    int called_at = r->called_at;
    r->locs = strmap_init(r->a);
    r->called_at = r->loc;
    r->loc = -1;
    r->lx =
        (struct ptx_lexer){r->m->text.data + f->body, r->m->text.data + f->body_end, f->body_line};
    for (;;) {
        struct ptx_token t = lex_next(&r->lx);
        if (t.kind == TOKEN_END)
            break;
        if (token_mark(t, ';'))
            continue;
        if (token_mark(t, '{')) {
            r->at = ptx_scope_push(r, r->at);
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
    r->called_at = called_at;
    return resolve(r, first_fix, err);
}

static bool read_params(struct ptx_reader *r, struct error *err)
{
    struct ptx_kernel *k = r->k;
    int cap = 0;
    r->lx = (struct ptx_lexer){r->m->text.data + k->fn->header, r->m->text.data + r->m->text.len,
                               k->fn->header_line};
    lex_next(&r->lx);
    if (!token_mark(lex_peek(&r->lx), '('))
        return true;
    lex_next(&r->lx);
    while (!token_mark(lex_peek(&r->lx), ')')) {
        struct ptx_token t = lex_next(&r->lx);
        if (!token_is(t, ".param"))
            return ptx_syntax(t, ".param", err);
        struct ptx_var *v = arena_alloc(r->a, sizeof *v);
        v->space = PS_PARAM;
        if (!ptx_var_read(&r->lx, r->a, v, err))
            return false;
        k->param_bytes = (k->param_bytes + v->align - 1) / v->align * v->align;
        v->offset = k->param_bytes;
        k->param_bytes += v->bytes;
        if (k->param_bytes > MAX_PARAM_BYTES)
            return error_set(err, ERROR_JUDGED, "%s has more than %d bytes of parameters",
                             k->fn->name, MAX_PARAM_BYTES);
        GROW(r->a, k->params, k->param_count, cap);
        k->params[k->param_count++] = v;
        ptx_name_add(r, v->name, strlen(v->name), (struct name){.kind = NAME_VAR, .var = v});
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
    struct ptx_reader r = {
        .m = m, .k = out, .a = a, .loc = -1, .called_at = -1, .locs = strmap_init(a)};
    r.at = ptx_scope_push(&r, -1);
    r.calls[r.depth++] = out->fn;
    if (!read_params(&r, err) || !ptx_body_read(&r, out->fn, err))
        return error_add(err, "reading kernel %s", name);
    /* A label may stand at the very end; give it something to stand at. */
    r.loc = -1;
    ptx_insn_add(&r, r.lx.line)->op = OP_RET;
    return true;
}
