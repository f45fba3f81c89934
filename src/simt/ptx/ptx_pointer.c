/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_pointer.c - calls through pointers, and functions that call themselves.
 *
 * A function's address is a number that nothing else has (ptx_function_id). A call through a
 * register becomes a comparison for each function of the module whose address is taken and whose
 * parameters are those of the call's prototype, each with the body behind it. A function that calls
 * itself is read again for each level, as many as fit in DEPTH_INSNS; one level more traps.
 */
#include "simt/ptx/ptx_body.h"

#include <ctype.h>
#include <string.h>

enum { DEPTH_INSNS = 8000, MOST_LEVELS = 20 };

#define FUNCTION_BASE UINT64_C(0x7f46000000000000) /* no buffer is there */

uint64_t ptx_function_id(const struct ptx_module *m, const char *name, size_t len)
{
    int f = strmap_get(&m->functions, name, len);
    return f >= 0 ? FUNCTION_BASE + 16 * ((uint64_t)f + 1) : 0;
}

/* ---- where a name stands in the text ---- */

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

/* The next place of a whole word; NULL: none. */
static const char *word_find(const char *from, const char *end, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = from; p < end; p++) {
        p = memmem(p, (size_t)(end - p), word, len);
        if (!p)
            return NULL;
        if (!in_word(p[-1]) && (p + len == end || !in_word(p[len])))
            return p;
    }
    return NULL;
}

/* Its statement has that word before this place. */
static bool stands_behind(const char *begin, const char *at, const char *word)
{
    const char *p = at;
    while (p > begin && p[-1] != ';' && p[-1] != '{' && p[-1] != '}')
        p--;
    return memmem(p, (size_t)(at - p), word, strlen(word)) != NULL;
}

static bool is_call(struct ptx_token t)
{
    return t.kind == TOKEN_WORD && t.len >= 4 && memcmp(t.s, "call", 4) == 0 &&
           (t.len == 4 || t.s[4] == '.');
}

/* Once for a module: what a statement names that neither calls nor declares it. */
static void find_taken(struct ptx_module *m)
{
    struct ptx_lexer lx = {m->text.data, m->text.data + m->text.len, 1};
    bool takes = true;
    int f;
    if (m->taken_known)
        return;
    for (struct ptx_token t = lex_next(&lx); t.kind != TOKEN_END; t = lex_next(&lx)) {
        if (token_mark(t, ';') || token_mark(t, '{') || token_mark(t, '}'))
            takes = true;
        else if (is_call(t) || token_is(t, ".func"))
            takes = false;
        else if (takes && t.kind == TOKEN_WORD && (f = strmap_get(&m->functions, t.s, t.len)) >= 0)
            m->fn[f].taken = true;
    }
    m->taken_known = true;
}

/* ---- which functions a pointer may name ---- */

/* Types and sizes of parameters, list by list; names are left out. */
static void signature(struct ptx_lexer lx, struct buf *out)
{
    bool any = false;
    for (;;) {
        struct ptx_token t = lex_next(&lx);
        if (t.kind == TOKEN_END || token_mark(t, ';') || token_mark(t, '{'))
            return;
        bool type = t.kind == TOKEN_WORD && t.s[0] == '.';
        any |= type;
        if (type || t.kind == TOKEN_NUMBER)
            buf_printf(out, "%.*s ", (int)t.len, t.s);
        if (token_mark(t, ')') && any)
            buf_printf(out, "|");
        if (token_mark(t, ')'))
            any = false;
    }
}

/* Of the prototype that the call names, which stands in the function that is being read. */
static bool prototype_of(struct ptx_reader *r, const struct insn *in, struct buf *out)
{
    const struct opnd *last = &in->args[in->arg_count - 1];
    const struct ptx_function *f = r->calls[r->depth - 1];
    const char *begin = r->m->text.data + f->body, *end = r->m->text.data + f->body_end, *p;
    for (p = begin; last->kind == OPND_SYM && (p = word_find(p, end, last->name)); p++) {
        struct ptx_lexer lx = {p + strlen(last->name), end, in->line};
        if (token_mark(lex_next(&lx), ':') && token_is(lex_next(&lx), ".callprototype")) {
            signature(lx, out);
            return true;
        }
    }
    return false;
}

static bool may_be(struct ptx_reader *r, const struct ptx_function *f, const struct buf *wanted)
{
    struct buf has = buf_init(1 << 16);
    if (f->entry || !f->defined || !f->taken)
        return false;
    signature((struct ptx_lexer){r->m->text.data + f->header, r->m->text.data + r->m->text.len, 0},
              &has);
    bool same = has.len == wanted->len && (!has.len || !memcmp(has.data, wanted->data, has.len));
    buf_release(&has);
    return same;
}

static struct opnd opnd_of(enum opnd_kind kind, int reg, uint64_t bits)
{
    return (struct opnd){.kind = kind, .reg = reg, .reg2 = -1, .target = -1, .bits = bits};
}

/* The instruction's index, so that its label can be set later. */
static int branch_add(struct ptx_reader *r, int line, int pred)
{
    struct insn *in = ptx_insn_add(r, line);
    in->op = OP_BRA;
    in->pred = pred;
    in->arg_count = 1;
    in->args = arena_alloc(r->a, sizeof *in->args);
    in->args[0] = opnd_of(OPND_LABEL, -1, 0);
    return r->k->insn_count - 1;
}

static void compare_add(struct ptx_reader *r, int line, int pred, int reg, uint64_t id)
{
    struct insn *in = ptx_insn_add(r, line);
    in->op = OP_SETP;
    in->mods[0] = MOD_NE;
    in->mods[1] = MOD_U64;
    in->mod_count = 2;
    in->type = PT_U64;
    in->arg_count = 3;
    in->args = arena_array(r->a, 3, sizeof *in->args);
    in->args[0] = opnd_of(OPND_REG, pred, 0);
    in->args[1] = opnd_of(OPND_REG, reg, 0);
    in->args[2] = opnd_of(OPND_INT, -1, id);
}

void ptx_trap_add(struct ptx_reader *r, int line, enum ptx_op op)
{
    struct insn *in = ptx_insn_add(r, line);
    in->op = op;
    in->args = arena_alloc(r->a, sizeof *in->args);
}

bool ptx_lower_pointer(struct ptx_reader *r, struct insn in, int reg, struct call_sides sides,
                       struct error *err)
{
    struct buf wanted = buf_init(1 << 16);
    int *ends = arena_array(r->a, (size_t)r->m->fn_count + 1, sizeof *ends), count = 0;
    bool ok = prototype_of(r, &in, &wanted) ||
              error_set(err, ERROR_JUDGED,
                        "PTX line %d: a call through a register that names no "
                        "prototype",
                        in.line);
    find_taken(r->m);
    for (int i = 0; ok && i < r->m->fn_count; i++) {
        const struct ptx_function *f = &r->m->fn[i];
        if (!may_be(r, f, &wanted))
            continue;
        int pred = ptx_reg_new(r, "other", PT_PRED);
        compare_add(r, in.line, pred, reg, ptx_function_id(r->m, f->name, strlen(f->name)));
        int next = branch_add(r, in.line, pred);
        ok = ptx_inline_call(r, in, f, sides, err);
        ends[count++] = branch_add(r, in.line, -1);
        r->k->insn[next].args[0].target = r->k->insn_count;
    }
    buf_release(&wanted);
    if (ok)
        ptx_trap_add(r, in.line, OP_NOFUNCTION);
    while (count-- > 0)
        r->k->insn[ends[count]].args[0].target = r->k->insn_count;
    return ok;
}

/* ---- recursion ---- */

/* Levels of f that fit: f has n instructions and calls itself so often. */
static int levels_of(const struct ptx_module *m, const struct ptx_function *f)
{
    const char *begin = m->text.data + f->body, *end = m->text.data + f->body_end;
    uint64_t n = 1, calls = 0, copies = 1, all = 1;
    for (const char *p = begin; p < end; p++)
        n += *p == ';';
    for (const char *p = begin; (p = word_find(p, end, f->name)); p++)
        calls += stands_behind(begin, p, "call");
    for (int levels = 1; levels < MOST_LEVELS; levels++) {
        copies *= calls ? calls : 1;
        all += copies;
        if (all * n > DEPTH_INSNS)
            return levels;
    }
    return MOST_LEVELS;
}

bool ptx_too_deep(struct ptx_reader *r, const struct ptx_function *f)
{
    int levels = 0, *most = &r->m->fn[f - r->m->fn].levels;
    for (int i = 0; i < r->depth; i++)
        levels += r->calls[i] == f;
    if (levels && !*most)
        *most = levels_of(r->m, f);
    return levels && (r->depth == MAX_CALL_DEPTH || levels >= *most);
}
