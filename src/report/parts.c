/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.c - the figures of parts.h, and as text and JSON.
 *
 * Invariants
 * 1. A modelled time is marked as such; a profiler's time is named so: it is not the judge's clock.
 * 2. Parts of two kernels are compared only where both files describe the same parts.
 */
#include "report/parts.h"

#include "base/json.h"
#include "base/text.h"
#include "report/escape.h"
#include "report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_PARTS = 16, TEXT_STEPS = 12, TEXT_CHANGES = 3, OPS_COLUMNS = 48, OPS_LEAST = 16 };

/* A change of less than a hundredth of the part's time, or of the whole, is not shown. */
static const double least_change = 0.01;

/* ---- figures ----------------------------------------------------------------- */

static struct kernel_parts parts_of(const struct attempt_record *r, enum part_clock *clock,
                                    struct arena *a)
{
    const struct build_result *build = r->ended_ms ? r->outcome.build : NULL;
    const struct measurement *m = r->ended_ms ? r->outcome.measurement : NULL;
    const json_t *timed = NULL;
    struct kernel_parts p;

    *clock = PARTS_UNTIMED;
    parts_read(r->candidate.source, a, &p);
    if (!p.count || !build)
        return p;
    if (r->outcome.shape_count) /* its time is a mean over shapes */
        timed = NULL;
    else if (m && m->modelled)
        timed = json_object_get(m->parts, "launches");
    else if (r->profile)
        timed = json_object_get(r->profile->data, "kernels");
    parts_time(&p, build->launches, timed);
    if (p.sum_us > 0)
        *clock = m && m->modelled ? PARTS_MODELLED : PARTS_PROFILED;
    return p;
}

static bool same_parts(const struct kernel_parts *p, const struct kernel_parts *q)
{
    for (int i = 0; i < p->count && p->count == q->count; i++)
        if (strcmp(p->at[i].ops, q->at[i].ops) != 0 || strcmp(p->at[i].made, q->at[i].made) != 0)
            return false;
    return p->count && p->count == q->count;
}

struct part_facts part_facts_of(const struct facts *f, struct arena *a)
{
    struct part_facts p = {.of = f->best};
    enum part_clock clock = PARTS_UNTIMED;

    for (size_t i = 0; i < f->h->attempt_count && !p.of; i++)
        if (f->h->attempts[i].ended_ms && f->h->attempts[i].outcome.build)
            p.of = &f->h->attempts[i];
    if (!p.of)
        return p;
    p.parts = parts_of(p.of, &p.clock, a);
    if (p.clock == PARTS_MODELLED)
        p.between_us = p.of->outcome.measurement->time_us - p.parts.sum_us;
    if (p.between_us < least_change * p.parts.sum_us)
        p.between_us = 0;
    if (f->first && f->first != p.of)
        p.first = parts_of(f->first, &clock, a);
    if (clock != p.clock || !p.clock || !same_parts(&p.parts, &p.first))
        p.first.count = 0;
    return p;
}

double part_share(const struct kernel_parts *p, double us)
{
    return p->sum_us > 0 ? us / p->sum_us : 0;
}

static int by_change(const void *a, const void *b)
{
    const struct part_change *x = a, *y = b;
    double one = fabs(x->to_us - x->from_us), two = fabs(y->to_us - y->from_us);

    return one != two ? (one < two) - (one > two) : x->part - y->part;
}

static void find_changes(const struct kernel_parts *from, const struct kernel_parts *to,
                         struct part_step *out, struct arena *a)
{
    out->changes = arena_array(a, (size_t)to->count, sizeof(*out->changes));
    for (int i = 0; i < to->count; i++) {
        double then = from->at[i].us, now = to->at[i].us, by = fabs(now - then);

        if (by > least_change * fmax(then, now) && by > least_change * from->sum_us / 10)
            out->changes[out->count++] = (struct part_change){i, then, now};
    }
    qsort(out->changes, (size_t)out->count, sizeof(*out->changes), by_change);
}

struct part_step *part_steps_of(const struct facts *f, struct arena *a, size_t *count)
{
    struct part_step *steps = arena_array(a, f->h->attempt_count + 1, sizeof(*steps));

    *count = 0;
    for (size_t i = 0; i < f->h->attempt_count; i++) {
        const struct attempt_record *r = &f->h->attempts[i], *from = attempt_base(f->h, r);
        enum part_clock now, then;
        struct kernel_parts p, q;

        if (!from || !(attempt_us(r) > 0))
            continue;
        p = parts_of(r, &now, a);
        q = parts_of(from, &then, a);
        if (!now || now != then || !same_parts(&p, &q))
            continue;
        steps[*count] = (struct part_step){r, attempt_us(from), attempt_us(r), NULL, 0};
        find_changes(&q, &p, &steps[(*count)++], a);
    }
    return steps;
}

const char *bytes_text(double bytes, struct arena *a)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    size_t unit = 0;

    if (!(bytes > 0) || !isfinite(bytes))
        return "";
    while (bytes >= 999.5 && unit + 1 < ARRAY_LEN(units)) {
        bytes /= 1000;
        unit++;
    }
    return arena_printf(a, "%.*f %s", unit && bytes < 99.95 ? 1 : 0, bytes, units[unit]);
}

/* ---- text -------------------------------------------------------------------- */

/* Of a long list only the costliest parts are shown. */
static bool is_shown(const struct kernel_parts *p, int i)
{
    int before = 0;

    for (int k = 0; k < p->count; k++)
        before += p->at[k].us > p->at[i].us || (p->at[k].us == p->at[i].us && k < i);
    return before < TEXT_PARTS;
}

static void put_ops(struct buf *b, const char *ops, int columns, struct arena *a)
{
    struct text cut = text_cut(text_of(plain(ops, a)), (size_t)columns);

    buf_add(b, cut.data, cut.len);
    buf_puts(b, strlen(plain(ops, a)) > cut.len ? "...\n" : "\n");
}

static void put_row(struct buf *b, const struct part_facts *p, int number, int launches, double us,
                    const char *bytes, struct arena *a)
{
    if (number)
        buf_printf(b, "%5d", number);
    else
        buf_puts(b, "     ");
    if (p->clock)
        buf_printf(b, " %5.0f %% %10s", 100 * part_share(&p->parts, us),
                   us > 0 ? us_text(us, "u", a) : "-");
    buf_printf(b, " %7d %9s  ", launches, bytes);
}

static void put_rows(struct buf *b, const struct part_facts *p, int columns, struct arena *a)
{
    const struct kernel_parts *all = &p->parts;
    double left_us = 0;
    int left = 0, left_launches = 0;

    for (int i = 0; i < all->count; i++) {
        const struct kernel_part *one = &all->at[i];

        if (!is_shown(all, i)) {
            left++;
            left_us += one->us;
            left_launches += one->launches;
            continue;
        }
        put_row(b, p, i + 1, one->launches, one->us, bytes_text(one->bytes, a), a);
        put_ops(b, one->ops, columns, a);
    }
    if (left) {
        put_row(b, p, 0, left_launches, left_us, "", a);
        buf_printf(b, "%d more parts (--json has all)\n", left);
    }
    if (all->other_launches) {
        put_row(b, p, 0, all->other_launches, all->other_us, "", a);
        buf_puts(b, "for several parts\n");
    }
}

/* Launching takes time, too: the rest of the whole's. */
static void put_between(struct buf *b, const struct part_facts *p, struct arena *a)
{
    if (p->between_us > 0)
        buf_printf(b, "%24s%20s between the kernels\n", us_text(p->between_us, "u", a), "");
}

/* The attempt's number: several steps may have one depth (--seed, --width). */
static void put_step(struct buf *b, const struct part_step *s, const char *name, const char *mark,
                     struct arena *a)
{
    buf_printf(b, "%-8s attempt %-3d", name, s->at->candidate.attempt);
    for (int i = 0; i < s->count && i < TEXT_CHANGES; i++)
        buf_printf(b, "%s part %d: %s -> %s%s", i ? "," : "", s->changes[i].part + 1,
                   us_text(s->changes[i].from_us, "u", a), us_text(s->changes[i].to_us, "u", a),
                   mark);
    if (s->count > TEXT_CHANGES)
        buf_printf(b, ", %d more", s->count - TEXT_CHANGES);
    buf_puts(b, s->count ? "\n" : " no part changed\n");
}

void parts_text(struct buf *b, const struct facts *f, int columns, struct arena *a)
{
    struct part_facts p = part_facts_of(f, a);
    const char *mark = p.clock == PARTS_MODELLED ? "*" : " ";
    int used = p.clock ? 44 : 25, room = columns ? columns - used - 3 : OPS_COLUMNS;
    struct part_step *steps;
    size_t count;

    if (!p.parts.count)
        return;
    room = room > OPS_COLUMNS ? OPS_COLUMNS : room < OPS_LEAST ? OPS_LEAST : room;
    buf_puts(b, " part");
    if (p.clock)
        buf_printf(b, "  share%s      time%s", mark, mark);
    buf_puts(b, " kernels     moves  operators\n");
    put_rows(b, &p, room, a);
    put_between(b, &p, a);
    if (p.clock == PARTS_PROFILED)
        buf_puts(b, "times of parts by the profiler, which slows kernels down\n");
    else if (!p.clock)
        buf_puts(b, "times of parts are not known: they come with a profile (--profile-from 1)\n");
    steps = part_steps_of(f, a, &count);
    for (size_t i = 0; i < count && i < TEXT_STEPS; i++)
        put_step(b, &steps[i], i ? "" : "steps", p.clock == PARTS_MODELLED ? "*" : "", a);
    if (count > TEXT_STEPS)
        buf_printf(b, "         %zu more steps (--json has all)\n", count - TEXT_STEPS);
    buf_puts(b, "\n");
}

/* ---- JSON -------------------------------------------------------------------- */

static json_t *words(const char *s, struct arena *a)
{
    json_t *v = json_string(plain(s, a));

    return v ? v : json_null();
}

static json_t *time_json(double us, enum part_clock clock)
{
    return clock ? json_real(us) : json_null();
}

static json_t *part_json(const struct part_facts *p, int i, struct arena *a)
{
    const struct kernel_part *one = &p->parts.at[i];
    json_t *from = json_array();

    for (int k = 0; k < one->from_count; k++)
        json_array_append_new(from, json_integer(one->from[k] + 1));
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o}", "part", i + 1,
                     "recipe", words(one->recipe, a), "operators", words(one->ops, a), "reads",
                     words(one->reads, a), "makes", words(one->made, a), "after", from, "bytes",
                     one->bytes > 0 ? json_integer((json_int_t)fmin(one->bytes, 9e18))
                                    : json_null(),
                     "kernels", one->launches, "time_us", time_json(one->us, p->clock), "share",
                     time_json(part_share(&p->parts, one->us), p->clock), "first_us",
                     time_json(p->first.count ? p->first.at[i].us : 0,
                               p->first.count ? p->clock : PARTS_UNTIMED));
}

json_t *parts_json(const struct facts *f, struct arena *a)
{
    static const char *const clocks[] = {NULL, "modelled", "profiler"};
    struct part_facts p = part_facts_of(f, a);
    json_t *list = json_array();

    if (!p.parts.count) {
        json_decref(list);
        return NULL;
    }
    for (int i = 0; i < p.parts.count; i++)
        json_array_append_new(list, part_json(&p, i, a));
    return json_pack("{s:i, s:s?, s:o, s:i, s:o, s:o}", "attempt", p.of->candidate.attempt, "times",
                     clocks[p.clock], "list", list, "other_kernels", p.parts.other_launches,
                     "other_us", time_json(p.parts.other_us, p.clock), "between_us",
                     time_json(p.between_us, p.clock == PARTS_MODELLED ? p.clock : PARTS_UNTIMED));
}

json_t *part_times_json(const struct attempt_record *r, struct arena *a)
{
    enum part_clock clock;
    struct kernel_parts p = parts_of(r, &clock, a);
    json_t *list = clock ? json_array() : NULL;

    for (int i = 0; list && i < p.count; i++)
        json_array_append_new(list, json_real(p.at[i].us));
    return list;
}
