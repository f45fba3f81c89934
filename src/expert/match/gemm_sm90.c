/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_sm90.c - decide which products use Hopper's and Blackwell's tensor cores, and fill those
 * recipes. On Blackwell (sm_100) only those of 16 bits do.
 *
 * Short sums stay on the FMA units: there the result is bound by writing it,
 * and the split's three products would be no more accurate than one.
 */
#include "expert/match/attention.h"
#include "expert/match/gemm.h"

#include <string.h>

enum {
    SHORTEST_K = 32,
    SHORT_K = 192,
    ONE_BLOCK = 64,
    ONE_SUM = 32,
    SPLIT_K = 1024,
    LONG_ENOUGH = 2048,
    MOST_DIVIDED = 320, /* tiles of a result for which cuBLAS was seen to divide K */
    SPLIT_SMALL = 320,  /* where the result is smallest */
    BIG_RESULT = 100 << 20,
    FEW_COLUMNS = 1024,
    LONGEST_HELD = 8192, /* by a cluster of eight */
    SMALLEST_SIDE = 64,
    SMALL_PRODUCT = 128 * 128,
    LEAST_FLOPS = 16, /* per byte */
    SM90_PROCESSORS = 132,
    SM90_TILE = 128 * 256
};

static bool all_are(const struct gemm *q, const char *dtype)
{
    return strcmp(q->g->in[q->a_in].dtype, dtype) == 0 &&
           strcmp(q->g->in[q->b_in].dtype, dtype) == 0 && strcmp(q->g->out[0].dtype, dtype) == 0;
}

/* One of the two modes is contiguous, and both are modes of the tensor. */
static bool readable(const struct side *x)
{
    return x->row.first != x->row.last && x->col.first != x->col.last &&
           (x->row.stride == 1 || x->col.stride == 1);
}

static const struct axis *slow_axis(const struct side *x)
{
    return x->col.stride == 1 ? &x->row : &x->col;
}

/* Rows of 16-bit elements start on 16 bytes, as TMA needs it. */
static bool mappable(const struct side *x)
{
    return slow_axis(x)->stride % 8 == 0 && x->l.stride % 8 == 0;
}

/* Operands of 16 bits with an fp32 result, as scores are. */
static bool widening(const struct gemm *q)
{
    const char *a = q->g->in[q->a_in].dtype;

    return q->g->arch == 90 && (strcmp(a, "f16") == 0 || strcmp(a, "bf16") == 0) &&
           strcmp(a, q->g->in[q->b_in].dtype) == 0 && strcmp(q->g->out[0].dtype, "f32") == 0;
}

static bool narrow(const struct gemm *q)
{
    return all_are(q, "f16") || all_are(q, "bf16") || widening(q);
}

/* Small products of a batch, which take no longer than reading them and writing their results. */
static bool bound_by_memory(const struct gemm *q)
{
    double m = (double)q->C.row.size, n = (double)q->C.col.size, k = (double)q->A.col.size;

    return q->C.l.size > 1 && m * n <= SMALL_PRODUCT &&
           2 * m * n * k < LEAST_FLOPS * 4 * (m * k + n * k + m * n);
}

bool gemm_suits_sm90(const struct gemm *q)
{
    double work = (double)q->C.l.size * (double)q->C.row.size * (double)q->C.col.size;

    if ((q->g->arch != 90 && (q->g->arch != 100 || !narrow(q))) || !readable(&q->A) ||
        !readable(&q->B) || q->C.row.size < SMALLEST_SIDE || q->C.col.size < SMALLEST_SIDE ||
        work * (double)q->A.col.size < 1 << 26 || (!narrow(q) && bound_by_memory(q)))
        return false;
    return narrow(q) ? mappable(&q->A) && mappable(&q->B)
                     : all_are(q, "f32") && q->A.col.size >= SHORTEST_K;
}

/* Of 128x256, in all products. */
static int64_t tiles_of(const struct gemm *q)
{
    return (q->C.row.size * q->C.col.size + SM90_TILE - 1) / SM90_TILE * q->C.l.size;
}

/* For such small results cuBLAS splits K into many short sums. Ours must be short, too, or
 * truncation makes them less accurate. From some length on cuBLAS' parts are long again, and it
 * splits products of a batch only if they are long. */
static bool smallest_result(const struct gemm *q)
{
    return tiles_of(q) * 7 <= q->g->sm_count;
}

static bool short_parts(const struct gemm *q)
{
    double sums = (double)q->C.row.size * (double)q->C.col.size;

    return tiles_of(q) * 2 <= q->g->sm_count &&
           (q->C.l.size == 1 || smallest_result(q) || q->A.col.size >= LONG_ENOUGH) &&
           sums * (double)q->A.col.size < 256.0 * 256 * 393216;
}

static bool shortest_parts(const struct gemm *q)
{
    return smallest_result(q) && q->A.col.size < 16384;
}

/* Fewer tiles than processors, and a sum long enough to divide. */
static bool few_tiles(const struct gemm *q)
{
    return q->C.l.size == 1 && tiles_of(q) * 2 <= q->g->sm_count &&
           q->A.col.size >= (smallest_result(q) ? SPLIT_SMALL : SPLIT_K);
}

/* "upper" or "lower", where the task's inputs were always so; else "". */
static const char *triangle(const struct gemm *q, int input)
{
    const json_t *known =
        json_object_get(q->g->structure, arena_printf(q->a, "in%d", q->g->origin[input]));
    const char *text = json_string_value(json_object_get(known, "triangle"));

    return text ? text : "";
}

/* Both operands are triangles of this kind, and the kernel skips what is zero. */
static bool triangles(const struct gemm *q, const char *kind)
{
    return q->C.l.size == 1 && q->A.row.size == q->A.col.size && q->B.row.size == q->B.col.size &&
           q->A.col.stride == 1 && q->B.row.stride == 1 &&
           strcmp(triangle(q, q->a_in), kind) == 0 && strcmp(triangle(q, q->b_in), kind) == 0;
}

/* Larger results, for some of which cuBLAS also splits K. */
static bool cut_matters(const struct gemm *q)
{
    return !smallest_result(q) && tiles_of(q) <= MOST_DIVIDED && q->A.col.size >= SHORT_K &&
           !triangles(q, "upper") && !triangles(q, "lower");
}

/* The longest part of K that is rounded as little as cuBLAS' parts: the larger the result, the
 * longer are those. 0: all of K is. */
static int part_k(const struct gemm *q)
{
    /* Where cuBLAS changes how it divides K, found by comparing errors on an H200 (132 SMs). */
    enum { HALF_THE_SMS = 66, NEARLY_ALL_SMS = 110, NEARLY_TWO_WAVES = 220 };
    static const struct {
        int tiles, part;
    } longest[] = {{HALF_THE_SMS, 1024}, {NEARLY_ALL_SMS, 1536}, {NEARLY_TWO_WAVES, 4096}};

    for (size_t i = 0; i < ARRAY_LEN(longest); i++)
        if (tiles_of(q) <= longest[i].tiles)
            return longest[i].part;
    return 0;
}

static bool long_sums(const struct gemm *q)
{
    return cut_matters(q) && !few_tiles(q) && q->C.l.size == 1 && part_k(q) > 0 &&
           q->A.col.size > part_k(q);
}

static void fill_side(struct gemm *q, struct scope *s, const struct side *x, const char *tensor)
{
    const char *t = match_lower(tensor, q->a);
    const struct axis *slow = slow_axis(x);
    bool parts = few_tiles(q) || long_sums(q); /* then parts of K are products of their own */
    bool differs = x->l.stride != 0 && x->l.first != x->l.last;

    scope_set(s, arena_printf(q->a, "%s_l", t), "%s",
              narrow(q)          ? (differs ? "tile.l" : "0")
              : differs || parts ? "w.l"
                                 : "0");
    scope_set(s, arena_printf(q->a, "%s_count", t), "%s", differs ? "L" : "1");
    scope_set(s, arena_printf(q->a, "%s_slow", t), "%s->strides[%d]", tensor, slow->last - 1);
    if (differs)
        scope_set(s, arena_printf(q->a, "%s_step", t), "%s->strides[%d]", tensor, x->l.last - 1);
    else
        scope_set(s, arena_printf(q->a, "%s_step", t), "0");
    scope_set(s, arena_printf(q->a, "%s_unit", t), "%s",
              slow == &x->row ? "1"
                              : arena_printf(q->a, "%s->strides[%d]", tensor, slow->last - 1));
    scope_set(s, arena_printf(q->a, "%s_wide", t), "%s",
              scope_has(s, arena_printf(q->a, "%s_vectors", t)) ? "true" : "false");
    if (differs)
        scope_fact(s, arena_printf(q->a, "%s_batched", t));
}

/* Whether and how TMA stores C. */
static void fill_result(const struct gemm *q, struct scope *s)
{
    const struct side *c = &q->C;
    bool batched = c->l.first != c->l.last;
    int vector = narrow(q) ? 8 : 4; /* elements in 16 bytes */

    scope_set(s, "c_slow", "C->strides[%d]", c->row.last - 1);
    scope_set(s, "c_step", "%s",
              batched ? arena_printf(q->a, "C->strides[%d]", c->l.last - 1) : "M * N");
    if (widening(q))
        scope_fact(s, "c_words");
    else if (c->col.stride == 1 && c->row.first != c->row.last && c->row.stride % vector == 0 &&
             c->l.stride % vector == 0 && c->col.size % vector == 0)
        scope_fact(s, "c_vectors");
}

/* Tiles of 128 columns, or of 64 where those leave more than half of the processors idle. */
static void fill_narrow(const struct gemm *q, struct scope *s)
{
    bool half = strcmp(q->g->in[q->a_in].dtype, "f16") == 0;

    if (strcmp(q->product->t.dtype, "f32") != 0)
        scope_fact(s, "c_rounds");
    scope_set(s, "map_type", "%s", half ? "CUTEGEN_F16" : "CUTEGEN_BF16");
    scope_set(s, "wgmma_type", "%s", half ? "F16F16" : "BF16BF16");
    scope_set(s, "slim", "%d", tiles_of(q) * 4 <= q->g->sm_count ? 64 : 128);
    if (tiles_of(q) <= q->g->sm_count)
        scope_fact(s, "few_tiles");
}

void gemm_fill_sm90(struct gemm *q, struct match *out)
{
    struct scope *s = out->scope;
    fill_side(q, s, &q->A, "A");
    fill_side(q, s, &q->B, "B");
    fill_result(q, s);
    if (narrow(q)) {
        out->recipe = q->g->arch == 100 ? "gemm_half_sm100" : "gemm_half_sm90";
        fill_narrow(q, s);
        return;
    }
    out->recipe = "gemm_sm90";
    out->columns = q->product->t.dims == 2 ? q->C.col.size : 0;
    /* The plan's first launch has none before it to overlap with. */
    scope_set(s, "a_first", "%s", scope_has(s, "b_n_major") ? "flags" : "0");
    scope_set(s, "b_first", "%s", scope_has(s, "a_m_major") ? "flags" : "0");
    if ((q->A.row.stride == 1 || q->B.row.stride == 1) &&
        (q->A.col.size <= LONGEST_HELD || few_tiles(q) || long_sums(q)))
        scope_fact(s, "short_columns");
    if (graph_op_is(q->product, ATTENTION_VALUES))
        scope_fact(s, "weights");
    if (q->A.col.size < SHORT_K)
        scope_fact(s, "short_k");
    if (q->A.col.size <= ONE_BLOCK) {
        scope_fact(s, "one_block");
        scope_set(s, "k_steps", "%d", q->A.col.size <= ONE_SUM ? 1 : 2);
        if (q->A.col.size <= ONE_SUM)
            scope_fact(s, "one_sum");
    }
    if (few_tiles(q))
        scope_fact(s, "few_tiles");
    if (short_parts(q))
        scope_fact(s, "short_parts");
    if (shortest_parts(q))
        scope_fact(s, "shortest_parts");
    if (q->C.l.size * q->C.row.size * q->C.col.size > BIG_RESULT / 4)
        scope_fact(s, "big_result");
    if (q->C.col.size <= FEW_COLUMNS)
        scope_fact(s, "few_columns");
    if (cut_matters(q))
        scope_fact(s, "cut_matters");
    if (long_sums(q))
        scope_fact(s, "long_sums");
    scope_set(s, "part_k", "%d", part_k(q));
    if (triangles(q, "upper"))
        scope_fact(s, "upper_upper");
    if (triangles(q, "lower"))
        scope_fact(s, "lower_lower");
}
