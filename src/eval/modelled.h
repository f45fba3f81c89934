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

struct modelled {
    double time_us;
    const char *bound; /* "dram" "l2" "shared" "fp32" "tensor" "sfu" "issue" "latency" "launch" */
    json_t *parts;     /* new reference: {"total_us", "bound", "launches": [{...by resource}]} */
};

/* counters: list, one object per launch; resources: kernel -> registers,
 * smem, spills (may be NULL). */
bool modelled_time(const struct gpu *gpu, const json_t *counters, const json_t *resources,
                   struct arena *a, struct modelled *out, struct error *err);

#endif
