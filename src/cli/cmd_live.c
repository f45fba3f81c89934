/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_live.c - `live`: a page of running suites and runs, on this machine. */
#include "cli/cmd.h"
#include "live/live.h"
#include "report/report.h"
#include "store/jobs.h"
#include "store/store.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SUITES = 8, MAX_RUNS = 200, WAIT_MS = 1000 };

static void make_shell(void *ctx, const char *nonce, struct buf *body)
{
    (void)ctx;
    report_live_shell(nonce, body);
}

/* The newest suites that have runs, each once. */
static size_t list_suites(struct store *store, const struct run_info *runs, size_t count,
                          struct arena *a, struct live_suite *out)
{
    size_t n = 0;

    for (size_t i = 0; i < count && n < MAX_SUITES; i++) {
        struct suite_record record;
        struct error ignored = {0};
        bool known = runs[i].suite == NULL;

        for (size_t j = 0; j < n && !known; j++)
            known = strcmp(out[j].name, runs[i].suite) == 0;
        if (known || !suite_read(store, runs[i].suite, a, &record, &ignored))
            continue;
        out[n] = (struct live_suite){.name = record.name, .count = record.count};
        for (size_t t = 0; t < record.count; t++)
            out[n].ended += record.tasks[t].ended;
        for (size_t r = 0; r < count; r++)
            out[n].running += runs[r].alive && runs[r].suite && !strcmp(runs[r].suite, record.name);
        n++;
    }
    return n;
}

static bool read_queue(struct store *store, struct arena *a, struct live_queue *out)
{
    struct worker_info *workers = NULL;
    struct job_counts jobs;
    struct job_rates rates;
    struct error ignored = {0};

    if (!jobs_count(store, NULL, &jobs, &ignored) || !jobs_rates(store, &rates, &ignored) ||
        !workers_list(store, a, &workers, &out->workers, &ignored))
        return false;
    out->waiting = jobs.of[JOB_WAITING];
    out->leased = jobs.of[JOB_LEASED];
    out->done = jobs.of[JOB_DONE];
    out->failed = jobs.of[JOB_FAILED];
    out->done_hour = rates.done_hour;
    out->failed_hour = rates.failed_hour;
    for (size_t i = 0; i < out->workers; i++)
        out->busy += workers[i].task != NULL;
    return true;
}

static bool put_overview(struct store *store, struct arena *a, struct buf *body)
{
    struct live_suite suites[MAX_SUITES];
    struct run_info *runs = NULL;
    struct error ignored = {0};
    struct live_queue queue = {0};
    size_t count = 0, suite_count;

    if (!store_run_newest(store, NULL, MAX_RUNS, a, &runs, &count, &queue.runs, &ignored) ||
        !read_queue(store, a, &queue))
        return false;
    suite_count = list_suites(store, runs, count, a, suites);
    report_live_overview(&queue, runs, count, suites, suite_count, body);
    return true;
}

/* Requires a complete id, not a prefix. */
static bool put_run(struct store *store, const char *id, struct arena *a, struct buf *body)
{
    struct run_history h = {0};
    struct error ignored = {0};
    const char *found;
    bool ok = store_run_find(store, id, a, &found, &ignored) && strcmp(found, id) == 0 &&
              store_run_history(store, found, a, &h, &ignored);

    if (ok)
        report_live_run(&h, body);
    run_history_release(&h);
    return ok;
}

static bool put_suite(struct store *store, const char *name, struct arena *a, struct buf *body)
{
    struct suite_record suite = {0};
    struct error ignored = {0};
    struct run_history *all;
    const char *found;
    bool ok = suite_find(store, name, a, &found, &ignored) && strcmp(found, name) == 0 &&
              suite_read(store, found, a, &suite, &ignored);

    all = arena_array(a, suite.count + 1, sizeof(*all));
    for (size_t i = 0; ok && i < suite.count; i++)
        if (suite.tasks[i].run)
            ok = store_run_history(store, suite.tasks[i].run, a, &all[i], &ignored);
    if (ok)
        report_live_suite(&(struct suite_view){.suite = &suite, .histories = all}, body);
    for (size_t i = 0; i < suite.count; i++)
        run_history_release(&all[i]);
    return ok;
}

static const char *after(const char *path, const char *prefix)
{
    size_t len = strlen(prefix);

    return strncmp(path, prefix, len) == 0 ? path + len : NULL;
}

static bool make_page(void *ctx, const char *path, struct buf *body)
{
    const struct cli *cli = ctx;
    struct arena *a = arena_new();
    struct store *store = NULL;
    struct error why = {0};
    const char *name;
    bool ok = false, open = store_open(cli->settings.runs_dir, cli->settings.store_url, STORE_READ,
                                       &store, &why);

    if (strcmp(path, "/view") == 0 && !open) { /* no store yet: the first run makes it */
        report_live_overview(&(struct live_queue){0}, NULL, 0, NULL, 0, body);
        ok = true;
    } else if (open && strcmp(path, "/view") == 0) {
        ok = put_overview(store, a, body);
    } else if (open && (name = after(path, "/view/run/")) != NULL) {
        ok = put_run(store, name, a, body);
    } else if (open && (name = after(path, "/view/suite/")) != NULL) {
        ok = put_suite(store, name, a, body);
    }
    store_close(store);
    arena_free(a);
    return ok;
}

static bool read_port(const struct cli *cli, int *port, struct error *err)
{
    const char *text = flag_get(cli, "port");
    char *end;
    long n = text ? strtol(text, &end, 10) : 0;

    if (text && (*end || !*text || n < 1 || n > 65535))
        return error_set(err, ERROR_USE, "--port: '%s' is not a port from 1 to 65535", text);
    *port = (int)n;
    return true;
}

bool cmd_live(struct cli *cli, int *code, struct error *err)
{
    struct live_config config = {.answer = make_page, .shell = make_shell, .ctx = cli};
    struct live_server *live = NULL;

    (void)code;
    if (!read_port(cli, &config.port, err) || !live_start(&config, &live, err))
        return false;
    if (cli->json)
        print_json(json_pack("{s:s, s:s}", "event", "live", "url", live_url(live)));
    else
        printf("live      %s\n"
               "          open it in a browser on this machine; Ctrl-C ends it\n",
               live_url(live));
    fflush(stdout);
    while (!loop_interrupts)
        (void)poll(NULL, 0, WAIT_MS); /* the server answers in a thread of its own */
    live_stop(live);
    return true;
}
