/* SPDX-License-Identifier: Apache-2.0 */
/* shared_race.h - the interface between shared_race.c (cells) and shared_race_deferred.c (accesses
 * not yet entered into cells). */
#ifndef SIMT_SHARED_RACE_H
#define SIMT_SHARED_RACE_H

#include "simt/hopper/hopper.h"

#define UNDER_WAY UINT16_MAX /* a copy will store to it */

/* Marks of an epoch: first mark + thread; the last one means several threads. */
static inline u32 marks_of_epoch(const struct blk *b)
{
    return b->b.nwarps * WARP + 1;
}
static inline u32 several(const struct blk *b)
{
    return b->b.nwarps * WARP;
}

/* Enters deferred accesses into the cells: all of them before a store is checked, only stores
 * before a load. */
void late_enter(struct blk *b, bool write);
/* Accesses of whole words by the lanes m, each at at[lane];
 * true: nothing more to do. */
bool late_lanes(struct warp *w, u32 m, const u32 *at, u32 bytes, u32 site, bool write);

bool late_copy_begin(struct warp *w, struct copy *c);
bool late_copy_land(struct warp *w, struct copy *c); /* false: it is already in the cells */

/* Loads done without a call: shared_race_log.c */
void log_arm(struct blk *b);    /* they may, from now on */
void log_check(struct blk *b);  /* checks that what they read was written, then discards them */
void log_replay(struct blk *b); /* moves them to the list, as if they had been calls, and disarms */
void log_spill(struct warp *w); /* empties a full log, of this warp only */
void log_forget(struct blk *b);
/* Moves one of them to the list; false: part of it was never written. */
bool late_again(struct warp *w, u32 first, u32 stride, u32 site, u32 time);
void late_make_room(struct blk *b); /* for one more in the list */

void cell_read_at(uint32_t me, uint32_t now, uint32_t gen, u32 lane, u32 site, struct cell *c,
                  uint32_t bytes);

static inline uint32_t thread_of(const struct warp *w, u32 lane)
{
    return w->w.id * WARP + lane;
}

static inline u16 mark_of(const struct warp *w, u32 lane)
{
    return (u16)(w->blk->epoch + thread_of(w, lane));
}

/* Is it a mark of this epoch, or of a copy in flight, by another thread than `me`? */
static inline bool foreign(u16 mark, u16 epoch, u16 me)
{
    return (mark >= epoch) & (mark != me);
}

#endif
