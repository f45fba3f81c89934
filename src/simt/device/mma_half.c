/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mma_half.c - mma.sync m16n8k8 and m16n8k16 of f16 and bf16 into f32, fast.
 *
 * A register of A or B holds, lane after lane, an 8x8 block of 16-bit
 * elements row by row (B: column by column), so fragments are read as they
 * are. Products of 16-bit floats are exact in f32; sums go in order of k.
 * aarch64 has mma_neon.c in its place.
 */
#include "simt/device/mma_half.h"

#include "simt/device/device.h"

#define INLINE static inline __attribute__((always_inline))

typedef u32 word8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float row8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float row4 __attribute__((vector_size(16), aligned(4), may_alias));

/* What the machine at hand can do with f16: in one instruction where it can. */
enum machine { PLAIN, F16C };

INLINE void to_floats(const half8 *x, const bool bf, const enum machine has, row8 *out)
{
    (void)has;
#if defined(__x86_64__) && !defined(__clang__) /* clang measures the operand before it inlines */
    if (!bf && has == F16C) {
        __asm__("vcvtph2ps %1, %0" : "=v"(*out) : "v"(*x));
        return;
    }
#endif
    word8 h = __builtin_convertvector(*x, word8);
    if (bf) {
        *out = (row8)(h << 16);
        return;
    }
    /* The exponent is rebiased by a product, which also gets the subnormals right. */
    word8 a = (h & 0x7fffu) << 13, f = (word8)((row8)a * 0x1p112f);
    word8 inf = (word8)((h & 0x7c00u) == 0x7c00u);
    *out = (row8)(f | (inf & 0x7f800000u) | (h & 0x8000u) << 16);
}

INLINE void product(void *const *d, const void *const *a, const void *const *b,
                    const void *const *c, const int kk, const bool bf, const enum machine has)
{
    float A[16][16];
    row8 B[16], C[16];
    for (int r = 0; r < kk / 4; r++)
        for (int i = 0; i < 8; i++)
            to_floats((const half8 *)a[r] + i, bf, has, (row8 *)&A[i + 8 * (r & 1)][8 * (r >> 1)]);
    for (int r = 0; r < kk / 8; r++) {
        half8 t[8];
        memcpy(t, b[r], sizeof t);
        halves_turn(t);
        for (int k = 0; k < 8; k++)
            to_floats(&t[k], bf, has, &B[8 * r + k]);
    }
    for (int i = 0; i < 16; i++) {
        const row4 *even = (const row4 *)c[i >> 3 << 1] + (i & 7),
                   *odd = (const row4 *)c[(i >> 3 << 1) + 1] + (i & 7);
        C[i] = __builtin_shufflevector(*even, *odd, 0, 4, 1, 5, 2, 6, 3, 7);
    }
    for (int i = 0; i < 16; i += 8) /* enough sums at a time to hide how long one takes */
        for (int k = 0; k < kk; k++)
            for (int q = 0; q < 8; q++)
                C[i + q] += A[i + q][k] * B[k];
    for (int i = 0; i < 16; i++) {
        ((row4 *)d[i >> 3 << 1])[i & 7] = __builtin_shufflevector(C[i], C[i], 0, 2, 4, 6);
        ((row4 *)d[(i >> 3 << 1) + 1])[i & 7] = __builtin_shufflevector(C[i], C[i], 1, 3, 5, 7);
    }
}

INLINE void any_shape(void *const *d, const void *const *a, const void *const *b,
                      const void *const *c, int k, bool bf, const enum machine has)
{
    if (k == 16 && !bf)
        product(d, a, b, c, 16, false, has);
    else if (k == 16)
        product(d, a, b, c, 16, true, has);
    else
        product(d, a, b, c, 8, bf, has);
}

#define ARGS                                                                                       \
    void *const *d, const void *const *a, const void *const *b, const void *const *c, int k, bool bf

static void with_any(ARGS)
{
    any_shape(d, a, b, c, k, bf, PLAIN);
}

#if defined(CLONES)
static __attribute__((target("arch=x86-64-v4"))) void with_avx512(ARGS)
{
    any_shape(d, a, b, c, k, bf, F16C);
}
static __attribute__((target("arch=x86-64-v3"))) void with_avx2(ARGS)
{
    any_shape(d, a, b, c, k, bf, F16C);
}
#endif

void mma_half(ARGS)
{
#if defined(CLONES)
    if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) {
        with_avx512(d, a, b, c, k, bf);
        return;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2")) {
        with_avx2(d, a, b, c, k, bf);
        return;
    }
#endif
    with_any(d, a, b, c, k, bf);
}

/* Here wgmma is better off with floats. */
bool mma_half_direct(bool bf)
{
    (void)bf;
    return false;
}

void mma_half_rows(void *const *d, const void *const *a, const half8 *b, bool bf)
{
    (void)d, (void)a, (void)b, (void)bf;
}
