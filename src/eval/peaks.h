/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peaks.h - peak rates of GPUs, and the time that no kernel can beat.
 *
 * One table (gpus.def) serves both devices: the floor of measured times and the model of simt's
 * times. All figures describe the chip, none a kernel.
 *
 * `cutegen peaks` measures them on a machine's own GPU (stage/peaks.c) and keeps
 * them in the user's data folder, a file per device. The roofline uses the measured figures; a time
 * counts as impossible only by the larger of both.
 */
#ifndef EVAL_PEAKS_H
#define EVAL_PEAKS_H

#include "base/error.h"
#include "model.h"

struct gpu {
    const char *name;    /* "H200" */
    const char *matches; /* part of the driver's device name, "H200" */
    const char *source;  /* source of the published figures */
    int arch;            /* 90 */
    int cluster_blocks;  /* 1: no clusters */
    int sms;
    double clock_ghz;                         /* boost */
    double read_gbps, write_gbps, mixed_gbps; /* DRAM, reachable */
    double l2_gbps;
    double l2_mib;
    int smem_sm_kib, smem_block_kib;
    int regs_sm, warps_sm, blocks_sm;
    int fp32_lanes, int_lanes, fp64_lanes, sfu_lanes; /* per SM and clock */
    double tensor_f16_tflops, tensor_tf32_tflops;     /* dense */
    double tensor_f8_tflops, tensor_f4_tflops;        /* 0: none */
    double fp32_tflops, fp64_tflops;                  /* measured; 0: from lanes and clock */
    double launch_us;                                 /* one kernel node of a graph */
    double dram_latency_ns;
};

const struct gpu *gpu_find(const char *name); /* by name or by device name; NULL: unknown */
const struct gpu *gpu_list(size_t *count);
const char *gpu_names(struct arena *a); /* "H200, H100, ..." for a message */

struct floor {
    double us;         /* roofline, for "% of roofline" */
    double strict_us;  /* no time can be below this: assumes that writes stay in L2 */
    const char *bound; /* "memory" "fp32" "tensor" "tensor (3 x f16)" */
};

/* `best` (may be `gpu` itself) has the figures that decide whether a time is impossible. */
struct floor peaks_floor(const struct gpu *gpu, const struct gpu *best, const struct task *task);

/* Stores the plausible figures; the others are named in figures["implausible"]. */
bool peaks_save(const char *device, json_t *figures, struct arena *a, struct error *err);
/* Has this device been measured? */
bool peaks_measured(const char *device, struct arena *a);
/* `out`: the device's GPU with the figures measured on it; `best`: the better of table and
 * measurement. False: neither is known. */
bool peaks_find(const char *device, struct arena *a, struct gpu *out, struct gpu *best);
/* For `cutegen peaks`: {"device", "source": "measured|table|none", "measured", "figures": {...},
 * "from": the paper, for the table's}. */
json_t *peaks_report(const struct device *device, struct arena *a);

#endif
