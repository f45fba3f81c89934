/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncu.h - a short summary of NVIDIA's profile of a candidate, in fixed units.
 *
 *     if (ncu_profile(&config, build, test, ncu, a, &pages, err)) ... runs the candidate once
 *     json_t *kernels = ncu_summary(pages.raw, pages.details);        a list, new reference
 *     ncu_text(kernels, &buf);                                        for the optimizing model
 *
 * ncu is run on the runner, so what is profiled is the launch list that is
 * timed, with the same inputs' shapes. Its clock is not the judge's: these times compare parts of a
 * kernel and decide nothing.
 *
 * A kernel of ncu_summary(); what ncu did not report is left out: {"kernel", "grid": [x,y,z],
 *   "block": [x,y,z], "time_us", "registers", "smem_static", "smem_dynamic", "waves",
 *   "compute_pct", "memory_pct", "dram_pct", "l1_pct", "l2_pct", "dram_read_bytes",
 *   "dram_write_bytes", "dram_gbps", "l1_hit_pct", "l2_hit_pct", "occupancy_pct",
 *   "occupancy_theoretical_pct", "occupancy_limit", "ipc", "stalls": {REASON: share},
 *   "load_sectors_per_request", "store_sectors_per_request", "shared_load_conflicts",
 *   "shared_store_conflicts", "shared_wavefronts_over_ideal", "local_requests", "fma_pct",
 *   "tensor_pct", "tflops_fp32", "flops_per_byte", "advice": [{"rule", "text", "speedup_pct"}]}
 */
#ifndef EVAL_NCU_H
#define EVAL_NCU_H

#include "base/buf.h"
#include "eval/judge.h"

struct ncu_pages {
    struct text raw, details; /* CSV, as `ncu --import` prints them */
};

/* False: ncu could not or must not be run (err says why and what to do). */
bool ncu_profile(const struct judge_config *config, const struct build_result *build,
                 const struct test_result *test, const char *ncu, struct arena *a,
                 struct ncu_pages *out, struct error *err);
json_t *ncu_summary(struct text raw, struct text details);
void ncu_text(const json_t *kernels, struct buf *out);

#endif
