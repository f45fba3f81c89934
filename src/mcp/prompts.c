/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prompts.c - the prompts of a run as MCP prompts: synthesis, repair.
 *
 * The protocol has no system messages: a run's system message becomes the first user message. For a
 * repair the kernel is judged first, to have a real verdict.
 */
#include "base/fs.h"
#include "mcp/tools.h"

#include <stdio.h>
#include <string.h>

enum { MAX_MESSAGE = 1 << 20 };

json_t *prompts_list(void)
{
    json_t *task = json_pack("{s:s, s:s, s:b}", "name", "task", "description",
                             "Path of the task (a Python file)", "required", 1);
    json_t *kernel = json_pack("{s:s, s:s, s:b}", "name", "kernel", "description",
                               "Path of the kernel that is wrong", "required", 1);
    json_t *target = json_pack("{s:s, s:s, s:b}", "name", "target", "description",
                               "cute (default), cuda, triton or cutedsl", "required", 0);
    json_t *list = json_pack("[{s:s, s:s, s:s, s:[O, O]}, {s:s, s:s, s:s, s:[O, O, O]}]", "name",
                             "synthesis", "title", "Write a first kernel", "description",
                             "A run's prompt for the first kernel of a task", "arguments", task,
                             target, "name", "repair", "title", "Repair a kernel", "description",
                             "Judges a kernel and gives a run's prompt for repairing it",
                             "arguments", task, kernel, target);

    json_decref(task);
    json_decref(kernel);
    json_decref(target);
    return json_pack("{s:o}", "prompts", list);
}

static void add_message(json_t *list, const char *role, struct text content)
{
    json_array_append_new(list,
                          json_pack("{s:s, s:{s:s, s:o}}", "role",
                                    strcmp(role, "assistant") ? "user" : "assistant", "content",
                                    "type", "text", "text", json_from_text(content)));
}

/* Judges the kernel and keeps the judgement in a file for `prompt --judged`. */
static bool judge_for(struct mcp_job *j, const char *task, const char *kernel, const char *target,
                      const char **file, struct error *why)
{
    struct mcp_command c = command_of(j->mcp, "eval");
    const json_t *judged;
    char *dir = NULL;
    bool ok;

    command_word(&c, task);
    command_word(&c, kernel);
    if (target)
        command_flag(&c, "--target", target);
    if (!job_enter(j))
        return error_set(why, ERROR_INTERRUPTED, "cancelled");
    ok = command_run(j, &c, &judged, why);
    job_leave(j);
    if (!ok || !job_folder(j, &dir, why))
        return false;
    *file = path_join(j->a, dir, "judged.json");
    return file_write(*file, text_of(json_line(judged, j->a)), why);
}

static bool prompt_command(struct mcp_job *j, const char *name, const json_t *args,
                           struct mcp_command *c, struct error *why)
{
    const char *task = NULL, *kernel = NULL, *judged = NULL;
    const char *target = json_string_or(args, "target", NULL);

    *c = command_of(j->mcp, "prompt");
    if (!argument_file(j, args, "task", "task_source", "task.py", &task, why))
        return false;
    command_word(c, task);
    if (target)
        command_flag(c, "--target", target);
    if (!strcmp(name, "synthesis"))
        return true;
    if (!argument_file(j, args, "kernel", "source", kernel_file_name(target), &kernel, why) ||
        !judge_for(j, task, kernel, target, &judged, why))
        return false;
    command_flag(c, "--stage", "repair");
    command_flag(c, "--kernel", kernel);
    command_flag(c, "--judged", judged);
    return true;
}

bool prompt_work(struct mcp_job *j, struct rpc_fault *fault)
{
    const char *name = json_string_or(j->params, "name", "");
    json_t *list, *message;
    const json_t *answer;
    struct error why = {0};
    struct mcp_command c;
    size_t i;

    if (strcmp(name, "synthesis") && strcmp(name, "repair"))
        return rpc_fail(fault, RPC_INVALID_PARAMS, "there is no prompt '%.80s'", name);
    if (!prompt_command(j, name, json_object_get(j->params, "arguments"), &c, &why) ||
        !command_run(j, &c, &answer, &why))
        return rpc_fail(fault, RPC_INVALID_PARAMS, "%.380s%s%.120s", why.text,
                        why.hint[0] ? "; " : "", why.hint);
    list = json_array();
    json_array_foreach(json_object_get(answer, "messages"), i, message)
    {
        json_t *content = json_object_get(message, "content");

        add_message(list, json_string_or(message, "role", "user"),
                    (struct text){json_string_value(content), json_string_length(content)});
    }
    j->result = json_pack("{s:s, s:o}", "description", name, "messages", list);
    return true;
}
