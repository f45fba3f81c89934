/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - cutegen's database: every run, attempt, call and verdict.
 *
 * One SQLite file, RUNS_DIR/store.db, for many runs and many processes, and
 * a folder RUNS_DIR/RUN_ID per run for what is made from it (report.html,
 * exports). A `struct run` is the right to write one run: it holds the lock
 * of that run's folder, so a run is never driven twice at once.
 *
 *     store_open(dir, STORE_WRITE, &s, err)
 *     run_create(s, &spec, &run, err)        or run_take(s, id, &run, err) to resume
 *       run_call_add(run, ...)               as soon as a reply arrives, because it was paid for
 *       run_attempt_begin(run, ...)          before it is built
 *       run_attempt_end(run, ...)            before the next begins
 *       run_accept_add(run, ...)             for the best, if acceptance was asked for
 *     run_end(run, RUN_DONE, "...", err)
 *     run_release(run); store_close(s);      also after errors; NULL is fine
 *
 * Invariants
 * 1. Each function that writes is one transaction: if it returns true the data is in the file,
 *    synced; if false, nothing of it is.
 * 2. Texts are content-addressed: the same text is stored once.
 * 3. Within a run, attempts are numbered 1, 2, 3, ...; one begins only when
 *    all before it have ended.
 * 4. A full disk, a read-only folder, a damaged or a newer file is a
 *    struct error with a hint; the file stays as it was.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/error.h"
#include "store/record.h"

struct store;
struct run;

/* STORE_WRITE creates the folder and the file; STORE_READ requires them, and can read a read-only
 * folder. STORE_UPGRADE also upgrades older tables on a server, which the others refuse; a file is
 * copied to store.db.vN and upgraded by any of them. */
enum store_mode { STORE_WRITE, STORE_READ, STORE_UPGRADE };
int store_version(void); /* version of the tables that this program creates */

/* Could a store be opened here for writing? Leaves nothing behind, so it can be checked first. */
bool store_possible(const char *runs_dir, struct error *err);
/* `url` NULL or "": the file RUNS_DIR/store.db. Else a PostgreSQL server, postgres://...; the
 * folder then holds only what is made from runs here. */
bool store_open(const char *runs_dir, const char *url, enum store_mode mode, struct store **out,
                struct error *err);
void store_close(struct store *s);
const char *store_dir(const struct store *s); /* absolute */

/* ---- writing ------------------------------------------------------------ */

struct run_spec {
    const struct task *task; /* all borrowed */
    const struct device *device;
    const char *model; /* "builtin", "openai:..." */
    const char *suite; /* NULL: none */
    int64_t job;       /* the queue job that this run belongs to (queue.h); 0: none */
    /* The report interprets "command": ["cutegen", "run", ...], "model", "device" and
     * "profile_depth"; the rest is shown verbatim. May be NULL. */
    const json_t *options, *environment;
};

/* Gives the run its id (DATE-TASK-N), its folder and its lock. */
bool run_create(struct store *s, const struct run_spec *spec, struct run **out, struct error *err);
/* Resumes a run, whatever its state: it is `running` from here on. Fails (ERROR_USE) while another
 * process drives it. */
bool run_take(struct store *s, const char *id, struct run **out, struct error *err);
/* Deletes the attempts of an interrupted judgement, which is repeated in the same run. */
bool run_start_over(struct run *r, struct error *err);
void run_release(struct run *r);
/* Is a process driving that run? */
bool store_run_driven(struct store *s, const char *id);

const char *run_id(const struct run *r);
const char *run_dir(const struct run *r); /* absolute, exists */

bool run_set_options(struct run *r, const json_t *options, struct error *err);

/*
 * A model call (call.c). `slot` distinguishes parallel calls for the same attempt: 0, 1, ...
 * run_call_add() stores one that is over. One that can cost something is stored before it is sent,
 * at its upper bound (tokens and cost of `bound`), and ends with its reply:
 *
 *     run_call_begin(...)     then run_call_raise() if it is sent again and may cost more
 *     run_call_hold(...)      a descriptor for the process that makes the request; it lives while
 *                             that is open. -1: not known
 *     run_reply_keep(...)     as soon as the reply is whole; from any thread
 *     run_call_end(...)
 *
 * The process that makes the request outlives the run's. It has no struct run and no right to the
 * run, only to that call: store_call_keep(), store_call_beat(), store_call_end().
 *
 * After run_take(), run_calls_settle() handles calls in flight when the run was killed: a reply
 * that arrived is stored; one that may still arrive is waited for; the others get the finish reason
 * CALL_KILLED and keep their upper bound.
 */
#define CALL_IN_FLIGHT "in flight"
#define CALL_KILLED    "killed"
enum { CALL_BEAT_MS = 15 * 1000, CALL_SILENT_MS = 6 * CALL_BEAT_MS };
bool run_call_add(struct run *r, int attempt, int slot, const struct request *req,
                  const struct reply *reply, struct error *err);
bool run_call_begin(struct run *r, int attempt, int slot, const struct request *req,
                    const struct reply *bound, int64_t *call, struct error *err);
bool run_call_raise(struct run *r, int64_t call, const struct reply *bound, struct error *err);
int run_call_hold(const struct run *r, int64_t call);
void run_reply_keep(const struct run *r, int64_t call, const struct reply *reply);
bool run_call_end(struct run *r, int64_t call, const struct reply *reply, struct error *err);

/* Identifies a call of another process's run. `dir` is the run's folder on this machine. */
struct call_place {
    const char *dir, *run;
    int64_t call;
};
void store_call_keep(const struct call_place *at, const struct reply *reply);
/* A heartbeat: changes a value that waiters watch. For stores shared by machines; on one machine
 * the hold is enough. */
bool store_call_beat(struct store *s, const struct call_place *at, int64_t elapsed_ms,
                     struct error *err);
/* Also ends a call that was given up, unless it was asked again. */
bool store_call_end(struct store *s, const struct call_place *at, const struct reply *reply,
                    struct error *err);
/* removes hold and reply files, once the store has the reply */
void store_call_forget(const struct call_place *at);
/* Stores replies of that run that are in this machine's folder but not yet in the store. */
bool store_replies_collect(struct store *s, const char *run, struct error *err);

struct settle_how {
    int silent_ms;        /* given up after this long without a heartbeat; 0: CALL_SILENT_MS */
    bool (*stop)(void *); /* called a few times a second; true ends the wait. May be NULL */
    void *stop_ctx;
    int count, killed; /* out: calls in flight at first; calls whose reply is lost */
};
/* False with ERROR_INTERRUPTED: stop() returned true. */
bool run_calls_settle(struct run *r, struct settle_how *how, struct error *err);

/* `parent` is the attempt this one was made from, 0 for none. An interrupted attempt begins again
 * with the same number, and its rows are replaced. */
bool run_attempt_begin(struct run *r, const struct candidate *c, enum stage_kind stage, int parent,
                       struct error *err);
bool run_attempt_end(struct run *r, int attempt, const struct attempt_outcome *outcome,
                     struct error *err);
/* The final acceptance of an attempt that passed; a later one replaces an earlier one. */
bool run_accept_add(struct run *r, int attempt, const struct acceptance *what, struct error *err);
/* The last measurement of an attempt, with more baselines; replaces the first. */
bool run_measured_again(struct run *r, int attempt, const struct measurement *m, struct error *err);
bool run_profile_add(struct run *r, int attempt, const struct profile *p, struct error *err);
/* Logs an event other than attempts and calls. `data` may be NULL. */
bool run_event_add(struct run *r, const char *kind, const json_t *data, struct error *err);
bool run_end(struct run *r, enum run_state state, const char *reason, struct error *err);

/* ---- reading ------------------------------------------------------------ */

/* "last", a complete id, or a unique prefix of one. */
bool store_run_find(struct store *s, const char *name, struct arena *a, const char **id,
                    struct error *err);
/* Newest first, at most `most`; `suite` NULL: of all suites. *total: how many there are. */
bool store_run_newest(struct store *s, const char *suite, int64_t most, struct arena *a,
                      struct run_info **out, size_t *count, int64_t *total, struct error *err);
/* All of them. */
bool store_run_list(struct store *s, const char *suite, struct arena *a, struct run_info **out,
                    size_t *count, struct error *err);
bool store_run_history(struct store *s, const char *id, struct arena *a, struct run_history *out,
                       struct error *err);
void run_history_release(struct run_history *h); /* fine on a zeroed one */

/* The fastest kernel that other runs of the same task, sizes, device and model have found, its
 * steps (candidate.steps) and the run that did; source->data is NULL when there is none. */
bool run_known_best(struct run *r, struct arena *a, struct text *source, const char **steps,
                    const char **by, struct error *err);

/* ---- lessons of other runs (lesson.c) -------------------------------------- */

enum { LESSONS_MAX = 8 };
struct lesson_query {
    const char *class, *device, *models; /* as in tasks and devices; models "" on a GPU */
    const char *target;                  /* the language of their kernels */
    const char *not_run;                 /* the run that asks; "" for none */
};
/* For a gain: time before and after. For a failure: the judge's reason, and how often. */
struct lesson {
    const char *task, *run, *change, *verdict, *why;
    double before_us, after_us;
    bool modelled;
    int times;
};
struct lessons {
    /* sorted: largest gain, most frequent failure first */
    struct lesson gains[LESSONS_MAX], failures[LESSONS_MAX];
    size_t gain_count, failure_count;
    struct lesson best; /* nearest to its floor: before_us is the floor, after_us its time */
    bool has_best;
};
/* Uses only attempts that ended with a verdict. */
bool store_lessons(struct store *s, const struct lesson_query *want, struct arena *a,
                   struct lessons *out, struct error *err);

/* ---- suites (suite.c) ---------------------------------------------------- */

/* Gives the suite its name (DATE-suite-STEM-N) and its folder. Paths are absolute. */
bool suite_create(struct store *s, const char *source, const char *const *paths, size_t count,
                  const json_t *flags, struct arena *a, const char **name, struct error *err);
/* "last", a complete name, or a unique prefix of one. */
bool suite_find(struct store *s, const char *name, struct arena *a, const char **found,
                struct error *err);
bool suite_read(struct store *s, const char *name, struct arena *a, struct suite_record *out,
                struct error *err);
/* The same with one task only: out->tasks[0]. */
bool suite_read_task(struct store *s, const char *name, int number, struct arena *a,
                     struct suite_record *out, struct error *err);
/* Stores how a task ended; wall_ms is added to the time it took earlier. */
bool suite_task_set(struct store *s, const char *name, size_t number, bool ended,
                    const char *problem, int64_t wall_ms, struct error *err);
/* Counts a restart because the machine failed. */
bool suite_task_retry(struct store *s, const char *name, size_t number, struct error *err);
/* The right to drive a suite, until the descriptor is closed. ERROR_USE while another has it. */
bool suite_lock(struct store *s, const char *name, int *fd, struct error *err);

/* The budget of a suite as a shared text (budget.c). NULL: the store is local, so a file in the
 * suite's folder is used. `owner` names the task that spends. Freed with the arena. */
struct shared_text;
const struct shared_text *suite_budget(struct store *s, const char *suite, const char *owner,
                                       struct arena *a);

/* Kernels compiled on any machine (kernels.c), as long as the store is open. Compiled by this
 * machine; by workers that take compile jobs, while there are any; or by this machine for others,
 * offering what it has cached. NULL: the store is local, so this machine's cache is enough. */
enum compiled_by { COMPILED_HERE, COMPILED_BY_QUEUE, COMPILED_FOR_QUEUE };
struct shared_files;
const struct shared_files *store_kernels(struct store *s, enum compiled_by who, struct arena *a);
/* Is there a kernel with that key? */
bool store_has_kernel(struct store *s, const char *key, bool *has, struct error *err);

/* ---- texts -------------------------------------------------------------- */

bool blob_put(struct store *s, struct text data, char sha256[65], struct error *err);
bool blob_get(struct store *s, const char *sha256, struct arena *a, struct text *out,
              struct error *err);

#endif
