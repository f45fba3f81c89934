/* SPDX-License-Identifier: Apache-2.0 */
/* matrix8x8.h - 8x8 matrices of 16-bit elements: a row is a vector, four lanes of a register. */
#ifndef SIMT_MATRIX8X8_H
#define SIMT_MATRIX8X8_H

#include "simt/emit/abi.h"

#include <string.h>

typedef u16 half8 __attribute__((vector_size(16), aligned(4), may_alias));

#define HALVES_LOW(x, y)  __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define HALVES_HIGH(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)

/* Rows to columns: interleaving rows i and i + 4, three times. */
static inline __attribute__((always_inline)) void halves_turn(half8 r[8])
{
    for (int round = 0; round < 3; round++) {
        half8 t[8];
        for (int i = 0; i < 4; i++) {
            t[2 * i] = HALVES_LOW(r[i], r[i + 4]);
            t[2 * i + 1] = HALVES_HIGH(r[i], r[i + 4]);
        }
        memcpy(r, t, sizeof t);
    }
}

#endif
