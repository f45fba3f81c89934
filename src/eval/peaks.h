/*
 * peaks.h - what GPUs can do at most, and the time no kernel can beat.
 *
 * One table (gpus.def) for both devices: the floor under a measured time and
 * the model of simt's. All figures are of the chip, none of a kernel.
 */
#ifndef EVAL_PEAKS_H
#define EVAL_PEAKS_H

#include "model.h"

struct gpu {
    const char *name;    /* "H200" */
    const char *matches; /* in the driver's device name, "H200" */
    int sms;
    double clock_ghz;                         /* boost */
    double read_gbps, write_gbps, mixed_gbps; /* DRAM, reachable */
    double l2_gbps;
    double l2_mib;
    int smem_sm_kib, smem_block_kib;
    int regs_sm, warps_sm, blocks_sm;
    int fp32_lanes, int_lanes, fp64_lanes, sfu_lanes; /* per SM and clock */
    double tensor_f16_tflops, tensor_tf32_tflops;     /* dense */
    double launch_us;                                 /* one kernel node of a graph */
    double dram_latency_ns;
};

const struct gpu *gpu_find(const char *name); /* name or device name; NULL: unknown */
const struct gpu *gpu_list(size_t *count);

struct floor {
    double us;         /* roofline, for "% of roofline" */
    double strict_us;  /* below this it cannot be: writes may stay in L2 */
    const char *bound; /* "memory" "fp32" "tensor" "tensor (3 x f16)" */
};

struct floor peaks_floor(const struct gpu *gpu, const struct task *task);

#endif
