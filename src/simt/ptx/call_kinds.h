/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_kinds.h - numbers the writer puts into calls and the device reads: which form of an
 * instruction it is. Those of atom and mbarrier are in atomic_ops.h, of mma in mma_shapes.h, of
 * bulk copies in hopper/hopper.h and of wgmma in hopper/wgmma.h.
 */
#ifndef SIMT_CALL_KINDS_H
#define SIMT_CALL_KINDS_H

enum shfl_mode { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX, SHFL_MODES };

enum bar_kind {
    BAR_SYNC,
    BAR_ARRIVE,
    BAR_POPC,
    BAR_AND,
    BAR_OR,
    BAR_OP = 7,       /* the bits of those */
    BAR_ALIGNED = 32, /* all lanes of the warp must be there */
    BAR_APART = 64    /* lanes of the warp arrive from several places */
};

enum match_kind { MATCH_ALL = 1, MATCH_WIDE = 2 };

enum redux_kind {
    REDUX_ADD,
    REDUX_MIN,
    REDUX_MAX,
    REDUX_AND,
    REDUX_OR,
    REDUX_XOR,
    REDUX_OPS,
    REDUX_OP = 7, /* the bits of those */
    REDUX_SIGNED = 8
};

/* May chunks of lanes be read at one place, or side by side? The size of a chunk lies above. */
enum strip_kind { STRIP_SAME = 1, STRIP_ROW = 2, STRIP_LANES_SHIFT = 8 };

enum mapa_kind {
    MAPA_PLACE,
    MAPA_RANK_SHARED,
    MAPA_RANK_GENERIC,
    MAPA_TO_GENERIC,
    MAPA_TO_SHARED,
    MAPA_EVEN
};

/* S_carry32() and its like in vec_lanes.h. */
enum carry_kind { CARRY_ADD, CARRY_SUB, CARRY_MAD_LO, CARRY_MAD_HI, CARRY_MAD_HI_SIGNED };

enum trap_kind { TRAP_PLAIN, TRAP_TOO_DEEP, TRAP_NO_FUNCTION };

/* fence */
enum { FENCE_BLOCK = 1 }; /* orders threads of the block only */

/* ldmatrix and stmatrix: as stored, transposed, sixteen elements of 4 or 6 bits spread to bytes.
 * With MATRIX_BYTES: 16x16 (16x8 of a store) of bytes, transposed. */
enum { MATRIX_PLAIN, MATRIX_TRANS, MATRIX_B4, MATRIX_B6, MATRIX_FORM = 7, MATRIX_BYTES = 8 };

#endif
