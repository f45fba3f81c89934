/* SPDX-License-Identifier: Apache-2.0 */
/* string_map.h - names to small numbers, in an arena. Keys are borrowed. */
#ifndef SIMT_STRING_MAP_H
#define SIMT_STRING_MAP_H

#include "base/mem.h"

#include <stdint.h>

struct strmap {
    struct arena *a;
    struct strmap_slot {
        const char *key;
        size_t len;
        int value;
    } * slot;
    size_t cap, used;
};

struct strmap strmap_init(struct arena *a);
void strmap_put(struct strmap *m, const char *key, size_t len, int value);
int strmap_get(const struct strmap *m, const char *key, size_t len); /* -1: not there */

#endif
