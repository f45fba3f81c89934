/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner_client.h - client of the process that runs one candidate.
 *
 *     if (!runner_start(&config, &r, err)) ...            the machine is broken
 *     if (!runner_load(r, &build, arena, &said, err)) ... likewise
 *     if (said.verdict != VERDICT_PASS) ...               the candidate is bad
 *     ... runner_bind, runner_run, runner_time ...
 *     runner_stop(r);                                     also after errors
 *
 * A runner is used for one candidate and never again. No answer in time is
 * VERDICT_HANG, a runner that ended is VERDICT_CRASH; after either, every
 * further call gives the same verdict. Only the types of the runner's answers are trusted: a
 * malformed answer counts as a crash of the candidate's process. Wire protocol:
 * docs/architecture.md, "Runner".
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
    /* foreign code: an empty environment, and none of its claims is trusted */
    bool guest;
    bool trusted;         /* guest: may run unconfined where the driver does not start confined */
    const char *module;   /* the file that it will load; NULL: any (unconfined) */
    const char *buffers;  /* simt: the folder of its buffers */
    const char *recorder; /* guest: a library the driver loads first; NULL: none */
    const char *record;   /* where the recorder writes launches: a FIFO in the exchange folder */
    /* guest: it compiles: it may start programs, and no buffers are bound */
    bool building;
    const char *extensions;       /* guest: the folder with what it compiled; NULL: none */
    const char *exchange;         /* guest: the folder of its inputs and outputs */
    uint64_t memory_bytes;        /* guest: memory limit */
    uint64_t file_bytes;          /* guest: largest file it may write */
    const char *check;            /* simt: "off" "memory" "full"; NULL: "full" */
    bool counters;                /* simt: count what a profiler would show */
    bool profile;                 /* simt: count by source line as well */
    int sample;                   /* simt: blocks to run of each grid; 0: all */
    uint64_t warp_seed;           /* simt: order of warps; 0: as numbered */
    int threads;                  /* simt; 0: one per core */
    int load_ms, run_ms, time_ms; /* deadlines; 0: 60 s, 60 s, 300 s */
    int budget_ms;                /* for one timing, beyond the minimum of samples; 0: none */
    /* CUDA: provides a process with a context; NULL: start a new one */
    const struct child_source *source;
};

struct runner_answer {
    enum verdict_kind verdict; /* PASS, BAD_LAUNCH, CRASH, HANG, OUT_OF_MEMORY; a guest also gives
                                  REFUSED, COMPILE_ERROR, WRONG_VALUES */
    const char *text;          /* what happened; "" on PASS */
    int op;                    /* index into the launch list, -1: unknown */
    bool stopped;              /* simt ended a kernel early: outputs are incomplete */
    json_t *findings;          /* new reference to a list, or NULL */
    json_t *counters;          /* new reference to a list, or NULL */
    const char *output_hash;   /* hash of all outputs if asked for; else NULL */
    int wall_ms;
};

bool runner_start(const struct runner_config *config, struct runner **out, struct error *err);
bool runner_load(struct runner *r, const struct build_result *build, struct arena *a,
                 struct runner_answer *out, struct error *err);
bool runner_bind(struct runner *r, json_t *buffers, struct arena *a, struct runner_answer *out,
                 struct error *err);
/* A guest instantiates its ModelNew (oracle_draw) before its inputs exist (oracle_hand). */
bool runner_make(struct runner *r, json_t *binding, struct arena *a, struct runner_answer *out,
                 struct error *err);
bool runner_take(struct runner *r, json_t *binding, struct arena *a, struct runner_answer *out,
                 struct error *err);
/* For a guest that builds: a call with inputs it makes up, to trigger late compilation. */
bool runner_rehearse(struct runner *r, struct arena *a, struct runner_answer *out,
                     struct error *err);
/* A guest only calls its module, while its launches are recorded. */
bool runner_witness(struct runner *r, struct arena *a, struct runner_answer *out,
                    struct error *err);
/* A guest failed after trying to start programs: a run with `building` may help. */
bool runner_wants_build(const struct runner *r);
/* False: the driver does not start in confinement, so the process runs unconfined. */
bool runner_is_confined(const struct runner *r);
bool runner_run(struct runner *r, bool hash_outputs, struct arena *a, struct runner_answer *out,
                struct error *err);
bool runner_time(struct runner *r, int cold, int warm, struct arena *a, struct runner_answer *out,
                 struct time_samples *samples, struct error *err);
/* Times a guest's calls with our own clock: microseconds per call, from two bursts; 0 if
 * unknown. */
bool runner_burst(struct runner *r, double about_us, struct arena *a, struct runner_answer *out,
                  double *call_us, bool *captured, struct error *err);
/* Lets the process end by itself, so that a wrapper can finish its work. */
void runner_end(struct runner *r);
/* Releases the answer's references and empties it. */
void runner_answer_release(struct runner_answer *said);
void runner_stop(struct runner *r); /* NULL is fine */

#endif
