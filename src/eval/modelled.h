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

struct modelled_input {
    const struct gpu *gpu;
    const json_t *counters;  /* list, one object per launch */
    const json_t *resources; /* lowered kernel name -> registers, smem, spills; may be NULL */
    double share;            /* of the task's size that was run: 1/16 when scaled from 4096 to 256;
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
