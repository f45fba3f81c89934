/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - loads and stores of a warp.
 *
 * Hides: which space an address is in, the fast cases (lanes side by side,
 * all lanes at one place), the checks and the traffic counters.
 *
 * Steps of an access: lane addresses -> host addresses with checks -> data. Lanes that fail a check
 * are reported and dropped; the others continue.
 */
#include "simt/check/block_log.h"
#include "simt/hopper/hopper.h"

#include <string.h>

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- reports ---- */

static void report_bounds(struct warp *w, u32 lane, u32 site, uint64_t at, u32 bytes, bool write)
{
    const struct alloc *near = alloc_nearest(w->t->l->dev, at);
    const char *what = write ? "writes" : "reads";
    struct finding_where here = {w, lane, site};
    if (near && near->gone && at >= near->lo && at < near->hi)
        finding_add(&here, SIMT_OUT_OF_BOUNDS, at, near, -1, -1, -1,
                    "%s %u bytes of %s after it was freed", what, bytes, near->name);
    else if (near && at + bytes > near->hi && at >= near->lo)
        finding_add(&here, SIMT_OUT_OF_BOUNDS, at, near, -1, -1, -1,
                    "%s %u bytes at offset %llu of %s, which has %llu bytes", what, bytes,
                    (unsigned long long)(at - near->lo), near->name,
                    (unsigned long long)(near->hi - near->lo));
    else if (near)
        finding_add(&here, SIMT_OUT_OF_BOUNDS, at, near, -1, -1, -1,
                    "%s %u bytes at %#llx, outside every buffer; %s is nearest", what, bytes,
                    (unsigned long long)at, near->name);
    else
        finding_add(&here, SIMT_OUT_OF_BOUNDS, at, NULL, -1, -1, -1,
                    "%s %u bytes at %#llx; no buffer is registered", what, bytes,
                    (unsigned long long)at);
}

static void report_window(struct warp *w, u32 lane, u32 site, int64_t at, u32 bytes, bool write,
                          const char *space, uint64_t size)
{
    const struct sw_site *s = site_of(w, site);
    bool array = s->end && strcmp(space, "shared") == 0;
    finding_add(&(struct finding_where){w, lane, site}, SIMT_OUT_OF_BOUNDS, (uint64_t)at, NULL, -1,
                -1, -1, "%s %u bytes at offset %lld of %s%s%s, which has %llu bytes",
                write ? "writes" : "reads", bytes, (long long)at, space,
                array ? " array " : " memory", array ? s->array : "", (unsigned long long)size);
}

/* ---- addresses ---- */

static void global_check(struct warp *w, u32 *m, u32 site, u32 bytes, bool write, uint64_t lo,
                         uint64_t hi, const uint64_t *host)
{
    struct range *c = &w->t->cache[site];
    struct simt *dev = w->t->l->dev;
    if (hi > lo && range_has(c, lo, hi - lo) &&
        (!write || !(c->alloc->flags & SIMT_ALLOC_READONLY)))
        return;
    struct alloc *x = hi > lo ? alloc_find(dev, lo, hi - lo) : NULL; /* else it wraps */
    if (x && !(write && x->flags & SIMT_ALLOC_READONLY)) {
        *c = (struct range){x->lo, x->hi, x, lo};
        return;
    }
    for (u32 left = *m; left; left &= left - 1) {
        u32 lane = (u32)__builtin_ctz(left);
        x = alloc_find(dev, host[lane], bytes);
        if (!x) {
            report_bounds(w, lane, site, host[lane], bytes, write);
            *m &= ~(1u << lane);
        } else if (write && x->flags & SIMT_ALLOC_READONLY) {
            finding_add(&(struct finding_where){w, lane, site}, SIMT_WRITE_TO_INPUT, host[lane], x,
                        -1, -1, -1, "writes %u bytes to %s, which is an input", bytes, x->name);
            *m &= ~(1u << lane);
        }
    }
}

static void align_check(struct warp *w, u32 *m, u32 site, u32 bytes, const uint64_t *host,
                        uint64_t base)
{
    for (u32 left = *m; left; left &= left - 1) {
        u32 lane = (u32)__builtin_ctz(left);
        if (((host[lane] - base) & (bytes - 1)) == 0)
            continue;
        finding_add(&(struct finding_where){w, lane, site}, SIMT_MISALIGNED, host[lane] - base,
                    NULL, -1, -1, -1,
                    "an access of %u bytes at an address that is not a multiple of %u", bytes,
                    bytes);
        *m &= ~(1u << lane);
    }
}

/* Shared and local addresses count from zero. */
static inline __attribute__((always_inline)) void window_resolve(struct warp *w, u32 *m, u32 site,
                                                                 u32 bytes, bool write,
                                                                 uint64_t *host,
                                                                 enum sw_space space)
{
    bool check = w->t->l->dev->config.check != SIMT_CHECK_OFF;
    uint64_t size = space == SW_SHARED ? w->blk->b.smem_bytes : w->w.local_bytes;
    uint64_t base =
        space == SW_SHARED ? (uint64_t)(uintptr_t)w->blk->b.smem : (uint64_t)(uintptr_t)w->w.local;
    uint64_t step = space == SW_SHARED ? 0 : w->w.local_bytes;
    const struct sw_site *s = site_of(w, site);
    u32 begin = 0;
    if (space == SW_SHARED && s->space == SW_SHARED)
        size = smem_window(w, s, &begin);
    uint64_t bad = 0, low_bits = 0, room = size - bytes;
    for (u32 i = 0; i < WARP; i++) {
        uint64_t on = 0 - (uint64_t)(*m >> i & 1), at = host[i] - begin;
        bad |= (at | (room - at)) & on;
        low_bits |= host[i] & on;
    }
    if (check && UNLIKELY(bad >> 63 || bytes > size)) {
        for (u32 left = *m; left; left &= left - 1) {
            u32 lane = (u32)__builtin_ctz(left);
            if (host[lane] - begin <= size && bytes <= size - (host[lane] - begin))
                continue;
            report_window(w, lane, site, (int64_t)(host[lane] - begin), bytes, write,
                          space == SW_SHARED ? "shared" : "local", size);
            *m &= ~(1u << lane);
        }
    }
    if (check && UNLIKELY(low_bits & (bytes - 1)))
        align_check(w, m, site, bytes, host, 0);
    for (u32 i = 0; i < WARP; i++)
        host[i] += base + step * i;
}

/* Generic addresses may point into shared or local memory. */
static enum sw_space generic_space(const struct warp *w, uint64_t at)
{
    uint64_t smem = (uint64_t)(uintptr_t)w->blk->b.smem, local = (uint64_t)(uintptr_t)w->w.local;
    if (at - smem < w->blk->b.smem_bytes)
        return SW_SHARED;
    if (w->w.local_bytes && at - local < w->w.local_bytes * WARP)
        return SW_LOCAL;
    uint64_t params = (uint64_t)(uintptr_t)w->blk->b.params;
    if (at - params < w->t->l->spec->param_bytes)
        return SW_PARAM;
    return SW_GLOBAL;
}

/* All active lanes inside [lo, hi) and aligned, by signs and low bits only. */
static inline __attribute__((always_inline)) bool lanes_inside(u32 m, const uint64_t *host,
                                                               uint64_t lo, uint64_t hi, u32 bytes)
{
    if (hi - lo < bytes)
        return false;
    uint64_t span = hi - lo - bytes, bad = 0, low = 0;
    for (u32 i = 0; i < WARP; i++) {
        uint64_t on = 0 - (uint64_t)(m >> i & 1), d = host[i] - lo;
        bad |= (d | (span - d)) & on;
        low |= host[i] & on;
    }
    return !(bad >> 63) && !(low & (bytes - 1));
}

static void global_slow(struct warp *w, u32 *m, u32 site, u32 bytes, bool write, uint64_t *host,
                        enum sw_space *space)
{
    uint64_t lo = UINT64_MAX, hi = 0;
    align_check(w, m, site, bytes, host, 0);
    for (u32 left = *m; left; left &= left - 1) {
        uint64_t at = host[__builtin_ctz(left)];
        lo = at < lo ? at : lo;
        hi = at > hi ? at : hi;
    }
    if (!*m)
        return;
    if (*space == SW_PARAM || (*space == SW_GENERIC && generic_space(w, lo) == SW_PARAM)) {
        uint64_t params = (uint64_t)(uintptr_t)w->blk->b.params;
        if (lo >= params && hi + bytes <= params + w->t->l->spec->param_bytes && !write) {
            *space = SW_PARAM;
            return;
        }
    }
    global_check(w, m, site, bytes, write, lo, hi + bytes, host);
}

/* A few lanes of shared memory, all of them where they may be. */
static inline __attribute__((always_inline)) bool few_shared(const struct warp *w, u32 m,
                                                             const u32 *a, const struct sw_site *s,
                                                             u32 bytes, uint64_t *host)
{
    u32 begin, size = smem_window(w, s, &begin);
    if (__builtin_popcount(m) > 8 || size < bytes)
        return false;
    memset(host, 0, WARP * sizeof *host);
    for (; m; m &= m - 1) {
        u32 lane = (u32)__builtin_ctz(m), at = a[lane] + (u32)s->off;
        if (at - begin > size - bytes || at & (bytes - 1))
            return false;
        host[lane] = at + (uint64_t)(uintptr_t)w->blk->b.smem;
    }
    return true;
}

HOT void lanes_resolve(struct warp *w, u32 *m, const void *addr, u32 site, u32 bytes, bool write,
                       uint64_t *host, enum sw_space *space)
{
    const struct sw_site *s = site_of(w, site);
    w->last_site = site;
    *space = (enum sw_space)s->space;
    if (s->space == SW_SHARED && s->flags & SW_A32 && few_shared(w, *m, addr, s, bytes, host))
        return;
    if (s->flags & SW_A32) {
        const u32 *a = addr;
        for (int i = 0; i < WARP; i++)
            host[i] = a[i] + (uint64_t)s->off;
        if (s->space == SW_SHARED)
            for (int i = 0; i < WARP; i++)
                host[i] &= 0xffffffffu;
    } else {
        const u64 *a = addr;
        for (int i = 0; i < WARP; i++)
            host[i] = a[i] + (uint64_t)s->off;
    }
    if (*space == SW_SHARED || *space == SW_LOCAL) {
        window_resolve(w, m, site, bytes, write, host, *space);
        return;
    }
    if (*space == SW_GENERIC && *m) {
        enum sw_space first = generic_space(w, host[__builtin_ctz(*m)]);
        uint64_t base = first == SW_SHARED ? (uint64_t)(uintptr_t)w->blk->b.smem
                                           : (uint64_t)(uintptr_t)w->w.local;
        bool own =
            first == SW_SHARED &&
            (!w->blk->cluster || lanes_inside(*m, host, base, base + w->blk->b.smem_bytes, bytes));
        if (own) { /* else some lanes may reach into other blocks of the cluster */
            for (int i = 0; i < WARP; i++)
                host[i] -= base;
            *space = SW_SHARED;
            window_resolve(w, m, site, bytes, write, host, SW_SHARED);
            return;
        }
        if (first == SW_LOCAL) {
            *space = SW_LOCAL;
            for (u32 left = *m; left; left &= left - 1) {
                u32 lane = (u32)__builtin_ctz(left);
                uint64_t at = host[lane] - base - lane * w->w.local_bytes;
                if (at > w->w.local_bytes || bytes > w->w.local_bytes - at) {
                    report_window(w, lane, site, (int64_t)at, bytes, write, "local",
                                  w->w.local_bytes);
                    *m &= ~(1u << lane);
                }
            }
            return;
        }
    }
    if (w->blk->cluster && *space == SW_GENERIC && *m &&
        cluster_generic(w, m, site, bytes, write, host)) {
        *space = SW_CLUSTER;
        return;
    }
    const struct range *c = &w->t->cache[site];
    if (c->alloc && !(write && c->alloc->flags & SIMT_ALLOC_READONLY) &&
        lanes_inside(*m, host, c->lo, c->hi, bytes))
        return;
    if (*m && w->t->l->dev->config.check != SIMT_CHECK_OFF)
        global_slow(w, m, site, bytes, write, host, space);
}

HOT bool lanes_shared(struct warp *w, const void *addr, u32 site, u32 bytes, u32 *at)
{
    const struct sw_site *s = site_of(w, site);
    const u32 *a = addr;
    u32 bad = 0, low = 0, size = w->blk->b.smem_bytes, off = (u32)s->off;
    if (s->space != SW_SHARED || !(s->flags & SW_A32) || size < bytes)
        return false;
    for (int i = 0; i < WARP; i++) {
        at[i] = a[i] + off;
        bad |= at[i] | (size - bytes - at[i]); /* the sign: before or behind it */
        low |= at[i];
    }
    w->last_site = site;
    return !(bad >> 31) && !(low & (bytes - 1));
}

/* The source side of an asynchronous copy: global memory, only where something is read. */
void lanes_check_source(struct warp *w, u32 *m, u32 site, u32 size, const uint64_t *from,
                        const u32 *bytes)
{
    const struct range *c = &w->t->cache[site];
    if (w->t->l->dev->config.check == SIMT_CHECK_OFF)
        return;
    bool inside = c->alloc && lanes_inside(*m, from, c->lo, c->hi, size);
    if (!inside)
        align_check(w, m, site, size, from, 0);
    for (u32 left = inside ? 0 : *m; left; left &= left - 1) {
        u32 lane = (u32)__builtin_ctz(left), n = bytes && bytes[lane] < size ? bytes[lane] : size;
        struct alloc *x = alloc_find(w->t->l->dev, from[lane], n);
        if (x) {
            w->t->cache[site] = (struct range){x->lo, x->hi, x, from[lane]};
            continue;
        }
        report_bounds(w, lane, site, from[lane], n, false);
        *m &= ~(1u << lane);
    }
}

HOT enum shape shape_of(const uint64_t *host, u32 bytes)
{
    uint64_t first = host[0], row = 0, same = 0, step = 0;
    for (int i = 0; i < WARP; i++, step += bytes) {
        uint64_t d = host[i] - first;
        row |= d ^ step;
        same |= d;
    }
    return !row ? SHAPE_ROW : !same ? SHAPE_SAME : SHAPE_MIXED;
}

/* ---- what is noted of an access ---- */

void access_account(struct warp *w, u32 m, const uint64_t *host, u32 bytes, enum sw_space space,
                    enum shape shape, u32 site, bool write)
{
    const struct simt_config *c = &w->t->l->dev->config;
    if (write && shape != SHAPE_ROW && c->check == SIMT_CHECK_FULL && space != SW_LOCAL)
        store_lanes_meet(w, m, host, site);
    if (space == SW_SHARED) {
        if (c->counters) {
            if (shape == SHAPE_SAME || (shape == SHAPE_ROW && bytes == 4)) {
                w->t->n.shared_requests++;
                w->t->n.shared_wavefronts++;
            } else {
                count_shared(w, m, host, bytes, site);
            }
        }
        if (c->check == SIMT_CHECK_FULL)
            race_access(w, m, host, bytes, site, write);
    } else if (space != SW_LOCAL && space != SW_PARAM && space != SW_CLUSTER) {
        if (c->counters)
            count_global(w, m, host, bytes, shape, site, write);
        if (c->check == SIMT_CHECK_FULL &&
            !(m == ~0u && shape == SHAPE_ROW && shadow_row(w, host[0], bytes, site, write)))
            shadow_global(w, shape == SHAPE_SAME ? m & (0 - m) : m, host, bytes, site, write);
    }
}

u32 dev_isspace(struct sw_warp *sw, u32 space, u64 addr)
{
    return generic_space(warp_of(sw), addr) == (enum sw_space)space;
}
