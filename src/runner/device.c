/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - shared by both devices: a fast hash, and device properties as JSON. */
#include "runner/device.h"

#include <string.h>

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    return h ^ (h >> 29);
}

/* Four independent chains, so that large outputs are hashed at memory speed. */
uint64_t device_hash_bytes(uint64_t seed, const void *data, size_t len)
{
    const unsigned char *p = data;
    uint64_t h[4] = {seed, seed + 1, seed + 2, seed + 3}, words[4] = {0};
    size_t i = 0;

    for (; i + sizeof words <= len; i += sizeof words) {
        memcpy(words, p + i, sizeof words);
        for (int k = 0; k < 4; k++)
            h[k] = mix(h[k], words[k]);
    }
    if (i < len) {
        memset(words, 0, sizeof words);
        memcpy(words, p + i, len - i);
        for (int k = 0; k < 4; k++)
            h[k] = mix(h[k], words[k]);
    }
    return mix(mix(mix(mix(h[0], h[1]), h[2]), h[3]), len);
}

json_t *device_facts_json(const struct device_facts *f)
{
    return json_pack("{s:s, s:s, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:b}", "name", f->name, "place",
                     f->place, "arch", f->arch, "sm_count", f->sm_count, "threads_block",
                     (json_int_t)f->threads_block, "smem_block_bytes",
                     (json_int_t)f->smem_block_bytes, "cluster_blocks",
                     (json_int_t)f->cluster_blocks, "l2_bytes", (json_int_t)f->l2_bytes,
                     "memory_bytes", (json_int_t)f->memory_bytes, "tensor_maps", f->tensor_maps);
}
