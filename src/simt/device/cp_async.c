/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cp_async.c - cp.async, which lands only at its wait.
 *
 * Deferring the data to the wait makes a missing wait visible in the result,
 * and the shadow names the line.
 */
#include "simt/device/device.h"

#include <string.h>

static inline void land_lane(u8 *smem, const struct copy *c, u32 lane)
{
    u8 *dst = smem + c->dst[lane];
    const void *src = (const void *)(uintptr_t)c->src[lane];
    if (c->bytes[lane] == 16) { /* a size known here is one instruction */
        memcpy(dst, src, 16);
    } else {
        memcpy(dst, src, c->bytes[lane]);
        memset(dst + c->bytes[lane], 0, c->size - c->bytes[lane]);
    }
}

static void land(struct warp *w, struct copy *c)
{
    u8 *smem = w->blk->b.smem;
    if (c->mask == ~0u)
        for (u32 lane = 0; lane < WARP; lane++)
            land_lane(smem, c, lane);
    else
        for (u32 m = c->mask; m; m &= m - 1)
            land_lane(smem, c, (u32)__builtin_ctz(m));
    if (w->blk->cell)
        race_copy_land(w, c);
}

static void land_first(struct warp *w, size_t n)
{
    if (n == 0) /* a wait without a copy before it: there may be no list */
        return;
    for (size_t i = 0; i < n; i++)
        land(w, &w->copy[i]);
    memmove(w->copy, w->copy + n, (w->copies - n) * sizeof *w->copy);
    w->copies -= n;
}

/* Places in shared memory of the lanes that may go there. */
static u32 targets(struct warp *w, u32 m, const void *dst, u32 site, u32 size, u32 *at)
{
    uint64_t host[WARP];
    enum sw_space space;
    if (m == ~0u && lanes_shared(w, dst, site, size, at))
        return m;
    lanes_resolve(w, &m, dst, site, size, true, host, &space);
    for (u32 i = 0; i < WARP; i++)
        at[i] = (u32)(host[i] - (uint64_t)(uintptr_t)w->blk->b.smem);
    return space == SW_SHARED ? m : 0;
}

/* Its reads of global memory, checked when it is issued; the GPU may read later. */
static void note_source(struct warp *w, u32 m, const struct copy *c, u32 size, u32 site)
{
    const struct alloc *x = w->t->cache[site].alloc;
    u32 whole = 0;
    if (w->t->l->dev->config.check != SIMT_CHECK_FULL || (x && shadow_quiet(x)))
        return;
    for (u32 left = m; left; left &= left - 1)
        whole |= (u32)(c->bytes[__builtin_ctz(left)] == size) << __builtin_ctz(left);
    if (whole && !(whole == ~0u && shape_of(c->src, size) == SHAPE_ROW &&
                   shadow_row(w, c->src[0], size, site, false)))
        shadow_global(w, whole, c->src, size, site, false);
    for (u32 left = m & ~whole; left; left &= left - 1)
        shadow_global(w, left & (0 - left), c->src, c->bytes[__builtin_ctz(left)], site, false);
}

void dev_cp_async(struct sw_warp *sw, u32 m, const void *dst, const u64 *src, const u32 *bytes,
                  u32 site)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    u32 size = s->esize, reads = 0;
    if (w->copies == w->copy_cap) {
        w->copy_cap = w->copy_cap ? w->copy_cap * 2 : 16;
        w->copy = xrealloc(w->copy, w->copy_cap * sizeof *w->copy);
    }
    struct copy *c = &w->copy[w->copies];
    m = targets(w, m, dst, site, size, c->dst);
    for (u32 i = 0; i < WARP; i++) {
        c->src[i] = src[i] + (uint64_t)(int64_t)(int32_t)s->kind;
        c->bytes[i] = bytes && bytes[i] < size ? bytes[i] : size;
        reads |= (u32)(c->bytes[i] != 0) << i;
    }
    reads &= m;
    u32 may = reads;
    lanes_check_source(w, &may, site, size, c->src, bytes);
    m &= ~(reads & ~may);
    if (!m)
        return;
    if (may)
        note_source(w, may, c, size, site);
    w->copies++;
    c->mask = m;
    c->size = size;
    c->site = site;
    if (w->blk->cell)
        race_copy_begin(w, c);
    /* The data bypass the shared-memory banks' arbitration: one pass, whatever the pattern. */
    w->t->n.async_copies++;
    w->t->n.async_bytes += (uint64_t)size * (uint64_t)__builtin_popcount(m);
    if (w->t->l->dev->config.counters) {
        w->t->n.shared_requests++;
        w->t->n.shared_wavefronts++;
        if (may)
            count_global(w, may, c->src, size, SHAPE_MIXED, site, false);
    }
}

void dev_cp_commit(struct sw_warp *sw)
{
    struct warp *w = warp_of(sw);
    if (w->groups == ARRAY_LEN(w->group_end)) {
        /* More groups than can be waited for separately: merges the oldest two. */
        memmove(w->group_end, w->group_end + 1,
                (ARRAY_LEN(w->group_end) - 1) * sizeof *w->group_end);
        w->groups--;
    }
    w->group_end[w->groups++] = (u32)w->copies;
}

void dev_cp_wait(struct sw_warp *sw, u32 left, u32 site)
{
    struct warp *w = warp_of(sw);
    w->last_site = site;
    w->t->n.async_waits++;
    if (site_of(w, site)->kind) { /* wait_all: also what was not committed */
        land_first(w, w->copies);
        w->groups = 0;
        return;
    }
    if (w->groups <= left) {
        w->t->n.async_left += w->copies;
        return;
    }
    u32 done = w->groups - left, n = w->group_end[done - 1];
    land_first(w, n);
    for (u32 i = done; i < w->groups; i++)
        w->group_end[i - done] = w->group_end[i] - n;
    w->groups = left;
    w->t->n.async_left += w->copies;
}

void cp_land_all(struct warp *w)
{
    land_first(w, w->copies);
    w->groups = 0;
}
