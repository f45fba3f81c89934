/* cmd_runs.c - `runs` and `show`: what the store remembers. */
#include "base/clock.h"
#include "base/json.h"
#include "cmd.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

static const char *state_text(const struct run_info *r)
{
    if (r->state == RUN_RUNNING && !r->alive)
        return "killed"; /* can be resumed */
    return run_state_names[r->state];
}

static json_t *number_or_null(double v)
{
    return v > 0 ? json_real(v) : json_null();
}

static json_t *info_json(const struct run_info *r)
{
    json_t *o =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:s, s:o, s:I, s:I, s:i, s:i}", "run", r->id, "task",
                  string_json(r->task), "model", string_json(r->model), "device",
                  string_json(r->device), "suite", string_json(r->suite), "state", state_text(r),
                  "reason", string_json(r->reason), "started_ms", (json_int_t)r->started_ms,
                  "ended_ms", (json_int_t)r->ended_ms, "attempts", r->attempts, "calls", r->calls);

    json_object_set_new(o, "best_depth",
                        r->best_depth >= 0 ? json_integer(r->best_depth) : json_null());
    json_object_set_new(o, "best_attempt",
                        r->best_attempt ? json_integer(r->best_attempt) : json_null());
    json_object_set_new(o, "first_us", number_or_null(r->first_us));
    json_object_set_new(o, "best_us", number_or_null(r->best_us));
    json_object_set_new(o, "eager_us", number_or_null(r->eager_us));
    json_object_set_new(o, "modelled", json_boolean(r->modelled));
    json_object_set_new(o, "tokens", json_integer(r->tokens));
    json_object_set_new(o, "cost_usd", json_real(r->cost_usd));
    return o;
}

/* ---- runs ------------------------------------------------------------------- */

static void print_runs(const struct cli *cli, const struct run_info *list, size_t count)
{
    bool modelled = false;

    printf("%-28s %-8s %-18s %-12s %8s %6s %11s %9s\n", "run", "state", "model", "device",
           "attempts", "depth", "best", "speed-up");
    for (size_t i = 0; i < count; i++) {
        const struct run_info *r = &list[i];
        const char *mark = r->modelled && r->best_us > 0 ? "*" : "";

        printf("%-28s %-8s %-18.18s %-12.12s %8d ", r->id, state_text(r), r->model, r->device,
               r->attempts);
        if (r->best_depth < 0)
            printf("%6s %11s %9s\n", "-", "-", "-");
        else
            printf("%6d %10s%1s %8.2fx\n", r->best_depth, show_us(r->best_us, cli->a), mark,
                   r->best_us > 0 ? r->first_us / r->best_us : 0);
        modelled = modelled || *mark;
    }
    if (modelled)
        printf("* modelled, not measured; speed-up is over depth 0\n");
}

bool cmd_runs(struct cli *cli, int *code, struct error *err)
{
    struct store *store = NULL;
    struct run_info *list = NULL;
    size_t count = 0;
    json_t *all;

    (void)code;
    if (!store_open(cli->settings.runs_dir, STORE_READ, &store, err))
        return false;
    if (!store_run_list(store, flag_get(cli, "suite"), cli->a, &list, &count, err)) {
        store_close(store);
        return false;
    }
    store_close(store);
    if (!cli->json && !count)
        printf("no runs yet; begin with: cutegen run examples/swish.py\n");
    else if (!cli->json)
        print_runs(cli, list, count);
    if (cli->json) {
        all = json_array();
        for (size_t i = 0; i < count; i++)
            json_array_append_new(all, info_json(&list[i]));
        print_json(json_pack("{s:o}", "runs", all));
    }
    return true;
}

/* ---- show ------------------------------------------------------------------- */

static json_t *attempt_json(const struct attempt_record *r, bool source)
{
    json_t *o =
        json_pack("{s:i, s:i, s:i, s:s, s:i, s:o, s:I, s:I, s:b}", "attempt", r->candidate.attempt,
                  "depth", r->candidate.depth, "repair", r->candidate.repair, "stage",
                  stage_names[r->stage], "parent", r->parent, "change",
                  string_json(r->candidate.change), "started_ms", (json_int_t)r->started_ms,
                  "ended_ms", (json_int_t)r->ended_ms, "kept", r->ended_ms && r->outcome.kept);

    if (r->ended_ms) {
        json_object_set_new(o, "step", json_string(attempt_step_names[r->outcome.step]));
        json_object_set_new(o, "judgement", verdict_json(&r->outcome.verdict));
    }
    if (r->ended_ms && r->outcome.build)
        json_object_set_new(o, "build_ms", json_integer(r->outcome.build->build_ms));
    if (r->ended_ms && r->outcome.test && r->outcome.test->accuracy.draws)
        json_object_set_new(o, "accuracy", accuracy_json(&r->outcome.test->accuracy));
    if (r->ended_ms && r->outcome.measurement)
        json_object_set_new(o, "measurement", measurement_json(r->outcome.measurement));
    if (source)
        json_object_set_new(o, "source", text_json(r->candidate.source));
    return o;
}

static json_t *calls_json(const struct run_history *h)
{
    json_t *list = json_array();

    for (size_t i = 0; i < h->call_count; i++) {
        const struct call_record *c = &h->calls[i];
        json_t *messages = json_array();

        for (size_t k = 0; k < c->message_count; k++)
            json_array_append_new(messages,
                                  json_pack("{s:s, s:o}", "role", c->messages[k].role, "content",
                                            text_json(c->messages[k].content)));
        json_array_append_new(list,
                              json_pack("{s:s, s:i, s:o, s:o, s:I, s:I}", "stage",
                                        stage_names[c->stage], "attempt", c->attempt, "messages",
                                        messages, "reply", text_json(c->reply.text),
                                        "prompt_tokens", (json_int_t)c->reply.prompt_tokens,
                                        "output_tokens", (json_int_t)c->reply.output_tokens));
    }
    return list;
}

static void print_attempts(const struct cli *cli, const struct run_history *h)
{
    printf("\nattempt depth  %-40s %-14s %10s\n", "change", "verdict",
           h->info.modelled ? "time*" : "time");
    for (size_t i = 0; i < h->attempt_count; i++) {
        const struct attempt_record *r = &h->attempts[i];
        const struct measurement *m = r->ended_ms ? r->outcome.measurement : NULL;
        const char *change = r->candidate.change ? r->candidate.change : "";

        if (r->candidate.repair)
            change = arena_printf(cli->a, "  repair %d: %s", r->candidate.repair, change);
        printf("%7d %5d  %-40.*s %-14s %10s%s\n", r->candidate.attempt, r->candidate.depth,
               (int)strcspn(change, "\n") < 40 ? (int)strcspn(change, "\n") : 40, change,
               r->ended_ms ? verdict_names[r->outcome.verdict.kind] : "cut short",
               m ? show_us(m->time_us, cli->a) : "",
               r->ended_ms && r->outcome.kept ? "  kept" : "");
    }
    if (h->info.modelled)
        printf("* modelled for %s, not measured\n", h->device.models ? h->device.models : "a GPU");
}

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

static void print_history(const struct cli *cli, const struct run_history *h)
{
    const struct run_info *r = &h->info;
    char began[25];

    clock_stamp(r->started_ms, began);
    printf("run       %s\nstate     %s%s%s\nbegan     %s\ntask      %s  %s\n", r->id, state_text(r),
           r->reason && *r->reason ? ": " : "", r->reason ? r->reason : "", began, r->task,
           h->task.path ? h->task.path : "");
    if (h->task.scaled)
        printf("scaled    %s\n", h->task.scaled);
    printf("engineer  %s        device  %s\n", r->model, show_device(&h->device, cli->a));
    if (r->best_depth >= 0)
        printf("best      depth %d (attempt %d), %s%s\n", r->best_depth, r->best_attempt,
               show_us(r->best_us, cli->a), r->modelled ? " (modelled)" : "");
    if (r->tokens)
        printf("model     %d calls, %lld tokens, %.4f USD\n", r->calls, (long long)r->tokens,
               r->cost_usd);
    print_attempts(cli, h);
    if (flag_get(cli, "calls"))
        print_calls(h);
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
        printf("  time%s    %s\n", r->outcome.measurement->modelled ? "*" : " ",
               show_us(r->outcome.measurement->time_us, cli->a));
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

static bool show_history(struct cli *cli, const struct run_history *h, struct error *err)
{
    const struct attempt_record *one;
    json_t *o, *list;

    if (!pick_attempt(cli, h, &one, err))
        return false;
    if (cli->json && one) {
        print_json(attempt_json(one, true));
    } else if (cli->json) {
        o = info_json(&h->info);
        list = json_array();
        for (size_t i = 0; i < h->attempt_count; i++)
            json_array_append_new(list, attempt_json(&h->attempts[i], false));
        json_object_set_new(o, "attempts", list);
        json_object_set(o, "options", h->options ? h->options : json_null());
        json_object_set(o, "environment", h->environment ? h->environment : json_null());
        if (flag_get(cli, "calls"))
            json_object_set_new(o, "calls", calls_json(h));
        print_json(o);
    } else if (one && flag_get(cli, "source")) {
        fwrite(one->candidate.source.data, 1, one->candidate.source.len, stdout);
    } else if (one) {
        print_attempt(cli, one);
    } else {
        print_history(cli, h);
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
    if (!store_open(cli->settings.runs_dir, STORE_READ, &store, err))
        return false;
    if (store_run_find(store, cli->words[0], cli->a, &id, err) &&
        store_run_history(store, id, cli->a, &h, err))
        ok = show_history(cli, &h, err);
    run_history_release(&h);
    store_close(store);
    return ok;
}
