/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - time a kernel: measured on a GPU, modelled on simt. */
#include "base/json.h"
#include "stage/workshop.h"

/* Everything is loaded: what follows takes times. */
static bool alone(void *stage, struct error *err)
{
    return workshop_lease(stage, err);
}

bool stage_measure(struct stage *st, const struct task *task, const struct build_result *build,
                   const struct test_result *test, struct arena *a, struct measurement *out,
                   struct error *err)
{
    struct judge_config config = workshop_judge_config(st, task);
    int attempt = 0;
    bool ok;

    config.turn = alone;
    config.turn_of = st;
    if (build->foreign && !workshop_lease(st, err)) /* loading it runs it */
        return false;
    do
        ok = judge_measure(&config, build, test, a, out, err);
    while (!ok && workshop_room(st, attempt++, err));
    if (!ok && workshop_renew(st, err)) {
        config = workshop_judge_config(st, task);
        config.turn = alone;
        config.turn_of = st;
        ok = judge_measure(&config, build, test, a, out, err);
    }
    if (ok)
        out->machine = workshop_machine(st, a);
    workshop_unlease(st);
    if (!ok)
        return error_add(err, "measuring %s", task->name);
    json_own(a, out->parts);
    return true;
}
