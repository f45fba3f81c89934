/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.h - the job queue in the store: jobs, workers and leases.
 *
 *     jobs_add_suite(s, suite, ...)            the tasks that have not ended; single jobs: queue.h
 *     worker_begin(s, &w, err)
 *     job_claim(s, &w, a, &job, &found, err)   a lease; job_beat() renews it
 *     job_end(s, &w, &job, &end, err)          or job_return(), to be claimed again
 *     worker_end(s, &w, err)
 *
 * Invariants
 * 1. A lease runs by the database's clock: a worker's own may be wrong.
 * 2. A worker that lost its lease changes nothing: every write names the worker and requires the
 *    lease.
 * 3. Once claimed, a job is continued only on the same kind of device, because its run compares
 *    times.
 * 4. A job's result is stored through its run, which one process at a time may write (run_take). So
 *    a job claimed twice still has one run, and its state and result change together.
 * 5. Compile jobs need no device; all others are judgements, which do.
 */
#ifndef STORE_JOBS_H
#define STORE_JOBS_H

#include "store/store.h"

enum { LEASE_MS = 60 * 1000, JOB_TRIES = 5 };

/* What a worker has, and what a job may require. "" and 0: no requirement. */
struct job_needs {
    const char *kind; /* "simt", "cuda" */
    const char *gpu;  /* the name of the GPU */
    const char *arch; /* "90"; may be NULL */
    int64_t memory_bytes;
};

/* What is to be done. "run": a task, from the module to its kernel; "eval": one candidate;
 * "measure", "profile", "export": judge the best kernel of a run again on the claiming worker's
 * device, with all baselines, with a profile, or to be shipped; "compile": compile device code for
 * the worker that judges it. */
enum job_kind {
    JOB_RUN,
    JOB_EVAL,
    JOB_MEASURE,
    JOB_PROFILE,
    JOB_EXPORT,
    JOB_COMPILE,
    JOB_KIND_COUNT
};
extern const char *const job_kind_names[JOB_KIND_COUNT];

/* Kinds of jobs that a worker claims; 0 means both. */
enum job_take { TAKE_JUDGE = 1, TAKE_COMPILE = 2, TAKE_BOTH = 3 };

struct queue_worker {
    int64_t id;
    int takes; /* enum job_take */
    struct job_needs has;
    const char *suite; /* only jobs of that one; NULL: all */
    /* Only tasks whose path begins with one of these, as written or with links resolved: absolute,
     * ending in /. NULL: any. */
    const char *folder, *real_folder;
    int lease_ms; /* how long it may be silent before others take over its job; 0: LEASE_MS */
};

struct job {
    int64_t id;
    enum job_kind kind;
    const char *suite;                  /* NULL: a single job, described by: */
    const char *path, *flags, *payload; /* path of the task; flags and other data, both JSON */
    const char *source;                 /* hash of a kernel in the store; "": none */
    const char *run;                    /* its run; "": none yet */
    int number;                         /* number of the task in its suite */
    int tries;                          /* including this one */
};

/* "task 3 of SUITE", "job 7 (eval)". */
enum { JOB_TITLE = 256 };
const char *job_title(const struct job *job, char out[JOB_TITLE]);

enum job_state { JOB_WAITING, JOB_LEASED, JOB_DONE, JOB_FAILED, JOB_STATE_COUNT };
extern const char *const job_state_names[JOB_STATE_COUNT];

struct job_end {
    /* nothing is left to do: JOB_DONE; else JOB_FAILED, until it is requested again */
    bool ended;
    const char *problem; /* why there is no result; may be NULL */
    const char *result;  /* JSON, of a single job; may be NULL */
    int64_t wall_ms;
};

bool worker_begin(struct store *s, struct queue_worker *w, struct error *err);
bool worker_end(struct store *s, const struct queue_worker *w, struct error *err);

/* Adds jobs for the suite's tasks that have not ended; failed ones wait again. */
bool jobs_add_suite(struct store *s, const char *suite, const struct job_needs *needs, int priority,
                    struct error *err);
bool job_claim(struct store *s, const struct queue_worker *w, struct arena *a, struct job *out,
               bool *found, struct error *err);
/* Also renews the worker's own heartbeat; `job` may be NULL. */
bool job_beat(struct store *s, const struct queue_worker *w, const struct job *job, bool *mine,
              struct error *err);
bool job_end(struct store *s, const struct queue_worker *w, const struct job *job,
             const struct job_end *end, struct error *err);
/* Returns a job, to be claimed again after a while; `counts`: this counts as a try. After the last
 * try it fails. */
bool job_return(struct store *s, const struct queue_worker *w, const struct job *job, bool counts,
                int after_ms, const char *problem, struct error *err);

/* A waiting task in a folder that this worker does not serve. NULL: none. */
bool jobs_elsewhere(struct store *s, const struct queue_worker *w, struct arena *a,
                    const char **path, struct error *err);

/* Waits until jobs have changed, at most `ms`. False: an error. */
bool jobs_wait(struct store *s, int ms, struct error *err);

struct job_counts {
    int64_t of[JOB_STATE_COUNT];
};
/* `suite` NULL: all. */
bool jobs_count(struct store *s, const char *suite, struct job_counts *out, struct error *err);

/* Recent activity by the database's clock; costs by the clocks of the machines that spent them. */
struct job_rates {
    int64_t done_10min, done_hour, failed_hour;
    int64_t calls_day;
    double cost_day_usd;
};
bool jobs_rates(struct store *s, struct job_rates *out, struct error *err);

struct worker_info {
    int64_t id;
    const char *host, *kind, *gpu;
    int pid;
    const char *job, *suite, *task; /* its job and that job's kind; NULL: idle */
    int64_t seen_ms;                /* time since its last heartbeat */
    int64_t busy_ms;                /* time since it claimed the job */
    int64_t jobs;                   /* jobs it has ended */
};
/* How many recently seen workers take compile jobs. */
bool workers_who_compile(struct store *s, int64_t *count, struct error *err);
/* Recently seen workers. */
bool workers_list(struct store *s, struct arena *a, struct worker_info **out, size_t *count,
                  struct error *err);

#endif
