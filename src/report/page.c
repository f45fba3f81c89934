/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.c - the page from top to bottom, for one run or several of one task.
 *
 * Hides the frame: one file, no outside resource, and a content security policy
 * that lets only our own script run, so that even a hole in the escaping
 * would not let a task or a model act in the reader's browser.
 */
#include "report/page.h"

#include "base/base64.h"
#include "base/fs.h"
#include "base/hash.h"
#include "report/escape.h"
#include "report/parts.h"
#include "report/report.h"
#include "report/rows.h"

#include <string.h>

enum { PAGE_LIMIT = 512 << 20 };

const char *modelled_mark(bool modelled)
{
    return modelled ? "<abbr class=\"mod\" title=\"modelled, not measured\">*</abbr>" : "";
}

/* ---- the frame --------------------------------------------------------------- */

static unsigned hex_value(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a') + 10;
}

static void put_policy(struct buf *b)
{
    char hex[65];
    unsigned char sum[32];
    char text[BASE64_ROOM(sizeof(sum))];

    hash_text(text_of(page_script), hex);
    for (size_t i = 0; i < sizeof(sum); i++)
        sum[i] = (unsigned char)(hex_value(hex[2 * i]) << 4 | hex_value(hex[2 * i + 1]));
    buf_puts(b, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                "style-src 'unsafe-inline'; script-src 'sha256-");
    base64_encode(sum, sizeof(sum), "+/", text);
    buf_puts(b, text);
    buf_puts(b, "'; base-uri 'none'; form-action 'none'\">");
}

static void page_start(struct buf *b, const char *title)
{
    buf_puts(b, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    put_policy(b);
    buf_puts(b, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
                "<meta name=\"referrer\" content=\"no-referrer\"><title>");
    html_puts(b, title);
    buf_printf(b, "</title><style>%s</style></head><body>\n", page_style);
}

static void page_end(struct buf *b)
{
    buf_printf(b,
               "<footer>Written by cutegen %s from its store. The file is whole: it needs no "
               "network.</footer>\n<script>%s</script></body></html>\n",
               CUTEGEN_VERSION, page_script);
}

/* ---- the answer ---------------------------------------------------------------- */

static void put_number(struct buf *b, const struct facts *f)
{
    if (f->speedup > 0) {
        buf_printf(b, "<div><div class=\"big\">%.*f<small>" TIMES "</small></div>",
                   f->speedup < 100 ? 2 : 0, f->speedup);
        buf_printf(b, "<div class=\"over\">%s ", f->speedup >= 1 ? "faster than" : "the speed of");
        html_puts(b, f->reference);
        if (f->modelled)
            buf_printf(b, ", <span class=\"mod\">%s</span>", modelled_words(f->h->device.models));
        buf_puts(b, "</div></div>");
    } else if (f->best) {
        buf_puts(b, "<div><div class=\"big\">correct</div><div class=\"over\">not "
                    "measured</div></div>");
    } else {
        buf_puts(b, "<div><div class=\"big none\">no kernel</div><div class=\"over\">none passed"
                    "</div></div>");
    }
}

static void put_outcome(struct buf *b, const struct facts *f, struct arena *a)
{
    const struct run_info *r = &f->h->info;

    if (f->best_us > 0) {
        buf_puts(b, f->modelled ? " is modelled at " : " runs in ");
        buf_puts(b, us_text(f->best_us, MICRO, a));
        buf_puts(b, " on ");
        html_puts(b, f->modelled && f->h->device.models ? f->h->device.models : r->device);
        if (f->modelled && !modelled_validated(f->h->device.models))
            buf_puts(b, " (unvalidated: no such GPU was measured)");
        if (*f->trivial) {
            buf_puts(b, ". The task is trivial: ");
            html_puts(b, f->trivial);
        } else {
            buf_printf(b, ", %s" TIMES " %s ", ratio_text(f->speedup, a),
                       f->speedup >= 1 ? "faster than" : "the speed of");
            html_puts(b, f->reference);
        }
        if (f->roofline > 0)
            buf_printf(b, " and at %.0f&#8239;%% of the roofline", f->roofline * 100);
        buf_puts(b, ". ");
    } else if (f->best) {
        buf_puts(b, " has a correct kernel; no time was taken. ");
    } else {
        buf_printf(b, " has no correct kernel after %zu attempt%s. ", f->h->attempt_count,
                   f->h->attempt_count == 1 ? "" : "s");
    }
}

static void put_ending(struct buf *b, const struct run_info *r)
{
    static const char *const endings[RUN_STATE_COUNT] = {"The run is going on", "The run is done",
                                                         "The run was stopped", "The run failed"};
    bool killed = r->state == RUN_RUNNING && !r->alive;

    buf_printf(b, "<span class=\"dim\">%s",
               killed ? "The run was cut short and can be resumed" : endings[r->state]);
    if (*r->reason) {
        buf_puts(b, ": ");
        html_puts(b, r->reason);
    }
    buf_puts(b, ".</span>");
}

/* The result in one sentence, and how the run ended if that is not obvious. */
static void put_sentence(struct buf *b, const struct facts *f, struct arena *a)
{
    const struct run_info *r = &f->h->info;

    buf_puts(b, "<p class=\"lead\"><strong>");
    html_puts(b, r->task);
    buf_puts(b, "</strong>");
    put_outcome(b, f, a);
    if (f->best)
        buf_printf(b, "It took %d depth%s and %zu attempts. ", f->depth_max + 1,
                   f->depth_max ? "s" : "", f->h->attempt_count);
    if (r->accepted != ACCEPTED_NOT_ASKED) {
        buf_puts(b, r->accepted == ACCEPTED_YES ? "Accepted: " : "<strong>Not accepted</strong>: ");
        html_puts(b, r->accepted_why);
        buf_puts(b, ". ");
    }
    if (r->state != RUN_DONE)
        put_ending(b, r);
    buf_puts(b, "</p>");
}

/* The task: tensors, class, scale. */
static void put_question(struct buf *b, const struct facts *f, struct arena *a)
{
    const struct task *t = &f->h->task;

    buf_printf(b, "<h1>%s", class_names[t->class]);
    for (int i = 0; i < t->in_count && i < 4; i++) {
        buf_puts(b, i ? ", " : " of ");
        html_puts(b, shape_text(&t->in[i], a));
    }
    if (t->in_count > 4)
        buf_printf(b, " and %d more", t->in_count - 4);
    if (t->scaled) {
        buf_puts(b, "; scaled: ");
        html_puts(b, t->scaled);
    }
    buf_puts(b, "</h1>");
}

static void put_tile(struct buf *b, const char *name, const char *value, const char *under)
{
    buf_printf(b, "<div><div class=\"k\">%s</div><div class=\"v\">%s</div><div class=\"s\">", name,
               value);
    html_puts(b, under);
    buf_puts(b, "</div></div>");
}

static void put_tiles(struct buf *b, const struct facts *f, struct arena *a)
{
    const struct test_result *t = f->best ? f->best->outcome.test : NULL;
    const struct measurement *m = f->best ? f->best->outcome.measurement : NULL;

    buf_puts(b, "<div class=\"tiles\">");
    if (f->best_us > 0)
        put_tile(b, f->modelled ? "Time, modelled" : "Time, cold L2", us_text(f->best_us, MICRO, a),
                 arena_printf(a, "depth 0: %s", us_text(f->first_us, MICRO, a)));
    if (f->roofline > 0)
        put_tile(b, f->modelled ? "Of the roofline, modelled" : "Of the roofline",
                 arena_printf(a, "%.0f&#8239;%%", f->roofline * 100),
                 arena_printf(a, "floor %s%s%s", us_text(m->floor_us, MICRO, a),
                              m->bound && *m->bound ? ", " : "", m->bound ? m->bound : ""));
    if (t && t->accuracy.draws)
        put_tile(b, "Largest relative error", error_text(t->accuracy.max_rel, a),
                 arena_printf(a, "reference: %s", error_text(t->accuracy.reference_max_rel, a)));
    put_tile(b, "Attempts passed", arena_printf(a, "%d of %zu", f->passed, f->h->attempt_count),
             arena_printf(a, "%d depth%s", f->depth_max + 1, f->depth_max ? "s" : ""));
    put_tile(b, "Took", ms_text(f->wall_ms, a), state_text(&f->h->info));
    if (f->all.prompt_tokens || f->all.cost_usd > 0)
        put_tile(b, "Cost", f->all.cost_known ? money_text(f->all.cost_usd, a) : DASH,
                 arena_printf(a, "%s tokens",
                              count_text(f->all.prompt_tokens + f->all.output_tokens, a)));
    buf_puts(b, "</div>");
}

static void put_header(struct buf *b, const struct facts *f, struct arena *a)
{
    buf_puts(b, "<header><div class=\"crumbs\"><span><b>");
    html_puts(b, f->h->info.task);
    buf_puts(b, "</b> by ");
    html_puts(b, f->h->info.model);
    buf_puts(b, " on ");
    html_puts(b, f->h->info.device);
    buf_puts(b, "</span><span>");
    html_puts(b, f->h->info.id);
    buf_puts(b, "</span></div><div class=\"hero\">");
    put_number(b, f);
    buf_puts(b, "<div>");
    put_question(b, f, a);
    put_sentence(b, f, a);
    buf_puts(b, "</div></div>");
    put_tiles(b, f, a);
    buf_puts(b, "</header>");
}

/* ---- the whole page ------------------------------------------------------------- */

static void put_kernel(struct buf *b, const struct facts *f, struct arena *a)
{
    if (!f->best)
        return;
    buf_printf(b,
               "<section id=\"kernel\"><h2>The kernel</h2><p class=\"hint\">Depth %d, <a "
               "href=\"#attempt-%d\">attempt %d</a>.</p>",
               f->best->candidate.depth, f->best->candidate.attempt, f->best->candidate.attempt);
    code_source(b, f->best->candidate.source, a);
    buf_puts(b, "</section>");
}

void run_page(struct buf *b, const struct facts *runs, size_t count, struct arena *a)
{
    const struct facts *f = &runs[0];
    bool drawable = false;

    put_header(b, f, a);
    buf_puts(b, "<main>");
    for (size_t i = 0; i < count; i++)
        drawable = drawable || runs[i].speedup > 0;
    if (drawable) {
        buf_puts(b, "<section id=\"trajectory\"><h2>Trajectory</h2>");
        chart_trajectory(b, runs, count, a);
        buf_puts(b, "</section>");
    }
    timeline_section(b, f, a);
    depths_section(b, f, a);
    standing_section(b, f, a);
    parts_section(b, f, a);
    put_kernel(b, f, a);
    sums_section(b, f, a);
    record_section(b, f, a);
    buf_puts(b, "</main>");
}

static bool same_task(const struct run_history *runs, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (strcmp(runs[0].info.task, runs[i].info.task) != 0)
            return false;
    return true;
}

void report_html(const struct run_history *runs, size_t count, struct buf *out)
{
    struct arena *a = arena_new();
    struct facts *facts = arena_array(a, count + 1, sizeof(*facts));

    if (!count)
        BUG("a report of no run");
    for (size_t i = 0; i < count; i++)
        facts[i] = facts_of(&runs[i]);
    if (same_task(runs, count)) {
        page_start(out, arena_printf(a, "%s: cutegen", runs[0].info.id));
        run_page(out, facts, count, a);
    } else {
        page_start(out, arena_printf(a, "%zu runs: cutegen", count));
        struct suite_rows rows = suite_rows_of_runs(facts, count, a);

        suite_page(out, &rows, a);
    }
    page_end(out);
    arena_free(a);
}

/* Writes the page and releases it. */
static bool page_write(struct buf *b, const char *path, struct error *err)
{
    bool ok;

    if (b->overflowed) {
        error_set(err, ERROR_MACHINE, "the page would be larger than %d MiB", PAGE_LIMIT >> 20);
        ok = error_hint(err, "report fewer runs on one page");
    } else {
        ok = file_write(path, buf_text(b), err);
    }
    buf_release(b);
    return ok || error_add(err, "writing the report");
}

bool report_write(const struct run_history *runs, size_t count, const char *path, struct error *err)
{
    struct buf b = buf_init(PAGE_LIMIT);

    report_html(runs, count, &b);
    return page_write(&b, path, err);
}

bool report_suite_write(const struct suite_view *v, const char *path, struct error *err)
{
    struct arena *a = arena_new();
    struct suite_rows rows = suite_rows_of(v, a);
    struct buf b = buf_init(PAGE_LIMIT);

    page_start(&b, arena_printf(a, "%s: cutegen", v->suite->name));
    suite_page(&b, &rows, a);
    page_end(&b);
    arena_free(a);
    return page_write(&b, path, err);
}
