/* SPDX-License-Identifier: Apache-2.0 */
/* tool_judge.c - tools about one kernel: describe, evaluate, compare, profile, start. */
#include "mcp/tools.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 9 };

/* Runs a command that judges, when it is its turn; see command_run(). */
static bool judge(struct mcp_job *j, const struct mcp_command *c, const json_t **out,
                  struct error *why)
{
    bool ok;

    if (!job_enter(j))
        return error_set(why, ERROR_INTERRUPTED, "cancelled");
    ok = command_run(j, c, out, why);
    job_leave(j);
    return ok;
}

static bool task_command(struct mcp_job *j, const char *name, const json_t *args,
                         struct mcp_command *c, struct error *why)
{
    const char *task = NULL;

    *c = command_of(j->mcp, name);
    if (!argument_file(j, args, "task", "task_source", "task.py", &task, why))
        return false;
    command_word(c, task);
    return command_where(j, c, args, why);
}

/* ---- describe ------------------------------------------------------------------ */

static json_t *operators(const json_t *graph)
{
    json_t *list = json_array(), *node;
    size_t i;

    json_array_foreach(graph, i, node)
    {
        const char *op = json_string_or(node, "op", "input");

        if (strcmp(op, "input") && strcmp(op, "output") && json_array_size(list) < 200)
            json_array_append_new(list, json_string(op));
    }
    return list;
}

static void put_tensors(const json_t *list, const char *title, struct buf *out)
{
    json_t *t, *size;
    size_t i, d;

    json_array_foreach(list, i, t)
    {
        buf_printf(out, "%s %s %s (", title, json_string_or(t, "name", "?"),
                   json_string_or(t, "dtype", "?"));
        json_array_foreach(json_object_get(t, "shape"), d, size)
            buf_printf(out, "%s%lld", d ? ", " : "", (long long)json_integer_value(size));
        buf_puts(out, ")\n");
    }
}

bool tool_describe(struct mcp_job *j, const json_t *args, struct tool_reply *out, struct error *why)
{
    static const char *const kept[] = {"name",    "class",     "evidence",  "inputs", "outputs",
                                       "scalars", "bytes_min", "flops_min", "facts",  "scaled"};
    struct mcp_command c;
    const json_t *d;
    json_t *fact;
    size_t i;

    if (!task_command(j, "describe", args, &c, why) || !judge(j, &c, &d, why))
        return false;
    out->data = json_object();
    for (i = 0; i < ARRAY_LEN(kept); i++)
        if (json_object_get(d, kept[i]))
            json_object_set(out->data, kept[i], json_object_get(d, kept[i]));
    json_object_set_new(out->data, "operators", operators(json_object_get(d, "graph")));
    buf_printf(&out->text, "%s: %s (%s)\n", json_string_or(d, "name", "?"),
               json_string_or(d, "class", "?"), json_string_or(d, "evidence", ""));
    put_tensors(json_object_get(d, "inputs"), "in", &out->text);
    put_tensors(json_object_get(d, "outputs"), "out", &out->text);
    buf_puts(&out->text, "operators:");
    json_array_foreach(json_object_get(out->data, "operators"), i, fact)
        buf_printf(&out->text, " %s", json_string_value(fact));
    buf_printf(&out->text, "\nfloor: %.4g bytes, %.4g flops\n", json_double_or(d, "bytes_min", 0),
               json_double_or(d, "flops_min", 0));
    json_array_foreach(json_object_get(d, "facts"), i, fact)
        buf_printf(&out->text, "fact: %s\n", json_string_value(fact));
    return true;
}

/* ---- evaluate and profile --------------------------------------------------------- */

/* How a kernel given as text is called: languages are told by a file's end. */
static const char *source_name(const json_t *args)
{
    return kernel_file_name(json_string_or(args, "target", ""));
}

static bool eval_command(struct mcp_job *j, const json_t *args, const char *kernel,
                         const char *source, struct mcp_command *c, struct error *why)
{
    const char *file = NULL;

    if (!task_command(j, "eval", args, c, why) ||
        !argument_file(j, args, kernel, source, source_name(args), &file, why))
        return false;
    command_word(c, file);
    command_flag(c, "--events", NULL);
    return true;
}

bool tool_evaluate(struct mcp_job *j, const json_t *args, struct tool_reply *out, struct error *why)
{
    struct mcp_command c;
    const json_t *judged;

    if (!eval_command(j, args, "kernel", "source", &c, why))
        return false;
    if (json_bool_or(args, "accept", false))
        command_flag(&c, "--accept", NULL);
    if (!judge(j, &c, &judged, why))
        return false;
    out->data = brief_verdict(judged);
    brief_text(out->data, &out->text);
    reply_link(out, json_string_or(judged, "run", NULL), 1);
    return true;
}

bool tool_profile(struct mcp_job *j, const json_t *args, struct tool_reply *out, struct error *why)
{
    struct mcp_command c;
    const json_t *judged, *profile;

    if (!eval_command(j, args, "kernel", "source", &c, why))
        return false;
    command_flag(&c, "--profile", NULL);
    if (!judge(j, &c, &judged, why))
        return false;
    profile = json_object_get(judged, "profile");
    out->data = brief_verdict(judged);
    json_object_set_new(out->data, "profile", json_or_null(json_object_get(profile, "text")));
    json_object_set_new(out->data, "profiler", json_or_null(json_object_get(profile, "source")));
    brief_text(out->data, &out->text);
    if (json_string_or(profile, "text", NULL))
        buf_printf(&out->text, "profile (%s):\n%s\n", json_string_or(profile, "source", "?"),
                   json_string_or(profile, "text", ""));
    else
        buf_puts(&out->text, "only a kernel that passes is profiled\n");
    reply_link(out, json_string_or(judged, "run", NULL), 1);
    return true;
}

/* ---- compare ------------------------------------------------------------------------ */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), compare_doubles);
    return count ? (values[(count - 1) / 2] + values[count / 2]) / 2 : 0;
}

struct compared_kernel {
    struct mcp_command command;
    const json_t *judged; /* of the last round */
    double us[MAX_ROUNDS];
    int count;
};

/* Both must still pass; *both false: one does not. */
static bool judge_round(struct mcp_job *j, struct compared_kernel *sides, bool *both,
                        struct error *why)
{
    for (int s = 0; s < 2; s++) {
        if (!judge(j, &sides[s].command, &sides[s].judged, why))
            return false;
        *both = *both && !strcmp(json_string_or(sides[s].judged, "verdict", ""), "pass");
        sides[s].us[sides[s].count++] =
            json_double_or(json_object_get(sides[s].judged, "measurement"), "time_us", 0);
    }
    return true;
}

static void put_comparison(struct compared_kernel *sides, bool both, bool modelled,
                           struct tool_reply *out)
{
    double spread = 0, us[2], ratio;
    const char *faster = "none";
    int rounds = sides[0].count;

    for (int s = 0; s < 2; s++) {
        double middle = median(sides[s].us, sides[s].count); /* sorts */
        double width = middle > 0 ? (sides[s].us[sides[s].count - 1] - sides[s].us[0]) / middle : 0;

        us[s] = middle;
        spread = width > spread ? width : spread;
    }
    ratio = us[1] > 0 ? us[0] / us[1] : 0;
    if (both && us[0] > 0 && us[1] > 0 && (ratio > 1 + spread / 2 || ratio < 1 / (1 + spread / 2)))
        faster = ratio > 1 ? "b" : "a";
    out->data = json_pack("{s:s, s:o, s:o, s:o, s:f, s:i, s:b, s:o, s:o}", "faster", faster,
                          "ratio", both && ratio > 0 ? json_real(ratio) : json_null(), "a_us",
                          us[0] > 0 ? json_real(us[0]) : json_null(), "b_us",
                          us[1] > 0 ? json_real(us[1]) : json_null(), "spread", spread, "rounds",
                          rounds, "modelled", modelled, "a", brief_verdict(sides[0].judged), "b",
                          brief_verdict(sides[1].judged));
    if (!both)
        buf_puts(&out->text, "not compared: a kernel does not pass\n");
    else if (!strcmp(faster, "none"))
        buf_printf(&out->text, "no difference beyond the spread of %.1f %%\n", spread * 100);
    else
        buf_printf(&out->text, "%s is faster by %.2fx (%d rounds, spread %.1f %%%s)\n", faster,
                   ratio > 1 ? ratio : 1 / ratio, rounds, spread * 100,
                   !modelled ? ""
                   : json_bool_or(json_object_get(out->data, "a"), "unvalidated", false)
                       ? ", modelled, unvalidated, not measured"
                       : ", modelled, not measured");
    for (int s = 0; s < 2; s++) {
        buf_printf(&out->text, "-- %c\n", "ab"[s]);
        brief_text(json_object_get(out->data, s ? "b" : "a"), &out->text);
        reply_link(out, json_string_or(sides[s].judged, "run", NULL), 1);
    }
}

bool tool_compare(struct mcp_job *j, const json_t *args, struct tool_reply *out, struct error *why)
{
    struct compared_kernel sides[2] = {0};
    int rounds = (int)json_int_or(args, "rounds", 3);
    bool both = true, modelled = false;

    if (!eval_command(j, args, "kernel_a", "source_a", &sides[0].command, why) ||
        !eval_command(j, args, "kernel_b", "source_b", &sides[1].command, why))
        return false;
    for (int i = 0; i < rounds && both && !modelled; i++) {
        if (!judge_round(j, sides, &both, why))
            return false;
        /* A modelled time does not vary, so one round is enough. */
        modelled = json_bool_or(json_object_get(sides[0].judged, "measurement"), "modelled", false);
    }
    put_comparison(sides, both, modelled, out);
    return true;
}

/* ---- start -------------------------------------------------------------------------- */

bool tool_start(struct mcp_job *j, const json_t *args, struct tool_reply *out, struct error *why)
{
    bool first = strcmp(json_string_or(args, "which", "first"), "best") != 0;
    struct mcp_command c, show;
    const json_t *result, *best;
    struct text source;
    const char *run;

    if (!task_command(j, "run", args, &c, why))
        return false;
    command_flag(&c, "--model", "builtin");
    command_flag(&c, "--no-report", NULL);
    if (first) {
        command_flag(&c, "--depth", "0");
        command_flag(&c, "--fresh", NULL);
    }
    if (!judge(j, &c, &result, why))
        return false;
    run = json_string_or(result, "run", "last");
    best = json_object_get(json_object_get(result, "best"), "measurement");
    if (!json_bool_or(result, "found", false)) {
        error_set(why, ERROR_JUDGED, "the built-in engineer found no kernel for this task: %s",
                  json_string_or(result, "ended", ""));
        return error_hint(why, "write one to the ABI of cutegen://guide/abi; "
                               "cutegen://guide/cute says how");
    }
    show = command_of(j->mcp, "show");
    command_word(&show, run);
    command_flag(&show, "--source", NULL);
    if (!command_text(j, &show, &source, why))
        return false;
    out->data = json_pack("{s:o, s:s, s:o, s:b, s:b}", "source", json_from_text(source), "run", run,
                          "time_us", json_or_null(json_object_get(best, "time_us")), "modelled",
                          json_bool_or(best, "modelled", false), "unvalidated",
                          json_bool_or(best, "unvalidated", false));
    buf_printf(&out->text, "%s kernel of the built-in engineer, judged: pass, ",
               first ? "first" : "best");
    brief_time(out->data, &out->text);
    buf_printf(&out->text, "\n```cpp\n%.*s```\n", (int)source.len, source.data);
    reply_link(out, run, 0);
    return true;
}
