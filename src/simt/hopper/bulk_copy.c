/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulk_copy.c - cp.async.bulk, its tensor forms and reductions, st.async.
 *
 * A copy into shared memory waits in the list of the block whose mbarrier it
 * signals and lands when a thread tests that mbarrier. A copy out of shared
 * memory belongs to its thread and is carried out when its group is waited
 * for: until then its source must not change.
 */
#include "simt/hopper/hopper.h"

#include "simt/check/early_access.h"
#include "simt/hopper/tensor_map.h"
#include "simt/ptx/atomic_ops.h"

#include <string.h>

enum { MIN_ALIGN = 16, TENSOR_ALIGN = 128 }; /* of addresses, in bytes */

static bool full_check(const struct warp *w)
{
    return w->t->l->dev->config.check == SIMT_CHECK_FULL;
}

static void complain(struct warp *w, u32 lane, u32 site, enum simt_finding_kind kind, uint64_t at,
                     const char *what)
{
    finding_add(&(struct finding_where){w, lane, site}, kind, at, NULL, -1, -1, -1, "%s", what);
}

/* ---- global memory ---- */

static void count_span(struct warp *w, u32 site, uint64_t addr, uint32_t bytes, bool write)
{
    struct simt_counters *n = &w->t->n;
    uint64_t sectors = ((addr + bytes - 1) >> 5) - (addr >> 5) + 1;
    if (write) {
        n->global_store_sectors += sectors;
        n->global_store_bytes += bytes;
    } else {
        n->global_load_sectors += sectors;
        n->global_load_bytes += bytes;
    }
    n->bulk_bytes += bytes;
    n->async_bytes += bytes;
    if (w->t->watching)
        reuse_span(w->t, addr, bytes, write, false);
    if (w->t->use) {
        w->t->use[site].sectors += sectors;
        w->t->use[site].requests++;
    }
}

bool global_span(struct warp *w, u32 lane, u32 site, uint64_t addr, uint32_t bytes,
                 enum span_kind kind, uint64_t earlier)
{
    struct simt *dev = w->t->l->dev;
    struct alloc *x;
    bool write = kind == SPAN_WRITE || kind == SPAN_REDUCE;
    if (kind != SPAN_READ_AGAIN)
        count_span(w, site, addr, bytes, write);
    if (dev->config.check == SIMT_CHECK_OFF)
        return true;
    x = alloc_find(dev, addr, bytes);
    if (!x) {
        const struct alloc *near = alloc_nearest(dev, addr);
        finding_add(&(struct finding_where){w, lane, site}, SIMT_OUT_OF_BOUNDS, addr, near, -1, -1,
                    -1, "the copy %s %u bytes at %#llx, outside every buffer%s%s",
                    write ? "writes" : "reads", bytes, (unsigned long long)addr,
                    near ? "; nearest is " : "", near ? near->name : "");
        return false;
    }
    if (write && x->flags & SIMT_ALLOC_READONLY) {
        complain(w, lane, site, SIMT_WRITE_TO_INPUT, addr, "the copy writes to an input");
        return false;
    }
    if (full_check(w)) {
        uint64_t host[WARP];
        for (u32 i = 0; i < WARP; i++)
            host[i] = addr;
        if (earlier)
            early_lanes(w, earlier, 1u << lane, host, bytes, site,
                        kind == SPAN_REDUCE ? UPDATES
                        : write             ? WRITES
                                            : READS);
        if (kind == SPAN_REDUCE)
            return true;
        shadow_bulk(w, lane, host, bytes, site, write);
    }
    return true;
}

/* Blocks on other host threads may reduce into the same place. */
#define REDUCE(type)                                                                               \
    do {                                                                                           \
        type old_ = __atomic_load_n((type *)at, __ATOMIC_RELAXED), new_, x_;                       \
        memcpy(&x_, from, sizeof x_);                                                              \
        do                                                                                         \
            new_ = (type)atom_combine(op, old_, x_, 0);                                            \
        while (!__atomic_compare_exchange_n((type *)at, &old_, new_, false, __ATOMIC_SEQ_CST,      \
                                            __ATOMIC_RELAXED));                                    \
    } while (0)

static void reduce_one(u32 op, void *at, const uint8_t *from, uint32_t esize)
{
    if (esize == 8)
        REDUCE(u64);
    else if (esize == 4)
        REDUCE(u32);
    else if (esize == 2)
        REDUCE(u16);
    else
        REDUCE(u8);
}

void global_put(struct warp *w, const struct leaving *l, uint64_t addr, const uint8_t *from,
                uint32_t bytes, uint32_t esize)
{
    if (!global_span(w, l->lane, l->site, addr, bytes, l->op ? SPAN_REDUCE : SPAN_WRITE,
                     l->earlier))
        return;
    if (!l->op) {
        memcpy((void *)(uintptr_t)addr, from, bytes);
        return;
    }
    for (uint32_t i = 0; i < bytes; i += esize)
        reduce_one(l->op, (void *)(uintptr_t)(addr + i), from + i, esize);
}

/* What the copy engine takes as coordinates: found on an H200, which calls others illegal. */
static bool coords_ok(struct warp *w, u32 lane, u32 site, const struct tensor_map *t,
                      const s32 *coord, bool store)
{
    bool below = false;
    for (int d = 0; d < t->rank; d++)
        below |= coord[d] < 0;
    if (t->packed && (store || coord[0] == MAP_NOWHERE))
        complain(w, lane, site, SIMT_TENSOR_MAP, (uint64_t)coord[0],
                 store ? "this device does not know stores of elements that are padded"
                       : "the innermost coordinate of padded elements must be a multiple of 128");
    else if (((s64)coord[0] * t->esize) & 15)
        complain(w, lane, site, SIMT_TENSOR_MAP, (uint64_t)coord[0],
                 "the innermost coordinate times the element size must be a multiple of 16 bytes");
    else if (store && below)
        complain(w, lane, site, SIMT_TENSOR_MAP, 0,
                 "a store to a negative coordinate is illegal; only loads may begin outside");
    else
        return true;
    return false;
}

/* ---- into shared memory ---- */

static void land(struct blk *owner, struct flight *f)
{
    uint8_t *to = f->dst->b.smem + f->at;
    if (f->rank) {
        map_load(f);
    } else if (f->op) {
        u64 old = 0, x = 0, now;
        memcpy(&old, to, f->bytes);
        memcpy(&x, f->data, f->bytes);
        now = atom_combine(f->op, old, x, 0);
        memcpy(to, &now, f->bytes);
    } else if (f->value) {
        memcpy(to, f->data, f->bytes);
    } else if (f->from) {
        memcpy(to, f->from->b.smem + f->src, f->bytes);
        if (f->from->cell && f->by->blk == f->from)
            proxy_release(f->by, f->from, (uint32_t)f->src, f->bytes, f->site);
    } else if (global_span(f->by, f->lane, f->site, f->src, f->bytes, flight_kind(f), f->earlier)) {
        memcpy(to, (const void *)(uintptr_t)f->src, f->bytes);
    }
    if (f->dst->cell)
        proxy_write_end(f);
    mbar_landed(f, owner, f->bytes);
}

void bulk_settle(struct blk *b, uint32_t mbar)
{
    struct hopper *h = b->hop;
    size_t kept = 0;
    if (!h || !h->flights)
        return;
    for (size_t i = 0; i < h->flights; i++) {
        struct flight f = h->flight[i];
        if (f.mbar == mbar)
            land(b, &f);
        else
            h->flight[kept++] = h->flight[i];
    }
    h->flights = kept;
}

static void take_off(struct blk *owner, const struct flight *f)
{
    struct hopper *h = hopper_of(owner);
    if (h->flights == h->flight_cap) {
        h->flight_cap = h->flight_cap ? h->flight_cap * 2 : 16;
        h->flight = xrealloc(h->flight, h->flight_cap * sizeof *h->flight);
    }
    h->flight[h->flights++] = *f;
    if (f->dst->cell && !f->op)
        proxy_write_begin(f->by, f->lane, f->site, f->dst, f->at, f->span ? f->span : f->bytes);
}

/* The block whose mbarrier a copy into b tells: of a pair the one whose rank is even or odd as that
 * of the block in which the mbarrier's address lies. */
static struct blk *told_by(struct blk *b, bool pair, const struct blk *named)
{
    uint32_t rank = b->b.cl_rank, odd = named->b.cl_rank & 1;
    struct cluster *c = b->cluster;
    return pair && c && (rank & ~1u) + odd < c->size ? c->blk[(rank & ~1u) + odd] : b;
}

/* Both ends of the copy and its mbarrier are in one block, which must be there; or in a pair. */
static void send(struct flight *f, struct place dst, struct place bar)
{
    struct warp *w = f->by;
    if (told_by(dst.b, f->pair, bar.b) != bar.b) {
        complain(w, f->lane, f->site, SIMT_MBARRIER, bar.at,
                 "the copy's destination and its mbarrier are in different blocks of the cluster");
        return;
    }
    cluster_touch(w, f->lane, f->site, dst.b);
    struct hopper *h = hopper_of(dst.b);
    h->remote_epoch = 0; /* it signals an mbarrier that a thread waits for */
    f->dst = dst.b;
    f->at = dst.at;
    f->mbar = bar.at;
    take_off(bar.b, f);
}

/* A box of a tensor map. */
static bool tensor_flight(struct warp *w, struct flight *f, u32 kind, const struct sw_bulk *x)
{
    u32 i = f->lane;
    const struct tensor_map *t = map_of(w, i, f->site, x->map[i]);
    if (!t)
        return false;
    f->rank = bulk_rank_of(kind);
    if (f->rank != t->rank || t->im2col != !!(kind & BULK_IM2COL)) {
        complain(w, i, f->site, SIMT_TENSOR_MAP, x->map[i],
                 "the instruction's dimensions or mode are not the map's");
        return false;
    }
    f->src = x->map[i];
    f->bytes = map_tile_bytes(t);
    f->span = map_tile_span(t);
    for (u32 d = 0; d < f->rank; d++)
        f->coord[d] = (s32)x->coord[d][i];
    f->coord[0] = map_bytes_coord(t, f->coord[0]);
    for (u32 d = 0; d < 3 && kind & BULK_IM2COL; d++)
        f->offset[d] = x->offset[d] ? (u16)x->offset[d][i] : 0;
    return coords_ok(w, i, f->site, t, f->coord, false);
}

/* Bytes in a row. */
static bool plain_flight(struct warp *w, struct flight *f, u32 kind, const struct sw_bulk *x)
{
    u32 i = f->lane;
    f->bytes = f->span = x->size[i];
    f->src = x->src[i];
    bool size = f->bytes % MIN_ALIGN, place = bulk_form_of(kind) == BULK_IN && f->src % MIN_ALIGN;
    if (size || place)
        complain(w, i, f->site, SIMT_MISALIGNED, size ? f->bytes : f->src,
                 size ? "a bulk copy's size must be a multiple of 16"
                      : "a bulk copy's addresses must be multiples of 16");
    return !size && !place;
}

/* To every block the mask names, at the same place. */
static void multicast(struct warp *w, struct flight *f, struct place dst, struct place bar,
                      u32 mask)
{
    const struct blk *named = bar.b;
    u32 n = w->blk->cluster ? w->blk->cluster->size : 1;
    if (!mask || mask >> n)
        complain(w, f->lane, f->site, SIMT_CLUSTER, mask,
                 mask ? "the multicast mask names blocks that the cluster does not have"
                      : "the multicast mask is empty");
    for (u32 r = 0; r < n; r++) {
        if (!(mask >> r & 1))
            continue;
        dst.b = w->blk->cluster ? w->blk->cluster->blk[r] : w->blk;
        bar.b = told_by(dst.b, f->pair, named);
        send(f, dst, bar);
        f->again = true;
    }
}

static void bulk_in(struct warp *w, u32 i, u32 site, const struct sw_bulk *x)
{
    u32 kind = site_of(w, site)->kind;
    enum bulk_form form = bulk_form_of(kind);
    bool tensor = form == BULK_TENSOR_IN;
    struct flight f = {
        .by = w, .lane = i, .site = site, .pair = kind & BULK_PAIR, .earlier = early_beside(w)};
    struct place dst, bar;
    if (!(tensor ? tensor_flight(w, &f, kind, x) : plain_flight(w, &f, kind, x)))
        return;
    f.span = f.span ? f.span : f.bytes;
    if (!place_find(w, i, site, false, x->dst[i], f.span, tensor ? TENSOR_ALIGN : MIN_ALIGN, true,
                    &dst) ||
        !place_find(w, i, site, false, x->mbar[i], 8, 8, true, &bar))
        return;
    if (form == BULK_ACROSS) {
        struct place src;
        if (!place_find(w, i, site, false, x->src[i], f.bytes, MIN_ALIGN, false, &src))
            return;
        f.from = src.b;
        f.src = src.at;
        if (full_check(w) && src.b == w->blk) {
            proxy_read(w, i, site, src.b, src.at, f.bytes);
            proxy_hold(w, src.b, src.at, f.bytes, site);
        }
    }
    w->t->n.bulk_requests++;
    w->t->n.async_copies++;
    if (form != BULK_ACROSS)
        w->t->n.global_load_requests++;
    if (kind & BULK_MULTICAST)
        multicast(w, &f, dst, bar, x->mask[i] & 0xffff);
    else
        send(&f, dst, bar);
}

/* clusterlaunchcontrol.try_cancel: a cluster that has not begun will not; its first block, in the
 * form that ptx_b128.c reads. With multicast each block of the own cluster is answered. */
static void cancel(struct warp *w, u32 i, u32 site, const struct sw_bulk *x)
{
    u32 id[4] = {0}, n = w->blk->cluster ? w->blk->cluster->size : 1;
    struct flight f = {.by = w, .lane = i, .site = site, .bytes = sizeof f.data, .value = true};
    struct place dst, bar;
    if (!place_find(w, i, site, false, x->dst[i], f.bytes, f.bytes, true, &dst) ||
        !place_find(w, i, site, false, x->mbar[i], 8, 8, true, &bar))
        return;
    id[3] = blocks_cancel(w->t, id);
    memcpy(f.data, id, sizeof f.data);
    if (site_of(w, site)->kind & BULK_MULTICAST)
        multicast(w, &f, dst, bar, (1u << n) - 1);
    else
        send(&f, dst, bar);
}

/* ---- out of shared memory ---- */

static void carry_out(struct warp *w, struct leaving *l)
{
    if (l->rank)
        map_store(w, l);
    else
        global_put(w, l, l->dst, w->blk->b.smem + l->at, l->bytes, l->esize);
    if (w->blk->cell)
        proxy_release(w, w->blk, l->at, l->span, l->site);
}

static void bulk_out(struct warp *w, u32 i, u32 site, const struct sw_bulk *x)
{
    u32 kind = site_of(w, site)->kind, form = bulk_form_of(kind), align = MIN_ALIGN;
    struct warp_hopper *h = warp_hopper_of(w);
    struct leaving l = {.lane = i, .site = site, .esize = 1, .earlier = early_beside(w)};
    struct place src;
    if (kind & BULK_REDUCE)
        l.op = bulk_op_of(kind) | (kind >> BULK_TYPE_SHIFT & BULK_TYPE) << KIND_TYPE_SHIFT;
    if (form == BULK_TENSOR_OUT) {
        const struct tensor_map *t = map_of(w, i, site, x->map[i]);
        if (!t)
            return;
        l.rank = bulk_rank_of(kind);
        if (l.rank != t->rank || t->im2col != !!(kind & BULK_IM2COL)) {
            complain(w, i, site, SIMT_TENSOR_MAP, x->map[i],
                     "the instruction's dimensions or mode are not the map's");
            return;
        }
        l.dst = x->map[i];
        l.bytes = map_tile_bytes(t);
        l.span = map_tile_span(t);
        align = TENSOR_ALIGN;
        if (l.op)
            l.op |= (u32)t->type << KIND_TYPE_SHIFT;
        for (u32 d = 0; d < l.rank; d++)
            l.coord[d] = (s32)x->coord[d][i];
        l.coord[0] = map_bytes_coord(t, l.coord[0]);
        if (!coords_ok(w, i, site, t, l.coord, true))
            return;
    } else {
        l.bytes = x->size[i];
        l.dst = x->dst[i];
        if (l.op)
            l.esize = ptx_type_bytes(atom_type_of(l.op));
        if (l.bytes & 15 || l.dst & 15) {
            complain(w, i, site, SIMT_MISALIGNED, l.dst,
                     l.bytes & 15 ? "a bulk copy's size must be a multiple of 16"
                                  : "a bulk copy's addresses must be multiples of 16");
            return;
        }
    }
    l.span = l.span ? l.span : l.bytes;
    if (!place_find(w, i, site, false, x->src[i], l.span, align, false, &src))
        return;
    l.at = src.at;
    w->t->n.bulk_requests++;
    w->t->n.async_copies++;
    w->t->n.global_store_requests++;
    if (full_check(w)) {
        proxy_read(w, i, site, w->blk, l.at, l.span);
        proxy_hold(w, w->blk, l.at, l.span, site);
    }
    if (h->leavings == h->leaving_cap) {
        h->leaving_cap = h->leaving_cap ? h->leaving_cap * 2 : 8;
        h->leaving = xrealloc(h->leaving, h->leaving_cap * sizeof *h->leaving);
    }
    h->leaving[h->leavings++] = l;
}

void dev_bulk(struct sw_warp *sw, u32 m, u32 site, const struct sw_bulk *x)
{
    struct warp *w = warp_of(sw);
    enum bulk_form form = bulk_form_of(site_of(w, site)->kind);
    w->last_site = site;
    for (; m; m &= m - 1) {
        u32 i = (u32)__builtin_ctz(m);
        if (form == BULK_IN || form == BULK_TENSOR_IN || form == BULK_ACROSS)
            bulk_in(w, i, site, x);
        else if (form == BULK_CANCEL)
            cancel(w, i, site, x);
        else if (form == BULK_OUT || form == BULK_TENSOR_OUT)
            bulk_out(w, i, site, x);
        else if (form == BULK_PREFETCH_TENSOR)
            map_of(w, i, site, x->map[i]);
    }
}

void dev_bulk_group(struct sw_warp *sw, u32 m, u32 kind, u32 left, u32 site)
{
    struct warp *w = warp_of(sw);
    struct warp_hopper *h = warp_hopper_of(w);
    size_t kept = 0;
    w->last_site = site;
    if (!kind) { /* commit */
        for (u32 i = 0; i < WARP; i++)
            h->groups[i] += m >> i & 1;
        for (size_t i = 0; i < h->leavings; i++)
            if (!h->leaving[i].group && m >> h->leaving[i].lane & 1)
                h->leaving[i].group = h->groups[h->leaving[i].lane];
        return;
    }
    for (size_t i = 0; i < h->leavings; i++) {
        struct leaving *l = &h->leaving[i];
        if (m >> l->lane & 1 && l->group && l->group + left <= h->groups[l->lane]) {
            struct leaving now = *l;
            carry_out(w, &now);
        } else {
            h->leaving[kept++] = *l;
        }
    }
    h->leavings = kept;
    w->t->n.async_waits++;
    w->t->n.async_left += kept;
}

void bulk_leave(struct warp *w)
{
    struct warp_hopper *h = w->hop;
    if (!h)
        return;
    for (size_t i = 0; i < h->leavings; i++) {
        struct leaving l = h->leaving[i];
        if (full_check(w))
            complain(w, l.lane, l.site, l.group ? SIMT_COPY_EXIT : SIMT_ASYNC_NOT_WAITED, l.at,
                     "the thread ends without waiting for this copy out of shared memory "
                     "(cp.async.bulk.wait_group)");
        carry_out(w, &l);
    }
    h->leavings = 0;
}

/* ---- st.async, red.async ---- */

void dev_st_async(struct sw_warp *sw, u32 m, const u64 *addr, u32 site, void *const *src,
                  const u64 *mbar)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    u32 bytes = (u32)s->esize * s->vec;
    w->last_site = site;
    w->t->n.cluster_requests++;
    for (; m; m &= m - 1) {
        u32 i = (u32)__builtin_ctz(m);
        struct flight f = {.by = w, .lane = i, .site = site, .bytes = bytes, .value = true};
        struct place dst, bar;
        if (bytes > sizeof f.data ||
            !place_find(w, i, site, false, addr[i], bytes, bytes, true, &dst) ||
            !place_find(w, i, site, false, mbar[i], 8, 8, true, &bar))
            continue;
        for (u32 v = 0; v < s->vec; v++) {
            if (s->esize == 8)
                memcpy(f.data + 8 * v, (const u64 *)src[v] + i, 8);
            else
                memcpy(f.data + 4 * v, (const u32 *)src[v] + i, 4);
        }
        f.op = s->kind;
        send(&f, dst, bar);
    }
}
