/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncu_run.c - run a candidate once under ncu and read its report as CSV; see ncu.h.
 *
 * ncu replays every kernel many times to collect all counters, and saves and
 * restores what it wrote in between, so a run takes seconds.
 */
#include "eval/ncu.h"

#include "base/fs.h"
#include "base/proc.h"
#include "eval/runner_client.h"

#include <string.h>

enum {
    LOAD_MS = 60000,
    RUN_MS = 120000,
    PRINT_MS = 30000,
    LOG_BYTES = 1 << 20,
    PAGE_BYTES = 16 << 20,
};

/* Load, one draw, one run: profiles one call of the candidate. */
static bool run_once(const struct judge_config *config, struct runner *r,
                     const struct build_result *build, const char *seed, struct arena *a,
                     struct error *err)
{
    struct oracle_draw wanted = {.seed = seed, .distribution = "task"};
    struct runner_answer said = {0};
    json_t *buffers = NULL;
    bool ok =
        runner_load(r, build, a, &said, err) && oracle_draw(config->oracle, &wanted, &buffers, err);

    runner_answer_release(&said);
    ok = ok && runner_bind(r, buffers, a, &said, err);
    runner_answer_release(&said);
    ok = ok && runner_run(r, false, a, &said, err);
    if (ok && said.verdict != VERDICT_PASS)
        ok = error_set(err, ERROR_MACHINE, "the runner under ncu: %s: %s",
                       verdict_names[said.verdict], said.text ? said.text : "");
    runner_answer_release(&said);
    json_decref(buffers);
    if (ok)
        runner_end(r); /* makes ncu write its report */
    return ok;
}

static bool print_page(const char *ncu, const char *report, const char *page, struct arena *a,
                       struct text *out, struct error *err)
{
    const char *argv[] = {ncu,     "--import",      report, "--page", page,
                          "--csv", "--print-units", "base", NULL};
    struct proc_spec spec = {.argv = argv, .deadline_ms = PRINT_MS, .output_limit = PAGE_BYTES};
    struct proc_result r;

    if (!proc_run(&spec, a, &r, err))
        return false;
    if (r.end != PROC_EXITED || r.code != 0)
        return error_set(err, ERROR_MACHINE, "ncu cannot print its %s page: %s", page,
                         proc_end_text(&r, a));
    *out = r.out;
    return true;
}

/* Explains a missing report: ncu's own message, and what to do about the usual cause. */
static bool explain(const char *log, struct arena *a, struct error *err)
{
    struct error ignored = {0}, first = *err;
    struct text said = {"", 0};
    const char *line;

    if (file_exists(log))
        (void)file_read(log, LOG_BYTES, a, &said, &ignored);
    line = said.len ? strstr(said.data, "==ERROR==") : NULL;
    memset(err, 0, sizeof(*err));
    if (line)
        error_set(err, ERROR_MACHINE, "ncu: %.*s", (int)strcspn(line, "\n"), line);
    else
        error_set(err, ERROR_MACHINE, "ncu made no report%s%s", first.kind ? ": " : "",
                  first.kind ? first.text : "");
    if (line && strstr(line, "NVGPUCTRPERM"))
        return error_hint(err, "let users read the GPU's counters: "
                               "https://developer.nvidia.com/ERR_NVGPUCTRPERM");
    return false;
}

bool ncu_profile(const struct judge_config *config, const struct build_result *build,
                 const struct test_result *test, const char *ncu, struct arena *a,
                 struct ncu_pages *out, struct error *err)
{
    const char *log = path_join(a, build->work_dir, "ncu.log");
    const char *report = path_join(a, build->work_dir, "profile.ncu-rep");
    const char *wrapper[] = {ncu,          "--set",
                             "full",       "--clock-control",
                             "none",       "--import-source",
                             "no",         "--launch-count",
                             "16",         "-f",
                             "--log-file", log,
                             "-o",         report,
                             NULL};
    struct runner_config rc = {.device = config->device,
                               .program = config->runner_program,
                               .wrapper = wrapper,
                               .load_ms = LOAD_MS,
                               .run_ms = RUN_MS};
    struct runner *r = NULL;
    bool ok = runner_start(&rc, &r, err) && run_once(config, r, build, test->seed, a, err);

    runner_stop(r);
    if (!file_exists(report))
        return explain(log, a, err);
    if (!ok)
        return false;
    return print_page(ncu, report, "raw", a, &out->raw, err) &&
           print_page(ncu, report, "details", a, &out->details, err);
}
