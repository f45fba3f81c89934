/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - a run as read back from the store.
 *
 * A run_history is everything the loop needs to continue after kill -9, and everything a report
 * shows: the task, every attempt in order with its source and outcome, every model call with its
 * prompt and its reply. Texts are in the arena it was read into; the history owns the json_t's, so
 * call run_history_release() when done.
 */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include "model.h"

enum run_state { RUN_RUNNING, RUN_DONE, RUN_STOPPED, RUN_FAILED, RUN_STATE_COUNT };
extern const char *const run_state_names[RUN_STATE_COUNT]; /* "running" "done" "stopped" "failed" */

/* Whether the best kernel passed the final acceptance (--accept). */
enum accepted { ACCEPTED_NOT_ASKED, ACCEPTED_YES, ACCEPTED_NO, ACCEPTED_COUNT };
extern const char *const accepted_names[ACCEPTED_COUNT]; /* "not asked" "yes" "no" */

/* One line of `cutegen runs`. */
struct run_info {
    const char *id; /* 2026-11-15-swish-1 */
    const char *task, *model, *device;
    const char *suite;            /* NULL: a run of its own */
    enum run_state state;         /* running, but not `alive`: it was killed and can be resumed */
    bool alive;                   /* a process is driving it now */
    const char *reason;           /* why it ended; "" while it runs */
    int64_t started_ms, ended_ms; /* Unix time; ended 0: not yet */
    int attempts, calls;
    int best_depth;           /* -1: no correct kernel yet */
    int best_attempt;         /* 0: none; a kernel that was not accepted only if all were refused */
    double first_us, best_us; /* depth 0 and the best; 0: not measured */
    enum accepted accepted;   /* of best_attempt */
    const char *accepted_why; /* which tools checked it, or what they found; "" if not asked */
    double eager_us;          /* baseline "eager" of the best; 0: not measured */
    bool modelled;
    bool unvalidated;  /* modelled for a GPU on which no kernel was ever measured */
    int64_t tokens;    /* prompt and output, where known */
    const char *owner; /* who began it, or its suite; "" in a run of an older version */
    double cost_usd;   /* sum of known costs; < 0: there were calls, but none has a known price */
};

/* The step that decided an attempt's verdict, which is its last one. */
enum attempt_step { STEP_PROPOSE, STEP_BUILD, STEP_TEST, STEP_MEASURE, STEP_COUNT };
extern const char *const attempt_step_names[STEP_COUNT]; /* "propose" "build" "test" "measure" */

/* The outcome of a candidate. Parts that were not reached are NULL. */
struct attempt_outcome {
    enum attempt_step step;
    struct verdict verdict;
    const struct build_result *build; /* its paths are temporary and not stored */
    const struct test_result *test;
    const struct measurement *measurement; /* when read back, steps before `step` have passed */
    bool kept;                             /* the loop continues from this kernel */
    /* the shapes of a task with many, in the order they were judged */
    const struct shape_result *shapes;
    int shape_count; /* 0: one shape, the task's */
};

struct attempt_record {
    struct candidate candidate; /* attempt: its number, from 1 without gaps */
    /* the stage that proposed it: synthesize, repair or optimize */
    enum stage_kind stage;
    int parent;                          /* the attempt it was made from; 0: none */
    int64_t started_ms, ended_ms;        /* ended 0: interrupted; repeat it, or end it */
    struct attempt_outcome outcome;      /* only when ended */
    const struct profile *profile;       /* NULL: none was taken */
    const struct acceptance *acceptance; /* NULL: not asked */
};

struct call_record {
    enum stage_kind stage;
    int attempt; /* the attempt it was made for; if that has not begun, the reply is still unused */
    int slot;    /* number among parallel calls for that attempt */
    int64_t at_ms;
    const struct message *messages;
    size_t message_count;
    const char *prompt_hash;
    struct reply reply;
};

/* {"depth": N}: prompts have a profile from this depth on. */
#define EVENT_PROFILE_FROM "profile"

struct event_record {
    int64_t at_ms;
    const char *kind;
    json_t *data;
};

struct run_history {
    struct run_info info;
    struct task task; /* description, source and data derived from them */
    struct device device;
    json_t *options, *environment;
    struct attempt_record *attempts;
    size_t attempt_count;
    struct call_record *calls;
    size_t call_count;
    struct event_record *events;
    size_t event_count;
    json_t *keep; /* owns the json_t's above */
};

/* One task of a suite. */
struct suite_task {
    const char *path, *name; /* name: the file's stem */
    bool ended;              /* nothing is left to do */
    const char *problem;     /* why it has no result; "" none */
    int64_t wall_ms;         /* over all commands that worked on it */
    int retries;             /* restarts because the machine failed, not the task */
    const char *run;         /* its newest run; NULL: none yet */
    enum run_state state;    /* state of that run */
};

struct suite_record {
    const char *name, *source;
    int64_t started_ms;
    const char **flags; /* NULL-terminated: flags of every run */
    struct suite_task *tasks;
    size_t count;
};

#endif
