/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mma_half.h - 16 x 8 products of f16 and bf16 into f32, for mma.sync and wgmma.
 *
 * Registers of 32 lanes as mma.sync has them: a[2 i + h] is rows 8 h.. and k 8 i.., b[i] the same
 * k, c[2 h + o] and d rows 8 h.. and columns o, o + 2, o + 4, o + 6. Sums go in order of k.
 */
#ifndef SIMT_MMA_HALF_H
#define SIMT_MMA_HALF_H

#include "simt/device/matrix8x8.h"

#include <stdbool.h>

/* k: 8 or 16. d may be any of the others. */
void mma_half(void *const *d, const void *const *a, const void *const *b, const void *const *c,
              int k, bool bf);

/* Is mma_half_rows() (d += a b for 16 k, with the rows of b at hand) fast on this
 * machine? */
bool mma_half_direct(bool bf);
void mma_half_rows(void *const *d, const void *const *a, const half8 *b, bool bf);

/* The column at position i of such a row. */
static inline int mma_half_column(int i, bool bf)
{
    return bf ? i : i < 4 ? 2 * i : 2 * i - 7;
}

#endif
