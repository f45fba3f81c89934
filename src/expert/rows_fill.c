/*
 * rows_fill.c - the stages of a row reduction, as slots of its recipe.
 *
 * All tensors are brought to (n, rows): the reduced dimensions are one mode,
 * the kept ones as few as they allow (modes.h).
 */
#include "expert/rows.h"

#include "base/buf.h"

#include <string.h>

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

bool rows_fill(struct rows *q)
{
    struct scope *s = q->out->scope = scope_new(q->a, NULL);
    struct buf params = buf_init(8192), args = buf_init(8192), pointers = buf_init(8192),
               data = buf_init(8192);
    int vec = vector_length(q);

    if (!bring_together(q))
        return false;
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
    match_scalars(q->g, s);
    fill_launch(q, s, vec);
    scope_set(s, "params", "%s%s", buf_text(&pointers).data, buf_text(&params).data);
    scope_set(s, "args", "%s%s", buf_text(&data).data, buf_text(&args).data);
    buf_release(&params);
    buf_release(&args);
    buf_release(&pointers);
    buf_release(&data);
    return true;
}
