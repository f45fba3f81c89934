/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - a suite as rows and sums, used by page, text, CSV and JSON; private to this room.
 *
 * Measured and modelled speed-ups have different references and do not mix:
 * if anything was run on a GPU, only those rows are summed, and the others are counted separately.
 * A task without a correct kernel counts as a task in every share (correct, fast_p) but in no mean.
 */
#ifndef REPORT_ROWS_H
#define REPORT_ROWS_H

#include "report/facts.h"
#include "report/report.h"

enum { FAST_COUNT = 4 };
extern const double fast_limits[FAST_COUNT]; /* 0.8, 1, 1.5, 2 */

struct suite_row {
    const char *task, *problem; /* problem: why there is no result; "" none */
    const struct facts *f;      /* NULL: it has no run */
    bool counted;               /* it is included in the sums */
    int64_t wall_ms;
    int retries; /* steps that failed because of the machine */
};

struct suite_rows {
    const char *name; /* NULL: several runs without a suite's name */
    struct suite_row *rows;
    size_t count;
    bool modelled; /* the sums are of modelled times */
    int tasks, others;
    int correct, timed, fast[FAST_COUNT];
    double geomean;  /* of the speed-ups; 0: none */
    double roofline; /* geometric mean of the fractions reached; 0: none */
    double cost_usd;
    bool cost_known; /* of at least one call */
    bool cost_whole; /* of every call */
    int64_t wall_ms; /* sum over tasks */
    double top;      /* the largest speed-up, at least 2, rounded up */
};

struct suite_rows suite_rows_of(const struct suite_view *v, struct arena *a);
/* The label of the rows' modelled times: "unvalidated" if any row's GPU is. */
const char *rows_words(const struct suite_rows *s);
struct suite_rows suite_rows_of_runs(const struct facts *runs, size_t count, struct arena *a);
/* Why a row has no kernel, one line; "" when it has one. */
const char *row_why(const struct suite_row *r);
const char *row_state(const struct suite_row *r); /* "correct", "no kernel", "killed", ... */
/* Time taken so far; "" if it has not begun. */
const char *row_took(const struct suite_row *r, struct arena *a);

#endif
