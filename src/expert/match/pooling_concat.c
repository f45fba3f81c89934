/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pooling_concat.c - pooling and concatenation.
 *
 * Inputs are contiguous; nothing is fused.
 */
#include "expert/match/match.h"

#include <string.h>

/* The node that gives the only output, when all its arguments are inputs without gaps. */
static bool plain_input(const struct graph *g, const struct node *n)
{
    return n && strcmp(n->op, "input") == 0 && tensor_contiguous(&n->t) && n->index >= 0 &&
           n->index < g->in_count && expr_memory_type(n->t.dtype);
}

/* ---- pooling ---------------------------------------------------------------- */

/* An argument with one number per dimension, or one for all; the innermost last. */
static bool per_dim(const struct node *n, size_t index, int dims, const int64_t *fallback,
                    int64_t out[3])
{
    int64_t given[MAX_DIMS];
    int count = graph_arg_json(n, index, NULL) ? graph_arg_ints(n, index, NULL, given) : 0;

    for (int d = 0; d < 3; d++)
        out[d] = fallback ? fallback[d] : 1;
    if (count != 0 && count != 1 && count != dims)
        return false;
    for (int d = 0; d < dims && count; d++)
        out[3 - dims + d] = given[count == 1 ? 0 : d];
    return true;
}

static bool flag(const struct node *n, size_t index, bool fallback)
{
    int64_t value;

    return graph_arg_int(n, index, NULL, &value) ? value != 0 : fallback;
}

static const struct pooling {
    const char *op;
    int dims;
    bool largest;
} pools[] = {
    {"aten.max_pool2d_with_indices", 2, true},
    {"aten.max_pool3d_with_indices", 3, true},
    {"aten.max_pool1d", 1, true},
    {"aten.max_pool2d", 2, true},
    {"aten.max_pool3d", 3, true},
    {"aten.avg_pool1d", 1, false},
    {"aten.avg_pool2d", 2, false},
    {"aten.avg_pool3d", 3, false},
};

/* PyTorch takes 1-D pooling as 2-D with a dimension of one; reshapes around it change nothing. */
static const struct node *through_reshapes(const struct graph *g, const struct node *n)
{
    while (n && graph_reshapes(n))
        n = graph_arg(g, n, 0);
    return n;
}

static void fill_window(struct scope *s, const char *what, const int64_t v[3])
{
    static const char *const names[] = {"depth", "height", "width"};
    char slot[32];

    for (int d = 0; d < 3; d++) {
        snprintf(slot, sizeof(slot), "%s_%s", what, names[d]);
        scope_set(s, slot, "%lld", (long long)v[d]);
    }
}

/* A window along the three innermost dimensions: depth, height, width. */
struct window {
    int64_t size[3], stride[3], pad[3], dilation[3];
};

enum {
    POOL_ROW_REGISTERS = 64, /* elements of one row under the windows of a thread */
    /* elements a thread reads; more do not justify two forms of the code */
    POOL_SHORT = 64,
    POOL_LOADS = 320,       /* written out one by one, all loops unrolled */
    POOL_TAPS = 512,        /* of a window, likewise */
    POOL_COLUMNS = 1024,    /* of a block, added up in shared memory */
    POOL_DOWN = 16,         /* rows of windows of a block */
    POOL_ROWS_AT_ONCE = 16, /* rows that a thread loads one after the other */
    POOL_FAR = 6,     /* vectors under a thread's windows: more is read beside the neighbour's */
    POOL_MANY = 4,    /* vectors under the windows of a thread */
    POOL_LANES = 128, /* threads along a row of windows, at most: those of the smallest block */
};

/* Elements of the input under `count` neighbouring windows. */
static int64_t under(const struct window *w, int d, int64_t count)
{
    return (count - 1) * w->stride[d] + (w->size[d] - 1) * w->dilation[d] + 1;
}

/* Vectors of `vec` elements under as many windows side by side, as the recipe reads them. */
static int64_t vectors_under(const struct window *w, int64_t vec)
{
    int64_t shift = (vec - w->pad[2] % vec) % vec;

    return (shift + under(w, 2, vec) + vec - 1) / vec;
}

static bool overlaps(const struct window *w, int d)
{
    return w->stride[d] < (w->size[d] - 1) * w->dilation[d] + 1 && w->size[d] > 1;
}

/* Is half of a window in its neighbour as well? */
static bool shares_half(const struct window *w, int d)
{
    return 2 * w->stride[d] <= (w->size[d] - 1) * w->dilation[d] + 1;
}

/* Rows and planes of windows per thread: more share more, as long as all threads have work. */
static void set_bands(const struct graph *g, struct scope *s, const struct window *w,
                      const int64_t out[3], int64_t loads, int64_t vec)
{
    int64_t rows = overlaps(w, 1) ? 8 : 1, planes = overlaps(w, 0) ? 4 : 1;
    int64_t threads = tensor_numel(&g->out[0]) / vec;

    while (rows > 1 && (rows > out[1] || rows * planes > 8))
        rows /= 2;
    while (planes > 1 && planes > out[0])
        planes /= 2;
    while (rows * planes > 1 &&
           ((g->measured && threads / (rows * planes) < 1024LL * g->sm_count) ||
            under(w, 1, rows) * under(w, 0, planes) * loads > POOL_LOADS)) {
        if (planes >= rows)
            planes /= 2;
        else
            rows /= 2;
    }
    if (under(w, 1, rows) * under(w, 0, planes) * loads * vec <= POOL_SHORT)
        scope_fact(s, "short");
    scope_set(s, "band_rows", "%d", (int)rows);
    scope_set(s, "band_planes", "%d", (int)planes);
    if (rows * planes > 1)
        scope_fact(s, "overlap");
    if ((rows > 1 && shares_half(w, 1)) || (planes > 1 && shares_half(w, 0)))
        scope_fact(s, "much");
}

/* Rows of windows that a thread walks down: many, so that few rows of the input are read by two
 * threads, as long as all have work. Those it keeps of the input stay in registers. */
static void set_walk(const struct graph *g, struct scope *s, const struct window *w,
                     const int64_t out[3], int64_t vec)
{
    int64_t rows = 64, threads = tensor_numel(&g->out[0]) / vec;
    int64_t kept = under(w, 1, 1) - w->stride[1];

    while (rows > 8 && (rows > out[1] || threads / rows < 512LL * g->sm_count))
        rows /= 2;
    scope_set(s, "walk_values", "%d, %d, %d", (int)rows, (int)rows / 2, (int)rows * 2);
    if (overlaps(w, 1) && w->size[0] == 1 && w->stride[0] == 1 && w->pad[0] == 0 &&
        out[1] >= rows && (kept + 4 * w->stride[1]) * vec <= POOL_ROW_REGISTERS)
        scope_fact(s, "walks");
}

/* Windows of a block whose rows are added up first: as many columns as POOL_COLUMNS, and rows of
 * windows until they are as many in all. */
static void set_apart(struct scope *s, const struct window *w, const int64_t out[3], bool vectors,
                      int64_t across)
{
    int64_t extent = under(w, 2, 1), along = 1, down = 1;

    if (extent < POOL_COLUMNS)
        along = (POOL_COLUMNS - extent) / w->stride[2] + 1;
    along = along < out[2] ? along : out[2];
    while (down < POOL_DOWN && 2 * down <= out[1] && 2 * down * under(w, 2, along) <= POOL_COLUMNS)
        down *= 2;
    scope_set(s, "apart_along", "%d", (int)along);
    scope_set(s, "apart_down", "%d", (int)down);
    scope_set(s, "unroll_rows", "%s",
              w->size[1] <= POOL_ROWS_AT_ONCE ? "CUTE_UNROLL" : "#pragma unroll 8");
    scope_set(s, "unroll_planes", "%s",
              w->size[0] * w->size[1] <= POOL_ROWS_AT_ONCE ? "CUTE_UNROLL" : "#pragma unroll 1");
    if (vectors && !overlaps(w, 0) && !overlaps(w, 1) && w->size[0] * w->size[1] > 1 &&
        across >= POOL_FAR && extent <= 2 * POOL_COLUMNS)
        scope_fact(s, "apart");
}

/* What a thread may compute at once: vectors across, bands down. */
static void set_sharing(const struct graph *g, struct scope *s, const struct window *w,
                        const struct tensor *x, const int64_t out[3])
{
    int64_t vec = 16 / expr_bytes(x->dtype), width = x->shape[x->dims - 1];
    int64_t across = vectors_under(w, vec), taps = w->size[0] * w->size[1] * w->size[2];
    bool vectors = vec > 1 && width % vec == 0 && across * vec <= POOL_ROW_REGISTERS &&
                   across * w->size[0] * w->size[1] <= POOL_LOADS;
    int64_t windows = tensor_numel(&g->out[0]);
    int lanes;

    scope_set(s, "vec", "%d", (int)vec);
    scope_set(s, "index", "%s", windows < INT32_MAX / 2 ? "unsigned" : "int64_t");
    if (windows < INT32_MAX / 2)
        scope_fact(s, "few");
    scope_set(s, "unroll", "%s", taps <= POOL_TAPS ? "CUTE_UNROLL" : "#pragma unroll 1");
    scope_set(s, "unroll_row", "%s",
              w->size[2] <= POOL_ROW_REGISTERS ? "CUTE_UNROLL" : "#pragma unroll 8");
    if (vectors)
        scope_fact(s, "vectors");
    if (out[2] % vec == 0)
        scope_fact(s, "whole_rows");
    for (lanes = POOL_LANES; lanes > 16 && lanes / 2 * vec >= out[2]; lanes /= 2)
        ;
    scope_set(s, "lanes", "%d", lanes);
    set_bands(g, s, w, out, vectors ? across : w->size[2], vectors ? vec : 1);
    set_walk(g, s, w, out, vec);
    set_apart(s, w, out, vec > 1 && width % vec == 0, across);
    if (w->size[0] * w->size[1] == 1 && w->stride[2] == 1 && across >= POOL_MANY && out[2] >= 512)
        scope_fact(s, "along_rows");
    if (expr_bytes(x->dtype) == 2) {
        scope_fact(s, "words");
        if (strcmp(x->dtype, "f16") == 0)
            scope_fact(s, "half");
        if (scope_has(s, "largest") && w->stride[2] == 1)
            scope_fact(s, "largest_of_pairs");
    }
}

bool match_pooling(const struct graph *g, struct arena *a, struct match *out)
{
    const struct node *n = through_reshapes(g, graph_node(g, g->result[0])), *x;
    static const int64_t none[3] = {0, 0, 0};
    const struct pooling *p = NULL;
    struct window w;
    int64_t result[3];
    struct scope *s;
    int ndim, spatial;
    bool ok;

    for (size_t i = 0; n && i < ARRAY_LEN(pools) && !p; i++)
        if (graph_op_is(n, pools[i].op))
            p = &pools[i];
    if (!p || g->out_count != 1)
        return match_no(out, a, "no pooling is what it returns");
    x = through_reshapes(g, graph_arg(g, n, 0));
    ok = plain_input(g, x) && tensor_contiguous(&g->out[0]) && x->t.dims == g->out[0].dims;
    ok = ok && per_dim(n, 1, p->dims, NULL, w.size) && per_dim(n, 2, p->dims, w.size, w.stride) &&
         per_dim(n, 3, p->dims, none, w.pad) &&
         per_dim(n, p->largest ? 4 : 99, p->dims, NULL, w.dilation);
    if (!ok || flag(n, p->largest ? 5 : 4, false) || (!p->largest && graph_arg_json(n, 6, NULL)))
        return match_no(out, a, "pooling of something computed, or rounded up");
    ndim = x->t.dims;
    spatial = p->dims < ndim - 1 ? p->dims : ndim - 1;
    while (spatial > 1 && w.size[3 - spatial] == 1 && spatial > ndim - 2)
        spatial--;
    s = out->scope = scope_new(a, NULL);
    scope_set(s, "kernel", "%s", match_kernel_name(g, a));
    scope_set(s, "ops", "%s", graph_ops(g, a));
    scope_set(s, "type", "%s", expr_memory_type(x->t.dtype));
    scope_set(s, "ndim", "%d", ndim);
    fill_window(s, "kernel", w.size);
    fill_window(s, "stride", w.stride);
    fill_window(s, "pad", w.pad);
    fill_window(s, "dilation", w.dilation);
    scope_set(s, "height", "%s", spatial > 1 ? arena_printf(a, "x->shape[%d]", ndim - 2) : "1");
    scope_set(s, "out_height", "%s", spatial > 1 ? arena_printf(a, "y->shape[%d]", ndim - 2) : "1");
    scope_set(s, "depth", "%s", spatial > 2 ? arena_printf(a, "x->shape[%d]", ndim - 3) : "1");
    scope_set(s, "out_depth", "%s", spatial > 2 ? arena_printf(a, "y->shape[%d]", ndim - 3) : "1");
    if (p->largest)
        scope_fact(s, "largest");
    if (w.pad[0] || w.pad[1] || w.pad[2])
        scope_fact(s, "padded");
    if (flag(n, 5, true))
        scope_fact(s, "whole_windows");
    for (int d = 0; d < 3; d++)
        result[d] = 3 - d <= spatial ? g->out[0].shape[ndim - 3 + d] : 1;
    set_sharing(g, s, &w, &x->t, result);
    match_scalars(g, s);
    return true;
}

/* ---- concatenation ------------------------------------------------------------ */

bool match_concat(const struct graph *g, struct arena *a, struct match *out)
{
    const struct node *n = graph_node(g, g->result[0]);
    const json_t *list = json_object_get(json_array_get(n->args, 0), "list"), *arg;
    const struct tensor *y = &g->out[0];
    struct scope *s;
    int64_t dim = 0, run = 1;
    int vec = 16 / (expr_bytes(y->dtype) ? expr_bytes(y->dtype) : 16);
    bool vectors = vec > 1, stack = graph_op_is(n, "aten.stack"); /* along a new dimension */
    size_t i;

    graph_arg_int(n, 1, "dim", &dim);
    dim += dim < 0 ? y->dims : 0;
    if (g->out_count != 1 || !(stack || graph_op_is(n, "aten.cat")) || !json_array_size(list) ||
        dim < 0 || dim >= y->dims || !tensor_contiguous(y))
        return match_no(out, a, "no concatenation is what it returns");
    s = out->scope = scope_new(a, NULL);
    for (int d = (int)dim + 1; d < y->dims; d++)
        run *= y->shape[d];
    json_array_foreach(list, i, arg)
    {
        const struct node *x = json_object_get(arg, "node") ? graph_node(g, graph_id(arg)) : NULL;
        struct scope *item;

        if (!plain_input(g, x) || strcmp(x->t.dtype, y->dtype) != 0 || x->t.dims != y->dims - stack)
            return match_no(out, a, "a concatenation of something computed");
        item = scope_item(s, "input");
        scope_set(item, "k", "%zu", i);
        scope_set(item, "index", "%d", x->index);
        vectors = vectors && run * (stack ? 1 : x->t.shape[dim]) % vec == 0;
    }
    scope_set(s, "kernel", "%s", match_kernel_name(g, a));
    scope_set(s, "ops", "%s", graph_ops(g, a));
    scope_set(s, "type", "%s", expr_memory_type(y->dtype));
    scope_set(s, "vec", "%d", vec);
    scope_set(s, "rows", "%s", match_size_text("y", 0, (int)dim, a));
    if (vectors)
        scope_fact(s, "vectors");
    return true;
}
