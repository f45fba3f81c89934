/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_run.c - `run` and `resume`: hand the options to the loop, show the result. */
#include "base/fs.h"
#include "base/log.h"
#include "cli/cmd.h"
#include "report/facts.h"

#include <string.h>

static void print_best(const struct cli *cli, const struct run_summary *s)
{
    double best = s->best_time.time_us, first = s->first_time.time_us;
    const struct accuracy *acc = &s->best_test.accuracy;
    bool modelled = s->best_time.modelled;
    bool trivial = s->best_time.trivial && *s->best_time.trivial;

    printf("\nbest      %sdepth %d", paint_on(cli, PAINT_BOLD), s->best.depth);
    if (best > 0)
        printf(", %s", show_us(best, cli->a));
    if (best > 0 && first > 0 && s->best.depth > 0 && !trivial)
        printf(", %.2fx over depth 0", first / best);
    if (best > 0 && modelled)
        printf(" (%s)", measurement_words(&s->best_time));
    printf("%s\n", paint_off(cli));
    if (trivial)
        print_fit(10, "trivial   %s", s->best_time.trivial);
    for (int i = 0; i < s->best_time.baseline_count && !modelled && !trivial; i++)
        if (s->best_time.baselines[i].cold_us > 0)
            printf("          %.2fx %s\n", s->best_time.baselines[i].cold_us / best,
                   s->best_time.baselines[i].name);
    if (s->accepted != ACCEPTED_NOT_ASKED)
        print_fit(10, "%s attempt %d: %s",
                  s->accepted == ACCEPTED_YES ? "accepted " : "NOT ACCEPTED", s->best.attempt,
                  s->accepted_why);
    if (acc->draws > 0)
        print_fit(10,
                  "checked   %d draw%s, max relative error %s (reference %s) against float64%s%s",
                  acc->draws, acc->draws == 1 ? "" : "s", error_text(acc->max_rel, cli->a),
                  error_text(acc->reference_max_rel, cli->a),
                  s->best_test.accuracy_class ? ", accuracy class " : "",
                  s->best_test.accuracy_class ? s->best_test.accuracy_class : "");
}

/* Prints nothing for the built-in engineer, which costs nothing. */
static void print_cost(const struct run_summary *s)
{
    if (s->tokens == 0 && s->cost_usd <= 0)
        return;
    printf("cost      ");
    if (s->unpriced == s->calls)
        printf("unknown, ");
    else
        printf("$%.4f%s, ", s->cost_usd, s->unpriced ? " and calls whose price is unknown" : "");
    printf("%d call%s, %lld tokens\n", s->calls, s->calls == 1 ? "" : "s", (long long)s->tokens);
}

static void print_summary(const struct cli *cli, const struct run_summary *s)
{
    if (s->found)
        print_best(cli, s);
    else
        printf("\n%sno correct kernel%s after %d attempt%s\n", paint_on(cli, PAINT_BAD),
               paint_off(cli), s->attempts, s->attempts == 1 ? "" : "s");
    print_cost(s);
    if (s->ended && *s->ended) {
        printf("ended     ");
        print_wrapped(stdout, s->ended, strlen(s->ended), 10, 10);
    }
    printf("run       %s\n", s->run_id);
    if (s->report_path)
        printf("report    %s\n", short_path(s->report_path, cli->a));
    if (s->found && s->accepted != ACCEPTED_NO)
        printf("next      cutegen export %s\n", s->run_id);
    else
        printf("next      cutegen show %s\n", s->run_id);
}

static json_t *summary_json(const struct run_summary *s)
{
    json_t *o = json_pack("{s:s, s:s?, s:o, s:o, s:b, s:i, s:i, s:o}", "event", "result", "run",
                          s->run_id, "dir", json_from_string(s->run_dir), "report",
                          json_from_string(s->report_path), "found", s->found, "depths", s->depths,
                          "attempts", s->attempts, "ended", json_from_string(s->ended));

    json_object_set_new(o, "accepted", json_string(accepted_names[s->accepted]));
    json_object_set_new(o, "accepted_why", json_from_string(s->accepted_why));
    json_object_set_new(o, "calls", json_integer(s->calls));
    json_object_set_new(o, "tokens", json_integer(s->tokens));
    json_object_set_new(o, "cost_usd",
                        s->calls && s->unpriced == s->calls ? json_null() : json_real(s->cost_usd));
    if (!s->found)
        return o;
    json_object_set_new(o, "best",
                        json_pack("{s:i, s:i, s:o, s:o, s:o}", "depth", s->best.depth, "attempt",
                                  s->best.attempt, "change", json_from_string(s->best.change),
                                  "measurement", measurement_json(&s->best_time), "accuracy",
                                  accuracy_json(&s->best_test.accuracy)));
    json_object_set_new(o, "first", measurement_json(&s->first_time));
    return o;
}

/* The report is made from the store, so a run that ended early also has one. */
static void add_report(const struct cli *cli, struct run_summary *s)
{
    struct error why = {0};

    s->report_path = NULL;
    if (flag_get(cli, "no-report") || write_report(cli, &s->run_id, 1, NULL, &s->report_path, &why))
        return;
    s->report_path = NULL;
    log_warn("%s", why.text);
}

static bool drive(struct cli *cli, const struct run_options *options, int *code, struct error *err)
{
    struct run_summary summary = {0};
    struct progress *progress = progress_new(cli);
    bool ok = loop_run(&cli->settings, options, progress, cli->a, &summary, err);

    progress_end(progress);
    if (summary.run_id)
        add_report(cli, &summary);
    /* Stopped by a budget or by Ctrl-C: still show what it found so far. */
    if (!ok && summary.found && !cli->json)
        print_summary(cli, &summary);
    if (!ok)
        return false;
    if (cli->json)
        print_json(summary_json(&summary));
    else
        print_summary(cli, &summary);
    *code = summary.found && summary.accepted != ACCEPTED_NO ? EXIT_DONE : EXIT_JUDGED;
    return true;
}

bool cmd_run(struct cli *cli, int *code, struct error *err)
{
    struct run_options options;

    config_run_options(cli->config, &options);
    options.task_path = cli->words[0];
    options.suite = flag_get(cli, "suite");
    if (!read_job(cli, err))
        return false;
    if (!file_exists(options.task_path)) {
        error_set(err, ERROR_USE, "there is no task file %s", options.task_path);
        return error_hint(err, "a task is a Python file with a Model and get_inputs(); see "
                               "examples/swish.py");
    }
    return drive(cli, &options, code, err);
}

bool cmd_tune(struct cli *cli, int *code, struct error *err)
{
    struct run_options options;

    config_run_options(cli->config, &options);
    options.task_path = cli->words[0];
    options.kernel_path = cli->words[1];
    options.given = true;
    for (int i = 0; i < 2; i++)
        if (!file_exists(cli->words[i])) {
            error_set(err, ERROR_USE, "there is no file %s", cli->words[i]);
            return error_hint(err, "cutegen tune TASK.py KERNEL.cu");
        }
    cli->settings.model = "builtin"; /* no model is asked, so no key is needed */
    return drive(cli, &options, code, err);
}

bool cmd_resume(struct cli *cli, int *code, struct error *err)
{
    struct run_options options;

    config_run_options(cli->config, &options);
    options.resume_id = cli->words[0];
    options.said = config_said(cli->config);
    options.suite = flag_get(cli, "suite");
    return drive(cli, &options, code, err);
}
