/* SPDX-License-Identifier: Apache-2.0 */
/*
 * candidate.c - build, test, measure and accept one candidate; see candidate.h.
 *
 * Acceptance is a step of its own, with a verdict of its own: a kernel that
 * passed keeps that verdict, and is refused beside it.
 */
#include "loop/candidate.h"

#include "stage/settings.h"
#include "stage/stage.h"

#include <string.h>

bool judge_candidate(const struct judging *j, const struct candidate *cand, struct arena *a,
                     const struct judged *out, struct error *err)
{
    struct attempt_outcome *o = out->outcome;

    o->step = STEP_BUILD;
    j->tell(j->ctx, "build", cand);
    if (!stage_build(j->st, j->task, cand, a, out->build, err))
        return false;
    o->build = out->build;
    o->verdict = out->build->verdict;
    if (o->verdict.kind != VERDICT_PASS)
        return true;

    o->step = STEP_TEST;
    j->tell(j->ctx, "test", cand);
    if (!stage_test(j->st, j->task, cand, out->build, a, out->test, err))
        return false;
    o->test = out->test;
    o->verdict = out->test->verdict;
    if (o->verdict.kind != VERDICT_PASS)
        return true;

    o->step = STEP_MEASURE;
    j->tell(j->ctx, "measure", cand);
    if (!stage_measure(j->st, j->task, out->build, out->test, a, out->time, err))
        return false;
    o->measurement = out->time;
    o->verdict = out->time->verdict;
    return true;
}

/* ---- acceptance ----------------------------------------------------------- */

/* The same kernel on simt, whose checker sees what a GPU does not, at sizes that fit. */
struct simt_check {
    struct task task;
    struct build_result build;
    struct test_result test;
    struct error why; /* it could not run */
    bool ran;         /* `test` holds its verdict */
};

static void run_on_simt(const struct acceptance_request *req, struct arena *a,
                        struct simt_check *out)
{
    const struct device *device = stage_device(req->st);
    struct settings own = *req->settings;
    struct stage *st = NULL;
    bool ok;

    own.device = "simt";
    own.check = "full";
    own.model = "builtin"; /* no model is asked */
    own.budget_file = NULL;
    if (device->kind == DEVICE_CUDA && !strcmp(device->arch, "sm_90a"))
        own.simt_arch = "90a";
    ok = stage_open(&own, &st, &out->why) &&
         stage_describe(st, req->task->path, a, &out->task, &out->why) &&
         stage_build(st, &out->task, req->cand, a, &out->build, &out->why);
    if (ok && out->build.verdict.kind == VERDICT_PASS)
        out->ran = stage_test(st, &out->task, req->cand, &out->build, a, &out->test, &out->why);
    stage_close(st);
}

/* Where simt cannot run it, that is said and nothing is held against it. */
static bool accept_on_simt(const struct acceptance_request *req, struct arena *a,
                           struct acceptance *out, struct error *err)
{
    struct simt_check *check = arena_alloc(a, sizeof(*check));
    const struct device *device = stage_device(req->st);
    bool gpu = device->kind == DEVICE_CUDA;
    const char *scaled;

    run_on_simt(req, a, check);
    if (check->why.kind == ERROR_INTERRUPTED) {
        *err = check->why;
        return false;
    }
    if (!check->ran) {
        out->note = arena_printf(
            a, "%ssimt cannot run it: %s", gpu ? "compute-sanitizer found nothing; " : "",
            check->why.kind != ERROR_NONE ? check->why.text : check->build.verdict.summary);
        return true;
    }
    scaled = check->task.scaled;
    if (check->test.verdict.kind == VERDICT_PASS) {
        out->note = arena_printf(a, "%s found nothing%s%s",
                                 gpu ? "compute-sanitizer and simt" : "simt's full check",
                                 scaled ? "; simt at " : "", scaled ? scaled : "");
        return true;
    }
    out->verdict = check->test.verdict;
    out->verdict.detail = arena_printf(
        a, "it passes on %s; simt, which checks every access%s%s, says:\n%s", device->name,
        scaled ? ", at " : "", scaled ? scaled : "", check->test.verdict.detail);
    return true;
}

bool accept_is_cheap(const struct settings *settings, const struct device *device)
{
    return device->kind == DEVICE_SIMT && strcmp(settings->check, "full") == 0;
}

bool accept_candidate(const struct acceptance_request *req, struct arena *a, struct acceptance *out,
                      struct error *err)
{
    const struct device *device = stage_device(req->st);
    struct test_result *test;

    *out = (struct acceptance){.verdict = {.kind = VERDICT_PASS, .summary = "", .detail = ""},
                               .note = ""};
    if (accept_is_cheap(req->settings, device)) {
        out->note = "judged under simt's full check";
        return true;
    }
    if (device->kind == DEVICE_SIMT)
        return accept_on_simt(req, a, out, err);
    test = arena_alloc(a, sizeof(*test));
    if (!stage_accept(req->st, req->task, req->cand, req->build, a, test, err))
        return false;
    out->verdict = test->verdict;
    if (out->verdict.kind != VERDICT_PASS)
        return true;
    if (!accept_on_simt(req, a, out, err))
        return false;
    if (*out->note && test->unchecked_by)
        out->note = arena_printf(a, "%s; but %s could not check", out->note, test->unchecked_by);
    return true;
}
