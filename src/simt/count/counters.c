/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters.c - what a profiler would count of an access: sectors, lines, passes
 * over the banks of shared memory, conflicts of atomics, and how soon a block
 * comes back to what it has read.
 *
 * Sectors and passes depend on the pattern of addresses alone, and patterns
 * repeat: each instruction remembers a few with what they cost. Reuse is tracked only for the first
 * blocks of each worker, because it needs every sector's address.
 */
#include "simt/device/device.h"

#include <string.h>

/* ---- reuse ---- */

enum {
    WATCHED = 3,         /* blocks per worker, if they are few compared to all it runs: */
    WATCHED_OF = 16,     /*   one in so many */
    TOUCHES = 1 << 14,   /* sectors a block may touch before only some lines are followed: */
    ONE_OF = 16,         /* all that happens to one line in so many */
    NEAR_SETS = 64,      /* a cache of 32 KiB: lines of 4 sectors, 4 ways */
    NEAR_WAYS = 4,       /*   about what L1 has for a block of 256 threads */
    SET_MOST = 1 << 18,  /* most lines of a block that are distinguished */
    SHARED_KEY = 1 << 16 /* a generic access may go to either memory */
};

struct touched {
    uint64_t line;      /* address / 128, + 1 */
    uint8_t sectors[2]; /* loaded, stored */
};

struct reuse {
    struct touched *set; /* lines of this block */
    size_t room, count;
    uint64_t tag[NEAR_SETS][NEAR_WAYS];
    uint8_t valid[NEAR_SETS][NEAR_WAYS], next[NEAR_SETS];
    uint64_t touches;
    bool some, full; /* only a sample of lines is tracked; this block accessed too many for all */
};

static inline uint32_t line_hash(uint64_t line)
{
    return ((uint32_t)line ^ (uint32_t)(line >> 32) * 31) * 0x9e3779b1u;
}

static inline bool followed(const struct reuse *r, uint64_t line)
{
    return !r->some || (line_hash(line) >> 16) % ONE_OF == 0;
}

/* Where a line is kept, or would be. */
static struct touched *set_find(const struct reuse *r, uint64_t line)
{
    size_t at = (size_t)(line * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (r->room - 1);
    while (r->set[at].line && r->set[at].line != line + 1)
        at = (at + 1) & (r->room - 1);
    return &r->set[at];
}

static void set_grow(struct reuse *r)
{
    size_t old = r->room;
    struct touched *from = r->set;
    r->room = old ? old * 4 : 4096;
    r->set = xmalloc(r->room * sizeof *r->set);
    for (size_t i = 0; i < old; i++)
        if (from[i].line)
            *set_find(r, from[i].line - 1) = from[i];
    xfree(from);
}

/* The sectors that the small cache already holds; afterwards it holds all of them. */
static uint8_t near_has(struct reuse *r, uint64_t line, uint8_t sectors)
{
    size_t set = (line_hash(line) >> 20) % (r->some ? NEAR_SETS / ONE_OF : NEAR_SETS);
    for (int i = 0; i < NEAR_WAYS; i++)
        if (r->valid[set][i] && r->tag[set][i] == line) {
            uint8_t had = r->valid[set][i];
            r->valid[set][i] |= sectors;
            return had;
        }
    int way = r->next[set];
    r->next[set] = (uint8_t)((way + 1) % NEAR_WAYS);
    r->tag[set][way] = line;
    r->valid[set][way] = sectors;
    return 0;
}

static size_t buffer_of(const struct simt *dev, uint64_t at)
{
    size_t i = 0;
    while (i < dev->alloc_count &&
           (dev->alloc[i].gone || at + 31 < dev->alloc[i].lo || at >= dev->alloc[i].hi))
        i++;
    return i < SIMT_BUFFERS ? i : SIMT_BUFFERS - 1;
}

/* Sectors of one line, as bits. */
static void reuse_line(struct worker *t, uint64_t line, uint8_t sectors, bool write, bool cached)
{
    struct reuse *r = t->reuse;
    struct reuse_counts *n = &t->seen;
    uint64_t many = (uint64_t)__builtin_popcount(sectors);
    if (!r->some && (r->touches += many) > TOUCHES) {
        r->full = true;
        t->watching = false;
    }
    if (r->full)
        return;
    if (2 * (r->count + 1) > r->room)
        set_grow(r);
    struct touched *q = set_find(r, line);
    uint8_t had = q->sectors[write], fresh = sectors & (uint8_t)~had;
    n->all[write] += many;
    if (fresh) {
        uint64_t news = (uint64_t)__builtin_popcount(fresh);
        n->first[write] += news;
        n->buffer[buffer_of(t->l->dev, line << 7 | (uint64_t)__builtin_ctz(fresh) << 5)] += news;
        n->chunks[write] += (uint64_t)(fresh & 3 && !(had & 3)) + (fresh & 12 && !(had & 12));
        if (q->line || r->count < SET_MOST) {
            r->count += !q->line;
            q->line = line + 1;
            q->sectors[write] |= sectors;
        }
    }
    if (!write && cached)
        sectors &= (uint8_t)~near_has(r, line, sectors);
    if (!write)
        n->far_loads += (uint64_t)__builtin_popcount(sectors);
}

static uint8_t line_sectors(uint64_t first, uint64_t last, uint64_t line)
{
    uint64_t from = line << 2 > first ? 0 : first & 3, to = (line << 2 | 3) < last ? 3 : last & 3;
    return (uint8_t)((2u << to) - (1u << from));
}

void reuse_span(struct worker *t, uint64_t at, uint64_t bytes, bool write, bool cached)
{
    uint64_t first = at >> 5, last = (at + bytes - 1) >> 5;
    for (uint64_t line = first >> 2; line <= last >> 2; line++)
        if (followed(t->reuse, line))
            reuse_line(t, line, line_sectors(first, last, line), write, cached);
}

/* For arbitrary lanes; an access never crosses the end of a line. */
static HOT void reuse_lanes(struct worker *t, u32 m, const uint64_t *host, u32 bytes, bool write)
{
    uint64_t list[WARP];
    uint8_t sectors[WARP];
    uint32_t n = 0, mine = 0;
    if (t->reuse->full)
        return;
    for (u32 i = 0; i < WARP; i++)
        mine |= (uint32_t)((line_hash(host[i] >> 7) >> 16) % ONE_OF == 0) << i;
    for (mine = t->reuse->some ? mine & m : m; mine; mine &= mine - 1) {
        uint64_t at = host[__builtin_ctz(mine)], line = at >> 7;
        uint8_t bits = line_sectors(at >> 5, (at + bytes - 1) >> 5, line);
        uint32_t k = 0;
        while (k < n && list[k] != line)
            k++;
        sectors[k] = k < n ? sectors[k] | bits : bits;
        list[k] = line;
        n += k == n;
    }
    for (uint32_t k = 0; k < n; k++)
        reuse_line(t, list[k], sectors[k], write, true);
}

void reuse_block(struct worker *t)
{
    struct reuse *r = t->reuse;
    if (!t->l->dev->config.counters)
        return;
    if (t->watched == WATCHED || (t->watched && t->watched * WATCHED_OF >= t->share)) {
        t->watching = false;
        reuse_free(t);
        return;
    }
    t->watched++;
    if (!r)
        r = t->reuse = xmalloc(sizeof *r);
    if (r->full) { /* what was seen of its beginning stood for it; now there is better */
        r->some = true;
        t->seen = (struct reuse_counts){0};
    }
    r->full = false;
    r->touches = 0;
    t->watching = true;
    if (r->set)
        memset(r->set, 0, r->room * sizeof *r->set);
    r->count = 0;
    memset(r->valid, 0, sizeof r->valid);
}

void reuse_free(struct worker *t)
{
    if (t->reuse)
        xfree(t->reuse->set);
    xfree(t->reuse);
    t->reuse = NULL;
}

static uint64_t part_of(uint64_t all, uint64_t part, uint64_t whole)
{
    return whole ? (uint64_t)((double)all * (double)part / (double)whole) : all;
}

/* Extrapolates from the observed blocks to all. */
void reuse_total(const struct launch *l, struct simt_counters *c)
{
    struct reuse_counts n = {0};
    for (int w = 0; w < l->worker_count; w++) {
        const struct reuse_counts *x = &l->workers[w].seen;
        for (int i = 0; i < 2; i++) {
            n.all[i] += x->all[i];
            n.first[i] += x->first[i];
            n.chunks[i] += x->chunks[i];
        }
        n.far_loads += x->far_loads;
        for (int i = 0; i < SIMT_BUFFERS; i++)
            n.buffer[i] += x->buffer[i];
    }
    c->block_load_sectors = part_of(c->global_load_sectors, n.first[0], n.all[0]);
    c->block_store_sectors = part_of(c->global_store_sectors, n.first[1], n.all[1]);
    c->block_load_chunks = part_of(c->global_load_sectors, n.chunks[0], n.all[0]);
    c->block_store_chunks = part_of(c->global_store_sectors, n.chunks[1], n.all[1]);
    c->far_load_sectors = part_of(c->global_load_sectors, n.far_loads, n.all[0]);
    for (size_t i = 0; i < SIMT_BUFFERS; i++)
        c->buffer_sectors[i] = n.buffer[i] ? part_of(c->block_load_sectors + c->block_store_sectors,
                                                     n.buffer[i], n.first[0] + n.first[1])
                                           : 0;
    for (size_t i = 0; i < l->dev->alloc_count; i++) {
        const struct alloc *x = &l->dev->alloc[i];
        c->buffer_bytes[i < SIMT_BUFFERS ? i : SIMT_BUFFERS - 1] += x->gone ? 0 : x->hi - x->lo;
    }
}

/* ---- patterns ---- */

/* Distinct sectors, and in the upper half distinct lines of 128 bytes. */
static uint32_t sectors(u32 m, const uint64_t *host, u32 bytes)
{
    uint64_t used = 0, lines = 0, line[64], list[64];
    uint32_t n = 0, nl = 0;
    for (; m; m &= m - 1) {
        uint64_t at = host[__builtin_ctz(m)];
        for (uint64_t s = at >> 5; s <= (at + bytes - 1) >> 5; s++) {
            uint64_t h = s & 63, q = s >> 2 & 63;
            while (used >> h & 1 && list[h] != s)
                h = (h + 1) & 63;
            if (used >> h & 1)
                continue;
            used |= UINT64_C(1) << h;
            list[h] = s;
            while (lines >> q & 1 && line[q] != s >> 2)
                q = (q + 1) & 63;
            nl += !(lines >> q & 1);
            lines |= UINT64_C(1) << q;
            line[q] = s >> 2;
            if (++n == 64)
                return n | nl << 16;
        }
    }
    return n | nl << 16;
}

/* A cost is two counts: sectors and lines of global memory, or wavefronts and how many there would
 * be without conflicts. */
static inline uint32_t low_half(uint32_t cost)
{
    return cost & 0xffff;
}
static inline uint32_t high_half(uint32_t cost)
{
    return cost >> 16;
}

/* Did this site have the pattern recently? Then its cost is known. `low`: what else the cost
 * depends on. */
static inline __attribute__((always_inline)) bool memo_find(struct memo *ways, const uint32_t *diff,
                                                            u32 m, u32 bytes, uint32_t low,
                                                            struct memo **out)
{
    uint32_t mix = (diff[31] ^ diff[15] * 7 ^ diff[7] * 5 ^ diff[23] * 3 ^ m) * 0x9e3779b1u;
    uint32_t differs = 0;
    struct memo *q = &ways[mix >> 29];
    for (int i = 0; i < WARP; i++)
        differs |= diff[i] ^ q->diff[i];
    bool same = !differs && q->mask == m && q->bytes == bytes, known = same && q->known >> low & 1;
    if (!same) {
        memcpy(q->diff, diff, sizeof q->diff);
        q->mask = m;
        q->bytes = bytes;
        q->known = 0;
    }
    q->known |= 1u << low;
    *out = q;
    return known;
}

static HOT bool memo_hit(struct memo *ways, u32 m, const uint64_t *host, u32 bytes, uint32_t low,
                         struct memo **out)
{
    uint32_t diff[WARP];
    uint64_t first = host[__builtin_ctz(m)];
    for (int i = 0; i < WARP; i++)
        diff[i] = (uint32_t)(host[i] - first);
    if (m != ~0u)
        for (u32 i = 0; i < WARP; i++)
            diff[i] &= 0 - (m >> i & 1);
    return memo_find(ways, diff, m, bytes, low, out);
}

/* ---- global memory ---- */

static void add_global(struct simt_counters *n, uint64_t s, uint64_t lines, uint64_t bytes,
                       bool write)
{
    if (write) {
        n->global_store_requests++;
        n->global_store_sectors += s;
        n->global_store_lines += lines;
        n->global_store_bytes += bytes;
    } else {
        n->global_load_requests++;
        n->global_load_sectors += s;
        n->global_load_lines += lines;
        n->global_load_bytes += bytes;
    }
}

static void count_scattered(struct warp *w, u32 m, const uint64_t *host, u32 bytes, u32 site,
                            bool write)
{
    uint64_t first = host[__builtin_ctz(m)];
    uint32_t low = (uint32_t)first >> 2 & 31, cost;
    struct memo *q;
    /* Where words begin decides only for narrower accesses. */
    if (!memo_hit(&w->t->memo[MEMO_WAYS * site], m, host, bytes | (uint32_t)(first & 3) << 8, low,
                  &q))
        q->cost[low] = sectors(m, host, bytes);
    cost = q->cost[low];
    if (__builtin_expect(w->t->watching, 0))
        reuse_lanes(w->t, m, host, bytes, write);
    add_global(&w->t->n, low_half(cost), high_half(cost),
               (uint64_t)bytes * (uint64_t)__builtin_popcount(m), write);
}

HOT void count_global_many(struct warp *w, uint64_t first, const u32 *at, u32 bytes, u32 site,
                           u32 n)
{
    struct simt_counters *c = &w->t->n;
    const struct sw_site *s = site_of(w, site);
    uint64_t host[WARP], all = 0, lines = 0;
    struct memo *q;
    if (w->t->watching || bytes < 4) {
        for (u32 k = 0; k < n; k++) {
            for (int i = 0; i < WARP; i++)
                host[i] = first + (uint64_t)s[k].off + at[i];
            count_scattered(w, ~0u, host, bytes, site, false);
        }
        return;
    }
    u32 low = (u32)(first + (uint64_t)s->off) >> 2 & 31;
    bool known = memo_find(&w->t->memo[MEMO_WAYS * site], at, ~0u, bytes, low, &q);
    for (u32 k = 0; k < n; k++) {
        uint64_t from = first + (uint64_t)s[k].off;
        low = (u32)from >> 2 & 31;
        if (k ? !(q->known >> low & 1) : !known) {
            for (int i = 0; i < WARP; i++)
                host[i] = from + at[i];
            q->cost[low] = sectors(~0u, host, bytes);
            q->known |= 1u << low;
        }
        all += low_half(q->cost[low]);
        lines += high_half(q->cost[low]);
    }
    c->global_load_requests += n;
    c->global_load_sectors += all;
    c->global_load_lines += lines;
    c->global_load_bytes += (uint64_t)n * bytes * WARP;
}

void count_global(struct warp *w, u32 m, const uint64_t *host, u32 bytes, enum shape shape,
                  u32 site, bool write)
{
    if (shape == SHAPE_MIXED)
        count_scattered(w, m, host, bytes, site, write);
    else if (shape == SHAPE_ROW)
        count_global_row(w, host[0], bytes, shape, write);
    else
        count_global_one(w, m, host[__builtin_ctz(m)], bytes, write);
}

void count_global_row(struct warp *w, uint64_t at, u32 bytes, enum shape shape, bool write)
{
    u64 span = shape == SHAPE_SAME ? bytes : (u64)bytes * WARP, last = at + span - 1;
    add_global(&w->t->n, (last >> 5) - (at >> 5) + 1, (last >> 7) - (at >> 7) + 1,
               (u64)bytes * WARP, write);
    if (__builtin_expect(w->t->watching, 0))
        reuse_span(w->t, at, span, write, true);
}

void count_global_one(struct warp *w, u32 m, uint64_t at, u32 bytes, bool write)
{
    uint64_t last = at + bytes - 1;
    add_global(&w->t->n, (last >> 5) - (at >> 5) + 1, (last >> 7) - (at >> 7) + 1,
               (uint64_t)bytes * (uint64_t)__builtin_popcount(m), write);
    if (__builtin_expect(w->t->watching, 0))
        reuse_span(w->t, at, bytes, write, true);
}

/* ---- shared memory ---- */

/* The largest number of words that one bank must serve for lanes of `part`. */
static uint32_t passes(uint32_t part, const uint64_t *host, uint32_t words)
{
    uint32_t list[32][32], most = 0;
    uint8_t count[32] = {0};
    for (; part; part &= part - 1) {
        uint32_t at = (uint32_t)(host[__builtin_ctz(part)] >> 2);
        for (uint32_t i = 0; i < words; i++) {
            uint32_t bank = (at + i) & 31, q = 0;
            while (q < count[bank] && list[bank][q] != at + i)
                q++;
            if (q < count[bank])
                continue;
            list[bank][count[bank]++] = at + i;
            most = count[bank] > most ? count[bank] : most;
        }
    }
    return most;
}

/*
 * Passes over the banks. Accesses of 8 bytes go by half warps, of 16 by quarters;
 * two neighbours go together when one pass serves both, as when all read one
 * place. The result: passes, and in the upper half how many a good pattern takes.
 */
static uint32_t wavefronts(u32 m, const uint64_t *host, u32 bytes)
{
    uint32_t lanes = bytes > 8 ? 8 : bytes > 4 ? 16 : 32, words = bytes > 4 ? bytes / 4 : 1;
    uint32_t waves = 0, ideal = 0;
    if (lanes == 32)
        return passes(m, host, 1) | 1u << 16;
    for (uint32_t first = 0; first < WARP; first += 2 * lanes) {
        uint32_t low = m & (((1u << lanes) - 1) << first),
                 high = m & (((1u << lanes) - 1) << (first + lanes));
        uint32_t a = passes(low, host, words), b = passes(high, host, words);
        bool together = a + b == 2 && a == 1 && passes(low | high, host, words) == 1;
        waves += together ? 1 : a + b;
        ideal += together ? 1u : (a ? 1u : 0u) + (b ? 1u : 0u);
    }
    return waves | ideal << 16;
}

void count_shared(struct warp *w, u32 m, const uint64_t *host, u32 bytes, u32 site)
{
    struct simt_counters *n = &w->t->n;
    struct memo *q;
    if (!m)
        return;
    uint32_t low = (uint32_t)host[__builtin_ctz(m)] & 3;
    if (!memo_hit(&w->t->memo[MEMO_WAYS * site], m, host, bytes | SHARED_KEY, low, &q))
        q->cost[low] = wavefronts(m, host, bytes);
    n->shared_requests++;
    n->shared_wavefronts += low_half(q->cost[low]);
    n->shared_conflicts += (low_half(q->cost[low])) - (high_half(q->cost[low]));
}

HOT void count_shared_many(struct warp *w, const u32 *at, u32 bytes, u32 site, u32 n,
                           bool one_place)
{
    struct simt_counters *c = &w->t->n;
    c->shared_requests += n;
    if (one_place) {
        c->shared_wavefronts += n;
        return;
    }
    struct memo *q;
    uint32_t low = at[0] & 3, diff[WARP];
    for (int i = 0; i < WARP; i++)
        diff[i] = at[i] - at[0];
    if (!memo_find(&w->t->memo[MEMO_WAYS * site], diff, ~0u, bytes | SHARED_KEY, low, &q)) {
        uint64_t host[WARP];
        for (int i = 0; i < WARP; i++)
            host[i] = at[i];
        q->cost[low] = wavefronts(~0u, host, bytes);
    }
    u32 cost = q->cost[low];
    c->shared_wavefronts += (u64)n * (low_half(cost));
    c->shared_conflicts += (u64)n * ((low_half(cost)) - (high_half(cost)));
}

/* ---- atomics ---- */

/* Lanes that must wait for another of the warp at the same address. */
static uint32_t meetings(u32 m, const uint64_t *host)
{
    uint64_t used = 0, list[64];
    uint32_t again = 0;
    for (; m; m &= m - 1) {
        uint64_t at = host[__builtin_ctz(m)], h = (at >> 2) & 63;
        while (used >> h & 1 && list[h] != at)
            h = (h + 1) & 63;
        again += (uint32_t)(used >> h & 1);
        used |= UINT64_C(1) << h;
        list[h] = at;
    }
    return again;
}

void count_atomic(struct warp *w, u32 m, const uint64_t *host, u32 bytes, u32 site, bool shared)
{
    struct simt_counters *n = &w->t->n;
    struct worker *t = w->t;
    n->atomics += (uint64_t)__builtin_popcount(m);
    if (!m || !t->l->dev->config.counters)
        return;
    bool one_place = m == ~0u && shape_of(host, bytes) == SHAPE_SAME;
    uint32_t met = one_place ? WARP - 1 : meetings(m, host);
    n->atomic_conflicts += met;
    if (shared) {
        count_shared(w, m, host, bytes, site);
        return;
    }
    uint32_t cost = sectors(one_place ? 1 : m, host, bytes);
    n->global_atomics += (uint64_t)__builtin_popcount(m);
    n->global_atomic_requests++;
    n->global_atomic_conflicts += met;
    n->global_atomic_sectors += low_half(cost);
    n->global_atomic_lines += high_half(cost);
    for (m = one_place ? 1 : m; m; m &= m - 1) {
        uint64_t at = host[__builtin_ctz(m)];
        t->atomic_low = !t->atomic_high || at < t->atomic_low ? at : t->atomic_low;
        t->atomic_high = at > t->atomic_high ? at : t->atomic_high;
    }
}
