/* SPDX-License-Identifier: Apache-2.0 */
/*
 * global_shadow.h - the shadow of one buffer of global memory: which block wrote what in this
 * launch, and what was ever written.
 *
 * A line is 32 words. Nearly always one block alone writes to a line, so there is one mark per
 * line with the words it has; marks of single words only where blocks share a line.
 *
 * Invariants
 * 1. Marks grow from launch to launch: one that is not above the launch's floor is of an
 *    earlier launch and says nothing. So nothing is cleared between launches.
 * 2. word[] of a line holds something only while line[] says so.
 */
#ifndef SIMT_GLOBAL_SHADOW_H
#define SIMT_GLOBAL_SHADOW_H

#include "simt/emit/abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHADOW_LINE = 128 };

struct shadow {
    uint64_t *line; /* who << 32 | which words; or "see the words" << 32 */
    uint32_t *word;
    uint32_t *ever; /* per line: which words were ever written; NULL: all of it was */
    size_t lines;
    uint32_t floor;   /* of this launch; floor + 1: see the words; floor + 2 + n: block n */
    uint32_t written; /* in this launch */
};

struct shadow *shadow_new(uint64_t bytes, bool ever_written);
void shadow_free(struct shadow *s);
/* A launch begins whose blocks are numbered below `blocks`. */
void shadow_begin(struct shadow *s, uint64_t blocks);
void shadow_ever(struct shadow *s, uint64_t at, uint64_t bytes); /* something wrote it */

#endif
