/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane_pattern.h - do the addresses of 32 lanes match an expected pattern?
 *
 * On aarch64 with four independent sums, because gcc would make one dependency chain.
 */
#ifndef SIMT_LANE_PATTERN_H
#define SIMT_LANE_PATTERN_H

#include "simt/emit/abi.h"

#define LANES_INLINE static inline __attribute__((always_inline))

#if defined(__aarch64__)
typedef u64 lane_pair __attribute__((vector_size(16), aligned(8), may_alias));

LANES_INLINE u64 lane_pairs_any(lane_pair x0, lane_pair x1, lane_pair x2, lane_pair x3)
{
    x0 |= x1;
    x2 |= x3;
    x0 |= x2;
    return x0[0] | x0[1];
}

/* 0: lane i is at a[0] + diff[i]. */
LANES_INLINE u64 lanes_off(const u64 *a, const u64 *diff)
{
    const lane_pair *p = (const lane_pair *)a, *q = (const lane_pair *)diff;
    lane_pair f = {a[0], a[0]}, x0 = {0}, x1 = {0}, x2 = {0}, x3 = {0};
    for (int i = 0; i < 16; i += 4) {
        x0 |= (p[i] - f) ^ q[i];
        x1 |= (p[i + 1] - f) ^ q[i + 1];
        x2 |= (p[i + 2] - f) ^ q[i + 2];
        x3 |= (p[i + 3] - f) ^ q[i + 3];
    }
    return lane_pairs_any(x0, x1, x2, x3);
}

/* 0: lane i is at a[0] + i * bytes. */
LANES_INLINE u64 lanes_off_row(const u64 *a, u64 bytes)
{
    const lane_pair *p = (const lane_pair *)a;
    lane_pair w = {a[0], a[0] + bytes}, x0 = {0}, x1 = {0}, x2 = {0}, x3 = {0};
    for (int i = 0; i < 16; i += 4, w += 8 * bytes) {
        x0 |= p[i] ^ w;
        x1 |= p[i + 1] ^ (w + 2 * bytes);
        x2 |= p[i + 2] ^ (w + 4 * bytes);
        x3 |= p[i + 3] ^ (w + 6 * bytes);
    }
    return lane_pairs_any(x0, x1, x2, x3);
}
#else
LANES_INLINE u64 lanes_off(const u64 *a, const u64 *diff)
{
    u64 off = 0, first = a[0];
    for (int i = 0; i < 32; i++)
        off |= (a[i] - first) ^ diff[i];
    return off;
}

LANES_INLINE u64 lanes_off_row(const u64 *a, u64 bytes)
{
    u64 off = 0, want = a[0];
    for (int i = 0; i < 32; i++, want += bytes)
        off |= a[i] ^ want;
    return off;
}
#endif

#endif
