/* SPDX-License-Identifier: Apache-2.0 */
/*
 * candidate.c - build, test, measure and accept one candidate; see candidate.h.
 *
 * Acceptance is a separate step with its own verdict: a kernel that passed keeps that verdict even
 * if it is then refused.
 */
#include "loop/candidate.h"

#include "base/json.h"
#include "stage/settings.h"
#include "stage/stage.h"

#include <math.h>
#include <string.h>

static bool judge_one(const struct judging *j, const struct candidate *cand, struct arena *a,
                      const struct judged *out, struct error *err)
{
    struct attempt_outcome *o = out->outcome;

    o->step = STEP_BUILD;
    j->tell(j->ctx, "build", cand);
    if (!out->built && !stage_build(j->st, j->task, cand, a, out->build, err))
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

/* ---- many shapes ---------------------------------------------------------- */

/* Combines times and floors of all shapes: their weighted geometric mean. */
static void combine(const struct shape_result *shapes, const struct measurement *each, int count,
                    struct measurement *out)
{
    double weight = 0, time = 0, floor = 0;

    for (int i = 0; i < count; i++) {
        weight += shapes[i].weight;
        time += shapes[i].weight * log(shapes[i].time_us);
        floor += shapes[i].weight * log(shapes[i].floor_us);
    }
    for (int b = 0; b < out->baseline_count; b++) {
        double cold = 0, warm = 0;

        for (int i = 0; i < count; i++) {
            cold += shapes[i].weight * log(each[i].baselines[b].cold_us);
            warm += shapes[i].weight * log(each[i].baselines[b].warm_us);
        }
        out->baselines[b].cold_us = exp(cold / weight);
        out->baselines[b].warm_us = exp(warm / weight);
    }
    out->time_us = exp(time / weight);
    out->floor_us = exp(floor / weight);
    out->warm_us = 0;
}

/* The launch list of a shape, and what of the call went along with its tensors. */
static json_t *list_and_call(const json_t *launches, const json_t *description, struct arena *a)
{
    static const char *const parts[] = {"scalars", "call", "returns", "same_forward"};
    json_t *list = json_own(a, json_copy((json_t *)launches));

    for (size_t i = 0; list && i < ARRAY_LEN(parts); i++)
        if (json_object_get(description, parts[i]))
            json_object_set(list, parts[i], json_object_get(description, parts[i]));
    return list;
}

/* Loads and judges one shape and notes the result. */
static bool judge_shape(const struct judging *j, const struct candidate *cand, int shape,
                        struct arena *a, const struct judged *out, struct shape_result *note,
                        struct error *err)
{
    struct task *task = arena_alloc(a, sizeof(*task));
    struct judging here = *j;

    *note = (struct shape_result){0};
    note->label = stage_shape_label(j->st, shape, &note->weight);
    note->label = arena_strdup(a, note->label);
    if (!stage_shape(j->st, shape, a, task, err))
        return false;
    here.task = task;
    if (!judge_one(&here, cand, a, out, err))
        return false;
    note->inputs = json_object_get(task->description, "inputs");
    note->outputs = json_object_get(task->description, "outputs");
    note->verdict = out->outcome->verdict;
    note->launches = list_and_call(out->build->launches, task->description, a);
    note->module_hash = out->build->code_hash;
    if (out->outcome->measurement) {
        note->time_us = out->time->time_us;
        note->floor_us = out->time->floor_us;
    }
    return true;
}

/* The candidate gets the verdict of the shape that failed. */
static void refuse_for(const struct shape_result *note, const struct attempt_outcome *at,
                       struct attempt_outcome *o, struct arena *a)
{
    o->step = at->step;
    o->verdict = at->verdict;
    o->verdict.summary = arena_printf(a, "at %s: %s", note->label, at->verdict.summary);
    o->verdict.detail = arena_printf(a, "at %s:\n%s", note->label, at->verdict.detail);
    if (o->step < STEP_MEASURE)
        o->measurement = NULL;
    if (o->step < STEP_TEST)
        o->test = NULL;
}

/* The main shape first, whose results represent the candidate; then every other. */
static bool judge_shapes(const struct judging *j, const struct candidate *cand, struct arena *a,
                         const struct judged *out, struct error *err)
{
    int count = stage_shape_count(j->st), main = stage_shape_main(j->st), judged = 0;
    struct shape_result *notes = arena_array(a, (size_t)count, sizeof(*notes));
    struct measurement *each = arena_array(a, (size_t)count, sizeof(*each));
    struct task *back = arena_alloc(a, sizeof(*back));
    bool ok = judge_shape(j, cand, main, a, out, &notes[judged++], err);

    each[0] = *out->time;
    for (int i = 0; ok && i < count && out->outcome->verdict.kind == VERDICT_PASS; i++) {
        struct build_result *build = arena_alloc(a, sizeof(*build));
        struct test_result *test = arena_alloc(a, sizeof(*test));
        struct attempt_outcome at = {0};
        struct judged here = {build, test, &each[judged], &at, false};

        if (i == main)
            continue;
        ok = judge_shape(j, cand, i, a, &here, &notes[judged++], err);
        if (ok && at.verdict.kind != VERDICT_PASS)
            refuse_for(&notes[judged - 1], &at, out->outcome, a);
    }
    out->outcome->shapes = notes;
    out->outcome->shape_count = judged;
    if (ok && out->outcome->verdict.kind == VERDICT_PASS)
        combine(notes, each, judged, out->time);
    return stage_shape(j->st, main, a, back, ok ? err : &(struct error){0}) && ok;
}

bool judge_candidate(const struct judging *j, const struct candidate *cand, struct arena *a,
                     const struct judged *out, struct error *err)
{
    return stage_shape_count(j->st) > 1 ? judge_shapes(j, cand, a, out, err)
                                        : judge_one(j, cand, a, out, err);
}

/* ---- acceptance ----------------------------------------------------------- */

/* The same kernel on simt, whose checker detects what a GPU does not, at sizes that fit. */
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
    own.budget_text = NULL;
    if (device->kind == DEVICE_CUDA && !strcmp(device->arch, "sm_90a"))
        own.simt_arch = "90a";
    ok = stage_open(&own, &st, &out->why) &&
         stage_describe(st, req->task->path, a, &out->task, &out->why) &&
         stage_build(st, &out->task, req->cand, a, &out->build, &out->why);
    if (ok && out->build.verdict.kind == VERDICT_PASS)
        out->ran = stage_test(st, &out->task, req->cand, &out->build, a, &out->test, &out->why);
    stage_close(st);
}

/* If simt cannot run the kernel, the note says so and the kernel is not refused. */
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
