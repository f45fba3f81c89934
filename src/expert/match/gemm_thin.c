/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_thin.c - which products are bound by reading their large operand (recipes/gemm_thin.cu).
 *
 * A product with few rows, or few columns: every element of the large operand is used so rarely
 * that tiles of 128 would waste most of the tensor cores' work.
 */
#include "expert/match/gemm.h"

#include <string.h>

enum {
    FIRST_ARCH = 80,       /* mma.sync with TF32 */
    MOST_ROWS = 64,        /* of the small side: memory is the limit up to about here */
    MOST_ROWS_LARGE = 128, /* where the large operand is so large that no other form hides it */
    FEWEST_LONG = 256,
    SHORTEST_K = 128,
    LONG_K = 512,
    SMALL = 1 << 17, /* elements of the large operand */
    LARGE = 1 << 26,
    MANY_HELD = 33, /* rows of the small side whose reads from L2 are worth sharing */
    GROUPS = 8      /* of eight rows, in the registers of a warp */
};

/* The operand that is streamed, and the one that is held. */
static bool swapped(const struct gemm *q)
{
    return q->C.row.size > q->C.col.size;
}

static const char *dtype_of(const struct gemm *q)
{
    const char *dtype = q->g->in[q->a_in].dtype;
    bool same =
        strcmp(q->g->in[q->b_in].dtype, dtype) == 0 && strcmp(q->g->out[0].dtype, dtype) == 0;

    return same && (strcmp(dtype, "f32") == 0 || strcmp(dtype, "f16") == 0 ||
                    strcmp(dtype, "bf16") == 0)
               ? dtype
               : NULL;
}

/* Can it be read in vectors: of 16 bytes along k, or of four elements along its rows? */
static bool streams(const struct side *x, int vector)
{
    if (x->row.first == x->row.last || x->col.first == x->col.last)
        return false;
    if (x->col.stride == 1)
        return x->col.size % vector == 0 && x->row.stride % vector == 0;
    return x->row.stride == 1 && x->row.size % 4 == 0 && x->col.stride % 4 == 0;
}

bool gemm_suits_thin(const struct gemm *q)
{
    bool swap = swapped(q);
    int64_t rows = swap ? q->C.row.size : q->C.col.size,
            held = swap ? q->C.col.size : q->C.row.size;
    int64_t K = q->A.col.size, most = MOST_ROWS;
    const char *dtype = dtype_of(q);

    if (!dtype || q->g->arch < FIRST_ARCH || q->C.l.size != 1 || q->a_body || q->b_body)
        return false;
    if ((strcmp(dtype, "f32") == 0 || q->g->arch == 90) && rows * K >= LARGE)
        most = MOST_ROWS_LARGE;
    return held <= most && rows >= FEWEST_LONG && rows >= 4 * held && K >= SHORTEST_K &&
           rows * K >= SMALL && streams(swap ? &q->A : &q->B, strcmp(dtype, "f32") == 0 ? 4 : 8);
}

static void check(struct scope *s, const char *condition, const char *text)
{
    struct scope *item = scope_item(s, "thin_check");

    scope_set(item, "condition", "%s", condition);
    scope_set(item, "text", "%s", text);
}

static void fill_checks(struct gemm *q, struct scope *s, const struct side *x, int vector)
{
    const char *S = scope_get(s, "s_tensor");
    bool along_k = x->col.stride == 1;
    const struct axis *slow = along_k ? &x->row : &x->col;

    check(s, arena_printf(q->a, "cutegen_aligned(%s, 16)", S),
          arena_printf(q->a, "%s must start on 16 bytes", S));
    check(s,
          arena_printf(q->a, "%s->strides[%d] %% %d == 0", S, slow->last - 1, along_k ? vector : 4),
          arena_printf(q->a, "rows of %s must start on whole vectors", S));
    check(s,
          along_k ? arena_printf(q->a, "K %% %d == 0", vector)
                  : arena_printf(q->a, "%s %% 4 == 0", scope_get(s, "s_size")),
          arena_printf(q->a, "%s must be read in whole vectors", S));
}

/* TMA takes lines that begin on 16 bytes. */
static bool lines_for_tma(const struct side *x, int bytes)
{
    const struct axis *slow = x->col.stride == 1 ? &x->row : &x->col;

    return slow->stride * bytes % 16 == 0;
}

/* On Hopper: the forms that TMA feeds. In fp32 the warpgroups split the large operand in
 * registers. */
static void fill_sm90(struct match *out, const struct side *x, int64_t held, bool half)
{
    struct scope *s = out->scope;
    const struct axis *slow = x->col.stride == 1 ? &x->row : &x->col;
    int count = 8;

    while (count < held)
        count *= 2;
    out->recipe = half ? "gemm_thin_half_sm90" : "gemm_thin_sm90";
    scope_set(s, "count", "%d", count);
    scope_set(s, "terms", "%d", count > 64 ? 64 : 32);
    scope_set(s, "warpgroups", "%d", count > 32 ? 2 : 4);
    scope_set(s, "registers", "%d", count > 32 ? 240 : 112);
    scope_set(s, "stages_s", "%d", count > 64 ? 4 : count > 32 ? 5 : 3);
    scope_set(s, "stages_h", "%d", count > 64 ? 3 : 4);
    scope_set(s, "stages", "%d", count > 64 ? 3 : count > 32 ? 4 : count > 16 ? 5 : 6);
    scope_set(s, "stages_pair", "%s", count > 64 ? "6, 4, 5" : "8, 4, 6");
    scope_set(s, "s_line", "%s->strides[%d]", scope_get(s, "s_tensor"), slow->last - 1);
}

/* The small operand in 16 bits: TMA reads it where it is if its rows lie along k. */
static void fill_small(struct gemm *q, struct scope *s, const struct side *h, int64_t held)
{
    const char *H = scope_get(s, "h_tensor");

    if (held >= MANY_HELD)
        scope_fact(s, "many_h");
    if (h->row.first == h->row.last || h->col.stride != 1 || !lines_for_tma(h, 2))
        return;
    scope_fact(s, "lines_h");
    scope_set(s, "h_line", "%s->strides[%d]", H, h->row.last - 1);
    check(s, arena_printf(q->a, "cutegen_aligned(%s, 16)", H),
          arena_printf(q->a, "%s must start on 16 bytes", H));
    check(s, arena_printf(q->a, "%s->strides[%d] %% 8 == 0", H, h->row.last - 1),
          arena_printf(q->a, "rows of %s must start on 16 bytes", H));
}

void gemm_fill_thin(struct gemm *q, struct match *out)
{
    struct scope *s = out->scope;
    bool swap = swapped(q), half = strcmp(dtype_of(q), "f32") != 0;
    const struct side *x = swap ? &q->A : &q->B;
    int64_t held = swap ? q->C.col.size : q->C.row.size, groups = 1;

    while (groups < GROUPS && groups * 8 < held)
        groups *= 2;
    out->recipe = "gemm_thin";
    scope_set(s, "s_tensor", "%s", swap ? "A" : "B");
    scope_set(s, "h_tensor", "%s", swap ? "B" : "A");
    scope_set(s, "s_size", "%s", swap ? "M" : "N");
    scope_set(s, "h_size", "%s", swap ? "N" : "M");
    scope_set(s, "h", "%s", swap ? "column" : "row");
    scope_set(s, "s_row", "%s", scope_get(s, swap ? "a_m" : "b_n"));
    scope_set(s, "s_k", "%s", scope_get(s, swap ? "a_k" : "b_k"));
    scope_set(s, "h_row", "%s", scope_get(s, swap ? "b_n" : "a_m"));
    scope_set(s, "h_k", "%s", scope_get(s, swap ? "b_k" : "a_k"));
    scope_set(s, "type", "%s", scope_get(s, "a_type"));
    scope_set(s, "groups", "%d", (int)groups);
    scope_set(s, "chunk", "%d", half ? 32 : 16);
    scope_set(s, "vector", "%d", half ? 8 : 4);
    scope_set(s, "atom", "%s",
              strcmp(dtype_of(q), "bf16") == 0 ? "SM80_16x8x16_F32BF16BF16F32_TN"
                                               : "SM80_16x8x16_F32F16F16F32_TN");
    if (half)
        scope_fact(s, "half");
    if (x->col.stride == 1)
        scope_fact(s, "along_k");
    if (swap)
        scope_fact(s, "swapped");
    if (q->A.col.size >= LONG_K)
        scope_fact(s, "long_k");
    if (q->g->arch >= 90)
        scope_fact(s, "hopper");
    fill_checks(q, s, x, half ? 8 : 4);
    if (q->g->arch != 90 || !lines_for_tma(x, half ? 2 : 4))
        return;
    fill_sm90(out, x, held, half);
    if (half) {
        bool bf16 = strcmp(dtype_of(q), "bf16") == 0;

        fill_small(q, s, swap ? &q->B : &q->A, held);
        scope_set(s, "wgmma", "%s_SS", bf16 ? "BF16BF16" : "F16F16");
        scope_set(s, "map_type", "%s", bf16 ? "CUTEGEN_BF16" : "CUTEGEN_F16");
        check(s,
              arena_printf(q->a, "%s->strides[%d] %% 8 == 0", scope_get(s, "s_tensor"),
                           (x->col.stride == 1 ? x->row.last : x->col.last) - 1),
              arena_printf(q->a, "rows of %s must start on 16 bytes", scope_get(s, "s_tensor")));
    }
}
