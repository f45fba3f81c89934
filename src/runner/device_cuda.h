/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_cuda.h - internals of the CUDA device, shared by device_cuda.c (load, bind, run),
 * device_cuda_tools.c (small kernels) and device_cuda_time.c (the clock).
 */
#ifndef RUNNER_DEVICE_CUDA_H
#define RUNNER_DEVICE_CUDA_H

#include "runner/cuda_api.h"
#include "runner/device.h"
#include "runner/runner_plan.h"

enum {
    CUDA_MAX_MAPPINGS = 8 * PLAN_MAX_BUFFERS, /* a short kernel is timed in several sets */
    CUDA_GUARD_BYTES = 4096,
    CUDA_GUARD_VALUE = 0xA7,
    CUDA_UNIT_BYTES = 2 << 20, /* smaller allocations share one such piece */
    CUDA_POISON = 0xFF,        /* reads as NaN in every float type */
};

struct cuda_mapping {
    struct cuda_ipc_handle handle;
    uint64_t address;
};

struct cuda_device {
    struct run_device base;
    struct cuda_api api;
    struct device_facts facts;
    struct arena *a;
    int device;
    void *context, *stream, *module;
    struct cuda_mapping mappings[CUDA_MAX_MAPPINGS];
    size_t mapping_count;
    bool ran;   /* every kernel has run once, so a graph may be captured */
    void *exec; /* graph of the plan with its present buffers; NULL: not built */
    /* tools, created when first needed */
    void *flush, *wait, *hash, *fill, *scrub, *stack, *start, *stop;
    int local_bytes; /* the largest local memory per thread of the module's kernels */
    uint64_t flush_address, flush_bytes, sink_address;
    unsigned char *guard;             /* buffer into which guards are read; NULL: none yet */
    uint64_t fresh[PLAN_MAX_BUFFERS]; /* first bytes of each output as it was bound, 8 of them */
    bool audited;                     /* since the buffers were bound; then: */
    uint64_t untouched;               /* hash of what the plan may not write */
};

/* Sets the outcome that an API call's failure means for the candidate; always false. */
bool cuda_fault(struct cuda_device *d, const struct plan *plan, int op, int result,
                struct outcome *said);
/* Reports a failure that is not the candidate's fault; always false. */
bool cuda_error(struct cuda_device *d, int result, const char *what, struct error *err);
/* Builds the graph if necessary; before that runs the plan once, step by step. */
bool cuda_prepare(struct cuda_device *d, struct plan *plan, struct outcome *said,
                  struct error *err);
/* One step of the plan, in stream order. */
int cuda_enqueue(struct cuda_device *d, const struct plan *plan, size_t index);
/* Fills the workspace with a NaN pattern, in stream order. */
bool cuda_poison(struct cuda_device *d, const struct plan *plan, struct error *err);
/* Creates the tools if necessary. */
bool cuda_tools(struct cuda_device *d, struct error *err);
int cuda_enqueue_flush(struct cuda_device *d);
/* Overwrite the shared memory of every multiprocessor; what threads left in local memory. */
int cuda_enqueue_scrub(struct cuda_device *d);
int cuda_enqueue_stack_scrub(struct cuda_device *d);
/* Fills memory with repetitions of the value's 8 bytes. */
int cuda_enqueue_fill(struct cuda_device *d, uint64_t address, uint64_t bytes, uint64_t value);
int cuda_enqueue_wait(struct cuda_device *d);
/* Was the flush's memory, which belongs to no tensor, written to? */
bool cuda_flush_spoilt(struct cuda_device *d, bool *spoilt, struct error *err);
int cuda_enqueue_hash(struct cuda_device *d, uint64_t address, uint64_t words, uint64_t seed);
bool cuda_hash(struct run_device *base, const struct plan *plan, uint64_t *out, struct error *err);
bool cuda_time(struct run_device *base, struct plan *plan, struct runner_samples *samples,
               struct outcome *said, struct error *err);
/* Bytes of guard after a workspace, which has pieces of memory of its own. */
uint64_t cuda_guard_after(const struct plan_buffer *b);
/* Begin before the first timed run on buffers, and check after each sample for which
 * cuda_audit_due(): a write to read-only memory or around a buffer is a finding. */
bool cuda_audit_begin(struct cuda_device *d, const struct plan *plan, struct error *err);
bool cuda_audit_due(size_t sample);
bool cuda_audit(struct cuda_device *d, const struct plan *plan, struct outcome *said,
                struct error *err);

#endif
