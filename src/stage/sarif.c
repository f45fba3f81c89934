/* SPDX-License-Identifier: Apache-2.0 */
/* sarif.c - write findings as SARIF 2.1.0, which code hosts show at the lines of a change. */
#include "base/json.h"
#include "stage/stage.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A path relative to the working folder, as annotations require. */
static json_t *uri_of(const char *file)
{
    char cwd[PATH_MAX], full[PATH_MAX];
    size_t n;

    if (!getcwd(cwd, sizeof cwd) || !realpath(file, full))
        return json_from_string(file);
    n = strlen(cwd);
    if (strncmp(full, cwd, n) == 0 && full[n] == '/')
        return json_from_string(full + n + 1);
    return json_sprintf("file://%s", full);
}

static json_t *location(const char *file, int64_t line)
{
    return json_pack("{s:{s:{s:o}, s:{s:I}}}", "physicalLocation", "artifactLocation", "uri",
                     uri_of(file), "region", "startLine", (json_int_t)(line > 0 ? line : 1));
}

static json_t *result_of(const json_t *f)
{
    json_t *related = json_array(), *place;
    const json_t *other = json_object_get(f, "other");
    const char *kind = json_string_or(f, "kind", "finding");
    json_t *r = json_pack("{s:s, s:s, s:{s:o}, s:[], s:o}", "ruleId", kind, "level",
                          json_bool_or(f, "warning", false) ? "warning" : "error", "message",
                          "text", json_sprintf("%s: %s", kind, json_string_or(f, "text", "")),
                          "locations", "relatedLocations", related);
    size_t i;

    if (json_object_get(f, "file"))
        json_array_append_new(json_object_get(r, "locations"),
                              location(json_string_or(f, "file", ""), json_int_or(f, "line", 1)));
    json_array_foreach(json_object_get(f, "path"), i, place) if (i > 0) json_array_append_new(
        related, location(json_string_or(place, "file", ""), json_int_or(place, "line", 1)));
    if (json_object_get(other, "file"))
        json_array_append_new(
            related, location(json_string_or(other, "file", ""), json_int_or(other, "line", 1)));
    return r;
}

static void add_rule(json_t *rules, const char *kind)
{
    const json_t *rule;
    size_t i;

    json_array_foreach(rules, i,
                       rule) if (strcmp(json_string_or(rule, "id", ""), kind) == 0) return;
    json_array_append_new(rules, json_pack("{s:s}", "id", kind));
}

json_t *stage_sarif(const json_t *report)
{
    json_t *rules = json_array(), *results = json_array(), *f;
    size_t i;

    json_array_foreach(json_object_get(report, "findings"), i, f)
    {
        add_rule(rules, json_string_or(f, "kind", "finding"));
        json_array_append_new(results, result_of(f));
    }
    return json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:s, s:o}}, s:o}]}", "$schema",
                     "https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0", "runs",
                     "tool", "driver", "name", "cutegen simt", "version", CUTEGEN_VERSION, "rules",
                     rules, "results", results);
}
