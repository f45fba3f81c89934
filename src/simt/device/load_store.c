/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_store.c - the data of loads and stores, with the common cases first.
 *
 * Hides: the fast cases. Nearly every access of a good kernel has all lanes contiguous or at one
 * place, inside the buffer that this instruction accessed last: one comparison of addresses, one of
 * bounds, one copy. Everything else goes through lanes_resolve() (memory.c).
 */
#include "simt/device/device.h"
#include "simt/device/lane_pattern.h"
#include "simt/device/lane_transpose.h"

#include <string.h>

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum { ALL = -1 };

/* memcpy of a known size may become a slow string instruction. */
typedef u64 chunk __attribute__((vector_size(32), aligned(1), may_alias));

static inline __attribute__((always_inline)) void copy_lanes(void *to, const void *from,
                                                             const int chunks)
{
    chunk *d = to;
    const chunk *q = from;
    for (int i = 0; i < chunks; i++)
        d[i] = q[i];
}

/* ---- one row of memory, 32 lanes side by side ---- */

static inline __attribute__((always_inline)) void spread(u32 *const *d, const u32 *q, const int n)
{
    for (int i = 0; i < WARP; i++)
        for (int v = 0; v < n; v++)
            d[v][i] = q[i * n + v];
}

static inline __attribute__((always_inline)) void gather(u32 *q, u32 *const *s, const int n)
{
    for (int i = 0; i < WARP; i++)
        for (int v = 0; v < n; v++)
            q[i * n + v] = s[v][i];
}

static inline bool all_wanted(const struct sw_site *s, void *const *dst)
{
    for (int v = 0; v < s->vec; v++)
        if (!dst[v])
            return false;
    return true;
}

static inline __attribute__((always_inline)) void load_row(const struct sw_site *s, uint64_t at,
                                                           void *const *dst)
{
    const char *p = (const char *)(uintptr_t)at;
    if (s->vec == 1 && s->esize == 4) {
        copy_lanes(dst[0], p, 4);
    } else if (s->vec == 1) {
        copy_lanes(dst[0], p, 8);
    } else if (s->esize == 4 && s->vec == 4) {
        u32 *const d[4] = {dst[0], dst[1], dst[2], dst[3]};
        quads_load(d, (const u8 *)p, NULL);
    } else if (s->esize == 4) {
        u32 *const d[2] = {dst[0], dst[1]};
        spread(d, (const u32 *)(const void *)p, 2);
    } else {
        const u64 *q = (const u64 *)(const void *)p;
        for (int v = 0; v < s->vec; v++)
            for (int i = 0; i < WARP; i++)
                ((u64 *)dst[v])[i] = q[i * s->vec + v];
    }
}

static inline __attribute__((always_inline)) void store_row(const struct sw_site *s, uint64_t at,
                                                            void *const *src)
{
    char *p = (char *)(uintptr_t)at;
    if (s->vec == 1 && s->esize == 4) {
        copy_lanes(p, src[0], 4);
    } else if (s->vec == 1) {
        copy_lanes(p, src[0], 8);
    } else if (s->esize == 4 && s->vec == 4) {
        u32 *const d[4] = {src[0], src[1], src[2], src[3]};
        quads_store((u8 *)p, d);
    } else if (s->esize == 4) {
        u32 *const d[2] = {src[0], src[1]};
        gather((u32 *)(void *)p, d, 2);
    } else {
        u64 *q = (u64 *)(void *)p;
        for (int v = 0; v < s->vec; v++)
            for (int i = 0; i < WARP; i++)
                q[i * s->vec + v] = ((const u64 *)src[v])[i];
    }
}

/* Registers and memory have the same width: rows can be copied. */
static inline bool plain(const struct sw_site *s)
{
    bool wide = s->flags & SW_WIDE;
    return ((s->esize == 4 && !wide) || (s->esize == 8 && wide)) &&
           (s->vec == 1 || s->vec == 2 || s->vec == 4);
}

/* ---- the fast cases ---- */

struct fast {
    enum shape shape;
    enum sw_space space;
    uint64_t at;
};

/* Shared memory with 32-bit addresses: shape, and inside the block's memory. */
static inline __attribute__((always_inline)) bool
fast_shared(const struct warp *w, const struct sw_site *s, const u32 *a, u32 bytes, struct fast *f)
{
    u32 row = 0, same = 0, first = a[0];
    for (u32 i = 0; i < WARP; i++) {
        u32 d = a[i] - first;
        row |= d ^ i * bytes;
        same |= d;
    }
    uint64_t at = (u32)(first + (u32)s->off);
    uint64_t span = row ? bytes : (uint64_t)bytes * WARP;
    u32 begin, size = smem_window(w, s, &begin);
    f->at = at + (uint64_t)(uintptr_t)w->blk->b.smem;
    f->space = SW_SHARED;
    f->shape = !row ? SHAPE_ROW : SHAPE_SAME;
    return (!row || !same) && (u32)at - begin + span <= size && !(at & (bytes - 1));
}

/* Global memory inside the buffer this instruction touched last. */
static inline __attribute__((always_inline)) bool fast_global(const struct warp *w,
                                                              const struct sw_site *s, const u64 *a,
                                                              u32 bytes, u32 site, struct fast *f)
{
    const struct range *c = &w->t->cache[site];
    u64 row = lanes_off_row(a, bytes), same = 0, first = a[0];
    for (int i = 0; row && i < WARP; i++)
        same |= a[i] ^ first;
    u64 at = first + (u64)s->off, span = row ? bytes : (u64)bytes * WARP;
    f->at = at;
    f->space = SW_GLOBAL;
    f->shape = !row ? SHAPE_ROW : SHAPE_SAME;
    return (!row || !same) && range_has(c, at, span) && !(at & (bytes - 1));
}

/* Tiles are often read by 16 lanes side by side, or 16 at one place, twice. */
static inline __attribute__((always_inline)) bool load_halves(const u32 *at, const u8 *base, u32 *d)
{
    u32 row = 0, same = 0, first = at[0], second = at[WARP / 2];
    for (u32 i = 0; i < WARP / 2; i++) {
        u32 x = at[i] - first, y = at[WARP / 2 + i] - second;
        row |= (x ^ 4 * i) | (y ^ 4 * i);
        same |= x | y;
    }
    if (!row) {
        copy_lanes(d, base + first, 2);
        copy_lanes(d + WARP / 2, base + second, 2);
        return true;
    }
    if (same)
        return false;
    u32 x, y;
    memcpy(&x, base + first, 4);
    memcpy(&y, base + second, 4);
    for (int i = 0; i < WARP / 2; i++) {
        d[i] = x;
        d[WARP / 2 + i] = y;
    }
    return true;
}

/* Bytes and halves, widened to words. */
static inline void load_small(const struct sw_site *s, const u8 *base, const u32 *at,
                              void *const *dst)
{
    bool sign = s->flags & SW_SIGNED;
    for (u32 v = 0; v < s->vec; v++) {
        u32 *d = dst[v];
        const u8 *p = base + v * s->esize;
        for (int i = 0; i < WARP && s->esize == 2; i++) {
            u16 x;
            memcpy(&x, p + at[i], sizeof x);
            d[i] = sign ? (u32)(s32)(s16)x : x;
        }
        for (int i = 0; i < WARP && s->esize == 1; i++)
            d[i] = sign ? (u32)(s32)(signed char)p[at[i]] : p[at[i]];
    }
}

/* Shared memory, lanes anywhere: bounds by signs, then 32 loads. */
static inline __attribute__((always_inline)) bool fast_mixed(struct warp *w,
                                                             const struct sw_site *s, u32 m,
                                                             const u32 *a, u32 bytes, u32 site,
                                                             void *const *dst)
{
    const struct simt_config *cfg = &w->t->l->dev->config;
    u32 at[WARP], bad = 0, low = 0, begin, size = smem_window(w, s, &begin), off = (u32)s->off;
    if (s->space != SW_SHARED || !(s->flags & SW_A32) || m != (u32)ALL || s->esize > 4 ||
        s->flags & SW_WIDE || size < bytes)
        return false;
    for (int i = 0; i < WARP; i++) {
        at[i] = a[i] + off;
        bad |= (at[i] - begin) | (size - bytes - (at[i] - begin));
        low |= at[i];
    }
    if (bad >> 31 || low & (bytes - 1) || (w->blk->cell && !race_read_later(w, a, bytes, site, 1)))
        return false;
    w->last_site = site;
    if (cfg->counters)
        count_shared_many(w, at, bytes, site, 1, false);
    const u8 *base = w->blk->b.smem;
    if (s->esize < 4) {
        load_small(s, base, at, dst);
        return true;
    }
    if (s->vec == 4) {
        u32 *const d[4] = {dst[0], dst[1], dst[2], dst[3]};
        quads_load(d, base, at);
        return true;
    }
    if (s->vec == 1 && load_halves(at, base, dst[0]))
        return true;
    for (int v = 0; v < s->vec; v++) {
        u32 *d = dst[v], out[WARP];
        for (int i = 0; i < WARP; i++)
            memcpy(&out[i], base + at[i] + 4 * v, 4);
        for (int i = 0; i < WARP; i++)
            d[i] = out[i];
    }
    return true;
}

static inline __attribute__((always_inline)) bool fast_case(const struct warp *w,
                                                            const struct sw_site *s, u32 m,
                                                            const void *addr, u32 bytes, u32 site,
                                                            struct fast *f)
{
    if (m != (u32)ALL || !plain(s))
        return false;
    if (s->space == SW_SHARED && s->flags & SW_A32)
        return fast_shared(w, s, addr, bytes, f);
    return s->space != SW_SHARED && s->space != SW_LOCAL && !(s->flags & SW_A32) &&
           fast_global(w, s, addr, bytes, site, f);
}

/* With all checks on: checks a row or a single place at once. */
static bool checks_done(struct warp *w, const struct fast *f, u32 bytes, u32 site, bool write)
{
    if (w->t->l->dev->config.check != SIMT_CHECK_FULL)
        return true;
    if (f->space != SW_SHARED)
        return (!write && shadow_quiet(w->t->cache[site].alloc)) ||
               (f->shape == SHAPE_ROW && shadow_row(w, f->at, bytes, site, write));
    u32 first = (u32)(f->at - (u64)(uintptr_t)w->blk->b.smem);
    return f->shape == SHAPE_ROW ? race_row(w, first, bytes, site, write)
                                 : !write && race_read_same(w, ~0u, first, bytes, site);
}

static inline void fast_count(struct warp *w, const struct fast *f, u32 bytes, bool write)
{
    struct simt_counters *n = &w->t->n;
    if (!w->t->l->dev->config.counters)
        return;
    if (f->space == SW_SHARED) {
        u64 waves = f->shape == SHAPE_SAME ? 1 : bytes > 4 ? bytes / 4 : 1;
        n->shared_requests++;
        n->shared_wavefronts += waves;
        return;
    }
    count_global_row(w, f->at, bytes, f->shape, write);
}

/* Allows the instruction to access this place again without a call (abi.h). */
static inline void learn(const struct warp *w, u32 site, u32 span, bool write)
{
    const struct simt_config *cfg = &w->t->l->dev->config;
    const struct sw_site *s = site_of(w, site);
    struct sw_fast *f = &w->t->fast[site];
    bool full = cfg->check == SIMT_CHECK_FULL, shared = s->space == SW_SHARED;
    if (f->room || cfg->profile || w->t->watching || (full && write))
        return;
    const struct range *c = &w->t->cache[site];
    if (full && !shared && (!c->alloc || !shadow_quiet(c->alloc)))
        return;
    u32 begin, size = smem_window(w, s, &begin);
    u64 lo = shared ? begin : c->lo, hi = shared ? (u64)begin + size : c->hi;
    if (hi - lo < span ||
        (!shared && (!c->alloc || (write && c->alloc->flags & SIMT_ALLOC_READONLY))))
        return;
    f->lo = lo;
    __atomic_store_n(&f->room, hi - lo - span + 1, __ATOMIC_SEQ_CST);
    if (full && !shared &&
        !shadow_quiet(c->alloc)) /* another host thread has written to it just now */
        f->room = 0;
}

/* A loop around this may wait for another warp: return to the scheduler soon. */
static inline void may_poll(struct sw_warp *sw, const struct sw_site *s)
{
    if (!(s->flags & SW_STRONG))
        return;
    if (warp_of(sw)->blk->cell && s->space != SW_SHARED)
        lock_acquires(warp_of(sw)); /* it may read what a fence has handed over */
    block_listens(warp_of(sw));
    warp_of(sw)->polled = true;
    if (sw->fuel > 50)
        sw->fuel = 50;
}

/* ---- any other case ---- */

static inline u64 load_one(const char *p, u32 esize, bool sign)
{
    switch (esize) {
    case 1: {
        u8 v = *(const u8 *)p;
        return sign ? (u64)(s64)(signed char)v : v;
    }
    case 2: {
        u16 v;
        memcpy(&v, p, sizeof v);
        return sign ? (u64)(s64)(s16)v : v;
    }
    case 4: {
        u32 v;
        memcpy(&v, p, sizeof v);
        return sign ? (u64)(s64)(s32)v : v;
    }
    default: {
        u64 v;
        memcpy(&v, p, sizeof v);
        return v;
    }
    }
}

static void load_lanes(const struct sw_site *s, u32 m, const uint64_t *host, void *const *dst)
{
    bool wide = s->flags & SW_WIDE, sign = s->flags & SW_SIGNED;
    for (int v = 0; v < s->vec; v++) {
        if (!dst[v])
            continue;
        if (s->esize == 4 && !wide && m == (u32)ALL) {
            u32 *d = dst[v];
            for (int i = 0; i < WARP; i++)
                memcpy(&d[i], (const char *)(uintptr_t)host[i] + 4 * v, 4);
            continue;
        }
        if (s->esize == 4 && !wide) {
            u32 *d = dst[v];
            for (u32 left = m; left; left &= left - 1) {
                u32 i = (u32)__builtin_ctz(left);
                memcpy(&d[i], (const char *)(uintptr_t)host[i] + 4 * v, 4);
            }
            continue;
        }
        for (u32 left = m; left; left &= left - 1) {
            u32 i = (u32)__builtin_ctz(left);
            u64 x =
                load_one((const char *)(uintptr_t)host[i] + (size_t)v * s->esize, s->esize, sign);
            if (wide)
                ((u64 *)dst[v])[i] = x;
            else
                ((u32 *)dst[v])[i] = (u32)x;
        }
    }
}

static void zero_lanes(const struct sw_site *s, u32 m, void *const *dst)
{
    for (int v = 0; v < s->vec; v++)
        for (u32 left = m; dst[v] && left; left &= left - 1) {
            u32 i = (u32)__builtin_ctz(left);
            if (s->flags & SW_WIDE)
                ((u64 *)dst[v])[i] = 0;
            else
                ((u32 *)dst[v])[i] = 0;
        }
}

static inline __attribute__((always_inline)) void load_same(const struct sw_site *s, uint64_t at,
                                                            void *const *dst)
{
    for (int v = 0; v < s->vec; v++) {
        u64 x = load_one((const char *)(uintptr_t)at + (size_t)v * s->esize, s->esize, false);
        if (s->esize == 8)
            for (int i = 0; i < WARP; i++)
                ((u64 *)dst[v])[i] = x;
        else
            for (int i = 0; i < WARP; i++)
                ((u32 *)dst[v])[i] = (u32)x;
    }
}

/* Where the loop around a row will be four turns on; NEON's machines find out by themselves. */
static inline __attribute__((always_inline)) void fetch_ahead(struct range *c, const struct fast *f)
{
#if defined(__x86_64__)
    u64 ahead = f->at + 4 * (f->at - c->last);
    if (f->space == SW_GLOBAL && ahead != f->at) {
        __builtin_prefetch((const void *)(uintptr_t)ahead);
        __builtin_prefetch((const void *)(uintptr_t)(ahead + 64));
    }
    c->last = f->at;
#else
    (void)c;
    (void)f;
#endif
}

/* A word of a few lanes from or to shared memory, when nothing is counted and races are not
 * checked: how the sums of warps meet. False: nothing is certain, go the long way. */
static inline __attribute__((always_inline)) bool few_words(struct warp *w, const struct sw_site *s,
                                                            u32 m, const u32 *a, u32 *reg, u32 site,
                                                            bool write)
{
    const struct simt_config *cfg = &w->t->l->dev->config;
    u32 begin, size = smem_window(w, s, &begin), off = (u32)s->off;
    if (s->space != SW_SHARED || !(s->flags & SW_A32) || s->flags & SW_WIDE || s->esize != 4 ||
        s->vec != 1 || !reg || __builtin_popcount(m) > 8 || size < 4 || cfg->counters ||
        cfg->check == SIMT_CHECK_FULL)
        return false;
    u32 bad = 0;
    for (u32 left = m; left; left &= left - 1) {
        u32 at = a[__builtin_ctz(left)] + off;
        bad |= (u32)(at - begin > size - 4) | (at & 3);
    }
    if (bad)
        return false;
    w->last_site = site;
    for (; m; m &= m - 1) {
        u32 i = (u32)__builtin_ctz(m);
        u8 *at = w->blk->b.smem + (u32)(a[i] + off);
        memcpy(write ? at : (u8 *)(reg + i), write ? (u8 *)(reg + i) : at, 4);
    }
    return true;
}

static HOT void load(struct sw_warp *sw, u32 m, u32 site, const void *addr)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    void *dst[8];
    regs_lanes(w, s, 0, s->vec, dst);
    uint64_t host[WARP];
    enum sw_space space;
    struct fast f;
    u32 bytes = (u32)s->esize * s->vec, asked = m;
    may_poll(sw, s);
    if (m != (u32)ALL && few_words(w, s, m, addr, dst[0], site, false))
        return;
    if (fast_case(w, s, m, addr, bytes, site, &f) && all_wanted(s, dst) &&
        checks_done(w, &f, bytes, site, false)) {
        w->last_site = site;
        fast_count(w, &f, bytes, false);
        if (f.shape == SHAPE_ROW) {
            fetch_ahead(&w->t->cache[site], &f);
            load_row(s, f.at, dst);
        } else
            load_same(s, f.at, dst);
        return;
    }
    if ((all_wanted(s, dst) && fast_mixed(w, s, m, addr, bytes, site, dst)) ||
        load_spread_new(w, m, site, addr, dst))
        return;
    lanes_resolve(w, &m, addr, site, bytes, false, host, &space);
    if (UNLIKELY(m != asked))
        zero_lanes(s, asked & ~m, dst);
    if (m)
        access_account(w, m, host, bytes, space,
                       m == (u32)ALL ? shape_of(host, bytes) : SHAPE_MIXED, site, false);
    load_lanes(s, m, host, dst);
}

void load_any(struct sw_warp *sw, u32 m, u32 site)
{
    struct warp *w = warp_of(sw);
    const void *addr = sw->fr + site_of(w, site)->addr;
    if (!w->t->spread[site].single || !load_spread(w, m, site, addr))
        load(sw, m, site, addr);
}

static void store_lanes(const struct sw_site *s, u32 m, const uint64_t *host, void *const *src)
{
    bool wide = s->flags & SW_WIDE;
    if (m == (u32)ALL && s->esize == 4 && s->vec == 1) {
        for (int i = 0; i < WARP; i++)
            memcpy((char *)(uintptr_t)host[i], (const u32 *)src[0] + i, 4);
        return;
    }
    for (u32 left = m; left; left &= left - 1) {
        u32 i = (u32)__builtin_ctz(left);
        char *p = (char *)(uintptr_t)host[i];
        for (int v = 0; v < s->vec; v++, p += s->esize) {
            if (s->esize == 4) {
                memcpy(p, (const u32 *)src[v] + i, 4);
                continue;
            }
            u64 x = wide ? ((const u64 *)src[v])[i] : ((const u32 *)src[v])[i];
            memcpy(p, &x, s->esize);
        }
    }
}

static void strong_store(struct warp *w, const struct sw_site *s)
{
    if (s->flags & SW_RELEASE)
        block_fences(w);
    if (s->space != SW_SHARED)
        block_publishes(w);
    if (s->flags & SW_RELEASE)
        lock_releases(w);
}

static HOT void store(struct sw_warp *sw, u32 m, u32 site, const void *addr)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    void *src[8];
    regs_lanes(w, s, 0, s->vec, src);
    uint64_t host[WARP];
    enum sw_space space;
    struct fast f;
    u32 bytes = (u32)s->esize * s->vec;
    if (UNLIKELY(s->flags & (SW_RELEASE | SW_STRONG)) && w->blk->cell)
        strong_store(w, s);
    if (m != (u32)ALL && few_words(w, s, m, addr, src[0], site, true))
        return;
    if (fast_case(w, s, m, addr, bytes, site, &f) && f.shape == SHAPE_ROW &&
        (f.space == SW_SHARED || !(w->t->cache[site].alloc->flags & SIMT_ALLOC_READONLY)) &&
        checks_done(w, &f, bytes, site, true)) {
        w->last_site = site;
        fast_count(w, &f, bytes, true);
        store_row(s, f.at, src);
        return;
    }
    if (store_spread(w, m, site, addr, src))
        return;
    lanes_resolve(w, &m, addr, site, bytes, true, host, &space);
    if (m)
        access_account(w, m, host, bytes, space,
                       m == (u32)ALL ? shape_of(host, bytes) : SHAPE_MIXED, site, true);
    store_lanes(s, m, host, src);
}

void dev_st(struct sw_warp *sw, u32 m, u32 site)
{
    store(sw, m, site, sw->fr + site_of(warp_of(sw), site)->addr);
}

HOT u8 *dev_quads(struct sw_warp *sw, u32 m, u32 site, u32 write)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    struct fast f;
    u32 bytes = (u32)s->esize * s->vec;
    if (!fast_case(w, s, m, sw->fr + s->addr, bytes, site, &f) || f.shape != SHAPE_ROW ||
        (write && w->t->cache[site].alloc->flags & SIMT_ALLOC_READONLY) ||
        !checks_done(w, &f, bytes, site, write))
        return NULL;
    w->last_site = site;
    fast_count(w, &f, bytes, write);
    return (u8 *)(uintptr_t)f.at;
}

/* ---- lanes at a constant distance ---- */

/* Side by side, all there, inside the buffer this instruction touched last: where. */
static inline __attribute__((always_inline)) bool affine_row(const struct warp *w,
                                                             const struct sw_site *s, u32 m,
                                                             u64 base, u32 wrapped, u32 site,
                                                             struct fast *f)
{
    u32 bytes = (u32)s->esize * s->vec;
    if (m != (u32)ALL || wrapped || s->stride != bytes || !plain(s))
        return false;
    f->shape = SHAPE_ROW;
    if (s->space == SW_SHARED && s->flags & SW_A32) {
        u32 at = (u32)base + (u32)s->off, begin, size = smem_window(w, s, &begin);
        f->space = SW_SHARED;
        f->at = at + (u64)(uintptr_t)w->blk->b.smem;
        return at - begin + (u64)bytes * WARP <= size && !(at & (bytes - 1));
    }
    const struct range *c = &w->t->cache[site];
    f->space = SW_GLOBAL;
    f->at = base + (u64)s->off;
    return s->space != SW_SHARED && !(s->flags & SW_A32) &&
           range_has(c, f->at, (u64)bytes * WARP) && !(f->at & (bytes - 1));
}

static void affine_spread(const struct sw_site *s, u64 base, u32 wrapped, u64 *lanes)
{
    u32 *narrow = (u32 *)(void *)lanes;
    for (u32 i = 0; i < WARP; i++) {
        u64 x = base + (u64)s->stride * i + (wrapped >> i & 1 ? (u64)s->wrap : 0);
        if (s->flags & SW_A32)
            narrow[i] = (u32)x;
        else
            lanes[i] = x;
    }
}

HOT void dev_lda(struct sw_warp *sw, u32 m, u64 base, u32 wrapped, u32 site)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    struct fast f;
    if (affine_row(w, s, m, base, wrapped, site, &f) && !(s->flags & SW_STRONG)) {
        void *dst[8];
        regs_lanes(w, s, 0, s->vec, dst);
        if (all_wanted(s, dst) && checks_done(w, &f, (u32)s->esize * s->vec, site, false)) {
            w->last_site = site;
            fast_count(w, &f, (u32)s->esize * s->vec, false);
            load_row(s, f.at, dst);
            learn(w, site, (u32)s->esize * s->vec * WARP, false);
            return;
        }
    }
    u64 lanes[WARP];
    affine_spread(s, base, wrapped, lanes);
    load(sw, m, site, lanes);
}

HOT void dev_sta(struct sw_warp *sw, u32 m, u64 base, u32 wrapped, u32 site)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    struct fast f;
    if (affine_row(w, s, m, base, wrapped, site, &f) && !(s->flags & (SW_RELEASE | SW_STRONG)) &&
        (f.space == SW_SHARED || !(w->t->cache[site].alloc->flags & SIMT_ALLOC_READONLY)) &&
        checks_done(w, &f, (u32)s->esize * s->vec, site, true)) {
        void *src[8];
        regs_lanes(w, s, 0, s->vec, src);
        w->last_site = site;
        fast_count(w, &f, (u32)s->esize * s->vec, true);
        store_row(s, f.at, src);
        learn(w, site, (u32)s->esize * s->vec * WARP, true);
        return;
    }
    u64 lanes[WARP];
    affine_spread(s, base, wrapped, lanes);
    store(sw, m, site, lanes);
}

/* A read inside that buffer needs no further check. */
static inline bool quiet(const struct warp *w, const struct range *c)
{
    return w->t->l->dev->config.check != SIMT_CHECK_FULL || (c->alloc && shadow_quiet(c->alloc));
}

/* All lanes read one place: one check, one value. */
void dev_ldun(struct sw_warp *sw, u32 m, u64 addr, u32 site, u64 *out)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    u32 bytes = (u32)s->esize * s->vec, lane = (u32)__builtin_ctz(m), one = 1u << lane;
    uint64_t at = addr + (uint64_t)s->off;
    struct range *c = &w->t->cache[site];
    const struct simt_config *cfg = &w->t->l->dev->config;
    may_poll(sw, s);
    if (s->space == SW_GLOBAL && range_has(c, at, bytes) && !(at & (bytes - 1)) && quiet(w, c)) {
        if (cfg->counters)
            count_global_one(w, m, at, bytes, false);
        const char *q = (const char *)(uintptr_t)at;
        for (int v = 0; v < s->vec; v++)
            out[v] = load_one(q + (size_t)v * s->esize, s->esize, s->flags & SW_SIGNED);
        return;
    }
    u64 near = s->flags & SW_A32 ? (u32)at : at;
    u32 begin, size = smem_window(w, s, &begin);
    if (s->space == SW_SHARED && near >= begin && near - begin < size &&
        bytes <= size - (near - begin) && !(near & (bytes - 1)) &&
        (!w->blk->cell || race_read_same(w, m, (u32)near, bytes, site))) {
        w->last_site = site;
        if (cfg->counters) {
            w->t->n.shared_requests++;
            w->t->n.shared_wavefronts++;
        }
        for (int v = 0; v < s->vec; v++)
            out[v] = load_one((const char *)w->blk->b.smem + near + (size_t)v * s->esize, s->esize,
                              s->flags & SW_SIGNED);
        return;
    }
    uint64_t lanes[WARP] = {0}, host[WARP];
    u32 narrow[WARP] = {0};
    enum sw_space space;
    lanes[lane] = addr;
    narrow[lane] = (u32)addr;
    lanes_resolve(w, &one, s->flags & SW_A32 ? (const void *)narrow : lanes, site, bytes, false,
                  host, &space);
    for (int v = 0; v < s->vec; v++)
        out[v] = 0;
    if (!one)
        return;
    for (u32 i = 0; i < WARP; i++)
        host[i] = host[lane];
    access_account(w, m, host, bytes, space, SHAPE_SAME, site, false);
    for (int v = 0; v < s->vec; v++)
        out[v] = load_one((const char *)(uintptr_t)host[lane] + (size_t)v * s->esize, s->esize,
                          s->flags & SW_SIGNED);
}

u64 dev_ldu(struct sw_warp *sw, u32 m, u64 addr, u32 site)
{
    const struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    const struct range *c = &w->t->cache[site];
    u64 at = addr + (u64)s->off;
    if (s->space == SW_GLOBAL && s->esize == 4 && !(s->flags & ~SW_READONLY) &&
        range_has(c, at, 4) && !(at & 3) && quiet(w, c)) {
        if (w->t->l->dev->config.counters)
            count_global_one((struct warp *)w, m, at, 4, false);
        u32 x;
        memcpy(&x, (const void *)(uintptr_t)at, 4);
        learn(w, site, 4, false);
        return x;
    }
    u64 out[8];
    dev_ldun(sw, m, addr, site, out);
    if (s->space == SW_SHARED)
        learn(w, site, s->esize, false);
    return out[0];
}
