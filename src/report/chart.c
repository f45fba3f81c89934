/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chart.c - the trajectory as inline SVG: speed-up by depth.
 *
 * A filled mark is a kernel that passed, on the line if it was the best so far, else pale; a hollow
 * mark is an attempt that failed, drawn at the best so far. Dashed lines are the times it is
 * compared with. Colours are classes of the style sheet, so light, dark and print agree.
 */
#include "report/escape.h"
#include "report/page.h"

#include <math.h>

enum {
    WIDTH = 1040,
    HEIGHT = 340,
    LEFT = 52,
    RIGHT = 130, /* space for the names of lines */
    TOP = 26,
    BOTTOM = 46,
    COLOURS = 6,
    TICKS_X_MAX = 16,
    FAILS_MAX = 6, /* hollow marks beside one depth */
};

struct plot {
    int depth_max;
    double top; /* speed-up at the upper edge */
};

static double plot_x(const struct plot *p, double depth)
{
    int steps = p->depth_max > 0 ? p->depth_max : 1;
    return LEFT + 24 + depth * (WIDTH - LEFT - RIGHT - 48) / steps;
}

static double plot_y(const struct plot *p, double speedup)
{
    return HEIGHT - BOTTOM - speedup / p->top * (HEIGHT - TOP - BOTTOM);
}

/* 1, 2 or 5 times a power of ten, so that at most `most` steps reach `top`. */
static double nice_step(double top, int most)
{
    double base = pow(10, floor(log10(top / most)));
    double times[] = {1, 2, 5, 10};

    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        if (top / (base * times[i]) <= most)
            return base * times[i];
    return base * 10;
}

static double speedup_of(const struct facts *f, double us)
{
    return us > 0 && f->reference_us > 0 ? f->reference_us / us : 0;
}

static double floor_speedup(const struct facts *f)
{
    return f->roofline > 0 ? f->speedup / f->roofline : 0;
}

/* ---- axes ----------------------------------------------------------------- */

static struct plot plot_fit(const struct facts *runs, size_t count)
{
    struct plot p = {.depth_max = 1, .top = 1.2};

    for (size_t i = 0; i < count; i++) {
        const struct facts *f = &runs[i];
        double roof = floor_speedup(f);
        if (f->depth_max > p.depth_max)
            p.depth_max = f->depth_max;
        p.top = fmax(p.top, f->speedup * 1.12);
        if (roof < f->speedup * 2.2) /* beyond this it would flatten the curve */
            p.top = fmax(p.top, roof * 1.08);
    }
    return p;
}

static void draw_grid(struct buf *b, const struct plot *p)
{
    double step = nice_step(p->top, 6);

    for (int i = 0; i * step <= p->top; i++) {
        double v = i * step, y = plot_y(p, v);
        buf_printf(b, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT,
                   WIDTH - RIGHT, y, y);
        buf_printf(
            b, "<text class=\"tick\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g" TIMES "</text>",
            LEFT - 10, y + 4, v);
    }
    int every = (p->depth_max + TICKS_X_MAX - 1) / TICKS_X_MAX;
    for (int d = 0; d <= p->depth_max; d += every > 0 ? every : 1)
        buf_printf(b, "<text class=\"tick\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>",
                   plot_x(p, d), HEIGHT - BOTTOM + 20, d);
    buf_printf(b, "<text class=\"axis\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">depth</text>",
               (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6);
}

/* A dashed line with its name at the right end. */
static void draw_level(struct buf *b, const struct plot *p, double v, const char *class,
                       const char *name)
{
    double y = plot_y(p, v);

    buf_printf(b, "<line class=\"level %s\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", class,
               LEFT, WIDTH - RIGHT, y, y);
    buf_printf(b, "<text class=\"level-name\" x=\"%d\" y=\"%.1f\">", WIDTH - RIGHT + 10, y + 4);
    html_puts(b, name);
    buf_puts(b, "</text>");
}

struct level {
    double at;
    const char *class, *name;
};

/* Of overlapping names only the first one is drawn. */
static void draw_levels(struct buf *b, const struct plot *p, const struct level *levels, int count)
{
    for (int i = 0; i < count; i++) {
        bool hidden = levels[i].at <= 0 || levels[i].at > p->top;
        for (int k = 0; k < i && !hidden; k++)
            hidden = levels[k].at > 0 && levels[k].at <= p->top &&
                     fabs(plot_y(p, levels[k].at) - plot_y(p, levels[i].at)) < 13;
        if (!hidden)
            draw_level(b, p, levels[i].at, levels[i].class, levels[i].name);
    }
}

static void draw_references(struct buf *b, const struct plot *p, const struct facts *f)
{
    struct level levels[2 + 4] = {
        {floor_speedup(f), "roof", "roofline"},
        {f->reference_us > 0 ? 1 : 0, "base", f->modelled ? "depth 0" : f->reference},
    };
    const struct measurement *m = f->best ? f->best->outcome.measurement : NULL;
    int n = 2;

    for (int i = 0; m && !m->modelled && i < m->baseline_count; i++)
        levels[n++] =
            (struct level){speedup_of(f, m->baselines[i].cold_us), "base", m->baselines[i].name};
    draw_levels(b, p, levels, n);
}

static void draw_profile_start(struct buf *b, const struct plot *p, const struct facts *f)
{
    if (f->profile_from < 0)
        return;
    double x = plot_x(p, f->profile_from - 0.5);
    buf_printf(b, "<line class=\"profile\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x,
               TOP - 8, HEIGHT - BOTTOM);
    buf_printf(b, "<text class=\"level-name\" x=\"%.1f\" y=\"%d\">profile from here</text>", x + 6,
               TOP);
}

/* ---- one run -------------------------------------------------------------- */

static void mark_title(struct buf *b, const struct attempt_record *r, double speedup)
{
    buf_printf(b, "<title>depth %d, attempt %d: ", r->candidate.depth, r->candidate.attempt);
    html_puts(b, r->candidate.change);
    buf_printf(b, " \xe2\x80\x93 %s",
               r->ended_ms ? verdict_names[r->outcome.verdict.kind] : "open");
    if (speedup > 0)
        buf_printf(b, ", %.2f" TIMES, speedup);
    buf_puts(b, "</title>");
}

/* The best so far, as a step function. */
static void draw_line(struct buf *b, const struct plot *p, const struct facts *f, size_t colour)
{
    double best = 0;

    buf_printf(b, "<path class=\"run c%zu\" d=\"", colour);
    for (size_t i = 0; i < f->h->attempt_count; i++) {
        const struct attempt_record *r = &f->h->attempts[i];
        double v = speedup_of(f, attempt_us(r));
        if (v <= best)
            continue;
        double x = plot_x(p, r->candidate.depth);
        if (best > 0)
            buf_printf(b, "L%.1f %.1f", x, plot_y(p, best));
        buf_printf(b, "%s%.1f %.1f", best > 0 ? "L" : "M", x, plot_y(p, v));
        best = v;
    }
    if (best > 0)
        buf_printf(b, "L%.1f %.1f", plot_x(p, f->depth_max), plot_y(p, best));
    buf_puts(b, "\"/>");
}

static void draw_marks(struct buf *b, const struct plot *p, const struct facts *f, size_t colour)
{
    double best = 0;
    int depth = -1, fails = 0;

    for (size_t i = 0; i < f->h->attempt_count; i++) {
        const struct attempt_record *r = &f->h->attempts[i];
        double v = speedup_of(f, attempt_us(r));
        double x = plot_x(p, r->candidate.depth);
        if (r->candidate.depth != depth)
            fails = 0;
        depth = r->candidate.depth;
        if (v > 0) {
            buf_printf(b, "<circle class=\"pass c%zu%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\">", colour,
                       v > best ? "" : " pale", x, plot_y(p, v), v > best ? "4.5" : "4");
        } else if (!attempt_passed(r) && r->ended_ms && fails < FAILS_MAX) {
            buf_printf(b, "<circle class=\"fail c%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\">", colour,
                       x - 10, plot_y(p, best) - 10 - 11 * fails++);
        } else {
            continue;
        }
        mark_title(b, r, v);
        buf_puts(b, "</circle>");
        best = fmax(best, v);
    }
}

static void draw_best(struct buf *b, const struct plot *p, const struct facts *f, size_t colour)
{
    if (f->speedup <= 0)
        return;
    double x = plot_x(p, f->best->candidate.depth), y = plot_y(p, f->speedup);
    buf_printf(b,
               "<text class=\"best c%zu\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.2f" TIMES
               "</text>",
               colour, x - 8, y - 9, f->speedup);
}

/* ---- legend --------------------------------------------------------------- */

static void legend_runs(struct buf *b, const struct facts *runs, size_t count)
{
    buf_puts(b, "<ul class=\"legend\">");
    for (size_t i = 0; i < count; i++) {
        buf_printf(b,
                   "<li><svg width=\"22\" height=\"10\" aria-hidden=\"true\"><path class=\"run "
                   "c%zu\" d=\"M0 5H22\"/></svg> ",
                   i % COLOURS);
        html_puts(b, runs[i].h->info.id);
        buf_puts(b, " <span class=\"dim\">");
        html_puts(b, runs[i].h->info.model);
        if (runs[i].speedup > 0)
            buf_printf(b, ", %.2f" TIMES "%s", runs[i].speedup, modelled_mark(runs[i].modelled));
        else
            buf_puts(b, ", no correct kernel");
        buf_puts(b, "</span></li>");
    }
    buf_puts(b, "</ul>");
}

static void legend_marks(struct buf *b, const struct facts *f)
{
    buf_puts(b, "<figcaption>Speed-up over ");
    html_puts(b, f->reference);
    buf_printf(b, "%s, by depth. ", f->modelled ? ", both modelled" : "");
    buf_puts(b, "<span class=\"key\"><svg width=\"12\" height=\"12\"><circle class=\"pass c0\" "
                "cx=\"6\" cy=\"6\" r=\"4.5\"/></svg> passed</span> "
                "<span class=\"key\"><svg width=\"12\" height=\"12\"><circle class=\"pass c0 "
                "pale\" cx=\"6\" cy=\"6\" r=\"4\"/></svg> passed, but no faster</span> "
                "<span class=\"key\"><svg width=\"12\" height=\"12\"><circle class=\"fail c0\" "
                "cx=\"6\" cy=\"6\" r=\"3.5\"/></svg> failed</span></figcaption>");
}

void chart_trajectory(struct buf *b, const struct facts *runs, size_t count, struct arena *a)
{
    struct plot p = plot_fit(runs, count);

    (void)a;
    buf_printf(b,
               "<figure class=\"chart\"><svg viewBox=\"0 0 %d %d\" role=\"img\" "
               "aria-label=\"speed-up by depth\">",
               WIDTH, HEIGHT);
    draw_grid(b, &p);
    draw_references(b, &p, &runs[0]);
    draw_profile_start(b, &p, &runs[0]);
    for (size_t i = count; i-- > 0;)
        draw_line(b, &p, &runs[i], i % COLOURS);
    for (size_t i = count; i-- > 0;) {
        draw_marks(b, &p, &runs[i], i % COLOURS);
        draw_best(b, &p, &runs[i], i % COLOURS);
    }
    buf_puts(b, "</svg>");
    if (count > 1)
        legend_runs(b, runs, count);
    legend_marks(b, &runs[0]);
    buf_puts(b, "</figure>");
}

/* ---- small ---------------------------------------------------------------- */

void chart_spark(struct buf *b, const struct facts *f)
{
    enum { W = 120, H = 26 };
    int steps = f->depth_max > 0 ? f->depth_max : 1;
    double best = 0, top = fmax(f->speedup, 1) * 1.05, x = 2;

    buf_printf(b, "<svg class=\"spark\" width=\"%d\" height=\"%d\" aria-hidden=\"true\">", W, H);
    buf_puts(b, "<path class=\"run c0\" d=\"");
    for (size_t i = 0; i < f->h->attempt_count; i++) {
        const struct attempt_record *r = &f->h->attempts[i];
        double v = speedup_of(f, attempt_us(r));
        if (v <= best)
            continue;
        x = 2 + (double)r->candidate.depth * (W - 8) / steps;
        if (best > 0)
            buf_printf(b, "L%.1f %.1f", x, H - 2 - best / top * (H - 6));
        buf_printf(b, "%s%.1f %.1f", best > 0 ? "L" : "M", x, H - 2 - v / top * (H - 6));
        best = v;
    }
    buf_puts(b, "\"/>");
    if (best > 0)
        buf_printf(b, "<circle class=\"pass c0\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>", x,
                   H - 2 - best / top * (H - 6));
    buf_puts(b, "</svg>");
}
