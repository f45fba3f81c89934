/*
 * async.c - cp.async, which lands only at its wait, and mbarrier.
 *
 * Deferring the data to the wait makes a missing wait visible in the result,
 * and the shadow names the line. An mbarrier lives in its 8 bytes of shared
 * memory: expected arrivals (20 bits), pending (20 bits), phase (24 bits).
 */
#include "simt/device.h"

#include "simt/atoms.h"

#include <string.h>

static void land(struct warp *w, struct copy *c)
{
    for (u32 m = c->mask; m; m &= m - 1) {
        u32 lane = (u32)__builtin_ctz(m);
        u8 *dst = w->blk->b.smem + c->dst[lane];
        memcpy(dst, (const void *)(uintptr_t)c->src[lane], c->bytes[lane]);
        memset(dst + c->bytes[lane], 0, c->size - c->bytes[lane]);
        if (w->blk->cell)
            race_flight(w, lane, c->dst[lane], c->size, c->site, false);
    }
}

static void land_first(struct warp *w, size_t n)
{
    for (size_t i = 0; i < n; i++)
        land(w, &w->copy[i]);
    memmove(w->copy, w->copy + n, (w->copies - n) * sizeof *w->copy);
    w->copies -= n;
}

void dev_cp_async(struct sw_warp *sw, u32 m, const void *dst, const u64 *src, const u32 *bytes,
                  u32 site)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    uint64_t host[WARP], from[WARP];
    enum sw_space space;
    u32 size = s->esize, reads = 0;
    lanes_resolve(w, &m, dst, site, size, true, host, &space);
    for (u32 i = 0; i < WARP; i++) {
        from[i] = src[i] + (uint64_t)(int64_t)(int32_t)s->kind;
        if (!bytes || bytes[i])
            reads |= 1u << i;
    }
    reads &= m;
    u32 may = reads;
    lanes_check_source(w, &may, site, size, from, bytes);
    m &= ~(reads & ~may);
    if (!m || space != SW_SHARED)
        return;
    if (w->copies == w->copy_cap) {
        w->copy_cap = w->copy_cap ? w->copy_cap * 2 : 16;
        w->copy = xrealloc(w->copy, w->copy_cap * sizeof *w->copy);
    }
    struct copy *c = &w->copy[w->copies++];
    c->mask = m;
    c->size = size;
    c->site = site;
    for (u32 left = m; left; left &= left - 1) {
        u32 i = (u32)__builtin_ctz(left);
        c->src[i] = from[i];
        c->dst[i] = (u32)(host[i] - (uint64_t)(uintptr_t)w->blk->b.smem);
        c->bytes[i] = bytes ? (bytes[i] < size ? bytes[i] : size) : size;
        if (w->blk->cell)
            race_flight(w, i, c->dst[i], size, site, true);
    }
    if (w->t->l->dev->config.counters)
        count_shared(w, m, host, size, site);
}

void dev_cp_commit(struct sw_warp *sw)
{
    struct warp *w = warp_of(sw);
    if (w->groups == ARRAY_LEN(w->group_end)) {
        /* More groups than anyone counts: the oldest two become one. */
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
    if (site_of(w, site)->kind) { /* wait_all: also what was not committed */
        land_first(w, w->copies);
        w->groups = 0;
        return;
    }
    if (w->groups <= left)
        return;
    u32 done = w->groups - left, n = w->group_end[done - 1];
    land_first(w, n);
    for (u32 i = done; i < w->groups; i++)
        w->group_end[i - done] = w->group_end[i] - n;
    w->groups = left;
}

/* ---- mbarrier ---- */

static struct mbar_shadow *shadow(struct warp *w, uint32_t at)
{
    struct blk *b = w->blk;
    for (size_t i = 0; i < ARRAY_LEN(b->mbar); i++) {
        if (b->mbar[i].used && b->mbar[i].addr == at)
            return &b->mbar[i];
        if (!b->mbar[i].used) {
            b->mbar[i].used = true;
            b->mbar[i].addr = at;
            return &b->mbar[i];
        }
    }
    return &b->mbar[at / 8 % ARRAY_LEN(b->mbar)];
}

static void join(uint32_t *into, const uint32_t *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        into[i] = into[i] > from[i] ? into[i] : from[i];
}

static void arrive(struct warp *w, u64 *bar, u32 n, bool drop)
{
    u64 expected = *bar & 0xfffff, pending = *bar >> 20 & 0xfffff, phase = *bar >> 40;
    if (drop && expected)
        expected -= n < expected ? n : expected;
    pending = pending > n ? pending - n : 0;
    if (!pending) {
        phase++;
        pending = expected;
        w->blk->gen++;
    }
    *bar = expected | pending << 20 | phase << 40;
}

static void note_mbar_write(struct warp *w, uint32_t at)
{
    struct blk *b = w->blk;
    if (!b->cell)
        return;
    for (uint32_t i = at / 4; i < at / 4 + 2; i++)
        b->cell[i] = (struct cell){.init = 15};
}

u32 dev_mbar(struct sw_warp *sw, u32 m, const void *addr, u32 site, u64 *state, const u32 *count)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    uint64_t host[WARP];
    enum sw_space space;
    u32 result = 0, op = s->kind & 0xff;
    lanes_resolve(w, &m, addr, site, 8, op != MBAR_TEST && op != MBAR_TRY, host, &space);
    for (; m; m &= m - 1) {
        u32 i = (u32)__builtin_ctz(m);
        u64 *bar = (u64 *)(uintptr_t)host[i];
        uint32_t at = (uint32_t)(host[i] - (uint64_t)(uintptr_t)w->blk->b.smem);
        struct mbar_shadow *sh = shadow(w, at);
        u64 phase = *bar >> 40;
        switch (op) {
        case MBAR_INIT:
            *bar = (count ? count[i] & 0xfffff : 1) | (u64)(count ? count[i] & 0xfffff : 1) << 20;
            memset(sh->clock, 0, sizeof sh->clock);
            note_mbar_write(w, at);
            break;
        case MBAR_INVAL:
            break;
        case MBAR_ARRIVE:
        case MBAR_ARRIVE_DROP:
            if (state)
                state[i] = phase;
            w->clock[sw->id]++;
            join(sh->clock, w->clock, w->blk->b.nwarps);
            arrive(w, bar, count ? count[i] : 1, op == MBAR_ARRIVE_DROP);
            break;
        case MBAR_PENDING:
            if (state)
                state[i] = *bar >> 20 & 0xfffff;
            break;
        default: {
            bool done = s->kind & MBAR_PARITY ? count && (phase & 1) != (count[i] & 1)
                                              : state && phase != state[i];
            if (!done)
                break;
            result |= 1u << i;
            join(w->clock, sh->clock, w->blk->b.nwarps);
        }
        }
    }
    if ((op == MBAR_TEST || op == MBAR_TRY) && !result) {
        w->polled = true;
        sw->fuel = sw->fuel > 4 ? 4 : sw->fuel; /* it will try again: others first */
    }
    return result;
}

void dev_cp_mbar(struct sw_warp *sw, u32 m, const void *addr, u32 site)
{
    struct warp *w = warp_of(sw);
    uint64_t host[WARP];
    enum sw_space space;
    land_first(w, w->copies);
    w->groups = 0;
    lanes_resolve(w, &m, addr, site, 8, true, host, &space);
    for (; m; m &= m - 1) {
        u64 *bar = (u64 *)(uintptr_t)host[__builtin_ctz(m)];
        uint32_t at = (uint32_t)((uint64_t)(uintptr_t)bar - (uint64_t)(uintptr_t)w->blk->b.smem);
        struct mbar_shadow *sh = shadow(w, at);
        w->clock[sw->id]++;
        join(sh->clock, w->clock, w->blk->b.nwarps);
        if (site_of(w, site)->kind)
            arrive(w, bar, 1, false);
    }
}
