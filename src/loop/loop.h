/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - the loop: from a PyTorch module to the best verified kernel.
 *
 * All policy is here and in loop.c: when to repair, when to read the
 * profiler, from which kernel the next step starts, when to stop. Only the loop writes the store; a
 * caller that wants to follow a run passes a `struct progress`.
 *
 *     loop_run()     a new run, or with resume_id the rest of an earlier one
 *     loop_eval()    one candidate, one verdict
 *     loop_export()  the best kernel of a run as files to use
 *     loop_verify()  checks that such files are still what was judged
 */
#ifndef LOOP_LOOP_H
#define LOOP_LOOP_H

#include "base/error.h"
#include "model.h"
#include "stage/settings.h"
#include "store/jobs.h"
#include "store/record.h"

#include <signal.h>

enum advance { ADVANCE_BEST, ADVANCE_LAST };
enum search { SEARCH_REFINE, SEARCH_BEAM, SEARCH_RESTARTS };

struct run_options {
    const char *task_path;   /* NULL with resume_id */
    const char *resume_id;   /* NULL: a new run */
    const char *const *said; /* with resume_id: the keys that were given as flags; may be NULL */
    const char *suite;       /* the suite it belongs to and whose budget it shares; NULL: none */
    int max_depth;           /* most optimisation steps; -1: the default of the model in use */
    /* the depth that restarts shared out when the run began; 0: max_depth */
    int share_depth;
    int max_repairs;  /* per step */
    int patience;     /* a model: stop after this many depths without a gain; 0: never */
    int profile_from; /* depth; < 0: by kernel class */
    enum advance advance;
    int width; /* candidates per step, judged one after another */
    enum search search;
    int beam, restarts;      /* beam: kernels kept; restarts: searches begun */
    int parallel_calls;      /* questions of one step asked in parallel */
    int floor_stop;          /* a model: stop within this many per cent of the floor; 0: never */
    bool memory;             /* prompts tell what the store knows of similar tasks */
    bool seed_builtin;       /* depth 0 is the built-in engineer's best kernel */
    bool fresh;              /* it ignores what it found for this task in earlier runs */
    int tune;                /* combinations of the best kernel's tunables to try; 0: none */
    bool given;              /* `cutegen tune`: depth 0 is kernel_path, and no model is asked */
    const char *kernel_path; /* NULL: resumed, so the store has it */
};

/* Events of a run, sent as they happen. Strings are borrowed for the call. */
enum event_kind {
    EVENT_TASK,    /* the task is known */
    EVENT_STAGE,   /* a stage begins: text names it */
    EVENT_ATTEMPT, /* an attempt has its verdict */
    EVENT_DEPTH,   /* a depth is reached and measured */
    EVENT_NOTE,    /* a message for the user */
    EVENT_END,
};

struct event {
    enum event_kind kind;
    const char *run_id;
    const char *text;
    const struct task *task;
    const struct device *device;
    const struct candidate *candidate;
    const struct verdict *verdict;
    const struct measurement *measurement;
    int build_ms;
    int depth_now, attempt_now; /* where the run is */
    double best_us, first_us;
    int64_t tokens;
    double cost_usd;
};

struct progress {
    void (*event)(struct progress *self, const struct event *ev);
};

/* The file in which the runs of a suite add up what they have spent. */
const char *suite_budget_path(struct arena *a, const char *runs_dir, const char *suite);

struct run_summary {
    const char *run_id, *run_dir, *report_path;
    bool found; /* a correct kernel exists */
    enum accepted accepted;
    const char *accepted_why; /* which tools checked the best kernel, or what they found */
    struct candidate best;
    struct measurement best_time, first_time;
    struct test_result best_test;
    int depths, attempts;
    int calls, unpriced; /* model calls; how many of them have no known price */
    int64_t tokens;
    double cost_usd;   /* of the calls with a known price */
    const char *ended; /* why the loop stopped, one line */
};

/* A run's options as JSON for the store, and read back from it. */
json_t *run_options_json(const struct settings *s, const struct run_options *o);
bool run_options_restore(const json_t *j, struct arena *a, struct settings *s,
                         struct run_options *o, struct error *err);
/* The depth from which questions include a profile at the latest; o->max_depth must be final. */
int run_profile_depth(const struct settings *s, const struct run_options *o, enum kernel_class of);

bool loop_run(const struct settings *settings, const struct run_options *options,
              struct progress *progress, struct arena *a, struct run_summary *out,
              struct error *err);

/* ---- many tasks (suite.c) ---------------------------------------- */

struct suite_options {
    const char *source;       /* a folder or a list of tasks; NULL with resume */
    const char *resume;       /* name of a suite; NULL: a new one */
    int jobs;                 /* runs at a time */
    const char *workers;      /* "local:N", "slurm:N,...", "none"; NULL: no queue, runs here */
    const char *builders;     /* the same for who compiles for them; NULL: the workers themselves */
    struct job_needs needs;   /* what a worker must have to take its tasks */
    int priority;             /* higher goes first in the queue */
    json_t *flags;            /* list of arguments that every `cutegen run` gets */
    const char *key_names[4]; /* environment variables with API keys that runs need; NULL: none */
};

enum suite_event_kind { SUITE_BEGINS, SUITE_TASK_BEGINS, SUITE_TASK_ENDS };

struct suite_event {
    enum suite_event_kind kind;
    const char *suite;
    const struct suite_task *task; /* NULL when the suite begins */
    size_t done, running, count;
};

struct suite_progress {
    void (*event)(struct suite_progress *self, const struct suite_event *ev);
};

/* Runs every task that has not ended, `jobs` at a time, each in a process of its own. *name is set
 * as soon as the suite exists, even if this returns false: finished work is in the store. */
bool loop_suite(const struct settings *settings, const struct suite_options *options,
                struct suite_progress *progress, struct arena *a, const char **name,
                struct error *err);

/* ---- a worker (worker.c) ------------------------------------------ */

struct worker_options {
    struct job_needs has;
    int takes; /* enum job_take */
    /* The worker's own flags for every job; single judgements accept only some. NULL-terminated;
     * may be NULL. */
    const char *const *own_flags, *const *own_judging;
    const char *suite; /* only tasks of that one; NULL: all */
    bool once;         /* end after one job */
    const char *tasks; /* only tasks below that folder; "/": any */
    int idle_exit_s;   /* end after this long without a job; < 0: never */
    /* others take over its job after this long without a heartbeat; 0: a minute */
    int lease_s;
    const char *key_names[4];
};

enum worker_event_kind {
    WORKER_BEGINS,
    WORKER_ENDS,
    WORKER_RETURNS, /* the job went back to the queue, to be tried again */
    WORKER_LOST,    /* the lease: another worker has the job */
    WORKER_WAITS,   /* for the store to answer */
};

struct worker_event {
    enum worker_event_kind kind;
    const struct job *job; /* may be NULL */
    const char *text;
};

struct worker_progress {
    void (*event)(struct worker_progress *self, const struct worker_event *ev);
};

/* May a worker accept this flag from the queue (work.c)? It sets all others itself. */
bool worker_flag_allowed(const char *flag);

/* Runs until it is interrupted, idle too long, or has done its one job; *ended: tasks that
 * ended. */
bool loop_worker(const struct settings *settings, const struct worker_options *options,
                 struct worker_progress *progress, struct arena *a, int *ended, struct error *err);

struct eval_summary {
    struct task task;
    struct device device;
    struct build_result build;
    struct test_result test;
    struct measurement measurement;
    struct verdict verdict;            /* the overall verdict: the first that is not pass */
    const char *language;              /* of languages[]; NULL: a ModelNew */
    const char *run_id;                /* where `cutegen show` finds the details */
    const struct shape_result *shapes; /* verdicts and times at each of several shapes */
    int shape_count;
    /* with settings.accept: which tools accepted it; NULL: not asked, or refused */
    const char *accepted;
    struct profile profile; /* with settings.profile, if it passes; text NULL: none */
};

bool loop_eval(const struct settings *settings, const char *task_path, const char *kernel_path,
               struct progress *progress, struct arena *a, struct eval_summary *out,
               struct error *err);

/* The same for the best kernel of a run (again.c). */
bool loop_eval_run(const struct settings *settings, const char *run, struct progress *progress,
                   struct arena *a, struct eval_summary *out, struct error *err);

/* Compiles device code for an architecture into the caches of this machine and the store
 * (once.c). */
struct compile_request {
    const char *file, *arch;
    const char *const *kernels; /* instantiations, NULL-terminated: "gemm<128, 128>" */
};
struct compile_summary {
    struct verdict verdict;
    int build_ms;
    bool cached;
};
bool loop_compile(const struct settings *settings, const struct compile_request *req,
                  struct arena *a, struct compile_summary *out, struct error *err);

/* Writes the exported files of a run's best kernel (export.c). */
struct export_options {
    const char *dir;    /* NULL: export/ in the run's folder */
    const char *layout; /* "folder" "wheel" "hf"; NULL: folder */
    bool fallback;      /* fall back to the reference for inputs that were not judged */
    /* requires_grad is an error; otherwise the reference's gradients are used */
    bool no_gradients;
    /* or the gradients of this run's kernel, a backward of the same task; or NULL */
    const char *backward;
    bool ptx;   /* also include PTX for other architectures, which was not judged */
    bool force; /* also export a kernel that was not accepted */
    /* device or sizes were given: judge it there first and export that result */
    bool judge;
};
struct export_summary {
    const char *run_id; /* the run that judged it: a new one after `judge` */
    const char *dir, *module_path, *source_path, *record_path, *wheel_path;
    const char *device, *scaled; /* judged on; at reduced sizes, or NULL */
    const char *accepted;        /* "not asked" "yes" "no"; "no" only if forced */
    const char *left_out;        /* judged shapes that are not in it, or NULL */
    const char *code_hash;
    const char *backward_id, *backward_hash; /* run and hash of the gradients' kernel, or NULL */
};
bool loop_export(const struct settings *settings, const char *run_id,
                 const struct export_options *options, struct progress *progress, struct arena *a,
                 struct export_summary *out, struct error *err);

/* Judges an exported folder again, on this machine (verify.c). */
enum verify_kind { VERIFY_SAME, VERIFY_DIFFERS, VERIFY_NOT_HERE };
struct verify_step {
    const char *name; /* "files" "source" "launches" "store" "judge" */
    enum verify_kind kind;
    const char *text;
};
enum { VERIFY_STEPS = 16 };
struct verify_summary {
    const char *run_id, *code_hash;
    struct verify_step steps[VERIFY_STEPS];
    int count;
    bool ok;                         /* no step differs, and this machine checked the code */
    bool unknown;                    /* no step differs, but nothing here vouches for the code */
    struct verify_summary *backward; /* the same for the gradients' kernel, or NULL */
};
bool loop_verify(const struct settings *settings, const char *dir, bool device_named,
                 struct progress *progress, struct arena *a, struct verify_summary *out,
                 struct error *err);

/* The task's description, for `cutegen describe`; out->description is the complete JSON. */
bool loop_describe(const struct settings *settings, const char *task_path, struct arena *a,
                   struct task *out, struct error *err);

/* What would be sent to a model, for `cutegen prompt`; with memory also what other runs
 * learnt. */
struct prompt_options {
    enum stage_kind stage;
    const char *task_path, *kernel_path; /* kernel NULL: synthesizing */
    /* the kernel's verdict; NULL: a placeholder text is used */
    const struct verdict *verdict;
    bool memory;
};
bool loop_prompt(const struct settings *settings, const struct prompt_options *options,
                 struct arena *a, struct request *out, struct error *err);

/* Set by the signal handler: 1 finish the attempt and stop, 2 stop now. */
extern volatile sig_atomic_t loop_interrupts;

#endif
