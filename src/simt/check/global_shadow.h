/* SPDX-License-Identifier: Apache-2.0 */
/*
 * global_shadow.h - the shadow of one buffer of global memory: which block wrote, read or
 * atomically updated what in this launch, and what was ever written.
 *
 * A line is 32 words. Nearly always only one block writes to a line, so there is one mark per line
 * with the words it wrote; single words have marks only if blocks share a line.
 *
 * Invariants
 * 1. Marks increase from launch to launch: one that is not above the launch's floor belongs to an
 *    earlier launch and is ignored. So nothing is cleared between launches.
 * 2. word[] and part[] of a line are valid only while line[] says so.
 * 3. All tables are pages of one mapping (xmap): pages that no check touches cost nothing.
 */
#ifndef SIMT_GLOBAL_SHADOW_H
#define SIMT_GLOBAL_SHADOW_H

#include "simt/device/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHADOW_LINE = 128 };

/* When a word was written. */
struct wrote {
    uint32_t time; /* of the warp's clock << 5 | the warp */
    uint32_t said; /* what was published before */
};

enum { EARLIER_LAUNCHES = 64 };

struct shadow {
    uint64_t *line; /* who << 32 | which words; or "see the words" << 32 */
    uint32_t *word;
    uint8_t *part;       /* per word: which of its bytes its block wrote */
    uint64_t *read;      /* per line: who << 32 | which words, of the last reader */
    uint64_t *atom;      /* per line: floor + 1 << 32 | which words were updated atomically, */
    uint32_t *by;        /* and per word who did; floor + 1: several blocks */
    struct wrote *wrote; /* per word, by the last who wrote; NULL: nothing orders blocks */
    uint32_t *ever;      /* per line: which words were ever written; NULL: all of it was */
    size_t lines, words;
    uint32_t floor;   /* of this launch; floor + 1: see the words; floor + 2 + n: block n */
    uint32_t written; /* in this launch */
    uint32_t given;   /* marks of this launch */
    uint32_t since;   /* marks above it, up to the floor: of earlier launches, some may still run */
    uint32_t floors[EARLIER_LAUNCHES]; /* of the launches before: the last first */
    bool watched;      /* reads count although nothing is written: one of two launches overlaps */
    bool reads, atoms; /* likewise: whether read and atom hold anything of it */
};

enum access { ACCESS_NONE, READS, WRITES, UPDATES };

struct shadow *shadow_new(uint64_t bytes, bool ever_written);
void shadow_free(struct shadow *s);
/* Begins a launch with blocks 0 .. blocks - 1;
 * orders: they may wait for each other; earlier: launches that may still run, as in struct earlier;
 * overlapped: the next launch may begin before it ends. */
void shadow_begin(struct shadow *s, uint64_t blocks, bool orders, uint64_t earlier,
                  bool overlapped);
/* What these launches did to a word that would race with this. */
enum access shadow_before(const struct shadow *s, uint64_t earlier, uint64_t word,
                          enum access does);
void shadow_ever(struct shadow *s, uint64_t at, uint64_t bytes); /* something wrote it */

#endif
