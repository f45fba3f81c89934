/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma.c - wgmma.mma_async: each warp of the four multiplies its 16 rows.
 *
 * Hides: matrix descriptors (core matrices, leading and stride offsets,
 * swizzles, both majors) and the layout of accumulators. Four lanes side by
 * side hold columns 0, 2, 4, 6 (one register) or 1, 3, 5, 7 (the next) of one
 * row, so with B's columns in that order an accumulator register is eight
 * vectors of four and nothing has to be gathered.
 *
 * The product is computed at once. The checker ensures that it is read only after the wait:
 * operands in shared memory are held, and marked as read when the warp waits.
 */
#include "base/float_bits.h"
#include "simt/hopper/hopper.h"

#include "simt/device/mma_half.h"
#include "simt/device/tensor_core.h"
#include "simt/hopper/tensor_map.h"
#include "simt/hopper/wgmma.h"

#include <string.h>

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));

enum { MAX_N = 256, MAX_K = 32, ROWS = 16, ADDRESSES = 1 << 18 };

/* ---- elements ---- */

/* The exponent is rebiased by a product, which also gets the subnormals right. */
static inline float half_in(u32 h)
{
    u32 u = bits_of_f32(f32_of_bits((h & 0x7fffu) << 13) * 0x1p112f);
    u |= (h & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0;
    return f32_of_bits(u | (h & 0x8000u) << 16);
}

static float e4m3_in(u32 b)
{
    u32 s = (b & 0x80) << 24, e = b >> 3 & 15, m = b & 7;
    if (e == 15 && m == 7)
        return f32_of_bits(0x7fffffff);
    if (!e)
        return s ? -(float)m * 0x1p-9f : (float)m * 0x1p-9f;
    return f32_of_bits(s | (e + 120) << 23 | m << 20);
}

static const struct wg_element {
    u8 bytes;
} elements[WG_TYPES] = {{2}, {2}, {4}, {1}, {1}, {1}, {1}};

/* 16 bytes of one type as floats. */
static inline __attribute__((always_inline)) void chunk_floats(enum wgmma_type t, const u8 *p,
                                                               float *out, const u32 step)
{
    u16 h[8];
    u32 w[4];
    switch (t) {
    case WG_F16:
        memcpy(h, p, 16);
        for (u32 i = 0; i < 8; i++)
            out[i * step] = half_in(h[i]);
        break;
    case WG_BF16:
        memcpy(h, p, 16);
        for (u32 i = 0; i < 8; i++)
            out[i * step] = f32_of_bits((u32)h[i] << 16);
        break;
    case WG_TF32:
        memcpy(w, p, 16);
        for (u32 i = 0; i < 4; i++)
            out[i * step] = f32_of_bits(w[i] & 0xffffe000u);
        break;
    case WG_E4M3:
        for (u32 i = 0; i < 16; i++)
            out[i * step] = e4m3_in(p[i]);
        break;
    default:
        for (u32 i = 0; i < 16; i++)
            out[i * step] = half_in((u32)p[i] << 8);
        break;
    }
}

static void chunk_ints(enum wgmma_type t, const u8 *p, s32 *out, u32 step)
{
    for (u32 i = 0; i < 16; i++)
        out[i * step] = t == WG_S8 ? (s32)(signed char)p[i] : (s32)p[i];
}

/* ---- matrices in shared memory ---- */

struct matrix {
    u32 start, lead, stride, span; /* bytes; span: width of a swizzled row, 16 without */
    unsigned bits;                 /* of the swizzle */
    bool mn;                       /* contiguous along M or N */
    u32 extent, k_bytes;           /* rows or columns; bytes along K of one of them */
};

static struct matrix matrix_of(u64 desc, bool mn, u32 extent, u32 k_bytes)
{
    static const u8 bits[] = {0, 3, 2, 1};
    unsigned mode = (unsigned)(desc >> 62);
    return (struct matrix){.start = (u32)(desc & 0x3fff) << 4,
                           .lead = (u32)(desc >> 16 & 0x3fff) << 4,
                           .stride = (u32)(desc >> 32 & 0x3fff) << 4,
                           .bits = bits[mode],
                           .span = 16u << bits[mode],
                           .mn = mn,
                           .extent = extent,
                           .k_bytes = k_bytes};
}

/* Where the 16-byte chunk is: along K chunk c of row i, or along MN chunk i of k = c. */
static inline u32 chunk_at(const struct matrix *x, u32 i, u32 c)
{
    u32 at = x->start;
    if (!x->mn) {
        at += (i & 7) * x->span + (i >> 3) * x->stride;
        at += x->bits ? c * 16 : c * x->lead;
    } else if (x->bits) {
        u32 wide = x->span / 16;
        at += i % wide * 16 + i / wide * x->lead + (c & 7) * x->span + (c >> 3) * x->stride;
    } else {
        at += i * x->stride + (c & 7) * 16 + (c >> 3) * x->lead;
    }
    return swizzled(at & (ADDRESSES - 1), x->bits);
}

static u32 chunks_i(const struct matrix *x)
{
    return x->mn ? x->extent / 8 : x->extent;
}

static u32 chunks_c(const struct matrix *x)
{
    return x->mn ? x->k_bytes / 2 : x->k_bytes / 16;
}

/* Where it ends at most: each part of chunk_at() at its largest. */
static u32 matrix_end(const struct matrix *x)
{
    u32 n = chunks_i(x) - 1, m = chunks_c(x) - 1, wide = x->span / 16, at = x->start;
    if (!x->mn)
        at += 7 * x->span + n / 8 * x->stride + m * (x->bits ? 16 : x->lead);
    else if (x->bits)
        at += 7 * x->span + m / 8 * x->stride + n / wide * x->lead + x->span - 16;
    else
        at += n * x->stride + 7 * 16 + m / 8 * x->lead;
    return (at | 0x7f) + 1; /* a swizzle stays within 128 bytes */
}

/* All of it inside the block's memory; the highest chunk decides. */
static bool matrix_inside(struct warp *w, u32 site, const struct matrix *x, const char *name)
{
    u32 worst = 0, n = chunks_i(x), m = chunks_c(x), end = matrix_end(x);
    if (end <= w->blk->b.smem_bytes && end <= ADDRESSES)
        return true;
    for (u32 i = 0; i < n; i++)
        for (u32 c = 0; c < m; c++) {
            u32 at = chunk_at(x, i, c);
            worst = at > worst ? at : worst;
        }
    if (worst + 16 <= w->blk->b.smem_bytes)
        return true;
    finding_add(&(struct finding_where){w, 0, site}, SIMT_OUT_OF_BOUNDS, worst, NULL, -1, -1, -1,
                "the descriptor of %s reaches offset %u of shared memory, which has %u "
                "(start %u, leading %u, stride %u)",
                name, worst, w->blk->b.smem_bytes, x->start, x->lead, x->stride);
    return false;
}

/* Reads now, to be released at the wait: chunk by chunk into the shadow. */
static void matrix_hold(struct warp *w, u32 site, const struct matrix *x, u32 first, u32 count)
{
    struct warp_hopper *h = warp_hopper_of(w);
    u32 m = chunks_c(x);
    for (u32 i = first; i < first + count; i++)
        for (u32 c = 0; c < m; c++) {
            u32 at = chunk_at(x, i, c);
            proxy_read(w, 0, site, w->blk, at, 16);
            proxy_hold(w, w->blk, at, 16, site);
            if (h->reads == h->read_cap) {
                h->read_cap = h->read_cap ? h->read_cap * 2 : 1024;
                h->read = xrealloc(h->read, h->read_cap * sizeof *h->read);
            }
            h->read[h->reads++] = (struct pending_read){at, site, h->wg_group};
        }
}

/* Accumulators that must not be read before the wait. */
void results_note(struct warp *w, u32 site, void *const *d, u32 n)
{
    struct warp_hopper *h = warp_hopper_of(w);
    for (u32 r = 0; r < n; r++) {
        size_t i = 0;
        while (i < h->results && h->result[i].reg != d[r])
            i++;
        if (i == h->result_cap) {
            h->result_cap = h->result_cap ? h->result_cap * 2 : 256;
            h->result = xrealloc(h->result, h->result_cap * sizeof *h->result);
        }
        h->result[i] = (struct wg_result){d[r], h->wg_group, site};
        h->results = i == h->results ? i + 1 : h->results;
    }
}

void dev_wg_touch(struct sw_warp *sw, u32 m, const void *reg, u32 site)
{
    struct warp *w = warp_of(sw);
    const struct warp_hopper *h = w->hop;
    for (size_t i = 0; h && i < h->results; i++)
        if (h->result[i].reg == reg)
            finding_add(&(struct finding_where){w, (u32)__builtin_ctz(m), site}, SIMT_WGMMA, 0,
                        NULL, (int)sw->id, 0, (int)h->result[i].site,
                        "reads an accumulator of a wgmma that has not been waited for "
                        "(wgmma.wait_group)");
}

/* ---- operands ---- */

/* Column n of B goes where its accumulator is: evens of eight first, then odds. */
static inline u32 column(u32 n)
{
    return (n & ~7u) | (n & 1) << 2 | (n >> 1 & 3);
}

static inline __attribute__((always_inline)) void fetch_b(const u8 *smem, const struct matrix *x,
                                                          enum wgmma_type t, float *B)
{
    u32 per = 16 / elements[t].bytes;
    float flat[16];
    if (x->mn) {
        for (u32 c = 0; c < chunks_c(x); c++)
            for (u32 i = 0; i < x->extent / 8; i++) {
                float *to = B + c * MAX_N + 8 * i;
                chunk_floats(t, smem + chunk_at(x, i, c), flat, 1);
                for (u32 q = 0; q < 4; q++) {
                    to[q] = flat[2 * q];
                    to[4 + q] = flat[2 * q + 1];
                }
            }
        return;
    }
    for (u32 n = 0; n < x->extent; n++)
        for (u32 c = 0; c < chunks_c(x); c++)
            chunk_floats(t, smem + chunk_at(x, n, c), B + c * per * MAX_N + column(n), MAX_N);
}

static void fetch_a(const u8 *smem, const struct matrix *x, enum wgmma_type t, u32 first,
                    float (*A)[MAX_K])
{
    u32 per = 16 / elements[t].bytes;
    float flat[16];
    if (x->mn) {
        for (u32 c = 0; c < chunks_c(x); c++)
            for (u32 i = 0; i < ROWS / 8; i++) {
                chunk_floats(t, smem + chunk_at(x, first / 8 + i, c), flat, 1);
                for (u32 q = 0; q < 8; q++)
                    A[8 * i + q][c] = flat[q];
            }
        return;
    }
    for (u32 r = 0; r < ROWS; r++)
        for (u32 c = 0; c < chunks_c(x); c++)
            chunk_floats(t, smem + chunk_at(x, first + r, c), &A[r][c * per], 1);
}

/* A in registers: four of them, as in mma.sync. */
static void fetch_regs(const void *const *a, enum wgmma_type t, float (*A)[MAX_K], s32 (*I)[MAX_K])
{
    u32 per = 4 / elements[t].bytes;
    for (u32 r = 0; r < 4; r++)
        for (u32 l = 0; l < WARP; l++) {
            u32 word = ((const u32 *)a[r])[l], row = (l >> 2) + 8 * (r & 1);
            for (u32 e = 0; e < per; e++) {
                u32 col = (l & 3) * per + e + 4 * per * (r >> 1);
                u32 v = elements[t].bytes == 4   ? word
                        : elements[t].bytes == 2 ? word >> 16 * e & 0xffff
                                                 : word >> 8 * e & 0xff;
                if (t == WG_S8 || t == WG_U8)
                    I[row][col] = t == WG_S8 ? (s32)(signed char)v : (s32)v;
                else
                    A[row][col] = t == WG_F16    ? half_in(v)
                                  : t == WG_BF16 ? f32_of_bits(v << 16)
                                  : t == WG_TF32 ? f32_of_bits(v & 0xffffe000u)
                                  : t == WG_E4M3 ? e4m3_in(v)
                                                 : half_in(v << 8);
            }
        }
}

/* ---- halves, multiplied as they lie (mma_half.h) ---- */

static inline half8 chunk(const u8 *smem, const struct matrix *x, u32 i, u32 c)
{
    return *(const half8 *)(smem + chunk_at(x, i, c));
}

/* Blocks of 8 x 8, as registers of mma.sync hold them. */
static void blocks_a(const u8 *smem, const struct matrix *x, u32 first, half8 (*A)[8])
{
    for (u32 r = 0; r < 4; r++) {
        u32 h = r & 1, k = r >> 1;
        for (u32 i = 0; i < 8; i++)
            A[r][i] = x->mn ? chunk(smem, x, first / 8 + h, 8 * k + i)
                            : chunk(smem, x, first + 8 * h + i, k);
        if (x->mn)
            halves_turn(A[r]);
    }
}

/* Where the 16 rows of k of columns 8 j.. are, or the 8 columns in two parts. */
static void places_b(const struct matrix *x, u32 j, bool bf, u32 at[16])
{
    for (u32 i = 0; i < 16; i++)
        at[i] = x->mn ? chunk_at(x, j, i)
                      : chunk_at(x, 8 * j + (u32)mma_half_column((int)i & 7, bf), i >> 3);
}

static inline void rows_b(const u8 *smem, const struct matrix *x, const u32 at[16], bool bf,
                          half8 rows[16])
{
    for (u32 i = 0; i < 16; i++)
        rows[i] = *(const half8 *)(smem + at[i]);
    if (!x->mn) {
        halves_turn(rows);
        halves_turn(rows + 8);
    }
    for (u32 i = 0; i < 16 && x->mn && !bf; i++)
        rows[i] = __builtin_shufflevector(rows[i], rows[i], 0, 2, 4, 6, 1, 3, 5, 7);
}

static void multiply_halves(float *const *d, half8 (*A)[8], const u8 *smem, const struct matrix *x,
                            u32 n, bool bf)
{
    const void *a[] = {A[0], A[1], A[2], A[3]};
    /* Eight columns on, everything is where it was but for the stride; swizzles do not see it. */
    bool even = !x->mn && x->stride % 1024 == 0 && matrix_end(x) <= ADDRESSES;
    u32 at[16];
    half8 rows[16];
    for (u32 j = 0; j < n / 8; j++) {
        for (u32 i = 0; i < 16 && j && even; i++)
            at[i] += x->stride;
        if (!j || !even)
            places_b(x, j, bf, at);
        rows_b(smem, x, at, bf, rows);
        mma_half_rows((void *const *)d + 4 * j, a, rows, bf);
    }
}

/* ---- the product ---- */

/* d: registers of 32 lanes; register 4 j + 2 h + o holds rows 8 h.. and columns 8 j + o, + 2,
 * ... */
static inline __attribute__((always_inline)) void multiply(float *const *d, float (*A)[MAX_K],
                                                           const float *B, u32 n, const u32 kk)
{
    for (u32 j = 0; j < n / 8; j++)
        for (u32 h = 0; h < 2; h++) {
            float *even = d[4 * j + 2 * h], *odd = d[4 * j + 2 * h + 1];
            for (u32 q = 0; q < 8; q += 4) {
                quad e[4], o[4];
                for (u32 i = 0; i < 4; i++) {
                    e[i] = *(const quad *)(even + 4 * (q + i));
                    o[i] = *(const quad *)(odd + 4 * (q + i));
                }
                for (u32 k = 0; k < kk; k++) {
                    quad be = *(const quad *)(B + k * MAX_N + 8 * j),
                         bo = *(const quad *)(B + k * MAX_N + 8 * j + 4);
                    for (u32 i = 0; i < 4; i++) {
                        float x = A[8 * h + q + i][k];
                        quad a = {x, x, x, x};
                        e[i] += a * be;
                        o[i] += a * bo;
                    }
                }
                for (u32 i = 0; i < 4; i++) {
                    *(quad *)(even + 4 * (q + i)) = e[i];
                    *(quad *)(odd + 4 * (q + i)) = o[i];
                }
            }
        }
}

static void multiply_ints(u32 *const *d, s32 (*A)[MAX_K], const s32 *B, u32 n, bool sat)
{
    for (u32 j = 0; j < n / 8; j++)
        for (u32 e = 0; e < 4; e++)
            for (u32 l = 0; l < WARP; l++) {
                u32 row = (l >> 2) + 8 * (e >> 1), col = 8 * j + 4 * (e & 1) + (l & 3);
                s64 sum = (s32)d[4 * j + e][l];
                for (u32 k = 0; k < MAX_K; k++)
                    sum += (s64)A[row][k] * B[k * MAX_N + col];
                if (sat)
                    sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
                d[4 * j + e][l] = (u32)sum;
            }
}

struct scratch {
    float A[ROWS][MAX_K], B[MAX_K * MAX_N];
    s32 IA[ROWS][MAX_K], IB[MAX_K * MAX_N];
    float acc[MAX_N / 2][WARP];
    struct exact_factor EA[ROWS][MAX_K], EB[MAX_N][MAX_K];
    half8 HA[4][8];
};

enum how { BY_FLOATS, BY_HALVES, EXACTLY };

static HOT void floats_f16(struct scratch *x, const u8 *smem, const struct matrix *b,
                           float *const *d, u32 n)
{
    fetch_b(smem, b, WG_F16, x->B);
    multiply(d, x->A, x->B, n, 16);
}

static HOT void floats_other(struct scratch *x, const u8 *smem, const struct matrix *b,
                             enum wgmma_type t, float *const *d, u32 n)
{
    u32 kk = 32 / elements[t].bytes;
    fetch_b(smem, b, t, x->B);
    if (kk == 16)
        multiply(d, x->A, x->B, n, 16);
    else
        multiply(d, x->A, x->B, n, kk);
}

/* Sum by sum, as the tensor cores round them. */
static void floats_exact(struct scratch *x, u32 kind, const u8 *smem, const struct matrix *b,
                         float *const *d, u32 n)
{
    static const enum ptx_type types[] = {PT_F16, PT_BF16, PT_TF32, PT_E4M3, PT_E5M2};
    enum wgmma_type ta = wg_a(kind), tb = wg_b(kind);
    bool half = wg_acc(kind) == WG_ACC_F16, f8 = elements[ta].bytes == 1;
    u32 kk = 32u / elements[tb].bytes;
    fetch_b(smem, b, tb, x->B);
    for (u32 k = 0; k < kk; k++) {
        for (u32 r = 0; r < ROWS; r++)
            x->EA[r][k] = exact_factor(types[ta], x->A[r][k]);
        for (u32 c = 0; c < n; c++)
            x->EB[c][k] = exact_factor(types[tb], x->B[k * MAX_N + c]);
    }
    for (u32 r = 0; r < n / 2; r++)
        for (u32 l = 0; l < WARP; l++) {
            u32 row = (l >> 2) + 8 * (r >> 1 & 1), col = 8 * (r >> 2) + 4 * (r & 1) + (l & 3);
            u32 sum = wgmma_exact(x->EA[row], x->EB[col], (int)kk, bits_of_f32(d[r][l]), f8, half);
            d[r][l] = half ? half_in(sum) : f32_of_bits(sum);
        }
}

static void negate(struct scratch *x, enum how how)
{
    for (u32 r = 0; r < 4 && how == BY_HALVES; r++)
        for (u32 i = 0; i < 8; i++)
            x->HA[r][i] ^= 0x8000;
    for (u32 r = 0; r < ROWS && how != BY_HALVES; r++)
        for (u32 k = 0; k < MAX_K; k++)
            x->A[r][k] = -x->A[r][k];
}

static void product_floats(struct scratch *x, u32 kind, const u8 *smem, const struct matrix *b,
                           void *const *d, u32 n, bool scale_d, enum how how)
{
    enum wgmma_type t = wg_b(kind);
    bool f16 = wg_acc(kind) == WG_ACC_F16;
    float *acc[MAX_N / 2];
    u32 regs = n / 2;
    for (u32 r = 0; r < regs; r++) {
        acc[r] = f16 ? x->acc[r] : (float *)d[r];
        if (!scale_d)
            memset(acc[r], 0, WARP * sizeof(float));
        for (u32 l = 0; f16 && scale_d && l < WARP; l++)
            x->acc[r][l] = half_in(((const u32 *)d[r / 2])[l] >> 16 * (r & 1) & 0xffff);
    }
    if (kind & (WG_NEG_A | WG_NEG_B) && !(kind & WG_NEG_A && kind & WG_NEG_B))
        negate(x, how);
    if (how == EXACTLY)
        floats_exact(x, kind, smem, b, acc, n);
    else if (how == BY_HALVES)
        multiply_halves(acc, x->HA, smem, b, n, t == WG_BF16);
    else if (t == WG_F16)
        floats_f16(x, smem, b, acc, n);
    else
        floats_other(x, smem, b, t, acc, n);
    for (u32 r = 0; f16 && r < regs; r += 2)
        for (u32 l = 0; l < WARP; l++)
            ((u32 *)d[r / 2])[l] = half_of_f32(x->acc[r][l]) | half_of_f32(x->acc[r + 1][l]) << 16;
}

static void product_ints(struct scratch *x, u32 kind, const u8 *smem, const struct matrix *b,
                         void *const *d, u32 n, bool scale_d)
{
    enum wgmma_type t = wg_b(kind);
    s32 flat[16];
    for (u32 i = 0; i < n; i++)
        for (u32 c = 0; c < 2; c++) {
            chunk_ints(t, smem + chunk_at(b, i, c), flat, 1);
            for (u32 q = 0; q < 16; q++)
                x->IB[(16 * c + q) * MAX_N + column(i)] = flat[q];
        }
    for (u32 r = 0; !scale_d && r < n / 2; r++)
        memset(d[r], 0, WARP * sizeof(u32));
    multiply_ints((u32 *const *)d, x->IA, x->IB, n, kind & WG_SAT);
}

enum simt_tensor_type wgmma_type(uint32_t kind, uint64_t *flops)
{
    static const enum simt_tensor_type types[WG_TYPES] = {
        SIMT_TENSOR_F16, SIMT_TENSOR_BF16, SIMT_TENSOR_TF32, SIMT_TENSOR_F8,
        SIMT_TENSOR_F8,  SIMT_TENSOR_INT,  SIMT_TENSOR_INT};
    enum wgmma_type t = wg_a(kind);
    *flops = 2u * ROWS * wg_n(kind) * (32u / elements[t].bytes);
    return types[t];
}

void dev_wgmma(struct sw_warp *sw, u32 m, u32 site, void *const *d, const void *const *a, u64 adesc,
               u64 bdesc, u32 scale_d)
{
    struct warp *w = warp_of(sw);
    u32 kind = site_of(w, site)->kind, n = wg_n(kind), first = (sw->id & 3) * ROWS;
    enum wgmma_type ta = wg_a(kind);
    struct matrix ma = matrix_of(adesc, kind & WG_TRANS_A, 64, 32),
                  mb = matrix_of(bdesc, kind & WG_TRANS_B, n, 32);
    struct scratch *x = w->t->wgmma_scratch;
    const u8 *smem = w->blk->b.smem;
    bool regs = kind & WG_REGS_A, ints = ta == WG_S8 || ta == WG_U8;
    uint64_t flops;
    enum simt_tensor_type type = wgmma_type(kind, &flops);
    w->t->n.tensor_flops_of[type] += flops;
    w->t->n.wgmma_flops += flops;
    w->last_site = site;
    (void)m;
    if (!x)
        x = w->t->wgmma_scratch = xmalloc(sizeof *x);
    if ((!regs && !matrix_inside(w, site, &ma, "A")) || !matrix_inside(w, site, &mb, "B"))
        return;
    if (site_of(w, site)->flags & SW_UNFENCED && w->t->l->dev->config.check != SIMT_CHECK_OFF)
        finding_add(&(struct finding_where){w, 0, site}, SIMT_WGMMA_FENCE, 0, NULL, -1, -1, -1,
                    "its registers were written and not fenced: wgmma.fence is missing");
    if (w->blk->cell) {
        if (!regs)
            matrix_hold(w, site, &ma, ma.mn ? first / 8 : first, ma.mn ? ROWS / 8 : ROWS);
        matrix_hold(w, site, &mb, 0, chunks_i(&mb));
        results_note(w, site, d, wg_acc(kind) == WG_ACC_F16 ? n / 4 : n / 2);
    }
    bool halves = ta == WG_F16 || ta == WG_BF16;
    enum how how = w->t->l->dev->config.exact_mma             ? EXACTLY
                   : halves && mma_half_direct(ta == WG_BF16) ? BY_HALVES
                                                              : BY_FLOATS;
    if (regs && how == BY_HALVES) {
        for (u32 r = 0; r < 4; r++)
            memcpy(x->HA[r], a[r], sizeof x->HA[r]);
    } else if (how == BY_HALVES) {
        blocks_a(smem, &ma, first, x->HA);
    } else if (regs) {
        fetch_regs(a, ta, x->A, x->IA);
    } else if (ints) {
        for (u32 r = 0; r < ROWS; r++)
            for (u32 c = 0; c < 2; c++)
                chunk_ints(ta, smem + chunk_at(&ma, first + r, c), &x->IA[r][16 * c], 1);
    } else {
        fetch_a(smem, &ma, ta, first, x->A);
    }
    if (ints)
        product_ints(x, kind, smem, &mb, d, n, scale_d);
    else
        product_floats(x, kind, smem, &mb, d, n, scale_d, how);
}

/* ---- groups ---- */

/* A wgmma is the work of four warps: it is over when all of them have issued it. */
static bool others_behind(const struct warp *w, u32 group)
{
    u32 first = w->w.id & ~3u;
    for (u32 i = first; i < first + 4 && i < w->blk->b.nwarps; i++) {
        const struct warp *o = &w->blk->warp[i];
        if (o != w && o->state != WARP_DONE && (!o->hop || o->hop->wg_group < group))
            return true;
    }
    return false;
}

static bool lacks(const struct warp *w, u32 i, u32 group)
{
    if (i >= w->blk->b.nwarps)
        return true;
    const struct warp *o = &w->blk->warp[i];
    return o->state == WARP_DONE && (!o->hop || o->hop->wg_group <= group);
}

/* Of a wgmma that is over: one of the four warps has left, or is none, and never issued it. */
static void report_missing(struct warp *w, u32 over)
{
    const struct warp_hopper *h = w->hop;
    u32 first = w->w.id & ~3u;
    for (size_t k = 0; k < h->results; k++)
        for (u32 i = first; h->result[k].group < over && i < first + 4; i++) {
            if (!lacks(w, i, h->result[k].group))
                continue;
            finding_add(&(struct finding_where){w, 0, h->result[k].site}, SIMT_DIVERGENT_COLLECTIVE,
                        0, NULL, -1, -1, -1,
                        "warp %u does not take part in this wgmma, which needs all four warps of "
                        "its warpgroup",
                        i);
            return;
        }
}

static void wait_groups(struct warp *w, u32 left)
{
    struct warp_hopper *h = warp_hopper_of(w);
    u32 over = h->wg_group > left ? h->wg_group - left : 0, first = w->w.id & ~3u;
    while (others_behind(w, over)) {
        h->wg_waits = true;
        w->polled = true;
        w->w.fuel = 0;
        dev_tick(&w->w, 0, w->last_site);
    }
    h->wg_waits = false;
    report_missing(w, over);
    for (size_t i = 0; i < h->results;)
        if (h->result[i].group < over)
            h->result[i] = h->result[--h->results];
        else
            i++;
    struct hopper *b = hopper_of(w->blk);
    b->held_time[first / 4]++;
    w->clock[HELD + first / 4] = b->held_time[first / 4] + 1;
    for (u32 i = first; w->blk->cell && i < first + 4 && i < w->blk->b.nwarps; i++) {
        struct warp_hopper *o = w->blk->warp[i].hop;
        size_t kept = 0;
        for (size_t k = 0; o && k < o->reads; k++) {
            struct pending_read r = o->read[k];
            if (r.group < over)
                proxy_release_group(w, r.at, r.site);
            else
                o->read[kept++] = r;
        }
        if (o)
            o->reads = kept;
    }
}

void dev_wg_sync(struct sw_warp *sw, u32 kind, u32 left, u32 site)
{
    struct warp *w = warp_of(sw);
    w->last_site = w->bar_site = site;
    if (kind == WG_COMMIT) {
        warp_hopper_of(w)->wg_group++;
        hopper_of(w->blk)->progress++;
    } else if (kind == WG_WAIT) {
        wait_groups(w, left);
        clock_tick(w);
    }
}
