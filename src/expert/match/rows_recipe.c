/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_recipe.c - which recipe a reduction takes, and what only that recipe needs.
 *
 *     row_reduction     rows lie together in memory
 *     column_reduction  neighbouring rows do: the reduced dimension is not the innermost
 *     split_reduction   rows lie together, but they are few and long
 *
 * Launch shapes are chosen here from the sizes; limits are those of an SM
 * since sm_80: 65536 registers, 1024 threads in a block.
 */
#include "expert/match/rows_slots.h"

#include <string.h>

enum { SM_REGISTERS = 65536, CLUSTER = 8, CLUSTER_VECTORS = 24, SIDE = 32 };

/* ---- rows ---------------------------------------------------------------------------------- */

static int kept_count(const struct rows *q)
{
    int kept = 0;

    for (int i = 0; i < q->tensor_count; i++)
        kept += rows_kept(&q->tensors[i]);
    return kept;
}

/* Do so many vectors per thread leave it enough registers to work with? */
static bool registers_hold(int64_t vectors, int64_t threads)
{
    return vectors <= 16 && vectors * 4 + 28 <= SM_REGISTERS / threads;
}

/* The same for the blocks of a cluster, which have an SM each where rows are long. */
static bool cluster_holds(int64_t vectors, int64_t threads, int vec)
{
    return vectors <= CLUSTER_VECTORS &&
           vectors * 4 + (vec > 4 ? 32 : 28) <= SM_REGISTERS / threads;
}

static void set_cluster(struct rows *q, struct scope *s, int vec, bool fits)
{
    int64_t n = rows_length(q), threads = 256, items, words;
    int kept = kept_count(q);
    bool whole;

    if (n / vec > CLUSTER * threads * (vec > 4 ? CLUSTER_VECTORS : 16))
        threads = 512;
    items = (n / vec + CLUSTER * threads - 1) / (CLUSTER * threads);
    scope_set(s, "cluster_size", "%d", CLUSTER);
    scope_set(s, "cluster_threads", "%d", (int)threads);
    scope_set(s, "cluster_items", "%d", (int)(items ? items : 1));
    words = items * kept * 4 + (vec > 4 ? 32 : 16); /* some halves are floats as well */
    scope_set(s, "cluster_blocks", "%d", (int)(SM_REGISTERS / threads / (words > 40 ? words : 40)));
    if (q->g->arch >= 90 && !fits && kept && n / vec >= CLUSTER * threads)
        scope_fact(s, "long");
    if (cluster_holds(items * kept, threads, vec))
        scope_fact(s, "holds");
    whole = n == items * CLUSTER * threads * vec;
    scope_set(s, "cluster_exactly", "%s", whole ? "==" : "<=");
    scope_set(s, "cluster_fill", "%s", whole ? "fill" : "fit into");
    if (whole && cluster_holds(items * kept, threads, vec))
        scope_fact(s, "cluster_whole");
    if (vec > 4)
        scope_fact(s, "narrow");
}

/* Launch shapes beside the chosen one, to be tried by measuring. */
static void set_tuning(struct rows *q, struct scope *s, int64_t threads, int64_t items, bool fits,
                       bool whole)
{
    int kept = kept_count(q);

    scope_set(s, "threads_more", "%d", (int)(threads * 2));
    scope_set(s, "items_more", "%d", (int)((items + 1) / 2));
    scope_set(s, "threads_fewer", "%d", (int)(threads / 2));
    scope_set(s, "items_fewer", "%d", (int)(items * 2));
    if (!q->g->measured)
        return;
    if (threads <= 512 && items > 1 && (!whole || items % 2 == 0) &&
        (!fits || registers_hold((items + 1) / 2 * kept, threads * 2)))
        scope_fact(s, "more");
    if (threads >= 128 && (!fits || registers_hold(items * 2 * kept, threads / 2)))
        scope_fact(s, "fewer");
}

/* Does some pass find a place? */
static bool finds_place(const struct rows *q)
{
    for (int i = 0; i < q->stage_count; i++)
        if (q->stages[i].combine && strncmp(q->stages[i].combine, "Arg", 3) == 0)
            return true;
    return false;
}

/* Is a value written for each element? */
static bool writes_elements(const struct rows *q)
{
    for (int i = 0; i < q->tensor_count; i++)
        if (!q->tensors[i].node && !q->tensors[i].per_row && !q->tensors[i].total)
            return true;
    return false;
}

/* Threads per row and vectors per thread: about four vectors each, more when the row is long, or
 * when it takes many instructions to fold what the threads have found; two where a GPU writes as
 * much fp32 as it reads. */
static void set_launch(struct rows *q, struct scope *s, int vec)
{
    int64_t n = rows_length(q), threads = 64, items, warp_items = (n / vec + 31) / 32;
    int kept = kept_count(q);
    bool is_short = n / vec <= 32 * 8, fits, whole;
    int each = finds_place(q) ? 8 : q->g->measured && vec == 4 && writes_elements(q) ? 2 : 4;

    while (threads < 512 && n / vec > threads * each)
        threads *= 2;
    if (n / vec > threads * 16)
        threads = 1024;
    items = (n / vec + threads - 1) / threads;
    fits = registers_hold(items * kept, threads);
    scope_set(s, "threads", "%d", (int)threads);
    scope_set(s, "items", "%d", (int)(items ? items : 1));
    scope_set(s, "warp_items", "%d", (int)(warp_items ? warp_items : 1));
    whole = n == items * threads * vec;
    set_tuning(q, s, threads, items, fits, whole);
    if (kept)
        scope_fact(s, "reread");
    if (fits)
        scope_fact(s, "fits");
    if (is_short)
        scope_fact(s, "short");
    if (is_short && n != warp_items * 32 * vec)
        whole = false;
    scope_set(s, "exactly", "%s", whole ? "==" : "<=");
    scope_set(s, "fill", "%s", whole ? "fill" : "fit into");
    if (whole)
        scope_fact(s, "whole");
    set_cluster(q, s, vec, fits);
}

static void all_tensors(const struct rows *q, bool in[ROW_TENSORS])
{
    for (int i = 0; i < q->tensor_count; i++)
        in[i] = !q->tensors[i].total;
}

/* The kernel over rows and, where there is one, the kernel over all rows. */
static void set_signature(struct rows *q, struct scope *s)
{
    struct buf params = buf_init(16384), args = buf_init(16384), total = buf_init(4096),
               totals = buf_init(4096);
    bool in[ROW_TENSORS], any = false;
    int k = 0;

    all_tensors(q, in);
    rows_signature(q, in, &params, &args);
    for (int i = 0; i < q->stage_count; i++) {
        if (!q->stages[i].total)
            continue;
        any = true;
        buf_printf(&params, ", float *rows_%d", k);
        buf_printf(&args, ", rows_%d", k);
        buf_printf(&total, "float *rows_%d, ", k);
        buf_printf(&totals, "rows_%d, ", k++);
    }
    for (int i = 0; i < q->tensor_count; i++)
        if (q->tensors[i].total) {
            const char *type = expr_memory_type(q->tensors[i].dtype);

            buf_printf(&total, "%s *%s, ", type, q->tensors[i].name);
            buf_printf(&totals, "CUTEGEN_DATA(%s, %s), ", type, q->tensors[i].name);
        }
    scope_set(s, "params", "%s", buf_text(&params).data);
    scope_set(s, "args", "%s", buf_text(&args).data);
    scope_set(s, "total_params", "%sint rows", any ? buf_text(&total).data : "");
    scope_set(s, "total_args", "%s(int)(%s)", any ? buf_text(&totals).data : "",
              q->row_modes.count > 1 ? "rows0 * rows1" : "rows");
    scope_set(s, "launch", "%s", any ? "CUTEGEN_TRY(" : "return");
    scope_set(s, "launch_end", "%s", any ? ")" : "");
    buf_release(&params);
    buf_release(&args);
    buf_release(&total);
    buf_release(&totals);
}

/* What 16-byte accesses along rows assume. */
static void row_checks(struct rows *q, struct scope *s, int vec)
{
    for (int i = 0; i < q->tensor_count; i++) {
        const struct row_tensor *t = &q->tensors[i];
        const struct axis *along = rows_along(q, i, 0);

        if (t->per_row || along->stride != 1)
            continue;
        rows_check(
            s, "check", arena_printf(q->a, "%s->strides[%d] == 1", t->name, along->last - 1),
            arena_printf(q->a, "dimension %d of %s must be contiguous", along->last - 1, t->name));
        rows_check(s, "vector_check", arena_printf(q->a, "cutegen_aligned(%s, 16)", t->name),
                   arena_printf(q->a, "%s must start on a multiple of 16 bytes", t->name));
    }
    rows_check(s, "vector_check",
               arena_printf(q->a, "n%s %% %d == 0", q->col_modes.count > 1 ? "0" : "", vec),
               arena_printf(q->a, "a row must be a multiple of %d elements", vec));
}

/* Plain passes over one tensor whose rows begin anywhere, and values per row? */
static bool odd_rows(const struct rows *q)
{
    int inputs = 0;

    for (int i = 0; i < q->stage_count; i++)
        if (q->stages[i].pair || q->stages[i].place)
            return false;
    for (int i = 0; i < q->tensor_count; i++) {
        const struct row_tensor *t = &q->tensors[i];

        if (t->per_row)
            continue;
        if (!t->node || rows_along(q, i, 0)->stride != 1)
            return false;
        inputs++;
    }
    return inputs == 1 && q->col_modes.count == 1 && rows_length(q) >= 64;
}

static bool form_rows(struct rows *q, struct scope *s)
{
    int vec = rows_vector_length(q);

    q->out->recipe = "row_reduction";
    if (q->row_modes.count > 2)
        for (int i = 0; i < q->stage_count; i++)
            if (q->stages[i].total)
                return match_no(q->out, q->a, "the total of rows that lie in more than two ways");
    scope_set(s, "vec", "%d", vec);
    if (rows_vectorisable(q, vec))
        scope_fact(s, "vectors");
    else if (vec > 1 && odd_rows(q))
        scope_fact(s, "odd");
    set_launch(q, s, vec);
    scope_set(s, "row_vectors", "%d", (int)((rows_length(q) + vec - 1) / vec));
    if (rows_length(q) / vec <= 8 * 256 && kept_count(q) == 0)
        scope_fact(s, "held");
    set_signature(q, s);
    row_checks(q, s, vec);
    return true;
}

/* ---- few long rows -------------------------------------------------------------------------- */

static bool is_split(const struct rows *q)
{
    int64_t rows = rows_count(q), n = rows_length(q);

    for (int i = 0; i < q->stage_count; i++)
        if (q->stages[i].total || q->stages[i].place)
            return false;
    if (q->g->arch >= 90 && n <= CLUSTER * 512 * CLUSTER_VECTORS * 4 && rows >= q->g->sm_count &&
        kept_count(q))
        return false; /* a cluster holds it */
    return (rows < 4 * q->g->sm_count && n >= 16384) || n >= 1 << 20;
}

/* Signature of a kernel that sees these tensors, the slices and their parts. */
static void set_split_signature(struct rows *q, struct scope *s, const bool *in, const char *what)
{
    struct buf params = buf_init(16384), args = buf_init(16384);

    rows_signature(q, in, &params, &args);
    scope_set(s, arena_printf(q->a, "%s_params", what), "%s, int slices, float *parts",
              buf_text(&params).data);
    scope_set(s, arena_printf(q->a, "%s_args", what), "%s, (int)slices, parts",
              buf_text(&args).data);
    buf_release(&params);
    buf_release(&args);
}

void rows_split_stage(struct rows *q, struct scope *item, int i)
{
    const struct row_stage *st = &q->stages[i];
    bool in[ROW_TENSORS] = {false};

    if (!st->pass)
        return;
    for (int t = 0; t < q->tensor_count; t++) {
        in[t] = st->f.reads[t];
        for (int b = 0; b < i; b++)
            if (!q->stages[b].pass && q->stages[b].f.reads[t]) {
                if (!in[t])
                    rows_tensor(q, scope_item(item, "row_use"), t);
                in[t] = true;
            }
    }
    for (int b = 0; b < i; b++)
        if (q->stages[b].pass && strstr(q->stages[b].result, "count"))
            scope_fact(item, "counts");
    scope_set(item, "pass_name", "%s", strchr(st->name, '_') + 1);
    set_split_signature(q, item, in, "pass");
}

/* One pass that reads something all rows share, and nothing else per row: rows can go in pairs. */
static bool rows_pair_up(const struct rows *q)
{
    bool shared = false;
    int passes = 0;

    for (int i = 0; i < q->stage_count; i++)
        passes += q->stages[i].pass;
    for (int t = 0; t < q->tensor_count; t++) {
        if (!q->tensors[t].node || q->tensors[t].per_row)
            continue;
        shared = shared || !rows_moves(&q->tensors[t]);
    }
    return shared && passes == 1 && rows_count(q) % 2 == 0 && q->row_modes.count == 1;
}

static bool form_split(struct rows *q, struct scope *s)
{
    int vec = rows_vector_length(q);
    bool in[ROW_TENSORS] = {false};

    q->out->recipe = "split_reduction";
    scope_set(s, "vec", "%d", vec);
    scope_set(s, "pass_threads", "%d", rows_length(q) >= 65536 ? 512 : 256);
    if (rows_vectorisable(q, vec))
        scope_fact(s, "vectors");
    if (rows_count(q) <= 64)
        scope_fact(s, "few");
    if (rows_pair_up(q))
        scope_fact(s, "shares");
    for (int t = 0; t < q->tensor_count; t++) {
        in[t] = !q->tensors[t].node;
        for (int k = 0; k < q->g->out_count; k++)
            in[t] = in[t] || q->outputs[k].reads[t];
        for (int i = 0; i < q->stage_count; i++)
            in[t] = in[t] || (!q->stages[i].pass && q->stages[i].f.reads[t]);
    }
    for (int i = 0; i < q->stage_count; i++)
        if (q->stages[i].pass && strstr(q->stages[i].result, "count"))
            scope_fact(s, "value_counts");
    set_split_signature(q, s, in, "value");
    row_checks(q, s, vec);
    return true;
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Do neighbouring rows lie together, and the elements of a row apart? */
static bool is_columns(const struct rows *q)
{
    bool apart = false;

    for (int i = 0; i < q->stage_count; i++)
        if (q->stages[i].total || q->stages[i].place)
            return false;
    for (int i = 0; i < q->tensor_count; i++) {
        const struct row_tensor *t = &q->tensors[i];

        if (rows_axis(q, i, 0)->stride > 1)
            return false;
        apart = apart || (!t->per_row && rows_along(q, i, 0)->stride > 1);
        if (!t->per_row && rows_along(q, i, 0)->stride == 1)
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

/* One pass over one tensor that has no gaps, and a value per column? */
static bool one_plain_pass(const struct rows *q, int *input)
{
    int passes = 0, inputs = 0;

    for (int i = 0; i < q->stage_count; i++)
        passes += q->stages[i].pass;
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
    return passes == 1 && inputs == 1 && q->col_modes.count == 1;
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

/* Threads that share a column, and elements of it each of them keeps. */
static void set_team(struct rows *q, struct scope *s, int vec)
{
    int64_t n = rows_length(q), team = 8, blocks;
    int kept = kept_count(q);

    while (team < 32 && kept && n / team > 16)
        team *= 2;
    blocks = SM_REGISTERS / (SIDE * team) / (n / team * kept * 4 + (vec > 4 ? 88 : 48));
    scope_set(s, "column_blocks", "%d", (int)(blocks > 0 ? blocks : 1));
    scope_set(s, "team", "%d", (int)team);
    scope_set(s, "items", "%d", (int)(n / team > 0 ? n / team : 1));
    if (kept)
        scope_fact(s, "reread");
    if (n % team == 0 && n / team * kept <= 16)
        scope_fact(s, "fits");
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

static bool form_columns(struct rows *q, struct scope *s)
{
    int vec = rows_vector_length(q), input = 0;
    int64_t n = rows_length(q), inner = q->row_modes.size[0];
    bool vectors = column_vectors(q, vec);

    q->out->recipe = "column_reduction";
    scope_set(s, "vec", "%d", vec);
    if (vectors)
        scope_fact(s, "vectors");
    if (one_plain_pass(q, &input)) {
        bool odd = !vectors && !q->tensors[input].kept.sliced &&
                   expr_bytes(q->tensors[input].dtype) == 4 && n % 4 == 0 &&
                   rows_along(q, input, 0)->stride == inner &&
                   (q->row_modes.count == 1 || rows_axis(q, input, 1)->stride % 4 == 0);

        if (odd)
            scope_fact(s, "odd");
        if (odd || rows_count(q) / (SIDE * vec) < 4 * q->g->sm_count)
            scope_fact(s, "splits");
        else if (inner >= 1024 * vec && rows_count(q) / (1024 * vec) >= 8 * q->g->sm_count)
            scope_fact(s, "many");
    }
    scope_set(s, "super_input", "%s", q->tensors[input].name);
    scope_set(s, "part_bytes", "%d",
              q->stage_count && q->stages[0].combine && strncmp(q->stages[0].combine, "Arg", 3) == 0
                  ? 8
                  : 4);
    set_team(q, s, vec);
    for (int i = 0; i < q->tensor_count; i++)
        if (q->tensors[i].per_row && q->tensors[i].node)
            rows_tensor(q, scope_item(s, "row_input"), i);
    set_outer(q, s);
    set_column_signatures(q, s);
    column_checks(q, s, vec);
    return true;
}

/* ---- scans ------------------------------------------------------------------------------------
 */

static bool form_scan(struct rows *q, struct scope *s)
{
    const struct tensor *y = &q->g->out[0];
    int vec = rows_vector_length(q);
    int64_t n = rows_length(q), threads = 1024;
    bool back = q->scan->reverse;

    q->out->recipe = "scan";
    if (strcmp(y->dtype, "f32") != 0 && strcmp(y->dtype, "f16") != 0 &&
        strcmp(y->dtype, "bf16") != 0)
        return match_no(q->out, q->a, "a running value in %s", y->dtype);
    scope_set(s, "vec", "%d", vec);
    scope_set(s, "plain_call", "%s", rows_call(q, &q->outputs[0], PLAIN));
    scope_set(s, "vector_call", "%s", rows_call(q, &q->outputs[0], VECTOR));
    scope_set(s, "y_type", "%s", expr_memory_type(y->dtype));
    scope_set(s, "cast", "%s",
              q->scan->finish                ? "finish"
              : strcmp(y->dtype, "f32") == 0 ? ""
                                             : expr_memory_type(y->dtype));
    if (q->scan->finish) {
        scope_fact(s, "finishes");
        scope_set(s, "finish_body", "%s", q->scan->finish);
    }
    scope_set(s, "tile_plain", "%s", back ? "n - 1 - k" : "k");
    scope_set(s, "tile_vector", "%s", back ? "n / VEC - 1 - k" : "k");
    scope_set(s, "v_at", "%s", back ? "VEC - 1 - v" : "v");
    scope_set(s, "vector_at", "%s",
              back ? "n / VEC - 1 - (threadIdx.x + j * THREADS)" : "threadIdx.x + j * THREADS");
    while (threads > 64 && n / vec < threads * 4)
        threads /= 2;
    scope_set(s, "threads", "%d", (int)threads);
    scope_set(s, "items", "%d", (int)(n / vec / threads ? n / vec / threads : 1));
    if (n % (threads * vec) == 0 && registers_hold(n / vec / threads, threads) &&
        n / vec / threads * (threads / 32) % 32 == 0)
        scope_fact(s, "fits");
    if (q->scan->exclusive)
        scope_fact(s, "exclusive");
    if (q->scan->sum)
        scope_fact(s, "sum");
    if (back)
        scope_fact(s, "reverse");
    if (is_columns(q))
        scope_fact(s, "columns");
    if (rows_vectorisable(q, vec))
        scope_fact(s, "vectors");
    for (int i = 0; i < q->tensor_count; i++)
        if (q->tensors[i].node)
            rows_tensor(q, scope_item(s, "input"), i);
    set_signature(q, s);
    row_checks(q, s, vec);
    return true;
}

bool rows_pick_recipe(struct rows *q, struct scope *s)
{
    if (rows_length(q) > INT32_MAX - 65536 || rows_count(q) > INT32_MAX - 65536)
        return match_no(q->out, q->a, "more rows, or elements in one, than an int counts");
    if (q->g->measured)
        scope_fact(s, "measured");
    if (q->scan)
        return form_scan(q, s);
    if (finds_place(q) && q->col_modes.count > 1)
        return match_no(q->out, q->a, "a place among several dimensions");
    if (is_columns(q))
        return form_columns(q, s);
    return is_split(q) ? form_split(q, s) : form_rows(q, s);
}
