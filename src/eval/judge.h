/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.h - is this kernel right, and how fast is it.
 *
 * Several draws, each with a fresh secret seed, another distribution and other addresses; the
 * candidate runs before the reference exists. Order of precedence when several things are wrong
 * (evidence.c has the table):
 *
 *     bad launch, crash, hang, out of memory  >  unsafe memory, race  >
 *     guard hit  >  input modified  >  not written  >  non-finite  >
 *     wrong values  >  imprecise  >  pass
 *
 * The verdict names what to repair first; the rest is in its detail. A crash that a finding
 * explains gets the finding's verdict. false means the machine or the oracle broke; a bad kernel is
 * data.
 *
 *     struct judge_config jc = { .device = dev, .oracle = o, .task = &task };
 *     if (!judge_test(&jc, &candidate, &build, arena, &test, err)) ...
 *     if (test.verdict.kind == VERDICT_PASS)
 *         if (!judge_measure(&jc, &build, &test, arena, &measured, err)) ...
 *
 * test.counters and measured.parts are new references, or NULL.
 */
#ifndef EVAL_JUDGE_H
#define EVAL_JUDGE_H

#include "eval/oracle.h"
#include "model.h"

struct judge_config {
    const struct device *device;
    struct oracle *oracle; /* loaded with the task */
    const struct task *task;
    const char *seed;           /* hex, to repeat a test; NULL: fresh and secret */
    int draws;                  /* 0: 5 */
    const char *check;          /* simt: "off" "memory" "full"; NULL: "full" */
    int threads;                /* simt; 0: one per core */
    int run_ms;                 /* deadline of one run; 0: 60 s */
    const char *runner_program; /* NULL: this installation's */
    const char *python;         /* for a foreign candidate; NULL: looked up */
    /* where runners come from; NULL: started here */
    const struct child_source *source;
    const char *sanitizer;     /* CUDA: compute-sanitizer, to explain a failure; NULL: none */
    bool accept;               /* CUDA: run all its tools on a kernel that passed */
    const char *compiled_name; /* base name of the file as compiled; NULL: "candidate.cu" */
    const char *source_name;   /* the user's name for the file, "my.cu"; NULL: "candidate.cu" */
    /* judge_measure on CUDA */
    const char *const
        *baselines; /* "eager" "graph" "compile", NULL-terminated; NULL: eager, graph */
    int cold, warm; /* most samples; 0: 240, 90 */
    /* judge_measure: called when all is loaded and before anything runs; false: it failed */
    bool (*turn)(void *of, struct error *err);
    void *turn_of;
};

/* How far a draw's buffers are moved, derived from its seed, so that no address reveals the kind of
 * run.
 */
int judge_shift(const char *seed);
bool judge_test(const struct judge_config *config, const struct candidate *cand,
                const struct build_result *build, struct arena *a, struct test_result *out,
                struct error *err);
/* After a test that passed. On simt the time is modelled from test->counters. */
bool judge_measure(const struct judge_config *config, const struct build_result *build,
                   const struct test_result *test, struct arena *a, struct measurement *out,
                   struct error *err);

#endif
