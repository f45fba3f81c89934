/*
 * suite.c - many tasks on one page: one row each, how many are how fast, what failed and why.
 */
#include "report/escape.h"
#include "report/page.h"

#include <math.h>
#include <string.h>

/* Measured and modelled speed-ups have different references and do not mix: where anything was
 * run on a GPU, only those runs are summed up. */
struct suite_sum {
    bool modelled; /* what is summed up */
    int runs, others;
    int correct, timed, faster;
    double log_sum; /* of the speed-ups, for their geometric mean */
    double top;
};

static bool is_modelled(const struct facts *f)
{
    return f->h->device.kind == DEVICE_SIMT;
}

static struct suite_sum sum_up(const struct facts *runs, size_t count)
{
    struct suite_sum s = {.modelled = true, .top = 2};

    for (size_t i = 0; i < count; i++)
        s.modelled = s.modelled && is_modelled(&runs[i]);
    for (size_t i = 0; i < count; i++) {
        const struct facts *f = &runs[i];
        if (is_modelled(f) != s.modelled) {
            s.others++;
            continue;
        }
        s.runs++;
        s.correct += f->best != NULL;
        s.timed += f->speedup > 0;
        s.faster += f->speedup > 1;
        s.log_sum += f->speedup > 0 ? log(f->speedup) : 0;
        s.top = fmax(s.top, ceil(f->speedup));
    }
    return s;
}

static void put_answer(struct buf *b, const struct facts *runs, const struct suite_sum *s)
{
    const char *reference = s->modelled ? "the first correct kernel" : "PyTorch eager";

    buf_puts(b, "<header><div class=\"crumbs\"><span><b>");
    html_puts(b, runs[0].h->info.suite ? runs[0].h->info.suite : "several tasks");
    buf_printf(b, "</b></span><span>%d runs</span></div><div class=\"hero\"><div>",
               s->runs + s->others);
    if (s->timed)
        buf_printf(b, "<div class=\"big\">%.2f<small>" TIMES "</small></div>",
                   exp(s->log_sum / s->timed));
    else
        buf_puts(b, "<div class=\"big none\">no kernel</div>");
    buf_printf(b, "<div class=\"over\">geometric mean over %s%s</div></div>", reference,
               s->modelled ? ", <span class=\"mod\">modelled</span>" : "");
    buf_printf(b,
               "<p class=\"lead\"><strong>%d of %d</strong> runs%s ended with a correct kernel; "
               "<strong>%d</strong> of them %s faster than %s.",
               s->correct, s->runs, s->modelled ? "" : " on a GPU", s->faster,
               s->faster == 1 ? "is" : "are", reference);
    if (s->others)
        buf_printf(b,
                   " <span class=\"dim\">%d more on simt, <span class=\"mod\">modelled</span>, "
                   "not counted here.</span>",
                   s->others);
    buf_puts(b, "</p></div></header>");
}

/* ---- fast_p ------------------------------------------------------------------- */

enum { CURVE_W = 1040, CURVE_H = 250, LEFT = 52, RIGHT = 20, TOP = 12, BOTTOM = 40 };

static double curve_x(const struct suite_sum *s, double p)
{
    return LEFT + p / s->top * (CURVE_W - LEFT - RIGHT);
}

static double curve_y(double share)
{
    return CURVE_H - BOTTOM - share * (CURVE_H - TOP - BOTTOM);
}

static void put_axes(struct buf *b, const struct suite_sum *s)
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

/* The fastest run below `limit`, 0 when there is none: the steps of the curve from the right. */
static double next_below(const struct facts *runs, size_t count, const struct suite_sum *s,
                         double limit)
{
    double next = 0;

    for (size_t i = 0; i < count; i++)
        if (is_modelled(&runs[i]) == s->modelled && runs[i].speedup < limit)
            next = fmax(next, runs[i].speedup);
    return next;
}

static int count_above(const struct facts *runs, size_t count, const struct suite_sum *s, double p)
{
    int n = 0;

    for (size_t i = 0; i < count; i++)
        n += is_modelled(&runs[i]) == s->modelled && runs[i].speedup > p;
    return n;
}

/* The share of runs that are correct and more than p times faster, for all p at once. */
static void put_curve(struct buf *b, const struct facts *runs, size_t count,
                      const struct suite_sum *s)
{
    buf_printf(b,
               "<section><h2>How many are how fast</h2><figure class=\"chart\"><svg "
               "viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"fast_p\">",
               CURVE_W, CURVE_H);
    put_axes(b, s);
    buf_printf(b, "<path class=\"run c0\" d=\"M%.1f %.1f", curve_x(s, s->top), curve_y(0));
    for (double p = next_below(runs, count, s, INFINITY); p > 0;
         p = next_below(runs, count, s, p)) {
        double before = next_below(runs, count, s, p);
        double share = (double)count_above(runs, count, s, before) / s->runs;
        buf_printf(b, "H%.1fV%.1f", curve_x(s, p), curve_y(share));
    }
    buf_printf(b, "H%.1f", curve_x(s, 0));
    buf_puts(b, "\"/></svg><figcaption>fast<sub>p</sub>: the share of runs with a correct kernel "
                "more than p times faster.</figcaption></figure></section>");
}

/* ---- rows ----------------------------------------------------------------------- */

/* Why there is no kernel: the last verdict. */
static void put_why(struct buf *b, const struct facts *f)
{
    const struct run_history *h = f->h;

    for (size_t i = h->attempt_count; i-- > 0;) {
        const struct attempt_record *r = &h->attempts[i];
        if (!r->ended_ms)
            continue;
        buf_printf(b, "<span class=\"verdict bad\">%s</span> ",
                   verdict_names[r->outcome.verdict.kind]);
        html_puts(b, r->outcome.verdict.summary);
        return;
    }
    html_puts(b, h->info.reason);
}

static void put_run(struct buf *b, const struct facts *f, struct arena *a)
{
    const struct run_info *r = &f->h->info;

    buf_puts(b, "<tr><th scope=\"row\" class=\"l0\">");
    html_puts(b, r->task);
    buf_printf(b, "</th><td class=\"l0\">%s</td><td class=\"l0\">", class_names[f->h->task.class]);
    if (f->best)
        chart_spark(b, f);
    buf_printf(b, "</td><td data-v=\"%.6f\">", f->speedup);
    if (f->speedup > 0)
        buf_printf(b, "<strong>%.2f" TIMES "</strong>%s", f->speedup, modelled_mark(f->modelled));
    buf_printf(b, "</td><td data-v=\"%.6f\">%s%s</td><td data-v=\"%.6f\">", f->best_us,
               f->best_us > 0 ? us_text(f->best_us, MICRO, a) : "",
               f->best_us > 0 ? modelled_mark(f->modelled) : "", f->roofline);
    if (f->roofline > 0)
        buf_printf(b, "%.0f&#8239;%%", f->roofline * 100);
    buf_printf(b, "</td><td data-v=\"%d\">%d of %zu</td><td class=\"l0 wrap\">", f->passed,
               f->passed, f->h->attempt_count);
    if (f->best)
        html_puts(b, r->id);
    else
        put_why(b, f);
    buf_puts(b, "</td></tr>");
}

void suite_page(struct buf *b, const struct facts *runs, size_t count, struct arena *a)
{
    struct suite_sum s = sum_up(runs, count);

    put_answer(b, runs, &s);
    buf_puts(b, "<main>");
    put_curve(b, runs, count, &s);
    buf_puts(b, "<section><h2>Tasks</h2><div class=\"scroll\"><table class=\"sums sortable\">"
                "<thead><tr><th class=\"l0\">task</th><th class=\"l0\">class</th><th "
                "class=\"l0\">trajectory</th><th>speed-up</th><th>time</th><th>of roofline</th>"
                "<th>passed</th><th class=\"l0\">run, or why not</th></tr></thead><tbody>");
    for (size_t i = 0; i < count; i++)
        put_run(b, &runs[i], a);
    buf_puts(b, "</tbody></table></div>");
    if (s.modelled || s.others)
        buf_puts(b, "<p class=\"note\"><span class=\"mod\">*</span> modelled, not measured; "
                    "compared with the first correct kernel. Measured runs are compared with "
                    "PyTorch eager.</p>");
    buf_puts(b, "</section></main>");
}
