/* SPDX-License-Identifier: Apache-2.0 */
/* read.h - shared by the store's two readers, list.c and read.c; private to this room. */
#ifndef STORE_READ_H
#define STORE_READ_H

#include "store/sql.h"

/* Everything read between the two is one snapshot of the store. read_end() returns `ok`. */
bool read_begin(struct store *s, struct error *err);
bool read_end(struct store *s, bool ok);

bool run_info_read(struct store *s, const char *id, struct arena *a, struct run_info *out,
                   struct error *err);

#endif
