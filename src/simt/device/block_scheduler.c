/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_scheduler.c - run blocks on one host thread: warps as fibers, barriers.
 *
 * Hides: which warp runs next. A worker keeps one block resident and takes
 * another only when every warp that could run is spinning, so that a grid
 * whose blocks wait for each other makes progress.
 *
 * Invariants
 * 1. A warp's fiber belongs to it from its start until it is done.
 * 2. A barrier completes when all expected warps arrived or left.
 */
#include "simt/blackwell/blackwell.h"
#include "simt/hopper/hopper.h"
#include "simt/ptx/call_kinds.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { FUEL = 20000, MAX_SPARE = 256, MAX_RUN = 64 };

static void warp_main(void *arg)
{
    struct warp *w = arg;
    w->t->l->form->fn(&w->w);
    bulk_leave(w);
    warp_yield(w, WARP_DONE);
    abort(); /* a done warp is never resumed */
}

void warp_yield(struct warp *w, enum warp_state state)
{
    w->state = state;
    fiber_yield(w->fiber);
}

_Noreturn void warp_abort(struct warp *w)
{
    atomic_store(&w->t->l->stop, 1);
    warp_yield(w, WARP_DONE);
    abort();
}

/* ---- barriers ---- */

/* All of them, also of warps the block does not have: a loop of fixed length is a few vectors. */
static HOT void clock_join(uint32_t *restrict into, const uint32_t *restrict from)
{
    for (int i = 0; i < CLOCKS; i++)
        into[i] = into[i] > from[i] ? into[i] : from[i];
}

/* Are clocks needed? Yes with all checks, or with mbarriers and what they order. */
static bool has_clocks(const struct blk *b)
{
    return b->cell || b->hop;
}

/* A waiting warp's clock has not changed since it arrived, so clocks are joined only now. */
static HOT void clocks_meet(struct blk *b, struct barrier *bar)
{
    for (uint32_t m = bar->waiting_mask; m; m &= m - 1)
        clock_join(bar->clock, b->warp[__builtin_ctz(m)].clock);
    for (uint32_t m = bar->waiting_mask; m; m &= m - 1) {
        struct warp *w = &b->warp[__builtin_ctz(m)];
        memcpy(w->clock, bar->clock, sizeof w->clock);
        if (bar->fences)
            proxy_leave(w, bar);
    }
    memset(bar->clock, 0, sizeof bar->clock);
    if (bar->fences) {
        memset(bar->fenced, 0, sizeof bar->fenced);
        memset(bar->tensor, 0, sizeof bar->tensor);
    }
}

/* Hardware allows it, but the work of the missing warps before the barrier may be missing. */
static void warn_exit(struct blk *b, const struct barrier *bar)
{
    struct warp *w = &b->warp[__builtin_ctz(bar->waiting_mask)];
    finding_add(
        &(struct finding_where){w, w->w.live ? (u32)__builtin_ctz(w->w.live) : 0, bar->site},
        SIMT_BARRIER_EXIT, 0, NULL, -1, -1, -1,
        "a barrier of the whole block, of which %u of %u warps have left", b->done, b->b.nwarps);
}

static void barrier_complete(struct blk *b, struct barrier *bar)
{
    uint32_t n = b->b.nwarps;
    if (b->done && !bar->expected && bar->waiting_mask && b->cell)
        warn_exit(b, bar);
    if (has_clocks(b))
        clocks_meet(b, bar);
    for (uint32_t m = bar->waiting_mask; m; m &= m - 1) {
        struct warp *w = &b->warp[__builtin_ctz(m)];
        w->bar_result = bar->result;
        w->state = WARP_READY;
    }
    bool all = !b->done && bar->waiting_mask == (n == 32 ? ~0u : (1u << n) - 1);
    if (b->cell && !all)
        race_some_met(b);
    b->gen++;
    if (b->cell && all)
        race_all_met(b);
    if (b->cluster)
        b->cluster->progress++;
    b->t->n.barriers++;
    memset(bar, 0, offsetof(struct barrier, clock));
}

static bool barrier_full(const struct blk *b, const struct barrier *bar)
{
    if (!bar->used)
        return false;
    if (bar->expected)
        return bar->arrived * WARP >= bar->expected;
    return bar->arrived + b->done >= b->b.nwarps;
}

u32 dev_bar(struct sw_warp *sw, u32 m, u32 kind, u32 id, u32 threads, u32 pred, u32 site)
{
    struct warp *w = warp_of(sw);
    struct blk *b = w->blk;
    w->last_site = site;
    if (id >= BARRIERS) {
        finding_add(&(struct finding_where){w, 0, site}, SIMT_DIVERGENT_BARRIER, 0, NULL, -1, -1,
                    -1, "barrier %u: there are 16, numbered from 0", id);
        warp_abort(w);
    }
    if ((kind & BAR_ALIGNED) && (m != sw->live || kind & BAR_APART) &&
        w->t->l->dev->config.check != SIMT_CHECK_OFF)
        finding_add(&(struct finding_where){w, (u32)__builtin_ctz(m), site}, SIMT_DIVERGENT_BARRIER,
                    0, NULL, -1, -1, -1,
                    kind & BAR_APART
                        ? "threads of one warp wait at different barriers (%d of %d here or there)"
                        : "only some threads of the warp reach this barrier (%d of %d)",
                    __builtin_popcount(m), __builtin_popcount(sw->live));
    struct barrier *bar = &b->bar[id];
    bar->used = true;
    bar->arrived++;
    bar->expected = threads;
    bar->site = site;
    enum bar_kind op = (enum bar_kind)(kind & BAR_OP);
    pred &= m;
    if (op == BAR_POPC)
        bar->result += (u32)__builtin_popcount(pred);
    else if (op == BAR_AND)
        bar->result |= (m & ~pred) ? 1u : 0; /* someone says no */
    else if (op == BAR_OR)
        bar->result |= pred ? 1u : 0;
    clock_tick(w);
    if (w->hop && has_clocks(b))
        proxy_arrive(w, bar);
    if (op == 1) {
        if (has_clocks(b))
            clock_join(bar->clock, w->clock);
        bar->arrive_mask |= 1u << sw->id;
        if (barrier_full(b, bar))
            barrier_complete(b, bar);
        return 0;
    }
    bar->waiting_mask |= 1u << sw->id;
    w->bar_id = id;
    w->bar_site = site;
    if (barrier_full(b, bar))
        barrier_complete(b, bar);
    else
        warp_yield(w, WARP_BARRIER);
    w->state = WARP_READY;
    return op == 3 ? !w->bar_result : w->bar_result;
}

void dev_sync(struct sw_warp *sw, u32 m, u32 members, u32 site)
{
    struct warp *w = warp_of(sw);
    w->last_site = site;
    if ((members & sw->live & ~m) && w->t->l->dev->config.check != SIMT_CHECK_OFF)
        finding_add(&(struct finding_where){w, (u32)__builtin_ctz(m), site},
                    SIMT_DIVERGENT_COLLECTIVE, 0, NULL, -1, -1, -1,
                    "the member mask %08x names threads that do not take part (%08x do)", members,
                    m);
    if ((m & ~members) && w->t->l->dev->config.check != SIMT_CHECK_OFF)
        finding_add(&(struct finding_where){w, (u32)__builtin_ctz(m & ~members), site},
                    SIMT_DIVERGENT_COLLECTIVE, 0, NULL, -1, -1, -1,
                    "a thread takes part that the member mask %08x does not name (%08x do)",
                    members, m);
    clock_tick(w);
}

/* ---- time ---- */

static void hang(struct warp *w, uint32_t site)
{
    struct launch *l = w->t->l;
    finding_add(&(struct finding_where){w, w->w.live ? (u32)__builtin_ctz(w->w.live) : 0, site},
                SIMT_TIMEOUT, 0, NULL, -1, -1, -1,
                "the kernel did not end within %d ms; this warp was running",
                l->dev->config.watchdog_ms);
    pthread_mutex_lock(&l->dev->lock);
    if (l->outcome == SIMT_OK)
        l->outcome = SIMT_HANG;
    pthread_mutex_unlock(&l->dev->lock);
    warp_abort(w);
}

s32 dev_tick(struct sw_warp *sw, u32 waiting, u32 site)
{
    struct warp *w = warp_of(sw);
    struct launch *l = w->t->l;
    (void)site;
    /* A long loop only yields; a polling (or sleeping) loop may need others to run. */
    bool polls = w->polled || sw->fuel == 0;
    w->polled = false;
    sw->fuel = FUEL;
    if (atomic_load_explicit(&l->stop, memory_order_relaxed))
        warp_abort(w);
    if (clock_ms() > l->deadline_ms)
        hang(w, w->last_site);
    warp_yield(w, polls ? WARP_SPIN : WARP_READY);
    return waiting != 0;
}

void dev_trap(struct sw_warp *sw, u32 m, u32 asserted, u32 site)
{
    static const char *const texts[] = {
        [TRAP_PLAIN] = "the kernel trapped",
        [TRAP_TOO_DEEP] = "a function calls itself more often than this device follows",
        [TRAP_NO_FUNCTION] = "a call through a pointer that is no function of these parameters"};
    struct warp *w = warp_of(sw);

    finding_add(&(struct finding_where){w, (u32)__builtin_ctz(m), site},
                asserted ? SIMT_ASSERTION : SIMT_TRAP, 0, NULL, -1, -1, -1, "%s",
                asserted ? "an assertion of the kernel failed" : texts[site_of(w, site)->kind]);
    warp_abort(w);
}

/* ---- blocks ---- */

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= UINT64_C(0x7fb5d329728ea185);
    x ^= x >> 27;
    x *= UINT64_C(0x81dadef4bc2dd44d);
    return x ^ x >> 33;
}

static void place_thread(struct warp *w, uint32_t lane, uint32_t linear, const uint32_t *ntid)
{
    w->w.tid[0][lane] = linear % ntid[0];
    w->w.tid[1][lane] = linear / ntid[0] % ntid[1];
    w->w.tid[2][lane] = linear / ntid[0] / ntid[1];
}

/* What is the same for every block that uses this memory. */
static void warp_place(struct blk *b, uint32_t i)
{
    struct launch *l = b->t->l;
    struct warp *w = &b->warp[i];
    w->blk = b;
    w->t = b->t;
    w->w.id = i;
    w->w.b = &b->b;
    w->w.counts = b->t->counts;
    w->w.fast = b->t->fast;
    w->w.local_bytes = l->k->local_bytes;
    w->w.local = b->local ? b->local + (size_t)i * WARP * l->k->local_bytes : NULL;
    w->log = w->w.log = w->w.log_end = b->logs ? b->logs + (size_t)i * LOG_ENTRIES : NULL;
    for (uint32_t lane = 0; lane < WARP; lane++) {
        uint32_t linear = i * WARP + lane;
        w->w.lane[lane] = lane;
        place_thread(w, lane, linear, l->spec->block);
        if (linear < l->nthreads)
            w->all |= 1u << lane;
    }
    w->w.tx0 = w->w.tid[0][0];
    w->w.ty0 = w->w.tid[1][0];
    w->w.tz0 = w->w.tid[2][0];
}

static void warp_reset(struct blk *b, uint32_t i)
{
    struct warp *w = &b->warp[i];
    w->state = WARP_NEW;
    w->fiber = NULL;
    w->w.fuel = FUEL;
    w->w.live = w->all;
    w->last_site = w->bar_site = w->bar_id = w->bar_result = 0;
    w->polled = false;
    w->copies = 0;
    w->groups = 0;
    memset(w->clock, 0, sizeof w->clock);
    w->clock[i] = 1;
}

static struct blk *blk_new(struct worker *t)
{
    struct launch *l = t->l;
    struct blk *b = t->free;
    if (b) {
        t->free = b->next;
        return b;
    }
    b = xmalloc(sizeof *b);
    b->t = t;
    void *warps = NULL, *smem = NULL;
    if (posix_memalign(&warps, 64, l->nwarps * sizeof(struct warp)) != 0 ||
        posix_memalign(&smem, 1024, (size_t)l->smem_bytes + 64) != 0)
        BUG("out of memory");
    b->warp = warps;
    memset(b->warp, 0, l->nwarps * sizeof(struct warp));
    b->smem_alloc = smem;
    if (l->k->local_bytes)
        b->local = xmalloc((size_t)l->nwarps * WARP * l->k->local_bytes);
    if (l->dev->config.check == SIMT_CHECK_FULL) {
        b->cells = (size_t)l->smem_bytes / 4 + 1;
        b->cell = xmalloc(b->cells * sizeof *b->cell);
        b->stored = xmalloc(b->cells * (2 * sizeof *b->stored + sizeof *b->full));
        b->loaded = b->stored + b->cells;
        b->full = (uint8_t *)(b->loaded + b->cells);
        b->late_known = xmalloc(LATE_KNOWN * sizeof *b->late_known);
        b->logs = xmalloc((size_t)l->nwarps * LOG_ENTRIES * sizeof *b->logs);
    }
    for (uint32_t i = 0; i < l->nwarps; i++)
        warp_place(b, i);
    return b;
}

static struct blk *blk_start(struct worker *t, uint64_t index)
{
    struct launch *l = t->l;
    struct blk *b = blk_new(t);
    const uint32_t *g = l->spec->grid;
    b->index = index;
    b->done = 0;
    b->gen = 1;
    b->cursor = 0;
    memset(b->bar, 0, sizeof b->bar);
    b->cluster = NULL;
    b->b = (struct sw_block){.params = l->spec->params,
                             .smem = b->smem_alloc,
                             .smem_bytes = l->smem_bytes,
                             .dyn_bytes = l->spec->shared_bytes,
                             .nthreads = l->nthreads,
                             .nwarps = l->nwarps,
                             .grid_space = (uint64_t)(uintptr_t)l->grid_space};
    b->b.ctaid[0] = (u32)(index % g[0]);
    b->b.ctaid[1] = (u32)(index / g[0] % g[1]);
    b->b.ctaid[2] = (u32)(index / g[0] / g[1]);
    b->b.cl_size = 1;
    for (int i = 0; i < 3; i++) {
        b->b.nctaid[i] = g[i];
        b->b.ntid[i] = l->spec->block[i];
        b->b.clusterid[i] = b->b.ctaid[i];
        b->b.cl_dim[i] = 1;
    }
    if (l->dev->config.check == SIMT_CHECK_FULL) {
        memset(b->fenced, 0, sizeof b->fenced);
        memset(b->waited, 0, sizeof b->waited);
        b->told = b->fence_new = b->listens = false;
        b->heard = 0;
        memset(b->smem_alloc, 0xff, l->smem_bytes);
        race_reset(b);
    }
    for (uint32_t i = 0; i < l->nwarps; i++)
        warp_reset(b, i);
    hopper_reset(b);
    b->next = t->active;
    t->active = b;
    t->n.blocks++;
    return b;
}

/* The next block, or all blocks of the next cluster; they must run together. */
static void start_next(struct worker *t, uint64_t index)
{
    const uint32_t *dim = t->l->spec->cluster, *g = t->l->spec->grid;
    reuse_block(t);
    t->idle_rounds = 0; /* what comes is new, however alike it will wait */
    if ((uint64_t)dim[0] * dim[1] * dim[2] <= 1) {
        blk_start(t, index);
        return;
    }
    struct cluster *c = cluster_new(dim);
    uint64_t cg[3] = {g[0] / dim[0], g[1] / dim[1], g[2] / dim[2]};
    uint64_t at[3] = {index % cg[0], index / cg[0] % cg[1], index / cg[0] / cg[1]};
    for (uint32_t r = c->size; r-- > 0;) { /* the list is a stack: rank 0 comes first */
        uint32_t in[3] = {r % dim[0], r / dim[0] % dim[1], r / dim[0] / dim[1]};
        uint64_t x[3];
        for (int i = 0; i < 3; i++)
            x[i] = at[i] * dim[i] + in[i];
        struct blk *b = blk_start(t, x[0] + g[0] * (x[1] + (uint64_t)g[1] * x[2]));
        b->cluster = c;
        c->blk[r] = b;
        b->b.cl_rank = r;
        b->b.cl_size = c->size;
        b->b.is_cluster = 1;
        for (int i = 0; i < 3; i++) {
            b->b.clusterid[i] = (u32)at[i];
            b->b.cl_ctaid[i] = in[i];
            b->b.cl_dim[i] = dim[i];
        }
    }
}

static void fiber_free(struct fiber *f)
{
    fiber_release(f);
    xfree(f);
}

/* Frees one that is too small for this kernel; consecutive launches are mostly of one kernel. */
static struct fiber *fiber_spare(struct simt *dev, size_t bytes)
{
    struct fiber *f = NULL;
    pthread_mutex_lock(&dev->lock);
    if (dev->spare_count)
        f = dev->spare[--dev->spare_count];
    pthread_mutex_unlock(&dev->lock);
    if (f && f->bytes < bytes) {
        fiber_free(f);
        f = NULL;
    }
    return f;
}

static void fibers_spare(struct worker *t)
{
    struct simt *dev = t->l->dev;
    pthread_mutex_lock(&dev->lock);
    if (!dev->spare)
        dev->spare = xmalloc(MAX_SPARE * sizeof(struct fiber *));
    while (t->fiber_count && dev->spare_count < MAX_SPARE)
        dev->spare[dev->spare_count++] = t->fibers[--t->fiber_count];
    pthread_mutex_unlock(&dev->lock);
}

void spare_release(struct simt *dev)
{
    for (uint32_t i = 0; i < dev->spare_count; i++)
        fiber_free(dev->spare[i]);
    xfree(dev->spare);
}

/* The kernel's frame as its compiler gave it, or a guess; and room for what it calls. */
size_t stack_bytes(const struct launch *l)
{
    size_t frame = (size_t)l->mod->stack_bytes;
    if (!frame)
        frame = l->k->frame_bytes + (size_t)l->k->insn_count * 256;
    return frame + (256 << 10);
}

/* Twice as many fibers as before. Warps keep pointers to theirs, so none moves. */
static bool fibers_more(struct worker *t)
{
    uint32_t add = t->fiber_count ? t->fiber_count : 1;
    size_t bytes = stack_bytes(t->l);

    if (t->fiber_count + add > MAX_RESIDENT * MAX_WARPS)
        return false;
    t->fibers = xrealloc(t->fibers, (t->fiber_count + add) * sizeof *t->fibers);
    t->idle = xrealloc(t->idle, (t->fiber_count + add) * sizeof *t->idle);
    for (uint32_t i = 0; i < add; i++) {
        struct fiber *f = fiber_spare(t->l->dev, bytes);

        if (!f) {
            f = xmalloc(sizeof *f);
            if (!fiber_init(f, bytes)) {
                xfree(f);
                return false;
            }
        }
        t->fibers[t->fiber_count++] = f;
        t->idle[t->idle_count++] = f;
    }
    return true;
}

static void warp_run(struct worker *t, struct warp *w)
{
    if (w->state == WARP_NEW) {
        if (!t->idle_count && !fibers_more(t)) {
            t->failed = true;
            atomic_store(&t->l->stop, 1);
            return;
        }
        w->fiber = t->idle[--t->idle_count];
        fiber_start(w->fiber, warp_main, w);
    }
    w->state = WARP_READY;
    fiber_resume(w->fiber);
    if (w->state != WARP_DONE)
        return;
    t->idle[t->idle_count++] = w->fiber;
    w->fiber = NULL;
    struct blk *b = w->blk;
    b->done++;
    for (int i = 0; i < BARRIERS; i++)
        if (b->bar[i].waiting_mask && barrier_full(b, &b->bar[i]))
            barrier_complete(b, &b->bar[i]);
    if (b->done == b->b.nwarps && b->cell)
        race_ends(b);
    if (b->done == b->b.nwarps && b->hop)
        tensor_leave(b);
    if (b->done == b->b.nwarps && b->cluster)
        cluster_done(b);
    else if (b->cluster)
        cluster_warp_left(b);
}

static uint32_t nth_warp(const struct blk *b, uint32_t n)
{
    uint64_t seed = b->t->l->dev->config.warp_order_seed;
    uint32_t count = b->b.nwarps;
    if (!seed)
        return n;
    /* A stride coprime to the count walks all warps in another order. */
    uint64_t r = mix(seed ^ b->index * UINT64_C(0x9e3779b97f4a7c15));
    uint32_t stride = (uint32_t)(r >> 32) % count | 1u;
    for (;; stride++) {
        uint32_t x = count, y = stride % count ? stride % count : count;
        while (y) {
            uint32_t rest = x % y;
            x = y;
            y = rest;
        }
        if (x == 1)
            break;
    }
    return (uint32_t)((r + (uint64_t)n * stride) % count);
}

/* Runs what can run; false when no warp of the block could. */
static bool blk_turn(struct worker *t, struct blk *b, bool spinning)
{
    bool ran = false;
    for (uint32_t i = 0;
         i < b->b.nwarps && !atomic_load_explicit(&t->l->stop, memory_order_relaxed); i++) {
        struct warp *w = &b->warp[nth_warp(b, i)];
        if (w->state == WARP_NEW || w->state == WARP_READY || (spinning && w->state == WARP_SPIN)) {
            warp_run(t, w);
            ran = true;
        }
    }
    return ran;
}

static void report_deadlock(struct worker *t, struct blk *b)
{
    struct warp *first = NULL;
    char who[256] = "";
    size_t len = 0;
    for (uint32_t i = 0; i < b->b.nwarps; i++) {
        struct warp *w = &b->warp[i];
        if (w->state != WARP_BARRIER)
            continue;
        first = first ? first : w;
        if (len < sizeof who - 40)
            len += (size_t)snprintf(who + len, sizeof who - len, "%swarp %u at barrier %u",
                                    len ? ", " : "", i, w->bar_id);
    }
    if (!first)
        return;
    finding_add(
        &(struct finding_where){first, first->w.live ? (u32)__builtin_ctz(first->w.live) : 0,
                                first->bar_site},
        SIMT_DEADLOCK, 0, NULL, -1, -1, -1,
        "no warp of the block can go on: %s; %u of %u warps have left", who, b->done, b->b.nwarps);
    pthread_mutex_lock(&t->l->dev->lock);
    if (t->l->outcome == SIMT_OK)
        t->l->outcome = SIMT_HANG;
    pthread_mutex_unlock(&t->l->dev->lock);
    atomic_store(&t->l->stop, 1);
}

static bool has_state(const struct blk *b, enum warp_state s)
{
    for (uint32_t i = 0; i < b->b.nwarps; i++)
        if (b->warp[i].state == s)
            return true;
    return false;
}

static void retire(struct worker *t)
{
    for (struct blk **p = &t->active; *p;) {
        struct blk *b = *p;
        if (b->done < b->b.nwarps || (b->cluster && b->cluster->done < b->cluster->size)) {
            p = &b->next;
            continue;
        }
        if (b->cluster && !--b->cluster->held)
            xfree(b->cluster);
        b->cluster = NULL;
        *p = b->next;
        b->next = t->free;
        t->free = b;
    }
}

/*
 * Consecutive blocks mostly access adjacent memory: a worker takes runs of them, so that its CPU's
 * prefetches are useful. Runs get shorter towards the end, so that all workers finish together.
 * Blocks that may wait for each other are taken one by one.
 */
static uint64_t next_index(struct worker *t)
{
    struct launch *l = t->l;
    if (t->run_next == t->run_end) {
        uint64_t taken = atomic_load_explicit(&l->next_block, memory_order_relaxed);
        uint64_t left = taken < l->sample ? l->sample - taken : 0;
        uint64_t n = l->k->strong ? 1 : left / (4 * (uint64_t)l->worker_count);
        n = n < 1 ? 1 : n > MAX_RUN ? MAX_RUN : n;
        t->run_next = atomic_fetch_add(&l->next_block, n);
        t->run_end = t->run_next + n;
    }
    return t->run_next++;
}

static uint64_t sampled(const struct launch *l, uint64_t next)
{
    return l->sample < l->blocks ? next * l->blocks / l->sample : next;
}

bool blocks_cancel(struct worker *t, uint32_t first[3])
{
    const uint32_t *dim = t->l->spec->cluster, *g = t->l->spec->grid;
    uint64_t next = next_index(t);
    if (next >= t->l->sample)
        return false;
    uint64_t at = sampled(t->l, next), wide = g[0] / dim[0], high = g[1] / dim[1];
    first[0] = (uint32_t)(at % wide) * dim[0];
    first[1] = (uint32_t)(at / wide % high) * dim[1];
    first[2] = (uint32_t)(at / wide / high) * dim[2];
    return true;
}

void worker_run(struct worker *t)
{
    struct launch *l = t->l;
    /* Only a kernel with explicit memory ordering can wait for another block. */
    uint32_t resident_limit = l->k->strong ? MAX_RESIDENT : 1;
    while (!atomic_load_explicit(&l->stop, memory_order_relaxed)) {
        bool ran = false, spins = false;
        uint32_t resident = 0;
        for (struct blk *b = t->active; b; b = b->next) {
            while (blk_turn(t, b, false))
                ran = true;
            if (b->done < b->b.nwarps && !has_state(b, WARP_SPIN) && !b->cluster &&
                !atomic_load(&l->stop))
                report_deadlock(t, b);
            spins |= has_state(b, WARP_SPIN);
            resident++;
        }
        retire(t);
        bool room = resident < resident_limit;
        if (!t->active || (spins && !ran && room)) {
            uint64_t next = next_index(t);
            if (next < l->sample) {
                start_next(t, sampled(l, next));
                continue;
            }
            if (!t->active)
                break;
        }
        for (struct blk *b = t->active; b; b = b->next)
            blk_turn(t, b, true);
        cluster_stuck(t);
    }
}

static void blk_free(struct blk *b, uint32_t nwarps)
{
    for (uint32_t i = 0; i < nwarps; i++)
        xfree(b->warp[i].copy);
    hopper_free(b, nwarps);
    free(b->warp);
    free(b->smem_alloc);
    xfree(b->local);
    xfree(b->cell);
    xfree(b->stored);
    xfree(b->logs);
    xfree(b->log);
    xfree(b->late_known);
    xfree(b->late);
    xfree(b->late_at);
    xfree(b);
}

void worker_release(struct worker *t)
{
    struct blk *lists[] = {t->active, t->free};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (struct blk *b = lists[i], *next; b; b = next) {
            next = b->next;
            if (b->cluster && !--b->cluster->held)
                xfree(b->cluster);
            blk_free(b, t->l->nwarps);
        }
    fibers_spare(t);
    for (uint32_t i = 0; i < t->fiber_count; i++)
        fiber_free(t->fibers[i]);
    xfree(t->fibers);
    xfree(t->idle);
    xfree(t->cache);
    xfree(t->memo);
    xfree(t->fast);
    xfree(t->wanted);
    xfree(t->spread);
    xfree(t->told);
    xfree(t->sure);
    reuse_free(t);
    xfree(t->counts);
    xfree(t->wgmma_scratch);
    xfree(t->tcgen05_work);
    xfree(t->use);
}
