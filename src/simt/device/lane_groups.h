/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane_groups.h - groups of lanes that lie side by side or at one place, and copying them.
 *
 * A warp of a 16 x 16 block has two rows of 16 lanes, a warp of 8 x 8 has four of 8: what one
 * instruction reads then lies in that many places, and its pattern comes again in every turn of
 * a loop. An instruction remembers its last pattern (struct spread); while it holds, only the
 * first address is checked.
 */
#ifndef SIMT_LANE_GROUPS_H
#define SIMT_LANE_GROUPS_H

#include "simt/device/device.h"
#include "simt/device/lane_pattern.h"
#include "simt/device/lane_transpose.h"

#include <string.h>

/* Lanes of 4 to 16 bytes: all side by side, all at one place; 16, 8 or 4 side by side or at one
 * place each, as in blocks that are narrower than a warp. */
enum pattern {
    IN_ROW,
    AT_ONE_PLACE,
    ROWS_16,
    PLACES_16,
    ROWS_8,
    PLACES_8,
    ROWS_4,
    PLACES_4,
    ANYWHERE
};

#define INLINE static inline __attribute__((always_inline))

enum { HALF = WARP / 2 };

INLINE enum pattern pattern_of(const u32 *a, u32 bytes)
{
    u32 row = 0, same = 0, first = a[0], second = a[HALF];
    for (u32 i = 0; i < HALF; i++) {
        u32 x = a[i] - first, y = a[HALF + i] - second;
        row |= (x ^ bytes * i) | (y ^ bytes * i);
        same |= x | y;
    }
    if (!row)
        return second - first == bytes * HALF ? IN_ROW : ROWS_16;
    if (!same)
        return second == first ? AT_ONE_PLACE : PLACES_16;
    return ANYWHERE;
}

/* The same, and smaller groups. */
static inline enum pattern small_pattern_of(const u32 *a, u32 bytes)
{
    enum pattern how = pattern_of(a, bytes);
    for (u32 lanes = 8; how == ANYWHERE && lanes >= 4; lanes /= 2) {
        u32 row = 0, same = 0;
        for (u32 i = 0; i < WARP; i++) {
            u32 x = a[i] - a[i & (0 - lanes)];
            row |= x ^ bytes * (i & (lanes - 1));
            same |= x;
        }
        if (!row || !same)
            how = lanes == 8 ? (!row ? ROWS_8 : PLACES_8) : (!row ? ROWS_4 : PLACES_4);
    }
    return how;
}

INLINE bool at_places(enum pattern how)
{
    return how == AT_ONE_PLACE || how == PLACES_16 || how == PLACES_8 || how == PLACES_4;
}

/* One register of 32 lanes. */
INLINE void load_words(u32 *d, const u8 *p, const u32 *a, enum pattern how)
{
    row16 *out = (row16 *)d;
    u32 x, y;
    switch (how) {
    case IN_ROW:
    case ROWS_16:
        out[0] = *(const row16 *)(p + a[0]);
        out[1] = *(const row16 *)(p + a[HALF]);
        return;
    case AT_ONE_PLACE:
    case PLACES_16:
        memcpy(&x, p + a[0], 4);
        memcpy(&y, p + a[HALF], 4);
        out[0] = (row16){0} + x;
        out[1] = (row16){0} + y;
        return;
    case ROWS_8:
        for (int i = 0; i < WARP; i += 8)
            *(octet *)(d + i) = *(const octet *)(p + a[i]);
        return;
    case ROWS_4:
        for (int i = 0; i < WARP; i += 4)
            *(quad *)(d + i) = *(const quad *)(p + a[i]);
        return;
    case PLACES_8:
        for (int i = 0; i < WARP; i += 8) {
            memcpy(&x, p + a[i], 4);
            *(octet *)(d + i) = (octet){0} + x;
        }
        return;
    case PLACES_4:
        for (int i = 0; i < WARP; i += 4) {
            memcpy(&x, p + a[i], 4);
            *(quad *)(d + i) = (quad){0} + x;
        }
        return;
    default:
        for (int i = 0; i < WARP; i++)
            memcpy(&d[i], p + a[i], 4);
    }
}

INLINE void load_quads(u32 *const *d, const u8 *p, const u32 *a, enum pattern how)
{
    if (at_places(how)) {
        for (int v = 0; v < 4; v++)
            load_words(d[v], p + 4 * v, a, how);
        return;
    }
    quads_load(d, p, a);
}

INLINE void load_pairs(u64 *const *d, const u8 *p, const u32 *a, int n)
{
    for (int v = 0; v < n; v++)
        for (int i = 0; i < WARP; i++)
            memcpy(&d[v][i], p + a[i] + 8 * v, 8);
}

/* The lanes lie as they did the last time. */
INLINE bool spread_holds(const struct spread *q, u32 m, const u64 *a)
{
    if (!q->known || q->mask != m)
        return false;
    if (m == ~0u)
        return !lanes_off(a, q->diff);
    u64 off = 0, first = a[__builtin_ctz(m)];
    for (u32 i = 0; i < WARP; i++)
        off |= ((a[i] - first) ^ q->diff[i]) & (0 - (u64)(m >> i & 1));
    return !off;
}

/* How the lanes lie; false: too far apart, or not aligned to each other. */
INLINE bool spread_learn(struct spread *q, u32 m, const u64 *a, u32 bytes)
{
    u64 first = a[__builtin_ctz(m)], low = 0, top = 0, least = 0;
    for (u32 i = 0; i < WARP; i++) {
        u64 d = (a[i] - first) & (0 - (u64)(m >> i & 1));
        q->diff[i] = d;
        least = (s64)d < (s64)least ? d : least;
    }
    for (u32 i = 0; i < WARP; i++) {
        u64 d = m >> i & 1 ? q->diff[i] - least : 0;
        q->at[i] = (u32)d;
        low |= d;
        top = d > top ? d : top;
    }
    q->low = least;
    q->top = top;
    q->mask = m;
    q->single = false;
    q->hot = 0;
    q->how = m == ~0u ? small_pattern_of(q->at, bytes) : ANYWHERE;
    q->known = !(top >> 31) && !(low & (bytes - 1));
    return q->known;
}

#endif
