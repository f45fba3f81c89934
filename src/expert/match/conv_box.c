/* SPDX-License-Identifier: Apache-2.0 */
/* conv_box.c - choose the box of pixels that a tile of a convolution takes. */
#include "expert/match/conv_box.h"

enum {
    MOST_PIXELS = 256, /* of an instruction, and of a side of what TMA fetches */
    /* terms; up to here memory is slower than the products, and smaller tiles keep it busier */
    SHORT_SUM = 128,
    LEAST_USED = 16,     /* columns of a box that is not as wide as the image */
    PROCESSORS = 132,    /* of an H200 */
    MANY_ROUNDS = 8,     /* rounds of tiles beyond which the last one matters little */
    STORE_CYCLES = 1000, /* of a tile's results, where nothing is multiplied */
    SHARED_BYTES = 110,  /* that wgmma reads in a cycle */
    L2_BYTES = 40,       /* that a processor gets in a cycle */
    KEPT_BYTES = 50,     /* likewise, of an x that stays in L2 */
    MOST_KEPT = 8 << 20, /* elements of such an x */
};

static int64_t pieces(int64_t size, int64_t each)
{
    return (size + each - 1) / each;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* A step of 64 channels takes as long as the slowest of tensor cores, shared memory reads and L2
 * reads. */
static void weigh(const struct conv_extent *e, struct conv_box *b)
{
    int64_t boxes =
        pieces(e->out[2], b->use) * pieces(e->out[1], b->h) * e->out[0] * pieces(e->batch, b->n);
    double steps = (double)e->taps * (double)pieces(e->channels, 64), wide, fetched;
    bool few = e->results <= 64; /* then each warpgroup has a box of its own */

    b->wide = pieces((b->h * b->n - 1) * b->w + b->use, 8) * 8;
    b->tiles = few ? pieces(boxes, 2) : boxes * pieces(e->results, 128);
    wide = (double)b->wide;
    fetched = (few ? 256 : 128) * wide / (b->shared ? (double)e->taps_shared : 1);
    fetched += few ? 8192 : 16384;
    b->cycles = larger(larger(4 * wide, 8 * (2048 + 32 * wide) / SHARED_BYTES),
                       fetched / (b->shared || e->taps_shared == 1 ? L2_BYTES : KEPT_BYTES));
    b->cycles = steps * b->cycles + STORE_CYCLES;
    b->cycles *= b->tiles > MANY_ROUNDS * PROCESSORS ? (double)b->tiles / PROCESSORS
                                                     : (double)pieces(b->tiles, PROCESSORS);
}

/* Every height of a box of this width, and every number of whole images. */
static void weigh_heights(const struct conv_extent *e, struct conv_box b, struct conv_box *best)
{
    int64_t most = e->taps * e->channels <= SHORT_SUM ? MOST_PIXELS / 2 : MOST_PIXELS;

    for (b.h = 1; b.h <= e->out[1] && (b.h - 1) * b.w < MOST_PIXELS; b.h++) {
        bool whole = b.use == e->out[2] && b.h == e->out[1] && e->several;

        if ((b.h - 1) * e->stride[1] >= MOST_PIXELS)
            break;
        for (b.n = 1; b.n <= (whole ? e->batch : 1) && (b.h * b.n - 1) * b.w < MOST_PIXELS; b.n++) {
            weigh(e, &b);
            if (b.wide <= most && (best->cycles < 0 || b.cycles <= best->cycles))
                *best = b;
        }
    }
}

static void weigh_widths(const struct conv_extent *e, bool shared, struct conv_box *best)
{
    int64_t halo = shared ? e->halo : 0;

    for (int64_t use = 1; use <= e->out[2] && use + halo <= MOST_PIXELS; use++) {
        struct conv_box b = {.w = use + halo, .use = use, .shared = shared};

        if ((b.w - 1) * e->stride[2] >= MOST_PIXELS || (use < e->out[2] && use < LEAST_USED))
            continue;
        weigh_heights(e, b, best);
    }
}

/* Taps that share a box read less from L2, but some of its columns are not results. */
struct conv_box conv_box_of(const struct conv_extent *e)
{
    struct conv_box best = {.cycles = -1};
    int64_t x = e->batch * e->channels;

    for (int d = 0; d < 3; d++)
        x *= e->out[d] * e->stride[d];
    weigh_widths(e, e->taps_shared > 1, &best);
    if (e->taps_shared > 1 && e->results > 64 && x <= MOST_KEPT)
        weigh_widths(e, false, &best);
    return best;
}
