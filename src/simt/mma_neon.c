/*
 * mma_neon.c - mma.sync m16n8k8 and m16n8k16 of f16 and bf16 into f32 on aarch64, fast.
 *
 * Four lanes side by side hold columns 0, 2, 4, 6 (one register) or 1, 3, 5, 7 (the next) of one
 * row of C. B is turned with its columns in that order, so C is used as it lies. A row of A is
 * used as it lies, too: an element is multiplied with a row of B straight from its place in the
 * vector, and where the machine has it (fp16fml), without being widened first.
 *
 * Invariants
 * 1. Sums go in order of k, each product and sum rounded once: the same bits as mma_half.c's.
 * 2. Everything is read before anything is written: d may be any of the other registers.
 */
#include "simt/device.h"
#include "simt/halves.h"

#include <arm_neon.h>
#include <sys/auxv.h>

#define INLINE static inline __attribute__((always_inline))

/* The product of two halves added to a float at once; older clang has it only where it is told so
 * for the whole file. */
#if !defined(__clang__) || __clang_major__ >= 16
#define FML __attribute__((target("arch=armv8.2-a+fp16fml")))
#endif

enum { HWCAP_FML = 1 << 23 }; /* HWCAP_ASIMDFHM, by its number: not every libc names it */

struct fragments {
    const void *const *a, *const *b, *const *c;
};

/* A register of B, column by column, to rows of k, the columns in C's order. */
INLINE void turn(const void *reg, half8 r[8])
{
    static const int order[] = {0, 2, 4, 6, 1, 3, 5, 7};
    for (int i = 0; i < 8; i++)
        r[i] = ((const half8 *)reg)[order[i]];
    halves_turn(r);
}

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

#if defined(FML)
#define STEP(k)                                                                                    \
    for (int i = 0; i < 8; i++) {                                                                  \
        c[i] = vfmlalq_laneq_low_f16(c[i], b[k], a[i], k);                                         \
        c[8 + i] = vfmlalq_laneq_high_f16(c[8 + i], b[k], a[i], k);                                \
    }

/* Eight rows and eight k: 16 sums at a time, enough to hide how long one takes. */
FML INLINE void halves_add(const void *reg, const half8 *rows, float32x4_t c[16])
{
    const float16x8_t *b = (const float16x8_t *)rows;
    float16x8_t a[8];
    for (int i = 0; i < 8; i++)
        a[i] = ((const float16x8_t *)reg)[i];
    STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)
}
#undef STEP

FML INLINE void product_halves(void *const *d, const struct fragments *f, const int kk)
{
    half8 b[16];
    float32x4_t c[32];
    for (int r = 0; r < kk / 8; r++)
        turn(f->b[r], &b[8 * r]);
    for (int half = 0; half < 2; half++) {
        float32x4_t sum[16];
        rows_in(f, half, sum);
        for (int r = 0; r < kk / 8; r++)
            halves_add(f->a[2 * r + half], &b[8 * r], sum);
        for (int i = 0; i < 16; i++)
            c[16 * half + i] = sum[i];
    }
    rows_out(d, c);
}

static FML void halves(void *const *d, const struct fragments *f, int k)
{
    if (k == 16)
        product_halves(d, f, 16);
    else
        product_halves(d, f, 8);
}
#endif

/* ---- widened first: bf16, and f16 on older machines ---- */

INLINE float32x4_t widen(uint16x4_t x, const bool bf)
{
    return bf ? vreinterpretq_f32_u32(vshll_n_u16(x, 16)) : vcvt_f32_f16(vreinterpret_f16_u16(x));
}

#define STEP(k)                                                                                    \
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
    STEP(0) STEP(1) STEP(2) STEP(3)
}
#undef STEP

INLINE void product_floats(void *const *d, const struct fragments *f, const int kk, const bool bf)
{
    float32x4_t b[32], c[32];
    for (int r = 0; r < kk / 8; r++) {
        half8 t[8];
        turn(f->b[r], t);
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
#if defined(FML)
    if (!bf && getauxval(AT_HWCAP) & HWCAP_FML) {
        halves(d, &f, k);
        return;
    }
#endif
    floats(d, &f, k, bf);
}
