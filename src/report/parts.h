/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - where the time of a kernel of several parts goes; private to this room.
 *
 * The file says which parts it has, its launches say to which they belong (base/parts.h). Times by
 * launch are modelled on simt. On a GPU only a profile has them: the judge's clock times the whole.
 */
#ifndef REPORT_PARTS_H
#define REPORT_PARTS_H

#include "base/buf.h"
#include "base/parts.h"
#include "report/facts.h"

enum part_clock { PARTS_UNTIMED, PARTS_MODELLED, PARTS_PROFILED };

struct part_facts {
    const struct attempt_record *of; /* the best, or the first that was built; NULL: none */
    struct kernel_parts parts;       /* count 0: it is one part, and nothing is shown */
    enum part_clock clock;
    double between_us;         /* modelled: gaps between launches; 0: hardly any */
    struct kernel_parts first; /* of the first correct kernel; count 0: other parts, or untimed */
};

struct part_facts part_facts_of(const struct facts *f, struct arena *a);
/* Of the time of all launches; 0: unknown. */
double part_share(const struct kernel_parts *p, double us);

/* What a step changed, part by part; the largest change first. */
struct part_change {
    int part; /* index */
    double from_us, to_us;
};
struct part_step {
    const struct attempt_record *at;
    double from_us, to_us; /* of the whole */
    struct part_change *changes;
    int count;
};
/* Every attempt that passed and was made from one with the same parts, if both have times. */
struct part_step *part_steps_of(const struct facts *f, struct arena *a, size_t *count);

void parts_text(struct buf *b, const struct facts *f, int columns, struct arena *a);
/* New references; NULL: it has no parts. */
json_t *parts_json(const struct facts *f, struct arena *a);
json_t *part_times_json(const struct attempt_record *r, struct arena *a);
/* parts_page.c, parts_chart.c */
void parts_section(struct buf *b, const struct facts *f, struct arena *a);
void parts_chart(struct buf *b, const struct part_facts *p, struct arena *a);

/* "12.8 MB"; "" for 0. */
const char *bytes_text(double bytes, struct arena *a);

#endif
