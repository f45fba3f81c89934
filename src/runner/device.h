/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - the interface between the runner and the device that kernels run on.
 *
 * Two implementations: device_simt.c (the CPU) and device_cuda.c (the driver
 * API, found with dlopen). Life: open -> load -> kernel* -> bind -> run and
 * time, bind again with other buffers, ... -> close. bool false with an error
 * means the machine or the request is at fault; the candidate's own failures are in the struct
 * outcome.
 */
#ifndef RUNNER_DEVICE_H
#define RUNNER_DEVICE_H

#include "base/error.h"
#include "runner/runner_plan.h"

#include <stdint.h>

enum { KERNEL_MAX_PARAMS = 256 };

struct device_config {
    int index;         /* CUDA */
    const char *check; /* simt: "off" "memory" "full" */
    bool counters;
    bool profile;    /* simt: counters by source line */
    uint64_t sample; /* simt: blocks to run of each grid; 0: all */
    uint64_t warp_seed;
    int threads;                               /* 0: one per core */
    int watchdog_ms;                           /* simt: one launch; 0: none */
    uint64_t smem_block_bytes, cluster_blocks; /* simt: limit of the GPU it models; 0: an H200's */
};

struct device_facts {
    char name[128];
    char place[32]; /* PCI bus address: identifies one of several GPUs, whatever its number */
    int arch;       /* 90 */
    int sm_count;
    uint64_t grid[3], block[3], threads_block;
    uint64_t smem_block_bytes, cluster_blocks, l2_bytes, memory_bytes;
    bool tensor_maps;
};

/* A kernel's attributes. */
struct kernel_facts {
    void *function;
    bool params_known;
    size_t param_count;
    size_t param_bytes[KERNEL_MAX_PARAMS];
    uint64_t max_threads, static_smem_bytes; /* 0: unknown */
};

struct runner_samples {
    double *cold_us, *warm_us;
    size_t cold_count, warm_count; /* in: wanted; out: taken */
    double wall_us;                /* host time per replay, over consecutive replays */
    int other_outputs;             /* cold samples whose outputs differ from the first's */
    int budget_ms; /* stops early, but takes at least 5 of each (2 if slow); 0: no limit */
};

struct run_device;

struct device_ops {
    bool (*open)(const struct device_config *config, struct run_device **out, struct error *err);
    void (*facts)(struct run_device *d, struct device_facts *out);
    bool (*load)(struct run_device *d, const char *module_path, struct outcome *said,
                 struct error *err);
    /* false: the module has no such kernel */
    bool (*kernel)(struct run_device *d, const char *lowered, struct kernel_facts *out);
    /* Gives every buffer of the plan its address and size. */
    bool (*bind)(struct run_device *d, struct plan *plan, const json_t *buffers,
                 struct outcome *said, struct error *err);
    bool (*encode_map)(struct run_device *d, const struct plan *plan, struct plan_map *map,
                       char *why, size_t why_size);
    bool (*run)(struct run_device *d, struct plan *plan, struct outcome *said, struct error *err);
    bool (*time)(struct run_device *d, struct plan *plan, struct runner_samples *samples,
                 struct outcome *said, struct error *err);
    /* A hash of all outputs, only to tell whether two runs differ. */
    bool (*hash)(struct run_device *d, const struct plan *plan, uint64_t *out, struct error *err);
    /* Prepares what a run will need; NULL: nothing to prepare. */
    void (*warm)(struct run_device *d);
    void (*close)(struct run_device *d);
};

/* Every implementation's struct begins with this. */
struct run_device {
    const struct device_ops *ops;
};

extern const struct device_ops device_simt_ops, device_cuda_ops;

/* Shared by both implementations (device.c). */
uint64_t device_hash_bytes(uint64_t seed, const void *data, size_t len);
json_t *device_facts_json(const struct device_facts *facts);

#endif
