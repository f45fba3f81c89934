/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_slots.c - the stages of a row reduction, as slots of its recipe.
 *
 * All tensors are brought to (n, rows): the reduced dimensions and the kept
 * ones each as few modes as they allow (index_space.h). How a tensor's element is written depends
 * on whether it is in memory, in a vector or in registers.
 */
#include "expert/match/rows_slots.h"

#include "base/buf.h"

#include <string.h>

/* ---- layouts ------------------------------------------------------------------------ */

static bool bring_together(struct rows *q)
{
    struct view kept, along;
    int lead = 0;

    for (int i = q->tensor_count; i-- > 0;)
        if (q->tensors[i].node && !q->tensors[i].per_row && q->tensors[i].along.axes[0].stride)
            lead = i;
    for (int d = 0; d < q->kept.dims; d++)
        q->kept.strides[d] = q->tensors[lead].kept.axes[d].stride;
    for (int d = 0; d < q->along.dims; d++)
        q->along.strides[d] = q->tensors[lead].along.axes[d].stride;
    kept = view_whole(&q->kept);
    along = view_whole(&q->along);
    modes_start(&q->row_modes, &kept);
    modes_start(&q->col_modes, &along);
    for (int i = 0; i < q->tensor_count; i++) {
        struct view none = {0};
        struct row_tensor *t = &q->tensors[i];

        if (!modes_add(&q->row_modes, &t->kept) ||
            !modes_add(&q->col_modes, t->per_row ? &none : &t->along))
            return match_no(q->out, q->a, "a tensor does not fit the rows");
    }
    modes_merge(&q->row_modes);
    modes_merge(&q->col_modes);
    return true;
}

const struct axis *rows_along(const struct rows *q, int i, int mode)
{
    return &q->col_modes.axis[i + 1][mode];
}

const struct axis *rows_axis(const struct rows *q, int i, int mode)
{
    return &q->row_modes.axis[i + 1][mode];
}

int64_t rows_count(const struct rows *q)
{
    int64_t count = 1;

    for (int m = 0; m < q->row_modes.count; m++)
        count *= q->row_modes.size[m];
    return count;
}

int64_t rows_length(const struct rows *q)
{
    int64_t n = 1;

    for (int m = 0; m < q->col_modes.count; m++)
        n *= q->col_modes.size[m];
    return n;
}

/* Does the tensor step evenly through all modes, as through one? */
static bool even(const struct modes *modes, int i)
{
    const struct axis *x = modes->axis[i + 1];

    for (int m = 1; m < modes->count; m++)
        if (x[m].stride != x[m - 1].stride * modes->size[m - 1])
            return false;
    return true;
}

int rows_vector_length(const struct rows *q)
{
    int widest = 1;

    for (int i = 0; i < q->tensor_count; i++)
        if (!q->tensors[i].per_row && expr_bytes(q->tensors[i].dtype) > widest)
            widest = expr_bytes(q->tensors[i].dtype);
    return 16 / widest;
}

int64_t rows_offset(const struct rows *q, int i)
{
    const struct row_tensor *t = &q->tensors[i];

    return t->node ? view_offset(&t->kept, &q->g->in[t->index]) : 0;
}

/* 16-byte accesses along the rows. */
bool rows_vectorisable(const struct rows *q, int vec)
{
    if (vec < 2 || q->col_modes.size[0] % vec != 0)
        return false;
    for (int i = 0; i < q->tensor_count; i++) {
        if (q->tensors[i].per_row || rows_along(q, i, 0)->stride == 0)
            continue;
        if (rows_along(q, i, 0)->stride != 1 || rows_offset(q, i) % vec != 0)
            return false;
        for (int m = 1; m < q->col_modes.count; m++)
            if (rows_along(q, i, m)->stride % vec != 0)
                return false;
        for (int m = 0; m < q->row_modes.count; m++)
            if (rows_axis(q, i, m)->stride % vec != 0)
                return false;
    }
    return true;
}

/* ---- calls ---------------------------------------------------------------------------- */

static const char *const place_slots[PLACES] = {
    [PLAIN] = "plain_call",        [VECTOR] = "vector_call",      [REGISTER] = "register_call",
    [SCALAR] = "scalar_call",      [PICK] = "pick_call",          [SHARE] = "share_call",
    [COLUMN] = "column_call",      [COLUMN_HELD] = "column_held", [COLUMN_SCALAR] = "column_scalar",
    [FOLD_SCALAR] = "fold_scalar",
};

bool rows_moves(const struct row_tensor *t)
{
    for (int d = 0; d < t->kept.dims; d++)
        if (t->kept.axes[d].stride)
            return true;
    return !t->node;
}

bool rows_kept(const struct row_tensor *t)
{
    return t->node && !t->per_row && t->uses > 1 && rows_moves(t);
}

/* A softmax of an input, and nothing else: its exponentials can stay where the elements were. */
static void set_keeps(struct rows *q, struct scope *s)
{
    const struct node *n = graph_node(q->g, q->g->result[0]), *x = graph_arg(q->g, n, 0);

    if (q->g->out_count != 1 || !graph_op_is(n, "aten._softmax") || q->stage_count != 2 ||
        !q->stages[0].f.alone || strcmp(q->g->out[0].dtype, "f32") != 0 ||
        strcmp(x->t.dtype, "f32") != 0)
        return;
    scope_fact(s, "keeps");
    scope_set(s, "keep", "%s", match_capital(q->tensors[0].name, q->a));
    scope_set(s, "keep_max", "%s", q->stages[0].name);
    scope_set(s, "keep_scale", "%s", q->stages[1].name);
}

/* How an element of a tensor is written at a place. */
static const char *element_text(struct rows *q, const struct row_tensor *t, enum place place)
{
    const char *X = match_capital(t->name, q->a), *value = expr_value_type(t->dtype), *text;

    if (t->per_row && place == FOLD_SCALAR)
        text = arena_printf(q->a, "r%s[0]", X);
    else if (t->per_row && place >= COLUMN)
        text = arena_printf(q->a, "r%s(v)", X);
    else if (t->per_row)
        text = arena_printf(q->a, "g%s(row)", X);
    else if (place == PLAIN)
        text = arena_printf(q->a, "g%s(i)", X);
    else if (place == PICK)
        text = arena_printf(q->a, "picked%s", X);
    else if (place == SHARE && rows_moves(t))
        text = arena_printf(q->a, "r%s(v, r)", X);
    else if ((place == REGISTER || place == COLUMN_HELD) && rows_kept(t))
        text = arena_printf(q->a, "r%s(v, j)", X);
    else
        text = arena_printf(q->a, "r%s(v)", X);
    return strcmp(value, expr_memory_type(t->dtype)) == 0
               ? text
               : arena_printf(q->a, "%s(%s)", value, text);
}

const char *rows_call(struct rows *q, const struct function *f, enum place place)
{
    struct buf b = buf_init(4096);
    const char *text, *index = place >= COLUMN ? "[v]" : "";

    for (int i = 0; i < q->tensor_count; i++)
        if (f->reads[i])
            buf_printf(&b, "%s%s", b.len ? ", " : "", element_text(q, &q->tensors[i], place));
    for (int i = 0; i < q->stage_count; i++)
        if (f->takes[i])
            buf_printf(&b, "%s%s%s", b.len ? ", " : "", q->stages[i].name, index);
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

static void fill_function(struct rows *q, struct scope *s, const struct function *f, bool second)
{
    struct scope *item;
    struct buf params = buf_init(4096);

    if (f->alone || !f->name)
        return;
    item = scope_item(s, "function");
    for (int i = 0; i < q->tensor_count; i++)
        if (f->reads[i])
            buf_printf(&params, "%s%s %s", params.len ? ", " : "",
                       expr_value_type(q->tensors[i].dtype), q->tensors[i].name);
    for (int i = 0; i < q->stage_count; i++)
        if (f->takes[i])
            buf_printf(&params, "%s%s %s", params.len ? ", " : "", q->stages[i].value,
                       q->stages[i].name);
    buf_puts(&params, "");
    scope_set(item, "function", "%s", f->name);
    scope_set(item, "value", "%s", f->value);
    scope_set(item, "function_params", "%s", params.data);
    scope_set(item, "body", "%s", f->body);
    scope_set(item, "quick", "%s", f->quick);
    expr_helpers(f->quick, s, q->a);
    if (strcmp(f->body, f->quick) != 0)
        scope_fact(s, "fast");
    if (second)
        scope_fact(item, "second");
    if (strstr(f->body, "exponential("))
        scope_fact(s, "exponentials");
    buf_release(&params);
}

/* ---- tensors --------------------------------------------------------------------------- */

/* "a, b" or, when there are several, "make_shape(a, b)". */
static const char *together(struct rows *q, const char *what, const char *list, bool several)
{
    return several ? arena_printf(q->a, "make_%s(%s)", what, list) : list;
}

/* Appends a stride as a parameter of its own; its name, or the constant it is. */
static const char *stride_param(struct rows *q, const struct row_tensor *t, const struct axis *x,
                                const char *what, int mode)
{
    if (x->stride == 0 || x->first == x->last)
        return "_0{}";
    return arena_printf(q->a, "%s_%s%d", t->name, what, mode);
}

/* Layout slots of one tensor, and what it brings to the signature. */
static void set_layout(struct rows *q, struct scope *item, int i)
{
    const struct row_tensor *t = &q->tensors[i];
    bool flat = even(&q->col_modes, i), unit = rows_along(q, i, 0)->stride == 1;
    int cols = flat ? 1 : q->col_modes.count, rows = q->row_modes.count;
    const char *stride = "", *vector = "", *shape = "", *vector_shape = "", *row = "";

    for (int m = 0; m < cols && !t->per_row; m++) {
        const struct axis *x = rows_along(q, i, m);
        const char *name = x->stride == 1 && m == 0 ? "_1{}" : stride_param(q, t, x, "along", m);

        stride = arena_printf(q->a, "%s%s%s", stride, m ? ", " : "", name);
        vector = m ? arena_printf(q->a, "%s, %s", vector, name) : unit ? "Int<VEC>{}" : "_0{}";
        shape = flat ? "n" : arena_printf(q->a, "%s%sn%d", shape, m ? ", " : "", m);
        vector_shape = flat ? "n / VEC"
                            : arena_printf(q->a, "%s%sn%d%s", vector_shape, m ? ", " : "", m,
                                           m ? "" : " / VEC");
    }
    for (int m = 0; m < rows; m++)
        row = arena_printf(q->a, "%s%s%s", row, m ? ", " : "",
                           stride_param(q, t, rows_axis(q, i, m), "row", m));
    scope_set(item, "stride", "%s", together(q, "stride", stride, cols > 1));
    scope_set(item, "vector_stride", "%s", together(q, "stride", vector, cols > 1));
    scope_set(item, "shape", "%s", together(q, "shape", shape, cols > 1));
    scope_set(item, "vector_shape", "%s", together(q, "shape", vector_shape, cols > 1));
    scope_set(item, "row_stride", "%s", together(q, "stride", row, rows > 1));
    scope_set(item, "rows_stride", "%s",
              rows > 1 ? together(q, "stride", row, true)
                       : arena_printf(q->a, "make_stride(%s)", row));
    scope_set(item, "unit", "%s", unit ? "_1{}" : "_0{}");
}

void rows_tensor(struct rows *q, struct scope *item, int i)
{
    const struct row_tensor *t = &q->tensors[i];

    scope_set(item, "x", "%s", t->name);
    scope_set(item, "X", "%s", match_capital(t->name, q->a));
    scope_set(item, "type", "%s", expr_memory_type(t->dtype));
    scope_set(item, "copy", "%s", rows_along(q, i, 0)->stride ? "Vector{}, " : "");
    if (rows_kept(t))
        scope_fact(item, "kept");
    if (!rows_moves(t))
        scope_fact(item, "fixed");
    for (int k = 0; k < q->g->out_count; k++)
        if (!t->node || q->outputs[k].reads[i])
            scope_fact(item, "written");
    set_layout(q, item, i);
    rows_column_layout(q, item, i);
}

void rows_pointers(struct rows *q, const bool *in, struct buf *params, struct buf *args)
{
    for (int i = 0; i < q->tensor_count; i++) {
        const struct row_tensor *t = &q->tensors[i];
        const char *type = expr_memory_type(t->dtype), *constant = t->node ? " const" : "";

        if (!in[i])
            continue;
        buf_printf(params, "%s%s *%s, ", type, constant, t->name);
        buf_printf(
            args, "%s, ",
            match_pointer(arena_printf(q->a, "%s%s", type, constant), t->name, t->kept.from, q->a));
    }
}

/* Pointers, then sizes, then the strides that are not constants: of the tensors in `in`. */
void rows_signature(struct rows *q, const bool *in, struct buf *params, struct buf *args)
{
    rows_pointers(q, in, params, args);
    buf_puts(params, "int n");
    buf_puts(args, "(int)n");
    for (int m = 0; m < q->col_modes.count && q->col_modes.count > 1; m++) {
        buf_printf(params, ", int n%d", m);
        buf_printf(args, ", (int)n%d", m);
    }
    for (int m = 0; m < q->row_modes.count; m++) {
        const char *suffix = q->row_modes.count > 1 ? arena_printf(q->a, "%d", m) : "";

        buf_printf(params, ", int rows%s", suffix);
        buf_printf(args, ", (int)rows%s", suffix);
    }
    for (int i = 0; i < q->tensor_count; i++) {
        const struct row_tensor *t = &q->tensors[i];
        int cols = t->per_row ? 0 : even(&q->col_modes, i) ? 1 : q->col_modes.count;

        for (int m = 0; in[i] && m < cols + q->row_modes.count; m++) {
            bool col = m < cols;
            int mode = col ? m : m - cols;
            const struct axis *x = col ? rows_along(q, i, mode) : rows_axis(q, i, mode);
            const char *name = stride_param(q, t, x, col ? "along" : "row", mode);

            if (*name == '_' || (col && mode == 0 && x->stride == 1))
                continue;
            buf_printf(params, ", int64_t %s", name);
            buf_printf(args, ", (int64_t)%s", match_axis_stride(t->name, x, q->a));
        }
    }
}

/* ---- stages ---------------------------------------------------------------------------- */

static void fill_use(struct rows *q, struct scope *s, const char *list, const struct function *f)
{
    for (int i = 0; i < q->tensor_count; i++)
        if (f->reads[i])
            rows_tensor(q, scope_item(s, q->tensors[i].per_row ? "row_use" : list), i);
}

/* "$it" replaced. */
static const char *result_text(struct rows *q, const char *form, const char *it)
{
    const char *at = strstr(form, "$it");

    return at ? arena_printf(q->a, "%.*s%s%s", (int)(at - form), form, it, at + 3) : form;
}

/* Names of other stages in a result are values per column there: "row_max" -> "row_max[v]". */
static const char *column_text(struct rows *q, const char *text)
{
    for (int i = 0; i < q->stage_count; i++) {
        const char *name = q->stages[i].name, *at = strstr(text, name);

        if (at)
            text =
                arena_printf(q->a, "%.*s%s[v]%s", (int)(at - text), text, name, at + strlen(name));
    }
    return text;
}

static const char *acc_name(struct rows *q, const struct row_stage *st)
{
    return arena_printf(q->a, "part_%s", strchr(st->name, '_') + 1);
}

static void set_pair(struct rows *q, struct scope *s, struct scope *item, int i)
{
    struct row_stage *st = &q->stages[i];
    const char *acc = acc_name(q, st);

    if (st->pair) {
        scope_fact(s, "pairs");
        scope_fact(s, match_lower(st->pair, q->a));
        scope_fact(item, "pair");
        scope_set(item, "pair_type", "%s", st->pair);
        scope_set(item, "pair_first", "%s.first", acc);
        scope_set(item, "column_first", "%s[v].first", acc);
    } else if (i > 0 && q->stages[i - 1].pair) {
        acc = acc_name(q, &q->stages[i - 1]);
        scope_fact(item, "paired");
        scope_set(item, "pair_second", "%s",
                  result_text(q, st->result, arena_printf(q->a, "%s.second", acc)));
        scope_set(
            item, "column_second", "%s",
            result_text(q, column_text(q, st->result), arena_printf(q->a, "%s[v].second", acc)));
    }
}

/* Slots of a stage that do not depend on the recipe; k: how many passes come before it. */
static void set_stage(struct rows *q, struct scope *s, struct scope *item, int i, int k)
{
    struct row_stage *st = &q->stages[i];
    const char *acc = acc_name(q, st);
    bool arg = st->combine && strncmp(st->combine, "Arg", 3) == 0;
    const char *it = arg ? "place()" : "value";

    for (int p = 0; p < PLACES && (st->f.name || st->f.alone); p++)
        scope_set(item, place_slots[p], "%s", rows_call(q, &st->f, (enum place)p));
    scope_set(item, "name", "%s", st->name);
    scope_set(item, "k", "%d", k);
    scope_set(item, "at", "%d", i);
    scope_set(item, "value", "%s", arg ? "int" : "float");
    if (arg) {
        scope_fact(item, "arg");
        scope_fact(s, "args");
    }
    if (st->with)
        scope_fact(item, "joins");
    scope_set(item, "parts_at", "%s", rows_parts_at(q, k));
    scope_set(item, "fold_at", "%s", k ? arena_printf(q->a, "%d", k) : "");
    if (st->place) {
        scope_fact(item, "pick");
        scope_set(item, "place", "%s", st->place);
    }
    if (!st->pass)
        return;
    scope_fact(item, "pass");
    scope_set(item, "combine", "%s", st->combine);
    scope_set(item, "acc", "%s", acc);
    scope_set(item, "result", "%s",
              result_text(q, st->result, arena_printf(q->a, "%s.%s", acc, it)));
    scope_set(item, "column_result", "%s",
              result_text(q, column_text(q, st->result), arena_printf(q->a, "%s[v].%s", acc, it)));
    scope_set(item, "plain_place", "%s", arg ? ", i" : "");
    scope_set(item, "vector_place", "%s", arg ? ", i * VEC + v" : "");
    scope_set(item, "peel_place", "%s", arg ? ", head + k * VEC + v" : "");
    scope_set(item, "held_place", "%s", arg ? ", t + j * Y" : "");
    scope_set(item, "column_place", "%s", arg ? ", i" : "");
    scope_set(item, "super_place", "%s", arg ? ", 4 * i + (c * VEC + v) / (inner / 4)" : "");
    set_pair(q, s, item, i);
}

/* What the loop of stage i reads, and the passes that share it. */
static void fill_loop(struct rows *q, struct scope *s, struct scope *item, int i, int k)
{
    struct function all = q->stages[i].f;

    for (int j = i + 1, at = k; j < q->stage_count; j++) {
        at += q->stages[j - 1].pass;
        if (q->stages[j].with != i + 1)
            continue;
        set_stage(q, s, scope_item_beside(item, "joined"), j, at);
        for (int t = 0; t < q->tensor_count; t++)
            all.reads[t] = all.reads[t] || q->stages[j].f.reads[t];
    }
    fill_use(q, item, "use", &all);
}

static void fill_total(struct rows *q, struct scope *s, int i, int k)
{
    struct row_stage *st = &q->stages[i];
    struct scope *item = scope_item(s, "total");
    const char *acc = acc_name(q, st), *part = arena_printf(q->a, "rows_%d", k);

    scope_fact(s, "totals");
    scope_set(item, "name", "%s", st->name);
    scope_set(item, "combine", "%s", st->combine);
    scope_set(item, "acc", "%s", acc);
    scope_set(item, "part", "%s", part);
    scope_set(item, "P", "%s", match_capital(part, q->a));
    scope_set(item, "plain_place", "%s", "");
    scope_set(item, "scalar_call", "%s", st->text ? st->text : rows_call(q, &st->f, SCALAR));
    scope_set(item, "total_result", "%s",
              result_text(q, st->result, arena_printf(q->a, "%s_parts[0].value", acc)));
    fill_function(q, s, &st->f, false);
}

static void fill_stages(struct rows *q, struct scope *s)
{
    int passes = 0, totals = 0;

    for (int i = 0; i < q->stage_count; i++) {
        struct row_stage *st = &q->stages[i];
        struct scope *item;

        bool second = i > 0 && q->stages[i - 1].pair;

        if (st->combine)
            scope_fact(s, arena_printf(q->a, "%suses_%s", st->pair || second ? "pair_" : "",
                                       match_lower(st->combine, q->a)));
        if (st->total) {
            fill_total(q, s, i, totals++);
            continue;
        }
        item = scope_item(s, "stage");
        set_stage(q, s, item, i, passes);
        fill_loop(q, s, item, i, passes);
        fill_function(q, s, &st->f, second);
        rows_split_stage(q, item, i);
        for (int b = 0, k = 0; b < i; b++) {
            if (q->stages[b].total)
                continue;
            set_stage(q, s, scope_item_beside(item, "before"), b, k);
            k += q->stages[b].pass;
        }
        passes += st->pass;
        if (st->pass && strstr(st->result, "count"))
            scope_fact(s, "uses_count");
    }
    scope_set(s, "passes", "%d", passes);
    scope_set(s, "stages", "%d", q->stage_count);
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
        fill_function(q, s, f, false);
        item = scope_item(s, t->total ? "total_output" : t->per_row ? "row_output" : "output");
        if (!t->total)
            scope_fact(s, t->per_row ? "rows" : "elements");
        scope_set(item, "x", "%s", t->name);
        scope_set(item, "X", "%s", match_capital(t->name, q->a));
        scope_set(item, "type", "%s", expr_memory_type(t->dtype));
        scope_set(item, "total_call", "%s", cast_text(q, t->dtype, rows_call(q, f, SCALAR)));
        for (int p = 0; p < PLACES; p++)
            scope_set(item, place_slots[p], "%s",
                      cast_text(q, t->dtype, rows_call(q, f, (enum place)p)));
        for (int k = 0; k < q->tensor_count && !t->per_row; k++)
            any.reads[k] = any.reads[k] || (f->reads[k] && !q->tensors[k].per_row);
    }
    fill_use(q, s, "output_use", &any);
}

/* ---- the plan ---------------------------------------------------------------------------- */

void rows_check(struct scope *s, const char *list, const char *condition, const char *text)
{
    struct scope *item = scope_item(s, list);

    scope_set(item, "condition", "%s", condition);
    scope_set(item, "text", "%s", text);
}

static void fill_plan_tensors(struct rows *q, struct scope *s)
{
    for (int i = 0; i < q->tensor_count; i++) {
        const struct row_tensor *t = &q->tensors[i];
        const struct tensor *of = t->node ? &q->g->in[t->index] : &q->g->out[t->index];
        struct scope *item = scope_item(s, "plan_tensor");

        scope_set(item, "x", "%s", t->name);
        scope_set(item, "side", "%s", t->node ? "in" : "out");
        scope_set(item, "k", "%d", t->index);
        scope_set(item, "ndim", "%d", of->dims);
        if (!match_split_checks(s, t->name, of, q->col_modes.axis[i + 1], q->col_modes.count, q->a))
            match_split_checks(s, t->name, of, q->row_modes.axis[i + 1], q->row_modes.count, q->a);
    }
}

/* As some tensor knows the size of a mode; of an expanded dimension that is summed, none does. */
const char *rows_size_of(struct rows *q, const struct modes *modes, int mode)
{
    for (int i = 0; i < q->tensor_count; i++) {
        const struct axis *x = &modes->axis[i + 1][mode];

        if (x->first != x->last)
            return match_axis_size(q->tensors[i].name, x, q->a);
    }
    return arena_printf(q->a, "%lld", (long long)modes->size[mode]);
}

static void fill_sizes(struct rows *q, struct scope *s)
{
    const char *list = "", *product = "", *all = "";
    int rows = q->row_modes.count, cols = q->col_modes.count;

    for (int m = 0; m < rows; m++) {
        struct scope *item = scope_item(s, "row_mode");
        const char *suffix = rows > 1 ? arena_printf(q->a, "%d", m) : "";

        scope_set(item, "m", "%s", suffix);
        scope_set(item, "size", "%s", rows_size_of(q, &q->row_modes, m));
        list = arena_printf(q->a, "%s%srows%s", list, m ? ", " : "", suffix);
        all = arena_printf(q->a, "%s%srows%s", all, m ? " * " : "", suffix);
    }
    for (int m = 0; m < cols; m++) {
        struct scope *item = scope_item(s, "col_mode");

        scope_set(item, "m", "%s", cols > 1 ? arena_printf(q->a, "%d", m) : "");
        scope_set(item, "size", "%s", rows_size_of(q, &q->col_modes, m));
        product = arena_printf(q->a, "%s%sn%d", product, m ? " * " : "", m);
    }
    if (cols > 1) {
        struct scope *item = scope_item(s, "col_mode");

        scope_set(item, "m", "%s", "");
        scope_set(item, "size", "%s", product);
    }
    scope_set(s, "rows", "%s", together(q, "shape", list, rows > 1));
    scope_set(s, "rows_shape", "%s",
              rows > 1 ? together(q, "shape", list, true)
                       : arena_printf(q->a, "make_shape(%s)", list));
    scope_set(s, "row_count", rows > 1 ? "(%s)" : "%s", all);
    scope_set(s, "all_rows", "%s", all);
}

/* Does the loop of stage k read tensor i? */
static bool loop_reads(const struct rows *q, int k, int i)
{
    bool reads = !q->stages[k].with && q->stages[k].f.reads[i];

    for (int j = k + 1; j < q->stage_count && !reads; j++)
        reads = q->stages[j].with == k + 1 && q->stages[j].f.reads[i];
    return reads;
}

void rows_count_uses(struct rows *q)
{
    for (int i = 0; i < q->tensor_count; i++) {
        struct row_tensor *t = &q->tensors[i];

        t->uses = 0;
        for (int k = 0; t->node && k < q->stage_count; k++)
            t->uses += loop_reads(q, k, i);
        for (int k = 0; t->node && k < q->g->out_count; k++)
            t->uses += q->outputs[k].reads[i];
    }
}

/* ---- what it costs ------------------------------------------------------------------- */

int rows_times_read(const struct rows *q, int i, bool held)
{
    int uses = q->tensors[i].uses;

    for (int k = 1; k < q->stage_count; k++)
        uses -= q->stages[k - 1].pair && q->stages[k].f.reads[i] && q->stages[k - 1].f.reads[i];
    return held && uses > 1 ? 1 : uses;
}

void rows_add_cost(const struct rows *q, bool held, int launches)
{
    double rows = (double)rows_count(q), n = (double)rows_length(q);

    q->out->launches = launches;
    q->out->moved = 0;
    for (int i = 0; i < q->tensor_count; i++) {
        const struct row_tensor *t = &q->tensors[i];
        double all = t->total ? 1 : t->per_row ? rows : rows * n;

        if (t->node && (double)tensor_numel(&q->g->in[t->index]) < all)
            all = (double)tensor_numel(&q->g->in[t->index]);
        q->out->moved += all * expr_bytes(t->dtype) * (t->node ? rows_times_read(q, i, held) : 1);
    }
}

bool rows_fill_slots(struct rows *q)
{
    struct scope *s = q->out->scope = scope_new(q->a, NULL);

    if (!bring_together(q))
        return false;
    rows_count_uses(q);
    scope_set(s, "kernel", "%s", q->kernel);
    scope_set(s, "ops", "%s", graph_ops(q->g, q->a));
    if (!rows_pick_recipe(q, s))
        return false;
    fill_stages(q, s);
    fill_outputs(q, s);
    set_keeps(q, s);
    fill_sizes(q, s);
    for (int i = 0; i < q->tensor_count; i++)
        if (!q->tensors[i].total)
            rows_tensor(q, scope_item(s, q->tensors[i].per_row ? "row_tensor" : "tensor"), i);
    fill_plan_tensors(q, s);
    match_scalars(q->g, s);
    return true;
}
