/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_body.c - the functions of a plan: parameters, declarations, instructions.
 *
 * Hides PTX's syntax inside a function. What a plan does not need (threads, shared memory, atomics,
 * calls through pointers) is unknown here and so refused.
 */
#include "runner/plan/plan_code.h"
#include "simt/ptx/ptx_module.h"

#include <string.h>

enum { MAX_NESTING = 64, MAX_MODIFIERS = 8, MAX_TABLES = 256 };

struct bank {
    int base, count;
    bool family; /* %rd<9>: the name ends with a number */
};

struct fix {
    int *at;  /* where the label's instruction goes */
    int insn; /* or, when `at` is NULL, whose target */
    const char *label;
    size_t len;
};

struct table {
    int *target;
    int count;
};

struct body {
    struct plan_reader *r;
    struct plan_function *f;
    struct ptx_lexer lx;
    struct strmap banks, slots, labels, tables;
    struct bank *bank;
    int bank_count, bank_cap;
    struct fix *fix;
    int fix_count, fix_cap;
    struct table table[MAX_TABLES];
    int table_count;
    uint32_t top[MAX_NESTING]; /* frame bytes per open brace; a closed one releases its bytes */
    int depth;
    uint32_t used;
};

static bool refuse_word(struct ptx_token t, const char *what, struct error *err)
{
    return error_set(err, ERROR_JUDGED, "a plan may not use %s %.*s", what,
                     (int)(t.len < 100 ? t.len : 100), t.s);
}

/* ---- slots: parameters, variables, arguments of calls -------------------------- */

static bool add_slot(struct body *b, const struct ptx_var *v, int *index, struct error *err)
{
    struct plan_function *f = b->f;
    uint64_t align = v->align < 8 ? 8 : v->align, bytes = (v->bytes + 7) / 8 * 8;
    uint64_t at = (b->used + align - 1) / align * align;
    if (v->align > 256 || v->external)
        return error_set(err, ERROR_JUDGED, "PTX line %d: %.80s", v->line, v->name);
    if (bytes > PLAN_STACK_BYTES || at + bytes > PLAN_STACK_BYTES)
        return error_set(err, ERROR_JUDGED,
                         "a function of the plan has more than %d bytes of variables",
                         PLAN_STACK_BYTES);
    GROW(b->r->a, f->slot, f->slot_count, f->slot_cap);
    f->slot[f->slot_count] = (struct plan_slot){v->name, (uint32_t)at, (uint32_t)bytes};
    strmap_put(&b->slots, v->name, strlen(v->name), f->slot_count);
    b->used = (uint32_t)(at + bytes);
    if (b->used > f->frame_bytes)
        f->frame_bytes = b->used;
    *index = f->slot_count++;
    return true;
}

static bool read_slot(struct body *b, int *index, struct error *err)
{
    struct ptx_var v = {0};
    return ptx_var_read(&b->lx, b->r->a, &v, err) && add_slot(b, &v, index, err);
}

/* "(.param .b64 x, .param .b32 y)", after its "(" */
static bool read_params(struct body *b, int *count, struct error *err)
{
    *count = 0;
    if (token_mark(lex_peek(&b->lx), ')')) {
        lex_next(&b->lx);
        return true;
    }
    for (;;) {
        int slot;
        struct ptx_token t = lex_next(&b->lx);
        if (!token_is(t, ".param"))
            return ptx_syntax(t, ".param", err);
        if (*count == PLAN_MAX_PARAMS)
            return error_set(err, ERROR_JUDGED, "a function with more than %d parameters",
                             PLAN_MAX_PARAMS);
        if (!read_slot(b, &slot, err))
            return false;
        ++*count;
        t = lex_next(&b->lx);
        if (token_mark(t, ')'))
            return true;
        if (!token_mark(t, ','))
            return ptx_syntax(t, "')'", err);
    }
}

bool plan_header_read(struct plan_reader *r, int index, struct error *err)
{
    const struct ptx_function *from = &r->m.fn[index];
    struct plan_function *f = &r->code->fn[index];
    struct body b = {.r = r, .f = f};
    int results = 0;

    b.slots = strmap_init(r->a);
    b.lx = (struct ptx_lexer){.p = r->m.text.data + from->header,
                              .end = r->m.text.data + r->m.text.len,
                              .line = from->header_line};
    f->name = from->name;
    if (token_mark(lex_peek(&b.lx), '(')) {
        lex_next(&b.lx);
        if (!read_params(&b, &results, err))
            return false;
    }
    if (results > 1)
        return error_set(err, ERROR_JUDGED, "a function with more than one result");
    f->result = results - 1;
    f->param_first = results;
    lex_next(&b.lx); /* its name */
    if (!token_mark(lex_peek(&b.lx), '('))
        return true;
    lex_next(&b.lx);
    return read_params(&b, &f->param_count, err);
}

/* ---- registers and operands ------------------------------------------------------- */

static bool add_bank(struct body *b, struct ptx_token name, struct bank bank, struct error *err)
{
    if (bank.count > PLAN_MAX_REGS - b->f->reg_count)
        return error_set(err, ERROR_JUDGED, "a function of the plan has more than %d registers",
                         PLAN_MAX_REGS);
    bank.base = b->f->reg_count;
    b->f->reg_count += bank.count;
    GROW(b->r->a, b->bank, b->bank_count, b->bank_cap);
    b->bank[b->bank_count] = bank;
    strmap_put(&b->banks, name.s, name.len, b->bank_count++);
    return true;
}

/* ".reg .b64 %rd<7>, %SP;" after ".reg" */
static bool read_registers(struct body *b, struct error *err)
{
    lex_next(&b->lx); /* the type is ignored, because instructions have their own */
    for (;;) {
        struct ptx_token name = lex_next(&b->lx), t;
        struct bank bank = {.count = 1};
        uint64_t count;
        if (name.kind != TOKEN_WORD)
            return ptx_syntax(name, "a register name", err);
        if (token_mark(lex_peek(&b->lx), '<')) {
            lex_next(&b->lx);
            if (!ptx_small_int(&b->lx, PLAN_MAX_REGS, &count, err) || !ptx_expect(&b->lx, '>', err))
                return false;
            bank = (struct bank){.count = (int)count, .family = true};
        }
        if (!add_bank(b, name, bank, err))
            return false;
        t = lex_next(&b->lx);
        if (token_mark(t, ';'))
            return true;
        if (!token_mark(t, ','))
            return ptx_syntax(t, "';'", err);
    }
}

/* -1: no such register. */
static int find_register(const struct body *b, struct ptx_token t)
{
    int i = strmap_get(&b->banks, t.s, t.len), number = 0;
    size_t n = t.len;
    if (i >= 0 && !b->bank[i].family)
        return b->bank[i].base;
    while (n > 0 && t.s[n - 1] >= '0' && t.s[n - 1] <= '9')
        n--;
    if (n == t.len || t.len - n > 6)
        return -1;
    for (size_t k = n; k < t.len; k++)
        number = 10 * number + (t.s[k] - '0');
    i = strmap_get(&b->banks, t.s, n);
    return i >= 0 && b->bank[i].family && number < b->bank[i].count ? b->bank[i].base + number : -1;
}

static bool read_register(struct body *b, int *reg, struct error *err)
{
    struct ptx_token t = lex_next(&b->lx);
    *reg = t.kind == TOKEN_WORD ? find_register(b, t) : -1;
    return *reg >= 0 || refuse_word(t, "the register", err);
}

static bool read_number(struct body *b, struct plan_operand *o, struct error *err)
{
    struct ptx_token t = lex_next(&b->lx);
    bool minus = token_mark(t, '-');
    if (minus)
        t = lex_next(&b->lx);
    o->kind = FROM_BITS;
    if (token_number(t, &o->bits) == NUMBER_BAD)
        return ptx_syntax(t, "a number", err);
    o->bits = minus ? 0 - o->bits : o->bits;
    return true;
}

static bool read_name(struct body *b, struct plan_operand *o, struct error *err)
{
    struct ptx_token t = lex_next(&b->lx);
    int reg = find_register(b, t), slot = strmap_get(&b->slots, t.s, t.len);
    int var = strmap_get(&b->r->m.vars, t.s, t.len);
    if (reg >= 0)
        *o = (struct plan_operand){.kind = FROM_REG, .reg = reg};
    else if (slot >= 0)
        *o = (struct plan_operand){.kind = FROM_FRAME, .bits = b->f->slot[slot].at};
    else if (var >= 0)
        *o = (struct plan_operand){.kind = FROM_BITS, .bits = b->r->var_address[var]};
    else if (strmap_get(&b->r->m.functions, t.s, t.len) >= 0)
        return error_set(err, ERROR_JUDGED, "a plan may not take the address of a function");
    else
        return refuse_word(t, "the name", err);
    return true;
}

static bool read_operand(struct body *b, struct plan_operand *o, struct error *err)
{
    struct ptx_token t = lex_peek(&b->lx);
    *o = (struct plan_operand){.kind = FROM_NOTHING};
    if (t.kind == TOKEN_NUMBER || token_mark(t, '-'))
        return read_number(b, o, err);
    if (t.kind == TOKEN_WORD)
        return read_name(b, o, err);
    return ptx_syntax(t, "an operand", err);
}

/* "[%rd1+8]" */
static bool read_address(struct body *b, struct plan_operand *o, struct error *err)
{
    struct plan_operand off;
    if (!ptx_expect(&b->lx, '[', err) || !read_operand(b, o, err))
        return false;
    while (token_mark(lex_peek(&b->lx), '+') || token_mark(lex_peek(&b->lx), '-')) {
        if (token_mark(lex_peek(&b->lx), '+'))
            lex_next(&b->lx);
        if (!read_number(b, &off, err))
            return false;
        o->bits += off.bits;
    }
    return ptx_expect(&b->lx, ']', err);
}

/* ---- instructions: the opcode ------------------------------------------------------- */

static bool part_is(struct text t, const char *word)
{
    return t.len == strlen(word) && memcmp(t.data, word, t.len) == 0;
}

static bool take_type(struct plan_insn *in, struct text part, struct arena *a)
{
    enum ptx_type t = ptx_type_of(arena_strndup(a, part.data, part.len));
    switch (t) {
    case PT_PRED:
    case PT_B8:
    case PT_U8:
    case PT_S8:
    case PT_B16:
    case PT_U16:
    case PT_S16:
    case PT_B32:
    case PT_U32:
    case PT_S32:
    case PT_F32:
    case PT_B64:
    case PT_U64:
    case PT_S64:
    case PT_F64:
        break;
    default:
        return false;
    }
    if (in->type == PT_NONE)
        in->type = (uint8_t)t;
    else if (in->from == PT_NONE && in->op == OP_cvt)
        in->from = (uint8_t)t;
    else
        return false;
    return true;
}

static bool take_compare(struct plan_insn *in, struct text part)
{
    static const struct {
        const char *word;
        uint8_t compare;
        bool unordered;
    } rows[] = {{"eq", CMP_EQ, false}, {"ne", CMP_NE, false},   {"lt", CMP_LT, false},
                {"le", CMP_LE, false}, {"gt", CMP_GT, false},   {"ge", CMP_GE, false},
                {"lo", CMP_LT, false}, {"ls", CMP_LE, false},   {"hi", CMP_GT, false},
                {"hs", CMP_GE, false}, {"equ", CMP_EQ, true},   {"neu", CMP_NE, true},
                {"ltu", CMP_LT, true}, {"leu", CMP_LE, true},   {"gtu", CMP_GT, true},
                {"geu", CMP_GE, true}, {"num", CMP_NUM, false}, {"nan", CMP_NAN, true}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (part_is(part, rows[i].word)) {
            in->compare = rows[i].compare;
            in->unordered = rows[i].unordered;
            return true;
        }
    return false;
}

static bool take_round(struct plan_insn *in, struct text part)
{
    static const char *const modes[] = {"rn", "rz", "rm", "rp"};
    static const char *const to_integer[] = {"rni", "rzi", "rmi", "rpi"};
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (part_is(part, to_integer[i]) && in->op == OP_cvt) {
            in->round = (uint8_t)i;
            in->to_integer = true;
            return true;
        }
        if (part_is(part, modes[i]) && (i == ROUND_NEAREST || in->op == OP_cvt)) {
            in->round = (uint8_t)i;
            return true;
        }
    }
    return false;
}

static bool take_part(struct plan_insn *in, struct text part)
{
    static const char *const parts[] = {"lo", "hi", "wide"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if ((in->op == OP_mul || in->op == OP_mad) && part_is(part, parts[i])) {
            in->part = (uint8_t)i;
            return true;
        }
    return false;
}

/* State spaces are merged here, because addresses distinguish them. */
static bool take_space(const struct plan_insn *in, struct text part)
{
    static const char *const words[] = {"param", "local", "global", "const", "volatile", "nc"};
    if (in->op == OP_cvta && part_is(part, "to"))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (part_is(part, words[i]))
            return in->op == OP_ld || in->op == OP_st || in->op == OP_cvta;
    return false;
}

static bool take_modifier(struct plan_insn *in, struct text part, struct arena *a)
{
    bool memory = in->op == OP_ld || in->op == OP_st;
    if (memory && (part_is(part, "v2") || part_is(part, "v4"))) {
        in->count = (uint8_t)(part.data[1] - '0');
        return true;
    }
    if (part_is(part, "uni"))
        return in->op == OP_bra || in->op == OP_call || in->op == OP_ret || in->op == OP_brx;
    if (part_is(part, "idx"))
        return in->op == OP_brx;
    if (in->op == OP_setp && take_compare(in, part))
        return true;
    return take_part(in, part) || take_space(in, part) || take_round(in, part) ||
           take_type(in, part, a);
}

static bool read_opcode(struct body *b, struct ptx_token t, struct plan_insn *in, struct error *err)
{
    const char *end = t.s + t.len, *dot = memchr(t.s, '.', t.len);
    struct text part = {t.s, (size_t)((dot ? dot : end) - t.s)};
    int op = 0, modifiers = 0;
    while (op < PLAN_OP_COUNT && !part_is(part, plan_op_names[op]))
        op++;
    if (op == PLAN_OP_COUNT)
        return refuse_word(t, "the instruction", err);
    in->op = (uint8_t)op;
    in->count = 1;
    while (part.data + part.len < end) {
        part.data += part.len + 1;
        dot = memchr(part.data, '.', (size_t)(end - part.data));
        part.len = (size_t)((dot ? dot : end) - part.data);
        if (++modifiers > MAX_MODIFIERS || !take_modifier(in, part, b->r->a))
            return refuse_word(t, "the instruction", err);
    }
    return true;
}

/* ---- instructions: operands ----------------------------------------------------------- */

static bool elements(struct body *b, struct plan_insn *in, struct error *err)
{
    if (in->count == 1)
        return read_operand(b, &in->a[0], err);
    if (!ptx_expect(&b->lx, '{', err))
        return false;
    for (int i = 0; i < in->count; i++)
        if ((i > 0 && !ptx_expect(&b->lx, ',', err)) || !read_operand(b, &in->a[i], err))
            return false;
    return ptx_expect(&b->lx, '}', err);
}

static bool read_access(struct body *b, struct plan_insn *in, struct error *err)
{
    bool load = in->op == OP_ld;
    if (load ? !elements(b, in, err) : !read_address(b, &in->address, err))
        return false;
    if (!ptx_expect(&b->lx, ',', err))
        return false;
    if (load ? !read_address(b, &in->address, err) : !elements(b, in, err))
        return false;
    for (int i = 0; load && i < in->count; i++)
        if (in->a[i].kind != FROM_REG)
            return error_set(err, ERROR_JUDGED, "a load into something that is not a register");
    return true;
}

static void add_fix(struct body *b, int *at, int insn, struct ptx_token label)
{
    GROW(b->r->a, b->fix, b->fix_count, b->fix_cap);
    b->fix[b->fix_count++] = (struct fix){at, insn, label.s, label.len};
}

/* "brx.idx %r1, table;" */
static bool read_switch(struct body *b, struct plan_insn *in, struct error *err)
{
    struct ptx_token t;
    int i;
    if (!read_operand(b, &in->a[1], err) || !ptx_expect(&b->lx, ',', err))
        return false;
    t = lex_next(&b->lx);
    i = strmap_get(&b->tables, t.s, t.len);
    if (t.kind != TOKEN_WORD || i < 0)
        return ptx_syntax(t, "a table of targets", err);
    in->list = b->table[i].target;
    in->list_count = b->table[i].count;
    return true;
}

/* "(a, b)" after its "(": slots of this function */
static bool read_arguments(struct body *b, int *list, int *count, struct error *err)
{
    for (*count = 0;;) {
        struct ptx_token t = lex_next(&b->lx);
        if (token_mark(t, ')'))
            return true;
        int slot = t.kind == TOKEN_WORD ? strmap_get(&b->slots, t.s, t.len) : -1;
        if (slot < 0 || *count == PLAN_MAX_PARAMS)
            return ptx_syntax(t, "an argument", err);
        list[(*count)++] = slot;
        if (token_mark(lex_peek(&b->lx), ','))
            lex_next(&b->lx);
    }
}

static bool check_call(struct body *b, const struct plan_insn *in, struct error *err)
{
    const struct plan_function *to = &b->r->code->fn[in->target];
    if (!b->r->m.fn[in->target].defined && to->call == PLAN_CALL_NONE)
        return error_set(err, ERROR_JUDGED,
                         "a plan may not call %.80s: it has the functions of kernel.h and its own",
                         to->name);
    if (b->r->m.fn[in->target].entry || in->list_count != to->param_count ||
        (in->result >= 0 && to->result < 0))
        return error_set(err, ERROR_JUDGED, "a call of %.80s with other arguments", to->name);
    return true;
}

/* "call.uni (result), name, (a, b);" */
static bool read_call(struct body *b, struct plan_insn *in, struct error *err)
{
    int list[PLAN_MAX_PARAMS], count = 0;
    struct ptx_token t;
    if (token_mark(lex_peek(&b->lx), '(')) {
        lex_next(&b->lx);
        if (!read_arguments(b, list, &count, err) || count != 1 || !ptx_expect(&b->lx, ',', err))
            return err->kind != ERROR_NONE ? false : ptx_syntax(lex_peek(&b->lx), "a result", err);
        in->result = list[0];
        count = 0;
    }
    t = lex_next(&b->lx);
    in->target = t.kind == TOKEN_WORD ? strmap_get(&b->r->m.functions, t.s, t.len) : -1;
    if (in->target < 0)
        return error_set(err, ERROR_JUDGED, "a plan may not call through a pointer");
    if (token_mark(lex_peek(&b->lx), ',')) {
        lex_next(&b->lx);
        if (!ptx_expect(&b->lx, '(', err) || !read_arguments(b, list, &count, err))
            return false;
    }
    int *kept = arena_array(b->r->a, (size_t)count + 1, sizeof *kept);
    memcpy(kept, list, (size_t)count * sizeof *kept);
    in->list = kept;
    in->list_count = count;
    return check_call(b, in, err);
}

static int operand_count(const struct plan_insn *in)
{
    switch (in->op) {
    case OP_ret:
    case OP_exit:
    case OP_trap:
        return 0;
    case OP_mov:
    case OP_cvta:
    case OP_cvt:
    case OP_neg:
    case OP_abs:
    case OP_not:
    case OP_popc:
    case OP_clz:
    case OP_sqrt:
    case OP_rcp:
        return 2;
    case OP_mad:
    case OP_fma:
    case OP_selp:
    case OP_prmt:
        return 4;
    default:
        return 3;
    }
}

static bool read_plain(struct body *b, struct plan_insn *in, struct error *err)
{
    int count = operand_count(in);
    if (count > 0 && (in->type == PT_NONE || (in->op == OP_cvt && in->from == PT_NONE)))
        return error_set(err, ERROR_JUDGED, "an instruction (%s) without a type",
                         plan_op_names[in->op]);
    for (int i = 0; i < count; i++)
        if ((i > 0 && !ptx_expect(&b->lx, ',', err)) || !read_operand(b, &in->a[i], err))
            return false;
    if (count > 0 && in->a[0].kind != FROM_REG)
        return error_set(err, ERROR_JUDGED, "a result that is not a register");
    return true;
}

static bool read_operands(struct body *b, struct plan_insn *in, int index, struct error *err)
{
    switch (in->op) {
    case OP_ld:
    case OP_st:
        if (in->type == PT_NONE || in->type == PT_PRED)
            return error_set(err, ERROR_JUDGED, "an access without a type");
        return read_access(b, in, err);
    case OP_bra: {
        struct ptx_token t = lex_next(&b->lx);
        if (t.kind != TOKEN_WORD)
            return ptx_syntax(t, "a label", err);
        add_fix(b, NULL, index, t);
        return true;
    }
    case OP_brx:
        return read_switch(b, in, err);
    case OP_call:
        return read_call(b, in, err);
    default:
        return read_plain(b, in, err);
    }
}

/* ---- statements ------------------------------------------------------------------------- */

static bool add_insn(struct body *b, struct plan_insn in, struct error *err)
{
    struct plan_code *c = b->r->code;
    if (c->insn_count == PLAN_MAX_INSNS)
        return error_set(err, ERROR_JUDGED, "the plan has more than %d instructions",
                         PLAN_MAX_INSNS);
    GROW(b->r->a, c->insn, c->insn_count, c->insn_cap);
    c->insn[c->insn_count++] = in;
    return true;
}

static bool read_instruction(struct body *b, struct error *err)
{
    struct plan_insn in = {.pred = -1, .result = -1, .line = b->r->line};
    struct ptx_token t = lex_next(&b->lx);
    if (token_mark(t, '@')) {
        if (token_mark(lex_peek(&b->lx), '!')) {
            lex_next(&b->lx);
            in.pred_not = true;
        }
        if (!read_register(b, &in.pred, err))
            return false;
        t = lex_next(&b->lx);
    }
    if (t.kind != TOKEN_WORD)
        return ptx_syntax(t, "an instruction", err);
    return read_opcode(b, t, &in, err) && read_operands(b, &in, b->r->code->insn_count, err) &&
           ptx_expect(&b->lx, ';', err) && add_insn(b, in, err);
}

/* "name: .branchtargets a, b;" after ".branchtargets" */
static bool read_targets(struct body *b, struct ptx_token name, struct error *err)
{
    struct ptx_token t[2];
    struct table *to = &b->table[b->table_count];
    struct ptx_lexer ahead = b->lx;
    if (b->table_count == MAX_TABLES)
        return error_set(err, ERROR_JUDGED, "more than %d switches in a function", MAX_TABLES);
    for (to->count = 0;; to->count++) {
        t[0] = lex_next(&ahead);
        t[1] = lex_next(&ahead);
        if (t[0].kind != TOKEN_WORD || to->count == PLAN_MAX_TARGETS)
            return ptx_syntax(t[0], "a label", err);
        if (token_mark(t[1], ';'))
            break;
        if (!token_mark(t[1], ','))
            return ptx_syntax(t[1], "';'", err);
    }
    to->count++;
    to->target = arena_array(b->r->a, (size_t)to->count, sizeof *to->target);
    for (int i = 0; i < to->count; i++) {
        add_fix(b, &to->target[i], -1, lex_next(&b->lx));
        lex_next(&b->lx);
    }
    strmap_put(&b->tables, name.s, name.len, b->table_count++);
    return true;
}

static bool read_label(struct body *b, struct error *err)
{
    struct ptx_token name = lex_next(&b->lx);
    lex_next(&b->lx); /* : */
    if (token_is(lex_peek(&b->lx), ".branchtargets")) {
        lex_next(&b->lx);
        return read_targets(b, name, err);
    }
    strmap_put(&b->labels, name.s, name.len, b->r->code->insn_count);
    return true;
}

/* ".loc 1 31 5", possibly with inlined_at: the candidate's own line is kept */
static bool read_loc(struct body *b, struct error *err)
{
    uint64_t file, line, column;
    if (!ptx_small_int(&b->lx, 1 << 30, &file, err) ||
        !ptx_small_int(&b->lx, 1 << 30, &line, err) ||
        !ptx_small_int(&b->lx, 1 << 30, &column, err))
        return false;
    if ((int)file != b->r->user_file)
        b->r->line = 0;
    else if (line > 0)
        b->r->line = (int)line;
    while (token_mark(lex_peek(&b->lx), ',')) {
        struct ptx_token t;
        lex_next(&b->lx);
        t = lex_next(&b->lx); /* function_name x+0, inlined_at 1 31 5 */
        if (token_is(t, "inlined_at")) {
            for (int i = 0; i < 3; i++)
                lex_next(&b->lx);
        } else {
            lex_next(&b->lx);
            if (token_mark(lex_peek(&b->lx), '+')) {
                lex_next(&b->lx);
                lex_next(&b->lx);
            }
        }
    }
    return true;
}

static bool read_directive(struct body *b, struct ptx_token t, struct error *err)
{
    int slot;
    lex_next(&b->lx);
    if (token_is(t, ".reg"))
        return read_registers(b, err);
    if (token_is(t, ".param") || token_is(t, ".local"))
        return read_slot(b, &slot, err) && ptx_expect(&b->lx, ';', err);
    if (token_is(t, ".loc"))
        return read_loc(b, err);
    if (token_is(t, ".pragma")) {
        lex_next(&b->lx);
        return ptx_expect(&b->lx, ';', err);
    }
    return refuse_word(t, "the directive", err);
}

static bool read_brace(struct body *b, bool open, struct error *err)
{
    lex_next(&b->lx);
    if (open ? b->depth == MAX_NESTING : b->depth == 0)
        return error_set(err, ERROR_JUDGED, "PTX line %d: unbalanced braces", b->lx.line);
    if (open)
        b->top[b->depth++] = b->used;
    else
        b->used = b->top[--b->depth];
    return true;
}

static bool read_statement(struct body *b, struct error *err)
{
    struct ptx_token t = lex_peek(&b->lx);
    struct ptx_lexer ahead = b->lx;
    if (token_mark(t, '{') || token_mark(t, '}'))
        return read_brace(b, token_mark(t, '{'), err);
    if (token_mark(t, ';')) {
        lex_next(&b->lx);
        return true;
    }
    if (t.kind == TOKEN_WORD && t.s[0] == '.')
        return read_directive(b, t, err);
    lex_next(&ahead);
    if (t.kind == TOKEN_WORD && token_mark(lex_next(&ahead), ':'))
        return read_label(b, err);
    return read_instruction(b, err);
}

static bool resolve(struct body *b, struct error *err)
{
    for (int i = 0; i < b->fix_count; i++) {
        const struct fix *x = &b->fix[i];
        int at = strmap_get(&b->labels, x->label, x->len);
        if (at < 0)
            return error_set(err, ERROR_JUDGED, "a jump to %.*s, which is not there",
                             (int)(x->len < 80 ? x->len : 80), x->label);
        if (x->at != NULL)
            *x->at = at;
        else
            b->r->code->insn[x->insn].target = at;
    }
    return true;
}

bool plan_body_read(struct plan_reader *r, int index, struct error *err)
{
    const struct ptx_function *from = &r->m.fn[index];
    struct plan_function *f = &r->code->fn[index];
    struct body *b = arena_alloc(r->a, sizeof *b);

    b->r = r;
    b->f = f;
    b->used = f->frame_bytes;
    b->banks = strmap_init(r->a);
    b->slots = strmap_init(r->a);
    b->labels = strmap_init(r->a);
    b->tables = strmap_init(r->a);
    b->lx = (struct ptx_lexer){.p = r->m.text.data + from->body,
                               .end = r->m.text.data + from->body_end,
                               .line = from->body_line};
    for (int i = 0; i < f->slot_count; i++)
        strmap_put(&b->slots, f->slot[i].name, strlen(f->slot[i].name), i);
    f->first = r->code->insn_count;
    r->line = 0;
    while (lex_peek(&b->lx).kind != TOKEN_END)
        if (!read_statement(b, err))
            return false;
    /* Reaching the end of a body returns. */
    return add_insn(b, (struct plan_insn){.op = OP_ret, .pred = -1, .result = -1}, err) &&
           resolve(b, err);
}
