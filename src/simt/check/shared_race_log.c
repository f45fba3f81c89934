/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_race_log.c - loads of shared memory that kernels do without a call, with all checks on.
 *
 * While nothing has been stored since all warps last synchronised, the only possible fault of a
 * load is reading unwritten memory, and that can be reported later. So kernels may load rows and
 * single words themselves (vec_lanes.h: logged) if they log which and where: site << 32 | offset,
 * or SW_NONE << 32 | time when the warp's time has changed. This starts after some loads by call,
 * since many blocks store soon after a barrier. When all warps synchronise, logged loads are
 * checked and discarded. Before a store, or when a log is full, they are first moved to the list
 * (shared_race_deferred.c), as if they had been calls.
 *
 * Invariants
 * 1. A block is armed only while it is quiet. Code that ends this calls log_replay() first.
 * 2. Unless it is armed, w.log == w.log_end: every load is a call.
 */
#include "simt/check/shared_race.h"

enum { ROW = WARP * 4 };

void log_forget(struct blk *b)
{
    b->armed = false;
    for (uint32_t i = 0; i < b->b.nwarps; i++)
        b->warp[i].w.log = b->warp[i].w.log_end = b->warp[i].log;
}

void log_arm(struct blk *b)
{
    b->armed = true;
    for (uint32_t i = 0; i < b->b.nwarps; i++) {
        struct warp *w = &b->warp[i];
        w->w.log = w->log;
        w->w.log_end = w->log + LOG_ENTRIES;
        w->log_time = w->clock[i];
    }
}

/* This may run in another warp's turn, so it only records the finding. */
static void report(struct warp *w, u32 lane, u32 site, u32 at)
{
    finding_add(&(struct finding_where){w, lane, site}, SIMT_UNINITIALISED, at, NULL, -1, -1, -1,
                "shared memory at offset %u: read before anything wrote it", at);
}

static void check_words(struct warp *w, u32 at, u32 n, u32 site)
{
    const struct blk *b = w->blk;
    const u8 *full = b->full + at / 4;
    u8 all = 1;
    for (u32 i = 0; i < n; i++)
        all &= full[i];
    for (u32 i = 0; !all && i < n; i++)
        if (!full[i])
            report(w, i, site, at + 4 * i);
}

void log_check(struct blk *b)
{
    if (!b->armed)
        return;
    u32 sure = b->written * 4;
    for (uint32_t i = 0; i < b->b.nwarps; i++) {
        struct warp *w = &b->warp[i];
        for (const u64 *l = w->log; l < w->w.log; l++) {
            u32 at = (u32)*l, site = (u32)(*l >> 32);
            if (at + ROW > sure && site != SW_NONE)
                check_words(w, at, site_of(w, site)->stride ? WARP : 1, site);
        }
    }
    log_forget(b);
}

static void replay(struct warp *w)
{
    u32 time = w->log_time;
    for (const u64 *l = w->log; l < w->w.log; l++) {
        u32 at = (u32)*l, site = (u32)(*l >> 32);
        if (site == SW_NONE) {
            time = at;
            continue;
        }
        u32 stride = site_of(w, site)->stride ? 4 : 0;
        late_make_room(w->blk);
        if (!late_again(w, at, stride, site, time))
            check_words(w, at, stride ? WARP : 1, site);
    }
}

void log_replay(struct blk *b)
{
    if (!b->armed)
        return;
    for (uint32_t i = 0; i < b->b.nwarps; i++)
        replay(&b->warp[i]);
    log_forget(b);
}

/* A full log is emptied for its own warp only. */
void log_spill(struct warp *w)
{
    if (!w->blk->armed || w->w.log != w->w.log_end)
        return;
    replay(w);
    w->w.log = w->log;
    w->log_time = w->clock[w->w.id];
}

void log_mark(struct warp *w)
{
    u64 mark = (u64)SW_NONE << 32 | w->clock[w->w.id];
    if (w->w.log[-1] >> 32 == SW_NONE) {
        w->w.log[-1] = mark;
        return;
    }
    if (w->w.log == w->w.log_end) {
        replay(w);
        w->w.log = w->log;
        w->log_time = w->clock[w->w.id];
        return;
    }
    *w->w.log++ = mark;
}
