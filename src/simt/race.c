/*
 * race.c - the shadow of shared memory: who touched what, and was it ordered.
 *
 * Every warp has a vector clock. Its own entry grows at everything that
 * orders it after others or others after it (barriers, warp syncs, shuffles);
 * a barrier hands the entries of those that arrived to those that wait. An
 * access at time t of warp a is ordered before warp b exactly when b's entry
 * for a is greater than t. That also holds within a warp: two lanes are only
 * ordered by a warp sync in between.
 *
 * A cell is 4 bytes with byte masks, the last writer, the last reader and the
 * set of warps that read since the last barrier.
 */
#include "simt/hopper.h"

#include <string.h>

void race_reset(struct blk *b)
{
    memset(b->cell, 0, b->cells * sizeof *b->cell);
    memset(b->locks, 0, sizeof b->locks);
}

static bool ordered(const struct warp *w, uint32_t warp, uint32_t time)
{
    return w->clock[warp] > time;
}

static void report(struct warp *w, u32 lane, u32 site, uint32_t at, enum simt_finding_kind kind,
                   uint32_t owarp, uint32_t olane, uint32_t osite, const char *what)
{
    if (!finding_add(&(struct finding_where){w, lane, site}, kind, at, NULL, (int)owarp,
                     olane == LANE_MANY ? 0 : (int)olane, (int)osite,
                     "shared memory at offset %u: %s", at, what))
        warp_abort(w);
}

static void report_unset(struct warp *w, u32 lane, u32 site, uint32_t at)
{
    if (!finding_add(&(struct finding_where){w, lane, site}, SIMT_UNINITIALISED, at, NULL, -1, -1,
                     -1, "shared memory at offset %u: read before anything wrote it", at))
        warp_abort(w);
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
        report(w, lane, site, at, SIMT_RACE_SHARED, c->wwarp, c->wlane, c->wsite,
               "two threads write it with no barrier in between");
    else if (c->rtime && (c->rbytes & bytes) && !ordered(w, c->rwarp, c->rtime) &&
             (c->rwarp != me || c->rlane != lane))
        report(w, lane, site, at, SIMT_RACE_SHARED, c->rwarp, c->rlane, c->rsite,
               "written after another thread read it, with no barrier in between");
    else if (c->rgen == w->blk->gen && (c->rmask & ~(1u << me)) && (c->rbytes & bytes) &&
             !(c->rwarp != me && ordered(w, c->rwarp, c->rtime)))
        report(w, lane, site, at, SIMT_RACE_SHARED, (uint32_t)__builtin_ctz(c->rmask & ~(1u << me)),
               0, c->rsite, "written after another warp read it, with no barrier in between");
}

static void note_write(struct warp *w, u32 lane, u32 site, struct cell *c, uint32_t bytes)
{
    uint32_t now = w->clock[w->w.id];
    c->wbytes =
        (uint8_t)(c->wwarp == w->w.id && c->wlane == lane && c->wtime == now ? c->wbytes | bytes
                                                                             : bytes);
    c->wtime = now;
    c->wwarp = (uint8_t)w->w.id;
    c->wlane = (uint8_t)lane;
    c->wsite = (uint16_t)site;
    c->init |= (uint8_t)bytes;
    c->rtime = 0;
    c->rbytes = 0;
    c->rmask = 0;
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
    else if ((c->init & bytes) != bytes)
        report_unset(w, lane, site, at);
}

static void note_read(struct warp *w, u32 lane, u32 site, struct cell *c, uint32_t bytes)
{
    uint32_t me = w->w.id, now = w->clock[me], gen = w->blk->gen;
    if (c->rgen != gen) {
        c->rgen = gen;
        c->rmask = 0;
    }
    c->rmask |= 1u << me;
    bool same = c->rwarp == me && c->rtime == now;
    c->rlane = (uint8_t)(same && c->rlane != lane ? LANE_MANY : lane);
    c->rbytes = (uint8_t)(same ? c->rbytes | bytes : bytes);
    c->rwarp = (uint8_t)me;
    c->rtime = now;
    c->rsite = (uint16_t)site;
}

static bool is_atomic(const struct warp *w, uint32_t site)
{
    const char *op = site_of(w, site)->op;
    return strncmp(op, "atom", 4) == 0 || strncmp(op, "red", 3) == 0;
}

/* Atomics do not race with each other, but with everything else. Those that take and
 * give locks order what is around them (atomic.c). */
void race_atomic(struct warp *w, u32 lane, uint64_t at, u32 bytes, u32 site)
{
    struct blk *b = w->blk;
    uint32_t me = w->w.id;
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
                 (c->rwarp != me || c->rlane != lane))
            report(w, lane, site, (uint32_t)at, SIMT_RACE_SHARED, c->rwarp, c->rlane, c->rsite,
                   "an atomic after another thread read it, with no barrier in between");
        else if (!c->init)
            report_unset(w, lane, site, (uint32_t)at);
        note_write(w, lane, site, c, 15);
    }
}

void race_access(struct warp *w, u32 m, const uint64_t *host, u32 bytes, u32 site, bool write)
{
    struct blk *b = w->blk;
    uint64_t base = (uint64_t)(uintptr_t)b->b.smem;
    /* Writes are checked first and noted after, so that lanes of one
     * instruction that write the same bytes do not blame each other. */
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

/* An asynchronous copy begins (may land any time from now) or has landed. */
void race_flight(struct warp *w, u32 lane, uint32_t at, u32 bytes, u32 site, bool begin)
{
    struct blk *b = w->blk;
    if (at + bytes > b->b.smem_bytes)
        return;
    for (uint32_t i = at / 4; i <= (at + bytes - 1) / 4; i++) {
        struct cell *c = &b->cell[i];
        if (begin)
            check_write(w, lane, site, at, c, 15);
        note_write(w, lane, site, c, 15);
        c->flight = begin ? 15 : 0;
    }
}

/* Something asynchronous has read it on behalf of the warp. */
void race_note_read(struct warp *w, u32 lane, u32 site, uint32_t at, u32 bytes)
{
    for (uint32_t i = at / 4; i < (at + bytes + 3) / 4; i++)
        note_read(w, lane, site, &w->blk->cell[i], 15);
}
