/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simt.h - a CUDA device on the CPU.
 *
 * It runs shared objects that simt_compile() (translate.h) made. It starts no
 * program and reads no file but the one given to simt_load().
 *
 *     simt_open(&config, &dev, err);
 *     simt_alloc_register(dev, x, bytes, "x", SIMT_ALLOC_READONLY | SIMT_ALLOC_WRITTEN);
 *     simt_load(dev, "k.so", &mod, err);
 *     simt_launch(dev, mod, &launch, a, &result, err);
 *     simt_close(dev);                       also after errors; unloads modules
 *
 * Buffers are host memory of the caller; kernels see host addresses. Only
 * registered buffers may be touched while checks are on. A kernel that
 * faults, hangs or breaks a rule is data in struct simt_result; struct error is for a broken
 * machine. One launch at a time per device.
 */
#ifndef SIMT_SIMT_H
#define SIMT_SIMT_H

#include "base/error.h"
#include "base/mem.h"

#include <jansson.h>
#include <stdint.h>

enum simt_check { SIMT_CHECK_OFF, SIMT_CHECK_MEMORY, SIMT_CHECK_FULL };

struct simt_config {
    int threads; /* host threads; 0: as many as cores */
    enum simt_check check;
    bool counters;             /* sectors and bank conflicts; the rest is always counted */
    bool profile;              /* counters by source line as well */
    bool exact_mma;            /* round matrix sums as the GPU does: slower */
    uint64_t warp_order_seed;  /* 0: in order; others permute the warps of a block */
    int watchdog_ms;           /* 0: one minute */
    uint32_t max_threads;      /* per block; 0: 1024 */
    uint32_t max_shared_bytes; /* per block; 0: 227 KiB */
    size_t max_findings;       /* 0: 32 */
};

enum { SIMT_ALLOC_READONLY = 1, SIMT_ALLOC_WRITTEN = 2 };

enum simt_outcome { SIMT_OK, SIMT_FAULT, SIMT_HANG, SIMT_BAD_LAUNCH };

enum simt_finding_kind {
    SIMT_OUT_OF_BOUNDS,
    SIMT_MISALIGNED,
    SIMT_WRITE_TO_INPUT,
    SIMT_UNINITIALISED,
    SIMT_RACE_SHARED,
    SIMT_RACE_GLOBAL,
    SIMT_ASYNC_NOT_WAITED,
    SIMT_ASYNC_OVERWRITE,
    SIMT_DIVERGENT_BARRIER,
    SIMT_DIVERGENT_COLLECTIVE,
    SIMT_DEADLOCK,
    SIMT_TIMEOUT,
    SIMT_TRAP,
    SIMT_ASSERTION,
    SIMT_MBARRIER,      /* inconsistent phases, arrivals and bytes */
    SIMT_PROXY,         /* fence.proxy.async is missing */
    SIMT_TENSOR_MAP,    /* no map, or not one for this instruction */
    SIMT_CLUSTER,       /* misuse of another block's memory or of the cluster barrier */
    SIMT_WGMMA,         /* registers of a wgmma accessed before its wait */
    SIMT_WGMMA_FENCE,   /* wgmma.fence is missing */
    SIMT_TENSOR_MEMORY, /* misuse of columns, lanes or descriptors of tensor memory */
    SIMT_TENSOR_FENCE,  /* tcgen05.fence is missing */
    SIMT_SHUFFLE,       /* a shuffle reads a lane that does not take part in it */
    SIMT_MISSING_FENCE, /* blocks publish data by a flag without a fence before it */
    SIMT_SAME_VALUE,    /* threads store the same value to one place: a warning */
    SIMT_BARRIER_EXIT,  /* a barrier of the whole block after some of its warps have left: likewise
                         */
    SIMT_PROXY_READ,    /* fence.proxy.async is missing between loads and a copy: likewise */
    SIMT_COPY_EXIT,     /* a thread leaves before its copy out of shared memory is over: likewise */
    SIMT_FINDING_KINDS
};

struct simt_place {
    const char *file;
    int line;
};

struct simt_side {
    uint32_t block[3], thread[3];
    struct simt_place at; /* the user's line */
    int ptx_line;
    const char *op;
};

struct simt_finding {
    enum simt_finding_kind kind;
    const char *kernel;
    struct simt_side here, other;  /* other.op is NULL when there is none */
    const struct simt_place *path; /* user's line first, then into headers */
    size_t path_len;
    const struct simt_place *callers; /* of the user's line, by inlined calls; innermost first */
    size_t caller_count;
    uint64_t address;
    const char *allocation; /* nearest, or NULL */
    int64_t overrun;        /* bytes past its end, or before its start (negative) */
    uint64_t times;
    const char *what; /* is wrong, in words */
    const char *text; /* the same between the place and the other side */
};

/* Types of factors on tensor cores. */
enum simt_tensor_type {
    SIMT_TENSOR_F16,
    SIMT_TENSOR_BF16,
    SIMT_TENSOR_TF32,
    SIMT_TENSOR_F8, /* and six bits, which are in bytes too */
    SIMT_TENSOR_F4,
    SIMT_TENSOR_INT,
    SIMT_TENSOR_F64,
    SIMT_TENSOR_TYPES
};

enum { SIMT_BUFFERS = 12 }; /* counted one by one; the last has all others */

struct simt_counters {
    uint64_t warp_instructions, by_class[32], threads_by_class[32]; /* enum sw_class */
    uint64_t fp32_flops, tensor_flops;
    uint64_t tensor_flops_of[SIMT_TENSOR_TYPES], wgmma_flops;
    uint64_t global_load_requests, global_load_sectors, global_load_bytes;
    uint64_t global_store_requests, global_store_sectors, global_store_bytes;
    uint64_t shared_requests, shared_wavefronts, shared_conflicts;
    uint64_t global_load_lines, global_store_lines; /* lines of 128 bytes per request, added up */
    uint64_t barriers, atomics, blocks, launches;
    uint64_t atomic_conflicts; /* lanes that shared an address with another lane of their warp */
    uint64_t global_atomics, global_atomic_requests, global_atomic_sectors, global_atomic_lines;
    uint64_t global_atomic_conflicts;
    uint64_t atomic_span;               /* bytes from the lowest to the highest global atomic */
    uint64_t async_copies, async_bytes; /* cp.async of a warp, bulk copies of a thread */
    uint64_t async_waits, async_left;   /* waits, and copies still under way after them */
    uint64_t cluster_requests, bulk_requests, bulk_bytes;
    uint64_t thread_instructions;                      /* lanes that took part, added up */
    uint64_t global_load_batches, shared_load_batches; /* runs of blocks that hold loads */
    /* Sectors that are new to their block, and 64-byte chunks of them; loads that a small cache
     * of the block would not hold. From some blocks to all. */
    uint64_t block_load_sectors, block_store_sectors, block_load_chunks, block_store_chunks;
    uint64_t far_load_sectors;
    /* Of each buffer: its bytes, and the sectors of it that are new to their block. */
    uint64_t buffer_bytes[SIMT_BUFFERS], buffer_sectors[SIMT_BUFFERS];
};

/* What one source line did, in warps; lanes: threads that took part. */
struct simt_line {
    struct simt_place at;
    uint64_t instructions, lanes, requests, sectors, shared_wavefronts, shared_conflicts;
    uint64_t atomics, atomic_conflicts, async_copies, async_waits, async_left;
    uint64_t tensor_flops[SIMT_TENSOR_TYPES], by_class[32];
};
enum { SIMT_LINE_COUNTS = 11 + SIMT_TENSOR_TYPES + 32 };

struct simt_result {
    enum simt_outcome outcome;
    const char *text; /* why, when not SIMT_OK */
    bool stopped;     /* it was stopped: results are incomplete, and the outcome is not ok */
    struct simt_counters counters;
    const struct simt_finding *findings;
    size_t finding_count;
    uint64_t findings_dropped;
    const struct simt_line *lines; /* with profile; heaviest first */
    size_t line_count;
    const char *printed; /* what the kernel printed */
    double seconds;
};

struct simt_launch {
    const char *kernel;
    uint32_t grid[3], block[3], cluster[3]; /* cluster 0 or 1: none */
    uint32_t shared_bytes;                  /* dynamic */
    const void *params;                     /* packed as the kernel lays them out */
    size_t param_bytes;
    /* The GPU may begin it before the launch before has ended, or the next one before it ends
     * (programmatic dependent launch). It never does here, but full checks find what then races. */
    bool overlap, overlapped;
    bool cooperative; /* all blocks run at the same time and may wait for each other */
    uint64_t sample;  /* run only so many blocks (or clusters), spread over the grid, and scale the
                         counters; 0: all. Results are then incomplete. */
};

struct simt_param {
    uint32_t offset, bytes, align;
};

struct simt_kernel_info {
    const char *name;
    const struct simt_param *params;
    size_t param_count;
    uint32_t param_bytes, static_shared, local_bytes, max_threads, instructions;
    bool uses_dynamic_shared;
};

struct simt;
struct simt_module;

bool simt_open(const struct simt_config *config, struct simt **out, struct error *err);
void simt_close(struct simt *dev); /* NULL is fine */
void simt_alloc_register(struct simt *dev, void *base, size_t bytes, const char *name,
                         unsigned flags);
/* The host has stored to it: reading it is not a finding. */
void simt_alloc_written(struct simt *dev, const void *at, size_t bytes);
void simt_alloc_forget(struct simt *dev, const void *base); /* later use is a finding */
bool simt_load(struct simt *dev, const char *so_path, struct simt_module **out, struct error *err);
bool simt_kernel_info(const struct simt_module *m, const char *name, struct simt_kernel_info *out);
/* Address and size of a .global or .const variable of the module. */
bool simt_module_variable(const struct simt_module *m, const char *name, void **base,
                          size_t *bytes);
bool simt_launch(struct simt *dev, struct simt_module *m, const struct simt_launch *launch,
                 struct arena *a, struct simt_result *out, struct error *err);

/* A tensor map as cuTensorMapEncodeTiled takes it, or, with im2col, as its Im2col does. */
struct simt_map {
    uint64_t address;
    const char *dtype; /* "f16" */
    int rank;
    uint64_t dims[5], strides_bytes[5]; /* fastest first; strides of dimension 1, 2, ... */
    uint32_t box[5], element_strides[5];
    unsigned swizzle; /* 0: none, 1: 32 bytes, 2: 64, 3: 128 */
    bool fill_nan, im2col;
    int lower[3], upper[3]; /* im2col: bounding box, in pixels */
    uint32_t channels, pixels;
};
/* Into the 128 bytes that a kernel takes as its CUtensorMap; false: why says which rule. */
bool simt_map_encode(const struct simt_map *map, unsigned char out[128], char *why, size_t size);

const char *simt_finding_name(enum simt_finding_kind kind);
bool simt_finding_warns(enum simt_finding_kind kind); /* a hint; not a mistake by itself */
const char *simt_outcome_name(enum simt_outcome outcome);
const char *simt_class_name(int cls);
const char *simt_tensor_name(enum simt_tensor_type type);
json_t *simt_finding_json(const struct simt_finding *f);
json_t *simt_counters_json(const struct simt_counters *c);
json_t *simt_tensor_json(const uint64_t *flops); /* by type, those that are not 0 */
json_t *simt_lines_json(const struct simt_result *r);

#endif
