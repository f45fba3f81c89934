/* SPDX-License-Identifier: Apache-2.0 */
/*
 * translate.c - a module's launched kernels as one C file.
 *
 * Hides: the order of the file (ABI, vectors, variables, helpers, kernels,
 * tables) and how PTX initialisers become C ones.
 */
#include "simt/emit/translate.h"

#include "simt/emit/embed.h"
#include "simt/emit/emit.h"
#include "simt/emit/used_text.h"
#include "simt/ir/if_conversion.h"
#include "simt/ir/narrow_addresses.h"
#include "simt/ir/peer_addresses.h"
#include "simt/ir/wgmma_in_flight.h"
#include "simt/ptx/ptx_lex.h"

#include <inttypes.h>
#include <string.h>

enum { LIMIT = 1 << 30 };

/* ---- module variables ---- */

static const char *element_type(unsigned bytes)
{
    return bytes == 1 ? "u8" : bytes == 2 ? "u16" : bytes == 4 ? "u32" : "u64";
}

static bool write_initialiser(struct emit *e, const struct ptx_var *v, struct buf *b,
                              struct error *err)
{
    struct ptx_lexer lx = {v->init, v->init + v->init_len, v->line};
    bool minus = false;
    for (;;) {
        struct ptx_token t = lex_next(&lx);
        uint64_t bits;
        if (t.kind == TOKEN_END)
            return true;
        if (token_mark(t, '-')) {
            minus = true;
            continue;
        }
        if (token_mark(t, '{') || token_mark(t, '}') || token_mark(t, ',') || token_mark(t, '(') ||
            token_mark(t, ')') || token_is(t, "generic"))
            continue;
        if (t.kind == TOKEN_NUMBER && token_number(t, &bits) != NUMBER_BAD) {
            buf_printf(b, "0x%" PRIx64 "ull,", minus ? 0 - bits : bits);
        } else if (t.kind == TOKEN_WORD) {
            int at = strmap_get(&e->unit->m->vars, t.s, t.len);
            uint64_t function = at < 0 ? ptx_function_id(e->unit->m, t.s, t.len) : 0;
            if (function && ptx_type_bytes(v->type) == 8) {
                buf_printf(b, "0x%" PRIx64 "ull,", function);
                continue;
            }
            if (at < 0 || ptx_type_bytes(v->type) != 8)
                return error_set(err, ERROR_JUDGED,
                                 "PTX line %d: the initialiser of %s is not supported", v->line,
                                 v->name);
            struct opnd o = {
                .kind = OPND_SYM, .var = e->unit->m->var[at], .name = e->unit->m->var[at]->name};
            struct insn none = {.text = ""};
            struct ptx_token plus = lex_peek(&lx);
            if (token_mark(plus, '+')) {
                lex_next(&lx);
                if (token_number(lex_next(&lx), &bits) != NUMBER_INT)
                    return error_set(err, ERROR_JUDGED, "PTX line %d: bad offset", v->line);
                o.off = (int64_t)bits;
            }
            buf_printf(b, "%s,", symbol_address(e, &none, &o));
        } else {
            return error_set(err, ERROR_JUDGED, "PTX line %d: bad initialiser of %s", v->line,
                             v->name);
        }
        minus = false;
    }
}

static bool write_variables(struct emit *e, struct buf *out, struct error *err)
{
    struct emit_unit *u = e->unit;
    struct buf values = buf_init(LIMIT), table = buf_init(LIMIT);
    bool ok = true;
    /* Initialisers may name variables that nothing else does: the list can grow. */
    for (int i = 0; i < u->var_count && ok; i++) {
        const struct ptx_var *v = u->m->var[u->var_ids[i]];
        unsigned bytes = ptx_type_bytes(v->type);
        bytes = bytes ? bytes : 1;
        uint64_t count = v->bytes / bytes ? v->bytes / bytes : 1;
        if (v->bytes > (UINT64_C(1) << 30))
            ok = error_set(err, ERROR_JUDGED, "variable %s is larger than this device takes",
                           v->name);
        buf_printf(out, "static %s G%d[%" PRIu64 "] __attribute__((aligned(%u)));\n",
                   element_type(bytes), i, count, v->align < 8 ? 8 : v->align);
        if (v->init) {
            buf_printf(&values, "static %s G%d[%" PRIu64 "] __attribute__((aligned(%u))) = {",
                       element_type(bytes), i, count, v->align < 8 ? 8 : v->align);
            ok = ok && write_initialiser(e, v, &values, err);
            buf_puts(&values, "};\n");
        }
        buf_printf(&table, "{\"%s\", G%d, %" PRIu64 "ull, %d},\n", v->name, i, v->bytes,
                   v->space == PS_CONST);
    }
    buf_add(out, values.data ? values.data : "", values.len);
    buf_printf(out, "static struct sw_var vars[] = {\n%s{0, 0, 0, 0}};\n",
               table.data ? table.data : "");
    buf_release(&values);
    buf_release(&table);
    return ok;
}

/* ---- tables ---- */

/* For a profile: what each block holds of each place. Neighbours of one kind are one row. */
static void write_lines(const struct emit *e, int number, const char *form, struct buf *out)
{
    const struct ir *ir = e->ir;
    buf_printf(out, "static const struct sw_line lines%d_%s[] = {\n", number, form);
    for (int b = 0; b < ir->block_count; b++) {
        int loc = -2, cls = -1, n = 0;
        for (int i = 0; i <= ir->block[b].count; i++) {
            int at = i < ir->block[b].count ? ir->block[b].insn[i] : ir->block[b].term;
            const struct insn *in = at >= 0 ? &e->k->insn[at] : NULL;
            int c = !in ? -1 : i < ir->block[b].count ? (int)op_class(in) : SW_C_BRANCH;
            if (in && in->loc == loc && c == cls && n < UINT16_MAX) {
                n++;
                continue;
            }
            if (n)
                buf_printf(out, "{%d,%d,%d,%d},", b, loc, cls, n);
            loc = in ? in->loc : -2;
            cls = c;
            n = in != NULL;
        }
        if (n)
            buf_printf(out, "{%d,%d,%d,%d},", b, loc, cls, n);
        buf_puts(out, "\n");
    }
    buf_puts(out, "{0, -1, 0, 0}};\n");
}

static void write_classes(const struct emit *e, int number, const char *form, struct buf *out)
{
    const struct ir *ir = e->ir;
    buf_printf(out, "static const u16 classes%d_%s[][SW_C_COUNT] = {\n", number, form);
    for (int b = 0; b < ir->block_count; b++) {
        unsigned n[SW_C_COUNT] = {0};
        for (int i = 0; i < ir->block[b].count; i++)
            n[op_class(&e->k->insn[ir->block[b].insn[i]])]++;
        n[SW_C_BRANCH] += ir->block[b].term >= 0;
        buf_puts(out, "{");
        for (int c = 0; c < SW_C_COUNT; c++)
            buf_printf(out, "%u,", n[c] > UINT16_MAX ? UINT16_MAX : n[c]);
        buf_puts(out, "},\n");
    }
    buf_printf(out, "{0}};\nstatic const u32 tensor%d_%s[] = {", number, form);
    for (int b = 0; b < ir->block_count; b++) {
        unsigned sum = 0, flops;
        for (int i = 0; i < ir->block[b].count; i++)
            if (mma_kind(&e->k->insn[ir->block[b].insn[i]], &flops))
                sum += flops;
        buf_printf(out, "%u,", sum);
    }
    buf_puts(out, "0};\n");
    write_lines(e, number, form, out);
}

static bool uses_rows(const struct ptx_kernel *k)
{
    for (int i = 0; i < k->insn_count; i++)
        for (int j = 0; j < k->insn[i].arg_count; j++) {
            const struct opnd *o = &k->insn[i].args[j];
            if (o->kind == OPND_SREG && (o->sreg == SREG_TID_Y || o->sreg == SREG_TID_Z))
                return true;
        }
    return false;
}

struct unit_out {
    struct buf code, tables, rows;
    int instructions;
};

static bool write_form(struct emit_unit *u, struct ptx_kernel *k, bool rows, int number,
                       struct unit_out *o, struct emit *e, struct error *err)
{
    if (!emit_kernel(u, k, rows, number, &o->code, e, err))
        return false;
    write_classes(e, number, rows ? "rows" : "general", &o->tables);
    return true;
}

static void name_form(struct buf *out, int number, const char *form, int blocks)
{
    if (form)
        buf_printf(out, "FORM(%d, %s, %d), ", number, form, blocks);
    else
        buf_puts(out, "{0}, ");
}

static bool is_texture(const struct insn *in)
{
    static const char *const words[] = {"tex.",  "tld4.",  "txq.", "suld.",
                                        "sust.", "sured.", "suq."};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strncmp(in->text, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

/* An unknown opcode is an error before the passes: its meaning cannot be guessed. */
static bool known_words(struct emit_unit *u, struct ptx_kernel *k, struct error *err)
{
    struct emit e = {.unit = u, .k = k, .a = u->a, .err = err};
    for (int i = 0; i < k->insn_count; i++) {
        if (k->insn[i].op == OP_UNKNOWN && is_texture(&k->insn[i]))
            return emit_fail(&e, &k->insn[i],
                             "textures and surfaces are not supported; read global memory instead");
        if (k->insn[i].op == OP_UNKNOWN)
            return emit_fail(&e, &k->insn[i], "this device does not know the instruction");
        if (insn_has_mod(&k->insn[i], MOD_UNKNOWN))
            return emit_fail(&e, &k->insn[i],
                             arena_printf(u->a, "this device does not know the modifier .%s",
                                          insn_unknown_mod(&k->insn[i], &u->m->words, u->a)));
    }
    return true;
}

/* A kernel to which both shapes of block are one is written once, for both. */
static bool write_kernel(struct emit_unit *u, const char *name, int number, unsigned forms,
                         struct unit_out *o, struct error *err)
{
    struct ptx_kernel k;
    struct emit e = {0};
    struct buf sites = buf_init(LIMIT), regs = buf_init(LIMIT);
    if (!ptx_kernel_read(u->m, name, u->a, &k, err) || !known_words(u, &k, err))
        return false;
    int instructions = k.insn_count;
    peer_addresses(&k, u->a);
    narrow_shared(&k);
    if_convert(&k);
    wgmma_mark(&k, u->a);
    e.sites = &sites;
    e.regs = &regs;
    bool differ = uses_rows(&k);
    bool rows = !differ || !forms || forms & SW_ROWS;
    bool general = differ && (!forms || forms & SW_GENERAL);
    bool ok = !rows || write_form(u, &k, true, number, o, &e, err);
    int frame = e.frame, blocks = e.ir ? e.ir->block_count : 0;
    if (ok && general)
        ok = write_form(u, &k, false, number, o, &e, err);
    if (!ok) {
        buf_release(&sites);
        buf_release(&regs);
        return false;
    }
    if (e.frame > frame)
        frame = e.frame;
    struct buf *t = &o->tables;
    buf_printf(t, "static const struct sw_param params%d[] = {", number);
    for (int i = 0; i < k.param_count; i++)
        buf_printf(t, "{%u, %u, %u}, ", (unsigned)k.params[i]->offset, (unsigned)k.params[i]->bytes,
                   k.params[i]->align);
    buf_printf(t, "{0, 0, 0}};\nstatic const struct sw_site sites%d[] = {\n%s{0}};\n", number,
               sites.data ? sites.data : "");
    buf_printf(t, "static const u32 regs%d[] = {%s0};\n", number, regs.data ? regs.data : "");
    buf_printf(&o->rows, "{\"%s\", ", name);
    name_form(&o->rows, number, rows ? "rows" : NULL, blocks);
    name_form(&o->rows, number, general ? "general" : differ ? NULL : "rows", e.ir->block_count);
    buf_printf(&o->rows,
               "params%d, %d, %u, %" PRIu64 ", %" PRIu64 ", %d, %" PRIu64
               ", %u, {%u, %u, %u}, %d, %d, %d, "
               "sites%d, %d, regs%d, locs, sizeof locs / sizeof *locs},\n",
               number, k.param_count, (unsigned)k.param_bytes, e.shared_static,
               e.shared_align ? e.shared_align : 1, e.uses_dynamic, e.local_bytes,
               k.fn->max_threads, k.fn->req_threads[0], k.fn->req_threads[1], k.fn->req_threads[2],
               instructions, frame, e.strong, number, e.site_count, number);
    o->instructions += instructions;
    buf_release(&sites);
    buf_release(&regs);
    return true;
}

static void write_places(const struct ptx_module *m, struct buf *out)
{
    buf_puts(out, "static const struct sw_loc locs[] = {\n");
    for (int i = 0; i < m->loc_count; i++)
        buf_printf(out, "{%d,%d,%d},", m->locs[i].file, m->locs[i].line, m->locs[i].inlined_at);
    buf_puts(out, "{0, 0, -1}};\nstatic const char *const files[] = {\n");
    for (int i = 0; i < m->file_count; i++) {
        buf_puts(out, "\"");
        for (const char *p = m->files[i] ? m->files[i] : ""; *p; p++)
            if (*p != '"' && *p != '\\' && (unsigned char)*p >= 32)
                buf_putc(out, *p);
        buf_puts(out, "\",\n");
    }
    buf_puts(out, "\"\"};\n");
}

/* What is the kernels' own. */
static void write_source(struct emit_unit *u, struct unit_out *o, struct buf *vars, size_t kernels,
                         struct buf *out)
{
    buf_add(out, vars->data ? vars->data : "", vars->len);
    buf_add(out, u->helpers.data ? u->helpers.data : "", u->helpers.len);
    buf_add(out, o->code.data ? o->code.data : "", o->code.len);
    write_places(u->m, out);
    buf_add(out, o->tables.data ? o->tables.data : "", o->tables.len);
    buf_puts(out,
             "#define FORM(n, f, blocks) {k##n##_##f, blocks, classes##n##_##f, tensor##n##_##f, "
             "lines##n##_##f, sizeof lines##n##_##f / sizeof *lines##n##_##f - 1}\n");
    buf_printf(out, "static const struct sw_kernel kernels[] = {\n%s};\n",
               o->rows.data ? o->rows.data : "");
    buf_printf(out,
               "extern const struct sw_module simt_module;\n"
               "const struct sw_module simt_module = {SW_STACK_MARK, 0, SIMT_ABI_VERSION, %zu, %d, "
               "%d, kernels, "
               "files, vars, &R};\n",
               kernels, u->m->file_count, u->var_count);
}

/* In front of it, what it uses of the interface and of the vectors. */
static void write_library(const struct buf *own, int lanes, struct arena *a, struct buf *out)
{
    const char *const texts[] = {simt_abi_text, simt_vec_text, simt_vec_math_text,
                                 simt_vec_lanes_text, simt_vec_waits_text};
    struct buf all = buf_init(LIMIT);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        buf_puts(&all, texts[i]);
    struct text user = buf_text(own);
    buf_printf(out, "#define LANES %d\n", lanes);
    used_text(buf_text(&all), &user, 1, a, out);
    buf_puts(out, SIMT_OWN_TEXT);
    buf_release(&all);
}

bool simt_translate(struct text ptx, const char *const *kernels, size_t n,
                    const struct translate_options *opt, struct arena *a, struct text *c_source,
                    int *instructions, struct error *err)
{
    struct ptx_module m;
    if (!ptx_module_read(ptx, a, &m, err))
        return false;
    struct emit_unit u = {.m = &m,
                          .a = a,
                          .lanes = opt->lanes ? opt->lanes : 4,
                          .refusal = opt->refusal,
                          .helpers = buf_init(LIMIT),
                          .vars = buf_init(LIMIT)};
    struct unit_out o = {
        .code = buf_init(LIMIT), .tables = buf_init(LIMIT), .rows = buf_init(LIMIT)};
    struct buf vars = buf_init(LIMIT), own = buf_init(LIMIT), all = buf_init(LIMIT);
    u.row_used = arena_array(a, (size_t)op_row_count() + 1, sizeof *u.row_used);
    u.pair_used = arena_array(a, (size_t)op_row_count() * 4 + 4, sizeof *u.pair_used);
    u.var_names = strmap_init(a);
    u.var_ids = arena_array(a, (size_t)m.var_count + 1, sizeof *u.var_ids);
    bool ok = n > 0 || error_set(err, ERROR_USE, "no kernel was named");
    for (size_t i = 0; i < n && ok; i++)
        ok = write_kernel(&u, kernels[i], (int)i, opt->forms ? opt->forms[i] : 0, &o, err);
    if (ok) {
        struct emit e = {.unit = &u, .a = a, .err = err};
        ok = write_variables(&e, &vars, err);
    }
    if (ok) {
        write_source(&u, &o, &vars, n, &own);
        write_library(&own, u.lanes, a, &all);
        buf_add(&all, own.data, own.len);
        if (own.overflowed || all.overflowed)
            ok = error_set(err, ERROR_JUDGED, "the translated kernel is too large");
        *c_source = buf_copy(&all, a);
        *instructions = o.instructions;
    }
    buf_release(&u.helpers);
    buf_release(&u.vars);
    buf_release(&o.code);
    buf_release(&o.tables);
    buf_release(&o.rows);
    buf_release(&vars);
    buf_release(&own);
    buf_release(&all);
    return ok;
}

bool simt_kernel_names(struct text ptx, struct arena *a, const char ***names, size_t *n,
                       struct error *err)
{
    struct ptx_module m;
    if (!ptx_module_read(ptx, a, &m, err))
        return false;
    *names = arena_array(a, (size_t)m.fn_count + 1, sizeof **names);
    *n = 0;
    for (int i = 0; i < m.fn_count; i++)
        if (m.fn[i].entry && m.fn[i].defined)
            (*names)[(*n)++] = m.fn[i].name;
    return true;
}
