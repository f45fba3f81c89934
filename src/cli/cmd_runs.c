/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_runs.c - `runs`, `show`, `report`: print what the store holds.
 *
 * The report room formats a run as text, JSON or a page; this file selects the part that was asked
 * for.
 */
#include "base/fs.h"
#include "base/json.h"
#include "cli/cmd.h"
#include "report/report.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PRINT = 64 << 20, RUNS_LIMIT = 100 };

/* ---- runs ------------------------------------------------------------------- */

static void print_runs(const struct cli *cli, const struct run_info *list, size_t count,
                       int64_t total)
{
    struct buf b = buf_init(MAX_PRINT);

    if (cli->json) {
        print_json(json_pack("{s:o, s:I}", "runs", report_runs_json(list, count), "total",
                             (json_int_t)total));
    } else if (!count) {
        printf("no runs yet; begin with: cutegen run examples/swish.py\n");
    } else {
        report_runs_text(list, count, terminal_columns(stdout), &b);
        print_page(&b, 2);
        if ((int64_t)count < total)
            printf("the newest %zu of %lld; --limit N shows more, --limit 0 all\n", count,
                   (long long)total);
    }
    buf_release(&b);
}

static bool read_limit(const struct cli *cli, int64_t *limit, struct error *err)
{
    const char *text = flag_get(cli, "limit");
    char *end;
    long n = text ? strtol(text, &end, 10) : RUNS_LIMIT;

    if (text && (*end || !*text || n < 0))
        return error_set(err, ERROR_USE, "--limit: '%s' is not a number of runs", text);
    *limit = n ? n : INT64_MAX;
    return true;
}

bool cmd_runs(struct cli *cli, int *code, struct error *err)
{
    struct store *store = NULL;
    struct run_info *list = NULL;
    int64_t limit, total;
    size_t count = 0;
    bool ok;

    (void)code;
    if (!read_limit(cli, &limit, err) ||
        !store_open(cli->settings.runs_dir, cli->settings.store_url, STORE_READ, &store, err))
        return false;
    ok = store_run_newest(store, flag_get(cli, "suite"), limit, cli->a, &list, &count, &total, err);
    store_close(store);
    if (ok)
        print_runs(cli, list, count, total);
    return ok;
}

/* ---- show ------------------------------------------------------------------- */

static void print_calls(const struct run_history *h)
{
    for (size_t i = 0; i < h->call_count; i++) {
        const struct call_record *c = &h->calls[i];

        printf("\n##### call %zu: %s, for attempt %d\n", i + 1, stage_names[c->stage], c->attempt);
        for (size_t k = 0; k < c->message_count; k++)
            printf("=== %s\n%.*s\n", c->messages[k].role, (int)c->messages[k].content.len,
                   c->messages[k].content.data);
        printf("=== reply\n%.*s\n", (int)c->reply.text.len, c->reply.text.data);
    }
}

static void print_attempt(const struct cli *cli, const struct attempt_record *r)
{
    printf("attempt   %d, depth %d: %s\n", r->candidate.attempt, r->candidate.depth,
           r->candidate.change ? r->candidate.change : "");
    if (!r->ended_ms) {
        printf("cut short before its verdict\n");
        return;
    }
    print_verdict(cli, &r->outcome.verdict, true);
    if (r->outcome.measurement && r->outcome.measurement->time_us > 0)
        printf("  time      %s%s\n", show_us(r->outcome.measurement->time_us, cli->a),
               r->outcome.measurement->modelled
                   ? arena_printf(cli->a, " (%s)", measurement_words(r->outcome.measurement))
                   : "");
    if (r->outcome.measurement && r->outcome.measurement->trivial &&
        *r->outcome.measurement->trivial)
        printf("  trivial   %s\n", r->outcome.measurement->trivial);
    if (r->acceptance && r->acceptance->verdict.kind == VERDICT_PASS)
        printf("  accepted  %s\n", r->acceptance->note);
    else if (r->acceptance)
        printf("  NOT ACCEPTED: %s: %s\n%s\n", verdict_names[r->acceptance->verdict.kind],
               r->acceptance->verdict.summary, r->acceptance->verdict.detail);
    if (r->profile && r->profile->text)
        printf("\nprofile (%s)\n%s\n", r->profile->source, r->profile->text);
}

/* The attempt asked for with --attempt, or the best with --source; NULL: the run as a whole. */
static bool pick_attempt(const struct cli *cli, const struct run_history *h,
                         const struct attempt_record **out, struct error *err)
{
    const char *text = flag_get(cli, "attempt");
    long n = text ? strtol(text, NULL, 10) : h->info.best_attempt;

    *out = NULL;
    if (!text && !flag_get(cli, "source"))
        return true;
    for (size_t i = 0; i < h->attempt_count; i++)
        if (h->attempts[i].candidate.attempt == n)
            *out = &h->attempts[i];
    if (*out)
        return true;
    if (text)
        error_set(err, ERROR_USE, "run %s has no attempt %s: it has %zu", h->info.id, text,
                  h->attempt_count);
    else
        error_set(err, ERROR_USE, "run %s has no correct kernel yet", h->info.id);
    return error_hint(err, "`cutegen show %s` lists its attempts", h->info.id);
}

/* The report's JSON object of one attempt, with its source. */
static json_t *attempt_json(json_t *run, const struct attempt_record *one)
{
    json_t *o, *found = NULL;
    size_t i;

    json_array_foreach(json_object_get(run, "attempts"), i,
                       o) if (json_int_or(o, "attempt", 0) == one->candidate.attempt) found =
        json_incref(o);
    found = found ? found : json_object();
    json_object_set_new(found, "source", json_from_text(one->candidate.source));
    return found;
}

static bool show_history(struct cli *cli, const struct run_history *h, struct error *err)
{
    const struct attempt_record *one;
    struct buf b;
    json_t *run;

    if (!pick_attempt(cli, h, &one, err))
        return false;
    if (cli->json) {
        run = report_run_json(h);
        print_json(one ? attempt_json(run, one) : json_incref(run));
        json_decref(run);
    } else if (one && flag_get(cli, "source")) {
        fwrite(one->candidate.source.data, 1, one->candidate.source.len, stdout);
    } else if (one) {
        print_attempt(cli, one);
    } else {
        b = buf_init(MAX_PRINT);
        report_text(h, terminal_columns(stdout), &b);
        print_page(&b, 9);
        buf_release(&b);
        if (flag_get(cli, "calls"))
            print_calls(h);
    }
    return true;
}

bool cmd_show(struct cli *cli, int *code, struct error *err)
{
    struct store *store = NULL;
    struct run_history h = {0};
    const char *id;
    bool ok = false;

    (void)code;
    if (!store_open(cli->settings.runs_dir, cli->settings.store_url, STORE_READ, &store, err))
        return false;
    if (store_run_find(store, cli->words[0], cli->a, &id, err) &&
        store_run_history(store, id, cli->a, &h, err))
        ok = show_history(cli, &h, err);
    run_history_release(&h);
    store_close(store);
    return ok;
}

/* ---- report ----------------------------------------------------------------- */

bool write_report(const struct cli *cli, const char *const *runs, int count, const char *path,
                  const char **written, struct error *err)
{
    struct run_history *all = arena_array(cli->a, (size_t)count, sizeof(*all));
    struct store *store = NULL;
    bool ok = store_open(cli->settings.runs_dir, cli->settings.store_url, STORE_READ, &store, err);
    const char *id;

    for (int i = 0; ok && i < count; i++)
        ok = store_run_find(store, runs[i], cli->a, &id, err) &&
             store_run_history(store, id, cli->a, &all[i], err);
    if (ok) {
        *written = path ? path
                        : path_join(cli->a, path_join(cli->a, store_dir(store), all[0].info.id),
                                    "report.html");
        ok = report_write(all, (size_t)count, *written, err);
    }
    for (int i = 0; i < count; i++)
        run_history_release(&all[i]);
    store_close(store);
    return ok;
}

bool cmd_report(struct cli *cli, int *code, struct error *err)
{
    const char *path = NULL;

    (void)code;
    if (!write_report(cli, cli->words, cli->word_count, flag_get(cli, "output"), &path, err))
        return false;
    if (cli->json)
        print_json(json_pack("{s:o}", "report", json_from_string(path)));
    else
        printf("%s\n", path);
    return true;
}
