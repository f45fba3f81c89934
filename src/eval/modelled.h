/*
 * modelled.h - what simt's counters would cost on a named GPU.
 *
 * A modelled time orders variants of one kernel; it is no measurement and is
 * labelled as modelled wherever it is shown. modelled.c explains the model.
 */
#ifndef EVAL_MODELLED_H
#define EVAL_MODELLED_H

#include "base/error.h"
#include "eval/peaks.h"
#include "model.h"

/*
 * What the model does not get from the GPU's table: estimates, until they are
 * fitted on one half of the kernels of bench/simt/calibrate_cases.def and checked
 * on the other (bench/simt/calibrate.py).
 */
struct modelled_constants {
    double overlap;   /* share of the lesser parts that is not hidden behind the greatest */
    double sass;      /* instructions the assembler leaves of PTX's */
    double sass_int;  /* likewise of integer ones */
    double l1_again;  /* of repeated sectors: share that L1 does not hold */
    double l2_again;  /* of those: share that L2 does not hold, when nothing fits it */
    double scattered; /* clocks of L1 for a sector that lies alone */
    double far, near; /* clocks until a load from DRAM, or one that L1 or L2 holds, is there */
    double shared_wait, arith_wait, sfu_wait, tensor_wait, barrier_wait;
    double atomic_clocks; /* of L2 for an atomic's sector, whole chip */
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
    const char *bound; /* "dram" "l2" "l1" "shared" "fp32" "fp64" "int" "sfu" "tensor" "issue"
                          "latency" */
    json_t *parts;     /* new reference: {"total_us", "bound", "gpu", "launches": [{"kernel",
                          "time_us", "bound", "warps_sm", and microseconds by resource}]} */
};

bool modelled_time(const struct modelled_input *in, struct modelled *out, struct error *err);
/* The share of a task, from the oracle's "scaled". */
double modelled_share(const struct task *task);

#endif
