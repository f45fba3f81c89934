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
 * What the model does not get from the GPU's table: fitted on one half of the
 * kernels of bench/simt/calibrate_cases.def and checked on the other
 * (bench/simt/calibrate.py).
 */
struct modelled_constants {
    double blend;    /* exponent of the norm by which parts add up: 1 all, infinite the greatest */
    double sass;     /* instructions the assembler leaves of PTX's */
    double sass_int; /* likewise of integer ones */
    double sass_div; /* instructions that an exact quotient or root becomes */
    double sass_sfu; /* and those around an approximate function */
    double l1_again; /* of loads a block's small cache lost: share that L1 has not either */
    double l2_again; /* of what other blocks touch too: share lost, when nothing fits L2 */
    double alone;    /* what more DRAM moves for a sector without its neighbour */
    double store_line;         /* clocks of L1 for a line stored */
    double part_store;         /* what L2 does for a store of less than a sector, in full ones */
    double far, near, l1_wait; /* clocks until a load from DRAM, L2, L1 is there */
    double shared_wait, arith_wait, sfu_wait, tensor_wait, barrier_wait;
    double start;         /* clocks that a warp's beginning and end cost */
    double atomic_clocks; /* that a warp's atomics to one line take there */
    double atomic_lane;   /* and each lane at an address that another has too */
    double tensor_share;  /* of the tensor cores' peak that mma.sync can reach */
};
extern const struct modelled_constants modelled_h200;

struct modelled_input {
    const struct gpu *gpu;
    const json_t *counters;  /* list, one object per launch */
    const json_t *resources; /* lowered kernel name -> registers, smem, spills; may be NULL */
    const struct modelled_constants *constants; /* NULL: modelled_h200 */
    double share; /* of the task's size that was run: 1/16 when scaled from 4096 to 256;
                     0: 1 */
};

struct modelled {
    double time_us;
    const char *bound; /* "dram" "l2" "l1" "shared" "atomics" "fp32" "fp64" "int" "sfu" "tensor"
                          "issue" "latency" */
    json_t *parts;     /* new reference: {"total_us", "bound", "gpu", "launches": [{"kernel",
                          "time_us", "bound", "warps_sm", and microseconds by resource}]} */
};

bool modelled_time(const struct modelled_input *in, struct modelled *out, struct error *err);
/* The share of a task, from the oracle's "scaled". */
double modelled_share(const struct task *task);

#endif
