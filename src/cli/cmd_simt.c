/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_simt.c - `simt exec`: a program with simt as its GPU. */
#include "base/fs.h"
#include "base/json.h"
#include "cli/cmd.h"
#include "stage/stage.h"

#include <string.h>

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_SARIF };

static bool read_format(const char *name, enum format *out, struct error *err)
{
    static const char *const names[] = {"text", "json", "sarif"};

    *out = FORMAT_TEXT;
    for (size_t i = 0; name && i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum format)i;
            return true;
        }
    return !name || error_set(err, ERROR_USE, "there is no format %s (text, json, sarif)", name);
}

/* Counts the warnings, or everything graver. */
static size_t count(const json_t *report, bool warnings)
{
    const json_t *list = json_object_get(report, "findings");
    size_t n = 0;

    for (size_t i = 0; i < json_array_size(list); i++)
        n += json_bool_or(json_array_get(list, i), "warning", false) == warnings;
    return n;
}

static void print_summary(const json_t *report)
{
    size_t findings = count(report, false), warnings = count(report, true);
    long long launches = json_int_or(report, "launches", 0);
    size_t refused = json_array_size(json_object_get(report, "refused"));

    fprintf(stderr, "cutegen simt: %lld launch%s, %zu finding%s", launches,
            launches == 1 ? "" : "es", findings, findings == 1 ? "" : "s");
    if (warnings)
        fprintf(stderr, ", %zu warning%s", warnings, warnings == 1 ? "" : "s");
    if (refused)
        fprintf(stderr, ", %zu not run", refused);
    fputc('\n', stderr);
}

static bool write_out(const char *path, json_t *v, struct arena *a, struct error *err)
{
    char *line = arena_printf(a, "%s\n", json_line(v, a));

    json_decref(v);
    if (path)
        return file_write(path, text_of(line), err);
    fputs(line, stdout);
    return true;
}

bool cmd_simt_exec(struct cli *cli, int *code, struct error *err)
{
    enum format format;
    json_t *report = NULL;
    bool ok = true;

    if (!read_format(flag_get(cli, "format"), &format, err))
        return false;
    if (!stage_simt_exec(&cli->settings, cli->words, cli->a, &report, err))
        return false;
    if (count(report, false))
        *code = EXIT_JUDGED;
    else if (json_array_size(json_object_get(report, "refused")))
        *code = EXIT_MACHINE;
    else
        *code = (int)json_int_or(report, "exit", 0);
    if (!cli->quiet)
        print_summary(report);
    if (format != FORMAT_TEXT)
        ok = write_out(flag_get(cli, "output"),
                       format == FORMAT_SARIF ? stage_sarif(report) : json_incref(report), cli->a,
                       err);
    json_decref(report);
    return ok;
}
