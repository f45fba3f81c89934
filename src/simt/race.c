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
 * A cell is 4 bytes with byte masks, the last writer, the last reader of each
 * byte and, of each half, the set of warps that read since the last barrier.
 */
#include "simt/hopper.h"

#include <string.h>

#define UNDER_WAY UINT32_MAX /* stamp: a copy will store to it */

enum { MAX_LATE = 1 << 14 };

void race_reset(struct blk *b)
{
    memset(b->cell, 0, b->cells * sizeof *b->cell);
    memset(b->locks, 0, sizeof b->locks);
    if (b->flights)
        memset(b->stamp, 0, b->cells * sizeof *b->stamp);
    b->lates = b->late_writes = b->late_plain = 0;
    b->flights = b->hidden = 0;
    b->quiet = b->clean = false;
    b->epoch_first = ++b->epoch;
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
        report(w, lane, site, at, SIMT_RACE_SHARED, c->wwarp, c->wlane, c->wsite,
               "two threads write it with no barrier in between");
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
    w->blk->quiet = false;
    w->blk->stamp[c - w->blk->cell] = w->blk->epoch;
    uint32_t now = w->clock[w->w.id];
    c->wbytes =
        (uint8_t)(c->wwarp == w->w.id && c->wlane == lane && c->wtime == now ? c->wbytes | bytes
                                                                             : bytes);
    c->wtime = now;
    c->wwarp = (uint8_t)w->w.id;
    c->wlane = (uint8_t)lane;
    c->wsite = (uint16_t)site;
    c->init |= (uint8_t)bytes;
    c->rbytes &= (uint8_t)~bytes;
    c->rtime = c->rbytes ? c->rtime : 0;
    for (int h = 0; h < 2; h++)
        if ((bytes >> 2 * h & 3) == 3)
            c->rmask[h] = 0;
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

static void note_read_at(uint32_t me, uint32_t now, uint32_t gen, u32 lane, u32 site,
                         struct cell *c, uint32_t bytes)
{
    if (c->rgen != gen) {
        c->rgen = gen;
        c->rmask[0] = c->rmask[1] = 0;
    }
    /* Single bytes are not in the masks: warps may share a half of them. */
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
    note_read_at(w->w.id, w->clock[w->w.id], w->blk->gen, lane, site, c, bytes);
    w->blk->seen[c - w->blk->cell] = w->blk->epoch;
}

/* ---- reads that can wait ---- */

void race_all_met(struct blk *b)
{
    for (size_t e = 0; b->late_writes && e < b->lates; e++)
        for (u32 m = b->late[e].write && b->late[e].fresh ? b->late[e].mask : 0; m; m &= m - 1) {
            const struct late *q = &b->late[e];
            u32 first = q->at[__builtin_ctz(m)] / 4;
            for (u32 c = first; c < first + q->n; c++)
                b->cell[c].init = 15;
        }
    b->lates = b->late_writes = b->late_plain = 0;
    b->quiet = b->clean = !b->flights && !b->hop && !b->cluster;
    b->epoch++;
}

static void note_write_at(const struct late *q, u32 lane, struct cell *c)
{
    c->wbytes = 15;
    c->wtime = q->time;
    c->wwarp = (uint8_t)q->warp;
    c->wlane = (uint8_t)lane;
    c->wsite = (uint16_t)q->site;
    c->init = 15;
    c->rtime = 0;
    c->rbytes = 0;
    c->rmask[0] = c->rmask[1] = 0;
}

static void enter_write(struct blk *b, const struct late *q)
{
    for (u32 m = q->mask; m; m &= m - 1) {
        u32 lane = (u32)__builtin_ctz(m), first = q->at[lane] / 4;
        for (u32 c = first; c < first + q->n; c++)
            note_write_at(q, lane, &b->cell[c]);
    }
}

static void enter_read(struct blk *b, const struct late *q)
{
    const struct sw_site *sites = b->t->l->k->sites;
    for (u32 m = q->words ? q->mask : 0; m; m &= m - 1) {
        u32 lane = (u32)__builtin_ctz(m), first = q->at[lane] / 4;
        for (u32 c = first; c < first + q->words; c++)
            note_read_at(q->warp, q->time, q->gen, lane, q->site, &b->cell[c], 15);
    }
    for (u32 i = 0; !q->words && i < q->n; i++) {
        const struct sw_site *s = &sites[q->site + i];
        u32 words = (u32)s->esize * s->vec / 4;
        for (u32 lane = 0; lane < WARP; lane++) {
            u32 first = (q->at[lane] + (u32)s->off) / 4;
            for (u32 c = first; c < first + words; c++)
                note_read_at(q->warp, q->time, q->gen, lane, q->site + i, &b->cell[c], 15);
        }
    }
}

static void enter_late(struct blk *b)
{
    for (size_t e = 0; e < b->lates; e++)
        (b->late[e].write ? enter_write : enter_read)(b, &b->late[e]);
    b->lates = b->late_writes = b->late_plain = 0;
}

static void enter_copy(struct blk *b, uint32_t warp, struct copy *c)
{
    struct cell first = {.wtime = c->time,
                         .wsite = (uint16_t)c->site,
                         .wwarp = (uint8_t)warp,
                         .wbytes = 15,
                         .init = 15,
                         .flight = 15};
    for (u32 m = c->mask; m; m &= m - 1) {
        u32 lane = (u32)__builtin_ctz(m), at = c->dst[lane] / 4;
        first.wlane = (uint8_t)lane;
        for (u32 i = 0; i < c->size / 4; i++)
            b->cell[at + i] = first;
    }
    c->entered = true;
}

/* Copies under way touch what nobody else has touched since, so they may come last. */
static void enter_copies(struct blk *b)
{
    for (uint32_t i = 0; b->hidden && i < b->b.nwarps; i++)
        for (size_t k = 0; k < b->warp[i].copies; k++)
            if (!b->warp[i].copy[k].entered)
                enter_copy(b, i, &b->warp[i].copy[k]);
    b->hidden = 0;
}

/* The cells are looked at now: what was put off comes first, and nothing more is put off
 * until all warps meet, but loads while nothing is written. */
static void enter_now(struct blk *b, bool write)
{
    if (write || b->late_writes)
        enter_late(b);
    enter_copies(b);
    b->clean = false;
}

void race_enter(struct blk *b)
{
    enter_now(b, true);
}

static struct late *late_new(struct warp *w, u32 site, u32 n, const u32 *at)
{
    struct blk *b = w->blk;
    if (b->lates == b->late_cap) {
        b->late_cap = b->late_cap ? b->late_cap * 2 : 64;
        b->late = xrealloc(b->late, b->late_cap * sizeof *b->late);
    }
    struct late *q = &b->late[b->lates++];
    q->site = site;
    q->n = n;
    q->warp = w->w.id;
    q->time = w->clock[w->w.id];
    q->gen = b->gen;
    q->write = false;
    q->words = 0;
    memcpy(q->at, at, sizeof q->at);
    return q;
}

static bool may_wait(const struct blk *b)
{
    return b->clean && b->lates < MAX_LATE && !b->flights && !b->hop && !b->cluster &&
           b->lates == b->late_writes;
}

static void write_waits(struct warp *w, struct late *q, u32 m, bool fresh)
{
    q->write = true;
    q->fresh = fresh;
    q->mask = m;
    w->blk->late_writes++;
    w->blk->quiet = false;
}

/* A word that was stored to since all met: whether that was in order, the cells know. */
bool race_write_later(struct warp *w, u32 m, const u32 *at, u32 bytes, u32 site)
{
    struct blk *b = w->blk;
    u32 words = bytes / 4, epoch = b->epoch, met = 0, fresh = 0;
    if (!may_wait(b) || bytes % 4)
        return false;
    for (u32 left = m; left; left &= left - 1) {
        u32 from = at[__builtin_ctz(left)];
        met |= from & 3;
        for (u32 c = from / 4; c < from / 4 + words; c++) {
            met |= b->stamp[c] == epoch;
            fresh |= b->stamp[c] < b->epoch_first;
            b->stamp[c] = epoch;
        }
    }
    if (met)
        return false;
    write_waits(w, late_new(w, site, words, at), m, fresh);
    return true;
}

HOT bool race_write_row(struct warp *w, u32 first, u32 bytes, u32 site)
{
    struct blk *b = w->blk;
    u32 epoch = b->epoch, met = 0, fresh = 0, begin = b->epoch_first, at[WARP];
    u32 *stamp = b->stamp + first / 4;
    if (!may_wait(b))
        return false;
    for (u32 i = 0; i < WARP * (bytes / 4); i++) {
        met |= stamp[i] == epoch;
        fresh |= stamp[i] < begin;
        stamp[i] = epoch;
    }
    if (met)
        return false;
    for (u32 i = 0; i < WARP; i++)
        at[i] = first + i * bytes;
    write_waits(w, late_new(w, site, bytes / 4, at), ~0u, fresh);
    return true;
}

/* Nothing has stored to them since all met, and somebody before: only a later store can race. */
HOT bool race_rows_later(struct warp *w, u32 m, const uint64_t *host, u32 site)
{
    struct blk *b = w->blk;
    u32 epoch = b->epoch, begin = b->epoch_first, bad = 0, at[WARP];
    if (b->hop || b->cluster || b->lates >= MAX_LATE)
        return false;
    for (u32 i = 0; i < WARP; i++)
        at[i] = (u32)(host[i] - (uint64_t)(uintptr_t)b->b.smem);
    for (u32 left = m; left; left &= left - 1) {
        const u32 *stamp = b->stamp + at[__builtin_ctz(left)] / 4;
        for (u32 c = 0; c < 4; c++)
            bad |= stamp[c] - begin >= epoch - begin;
    }
    if (bad)
        return false;
    for (u32 left = m; left; left &= left - 1) {
        u32 *seen = b->seen + at[__builtin_ctz(left)] / 4;
        for (u32 c = 0; c < 4; c++)
            seen[c] = epoch;
    }
    struct late *q = late_new(w, site, 1, at);
    q->words = 4;
    q->mask = m;
    return true;
}

/* Something wrote every byte of them. Written stays written, so it is looked up once. */
static HOT bool all_written(struct warp *w, const u32 *at, u32 bytes, u32 site, u32 n)
{
    struct sure *q = &w->t->sure[site];
    u32 differs = 0, first = at[0], all = 15;
    for (int i = 0; i < WARP; i++)
        differs |= (at[i] - first) ^ q->diff[i];
    if (!differs && q->block == w->blk->index + 1)
        for (u32 i = 0; i < q->count; i++)
            if (q->first[i] == first)
                return true;
    for (u32 i = 0; i < n; i++) {
        u32 off = (u32)site_of(w, site + i)->off;
        for (u32 lane = 0; lane < WARP; lane++)
            for (u32 c = (at[lane] + off) / 4; c < (at[lane] + off + bytes) / 4; c++)
                all &= w->blk->cell[c].init;
    }
    if (all != 15)
        return false;
    if (differs || q->block != w->blk->index + 1) {
        for (int i = 0; i < WARP; i++)
            q->diff[i] = at[i] - first;
        q->block = w->blk->index + 1;
        q->count = 0;
    }
    q->first[q->count < ARRAY_LEN(q->first) ? q->count++ : first / 128 % ARRAY_LEN(q->first)] =
        first;
    return true;
}

/* Something has been written since all met, but not to these words. */
static HOT bool read_elsewhere(struct warp *w, const u32 *at, u32 bytes, u32 site, u32 n)
{
    struct blk *b = w->blk;
    u32 epoch = b->epoch, begin = b->epoch_first, bad = 0;
    if (b->hop || b->cluster)
        return false;
    for (u32 i = 0; i < n; i++) {
        u32 off = (u32)site_of(w, site + i)->off;
        for (u32 c = 0; c < bytes; c += 4)
            for (u32 lane = 0; lane < WARP; lane++)
                bad |= b->stamp[(at[lane] + off + c) / 4] - begin >= epoch - begin;
    }
    if (bad)
        return false;
    for (u32 i = 0; i < n; i++) {
        u32 off = (u32)site_of(w, site + i)->off;
        for (u32 c = 0; c < bytes; c += 4)
            for (u32 lane = 0; lane < WARP; lane++)
                b->seen[(at[lane] + off + c) / 4] = epoch;
    }
    late_new(w, site, n, at);
    return true;
}

bool race_read_later(struct warp *w, const u32 *at, u32 bytes, u32 site, u32 n)
{
    struct blk *b = w->blk;
    if (bytes % 4 || b->lates >= MAX_LATE)
        return false;
    if (!b->quiet || b->flights)
        return read_elsewhere(w, at, bytes, site, n);
    if (!all_written(w, at, bytes, site, n))
        return false;
    late_new(w, site, n, at);
    b->late_plain++;
    return true;
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
    enter_now(b, true);
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
        else if (!c->init)
            report_unset(w, lane, site, (uint32_t)at);
        note_write(w, lane, site, c, 15);
    }
}

void race_access(struct warp *w, u32 m, const uint64_t *host, u32 bytes, u32 site, bool write)
{
    struct blk *b = w->blk;
    uint64_t base = (uint64_t)(uintptr_t)b->b.smem;
    if (write && b->clean) {
        u32 at[WARP];
        for (int i = 0; i < WARP; i++)
            at[i] = (u32)(host[i] - base);
        if (race_write_later(w, m, at, bytes, site))
            return;
    }
    enter_now(b, write);
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

/* One lane of a copy begins or has landed, and the cells know of it. */
static void race_flight(struct warp *w, u32 lane, uint32_t at, u32 bytes, u32 site, bool begin)
{
    struct blk *b = w->blk;
    bool fresh = !b->hop && !b->cluster && !b->late_writes && !b->late_plain;
    for (uint32_t i = at / 4; i <= (at + bytes - 1) / 4; i++)
        fresh &= !begin || (b->stamp[i] < b->epoch && b->seen[i] < b->epoch);
    if (!fresh)
        enter_now(b, true);
    b->clean = false;
    b->flights += begin ? 1u : b->flights ? ~0u : 0;
    uint32_t now = w->clock[w->w.id];
    const struct cell first = {.wtime = now,
                               .wsite = (uint16_t)site,
                               .wwarp = (uint8_t)w->w.id,
                               .wlane = (uint8_t)lane,
                               .wbytes = 15,
                               .init = 15,
                               .flight = 15};
    b->quiet = false;
    for (uint32_t i = at / 4; i <= (at + bytes - 1) / 4; i++) {
        struct cell *c = &b->cell[i];
        if (begin && fresh) {
            *c = first;
        } else if (!begin && c->flight == 15 && c->wwarp == first.wwarp && c->wlane == lane) {
            c->wtime = now;
        } else {
            if (begin)
                check_write(w, lane, site, at, c, 15);
            note_write(w, lane, site, c, 15);
        }
        c->flight = begin ? 15 : 0;
        b->stamp[i] = begin ? UNDER_WAY : b->epoch;
    }
}

/* Nobody has touched them since all met: they are under way now. */
static inline __attribute__((always_inline)) bool begin_words(struct blk *b, const struct copy *c,
                                                              const u32 words, bool *fresh)
{
    u32 epoch = b->epoch, first = b->epoch_first, met = 0, unset = 0;
    for (u32 m = c->mask; m; m &= m - 1) {
        u32 at = c->dst[__builtin_ctz(m)] / 4, *stamp = b->stamp + at, *seen = b->seen + at;
        for (u32 i = 0; i < words; i++) {
            met |= (stamp[i] >= epoch) | (seen[i] >= epoch);
            unset |= stamp[i] < first;
            stamp[i] = UNDER_WAY;
        }
    }
    *fresh = unset;
    return !met;
}

void race_copy_begin(struct warp *w, struct copy *c)
{
    struct blk *b = w->blk;
    bool unknown = !b->hop && !b->cluster && !b->late_plain;
    c->entered = true;
    if (unknown && (c->size == 16 ? begin_words(b, c, 4, &c->fresh)
                                  : begin_words(b, c, c->size / 4, &c->fresh))) {
        c->entered = b->quiet = b->clean = false;
        c->time = w->clock[w->w.id];
        b->hidden++;
        b->flights += (u32)__builtin_popcount(c->mask);
        return;
    }
    for (u32 m = c->mask; m; m &= m - 1) {
        u32 lane = (u32)__builtin_ctz(m);
        race_flight(w, lane, c->dst[lane], c->size, c->site, true);
    }
}

void race_copy_land(struct warp *w, struct copy *c)
{
    struct blk *b = w->blk;
    if (!c->entered && b->lates >= MAX_LATE)
        enter_now(b, true);
    if (c->entered) {
        for (u32 m = c->mask; m; m &= m - 1) {
            u32 lane = (u32)__builtin_ctz(m);
            race_flight(w, lane, c->dst[lane], c->size, c->site, false);
        }
        return;
    }
    for (u32 m = c->mask; m; m &= m - 1) {
        u32 *stamp = b->stamp + c->dst[__builtin_ctz(m)] / 4;
        for (u32 i = 0; i < c->size / 4; i++)
            stamp[i] = b->epoch;
    }
    write_waits(w, late_new(w, c->site, c->size / 4, c->dst), c->mask, c->fresh);
    c->entered = true;
    b->hidden--;
    b->flights -= (u32)__builtin_popcount(c->mask);
}

/* Something asynchronous has read it on behalf of the warp. */
void race_note_read(struct warp *w, u32 lane, u32 site, uint32_t at, u32 bytes)
{
    enter_now(w->blk, false);
    for (uint32_t i = at / 4; i < (at + bytes + 3) / 4; i++)
        note_read(w, lane, site, &w->blk->cell[i], 15);
}
