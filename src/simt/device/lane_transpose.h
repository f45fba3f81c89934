/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane_transpose.h - transpose 16 bytes per lane to four one-word registers, and back.
 *
 * Sixteen lanes at a time: lane i, i + 4, i + 8 and i + 12 lie in one vector, so that four vectors
 * and eight shuffles inside quarters of them give each register its lanes in order. Where a vector
 * has 16 bytes, four lanes at a time: compilers write longer shuffles word by word there.
 */
#ifndef SIMT_LANE_TRANSPOSE_H
#define SIMT_LANE_TRANSPOSE_H

#include "simt/emit/abi.h"

typedef u32 quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef u32 octet __attribute__((vector_size(32), aligned(4), may_alias));
typedef u32 row16 __attribute__((vector_size(64), aligned(4), may_alias));

#define QUADS_INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__)
/* Rows to columns of every quarter; its own inverse. */
QUADS_INLINE void quads_turn(row16 *r)
{
    row16 a = __builtin_shufflevector(r[0], r[1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28,
                                      13, 29),
          b = __builtin_shufflevector(r[0], r[1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14,
                                      30, 15, 31),
          c = __builtin_shufflevector(r[2], r[3], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28,
                                      13, 29),
          d = __builtin_shufflevector(r[2], r[3], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14,
                                      30, 15, 31);
    r[0] = __builtin_shufflevector(a, c, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
    r[1] =
        __builtin_shufflevector(a, c, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    r[2] = __builtin_shufflevector(b, d, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
    r[3] =
        __builtin_shufflevector(b, d, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
}

/* Lane i has its 16 bytes at base + at[i], or without at, at base + 16 * i. */
QUADS_INLINE void quads_load(u32 *const *d, const u8 *base, const u32 *at)
{
#define QUAD(i) (*(const quad *)(base + (at ? at[i] : 16u * (u32)(i))))
    for (int half = 0; half < 32; half += 16) {
        row16 r[4];
        for (int k = 0; k < 4; k++) {
            int i = half + k;
            octet low = __builtin_shufflevector(QUAD(i), QUAD(i + 4), 0, 1, 2, 3, 4, 5, 6, 7),
                  high = __builtin_shufflevector(QUAD(i + 8), QUAD(i + 12), 0, 1, 2, 3, 4, 5, 6, 7);
            r[k] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
                                           14, 15);
        }
        quads_turn(r);
        for (int v = 0; v < 4; v++)
            *(row16 *)(d[v] + half) = r[v];
    }
#undef QUAD
}

/* Back, side by side. */
QUADS_INLINE void quads_store(u8 *base, u32 *const *s)
{
    for (int half = 0; half < 32; half += 16) {
        row16 r[4];
        for (int v = 0; v < 4; v++)
            r[v] = *(const row16 *)(s[v] + half);
        quads_turn(r);
        for (int k = 0; k < 4; k++) {
            quad *to = (quad *)(base + 16 * (half + k));
            to[0] = __builtin_shufflevector(r[k], r[k], 0, 1, 2, 3);
            to[4] = __builtin_shufflevector(r[k], r[k], 4, 5, 6, 7);
            to[8] = __builtin_shufflevector(r[k], r[k], 8, 9, 10, 11);
            to[12] = __builtin_shufflevector(r[k], r[k], 12, 13, 14, 15);
        }
    }
}
#else
/* Rows to columns; its own inverse. */
#define QUADS_TURN(r0, r1, r2, r3, out)                                                            \
    do {                                                                                           \
        quad a_ = __builtin_shufflevector(r0, r1, 0, 4, 1, 5),                                     \
             b_ = __builtin_shufflevector(r0, r1, 2, 6, 3, 7),                                     \
             c_ = __builtin_shufflevector(r2, r3, 0, 4, 1, 5),                                     \
             d_ = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);                                     \
        out(0) = __builtin_shufflevector(a_, c_, 0, 1, 4, 5);                                      \
        out(1) = __builtin_shufflevector(a_, c_, 2, 3, 6, 7);                                      \
        out(2) = __builtin_shufflevector(b_, d_, 0, 1, 4, 5);                                      \
        out(3) = __builtin_shufflevector(b_, d_, 2, 3, 6, 7);                                      \
    } while (0)

QUADS_INLINE void quads_load(u32 *const *d, const u8 *base, const u32 *at)
{
#define FROM(k) (*(const quad *)(base + (at ? at[i + (k)] : 16 * (i + (k)))))
#define TO(v)   (*(quad *)(d[v] + i))
    for (u32 i = 0; i < 32; i += 4) {
        quad r0 = FROM(0), r1 = FROM(1), r2 = FROM(2), r3 = FROM(3);
        QUADS_TURN(r0, r1, r2, r3, TO);
    }
#undef FROM
#undef TO
}

QUADS_INLINE void quads_store(u8 *base, u32 *const *s)
{
#define FROM(v) (*(const quad *)(s[v] + i))
#define TO(k)   (*(quad *)(base + 16 * (i + (k))))
    for (u32 i = 0; i < 32; i += 4) {
        quad r0 = FROM(0), r1 = FROM(1), r2 = FROM(2), r3 = FROM(3);
        QUADS_TURN(r0, r1, r2, r3, TO);
    }
#undef FROM
#undef TO
}
#endif

#endif
