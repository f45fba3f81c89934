/* SPDX-License-Identifier: Apache-2.0 */
/*
 * brief.c - a short judgement: first the cause, then the line, then the fix.
 *
 * A model reads this many times in one conversation; details are in the evidence resource.
 */
#include "base/text.h"
#include "mcp/tools.h"

#include <stdio.h>
#include <string.h>

enum { MAX_SENTENCE = 600, MAX_LINE = 200 };

json_t *json_or_null(json_t *v)
{
    return v ? json_incref(v) : json_null();
}

/* A non-empty string, truncated; else null. */
static json_t *cut_string(const json_t *v, size_t most)
{
    struct text t = {json_string_value(v), json_string_length(v)};

    t = t.data ? text_trim(t) : t;
    if (!t.data || !t.len)
        return json_null();
    t = text_cut(t, most);
    return json_stringn(t.data, t.len);
}

static json_t *eager_speedup(const json_t *measurement)
{
    double time = json_double_or(measurement, "time_us", 0), eager = 0;
    json_t *one;
    size_t i;

    json_array_foreach(json_object_get(measurement, "baselines"), i,
                       one) if (!strcmp(json_string_or(one, "name", ""), "eager")) eager =
        json_double_or(one, "cold_us", 0);
    return time > 0 && eager > 0 && !json_bool_or(measurement, "modelled", false)
               ? json_real(eager / time)
               : json_null();
}

json_t *brief_verdict(const json_t *judged)
{
    const json_t *m = json_object_get(judged, "measurement");
    const json_t *first = json_array_get(json_object_get(judged, "findings"), 0);
    const char *verdict = json_string_or(judged, "verdict", "?");
    const char *run = json_string_or(judged, "run", NULL);
    bool pass = !strcmp(verdict, "pass");
    char evidence[200];
    json_t *o = json_pack("{s:s, s:b}", "verdict", verdict, "pass", pass);

    snprintf(evidence, sizeof(evidence), "cutegen://run/%s/attempt/1", run ? run : "");
    json_object_set_new(o, "cause",
                        pass ? json_null()
                             : cut_string(json_object_get(judged, "summary"), MAX_SENTENCE));
    json_object_set_new(o, "where", cut_string(json_object_get(first, "where"), MAX_LINE));
    json_object_set_new(o, "line", cut_string(json_object_get(first, "line"), MAX_LINE));
    json_object_set_new(
        o, "fix", pass ? json_null() : cut_string(json_object_get(judged, "advice"), MAX_SENTENCE));
    json_object_set_new(o, "time_us", json_or_null(json_object_get(m, "time_us")));
    json_object_set_new(o, "modelled", json_boolean(json_bool_or(m, "modelled", false)));
    json_object_set_new(o, "unvalidated", json_boolean(json_bool_or(m, "unvalidated", false)));
    json_object_set_new(o, "floor_us", json_or_null(json_object_get(m, "floor_us")));
    json_object_set_new(o, "bound", json_or_null(json_object_get(m, "bound")));
    json_object_set_new(o, "speedup", eager_speedup(m));
    json_object_set_new(
        o, "max_rel_error",
        json_or_null(json_object_get(json_object_get(judged, "accuracy"), "max_rel")));
    json_object_set_new(o, "run", run ? json_string(run) : json_null());
    json_object_set_new(o, "evidence", run ? json_string(evidence) : json_null());
    return o;
}

void brief_time(const json_t *brief, struct buf *out)
{
    double us = json_double_or(brief, "time_us", 0);

    if (us <= 0)
        return;
    buf_printf(out, "%.4g us%s", us,
               !json_bool_or(brief, "modelled", false) ? ""
               : json_bool_or(brief, "unvalidated", false)
                   ? " (modelled, unvalidated, not measured)"
                   : " (modelled, not measured)");
}

/* Appends text as one line, so that a candidate's exception text cannot imitate a line of the
 * judge. */
static void put_flat(const char *text, struct buf *out)
{
    for (; *text; text++)
        buf_putc(out, (unsigned char)*text < ' ' || *text == 127 ? ' ' : *text);
}

static void put_member(const json_t *brief, const char *key, const char *title, struct buf *out)
{
    const char *text = json_string_or(brief, key, NULL);

    if (!text)
        return;
    buf_printf(out, "%s: ", title);
    put_flat(text, out);
    buf_putc(out, '\n');
}

void brief_text(const json_t *brief, struct buf *out)
{
    double time = json_double_or(brief, "time_us", 0);
    double floor = json_double_or(brief, "floor_us", 0);

    buf_printf(out, "verdict: %s\n", json_string_or(brief, "verdict", "?"));
    put_member(brief, "cause", "cause", out);
    if (json_string_or(brief, "where", NULL)) {
        buf_puts(out, "line: ");
        put_flat(json_string_or(brief, "where", ""), out);
        buf_puts(out, "  ");
        put_flat(json_string_or(brief, "line", ""), out);
        buf_putc(out, '\n');
    }
    put_member(brief, "fix", "fix: try this", out);
    if (time > 0) {
        buf_puts(out, "time: ");
        brief_time(brief, out);
        if (floor > 0)
            buf_printf(out, ", %.0f %% of the floor of %.4g us (%s)", floor / time * 100, floor,
                       json_string_or(brief, "bound", "?"));
        if (json_double_or(brief, "speedup", 0) > 0)
            buf_printf(out, ", %.2fx PyTorch eager", json_double_or(brief, "speedup", 0));
        buf_putc(out, '\n');
    }
    put_member(brief, "evidence", "evidence", out);
}

void reply_link(struct tool_reply *out, const char *run, int attempt)
{
    char uri[200], name[160];

    if (!run)
        return;
    if (attempt)
        snprintf(uri, sizeof(uri), "cutegen://run/%s/attempt/%d", run, attempt);
    else
        snprintf(uri, sizeof(uri), "cutegen://run/%s", run);
    snprintf(name, sizeof(name), "%s %s", attempt ? "evidence of" : "run", run);
    json_array_append_new(out->links,
                          json_pack("{s:s, s:s, s:s, s:s}", "type", "resource_link", "uri", uri,
                                    "name", name, "mimeType", "application/json"));
}
