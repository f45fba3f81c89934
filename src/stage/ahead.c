/*
 * ahead.c - what is done for the judge while a model thinks.
 *
 * torch.compile takes tens of seconds the first time. Once it has compiled the
 * task it is one more baseline, timed in turn with the others. A recorded
 * or built-in answer is there at once: then nothing is done ahead, because
 * somebody would wait for it.
 */
#include "base/hash.h"
#include "base/log.h"
#include "stage/workshop.h"

#include <string.h>

bool stage_may_work(const struct stage *st)
{
    return st->device.kind == DEVICE_CUDA && !st->builtin && st->oracle &&
           strncmp(st->settings.model, "replay:", strlen("replay:")) != 0;
}

bool stage_has_work(const struct stage *st)
{
    return stage_may_work(st) && !st->worked_ahead;
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

void stage_work_ahead(struct stage *st, const struct task *task)
{
    struct arena *a = arena_new();
    struct error why = {0};

    st->worked_ahead = true;
    if (workshop_lease(st, &why)) {
        st->compile_ready = compile_reference(st, a, &why);
        workshop_unlease(st);
    }
    if (!st->compile_ready)
        log_info("no baseline by torch.compile for %s: %s", task->name, why.text);
    arena_free(a);
}
