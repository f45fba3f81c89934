/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_worker.c - `worker` runs jobs from the store's queue; `top` shows them. */
#include "base/clock.h"
#include "base/json.h"
#include "base/proc.h"
#include "cli/cmd.h"
#include "store/jobs.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- worker --------------------------------------------------------------------- */

struct worker_lines {
    struct worker_progress progress; /* must be first: the loop passes a pointer to it back to us */
    const struct cli *cli;
};

static void on_event(struct worker_progress *self, const struct worker_event *ev)
{
    static const char *const names[] = {"begin", "end", "return", "lost", "wait"};
    const struct cli *cli = ((struct worker_lines *)self)->cli;
    char stamp[25], title[JOB_TITLE];

    if (cli->quiet)
        return;
    clock_stamp(clock_unix_ms(), stamp);
    if (cli->json)
        print_json(json_pack("{s:s, s:s, s:o, s:i, s:o, s:o, s:I}", "event", names[ev->kind], "at",
                             stamp, "suite", json_from_string(ev->job ? ev->job->suite : NULL),
                             "number", ev->job && ev->job->suite ? ev->job->number : -1, "text",
                             json_from_string(ev->text), "kind",
                             json_from_string(ev->job ? job_kind_names[ev->job->kind] : NULL),
                             "job", (json_int_t)(ev->job ? ev->job->id : 0)));
    else if (ev->job)
        printf("%s  %-6s  %s  %s\n", stamp, names[ev->kind], job_title(ev->job, title), ev->text);
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

/* "NVIDIA H200" is H200 in --require and --gpu. */
static const char *without_maker(const char *name)
{
    return !strncmp(name, "NVIDIA ", 7) ? name + 7 : name;
}

/* Name, memory and architecture of the GPU, from nvidia-smi. What it does not report stays unknown,
 * and jobs that require it go to other workers. */
static void ask_gpu(const struct cli *cli, struct job_needs *has)
{
    const char *device = cli->settings.device;
    const char *argv[] = {
        "nvidia-smi", "--query-gpu=memory.total,compute_cap,name", "--format=csv,noheader,nounits",
        arena_printf(cli->a, "--id=%s", device[4] == ':' ? device + 5 : "0"), NULL};
    struct proc_spec spec = {.argv = argv, .deadline_ms = 60 * 1000};
    struct error ignored = {0};
    struct proc_result r;
    long mib, major, minor;
    int at = 0;

    if (!proc_run(&spec, cli->a, &r, &ignored) || r.end != PROC_EXITED || r.code != 0 ||
        sscanf(r.out.data, "%ld, %ld.%ld, %n", &mib, &major, &minor, &at) != 3 || !at)
        return;
    has->memory_bytes = (int64_t)mib << 20;
    has->arch = arena_printf(cli->a, "%ld%ld", major, minor);
    has->gpu =
        without_maker(arena_strndup(cli->a, r.out.data + at, strcspn(r.out.data + at, "\r\n")));
}

/* What jobs may require of this machine; the judge finds out the rest. */
static struct job_needs what_is_here(const struct cli *cli)
{
    const char *device = cli->settings.device, *gpu = flag_get(cli, "gpu");
    bool cuda = !strncmp(device, "cuda", 4) ||
                (!strcmp(device, "auto") && access("/dev/nvidiactl", R_OK) == 0);
    struct job_needs has = {.kind = cuda ? "cuda" : "simt", .gpu = "", .memory_bytes = INT64_MAX};

    if (cuda)
        ask_gpu(cli, &has);
    if (gpu)
        has.gpu = gpu;
    return has;
}

/* A machine with a GPU should judge; one without can compile for others. */
static bool read_take(const struct cli *cli, bool cuda, int *takes, struct error *err)
{
    const char *text = flag_get(cli, "take");

    *takes = cuda ? TAKE_JUDGE : TAKE_BOTH;
    if (!text)
        return true;
    *takes = !strcmp(text, "judge")     ? TAKE_JUDGE
             : !strcmp(text, "compile") ? TAKE_COMPILE
             : !strcmp(text, "both")    ? TAKE_BOTH
                                        : 0;
    if (*takes)
        return true;
    error_set(err, ERROR_USE, "--take: '%s' is not a kind of work", text);
    return error_hint(err, "judge (runs, verdicts, times), compile, or both");
}

bool cmd_worker(struct cli *cli, int *code, struct error *err)
{
    struct worker_lines lines = {.progress = {.event = on_event}, .cli = cli};
    struct worker_options options = {
        .has = what_is_here(cli),
        .suite = flag_get(cli, "suite"),
        .once = flag_get(cli, "once") != NULL,
        .tasks = flag_get(cli, "tasks") ? flag_get(cli, "tasks") : ".",
        .own_flags = flags_said(cli, GROUP_ALL),
        .own_judging = flags_said(cli, GROUP_JUDGING),
        .key_names = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", cli->settings.key_env}};
    int ended = 0;

    (void)code;
    if (!read_take(cli, !strcmp(options.has.kind, "cuda"), &options.takes, err) ||
        !read_seconds(cli, "idle-exit", -1, &options.idle_exit_s, err) ||
        !read_seconds(cli, "lease", 0, &options.lease_s, err) ||
        !loop_worker(&cli->settings, &options, &lines.progress, cli->a, &ended, err))
        return false;
    if (!cli->quiet && !cli->json)
        printf("%d job%s done\n", ended, ended == 1 ? "" : "s");
    return true;
}

/* ---- top -------------------------------------------------------------------------- */

static json_t *worker_json(const struct worker_info *w)
{
    return json_pack("{s:I, s:s, s:i, s:s, s:s, s:o, s:o, s:o, s:I, s:I, s:I}", "id",
                     (json_int_t)w->id, "host", w->host, "pid", w->pid, "kind", w->kind, "gpu",
                     w->gpu, "job", json_from_string(w->job), "suite", json_from_string(w->suite),
                     "task", json_from_string(w->task), "seen_ms", (json_int_t)w->seen_ms,
                     "busy_ms", (json_int_t)w->busy_ms, "jobs", (json_int_t)w->jobs);
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

/* One line per kind of device: how many there are and how many are busy. */
static void print_devices(const struct worker_info *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t all = 0, busy = 0, first = n;

        for (size_t j = 0; j < n; j++) {
            if (strcmp(list[j].kind, list[i].kind) != 0 || strcmp(list[j].gpu, list[i].gpu) != 0)
                continue;
            first = first == n ? j : first;
            all++;
            busy += list[j].job != NULL;
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

/* Host names and paths come from the store, where any client may have put anything. */
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

        printf("  %-20.20s %7d  %-4s %-8.8s %5lld done  %.8s %.60s", shown(w->host, a), w->pid,
               shown(w->kind, a), shown(w->gpu, a), (long long)w->jobs,
               w->job ? shown(w->job, a) : "waiting",
               shown(slash     ? slash + 1
                     : w->task ? w->task
                               : "",
                     a));
        if (w->job)
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
