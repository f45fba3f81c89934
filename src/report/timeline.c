/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.c - the run from left to right: model calls and every attempt with its verdict, drawn as
 * wide as they took.
 */
#include "report/escape.h"
#include "report/page.h"

#include <string.h>

static int64_t model_ms(const struct run_history *h, int attempt)
{
    int64_t sum = 0;

    for (size_t i = 0; i < h->call_count; i++)
        if (h->calls[i].attempt == attempt)
            sum += h->calls[i].reply.latency_ms;
    return sum;
}

static int64_t judged_ms(const struct attempt_record *r)
{
    return r->ended_ms > r->started_ms ? r->ended_ms - r->started_ms : 0;
}

static void put_block(struct buf *b, const char *class, int64_t ms, int64_t whole, const char *link)
{
    buf_printf(b, "<a class=\"%s\" style=\"flex-grow:%.4f\"%s%s%s title=\"", class,
               whole > 0 ? (double)ms / (double)whole : 0, link ? " href=\"#" : "",
               link ? link : "", link ? "\"" : "");
}

static void put_attempt(struct buf *b, const struct run_history *h, const struct attempt_record *r,
                        int64_t whole, struct arena *a)
{
    const struct candidate *c = &r->candidate;
    int64_t asked = model_ms(h, c->attempt);

    if (asked > 0) {
        put_block(b, "turn", asked, whole, NULL);
        buf_printf(b, "model: %s\"></a>", ms_text(asked, a));
    }
    put_block(b,
              !r->ended_ms        ? "open"
              : attempt_passed(r) ? "good"
                                  : "bad",
              judged_ms(r), whole, arena_printf(a, "attempt-%d", c->attempt));
    buf_printf(b, "attempt %d, depth %d", c->attempt, c->depth);
    if (c->repair)
        buf_printf(b, ", repair %d", c->repair);
    buf_printf(b, ": %s, %s: ", r->ended_ms ? verdict_names[r->outcome.verdict.kind] : "cut short",
               ms_text(judged_ms(r), a));
    html_puts(b, c->change);
    buf_puts(b, "\"></a>");
}

void timeline_section(struct buf *b, const struct facts *f, struct arena *a)
{
    const struct run_history *h = f->h;
    int64_t whole = 0;

    for (size_t i = 0; i < h->attempt_count; i++)
        whole += model_ms(h, h->attempts[i].candidate.attempt) + judged_ms(&h->attempts[i]);
    if (!h->attempt_count)
        return;
    buf_puts(b, "<section id=\"timeline\"><h2>Timeline</h2><div class=\"timeline\">");
    for (size_t i = 0; i < h->attempt_count; i++)
        put_attempt(b, h, &h->attempts[i], whole, a);
    buf_printf(b,
               "</div><p class=\"hint\">%s of work in order: <span class=\"verdict pass\">passed"
               "</span> &#8195;<span class=\"verdict bad\">another verdict</span> &#8195;<span "
               "class=\"verdict turn\">the model's turn</span></p></section>",
               ms_text(whole, a));
}
