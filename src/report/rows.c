/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - see rows.h; and a suite as text, CSV and JSON. */
#include "report/rows.h"

#include "base/json.h"
#include "report/escape.h"
#include "report/field.h"

#include <math.h>
#include <string.h>

const double fast_limits[FAST_COUNT] = {0.8, 1, 1.5, 2};

static void sum_row(struct suite_rows *s, struct suite_row *r, double *log_speed, double *log_roof,
                    int *roofs)
{
    const struct facts *f = r->f;

    s->wall_ms += r->wall_ms;
    if (f) {
        s->cost_usd += f->all.cost_usd;
        s->cost_known = s->cost_known || f->all.cost_known;
        for (size_t i = 0; i < f->h->call_count; i++)
            s->cost_whole = s->cost_whole && f->h->calls[i].reply.cost_usd >= 0;
    }
    r->counted = !f || (f->h->device.kind == DEVICE_SIMT) == s->modelled;
    if (!r->counted) {
        s->others++;
        return;
    }
    s->tasks++;
    if (!f || !f->best)
        return;
    s->correct++;
    if (f->speedup > 0) {
        s->timed++;
        *log_speed += log(f->speedup);
        s->top = fmax(s->top, ceil(f->speedup));
    }
    for (int p = 0; p < FAST_COUNT; p++)
        s->fast[p] += f->speedup > fast_limits[p];
    if (f->roofline > 0) {
        *log_roof += log(f->roofline);
        (*roofs)++;
    }
}

const char *rows_words(const struct suite_rows *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->rows[i].f && !modelled_validated(s->rows[i].f->h->device.models))
            return modelled_words(s->rows[i].f->h->device.models);
    return modelled_words(NULL);
}

static void sum_up(struct suite_rows *s)
{
    double log_speed = 0, log_roof = 0;
    int roofs = 0;

    s->modelled = true;
    s->cost_whole = true;
    s->top = 2;
    for (size_t i = 0; i < s->count; i++)
        if (s->rows[i].f && s->rows[i].f->h->device.kind == DEVICE_CUDA)
            s->modelled = false;
    for (size_t i = 0; i < s->count; i++)
        sum_row(s, &s->rows[i], &log_speed, &log_roof, &roofs);
    s->geomean = s->timed ? exp(log_speed / s->timed) : 0;
    s->roofline = roofs ? exp(log_roof / roofs) : 0;
}

struct suite_rows suite_rows_of(const struct suite_view *v, struct arena *a)
{
    struct suite_rows s = {.name = v->suite->name, .count = v->suite->count};

    s.rows = arena_array(a, s.count + 1, sizeof(*s.rows));
    for (size_t i = 0; i < s.count; i++) {
        const struct suite_task *t = &v->suite->tasks[i];
        struct facts *f = NULL;

        if (v->histories[i].info.id) {
            f = arena_alloc(a, sizeof(*f));
            *f = facts_of(&v->histories[i]);
        }
        s.rows[i] = (struct suite_row){.task = t->name,
                                       .problem = t->problem,
                                       .f = f,
                                       .wall_ms = t->ended || !f ? t->wall_ms : f->wall_ms,
                                       .retries = t->retries};
        if (!t->ended && !*t->problem && !f)
            s.rows[i].problem = "not begun";
    }
    sum_up(&s);
    return s;
}

struct suite_rows suite_rows_of_runs(const struct facts *runs, size_t count, struct arena *a)
{
    struct suite_rows s = {.name = runs[0].h->info.suite, .count = count};

    s.rows = arena_array(a, count + 1, sizeof(*s.rows));
    for (size_t i = 0; i < count; i++)
        s.rows[i] = (struct suite_row){
            .task = runs[i].h->info.task, .problem = "", .f = &runs[i], .wall_ms = runs[i].wall_ms};
    sum_up(&s);
    return s;
}

const char *row_why(const struct suite_row *r)
{
    const struct run_history *h = r->f ? r->f->h : NULL;

    if (h && r->f->best)
        return r->f->trivial;
    if (*r->problem || !h)
        return r->problem;
    for (size_t i = h->attempt_count; i-- > 0;)
        if (h->attempts[i].ended_ms && h->attempts[i].outcome.verdict.summary)
            return h->attempts[i].outcome.verdict.summary;
    return h->info.reason ? h->info.reason : "";
}

const char *row_took(const struct suite_row *r, struct arena *a)
{
    return r->wall_ms > 0 ? ms_text(r->wall_ms, a) : "";
}

const char *row_state(const struct suite_row *r)
{
    if (!r->f)
        return *r->problem ? "no run" : "waiting";
    if (r->f->h->info.state != RUN_DONE)
        return state_text(&r->f->h->info);
    return r->f->best ? "correct" : "no kernel";
}

/* ---- text -------------------------------------------------------------------- */

enum { ALL = 72, SOME = 36, WHY = 80 }; /* columns behind the name; of a reason */

static void put_row(struct buf *b, const struct suite_row *r, int width, int columns,
                    struct arena *a)
{
    const struct facts *f = r->f;
    bool all = columns == 0 || columns >= width + ALL;
    bool best = f && f->best;

    buf_printf(b, "%-*.*s  %-9s", width, width, plain(r->task, a), row_state(r));
    if (all && best)
        buf_printf(b, " %5d", f->best->candidate.depth);
    else if (all)
        buf_printf(b, " %5s", "");
    if (best)
        buf_printf(b, " %10s%s %7sx%s", f->best_us > 0 ? us_text(f->best_us, "u", a) : "-",
                   f->modelled ? "*" : " ", ratio_text(f->speedup, a), f->modelled ? "*" : " ");
    else
        buf_printf(b, " %11s %9s", "", "");
    if (all && best && f->roofline > 0)
        buf_printf(b, " %6.0f %%%s", f->roofline * 100, f->modelled ? "*" : " ");
    else if (all)
        buf_printf(b, " %9s", "");
    if (all)
        buf_printf(b, " %9s %12s", f && f->all.cost_known ? money_text(f->all.cost_usd, a) : "-",
                   row_took(r, a));
    while (b->len && b->data[b->len - 1] == ' ')
        b->data[--b->len] = '\0';
    if (*row_why(r))
        buf_printf(b, "%s%.*s", columns ? "\n    " : "  ", (int)WHY, plain(row_why(r), a));
    buf_puts(b, "\n");
}

static void put_sums(struct buf *b, const struct suite_rows *s, int columns, struct arena *a)
{
    const char *over = !s->modelled                            ? "PyTorch eager"
                       : modelled_words(NULL) == rows_words(s) ? "depth 0 (modelled)"
                                                               : "depth 0 (modelled, unvalidated)";
    struct field field = field_of(s, a);

    buf_printf(b, "\ncorrect   %d of %d tasks (%.0f %%)\n", s->correct, s->tasks,
               s->tasks ? 100.0 * s->correct / s->tasks : 0);
    if (s->timed)
        buf_printf(b, "geomean   %sx over %s", ratio_text(s->geomean, a), over);
    if (s->timed && s->roofline > 0)
        buf_printf(b, ", %.0f %% of the roofline", s->roofline * 100);
    if (s->timed)
        buf_puts(b, "\n");
    buf_puts(b, "fast_p    ");
    for (int p = 0; p < FAST_COUNT; p++)
        buf_printf(b, "%s%g: %.0f %%", p ? "   " : "", fast_limits[p],
                   s->tasks ? 100.0 * s->fast[p] / s->tasks : 0);
    buf_printf(b, "   (share of all tasks that are correct and more than p times faster)\n");
    if (s->others)
        buf_printf(b, "          %d tasks on simt are modelled and not counted here\n", s->others);
    buf_printf(b, "cost      %s%s    time %s, all tasks together\n",
               s->cost_known ? money_text(s->cost_usd, a) : "none known",
               s->cost_known && !s->cost_whole ? " and calls whose price is unknown" : "",
               ms_text(s->wall_ms, a));
    field_text(&field, s->modelled, columns, b, a);
}

void report_suite_text(const struct suite_view *v, int columns, struct buf *out)
{
    struct arena *a = arena_new();
    struct suite_rows s = suite_rows_of(v, a);
    bool all;
    int width = 4;

    for (size_t i = 0; i < s.count; i++)
        width = (int)strlen(s.rows[i].task) > width ? (int)strlen(s.rows[i].task) : width;
    width = width > 40 ? 40 : width;
    if (columns && width + SOME > columns)
        width = columns - SOME;
    all = columns == 0 || columns >= width + ALL;
    buf_printf(out, "%-*s  %-9s%s %11s %9s%s\n", width, "task", "state", all ? " depth" : "",
               "time ", "speed-up", all ? "  roofline      cost         took" : "");
    for (size_t i = 0; i < s.count; i++)
        put_row(out, &s.rows[i], width, columns, a);
    if (s.modelled && s.timed)
        buf_printf(out, "* %s, not measured; speed-ups are over depth 0\n", rows_words(&s));
    put_sums(out, &s, columns, a);
    arena_free(a);
}

/* ---- CSV --------------------------------------------------------------------- */

/* Always quoted, quotes doubled; prefixes text that a spreadsheet would take for a formula. */
static void put_field(struct buf *b, const char *text)
{
    buf_putc(b, '"');
    if (strchr("=+-@", *text) && *text)
        buf_putc(b, '\'');
    for (; *text; text++) {
        if (*text == '"')
            buf_putc(b, '"');
        buf_putc(b, (unsigned char)*text < ' ' ? ' ' : *text);
    }
    buf_putc(b, '"');
}

static void put_figure(struct buf *b, double v, bool known)
{
    buf_putc(b, ',');
    if (known)
        buf_printf(b, "%.6g", v);
}

void report_suite_csv(const struct suite_view *v, struct buf *out)
{
    struct arena *a = arena_new();
    struct suite_rows s = suite_rows_of(v, a);

    buf_puts(out, "task,state,run,class,device,modelled,depth,attempts,passed,time_us,reference_us,"
                  "speedup,roofline,calls,tokens,cost_usd,wall_s,why,setting,accuracy_class,"
                  "compile_us,retries\n");
    for (size_t i = 0; i < s.count; i++) {
        const struct suite_row *r = &s.rows[i];
        const struct facts *f = r->f;
        bool best = f && f->best;

        put_field(out, r->task);
        buf_putc(out, ',');
        put_field(out, row_state(r));
        buf_putc(out, ',');
        put_field(out, f ? f->h->info.id : "");
        buf_putc(out, ',');
        put_field(out, f ? class_names[f->h->task.class] : "");
        buf_putc(out, ',');
        put_field(out, f ? f->h->info.device : "");
        buf_printf(out, ",%s", !best ? "" : f->modelled ? "yes" : "no");
        put_figure(out, best ? f->best->candidate.depth : 0, best);
        put_figure(out, f ? (double)f->h->attempt_count : 0, f != NULL);
        put_figure(out, f ? f->passed : 0, f != NULL);
        put_figure(out, best ? f->best_us : 0, best && f->best_us > 0);
        put_figure(out, best ? f->reference_us : 0, best && f->reference_us > 0);
        put_figure(out, best ? f->speedup : 0, best && f->speedup > 0);
        put_figure(out, best ? f->roofline : 0, best && f->roofline > 0);
        put_figure(out, f ? f->all.calls : 0, f != NULL);
        put_figure(out, f ? (double)(f->all.prompt_tokens + f->all.output_tokens) : 0, f != NULL);
        put_figure(out, f ? f->all.cost_usd : 0, f && f->all.cost_known);
        put_figure(out, (double)r->wall_ms / 1000, true);
        buf_putc(out, ',');
        put_field(out, row_why(r));
        buf_putc(out, ',');
        put_field(out, f ? f->setting : "");
        buf_putc(out, ',');
        put_field(out, f ? f->accuracy_class : "");
        put_figure(out, best ? f->compile_us : 0, best && f->compile_us > 0);
        put_figure(out, r->retries, true);
        buf_puts(out, "\n");
    }
    arena_free(a);
}

void report_field_csv(const struct suite_view *v, struct buf *out)
{
    struct arena *a = arena_new();
    struct suite_rows s = suite_rows_of(v, a);
    struct field field = field_of(&s, a);

    field_csv(&field, out);
    arena_free(a);
}

/* ---- JSON -------------------------------------------------------------------- */

static json_t *known(double v)
{
    return v > 0 ? json_number(v) : json_null();
}

static json_t *safe_string(const char *s, struct arena *a)
{
    json_t *v = json_string(s ? s : "");

    return v ? v : json_string(plain(s, a));
}

static json_t *row_json(const struct suite_row *r, struct arena *a)
{
    const struct facts *f = r->f;
    json_t *o = json_object();

    json_object_set_new(o, "task", safe_string(r->task, a));
    json_object_set_new(o, "state", json_string(row_state(r)));
    json_object_set_new(o, "run", f ? json_string(f->h->info.id) : json_null());
    json_object_set_new(o, "depth",
                        f && f->best ? json_integer(f->best->candidate.depth) : json_null());
    json_object_set_new(o, "modelled", f && f->best ? json_boolean(f->modelled) : json_null());
    json_object_set_new(o, "time_us", known(f ? f->best_us : 0));
    json_object_set_new(o, "speedup", known(f ? f->speedup : 0));
    json_object_set_new(o, "roofline", known(f ? f->roofline : 0));
    json_object_set_new(o, "cost_usd",
                        f && f->all.cost_known ? json_number(f->all.cost_usd) : json_null());
    json_object_set_new(o, "wall_ms", json_integer(r->wall_ms));
    json_object_set_new(o, "baseline", f ? safe_string(f->setting, a) : json_null());
    json_object_set_new(o, "accuracy_class",
                        f && *f->accuracy_class ? safe_string(f->accuracy_class, a) : json_null());
    json_object_set_new(o, "compile_us", known(f ? f->compile_us : 0));
    json_object_set_new(o, "retries", json_integer(r->retries));
    json_object_set_new(o, "why", safe_string(row_why(r), a));
    return o;
}

json_t *report_suite_json(const struct suite_view *v)
{
    struct arena *a = arena_new();
    struct suite_rows s = suite_rows_of(v, a);
    struct field field = field_of(&s, a);
    json_t *tasks = json_array(), *fast = json_object(), *o;

    for (size_t i = 0; i < s.count; i++)
        json_array_append_new(tasks, row_json(&s.rows[i], a));
    for (int p = 0; p < FAST_COUNT; p++)
        json_object_set_new(fast, arena_printf(a, "%g", fast_limits[p]),
                            s.tasks ? json_number((double)s.fast[p] / s.tasks) : json_null());
    o = json_pack("{s:s, s:o, s:o, s:{s:i, s:i, s:b, s:o, s:o, s:o, s:o, s:b, s:I}}", "suite",
                  v->suite->name, "source", safe_string(v->suite->source, a), "tasks", tasks,
                  "sums", "tasks", s.tasks, "correct", s.correct, "modelled", s.modelled, "geomean",
                  known(s.geomean), "fast", fast, "roofline", known(s.roofline), "cost_usd",
                  s.cost_known ? json_number(s.cost_usd) : json_null(), "cost_whole", s.cost_whole,
                  "wall_ms", (json_int_t)s.wall_ms);
    json_object_set_new(o, "field", field_json(&field));
    arena_free(a);
    return o;
}
