/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background.c - what is done for the judge while a model thinks.
 *
 * On a GPU whose peaks were not measured they are, so that the roofline is this
 * GPU's own from the first measurement on. torch.compile takes tens of seconds
 * the first time; once it has compiled the task it is one more baseline, timed
 * in turn with the others. A recorded or built-in answer is there at once:
 * then nothing is done ahead, because somebody would wait for it.
 */
#include "base/hash.h"
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

static bool compile_reference(struct stage *st, struct arena *a, struct error *err)
{
    struct oracle_timing timing = {.name = "compile", .turn = "ahead", .cold = 1, .warm = 1};
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

    log_info("while the model thinks: torch.compile of %s", task->name);
    if (workshop_lease(st, &why)) {
        st->compile_ready = compile_reference(st, a, &why);
        workshop_unlease(st);
    }
    if (!st->compile_ready)
        log_info("no baseline by torch.compile for %s: %s", task->name, why.text);
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
