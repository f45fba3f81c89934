/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_core.c - matrix instructions: fragments spread over the lanes of a warp
 * are gathered, multiplied as plain matrices and spread again.
 *
 * Products are exact in the accumulator's arithmetic (f32 for 16-bit and
 * smaller floats, f64, s32) and summed in order of k onto the accumulator.
 */
#include "base/float_bits.h"
#include "simt/device/device.h"

#include "simt/device/convert.h"
#include "simt/device/matrix8x8.h"
#include "simt/device/mma_half.h"
#include "simt/device/tensor_core.h"
#include "simt/ptx/call_kinds.h"
#include "simt/ptx/mma_shapes.h"

#include <string.h>

static float half_float(u32 h)
{
    u32 s = (h & 0x8000u) << 16, e = h >> 10 & 31, f = h & 1023;
    if (e == 31)
        return f32_of_bits(s | 0x7f800000u | f << 13);
    if (e)
        return f32_of_bits(s | (e + 112) << 23 | f << 13);
    float r = (float)f * 0x1p-24f;
    return s ? -r : r;
}

/* ---- one element of a register ---- */

static unsigned per_reg(enum ptx_type t)
{
    unsigned bytes = ptx_type_bytes(t);
    if (t == PT_B1)
        return 32;
    if (t == PT_S4 || t == PT_U4)
        return 8;
    return bytes >= 4 ? 1 : 4 / bytes;
}

static u32 element_bits(enum ptx_type t, u32 word, unsigned i)
{
    unsigned per = per_reg(t);
    return per == 1 ? word : word >> (32 / per * i) & ((1u << (32 / per)) - 1);
}

static float element_float(enum ptx_type t, u32 word, unsigned i)
{
    switch (t) {
    case PT_F16:
        return half_float(word >> (16 * i) & 0xffff);
    case PT_BF16:
        return f32_of_bits((word >> (16 * i) & 0xffff) << 16);
    case PT_TF32:
        return f32_of_bits(word & 0xffffe000u);
    case PT_E4M3:
    case PT_E5M2:
        return f32_of_bits((u32)convert_bits((u32)PT_F32 | (u32)t << 8, word >> (8 * i) & 0xff));
    default:
        return f32_of_bits(word);
    }
}

static s32 element_int(enum ptx_type t, u32 word, unsigned i)
{
    u32 b = element_bits(t, word, i);
    return t == PT_S8 ? (s32)(signed char)b : t == PT_S4 ? (s32)(b ^ 8) - 8 : (s32)b;
}

/* Row and column of element e (within the lane) of the A, B or C fragment. */
static void place_a(const struct mma_shape *s, u32 lane, unsigned e, unsigned *row, unsigned *col)
{
    unsigned per = per_reg(s->a), reg = e / per, in = e % per, g = lane >> 2, t = lane & 3;
    unsigned rows = s->m == 16 ? 2 : 1;
    *row = g + 8 * (reg % rows);
    *col = t * per + in + 4 * per * (reg / rows);
}

static void place_b(const struct mma_shape *s, u32 lane, unsigned e, unsigned *k, unsigned *n)
{
    unsigned per = per_reg(s->b), reg = e / per, in = e % per, g = lane >> 2, t = lane & 3;
    *k = t * per + in + 4 * per * reg;
    *n = g;
}

static void place_c(u32 lane, unsigned e, unsigned *row, unsigned *col)
{
    *row = (lane >> 2) + 8 * (e / 2);
    *col = (lane & 3) * 2 + e % 2;
}

/* ---- floats ---- */

static float c_in(const struct mma_shape *s, const void *const *c, u32 lane, unsigned e)
{
    if (s->c == PT_F16)
        return half_float(((const u32 *)c[e / 2])[lane] >> (16 * (e % 2)) & 0xffff);
    return f32_of_bits(((const u32 *)c[e])[lane]);
}

static void c_out(const struct mma_shape *s, void *const *d, u32 lane, unsigned e, u32 bits)
{
    if (s->d == PT_F16) {
        u32 *p = (u32 *)d[e / 2] + lane, shift = 16 * (e % 2);
        *p = (*p & ~(0xffffu << shift)) | bits << shift;
        return;
    }
    ((u32 *)d[e])[lane] = bits;
}

/* One element of the product, as bits: of k factors in a row. */
static u32 float_sum(const struct mma_shape *s, bool exact, const u32 *a, const u32 *b, float c)
{
    if (exact && s->op == MMA_QUADS) {
        double x = (double)c;
        for (int k = 0; k < s->k; k++)
            x += (double)element_float(s->a, a[k], 0) * (double)element_float(s->b, b[k], 0);
        c = (float)x;
    } else if (exact) {
        return tensor_exact(s, a, b, bits_of_f32(c));
    } else {
        for (int k = 0; k < s->k; k++)
            c += element_float(s->a, a[k], 0) * element_float(s->b, b[k], 0);
    }
    return s->d == PT_F16 ? half_of_f32(c) : bits_of_f32(c);
}

static void mma_float(const struct mma_shape *s, bool exact, void *const *d, const void *const *a,
                      const void *const *b, const void *const *c)
{
    u32 A[16][32], B[8][32];
    float C[WARP][4];
    unsigned row, col, pa = per_reg(s->a), pb = per_reg(s->b), nc = s->m == 16 ? 4 : 2;
    for (u32 lane = 0; lane < WARP; lane++) {
        for (unsigned e = 0; e < (unsigned)s->a_regs * pa; e++) {
            place_a(s, lane, e, &row, &col);
            A[row][col] = element_bits(s->a, ((const u32 *)a[e / pa])[lane], e % pa);
        }
        for (unsigned e = 0; e < (unsigned)s->b_regs * pb; e++) {
            place_b(s, lane, e, &row, &col);
            B[col][row] = element_bits(s->b, ((const u32 *)b[e / pb])[lane], e % pb);
        }
        for (unsigned e = 0; e < nc; e++)
            C[lane][e] = c_in(s, c, lane, e);
    }
    for (u32 lane = 0; lane < WARP; lane++)
        for (unsigned e = 0; e < nc; e++) {
            place_c(lane, e, &row, &col);
            c_out(s, d, lane, e, float_sum(s, exact, A[row], B[col], C[lane][e]));
        }
}

/* m8n8k4 of sm_70: lanes 4q..4q+3 and 16 more hold the rows of product q. */
static void mma_quads(const struct mma_shape *s, u32 kind, bool exact, void *const *d,
                      const void *const *a, const void *const *b, const void *const *c)
{
    for (u32 q = 0; q < 4; q++) {
        u32 A[8][4], B[8][4];
        float C[WARP][8];
        for (u32 i = 0; i < 8; i++) {
            u32 lane = 4 * q + (i & 3) + (i & 4) * 4, upper = i & 4;
            for (u32 e = 0; e < 4; e++) {
                u32 x = element_bits(PT_F16, ((const u32 *)a[e / 2])[lane], e % 2),
                    y = element_bits(PT_F16, ((const u32 *)b[e / 2])[lane], e % 2);
                if (kind & MMA_ROW_A)
                    A[i][e] = x;
                else
                    A[e + upper][i & 3] = x;
                if (kind & MMA_COL_B)
                    B[i][e] = y;
                else
                    B[e + upper][i & 3] = y;
            }
            for (u32 e = 0; e < 8; e++)
                C[lane][e] = c_in(s, c, lane, e);
        }
        for (u32 i = 0; i < 8; i++) {
            u32 lane = 4 * q + (i & 3) + (i & 4) * 4, upper = i & 4;
            for (u32 e = 0; e < 8; e++) {
                u32 row = s->d == PT_F16 ? i : (lane & 1) + (e & 2) + upper;
                u32 col = s->d == PT_F16 ? e : (e & 4) + (lane & 2) + (e & 1);
                c_out(s, d, lane, e, float_sum(s, exact, A[row], B[col], C[lane][e]));
            }
        }
    }
}

/* The sum as the hardware keeps it: saturated, or modulo 2^32. */
static u32 int_result(s64 x, bool sat)
{
    if (sat)
        x = x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : x;
    return (u32)x;
}

static void mma_int(const struct mma_shape *s, bool sat, void *const *d, const void *const *a,
                    const void *const *b, const void *const *c)
{
    s16 A[16][256], B[8][256];
    u32 C[4][WARP];
    unsigned row, col, nc = s->m == 16 ? 4 : 2, pa = per_reg(s->a), pb = per_reg(s->b);
    for (u32 lane = 0; lane < WARP; lane++) {
        for (unsigned e = 0; e < pa * (unsigned)s->a_regs; e++) {
            place_a(s, lane, e, &row, &col);
            A[row][col] = (s16)element_int(s->a, ((const u32 *)a[e / pa])[lane], e % pa);
        }
        for (unsigned e = 0; e < pb * (unsigned)s->b_regs; e++) {
            place_b(s, lane, e, &row, &col);
            B[col][row] = (s16)element_int(s->b, ((const u32 *)b[e / pb])[lane], e % pb);
        }
    }
    for (unsigned e = 0; e < nc; e++) /* d may be c in another order */
        memcpy(C[e], c[e], sizeof C[e]);
    for (u32 lane = 0; lane < WARP; lane++)
        for (unsigned e = 0; e < nc; e++) {
            place_c(lane, e, &row, &col);
            s32 sum = 0;
            for (int k = 0; k < s->k; k++)
                sum += s->op == MMA_XOR   ? A[row][k] ^ B[col][k]
                       : s->op == MMA_AND ? A[row][k] & B[col][k]
                                          : A[row][k] * B[col][k];
            ((u32 *)d[e])[lane] = int_result((s64)sum + (s32)C[e][lane], sat);
        }
}

static void mma_double(const struct mma_shape *s, void *const *d, const void *const *a,
                       const void *const *b, const void *const *c)
{
    double A[16][16], B[16][8], C[16][8];
    unsigned row, col, nc = s->m == 16 ? 4 : 2;
    for (u32 lane = 0; lane < WARP; lane++) {
        for (unsigned e = 0; e < (unsigned)s->a_regs; e++) {
            place_a(s, lane, e, &row, &col);
            A[row][col] = ((const double *)a[e])[lane];
        }
        for (unsigned e = 0; e < (unsigned)s->b_regs; e++) {
            place_b(s, lane, e, &row, &col);
            B[row][col] = ((const double *)b[e])[lane];
        }
        for (unsigned e = 0; e < nc; e++) {
            place_c(lane, e, &row, &col);
            C[row][col] = ((const double *)c[e])[lane];
        }
    }
    for (int i = 0; i < s->m; i++)
        for (int j = 0; j < 8; j++)
            for (int k = 0; k < s->k; k++)
                C[i][j] = __builtin_fma(A[i][k], B[k][j], C[i][j]);
    for (u32 lane = 0; lane < WARP; lane++)
        for (unsigned e = 0; e < nc; e++) {
            place_c(lane, e, &row, &col);
            ((double *)d[e])[lane] = C[row][col];
        }
}

/* ---- wmma: element i of lane l is element (l * n + i) of the matrix, wrapped ---- */

static unsigned wmma_elements(enum ptx_type t, int regs)
{
    return (unsigned)regs * per_reg(t);
}

/* The bits of element i of a fragment. */
static u32 wmma_get(enum ptx_type t, const void *const *regs, unsigned n, unsigned i)
{
    unsigned lane = i / n, e = i % n, per = per_reg(t);
    return element_bits(t, ((const u32 *)regs[e / per])[lane], e % per);
}

struct wmma_use {
    const struct mma_shape *s;
    const void *const *a, *const *b, *const *c;
    unsigned na, nb, nc;
    bool sat, exact;
};

static u32 wmma_element(const struct wmma_use *u, unsigned i, unsigned j)
{
    const struct mma_shape *s = u->s;
    unsigned n = (unsigned)s->n, kk = (unsigned)s->k;
    u32 a[32], b[32], c = wmma_get(s->c, u->c, u->nc, i * n + j);
    for (unsigned k = 0; k < kk; k++) {
        a[k] = wmma_get(s->a, u->a, u->na, i * kk + k);
        b[k] = wmma_get(s->b, u->b, u->nb, k * n + j);
    }
    if (s->c == PT_S32) {
        s64 x = (s32)c;
        for (unsigned k = 0; k < kk; k++)
            x += element_int(s->a, a[k], 0) * element_int(s->b, b[k], 0);
        return int_result(x, u->sat);
    }
    return float_sum(s, u->exact, a, b, element_float(s->c, c, 0));
}

static void wmma_mul(const struct wmma_use *u, void *const *d)
{
    const struct mma_shape *s = u->s;
    unsigned n = (unsigned)s->n, nd = wmma_elements(s->d, s->d_regs), per = per_reg(s->d);
    u32 out[8][WARP] = {{0}};
    for (unsigned i = 0; i < (unsigned)s->m; i++)
        for (unsigned j = 0; j < n; j++) {
            unsigned at = i * n + j, lane = at / nd, e = at % nd;
            out[e / per][lane] |= wmma_element(u, i, j) << (32 / per * (e % per));
        }
    for (int r = 0; r < s->d_regs; r++)
        memcpy(d[r], out[r], sizeof out[r]);
}

static void wmma_double(const struct mma_shape *s, void *const *d, const void *const *a,
                        const void *const *b, const void *const *c)
{
    double out[2][WARP];
    for (u32 at = 0; at < 64; at++) {
        u32 i = at / 8, j = at % 8;
        double x = ((const double *)c[at % 2])[at / 2];
        for (u32 k = 0; k < 4; k++)
            x = __builtin_fma(((const double *)a[0])[i * 4 + k], ((const double *)b[0])[k * 8 + j],
                              x);
        out[at % 2][at / 2] = x;
    }
    for (int r = 0; r < s->d_regs; r++)
        memcpy(d[r], out[r], sizeof out[r]);
}

enum simt_tensor_type mma_type(uint32_t kind, uint64_t *flops)
{
    const struct mma_shape *s = mma_row(kind);
    *flops = 2u * (uint64_t)s->m * (uint64_t)s->n * (uint64_t)s->k;
    switch (s->a) {
    case PT_F16:
        return SIMT_TENSOR_F16;
    case PT_BF16:
        return SIMT_TENSOR_BF16;
    case PT_TF32:
        return SIMT_TENSOR_TF32;
    case PT_E4M3:
    case PT_E5M2:
    case PT_E3M2:
    case PT_E2M3:
    case PT_E2M1:
        return SIMT_TENSOR_F8;
    case PT_E2M1X2:
        return SIMT_TENSOR_F4;
    case PT_F64:
        return SIMT_TENSOR_F64;
    default:
        return SIMT_TENSOR_INT;
    }
}

/* Registers of an instruction: d, a, b, c, one after the other. */
static void mma_any(const struct mma_shape *s, u32 kind, bool exact, void *const *d)
{
    const void *const *a = (const void *const *)d + s->d_regs, *const *b = a + s->a_regs,
                      *const *c = b + s->b_regs;
    bool sat = kind & MMA_SAT;
    if (kind & MMA_WMMA && s->c == PT_F64) {
        wmma_double(s, d, a, b, c);
    } else if (kind & MMA_WMMA) {
        struct wmma_use u = {s,
                             a,
                             b,
                             c,
                             wmma_elements(s->a, s->a_regs),
                             wmma_elements(s->b, s->b_regs),
                             wmma_elements(s->c, s->c_regs),
                             sat,
                             exact};
        wmma_mul(&u, d);
    } else if (s->c == PT_S32) {
        mma_int(s, sat, d, a, b, c);
    } else if (s->c == PT_F64) {
        mma_double(s, d, a, b, c);
    } else if (s->op == MMA_QUADS) {
        mma_quads(s, kind, exact, d, a, b, c);
    } else {
        mma_float(s, exact, d, a, b, c);
    }
}

void dev_mma(struct sw_warp *sw, u32 site)
{
    uint64_t flops;
    struct warp *w = warp_of(sw);
    const struct sw_site *at = site_of(w, site);
    u32 kind = at->kind;
    const struct mma_shape *s = mma_row(kind);
    void *regs[64];
    u32 count = (u32)(s->d_regs + s->a_regs + s->b_regs + s->c_regs);
    if (kind >> MMA_SCALE_SHIFT & MMA_SCALES)
        count += MMA_SCALE_REGS;
    regs_lanes(w, at, 0, count, regs);
    clock_tick(w);
    enum simt_tensor_type type = mma_type(kind, &flops);
    w->t->n.tensor_flops_of[type] += flops;
    bool exact = w->t->l->dev->config.exact_mma, half = s->a == PT_F16 || s->a == PT_BF16;
    if (half && s->op == MMA_MUL && s->c == PT_F32 && !exact) {
        const void *const *a = (const void *const *)regs + 4, *const *b = a + s->a_regs;
        mma_half(regs, a, b, b + s->b_regs, s->k, s->a == PT_BF16);
    } else if (s->op == MMA_LOW) {
        mma_low(s, kind, regs);
    } else {
        mma_any(s, kind, exact, regs);
    }
}

void dev_wmma(struct sw_warp *sw, u32 m, u64 base, u32 stride, u32 site)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    const struct mma_shape *shape = mma_row(s->kind);
    u32 part = s->kind >> WMMA_PART_SHIFT & WMMA_PARTS, rows, cols, bytes = s->esize;
    bool store = s->flags & SW_STRONG, row_major = s->kind & MMA_ROW_A;
    const enum ptx_type types[] = {shape->a, shape->b, shape->c, shape->d};
    const int counts[] = {shape->a_regs, shape->b_regs, shape->c_regs, shape->d_regs};
    enum ptx_type t = types[part];
    int nregs = counts[part];
    rows = (u32)(part == WMMA_B ? shape->k : shape->m);
    cols = (u32)(part == WMMA_A ? shape->k : shape->n);
    unsigned n = wmma_elements(t, nregs), per = per_reg(t);
    if (!stride)
        stride = row_major ? cols : rows;
    void *regs[16];
    regs_lanes(w, s, 0, (u32)nregs, regs);
    /* Per element of the lane, one request of 32 lanes. */
    for (unsigned e = 0; e < n; e++) {
        u64 at[WARP];
        uint64_t host[WARP];
        u32 lanes = m;
        enum sw_space space;
        unsigned index[WARP];
        for (u32 l = 0; l < WARP; l++) {
            unsigned i = (l * n + e) % (rows * cols), r = i / cols, c = i % cols;
            index[l] = l * n + e;
            at[l] = base + (u64)(row_major ? r * stride + c : c * stride + r) * bytes;
            if (store && index[l] >= rows * cols)
                lanes &= ~(1u << l);
        }
        lanes_resolve(w, &lanes, at, site, bytes, store, host, &space);
        if (w->blk->cell && space == SW_SHARED)
            race_access(w, lanes, host, bytes, site, store);
        else if (w->t->l->dev->config.check == SIMT_CHECK_FULL && lanes &&
                 (space == SW_GLOBAL || space == SW_GENERIC))
            shadow_global(w, lanes, host, bytes, site, store);
        for (u32 left = lanes; left; left &= left - 1) {
            u32 l = (u32)__builtin_ctz(left), shift = 8 * bytes * (e % per);
            void *p = (void *)(uintptr_t)host[l];
            if (bytes == 8) {
                if (store)
                    memcpy(p, (u64 *)regs[e] + l, 8);
                else
                    memcpy((u64 *)regs[e] + l, p, 8);
                continue;
            }
            u32 *word = (u32 *)regs[e / per] + l, x = 0,
                mask = bytes == 4 ? ~0u : ((1u << (8 * bytes)) - 1) << shift;
            if (store) {
                x = *word >> shift;
                memcpy(p, &x, bytes);
            } else {
                memcpy(&x, p, bytes);
                *word = (*word & ~mask) | x << shift;
            }
        }
    }
    clock_tick(w);
}

/* ---- 8x8 matrices of 16-bit elements ---- */

/* Where rows of 16 bytes are, one lane each; false: one of them must not be touched. */
static bool rows_at(struct warp *w, const struct sw_site *s, u32 m, u32 site, bool write,
                    uint64_t *host)
{
    u32 used = s->vec == 4 ? ~0u : (1u << (8 * s->vec)) - 1, ok = used & (m | used), at[WARP];
    enum sw_space space = SW_SHARED;
    if (lanes_shared(w, w->w.fr + s->addr, site, 16, at)) {
        for (u32 i = 0; i < WARP; i++)
            host[i] = (uint64_t)(uintptr_t)w->blk->b.smem + at[i];
    } else {
        lanes_resolve(w, &ok, w->w.fr + s->addr, site, 16, write, host, &space);
        if (ok != used)
            return false;
    }
    if (w->t->l->dev->config.counters)
        count_shared(w, used, host, 16, site);
    if (w->blk->cell && space == SW_SHARED && (write || !race_rows_later(w, used, host, site)))
        race_access(w, used, host, 16, site, write);
    return true;
}

/* A row of sixteen elements, packed at its beginning, to bytes. */
static half8 spread_row(const void *at, u32 bits)
{
    unsigned char out[16], in[16];
    half8 row;
    memcpy(in, at, sizeof in);
    for (u32 i = 0; i < 16; i++) {
        u32 first = i * bits, word = (u32)in[first / 8] | (u32)in[first / 8 + 1] << 8;
        out[i] = (unsigned char)(word >> (first % 8) & ((1u << bits) - 1));
    }
    memcpy(&row, out, sizeof row);
    return row;
}

/* Register v of each lane: of a 16x16 matrix of bytes, four rows of one column. */
static void load_bytes(const struct sw_site *s, const uint64_t *host, void *const *dst)
{
    unsigned char row[WARP][16];
    u32 packed = s->kind & MATRIX_FORM;
    for (u32 i = 0; i < 8u * s->vec; i++) {
        const void *at = (const void *)(uintptr_t)host[i];
        half8 spread = packed ? spread_row(at, packed == MATRIX_B4 ? 4 : 6) : *(const half8 *)at;
        memcpy(row[i], &spread, sizeof row[i]);
    }
    for (u32 v = 0; v < s->vec; v++)
        for (u32 lane = 0; lane < WARP; lane++) {
            u32 x = 0;
            for (u32 b = 0; b < 4; b++)
                x |= (u32)row[v / 2 * 16 + lane % 4 * 4 + b][lane / 4 + v % 2 * 8] << (8 * b);
            ((u32 *)dst[v])[lane] = x;
        }
}

/* Register v of each lane: of a 16x8 matrix of bytes, whose columns become rows v * 8 on, two
 * columns of two rows. */
static void store_bytes(const struct sw_site *s, const uint64_t *host, void *const *src)
{
    for (u32 v = 0; v < s->vec; v++)
        for (u32 lane = 0; lane < WARP; lane++)
            for (u32 b = 0; b < 4; b++) {
                unsigned char *row =
                    (unsigned char *)(uintptr_t)host[8 * v + lane % 4 * 2 + (b & 1)];
                row[lane / 4 + 8 * (b >> 1)] = (unsigned char)(((u32 *)src[v])[lane] >> (8 * b));
            }
}

void dev_ldmatrix(struct sw_warp *sw, u32 m, u32 site)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    uint64_t host[WARP];
    void *dst[4];
    u32 unwanted[WARP];
    regs_lanes(w, s, 0, s->vec, dst);
    for (int v = 0; v < s->vec; v++)
        dst[v] = dst[v] ? dst[v] : unwanted;
    if (!rows_at(w, s, m, site, false, host)) {
        for (int v = 0; v < s->vec; v++)
            memset(dst[v], 0, WARP * sizeof(u32));
        return;
    }
    if (s->kind & MATRIX_BYTES) {
        load_bytes(s, host, dst);
        clock_tick(w);
        return;
    }
    /* A row of 16 bytes is spread over four lanes, one after the other. */
    for (u32 v = 0; v < s->vec && !s->kind; v++)
        for (u32 i = 0; i < 8; i++)
            ((half8 *)dst[v])[i] = *(const half8 *)(uintptr_t)host[8 * v + i];
    for (u32 v = 0; v < s->vec && s->kind; v++) {
        half8 r[8];
        for (u32 i = 0; i < 8; i++)
            r[i] = s->kind == MATRIX_TRANS ? *(const half8 *)(uintptr_t)host[8 * v + i]
                                           : spread_row((const void *)(uintptr_t)host[8 * v + i],
                                                        s->kind == MATRIX_B4 ? 4 : 6);
        if (s->kind == MATRIX_TRANS)
            halves_turn(r);
        memcpy(dst[v], r, sizeof r);
    }
    clock_tick(w);
}

void dev_stmatrix(struct sw_warp *sw, u32 m, u32 site)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    uint64_t host[WARP];
    void *src[4];
    regs_lanes(w, s, 0, s->vec, src);
    if (!rows_at(w, s, m, site, true, host))
        return;
    if (s->kind & MATRIX_BYTES)
        store_bytes(s, host, src);
    for (u32 v = 0; v < s->vec && !(s->kind & MATRIX_BYTES); v++) {
        half8 r[8];
        memcpy(r, src[v], sizeof r);
        if (s->kind)
            halves_turn(r);
        for (u32 i = 0; i < 8; i++)
            *(half8 *)(uintptr_t)host[8 * v + i] = r[i];
    }
    clock_tick(w);
}

void dev_movmatrix(struct sw_warp *sw, u32 *dst, const u32 *src)
{
    half8 r[8];
    (void)sw;
    memcpy(r, src, sizeof r);
    halves_turn(r);
    memcpy(dst, r, sizeof r);
}
