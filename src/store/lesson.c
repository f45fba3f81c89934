/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lesson.c - lessons from judged attempts of other runs, for one class of tasks on one device.
 *
 * Nothing extra is stored: a lesson is read from attempts that ended with a verdict.
 */
#include "base/json.h"
#include "store/sql.h"

#include <string.h>

enum {
    MOST_ATTEMPTS = 4000, /* only this many of the newest are read */
    MANY = 64,            /* at most this many different lessons are counted */
    RUN_ATTEMPTS = 512,   /* attempts of a run for which repairs are traced to what they repair */
};

static const double WORTH_TELLING = 1.05; /* smaller gains are ignored */

/* One judged attempt. */
struct judged_row {
    const char *task, *run, *change, *stage, *verdict, *summary;
    int number, parent;
    bool kept, modelled, counts; /* counts: its time is meaningful and it was not refused later */
    double time_us, floor_us;
};

struct collection {
    struct lesson gains[MANY], failures[MANY];
    size_t gain_count, failure_count;
    struct lesson best;
    bool has_best;
    const char *run;                   /* being read */
    double run_us;                     /* the run's best so far; 0: none */
    const char *changes[RUN_ATTEMPTS]; /* what each attempt tried, by number */
};

static bool same_device(const char *line, const struct lesson_query *want)
{
    json_error_t ignored;
    json_t *d = json_loads(line, 0, &ignored);
    bool same = strcmp(json_string_or(d, "name", ""), want->device) == 0 &&
                strcmp(json_string_or(d, "models", ""), want->models) == 0;

    json_decref(d);
    return same;
}

/* One of before there were three languages only says whether it is CUDA C++. */
static bool same_target(const char *line, const struct lesson_query *want)
{
    json_error_t ignored;
    json_t *o = json_loads(line, 0, &ignored);
    const char *target =
        json_string_or(o, "target", json_bool_or(o, "target_cuda", false) ? "cuda" : "cute");
    bool same = strcmp(target, want->target) == 0;

    json_decref(o);
    return same;
}

static struct lesson *find(struct lesson *list, size_t *count, const struct judged_row *r)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(list[i].change, r->change) == 0 && strcmp(list[i].verdict, r->verdict) == 0)
            return &list[i];
    if (*count == MANY)
        return NULL;
    list[*count] = (struct lesson){.task = r->task,
                                   .run = r->run,
                                   .change = r->change,
                                   .verdict = r->verdict,
                                   .why = r->summary,
                                   .modelled = r->modelled};
    return &list[(*count)++];
}

static void take_pass(struct collection *c, const struct judged_row *r)
{
    bool step = strcmp(r->stage, stage_names[STAGE_SYNTHESIZE]) != 0 && r->kept;
    struct lesson *l;

    if (!r->counts)
        return;
    if (step && c->run_us > r->time_us * WORTH_TELLING &&
        (l = find(c->gains, &c->gain_count, r)) != NULL) {
        l->times++;
        if (l->after_us <= 0 || c->run_us / r->time_us > l->before_us / l->after_us) {
            l->task = r->task;
            l->before_us = c->run_us;
            l->after_us = r->time_us;
        }
    }
    if (c->run_us <= 0 || r->time_us < c->run_us)
        c->run_us = r->time_us;
    if (r->floor_us > 0 &&
        (!c->has_best || r->floor_us / r->time_us > c->best.before_us / c->best.after_us)) {
        c->has_best = true;
        c->best = (struct lesson){.task = r->task,
                                  .run = r->run,
                                  .change = r->change,
                                  .before_us = r->floor_us,
                                  .after_us = r->time_us,
                                  .modelled = r->modelled};
    }
}

/* A repair is attributed to the change that it repairs. */
static void name_change(struct collection *c, struct judged_row *r)
{
    bool known = r->parent > 0 && r->parent < RUN_ATTEMPTS && c->changes[r->parent];

    if (known && strcmp(r->stage, stage_names[STAGE_REPAIR]) == 0)
        r->change = c->changes[r->parent];
    if (r->number > 0 && r->number < RUN_ATTEMPTS)
        c->changes[r->number] = r->change;
}

static void take(struct collection *c, struct judged_row *r)
{
    struct lesson *l;

    if (!c->run || strcmp(c->run, r->run) != 0) {
        c->run = r->run;
        c->run_us = 0;
        memset(c->changes, 0, sizeof(c->changes));
    }
    name_change(c, r);
    if (strcmp(r->verdict, verdict_names[VERDICT_PASS]) == 0)
        take_pass(c, r);
    else if (strcmp(r->verdict, verdict_names[VERDICT_UNATTESTED]) != 0 &&
             strcmp(r->verdict, verdict_names[VERDICT_NO_CODE]) != 0 &&
             (l = find(c->failures, &c->failure_count, r)) != NULL)
        l->times++;
}

static int gain_first(const struct lesson *a, const struct lesson *b)
{
    return a->before_us / a->after_us > b->before_us / b->after_us;
}

static int frequent_first(const struct lesson *a, const struct lesson *b)
{
    return a->times > b->times;
}

/* Picks the first few by an order; of equal ones, the newer. */
static size_t pick(struct lesson *list, size_t count, struct lesson *out,
                   int (*before)(const struct lesson *, const struct lesson *))
{
    size_t n = 0;

    for (; n < LESSONS_MAX && n < count; n++) {
        size_t best = n;

        for (size_t i = n + 1; i < count; i++)
            if (before(&list[i], &list[best]))
                best = i;
        out[n] = list[best];
        memmove(&list[n + 1], &list[n], (best - n) * sizeof(*list));
        list[n] = out[n];
    }
    return n;
}

static bool read_all(struct store *s, const struct lesson_query *want, struct arena *a,
                     struct collection *c, struct error *err)
{
    struct query q;

    if (!sql_query(s, &q, err,
                   "SELECT t.name, a.run, c.change, a.stage, v.kind, v.summary, a.kept, "
                   "coalesce(m.modelled, 0), coalesce(m.time_us, 0), coalesce(m.floor_us, 0), "
                   "coalesce(m.trivial, ''), coalesce(x.kind, 'pass'), r.device, a.number, "
                   "coalesce(p.number, 0), r.options "
                   "FROM attempts a JOIN candidates c ON c.id = a.candidate "
                   "JOIN verdicts v ON v.run = a.run AND v.attempt = a.number "
                   "JOIN runs r ON r.id = a.run JOIN tasks t ON t.id = r.task "
                   "LEFT JOIN attempts p ON p.candidate = c.parent "
                   "LEFT JOIN measurements m ON m.run = a.run AND m.attempt = a.number "
                   "LEFT JOIN acceptances x ON x.run = a.run AND x.attempt = a.number "
                   "WHERE t.class = ? AND a.run <> ? AND r.model <> 'eval' "
                   "ORDER BY r.started_ms DESC, a.run, a.number LIMIT ?",
                   "tti", want->class, want->not_run, (int)MOST_ATTEMPTS))
        return false;
    while (sql_next(&q, err)) {
        struct judged_row r = {.task = col_text(&q, 0, a),
                               .run = col_text(&q, 1, a),
                               .change = col_text(&q, 2, a),
                               .stage = col_text(&q, 3, a),
                               .verdict = col_text(&q, 4, a),
                               .summary = col_text(&q, 5, a),
                               .kept = col_int(&q, 6) != 0,
                               .modelled = col_int(&q, 7) != 0,
                               .time_us = col_double(&q, 8),
                               .floor_us = col_double(&q, 9),
                               .number = col_int(&q, 13),
                               .parent = col_int(&q, 14)};

        r.counts = r.time_us > 0 && !*col_text(&q, 10, a) &&
                   strcmp(col_text(&q, 11, a), verdict_names[VERDICT_PASS]) == 0;
        if (same_device(col_text(&q, 12, a), want) && same_target(col_text(&q, 15, a), want))
            take(c, &r);
    }
    return sql_done(&q);
}

bool store_lessons(struct store *s, const struct lesson_query *want, struct arena *a,
                   struct lessons *out, struct error *err)
{
    struct collection *c = arena_alloc(a, sizeof(*c));

    *out = (struct lessons){0};
    if (!read_all(s, want, a, c, err))
        return error_add(err, "reading what other runs learnt");
    out->gain_count = pick(c->gains, c->gain_count, out->gains, gain_first);
    out->failure_count = pick(c->failures, c->failure_count, out->failures, frequent_first);
    out->best = c->best;
    out->has_best = c->has_best;
    return true;
}
