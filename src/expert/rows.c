/*
 * rows.c - graphs that reduce rows: softmax, norms, sums, and what is pointwise around them.
 *
 * The graph is cut into stages. A pass reduces an element function over the
 * row; a scalar is computed once per row from passes before it; then outputs
 * are written, per element or per row. Every value is either an element's
 * (shape of what is reduced) or a row's. row_ops.def says which passes an
 * operator is made of; pointwise operators become parts of the functions.
 *
 * All tensors are brought to (n, rows): the reduced dimensions are one mode,
 * the kept ones as few as they allow (modes.h).
 */
#include "base/buf.h"
#include "expert/match.h"
#include "expert/modes.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

enum { ROW_STAGES = 24, ROW_TENSORS = 24, ROW_PASSES = 3, LAST = -1, OPERANDS = -2 };
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

struct row_tensor {
    const struct node *node; /* NULL: an output */
    const char *name, *dtype;
    int index; /* in the call's inputs or outputs */
    bool per_row;
    struct view kept;  /* axes of the rows */
    struct view along; /* axes of the reduced dimensions; none when per_row */
    int uses;          /* stages that read it */
};

/* A device function, or, when it would only return its argument, that argument. */
struct function {
    const char *name, *body;
    const char *value;
    bool reads[ROW_TENSORS], takes[ROW_STAGES]; /* tensors and results of stages it refers to */
    bool alone;                                 /* it only returns its argument */
};

struct stage {
    bool pass;
    const char *name, *combine, *result;
    struct function f;
};

struct rows {
    const struct graph *g;
    struct arena *a;
    struct match *out;
    struct tensor full; /* shape of what is reduced */
    bool reduced[MAX_DIMS];
    struct tensor kept, along; /* its kept and reduced dimensions alone */
    struct expr e;
    bool ready[GRAPH_NODES];
    bool row_named[GRAPH_NODES]; /* e.leaf holds a row's value */
    struct row_tensor tensors[ROW_TENSORS];
    int tensor_count;
    struct stage stages[ROW_STAGES];
    int stage_count;
    struct function outputs[MAX_TENSORS];
    struct names names;
    struct modes row_modes, col_modes;
    const char *kernel;
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

            return b && b->t.shape[b->t.dims - 1] == (b->t.dims == 1 ? b->t.shape[0] : 1)
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

/* ---- layouts ------------------------------------------------------------------------ */

static bool bring_together(struct rows *q)
{
    int lead = 0;

    for (int i = q->tensor_count; i-- > 0;)
        if (q->tensors[i].node && !q->tensors[i].per_row && q->tensors[i].along.axes[0].stride)
            lead = i;
    for (int d = 0; d < q->kept.dims; d++)
        q->kept.strides[d] = q->tensors[lead].kept.axes[d].stride;
    for (int d = 0; d < q->along.dims; d++)
        q->along.strides[d] = q->tensors[lead].along.axes[d].stride;
    modes_start(&q->row_modes, &q->kept);
    modes_start(&q->col_modes, &q->along);
    for (int i = 0; i < q->tensor_count; i++) {
        struct view none = {0};
        struct row_tensor *t = &q->tensors[i];

        if (!modes_add(&q->row_modes, &t->kept) ||
            !modes_add(&q->col_modes, t->per_row ? &none : &t->along))
            return match_no(q->out, q->a, "a tensor does not fit the rows");
    }
    modes_merge(&q->row_modes);
    modes_merge(&q->col_modes);
    return q->col_modes.count == 1 ||
           match_no(q->out, q->a, "the reduced dimensions do not lie together");
}

static const struct axis *along_axis(const struct rows *q, int i)
{
    return &q->col_modes.axis[i + 1][0];
}

static const struct axis *row_axis(const struct rows *q, int i, int mode)
{
    return &q->row_modes.axis[i + 1][mode];
}

static int vector_length(const struct rows *q)
{
    int widest = 1;

    for (int i = 0; i < q->tensor_count; i++)
        if (!q->tensors[i].per_row && expr_bytes(q->tensors[i].dtype) > widest)
            widest = expr_bytes(q->tensors[i].dtype);
    return 16 / widest;
}

static bool vectorisable(const struct rows *q, int vec)
{
    if (vec < 2 || q->col_modes.size[0] % vec != 0)
        return false;
    for (int i = 0; i < q->tensor_count; i++) {
        if (q->tensors[i].per_row || along_axis(q, i)->stride == 0)
            continue;
        if (along_axis(q, i)->stride != 1)
            return false;
        for (int m = 0; m < q->row_modes.count; m++)
            if (row_axis(q, i, m)->stride % vec != 0)
                return false;
    }
    return true;
}

/* ---- filling the recipe --------------------------------------------------------------- */

enum place { PLAIN, VECTOR, REGISTER, SCALAR, PLACES };
static const char *const place_slots[PLACES] = {"plain_call", "vector_call", "register_call",
                                                "scalar_call"};

static bool is_kept(const struct row_tensor *t)
{
    bool moves = false;

    for (int d = 0; d < t->kept.dims; d++)
        moves = moves || t->kept.axes[d].stride;
    return t->node && !t->per_row && t->uses > 1 && moves;
}

/* How an element of a tensor is written at a place. */
static const char *element_text(struct rows *q, const struct row_tensor *t, enum place place)
{
    const char *X = match_capital(t->name, q->a), *value = expr_value_type(t->dtype), *text;

    if (t->per_row)
        text = arena_printf(q->a, "g%s(row)", X);
    else if (place == PLAIN)
        text = arena_printf(q->a, "g%s(i)", X);
    else if (place == REGISTER && is_kept(t))
        text = arena_printf(q->a, "r%s(v, j)", X);
    else
        text = arena_printf(q->a, "r%s(v)", X);
    return strcmp(value, expr_memory_type(t->dtype)) == 0
               ? text
               : arena_printf(q->a, "%s(%s)", value, text);
}

static const char *call_text(struct rows *q, const struct function *f, enum place place)
{
    struct buf b = buf_init(4096);
    const char *text;

    for (int i = 0; i < q->tensor_count; i++)
        if (f->reads[i])
            buf_printf(&b, "%s%s", b.len ? ", " : "", element_text(q, &q->tensors[i], place));
    for (int i = 0; i < q->stage_count; i++)
        if (f->takes[i])
            buf_printf(&b, "%s%s", b.len ? ", " : "", q->stages[i].name);
    buf_puts(&b, "");
    text = f->alone ? buf_copy(&b, q->a).data : arena_printf(q->a, "%s(%s)", f->name, b.data);
    buf_release(&b);
    return text;
}

static const char *cast_text(struct rows *q, const char *dtype, const char *call)
{
    bool same = strcmp(expr_memory_type(dtype), expr_value_type(dtype)) == 0;

    return same ? call : arena_printf(q->a, "%s(%s)", expr_memory_type(dtype), call);
}

static void fill_function(struct rows *q, struct scope *s, const struct function *f)
{
    struct scope *item;
    struct buf params = buf_init(4096);

    if (f->alone)
        return;
    item = scope_item(s, "function");
    for (int i = 0; i < q->tensor_count; i++)
        if (f->reads[i])
            buf_printf(&params, "%s%s %s", params.len ? ", " : "",
                       expr_value_type(q->tensors[i].dtype), q->tensors[i].name);
    for (int i = 0; i < q->stage_count; i++)
        if (f->takes[i])
            buf_printf(&params, "%sfloat %s", params.len ? ", " : "", q->stages[i].name);
    buf_puts(&params, "");
    scope_set(item, "function", "%s", f->name);
    scope_set(item, "value", "%s", f->value);
    scope_set(item, "function_params", "%s", params.data);
    scope_set(item, "body", "%s", f->body);
    buf_release(&params);
}

static void fill_use(struct rows *q, struct scope *s, const char *list, const struct function *f)
{
    for (int i = 0; i < q->tensor_count; i++) {
        const struct row_tensor *t = &q->tensors[i];
        struct scope *item;

        if (t->per_row || !f->reads[i])
            continue;
        item = scope_item(s, list);
        scope_set(item, "X", "%s", match_capital(t->name, q->a));
        scope_set(item, "type", "%s", expr_memory_type(t->dtype));
        scope_set(item, "copy", "%s", along_axis(q, i)->stride ? "Vector{}, " : "");
        if (is_kept(t))
            scope_fact(item, "kept");
    }
}

/* "$it" replaced. */
static const char *result_text(struct rows *q, const char *form, const char *it)
{
    const char *at = strstr(form, "$it");

    return at ? arena_printf(q->a, "%.*s%s%s", (int)(at - form), form, it, at + 3) : form;
}

static const char *identity(const char *combine)
{
    if (strcmp(combine, "Sum") == 0)
        return "0.0f";
    return strcmp(combine, "Max") == 0 ? "__int_as_float(0xff800000)"
                                       : "__int_as_float(0x7f800000)";
}

/* A maximum followed by the sum of exponentials below it, of the same value. */
static bool softmax_at(const struct rows *q, int i)
{
    return i + 1 < q->stage_count && q->stages[i].pass && q->stages[i + 1].pass &&
           strcmp(q->stages[i].combine, "Max") == 0 &&
           strcmp(q->stages[i + 1].combine, "Sum") == 0 &&
           strstr(q->stages[i + 1].f.body, "expf(") &&
           strstr(q->stages[i + 1].f.body, q->stages[i].name) && q->stages[i].f.alone;
}

static void fill_stage(struct rows *q, struct scope *s, int i)
{
    struct stage *st = &q->stages[i];
    struct scope *item = scope_item(s, "stage");
    const char *acc = arena_printf(q->a, "part_%s", st->name + strlen("row_"));

    for (int p = 0; p < PLACES; p++)
        scope_set(item, place_slots[p], "%s", call_text(q, &st->f, (enum place)p));
    scope_set(item, "name", "%s", st->name);
    fill_use(q, item, "use", &st->f);
    fill_function(q, s, &st->f);
    if (!st->pass)
        return;
    scope_fact(item, "pass");
    scope_set(item, "combine", "%s", st->combine);
    scope_set(item, "identity", "%s", identity(st->combine));
    scope_set(item, "acc", "%s", acc);
    scope_set(item, "result", "%s",
              result_text(
                  q, st->result,
                  arena_printf(q->a, "block_reduce<THREADS>(%s, %s{}, shared)", acc, st->combine)));
    scope_set(item, "online_result", "%s", result_text(q, st->result, acc));
    scope_fact(s, arena_printf(q->a, "uses_%s", match_lower(st->combine, q->a)));
    if (strstr(st->result, "count"))
        scope_fact(s, "uses_count");
    if (softmax_at(q, i)) {
        scope_fact(s, "softmax");
        scope_fact(item, "pair");
        scope_set(item, "pair", "part_%s", q->stages[i + 1].name + strlen("row_"));
    } else if (i > 0 && softmax_at(q, i - 1)) {
        scope_fact(item, "paired");
    }
}

static void fill_tensor(struct rows *q, struct scope *s, int i, struct buf *params,
                        struct buf *args)
{
    const struct row_tensor *t = &q->tensors[i];
    struct scope *item = scope_item(s, t->per_row ? "row_tensor" : "tensor");
    const struct axis *along = along_axis(q, i);
    struct buf stride = buf_init(1024);
    bool unit = along->stride == 1;

    scope_set(item, "x", "%s", t->name);
    scope_set(item, "X", "%s", match_capital(t->name, q->a));
    scope_set(item, "type", "%s", expr_memory_type(t->dtype));
    if (is_kept(t))
        scope_fact(item, "kept");
    for (int m = 0; m < q->row_modes.count; m++) {
        const struct axis *x = row_axis(q, i, m);

        buf_puts(&stride, m ? ", " : "");
        if (x->stride == 0 || x->first == x->last) {
            buf_puts(&stride, "_0{}");
            continue;
        }
        buf_printf(&stride, "%s_row%d", t->name, m);
        buf_printf(params, ", int64_t %s_row%d", t->name, m);
        buf_printf(args, ", (int64_t)%s->strides[%d]", t->name, x->last - 1);
    }
    scope_set(item, "row_stride", q->row_modes.count > 1 ? "make_stride(%s)" : "%s",
              buf_text(&stride).data);
    scope_set(item, "unit", "%s", unit ? "_1{}" : "_0{}");
    scope_set(item, "vector_stride", "%s", unit ? "Int<VEC>{}" : "_0{}");
    scope_set(item, "stride", "%s",
              along->stride == 0 ? "_0{}"
                                 : (unit ? "_1{}" : arena_printf(q->a, "%s_along", t->name)));
    if (!t->per_row && along->stride > 1) {
        buf_printf(params, ", int64_t %s_along", t->name);
        buf_printf(args, ", (int64_t)%s->strides[%d]", t->name, along->last - 1);
    }
    buf_release(&stride);
}

static void add_check(struct rows *q, struct scope *s, const char *list, const char *condition,
                      const char *text)
{
    struct scope *item = scope_item(s, list);

    (void)q;
    scope_set(item, "condition", "%s", condition);
    scope_set(item, "text", "%s", text);
}

/* What the plan reads and checks. */
static void fill_plan(struct rows *q, struct scope *s, int vec)
{
    for (int i = 0; i < q->tensor_count; i++) {
        const struct row_tensor *t = &q->tensors[i];
        const struct tensor *of = t->node ? &q->g->in[t->index] : &q->g->out[t->index];
        struct scope *item = scope_item(s, "plan_tensor");
        const struct axis *along = along_axis(q, i);

        scope_set(item, "x", "%s", t->name);
        scope_set(item, "side", "%s", t->node ? "in" : "out");
        scope_set(item, "k", "%d", t->index);
        scope_set(item, "ndim", "%d", of->dims);
        if (t->per_row || along->stride != 1)
            continue;
        add_check(
            q, s, "check", arena_printf(q->a, "%s->strides[%d] == 1", t->name, along->last - 1),
            arena_printf(q->a, "dimension %d of %s must be contiguous", along->last - 1, t->name));
        add_check(q, s, "vector_check", arena_printf(q->a, "cutegen_aligned(%s, 16)", t->name),
                  arena_printf(q->a, "%s must start on a multiple of 16 bytes", t->name));
    }
    add_check(q, s, "vector_check", arena_printf(q->a, "n %% %d == 0", vec),
              arena_printf(q->a, "a row must be a multiple of %d elements", vec));
}

/* Some tensor that knows the size of a mode. */
static const char *size_of(struct rows *q, const struct modes *modes, int mode)
{
    for (int i = 0; i < q->tensor_count; i++) {
        const struct axis *x = &modes->axis[i + 1][mode];

        if (x->first != x->last)
            return match_size_text(q->tensors[i].name, x->first, x->last, q->a);
    }
    return "1";
}

static void fill_sizes(struct rows *q, struct scope *s, struct buf *params, struct buf *args)
{
    struct buf rows = buf_init(256), all = buf_init(256);
    int count = q->row_modes.count;

    buf_puts(params, "int n");
    buf_puts(args, "(int)n");
    for (int m = 0; m < count; m++) {
        struct scope *item = scope_item(s, "row_mode");
        const char *suffix = count > 1 ? arena_printf(q->a, "%d", m) : "";

        scope_set(item, "m", "%s", suffix);
        scope_set(item, "size", "%s", size_of(q, &q->row_modes, m));
        buf_printf(&rows, "%srows%s", m ? ", " : "", suffix);
        buf_printf(&all, "%srows%s", m ? " * " : "", suffix);
        buf_printf(params, ", int rows%s", suffix);
        buf_printf(args, ", (int)rows%s", suffix);
    }
    scope_set(s, "n", "%s", size_of(q, &q->col_modes, 0));
    scope_set(s, "rows", count > 1 ? "make_shape(%s)" : "%s", buf_text(&rows).data);
    scope_set(s, "all_rows", "%s", buf_text(&all).data);
    buf_release(&rows);
    buf_release(&all);
}

/* Threads per row and vectors per thread: about four vectors each. */
static void fill_launch(struct rows *q, struct scope *s, int vec)
{
    int64_t n = q->col_modes.size[0], threads = 64, items;
    int kept = 0;

    while (threads < 1024 && n / vec > threads * 4)
        threads *= 2;
    items = (n / vec + threads - 1) / threads;
    for (int i = 0; i < q->tensor_count; i++)
        kept += is_kept(&q->tensors[i]);
    scope_set(s, "threads", "%d", (int)threads);
    scope_set(s, "items", "%d", (int)(items ? items : 1));
    scope_set(s, "vec", "%d", vec);
    if (kept)
        scope_fact(s, "reread");
    if (items * kept <= 8)
        scope_fact(s, "fits");
    if (vectorisable(q, vec))
        scope_fact(s, "vectors");
}

static void count_uses(struct rows *q)
{
    for (int i = 0; i < q->tensor_count; i++) {
        struct row_tensor *t = &q->tensors[i];

        for (int k = 0; t->node && k < q->stage_count; k++)
            t->uses += q->stages[k].f.reads[i];
        for (int k = 0; t->node && k < q->g->out_count; k++)
            t->uses += q->outputs[k].reads[i];
    }
}

static void fill_outputs(struct rows *q, struct scope *s)
{
    struct function any = {0};

    for (int i = 0; i < q->tensor_count; i++) {
        const struct row_tensor *t = &q->tensors[i];
        const struct function *f = &q->outputs[t->index];
        struct scope *item;

        if (t->node)
            continue;
        fill_function(q, s, f);
        item = scope_item(s, t->per_row ? "row_output" : "output");
        scope_fact(s, t->per_row ? "rows" : "elements");
        scope_set(item, "X", "%s", match_capital(t->name, q->a));
        scope_set(item, "type", "%s", expr_memory_type(t->dtype));
        for (int p = 0; p < PLACES; p++)
            scope_set(item, place_slots[p], "%s",
                      cast_text(q, t->dtype, call_text(q, f, (enum place)p)));
        for (int k = 0; k < q->tensor_count && !t->per_row; k++)
            any.reads[k] = any.reads[k] || f->reads[k];
    }
    fill_use(q, s, "output_use", &any);
}

static bool fill(struct rows *q)
{
    struct scope *s = q->out->scope = scope_new(q->a, NULL);
    struct buf params = buf_init(8192), args = buf_init(8192), pointers = buf_init(8192),
               data = buf_init(8192);
    int vec = vector_length(q);

    count_uses(q);
    scope_set(s, "kernel", "%s", q->kernel);
    scope_set(s, "ops", "%s", graph_ops(q->g, q->a));
    for (int i = 0; i < q->stage_count; i++)
        fill_stage(q, s, i);
    fill_outputs(q, s);
    fill_sizes(q, s, &params, &args);
    for (int i = 0; i < q->tensor_count; i++) {
        const struct row_tensor *t = &q->tensors[i];
        const char *type = expr_memory_type(t->dtype), *constant = t->node ? " const" : "";

        fill_tensor(q, s, i, &params, &args);
        buf_printf(&pointers, "%s%s *%s, ", type, constant, t->name);
        buf_printf(&data, "CUTEGEN_DATA(%s%s, %s), ", type, constant, t->name);
    }
    fill_plan(q, s, vec);
    fill_launch(q, s, vec);
    scope_set(s, "params", "%s%s", buf_text(&pointers).data, buf_text(&params).data);
    scope_set(s, "args", "%s%s", buf_text(&data).data, buf_text(&args).data);
    buf_release(&params);
    buf_release(&args);
    buf_release(&pointers);
    buf_release(&data);
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
    return bring_together(q) && fill(q);
}
