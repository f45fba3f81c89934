/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - what a struct run is; private to this room. */
#ifndef STORE_RUN_H
#define STORE_RUN_H

#include "store/sql.h"

struct run {
    struct store *store;
    char *id, *dir;
    int lock_fd;
    bool held_by_other;
};

#endif
