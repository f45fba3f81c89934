/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit_alu.c - arithmetic, from the rows of ptx_ops.def.
 *
 * Hides: how one row's C text becomes scalar code for uniform registers,
 * vector code in a segment (64-bit lanes as two halves, f16 pairs twice), or
 * a helper that goes lane by lane.
 */
#include "simt/emit/emit.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static const struct op_row rows[] = {
#define EACH HOW_EACH
#define CALL HOW_CALL
#define LANE HOW_LANE
#define OP(op, required, optional, types, sig, how, cls, text)                                     \
    {OP_##op,                                                                                      \
     {LIST(MOD, required)},                                                                        \
     {LIST(MOD, optional)},                                                                        \
     {LIST(MOD, types)},                                                                           \
     sig,                                                                                          \
     how,                                                                                          \
     SW_C_##cls,                                                                                   \
     text},
#include "simt/ptx/ptx_ops.def"
#undef EACH
#undef CALL
#undef LANE
};

int op_row_count(void)
{
    return (int)ARRAY_LEN(rows);
}

/* ---- finding the row ---- */

static bool list_has(const uint16_t *list, enum ptx_mod mod)
{
    for (int i = 0; i < MAX_LIST && list[i]; i++)
        if (list[i] == mod)
            return true;
    return false;
}

static bool row_matches(const struct op_row *row, const struct insn *in)
{
    if (!list_has(row->types, (enum ptx_mod)in->type))
        return false;
    for (int i = 0; i < MAX_LIST && row->required[i]; i++)
        if (!insn_has_mod(in, row->required[i]))
            return false;
    for (int i = 0; i < in->mod_count; i++) {
        enum ptx_mod mod = in->mods[i];
        if ((enum ptx_type)mod != in->type && !list_has(row->required, mod) &&
            !list_has(row->optional, mod))
            return false;
    }
    return true;
}

const struct op_row *op_find(const struct insn *in, enum ptx_op op)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].op == op && row_matches(&rows[i], in))
            return &rows[i];
    return NULL;
}

/* ---- text of a row with operands in it ---- */

enum form { FORM_SCALAR, FORM_VECTOR };

static bool wide(char letter)
{
    return letter == 'Q' || letter == 'T' || letter == 'D' || letter == 'W';
}

static bool row_is_wide(const struct op_row *row)
{
    for (const char *p = row->sig; *p; p++)
        if (wide(*p))
            return true;
    return false;
}

static const char *macro_text(const char *word, size_t n, enum form form, bool is_wide)
{
    static const struct {
        const char *name, *text[4]; /* scalar, scalar wide, vector, vector wide */
    } macros[] = {
        {"MASK", {"SMASK", "SMASKQ", "VMASK", "VMASKQ"}},
        {"UNS", {"(u32)", "(u64)", "(I)", "(VQ)"}},
        {"SGN", {"(s32)", "(s64)", "(S)", "(VT)"}},
        {"FLT", {"u2f", "u2d", "(F)", "(VD)"}},
    };
    for (size_t i = 0; i < ARRAY_LEN(macros); i++)
        if (strlen(macros[i].name) == n && memcmp(macros[i].name, word, n) == 0)
            return macros[i].text[2 * (form == FORM_VECTOR) + is_wide];
    return NULL;
}

/* Puts the operand texts for x y z w. */
static const char *fill_text(struct emit *e, const char *text, const char *const *arg,
                             enum form form, bool is_wide)
{
    struct buf b = buf_init(1 << 16);
    for (const char *p = text; *p;) {
        if (!isalpha((unsigned char)*p) && *p != '_') {
            buf_putc(&b, *p++);
            continue;
        }
        size_t n = 1;
        while (isalnum((unsigned char)p[n]) || p[n] == '_')
            n++;
        bool after_number = p > text && isalnum((unsigned char)p[-1]);
        const char *macro = macro_text(p, n, form, is_wide);
        static const char names[] = "xyzw";
        const char *which = n == 1 && !after_number ? strchr(names, *p) : NULL;
        if (which && *which)
            buf_puts(&b, arg[which - names]);
        else if (macro)
            buf_puts(&b, macro);
        else
            buf_add(&b, p, n);
        p += n;
    }
    const char *out = buf_copy(&b, e->a).data;
    buf_release(&b);
    return out;
}

/* An operand used more than once must be a name. */
const char *named(struct emit *e, const char *text, const char *type)
{
    bool simple = true;
    for (const char *p = text; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_')
            simple = false;
    if (simple)
        return text;
    int t = e->temp++;
    buf_printf(e->out, "%s x%d = %s;\n", type, t, text);
    return arena_printf(e->a, "x%d", t);
}

static const char *vector_type(char letter)
{
    switch (letter) {
    case 'S':
    case 'J':
        return "S";
    case 'F':
    case 'h':
    case 'b':
        return "F";
    case 'P':
        return "M";
    case 'Q':
    case 'T':
    case 'D':
    case 'W':
        return "Q";
    default:
        return "I";
    }
}

static const char *scalar_type(char letter)
{
    switch (letter) {
    case 'S':
    case 'J':
    case 'P':
        return "s32";
    case 'F':
    case 'h':
    case 'b':
        return "float";
    case 'Q':
    case 'W':
        return "u64";
    case 'T':
        return "s64";
    case 'D':
        return "double";
    default:
        return "u32";
    }
}

/* ---- helpers that go lane by lane ---- */

static const char *lane_read(char letter, const char *name, struct arena *a)
{
    switch (letter) {
    case 'S':
        return arena_printf(a, "((const s32 *)&%s)[i]", name);
    case 'J':
        return arena_printf(a, "(s32)(s16)((const u32 *)&%s)[i]", name);
    case 'F':
        return arena_printf(a, "((const float *)&%s)[i]", name);
    case 'Q':
    case 'W':
        return arena_printf(a, "((const u64 *)&%s)[i]", name);
    case 'T':
        return arena_printf(a, "((const s64 *)&%s)[i]", name);
    case 'D':
        return arena_printf(a, "((const double *)&%s)[i]", name);
    case 'P':
        return arena_printf(a, "((const s32 *)&%s)[i]", name);
    default:
        return arena_printf(a, "((const u32 *)&%s)[i]", name);
    }
}

static const char *raw_type(char letter)
{
    if (wide(letter))
        return "Q";
    return letter == 'F' ? "F" : letter == 'P' ? "M" : "I";
}

/* Division and its like: four lanes go from register to register, not through memory. */
static bool short_row(const struct op_row *row)
{
    enum { SHORT = 64 };
    return (strcmp(row->sig, "I=SS") == 0 || strcmp(row->sig, "I=II") == 0) &&
           strlen(row->text) < SHORT;
}

static void lane_helper(struct emit *e, const struct op_row *row)
{
    struct emit_unit *u = e->unit;
    int n = (int)(row - rows);
    if (u->row_used[n])
        return;
    u->row_used[n] = true;
    struct buf *b = &u->helpers;
    const char *ops = row->sig + 2, *names[] = {"x", "y", "z", "w"};
    buf_printf(b, "AI %s s_%d(", scalar_type(row->sig[0]), n);
    for (size_t i = 0; ops[i]; i++)
        buf_printf(b, "%s%s %s", i ? ", " : "", scalar_type(ops[i]), names[i]);
    buf_printf(b, ") { return %s; }\nNI %s v_%d(", row->text, raw_type(row->sig[0]), n);
    for (size_t i = 0; ops[i]; i++)
        buf_printf(b, "%s%s %s", i ? ", " : "", raw_type(ops[i]), names[i]);
    if (u->lanes == 4 && short_row(row)) {
        buf_puts(b, ") { return (I){");
        for (int lane = 0; lane < 4; lane++) {
            buf_printf(b, "%ss_%d(", lane ? ", " : "", n);
            for (size_t i = 0; ops[i]; i++)
                buf_printf(b, "%s(%s)%s[%d]", i ? ", " : "", scalar_type(ops[i]), names[i], lane);
            buf_puts(b, ")");
        }
        buf_puts(b, "}; }\n");
        return;
    }
    buf_printf(b, ") { %s r; for (int i = 0; i < LANES; i++) ((%s *)&r)[i] = s_%d(",
               raw_type(row->sig[0]), scalar_type(row->sig[0]), n);
    for (size_t i = 0; ops[i]; i++)
        buf_printf(b, "%s%s", i ? ", " : "", lane_read(ops[i], names[i], u->a));
    buf_puts(b, "); return r; }\n");
}

/* ---- one instruction from its row ---- */

static char raw_letter(char letter)
{
    if (wide(letter))
        return 'Q';
    return letter == 'F' ? 'F' : letter == 'P' ? 'P' : letter == 'H' || letter == 'J' ? 'H' : 'I';
}

struct row_use {
    const struct op_row *row;
    const struct insn *in;
    const struct opnd *ops; /* first source operand */
    bool ftz, sat;
    const char *const
        *given; /* names of the operands of a pair of halves; NULL: the instruction's */
};

static const char *wrapped(struct emit *e, const struct row_use *u, const char *t, char letter)
{
    bool f = letter == 'F';
    if (u->sat && (f || letter == 'h' || letter == 'k'))
        t = arena_printf(e->a, "%s_satf(%s)", e->vec ? "V" : "S", t);
    if (u->ftz && f)
        t = arena_printf(e->a, "%s_ftz(%s)", e->vec ? "V" : "S", t);
    return t;
}

static const char *lane_call(struct emit *e, const struct row_use *u)
{
    lane_helper(e, u->row);
    const char *ops = u->row->sig + 2, *args = "";
    for (size_t i = 0; ops[i]; i++) {
        char l = e->vec ? raw_letter(ops[i]) : ops[i];
        const char *v = value(e, u->in, &u->ops[i], l);
        if (u->ftz && ops[i] == 'F')
            v = arena_printf(e->a, "%s_ftz(%s)", e->vec ? "V" : "S", v);
        if (e->vec && l == 'I' && v[0] == '(' && v[1] == 'S')
            v = arena_printf(e->a, "(I)%s", v);
        args = arena_printf(e->a, "%s%s%s", args, i ? ", " : "", v);
    }
    return arena_printf(e->a, "%c_%d(%s)", e->vec ? 'v' : 's', (int)(u->row - rows), args);
}

static const char *half_cast(char letter)
{
    return letter == 'T' ? "(VT)" : letter == 'D' ? "(VD)" : "(VQ)";
}

/* Text of operators alone works on vectors with scalars among them. */
static bool mixes(const struct op_row *row)
{
    return row->how == HOW_EACH && row->text[strspn(row->text, "xyzw +-*&|^~()")] == '\0' &&
           !strchr(row->text, '~');
}

/* An operand that is alike in all lanes, as the scalar it is; NULL: spread it. */
static const char *as_scalar(struct emit *e, const struct row_use *u, const struct opnd *o,
                             char letter)
{
    bool some_vary = false;
    for (size_t i = 0; u->row->sig[2 + i]; i++)
        some_vary |= !operand_uniform(e, &u->ops[i]);
    if (!e->vec || !some_vary || !mixes(u->row) || !operand_uniform(e, o))
        return NULL;
    bool reg = o->kind == OPND_REG && !o->not ;
    enum reg_class c = reg ? reg_class(e, o->reg) : CLASS_P;
    if (letter == 'I' && (o->kind == OPND_INT || (reg && c == CLASS_I)))
        return scalar_value(e, u->in, o, letter);
    if (letter == 'Q' && (o->kind == OPND_INT || (reg && c == CLASS_Q)))
        return scalar_value(e, u->in, o, letter);
    return letter == 'F' && reg && c == CLASS_F && !u->ftz ? scalar_value(e, u->in, o, letter)
                                                           : NULL;
}

/* 64-bit lanes: the text once per half. */
static const char *wide_vector(struct emit *e, const struct row_use *u)
{
    const struct op_row *row = u->row;
    const char *ops = row->sig + 2, *whole[4], *half[2], *alike[4];
    for (size_t i = 0; ops[i]; i++) {
        alike[i] = as_scalar(e, u, &u->ops[i], ops[i]);
        if (alike[i])
            continue;
        whole[i] = value(e, u->in, &u->ops[i], ops[i]);
        if (ops[i] == 'P')
            whole[i] = arena_printf(e->a, "Q_ws((I)%s)", whole[i]);
        whole[i] = named(e, whole[i], "Q");
    }
    for (int h = 0; h < 2; h++) {
        const char *arg[4];
        const char *args = "";
        for (size_t i = 0; ops[i]; i++) {
            arg[i] = alike[i]
                         ? alike[i]
                         : arena_printf(e->a, "(%s%s.%c)", half_cast(ops[i]), whole[i], "ab"[h]);
            args = arena_printf(e->a, "%s%s%s", args, i ? ", " : "", arg[i]);
        }
        half[h] = row->how == HOW_CALL ? arena_printf(e->a, "V_%s(%s)", row->text, args)
                                       : fill_text(e, row->text, arg, FORM_VECTOR, true);
    }
    if (row->sig[0] == 'P')
        return arena_printf(e->a, "Q_narm((VQ)(%s), (VQ)(%s))", half[0], half[1]);
    return arena_printf(e->a, "(Q){(VQ)(%s), (VQ)(%s)}", half[0], half[1]);
}

/* 32-bit lanes or scalars. which: 0 plain, 1 low and 2 high half of a pair. */
static const char *narrow_text(struct emit *e, const struct row_use *u, int which)
{
    const struct op_row *row = u->row;
    const char *ops = row->sig + 2, *arg[4], *args = "";
    char v = e->vec ? 'V' : 'S';
    for (size_t i = 0; ops[i]; i++) {
        char l = ops[i];
        const char *alike = which ? NULL : as_scalar(e, u, &u->ops[i], l);
        if (alike) {
            arg[i] = alike;
            continue;
        }
        if (which) {
            const char *t = u->given ? u->given[i] : value(e, u->in, &u->ops[i], 'I');
            arg[i] = arena_printf(e->a, which == 1 ? "%c_%c2f(%s & 0xffffu)" : "%c_%c2f(%s >> 16)",
                                  v, l == 'k' ? 'h' : 'b', t);
        } else {
            arg[i] = value(e, u->in, &u->ops[i], l);
        }
        if (u->ftz && (l == 'F' || l == 'h' || l == 'k'))
            arg[i] = arena_printf(e->a, l == 'F' ? "%c_ftz(%s)" : "%c_ftzh(%s, 0)", v, arg[i]);
        l = which ? 'F' : l;
        arg[i] = named(e, arg[i], e->vec ? vector_type(l) : scalar_type(l));
        args = arena_printf(e->a, "%s%s%s", args, i ? ", " : "", arg[i]);
    }
    bool fma = e->vec && !which && !u->ftz && strcmp(row->text, "fma") == 0;
    const char *one = fma ? segment_word(e, &u->ops[1]) : NULL, *by = arg[0];
    if (fma && !one) {
        one = segment_word(e, &u->ops[0]);
        by = arg[1];
    }
    const char *t =
        one ? arena_printf(e->a, "V_fma_one(%s, %s, %s)", by, one, arg[2])
        : row->how == HOW_CALL
            ? arena_printf(e->a, "%c_%s(%s)", v, row->text, args)
            : fill_text(e, row->text, arg, e->vec ? FORM_VECTOR : FORM_SCALAR, row_is_wide(row));
    return wrapped(e, u, t, which ? 'k' : row->sig[0]);
}

static bool all_wide(const struct op_row *row)
{
    for (const char *p = row->sig; *p; p++)
        if (*p != '=' && !wide(*p) && *p != 'P')
            return false;
    return row_is_wide(row);
}

/* An f32 rounded into the f16 or bf16 the row gives. */
static const char *half_bits(struct emit *e, const struct row_use *u, const char *t)
{
    char res = u->row->sig[0], v = e->vec ? 'V' : 'S', l = res == 'h' || res == 'k' ? 'h' : 'b';
    if (u->ftz)
        t = arena_printf(e->a, l == 'h' ? "%c_ftzh(%s, 1)" : "%c_ftz(%s)", v, t);
    return arena_printf(e->a, "%c_f2%c(%s)", v, l, t);
}

static const char *row_value(struct emit *e, const struct row_use *u, enum reg_class *cls);

static const char *pair_text(struct emit *e, const struct row_use *u)
{
    const char *lo = narrow_text(e, u, 1), *hi = narrow_text(e, u, 2);
    return arena_printf(e->a, "(%s | (%s << 16))", half_bits(e, u, lo), half_bits(e, u, hi));
}

/* Where there are many, a function for all pairs of halves of one row. */
static const char *pair_call(struct emit *e, const struct row_use *u)
{
    static const char *const names[] = {"x", "y", "z", "w"};
    struct emit_unit *unit = e->unit;
    int kind = (int)(u->row - rows) * 4 + u->ftz * 2 + u->sat;
    size_t n = strlen(u->row->sig + 2);
    if (!unit->pair_used[kind]) {
        struct row_use own = *u;
        struct buf body = buf_init((size_t)1 << 20), *out = e->out;
        own.given = names;
        e->out = &body;
        const char *t = pair_text(e, &own);
        e->out = out;
        buf_printf(&unit->helpers, "NI I pair_%d(I x%s%s) {\n%sreturn %s; }\n", kind,
                   n > 1 ? ", I y" : "", n > 2 ? ", I z" : "", body.data ? body.data : "", t);
        buf_release(&body);
        unit->pair_used[kind] = true;
    }
    const char *args = "";
    for (size_t i = 0; i < n; i++)
        args = arena_printf(e->a, "%s%s%s", args, i ? ", " : "", value(e, u->in, &u->ops[i], 'I'));
    return arena_printf(e->a, "pair_%d(%s)", kind, args);
}

/* In a segment, what has no operand of its own in any lane is computed once; NULL: another row. */
static const char *spread_value(struct emit *e, const struct row_use *u, enum reg_class *cls)
{
    static const char letters[] = "MIFQ";
    if (!e->vec || u->row->how != HOW_EACH || u->row->sig[0] == 'P')
        return NULL;
    for (size_t i = 0; u->row->sig[2 + i]; i++)
        if (!operand_uniform(e, &u->ops[i]))
            return NULL;
    e->vec = false;
    const char *t = row_value(e, u, cls);
    e->vec = true;
    return arena_printf(e->a, "%c_spl(%s)", letters[*cls], t);
}

/* The value of a row, in its result letter; *cls says which register class. */
static const char *row_value(struct emit *e, const struct row_use *u, enum reg_class *cls)
{
    const struct op_row *row = u->row;
    char res = row->sig[0];
    const char *t = spread_value(e, u, cls);
    if (t)
        return t;
    *cls = wide(res) ? CLASS_Q : res == 'P' ? CLASS_P : res == 'F' ? CLASS_F : CLASS_I;
    if (res == 'k' || res == 'l')
        return e->vec && e->many_pairs ? pair_call(e, u) : pair_text(e, u);
    if (row->how == HOW_LANE)
        t = wrapped(e, u, lane_call(e, u), res);
    else if (e->vec && all_wide(row))
        return wide_vector(e, u);
    else
        t = narrow_text(e, u, 0);
    switch (res) {
    case 'P':
        return arena_printf(e->a,
                            !e->vec ? (row->sig[2] == 'P' ? "(%s)" : "-(s32)(%s)") : "(M)(%s)", t);
    case 'F':
        return e->vec ? arena_printf(e->a, "(F)(%s)", t) : t;
    case 'h':
    case 'b':
        return half_bits(e, u, t);
    case 'H':
        return arena_printf(e->a, e->vec ? "((I)(%s) & 0xffffu)" : "((u32)(%s) & 0xffffu)", t);
    case 'D':
        return e->vec ? t : arena_printf(e->a, "d2u(%s)", t);
    case 'Q':
        return e->vec ? t : arena_printf(e->a, "(u64)(%s)", t);
    default:
        return arena_printf(e->a, e->vec ? "(I)(%s)" : "(u32)(%s)", t);
    }
}

/* ---- instructions with a form of their own ---- */

static const char *combine(struct emit *e, const struct insn *in, const char *cmp,
                           const struct opnd *with)
{
    const char *op = insn_has_mod(in, MOD_AND) ? "&" : insn_has_mod(in, MOD_OR) ? "|" : "^";
    return arena_printf(e->a, "(%s) %s (%s)", cmp, op, value(e, in, with, 'P'));
}

/* Pairs of halves: one comparison each; setp has a predicate per half. */
static void emit_set_pair(struct emit *e, const struct insn *in, struct insn *plain)
{
    bool bf = in->type == PT_BF16X2;
    enum ptx_type half = bf ? PT_BF16 : PT_F16;
    for (int i = 0; i < plain->mod_count; i++)
        if (ptx_mod_type(plain->mods[i]) == in->type)
            plain->mods[i] = (uint16_t)half;
    plain->type = half;
    const struct op_row *found = op_find(plain, OP_CMP);
    if (!found || in->arg_count != 3) {
        emit_fail(e, in, "not a known comparison");
        return;
    }
    struct op_row row = *found;
    row.sig = bf ? "P=ll" : "P=kk";
    struct row_use u = {
        .row = &row, .in = in, .ops = &in->args[1], .ftz = insn_has_mod(in, MOD_FTZ)};
    const char *side[2];
    for (int h = 0; h < 2; h++) {
        const char *t = narrow_text(e, &u, h + 1);
        side[h] = named(e, arena_printf(e->a, e->vec ? "(M)(%s)" : "-(s32)(%s)", t),
                        e->vec ? "M" : "s32");
    }
    if (in->op == OP_SETP) {
        assign_reg(e, in, in->args[0].reg, side[0]);
        if (in->args[0].reg2 >= 0)
            assign_reg(e, in, in->args[0].reg2, side[1]);
        return;
    }
    const char *one = in->type2 != in->type ? "0xffffu"
                      : bf                  ? "0x3f80u"
                                            : "0x3c00u",
               *cast = e->vec ? "(I)" : "(u32)";
    assign(e, in, &in->args[0],
           arena_printf(e->a, "((%s(%s) & %s) | ((%s(%s) & %s) << 16))", cast, side[0], one, cast,
                        side[1], one),
           CLASS_I);
}

/* The comparison alone: without how it is combined and, of set.cmp.dtype.stype, the result type. */
static struct insn comparison(const struct insn *in, bool *combined)
{
    struct insn plain = *in;
    bool dropped = in->op != OP_SET || in->type2 == PT_NONE;
    plain.mod_count = 0;
    *combined = false;
    for (int i = 0; i < in->mod_count; i++) {
        enum ptx_mod mod = in->mods[i];
        if (mod == MOD_AND || mod == MOD_OR || mod == MOD_XOR)
            *combined = true;
        else if (!dropped && ptx_mod_type(mod) == in->type2)
            dropped = true;
        else
            plain.mods[plain.mod_count++] = (uint16_t)mod;
    }
    return plain;
}

static void emit_setp(struct emit *e, const struct insn *in)
{
    bool combined, is_set = in->op == OP_SET;
    struct insn plain = comparison(in, &combined);
    if (in->type == PT_F16X2 || in->type == PT_BF16X2) {
        emit_set_pair(e, in, &plain);
        return;
    }
    const struct op_row *row = op_find(&plain, OP_CMP);
    if (!row || in->arg_count < (combined ? 4 : 3)) {
        emit_fail(e, in, "not a known comparison");
        return;
    }
    struct row_use u = {
        .row = row, .in = in, .ops = &in->args[1], .ftz = insn_has_mod(in, MOD_FTZ)};
    enum reg_class cls;
    const char *cmp = named(e, row_value(e, &u, &cls), e->vec ? "M" : "s32");
    const char *p = combined ? combine(e, in, cmp, &in->args[3]) : cmp;
    if (is_set) {
        const char *one = in->type2 == PT_F32    ? "0x3f800000u"
                          : in->type2 == PT_F16  ? "0x3c00u"
                          : in->type2 == PT_BF16 ? "0x3f80u"
                                                 : "0xffffffffu";
        p = arena_printf(e->a, e->vec ? "((I)(%s) & %s)" : "((u32)(%s) & %s)", p, one);
        assign(e, in, &in->args[0], p, CLASS_I);
        return;
    }
    const char *q = NULL;
    if (in->args[0].reg2 >= 0) {
        q = arena_printf(e->a, "~(%s)", cmp);
        if (combined)
            q = combine(e, in, q, &in->args[3]);
        q = named(e, q, e->vec ? "M" : "s32");
        p = named(e, p, e->vec ? "M" : "s32");
    }
    if (in->args[0].kind == OPND_REG)
        assign_reg(e, in, in->args[0].reg, p);
    if (q)
        assign_reg(e, in, in->args[0].reg2, q);
}

/* shl and shr by a constant, which most are: no clamping at run time. */
static bool emit_shift(struct emit *e, const struct insn *in, const struct op_row *row)
{
    static const char *const sigs[] = {"I=I", "Q=Q", "H=H", "I=S", "Q=T", "H=J"};
    bool left = in->op == OP_SHL;
    if ((!left && in->op != OP_SHR) || in->args[2].kind != OPND_INT)
        return false;
    unsigned width = 8 * ptx_type_bytes(in->type), n = (unsigned)in->args[2].bits;
    char from = row->sig[2];
    bool sign = from == 'S' || from == 'T' || from == 'J';
    if (n >= width && sign)
        n = width - 1;
    struct op_row by = *row;
    by.text = n >= width ? "x & 0" : arena_printf(e->a, left ? "x << %u" : "x >> %u", n);
    for (size_t i = 0; i < ARRAY_LEN(sigs); i++)
        if (sigs[i][2] == from)
            by.sig = sigs[i];
    struct row_use u = {.row = &by, .in = in, .ops = &in->args[1]};
    enum reg_class cls;
    const char *t = row_value(e, &u, &cls);
    assign(e, in, &in->args[0], t, cls);
    return true;
}

void emit_alu(struct emit *e, const struct insn *in)
{
    if (in->op == OP_SETP || in->op == OP_SET) {
        emit_setp(e, in);
        return;
    }
    if (emit_move(e, in))
        return;
    const struct op_row *row = op_find(in, in->op);
    if (!row) {
        emit_fail(e, in, "this device does not know the instruction");
        return;
    }
    if (in->arg_count != (int)strlen(row->sig) - 1) {
        emit_fail(e, in, "wrong number of operands");
        return;
    }
    if (emit_shift(e, in, row))
        return;
    struct row_use u = {.row = row,
                        .in = in,
                        .ops = &in->args[1],
                        .ftz = insn_has_mod(in, MOD_FTZ),
                        .sat = insn_has_mod(in, MOD_SAT)};
    enum reg_class cls;
    const char *t = row_value(e, &u, &cls);
    if (cls == CLASS_P)
        assign_reg(e, in, in->args[0].reg, t);
    else
        assign(e, in, &in->args[0], t, cls);
}
