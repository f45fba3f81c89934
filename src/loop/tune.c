/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.c - searches the tunables that the best kernel declares, without a model.
 *
 * Every combination that is tried is an ordinary attempt: built, tested, measured, stored, and
 * reused by `resume`. The next one is always the nearest to the best so far. Combinations that
 * cannot win are skipped: those that violate a condition, and those beyond a neighbour of the best
 * that did not build or was clearly slower.
 *
 * Invariants
 * 1. What is tried next follows from the source and the outcomes alone.
 * 2. No combination is tried twice, and at most `tune` of them are.
 */
#include "base/fs.h"
#include "base/tunables.h"
#include "loop/state.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_COMBINATIONS = 1 << 16, MAX_KERNEL_BYTES = 4 << 20 };

static const double CLEARLY = 1.10; /* a direction that is slower by this factor is not followed */

struct combination {
    int at[TUNABLES_MAX];
    double us; /* 0: it failed */
};

struct tuning {
    struct tunables t;
    struct text source; /* the source the tunables were read from */
    struct combination *tried;
    int count, best; /* index of the best in `tried` */
    int total, pruned, forbidden;
    bool seen[MAX_COMBINATIONS];
};

static int combinations(const struct tunables *t)
{
    int64_t n = 1;

    for (int i = 0; i < t->count && n <= MAX_COMBINATIONS; i++)
        n *= t->list[i].count;
    return n <= MAX_COMBINATIONS ? (int)n : -1;
}

static void place_of(const struct tunables *t, int number, int *at)
{
    for (int i = 0; i < t->count; i++) {
        at[i] = number % t->list[i].count;
        number /= t->list[i].count;
    }
}

static int distance(const struct tuning *u, const int *at)
{
    int far = 0;

    for (int i = 0; i < u->t.count; i++)
        far += abs(at[i] - u->tried[u->best].at[i]);
    return far;
}

/* Has a neighbour of the best already shown one of this combination's directions to be
 * slower? */
static bool beyond_a_worse_one(const struct tuning *u, const int *at)
{
    const struct combination *best = &u->tried[u->best];

    for (int k = 0; k < u->count; k++) {
        const struct combination *x = &u->tried[k];
        int differs = -1, many = 0;

        for (int i = 0; i < u->t.count; i++)
            if (x->at[i] != best->at[i]) {
                differs = i;
                many++;
            }
        if (many != 1 || (x->us > 0 && x->us < best->us * CLEARLY))
            continue;
        if (x->at[differs] > best->at[differs] ? at[differs] >= x->at[differs]
                                               : at[differs] <= x->at[differs])
            return true;
    }
    return false;
}

/* The nearest untried combination that may win; false: there is none. */
static bool next_combination(struct tuning *u, int *number)
{
    int near = -1;

    *number = -1;
    u->pruned = 0;
    for (int n = 0; n < u->total; n++) {
        struct error ignored = {0};
        int at[TUNABLES_MAX];

        if (u->seen[n])
            continue;
        place_of(&u->t, n, at);
        if (!tunables_hold(&u->t, at, &ignored))
            continue;
        if (beyond_a_worse_one(u, at)) {
            u->pruned++;
            continue;
        }
        if (near < 0 || distance(u, at) < near) {
            near = distance(u, at);
            *number = n;
        }
    }
    return *number >= 0;
}

static bool try_one(struct loop *l, struct tuning *u, int number, int depth, struct error *err)
{
    static const struct verdict proposed = {.kind = VERDICT_PASS, .summary = "", .detail = ""};
    struct settled *s = arena_alloc(l->a, sizeof(*s));
    struct combination *x = &u->tried[u->count];

    u->seen[number] = true;
    place_of(&u->t, number, x->at);
    s->cand = (struct candidate){
        .depth = depth,
        .source = tunables_set(u->source, &u->t, x->at, l->a),
        .change = arena_printf(l->a, "tune: %s", tunables_words(&u->t, x->at, l->a)),
        .steps = l->best->cand.steps};
    if (!loop_judge(l, s, &proposed, STAGE_OPTIMIZE, l->best->cand.attempt, err))
        return false;
    x->us = s->outcome.verdict.kind == VERDICT_PASS ? s->time.time_us : 0;
    u->count++;
    if (x->us > 0 && x->us < u->tried[u->best].us)
        u->best = u->count - 1;
    (void)loop_adopt(l, s);
    return true;
}

/* The values in force are the first trial: the best kernel itself. */
static bool begin(struct loop *l, struct tuning *u, struct error *err)
{
    int at[TUNABLES_MAX] = {0};

    u->source = l->best->cand.source;
    if (!tunables_read(u->source, l->a, &u->t, err))
        return false;
    u->total = combinations(&u->t);
    if (u->total < 0)
        return error_set(err, ERROR_USE, "the tunables have more than %d combinations",
                         MAX_COMBINATIONS);
    for (int i = 0; i < u->t.count; i++)
        at[i] = u->t.list[i].now;
    u->tried = arena_array(l->a, (size_t)l->opt.tune + 1, sizeof(*u->tried));
    memcpy(u->tried[0].at, at, sizeof(at));
    u->tried[0].us = l->best->time.time_us;
    u->count = 1;
    for (int n = 0; n < u->total; n++) {
        struct error why = {0};

        place_of(&u->t, n, at);
        u->seen[n] = memcmp(at, u->tried[0].at, sizeof(at[0]) * (size_t)u->t.count) == 0;
        u->forbidden += !tunables_hold(&u->t, at, &why);
        if (why.kind != ERROR_NONE) {
            *err = why;
            return false;
        }
    }
    return true;
}

bool loop_tune(struct loop *l, struct error *err)
{
    struct tuning *u;
    struct error why = {0};
    double before;
    int number, depth;

    if (!l->best || l->opt.tune <= 0 || languages[l->settings->target].python)
        return true; /* a kernel in Python has its numbers in its launches, and declares none */
    u = arena_alloc(l->a, sizeof(*u));
    if (!begin(l, u, &why)) {
        loop_event(l, (struct event){.kind = EVENT_NOTE,
                                     .text = arena_printf(l->a, "not tuned: %s", why.text)});
        return true;
    }
    if (u->total < 2)
        return true;
    before = l->best->time.time_us;
    depth = l->last->cand.depth + 1;
    l->depth = depth;
    while (u->count <= l->opt.tune && next_combination(u, &number))
        if (!try_one(l, u, number, depth, err))
            return false;
    l->ended = arena_printf(
        l->a,
        "%s%stuned: %d of %d combinations tried, %d violate a condition, %d cannot win; %.2fx",
        l->ended, *l->ended ? "; " : "", u->count - 1, u->total - 1, u->forbidden, u->pruned,
        l->best->time.time_us > 0 ? before / l->best->time.time_us : 1.0);
    return true;
}

/* The kernel of `cutegen tune`; when resumed, the store's copy. */
bool loop_given(struct loop *l, struct error *err)
{
    static const struct verdict proposed = {.kind = VERDICT_PASS, .summary = "", .detail = ""};
    struct settled *s = arena_alloc(l->a, sizeof(*s));

    s->cand.change = "the given kernel";
    if (l->past.attempt_count)
        s->cand.source = l->past.attempts[0].candidate.source;
    else if (!l->opt.kernel_path)
        return error_set(err, ERROR_USE, "the kernel to tune was not stored before the run ended");
    else if (!file_read(l->opt.kernel_path, MAX_KERNEL_BYTES, l->a, &s->cand.source, err))
        return false;
    if (!loop_judge(l, s, &proposed, STAGE_SYNTHESIZE, 0, err))
        return false;
    if (!loop_adopt(l, s))
        l->ended = "the given kernel is not correct";
    return true;
}
