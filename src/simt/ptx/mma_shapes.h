/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mma_shapes.h - the matrix shapes of mma.sync and wmma, for the writer and the device.
 *
 * A kind is a row number + 1 of one table; mma_find() looks it up by the
 * instruction's modifiers, mma_row() gives the row back.
 */
#ifndef SIMT_MMA_SHAPES_H
#define SIMT_MMA_SHAPES_H

#include "simt/ptx/ptx.h"

/* MMA_LOW: of eight bits and fewer, with or without scales. */
enum mma_op { MMA_MUL, MMA_XOR, MMA_AND, MMA_QUADS, MMA_WMMA_ROW, MMA_LOW };

struct mma_shape {
    int m, n, k;
    enum ptx_type a, b, c, d;
    int a_regs, b_regs, c_regs, d_regs;
    enum mma_op op;
};

/* Above the row: flags, and the part of a wmma.load or store. */
enum { MMA_ROWS = 0xffff, WMMA_PART_SHIFT = 20, WMMA_PARTS = 3 };
enum { MMA_ROW_A = 1 << 16, MMA_COL_B = 1 << 17, MMA_SAT = 1 << 18, MMA_WMMA = 1 << 19 };
/* Scales of rows of A and columns of B: how many of each, as 1 + log2; 0: none. Their registers
 * come last: the scales of A, which byte, which lanes; the same for B. */
enum { MMA_SCALE_SHIFT = 22, MMA_SCALES = 3, MMA_UE4M3 = 1 << 24, MMA_SCALE_REGS = 6 };
enum wmma_part { WMMA_A, WMMA_B, WMMA_C, WMMA_D };

uint32_t mma_find(const struct insn *in); /* row + 1 and flags; 0: unknown */
const struct mma_shape *mma_row(uint32_t kind);
/* wmma.load and wmma.store: part, row-major and element type in the kind. */
uint32_t wmma_find(const struct insn *in, int *regs);

#endif
