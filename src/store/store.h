/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - the one memory of cutegen: every run, attempt, call and verdict.
 *
 * One SQLite file, RUNS_DIR/store.db, for many runs and many processes, and
 * a folder RUNS_DIR/RUN_ID per run for what is made from it (report.html,
 * exports). A `struct run` is the right to write one run: it holds the lock
 * of that run's folder, so a run is never driven twice at once.
 *
 *     store_open(dir, STORE_WRITE, &s, err)
 *     run_create(s, &spec, &run, err)        or run_take(s, id, &run, err) to resume
 *       run_call_add(run, ...)               as soon as a reply is there: it was paid for
 *       run_attempt_begin(run, ...)          before it is built
 *       run_attempt_end(run, ...)            before the next begins
 *       run_accept_add(run, ...)             of the best, when acceptance was asked for
 *     run_end(run, RUN_DONE, "...", err)
 *     run_release(run); store_close(s);      also after errors; NULL is fine
 *
 * Invariants
 * 1. Each function that writes is one transaction: it is in the file, synced,
 *    when true comes back, or nothing of it is there when false does.
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

/* STORE_WRITE makes the folder and the file; STORE_READ wants them there, and also reads
 * a folder it may not write. STORE_UPGRADE also changes the tables of an older version on a server,
 * which the others refuse; a file is copied to store.db.vN and changed by any of them. */
enum store_mode { STORE_WRITE, STORE_READ, STORE_UPGRADE };
int store_version(void); /* of the tables that this program makes */

/* Could one be opened here for writing? Leaves nothing behind: for telling before anything is
 * begun. */
bool store_possible(const char *runs_dir, struct error *err);
/* `url` NULL or "": the file RUNS_DIR/store.db. Else a PostgreSQL server, postgres://...; the
 * folder then holds only what is made from runs here. */
bool store_open(const char *runs_dir, const char *url, enum store_mode mode, struct store **out,
                struct error *err);
void store_close(struct store *s);
const char *store_dir(const struct store *s); /* absolute */

/* ---- writing ------------------------------------------------------------ */

struct run_spec {
    const struct task *task; /* borrowed, all of it */
    const struct device *device;
    const char *model; /* "builtin", "openai:..." */
    const char *suite; /* NULL: none */
    int64_t job;       /* of the queue, that it is the run of (queue.h); 0: none */
    /* The report knows "command": ["cutegen", "run", ...], "model", "device" and "profile_depth";
     * the rest is shown as it is. May be NULL. */
    const json_t *options, *environment;
};

/* Gives the run its id (DATE-TASK-N), its folder and its lock. */
bool run_create(struct store *s, const struct run_spec *spec, struct run **out, struct error *err);
/* Takes up a run again, whatever its state: it is `running` from here on. Fails (ERROR_USE)
 * while another process drives it. */
bool run_take(struct store *s, const char *id, struct run **out, struct error *err);
/* A judgement that was cut short is made again in the same run: forgets its attempts. */
bool run_start_over(struct run *r, struct error *err);
void run_release(struct run *r);
/* Whether some process drives that run. */
bool store_run_driven(struct store *s, const char *id);

const char *run_id(const struct run *r);
const char *run_dir(const struct run *r); /* absolute, exists */

bool run_set_options(struct run *r, const json_t *options, struct error *err);

/*
 * A model call (call.c). `slot` tells calls apart that are made at the same time for the same
 * attempt: 0, 1, ... run_call_add() stores one that is over. One that can cost something is stored
 * before it is sent, at its upper bound (tokens and cost of `bound`), and ends with its reply:
 *
 *     run_call_begin(...)     then run_call_raise() when it is sent again and may cost more
 *     run_call_hold(...)      a descriptor for the process that makes the request; it lives while
 *                             that is open. -1: not known
 *     run_reply_keep(...)     as soon as the reply is whole; from any thread
 *     run_call_end(...)
 *
 * The process that makes the request outlives the run's. It has no struct run and no right to the
 * run, only to that call: store_call_keep(), store_call_beat(), store_call_end().
 *
 * After run_take(), run_calls_settle() sees to those that were in flight when the run was killed:
 * a reply that had arrived is stored; one that may still arrive is waited for; the others get the
 * finish reason CALL_KILLED and stay at their upper bound.
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

/* One that another user's run has made. `dir` is the run's folder here. */
struct call_place {
    const char *dir, *run;
    int64_t call;
};
void store_call_keep(const struct call_place *at, const struct reply *reply);
/* It lives: what is waited for changes. For stores that machines share; others see the hold. */
bool store_call_beat(struct store *s, const struct call_place *at, int64_t elapsed_ms,
                     struct error *err);
/* Also one that was given up, unless it was asked again. */
bool store_call_end(struct store *s, const struct call_place *at, const struct reply *reply,
                    struct error *err);
void store_call_forget(const struct call_place *at); /* hold and reply: the store has it all */
/* Replies of that run that were kept in this machine's folder and are not in the store yet. */
bool store_replies_collect(struct store *s, const char *run, struct error *err);

struct settle_how {
    int silent_ms;        /* given up after so long without a sign of life; 0: CALL_SILENT_MS */
    bool (*stop)(void *); /* asked a few times a second; true ends the wait. May be NULL */
    void *stop_ctx;
    int count, killed; /* out: in flight at first; with no reply to be had */
};
/* False with ERROR_INTERRUPTED: stop() said so. */
bool run_calls_settle(struct run *r, struct settle_how *how, struct error *err);

/* `parent` is the attempt this one was made from, 0 for none. Begins again an attempt that was
 * cut short: same number, what was there of it is replaced. */
bool run_attempt_begin(struct run *r, const struct candidate *c, enum stage_kind stage, int parent,
                       struct error *err);
bool run_attempt_end(struct run *r, int attempt, const struct attempt_outcome *outcome,
                     struct error *err);
/* What the final acceptance says of an attempt that passed; the later one stands. */
bool run_accept_add(struct run *r, int attempt, const struct acceptance *what, struct error *err);
/* The last measurement of an attempt, beside more baselines: it takes the place of the first. */
bool run_measured_again(struct run *r, int attempt, const struct measurement *m, struct error *err);
bool run_profile_add(struct run *r, int attempt, const struct profile *p, struct error *err);
/* The machine's log: what happened beside attempts and calls. `data` may be NULL. */
bool run_event_add(struct run *r, const char *kind, const json_t *data, struct error *err);
bool run_end(struct run *r, enum run_state state, const char *reason, struct error *err);

/* ---- reading ------------------------------------------------------------ */

/* "last", a whole id, or the beginning of exactly one. */
bool store_run_find(struct store *s, const char *name, struct arena *a, const char **id,
                    struct error *err);
/* Newest first, so many at most; `suite` NULL: of all. *total: how many there are. */
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

/* ---- what other runs learnt (lesson.c) ------------------------------------ */

enum { LESSONS_MAX = 8 };
struct lesson_query {
    const char *class, *device, *models; /* as in tasks and devices; models "" on a GPU */
    const char *target;                  /* the language of their kernels */
    const char *not_run;                 /* the run that asks; "" for none */
};
/* Of a gain: from one time to the other. Of a failure: what the judge said, and how often. */
struct lesson {
    const char *task, *run, *change, *verdict, *why;
    double before_us, after_us;
    bool modelled;
    int times;
};
struct lessons {
    struct lesson gains[LESSONS_MAX], failures[LESSONS_MAX]; /* largest, most frequent first */
    size_t gain_count, failure_count;
    struct lesson best; /* nearest to its floor: before_us is the floor, after_us its time */
    bool has_best;
};
/* From attempts that ended with a verdict, and from nothing else. */
bool store_lessons(struct store *s, const struct lesson_query *want, struct arena *a,
                   struct lessons *out, struct error *err);

/* ---- suites (suite.c) ---------------------------------------------------- */

/* Gives the suite its name (DATE-suite-STEM-N) and its folder. Paths are absolute. */
bool suite_create(struct store *s, const char *source, const char *const *paths, size_t count,
                  const json_t *flags, struct arena *a, const char **name, struct error *err);
/* "last", a whole name, or the beginning of exactly one. */
bool suite_find(struct store *s, const char *name, struct arena *a, const char **found,
                struct error *err);
bool suite_read(struct store *s, const char *name, struct arena *a, struct suite_record *out,
                struct error *err);
/* The same with one task only: out->tasks[0]. */
bool suite_read_task(struct store *s, const char *name, int number, struct arena *a,
                     struct suite_record *out, struct error *err);
/* What became of a task in this sitting; wall_ms is added to what it took before. */
bool suite_task_set(struct store *s, const char *name, size_t number, bool ended,
                    const char *problem, int64_t wall_ms, struct error *err);
/* It is begun once more because the machine failed. */
bool suite_task_retry(struct store *s, const char *name, size_t number, struct error *err);
/* The right to drive a suite, until the descriptor is closed. ERROR_USE while another has it. */
bool suite_lock(struct store *s, const char *name, int *fd, struct error *err);

/* The budget of a suite, in turns with all others (budget.c). NULL: the store is this machine's,
 * and a file in the suite's folder does. `owner` names the task that spends. Freed with the arena.
 */
struct shared_text;
const struct shared_text *suite_budget(struct store *s, const char *suite, const char *owner,
                                       struct arena *a);

/* Kernels compiled on any machine (kernels.c), for as long as the store is open. By whom: this
 * machine; workers that take compile jobs, as long as there are some; or this machine for others,
 * which offers what it has. NULL: the store is this machine's, whose own cache does. */
enum compiled_by { COMPILED_HERE, COMPILED_BY_QUEUE, COMPILED_FOR_QUEUE };
struct shared_files;
const struct shared_files *store_kernels(struct store *s, enum compiled_by who, struct arena *a);
/* Whether there is one under that key. */
bool store_has_kernel(struct store *s, const char *key, bool *has, struct error *err);

/* ---- texts -------------------------------------------------------------- */

bool blob_put(struct store *s, struct text data, char sha256[65], struct error *err);
bool blob_get(struct store *s, const char *sha256, struct arena *a, struct text *out,
              struct error *err);

#endif
