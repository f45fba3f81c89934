/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner_plan.h - the launch list: read, checked as data, bound to addresses.
 *
 * The list was written by the candidate's plan, so nothing in it is trusted.
 * A fault in it is the outcome "bad launch" with a text that names the launch, the argument and
 * what was expected; never a struct error.
 *
 *     plan_parse   at load: the list's own shape, kernel names, workspace
 *     plan_check   at load: arguments and sizes against the kernels, device limits
 *     plan_bind    at bind: offsets inside the buffers; addresses into arguments
 *
 * Everything lives in the arena given to plan_parse.
 */
#ifndef RUNNER_PLAN_H
#define RUNNER_PLAN_H

#include "base/mem.h"
#include "runner/runner_outcome.h"

#include <jansson.h>
#include <stdint.h>

enum {
    PLAN_MAX_OPS = 4096,
    PLAN_MAX_ARGS = 256,
    PLAN_MAX_POINTERS = 64, /* in one argument */
    PLAN_MAX_MAPS = 1024,
    PLAN_MAX_BUFFERS = 1536,
    MAP_BYTES = 128,
    MAP_MAX_RANK = 5,
};

enum buffer_kind { BUFFER_IN, BUFFER_OUT, BUFFER_WORKSPACE };

struct plan_buffer {
    char name[24]; /* in0, out0, ws0 */
    enum buffer_kind kind;
    uint64_t bytes;
    uint64_t address; /* 0: not bound yet */
};

/* A pointer inside of a struct that is passed by value. */
struct plan_pointer {
    size_t at; /* in the struct */
    int buffer;
    uint64_t offset;
};

/* One kernel argument. data holds what the kernel gets, size bytes of it. */
struct plan_arg {
    int buffer, map;  /* index, or -1 */
    uint64_t offset;  /* into the buffer */
    const char *type; /* "int", "float", or "": for messages */
    unsigned char *data;
    size_t size;
    struct plan_pointer *pointers; /* inside of bytes */
    size_t pointer_count;
};

enum plan_op_kind { PLAN_LAUNCH, PLAN_MEMSET };

struct plan_op {
    enum plan_op_kind kind;
    int line; /* of the candidate's source; 0: unknown */
    /* launch */
    const char *kernel;  /* as the plan names it: gemm<128, 128, 16> */
    const char *lowered; /* as the module names it */
    void *function;      /* the device's, set by plan_check */
    uint64_t grid[3], block[3], cluster[3], smem;
    bool overlap; /* programmatic dependent launch on the launch before */
    struct plan_arg *args;
    size_t arg_count;
    /* memset */
    int buffer;
    uint64_t offset, bytes;
    unsigned char value;
};

/* A tensor map (TMA). Extents innermost first, as the driver takes them. */
struct plan_map {
    int buffer;
    uint64_t offset;
    const char *dtype, *swizzle, *fill, *l2;
    int rank;
    uint64_t dims[MAP_MAX_RANK], strides_bytes[MAP_MAX_RANK]; /* strides of dims 1..rank-1 */
    uint32_t box[MAP_MAX_RANK], element_strides[MAP_MAX_RANK];
    _Alignas(64) unsigned char encoded[MAP_BYTES];
};

struct plan {
    struct plan_op *ops;
    size_t op_count;
    struct plan_map *maps;
    size_t map_count;
    struct plan_buffer buffers[PLAN_MAX_BUFFERS]; /* workspace first, then in order of use */
    size_t buffer_count;
};

struct run_device;

void plan_parse(const json_t *list, const json_t *names, struct arena *a, struct plan *out,
                struct outcome *said);
void plan_check(struct plan *plan, struct run_device *device, struct outcome *said);
/* After the device gave every buffer its address and size, before the run. */
void plan_bind(struct plan *plan, struct run_device *device, struct outcome *said);

struct plan_buffer *plan_buffer_find(struct plan *plan, const char *name);
/* "gemm<128, 128, 16> (launch 2, line 57)" */
const char *plan_op_text(const struct plan *plan, size_t op, char *out, size_t size);

#endif
