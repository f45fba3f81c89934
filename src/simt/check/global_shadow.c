/* SPDX-License-Identifier: Apache-2.0 */
/*
 * global_shadow.c - global memory under every check: reads of unwritten memory, and races between
 * blocks.
 *
 * Hides: how writers are recorded (global_shadow.h). A row of lanes is a few lines, checked at
 * once; if that shows a problem, the lanes are checked word by word for the report. If the other
 * access is by the same block, block_log.c finds out which threads they were.
 *
 * Blocks that may be ordered (by fences, locks, volatile accesses, clusters) race if the writer has
 * not published what it wrote: by a fence that comes after the write and something others may see
 * (an atomic, a strong store) after both, in the order that the block's barriers give. Or if the
 * other block has since then done nothing by which it could have heard of it.
 *
 * Host threads share the marks. A line is BUSY while it is converted to single words.
 */
#include "simt/check/global_shadow.h"

#include "simt/check/block_log.h"
#include "simt/check/early_access.h"

#include <string.h>

#define BUSY UINT64_MAX

enum { WORDS = SHADOW_LINE / 4 };

/* Of a line, in the order in which the tables lie behind each other: wide members first. */
enum {
    LINE_BYTES = 3 * sizeof(uint64_t) + (2 * WORDS + 1) * sizeof(uint32_t) + WORDS,
    WROTE_BYTES = WORDS * sizeof(struct wrote),
};

struct shadow *shadow_new(uint64_t bytes, bool ever_written)
{
    struct shadow *s = xmalloc(sizeof *s);
    size_t lines = (size_t)(bytes / SHADOW_LINE + 1);
    s->lines = lines;
    s->words = (size_t)((bytes + 3) / 4);
    s->line = xmap(lines * LINE_BYTES);
    s->read = s->line + lines;
    s->atom = s->read + lines;
    s->word = (uint32_t *)(s->atom + lines);
    s->by = s->word + lines * WORDS;
    uint32_t *ever = s->by + lines * WORDS;
    s->ever = ever_written ? NULL : ever;
    s->part = (uint8_t *)(ever + lines);
    return s;
}

void shadow_free(struct shadow *s)
{
    if (!s)
        return;
    xunmap(s->line, s->lines * LINE_BYTES);
    xunmap(s->wrote, s->lines * WROTE_BYTES);
    xfree(s);
}

/* Number of marks per launch; if there are more blocks they share marks. */
static uint32_t marks(uint64_t blocks)
{
    return blocks < 1u << 30 ? (uint32_t)blocks : 1u << 30;
}

/* All of it has been written, so single words need not be tracked any more. */
static void settle_ever(struct shadow *s)
{
    if (!s->ever)
        return;
    for (size_t i = 0; i < s->words / WORDS; i++)
        if (s->ever[i] != ~0u)
            return;
    if (s->words % WORDS && s->ever[s->words / WORDS] != (1u << s->words % WORDS) - 1)
        return;
    s->ever = NULL;
}

void shadow_begin(struct shadow *s, uint64_t blocks, bool orders, uint64_t earlier, bool overlapped)
{
    memmove(s->floors + 1, s->floors, sizeof s->floors - sizeof *s->floors);
    s->floors[0] = s->floor;
    if (s->written || s->reads || s->atoms) /* the reserved marks are used up */
        s->floor += s->given;
    if (s->floor > UINT32_MAX - 4 - marks(blocks)) {
        memset(s->line, 0, s->lines * sizeof *s->line);
        memset(s->read, 0, s->lines * sizeof *s->read);
        memset(s->atom, 0, s->lines * sizeof *s->atom);
        memset(s->floors, 0, sizeof s->floors);
        s->floor = 0;
    }
    s->since = earlier ? s->floors[63 - __builtin_clzll(earlier)] : s->floor;
    s->watched = overlapped || s->since < s->floor;
    s->written = 0;
    s->given = marks(blocks) + 2;
    s->reads = s->atoms = false;
    settle_ever(s);
    if (orders && !s->wrote)
        s->wrote = xmap(s->lines * WROTE_BYTES);
}

void shadow_ever(struct shadow *s, uint64_t at, uint64_t bytes)
{
    uint64_t end = (at + bytes - 1) / 4;
    for (uint64_t w = at / 4; s->ever && w <= end; w++) {
        if (w % WORDS == 0 && end - w >= WORDS) {
            __atomic_store_n(&s->ever[w / WORDS], ~0u, __ATOMIC_RELAXED);
            w += WORDS - 1;
            continue;
        }
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
        memset(s->part + line * WORDS, 15, WORDS);
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

/* Another thread wrote one of these words. */
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
    for (; some; some &= some - 1) {
        uint64_t word = line * WORDS + (uint64_t)__builtin_ctz(some);
        s->part[word] = 15;
        __atomic_store_n(&s->word[word], me, __ATOMIC_RELAXED);
    }
}

/* Some bytes of a word. */
static void part_write(struct shadow *s, uint64_t word, uint32_t bytes, uint32_t me)
{
    line_split(s, word / WORDS);
    s->part[word] = (uint8_t)(s->word[word] == me ? s->part[word] | bytes : bytes);
    __atomic_store_n(&s->word[word], me, __ATOMIC_RELAXED);
}

/* The block itself wrote one of these words. */
static inline bool line_own(const struct shadow *s, uint64_t line, uint32_t some, uint64_t v,
                            uint32_t me)
{
    if (owner_of(v) != s->floor + 1)
        return owner_of(v) == me && (uint32_t)v & some;
    for (; some; some &= some - 1)
        if (s->word[line * WORDS + (uint64_t)__builtin_ctz(some)] == me)
            return true;
    return false;
}

/* What readers left on these words: the block's own, or another's. */
static inline bool mark_own(uint64_t v, uint32_t some, uint32_t me)
{
    return owner_of(v) == me && (uint32_t)v & some;
}
static inline bool mark_other(const struct shadow *s, uint64_t v, uint32_t some, uint32_t me)
{
    return owner_of(v) > s->floor && owner_of(v) != me && (uint32_t)v & some;
}
static inline uint64_t read_marks(const struct shadow *s, uint64_t line)
{
    return __atomic_load_n(&s->reads, __ATOMIC_RELAXED)
               ? __atomic_load_n(&s->read[line], __ATOMIC_RELAXED)
               : 0;
}
static inline void mark_read(struct shadow *s, uint64_t line, uint32_t some, uint32_t me)
{
    if (!__atomic_load_n(&s->reads, __ATOMIC_RELAXED))
        __atomic_store_n(&s->reads, true, __ATOMIC_RELAXED);
    uint64_t v = __atomic_load_n(&s->read[line], __ATOMIC_RELAXED);
    uint64_t mine = (uint64_t)me << 32 | some | (owner_of(v) == me ? (uint32_t)v : 0);
    if (v != mine)
        __atomic_store_n(&s->read[line], mine, __ATOMIC_RELAXED);
}

/* ---- accesses ---- */

static uint32_t my_mark(const struct warp *w, const struct shadow *s)
{
    struct blk *b = w->blk;
    if (b->listens) {
        b->heard = __atomic_load_n(&w->t->l->said, __ATOMIC_SEQ_CST);
        b->listens = false;
    }
    return s->floor + 2 + (uint32_t)(w->blk->index & ((1u << 30) - 1));
}

/* From the first write on, reads of it are checked: none may be done without a call any more. */
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
           (!x->shadow->ever &&
            (x->flags & SIMT_ALLOC_READONLY ||
             (!x->shadow->watched && !__atomic_load_n(&x->shadow->written, __ATOMIC_RELAXED))));
}

static bool of_before(const struct shadow *s, uint64_t earlier, uint64_t v)
{
    uint32_t end = s->floor;
    if (owner_of(v) <= s->since)
        return false;
    for (int k = 0; k < EARLIER_LAUNCHES && earlier >> k; end = s->floors[k++])
        if (earlier >> k & 1 && owner_of(v) > s->floors[k] && owner_of(v) <= end)
            return true;
    return false;
}

enum access shadow_before(const struct shadow *s, uint64_t earlier, uint64_t word, enum access does)
{
    uint64_t line = word / WORDS, bit = UINT64_C(1) << word % WORDS, v = line_load(s, line);
    if (!(uint32_t)v) /* see the words */
        v = v ? (uint64_t)__atomic_load_n(&s->word[word], __ATOMIC_RELAXED) << 32 | bit : 0;
    if (v & bit && of_before(s, earlier, v))
        return WRITES;
    v = __atomic_load_n(&s->atom[line], __ATOMIC_RELAXED);
    if (does != UPDATES && v & bit && of_before(s, earlier, v))
        return UPDATES;
    v = __atomic_load_n(&s->read[line], __ATOMIC_RELAXED);
    return does != READS && v & bit && of_before(s, earlier, v) ? READS : ACCESS_NONE;
}

/* Who updated one of these words atomically: *own, or others, whose mark it returns. */
static uint32_t atom_marks(const struct shadow *s, uint64_t line, uint32_t some, uint32_t me,
                           bool *own)
{
    uint32_t other = 0;
    if (!__atomic_load_n(&s->atoms, __ATOMIC_RELAXED))
        return 0;
    uint64_t v = __atomic_load_n(&s->atom[line], __ATOMIC_RELAXED);
    if (owner_of(v) <= s->floor)
        return 0;
    for (some &= (uint32_t)v; some; some &= some - 1) {
        uint32_t who =
            __atomic_load_n(&s->by[line * WORDS + (uint64_t)__builtin_ctz(some)], __ATOMIC_RELAXED);
        *own |= who == me || who == s->floor + 1;
        other = who != me ? who : other;
    }
    return other;
}

static void atom_mark(struct shadow *s, uint64_t word, uint32_t me)
{
    if (!__atomic_load_n(&s->atoms, __ATOMIC_RELAXED))
        __atomic_store_n(&s->atoms, true, __ATOMIC_RELAXED);
    uint64_t *line = &s->atom[word / WORDS], v = __atomic_load_n(line, __ATOMIC_RELAXED), now;
    uint32_t who = __atomic_load_n(&s->by[word], __ATOMIC_RELAXED);
    bool first = owner_of(v) <= s->floor || !(v >> word % WORDS & 1);
    if (who != me)
        __atomic_store_n(&s->by[word], first ? me : s->floor + 1, __ATOMIC_RELAXED);
    do {
        now = (uint64_t)(s->floor + 1) << 32 | 1u << word % WORDS |
              (owner_of(v) > s->floor ? (uint32_t)v : 0);
    } while (v != now && !__atomic_compare_exchange_n(line, &v, now, false, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED));
}

/* ---- blocks that are ordered ---- */

void block_publishes(struct warp *w)
{
    struct launch *l = w->t->l;
    struct blk *b = w->blk;
    if (!l->published)
        return;
    uint32_t *to = l->published + b->index * l->nwarps;
    for (uint32_t i = 0; i < l->nwarps; i++) {
        uint32_t time = b->fenced[i] < w->clock[i] ? b->fenced[i] : w->clock[i];
        if (time > __atomic_load_n(&to[i], __ATOMIC_RELAXED))
            __atomic_store_n(&to[i], time, __ATOMIC_RELAXED);
    }
    b->fence_new = false;
    __atomic_fetch_add(&l->said, 1, __ATOMIC_SEQ_CST);
}

void block_fences(struct warp *w)
{
    struct blk *b = w->blk;
    if (!w->t->l->published)
        return;
    clock_tick(w);
    for (uint32_t i = 0; i < w->t->l->nwarps; i++)
        b->fenced[i] = b->fenced[i] > w->clock[i] ? b->fenced[i] : w->clock[i];
    b->fence_new = true;
    block_listens(w);
    if (w->t->l->clustered)
        block_publishes(w);
}

static void wrote_note(const struct warp *w, struct shadow *s, uint64_t word)
{
    s->wrote[word] = (struct wrote){.time = w->clock[w->w.id] << 5 | w->w.id,
                                    .said = __atomic_load_n(&w->t->l->said, __ATOMIC_RELAXED)};
}

static void wrote_some(const struct warp *w, struct shadow *s, uint64_t line, uint32_t some)
{
    for (; some; some &= some - 1)
        wrote_note(w, s, line * WORDS + (uint64_t)__builtin_ctz(some));
}

/* Whoever wrote the word has published it since; or that is unknown. */
static bool word_published(const struct launch *l, const struct shadow *s, uint64_t word,
                           uint32_t who)
{
    if (!l->published || !s->wrote)
        return true;
    uint32_t by = s->wrote[word].time & 31, time = s->wrote[word].time >> 5;
    const uint32_t *to = &l->published[(uint64_t)(who - s->floor - 2) * l->nwarps + by];
    if (__atomic_load_n(to, __ATOMIC_RELAXED) > time)
        return true;
    atomic_thread_fence(memory_order_seq_cst);
    return __atomic_load_n(to, __ATOMIC_RELAXED) > time;
}

/* And this block may have heard of that. */
static bool word_fenced(const struct warp *w, const struct shadow *s, uint64_t word, uint32_t who)
{
    const struct launch *l = w->t->l;
    if (!l->orders || !word_published(l, s, word, who))
        return false;
    return !l->published || !s->wrote || l->clustered || w->blk->heard > s->wrote[word].said;
}

static bool words_fenced(const struct warp *w, const struct shadow *s, uint64_t line, uint32_t some,
                         uint32_t me)
{
    for (; some; some &= some - 1) {
        uint64_t word = line * WORDS + (uint64_t)__builtin_ctz(some);
        uint32_t who = word_mark(s, word);
        if (who > s->floor + 1 && who != me && !word_fenced(w, s, word, who))
            return false;
    }
    return true;
}

static void block_log_note(struct warp *w, const struct log_access *x, bool again)
{
    if (site_of(w, x->site)->flags & SW_STRONG || x->bytes > 32)
        return;
    if (again)
        block_log_check(w, x);
    block_log_add(w, x, again);
}

/* ---- rows ---- */

/* Which words of a line lie in [first, end). */
static uint32_t words_in(uint64_t line, uint64_t first, uint64_t end)
{
    uint32_t some = ~0u;
    if (line * WORDS < first)
        some &= ~0u << first % WORDS;
    if (end - line * WORDS < WORDS)
        some &= ~(~0u << end % WORDS);
    return some;
}

/* False: unordered accesses of others to the line conflict; *again: the block itself was there. */
static inline bool line_free(const struct warp *w, const struct shadow *s, uint64_t i,
                             uint32_t some, uint64_t v, uint32_t me, bool write, bool *again)
{
    const struct launch *l = w->t->l;
    if (line_other(s, i, some, v, me) && !(l->orders && words_fenced(w, s, i, some, me)))
        return false;
    if (atom_marks(s, i, some, me, again) && !l->orders)
        return false;
    *again |= line_own(s, i, some, v, me);
    if (!write)
        return true;
    uint64_t read = read_marks(s, i);
    *again |= mark_own(read, some, me);
    return l->orders || !mark_other(s, read, some, me);
}

/* What comes after a fence may be a flag, even if it is not strong. */
static inline void tell(struct warp *w, u32 site)
{
    if (w->blk->fence_new && !(site_of(w, site)->flags & SW_STRONG))
        block_publishes(w);
}

bool shadow_row(struct warp *w, uint64_t at, u32 bytes, u32 site, bool write)
{
    struct alloc *x = w->t->cache[site].alloc;
    uint64_t earlier = early_beside(w);
    if (earlier)
        early_row(w, earlier, at, bytes, site, write ? WRITES : READS);
    if (!x || at < x->lo || at + (uint64_t)bytes * WARP > x->hi || (at - x->lo) % 4 || bytes % 4)
        return false;
    if (!write && shadow_quiet(x))
        return true;
    struct shadow *s = x->shadow;
    uint32_t me = my_mark(w, s), bad = 0;
    uint64_t first = (at - x->lo) / 4, end = first + (uint64_t)bytes * WARP / 4;
    bool strong = site_of(w, site)->flags & SW_STRONG, again = false;
    if (write) {
        now_written(w, x);
        tell(w, site);
    }
    for (uint64_t i = first / WORDS; i * WORDS < end; i++) {
        uint32_t some = words_in(i, first, end);
        uint64_t v = line_load(s, i);
        bool untouched = owner_of(v) <= s->floor && !s->reads && !s->atoms;
        if (!strong && !untouched && !line_free(w, s, i, some, v, me, write, &again))
            return false;
        if (write && !strong) {
            line_write(s, i, some, v, me);
            if (s->wrote && w->t->l->orders)
                wrote_some(w, s, i, some);
        } else if (!strong) {
            mark_read(s, i, some, me);
        }
        if (!s->ever)
            continue;
        if (!write)
            bad |= some & ~__atomic_load_n(&s->ever[i], __ATOMIC_RELAXED);
        else if ((__atomic_load_n(&s->ever[i], __ATOMIC_RELAXED) & some) != some)
            __atomic_fetch_or(&s->ever[i], some, __ATOMIC_RELAXED);
    }
    if (again && !write && site_of(w, site)->flags & SW_READONLY)
        return false;
    if (!bad)
        block_log_note(w,
                       &(struct log_access){.m = ~0u,
                                            .bytes = bytes,
                                            .site = site,
                                            .how = write ? LOG_WRITE : LOG_READ,
                                            .row = at},
                       again);
    return !bad;
}

/* ---- lanes anywhere ---- */

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

static bool line_mine(struct warp *w, struct shadow *s, uint64_t line, uint32_t some, uint32_t me,
                      bool *again)
{
    uint64_t v = line_load(s, line);
    if (!line_free(w, s, line, some, v, me, true, again))
        return false;
    line_write(s, line, some, v, me);
    if (s->wrote && w->t->l->orders)
        wrote_some(w, s, line, some);
    if (s->ever && (__atomic_load_n(&s->ever[line], __ATOMIC_RELAXED) & some) != some)
        __atomic_fetch_or(&s->ever[line], some, __ATOMIC_RELAXED);
    return true;
}

/* Stores of whole words where no other block has stored; neighbours fill a line together. */
static bool shadow_words(struct warp *w, struct alloc *x, u32 m, const uint64_t *host, u32 n,
                         bool *again)
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
            if (!line_mine(w, s, line, some, me, again))
                return false;
            some = 0;
        }
        line = word / WORDS;
        some |= (uint32_t)((UINT64_C(1) << n) - 1) << word % WORDS;
    }
    return !some || line_mine(w, s, line, some, me, again);
}

static void report_unset(struct warp *w, u32 lane, u32 site, uint64_t at, const struct alloc *x)
{
    finding_add(&(struct finding_where){w, lane, site}, SIMT_UNINITIALISED, at, x, -1, -1, -1,
                "reads %s at offset %llu, which nothing has written", x->name,
                (unsigned long long)(at - x->lo));
}

/* ld.global.nc may find in its cache what was there before. */
static void report_cached(struct warp *w, u32 lane, u32 site, uint64_t at, const struct alloc *x)
{
    finding_add(&(struct finding_where){w, lane, site}, SIMT_RACE_GLOBAL, at, x, -1, -1, -1,
                "reads %s at offset %llu as data that never changes (ld.global.nc), but this "
                "launch has written it",
                x->name, (unsigned long long)(at - x->lo));
}

/* did: what the other block does to it. */
static void report_race(struct warp *w, u32 lane, u32 site, uint64_t at, const struct alloc *x,
                        enum access doing, enum access did, uint32_t who)
{
    const struct launch *l = w->t->l;
    const char *does = access_word(doing);
    uint32_t block = who - x->shadow->floor - 2;
    bool same = doing == WRITES && did == WRITES &&
                store_repeats(w, lane, site, (const void *)(uintptr_t)at);
    bool fence = l->orders && did == WRITES && !word_published(l, x->shadow, (at - x->lo) / 4, who);
    enum simt_finding_kind kind = same    ? SIMT_SAME_VALUE
                                  : fence ? SIMT_MISSING_FENCE
                                          : SIMT_RACE_GLOBAL;
    struct finding_where at_site = {w, lane, site};
    unsigned long long off = (unsigned long long)(at - x->lo);
    if (who == x->shadow->floor + 1)
        finding_add(&at_site, kind, at, x, -1, -1, -1,
                    "%s %s at offset %llu, which other blocks of this grid update atomically", does,
                    x->name, off);
    else
        finding_add(&at_site, kind, at, x, -1, -1, -1,
                    "%s %s at offset %llu, which block %u of this grid %s too%s", does, x->name,
                    off, block, did == UPDATES ? "updates atomically" : access_word(did),
                    same    ? "; the value is the same"
                    : fence ? ", without a fence (__threadfence) before what tells others of it"
                    : l->orders && did == WRITES
                        ? ", and nothing here could have heard of that (an atomic, a volatile or "
                          "acquiring load)"
                        : "");
}

/* Another block wrote these bytes of a word, with nothing to order it. */
static uint32_t word_race(const struct warp *w, const struct shadow *s, uint64_t word,
                          uint32_t bytes, uint32_t me, bool *again)
{
    uint32_t who = word_mark(s, word);
    if (who <= s->floor + 1 ||
        (owner_of(line_load(s, word / WORDS)) == s->floor + 1 && !(s->part[word] & bytes)))
        return 0;
    *again |= who == me;
    return who != me && !word_fenced(w, s, word, who) ? who : 0;
}

/* False: reported. */
static bool word_free(struct warp *w, u32 lane, struct alloc *x, uint64_t at, uint64_t word,
                      uint32_t bytes, u32 site, bool write, bool *again)
{
    struct shadow *s = x->shadow;
    uint32_t me = my_mark(w, s), bit = 1u << word % WORDS;
    uint32_t who = word_race(w, s, word, bytes, me, again);
    enum access does = write ? WRITES : READS;
    uint32_t by = atom_marks(s, word / WORDS, bit, me, again);
    uint64_t read = write ? read_marks(s, word / WORDS) : 0;
    *again |= mark_own(read, bit, me);
    if (who)
        report_race(w, lane, site, at, x, does, WRITES, who);
    else if (!w->t->l->orders && by)
        report_race(w, lane, site, at, x, does, UPDATES, by);
    else if (!w->t->l->orders && bytes == 15 && mark_other(s, read, bit, me))
        report_race(w, lane, site, at, x, does, READS, owner_of(read));
    else
        return true;
    return false;
}

static void shadow_lane(struct warp *w, u32 lane, struct alloc *x, uint64_t at, u32 bytes, u32 site,
                        bool write, bool *again)
{
    struct shadow *s = x->shadow;
    uint32_t me = my_mark(w, s);
    bool strong = site_of(w, site)->flags & SW_STRONG;
    for (uint64_t c = (at - x->lo) / 4; c <= (at - x->lo + bytes - 1) / 4; c++) {
        uint64_t lo = c * 4 < at - x->lo ? at - x->lo - c * 4 : 0;
        uint64_t hi = at - x->lo + bytes - c * 4 > 4 ? 4 : at - x->lo + bytes - c * 4;
        uint32_t part = (1u << hi) - (1u << lo);
        if (!write && s->ever &&
            !(__atomic_load_n(&s->ever[c / WORDS], __ATOMIC_RELAXED) >> c % WORDS & 1)) {
            report_unset(w, lane, site, at, x);
            return;
        }
        if (!strong && !word_free(w, lane, x, at, c, part, site, write, again))
            return;
        if (!write) {
            if (site_of(w, site)->flags & SW_READONLY && word_mark(s, c) == me) {
                report_cached(w, lane, site, at, x);
                return;
            }
            if (!strong)
                mark_read(s, c / WORDS, 1u << c % WORDS, me);
            continue;
        }
        now_written(w, x);
        shadow_ever(s, c * 4, 4);
        if (strong)
            continue;
        if (part == 15)
            line_write(s, c / WORDS, 1u << c % WORDS, line_load(s, c / WORDS), me);
        else
            part_write(s, c, part, me);
        if (s->wrote && w->t->l->orders)
            wrote_note(w, s, c);
    }
}

static bool lanes_shadow(struct warp *w, u32 m, const uint64_t *host, u32 bytes, u32 site,
                         bool write)
{
    struct alloc *last = w->t->cache[site].alloc;
    bool again = false, strong = site_of(w, site)->flags & SW_STRONG;
    uint64_t low;
    if (last && last->shadow && all_inside(last, m, host, bytes, &low)) {
        if (!write && shadow_quiet(last))
            return false;
        if (write && !strong && !((low | bytes) & 3) &&
            shadow_words(w, last, m, host, bytes / 4, &again))
            return again;
    }
    for (; m; m &= m - 1) {
        u32 lane = (u32)__builtin_ctz(m);
        struct alloc *x = last;
        if (!x || host[lane] < x->lo || host[lane] + bytes > x->hi)
            x = alloc_find(w->t->l->dev, host[lane], bytes);
        if (x && x->shadow && !(!write && shadow_quiet(x)))
            shadow_lane(w, lane, x, host[lane], bytes, site, write, &again);
    }
    return again;
}

void shadow_bulk(struct warp *w, u32 lane, const uint64_t *host, u32 bytes, u32 site, bool write)
{
    lanes_shadow(w, 1u << lane, host, bytes, site, write);
}

void shadow_global(struct warp *w, u32 m, const uint64_t *host, u32 bytes, u32 site, bool write)
{
    const struct alloc *x = w->t->cache[site].alloc;
    uint64_t earlier = early_beside(w);
    if (earlier)
        early_lanes(w, earlier, m, host, bytes, site, write ? WRITES : READS);
    if (write)
        tell(w, site);
    bool again = lanes_shadow(w, m, host, bytes, site, write);
    if (write || !x || !shadow_quiet(x))
        block_log_note(w,
                       &(struct log_access){.m = m,
                                            .bytes = bytes,
                                            .site = site,
                                            .how = write ? LOG_WRITE : LOG_READ,
                                            .host = host},
                       again);
}

/* ---- atomics ---- */

void shadow_atomic(struct warp *w, u32 m, const uint64_t *host, u32 bytes, u32 site)
{
    struct log_access log = {.m = m, .bytes = bytes, .site = site, .how = LOG_ATOMIC, .host = host};
    bool again = false, of_block = site_of(w, site)->flags & SW_OF_BLOCK;
    uint64_t earlier = early_beside(w);
    if (earlier)
        early_lanes(w, earlier, m, host, bytes, site, UPDATES);
    for (u32 left = m; left; left &= left - 1) {
        u32 lane = (u32)__builtin_ctz(left);
        struct alloc *x = w->t->cache[site].alloc;
        if (!x || host[lane] < x->lo || host[lane] + bytes > x->hi)
            x = alloc_find(w->t->l->dev, host[lane], bytes);
        if (!x || !x->shadow)
            continue;
        struct shadow *s = x->shadow;
        uint64_t word = (host[lane] - x->lo) / 4, line = word / WORDS;
        uint32_t me = my_mark(w, s), bit = (bytes == 8 ? 3u : 1u) << word % WORDS;
        shadow_ever(s, host[lane] - x->lo, bytes);
        if (bytes < 4)
            continue;
        now_written(w, x);
        uint32_t who = word_race(w, s, word, 15, me, &again);
        if (who)
            report_race(w, lane, site, host[lane], x, UPDATES, WRITES, who);
        again |= mark_own(read_marks(s, line), bit, me);
        uint32_t by = of_block ? atom_marks(s, line, bit, me, &again) : 0;
        if (by)
            report_race(w, lane, site, host[lane], x, UPDATES, UPDATES, by);
        for (uint64_t c = word; c < word + bytes / 4; c++)
            atom_mark(s, c, me);
    }
    if (bytes >= 4)
        block_log_note(w, &log, again);
}
