/* SPDX-License-Identifier: Apache-2.0 */
/*
 * async_proxy.c - the shadow of the asynchronous proxy: bulk copies and wgmma.
 *
 * Ordinary and asynchronous accesses reach memory by different paths. What a thread wrote (or read)
 * in the ordinary way is ordered before an asynchronous access only by a fence.proxy.async on the
 * way between the two: each warp therefore has a second clock, of what it knows to be fenced.
 * Barriers pass it on like the first one.
 *
 * Asynchronous reads hold their bytes from the instruction to its wait, and then count as reads of
 * the waiting warp.
 */
#include "simt/hopper/hopper.h"

#include <string.h>

void proxy_fence(struct warp *w)
{
    struct warp_hopper *h = warp_hopper_of(w);
    clock_tick(w);
    for (u32 i = 0; i < CLOCKS; i++)
        h->fenced[i] = w->clock[i] > h->fenced[i] ? w->clock[i] : h->fenced[i];
}

void dev_proxy(struct sw_warp *sw, u32 kind, u32 site)
{
    warp_of(sw)->last_site = site;
    if (kind)
        proxy_fence(warp_of(sw));
}

static void say(struct warp *w, u32 lane, u32 site, enum simt_finding_kind kind, uint32_t at,
                const struct cell *c, bool writer, const char *what)
{
    uint32_t owarp = writer ? c->wwarp : c->rwarp, osite = writer ? c->wsite : c->rsite;
    uint32_t olane = writer ? c->wlane : c->rlane[0];
    finding_add(&(struct finding_where){w, lane, site}, kind, at, NULL,
                owarp < MAX_WARPS                 ? (int)owarp
                : owarp >= HELD && owarp < TENSOR ? (int)(owarp - HELD) * 4
                                                  : -1,
                olane == LANE_MANY ? 0 : (int)olane, (int)osite, "shared memory at offset %u: %s",
                at, what);
}

static void holders(struct blk *b)
{
    struct hopper *h = hopper_of(b);
    size_t n = b->b.smem_bytes / 16 + 1;
    if (h->busy)
        return;
    h->busy = xmalloc(n * sizeof *h->busy);
    h->by_site = xmalloc(n * sizeof *h->by_site);
}

void proxy_read(struct warp *w, u32 lane, u32 site, struct blk *b, uint32_t at, uint32_t bytes)
{
    const struct warp_hopper *h = warp_hopper_of(w);
    if (b != w->blk || !b->cell)
        return;
    for (uint32_t i = at / 4; i < (at + bytes + 3) / 4; i++) {
        const struct cell *c = &b->cell[i];
        if (c->flight) {
            say(w, lane, site, SIMT_ASYNC_NOT_WAITED, i * 4, c, true,
                "read while the copy to it has not been waited for");
            return;
        }
        if (c->wtime && w->clock[c->wwarp] <= c->wtime &&
            (c->wwarp == ASYNC || c->wwarp != w->w.id)) {
            say(w, lane, site, SIMT_RACE_SHARED, i * 4, c, true,
                "read by an asynchronous operation after another thread wrote it, with no "
                "barrier in between");
            return;
        }
        if (c->wtime && c->wwarp != ASYNC && h->fenced[c->wwarp] <= c->wtime) {
            say(w, lane, site, SIMT_PROXY, i * 4, c, true,
                "written by ordinary stores and read by an asynchronous operation with no "
                "fence.proxy.async in between");
            return;
        }
        if (c->init != 15) {
            say(w, lane, site, SIMT_UNINITIALISED, i * 4, c, true,
                "read by an asynchronous operation before anything wrote it");
            return;
        }
    }
}

static void check_overwrite(struct warp *w, u32 lane, u32 site, struct blk *b, uint32_t i,
                            const struct cell *c)
{
    const struct warp_hopper *h = warp_hopper_of(w);
    const struct hopper *bh = hopper_of(b);
    bool async_reader = bh->by_site && bh->by_site[i / 4] == (uint32_t)c->rsite + 1;
    if (c->flight)
        say(w, lane, site, SIMT_ASYNC_OVERWRITE, i * 4, c, true,
            "two asynchronous copies to it are under way");
    else if (bh->busy && bh->busy[i / 4])
        say(w, lane, site, SIMT_ASYNC_OVERWRITE, i * 4, c, false,
            "a copy overwrites it while an asynchronous operation that reads it has not been "
            "waited for");
    else if (b != w->blk)
        return;
    else if (c->rtime && w->clock[c->rwarp] <= c->rtime && c->rwarp != w->w.id)
        say(w, lane, site, SIMT_RACE_SHARED, i * 4, c, false,
            "a copy overwrites it after another thread read it, with no barrier in between");
    else if (c->rtime && !async_reader && h->fenced[c->rwarp] <= c->rtime)
        say(w, lane, site, SIMT_PROXY_READ, i * 4, c, false,
            "read by ordinary loads and overwritten by a copy with no fence.proxy.async in "
            "between");
    else if (c->wtime && c->wwarp != ASYNC && w->clock[c->wwarp] <= c->wtime && c->wwarp != w->w.id)
        say(w, lane, site, SIMT_RACE_SHARED, i * 4, c, true,
            "a copy overwrites it after another thread wrote it, with no barrier in between");
}

void proxy_write_begin(struct warp *w, u32 lane, u32 site, struct blk *b, uint32_t at,
                       uint32_t bytes)
{
    bool said = false;
    for (uint32_t i = at / 4; i < (at + bytes + 3) / 4; i++) {
        struct cell *c = &b->cell[i];
        if (!said) {
            uint64_t before = w->t->l->slots;
            check_overwrite(w, lane, site, b, i, c);
            said = w->t->l->slots != before; /* once per copy is enough */
        }
        c->flight = 15;
        c->wsite = (uint16_t)site;
        c->wwarp = ASYNC;
    }
}

void proxy_write_end(struct flight *f)
{
    struct hopper *h = hopper_of(f->dst);
    h->async_time++;
    uint32_t span = f->span ? f->span : f->bytes;
    for (uint32_t i = f->at / 4; i < (f->at + span + 3) / 4; i++)
        f->dst->cell[i] = (struct cell){.init = 15,
                                        .wwarp = ASYNC,
                                        .wtime = h->async_time,
                                        .wsite = (uint16_t)f->site,
                                        .wbytes = 15};
}

void proxy_hold(struct warp *w, struct blk *b, uint32_t at, uint32_t bytes, u32 site)
{
    struct hopper *h = hopper_of(b);
    (void)w;
    holders(b);
    for (uint32_t i = at / 16; i < (at + bytes + 15) / 16; i++) {
        h->busy[i]++;
        h->by_site[i] = (site & 0xffff) + 1;
    }
}

void proxy_release(struct warp *w, struct blk *b, uint32_t at, uint32_t bytes, u32 site)
{
    struct hopper *h = hopper_of(b);
    for (uint32_t i = at / 16; i < (at + bytes + 15) / 16; i++)
        if (h->busy && h->busy[i])
            h->busy[i]--;
    if (b == w->blk)
        race_note_read(w, 0, site, at, bytes);
}

/* 16 bytes were read by asynchronous work that one entry of the clocks stands for. */
static void release(struct blk *b, uint32_t at, u32 site, uint32_t who, uint32_t time)
{
    struct hopper *h = hopper_of(b);
    if (h->busy && h->busy[at / 16])
        h->busy[at / 16]--;
    for (uint32_t i = at / 4; i < at / 4 + 4; i++) {
        struct cell *c = &b->cell[i];
        c->rwarp = (uint8_t)who;
        c->rtime = time;
        memset(c->rlane, 0, sizeof c->rlane);
        c->rsite = (uint16_t)site;
        c->rbytes = 15;
        c->rmask[0] = c->rmask[1] = 0;
    }
}

/* All warps of the group that wait for the wgmma come after what it read. */
void proxy_release_group(struct warp *w, uint32_t at, u32 site)
{
    uint32_t group = w->w.id / 4;
    release(w->blk, at, site, HELD + group, hopper_of(w->blk)->held_time[group]);
}

void proxy_release_tensor(struct blk *b, uint32_t at, u32 site, uint32_t time)
{
    release(b, at, site, TENSOR, time);
}

void proxy_check_write(struct warp *w, u32 lane, u32 site, uint32_t at, uint32_t bytes)
{
    const struct hopper *h = w->blk->hop;
    for (uint32_t i = at / 16; i <= (at + bytes - 1) / 16; i++)
        if (h->busy[i])
            finding_add(&(struct finding_where){w, lane, site}, SIMT_ASYNC_OVERWRITE, at, NULL, -1,
                        -1, (int)h->by_site[i] - 1,
                        "shared memory at offset %u: written while an asynchronous operation "
                        "that reads it (%s) has not been waited for",
                        at, site_of(w, h->by_site[i] - 1)->op);
}

static void take_later(uint32_t *to, const uint32_t *from)
{
    for (u32 i = 0; i < CLOCKS; i++)
        to[i] = from[i] > to[i] ? from[i] : to[i];
}

HOT void proxy_arrive(struct warp *w, struct barrier *bar)
{
    bar->fences = true;
    take_later(bar->fenced, w->hop->fenced);
    take_later(bar->tensor, w->hop->tensor);
    peers_meet(w);
}

HOT void proxy_leave(struct warp *w, const struct barrier *bar)
{
    struct warp_hopper *h = warp_hopper_of(w);
    take_later(h->fenced, bar->fenced);
    take_later(h->tensor_next, bar->tensor);
    peers_learn(w, hopper_of(w->blk)->met);
}
