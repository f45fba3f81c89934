/*
 * rows.c - graphs that reduce rows: softmax, norms, sums, and what is pointwise around them.
 *
 * The graph is cut into stages (rows.h). Every value is either an element's
 * (shape of what is reduced) or a row's. row_ops.def says which passes an
 * operator is made of; pointwise operators become parts of the functions.
 */
#include "expert/rows.h"

#include "base/buf.h"

#include <ctype.h>
#include <string.h>

enum { ROW_PASSES = 3, LAST = -1, OPERANDS = -2 };
enum value_kind { PER_ROW, ELEMENT };

struct pass_form {
    const char *name, *combine, *element, *result;
};

static const struct row_form {
    const char *op;
    enum value_kind kind;
    int dims_arg;
    const char *value;
    struct pass_form passes[ROW_PASSES];
} forms[] = {
#define PASS(name, combine, element, result) {name, combine, element, result},
#define ROW(op, kind, dims, value, passes)   {op, kind, dims, value, {passes}},
#include "expert/row_ops.def"
#undef ROW
#undef PASS
};

static bool element(struct rows *q, const struct node *n);
static bool row_value(struct rows *q, const struct node *n);

/* ---- the reductions --------------------------------------------------------- */

static const struct row_form *form_of(const struct graph *g, const struct node *n)
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        if (!graph_op_is(n, forms[i].op))
            continue;
        if (strstr(n->op, ".other"))
            return NULL; /* the maximum of two tensors */
        if (forms[i].dims_arg == OPERANDS) {
            const struct node *b = graph_arg(g, n, 1);

            return b && b->t.dims > 0 &&
                           b->t.shape[b->t.dims - 1] == (b->t.dims == 1 ? b->t.shape[0] : 1)
                       ? &forms[i]
                       : NULL;
        }
        return &forms[i];
    }
    return NULL;
}

/* Which dimensions of its argument the operator reduces. */
static bool reduced_dims(const struct node *n, const struct row_form *f, const struct tensor *x,
                         bool out[MAX_DIMS])
{
    int64_t dims[MAX_DIMS];
    int count = 0;

    memset(out, 0, sizeof(bool) * MAX_DIMS);
    if (f->dims_arg == OPERANDS) {
        out[x->dims - 1] = true;
        return true;
    }
    if (f->dims_arg == LAST) {
        count = graph_arg_ints(n, 1, "normalized_shape", dims);
        for (int d = x->dims - count; count > 0 && d < x->dims; d++)
            out[d] = true;
        return count > 0;
    }
    if (graph_arg_json(n, (size_t)f->dims_arg, "dim"))
        count = graph_arg_ints(n, (size_t)f->dims_arg, "dim", dims);
    for (int i = 0; i < count; i++) {
        int64_t d = dims[i] < 0 ? dims[i] + x->dims : dims[i];

        if (d < 0 || d >= x->dims)
            return false;
        out[d] = true;
    }
    for (int d = 0; d < x->dims && count == 0; d++)
        out[d] = true;
    return count >= 0;
}

static void split_shape(struct rows *q)
{
    for (int d = 0; d < q->full.dims; d++) {
        struct tensor *t = q->reduced[d] ? &q->along : &q->kept;

        t->strides[t->dims] = q->full.strides[d];
        t->shape[t->dims++] = q->full.shape[d];
    }
}

/* All reductions must run over the same dimensions of the same shape. */
static bool find_rows(struct rows *q)
{
    bool found = false;

    for (int i = 0; i < q->g->count; i++) {
        const struct node *n = &q->g->nodes[i], *x = graph_arg(q->g, n, 0);
        const struct row_form *f = form_of(q->g, n);
        bool reduced[MAX_DIMS];
        double order = 2;

        if (!f)
            continue;
        if (!x || !reduced_dims(n, f, &x->t, reduced))
            return match_no(q->out, q->a, "%s with arguments it cannot read", n->op);
        if (graph_op_is(n, "aten.linalg_vector_norm") && graph_arg_json(n, 1, "ord") &&
            (!graph_number(graph_arg_json(n, 1, "ord"), &order) || order < 2 || order > 2))
            return match_no(q->out, q->a, "a norm other than the Euclidean one");
        if (!found) {
            q->full = x->t;
            memcpy(q->reduced, reduced, sizeof(reduced));
        } else if (x->t.dims != q->full.dims || memcmp(reduced, q->reduced, sizeof(reduced)) != 0 ||
                   memcmp(x->t.shape, q->full.shape, sizeof(int64_t) * (size_t)x->t.dims) != 0) {
            return match_no(q->out, q->a, "its reductions run over different dimensions");
        }
        found = true;
    }
    if (!found)
        return match_no(q->out, q->a, "no reduction along rows");
    split_shape(q);
    return tensor_numel(&q->along) > 1 || match_no(q->out, q->a, "it reduces single elements");
}

/* ---- tensors ------------------------------------------------------------------ */

/* Cuts a view over the full shape into its kept and its reduced axes. */
static void cut(const struct rows *q, const struct view *v, struct row_tensor *t)
{
    t->kept = t->along = (struct view){.input = v->input};
    for (int d = 0; d < v->dims; d++) {
        struct view *part = q->reduced[d] ? &t->along : &t->kept;

        part->axes[part->dims++] = v->axes[d];
    }
}

static struct row_tensor *tensor_add(struct rows *q, const struct node *n, const char *wanted,
                                     const char *dtype, int index)
{
    struct row_tensor *t = &q->tensors[q->tensor_count];

    if (q->tensor_count == ROW_TENSORS || !expr_memory_type(dtype)) {
        match_no(q->out, q->a, "too many tensors, or one of %s", dtype);
        return NULL;
    }
    *t = (struct row_tensor){.node = n, .dtype = dtype, .index = index};
    t->name = names_add(&q->names, wanted, q->a);
    q->tensor_count++;
    return t;
}

/* An input read per element; a matrix-vector product's vector runs along the row. */
static bool element_leaf(struct rows *q, const struct node *n, bool vector)
{
    struct row_tensor *t;
    struct view v;

    if (!graph_view(q->g, n, &v))
        return match_no(q->out, q->a, "%s is not an input", n->op);
    if (vector && v.dims == 2)
        v.dims = 1;
    if (!view_expand(&v, &q->full))
        return match_no(q->out, q->a, "'%s' does not broadcast to the rows",
                        q->g->in[v.input].name);
    t = tensor_add(q, n, q->g->in[v.input].name, n->t.dtype, v.input);
    if (!t)
        return false;
    cut(q, &v, t);
    q->e.leaf[n - q->g->nodes] = t->name;
    return true;
}

/* An input with one value per row, beside values of shape `at`. */
static bool row_leaf(struct rows *q, const struct node *n, const struct tensor *at)
{
    size_t i = (size_t)(n - q->g->nodes);
    struct row_tensor *t;
    struct view v;

    if (q->e.leaf[i])
        return q->row_named[i] ||
               match_no(q->out, q->a, "an input is used per row and per element");
    if (!graph_view(q->g, n, &v) || !view_expand(&v, at) || !view_reshape(&v, &q->kept))
        return match_no(q->out, q->a, "%s does not broadcast to one value per row", n->op);
    t = tensor_add(q, n, q->g->in[v.input].name, n->t.dtype, v.input);
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

    return graph_view(q->g, n, &v);
}

/* Is it one value per row, computed from reductions? */
static bool is_row(const struct rows *q, const struct node *n)
{
    const struct row_form *f = form_of(q->g, n);
    bool some = false;
    size_t i;
    const json_t *arg;

    if (f)
        return f->kind == PER_ROW;
    if (n->value || is_leaf(q, n) || tensor_numel(&n->t) != tensor_numel(&q->kept))
        return false;
    json_array_foreach(n->args, i, arg)
    {
        const struct node *used = graph_arg(q->g, n, i);

        some = some || (used && is_row(q, used));
    }
    return some;
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
        if (isdigit((unsigned char)p[1]) &&
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
static bool function_of(struct rows *q, const struct node *n, const char *suffix,
                        struct function *out)
{
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

static struct stage *stage_add(struct rows *q, const char *wanted)
{
    struct stage *s = &q->stages[q->stage_count];

    if (q->stage_count == ROW_STAGES) {
        match_no(q->out, q->a, "more than %d passes", ROW_STAGES);
        return NULL;
    }
    *s = (struct stage){.name = names_add(&q->names, arena_printf(q->a, "row_%s", wanted), q->a)};
    return s;
}

/* layer_norm's weight and bias, where given. */
static const char *affine(struct rows *q, const struct node *n, const char *value)
{
    if (!graph_op_is(n, "aten.native_layer_norm"))
        return value;
    if (graph_arg_json(n, 2, NULL))
        value = arena_printf(q->a, "%s * $2", value);
    return graph_arg_json(n, 3, NULL) ? arena_printf(q->a, "%s + $3", value) : value;
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
        const struct node *used = graph_arg(q->g, n, i);
        bool vector = f->dims_arg == OPERANDS && i == 1;

        if (used && !(vector ? element_leaf(q, used, true) : element(q, used)))
            return false;
    }
    for (; count < ROW_PASSES && f->passes[count].name; count++) {
        const struct pass_form *p = &f->passes[count];
        struct stage *s = stage_add(q, p->name);

        if (!s)
            return false;
        q->e.special[at] = bound(q, n, p->element, f->passes, names, count);
        if (!function_of(q, n, p->name, &s->f))
            return false;
        s->pass = true;
        s->f.value = "float";
        s->combine = p->combine;
        s->result = bound(q, n, p->result, f->passes, names, count);
        names[count] = s->name;
        q->stage_count++;
    }
    q->e.special[at] = NULL;
    if (f->kind == PER_ROW) {
        q->e.leaf[at] = names[count - 1];
        q->row_named[at] = true;
    } else {
        q->e.special[at] = bound(q, n, affine(q, n, f->value), f->passes, names, count);
    }
    return true;
}

/* Names the reductions and inputs a row's value is computed from. */
static bool row_operands(struct rows *q, const struct node *n)
{
    size_t i;
    const json_t *arg;

    if (!graph_reshapes(n) && !expr_knows(n, q->a))
        return match_no(q->out, q->a, "%s on values per row", n->op);
    json_array_foreach(n->args, i, arg)
    {
        const struct node *used = graph_arg(q->g, n, i);
        bool ok = true;

        if (!used || used->value)
            continue;
        if (form_of(q->g, used))
            ok = row_value(q, used);
        else if (is_leaf(q, used))
            ok = row_leaf(q, used, &n->t);
        else
            ok = row_operands(q, used);
        if (!ok)
            return false;
    }
    return true;
}

/* Gives a row's value a name: by its passes, or as a scalar. */
static bool row_value(struct rows *q, const struct node *n)
{
    size_t at = (size_t)(n - q->g->nodes);
    const struct row_form *f = form_of(q->g, n);
    struct stage *s;

    if (q->e.leaf[at])
        return true;
    if (f)
        return reduce(q, n, f);
    if (graph_reshapes(n)) {
        if (!row_value(q, graph_arg(q->g, n, 0)))
            return false;
        q->e.leaf[at] = q->e.leaf[graph_arg(q->g, n, 0) - q->g->nodes];
        q->row_named[at] = true;
        return true;
    }
    if (!row_operands(q, n))
        return false;
    s = stage_add(q, graph_short_name(n->op, q->a));
    if (!s || !function_of(q, n, s->name + strlen("row_"), &s->f))
        return false;
    q->stage_count++;
    q->e.leaf[at] = s->name;
    q->row_named[at] = true;
    return true;
}

/* Makes everything known that an element's value is computed from. */
static bool element(struct rows *q, const struct node *n)
{
    const struct row_form *f = form_of(q->g, n);
    size_t i;
    const json_t *arg;

    if (q->ready[n - q->g->nodes] || n->value)
        return true;
    q->ready[n - q->g->nodes] = true;
    if (is_leaf(q, n))
        return element_leaf(q, n, false);
    if (is_row(q, n))
        return row_value(q, n);
    if (f)
        return reduce(q, n, f);
    if (graph_reshapes(n) && tensor_numel(&n->t) != tensor_numel(&q->full))
        return match_no(q->out, q->a, "%s inside the rows", n->op);
    if (!graph_reshapes(n) && !expr_knows(n, q->a))
        return match_no(q->out, q->a, "%s is neither pointwise nor a reduction it knows", n->op);
    json_array_foreach(n->args, i, arg)
    {
        const struct node *used = graph_arg(q->g, n, i);

        if (used && !element(q, used))
            return false;
    }
    return true;
}

static bool output(struct rows *q, int k)
{
    const struct graph *g = q->g;
    const struct node *n = graph_node(g, g->result[k]);
    bool per_row = is_row(q, n);
    struct view v = view_whole(&g->out[k]);
    struct row_tensor *t;

    if (!(per_row ? row_operands(q, n) || form_of(g, n) : element(q, n)))
        return false;
    if (per_row && form_of(g, n) && !row_value(q, n))
        return false;
    if (!view_reshape(&v, per_row ? &q->kept : &q->full))
        return match_no(q->out, q->a, "the output has another shape");
    t = tensor_add(q, NULL, g->out_count == 1 ? "y" : arena_printf(q->a, "y%d", k), g->out[k].dtype,
                   k);
    if (!t || !function_of(q, n, t->name, &q->outputs[k]))
        return false;
    t->per_row = per_row;
    if (per_row)
        t->kept = v;
    else
        cut(q, &v, t);
    return true;
}

bool match_rows(const struct graph *g, struct arena *a, struct match *out)
{
    static const char *const taken[] = {"n", "row", "rows", "count", "shared", "value", "i", "j"};
    struct rows *q = arena_alloc(a, sizeof(*q));

    q->g = g;
    q->a = a;
    q->out = out;
    q->kernel = match_kernel_name(g, a);
    q->e = (struct expr){.g = g, .a = a, .see_through = true};
    for (size_t i = 0; i < ARRAY_LEN(taken); i++)
        q->names.used[q->names.count++] = taken[i];
    if (tensor_numel(&g->out[0]) == 0)
        return match_no(out, a, "its output is empty");
    if (!find_rows(q))
        return false;
    for (int k = 0; k < g->out_count; k++)
        if (!output(q, k))
            return false;
    return rows_fill(q);
}
