/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expr.c - pointwise operators of a graph, written as C statements.
 *
 * A row of pointwise_ops.def fits an operator when every argument it names is
 * there (or has a default) and every value it demands is met. The first row
 * that fits is taken.
 */
#include "expert/graph/expr.h"

#include "base/buf.h"
#include "base/error.h"
#include "expert/compose/recipe.h"
#include "expert/graph/view.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { MAX_PARAMETERS = 6 };

static const struct op_form {
    const char *name, *parameters, *exact, *fast;
    const char *fast16; /* the fast form where values are floats of 16 bits */
    bool integer;       /* only where the result is an integer */
} forms[] = {
#define OP(name, parameters, exact, fast)           {name, parameters, exact, fast, fast, false},
#define OP16(name, parameters, exact, fast, fast16) {name, parameters, exact, fast, fast16, false},
#define OPI(name, parameters, exact)                {name, parameters, exact, NULL, NULL, true},
#define HELPER(name, words, body)
#include "expert/graph/pointwise_ops.def"
#undef OP
#undef OP16
#undef OPI
#undef HELPER
};

static const struct helper {
    const char *name, *words, *body;
} helpers[] = {
#define OP(name, parameters, exact, fast)
#define OP16(name, parameters, exact, fast, fast16)
#define OPI(name, parameters, exact)
#define HELPER(name, words, body) {name, words, body},
#include "expert/graph/pointwise_ops.def"
#undef OP
#undef OP16
#undef OPI
#undef HELPER
};

/* One parameter of a form, taken apart: `alpha='1'`. */
struct parameter {
    char name[32];
    char fallback[32]; /* "" : none */
    bool demanded;     /* the value must be the fallback */
};

struct operand {
    char name[32];
    const struct node *node; /* or */
    const json_t *value;     /* or */
    const char *fallback;
};

/* ---- types, literals, names ---------------------------------------------- */

static const struct dtype_row {
    const char *dtype, *value, *memory;
    int bytes;
} dtypes[] = {
    {"f32", "float", "float", 4},       {"f16", "float", "half_t", 2},
    {"bf16", "float", "bfloat16_t", 2}, {"bool", "bool", "uint8_t", 1},
    {"i32", "int32_t", "int32_t", 4},   {"i64", "int64_t", "int64_t", 8},
    {"u8", "int32_t", "uint8_t", 1},    {"i16", "int32_t", "int16_t", 2},
    {"i8", "int32_t", "int8_t", 1},     {"f64", "double", "double", 8},
};

static const struct dtype_row *dtype_find(const char *dtype)
{
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++)
        if (strcmp(dtypes[i].dtype, dtype) == 0)
            return &dtypes[i];
    return NULL;
}

const char *expr_value_type(const char *dtype)
{
    const struct dtype_row *row = dtype_find(dtype);

    return row ? row->value : NULL;
}

const char *expr_memory_type(const char *dtype)
{
    const struct dtype_row *row = dtype_find(dtype);

    return row ? row->memory : NULL;
}

int expr_bytes(const char *dtype)
{
    const struct dtype_row *row = dtype_find(dtype);

    return row ? row->bytes : 0;
}

const char *expr_literal(double v, const char *value_type, struct arena *a)
{
    bool narrow = strcmp(value_type, "float") == 0;
    char *text;

    if (!narrow && strcmp(value_type, "double") != 0) {
        if (fabs(v) >= 0x1p63) /* the ends of int64_t */
            return v > 0 ? "9223372036854775807" : "(-9223372036854775807 - 1)";
        return arena_printf(a, "%.0f", v);
    }
    if (isnan(v))
        return "__int_as_float(0x7fffffff)";
    if (isinf(v))
        return v > 0 ? "__int_as_float(0x7f800000)" : "__int_as_float(0xff800000)";
    text = arena_printf(a, narrow ? "%.9g" : "%.17g", v);
    return arena_printf(a, "%s%s%s", text, strpbrk(text, ".e") ? "" : ".0", narrow ? "f" : "");
}

/* Words that mean something else in CUDA C++ or in the recipes. */
static bool reserved(const char *name)
{
    static const char *const words[] = {
        "and",    "asm",      "auto",   "bool",        "break",  "case",    "char",   "class",
        "const",  "double",   "else",   "enum",        "float",  "for",     "if",     "int",
        "long",   "new",      "not",    "or",          "return", "short",   "signed", "static",
        "struct", "switch",   "this",   "true",        "false",  "typedef", "union",  "void",
        "while",  "template", "call",   "i",           "v",      "n",       "shape",  "delete",
        "copy",   "clear",    "size",   "stride",      "layout", "k",       "m",      "acc",
        "alpha",  "index",    "thread", "default",     "do",     "goto",    "using",  "namespace",
        "in",     "out",      "row",    "sum",         "max",    "min",     "b",      "l",
        "printf", "malloc",   "extern", "thread_local"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(words[i], name) == 0)
            return true;
    return false;
}

/* Does it begin as functions of CUDA's libraries do, which the gate refuses? */
static bool library_word(const char *name)
{
    static const char *const begin[] = {"cublas", "cuda", "cudnn"};

    for (size_t i = 0; i < ARRAY_LEN(begin); i++)
        if (strncmp(name, begin[i], strlen(begin[i])) == 0 &&
            isupper((unsigned char)name[strlen(begin[i])]))
            return true;
    return false;
}

const char *names_add(struct names *n, const char *wanted, struct arena *a)
{
    char *base = arena_strdup(a, *wanted ? wanted : "t"), *name;
    bool taken = true;

    for (char *p = base; *p; p++)
        if (!isalnum((unsigned char)*p))
            *p = '_';
    if (isdigit((unsigned char)*base) || *base == '_' || library_word(base))
        base = arena_printf(a, "t%s", base);
    name = reserved(base) ? arena_printf(a, "%s_", base) : base;
    for (int suffix = 2; taken; suffix++) {
        taken = false;
        for (int i = 0; i < n->count && !taken; i++)
            taken = tolower((unsigned char)*n->used[i]) == tolower((unsigned char)*name) &&
                    strcmp(n->used[i] + 1, name + 1) == 0; /* gA is of a, or of A */
        if (taken)
            name = arena_printf(a, "%s%d", base, suffix);
    }
    if (n->count == (int)ARRAY_LEN(n->used))
        BUG("more names than a graph has nodes");
    n->used[n->count++] = name;
    return name;
}

static int word_order(const void *word, const void *row)
{
    return strcmp(word, *(const char *const *)row);
}

/* Is it a name in one of the recipes? */
static bool recipe_word(const char *word)
{
    static const char *const words[] = {
#include "expert/graph/recipe_words.inc"
    };

    return bsearch(word, words, ARRAY_LEN(words), sizeof(*words), word_order) != NULL;
}

static bool meets_recipe(const char *name, struct arena *a)
{
    bool found = recipe_word(name);

    for (const char *letter = "gmrsv"; *letter && !found; letter++)
        found = recipe_word(
            arena_printf(a, "%c%c%s", *letter, toupper((unsigned char)*name), name + 1));
    return found;
}

const char *names_add_tensor(struct names *n, const char *wanted, struct arena *a)
{
    while (*wanted && meets_recipe(wanted, a))
        wanted = arena_printf(a, "%s_", wanted);
    return names_add(n, wanted, a);
}

/* ---- forms --------------------------------------------------------------- */

static void copy_word(char *out, size_t room, const char *from, size_t len)
{
    if (len >= room)
        BUG("pointwise_ops.def: a word is too long: %.*s", (int)len, from);
    memcpy(out, from, len);
    out[len] = '\0';
}

/* Next parameter of "x, alpha='1', beta=2"; false at the end. */
static bool parameter_next(const char **at, struct parameter *out)
{
    const char *p = *at + strspn(*at, ", "), *end = p + strcspn(p, ",");
    const char *equals = memchr(p, '=', (size_t)(end - p));

    if (p == end)
        return false;
    *out = (struct parameter){0};
    copy_word(out->name, sizeof(out->name), p, (size_t)((equals ? equals : end) - p));
    if (equals) {
        out->demanded = equals[1] == '\'';
        p = equals + 1 + out->demanded;
        copy_word(out->fallback, sizeof(out->fallback), p, (size_t)(end - p) - out->demanded);
    }
    *at = end;
    return true;
}

/* Does the argument have the demanded value? Numbers as numbers, strings as strings. */
static bool demanded_met(const json_t *arg, const char *wanted, struct arena *a)
{
    const char *text = json_string_value(json_object_get(arg, "text"));
    double number;

    if (!arg) /* absent: numbers and 'none' are the defaults, other words are not */
        return strcmp(wanted, "none") == 0 || isdigit((unsigned char)*wanted);
    if (json_object_get(arg, "node"))
        return false;
    if (graph_number(arg, &number))
        return strcmp(arena_printf(a, "%g", number), wanted) == 0;
    return text && strcmp(text, wanted) == 0;
}

static bool form_fits(const struct op_form *f, const struct graph *g, const struct node *n,
                      struct arena *a, struct operand *out, int *count)
{
    const char *at = f->parameters;
    struct parameter p;
    size_t index = 0;

    *count = 0;
    for (; parameter_next(&at, &p); index++) {
        const json_t *arg = graph_arg_json(n, index, p.name);
        struct operand *o = &out[*count];
        double number;

        if (p.demanded) {
            if (!demanded_met(arg, p.fallback, a))
                return false;
            continue;
        }
        *o = (struct operand){.fallback = *p.fallback ? arena_strdup(a, p.fallback) : NULL};
        memcpy(o->name, p.name, sizeof(o->name));
        if (!arg && !o->fallback)
            return false;
        if (arg && json_object_get(arg, "node")) {
            o->node = g ? graph_node(g, graph_id(arg)) : n;
            if (!o->node)
                return false;
        } else if (arg) {
            o->value = arg;
            if (!graph_number(arg, &number))
                return false;
        }
        if (++*count == MAX_PARAMETERS)
            BUG("pointwise_ops.def: %s has too many parameters", f->name);
    }
    return true;
}

static bool is_integer(const char *dtype)
{
    return *dtype == 'i' || *dtype == 'u';
}

/* `placed`: forms that need a value's coordinates count too. */
static const struct op_form *form_find(const struct graph *g, const struct node *n, bool placed,
                                       struct arena *a, struct operand *out, int *count)
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (graph_op_is(n, forms[i].name) && (placed || !strstr(forms[i].exact, "$row")) &&
            (!forms[i].integer || is_integer(n->t.dtype)) &&
            form_fits(&forms[i], g, n, a, out, count))
            return &forms[i];
    return NULL;
}

bool expr_knows(const struct node *n, struct arena *a)
{
    struct operand operands[MAX_PARAMETERS];
    int count;

    return form_find(NULL, n, false, a, operands, &count) != NULL;
}

bool expr_knows_placed(const struct node *n, struct arena *a)
{
    struct operand operands[MAX_PARAMETERS];
    int count;

    return form_find(NULL, n, true, a, operands, &count) != NULL;
}

/* ---- writing ------------------------------------------------------------- */

struct writer {
    struct expr *e;
    struct buf *out;
    const char *value[GRAPH_NODES]; /* C name of each node written so far */
    struct names names;
    const char **why;
};

/* What a parameter is where it is not given: a number, or the largest one of the dtype. */
static double fallback_number(const char *text, const char *dtype)
{
    static const struct {
        const char *dtype;
        double most;
    } rows[] = {{"f64", 1.7976931348623157e308}, {"f16", 65504}, {"bf16", 0x1.fep127}};
    bool below = *text == '-';

    if (strcmp(text + below, "most") != 0)
        return strtod(text, NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].dtype, dtype) == 0)
            return below ? -rows[i].most : rows[i].most;
    return below ? -0x1.fffffep127 : 0x1.fffffep127;
}

static const char *operand_text(struct writer *w, const struct operand *o, const char *type,
                                const char *dtype)
{
    const json_t *arg = o->node ? o->node->value : o->value;
    const struct size_constant *of_sizes = arg ? graph_of_sizes(w->e->g, arg) : NULL;
    double number = 0;

    if (of_sizes && strcmp(type, "float") == 0)
        return of_sizes->name; /* handed over by match/size_constants.c */
    if (o->node && o->node->value)
        graph_number(o->node->value, &number);
    else if (o->node)
        return w->value[o->node - w->e->g->nodes];
    else if (o->value)
        graph_number(o->value, &number);
    else
        return expr_literal(fallback_number(o->fallback, dtype), type, w->e->a);
    return expr_literal(number, type, w->e->a);
}

/* Is one of the numbers no whole one? */
static bool has_fraction(const struct operand *o, int count)
{
    double number;

    for (int i = 0; i < count; i++) {
        const json_t *given = o[i].node ? o[i].node->value : o[i].value;

        if (given && graph_number(given, &number) && !isnan(number) && number != trunc(number))
            return true;
    }
    return false;
}

/* The type numbers beside tensors are written in: that of the first tensor operand. Beside whole
 * numbers it is that of the result, or float where a fraction is compared with them. */
static const char *literal_type(const struct operand *o, int count, const struct node *n)
{
    for (int i = 0; i < count; i++) {
        const char *dtype = o[i].node && !o[i].node->value ? o[i].node->t.dtype : "bool";

        if (strcmp(dtype, "bool") == 0)
            continue;
        if (strchr(dtype, 'f') == NULL && strchr(n->t.dtype, 'f'))
            return expr_value_type(n->t.dtype);
        if (strchr(dtype, 'f') == NULL && has_fraction(o, count))
            return "float";
        return expr_value_type(dtype);
    }
    return strchr(n->t.dtype, 'f') || !has_fraction(o, count) ? expr_value_type(n->t.dtype)
                                                              : "float";
}

static bool is_double(const struct operand *o, int count, const struct node *n)
{
    bool found = strcmp(n->t.dtype, "f64") == 0;

    for (int i = 0; i < count; i++)
        found = found || (o[i].node && !o[i].node->value && !strcmp(o[i].node->t.dtype, "f64"));
    return found;
}

/* The word of a form at p: a function or a number, as it is for this type. Forms are written for
 * floats: `expf(` is `exp(` for doubles, and numbers have the digits that their type has. */
static size_t put_word(const char *p, const char *type, struct buf *out, struct arena *a)
{
    static const char infinity[] = "__int_as_float(0x7f800000)";
    bool wide = strcmp(type, "double") == 0;
    size_t len = 0;
    char *end;

    if (isdigit((unsigned char)*p)) {
        double number = strtod(p, &end);

        len = (size_t)(end - p);
        if (p[len] == 'f') {
            buf_puts(out, expr_literal(number, type, a));
            return len + 1;
        }
    } else if (wide && strncmp(p, infinity, strlen(infinity)) == 0) {
        buf_puts(out, "__longlong_as_double(0x7ff0000000000000)");
        return strlen(infinity);
    } else if (wide && strncmp(p, "float(", 6) == 0) {
        buf_puts(out, "double");
        return 5;
    } else {
        while (isalnum((unsigned char)p[len]) || p[len] == '_')
            len++;
    }
    buf_add(out, p, len - (wide && len && p[len] == '(' && p[len - 1] == 'f'));
    return len;
}

static void put_form(struct writer *w, const char *form, const struct operand *o, int count,
                     const struct node *n, struct buf *out)
{
    const char *type = literal_type(o, count, n);
    const char *words = is_double(o, count, n) ? "double" : "float";

    for (const char *p = form; *p; p++) {
        size_t len = 0;
        const char *text = NULL;

        if (isalnum((unsigned char)*p) || *p == '_') {
            p += put_word(p, words, out, w->e->a) - 1;
            continue;
        }
        if (*p != '$') {
            buf_putc(out, *p);
            continue;
        }
        while (isalnum((unsigned char)p[1 + len]) || p[1 + len] == '_')
            len++;
        if (len == 4 && strncmp(p + 1, "type", 4) == 0)
            text = expr_value_type(n->t.dtype);
        if (len == 3 && (strncmp(p + 1, "row", 3) == 0 || strncmp(p + 1, "col", 3) == 0)) {
            text = p[1] == 'r' ? w->e->row : w->e->col;
            w->e->uses_place = true;
        }
        for (int i = 0; i < count && !text; i++)
            if (strlen(o[i].name) == len && strncmp(o[i].name, p + 1, len) == 0)
                text = operand_text(w, &o[i], type ? type : "float", n->t.dtype);
        if (!text)
            BUG("pointwise_ops.def: no parameter for %s", p);
        if (*text == '-' && p > form && p[-1] == '-')
            buf_putc(out, ' ');
        buf_puts(out, text);
        p += len;
    }
}

static bool write_node(struct writer *w, const struct node *n, bool last);

static void begin_statement(struct writer *w, const struct node *n, bool last)
{
    size_t at = (size_t)(n - w->e->g->nodes);

    if (last) {
        buf_puts(w->out, "return ");
        return;
    }
    w->value[at] = names_add(&w->names, graph_short_name(n->op, w->e->a), w->e->a);
    buf_printf(w->out, "%s const %s = ", expr_value_type(n->t.dtype), w->value[at]);
}

/* The caller's own form: $0, $1 stand for the node's arguments. */
static bool write_special(struct writer *w, const struct node *n, const char *form, bool last)
{
    const struct graph *g = w->e->g;

    for (const char *p = form; *p; p++)
        if (*p == '$' && !write_node(w, graph_arg(g, n, (size_t)(p[1] - '0')), false))
            return false;
    begin_statement(w, n, last);
    for (const char *p = form; *p; p++) {
        const struct operand o = {.node = *p == '$' ? graph_arg(g, n, (size_t)(p[1] - '0')) : NULL};

        if (!o.node) {
            buf_putc(w->out, *p);
            continue;
        }
        buf_puts(w->out, operand_text(w, &o, "float", n->t.dtype));
        p++;
    }
    buf_puts(w->out, last ? ";" : ";\n");
    return true;
}

/* Why an operator has no form. */
static const char *unknown(const struct node *n, struct arena *a)
{
    static const char moving[] = "the shape of its result depends on values";
    static const char iterates[] = "a decomposition that iterates";
    static const struct {
        const char *op, *why;
    } reasons[] = {
        {"aten.nonzero.", moving},
        {"aten.masked_select.", moving},
        {"aten._unique2.", moving},
        {"aten.unique_dim.", moving},
        {"aten.unique_consecutive.", moving},
        {"aten.bincount.", moving},
        {"aten._linalg_svd.", iterates},
        {"aten._linalg_eigh.", iterates},
        {"aten.linalg_eig.", iterates},
        {"aten.linalg_qr.", iterates},
        {"aten.linalg_lu_factor_ex.", iterates},
        {"aten.linalg_lstsq.", iterates},
        {"aten.linalg_pinv.", iterates},
        {"aten.linalg_matrix_exp.", iterates},
    };

    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (strstr(n->op, reasons[i].op)) /* also in "result of ..." */
            return arena_printf(a, "%s: %s", n->op, reasons[i].why);
    return arena_printf(a, "%s is not an operator it knows with these arguments", n->op);
}

static bool write_node(struct writer *w, const struct node *n, bool last)
{
    struct expr *e = w->e;
    size_t at = (size_t)(n - e->g->nodes);
    struct operand operands[MAX_PARAMETERS];
    int count = 0;
    const struct op_form *form;
    const char *type = expr_value_type(n->t.dtype), *fast;

    if (w->value[at] || n->value)
        return true;
    if (e->special[at])
        return write_special(w, n, e->special[at], last);
    if (((e->see_through && graph_reshapes(n)) || (e->see_turned && graph_rearranges(n))) &&
        graph_arg(e->g, n, 0)) {
        const struct node *of = graph_arg(e->g, n, 0);

        if (!write_node(w, of, last))
            return false;
        w->value[at] = w->value[of - e->g->nodes];
        if (last && w->value[at])
            buf_printf(w->out, "return %s;", w->value[at]);
        return true;
    }
    form = form_find(e->g, n, e->row != NULL, e->a, operands, &count);
    if (!form || !type) {
        *w->why =
            form ? arena_printf(e->a, "%s in %s is not a type it computes with", n->op, n->t.dtype)
                 : unknown(n, e->a);
        return false;
    }
    for (int i = 0; i < count; i++)
        if (operands[i].node && !operands[i].node->value && !write_node(w, operands[i].node, false))
            return false;
    fast = e->coarse || strstr(n->t.dtype, "f16") ? form->fast16 : form->fast;
    e->has_fast = e->has_fast || fast;
    begin_statement(w, n, last);
    put_form(w, e->fast && fast ? fast : form->exact, operands, count, n, w->out);
    buf_puts(w->out, last ? ";" : ";\n");
    return true;
}

bool expr_body(struct expr *e, const struct node *root, const char **out, const char **why)
{
    struct buf body = buf_init(64 * 1024);
    struct writer w = {.e = e, .out = &body, .names = e->names, .why = why};
    bool ok = true;

    e->uses_place = false;
    for (int i = 0; i < e->g->count; i++) {
        w.value[i] = e->leaf[i];
        if (e->leaf[i])
            w.names.used[w.names.count++] = e->leaf[i];
    }
    if (w.value[root - e->g->nodes])
        buf_printf(&body, "return %s;", w.value[root - e->g->nodes]);
    else
        ok = write_node(&w, root, true);
    *out = ok ? buf_copy(&body, e->a).data : NULL;
    buf_release(&body);
    return ok;
}

static bool is_float(const char *dtype)
{
    return strchr(dtype, 'f') != NULL;
}

bool expr_operator(const struct graph *g, const struct node *n, const struct expr_source *from,
                   struct arena *a, const char **out, const char **why)
{
    struct expr *e = xmap(sizeof(*e)); /* these have a place for every node, and few are used */
    struct writer *w = xmap(sizeof(*w));
    struct buf text = buf_init(4096);
    struct operand operands[MAX_PARAMETERS];
    const struct op_form *form;
    int count = 0;

    e->g = g;
    e->a = a;
    e->row = from->row;
    e->col = from->col;
    w->e = e;
    w->out = &text;
    form = form_find(g, n, from->row != NULL, a, operands, &count);
    if (!form)
        *why = unknown(n, a);
    for (int i = 0; form && i < count; i++) {
        const struct node *x = operands[i].node;
        const char *value;

        if (!x || x->value)
            continue;
        value = from->operand(from->self, x);
        if (!value) {
            form = NULL;
            break;
        }
        if (is_float(n->t.dtype) && !is_float(x->t.dtype)) /* integers would divide as such */
            value = arena_printf(a, "%s(%s)", is_double(operands, count, n) ? "double" : "float",
                                 value);
        w->value[x - g->nodes] = value;
    }
    if (form)
        put_form(w, form->exact, operands, count, n, &text);
    *out = form ? buf_copy(&text, a).data : NULL;
    buf_release(&text);
    xunmap(w, sizeof(*w));
    xunmap(e, sizeof(*e));
    return form != NULL;
}

void expr_helpers(const char *body, struct scope *s, struct arena *a)
{
    for (size_t i = 0; i < ARRAY_LEN(helpers); i++) {
        const char *call = arena_printf(a, "%s(", helpers[i].name);
        struct scope *item;

        if (!strstr(body, call) || scope_has(s, call))
            continue;
        scope_fact(s, call);                 /* that it is there */
        expr_helpers(helpers[i].body, s, a); /* what it calls comes before it */
        item = scope_item(s, "helper");
        scope_set(item, "helper", "%s", helpers[i].name);
        scope_set(item, "helper_words", "%s", helpers[i].words);
        scope_set(item, "helper_body", "%s", helpers[i].body);
    }
}
