/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_queue.c - `queue`: jobs for workers, one at a time, and their results. */
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "cli/cmd.h"
#include "store/queue.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_JOBS = 500, LIST_JOBS = 100, FILE_BYTES = 4 << 20, LOOK_MS = 1000 };

/* ---- what a job may ask for (also cmd_suite.c) ------------------------------------ */

static bool refuse_needs(const char *text, struct error *err)
{
    error_set(err, ERROR_USE, "--require: '%s' is not a device", text);
    return error_hint(err, "simt, cuda, or cuda:NAME, as in `cutegen worker --gpu NAME`; then "
                           ",arch=90 and ,memory=80 (GiB), if they matter");
}

/* simt, cuda or cuda:NAME, and ,arch=N ,memory=GIB. */
bool flags_needs(const struct cli *cli, struct job_needs *needs, struct error *err)
{
    const char *text = flag_get(cli, "require");
    char *rest, *one, *end;

    if (!text)
        return true;
    rest = arena_strdup(cli->a, text);
    one = strsep(&rest, ",");
    needs->kind = !strncmp(one, "cuda", 4) ? "cuda" : "simt";
    if (!strncmp(one, "cuda:", 5) && one[5])
        needs->gpu = one + 5;
    else if (strcmp(one, "simt") != 0 && strcmp(one, "cuda") != 0)
        return refuse_needs(text, err);
    while ((one = strsep(&rest, ",")) != NULL) {
        if (!strncmp(one, "arch=", 5) && one[5])
            needs->arch = one + 5;
        else if (!strncmp(one, "memory=", 7) && strtol(one + 7, &end, 10) > 0 && !*end)
            needs->memory_bytes = (int64_t)strtol(one + 7, NULL, 10) << 30;
        else
            return refuse_needs(text, err);
    }
    return true;
}

bool flags_priority(const struct cli *cli, int *priority, struct error *err)
{
    const char *text = flag_get(cli, "priority");
    char *end;
    long n = text ? strtol(text, &end, 10) : 0;

    if (text && (!*text || *end || n < -1000 || n > 1000))
        return error_set(err, ERROR_USE, "--priority: '%s' is not a number from -1000 to 1000",
                         text);
    *priority = (int)n;
    return true;
}

/* ---- adding jobs --------------------------------------------------------------- */

struct queue_adding {
    struct cli *cli;
    struct store *store;
    struct queue_order order;
    int64_t ids[MOST_JOBS];
    size_t count;
};

/* Only flags that were given for this job and that a worker accepts. */
static bool job_flags(const struct cli *cli, json_t **out, struct error *err)
{
    bool runs = !strcmp(cli->words[0], job_kind_names[JOB_RUN]);
    const char *const *said = flags_said(cli, runs ? GROUP_ALL : GROUP_JUDGING);

    *out = json_array();
    if (!runs && *flags_said(cli, GROUP_LOOP | GROUP_MODEL)) {
        error_set(err, ERROR_USE, "%s is for runs, not for a single judgement",
                  *flags_said(cli, GROUP_LOOP | GROUP_MODEL));
        return error_hint(err, "cutegen queue add run TASK.py");
    }
    for (; *said; said++) {
        if (!worker_flag_allowed(*said)) {
            error_set(err, ERROR_USE, "a worker does not accept %.*s from the queue",
                      (int)strcspn(*said, "="), *said);
            return error_hint(err, "set it when starting the worker; to choose devices: --require");
        }
        json_array_append_new(*out, json_from_string(*said));
    }
    return true;
}

static bool add_one(struct queue_adding *x, struct error *err)
{
    enum job_state state;

    if (x->count == MOST_JOBS)
        return error_set(err, ERROR_USE, "more than %d jobs at once", MOST_JOBS);
    if (flag_get(x->cli, "again")) /* a new job, whatever already exists */
        x->order.salt = arena_printf(x->cli->a, "%lld %d %zu", (long long)clock_unix_ms(),
                                     (int)getpid(), x->count);
    bool ok = queue_add(x->store, &x->order, &x->ids[x->count], &state, err);
    x->count += ok;
    return ok;
}

static bool read_task(struct queue_adding *x, const char *word, json_t *payload, struct error *err)
{
    struct text task;
    char sha[65];

    x->order.path = path_absolute(x->cli->a, word);
    if (!file_read(word, FILE_BYTES, x->cli->a, &task, err)) {
        err->kind = ERROR_USE;
        return false;
    }
    hash_text(task, sha);
    json_object_set_new(payload, "task", json_string(sha));
    return true;
}

static bool add_run(struct queue_adding *x, struct error *err)
{
    for (int i = 1; i < x->cli->word_count; i++) {
        x->order.payload = json_object();
        bool ok = read_task(x, x->cli->words[i], x->order.payload, err) && add_one(x, err);

        json_decref(x->order.payload);
        if (!ok)
            return false;
    }
    return true;
}

static bool add_eval(struct queue_adding *x, struct error *err)
{
    struct arena *a = x->cli->a;

    if (x->cli->word_count < 3) {
        error_set(err, ERROR_USE, "`queue add eval` needs a task and its kernels");
        return error_hint(err, "cutegen queue add eval TASK.py KERNEL.cu...");
    }
    for (int i = 2; i < x->cli->word_count; i++) {
        const char *file = x->cli->words[i], *base = path_base(file), *dot = strrchr(base, '.');
        bool ok;

        x->order.payload = json_pack(
            "{s:o, s:b}", "name",
            json_from_text((struct text){base, dot ? (size_t)(dot - base) : strlen(base)}),
            "python", dot && !strcmp(dot, ".py"));
        ok = read_task(x, x->cli->words[1], x->order.payload, err) &&
             file_read(file, FILE_BYTES, a, &x->order.source, err) && add_one(x, err);
        json_decref(x->order.payload);
        if (!ok)
            return false;
    }
    return true;
}

/* Adds a job for the best kernel of a run, on the kind of device it was judged on unless another is
 * asked for. */
static bool add_again(struct queue_adding *x, struct error *err)
{
    struct arena *a = x->cli->a;

    for (int i = 1; i < x->cli->word_count; i++) {
        struct run_history h = {0};
        const char *id;
        bool ok = store_run_find(x->store, x->cli->words[i], a, &id, err) &&
                  store_run_history(x->store, id, a, &h, err);

        if (ok && h.info.best_attempt == 0)
            ok = error_set(err, ERROR_USE, "run %s has no correct kernel", id);
        if (ok) {
            x->order.path = arena_strdup(a, h.task.path);
            if (!flag_get(x->cli, "require"))
                x->order.needs.kind = h.device.kind == DEVICE_CUDA ? "cuda" : "simt";
            x->order.payload = json_pack("{s:s}", "run", id);
            ok = add_one(x, err);
            json_decref(x->order.payload);
        }
        run_history_release(&h);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- results --------------------------------------------------------------- */

static json_t *entry_json(const struct queue_entry *e)
{
    json_t *o = json_pack(
        "{s:I, s:s, s:s, s:o, s:o, s:o, s:o, s:i, s:I, s:I}", "job", (json_int_t)e->id, "kind",
        job_kind_names[e->kind], "state", job_state_names[e->state], "task",
        json_from_string(e->path), "run", *e->run ? json_from_string(e->run) : json_null(),
        "problem", json_from_string(e->problem), "owner", json_from_string(e->owner), "tries",
        e->tries, "waited_ms", (json_int_t)e->waited_ms, "took_ms", (json_int_t)e->took_ms);
    struct error ignored = {0};
    json_t *result = NULL;

    if (*e->result && json_parse(text_of(e->result), "a result", &result, &ignored))
        json_object_set_new(o, "result", result);
    return o;
}

static void print_result(const struct cli *cli, const json_t *r)
{
    const json_t *baselines = json_object_get(r, "baselines_us");
    double time_us = json_double_or(r, "time_us", 0);
    const char *name, *profile = json_string_or(r, "profile", NULL);
    json_t *value;

    if (json_string_or(r, "verdict", NULL)) {
        printf("          %s", json_string_or(r, "verdict", ""));
        if (time_us > 0)
            printf("  %s%s", show_us(time_us, cli->a),
                   json_bool_or(r, "modelled", false) ? " (modelled)" : "");
        json_object_foreach((json_t *)baselines, name, value)
        {
            if (time_us > 0 && json_number_value(value) > 0)
                printf("  %.2fx %s", json_number_value(value) / time_us, name);
        }
        printf("  run %s\n", json_string_or(r, "run", ""));
    }
    if (profile)
        print_visible(stdout, profile, strlen(profile));
}

static bool has_passed(const struct queue_entry *e)
{
    json_t *o = entry_json(e);
    const char *verdict = json_string_or(json_object_get(o, "result"), "verdict", "");
    bool passed =
        e->state == JOB_DONE && !*e->problem && !strcmp(verdict, verdict_names[VERDICT_PASS]);

    json_decref(o);
    return passed;
}

static void print_entry(const struct cli *cli, const struct queue_entry *e)
{
    json_t *o = entry_json(e);

    if (cli->json) {
        print_json(o);
        return;
    }
    printf("%-9lld %-8s %-8s ", (long long)e->id, job_kind_names[e->kind],
           job_state_names[e->state]);
    print_visible(stdout, path_base(e->path), strlen(path_base(e->path)));
    if (*e->problem) {
        printf("  ");
        print_visible(stdout, e->problem, strlen(e->problem));
    }
    putchar('\n');
    print_result(cli, json_object_get(o, "result"));
    json_decref(o);
}

/* Waits until each of them has ended. Exit code 1: one did not pass or has no result. */
static bool wait_for(struct cli *cli, struct store *store, const int64_t *ids, size_t count,
                     int *code, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct queue_entry e;

        for (;;) {
            if (!queue_read(store, ids[i], cli->a, &e, err))
                return false;
            if (e.state == JOB_DONE || e.state == JOB_FAILED)
                break;
            if (loop_interrupts) {
                error_set(err, ERROR_INTERRUPTED,
                          "stopped waiting for job %lld, which was not cancelled",
                          (long long)ids[i]);
                return error_hint(err, "cutegen queue wait %lld", (long long)ids[i]);
            }
            if (!jobs_wait(store, LOOK_MS, err))
                return false;
        }
        print_entry(cli, &e);
        if (!has_passed(&e))
            *code = EXIT_JUDGED;
    }
    return true;
}

/* ---- the commands ------------------------------------------------------------------ */

static bool add_by_kind(struct queue_adding *x, struct error *err)
{
    const char *kind = x->cli->words[0];

    for (int i = 0; i < JOB_COMPILE; i++) {
        if (strcmp(kind, job_kind_names[i]) != 0)
            continue;
        x->order.kind = (enum job_kind)i;
        return i == JOB_RUN    ? add_run(x, err)
               : i == JOB_EVAL ? add_eval(x, err)
                               : add_again(x, err);
    }
    error_set(err, ERROR_USE, "'%s' is not a kind of job", kind);
    return error_hint(err, "run TASK.py, eval TASK.py KERNEL.cu, measure RUN, profile RUN, export "
                           "RUN; compile jobs are added by runs (--compile-on queue)");
}

bool cmd_queue_add(struct cli *cli, int *code, struct error *err)
{
    struct queue_adding *x = arena_alloc(cli->a, sizeof(*x));
    bool ok;

    *x = (struct queue_adding){.cli = cli};
    ok = flags_needs(cli, &x->order.needs, err) && flags_priority(cli, &x->order.priority, err) &&
         job_flags(cli, &x->order.flags, err) &&
         store_open(cli->settings.runs_dir, cli->settings.store_url, STORE_WRITE, &x->store, err) &&
         add_by_kind(x, err);
    json_decref(x->order.flags);
    for (size_t i = 0; ok && i < x->count && !flag_get(cli, "wait"); i++) {
        struct queue_entry e;

        ok = queue_read(x->store, x->ids[i], cli->a, &e, err);
        if (ok)
            print_entry(cli, &e);
    }
    if (ok && flag_get(cli, "wait"))
        ok = wait_for(cli, x->store, x->ids, x->count, code, err);
    store_close(x->store);
    return ok;
}

static bool read_ids(const struct cli *cli, int64_t *ids, struct error *err)
{
    for (int i = 0; i < cli->word_count; i++) {
        char *end;

        ids[i] = strtoll(cli->words[i], &end, 10);
        if (ids[i] <= 0 || *end) {
            error_set(err, ERROR_USE, "'%s' is not the number of a job", cli->words[i]);
            return error_hint(err, "`cutegen queue list` shows them");
        }
    }
    return true;
}

/* Takes the code that was judged on the worker from the store. */
static bool write_export(struct cli *cli, struct store *store, int64_t id, struct error *err)
{
    struct export_options options = {.dir = flag_get(cli, "output")};
    struct export_summary s = {0};
    struct queue_entry e;

    if (!queue_read(store, id, cli->a, &e, err))
        return false;
    if (e.kind != JOB_EXPORT || e.state != JOB_DONE || !*e.run)
        return error_set(err, ERROR_USE, "job %lld has nothing to export", (long long)id);
    if (!loop_export(&cli->settings, e.run, &options, NULL, cli->a, &s, err))
        return false;
    if (!cli->json)
        printf("module    %s\n", s.module_path);
    return true;
}

bool cmd_queue_wait(struct cli *cli, int *code, struct error *err)
{
    int64_t ids[CLI_MAX_WORDS];
    struct store *store = NULL;
    bool ok;

    if (flag_get(cli, "output") && cli->word_count != 1)
        return error_set(err, ERROR_USE, "--output is for one job");
    ok = read_ids(cli, ids, err) &&
         store_open(cli->settings.runs_dir, cli->settings.store_url, STORE_READ, &store, err) &&
         wait_for(cli, store, ids, (size_t)cli->word_count, code, err) &&
         (!flag_get(cli, "output") || write_export(cli, store, ids[0], err));
    store_close(store);
    return ok;
}

bool cmd_queue_list(struct cli *cli, int *code, struct error *err)
{
    struct queue_entry *list = NULL;
    struct store *store = NULL;
    size_t n = 0;
    bool ok =
        store_open(cli->settings.runs_dir, cli->settings.store_url, STORE_READ, &store, err) &&
        queue_list(store, LIST_JOBS, cli->a, &list, &n, err);

    (void)code;
    if (ok && cli->json) {
        json_t *jobs = json_array();

        for (size_t i = 0; i < n; i++)
            json_array_append_new(jobs, entry_json(&list[i]));
        print_json(json_pack("{s:o}", "jobs", jobs));
    }
    for (size_t i = 0; ok && !cli->json && i < n; i++)
        print_entry(cli, &list[i]);
    store_close(store);
    return ok;
}

bool cmd_queue_cancel(struct cli *cli, int *code, struct error *err)
{
    int64_t ids[CLI_MAX_WORDS];
    struct store *store = NULL;
    bool was,
        ok = read_ids(cli, ids, err) &&
             store_open(cli->settings.runs_dir, cli->settings.store_url, STORE_WRITE, &store, err);

    for (int i = 0; ok && i < cli->word_count; i++) {
        struct queue_entry e;

        ok = queue_cancel(store, ids[i], &was, err) && queue_read(store, ids[i], cli->a, &e, err);
        if (!ok)
            break;
        if (!was)
            *code = EXIT_JUDGED; /* it is running or has ended */
        print_entry(cli, &e);
    }
    store_close(store);
    return ok;
}
