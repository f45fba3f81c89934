/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.h - the trusted Python process that knows the right answer.
 *
 * It loads and describes the task, owns all buffers, draws inputs, computes
 * the reference and the float64 truth after the candidate ran, compares, and
 * times the baselines. Start one per task and device and keep it warm.
 *
 *     if (!oracle_start(&config, &o, err)) ...            no torch, no python
 *     if (!oracle_load(o, &load, arena, &task, err)) ...  the task is broken (use) or the machine
 *     ... oracle_draw, a candidate runs, oracle_compare ...
 *     oracle_stop(o);                                     also after errors
 *
 * Wire protocol: docs/architecture.md, "Oracle". Every failure here is a
 * struct error, never a verdict: the oracle is ours. json_t results are new
 * references; the caller json_decref()s them.
 */
#ifndef EVAL_ORACLE_H
#define EVAL_ORACLE_H

#include "base/error.h"
#include "base/proc.h"
#include "model.h"

struct oracle;

struct oracle_config {
    const char *python;                /* NULL: the set-up's venv, then python3 on PATH */
    const char *script;                /* NULL: oracle/main.py of this installation */
    int deadline_ms;                   /* for one request; 0: 300 s */
    uint64_t memory_bytes;             /* it may use; 0: three quarters of the machine's */
    const struct child_source *source; /* where its process comes from; NULL: started here */
    const char *tag;                   /* names the task and its sizes, for the source */
    const char *task;                  /* its folder may be read; NULL: none */
    bool task_network;                 /* the task may connect to the Internet */
    bool cuda;                         /* it opens a GPU: ask oracle_ready() before oracle_load() */
};

struct oracle_load {
    const char *task_path; /* absolute */
    const char *device;    /* "cpu" "cuda:0" */
    const char *work_dir;  /* buffers live here where its process has no folder of its own */
    json_t *set;           /* size constants to override; may be NULL; borrowed */
    int variant;           /* of get_inputs_list(), from 0 */
    bool backward;         /* the gradients are the task */
    int64_t max_elements;  /* scale down to at most this; 0: sizes as written */
    bool as_written;       /* described at its own sizes all the same, from shapes alone */
    int import_s;          /* longest import of the task file; 0: 60 s */
    const char *baseline;  /* where TF32 is allowed: "defaults" "strict" "tf32"; NULL: defaults */
};

struct oracle_draw {
    const char *seed;         /* hex; fresh and secret */
    const char *distribution; /* "task" "normal" "wide" "small" ... */
    int shift;                /* other addresses than the last draw's */
    bool anew;                /* CUDA: in memory of other allocations than the last draw's */
    bool near;  /* the last draw where it lies, a few elements changed; outputs as they were left */
    bool stale; /* outputs begin as numbers, not as the pattern of the unwritten */
    const char
        *guest; /* a guest's exchange folder: the draw waits for oracle_hand(); NULL: buffers */
};

enum { MAX_WORST = 16 };

struct worst_element {
    int64_t index[MAX_DIMS];
    int dims;
    double expected, got;
};

/* What wrong values have to do with the right ones; the names are in oracle/pattern.py. */
enum relation {
    RELATION_NONE,
    RELATION_ZEROS,
    RELATION_FACTOR,
    RELATION_OFFSET,
    RELATION_TRANSPOSED,
    RELATION_SHIFTED,
    RELATION_REVERSED
};

/* One output against the float64 truth. */
struct comparison {
    const char *name;
    int64_t elements, wrong, nan, inf, unwritten;
    struct accuracy accuracy; /* draws and distributions stay 0 */
    double rtol, atol, rms_factor;
    bool imprecise;
    const char *accuracy_class; /* "fp32", "TF32-class", "16-bit", ... */
    struct worst_element worst[MAX_WORST];
    int worst_count;
    const char *pattern; /* "rows 64..127 of every 128"; may be "" */
    enum relation relation;
};

struct guard_hit {
    const char *buffer, *side; /* "out0", "after" */
    int64_t bytes;
};

struct comparison_set {
    struct comparison outputs[MAX_TENSORS];
    int output_count;
    const char *inputs_modified[MAX_TENSORS];
    int modified_count;
    struct guard_hit guards[MAX_TENSORS];
    int guard_count;
    const char *trivial; /* passed this draw and all before it, knowing nothing: "zeros"; or NULL */
    const char *way;     /* "whole", "in 55 parts of 75 rows", "whole, float64 on the host" */
    const char *hash;    /* of a guest's outputs, as they were copied; NULL: none */
};

/* Samples of one baseline or candidate, in microseconds. */
struct time_samples {
    double *cold_us, *warm_us;
    size_t cold_count, warm_count;
    double wall_us;    /* of one replay by the host's clock; 0: not taken */
    int other_outputs; /* cold replays that left other outputs than the first */
};

bool oracle_start(const struct oracle_config *config, struct oracle **out, struct error *err);
/* out->description is a new reference. */
/* The folder its buffers lie in, and nothing else; borrowed. It goes with its process. */
const char *oracle_folder(const struct oracle *o);
/* A new folder through which it and a guest exchange tensors: where a confined oracle can write.
 * The caller removes it. */
bool oracle_exchange(const struct oracle *o, struct arena *a, const char **out, struct error *err);
bool oracle_load(struct oracle *o, const struct oracle_load *load, struct arena *a,
                 struct task *out, struct error *err);
/* *buffers: where the tensors lie. For a guest: what its ModelNew is made from, instead. */
bool oracle_draw(struct oracle *o, const struct oracle_draw *draw, json_t **buffers,
                 struct error *err);
/* For a guest whose module is made: the inputs, in files, and how it is called. */
bool oracle_hand(struct oracle *o, json_t **binding, struct error *err);
bool oracle_compare(struct oracle *o, struct arena *a, struct comparison_set *out,
                    struct error *err);
/* Which trivial answers would pass this task: "zeros, mean"; "" when none. */
bool oracle_trivial(struct oracle *o, struct arena *a, const char **passes, struct error *err);
/* `turn` names the measurement: in another turn, a baseline beside eager may be answered with what
 * it was, as long as eager itself is what it was. budget_ms 0: none. */
struct oracle_timing {
    const char *name, *turn;
    int cold, warm, budget_ms;
};
bool oracle_baseline(struct oracle *o, const struct oracle_timing *timing, struct arena *a,
                     struct time_samples *out, struct error *err);
/* What the GPU says of itself, as nvidia-smi writes it; "" where it does not. */
const char *oracle_clocks(struct oracle *o, struct arena *a); /* NULL is fine */
/* The Python that is used when `asked` (may be NULL) is. */
const char *oracle_python(const char *asked, struct arena *a);
/* Waits until its process has opened the device ("cuda:0"). A failure is met again by the load, but
 * where the driver does not start inside the confinement: then another process runs without it. */
void oracle_ready(struct oracle *o, const char *device);
bool oracle_is_confined(const struct oracle *o);
/* Gives back all device memory until the next draw: for a GPU that others use meanwhile. */
void oracle_rest(struct oracle *o); /* NULL is fine */
/* It ended because the server that lent it did: start another. */
bool oracle_lost(const struct oracle *o);
void oracle_stop(struct oracle *o); /* NULL is fine; a borrowed one goes back if it still works */

#endif
