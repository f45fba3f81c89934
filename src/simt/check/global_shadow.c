/* SPDX-License-Identifier: Apache-2.0 */
/*
 * global_shadow.c - global memory under every check: reads of what nothing wrote, blocks that race.
 *
 * Hides: how writers are kept (global_shadow.h). A row of lanes is a few lines, looked at at once;
 * where that shows anything, the lanes are gone through word by word for the report.
 *
 * Host threads share the marks. A line that goes over to words is BUSY meanwhile.
 */
#include "simt/check/global_shadow.h"

#include "simt/device/device.h"

#include <string.h>

#define BUSY UINT64_MAX

enum { WORDS = SHADOW_LINE / 4 };

struct shadow *shadow_new(uint64_t bytes, bool ever_written)
{
    struct shadow *s = xmalloc(sizeof *s);
    s->lines = (size_t)(bytes / SHADOW_LINE + 1);
    s->line = xmalloc(s->lines * sizeof *s->line);
    s->word = xmalloc(s->lines * WORDS * sizeof *s->word);
    if (!ever_written)
        s->ever = xmalloc(s->lines * sizeof *s->ever);
    return s;
}

void shadow_free(struct shadow *s)
{
    if (!s)
        return;
    xfree(s->line);
    xfree(s->word);
    xfree(s->ever);
    xfree(s);
}

/* How many marks a launch takes: more blocks than that share them. */
static uint32_t marks(uint64_t blocks)
{
    return blocks < 1u << 30 ? (uint32_t)blocks : 1u << 30;
}

void shadow_begin(struct shadow *s, uint64_t blocks)
{
    if (s->written) /* the marks that were given out are used up */
        s->floor += s->written;
    if (s->floor > UINT32_MAX - 4 - marks(blocks)) {
        memset(s->line, 0, s->lines * sizeof *s->line);
        s->floor = 0;
    }
    s->written = 0;
}

void shadow_ever(struct shadow *s, uint64_t at, uint64_t bytes)
{
    for (uint64_t w = at / 4; s->ever && w <= (at + bytes - 1) / 4; w++) {
        uint32_t *e = &s->ever[w / WORDS], bit = 1u << w % WORDS;
        if (!(__atomic_load_n(e, __ATOMIC_RELAXED) & bit))
            __atomic_fetch_or(e, bit, __ATOMIC_RELAXED);
    }
}

/* ---- one line ---- */

/* In a line's 64 bits: who, and which words; or floor + 1 and the words say. */
static inline uint32_t owner_of(uint64_t v)
{
    return (uint32_t)(v >> 32);
}

static inline uint64_t line_load(const struct shadow *s, uint64_t line)
{
    uint64_t v = __atomic_load_n(&s->line[line], __ATOMIC_ACQUIRE);
    while (__builtin_expect(v == BUSY, 0))
        v = __atomic_load_n(&s->line[line], __ATOMIC_ACQUIRE);
    return v;
}

static bool line_swap(struct shadow *s, uint64_t line, uint64_t from, uint64_t to)
{
    return __atomic_compare_exchange_n(&s->line[line], &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* Marks of single words from now on. */
static void line_split(struct shadow *s, uint64_t line)
{
    uint64_t v = line_load(s, line);
    while (owner_of(v) != s->floor + 1) {
        if (!line_swap(s, line, v, BUSY)) {
            v = line_load(s, line);
            continue;
        }
        for (int i = 0; i < WORDS; i++)
            s->word[line * WORDS + (uint64_t)i] = v >> i & 1 ? owner_of(v) : 0;
        __atomic_store_n(&s->line[line], (uint64_t)(s->floor + 1) << 32, __ATOMIC_RELEASE);
        return;
    }
}

/* Who wrote this word in this launch; a mark that is not above floor + 1: none did. */
static inline uint32_t word_mark(const struct shadow *s, uint64_t word)
{
    uint64_t v = line_load(s, word / WORDS);
    if (owner_of(v) == s->floor + 1)
        return __atomic_load_n(&s->word[word], __ATOMIC_RELAXED);
    return v >> word % WORDS & 1 ? owner_of(v) : 0;
}

/* Somebody else wrote one of these words. */
static inline bool line_other(const struct shadow *s, uint64_t line, uint32_t some, uint64_t v,
                              uint32_t me)
{
    uint32_t owner = owner_of(v);
    if (owner != s->floor + 1)
        return owner > s->floor && owner != me && (uint32_t)v & some;
    for (; some; some &= some - 1) {
        uint32_t who = __atomic_load_n(&s->word[line * WORDS + (uint64_t)__builtin_ctz(some)],
                                       __ATOMIC_RELAXED);
        if (who > s->floor + 1 && who != me)
            return true;
    }
    return false;
}

static void line_write(struct shadow *s, uint64_t line, uint32_t some, uint64_t v, uint32_t me)
{
    for (;; v = line_load(s, line)) {
        uint64_t mine = (uint64_t)me << 32 | some;
        if (owner_of(v) == me)
            mine |= v;
        else if (owner_of(v) > s->floor && some != ~0u)
            break;
        if (v == mine || line_swap(s, line, v, mine))
            return;
    }
    line_split(s, line);
    for (; some; some &= some - 1)
        __atomic_store_n(&s->word[line * WORDS + (uint64_t)__builtin_ctz(some)], me,
                         __ATOMIC_RELAXED);
}

/* ---- accesses ---- */

static uint32_t my_mark(const struct warp *w, const struct shadow *s)
{
    return s->floor + 2 + (uint32_t)(w->blk->index & ((1u << 30) - 1));
}

/* From the first write on, reads of it are checked: also those that went without a call. */
static void now_written(struct warp *w, struct alloc *x)
{
    struct launch *l = w->t->l;
    struct shadow *s = x->shadow;
    if (__builtin_expect(__atomic_load_n(&s->written, __ATOMIC_RELAXED), 1))
        return;
    __atomic_store_n(&s->written, marks(l->marks) + 2, __ATOMIC_SEQ_CST);
    for (int i = 0; i < l->worker_count; i++)
        for (u32 site = 0; site < l->k->site_count; site++)
            if (l->workers[i].fast[site].lo == x->lo)
                __atomic_store_n(&l->workers[i].fast[site].room, 0, __ATOMIC_SEQ_CST);
}

bool shadow_quiet(const struct alloc *x)
{
    return !x->shadow ||
           (!x->shadow->ever && (x->flags & SIMT_ALLOC_READONLY ||
                                 !__atomic_load_n(&x->shadow->written, __ATOMIC_RELAXED)));
}

bool shadow_row(struct warp *w, uint64_t at, u32 bytes, u32 site, bool write)
{
    struct alloc *x = w->t->cache[site].alloc;
    if (!x || at < x->lo || at + (uint64_t)bytes * WARP > x->hi || (at - x->lo) % 4 || bytes % 4)
        return false;
    if (!write && shadow_quiet(x))
        return true;
    struct shadow *s = x->shadow;
    uint32_t me = my_mark(w, s), bad = 0;
    uint64_t first = (at - x->lo) / 4, end = first + (uint64_t)bytes * WARP / 4;
    bool ordered = w->t->l->k->strong || site_of(w, site)->flags & SW_STRONG;
    if (write)
        now_written(w, x);
    for (uint64_t i = first / WORDS; i * WORDS < end; i++) {
        uint32_t some = ~0u;
        uint64_t v = line_load(s, i);
        if (i * WORDS < first)
            some &= ~0u << first % WORDS;
        if (end - i * WORDS < WORDS)
            some &= ~(~0u << end % WORDS);
        if (!ordered && line_other(s, i, some, v, me))
            return false;
        if (write)
            line_write(s, i, some, v, me);
        if (!s->ever)
            continue;
        if (!write)
            bad |= some & ~__atomic_load_n(&s->ever[i], __ATOMIC_RELAXED);
        else if ((__atomic_load_n(&s->ever[i], __ATOMIC_RELAXED) & some) != some)
            __atomic_fetch_or(&s->ever[i], some, __ATOMIC_RELAXED);
    }
    return !bad;
}

/* All lanes inside the buffer; *low: low bits of where. */
static HOT bool all_inside(const struct alloc *x, u32 m, const uint64_t *host, u32 bytes,
                           uint64_t *low)
{
    uint64_t bad = 0, bits = 0, room = x->hi - x->lo - bytes;
    if (x->hi - x->lo < bytes)
        return false;
    for (u32 i = 0; i < WARP; i++) {
        uint64_t d = host[i] - x->lo, on = 0 - (uint64_t)(m >> i & 1);
        bad |= (d | (room - d)) & on;
        bits |= d & on;
    }
    *low = bits;
    return !(bad >> 63);
}

static bool line_mine(struct shadow *s, uint64_t line, uint32_t some, uint32_t me)
{
    uint64_t v = line_load(s, line);
    if (line_other(s, line, some, v, me))
        return false;
    line_write(s, line, some, v, me);
    if (s->ever && (__atomic_load_n(&s->ever[line], __ATOMIC_RELAXED) & some) != some)
        __atomic_fetch_or(&s->ever[line], some, __ATOMIC_RELAXED);
    return true;
}

/* Stores of whole words where no other block has stored; neighbours fill a line together. */
static bool shadow_words(struct warp *w, struct alloc *x, u32 m, const uint64_t *host, u32 n)
{
    struct shadow *s = x->shadow;
    uint32_t me = my_mark(w, s), some = 0;
    uint64_t line = 0;
    now_written(w, x);
    for (; m; m &= m - 1) {
        uint64_t word = (host[__builtin_ctz(m)] - x->lo) / 4;
        if (word % WORDS + n > WORDS)
            return false;
        if (some && word / WORDS != line) {
            if (!line_mine(s, line, some, me))
                return false;
            some = 0;
        }
        line = word / WORDS;
        some |= (uint32_t)((UINT64_C(1) << n) - 1) << word % WORDS;
    }
    return !some || line_mine(s, line, some, me);
}

static bool report_unset(struct warp *w, u32 lane, u32 site, uint64_t at, const struct alloc *x)
{
    return finding_add(&(struct finding_where){w, lane, site}, SIMT_UNINITIALISED, at, x, -1, -1,
                       -1, "reads %s at offset %llu, which nothing has written", x->name,
                       (unsigned long long)(at - x->lo));
}

static bool report_race(struct warp *w, u32 lane, u32 site, uint64_t at, const struct alloc *x,
                        bool write, uint32_t block)
{
    return finding_add(&(struct finding_where){w, lane, site}, SIMT_RACE_GLOBAL, at, x, -1, -1, -1,
                       "%s %s at offset %llu, which block %u of this grid writes too",
                       write ? "writes" : "reads", x->name, (unsigned long long)(at - x->lo),
                       block);
}

static void shadow_lane(struct warp *w, u32 lane, struct alloc *x, uint64_t at, u32 bytes, u32 site,
                        bool write, bool ordered)
{
    struct shadow *s = x->shadow;
    uint32_t me = my_mark(w, s);
    for (uint64_t c = (at - x->lo) / 4; c <= (at - x->lo + bytes - 1) / 4; c++) {
        uint32_t who = word_mark(s, c);
        if (!write && s->ever &&
            !(__atomic_load_n(&s->ever[c / WORDS], __ATOMIC_RELAXED) >> c % WORDS & 1)) {
            if (!report_unset(w, lane, site, at, x))
                warp_abort(w);
            return;
        }
        if (who > s->floor + 1 && who != me && !ordered && bytes >= 4) {
            if (!report_race(w, lane, site, at, x, write, who - s->floor - 2))
                warp_abort(w);
            return;
        }
        if (write) {
            now_written(w, x);
            line_write(s, c / WORDS, 1u << c % WORDS, line_load(s, c / WORDS), me);
            shadow_ever(s, c * 4, 4);
        }
    }
}

void shadow_global(struct warp *w, u32 m, const uint64_t *host, u32 bytes, u32 site, bool write)
{
    const struct sw_site *site_is = site_of(w, site);
    struct launch *l = w->t->l;
    struct alloc *last = w->t->cache[site].alloc;
    bool ordered = l->k->strong & SW_K_ORDERS || site_is->flags & SW_STRONG;
    uint64_t low;
    if (last && last->shadow && all_inside(last, m, host, bytes, &low)) {
        if (!write && shadow_quiet(last))
            return;
        if (write && !((low | bytes) & 3) && shadow_words(w, last, m, host, bytes / 4))
            return;
    }
    for (; m; m &= m - 1) {
        u32 lane = (u32)__builtin_ctz(m);
        struct alloc *x = last;
        if (!x || host[lane] < x->lo || host[lane] + bytes > x->hi)
            x = alloc_find(l->dev, host[lane], bytes);
        if (x && x->shadow)
            shadow_lane(w, lane, x, host[lane], bytes, site, write, ordered);
    }
}
