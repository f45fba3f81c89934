/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_columns.c - reductions along a dimension that is not the innermost one: column_reduction.
 *
 * Neighbouring columns lie together, so that threads side by side take them; others share a column.
 * Few columns get more threads each and fewer side by side, down to 128 bytes of a row, where that
 * gives every SM a block or lets a column fit into registers.
 */
#include "expert/match/rows_slots.h"

#include <string.h>

enum { SIDE = 32 };

/* Do neighbouring rows lie together, and the elements of a row apart? */
bool rows_are_columns(const struct rows *q)
{
    bool apart = false;

    for (int i = 0; i < q->stage_count; i++)
        if (q->stages[i].total || q->stages[i].place)
            return false;
    for (int i = 0; i < q->tensor_count; i++) {
        const struct row_tensor *t = &q->tensors[i];

        if (rows_axis(q, i, 0)->stride > 1)
            return false;
        if (t->per_row || rows_axis(q, i, 0)->stride == 0) /* all side by side read the same */
            continue;
        apart = apart || rows_along(q, i, 0)->stride > 1;
        if (rows_along(q, i, 0)->stride == 1)
            return false;
    }
    return apart && q->row_modes.size[0] > 1;
}

static bool column_vectors(const struct rows *q, int vec)
{
    if (vec < 2 || q->row_modes.size[0] % vec != 0)
        return false;
    for (int i = 0; i < q->tensor_count; i++) {
        if (rows_axis(q, i, 0)->stride == 0)
            continue;
        if (rows_offset(q, i) % vec != 0)
            return false;
        for (int m = 1; m < q->row_modes.count; m++)
            if (rows_axis(q, i, m)->stride % vec != 0)
                return false;
        for (int m = 0; m < q->col_modes.count && !q->tensors[i].per_row; m++)
            if (rows_along(q, i, m)->stride % vec != 0)
                return false;
    }
    return true;
}

/* One loop over one tensor that has no gaps, and a value per column? */
static bool one_plain_loop(const struct rows *q, int *input)
{
    int loops = 0, inputs = 0;

    for (int i = 0; i < q->stage_count; i++) {
        loops += q->stages[i].pass && !q->stages[i].with;
        if (q->stages[i].pair)
            return false;
    }
    for (int i = 0; i < q->tensor_count; i++) {
        const struct row_tensor *t = &q->tensors[i];

        if (!t->node && !t->per_row)
            return false;
        if (t->node && !t->per_row) {
            *input = i;
            inputs++;
        }
        for (int k = 0; k < q->stage_count; k++)
            if (t->per_row && q->stages[k].pass && q->stages[k].f.reads[i])
                return false;
    }
    return loops == 1 && inputs == 1 && q->col_modes.count == 1;
}

void rows_column_layout(struct rows *q, struct scope *item, int i)
{
    const struct row_tensor *t = &q->tensors[i];
    bool unit = rows_axis(q, i, 0)->stride == 1;
    const char *along = "", *shape = "", *outer = "";

    for (int m = 0; m < q->col_modes.count && !t->per_row; m++) {
        const struct axis *x = rows_along(q, i, m);

        along = x->stride ? arena_printf(q->a, "%s%s%s_along%d", along, m ? ", " : "", t->name, m)
                          : arena_printf(q->a, "%s%s_0{}", along, m ? ", " : "");
        shape =
            q->col_modes.count > 1 ? arena_printf(q->a, "%s%sn%d", shape, m ? ", " : "", m) : "n";
    }
    for (int m = 1; m < q->row_modes.count; m++) {
        const struct axis *x = rows_axis(q, i, m);

        outer = x->stride
                    ? arena_printf(q->a, "%s%s%s_outer%d", outer, m > 1 ? ", " : "", t->name, m)
                    : arena_printf(q->a, "%s%s_0{}", outer, m > 1 ? ", " : "");
    }
    scope_set(item, "inner_unit", "%s", unit ? "_1{}" : "_0{}");
    scope_set(item, "fold_inner", "%s", unit ? "_1{}" : "_0{}");
    scope_set(item, "inner_stride", "%s", unit ? "Int<VEC>{}" : "_0{}");
    scope_set(item, "column_shape", q->col_modes.count > 1 ? "make_shape(%s)" : "%s", shape);
    scope_set(item, "column_stride", q->col_modes.count > 1 ? "make_stride(%s)" : "%s", along);
    scope_set(item, "outer_stride", q->row_modes.count > 2 ? "make_stride(%s)" : "%s",
              *outer ? outer : "_0{}");
}

/* Appends sizes and strides; `times` multiplies the strides along, for rows read as one. */
static void column_signature(struct rows *q, const bool *in, int times, struct buf *params,
                             struct buf *args)
{
    rows_pointers(q, in, params, args);
    buf_puts(params, "int n, int inner");
    buf_printf(args, times > 1 ? "(int)tall, (int)wide" : "(int)n, (int)inner");
    for (int m = 0; m < q->col_modes.count && q->col_modes.count > 1; m++) {
        buf_printf(params, ", int n%d", m);
        buf_printf(args, ", (int)n%d", m);
    }
    for (int m = 1; m < q->row_modes.count || m == 1; m++) {
        const char *suffix = q->row_modes.count > 2 ? arena_printf(q->a, "%d", m) : "";

        buf_printf(params, ", int outer%s", suffix);
        buf_printf(args, ", (int)outer%s", suffix);
    }
    for (int i = 0; i < q->tensor_count; i++) {
        const struct row_tensor *t = &q->tensors[i];

        for (int m = 0; in[i] && m < q->col_modes.count && !t->per_row; m++)
            if (rows_along(q, i, m)->stride) {
                buf_printf(params, ", int64_t %s_along%d", t->name, m);
                buf_printf(args, ", (int64_t)%s%s",
                           match_axis_stride(t->name, rows_along(q, i, m), q->a),
                           times > 1 ? " * 4" : "");
            }
        for (int m = 1; in[i] && m < q->row_modes.count; m++)
            if (rows_axis(q, i, m)->stride) {
                buf_printf(params, ", int64_t %s_outer%d", t->name, m);
                buf_printf(args, ", (int64_t)%s",
                           match_axis_stride(t->name, rows_axis(q, i, m), q->a));
            }
    }
}

static void set_column_signatures(struct rows *q, struct scope *s)
{
    static const char *const whats[] = {"column", "split", "super", "fold"};

    for (int k = 0; k < 4; k++) {
        struct buf params = buf_init(16384), args = buf_init(16384);
        bool in[ROW_TENSORS], parts = k > 0;

        for (int i = 0; i < q->tensor_count; i++)
            in[i] = k == 0 || (k == 3) == q->tensors[i].per_row;
        column_signature(q, in, k == 2 ? 4 : 1, &params, &args);
        scope_set(s, arena_printf(q->a, "%s_params", whats[k]), "%s%s", buf_text(&params).data,
                  parts ? ", int slices, float *parts" : "");
        scope_set(s, arena_printf(q->a, "%s_args", whats[k]), "%s%s", buf_text(&args).data,
                  parts ? ", (int)slices, parts" : "");
        buf_release(&params);
        buf_release(&args);
    }
}

static void set_outer(struct rows *q, struct scope *s)
{
    const char *list = "", *all = "";

    for (int m = 1; m < q->row_modes.count || m == 1; m++) {
        struct scope *item = scope_item(s, "outer_mode");
        const char *suffix = q->row_modes.count > 2 ? arena_printf(q->a, "%d", m) : "";

        scope_set(item, "m", "%s", suffix);
        scope_set(item, "size", "%s",
                  m < q->row_modes.count ? rows_size_of(q, &q->row_modes, m) : "1");
        list = arena_printf(q->a, "%s%souter%s", list, m > 1 ? ", " : "", suffix);
        all = arena_printf(q->a, "%s%souter%s", all, m > 1 ? " * " : "", suffix);
    }
    scope_set(s, "inner_size", "%s", rows_size_of(q, &q->row_modes, 0));
    scope_set(s, "outer", q->row_modes.count > 2 ? "make_shape(%s)" : "%s", list);
    scope_set(s, "outer_count", q->row_modes.count > 2 ? "(%s)" : "%s", all);
}

/* Threads side by side and threads that share a column, and elements of it each of them keeps. */
struct team {
    int64_t lanes, threads, items;
    bool fits;
};

/* The narrowest that still reads 64 bytes of a row. */
static int64_t fewest_lanes(int vec)
{
    return vec > 1 ? 4 : 16;
}

/* Blocks with so many threads side by side. */
static int64_t column_blocks(const struct rows *q, int64_t lanes, int vec)
{
    int64_t inner = q->row_modes.size[0];

    return (inner / vec + lanes - 1) / lanes * (rows_count(q) / inner);
}

/* Registers of a thread that keeps so many elements. */
static int64_t column_words(int64_t items, int kept, int vec)
{
    return items * kept * 4 + (vec > 4 ? 88 : 48);
}

/* The widest that keeps a column in registers; at least as many blocks as SMs, where 128 bytes of a
 * row allow it. */
static struct team team_that_keeps(const struct rows *q, int kept, int vec)
{
    struct team best = {.fits = false};
    int64_t n = rows_length(q);

    for (int64_t lanes = SIDE; lanes >= fewest_lanes(vec); lanes /= 2) {
        int64_t y = 8;

        if (best.fits && (column_blocks(q, best.lanes, vec) >= q->g->sm_count || lanes * vec < 32))
            break;
        while (lanes * y < 512 && (lanes * y < 64 || n / y * kept > 16))
            y *= 2;
        if (n % y == 0 && n / y * kept <= 16 &&
            column_words(n / y, kept, vec) * lanes * y <= ROWS_SM_REGISTERS)
            best = (struct team){lanes, y, n / y, true};
    }
    return best;
}

/* Columns that are read again and again, or once: enough blocks for the device. */
static struct team team_that_streams(const struct rows *q, int kept, int vec)
{
    struct team t = {.lanes = SIDE, .threads = 8};
    int64_t n = rows_length(q);

    while (t.threads < 32 && kept && n / t.threads > 16)
        t.threads *= 2;
    while (column_blocks(q, t.lanes, vec) < 2 * q->g->sm_count && t.lanes * vec > 32 &&
           t.lanes > fewest_lanes(vec) && n >= 1024) {
        t.lanes /= 2;
        t.threads = 512 / t.lanes;
    }
    t.items = n / t.threads > 0 ? n / t.threads : 1;
    return t;
}

/* Tensors that are read again although pairs of passes are one. */
static int kept_by_pairs(const struct rows *q)
{
    int kept = 0;

    for (int i = 0; i < q->tensor_count; i++)
        kept += rows_kept(&q->tensors[i]) && rows_times_read(q, i, false) > 1;
    return kept;
}

/* Is a column read once? */
static bool set_team(struct rows *q, struct scope *s, int vec, bool splits)
{
    int kept = kept_by_pairs(q);
    struct team t = team_that_keeps(q, kept, vec);
    int64_t blocks;

    if (kept == 0 || !t.fits)
        t = splits ? (struct team){SIDE, 8, 1, false} : team_that_streams(q, kept, vec);
    blocks = ROWS_SM_REGISTERS / (t.lanes * t.threads) / column_words(t.items, kept, vec);
    scope_set(s, "column_blocks", "%d", (int)(blocks > 0 ? blocks : 1));
    scope_set(s, "lanes", "%d", (int)t.lanes);
    scope_set(s, "team", "%d", (int)t.threads);
    scope_set(s, "items", "%d", (int)t.items);
    if (t.lanes < SIDE)
        scope_fact(s, "slim");
    if (kept)
        scope_fact(s, "reread");
    if (t.fits)
        scope_fact(s, "fits");
    return t.fits;
}

static void column_checks(struct rows *q, struct scope *s, int vec)
{
    for (int i = 0; i < q->tensor_count; i++) {
        const struct axis *x = rows_axis(q, i, 0);
        const char *name = q->tensors[i].name;

        if (x->stride != 1)
            continue;
        rows_check(s, "check", arena_printf(q->a, "%s->strides[%d] == 1", name, x->last - 1),
                   arena_printf(q->a, "dimension %d of %s must be contiguous", x->last - 1, name));
        rows_check(s, "vector_check", arena_printf(q->a, "cutegen_aligned(%s, 16)", name),
                   arena_printf(q->a, "%s must start on a multiple of 16 bytes", name));
    }
    rows_check(s, "vector_check", arena_printf(q->a, "inner %% %d == 0", vec),
               arena_printf(q->a, "the innermost size must be a multiple of %d", vec));
}

/* Facts of a reduction in one loop; true: parts of it can be reduced apart. */
static bool set_one_loop(struct rows *q, struct scope *s, int input, int vec, bool vectors)
{
    int64_t n = rows_length(q), inner = q->row_modes.size[0];
    bool odd = !vectors && !q->tensors[input].kept.sliced &&
               expr_bytes(q->tensors[input].dtype) == 4 && n % 4 == 0 &&
               rows_along(q, input, 0)->stride == inner &&
               (q->row_modes.count == 1 || rows_axis(q, input, 1)->stride % 4 == 0);

    if (odd)
        scope_fact(s, "odd");
    if (odd || rows_count(q) / (SIDE * vec) < 4 * q->g->sm_count) {
        scope_fact(s, "splits");
        return true;
    }
    if (inner >= 1024 * vec && rows_count(q) / (1024 * vec) >= 8 * q->g->sm_count)
        scope_fact(s, "many");
    return false;
}

static int part_words(const struct rows *q)
{
    for (int i = 0; i < q->stage_count; i++)
        if (q->stages[i].combine && strncmp(q->stages[i].combine, "Arg", 3) == 0)
            return 2;
    return 1;
}

const char *rows_parts_at(struct rows *q, int k)
{
    const char *all = "";

    for (int m = 1; m < q->row_modes.count || m == 1; m++)
        all = q->row_modes.count > 2 ? arena_printf(q->a, "%s * outer%d", all, m) : " * outer";
    return k ? arena_printf(q->a, " + %d * int64_t(inner) * slices%s", k * part_words(q), all) : "";
}

/* What the passes of a split reduction leave: one after the other in workspace. */
static void set_parts(struct rows *q, struct scope *s)
{
    int passes = 0;

    for (int i = 0; i < q->stage_count; i++)
        passes += q->stages[i].pass;
    scope_set(s, "part_bytes", "%d", 4 * part_words(q));
    if (passes > 1)
        scope_set(s, "part_count", " * %d", passes);
    else
        scope_set(s, "part_count", "%s", "");
}

bool rows_form_columns(struct rows *q, struct scope *s)
{
    int vec = rows_vector_length(q), input = 0;
    bool vectors = column_vectors(q, vec), splits = false;

    q->out->recipe = "column_reduction";
    rows_join(q);
    rows_count_uses(q);
    scope_set(s, "vec", "%d", vec);
    if (vectors)
        scope_fact(s, "vectors");
    if (one_plain_loop(q, &input))
        splits = set_one_loop(q, s, input, vec, vectors);
    scope_set(s, "super_input", "%s", q->tensors[input].name);
    set_parts(q, s);
    rows_add_cost(q, set_team(q, s, vectors ? vec : 1, splits), 1 + splits);
    for (int i = 0; i < q->tensor_count; i++)
        if (q->tensors[i].per_row && q->tensors[i].node)
            rows_tensor(q, scope_item(s, "row_input"), i);
    set_outer(q, s);
    set_column_signatures(q, s);
    column_checks(q, s, vec);
    return true;
}
