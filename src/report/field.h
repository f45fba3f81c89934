/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.h - the table of a suite's results against each baseline and in each class; private to this
 * room.
 *
 * One line per baseline (the headline first), per kernel class and per accuracy class. Every line
 * counts its tasks, those with a correct kernel, and those that are correct and more than p times
 * faster. A task without a figure counts in every share but in no mean.
 */
#ifndef REPORT_FIELD_H
#define REPORT_FIELD_H

#include "report/rows.h"

enum { FIELD_LINES = 24 };

struct field_line {
    const char *group; /* "over", "class", "accuracy" */
    const char *name;  /* "PyTorch eager (defaults)", "gemm", "fp32" */
    int tasks, correct, timed, fast[FAST_COUNT];
    double log_sum, geomean; /* of the speed-ups; 0: none */
};

struct field {
    struct field_line lines[FIELD_LINES];
    int count;
    int retries, retried;    /* steps that failed because of the machine; tasks with one */
    double seconds, dollars; /* per task; dollars < 0: no price is known */
};

struct field field_of(const struct suite_rows *s, struct arena *a);
void field_text(const struct field *f, bool modelled, int columns, struct buf *b, struct arena *a);
void field_html(const struct field *f, bool modelled, struct buf *b, struct arena *a);
json_t *field_json(const struct field *f); /* new reference */
void field_csv(const struct field *f, struct buf *b);

#endif
