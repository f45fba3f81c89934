/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - copy runs from one store into another; check a store for damage. */
#ifndef STORE_COPY_H
#define STORE_COPY_H

#include "store/store.h"

struct store_copied {
    int64_t runs;  /* runs copied */
    int64_t known; /* runs that were already there */
};

/* All runs and suites; the queue is not copied. */
bool store_copy(struct store *from, struct store *to, struct store_copied *done, struct error *err);

struct store_faults {
    int64_t runs, texts; /* examined */
    size_t count;
    const char *first[20];
};

/* Checks texts against their hashes, and rows against what they refer to. */
bool store_check(struct store *s, struct arena *a, struct store_faults *out, struct error *err);

/* The tables that are copied, for a test that compares them with the schema; NULL after the
 * last. */
const char *store_table_name(size_t i);

#endif
