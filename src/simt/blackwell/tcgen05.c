/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcgen05.c - tcgen05.mma, tcgen05.cp and tcgen05.commit.
 *
 * One thread starts a product for its block, or for a pair of blocks of a cluster (cta_group::2).
 * Of a pair each block holds half of A's rows, half of B's columns, and the sums of its rows.
 *
 * Hides: instruction and matrix descriptors, where the rows of D and A are in tensor memory, how
 * scales lie there. Element e of a row in shared memory is at byte e * size of it, in rows of the
 * swizzle's width as wgmma has them; factors of four and six bits in bytes (kind::f8f6f4) come
 * sixteen to 16 bytes, packed at the beginning of them.
 *
 * Sums are formed in f32 in order of k.
 */
#include "base/float_bits.h"
#include "simt/blackwell/blackwell.h"

#include "simt/device/convert.h"
#include "simt/device/tensor_core.h"
#include "simt/hopper/tensor_map.h"

#include <string.h>

enum { MAX_ROWS = 128, MAX_N = 256, MAX_K = 64, SMEM_ADDRESSES = 1 << 18, CHUNK = 16 };

/* ---- descriptors ---- */

struct product {
    enum tc_kind kind;
    u32 m, n, k;        /* of the whole product */
    enum ptx_type a, b; /* PT_E2M1X2: packed by two */
    u32 bits_a, bits_b; /* of an element in shared memory, padding included */
    bool a_mn, b_mn, neg_a, neg_b, half, sat;
    u32 blocks, id_a, id_b; /* scales: of a row, and which bytes */
    bool ue4m3;
};

static enum ptx_type low_type(u32 format)
{
    static const enum ptx_type types[8] = {PT_E4M3, PT_E5M2, PT_NONE, PT_E2M3,
                                           PT_E3M2, PT_E2M1, PT_NONE, PT_NONE};
    return types[format];
}

static enum ptx_type factor_type(enum tc_kind kind, u32 format)
{
    switch (kind) {
    case TC_F16:
        return format == 0 ? PT_F16 : format == 1 ? PT_BF16 : PT_NONE;
    case TC_TF32:
        return format == 2 ? PT_TF32 : PT_NONE;
    case TC_I8:
        return format == 0 ? PT_U8 : format == 1 ? PT_S8 : PT_NONE;
    case TC_MXF4:
    case TC_MXF4NVF4:
        return format == 1 || format == 5 ? PT_E2M1X2 : PT_NONE;
    default:
        return low_type(format);
    }
}

static struct product product_of(u32 site_kind, u32 d)
{
    static const u32 ks[] = {16, 8, 32, 32, 32, 64, 64};
    enum tc_kind kind = (enum tc_kind)(site_kind >> TC_KIND_SHIFT & TC_KINDS);
    u32 scales = site_kind >> TC_SCALE_SHIFT & TC_SCALES;
    struct product p = {.kind = kind,
                        .m = (d >> 24 & 31) * 16,
                        .n = (d >> 17 & 63) * 8,
                        .k = ks[kind],
                        .a = factor_type(kind, d >> 7 & 7),
                        .b = factor_type(kind, d >> 10 & 7),
                        .neg_a = d >> 13 & 1,
                        .neg_b = d >> 14 & 1,
                        .a_mn = d >> 15 & 1,
                        .b_mn = d >> 16 & 1};
    p.bits_a = p.bits_b = 256 / p.k;
    if (scales) {
        p.blocks = 1u << (scales - 1);
        p.id_b = d >> 4 & 3;
        p.id_a = d >> 29 & 3;
        p.ue4m3 = !(d >> 23 & 1);
    } else {
        p.half = (d >> 4 & 3) == 0 && kind != TC_I8;
        p.sat = d >> 3 & 1;
    }
    return p;
}

/* What PTX allows; NULL: it does. */
static const char *product_wrong(const struct product *p, u32 d, bool pair)
{
    bool scaled = p->blocks > 0;
    u32 c = d >> 4 & 3;
    if (d & 4)
        return "says sparse, which this device does not know";
    if (p->a == PT_NONE || p->b == PT_NONE)
        return "names a type of factors that its kind does not have";
    if (pair ? p->m != 128 && p->m != 256 : p->m != 64 && p->m != 128)
        return pair ? "has an M that is not 128 or 256" : "has an M that is not 64 or 128";
    if (p->n < (pair ? 16u : 8u) || p->n > MAX_N || (p->m != 64 || pair ? p->n % 16 : p->n % 8))
        return "has an N that is not a multiple of 16 (of 8 with M 64) up to 256";
    if (!scaled && (p->kind == TC_I8 ? c != 2 : p->kind == TC_TF32 ? c != 1 : c > 1))
        return "names a type of sums that its kind does not have";
    if (scaled && p->ue4m3 && p->kind != TC_MXF4NVF4)
        return "names scales of a type that its kind does not have";
    if (scaled && (p->id_a + p->blocks > 4 || p->id_b + p->blocks > 4))
        return "selects bytes of scales past the word";
    return NULL;
}

struct tc_matrix {
    u32 start, lead, stride, span, bits; /* bytes; span: of a row of the swizzle */
    bool mn;
};

static struct tc_matrix matrix_of(u64 desc, bool mn)
{
    static const u8 bits[] = {0, 3, 2, 1};
    u32 mode = (u32)(desc >> 62);
    return (struct tc_matrix){.start = (u32)(desc & 0x3fff) << 4,
                              .lead = (u32)(desc >> 16 & 0x3fff) << 4,
                              .stride = (u32)(desc >> 32 & 0x3fff) << 4,
                              .bits = bits[mode],
                              .span = (u32)CHUNK << bits[mode],
                              .mn = mn};
}

/* Where the 16 bytes are that have byte `along` of line `line`: along K of a row, or along M or N
 * of a k. */
static u32 chunk_at(const struct tc_matrix *x, u32 line, u32 along)
{
    u32 at = x->start + (line & 7) * x->span, c = along / CHUNK;
    if (!x->mn)
        at += (line >> 3) * x->stride + (x->bits ? c * CHUNK : c * x->lead);
    else if (x->bits)
        at += (line >> 3) * x->stride + along % x->span / CHUNK * CHUNK + along / x->span * x->lead;
    else
        at += (line >> 3) * x->lead + c * x->stride;
    return swizzled(at & (SMEM_ADDRESSES - 1), x->bits);
}

/* ---- factors ---- */

struct tile {
    float value[MAX_N][MAX_K];
};

static float factor_at(enum ptx_type type, const u8 *chunk, u32 e)
{
    u32 word;
    u16 half;
    switch (type) {
    case PT_F16:
    case PT_BF16:
        memcpy(&half, chunk + 2 * e, 2);
        return type == PT_BF16
                   ? f32_of_bits((u32)half << 16)
                   : f32_of_bits((u32)convert_bits((u32)PT_F32 | (u32)PT_F16 << 8, half));
    case PT_TF32:
        memcpy(&word, chunk + 4 * e, 4);
        return f32_of_bits(word & 0xffffe000u);
    case PT_U8:
        return (float)chunk[e];
    case PT_S8:
        return (float)(signed char)chunk[e];
    case PT_E2M1X2:
        return low_value(type, (u32)chunk[e / 2] >> (4 * (e % 2)));
    case PT_E2M1: /* sixteen of four bits, then padding */
        return low_value(type, ((u32)chunk[e / 2] >> (4 * (e % 2)) & 15u) << 2);
    case PT_E2M3:
    case PT_E3M2:
        word = (u32)chunk[6 * e / 8] | (u32)chunk[6 * e / 8 + 1] << 8;
        return low_value(type, word >> (6 * e % 8));
    default:
        return low_value(type, chunk[e]);
    }
}

/* Keeps 16 bytes that asynchronous work reads until its commit is waited for. */
static void hold(struct warp *w, u32 lane, u32 site, struct blk *b, u32 at)
{
    struct warp_hopper *h = warp_hopper_of(w);
    proxy_read(w, lane, site, b, at, CHUNK);
    proxy_hold(w, b, at, CHUNK, site);
    if (h->tc_reads == h->tc_read_cap) {
        h->tc_read_cap = h->tc_read_cap ? h->tc_read_cap * 2 : 1024;
        h->tc_read = xrealloc(h->tc_read, h->tc_read_cap * sizeof *h->tc_read);
    }
    h->tc_read[h->tc_reads++] = (struct tc_read){b, at, site};
}

struct tc_operand {
    struct warp *w;
    u32 lane, site;
    struct blk *b;
    const char *name;
    enum ptx_type type;
    u32 bits;
};

static bool chunk_inside(const struct tc_operand *o, u32 at, const struct tc_matrix *x)
{
    if (at + CHUNK <= o->b->b.smem_bytes)
        return true;
    finding_add(&(struct finding_where){o->w, o->lane, o->site}, SIMT_OUT_OF_BOUNDS, at, NULL, -1,
                -1, -1,
                "the descriptor of %s reaches offset %u of shared memory, which has %u (start %u, "
                "leading %u, stride %u)",
                o->name, at, o->b->b.smem_bytes, x->start, x->lead, x->stride);
    return false;
}

/* `rows` of M or N and k factors each into rows of the tile from `first` on. */
static bool fetch(const struct tc_operand *o, u64 desc, bool mn, u32 rows, u32 k, struct tile *out,
                  u32 first)
{
    struct tc_matrix x = matrix_of(desc, mn);
    u32 per = 8 * CHUNK / o->bits, lines = mn ? k : rows, along = mn ? rows : k;
    if ((desc >> 61 & 7) % 2) {
        finding_add(&(struct finding_where){o->w, o->lane, o->site}, SIMT_TENSOR_MEMORY, 0, NULL,
                    -1, -1, -1,
                    "the descriptor of %s names a layout that this device does not know", o->name);
        return false;
    }
    for (u32 l = 0; l < lines; l++)
        for (u32 e = 0; e < along; e += per) {
            u32 at = chunk_at(&x, l, e * o->bits / 8);
            if (!chunk_inside(o, at, &x))
                return false;
            if (o->w->blk->cell)
                hold(o->w, o->lane, o->site, o->b, at);
            for (u32 i = 0; i < per && e + i < along; i++)
                out->value[first + (mn ? e + i : l)][mn ? l : e + i] =
                    factor_at(o->type, o->b->b.smem + at, i);
        }
    return true;
}

/* ---- where rows are in tensor memory ---- */

/* Lane and column of element (row, n) of the part of D, or of A, that a block has. */
static void place_of(const struct product *p, bool pair, u32 row, u32 n, u32 *lane, u32 *column)
{
    *lane = row;
    *column = n;
    if (!pair && p->m == 64)
        *lane = row / 16 * 32 + row % 16;
    else if (pair && p->m == 128 && n >= p->n / 2) {
        *lane = row + 64;
        *column = n - p->n / 2;
    }
}

static void lanes_of_rows(const struct product *p, bool pair, u32 lanes[TM_QUARTERS])
{
    for (u32 q = 0; q < TM_QUARTERS; q++)
        lanes[q] = !pair && p->m == 64 ? 0xffffu : ~0u;
}

static bool fetch_memory(const struct tc_operand *o, const struct product *p, u32 address, u32 rows,
                         struct tile *out)
{
    struct tensor_memory *t = tensor_memory_of(o->b);
    u32 per = 32 / o->bits, columns = p->k / per, first = address & 0xffff, lanes[TM_QUARTERS];
    if (o->type == PT_E2M1 || o->type == PT_E2M3 || o->type == PT_E3M2) {
        finding_add(&(struct finding_where){o->w, o->lane, o->site}, SIMT_TENSOR_MEMORY, first,
                    NULL, -1, -1, -1,
                    "takes A of four or six bits from tensor memory: this device does not know how "
                    "they lie there");
        return false;
    }
    lanes_of_rows(p, false, lanes);
    if (!tm_async_read(o->w, o->lane, o->site, t, lanes, first, columns, "reads A from"))
        return false;
    for (u32 r = 0; r < rows; r++) {
        u32 lane, column;
        u8 bytes[CHUNK];
        place_of(p, false, r, 0, &lane, &column);
        for (u32 c = 0; c < columns; c++) {
            memcpy(bytes, &t->word[lane][first + c], 4);
            for (u32 e = 0; e < per; e++)
                out->value[r][c * per + e] = factor_at(o->type, bytes, e);
        }
    }
    return true;
}

/* ---- scales ---- */

/* Row r has a word in lane r % 32 of column r / 32, in each quarter of the lanes. */
static bool fetch_scales(struct warp *w, u32 lane, u32 site, struct blk *b, u32 address, u32 rows,
                         u32 id, const struct product *p, float (*out)[4], const char *name)
{
    static const u32 all[TM_QUARTERS] = {~0u, ~0u, ~0u, ~0u};
    struct tensor_memory *t = tensor_memory_of(b);
    u32 first = address & 0xffff, columns = (rows + 31) / 32;
    if (!tm_async_read(w, lane, site, t, all, first, columns, name))
        return false;
    for (u32 r = 0; r < rows; r++)
        for (u32 n = 0; n < p->blocks; n++)
            out[r][n] = low_value(p->ue4m3 ? PT_UE4M3 : PT_UE8M0,
                                  t->word[r % 32][first + r / 32] >> (8 * (id + n)));
    return true;
}

/* ---- the product ---- */

struct tc_work {
    struct tile a, b;
    float turned[MAX_K][MAX_N], scale_a[MAX_ROWS][4], scale_b[MAX_N][4];
};

static void turn(struct tc_work *x, const struct product *p)
{
    bool negate = p->neg_a != p->neg_b;
    for (u32 n = 0; n < p->n; n++)
        for (u32 k = 0; k < p->k; k++)
            x->turned[k][n] = negate ? -x->b.value[n][k] : x->b.value[n][k];
}

/* Sums of one row and one block of k. */
static HOT void row_sums(const struct tc_work *x, u32 row, u32 n, u32 from, u32 to,
                         float *restrict sum)
{
    for (u32 k = from; k < to; k++) {
        const float a = x->a.value[row][k], *restrict b = x->turned[k];
        for (u32 i = 0; i < n; i++)
            sum[i] += a * b[i];
    }
}

static void row_ints(const struct tc_work *x, const struct product *p, u32 row, u32 *sum)
{
    for (u32 n = 0; n < p->n; n++) {
        s64 s = (s32)sum[n];
        for (u32 k = 0; k < p->k; k++)
            s += (s64)x->a.value[row][k] * (s64)x->turned[k][n];
        if (p->sat)
            s = s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : s;
        sum[n] = (u32)s;
    }
}

static void row_product(const struct tc_work *x, const struct product *p, u32 row, float *sum)
{
    float part[MAX_N];
    if (!p->blocks) {
        row_sums(x, row, p->n, 0, p->k, sum);
        return;
    }
    for (u32 b = 0; b < p->blocks; b++) {
        u32 size = p->k / p->blocks;
        memset(part, 0, sizeof part);
        row_sums(x, row, p->n, b * size, (b + 1) * size, part);
        for (u32 n = 0; n < p->n; n++)
            sum[n] = (float)((double)sum[n] + (double)part[n] * (double)x->scale_a[row][b] *
                                                  (double)x->scale_b[n][b]);
    }
}

/* D of one block: its rows of the product, onto what is there or instead of it. */
static void add_rows(const struct tc_work *x, const struct product *p, bool pair,
                     struct tensor_memory *t, u32 address, u32 rows, bool accumulate)
{
    union {
        float f[MAX_N];
        u32 i[MAX_N];
    } sum;
    for (u32 r = 0; r < rows; r++) {
        u32 lane, column;
        for (u32 n = 0; n < p->n; n++) {
            place_of(p, pair, r, n, &lane, &column);
            u32 word = t->word[lane][(address & 0xffff) + column];
            sum.i[n] = !accumulate ? 0
                       : p->half ? (u32)convert_bits((u32)PT_F32 | (u32)PT_F16 << 8, word & 0xffff)
                                 : word;
        }
        if (p->kind == TC_I8)
            row_ints(x, p, r, sum.i);
        else
            row_product(x, p, r, sum.f);
        for (u32 n = 0; n < p->n; n++) {
            place_of(p, pair, r, n, &lane, &column);
            t->word[lane][(address & 0xffff) + column] =
                p->half ? (u32)convert_bits((u32)PT_F16 | (u32)PT_F32 << 8, sum.i[n]) : sum.i[n];
        }
    }
}

static struct blk *other_of(struct warp *w, u32 lane, u32 site)
{
    struct cluster *c = w->blk->cluster;
    u32 rank = w->blk->b.cl_rank;
    if (c && c->size > (rank ^ 1) && !(rank & 1))
        return c->blk[rank ^ 1];
    finding_add(
        &(struct finding_where){w, lane, site}, SIMT_CLUSTER, 0, NULL, -1, -1, -1,
        "cta_group::2 is for a pair of blocks of a cluster, and the even one starts it; this "
        "is block %u of %u",
        rank, c ? c->size : 1);
    return NULL;
}

static void count_flops(struct warp *w, const struct product *p)
{
    uint64_t flops = 2u * (uint64_t)p->m * p->n * p->k;
    enum simt_tensor_type type = p->kind == TC_F16
                                     ? (p->a == PT_BF16 ? SIMT_TENSOR_BF16 : SIMT_TENSOR_F16)
                                 : p->kind == TC_TF32 ? SIMT_TENSOR_TF32
                                 : p->kind == TC_I8   ? SIMT_TENSOR_INT
                                 : p->k == 64         ? SIMT_TENSOR_F4
                                                      : SIMT_TENSOR_F8;
    w->t->n.tensor_flops += flops;
    w->t->n.tensor_flops_of[type] += flops;
    w->t->n.wgmma_flops += flops;
}

/* One block's factors and sums. side: 0, or 1 for the second of a pair. */
static bool block_product(struct warp *w, u32 lane, u32 site, const struct sw_tc *x,
                          const struct product *p, struct blk *b, struct tc_work *work)
{
    u32 kind = site_of(w, site)->kind, lanes[TM_QUARTERS], address = (u32)x->x[0][lane];
    bool pair = kind & TC_PAIR, accumulate = x->pred >> lane & 1;
    u32 rows = pair ? p->m / 2 : p->m, columns = pair && p->m == 128 ? p->n / 2 : p->n;
    struct tc_operand a = {w, lane, site, b, "A", p->a, p->bits_a};
    bool ok = kind & TC_A_MEMORY ? fetch_memory(&a, p, (u32)x->x[1][lane], rows, &work->a)
                                 : fetch(&a, x->x[1][lane], p->a_mn, rows, p->k, &work->a, 0);
    if (ok && p->blocks)
        ok = fetch_scales(w, lane, site, b, (u32)x->x[4][lane], rows, p->id_a, p, work->scale_a,
                          "reads scales of A from") &&
             fetch_scales(w, lane, site, b, (u32)x->x[5][lane], p->n, p->id_b, p, work->scale_b,
                          "reads scales of B from");
    lanes_of_rows(p, pair, lanes);
    struct tensor_memory *t = tensor_memory_of(b);
    if (!ok || !tm_async_write(w, lane, site, t, lanes, address & 0xffff, columns, accumulate))
        return false;
    add_rows(work, p, pair, t, address, rows, accumulate);
    return true;
}

void tc_mma(struct warp *w, u32 lane, u32 site, const struct sw_tc *x)
{
    u32 kind = site_of(w, site)->kind, d = (u32)x->x[3][lane];
    bool pair = kind & TC_PAIR;
    struct product p = product_of(kind, d);
    const char *wrong = product_wrong(&p, d, pair);
    struct blk *blocks[2] = {w->blk, NULL};
    struct tc_work *work = w->t->tcgen05_work;
    if (wrong) {
        finding_add(&(struct finding_where){w, lane, site}, SIMT_TENSOR_MEMORY, d, NULL, -1, -1, -1,
                    "the instruction descriptor 0x%08x %s", d, wrong);
        return;
    }
    if (x->masked) {
        finding_add(&(struct finding_where){w, lane, site}, SIMT_TENSOR_MEMORY, 0, NULL, -1, -1, -1,
                    "masks lanes of D, which this device does not know");
        return;
    }
    if (pair && !(blocks[1] = other_of(w, lane, site)))
        return;
    if (!work)
        work = w->t->tcgen05_work = xmalloc(sizeof *work);
    count_flops(w, &p);
    for (u32 i = 0; i < (pair ? 2u : 1u); i++) {
        struct tc_operand b = {w, lane, site, blocks[i], "B", p.b, p.bits_b};
        u32 n = pair ? p.n / 2 : p.n;
        if (!fetch(&b, x->x[2][lane], p.b_mn, n, p.k, &work->b, i * n))
            return;
    }
    turn(work, &p);
    for (u32 i = 0; i < (pair ? 2u : 1u); i++)
        if (!block_product(w, lane, site, x, &p, blocks[i], work))
            return;
}

/* ---- copies ---- */

static const struct copy_form {
    u32 rows, bytes;
    u8 quarters[TM_QUARTERS]; /* which 32 rows each quarter of the lanes gets */
} copy_forms[] = {[TC_128X256] = {128, 32, {0, 1, 2, 3}},  [TC_4X256] = {4, 32, {0, 0, 0, 0}},
                  [TC_128X128] = {128, 16, {0, 1, 2, 3}},  [TC_64X128_02] = {64, 16, {0, 1, 0, 1}},
                  [TC_64X128_01] = {64, 16, {0, 0, 1, 1}}, [TC_32X128] = {32, 16, {0, 0, 0, 0}}};

static void copy_block(struct warp *w, u32 lane, u32 site, struct blk *b, u32 address, u64 desc,
                       const struct copy_form *f)
{
    struct tc_operand o = {w, lane, site, b, "the copy", PT_U8, 8};
    struct tensor_memory *t = tensor_memory_of(b);
    struct tc_matrix x = matrix_of(desc, false);
    u32 first = address & 0xffff, lanes[TM_QUARTERS];
    for (u32 q = 0; q < TM_QUARTERS; q++)
        lanes[q] = f->rows == 4 ? 1u : ~0u;
    if (!tm_async_write(w, lane, site, t, lanes, first, f->bytes / 4, false))
        return;
    for (u32 r = 0; r < f->rows; r++)
        for (u32 c = 0; c < f->bytes; c += CHUNK) {
            u32 at = chunk_at(&x, r, c);
            if (!chunk_inside(&o, at, &x))
                return;
            if (w->blk->cell)
                hold(w, lane, site, b, at);
            for (u32 q = 0; q < TM_QUARTERS; q++) {
                if (f->rows == 4 ? q != r : f->quarters[q] != r / 32)
                    continue;
                u32 row = f->rows == 4 ? 32 * q : 32 * q + r % 32;
                memcpy(&t->word[row][first + c / 4], b->b.smem + at, CHUNK);
            }
        }
}

void tc_copy(struct warp *w, u32 lane, u32 site, const struct sw_tc *x)
{
    u32 kind = site_of(w, site)->kind;
    const struct copy_form *f = &copy_forms[kind >> TC_KIND_SHIFT & TC_KINDS];
    struct blk *other = kind & TC_PAIR ? other_of(w, lane, site) : NULL;
    if (kind & TC_PAIR && !other)
        return;
    copy_block(w, lane, site, w->blk, (u32)x->x[0][lane], x->x[1][lane], f);
    if (other)
        copy_block(w, lane, site, other, (u32)x->x[0][lane], x->x[1][lane], f);
}

/* ---- shift ---- */

/* 32 bytes of each lane go to the next one; the first lane keeps its own. */
static void shift_block(struct warp *w, u32 lane, u32 site, struct blk *b, u32 address)
{
    enum { COLUMNS = 8 };
    static const u32 all[TM_QUARTERS] = {~0u, ~0u, ~0u, ~0u};
    struct tensor_memory *t = tensor_memory_of(b);
    u32 first = address & 0xffff, from = address >> 16;
    if (from % 32 || from >= TM_LANES) {
        finding_add(&(struct finding_where){w, lane, site}, SIMT_TENSOR_MEMORY, from, NULL, -1, -1,
                    -1, "lane %u of tensor memory: a shift begins at lane 0, 32, 64 or 96", from);
        return;
    }
    if (!tm_async_write(w, lane, site, t, all, first, COLUMNS, true))
        return;
    for (u32 r = TM_LANES - 1; r > from; r--)
        memcpy(&t->word[r][first], &t->word[r - 1][first], COLUMNS * sizeof(u32));
}

void tc_shift(struct warp *w, u32 lane, u32 site, const struct sw_tc *x)
{
    bool pair = site_of(w, site)->kind & TC_PAIR;
    struct blk *other = pair ? other_of(w, lane, site) : NULL;
    if (pair && !other)
        return;
    shift_block(w, lane, site, w->blk, (u32)x->x[0][lane]);
    if (other)
        shift_block(w, lane, site, other, (u32)x->x[0][lane]);
}

/* ---- commit ---- */

/* What the warp's work has read may be overwritten by who knows of the commit. */
static void release_reads(struct warp *w)
{
    struct warp_hopper *h = warp_hopper_of(w);
    for (size_t i = 0; i < h->tc_reads; i++) {
        const struct tc_read *r = &h->tc_read[i];
        proxy_release_tensor(r->b, r->at, r->site, tensor_memory_of(r->b)->time);
    }
    h->tc_reads = 0;
}

void tc_commit(struct warp *w, u32 lane, u32 site, const struct sw_tc *x)
{
    u32 kind = site_of(w, site)->kind;
    struct place p;
    struct cluster *c = w->blk->cluster;
    if (!place_find(w, lane, site, kind & TC_GENERIC, x->x[0][lane], 8, 8, true, &p))
        return;
    release_reads(w);
    if (!(kind & TC_MULTICAST)) {
        mbar_commit(w, lane, site, p, tensor_memory_of(p.b)->time++);
        return;
    }
    u32 mask = (u32)x->x[1][lane] & 0xffff;
    if (!c && mask != 1) {
        finding_add(&(struct finding_where){w, lane, site}, SIMT_CLUSTER, mask, NULL, -1, -1, -1,
                    "the mask 0x%x names blocks, and this one is in no cluster", mask);
        return;
    }
    for (u32 i = 0; i < (c ? c->size : 1); i++)
        if (mask >> i & 1) {
            p.b = c ? c->blk[i] : w->blk;
            mbar_commit(w, lane, site, p, tensor_memory_of(p.b)->time++);
        }
}
