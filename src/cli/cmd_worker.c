/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_worker.c - `worker`, which does jobs of the store's queue, and `top`, which shows them. */
#include "base/clock.h"
#include "base/json.h"
#include "cli/cmd.h"
#include "store/jobs.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- worker --------------------------------------------------------------------- */

struct worker_lines {
    struct worker_progress progress; /* first: the loop hands it back to us */
    const struct cli *cli;
};

static void on_event(struct worker_progress *self, const struct worker_event *ev)
{
    static const char *const names[] = {"begin", "end", "return", "lost", "wait"};
    const struct cli *cli = ((struct worker_lines *)self)->cli;
    char stamp[25];

    if (cli->quiet)
        return;
    clock_stamp(clock_unix_ms(), stamp);
    if (cli->json)
        print_json(json_pack("{s:s, s:s, s:o, s:i, s:o}", "event", names[ev->kind], "at", stamp,
                             "suite", json_from_string(ev->job ? ev->job->suite : NULL), "number",
                             ev->job ? ev->job->number : -1, "text", json_from_string(ev->text)));
    else if (ev->job)
        printf("%s  %-6s  task %d of %s  %s\n", stamp, names[ev->kind], ev->job->number,
               ev->job->suite, ev->text);
    else
        printf("%s  %-6s  %s\n", stamp, names[ev->kind], ev->text);
    fflush(stdout);
}

static bool read_seconds(const struct cli *cli, const char *flag, int unset, int *seconds,
                         struct error *err)
{
    const char *text = flag_get(cli, flag);
    char *end;
    long n = text ? strtol(text, &end, 10) : unset;

    if (text && (*end || !*text || n < 0 || n > 1000000))
        return error_set(err, ERROR_USE, "--%s: '%s' is not a number of seconds", flag, text);
    *seconds = (int)n;
    return true;
}

/* What jobs may ask of this machine; the judge finds out the rest. */
static struct job_needs what_is_here(const struct cli *cli)
{
    const char *device = cli->settings.device;
    bool cuda = !strncmp(device, "cuda", 4) ||
                (!strcmp(device, "auto") && access("/dev/nvidiactl", R_OK) == 0);
    const char *gpu = flag_get(cli, "gpu");

    return (struct job_needs){
        .kind = cuda ? "cuda" : "simt", .gpu = gpu ? gpu : "", .memory_bytes = INT64_MAX};
}

bool cmd_worker(struct cli *cli, int *code, struct error *err)
{
    struct worker_lines lines = {.progress = {.event = on_event}, .cli = cli};
    struct worker_options options = {
        .has = what_is_here(cli),
        .suite = flag_get(cli, "suite"),
        .once = flag_get(cli, "once") != NULL,
        .tasks = flag_get(cli, "tasks") ? flag_get(cli, "tasks") : ".",
        .key_names = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", cli->settings.key_env}};
    int ended = 0;

    (void)code;
    if (!read_seconds(cli, "idle-exit", -1, &options.idle_exit_s, err) ||
        !read_seconds(cli, "lease", 0, &options.lease_s, err) ||
        !loop_worker(&cli->settings, &options, &lines.progress, cli->a, &ended, err))
        return false;
    if (!cli->quiet && !cli->json)
        printf("%d task%s done\n", ended, ended == 1 ? "" : "s");
    return true;
}

/* ---- top -------------------------------------------------------------------------- */

static json_t *worker_json(const struct worker_info *w)
{
    return json_pack("{s:I, s:s, s:i, s:s, s:s, s:o, s:o, s:I, s:I, s:I}", "id", (json_int_t)w->id,
                     "host", w->host, "pid", w->pid, "kind", w->kind, "gpu", w->gpu, "suite",
                     json_from_string(w->suite), "task", json_from_string(w->task), "seen_ms",
                     (json_int_t)w->seen_ms, "busy_ms", (json_int_t)w->busy_ms, "jobs",
                     (json_int_t)w->jobs);
}

static void print_top_json(const struct job_counts *c, const struct job_rates *r,
                           const struct worker_info *list, size_t n)
{
    json_t *o = json_object(), *jobs = json_object(), *workers = json_array();

    for (int i = 0; i < JOB_STATE_COUNT; i++)
        json_object_set_new(jobs, job_state_names[i], json_integer(c->of[i]));
    for (size_t i = 0; i < n; i++)
        json_array_append_new(workers, worker_json(&list[i]));
    json_object_set_new(o, "jobs", jobs);
    json_object_set_new(o, "workers", workers);
    json_object_set_new(o, "rates",
                        json_pack("{s:I, s:I, s:I, s:I, s:f}", "done_10min",
                                  (json_int_t)r->done_10min, "done_hour", (json_int_t)r->done_hour,
                                  "failed_hour", (json_int_t)r->failed_hour, "calls_day",
                                  (json_int_t)r->calls_day, "cost_day_usd", r->cost_day_usd));
    print_json(o);
}

/* One line for each kind of device: how many there are, how many of them work. */
static void print_devices(const struct worker_info *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t all = 0, busy = 0, first = n;

        for (size_t j = 0; j < n; j++) {
            if (strcmp(list[j].kind, list[i].kind) != 0 || strcmp(list[j].gpu, list[i].gpu) != 0)
                continue;
            first = first == n ? j : first;
            all++;
            busy += list[j].task != NULL;
        }
        if (first == i)
            printf("  %-4s %-20.20s %5zu, %zu of them busy\n", list[i].kind, list[i].gpu, all,
                   busy);
    }
}

static void print_rates(const struct job_rates *r)
{
    printf("lately    %lld done in 10 minutes, %lld in an hour; %lld failed\n",
           (long long)r->done_10min, (long long)r->done_hour, (long long)r->failed_hour);
    printf("cost      $%.2f for %lld model calls in 24 hours\n", r->cost_day_usd,
           (long long)r->calls_day);
}

/* A host or a path is what somebody wrote into the store. */
static const char *shown(const char *text, struct arena *a)
{
    char *s = arena_strdup(a, text ? text : "");

    for (char *p = s; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?';
    return s;
}

static void print_top(const struct job_counts *c, const struct job_rates *r,
                      const struct worker_info *list, size_t n, struct arena *a)
{
    enum { MOST = 64 };

    printf("jobs      %lld waiting, %lld under way, %lld done, %lld failed\n",
           (long long)c->of[JOB_WAITING], (long long)c->of[JOB_LEASED], (long long)c->of[JOB_DONE],
           (long long)c->of[JOB_FAILED]);
    print_rates(r);
    printf("workers   %zu\n", n);
    print_devices(list, n);
    for (size_t i = 0; i < n && i < MOST; i++) {
        const struct worker_info *w = &list[i];
        const char *slash = w->task ? strrchr(w->task, '/') : NULL;

        printf("  %-20.20s %7d  %-4s %-8.8s %5lld done  %.60s", shown(w->host, a), w->pid,
               shown(w->kind, a), shown(w->gpu, a), (long long)w->jobs,
               shown(slash     ? slash + 1
                     : w->task ? w->task
                               : "waiting",
                     a));
        if (w->task)
            printf("  %lld s", (long long)w->busy_ms / 1000);
        printf("\n");
    }
    if (n > MOST)
        printf("  and %zu more; --json has them all\n", n - MOST);
}

bool cmd_top(struct cli *cli, int *code, struct error *err)
{
    struct worker_info *list = NULL;
    struct store *store = NULL;
    struct job_counts count;
    struct job_rates rates;
    size_t n = 0;
    bool ok =
        store_open(cli->settings.runs_dir, cli->settings.store_url, STORE_READ, &store, err) &&
        jobs_count(store, NULL, &count, err) && jobs_rates(store, &rates, err) &&
        workers_list(store, cli->a, &list, &n, err);

    (void)code;
    if (ok && cli->json)
        print_top_json(&count, &rates, list, n);
    else if (ok)
        print_top(&count, &rates, list, n, cli->a);
    store_close(store);
    return ok;
}
