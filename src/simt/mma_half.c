/*
 * mma_half.c - mma.sync m16n8k8 and m16n8k16 of f16 and bf16 into f32, fast.
 *
 * A register of A or B holds, lane after lane, an 8x8 block of 16-bit
 * elements row by row (B: column by column), so fragments are read as they
 * are. Products of 16-bit floats are exact in f32; sums go in order of k.
 */
#include "simt/device.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

typedef u16 half8 __attribute__((vector_size(16), aligned(4), may_alias));
typedef u32 word8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float row8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float row4 __attribute__((vector_size(16), aligned(4), may_alias));

INLINE void to_floats(const half8 *x, const bool bf, row8 *out)
{
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

#define LOW(x, y)  __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)

/* Rows to columns: interleaving rows i and i + 4, three times. */
INLINE void transpose(half8 r[8])
{
    for (int round = 0; round < 3; round++) {
        half8 t[8];
        for (int i = 0; i < 4; i++) {
            t[2 * i] = LOW(r[i], r[i + 4]);
            t[2 * i + 1] = HIGH(r[i], r[i + 4]);
        }
        memcpy(r, t, sizeof t);
    }
}

INLINE void product(void *const *d, const void *const *a, const void *const *b,
                    const void *const *c, const int kk, const bool bf)
{
    float A[16][16];
    row8 B[16], C[16];
    for (int r = 0; r < kk / 4; r++)
        for (int i = 0; i < 8; i++)
            to_floats((const half8 *)a[r] + i, bf, (row8 *)&A[i + 8 * (r & 1)][8 * (r >> 1)]);
    for (int r = 0; r < kk / 8; r++) {
        half8 t[8];
        memcpy(t, b[r], sizeof t);
        transpose(t);
        for (int k = 0; k < 8; k++)
            to_floats(&t[k], bf, &B[8 * r + k]);
    }
    for (int i = 0; i < 16; i++) {
        const row4 *even = (const row4 *)c[i >> 3 << 1] + (i & 7),
                   *odd = (const row4 *)c[(i >> 3 << 1) + 1] + (i & 7);
        C[i] = __builtin_shufflevector(*even, *odd, 0, 4, 1, 5, 2, 6, 3, 7);
    }
    for (int i = 0; i < 16; i += 4)
        for (int k = 0; k < kk; k++)
            for (int q = 0; q < 4; q++)
                C[i + q] += A[i + q][k] * B[k];
    for (int i = 0; i < 16; i++) {
        ((row4 *)d[i >> 3 << 1])[i & 7] = __builtin_shufflevector(C[i], C[i], 0, 2, 4, 6);
        ((row4 *)d[(i >> 3 << 1) + 1])[i & 7] = __builtin_shufflevector(C[i], C[i], 1, 3, 5, 7);
    }
}

HOT void mma_half(void *const *d, const void *const *a, const void *const *b, const void *const *c,
                  int k, bool bf)
{
    if (k == 16 && !bf)
        product(d, a, b, c, 16, false);
    else if (k == 16)
        product(d, a, b, c, 16, true);
    else
        product(d, a, b, c, 8, bf);
}
