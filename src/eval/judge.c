/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.c - the test: is this kernel right; see judge.h.
 *
 * One draw is: the oracle draws inputs at new addresses, the runner runs the
 * candidate, and only then does the oracle compute the reference and compare.
 *
 * Invariants
 * 1. The seed is fresh from the system's random source for every test unless
 *    the caller repeats one; each draw has its own, derived from it.
 * 2. When the runner has died, the oracle is left alone: the next draw starts afresh.
 */
#include "eval/judge.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "eval/evidence.h"
#include "eval/foreign.h"
#include "eval/runner_client.h"
#include "eval/sanitizer.h"
#include "eval/witness.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* In one draw the outputs start as numbers instead of the unwritten pattern, to catch a kernel that
 * checks for the pattern. Not in the first two draws, which must detect unwritten elements, nor in
 * the mixed one, which must look like the timed runs. */
enum { STALE_DRAW = 2 };
/* If every thread is at fault, memcheck runs for minutes, but the interesting reports are in its
 * log within a second; so the search for evidence does not wait for its end. */
enum {
    DEFAULT_DRAWS = 5,
    EVIDENCE_MS = 20000,
    WATCHED_MS = 60000,
    GLANCE_MS = 4000,
    LOG_LIMIT = 16 << 20
};
/* CUDA contexts and the oracle's own work */
static const int64_t RESERVED_BYTES = INT64_C(4) << 30;

/* The task's own inputs first: most mistakes already show there, on inputs that the user knows. */
static const char *const distributions[] = {"task", "normal", "wide", "mixed", "zeros", "small"};

/* One more draw if an input has a domain: the others never leave it, so a wrong answer outside
 * (zero where PyTorch has NaN) would go unnoticed. */
static const char *const beyond_domain = "beyond";

/* compute-sanitizer's tools that check a kernel before final acceptance. */
static const char *const acceptance[] = {"memcheck", "racecheck", "synccheck", "initcheck"};

/* ---- seeds -------------------------------------------------------------- */

static bool fresh_seed(struct arena *a, const char **out, struct error *err)
{
    unsigned char raw[16];
    char hex[2 * sizeof raw + 1];

    if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
        return error_set(err, ERROR_MACHINE, "the system gives no random bytes");
    for (size_t i = 0; i < sizeof raw; i++)
        snprintf(hex + 2 * i, 3, "%02x", raw[i]);
    *out = arena_strdup(a, hex);
    return true;
}

static const char *draw_seed(const char *seed, int draw, struct arena *a)
{
    char hex[65];

    hash_text(text_of(arena_printf(a, "%s draw %d", seed, draw)), hex);
    return arena_strndup(a, hex, 32);
}

int judge_shift(const char *seed)
{
    unsigned low = 0;

    (void)sscanf(seed, "%2x", &low);
    return (int)low;
}

/* ---- one draw ----------------------------------------------------------- */

struct trial {
    const struct judge_config *config;
    struct runner *runner;
    struct arena *a;
    struct evidence evidence;
    struct test_result *out;
    const char *exchange; /* a guest's exchange folder; NULL: the candidate is a .cu file */
    bool plain;           /* a process ran unconfined */
};

/* Same inputs again: are the outputs the same, bit for bit? */
static bool run_again(struct trial *t, const char *first_hash, struct error *err)
{
    struct runner_answer said;

    if (!first_hash)
        return true;
    if (!runner_run(t->runner, true, t->a, &said, err))
        return false;
    evidence_answer(&t->evidence, &said);
    t->out->deterministic = said.output_hash && strcmp(first_hash, said.output_hash) == 0;
    runner_answer_release(&said);
    return true;
}

/* The same for a guest, from the files the oracle found in its folder. */
static bool guest_again(struct trial *t, const char *first_hash, struct error *err)
{
    struct comparison_set *set = arena_alloc(t->a, sizeof *set);
    struct runner_answer said;

    if (!runner_run(t->runner, false, t->a, &said, err))
        return false;
    evidence_answer(&t->evidence, &said);
    runner_answer_release(&said);
    if (t->evidence.fatal != VERDICT_PASS)
        return true;
    if (!oracle_compare(t->config->oracle, t->a, set, err))
        return false;
    t->out->deterministic = first_hash && set->hash && strcmp(first_hash, set->hash) == 0;
    if (!t->out->deterministic)
        evidence_compare(&t->evidence, set, distributions[0]);
    return true;
}

static bool run_candidate(struct trial *t, const struct oracle_draw *draw, bool first,
                          const char **hash, struct error *err)
{
    struct runner_answer said;

    if (!foreign_draw(t->config->oracle, t->runner, draw, t->a, &said, err))
        return false;
    evidence_answer(&t->evidence, &said);
    runner_answer_release(&said);
    if (t->evidence.fatal != VERDICT_PASS)
        return true;
    if (!runner_run(t->runner, first, t->a, &said, err))
        return false;
    evidence_answer(&t->evidence, &said);
    *hash = said.output_hash;
    if (first && said.counters)
        t->out->counters = json_incref(said.counters);
    runner_answer_release(&said);
    return true;
}

/* The class of the least accurate output, over all draws. */
static const char *worst_class(const char *before, const struct comparison_set *set)
{
    static const char *const order[] = {"", "exact", "fp64", "fp32", "TF32-class", "16-bit"};
    size_t worst = 0;

    for (size_t k = 0; k < ARRAY_LEN(order); k++) {
        if (before && strcmp(before, order[k]) == 0)
            worst = k > worst ? k : worst;
        for (int i = 0; i < set->output_count; i++)
            if (strcmp(set->outputs[i].accuracy_class, order[k]) == 0)
                worst = k > worst ? k : worst;
    }
    return order[worst];
}

static bool one_draw(struct trial *t, int draw, const char *distribution, struct error *err)
{
    const char *inputs = distribution == beyond_domain ? "beyond their domain" : distribution;
    const char *wanted_seed = draw_seed(t->out->seed, draw, t->a);
    struct oracle_draw wanted = {.seed = wanted_seed,
                                 .distribution = distribution,
                                 .shift = judge_shift(wanted_seed),
                                 .stale = draw == STALE_DRAW,
                                 .guest = t->exchange};
    struct comparison_set *set;
    const char *hash = NULL;

    evidence_draw(&t->evidence);
    if (!run_candidate(t, &wanted, draw == 0, &hash, err))
        return false;
    if (t->evidence.fatal != VERDICT_PASS)
        return true;
    set = arena_alloc(t->a, sizeof *set);
    if (!oracle_compare(t->config->oracle, t->a, set, err))
        return false;
    evidence_compare(&t->evidence, set, inputs);
    t->out->trivial = set->trivial; /* the last draw's answer covers all draws */
    t->out->way = set->way;
    t->out->accuracy_class = worst_class(t->out->accuracy_class, set);
    if (draw > 0)
        return true;
    return t->exchange ? guest_again(t, set->hash, err) : run_again(t, hash, err);
}

/* ---- compute-sanitizer -------------------------------------------------- */

static bool watched_run(struct trial *t, const struct build_result *build, struct error *err)
{
    struct oracle_draw wanted = {.seed = draw_seed(t->out->seed, 0, t->a),
                                 .distribution = distributions[0]};
    struct runner_answer said = {0};
    json_t *buffers = NULL;
    bool ok = runner_load(t->runner, build, t->a, &said, err) &&
              oracle_draw(t->config->oracle, &wanted, &buffers, err);

    runner_answer_release(&said);
    ok = ok && runner_bind(t->runner, buffers, t->a, &said, err);
    runner_answer_release(&said);
    ok = ok && runner_run(t->runner, false, t->a, &said, err);
    runner_answer_release(&said);
    json_decref(buffers);
    if (ok)
        runner_end(t->runner);
    return ok;
}

/* Runs the candidate under compute-sanitizer to find lines and threads. False: it could not run,
 * which does not fail the test. */
static bool look_again(struct trial *t, struct runner_config rc, const struct build_result *build,
                       const char *tool)
{
    const char *log = path_join(t->a, build->work_dir, arena_printf(t->a, "%s.log", tool));
    const char *compiled = t->config->compiled_name ? t->config->compiled_name : "candidate.cu";
    const char *wrapper[] = {
        t->config->sanitizer, "--tool", tool, "--log-file", log, "--print-limit", "64",
        "--show-backtrace",   "device", NULL};
    struct runner_answer said = {.verdict = VERDICT_PASS, .op = -1, .text = ""};
    struct error why = {0};
    struct text found;
    bool looked;

    rc.wrapper = wrapper;
    rc.load_ms = WATCHED_MS;
    rc.run_ms = t->evidence.fatal != VERDICT_PASS ? GLANCE_MS : WATCHED_MS;
    t->runner = NULL;
    looked = runner_start(&rc, &t->runner, &why) && watched_run(t, build, &why);
    if (!looked)
        log_info("compute-sanitizer's %s could not check the candidate: %s", tool, why.text);
    runner_stop(t->runner);
    t->runner = NULL;
    if (!file_exists(log) || !file_read(log, LOG_LIMIT, t->a, &found, &why))
        return false;
    said.findings = sanitizer_findings(found, compiled);
    evidence_apart(&t->evidence);
    evidence_answer(&t->evidence, &said);
    runner_answer_release(&said);
    return looked;
}

/* Final acceptance: runs every tool and names those that could not run. */
static void look_with_all(struct trial *t, struct runner_config rc,
                          const struct build_result *build)
{
    const char *unchecked_by = "";

    for (size_t i = 0; i < ARRAY_LEN(acceptance); i++)
        if (!look_again(t, rc, build, acceptance[i]))
            unchecked_by = arena_printf(t->a, "%s%s%s", unchecked_by, *unchecked_by ? ", " : "",
                                        acceptance[i]);
    t->out->unchecked_by = *unchecked_by ? unchecked_by : NULL;
    evidence_verdict(&t->evidence, &t->out->verdict);
}

/* ---- the test ----------------------------------------------------------- */

static bool has_answers_beyond(const struct task *task)
{
    return task && json_bool_or(task->description, "beyond", false);
}

static bool run_draws(struct trial *t, const struct build_result *build, struct error *err)
{
    int usual = t->config->draws > 0 ? t->config->draws : DEFAULT_DRAWS;
    int draws = usual + (usual >= DEFAULT_DRAWS && has_answers_beyond(t->config->task));
    int64_t start = clock_ms();
    struct runner_answer said;

    if (!runner_load(t->runner, build, t->a, &said, err))
        return false;
    evidence_answer(&t->evidence, &said);
    runner_answer_release(&said);
    for (int i = 0; i < draws && t->evidence.fatal == VERDICT_PASS; i++) {
        /* A kernel known to be bad gets further draws only for seconds, not minutes. */
        bool bad = t->evidence.seen_count > 0 || t->evidence.worst_kind != VERDICT_PASS;

        if (bad && i >= 2 && clock_ms() - start > EVIDENCE_MS)
            break;
        if (!one_draw(t, i,
                      i < usual ? distributions[(size_t)i % ARRAY_LEN(distributions)]
                                : beyond_domain,
                      err))
            return error_add(err, "draw %d", i + 1);
    }
    return true;
}

/* Workspace that the plan requests. */
static double workspace_bytes(const struct build_result *build)
{
    const json_t *list = json_object_get(build->launches, "workspace");
    double sum = 0;

    for (size_t i = 0; i < json_array_size(list); i++)
        sum += json_double_or(json_array_get(list, i), "bytes", 0);
    return sum;
}

/* Out of memory is the candidate's fault only if the device could never hold what it requests;
 * otherwise another process holds the memory, and there is no verdict. If a foreign module itself
 * reports out of memory, that is its verdict: otherwise it could avoid ever getting one. */
static bool others_hold_memory(const struct judge_config *config, const struct build_result *build,
                               const struct evidence *e, struct error *err)
{
    double need = workspace_bytes(build) + config->task->bytes_min;
    double have = (double)config->device->memory_bytes - (double)RESERVED_BYTES;

    if (e->fatal != VERDICT_OUT_OF_MEMORY || config->device->kind != DEVICE_CUDA || need > have ||
        build->foreign)
        return false;
    error_set(
        err, ERROR_BUSY,
        "not enough memory for the candidate: it needs about %.1f GB with its inputs and outputs, "
        "the device has %.1f GB",
        need / 1e9, (double)config->device->memory_bytes / 1e9);
    error_hint(err, "see what holds the rest: nvidia-smi");
    return true;
}

/* A guest tried to start a program: builds it in a process that may, so that it can be tried
 * again. */
static bool build_for_guest(struct trial *t, const struct build_result *build, struct error *err)
{
    struct oracle_draw draw = {.seed = draw_seed(t->out->seed, 0, t->a),
                               .distribution = distributions[0]};
    struct runner_answer said;

    log_debug("the module starts programs: it is built in a process of its own");
    if (!foreign_build(t->config, build, draw, t->a, &said, err))
        return false;
    evidence_answer(&t->evidence, &said);
    runner_answer_release(&said);
    return true;
}

/* A correct result may come from other kernels than the candidate's: checks its launches, which
 * only a GPU's driver can report. */
static void see_launches(struct trial *t, const struct build_result *build)
{
    struct oracle_draw draw = {.seed = draw_seed(t->out->seed, 0, t->a),
                               .distribution = distributions[0]};
    struct runner_answer said = {.verdict = VERDICT_REFUSED, .op = -1};
    struct error why = {0};

    if (t->config->device->kind != DEVICE_CUDA || t->evidence.fatal != VERDICT_PASS ||
        json_is_true(json_object_get(build->foreign, "allow_torch")))
        return;
    if (!witness_launches(t->config, build, draw, t->a, &said.text, &why))
        /* the verdict stays unattested */
        log_warn("the module's launches are not recorded: %s", why.text);
    if (said.text)
        evidence_answer(&t->evidence, &said);
}

/* All draws in one process. */
static bool run_process(struct trial *t, const struct runner_config *rc,
                        const struct build_result *build, bool *wants_build, struct error *err)
{
    bool ok = runner_start(rc, &t->runner, err) && run_draws(t, build, err);

    *wants_build =
        ok && build->foreign && t->evidence.fatal != VERDICT_PASS && runner_wants_build(t->runner);
    t->plain = t->runner && !runner_is_confined(t->runner);
    runner_stop(t->runner);
    t->runner = NULL;
    return ok;
}

/* What ran unconfined; NULL: nothing did. */
static const char *unconfined(const struct trial *t, const struct build_result *build)
{
    bool task = t->config->oracle && !oracle_is_confined(t->config->oracle);
    const char *candidate = build->foreign ? "the module" : "the kernels";

    if (task && t->plain)
        return build->foreign ? "the task and the module" : "the task and the kernels";
    return task ? "the task" : t->plain ? candidate : NULL;
}

bool judge_test(const struct judge_config *config, const struct candidate *cand,
                const struct build_result *build, struct arena *a, struct test_result *out,
                struct error *err)
{
    struct runner_config rc = {.device = config->device,
                               .program = config->runner_program,
                               .check = config->check,
                               .counters = config->device->kind == DEVICE_SIMT,
                               .threads = config->threads,
                               .run_ms = config->run_ms,
                               .module = build->module_path,
                               .buffers = config->oracle ? oracle_folder(config->oracle) : NULL,
                               .source = config->source};
    struct trial *t = arena_alloc(a, sizeof *t);
    int64_t start = clock_ms();
    const char *tool;
    bool ok, wants_build = false;

    memset(out, 0, sizeof *out);
    *t = (struct trial){.config = config, .a = a, .out = out};
    out->seed = config->seed;
    if (!out->seed && !fresh_seed(a, &out->seed, err))
        return false;
    evidence_init(&t->evidence, a, config->task, cand, config->source_name, build->launches);
    ok = !build->foreign || foreign_runner(config, build, a, &rc, err);
    t->exchange = rc.exchange;
    ok = ok && run_process(t, &rc, build, &wants_build, err);
    if (ok && wants_build) {
        evidence_init(&t->evidence, a, config->task, cand, config->source_name, build->launches);
        ok = build_for_guest(t, build, err) &&
             (t->evidence.fatal != VERDICT_PASS || run_process(t, &rc, build, &wants_build, err));
    }
    if (ok && build->foreign)
        see_launches(t, build);
    foreign_end(&rc);
    if (ok && others_hold_memory(config, build, &t->evidence, err))
        ok = false;
    if (!ok) {
        json_decref(out->counters);
        out->counters = NULL;
        return error_add(err, "testing the candidate");
    }
    out->unconfined = unconfined(t, build);
    evidence_verdict(&t->evidence, &out->verdict);
    tool = config->device->kind == DEVICE_CUDA ? sanitizer_tool(out->verdict.kind) : NULL;
    if (tool && !build->foreign && config->sanitizer && build->work_dir) {
        (void)look_again(t, rc, build, tool);
        evidence_verdict(&t->evidence, &out->verdict);
    } else if (config->accept && !config->sanitizer) {
        out->unchecked_by = "compute-sanitizer, which is not there,";
    } else if (config->accept && build->work_dir && !build->foreign &&
               out->verdict.kind == VERDICT_PASS) {
        look_with_all(t, rc, build);
    }
    if (out->verdict.kind == VERDICT_PASS && out->trivial)
        out->verdict.summary =
            arena_printf(a, "%s; but %s would pass too", out->verdict.summary, out->trivial);
    out->accuracy = t->evidence.accuracy;
    out->test_ms = (int)(clock_ms() - start);
    return true;
}
