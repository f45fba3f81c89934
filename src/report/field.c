/* SPDX-License-Identifier: Apache-2.0 */
/* field.c - see field.h. */
#include "report/field.h"

#include "base/json.h"
#include "report/escape.h"
#include "report/page.h"

#include <math.h>
#include <string.h>

/* ---- sums ------------------------------------------------------------------------ */

static struct field_line *line_of(struct field *f, const char *group, const char *name)
{
    struct field_line *l;

    for (int i = 0; i < f->count; i++)
        if (strcmp(f->lines[i].group, group) == 0 && strcmp(f->lines[i].name, name) == 0)
            return &f->lines[i];
    if (f->count == FIELD_LINES)
        return NULL;
    l = &f->lines[f->count++];
    *l = (struct field_line){.group = group, .name = name};
    return l;
}

static void add_speedup(struct field_line *l, double speedup)
{
    if (!l || !(speedup > 0) || !isfinite(speedup))
        return;
    l->timed++;
    l->log_sum += log(speedup);
    for (int p = 0; p < FAST_COUNT; p++)
        l->fast[p] += speedup > fast_limits[p];
}

/* "PyTorch eager (defaults)": the name includes the setting, so that figures of two settings do not
 * mix. */
static const char *headline(const struct facts *f, struct arena *a)
{
    return f->modelled ? "depth 0 (modelled)"
           : strcmp(f->reference, "PyTorch eager") == 0
               ? arena_printf(a, "PyTorch eager (%s)", f->setting)
               : f->reference;
}

/* Adds every baseline that was timed together with the best kernel. */
static void add_baselines(struct field *out, const struct facts *f, struct arena *a)
{
    const struct measurement *m = f->best ? f->best->outcome.measurement : NULL;

    if (!m || f->best_us <= 0 || *f->trivial)
        return;
    add_speedup(line_of(out, "over", headline(f, a)), f->speedup);
    for (int i = 0; i < m->baseline_count && !m->modelled; i++)
        if (strcmp(m->baselines[i].name, "eager") != 0)
            add_speedup(line_of(out, "over", m->baselines[i].name),
                        m->baselines[i].cold_us / f->best_us);
}

static void add_class(struct field *out, const char *group, const char *name, const struct facts *f)
{
    struct field_line *l = line_of(out, group, name);

    if (!l)
        return;
    l->tasks++;
    l->correct += f->best != NULL;
    if (f->best)
        add_speedup(l, f->speedup);
}

struct field field_of(const struct suite_rows *s, struct arena *a)
{
    struct field out = {.dollars = -1};

    for (size_t i = 0; i < s->count; i++)
        if (s->rows[i].counted && s->rows[i].f)
            add_baselines(&out, s->rows[i].f, a);
    for (int i = 0; i < out.count; i++) {
        out.lines[i].tasks = s->tasks;
        out.lines[i].correct = s->correct;
    }
    for (size_t i = 0; i < s->count; i++)
        if (s->rows[i].counted && s->rows[i].f)
            add_class(&out, "class", class_names[s->rows[i].f->h->task.class], s->rows[i].f);
    for (size_t i = 0; i < s->count; i++)
        if (s->rows[i].counted && s->rows[i].f && *s->rows[i].f->accuracy_class)
            add_class(&out, "accuracy", s->rows[i].f->accuracy_class, s->rows[i].f);
    for (int i = 0; i < out.count; i++)
        out.lines[i].geomean =
            out.lines[i].timed ? exp(out.lines[i].log_sum / out.lines[i].timed) : 0;
    for (size_t i = 0; i < s->count; i++) {
        out.retries += s->rows[i].retries;
        out.retried += s->rows[i].retries > 0;
    }
    if (s->count)
        out.seconds = (double)s->wall_ms / 1000 / (double)s->count;
    if (s->count && s->cost_known)
        out.dollars = s->cost_usd / (double)s->count;
    return out;
}

/* ---- text ------------------------------------------------------------------------ */

static const char *group_title(const char *group)
{
    return strcmp(group, "over") == 0    ? "speed-up over"
           : strcmp(group, "class") == 0 ? "kernel class"
                                         : "accuracy class";
}

static double share(int n, int of)
{
    return of ? 100.0 * n / of : 0;
}

void field_text(const struct field *f, bool modelled, int columns, struct buf *b, struct arena *a)
{
    enum { NAME = 28, SHORT_NAME = 16, FIGURES = 28, EACH_FAST = 9 };
    const char *group = "", *star = modelled ? "*" : "";
    bool all = columns == 0 || columns >= NAME + FIGURES + FAST_COUNT * EACH_FAST;
    int name = all ? NAME : SHORT_NAME, fasts = FAST_COUNT;

    while (!all && fasts > 0 && name + FIGURES + fasts * EACH_FAST > columns)
        fasts--;

    for (int i = 0; i < f->count; i++) {
        const struct field_line *l = &f->lines[i];

        if (strcmp(group, l->group) != 0) {
            buf_printf(b, "\n%-*.*s %7s %9s %9s", name, name, group_title(l->group), "tasks",
                       "correct", arena_printf(a, "geomean%s", star));
            for (int p = 0; p < fasts; p++)
                buf_printf(b, " %8s", arena_printf(a, "fast_%g", fast_limits[p]));
            buf_puts(b, "\n");
        }
        group = l->group;
        buf_printf(b, "%-*.*s %7d %7.0f %% %8s%s", name, name, plain(l->name, a), l->tasks,
                   share(l->correct, l->tasks), ratio_text(l->geomean, a),
                   l->geomean > 0 ? "x" : " ");
        for (int p = 0; p < fasts; p++)
            buf_printf(b, " %6.0f %%", share(l->fast[p], l->tasks));
        buf_puts(b, "\n");
    }
    buf_printf(b, "\nper task  %.1f s", f->seconds);
    if (f->dollars >= 0)
        buf_printf(b, ", %s", money_text(f->dollars, a));
    buf_puts(b, "\n");
    if (f->retries)
        buf_printf(b, "retried   %d times, because the machine failed: %d task%s\n", f->retries,
                   f->retried, f->retried == 1 ? "" : "s");
}

/* ---- page ------------------------------------------------------------------------ */

void field_html(const struct field *f, bool modelled, struct buf *b, struct arena *a)
{
    const char *group = "";

    buf_puts(b, "<section id=\"field\"><h2>The field</h2><div class=\"scroll\">"
                "<table class=\"sums\">");
    for (int i = 0; i < f->count; i++) {
        const struct field_line *l = &f->lines[i];

        if (strcmp(group, l->group) != 0) {
            buf_printf(b,
                       "%s<thead><tr><th class=\"l0\">%s</th><th>tasks</th><th>correct</th>"
                       "<th>geomean%s</th>",
                       i ? "</tbody>" : "", group_title(l->group), modelled_mark(modelled));
            for (int p = 0; p < FAST_COUNT; p++)
                buf_printf(b, "<th>fast<sub>%g</sub></th>", fast_limits[p]);
            buf_puts(b, "</tr></thead><tbody>");
        }
        group = l->group;
        buf_puts(b, "<tr><th scope=\"row\" class=\"l0\">");
        html_puts(b, l->name);
        buf_printf(b, "</th><td>%d</td><td>%.0f&#8239;%%</td><td>%s%s</td>", l->tasks,
                   share(l->correct, l->tasks), ratio_text(l->geomean, a),
                   l->geomean > 0 ? TIMES : "");
        for (int p = 0; p < FAST_COUNT; p++)
            buf_printf(b, "<td>%.0f&#8239;%%</td>", share(l->fast[p], l->tasks));
        buf_puts(b, "</tr>");
    }
    buf_printf(b, "%s</table></div><p class=\"note\">Per task: %.1f s", f->count ? "</tbody>" : "",
               f->seconds);
    if (f->dollars >= 0)
        buf_printf(b, ", %s", money_text(f->dollars, a));
    if (f->retries)
        buf_printf(b, ". Steps that the machine failed and that were tried again: %d, of %d tasks",
                   f->retries, f->retried);
    buf_puts(b, ".</p></section>");
}

/* ---- CSV and JSON ---------------------------------------------------------------- */

void field_csv(const struct field *f, struct buf *b)
{
    buf_puts(b, "group,name,tasks,correct,timed,geomean,fast_0.8,fast_1,fast_1.5,fast_2\n");
    for (int i = 0; i < f->count; i++) {
        const struct field_line *l = &f->lines[i];

        /* Names are our own words: no quotes, no commas. */
        buf_printf(b, "%s,\"%s\",%d,%d,%d,", l->group, l->name, l->tasks, l->correct, l->timed);
        if (l->geomean > 0)
            buf_printf(b, "%.6g", l->geomean);
        for (int p = 0; p < FAST_COUNT; p++)
            buf_printf(b, ",%d", l->fast[p]);
        buf_puts(b, "\n");
    }
}

json_t *field_json(const struct field *f)
{
    json_t *lines = json_array();

    for (int i = 0; i < f->count; i++) {
        const struct field_line *l = &f->lines[i];
        json_t *fast = json_object();

        for (int p = 0; p < FAST_COUNT; p++) {
            char name[32];

            snprintf(name, sizeof(name), "%g", fast_limits[p]);
            json_object_set_new(fast, name, json_number(share(l->fast[p], l->tasks) / 100));
        }
        json_array_append_new(
            lines,
            json_pack("{s:s, s:s, s:i, s:i, s:i, s:o, s:o}", "group", l->group, "name", l->name,
                      "tasks", l->tasks, "correct", l->correct, "timed", l->timed, "geomean",
                      l->geomean > 0 ? json_number(l->geomean) : json_null(), "fast", fast));
    }
    return json_pack("{s:o, s:f, s:o, s:i, s:i}", "lines", lines, "seconds_per_task", f->seconds,
                     "dollars_per_task", f->dollars >= 0 ? json_number(f->dollars) : json_null(),
                     "retries", f->retries, "tasks_retried", f->retried);
}
