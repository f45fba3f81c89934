/* SPDX-License-Identifier: Apache-2.0 */
/* block_log.h - accesses of a block's threads to global memory since the last barrier of the whole
 * block. */
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

/* again: the block has accessed this place before. */
void block_log_add(struct warp *w, const struct log_access *x, bool again);
/* Reports earlier, unordered accesses of other threads to this place. */
void block_log_check(struct warp *w, const struct log_access *x);
void block_log_clear(struct blk *b); /* all warps met */
/* Two lanes of one store write the same place: a race, or, with equal values, a warning. */
void store_lanes_meet(struct warp *w, u32 m, const uint64_t *host, u32 site);
/* Does the place already hold the value that the lane is about to store? */
bool store_repeats(const struct warp *w, u32 lane, u32 site, const void *at);

#endif
