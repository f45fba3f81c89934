/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - the loop: from a PyTorch module to the best verified kernel.
 *
 * All policy is here and in loop.c: when to repair, when to read the
 * profiler, from which kernel the next step starts, when to stop. The store
 * is written by the loop alone; whoever wants to see a run live hands in
 * a `struct progress`.
 *
 *     loop_run()     a new run, or with resume_id the rest of an old one
 *     loop_eval()    one candidate, one verdict
 *     loop_export()  the best kernel of a run as files to use
 *     loop_verify()  whether such files still are what was judged
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
    int max_depth;           /* optimisation steps at most; -1: as many as suit whoever answers */
    int share_depth;         /* what restarts divided when the run began; 0: max_depth */
    int max_repairs;         /* per step */
    int patience;            /* a model: stop after so many depths without a gain; 0: never */
    int profile_from;        /* depth; < 0: by kernel class */
    enum advance advance;
    int width; /* candidates per step; they share the judge */
    enum search search;
    int beam, restarts; /* lines that are kept; lines that are begun */
    int parallel_calls; /* questions of one step that are asked at the same time */
    int floor_stop;     /* a model: stop within so many per cent of the floor; 0: never */
    bool memory;        /* prompts tell what the store knows of similar tasks */
    bool seed_builtin;  /* depth 0 is the built-in engineer's best kernel */
    bool fresh;         /* it begins anew, not with what it found for this task before */
    int tune;           /* combinations of the best kernel's tunables that are tried; 0: none */
    bool given;         /* `cutegen tune`: depth 0 is kernel_path, and no model is asked */
    const char *kernel_path; /* NULL: resumed, the store has it */
};

/* What happens, as it happens. Strings are borrowed for the call. */
enum event_kind {
    EVENT_TASK,    /* the task is known */
    EVENT_STAGE,   /* a stage begins: text names it */
    EVENT_ATTEMPT, /* an attempt has its verdict */
    EVENT_DEPTH,   /* a depth is reached and measured */
    EVENT_NOTE,    /* something a person should see */
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
    int depth_now, attempt_now; /* what the run is at */
    double best_us, first_us;
    int64_t tokens;
    double cost_usd;
};

struct progress {
    void (*event)(struct progress *self, const struct event *ev);
};

/* Where the runs of a suite keep what they have spent together. */
const char *suite_budget_path(struct arena *a, const char *runs_dir, const char *suite);

struct run_summary {
    const char *run_id, *run_dir, *report_path;
    bool found; /* a correct kernel exists */
    enum accepted accepted;
    const char *accepted_why; /* who checked the best kernel, or what was found */
    struct candidate best;
    struct measurement best_time, first_time;
    struct test_result best_test;
    int depths, attempts;
    int calls, unpriced; /* of the model; how many of them have no known price */
    int64_t tokens;
    double cost_usd;   /* of those that have one */
    const char *ended; /* why the loop stopped, one line */
};

/* What a run was started with: as the store keeps it, and again from there. */
json_t *run_options_json(const struct settings *s, const struct run_options *o);
bool run_options_restore(const json_t *j, struct arena *a, struct settings *s,
                         struct run_options *o, struct error *err);
/* The first depth whose question comes with a profile at the latest; o->max_depth is settled. */
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
    const char *builders;     /* likewise: who compiles for them; NULL: they do */
    struct job_needs needs;   /* of a worker that takes its tasks */
    int priority;             /* before others in the queue: higher */
    json_t *flags;            /* list of words that every `cutegen run` gets */
    const char *key_names[4]; /* variables with API keys that runs need; NULL: none */
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

/* Runs every task that has not ended, some at a time, each in a process of its own. *name is
 * there as soon as the suite is, also when false comes back: what was done is in the store. */
bool loop_suite(const struct settings *settings, const struct suite_options *options,
                struct suite_progress *progress, struct arena *a, const char **name,
                struct error *err);

/* ---- a worker (worker.c) ------------------------------------------ */

struct worker_options {
    struct job_needs has;
    int takes; /* enum job_take */
    /* That whatever it does gets, too; single judgements only know some. NULL-terminated; may be
     * NULL. */
    const char *const *own_flags, *const *own_judging;
    const char *suite; /* only tasks of that one; NULL: all */
    bool once;         /* one job, then end */
    const char *tasks; /* only tasks in that folder; "/": anywhere */
    int idle_exit_s;   /* end after so long without one; < 0: never */
    int lease_s;       /* others take its job after so long without a sign of life; 0: a minute */
    const char *key_names[4];
};

enum worker_event_kind {
    WORKER_BEGINS,
    WORKER_ENDS,
    WORKER_RETURNS, /* to be tried again */
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

/* A flag that a worker takes from the queue (work.c); the others are its own. */
bool worker_flag_allowed(const char *flag);

/* Until it is interrupted, idle too long, or one job is done; *ended: how many tasks did. */
bool loop_worker(const struct settings *settings, const struct worker_options *options,
                 struct worker_progress *progress, struct arena *a, int *ended, struct error *err);

struct eval_summary {
    struct task task;
    struct device device;
    struct build_result build;
    struct test_result test;
    struct measurement measurement;
    struct verdict verdict;            /* the one that counts: first that is not pass */
    const char *language;              /* of languages[]; NULL: a ModelNew */
    const char *run_id;                /* where `cutegen show` finds the details */
    const struct shape_result *shapes; /* each of many; verdicts and times */
    int shape_count;
    const char *accepted;   /* with settings.accept: who accepted it; NULL: not asked, or refused */
    struct profile profile; /* with settings.profile, of one that passes; text NULL: none */
};

bool loop_eval(const struct settings *settings, const char *task_path, const char *kernel_path,
               struct progress *progress, struct arena *a, struct eval_summary *out,
               struct error *err);

/* The same of the best kernel of a run (again.c). */
bool loop_eval_run(const struct settings *settings, const char *run, struct progress *progress,
                   struct arena *a, struct eval_summary *out, struct error *err);

/* Device code for an architecture into the caches, this machine's and the store's (once.c). */
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
    const char *dir;      /* NULL: export/ in the run's folder */
    const char *layout;   /* "folder" "wheel" "hf"; NULL: folder */
    bool fallback;        /* what was not judged goes to the reference */
    bool no_gradients;    /* requires_grad is an error; else the reference's gradients */
    const char *backward; /* or those of this run's kernel, a backward of the same task; or NULL */
    bool ptx;             /* also runs on other architectures, as code that was not judged */
    bool force;           /* also what was not accepted */
    bool judge;           /* device or sizes were named: judge it there first, and export that */
};
struct export_summary {
    const char *run_id; /* whose judgement it is: another one after `judge` */
    const char *dir, *module_path, *source_path, *record_path, *wheel_path;
    const char *device, *scaled; /* judged on; at reduced sizes, or NULL */
    const char *accepted;        /* "not asked" "yes" "no": the last only if forced */
    const char *left_out;        /* judged shapes that are not in it, or NULL */
    const char *code_hash;
    const char *backward_id, *backward_hash; /* of the gradients' kernel, or NULL */
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
    bool ok;                         /* no step differs */
    struct verify_summary *backward; /* of the gradients' own kernel, or NULL */
};
bool loop_verify(const struct settings *settings, const char *dir, bool device_named,
                 struct progress *progress, struct arena *a, struct verify_summary *out,
                 struct error *err);

/* The task's description, for `cutegen describe`; out->description is the whole. */
bool loop_describe(const struct settings *settings, const char *task_path, struct arena *a,
                   struct task *out, struct error *err);

/* What would be sent to a model, for `cutegen prompt`; with memory also what other runs learnt. */
struct prompt_options {
    enum stage_kind stage;
    const char *task_path, *kernel_path; /* kernel NULL: synthesizing */
    const struct verdict *verdict;       /* of the kernel; NULL: words stand for it */
    bool memory;
};
bool loop_prompt(const struct settings *settings, const struct prompt_options *options,
                 struct arena *a, struct request *out, struct error *err);

/* Set by the signal handler: 1 finish the attempt and stop, 2 stop now. */
extern volatile sig_atomic_t loop_interrupts;

#endif
