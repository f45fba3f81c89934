/* SPDX-License-Identifier: Apache-2.0 */
/* tool_run.c - tools about runs (run, status, export), and the search in CuTe. */
#include "mcp/tools.h"

#include <stdio.h>
#include <string.h>

/* ---- search ------------------------------------------------------------------- */

bool tool_search(struct mcp_job *j, const json_t *args, struct tool_reply *out, struct error *why)
{
    struct mcp_command c = command_of(j->mcp, "search");
    const json_t *found;
    json_t *one;
    size_t i;

    command_flag(&c, "--max", arena_printf(j->a, "%lld", (long long)json_int_or(args, "max", 4)));
    command_word(&c, json_string_or(args, "query", ""));
    if (!command_run(j, &c, &found, why))
        return false;
    out->data = json_pack("{s:O}", "passages", json_object_get(found, "passages"));
    json_array_foreach(json_object_get(out->data, "passages"), i, one)
        buf_printf(&out->text, "%s%s\n%s\n", i ? "\n" : "", json_string_or(one, "where", "?"),
                   json_string_or(one, "text", ""));
    if (!i)
        buf_puts(&out->text, "nothing found; name a function, a type or a word of the guides\n");
    return true;
}

/* ---- run ------------------------------------------------------------------------ */

static void on_run_event(void *ctx, const json_t *event)
{
    const char *id = json_string_or(event, "run", NULL);
    struct mcp_job *j = ctx;

    if (!id)
        return;
    pthread_mutex_lock(&j->mcp->lock);
    snprintf(j->run, sizeof(j->run), "%s", id);
    pthread_cond_broadcast(&j->mcp->changed);
    pthread_mutex_unlock(&j->mcp->lock);
}

static void run_options(struct mcp_job *j, const json_t *args, struct mcp_command *c)
{
    static const char *const keys[][2] = {{"depth", "--depth"},
                                          {"budget_minutes", "--budget-minutes"}};
    const char *model = json_string_or(args, "model", NULL);

    if (model)
        command_flag(c, "--model", model);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (json_object_get(args, keys[i][0]))
            command_flag(c, keys[i][1],
                         arena_printf(j->a, "%lld", (long long)json_int_or(args, keys[i][0], 0)));
    if (json_object_get(args, "budget_usd"))
        command_flag(c, "--budget-usd",
                     arena_printf(j->a, "%.6f", json_double_or(args, "budget_usd", 0)));
}

/* Runs the whole loop in this job. */
static bool run_to_its_end(struct mcp_job *j, const json_t *args, const json_t **result,
                           struct error *why)
{
    struct mcp_command c = command_of(j->mcp, "run");
    const char *task = NULL;

    c.keys = true;
    c.event = on_run_event;
    c.ctx = j;
    if (!argument_file(j, args, "task", "task_source", "task.py", &task, why) ||
        !command_where(j, &c, args, why))
        return false;
    command_word(&c, task);
    run_options(j, args, &c);
    return command_run(j, &c, result, why);
}

static bool background_work(struct mcp_job *j, struct rpc_fault *fault)
{
    struct error why = {0};
    const json_t *result;

    if (!run_to_its_end(j, json_object_get(j->params, "arguments"), &result, &why))
        return rpc_fail(fault, RPC_INTERNAL, "%.380s%s%.120s", why.text, why.hint[0] ? "; " : "",
                        why.hint);
    j->result = json_deep_copy(result);
    return true;
}

static json_t *ended_data(const json_t *result)
{
    const json_t *best = json_object_get(json_object_get(result, "best"), "measurement");

    return json_pack("{s:s, s:s, s:o, s:o}", "run", json_string_or(result, "run", "?"), "state",
                     json_bool_or(result, "found", false) ? "done" : "done, no correct kernel",
                     "best_us", json_or_null(json_object_get(best, "time_us")), "attempts",
                     json_or_null(json_object_get(result, "attempts")));
}

/* Waits until the store has the run's id, or the run has failed. */
static bool wait_for_run(struct mcp_job *j, struct mcp_job *b, struct tool_reply *out,
                         struct error *why)
{
    struct mcp *m = j->mcp;
    json_t *done = NULL;
    bool ok = false;

    pthread_mutex_lock(&m->lock);
    while (!b->run[0] && !b->ended && !atomic_load(&j->cancel))
        pthread_cond_wait(&m->changed, &m->lock);
    if (atomic_load(&j->cancel)) {
        atomic_store(&b->cancel, true);
        error_set(why, ERROR_INTERRUPTED, "cancelled");
    } else if (b->fault.code) {
        error_set(why, ERROR_USE, "%s", b->fault.text);
    } else {
        ok = true;
        done = json_deep_copy(b->result); /* a copy, since it belongs to another thread */
        out->data = b->ended ? ended_data(done)
                             : json_pack("{s:s, s:s, s:n, s:n}", "run", b->run, "state", "running",
                                         "best_us", "attempts");
    }
    pthread_mutex_unlock(&m->lock);
    json_decref(done);
    return ok;
}

bool tool_run(struct mcp_job *j, const json_t *args, struct tool_reply *out, struct error *why)
{
    struct rpc_fault fault = {0};
    const json_t *result;
    struct mcp_job *b;
    bool ok = true;

    if (j->task_id[0]) { /* the client polls the task, so it need not get the run's id at once */
        if (!run_to_its_end(j, args, &result, why))
            return false;
        out->data = ended_data(result);
    } else {
        b = job_background(j, background_work, &fault);
        if (!b)
            return error_set(why, ERROR_BUSY, "%s", fault.text);
        ok = wait_for_run(j, b, out, why);
        job_drop(b);
    }
    if (!ok)
        return false;
    buf_printf(&out->text, "run %s: %s\nrun_status tells more\n",
               json_string_or(out->data, "run", "?"), json_string_or(out->data, "state", "?"));
    reply_link(out, json_string_or(out->data, "run", NULL), 0);
    return true;
}

/* ---- status --------------------------------------------------------------------- */

/* Ends a run driven by this server; false: there is none. */
static bool stop_run(struct mcp *m, const char *id)
{
    struct mcp_job *found = NULL;

    pthread_mutex_lock(&m->lock);
    for (struct mcp_job *j = m->jobs; j && !found; j = j->next)
        if (!strcmp(j->run, id) && !j->ended)
            found = j;
    if (found) {
        found->refs++;
        atomic_store(&found->cancel, true);
        while (!found->ended)
            pthread_cond_wait(&m->changed, &m->lock);
    }
    pthread_mutex_unlock(&m->lock);
    if (found)
        job_drop(found);
    return found != NULL;
}

/* Of a kernel of several parts: which takes longest. */
static void put_costliest(struct buf *b, const json_t *parts)
{
    const json_t *list = json_object_get(parts, "list"), *one, *most = NULL;
    size_t i;

    json_array_foreach((json_t *)list, i, one)
    {
        if (json_double_or(one, "share", 0) > json_double_or(most, "share", 0))
            most = one;
    }
    if (most)
        buf_printf(b, "; of its %zu parts, part %d (%s) takes %.0f %% of the time",
                   json_array_size(list), (int)json_int_or(most, "part", 0),
                   json_string_or(most, "operators", ""), 100 * json_double_or(most, "share", 0));
}

bool tool_status(struct mcp_job *j, const json_t *args, struct tool_reply *out, struct error *why)
{
    static const char *const kept[] = {"run",          "state",    "task",    "attempts",
                                       "best_attempt", "first_us", "best_us", "modelled",
                                       "unvalidated",  "reason",   "parts"};
    struct mcp_command c = command_of(j->mcp, "show");
    const json_t *run, *attempts;
    const char *id, *last;

    if (!argument_run(args, &id, why))
        return false;
    if (json_bool_or(args, "stop", false) && !stop_run(j->mcp, id)) {
        error_set(why, ERROR_USE, "this server drives no run %s", id);
        return error_hint(why, "it has ended, or another process drives it");
    }
    command_word(&c, id);
    if (!command_run(j, &c, &run, why))
        return false;
    attempts = json_object_get(run, "attempts");
    last = json_string_or(json_array_get(attempts, json_array_size(attempts) - 1), "verdict", NULL);
    out->data = json_object();
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        json_object_set_new(out->data, kept[i], json_or_null(json_object_get(run, kept[i])));
    json_object_set_new(out->data, "attempts", json_integer((json_int_t)json_array_size(attempts)));
    json_object_set_new(out->data, "last_verdict", last ? json_string(last) : json_null());
    buf_printf(&out->text, "run %s: %s, %zu attempts", json_string_or(run, "run", id),
               json_string_or(run, "state", "?"), json_array_size(attempts));
    if (json_double_or(run, "best_us", 0) > 0)
        buf_printf(&out->text, ", best %.4g us%s, first %.4g us", json_double_or(run, "best_us", 0),
                   !json_bool_or(run, "modelled", false) ? ""
                   : json_bool_or(run, "unvalidated", false)
                       ? " (modelled, unvalidated, not measured)"
                       : " (modelled, not measured)",
                   json_double_or(run, "first_us", 0));
    put_costliest(&out->text, json_object_get(run, "parts"));
    buf_printf(&out->text, "%s%s\n", last ? ", last verdict: " : "", last ? last : "");
    reply_link(out, json_string_or(run, "run", NULL), 0);
    return true;
}

/* ---- export --------------------------------------------------------------------- */

bool tool_export(struct mcp_job *j, const json_t *args, struct tool_reply *out, struct error *why)
{
    static const char *const kept[] = {"run", "dir", "module", "source", "wheel", "scaled", "code"};
    struct mcp_command c = command_of(j->mcp, "export");
    const char *id, *dir = json_string_or(args, "output", NULL);
    const json_t *made;

    if (!argument_run(args, &id, why) || (dir && !path_allowed(j->mcp, dir, j->a, why)))
        return false;
    if (dir)
        command_flag(&c, "--output", dir);
    if (json_string_or(args, "layout", NULL))
        command_flag(&c, "--layout", json_string_or(args, "layout", ""));
    command_word(&c, id);
    if (!command_run(j, &c, &made, why))
        return false;
    out->data = json_object();
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        json_object_set_new(out->data, kept[i], json_or_null(json_object_get(made, kept[i])));
    buf_printf(&out->text, "exported to %s\n", json_string_or(made, "dir", "?"));
    if (json_string_or(made, "scaled", NULL))
        buf_printf(&out->text, "for reduced sizes only: %s\n", json_string_or(made, "scaled", ""));
    return true;
}
