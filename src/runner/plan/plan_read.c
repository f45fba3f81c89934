/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_read.c - a plan's PTX as a module: constants, functions, the entry.
 *
 * Hides where variables are put. simt's reader splits the text; plan_body.c reads bodies.
 */
#include "runner/plan/plan_code.h"
#include "simt/ptx/ptx_module.h"

#include <string.h>

const char *const plan_op_names[] = {
#define PLAN_OP(name) #name,
    PLAN_OPS(PLAN_OP)
#undef PLAN_OP
};

/* ---- module variables --------------------------------------------------- */

static bool place_variables(struct plan_reader *r, struct error *err)
{
    uint64_t at = 0;
    r->var_address = arena_array(r->a, (size_t)r->m.var_count + 1, sizeof *r->var_address);
    for (int i = 0; i < r->m.var_count; i++) {
        const struct ptx_var *v = r->m.var[i];
        if (v->space == PS_SHARED || v->external)
            return error_set(err, ERROR_JUDGED, "a plan has no shared or external memory (%.80s)",
                             v->name);
        if (v->align == 0 || v->align > 256)
            return error_set(err, ERROR_JUDGED, "PTX line %d: bad alignment", v->line);
        at = (at + v->align - 1) / v->align * v->align;
        if (v->bytes > PLAN_MAX_CONST_BYTES || at + v->bytes > PLAN_MAX_CONST_BYTES)
            return error_set(err, ERROR_JUDGED, "the plan's tables have more than %d bytes",
                             PLAN_MAX_CONST_BYTES);
        r->var_address[i] = PLAN_CONST_BASE + at;
        at += v->bytes;
    }
    r->code->constant_bytes = (uint32_t)at;
    r->code->constants = arena_alloc(r->a, at + 1);
    return true;
}

/* A number, or generic(name) and name: where a variable lies. */
static bool read_value(struct plan_reader *r, struct ptx_lexer *lx, uint64_t *out,
                       struct error *err)
{
    struct ptx_token t = lex_next(lx);
    bool minus = token_mark(t, '-');
    if (minus)
        t = lex_next(lx);
    if (t.kind == TOKEN_NUMBER) {
        if (token_number(t, out) == NUMBER_BAD)
            return ptx_syntax(t, "a number", err);
        *out = minus ? 0 - *out : *out;
        return true;
    }
    bool wrapped = token_is(t, "generic");
    if (wrapped && !ptx_expect(lx, '(', err))
        return false;
    if (wrapped)
        t = lex_next(lx);
    int var = t.kind == TOKEN_WORD ? strmap_get(&r->m.vars, t.s, t.len) : -1;
    if (var < 0)
        return error_set(err, ERROR_JUDGED,
                         "a table of the plan points to %.*s, which is not a table",
                         (int)(t.len < 80 ? t.len : 80), t.s);
    *out = r->var_address[var];
    return !wrapped || ptx_expect(lx, ')', err);
}

/* = 5, = {1, 2, 3}; nested braces only group. */
static bool fill_variable(struct plan_reader *r, int index, struct error *err)
{
    const struct ptx_var *v = r->m.var[index];
    struct ptx_lexer lx = {.p = v->init, .end = v->init + v->init_len, .line = v->line};
    unsigned size = ptx_type_bytes(v->type);
    unsigned char *to = r->code->constants + (r->var_address[index] - PLAN_CONST_BASE);
    if (size == 0 || size > 8)
        return error_set(err, ERROR_JUDGED, "PTX line %d: a table of a type that plans do not have",
                         v->line);
    for (uint64_t n = 0;;) {
        struct ptx_token t = lex_peek(&lx);
        uint64_t value;
        if (t.kind == TOKEN_END)
            return true;
        if (token_mark(t, '{') || token_mark(t, '}') || token_mark(t, ',')) {
            lex_next(&lx);
            continue;
        }
        if (!read_value(r, &lx, &value, err))
            return false;
        if ((n + 1) * size > v->bytes)
            return error_set(err, ERROR_JUDGED, "PTX line %d: more values than room", v->line);
        memcpy(to + n++ * size, &value, size); /* little-endian, like everything here */
    }
}

/* ---- functions ------------------------------------------------------------ */

static const struct known_call {
    const char *name;
    enum plan_call call;
    int params;
    bool result;
} known_calls[] = {
    {"cutegen_plan_launch", PLAN_CALL_LAUNCH, 1, true},
    {"cutegen_plan_clear", PLAN_CALL_CLEAR, 4, true},
    {"cutegen_plan_workspace", PLAN_CALL_WORKSPACE, 2, true},
    {"cutegen_plan_map", PLAN_CALL_MAP, 3, true},
    {"cutegen_plan_fail", PLAN_CALL_FAIL, 2, true},
    {"cutegen_plan_return", PLAN_CALL_RETURN, 1, false},
};

/*
 * A function without a body is one of the planner's or unknown.
 * plan_body.c refuses calls of unknown ones. */
static bool know_call(struct plan_function *f, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(known_calls); i++) {
        const struct known_call *k = &known_calls[i];
        if (strcmp(f->name, k->name) != 0)
            continue;
        if (f->param_count != k->params || (f->result >= 0) != k->result)
            return error_set(err, ERROR_JUDGED, "%s is declared in another way than in plan.h",
                             k->name);
        f->call = k->call;
    }
    return true;
}

static int find_user_file(const struct ptx_module *m)
{
    for (int i = 0; i < m->file_count; i++) {
        const char *s = m->files[i], *slash = s ? strrchr(s, '/') : NULL;
        if (s && strcmp(slash ? slash + 1 : s, "candidate.cu") == 0)
            return i;
    }
    return -1;
}

static bool read_functions(struct plan_reader *r, struct error *err)
{
    struct plan_code *c = r->code;
    if (r->m.fn_count > PLAN_MAX_FUNCTIONS)
        return error_set(err, ERROR_JUDGED, "the plan has more than %d functions",
                         PLAN_MAX_FUNCTIONS);
    c->fn_count = r->m.fn_count;
    c->fn = arena_array(r->a, (size_t)c->fn_count + 1, sizeof *c->fn);
    for (int i = 0; i < c->fn_count; i++)
        if (!plan_header_read(r, i, err) || (!r->m.fn[i].defined && !know_call(&c->fn[i], err)))
            return false;
    for (int i = 0; i < c->fn_count; i++)
        if (r->m.fn[i].defined && !plan_body_read(r, i, err))
            return false;
    return true;
}

bool plan_code_read(struct text ptx, struct arena *a, struct plan_code *out, int *line,
                    struct error *err)
{
    struct plan_reader r = {.code = out, .a = a};
    *out = (struct plan_code){.entry = -1};
    *line = 0;
    if (ptx.len > PLAN_MAX_PTX_BYTES)
        return error_set(err, ERROR_JUDGED, "the plan's code has more than %d bytes",
                         PLAN_MAX_PTX_BYTES);
    if (!ptx_module_read(ptx, a, &r.m, err) || !place_variables(&r, err))
        return false;
    for (int i = 0; i < r.m.var_count; i++)
        if (r.m.var[i]->init != NULL && !fill_variable(&r, i, err))
            return false;
    r.user_file = find_user_file(&r.m);
    if (!read_functions(&r, err)) {
        *line = r.line;
        return false;
    }
    out->entry = strmap_get(&r.m.functions, PLAN_ENTRY, strlen(PLAN_ENTRY));
    if (out->entry < 0 || !r.m.fn[out->entry].defined || !r.m.fn[out->entry].entry)
        return error_set(err, ERROR_JUDGED,
                         "the file has no plan: write CUTEGEN_PLAN(call) { ... } under #ifdef "
                         "CUTEGEN_HOST");
    if (out->fn[out->entry].param_count != 1)
        return error_set(err, ERROR_JUDGED, PLAN_ENTRY " takes one parameter");
    return true;
}
