/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mbarrier.c - mbarriers: arrivals and bytes, phase after phase.
 *
 * An mbarrier lives in its 8 bytes of shared memory: pending arrivals (20
 * bits), expected arrivals (20), bytes still to come (21, signed), phase (3).
 * A phase ends when nothing is pending and no bytes are to come. The order it gives to a waiter's
 * view of memory is kept in the shadow.
 */
#include "simt/hopper/hopper.h"

#include "simt/ptx/atomic_ops.h"

#include <stdio.h>
#include <string.h>

struct mbar {
    u32 pending, expected, phase;
    s32 tx;
};

static struct mbar unpack(u64 v)
{
    return (struct mbar){.pending = v & 0xfffff,
                         .expected = v >> 20 & 0xfffff,
                         .tx = (s32)((u32)(v >> 40 & 0x1fffff) << 11) >> 11,
                         .phase = (u32)(v >> 61)};
}

static u64 pack(struct mbar b)
{
    return (u64)b.pending | (u64)b.expected << 20 | (u64)((u32)b.tx & 0x1fffff) << 40 |
           (u64)b.phase << 61;
}

static struct mbar_shadow *mbar_shadow(struct blk *b, uint32_t at)
{
    struct hopper *h = hopper_of(b);
    for (size_t i = 0; i < h->mbars; i++)
        if (h->mbar[i].at == at)
            return &h->mbar[i];
    if (h->mbars == h->mbar_cap) {
        h->mbar_cap = h->mbar_cap ? h->mbar_cap * 2 : 16;
        h->mbar = xrealloc(h->mbar, h->mbar_cap * sizeof *h->mbar);
    }
    h->mbar[h->mbars] = (struct mbar_shadow){.at = at};
    return &h->mbar[h->mbars++];
}

static u64 *word_at(struct blk *b, uint32_t at)
{
    return (u64 *)(void *)(b->b.smem + at);
}

static void progress(struct blk *b)
{
    if (b->cluster)
        b->cluster->progress++;
    else
        hopper_of(b)->progress++;
}

/* Ends the phase when it is complete. */
static void settle(struct blk *b, u64 *word, struct mbar v, struct mbar_shadow *sh)
{
    if (!v.pending && !v.tx) {
        v.phase = (v.phase + 1) & 7;
        v.pending = v.expected;
        sh->phase_bytes = sh->phase_expect = 0;
        b->gen++;
    }
    *word = pack(v);
    progress(b);
}

const char *mbar_state_text(struct blk *b, uint32_t at, char *out, size_t size)
{
    struct mbar v = unpack(*word_at(b, at));
    struct mbar_shadow *sh = mbar_shadow(b, at);
    if (!sh->used)
        snprintf(out, size, "nothing initialised it");
    else if (v.pending)
        snprintf(out, size, "%u of %u arrivals are missing in its phase %u%s", v.pending,
                 v.expected, v.phase & 1, v.tx ? ", and bytes" : "");
    else if (v.tx > 0)
        snprintf(out, size, "%d bytes are missing in its phase %u: %u were announced, %u arrived",
                 v.tx, v.phase & 1, sh->phase_expect, sh->phase_bytes);
    else if (v.tx < 0)
        snprintf(out, size,
                 "%d more bytes arrived than were announced in its phase %u (%u announced, %u "
                 "arrived)",
                 -v.tx, v.phase & 1, sh->phase_expect, sh->phase_bytes);
    else
        snprintf(out, size, "it is in phase %u", v.phase & 1);
    return out;
}

void mbar_landed(struct flight *f, struct blk *owner, uint32_t bytes)
{
    u64 *word = word_at(owner, f->mbar);
    struct mbar_shadow *sh = mbar_shadow(owner, f->mbar);
    struct mbar v = unpack(*word);
    struct hopper *h = hopper_of(owner);
    v.tx -= (s32)bytes;
    sh->phase_bytes += bytes;
    if (sh->clock[ASYNC] < h->async_time + 1)
        sh->clock[ASYNC] = h->async_time + 1;
    if (f->dst != owner)
        peers_landed(sh, f->dst);
    settle(owner, word, v, sh);
}

static void report(struct warp *w, u32 lane, u32 site, uint32_t at, const char *what)
{
    finding_add(&(struct finding_where){w, lane, site}, SIMT_MBARRIER, at, NULL, -1, -1, -1,
                "mbarrier at offset %u of shared memory: %s", at, what);
}

/* Whoever uses it must come after its initialisation. */
static void check_ready(struct warp *w, u32 lane, u32 site, struct place p, struct mbar_shadow *sh)
{
    struct cluster *c = p.b->cluster;
    bool full = w->t->l->dev->config.check == SIMT_CHECK_FULL;
    if (w->t->l->dev->config.check == SIMT_CHECK_OFF)
        return;
    if (!sh->used || sh->invalid)
        report(w, lane, site, p.at,
               sh->invalid ? "used after mbarrier.inval" : "used, but nothing initialised it");
    else if (full && p.b == w->blk && sh->init_warp != w->w.id &&
             w->clock[sh->init_warp] <= sh->init_time && (!c || c->phase == sh->init_epoch))
        report(w, lane, site, p.at,
               "another thread initialised it with no barrier in between (__syncthreads)");
    else if (full && p.b != w->blk && c && c->phase == sh->init_epoch)
        report(w, lane, site, p.at,
               "another block initialised it with no cluster barrier in between");
    else
        return;
    sh->used = true; /* said once */
    sh->invalid = false;
    sh->init_warp = w->w.id;
    sh->init_epoch = ~0u;
}

static void init(struct warp *w, u32 lane, u32 site, struct place p, struct mbar_shadow *sh,
                 u32 count)
{
    if ((count == 0 || count > 0xfffff) && w->t->l->dev->config.check != SIMT_CHECK_OFF)
        report(w, lane, site, p.at, "the count must be 1 to 1048575");
    *word_at(p.b, p.at) = pack((struct mbar){.pending = count, .expected = count});
    xfree(sh->peers);
    *sh = (struct mbar_shadow){.at = p.at, .used = true};
    sh->init_warp = w->w.id;
    sh->init_time = w->clock[w->w.id];
    sh->init_epoch = p.b->cluster ? p.b->cluster->phase : 0;
    if (p.b->cell)
        for (uint32_t i = p.at / 4; i < p.at / 4 + 2; i++)
            p.b->cell[i] = (struct cell){.init = 15};
}

static void publish(struct warp *w, struct place p, struct mbar_shadow *sh)
{
    clock_tick(w);
    if (w->blk->cluster)
        peers_arrive(w, p.b, sh);
    if (p.b != w->blk)
        return; /* another block's clocks are its own */
    for (u32 i = 0; i < CLOCKS; i++) {
        sh->clock[i] = sh->clock[i] > w->clock[i] ? sh->clock[i] : w->clock[i];
        if (w->hop && w->hop->fenced[i] > sh->fenced[i])
            sh->fenced[i] = w->hop->fenced[i];
    }
}

static void learn(struct warp *w, struct place p, const struct mbar_shadow *sh)
{
    struct warp_hopper *h = warp_hopper_of(w);
    if (p.b != w->blk)
        return;
    for (u32 i = 0; i < CLOCKS; i++) {
        w->clock[i] = sh->clock[i] > w->clock[i] ? sh->clock[i] : w->clock[i];
        h->fenced[i] = sh->fenced[i] > h->fenced[i] ? sh->fenced[i] : h->fenced[i];
    }
    tensor_learn(w, sh->clock);
    peers_learn(w, sh->peers);
}

static void arrive(struct warp *w, u32 lane, u32 site, struct place p, struct mbar_shadow *sh,
                   u32 n, s32 tx, bool drop)
{
    u64 *word = word_at(p.b, p.at);
    struct mbar v = unpack(*word);
    publish(w, p, sh);
    v.tx += tx;
    sh->phase_expect += (u32)tx;
    if (n > v.pending && w->t->l->dev->config.check != SIMT_CHECK_OFF)
        report(w, lane, site, p.at, "more arrivals than its count in one phase");
    if (drop)
        v.expected -= n < v.expected ? n : v.expected;
    v.pending -= n < v.pending ? n : v.pending;
    settle(p.b, word, v, sh);
}

void mbar_commit(struct warp *w, u32 lane, u32 site, struct place p, uint32_t time)
{
    struct mbar_shadow *sh = mbar_shadow(p.b, p.at);
    check_ready(w, lane, site, p, sh);
    if (sh->clock[TENSOR] < time + 1)
        sh->clock[TENSOR] = time + 1;
    arrive(w, lane, site, p, sh, 1, 0, false);
}

static bool phase_over(struct place p, bool parity, u32 want)
{
    struct mbar v = unpack(*word_at(p.b, p.at));
    return parity ? (v.phase & 1) != (want & 1) : v.phase != (want & 7);
}

static bool wait_over(struct warp *w, struct place p, struct mbar_shadow *sh, bool parity, u32 want,
                      u32 site)
{
    struct warp_hopper *h = warp_hopper_of(w);
    if (!phase_over(p, parity, want)) {
        /* Copies land only now, so that a thread which waits for the wrong phase finds them still
         * in flight. */
        bulk_settle(p.b, p.at);
        sh = mbar_shadow(p.b, p.at);
    }
    if (!phase_over(p, parity, want)) {
        h->wait_blk = p.b;
        h->wait_at = p.at;
        h->wait_site = site;
        h->wait_parity = want & 1;
        return false;
    }
    h->wait_blk = NULL;
    progress(p.b);
    learn(w, p, sh);
    return true;
}

u32 dev_mbar(struct sw_warp *sw, u32 m, const u64 *addr, u32 site, u64 *state, const u32 *count)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    u32 result = 0, op = mbar_op_of(s->kind), asked = m;
    bool waits = op == MBAR_TEST || op == MBAR_TRY;
    w->last_site = site;
    for (; m; m &= m - 1) {
        u32 i = (u32)__builtin_ctz(m), n = count ? count[i] : 1;
        struct place p;
        if (!place_find(w, i, site, s->space == SW_GENERIC, addr[i], 8, 8, !waits, &p))
            continue;
        struct mbar_shadow *sh = mbar_shadow(p.b, p.at);
        if (op == MBAR_INIT) {
            init(w, i, site, p, sh, n);
            continue;
        }
        check_ready(w, i, site, p, sh);
        u64 *word = word_at(p.b, p.at);
        switch (op) {
        case MBAR_INVAL:
            sh->invalid = true;
            break;
        case MBAR_ARRIVE:
        case MBAR_ARRIVE_DROP: {
            bool expect = s->kind & MBAR_EXPECT;
            if (state)
                state[i] = *word; /* phase and count, as they were */
            arrive(w, i, site, p, sh, expect ? 1 : n, expect ? (s32)n : 0, op == MBAR_ARRIVE_DROP);
            break;
        }
        case MBAR_EXPECT_TX:
        case MBAR_COMPLETE_TX: {
            struct mbar v = unpack(*word);
            v.tx += op == MBAR_EXPECT_TX ? (s32)n : -(s32)n;
            if (op == MBAR_EXPECT_TX)
                sh->phase_expect += n;
            else
                sh->phase_bytes += n;
            settle(p.b, word, v, sh);
            break;
        }
        default:
            if (wait_over(w, p, sh, s->kind & MBAR_PARITY,
                          s->kind & MBAR_PARITY ? n
                          : state               ? unpack(state[i]).phase
                                                : 0,
                          site))
                result |= 1u << i;
        }
    }
    if (waits && result && w->blk->hop) {
        w->t->n.async_waits++;
        w->t->n.async_left += w->blk->hop->flights;
    }
    if (waits && (result & asked) != asked) {
        w->polled = true;
        sw->fuel = sw->fuel > 4 ? 4 : sw->fuel; /* it will try again: others first */
    }
    return result;
}

void dev_cp_mbar(struct sw_warp *sw, u32 m, const void *addr, u32 site)
{
    struct warp *w = warp_of(sw);
    const u64 *a = addr;
    cp_land_all(w);
    for (; m; m &= m - 1) {
        u32 i = (u32)__builtin_ctz(m);
        struct place p;
        if (!place_find(w, i, site, site_of(w, site)->space == SW_GENERIC, a[i], 8, 8, true, &p))
            continue;
        struct mbar_shadow *sh = mbar_shadow(p.b, p.at);
        check_ready(w, i, site, p, sh);
        if (site_of(w, site)->kind)
            arrive(w, i, site, p, sh, 1, 0, false);
        else
            publish(w, p, sh);
    }
}
