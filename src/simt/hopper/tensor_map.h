/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_map.h - simt's own tensor map, in the 128 bytes of a CUtensorMap.
 *
 * simt_map_encode() (simt.h) makes one and keeps the driver's rules; kernels
 * pass its address to cp.async.bulk.tensor as they would the driver's.
 */
#ifndef SIMT_TENSOR_MAP_H
#define SIMT_TENSOR_MAP_H

#include <stdint.h>

struct tensor_map {
    uint64_t magic, address;
    uint64_t stride[4]; /* bytes, of dimension 1, 2, ... */
    uint32_t dim[5];
    uint16_t box[5];
    uint8_t step[5];
    uint8_t rank, esize, swizzle, fill_nan, type, im2col;
    uint8_t nibbles; /* elements of four bits: dimension 0 counts pairs, which are bytes */
    uint8_t packed;  /* dimension 0 counts sixteen elements, of so many bytes in global memory */
    int16_t lower[3], upper[3]; /* im2col: corners of the bounding box */
    uint16_t channels, pixels;
};
_Static_assert(sizeof(struct tensor_map) <= 128, "it takes the place of a CUtensorMap");

#define TENSOR_MAP_MAGIC UINT64_C(0x70616d2d746d6973)

enum { MAP_PADDED = 128, MAP_NOWHERE = INT32_MAX };

/* Elements of dimension d of a tile in shared memory. */
static inline uint32_t map_extent(const struct tensor_map *t, int d)
{
    return (t->box[d] + t->step[d] - 1u) / t->step[d];
}

/* The first coordinate in what dimension 0 counts. An odd one is no pair: it is left where no tile
 * may begin. Of padded elements that is between multiples of 128. */
static inline int32_t map_bytes_coord(const struct tensor_map *t, int32_t c)
{
    if (t->packed)
        return c % MAP_PADDED ? MAP_NOWHERE : c / 16;
    return !t->nibbles ? c : c % 2 ? 1 : c / 2;
}

/* 16-byte chunks change places by the 128-byte line they are in. */
static inline uint32_t swizzled(uint32_t at, unsigned bits)
{
    return at ^ (at >> 3 & (((1u << bits) - 1) << 4));
}

#endif
