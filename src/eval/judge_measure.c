/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_measure.c - time a kernel that passed; see judge.h.
 *
 * On CUDA: the candidate and the baselines take turns in rounds within the same minute, so that a
 * drifting clock affects all of them. Then results are checked again: the outputs of the last timed
 * replay, and a run on nearly the same inputs at the same addresses. On simt: modelled from the
 * test's counters.
 *
 * Invariants
 * 1. A time below the strict floor is IMPOSSIBLE_TIME, never a result.
 * 2. A kernel that was right in the test and is wrong here is UNSTABLE.
 * 3. A baseline that cannot be timed is left out; it does not fail the candidate.
 * 4. A disturbance makes a baseline slower, never faster: if its rounds disagree, the fastest
 *    counts. So no disturbance makes a candidate look better than it is.
 */
#include "base/hash.h"
#include "base/log.h"
#include "eval/evidence.h"
#include "eval/foreign.h"
#include "eval/judge.h"
#include "eval/modelled.h"
#include "eval/runner_client.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ROUND_MS: time per round and contestant once it has the minimum of samples; a kernel of a
 * millisecond is as steady after fifteen samples as one of microseconds after hundreds. */
enum {
    ROUNDS = 3,
    MANY_ROUNDS = 6,
    MOST_ROUNDS = 32,
    RUNNERS = 8,
    ROUND_MS = 20,
    DEFAULT_COLD = 240,
    DEFAULT_WARM = 90,
    MAX_POOL = 4096
};

/* Whatever the number of samples, a short time varies by some percent with the buffers' addresses,
 * and a very short one also with the process. Below short_us there are more rounds, each with other
 * buffers; below very_short_us still more, spread over several processes and each with a third of
 * the samples.
 * The middle half of the rounds decides. */
static const double short_us = 100, very_short_us = 12;

/* Timed replays with different outputs mean that a kernel adds in varying order, or sometimes skips
 * work: this many more replays are compared with the truth one by one. */
enum { DOUBTED_REPLAYS = 10 };

/* Consecutive replays by the host's clock include launch overhead, so they only expose gross
 * deviations.
 */
static const double wall_factor = 3, wall_slack_us = 200;
/* rounds whose medians differ by this factor are not a measurement */
static const double unsteady = 1.5;
/* rounds whose medians are this close count as one, with all their samples */
static const double alike = 1.02;

/* Samples of one contestant over all rounds. */
struct sample_pool {
    double cold[MAX_POOL], warm[MAX_POOL];
    size_t cold_count, warm_count;
    double round_median[MOST_ROUNDS], round_warm[MOST_ROUNDS];
    /* mean of the middle half: finer than the resolution of events */
    double round_middle[MOST_ROUNDS];
    double wall_us; /* of the fastest round; 0: none */
    int rounds;
    int other_outputs;
    bool failed;
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts the samples. */
static double quantile(double *v, size_t count, double q)
{
    double at, low;

    if (count == 0)
        return 0;
    qsort(v, count, sizeof *v, by_value);
    at = q * (double)(count - 1);
    low = floor(at);
    if ((size_t)low + 1 >= count)
        return v[count - 1];
    return v[(size_t)low] + (at - low) * (v[(size_t)low + 1] - v[(size_t)low]);
}

/* The mean of the middle half of v, which it sorts. */
static double middle(double *v, size_t count)
{
    size_t from = count / 4, to = count - from;
    double sum = 0;

    qsort(v, count, sizeof *v, by_value);
    for (size_t i = from; i < to; i++)
        sum += v[i];
    return count > 0 ? sum / (double)(to - from) : 0;
}

static void pool_add(struct sample_pool *p, struct time_samples *s)
{
    for (size_t i = 0; i < s->cold_count && p->cold_count < MAX_POOL; i++)
        p->cold[p->cold_count++] = s->cold_us[i];
    for (size_t i = 0; i < s->warm_count && p->warm_count < MAX_POOL; i++)
        p->warm[p->warm_count++] = s->warm_us[i];
    p->other_outputs += s->other_outputs;
    if (s->wall_us > 0 && (p->wall_us <= 0 || s->wall_us < p->wall_us))
        p->wall_us = s->wall_us;
    if (s->cold_count > 0 && p->rounds < (int)ARRAY_LEN(p->round_median)) {
        p->round_median[p->rounds] = quantile(s->cold_us, s->cold_count, 0.5);
        p->round_middle[p->rounds] = middle(s->cold_us, s->cold_count);
        p->round_warm[p->rounds++] = quantile(s->warm_us, s->warm_count, 0.5);
    }
}

/* Largest over smallest median of the rounds from `first` on. */
static double pool_drift_from(const struct sample_pool *p, int first)
{
    double low = INFINITY, high = 0;

    for (int i = first; i < p->rounds; i++) {
        low = fmin(low, p->round_median[i]);
        high = fmax(high, p->round_median[i]);
    }
    return p->rounds > first + 1 && low > 0 ? high / low : 1;
}

static double pool_drift(const struct sample_pool *p)
{
    return pool_drift_from(p, 0);
}

/* ---- simt --------------------------------------------------------------- */

static bool measure_modelled(const struct judge_config *config, const struct build_result *build,
                             const struct test_result *test, struct arena *a,
                             struct measurement *out, struct error *err)
{
    const struct gpu *gpu = gpu_find(config->device->models);
    struct modelled m;

    if (!gpu)
        return error_set(err, ERROR_USE, "there is no model of a GPU %s",
                         config->device->models ? config->device->models : "(none)"),
               error_hint(err, "one of %s", gpu_names(a));
    if (!modelled_time(&(struct modelled_input){.gpu = gpu,
                                                .counters = test->counters,
                                                .resources = build->resources,
                                                .share = modelled_share(config->task)},
                       &m, err))
        return false;
    out->modelled = true;
    out->time_us = out->warm_us = m.time_us;
    out->bound = m.bound;
    out->parts = m.parts;
    out->floor_us = peaks_floor(gpu, gpu, config->task).us;
    out->verdict.kind = VERDICT_PASS;
    out->verdict.summary = arena_printf(a, "%.3f us %s for %s, bound by %s", m.time_us,
                                        modelled_words(gpu->name), gpu->name, m.bound);
    out->verdict.detail = "";
    return true;
}

/* ---- CUDA --------------------------------------------------------------- */

struct measuring {
    const struct judge_config *config;
    struct arena *a;
    struct runner_config rc;
    struct runner *runners[RUNNERS]; /* only the first, except for a very short kernel */
    struct runner *runner;           /* the one that runs now */
    const struct build_result *build;
    struct evidence evidence;
    const char *baselines[MAX_BASELINES];
    int baseline_count;
    struct sample_pool *candidate, *baseline[MAX_BASELINES];
    const char *seed;
    bool foreign;
    double call_us; /* foreign: time of one call by our own clock */
    bool captured;  /* foreign: timed as a graph, so without host time */
};

enum draw_kind { DRAW_FIRST, DRAW_NEAR, DRAW_ANEW };

static bool draw_and_bind(struct measuring *m, enum draw_kind kind, struct error *err)
{
    char hex[65];
    struct oracle_draw draw = {.distribution = "mixed",
                               .near = kind == DRAW_NEAR,
                               .anew = kind == DRAW_ANEW,
                               .guest = m->rc.exchange};
    struct runner_answer said;

    hash_text(text_of(arena_printf(m->a, "%s measure %d", m->seed, (int)kind)), hex);
    draw.seed = arena_strndup(m->a, hex, 32);
    draw.shift = judge_shift(draw.seed);
    if (!foreign_draw(m->config->oracle, m->runner, &draw, m->a, &said, err))
        return false;
    evidence_answer(&m->evidence, &said);
    runner_answer_release(&said);
    return true;
}

static bool compare_now(struct measuring *m, struct error *err)
{
    struct comparison_set *set = arena_alloc(m->a, sizeof *set);

    if (!oracle_compare(m->config->oracle, m->a, set, err))
        return false;
    evidence_compare(&m->evidence, set, "mixed");
    return true;
}

static bool bad(const struct measuring *m)
{
    return m->evidence.fatal != VERDICT_PASS || m->evidence.worst_kind != VERDICT_PASS ||
           m->evidence.seen_count > 0;
}

static void time_baseline(struct measuring *m, int index, int cold, int warm)
{
    struct oracle_timing timing = {.name = m->baselines[index],
                                   .turn = m->seed,
                                   .cold = cold,
                                   .warm = warm,
                                   .budget_ms = ROUND_MS};
    struct time_samples s;
    struct error why = {0};

    if (m->baseline[index]->failed)
        return;
    if (oracle_baseline(m->config->oracle, &timing, m->a, &s, &why)) {
        pool_add(m->baseline[index], &s);
        return;
    }
    m->baseline[index]->failed = true;
    log_info("baseline %s is left out: %s", m->baselines[index], why.text);
}

/* Times each unsteady baseline for as many rounds again, as for the candidate. */
static void time_unsteady_baselines(struct measuring *m, int cold, int warm)
{
    for (int i = 0; i < m->baseline_count && !bad(m); i++) {
        struct sample_pool *b = m->baseline[i];
        int first = b->rounds;

        if (pool_drift(b) <= unsteady)
            continue;
        for (int round = 0; round < ROUNDS; round++)
            time_baseline(m, i, cold, warm);
        if (pool_drift_from(b, first) > unsteady)
            log_info(
                "baseline %s: medians of rounds differ by a factor of %.2f, in a second attempt "
                "too; the fastest counts",
                m->baselines[i], pool_drift_from(b, first));
    }
}

static bool load_module(struct measuring *m, struct error *err)
{
    struct runner_answer said;

    if (!runner_load(m->runner, m->build, m->a, &said, err))
        return false;
    evidence_answer(&m->evidence, &said);
    runner_answer_release(&said);
    return true;
}

/* Number of rounds, known after the first. */
static int rounds_wanted(const struct measuring *m)
{
    double us = m->candidate->round_median[0];

    if (m->foreign || m->candidate->rounds == 0 || us >= short_us)
        return ROUNDS;
    return us < very_short_us ? MOST_ROUNDS : MANY_ROUNDS;
}

/* Starts all of them before waiting for the first. */
static bool more_runners(struct measuring *m, struct error *err)
{
    for (int i = 1; i < RUNNERS; i++)
        if (!m->runners[i] && !runner_start(&m->rc, &m->runners[i], err))
            return false;
    for (int i = 1; i < RUNNERS && !bad(m); i++) {
        m->runner = m->runners[i];
        if (!load_module(m, err))
            return false;
    }
    return true;
}

/* Moves all buffers for the next round, which another process runs if there are several. */
static bool move_on(struct measuring *m, int round, int rounds, struct error *err)
{
    if (rounds == MOST_ROUNDS && !m->runners[1] && !more_runners(m, err))
        return false;
    if (m->runners[1])
        m->runner = m->runners[round % RUNNERS];
    return bad(m) || draw_and_bind(m, DRAW_ANEW, err);
}

static bool time_candidate(struct measuring *m, int cold, int warm, struct error *err)
{
    struct runner_answer said;
    struct time_samples s;

    if (!runner_time(m->runner, cold, warm, m->a, &said, &s, err))
        return false;
    evidence_answer(&m->evidence, &said);
    runner_answer_release(&said);
    pool_add(m->candidate, &s);
    log_debug("a round of the candidate: %.3f us", middle(s.cold_us, s.cold_count));
    return true;
}

static bool time_rounds(struct measuring *m, struct error *err)
{
    int cold = (m->config->cold > 0 ? m->config->cold : DEFAULT_COLD) / ROUNDS + 1;
    int warm = (m->config->warm > 0 ? m->config->warm : DEFAULT_WARM) / ROUNDS + 1;
    int rounds = m->config->device->kind == DEVICE_SIMT ? 1 : ROUNDS;

    for (int round = 0; round < rounds && !bad(m); round++) {
        int part = rounds == MOST_ROUNDS ? 3 : 1;

        if (!time_candidate(m, (cold + part - 1) / part, (warm + part - 1) / part, err))
            return false;
        for (int i = 0; i < m->baseline_count && round < ROUNDS && !bad(m); i++)
            time_baseline(m, i, cold, warm);
        if (round == 0 && rounds == ROUNDS)
            rounds = rounds_wanted(m);
        if (rounds > ROUNDS && round + 1 < rounds && !bad(m) && !move_on(m, round + 1, rounds, err))
            return false;
    }
    time_unsteady_baselines(m, cold, warm);
    return true;
}

static bool doubt(struct measuring *m, struct error *err)
{
    for (int i = 0; i < DOUBTED_REPLAYS && !bad(m); i++) {
        struct runner_answer said;
        struct time_samples s;

        if (!runner_time(m->runner, 1, 0, m->a, &said, &s, err))
            return false;
        evidence_answer(&m->evidence, &said);
        runner_answer_release(&said);
        if (!bad(m) && !compare_now(m, err))
            return false;
    }
    return true;
}

/* Checks the outputs of the last timed replay, then a run with a few elements changed in place: a
 * candidate that caches answers would return the old one. */
static bool verify_again(struct measuring *m, struct error *err)
{
    struct runner_answer said;

    if (bad(m))
        return true;
    if (!compare_now(m, err))
        return false;
    if (m->candidate->other_outputs > 0 && !doubt(m, err))
        return false;
    if (!bad(m) && !draw_and_bind(m, DRAW_NEAR, err))
        return false;
    if (bad(m))
        return true;
    if (!runner_run(m->runner, false, m->a, &said, err))
        return false;
    evidence_answer(&m->evidence, &said);
    runner_answer_release(&said);
    return bad(m) || compare_now(m, err);
}

/* A foreign candidate's process times itself; this checks it against our own clock. */
static bool burst(struct measuring *m, struct error *err)
{
    struct runner_answer said;
    double about = quantile(m->candidate->warm, m->candidate->warm_count, 0.5);
    bool ok = runner_burst(m->runner, about, m->a, &said, &m->call_us, &m->captured, err);

    if (!ok)
        return false;
    evidence_answer(&m->evidence, &said);
    runner_answer_release(&said);
    return true;
}

/* If one call takes longer than this by our clock, the times it claimed are false. Our time
 * includes host time unless the call is a graph, and the CPU is shared with others. */
static double believable_us(const struct measuring *m, double warm_us)
{
    static const struct clock_slack {
        double factor, slack_us;
    } shared_cpu = {5, 20000}, graph = {1.5, 30}, call = {2, 300};
    const struct clock_slack *s = m->config->device->kind == DEVICE_SIMT ? &shared_cpu
                                  : m->captured                          ? &graph
                                                                         : &call;

    return s->factor * warm_us + s->slack_us;
}

static bool measure_all(struct measuring *m, struct error *err)
{
    m->runner = m->runners[0];
    if (!load_module(m, err))
        return false;
    if (bad(m))
        return true;
    if (m->config->turn && !m->config->turn(m->config->turn_of, err))
        return false;
    if (!draw_and_bind(m, DRAW_FIRST, err) || !time_rounds(m, err))
        return false;
    /* Repeats an unsteady measurement once: a disturbance passes, an unsteady kernel stays
     * unsteady. */
    if (!bad(m) && pool_drift(m->candidate) > unsteady && m->config->device->kind == DEVICE_CUDA) {
        memset(m->candidate, 0, sizeof *m->candidate);
        if (!time_rounds(m, err))
            return false;
    }
    if (m->foreign && !bad(m) && !burst(m, err))
        return false;
    return verify_again(m, err);
}

/* The printed name of a baseline. */
static const char *baseline_name(const char *name)
{
    static const char *const names[][2] = {{"graph", "eager graph"},
                                           {"autotune", "compile max-autotune"},
                                           {"defaults", "eager defaults"},
                                           {"strict", "eager strict"},
                                           {"tf32", "eager tf32"}};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i][0], name) == 0)
            return names[i][1];
    return name;
}

/* A baseline: the time of its fastest round, or of all rounds if they agree. */
static struct baseline baseline_of(const char *name, struct sample_pool *b)
{
    struct baseline out = {.name = baseline_name(name)};
    int quickest = 0;

    if (pool_drift(b) <= alike) {
        out.cold_us = quantile(b->cold, b->cold_count, 0.5);
        out.warm_us = quantile(b->warm, b->warm_count, 0.5);
        return out;
    }
    for (int i = 1; i < b->rounds; i++)
        if (b->round_median[i] < b->round_median[quickest])
            quickest = i;
    out.cold_us = b->round_median[quickest];
    out.warm_us = b->round_warm[quickest];
    return out;
}

static void fill_times(struct measuring *m, struct measurement *out)
{
    struct sample_pool *p = m->candidate;
    double median = p->rounds > ROUNDS ? middle(p->round_middle, (size_t)p->rounds)
                                       : quantile(p->cold, p->cold_count, 0.5);

    out->time_us = median;
    out->warm_us = quantile(p->warm, p->warm_count, 0.5);
    if (median > 0)
        out->spread =
            (quantile(p->cold, p->cold_count, 0.75) - quantile(p->cold, p->cold_count, 0.25)) / 2 /
            median;
    for (int i = 0; i < m->baseline_count; i++)
        if (m->baseline[i]->cold_count > 0)
            out->baselines[out->baseline_count++] = baseline_of(m->baselines[i], m->baseline[i]);
}

/* Right on every draw, but it cannot be seen from outside whether its own kernels or PyTorch's
 * computed it. */
static void unattested(const struct measuring *m, struct verdict *v)
{
    v->kind = VERDICT_UNATTESTED;
    v->summary = m->config->device->kind == DEVICE_SIMT
                     ? "right on the CPU; what computed it cannot be proven, so it is not ranked"
                     : "right; neither what computed it nor its time can be proven, so it is not "
                       "ranked";
}

static void judge_times(struct measuring *m, struct measurement *out)
{
    struct gpu gpu, best;
    bool known = peaks_find(m->config->device->name, m->a, &gpu, &best);
    struct floor f = {0};
    struct verdict *v = &out->verdict;

    fill_times(m, out);
    out->bound = "unknown";
    if (known) {
        f = peaks_floor(&gpu, &best, m->config->task);
        out->floor_us = f.us;
        out->bound = f.bound;
    }
    v->detail = "";
    if (bad(m)) {
        evidence_verdict(&m->evidence, v);
        v->detail =
            arena_printf(m->a, "it passed the test, but while or after it was timed: %s\n%s",
                         verdict_names[v->kind], v->detail);
        v->kind = VERDICT_UNSTABLE;
        return;
    }
    if (m->foreign && m->call_us > believable_us(m, out->warm_us)) {
        v->kind = VERDICT_IMPOSSIBLE_TIME;
        v->summary =
            arena_printf(m->a, "%.2f us by its own process, but %.2f us by the judge's clock",
                         out->warm_us, m->call_us);
    } else if (m->candidate->wall_us > wall_factor * out->warm_us + wall_slack_us) {
        v->kind = VERDICT_IMPOSSIBLE_TIME;
        v->summary = arena_printf(m->a, "%.2f us by the events, but %.2f us by the wall clock",
                                  out->warm_us, m->candidate->wall_us);
    } else if (m->config->device->kind == DEVICE_SIMT) {
        *out = (struct measurement){.verdict.detail = ""};
        unattested(m, v);
    } else if (m->candidate->cold_count == 0 || pool_drift(m->candidate) > unsteady) {
        v->kind = VERDICT_UNSTABLE;
        v->summary = arena_printf(m->a, "medians of %d rounds differ by a factor of %.2f",
                                  m->candidate->rounds, pool_drift(m->candidate));
    } else if (out->time_us < f.strict_us) {
        v->kind = VERDICT_IMPOSSIBLE_TIME;
        v->summary = arena_printf(m->a, "%.2f us measured, but %s takes %.2f us at least (%s)",
                                  out->time_us, gpu.name, f.strict_us, f.bound);
    } else if (m->foreign) {
        unattested(m, v);
    } else {
        v->kind = VERDICT_PASS;
        v->summary = arena_printf(m->a, "%.2f us, cold L2", out->time_us);
    }
}

static void choose_baselines(struct measuring *m)
{
    static const char *const usual[] = {"eager", "graph", NULL};
    const char *const *wanted = m->config->baselines ? m->config->baselines : usual;

    m->candidate = arena_alloc(m->a, sizeof *m->candidate);
    for (; *wanted && m->baseline_count < MAX_BASELINES; wanted++) {
        m->baseline[m->baseline_count] = arena_alloc(m->a, sizeof **m->baseline);
        m->baselines[m->baseline_count++] = *wanted;
    }
}

/* If a trivial answer passes the task, its time is not compared with anything. */
static bool note_trivial(const struct test_result *test, struct arena *a, struct measurement *out)
{
    if (!test->trivial)
        return true;
    out->trivial = arena_printf(a, "%s would pass too: no speed-up is claimed", test->trivial);
    out->floor_us = 0; /* no roofline, since nothing has to be computed */
    if (out->verdict.kind == VERDICT_PASS)
        out->verdict.summary = arena_printf(a, "%s; but %s", out->verdict.summary, out->trivial);
    return true;
}

bool judge_measure(const struct judge_config *config, const struct build_result *build,
                   const struct test_result *test, struct arena *a, struct measurement *out,
                   struct error *err)
{
    struct candidate none = {0};
    struct measuring *m;
    bool ok;

    memset(out, 0, sizeof *out);
    if (config->device->kind == DEVICE_SIMT && !build->foreign)
        return measure_modelled(config, build, test, a, out, err) && note_trivial(test, a, out);
    m = arena_alloc(a, sizeof *m);
    m->config = config;
    m->a = a;
    m->build = build;
    m->seed = test->seed;
    m->foreign = build->foreign != NULL;
    m->rc = (struct runner_config){.device = config->device,
                                   .program = config->runner_program,
                                   .budget_ms = ROUND_MS,
                                   .module = build->module_path,
                                   .buffers = config->oracle ? oracle_folder(config->oracle) : NULL,
                                   .source = config->source};
    choose_baselines(m);
    evidence_init(&m->evidence, a, config->task, &none, config->source_name, build->launches);
    ok = (!m->foreign || foreign_runner(config, build, a, &m->rc, err)) &&
         runner_start(&m->rc, &m->runners[0], err) && measure_all(m, err);
    for (int i = 0; i < RUNNERS; i++)
        runner_stop(m->runners[i]);
    foreign_end(&m->rc);
    if (!ok)
        return error_add(err, "measuring the candidate");
    judge_times(m, out);
    if (m->foreign) {
        /* Only a claim of the Python process that ran the launches: not used for ranking. */
        out->claimed_us = out->verdict.kind == VERDICT_UNATTESTED ? out->time_us : 0;
        out->time_us = out->warm_us = out->spread = out->floor_us = 0;
    }
    return note_trivial(test, a, out);
}
