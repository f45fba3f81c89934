/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batched_access.c - several loads of a warp from one register at constant offsets, and stores.
 *
 * Hides: lane patterns. Unrolled code reads a tile with one address register, so lane positions and
 * bounds are checked once for all of the loads; the rest is copying. Patterns other than those
 * below are handled load by load.
 */
#include "simt/device/device.h"
#include "simt/device/lane_groups.h"
#include "simt/device/lane_pattern.h"
#include "simt/ptx/call_kinds.h"

#include <string.h>

enum { ALL = -1 };

/* Four loads of one word each, one after the other in memory. */
INLINE bool four_words(const struct sw_site *s, u32 left)
{
    return left >= 4 && s->vec == 1 && s->esize == 4 && s[1].off == s->off + 4 &&
           s[2].off == s->off + 8 && s[3].off == s->off + 12;
}

/* Every site of the group, at its offset from p. */
INLINE void load_all(struct warp *w, u32 site, u32 n, const u8 *base, const u32 *a,
                     enum pattern how)
{
    for (u32 i = 0; i < n; i++) {
        const struct sw_site *s = site_of(w, site + i);
        const u8 *p = base + s->off;
        void *d[4];
        if (how == ANYWHERE && four_words(s, n - i)) {
            for (u32 v = 0; v < 4; v++)
                d[v] = reg_lanes(w, s + v, 0);
            load_quads((u32 *const *)d, p, a, how);
            i += 3;
            continue;
        }
        regs_lanes(w, s, 0, s->vec, d);
        if (s->esize == 8)
            load_pairs((u64 *const *)d, p, a, s->vec);
        else if (s->vec == 1)
            load_words(d[0], p, a, how);
        else if (s->vec == 4)
            load_quads((u32 *const *)d, p, a, how);
        else
            for (int v = 0; v < 2; v++)
                load_words(d[v], p + 4 * v, a, at_places(how) ? how : ANYWHERE);
    }
}

/* Every register of the group has lanes; a site begins one group only, so it is found out once. */
static inline bool wanted(const struct warp *w, u32 site, u32 n)
{
    enum { YES = 1, NO };
    uint8_t *known = &w->t->wanted[site];
    if (*known)
        return *known == YES;
    *known = YES;
    for (u32 i = 0; i < n; i++) {
        const struct sw_site *s = site_of(w, site + i);
        for (u32 v = 0; v < s->vec; v++)
            if (!reg_lanes(w, s, v))
                *known = NO;
    }
    return *known == YES;
}

/* All lanes inside shared memory at every offset, and aligned. */
INLINE bool shared_inside(const struct warp *w, const struct sw_site *s, const u32 *a, s64 lo,
                          s64 hi, u32 bytes)
{
    u32 begin, size = smem_window(w, s, &begin), bad = 0, low = 0, span = (u32)(hi - lo);
    u32 off = (u32)lo - begin;
    if (size < span)
        return false;
    for (int i = 0; i < WARP; i++) {
        u32 at = a[i] + off;
        bad |= at | (size - span - at);
        low |= a[i];
    }
    return !(bad >> 31) && !(low & (bytes - 1));
}

static HOT bool loads_shared(struct warp *w, u32 site, u32 n, s64 lo, s64 hi)
{
    const struct sw_site *s = site_of(w, site);
    u32 bytes = (u32)s->esize * s->vec;
    const u32 *a = (const u32 *)(const void *)(w->w.fr + s->addr);
    if (!shared_inside(w, s, a, lo, hi, bytes) ||
        (w->blk->cell && !race_read_later(w, a, bytes, site, n)))
        return false;
    enum pattern how = pattern_of(a, bytes);
    if (w->t->l->dev->config.counters)
        count_shared_many(w, a, bytes, site, n, how == AT_ONE_PLACE);
    u32 at[WARP];
    memcpy(at, a, sizeof at); /* a result may lie where the address was */
    load_all(w, site, n, w->blk->b.smem, at, how);
    return true;
}

static HOT bool strip_fits(const struct warp *w, const struct sw_site *s, const u32 *a, s64 lo,
                           s64 hi, u32 lanes, u32 step)
{
    u32 bad = 0;
    for (u32 i = 0; i < WARP; i++)
        bad |= (a[i] - a[i & (0 - lanes)]) ^ step * (i & (lanes - 1));
    return !bad && shared_inside(w, s, a, lo, hi, 4);
}

u32 dev_strip(struct sw_warp *sw, u32 m, u32 site, u32 n, s64 lo, s64 hi, u32 kind)
{
    struct warp *w = warp_of(sw);
    const struct simt_config *cfg = &w->t->l->dev->config;
    const u32 *a = (const u32 *)(const void *)(sw->fr + site_of(w, site)->addr);
    if (!kind) {
        if (cfg->counters)
            count_shared_many(w, a, 4, site, n, false);
        return 1;
    }
    w->last_site = site;
    return m == (u32)ALL && !cfg->profile &&
           strip_fits(w, site_of(w, site), a, lo, hi, kind >> STRIP_LANES_SHIFT,
                      kind & STRIP_ROW ? 4 : 0) &&
           (!w->blk->cell || race_read_later(w, a, 4, site, n));
}

/* Words of every lane, whose registers follow each other in the table; nothing is counted. */
static void loads_heat(struct warp *w, u32 site, u32 n, s64 lo, s64 hi)
{
    struct spread *q = &w->t->spread[site];
    const struct sw_site *s = site_of(w, site);
    const struct range *c = &w->t->cache[site];
    const struct simt_config *cfg = &w->t->l->dev->config;
    u64 span = (u64)(hi - lo);
    if (q->hot || cfg->counters || cfg->profile || (c->lo + (u64)s->off - (u64)lo) & 3 ||
        c->hi - c->lo < q->top + span || q->how == ANYWHERE)
        return;
    for (u32 i = 0; i < n; i++)
        if (s[i].esize != 4 || s[i].vec != 1 || s[i].flags & (SW_STRONG | SW_WIDE) ||
            s[i].regs != s->regs + i || (s[i].off - s->off) & 3)
            return;
    q->hot = HOT_GROUP;
    q->addr = s->addr;
    q->dst = w->t->l->k->regs[s->regs];
    q->lo = c->lo - (u64)lo;
    q->room = c->hi - c->lo - q->top - span + 1;
    q->alloc = c->alloc;
}

static HOT bool loads_global(struct warp *w, u32 site, u32 n, s64 lo, s64 hi)
{
    const struct sw_site *s = site_of(w, site);
    const struct range *c = &w->t->cache[site];
    struct spread *q = &w->t->spread[site];
    u32 bytes = (u32)s->esize * s->vec;
    const u64 *a = (const u64 *)(const void *)(w->w.fr + s->addr);
    if (!spread_holds(q, (u32)ALL, a) && !spread_learn(q, (u32)ALL, a, bytes))
        return false;
    u64 first = a[0] + q->low;
    if (w->t->l->dev->config.check == SIMT_CHECK_FULL && !(c->alloc && shadow_quiet(c->alloc)))
        return false;
    if (first & (bytes - 1) || first + (u64)lo < c->lo || first + (u64)lo > c->hi ||
        first + q->top + (u64)hi > c->hi)
        return false;
    const u32 *at = q->at;
    enum pattern how = (enum pattern)q->how;
    if (w->t->l->dev->config.counters && how != IN_ROW && how != AT_ONE_PLACE)
        count_global_many(w, first, at, bytes, site, n);
    else if (w->t->l->dev->config.counters)
        for (u32 i = 0; i < n; i++)
            count_global_row(w, first + (u64)site_of(w, site + i)->off, bytes,
                             how == AT_ONE_PLACE ? SHAPE_SAME : SHAPE_ROW, false);
    load_all(w, site, n, (const u8 *)(uintptr_t)first, at, how);
    loads_heat(w, site, n, lo, hi);
    return true;
}

/* Nothing but the addresses decides (loads_heat). */
INLINE bool hot_loads(const struct warp *w, const struct spread *q, u32 site, u32 n)
{
    const u64 *a = (const u64 *)(const void *)(w->w.fr + q->addr);
    const struct sw_site *s = site_of(w, site);
    const u32 *regs = w->t->l->k->regs + s->regs;
    u8 *fr = w->w.fr;
    u64 at = a[0] + q->low;
    if (at - q->lo >= q->room || (at - q->lo) & 3 || lanes_off(a, q->diff) ||
        (w->t->l->dev->config.check == SIMT_CHECK_FULL && !shadow_quiet(q->alloc)))
        return false;
    for (u32 i = 0; i < n; i++)
        load_words((u32 *)(void *)(fr + regs[i]), (const u8 *)(uintptr_t)(at + (u64)s[i].off),
                   q->at, (enum pattern)q->how);
    return true;
}

HOT void dev_lds(struct sw_warp *sw, u32 m, u32 site, u32 n, s64 lo, s64 hi)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    bool wide = s->flags & SW_WIDE;
    w->last_site = site;
    if (m == (u32)ALL && w->t->spread[site].hot == HOT_GROUP &&
        hot_loads(w, &w->t->spread[site], site, n))
        return;
    if (m == (u32)ALL && wide == (s->esize == 8) && s->vec <= 4 && s->vec != 3 &&
        wanted(w, site, n)) {
        if (s->space == SW_SHARED && s->flags & SW_A32) {
            if (loads_shared(w, site, n, lo, hi))
                return;
        } else if (s->space != SW_SHARED && s->space != SW_LOCAL && !(s->flags & SW_A32)) {
            if (loads_global(w, site, n, lo, hi))
                return;
        }
    }
    for (u32 i = 0; i < n; i++)
        dev_ld(sw, m, site + i);
}

/* ---- stores ---- */

/* Words of all lanes side by side, at every offset inside the buffer of the last time. */
static HOT bool stores_row(struct warp *w, u32 site, u32 n, s64 lo, s64 hi)
{
    const struct sw_site *s = site_of(w, site);
    const struct range *c = &w->t->cache[site];
    const u64 *a = (const u64 *)(const void *)(w->w.fr + s->addr);
    u64 first = a[0];
    if (lanes_off_row(a, 4) || first & 3 || !c->alloc || c->alloc->flags & SIMT_ALLOC_READONLY ||
        first + (u64)lo < c->lo || first + (u64)lo > c->hi ||
        first + 4 * (WARP - 1) + (u64)hi > c->hi)
        return false;
    bool full = w->t->l->dev->config.check == SIMT_CHECK_FULL;
    for (u32 i = 0; i < n; i++) {
        u64 at = first + (u64)s[i].off;
        if (full && !shadow_row(w, at, 4, site, true)) {
            dev_st(&w->w, (u32)ALL, site + i);
            continue;
        }
        const row16 *from = reg_lanes(w, s + i, 0);
        ((row16 *)(uintptr_t)at)[0] = from[0];
        ((row16 *)(uintptr_t)at)[1] = from[1];
        if (w->t->l->dev->config.counters)
            count_global_row(w, at, 4, SHAPE_ROW, true);
    }
    return true;
}

void dev_sts(struct sw_warp *sw, u32 m, u32 site, u32 n, s64 lo, s64 hi)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    const struct simt_config *cfg = &w->t->l->dev->config;
    w->last_site = site;
    if (m == (u32)ALL && !cfg->profile && s->space != SW_SHARED && !(s->flags & SW_A32) &&
        stores_row(w, site, n, lo, hi))
        return;
    for (u32 i = 0; i < n; i++)
        w->t->l->dev->ops.st(sw, m, site + i);
}
