/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.c - blocks that run together and see each other's shared memory.
 *
 * A remote access is valid only after the cluster barrier that ensures that the other block has
 * started and before the one that lets it end: both are checked by counting the phases of
 * barrier.cluster.
 */
#include "simt/hopper/hopper.h"
#include "simt/ptx/call_kinds.h"

#include <stdio.h>
#include <string.h>

enum { STUCK_ROUNDS = 8 };

/* ---- a block's and a warp's part, made when needed ---- */

struct hopper *hopper_of(struct blk *b)
{
    if (!b->hop) {
        if (b->cell)
            race_enter(b);
        b->hop = xmalloc(sizeof *b->hop);
    }
    return b->hop;
}

struct warp_hopper *warp_hopper_of(struct warp *w)
{
    if (!w->hop)
        w->hop = xmalloc(sizeof *w->hop);
    return w->hop;
}

static void free_peers(struct hopper *h)
{
    for (size_t i = 0; i < h->mbars; i++)
        xfree(h->mbar[i].peers);
    xfree(h->met);
}

/* The block starts anew; what was allocated is kept. */
void hopper_reset(struct blk *b)
{
    struct hopper *h = b->hop;
    for (uint32_t i = 0; i < b->t->l->nwarps; i++) {
        struct warp_hopper *q = b->warp[i].hop;
        if (q)
            xfree(q->peers);
        if (q)
            *q = (struct warp_hopper){.leaving = q->leaving,
                                      .leaving_cap = q->leaving_cap,
                                      .read = q->read,
                                      .read_cap = q->read_cap,
                                      .result = q->result,
                                      .result_cap = q->result_cap,
                                      .tc_read = q->tc_read,
                                      .tc_read_cap = q->tc_read_cap};
    }
    if (!h)
        return;
    if (h->busy)
        memset(h->busy, 0, (b->b.smem_bytes / 16 + 1) * sizeof *h->busy);
    xfree(h->tensor);
    free_peers(h);
    *h = (struct hopper){.flight = h->flight,
                         .flight_cap = h->flight_cap,
                         .mbar = h->mbar,
                         .mbar_cap = h->mbar_cap,
                         .busy = h->busy,
                         .by_site = h->by_site};
}

void hopper_free(struct blk *b, uint32_t nwarps)
{
    for (uint32_t i = 0; i < nwarps; i++)
        if (b->warp[i].hop) {
            xfree(b->warp[i].hop->leaving);
            xfree(b->warp[i].hop->read);
            xfree(b->warp[i].hop->result);
            xfree(b->warp[i].hop->tc_read);
            xfree(b->warp[i].hop->peers);
            xfree(b->warp[i].hop);
        }
    if (!b->hop)
        return;
    free_peers(b->hop);
    xfree(b->hop->flight);
    xfree(b->hop->mbar);
    xfree(b->hop->busy);
    xfree(b->hop->by_site);
    xfree(b->hop->tensor);
    xfree(b->hop);
}

/* ---- addresses ---- */

static bool dropped(struct warp *w, u32 lane, u32 site, enum simt_finding_kind kind, uint64_t at,
                    const char *what)
{
    finding_add(&(struct finding_where){w, lane, site}, kind, at, NULL, -1, -1, -1, "%s", what);
    return false;
}

/* Another block's memory: it must be there, and stay. */
void cluster_touch(struct warp *w, uint32_t lane, uint32_t site, struct blk *b)
{
    struct cluster *c = w->blk->cluster;
    struct hopper *h;
    if (b == w->blk || !c || w->t->l->dev->config.check == SIMT_CHECK_OFF)
        return;
    h = hopper_of(b);
    if (b->done == b->b.nwarps) {
        dropped(w, lane, site, SIMT_CLUSTER, 0,
                "reaches into the shared memory of a block of the cluster that has ended; it "
                "must wait at a cluster barrier before it leaves");
    } else if (!c->phase) {
        dropped(w, lane, site, SIMT_CLUSTER, 0,
                "reaches into another block's shared memory before any cluster barrier: that "
                "block may not have started");
    }
    h->remote_epoch = c->phase + 1;
    h->remote_site = site;
    h->remote_by = w;
    h->remote_lane = lane;
}

bool place_find(struct warp *w, uint32_t lane, uint32_t site, bool generic, uint64_t addr,
                uint32_t bytes, uint32_t align, bool write, struct place *out)
{
    struct cluster *c = w->blk->cluster;
    uint32_t tag = (uint32_t)addr >> SHARED_TAG, size = w->blk->b.smem_bytes;
    uint64_t at = addr & ((1u << SHARED_TAG) - 1);
    char text[160];
    out->b = w->blk;
    if (generic) {
        at = addr - (uint64_t)(uintptr_t)w->blk->b.smem;
        for (uint32_t i = 0; at >= size && c && i < c->size; i++)
            if (addr - (uint64_t)(uintptr_t)c->blk[i]->b.smem < size) {
                out->b = c->blk[i];
                at = addr - (uint64_t)(uintptr_t)c->blk[i]->b.smem;
            }
    } else if (tag && c && tag <= c->size) {
        out->b = c->blk[tag - 1];
    } else if (tag && !(tag == 1 && !c)) {
        snprintf(text, sizeof text, "names block %u of the cluster, which has %u", tag - 1,
                 c ? c->size : 1);
        return dropped(w, lane, site, SIMT_CLUSTER, addr, text);
    }
    if (at > size || bytes > size - at) {
        snprintf(text, sizeof text, "%s %u bytes at offset %lld of shared memory, which has %u",
                 write ? "writes" : "reads", bytes, (long long)at, size);
        return dropped(w, lane, site, SIMT_OUT_OF_BOUNDS, at, text);
    }
    out->at = (uint32_t)at;
    if (at & (align - 1)) {
        snprintf(text, sizeof text, "shared address %llu is not a multiple of %u",
                 (unsigned long long)at, align);
        return dropped(w, lane, site, SIMT_MISALIGNED, at, text);
    }
    return true;
}

/* Where a lane reaches, checked: races in its own block, what is initialised in another. */
static bool reach(struct warp *w, u32 lane, u32 site, uint64_t addr, u32 bytes, bool write,
                  struct place *p, uint64_t *host)
{
    const struct sw_site *s = site_of(w, site);
    if (!place_find(w, lane, site, s->space == SW_GENERIC, addr, bytes, bytes, write, p))
        return false;
    cluster_touch(w, lane, site, p->b);
    host[lane] = (uint64_t)(uintptr_t)p->b->b.smem + p->at;
    if (p->b == w->blk && w->blk->cell)
        race_access(w, 1u << lane, host, bytes, site, write);
    else if (p->b->cell)
        peer_access(w, lane, site, *p, bytes, write);
    return true;
}

bool cluster_generic(struct warp *w, uint32_t *m, uint32_t site, uint32_t bytes, bool write,
                     const uint64_t *host)
{
    struct cluster *c = w->blk->cluster;
    uint64_t first = host[__builtin_ctz(*m)], at[WARP];
    bool any = false;
    for (uint32_t i = 0; i < c->size; i++)
        any |= first - (uint64_t)(uintptr_t)c->blk[i]->b.smem < w->blk->b.smem_bytes;
    if (!any)
        return false;
    for (uint32_t left = *m; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left);
        struct place p;
        if (!reach(w, lane, site, host[lane], bytes, write, &p, at))
            *m &= ~(1u << lane);
    }
    return true;
}

u64 dev_mapa(struct sw_warp *sw, u64 addr, u32 rank, u32 kind)
{
    struct warp *w = warp_of(sw);
    struct cluster *c = w->blk->cluster;
    uint32_t size = w->blk->b.smem_bytes, n = c ? c->size : 1;
    switch (kind) {
    case MAPA_PLACE: /* mapa of a generic address */
        for (uint32_t i = 0; i < n; i++) {
            const struct blk *b = c ? c->blk[i] : w->blk;
            uint64_t at = addr - (uint64_t)(uintptr_t)b->b.smem;
            if (at < size && rank < n)
                return at + (uint64_t)(uintptr_t)(c ? c->blk[rank] : w->blk)->b.smem;
        }
        return 0;
    case MAPA_RANK_SHARED: /* getctarank of a shared one */
        return addr >> SHARED_TAG & 0xff ? (addr >> SHARED_TAG & 0xff) - 1 : w->blk->b.cl_rank;
    case MAPA_RANK_GENERIC: /* getctarank of a generic one */
        for (uint32_t i = 0; c && i < n; i++)
            if (addr - (uint64_t)(uintptr_t)c->blk[i]->b.smem < size)
                return i;
        return w->blk->b.cl_rank;
    case MAPA_TO_GENERIC: { /* cvta.shared::cluster */
        uint32_t tag = (uint32_t)addr >> SHARED_TAG & 0xff;
        const struct blk *b = tag && c && tag <= n ? c->blk[tag - 1] : w->blk;
        return (addr & ((1u << SHARED_TAG) - 1)) + (uint64_t)(uintptr_t)b->b.smem;
    }
    case MAPA_EVEN: { /* the same place in the even block of the pair */
        uint32_t tag = (uint32_t)addr >> SHARED_TAG & 0xff;
        uint32_t at = (tag ? tag - 1 : w->blk->b.cl_rank) & ~1u;
        addr &= rank & ((1u << SHARED_TAG) - 1); /* the mask */
        return !c || at == w->blk->b.cl_rank ? addr : addr | (u64)(at + 1) << SHARED_TAG;
    }
    default: /* cvta.to.shared::cluster */
        for (uint32_t i = 0; c && i < n; i++) {
            uint64_t at = addr - (uint64_t)(uintptr_t)c->blk[i]->b.smem;
            if (at < size && c->blk[i] != w->blk)
                return at | (u64)(i + 1) << SHARED_TAG;
        }
        return addr - (uint64_t)(uintptr_t)w->blk->b.smem;
    }
}

/* ---- loads, stores and atomics on shared::cluster ---- */

void dev_cl_ld(struct sw_warp *sw, u32 m, const u64 *addr, u32 site, void *const *dst)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    u32 bytes = (u32)s->esize * s->vec;
    uint64_t host[WARP];
    w->last_site = site;
    w->t->n.cluster_requests++;
    for (; m; m &= m - 1) {
        u32 i = (u32)__builtin_ctz(m);
        struct place p;
        bool ok = reach(w, i, site, addr[i], bytes, false, &p, host);
        for (u32 v = 0; v < s->vec; v++) {
            u64 x = 0;
            if (ok)
                memcpy(&x, p.b->b.smem + p.at + v * s->esize, s->esize);
            if (s->flags & SW_SIGNED && s->esize < 4)
                x = (u64)((s64)(x << (64 - 8 * s->esize)) >> (64 - 8 * s->esize));
            if (!dst[v])
                continue;
            if (s->flags & SW_WIDE)
                ((u64 *)dst[v])[i] = x;
            else
                ((u32 *)dst[v])[i] = (u32)x;
        }
    }
}

void dev_cl_st(struct sw_warp *sw, u32 m, const u64 *addr, u32 site, void *const *src)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    u32 bytes = (u32)s->esize * s->vec;
    uint64_t host[WARP];
    w->last_site = site;
    w->t->n.cluster_requests++;
    for (; m; m &= m - 1) {
        u32 i = (u32)__builtin_ctz(m);
        struct place p;
        if (!reach(w, i, site, addr[i], bytes, true, &p, host))
            continue;
        for (u32 v = 0; v < s->vec; v++) {
            u64 x = s->esize == 8 ? ((const u64 *)src[v])[i] : ((const u32 *)src[v])[i];
            memcpy(p.b->b.smem + p.at + v * s->esize, &x, s->esize);
        }
    }
}

void dev_cl_atom(struct sw_warp *sw, u32 m, const u64 *addr, u32 site, void *dst, const void *b,
                 const void *c)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    bool wide = s->esize == 8;
    w->last_site = site;
    w->t->n.atomics++;
    w->t->n.cluster_requests++;
    for (; m; m &= m - 1) {
        u32 i = (u32)__builtin_ctz(m);
        struct place p;
        u64 old = 0, x = wide ? ((const u64 *)b)[i] : ((const u32 *)b)[i];
        u64 y = !c ? 0 : wide ? ((const u64 *)c)[i] : ((const u32 *)c)[i];
        if (!place_find(w, i, site, s->space == SW_GENERIC, addr[i], s->esize, s->esize, true, &p))
            continue;
        cluster_touch(w, i, site, p.b);
        if (p.b == w->blk && w->blk->cell)
            race_atomic(w, i, p.at, s->esize, site);
        else if (p.b->cell)
            peer_access(w, i, site, p, s->esize, true);
        memcpy(&old, p.b->b.smem + p.at, s->esize);
        u64 now = atom_combine(s->kind, old, x, y);
        memcpy(p.b->b.smem + p.at, &now, s->esize);
        if (dst && wide)
            ((u64 *)dst)[i] = old;
        else if (dst)
            ((u32 *)dst)[i] = (u32)old;
    }
}

/* ---- barrier.cluster ---- */

static uint32_t live_warps(const struct cluster *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->size; i++)
        n += c->blk[i]->b.nwarps - c->blk[i]->done;
    return n;
}

static void barrier_try(struct cluster *c)
{
    if (!c->arrived || c->arrived < live_warps(c))
        return;
    c->arrived = 0;
    c->phase++;
    c->progress++;
    for (uint32_t i = 0; i < c->size; i++) {
        struct blk *b = c->blk[i];
        uint32_t all[CLOCKS] = {0}, fenced[CLOCKS] = {0};
        b->gen++;
        /* Whoever waits knows what all warps of its block did before they arrived. */
        for (uint32_t k = 0; k < b->b.nwarps; k++)
            for (uint32_t q = 0; q < CLOCKS; q++) {
                const struct warp_hopper *h = b->warp[k].hop;
                if (!h)
                    break;
                all[q] = h->cl_clock[q] > all[q] ? h->cl_clock[q] : all[q];
                fenced[q] = h->cl_fenced[q] > fenced[q] ? h->cl_fenced[q] : fenced[q];
            }
        peers_know(c, i, all);
        memcpy(c->known.clock[i], all, sizeof all);
        for (uint32_t k = 0; k < b->b.nwarps; k++)
            if (b->warp[k].hop) {
                memcpy(b->warp[k].hop->cl_clock, all, sizeof all);
                memcpy(b->warp[k].hop->cl_fenced, fenced, sizeof fenced);
            }
    }
}

/* kind: 0 arrive, 1 wait; the whole warp at once */
void dev_cl_bar(struct sw_warp *sw, u32 m, u32 kind, u32 site)
{
    struct warp *w = warp_of(sw);
    struct cluster *c = w->blk->cluster;
    struct warp_hopper *h = warp_hopper_of(w);
    bool check = w->t->l->dev->config.check != SIMT_CHECK_OFF;
    if (!c) { /* launched without a cluster: the block is one by itself */
        c = w->blk->cluster = cluster_new((uint32_t[3]){1, 1, 1});
        c->blk[0] = w->blk;
    }
    w->last_site = site;
    w->bar_site = site;
    if (check && m != sw->live)
        dropped(w, (u32)__builtin_ctz(m), site, SIMT_DIVERGENT_BARRIER, 0,
                "only some threads of the warp reach this cluster barrier");
    if (kind == 0) {
        if (h->cl_arrived && check)
            dropped(w, (u32)__builtin_ctz(m), site, SIMT_CLUSTER, 0,
                    "arrives at the cluster barrier twice without waiting");
        block_fences(w);
        clock_tick(w);
        memcpy(h->cl_clock, w->clock, sizeof h->cl_clock);
        memcpy(h->cl_fenced, h->fenced, sizeof h->cl_fenced);
        h->cl_arrived = true;
        h->cl_phase = c->phase;
        c->arrived++;
        c->progress++;
        barrier_try(c);
        return;
    }
    if (!h->cl_arrived && check)
        dropped(w, (u32)__builtin_ctz(m), site, SIMT_CLUSTER, 0,
                "waits at the cluster barrier without having arrived");
    if (h->cl_arrived)
        while (c->phase == h->cl_phase) {
            h->cl_waits = true;
            w->polled = true;
            sw->fuel = 0;
            dev_tick(sw, 0, site);
            barrier_try(c); /* some may have left since */
        }
    h->cl_waits = false;
    h->cl_arrived = false;
    for (u32 i = 0; i < CLOCKS; i++) {
        w->clock[i] = h->cl_clock[i] > w->clock[i] ? h->cl_clock[i] : w->clock[i];
        h->fenced[i] = h->cl_fenced[i] > h->fenced[i] ? h->cl_fenced[i] : h->fenced[i];
    }
    tensor_learn(w, w->clock);
    if (c->size > 1)
        peers_learn(w, &c->known);
    clock_tick(w);
}

/* ---- life ---- */

struct cluster *cluster_new(const uint32_t dim[3])
{
    struct cluster *c = xmalloc(sizeof *c);
    *c = (struct cluster){.size = dim[0] * dim[1] * dim[2], .dim = {dim[0], dim[1], dim[2]}};
    c->held = c->size;
    return c;
}

/* A warp left: those that wait for it may be able to go on. */
void cluster_warp_left(struct blk *b)
{
    b->cluster->progress++;
    barrier_try(b->cluster);
}

/* The last warp of b left. True when the whole cluster is over. */
bool cluster_done(struct blk *b)
{
    struct cluster *c = b->cluster;
    struct hopper *h = b->hop;
    if (!c)
        return true;
    c->progress++;
    barrier_try(c);
    if (h && h->remote_epoch == c->phase + 1 && h->remote_by &&
        b->t->l->dev->config.check != SIMT_CHECK_OFF)
        dropped(h->remote_by, h->remote_lane, h->remote_site, SIMT_CLUSTER, 0,
                "another block's shared memory, and that block leaves with no cluster barrier "
                "after this access");
    return ++c->done == c->size;
}

/* ---- no warp can go on ---- */

static bool blocked(const struct warp *w)
{
    const struct warp_hopper *h = w->hop;
    if (w->state == WARP_DONE || w->state == WARP_BARRIER)
        return true;
    return w->state == WARP_SPIN && h && (h->wait_blk || h->cl_waits || h->wg_waits);
}

static void report_stuck(struct warp *w)
{
    struct launch *l = w->t->l;
    struct warp_hopper *h = w->hop;
    struct finding_where at = {w, w->w.live ? (u32)__builtin_ctz(w->w.live) : 0, w->bar_site};
    char text[200];
    if (w->state == WARP_DONE)
        return;
    if (h && h->wait_blk) {
        at.site = h->wait_site;
        finding_add(&at, SIMT_MBARRIER, h->wait_at, NULL, -1, -1, -1,
                    "waits for ever for phase %u of the mbarrier at offset %u: %s", h->wait_parity,
                    h->wait_at, mbar_state_text(h->wait_blk, h->wait_at, text, sizeof text));
    } else if (h && h->wg_waits) {
        finding_add(&at, SIMT_DEADLOCK, 0, NULL, -1, -1, -1,
                    "waits for ever for a wgmma that other warps of its warpgroup do not issue");
    } else if (h && h->cl_waits) {
        finding_add(&at, SIMT_DEADLOCK, 0, NULL, -1, -1, -1,
                    "waits for ever at the cluster barrier: %u of %u warps have arrived",
                    w->blk->cluster->arrived, live_warps(w->blk->cluster));
    } else {
        finding_add(&at, SIMT_DEADLOCK, 0, NULL, -1, -1, -1,
                    "waits for ever at barrier %u: other warps of the block wait elsewhere",
                    w->bar_id);
    }
    pthread_mutex_lock(&l->dev->lock);
    if (l->outcome == SIMT_OK)
        l->outcome = SIMT_HANG;
    pthread_mutex_unlock(&l->dev->lock);
}

bool cluster_stuck(struct worker *t)
{
    uint64_t progress = 0;
    bool waits = false; /* blocks whose warps have all left only wait to be retired */
    for (struct blk *b = t->active; b; b = b->next) {
        if (!b->hop && !b->cluster)
            return false;
        progress += (b->cluster ? b->cluster->progress : 0) + (b->hop ? b->hop->progress : 0);
        for (uint32_t i = 0; i < b->b.nwarps; i++) {
            if (!blocked(&b->warp[i])) {
                t->idle_rounds = 0; /* rounds without progress count only in a row */
                return false;
            }
            waits |= b->warp[i].state != WARP_DONE;
        }
    }
    if (!waits || progress != t->progress_seen) {
        t->progress_seen = progress;
        t->idle_rounds = 0;
        return false;
    }
    if (++t->idle_rounds < STUCK_ROUNDS)
        return false;
    for (struct blk *b = t->active; b; b = b->next)
        for (uint32_t i = 0; i < b->b.nwarps; i++)
            report_stuck(&b->warp[i]);
    atomic_store(&t->l->stop, 1);
    return true;
}
