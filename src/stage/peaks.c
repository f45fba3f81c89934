/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peaks.c - measure a GPU's peaks; the kernels are in peaks/peaks.cu.
 *
 * The file is built once, by a plan that launches every kernel of it; each
 * figure is one more plan over the same module, timed by a runner like a candidate, without an
 * oracle, since nothing is compared. An implausible figure is reported and not stored.
 */
#include "eval/peaks.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "eval/runner_client.h"
#include "stage/workshop.h"
#include "toolchain/plan.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SOURCE = 1 << 20, COLD = 15, WARM = 15, LAUNCHES = 64, EVERY_KERNEL = -1 };

/* Kinds are the plan's; `work` is bytes or flops of one run with `amount` (per SM where sm). Of
 * several with the same name the best counts. */
static const struct figure {
    const char *name;
    int kind;
    int64_t amount;
    double work; /* for one unit of amount */
    bool per_sm, warm;
    int arch_least, arch_most; /* 0: any */
} figures[] = {
    {"read_gbps", 0, (int64_t)2 << 30, 1, false, false, 0, 0},
    {"write_gbps", 1, (int64_t)2 << 30, 1, false, false, 0, 0},
    {"mixed_gbps", 2, (int64_t)2 << 30, 2, false, false, 0, 0},
    {"mixed_gbps", 11, (int64_t)2 << 30, 2, false, false, 0, 0},
    {"mixed_gbps", 12, (int64_t)2 << 30, 2, false, false, 0, 0},
    {"l2_gbps", 3, (int64_t)16 << 20, 64, false, true, 0, 0},
    {"fp32_tflops", 4, 512, 2.0 * 2 * 1024 * 16 * 8, true, true, 0, 0},
    {"fp64_tflops", 5, 256, 2.0 * 2 * 1024 * 16 * 8, true, true, 0, 0},
    {"tensor_sync_f16_tflops", 6, 4096, 2.0 * 2 * 16 * 8 * (16 * 8 * 16), true, true, 80, 0},
    {"tensor_f16_tflops", 7, 4096, 2.0 * 2 * (64 * 256 * 64), true, true, 90, 90},
    {"tensor_bf16_tflops", 8, 4096, 2.0 * 2 * (64 * 256 * 64), true, true, 90, 90},
    {"tensor_tf32_tflops", 9, 4096, 2.0 * 2 * (64 * 256 * 32), true, true, 90, 90},
};

struct peaks {
    struct candidate cand;
    struct build_result
        build;        /* the module of all kernels; the launch list of the current figure */
    const char *plan; /* the compiled plan */
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, size_t count)
{
    qsort(v, count, sizeof *v, by_value);
    return count ? v[count / 2] : 0;
}

/* The task given to the plan, allocated in `a`. */
static struct task *peaks_task(int kind, int64_t amount, struct arena *a)
{
    struct task *task = arena_alloc(a, sizeof *task);

    task->name = "peaks";
    task->description =
        json_own(a, json_pack("{s:[{s:s, s:s, s:i}, {s:s, s:s, s:I}]}", "scalars", "name", "kind",
                              "type", "int", "value", kind, "name", "amount", "type", "int",
                              "value", (json_int_t)amount));
    return task;
}

/* The launch list of one figure, over the module that has all kernels. */
static bool plan_figure(struct stage *st, struct peaks *p, int kind, int64_t amount,
                        struct arena *a, struct error *err)
{
    json_t *request = plan_request(peaks_task(kind, amount, a), &st->device);
    bool ok;

    p->build.launches = NULL;
    ok = plan_run(p->plan, request, p->cand.source, WORKSHOP_SOURCE_NAME, a, &p->build.launches,
                  &p->build.verdict, err);
    json_own(a, p->build.launches);
    json_decref(request);
    return ok;
}

/* Microseconds of one plan; 0 if this device cannot run it, which is logged. */
static bool time_plan(struct stage *st, struct peaks *p, int kind, int64_t amount, bool warm,
                      struct arena *a, double *us, struct error *err)
{
    struct runner_config config = {.device = &st->device};
    struct runner_answer said = {0};
    struct time_samples s = {0};
    json_t *nothing = json_object();
    struct runner *r = NULL;
    bool ok = false;

    *us = 0;
    if (!plan_figure(st, p, kind, amount, a, err))
        goto done;
    if (p->build.verdict.kind != VERDICT_PASS) {
        log_info("peaks, kind %d: %s", kind, p->build.verdict.summary);
        ok = true;
        goto done;
    }
    if (!runner_start(&config, &r, err) || !runner_load(r, &p->build, a, &said, err))
        goto done;
    if (said.verdict == VERDICT_PASS && !runner_bind(r, nothing, a, &said, err))
        goto done;
    if (said.verdict == VERDICT_PASS && !runner_time(r, COLD, WARM, a, &said, &s, err))
        goto done;
    if (said.verdict != VERDICT_PASS)
        log_info("peaks, kind %d: %s: %s", kind, verdict_names[said.verdict], said.text);
    *us = warm ? median(s.warm_us, s.warm_count) : median(s.cold_us, s.cold_count);
    ok = true;
done:
    runner_answer_release(&said);
    runner_stop(r);
    json_decref(nothing);
    return ok;
}

/* Builds every kernel of the file at once. */
static bool build_kernels(struct stage *st, struct peaks *p, struct arena *a, struct error *err)
{
    /* cannot fail: a plan that does not compile has ended the build earlier */
    struct verdict ignored;

    if (!stage_build(st, peaks_task(EVERY_KERNEL, 1, a), &p->cand, a, &p->build, err))
        return false;
    if (p->build.verdict.kind != VERDICT_PASS)
        return error_set(err, ERROR_MACHINE, "the kernels that measure %s do not build: %s",
                         st->device.name, p->build.verdict.summary);
    return plan_compile(st->builder, p->cand.source, WORKSHOP_SOURCE_NAME, p->build.work_dir, a,
                        &p->plan, &ignored, err);
}

static bool measure_figures(struct stage *st, struct peaks *p, struct arena *a, json_t *out,
                            struct error *err)
{
    int arch = (int)strtol(st->device.arch + strcspn(st->device.arch, "0123456789"), NULL, 10);
    double few, many;

    for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
        const struct figure *f = &figures[i];
        double us, rate, work = f->work * (double)f->amount * (f->per_sm ? st->device.sm_count : 1);

        if ((f->arch_least && arch < f->arch_least) || (f->arch_most && arch > f->arch_most))
            continue;
        if (!time_plan(st, p, f->kind, f->amount, f->warm, a, &us, err))
            return error_add(err, "measuring %s", f->name);
        if (us <= 0)
            continue;
        rate = work / us * (strstr(f->name, "gbps") ? 1e-3 : 1e-6); /* GB/s or TFLOPS */
        if (rate > json_double_or(out, f->name, 0))
            json_object_set_new(out, f->name, json_real(rate));
    }
    if (!time_plan(st, p, 10, 1, true, a, &few, err))
        return false;
    if (!time_plan(st, p, 10, 1 + LAUNCHES, true, a, &many, err))
        return false;
    if (few > 0 && many > few)
        json_object_set_new(out, "launch_us", json_real((many - few) / LAUNCHES));
    return true;
}

bool workshop_peaks(struct stage *st, struct arena *a, struct error *err)
{
    struct peaks p = {.cand = {.change = ""}};
    json_t *measured = json_object();
    char *path, stamp[25];
    bool ok;

    clock_stamp(clock_unix_ms(), stamp);
    json_object_set_new(measured, "device", json_string(st->device.name));
    json_object_set_new(measured, "measured", json_string(stamp));
    ok = home_data("peaks/peaks.cu", a, &path, err) &&
         file_read(path, MAX_SOURCE, a, &p.cand.source, err) && build_kernels(st, &p, a, err) &&
         workshop_lease(st, err);
    if (ok) {
        ok = measure_figures(st, &p, a, measured, err) &&
             peaks_save(st->device.name, measured, a, err);
        workshop_unlease(st);
    }
    json_decref(measured);
    return ok;
}

bool stage_peaks(const struct settings *settings, bool measure, struct arena *a, json_t **report,
                 struct error *err)
{
    struct settings own = *settings;
    struct stage *st = NULL;
    bool ok;

    own.model = "builtin"; /* no model is asked */
    *report = NULL;
    ok = stage_open(&own, &st, err) &&
         (!measure || st->device.kind != DEVICE_CUDA || workshop_peaks(st, a, err));
    if (ok)
        *report = peaks_report(&st->device, a);
    stage_close(st);
    return ok;
}
