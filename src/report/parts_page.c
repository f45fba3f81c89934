/* SPDX-License-Identifier: Apache-2.0 */
/* parts_page.c - where the time goes: the parts as a drawing and a table, and what steps gained. */
#include "report/escape.h"
#include "report/page.h"
#include "report/parts.h"

#include <math.h>

enum { CHANGES_SHOWN = 4 };

static void put_hint(struct buf *b, const struct part_facts *p)
{
    buf_printf(b,
               "<p class=\"hint\">%d parts; the drawing has them in the order of their data flow"
               ", with their kernels and the bytes that each reads and writes at least. ",
               p->parts.count);
    if (p->clock == PARTS_MODELLED)
        buf_puts(b, "Times and shares are <span class=\"mod\">modelled</span>.");
    else if (p->clock == PARTS_PROFILED)
        buf_puts(b, "Times are the profiler&#39;s, which slows kernels down; shares are of their "
                    "sum.");
    else
        buf_puts(b, "Their times are not known: they come with a profile of this kernel "
                    "(<code>--profile-from 1</code>).");
    buf_puts(b, "</p>");
}

static void put_time(struct buf *b, const struct part_facts *p, double us, struct arena *a)
{
    double share = part_share(&p->parts, us);
    const char *mark = modelled_mark(us > 0 && p->clock == PARTS_MODELLED);

    if (!p->clock)
        return;
    buf_printf(b,
               "<td data-v=\"%.6g\">%s%s</td><td class=\"l0\"><span class=\"roof\"><span "
               "class=\"bar\"><span style=\"width:%.1f%%\"></span></span><span class=\"num\">"
               "%.0f&#8239;%%</span></span></td>",
               us, us_text(us, MICRO, a), mark, fmin(share, 1) * 100, share * 100);
}

static void put_part(struct buf *b, const struct part_facts *p, int i, struct arena *a)
{
    const struct kernel_part *one = &p->parts.at[i];

    buf_printf(b, "<tr><th scope=\"row\">%d</th><td class=\"l0 wrap\">", i + 1);
    html_puts(b, one->ops);
    buf_puts(b, "</td><td class=\"l0\">");
    html_puts(b, one->recipe);
    buf_puts(b, "</td><td class=\"l0\">");
    html_puts(b, one->made);
    buf_printf(b, "</td><td>%s</td><td>%d</td>", bytes_text(one->bytes, a), one->launches);
    put_time(b, p, one->us, a);
    if (p->first.count)
        buf_printf(b, "<td>%s</td>",
                   one->us > 0 && p->first.at[i].us > 0
                       ? arena_printf(a, "%.2f" TIMES, p->first.at[i].us / one->us)
                       : "");
    buf_puts(b, "</tr>");
}

/* Launches that belong to no part. */
static void put_other(struct buf *b, const struct part_facts *p, struct arena *a)
{
    if (!p->parts.other_launches)
        return;
    buf_printf(b,
               "<tr><th scope=\"row\"></th><td class=\"l0 wrap\">for several parts</td><td></td>"
               "<td></td><td></td><td>%d</td>",
               p->parts.other_launches);
    put_time(b, p, p->parts.other_us, a);
    buf_puts(b, p->first.count ? "<td></td></tr>" : "</tr>");
}

static void put_table(struct buf *b, const struct part_facts *p, struct arena *a)
{
    const char *mark = modelled_mark(p->clock == PARTS_MODELLED);

    buf_puts(b, "<div class=\"scroll\"><table class=\"sums parts\"><thead><tr><th>part</th>"
                "<th class=\"l0\">operators</th><th class=\"l0\">recipe</th><th class=\"l0\">makes"
                "</th><th>moves</th><th>kernels</th>");
    if (p->clock)
        buf_printf(b, "<th>time%s</th><th class=\"l0\">share%s</th>", mark, mark);
    if (p->first.count)
        buf_printf(b, "<th title=\"over the first correct kernel\">gain%s</th>", mark);
    buf_puts(b, "</tr></thead><tbody>");
    for (int i = 0; i < p->parts.count; i++)
        put_part(b, p, i, a);
    put_other(b, p, a);
    buf_puts(b, "</tbody></table></div>");
    if (p->between_us > 0)
        buf_printf(b, "<p class=\"note\">Between the kernels: %s%s.</p>",
                   us_text(p->between_us, MICRO, a), modelled_mark(true));
}

static void put_step(struct buf *b, const struct part_facts *p, const struct part_step *s,
                     struct arena *a)
{
    const char *mark = modelled_mark(p->clock == PARTS_MODELLED);

    buf_printf(b, "<tr><th scope=\"row\"><a href=\"#attempt-%d\">%d</a></th><td class=\"l0 wrap\">",
               s->at->candidate.attempt, s->at->candidate.depth);
    html_puts(b, s->at->candidate.change);
    buf_printf(b, "</td><td>%.2f" TIMES "%s</td><td class=\"l0 wrap\">", s->from_us / s->to_us,
               mark);
    for (int i = 0; i < s->count && i < CHANGES_SHOWN; i++)
        buf_printf(b, "%spart %d: %s to %s%s", i ? ", " : "", s->changes[i].part + 1,
                   us_text(s->changes[i].from_us, MICRO, a), us_text(s->changes[i].to_us, MICRO, a),
                   mark);
    if (s->count > CHANGES_SHOWN)
        buf_printf(b, ", and %d more", s->count - CHANGES_SHOWN);
    buf_puts(b, s->count ? "</td></tr>" : "no part changed</td></tr>");
}

static void put_steps(struct buf *b, const struct facts *f, const struct part_facts *p,
                      struct arena *a)
{
    size_t count;
    struct part_step *steps = part_steps_of(f, a, &count);

    if (!count)
        return;
    buf_puts(b, "<h3>What each step gained</h3><div class=\"scroll\"><table class=\"sums\"><thead>"
                "<tr><th>depth</th><th class=\"l0\">change</th><th>gain</th><th class=\"l0\">by "
                "part, the largest change first</th></tr></thead><tbody>");
    for (size_t i = 0; i < count; i++)
        put_step(b, p, &steps[i], a);
    buf_puts(b, "</tbody></table></div>");
}

void parts_section(struct buf *b, const struct facts *f, struct arena *a)
{
    struct part_facts p = part_facts_of(f, a);

    if (!p.parts.count)
        return;
    buf_puts(b, "<section id=\"parts\"><h2>Where the time goes</h2>");
    put_hint(b, &p);
    parts_chart(b, &p, a);
    put_table(b, &p, a);
    put_steps(b, f, &p, a);
    buf_puts(b, "</section>");
}
