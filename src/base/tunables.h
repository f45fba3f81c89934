/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tunables.h - parameters that a kernel declares for the machine to search.
 *
 *     CUTEGEN_TUNE(BM, 128, 64, 256);         BM is 128; 64 and 256 may be tried
 *     CUTEGEN_TUNE_IF(BM * BN <= 16384);      settings that violate it are not tried
 *
 * The first value is the one in force. tunables_set() returns a source with the chosen values
 * first, so that the source itself records the choice. Values are integers; conditions consist of
 * integers, the names, ( ) ! * / % + - < <= > >= == != && and ||.
 */
#ifndef BASE_TUNABLES_H
#define BASE_TUNABLES_H

#include "base/error.h"
#include "base/mem.h"

#include <stdint.h>

enum { TUNABLES_MAX = 8, TUNABLE_VALUES_MAX = 16, TUNABLE_CONDITIONS_MAX = 16 };

struct tunable {
    const char *name;
    int64_t values[TUNABLE_VALUES_MAX]; /* ascending */
    int count;
    int now;           /* index of the value in force */
    size_t begin, end; /* where its values are in the source */
};

struct tunables {
    struct tunable list[TUNABLES_MAX];
    int count;
    const char *conditions[TUNABLE_CONDITIONS_MAX];
    int condition_count;
};

/* False: a declaration cannot be read; err says which. A source without any has a count of 0. */
bool tunables_read(struct text source, struct arena *a, struct tunables *out, struct error *err);
/* Whether these values (an index per tunable) satisfy every condition. A condition that divides by
 * zero or cannot be read is never satisfied; err says why it cannot be read. */
bool tunables_hold(const struct tunables *t, const int *at, struct error *err);
/* The source with these values in force; in the arena. */
struct text tunables_set(struct text source, const struct tunables *t, const int *at,
                         struct arena *a);
/* "BM 64, BN 128" */
const char *tunables_words(const struct tunables *t, const int *at, struct arena *a);

#endif
