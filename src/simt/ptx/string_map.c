/* SPDX-License-Identifier: Apache-2.0 */
/* string_map.c - open addressing, doubled when half full. */
#include "simt/ptx/string_map.h"

#include <string.h>

static uint64_t name_hash(const char *s, size_t len)
{
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)s[i]) * 1099511628211u;
    return h ^ (h >> 29);
}

struct strmap strmap_init(struct arena *a)
{
    return (struct strmap){.a = a};
}

static struct strmap_slot *find(const struct strmap *m, const char *key, size_t len)
{
    size_t i = name_hash(key, len) & (m->cap - 1);
    while (m->slot[i].key && (m->slot[i].len != len || memcmp(m->slot[i].key, key, len) != 0))
        i = (i + 1) & (m->cap - 1);
    return &m->slot[i];
}

static void rehash(struct strmap *m)
{
    struct strmap bigger = {.a = m->a, .cap = m->cap ? m->cap * 2 : 64, .used = m->used};
    bigger.slot = arena_array(m->a, bigger.cap, sizeof *bigger.slot);
    for (size_t i = 0; i < m->cap; i++)
        if (m->slot[i].key)
            *find(&bigger, m->slot[i].key, m->slot[i].len) = m->slot[i];
    *m = bigger;
}

void strmap_put(struct strmap *m, const char *key, size_t len, int value)
{
    if (m->used * 2 >= m->cap)
        rehash(m);
    struct strmap_slot *s = find(m, key, len);
    if (!s->key) {
        m->used++;
        s->key = key;
        s->len = len;
    }
    s->value = value;
}

int strmap_get(const struct strmap *m, const char *key, size_t len)
{
    if (!m->cap)
        return -1;
    const struct strmap_slot *s = find(m, key, len);
    return s->key ? s->value : -1;
}
