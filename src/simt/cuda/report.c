/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - report a launch's findings: a line on stderr at once, and a JSON line for `simt exec`.
 *
 * Lines are appended in one write each, so that processes which share the file do not mix.
 */
#include "simt/cuda/cuda.h"

#include "base/json.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void write_line(const struct cuda *c, json_t *v)
{
    struct arena *a = arena_new();
    char *line = arena_printf(a, "%s\n", json_line(v, a));
    size_t len = strlen(line);

    if (c->report_fd >= 0 && write(c->report_fd, line, len) != (ssize_t)len)
        fputs("cutegen simt: the report cannot be written\n", stderr);
    json_decref(v);
    arena_free(a);
}

static void print_finding(const struct simt_finding *f)
{
    const char *text = f->text && *f->text ? f->text : f->what ? f->what : "";

    fprintf(stderr, "cutegen simt: %s: %s\n", simt_finding_name(f->kind), text);
}

void report_launch(struct cuda *c, const char *kernel, const struct simt_result *r)
{
    json_t *findings = json_array();

    if (r->printed && *r->printed) {
        fputs(r->printed, stdout);
        fflush(stdout);
    }
    for (size_t i = 0; i < r->finding_count; i++) {
        print_finding(&r->findings[i]);
        json_array_append_new(findings, simt_finding_json(&r->findings[i]));
    }
    if (r->outcome == SIMT_BAD_LAUNCH)
        cuda_say("%s cannot be launched: %s", kernel, r->text ? r->text : "");
    if (r->finding_count == 0 && r->outcome == SIMT_OK && c->report_fd < 0) {
        json_decref(findings);
        return;
    }
    write_line(c, json_pack("{s:s, s:I, s:s, s:o, s:f, s:o}", "kernel", kernel, "launch",
                            (json_int_t)c->launches, "outcome", simt_outcome_name(r->outcome),
                            "findings", findings, "seconds", r->seconds, "text",
                            json_from_string(r->outcome == SIMT_OK || !r->text ? "" : r->text)));
}

void report_refusal(struct cuda *c, const char *kernel, const struct error *err)
{
    cuda_say("%s: %s%s%s", kernel, err->text, *err->hint ? "; " : "", err->hint);
    write_line(c, json_pack("{s:s, s:I, s:s, s:[], s:o}", "kernel", kernel, "launch",
                            (json_int_t)c->launches, "outcome", "refused", "findings", "text",
                            json_from_string(err->text)));
}
