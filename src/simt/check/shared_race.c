/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_race.c - the shadow of shared memory: who accessed what, and was it ordered?
 *
 * Every warp has a vector clock. Its own entry increases at everything that orders it after others
 * or others after it (barriers, warp syncs, shuffles); a barrier passes the entries of arriving
 * warps to waiting ones. An access at time t of warp a is ordered before warp b exactly when b's
 * entry for a is greater than t. That also holds within a warp: two lanes are only ordered by a
 * warp sync in between.
 *
 * Most accesses never get here: shared_race_deferred.c lists them until all warps synchronise.
 *
 * A cell is 4 bytes with byte masks, the last writer, the last reader of each
 * byte and, of each half, the set of warps that read since the last barrier.
 */
#include "simt/check/shared_race.h"
#include "simt/check/block_log.h"

#include <string.h>

static bool ordered(const struct warp *w, uint32_t warp, uint32_t time)
{
    return w->clock[warp] > time;
}

static void report(struct warp *w, u32 lane, u32 site, uint32_t at, enum simt_finding_kind kind,
                   uint32_t owarp, uint32_t olane, uint32_t osite, const char *what)
{
    finding_add(&(struct finding_where){w, lane, site}, kind, at, NULL,
                owarp < MAX_WARPS ? (int)owarp : -1, olane == LANE_MANY ? 0 : (int)olane,
                (int)osite, "shared memory at offset %u: %s", at, what);
}

static void report_unset(struct warp *w, u32 lane, u32 site, uint32_t at)
{
    finding_add(&(struct finding_where){w, lane, site}, SIMT_UNINITIALISED, at, NULL, -1, -1, -1,
                "shared memory at offset %u: read before anything wrote it", at);
}

/* Each byte of them was read by this lane and no other. */
static bool only_reader(const struct cell *c, u32 lane, uint32_t bytes)
{
    for (int i = 0; i < 4; i++)
        if (bytes >> i & 1 && c->rlane[i] != lane)
            return false;
    return true;
}

static uint32_t other_warps(const struct cell *c, uint32_t me, uint32_t bytes)
{
    return ((bytes & 3 ? c->rmask[0] : 0) | (bytes & 12 ? c->rmask[1] : 0)) & ~(1u << me);
}

static void check_write(struct warp *w, u32 lane, u32 site, uint32_t at, struct cell *c,
                        uint32_t bytes)
{
    uint32_t me = w->w.id, now = w->clock[me];
    if (c->flight & bytes)
        report(w, lane, site, at, SIMT_ASYNC_OVERWRITE, c->wwarp, c->wlane, c->wsite,
               "written while an asynchronous copy to it is under way");
    else if (c->wtime && (c->wbytes & bytes) && !ordered(w, c->wwarp, c->wtime) &&
             (c->wwarp != me || c->wlane != lane) &&
             !(c->wwarp == me && c->wsite == (uint16_t)site && c->wtime == now))
        report(w, lane, site, at,
               store_repeats(w, lane, site, w->blk->b.smem + at) ? SIMT_SAME_VALUE
                                                                 : SIMT_RACE_SHARED,
               c->wwarp, c->wlane, c->wsite, "two threads write it with no barrier in between");
    else if (c->rtime && (c->rbytes & bytes) && !ordered(w, c->rwarp, c->rtime) &&
             (c->rwarp != me || !only_reader(c, lane, c->rbytes & bytes)))
        report(w, lane, site, at, SIMT_RACE_SHARED, c->rwarp,
               c->rlane[__builtin_ctz(c->rbytes & bytes)], c->rsite,
               "written after another thread read it, with no barrier in between");
    else if (c->rgen == w->blk->gen && other_warps(c, me, bytes) &&
             !(c->rwarp != me && ordered(w, c->rwarp, c->rtime)))
        report(w, lane, site, at, SIMT_RACE_SHARED,
               (uint32_t)__builtin_ctz(other_warps(c, me, bytes)), 0, c->rsite,
               "written after another warp read it, with no barrier in between");
}

static void note_write(struct warp *w, u32 lane, u32 site, struct cell *c, uint32_t bytes)
{
    struct blk *b = w->blk;
    ptrdiff_t at = c - b->cell;
    b->quiet = false;
    b->stored[at] = mark_of(w, lane);
    uint32_t now = w->clock[w->w.id];
    c->wbytes =
        (uint8_t)(c->wwarp == w->w.id && c->wlane == lane && c->wtime == now ? c->wbytes | bytes
                                                                             : bytes);
    c->wtime = now;
    c->wwarp = (uint8_t)w->w.id;
    c->wlane = (uint8_t)lane;
    c->wsite = (uint16_t)site;
    c->init |= (uint8_t)bytes;
    if (c->init == 15)
        b->full[at] = 1;
    c->rbytes &= (uint8_t)~bytes;
    c->rtime = c->rbytes ? c->rtime : 0;
    for (int h = 0; h < 2; h++)
        if ((bytes >> 2 * h & 3) == 3)
            c->rmask[h] = 0;
}

/* Has all of it been stored to, even if only by discarded list entries? */
static bool is_full(const struct blk *b, const struct cell *c)
{
    return b->full[c - b->cell];
}

static void check_read(struct warp *w, u32 lane, u32 site, uint32_t at, struct cell *c,
                       uint32_t bytes)
{
    uint32_t me = w->w.id;
    if (c->flight & bytes)
        report(w, lane, site, at, SIMT_ASYNC_NOT_WAITED, c->wwarp, c->wlane, c->wsite,
               "read while the asynchronous copy to it has not been waited for");
    else if (c->wtime && (c->wbytes & bytes) && !ordered(w, c->wwarp, c->wtime) &&
             (c->wwarp != me || c->wlane != lane))
        report(w, lane, site, at, SIMT_RACE_SHARED, c->wwarp, c->wlane, c->wsite,
               "read after another thread wrote it, with no barrier in between");
    else if ((c->init & bytes) != bytes && !is_full(w->blk, c))
        report_unset(w, lane, site, at);
}

void cell_read_at(uint32_t me, uint32_t now, uint32_t gen, u32 lane, u32 site, struct cell *c,
                  uint32_t bytes)
{
    if (c->rgen != gen) {
        c->rgen = gen;
        c->rmask[0] = c->rmask[1] = 0;
    }
    /* The masks do not cover single bytes: warps may share half a word. */
    for (int h = 0; h < 2; h++)
        if ((bytes >> 2 * h & 3) == 3)
            c->rmask[h] |= 1u << me;
    bool same = c->rwarp == me && c->rtime == now;
    uint32_t known = same ? c->rbytes : 0;
    if (bytes == 15 && !known)
        memset(c->rlane, (int)lane, sizeof c->rlane);
    else
        for (int i = 0; i < 4; i++)
            if (bytes >> i & 1)
                c->rlane[i] = (uint8_t)(known >> i & 1 && c->rlane[i] != lane ? LANE_MANY : lane);
    c->rbytes = (uint8_t)(known | bytes);
    c->rwarp = (uint8_t)me;
    c->rtime = now;
    c->rsite = (uint16_t)site;
}

static void note_read(struct warp *w, u32 lane, u32 site, struct cell *c, uint32_t bytes)
{
    struct blk *b = w->blk;
    ptrdiff_t at = c - b->cell;
    u16 me = mark_of(w, lane);
    cell_read_at(w->w.id, w->clock[w->w.id], b->gen, lane, site, c, bytes);
    b->loaded[at] = foreign(b->loaded[at], b->epoch, me) ? (u16)(b->epoch + several(b)) : me;
}

static bool is_atomic(const struct warp *w, uint32_t site)
{
    return site_of(w, site)->role == SW_R_ATOMIC;
}

/* Atomics do not race with each other, but with everything else. Those that acquire and release
 * locks order the accesses around them (atomic.c). */
void race_atomic(struct warp *w, u32 lane, uint64_t at, u32 bytes, u32 site)
{
    struct blk *b = w->blk;
    uint32_t me = w->w.id;
    late_enter(b, true);
    for (uint64_t i = at / 4; at + bytes <= b->b.smem_bytes && i <= (at + bytes - 1) / 4; i++) {
        struct cell *c = &b->cell[i];
        if (c->flight)
            report(w, lane, site, (uint32_t)at, SIMT_ASYNC_OVERWRITE, c->wwarp, c->wlane, c->wsite,
                   "changed while an asynchronous copy to it is under way");
        else if (c->wtime && !ordered(w, c->wwarp, c->wtime) &&
                 (c->wwarp != me || c->wlane != lane) && !is_atomic(w, c->wsite))
            report(w, lane, site, (uint32_t)at, SIMT_RACE_SHARED, c->wwarp, c->wlane, c->wsite,
                   "an atomic after another thread wrote it, with no barrier in between");
        else if (c->rtime && !ordered(w, c->rwarp, c->rtime) &&
                 (c->rwarp != me || !only_reader(c, lane, c->rbytes)))
            report(w, lane, site, (uint32_t)at, SIMT_RACE_SHARED, c->rwarp,
                   c->rlane[__builtin_ctz(c->rbytes)], c->rsite,
                   "an atomic after another thread read it, with no barrier in between");
        else if (!c->init && !is_full(b, c))
            report_unset(w, lane, site, (uint32_t)at);
        note_write(w, lane, site, c, 15);
    }
}

void race_access(struct warp *w, u32 m, const uint64_t *host, u32 bytes, u32 site, bool write)
{
    struct blk *b = w->blk;
    uint64_t base = (uint64_t)(uintptr_t)b->b.smem;
    if (bytes % 4 == 0 && !b->hop && !b->t->l->direct) {
        u32 at[WARP], in = 0;
        for (u32 i = 0; i < WARP; i++) {
            at[i] = (u32)(host[i] - base);
            in |= (u32)(host[i] - base + bytes <= b->b.smem_bytes) << i;
        }
        if ((m & in) == m && late_lanes(w, m, at, bytes, site, write))
            return;
    }
    late_enter(b, write);
    /* Writes are checked first and recorded afterwards, so that lanes of one instruction that write
     * the same bytes are not reported against each other. */
    for (; m; m &= m - 1) {
        u32 lane = (u32)__builtin_ctz(m);
        uint64_t at = host[lane] - base;
        if (at + bytes > b->b.smem_bytes)
            continue;
        for (uint64_t i = at / 4; i <= (at + bytes - 1) / 4; i++) {
            uint64_t lo = i * 4 < at ? at - i * 4 : 0,
                     hi = at + bytes - i * 4 > 4 ? 4 : at + bytes - i * 4;
            uint32_t mask = (1u << hi) - (1u << lo);
            struct cell *c = &b->cell[i];
            if (write) {
                if (b->hop && b->hop->busy)
                    proxy_check_write(w, lane, site, (uint32_t)at, bytes);
                check_write(w, lane, site, (uint32_t)at, c, mask);
                note_write(w, lane, site, c, mask);
            } else {
                check_read(w, lane, site, (uint32_t)at, c, mask);
                note_read(w, lane, site, c, mask);
            }
        }
    }
}

/* Records in the cells that one lane of a copy has begun or landed. */
static void flight(struct warp *w, u32 lane, const struct copy *copy, bool begin)
{
    struct blk *b = w->blk;
    uint32_t at = copy->dst[lane], now = w->clock[w->w.id];
    b->flights += begin ? 1u : b->flights ? ~0u : 0;
    b->quiet = false;
    for (uint32_t i = at / 4; i <= (at + copy->size - 1) / 4; i++) {
        struct cell *c = &b->cell[i];
        if (!begin && c->flight == 15 && c->wwarp == w->w.id && c->wlane == lane) {
            c->wtime = now;
        } else {
            if (begin)
                check_write(w, lane, copy->site, at, c, 15);
            note_write(w, lane, copy->site, c, 15);
        }
        c->flight = begin ? 15 : 0;
        b->stored[i] = begin ? UNDER_WAY : mark_of(w, lane);
    }
}

void race_copy_begin(struct warp *w, struct copy *c)
{
    if (late_copy_begin(w, c))
        return;
    late_enter(w->blk, true);
    for (u32 m = c->mask; m; m &= m - 1)
        flight(w, (u32)__builtin_ctz(m), c, true);
}

void race_copy_land(struct warp *w, struct copy *c)
{
    if (late_copy_land(w, c))
        return;
    late_enter(w->blk, true);
    for (u32 m = c->mask; m; m &= m - 1)
        flight(w, (u32)__builtin_ctz(m), c, false);
}

/* Records an asynchronous read on behalf of the warp. */
void race_note_read(struct warp *w, u32 lane, u32 site, uint32_t at, u32 bytes)
{
    late_enter(w->blk, false);
    for (uint32_t i = at / 4; i < (at + bytes + 3) / 4; i++)
        note_read(w, lane, site, &w->blk->cell[i], 15);
}
