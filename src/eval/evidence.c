/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evidence.c - collect observations, merge them, choose the verdict.
 *
 * Invariants
 * 1. The verdict is the gravest observation in any draw, by `precedence`.
 * 2. No observation is dropped silently: what is not the verdict is in the detail, and findings
 *    beyond the list's limit are counted.
 * 3. A draw counts once for each kind of verdict, however often it was run.
 * 4. Outputs of a run that was ended early are not evidence.
 */
#include "eval/evidence.h"

#include "base/fs.h"
#include "base/json.h"
#include "eval/verdict_text.h"

#include <math.h>
#include <string.h>

/* From observations that make all others meaningless to those that are a matter of degree. */
static const enum verdict_kind precedence[] = {
    VERDICT_REFUSED,      VERDICT_COMPILE_ERROR,  VERDICT_BAD_LAUNCH,    VERDICT_OUT_OF_MEMORY,
    VERDICT_CRASH,        VERDICT_HANG,           VERDICT_UNSAFE_MEMORY, VERDICT_RACE,
    VERDICT_GUARD_HIT,    VERDICT_INPUT_MODIFIED, VERDICT_NOT_WRITTEN,   VERDICT_NON_FINITE,
    VERDICT_WRONG_VALUES, VERDICT_IMPRECISE,      VERDICT_PASS,
};

int evidence_rank(enum verdict_kind kind)
{
    for (size_t i = 0; i < ARRAY_LEN(precedence); i++)
        if (precedence[i] == kind)
            return (int)i;
    return (int)ARRAY_LEN(precedence);
}

void evidence_init(struct evidence *e, struct arena *a, const struct task *task,
                   const struct candidate *cand, const char *source_name, const json_t *launches)
{
    memset(e, 0, sizeof *e);
    e->a = a;
    e->task = task;
    e->source = cand->source;
    e->source_name = source_name ? source_name : "candidate.cu";
    e->launches = launches;
    e->fatal = e->worst_kind = VERDICT_PASS;
    e->fatal_op = -1;
}

/* ---- findings ----------------------------------------------------------- */

/* The verdict for each kind of finding. No default case: the compiler warns about a missing
 * kind. */
static enum verdict_kind kind_verdict(enum finding_kind kind)
{
    switch (kind) {
    case FINDING_WRITE_TO_INPUT:
        return VERDICT_INPUT_MODIFIED;
    case FINDING_RACE_SHARED:
    case FINDING_RACE_GLOBAL:
    case FINDING_ASYNC_NOT_WAITED:
    case FINDING_ASYNC_OVERWRITE:
    case FINDING_PROXY:
    case FINDING_WGMMA:
    case FINDING_WGMMA_FENCE:
    case FINDING_TENSOR_FENCE:
    case FINDING_SHUFFLE:
    case FINDING_MISSING_FENCE:
    case FINDING_CLUSTER:
    case FINDING_DIVERGENT_BARRIER:
    case FINDING_DIVERGENT_COLLECTIVE:
        return VERDICT_RACE;
    case FINDING_MBARRIER:
    case FINDING_DEADLOCK:
    case FINDING_TIMEOUT:
        return VERDICT_HANG;
    case FINDING_TRAP:
    case FINDING_ASSERTION:
        return VERDICT_CRASH;
    case FINDING_UNKNOWN:
    case FINDING_OUT_OF_BOUNDS:
    case FINDING_MISALIGNED:
    case FINDING_UNINITIALISED:
    case FINDING_TENSOR_MAP:
    case FINDING_TENSOR_MEMORY:
    case FINDING_SAME_VALUE:
    case FINDING_BARRIER_EXIT:
    case FINDING_PROXY_READ:
    case FINDING_COPY_EXIT:
        return VERDICT_UNSAFE_MEMORY;
    }
    return VERDICT_UNSAFE_MEMORY;
}

/* [33, 0, 0] -> "(33,0,0)"; a plain number stays as it is. */
static const char *place(struct arena *a, const json_t *v)
{
    if (json_is_integer(v))
        return arena_printf(a, "%lld", (long long)json_integer_value(v));
    if (json_array_size(v) != 3)
        return "";
    return arena_printf(a, "(%lld,%lld,%lld)", (long long)json_integer_value(json_array_get(v, 0)),
                        (long long)json_integer_value(json_array_get(v, 1)),
                        (long long)json_integer_value(json_array_get(v, 2)));
}

static bool same(const struct seen *s, const char *name, const char *kernel, int line, int other)
{
    return s->line == line && s->other_line == other && strcmp(s->name, name) == 0 &&
           strcmp(s->kernel, kernel) == 0;
}

static void note(struct evidence *e, enum verdict_kind kind)
{
    e->ever[kind] = true;
    e->draws_with[kind] += !e->apart && !e->in_draw[kind];
    e->in_draw[kind] |= !e->apart;
}

void evidence_draw(struct evidence *e)
{
    e->draws++;
    e->apart = e->stopped_now = false;
    memset(e->in_draw, 0, sizeof e->in_draw);
}

void evidence_apart(struct evidence *e)
{
    e->apart = true;
}

/* "k.cu:40, k.cu:51", or "" */
static const char *callers(struct arena *a, const json_t *list)
{
    const char *text = "";

    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_is_string(json_array_get(list, i)))
            text = arena_printf(a, "%s%s%s", text, *text ? ", " : "",
                                path_base(json_string_value(json_array_get(list, i))));
    return text;
}

/* Adds a finding, unless it is a warning: only `cutegen simt run` shows those. */
static void add_finding(struct evidence *e, const json_t *v)
{
    const json_t *other = json_object_get(v, "other"), *path = json_object_get(v, "path");
    const char *name = json_string_or(v, "kind", finding_kind_name(FINDING_UNKNOWN));
    const char *kernel = json_string_or(v, "kernel", "");
    int line = (int)json_int_or(v, "line", 0), other_line = (int)json_int_or(other, "line", 0);
    int64_t count = json_int_or(v, "count", 1);
    enum finding_kind kind = finding_kind_of(name);
    struct seen *s;

    if (json_bool_or(v, "warning", false))
        return;
    note(e, kind_verdict(kind));
    for (int i = 0; i < e->seen_count; i++)
        if (same(&e->seen[i], name, kernel, line, other_line)) {
            e->seen[i].count += count;
            return;
        }
    if (e->seen_count == MAX_FINDINGS) {
        e->seen_more++;
        return;
    }
    s = &e->seen[e->seen_count++];
    *s = (struct seen){
        .kind = kind,
        .name = arena_strdup(e->a, name),
        .kernel = arena_strdup(e->a, kernel),
        .file = arena_strdup(e->a, path_base(json_string_or(v, "file", ""))),
        .text = arena_strdup(e->a, json_string_or(v, "text", "")),
        .line = line,
        .other_line = other_line,
        .block = place(e->a, json_object_get(v, "block")),
        .thread = place(e->a, json_object_get(v, "thread")),
        .other_thread = place(e->a, json_object_get(other, "thread")),
        .path = "",
        .callers = callers(e->a, json_object_get(v, "callers")),
        .count = count,
        .verdict = kind_verdict(kind),
    };
    if (json_array_size(path) > 0 && json_is_string(json_array_get(path, 0)))
        s->path = arena_strdup(e->a, json_string_value(json_array_get(path, 0)));
}

void evidence_answer(struct evidence *e, const struct runner_answer *said)
{
    for (size_t i = 0; i < json_array_size(said->findings); i++)
        add_finding(e, json_array_get(said->findings, i));
    if (said->stopped && !e->apart && !e->stopped_now) {
        e->stopped_now = true;
        e->stopped++;
    }
    if (said->verdict == VERDICT_PASS || e->fatal != VERDICT_PASS)
        return;
    e->fatal = said->verdict;
    e->fatal_text = arena_strdup(e->a, said->text);
    e->fatal_op = said->op;
    note(e, said->verdict);
}

/* ---- comparisons -------------------------------------------------------- */

static double larger(double a, double b)
{
    return isnan(b) || b > a ? b : a;
}

static void keep_accuracy(struct accuracy *to, const struct accuracy *from)
{
    to->max_abs = larger(to->max_abs, from->max_abs);
    to->max_rel = larger(to->max_rel, from->max_rel);
    to->rms_rel = larger(to->rms_rel, from->rms_rel);
    to->reference_max_abs = larger(to->reference_max_abs, from->reference_max_abs);
    to->reference_max_rel = larger(to->reference_max_rel, from->reference_max_rel);
    to->reference_rms_rel = larger(to->reference_rms_rel, from->reference_rms_rel);
}

static void note_distribution(struct evidence *e, const char *name)
{
    for (int i = 0; i < e->distribution_count; i++)
        if (strcmp(e->distributions[i], name) == 0)
            return;
    if (e->distribution_count < (int)ARRAY_LEN(e->distributions))
        e->distributions[e->distribution_count++] = name;
}

/* Not called for a run that was ended early; its guards and inputs count all the same. */
static void note_outputs(struct evidence *e, const struct comparison_set *set,
                         bool found[VERDICT_COUNT])
{
    bool finite = true;

    for (int i = 0; i < set->output_count; i++) {
        const struct comparison *c = &set->outputs[i];

        found[VERDICT_NOT_WRITTEN] |= c->unwritten > 0;
        found[VERDICT_NON_FINITE] |= c->nan > 0 || c->inf > 0;
        found[VERDICT_WRONG_VALUES] |= c->wrong > 0;
        found[VERDICT_IMPRECISE] |= c->imprecise;
        finite &= c->unwritten + c->nan + c->inf == 0;
    }
    e->compared += finite;
    for (int i = 0; finite && i < set->output_count; i++) /* NaN has no error to report */
        keep_accuracy(&e->accuracy, &set->outputs[i].accuracy);
}

void evidence_compare(struct evidence *e, const struct comparison_set *set,
                      const char *distribution)
{
    bool found[VERDICT_COUNT] = {false};
    enum verdict_kind gravest = VERDICT_PASS;

    note_distribution(e, distribution);
    found[VERDICT_GUARD_HIT] = set->guard_count > 0;
    found[VERDICT_INPUT_MODIFIED] = set->modified_count > 0;
    if (!e->stopped_now)
        note_outputs(e, set, found);
    for (int i = 0; i < VERDICT_COUNT; i++) {
        if (!found[i])
            continue;
        note(e, (enum verdict_kind)i);
        if (evidence_rank((enum verdict_kind)i) < evidence_rank(gravest))
            gravest = (enum verdict_kind)i;
    }
    e->accuracy.draws = e->compared < e->draws ? e->compared : e->draws;
    e->accuracy.distributions = e->distribution_count;
    if (evidence_rank(gravest) >= evidence_rank(e->worst_kind))
        return;
    e->worst_kind = gravest;
    e->worst = arena_alloc(e->a, sizeof *e->worst);
    *e->worst = *set;
    if (e->stopped_now)
        e->worst->output_count = 0;
    e->worst_distribution = distribution;
}

/* ---- the verdict -------------------------------------------------------- */

/* A crash that a finding explains gets the finding's verdict, because that has a source line. */
static bool explained(const struct evidence *e)
{
    for (int i = 0; i < e->seen_count; i++)
        if (e->seen[i].verdict != VERDICT_CRASH && e->seen[i].verdict != VERDICT_HANG)
            return true;
    return false;
}

/* A value that another thread has not written yet reads as uninitialised. If a race is known in
 * the same kernel, the race is the cause and the uninitialised read its consequence. */
static bool follows_from_race(const struct evidence *e)
{
    bool some = false;

    if (e->fatal == VERDICT_UNSAFE_MEMORY)
        return false;
    for (int i = 0; i < e->seen_count; i++) {
        const struct seen *s = &e->seen[i];
        bool explained = false;

        if (s->verdict != VERDICT_UNSAFE_MEMORY)
            continue;
        if (s->kind != FINDING_UNINITIALISED)
            return false;
        for (int k = 0; k < e->seen_count; k++)
            explained |=
                e->seen[k].verdict == VERDICT_RACE && strcmp(e->seen[k].kernel, s->kernel) == 0;
        if (!explained)
            return false;
        some = true;
    }
    return some;
}

static enum verdict_kind pick(const struct evidence *e)
{
    for (size_t i = 0; i < ARRAY_LEN(precedence); i++) {
        enum verdict_kind kind = precedence[i];

        if ((kind == VERDICT_CRASH && explained(e)) ||
            (kind == VERDICT_UNSAFE_MEMORY && follows_from_race(e)))
            continue;
        if (kind == e->fatal || e->ever[kind])
            return kind;
    }
    return VERDICT_PASS;
}

/* A barrier that not every thread reaches explains the races behind it. */
static int finding_rank(const struct seen *s, enum verdict_kind kind)
{
    bool divergent =
        s->kind == FINDING_DIVERGENT_BARRIER || s->kind == FINDING_DIVERGENT_COLLECTIVE;

    return s->verdict != kind ? 2 : divergent ? 0 : 1;
}

/* Moves the findings that decide the verdict to the front. Otherwise findings stay in the order
 * in which they were seen. */
static void lead_with(struct evidence *e, enum verdict_kind kind)
{
    for (int i = 1; i < e->seen_count; i++) {
        struct seen s = e->seen[i];
        int k = i;

        for (; k > 0 && finding_rank(&e->seen[k - 1], kind) > finding_rank(&s, kind); k--)
            e->seen[k] = e->seen[k - 1];
        e->seen[k] = s;
    }
}

void evidence_verdict(struct evidence *e, struct verdict *out)
{
    memset(out, 0, sizeof *out);
    out->kind = pick(e);
    lead_with(e, out->kind);
    for (int i = 0; i < e->seen_count; i++)
        words_finding(e, &e->seen[i], &out->findings[out->finding_count++]);
    out->summary = words_summary(e, out->kind);
    out->detail = words_detail(e, out->kind);
    out->advice = words_advice(e, out->kind);
}
