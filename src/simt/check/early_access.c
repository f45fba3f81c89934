/* SPDX-License-Identifier: Apache-2.0 */
/* early_access.c - accesses of a launch that may run beside earlier ones; see early_access.h. */
#include "simt/check/early_access.h"

#include <stdatomic.h>

const char *access_word(enum access does)
{
    static const char *const words[] = {"", "reads", "writes", "updates"};
    return words[does];
}

bool early_unordered(const struct warp *w)
{
    const struct launch *l = w->t->l;
    if (l->orders && atomic_load(&l->waited))
        return false;
    for (uint32_t i = 0; i < l->nwarps; i++)
        if (w->blk->waited[i] && w->clock[i] >= w->blk->waited[i])
            return false;
    return true;
}

void dev_grid(struct sw_warp *sw, u32 wait)
{
    struct warp *w = warp_of(sw);
    struct launch *l = w->t->l;
    if (!wait) {
        if (is_early(w))
            atomic_store(&l->hastened, true);
        atomic_store(&l->released, true);
        return;
    }
    atomic_store(&l->waited, true);
    if (!is_early(w))
        return;
    clock_tick(w);
    w->blk->waited[w->w.id] = w->clock[w->w.id];
}

enum earlier early_left(const struct launch *l)
{
    bool in_line = !l->early || (atomic_load(&l->waited) && !atomic_load(&l->hastened));
    if (in_line)
        return atomic_load(&l->released) ? EARLIER_LAST : EARLIER_ENDED;
    return EARLIER_SEVERAL;
}

/* True: reported. */
static bool early_range(struct warp *w, u32 lane, uint64_t at, u32 bytes, u32 site,
                        enum access does)
{
    const struct alloc *x = w->t->cache[site].alloc;
    if (!x || at < x->lo || at + bytes > x->hi)
        x = alloc_find(w->t->l->dev, at, bytes);
    if (!x || !x->shadow || x->shadow->since == x->shadow->floor)
        return false;
    for (uint64_t c = (at - x->lo) / 4; c <= (at - x->lo + bytes - 1) / 4; c++) {
        enum access did = shadow_before(x->shadow, c, does);
        if (!did)
            continue;
        finding_add(&(struct finding_where){w, lane, site}, SIMT_RACE_GLOBAL, at, x, -1, -1, -1,
                    "%s %s at offset %llu before griddepcontrol.wait "
                    "(cudaGridDependencySynchronize); an earlier launch, which may still run, %s "
                    "it%s",
                    access_word(does), x->name, (unsigned long long)(at - x->lo), access_word(did),
                    did == UPDATES ? " atomically" : "");
        return true;
    }
    return false;
}

void early_row(struct warp *w, uint64_t at, u32 bytes, u32 site, enum access does)
{
    if (!(site_of(w, site)->flags & SW_STRONG))
        early_range(w, 0, at, bytes * WARP, site, does);
}

void early_lanes(struct warp *w, u32 m, const uint64_t *host, u32 bytes, u32 site, enum access does)
{
    if (site_of(w, site)->flags & SW_STRONG && does != UPDATES)
        return;
    for (; m; m &= m - 1) {
        u32 lane = (u32)__builtin_ctz(m);
        if (early_range(w, lane, host[lane], bytes, site, does))
            return;
    }
}
