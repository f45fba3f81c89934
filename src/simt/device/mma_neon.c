/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mma_neon.c - mma.sync m16n8k8 and m16n8k16 of f16 and bf16 into f32 on aarch64, fast.
 *
 * Four lanes side by side hold columns 0, 2, 4, 6 (one register) or 1, 3, 5, 7 (the next) of one
 * row of C. B is turned, and its columns are taken in that order, so C is used as it lies. A row
 * of A is used as it lies, too: an element is multiplied with a row of B straight from its place
 * in the vector, and where the machine has it (fp16fml, bf16), without being widened first.
 *
 * Invariants
 * 1. Sums go in order of k, each product and sum rounded once: the same bits as mma_half.c's.
 * 2. Everything is read before anything is written: d may be any of the other registers.
 */
#include "simt/device/mma_half.h"

#include <arm_neon.h>
#include <sys/auxv.h>

#define INLINE static inline __attribute__((always_inline))

/* Older clang takes no instructions the whole file is not compiled for. */
#if !defined(__clang__) || __clang_major__ >= 16
#define WITH(features) __attribute__((noinline, target("arch=armv8.2-a+" features)))
#endif

/* By their numbers: not every libc names them. ASIMDFHM of AT_HWCAP, BF16 of AT_HWCAP2. */
enum { HAS_FP16FML = 1 << 23, HAS_BF16 = 1 << 14 };

struct fragments {
    const void *const *a, *const *b, *const *c;
};

/* A register of B, column by column, to rows of k. */
INLINE void turn(const void *reg, const bool bf, half8 r[8])
{
    for (int i = 0; i < 8; i++)
        r[i] = ((const half8 *)reg)[mma_half_column(i, bf)];
    halves_turn(r);
}

/* ---- halves as they are ---- */

/* clang-format off */
#if defined(WITH)
#define ROW(even, odd, b, a, k)                                                                    \
    EVEN " v" #even ".4s, v" #b WIDTH ", v" #a ".h[" #k "]\n" ODD " v" #odd ".4s, v" #b WIDTH      \
         ", v" #a ".h[" #k "]\n"
#define STEP(b, k)                                                                                 \
    ROW(16, 24, b, 0, k)                                                                           \
    ROW(17, 25, b, 1, k)                                                                           \
    ROW(18, 26, b, 2, k)                                                                           \
    ROW(19, 27, b, 3, k)                                                                           \
    ROW(20, 28, b, 4, k)                                                                           \
    ROW(21, 29, b, 5, k)                                                                           \
    ROW(22, 30, b, 6, k)                                                                           \
    ROW(23, 31, b, 7, k)
#define STEPS                                                                                      \
    STEP(8, 0)                                                                                     \
    STEP(9, 1)                                                                                     \
    STEP(10, 2)                                                                                    \
    STEP(11, 3)                                                                                    \
    STEP(12, 4)                                                                                    \
    STEP(13, 5)                                                                                    \
    STEP(14, 6)                                                                                    \
    STEP(15, 7)
/* A register of 32 lanes. */
#define EIGHT(op, at, r0, r1, r2, r3, r4, r5, r6, r7)                                              \
    op " q" #r0 ", q" #r1 ", [%[" #at "]]\n" op " q" #r2 ", q" #r3 ", [%[" #at "], #32]\n" op      \
       " q" #r4 ", q" #r5 ", [%[" #at "], #64]\n" op " q" #r6 ", q" #r7 ", [%[" #at "], #96]\n"

/*
 * Eight rows: a[0] and a[2] hold their k, b as many rows of eight columns, c the sums before.
 * All 32 vector registers are spoken for, and factors taken from a place must be in the first 16:
 * a compiler moves them to and fro, so they are named here. v0-7: a, v8-15: b, v16-31: sums.
 */
#define ADD                                                                                        \
    __asm__ volatile(                                                                              \
        EIGHT("ldp", c0, 16, 17, 18, 19, 20, 21, 22, 23)                                           \
        EIGHT("ldp", c1, 24, 25, 26, 27, 28, 29, 30, 31)                                           \
        "1: ldr %[row], [%[a]], #16\n"                                                             \
        EIGHT("ldp", row, 0, 1, 2, 3, 4, 5, 6, 7)                                                  \
        EIGHT("ldp", b, 8, 9, 10, 11, 12, 13, 14, 15)                                              \
        "add %[b], %[b], #128\n"                                                                   \
        STEPS                                                                                      \
        "subs %[blocks], %[blocks], #1\n"                                                          \
        "b.ne 1b\n"                                                                                \
        EIGHT("stp", even, 16, 17, 18, 19, 20, 21, 22, 23)                                         \
        EIGHT("stp", odd, 24, 25, 26, 27, 28, 29, 30, 31)                                          \
        : [a] "+r"(a), [b] "+r"(b), [blocks] "+r"(blocks), [row] "=&r"(row)                        \
        : [c0] "r"(c[0]), [c1] "r"(c[1]), [even] "r"(even), [odd] "r"(odd)                         \
        : "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10",       \
          "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22",      \
          "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31")

/* clang-format on */
#define ARGS                                                                                       \
    const void *const *a, const half8 *b, const void *const *c, void *even, void *odd, long blocks

/* The first and the second four columns: even ones come first in b. */
#define EVEN  "fmlal"
#define ODD   "fmlal2"
#define WIDTH ".4h"
static WITH("fp16fml") void add_f16(ARGS)
{
    const void *row;
    ADD;
}
#undef EVEN
#undef ODD
#undef WIDTH

/* These take the even and the odd columns out of eight by themselves. */
#define EVEN  "bfmlalb"
#define ODD   "bfmlalt"
#define WIDTH ".8h"
static WITH("bf16") void add_bf16(ARGS)
{
    const void *row;
    ADD;
}

bool mma_half_direct(bool bf)
{
    return bf ? getauxval(AT_HWCAP2) & HAS_BF16 : getauxval(AT_HWCAP) & HAS_FP16FML;
}

static void add(ARGS, bool bf)
{
    if (bf)
        add_bf16(a, b, c, even, odd, blocks);
    else
        add_f16(a, b, c, even, odd, blocks);
}

INLINE bool meet(const void *x, const void *y)
{
    return (uintptr_t)x - (uintptr_t)y + 127 < 255;
}

static void halves(void *const *d, const struct fragments *f, int k, bool bf)
{
    half8 b[16];
    float kept[2][32];
    bool keep = false; /* the upper rows' results are where something of the lower ones is */
    for (int i = 0; i < 2; i++)
        keep |= meet(d[i], f->a[1]) || meet(d[i], f->a[k == 16 ? 3 : 1]) || meet(d[i], f->c[2]) ||
                meet(d[i], f->c[3]);
    for (int r = 0; r < k / 8; r++)
        turn(f->b[r], bf, &b[8 * r]);
    add(f->a, b, f->c, keep ? kept[0] : d[0], keep ? kept[1] : d[1], k / 8, bf);
    add(f->a + 1, b, f->c + 2, d[2], d[3], k / 8, bf);
    for (int i = 0; i < 2 && keep; i++)
        memcpy(d[i], kept[i], sizeof kept[i]);
}

void mma_half_rows(void *const *d, const void *const *a, const half8 *b, bool bf)
{
    add(a, b, (const void *const *)d, d[0], d[1], 2, bf);
    add(a + 1, b, (const void *const *)d + 2, d[2], d[3], 2, bf);
}
#else
bool mma_half_direct(bool bf)
{
    (void)bf;
    return false;
}

static void halves(void *const *d, const struct fragments *f, int k, bool bf)
{
    (void)d, (void)f, (void)k, (void)bf;
}

void mma_half_rows(void *const *d, const void *const *a, const half8 *b, bool bf)
{
    (void)d, (void)a, (void)b, (void)bf;
}
#endif

/* ---- widened first: for older machines ---- */

/* Eight rows of C: even columns in c[0..7], odd ones in c[8..15]. */
INLINE void rows_in(const struct fragments *f, int half, float32x4_t c[16])
{
    for (int i = 0; i < 16; i++)
        c[i] = vld1q_f32((const float *)f->c[2 * half + i / 8] + 4 * (i % 8));
}

INLINE void rows_out(void *const *d, const float32x4_t c[32])
{
    for (int i = 0; i < 32; i++)
        vst1q_f32((float *)d[i / 8] + 4 * (i % 8), c[i]);
}

INLINE float32x4_t widen(uint16x4_t x, const bool bf)
{
    return bf ? vreinterpretq_f32_u32(vshll_n_u16(x, 16)) : vcvt_f32_f16(vreinterpret_f16_u16(x));
}

#define SUMS(k)                                                                                    \
    for (int i = 0; i < 8; i++) {                                                                  \
        c[i] = vfmaq_laneq_f32(c[i], b[2 * (k)], a[i], k);                                         \
        c[8 + i] = vfmaq_laneq_f32(c[8 + i], b[2 * (k) + 1], a[i], k);                             \
    }

INLINE void floats_add(const void *reg, const int first, const float32x4_t *b, float32x4_t c[16],
                       const bool bf)
{
    float32x4_t a[8];
    for (int i = 0; i < 8; i++)
        a[i] = widen(vld1_u16((const uint16_t *)reg + 8 * i + first), bf);
    SUMS(0) SUMS(1) SUMS(2) SUMS(3)
}
#undef SUMS

INLINE void product_floats(void *const *d, const struct fragments *f, const int kk, const bool bf)
{
    float32x4_t b[32], c[32];
    for (int r = 0; r < kk / 8; r++) {
        half8 t[8];
        turn(f->b[r], false, t);
        for (int i = 0; i < 8; i++) {
            b[16 * r + 2 * i] = widen(vget_low_u16((uint16x8_t)t[i]), bf);
            b[16 * r + 2 * i + 1] = widen(vget_high_u16((uint16x8_t)t[i]), bf);
        }
    }
    for (int half = 0; half < 2; half++) {
        float32x4_t sum[16];
        rows_in(f, half, sum);
        for (int k = 0; k < kk; k += 4)
            floats_add(f->a[k / 8 * 2 + half], k % 8, &b[2 * k], sum, bf);
        for (int i = 0; i < 16; i++)
            c[16 * half + i] = sum[i];
    }
    rows_out(d, c);
}

static void floats(void *const *d, const struct fragments *f, int k, bool bf)
{
    if (k == 16 && bf)
        product_floats(d, f, 16, true);
    else if (k == 16)
        product_floats(d, f, 16, false);
    else if (bf)
        product_floats(d, f, 8, true);
    else
        product_floats(d, f, 8, false);
}

void mma_half(void *const *d, const void *const *a, const void *const *b, const void *const *c,
              int k, bool bf)
{
    struct fragments f = {a, b, c};
    if (mma_half_direct(bf))
        halves(d, &f, k, bf);
    else
        floats(d, &f, k, bf);
}
