/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite.c - many tasks on one page: a row each, the distribution of speed-ups, what failed and why.
 */
#include "report/escape.h"
#include "report/field.h"
#include "report/page.h"
#include "report/rows.h"

#include <math.h>
#include <string.h>

static void put_answer(struct buf *b, const struct suite_rows *s)
{
    const char *reference = s->modelled ? "the first correct kernel" : "PyTorch eager";

    buf_puts(b, "<header><div class=\"crumbs\"><span><b>");
    html_puts(b, s->name ? s->name : "several tasks");
    buf_printf(b, "</b></span><span>%zu tasks</span></div><div class=\"hero\"><div>", s->count);
    if (s->timed)
        buf_printf(b, "<div class=\"big\">%.2f<small>" TIMES "</small></div>", s->geomean);
    else
        buf_puts(b, "<div class=\"big none\">no kernel</div>");
    buf_printf(b, "<div class=\"over\">geometric mean over %s", reference);
    if (s->modelled)
        buf_printf(b, ", <span class=\"mod\">%s</span>", rows_words(s));
    buf_puts(b, "</div></div>");
    buf_printf(b,
               "<p class=\"lead\"><strong>%d of %d</strong> tasks%s have a correct kernel; "
               "<strong>%d</strong> of them %s faster than %s.",
               s->correct, s->tasks, s->modelled ? "" : " on a GPU", s->fast[1],
               s->fast[1] == 1 ? "is" : "are", reference);
    if (s->others)
        buf_printf(b,
                   " <span class=\"dim\">%d more on simt, <span class=\"mod\">%s</span>, "
                   "not counted here.</span>",
                   s->others, rows_words(s));
    buf_puts(b, "</p></div></header>");
}

/* ---- sums ------------------------------------------------------------------------ */

static void put_sum(struct buf *b, const char *name, const char *value, bool modelled)
{
    buf_printf(b, "<tr><th scope=\"row\" class=\"l0\">%s</th><td>%s%s</td></tr>", name, value,
               modelled_mark(modelled));
}

static void put_sums(struct buf *b, const struct suite_rows *s, struct arena *a)
{
    buf_puts(b, "<section><h2>Sums</h2><table class=\"sums\"><tbody>");
    put_sum(b, "correct",
            arena_printf(a, "%d of %d, %.0f&#8239;%%", s->correct, s->tasks,
                         s->tasks ? 100.0 * s->correct / s->tasks : 0),
            false);
    for (int p = 0; p < FAST_COUNT; p++)
        put_sum(b, arena_printf(a, "fast<sub>%g</sub>", fast_limits[p]),
                arena_printf(a, "%d of %d, %.0f&#8239;%%", s->fast[p], s->tasks,
                             s->tasks ? 100.0 * s->fast[p] / s->tasks : 0),
                s->modelled);
    if (s->geomean > 0)
        put_sum(b, "speed-up, geometric mean", arena_printf(a, "%.3f" TIMES, s->geomean),
                s->modelled);
    if (s->roofline > 0)
        put_sum(b, "of the roofline, geometric mean",
                arena_printf(a, "%.0f&#8239;%%", s->roofline * 100), s->modelled);
    put_sum(b, "cost",
            s->cost_known ? arena_printf(a, "%s%s", money_text(s->cost_usd, a),
                                         s->cost_whole ? "" : " and calls of unknown price")
                          : "none known",
            false);
    put_sum(b, "time, all tasks together", ms_text(s->wall_ms, a), false);
    buf_puts(b, "</tbody></table></section>");
}

/* ---- fast_p ------------------------------------------------------------------- */

enum { CURVE_W = 1040, CURVE_H = 250, LEFT = 52, RIGHT = 20, TOP = 12, BOTTOM = 40 };

static double curve_x(const struct suite_rows *s, double p)
{
    return LEFT + p / s->top * (CURVE_W - LEFT - RIGHT);
}

static double curve_y(double share)
{
    return CURVE_H - BOTTOM - share * (CURVE_H - TOP - BOTTOM);
}

static void put_axes(struct buf *b, const struct suite_rows *s)
{
    int every = (int)ceil(s->top / 12);

    for (int i = 0; i <= 4; i++) {
        buf_printf(b, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT,
                   CURVE_W - RIGHT, curve_y(i / 4.0), curve_y(i / 4.0));
        buf_printf(b, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d&#8239;%%</text>", LEFT - 10,
                   curve_y(i / 4.0) + 4, i * 25);
    }
    for (int p = 0; p <= (int)s->top; p += every)
        buf_printf(b, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d" TIMES "</text>",
                   curve_x(s, p), CURVE_H - BOTTOM + 20, p);
}

/* The speed-up of a row with a correct kernel that is included in the sums; else 0. */
static double row_speedup(const struct suite_row *r)
{
    return r->counted && r->f && r->f->best ? r->f->speedup : 0;
}

/* The largest speed-up below `limit`, or 0: gives the steps of the curve from the right. */
static double next_below(const struct suite_rows *s, double limit)
{
    double next = 0;

    for (size_t i = 0; i < s->count; i++)
        if (row_speedup(&s->rows[i]) < limit)
            next = fmax(next, row_speedup(&s->rows[i]));
    return next;
}

static int count_above(const struct suite_rows *s, double p)
{
    int n = 0;

    for (size_t i = 0; i < s->count; i++)
        n += row_speedup(&s->rows[i]) > p;
    return n;
}

/* The share of runs that are correct and more than p times faster, for all p at once. */
static void put_curve(struct buf *b, const struct suite_rows *s)
{
    buf_printf(b,
               "<section><h2>How many are how fast</h2><figure class=\"chart curve\"><svg "
               "viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"fast_p\">",
               CURVE_W, CURVE_H);
    put_axes(b, s);
    buf_printf(b, "<path class=\"run c0\" d=\"M%.1f %.1f", curve_x(s, s->top), curve_y(0));
    for (double p = next_below(s, INFINITY); p > 0; p = next_below(s, p)) {
        double share = (double)count_above(s, next_below(s, p)) / s->tasks;
        buf_printf(b, "H%.1fV%.1f", curve_x(s, p), curve_y(share));
    }
    buf_printf(b, "H%.1f", curve_x(s, 0));
    buf_puts(b, "\"/></svg><figcaption>fast<sub>p</sub>: the share of runs with a correct kernel "
                "more than p times faster.</figcaption></figure></section>");
}

/* ---- rows ----------------------------------------------------------------------- */

/* One line of it, with the full text as a tooltip. */
static void put_short(struct buf *b, const char *why)
{
    enum { SHORT = 140 };
    size_t len = strlen(why);

    if (len <= SHORT) {
        html_puts(b, why);
        return;
    }
    for (len = SHORT; len > 0 && why[len] != ' ';)
        len--;
    buf_puts(b, "<span title=\"");
    html_puts(b, why);
    buf_puts(b, "\">");
    html_add(b, (struct text){why, len ? len : SHORT});
    buf_puts(b, " \u2026</span>");
}

/* Why there is no kernel: the last verdict, or what prevented one. */
static void put_why(struct buf *b, const struct suite_row *r)
{
    const struct run_history *h = r->f ? r->f->h : NULL;

    for (size_t i = h && !*r->problem ? h->attempt_count : 0; i-- > 0;) {
        if (!h->attempts[i].ended_ms)
            continue;
        buf_printf(b, "<span class=\"verdict bad\">%s</span> ",
                   verdict_names[h->attempts[i].outcome.verdict.kind]);
        break;
    }
    put_short(b, row_why(r));
}

static void put_figures(struct buf *b, const struct facts *f, struct arena *a)
{
    buf_printf(b, "</td><td data-v=\"%.6f\">", f->speedup);
    if (f->speedup > 0)
        buf_printf(b, "<strong>%.2f" TIMES "</strong>%s", f->speedup, modelled_mark(f->modelled));
    buf_printf(b, "</td><td data-v=\"%.6f\">%s%s</td><td data-v=\"%.6f\">", f->best_us,
               f->best_us > 0 ? us_text(f->best_us, MICRO, a) : "",
               f->best_us > 0 ? modelled_mark(f->modelled) : "", f->roofline);
    if (f->roofline > 0)
        buf_printf(b, "%.0f&#8239;%%", f->roofline * 100);
    buf_printf(b, "</td><td data-v=\"%d\">%d of %zu</td>", f->passed, f->passed,
               f->h->attempt_count);
    buf_printf(b, "<td data-v=\"%.6f\">%s</td>", f->all.cost_usd,
               f->all.cost_known ? money_text(f->all.cost_usd, a) : "");
}

static void put_row(struct buf *b, const struct suite_row *r, struct arena *a)
{
    const struct facts *f = r->f;

    buf_puts(b, "<tr><th scope=\"row\" class=\"l0\">");
    html_puts(b, r->task);
    buf_printf(b, "</th><td class=\"l0\">%s</td><td class=\"l0\">",
               f ? class_names[f->h->task.class] : "");
    if (f && f->best)
        chart_spark(b, f);
    if (f)
        put_figures(b, f, a);
    else
        buf_puts(b, "</td><td data-v=\"0\"></td><td data-v=\"0\"></td><td data-v=\"0\"></td>"
                    "<td data-v=\"0\"></td><td data-v=\"0\"></td>");
    buf_printf(b, "<td data-v=\"%lld\">%s</td><td class=\"l0 wrap\">", (long long)r->wall_ms,
               row_took(r, a));
    if (f && f->best)
        html_puts(b, f->h->info.id);
    else
        put_why(b, r);
    buf_puts(b, "</td></tr>");
}

void suite_page(struct buf *b, const struct suite_rows *s, struct arena *a)
{
    struct field field = field_of(s, a);

    put_answer(b, s);
    buf_puts(b, "<main>");
    put_curve(b, s);
    buf_puts(b, "<section><h2>Tasks</h2><div class=\"scroll\"><table class=\"sums tasks sortable\">"
                "<thead><tr><th class=\"l0\">task</th><th class=\"l0\">class</th><th "
                "class=\"l0\">trajectory</th><th>speed-up</th><th>time</th><th>of roofline</th>"
                "<th>passed</th><th>cost</th><th>took</th><th class=\"l0\">run, or why not</th>"
                "</tr></thead><tbody>");
    for (size_t i = 0; i < s->count; i++)
        put_row(b, &s->rows[i], a);
    buf_puts(b, "</tbody></table></div>");
    if (s->modelled || s->others)
        buf_printf(b,
                   "<p class=\"note\"><span class=\"mod\">*</span> %s, not measured; compared with "
                   "the first correct kernel. Measured runs are compared with PyTorch eager.</p>",
                   rows_words(s));
    buf_puts(b, "</section>");
    field_html(&field, s->modelled, b, a);
    put_sums(b, s, a);
    buf_puts(b, "</main>");
}
