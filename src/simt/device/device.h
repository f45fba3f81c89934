/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - internals of the device: its data structures while a grid runs.
 *
 *   struct simt     the device: configuration, allocations, findings
 *   struct launch   one grid
 *   struct worker   one host thread of a launch: resident blocks, caches, counters
 *   struct blk      one resident block: shared memory, its shadow, barriers, warps
 *   struct warp     one warp: its fiber, its copies in flight, its clock
 *
 * src/simt/README.md lists the files. Functions shared between files are declared below, under the
 * file's name.
 *
 * Invariants
 * 1. A blk and everything in it is touched by one worker only.
 * 2. Findings and allocations are shared: findings under the lock, allocations
 *    are not changed during a launch.
 * 3. Nothing in here trusts an address from a kernel while checks are on.
 */
#ifndef SIMT_DEVICE_H
#define SIMT_DEVICE_H

#include "base/buf.h"
#include "base/sanitized.h"
#include "simt/device/fiber.h"
#include "simt/emit/abi.h"
#include "simt/simt.h"

#include <pthread.h>
#include <stdatomic.h>

/* Loops over lanes profit from the host's wider vectors. Not with clang 14, whose clones get names
 * that other files cannot link, nor under a sanitizer, where they would run before it is ready. */
#if defined(__x86_64__) && !defined(__clang__) && !defined(SANITIZED)
#define CLONES
#define HOT __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define HOT
#endif

enum {
    MAX_WARPS = 32,
    BARRIERS = 16,
    WARP = 32,
    ASYNC = MAX_WARPS,             /* entry of a clock for what copies wrote */
    HELD = MAX_WARPS + 1,          /* and, per warpgroup, for what its wgmmas read */
    TENSOR = HELD + MAX_WARPS / 4, /* and for what tcgen05 wrote and read */
    REMOTE = TENSOR + 1,           /* and for what other blocks of the cluster read and wrote */
    CLOCKS = REMOTE + 1
};

struct alloc {
    uint64_t lo, hi;
    char *name;
    unsigned flags;
    bool gone;
    struct shadow *shadow; /* check full: who wrote what */
};

struct simt_module {
    void *handle;
    const struct sw_module *sw;
    struct simt_param **params;
    struct simt_module *next;
};

/* A finding with its cause: the kind, and the user's line or, without one, the PTX line. */
struct finding_slot {
    struct simt_finding f;
    int file, line;
};

/* Earlier launches that may still run beside a launch, until it has waited for the one right before
 * it and after that; bit k: the one k + 1 launches before. */
struct earlier {
    uint64_t begin, waited;
};

struct simt {
    struct simt_config config;
    struct sw_ops ops; /* what kernels call */
    struct arena *a;
    struct alloc *alloc;
    size_t alloc_count, alloc_cap;
    struct simt_module *modules;
    pthread_mutex_t lock;
    struct earlier last;  /* what the last launch leaves to one that overlaps it */
    struct fiber **spare; /* of finished launches: their stacks can be reused */
    uint32_t spare_count;
};

enum { MAX_RESIDENT = 512 }; /* blocks of one host thread at the same time */

struct launch {
    struct simt *dev;
    const struct sw_module *mod;
    const struct sw_kernel *k;
    const struct simt_launch *spec;
    const struct sw_form *form; /* the one that fits the block shape */
    uint32_t smem_bytes, nthreads, nwarps;
    uint64_t blocks, sample; /* blocks or clusters of the grid; those to run */
    uint64_t marks;          /* blocks of the grid */
    bool direct;             /* check full: others also read the cells, so they must be complete */
    bool orders;             /* blocks may be ordered: by fences, locks, clusters */
    bool clustered;          /* clusters of several blocks, which have other ways to meet */
    uint32_t *published;     /* check full, and they may: by block and warp, what it wrote before
                              * this time of its clock has a fence and something others may see */
    uint32_t said;           /* how often anything was published */
    struct earlier earlier;  /* check full: launches that may still run */
    atomic_bool waited;      /* a warp has waited for the one before */
    atomic_bool hastened;    /* a warp has let the next one begin, and had not waited */
    void *grid_space;        /* cooperative: barrier of the grid */
    /* Written for every block, on a line of the host's cache that nothing else is on. */
    char apart[128];
    atomic_uint_fast64_t next_block;
    char apart_too[128];
    atomic_int stop; /* findings or the watchdog ended it */
    int64_t started_ms, deadline_ms;
    struct arena *a; /* of the caller: findings */
    struct finding_slot *slot;
    size_t slots, max_slots;
    uint64_t dropped;
    enum simt_outcome outcome;
    char why[512];
    struct buf printed;
    struct worker *workers;
    int worker_count;
};

struct range {
    uint64_t lo, hi;
    struct alloc *alloc;
    uint64_t last; /* where the last row was: the next is likely as far on again */
};

/* Is [at, at + bytes) entirely inside? Correct even if at + bytes overflows. */
static inline bool range_has(const struct range *c, uint64_t at, uint64_t bytes)
{
    return at >= c->lo && at <= c->hi && bytes <= c->hi - at;
}

/* The last address pattern of a site and its cost, because patterns repeat. */
struct memo {
    uint32_t diff[WARP], mask, bytes, known; /* known: which costs are */
    uint32_t cost[32];                       /* by the low bits of the first address */
};
enum { MEMO_WAYS = 8 };

/* What the watched blocks did: loads, stores. counters.c */
struct reuse_counts {
    uint64_t all[2], first[2], chunks[2], far_loads, buffer[SIMT_BUFFERS];
};

/* A cp.async waiting for its wait: one instruction of a warp. */
struct copy {
    uint64_t src[WARP];
    uint32_t dst[WARP], bytes[WARP], mask, size, site;
    uint32_t time; /* check full: of the warp's clock, when it began */
    bool entered;  /* the cells know of it */
};

enum warp_state { WARP_NEW, WARP_READY, WARP_SPIN, WARP_BARRIER, WARP_DONE };

struct warp {
    struct sw_warp w; /* first: kernels hold a pointer to it */
    struct blk *blk;
    struct worker *t;
    struct fiber *fiber;
    enum warp_state state;
    uint32_t all; /* lanes that are threads */
    uint32_t bar_id, bar_site, bar_result;
    uint32_t last_site;
    bool polled; /* read memory others write, since it last yielded */
    struct copy *copy;
    size_t copies, copy_cap;
    uint32_t group_end[32], groups; /* committed groups as prefix lengths */
    uint32_t clock[CLOCKS];         /* what it knows of the others; own entry: its time */
    u64 *log;                       /* check full: where w.log begins; shared_race_log.c */
    uint32_t log_time;              /* time of its first entry */
    struct warp_hopper *hop;        /* hopper.h; NULL until something of sm_90 is used */
};

struct barrier {
    uint32_t arrived, expected, waiting_mask, arrive_mask, result, site;
    bool used, fences;                                      /* fences: `fenced` is not all 0 */
    uint32_t clock[CLOCKS], fenced[CLOCKS], tensor[CLOCKS]; /* 0 while they are not used */
};

/* The last accesses to 4 bytes of shared memory. Times are those of the warp's clock. */
struct cell {
    uint32_t wtime, rtime;
    uint16_t wsite, rsite;
    uint8_t wwarp, wlane, rwarp;
    uint8_t wbytes, rbytes, init, flight; /* byte masks; flight: a copy is in flight */
    uint8_t rlane[4];                     /* of each byte */
    uint32_t rmask[2], rgen;              /* of each half, which warps */
};
enum { LANE_MANY = 255, LOG_ENTRIES = 512, LATE_KNOWN = 1024 };

/* An access, or several alike, not yet entered into the cells: shared_race_deferred.c. */
struct late {
    uint32_t site, sites, warp, time, gen, mask;
    uint32_t words;        /* of each lane */
    uint32_t small;        /* 0, or bytes of each lane: a part of one word */
    uint32_t base, stride; /* where the lanes are: in a line, */
    int32_t lanes;         /* or as blk.late_at says */
    bool write;
};

/* Where the lanes of a site's loads were found to be written, in one block. */
struct sure {
    uint64_t block;
    uint32_t diff[WARP], first[8], count;
};

struct blk {
    struct sw_block b;
    struct worker *t;
    uint64_t index;
    struct warp *warp;
    uint32_t done;
    struct barrier bar[BARRIERS];
    struct cell *cell;
    size_t cells;
    struct late *late;
    size_t lates, late_cap, late_writes, late_plain; /* plain: reads that are not in loaded */
    uint32_t (*late_at)[WARP];
    uint32_t *late_known; /* LATE_KNOWN entries by hash: most loads come again */
    size_t late_lanes, late_lane_cap;
    uint16_t *stored, *loaded;  /* per word: shared_race_deferred.c */
    uint8_t *full;              /* per word: all of it was stored to */
    uint16_t epoch;             /* the first of its marks; continues from block to block */
    bool quiet;                 /* nothing was written since all warps last synchronised */
    bool armed;                 /* and loads without a call are in the warps' logs */
    uint32_t quiet_reads;       /* loads by call meanwhile */
    bool dirty;                 /* the cells were used */
    uint32_t flights;           /* asynchronous copies under way, by lane */
    uint32_t hidden;            /* copies under way not yet in the cells, by instruction */
    uint32_t gen;               /* barriers completed */
    uint32_t locks[MAX_WARPS];  /* joined clocks of all releases of locks */
    uint32_t fenced[MAX_WARPS]; /* what its fences cover */
    uint32_t waited[MAX_WARPS]; /* since when they know that the launch before has ended; 0: not */
    bool told;                  /* it may have heard from a block that waited */
    bool fence_new;             /* one since the last that was published */
    bool listens;               /* it may just have heard of what others published, */
    uint32_t heard;             /* all before this */
    uint8_t *smem_alloc, *local;
    u64 *logs;
    struct block_log *log;   /* check full: block_log.c */
    uint32_t written;        /* number of leading words that are full */
    struct cluster *cluster; /* hopper.h; NULL: launched without */
    struct hopper *hop;
    struct blk *next;
    uint32_t cursor;
};

/* Traffic of one memory instruction; only with a profile. */
struct site_use {
    uint64_t requests, sectors, waves, conflicts;
    uint64_t runs, extra; /* atomics: lanes, meetings; waits: copies left; others: how often */
};

/* How the lanes of an access to global memory lay the last time. lane_groups.h */
enum { HOT_ONE = 1, HOT_GROUP };
struct spread {
    uint64_t diff[WARP], low,
        top;                      /* from its first lane on; the lowest lane; from there the last */
    uint32_t at[WARP], mask, how; /* from the lowest lane on */
    uint32_t misses, pause;       /* patterns that did not come again: ask less often */
    bool known, single;           /* single: spread_access.c may go by it */
    uint8_t hot;                  /* words of every lane, and nothing to count: */
    uint32_t addr, dst;           /* where its lanes are in the frame, */
    uint64_t lo, room;            /* where its lowest address may be, */
    struct alloc *alloc;          /* inside this buffer */
};

struct worker {
    struct launch *l;
    struct blk *active, *free;
    struct fiber **fibers; /* all fibers of this worker; they never move */
    struct fiber **idle;   /* those no warp runs on */
    uint32_t fiber_count, idle_count;
    struct range *cache;        /* per site */
    struct memo *memo;          /* MEMO_WAYS per site */
    struct sw_fast *fast;       /* per site: accesses that kernels may do without a call */
    struct sure *sure;          /* per site; check full */
    uint8_t *wanted;            /* per first site of a group of loads: batched_access.c */
    struct spread *spread;      /* likewise */
    struct finding_slot **told; /* per site: what it reported last */
    uint64_t *counts;
    struct site_use *use; /* per site, or NULL */
    struct simt_counters n;
    struct reuse *reuse; /* for observed blocks, or NULL */
    bool watching;
    struct reuse_counts seen;
    uint32_t watched;
    uint64_t run_next, run_end;       /* blocks it has taken */
    uint64_t share;                   /* blocks it will run, about */
    uint64_t atomic_low, atomic_high; /* global addresses */
    void *wgmma_scratch, *tcgen05_work;
    uint64_t progress_seen; /* cluster.c: when no warp could continue last */
    uint32_t idle_rounds;
    pthread_t thread;
    bool started, failed;
    char apart[128]; /* from the next one's */
};

static inline struct warp *warp_of(struct sw_warp *w)
{
    return (struct warp *)(void *)w;
}
static inline const struct sw_site *site_of(const struct warp *w, uint32_t site)
{
    return &w->t->l->k->sites[site];
}

/* The part of shared memory that the instruction may access: *begin, and its size in bytes. */
static inline u32 smem_window(const struct warp *w, const struct sw_site *s, u32 *begin)
{
    *begin = s->begin;
    return s->end ? s->end - s->begin : w->blk->b.smem_bytes;
}

/* The lanes of an instruction's register number i; NULL if it is unused. */
static inline void *reg_lanes(const struct warp *w, const struct sw_site *s, u32 i)
{
    u32 at = w->t->l->k->regs[s->regs + i];
    return at == SW_NONE ? NULL : w->w.fr + at;
}
static inline void regs_lanes(const struct warp *w, const struct sw_site *s, u32 first, u32 n,
                              void **out)
{
    const u32 *at = w->t->l->k->regs + s->regs + first;
    u8 *fr = w->w.fr; /* read once: for the compiler, a write to out[] may change it */
    for (u32 i = 0; i < n; i++)
        out[i] = at[i] == SW_NONE ? NULL : fr + at[i];
}

/* shared_race_log.c */
void log_mark(struct warp *w); /* what comes is of another time */

/* Orders everything so far before the warp's next accesses. */
static inline void clock_tick(struct warp *w)
{
    w->clock[w->w.id]++;
    if (w->w.log != w->log)
        log_mark(w);
    else
        w->log_time = w->clock[w->w.id];
}

/* Something that others may see: it tells them of all that lies before it and has a fence. */
void block_publishes(struct warp *w);
/* The block has executed a fence: what it wrote may be published to others. */
void block_fences(struct warp *w);
/* It may have seen what others published, and heard of their waits: early_access.c. */
void block_hears(struct warp *w);
static inline void block_listens(struct warp *w)
{
    if (__builtin_expect(w->t->l->earlier.begin != 0, 0))
        block_hears(w);
    w->blk->listens = true;
}

/* device.c */
struct alloc *alloc_find(const struct simt *dev, uint64_t addr, uint64_t bytes);
struct alloc *alloc_nearest(const struct simt *dev, uint64_t addr);

/* findings.c */
struct finding_where {
    struct warp *w;
    uint32_t lane, site;
};
/* Findings with one cause are merged and counted. The caller continues: no launch ends because of
 * too many reports. */
void finding_add(const struct finding_where *at, enum simt_finding_kind kind, uint64_t address,
                 const struct alloc *near, int other_warp, int other_lane, int other_site,
                 const char *fmt, ...) __attribute__((format(printf, 8, 9)));

/* block_scheduler.c */
void spare_release(struct simt *dev);
void worker_run(struct worker *t);
/* Takes a block (the first of a cluster) that has not begun out of the grid; false: none is
 * left. */
bool blocks_cancel(struct worker *t, uint32_t first[3]);
size_t stack_bytes(const struct launch *l); /* of one warp */
void worker_release(struct worker *t);
_Noreturn void warp_abort(struct warp *w);
void warp_yield(struct warp *w, enum warp_state state);
void dev_grid(struct sw_warp *, u32 wait); /* early_access.c */
u32 dev_bar(struct sw_warp *, u32 m, u32 kind, u32 id, u32 threads, u32 pred, u32 site);
void dev_sync(struct sw_warp *, u32 m, u32 members, u32 site);
s32 dev_tick(struct sw_warp *, u32 waiting, u32 site);
void dev_trap(struct sw_warp *, u32 m, u32 asserted, u32 site);

/* memory.c */
void dev_ld(struct sw_warp *, u32 m, u32 site); /* spread_access.c */
void load_any(struct sw_warp *, u32 m, u32 site);
void dev_st(struct sw_warp *, u32 m, u32 site);
void dev_lds(struct sw_warp *, u32 m, u32 site, u32 n, s64 lo, s64 hi);
void dev_sts(struct sw_warp *, u32 m, u32 site, u32 n, s64 lo, s64 hi);
u32 dev_strip(struct sw_warp *, u32 m, u32 site, u32 n, s64 lo, s64 hi, u32 kind);
void dev_lda(struct sw_warp *, u32 m, u64 base, u32 w, u32 site);
void dev_sta(struct sw_warp *, u32 m, u64 base, u32 w, u32 site);
u8 *dev_quads(struct sw_warp *, u32 m, u32 site, u32 write);
u64 dev_ldu(struct sw_warp *, u32 m, u64 addr, u32 site);
void dev_ldun(struct sw_warp *, u32 m, u64 addr, u32 site, u64 *out);
u32 dev_isspace(struct sw_warp *, u32 space, u64 addr);
/* Checked host addresses of the lanes; lanes that fail a check are removed from *m. */
void lanes_resolve(struct warp *w, u32 *m, const void *addr, u32 site, u32 bytes, bool write,
                   uint64_t *host, enum sw_space *space);
/* spread_access.c: global memory, lanes that lie as they did the last time; _new: as they may the
 * next time. True: it is done. */
bool load_spread(struct warp *w, u32 m, u32 site, const u64 *a);
bool load_spread_new(struct warp *w, u32 m, u32 site, const u64 *a, void *const *dst);
bool store_spread(struct warp *w, u32 m, u32 site, const u64 *a, void *const *src);
/* Fast path for lanes all in the block's own shared memory: their offsets. False: use
 * lanes_resolve(). */
bool lanes_shared(struct warp *w, const void *addr, u32 site, u32 bytes, u32 *at);
void lanes_check_source(struct warp *w, u32 *m, u32 site, u32 size, const uint64_t *from,
                        const u32 *bytes);
enum shape { SHAPE_MIXED, SHAPE_ROW, SHAPE_SAME };
enum shape shape_of(const uint64_t *host, u32 bytes);
void access_account(struct warp *w, u32 m, const uint64_t *host, u32 bytes, enum sw_space space,
                    enum shape shape, u32 site, bool write);

/* counters.c: only called with counters on, but for count_atomic and the last four */
void count_global(struct warp *w, u32 m, const uint64_t *host, u32 bytes, enum shape shape,
                  u32 site, bool write);
void count_global_row(struct warp *w, uint64_t at, u32 bytes, enum shape shape, bool write);
void count_global_one(struct warp *w, u32 m, uint64_t at, u32 bytes, bool write); /* all there */
void count_shared(struct warp *w, u32 m, const uint64_t *host, u32 bytes, u32 site);
/* n requests with the lane pattern at[]. */
void count_shared_many(struct warp *w, const u32 *at, u32 bytes, u32 site, u32 n, bool one_place);
/* n requests with lanes at first + at[] plus their offsets. */
void count_global_many(struct warp *w, uint64_t first, const u32 *at, u32 bytes, u32 site, u32 n);
void count_atomic(struct warp *w, u32 m, const uint64_t *host, u32 bytes, u32 site, bool shared);
void reuse_span(struct worker *t, uint64_t at, uint64_t bytes, bool write, bool cached);
void reuse_block(struct worker *t); /* a block begins: is it observed? */
void reuse_free(struct worker *t);
void reuse_total(const struct launch *l, struct simt_counters *c);

/* global_shadow.c: Fast path of shadow_global() for contiguous lanes; true: nothing to report. */
bool shadow_row(struct warp *w, uint64_t at, u32 bytes, u32 site, bool write);
void shadow_global(struct warp *w, u32 m, const uint64_t *host, u32 bytes, u32 site, bool write);
void shadow_atomic(struct warp *w, u32 m, const uint64_t *host, u32 bytes, u32 site);
/* An access by the asynchronous proxy on behalf of a lane. */
void shadow_bulk(struct warp *w, u32 lane, const uint64_t *host, u32 bytes, u32 site, bool write);
bool shadow_quiet(const struct alloc *x); /* reads of it need no check */

/* shared_race.c */
void race_atomic(struct warp *w, u32 lane, uint64_t at, u32 bytes, u32 site);
void race_access(struct warp *w, u32 m, const uint64_t *host, u32 bytes, u32 site, bool write);
void race_copy_begin(struct warp *w, struct copy *c); /* may land any time from now */
void race_copy_land(struct warp *w, struct copy *c);
void race_note_read(struct warp *w, u32 lane, u32 site, uint32_t at, u32 bytes);
void race_reset(struct blk *b);
void race_ends(struct blk *b);     /* its last warp has left */
void race_some_met(struct blk *b); /* a barrier of some warps is about to complete */
/* All warps synchronised: everything before is ordered before everything after. */
void race_all_met(struct blk *b);
void race_enter(struct blk *b); /* the caller will inspect the cells itself */
/* True, in all of these: nothing more to do now. Rows of 16 bytes, one at host[] of each lane of m;
 * last, n loads at at[] plus their offsets. */
bool race_rows_later(struct warp *w, u32 m, const uint64_t *host, u32 site);
bool race_row(struct warp *w, u32 first, u32 bytes, u32 site, bool write);  /* lanes side by side */
bool race_read_same(struct warp *w, u32 m, u32 first, u32 bytes, u32 site); /* at one place */
bool race_read_later(struct warp *w, const u32 *at, u32 bytes, u32 site, u32 n);

/* cp_async.c */
void dev_cp_async(struct sw_warp *, u32 m, const void *dst, const u64 *src, const u32 *bytes,
                  u32 site);
void dev_cp_commit(struct sw_warp *);
void dev_cp_wait(struct sw_warp *, u32 left, u32 site);
void cp_land_all(struct warp *w);

u64 atom_combine(u32 kind, u64 old, u64 b, u64 c);
/* Orders accesses under a lock or before a fence before those of a thread that later takes the lock
 * or reads a flag. */
void lock_releases(struct warp *w);
void lock_acquires(struct warp *w);

/* profile.c */
void profile_table(struct sw_ops *ops);
void profile_lines(struct launch *l, struct arena *a, struct simt_result *out);

/* atomic.c, warp_collectives.c, tensor_core.c, rounded_math.c */
void dev_atom(struct sw_warp *, u32 m, const void *addr, u32 site, void *dst, const void *b,
              const void *c);
u32 dev_shflu(struct sw_warp *, u32 m, u32 mode, void *dst, const void *src, u32 b, u32 c,
              u32 members, u32 site);
u32 dev_shfl(struct sw_warp *, u32 m, u32 mode, void *dst, const void *src, const u32 *b,
             const u32 *c, u32 members, u32 site);
void dev_match(struct sw_warp *, u32 m, u32 kind, u32 *dst, u32 *pred, const void *src,
               u32 members);
u32 dev_redux(struct sw_warp *, u32 m, u32 kind, const u32 *src, u32 members);
void dev_print(struct sw_warp *, u32 m, const u64 *format, const u64 *args);
u64 dev_clock(struct sw_warp *);
void dev_ldmatrix(struct sw_warp *, u32 m, u32 site);
void dev_stmatrix(struct sw_warp *, u32 m, u32 site);
void dev_movmatrix(struct sw_warp *, u32 *dst, const u32 *src);
void dev_mma(struct sw_warp *, u32 site);
void dev_wmma(struct sw_warp *, u32 m, u64 addr, u32 stride, u32 site);
float math_f32(u32 op, u32 mode, float x, float y, float z);
double math_f64(u32 op, u32 mode, double x, double y, double z);
float math_fn(u32 fn, float x);

#endif
