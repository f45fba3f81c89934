/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - a run and a list of runs as text for a terminal.
 *
 * Everything from a model or a task is one line of printable characters
 * here, so that it can neither move the cursor nor break the columns.
 */
#include "base/clock.h"
#include "report/escape.h"
#include "report/facts.h"
#include "report/parts.h"
#include "report/report.h"

#include <math.h>
#include <string.h>

enum {
    CHANGE_COLUMNS = 40,
    WIDE = 100,         /* a run's table shows all its columns from this width on */
    ROOFLINE_FROM = 72, /* it shows the fraction of the roofline from this width on */
    LEAST_CHANGE = 12,
};

/* The columns that fit in a run's table. */
struct layout {
    bool build, roofline; /* build: and the line of blocks */
    int change;
};

static struct layout layout_of(int columns)
{
    struct layout l = {.build = true, .roofline = true, .change = CHANGE_COLUMNS};

    if (columns == 0 || columns >= WIDE)
        return l;
    l.build = false;
    l.roofline = columns >= ROOFLINE_FROM;
    l.change = columns - 7 - 1 - 15 - 11 - (l.roofline ? 10 : 0);
    l.change = l.change > CHANGE_COLUMNS ? CHANGE_COLUMNS : l.change;
    l.change = l.change < LEAST_CHANGE ? LEAST_CHANGE : l.change;
    return l;
}

/* Truncated or padded to `width` columns, counted in characters. */
static void put_column(struct buf *b, const char *s, int width)
{
    int used = 0;
    size_t len = strlen(s), fits = 0, short_of = 0;

    for (size_t i = 0; i < len; i++) {
        if (((unsigned char)s[i] & 0xc0) == 0x80)
            continue;
        if (used == width - 1)
            short_of = i;
        if (used == width)
            break;
        used++;
        fits = i + 1;
        while (fits < len && ((unsigned char)s[fits] & 0xc0) == 0x80)
            fits++;
    }
    if (fits < len) {
        buf_add(b, s, short_of);
        buf_puts(b, "\xe2\x80\xa6");
    } else {
        buf_add(b, s, fits);
    }
    buf_printf(b, "%*s", width - used, "");
}

static void put_pair(struct buf *b, const char *name, const char *text)
{
    buf_printf(b, "%-8s %s", name, text);
}

/* ---- a run ------------------------------------------------------------------ */

static void put_task(struct buf *b, const struct run_history *h, struct arena *a)
{
    const struct task *t = &h->task;

    put_pair(b, "task", plain(t->name, a));
    for (int i = 0; i < t->in_count && i < 4; i++)
        buf_printf(b, "%s%s", i ? ", " : "    ", plain(shape_text(&t->in[i], a), a));
    if (t->scaled)
        buf_printf(b, "; scaled: %s", plain(t->scaled, a));
    buf_puts(b, "\n");
    put_pair(b, "class", class_names[t->class]);
    if (t->class_evidence && *t->class_evidence)
        buf_printf(b, "    %s", plain(t->class_evidence, a));
    buf_puts(b, "\n");
    put_pair(b, "engineer", plain(h->info.model, a));
    buf_printf(b, "        device  %s\n\n", plain(h->info.device, a));
}

/* The best so far at each depth as block characters, newest last. */
static void put_spark(struct buf *b, const struct facts *f, const struct attempt_record *until)
{
    static const char *const blocks[] = {
        "\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83", "\xe2\x96\x84",
        "\xe2\x96\x85", "\xe2\x96\x86", "\xe2\x96\x87", "\xe2\x96\x88",
    };
    double best = 0;

    buf_puts(b, "  ");
    for (const struct attempt_record *r = f->h->attempts; r <= until; r++) {
        double us = attempt_us(r);
        if (!(us > 0) || (best > 0 && us >= best))
            continue;
        best = us;
        double part = f->speedup > 0 ? f->best_us / us : 0;
        buf_puts(b, blocks[(int)fmin(7, floor(part * 7.999))]);
    }
}

static void put_attempt(struct buf *b, const struct facts *f, const struct attempt_record *r,
                        const struct layout *l, struct arena *a)
{
    const struct attempt_outcome *o = &r->outcome;
    const char *change = plain(r->candidate.change, a);
    double us = attempt_us(r);
    bool refused = r->acceptance && r->acceptance->verdict.kind != VERDICT_PASS;

    if (r->candidate.repair) {
        change = arena_printf(a, "\xe2\x94\x94 repair %d: %s", r->candidate.repair, change);
        buf_puts(b, "       ");
    } else {
        buf_printf(b, "%3d    ", r->candidate.depth);
    }
    put_column(b, change, l->change);
    if (l->build)
        buf_printf(b, " %7s  ", r->ended_ms && o->build ? ms_text(o->build->build_ms, a) : "");
    buf_puts(b, " ");
    put_column(b,
               refused       ? "not accepted"
               : r->ended_ms ? verdict_names[o->verdict.kind]
                             : "cut short",
               15);
    if (us > 0) {
        buf_printf(b, " %9s", us_text(us, "u", a));
        if (o->measurement->floor_us > 0 && l->roofline)
            buf_printf(b, " %7.0f %%", o->measurement->floor_us / us * 100);
        if (l->build)
            put_spark(b, f, r);
    }
    while (b->len && b->data[b->len - 1] == ' ')
        b->data[--b->len] = '\0';
    buf_puts(b, "\n");
}

static void put_best(struct buf *b, const struct facts *f, struct arena *a)
{
    const struct test_result *t;

    if (!f->best) {
        buf_puts(b, "best     no correct kernel\n");
        return;
    }
    buf_printf(b, "best     depth %d", f->best->candidate.depth);
    if (f->speedup > 0)
        buf_printf(
            b, ", %sx over %s%s", ratio_text(f->speedup, a), f->modelled ? "depth 0" : f->reference,
            f->modelled ? arena_printf(a, " (%s)", modelled_words(f->h->device.models)) : "");
    if (*f->trivial)
        buf_printf(b, ", trivial: %s", plain(f->trivial, a));
    t = f->best->outcome.test;
    if (t && t->accuracy.draws)
        buf_printf(b, "\nchecked  %d draw%s, max relative error %s (reference %s)",
                   t->accuracy.draws, t->accuracy.draws == 1 ? "" : "s",
                   error_text(t->accuracy.max_rel, a),
                   error_text(t->accuracy.reference_max_rel, a));
    buf_puts(b, "\n");
    if (*f->accuracy_class)
        buf_printf(b, "class    %s; the baseline is PyTorch's %s\n", plain(f->accuracy_class, a),
                   plain(f->setting, a));
    for (int i = 0; i < f->best->outcome.shape_count; i++)
        buf_printf(b, "%s %-24s %9s\n", i ? "        " : "shapes  ",
                   plain(f->best->outcome.shapes[i].label, a),
                   us_text(f->best->outcome.shapes[i].time_us, "u", a));
    if (f->h->info.accepted != ACCEPTED_NOT_ASKED)
        buf_printf(b, "%s attempt %d: %s\n",
                   f->h->info.accepted == ACCEPTED_YES ? "accepted" : "NOT ACCEPTED",
                   f->h->info.best_attempt, plain(f->h->info.accepted_why, a));
}

static void put_next(struct buf *b, const struct facts *f)
{
    const struct run_info *r = &f->h->info;

    if (r->state != RUN_DONE && !r->alive)
        buf_printf(b, "next     cutegen resume %s\n", r->id);
    else if (f->best && r->accepted != ACCEPTED_NO)
        buf_printf(b, "next     cutegen export %s\n", r->id);
}

static void put_attempts(struct buf *b, const struct facts *f, int columns, struct arena *a)
{
    struct layout l = layout_of(columns);
    const char *mark = f->modelled ? "*" : "";

    buf_printf(b, "depth  %-*s%s verdict         %8s%s", l.change, "change",
               l.build ? "   build  " : "", "time", mark);
    if (l.roofline)
        buf_printf(b, " %8s%s", "roofline", mark);
    buf_puts(b, "\n");
    for (size_t i = 0; i < f->h->attempt_count; i++)
        put_attempt(b, f, &f->h->attempts[i], &l, a);
}

void report_text(const struct run_history *h, int columns, struct buf *out)
{
    struct arena *a = arena_new();
    struct facts f = facts_of(h);

    put_task(out, h, a);
    put_attempts(out, &f, columns, a);
    if (f.modelled)
        buf_printf(out, "* %s for %s; run on a GPU to measure\n", modelled_words(h->device.models),
                   plain(h->device.models ? h->device.models : "a GPU", a));
    buf_puts(out, "\n");
    parts_text(out, &f, columns, a);
    put_best(out, &f, a);
    if (f.all.cost_known && f.all.cost_usd > 0)
        buf_printf(out, "cost     %s in %d calls, %lld tokens\n", money_text(f.all.cost_usd, a),
                   f.all.calls, (long long)(f.all.prompt_tokens + f.all.output_tokens));
    buf_printf(out, "run      %s    %s%s%s\n", h->info.id, state_text(&h->info),
               *h->info.reason ? ": " : "", plain(h->info.reason, a));
    put_next(out, &f);
    arena_free(a);
}

/* ---- runs ------------------------------------------------------------------- */

static int column_width(const struct run_info *runs, size_t count)
{
    size_t width = 3;

    for (size_t i = 0; i < count; i++)
        width = strlen(runs[i].id) > width ? strlen(runs[i].id) : width;
    return (int)width;
}

/* The columns that fit in a list of runs. */
struct run_columns {
    int id;         /* columns of the name */
    bool all, some; /* all columns; at least depth and speed-up */
};

static void put_run(struct buf *b, const struct run_info *r, const struct run_columns *c,
                    struct arena *a)
{
    double from = !r->modelled && r->eager_us > 0 ? r->eager_us : r->first_us;

    buf_printf(b, "%-*s  %-8s", c->id, r->id, state_text(r));
    if (c->all) {
        buf_puts(b, " ");
        put_column(b, plain(r->model, a), 21);
        buf_puts(b, " ");
        put_column(b, plain(r->device, a), 21);
        buf_printf(b, " %8d", r->attempts);
    }
    if (r->best_depth >= 0 && c->some)
        buf_printf(b, " %6d", r->best_depth);
    if (r->best_depth >= 0)
        buf_printf(b, " %10s%s", r->best_us > 0 ? us_text(r->best_us, "u", a) : "-",
                   r->modelled ? "*" : " ");
    if (r->best_us > 0 && from > 0 && c->some)
        buf_printf(b, " %8sx%s", ratio_text(from / r->best_us, a),
                   from == r->eager_us ? " eager" : "");
    buf_puts(b, "\n");
}

void report_runs_text(const struct run_info *runs, size_t count, int columns, struct buf *out)
{
    enum { ALL = 100, SOME = 45 }; /* columns after the name */
    struct arena *a = arena_new();
    struct run_columns c = {.id = column_width(runs, count)};
    bool modelled = false, unvalidated = false;

    c.all = columns == 0 || columns >= c.id + ALL;
    c.some = c.all || columns >= c.id + SOME;
    buf_printf(out, "%-*s  state   %s%s        best%s\n", c.id, "run",
               c.all ? " engineer              device                attempts" : "",
               c.some ? "  depth" : "", c.some ? "   speed-up" : "");
    for (size_t i = 0; i < count; i++) {
        put_run(out, &runs[i], &c, a);
        modelled = modelled || (runs[i].modelled && runs[i].best_us > 0);
        unvalidated = unvalidated || (runs[i].modelled && runs[i].unvalidated);
    }
    if (modelled)
        buf_printf(out, "* modelled%s, not measured\n",
                   unvalidated ? " (unvalidated for all but the H200)" : "");
    if (c.some)
        buf_puts(out, "speed-up is over depth 0 where it does not say eager\n");
    arena_free(a);
}
