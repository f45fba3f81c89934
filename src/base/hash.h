/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - SHA-256, for content addresses and cache keys. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/mem.h"

#include <stdint.h>

struct hash {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[64];
};

struct hash hash_init(void);
void hash_add(struct hash *h, const void *data, size_t len);
/* Adds the length first, so that ("ab","c") and ("a","bc") differ. */
void hash_add_text(struct hash *h, struct text t);
void hash_hex(struct hash *h, char out[65]); /* finishes the hash */
void hash_text(struct text t, char out[65]);

#endif
