/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - parameters of copies, fills and kernel nodes with the driver header's layout. */
#ifndef SIMT_CUDA_COPY_H
#define SIMT_CUDA_COPY_H

#include "simt/cuda/cuda.h"

/* CUDA_MEMCPY3D; CUDA_MEMCPY2D is the same without z. */
struct cu_copy_side {
    size_t x, y, z, lod;
    unsigned type;
    void *host, *device, *array, *reserved;
    size_t pitch, height;
};
struct cu_copy_3d {
    struct cu_copy_side from, to;
    size_t width, height, depth;
};
struct cu_copy_side_2d {
    size_t x, y;
    unsigned type;
    void *host, *device, *array;
    size_t pitch;
};
struct cu_copy_2d {
    struct cu_copy_side_2d from, to;
    size_t width, height;
};

/* CUDA_MEMSET_NODE_PARAMS, cudaMemsetParams */
struct cu_fill_params {
    void *to;
    size_t pitch;
    unsigned value, element_bytes;
    size_t width, height;
};

/* CUDA_HOST_NODE_PARAMS */
struct cu_host_params {
    void (*fn)(void *);
    void *arg;
};

/* CUDA_KERNEL_NODE_PARAMS_v2 */
struct cu_kernel_params {
    void *function;
    unsigned grid[3], block[3], shared;
    void **params, **extra;
    void *kernel, *context;
};

struct cu_launch_attribute {
    int id;
    char pad[4];
    union {
        unsigned cluster[3];
        int number;
        uint64_t align[8];
    } value;
};

enum { ATTRIBUTE_COOPERATIVE = 2, ATTRIBUTE_CLUSTER = 4, ATTRIBUTE_OVERLAP = 6 };

int copy_work(const struct cu_copy_3d *p, struct cu_work *out); /* driver_work.c */
void launch_attributes(const struct cu_launch_attribute *list, unsigned count, struct cu_shape *s);

#endif
