/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.h - client of the oracle, the trusted Python process that knows the right answer.
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
    uint64_t memory_bytes;             /* memory it may use; 0: three quarters of the machine's */
    const struct child_source *source; /* provides its process; NULL: started here */
    /* names the task and its sizes, so that the source can choose a process */
    const char *tag;
    const char *task;  /* path of the task, whose folder may be read; NULL: none */
    bool task_network; /* the task may connect to the Internet */
    /* it opens a GPU: call oracle_ready() before oracle_load() */
    bool cuda;
};

struct oracle_load {
    const char *task_path; /* absolute */
    const char *device;    /* "cpu" "cuda:0" */
    const char *work_dir;  /* folder of the buffers if its process has none of its own */
    json_t *set;           /* size constants to override; may be NULL; borrowed */
    int variant;           /* of get_inputs_list(), from 0 */
    bool backward;         /* the task is to compute the gradients */
    int64_t max_elements;  /* scale sizes down to at most this; 0: do not scale */
    bool as_written;       /* still describe it at full size, from shapes alone */
    int import_s;          /* longest import of the task file; 0: 60 s */
    const char *baseline;  /* where TF32 is allowed: "defaults" "strict" "tf32"; NULL: defaults */
};

struct oracle_draw {
    const char *seed;         /* hex; fresh and secret */
    const char *distribution; /* "task" "normal" "wide" "small" ... */
    int shift;                /* where tensors begin in their buffers (judge_shift) */
    bool anew;                /* CUDA: put buffers into new allocations */
    bool near;  /* keep the last draw in place with a few elements changed; do not reset outputs */
    bool stale; /* fill outputs with numbers instead of the pattern that marks unwritten elements */
    const char
        *guest; /* a guest's exchange folder: the draw waits for oracle_hand(); NULL: buffers */
};

enum { MAX_WORST = 16 };

struct worst_element {
    int64_t index[MAX_DIMS];
    int dims;
    double expected, got;
};

/* How wrong values relate to the right ones; the names are in oracle/pattern.py. */
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
    /* a trivial answer, such as "zeros", that passed this draw and all before it; or NULL */
    const char *trivial;
    const char *way;  /* "whole", "in 55 parts of 75 rows", "whole, float64 on the host" */
    const char *hash; /* hash of a guest's outputs as copied; NULL: not a guest */
};

/* Samples of one baseline or candidate, in microseconds. */
struct time_samples {
    double *cold_us, *warm_us;
    size_t cold_count, warm_count;
    double wall_us;    /* one replay by the host's clock; 0: not measured */
    int other_outputs; /* cold replays whose outputs differ from the first's */
};

bool oracle_start(const struct oracle_config *config, struct oracle **out, struct error *err);
/* out->description is a new reference. */
/* The folder that holds its buffers and nothing else; borrowed. Removed with its process. */
const char *oracle_folder(const struct oracle *o);
/* Creates a folder through which it exchanges tensors with a guest, where a confined oracle can
 * write. The caller removes it. */
bool oracle_exchange(const struct oracle *o, struct arena *a, const char **out, struct error *err);
bool oracle_load(struct oracle *o, const struct oracle_load *load, struct arena *a,
                 struct task *out, struct error *err);
/* *buffers: where the tensors are; for a guest, what its ModelNew is instantiated from. */
bool oracle_draw(struct oracle *o, const struct oracle_draw *draw, json_t **buffers,
                 struct error *err);
/* For a guest whose module is instantiated: its inputs in files, and how to call it. */
bool oracle_hand(struct oracle *o, json_t **binding, struct error *err);
bool oracle_compare(struct oracle *o, struct arena *a, struct comparison_set *out,
                    struct error *err);
/* Which trivial answers would pass this task: "zeros, mean"; "" when none. */
bool oracle_trivial(struct oracle *o, struct arena *a, const char **passes, struct error *err);
/* `turn` names the measurement. In a new turn, baselines other than eager may be reused from an
 * earlier turn while eager's own time is unchanged. budget_ms 0: no budget. */
struct oracle_timing {
    const char *name, *turn;
    int cold, warm, budget_ms;
};
bool oracle_baseline(struct oracle *o, const struct oracle_timing *timing, struct arena *a,
                     struct time_samples *out, struct error *err);
/* The GPU's clocks and state in nvidia-smi's format; "" if unknown. */
const char *oracle_clocks(struct oracle *o, struct arena *a); /* NULL is fine */
/* The Python that is used if the user asked for `asked` (may be NULL). */
const char *oracle_python(const char *asked, struct arena *a);
/* Waits until its process has opened the device ("cuda:0"). If the driver does not start in
 * confinement, an unconfined process replaces it; any other failure is reported by the load. */
void oracle_ready(struct oracle *o, const char *device);
bool oracle_is_confined(const struct oracle *o);
/* Releases all device memory until the next draw, so that others can use the GPU. */
void oracle_rest(struct oracle *o); /* NULL is fine */
/* It ended because the server that lent it ended: start another. */
bool oracle_lost(const struct oracle *o);
void oracle_stop(struct oracle *o); /* NULL is fine; a borrowed one is returned if it still works */

#endif
