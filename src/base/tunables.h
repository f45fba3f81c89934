/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tunables.h - parameters that a kernel declares for the machine to search.
 *
 *     CUTEGEN_TUNE(BM, 128, 64, 256);         BM is 128; 64 and 256 may be tried
 *     CUTEGEN_TUNE_IF(BM * BN <= 16384);      what does not hold is not tried
 *
 * The first value is the one in force. tunables_set() writes a source with
 * other values in front, so that what was chosen is what the source says.
 * Values are whole numbers; conditions are of whole numbers, the names,
 * ( ) ! * / % + - < <= > >= == != && and ||.
 */
#ifndef BASE_TUNABLES_H
#define BASE_TUNABLES_H

#include "base/error.h"
#include "base/mem.h"

#include <stdint.h>

enum { TUNABLES_MAX = 8, TUNABLE_VALUES_MAX = 16, TUNABLE_CONDITIONS_MAX = 16 };

struct tunable {
    const char *name;
    int64_t values[TUNABLE_VALUES_MAX]; /* rising */
    int count;
    int now;           /* which of them is in force */
    size_t begin, end; /* of its values in the source */
};

struct tunables {
    struct tunable list[TUNABLES_MAX];
    int count;
    const char *conditions[TUNABLE_CONDITIONS_MAX];
    int condition_count;
};

/* False: a declaration cannot be read; err says which. A source without any has a count of 0. */
bool tunables_read(struct text source, struct arena *a, struct tunables *out, struct error *err);
/* Whether these values (an index per tunable) satisfy every condition. One that divides by zero or
 * cannot be read holds for none: false, and err says why where it cannot be read. */
bool tunables_hold(const struct tunables *t, const int *at, struct error *err);
/* The source with these values in force; in the arena. */
struct text tunables_set(struct text source, const struct tunables *t, const int *at,
                         struct arena *a);
/* "BM 64, BN 128" */
const char *tunables_words(const struct tunables *t, const int *at, struct arena *a);

#endif
