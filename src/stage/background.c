/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background.c - work for the judge that is done while a model thinks.
 *
 * A GPU's peaks are measured if they have not been, so that the roofline is this GPU's own from the
 * first measurement on. torch.compile takes tens of seconds the first time; once it has compiled
 * the task it is one more baseline, interleaved with the others. A recorded or built-in answer
 * arrives at once: then nothing is done here, because the user would wait for it. In that case, and
 * for what was not ready in time, stage_all_baselines() does it after the last step, when no kernel
 * is being built or measured.
 */
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "eval/peaks.h"
#include "stage/workshop.h"

#include <string.h>

bool stage_may_work(const struct stage *st)
{
    return !st->builtin && st->oracle &&
           strncmp(st->settings.model, "replay:", strlen("replay:")) != 0;
}

bool stage_has_work(const struct stage *st)
{
    return stage_may_work(st) && st->device.kind == DEVICE_CUDA && st->ahead < AHEAD_NOTHING;
}

/* The oracle's name for torch.compile in the configured mode. */
static const char *compile_name(const struct stage *st)
{
    const char *mode = st->settings.compile;

    return mode && strcmp(mode, "max-autotune") == 0 ? "autotune" : "compile";
}

static bool compile_wanted(const struct stage *st)
{
    return !st->settings.compile || strcmp(st->settings.compile, "none") != 0;
}

static bool has_baseline(const struct stage *st, const char *name)
{
    for (int i = 0; st->baselines[i]; i++)
        if (strcmp(st->baselines[i], name) == 0)
            return true;
    return false;
}

/* Adds a baseline to the next measurements, besides the usual two. */
static void add_baseline(struct stage *st, const char *name)
{
    int n = 0;

    if (!st->baselines[0]) {
        st->baselines[0] = "eager";
        st->baselines[1] = "graph";
    }
    while (st->baselines[n])
        n++;
    if (n < MAX_BASELINES && !has_baseline(st, name))
        st->baselines[n] = name;
}

static bool compile_reference(struct stage *st, struct arena *a, struct error *err)
{
    struct oracle_timing timing = {.name = compile_name(st), .turn = "ahead", .cold = 1, .warm = 1};
    char seed[65];
    struct oracle_draw draw = {.seed = seed, .distribution = "task"};
    struct time_samples ignored;
    json_t *buffers = NULL;
    bool ok;

    hash_text(text_of("torch.compile before the first candidate"), seed);
    seed[32] = '\0';
    ok = oracle_draw(st->oracle, &draw, &buffers, err) &&
         oracle_baseline(st->oracle, &timing, a, &ignored, err);
    json_decref(buffers);
    return ok;
}

static void measure_peaks(struct stage *st, struct arena *a)
{
    struct error why = {0};

    if (peaks_measured(st->device.name, a))
        return;
    log_info("while the model thinks: the peaks of %s", st->device.name);
    if (!workshop_peaks(st, a, &why))
        log_info("the peaks of %s were not measured: %s", st->device.name, why.text);
}

static void compile_baseline(struct stage *st, const struct task *task, struct arena *a)
{
    struct error why = {0};
    bool ready = false;

    if (!compile_wanted(st) || has_baseline(st, compile_name(st)))
        return;
    log_info("torch.compile of %s, while nothing is measured", task->name);
    if (workshop_lease(st, &why)) {
        ready = compile_reference(st, a, &why);
        workshop_unlease(st);
    }
    if (ready)
        add_baseline(st, compile_name(st));
    else
        log_info("no baseline by torch.compile for %s: %s", task->name, why.text);
}

bool stage_all_baselines(struct stage *st, const struct task *task)
{
    static const char *const settings[] = {"defaults", "strict", "tf32"};
    const char *here = json_string_or(task->description, "baseline", "");
    struct arena *a;

    if (st->device.kind != DEVICE_CUDA || !st->oracle)
        return false; /* modelled times are compared with modelled times alone */
    a = arena_new();
    compile_baseline(st, task, a);
    arena_free(a);
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        if (json_bool_or(task->description, "settings_differ", false) &&
            strcmp(settings[i], here) != 0)
            add_baseline(st, settings[i]);
    return st->baselines[0] != NULL;
}

void stage_work_ahead(struct stage *st, const struct task *task)
{
    struct arena *a = arena_new();

    if (st->ahead == AHEAD_PEAKS)
        measure_peaks(st, a);
    else
        compile_baseline(st, task, a);
    st->ahead++;
    arena_free(a);
}
