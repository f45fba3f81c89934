/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - from a candidate's file to something the runner can load.
 *
 *     gate -> plan.ptx -> launch list -> kernel names -> PTX, cubin -> (simt: .so)
 *
 * The plan runs first: its launch list names the instantiations that the
 * compiler must produce. Each step may end the build with its verdict. A candidate in Python goes
 * another way to the same (python_plan.c), a ModelNew is not built here.
 */
#include "base/clock.h"
#include "base/cpus.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "eval/foreign.h"
#include "eval/trust.h"
#include "stage/workshop.h"
#include "toolchain/gate.h"
#include "toolchain/plan.h"
#include "toolchain/simtc.h"

enum { MODULE_LIMIT = 256 << 20 };

/* The launch list; build->verdict says when the plan is bad. */
static bool make_plan(struct stage *st, struct builder *b, const struct task *task,
                      const struct candidate *cand, struct arena *a, struct build_result *build,
                      struct error *err)
{
    json_t *request = plan_request(task, &st->device);
    const char *ptx = NULL;
    bool ok;

    ok = plan_compile(b, cand->source, WORKSHOP_SOURCE_NAME, build->work_dir, a, &ptx,
                      &build->verdict, err);
    if (ok && build->verdict.kind == VERDICT_PASS)
        ok = plan_run(ptx, request, cand->source, WORKSHOP_SOURCE_NAME, a, &build->launches,
                      &build->verdict, err);
    json_own(a, build->launches);
    json_decref(request);
    return ok;
}

/* From here on the module is these bytes, whatever happens to the file. */
static bool hash_module(struct build_result *build, bool simt, struct arena *a, struct error *err)
{
    struct text module;
    char hex[65];

    if (!file_read(build->module_path, MODULE_LIMIT, a, &module, err) ||
        !file_read(build->ptx_path, MODULE_LIMIT, a, &build->ptx, err))
        return false;
    hash_text(module, hex);
    build->module_hash = arena_strdup(a, hex);
    build->code = simt ? build->ptx : module;
    hash_text(build->code, hex);
    build->code_hash = arena_strdup(a, hex);
    hash_text(build->ptx, hex);
    build->ptx_hash = arena_strdup(a, hex);
    return true;
}

static bool compile(struct stage *st, struct builder *b, const struct candidate *cand,
                    struct arena *a, struct build_result *build, struct error *err)
{
    struct build_request req = {
        .source = cand->source,
        .name = WORKSHOP_SOURCE_NAME,
        .launches = build->launches,
        .arch = st->device.arch,
        .cubin = true,
        .cute = st->settings.target == LANGUAGE_CUTE,
        .work_dir = build->work_dir,
        .deadline_ms = st->settings.build_deadline_s * 1000,
    };
    bool ok = builder_compile(b, &req, a, build, err);

    json_own(a, build->names);
    json_own(a, build->resources);
    return ok;
}

/* What is built becomes what the runner loads. */
static bool finish(struct stage *st, struct arena *a, struct build_result *build, struct error *err)
{
    bool simt = st->device.kind == DEVICE_SIMT, ok = true;

    if (build->verdict.kind == VERDICT_PASS && simt)
        ok = simtc_translate(&st->tools, st->settings.build_deadline_s * 1000, a, build, err);
    return ok && (build->verdict.kind != VERDICT_PASS || hash_module(build, simt, a, err));
}

static bool build_cuda(struct stage *st, size_t number, const struct task *task,
                       const struct candidate *cand, struct arena *a, struct build_result *out,
                       struct error *err)
{
    enum gate_target gate = st->settings.target == LANGUAGE_CUDA ? GATE_CUDA : GATE_CUTE;
    struct builder *b;

    if (gate_refuses_as(gate, cand->source, WORKSHOP_SOURCE_NAME, a, &out->verdict))
        return true; /* refused before it costs anything */
    return workshop_builder(st, number, &b, err) && make_plan(st, b, task, cand, a, out, err) &&
           (out->verdict.kind != VERDICT_PASS || compile(st, b, cand, a, out, err));
}

/* It builds itself, in its own process. */
static bool build_foreign(struct stage *st, const struct task *task, const struct candidate *cand,
                          struct arena *a, struct build_result *out, struct error *err)
{
    out->verdict = (struct verdict){.kind = VERDICT_PASS, .summary = "", .detail = ""};
    out->trusted = st->settings.trust;
    if (!foreign_prepare(task, cand, st->settings.allow_torch, a, out, err))
        return false;
    json_own(a, out->foreign);
    return true;
}

/* With the builder of that number. */
static bool build_with(struct stage *st, size_t number, const struct task *task,
                       const struct candidate *cand, struct arena *a, struct build_result *out,
                       struct error *err)
{
    int64_t start = clock_ms();
    bool python = languages[st->settings.target].python && !cand->foreign;

    *out = (struct build_result){
        .work_dir = path_join(
            a, st->work_dir,
            arena_printf(a, st->shape_now == st->shape_main ? "attempt-%d" : "attempt-%d-shape-%d",
                         cand->attempt, st->shape_now))};
    if (!dir_make(out->work_dir, err))
        return false;
    if ((cand->foreign || python) && !trust_here(st->settings.trust, err))
        return false;
    if (cand->foreign)
        return build_foreign(st, task, cand, a, out, err);
    if (!(python ? workshop_compose(st, task, cand, a, out, err)
                 : build_cuda(st, number, task, cand, a, out, err)) ||
        !finish(st, a, out, err))
        return error_add(err, "building attempt %d of %s", cand->attempt, task->name);
    out->build_ms = (int)(clock_ms() - start);
    return true;
}

bool stage_build(struct stage *st, const struct task *task, const struct candidate *cand,
                 struct arena *a, struct build_result *out, struct error *err)
{
    return build_with(st, 0, task, cand, a, out, err);
}

bool stage_build_for(struct stage *st, const struct device *device, const struct task *task,
                     const struct candidate *cand, struct arena *a, struct build_result *out,
                     struct error *err)
{
    struct device here = st->device;
    bool ok;

    st->device = *device;
    ok = stage_build(st, task, cand, a, out, err);
    st->device = here;
    return ok;
}

bool stage_compile(struct stage *st, struct text source, const char *arch, const json_t *names,
                   struct arena *a, struct build_result *out, struct error *err)
{
    struct build_request req = {
        .source = source,
        .name = WORKSHOP_SOURCE_NAME,
        .names = names,
        .arch = arch,
        .cubin = true,
        .cute = st->settings.target == LANGUAGE_CUTE,
        .work_dir = path_join(a, st->work_dir, "compile"),
        .deadline_ms = st->settings.build_deadline_s * 1000,
    };
    struct builder *b;

    *out = (struct build_result){.work_dir = req.work_dir};
    if (!dir_make(req.work_dir, err))
        return false;
    if (gate_refuses_as(st->settings.target == LANGUAGE_CUDA ? GATE_CUDA : GATE_CUTE, source,
                        WORKSHOP_SOURCE_NAME, a, &out->verdict))
        return true;
    if (!workshop_builder(st, 0, &b, err) || !builder_compile(b, &req, a, out, err))
        return error_add(err, "compiling for %s", arch);
    json_own(a, out->names);
    json_own(a, out->resources);
    return true;
}

/* ---- several ----------------------------------------------------------------- */

struct build_thread {
    pthread_t thread;
    bool started;
    struct stage *st;
    const struct task *task;
    struct build_job *jobs;
    size_t number, step, count; /* it does every step-th job from its number on */
};

static void *build_some(void *self)
{
    struct build_thread *t = self;

    for (size_t i = t->number; i < t->count; i += t->step) {
        struct build_job *j = &t->jobs[i];

        j->ok = build_with(t->st, t->number, t->task, j->cand, j->a, j->out, &j->err);
    }
    return NULL;
}

void workshop_build_jobs(struct stage *st, const struct task *task, struct build_job *jobs,
                         size_t n, size_t step)
{
    struct build_thread threads[MAX_PARALLEL];

    step = step < MAX_PARALLEL ? step : MAX_PARALLEL;
    step = step < n ? step : n;
    for (size_t i = 0; i < step; i++) {
        threads[i] = (struct build_thread){
            .st = st, .task = task, .jobs = jobs, .number = i, .step = step, .count = n};
        threads[i].started =
            i > 0 && pthread_create(&threads[i].thread, NULL, build_some, &threads[i]) == 0;
    }
    for (size_t i = 0; i < step; i++)
        if (!threads[i].started)
            (void)build_some(&threads[i]);
    for (size_t i = 0; i < step; i++)
        if (threads[i].started)
            pthread_join(threads[i].thread, NULL);
}

void stage_build_many(struct stage *st, const struct task *task, struct build_job *jobs, size_t n)
{
    workshop_build_jobs(st, task, jobs, n, (size_t)cpus_usable());
}
