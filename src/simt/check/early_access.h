/* SPDX-License-Identifier: Apache-2.0 */
/*
 * early_access.h - launches that may begin before the launch before them has ended (programmatic
 * dependent launch, griddepcontrol).
 *
 * Such a launch must wait before it touches what earlier ones touch. Here it begins after them, so
 * results are right either way; with full checks every access that it did not order after its wait
 * is compared with the marks that the earlier launches left in the shadow.
 *
 * Invariants
 * 1. No false finding: an access counts only if no wait of its block, as its barriers order them,
 *    comes before it. In clusters, and where blocks may order each other, the first wait of the
 *    grid ends all checks.
 * 2. Marks of a line that this launch has already written are gone, so a race can be missed; a
 *    cause is rarely alone.
 */
#ifndef SIMT_EARLY_ACCESS_H
#define SIMT_EARLY_ACCESS_H

#include "simt/check/global_shadow.h"
#include "simt/device/device.h"

const char *access_word(enum access does);

/* The warp's launch may run beside earlier ones, and it has not waited for them. */
bool early_unordered(const struct warp *w);
static inline bool is_early(const struct warp *w)
{
    return __builtin_expect(w->t->l->early, 0) && early_unordered(w);
}

/* Reports the first element of an access that races with them. */
void early_row(struct warp *w, uint64_t at, u32 bytes, u32 site, enum access does);
void early_lanes(struct warp *w, u32 m, const uint64_t *host, u32 bytes, u32 site,
                 enum access does);

/* The launch has ended: what it leaves to one that overlaps it. */
enum earlier early_left(const struct launch *l);

#endif
