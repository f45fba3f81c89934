/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers.c - a suite done by workers: queue its tasks, launch workers, wait.
 *
 * Hides how they are launched: this process (local:N), Slurm (slurm:N,OPTION=VALUE,...), or the
 * user (none). The suite is finished when no job of it waits or is leased, no matter which worker
 * ran them; so this process may end at any time and another can continue.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "loop/suite.h"
#include "store/jobs.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_LOCAL = 64,
    MAX_SLURM = 4096,
    MAX_WORDS = 160,
    LOOK_MS = 1000,
    SLURM_LOOK_MS = 10 * 1000,
    SLURM_IDLE_S = 60,
    BUILDER_IDLE_S = 3600,  /* long, because nothing is compiled while models think */
    GOODBYE_MS = 60 * 1000, /* time for a worker to let its process finish and return the lease */
    SCRIPT_BYTES = 1 << 16,
};

struct launcher {
    bool builds; /* its workers compile for the others */
    const struct suite_watch *watch;
    struct arena *a;
    enum { LAUNCH_NONE, LAUNCH_LOCAL, LAUNCH_SLURM } kind;
    int count;
    const char *slurm_options; /* after the comma */
    struct child *kids[MAX_LOCAL];
    const char *slurm_job;
    int64_t slurm_seen_ms;
};

/* ---- options --------------------------------------------------------- */

static bool refuse_workers(const struct launcher *l, const char *text, struct error *err)
{
    error_set(err, ERROR_USE, "--%s: '%s' is not local:N, slurm:N[,OPTION=VALUE...] or none",
              l->builds ? "builders" : "workers", text);
    return error_hint(err, "for instance --workers local:2, or "
                           "--workers slurm:8,partition=gpu,gres=gpu:1,time=60");
}

static bool read_launcher(const char *text, struct launcher *l, struct error *err)
{
    const char *colon = strchr(text, ':');
    char *end;
    long n, most;

    if (!strcmp(text, "none"))
        return true;
    if (!colon)
        return refuse_workers(l, text, err);
    l->kind = !strncmp(text, "local:", 6)   ? LAUNCH_LOCAL
              : !strncmp(text, "slurm:", 6) ? LAUNCH_SLURM
                                            : LAUNCH_NONE;
    most = l->kind == LAUNCH_LOCAL ? MAX_LOCAL : MAX_SLURM;
    n = strtol(colon + 1, &end, 10);
    if (l->kind == LAUNCH_NONE || end == colon + 1 || n < 1 || n > most ||
        (*end && (*end != ',' || l->kind != LAUNCH_SLURM)))
        return refuse_workers(l, text, err);
    l->count = (int)n;
    l->slurm_options = *end ? end + 1 : "";
    return true;
}

/* The common folder of the suite's tasks, the only one its workers need. */
static const char *tasks_folder(const struct launcher *l)
{
    struct suite_record suite;
    struct error ignored = {0};
    char *common = NULL;

    if (!suite_read(l->watch->store, l->watch->name, l->a, &suite, &ignored))
        return "/";
    for (size_t i = 0; i < suite.count; i++) {
        const char *path = suite.tasks[i].path;
        size_t n = 0, slash = 0;

        if (!common)
            common = arena_strdup(l->a, path);
        for (; common[n] && common[n] == path[n]; n++)
            slash = common[n] == '/' ? n : slash;
        common[slash ? slash : 1] = '\0';
        if (slash) /* keep the slash, so that the next path is compared up to it */
            common = arena_printf(l->a, "%s/", common);
    }
    return common ? common : "/";
}

/* A worker's arguments, with the flags that it would not accept from the queue. */
static const char *const *worker_words(const struct launcher *l, int idle_exit_s)
{
    const struct suite_watch *watch = l->watch;
    const char **words = arena_array(l->a, MAX_WORDS, sizeof(*words));
    size_t n = 0, i;
    json_t *flag;

    words[n++] = watch->program;
    words[n++] = "worker";
    words[n++] = "--quiet";
    words[n++] = "--suite";
    words[n++] = watch->name;
    if (l->builds || watch->options->builders) {
        words[n++] = "--take";
        words[n++] = l->builds ? "compile" : "judge";
    }
    if (idle_exit_s >= 0) {
        words[n++] = "--idle-exit";
        words[n++] = arena_printf(l->a, "%d", idle_exit_s);
    }
    json_array_foreach(watch->options->flags, i, flag)
    {
        if (!worker_flag_allowed(json_string_value(flag)) && n < MAX_WORDS - 9)
            words[n++] = json_string_value(flag);
    }
    words[n++] = "--tasks";
    words[n++] = tasks_folder(l);
    words[n++] = "--runs";
    words[n++] = store_dir(watch->store);
    words[n++] = "--store";
    words[n++] = watch->settings->store_url;
    words[n] = NULL;
    return words;
}

/* ---- here ------------------------------------------------------------------------ */

static bool launch_local(struct launcher *l, struct error *err)
{
    struct proc_spec spec = {.argv = worker_words(l, -1), .env = l->watch->env};

    for (int i = 0; i < l->count; i++)
        if (!child_start(&spec, &l->kids[i], err))
            return error_add(err, "starting worker %d", i + 1);
    return true;
}

static bool kid_alive(struct child *kid)
{
    if (!kid)
        return false;
    (void)child_quiet(kid); /* its output is discarded */
    return kill(child_pid(kid), 0) == 0;
}

static int local_alive(struct launcher *l)
{
    int alive = 0;

    for (int i = 0; i < l->count; i++)
        alive += kid_alive(l->kids[i]);
    return alive;
}

static void stop_local(struct launcher *l)
{
    int64_t until = clock_ms() + GOODBYE_MS;

    for (int i = 0; i < l->count; i++)
        if (kid_alive(l->kids[i]))
            kill(child_pid(l->kids[i]), SIGTERM);
    while (local_alive(l) && clock_ms() < until && loop_interrupts < 2)
        usleep(20 * 1000);
    for (int i = 0; i < l->count; i++)
        child_stop(l->kids[i]);
}

/* ---- Slurm ------------------------------------------------------------------------- */

static void put_quoted(struct buf *b, const char *word)
{
    buf_puts(b, "'");
    for (; *word; word++) {
        if (*word == '\'')
            buf_puts(b, "'\\''");
        else
            buf_putc(b, *word);
    }
    buf_puts(b, "'");
}

static const char *batch_script(struct launcher *l)
{
    const char *const *words = worker_words(l, l->builds ? BUILDER_IDLE_S : SLURM_IDLE_S);
    struct buf b = buf_init(SCRIPT_BYTES);
    const char *text;

    buf_puts(&b, "#!/bin/sh\nexec");
    for (size_t i = 0; words[i]; i++) {
        buf_puts(&b, " ");
        put_quoted(&b, words[i]);
    }
    buf_puts(&b, "\n");
    text = arena_strndup(l->a, b.data, b.len);
    buf_release(&b);
    return text;
}

/* Runs one of Slurm's commands and returns its output. */
static bool slurm_ask(struct launcher *l, const char *const *argv, const char *input,
                      struct text *out, struct error *err)
{
    struct proc_spec spec = {.argv = argv, .input = text_of(input), .deadline_ms = 60 * 1000};
    struct proc_result r;

    if (!proc_run(&spec, l->a, &r, err)) {
        error_hint(err, "are Slurm's commands on PATH here?");
        return false;
    }
    if (r.end != PROC_EXITED || r.code != 0)
        return error_set(err, ERROR_MACHINE, "%s: %s: %.300s", argv[0], proc_end_text(&r, l->a),
                         r.err.data);
    *out = r.out;
    return true;
}

static bool launch_slurm(struct launcher *l, struct error *err)
{
    const char *argv[MAX_WORDS], *log;
    char *options = arena_strdup(l->a, l->slurm_options), *one;
    size_t n = 0;
    struct text out;

    log = path_join(l->a, path_join(l->a, store_dir(l->watch->store), l->watch->name),
                    l->builds ? "builder-%a.log" : "worker-%a.log");
    argv[n++] = "sbatch";
    argv[n++] = "--parsable";
    argv[n++] = arena_printf(l->a, "--job-name=cutegen-%s", l->watch->name);
    argv[n++] = arena_printf(l->a, "--array=1-%d", l->count);
    argv[n++] = arena_printf(l->a, "--output=%s", log);
    argv[n++] = "--signal=B:TERM@60";
    while ((one = strsep(&options, ",")) != NULL && n < MAX_WORDS - 1)
        if (*one)
            argv[n++] = arena_printf(l->a, "--%s", one);
    argv[n] = NULL;
    if (!slurm_ask(l, argv, batch_script(l), &out, err))
        return error_add(err, "submitting %d workers to Slurm", l->count);
    out.len = 0;
    while (isdigit((unsigned char)out.data[out.len]))
        out.len++;
    if (!out.len)
        return error_set(err, ERROR_MACHINE, "sbatch gave no job number");
    l->slurm_job = arena_strndup(l->a, out.data, out.len);
    return true;
}

/* Asks Slurm from time to time; in between the last answer is reused. */
static bool slurm_alive(struct launcher *l)
{
    const char *argv[] = {"squeue", "--noheader", "--jobs", l->slurm_job, "--format=%T", NULL};
    struct error ignored = {0};
    struct text out;

    if (clock_ms() - l->slurm_seen_ms < SLURM_LOOK_MS)
        return true;
    l->slurm_seen_ms = clock_ms();
    /* If the controller does not answer, assume that the workers live. */
    return !slurm_ask(l, argv, "", &out, &ignored) || out.len > 0;
}

static void stop_slurm(struct launcher *l)
{
    const char *argv[] = {"scancel", "--quiet", "--full", l->slurm_job, NULL};
    struct error ignored = {0};
    struct text out;

    if (l->slurm_job)
        slurm_ask(l, argv, "", &out, &ignored);
}

/* ---- from start to end ----------------------------------------------------------------------- */

static bool launch(struct launcher *l, struct error *err)
{
    l->slurm_seen_ms = clock_ms();
    return l->kind == LAUNCH_LOCAL   ? launch_local(l, err)
           : l->kind == LAUNCH_SLURM ? launch_slurm(l, err)
                                     : true;
}

static void stop(struct launcher *l)
{
    if (l->kind == LAUNCH_LOCAL)
        stop_local(l);
    else if (l->kind == LAUNCH_SLURM)
        stop_slurm(l);
}

static bool workers_left(struct launcher *l)
{
    return l->kind == LAUNCH_NONE ||
           (l->kind == LAUNCH_LOCAL ? local_alive(l) > 0 : slurm_alive(l));
}

static bool refuse_alone(const struct launcher *l, struct error *err)
{
    error_set(err, ERROR_MACHINE, "all workers have ended, and tasks of %s are left",
              l->watch->name);
    if (l->kind == LAUNCH_SLURM)
        return error_hint(err, "their logs: %s/%s/worker-*.log; then: cutegen suite --resume %s",
                          store_dir(l->watch->store), l->watch->name, l->watch->name);
    return error_hint(err, "start one by hand to see why: cutegen worker --suite %s",
                      l->watch->name);
}

static bool watch_to_the_end(struct launcher *l, struct error *err)
{
    const struct suite_watch *w = l->watch;
    struct suite_record now;
    struct job_counts count;

    for (;;) {
        bool left = workers_left(l);
        struct arena *a = arena_new();
        bool ok = suite_read(w->store, w->name, a, &now, err) &&
                  jobs_count(w->store, w->name, &count, err);

        if (ok)
            w->changed(w->ctx, &now, (size_t)count.of[JOB_LEASED]);
        arena_free(a);
        if (!ok)
            return false;
        if (count.of[JOB_WAITING] + count.of[JOB_LEASED] == 0 || loop_interrupts)
            return true;
        if (!left)
            return refuse_alone(l, err);
        if (!jobs_wait(w->store, LOOK_MS, err))
            return false;
    }
}

/* Builders start first: runs that find none compile themselves. */
bool suite_watch_workers(const struct suite_watch *watch, struct error *err)
{
    struct launcher l = {.watch = watch, .a = arena_new()}, b = {.builds = true, .watch = watch};
    const char *builders = watch->options->builders ? watch->options->builders : "none";
    bool ok;

    b.a = l.a;
    ok = read_launcher(watch->options->workers, &l, err) && read_launcher(builders, &b, err) &&
         jobs_add_suite(watch->store, watch->name, &watch->options->needs, watch->options->priority,
                        err) &&
         launch(&b, err) && launch(&l, err) && watch_to_the_end(&l, err);
    stop(&l);
    stop(&b);
    arena_free(l.a);
    return ok;
}
