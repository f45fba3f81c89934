/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_sm90.c - decide which attention uses Hopper's tensor cores, and fill those recipes.
 *
 * TMA loads rows of Q, K and V; a batch mode that a tensor does not have (heads that share K and V)
 * has length 1 in its map.
 */
#include "expert/match/attention.h"

#include <string.h>

enum {
    SHORTEST_KEYS = 32,
    SMALLEST_WORK = 1 << 14,
    MANY_KEYS = 2048, /* of which fewer and longer tiles are faster, taken as blocks come to them */
    WIDEST = 256,
    WIDEST_SPLIT = 128, /* more accumulators do not fit in registers twice */
    MOST_HEADS = 65535, /* of a grid's second dimension */
    SMEM_LIMIT = 232448 - 1024 - 512,
    MOST_STAGES = 8
};

static int64_t round_up(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}

/* Widths of a result that wgmma has in CuTe without its extension. */
static bool has_width(int64_t width)
{
    return width == 32 || width == 64 || width == 96 || width == 128 || width == 192 ||
           width == 256;
}

static bool suits(const struct attention *q, const struct scope *s)
{
    int64_t widest = scope_has(s, "words") ? WIDEST_SPLIT : WIDEST;
    double heads = 1, work = (double)q->queries * (double)q->keys;

    for (int i = 0; i < q->mode_count; i++)
        heads *= (double)q->modes[i].size;
    return q->g->arch == 90 && scope_has(s, "vectors") && q->keys >= SHORTEST_KEYS &&
           work * heads >= SMALLEST_WORK && heads <= MOST_HEADS &&
           round_up(q->head, 32) <= widest && round_up(q->head_v, 32) <= widest &&
           has_width(round_up(q->head_v, 32));
}

/* Rows of O that can be stored 16 bytes at a time, or 8 where elements are words. */
static bool whole_rows(const struct attention *q, bool words)
{
    int vector = words ? 2 : 8;

    if (q->col[AT_O].stride != 1 || q->row[AT_O].stride % vector || q->head_v % (words ? 2 : 32))
        return false;
    for (int i = 0; i < q->mode_count; i++)
        if (q->modes[i].at[AT_O].stride % vector)
            return false;
    return true;
}

void attention_fill_map(struct attention *q, struct scope *s, int t)
{
    bool half = strcmp(attention_tensor(q, t)->dtype, "f16") == 0;
    const char *name = match_lower(q->names[t], q->a), *modes = "", *place = "";

    for (int i = 0; i < ATTENTION_MODES; i++) {
        const char *comma = i ? ", " : "";
        const struct strand *x = &q->modes[i].at[t];
        bool has = i < q->mode_count && x->dim >= 0 && x->stride != 0;

        place =
            arena_printf(q->a, "%s%s%s", place, comma, has ? arena_printf(q->a, "l%d", i) : "0");
        modes = has ? arena_printf(q->a, "%s%sn%d, %s", modes, comma, i, attention_stride(q, t, x))
                    : arena_printf(q->a, "%s%s1, 0", modes, comma);
    }
    scope_set(s, "map_type", "%s", half ? "CUTEGEN_F16" : "CUTEGEN_BF16");
    scope_set(s, arena_printf(q->a, "%s_modes", name), "%s", modes);
    scope_set(s, arena_printf(q->a, "%s_place", name), "%s", place);
    scope_set(s, arena_printf(q->a, "%s_data", name), "%s", attention_pointer(q, t, false));
    scope_set(s, arena_printf(q->a, "%s_row_stride", name), "%s",
              attention_stride(q, t, &q->row[t]));
}

/* How the split pass walks a tensor: its own modes alone, and its heads numbered by them. */
static void fill_planes(struct attention *q, struct scope *s, int t)
{
    const char *name = match_lower(q->names[t], q->a), *head = "", *count = "", *walk = "";
    int used = 0;

    for (int i = 0; i < q->mode_count; i++) {
        const struct strand *x = &q->modes[i].at[t];

        if (x->dim < 0 || x->stride == 0)
            continue;
        head = *head ? arena_printf(q->a, "%s + %s * l%d", head, count, i)
                     : arena_printf(q->a, "l%d", i);
        count = arena_printf(q->a, "%s%sn%d", count, *count ? " * " : "", i);
        walk = used < 2 ? arena_printf(q->a, "%s(int)n%d, (int64_t)(%s), ", walk, i,
                                       attention_stride(q, t, x))
                        : arena_printf(q->a, "%s(int64_t)(%s)", walk, attention_stride(q, t, x));
        used++;
    }
    for (int i = used; i < 2; i++)
        walk = arena_printf(q->a, "%s1, (int64_t)0, ", walk);
    if (used < 3)
        walk = arena_printf(q->a, "%s(int64_t)0", walk);
    scope_set(s, arena_printf(q->a, "%s_head", name), "%s", *head ? head : "0");
    scope_set(s, arena_printf(q->a, "%s_heads", name), "%s", *count ? count : "1");
    scope_set(s, arena_printf(q->a, "%s_split", name), "%s", walk);
    scope_set(s, arena_printf(q->a, "%s_const", name), "%s", attention_pointer(q, t, true));
}

/* Where the scale of a row is among those that the product before has written: one for 64 rows of a
 * head, (rows / 64, heads) of the product's whole result (recipes/gemm_planes.cuh). */
static void fill_groups(struct attention *q, struct scope *s)
{
    for (int t = AT_Q; t <= AT_V; t++) {
        const char *name = match_lower(q->names[t], q->a), *at = "", *steps = "",
                   *head = t == AT_V ? "HEAD_V" : "HEAD", *row = attention_stride(q, t, &q->row[t]);

        for (int i = 0; i < ATTENTION_MODES; i++) {
            const struct strand *x = &q->modes[i].at[t];
            bool has = i < q->mode_count && x->dim >= 0 && x->stride != 0;
            bool of_rows = has && x->stride >= q->row[t].stride; /* a batch; or a head in a row */
            const char *text = has ? attention_stride(q, t, x) : "0";

            steps = arena_printf(q->a, "%s%s(int)(%s / (%s%s))", steps, i ? ", " : "", text,
                                 of_rows ? "64 * " : "", head);
            if (has)
                at = arena_printf(q->a, "%s%sl%d * of_%s.mode[%d]", at, *at ? " + " : "", i, name,
                                  i);
            if (of_rows) {
                struct scope *item = scope_item(s, "group_check");

                scope_set(item, "condition", "n%d == 1 || %s %% (64 * %s) == 0", i, text, row);
                scope_set(item, "text", "%s: a scale is of 64 rows of one batch", q->names[t]);
            }
        }
        scope_set(s, arena_printf(q->a, "%s_group", name), "%s", *at ? at : "0");
        scope_set(s, arena_printf(q->a, "%s_groups", name), "(int)(%s / %s), {%s}", row, head,
                  steps);
    }
}

/* Q, K and V in numbers, for compose/attention_parts.c. */
static const struct match_read *reads_of(const struct attention *q)
{
    struct match_read *reads = arena_array(q->a, 3, sizeof(*reads));

    for (int t = AT_Q; t <= AT_V; t++) {
        struct match_read *r = &reads[t - AT_Q];
        const struct tensor *x = attention_tensor(q, t);

        *r = (struct match_read){.input = q->nests[t].input,
                                 .modes = q->mode_count,
                                 .row = q->row[t].stride,
                                 .head = q->col[t].size};
        for (int d = 0; d < x->dims; d++)
            r->offset += q->nests[t].from[d] * x->strides[d];
        for (int i = 0; i < q->mode_count; i++) {
            r->size[i] = q->modes[i].size;
            r->step[i] = q->modes[i].at[t].stride;
        }
    }
    return reads;
}

/* Inputs that are read beside the scores: they may be what makes Q, K or V, too. */
static const int *beside_of(const struct attention *q)
{
    int *inputs = arena_array(q->a, (size_t)q->leaf_count + 1, sizeof(*inputs));

    for (int i = 0; i < q->leaf_count; i++)
        inputs[i] = q->nests[q->first_leaf + i].input;
    return inputs;
}

/* Queries that share a head of K: the modes that K does not have. */
static const char *sharing(const struct attention *q)
{
    const char *text = "";

    for (int i = 0; i < q->mode_count; i++)
        if (q->modes[i].at[AT_K].stride == 0)
            text = arena_printf(q->a, "%s%sn%d", text, *text ? " * " : "", i);
    return *text ? text : "1";
}

static void fill_sizes(const struct attention *q, struct scope *s, bool words)
{
    int64_t width = round_up(q->head, 32), width_v = round_up(q->head_v, 32);
    int64_t widest = width > width_v ? width : width_v;
    bool many = !words && widest == 128 && q->keys >= MANY_KEYS && !q->core.causal && q->scaled;
    int64_t groups = widest <= 64 && !words ? 3 : 2;
    int64_t tile_n = widest > 128 ? 64 : many ? 160 : 128;
    int64_t queue = widest > 128 ? 1 : 2; /* with words: the two planes of one tile */
    int64_t room = SMEM_LIMIT - queue * groups * 64 * width * 2;
    int64_t stages = room / (tile_n * widest * 2);

    scope_set(s, "groups", "%d", (int)groups);
    scope_set(s, "tile_n", "%d", (int)tile_n);
    scope_set(s, "queue", "%d", (int)queue);
    scope_set(s, "stages", "%d", (int)(stages > MOST_STAGES ? MOST_STAGES : stages));
    scope_set(s, "width_v", "%d", (int)width_v);
    if (widest == 64)
        scope_fact(s, "roomy");
    if (widest > 64)
        scope_fact(s, "long_heads");
    if (many)
        scope_fact(s, "many_keys");
    if (many || words || q->core.causal)
        scope_fact(s, "counted");
}

/* Rows of gradients that can be stored 16 bytes at a time. */
static bool whole_gradients(const struct attention *q)
{
    for (int t = AT_DQ; t <= AT_DV; t++) {
        if (q->col[t].stride != 1 || q->row[t].stride % 8 || q->head % 8 || q->head_v % 8)
            return false;
        for (int i = 0; i < q->mode_count; i++)
            if (q->modes[i].at[t].stride % 8)
                return false;
    }
    return true;
}

void attention_fill_sm90_gradient(struct attention *q, struct match *out)
{
    struct scope *s = out->scope;
    bool half = strcmp(attention_tensor(q, AT_Q)->dtype, "f16") == 0;
    int64_t width = round_up(q->head, 64), stages;

    if (!suits(q, s) || scope_has(s, "words") || width > ATTENTION_WIDEST_SUMS ||
        round_up(q->head_v, 64) != width)
        return;
    out->recipe = "attention_backward_sm90";
    for (int t = AT_O; t <= AT_V; t++)
        attention_fill_map(q, s, t);
    scope_set(s, "tile_n", "128");
    scope_set(s, "width", "%d", (int)width);
    scope_set(s, "width_v", "%d", (int)width);
    stages = (SMEM_LIMIT - 2 * 3 * 64 * width * 2) / (128 * width * 2);
    scope_set(s, "stages", "%d", (int)(stages > MOST_STAGES ? MOST_STAGES : stages));
    scope_set(s, "rows", "%d", width == 64 ? 128 : 64);
    scope_set(s, "wgmma_type", "%s", half ? "F16F16" : "BF16BF16");
    if (whole_gradients(q))
        scope_fact(s, "o_vectors");
    if (q->core.causal)
        scope_fact(s, "counted");
}

void attention_fill_sm90(struct attention *q, struct match *out)
{
    struct scope *s = out->scope;
    bool half = strcmp(attention_tensor(q, AT_Q)->dtype, "f16") == 0, words = scope_has(s, "words");

    out->recipe = "attention";
    if (!suits(q, s))
        return;
    out->recipe = words ? "attention_split_sm90" : "attention_sm90";
    for (int t = AT_Q; t <= AT_V; t++) {
        attention_fill_map(q, s, t);
        fill_planes(q, s, t);
    }
    if (words) {
        scope_fact(s, "planes");
        fill_groups(q, s);
        out->reads = reads_of(q);
        out->beside = beside_of(q);
        out->beside_count = q->leaf_count;
    }
    fill_sizes(q, s, words);
    scope_set(s, "sharing", "%s", sharing(q));
    scope_set(s, "wgmma_type", "%s", half ? "F16F16" : "BF16BF16");
    if (whole_rows(q, words))
        scope_fact(s, "o_vectors");
}
