/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resources.c - the resources: guides, runs, evidence, reports.
 *
 *     cutegen://guide/NAME                  texts of the product
 *     cutegen://runs                        the list of runs
 *     cutegen://run/ID[/attempt/N|/source|/report]
 *
 * A name is looked up in a table or in the store; it is never used as a path.
 */
#include "base/fs.h"
#include "mcp/command.h"

#include <stdio.h>
#include <string.h>

enum { MAX_GUIDE = 1 << 20, MAX_REPORT = 32 << 20, MAX_LISTED = 20 };

#define SCHEME "cutegen://"

static const struct guide {
    const char *name, *file, *type, *title;
} guides[] = {
    {"abi", "prompts/abi.md", "text/markdown", "Kernel ABI: what a .cu file must contain"},
    {"kernel.h", "include/cutegen/kernel.h", "text/x-c", "Kernel ABI: the header"},
    {"cute", "prompts/guide.md", "text/markdown", "CuTe: writing it right, finding what is wrong"},
    {"pointwise", "prompts/class-pointwise.md", "text/markdown", "Pointwise kernels"},
    {"reduction", "prompts/class-reduction.md", "text/markdown", "Reductions and norms"},
    {"gemm", "prompts/class-gemm.md", "text/markdown", "Matrix products"},
    {"convolution", "prompts/class-convolution.md", "text/markdown", "Convolutions"},
    {"attention", "prompts/class-attention.md", "text/markdown", "Attention"},
    {"other", "prompts/class-other.md", "text/markdown", "Other kernels"},
    {"triton-abi", "prompts/triton/abi.md", "text/markdown",
     "Triton: what a .py file must contain"},
    {"triton", "prompts/triton/guide.md", "text/markdown", "Triton: writing it right"},
    {"cutedsl-abi", "prompts/cutedsl/abi.md", "text/markdown",
     "CuTe DSL: what a .py file must contain"},
    {"cutedsl", "prompts/cutedsl/guide.md", "text/markdown", "CuTe DSL: writing it right"},
    {"profile", "prompts/profile-reading.md", "text/markdown", "How to read a profile"},
};

static json_t *described(const char *uri, const char *name, const char *title, const char *type)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "uri", uri, "name", name, "title", title, "mimeType",
                     type);
}

json_t *resource_templates(void)
{
    static const char *const rows[][4] = {
        {SCHEME "run/{run}", "run", "A run: attempts, verdicts, times", "application/json"},
        {SCHEME "run/{run}/attempt/{attempt}", "attempt", "All evidence of one attempt",
         "application/json"},
        {SCHEME "run/{run}/source", "source", "The best kernel of a run", "text/x-c"},
        {SCHEME "run/{run}/report", "report", "The report of a run", "text/html"}};
    json_t *list = json_array();

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:s}", "uriTemplate", rows[i][0], "name",
                                        rows[i][1], "title", rows[i][2], "mimeType", rows[i][3]));
    return json_pack("{s:o}", "resourceTemplates", list);
}

static void set_cache(struct mcp_job *j, int ttl_ms)
{
    if (j->revision != REVISION_2026_07)
        return;
    json_object_set_new(j->result, "ttlMs", json_integer(ttl_ms));
    json_object_set_new(j->result, "cacheScope", json_string("private"));
}

bool resources_list_work(struct mcp_job *j, struct rpc_fault *fault)
{
    struct mcp_command c = command_of(j->mcp, "runs");
    json_t *list = json_array(), *run;
    const json_t *runs = NULL;
    struct error ignored = {0};
    char uri[200], title[300];
    size_t i;

    (void)fault;
    for (i = 0; i < ARRAY_LEN(guides); i++) {
        snprintf(uri, sizeof(uri), SCHEME "guide/%s", guides[i].name);
        json_array_append_new(list,
                              described(uri, guides[i].name, guides[i].title, guides[i].type));
    }
    json_array_append_new(list, described(SCHEME "runs", "runs", "All runs", "application/json"));
    if (command_run(j, &c, &runs, &ignored)) /* no store yet: no runs */
        json_array_foreach(json_object_get(runs, "runs"), i, run)
        {
            if (i == MAX_LISTED)
                break;
            snprintf(uri, sizeof(uri), SCHEME "run/%s", json_string_or(run, "run", ""));
            snprintf(title, sizeof(title), "%.100s: %.60s", json_string_or(run, "task", "?"),
                     json_string_or(run, "state", "?"));
            json_array_append_new(
                list, described(uri, json_string_or(run, "run", "?"), title, "application/json"));
        }
    j->result = json_pack("{s:o}", "resources", list);
    set_cache(j, 0);
    return true;
}

/* ---- reading --------------------------------------------------------------------- */

struct content {
    struct text text;
    const char *type;
};

static bool read_guide(struct mcp_job *j, const char *name, struct content *out, struct error *why)
{
    char *path = NULL;

    for (size_t i = 0; i < ARRAY_LEN(guides); i++) {
        if (strcmp(guides[i].name, name) != 0)
            continue;
        out->type = guides[i].type;
        return home_data(guides[i].file, j->a, &path, why) &&
               file_read(path, MAX_GUIDE, j->a, &out->text, why);
    }
    return error_set(why, ERROR_USE, "there is no guide '%.80s'", name);
}

static bool read_json(struct mcp_job *j, const struct mcp_command *c, struct content *out,
                      struct error *why)
{
    const json_t *answer;

    if (!command_run(j, c, &answer, why))
        return false;
    out->type = "application/json";
    out->text = text_of(json_line(answer, j->a));
    return true;
}

static bool read_report(struct mcp_job *j, const char *run, struct content *out, struct error *why)
{
    struct mcp_command c = command_of(j->mcp, "report");
    const json_t *answer;

    command_word(&c, run);
    out->type = "text/html";
    return command_run(j, &c, &answer, why) &&
           file_read(json_string_or(answer, "report", ""), MAX_REPORT, j->a, &out->text, why);
}

static bool read_run(struct mcp_job *j, const char *rest, struct content *out, struct error *why)
{
    struct mcp_command c = command_of(j->mcp, "show");
    const char *part = strchrnul(rest, '/'), *run;
    json_t *name = json_pack("{s:s#}", "run", rest, (int)(part - rest));

    json_own(j->a, name);
    if (!argument_run(name, &run, why))
        return false;
    command_word(&c, run);
    if (!strcmp(part, "/report"))
        return read_report(j, run, out, why);
    if (!strcmp(part, "/source")) {
        command_flag(&c, "--source", NULL);
        out->type = "text/x-c";
        return command_text(j, &c, &out->text, why);
    }
    if (!strncmp(part, "/attempt/", 9) && part[9] && strspn(part + 9, "0123456789") < 8 &&
        !part[9 + strspn(part + 9, "0123456789")])
        command_flag(&c, "--attempt", part + 9);
    else if (*part)
        return error_set(why, ERROR_USE, "a run has /attempt/N, /source and /report");
    return read_json(j, &c, out, why);
}

bool resource_read_work(struct mcp_job *j, struct rpc_fault *fault)
{
    const char *uri = json_string_or(j->params, "uri", ""), *rest = uri + strlen(SCHEME);
    struct content content = {.type = "text/plain"};
    struct error why = {0};
    bool ok;

    if (strncmp(uri, SCHEME, strlen(SCHEME)) != 0) {
        ok = error_set(&why, ERROR_USE, "resources here begin with " SCHEME);
    } else if (!strncmp(rest, "guide/", 6)) {
        ok = read_guide(j, rest + 6, &content, &why);
    } else if (!strcmp(rest, "runs")) {
        struct mcp_command c = command_of(j->mcp, "runs");

        ok = read_json(j, &c, &content, &why);
    } else if (!strncmp(rest, "run/", 4)) {
        ok = read_run(j, rest + 4, &content, &why);
    } else {
        ok = error_set(&why, ERROR_USE, "there is no such resource");
    }
    if (!ok) {
        fault->data = json_pack("{s:s}", "uri", uri);
        return rpc_fail(fault,
                        j->revision == REVISION_2026_07 ? RPC_INVALID_PARAMS : RPC_NO_RESOURCE,
                        "%.400s", why.text);
    }
    j->result = json_pack("{s:[{s:s, s:s, s:o}]}", "contents", "uri", uri, "mimeType", content.type,
                          "text", json_from_text(content.text));
    set_cache(j, strncmp(rest, "guide/", 6) ? 0 : 3600 * 1000);
    return true;
}
