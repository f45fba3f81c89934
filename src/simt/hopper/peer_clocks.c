/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_clocks.c - a warp's clocks of the other blocks of its cluster.
 *
 * A warp's own clock (device.h) is of the warps of its block. Where an arrival at another block's
 * mbarrier, or a cluster barrier, orders blocks, it gets a clock for each other block too, made
 * when first needed. They are passed on like the own clock, through mbarriers and barriers. All
 * barriers of a block count as one here: races may be missed, but none is reported falsely.
 *
 * What others do in a block's shared memory is in its cells as of the warp REMOTE, by a time of its
 * own. Who did it knows that time, and tells it to whom it arrives at.
 */
#include "simt/hopper/hopper.h"

#include <string.h>

static void join(uint32_t *to, const uint32_t *from)
{
    for (u32 i = 0; i < CLOCKS; i++)
        to[i] = from[i] > to[i] ? from[i] : to[i];
}

static struct peer_clocks *made(struct peer_clocks **at)
{
    if (!*at)
        *at = xmalloc(sizeof **at);
    return *at;
}

static void join_all(struct peer_clocks *to, const struct peer_clocks *from, u32 blocks)
{
    for (u32 i = 0; i < blocks; i++)
        join(to->clock[i], from->clock[i]);
}

const uint32_t *peer_clock(const struct warp *w, const struct blk *b)
{
    static const uint32_t nothing[CLOCKS];
    if (b == w->blk)
        return w->clock;
    return w->hop && w->hop->peers ? w->hop->peers->clock[b->b.cl_rank] : nothing;
}

void peers_arrive(struct warp *w, struct blk *b, struct mbar_shadow *sh)
{
    struct warp_hopper *h = warp_hopper_of(w);
    u32 blocks = w->blk->cluster ? w->blk->cluster->size : 1;
    if (b == w->blk && !h->peers)
        return;
    made(&sh->peers);
    if (h->peers)
        join_all(sh->peers, h->peers, blocks);
    if (b == w->blk)
        return;
    join(sh->peers->clock[w->blk->b.cl_rank], w->clock);
    if (h->peers)
        join(sh->clock, h->peers->clock[b->b.cl_rank]);
}

void peers_learn(struct warp *w, const struct peer_clocks *from)
{
    if (from && w->blk->cluster)
        join_all(made(&warp_hopper_of(w)->peers), from, w->blk->cluster->size);
}

void peers_meet(struct warp *w)
{
    if (w->hop->peers)
        join_all(made(&hopper_of(w->blk)->met), w->hop->peers, w->blk->cluster->size);
}

void peers_landed(struct mbar_shadow *sh, struct blk *dst)
{
    uint32_t *time = &made(&sh->peers)->clock[dst->b.cl_rank][ASYNC];
    *time = *time > hopper_of(dst)->async_time ? *time : hopper_of(dst)->async_time + 1;
}

void peers_know(const struct cluster *c, uint32_t rank, uint32_t *clock)
{
    for (u32 i = 0; i < c->size; i++)
        for (u32 k = 0; k < c->blk[i]->b.nwarps; k++) {
            const struct warp_hopper *h = c->blk[i]->warp[k].hop;
            if (i != rank && h && h->peers)
                join(clock, h->peers->clock[rank]);
        }
}

/* ---- accesses to another block's memory ---- */

static bool unordered(const uint32_t *known, uint32_t warp, uint32_t time)
{
    return time && known[warp] <= time && warp != ASYNC; /* copies: async_proxy.c */
}

static void check_cell(struct warp *w, u32 lane, u32 site, uint32_t at, const struct cell *c,
                       uint32_t bytes, const uint32_t *known, bool write)
{
    bool atomics =
        site_of(w, site)->role == SW_R_ATOMIC && site_of(w, c->wsite)->role == SW_R_ATOMIC;
    bool wrote = c->wbytes & bytes && !atomics && unordered(known, c->wwarp, c->wtime);
    bool read = write && c->rbytes & bytes && unordered(known, c->rwarp, c->rtime);
    if (wrote || read)
        finding_add(&(struct finding_where){w, lane, site}, SIMT_RACE_SHARED, at, NULL, -1, -1,
                    (int)(wrote ? c->wsite : c->rsite),
                    "another block's shared memory at offset %u: %s after a thread of another "
                    "block %s it, with no cluster barrier or mbarrier in between",
                    at, write ? "written" : "read", wrote ? "wrote" : "read");
}

void peer_access(struct warp *w, u32 lane, u32 site, struct place p, uint32_t bytes, bool write)
{
    struct hopper *h = hopper_of(p.b);
    struct peer_clocks *mine = made(&warp_hopper_of(w)->peers);
    uint32_t *known = mine->clock[p.b->b.cl_rank], time = ++h->remote_time;
    for (uint32_t i = p.at / 4; i <= (p.at + bytes - 1) / 4; i++) {
        struct cell *c = &p.b->cell[i];
        uint32_t lo = i * 4 < p.at ? p.at - i * 4 : 0,
                 hi = p.at + bytes - i * 4 > 4 ? 4 : p.at + bytes - i * 4;
        uint32_t mask = (1u << hi) - (1u << lo);
        check_cell(w, lane, site, i * 4, c, mask, known, write);
        if (write) {
            c->wtime = time;
            c->wwarp = REMOTE;
            c->wsite = (uint16_t)site;
            c->wbytes = (uint8_t)mask;
            c->init |= (uint8_t)mask;
            c->rbytes &= (uint8_t)~mask;
        } else {
            c->rtime = time;
            c->rwarp = REMOTE;
            c->rsite = (uint16_t)site;
            c->rbytes = (uint8_t)mask;
            memset(c->rlane, LANE_MANY, sizeof c->rlane);
        }
    }
    known[REMOTE] = time + 1;
}
