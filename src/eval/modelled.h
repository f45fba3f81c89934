/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modelled.h - what simt's counters would cost on a named GPU.
 *
 * A modelled time orders variants of one kernel; it is not a measurement and is
 * labelled as modelled wherever it is shown. modelled.c explains the model.
 */
#ifndef EVAL_MODELLED_H
#define EVAL_MODELLED_H

#include "base/error.h"
#include "eval/peaks.h"
#include "model.h"

/*
 * Constants that are not in the GPU's table: fitted on one half of the kernels of
 * bench/simt/calibrate_cases.def and checked on the other (bench/simt/calibrate.py).
 */
struct modelled_constants {
    /* exponent of the norm that combines the parts: 1 is their sum, infinity their maximum */
    double blend;
    double sass;     /* SASS instructions per PTX instruction */
    double sass_int; /* the same for integer instructions */
    double sass_div; /* SASS instructions of an exact division or square root */
    double sass_sfu; /* SASS instructions around an approximate function */
    double l1_again; /* of loads that miss a block's small cache: share that also misses L1 */
    double l2_again; /* of data that other blocks also touch: share lost when nothing fits in L2 */
    double alone;    /* extra DRAM traffic for a sector without its neighbour */
    double store_line;         /* L1 clocks per stored line */
    double part_store;         /* L2 cost of a store of less than a sector, in full sectors */
    double far, near, l1_wait; /* latency of a load from DRAM, L2, L1, in clocks */
    double shared_wait, arith_wait, sfu_wait, tensor_wait, barrier_wait;
    double start;         /* clocks to start and end a warp */
    double atomic_clocks; /* clocks of a warp's atomics to one line */
    double atomic_lane;   /* extra clocks per lane that shares its address with another */
    double tensor_share;  /* share of the tensor cores' peak that mma.sync can reach */
};
extern const struct modelled_constants modelled_h200;

struct modelled_input {
    const struct gpu *gpu;
    const json_t *counters;  /* list, one object per launch */
    const json_t *resources; /* lowered kernel name -> registers, smem, spills; may be NULL */
    const struct modelled_constants *constants; /* NULL: modelled_h200 */
    double share; /* run size over task size: 1/16 when scaled from 4096 to 256; 0 means 1 */
};

struct modelled {
    double time_us;
    const char *bound; /* "dram" "l2" "l1" "shared" "atomics" "fp32" "fp64" "int" "sfu" "tensor"
                          "issue" "latency" */
    json_t *parts;     /* new reference: {"total_us", "bound", "gpu", "launches": [{"kernel",
                          "time_us", "bound", "warps_sm", and microseconds by resource}]} */
};

bool modelled_time(const struct modelled_input *in, struct modelled *out, struct error *err);
/* A task's share, computed from the oracle's "scaled". */
double modelled_share(const struct task *task);

#endif
