/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spread_access.c - loads and stores of global memory whose lanes lie as they did the last time.
 *
 * Hides: the copies. In blocks that are narrower than a warp, a warp covers several rows, so its
 * lanes neither lie side by side nor at one place; but they lie alike in every turn of a loop.
 * The pattern is found once (lane_groups.h), then an access is a comparison of addresses, one of
 * bounds, and a few copies. Halves and bytes, and warps with lanes missing, go here too.
 */
#include "simt/device/lane_groups.h"

enum { MISSES = 4, PAUSE = 60 };

/* Global memory, registers as wide as they are thought to be, nothing ordered on purpose. */
INLINE bool spread_site(const struct sw_site *s, u32 m, void *const *reg)
{
    if (s->space == SW_SHARED || s->space == SW_LOCAL || s->space == SW_PARAM ||
        s->space == SW_CLUSTER || s->flags & (SW_A32 | SW_STRONG | SW_RELEASE) ||
        !(s->flags & SW_WIDE) != (s->esize != 8) || s->vec > 4 || s->vec == 3 || !m)
        return false;
    for (int v = 0; v < s->vec; v++)
        if (!reg[v])
            return false;
    return true;
}

/* Of the lanes' lowest address: aligned, and all of them inside the buffer. */
INLINE bool spread_inside(const struct range *c, const struct spread *q, u64 at, u32 bytes)
{
    return c->alloc && !(at & (bytes - 1)) && at >= c->lo && at <= c->hi &&
           q->top + bytes <= c->hi - at;
}

/* Learned, unless the last ones did not come again. */
static bool spread_new(struct spread *q, const struct sw_site *s, u32 m, const u64 *a, u32 bytes,
                       void *const *reg)
{
    if (!spread_site(s, m, reg))
        return false;
    if (q->pause) {
        q->pause--;
        return false;
    }
    if (++q->misses > MISSES) {
        q->misses = 0;
        q->pause = PAUSE;
    }
    return q->single = spread_learn(q, m, a, bytes);
}

static void spread_count(struct warp *w, u32 m, const struct spread *q, u64 at, u32 bytes, u32 site,
                         bool write)
{
    if (!w->t->l->dev->config.counters)
        return;
    if (m == ~0u && (q->how == IN_ROW || q->how == AT_ONE_PLACE)) {
        count_global_row(w, at, bytes, q->how == IN_ROW ? SHAPE_ROW : SHAPE_SAME, write);
        return;
    }
    uint64_t host[WARP];
    for (int i = 0; i < WARP; i++)
        host[i] = at + q->at[i];
    count_global(w, m, host, bytes, SHAPE_MIXED, site, write);
}

/* ---- loads ---- */

INLINE u32 small_value(const u8 *p, u32 esize, bool sign)
{
    u16 x;
    if (esize == 1)
        return sign ? (u32)(s32)(signed char)*p : *p;
    memcpy(&x, p, sizeof x);
    return sign ? (u32)(s32)(s16)x : x;
}

/* Bytes and halves, widened to words. */
INLINE void load_narrow(const struct sw_site *s, u32 m, const u8 *p, const struct spread *q,
                        void *const *dst)
{
    bool sign = s->flags & SW_SIGNED, rows = q->how == IN_ROW || q->how == ROWS_16;
    for (u32 v = 0; v < s->vec; v++, p += s->esize) {
        u32 *d = dst[v];
        if (m != ~0u) {
            for (u32 left = m; left; left &= left - 1) {
                u32 i = (u32)__builtin_ctz(left);
                d[i] = small_value(p + q->at[i], s->esize, sign);
            }
        } else if (rows && s->vec == 1 && s->esize == 2 && !sign) {
            for (u32 half = 0; half < WARP; half += HALF)
                for (u32 i = 0; i < HALF; i++)
                    d[half + i] = small_value(p + q->at[half] + 2 * i, 2, false);
        } else if (s->esize == 2) {
            for (int i = 0; i < WARP; i++)
                d[i] = small_value(p + q->at[i], 2, sign);
        } else {
            for (int i = 0; i < WARP; i++)
                d[i] = small_value(p + q->at[i], 1, sign);
        }
    }
}

INLINE void load_some(const struct sw_site *s, u32 m, const u8 *p, const u32 *at, void *const *dst)
{
    for (u32 v = 0; v < s->vec; v++, p += s->esize)
        for (u32 left = m; left; left &= left - 1) {
            u32 i = (u32)__builtin_ctz(left);
            if (s->esize == 4)
                memcpy((u32 *)dst[v] + i, p + at[i], 4);
            else
                memcpy((u64 *)dst[v] + i, p + at[i], 8);
        }
}

INLINE void load_whole(const struct sw_site *s, const u8 *p, const struct spread *q,
                       void *const *dst)
{
    const enum pattern how = (enum pattern)q->how;
    const u32 *at = q->at;
    if (s->esize == 8) {
        u64 *const d[4] = {dst[0], s->vec > 1 ? dst[1] : NULL, s->vec > 2 ? dst[2] : NULL,
                           s->vec > 2 ? dst[3] : NULL};
        load_pairs(d, p, at, s->vec);
    } else if (s->vec == 1) {
        load_words(dst[0], p, at, how);
    } else if (s->vec == 4) {
        u32 *const d[4] = {dst[0], dst[1], dst[2], dst[3]};
        load_quads(d, p, at, how);
    } else {
        for (int v = 0; v < 2; v++)
            load_words(dst[v], p + 4 * v, at, at_places(how) ? how : ANYWHERE);
    }
}

/* Where the loop around it will be four turns on. */
INLINE void fetch_ahead(struct range *c, const struct spread *q, u64 at)
{
#if defined(__x86_64__)
    u64 step = at - c->last;
    const u8 *ahead = (const u8 *)(uintptr_t)(at + 4 * step);
    c->last = at;
    if (step && q->how != AT_ONE_PLACE) {
        __builtin_prefetch(ahead);
        __builtin_prefetch(ahead + (q->at[HALF] ? q->at[HALF] : 64));
    }
#else
    (void)c;
    (void)q;
    (void)at;
#endif
}

/* Inside its buffer, and no check has more to say: the data. */
INLINE bool load_known(struct warp *w, const struct sw_site *s, u32 m, u32 site, const u64 *a,
                       void *const *dst)
{
    const struct spread *q = &w->t->spread[site];
    struct range *c = &w->t->cache[site];
    const struct simt_config *cfg = &w->t->l->dev->config;
    u32 bytes = (u32)s->esize * s->vec;
    u64 at = a[__builtin_ctz(m)] + (u64)s->off + q->low;
    if (!spread_inside(c, q, at, bytes) ||
        (cfg->check == SIMT_CHECK_FULL && !shadow_quiet(c->alloc)))
        return false;
    w->last_site = site;
    if (cfg->counters)
        spread_count(w, m, q, at, bytes, site, false);
    fetch_ahead(c, q, at);
    const u8 *p = (const u8 *)(uintptr_t)at;
    if (s->esize < 4)
        load_narrow(s, m, p, q, dst);
    else if (m != ~0u)
        load_some(s, m, p, q->at, dst);
    else
        load_whole(s, p, q, dst);
    return true;
}

HOT bool load_spread(struct warp *w, u32 m, u32 site, const u64 *a)
{
    struct spread *q = &w->t->spread[site];
    if (!q->single || !spread_holds(q, m, a))
        return false;
    const struct sw_site *s = site_of(w, site);
    void *dst[4];
    regs_lanes(w, s, 0, s->vec, dst);
    q->misses = 0;
    return load_known(w, s, m, site, a, dst);
}

/* A word of every lane, and nothing is counted. */
static void spread_heat(struct warp *w, const struct sw_site *s, u32 m, u32 site)
{
    struct spread *q = &w->t->spread[site];
    const struct range *c = &w->t->cache[site];
    const struct simt_config *cfg = &w->t->l->dev->config;
    if (m != ~0u || s->esize != 4 || s->vec != 1 || cfg->counters || cfg->profile || c->lo & 3 ||
        c->hi - c->lo < q->top + 4)
        return;
    q->hot = HOT_ONE;
    q->addr = s->addr;
    q->dst = w->t->l->k->regs[s->regs];
    q->lo = c->lo - (u64)s->off;
    q->room = c->hi - c->lo - q->top - 3;
    q->alloc = c->alloc;
}

HOT bool load_spread_new(struct warp *w, u32 m, u32 site, const u64 *a, void *const *dst)
{
    const struct sw_site *s = site_of(w, site);
    if (!spread_new(&w->t->spread[site], s, m, a, (u32)s->esize * s->vec, dst) ||
        !load_known(w, s, m, site, a, dst))
        return false;
    spread_heat(w, s, m, site);
    return true;
}

/* Nothing but the addresses decides, and whoever writes to the buffer is asked. */
INLINE bool hot_load(const struct warp *w, const struct spread *q, u32 site)
{
    const u64 *a = (const u64 *)(const void *)(w->w.fr + q->addr);
    u64 at = a[0] + q->low;
    if (at - q->lo >= q->room || (at - q->lo) & 3 || lanes_off(a, q->diff) ||
        (w->t->l->dev->config.check == SIMT_CHECK_FULL && !shadow_quiet(q->alloc)))
        return false;
    fetch_ahead(&w->t->cache[site], q, at);
    load_words((u32 *)(void *)(w->w.fr + q->dst),
               (const u8 *)(uintptr_t)(at + (u64)site_of(w, site)->off), q->at,
               (enum pattern)q->how);
    return true;
}

HOT void dev_ld(struct sw_warp *sw, u32 m, u32 site)
{
    struct warp *w = warp_of(sw);
    struct spread *q = &w->t->spread[site];
    if (m == ~0u && q->hot && hot_load(w, q, site)) {
        w->last_site = site;
        return;
    }
    load_any(sw, m, site);
}

/* ---- stores ---- */

static HOT void store_some(const struct sw_site *s, u32 m, u8 *p, const u32 *at, void *const *src)
{
    for (; m; m &= m - 1) {
        u32 i = (u32)__builtin_ctz(m);
        for (u32 v = 0; v < s->vec; v++) {
            u64 x = s->esize == 8 ? ((const u64 *)src[v])[i] : ((const u32 *)src[v])[i];
            memcpy(p + at[i] + (size_t)v * s->esize, &x, s->esize);
        }
    }
}

static HOT void store_whole(const struct sw_site *s, u8 *p, const struct spread *q,
                            void *const *src)
{
    const u32 *at = q->at;
    for (u32 v = 0; v < s->vec; v++, p += s->esize) {
        const u32 *x = src[v];
        const row16 *row = src[v];
        if (s->esize == 4 && s->vec == 1 && (q->how == IN_ROW || q->how == ROWS_16)) {
            *(row16 *)(p + at[0]) = row[0];
            *(row16 *)(p + at[HALF]) = row[1];
            continue;
        }
        for (int i = 0; i < WARP && s->esize == 8; i++)
            memcpy(p + at[i], (const u64 *)src[v] + i, 8);
        for (int i = 0; i < WARP && s->esize == 4; i++)
            memcpy(p + at[i], &x[i], 4);
        for (int i = 0; i < WARP && s->esize == 2; i++)
            memcpy(p + at[i], &x[i], 2);
        for (int i = 0; i < WARP && s->esize == 1; i++)
            p[at[i]] = (u8)x[i];
    }
}

HOT bool store_spread(struct warp *w, u32 m, u32 site, const u64 *a, void *const *src)
{
    const struct sw_site *s = site_of(w, site);
    struct spread *q = &w->t->spread[site];
    const struct range *c = &w->t->cache[site];
    u32 bytes = (u32)s->esize * s->vec;
    if (w->t->l->dev->config.check == SIMT_CHECK_FULL)
        return false;
    if (q->single && spread_holds(q, m, a))
        q->misses = 0;
    else if (!spread_new(q, s, m, a, bytes, src))
        return false;
    u64 at = a[__builtin_ctz(m)] + (u64)s->off + q->low;
    if (!spread_inside(c, q, at, bytes) || c->alloc->flags & SIMT_ALLOC_READONLY)
        return false;
    w->last_site = site;
    spread_count(w, m, q, at, bytes, site, true);
    if (m == ~0u)
        store_whole(s, (u8 *)(uintptr_t)at, q, src);
    else
        store_some(s, m, (u8 *)(uintptr_t)at, q->at, src);
    return true;
}
