/* SPDX-License-Identifier: Apache-2.0 */
/* block_log.h - what the threads of a block did to global memory since all of them met. */
#ifndef SIMT_BLOCK_LOG_H
#define SIMT_BLOCK_LOG_H

#include "simt/device/device.h"

enum log_how { LOG_READ, LOG_WRITE, LOG_ATOMIC };

/* One instruction of a warp: the lanes m, each with `bytes` at host[lane], or side by side from
 * `row` on. */
struct log_access {
    u32 m, bytes, site;
    enum log_how how;
    const uint64_t *host; /* NULL: a row */
    uint64_t row;
};

/* again: the block was there before. */
void block_log_add(struct warp *w, const struct log_access *x, bool again);
/* Reports what earlier accesses of other threads, with nothing to order them, did to the place. */
void block_log_check(struct warp *w, const struct log_access *x);
void block_log_clear(struct blk *b); /* all warps met */
/* Two lanes of one store at one place: a race, or, with the same value, a warning. */
void store_lanes_meet(struct warp *w, u32 m, const uint64_t *host, u32 site);
/* What the lane is about to store is there already. */
bool store_repeats(const struct warp *w, u32 lane, u32 site, const void *at);

#endif
