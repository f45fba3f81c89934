/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convolution.c - one convolution with a bias, followed by pointwise operators.
 *
 * One and two dimensions are three with sizes of 1. Sizes are written into the
 * kernel as numbers; the batch comes from the call. The fast forms walk planes
 * with borders (recipes/convolution.cu): how wide borders must be, and which
 * parts a stride makes of the planes, is computed here.
 */
#include "expert/match/convolution.h"

#include "base/buf.h"
#include "expert/match/conv_box.h"
#include "expert/match/conv_epilogue.h"
#include "expert/match/match.h"

#include <stdint.h>
#include <string.h>

enum {
    LEAST_TERMS = 16,      /* of a sum on tensor cores */
    LEAST_RESULTS = 16,    /* output channels, likewise */
    LEAST_WORK = 1 << 18,  /* multiplications, likewise */
    EXPANDED_CHANNELS = 8, /* with so few channels, taps become channels */
    /* with so few groups, weights of other groups may be zeros in one product */
    DENSE_GROUPS = 8,
    SAMPLED = 1 << 22, /* elements; above this the maximum of a sample is used */
    MOST_STRIDE = 16,
    MOST_PHASES = 64,      /* launches of a transposed convolution on tensor cores */
    HALO = 32,             /* pixels behind a tile */
    DEPTHWISE_TAPS = 63,   /* kept in registers */
    LEAST_RUN = 128,       /* pixels of a run that TMA stores */
    WIDE_ROW = 256,        /* pixels of a tile */
    PROCESSORS = 132,      /* of an H200 */
    SPARSE_CHANNELS = 8,   /* of a group, in steps of 32 terms */
    TINY = 4,              /* tiles: too few to matter */
    DIRECT_CHANNELS = 128, /* whose weights stay in shared memory */
    MOST_SPLITS = 16,      /* blocks that share the terms of a result */
    /* in steps of a sum, estimated by peak rates: to store a tile's part and read it again; to
     * start the kernel that adds them up */
    STORE_STEPS = 11,
    ADD_STEPS = 9,
    MOST_BOX_STRIDE = 8, /* that TMA skips */
};

bool conv_is(const struct node *n)
{
    return graph_op_is(n, "aten.convolution");
}

/* ---- what it is ----------------------------------------------------------------- */

/* A list with one number per dimension, or one for all; the innermost last. */
static bool read_dims(const struct conv *q, size_t index, const char *keyword, int64_t fill,
                      int64_t out[CONV_DIMS])
{
    int64_t given[MAX_DIMS];
    int count = graph_arg_ints(q->node, index, keyword, given);

    for (int d = 0; d < CONV_DIMS; d++)
        out[d] = fill;
    if (count != 1 && count != q->dims)
        return false;
    for (int d = 0; d < q->dims; d++)
        out[CONV_DIMS - q->dims + d] = given[count == 1 ? 0 : d];
    return true;
}

static void lift(const struct tensor *t, int dims, int64_t out[CONV_DIMS])
{
    for (int d = 0; d < CONV_DIMS; d++)
        out[d] = d < CONV_DIMS - dims ? 1 : t->shape[2 + d - (CONV_DIMS - dims)];
}

static bool plain_input(const struct node *n)
{
    return n && strcmp(n->op, "input") == 0;
}

/* Every element once, in any order. */
static bool without_holes(const struct tensor *t)
{
    int64_t last = 0;

    for (int d = 0; d < t->dims; d++)
        last += (t->shape[d] - 1) * t->strides[d];
    return last + 1 == tensor_numel(t);
}

static bool read_convolution(struct conv *q, struct match *out)
{
    const struct node *n = q->node;
    int64_t flag = 0;

    q->x = graph_arg(q->g, n, 0);
    q->w = graph_arg(q->g, n, 1);
    if (!plain_input(q->x) || !plain_input(q->w) || !without_holes(&q->x->t))
        return match_no(out, q->a, "a convolution of something computed");
    q->w_last = !tensor_contiguous(&q->w->t);
    if (q->w_last && !match_channels_last(&q->w->t))
        return match_no(out, q->a, "weights in another order");
    q->dims = q->x->t.dims - 2;
    if (q->dims < 1 || q->dims > CONV_DIMS || q->w->t.dims != q->x->t.dims)
        return match_no(out, q->a, "a convolution of %d dimensions", q->dims);
    q->groups = 1;
    graph_arg_int(n, 6, "transposed", &flag);
    graph_arg_int(n, 8, "groups", &q->groups);
    q->transposed = flag;
    if (!read_dims(q, 3, "stride", 1, q->stride) || !read_dims(q, 4, "padding", 0, q->pad) ||
        !read_dims(q, 5, "dilation", 1, q->step))
        return match_no(out, q->a, "a convolution with other arguments");
    lift(&q->x->t, q->dims, q->in);
    lift(&q->w->t, q->dims, q->taps);
    lift(&n->t, q->dims, q->out);
    q->channels = q->x->t.shape[1];
    q->results = n->t.shape[1];
    for (int d = 0; d < CONV_DIMS; d++)
        if (q->stride[d] < 1 || q->stride[d] > MOST_STRIDE || q->step[d] < 1)
            return match_no(out, q->a, "a stride of %lld", (long long)q->stride[d]);
    return tensor_numel(&n->t) > 0 || match_no(out, q->a, "an empty convolution");
}

/*
 * A filter that is one tap wide moves along the height alone: rows are joined, and the height
 * becomes a width with a dilation. Its taps can then be expanded, or share a load.
 */
static void join_rows(struct conv *q)
{
    int64_t wide = q->in[2];

    if (q->taps[2] != 1 || q->taps[1] == 1 || q->pad[2] != 0 || q->stride[2] != 1 ||
        q->stride[1] != 1 || q->groups > 1 || !tensor_contiguous(&q->x->t) ||
        (q->channels > EXPANDED_CHANNELS && (q->taps[1] - 1) * q->step[1] * wide > HALO))
        return;
    q->joined = true;
    q->in[2] *= q->in[1];
    q->out[2] *= q->out[1];
    q->taps[2] = q->taps[1];
    q->step[2] = q->step[1] * wide;
    q->pad[2] = q->pad[1] * wide;
    q->in[1] = q->in[0], q->out[1] = q->out[0], q->taps[1] = q->taps[0];
    q->step[1] = q->step[0], q->pad[1] = q->pad[0], q->stride[1] = q->stride[0];
    q->in[0] = q->out[0] = q->taps[0] = q->step[0] = q->stride[0] = 1;
    q->pad[0] = 0;
}

static bool types_fit(struct conv *q, struct match *out)
{
    const char *x = q->x->t.dtype, *w = q->w->t.dtype, *y = q->g->out[0].dtype;
    bool ok = strcmp(x, w) == 0 && strcmp(x, y) == 0 &&
              (strcmp(x, "f32") == 0 || strcmp(x, "f16") == 0 || strcmp(x, "bf16") == 0);

    return ok || match_no(out, q->a, "a convolution of %s and %s to %s", x, w, y);
}

/* ---- slots --------------------------------------------------------------------------- */

static const char letters[CONV_DIMS] = {'d', 'h', 'w'};

static void set_dim(struct conv *q, struct scope *s, const char *what, int d, int64_t value)
{
    scope_set(s, arena_printf(q->a, "%s_%c", what, letters[d]), "%lld", (long long)value);
}

/* How planes must be walked along one dimension. */
struct conv_walk {
    int64_t size, lead, parts;
    int64_t low,
        shifts; /* of a transposed one: the first pixel that some phase reads, how many there are */
    uint32_t used;
};

static struct conv_walk walk_of(const struct conv *q, int d)
{
    int64_t s = q->stride[d], low = INT32_MAX, high = INT32_MIN;
    int64_t results = q->transposed ? (q->out[d] + s - 1) / s : q->out[d];
    int64_t data = q->transposed ? q->in[d] : (q->in[d] + s - 1) / s;
    struct conv_walk w = {.used = q->transposed};

    if (q->expand && d == CONV_DIMS - 1)
        return (struct conv_walk){.size = q->out[d], .parts = 1, .used = 1};
    for (int64_t r = 0; r < q->taps[d]; r++)
        for (int64_t f = 0; f < (q->transposed ? s : 1); f++) {
            int64_t at =
                q->transposed ? f + q->pad[d] - r * q->step[d] : r * q->step[d] - q->pad[d];
            int64_t position = (at % s + s) % s, shift = (at - position) / s;

            if (q->transposed && position != 0)
                continue;
            w.used |= q->transposed ? 0 : UINT32_C(1) << position;
            low = shift < low ? shift : low;
            high = shift > high ? shift : high;
        }
    w.low = low;
    w.shifts = high - low + 1;
    w.lead = low < 0 ? -low : 0;
    w.size = w.lead + data;
    w.size = w.size > results ? w.size : results;
    w.size = w.size > results + high ? w.size : results + high;
    if (d == CONV_DIMS - 1 && w.size != q->out[d] && q->out[d] % 4 == 0 && q->out[d] >= LEAST_RUN)
        w.size = q->out[d] % 8 ? (w.size + 3) / 4 * 4  /* rows of results begin on whole vectors */
                               : (w.size + 7) / 8 * 8; /* or sectors */
    for (uint32_t bits = w.used; bits; bits &= bits - 1)
        w.parts++;
    return w;
}

/* Results that lie next to each other wherever they do in the walk: rows, planes or images. */
static int64_t run_of(const struct conv *q)
{
    int64_t run = q->out[2];

    for (int d = CONV_DIMS - 1; d > 0 && walk_of(q, d).size == q->out[d]; d--)
        run *= q->out[d - 1];
    return run;
}

/* Can TMA store results? Following operators must not depend on a result's position within its
 * channel. */
static bool stores_runs(const struct conv *q)
{
    bool ok = strcmp(q->x->t.dtype, "f32") == 0 && run_of(q) % 4 == 0 && run_of(q) >= LEAST_RUN &&
              !q->y_last;

    for (int d = 0; d < CONV_DIMS; d++)
        ok = ok && (!q->transposed || q->stride[d] == 1);
    for (int i = 0; i < q->leaf_count; i++)
        ok = ok && (q->leaves[i].n.stride == 0 || q->leaves[i].n.first == q->leaves[i].n.last) &&
             (q->leaves[i].p.stride == 0 || q->leaves[i].p.first == q->leaves[i].p.last);
    return ok;
}

/* Else: do most tiles lie in one row? */
static bool has_wide_rows(const struct conv *q)
{
    int64_t size = walk_of(q, 2).size;

    return strcmp(q->x->t.dtype, "f32") == 0 && (size >= 2 * WIDE_ROW || size == WIDE_ROW) &&
           !q->y_last &&
           (!q->transposed || (q->stride[0] == 1 && q->stride[1] == 1 && q->stride[2] == 1));
}

/* Tiles of the product, of the larger or the smaller kind. */
static int64_t tiles_of(const struct conv *q, bool small)
{
    int64_t rows = q->results * q->rows_each, pixels = q->x->t.shape[0];
    int64_t tile = (rows <= 64 ? 512 : 256) / (small ? 2 : 1);

    for (int d = 0; d < CONV_DIMS; d++)
        pixels *= walk_of(q, d).size;
    return (pixels + tile - 1) / tile * ((rows + 127) / 128);
}

/* Would tiles of half the pixels leave fewer processors idle at the end? */
static bool wants_small_tiles(const struct conv *q)
{
    int64_t small = tiles_of(q, true), large = tiles_of(q, false);

    small = (small + PROCESSORS - 1) / PROCESSORS; /* tiles of a processor */
    large = large <= TINY ? 0 : 2 * ((large + PROCESSORS - 1) / PROCESSORS);
    return small * 100 < large * 92;
}

/* Channels of a row: as many as 128 bytes hold, or half of that where it wastes less. */
static int row_of(int64_t terms, int64_t channels)
{
    int64_t over = terms % channels;

    return over > 0 && over <= channels / 2 && terms < 4 * channels ? 32 : 64;
}

static bool is_depthwise(const struct conv *q)
{
    bool ok = q->groups == q->channels && !q->transposed && q->results % q->channels == 0 &&
              strcmp(q->x->t.dtype, "f32") == 0 && tensor_contiguous(&q->x->t) && !q->y_last &&
              !q->w_last && q->in[2] % 4 == 0 && q->in[0] == 1 && q->taps[0] == 1 &&
              q->pad[0] == 0 && q->pad[2] < q->taps[2] && q->taps[1] <= 7 && q->taps[2] <= 9 &&
              q->taps[1] * q->taps[2] <= DEPTHWISE_TAPS;

    for (int d = 0; d < CONV_DIMS; d++)
        ok = ok && q->stride[d] == 1 && q->step[d] == 1;
    return ok;
}

/* One tap on whole vectors: x is read where it lies. */
static bool is_one_tap(const struct conv *q)
{
    bool ok = q->groups == 1 && !q->transposed && q->channels <= DIRECT_CHANNELS &&
              strcmp(q->x->t.dtype, "f32") == 0 && tensor_contiguous(&q->x->t) && !q->y_last &&
              q->shape.shape[2] % 4 == 0;

    for (int d = 0; d < CONV_DIMS; d++)
        ok = ok && q->taps[d] == 1 && q->stride[d] == 1 && q->pad[d] == 0;
    return ok;
}

/* ---- what lies channels last ----------------------------------------------------------- */

/* 16 bits, x and y in whole vectors; what TMA can fetch in boxes. */
static bool is_last(const struct conv *q)
{
    bool ok = strcmp(q->x->t.dtype, "f32") != 0 && q->y_last && match_channels_last(&q->x->t) &&
              !tensor_contiguous(&q->x->t) && q->channels % 8 == 0 && q->results % 8 == 0 &&
              q->groups == 1 && !q->expand && q->dims >= 2 && !q->joined;

    for (int d = 0; d < CONV_DIMS; d++)
        ok = ok && q->stride[d] <= (q->transposed ? 1 : MOST_BOX_STRIDE);
    return ok;
}

/* Do the taps of a filter row read the same pixels, one further each? */
static bool shares_taps(const struct conv *q)
{
    int64_t run = (q->taps[2] - 1) * q->step[2], shifts = walk_of(q, 2).shifts;

    if (q->rows_each > 1)
        return shifts > 1 && shifts <= HALO;
    return !q->expand && q->stride[2] == 1 && q->taps[2] > 1 && run <= HALO;
}

/* What a box is chosen by. */
static struct conv_box box_of(const struct conv *q)
{
    struct conv_extent e = {
        .batch = q->x->t.shape[0],
        .channels = q->channels,
        .results = q->results,
        .halo = shares_taps(q) ? (q->taps[2] - 1) * q->step[2] : 0,
        .taps_shared = shares_taps(q) ? q->taps[2] : 1,
        .taps = q->taps[0] * q->taps[1] * q->taps[2],
        .several = q->dims == 2,
    };

    memcpy(e.out, q->out, sizeof(e.out));
    for (int d = 0; d < CONV_DIMS; d++)
        e.stride[d] = q->transposed ? 1 : q->stride[d];
    return conv_box_of(&e);
}

/* Operands of one instruction: lines of "%0, %1, ..." and `"+f"(sum[0]), "+f"(sum[1]), ...`. */
static void fill_sums(struct conv *q, struct scope *s, int64_t count)
{
    struct buf sums = buf_init(8192);

    for (int64_t i = 0; i < count; i += 4) {
        scope_set(scope_item(s, "sums"), "registers", "%s%%%lld, %%%lld, %%%lld, %%%lld",
                  i ? ", " : "", (long long)i, (long long)i + 1, (long long)i + 2,
                  (long long)i + 3);
        buf_printf(
            &sums, "%s\"+f\"(sum[%lld]), \"+f\"(sum[%lld]), \"+f\"(sum[%lld]), \"+f\"(sum[%lld])",
            i ? ", " : "", (long long)i, (long long)i + 1, (long long)i + 2, (long long)i + 3);
    }
    scope_set(s, "wgmma_sums", "%s", buf_text(&sums).data);
    scope_set(s, "wgmma_weights", "%lld", (long long)count);
    scope_set(s, "wgmma_pixels", "%lld", (long long)count + 1);
    scope_set(s, "wgmma_add", "%lld", (long long)count + 2);
    scope_set(s, "wgmma_element", "%s", q->x->t.dtype);
    buf_release(&sums);
}

/* Says whether taps share a box. */
static bool fill_last(struct conv *q, struct scope *s)
{
    int64_t taps = q->taps[0] * q->taps[1] * q->taps[2];
    struct conv_box b = box_of(q);

    scope_fact(s, "last");
    if ((q->w_last || taps == 1) && !q->transposed && q->channels % row_of(q->channels, 64) == 0)
        scope_fact(s, "w_there");
    scope_set(s, "box_w", "%lld", (long long)b.w);
    scope_set(s, "box_h", "%lld", (long long)b.h);
    scope_set(s, "box_n", "%lld", (long long)b.n);
    scope_set(s, "use_w", "%lld", (long long)b.use);
    scope_set(s, "wide", "%lld", (long long)b.wide);
    scope_set(s, "box_step_w", "%lld", (long long)(q->transposed ? 1 : q->stride[2]));
    scope_set(s, "box_step_h", "%lld", (long long)(q->transposed ? 1 : q->stride[1]));
    fill_sums(q, s, b.wide / 2);
    return b.shared;
}

/* How many blocks should share the terms of a result? Each takes whole slots of pixels. */
static int64_t splits_of(const struct conv *q)
{
    int64_t terms = q->expand ? q->channels * q->taps[2] : q->channels, chunk = row_of(terms, 64);
    int64_t width = q->expand ? 1 : q->taps[2],
            run = shares_taps(q) ? width : 1; /* steps of a slot */
    int64_t slots = q->taps[0] * q->taps[1] * (width / run) * ((terms + chunk - 1) / chunk);
    int64_t tiles = tiles_of(q, wants_small_tiles(q)), best = 1, least = INT64_MAX;

    if (q->groups > 1 || q->y_last || is_last(q) ||
        (q->transposed && q->stride[0] * q->stride[1] * q->stride[2] > 1))
        return 1;
    for (int64_t n = 1; n <= MOST_SPLITS && n <= slots; n++) {
        int64_t turns = (tiles * n + PROCESSORS - 1) / PROCESSORS; /* of a processor */
        int64_t steps = turns * ((slots + n - 1) / n * run + (n > 1 ? STORE_STEPS : 0)) +
                        (n > 1 ? ADD_STEPS : 0);

        if (steps < least)
            least = steps, best = n;
    }
    return best;
}

/* Is there enough work for tensor cores? Few channels in many groups are not. */
static bool pays(const struct conv *q, bool grouped)
{
    double terms =
        (double)(q->channels / q->groups) * (double)(q->taps[0] * q->taps[1] * q->taps[2]);

    if (q->transposed && q->stride[0] * q->stride[1] * q->stride[2] > MOST_PHASES)
        return false;
    return terms >= LEAST_TERMS && q->results >= LEAST_RESULTS &&
           (double)tensor_numel(&q->node->t) * terms >= LEAST_WORK &&
           (q->groups == 1 || grouped || (q->groups <= DENSE_GROUPS && q->channels <= 512));
}

static void fill_forms(struct conv *q, struct scope *s)
{
    bool narrow = strcmp(q->x->t.dtype, "f32") != 0, depthwise = is_depthwise(q);
    int64_t terms = q->expand ? q->channels * q->taps[2] : q->channels,
            each = q->channels / q->groups;
    bool grouped = q->groups > 1 && each % 64 == 0 && q->results / q->groups % 128 == 0;
    int64_t lanes = 32;

    while (lanes < 128 && lanes * 4 < q->out[2])
        lanes *= 2;
    scope_set(s, "lanes", "%d", (int)lanes);
    scope_set(s, "row_split", "%d", row_of(terms, 32));
    scope_set(s, "row_single", "%d", row_of(terms, 64));
    if (depthwise)
        scope_fact(s, "depthwise");
    else if (pays(q, grouped))
        scope_fact(s, "products");
    if (narrow)
        scope_fact(s, "narrow");
    if (q->g->tf32_convolutions && !narrow && q->groups == 1 && q->channels >= LEAST_TERMS)
        scope_fact(s, "tf32");
    if (q->g->arch == 90)
        scope_fact(s, "hopper");
    if (q->transposed)
        scope_fact(s, "transposed");
    if (q->expand)
        scope_fact(s, "expand");
    if (grouped)
        scope_fact(s, "grouped");
    if (q->rows_each > 1)
        scope_fact(s, "interleaved");
    if (q->results * q->rows_each <= 64)
        scope_fact(s, "few_rows");
    if (q->w_last)
        scope_fact(s, "w_last");
    if (q->y_last)
        scope_fact(s, "y_last");
    if (is_last(q) ? fill_last(q, s) : shares_taps(q))
        scope_fact(s, "shared_taps");
    if (stores_runs(q))
        scope_fact(s, "runs");
    else if (has_wide_rows(q))
        scope_fact(s, "wide_rows");
    if (!narrow && q->groups > 1 && !grouped && each <= SPARSE_CHANNELS)
        scope_fact(s, "sparse");
    if (wants_small_tiles(q) || scope_has(s, "sparse")) /* sparse sums need more registers */
        scope_fact(s, "small_tiles");
    if (is_one_tap(q))
        scope_fact(s, "one_tap");
    else if (splits_of(q) > 1)
        scope_fact(s, "few_tiles");
    scope_set(s, "splits", "%lld", (long long)splits_of(q));
    if (tensor_numel(&q->x->t) >= SAMPLED)
        scope_fact(s, "sampled");
}

static void fill_sizes(struct conv *q, struct scope *s)
{
    int64_t phases = 1;

    for (int d = 0; d < CONV_DIMS; d++) {
        struct conv_walk w = walk_of(q, d);

        set_dim(q, s, "in", d, q->in[d]);
        set_dim(q, s, "out", d, q->out[d]);
        set_dim(q, s, "taps", d, q->taps[d]);
        set_dim(q, s, "stride", d, q->stride[d]);
        set_dim(q, s, "pad", d, q->pad[d]);
        set_dim(q, s, "step", d, q->step[d]);
        set_dim(q, s, "walk", d, w.size);
        set_dim(q, s, "lead", d, w.lead);
        set_dim(q, s, "used", d, w.used);
        set_dim(q, s, "parts", d, w.parts);
        phases *= q->transposed && (d < CONV_DIMS - 1 || q->rows_each == 1) ? q->stride[d] : 1;
    }
    scope_set(s, "low_w", "%lld", (long long)walk_of(q, CONV_DIMS - 1).low);
    scope_set(s, "shifts_w", "%lld", (long long)walk_of(q, CONV_DIMS - 1).shifts);
    scope_set(s, "rows_each", "%lld", (long long)q->rows_each);
    scope_set(s, "phases_w", "%lld", (long long)(q->rows_each > 1 ? q->stride[2] : 1));
    scope_set(s, "phases", "%lld", (long long)phases);
    scope_set(s, "run_p", "%lld", (long long)run_of(q));
    scope_set(s, "c_in", "%lld", (long long)q->channels);
    scope_set(s, "c_out", "%lld", (long long)q->results);
    scope_set(s, "groups", "%lld", (long long)q->groups);
}

/* The plan requires the sizes that are written into the kernel. */
static void check_shape(struct conv *q, struct scope *s, const char *name, const struct tensor *t,
                        int from)
{
    struct scope *item = scope_item(s, "check");
    const char *all = "";

    for (int d = from; d < t->dims; d++)
        all = arena_printf(q->a, "%s%s%s->shape[%d] == %lld", all, *all ? " && " : "", name, d,
                           (long long)t->shape[d]);
    scope_set(item, "condition", "%s", all);
    scope_set(item, "text", "sizes of %s are written into the kernel", name);
}

/* The stride of one mode of a leaf: "_0{}", "_1{}" or a kernel parameter, which is added. */
static const char *mode_stride(struct conv *q, const struct conv_leaf *leaf, const struct axis *x,
                               const char *mode, struct buf *params, struct buf *args)
{
    const char *name = arena_printf(q->a, "%s_%s", match_lower(leaf->name, q->a), mode);

    if (x->stride == 0 || x->first == x->last)
        return "_0{}";
    buf_printf(params, ", int64_t %s", name);
    buf_printf(args, ", (int64_t)%s", match_axis_stride(leaf->name, x, q->a));
    return name;
}

static void fill_leaf(struct conv *q, struct scope *s, const struct conv_leaf *leaf,
                      struct buf *params, struct buf *args)
{
    struct scope *item = scope_item(s, "leaf");

    scope_set(item, "x", "%s", leaf->name);
    scope_set(item, "X", "%s", match_capital(leaf->name, q->a));
    scope_set(item, "i", "%d", leaf->input);
    scope_set(item, "ndim", "%d", q->g->in[leaf->input].dims);
    scope_set(item, "n", "%s", mode_stride(q, leaf, &leaf->n, "n", params, args));
    scope_set(item, "k", "%s", mode_stride(q, leaf, &leaf->k, "k", params, args));
    scope_set(item, "p", "%s", mode_stride(q, leaf, &leaf->p, "p", params, args));
}

/* The names of parameters, to be passed on: the last word of each. */
static const char *passed_on(const char *params, struct arena *a)
{
    struct buf out = buf_init(4096);
    const char *names, *word = params;

    for (const char *c = params;; c++) {
        if (*c == ' ' || *c == '*')
            word = c + 1;
        if (*c != ',' && *c != '\0')
            continue;
        buf_printf(&out, "%s%.*s", out.len ? ", " : "", (int)(c - word), word);
        if (*c == '\0')
            break;
    }
    names = arena_printf(a, "%s", buf_text(&out).data);
    buf_release(&out);
    return names;
}

static void fill_signature(struct conv *q, struct scope *s)
{
    const char *type = expr_memory_type(q->x->t.dtype), *pointers = "", *passed = "", *strides = "";
    struct buf params = buf_init(4096), args = buf_init(4096);

    for (int i = 0; i < q->leaf_count; i++) {
        const char *t = expr_memory_type(q->leaves[i].node->t.dtype), *name = q->leaves[i].name;

        fill_leaf(q, s, &q->leaves[i], &params, &args);
        pointers = arena_printf(q->a, "%s, %s const *%s", pointers, t, name);
        passed = arena_printf(q->a, "%s, CUTEGEN_DATA(%s const, %s)", passed, t, name);
    }
    for (int d = -2; d < CONV_DIMS; d++) {
        int at = d < 0 ? d + 2 : 2 + d - (CONV_DIMS - q->dims);

        if (q->joined && d >= 0) /* the height is the depth; there is no depth */
            at = d == 2 ? q->dims + 1 : 2;
        strides = (d >= 0 && d < CONV_DIMS - q->dims) || (q->joined && d >= 0 && d + q->dims < 4)
                      ? arena_printf(q->a, "%s, (int64_t)0", strides)
                      : arena_printf(q->a, "%s%s(int64_t)x->strides[%d]", strides,
                                     *strides ? ", " : "", at);
    }
    scope_set(s, "x_strides", "%s", strides);
    scope_set(s, "params",
              "%s const *x, %s const *w%s, %s *y, int N, int64_t x_n, int64_t x_c, int64_t x_d, "
              "int64_t x_h, int64_t x_w%s",
              type, type, pointers, type, buf_text(&params).data ? buf_text(&params).data : "");
    scope_set(s, "names", "%s", passed_on(scope_get(s, "params"), q->a));
    scope_set(
        s, "args",
        "CUTEGEN_DATA(%s const, x), CUTEGEN_DATA(%s const, w)%s, CUTEGEN_DATA(%s, y), (int)N, "
        "%s%s",
        type, type, passed, type, strides, buf_text(&args).data ? buf_text(&args).data : "");
    scope_set(s, "x_type", "%s", type);
    scope_set(s, "w_type", "%s", type);
    scope_set(s, "y_type", "%s", type);
    buf_release(&params);
    buf_release(&args);
}

/* How tensors lie in memory. */
static void fill_order(struct conv *q, struct scope *s)
{
    scope_set(s, "w_lies", "%s", q->w_last ? "lies_last(w)" : "cutegen_contiguous(w)");
    scope_set(s, "y_lies", "%s", q->y_last ? "lies_last(y)" : "cutegen_contiguous(y)");
    scope_set(s, "lie", "%s",
              q->w_last || q->y_last
                  ? arena_printf(q->a, "w must %s, y must %s",
                                 q->w_last ? "lie channels last" : "be contiguous",
                                 q->y_last ? "lie channels last" : "be contiguous")
                  : "w and y must be contiguous");
    scope_set(s, "y_p", "%s", q->y_last ? "Int<C_OUT>{}" : "_1{}");
    scope_set(s, "y_k", "%s", q->y_last ? "_1{}" : "int64_t(PIXELS)");
}

static bool fill(struct conv *q, struct match *out)
{
    struct scope *s = out->scope = scope_new(q->a, NULL);
    bool bfloat = strcmp(q->x->t.dtype, "bf16") == 0;

    scope_set(s, "kernel", "%s", match_kernel_name(q->g, q->a));
    scope_set(s, "ops", "%s", graph_ops(q->g, q->a));
    scope_set(s, "x_index", "%d", q->x->index);
    scope_set(s, "w_index", "%d", q->w->index);
    scope_set(s, "x_name", "%s", q->g->in[q->x->index].name);
    scope_set(s, "w_name", "%s", q->g->in[q->w->index].name);
    scope_set(s, "ndim", "%d", q->x->t.dims);
    scope_set(s, "mma", "SM80_16x8x16_F32%sF32_TN", bfloat ? "BF16BF16" : "F16F16");
    scope_set(s, "wgmma_type", "%s", bfloat ? "BF16BF16" : "F16F16");
    scope_set(s, "map_type", "%s", bfloat ? "CUTEGEN_BF16" : "CUTEGEN_F16");
    check_shape(q, s, "x", &q->x->t, 1);
    check_shape(q, s, "w", &q->w->t, 0);
    check_shape(q, s, "y", &q->node->t, 1);
    match_scalars(q->g, s);
    fill_order(q, s);
    fill_sizes(q, s);
    fill_forms(q, s);
    fill_signature(q, s);
    return conv_fill_epilogue(q, s, out);
}

bool match_convolution(const struct graph *g, struct arena *a, struct match *out)
{
    static const char *const taken[] = {"x",   "w",   "y",     "N",    "n",   "k",    "p",
                                        "sum", "acc", "state", "mine", "top", "tops", "ready"};
    struct conv *q = arena_alloc(a, sizeof(*q));

    q->g = g;
    q->a = a;
    for (size_t i = 0; i < ARRAY_LEN(taken); i++)
        q->names.used[q->names.count++] = taken[i];
    for (int i = 0; i < g->count; i++) {
        if (!conv_is(&g->nodes[i]))
            continue;
        if (q->node)
            return match_no(out, a, "more than one convolution");
        q->node = &g->nodes[i];
    }
    if (!q->node)
        return match_no(out, a, "no convolution");
    if (!read_convolution(q, out) || !types_fit(q, out))
        return false;
    join_rows(q);
    q->y_last =
        g->out_count == 1 && !tensor_contiguous(&g->out[0]) && match_channels_last(&g->out[0]);
    if (g->out_count != 1 || !(tensor_contiguous(&g->out[0]) || q->y_last) ||
        !conv_same_shape(&g->out[0], &q->node->t))
        return match_no(out, a, "the output is not the convolution's shape, without gaps");
    q->expand =
        !q->transposed && q->groups == 1 && q->channels <= EXPANDED_CHANNELS && q->taps[2] > 1;
    q->rows_each = 1;
    while (q->transposed && q->stride[2] <= 8 && q->rows_each < q->stride[2])
        q->rows_each *= 2;
    q->shape = (struct tensor){
        .dims = 3, .shape = {q->node->t.shape[0], q->results, q->out[0] * q->out[1] * q->out[2]}};
    return conv_read_epilogue(q, out) && fill(q, out);
}
