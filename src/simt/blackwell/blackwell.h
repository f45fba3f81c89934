/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blackwell.h - sm_100's additions: tensor memory and tcgen05.
 *
 * A block has 128 lanes of 512 columns of 32 bits. Columns are allocated by tcgen05.alloc; an
 * address has the lane in its upper and the column in its lower half. The four warps of a warpgroup
 * load and store a quarter of the lanes each; products (tcgen05.mma) and copies (tcgen05.cp) write
 * all of them and run by themselves until an mbarrier that tcgen05.commit signals is waited for.
 *
 * Files: tensor_memory.c (columns, loads, stores, and who may touch what), tcgen05.c (products,
 * copies, commits).
 *
 * Invariants
 * 1. A product is formed at once. The shadow keeps threads from seeing it before its
 *    commit: a quarter of a column remembers who wrote and who read it last, by the clocks of
 *    shared_race.c; asynchronous work has the entry TENSOR.
 * 2. The shadow is used while checks are on; bounds are kept always.
 * 3. A barrier of threads (bar.sync) orders tcgen05 of two warps only with tcgen05.fence before and
 *    after it; an mbarrier or a cluster barrier does so by itself (CUTLASS relies on it).
 */
#ifndef SIMT_BLACKWELL_H
#define SIMT_BLACKWELL_H

#include "simt/hopper/hopper.h"

enum tc_op {
    TC_ALLOC,
    TC_DEALLOC,
    TC_RELINQUISH,
    TC_MMA,
    TC_CP,
    TC_SHIFT,
    TC_COMMIT,
    TC_LD,
    TC_ST,
    TC_WAIT_LD,
    TC_WAIT_ST,
    TC_FENCE_BEFORE,
    TC_FENCE_AFTER
};
enum tc_kind { TC_F16, TC_TF32, TC_I8, TC_F8F6F4, TC_MXF8F6F4, TC_MXF4, TC_MXF4NVF4 };
enum tc_shape { TC_32X32, TC_16X64, TC_16X128, TC_16X256, TC_16X32X2 };
enum tc_copy { TC_128X256, TC_4X256, TC_128X128, TC_64X128_02, TC_64X128_01, TC_32X128 };

/* The kind of a site: the operation, flags, and by operation: the kind of a product and its scales
 * (1 + log2 of how many), the shape of a load or store and log2 of its count, the form of a
 * copy. */
enum {
    TC_OP = 15,
    TC_PAIR = 1 << 4,     /* cta_group::2 */
    TC_A_MEMORY = 1 << 5, /* A in tensor memory */
    TC_MULTICAST = 1 << 6,
    TC_GENERIC = 1 << 7, /* the address of an mbarrier */
    TC_PACK = 1 << 8,    /* two columns of 16 bits in a register */
    TC_KIND_SHIFT = 9,
    TC_KINDS = 7,
    TC_SCALE_SHIFT = 12,
    TC_SCALES = 3,
    TC_TIMES_SHIFT = 14,
    TC_TIMES = 7
};

enum { TM_LANES = 128, TM_COLUMNS = 512, TM_QUARTERS = 4 };

/* A quarter (32 lanes) of a column: its last accesses. */
struct tm_cell {
    uint32_t known; /* lanes that were written */
    uint32_t wtime, rtime, wseq, rseq;
    uint16_t wsite, rsite;
    uint8_t wwho, rwho; /* warps, or TENSOR */
    bool written, read;
};

struct tensor_memory {
    struct blk *b; /* whose it is */
    uint32_t word[TM_LANES][TM_COLUMNS];
    struct tm_cell cell[TM_QUARTERS][TM_COLUMNS];
    uint16_t owner[TM_COLUMNS]; /* 1 + first column of its allocation; 0: free */
    bool freed[TM_COLUMNS];     /* and was not always */
    uint32_t site[TM_COLUMNS];  /* of the allocation that begins there */
    bool relinquished;
    uint32_t time; /* of asynchronous work: grows with each commit */
};

struct tensor_memory *tensor_memory_of(struct blk *b);
/* May columns [first, first + count) be accessed? False: reported. */
bool tm_inside(struct warp *w, u32 lane, u32 site, struct tensor_memory *t, u32 first, u32 count,
               const char *what);
/* Asynchronous work of a warp reads or writes lanes of columns. accumulate: and reads them. */
bool tm_async_read(struct warp *w, u32 lane, u32 site, struct tensor_memory *t,
                   const uint32_t lanes[TM_QUARTERS], u32 first, u32 count, const char *what);
bool tm_async_write(struct warp *w, u32 lane, u32 site, struct tensor_memory *t,
                    const uint32_t lanes[TM_QUARTERS], u32 first, u32 count, bool accumulate);
void tensor_leave(struct blk *b); /* its last warp left */

void dev_tc(struct sw_warp *, u32 m, u32 site, const struct sw_tc *x);
void tc_mma(struct warp *w, u32 lane, u32 site, const struct sw_tc *x);
void tc_copy(struct warp *w, u32 lane, u32 site, const struct sw_tc *x);
void tc_shift(struct warp *w, u32 lane, u32 site, const struct sw_tc *x);
void tc_commit(struct warp *w, u32 lane, u32 site, const struct sw_tc *x);

#endif
