/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner_client.h - one candidate's process, seen from the orchestrator.
 *
 *     if (!runner_start(&config, &r, err)) ...            the machine is broken
 *     if (!runner_load(r, &build, arena, &said, err)) ... likewise
 *     if (said.verdict != VERDICT_PASS) ...               the candidate is bad
 *     ... runner_bind, runner_run, runner_time ...
 *     runner_stop(r);                                     also after errors
 *
 * A runner is used for one candidate and never again. No answer in time is
 * VERDICT_HANG, a runner that ended is VERDICT_CRASH; after either, every
 * further call gives the same verdict. What the runner says is not believed
 * further than its types: garbage is a crash of the candidate's process.
 * Wire protocol: docs/architecture.md, "Runner".
 */
#ifndef EVAL_RUNNER_CLIENT_H
#define EVAL_RUNNER_CLIENT_H

#include "base/error.h"
#include "eval/oracle.h"
#include "model.h"

struct runner;

struct runner_config {
    const struct device *device; /* borrowed for the runner's life */
    const char *program;         /* NULL: this installation's cutegen-runner */
    const char *const *wrapper;  /* put before the program, NULL-terminated; NULL: none */
    bool guest;                  /* foreign code: an empty environment, nothing it says believed */
    bool trusted;           /* guest: may run unconfined where the driver does not start confined */
    const char *module;     /* the file it will load; NULL: any (unconfined) */
    const char *buffers;    /* simt: the folder of its buffers */
    const char *recorder;   /* guest: a library the driver loads first; NULL: none */
    const char *record;     /* where it writes launches: a FIFO in the exchange folder */
    bool building;          /* guest: it compiles; programs may be started, nothing is bound */
    const char *extensions; /* guest: the folder of what it compiled; NULL: none */
    const char *exchange;   /* guest: the folder its inputs and outputs are in */
    uint64_t memory_bytes;  /* guest: it may use */
    uint64_t file_bytes;    /* guest: its largest file */
    const char *check;      /* simt: "off" "memory" "full"; NULL: "full" */
    bool counters;          /* simt: count what a profiler would show */
    bool profile;           /* simt: by source line as well */
    int sample;             /* simt: blocks to run of each grid; 0: all */
    uint64_t warp_seed;     /* simt: order of warps; 0: as numbered */
    int threads;            /* simt; 0: one per core */
    int load_ms, run_ms, time_ms; /* deadlines; 0: 60 s, 60 s, 300 s */
    int budget_ms;                /* of one timing, kept to beyond the least samples; 0: none */
    const struct child_source *source; /* CUDA: a process with its context made; NULL: a new one */
};

struct runner_answer {
    enum verdict_kind verdict; /* PASS, BAD_LAUNCH, CRASH, HANG, OUT_OF_MEMORY; a guest also gives
                                  REFUSED, COMPILE_ERROR, WRONG_VALUES */
    const char *text;          /* what happened; "" on PASS */
    int op;                    /* index into the launch list, -1: unknown */
    bool stopped;              /* simt ended a kernel early: outputs are incomplete */
    json_t *findings;          /* new reference to a list, or NULL */
    json_t *counters;          /* new reference to a list, or NULL */
    const char *output_hash;   /* of all outputs, when asked for; else NULL */
    int wall_ms;
};

bool runner_start(const struct runner_config *config, struct runner **out, struct error *err);
bool runner_load(struct runner *r, const struct build_result *build, struct arena *a,
                 struct runner_answer *out, struct error *err);
bool runner_bind(struct runner *r, json_t *buffers, struct arena *a, struct runner_answer *out,
                 struct error *err);
/* A guest makes its ModelNew (oracle_draw), before its inputs exist (oracle_hand). */
bool runner_make(struct runner *r, json_t *binding, struct arena *a, struct runner_answer *out,
                 struct error *err);
bool runner_take(struct runner *r, json_t *binding, struct arena *a, struct runner_answer *out,
                 struct error *err);
/* A guest that builds: a call with inputs of its own making, for what is compiled late. */
bool runner_rehearse(struct runner *r, struct arena *a, struct runner_answer *out,
                     struct error *err);
/* A guest calls its module and nothing else, for who records launches. */
bool runner_witness(struct runner *r, struct arena *a, struct runner_answer *out,
                    struct error *err);
/* A guest failed and has tried to start programs: a run with `building` may help. */
bool runner_wants_build(const struct runner *r);
/* false: its driver does not start inside the layers, and it runs without them. */
bool runner_is_confined(const struct runner *r);
bool runner_run(struct runner *r, bool hash_outputs, struct arena *a, struct runner_answer *out,
                struct error *err);
bool runner_time(struct runner *r, int cold, int warm, struct arena *a, struct runner_answer *out,
                 struct time_samples *samples, struct error *err);
/* A guest's calls by our own clock: microseconds of one, from two bursts; 0 when it cannot be told.
 */
bool runner_burst(struct runner *r, double about_us, struct arena *a, struct runner_answer *out,
                  double *call_us, bool *captured, struct error *err);
/* Lets the process end by itself, so that a wrapper finishes its work. */
void runner_end(struct runner *r);
/* Drops the answer's references; the answer is empty afterwards. */
void runner_answer_release(struct runner_answer *said);
void runner_stop(struct runner *r); /* NULL is fine */

#endif
