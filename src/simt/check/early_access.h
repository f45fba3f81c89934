/* SPDX-License-Identifier: Apache-2.0 */
/*
 * early_access.h - launches that may begin before the launch before them has ended (programmatic
 * dependent launch, griddepcontrol).
 *
 * Such a launch must wait before it touches what earlier ones touch. Here it begins after them, so
 * results are right either way; with full checks every access is compared with the marks that those
 * launches left in the shadow which may still run.
 *
 * Invariants
 * 1. Without its wait a launch sees nothing of the one before, even if that one never let it begin:
 *    all its blocks have ended then, but its memory need not be there.
 * 2. A wait is for the launch right before. Those before that one have ended only if it waited,
 * too.
 * 3. A copy in flight is as its issue was: a wait between its issue and its landing is no help.
 * 4. No false finding: an access is early only if no wait of its block, as its barriers order them,
 *    comes before it; nor one of the grid since which the block may have heard of others. In
 *    clusters the first wait of the grid is enough.
 * 5. Marks of a line that this launch has already written are gone, so a race can be missed; a
 *    cause is rarely alone. Lanes of a warp are not told apart.
 */
#ifndef SIMT_EARLY_ACCESS_H
#define SIMT_EARLY_ACCESS_H

#include "simt/check/global_shadow.h"
#include "simt/device/device.h"

const char *access_word(enum access does);

/* The launches that may run beside the warp now, as in struct earlier. */
uint64_t early_now(const struct warp *w);
static inline uint64_t early_beside(const struct warp *w)
{
    return __builtin_expect(w->t->l->earlier.begin != 0, 0) ? early_now(w) : 0;
}

/* Reports the first element of an access that races with these launches. */
void early_row(struct warp *w, uint64_t earlier, uint64_t at, u32 bytes, u32 site,
               enum access does);
void early_lanes(struct warp *w, uint64_t earlier, u32 m, const uint64_t *host, u32 bytes, u32 site,
                 enum access does);

/* The launch has ended: what it leaves to one that overlaps it. */
struct earlier early_left(const struct launch *l);

#endif
