/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts_chart.c - the parts as boxes in the order of their data flow, as inline SVG.
 *
 * A box stands one row below the lowest part that it reads; boxes of a row stand side by side. A
 * line from each part to those that read it; one that passes rows goes around the boxes on the
 * right if nothing stands beside them. The shaded piece of a box is its share of the time.
 */
#include "report/escape.h"
#include "report/page.h"
#include "report/parts.h"

#include "base/text.h"

#include <math.h>
#include <stdlib.h>

enum {
    WIDTH = 1040,
    BOX = 42,  /* height */
    GAP = 18,  /* between rows */
    SIDE = 14, /* between boxes of a row */
    WIDEST = 460,
    LANES = 220, /* room on the right for lines that pass rows */
    ACROSS = 4,  /* boxes in a row; more go on below */
    LETTER = 7,  /* width of a character, about */
};

struct box {
    int row, column;
};

struct flowchart {
    const struct part_facts *p;
    struct box *boxes;
    int *in_row; /* boxes of each row */
    int rows;
    struct arena *a;
};

/* The row of each part: below what it reads, and full rows go on in the next. */
static struct flowchart flowchart_of(const struct part_facts *p, struct arena *a)
{
    const struct kernel_parts *all = &p->parts;
    struct flowchart t = {.p = p, .a = a};

    t.boxes = arena_array(a, (size_t)all->count, sizeof(*t.boxes));
    t.in_row = arena_array(a, (size_t)all->count * 2 + 1, sizeof(*t.in_row));
    for (int i = 0; i < all->count; i++) {
        int row = 0;

        for (int k = 0; k < all->at[i].from_count; k++) {
            int above = t.boxes[all->at[i].from[k]].row;

            row = row > above ? row : above + 1;
        }
        while (t.in_row[row] == ACROSS)
            row++;
        t.boxes[i] = (struct box){row, t.in_row[row]++};
        t.rows = t.rows > row ? t.rows : row + 1;
    }
    return t;
}

static double width_of(const struct flowchart *t, int i)
{
    int n = t->in_row[t->boxes[i].row];

    return fmin(WIDEST, (double)(WIDTH - LANES - (n - 1) * SIDE) / n);
}

static double left_of(const struct flowchart *t, int i)
{
    return t->boxes[i].column * (width_of(t, i) + SIDE);
}

static double top_of(const struct flowchart *t, int i)
{
    return t->boxes[i].row * (BOX + GAP) + 1;
}

/* From the bottom of one box to the top of another; past rows, around on the right. */
static void put_line(struct buf *b, const struct flowchart *t, int from, int to)
{
    double x1 = left_of(t, from) + width_of(t, from) / 2, y1 = top_of(t, from) + BOX;
    double x2 = left_of(t, to) + width_of(t, to) / 2, y2 = top_of(t, to);
    int rows = t->boxes[to].row - t->boxes[from].row;

    if (rows > 1 && t->in_row[t->boxes[from].row] == 1 && t->in_row[t->boxes[to].row] == 1) {
        double x = left_of(t, from) + width_of(t, from);
        double out = x + fmin(20 + 14 * rows, LANES - 10);

        y1 -= BOX / 3.0;
        y2 += BOX / 3.0;
        buf_printf(b, "<path class=\"flow\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>", x,
                   y1, out, y1, out, y2, x, y2);
        return;
    }
    buf_printf(b, "<path class=\"flow\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>", x1, y1,
               x1, y1 + GAP * 0.7, x2, y2 - GAP * 0.7, x2, y2);
}

static void put_ops(struct buf *b, const char *ops, double width)
{
    struct text whole = text_of(ops), cut = text_cut(whole, (size_t)(width / LETTER));

    html_add(b, cut);
    if (cut.len < whole.len)
        buf_puts(b, "\xe2\x80\xa6");
}

static void put_box(struct buf *b, const struct flowchart *t, int i)
{
    const struct kernel_part *one = &t->p->parts.at[i];
    double x = left_of(t, i), y = top_of(t, i), w = width_of(t, i);
    double share = part_share(&t->p->parts, one->us);

    buf_printf(b, "<g><title>part %d, ", i + 1);
    html_puts(b, one->recipe);
    buf_puts(b, ": ");
    html_puts(b, one->ops);
    buf_puts(b, "; reads ");
    html_puts(b, one->reads);
    buf_puts(b, "; makes ");
    html_puts(b, one->made);
    buf_printf(b,
               "</title><rect class=\"part\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" "
               "rx=\"3\"/>",
               x, y, w, BOX);
    if (share > 0)
        buf_printf(b,
                   "<rect class=\"share\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" "
                   "rx=\"3\"/>",
                   x, y, w * fmin(share, 1), BOX);
    buf_printf(b, "<text class=\"ops\" x=\"%.1f\" y=\"%.1f\">%d&#8195;", x + 10, y + 17, i + 1);
    put_ops(b, one->ops, w - 50);
    buf_printf(b, "</text><text x=\"%.1f\" y=\"%.1f\">", x + 10, y + 34);
    if (t->p->clock)
        buf_printf(b, "%.0f&#8239;%%%s, ", 100 * share, t->p->clock == PARTS_MODELLED ? "*" : "");
    buf_printf(b, "%d kernel%s%s%s</text></g>", one->launches, one->launches == 1 ? "" : "s",
               one->bytes > 0 ? ", " : "", bytes_text(one->bytes, t->a));
}

void parts_chart(struct buf *b, const struct part_facts *p, struct arena *a)
{
    struct flowchart t = flowchart_of(p, a);

    buf_printf(b,
               "<figure class=\"chart flowchart\"><svg viewBox=\"0 0 %d %d\" role=\"img\" "
               "aria-label=\"%d parts in the order of their data flow\">",
               WIDTH, t.rows * (BOX + GAP), p->parts.count);
    for (int i = 0; i < p->parts.count; i++)
        for (int k = 0; k < p->parts.at[i].from_count; k++)
            put_line(b, &t, p->parts.at[i].from[k], i);
    for (int i = 0; i < p->parts.count; i++)
        put_box(b, &t, i);
    buf_puts(b, "</svg></figure>");
}
