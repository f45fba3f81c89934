/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_recipe.c - pick the recipe of a reduction, and fill the slots that only it has.
 *
 *     row_reduction     rows are contiguous in memory
 *     column_reduction  elements of adjacent rows are: the reduced dimension is not the innermost
 *     split_reduction   rows are contiguous, but they are few and long
 *
 * Launch shapes are chosen here from the sizes; limits are those of an SM
 * since sm_80: 65536 registers, 1024 threads in a block.
 */
#include "expert/match/rows_slots.h"

#include <string.h>

enum { CLUSTER = 8, CLUSTER_VECTORS = 24 };

/* ---- rows ---------------------------------------------------------------------------------- */

static int kept_count(const struct rows *q)
{
    int kept = 0;

    for (int i = 0; i < q->tensor_count; i++)
        kept += rows_kept(&q->tensors[i]);
    return kept;
}

/* Does a thread have enough registers with this many vectors? */
static bool registers_hold(int64_t vectors, int64_t threads)
{
    return vectors <= 16 && vectors * 4 + 28 <= ROWS_SM_REGISTERS / threads;
}

/* The same for the blocks of a cluster, which have an SM each where rows are long. */
static bool cluster_holds(int64_t vectors, int64_t threads, int vec)
{
    return vectors <= CLUSTER_VECTORS &&
           vectors * 4 + (vec > 4 ? 32 : 28) <= ROWS_SM_REGISTERS / threads;
}

static bool set_cluster(struct rows *q, struct scope *s, int vec, bool fits)
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
    scope_set(s, "cluster_blocks", "%d",
              (int)(ROWS_SM_REGISTERS / threads / (words > 40 ? words : 40)));
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
    return q->g->arch >= 90 && kept && cluster_holds(items * kept, threads, vec);
}

/* Alternative launch shapes, to be tried by measuring. */
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
 * much fp32 as it reads. Is the row read once? */
static bool set_launch(struct rows *q, struct scope *s, int vec)
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
    return set_cluster(q, s, vec, fits) || fits;
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

static bool has_total(const struct rows *q)
{
    for (int i = 0; i < q->stage_count; i++)
        if (q->stages[i].total)
            return true;
    return false;
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
    scope_set(s, "row_vectors", "%d", (int)((rows_length(q) + vec - 1) / vec));
    if (rows_length(q) / vec <= 8 * 256 && kept_count(q) == 0)
        scope_fact(s, "held");
    rows_add_cost(q, set_launch(q, s, vec), 1 + has_total(q));
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
        for (int j = i + 1; j < q->stage_count; j++)
            in[t] = in[t] || (q->stages[j].with == i + 1 && q->stages[j].f.reads[t]);
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

/* Are several tensors read per element? Then loads enough are under way, and registers short. */
static bool reads_several(const struct rows *q)
{
    int count = 0;

    for (int i = 0; i < q->tensor_count; i++)
        count += q->tensors[i].node && !q->tensors[i].per_row &&
                 (rows_moves(&q->tensors[i]) || rows_count(q) == 1);
    return count > 1;
}

static bool form_split(struct rows *q, struct scope *s)
{
    int vec = rows_vector_length(q);
    bool in[ROW_TENSORS] = {false};

    q->out->recipe = "split_reduction";
    rows_join(q);
    rows_count_uses(q);
    scope_set(s, "vec", "%d", vec);
    scope_set(s, "pass_threads", "%d", rows_length(q) >= 65536 ? 512 : 256);
    if (rows_vectorisable(q, vec))
        scope_fact(s, "vectors");
    if (rows_count(q) <= 64)
        scope_fact(s, "few");
    if (rows_pair_up(q))
        scope_fact(s, "shares");
    if (reads_several(q))
        scope_fact(s, "several");
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
    rows_add_cost(q, false, 2);
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
    if (rows_are_columns(q))
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
    if (rows_are_columns(q))
        return rows_form_columns(q, s);
    return is_split(q) ? form_split(q, s) : form_rows(q, s);
}
