/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - the parts of a kernel file that says which it has, and their share of the time.
 *
 * The built-in engineer splits a graph into parts, one recipe each. Its file describes them in
 * comments, one line per part, and its plan labels every launch with its part (cutegen_part() in
 * cutegen/kernel.h). Both travel with the source: a model that improves such a file keeps them.
 *
 *     // part 2, gemm: addmm, relu; reads part 1, weight; makes (16, 64) f32; moves 5120 bytes
 *
 *     parts_read(source, a, &p)
 *     if (p.count) parts_time(&p, build->launches, measurement->parts ...)
 *
 * Invariants
 * 1. A source with fewer than two parts has none. Numbers go from 1 without gaps.
 * 2. What a line says is what its writer says: it explains and decides nothing.
 * 3. Times are filled for all launches or for none.
 */
#ifndef BASE_PARTS_H
#define BASE_PARTS_H

#include "base/mem.h"

#include <jansson.h>

#define PARTS_LINE  "// part "
#define PARTS_READS "; reads "
#define PARTS_MAKES "; makes "
#define PARTS_MOVES "; moves "

enum { PARTS_LIMIT = 400, PART_FROM_MAX = 64 };

struct kernel_part {
    const char *recipe, *ops; /* "gemm", "addmm, relu" */
    const char *reads, *made; /* "part 1, weight", "(16, 64) f32"; "": not said */
    double bytes;             /* that it reads and writes at least; 0: not said */
    int from[PART_FROM_MAX];  /* indices of earlier parts that it reads */
    int from_count;
    int launches;
    double us; /* 0: not known */
};

struct kernel_parts {
    struct kernel_part *at;
    int count;
    /* Launches that belong to no part: they prepare something for several. */
    int other_launches;
    double other_us, sum_us; /* sum_us: over all launches; 0: times are not known */
};

void parts_read(struct text source, struct arena *a, struct kernel_parts *out);

/* Counts launches (a launch list) and adds up their times: `timed` has one object with "time_us"
 * per launch, in order; NULL or another number of them: times stay unknown. */
void parts_time(struct kernel_parts *p, const json_t *launches, const json_t *timed);

#endif
