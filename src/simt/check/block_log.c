/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_log.c - races between threads of one block on global memory.
 *
 * The shadow (global_shadow.c) knows which block touched a word, not which thread. Nearly every
 * word is accessed by one thread only, so a block's accesses are just listed until all its warps
 * synchronise. When the block accesses a word again, the list says who did before, and the vector
 * clocks (shared_race.c) whether the two are ordered.
 *
 * Invariants
 * 1. The list holds the last ENTRIES accesses: a race between accesses further apart is missed, but
 *    none is reported falsely.
 * 2. An access that repeats the last one of its instruction and warp takes no new entry: the later
 *    time represents both.
 */
#include "simt/check/block_log.h"

#include <string.h>

enum { ENTRIES = 256, KEYS = 64 };

struct log_entry {
    u64 base; /* of a row */
    u32 site, time, mask;
    u16 warp;
    u8 bytes, how;
    bool row;
};

struct block_log {
    u32 count, next;
    u64 lo[ENTRIES], hi[ENTRIES];
    struct log_entry e[ENTRIES];
    u64 at[ENTRIES][WARP]; /* where the lanes are not in a row */
    u16 key[KEYS];         /* the last entry of an instruction and warp, by hash */
};

static void span(const struct log_access *x, u64 *lo, u64 *hi)
{
    *lo = x->row;
    *hi = x->row + (u64)x->bytes * WARP;
    if (!x->host)
        return;
    *lo = UINT64_MAX;
    *hi = 0;
    for (u32 m = x->m; m; m &= m - 1) {
        u64 at = x->host[__builtin_ctz(m)];
        *lo = at < *lo ? at : *lo;
        *hi = at + x->bytes > *hi ? at + x->bytes : *hi;
    }
}

static bool repeats(const struct block_log *l, u32 i, const struct warp *w,
                    const struct log_access *x)
{
    const struct log_entry *e = &l->e[i];
    return i < l->count && e->site == x->site && e->warp == w->w.id && e->mask == x->m &&
           e->row == !x->host &&
           (e->row ? e->base == x->row : memcmp(l->at[i], x->host, sizeof l->at[i]) == 0);
}

void block_log_add(struct warp *w, const struct log_access *x, bool again)
{
    struct blk *b = w->blk;
    if (!b->log)
        b->log = xmalloc(sizeof *b->log);
    struct block_log *l = b->log;
    u32 i = l->next;
    if (again) {
        u16 *key = &l->key[(x->site * 5 + w->w.id) % KEYS];
        if (repeats(l, *key, w, x)) {
            l->e[*key].time = w->clock[w->w.id];
            return;
        }
        *key = (u16)i;
    }
    l->next = (i + 1) % ENTRIES;
    l->count = l->count < ENTRIES ? l->count + 1 : ENTRIES;
    l->e[i] = (struct log_entry){.base = x->row,
                                 .site = x->site,
                                 .time = w->clock[w->w.id],
                                 .mask = x->m,
                                 .warp = (u16)w->w.id,
                                 .bytes = (u8)x->bytes,
                                 .how = (u8)x->how,
                                 .row = !x->host};
    if (x->host)
        memcpy(l->at[i], x->host, sizeof l->at[i]);
    span(x, &l->lo[i], &l->hi[i]);
}

void block_log_clear(struct blk *b)
{
    if (b->log)
        b->log->count = b->log->next = 0;
}

/* ---- stores of one value ---- */

static void store_value(const struct warp *w, const struct sw_site *s, u32 lane, u8 *out)
{
    for (u32 v = 0; v < s->vec; v++) {
        const void *reg = reg_lanes(w, s, v);
        u64 x = !reg ? 0 : s->flags & SW_WIDE ? ((const u64 *)reg)[lane] : ((const u32 *)reg)[lane];
        memcpy(out + (size_t)v * s->esize, &x, s->esize);
    }
}

static bool is_store(const struct warp *w, u32 site)
{
    const struct sw_site *s = site_of(w, site);
    return s->role == SW_R_STORE && s->esize <= 8 && s->vec <= 4;
}

bool store_repeats(const struct warp *w, u32 lane, u32 site, const void *at)
{
    const struct sw_site *s = site_of(w, site);
    u8 value[32];
    if (!is_store(w, site))
        return false;
    store_value(w, s, lane, value);
    return memcmp(value, at, (size_t)s->esize * s->vec) == 0;
}

static void lanes_meet(struct warp *w, u32 one, u32 two, uint64_t at, u32 site, bool shared)
{
    const struct sw_site *s = site_of(w, site);
    u8 x[32], y[32];
    store_value(w, s, one, x);
    store_value(w, s, two, y);
    bool same = memcmp(x, y, (size_t)s->esize * s->vec) == 0;
    finding_add(&(struct finding_where){w, two, site},
                same     ? SIMT_SAME_VALUE
                : shared ? SIMT_RACE_SHARED
                         : SIMT_RACE_GLOBAL,
                at, NULL, (int)w->w.id, (int)one, (int)site,
                same ? "two threads store the same value to one place"
                     : "two threads of a warp store different values to one place at once: either "
                       "may stay");
}

/* Lane addresses ascend without overlap, so no two lanes conflict. */
static bool lanes_rise(const uint64_t *host)
{
    uint64_t falls = 0;
    for (u32 i = 1; i < WARP; i++)
        falls |= (uint64_t)(host[i] <= host[i - 1]);
    return !falls;
}

void store_lanes_meet(struct warp *w, u32 m, const uint64_t *host, u32 site)
{
    uint64_t seen[4] = {0}, base = (uint64_t)(uintptr_t)w->blk->b.smem;
    if ((m == ~0u && lanes_rise(host)) || !is_store(w, site) || site_of(w, site)->flags & SW_STRONG)
        return;
    for (u32 left = m; left; left &= left - 1) {
        u32 lane = (u32)__builtin_ctz(left);
        uint64_t hash = host[lane] * UINT64_C(0x9e3779b97f4a7c15) >> 56;
        uint64_t bit = UINT64_C(1) << (hash & 63), *set = &seen[hash >> 6];
        for (u32 o = *set & bit ? m & ((1u << lane) - 1) : 0; o; o &= o - 1) {
            u32 other = (u32)__builtin_ctz(o);
            if (host[other] != host[lane])
                continue;
            lanes_meet(w, other, lane, host[lane], site, host[lane] - base < w->blk->b.smem_bytes);
            return;
        }
        *set |= bit;
    }
}

/* ---- the search ---- */

static u64 lane_at(const struct block_log *l, u32 i, u32 lane)
{
    return l->e[i].row ? l->e[i].base + (u64)l->e[i].bytes * lane : l->at[i][lane];
}

/* A lane of the entry, of another thread, that accessed some of these bytes; -1: none. */
static int lane_met(const struct block_log *l, u32 i, const struct warp *w, u32 lane, u64 at,
                    u32 bytes)
{
    const struct log_entry *e = &l->e[i];
    u32 m = e->mask & (e->warp == w->w.id ? ~(1u << lane) : ~0u);
    if (e->row) { /* those that can be */
        if (at + bytes <= e->base || at >= e->base + (u64)e->bytes * WARP)
            return -1;
        u32 first = at > e->base ? (u32)((at - e->base) / e->bytes) : 0;
        u64 last = (at + bytes - 1 - e->base) / e->bytes;
        m &= ~0u << first;
        m &= last < WARP - 1 ? (2u << last) - 1 : ~0u;
        return m ? (int)__builtin_ctz(m) : -1;
    }
    for (; m; m &= m - 1) {
        u32 other = (u32)__builtin_ctz(m);
        u64 there = lane_at(l, i, other);
        if (at < there + e->bytes && there < at + bytes)
            return (int)other;
    }
    return -1;
}

static void report(struct warp *w, u32 lane, u64 at, const struct log_access *x,
                   const struct log_entry *e, u32 other)
{
    static const char *const did[] = {
        [LOG_READ] = "read", [LOG_WRITE] = "wrote", [LOG_ATOMIC] = "updated"};
    static const char *const does[] = {
        [LOG_READ] = "reads", [LOG_WRITE] = "writes", [LOG_ATOMIC] = "updates"};
    const struct alloc *near = alloc_find(w->t->l->dev, at, x->bytes);
    bool same = x->how == LOG_WRITE && e->how == LOG_WRITE &&
                store_repeats(w, lane, x->site, (const void *)(uintptr_t)at);
    finding_add(&(struct finding_where){w, lane, x->site},
                same ? SIMT_SAME_VALUE : SIMT_RACE_GLOBAL, at, near, e->warp, (int)other,
                (int)e->site,
                same ? "%s %s at offset %llu after another thread of the block %s it, with no "
                       "barrier in between; the value is the same"
                     : "%s %s at offset %llu after another thread of the block %s it, with no "
                       "barrier in between",
                does[x->how], near ? near->name : "memory",
                (unsigned long long)(near ? at - near->lo : 0), did[e->how]);
}

static void meet(struct warp *w, const struct log_access *x, u32 i)
{
    const struct block_log *l = w->blk->log;
    const struct log_entry *e = &l->e[i];
    bool plain = x->how == LOG_WRITE || e->how == LOG_WRITE;
    bool atomic = (x->how == LOG_ATOMIC) != (e->how == LOG_ATOMIC);
    if ((!plain && !atomic) || w->clock[e->warp] > e->time)
        return;
    if (e->row && !x->host && e->warp == w->w.id && e->base == x->row && e->bytes == x->bytes)
        return; /* each thread is where it was */
    for (u32 m = x->m; m; m &= m - 1) {
        u32 lane = (u32)__builtin_ctz(m);
        u64 at = x->host ? x->host[lane] : x->row + (u64)x->bytes * lane;
        int other = lane_met(l, i, w, lane, at, x->bytes);
        if (other < 0)
            continue;
        report(w, lane, at, x, e, (u32)other);
        return;
    }
}

void block_log_check(struct warp *w, const struct log_access *x)
{
    const struct block_log *l = w->blk->log;
    u64 lo, hi;
    if (!l || !x->m)
        return;
    span(x, &lo, &hi);
    for (u32 i = 0; i < l->count; i++)
        if (l->lo[i] < hi && l->hi[i] > lo)
            meet(w, x, i);
}
