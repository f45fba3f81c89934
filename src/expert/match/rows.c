/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.c - graphs that reduce rows: softmax, norms, sums, with pointwise operators around them.
 *
 * The graph is split into stages (rows.h). Every value belongs either to an element (shape of the
 * reduction's input) or to a row. reduction_ops.def says which passes an operator is made of;
 * pointwise operators become parts of the functions.
 */
#include "expert/match/rows.h"
#include "expert/match/reduction_ops.h"

#include "base/buf.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define FLOAT_WHOLE 0x1p24 // whole numbers up to here are floats

void rows_split_shape(struct rows *q)
{
    for (int d = 0; d < q->full.dims; d++) {
        struct tensor *t = q->reduced[d] ? &q->along : &q->kept;

        t->strides[t->dims] = q->full.strides[d];
        t->shape[t->dims++] = q->full.shape[d];
    }
}

/* Does a reduction lie below n? */
static bool reduces(const struct graph *g, const struct node *n)
{
    size_t i;
    const json_t *arg;

    json_array_foreach(n->args, i, arg)
    {
        const struct node *used = graph_arg(g, n, i);

        if (used && (row_form_of(g, used) || reduces(g, used)))
            return true;
    }
    return false;
}

/* Notes the shape and the dimensions of the first reduction; the others must agree, or be
 * totals. */
static bool find_rows(struct rows *q)
{
    bool found = false;

    for (int i = 0; i < q->g->count; i++) {
        const struct node *n = &q->g->nodes[i], *x = graph_arg(q->g, n, 0);
        const struct row_form *f = row_form_of(q->g, n);
        struct tensor shape;
        bool reduced[MAX_DIMS];

        if (!f)
            continue;
        shape = x ? x->t : (struct tensor){0};
        if (!x || !row_form_dims(n, f, &shape, reduced))
            return match_no(q->out, q->a, "%s with arguments it cannot read", n->op);
        if (!found) {
            q->full = shape;
            memcpy(q->reduced, reduced, sizeof(reduced));
        } else if ((shape.dims != q->full.dims ||
                    memcmp(reduced, q->reduced, sizeof(reduced)) != 0 ||
                    memcmp(shape.shape, q->full.shape, sizeof(int64_t) * (size_t)shape.dims) !=
                        0) &&
                   !(n->t.dims == 0 && reduces(q->g, n))) {
            return match_no(q->out, q->a, "its reductions run over different dimensions");
        }
        found = true;
    }
    if (!found)
        return match_no(q->out, q->a, "no reduction");
    rows_split_shape(q);
    return tensor_numel(&q->along) > 1 || match_no(q->out, q->a, "it reduces single elements");
}

/* ---- tensors ------------------------------------------------------------------ */

/* Cuts a view over the full shape into its kept and its reduced axes. */
static void cut(const struct rows *q, const struct view *v, struct row_tensor *t)
{
    t->kept = t->along = (struct view){.input = v->input, .sliced = v->sliced};
    memcpy(t->kept.from, v->from, sizeof(v->from));
    for (int d = 0; d < v->dims; d++) {
        struct view *part = q->reduced[d] ? &t->along : &t->kept;

        part->axes[part->dims++] = v->axes[d];
    }
}

struct row_tensor *rows_tensor_add(struct rows *q, const struct node *n, const char *wanted,
                                   const char *dtype, int index)
{
    struct row_tensor *t = &q->tensors[q->tensor_count];
    bool plain;

    if (q->tensor_count == ROW_TENSORS || !expr_memory_type(dtype)) {
        match_no(q->out, q->a, "too many tensors, or one of %s", dtype);
        return NULL;
    }
    *t = (struct row_tensor){.node = n, .dtype = dtype, .index = index};
    plain = strcmp(wanted, "x") == 0 || strcmp(wanted, "A") == 0 || strcmp(wanted, "B") == 0 ||
            (*wanted == 'y' && strspn(wanted + 1, "0123456789") == strlen(wanted + 1));
    /* recipes of rows leave these alone */
    t->name = (plain ? names_add : names_add_tensor)(&q->names, wanted, q->a);
    q->tensor_count++;
    return t;
}

/* An input read per element; a matrix-vector product's vector runs along the row. */
static bool element_leaf(struct rows *q, const struct node *n, bool vector)
{
    struct row_tensor *t;
    struct view v;

    if (!graph_view_part(q->g, n, &v))
        return match_no(q->out, q->a, "%s is not an input", n->op);
    if (vector && v.dims == 2)
        v.dims = 1;
    if (tensor_numel(&n->t) == tensor_numel(&q->full) ? !view_split(&v, &q->full)
                                                      : !view_expand(&v, &q->full))
        return match_no(q->out, q->a, "'%s' does not broadcast to the rows",
                        q->g->in[v.input].name);
    t = rows_tensor_add(q, n, q->g->in[v.input].name, n->t.dtype, v.input);
    if (!t)
        return false;
    cut(q, &v, t);
    q->e.leaf[n - q->g->nodes] = t->name;
    return true;
}

/* An input with one value per row, beside values of shape `at`. */
bool rows_leaf(struct rows *q, const struct node *n, const struct tensor *at)
{
    size_t i = (size_t)(n - q->g->nodes);
    struct row_tensor *t;
    struct view v;

    if (q->e.leaf[i])
        return q->row_named[i] ||
               match_no(q->out, q->a, "an input is used per row and per element");
    if (!graph_view_part(q->g, n, &v) || !view_expand(&v, at) || !view_split(&v, &q->kept))
        return match_no(q->out, q->a, "%s does not broadcast to one value per row", n->op);
    t = rows_tensor_add(q, n, q->g->in[v.input].name, n->t.dtype, v.input);
    if (!t)
        return false;
    t->per_row = true;
    t->kept = v;
    q->e.leaf[i] = t->name;
    q->row_named[i] = true;
    return true;
}

/* ---- values --------------------------------------------------------------------- */

static bool is_leaf(const struct rows *q, const struct node *n)
{
    struct view v;

    return graph_view_part(q->g, n, &v);
}

bool rows_is_total(const struct rows *q, const struct node *n)
{
    const struct row_form *f = row_form_of(q->g, n);
    bool some = false;
    size_t i;
    const json_t *arg;

    if (tensor_numel(&n->t) != 1 || tensor_numel(&q->kept) == 1)
        return false;
    if (graph_op_is(n, ROWS_NLL))
        return true;
    if (f)
        return f->kind == PER_ROW &&
               (rows_is_row(q, graph_arg(q->g, n, 0)) ||
                (f->dims_arg >= 0 && tensor_numel(&graph_arg(q->g, n, 0)->t) ==
                                         tensor_numel(&q->full))); /* all elements, row by row */
    json_array_foreach(n->args, i, arg)
    {
        const struct node *used = graph_arg(q->g, n, i);

        some = some || (used && rows_is_total(q, used));
    }
    return some;
}

bool rows_is_row(const struct rows *q, const struct node *n)
{
    const struct row_form *f = row_form_of(q->g, n);
    bool some = false;
    size_t i;
    const json_t *arg;

    if (rows_is_total(q, n))
        return false;
    if (f || graph_op_is(n, ROWS_NLL))
        return !f || f->kind == PER_ROW;
    if (n->value || is_leaf(q, n) || tensor_numel(&n->t) != tensor_numel(&q->kept))
        return false;
    json_array_foreach(n->args, i, arg)
    {
        const struct node *used = graph_arg(q->g, n, i);

        some = some || (used && rows_is_row(q, used));
    }
    return some;
}

/* Numbers that a form calls by name: where ATen puts them depends on the overload. */
static bool named_number(const struct node *n, const char *name, size_t len, double *out)
{
    static const struct {
        const char *name;
        size_t arg;
        double fallback;
    } known[] = {{"correction", 2, 1}, {"beta", 3, 1}, {"delta", 3, 1}};

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        const json_t *value;

        if (strlen(known[i].name) != len || strncmp(known[i].name, name, len) != 0)
            continue;
        value = json_object_get(n->kwargs, known[i].name);
        if (!value && !strstr(n->op, ".correction"))
            value = json_array_get(n->args, strstr(n->op, ".default") && i == 0 ? 1 : known[i].arg);
        *out = known[i].fallback;
        if (value)
            graph_number(value, out);
        return true;
    }
    return false;
}

/* Puts names of earlier passes and numbers into a form; $0, $1 of tensors stay. */
static const char *bound(struct rows *q, const struct node *n, const char *form,
                         const struct pass_form *passes, const char *const *names, int count)
{
    struct buf b = buf_init(4096);
    const char *text;

    for (const char *p = form; *p; p++) {
        size_t len = 0;
        double number;
        bool done = false;

        if (*p != '$') {
            buf_putc(&b, *p);
            continue;
        }
        while (isalnum((unsigned char)p[1 + len]) || p[1 + len] == '_')
            len++;
        if (named_number(n, p + 1, len, &number)) {
            buf_puts(&b, expr_literal(number, "float", q->a));
            done = true;
        } else if (isdigit((unsigned char)p[1]) &&
                   graph_number(graph_arg_json(n, (size_t)(p[1] - '0'), NULL), &number)) {
            buf_puts(&b, expr_literal(number, "float", q->a));
            done = true;
        }
        for (int i = 0; i < count && !done; i++)
            if (strlen(passes[i].name) == len && strncmp(passes[i].name, p + 1, len) == 0) {
                buf_puts(&b, names[i]);
                done = true;
            }
        if (done)
            p += len;
        else
            buf_putc(&b, *p); /* $0, $it: bound later */
    }
    text = buf_copy(&b, q->a).data;
    buf_release(&b);
    return text;
}

/* Does the text refer to that name? */
static bool mentions(const char *text, const char *name)
{
    size_t len = strlen(name);

    for (const char *p = text; (p = strstr(p, name)); p++) {
        bool left = p == text || !(isalnum((unsigned char)p[-1]) || p[-1] == '_');

        if (left && !isalnum((unsigned char)p[len]) && p[len] != '_')
            return true;
    }
    return false;
}

/* Writes the function that computes n from what is named so far. */
bool rows_function(struct rows *q, const struct node *n, const char *suffix, struct function *out)
{
    q->e.fast = true;
    if (!expr_body(&q->e, n, &out->quick, &q->out->why_not))
        return false;
    q->e.fast = false;
    if (!expr_body(&q->e, n, &out->body, &q->out->why_not))
        return false;
    out->value = expr_value_type(n->t.dtype);
    out->name = names_add(&q->names, arena_printf(q->a, "%s_%s", q->kernel, suffix), q->a);
    for (int i = 0; i < q->tensor_count; i++) {
        const char *name = q->tensors[i].name;

        out->reads[i] = q->tensors[i].node && mentions(out->body, name);
        out->alone = out->alone || strcmp(out->body, arena_printf(q->a, "return %s;", name)) == 0;
    }
    for (int i = 0; i < q->stage_count; i++) {
        const char *name = q->stages[i].name;

        out->takes[i] = mentions(out->body, name);
        out->alone = out->alone || strcmp(out->body, arena_printf(q->a, "return %s;", name)) == 0;
    }
    return true;
}

struct row_stage *rows_stage(struct rows *q, const char *wanted)
{
    struct row_stage *s = &q->stages[q->stage_count];

    if (q->stage_count == ROW_STAGES) {
        match_no(q->out, q->a, "more than %d passes", ROW_STAGES);
        return NULL;
    }
    *s = (struct row_stage){
        .name = names_add(&q->names, arena_printf(q->a, "row_%s", wanted), q->a), .value = "float"};
    return s;
}

/* Where a norm has its weight; its bias comes next. 0: none. */
static size_t weight_arg(const struct row_form *f)
{
    return f->dims_arg == LAST ? 2 : f->dims_arg == GROUPS || f->dims_arg == CHANNELS ? 1 : 0;
}

/* A norm's weight and bias, where given. */
static const char *affine(struct rows *q, const struct node *n, const struct row_form *f)
{
    size_t weight = weight_arg(f);
    const char *value = f->value;

    if (weight && graph_arg_json(n, weight, NULL))
        value = arena_printf(q->a, "%s * $%zu", value, weight);
    if (weight && graph_arg_json(n, weight + 1, NULL))
        value = arena_printf(q->a, "%s + $%zu", value, weight + 1);
    return value;
}

/* A value per channel, seen as the groups' channels. */
static bool channel_leaf(struct rows *q, const struct node *n)
{
    struct tensor channels = {.dims = 2, .shape = {q->full.shape[1], q->full.shape[2]}};
    struct row_tensor *t;
    struct view v;

    if (!graph_view(q->g, n, &v) || v.dims != 1 || !view_split(&v, &channels))
        return match_no(q->out, q->a, "a weight that is not an input");
    for (int d = 2; d < q->full.dims - 1; d++)
        v.axes[d] = (struct axis){.size = 1};
    v.dims = q->full.dims - 1;
    t = view_expand(&v, &q->full)
            ? rows_tensor_add(q, n, q->g->in[v.input].name, n->t.dtype, v.input)
            : NULL;
    if (!t)
        return false;
    cut(q, &v, t);
    q->e.leaf[n - q->g->nodes] = t->name;
    q->ready[n - q->g->nodes] = true;
    return true;
}

/* Makes an operand of a reduction known. */
static bool operand(struct rows *q, const struct node *n, const struct row_form *f, size_t i)
{
    const struct node *used = graph_arg(q->g, n, i);

    if (!used)
        return true;
    if (f->dims_arg == OPERANDS && i == 1)
        return element_leaf(q, used, true);
    if (f->dims_arg == GROUPS && i > 0)
        return channel_leaf(q, used);
    if (f->dims_arg == CHANNELS && i > 0) /* running statistics are not read, nor an output */
        return i > 2 || rows_leaf(q, used, &q->kept);
    return rows_element(q, used);
}

/* The largest whole number of a type; 0: its numbers are floats. */
static double largest_whole(const char *dtype)
{
    static const struct {
        const char *dtype;
        double most;
    } rows[] = {{"bool", 1},    {"u8", 255},     {"i8", 128},
                {"i16", 32768}, {"i32", 0x1p31}, {"i64", 0x1p63}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].dtype, dtype) == 0)
            return rows[i].most;
    return 0;
}

/* Accumulators are floats: do they hold whole numbers, and what becomes of them, to the last unit?
 */
static bool floats_hold(struct rows *q, const struct node *n, const struct row_form *f)
{
    const struct node *x = graph_arg(q->g, n, 0);
    const struct pass_form *p = &f->passes[0];
    bool counts = strchr(p->element, '?') != NULL;
    double length = 1, most = counts ? 1 : x ? largest_whole(x->t.dtype) : 0;

    for (int d = 0; d < q->full.dims; d++)
        length *= q->reduced[d] ? (double)q->full.shape[d] : 1;
    if (largest_whole(n->t.dtype) == 0)
        return true;
    if (strcmp(p->combine, "Sum") == 0)
        most *= length;
    else if (strcmp(p->combine, "Prod") == 0 && most > 1)
        most = INFINITY;
    else if (strncmp(p->combine, "Arg", 3) == 0)
        most = fmax(most, length);
    return most <= FLOAT_WHOLE;
}

/* All passes of a reduction; afterwards its value has a name or a form. */
static bool reduce(struct rows *q, const struct node *n, const struct row_form *f)
{
    size_t at = (size_t)(n - q->g->nodes), i;
    const char *names[ROW_PASSES];
    int count = 0;
    const json_t *arg;

    json_array_foreach(n->args, i, arg)
    {
        if (!operand(q, n, f, i))
            return false;
    }
    if (!floats_hold(q, n, f))
        return match_no(q->out, q->a, "%s of %s, which a float does not hold", n->op, n->t.dtype);
    for (; count < ROW_PASSES && f->passes[count].name; count++) {
        const struct pass_form *p = &f->passes[count];
        struct row_stage *s = rows_stage(q, p->name);

        if (!s)
            return false;
        q->e.special[at] = bound(q, n, p->element, f->passes, names, count);
        if (!rows_function(q, n, p->name, &s->f))
            return false;
        s->pass = true;
        s->pair = count == 0 ? f->pair : NULL;
        s->f.value = "float";
        s->combine = p->combine;
        s->result = bound(q, n, p->result, f->passes, names, count);
        names[count] = s->name;
        q->stage_count++;
    }
    q->e.special[at] = NULL;
    if (f->kind == PER_ROW) {
        q->stages[q->stage_count - 1].value = expr_value_type(n->t.dtype);
        q->e.leaf[at] = names[count - 1];
        q->row_named[at] = true;
    } else {
        q->e.special[at] = bound(q, n, affine(q, n, f), f->passes, names, count);
    }
    return true;
}

/* Names the reductions and inputs a row's value is computed from. */
static bool row_operands(struct rows *q, const struct node *n)
{
    size_t i;
    const json_t *arg;

    if (graph_op_is(n, ROWS_NLL))
        return rows_nll(q, n);
    if (!graph_reshapes(n) && !expr_knows(n, q->a))
        return match_no(q->out, q->a, "%s on values per row", n->op);
    json_array_foreach(n->args, i, arg)
    {
        const struct node *used = graph_arg(q->g, n, i);
        bool ok = true;

        if (!used || used->value)
            continue;
        if (row_form_of(q->g, used))
            ok = rows_value(q, used);
        else if (is_leaf(q, used))
            ok = rows_leaf(q, used, &n->t);
        else
            ok = row_operands(q, used);
        if (!ok)
            return false;
    }
    return true;
}

/* Gives a row's value a name: by its passes, or as a scalar. */
bool rows_value(struct rows *q, const struct node *n)
{
    size_t at = (size_t)(n - q->g->nodes);
    const struct row_form *f = row_form_of(q->g, n);
    struct row_stage *s;

    if (q->e.leaf[at])
        return true;
    if (f)
        return reduce(q, n, f);
    if (graph_reshapes(n)) {
        if (!rows_value(q, graph_arg(q->g, n, 0)))
            return false;
        q->e.leaf[at] = q->e.leaf[graph_arg(q->g, n, 0) - q->g->nodes];
        q->row_named[at] = true;
        return true;
    }
    if (largest_whole(n->t.dtype) > FLOAT_WHOLE)
        return match_no(q->out, q->a, "values of %s per row, which a float does not hold",
                        n->t.dtype);
    if (!row_operands(q, n))
        return false;
    s = rows_stage(q, graph_short_name(n->op, q->a));
    if (!s || !rows_function(q, n, s->name + strlen("row_"), &s->f))
        return false;
    s->value = s->f.value;
    q->stage_count++;
    q->e.leaf[at] = s->name;
    q->row_named[at] = true;
    return true;
}

/* Does a value per row broadcast to the elements of its row, and not across the rows? */
static bool lies_along(const struct rows *q, const struct node *n)
{
    int missing = q->full.dims - n->t.dims;

    if (tensor_numel(&n->t) == 1)
        return true;
    for (int d = 0; d < q->full.dims; d++)
        if ((d < missing ? 1 : n->t.shape[d - missing]) != (q->reduced[d] ? 1 : q->full.shape[d]))
            return false;
    return missing >= 0;
}

/* Is it a row's value, expanded to all elements of its row? */
static bool spreads_row(const struct rows *q, const struct node *n)
{
    const struct node *x = graph_arg(q->g, n, 0);

    return graph_op_is(n, "aten.expand") && x && rows_is_row(q, x) && lies_along(q, x);
}

/* Names everything that an element's value is computed from. */
bool rows_element(struct rows *q, const struct node *n)
{
    const struct row_form *f = row_form_of(q->g, n);
    size_t i;
    const json_t *arg;

    if (q->ready[n - q->g->nodes] || n->value)
        return true;
    q->ready[n - q->g->nodes] = true;
    if (is_leaf(q, n))
        return element_leaf(q, n, false);
    if (rows_is_row(q, n))
        return lies_along(q, n) ? rows_value(q, n)
                                : match_no(q->out, q->a, "values per row laid across the rows");
    if (f)
        return reduce(q, n, f);
    if (spreads_row(q, n)) {
        if (!rows_value(q, graph_arg(q->g, n, 0)))
            return false;
        q->e.leaf[n - q->g->nodes] = q->e.leaf[graph_arg(q->g, n, 0) - q->g->nodes];
        return true;
    }
    if (graph_reshapes(n) && tensor_numel(&n->t) != tensor_numel(&q->full))
        return match_no(q->out, q->a, "%s inside the rows", n->op);
    if (!graph_reshapes(n) && !expr_knows(n, q->a))
        return match_no(q->out, q->a, "%s is neither pointwise nor a reduction it knows", n->op);
    json_array_foreach(n->args, i, arg)
    {
        const struct node *used = graph_arg(q->g, n, i);

        if (used && !rows_element(q, used))
            return false;
    }
    return true;
}

/* Is all that the pass takes known before the loop of stage `first`? */
static bool known_before(const struct rows *q, const struct row_stage *s, int first)
{
    for (int b = first; b < q->stage_count; b++)
        if (s->f.takes[b])
            return false;
    return true;
}

void rows_join(struct rows *q)
{
    for (int i = 1; i < q->stage_count; i++) {
        struct row_stage *s = &q->stages[i];

        if (!s->pass || q->stages[i - 1].pair) /* the second of a pair has no loop of its own */
            continue;
        for (int l = 0; l < i && !s->with; l++)
            if (q->stages[l].pass && !q->stages[l].with && (l == 0 || !q->stages[l - 1].pair) &&
                known_before(q, s, l))
                s->with = l + 1;
    }
}

bool rows_output(struct rows *q, int k, const struct node *n, bool per_row)
{
    const struct graph *g = q->g;
    struct view v = view_whole(&g->out[k]);
    struct row_tensor *t;

    if (!view_split(&v, per_row ? &q->kept : &q->full))
        return match_no(q->out, q->a, "the output has another shape");
    t = rows_tensor_add(q, NULL, g->out_count == 1 ? "y" : arena_printf(q->a, "y%d", k),
                        g->out[k].dtype, k);
    if (!t || !rows_function(q, n, t->name, &q->outputs[k]))
        return false;
    t->per_row = per_row;
    if (per_row)
        t->kept = v;
    else
        cut(q, &v, t);
    return true;
}

static bool output(struct rows *q, int k)
{
    const struct node *n = graph_node(q->g, q->g->result[k]);
    bool per_row = rows_is_row(q, n), reduces_itself = row_form_of(q->g, n) != NULL;

    if (rows_is_total(q, n))
        return rows_total_output(q, k);
    if (!per_row ? !rows_element(q, n) : reduces_itself ? !rows_value(q, n) : !row_operands(q, n))
        return false;
    return rows_output(q, k, n, per_row);
}

void rows_start(struct rows *q, const struct graph *g, struct arena *a, struct match *out)
{
    static const char *const taken[] = {
        "n",      "row",   "rows",  "count", "values", "value",  "i",      "j",       "t",
        "parts",  "part",  "lane",  "warp",  "v",      "VEC",    "WIDTH",  "place",   "slice",
        "slices", "inner", "outer", "run",   "lost",   "before", "head",   "body",    "off",
        "k",      "here",  "found", "tiles", "block",  "first",  "finish", "finished"};

    q->g = g;
    q->a = a;
    q->out = out;
    q->kernel = match_kernel_name(g, a);
    q->e = (struct expr){.g = g, .a = a, .see_through = true};
    for (size_t i = 0; i < ARRAY_LEN(taken); i++)
        q->names.used[q->names.count++] = taken[i];
}

static bool match_with(struct rows *q, const struct graph *g, struct arena *a, struct match *out)
{
    rows_start(q, g, a, out);
    if (tensor_numel(&g->out[0]) == 0)
        return match_no(out, a, "its output is empty");
    if (!find_rows(q))
        return false;
    for (int k = 0; k < g->out_count; k++)
        if (!output(q, k))
            return false;
    return rows_fill_slots(q);
}

bool match_rows(const struct graph *g, struct arena *a, struct match *out)
{
    struct rows *q = xmap(sizeof(*q)); /* a megabyte; a graph of many parts is tried often */
    bool found = match_with(q, g, a, out);

    xunmap(q, sizeof(*q));
    return found;
}
