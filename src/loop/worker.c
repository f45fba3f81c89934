/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.c - a worker: claims jobs from the store's queue and runs them on this machine.
 *
 * Each is a cutegen command in a process of its own (work.c), as in suite.c. The worker only holds
 * the lease: it renews it while the process runs, and stops the process when the lease is lost.
 * Everything else is in the store through the run.
 *
 * Invariants
 * 1. A job is data from anyone who can write to the queue. It names a task file and flags from a
 *    list; programs, keys, addresses and folders come from this worker's own configuration.
 * 2. A lost connection ends nothing: the worker reconnects; if its lease ran out meanwhile, the job
 *    belongs to another worker.
 * 3. Asked to end (SIGTERM), it gives its process GRACE_MS to finish the current attempt (a paid
 *    model call is not thrown away), then stops it, returns the lease and does not count the try.
 */
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "base/vault.h"
#include "loop/loop.h"
#include "loop/suite.h"
#include "stage/stage.h"
#include "store/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OUTPUT_BYTES = 4 << 20,
    WAIT_MS = 2000,      /* pause between two polls of an empty queue */
    RECONNECT_MS = 1000, /* first pause; it grows */
    RECONNECT_MAX_MS = 15000,
    DRIVEN_MS = 5000,     /* pause while a process whose lease ran out still drives the run */
    BROKEN_MS = 2000,     /* pause after a failure, times the number of tries */
    GRACE_MS = 45 * 1000, /* Slurm sends SIGTERM a minute before it kills (workers.c) */
};

struct work_here {
    const struct settings *settings;
    const struct worker_options *options;
    struct worker_progress *progress;
    struct queue_worker worker;
    struct store *store;
    const char *program;
    const char *folder; /* whose tasks it takes; absolute, no links */
    const char *env[8];
    int64_t idle_since_ms, beat_at_ms;
    const struct job *job; /* the current job */
    bool lost;             /* its lease was lost */
    int64_t asked_ms;      /* when we were asked to end; 0: not yet */
    int ended;
    bool told_elsewhere; /* the user was told that tasks of other folders wait */
};

/* ---- connection and lease ------------------------------------------------ */

static void tell(struct work_here *w, enum worker_event_kind kind, const char *text)
{
    struct worker_event ev = {.kind = kind, .job = w->job, .text = text};

    if (w->progress)
        w->progress->event(w->progress, &ev);
}

/* Six heartbeats per lease, so that a late one does not end it. */
static int beat_ms(const struct work_here *w)
{
    return (w->worker.lease_ms > 0 ? w->worker.lease_ms : LEASE_MS) / 6;
}

static bool asked_to_end(const struct work_here *w)
{
    (void)w;
    return loop_interrupts > 0;
}

/* Retries until the server answers or the worker must end. */
static bool connect_again(struct work_here *w, const struct error *why)
{
    int wait_ms = RECONNECT_MS;

    tell(w, WORKER_WAITS, why->text);
    store_close(w->store);
    w->store = NULL;
    while (!asked_to_end(w)) {
        struct error err = {0};

        if (store_open(w->settings->runs_dir, w->settings->store_url, STORE_WRITE, &w->store, &err))
            return true;
        usleep((useconds_t)wait_ms * 1000);
        wait_ms = 2 * wait_ms < RECONNECT_MAX_MS ? 2 * wait_ms : RECONNECT_MAX_MS;
    }
    return false;
}

static bool ask_now(void *ctx)
{
    return asked_to_end(ctx);
}

/* Asked to end twice, or once and long enough ago. */
static bool out_of_patience(struct work_here *w)
{
    if (!asked_to_end(w))
        return false;
    if (!w->asked_ms)
        w->asked_ms = clock_ms();
    return loop_interrupts > 1 || clock_ms() - w->asked_ms > GRACE_MS;
}

/* Called while the process runs: renews the lease and says when to stop. */
static bool stop_now(void *ctx)
{
    struct work_here *w = ctx;
    struct error err = {0};
    bool mine;

    if (out_of_patience(w) || w->lost)
        return true;
    if (clock_ms() < w->beat_at_ms)
        return false;
    w->beat_at_ms = clock_ms() + beat_ms(w);
    if (!w->store)
        return true; /* it was lost while we were asked to end */
    if (!job_beat(w->store, &w->worker, w->job, &mine, &err)) {
        connect_again(w, &err);
        w->beat_at_ms = clock_ms();
        return false;
    }
    w->lost = !mine;
    return w->lost;
}

/* ---- one job ------------------------------------------------------------------ */

/* The lease is still ours, so the end must be reported whatever happens to the connection. */
static void say_end(struct work_here *w, const struct job_end *end)
{
    struct error err = {0};

    while (w->store && !job_end(w->store, &w->worker, w->job, end, &err)) {
        if (!connect_again(w, &err))
            return;
        err = (struct error){0};
    }
    w->ended += end->ended;
    tell(w, WORKER_ENDS, end->problem ? end->problem : "");
}

static void say_back(struct work_here *w, bool counts, int after_ms, const char *problem)
{
    struct error err = {0};

    while (w->store && !job_return(w->store, &w->worker, w->job, counts, after_ms, problem, &err)) {
        if (!connect_again(w, &err))
            return;
        err = (struct error){0};
    }
    tell(w, WORKER_RETURNS, problem ? problem : "");
}

/* The job's present run; "": none. */
static bool run_now(struct work_here *w, struct arena *a, const char **run, struct error *err)
{
    struct suite_record suite;
    struct queue_entry entry;

    *run = "";
    if (!w->job->suite) {
        if (!queue_read(w->store, w->job->id, a, &entry, err))
            return false;
        *run = entry.run;
        return true;
    }
    if (!suite_read_task(w->store, w->job->suite, w->job->number, a, &suite, err))
        return false;
    if (suite.tasks[0].run)
        *run = suite.tasks[0].run;
    return true;
}

/* Is a worker whose lease ran out still active: has it begun the run meanwhile, or does it drive
 * it? */
static bool somebody_else_has_it(struct work_here *w, const char *before, struct arena *a)
{
    struct error ignored = {0};
    const char *run;

    if (!w->store || !run_now(w, a, &run, &ignored))
        return true; /* check again later */
    return *run && (strcmp(run, before) != 0 || store_run_driven(w->store, run));
}

/* A killed process may have left a paid reply (store/call.c) in a folder that only this machine
 * has: it is put into the store before another machine continues. The run itself is not touched:
 * another worker may have it by now, or it is done. */
static void save_replies(struct work_here *w, struct arena *a)
{
    struct error ignored = {0};
    const char *id;

    if (w->job->kind == JOB_RUN && w->store && run_now(w, a, &id, &ignored) && *id)
        store_replies_collect(w->store, id, &ignored);
}

/* Reports the end with the result from the store: state and result change together. */
static void say_done(struct work_here *w, struct job_end *end, struct arena *a)
{
    struct error err = {0};
    bool done;

    while (w->store && !work_result(w->store, w->job, a, &end->result, &done, &err)) {
        if (!connect_again(w, &err))
            return;
        err = (struct error){0};
    }
    say_end(w, end);
}

static void judge_end(struct work_here *w, const char *run, const struct proc_result *r,
                      struct arena *a)
{
    const char *said = suite_error_line(r->out, a);
    struct job_end end = {.ended = true, .wall_ms = r->wall_ms, .problem = ""};

    if (r->end != PROC_EXITED)
        save_replies(w, a);
    if (w->lost) {
        tell(w, WORKER_LOST, "");
    } else if (r->end == PROC_STOPPED || (asked_to_end(w) && r->code == 130)) {
        say_back(w, false, 0, "");
    } else if (r->end != PROC_EXITED || r->code == 3 || r->code == 130) {
        say_back(w, true, BROKEN_MS * w->job->tries, said ? said : proc_end_text(r, a));
    } else if (r->code == 2 && somebody_else_has_it(w, run, a)) {
        say_back(w, false, DRIVEN_MS, said);
    } else {
        /* code 4: the budget is spent, so the job waits until it is asked for again */
        end.ended = r->code != 4;
        end.problem = r->code >= 2 && said ? said : "";
        say_done(w, &end, a);
    }
}

/* An earlier worker may have completed the job without reporting it. */
static bool done_before(struct work_here *w, struct arena *a)
{
    struct error ignored = {0};
    const char *result;
    bool done = false;

    if (w->job->suite || w->job->tries < 2 ||
        !work_result(w->store, w->job, a, &result, &done, &ignored) || !done)
        return false;
    say_end(w, &(struct job_end){.ended = true, .result = result});
    return true;
}

static void do_job(struct work_here *w, struct arena *a)
{
    struct work_place place = {w->settings,
                               w->store,
                               w->program,
                               w->folder,
                               w->options->own_flags,
                               w->options->own_judging};
    struct proc_result result;
    struct error err = {0};
    struct job_work work = {0};

    w->lost = false;
    w->beat_at_ms = clock_ms() + beat_ms(w);
    tell(w, WORKER_BEGINS, "");
    if (done_before(w, a))
        return;
    bool ok = work_prepare(&place, w->job, a, &work, &err);
    struct proc_spec spec = {.argv = work.words,
                             .env = w->env,
                             .output_limit = OUTPUT_BYTES,
                             .stop = stop_now,
                             .ask = ask_now,
                             .stop_ctx = w};
    if (ok && work.problem)
        say_end(w, &(struct job_end){.ended = true, .problem = work.problem});
    else if (!ok || !proc_run(&spec, a, &result, &err))
        say_back(w, true, BROKEN_MS, err.text);
    else
        judge_end(w, work.run, &result, a);
    work_release(&work);
}

/* ---- the worker's loop ------------------------------------------------------------------ */

static bool idle_too_long(const struct work_here *w)
{
    return w->options->idle_exit_s >= 0 &&
           clock_ms() - w->idle_since_ms >= (int64_t)w->options->idle_exit_s * 1000;
}

/* Said once, because someone waiting for those tasks would wonder. */
static void tell_elsewhere(struct work_here *w, struct arena *a)
{
    struct error ignored = {0};
    const char *path = NULL;

    if (w->told_elsewhere || !jobs_elsewhere(w->store, &w->worker, a, &path, &ignored) || !path)
        return;
    w->told_elsewhere = true;
    tell(w, WORKER_WAITS,
         arena_printf(a, "tasks of other folders are waiting (%s); this worker serves %s (--tasks)",
                      path, w->folder));
}

/* Polls the queue once; false: the worker should end. */
static bool work_once(struct work_here *w, struct error *err)
{
    struct arena *a = arena_new();
    struct job job;
    bool found = false, mine;

    if (job_claim(w->store, &w->worker, a, &job, &found, err) && found) {
        w->job = &job;
        do_job(w, a);
        w->job = NULL;
        w->idle_since_ms = clock_ms();
    } else if (err->kind == ERROR_NONE) {
        tell_elsewhere(w, a);
    }
    arena_free(a);
    if (err->kind != ERROR_NONE || asked_to_end(w) || (found && w->options->once))
        return false;
    if (found)
        return w->store != NULL;
    if (idle_too_long(w))
        return false;
    return job_beat(w->store, &w->worker, NULL, &mine, err) && jobs_wait(w->store, WAIT_MS, err);
}

static void pass_keys(struct work_here *w, struct arena *a)
{
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(w->options->key_names); i++) {
        const char *name = w->options->key_names[i], *value = name ? vault_get(name) : NULL;

        if (value)
            w->env[n++] = arena_printf(a, "%s=%s", name, value);
    }
}

static const char *with_slash(const char *path, struct arena *a)
{
    return arena_printf(a, "%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/");
}

/* Paths in the queue are absolute, but may go through links. */
static bool set_folder(struct work_here *w, struct arena *a, struct error *err)
{
    const char *given = path_from_here(a, w->options->tasks);
    char *real = realpath(given, NULL);

    if (!real) {
        error_set(err, ERROR_USE, "--tasks %s: %s", w->options->tasks, strerror(errno));
        return error_hint(err, "name the folder whose tasks this worker may run");
    }
    w->folder = arena_strdup(a, real);
    w->worker.folder = with_slash(given, a);
    w->worker.real_folder = with_slash(real, a);
    free(real);
    return true;
}

bool loop_worker(const struct settings *settings, const struct worker_options *options,
                 struct worker_progress *progress, struct arena *a, int *ended, struct error *err)
{
    struct work_here w = {.settings = settings, .options = options, .progress = progress};
    char *program = realpath("/proc/self/exe", NULL);
    struct error lost = {0};
    int server;

    if (!program)
        return error_set(err, ERROR_MACHINE, "cannot find our own program: %s", strerror(errno));
    w.program = program;
    w.worker = (struct queue_worker){.has = options->has,
                                     .takes = options->takes,
                                     .suite = options->suite,
                                     .lease_ms = options->lease_s * 1000};
    w.idle_since_ms = clock_ms();
    pass_keys(&w, a);
    bool ok = set_folder(&w, a, err) &&
              store_open(settings->runs_dir, settings->store_url, STORE_WRITE, &w.store, err) &&
              worker_begin(w.store, &w.worker, err);
    server = ok ? stage_server_hold(settings) : -1;
    if (ok)
        tell(&w, WORKER_WAITS, arena_printf(a, "takes tasks in %s", w.folder));
    while (ok) {
        lost = (struct error){0};
        if (work_once(&w, &lost))
            continue;
        if (lost.kind == ERROR_NONE || asked_to_end(&w) || !connect_again(&w, &lost))
            break;
    }
    lost = (struct error){0};
    if (ok && w.store)
        /* if this fails, others notice later that it is gone */
        worker_end(w.store, &w.worker, &lost);
    if (server >= 0)
        close(server);
    store_close(w.store);
    free(program);
    *ended = w.ended;
    return ok;
}
