/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - runs from one store into another; whether a store is whole. */
#ifndef STORE_COPY_H
#define STORE_COPY_H

#include "store/store.h"

struct store_copied {
    int64_t runs;  /* new ones */
    int64_t known; /* that were there already */
};

/* All runs and suites; the queue is not copied. */
bool store_copy(struct store *from, struct store *to, struct store_copied *done, struct error *err);

struct store_faults {
    int64_t runs, texts; /* examined */
    size_t count;
    const char *first[20];
};

/* Texts against their hashes, rows against what they refer to. */
bool store_check(struct store *s, struct arena *a, struct store_faults *out, struct error *err);

/* The tables that copying knows, for the test that compares them with the schema; NULL ends. */
const char *store_table_name(size_t i);

#endif
