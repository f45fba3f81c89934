/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_plan.c - the parts of a kernel as a work plan, for prompts.
 *
 * The built-in engineer divides a task into parts; its file says which (base/parts.h). A model that
 * writes the first kernel is shown that division, one that improves a kernel the parts by cost, so
 * that it works on one at a time. Nothing is judged by part: the whole is.
 */
#include "base/buf.h"
#include "base/parts.h"
#include "stage/workshop.h"

#include <stdlib.h>

enum { PLAN_PARTS = 12, PLAN_BYTES = 64 << 10 };

/* The parts in the order of the plan: the costliest first, by time or, without one, by bytes. */
static int compare(const void *a, const void *b)
{
    const struct kernel_part *x = *(const struct kernel_part *const *)a;
    const struct kernel_part *y = *(const struct kernel_part *const *)b;
    double one = x->us > 0 || y->us > 0 ? x->us : x->bytes;
    double two = x->us > 0 || y->us > 0 ? y->us : y->bytes;

    return one != two ? (one < two) - (one > two) : (x > y) - (x < y);
}

static void put_part(struct buf *b, const struct kernel_parts *p, const struct kernel_part *one,
                     const char *clock)
{
    buf_printf(b, "part %d", (int)(one - p->at) + 1);
    if (p->sum_us > 0)
        buf_printf(b, ": %.0f %% of the time, %.3g us (%s)", 100 * one->us / p->sum_us, one->us,
                   clock);
    if (one->launches)
        buf_printf(b, "%s %d kernel%s", p->sum_us > 0 ? "," : ":", one->launches,
                   one->launches == 1 ? "" : "s");
    buf_printf(b, "\n    %s: %s\n    reads %s; makes %s; moves at least %.0f bytes\n", one->recipe,
               one->ops, one->reads, one->made, one->bytes);
}

/* Times of the kernel's launches: modelled, or a profiler's; NULL: there are none. */
static const json_t *timed(const struct question *q)
{
    if (q->time && q->time->modelled)
        return json_object_get(q->time->parts, "launches");
    return q->profile ? json_object_get(q->profile->data, "kernels") : NULL;
}

const char *workshop_plan(struct text source, const struct question *about, struct arena *a,
                          int *costliest)
{
    struct buf b = buf_init(PLAN_BYTES);
    const struct kernel_part **order;
    struct kernel_parts p;
    const char *text;
    double left_us = 0;

    *costliest = 0;
    parts_read(source, a, &p);
    if (!p.count)
        return "";
    if (about)
        parts_time(&p, about->launches, timed(about));
    order = arena_array(a, (size_t)p.count, sizeof(*order));
    for (int i = 0; i < p.count; i++)
        order[i] = &p.at[i];
    qsort(order, (size_t)p.count, sizeof(*order), compare);
    for (int i = 0; i < p.count && i < PLAN_PARTS; i++)
        put_part(&b, &p, order[i],
                 about && about->time && about->time->modelled ? measurement_words(about->time)
                                                               : "by the profiler");
    for (int i = PLAN_PARTS; i < p.count; i++)
        left_us += order[i]->us;
    if (p.count > PLAN_PARTS)
        buf_printf(&b, "%d more parts", p.count - PLAN_PARTS);
    if (p.count > PLAN_PARTS && p.sum_us > 0)
        buf_printf(&b, ": %.0f %% of the time", 100 * left_us / p.sum_us);
    *costliest = (int)(order[0] - p.at) + 1;
    text = b.overflowed ? "" : buf_copy(&b, a).data;
    buf_release(&b);
    return text;
}
