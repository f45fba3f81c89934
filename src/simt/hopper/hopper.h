/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hopper.h - what sm_90 adds: clusters, mbarriers that count bytes, bulk
 * copies, tensor maps, wgmma, and the shadow of the asynchronous proxy.
 *
 * Files: cluster.c (blocks that run together, each other's shared memory),
 * mbarrier.c, bulk_copy.c (cp.async.bulk, st.async), tensor_map.c (tiles of tensor maps), wgmma.c,
 * async_proxy.c (accesses of asynchronous units), peer_clocks.c (a warp's clocks of other blocks).
 *
 * Shared addresses. The low 24 bits are the offset in a block's memory, the
 * byte above it is 0 for the own block and rank + 1 for another of the
 * cluster; mapa makes those. Generic addresses are host addresses, as ever.
 *
 * Invariants
 * 1. All blocks of a cluster run on one worker, and their memory stays until
 *    the last of them is done.
 * 2. A bulk copy into shared memory lands when a thread tests its mbarrier,
 *    one out of it when its group is waited for: as late as possible, so that a missing wait shows.
 */
#ifndef SIMT_HOPPER_H
#define SIMT_HOPPER_H

#include "simt/device/device.h"
#include "simt/hopper/tensor_map.h"

enum { CLUSTER_MAX = 16, SHARED_TAG = 24, MAP_RANK = 5 };

/* Of each block of a cluster, by rank: peer_clocks.c. */
struct peer_clocks {
    uint32_t clock[CLUSTER_MAX][CLOCKS];
};

struct cluster {
    uint32_t size, dim[3], done, held; /* blocks: in all, ended, not yet given back */
    struct blk *blk[CLUSTER_MAX];
    uint32_t arrived;         /* warps, in this phase of barrier.cluster */
    uint32_t phase;           /* barriers completed */
    uint64_t progress;        /* incremented by everything that another warp may wait for */
    struct peer_clocks known; /* when the last phase of barrier.cluster began */
};

/* A copy into shared memory in flight; queued at the block whose mbarrier it signals. */
struct flight {
    struct blk *dst, *from; /* from: shared to shared, src is an offset in it */
    struct warp *by;
    uint64_t src;                   /* global address, or of the map */
    uint32_t at, bytes, span, mbar; /* in dst; bytes are counted, span is taken, gaps included */
    uint32_t site, lane, rank;      /* rank: of the map; 0: plain bytes */
    uint32_t op;                    /* red.async */
    int32_t coord[MAP_RANK];
    uint16_t offset[3];
    bool value;       /* st.async: the bytes are here */
    bool pair;        /* cta_group::2 */
    bool again;       /* a multicast, which another block's flight has read from memory */
    uint64_t earlier; /* launches beside which it was issued: early_access.h */
    uint8_t data[16];
};

enum span_kind { SPAN_READ, SPAN_READ_AGAIN, SPAN_WRITE, SPAN_REDUCE };

static inline enum span_kind flight_kind(const struct flight *f)
{
    return f->again ? SPAN_READ_AGAIN : SPAN_READ;
}

/* A copy or reduction out of shared memory, of one thread. */
struct leaving {
    uint64_t dst; /* global address, or of the map */
    uint32_t at, bytes, span, esize, site, lane, rank, op;
    int32_t coord[MAP_RANK];
    uint16_t offset[3];
    uint32_t group;   /* 0: not committed */
    uint64_t earlier; /* as in a flight */
};

struct mbar_shadow {
    uint32_t at, clock[CLOCKS], fenced[CLOCKS];
    bool used, invalid;
    uint32_t init_warp, init_time, init_epoch;
    uint32_t phase_bytes, phase_expect; /* bytes that arrived and were expected in this phase */
    struct peer_clocks *peers;
};

/* A block's state for all this, created when first needed. */
struct hopper {
    struct flight *flight;
    size_t flights, flight_cap;
    struct mbar_shadow *mbar;
    size_t mbars, mbar_cap;
    uint16_t *busy;    /* per 16 bytes: asynchronous reads under way; check full */
    uint32_t *by_site; /* per 16 bytes: site of the last of them, + 1 */
    uint32_t async_time, held_time[MAX_WARPS / 4], remote_time;
    uint64_t progress;
    uint32_t remote_epoch, remote_site, remote_lane; /* last plain access from another block */
    struct warp *remote_by;
    struct tensor_memory *tensor; /* blackwell.h; NULL until it is used */
    struct peer_clocks *met;      /* what its warps brought to barriers */
};

/* 16 bytes that a warp's wgmma reads until it is waited for. */
struct pending_read {
    uint32_t at, site, group;
};

struct warp_hopper {
    struct leaving *leaving;
    size_t leavings, leaving_cap;
    uint32_t groups[WARP]; /* bulk groups committed, per lane */
    struct pending_read *read;
    size_t reads, read_cap;
    uint32_t wg_group; /* wgmma groups committed */
    struct wg_result {
        const void *reg; /* lanes of an accumulator under way */
        uint32_t group, site;
    } * result;
    size_t results, result_cap;
    struct tc_read {
        struct blk *b;
        uint32_t at, site;
    } * tc_read; /* 16 bytes that its tcgen05 reads until they are committed */
    size_t tc_reads, tc_read_cap;
    uint32_t ld_seq, ld_over, st_seq, st_over; /* of tensor memory: begun, waited for */
    bool wg_waits;                             /* for the other warps of its warpgroup */
    bool cl_arrived, cl_waits;
    uint32_t cl_phase, cl_clock[CLOCKS], cl_fenced[CLOCKS];
    struct blk *wait_blk; /* whose mbarrier it waits for, if it does */
    uint32_t wait_at, wait_site, wait_parity;
    uint32_t fenced[CLOCKS]; /* what it knows to be visible to the asynchronous proxy */
    /* what its tcgen05 come after; its own entry: its last fence::before_thread_sync. next: from
     * the next fence::after_thread_sync on */
    uint32_t tensor[CLOCKS], tensor_next[CLOCKS];
    struct peer_clocks *peers;
    struct tensor_map map; /* the last that was not simt's own, decoded */
};

struct hopper *hopper_of(struct blk *b);
struct warp_hopper *warp_hopper_of(struct warp *w);
void hopper_reset(struct blk *b);
void hopper_free(struct blk *b, uint32_t nwarps);

/* cluster.c */
struct place {
    struct blk *b;
    uint32_t at;
};
/* Where a lane's shared address is; false: reported, the lane is dropped. */
bool place_find(struct warp *w, uint32_t lane, uint32_t site, bool generic, uint64_t addr,
                uint32_t bytes, uint32_t align, bool write, struct place *out);
struct cluster *cluster_new(const uint32_t dim[3]);
void cluster_warp_left(struct blk *b);
bool cluster_done(struct blk *b); /* its last warp left; true: the whole cluster is over */
/* All live warps wait for each other: reports what they wait for. */
bool cluster_stuck(struct worker *t);
/* A generic address in another block of the cluster. */
bool cluster_generic(struct warp *w, uint32_t *m, uint32_t site, uint32_t bytes, bool write,
                     const uint64_t *host);
void cluster_touch(struct warp *w, uint32_t lane, uint32_t site, struct blk *b);
void dev_cl_ld(struct sw_warp *, u32 m, const u64 *addr, u32 site, void *const *dst);
void dev_cl_st(struct sw_warp *, u32 m, const u64 *addr, u32 site, void *const *src);
void dev_cl_atom(struct sw_warp *, u32 m, const u64 *addr, u32 site, void *dst, const void *b,
                 const void *c);
void dev_cl_bar(struct sw_warp *, u32 m, u32 kind, u32 site);
u64 dev_mapa(struct sw_warp *, u64 addr, u32 rank, u32 kind);

/* mbarrier.c */
u32 dev_mbar(struct sw_warp *, u32 m, const u64 *addr, u32 site, u64 *state, const u32 *count);
void dev_cp_mbar(struct sw_warp *, u32 m, const void *addr, u32 site);
void mbar_landed(struct flight *f, struct blk *owner, uint32_t bytes);
const char *mbar_state_text(struct blk *b, uint32_t at, char *out, size_t size);

/* bulk_copy.c */
enum bulk_form {
    BULK_IN,
    BULK_OUT,
    BULK_ACROSS, /* shared to another block's shared */
    BULK_TENSOR_IN,
    BULK_TENSOR_OUT,
    BULK_PREFETCH,
    BULK_PREFETCH_TENSOR,
    BULK_CANCEL /* clusterlaunchcontrol.try_cancel */
};
/* A kind: the form, the rank of a tensor, flags, operation and type of a reduction. */
enum {
    BULK_FORM = 15,
    BULK_RANK_SHIFT = 4,
    BULK_RANK = 7,
    BULK_MULTICAST = 1 << 8,
    BULK_REDUCE = 1 << 9,
    BULK_IM2COL = 1 << 10,
    BULK_PAIR = 1 << 11, /* cta_group::2: the mbarrier may be the other block's of the pair */
    BULK_OP_SHIFT = 16,
    BULK_OP = 15,
    BULK_TYPE_SHIFT = 20,
    BULK_TYPE = 63
};
static inline enum bulk_form bulk_form_of(u32 kind)
{
    return (enum bulk_form)(kind & BULK_FORM);
}
static inline u32 bulk_rank_of(u32 kind)
{
    return kind >> BULK_RANK_SHIFT & BULK_RANK;
}
static inline u32 bulk_op_of(u32 kind)
{
    return kind >> BULK_OP_SHIFT & BULK_OP;
}
void dev_bulk(struct sw_warp *, u32 m, u32 site, const struct sw_bulk *x);
void dev_bulk_group(struct sw_warp *, u32 m, u32 kind, u32 left, u32 site);
void dev_st_async(struct sw_warp *, u32 m, const u64 *addr, u32 site, void *const *src,
                  const u64 *mbar);
void bulk_settle(struct blk *b, uint32_t mbar); /* lands what tells this mbarrier */
void bulk_leave(struct warp *w);                /* the warp is done: what it left behind */
bool global_span(struct warp *w, u32 lane, u32 site, uint64_t addr, uint32_t bytes,
                 enum span_kind kind, uint64_t earlier);
void global_put(struct warp *w, const struct leaving *l, uint64_t addr, const uint8_t *from,
                uint32_t bytes, uint32_t esize);

/* tensor_map.c */
struct tensor_map;
const struct tensor_map *map_of(struct warp *w, uint32_t lane, uint32_t site, uint64_t addr);
uint32_t map_tile_bytes(const struct tensor_map *t); /* that an mbarrier counts */
uint32_t map_tile_span(const struct tensor_map *t);  /* that shared memory holds */
void map_load(struct flight *f);
void map_store(struct warp *w, const struct leaving *l);

/* peer_clocks.c: what w knows of block b; arrivals and waits carry it on */
const uint32_t *peer_clock(const struct warp *w, const struct blk *b);
void peers_arrive(struct warp *w, struct blk *b, struct mbar_shadow *sh);
void peers_learn(struct warp *w, const struct peer_clocks *from);
void peers_meet(struct warp *w); /* at a barrier of the block */
/* A copy into dst told another block's mbarrier. */
void peers_landed(struct mbar_shadow *sh, struct blk *dst);
/* What warps of other blocks know of the block of that rank, joined to a clock. */
void peers_know(const struct cluster *c, uint32_t rank, uint32_t *clock);
/* w reads or writes another block's shared memory: races with that block's threads; check full */
void peer_access(struct warp *w, u32 lane, u32 site, struct place p, uint32_t bytes, bool write);

/* What a warp waited for orders its tcgen05 too: blackwell.h. */
void tensor_learn(struct warp *w, const uint32_t clock[CLOCKS]);
/* An arrival by tcgen05.commit; time: of the tensor memory's work that it stands for. */
void mbar_commit(struct warp *w, u32 lane, u32 site, struct place p, uint32_t time);

/* wgmma.c */
void results_note(struct warp *w, u32 site, void *const *d, u32 n);
enum wg_sync { WG_FENCE, WG_COMMIT, WG_WAIT };
void dev_wgmma(struct sw_warp *, u32 m, u32 site, void *const *d, const void *const *a, u64 adesc,
               u64 bdesc, u32 scale_d);
void dev_wg_sync(struct sw_warp *, u32 kind, u32 left, u32 site);
void dev_wg_touch(struct sw_warp *, u32 m, const void *reg, u32 site);

/* async_proxy.c: only called when check is full, but for dev_proxy */
void dev_proxy(struct sw_warp *, u32 kind, u32 site);
void proxy_fence(struct warp *w);
void proxy_read(struct warp *w, u32 lane, u32 site, struct blk *b, uint32_t at, uint32_t bytes);
void proxy_write_begin(struct warp *w, u32 lane, u32 site, struct blk *b, uint32_t at,
                       uint32_t bytes);
void proxy_write_end(struct flight *f);
void proxy_hold(struct warp *w, struct blk *b, uint32_t at, uint32_t bytes, u32 site);
void proxy_release(struct warp *w, struct blk *b, uint32_t at, uint32_t bytes, u32 site);
void proxy_release_group(struct warp *w, uint32_t at, u32 site); /* 16 bytes of a wgmma */
void proxy_release_tensor(struct blk *b, uint32_t at, u32 site, uint32_t time); /* of a tcgen05 */
/* An ordinary write of a thread: checks that nothing asynchronous still reads there. */
void proxy_check_write(struct warp *w, u32 lane, u32 site, uint32_t at, uint32_t bytes);
/* What is known to be fenced travels through barriers. */
void proxy_arrive(struct warp *w, struct barrier *bar);
void proxy_leave(struct warp *w, const struct barrier *bar);

#endif
