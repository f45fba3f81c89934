/* SPDX-License-Identifier: Apache-2.0 */
/* early_access.c - accesses of a launch that may run beside earlier ones; see early_access.h. */
#include "simt/check/early_access.h"

#include <stdatomic.h>

const char *access_word(enum access does)
{
    static const char *const words[] = {"", "reads", "writes", "updates"};
    return words[does];
}

/* No wait comes before what the warp does now. */
static bool unordered(const struct warp *w)
{
    const struct launch *l = w->t->l;
    if (w->blk->told || (w->blk->cluster && atomic_load(&l->waited)))
        return false;
    for (uint32_t i = 0; i < l->nwarps; i++)
        if (w->blk->waited[i] && w->clock[i] >= w->blk->waited[i])
            return false;
    return true;
}

uint64_t early_now(const struct warp *w)
{
    const struct earlier *e = &w->t->l->earlier;
    return unordered(w) ? e->begin : e->waited;
}

void block_hears(struct warp *w)
{
    const struct launch *l = w->t->l;
    w->blk->told |= l->orders && atomic_load(&l->waited);
}

void dev_grid(struct sw_warp *sw, u32 wait)
{
    struct warp *w = warp_of(sw);
    struct launch *l = w->t->l;
    if (!l->earlier.begin)
        return;
    if (!wait) {
        if (unordered(w))
            atomic_store(&l->hastened, true);
        return;
    }
    atomic_store(&l->waited, true);
    if (!unordered(w))
        return;
    clock_tick(w);
    w->blk->waited[w->w.id] = w->clock[w->w.id];
}

struct earlier early_left(const struct launch *l)
{
    const struct earlier *e = &l->earlier;
    bool waited = atomic_load(&l->waited);
    uint64_t at_release = waited && !atomic_load(&l->hastened) ? e->waited : e->begin;
    return (struct earlier){.begin = at_release << 1 | 1,
                            .waited = (waited ? e->waited : e->begin) << 1};
}

/* True: reported. */
static bool early_range(struct warp *w, uint64_t earlier, u32 lane, uint64_t at, u32 bytes,
                        u32 site, enum access does)
{
    const struct alloc *x = w->t->cache[site].alloc;
    if (!x || at < x->lo || at + bytes > x->hi)
        x = alloc_find(w->t->l->dev, at, bytes);
    if (!x || !x->shadow || x->shadow->since == x->shadow->floor)
        return false;
    for (uint64_t c = (at - x->lo) / 4; c <= (at - x->lo + bytes - 1) / 4; c++) {
        enum access did = shadow_before(x->shadow, earlier, c, does);
        if (!did)
            continue;
        finding_add(&(struct finding_where){w, lane, site}, SIMT_RACE_GLOBAL, at, x, -1, -1, -1,
                    "%s %s at offset %llu before griddepcontrol.wait "
                    "(cudaGridDependencySynchronize)%s; an earlier launch, which may still run, %s "
                    "it%s",
                    access_word(does), x->name, (unsigned long long)(at - x->lo),
                    earlier & 1 ? "" : " of a launch in between, which does not wait",
                    access_word(did), did == UPDATES ? " atomically" : "");
        return true;
    }
    return false;
}

void early_row(struct warp *w, uint64_t earlier, uint64_t at, u32 bytes, u32 site, enum access does)
{
    if (!(site_of(w, site)->flags & SW_STRONG))
        early_range(w, earlier, 0, at, bytes * WARP, site, does);
}

void early_lanes(struct warp *w, uint64_t earlier, u32 m, const uint64_t *host, u32 bytes, u32 site,
                 enum access does)
{
    if (site_of(w, site)->flags & SW_STRONG && does != UPDATES)
        return;
    for (; m; m &= m - 1) {
        u32 lane = (u32)__builtin_ctz(m);
        if (early_range(w, earlier, lane, host[lane], bytes, site, does))
            return;
    }
}
