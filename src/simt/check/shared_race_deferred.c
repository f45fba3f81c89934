/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_race_deferred.c - harmless accesses to shared memory, recorded without consulting cells.
 *
 * An epoch lasts from one barrier of all warps to the next; everything before it is ordered before
 * everything in it. Within an epoch all threads may read a word without stores, and one thread may
 * do anything with a word that no other accesses. Such accesses are only listed (struct late) and
 * discarded at the next barrier. The first access of any other kind enters the list into the cells
 * (shared_race.c), where the clocks decide.
 *
 * Per word: stored, the epoch and thread of the last store; loaded, the same for loads; full, all
 * its bytes were stored to. These include accesses recorded in the cells.
 *
 * Loads that the kernel did without a call are only in the warps' logs (shared_race_log.c).
 *
 * Invariant: of two accesses to one word in one epoch, both in the list, either none is a store or
 * both are by one thread. So they may be entered into the cells in list order.
 */
#include "simt/check/block_log.h"
#include "simt/check/shared_race.h"

#include <string.h>

enum { MAX_LATE = 1 << 14, IN_LINE = -1, READS_TO_ARM = 8 };

#define INLINE static inline __attribute__((always_inline))

/* ---- the list ---- */

static struct late *late_new(struct warp *w, u32 m, u32 site, u32 words, bool write)
{
    struct blk *b = w->blk;
    if (b->lates == b->late_cap) {
        b->late_cap = b->late_cap ? b->late_cap * 2 : 64;
        b->late = xrealloc(b->late, b->late_cap * sizeof *b->late);
    }
    struct late *q = &b->late[b->lates++];
    *q = (struct late){.site = site,
                       .sites = 1,
                       .warp = w->w.id,
                       .time = w->clock[w->w.id],
                       .gen = b->gen,
                       .mask = m,
                       .words = words,
                       .lanes = IN_LINE,
                       .write = write};
    if (write) {
        b->late_writes++;
        b->quiet = false;
    }
    return q;
}

static void late_places(struct blk *b, struct late *q, const u32 *at)
{
    if (b->late_lanes == b->late_lane_cap) {
        b->late_lane_cap = b->late_lane_cap ? b->late_lane_cap * 2 : 64;
        b->late_at = xrealloc(b->late_at, b->late_lane_cap * sizeof *b->late_at);
    }
    memcpy(b->late_at[b->late_lanes], at, sizeof *b->late_at);
    q->lanes = (int32_t)b->late_lanes++;
}

static u32 place(const struct blk *b, const struct late *q, u32 lane)
{
    return q->lanes == IN_LINE ? q->base + q->stride * lane : b->late_at[q->lanes][lane];
}

static void forget(struct blk *b)
{
    b->lates = b->late_lanes = b->late_writes = b->late_plain = 0;
}

/* When marks are used up, all are reset, as of past epochs, except those of copies in flight. */
static void epoch_next(struct blk *b)
{
    u32 marks = marks_of_epoch(b), next = b->epoch + marks;
    if (next + marks >= UNDER_WAY) {
        for (size_t i = 0; i < b->cells; i++)
            b->stored[i] = b->stored[i] == UNDER_WAY ? UNDER_WAY : 0;
        memset(b->loaded, 0, b->cells * sizeof *b->loaded);
        next = marks;
    }
    b->epoch = (u16)next;
}

void race_all_met(struct blk *b)
{
    block_log_clear(b);
    log_check(b);
    forget(b);
    b->quiet = !b->flights && !b->hop && !b->t->l->direct;
    epoch_next(b);
    while (b->written < b->cells && b->full[b->written])
        b->written++;
    b->quiet_reads = 0;
}

void race_some_met(struct blk *b)
{
    log_replay(b);
}

void race_ends(struct blk *b)
{
    log_check(b);
}

void race_reset(struct blk *b)
{
    if (b->dirty || b->hop || b->t->l->direct)
        memset(b->cell, 0, b->cells * sizeof *b->cell);
    if (b->flights)
        memset(b->stored, 0, b->cells * sizeof *b->stored);
    memset(b->locks, 0, sizeof b->locks);
    block_log_clear(b);
    forget(b);
    log_forget(b);
    b->flights = b->hidden = b->written = 0;
    b->quiet = b->dirty = false;
    memset(b->full, 0, b->cells);
    epoch_next(b);
}

/* ---- into the cells ---- */

static void enter_write(struct blk *b, const struct late *q)
{
    for (u32 m = q->mask; m; m &= m - 1) {
        u32 lane = (u32)__builtin_ctz(m), first = place(b, q, lane) / 4;
        for (u32 i = first; i < first + q->words; i++) {
            struct cell *c = &b->cell[i];
            c->wbytes = c->init = 15;
            c->wtime = q->time;
            c->wwarp = (uint8_t)q->warp;
            c->wlane = (uint8_t)lane;
            c->wsite = (uint16_t)q->site;
            c->rtime = 0;
            c->rbytes = 0;
            c->rmask[0] = c->rmask[1] = 0;
        }
    }
}

static void enter_read(struct blk *b, const struct late *q)
{
    const struct sw_site *sites = b->t->l->k->sites;
    for (u32 i = 0; i < q->sites; i++)
        for (u32 m = q->mask; m; m &= m - 1) {
            u32 lane = (u32)__builtin_ctz(m), first = place(b, q, lane) / 4;
            if (q->sites > 1)
                first = (place(b, q, lane) + (u32)sites[q->site + i].off) / 4;
            u32 bytes = q->small ? ((1u << q->small) - 1) << (place(b, q, lane) & 3) : 15;
            for (u32 c = first; c < first + q->words; c++)
                cell_read_at(q->warp, q->time, q->gen, lane, q->site + i, &b->cell[c], bytes);
        }
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

/* Copies in flight access words that no other thread has accessed since, so they may be entered
 * last. */
static void enter_copies(struct blk *b)
{
    for (uint32_t i = 0; b->hidden && i < b->b.nwarps; i++)
        for (size_t k = 0; k < b->warp[i].copies; k++)
            if (!b->warp[i].copy[k].entered)
                enter_copy(b, i, &b->warp[i].copy[k]);
    b->hidden = 0;
}

static void enter_list(struct blk *b)
{
    b->dirty = true;
    for (size_t e = 0; e < b->lates; e++)
        (b->late[e].write ? enter_write : enter_read)(b, &b->late[e]);
    forget(b);
}

void late_enter(struct blk *b, bool write)
{
    b->dirty = true;
    if (write || b->late_writes) {
        log_replay(b);
        enter_list(b);
    }
    enter_copies(b);
}

void late_make_room(struct blk *b)
{
    if (b->lates >= MAX_LATE)
        enter_list(b);
}

void race_enter(struct blk *b)
{
    late_enter(b, true);
    for (size_t i = 0; i < b->cells; i++)
        if (b->full[i])
            b->cell[i].init = 15;
}

/* ---- may it be put off? ---- */

static bool may_wait(const struct blk *b)
{
    return b->lates < MAX_LATE && !b->hop && !b->t->l->direct;
}

/* Loads that are not in `loaded` are in the list: only then a store must not join them. */
static bool store_may_wait(const struct blk *b)
{
    return may_wait(b) && !b->late_plain;
}

/* n words from c on, `each` of them per thread, threads from mark t on. */
INLINE bool words_readable(const struct blk *b, u32 c, u32 n, u32 each, u32 t)
{
    const u16 *stored = b->stored + c;
    const u8 *full = b->full + c;
    u16 epoch = b->epoch, bad = 0;
    u8 all = 1;
    for (u32 i = 0; i < n; i++)
        bad |= foreign(stored[i], epoch, (u16)(t + i / each));
    for (u32 i = 0; c + n > b->written && i < n; i++)
        all &= full[i];
    return !bad && all;
}

INLINE void words_read(struct blk *b, u32 c, u32 n, u32 each, u32 t)
{
    u16 *loaded = b->loaded + c, epoch = b->epoch, many = (u16)(epoch + several(b));
    for (u32 i = 0; i < n; i++) {
        u16 me = (u16)(t + i / each);
        loaded[i] = foreign(loaded[i], epoch, me) ? many : me;
    }
}

INLINE bool words_writable(const struct blk *b, u32 c, u32 n, u32 each, u32 t)
{
    const u16 *stored = b->stored + c, *loaded = b->loaded + c;
    u16 epoch = b->epoch, bad = 0;
    for (u32 i = 0; i < n; i++) {
        u16 me = (u16)(t + i / each);
        bad |= foreign(stored[i], epoch, me);
        bad |= foreign(loaded[i], epoch, me);
    }
    return !bad;
}

INLINE void words_written(struct blk *b, u32 c, u32 n, u32 each, u32 t)
{
    u16 *stored = b->stored + c;
    for (u32 i = 0; i < n; i++)
        stored[i] = (u16)(t + i / each);
    if (c + n > b->written)
        memset(b->full + c, 1, n);
}

/* ---- lanes side by side ---- */

/* After several loads without a store more are likely, so they may be done without a call. */
static void quiet_read(struct warp *w)
{
    struct blk *b = w->blk;
    if (b->armed)
        log_spill(w);
    else if (b->quiet && ++b->quiet_reads == READS_TO_ARM)
        log_arm(b);
}

INLINE bool row_of(struct warp *w, u32 c, u32 each, bool write)
{
    struct blk *b = w->blk;
    u32 n = WARP * each, t = mark_of(w, 0);
    if (write ? !words_writable(b, c, n, each, t) : !words_readable(b, c, n, each, t))
        return false;
    if (write)
        words_written(b, c, n, each, t);
    else
        words_read(b, c, n, each, t);
    return true;
}

HOT bool race_row(struct warp *w, u32 first, u32 bytes, u32 site, bool write)
{
    struct blk *b = w->blk;
    u32 c = first / 4;
    if (write)
        log_replay(b);
    else
        quiet_read(w);
    if (write ? !store_may_wait(b) : !may_wait(b))
        return false;
    if (!(bytes == 4    ? row_of(w, c, 1, write)
          : bytes == 8  ? row_of(w, c, 2, write)
          : bytes == 16 ? row_of(w, c, 4, write)
                        : false))
        return false;
    struct late *q = late_new(w, ~0u, site, bytes / 4, write);
    q->base = first;
    q->stride = bytes;
    return true;
}

HOT bool late_again(struct warp *w, u32 first, u32 stride, u32 site, u32 time)
{
    struct blk *b = w->blk;
    u32 c = first / 4, t = stride ? mark_of(w, 0) : b->epoch + several(b);
    bool written = stride ? words_readable(b, c, WARP, 1, t) : words_readable(b, c, 1, 1, t);
    if (stride)
        words_read(b, c, WARP, 1, t);
    else
        words_read(b, c, 1, 1, t);
    struct late *q = late_new(w, ~0u, site, 1, false);
    q->base = first;
    q->stride = stride;
    q->time = time;
    return written;
}

/* All of them read one place. */
bool race_read_same(struct warp *w, u32 m, u32 first, u32 bytes, u32 site)
{
    struct blk *b = w->blk;
    u32 c = first / 4;
    u32 me = m & (m - 1) ? b->epoch + several(b) : mark_of(w, (u32)__builtin_ctz(m));
    quiet_read(w);
    if (!may_wait(b) || (bytes | first) % 4)
        return false;
    if (!words_readable(b, c, bytes / 4, bytes, me))
        return false;
    words_read(b, c, bytes / 4, bytes, me);
    struct late *q = late_new(w, m, site, bytes / 4, false);
    q->base = first;
    q->stride = 0;
    return true;
}

/* ---- lanes anywhere ---- */

INLINE bool lanes_of(struct warp *w, u32 m, const u32 *at, u32 words, bool write)
{
    struct blk *b = w->blk;
    for (u32 left = m; left; left &= left - 1) {
        u32 lane = (u32)__builtin_ctz(left), c = at[lane] / 4, t = mark_of(w, lane);
        if (write ? !words_writable(b, c, words, words, t) : !words_readable(b, c, words, words, t))
            return false;
    }
    for (u32 left = m; left; left &= left - 1) {
        u32 lane = (u32)__builtin_ctz(left), c = at[lane] / 4, t = mark_of(w, lane);
        if (write)
            words_written(b, c, words, words, t);
        else
            words_read(b, c, words, words, t);
    }
    return true;
}

bool late_lanes(struct warp *w, u32 m, const u32 *at, u32 bytes, u32 site, bool write)
{
    struct blk *b = w->blk;
    u32 low = bytes;
    if (write)
        log_replay(b);
    for (u32 left = m; left; left &= left - 1)
        low |= at[__builtin_ctz(left)];
    if ((write ? !store_may_wait(b) : !may_wait(b)) || low % 4)
        return false;
    if (!(bytes == 4 ? lanes_of(w, m, at, 1, write) : lanes_of(w, m, at, bytes / 4, write)))
        return false;
    late_places(b, late_new(w, m, site, bytes / 4, write), at);
    return true;
}

/* Rows of a matrix: one lane has the address, others get the data. */
HOT bool race_rows_later(struct warp *w, u32 m, const uint64_t *host, u32 site)
{
    struct blk *b = w->blk;
    u16 epoch = b->epoch, many = (u16)(epoch + several(b));
    u32 bad = 0, at[WARP];
    if (!may_wait(b))
        return false;
    for (u32 i = 0; i < WARP; i++)
        at[i] = (u32)(host[i] - (uint64_t)(uintptr_t)b->b.smem);
    for (u32 left = m; left; left &= left - 1) {
        u32 at_word = at[__builtin_ctz(left)] / 4;
        for (u32 c = at_word; c < at_word + 4; c++)
            bad |= (u32)!b->full[c] | (u32)(b->stored[c] >= epoch);
    }
    if (bad)
        return false;
    for (u32 left = m; left; left &= left - 1) {
        u32 at_word = at[__builtin_ctz(left)] / 4;
        for (u32 c = at_word; c < at_word + 4; c++)
            b->loaded[c] = many;
    }
    late_places(b, late_new(w, m, site, 4, false), at);
    return true;
}

/* ---- several loads of a warp that lie alike ---- */

INLINE bool words_full(const struct warp *w, const u32 *at, u32 bytes, u32 site, u32 n)
{
    const struct blk *b = w->blk;
    u8 all = 1;
    for (u32 i = 0; i < n; i++) {
        u32 off = (u32)site_of(w, site + i)->off;
        for (u32 c = 0; c < bytes; c += 4)
            for (u32 lane = 0; lane < WARP; lane++)
                all &= b->full[(at[lane] + off + c) / 4];
    }
    return all;
}

/* All of them in front of the first word that nothing wrote. */
INLINE bool below_written(const struct warp *w, const u32 *at, u32 bytes, u32 site, u32 n)
{
    u32 top = 0;
    s64 off = INT64_MIN;
    for (int i = 0; i < WARP; i++)
        top = at[i] > top ? at[i] : top;
    for (u32 i = 0; i < n; i++)
        off = site_of(w, site + i)->off > off ? site_of(w, site + i)->off : off;
    return (s64)top + off + bytes <= (s64)w->blk->written * 4;
}

/* Has every byte been written? This never changes back, so it is looked up once. */
static HOT bool all_written(struct warp *w, const u32 *at, u32 bytes, u32 site, u32 n)
{
    struct blk *b = w->blk;
    struct sure *q = &w->t->sure[site];
    u32 differs = 0, first = at[0];
    for (int i = 0; i < WARP; i++)
        differs |= (at[i] - first) ^ q->diff[i];
    if (!differs && q->block == b->index + 1)
        for (u32 i = 0; i < q->count; i++)
            if (q->first[i] == first)
                return true;
    if (!below_written(w, at, bytes, site, n) && !words_full(w, at, bytes, site, n))
        return false;
    if (differs || q->block != b->index + 1) {
        for (int i = 0; i < WARP; i++)
            q->diff[i] = at[i] - first;
        q->block = b->index + 1;
        q->count = 0;
    }
    q->first[q->count < ARRAY_LEN(q->first) ? q->count++ : first / 128 % ARRAY_LEN(q->first)] =
        first;
    return true;
}

/* Repeated loads of one warp at one time add nothing. *slot: where to store them. */
static HOT bool listed(const struct warp *w, const u32 *at, u32 site, u32 n, u32 **slot)
{
    const struct blk *b = w->blk;
    u32 hash = (at[0] + at[1] * 3 + at[WARP - 1] * 5 + w->w.id * 77 + site * 13) * 2654435761u;
    u32 off = n == 1 ? (u32)site_of(w, site)->off : 0, differs = 0;
    *slot = &b->late_known[hash >> 22];
    if (**slot >= b->lates)
        return false;
    const struct late *q = &b->late[**slot];
    if (q->site != site || q->sites != n || q->warp != w->w.id || q->write || q->lanes == IN_LINE ||
        q->time != w->clock[w->w.id])
        return false;
    for (int i = 0; i < WARP; i++)
        differs |= (at[i] + off) ^ b->late_at[q->lanes][i];
    return !differs;
}

static HOT bool sites_readable(struct warp *w, const u32 *at, u32 bytes, u32 site, u32 n)
{
    struct blk *b = w->blk;
    u32 bad = 0;
    for (u32 i = 0; i < n; i++) {
        u32 off = (u32)site_of(w, site + i)->off;
        for (u32 c = 0; c < bytes; c += 4)
            for (u32 lane = 0; lane < WARP; lane++) {
                u32 word = (at[lane] + off + c) / 4;
                bad |=
                    (u32)!b->full[word] | (u32)foreign(b->stored[word], b->epoch, mark_of(w, lane));
            }
    }
    return !bad;
}

static void sites_read(struct warp *w, const u32 *at, u32 bytes, u32 site, u32 n)
{
    for (u32 i = 0; i < n; i++) {
        u32 off = (u32)site_of(w, site + i)->off;
        for (u32 lane = 0; lane < WARP; lane++)
            words_read(w->blk, (at[lane] + off) / 4, (bytes + 3) / 4, bytes, mark_of(w, lane));
    }
}

bool race_read_later(struct warp *w, const u32 *at, u32 bytes, u32 site, u32 n)
{
    struct blk *b = w->blk;
    if ((bytes % 4 && (bytes == 3 || n > 1)) || !may_wait(b))
        return false;
    u32 *known;
    bool plain = b->quiet && !b->flights;
    if (plain && listed(w, at, site, n, &known))
        return true;
    plain = plain && all_written(w, at, bytes, site, n);
    if (!plain && !sites_readable(w, at, bytes, site, n))
        return false;
    if (plain) {
        b->late_plain++;
        *known = (u32)b->lates;
    } else
        sites_read(w, at, bytes, site, n);
    struct late *q = late_new(w, ~0u, site, (bytes + 3) / 4, false);
    q->sites = n;
    q->small = bytes < 4 ? bytes : 0;
    late_places(b, q, at);
    if (n == 1)
        for (u32 i = 0; i < WARP; i++)
            b->late_at[q->lanes][i] += (u32)site_of(w, site)->off;
    return true;
}

/* ---- asynchronous copies ---- */

/* Marks words as in flight; true: none was accessed since the last barrier of all warps. */
INLINE bool begin_words(struct blk *b, const struct copy *c, const u32 words)
{
    u32 epoch = b->epoch, met = 0;
    for (u32 m = c->mask; m; m &= m - 1) {
        u32 at = c->dst[__builtin_ctz(m)] / 4;
        for (u32 i = at; i < at + words; i++) {
            met |= (u32)(b->stored[i] >= epoch) | (u32)(b->loaded[i] >= epoch);
            b->stored[i] = UNDER_WAY;
            b->full[i] = 1;
        }
    }
    return !met;
}

bool late_copy_begin(struct warp *w, struct copy *c)
{
    struct blk *b = w->blk;
    c->entered = true;
    log_replay(b);
    if (!store_may_wait(b) ||
        !(c->size == 16 ? begin_words(b, c, 4) : begin_words(b, c, c->size / 4)))
        return false;
    c->entered = b->quiet = false;
    c->time = w->clock[w->w.id];
    b->hidden++;
    b->flights += (u32)__builtin_popcount(c->mask);
    return true;
}

bool late_copy_land(struct warp *w, struct copy *c)
{
    struct blk *b = w->blk;
    if (!c->entered && !may_wait(b))
        late_enter(b, true);
    if (c->entered)
        return false;
    for (u32 m = c->mask; m; m &= m - 1) {
        u32 lane = (u32)__builtin_ctz(m);
        words_written(b, c->dst[lane] / 4, c->size / 4, c->size, mark_of(w, lane));
    }
    late_places(b, late_new(w, c->mask, c->site, c->size / 4, true), c->dst);
    c->entered = true;
    b->hidden--;
    b->flights -= (u32)__builtin_popcount(c->mask);
    return true;
}
