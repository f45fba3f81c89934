/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - the parts of the page, each in its own file; private to this room.
 *
 * Our own markup is written with buf_puts() and buf_printf(); anything from a
 * record goes through escape.h. A %s of buf_printf() here is one of our own
 * literals or a figure written by facts.h.
 */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "base/buf.h"
#include "report/facts.h"

extern const char page_style[], page_script[];

#define MICRO "\xc2\xb5" /* the sign, for us_text() */
#define TIMES "\xc3\x97"
#define DASH  "\xe2\x80\x93"

/* chart.c: speed-up by depth, all runs in one picture; a small one for a row of a suite. */
void chart_trajectory(struct buf *b, const struct facts *runs, size_t count, struct arena *a);
void chart_spark(struct buf *b, const struct facts *f);

/* code.c */
void code_source(struct buf *b, struct text source, struct arena *a);
void code_diff(struct buf *b, struct text before, struct text after, struct arena *a);

/* depths.c: the table of attempts, each opening to its evidence. */
void depths_section(struct buf *b, const struct facts *f, struct arena *a);

/* sums.c: the time compared with its floor and baselines, cost and time by stage, environment, how
 * to reproduce. */
void standing_section(struct buf *b, const struct facts *f, struct arena *a);
void sums_section(struct buf *b, const struct facts *f, struct arena *a);
void record_section(struct buf *b, const struct facts *f, struct arena *a);

/* timeline.c: model calls and attempts in order, drawn as wide as they took. */
void timeline_section(struct buf *b, const struct facts *f, struct arena *a);

/* suite.c: one row per run. */
struct suite_rows;
void suite_page(struct buf *b, const struct suite_rows *rows, struct arena *a);

/* page.c: one run in full, with other runs of its task overlaid. */
void run_page(struct buf *b, const struct facts *runs, size_t count, struct arena *a);
/* page.c: the mark of a modelled figure, "" if it was measured. */
const char *modelled_mark(bool modelled);

#endif
