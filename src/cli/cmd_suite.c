/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_suite.c - `suite`: many tasks under one budget, their table, CSV and page. */
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "cli/cmd.h"
#include "report/report.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_TABLE = 64 << 20 };

/* ---- progress ---------------------------------------------------------------- */

struct suite_lines {
    struct suite_progress progress; /* must be first: the loop passes a pointer to it back to us */
    const struct cli *cli;
    bool live;
};

static void print_end(const struct suite_lines *v, const struct suite_event *ev)
{
    const struct suite_task *t = ev->task;
    bool good = t->ended && t->run && !*t->problem;

    print_fit(12, "%3zu of %zu  %-*.40s %s%-8s%s %6.1f s  %s", ev->done, ev->count,
              terminal_columns(stdout) ? 24 : 40, t->name,
              paint_on(v->cli, good ? PAINT_GOOD : PAINT_BAD),
              good                     ? "done"
              : t->ended               ? "no run"
              : t->state == RUN_FAILED ? "failed"
                                       : "stopped",
              paint_off(v->cli), (double)t->wall_ms / 1000, *t->problem ? t->problem : t->run);
}

/* The live last line on a terminal. It must not wrap, or it could not be erased. */
static void print_running(const struct suite_event *ev, struct arena *a)
{
    bool begins = ev->kind == SUITE_TASK_BEGINS;
    int columns = terminal_columns(stdout);

    printf("%.*s", columns > 0 ? columns - 1 : 0,
           arena_printf(a, "%zu of %zu done, %zu running%s%s", ev->done, ev->count, ev->running,
                        begins ? ": " : "", begins ? ev->task->name : ""));
}

static void on_event(struct suite_progress *self, const struct suite_event *ev)
{
    struct suite_lines *v = (struct suite_lines *)self;
    static const char *const names[] = {"suite", "task", "task end"};

    if (v->cli->json) {
        print_json(json_pack("{s:s, s:s, s:o, s:o, s:o, s:i, s:i, s:i}", "event", names[ev->kind],
                             "suite", ev->suite, "task",
                             json_from_string(ev->task ? ev->task->path : NULL), "run",
                             json_from_string(ev->task ? ev->task->run : NULL), "problem",
                             json_from_string(ev->task ? ev->task->problem : NULL), "done",
                             (int)ev->done, "running", (int)ev->running, "tasks", (int)ev->count));
        fflush(stdout);
        return;
    }
    if (v->cli->quiet)
        return;
    if (v->live)
        printf("\r\033[K");
    if (ev->kind == SUITE_BEGINS)
        print_fit(10, "suite     %s    %zu tasks, %zu of them done", ev->suite, ev->count,
                  ev->done);
    else if (ev->kind == SUITE_TASK_ENDS)
        print_end(v, ev);
    if (v->live && ev->running)
        print_running(ev, v->cli->a);
    fflush(stdout);
}

/* ---- table, CSV and page of a suite ------------------------------------------- */

static bool write_files(struct cli *cli, const struct suite_view *v, const char *dir,
                        struct error *err)
{
    struct buf csv = buf_init(MAX_TABLE), field = buf_init(MAX_TABLE);
    bool ok;

    report_suite_csv(v, &csv);
    report_field_csv(v, &field);
    /* The folder is on this machine; the suite may have begun on another. */
    ok = dir_make(dir, err) &&
         file_write(path_join(cli->a, dir, "suite.csv"), buf_text(&csv), err) &&
         file_write(path_join(cli->a, dir, "field.csv"), buf_text(&field), err) &&
         report_suite_write(v, path_join(cli->a, dir, "report.html"), err);
    buf_release(&csv);
    buf_release(&field);
    return ok;
}

static void print_view(struct cli *cli, const struct suite_view *v, const char *dir)
{
    struct buf b;

    if (cli->json) {
        json_t *o = report_suite_json(v);

        json_object_set_new(o, "event", json_string("result"));
        json_object_set_new(o, "csv", json_from_string(path_join(cli->a, dir, "suite.csv")));
        json_object_set_new(o, "field_csv", json_from_string(path_join(cli->a, dir, "field.csv")));
        json_object_set_new(o, "report", json_from_string(path_join(cli->a, dir, "report.html")));
        print_json(o);
        return;
    }
    b = buf_init(MAX_TABLE);
    buf_puts(&b, "\n");
    report_suite_text(v, terminal_columns(stdout), &b);
    print_page(&b, 10);
    buf_release(&b);
    print_fit(10, "suite     %s", v->suite->name);
    dir = short_path(dir, cli->a);
    print_fit(10, "table     %s/suite.csv, field.csv", dir);
    print_fit(10, "report    %s/report.html", dir);
}

static bool show_suite(struct cli *cli, const char *name, struct error *err)
{
    struct suite_record suite = {0};
    struct run_history *all = NULL;
    struct store *store = NULL;
    struct suite_view view;
    const char *dir;
    bool ok =
        store_open(cli->settings.runs_dir, cli->settings.store_url, STORE_READ, &store, err) &&
        suite_read(store, name, cli->a, &suite, err);

    all = arena_array(cli->a, suite.count + 1, sizeof(*all));
    for (size_t i = 0; ok && i < suite.count; i++)
        if (suite.tasks[i].run)
            ok = store_run_history(store, suite.tasks[i].run, cli->a, &all[i], err);
    if (ok) {
        view = (struct suite_view){.suite = &suite, .histories = all};
        dir = path_join(cli->a, store_dir(store), name);
        ok = write_files(cli, &view, dir, err);
        if (ok)
            print_view(cli, &view, dir);
    }
    for (size_t i = 0; i < suite.count; i++)
        run_history_release(&all[i]);
    store_close(store);
    return ok;
}

/* ---- the command ----------------------------------------------------------------- */

/* If so, the worked example must not be the answer, unless the user asked for that. */
static bool measures_a_model(const struct cli *cli)
{
    return strcmp(cli->settings.model, "builtin") != 0 &&
           strcmp(config_where(cli->config, "example"), "default") == 0;
}

/* Settings of the suite apply to each of its runs. */
static json_t *flags_for_runs(const struct cli *cli)
{
    json_t *list = json_array();

    for (size_t i = 0; i < config_key_count; i++) {
        const char *name = config_keys[i].name, *value = config_get(cli->config, name);

        if (!strcmp(config_where(cli->config, name), "default") || !strcmp(name, "runs") ||
            !strcmp(name, "set") || !strcmp(name, "shapes"))
            continue;
        if (!config_keys[i].value)
            json_array_append_new(list,
                                  json_sprintf("--%s%s", strcmp(value, "yes") ? "no-" : "", name));
        else
            json_array_append_new(list, json_sprintf("--%s=%s", name, value));
    }
    if (measures_a_model(cli))
        json_array_append_new(list, json_string("--example=other"));
    /* A task's prompt must not depend on which tasks were done before it. */
    if (!strcmp(config_where(cli->config, "memory"), "default"))
        json_array_append_new(list, json_string("--no-memory"));
    for (size_t i = 0; cli->settings.set && cli->settings.set[i]; i++)
        json_array_append_new(list, json_sprintf("--set=%s", cli->settings.set[i]));
    for (size_t i = 0; cli->settings.shapes && cli->settings.shapes[i]; i++)
        json_array_append_new(list, json_sprintf("--shapes=%s", cli->settings.shapes[i]));
    return list;
}

static bool read_jobs(const struct cli *cli, int *jobs, struct error *err)
{
    const char *text = flag_get(cli, "jobs");
    char *end;
    long n = text ? strtol(text, &end, 10) : 1;

    if (text && (*end || n < 1 || n > 64))
        return error_set(err, ERROR_USE, "--jobs: '%s' is not a number from 1 to 64", text);
    *jobs = (int)n;
    return true;
}

bool cmd_suite(struct cli *cli, int *code, struct error *err)
{
    struct suite_lines lines = {.progress = {.event = on_event},
                                .cli = cli,
                                .live = !cli->json && !cli->quiet && isatty(STDOUT_FILENO)};
    struct suite_options options = {
        .source = cli->word_count ? cli->words[0] : NULL,
        .resume = flag_get(cli, "resume"),
        .workers = flag_get(cli, "workers"),
        .builders = flag_get(cli, "builders"),
        .key_names = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", cli->settings.key_env}};
    struct error shown = {0};
    const char *name = NULL;
    bool ok;

    (void)code;
    if (!options.source == !options.resume) {
        error_set(err, ERROR_USE, "name a folder or a list of tasks, or --resume SUITE");
        return error_hint(err, "cutegen suite examples --jobs 2");
    }
    if (options.builders && !options.workers) {
        error_set(err, ERROR_USE, "--builders compile for workers, but there are no workers");
        return error_hint(err, "name them: --workers local:2 --builders local:2");
    }
    if (!read_jobs(cli, &options.jobs, err) || !flags_needs(cli, &options.needs, err) ||
        !flags_priority(cli, &options.priority, err))
        return false;
    options.flags = flags_for_runs(cli);
    if (options.builders)
        json_array_append_new(options.flags, json_string("--compile-on=queue"));
    ok = loop_suite(&cli->settings, &options, &lines.progress, cli->a, &name, err);
    json_decref(options.flags);
    /* Stopped, out of budget, or a broken machine: still show the results so far. */
    if (name && !show_suite(cli, name, ok ? err : &shown))
        return false;
    return ok;
}
