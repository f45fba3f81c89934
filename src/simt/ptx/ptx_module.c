/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_module.c - the module level of PTX: files, variables, where bodies are.
 *
 * Hides: linking directives, sections, prototypes. Bodies are skipped by
 * counting braces and read later, on demand, by ptx_body.c.
 */
#include "simt/ptx/ptx_module.h"

#include <stdlib.h>
#include <string.h>

char *ptx_where(const struct ptx_module *m, const struct insn *in, struct arena *a)
{
    int l = in->loc, top = l;
    while (top >= 0 && m->locs[top].inlined_at >= 0)
        top = m->locs[top].inlined_at;
    /* The innermost line of the file the kernel stands in. */
    while (l >= 0 && m->locs[l].file != m->locs[top].file)
        l = m->locs[l].inlined_at;
    if (l < 0)
        return arena_printf(a, "PTX line %d", in->line);
    const char *file = m->locs[l].file < m->file_count ? m->files[m->locs[l].file] : NULL;
    return arena_printf(a, "%s:%d (PTX line %d)", file ? file : "?", m->locs[l].line, in->line);
}

bool ptx_syntax(struct ptx_token t, const char *wanted, struct error *err)
{
    if (t.kind == TOKEN_END)
        return error_set(err, ERROR_JUDGED, "PTX line %d: the text ends where %s is expected",
                         t.line, wanted);
    return error_set(err, ERROR_JUDGED, "PTX line %d: expected %s, found '%.*s'", t.line, wanted,
                     (int)(t.len < 60 ? t.len : 60), t.s);
}

bool ptx_expect(struct ptx_lexer *lx, char mark, struct error *err)
{
    char wanted[4] = {'\'', mark, '\'', 0};
    struct ptx_token t = lex_next(lx);
    return token_mark(t, mark) || ptx_syntax(t, wanted, err);
}

bool ptx_small_int(struct ptx_lexer *lx, uint64_t limit, uint64_t *out, struct error *err)
{
    struct ptx_token t = lex_next(lx);
    if (token_number(t, out) != NUMBER_INT || *out > limit)
        return ptx_syntax(t, "a number in range", err);
    return true;
}

/* .align 4 .b8 name[16] = {...}, from after the space word to before ';' or ',' or ')'. */
bool ptx_var_read(struct ptx_lexer *lx, struct arena *a, struct ptx_var *v, struct error *err)
{
    v->align = 0;
    for (;;) {
        struct ptx_token t = lex_next(lx);
        uint64_t n;
        if (token_is(t, ".align")) {
            if (!ptx_small_int(lx, 1 << 20, &n, err))
                return false;
            v->align = (unsigned)n;
        } else if (token_is(t, ".ptr") || token_is(t, ".global") || token_is(t, ".shared") ||
                   token_is(t, ".const") || token_is(t, ".local")) {
            continue;
        } else if (token_is(t, ".attribute")) {
            if (!ptx_expect(lx, '(', err) || !lex_skip_balanced(lx, '(', ')'))
                return false;
        } else if (t.kind == TOKEN_WORD && t.s[0] == '.') {
            enum ptx_type ty = ptx_type_of(arena_strndup(a, t.s + 1, t.len - 1));
            if (ty == PT_NONE)
                return ptx_syntax(t, "a type", err);
            v->type = ty;
        } else if (t.kind == TOKEN_WORD) {
            if (v->type == PT_NONE)
                return ptx_syntax(t, "a type", err);
            v->name = arena_strndup(a, t.s, t.len);
            v->line = t.line;
            break;
        } else {
            return ptx_syntax(t, "a name", err);
        }
    }
    uint64_t count = 1;
    while (token_mark(lex_peek(lx), '[')) {
        lex_next(lx);
        uint64_t n = 0;
        if (token_mark(lex_peek(lx), ']'))
            v->external = true;
        else if (!ptx_small_int(lx, UINT64_C(1) << 34, &n, err))
            return false;
        if (!ptx_expect(lx, ']', err))
            return false;
        if (n && count > (UINT64_C(1) << 34) / n)
            return error_set(err, ERROR_JUDGED, "PTX line %d: %s is too large", v->line, v->name);
        count *= n;
    }
    v->bytes = count * ptx_type_bytes(v->type);
    if (!v->align)
        v->align = ptx_type_bytes(v->type) ? ptx_type_bytes(v->type) : 1;
    return true;
}

static bool read_variable(struct ptx_module *m, struct ptx_lexer *lx, enum ptx_space space,
                          struct error *err)
{
    struct ptx_var *v = arena_alloc(m->a, sizeof *v);
    v->space = space;
    if (!ptx_var_read(lx, m->a, v, err))
        return false;
    struct ptx_token t = lex_next(lx);
    if (token_mark(t, '=')) {
        v->init = lx->p;
        do {
            t = lex_next(lx);
        } while (t.kind != TOKEN_END && !token_mark(t, ';'));
        if (t.kind != TOKEN_END)
            v->init_len = (size_t)(t.s - v->init);
    }
    if (!token_mark(t, ';'))
        return ptx_syntax(t, "';'", err);
    GROW(m->a, m->var, m->var_count, m->var_cap);
    strmap_put(&m->vars, v->name, strlen(v->name), m->var_count);
    m->var[m->var_count++] = v;
    return true;
}

static bool read_file(struct ptx_module *m, struct ptx_lexer *lx, struct error *err)
{
    uint64_t n, skip;
    if (!ptx_small_int(lx, 1 << 16, &n, err))
        return false;
    struct ptx_token t = lex_next(lx);
    if (t.kind != TOKEN_STRING)
        return ptx_syntax(t, "a file name", err);
    while (token_mark(lex_peek(lx), ',')) {
        lex_next(lx);
        if (!ptx_small_int(lx, UINT64_MAX, &skip, err))
            return false;
    }
    if ((int)n >= m->file_count) {
        const char **more = arena_array(m->a, n + 16, sizeof *more);
        if (m->file_count)
            memcpy(more, m->files, (size_t)m->file_count * sizeof *more);
        m->files = more;
        m->file_count = (int)n + 16;
    }
    m->files[n] = arena_strndup(m->a, t.s, t.len);
    return true;
}

/* .maxntid 256, 1, 1 and the like, between the parameters and the body. */
static bool read_tuning(struct ptx_lexer *lx, struct ptx_function *f, struct error *err)
{
    for (;;) {
        struct ptx_token t = lex_peek(lx);
        if (t.kind != TOKEN_WORD)
            return true;
        lex_next(lx);
        bool req = token_is(t, ".reqntid"), max = token_is(t, ".maxntid");
        if (token_is(t, ".pragma")) {
            lex_next(lx);
            if (!ptx_expect(lx, ';', err))
                return false;
            continue;
        }
        unsigned product = 1;
        for (int i = 0; lex_peek(lx).kind == TOKEN_NUMBER; i++) {
            uint64_t n;
            if (!ptx_small_int(lx, 1 << 20, &n, err))
                return false;
            product *= (unsigned)n;
            if (req && i < 3)
                f->req_threads[i] = (unsigned)n;
            if (token_mark(lex_peek(lx), ','))
                lex_next(lx);
        }
        if (max)
            f->max_threads = product;
    }
}

static bool read_function(struct ptx_module *m, struct ptx_lexer *lx, bool entry, struct error *err)
{
    struct ptx_function f = {.entry = entry};
    struct ptx_token t;
    while (token_is(lex_peek(lx), ".attribute")) {
        lex_next(lx);
        if (!ptx_expect(lx, '(', err) || !lex_skip_balanced(lx, '(', ')'))
            return false;
    }
    f.header = (size_t)(lx->p - m->text.data);
    f.header_line = lx->line;
    if (token_mark(lex_peek(lx), '(')) {
        lex_next(lx);
        if (!lex_skip_balanced(lx, '(', ')'))
            return ptx_syntax(lex_peek(lx), "')'", err);
    }
    t = lex_next(lx);
    if (t.kind != TOKEN_WORD)
        return ptx_syntax(t, "a function name", err);
    f.name = arena_strndup(m->a, t.s, t.len);
    if (token_mark(lex_peek(lx), '(')) {
        lex_next(lx);
        if (!lex_skip_balanced(lx, '(', ')'))
            return ptx_syntax(lex_peek(lx), "')'", err);
    }
    if (!read_tuning(lx, &f, err))
        return false;
    t = lex_next(lx);
    if (token_mark(t, '{')) {
        f.defined = true;
        f.body = (size_t)(lx->p - m->text.data);
        f.body_line = lx->line;
        if (!lex_skip_balanced(lx, '{', '}'))
            return error_set(err, ERROR_JUDGED, "PTX line %d: the body of %s has no end",
                             f.body_line, f.name);
        f.body_end = (size_t)(lx->p - m->text.data) - 1;
    } else if (!token_mark(t, ';')) {
        return ptx_syntax(t, "a body", err);
    }
    int at = strmap_get(&m->functions, f.name, strlen(f.name));
    if (at >= 0) {
        if (f.defined || !m->fn[at].defined)
            m->fn[at] = f;
        return true;
    }
    GROW(m->a, m->fn, m->fn_count, m->fn_cap);
    strmap_put(&m->functions, f.name, strlen(f.name), m->fn_count);
    m->fn[m->fn_count++] = f;
    return true;
}

static bool read_directive(struct ptx_module *m, struct ptx_lexer *lx, struct ptx_token t,
                           struct error *err)
{
    static const struct {
        const char *word;
        enum ptx_space space;
    } spaces[] = {{".global", PS_GLOBAL}, {".const", PS_CONST}, {".shared", PS_SHARED}};
    for (size_t i = 0; i < ARRAY_LEN(spaces); i++)
        if (token_is(t, spaces[i].word))
            return read_variable(m, lx, spaces[i].space, err);
    if (token_is(t, ".entry") || token_is(t, ".func"))
        return read_function(m, lx, token_is(t, ".entry"), err);
    if (token_is(t, ".file"))
        return read_file(m, lx, err);
    if (token_is(t, ".visible") || token_is(t, ".weak") || token_is(t, ".extern") ||
        token_is(t, ".common"))
        return true;
    if (token_is(t, ".version") || token_is(t, ".address_size")) {
        lex_next(lx);
        return true;
    }
    if (token_is(t, ".target")) {
        do {
            lex_next(lx);
        } while (token_mark(lex_peek(lx), ',') && (lex_next(lx), true));
        return true;
    }
    if (token_is(t, ".section")) {
        lex_next(lx);
        if (!ptx_expect(lx, '{', err))
            return false;
        return lex_skip_balanced(lx, '{', '}') || ptx_syntax(lex_peek(lx), "'}'", err);
    }
    if (token_is(t, ".pragma") || token_is(t, ".alias")) {
        while (t.kind != TOKEN_END && !token_mark(t, ';'))
            t = lex_next(lx);
        return true;
    }
    return ptx_syntax(t, "a directive", err);
}

bool ptx_module_read(struct text text, struct arena *a, struct ptx_module *out, struct error *err)
{
    *out = (struct ptx_module){.text = text, .a = a};
    out->functions = strmap_init(a);
    out->vars = strmap_init(a);
    out->words = ptx_words_init(a);
    struct ptx_lexer lx = {.p = text.data, .end = text.data + text.len, .line = 1};
    for (;;) {
        struct ptx_token t = lex_next(&lx);
        if (t.kind == TOKEN_END)
            return true;
        if (token_mark(t, ';'))
            continue;
        if (t.kind != TOKEN_WORD)
            return ptx_syntax(t, "a directive", err);
        if (!read_directive(out, &lx, t, err))
            return false;
    }
}
